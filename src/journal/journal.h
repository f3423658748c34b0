/*
 * journal.h - the door of journal: an append-only record of everything that happens, written before anything depends
 * on it.
 *
 * Crawls and imports append what they learn: a page was fetched, links were seen, robots.txt was read, a page is gone.
 * Each such fact is one record, an *edit*. Two readers need them:
 *
 *   crawler, import --append--> journal --all records in order--------> webdb, which merges them into its next edition
 *                                  \-----the records of one site------> a restarted crawler, to rebuild its frontier
 *
 * On disk the journal is a set of files, the *logs*. Every writer has logs of its own, so writers never wait for each
 * other; the records of all sites that a writer crawls are interleaved there in the order in which they happened.
 *
 *   DIR/journal/00000007.wbe     one log: a head of 64 bytes, then records
 *   DIR/journal/00000008.wbe     the writer starts a new log when one has grown large
 *
 * A record names the place (log, offset) of the previous record of the same site. So the records of a site form a
 * *chain*, which may lead through many logs. A reader that knows the place of the last record (the seed dispenser
 * stores it) follows the chain backwards and never reads another site's records. docs/formats/journal.md describes
 * every byte.
 *
 * This header in the order in which it is needed: records, writing, reading, recovery and verification, logs as
 * files. Handles belong to one thread; any number of processes may use a journal at once.
 */
#ifndef WB_JOURNAL_JOURNAL_H
#define WB_JOURNAL_JOURNAL_H

#include "base/buf.h"
#include "page/page.h"

/* ---- records -------------------------------------------------------------------------------------------------- */

/* The place of a record: a log by its number, and the offset there. Log 0 means: no record. */
struct wb_edit_place {
    uint32_t log;
    uint64_t offset;
};

#define WB_EDIT_NOWHERE ((struct wb_edit_place){0, 0})

enum wb_edit_kind {
    WB_EDIT_VISIT = 1, /* a visit to the site starts; its seeds follow */
    WB_EDIT_SEEDS,     /* URLs that the visit starts from */
    WB_EDIT_RULES,     /* robots.txt was requested: the result */
    WB_EDIT_REQUEST,   /* a request is about to be sent: a restarted crawler waits the full interval after it */
    WB_EDIT_PAGE,      /* the outcome of a request for a page, with the page's links */
    WB_EDIT_HINTS,     /* URLs that a sitemap or feed listed */
    WB_EDIT_WAIT,      /* the site must not be contacted until a given time */
    WB_EDIT_FINISH,    /* the visit is over */
    WB_EDIT_PUSH,      /* somebody announced that a URL is new, changed or gone */
    WB_EDIT_EXPUNGE,   /* a URL was removed from the repository, or a ban on it was lifted */
    WB_EDIT_ASK,       /* URLs were handed out for fetching because their lifetime ends */
    WB_EDIT_BATCH,     /* several records compressed together; readers return those, never the batch itself */
};

/* What became of a request for a page. */
enum wb_edit_outcome {
    WB_OUTCOME_STORED = 1,
    WB_OUTCOME_UNCHANGED,
    WB_OUTCOME_REDIRECT,
    WB_OUTCOME_DUPLICATE, /* stored, but another page has the same bytes */
    WB_OUTCOME_GONE,
    WB_OUTCOME_TRUNCATED, /* stored as far as it was received */
    WB_OUTCOME_ERROR,
    WB_OUTCOME_LATER,     /* 429 or 503: the crawler will request it again */
    WB_OUTCOME_ROBOTS,    /* not requested, because robots.txt forbids it */
};

/* `count` of a PUSH. */
enum wb_push {
    WB_PUSH_CHANGED = 1, /* new or changed */
    WB_PUSH_GONE,
};

/* `count` of an EXPUNGE. */
enum wb_expunge {
    WB_EXPUNGE_EXPIRED = 1, /* its lifetime ended; it is fetched again if a link leads there */
    WB_EXPUNGE_BARRED,      /* taken down: it must never be fetched again */
    WB_EXPUNGE_ALLOWED,     /* a takedown was revoked: it may be fetched again */
    WB_EXPUNGE_DELETED,     /* removed by hand: it is fetched again if a link leads there, and not found until then */
    WB_EXPUNGE_EVICTED,     /* there was no room for it: nothing is stored of it, but all else that is known stays */
};

/* The payload of a PAGE record. */
struct wb_edit_page {
    struct wb_slice url;      /* as fetched */
    uint8_t outcome;          /* enum wb_edit_outcome */
    uint16_t status;          /* HTTP status; 0: there was no response */
    struct wb_depth depth;
    uint8_t hops;             /* redirects followed on the way to this URL */
    bool has_content;         /* md5, simhash and title_hash describe the body; otherwise they are not recorded */
    uint32_t lifetime;        /* in days */
    uint32_t took_ms;
    uint64_t bytes;           /* length of the body */
    uint8_t md5[WB_MD5_BYTES];
    uint64_t simhash, title_hash;
    struct wb_slice type;     /* media type */
    struct wb_slice reason;   /* for an error: which kind, such as "timeout" */
    struct wb_slice etag, modified; /* validators as received */
    struct wb_slice location; /* for a redirect: its absolute target */
    const struct wb_pagelink *links; /* set by the writer; NULL in a record that was read: use wb_edit_links_next() */
    size_t link_count;
};

/* Fills in what describes the content: all but url, outcome and how it was fetched. The page must be digested. */
void wb_edit_page_describe(struct wb_edit_page *edit, const struct wb_page *page, const struct wb_pagefacts *facts);

/* The payload of a RULES record. */
struct wb_edit_rules {
    uint16_t status;          /* HTTP status of the last response; 0: there was none */
    struct wb_slice reason;   /* if an error left us without rules: which kind */
    struct wb_slice text;     /* robots.txt, cut at the size limit of the parser */
    int64_t expires_ms;
};

/*
 * One record, to be written or just read. Every record has kind, site, time and prev; kind says which other members
 * are used, and what `text`, `count` and `links` mean:
 *
 *   kind      text                 count                 links                until_ms
 *   VISIT     name of the site     number of the visit
 *   SEEDS     (uses `depth`)                             the seeds
 *   REQUEST   address contacted
 *   HINTS     URL of the sitemap                         the URLs it lists
 *   WAIT      reason               number of failures                         end of the wait
 *   FINISH    why the visit ended
 *   PUSH      URL                  enum wb_push
 *   EXPUNGE   URL                  enum wb_expunge
 *   ASK                                                  the URLs
 *   PAGE      uses `page`
 *   RULES     uses `rules`
 */
struct wb_edit {
    enum wb_edit_kind kind;
    uint64_t site;              /* hash of the site's name, from wb_edit_site() */
    int64_t time_ms;
    struct wb_edit_place prev;  /* the site's previous record */
    struct wb_edit_page page;
    struct wb_edit_rules rules;
    struct wb_slice text;
    int64_t until_ms;
    uint32_t count;
    struct wb_depth depth;
    const struct wb_pagelink *links; /* set by the writer; NULL in a record that was read */
    size_t link_count;

    /* Set only in a record that was read: */
    struct wb_slice packed_links; /* what wb_edit_links_next() reads; of PAGE, SEEDS, HINTS and ASK */
    size_t links_left_out;        /* links that were too long for a record, or beyond the 32 MiB it can hold */
};

/* The hash by which records name a site. */
uint64_t wb_edit_site(struct wb_slice name);

/*
 * Reads the links of a record that was read, one per call. *at is 0 before the first call. Returns 1 with a link, 0
 * after the last one, or WB_E_CORRUPT. mem is the caller's buffer; link_out->url borrows from it until the next call.
 */
int wb_edit_links_next(const struct wb_edit *edit, size_t *at, struct wb_buf *mem, struct wb_pagelink *link_out);

/* ---- writing --------------------------------------------------------------------------------------------------- */

struct wb_journal_writer;

/*
 * Creates a log in dir/journal with the next free number. It stays locked until it is closed. The writer starts a new
 * log at the first flush after one has grown to roll_bytes (0: 64 MiB).
 */
int wb_journal_writer_open(const char *dir, uint64_t roll_bytes, struct wb_journal_writer **writer_out);

/* Adds a record to the buffer and returns its final place. A buffer of more than 1 MiB is flushed first. */
int wb_journal_writer_append(struct wb_journal_writer *writer, const struct wb_edit *edit,
                             struct wb_edit_place *place_out);

/*
 * Hands the buffer to the kernel: from now on the records survive kill -9. Costs nothing if the buffer is empty. If
 * it fails (disk full), the records stay in the buffer and a later flush writes them to the same places.
 */
int wb_journal_writer_flush(struct wb_journal_writer *writer);

/* Flushes, and makes all records survive a power failure too. */
int wb_journal_writer_sync(struct wb_journal_writer *writer);

/*
 * Returns true once after the writer has started a new log. Recovery reads only the two newest logs of a dead writer,
 * so a caller that keeps the places of last records elsewhere must make these durable before the writer starts yet
 * another log.
 */
bool wb_journal_writer_rolled(struct wb_journal_writer *writer);

/* Syncs, and marks the logs as ended, so that recovery does not read them. Nothing can be appended afterwards. */
int wb_journal_writer_finish(struct wb_journal_writer *writer);

/*
 * Closes the logs and frees the writer. Without wb_journal_writer_finish() this is like a crash: unflushed records
 * are lost.
 */
void wb_journal_writer_close(struct wb_journal_writer *writer);

/*
 * A batch compresses many records into one, which takes an eighth of the space. Its records belong to no chain and
 * cannot be read one at a time by their place, so it suits imports, not crawls. A batch of zero bytes is empty and
 * ready for use.
 */
struct wb_edit_batch {
    struct wb_buf records, packed;
    uint32_t count;
};

#define WB_EDIT_BATCH_BYTES (4u << 20) /* pack a batch when its records are longer than this */

int wb_edit_batch_add(struct wb_edit_batch *batch, const struct wb_edit *edit);

/*
 * Packs the records added so far into one BATCH record for wb_journal_writer_append(), and empties the batch. The
 * record borrows from the batch until the next call. If nothing was added, its kind is 0.
 */
int wb_edit_batch_pack(struct wb_edit_batch *batch, struct wb_edit *edit_out);
void wb_edit_batch_release(struct wb_edit_batch *batch);

/* ---- reading --------------------------------------------------------------------------------------------------- */

struct wb_journal_reader;

/* Opens the logs of dir/journal for reading. Logs that are being written are read as far as they have been flushed. */
int wb_journal_reader_open(const char *dir, struct wb_journal_reader **reader_out);
void wb_journal_reader_close(struct wb_journal_reader *reader);

/*
 * Reads the record at a place. It borrows from the reader until the next call. WB_E_NOTFOUND if there is no such log,
 * WB_E_CORRUPT if there is no intact record at that offset.
 */
int wb_journal_reader_get(struct wb_journal_reader *reader, struct wb_edit_place place, struct wb_edit *edit_out);

/*
 * Reads the record that follows *at_inout, in order of log number and offset (WB_EDIT_NOWHERE: the first record), and
 * stores its place there. The records of a batch all have the place of the batch. Returns 1 with a record, 0 at the
 * end, or an error.
 *
 * At the end *at_inout does not change, so a later call returns records that were appended meanwhile. An unfinished
 * record at the end of a log ends that log silently. Damage anywhere else gives WB_E_CORRUPT once; the next call
 * continues after the damaged record, or with the next log if nothing after it can be read.
 */
int wb_journal_reader_next(struct wb_journal_reader *reader, struct wb_edit_place *at_inout, struct wb_edit *edit_out);

/*
 * Lists the records of one site, oldest first: from the start of the visit that the record at `last` belongs to, up
 * to `last`. With `whole`, from the oldest record that still exists. *places_out is an array from the heap (wb_free).
 * WB_E_CORRUPT if the chain leads forwards or in a circle. WB_E_NOTFOUND if the start of the visit was in a log that
 * was removed.
 */
int wb_journal_reader_chain(struct wb_journal_reader *reader, struct wb_edit_place last, bool whole,
                            struct wb_edit_place **places_out, size_t *count_out);

/* What wb_journal_reader_step() found at an offset of a log. */
enum wb_journal_sight {
    WB_JOURNAL_END,     /* nothing: the records end here */
    WB_JOURNAL_RECORD,
    WB_JOURNAL_TORN,    /* the start of a record that was never finished; no intact record follows */
    WB_JOURNAL_DAMAGED, /* a record whose checksum is wrong, or bytes that cannot be a record */
};

struct wb_journal_step {
    enum wb_journal_sight sight;
    struct wb_edit_place place;
    uint64_t next;    /* offset of the next record; 0: the rest of the log cannot be read */
    const char *file; /* path of the log; valid as long as the reader keeps the log open */
};

/*
 * Reads the record that follows *at in the same log (offset 0: the first one). Returns 1 with the record and its
 * place in *at; 0 at the end of the log, also if that is an unfinished record; or WB_E_CORRUPT with the place of the
 * damage in *at, from which the next call continues. step_out says what was found.
 */
int wb_journal_reader_step(struct wb_journal_reader *reader, struct wb_edit_place *at, struct wb_edit *edit_out,
                           struct wb_journal_step *step_out);

/* ---- recovery and verification --------------------------------------------------------------------------------- */

/*
 * Finds logs whose writer died: they are not marked as ended, and no process has locked them. Calls orphan for the
 * last record of every site in them, writer by writer, in the order of the records in the logs; then marks the
 * writer's logs as ended. If orphan fails, or the caller dies, the logs stay unmarked and the next recovery reports
 * the same records again. Several processes may run this at once.
 *
 * The record reported for a site is not necessarily its newest: another process may have written a newer one to a log
 * with a lower number. Compare the times of records, not their places.
 */
typedef int (*wb_journal_orphan)(void *context, const struct wb_edit *last, struct wb_edit_place place);
int wb_journal_recover(const char *dir, wb_journal_orphan orphan, void *context);

/*
 * Reads and checks the whole journal. Calls found for each damaged place (problem is true) and for each unfinished
 * record that a crash left at the end of a log (problem is false). Damage is not an error. *records_out counts the
 * intact records.
 */
typedef void (*wb_journal_found)(void *context, bool problem, const char *file, uint64_t offset, const char *message);
int wb_journal_verify(const char *dir, wb_journal_found found, void *context, uint64_t *records_out);

/* ---- logs as files --------------------------------------------------------------------------------------------- */

#define WB_JOURNAL_RECORDS_AT 64 /* offset of the first record in a log */

/* The present state of a log. */
struct wb_journal_log {
    uint32_t number;
    bool ended;      /* finished by its writer, or recovered after the writer died: nothing will be appended */
    uint64_t end;    /* where its records end; for a log that is being written, its size; 0: its head cannot be read */
    uint64_t bytes;  /* size of the file */
};

/*
 * Lists the logs of dir/journal by ascending number, in an array from the heap (wb_free). Without a journal the list
 * is empty.
 */
int wb_journal_list_logs(const char *dir, struct wb_journal_log **logs_out, size_t *count_out);

/* True if a process is writing to the log: then an unfinished record at its end is not a problem. */
bool wb_journal_log_is_written(const char *dir, uint32_t log);

/*
 * True if a crawler wrote the log. Each log has one writer, and imports, announcements and removals start theirs
 * with records that no crawler writes. A log that cannot be read counts as a crawler's.
 */
bool wb_journal_log_is_of_crawl(struct wb_journal_reader *reader, uint32_t log);

/* The crawlers' logs that unfinished visits still need. The crawl fills it in; pruning leaves those logs alone. */
struct wb_journal_needs {
    bool all;        /* every log of a crawler, because nobody knows which visits are unfinished */
    uint32_t *logs;  /* otherwise these, ascending, from the heap */
    size_t count;
};

#define WB_JOURNAL_NEEDS_INIT ((struct wb_journal_needs){false, NULL, 0})
bool wb_journal_needs_log(const struct wb_journal_needs *needs, uint32_t log);
void wb_journal_needs_release(struct wb_journal_needs *needs);

/*
 * Removes these logs, given by ascending number. Each must have ended. The newest log of the journal is special,
 * because its number must never be used again: if it is large, an empty log takes its place; if it is small, it
 * stays. *bytes_out: bytes removed.
 */
int wb_journal_remove_logs(const char *dir, const uint32_t *logs, size_t count, uint64_t *bytes_out);

#endif
