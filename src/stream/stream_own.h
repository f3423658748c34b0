/*
 * stream_own.h - private to stream: a stream under way, shared by the files that carry it out.
 *
 *   streaming.c   opens, resumes and closes streams; tokens
 *   hold.c        which snapshot a stream delivers, and keeping it
 *   readers.c     what readers hold together, and how many names they have
 *   pagelist.c    the list of pages of a stream in another order than the stored one, or that the index selects
 *   storedfeed.c  pages in the order in which they are stored, from a supplier
 *   listfeed.c    pages of a list, or their captures
 *   wirefeed.c    the records of either of them as bytes (wire.h)
 *   named.c       streams that the repository remembers
 *   deal.c        such a stream dealt out to workers
 *
 * Phases of a stream:
 *
 *   1  what: the spec as asked for, or as the token or the name says
 *   2  hold: a snapshot is chosen, or sealed, and held
 *   3  list: if one is needed, it is made, or taken from the shelf
 *   4  records, until the end, or until it is closed
 *   5  finished: the hold is shortened or given up
 */
#ifndef WB_STREAM_STREAM_OWN_H
#define WB_STREAM_STREAM_OWN_H

#include "extract/extract.h"
#include "query/query.h"
#include "stream/carousel.h"
#include "stream/shelf.h"
#include "stream/spec.h"
#include "stream/stream.h"
#include "stream/supplier.h"
#include "stream/token.h"

#include <pthread.h>

#define WB_STREAM_MAGIC 0x5453424du
#define WB_STREAM_HOME_MAGIC 0x4853424du

/* The number of the hold that readers share; others are drawn. */
#define WB_HOLD_OF_READERS UINT64_C(1)

/* A snapshot that readers hold together. */
struct wb_readers_hold {
    uint32_t snapshot;
    unsigned streams;   /* of this process, under way */
    int64_t renewed_ns; /* INT64_MIN: by an earlier process */
};

struct wb_readers {
    pthread_mutex_t mutex;
    bool looked; /* for holds that an earlier process left */
    struct wb_readers_hold holds[WB_STREAM_READER_HOLDS];
    size_t hold_count;
    size_t names_opening; /* new names whose streams are being opened */
    int64_t idle_ms;      /* WB_STREAM_READER_IDLE_MS, but for tests */
};

struct wb_stream_home {
    uint32_t magic;
    char *dir;
    _Atomic int64_t swept_ns;       /* when the shelf was swept last */
    uint64_t repository;            /* the number that stands for it in tokens */
    bool at_once;                   /* its streams do not wait for transfers */
    struct wb_carousels *carousels; /* scans that its streams share */
    pthread_mutex_t deal_mutex;     /* guards the next line; held while a stream is opened */
    struct wb_deal *deals;          /* streams that are dealt out to workers */
    int64_t silence_ns;             /* WB_DEAL_SILENCE_MS... */
    size_t deal_window;             /* ...and WB_DEAL_WINDOW, but for tests */
    struct wb_readers readers;
};

/* Docids by page id: a hash table of 4 bytes for each slot, at most three quarters full. */
struct wb_docid_table {
    uint32_t *slots; /* docid + 1; 0: free */
    uint64_t mask;
    const char *ids; /* of the generation: 16 bytes for each page */
};

/* The pages of a stream in their order: only their ids, as they are on the shelf. */
struct wb_pagelist {
    size_t count;
    struct wb_buf bytes; /* 16 for each page; or, of a long list... */
    void *map;           /* ...the same in a file without a name... */
    size_t map_bytes;
    struct wb_shelf_map kept; /* ...or on the shelf */
};

/* A page of a list that was read ahead. */
struct wb_listfeed_page {
    int state; /* 0: not read; 1: there; otherwise an error */
    struct wb_page page;
};

struct wb_listfeed {
    struct wb_listfeed_page *pages; /* from number `first` of the list on */
    uint64_t first;
    size_t count;
    size_t bytes;                   /* that they take */
    size_t batch;                   /* how many are read at once; 0: none were read yet */
    struct wb_arena texts;          /* of the pages */
    uint64_t bars;                  /* what was taken down before (wb_store_bar_version) is not among them */
    struct wb_captures *captures;   /* with versions */
    bool begun;                     /* the captures of the page at place.index are under way */
};

struct wb_named;    /* named.c */
struct wb_wirefeed; /* wirefeed.c */

struct wb_stream {
    uint32_t magic;
    struct wb_stream_home *home;
    struct wb_store *store;            /* for reading */
    struct wb_stream_spec spec;
    struct wb_buf spec_bytes;
    struct wb_stream_ticket ticket;
    struct wb_token_writer tokens;
    struct wb_stream_place place;      /* after the last record */
    bool share;                        /* may read from a scan that others use */

    /* ---- the hold (hold.c) ---- */
    uint64_t pages;                    /* in the snapshot */
    int64_t renewed_ns;
    bool held;
    uint32_t shared;                   /* the snapshot that it holds with all readers; 0: none */
    bool adopted;                      /* it was a reader's, and is an owner's now: its name must say so */
    bool names;                        /* counts among readers->names_opening */

    /* ---- the index, if it is needed ---- */
    struct wb_searcher *searcher;      /* the active generation; NULL: not needed */
    struct wb_docid_table docids;
    bool generation_open;              /* ...is the one whose snapshot the stream delivers */

    /* ---- feeds ---- */
    struct wb_supplier *supplier;      /* the order stored */
    struct wb_supply supply;
    size_t next;                       /* page of the supply */
    bool waits;                        /* the next one could not be opened because a transfer is under way */
    struct wb_pagelist list;
    struct wb_listfeed listfeed;
    struct wb_extractor *extractor;    /* to find the language; NULL: not needed */
    uint8_t language;                  /* that the stream looks for in pages itself; 0: it need not */

    uint64_t delivered, damaged;       /* by this process */
    struct wb_error_copy late;         /* damage that was met when the list was made, to be returned; code 0: none */
    unsigned passed;                   /* pages that were looked at since the last record (wb_stream_pause) */
    bool finished;
    struct wb_named *named;
    struct wb_wirefeed *wire; /* if it is delivered as bytes */
};

/* ---- hold.c -------------------------------------------------------------------------------------- */

/* Chooses and holds the snapshot of a new stream. Fills in the ticket. */
int wb_hold_take(struct wb_stream *stream);

/* The same for a stream that is resumed: its ticket says which. WB_E_NOTFOUND if it is gone. */
int wb_hold_resume(struct wb_stream *stream);

/* Holds it, and keeps what is on the shelf, for the usual time from now on. At most once a minute. */
void wb_hold_renew(struct wb_stream *stream);

/* The stream is finished. */
void wb_hold_finish(struct wb_stream *stream);

/* The stream could not begin, and nobody can resume it. */
void wb_hold_give_up(struct wb_stream *stream);

/* Lets go of a snapshot by its number and the number of the holder. */
int wb_hold_let_go(const char *dir, uint32_t snapshot, uint64_t holder);

/* How the store calls a hold. */
struct wb_store_holder wb_hold_holder(uint64_t number, int64_t expires_ms);

/* Opens the store for writing. Returns 1; 0 if the repository cannot be written to; or an error. */
int wb_hold_writer(const char *dir, struct wb_store **store_out);

/* Until when things are kept for this stream. */
int64_t wb_hold_until_ms(const struct wb_stream *stream);

/* ---- readers.c ----------------------------------------------------------------------------------- */

void wb_readers_init(struct wb_readers *readers);
void wb_readers_release(struct wb_readers *readers);

/*
 * One more stream of readers delivers this snapshot, and holds it with the others. Returns 1; 0 if the repository
 * cannot be written to; WB_E_NOTFOUND if the snapshot is gone, WB_E_CROWDED.
 */
int wb_readers_hold(struct wb_stream_home *home, uint32_t snapshot);

/* Seals a snapshot for a stream of readers. Returns as wb_readers_hold(); the caller releases *snapshot_out. */
int wb_readers_seal(struct wb_stream_home *home, struct wb_store_snapshot *snapshot_out);

/* A stream of readers is under way: renews the hold, at most once a minute. */
void wb_readers_renew(struct wb_stream_home *home, uint32_t snapshot);

/* A stream of readers has ended. The hold stays for a while, so that it can be resumed. */
void wb_readers_leave(struct wb_stream_home *home, uint32_t snapshot);

/* The same, and if no other one is under way, the hold ends now. */
void wb_readers_give_up(struct wb_stream_home *home, uint32_t snapshot);

/* Makes room for one more name: the first idle one gives way. WB_E_CROWDED. done(): it is saved, or will not be. */
int wb_readers_name(struct wb_stream_home *home);
void wb_readers_name_done(struct wb_stream_home *home);

/* ---- docid_table.c ------------------------------------------------------------------------------- */

int wb_docid_table_init(struct wb_docid_table *table, struct wb_index *index);
void wb_docid_table_release(struct wb_docid_table *table);

/* WB_DOCID_NONE if the generation does not have the page. */
uint32_t wb_docid_table_find(const struct wb_docid_table *table, struct wb_pageid id);

/* ---- pagelist.c ---------------------------------------------------------------------------------- */

/* Whether a stream needs a list. */
bool wb_pagelist_needed(const struct wb_stream *stream);

/* Makes the list of a stream from its snapshot and the index. */
int wb_pagelist_make(struct wb_stream *stream);

/* The ids, 16 bytes each. */
struct wb_slice wb_pagelist_ids(const struct wb_pagelist *list);

/* Takes a list from the shelf, in place of whatever it was. */
int wb_pagelist_load(struct wb_pagelist *list, const char *dir, uint64_t hash);
void wb_pagelist_release(struct wb_pagelist *list);

/* ---- feeds: 1 and the next page that is selected, 0 at the end, or an error. They move stream->place. ----- */

int wb_storedfeed_next(struct wb_stream *stream, struct wb_stream_record *record_out);

/* Gets the next batch of the supplier. Returns 1, 0 at the end, or an error. */
int wb_storedfeed_supply(struct wb_stream *stream);
void wb_storedfeed_release(struct wb_stream *stream);
int wb_listfeed_next(struct wb_stream *stream, struct wb_stream_record *record_out);

/* Reads the next pages ahead, unless captures are to be delivered. */
int wb_listfeed_ahead(struct wb_stream *stream);
void wb_listfeed_release(struct wb_stream *stream);

/* Whether the page is in the language that the stream looks for: 1, 0 or an error. */
int wb_stream_has_language(struct wb_stream *stream, const struct wb_page *page);

/* The language of a page as the index has it: what its text looks like, or else what it says; 0: unknown. */
uint8_t wb_stream_language(const struct wb_extract *extract);

/* ---- render.c ------------------------------------------------------------------------------------ */

/* Whether a link is one that a reader can follow. */
bool wb_stream_is_link(const struct wb_extract_link *link);

/* ---- wirefeed.c ---------------------------------------------------------------------------------- */

void wb_wirefeed_free(struct wb_wirefeed *wire);

/* Whether the stream gets parcels instead of pages; if so, whether it needs facts about their pages. */
bool wb_wirefeed_parcels(const struct wb_stream *stream);
bool wb_wirefeed_facts(const struct wb_stream *stream);

/* ---- streaming.c --------------------------------------------------------------------------------- */

/* The stream has come to its end. Returns 0. */
int wb_stream_finish(struct wb_stream *stream);

/*
 * Whether a page that was read when the bars had this version has been taken down since: 1, 0 or an error. Pages are
 * read ahead, and those that several streams share may have been read long ago.
 */
int wb_stream_is_down(struct wb_stream *stream, uint64_t bars, const struct wb_page *page);

/*
 * A page, or a batch without one, was passed over. Returns 0; or, now and then, WB_STREAM_AGAIN in a server, and
 * WB_E_STOPPED after a signal: a selection may leave out millions of pages.
 */
int wb_stream_pause(struct wb_stream *stream);

/* Whether its limit is reached. */
static inline bool wb_stream_is_full(const struct wb_stream *stream)
{
    return stream->spec.limit && stream->place.position >= stream->spec.limit;
}

/* ---- named.c ------------------------------------------------------------------------------------- */

/*
 * Takes a name for a stream, or WB_E_BUSY. *token_out is what the repository remembers; empty if the name is new.
 */
int wb_named_take(struct wb_stream *stream, struct wb_slice name, struct wb_buf *token_out, bool *finished_out);

/* The names that readers have begun: how many there are, and the one that was saved first, "" if there is none. */
struct wb_named_readers {
    size_t count;
    char first[WB_STORE_NAME_MAX + 1];
    int64_t first_saved_ms;
    int64_t after_ms; /* names that were saved until then are not looked at for `first` */
};
int wb_named_count_readers(struct wb_stream_home *home, struct wb_named_readers *readers);

/* Saves the place; with `now`, even if it was saved a moment ago. */
int wb_named_save(struct wb_stream *stream, bool now);
void wb_named_release(struct wb_named *named);

#endif
