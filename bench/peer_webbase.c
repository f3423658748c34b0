/*
 * peer_webbase.c - our own store as one of the stores to compare, used through its door.
 *
 * Nothing is disabled: digests, checksums and the catalog are part of the time. Pages
 * arrive without digests, as from a crawler.
 */
#include "bench.h"

#include "base/error.h"
#include "base/mem.h"
#include "store/store.h"

struct our_state {
    struct wb_store *store;
    struct wb_buf mem; /* used by get, which only one thread calls */
};

static int open_as(const char *dir, bool create, const struct wb_store_options *options, void **state_out)
{
    struct our_state *s = wb_alloc_zero(1, sizeof(*s));
    int err = s ? 0 : WB_E_NOMEM;

    *state_out = NULL;
    if (err == 0 && create)
        err = wb_store_create(dir, options);
    if (err == 0)
        err = wb_store_open(dir, create ? WB_STORE_WRITE : WB_STORE_READ, &s->store);
    if (err < 0) {
        wb_free(s);
        return err;
    }
    *state_out = s;
    return 0;
}

static int our_open(const char *dir, bool create, void **state_out)
{
    return open_as(dir, create, NULL, state_out);
}

static int hashed_log_open(const char *dir, bool create, void **state_out)
{
    struct wb_store_options options = {.design.read.organisation = WB_ORGANISATION_HASHED_LOG};

    return open_as(dir, create, &options, state_out);
}

static int our_add(void *state, const struct wb_page *pages, size_t count)
{
    struct our_state *s = state;
    struct wb_store_commit_counts commit = {0};
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++)
        err = wb_store_put(s->store, &pages[i], NULL);
    return err < 0 ? err : wb_store_commit(s->store, &commit);
}

static int our_finish(void *state)
{
    (void)state;
    return 0; /* nothing is left to do after a commit */
}

static void sum_page(struct scan_sum *sum, const struct wb_page *page)
{
    sum->pages++;
    sum->bytes += page->head.len + page->body.len;
    if (sum->check)
        sum->mix += page_mix(page->key, page->head, page->body);
}

static int our_get(void *state, struct wb_slice key, struct scan_sum *sum)
{
    struct our_state *s = state;
    struct wb_page page;
    int err = wb_store_get(s->store, wb_pageid_of_key(key), &page, &s->mem);

    if (err == 0)
        sum_page(sum, &page);
    return err;
}

static int our_scan(void *state, unsigned part, unsigned parts, const struct wb_slice *split, struct scan_sum *sum)
{
    struct our_state *s = state;
    struct wb_store_scan_options options = {.part = part + 1, .parts = parts};
    struct wb_store_scan *scan = NULL;
    struct wb_page page;
    int err = wb_store_scan_open(s->store, &options, &scan);

    (void)split;
    if (err < 0)
        return err;
    while ((err = wb_store_scan_next(scan, &page)) == 1)
        sum_page(sum, &page);
    wb_store_scan_close(scan);
    return err;
}

static void our_close(void *state)
{
    struct our_state *s = state;

    wb_store_close(s->store);
    wb_buf_release(&s->mem);
    wb_free(s);
}

const struct peer peer_webbase = {
    .name = "webbase",
    .settings = "organisation log, defaults; MD5 and SHA-1 of every page computed",
    .open = our_open,
    .add = our_add,
    .finish = our_finish,
    .get = our_get,
    .scan = our_scan,
    .close = our_close,
};

const struct peer peer_webbase_hashed_log = {
    .name = "webbase-hashed-log",
    .settings = "organisation hashed-log; otherwise as webbase",
    .open = hashed_log_open,
    .add = our_add,
    .finish = our_finish,
    .get = our_get,
    .scan = our_scan,
    .close = our_close,
};
