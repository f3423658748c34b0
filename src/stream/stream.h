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

#define WB_STREAM_HOLD_MS (24 * WB_HOUR_MS) /* how long a snapshot is held for a stream that is not heard from */

/* ---- what is asked for --------------------------------------------------------------------------- */

/* Which pages: by --site, --sites, --suffix, --since, --until, --type, --lang, --status and --query. */
struct wb_selection {
    WB_VEC(struct wb_slice) sites;    /* in the spelling of keys, ascending; none: any */
    WB_VEC(struct wb_slice) suffixes; /* whole labels without a leading dot; none: any */
    struct wb_slice type;             /* in lower case; "html": both types of HTML; empty: any */
    struct wb_slice lang;             /* empty: any */
    struct wb_slice query;            /* ptr NULL: none */
    int64_t since_ms, until_ms;       /* seen at this time or later, and before this time */
    unsigned status_min, status_max;  /* both 0: any */
    struct wb_arena texts;            /* owns the texts */
};

enum wb_stream_order { WB_STREAM_CRAWL, WB_STREAM_URL, WB_STREAM_RANK, WB_STREAM_DATE, WB_STREAM_MODIFIED };
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
};

/*
 * Sets one thing by the name that options and HTTP parameters share: site, sites (a file; refused if !files), suffix,
 * since, until, type, lang, status, query, order ("rank", "-rank"), limit, partition ("2/3"), resume, latest, snapshot,
 * versions, name, join. WB_E_INVALID with a message that names it and the value; WB_E_NOTFOUND if there is no such name.
 */
int wb_stream_spec_set(struct wb_stream_spec *spec, const char *name, struct wb_slice value, bool files);
void wb_stream_spec_release(struct wb_stream_spec *spec);

bool wb_selection_is_everything(const struct wb_selection *selection);
/* All conditions that a page alone can answer: all but lang and query. The page needs no body. */
bool wb_selection_matches(const struct wb_selection *selection, const struct wb_page *page);

/* ---- records ------------------------------------------------------------------------------------- */

struct wb_stream_record {
    struct wb_page page;    /* with its body, also if it is a revisit; its time is that of the capture */
    uint32_t docid;         /* in the generation that the stream delivers; otherwise WB_DOCID_NONE */
    uint64_t position;      /* counts the records that this stream delivered, from 0, across resumptions */
    bool revisit;           /* with versions: this capture brought no new bytes */
    int64_t original_ms;    /* of a revisit: the capture that brought them */
    struct wb_slice token;  /* the place after this record */
};

/* ---- streams ------------------------------------------------------------------------------------- */

/* A repository as streams see it: what the streams of one process share (handles, scans under way, the generation). */
struct wb_stream_home;
int wb_stream_home_open(const char *dir, struct wb_stream_home **home_out);
void wb_stream_home_close(struct wb_stream_home *home);

struct wb_stream;

/*
 * Opens a stream. WB_E_INVALID: the spec contradicts itself, its token or its name, or the query is wrong; WB_E_NOTFOUND:
 * no such snapshot, or that of the token is gone; messages are for people. share: the stream may begin at the place
 * where another one of this home is reading, if its order is the crawl's.
 */
int wb_stream_open(struct wb_stream_home *home, const struct wb_stream_spec *spec, bool share,
                   struct wb_stream **stream_out);

/*
 * Returns 1 and the next record, which is valid until the next call; 0 at the end; or an error. WB_E_CORRUPT: a damaged
 * place was skipped, the next call goes on behind it (the caller counts and reports it).
 */
int wb_stream_next(struct wb_stream *stream, struct wb_stream_record *record_out);

/*
 * The same as bytes for another webbase: appends one or more whole frames of docs/formats/stream.md, with blocks exactly
 * as they are on disk where possible. Returns 1, 0 at the end, or an error.
 */
int wb_stream_next_wire(struct wb_stream *stream, struct wb_buf *out);

/* A token for the place after the last record that was returned; of a new stream, for its beginning. */
int wb_stream_token(struct wb_stream *stream, struct wb_buf *out);

/*
 * Everything up to the last record has arrived where it should: the repository remembers this place under the stream's
 * name, and the snapshot is held from now on for WB_STREAM_HOLD_MS. Cheap if called often.
 */
int wb_stream_acknowledge(struct wb_stream *stream);

struct wb_stream_info {
    uint32_t snapshot, generation; /* generation: 0 if the stream does not deliver that of a generation */
    uint64_t epoch;
    uint64_t pages;                /* in the snapshot; for progress, not exact */
    uint64_t delivered, damaged;
    bool shared;                   /* reads from a scan that others use too */
};
void wb_stream_info(struct wb_stream *stream, struct wb_stream_info *info_out);
void wb_stream_close(struct wb_stream *stream);

/* ---- rendering ----------------------------------------------------------------------------------- */

enum wb_stream_format {
    WB_STREAM_JSONL, WB_STREAM_WARC, WB_STREAM_WARC_GZ, WB_STREAM_WARC_ZST, WB_STREAM_TEXT, WB_STREAM_URLS,
    WB_STREAM_FORMATS
};

/* WB_E_INVALID names the format. */
int wb_stream_format_parse(struct wb_slice text, enum wb_stream_format *format_out);
const char *wb_stream_format_type(enum wb_stream_format format); /* media type */

/* Holds what rendering needs: compression contexts, an extractor. Belongs to one thread. */
struct wb_stream_pen;
int wb_stream_pen_new(enum wb_stream_format format, bool tokens, struct wb_stream_pen **pen_out);

/* Appends a record. tokens: format urls has them after a tab; the other formats always do. */
int wb_stream_pen_write(struct wb_stream_pen *pen, const struct wb_stream_record *record, struct wb_buf *out);
void wb_stream_pen_free(struct wb_stream_pen *pen);

#endif
