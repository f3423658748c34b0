/* test_pagefold.c - what each edit does to a page, rule by rule. test_pagelife.c has whole lives of pages. */
#include "fold_support.h"
#include "base/date.h"

#include "../allocfail.h"

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
    assert_int_equal(apply(&b, EDIT(EXPUNGE, .time_ms = T(2), .count = WB_EXPUNGE_EXPIRED)), 0);
    assert_false(b.fold.touched);
    assert_int_equal(apply(&b, EDIT(KNOWN, .time_ms = T(2), .depth = 4, .url = WB_SLICE_LIT("https://example.org/x/"))),
                     1);
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
    apply(&b, EDIT(KNOWN, .time_ms = T(4), .hint_ms = T(3))); /* the same hint again */
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
    assert_int_equal(
        apply(&b, VISIT(T(0), STORED, CONTENT(1), .depth.links = 2, .lifetime = 10, .type = WB_SLICE_LIT("text/html"),
                        .etag = WB_SLICE_LIT("\"1\""), .modified = WB_SLICE_LIT("Sun, 06 Nov 1994 08:49:37 GMT"))),
        1);
    assert_true(page->has_content && page->md5[0] == 1 && page->status == 200 && page->depth == 2 && page->flags == 0 &&
                page->bytes == 100);
    assert_true(page->first_seen_ms == T(0) && page->last_seen_ms == T(0) && page->last_tried_ms == T(0) &&
                page->expires_ms == T(10));
    assert_true(page->last_changed_ms == 784111777000 && page->history.visits == 0 && page->history.fetch_count == 1);
    merge(&b);
    assert_same_text("etag", page->etag, WB_SLICE_LIT("\"1\""));
    /* The same visit again, and an earlier one: only the time when it was first seen changes. */
    assert_int_equal(apply(&b, VISIT(T(0), STORED, CONTENT(1))), 0);
    assert_false(b.fold.touched);
    assert_int_equal(apply(&b, VISIT(T(-5), STORED, CONTENT(9), .depth.links = 0)), 0);
    assert_true(b.fold.touched && page->first_seen_ms == T(-5) && page->md5[0] == 1 && page->depth == 2 &&
                page->history.fetch_count == 1);
    /* Unchanged, with 304: the page keeps the status of its content. */
    assert_int_equal(apply(&b, VISIT(T(3), UNCHANGED, .has_content = true, .md5 = {1}, .status = 304, .lifetime = 10)),
                     1);
    assert_true(page->status == 200 && page->history.visits == 1 && page->history.changes == 0 &&
                page->history.unchanged_days == 3);
    assert_true(page->last_changed_ms == 784111777000 && page->expires_ms == T(13) &&
                page->history.fetches[1].status == 304);
    assert_same_text("modified", page->modified, WB_SLICE_EMPTY);
    /* Changed, with an impossible time: it is corrected, and the server is never believed again. */
    apply(&b, VISIT(T(4), STORED, CONTENT(2), .modified = WB_SLICE_LIT("Sun, 06 Nov 1994 08:49:37 GMT")));
    assert_true(page->last_changed_ms == T(3) + 1 && page->history.changes == 1 && page->history.modified_lies &&
                page->expires_ms == 0);
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
    assert_true(page->history.modified_visits == 1 && page->history.modified_changes == 1 &&
                page->history.modified_days == 1);
    /* Servers that do not know the time send the epoch. */
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
    /* To another spelling of itself: the answer follows as a separate visit. */
    apply(&b, VISIT(T(1), REDIRECT, .status = 301, .location = WB_SLICE_LIT("https://example.org/x/")));
    assert_true(page->has_content && page->last_tried_ms == T(0) && page->location.len == 0 && !b.fold.touched);
    assert_int_equal(apply(&b, &(struct wb_pageedit){.kind = WB_PAGEEDIT_VISIT,
                                                     .time_ms = T(1),
                                                     .url = WB_SLICE_LIT("https://example.org/x/"),
                                                     .visit = {.outcome = WB_OUTCOME_UNCHANGED, CONTENT(1)}}),
                     1);
    assert_same_text("url", page->url, WB_SLICE_LIT("https://example.org/x/"));
    assert_int_equal(page->history.visits, 1);
    apply(&b, EDIT(PUSH, .time_ms = T(2), .count = WB_PUSH_CHANGED));
    apply(&b, VISIT(T(3), REDIRECT, .status = 302, .location = WB_SLICE_LIT("http://example.org/y")));
    assert_true(!page->has_content && page->md5[0] == 0 && page->expires_ms == 0 && page->status == 302 &&
                page->etag.len == 0);
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
    /* Failures, long before its lifetime ends and at its end. */
    apply(&b, VISIT(T(4), LATER, .status = 503));
    assert_true(page->asked_ms == T(3) && page->expires_ms == T(12) && page->status == 200 && page->failures == 1);
    apply(&b, VISIT(T(12) - 1000, ERROR, .status = 0));
    assert_true(page->asked_ms == 0 && page->expires_ms == T(13) - 1000 && page->failures == 2);
    apply(&b, EDIT(ASK, .time_ms = T(12)));
    apply(&b, VISIT(T(13), ROBOTS, .status = 0));
    assert_true(page->failures == 0 && page->flags == WB_PAGE_BLOCKED && page->has_content && page->asked_ms == T(12));
    apply(&b, VISIT(T(14), GONE, .status = 410));
    assert_true(page->flags == WB_PAGE_GONE && page->has_content && page->expires_ms == T(14) && page->asked_ms == 0 &&
                page->last_seen_ms == T(2));
    merge(&b);
    for (unsigned i = 0; i < 70000; i++)
        apply(&b, VISIT(T(15) + i, LATER, .status = 503));
    assert_int_equal(page->failures, UINT16_MAX);
    assert_true(page->history.fetch_count == WB_VISITLOG_FETCHES &&
                page->history.fetches[0].time_ms == T(15) + 70000 - 8);
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
    assert_true(page->flags == (WB_PAGE_WANTED | WB_PAGE_PUSHED) && page->signals == 1 && page->depth == 0 &&
                page->first_seen_ms == T(1));
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
    /* Announced before the fetch, but reported after it. */
    apply(&b, EDIT(PUSH, .time_ms = T(7), .count = WB_PUSH_CHANGED));
    assert_true(page->flags == WB_PAGE_WANTED && page->signals == 0 && !b.fold.touched);
    release(&b);
}

static void test_deleted_and_evicted(void **state)
{
    struct bench b = {0};
    const struct wb_webdb_page *page = &b.fold.page;

    (void)state;
    begin(&b);
    apply(&b, VISIT(T(1), STORED, CONTENT(1), .depth.links = 3, .lifetime = 4));
    /* Evicted: what visits have shown stays. */
    apply(&b, EDIT(EXPUNGE, .time_ms = T(0), .count = WB_EXPUNGE_EVICTED)); /* long ago */
    assert_true(page->has_content);
    assert_int_equal(apply(&b, EDIT(EXPUNGE, .time_ms = T(2), .count = WB_EXPUNGE_EVICTED)), 1);
    assert_true(!page->has_content && page->last_seen_ms == T(1) && page->depth == 3 && page->expires_ms == 0);
    merge(&b);
    apply(&b, VISIT(T(3), STORED, CONTENT(2)));
    assert_true(page->has_content && page->last_seen_ms == T(3));
    /* Deleted: only a target, until it is mentioned again. */
    assert_int_equal(apply(&b, EDIT(EXPUNGE, .time_ms = T(4), .count = WB_EXPUNGE_DELETED)), 1);
    assert_true(page->flags == (WB_PAGE_TARGET | WB_PAGE_BARRED) && !page->has_content && page->last_seen_ms == 0);
    merge(&b);
    assert_int_equal(apply(&b, EDIT(EXPUNGE, .time_ms = T(5), .count = WB_EXPUNGE_ALLOWED)), 0);
    assert_int_equal(apply(&b, EDIT(EXPUNGE, .time_ms = T(5), .count = WB_EXPUNGE_EVICTED)), 0);
    assert_true(page->flags == (WB_PAGE_TARGET | WB_PAGE_BARRED));
    apply(&b, EDIT(KNOWN, .time_ms = T(5), .wanted = true));
    assert_int_equal(page->flags, WB_PAGE_WANTED);
    /* A takedown of what was deleted is a takedown. */
    apply(&b, EDIT(EXPUNGE, .time_ms = T(6), .count = WB_EXPUNGE_DELETED));
    apply(&b, EDIT(EXPUNGE, .time_ms = T(7), .count = WB_EXPUNGE_BARRED));
    assert_int_equal(page->flags, WB_PAGE_BARRED);
    apply(&b, EDIT(EXPUNGE, .time_ms = T(8), .count = WB_EXPUNGE_DELETED));
    assert_int_equal(page->flags, WB_PAGE_BARRED);
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
    apply(&b, VISIT(T(1), STORED, CONTENT(1), .depth.links = 3, .lifetime = 4));
    apply(&b, EDIT(EXPUNGE, .time_ms = T(0), .count = WB_EXPUNGE_EXPIRED)); /* another content, long ago */
    assert_true(page->has_content);
    assert_int_equal(apply(&b, EDIT(EXPUNGE, .time_ms = T(6), .count = WB_EXPUNGE_EXPIRED)), 1);
    assert_true(page->flags == WB_PAGE_TARGET && !page->has_content && page->depth == 0 &&
                page->first_seen_ms == T(1) && page->last_tried_ms == 0);
    merge(&b);
    apply(&b, EDIT(EXPUNGE, .time_ms = T(7), .count = WB_EXPUNGE_BARRED));
    assert_true(page->flags == WB_PAGE_BARRED && page->first_seen_ms == T(1) && b.fold.touched);
    merge(&b);
    /* Only an explicit edit changes a barred page. */
    assert_int_equal(apply(&b, EDIT(EXPUNGE, .time_ms = T(8), .count = WB_EXPUNGE_BARRED)), 1);
    apply(&b, EDIT(KNOWN, .time_ms = T(8), .wanted = true, .hint_ms = T(8)));
    apply(&b, EDIT(PUSH, .time_ms = T(8), .count = WB_PUSH_CHANGED));
    apply(&b, EDIT(PUSH, .time_ms = T(8), .count = WB_PUSH_GONE));
    apply(&b, EDIT(EXPUNGE, .time_ms = T(8), .count = WB_EXPUNGE_EXPIRED));
    apply(&b, EDIT(ASK, .time_ms = T(8)));
    assert_int_equal(apply(&b, VISIT(T(9), STORED, CONTENT(1))), 0);
    assert_int_equal(
        apply(&b, EDIT(ADD_ABSENT, .time_ms = T(9), .row = {.url = WB_SLICE_LIT(URL), .surt = WB_SLICE_LIT(SURT)})), 0);
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
        struct wb_webdb_page row = make_page(&chance, WB_SLICE_LIT(URL), WB_SLICE_LIT(SURT)),
                             row2 = make_page(&chance, WB_SLICE_LIT(URL), WB_SLICE_LIT(SURT));
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
        assert_int_equal(
            apply(&b, keeps ? EDIT(ADD, .time_ms = T(3), .row = row2) : EDIT(ADD_SCORE, .time_ms = T(3), .row = row2)),
            1);
        if (keeps && row.flags & WB_PAGE_SCORED) {
            row2.score = row.score;
            row2.flags |= WB_PAGE_SCORED;
        }
        assert_same_page(page, &row2);
        merge(&b);
        assert_same_page(page, &row2);
    }
    release(&b);
}

/* A server may send texts of any length, but a row has limits. */
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

static int whole_life(void)
{
    static const struct wb_pageedit edits[] = {
        {.kind = WB_PAGEEDIT_TARGET, .time_ms = 1, .url = WB_SLICE_LIT(URL)},
        {.kind = WB_PAGEEDIT_VISIT,
         .time_ms = 2,
         .url = WB_SLICE_LIT(URL "/"),
         .visit = {.outcome = WB_OUTCOME_STORED,
                   CONTENT(1),
                   .type = WB_SLICE_LIT("a/b"),
                   .etag = WB_SLICE_LIT("\"e\""),
                   .modified = WB_SLICE_LIT("now")}},
        {.kind = WB_PAGEEDIT_VISIT,
         .time_ms = 3,
         .url = WB_SLICE_LIT(URL),
         .visit = {.outcome = WB_OUTCOME_REDIRECT, .location = WB_SLICE_LIT("http://b/")}},
        {.kind = WB_PAGEEDIT_ADD,
         .time_ms = 4,
         .row = {.url = WB_SLICE_LIT("https://example.org/x"),
                 .surt = WB_SLICE_LIT(SURT),
                 .etag = WB_SLICE_LIT("\"f\"")}},
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

/* Every allocation fails once: there is an error and nothing worse. */
static void test_no_memory(void **state)
{
    unsigned failures = 0;
    bool failed = true;

    (void)state;
    while (failed) {
        alloc_fail_nth(failures);
        int err = whole_life();
        failed = alloc_has_failed();
        alloc_fail_none();
        assert_int_equal(err, failed ? WB_E_NOMEM : 0);
        failures += failed;
    }
    assert_in_range(failures, 10, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets),     cmocka_unit_test(test_hints),
        cmocka_unit_test(test_content),     cmocka_unit_test(test_last_modified),
        cmocka_unit_test(test_redirects),   cmocka_unit_test(test_pushes),
        cmocka_unit_test(test_deleted_and_evicted),
        cmocka_unit_test(test_expunges),    cmocka_unit_test(test_gone_and_failures),
        cmocka_unit_test(test_additions),   cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_damaged_row), cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
