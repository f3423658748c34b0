/*
 * edit.h - the part of webdb's door that is the edit log, which is also the crawl's journal: what a crawler
 * process learns it appends here, before it matters. Merging the logs gives the
 * next web database; replaying the records of one site restores its frontier.
 *
 *   journal/00000007.wbe    one file a writing process, append-only, rolled over by size
 *   record:  length, checksum, kind, site, time, place of the site's previous record, payload
 *
 * The records of a site form a chain backwards (`prev`), over several files; who
 * knows the place of the last one (the dispenser does) can read a site's history
 * without reading anybody else's. docs/formats/journal.md has the bytes.
 */
#ifndef WB_WEBDB_EDIT_H
#define WB_WEBDB_EDIT_H

#include "base/buf.h"
#include "url/url.h"

#define WB_EDIT_MD5_BYTES 16

/* Where a record lies. log 0: nowhere. */
struct wb_edit_place {
    uint32_t log;
    uint64_t offset;
};

#define WB_EDIT_NOWHERE ((struct wb_edit_place){0, 0})

enum wb_edit_kind {
    WB_EDIT_VISIT = 1, /* a visit to the site begins; its seeds follow */
    WB_EDIT_SEEDS,     /* URLs to start from */
    WB_EDIT_RULES,     /* robots.txt was asked for: what came */
    WB_EDIT_REQUEST,   /* a request is about to be sent: the courtesy clock */
    WB_EDIT_PAGE,      /* the outcome of a request for a page, with the links it holds */
    WB_EDIT_HINTS,     /* URLs that a sitemap or feed told of */
    WB_EDIT_WAIT,      /* the site is left alone until a moment */
    WB_EDIT_FINISH,    /* the visit is over */
    WB_EDIT_PUSH,      /* somebody announced a URL: text; count is of enum wb_push */
    WB_EDIT_EXPUNGE,   /* a URL was removed: text; count is of enum wb_expunge */
    WB_EDIT_ASK,       /* URLs that were handed out because their lifetime ends: links */
    WB_EDIT_BATCH,     /* several records, packed: readers give them one by one, and never this one */
};

enum wb_edit_outcome {
    WB_OUTCOME_STORED = 1,
    WB_OUTCOME_UNCHANGED,
    WB_OUTCOME_REDIRECT,
    WB_OUTCOME_DUPLICATE, /* stored, and has the bytes of another page */
    WB_OUTCOME_GONE,
    WB_OUTCOME_TRUNCATED, /* stored as far as it was read */
    WB_OUTCOME_ERROR,
    WB_OUTCOME_LATER,     /* 429, 503: to be asked again */
    WB_OUTCOME_ROBOTS,    /* not asked for: robots.txt forbids it */
};

enum wb_push {
    WB_PUSH_CHANGED = 1, /* new or changed */
    WB_PUSH_GONE,
};

enum wb_expunge {
    WB_EXPUNGE_EXPIRED = 1, /* it may come back when a link leads there */
    WB_EXPUNGE_BARRED,      /* taken down: not to be fetched again */
    WB_EXPUNGE_ALLOWED,     /* what was barred may be fetched again */
};

enum wb_edit_link_flags {
    WB_EDIT_LINK_FOLLOW = 1 << 0,   /* of a kind that crawlers follow */
    WB_EDIT_LINK_NOFOLLOW = 1 << 1, /* the page asks not to */
};

/* Beside the tags of page: a sitemap that a sitemap index names. */
#define WB_EDIT_TAG_SITEMAP 14

struct wb_edit_link {
    struct wb_slice url;    /* absolute, without its fragment */
    struct wb_slice anchor;
    uint8_t tag;            /* enum wb_link_tag of page */
    uint8_t flags;          /* enum wb_edit_link_flags */
    int64_t modified_ms;    /* told by a sitemap or feed; 0: not */
};

struct wb_edit_page {
    struct wb_slice url;      /* as fetched */
    uint8_t outcome;          /* enum wb_edit_outcome */
    uint16_t status;          /* 0: none came */
    uint16_t depth;
    uint8_t hops;             /* redirects on the way here */
    bool has_content;         /* md5, simhash and title_hash are of the page's body */
    uint32_t lifetime;        /* days */
    uint32_t took_ms;
    uint64_t bytes;           /* of the body */
    uint8_t md5[WB_EDIT_MD5_BYTES];
    uint64_t simhash, title_hash;
    struct wb_slice type;     /* media type */
    struct wb_slice reason;   /* of an error: its kind, "timeout" */
    struct wb_slice etag, modified; /* validators as received */
    struct wb_slice location; /* of a redirect, resolved */
    const struct wb_edit_link *links; /* when writing; NULL after reading, see wb_edit_links */
    size_t link_count;
};

struct wb_edit_rules {
    uint16_t status;          /* of the last answer; 0: none came */
    struct wb_slice reason;   /* where there are no rules because of an error: its kind */
    struct wb_slice text;     /* robots.txt, cut at the reader's limit */
    int64_t expires_ms;
};

/* One record, read or to be written. Which of the parts counts goes by kind. */
struct wb_edit {
    enum wb_edit_kind kind;
    uint64_t site;              /* hash of the site's name: wb_edit_site() */
    int64_t time_ms;
    struct wb_edit_place prev;  /* the site's record before this one */
    struct wb_edit_page page;   /* PAGE */
    struct wb_edit_rules rules; /* RULES */
    struct wb_slice text;       /* VISIT: name of the site; REQUEST: address; WAIT: reason; FINISH: why; HINTS: URL of the sitemap; PUSH, EXPUNGE: URL */
    int64_t until_ms;           /* WAIT */
    uint32_t count;             /* VISIT: its number; WAIT: which attempt; SEEDS: their depth; PUSH, EXPUNGE: which */
    const struct wb_edit_link *links; /* SEEDS, HINTS, ASK: when writing */
    size_t link_count;
    struct wb_slice packed_links; /* after reading: of PAGE, SEEDS, HINTS and ASK */
    size_t links_left_out;        /* after reading: links too long or too many for a record (32 MiB of them) */
};

uint64_t wb_edit_site(struct wb_slice name);

/* Walks the links of a record that was read; *at starts as 0. 1 with a link, 0 at the end, WB_E_CORRUPT. mem holds its URL until the next call. */
int wb_edit_links_next(const struct wb_edit *edit, size_t *at, struct wb_buf *mem, struct wb_edit_link *link_out);

/* ---- writing ------------------------------------------------------------------------------ */

struct wb_edit_log;

/*
 * A new log in dir/journal, with the next free number, locked for as long as it is
 * open. roll_bytes: past this a new file is begun at the next flush (0: 64 MiB).
 */
int wb_edit_log_create(const char *dir, uint64_t roll_bytes, struct wb_edit_log **log_out);

/* Adds a record to the buffer; its place is final. Past a MiB the buffer is flushed first, by itself. */
int wb_edit_log_append(struct wb_edit_log *log, const struct wb_edit *edit, struct wb_edit_place *place_out);

/* Hands the buffer to the kernel: from here on the records survive kill -9. Cheap where there is nothing. */
int wb_edit_log_flush(struct wb_edit_log *log);

/* Makes them survive power loss. */
int wb_edit_log_sync(struct wb_edit_log *log);

/*
 * True once after a new file was begun. Whoever keeps places of last records must make them durable
 * before the next time: only the two newest files of a dead process are looked through.
 */
bool wb_edit_log_rolled(struct wb_edit_log *log);

/* Flushes, syncs and marks its files as ended cleanly: nothing needs to be looked through again. Nothing can be appended afterwards. */
int wb_edit_log_finish(struct wb_edit_log *log);

/* Closes; what was not flushed is lost, as in a crash. */
void wb_edit_log_close(struct wb_edit_log *log);

/*
 * Records that belong to no chain, many at once, as one: an eighth of the bytes. For whoever needs none of them alone. Zero it
 * before its first use.
 */
struct wb_edit_batch {
    struct wb_buf records, packed;
    uint32_t count;
};

#define WB_EDIT_BATCH_BYTES (4u << 20) /* of records; beyond this a batch is to be packed */

int wb_edit_batch_add(struct wb_edit_batch *batch, const struct wb_edit *edit);

/* Packs what was added into a record that is to be appended; it borrows from the batch until the next call. Where nothing was added its kind is 0. */
int wb_edit_batch_pack(struct wb_edit_batch *batch, struct wb_edit *edit_out);
void wb_edit_batch_release(struct wb_edit_batch *batch);

/* ---- reading ------------------------------------------------------------------------------- */

struct wb_edit_reader;

/* Reads logs of dir/journal; several may be open in it. Logs that others write to meanwhile are read as far as they are. */
int wb_edit_reader_open(const char *dir, struct wb_edit_reader **reader_out);
void wb_edit_reader_close(struct wb_edit_reader *reader);

/* The record at a place; it borrows from the reader until the next call. WB_E_NOTFOUND: no such log; WB_E_CORRUPT. */
int wb_edit_reader_get(struct wb_edit_reader *reader, struct wb_edit_place place, struct wb_edit *edit_out);

/*
 * All records of all logs in order of number and place (those of a batch share one): the one after *at_inout (NOWHERE: the first), whose place
 * is put there; 1, 0 at the end, or an error. At the end *at_inout stays, so that a later call goes on
 * from there. A torn tail ends its log quietly; damage in the middle gives WB_E_CORRUPT once, and the next call
 * goes on behind the damaged record, or with the next log where that cannot be found.
 */
int wb_edit_reader_next(struct wb_edit_reader *reader, struct wb_edit_place *at_inout, struct wb_edit *edit_out);

/*
 * The records of one chain, oldest first, from the record `last` back to the begin of its visit (or, with whole,
 * back to the very first record that is still there): places_out is filled with an array of them, from the heap
 * (wb_free). A chain that leads forward or in a circle is WB_E_CORRUPT, one whose visit begins in a log that
 * is gone WB_E_NOTFOUND.
 */
int wb_edit_reader_chain(struct wb_edit_reader *reader, struct wb_edit_place last, bool whole, struct wb_edit_place **places_out,
                         size_t *count_out);

/*
 * Logs whose process died: not ended cleanly and not locked. Calls back for the last record of each site in each
 * process's files, in the order in which they lie there, then marks them as ended; where orphan fails, or the
 * caller dies, the same is told again by the next one. Safe to be run by several processes at once. The
 * dispenser may know of a newer record of a site (in another process's log): the times of the records tell, not the places.
 */
typedef int (*wb_edit_orphan)(void *context, const struct wb_edit *last, struct wb_edit_place place);
int wb_edit_log_recover(const char *dir, wb_edit_orphan orphan, void *context);

/* Reads and checks everything; calls back with file, offset and words for damage (problem) and torn tails (not). */
typedef void (*wb_edit_found)(void *context, bool problem, const char *file, uint64_t offset, const char *message);
int wb_edit_log_verify(const char *dir, wb_edit_found found, void *context, uint64_t *records_out);

#endif
