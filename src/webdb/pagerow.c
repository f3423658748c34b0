/*
 * pagerow.c - what is known about a page, as bytes.
 *
 *   word     varint: which of the fields below are there (enum row_bits), and how the URL is spelled
 *   URL      text, if the SURT does not give it
 *   first seen, depth, flags, then the other fields in the order of their bits
 *
 * Times are stored as distances from earlier fields. A field that is zero or empty takes no space: a page that was only
 * mentioned takes eight to ten bytes.
 *
 * A row is valid if and only if no unknown bit is set, every number is in the range of its field, the outcome exists,
 * scores and days are finite, a mere target has no content, and nothing follows. Rows have no checksum and no version,
 * because their table has both.
 */
#include "webdb/pagerow.h"
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/fields.h"
#include "webdb/spelling.h"

#include <math.h>

enum row_bits {
    ROW_SPELLING = 7, /* enum wb_spelling */
    ROW_DEPTH = 1 << 3,
    ROW_WANTED = 1 << 4,
    ROW_TARGET = 1 << 5,
    ROW_FLAGS = 1 << 6, /* a byte with the other flags */
    ROW_TRIED = 1 << 7,
    ROW_OUTCOME = 1 << 8, /* outcome and status */
    ROW_SEEN = 1 << 9,
    ROW_CHANGED = 1 << 10,
    ROW_CONTENT = 1 << 11,
    ROW_BYTES = 1 << 12,
    ROW_DUE = 1 << 13,
    ROW_LIFETIME = 1 << 14,
    ROW_FETCHES = 1 << 15,
    ROW_HTML = 1 << 16, /* the type is text/html */
    ROW_ETAG = 1 << 17,
    ROW_MODIFIED_TIME = 1 << 18, /* Last-Modified is a date as HTTP writes it */
    ROW_HISTORY = 1 << 19,
    ROW_MODIFIED_HISTORY = 1 << 20,
    ROW_TYPE = 1 << 21,
    ROW_MODIFIED = 1 << 22,
    ROW_LOCATION = 1 << 23,
    ROW_HINT = 1 << 24,
    ROW_EXPIRES = 1 << 25, /* at another moment than last seen and lifetime give */
    ROW_ASKED = 1 << 26,
    ROW_SCORE = 1 << 27,
    ROW_FAILURES = 1 << 28,
    ROW_SIGNALS = 1 << 29,
    ROW_BITS = (1 << 30) - 1,
};

enum {
    OTHER_FLAGS = WB_PAGE_GONE | WB_PAGE_PUSHED | WB_PAGE_PUSHED_GONE | WB_PAGE_BARRED | WB_PAGE_BLOCKED |
                  WB_PAGE_SCORED | WB_PAGE_LOADED,
    ALL_FLAGS = OTHER_FLAGS | WB_PAGE_WANTED | WB_PAGE_TARGET,
    OUTCOME_BITS = 4,
    CONTENT_BYTES = WB_MD5_BYTES + 16,
    LIES = 1, MODIFIED_COUNTS = 2,
    /* An upper bound for everything but the texts. */
    FIXED_MAX = 32 * WB_VARINT_MAX + CONTENT_BYTES + 3 * 8 + 2 * WB_VISITLOG_FETCHES * WB_VARINT_MAX +
                2 * WB_VISITLOG_BINS * WB_VARINT_MAX,
};

_Static_assert(OTHER_FLAGS == 0xfe, "the other flags make a byte");
_Static_assert((OTHER_FLAGS & (WB_PAGE_WANTED | WB_PAGE_TARGET)) == 0, "these two have bits of their own in the word");
_Static_assert((int)ROW_SPELLING == (WB_SPELLING_HTTPS | WB_SPELLING_SLASH | WB_SPELLING_TEXT), "any spelling fits");
_Static_assert((int)ROW_DEPTH == ROW_SPELLING + 1, "the bits of the fields follow the spelling");
_Static_assert((int)ROW_BITS == 2 * ROW_SIGNALS - 1, "ROW_BITS has all bits up to the last one");
_Static_assert(CONTENT_BYTES == 16 + 8 + 8, "MD5, simhash and the hash of the title");
_Static_assert(sizeof(double) == 8, "a double is stored as eight bytes");
_Static_assert(WB_PAGE_GONE == 2 && WB_PAGE_PUSHED == 4 && WB_PAGE_PUSHED_GONE == 8, "flags as they are on disk");
_Static_assert(WB_PAGE_BARRED == 16 && WB_PAGE_BLOCKED == 32, "flags as they are on disk");
_Static_assert(WB_PAGE_SCORED == 64 && WB_PAGE_LOADED == 128, "flags as they are on disk");
_Static_assert(WB_OUTCOME_STORED == 1 && WB_OUTCOME_ROBOTS == 9, "outcomes as they are on disk");
_Static_assert(WB_VISITLOG_BINS == 40 && WB_VISITLOG_FETCHES == 8, "limits as they are on disk");
_Static_assert(WB_OUTCOME_ROBOTS < 1 << OUTCOME_BITS, "an outcome fits beside a status");
_Static_assert(WB_VISITLOG_FETCHES < 128 && WB_VISITLOG_BINS < 128, "counts of one byte");

static const struct wb_slice html = {"text/html", 9};

/* When a page expires according to its lifetime. Computed modulo 2^64, because a row may hold any times. */
static int64_t expires_by_lifetime(const struct wb_webdb_page *page)
{
    return page->lifetime ? (int64_t)((uint64_t)page->last_seen_ms + (uint64_t)page->lifetime * WB_DAY_MS) : 0;
}

/* The time that next_due_ms is stored relative to. */
static int64_t due_base(const struct wb_webdb_page *page)
{
    return page->last_tried_ms ? page->last_tried_ms : page->first_seen_ms;
}

/* Whether no two bits are set that exclude each other. */
static bool word_is_valid(uint64_t word)
{
    WB_CHECK((word & ~(uint64_t)ROW_BITS) == 0);
    return !(word & WB_SPELLING_TEXT && word & (WB_SPELLING_HTTPS | WB_SPELLING_SLASH)) &&
           !(word & ROW_HTML && word & ROW_TYPE) && !(word & ROW_MODIFIED_TIME && word & ROW_MODIFIED) &&
           !(word & ROW_TARGET && word & ROW_CONTENT);
}

/* ---- writing ------------------------------------------------------------------------------- */

static bool is_day_sum(double days)
{
    return isfinite(days) && days >= 0;
}

static int check_page(const struct wb_webdb_page *page)
{
    const struct wb_visitlog *history = &page->history;
    bool good = (page->flags & ~(unsigned)ALL_FLAGS) == 0 && page->outcome <= WB_OUTCOME_ROBOTS;

    good = good && isfinite(page->score) && !(page->has_content && page->flags & WB_PAGE_TARGET);
    good = good && history->fetch_count <= WB_VISITLOG_FETCHES;
    good = good && is_day_sum(history->unchanged_days) && is_day_sum(history->modified_days);
    for (unsigned i = 0; good && i < history->fetch_count; i++)
        good = history->fetches[i].outcome <= WB_OUTCOME_ROBOTS;
    if (good)
        return 0;
    return wb_fail(WB_E_INVALID, "%.*s: a value of the page is out of range",
                   page->url.len > 160 ? 160 : (int)page->url.len, page->url.ptr);
}

static bool has_history(const struct wb_visitlog *history)
{
    static const uint16_t none[WB_VISITLOG_BINS];

    return history->visits || history->changes || history->unchanged_days > 0 ||
           memcmp(history->changed, none, sizeof none) != 0;
}

static bool has_modified_counts(const struct wb_visitlog *history)
{
    return history->modified_visits || history->modified_changes || history->modified_days > 0;
}

/* If the text is exactly a date as HTTP writes it, returns true and the date in seconds. */
static bool plain_date(struct wb_slice text, int64_t *seconds_out)
{
    char again[WB_DATE_HTTP_BYTES];
    int64_t time_ms;

    *seconds_out = 0;
    if (!wb_date_parse_http(text, &time_ms) || !wb_date_format_http(time_ms, again))
        return false;
    if (text.len < sizeof again || memcmp(again, text.ptr, sizeof again) != 0)
        return false;
    WB_CHECK(time_ms % 1000 == 0); /* HTTP has no fractions of a second, so nothing is lost */
    *seconds_out = time_ms / 1000;
    return true;
}

/* The bits of the texts that the page has. *modified_out: Last-Modified in seconds, if it is stored as a time. */
static unsigned text_bits(const struct wb_webdb_page *page, int64_t *modified_out)
{
    unsigned word = 0;

    *modified_out = 0;
    if (page->type.len)
        word |= wb_slice_equal(page->type, html) ? ROW_HTML : ROW_TYPE;
    if (page->modified.len)
        word |= plain_date(page->modified, modified_out) ? ROW_MODIFIED_TIME : ROW_MODIFIED;
    WB_CHECK(*modified_out == 0 || word & ROW_MODIFIED_TIME);
    return word | (page->etag.len ? ROW_ETAG : 0) | (page->location.len ? ROW_LOCATION : 0);
}

/* The bits of everything else that is not zero. */
static unsigned number_bits(const struct wb_webdb_page *page)
{
    uint64_t score = 0;
    unsigned word = 0;

    WB_CHECK((page->flags & ~(unsigned)ALL_FLAGS) == 0);
    memcpy(&score, &page->score, sizeof score);
    word |= page->depth ? ROW_DEPTH : 0;
    word |= page->flags & WB_PAGE_WANTED ? ROW_WANTED : 0;
    word |= page->flags & WB_PAGE_TARGET ? ROW_TARGET : 0;
    word |= page->flags & OTHER_FLAGS ? ROW_FLAGS : 0;
    word |= page->last_tried_ms ? ROW_TRIED : 0;
    word |= page->outcome || page->status ? ROW_OUTCOME : 0;
    word |= page->last_seen_ms ? ROW_SEEN : 0;
    word |= page->last_changed_ms ? ROW_CHANGED : 0;
    word |= page->has_content ? ROW_CONTENT : 0;
    word |= page->bytes ? ROW_BYTES : 0;
    word |= page->next_due_ms ? ROW_DUE : 0;
    word |= page->lifetime ? ROW_LIFETIME : 0;
    word |= page->expires_ms != expires_by_lifetime(page) ? ROW_EXPIRES : 0;
    word |= page->history.fetch_count ? ROW_FETCHES : 0;
    word |= has_history(&page->history) ? ROW_HISTORY : 0;
    word |= page->history.modified_lies || has_modified_counts(&page->history) ? ROW_MODIFIED_HISTORY : 0;
    word |= page->hint_ms ? ROW_HINT : 0;
    word |= page->asked_ms ? ROW_ASKED : 0;
    word |= score ? ROW_SCORE : 0;
    word |= page->failures ? ROW_FAILURES : 0;
    word |= page->signals ? ROW_SIGNALS : 0;
    WB_CHECK((word & ROW_SPELLING) == 0); /* wb_spelling_of() sets those bits */
    return word;
}

static char *put_content(char *p, const struct wb_webdb_page *page)
{
    WB_CHECK(page->has_content);
    WB_CHECK(!(page->flags & WB_PAGE_TARGET));
    memcpy(p, page->md5, WB_MD5_BYTES);
    wb_put64(p + WB_MD5_BYTES, page->simhash);
    wb_put64(p + WB_MD5_BYTES + 8, page->title_hash);
    return p + CONTENT_BYTES;
}

/* The newest comes first: its time is nearly always that of the last attempt, so the distance is 0. */
static char *put_fetches(char *p, const struct wb_webdb_page *page)
{
    const struct wb_visitlog *history = &page->history;
    int64_t after_ms = page->last_tried_ms;

    WB_CHECK(history->fetch_count >= 1);
    WB_CHECK(history->fetch_count <= WB_VISITLOG_FETCHES);
    p = wb_fields_put(p, history->fetch_count);
    for (unsigned i = history->fetch_count; i-- > 0;) {
        const struct wb_visitlog_fetch *fetch = &history->fetches[i];
        WB_CHECK(fetch->outcome <= WB_OUTCOME_ROBOTS);
        p = wb_fields_put_time(p, fetch->time_ms, after_ms);
        p = wb_fields_put(p, (uint64_t)fetch->status << OUTCOME_BITS | fetch->outcome);
        after_ms = fetch->time_ms;
    }
    return p;
}

static char *put_history(char *p, const struct wb_visitlog *history)
{
    unsigned bins = 0, next = 0;

    WB_CHECK(has_history(history)); /* otherwise it takes no space */
    WB_CHECK(is_day_sum(history->unchanged_days));
    for (unsigned i = 0; i < WB_VISITLOG_BINS; i++)
        bins += history->changed[i] != 0;
    p = wb_fields_put(p, history->visits);
    p = wb_fields_put(p, history->changes);
    p = wb_fields_put_double(p, history->unchanged_days);
    p = wb_fields_put(p, bins);
    for (unsigned i = 0; i < WB_VISITLOG_BINS; i++) {
        if (!history->changed[i])
            continue;
        p = wb_fields_put(p, i - next);
        p = wb_fields_put(p, history->changed[i]);
        next = i + 1;
        bins--;
    }
    WB_CHECK(bins == 0); /* as many bins as the count before them says */
    return p;
}

static char *put_modified_history(char *p, const struct wb_visitlog *history)
{
    bool counts = has_modified_counts(history);

    WB_CHECK(history->modified_lies || counts);
    WB_CHECK(is_day_sum(history->modified_days));
    p = wb_fields_put(p, (history->modified_lies ? LIES : 0u) | (counts ? MODIFIED_COUNTS : 0u));
    if (!counts)
        return p;
    p = wb_fields_put(p, history->modified_visits);
    p = wb_fields_put(p, history->modified_changes);
    return wb_fields_put_double(p, history->modified_days);
}

static char *put_numbers(char *p, const struct wb_webdb_page *page, unsigned word)
{
    WB_CHECK(!(word & ROW_CONTENT) == !page->has_content);
    WB_CHECK(!(word & ROW_TARGET) == !(page->flags & WB_PAGE_TARGET));
    WB_CHECK(page->outcome <= WB_OUTCOME_ROBOTS);
    p = wb_fields_put_time(p, page->first_seen_ms, 0);
    if (word & ROW_DEPTH)
        p = wb_fields_put(p, page->depth);
    if (word & ROW_FLAGS)
        *p++ = (char)(page->flags & OTHER_FLAGS);
    if (word & ROW_TRIED)
        p = wb_fields_put_time(p, page->last_tried_ms, page->first_seen_ms);
    if (word & ROW_OUTCOME)
        p = wb_fields_put(p, (uint64_t)page->status << OUTCOME_BITS | page->outcome);
    if (word & ROW_SEEN)
        p = wb_fields_put_time(p, page->last_seen_ms, page->last_tried_ms);
    if (word & ROW_CHANGED)
        p = wb_fields_put_time(p, page->last_changed_ms, page->last_seen_ms);
    if (word & ROW_CONTENT)
        p = put_content(p, page);
    if (word & ROW_BYTES)
        p = wb_fields_put(p, page->bytes);
    if (word & ROW_DUE)
        p = wb_fields_put_time(p, page->next_due_ms, due_base(page));
    if (word & ROW_LIFETIME)
        p = wb_fields_put(p, page->lifetime);
    return p;
}

static char *put_rest(char *p, const struct wb_webdb_page *page, unsigned word, int64_t modified)
{
    WB_CHECK(modified == 0 || word & ROW_MODIFIED_TIME);
    WB_CHECK(isfinite(page->score));
    if (word & ROW_FETCHES)
        p = put_fetches(p, page);
    if (word & ROW_ETAG)
        p = wb_fields_put_text(p, page->etag);
    if (word & ROW_MODIFIED_TIME)
        p = wb_fields_put_time(p, modified, 0);
    if (word & ROW_HISTORY)
        p = put_history(p, &page->history);
    if (word & ROW_MODIFIED_HISTORY)
        p = put_modified_history(p, &page->history);
    if (word & ROW_TYPE)
        p = wb_fields_put_text(p, page->type);
    if (word & ROW_MODIFIED)
        p = wb_fields_put_text(p, page->modified);
    if (word & ROW_LOCATION)
        p = wb_fields_put_text(p, page->location);
    if (word & ROW_HINT)
        p = wb_fields_put_time(p, page->hint_ms, page->last_seen_ms);
    if (word & ROW_EXPIRES)
        p = wb_fields_put_time(p, page->expires_ms, page->last_seen_ms);
    if (word & ROW_ASKED)
        p = wb_fields_put_time(p, page->asked_ms, page->expires_ms);
    if (word & ROW_SCORE)
        p = wb_fields_put_short_double(p, page->score);
    if (word & ROW_FAILURES)
        p = wb_fields_put(p, page->failures);
    if (word & ROW_SIGNALS)
        p = wb_fields_put(p, page->signals);
    return p;
}

int wb_pagerow_encode(const struct wb_webdb_page *page, struct wb_buf *row_out)
{
    size_t text = page->url.len + page->type.len + page->etag.len + page->modified.len + page->location.len;
    int64_t modified = 0;
    int err = check_page(page);

    WB_CHECK(page->url.ptr != NULL);
    WB_CHECK(row_out->len <= row_out->cap);
    if (err == 0)
        err = wb_buf_reserve(row_out, FIXED_MAX + text);
    if (err < 0)
        return err;
    unsigned word = wb_spelling_of(page->surt, page->url) | number_bits(page) | text_bits(page, &modified);
    WB_CHECK(word_is_valid(word)); /* otherwise the row could not be read back */
    char *p = wb_fields_put(row_out->ptr + row_out->len, word);
    if (word & WB_SPELLING_TEXT)
        p = wb_fields_put_text(p, page->url);
    p = put_numbers(p, page, word);
    p = put_rest(p, page, word, modified);
    WB_CHECK((size_t)(p - row_out->ptr) <= row_out->len + FIXED_MAX + text); /* it fits into what was reserved */
    row_out->len = (size_t)(p - row_out->ptr);
    return 0;
}

/* ---- reading ------------------------------------------------------------------------------- */

static void take_outcome(struct wb_fields *r, uint8_t *outcome_out, uint16_t *status_out)
{
    uint64_t v = wb_fields_take(r, (uint64_t)UINT16_MAX << OUTCOME_BITS | ((1 << OUTCOME_BITS) - 1));

    *outcome_out = (uint8_t)(v & ((1 << OUTCOME_BITS) - 1));
    *status_out = (uint16_t)(v >> OUTCOME_BITS);
    r->ok = r->ok && *outcome_out <= WB_OUTCOME_ROBOTS;
}

static double take_days(struct wb_fields *r)
{
    double days = wb_fields_take_double(r);

    r->ok = r->ok && is_day_sum(days);
    return days;
}

static void take_content(struct wb_fields *r, struct wb_webdb_page *page)
{
    const char *p = wb_fields_take_bytes(r, CONTENT_BYTES);

    WB_CHECK(!page->has_content);
    if (!p)
        return;
    page->has_content = true;
    memcpy(page->md5, p, WB_MD5_BYTES);
    page->simhash = wb_get64(p + WB_MD5_BYTES);
    page->title_hash = wb_get64(p + WB_MD5_BYTES + 8);
}

static void take_fetches(struct wb_fields *r, struct wb_webdb_page *page)
{
    struct wb_visitlog *history = &page->history;
    int64_t after_ms = page->last_tried_ms;

    WB_CHECK(history->fetch_count == 0);
    history->fetch_count = (uint8_t)wb_fields_take(r, WB_VISITLOG_FETCHES);
    WB_CHECK(history->fetch_count <= WB_VISITLOG_FETCHES); /* the array has no more */
    for (unsigned i = history->fetch_count; i-- > 0;) {
        struct wb_visitlog_fetch *fetch = &history->fetches[i];
        after_ms = fetch->time_ms = wb_fields_take_time(r, after_ms);
        take_outcome(r, &fetch->outcome, &fetch->status);
    }
}

static void take_history(struct wb_fields *r, struct wb_visitlog *history)
{
    uint64_t next = 0;

    WB_CHECK(history->visits == 0);
    history->visits = (uint32_t)wb_fields_take(r, UINT32_MAX);
    history->changes = (uint32_t)wb_fields_take(r, UINT32_MAX);
    history->unchanged_days = take_days(r);
    uint64_t bins = wb_fields_take(r, WB_VISITLOG_BINS);
    WB_CHECK(bins <= WB_VISITLOG_BINS);
    for (uint64_t i = 0; i < bins && r->ok; i++) {
        uint64_t bin = next + wb_fields_take(r, WB_VISITLOG_BINS), count = wb_fields_take(r, UINT16_MAX);
        r->ok = r->ok && bin < WB_VISITLOG_BINS;
        if (r->ok)
            history->changed[bin] = (uint16_t)count;
        next = bin + 1;
    }
}

static void take_modified_history(struct wb_fields *r, struct wb_visitlog *history)
{
    uint64_t lead = wb_fields_take(r, LIES | MODIFIED_COUNTS);

    WB_CHECK(!history->modified_lies);
    WB_CHECK(history->modified_visits == 0);
    history->modified_lies = lead & LIES;
    if (!(lead & MODIFIED_COUNTS))
        return;
    history->modified_visits = (uint32_t)wb_fields_take(r, UINT32_MAX);
    history->modified_changes = (uint32_t)wb_fields_take(r, UINT32_MAX);
    history->modified_days = take_days(r);
}

static void take_numbers(struct wb_fields *r, struct wb_webdb_page *page, unsigned word)
{
    WB_CHECK(word_is_valid(word));
    WB_CHECK(page->flags == 0);
    page->first_seen_ms = wb_fields_take_time(r, 0);
    page->flags = (word & ROW_WANTED ? WB_PAGE_WANTED : 0u) | (word & ROW_TARGET ? WB_PAGE_TARGET : 0u);
    if (word & ROW_DEPTH)
        page->depth = (uint16_t)wb_fields_take(r, UINT16_MAX);
    if (word & ROW_FLAGS) {
        const char *p = wb_fields_take_bytes(r, 1);
        unsigned flags = p ? (uint8_t)*p : 0;
        r->ok = r->ok && (flags & ~(unsigned)OTHER_FLAGS) == 0;
        page->flags |= flags;
    }
    if (word & ROW_TRIED)
        page->last_tried_ms = wb_fields_take_time(r, page->first_seen_ms);
    if (word & ROW_OUTCOME)
        take_outcome(r, &page->outcome, &page->status);
    if (word & ROW_SEEN)
        page->last_seen_ms = wb_fields_take_time(r, page->last_tried_ms);
    if (word & ROW_CHANGED)
        page->last_changed_ms = wb_fields_take_time(r, page->last_seen_ms);
    if (word & ROW_CONTENT)
        take_content(r, page);
    if (word & ROW_BYTES)
        page->bytes = wb_fields_take(r, UINT64_MAX);
    if (word & ROW_DUE)
        page->next_due_ms = wb_fields_take_time(r, due_base(page));
    if (word & ROW_LIFETIME)
        page->lifetime = (uint32_t)wb_fields_take(r, UINT32_MAX);
    page->expires_ms = expires_by_lifetime(page);
    WB_CHECK(!r->ok || (page->flags & ~(unsigned)ALL_FLAGS) == 0);
    WB_CHECK(!(page->has_content && page->flags & WB_PAGE_TARGET));
}

static void take_rest(struct wb_fields *r, struct wb_webdb_page *page, unsigned word, int64_t *modified_out)
{
    WB_CHECK(word_is_valid(word));
    *modified_out = 0;
    if (word & ROW_FETCHES)
        take_fetches(r, page);
    if (word & ROW_ETAG)
        page->etag = wb_fields_take_text(r);
    if (word & ROW_MODIFIED_TIME)
        *modified_out = wb_fields_take_time(r, 0);
    if (word & ROW_HISTORY)
        take_history(r, &page->history);
    if (word & ROW_MODIFIED_HISTORY)
        take_modified_history(r, &page->history);
    if (word & ROW_HTML)
        page->type = html;
    if (word & ROW_TYPE)
        page->type = wb_fields_take_text(r);
    if (word & ROW_MODIFIED)
        page->modified = wb_fields_take_text(r);
    if (word & ROW_LOCATION)
        page->location = wb_fields_take_text(r);
    if (word & ROW_HINT)
        page->hint_ms = wb_fields_take_time(r, page->last_seen_ms);
    if (word & ROW_EXPIRES)
        page->expires_ms = wb_fields_take_time(r, page->last_seen_ms);
    if (word & ROW_ASKED)
        page->asked_ms = wb_fields_take_time(r, page->expires_ms);
    if (word & ROW_SCORE) {
        page->score = wb_fields_take_short_double(r);
        r->ok = r->ok && isfinite(page->score);
    }
    if (word & ROW_FAILURES)
        page->failures = (uint16_t)wb_fields_take(r, UINT16_MAX);
    if (word & ROW_SIGNALS)
        page->signals = (uint16_t)wb_fields_take(r, UINT16_MAX);
    WB_CHECK(!r->ok || isfinite(page->score));
    WB_CHECK(!r->ok || is_day_sum(page->history.unchanged_days));
    WB_CHECK(!r->ok || is_day_sum(page->history.modified_days));
}

/* Restores the texts that are not in the row, the URL and Last-Modified, one after the other in mem. */
static int make_texts(struct wb_webdb_page *page, unsigned word, int64_t modified, struct wb_buf *mem)
{
    int err = 0;

    WB_CHECK(word_is_valid(word));
    wb_buf_clear(mem);
    WB_CHECK(modified == 0 || word & ROW_MODIFIED_TIME);
    if (!(word & WB_SPELLING_TEXT))
        err = wb_spelling_url(page->surt, word & ROW_SPELLING, WB_DATE_HTTP_BYTES, mem);
    else if (word & ROW_MODIFIED_TIME)
        err = wb_buf_reserve(mem, WB_DATE_HTTP_BYTES);
    if (err < 0)
        return err;
    if (!(word & WB_SPELLING_TEXT))
        page->url = wb_buf_slice(mem);
    if (!(word & ROW_MODIFIED_TIME))
        return 0;
    WB_CHECK(mem->cap - mem->len >= WB_DATE_HTTP_BYTES);
    if (modified < -INT64_C(1000000000000) || modified > INT64_C(1000000000000) ||
        !wb_date_format_http(modified * 1000, mem->ptr + mem->len))
        return WB_E_CORRUPT;
    page->modified = wb_slice(mem->ptr + mem->len, WB_DATE_HTTP_BYTES);
    mem->len += WB_DATE_HTTP_BYTES;
    WB_CHECK(word & WB_SPELLING_TEXT || page->url.ptr == mem->ptr); /* the URL before it has not moved */
    return 0;
}

static void empty_page(struct wb_webdb_page *page, struct wb_slice surt)
{
    memset(page, 0, sizeof *page);
    page->surt = surt;
    page->url = page->etag = page->modified = page->type = page->location = WB_SLICE_EMPTY;
}

int wb_pagerow_decode(struct wb_slice surt, struct wb_slice row, struct wb_buf *mem, struct wb_webdb_page *page_out)
{
    struct wb_fields r = wb_fields_of(row);
    int64_t modified = 0;
    int err = WB_E_CORRUPT;

    WB_CHECK(row.ptr != NULL);
    WB_CHECK(mem != NULL);
    empty_page(page_out, surt);
    unsigned word = (unsigned)wb_fields_take(&r, ROW_BITS);
    if (!r.ok || !word_is_valid(word))
        goto done;
    if (word & WB_SPELLING_TEXT)
        page_out->url = wb_fields_take_text(&r);
    take_numbers(&r, page_out, word);
    take_rest(&r, page_out, word, &modified);
    if (r.ok && r.at == r.end)
        err = make_texts(page_out, word, modified, mem);
done:
    if (err == 0) {
        WB_CHECK(page_out->url.ptr != NULL);
        WB_CHECK(page_out->outcome <= WB_OUTCOME_ROBOTS);
        return 0;
    }
    empty_page(page_out, surt);
    if (err != WB_E_CORRUPT)
        return err;
    return wb_fail(err, "%.*s: the row of a page is damaged", surt.len > 160 ? 160 : (int)surt.len, surt.ptr);
}
