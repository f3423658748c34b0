/*
 * cycle_support.h - what the tests of cycle share: a repository in a directory of its own, pages in store and webdb,
 * sites in the dispenser, and what the journal says.
 */
#ifndef WB_TESTS_CYCLE_SUPPORT_H
#define WB_TESTS_CYCLE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../expect.h"
#include "../removetree.h"
#include "../smallmemory.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "dispenser/dispenser.h"
#include "cycle/cycle.h"
#include "os/clock.h"
#include "os/path.h"
#include "store/store.h"

/* A repository; *state is its directory. */
static inline int set_up_repository(void **state)
{
    char pattern[MEMORY_DIR_MAX];

    if (make_memory_dir("cycle", pattern) < 0)
        return -1;
    char *dir = wb_path_join(pattern, "r");
    *state = dir;
    return wb_store_create(dir, NULL);
}

static inline int tear_down_repository(void **state)
{
    char *dir = *state;

    dir[strlen(dir) - strlen("/r")] = '\0';
    int err = remove_tree(dir);
    wb_free(dir);
    return err;
}

#define IN_REPOSITORY(test) cmocka_unit_test_setup_teardown(test, set_up_repository, tear_down_repository)

/* ---- webdb ------------------------------------------------------------------------------------------- */

/* A row with everything at rest; the md5 is that of the URL, in a way. */
static inline struct wb_webdb_page known_page(const char *url)
{
    return (struct wb_webdb_page){.url = wb_slice_str(url),
                                  .flags = WB_PAGE_WANTED | WB_PAGE_SCORED,
                                  .score = 1,
                                  .first_seen_ms = 1000,
                                  .etag = WB_SLICE_EMPTY,
                                  .modified = WB_SLICE_EMPTY,
                                  .type = WB_SLICE_EMPTY,
                                  .location = WB_SLICE_EMPTY};
}

static inline struct wb_webdb_page fetched_page(const char *url, int64_t seen_ms)
{
    struct wb_webdb_page page = known_page(url);

    page.has_content = true;
    for (size_t i = 0; url[i]; i++)
        page.md5[i % sizeof page.md5] = (uint8_t)(page.md5[i % sizeof page.md5] * 31 + url[i]);
    page.status = 200;
    page.outcome = WB_OUTCOME_STORED;
    page.last_seen_ms = page.last_tried_ms = page.last_changed_ms = seen_ms;
    page.bytes = 5;
    return page;
}

static inline void add_pages(const char *dir, const struct wb_webdb_page *pages, size_t count)
{
    struct wb_webdb_writer *writer = NULL;

    ok(wb_webdb_writer_open(dir, NULL, &writer));
    for (size_t i = 0; i < count; i++)
        ok(wb_webdb_add_page_with_score(writer, &pages[i]));
    ok(wb_webdb_writer_close(writer, NULL));
}

/* false: webdb has no such page. What it points to is gone. */
static inline bool get_page(const char *dir, const char *url, struct wb_webdb_page *page_out)
{
    struct wb_webdb *webdb = NULL;

    ok(wb_webdb_open(dir, &webdb));
    int err = wb_webdb_get_page(webdb, wb_slice_str(url), page_out);
    wb_webdb_close(webdb);
    if (err != WB_E_NOTFOUND)
        ok(err);
    return err == 0;
}

/* ---- store -------------------------------------------------------------------------------------------- */

static inline struct wb_pageid key_of(const char *url, struct wb_buf *key_out)
{
    struct wb_url parsed = WB_URL_INIT;

    ok(wb_url_parse(wb_slice_str(url), NULL, &parsed));
    ok(wb_url_key(&parsed, key_out));
    wb_url_release(&parsed);
    return wb_pageid_of_key(wb_buf_slice(key_out));
}

static inline struct wb_pageid id_of(const char *url)
{
    struct wb_buf key = WB_BUF_INIT;
    struct wb_pageid id = key_of(url, &key);

    wb_buf_release(&key);
    return id;
}

static inline void store_body(const char *dir, const char *url, const char *body, int64_t time_ms, uint32_t lifetime)
{
    struct wb_store *store = NULL;
    struct wb_url parsed = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT;
    struct wb_store_commit_counts counts = {0};

    ok(wb_url_parse(wb_slice_str(url), NULL, &parsed));
    ok(wb_url_key(&parsed, &key));
    struct wb_page page = {.url = wb_url_href(&parsed),
                           .key = wb_buf_slice(&key),
                           .head = WB_SLICE_LIT("HTTP/1.1 200 OK\r\n"),
                           .type = WB_SLICE_LIT("text/html"),
                           .charset = WB_SLICE_EMPTY,
                           .body = wb_slice_str(body),
                           .body_bytes = strlen(body),
                           .time_ms = time_ms,
                           .lifetime = lifetime,
                           .lifetime_count = lifetime,
                           .status = 200,
                           .kind = WB_PAGE_RESPONSE};
    page.id = wb_pageid_of_key(page.key);
    ok(wb_store_open(dir, WB_STORE_WRITE, &store));
    ok(wb_store_put(store, &page, NULL));
    ok(wb_store_commit(store, &counts));
    wb_store_close(store);
    wb_url_release(&parsed);
    wb_buf_release(&key);
}

static inline void store_page(const char *dir, const char *url, int64_t time_ms, uint32_t lifetime)
{
    store_body(dir, url, "bytes", time_ms, lifetime);
}

static inline void keep_all_versions(const char *dir)
{
    const struct wb_store_history all = {.keep = WB_STORE_KEEP_ALL};
    struct wb_store *store = NULL;

    ok(wb_store_open(dir, WB_STORE_WRITE, &store));
    ok(wb_store_set_history(store, &all));
    wb_store_close(store);
}

/* A snapshot that is kept; its number. */
static inline uint32_t seal(const char *dir)
{
    const struct wb_store_holder person = {.kind = WB_STORE_HOLDER_PERSON};
    struct wb_store_snapshot snapshot;
    struct wb_store *store = NULL;

    ok(wb_store_open(dir, WB_STORE_WRITE, &store));
    ok(wb_store_seal(store, WB_SLICE_EMPTY, &person, &snapshot));
    uint32_t number = snapshot.number;
    wb_store_snapshot_release(&snapshot);
    wb_store_close(store);
    return number;
}

/* How many versions of a page can be read; *gone_ms_out: since when it has been gone. */
static inline size_t count_versions(const char *dir, const char *url, int64_t *gone_ms_out)
{
    struct wb_store_timeline timeline;
    struct wb_store *store = NULL;
    size_t count = 0;

    *gone_ms_out = 0;
    ok(wb_store_open(dir, WB_STORE_READ, &store));
    int err = wb_store_timeline(store, id_of(url), &timeline);
    if (err != WB_E_NOTFOUND) {
        ok(err);
        count = timeline.count;
        *gone_ms_out = timeline.gone_ms;
        wb_store_timeline_release(&timeline);
    }
    wb_store_close(store);
    return count;
}

/* As a takedown does first. */
static inline void bar_in_store(const char *dir, const char *url, enum wb_store_bar_kind kind)
{
    struct wb_store *store = NULL;
    struct wb_buf key = WB_BUF_INIT;

    struct wb_store_bar row = {.kind = kind, .id = key_of(url, &key)};
    row.site = wb_key_site(wb_buf_slice(&key));
    ok(wb_store_open(dir, WB_STORE_WRITE, &store));
    ok(wb_store_bar(store, &row));
    wb_store_close(store);
    wb_buf_release(&key);
}

static inline bool in_store(const char *dir, const char *url)
{
    struct wb_store *store = NULL;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_page page;

    ok(wb_store_open(dir, WB_STORE_READ, &store));
    int err = wb_store_get(store, id_of(url), &page, &mem);
    wb_store_close(store);
    wb_buf_release(&mem);
    if (err != WB_E_NOTFOUND)
        ok(err);
    return err == 0;
}

/* ---- sites ---------------------------------------------------------------------------------------------- */

struct site_wanted {
    struct wb_slice name;
    int64_t id;
};

static inline int note_site(void *context, const struct wb_site_row *row)
{
    struct site_wanted *wanted = context;

    wanted->id = row->id;
    return 0;
}

/* A site that crawls know, in a state of its own. */
static inline void make_site(const char *dir, const char *name, enum wb_site_state state, int64_t next_ms)
{
    struct wb_site_plan plan = {.name = wb_slice_str(name),
                                .scheme = WB_SLICE_LIT("http"),
                                .class_name = WB_SLICE_EMPTY,
                                .delay_ms = -1,
                                .budget = -1};
    struct wb_dispenser *dispenser = NULL;
    struct site_wanted wanted = {wb_slice_str(name), 0};
    struct wb_run_plan crawl = {.plans = &plan, .count = 1};
    int64_t run, continues;

    ok(wb_dispenser_open(dir, NULL, &dispenser));
    ok(wb_dispenser_enter_run(dispenser, &crawl, &run, &continues));
    ok(wb_dispenser_borrow(dispenser, wanted.name, WB_SLICE_LIT("http"), WB_SLICE_LIT("test"), 60000, note_site,
                           &wanted));
    struct wb_site_report report = {.id = wanted.id,
                                    .state = state,
                                    .next_ms = next_ms,
                                    .reason = WB_SLICE_EMPTY,
                                    .alias_of = WB_SLICE_EMPTY,
                                    .probe = WB_SLICE_EMPTY,
                                    .home = WB_SLICE_EMPTY,
                                    .visit = 1};
    ok(wb_dispenser_report(dispenser, WB_SLICE_LIT("test"), &report, 1));
    wb_dispenser_close(dispenser);
}

/* ---- the journal ------------------------------------------------------------------------------------------ */

/* Records of a kind, as lines "count text" (PUSH, EXPUNGE) or "link link" (ASK). */
static inline void read_journal(const char *dir, enum wb_edit_kind kind, struct wb_buf *lines_out)
{
    struct wb_edit_place at = WB_EDIT_NOWHERE;
    struct wb_journal_reader *reader = NULL;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_edit edit;
    int got;

    ok(wb_journal_reader_open(dir, &reader));
    while ((got = ok(wb_journal_reader_next(reader, &at, &edit))) > 0) {
        struct wb_pagelink link;
        size_t link_at = 0;
        if (edit.kind != kind)
            continue;
        if (kind != WB_EDIT_ASK)
            ok(wb_buf_printf(lines_out, "%u %.*s", edit.count, WB_SLICE_ARG(edit.text)));
        while (kind == WB_EDIT_ASK && ok(wb_edit_links_next(&edit, &link_at, &mem, &link)) > 0)
            ok(wb_buf_printf(lines_out, "%.*s ", WB_SLICE_ARG(link.url)));
        ok(wb_buf_append_char(lines_out, '\n'));
    }
    ok(wb_buf_terminate(lines_out));
    wb_journal_reader_close(reader);
    wb_buf_release(&mem);
}

/* Warnings, one per line. */
static inline void gather_warning(void *context, const char *message)
{
    ok(wb_buf_printf(context, "%s\n", message));
}

#endif
