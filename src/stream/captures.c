/*
 * captures.c - all captures of a page, oldest first. It never reads the store as a whole: the caller knows the pages
 * and calls this for each.
 *
 * The times of a page's captures come from its timeline, and the bytes of each version are read after that. Another
 * process may change the page between these steps. This is noticed, because every page that is read says when it was
 * seen last; then the timeline is read again, and the work goes on after the last capture that was returned.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "stream/stream.h"

#include <stdlib.h>

#define TRIES 100

/* What is known about a content of the page. The index is that of the first version that has it. */
struct captures_content {
    bool seen;           /* its bytes were returned... */
    int64_t original_ms; /* ...in the capture of this time */
    bool ambiguous;      /* another content has the same body, but another status or type */
    uint8_t sha1[WB_SHA1_BYTES];
    struct wb_buf url; /* as it was fetched */
};

#define CAPTURES_MAGIC 0x57424374u

struct wb_captures {
    uint32_t magic;    /* CAPTURES_MAGIC from new to free */
    struct wb_captures_options options;
    struct wb_buf mem; /* of the version that was read */

    /* ---- about one page ---- */
    struct wb_pageid id;
    const struct wb_page *newest; /* as the caller has it; may be NULL */
    struct wb_store_timeline timeline;
    struct captures_content *contents; /* one for each version */
    size_t version;                    /* the current one... */
    size_t at;                         /* ...and its next capture: an index into the times */
    bool read;                         /* `page` is the current version */
    bool passed;                       /* the first capture of the current version was looked at */
    struct wb_page page;
    int64_t last_ms;     /* the capture that was returned last... */
    uint64_t last_tie;   /* ...and its number among those of its time */
    int64_t reach_ms;    /* the newest capture of the versions so far */
    int64_t skip_ms;     /* captures up to this time were returned before... */
    uint64_t skip_tie;   /* ...and so many of that time... */
    uint64_t passed_tie; /* ...of which so many were passed over */
    bool known;          /* ...and one is still there... */
    bool seeking;        /* ...and the last one was not reached yet */
    int tries;
};

int wb_captures_new(const struct wb_captures_options *options, struct wb_captures **captures_out)
{
    struct wb_captures *c = wb_alloc_zero(1, sizeof *c);

    *captures_out = c;
    if (!c)
        return WB_E_NOMEM;
    c->magic = CAPTURES_MAGIC;
    c->options = *options;
    return 0;
}

static void forget_page(struct wb_captures *c)
{
    for (size_t i = 0; c->contents && i < c->timeline.count; i++)
        wb_buf_release(&c->contents[i].url);
    wb_free(c->contents);
    c->contents = NULL;
    wb_store_timeline_release(&c->timeline);
}

void wb_captures_free(struct wb_captures *captures)
{
    if (!captures)
        return;
    WB_CHECK(captures->magic == CAPTURES_MAGIC);
    forget_page(captures);
    wb_buf_release(&captures->mem);
    captures->magic = 0;
    wb_free(captures);
}

/* ---- which captures are wanted ------------------------------------------------------------------- */

static int compare_times(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/*
 * Whether an older version with the same content has this capture too. That happens if a page was removed while a
 * snapshot held it, and its captures came back later.
 */
static bool is_repeated(const struct wb_captures *c, int64_t time_ms)
{
    const struct wb_store_version *versions = c->timeline.versions;

    for (size_t i = 0; time_ms <= c->reach_ms && i < c->version; i++)
        if (versions[i].same == versions[c->version].same && versions[i].last_ms >= time_ms &&
            bsearch(&time_ms, c->timeline.times + versions[i].first, versions[i].captures, sizeof time_ms,
                    compare_times))
            return true;
    return false;
}

static bool is_wanted(const struct wb_captures *c, size_t at)
{
    WB_CHECK(at < c->timeline.time_count);
    int64_t time_ms = c->timeline.times[at];

    return wb_selection_has_time(c->options.selection, time_ms) && !is_repeated(c, time_ms);
}

/* Goes to the next capture that is wanted, of this version or a later one; false if there is none. */
static bool find_wanted(struct wb_captures *c)
{
    for (; c->version < c->timeline.count; c->version++) {
        const struct wb_store_version *v = &c->timeline.versions[c->version];
        c->at = c->passed ? c->at : v->first;
        for (; c->at < v->first + v->captures; c->at++)
            if (is_wanted(c, c->at)) {
                c->passed = true;
                return true;
            }
        c->read = c->passed = false;
        c->reach_ms = v->last_ms > c->reach_ms ? v->last_ms : c->reach_ms;
    }
    return false;
}

/* Gives up the rest of the current version. */
static void leave_version(struct wb_captures *c)
{
    WB_CHECK(c->version < c->timeline.count);
    const struct wb_store_version *v = &c->timeline.versions[c->version];

    c->at = v->first + v->captures;
}

/* ---- contents ------------------------------------------------------------------------------------ */

/*
 * Adds a content to those that were seen. A revisit names a content by its digest. That does not say which one is
 * meant if another content of the page has the same body, so both are marked.
 */
static int note_content(struct wb_captures *c, struct captures_content *content, int64_t time_ms)
{
    wb_page_digest(&c->page);
    memcpy(content->sha1, c->page.sha1, WB_SHA1_BYTES);
    for (size_t i = 0; !content->seen && i < c->timeline.count; i++) {
        struct captures_content *other = &c->contents[i];
        if (other != content && other->seen && memcmp(other->sha1, content->sha1, WB_SHA1_BYTES) == 0)
            other->ambiguous = content->ambiguous = true;
    }
    content->seen = true;
    content->original_ms = time_ms;
    wb_buf_clear(&content->url);
    return wb_buf_append_slice(&content->url, c->page.url);
}

/* Reads the current version. Returns 1; 0 if the page has changed meanwhile; or an error. */
static int read_version(struct wb_captures *c)
{
    const struct wb_store_version *v = &c->timeline.versions[c->version];
    int got = 1;

    if (c->newest && wb_store_is_version(c->newest, v))
        c->page = *c->newest;
    else
        got = wb_store_get_version(c->options.store, c->id, v, &c->page, &c->mem);
    c->read = got > 0;
    return got;
}

/* ---- captures ------------------------------------------------------------------------------------ */

static int load_timeline(struct wb_captures *c)
{
    forget_page(c);
    c->version = 0;
    c->read = c->passed = false;
    c->reach_ms = INT64_MIN;
    int err = c->options.epoch ? wb_store_timeline_in(c->options.store, c->id, c->options.epoch, &c->timeline)
                               : wb_store_timeline(c->options.store, c->id, &c->timeline);
    if (err == WB_E_NOTFOUND) { /* taken down since somebody read it */
        c->timeline = (struct wb_store_timeline){.count = 0};
        return 0;
    }
    if (err < 0)
        return err;
    c->known = false;
    for (size_t i = 0; i < c->timeline.time_count; i++)
        c->known = c->known || c->timeline.times[i] == c->skip_ms;
    c->seeking = c->known;
    c->passed_tie = 0;
    c->contents = wb_alloc_zero(c->timeline.count + 1, sizeof *c->contents);
    return c->contents ? 0 : WB_E_NOMEM;
}

int wb_captures_begin(struct wb_captures *captures, struct wb_pageid id, const struct wb_page *newest, int64_t after_ms,
                      uint64_t after_tie)
{
    WB_CHECK(captures->magic == CAPTURES_MAGIC);
    captures->id = id;
    captures->newest = newest;
    captures->skip_ms = captures->last_ms = after_ms;
    captures->skip_tie = captures->last_tie = after_tie;
    captures->tries = 0;
    return load_timeline(captures);
}

/* Fills in the capture where the walk is. */
static int fill_capture(struct wb_captures *c, struct captures_content *content, bool first,
                        struct wb_capture *capture_out)
{
    WB_CHECK(first || content->seen);
    int64_t time_ms = c->timeline.times[c->at];
    int err = first ? note_content(c, content, time_ms) : 0;

    if (c->read)
        capture_out->page = c->page;
    else
        capture_out->page = (struct wb_page){.id = c->id, .url = wb_buf_slice(&content->url), .digested = true};
    memcpy(capture_out->page.sha1, content->sha1, WB_SHA1_BYTES);
    capture_out->page.time_ms = time_ms;
    capture_out->revisit = !first;
    capture_out->original_ms = first ? time_ms : content->original_ms;
    c->at++;
    return err;
}

/*
 * Whether a capture was returned before. Captures are not always in the order of their times (is_repeated), so the last
 * one that was returned is looked for. If it is gone, times decide.
 */
static bool was_returned(struct wb_captures *c, int64_t time_ms)
{
    bool before = c->known ? c->seeking : time_ms <= c->skip_ms;

    if (time_ms == c->skip_ms && ++c->passed_tie >= c->skip_tie)
        c->seeking = false;
    return before;
}

/*
 * Looks at the capture where the walk is. Returns 1 and the capture; 0 if the walk must go on; WB_E_BUSY if the page
 * has changed meanwhile; or an error.
 */
static int look_at(struct wb_captures *c, struct wb_capture *capture_out)
{
    const struct wb_store_version *v = &c->timeline.versions[c->version];
    struct captures_content *content = &c->contents[v->same];
    int64_t time_ms = c->timeline.times[c->at];
    bool first = !content->seen || (content->ambiguous && !c->read);

    WB_CHECK(v->same <= c->version);
    if (!c->read && (first || c->options.bodies)) {
        int got = read_version(c);
        if (got == WB_E_CORRUPT)
            leave_version(c);
        if (got <= 0)
            return got == 0 ? WB_E_BUSY : got;
        if (!wb_selection_has_type(c->options.selection, c->page.type) ||
            !wb_selection_has_status(c->options.selection, c->page.status)) {
            leave_version(c);
            return 0;
        }
    }
    int err = fill_capture(c, content, first, capture_out);
    if (err < 0)
        return err;
    if (was_returned(c, time_ms))
        return 0;
    c->last_tie = time_ms == c->last_ms ? c->last_tie + 1 : 1;
    c->last_ms = time_ms;
    capture_out->tie = c->last_tie;
    return 1;
}

int wb_captures_next(struct wb_captures *captures, struct wb_capture *capture_out)
{
    WB_CHECK(captures->magic == CAPTURES_MAGIC);
    while (find_wanted(captures)) {
        int got = look_at(captures, capture_out);
        if (got != WB_E_BUSY && got != 0)
            return got;
        if (got == 0)
            continue;
        if (++captures->tries > TRIES)
            return wb_fail(WB_E_BUSY, "a page changes faster than its versions can be read");
        captures->skip_ms = captures->last_ms;
        captures->skip_tie = captures->last_tie;
        int err = load_timeline(captures);
        if (err < 0)
            return err;
    }
    return 0;
}
