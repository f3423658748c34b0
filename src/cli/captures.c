/*
 * captures.c - writes all captures of a page to a web archive. It never reads the store as a whole: whoever scans it
 * calls this for each page.
 *
 * The times of a page's captures come from its timeline, and the bytes of each version are read after that. Another
 * process may change the page between these steps. This is noticed, because every page that is read says when it was
 * seen last; then the timeline is read again, and the work goes on after the last capture that was written.
 */
#include "cli/captures.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "cli/report.h"
#include "os/stop.h"

#include <stdlib.h>

#define TRIES 100

/* What is known about a content of the page. The index is that of the first version that has it. */
struct wb_captures_content {
    bool written;        /* its bytes are in the archive... */
    int64_t original_ms; /* ...in the record with this date */
    bool ambiguous;      /* another content has the same body, but another status or type */
    uint8_t sha1[WB_SHA1_BYTES];
    struct wb_buf url; /* as it was fetched */
    size_t listed;     /* of the n-th element: the index of the n-th content that was written */
};

static void forget_page(struct wb_captures *c)
{
    for (size_t i = 0; c->contents && i < c->timeline.count; i++)
        wb_buf_release(&c->contents[i].url);
    wb_free(c->contents);
    c->contents = NULL;
    c->content_count = 0;
    wb_store_timeline_release(&c->timeline);
}

void wb_captures_release(struct wb_captures *captures)
{
    forget_page(captures);
    wb_buf_release(&captures->mem);
}

static int load_timeline(struct wb_captures *c, struct wb_pageid id)
{
    forget_page(c);
    int err = wb_store_timeline(c->store, id, &c->timeline);
    if (err < 0)
        return err;
    c->contents = wb_alloc_zero(c->timeline.count + 1, sizeof *c->contents);
    return c->contents ? 0 : WB_E_NOMEM;
}

static int compare_times(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/*
 * Whether an older version with the same content has this capture too. That happens if a page was removed while a
 * snapshot held it, and its captures came back later.
 */
static bool is_repeated(const struct wb_captures *c, size_t version, int64_t time_ms)
{
    const struct wb_store_version *versions = c->timeline.versions;

    for (size_t i = 0; time_ms <= c->reach_ms && i < version; i++)
        if (versions[i].same == versions[version].same && versions[i].last_ms >= time_ms &&
            bsearch(&time_ms, c->timeline.times + versions[i].first, versions[i].captures, sizeof time_ms,
                    compare_times))
            return true;
    return false;
}

/* Whether a capture of a version is still to be written. */
static bool is_wanted(const struct wb_captures *c, size_t version, size_t at)
{
    int64_t time_ms = c->timeline.times[at];

    return time_ms > c->skip_ms && wb_selection_has_time(c->selection, time_ms) && !is_repeated(c, version, time_ms);
}

/* Finds the first capture of a version that is still to be written; false if there is none. */
static bool find_wanted(const struct wb_captures *c, size_t version, size_t *at_out)
{
    const struct wb_store_version *v = &c->timeline.versions[version];

    for (*at_out = v->first; *at_out < v->first + v->captures; (*at_out)++)
        if (is_wanted(c, version, *at_out))
            return true;
    return false;
}

/* Reads a version, unless it is the one that the scan has read. Returns 1, or 0 if the page has changed meanwhile. */
static int read_version(struct wb_captures *c, const struct wb_page *newest, const struct wb_store_version *v,
                        struct wb_page *page_out)
{
    *page_out = *newest;
    if (wb_store_is_version(newest, v))
        return 1;
    return wb_store_get_version(c->store, newest->id, v, page_out, &c->mem);
}

/*
 * Adds a content to those that are written. A revisit names a content by its digest. That does not say which one is
 * meant if another content of the page has the same body, so both are marked.
 */
static void list_content(struct wb_captures *c, size_t index)
{
    struct wb_captures_content *content = &c->contents[index];

    for (size_t i = 0; i < c->content_count; i++) {
        struct wb_captures_content *other = &c->contents[c->contents[i].listed];
        if (memcmp(other->sha1, content->sha1, WB_SHA1_BYTES) == 0)
            other->ambiguous = content->ambiguous = true;
    }
    WB_CHECK(c->content_count < c->timeline.count);
    c->contents[c->content_count++].listed = index;
}

static int write_bytes(struct wb_captures *c, size_t index, struct wb_page *page, int64_t time_ms)
{
    struct wb_captures_content *content = &c->contents[index];

    page->time_ms = time_ms;
    wb_page_digest(page);
    wb_buf_clear(&content->url);
    int err = wb_buf_append_slice(&content->url, page->url);
    if (err == 0)
        err = wb_warc_write_page(c->writer, page);
    if (err < 0)
        return err;
    memcpy(content->sha1, page->sha1, WB_SHA1_BYTES);
    if (!content->written)
        list_content(c, index);
    content->written = true;
    content->original_ms = time_ms;
    c->captures++;
    c->last_ms = time_ms;
    return 0;
}

static int write_revisit(struct wb_captures *c, const struct wb_captures_content *content, int64_t time_ms)
{
    struct wb_page page = {.url = wb_buf_slice(&content->url), .time_ms = time_ms, .digested = true};

    WB_CHECK(content->written);
    memcpy(page.sha1, content->sha1, WB_SHA1_BYTES);
    int err = wb_warc_write_revisit(c->writer, &page, content->original_ms);
    if (err < 0)
        return err;
    c->captures++;
    c->revisits++;
    c->last_ms = time_ms;
    return 0;
}

/* Writes the captures of one version. Returns 1, or 0 if the page has changed meanwhile. */
static int write_version(struct wb_captures *c, const struct wb_page *newest, size_t i)
{
    const struct wb_store_version *v = &c->timeline.versions[i];
    struct wb_captures_content *content = &c->contents[v->same];
    struct wb_page page;
    size_t at;
    int err = 0;

    WB_CHECK(v->same <= i);
    if (!find_wanted(c, i, &at))
        return 1;
    if (!content->written || content->ambiguous) {
        int got = read_version(c, newest, v, &page);
        if (got == WB_E_CORRUPT) {
            c->errors++;
            wb_report("%s", wb_error_message());
            return 1;
        }
        if (got <= 0)
            return got;
        if (!wb_selection_has_type(c->selection, page.type) || !wb_selection_has_status(c->selection, page.status))
            return 1;
        err = write_bytes(c, v->same, &page, c->timeline.times[at++]);
    }
    for (; err == 0 && at < v->first + v->captures; at++)
        if (is_wanted(c, i, at))
            err = write_revisit(c, content, c->timeline.times[at]);
    return err < 0 ? err : 1;
}

/* Returns 1 if all captures are written, 0 if the page has changed meanwhile. */
static int write_timeline(struct wb_captures *c, const struct wb_page *newest)
{
    int got = load_timeline(c, newest->id);

    if (got == WB_E_NOTFOUND) /* taken down since the scan read it */
        return 1;
    got = got < 0 ? got : 1;
    c->reach_ms = INT64_MIN;
    for (size_t i = 0; got > 0 && i < c->timeline.count && !wb_stop_requested(); i++) {
        int64_t last_ms = c->timeline.versions[i].last_ms;
        got = write_version(c, newest, i);
        c->reach_ms = last_ms > c->reach_ms ? last_ms : c->reach_ms;
    }
    return got;
}

int wb_captures_write(struct wb_captures *captures, const struct wb_page *newest)
{
    uint64_t before = captures->captures;
    int got = 0;

    if (!wb_selection_has_site(captures->selection, newest->key))
        return 0;
    captures->last_ms = INT64_MIN;
    for (int i = 0; got == 0 && i < TRIES; i++) {
        captures->skip_ms = captures->last_ms;
        got = write_timeline(captures, newest);
    }
    if (got == 0)
        got = wb_fail(WB_E_BUSY, "%.*s changes faster than its versions can be read", WB_SLICE_ARG(newest->url));
    captures->pages += captures->captures > before;
    return got < 0 ? got : 0;
}
