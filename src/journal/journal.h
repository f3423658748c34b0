/*
 * journal.h - the door of journal: what crawlers and imports learn, appended before anything depends on it.
 * One log, two readers: merging the logs gives the next edition of the web database, and replaying the
 * records of one site restores a killed crawler's frontier.
 *
 *   journal/00000007.wbe    one file a writing process, append-only, rolled over by size
 *   record:  length, checksum, kind, site, time, place of the site's previous record, payload
 *
 * The records of a site form a chain backwards (`prev`), over several files; who
 * knows the place of the last one (the dispenser does) can read a site's history
 * without reading anybody else's. docs/formats/journal.md has the bytes.
 */
#ifndef WB_JOURNAL_JOURNAL_H
#define WB_JOURNAL_JOURNAL_H

#include "base/buf.h"
#include "extract/extract.h"

#define WB_EDIT_MD5_BYTES WB_MD5_BYTES

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
    uint8_t tag;            /* enum wb_extract_tag of page */
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

struct wb_journal_writer;

/*
 * A new log in dir/journal, with the next free number, locked for as long as it is
 * open. roll_bytes: past this a new file is begun at the next flush (0: 64 MiB).
 */
int wb_journal_writer_open(const char *dir, uint64_t roll_bytes, struct wb_journal_writer **log_out);

/* Adds a record to the buffer; its place is final. Past a MiB the buffer is flushed first, by itself. */
int wb_journal_writer_append(struct wb_journal_writer *log, const struct wb_edit *edit, struct wb_edit_place *place_out);

/* Hands the buffer to the kernel: from here on the records survive kill -9. Cheap where there is nothing. */
int wb_journal_writer_flush(struct wb_journal_writer *log);

/* Makes them survive power loss. */
int wb_journal_writer_sync(struct wb_journal_writer *log);

/*
 * True once after a new file was begun. Whoever keeps places of last records must make them durable
 * before the next time: only the two newest files of a dead process are looked through.
 */
bool wb_journal_writer_rolled(struct wb_journal_writer *log);

/* Flushes, syncs and marks its files as ended cleanly: nothing needs to be looked through again. Nothing can be appended afterwards. */
int wb_journal_writer_finish(struct wb_journal_writer *log);

/* Closes; what was not flushed is lost, as in a crash. */
void wb_journal_writer_close(struct wb_journal_writer *log);

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

struct wb_journal_reader;

/* Reads logs of dir/journal; several may be open in it. Logs that others write to meanwhile are read as far as they are. */
int wb_journal_reader_open(const char *dir, struct wb_journal_reader **reader_out);
void wb_journal_reader_close(struct wb_journal_reader *reader);

/* The record at a place; it borrows from the reader until the next call. WB_E_NOTFOUND: no such log; WB_E_CORRUPT. */
int wb_journal_reader_get(struct wb_journal_reader *reader, struct wb_edit_place place, struct wb_edit *edit_out);

/*
 * All records of all logs in order of number and place (those of a batch share one): the one after *at_inout (NOWHERE: the first), whose place
 * is put there; 1, 0 at the end, or an error. At the end *at_inout stays, so that a later call goes on
 * from there. A torn tail ends its log quietly; damage in the middle gives WB_E_CORRUPT once, and the next call
 * goes on behind the damaged record, or with the next log where that cannot be found.
 */
int wb_journal_reader_next(struct wb_journal_reader *reader, struct wb_edit_place *at_inout, struct wb_edit *edit_out);

/*
 * The records of one chain, oldest first, from the record `last` back to the begin of its visit (or, with whole,
 * back to the very first record that is still there): places_out is filled with an array of them, from the heap
 * (wb_free). A chain that leads forward or in a circle is WB_E_CORRUPT, one whose visit begins in a log that
 * is gone WB_E_NOTFOUND.
 */
int wb_journal_reader_chain(struct wb_journal_reader *reader, struct wb_edit_place last, bool whole, struct wb_edit_place **places_out,
                         size_t *count_out);

/* What there is at an offset of a log. */
enum wb_journal_sight {
    WB_JOURNAL_END,     /* nothing: the records end here */
    WB_JOURNAL_RECORD,
    WB_JOURNAL_TORN,    /* the begin of a record that was never finished; nothing whole is behind it */
    WB_JOURNAL_DAMAGED, /* a record that does not match its checksum, or none where one should be */
};

struct wb_journal_step {
    enum wb_journal_sight sight;
    struct wb_edit_place place;
    uint64_t next;    /* offset to go on from; 0: the log cannot be read further */
    const char *file; /* path of the log, until it is closed */
};

/*
 * The record after *at in the same log (offset 0: the first). 1 with the record and its place in *at, 0 where the log ends,
 * well or torn; WB_E_CORRUPT with *at at the damage, from where the next call goes on. step_out says more.
 */
int wb_journal_reader_step(struct wb_journal_reader *reader, struct wb_edit_place *at, struct wb_edit *edit_out, struct wb_journal_step *step_out);

/*
 * Logs whose process died: not ended cleanly and not locked. Calls back for the last record of each site in each
 * process's files, in the order in which they lie there, then marks them as ended; where orphan fails, or the
 * caller dies, the same is told again by the next one. Safe to be run by several processes at once. The
 * dispenser may know of a newer record of a site (in another process's log): the times of the records tell, not the places.
 */
typedef int (*wb_journal_orphan)(void *context, const struct wb_edit *last, struct wb_edit_place place);
int wb_journal_recover(const char *dir, wb_journal_orphan orphan, void *context);

/* Reads and checks everything; calls back with file, offset and words for damage (problem) and torn tails (not). */
typedef void (*wb_journal_found)(void *context, bool problem, const char *file, uint64_t offset, const char *message);
int wb_journal_verify(const char *dir, wb_journal_found found, void *context, uint64_t *records_out);

/* ---- the files ------------------------------------------------------------------------------- */

#define WB_JOURNAL_RECORDS_AT 64 /* offset of the first record in a log */

/* One log as it is now. */
struct wb_journal_log {
    uint32_t number;
    bool ended;      /* closed cleanly, or recovered after its process died: nothing is appended any more */
    uint64_t end;    /* where its records end; of a log that is being written, its size now; 0: its head cannot be read */
    uint64_t bytes;  /* size of the file */
};

/* All logs of dir/journal by ascending number, in an array from the heap (wb_free). There are none if there is no journal. */
int wb_journal_list_logs(const char *dir, struct wb_journal_log **logs_out, size_t *count_out);

/* True if a process is writing to the log: then an unfinished record at its end is not a problem. */
bool wb_journal_log_is_written(const char *dir, uint32_t log);

/*
 * True if a crawler wrote the log. Each log has one writer, and imports, announcements and removals begin theirs
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
 * Removes these logs, each of which must have ended. The newest log of the journal is special, because its number must
 * never be used again: if it is large, an empty log takes its place; if it is small, it stays. *bytes_out: bytes removed.
 */
int wb_journal_remove_logs(const char *dir, const uint32_t *logs, size_t count, uint64_t *bytes_out);

/* ---- what the journal records about a page that has content (pagefacts.c) ------------------------ */

struct wb_link_slot;

/* Reused from page to page, for one thread. */
struct wb_pagefacts {
    struct wb_extractor *extractor;
    struct wb_edit_link *links;  /* of the page at hand, each target once */
    size_t link_cap;
    struct wb_link_slot *slots;  /* finds a link by its target */
    uint32_t stamp;              /* of the page at hand: slots of earlier ones have another */
};

#define WB_PAGEFACTS_INIT ((struct wb_pagefacts){.extractor = NULL})

/* Release it even where this failed. */
int wb_pagefacts_init(struct wb_pagefacts *facts);
void wb_pagefacts_release(struct wb_pagefacts *facts);

/*
 * Fills in what edit has of a page's content, which must be digested: everything but url, outcome and how it was fetched. agent: the robots token, by which
 * X-Robots-Tag headers are read. wants: WB_EXTRACT_LINKS or 0: without links. What edit and extract_out borrow is valid as long as page is,
 * and until the next call. Only WB_E_NOMEM is an error.
 */
int wb_pagefacts_read(struct wb_pagefacts *facts, const struct wb_page *page, struct wb_slice agent, unsigned wants, struct wb_edit_page *edit,
                      struct wb_extract *extract_out);

/* The links of an extract as the journal has them, in facts->links; nofollow: of the whole page. */
int wb_pagefacts_links(struct wb_pagefacts *facts, const struct wb_extract *extract, bool nofollow, size_t *count_out);

/* Where a redirect leads, without its fragment, in url_out: WB_E_PROTO where the head names no URL of http or https. base is work space. */
int wb_pagefacts_location(struct wb_slice head, struct wb_slice url, struct wb_url *base, struct wb_url *url_out,
                          struct wb_slice *location_out);

#endif
