/*
 * source.h - private to warc: the bytes of an archive file, decompressed, unit by unit.
 *
 * A unit is what the file can be entered at: a gzip member, a zstd frame, or the
 * whole of a plain file. The decompressed bytes lie one after another in `out`;
 * the reader looks at those from `mark` on and says how many it has done with.
 *
 *   file ---> [in window] ---> decode ---> out: |done|mark ... unit_at ... len|free|
 *                                                      what the reader sees
 *
 * Several units can be in `out` at once, for a record may go on in the next one;
 * unit_at is where the newest begins.
 */
#ifndef WB_WARC_SOURCE_H
#define WB_WARC_SOURCE_H

#include "base/buf.h"
#include "base/check.h"
#include "os/file.h"

enum wb_source_kind { WB_SOURCE_PLAIN, WB_SOURCE_GZIP, WB_SOURCE_ZSTD };

struct wb_gunzip;
struct wb_unzstd;

struct wb_source {
    struct wb_file file;
    uint64_t size;
    enum wb_source_kind kind;
    bool by_content;       /* the kind was told from the first bytes, not from the name */

    char *in;              /* compressed bytes; in[0] lies at in_offset of the file */
    size_t in_pos, in_len, in_cap;
    uint64_t in_offset;    /* of a plain file: where the next read goes on */

    char *out;
    size_t out_len, out_cap, out_max;
    size_t mark;
    size_t unit_at;
    uint64_t unit_offset;  /* of the newest unit in the file */
    bool unit_open;        /* more bytes of it may come; false: it ended and its checksum was right */
    bool judged, suspect;  /* see wb_source_judge() */
    bool damaged;          /* the newest unit is damaged, or there is none where one should be */
    bool cut_off;          /* damaged in that the file ends before it does */

    uint64_t work;         /* bytes decoded in vain, see wb_source_search() */
    struct wb_gunzip *gunzip;
    struct wb_unzstd *unzstd;
};

/* Takes the file, also when it fails. keep_max: the most bytes that the reader will ask to have at once. */
int wb_source_init(struct wb_source *s, struct wb_file *file, size_t keep_max);
void wb_source_release(struct wb_source *s);

/* What the reader sees; valid until the next call that reads. */
static inline struct wb_slice wb_source_bytes(const struct wb_source *s)
{
    return wb_slice(s->out ? s->out + s->mark : "", s->out_len - s->mark);
}

/* The same from the byte `at` on. */
static inline struct wb_slice wb_source_after(const struct wb_source *s, size_t at)
{
    struct wb_slice all = wb_source_bytes(s);

    WB_CHECK(at <= all.len);
    return wb_slice(all.ptr + at, all.len - at);
}

/* At least want bytes, or all there are of the newest unit, which then is not open any more. WB_E_CORRUPT: it is damaged. */
int wb_source_fill(struct wb_source *s, size_t want);

/* The reader is done with the next n bytes. */
void wb_source_take(struct wb_source *s, size_t n);

/* Drops up to n bytes behind the first `at`, not going beyond the newest unit. */
int wb_source_cut(struct wb_source *s, size_t at, uint64_t n, uint64_t *cut_out);

/* Opens the next unit: 1, 0 at the end of the file, WB_E_CORRUPT where no unit starts. The one before must have ended. */
int wb_source_next(struct wb_source *s);

/*
 * Finds out, once a unit, whether the newest one is sound, by reading it to its end
 * beside the ordinary reading: suspect says that its bytes or its checksum are
 * wrong. That it is cut off by the end of the file does not make it suspect.
 */
int wb_source_judge(struct wb_source *s);

/* Where the next byte lies in the file: of a plain file exactly, otherwise the start of its unit. */
uint64_t wb_source_offset(const struct wb_source *s);

/*
 * Looks for a unit behind the start of the newest one whose first bytes `starts`
 * likes (it is given arc): 1 and the file stands before it, or 0. The time this takes is linear
 * in the size of the file: each trial is bounded, and where the work done in vain
 * exceeds a multiple of the file's size the rest is given up.
 */
int wb_source_search(struct wb_source *s, bool (*starts)(struct wb_slice bytes, bool arc), bool arc);

/* ---- for the decoders ---------------------------------------------------------- */

/* At least want compressed bytes from in_pos on, or all there are. */
int wb_source_input(struct wb_source *s, size_t want);
bool wb_source_input_ends(const struct wb_source *s); /* the window reaches the end of the file */

/* Room for more bytes behind out_len. */
int wb_source_room(struct wb_source *s, size_t more);

/* WB_E_CORRUPT about the newest unit. */
int wb_source_damage(struct wb_source *s, const char *what);
int wb_source_cut_off(struct wb_source *s);

#define WB_SOURCE_STEP ((size_t)128 << 10)   /* bytes that a decoder makes at a time */
#define WB_SOURCE_TRIAL 512                  /* bytes decoded to judge a unit's start */

/* wb_gunzip_start() may have the whole unit at once; wb_gunzip_stream() never does. */
int wb_gunzip_start(struct wb_source *s);
int wb_gunzip_stream(struct wb_source *s);
int wb_gunzip_more(struct wb_source *s);
int wb_gunzip_trial(struct wb_source *s, char *bytes_out, size_t *len_out);
void wb_gunzip_free(struct wb_gunzip *g);

int wb_unzstd_start(struct wb_source *s);
int wb_unzstd_more(struct wb_source *s);
int wb_unzstd_trial(struct wb_source *s, char *bytes_out, size_t *len_out);
void wb_unzstd_free(struct wb_unzstd *z);
bool wb_unzstd_has_dictionary(const struct wb_unzstd *z);

/* Goes over skippable frames, and takes the dictionary where the first one holds it. WB_E_CORRUPT. */
int wb_unzstd_skip(struct wb_source *s);

#endif
