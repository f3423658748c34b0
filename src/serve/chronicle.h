/*
 * chronicle.h - private to serve: what a repository did, kept on disk: an hour by seconds, a week by minutes, five
 * years by hours.
 *
 *   DIR/control/chronicle    head | 3,600 seconds | 10,080 minutes | 43,848 hours        a file of fixed size, with
 * holes
 *
 * A record covers one second, minute or hour: how much of it was watched, and its numbers. Of something that is counted
 * (pages, requests) a record has the increase, and of something that is measured (bytes stored, URLs in queues) the
 * mean. So a minute is made from its seconds and an hour from its minutes, and what nobody watched is a gap, not zero.
 *
 * One process writes: it holds the lock of the file. Others read the same file meanwhile. Where the file cannot be
 * written, a copy in memory takes its place. docs/formats/chronicle.md has the bytes.
 */
#ifndef WB_SERVE_CHRONICLE_H
#define WB_SERVE_CHRONICLE_H

#include "base/slice.h"

#define WB_CHRONICLE_FILE "control/chronicle"

enum {
    WB_CHRONICLE_HEAD_BYTES = 4096,
    WB_CHRONICLE_NUMBERS = 32, /* room for numbers in a record; those without a use are unknown */
    WB_CHRONICLE_RECORD_BYTES = 16 + 8 * WB_CHRONICLE_NUMBERS,
};

enum wb_chronicle_level { WB_CHRONICLE_SECONDS, WB_CHRONICLE_MINUTES, WB_CHRONICLE_HOURS, WB_CHRONICLE_LEVELS };

/* How long a record of a level is, in seconds, and how many there are. */
int64_t wb_chronicle_period(enum wb_chronicle_level level);
int64_t wb_chronicle_slots(enum wb_chronicle_level level);

struct wb_chronicle_record {
    int64_t start_s;                      /* since 1970; a multiple of the period */
    uint64_t watched_ms;                  /* how much of the period was watched; never 0 */
    double numbers[WB_CHRONICLE_NUMBERS]; /* NaN: unknown */
};

/* Which numbers are counted: bit i is number i. The others are measured. */
typedef uint32_t wb_chronicle_counted;
_Static_assert(WB_CHRONICLE_NUMBERS <= 32, "a bit for each number");

/* Adds a later record to an earlier one. */
void wb_chronicle_merge(struct wb_chronicle_record *sum, const struct wb_chronicle_record *next,
                        wb_chronicle_counted counted);

/* ---- one record as bytes ----------------------------------------------------------------------------------------- */

/* Test seams. */
void wb_chronicle_encode(const struct wb_chronicle_record *record, uint8_t bytes_out[WB_CHRONICLE_RECORD_BYTES]);

/* A test seam. What is at a place: a record, nothing yet (only zeros), or damage. */
enum wb_chronicle_found { WB_CHRONICLE_RECORD, WB_CHRONICLE_NOTHING, WB_CHRONICLE_DAMAGED };
enum wb_chronicle_found wb_chronicle_decode(enum wb_chronicle_level level, int64_t slot,
                                            const uint8_t bytes[WB_CHRONICLE_RECORD_BYTES],
                                            struct wb_chronicle_record *record_out);

/* ---- the file ---------------------------------------------------------------------------------------------------- */

struct wb_chronicle;

/*
 * Opens the chronicle of a repository, as its writer if nobody else is. Fails only if there is no memory; whatever is
 * wrong with the file or the disk, there is a chronicle in memory.
 */
int wb_chronicle_open(const char *dir, wb_chronicle_counted counted, struct wb_chronicle **chronicle_out);
void wb_chronicle_close(struct wb_chronicle *chronicle); /* NULL is allowed */

/* Where the records come from. */
enum wb_chronicle_role {
    WB_CHRONICLE_UNDECIDED,
    WB_CHRONICLE_WRITER, /* this process writes the file */
    WB_CHRONICLE_READER, /* another one does */
    WB_CHRONICLE_MEMORY, /* nobody does: the file cannot be written, and is lost with this process */
};
enum wb_chronicle_role wb_chronicle_role(struct wb_chronicle *chronicle);

/*
 * Adds a second, and completes the minute and the hour before it if they have ended. It does nothing for a reader, but
 * looks from time to time whether the writer has gone, and then takes its place. An error is one of the disk: the
 * second is lost, and the next one is tried again.
 */
int wb_chronicle_add(struct wb_chronicle *chronicle, const struct wb_chronicle_record *second);

/*
 * Calls each() for all records that begin within [from_s, to_s), in the order of time: of this level as far as there
 * are any, and of the finer ones after them, so that the end is never missing. Damaged records are left out, and so is
 * what lies ahead: a clock was wrong then. If each() returns anything but 0, the walk ends and returns that.
 */
typedef int (*wb_chronicle_each)(void *context, const struct wb_chronicle_record *record);
int wb_chronicle_read(struct wb_chronicle *chronicle, enum wb_chronicle_level level, int64_t from_s, int64_t to_s,
                      wb_chronicle_each each, void *context);

/* Checks the file of a repository, if there is one. found is called for each problem. */
int wb_chronicle_verify(const char *dir,
                        void (*found)(void *context, bool problem, const char *file, uint64_t offset,
                                      const char *message),
                        void *context);

#endif
