/*
 * test_pagefold.c - what edits make of a page.
 *
 * Rule by rule by hand; then random lives of a page against a model that keeps all events and answers each question
 * by looking through them ("the last visit that brought an answer"), where the code keeps a state. The lives are cut into merges
 * at random places, edits and rows going through their bytes, and every edit is told twice.
 */
#include "page_support.h"
#include "base/date.h"

#define URL "http://example.org/x"
#define SURT "org,example)/x"

struct bench {
    struct wb_pagefold fold;
    struct wb_buf row, value, mem;
};

static void begin(struct bench *b)
{
    assert_int_equal(wb_pagefold_begin(&b->fold, WB_SLICE_LIT(SURT), (struct wb_slice){NULL, 0}), 0);
    assert_false(b->fold.exists || b->fold.touched);
}

/* Ends a merge and begins the next. */
static void merge(struct bench *b)
{
    struct wb_slice none = {NULL, 0};

    wb_buf_clear(&b->row);
    if (b->fold.exists)
        assert_int_equal(wb_pagerow_encode(&b->fold.page, &b->row), 0);
    assert_int_equal(wb_pagefold_begin(&b->fold, WB_SLICE_LIT(SURT), b->fold.exists ? wb_buf_slice(&b->row) : none), 0);
}

static int apply(struct bench *b, const struct wb_pageedit *edit)
{
    struct wb_pageedit again, named = *edit;

    if (!named.url.ptr)
        named.url = WB_SLICE_LIT(URL);
    named.surt = WB_SLICE_LIT(SURT);
    named.id = WB_PAGEEDIT_NO_ID;
    wb_buf_clear(&b->value);
    assert_int_equal(wb_pageedit_encode(&named, &b->value), 0);
    assert_int_equal(wb_pageedit_decode(WB_SLICE_LIT(SURT), named.time_ms, wb_buf_slice(&b->value), &b->mem, &again), 0);
    int got = wb_pagefold_apply(&b->fold, &again);
    if (got < 0)
        fail_msg("%s", wb_error_message());
    /* What the page holds must not lie in the edit's memory. */
    memset(b->mem.ptr ? b->mem.ptr : (char *)&again, '?', b->mem.ptr ? b->mem.cap : 1);
    memset(b->value.ptr, '?', b->value.cap);
    return got;
}

static void release(struct bench *b)
{
    wb_pagefold_release(&b->fold);
    wb_buf_release(&b->row);
    wb_buf_release(&b->value);
    wb_buf_release(&b->mem);
}

#define EDIT(name, ...) (&(struct wb_pageedit){.kind = WB_PAGEEDIT_##name, __VA_ARGS__})
#define VISIT(at, what, ...) EDIT(VISIT, .time_ms = (at), .visit = {.outcome = WB_OUTCOME_##what, __VA_ARGS__})
#define CONTENT(n) .has_content = true, .md5 = {n}, .simhash = (n), .title_hash = (n) + 1, .bytes = (n) * 100, .status = 200
#define T(day) (BASE_MS + (int64_t)(day) * DAY_MS)

/* ---- by hand ------------------------------------------------------------------------------------------- */

static void test_targets(void **state)
{
    struct bench b = {0};
    const struct wb_webdb_page *page = &b.fold.page;

    (void)state;
    begin(&b);
    assert_int_equal(apply(&b, EDIT(TARGET, .time_ms = T(1))), 1);
    assert_true(b.fold.exists && b.fold.touched && page->flags == WB_PAGE_TARGET && page->first_seen_ms == T(1));
    merge(&b);
    assert_int_equal(apply(&b, EDIT(TARGET, .time_ms = T(0))), 0);
    assert_true(!b.fold.touched && page->first_seen_ms == T(1));
    assert_int_equal(apply(&b, EDIT(DELETE, .time_ms = T(2))), 0);
    assert_false(b.fold.touched);
    assert_int_equal(apply(&b, EDIT(KNOWN, .time_ms = T(2), .depth = 4, .url = WB_SLICE_LIT("https://example.org/x/"))), 1);
    assert_true(b.fold.touched && page->flags == 0 && page->depth == 4 && page->first_seen_ms == T(1));
    assert_same_text("url", page->url, WB_SLICE_LIT("https://example.org/x/"));
    merge(&b);
    assert_int_equal(apply(&b, EDIT(TARGET, .time_ms = T(3))), 1);
    assert_int_equal(apply(&b, EDIT(KNOWN, .time_ms = T(3), .depth = 5)), 1);
    assert_false(b.fold.touched);
    assert_int_equal(apply(&b, EDIT(KNOWN, .time_ms = T(3), .depth = 3)), 1);
    assert_true(b.fold.touched && page->depth == 3);
    merge(&b);
    apply(&b, EDIT(KNOWN, .time_ms = T(3), .depth = 9, .wanted = true));
    assert_true(b.fold.touched && page->flags == WB_PAGE_WANTED && page->depth == 3);
    merge(&b);
    apply(&b, EDIT(KNOWN, .time_ms = T(3), .depth = 9, .wanted = true));
    assert_false(b.fold.touched);
    release(&b);
}

static void test_hints(void **state)
{
    struct bench b = {0};
    const struct wb_webdb_page *page = &b.fold.page;

    (void)state;
    begin(&b);
    apply(&b, EDIT(KNOWN, .time_ms = T(1), .hint_ms = T(0)));
    assert_true(page->hint_ms == T(0) && page->signals == 0);
    apply(&b, VISIT(T(2), STORED, CONTENT(1)));
    merge(&b);
    apply(&b, EDIT(KNOWN, .time_ms = T(3), .hint_ms = T(2))); /* not later than the fetch */
    assert_true(!b.fold.touched && page->hint_ms == T(0));
    apply(&b, EDIT(KNOWN, .time_ms = T(4), .hint_ms = T(3)));
    assert_true(b.fold.touched && page->hint_ms == T(3) && page->signals == 1);
    apply(&b, EDIT(KNOWN, .time_ms = T(4), .hint_ms = T(3))); /* told twice */
    assert_int_equal(page->signals, 1);
    apply(&b, EDIT(KNOWN, .time_ms = T(5), .hint_ms = T(4)));
    assert_int_equal(page->signals, 2);
    apply(&b, VISIT(T(6), UNCHANGED, CONTENT(1)));
    assert_true(page->signals == 0 && page->hint_ms == T(4));
    release(&b);
}

static void test_content(void **state)
{
    struct bench b = {0};
    const struct wb_webdb_page *page = &b.fold.page;

    (void)state;
    begin(&b);
    assert_int_equal(apply(&b, VISIT(T(0), STORED, CONTENT(1), .depth = 2, .lifetime = 10, .type = WB_SLICE_LIT("text/html"), .etag = WB_SLICE_LIT("\"1\""),
                                     .modified = WB_SLICE_LIT("Sun, 06 Nov 1994 08:49:37 GMT"))), 1);
    assert_true(page->has_content && page->md5[0] == 1 && page->status == 200 && page->depth == 2 && page->flags == 0 && page->bytes == 100);
    assert_true(page->first_seen_ms == T(0) && page->last_seen_ms == T(0) && page->last_tried_ms == T(0) && page->expires_ms == T(10));
    assert_true(page->last_changed_ms == 784111777000 && page->history.visits == 0 && page->history.fetch_count == 1);
    merge(&b);
    assert_same_text("etag", page->etag, WB_SLICE_LIT("\"1\""));
    /* Told twice, and told of a time before: nothing but the day when it was first seen. */
    assert_int_equal(apply(&b, VISIT(T(0), STORED, CONTENT(1))), 0);
    assert_false(b.fold.touched);
    assert_int_equal(apply(&b, VISIT(T(-5), STORED, CONTENT(9), .depth = 0)), 0);
    assert_true(b.fold.touched && page->first_seen_ms == T(-5) && page->md5[0] == 1 && page->depth == 2 && page->history.fetch_count == 1);
    /* Unchanged, with 304: the status stays that of the content. */
    assert_int_equal(apply(&b, VISIT(T(3), UNCHANGED, .has_content = true, .md5 = {1}, .status = 304, .lifetime = 10)), 1);
    assert_true(page->status == 200 && page->history.visits == 1 && page->history.changes == 0 && page->history.unchanged_days == 3);
    assert_true(page->last_changed_ms == 784111777000 && page->expires_ms == T(13) && page->history.fetches[1].status == 304);
    assert_same_text("modified", page->modified, WB_SLICE_EMPTY);
    /* Changed, with a time that cannot be: clamped, and never believed again. */
    apply(&b, VISIT(T(4), STORED, CONTENT(2), .modified = WB_SLICE_LIT("Sun, 06 Nov 1994 08:49:37 GMT")));
    assert_true(page->last_changed_ms == T(3) + 1 && page->history.changes == 1 && page->history.modified_lies && page->expires_ms == 0);
    apply(&b, VISIT(T(5), DUPLICATE, CONTENT(3)));
    assert_int_equal(page->last_changed_ms, T(5));
    apply(&b, VISIT(T(6), TRUNCATED, CONTENT(4), .modified = WB_SLICE_LIT("Fri, 31 Dec 9999 23:59:59 GMT")));
    assert_int_equal(page->last_changed_ms, T(6));
    /* 304 of a page whose body we lost. */
    apply(&b, VISIT(T(8), UNCHANGED, .status = 304));
    assert_true(page->has_content && page->last_seen_ms == T(8) && page->status == 200 && page->history.visits == 5);
    release(&b);
}

static void test_last_modified(void **state)
{
    struct bench b = {0};
    const struct wb_webdb_page *page = &b.fold.page;
    char text[WB_DATE_HTTP_BYTES + 1] = "";

    (void)state;
    begin(&b);
    apply(&b, VISIT(T(0), STORED, CONTENT(1)));
    assert_int_equal(page->last_changed_ms, T(0));
    assert_true(wb_date_format_http(T(1), text));
    apply(&b, VISIT(T(2), STORED, CONTENT(2), .modified = wb_slice_str(text)));
    assert_true(page->last_changed_ms == T(1) / 1000 * 1000 && !page->history.modified_lies);
    assert_true(page->history.modified_visits == 1 && page->history.modified_changes == 1 && page->history.modified_days == 1);
    /* The epoch is what servers say that do not know. */
    apply(&b, VISIT(T(3), STORED, CONTENT(3), .modified = WB_SLICE_LIT("Thu, 01 Jan 1970 00:00:00 GMT")));
    assert_true(page->last_changed_ms == T(3) && page->history.modified_visits == 1);
    release(&b);
}

static void test_redirects(void **state)
{
    struct bench b = {0};
    const struct wb_webdb_page *page = &b.fold.page;

    (void)state;
    begin(&b);
    apply(&b, VISIT(T(0), STORED, CONTENT(1), .lifetime = 5, .etag = WB_SLICE_LIT("\"1\"")));
    merge(&b);
    /* To another spelling of itself: the answer comes by itself. */
    apply(&b, VISIT(T(1), REDIRECT, .status = 301, .location = WB_SLICE_LIT("https://example.org/x/")));
    assert_true(page->has_content && page->last_tried_ms == T(0) && page->location.len == 0 && !b.fold.touched);
    assert_int_equal(apply(&b, &(struct wb_pageedit){.kind = WB_PAGEEDIT_VISIT, .time_ms = T(1), .url = WB_SLICE_LIT("https://example.org/x/"),
                                                     .visit = {.outcome = WB_OUTCOME_UNCHANGED, CONTENT(1)}}), 1);
    assert_same_text("url", page->url, WB_SLICE_LIT("https://example.org/x/"));
    assert_int_equal(page->history.visits, 1);
    apply(&b, EDIT(PUSH, .time_ms = T(2), .count = WB_PUSH_CHANGED));
    apply(&b, VISIT(T(3), REDIRECT, .status = 302, .location = WB_SLICE_LIT("http://example.org/y")));
    assert_true(!page->has_content && page->md5[0] == 0 && page->expires_ms == 0 && page->status == 302 && page->etag.len == 0);
    assert_true(page->last_seen_ms == T(3) && page->flags == WB_PAGE_WANTED);
    merge(&b);
    assert_same_text("location", page->location, WB_SLICE_LIT("http://example.org/y"));
    apply(&b, VISIT(T(4), STORED, CONTENT(2)));
    assert_true(page->has_content && page->location.len == 0 && page->history.visits == 1);
    apply(&b, VISIT(T(5), REDIRECT, .status = 302, .location = WB_SLICE_LIT("no URL")));
    assert_same_text("location", page->location, WB_SLICE_LIT("no URL"));
    release(&b);
}

static void test_gone_and_failures(void **state)
{
    struct bench b = {0};
    const struct wb_webdb_page *page = &b.fold.page;

    (void)state;
    begin(&b);
    apply(&b, VISIT(T(0), GONE, .status = 404));
    assert_true(page->flags == WB_PAGE_GONE && page->expires_ms == 0 && page->status == 404 && page->last_seen_ms == 0);
    apply(&b, VISIT(T(1), ERROR, .status = 500));
    assert_true(page->failures == 1 && page->status == 500 && page->flags == WB_PAGE_GONE);
    apply(&b, VISIT(T(2), STORED, CONTENT(1), .lifetime = 10));
    assert_true(page->failures == 0 && page->flags == 0 && page->last_seen_ms == T(2));
    apply(&b, EDIT(ASK, .time_ms = T(3)));
    assert_int_equal(page->asked_ms, T(3));
    /* Nothing could be verified, long before the end, and at the end. */
    apply(&b, VISIT(T(4), LATER, .status = 503));
    assert_true(page->asked_ms == T(3) && page->expires_ms == T(12) && page->status == 200 && page->failures == 1);
    apply(&b, VISIT(T(12) - 1000, ERROR, .status = 0));
    assert_true(page->asked_ms == 0 && page->expires_ms == T(13) - 1000 && page->failures == 2);
    apply(&b, EDIT(ASK, .time_ms = T(12)));
    apply(&b, VISIT(T(13), ROBOTS, .status = 0));
    assert_true(page->failures == 0 && page->flags == WB_PAGE_BLOCKED && page->has_content && page->asked_ms == T(12));
    apply(&b, VISIT(T(14), GONE, .status = 410));
    assert_true(page->flags == WB_PAGE_GONE && page->has_content && page->expires_ms == T(14) && page->asked_ms == 0 && page->last_seen_ms == T(2));
    merge(&b);
    for (unsigned i = 0; i < 70000; i++)
        apply(&b, VISIT(T(15) + i, LATER, .status = 503));
    assert_int_equal(page->failures, UINT16_MAX);
    assert_true(page->history.fetch_count == WB_HISTORY_FETCHES && page->history.fetches[0].time_ms == T(15) + 70000 - 8);
    release(&b);
}

static void test_pushes(void **state)
{
    struct bench b = {0};
    const struct wb_webdb_page *page = &b.fold.page;

    (void)state;
    begin(&b);
    assert_int_equal(apply(&b, EDIT(PUSH, .time_ms = T(0), .count = WB_PUSH_GONE)), 0);
    assert_false(b.fold.exists);
    apply(&b, EDIT(PUSH, .time_ms = T(1), .count = WB_PUSH_CHANGED));
    assert_true(page->flags == (WB_PAGE_WANTED | WB_PAGE_PUSHED) && page->signals == 1 && page->depth == 0 && page->first_seen_ms == T(1));
    apply(&b, EDIT(PUSH, .time_ms = T(2), .count = WB_PUSH_GONE));
    assert_int_equal(page->flags, WB_PAGE_WANTED | WB_PAGE_PUSHED | WB_PAGE_PUSHED_GONE);
    apply(&b, VISIT(T(3), ERROR));
    apply(&b, VISIT(T(4), LATER));
    assert_int_equal(page->flags, WB_PAGE_WANTED | WB_PAGE_PUSHED | WB_PAGE_PUSHED_GONE);
    apply(&b, VISIT(T(5), ERROR));
    assert_int_equal(page->flags, WB_PAGE_WANTED);
    apply(&b, EDIT(PUSH, .time_ms = T(6), .count = WB_PUSH_GONE));
    apply(&b, EDIT(PUSH, .time_ms = T(7), .count = WB_PUSH_CHANGED));
    assert_int_equal(page->flags, WB_PAGE_WANTED | WB_PAGE_PUSHED);
    apply(&b, VISIT(T(8), STORED, CONTENT(1)));
    merge(&b);
    /* Announced before the fetch, told after it. */
    apply(&b, EDIT(PUSH, .time_ms = T(7), .count = WB_PUSH_CHANGED));
    assert_true(page->flags == WB_PAGE_WANTED && page->signals == 0 && !b.fold.touched);
    release(&b);
}

static void test_expunges(void **state)
{
    struct bench b = {0};
    const struct wb_webdb_page *page = &b.fold.page;

    (void)state;
    begin(&b);
    assert_int_equal(apply(&b, EDIT(EXPUNGE, .time_ms = T(0), .count = WB_EXPUNGE_EXPIRED)), 0);
    assert_int_equal(apply(&b, EDIT(EXPUNGE, .time_ms = T(0), .count = WB_EXPUNGE_ALLOWED)), 0);
    assert_int_equal(apply(&b, EDIT(ASK, .time_ms = T(0))), 0);
    assert_false(b.fold.exists || b.fold.touched);
    apply(&b, VISIT(T(1), STORED, CONTENT(1), .depth = 3, .lifetime = 4));
    apply(&b, EDIT(EXPUNGE, .time_ms = T(0), .count = WB_EXPUNGE_EXPIRED)); /* another content, long ago */
    assert_true(page->has_content);
    assert_int_equal(apply(&b, EDIT(EXPUNGE, .time_ms = T(6), .count = WB_EXPUNGE_EXPIRED)), 1);
    assert_true(page->flags == WB_PAGE_TARGET && !page->has_content && page->depth == 0 && page->first_seen_ms == T(1) && page->last_tried_ms == 0);
    merge(&b);
    apply(&b, EDIT(EXPUNGE, .time_ms = T(7), .count = WB_EXPUNGE_BARRED));
    assert_true(page->flags == WB_PAGE_BARRED && page->first_seen_ms == T(1) && b.fold.touched);
    merge(&b);
    /* Nothing but an explicit word changes it. */
    assert_int_equal(apply(&b, EDIT(EXPUNGE, .time_ms = T(8), .count = WB_EXPUNGE_BARRED)), 1);
    apply(&b, EDIT(KNOWN, .time_ms = T(8), .wanted = true, .hint_ms = T(8)));
    apply(&b, EDIT(PUSH, .time_ms = T(8), .count = WB_PUSH_CHANGED));
    apply(&b, EDIT(PUSH, .time_ms = T(8), .count = WB_PUSH_GONE));
    apply(&b, EDIT(EXPUNGE, .time_ms = T(8), .count = WB_EXPUNGE_EXPIRED));
    apply(&b, EDIT(ASK, .time_ms = T(8)));
    assert_int_equal(apply(&b, VISIT(T(9), STORED, CONTENT(1))), 0);
    assert_int_equal(apply(&b, EDIT(ADD_ABSENT, .time_ms = T(9), .row = {.url = WB_SLICE_LIT(URL), .surt = WB_SLICE_LIT(SURT)})), 0);
    assert_true(page->flags == WB_PAGE_BARRED && !page->has_content && !b.fold.touched);
    apply(&b, EDIT(EXPUNGE, .time_ms = T(10), .count = WB_EXPUNGE_ALLOWED));
    assert_int_equal(page->flags, WB_PAGE_WANTED);
    release(&b);
    begin(&b);
    assert_int_equal(apply(&b, EDIT(EXPUNGE, .time_ms = T(1), .count = WB_EXPUNGE_BARRED)), 1);
    assert_true(b.fold.exists && page->flags == WB_PAGE_BARRED && page->first_seen_ms == T(1));
    release(&b);
}

static void test_additions(void **state)
{
    uint64_t chance = test_seed();
    struct bench b = {0};
    struct wb_webdb_page *page = &b.fold.page;

    (void)state;
    for (unsigned i = 0; i < 2000; i++) {
        struct wb_webdb_page row = make_page(&chance, WB_SLICE_LIT(URL), WB_SLICE_LIT(SURT)), row2 = make_page(&chance, WB_SLICE_LIT(URL), WB_SLICE_LIT(SURT));
        row.flags &= ~(unsigned)WB_PAGE_TARGET;
        row2.flags &= ~(unsigned)WB_PAGE_TARGET;
        begin(&b);
        if (chance_below(&chance, 2))
            apply(&b, EDIT(TARGET, .time_ms = T(0)));
        assert_int_equal(apply(&b, EDIT(ADD_ABSENT, .time_ms = T(1), .row = row)), 1);
        assert_same_page(page, &row);
        assert_int_equal(apply(&b, EDIT(ADD_ABSENT, .time_ms = T(2), .row = row2)), 0);
        assert_same_page(page, &row);
        merge(&b);
        bool keeps = chance_below(&chance, 2);
        assert_int_equal(apply(&b, keeps ? EDIT(ADD, .time_ms = T(3), .row = row2) : EDIT(ADD_SCORE, .time_ms = T(3), .row = row2)), 1);
        if (keeps && row.flags & WB_PAGE_SCORED) {
            row2.score = row.score;
            row2.flags |= WB_PAGE_SCORED;
        }
        assert_same_page(page, &row2);
        assert_int_equal(apply(&b, EDIT(DELETE, .time_ms = T(4))), 1);
        struct wb_webdb_page target = {.url = WB_SLICE_LIT(URL), .surt = WB_SLICE_LIT(SURT), .flags = WB_PAGE_TARGET, .first_seen_ms = row2.first_seen_ms};
        assert_same_page(page, &target);
    }
    release(&b);
}

/* What a server sends is of any length; a row is not. */
static void test_long_texts(void **state)
{
    static char text[100000];
    struct bench b = {0};
    const struct wb_webdb_page *page = &b.fold.page;
    struct wb_slice all = wb_slice(text, sizeof text);

    (void)state;
    memset(text, 'x', sizeof text);
    begin(&b);
    apply(&b, VISIT(T(0), STORED, CONTENT(1), .etag = all, .modified = all, .type = all));
    assert_true(page->etag.len == 0 && page->modified.len == 0 && page->type.len == 0 && page->has_content);
    apply(&b, VISIT(T(1), REDIRECT, .location = all));
    assert_true(page->location.len == 0 && !page->has_content);
    release(&b);
}

static void test_damaged_row(void **state)
{
    struct wb_pagefold fold = {0};

    (void)state;
    assert_int_equal(wb_pagefold_begin(&fold, WB_SLICE_LIT(SURT), WB_SLICE_LIT("\xff\xff")), WB_E_CORRUPT);
    assert_false(fold.exists);
    assert_int_equal(wb_pagefold_begin(&fold, WB_SLICE_LIT(SURT), WB_SLICE_LIT("")), WB_E_CORRUPT);
    wb_pagefold_release(&fold);
}

/* Every allocation of a life fails once: told, nothing worse. */
static unsigned allocations, fail_at;

static bool fail_one(void)
{
    return ++allocations == fail_at;
}

static int whole_life(void)
{
    static const struct wb_pageedit edits[] = {
        {.kind = WB_PAGEEDIT_TARGET, .time_ms = 1, .url = WB_SLICE_LIT(URL)},
        {.kind = WB_PAGEEDIT_VISIT, .time_ms = 2, .url = WB_SLICE_LIT(URL "/"), .visit = {.outcome = WB_OUTCOME_STORED, CONTENT(1), .type = WB_SLICE_LIT("a/b"),
                                                                                     .etag = WB_SLICE_LIT("\"e\""), .modified = WB_SLICE_LIT("now")}},
        {.kind = WB_PAGEEDIT_VISIT, .time_ms = 3, .url = WB_SLICE_LIT(URL), .visit = {.outcome = WB_OUTCOME_REDIRECT, .location = WB_SLICE_LIT("http://b/")}},
        {.kind = WB_PAGEEDIT_ADD, .time_ms = 4, .row = {.url = WB_SLICE_LIT("https://example.org/x"), .surt = WB_SLICE_LIT(SURT), .etag = WB_SLICE_LIT("\"f\"")}},
    };
    struct wb_pagefold fold = {0};
    struct wb_buf row = WB_BUF_INIT, value = WB_BUF_INIT, mem = WB_BUF_INIT;
    struct wb_pageedit edit;
    int err = wb_pagefold_begin(&fold, WB_SLICE_LIT(SURT), (struct wb_slice){NULL, 0});

    for (size_t i = 0; err >= 0 && i < COUNT(edits); i++) {
        wb_buf_clear(&value);
        err = wb_pageedit_encode(&edits[i], &value);
        if (err == 0)
            err = wb_pageedit_decode(WB_SLICE_LIT(SURT), edits[i].time_ms, wb_buf_slice(&value), &mem, &edit);
        if (err == 0)
            err = wb_pagefold_apply(&fold, &edit);
        wb_buf_clear(&row);
        if (err >= 0)
            err = wb_pagerow_encode(&fold.page, &row);
        if (err == 0)
            err = wb_pagefold_begin(&fold, WB_SLICE_LIT(SURT), wb_buf_slice(&row));
    }
    wb_pagefold_release(&fold);
    wb_buf_release(&row);
    wb_buf_release(&value);
    wb_buf_release(&mem);
    return err;
}

static void test_no_memory(void **state)
{
    unsigned total;

    (void)state;
    wb_alloc_should_fail = fail_one;
    allocations = fail_at = 0;
    int err = whole_life();
    total = allocations;
    for (unsigned i = 1; err == 0 && i <= total; i++) {
        allocations = 0;
        fail_at = i;
        err = whole_life() == WB_E_NOMEM ? 0 : -99;
    }
    wb_alloc_should_fail = NULL;
    assert_int_equal(err, 0);
    assert_in_range(total, 10, 1000);
}

/* ---- lives --------------------------------------------------------------------------------------------- */

enum { EVENTS_MAX = 64 };

/* All that happened to a page since it was one. */
struct model {
    enum { NOTHING, TARGET, PAGE, BARRED } state;
    int64_t first_seen_ms;
    struct wb_pageedit events[EVENTS_MAX]; /* those that counted, oldest first */
    size_t count;
};

#define BIT(name) (1u << WB_OUTCOME_##name)
enum {
    BODIES = BIT(STORED) | BIT(DUPLICATE) | BIT(TRUNCATED) | BIT(UNCHANGED),
    SEEN = BODIES | BIT(REDIRECT),
    ANSWERS = SEEN | BIT(GONE),
    FAILURES = BIT(ERROR) | BIT(LATER),
};

static bool is_visit(const struct wb_pageedit *e, unsigned outcomes)
{
    return e->kind == WB_PAGEEDIT_VISIT && 1u << e->visit.outcome & outcomes;
}

/* The last of the first n events that is a visit with one of the outcomes; -1: none. */
static int last_visit(const struct model *m, size_t n, unsigned outcomes)
{
    while (n > 0 && !is_visit(&m->events[n - 1], outcomes))
        n--;
    return (int)n - 1;
}

/* The visit whose content the page has after n events; -1: it has none. */
static int content_after(const struct model *m, size_t n)
{
    while (n > 0) {
        const struct wb_pageedit *e = &m->events[--n];
        if (is_visit(e, BIT(REDIRECT)))
            return -1;
        if (is_visit(e, BODIES) && e->visit.has_content)
            return (int)n;
    }
    return -1;
}

static int64_t time_of(const struct model *m, int at)
{
    return at < 0 ? 0 : m->events[at].time_ms;
}

static unsigned failures_before(const struct model *m, size_t n)
{
    unsigned failures = 0;

    for (; n > 0; n--) {
        if (is_visit(&m->events[n - 1], FAILURES))
            failures++;
        else if (is_visit(&m->events[n - 1], ANSWERS | BIT(ROBOTS)))
            break;
    }
    return failures;
}

static int64_t hint_before(const struct model *m, size_t n)
{
    int64_t hint = 0;

    for (size_t i = 0; i < n; i++) {
        const struct wb_pageedit *e = &m->events[i];
        if (e->kind == WB_PAGEEDIT_KNOWN && e->hint_ms > hint && e->hint_ms > time_of(m, last_visit(m, i, SEEN)))
            hint = e->hint_ms;
    }
    return hint;
}

static unsigned signals_of(const struct model *m)
{
    unsigned signals = 0;

    for (size_t i = (size_t)(last_visit(m, m->count, ANSWERS) + 1); i < m->count; i++) {
        const struct wb_pageedit *e = &m->events[i];
        if (e->kind == WB_PAGEEDIT_PUSH && e->count == WB_PUSH_CHANGED)
            signals++;
        else if (e->kind == WB_PAGEEDIT_KNOWN && time_of(m, last_visit(m, i, SEEN)) && hint_before(m, i + 1) > hint_before(m, i))
            signals++;
    }
    return signals;
}

static unsigned push_flags(const struct model *m)
{
    for (size_t n = m->count; n > 0; n--) {
        const struct wb_pageedit *e = &m->events[n - 1];
        if (e->kind == WB_PAGEEDIT_PUSH && e->count == WB_PUSH_CHANGED)
            return WB_PAGE_PUSHED;
        if (e->kind == WB_PAGEEDIT_PUSH)
            return WB_PAGE_PUSHED | WB_PAGE_PUSHED_GONE;
        if (is_visit(e, ANSWERS | BIT(ROBOTS)) || (is_visit(e, FAILURES) && failures_before(m, n) >= 3))
            return 0;
    }
    return 0;
}

static unsigned flags_of(const struct model *m)
{
    unsigned flags = push_flags(m);
    int answer = last_visit(m, m->count, ANSWERS), heard = last_visit(m, m->count, ANSWERS | BIT(ROBOTS));

    if (m->state == TARGET)
        return WB_PAGE_TARGET;
    if (m->state == BARRED)
        return WB_PAGE_BARRED;
    for (size_t i = 0; i < m->count; i++)
        if ((m->events[i].kind == WB_PAGEEDIT_KNOWN && m->events[i].wanted) || (m->events[i].kind == WB_PAGEEDIT_PUSH && m->events[i].count == WB_PUSH_CHANGED))
            flags |= WB_PAGE_WANTED;
    flags |= answer >= 0 && is_visit(&m->events[answer], BIT(GONE)) ? WB_PAGE_GONE : 0;
    return flags | (heard >= 0 && is_visit(&m->events[heard], BIT(ROBOTS)) ? WB_PAGE_BLOCKED : 0);
}

static int64_t expires_of(const struct model *m)
{
    int64_t expires = 0;

    if (content_after(m, m->count) < 0)
        return 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct wb_pageedit *e = &m->events[i];
        int content = content_after(m, i + 1);
        uint32_t days = content < 0 ? 0 : m->events[content].visit.lifetime;
        if (content < 0)
            expires = 0;
        else if (is_visit(e, BODIES))
            expires = days ? e->time_ms + days * DAY_MS : 0;
        else if (is_visit(e, BIT(GONE)))
            expires = e->time_ms;
        else if (is_visit(e, FAILURES) && expires && expires < e->time_ms + DAY_MS)
            expires = e->time_ms + DAY_MS;
    }
    return expires;
}

static void check_history(const struct model *m, const struct wb_webdb_page *page)
{
    uint32_t visits = 0, changes = 0;
    size_t fetches = 0;
    int64_t changed_ms = 0;

    for (size_t i = 0; i < m->count; i++) {
        const struct wb_pageedit *e = &m->events[i];
        int before = content_after(m, i);
        if (!is_visit(e, BODIES))
            continue;
        bool changed = before >= 0 && e->visit.has_content && memcmp(m->events[before].visit.md5, e->visit.md5, WB_EDIT_MD5_BYTES) != 0;
        visits += before >= 0;
        changes += changed;
        if (e->visit.has_content && (changed || before < 0))
            changed_ms = e->time_ms;
    }
    assert_same_number("visits", page->history.visits, visits);
    assert_same_number("changes", page->history.changes, changes);
    assert_same_number("last_changed_ms", page->last_changed_ms, changed_ms);
    for (size_t n = m->count; n > 0 && fetches < WB_HISTORY_FETCHES; n--)
        if (m->events[n - 1].kind == WB_PAGEEDIT_VISIT) {
            const struct wb_history_fetch *fetch = &page->history.fetches[page->history.fetch_count - ++fetches];
            assert_true(fetches <= page->history.fetch_count);
            assert_same_number("fetch", fetch->time_ms, m->events[n - 1].time_ms);
            assert_same_number("fetch", fetch->outcome, m->events[n - 1].visit.outcome);
        }
    assert_same_number("fetches", page->history.fetch_count, (int64_t)fetches);
}

static unsigned depth_of(const struct model *m)
{
    unsigned depth = UINT16_MAX;

    for (size_t i = 0; i < m->count; i++) {
        const struct wb_pageedit *e = &m->events[i];
        unsigned told = e->kind == WB_PAGEEDIT_KNOWN ? e->depth : e->kind == WB_PAGEEDIT_VISIT ? e->visit.depth : i == 0 ? 0 : UINT16_MAX;
        depth = told < depth ? told : depth;
    }
    return m->count ? depth : 0;
}

/* When it was last asked for because its lifetime ends, with no answer or reprieve since. */
static int64_t asked_of(const struct model *m)
{
    int64_t asked_ms = 0;

    for (size_t n = m->count; n > 0; n--) {
        const struct wb_pageedit *e = &m->events[n - 1];
        struct model upto = *m;
        upto.count = n - 1;
        if (e->kind == WB_PAGEEDIT_ASK && e->time_ms > asked_ms)
            asked_ms = e->time_ms;
        if (is_visit(e, ANSWERS) || (is_visit(e, FAILURES) && expires_of(&upto) && expires_of(&upto) < e->time_ms + DAY_MS))
            break;
    }
    return asked_ms;
}

static void check_page(const struct model *m, const struct wb_pagefold *fold)
{
    const struct wb_webdb_page *page = &fold->page;
    int content = content_after(m, m->count), located = last_visit(m, m->count, ANSWERS);

    assert_int_equal(fold->exists, m->state != NOTHING);
    if (!fold->exists)
        return;
    assert_same_number("flags", page->flags, flags_of(m));
    assert_same_number("first_seen_ms", page->first_seen_ms, m->first_seen_ms);
    assert_same_number("depth", page->depth, depth_of(m));
    assert_same_number("last_tried_ms", page->last_tried_ms, time_of(m, last_visit(m, m->count, ~0u)));
    assert_same_number("last_seen_ms", page->last_seen_ms, time_of(m, last_visit(m, m->count, SEEN)));
    assert_same_number("failures", page->failures, failures_before(m, m->count));
    assert_same_number("hint_ms", page->hint_ms, hint_before(m, m->count));
    assert_same_number("signals", page->signals, signals_of(m));
    assert_same_number("expires_ms", page->expires_ms, expires_of(m));
    assert_same_number("asked_ms", page->asked_ms, asked_of(m));
    assert_same_number("has_content", page->has_content, content >= 0);
    if (content >= 0) {
        assert_memory_equal(page->md5, m->events[content].visit.md5, WB_EDIT_MD5_BYTES);
        assert_same_number("bytes", (int64_t)page->bytes, (int64_t)m->events[content].visit.bytes);
    }
    assert_same_number("location", page->location.len > 0, located >= 0 && is_visit(&m->events[located], BIT(REDIRECT)));
    check_history(m, page);
    /* Whatever else: */
    assert_true(page->last_seen_ms == 0 || page->first_seen_ms <= page->last_seen_ms);
    assert_true(page->last_seen_ms <= page->last_tried_ms && (page->has_content || page->expires_ms == 0));
    assert_true(page->failures == 0 || page->last_tried_ms != 0);
}

static void become(struct model *m, const struct wb_pageedit *edit, int what)
{
    if (m->state == NOTHING || (m->state == TARGET && what == PAGE && edit->time_ms < m->first_seen_ms))
        m->first_seen_ms = edit->time_ms;
    m->state = what;
    m->count = 0;
}

static void note(struct model *m, const struct wb_pageedit *edit)
{
    if (m->state != PAGE)
        become(m, edit, PAGE);
    assert_true(m->count < EVENTS_MAX);
    m->events[m->count++] = *edit;
}

/* Whether an edit counts, and what it begins. */
static void tell_model(struct model *m, const struct wb_pageedit *edit)
{
    int64_t tried_ms = time_of(m, last_visit(m, m->count, ~0u)), seen_ms = time_of(m, last_visit(m, m->count, SEEN));

    switch (edit->kind) {
    case WB_PAGEEDIT_TARGET:
        if (m->state == NOTHING)
            become(m, edit, TARGET);
        break;
    case WB_PAGEEDIT_KNOWN:
        if (m->state != BARRED)
            note(m, edit);
        break;
    case WB_PAGEEDIT_VISIT:
        if ((m->state == PAGE || m->state == BARRED) && edit->time_ms < m->first_seen_ms)
            m->first_seen_ms = edit->time_ms;
        if (m->state != BARRED && (m->state != PAGE || edit->time_ms > tried_ms))
            note(m, edit);
        break;
    case WB_PAGEEDIT_PUSH:
        if (m->state != BARRED && (edit->count == WB_PUSH_CHANGED || m->state == PAGE) && (seen_ms == 0 || edit->time_ms > seen_ms))
            note(m, edit);
        break;
    case WB_PAGEEDIT_ASK:
        if (m->state == PAGE && content_after(m, m->count) >= 0 && edit->time_ms > tried_ms)
            note(m, edit);
        break;
    case WB_PAGEEDIT_EXPUNGE:
        if (edit->count == WB_EXPUNGE_BARRED && m->state != BARRED)
            become(m, edit, BARRED);
        if (edit->count == WB_EXPUNGE_EXPIRED && m->state == PAGE && edit->time_ms >= seen_ms)
            become(m, edit, TARGET);
        break;
    default:
        if (m->state == PAGE || m->state == BARRED)
            become(m, edit, TARGET);
    }
}

static struct wb_pageedit make_event(uint64_t *chance, int64_t time_ms)
{
    static const enum wb_pageedit_kind kinds[] = {WB_PAGEEDIT_TARGET, WB_PAGEEDIT_KNOWN, WB_PAGEEDIT_KNOWN, WB_PAGEEDIT_PUSH, WB_PAGEEDIT_ASK};
    struct wb_pageedit edit = {.time_ms = time_ms, .kind = WB_PAGEEDIT_VISIT, .url = WB_SLICE_LIT(URL)};
    uint64_t rare = chance_below(chance, 60);

    if (rare == 0) {
        edit.kind = WB_PAGEEDIT_DELETE;
    } else if (rare <= 2) {
        edit.kind = WB_PAGEEDIT_EXPUNGE;
        edit.count = rare == 1 ? WB_EXPUNGE_BARRED : WB_EXPUNGE_EXPIRED;
    } else if (rare < 30) {
        edit.kind = kinds[chance_below(chance, COUNT(kinds))];
        edit.depth = (uint16_t)chance_below(chance, 9);
        edit.wanted = chance_below(chance, 2);
        edit.hint_ms = chance_below(chance, 2) ? time_ms - (int64_t)chance_below(chance, 10 * DAY_MS) : 0;
        edit.count = 1 + (uint32_t)chance_below(chance, 2);
    } else {
        struct wb_edit_page *visit = &edit.visit;
        *visit = (struct wb_edit_page){.outcome = (uint8_t)(1 + chance_below(chance, 9)), .depth = (uint16_t)chance_below(chance, 9), .status = 200};
        visit->has_content = 1u << visit->outcome & BODIES && (visit->outcome != WB_OUTCOME_UNCHANGED || chance_below(chance, 2));
        if (visit->has_content)
            visit->md5[3] = (uint8_t)chance_below(chance, 3);
        visit->bytes = visit->has_content ? 1 + chance_below(chance, 1000) : 0;
        visit->lifetime = (uint32_t)chance_below(chance, 4) * 3;
        if (visit->outcome == WB_OUTCOME_REDIRECT)
            visit->location = WB_SLICE_LIT("http://example.org/elsewhere");
    }
    return edit;
}

/* A second time changes nothing; a push counts each time it is made. */
static void tell_again(struct bench *b, const struct wb_pageedit *edit)
{
    struct wb_buf before = WB_BUF_INIT, after = WB_BUF_INIT;

    if (edit->kind == WB_PAGEEDIT_PUSH || !b->fold.exists)
        return;
    assert_int_equal(wb_pagerow_encode(&b->fold.page, &before), 0);
    apply(b, edit);
    assert_int_equal(wb_pagerow_encode(&b->fold.page, &after), 0);
    assert_true(wb_slice_equal(wb_buf_slice(&before), wb_buf_slice(&after)));
    wb_buf_release(&before);
    wb_buf_release(&after);
}

/* Where an edit says that it touched nothing, the row is the same. */
static void tell_fold(struct bench *b, const struct wb_pageedit *edit)
{
    struct wb_buf before = WB_BUF_INIT, after = WB_BUF_INIT;
    bool existed = b->fold.exists, touched = b->fold.touched;

    b->fold.touched = false;
    if (existed)
        assert_int_equal(wb_pagerow_encode(&b->fold.page, &before), 0);
    apply(b, edit);
    if (b->fold.exists)
        assert_int_equal(wb_pagerow_encode(&b->fold.page, &after), 0);
    if (!b->fold.touched)
        assert_true(existed == b->fold.exists && wb_slice_equal(wb_buf_slice(&before), wb_buf_slice(&after)));
    b->fold.touched = touched || b->fold.touched;
    wb_buf_release(&before);
    wb_buf_release(&after);
}

static void test_lives(void **state)
{
    uint64_t chance = test_seed();
    struct bench b = {0};
    static struct model model;

    (void)state;
    for (unsigned life = 0; life < 3000; life++) {
        int64_t time_ms = T(0);
        model = (struct model){0};
        begin(&b);
        for (unsigned i = 0; i < EVENTS_MAX; i++) {
            /* Mostly later, now and then at the same moment, or told from long ago in a later merge. */
            time_ms += chance_below(&chance, 5) ? (int64_t)chance_below(&chance, 3 * DAY_MS) : 0;
            struct wb_pageedit edit = make_event(&chance, chance_below(&chance, 10) ? time_ms : time_ms - (int64_t)chance_below(&chance, 20 * DAY_MS));
            tell_fold(&b, &edit);
            tell_model(&model, &edit);
            check_page(&model, &b.fold);
            if (chance_below(&chance, 3) == 0)
                tell_again(&b, &edit);
            if (chance_below(&chance, 6) == 0)
                merge(&b);
        }
    }
    release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets),   cmocka_unit_test(test_hints),     cmocka_unit_test(test_content),   cmocka_unit_test(test_last_modified),
        cmocka_unit_test(test_redirects), cmocka_unit_test(test_pushes),    cmocka_unit_test(test_expunges),  cmocka_unit_test(test_gone_and_failures),
        cmocka_unit_test(test_additions), cmocka_unit_test(test_long_texts), cmocka_unit_test(test_damaged_row), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
