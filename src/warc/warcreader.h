/* warcreader.h - private to warc: the reader's state, and a reader over a file that is open already. */
#ifndef WB_WARC_WARCREADER_H
#define WB_WARC_WARCREADER_H

#include "warc/source.h"
#include "warc/warc.h"

/* Why a record whose header can be read is not whole. */
enum wb_broken { WB_BROKEN_NOT, WB_BROKEN_FILE_ENDS, WB_BROKEN_NEXT_STARTS, WB_BROKEN_WRONG_END };
const char *wb_broken_words(enum wb_broken broken);

struct wb_warc_reader {
    struct wb_source source;
    size_t block_max;
    size_t taken;            /* bytes of the record delivered last */
    uint64_t offset;         /* of the record being read */
    uint64_t error_offset;
    uint64_t unit_offset;    /* of the unit that the last record started in... */
    uint64_t unit_records;   /* ...and how many started in it so far */
    enum wb_broken broken;   /* what is wrong with the record being read */
    bool arc;                /* it is an ARC file */
    bool recognised;         /* something that starts like a record was seen */
    bool lost;               /* the next record has to be looked for */
    int final;               /* an error after which there is nothing more */
};

/* What an ARC header looks like is too vague to be looked for in a WARC file. */
static inline bool wb_reader_may_be_arc(const struct wb_warc_reader *r)
{
    return r->arc || !r->recognised;
}

/* Whether the newest unit is one that may hold further records. */
static inline bool wb_reader_holds_several(const struct wb_warc_reader *r)
{
    return r->source.kind == WB_SOURCE_PLAIN || r->unit_records > 0 || r->source.unit_offset == 0;
}

/* Where a record lies in memory, counted from its first byte. */
struct wb_extent {
    size_t head;         /* bytes of the header */
    uint64_t length;     /* of the block... */
    size_t keep;         /* ...and how much of it is in memory behind the header */
    size_t taken;        /* all bytes in memory up to where the next record may start */
    uint64_t dropped;    /* bytes of the block that were passed over */
    bool sure;           /* nothing speaks against the block being whole */
    const char *problem; /* what is wrong with it, in words; or "" */
};

/*
 * After WB_E_CORRUPT: finds out how much of the record can be kept. 0 with the extent
 * changed to that; WB_E_CORRUPT with the message as it was where nothing can be.
 */
int wb_salvage_block(struct wb_warc_reader *r, struct wb_extent *extent);

/* Passes over line ends, within the newest unit. */
int wb_reader_skip_line_ends(struct wb_source *s);

/* Takes the file, also when it fails; its path is what messages name and what tells the kind where content does not. */
int wb_warc_open_file(struct wb_file *file, size_t block_max, struct wb_warc_reader **reader_out);

#endif
