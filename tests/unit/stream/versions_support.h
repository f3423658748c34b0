/* versions_support.h - a repository in which a test puts captures of one page. */
#ifndef WB_TESTS_VERSIONS_SUPPORT_H
#define WB_TESTS_VERSIONS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../testroot.h"
#include "base/error.h"
#include "store/store.h"

#define START_MS INT64_C(1767225600000) /* 2026-01-01 */

static inline struct wb_store *new_store(const char *name, enum wb_store_keep keep)
{
    struct wb_store_options options = {.history = {.keep = keep}};
    struct wb_store *store = NULL;

    assert_int_equal(wb_store_create(test_path(name), &options), 0);
    assert_int_equal(wb_store_open(test_path(name), WB_STORE_WRITE, &store), 0);
    return store;
}

/* The page http://h.example/NAME as it was seen on a day, from 0. It borrows name and body. */
static inline struct wb_page page_on(const char *name, int day, const char *body)
{
    static char urls[4][80];
    static unsigned next;
    char *url = urls[next++ % 4];

    snprintf(url, sizeof urls[0], "http://h.example/%s", name);
    struct wb_page page = {.url = wb_slice_str(url),
                           .key = wb_slice_str(url + 7),
                           .type = WB_SLICE_LIT("text/plain"),
                           .charset = WB_SLICE_EMPTY,
                           .head = WB_SLICE_EMPTY,
                           .body = wb_slice_str(body),
                           .time_ms = START_MS + day * WB_DAY_MS,
                           .kind = WB_PAGE_RESOURCE,
                           .status = 200};
    page.id = wb_pageid_of_key(page.key);
    page.body_bytes = page.body.len;
    return page;
}

/* Puts a capture in a commit of its own. */
static inline void put_on(struct wb_store *store, const char *name, int day, const char *body)
{
    struct wb_page page = page_on(name, day, body);
    struct wb_store_commit_counts counts = {0};

    assert_int_equal(wb_store_put(store, &page, NULL), 0);
    assert_int_equal(wb_store_commit(store, &counts), 0);
}

static inline void seal_state(struct wb_store *store)
{
    struct wb_store_holder person = {.kind = WB_STORE_HOLDER_PERSON};
    struct wb_store_snapshot snapshot = {0};

    assert_int_equal(wb_store_seal(store, WB_SLICE_EMPTY, &person, &snapshot), 0);
    wb_store_snapshot_release(&snapshot);
}

static inline void remove_page(struct wb_store *store, const char *name, int day)
{
    struct wb_page page = page_on(name, day, "");
    struct wb_store_commit_counts counts = {0};

    assert_int_equal(wb_store_remove(store, page.id, WB_SLICE_LIT("h.example"), page.time_ms, false), 0);
    assert_int_equal(wb_store_commit(store, &counts), 0);
}

#endif
