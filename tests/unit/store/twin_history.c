/*
 * twin_history.c - the rules of versions and captures, of one page at a time. store.h says what they are for.
 */
#include "twin_state.h"

struct wb_twin_version *wb_twin_latest(const struct wb_twin_page *page)
{
    for (size_t i = 0; i < page->versions.count; i++)
        if (page->versions.items[i].ceased == 0)
            return &page->versions.items[i];
    return NULL;
}

bool wb_twin_visible(const struct wb_twin_version *version, uint64_t epoch)
{
    return version->arrived <= epoch && (version->ceased == 0 || version->ceased > epoch);
}

/* ---- contents ---------------------------------------------------------------------------------------- */

static void decode(const struct wb_twin_record *record, struct wb_page *page_out)
{
    WB_CHECK(wb_page_decode(wb_buf_slice(&record->bytes), page_out) == 0);
}

static bool is_cut(const struct wb_twin_record *record)
{
    struct wb_page page;

    decode(record, &page);
    return page.truncated;
}

/* Whether one record is the same capture as another one of its time, but cut short earlier. */
static bool is_beginning(const struct wb_twin_record *record, const struct wb_twin_record *of)
{
    struct wb_page x, y;

    decode(record, &x);
    decode(of, &y);
    bool shorter = x.body.len < y.body.len || (x.body.len == y.body.len && !y.truncated);
    return x.truncated && shorter && x.status == y.status && memcmp(x.body.ptr, y.body.ptr, x.body.len) == 0;
}

static bool has_time(const struct wb_twin_version *version, int64_t time_ms)
{
    for (size_t i = 0; i < version->times.count; i++)
        if (version->times.items[i] == time_ms)
            return true;
    return false;
}

bool wb_twin_covered(const struct wb_twin_page *page, int64_t time_ms, const struct wb_twin_record *record)
{
    for (size_t i = 0; i < page->versions.count; i++) {
        const struct wb_twin_version *version = &page->versions.items[i];
        if (!version->ghost && !version->hollow && has_time(version, time_ms) && is_beginning(record, version->record))
            return true;
    }
    return false;
}

/* ---- forms that somebody sees ------------------------------------------------------------------------- */

static bool visible_in_any(const struct wb_twin_version *version, const struct wb_twin_rule *rule)
{
    for (size_t i = 0; i < rule->held.count; i++)
        if (wb_twin_visible(version, rule->held.items[i]))
            return true;
    return false;
}

/* The version at index `at` is about to change its form: a reader of the old one keeps it. Returns its new index. */
static size_t freeze(struct wb_twin_page *page, size_t at, const struct wb_twin_rule *rule, uint64_t epoch)
{
    struct wb_twin_version copy;

    if (page->versions.items[at].arrived == epoch || !visible_in_any(&page->versions.items[at], rule))
        return at;
    wb_twin_version_copy(&page->versions.items[at], &copy);
    copy.ghost = copy.replaced = true;
    copy.ceased = copy.ceased ? copy.ceased : epoch;
    WB_CHECK(wb_vec_add(&page->versions));
    struct wb_twin_version *version = &page->versions.items[at];
    memmove(version + 1, version, (page->versions.count - 1 - at) * sizeof *version);
    *version++ = copy;
    version->arrived = epoch;
    version->ceased = version->ceased ? epoch : 0;
    return at + 1;
}

/* ---- times that cannot be ------------------------------------------------------------------------------ */

static int64_t newest_time(const struct wb_twin_page *page)
{
    int64_t newest_ms = INT64_MIN;

    for (size_t i = 0; i < page->versions.count; i++)
        if (!page->versions.items[i].ghost && wb_twin_version_last(&page->versions.items[i]) > newest_ms)
            newest_ms = wb_twin_version_last(&page->versions.items[i]);
    return newest_ms;
}

/*
 * Removes the times that only a wrong clock explains. An old version that has no others becomes a ghost. Returns the
 * newest time that remains; INT64_MIN if there is none.
 */
static int64_t drop_ahead(struct wb_twin_page *page, const struct wb_twin_rule *rule, uint64_t epoch)
{
    int64_t newest_ms = INT64_MIN, now_ms = rule->now_ms;

    for (size_t i = 0; i < page->versions.count; i++) {
        struct wb_twin_version *version = &page->versions.items[i];
        if (version->ghost)
            continue;
        if (version->ceased != 0 && wb_store_time_is_ahead(wb_twin_version_first(version), now_ms)) {
            version->ghost = true;
            continue;
        }
        if (wb_store_time_is_ahead(wb_twin_version_last(version), now_ms)) {
            i = freeze(page, i, rule, epoch);
            version = &page->versions.items[i];
        }
        while (version->times.count && wb_store_time_is_ahead(wb_twin_version_last(version), now_ms))
            version->times.count--;
        if (version->times.count && wb_twin_version_last(version) > newest_ms)
            newest_ms = wb_twin_version_last(version);
    }
    return newest_ms;
}

static void forget_floor(struct wb_twin_page *page)
{
    page->floor_ms = INT64_MIN;
    page->forgotten_all = false;
    while (page->forgotten.count)
        wb_twin_record_unref(wb_vec_pop(&page->forgotten));
}

/*
 * Times that only a wrong clock explains give way to one that is plausible. The latest version stays just before it.
 * What was forgotten up to such a time, or gone since then, does not lock out the new one either.
 */
static void give_way(struct wb_twin_page *page, int64_t time_ms, const struct wb_twin_rule *rule, uint64_t epoch)
{
    int64_t now_ms = rule->now_ms;

    if (wb_store_time_is_ahead(time_ms, now_ms))
        return;
    int64_t newest_ms = drop_ahead(page, rule, epoch);
    struct wb_twin_version *latest = wb_twin_latest(page);

    if (latest && latest->times.count == 0)
        WB_CHECK(wb_vec_push(&latest->times,
                             newest_ms < time_ms - 1 ? time_ms - 1 : newest_ms + is_cut(latest->record)) == 0);
    if (wb_store_time_is_ahead(page->floor_ms, now_ms))
        forget_floor(page);
    if (wb_store_time_is_ahead(page->gone_ms, now_ms))
        page->gone_ms = newest_ms > 1 ? newest_ms : 1;
}

/* ---- adding a capture ------------------------------------------------------------------------------------ */

static bool is_known(const struct wb_twin_page *page, int64_t time_ms, const struct wb_twin_record *record)
{
    for (size_t i = 0; i < page->versions.count; i++)
        if (!page->versions.items[i].ghost && has_time(&page->versions.items[i], time_ms) &&
            wb_twin_record_same(page->versions.items[i].record, record))
            return true;
    return false;
}

static const struct wb_twin_version *oldest_version(const struct wb_twin_page *page)
{
    for (size_t i = 0; i < page->versions.count; i++)
        if (!page->versions.items[i].ghost)
            return &page->versions.items[i];
    return NULL;
}

/* Whether the capture is refused as too old, or as one that was forgotten. */
static bool is_too_old(const struct wb_twin_page *page, int64_t time_ms, const struct wb_twin_record *record,
                       int64_t now_ms, enum wb_store_outcome *outcome_out)
{
    bool open = false;

    *outcome_out = WB_STORE_PUT_OLDER;
    if (time_ms > page->floor_ms ||
        (wb_store_time_is_ahead(page->floor_ms, now_ms) && !wb_store_time_is_ahead(time_ms, now_ms)))
        return false;
    for (size_t i = 0; i < page->versions.count; i++)
        open = open || (!page->versions.items[i].ghost && has_time(&page->versions.items[i], page->floor_ms));
    const struct wb_twin_version *oldest = oldest_version(page);
    open = open || (oldest && wb_twin_record_same(oldest->record, record));
    if (time_ms < page->floor_ms || !open || (is_cut(record) && !is_known(page, time_ms, record)))
        return true;
    *outcome_out = WB_STORE_PUT_KNOWN;
    if (page->forgotten_all)
        return true;
    for (size_t i = 0; i < page->forgotten.count; i++)
        if (wb_twin_record_same(page->forgotten.items[i], record))
            return true;
    return false;
}

/* Whether a capture of a version comes before the new one: of equal times, what was cut short comes first. */
static bool comes_before(const struct wb_twin_version *version, int64_t seen_ms, int64_t time_ms,
                         const struct wb_twin_record *record)
{
    return seen_ms < time_ms || (seen_ms == time_ms && (!is_cut(record) || is_cut(version->record)));
}

/* The index of the last version that begins before the capture; -1 if there is none. */
static ptrdiff_t find_before(const struct wb_twin_page *page, int64_t time_ms, const struct wb_twin_record *record)
{
    for (size_t i = page->versions.count; i-- > 0;) {
        const struct wb_twin_version *version = &page->versions.items[i];
        if (!version->ghost && comes_before(version, wb_twin_version_first(version), time_ms, record))
            return (ptrdiff_t)i;
    }
    return -1;
}

/* The index of the first version that ends after the capture; -1 if there is none. */
static ptrdiff_t find_after(const struct wb_twin_page *page, int64_t time_ms, const struct wb_twin_record *record)
{
    for (size_t i = 0; i < page->versions.count; i++) {
        const struct wb_twin_version *version = &page->versions.items[i];
        if (!version->ghost && !comes_before(version, wb_twin_version_last(version), time_ms, record))
            return (ptrdiff_t)i;
    }
    return -1;
}

static void add_time(struct wb_twin_version *version, int64_t time_ms)
{
    size_t at = version->times.count;

    WB_CHECK(wb_vec_push(&version->times, time_ms) == 0);
    for (; at > 0 && version->times.items[at - 1] > time_ms; at--)
        version->times.items[at] = version->times.items[at - 1];
    version->times.items[at] = time_ms;
}

/* Divides a version at a capture inside it. The newer part is what it was. */
static void split(struct wb_twin_page *page, size_t at, int64_t time_ms, const struct wb_twin_record *other,
                  uint64_t epoch)
{
    struct wb_twin_record *record = page->versions.items[at].record;
    int64_t first_ms = wb_twin_version_first(&page->versions.items[at]);
    struct wb_twin_version *older = wb_twin_version_insert(page, at, record, first_ms), *newer = older + 1;
    size_t n = 0;

    while (comes_before(newer, newer->times.items[n], time_ms, other))
        n++;
    WB_CHECK(n > 0 && n < newer->times.count);
    for (size_t i = 1; i < n; i++)
        add_time(older, newer->times.items[i]);
    newer->times.count -= n;
    memmove(newer->times.items, newer->times.items + n, newer->times.count * sizeof *newer->times.items);
    older->arrived = older->ceased = epoch;
    older->hollow = newer->hollow;
    older->lifetime = newer->lifetime;
    older->lifetime_count = newer->lifetime_count;
}

/* The record of an equal content that the page has already, or NULL. */
static struct wb_twin_record *first_record(const struct wb_twin_page *page, struct wb_twin_record *record)
{
    for (size_t i = 0; i < page->versions.count; i++) {
        const struct wb_twin_version *version = &page->versions.items[i];
        if (!version->hollow && !version->replaced && wb_twin_record_same(version->record, record))
            return version->record;
    }
    return NULL;
}

/* If the neighbours on both sides of the gap before index `at` have the same content, they become one version. */
static void join(struct wb_twin_page *page, size_t at, const struct wb_twin_rule *rule, uint64_t epoch)
{
    size_t older = at, newer = at;

    while (older > 0 && page->versions.items[older - 1].ghost)
        older--;
    while (newer < page->versions.count && page->versions.items[newer].ghost)
        newer++;
    if (older == 0 || newer == page->versions.count || page->versions.items[older - 1].hollow ||
        page->versions.items[newer].hollow ||
        !wb_twin_record_same(page->versions.items[older - 1].record, page->versions.items[newer].record))
        return;
    size_t moved = freeze(page, older - 1, rule, epoch);
    newer = freeze(page, newer + (moved - (older - 1)), rule, epoch);
    for (size_t i = 0; i < page->versions.items[moved].times.count; i++)
        add_time(&page->versions.items[newer], page->versions.items[moved].times.items[i]);
    wb_twin_version_drop(page, moved);
}

/* The content of the same time with which the new one begins: the longest, if there are several. NULL: none. */
static struct wb_twin_record *find_beginning(const struct wb_twin_page *page, int64_t time_ms,
                                             const struct wb_twin_record *record)
{
    struct wb_twin_record *found = NULL;
    size_t longest = 0;

    for (size_t i = 0; i < page->versions.count; i++) {
        const struct wb_twin_version *version = &page->versions.items[i];
        struct wb_page stored;
        decode(version->record, &stored);
        if (!version->ghost && !version->hollow && has_time(version, time_ms) &&
            is_beginning(version->record, record) && (!found || stored.body.len > longest)) {
            found = version->record;
            longest = stored.body.len;
        }
    }
    return found;
}

/* Takes away the capture of this content. */
static void take_away(struct wb_twin_page *page, int64_t time_ms, const struct wb_twin_record *record,
                      const struct wb_twin_rule *rule, uint64_t epoch)
{
    size_t at = 0, n = 0;

    while (at < page->versions.count &&
           (page->versions.items[at].ghost || !has_time(&page->versions.items[at], time_ms) ||
            !wb_twin_record_same(page->versions.items[at].record, record)))
        at++;
    WB_CHECK(at < page->versions.count);
    struct wb_twin_version *version = &page->versions.items[at];
    if (version->times.count > 1) {
        at = freeze(page, at, rule, epoch);
        version = &page->versions.items[at];
        while (version->times.items[n] != time_ms)
            n++;
        version->times.count--;
        memmove(version->times.items + n, version->times.items + n + 1,
                (version->times.count - n) * sizeof *version->times.items);
        return;
    }
    if (visible_in_any(version, rule)) {
        version->ghost = version->replaced = true;
        at++;
    } else {
        wb_twin_version_drop(page, at);
    }
    join(page, at, rule, epoch);
}

/* The neighbour that has the same content, or NULL. */
static struct wb_twin_version *find_joined(struct wb_twin_page *page, ptrdiff_t before, ptrdiff_t after,
                                           const struct wb_twin_record *record)
{
    if (before >= 0 && wb_twin_record_same(page->versions.items[before].record, record))
        return &page->versions.items[before];
    if (after >= 0 && wb_twin_record_same(page->versions.items[after].record, record))
        return &page->versions.items[after];
    return NULL;
}

/* Puts the capture where it belongs. */
static enum wb_store_outcome place(struct wb_twin_page *page, const struct wb_twin_rule *rule, int64_t time_ms,
                                   struct wb_twin_record *record, uint64_t epoch)
{
    struct wb_twin_version *latest = wb_twin_latest(page);
    struct wb_twin_record *first = first_record(page, record);
    ptrdiff_t before = find_before(page, time_ms, record), after = find_after(page, time_ms, record);
    bool begins = !latest && (page->gone_ms == 0 || time_ms > page->gone_ms || (before < 0 && after < 0)) && after < 0;
    struct wb_twin_version *joined = begins ? NULL : find_joined(page, before, after, record);
    bool past = !begins && (after >= 0 || !latest);
    bool hollow = !joined && past && !first && rule->policy.keep == WB_STORE_KEEP_NEWEST;

    if (joined) {
        add_time(joined, time_ms);
        return WB_STORE_PUT_CAPTURE;
    }
    if (before >= 0 && before == after) {
        before = (ptrdiff_t)freeze(page, (size_t)before, rule, epoch);
        split(page, (size_t)before, time_ms, record, epoch);
    }
    bool replaces = latest != NULL;
    if (!past && latest)
        wb_twin_latest(page)->ceased = epoch;
    struct wb_twin_version *version =
        wb_twin_version_insert(page, (size_t)(before + 1), first ? first : record, time_ms);
    version->arrived = epoch;
    version->ceased = past ? epoch : 0;
    version->hollow = hollow;
    if (!past)
        page->gone_ms = 0;
    return past ? WB_STORE_PUT_PAST : replaces ? WB_STORE_PUT_VERSION : WB_STORE_PUT_NEW;
}

enum wb_store_outcome wb_twin_insert(struct wb_twin_page *page, const struct wb_twin_rule *rule, int64_t time_ms,
                                     struct wb_twin_record *record, bool put, uint64_t epoch)
{
    enum wb_store_outcome outcome;

    if (is_too_old(page, time_ms, record, rule->now_ms, &outcome))
        return outcome;
    if (is_known(page, time_ms, record))
        return WB_STORE_PUT_KNOWN;
    struct wb_twin_record *beginning = put ? find_beginning(page, time_ms, record) : NULL;
    give_way(page, time_ms, rule, epoch);
    if (is_known(page, time_ms, record)) /* the latest version was moved to just this time */
        return WB_STORE_PUT_CAPTURE;
    outcome = place(page, rule, time_ms, record, epoch);
    if (beginning)
        take_away(page, time_ms, beginning, rule, epoch);
    return outcome;
}

/* ---- who keeps what --------------------------------------------------------------------------------- */

/* How many versions are newer than this one, for a policy that counts: the latest is the newest by definition. */
static uint64_t count_newer(const struct wb_twin_page *page, const struct wb_twin_version *version)
{
    uint64_t count = 0;

    for (const struct wb_twin_version *v = page->versions.items; v < page->versions.items + page->versions.count; v++)
        count += !v->ghost && v != version && (v > version || v->ceased == 0);
    return count;
}

/* When a version ended: when the next one began, or when the page had gone. */
static int64_t end_ms(const struct wb_twin_page *page, const struct wb_twin_version *version)
{
    const struct wb_twin_version *next = version + 1, *end = page->versions.items + page->versions.count;

    while (next < end && next->ghost)
        next++;
    return next < end ? wb_twin_version_first(next) : page->gone_ms;
}

static bool policy_keeps(const struct wb_twin_page *page, const struct wb_twin_version *version,
                         const struct wb_twin_rule *rule)
{
    if (version->ghost)
        return false;
    switch (rule->policy.keep) {
    case WB_STORE_KEEP_ALL:
        return true;
    case WB_STORE_KEEP_COUNT:
        return count_newer(page, version) < rule->policy.value;
    case WB_STORE_KEEP_DURATION:
        return end_ms(page, version) >= rule->now_ms - (int64_t)rule->policy.value;
    default:
        return false;
    }
}

/* A version of the timeline is forgotten. Those of one time are remembered by their contents. */
static void forget(struct wb_twin_page *page, const struct wb_twin_version *version)
{
    int64_t last_ms = wb_twin_version_last(version);

    if (last_ms < page->floor_ms)
        return;
    if (last_ms > page->floor_ms)
        forget_floor(page);
    page->floor_ms = last_ms;
    if (page->forgotten_all)
        return;
    for (size_t i = 0; i < page->forgotten.count; i++)
        if (wb_twin_record_same(page->forgotten.items[i], version->record))
            return;
    WB_CHECK(wb_vec_push(&page->forgotten, wb_twin_record_ref(version->record)) == 0);
}

/* Whether what was forgotten at the time of the floor need not be remembered, because nothing can be added there. */
static bool is_floor_closed(const struct wb_twin_page *page)
{
    const struct wb_twin_version *oldest = oldest_version(page);
    bool closed = wb_twin_version_first(oldest) > page->floor_ms && !page->forgotten_all;

    for (size_t i = 0; i < page->forgotten.count; i++)
        closed = closed && !wb_twin_record_same(page->forgotten.items[i], oldest->record);
    return closed;
}

void wb_twin_trim(struct wb_twin_page *page, const struct wb_twin_rule *rule)
{
    WB_VEC(bool) kept = WB_VEC_INIT; /* decided for all before any goes */

    for (size_t i = 0; i < page->versions.count; i++) {
        const struct wb_twin_version *version = &page->versions.items[i];
        WB_CHECK(wb_vec_push(&kept, version->ceased == 0 || policy_keeps(page, version, rule)) == 0);
    }
    for (size_t i = 0; i < page->versions.count; i++)
        if (!kept.items[i] && !page->versions.items[i].ghost)
            forget(page, &page->versions.items[i]);
    for (size_t i = page->versions.count; i-- > 0;) {
        struct wb_twin_version *version = &page->versions.items[i];
        if (kept.items[i] && !version->hollow)
            continue;
        version->ghost = true;
        if (version->hollow || !visible_in_any(version, rule))
            wb_twin_version_drop(page, i);
    }
    int64_t floor_ms = page->floor_ms;
    if (newest_time(page) == INT64_MIN) { /* only ghosts are left: the page begins from scratch */
        forget_floor(page);
        page->gone_ms = 0;
    } else if (is_floor_closed(page)) {
        forget_floor(page);
        page->floor_ms = floor_ms;
    }
    wb_vec_release(&kept);
}

void wb_twin_end(struct wb_twin_page *page, int64_t time_ms, uint64_t epoch, const struct wb_twin_rule *rule)
{
    int64_t newest_ms = newest_time(page);

    wb_twin_latest(page)->ceased = epoch;
    page->gone_ms = time_ms < 1 ? 1 : time_ms;
    if (page->gone_ms < newest_ms)
        page->gone_ms = newest_ms;
    wb_twin_trim(page, rule);
}

/* ---- revisits ----------------------------------------------------------------------------------------- */

static bool has_digest(const struct wb_twin_version *version, const uint8_t sha1[WB_SHA1_BYTES])
{
    struct wb_page page;

    wb_twin_version_page(version, &page);
    return memcmp(page.sha1, sha1, WB_SHA1_BYTES) == 0 ||
           (page.has_payload_sha1 && memcmp(page.payload_sha1, sha1, WB_SHA1_BYTES) == 0);
}

static bool has_second(const struct wb_twin_version *version, int64_t time_ms)
{
    for (size_t i = 0; i < version->times.count; i++)
        if (version->times.items[i] / 1000 == time_ms / 1000)
            return true;
    return false;
}

/* The newest version that has the digest, or a capture in that second. Ghosts come last, by arrival. */
static struct wb_twin_version *find_version(struct wb_twin_page *page, const struct wb_store_revisit *revisit)
{
    struct wb_twin_version *ghost = NULL;

    for (size_t i = page->versions.count; i-- > 0;) {
        struct wb_twin_version *version = &page->versions.items[i];
        if (version->hollow || version->replaced ||
            !(revisit->has_sha1 ? has_digest(version, revisit->sha1) : has_second(version, revisit->original_ms)))
            continue;
        if (!version->ghost)
            return version;
        if (!ghost || version->arrived > ghost->arrived)
            ghost = version;
    }
    return ghost;
}

/* Of two versions that have a capture of the same time: whether the second one counts. */
static bool counts_more(const struct wb_twin_version *a, const struct wb_twin_version *b)
{
    return !b->ghost || (a->ghost && b->arrived > a->arrived);
}

const struct wb_twin_version *wb_twin_seen_by(const struct wb_twin_page *page, int64_t time_ms)
{
    const struct wb_twin_version *found = NULL;
    int64_t newest_ms = INT64_MIN;

    for (size_t i = 0; i < page->versions.count; i++)
        for (size_t j = 0; j < page->versions.items[i].times.count && !page->versions.items[i].replaced; j++) {
            const struct wb_twin_version *version = &page->versions.items[i];
            int64_t seen_ms = version->times.items[j];
            if (seen_ms <= time_ms && (!found || seen_ms > newest_ms ||
                                       (seen_ms == newest_ms && version != found && counts_more(found, version)))) {
                newest_ms = seen_ms;
                found = version;
            }
        }
    return found;
}

struct wb_twin_version *wb_twin_original(struct wb_twin_page *page, const struct wb_store_revisit *revisit)
{
    if (revisit->has_sha1 || revisit->original_ms)
        return find_version(page, revisit);
    const struct wb_twin_version *before = revisit->not_modified ? wb_twin_seen_by(page, revisit->time_ms) : NULL;
    return before && !before->hollow ? (struct wb_twin_version *)before : NULL;
}
