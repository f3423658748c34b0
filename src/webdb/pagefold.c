/*
 * pagefold.c - applies edits to the row of a page, one after the other in the order of time.
 *
 *   no row -> mere target -> page -> page with content ... -> mere target
 *
 * A barred page is changed by nothing except ADD and EXPUNGE. The same edit may come twice, and an archive may report
 * visits of long ago: a visit that is not later than the last one changes no content.
 *
 * This file reads no clock and writes no file. It never decides when a page is due next.
 */
#include "webdb/pagefold.h"
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "webdb/pagerow.h"
#include "webdb/spelling.h"

enum {
    PUSH_FAILURES_MAX = 3, /* after this many failures, a pushed page is treated like any other page */
    ETAG_MAX = 1024,       /* longer ones are useless as validators, or an attack */
    MODIFIED_MAX = 128,
    TYPE_MAX = 255,
};

/* The buffer of each text. */
enum fold_mem { MEM_ROW, MEM_SURT, MEM_DECODED, MEM_URL, MEM_ETAG, MEM_MODIFIED, MEM_TYPE, MEM_LOCATION };

_Static_assert(sizeof((struct wb_pagefold *)0)->mem / sizeof(struct wb_buf) == MEM_LOCATION + 1, "one buffer per text");
_Static_assert(UINT32_MAX <= INT64_MAX / WB_DAY_MS, "any number of days is a time");

/* The time so many days later; the largest time there is, if that would overflow. */
static int64_t later(int64_t time_ms, uint32_t days)
{
    int64_t span = (int64_t)days * WB_DAY_MS;

    return time_ms > INT64_MAX - span ? INT64_MAX : time_ms + span;
}

/* The time between two visits; 0 if to_ms is not later. Times come from the journal, so the difference may overflow. */
static int64_t gap_between(int64_t from_ms, int64_t to_ms)
{
    uint64_t gap = (uint64_t)to_ms - (uint64_t)from_ms;

    if (to_ms <= from_ms)
        return 0;
    return gap > INT64_MAX ? INT64_MAX : (int64_t)gap;
}

static void count_up(uint16_t *counter)
{
    *counter = (uint16_t)(*counter + (*counter < UINT16_MAX));
}

/* Copies a text into the memory of the fold. A text that is too long is treated as missing. */
static int set_text(struct wb_pagefold *fold, enum fold_mem which, struct wb_slice text, size_t max,
                    struct wb_slice *text_out)
{
    struct wb_buf *mem = &fold->mem[which];

    WB_CHECK(which <= MEM_LOCATION);
    wb_buf_clear(mem);
    *text_out = WB_SLICE_EMPTY;
    int err = text.len <= max ? wb_buf_append_slice(mem, text) : 0;
    if (err == 0 && mem->len)
        *text_out = wb_buf_slice(mem);
    WB_CHECK(text_out->len <= max);
    return err;
}

static int set_url(struct wb_pagefold *fold, struct wb_slice url)
{
    if (wb_slice_equal(fold->page.url, url))
        return 0;
    return set_text(fold, MEM_URL, url, SIZE_MAX, &fold->page.url);
}

static bool is_page(const struct wb_pagefold *fold)
{
    return fold->exists && !(fold->page.flags & WB_PAGE_TARGET);
}

/* What is true before and after every edit. */
static void check_fold(const struct wb_pagefold *fold)
{
    WB_CHECK(!fold->exists || !(fold->page.has_content && fold->page.flags & WB_PAGE_TARGET));
    WB_CHECK(fold->page.history.fetch_count <= WB_VISITLOG_FETCHES);
    WB_CHECK(fold->page.outcome <= WB_OUTCOME_ROBOTS);
    WB_CHECK(fold->page.surt.ptr != NULL);
    WB_CHECK(fold->page.url.ptr != NULL);
}

/* Forgets everything about the page except its URL and when it was first seen. */
static void forget(struct wb_pagefold *fold, unsigned flags)
{
    struct wb_webdb_page *page = &fold->page;
    struct wb_slice url = page->url, surt = page->surt;
    int64_t first_seen_ms = page->first_seen_ms;

    WB_CHECK((flags & ~(unsigned)(WB_PAGE_TARGET | WB_PAGE_BARRED)) == 0);
    memset(page, 0, sizeof *page);
    page->url = url;
    page->surt = surt;
    page->first_seen_ms = first_seen_ms;
    page->flags = flags;
    page->etag = page->modified = page->type = page->location = WB_SLICE_EMPTY;
}

int wb_pagefold_begin(struct wb_pagefold *fold, struct wb_slice surt, struct wb_slice row)
{
    struct wb_slice own_surt, own_row;

    fold->exists = fold->touched = false;
    fold->page.url = fold->page.surt = WB_SLICE_EMPTY;
    fold->page.first_seen_ms = 0;
    forget(fold, 0);
    int err = set_text(fold, MEM_SURT, surt, SIZE_MAX, &own_surt);
    if (err < 0)
        return err;
    fold->page.surt = own_surt;
    if (!row.ptr)
        return 0;
    err = set_text(fold, MEM_ROW, row, SIZE_MAX, &own_row);
    if (err == 0)
        err = wb_pagerow_decode(own_surt, own_row, &fold->mem[MEM_DECODED], &fold->page);
    fold->exists = err == 0;
    return err;
}

void wb_pagefold_release(struct wb_pagefold *fold)
{
    for (size_t i = 0; i < sizeof fold->mem / sizeof *fold->mem; i++)
        wb_buf_release(&fold->mem[i]);
    memset(fold, 0, sizeof *fold);
}

/* Makes a page (or, with that flag, a target) where there was nothing or only a target. */
static int make_page(struct wb_pagefold *fold, const struct wb_pageedit *edit, uint16_t depth, unsigned flags)
{
    struct wb_webdb_page *page = &fold->page;

    check_fold(fold);
    WB_CHECK(!is_page(fold));
    if (!fold->exists || edit->time_ms < page->first_seen_ms)
        page->first_seen_ms = edit->time_ms;
    forget(fold, flags);
    page->depth = depth;
    fold->exists = fold->touched = true;
    return set_url(fold, edit->url);
}

/* ---- mentioned ------------------------------------------------------------------------------ */

static int apply_target(struct wb_pagefold *fold, const struct wb_pageedit *edit)
{
    check_fold(fold);
    WB_CHECK(edit->kind == WB_PAGEEDIT_TARGET);
    return fold->exists ? 0 : make_page(fold, edit, 0, WB_PAGE_TARGET);
}

static void take_depth(struct wb_pagefold *fold, uint16_t depth)
{
    WB_CHECK(is_page(fold));
    if (depth >= fold->page.depth)
        return;
    fold->page.depth = depth;
    fold->touched = true;
}

static int apply_known(struct wb_pagefold *fold, const struct wb_pageedit *edit)
{
    struct wb_webdb_page *page = &fold->page;

    check_fold(fold);
    WB_CHECK(edit->kind == WB_PAGEEDIT_KNOWN);
    if (!is_page(fold)) {
        int err = make_page(fold, edit, edit->depth, 0);
        if (err < 0)
            return err;
    }
    if (page->flags & WB_PAGE_BARRED)
        return 0;
    take_depth(fold, edit->depth);
    if (edit->wanted && !(page->flags & WB_PAGE_WANTED)) {
        page->flags |= WB_PAGE_WANTED;
        fold->touched = true;
    }
    if (edit->hint_ms > page->hint_ms && edit->hint_ms > page->last_seen_ms) {
        page->hint_ms = edit->hint_ms;
        if (page->last_seen_ms)
            count_up(&page->signals);
        fold->touched = true;
    }
    return 0;
}

/* ---- visits --------------------------------------------------------------------------------- */

/* Adds a fetch to the list of the last ones. */
static void note_fetch(struct wb_visitlog *history, const struct wb_pageedit *edit)
{
    WB_CHECK(edit->kind == WB_PAGEEDIT_VISIT);
    WB_CHECK(history->fetch_count <= WB_VISITLOG_FETCHES);
    if (history->fetch_count == WB_VISITLOG_FETCHES)
        memmove(history->fetches, history->fetches + 1, sizeof *history->fetches * --history->fetch_count);
    history->fetches[history->fetch_count++] = (struct wb_visitlog_fetch){
        .time_ms = edit->time_ms, .outcome = edit->visit.outcome, .status = edit->visit.status};
}

static void clear_content(struct wb_webdb_page *page)
{
    WB_CHECK(!(page->flags & WB_PAGE_BARRED));
    page->has_content = false;
    memset(page->md5, 0, sizeof page->md5);
    page->simhash = page->title_hash = page->bytes = 0;
    page->expires_ms = 0;
    page->lifetime = 0;
    page->etag = page->modified = page->type = WB_SLICE_EMPTY;
}

/* The page was fetched, or found unchanged. */
static void note_seen(struct wb_webdb_page *page, int64_t time_ms)
{
    WB_CHECK(!(page->flags & WB_PAGE_TARGET));
    WB_CHECK(page->last_tried_ms == time_ms); /* take_outcome() comes after that was set */
    page->last_seen_ms = time_ms;
    page->failures = page->signals = 0;
    page->flags &= ~(unsigned)(WB_PAGE_GONE | WB_PAGE_PUSHED | WB_PAGE_PUSHED_GONE | WB_PAGE_BLOCKED);
}

/*
 * When the content changed to what it is now, as far as we know. before_ms: when the previous content was last seen; 0
 * if there was none. modified_ms: what the server says; it is used only if it is plausible.
 */
static int64_t changed_at(int64_t before_ms, int64_t modified_ms, int64_t time_ms)
{
    if (modified_ms <= 0 || modified_ms > time_ms)
        return time_ms;
    if (before_ms && modified_ms <= before_ms)
        return before_ms < time_ms ? before_ms + 1 : time_ms;
    return modified_ms;
}

static int set_content_texts(struct wb_pagefold *fold, const struct wb_edit_page *visit)
{
    struct wb_webdb_page *page = &fold->page;
    int err = set_text(fold, MEM_ETAG, visit->etag, ETAG_MAX, &page->etag);

    WB_CHECK(visit->has_content);
    if (err == 0)
        err = set_text(fold, MEM_MODIFIED, visit->modified, MODIFIED_MAX, &page->modified);
    if (err == 0)
        err = set_text(fold, MEM_TYPE, visit->type, TYPE_MAX, &page->type);
    return err;
}

/* The page was fetched, or it was found unchanged and we know the content. */
static int visit_content(struct wb_pagefold *fold, const struct wb_pageedit *edit)
{
    const struct wb_edit_page *visit = &edit->visit;
    struct wb_webdb_page *page = &fold->page;
    bool known = page->has_content && page->last_seen_ms != 0 && page->last_seen_ms != edit->time_ms &&
                 !(page->flags & WB_PAGE_LOADED);
    bool changed = known && memcmp(page->md5, visit->md5, WB_MD5_BYTES) != 0;
    int64_t modified_ms = 0;

    WB_CHECK(visit->has_content);
    WB_CHECK(is_page(fold));
    wb_date_parse_http(visit->modified, &modified_ms);
    if (known)
        wb_visitlog_add(&page->history, gap_between(page->last_seen_ms, edit->time_ms), changed, modified_ms,
                         edit->time_ms);
    if (!known || changed)
        page->last_changed_ms = changed_at(known ? page->last_seen_ms : 0, modified_ms, edit->time_ms);
    /* A 304 is the status of the request. The page keeps the status that its content came with. */
    if (visit->status != 304)
        page->status = visit->status;
    else if (!known || page->status == 0)
        page->status = 200;
    note_seen(page, edit->time_ms);
    page->flags &= ~(unsigned)WB_PAGE_LOADED;
    page->has_content = true;
    memcpy(page->md5, visit->md5, WB_MD5_BYTES);
    page->simhash = visit->simhash;
    page->title_hash = visit->title_hash;
    page->bytes = visit->bytes;
    page->lifetime = visit->lifetime;
    page->expires_ms = visit->lifetime ? later(edit->time_ms, visit->lifetime) : 0;
    page->location = WB_SLICE_EMPTY;
    int err = set_url(fold, edit->url);
    return err < 0 ? err : set_content_texts(fold, visit);
}

/* The server says that the page is unchanged, and we do not know its content. */
static void visit_unchanged(struct wb_webdb_page *page, const struct wb_pageedit *edit)
{
    WB_CHECK(!edit->visit.has_content);
    if (page->has_content && page->last_seen_ms)
        wb_visitlog_add(&page->history, gap_between(page->last_seen_ms, edit->time_ms), false, 0, edit->time_ms);
    if (!page->has_content || page->status == 0)
        page->status = edit->visit.status;
    note_seen(page, edit->time_ms);
    page->location = WB_SLICE_EMPTY;
    if (page->has_content)
        page->expires_ms = page->lifetime ? later(edit->time_ms, page->lifetime) : 0;
}

static int visit_redirect(struct wb_pagefold *fold, const struct wb_pageedit *edit)
{
    struct wb_webdb_page *page = &fold->page;

    WB_CHECK(edit->visit.outcome == WB_OUTCOME_REDIRECT);
    page->status = edit->visit.status;
    note_seen(page, edit->time_ms);
    page->flags &= ~(unsigned)WB_PAGE_LOADED;
    clear_content(page);
    return set_text(fold, MEM_LOCATION, edit->visit.location, WB_URL_MAX_BYTES, &page->location);
}

/* 404 or 410. */
static void visit_gone(struct wb_webdb_page *page, const struct wb_pageedit *edit)
{
    WB_CHECK(edit->visit.outcome == WB_OUTCOME_GONE);
    page->status = edit->visit.status;
    page->flags &= ~(unsigned)(WB_PAGE_PUSHED | WB_PAGE_PUSHED_GONE | WB_PAGE_BLOCKED);
    page->flags |= WB_PAGE_GONE;
    page->failures = page->signals = 0;
    page->location = WB_SLICE_EMPTY;
    /* Its lifetime is over: `expunge` will remove the content as that of any expired page. */
    if (page->has_content)
        page->expires_ms = edit->time_ms;
}

/* The visit has shown nothing about the page. If its lifetime ends today, it gets a reprieve of one day. */
static void visit_failed(struct wb_webdb_page *page, const struct wb_pageedit *edit)
{
    int64_t tomorrow_ms = later(edit->time_ms, 1);

    WB_CHECK(edit->visit.outcome == WB_OUTCOME_ERROR || edit->visit.outcome == WB_OUTCOME_LATER);
    count_up(&page->failures);
    if (edit->visit.status && !page->has_content)
        page->status = edit->visit.status;
    if (page->expires_ms && page->expires_ms < tomorrow_ms) {
        page->expires_ms = tomorrow_ms;
        page->asked_ms = 0;
    }
    if (page->failures >= PUSH_FAILURES_MAX)
        page->flags &= ~(unsigned)(WB_PAGE_PUSHED | WB_PAGE_PUSHED_GONE);
}

static void visit_robots(struct wb_webdb_page *page)
{
    page->failures = 0;
    page->flags &= ~(unsigned)(WB_PAGE_PUSHED | WB_PAGE_PUSHED_GONE);
    page->flags |= WB_PAGE_BLOCKED;
}

/*
 * Whether the location is another spelling of the same page, such as https instead of http. Returns 1, 0 or an error.
 */
static int leads_to_itself(const struct wb_pagefold *fold, struct wb_slice location)
{
    struct wb_url url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT, surt = WB_BUF_INIT;

    WB_CHECK(fold->exists);
    int err = wb_spelling_surt(location, &url, &key, &surt);
    if (err == 0)
        err = wb_slice_equal(wb_buf_slice(&surt), fold->page.surt);
    wb_url_release(&url);
    wb_buf_release(&key);
    wb_buf_release(&surt);
    return err == WB_E_INVALID ? 0 : err;
}

static int take_outcome(struct wb_pagefold *fold, const struct wb_pageedit *edit)
{
    struct wb_webdb_page *page = &fold->page;

    check_fold(fold);
    WB_CHECK(is_page(fold));
    WB_CHECK(!(page->flags & WB_PAGE_BARRED));
    switch ((enum wb_edit_outcome)edit->visit.outcome) {
    case WB_OUTCOME_STORED:
    case WB_OUTCOME_DUPLICATE:
    case WB_OUTCOME_TRUNCATED:
    case WB_OUTCOME_UNCHANGED:
        if (edit->visit.has_content)
            return visit_content(fold, edit);
        visit_unchanged(page, edit);
        break;
    case WB_OUTCOME_REDIRECT:
        return visit_redirect(fold, edit);
    case WB_OUTCOME_GONE:
        visit_gone(page, edit);
        break;
    case WB_OUTCOME_ERROR:
    case WB_OUTCOME_LATER:
        visit_failed(page, edit);
        break;
    case WB_OUTCOME_ROBOTS:
        visit_robots(page);
        break;
    }
    return 0;
}

/*
 * Of several answers of one moment, the last one that was read is the page, as in the store. But one that was cut short
 * never takes the place of one that is whole, or that has more.
 */
static bool replaces(const struct wb_webdb_page *page, const struct wb_pageedit *edit)
{
    const struct wb_edit_page *visit = &edit->visit;
    bool cut = visit->outcome == WB_OUTCOME_TRUNCATED, was_cut = page->outcome == WB_OUTCOME_TRUNCATED;
    bool answer = cut || visit->outcome == WB_OUTCOME_STORED || visit->outcome == WB_OUTCOME_DUPLICATE ||
                  visit->outcome == WB_OUTCOME_UNCHANGED;

    if (edit->time_ms != page->last_tried_ms || page->last_seen_ms != page->last_tried_ms || !page->has_content ||
        !visit->has_content || !answer)
        return false;
    if (memcmp(page->md5, visit->md5, WB_MD5_BYTES) == 0)
        return was_cut && !cut;
    return !cut || (was_cut && visit->bytes > page->bytes);
}

/* It is no further visit: nothing is learned about how often the page changes. */
static int replace_content(struct wb_pagefold *fold, const struct wb_pageedit *edit)
{
    struct wb_visitlog *history = &fold->page.history;

    check_fold(fold);
    fold->touched = true;
    fold->page.outcome = edit->visit.outcome;
    if (history->fetch_count)
        history->fetches[history->fetch_count - 1].outcome = edit->visit.outcome;
    int err = visit_content(fold, edit);
    return err < 0 ? err : 1;
}

static int apply_visit(struct wb_pagefold *fold, const struct wb_pageedit *edit)
{
    const struct wb_edit_page *visit = &edit->visit;
    struct wb_webdb_page *page = &fold->page;

    check_fold(fold);
    WB_CHECK(edit->kind == WB_PAGEEDIT_VISIT);
    if (is_page(fold) && edit->time_ms < page->first_seen_ms) {
        page->first_seen_ms = edit->time_ms;
        fold->touched = true;
    }
    bool late = page->last_tried_ms && edit->time_ms <= page->last_tried_ms;
    if (late && is_page(fold) && !(page->flags & WB_PAGE_BARRED) && replaces(page, edit))
        return replace_content(fold, edit);
    if (is_page(fold) && (page->flags & WB_PAGE_BARRED || late))
        return 0;
    int err = is_page(fold) ? 0 : make_page(fold, edit, visit->depth.links, 0);
    if (err < 0)
        return err;
    take_depth(fold, visit->depth.links);
    /* A redirect to another spelling of the same page is not news: the answer to that follows as a separate visit. */
    if (visit->outcome == WB_OUTCOME_REDIRECT) {
        int itself = leads_to_itself(fold, visit->location);
        if (itself != 0)
            return itself;
    }
    fold->touched = true;
    page->last_tried_ms = edit->time_ms;
    page->outcome = visit->outcome;
    note_fetch(&page->history, edit);
    if (visit->outcome != WB_OUTCOME_ERROR && visit->outcome != WB_OUTCOME_LATER && visit->outcome != WB_OUTCOME_ROBOTS)
        page->asked_ms = 0;
    err = take_outcome(fold, edit);
    return err < 0 ? err : 1;
}

/* ---- announced, removed, given to a crawler --------------------------------------------------- */

static int apply_push(struct wb_pagefold *fold, const struct wb_pageedit *edit)
{
    struct wb_webdb_page *page = &fold->page;
    bool gone = edit->count == WB_PUSH_GONE;

    check_fold(fold);
    WB_CHECK(edit->kind == WB_PAGEEDIT_PUSH);
    WB_CHECK(edit->count >= WB_PUSH_CHANGED);
    WB_CHECK(edit->count <= WB_PUSH_GONE);
    if (!is_page(fold)) {
        int err = gone ? 0 : make_page(fold, edit, 0, 0);
        if (gone || err < 0)
            return err;
    }
    /* If the page was fetched after the announcement, we know the news already. */
    if (page->flags & WB_PAGE_BARRED || (page->last_seen_ms && edit->time_ms <= page->last_seen_ms))
        return 0;
    fold->touched = true;
    if (gone) {
        page->flags |= WB_PAGE_PUSHED | WB_PAGE_PUSHED_GONE;
        return 0;
    }
    page->flags |= WB_PAGE_WANTED | WB_PAGE_PUSHED;
    page->flags &= ~(unsigned)WB_PAGE_PUSHED_GONE;
    count_up(&page->signals);
    return 0;
}

/* Removes the page. A mere target remains, because links may lead to it. */
static int delete_page(struct wb_pagefold *fold, unsigned flags)
{
    check_fold(fold);
    if (!is_page(fold))
        return 0;
    forget(fold, WB_PAGE_TARGET | flags);
    fold->touched = true;
    return 1;
}

/* The store has lost the page for want of room. What visits have shown is still true. */
static void evict_page(struct wb_pagefold *fold)
{
    WB_CHECK(is_page(fold) && !(fold->page.flags & WB_PAGE_BARRED));
    if (fold->page.has_content)
        clear_content(&fold->page);
    fold->page.asked_ms = 0;
    fold->touched = true;
}

static int apply_expunge(struct wb_pagefold *fold, const struct wb_pageedit *edit)
{
    struct wb_webdb_page *page = &fold->page;
    bool barred = is_page(fold) && page->flags & WB_PAGE_BARRED;
    bool seen_since = is_page(fold) && edit->time_ms < page->last_seen_ms; /* it was fetched again: it stays */

    check_fold(fold);
    WB_CHECK(edit->kind == WB_PAGEEDIT_EXPUNGE);
    WB_CHECK(edit->count >= WB_EXPUNGE_EXPIRED);
    WB_CHECK(edit->count <= WB_EXPUNGE_EVICTED);
    switch ((enum wb_expunge)edit->count) {
    case WB_EXPUNGE_EXPIRED:
        return barred || seen_since ? 0 : delete_page(fold, 0);
    case WB_EXPUNGE_DELETED:
        return barred || seen_since ? 0 : delete_page(fold, WB_PAGE_BARRED);
    case WB_EXPUNGE_EVICTED:
        if (is_page(fold) && !barred && !seen_since)
            evict_page(fold);
        return 0;
    case WB_EXPUNGE_BARRED:
        if (barred)
            return 0;
        if (!fold->exists)
            return make_page(fold, edit, 0, WB_PAGE_BARRED);
        forget(fold, WB_PAGE_BARRED);
        fold->touched = true;
        return 0;
    case WB_EXPUNGE_ALLOWED:
        if (!barred)
            return 0;
        page->flags = WB_PAGE_WANTED;
        fold->touched = true;
    }
    return 0;
}

static int apply_ask(struct wb_pagefold *fold, const struct wb_pageedit *edit)
{
    struct wb_webdb_page *page = &fold->page;

    check_fold(fold);
    WB_CHECK(edit->kind == WB_PAGEEDIT_ASK);
    if (!is_page(fold) || !page->has_content)
        return 0;
    if (edit->time_ms <= page->last_tried_ms || edit->time_ms <= page->asked_ms)
        return 0;
    page->asked_ms = edit->time_ms;
    fold->touched = true;
    return 0;
}

/* ---- added directly ------------------------------------------------------------------------- */

/* Replaces the row, or adds it. Returns 1, or 0 if ADD_ABSENT finds a page. */
static int apply_add(struct wb_pagefold *fold, const struct wb_pageedit *edit)
{
    struct wb_webdb_page *page = &fold->page;
    struct wb_slice surt = page->surt;
    bool keep = edit->kind == WB_PAGEEDIT_ADD && is_page(fold) && page->flags & WB_PAGE_SCORED;
    double score = page->score;

    check_fold(fold);
    if (edit->kind == WB_PAGEEDIT_ADD_ABSENT && is_page(fold))
        return 0;
    *page = edit->row;
    page->surt = surt;
    page->number = page->inlinks = 0;
    page->flags &= ~(unsigned)WB_PAGE_TARGET;
    if (keep) {
        page->score = score;
        page->flags |= WB_PAGE_SCORED;
    }
    fold->exists = fold->touched = true;
    int err = set_text(fold, MEM_URL, edit->row.url, SIZE_MAX, &page->url);
    if (err == 0)
        err = set_text(fold, MEM_ETAG, edit->row.etag, SIZE_MAX, &page->etag);
    if (err == 0)
        err = set_text(fold, MEM_MODIFIED, edit->row.modified, SIZE_MAX, &page->modified);
    if (err == 0)
        err = set_text(fold, MEM_TYPE, edit->row.type, SIZE_MAX, &page->type);
    if (err == 0)
        err = set_text(fold, MEM_LOCATION, edit->row.location, SIZE_MAX, &page->location);
    return err < 0 ? err : 1;
}

int wb_pagefold_apply(struct wb_pagefold *fold, const struct wb_pageedit *edit)
{
    bool before = fold->touched;
    int err = WB_E_INVALID;

    check_fold(fold);
    WB_CHECK(edit->kind >= WB_PAGEEDIT_TARGET);
    WB_CHECK(edit->kind <= WB_PAGEEDIT_ADD_ABSENT);
    fold->touched = false;
    switch (edit->kind) {
    case WB_PAGEEDIT_VISIT:
        err = apply_visit(fold, edit);
        goto done;
    case WB_PAGEEDIT_ADD:
    case WB_PAGEEDIT_ADD_SCORE:
    case WB_PAGEEDIT_ADD_ABSENT:
        err = apply_add(fold, edit);
        goto done;
    case WB_PAGEEDIT_TARGET:
        err = apply_target(fold, edit);
        break;
    case WB_PAGEEDIT_KNOWN:
        err = apply_known(fold, edit);
        break;
    case WB_PAGEEDIT_PUSH:
        err = apply_push(fold, edit);
        break;
    case WB_PAGEEDIT_EXPUNGE:
        err = apply_expunge(fold, edit);
        break;
    case WB_PAGEEDIT_ASK:
        err = apply_ask(fold, edit);
        break;
    }
    if (err == 0)
        err = fold->touched || is_page(fold);
done:
    fold->touched = fold->touched || before;
    WB_CHECK(err < 0 || !fold->exists || !fold->page.has_content || is_page(fold)); /* a mere target has no content */
    return err;
}
