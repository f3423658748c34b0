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

/* ---- adding a capture ------------------------------------------------------------------------------ */

/*
 * Removes the times that only a wrong clock explains. An old version that has no others becomes a ghost. Returns the
 * newest time that remains; INT64_MIN if there is none.
 */
static int64_t drop_ahead(struct wb_twin_page *page, int64_t now_ms)
{
    int64_t newest_ms = INT64_MIN;

    for (size_t i = 0; i < page->versions.count; i++) {
        struct wb_twin_version *version = &page->versions.items[i];
        if (version->ceased != 0 && wb_store_time_is_ahead(wb_twin_version_first(version), now_ms))
            version->ghost = true;
        if (version->ghost)
            continue;
        while (version->times.count && wb_store_time_is_ahead(wb_twin_version_last(version), now_ms))
            version->times.count--;
        if (version->times.count && wb_twin_version_last(version) > newest_ms)
            newest_ms = wb_twin_version_last(version);
    }
    return newest_ms;
}

static int64_t newest_time(const struct wb_twin_page *page)
{
    int64_t newest_ms = INT64_MIN;

    for (size_t i = 0; i < page->versions.count; i++)
        if (!page->versions.items[i].ghost && wb_twin_version_last(&page->versions.items[i]) > newest_ms)
            newest_ms = wb_twin_version_last(&page->versions.items[i]);
    return newest_ms;
}

/*
 * Times that only a wrong clock explains give way to one that is plausible. The latest version stays just before it.
 * What was forgotten up to such a time, or gone since then, does not lock out the new one either.
 */
static void give_way(struct wb_twin_page *page, int64_t time_ms, int64_t now_ms)
{
    if (wb_store_time_is_ahead(time_ms, now_ms) ||
        (!wb_store_time_is_ahead(newest_time(page), now_ms) && !wb_store_time_is_ahead(page->gone_ms, now_ms)))
        return;

    int64_t newest_ms = drop_ahead(page, now_ms);
    struct wb_twin_version *latest = wb_twin_latest(page);

    if (latest && latest->times.count == 0)
        WB_CHECK(wb_vec_push(&latest->times, newest_ms < time_ms - 1 ? time_ms - 1 : newest_ms + 1) == 0);
    if (wb_store_time_is_ahead(page->floor_ms, now_ms))
        page->floor_ms = INT64_MIN;
    if (wb_store_time_is_ahead(page->gone_ms, now_ms))
        page->gone_ms = newest_ms > 1 ? newest_ms : 1;
}

static bool is_known(const struct wb_twin_page *page, int64_t time_ms)
{
    for (size_t i = 0; i < page->versions.count; i++)
        for (size_t j = 0; !page->versions.items[i].ghost && j < page->versions.items[i].times.count; j++)
            if (page->versions.items[i].times.items[j] == time_ms)
                return true;
    return false;
}

/* The index of the last version that begins before the time; -1 if there is none. */
static ptrdiff_t find_before(const struct wb_twin_page *page, int64_t time_ms)
{
    for (size_t i = page->versions.count; i-- > 0;)
        if (!page->versions.items[i].ghost && wb_twin_version_first(&page->versions.items[i]) < time_ms)
            return (ptrdiff_t)i;
    return -1;
}

/* The index of the first version that ends after the time; -1 if there is none. */
static ptrdiff_t find_after(const struct wb_twin_page *page, int64_t time_ms)
{
    for (size_t i = 0; i < page->versions.count; i++)
        if (!page->versions.items[i].ghost && wb_twin_version_last(&page->versions.items[i]) > time_ms)
            return (ptrdiff_t)i;
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

/* Divides a version at a time inside it. The newer part is what snapshots go on seeing. */
static void split(struct wb_twin_page *page, size_t at, int64_t time_ms, uint64_t epoch)
{
    struct wb_twin_record *record = page->versions.items[at].record;
    int64_t first_ms = wb_twin_version_first(&page->versions.items[at]);
    struct wb_twin_version *older = wb_twin_version_insert(page, at, record, first_ms), *newer = older + 1;
    size_t n = 0;

    WB_CHECK(first_ms < time_ms);
    WB_CHECK(wb_twin_version_last(newer) > time_ms);
    while (newer->times.items[n] < time_ms)
        n++;
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
    for (size_t i = 0; i < page->versions.count; i++)
        if (!page->versions.items[i].hollow && wb_twin_record_same(page->versions.items[i].record, record))
            return page->versions.items[i].record;
    return NULL;
}

enum wb_store_outcome wb_twin_insert(struct wb_twin_page *page, const struct wb_twin_rule *rule, int64_t time_ms,
                                     struct wb_twin_record *record, uint64_t epoch,
                                     struct wb_twin_version **version_out)
{
    struct wb_twin_page unchanged;

    *version_out = NULL;
    wb_twin_page_copy(page, &unchanged);
    give_way(page, time_ms, rule->now_ms);
    if (time_ms <= page->floor_ms || is_known(page, time_ms)) {
        enum wb_store_outcome outcome = time_ms <= page->floor_ms ? WB_STORE_PUT_OLDER : WB_STORE_PUT_KNOWN;
        wb_twin_page_release(page);
        *page = unchanged;
        return outcome;
    }
    wb_twin_page_release(&unchanged);

    struct wb_twin_version *latest = wb_twin_latest(page);
    ptrdiff_t before = find_before(page, time_ms), after = find_after(page, time_ms);
    bool begins = !latest && (page->gone_ms == 0 || time_ms > page->gone_ms || (before < 0 && after < 0));

    if (!begins && before >= 0 && wb_twin_record_same(page->versions.items[before].record, record))
        *version_out = &page->versions.items[before];
    else if (!begins && after >= 0 && wb_twin_record_same(page->versions.items[after].record, record))
        *version_out = &page->versions.items[after];
    if (*version_out) {
        add_time(*version_out, time_ms);
        return WB_STORE_PUT_CAPTURE;
    }
    bool past = !begins && (after >= 0 || !latest);
    if (before >= 0 && before == after)
        split(page, (size_t)before, time_ms, epoch);
    if (!past && latest)
        wb_twin_latest(page)->ceased = epoch;
    struct wb_twin_record *first = first_record(page, record);
    *version_out = wb_twin_version_insert(page, (size_t)(before + 1), first ? first : record, time_ms);
    (*version_out)->arrived = epoch;
    (*version_out)->ceased = past ? epoch : 0;
    (*version_out)->hollow = past && !first && rule->policy.keep == WB_STORE_KEEP_NEWEST;
    if (!past)
        page->gone_ms = 0;
    return past ? WB_STORE_PUT_PAST : latest ? WB_STORE_PUT_VERSION : WB_STORE_PUT_NEW;
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

static bool visible_in_any(const struct wb_twin_version *version, const uint64_t *epochs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (wb_twin_visible(version, epochs[i]))
            return true;
    return false;
}

void wb_twin_trim(struct wb_twin_page *page, const struct wb_twin_rule *rule)
{
    WB_VEC(bool) kept = WB_VEC_INIT; /* decided for all before any goes */

    for (size_t i = 0; i < page->versions.count; i++) {
        const struct wb_twin_version *version = &page->versions.items[i];
        WB_CHECK(wb_vec_push(&kept, version->ceased == 0 || policy_keeps(page, version, rule)) == 0);
    }
    for (size_t i = page->versions.count; i-- > 0;) {
        struct wb_twin_version *version = &page->versions.items[i];
        if (kept.items[i] && !version->hollow)
            continue;
        if (!kept.items[i] && !version->ghost && wb_twin_version_last(version) > page->floor_ms)
            page->floor_ms = wb_twin_version_last(version);
        version->ghost = true;
        if (!visible_in_any(version, rule->held.items, rule->held.count))
            wb_twin_version_drop(page, i);
    }
    if (newest_time(page) == INT64_MIN) { /* only ghosts are left: the page begins from scratch */
        page->floor_ms = INT64_MIN;
        page->gone_ms = 0;
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
        if (version->hollow ||
            !(revisit->has_sha1 ? has_digest(version, revisit->sha1) : has_second(version, revisit->original_ms)))
            continue;
        if (!version->ghost)
            return version;
        if (!ghost || version->arrived > ghost->arrived)
            ghost = version;
    }
    return ghost;
}

/* The version that has the newest capture before the time, ghosts included. */
static struct wb_twin_version *find_just_before(struct wb_twin_page *page, int64_t time_ms)
{
    struct wb_twin_version *found = NULL;
    int64_t newest_ms = INT64_MIN;

    for (size_t i = 0; i < page->versions.count; i++)
        for (size_t j = 0; j < page->versions.items[i].times.count; j++) {
            int64_t seen_ms = page->versions.items[i].times.items[j];
            if (seen_ms <= time_ms && seen_ms > newest_ms) {
                newest_ms = seen_ms;
                found = &page->versions.items[i];
            }
        }
    return found && !found->hollow ? found : NULL;
}

struct wb_twin_version *wb_twin_original(struct wb_twin_page *page, const struct wb_store_revisit *revisit)
{
    if (revisit->has_sha1 || revisit->original_ms)
        return find_version(page, revisit);
    return revisit->not_modified ? find_just_before(page, revisit->time_ms) : NULL;
}
