/* page_support.h - makes random pages and compares pages. Header only. */
#ifndef WB_TESTS_PAGE_SUPPORT_H
#define WB_TESTS_PAGE_SUPPORT_H

#include "../journal/edit_support.h"
#include "base/date.h"
#include "webdb/pagefold.h"
#include "webdb/pagerow.h"
#include "webdb/spelling.h"

#define YEAR_MS INT64_C(31536000000)
#define BASE_MS INT64_C(1763200000000)

static const char *const page_urls[] = {
    "http://example.org/",
    "https://www.example.org/a/b",
    "https://www.example.org/a/b/",
    "http://www.example.org/a/b///",
    "http://example.org//",
    "https://example.org:8443/x?y=1&z=/",
    "https://example.org/dir/?page=2",
    "http://example.org/a?b/",
    "http://localhost/x",
    "http://localhost:8080/x/",
    "http://127.0.0.1:81/x",
    "http://192.0.2.7/",
    "http://[2001:db8::1]/x/",
    "http://[::1]:8080/",
    "http://user:secret@example.org/x",
    "http://example.org/?",
    "http://example.org/%7euser",
    "http://example.org/%2Fx%20y",
    "http://example.org/%2fx",
    "http://example.org./x",
    "http://a..b.example/x",
    "http://xn--bcher-kva.example/%C3%A4/",
    "http://a,b.example/x)y,z",
    "http://123.example/1",
    "http://example.1a/",
};

/* Mostly small numbers, and both ends of the range. */
UNUSED uint64_t odd_number(uint64_t *chance, uint64_t max)
{
    switch (chance_below(chance, 4)) {
    case 0:
        return 0;
    case 1:
        return max;
    case 2:
        return max > 300 ? chance_below(chance, 300) : chance_below(chance, max);
    default:
        return chance_next(chance) >> chance_below(chance, 64) & max;
    }
}

UNUSED int64_t odd_time(uint64_t *chance)
{
    switch (chance_below(chance, 8)) {
    case 0:
    case 1:
        return 0;
    case 2:
        return (int64_t)chance_next(chance);
    case 3:
        return chance_below(chance, 2) ? INT64_MAX : INT64_MIN;
    default:
        return BASE_MS + (int64_t)chance_below(chance, (uint64_t)YEAR_MS);
    }
}

static char odd_texts[16][300];
static unsigned odd_texts_used;

/* Valid until the function has been called sixteen more times. */
UNUSED struct wb_slice odd_text(uint64_t *chance)
{
    static const char *const usual[] = {"",
                                        "",
                                        "text/html",
                                        "text/plain",
                                        "\"abc-123\"",
                                        "W/\"x\"",
                                        "Sun, 06 Nov 1994 08:49:37 GMT",
                                        "Mon, 06 Nov 1994 08:49:37 GMT",
                                        "Thu, 31 Dec 2015 23:59:60 GMT",
                                        "http://example.org/y"};
    char *text = odd_texts[odd_texts_used++ % 16];

    if (chance_below(chance, 3))
        return wb_slice_str(usual[chance_below(chance, COUNT(usual))]);
    size_t len = (size_t)chance_below(chance, sizeof *odd_texts);
    for (size_t i = 0; i < len; i++)
        text[i] = (char)chance_next(chance);
    return wb_slice(text, len);
}

UNUSED double odd_days(uint64_t *chance)
{
    return chance_below(chance, 2) ? 0 : (double)chance_below(chance, 1000000) / 977;
}

UNUSED void make_history(uint64_t *chance, struct wb_visitlog *history)
{
    *history = (struct wb_visitlog){0};
    if (chance_below(chance, 2)) {
        history->visits = (uint32_t)odd_number(chance, UINT32_MAX);
        history->changes = (uint32_t)odd_number(chance, UINT32_MAX);
        history->unchanged_days = odd_days(chance);
        for (unsigned i = 0; i < WB_VISITLOG_BINS; i++)
            history->changed[i] = chance_below(chance, 4) ? 0 : (uint16_t)odd_number(chance, UINT16_MAX);
    }
    if (chance_below(chance, 2)) {
        history->modified_lies = chance_below(chance, 2);
        history->modified_visits = (uint32_t)odd_number(chance, UINT32_MAX);
        history->modified_changes = (uint32_t)odd_number(chance, UINT32_MAX);
        history->modified_days = odd_days(chance);
    }
    history->fetch_count = (uint8_t)chance_below(chance, WB_VISITLOG_FETCHES + 1);
    for (unsigned i = 0; i < history->fetch_count; i++)
        history->fetches[i] = (struct wb_visitlog_fetch){.time_ms = odd_time(chance),
                                                        .outcome = (uint8_t)chance_below(chance, WB_OUTCOME_ROBOTS + 1),
                                                        .status = (uint16_t)odd_number(chance, UINT16_MAX)};
}

/* A page with random values, as far as a row can hold them. */
UNUSED struct wb_webdb_page make_page(uint64_t *chance, struct wb_slice url, struct wb_slice surt)
{
    struct wb_webdb_page page = {.url = url,
                                 .surt = surt,
                                 .flags = (unsigned)chance_below(chance, 512),
                                 .bytes = odd_number(chance, UINT64_MAX),
                                 .status = (uint16_t)odd_number(chance, UINT16_MAX),
                                 .outcome = (uint8_t)chance_below(chance, WB_OUTCOME_ROBOTS + 1),
                                 .depth = (uint16_t)odd_number(chance, UINT16_MAX),
                                 .failures = (uint16_t)odd_number(chance, UINT16_MAX),
                                 .signals = (uint16_t)odd_number(chance, UINT16_MAX),
                                 .first_seen_ms = odd_time(chance),
                                 .last_seen_ms = odd_time(chance),
                                 .last_tried_ms = odd_time(chance),
                                 .last_changed_ms = odd_time(chance),
                                 .hint_ms = odd_time(chance),
                                 .next_due_ms = odd_time(chance),
                                 .expires_ms = odd_time(chance),
                                 .asked_ms = odd_time(chance),
                                 .lifetime = (uint32_t)odd_number(chance, UINT32_MAX),
                                 .score = chance_below(chance, 2) ? 0 : (double)(int64_t)chance_next(chance) / 7e15,
                                 .etag = odd_text(chance),
                                 .modified = odd_text(chance),
                                 .type = odd_text(chance),
                                 .location = odd_text(chance)};

    page.has_content = !(page.flags & WB_PAGE_TARGET) && chance_below(chance, 2);
    if (page.has_content) {
        for (unsigned i = 0; i < WB_MD5_BYTES; i++)
            page.md5[i] = (uint8_t)chance_next(chance);
        page.simhash = chance_next(chance);
        page.title_hash = chance_below(chance, 2) ? chance_next(chance) : 0;
    }
    if (chance_below(chance, 2))
        page.expires_ms =
            page.lifetime ? (int64_t)((uint64_t)page.last_seen_ms + page.lifetime * (uint64_t)WB_DAY_MS) : 0;
    make_history(chance, &page.history);
    return page;
}

#define same_number(a, b, field) assert_same_number(#field, (int64_t)(a)->field, (int64_t)(b)->field)
#define same_text(a, b, field) assert_same_text(#field, (a)->field, (b)->field)

UNUSED void assert_same_number(const char *field, int64_t a, int64_t b)
{
    if (a != b)
        fail_msg("%s: %lld is not %lld", field, (long long)a, (long long)b);
}

UNUSED void assert_same_text(const char *field, struct wb_slice a, struct wb_slice b)
{
    if (!wb_slice_equal(a, b))
        fail_msg("%s: '%.*s' is not '%.*s'", field, WB_SLICE_ARG(a), WB_SLICE_ARG(b));
}

UNUSED void assert_same_history(const struct wb_webdb_page *a, const struct wb_webdb_page *b)
{
    same_number(a, b, history.visits);
    same_number(a, b, history.changes);
    assert_true(a->history.unchanged_days == b->history.unchanged_days);
    assert_memory_equal(a->history.changed, b->history.changed, sizeof a->history.changed);
    same_number(a, b, history.modified_lies);
    same_number(a, b, history.modified_visits);
    same_number(a, b, history.modified_changes);
    assert_true(a->history.modified_days == b->history.modified_days);
    same_number(a, b, history.fetch_count);
    for (unsigned i = 0; i < a->history.fetch_count; i++) {
        same_number(a, b, history.fetches[i].time_ms);
        same_number(a, b, history.fetches[i].outcome);
        same_number(a, b, history.fetches[i].status);
    }
}

UNUSED void assert_same_page(const struct wb_webdb_page *a, const struct wb_webdb_page *b)
{
    same_text(a, b, url);
    same_text(a, b, surt);
    same_number(a, b, flags);
    same_number(a, b, has_content);
    assert_memory_equal(a->md5, b->md5, sizeof a->md5);
    same_number(a, b, simhash);
    same_number(a, b, title_hash);
    same_number(a, b, bytes);
    same_number(a, b, status);
    same_number(a, b, outcome);
    same_number(a, b, depth);
    same_number(a, b, failures);
    same_number(a, b, signals);
    same_number(a, b, first_seen_ms);
    same_number(a, b, last_seen_ms);
    same_number(a, b, last_tried_ms);
    same_number(a, b, last_changed_ms);
    same_number(a, b, hint_ms);
    same_number(a, b, next_due_ms);
    same_number(a, b, expires_ms);
    same_number(a, b, asked_ms);
    same_number(a, b, lifetime);
    assert_true(a->score == b->score);
    same_text(a, b, etag);
    same_text(a, b, modified);
    same_text(a, b, type);
    same_text(a, b, location);
    assert_same_history(a, b);
}

UNUSED void surt_of(const char *url_text, struct wb_buf *surt_out)
{
    struct wb_url url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT;

    if (wb_spelling_surt(wb_slice_str(url_text), &url, &key, surt_out) < 0)
        fail_msg("%s", wb_error_message());
    wb_url_release(&url);
    wb_buf_release(&key);
}

#endif
