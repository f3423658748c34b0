/*
 * source.h - private to warc: the bytes of an archive file, decompressed unit by unit.
 *
 * A unit is a piece at which decoding can start: a gzip member, a zstd frame, or the whole
 * of a plain file. Decompressed bytes are appended to `out`. The record reader
 * (warcreader.c) looks at the bytes from `mark` on and calls wb_source_take() when it is
 * finished with some of them.
 *
 *   file ---> [in window] ---> decode ---> out: |taken|mark ... unit_at ... out_len|free|
 *                                                     |<-- what the reader sees ->|
 *
 * `out` can hold several units at once, because a record may continue in the next unit;
 * unit_at is where the newest one begins. The newest unit goes through these states:
 *
 *   unit_open           more bytes of it may follow
 *   !unit_open          it ended, and its checksum was right
 *   damaged             it cannot be decoded any further, or no unit starts where one should
 *   damaged + cut_off   the reason is that the file ends before the unit does
 *
 * source.c owns the windows and the states; gunzip.c and unzstd.c are the two decoders.
 */
#ifndef WB_WARC_SOURCE_H
#define WB_WARC_SOURCE_H

#include "base/buf.h"
#include "base/check.h"
#include "warc/warcinput.h"

enum wb_source_kind { WB_SOURCE_PLAIN, WB_SOURCE_GZIP, WB_SOURCE_ZSTD };

struct wb_gunzip;
struct wb_unzstd;

struct wb_source {
    struct wb_warcinput *input;
    uint64_t size;
    enum wb_source_kind kind;
    bool by_content;       /* the kind was recognised from the first bytes, not from the name */

    char *in;              /* a window of compressed bytes; in[0] is at in_offset of the file */
    size_t in_pos, in_len, in_cap;
    uint64_t in_offset;    /* in a plain file, which has no window: where the next read starts */

    char *out;
    size_t out_len, out_cap, out_max;
    size_t mark;
    size_t unit_at;
    uint64_t unit_offset;  /* file offset of the newest unit */
    bool unit_open, damaged, cut_off;
    bool judged, suspect;  /* see wb_source_judge() */

    uint64_t work;         /* bytes that were decoded without any use, see wb_source_search() */
    struct wb_gunzip *gunzip;
    struct wb_unzstd *unzstd;
};

/* Takes ownership of the input even if it fails. keep_max: the most bytes the reader will ask to have at once. */
int wb_source_init(struct wb_source *s, struct wb_warcinput *input, size_t keep_max);
void wb_source_release(struct wb_source *s);

/* What the reader sees; valid until the next call that reads. */
static inline struct wb_slice wb_source_bytes(const struct wb_source *s)
{
    return wb_slice(s->out ? s->out + s->mark : "", s->out_len - s->mark);
}

/* The same, starting at byte `at`. */
static inline struct wb_slice wb_source_after(const struct wb_source *s, size_t at)
{
    struct wb_slice all = wb_source_bytes(s);

    WB_CHECK(at <= all.len);
    return wb_slice(all.ptr + at, all.len - at);
}

/*
 * Decodes until the reader sees at least `want` bytes or the newest unit has ended (then it
 * is no longer open). WB_E_CORRUPT: the unit is damaged.
 */
int wb_source_fill(struct wb_source *s, size_t want);

/* The reader is finished with the next n bytes. */
void wb_source_take(struct wb_source *s, size_t n);

/*
 * Removes n bytes that follow the first `at` bytes the reader sees, decoding as it goes, but
 * stops at the end of the newest unit; *cut_out is how many were removed.
 */
int wb_source_cut(struct wb_source *s, size_t at, uint64_t n, uint64_t *cut_out);

/* Opens the next unit; the one before must have ended. 1, 0 at the end of the file, WB_E_CORRUPT if no unit starts. */
int wb_source_next(struct wb_source *s);

/*
 * Finds out whether the newest unit is intact, by decoding it to its end a second time,
 * beside the ordinary reading; does so once per unit. Sets `suspect` if its bytes or its
 * checksum are wrong. A unit that the end of the file cuts off is not suspect.
 */
int wb_source_judge(struct wb_source *s);

/* The file offset of the next byte: exact in a plain file, otherwise the start of its unit. */
uint64_t wb_source_offset(const struct wb_source *s);

/*
 * Searches the file behind the start of the newest unit for a unit whose first bytes
 * starts(bytes, arc) accepts. Returns 1 with the file positioned before that unit, or 0 if
 * there is none. This takes time linear in the size of the file: each attempt is bounded,
 * and when the bytes decoded in vain exceed a multiple of the file's size, the search ends.
 */
int wb_source_search(struct wb_source *s, bool (*starts)(struct wb_slice bytes, bool arc), bool arc);

/* ---- for the decoders ---------------------------------------------------------- */

/* Reads until the window has at least `want` compressed bytes from in_pos on, or the file ends. */
int wb_source_input(struct wb_source *s, size_t want);

/* True if the window reaches the end of the file. */
bool wb_source_input_ends(const struct wb_source *s);

/* Makes room for `more` bytes behind out_len. */
int wb_source_room(struct wb_source *s, size_t more);

/* Marks the newest unit as damaged and returns WB_E_CORRUPT with a message about it. */
int wb_source_damage(struct wb_source *s, const char *what);
int wb_source_cut_off(struct wb_source *s);

#define WB_SOURCE_STEP ((size_t)128 << 10)   /* how many bytes a decoder produces per call */
#define WB_SOURCE_TRIAL 512                  /* how many bytes are decoded to see what a unit starts with */

/*
 * Each decoder has three entries. start: begins the unit at in_pos. more: appends its next
 * bytes to `out`. trial: decodes only its first bytes, to see what they are.
 * wb_gunzip_start() decodes a unit of ordinary size at once; wb_gunzip_stream() starts it
 * so that its bytes always arrive step by step.
 */
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

/* Skips skippable frames, and loads the dictionary if the first frame of the file holds one. WB_E_CORRUPT. */
int wb_unzstd_skip(struct wb_source *s);

#endif
