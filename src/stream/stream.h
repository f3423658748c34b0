/*
 * stream.h - the door of stream: whole collections, delivered page by page, each page exactly once.
 *
 *   spec      what is asked for: a state of the repository, a selection, an order, a part of it
 *   stream    delivers the records of a spec, batch by batch, from a directory or from a server
 *   token     the place after a record; a stream resumed with it goes on with the next record
 *   sink      where records go: rendered to a file, a command, or a handler in a shared object
 *
 *                       +-- private scan --+
 *   store --- parcels --+                  +-- batch --- pick --- records --- sink: render, exec, handlers
 *                       +-- carousel ------+                 \--- wire ==== HTTP ==== wire --- records --- sink
 *                        (one scan, many streams)
 *
 * Exactly once. A stream delivers one snapshot: that of the active generation, or a named or numbered one, or one that
 * it seals for itself (--latest). It holds the snapshot while it runs, and WB_STREAM_HOLD_MS after it was last heard
 * from, so that commits, updates, index builds and compaction change nothing for it. A token says which snapshot, which
 * spec and which place; it is refused if the snapshot is gone, if it is of another repository, or if it is damaged.
 *
 * A stream belongs to one thread at a time. A home may be shared by threads. docs/design/0033-streams.md has the
 * reasons, docs/formats/stream.md the tokens and the wire.
 */
#ifndef WB_STREAM_STREAM_H
#define WB_STREAM_STREAM_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"
#include "index/index.h"
#include "page/page.h"
#include "store/store.h"

/* How long a snapshot is held for a stream that is not heard from: usually, if it has a name, and after its end. */
#define WB_STREAM_HOLD_MS (24 * WB_HOUR_MS)
#define WB_STREAM_NAMED_HOLD_MS (30 * WB_DAY_MS)
#define WB_STREAM_DONE_HOLD_MS WB_HOUR_MS

/*
 * Who asks for a stream. What an owner starts may leave something behind: a hold for each stream, lists on the shelf,
 * any number of names. Readers may only read. Their streams share one hold for each snapshot, which ends
 * WB_STREAM_READER_HOLD_MS after the last of them was heard from, and leave no lists; there are at most
 * WB_STREAM_READER_HOLDS of these holds and WB_STREAM_READER_NAMES names at once, and what an owner has named is not
 * for them. For a stranger (a request that a page of another site has caused) nothing is written at all.
 */
enum wb_stream_who { WB_STREAM_OWNER, WB_STREAM_READER, WB_STREAM_STRANGER };

#define WB_STREAM_READER_HOLD_MS WB_HOUR_MS
#define WB_STREAM_READER_HOLDS 16
#define WB_STREAM_READER_NAMES 16
#define WB_STREAM_READER_IDLE_MS (10 * INT64_C(60000)) /* a name that was not used for so long gives way to a new one */

/* ---- which pages --------------------------------------------------------------------------------- */

/*
 * Which pages: by --site, --sites, --suffix, --since, --until, --type, --lang, --status and --query. WB_SELECTION_INIT
 * selects everything.
 */
struct wb_selection {
    WB_VEC(struct wb_slice) sites;    /* in the spelling of keys, ascending; none: any */
    WB_VEC(struct wb_slice) suffixes; /* whole labels without a leading dot, ascending; none: any */
    struct wb_slice type;             /* in lower case; "html": both types of HTML; empty: any */
    struct wb_slice lang;             /* the code of a language; empty: any */
    struct wb_slice query;            /* empty: none */
    int64_t since_ms, until_ms;       /* seen at this time or later, and before this time */
    unsigned status_min, status_max;  /* both 0: any */
    struct wb_arena texts;            /* owns the texts */
};
#define WB_SELECTION_INIT ((struct wb_selection){.since_ms = INT64_MIN, .until_ms = INT64_MAX})

/*
 * Sets one condition by the name that options and HTTP parameters share. Sites and suffixes add up. sites names a file
 * and is refused unless files is true. WB_E_INVALID with a message that names the condition and the value;
 * WB_E_NOTFOUND if there is no such name.
 */
int wb_selection_set(struct wb_selection *selection, const char *name, struct wb_slice value, bool files);
void wb_selection_release(struct wb_selection *selection);

/* All conditions that a page without its body can answer: all but lang and query. And each kind by itself. */
bool wb_selection_matches(const struct wb_selection *selection, const struct wb_page *page);
bool wb_selection_has_site(const struct wb_selection *selection, struct wb_slice key);
bool wb_selection_has_time(const struct wb_selection *selection, int64_t time_ms);
bool wb_selection_has_type(const struct wb_selection *selection, struct wb_slice type);
bool wb_selection_has_status(const struct wb_selection *selection, unsigned status);

/* The site, if pages of only one are selected; otherwise empty. */
struct wb_slice wb_selection_only_site(const struct wb_selection *selection);

/*
 * Turns a host as people write it, which may have a port, into the spelling of keys. WB_E_INVALID with a message that
 * names the option if it is not a host.
 */
int wb_selection_host(const char *option, struct wb_slice text, struct wb_buf *host_out);

/* ---- what is asked for --------------------------------------------------------------------------- */

enum wb_stream_order { WB_STREAM_STORED, WB_STREAM_URL, WB_STREAM_RANK, WB_STREAM_DATE, WB_STREAM_MODIFIED };
enum wb_stream_state { WB_STREAM_GENERATION, WB_STREAM_LATEST, WB_STREAM_SNAPSHOT };

struct wb_stream_spec {
    struct wb_selection selection;
    enum wb_stream_state state;
    struct wb_slice snapshot;    /* number or name, if state is WB_STREAM_SNAPSHOT */
    bool versions;               /* every capture, oldest first within a page, instead of one version of each page */
    enum wb_stream_order order;
    bool reverse;
    uint32_t part, parts;        /* part 1 to parts; 0 of 0: everything. Disjoint by page id, the same in every order */
    uint64_t limit;              /* 0: none */
    struct wb_slice resume;      /* a token; empty: from the beginning */
    struct wb_slice name;        /* of a stream that the repository remembers; empty: none */
    struct wb_slice join;        /* of a stream that workers share; empty: none */
    enum wb_stream_who who;      /* asks for it; neither a token nor a name has this */
    unsigned given;              /* which of these were set: private to spec.c */

    /* What the caller needs of each record. A token does not have this. */
    bool facts;                  /* no bodies, which is cheaper */
    bool docids;                 /* docids, which costs a table of 8 bytes for each page */
};
#define WB_STREAM_SPEC_INIT ((struct wb_stream_spec){.selection = {.since_ms = INT64_MIN, .until_ms = INT64_MAX}})

/* The names that wb_stream_spec_set() knows, but for `sites`, which names a file. tests/unit/stream compares them. */
#define WB_STREAM_PARAMS                                                                                               \
    "site suffix since until type status lang query order limit partition resume latest snapshot versions name join"

/*
 * Sets one thing by the name that options and HTTP parameters share: the names of a selection, and order ("rank",
 * "-rank"), limit, partition ("2/3"), resume, latest, snapshot, versions, name, join. Flags take "" and "1" for yes,
 * "0" for no. WB_E_INVALID with a message that names it and the value; WB_E_NOTFOUND if there is no such name.
 */
int wb_stream_spec_set(struct wb_stream_spec *spec, const char *name, struct wb_slice value, bool files);
void wb_stream_spec_release(struct wb_stream_spec *spec);

/* Calls each() with what was set, so that wb_stream_spec_set() makes the same spec of it elsewhere. */
int wb_stream_spec_each(const struct wb_stream_spec *spec,
                        int (*each)(void *context, const char *name, struct wb_slice value), void *context);

/* ---- records ------------------------------------------------------------------------------------- */

struct wb_stream_memo;

struct wb_stream_record {
    struct wb_page page;    /* with its body, also if it is a revisit; its time is that of the capture */
    uint32_t docid;         /* in the generation that the stream delivers, if asked for; otherwise WB_DOCID_NONE */
    uint64_t position;      /* counts the records that this stream delivered, from 0, across resumptions */
    bool revisit;           /* with versions: this capture brought no new bytes */
    int64_t original_ms;    /* of a revisit: the capture that brought them */
    struct wb_slice token;  /* the place after this record */
    struct wb_stream_memo *memo; /* private: what pens have made of this page for other streams; NULL: nothing */
};

/* ---- streams ------------------------------------------------------------------------------------- */

/* A repository as streams see it: what the streams of one process share (handles, scans under way, the generation). */
struct wb_stream_home;
int wb_stream_home_open(const char *dir, struct wb_stream_home **home_out);
void wb_stream_home_close(struct wb_stream_home *home);

/*
 * From now on, streams of this home do not wait for a transfer (batch designs), but fail with WB_E_BUSY: for servers,
 * whose threads must not wait. Opening can be repeated; of an open stream, see wb_stream_waits().
 */
void wb_stream_home_hasten(struct wb_stream_home *home);

struct wb_stream;

/*
 * Opens a stream. WB_E_INVALID: the spec contradicts itself, its token or its name, or the query is wrong;
 * WB_E_NOTFOUND: no such snapshot, or that of the token is gone; WB_E_BUSY: another process uses the name;
 * WB_E_DENIED: this is not for readers; WB_E_CROWDED: readers have too much already. Messages are for people. share:
 * the stream may begin at the place where another one of this home is reading, if its order is the stored one.
 */
int wb_stream_open(struct wb_stream_home *home, const struct wb_stream_spec *spec, bool share,
                   struct wb_stream **stream_out);

/*
 * Returns 1 and the next record, which is valid until the next call; 0 at the end; or an error. WB_E_CORRUPT: a damaged
 * place was skipped, the next call goes on behind it (the caller counts and reports it). WB_E_BROKEN: there is no way
 * on behind the damage. WB_E_STOPPED: a signal came while nothing was found for a long time; the next call goes on.
 * WB_STREAM_AGAIN, only in homes of servers (wb_stream_home_hasten): the same after a moment without a record, so that
 * the caller can find out whether anybody still wants one.
 */
enum { WB_STREAM_AGAIN = 3 };
int wb_stream_next(struct wb_stream *stream, struct wb_stream_record *record_out);

/*
 * Whether wb_stream_next() or wb_stream_next_wire() has failed with WB_E_BUSY only because a transfer is under way: the
 * call can be repeated later, and goes on where it was.
 */
bool wb_stream_waits(const struct wb_stream *stream);

/*
 * The same as bytes for another webbase: appends one or more whole frames of docs/formats/stream.md, with blocks
 * exactly as they are on disk where possible. Returns 1, 0 at the end, or an error.
 */
#define WB_STREAM_WIRE_TYPE "application/x-webbase-stream" /* media type */
int wb_stream_next_wire(struct wb_stream *stream, struct wb_buf *out);

/* A token for the place after the last record that was returned; of a new stream, for its beginning. */
int wb_stream_token(struct wb_stream *stream, struct wb_buf *out);

/*
 * Everything up to the last record has arrived where it should: the repository remembers this place under the stream's
 * name, and the snapshot is held from now on for WB_STREAM_HOLD_MS. Cheap if called often.
 */
int wb_stream_acknowledge(struct wb_stream *stream);

/*
 * The same for a client elsewhere, which names the last record by its token: of an open stream with a name, at any time
 * from another thread, but not from two at once; and of one that is not open. WB_E_INVALID: it is the token of another
 * stream; WB_E_DENIED: it is an owner's stream, and not for readers.
 */
int wb_stream_acknowledge_token(struct wb_stream *stream, enum wb_stream_who who, struct wb_slice token);
int wb_stream_named_acknowledge(struct wb_stream_home *home, enum wb_stream_who who, struct wb_slice name,
                                struct wb_slice token);

/* The stream was heard from: its snapshot is held for the usual time from now on. Cheap if called often. */
void wb_stream_keep(struct wb_stream *stream);

struct wb_stream_info {
    uint32_t snapshot, generation; /* generation: 0 if the stream does not deliver that of a generation */
    uint64_t epoch;
    uint64_t pages;                /* in the snapshot; for progress, not exact */
    uint64_t delivered, damaged;
    bool shared;                   /* reads from a scan that others use too */
};
void wb_stream_info(struct wb_stream *stream, struct wb_stream_info *info_out);

/*
 * Whether something is to be said about a stream that was just opened: the newest place of a named stream is damaged,
 * so that it goes on from the one before, and records come a second time. The text names the file.
 */
bool wb_stream_warning(const struct wb_stream *stream, char text_out[WB_ERROR_MESSAGE_MAX]);

/* Keeps the message of an error. stream may be NULL. */
void wb_stream_close(struct wb_stream *stream);

/* ---- named streams ------------------------------------------------------------------------------- */

struct wb_stream_named {
    const char *name;
    uint32_t snapshot;
    uint64_t delivered;  /* records, as far as the repository remembers */
    bool finished;
    bool damaged;        /* the file is damaged: nothing else is known */
    int64_t saved_ms;
};

/* Calls each() for the named streams of a repository, in the order of their names. */
int wb_stream_named_each(struct wb_stream_home *home, int (*each)(void *context, const struct wb_stream_named *named),
                         void *context);

/* Whether a file of DIR/streams/names says that its stream has ended. For those who copy these files. */
bool wb_stream_named_has_ended(const char *path);

/*
 * Checks what is remembered of named streams, without changing it. found() is called for damage, and for what was being
 * written when the power failed (no problem); file is relative to the repository.
 */
typedef void (*wb_stream_found)(void *context, bool problem, const char *file, uint64_t offset, const char *message);
int wb_stream_verify(const char *dir, wb_stream_found found, void *context);

/* Forgets a named stream and lets its snapshot go. WB_E_NOTFOUND, WB_E_BUSY if it is in use. */
int wb_stream_named_drop(struct wb_stream_home *home, struct wb_slice name);

/* ---- workers that share a stream ----------------------------------------------------------------- */

/*
 * A named stream can be dealt out to workers, which come and go (paper, section 4: the distributor): each record goes
 * to one of them. Records that a worker has got but not acknowledged when it leaves go to others. The place that the
 * repository remembers only moves past records that were acknowledged, so that a server that is killed repeats at most
 * the others. A worker belongs to one thread at a time; different workers may be used by different threads.
 */
struct wb_deal_worker;

#define WB_DEAL_RECORDS_MAX 1000 /* that a worker may have without having acknowledged them; by default */
#define WB_DEAL_WINDOW 65536     /* records between the oldest one that is not acknowledged and the stream */
#define WB_DEAL_SILENCE_MS 60000 /* others wait so long for a worker that says nothing; then they get its records */
enum { WB_DEAL_LATER = 2 };

/*
 * Joins the stream spec->join, which is opened if nobody else has. Readers cannot join an owner's stream. The errors
 * are those of wb_stream_open().
 */
int wb_deal_join(struct wb_stream_home *home, const struct wb_stream_spec *spec, struct wb_deal_worker **worker_out);

/*
 * Returns 1 and a record that is valid until the next call for this worker; 0 if all records were delivered and
 * acknowledged; WB_DEAL_LATER if there is nothing for this worker at this moment, because too much of what it has got
 * is not acknowledged, or because others hold the last records; or an error, of which WB_E_CORRUPT means the same as in
 * wb_stream_next(), WB_STREAM_AGAIN too, and WB_E_STOPPED that others had to wait for this worker, which was silent,
 * and have its records. Positions need not ascend.
 */
int wb_deal_next(struct wb_deal_worker *worker, struct wb_stream_record *record_out);

/* The same as wb_stream_warning() for the stream that is dealt. */
bool wb_deal_warning(struct wb_deal_worker *worker, char text_out[WB_ERROR_MESSAGE_MAX]);

/* The same as bytes: appends whole frames. */
int wb_deal_next_wire(struct wb_deal_worker *worker, struct wb_buf *out);

/*
 * The worker is done with the record of this position and with everything that it got before that one. Other positions
 * are ignored: what was acknowledged before may be acknowledged again.
 */
int wb_deal_acknowledge(struct wb_deal_worker *worker, uint64_t position);

/* The worker has gone. NULL is fine. */
void wb_deal_leave(struct wb_deal_worker *worker);

/* ---- captures ------------------------------------------------------------------------------------ */

/*
 * All captures of a page, oldest first. The first record of a content has its bytes; the other captures that saw it are
 * revisits, also if it returned after another content.
 */
struct wb_capture {
    struct wb_page page; /* its time is that of the capture; without a body if that is not wanted */
    bool revisit;
    int64_t original_ms; /* of a revisit: the capture whose bytes they are */
    uint64_t tie;        /* its number among those of its time, from 1 */
};

struct wb_captures_options {
    struct wb_store *store;               /* must stay open, as the selection */
    const struct wb_selection *selection; /* since and until select captures, type and status select versions */
    uint64_t epoch;                       /* the captures that had arrived by then; 0: all */
    bool bodies;                          /* revisits have bodies too; otherwise only URL, time and SHA-1 */
};
struct wb_captures;
int wb_captures_new(const struct wb_captures_options *options, struct wb_captures **captures_out);
void wb_captures_free(struct wb_captures *captures);

/*
 * Begins with a page. newest: the page as a scan returned it, valid until the last capture; or NULL. Captures
 * before after_ms are passed over, and so many of that time; INT64_MIN: none.
 */
int wb_captures_begin(struct wb_captures *captures, struct wb_pageid id, const struct wb_page *newest,
                      int64_t after_ms, uint64_t after_tie);

/*
 * Returns 1 and the next capture, valid until the next call; 0 after the last one; or an error. WB_E_CORRUPT: a version
 * cannot be read; the next call goes on with the next version.
 */
int wb_captures_next(struct wb_captures *captures, struct wb_capture *capture_out);

/* ---- rendering ----------------------------------------------------------------------------------- */

enum wb_stream_format {
    WB_STREAM_JSONL,
    WB_STREAM_WARC,
    WB_STREAM_WARC_GZ,
    WB_STREAM_WARC_ZST,
    WB_STREAM_TEXT,
    WB_STREAM_URLS,
    WB_STREAM_FORMATS,
};

/* WB_E_INVALID names the format. */
int wb_stream_format_parse(struct wb_slice text, enum wb_stream_format *format_out);
const char *wb_stream_format_type(enum wb_stream_format format); /* media type */

/* Holds what rendering needs: compression contexts, an extractor. Belongs to one thread. */
struct wb_stream_pen;
int wb_stream_pen_new(enum wb_stream_format format, bool tokens, struct wb_stream_pen **pen_out);

/* Whether records of this format need bodies. */
bool wb_stream_format_bodies(enum wb_stream_format format);

/* Appends a record. tokens: format urls has them after a tab; the other formats always do. */
int wb_stream_pen_write(struct wb_stream_pen *pen, const struct wb_stream_record *record, struct wb_buf *out);
void wb_stream_pen_free(struct wb_stream_pen *pen);

/* ---- sinks --------------------------------------------------------------------------------------- */

/*
 * Where records go.
 *
 *   begin -> record, record ... flush ... -> end -> close          (close also after an error)
 *
 * After flush() has returned, everything so far has arrived, and the stream is told so. Functions return 0 or a
 * negative code, which ends the stream; WB_SINK_ENOUGH ends it well.
 */
struct wb_stream_sink;

enum { WB_SINK_ENOUGH = 1 };

struct wb_stream_sink_kind {
    bool bodies, docids; /* what it needs of each record */
    int (*begin)(struct wb_stream_sink *sink, const struct wb_stream_info *info);
    int (*record)(struct wb_stream_sink *sink, const struct wb_stream_record *record);
    int (*flush)(struct wb_stream_sink *sink);
    int (*end)(struct wb_stream_sink *sink); /* after the last record and its flush */
    void (*close)(struct wb_stream_sink *sink);
};

/* The first member of every sink. */
struct wb_stream_sink {
    struct wb_stream_sink_kind kind;
};

/*
 * Handlers in shared objects (include/webbase/handler.h): every record goes to all of them. Each path may be followed
 * by "=ARGUMENT". WB_E_INVALID names the file that cannot be loaded or lacks something.
 */
struct wb_handler_options {
    const char *const *paths;
    size_t count;
    unsigned worker, workers;                   /* 1 of 1 if there are no others; 0 of N: the parent of N workers */
    const struct wb_stream_sink *parent;        /* of a worker: what its parent has made, before it forked */
    void (*say)(const char *line);              /* prints a line for people; may be NULL */
};
#define WB_STREAM_WORKERS_MAX 256
int wb_handlers_new(const struct wb_handler_options *options, struct wb_stream_sink **sink_out);

/*
 * When all workers have ended well: lets handlers that can merge make one result of their shares, and says where the
 * files of the others are. The sink is that of the parent, which gets no records.
 */
int wb_handlers_merge(struct wb_stream_sink *parent);

/* How many records handlers called useless so far. */
uint64_t wb_handlers_skipped(const struct wb_stream_sink *sink);

/*
 * A command, run by the shell, that reads rendered records from its standard input. A command that ends early with
 * status 0 has enough; any other status fails with a message that names the command.
 */
int wb_exec_new(const char *command, enum wb_stream_format format, bool tokens, struct wb_stream_sink **sink_out);

/* ---- streams of a server (remote.c) -------------------------------------------------------------- */

struct wb_remote_options {
    const char *url;             /* of a server: http://host:port */
    const char *token;           /* that it asks for; NULL: none */
    const char *ca_file;         /* trust these certificates instead of the system's; NULL: the system's */
    const struct wb_stream_spec *spec;
    int64_t patience_ms;         /* how long a server may be unreachable before we give up; 0: 5 minutes */
    struct wb_stream_sink *sink; /* the caller closes it */
    /* Called now and then, and while waiting; false: stop. trouble: NULL, or why the server cannot be reached. */
    bool (*progress)(void *context, const struct wb_stream_info *info, const char *trouble);
    /* Called with what the server says about the stream (wb_stream_warning). May be NULL. */
    void (*warn)(void *context, const char *text);
    void *context;
};

/*
 * Delivers a stream of a server to the sink. A lost connection is resumed after the last record that the sink took.
 * token_out: the place after it. WB_E_STOPPED if progress said so.
 */
int wb_remote_stream(const struct wb_remote_options *options, struct wb_stream_info *info_out,
                     struct wb_buf *token_out);

#endif
