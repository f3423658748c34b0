/*
 * carousel.c - scans that streams share, and the windows of batches that they have read (carousel.h). It never looks at
 * what is in a page, and does not know who needs it.
 */
#include "stream/carousel.h"
#include "base/check.h"
#include "base/error.h"
#include "base/kept.h"
#include "base/locked.h"
#include "base/mem.h"
#include "stream/carousel_own.h"

/* ---- carousels ----------------------------------------------------------------------------------- */

struct wb_batch *wb_carousel_batch(const struct wb_carousel *c, uint64_t number)
{
    WB_CHECK(number >= c->first && number < c->end && c->gone + (c->end - c->first) == c->window.count);
    return c->window.items[c->gone + (number - c->first)];
}

void wb_carousel_free(struct wb_carousel *c)
{
    WB_CHECK(c->magic == WB_CAROUSEL_MAGIC && c->members == 0 && c->users == 0 && !c->reading);
    for (uint64_t i = c->first; i < c->end; i++)
        wb_batch_unref(wb_carousel_batch(c, i));
    wb_kept_drop(WB_KEPT_STREAMS, c->parcel_bytes + c->page_bytes);
    wb_vec_release(&c->window);
    wb_store_scan_close(c->scan);
    wb_store_close(c->store);
    c->magic = 0;
    pthread_mutex_destroy(&c->mutex);
    pthread_cond_destroy(&c->changed);
    wb_free(c);
}

int wb_carousel_new(struct wb_carousels *set, const struct wb_supply_request *request, bool share,
                    struct wb_carousel **carousel_out)
{
    WB_CHECK(set->magic == WB_CAROUSELS_MAGIC);
    struct wb_carousel *c = wb_alloc_zero(1, sizeof *c);

    *carousel_out = NULL;
    if (!c)
        return WB_E_NOMEM;
    c->magic = WB_CAROUSEL_MAGIC;
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->set = set;
    c->snapshot = request->snapshot;
    c->listed = share;
    c->from_beginning = !request->after;
    if (request->after)
        c->origin = *request->after;
    struct wb_store_scan_options options = {
        .snapshot = request->snapshot,
        .site = share ? WB_SLICE_EMPTY : request->site,
        .after = request->after,
        .until = share ? NULL : request->until,
        .at_once = request->at_once,
    };
    int err = wb_store_open(set->dir, WB_STORE_READ, &c->store);
    if (err == 0)
        err = wb_store_bar_version(c->store, &c->bars);
    if (err == 0)
        err = wb_store_scan_open(c->store, &options, &c->scan);
    if (err < 0) {
        wb_carousel_free(c);
        return err;
    }
    *carousel_out = c;
    return 0;
}

int wb_carousels_new(const char *dir, const struct wb_carousel_limits *limits, struct wb_carousels **set_out)
{
    struct wb_carousels *set = wb_alloc_zero(1, sizeof *set);

    *set_out = NULL;
    if (!set)
        return WB_E_NOMEM;
    set->magic = WB_CAROUSELS_MAGIC;
    pthread_mutex_init(&set->mutex, NULL);
    set->limits = *limits;
    set->dir = wb_strdup(dir);
    if (!set->dir) {
        wb_carousels_free(set);
        return WB_E_NOMEM;
    }
    *set_out = set;
    return 0;
}

void wb_carousels_free(struct wb_carousels *set)
{
    if (!set)
        return;
    WB_CHECK(set->magic == WB_CAROUSELS_MAGIC && !set->list);
    set->magic = 0;
    pthread_mutex_destroy(&set->mutex);
    wb_free(set->dir);
    wb_free(set);
}

void wb_carousels_count(struct wb_carousels *set, struct wb_carousel_counts *counts_out)
{
    WB_CHECK(set->magic == WB_CAROUSELS_MAGIC);
    pthread_mutex_lock(&set->mutex);
    *counts_out = set->counts;
    for (const struct wb_carousel *c = set->list; c; c = c->next)
        counts_out->carousels++;
    pthread_mutex_unlock(&set->mutex);
}

static void count(struct wb_carousels *set, uint64_t *counter)
{
    pthread_mutex_lock(&set->mutex);
    ++*counter;
    pthread_mutex_unlock(&set->mutex);
}

/* ---- the window ---------------------------------------------------------------------------------- */

/* Removes the oldest batch from the window. */
static void drop_oldest(struct wb_carousel *c)
{
    WB_CHECK(wb_is_locked(&c->mutex));
    struct wb_batch *batch = wb_carousel_batch(c, c->first);
    size_t parcel = wb_batch_bytes(batch), pages = 0;

    for (size_t i = 0; i < WB_BATCH_DEPTHS; i++)
        pages += batch->pages[i] ? batch->pages[i]->bytes : 0;
    WB_CHECK(c->parcel_bytes >= parcel && c->page_bytes >= pages);
    c->parcel_bytes -= parcel;
    c->page_bytes -= pages;
    wb_kept_drop(WB_KEPT_STREAMS, parcel + pages);
    wb_batch_unref(batch);
    c->first++;
    c->gone++;
    if (c->gone >= 64 && c->gone >= c->window.count / 2) {
        c->window.count -= c->gone;
        memmove(c->window.items, c->window.items + c->gone, c->window.count * sizeof *c->window.items);
        c->gone = 0;
    }
}

/* Puts a batch at the end of the window. */
static int append(struct wb_carousel *c, struct wb_batch *batch)
{
    WB_CHECK(wb_is_locked(&c->mutex));
    int err = wb_vec_push(&c->window, batch);

    if (err < 0)
        return err;
    size_t bytes = wb_batch_bytes(batch);
    batch->number = c->end++;
    c->parcel_bytes += bytes;
    if (batch->parcel.count) {
        c->last = batch->parcel.pages[batch->parcel.count - 1].position;
        c->has_last = true;
    }
    size_t limit = c->listed ? c->set->limits.parcel_bytes : 0; /* nobody else will come */
    bool fits = wb_kept_add(WB_KEPT_STREAMS, bytes);
    while ((c->parcel_bytes > limit || !fits) && c->end - c->first > 1) {
        drop_oldest(c);
        fits = fits || wb_kept_add(WB_KEPT_STREAMS, bytes);
    }
    if (!fits) /* its members are about to read it */
        wb_kept_need(WB_KEPT_STREAMS, bytes);
    return 0;
}

int wb_carousel_read(struct wb_carousel *c)
{
    struct wb_store_parcel parcel;
    struct wb_batch *batch = NULL;

    WB_CHECK(c->magic == WB_CAROUSEL_MAGIC && wb_is_locked(&c->mutex));
    WB_CHECK(!c->reading && !c->ended);
    c->reading = true;
    pthread_mutex_unlock(&c->mutex);
    int got = wb_store_scan_parcel(c->scan, &parcel);
    int err = got;
    if (got == WB_E_CORRUPT)
        err = wb_batch_new_damage(got, &batch);
    else if (got > 0)
        err = wb_batch_new(&parcel, !c->listed, &batch); /* its only member reads on when it is done with this one */
    if (got > 0)
        count(c->set, &c->set->counts.parcels);
    pthread_mutex_lock(&c->mutex);
    c->reading = false;
    c->ended = got == 0;
    if (batch)
        err = append(c, batch);
    if (batch && err < 0)
        wb_batch_unref(batch);
    pthread_cond_broadcast(&c->changed);
    return err < 0 ? err : batch != NULL;
}

/* Counts pages that have just been added, and gives up those that were not used for the longest time. */
static void limit_pages(struct wb_carousel *c, size_t added)
{
    WB_CHECK(wb_is_locked(&c->mutex));
    bool fits = wb_kept_add(WB_KEPT_STREAMS, added);

    if (!fits)
        wb_kept_need(WB_KEPT_STREAMS, added);
    while (c->page_bytes > c->set->limits.page_bytes || (!fits && wb_kept_all() > wb_kept_bound())) {
        struct wb_batch_pages **oldest = NULL;
        uint64_t used = UINT64_MAX;
        for (uint64_t n = c->first; n < c->end; n++)
            for (size_t i = 0; i < WB_BATCH_DEPTHS; i++) {
                struct wb_batch *batch = wb_carousel_batch(c, n);
                if (batch->pages[i] && batch->used[i] < used) {
                    used = batch->used[i];
                    oldest = &batch->pages[i];
                }
            }
        WB_CHECK(oldest != NULL);
        if (used == c->clock) /* somebody needs it at this moment */
            return;
        WB_CHECK(c->page_bytes >= (*oldest)->bytes);
        c->page_bytes -= (*oldest)->bytes;
        wb_kept_drop(WB_KEPT_STREAMS, (*oldest)->bytes);
        wb_batch_pages_unref(*oldest);
        *oldest = NULL;
    }
}

int wb_carousel_unpack(struct wb_carousel *c, struct wb_batch *batch, enum wb_batch_depth depth,
                       struct wb_store_unpacker *unpacker)
{
    struct wb_batch_pages *pages;

    WB_CHECK(c->magic == WB_CAROUSEL_MAGIC && batch->magic == WB_BATCH_MAGIC && wb_is_locked(&c->mutex));
    WB_CHECK(!batch->busy[depth] && !batch->pages[depth]);
    batch->busy[depth] = true;
    batch->refs++;
    pthread_mutex_unlock(&c->mutex);
    int err = wb_batch_unpack(batch, depth, unpacker, &pages);
    count(c->set, &c->set->counts.batches);
    pthread_mutex_lock(&c->mutex);
    batch->busy[depth] = false;
    if (err == 0) {
        batch->pages[depth] = pages;
        batch->used[depth] = ++c->clock;
    }
    if (err == 0 && batch->number >= c->first) {
        c->page_bytes += pages->bytes;
        limit_pages(c, pages->bytes);
    }
    wb_batch_unref(batch);
    pthread_cond_broadcast(&c->changed);
    return err;
}
