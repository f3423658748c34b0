/*
 * warcreader.h - private to warc: the reader's state, shared by the files that read records.
 *
 *   warcreader.c    reads one record after another: header, block, trailer
 *   warcsalvage.c   decides how much of a broken record can be kept
 *   resync.c        finds the next record after damage
 *
 * A reader is opened, then wb_warc_next() is called until it returns 0 or a final error,
 * then it is closed. Between two calls the record delivered last is still in memory
 * (`taken` bytes of it); the next call gives that memory back first.
 */
#ifndef WB_WARC_WARCREADER_H
#define WB_WARC_WARCREADER_H

#include "warc/source.h"
#include "warc/warc.h"

/* Why a record with a valid header is not complete. */
enum wb_warc_broken {
    WB_WARC_BROKEN_NOT,
    WB_WARC_BROKEN_FILE_ENDS,
    WB_WARC_BROKEN_NEXT_STARTS,
    WB_WARC_BROKEN_WRONG_END,
};
const char *wb_warc_broken_words(enum wb_warc_broken broken);

#define WB_WARC_READER_MAGIC 0x57415243u

struct wb_warc_reader {
    uint32_t magic;              /* WB_WARC_READER_MAGIC while it is open */
    struct wb_source source;
    size_t block_max;
    size_t taken;                /* how many bytes the record delivered last occupies */
    uint64_t offset;             /* of the record being read */
    uint64_t error_offset;
    uint64_t unit_offset;        /* the unit in which the last record started... */
    uint64_t unit_records;       /* ...and how many records started in it before that one */
    enum wb_warc_broken broken;  /* what is wrong with the record being read */
    bool arc;                    /* this is an ARC file */
    bool recognised;             /* something that starts like a record has been seen */
    bool lost;                   /* the next record must be searched for */
    int final;                   /* the error after which nothing more can be read, or 0 */
};

/* ARC headers are too vague to search for them in a file that is known to be WARC. */
static inline bool wb_warc_reader_may_be_arc(const struct wb_warc_reader *r)
{
    return r->arc || !r->recognised;
}

/* True if the newest unit may hold further records. */
static inline bool wb_warc_reader_holds_several(const struct wb_warc_reader *r)
{
    return r->source.kind == WB_SOURCE_PLAIN || r->unit_records > 0 || r->source.unit_offset == 0;
}

/*
 * Where the parts of a record are in memory, counted from its first byte:
 *
 *   | header | kept part of the block | (dropped part: not in memory) | trailer | next record
 *   0        head                     head + keep                     taken
 */
struct wb_warc_extent {
    size_t head;         /* bytes of the header */
    uint64_t length;     /* of the block... */
    size_t keep;         /* ...and how much of it is in memory behind the header */
    size_t taken;        /* all bytes in memory up to where the next record may start */
    uint64_t dropped;    /* bytes of the block that were skipped */
    bool sure;           /* nothing suggests that the block is incomplete */
    const char *problem; /* what is wrong with the record; "" if nothing is */
};

/*
 * Called after WB_E_CORRUPT: finds out how much of the record can be kept. Returns 0 with
 * the extent reduced to that, or WB_E_CORRUPT (with the message unchanged) if nothing can
 * be kept. In warcsalvage.c.
 */
int wb_warc_salvage_block(struct wb_warc_reader *r, struct wb_warc_extent *extent);

/* Skips line ends inside the newest unit. */
int wb_warc_reader_skip_line_ends(struct wb_source *s);

/*
 * Opens a reader over an open input, of which it takes ownership even if it fails. Its name
 * appears in messages, and tells what kind of archive this is if the content does not.
 */
int wb_warc_open_input(struct wb_warcinput *input, size_t block_max, struct wb_warc_reader **reader_out);

/* A test seam: the same for an open file. */
int wb_warc_open_file(struct wb_file *file, size_t block_max, struct wb_warc_reader **reader_out);

/* Looks a WARC header field up by name (in any case) and trims its value; false if the record does not have it. */
bool wb_warc_header(const struct wb_warc_record *record, const char *name, struct wb_slice *value_out);

#endif
