/*
 * webdb_twin.h - a naive twin of the web database: every page in an array, every link in a matrix, edits applied one
 * after the other.
 *
 * There are few URLs and few contents, so that everything happens to everything: URLs that are prefixes of others,
 * ports, two spellings of each; contents that differ in the last byte. A batch of edits is a function of its seed. The
 * same batch goes to a writer (partly by its calls, partly through the journal) and to the twin; then every call of a
 * reader must show the same. Header only, because every test program is one file.
 */
#ifndef WB_TESTS_WEBDB_TWIN_H
#define WB_TESTS_WEBDB_TWIN_H

#include "../journal/edit_support.h"
#include "base/date.h"

#include "url/url.h"
#include "webdb/webdb.h"

enum {
    TWIN_SITES = 4,
    TWIN_PATHS = 9,
    TWIN_URLS = TWIN_SITES * TWIN_PATHS,
    TWIN_MD5S = 14,
    TWIN_ANCHORS = 7,
    TWIN_EDITS_MAX = 400,
    TWIN_LINKS_MAX = 12, /* of one journal record */
    TWIN_WEEK_MS = 7 * WB_DAY_MS,
};

enum twin_kind {
    TWIN_ADD,
    TWIN_ADD_SCORE,
    TWIN_ADD_ABSENT,      /* with a link where link.there */
    TWIN_LINK,
    TWIN_JOURNAL,         /* from here on: records of the journal */
    TWIN_VISIT = TWIN_JOURNAL,
    TWIN_SEED,
    TWIN_HINT,
    TWIN_PUSH,
    TWIN_EXPUNGE,
    TWIN_ASK,
};

struct twin_link {
    bool there;
    uint8_t md5, url, anchor, tag, flags;
    bool https, slash;    /* spelling */
};

struct twin_edit {
    enum twin_kind kind;
    int64_t time_ms;
    uint8_t url;
    bool https, slash;
    int md5;              /* -1: no content */
    uint32_t variant;     /* of all other facts */
    double score;
    uint8_t outcome;
    uint16_t status, depth;
    uint32_t count;
    int64_t hint_ms;
    uint8_t location;
    struct twin_link links[TWIN_LINKS_MAX];
    size_t link_count;
    bool applied;         /* ADD_ABSENT: the page was added */
};

struct twin_page {
    bool there;
    struct wb_webdb_page row; /* its texts are constants, or the twin's URLs */
    bool by_hand;             /* it was added directly, so everything is compared */
    bool spelled_anyhow;      /* barred before it was a page: any spelling is right */
};

struct twin {
    struct twin_page pages[TWIN_URLS];
    struct twin_link links[TWIN_MD5S][TWIN_URLS];
};

struct twin_batch {
    struct twin_edit edits[TWIN_EDITS_MAX]; /* in order of arrival */
    size_t count;
    int64_t now_ms;
    /* Called for each page that is about to be written, with what was known about its site; may be NULL. */
    void (*look)(void *context, const struct wb_webdb_page *page, const struct wb_webdb_site *site);
    void *look_context;
};

/* ---- names ----------------------------------------------------------------------------------- */

static char twin_texts[TWIN_URLS][4][128];
static char twin_surts[TWIN_URLS][128];
static uint8_t twin_order[TWIN_URLS]; /* by SURT */
static const char *const twin_sites[TWIN_SITES] = {"example.org", "www.example.org:8080", "a.example", "example.com"};

static int compare_surts(const void *a, const void *b)
{
    return strcmp(twin_surts[*(const uint8_t *)a], twin_surts[*(const uint8_t *)b]);
}

UNUSED struct wb_slice twin_url(unsigned url, bool https, bool slash)
{
    return wb_slice_str(twin_texts[url][(https ? 1 : 0) + (slash ? 2 : 0)]);
}

/* Call it once, before anything else. */
UNUSED void twin_init(void)
{
    static const char *const paths[TWIN_PATHS] = {
        "", "/a", "/a/b", "/a/b/c", "/ab", "/a-", "/%C3%A4?q=1", "/a?b", "/long/path/that/goes/on/and/on"};
    struct wb_url url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT, surt = WB_BUF_INIT;

    for (unsigned i = 0; i < TWIN_URLS; i++) {
        for (unsigned s = 0; s < 4; s++) {
            const char *path = paths[i % TWIN_PATHS];
            snprintf(twin_texts[i][s], sizeof twin_texts[i][s], "%s://%s%s%s", s & 1 ? "https" : "http",
                     twin_sites[i / TWIN_PATHS], path, !*path || (s & 2 && !strchr(path, '?')) ? "/" : "");
        }
        assert_int_equal(wb_url_parse(wb_slice_str(twin_texts[i][0]), NULL, &url), 0);
        assert_int_equal(wb_url_key(&url, &key), 0);
        assert_int_equal(wb_surt_of_key(wb_buf_slice(&key), &surt), 0);
        assert_true(surt.len < sizeof twin_surts[i]);
        memcpy(twin_surts[i], surt.ptr, surt.len);
        twin_order[i] = (uint8_t)i;
    }
    qsort(twin_order, TWIN_URLS, 1, compare_surts);
    wb_url_release(&url);
    wb_buf_release(&key);
    wb_buf_release(&surt);
}

/* Contents in order: many equal bytes, and both extremes. */
UNUSED void twin_md5(int md5, uint8_t md5_out[WB_MD5_BYTES])
{
    memset(md5_out, md5 == 0 ? 0 : md5 == TWIN_MD5S - 1 ? 0xff : 0x77, WB_MD5_BYTES);
    if (md5 > 0 && md5 < TWIN_MD5S - 1)
        md5_out[md5 < 7 ? 15 : 0] = (uint8_t)(md5 < 7 ? md5 : 0x80 + md5);
}

UNUSED struct wb_slice twin_anchor(unsigned anchor)
{
    static const char *const anchors[TWIN_ANCHORS - 1] = {
        "", "home", "home page", "\xc3\xa4\xff and a bad byte", "x", "read more about it"};
    static char giant[400];

    memset(giant, 'g', sizeof giant);
    return anchor < TWIN_ANCHORS - 1 ? wb_slice_str(anchors[anchor]) : wb_slice(giant, sizeof giant);
}

UNUSED struct wb_slice twin_cut(struct wb_slice anchor)
{
    return wb_slice(anchor.ptr, anchor.len < 255 ? anchor.len : 255);
}

/* ---- facts ----------------------------------------------------------------------------------- */

static void fill_history(struct wb_visitlog *history, uint64_t *c)
{
    if (chance_below(c, 3) == 0)
        return;
    history->changes = (uint32_t)chance_below(c, 9);
    history->visits = history->changes + (uint32_t)chance_below(c, 50);
    for (unsigned i = 0; i < history->changes; i++)
        history->changed[chance_below(c, WB_VISITLOG_BINS)]++;
    history->unchanged_days = (double)chance_below(c, 1000) / 8;
    history->modified_lies = chance_below(c, 5) == 0;
    if (chance_below(c, 2)) {
        history->modified_visits = 5;
        history->modified_changes = (uint32_t)chance_below(c, 5);
        history->modified_days = 12.5;
    }
    history->fetch_count = (uint8_t)chance_below(c, WB_VISITLOG_FETCHES + 1);
    for (unsigned i = 0; i < history->fetch_count; i++)
        history->fetches[i] = (struct wb_visitlog_fetch){
            .time_ms = 1000000 + 777 * i, .outcome = (uint8_t)(1 + i % 9), .status = (uint16_t)(200 + i)};
}

/* A page as it is added directly: everything except its URL and content follows from the variant. */
static void fill_row(const struct twin_edit *edit, struct wb_webdb_page *row)
{
    static const char *const types[] = {"", "text/html", "application/pdf"}, *const etags[] = {"", "\"abc\"",
                                                                                               "W/\"0123456789\""};
    static const char *const dates[] = {"", "Sun, 06 Nov 1994 08:49:37 GMT", "yesterday",
                                        "Mon, 09 Nov 2026 00:00:00 GMT"};
    uint64_t c = edit->variant;

    *row = (struct wb_webdb_page){.url = twin_url(edit->url, edit->https, edit->slash), .score = edit->score};
    row->has_content = edit->md5 >= 0;
    if (row->has_content) {
        twin_md5(edit->md5, row->md5);
        row->simhash = chance_next(&c);
        row->title_hash = chance_next(&c);
        row->bytes = chance_below(&c, 100000);
    }
    row->flags = (unsigned)chance_below(&c, 64) & ~(unsigned)WB_PAGE_BARRED;
    row->status = (uint16_t)(chance_below(&c, 3) ? 200 : chance_below(&c, 600));
    row->outcome = (uint8_t)chance_below(&c, 10);
    row->depth = (uint16_t)(chance_below(&c, 5) ? chance_below(&c, 6) : UINT16_MAX - chance_below(&c, 2));
    row->failures = (uint16_t)chance_below(&c, 3);
    row->signals = (uint16_t)chance_below(&c, 3);
    row->first_seen_ms = 1000000000 + (int64_t)chance_below(&c, 1000);
    row->last_tried_ms = chance_below(&c, 3) ? row->first_seen_ms + (int64_t)chance_below(&c, 100000) : 0;
    row->last_seen_ms = chance_below(&c, 3) ? row->last_tried_ms : 0;
    row->last_changed_ms = row->last_seen_ms ? row->last_seen_ms - (int64_t)chance_below(&c, 2) * 5000 : 0;
    row->hint_ms = chance_below(&c, 4) ? 0 : row->first_seen_ms - 5;
    row->lifetime = row->has_content && chance_below(&c, 2) ? (uint32_t)chance_below(&c, 400) : 0;
    row->expires_ms = row->lifetime ? row->last_seen_ms + (int64_t)chance_below(&c, 1000) * WB_DAY_MS : 0;
    row->asked_ms = chance_below(&c, 5) ? 0 : row->first_seen_ms + 1;
    row->type = wb_slice_str(types[chance_below(&c, 3)]);
    row->etag = wb_slice_str(etags[chance_below(&c, 3)]);
    row->modified = wb_slice_str(dates[chance_below(&c, 4)]);
    row->location = wb_slice_str(chance_below(&c, 5) ? "" : "https://elsewhere.example/x");
    fill_history(&row->history, &c);
}

/* ---- making batches -------------------------------------------------------------------------- */

static struct twin_link random_link(uint64_t *c)
{
    return (struct twin_link){.there = true,
                              .md5 = (uint8_t)chance_below(c, TWIN_MD5S),
                              .url = (uint8_t)chance_below(c, TWIN_URLS),
                              .anchor = (uint8_t)chance_below(c, TWIN_ANCHORS),
                              .tag = (uint8_t)(1 + chance_below(c, 11)),
                              .flags = (uint8_t)chance_below(c, 4),
                              .https = chance_below(c, 2),
                              .slash = chance_below(c, 2)};
}

static void random_visit(struct twin_edit *edit, uint64_t *c)
{
    static const uint8_t outcomes[] = {WB_OUTCOME_STORED,    WB_OUTCOME_STORED,    WB_OUTCOME_STORED,
                                       WB_OUTCOME_DUPLICATE, WB_OUTCOME_TRUNCATED, WB_OUTCOME_UNCHANGED,
                                       WB_OUTCOME_REDIRECT,  WB_OUTCOME_GONE,      WB_OUTCOME_ERROR,
                                       WB_OUTCOME_LATER,     WB_OUTCOME_ROBOTS};
    uint8_t outcome = outcomes[chance_below(c, sizeof outcomes)];
    bool stored = outcome == WB_OUTCOME_STORED || outcome == WB_OUTCOME_DUPLICATE || outcome == WB_OUTCOME_TRUNCATED;

    edit->outcome = outcome;
    edit->status = (uint16_t)(stored                           ? 200
                              : outcome == WB_OUTCOME_GONE     ? 404
                              : outcome == WB_OUTCOME_REDIRECT ? 301
                                                               : 0);
    edit->location = (uint8_t)chance_below(c, TWIN_URLS);
    if (!stored) {
        edit->md5 = -1;
        return;
    }
    edit->md5 = (int)chance_below(c, TWIN_MD5S);
    edit->link_count = chance_below(c, TWIN_LINKS_MAX);
    for (size_t i = 0; i < edit->link_count; i++) {
        edit->links[i] = random_link(c);
        edit->links[i].md5 = (uint8_t)edit->md5;
    }
}

static struct twin_edit random_edit(enum twin_kind kind, int64_t now_ms, uint64_t *c)
{
    struct twin_edit edit = {.kind = kind,
                             .time_ms = now_ms,
                             .url = (uint8_t)chance_below(c, TWIN_URLS),
                             .https = chance_below(c, 2),
                             .slash = chance_below(c, 2),
                             .md5 = (int)chance_below(c, TWIN_MD5S + 2) - 2,
                             .variant = (uint32_t)chance_next(c),
                             .score = (double)chance_below(c, 100) / 4,
                             .depth = (uint16_t)chance_below(c, 4)};

    edit.md5 = edit.md5 < 0 ? -1 : edit.md5;
    if (kind == TWIN_LINK || (kind == TWIN_ADD_ABSENT && chance_below(c, 2)))
        edit.links[edit.link_count++] = random_link(c);
    if (kind >= TWIN_JOURNAL)
        edit.time_ms = now_ms - 501 + (int64_t)chance_below(c, 500);
    if (kind == TWIN_VISIT)
        random_visit(&edit, c);
    if (kind == TWIN_HINT)
        edit.hint_ms = chance_below(c, 2) ? edit.time_ms - 10 : 0;
    if (kind == TWIN_PUSH)
        edit.count = 1 + (uint32_t)chance_below(c, 2);
    if (kind == TWIN_EXPUNGE)
        edit.count = 1 + (uint32_t)chance_below(c, 3);
    return edit;
}

/* Calls, then records of the journal in the order of time, then calls. */
UNUSED void twin_batch_make(struct twin_batch *batch, uint64_t seed, int64_t now_ms, size_t calls, size_t records)
{
    static const enum twin_kind by_call[] = {TWIN_ADD,        TWIN_ADD,    TWIN_ADD_SCORE, TWIN_ADD_ABSENT, TWIN_LINK,
                                             TWIN_LINK,       TWIN_LINK,   TWIN_LINK,      TWIN_LINK};
    static const enum twin_kind told[] = {TWIN_VISIT, TWIN_VISIT, TWIN_VISIT,   TWIN_VISIT, TWIN_SEED,
                                          TWIN_HINT,  TWIN_PUSH,  TWIN_EXPUNGE, TWIN_ASK};
    size_t first = calls ? chance_below(&seed, calls) : 0;
    int64_t latest = 0;

    batch->count = 0;
    batch->now_ms = now_ms;
    batch->look = NULL;
    for (size_t i = 0; i < calls + records && i < TWIN_EDITS_MAX; i++) {
        bool journal = i >= first && i < first + records;
        enum twin_kind kind =
            journal ? told[chance_below(&seed, COUNT(told))] : by_call[chance_below(&seed, COUNT(by_call))];
        struct twin_edit edit = random_edit(kind, now_ms, &seed);
        if (journal)
            edit.time_ms = latest = edit.time_ms > latest ? edit.time_ms : latest;
        batch->edits[batch->count++] = edit;
    }
}

/* ---- the twin's rules ------------------------------------------------------------------------ */

static void forget_page(struct twin_page *page, unsigned flags)
{
    page->row = (struct wb_webdb_page){.url = page->row.url, .first_seen_ms = page->row.first_seen_ms, .flags = flags};
    page->by_hand = false;
}

static void begin_page(struct twin *twin, const struct twin_edit *edit, unsigned url, bool https, bool slash,
                       unsigned depth)
{
    struct twin_page *page = &twin->pages[url];

    if (page->there)
        return;
    *page = (struct twin_page){.there = true, .spelled_anyhow = page->spelled_anyhow};
    page->row.url = twin_url(url, https, slash);
    page->row.first_seen_ms = edit->time_ms;
    page->row.depth = (uint16_t)depth;
}

static void hear_of(struct twin *twin, const struct twin_edit *edit, unsigned url, bool https, bool slash,
                    unsigned depth, bool wanted)
{
    struct twin_page *page = &twin->pages[url];

    begin_page(twin, edit, url, https, slash, depth);
    if (page->row.flags & WB_PAGE_BARRED)
        return;
    page->row.depth = (uint16_t)(depth < page->row.depth ? depth : page->row.depth);
    page->row.flags |= wanted ? WB_PAGE_WANTED : 0;
}

static void take_answer(struct wb_webdb_page *row, const struct twin_edit *edit)
{
    bool error = edit->outcome == WB_OUTCOME_ERROR || edit->outcome == WB_OUTCOME_LATER,
         robots = edit->outcome == WB_OUTCOME_ROBOTS;

    row->last_tried_ms = edit->time_ms;
    row->outcome = edit->outcome;
    if (edit->md5 >= 0) {
        row->has_content = true;
        twin_md5(edit->md5, row->md5);
        row->simhash = edit->variant;
        row->bytes = edit->variant / 7;
        row->url = twin_url(edit->url, edit->https, edit->slash);
    }
    if (edit->outcome == WB_OUTCOME_REDIRECT) {
        row->has_content = false;
        memset(row->md5, 0, sizeof row->md5);
        row->simhash = row->bytes = 0;
    }
    if (edit->status)
        row->status = edit->status;
    else if (edit->outcome == WB_OUTCOME_UNCHANGED && (!row->has_content || row->status == 0))
        row->status = 0;
    if (!error && !robots)
        row->flags &= ~(unsigned)(WB_PAGE_GONE | WB_PAGE_BLOCKED);
    if (!error && !robots && edit->outcome != WB_OUTCOME_GONE)
        row->last_seen_ms = edit->time_ms;
    row->flags |= edit->outcome == WB_OUTCOME_GONE ? WB_PAGE_GONE : robots ? WB_PAGE_BLOCKED : 0;
}

/* Of several contents of one moment, the last one is the page; but what was cut short gives way to what has more. */
static bool replaces(const struct wb_webdb_page *row, const struct twin_edit *edit)
{
    bool cut = edit->outcome == WB_OUTCOME_TRUNCATED, was_cut = row->outcome == WB_OUTCOME_TRUNCATED;
    bool answer = cut || edit->outcome == WB_OUTCOME_STORED || edit->outcome == WB_OUTCOME_DUPLICATE ||
                  edit->outcome == WB_OUTCOME_UNCHANGED;
    uint8_t md5[WB_MD5_BYTES];

    if (!answer || edit->md5 < 0 || !row->has_content || edit->time_ms != row->last_tried_ms ||
        row->last_seen_ms != row->last_tried_ms)
        return false;
    twin_md5(edit->md5, md5);
    if (memcmp(md5, row->md5, sizeof md5) == 0)
        return was_cut && !cut;
    return !cut || (was_cut && edit->variant / 7 > row->bytes);
}

static void apply_visit(struct twin *twin, const struct twin_edit *edit)
{
    struct twin_page *page = &twin->pages[edit->url];
    bool itself = edit->outcome == WB_OUTCOME_REDIRECT && edit->location == edit->url;

    if (page->there && !(page->row.flags & WB_PAGE_BARRED) && replaces(&page->row, edit)) {
        take_answer(&page->row, edit);
        page->by_hand = page->spelled_anyhow = false;
        return;
    }
    if (page->there &&
        (page->row.flags & WB_PAGE_BARRED || (page->row.last_tried_ms && edit->time_ms <= page->row.last_tried_ms)))
        return;
    begin_page(twin, edit, edit->url, edit->https, edit->slash, edit->depth);
    page->row.depth = edit->depth < page->row.depth ? edit->depth : page->row.depth;
    page->by_hand = false;
    if (!itself)
        take_answer(&page->row, edit);
    page->spelled_anyhow = page->spelled_anyhow && edit->md5 < 0;
}

static void apply_expunge(struct twin *twin, const struct twin_edit *edit)
{
    struct twin_page *page = &twin->pages[edit->url];
    bool barred = page->there && page->row.flags & WB_PAGE_BARRED;

    page->by_hand = false;
    bool removed = edit->count == WB_EXPUNGE_EXPIRED || edit->count == WB_EXPUNGE_DELETED;
    if (removed && !barred && page->there && edit->time_ms >= page->row.last_seen_ms)
        *page = (struct twin_page){.there = false};
    if (edit->count == WB_EXPUNGE_BARRED && !barred) {
        page->spelled_anyhow = !page->there;
        begin_page(twin, edit, edit->url, edit->https, edit->slash, 0);
        forget_page(page, WB_PAGE_BARRED);
    }
    if (edit->count == WB_EXPUNGE_ALLOWED && barred)
        page->row.flags = WB_PAGE_WANTED;
}

static void apply_push(struct twin *twin, const struct twin_edit *edit)
{
    struct twin_page *page = &twin->pages[edit->url];

    if (!page->there && edit->count == WB_PUSH_GONE)
        return;
    begin_page(twin, edit, edit->url, edit->https, edit->slash, 0);
    page->by_hand = false;
    if (page->row.flags & WB_PAGE_BARRED || (page->row.last_seen_ms && edit->time_ms <= page->row.last_seen_ms))
        return;
    page->row.flags |= edit->count == WB_PUSH_GONE ? 0 : WB_PAGE_WANTED;
}

static void apply_add(struct twin *twin, struct twin_edit *edit)
{
    struct twin_page *page = &twin->pages[edit->url];
    bool scored = page->there && page->row.flags & WB_PAGE_SCORED;
    double score = page->row.score;

    edit->applied = edit->kind != TWIN_ADD_ABSENT || !page->there;
    if (!edit->applied)
        return;
    page->there = page->by_hand = true;
    page->spelled_anyhow = false;
    fill_row(edit, &page->row);
    if (edit->kind == TWIN_ADD_SCORE)
        page->row.flags |= WB_PAGE_SCORED;
    if (edit->kind == TWIN_ADD && scored) {
        page->row.score = score;
        page->row.flags |= WB_PAGE_SCORED;
    }
}

static void apply_page_edit(struct twin *twin, struct twin_edit *edit)
{
    struct twin_page *page = &twin->pages[edit->url];

    switch (edit->kind) {
    case TWIN_ADD:
    case TWIN_ADD_SCORE:
    case TWIN_ADD_ABSENT:
        apply_add(twin, edit);
        break;
    case TWIN_LINK:
        break;
    case TWIN_VISIT:
        apply_visit(twin, edit);
        if (edit->outcome == WB_OUTCOME_REDIRECT)
            hear_of(twin, edit, edit->location, true, false, edit->depth, true);
        for (size_t i = 0; i < edit->link_count; i++)
            hear_of(twin, edit, edit->links[i].url, edit->links[i].https, edit->links[i].slash, edit->depth + 1u,
                    (edit->links[i].flags & 3) == WB_PAGELINK_FOLLOW);
        break;
    case TWIN_SEED:
        hear_of(twin, edit, edit->url, edit->https, edit->slash, edit->depth, true);
        break;
    case TWIN_HINT:
        hear_of(twin, edit, edit->url, edit->https, edit->slash, 1, true);
        page->by_hand = false;
        break;
    case TWIN_PUSH:
        apply_push(twin, edit);
        break;
    case TWIN_EXPUNGE:
        apply_expunge(twin, edit);
        break;
    case TWIN_ASK:
        page->by_hand = false;
        break;
    }
}

/* Whether any page has the content. */
UNUSED bool twin_has_content(const struct twin *twin, int md5)
{
    uint8_t bytes[WB_MD5_BYTES];

    twin_md5(md5, bytes);
    for (unsigned i = 0; i < TWIN_URLS; i++)
        if (twin->pages[i].there && twin->pages[i].row.has_content &&
            memcmp(twin->pages[i].row.md5, bytes, sizeof bytes) == 0)
            return true;
    return false;
}

/* Applies the edits of pages in the order of time, then the links: drops those whose content is gone, adds new ones. */
UNUSED void twin_apply(struct twin *twin, struct twin_batch *batch)
{
    uint16_t order[TWIN_EDITS_MAX];

    for (size_t i = 0; i < batch->count; i++) {
        size_t at = i;
        for (; at > 0 && batch->edits[order[at - 1]].time_ms > batch->edits[i].time_ms; at--)
            order[at] = order[at - 1];
        order[at] = (uint16_t)i;
    }
    for (size_t i = 0; i < batch->count; i++)
        apply_page_edit(twin, &batch->edits[order[i]]);
    for (int md5 = 0; md5 < TWIN_MD5S; md5++)
        for (unsigned url = 0; url < TWIN_URLS; url++)
            twin->links[md5][url].there = twin->links[md5][url].there && twin_has_content(twin, md5);
    for (size_t i = 0; i < batch->count; i++) {
        const struct twin_edit *edit = &batch->edits[i];
        for (size_t k = 0; k < edit->link_count && (edit->kind != TWIN_ADD_ABSENT || edit->applied); k++)
            if (twin_has_content(twin, edit->links[k].md5))
                twin->links[edit->links[k].md5][edit->links[k].url] = edit->links[k];
    }
}

#endif
