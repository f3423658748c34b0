/*
 * batch.h - private to stream: a parcel in the window of a carousel, and its pages once they are decompressed.
 *
 * Reference counts and the members that say so are guarded by the lock of the carousel. Nothing else changes once a
 * batch is in the window, or pages are in the batch.
 */
#ifndef WB_STREAM_BATCH_H
#define WB_STREAM_BATCH_H

#include "base/arena.h"
#include "base/error.h"
#include "store/store.h"
#include "stream/memo.h"

/* What is decompressed of each page. */
enum wb_batch_depth { WB_BATCH_FACTS, WB_BATCH_PAGES, WB_BATCH_DEPTHS };

/* The pages of a batch that can be read. */
struct wb_batch_pages {
    size_t refs; /* guarded */
    struct wb_page *pages;
    uint32_t *entries; /* the number of each in the parcel */
    size_t count;
    size_t damaged;           /* pages that cannot be read ... */
    struct wb_error_copy why; /* ... the last of them for this reason */
    struct wb_arena texts;    /* of the pages */
    struct wb_memo_set *memos; /* what was made of them; at most as many bytes as the pages themselves */
    size_t bytes;             /* of memory */
};

#define WB_BATCH_MAGIC 0x57424254u

struct wb_batch {
    uint32_t magic;                /* WB_BATCH_MAGIC until the last reference is given back */
    size_t refs;                   /* guarded */
    uint64_t number;               /* counts the batches of a carousel */
    struct wb_error_copy damage;   /* code < 0: no parcel, but a damaged place */
    struct wb_store_parcel parcel; /* count 0 in that case */
    struct wb_buf bytes;
    struct wb_store_parcel_page *list;
    struct wb_batch_pages *pages[WB_BATCH_DEPTHS]; /* guarded; NULL: not there */
    uint64_t used[WB_BATCH_DEPTHS];                /* guarded: when they were used last */
    bool busy[WB_BATCH_DEPTHS];                    /* guarded: somebody is decompressing them */
};

/* A batch with a copy of a parcel, or with the parcel itself (borrow); the caller owns one reference. */
int wb_batch_new(const struct wb_store_parcel *parcel, bool borrow, struct wb_batch **batch_out);

/* A damaged place, for the reason in the current error message. */
int wb_batch_new_damage(int code, struct wb_batch **batch_out);

/* Memory of the batch without its pages. */
size_t wb_batch_bytes(const struct wb_batch *batch);

/* Decompresses the pages. The caller owns one reference of *pages_out. Pages that cannot be read are left out. */
int wb_batch_unpack(const struct wb_batch *batch, enum wb_batch_depth depth, struct wb_store_unpacker *unpacker,
                    struct wb_batch_pages **pages_out);

/* With the carousel's lock held. NULL is fine. */
void wb_batch_unref(struct wb_batch *batch);
void wb_batch_pages_unref(struct wb_batch_pages *pages);

#endif
