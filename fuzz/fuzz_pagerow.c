/*
 * fuzz_pagerow.c - arbitrary bytes as rows of webdb and edits of pages.
 *
 * The first byte says what the rest is:
 *   0 a row of a page     1 an edit     2 a row of a site     3 a SURT     4 a row of a robots.txt
 * In 0 and 1, the second byte is the length of the SURT that follows it. Whatever is accepted
 * must be the same after it has been written and read again, and the page that an edit
 * produces can always be written.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "url/url.h"
#include "webdb/pagefold.h"
#include "webdb/pagerow.h"
#include "webdb/rulesrow.h"
#include "webdb/sitesum.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool equal(const struct wb_buf *a, const struct wb_buf *b)
{
    return wb_slice_equal(wb_buf_slice(a), wb_buf_slice(b));
}

/* Writes a page, reads it back, and writes it again. */
static void check_page(struct wb_slice surt, const struct wb_webdb_page *page)
{
    struct wb_buf row = WB_BUF_INIT, again = WB_BUF_INIT, mem = WB_BUF_INIT;
    struct wb_webdb_page read;

    WB_CHECK(wb_pagerow_encode(page, &row) == 0);
    WB_CHECK(wb_pagerow_decode(surt, wb_buf_slice(&row), &mem, &read) == 0);
    WB_CHECK(wb_slice_equal(page->url, read.url) && wb_slice_equal(page->modified, read.modified) &&
             wb_slice_equal(page->type, read.type));
    WB_CHECK(read.expires_ms == page->expires_ms && read.next_due_ms == page->next_due_ms && read.flags == page->flags);
    WB_CHECK(wb_pagerow_encode(&read, &again) == 0 && equal(&row, &again));
    wb_buf_release(&row);
    wb_buf_release(&again);
    wb_buf_release(&mem);
}

static void try_row(struct wb_slice surt, struct wb_slice row)
{
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_webdb_page page;
    int err = wb_pagerow_decode(surt, row, &mem, &page);

    WB_CHECK(err == 0 || err == WB_E_CORRUPT);
    if (err == 0)
        check_page(surt, &page);
    wb_buf_release(&mem);
}

static void try_edit(struct wb_slice surt, struct wb_slice value)
{
    struct wb_buf bytes = WB_BUF_INIT, again = WB_BUF_INIT, mem = WB_BUF_INIT, mem2 = WB_BUF_INIT;
    struct wb_pagefold fold = {0};
    struct wb_pageedit edit, read;
    int64_t time_ms = value.len >= 8 ? (int64_t)wb_get64(value.ptr + value.len - 8) : 1;
    int err = wb_pageedit_decode(surt, time_ms, value, &mem, &edit);

    WB_CHECK(err == 0 || err == WB_E_CORRUPT);
    if (err == 0) {
        WB_CHECK(wb_pageedit_encode(&edit, &bytes) == 0);
        WB_CHECK(wb_pageedit_decode(surt, time_ms, wb_buf_slice(&bytes), &mem2, &read) == 0);
        WB_CHECK(wb_slice_equal(edit.url, read.url) && edit.hint_ms == read.hint_ms && edit.kind == read.kind);
        WB_CHECK(wb_pageedit_encode(&read, &again) == 0 && equal(&bytes, &again));
        WB_CHECK(wb_pagefold_begin(&fold, surt, (struct wb_slice){NULL, 0}) == 0);
        for (int i = 0; i < 3; i++) {
            WB_CHECK(wb_pagefold_apply(&fold, &edit) >= 0);
            if (fold.exists)
                check_page(surt, &fold.page);
            edit.time_ms = edit.time_ms < INT64_MAX / 2 ? edit.time_ms + 1000000007 : edit.time_ms;
        }
    }
    wb_pagefold_release(&fold);
    wb_buf_release(&bytes);
    wb_buf_release(&again);
    wb_buf_release(&mem);
    wb_buf_release(&mem2);
}

static void try_site(struct wb_slice row)
{
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_webdb_site sum, again;
    int err = wb_sitesum_decode(row, &sum);

    WB_CHECK(err == 0 || err == WB_E_CORRUPT);
    if (err == 0) {
        WB_CHECK(wb_sitesum_encode(&sum, &bytes) == 0 && wb_sitesum_decode(wb_buf_slice(&bytes), &again) == 0);
        WB_CHECK(again.pages == sum.pages && again.fetched == sum.fetched && again.days == sum.days);
    }
    wb_buf_release(&bytes);
}

static void try_rules(struct wb_slice row)
{
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_webdb_rules rules;
    int err = wb_rulesrow_decode(row, &rules);

    WB_CHECK(err == 0 || err == WB_E_CORRUPT);
    if (err == 0)
        WB_CHECK(wb_rulesrow_encode(&rules, &bytes) == 0 && wb_slice_equal(wb_buf_slice(&bytes), row));
    wb_buf_release(&bytes);
}

static void try_surt(struct wb_slice surt)
{
    struct wb_buf key = WB_BUF_INIT, again = WB_BUF_INIT;
    int err = wb_surt_to_key(surt, &key);

    WB_CHECK(err == 0 || err == WB_E_INVALID);
    if (err == 0)
        WB_CHECK(wb_surt_of_key(wb_buf_slice(&key), &again) == 0 && wb_slice_equal(wb_buf_slice(&again), surt));
    wb_buf_release(&key);
    wb_buf_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct wb_slice rest = wb_slice((const char *)data + 1, size - 1);
    size_t surt_len = data[1] < rest.len - 1 ? data[1] : rest.len - 1;
    struct wb_slice surt = wb_slice(rest.ptr + 1, surt_len),
                    value = wb_slice(surt.ptr + surt_len, rest.len - 1 - surt_len);

    switch (data[0] % 5) {
    case 0:
        try_row(surt, value);
        break;
    case 1:
        try_edit(surt, value);
        break;
    case 2:
        try_site(rest);
        break;
    case 3:
        try_surt(rest);
        break;
    default:
        try_rules(rest);
    }
    return 0;
}
