/*
 * history.c - adds captures to the past of a page, and forgets what nobody keeps. Pure
 * computation (history.h has the picture); history_bytes.c turns it into bytes.
 */
#include "store/catalog/history.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"
#include "store/organisation.h"

/* What is always true: ghosts come first, and every version has a capture. */
static void check_history(const struct wb_history *history)
{
    WB_CHECK(history->ghosts <= history->versions.count);
    WB_CHECK(history->versions.count <= history->times.count);
}

void wb_history_clear(struct wb_history *history)
{
    wb_vec_clear(&history->versions);
    wb_vec_clear(&history->times);
    history->ghosts = 0;
    history->floor_ms = INT64_MIN;
    history->gone_ms = 0;
}

void wb_history_release(struct wb_history *history)
{
    wb_vec_release(&history->versions);
    wb_vec_release(&history->times);
}

uint64_t wb_history_content(const struct wb_page *page, uint64_t seed)
{
    uint64_t parts[2] = {wb_hash64_seeded(page->type.ptr, page->type.len, seed + page->status),
                         wb_hash64_seeded(page->body.ptr, page->body.len, seed)};
    struct wb_slice location;
    /* Most redirects have no body, or always the same one: what they say is where they lead. */
    if (wb_http_status_redirects(page->status) && wb_http_header(page->head, "location", &location))
        parts[1] = wb_hash64_seeded(location.ptr, location.len, parts[1]);
    uint64_t content = wb_hash64_seeded(parts, sizeof parts, seed);

    WB_CHECK(page->body.ptr || page->body.len == 0);
    return content ? content : 1;
}

struct wb_history_version *wb_history_latest(struct wb_history *history)
{
    WB_CHECK(history->ghosts <= history->versions.count);
    if (history->versions.count == history->ghosts)
        return NULL;
    struct wb_history_version *last = &history->versions.items[history->versions.count - 1];
    WB_CHECK(!last->ghost);
    return last->ceased == 0 ? last : NULL;
}

struct wb_history_version *wb_history_find(struct wb_history *history, uint64_t content)
{
    WB_CHECK(history->ghosts <= history->versions.count);
    WB_CHECK(content != 0);
    for (size_t i = history->versions.count; i > 0; i--)
        if (history->versions.items[i - 1].content == content && history->versions.items[i - 1].place.segment)
            return &history->versions.items[i - 1];
    return NULL;
}

int wb_history_push(struct wb_history *history, const struct wb_history_version *version, int64_t time_ms)
{
    struct wb_history_version pushed = *version;
    int err = wb_vec_reserve(&history->versions, history->versions.count + 1);

    WB_CHECK(version->place.segment > 0);
    WB_CHECK(version->arrived > 0);
    WB_CHECK(!version->ghost);
    pushed.first = history->times.count;
    pushed.count = 1;
    if (err == 0)
        err = wb_vec_push(&history->times, time_ms);
    return err < 0 ? err : wb_vec_push(&history->versions, pushed);
}

/* ---- changing the list; there is room for two versions and one time ----------------------------- */

static void insert_version(struct wb_history *history, size_t at, const struct wb_history_version *version)
{
    WB_CHECK(at <= history->versions.count);
    WB_CHECK(history->versions.count < history->versions.cap);
    struct wb_history_version *items = history->versions.items;
    memmove(items + at + 1, items + at, (history->versions.count - at) * sizeof *items);
    items[at] = *version;
    history->versions.count++;
}

/* Puts a time at index `at`, into version number `owner`; the versions after it move on. */
static void insert_time(struct wb_history *history, size_t at, size_t owner, int64_t time_ms)
{
    WB_CHECK(owner < history->versions.count);
    WB_CHECK(at >= history->versions.items[owner].first);
    WB_CHECK(at <= history->versions.items[owner].first + history->versions.items[owner].count);
    WB_CHECK(at <= history->times.count);
    WB_CHECK(history->times.count < history->times.cap);
    int64_t *items = history->times.items;
    memmove(items + at + 1, items + at, (history->times.count - at) * sizeof *items);
    items[at] = time_ms;
    history->times.count++;
    history->versions.items[owner].count++;
    for (size_t i = owner + 1; i < history->versions.count; i++)
        history->versions.items[i].first++;
}

/* Takes away the captures [from, to) of version number `owner`. */
static void remove_times(struct wb_history *history, size_t owner, size_t from, size_t to)
{
    size_t count = to - from;

    WB_CHECK(owner < history->versions.count);
    WB_CHECK(from >= history->versions.items[owner].first);
    WB_CHECK(from <= to);
    WB_CHECK(to <= history->times.count);
    WB_CHECK(history->versions.items[owner].count >= count);
    int64_t *items = history->times.items;
    memmove(items + from, items + to, (history->times.count - to) * sizeof *items);
    history->times.count -= count;
    history->versions.items[owner].count -= count;
    for (size_t i = owner + 1; i < history->versions.count; i++)
        history->versions.items[i].first -= count;
}

/* Removes a version and its captures. */
static void remove_version(struct wb_history *history, size_t at)
{
    WB_CHECK(at < history->versions.count);
    struct wb_history_version *items = history->versions.items;
    remove_times(history, at, items[at].first, items[at].first + items[at].count);
    history->ghosts -= items[at].ghost;
    memmove(items + at, items + at + 1, (history->versions.count - at - 1) * sizeof *items);
    history->versions.count--;
}

/* Where the captures begin that take part: those of ghosts do not. */
static size_t first_time(const struct wb_history *history)
{
    check_history(history);
    return history->ghosts < history->versions.count ? history->versions.items[history->ghosts].first
                                                     : history->times.count;
}

/* ---- adding ----------------------------------------------------------------------------------------- */

/* Makes a version a ghost before its time: it and its captures move to the end of the other ghosts. */
static void make_ghost(struct wb_history *history, size_t index)
{
    struct wb_history_version *versions = history->versions.items, moved = versions[index];
    size_t begin = first_time(history);

    WB_CHECK(!moved.ghost);
    WB_CHECK(moved.count > 0);
    WB_CHECK(begin <= moved.first);
    WB_CHECK(index >= history->ghosts);
    WB_CHECK(moved.ceased != 0);
    for (size_t i = 0; i < moved.count; i++) {
        int64_t *to = &history->times.items[begin + i], time_ms = history->times.items[moved.first + i];
        memmove(to + 1, to, (moved.first - begin) * sizeof *to);
        *to = time_ms;
    }
    for (size_t i = index; i > history->ghosts; i--) {
        versions[i] = versions[i - 1];
        versions[i].first += moved.count;
    }
    moved.first = begin;
    moved.ghost = true;
    versions[history->ghosts++] = moved;
}

/*
 * A stored time that cannot be, because it is far ahead of the clock, gives way to one that
 * can. The latest version keeps one capture, just before the new one, so that it does not vanish.
 * Older versions that have no other captures become ghosts, in case a snapshot sees them. What was forgotten up to
 * such a time, or gone since then, must not lock out the new capture either.
 */
static void settle_ahead(struct wb_history *history, const struct wb_history_capture *capture)
{
    size_t begin = first_time(history), end = history->times.count, keep = end;

    WB_CHECK(begin <= end);
    if (wb_store_time_is_ahead(capture->time_ms, capture->now_ms))
        return;
    while (keep > begin && wb_store_time_is_ahead(history->times.items[keep - 1], capture->now_ms))
        keep--;
    int64_t before = keep > begin ? history->times.items[keep - 1] : INT64_MIN;
    if (wb_store_time_is_ahead(history->floor_ms, capture->now_ms))
        history->floor_ms = INT64_MIN;
    if (wb_store_time_is_ahead(history->gone_ms, capture->now_ms))
        history->gone_ms = before > 1 ? before : 1;
    int64_t moved = before < capture->time_ms - 1 ? capture->time_ms - 1 : before + 1;
    for (size_t i = history->versions.count; i > history->ghosts && keep < end;) {
        struct wb_history_version *version = &history->versions.items[i - 1];
        size_t from = version->first < keep ? keep : version->first, to = version->first + version->count;
        if (from >= to)
            break;
        if (version->ceased != 0 && from == version->first) {
            make_ghost(history, i - 1); /* the one before it has moved to its place */
            keep += to - from;
            continue;
        }
        if (version->ceased == 0 && from == version->first)
            history->times.items[from++] = moved;
        remove_times(history, i - 1, from, to);
        i--;
    }
}

/* The index of the first capture that is not older; only those that take part. */
static size_t find_time(const struct wb_history *history, int64_t time_ms)
{
    size_t low = first_time(history), high = history->times.count;

    WB_CHECK(low <= high);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (history->times.items[middle] < time_ms)
            low = middle + 1;
        else
            high = middle;
    }
    WB_CHECK(low <= history->times.count);
    return low;
}

/*
 * Whether the capture changes nothing: it is too old, or known. Decided before anything gives way to it. If there is
 * no moment left for the latest version between the new capture and the one before it, the new one counts as known.
 */
static bool is_refused(const struct wb_history *history, const struct wb_history_capture *capture,
                       enum wb_store_outcome *outcome_out)
{
    const int64_t *times = history->times.items;
    size_t begin = first_time(history), at = find_time(history, capture->time_ms);
    bool plausible = !wb_store_time_is_ahead(capture->time_ms, capture->now_ms);
    const struct wb_history_version *last =
        history->versions.count > history->ghosts ? &history->versions.items[history->versions.count - 1] : NULL;

    WB_CHECK(at >= begin);
    WB_CHECK(at <= history->times.count);
    if (capture->time_ms <= history->floor_ms &&
        !(plausible && wb_store_time_is_ahead(history->floor_ms, capture->now_ms))) {
        *outcome_out = WB_STORE_PUT_OLDER;
        return true;
    }
    bool known = at < history->times.count && times[at] == capture->time_ms;
    bool tight = plausible && last && last->ceased == 0 &&
                 wb_store_time_is_ahead(times[last->first], capture->now_ms) && at > begin &&
                 times[at - 1] == capture->time_ms - 1 && wb_store_time_is_ahead(times[at], capture->now_ms);
    *outcome_out = WB_STORE_PUT_KNOWN;
    return known || tight;
}

/* The version that has the capture with this index. */
static size_t owner_of(const struct wb_history *history, size_t time)
{
    size_t i = history->versions.count;

    WB_CHECK(time < history->times.count);
    while (i > 0 && history->versions.items[i - 1].first > time)
        i--;
    WB_CHECK(i > 0);
    return i - 1;
}

/* An addition in progress: where the capture belongs. */
struct placing {
    struct wb_history *history;
    const struct wb_history_capture *capture;
    size_t at;            /* index of its time */
    bool has_before, has_after;
    size_t before, after; /* the versions of its neighbours in time */
};

static bool has_same_content(const struct placing *p, size_t version)
{
    struct wb_history *history = p->history;
    const struct wb_history_version *latest = wb_history_latest(history);
    uint64_t content = p->capture->content ? p->capture->content : latest ? latest->content : 0;

    WB_CHECK(version < history->versions.count);
    if (content == 0)
        return latest == &history->versions.items[version];
    return history->versions.items[version].content == content;
}

/* Begins a version with this capture, as number `index`. */
static void begin_version(const struct placing *p, size_t index, bool latest)
{
    struct wb_history_version version = *p->capture->bytes;

    WB_CHECK(p->capture->epoch > 0);
    WB_CHECK(index >= p->history->ghosts);
    WB_CHECK(version.place.segment > 0 || !latest);
    version.content = p->capture->content ? p->capture->content : version.content;
    version.arrived = p->capture->epoch;
    version.ceased = latest ? 0 : p->capture->epoch;
    version.ghost = false;
    version.first = p->at;
    version.count = 0;
    insert_version(p->history, index, &version);
    insert_time(p->history, p->at, index, p->capture->time_ms);
}

/* Cuts a version in two before the capture; the newer part stays what it was in all snapshots. */
static void split(const struct placing *p)
{
    struct wb_history_version older = p->history->versions.items[p->before];

    WB_CHECK(p->before == p->after);
    WB_CHECK(p->at > older.first);
    older.count = p->at - older.first;
    older.arrived = older.ceased = p->capture->epoch;
    insert_version(p->history, p->before, &older);
    struct wb_history_version *newer = &p->history->versions.items[p->before + 1];
    newer->first = p->at;
    newer->count -= older.count;
    WB_CHECK(newer->count > 0);
}

/* The capture is older than another one, or the page was gone by then. */
static enum wb_store_outcome add_to_past(const struct placing *p)
{
    WB_CHECK(p->has_before || p->has_after);
    WB_CHECK(!p->has_before || p->before >= p->history->ghosts);
    if (p->has_before && has_same_content(p, p->before)) {
        insert_time(p->history, p->at, p->before, p->capture->time_ms);
        return WB_STORE_PUT_CAPTURE;
    }
    if (p->has_after && has_same_content(p, p->after)) {
        insert_time(p->history, p->at, p->after, p->capture->time_ms);
        return WB_STORE_PUT_CAPTURE;
    }
    if (p->has_before && p->has_after && p->before == p->after)
        split(p);
    begin_version(p, p->has_before ? p->before + 1 : p->history->ghosts, false);
    return WB_STORE_PUT_PAST;
}

/* The capture is the newest one. */
static enum wb_store_outcome add_to_present(const struct placing *p)
{
    struct wb_history_version *latest = wb_history_latest(p->history);

    WB_CHECK(!p->has_after);
    WB_CHECK(!latest || p->has_before);
    if (latest && has_same_content(p, p->before)) {
        insert_time(p->history, p->at, p->before, p->capture->time_ms);
        return WB_STORE_PUT_CAPTURE;
    }
    if (p->capture->bytes->place.segment == 0)
        return WB_STORE_PUT_OLDER;
    if (latest)
        latest->ceased = p->capture->epoch;
    p->history->gone_ms = 0;
    begin_version(p, p->history->versions.count, true);
    return latest ? WB_STORE_PUT_VERSION : WB_STORE_PUT_NEW;
}

int wb_history_add(struct wb_history *history, const struct wb_history_capture *capture,
                   enum wb_store_outcome *outcome_out)
{
    struct placing p = {.history = history, .capture = capture};
    int err = wb_vec_reserve(&history->versions, history->versions.count + 2);

    check_history(history);
    WB_CHECK(capture->bytes != NULL);
    WB_CHECK(capture->epoch > 0);
    *outcome_out = WB_STORE_PUT_OLDER;
    if (err == 0)
        err = wb_vec_reserve(&history->times, history->times.count + 1);
    if (err < 0)
        return err;
    if (is_refused(history, capture, outcome_out))
        return 0;
    settle_ahead(history, capture);
    p.at = find_time(history, capture->time_ms);
    p.has_after = p.at < history->times.count;
    WB_CHECK(!p.has_after || history->times.items[p.at] != capture->time_ms);
    p.has_before = p.at > first_time(history);
    p.after = p.has_after ? owner_of(history, p.at) : 0;
    p.before = p.has_before ? owner_of(history, p.at - 1) : 0;
    bool gone = p.has_before && !wb_history_latest(history);
    if (p.has_after || (gone && capture->time_ms <= history->gone_ms))
        *outcome_out = add_to_past(&p);
    else
        *outcome_out = add_to_present(&p);
    check_history(history);
    return 0;
}

void wb_history_end(struct wb_history *history, int64_t gone_ms, uint64_t epoch)
{
    struct wb_history_version *latest = wb_history_latest(history);

    WB_CHECK(latest != NULL);
    WB_CHECK(epoch >= latest->arrived);
    latest->ceased = epoch;
    int64_t last = wb_history_last_ms(history, latest);
    history->gone_ms = gone_ms > last ? gone_ms : last;
    if (history->gone_ms < 1)
        history->gone_ms = 1;
    WB_CHECK(!wb_history_latest(history));
}

void wb_history_drop(struct wb_history *history, size_t version)
{
    check_history(history);
    WB_CHECK(version < history->versions.count);
    remove_version(history, version);
    check_history(history);
}

/* ---- forgetting ----------------------------------------------------------------------------------------- */

bool wb_history_is_held(const struct wb_history_version *version, const struct wb_history_rule *rule)
{
    size_t low = 0, high = rule->held_count;

    WB_CHECK(version->arrived > 0);
    WB_CHECK(version->ceased == 0 || version->ceased >= version->arrived);
    WB_CHECK(rule->held_count == 0 || rule->held);
    while (low < high) { /* the first held epoch in which it had arrived */
        size_t middle = (low + high) / 2;
        if (rule->held[middle] < version->arrived)
            low = middle + 1;
        else
            high = middle;
    }
    return low < rule->held_count && (version->ceased == 0 || rule->held[low] < version->ceased);
}

/* The number of the first version that the policy keeps. Policies keep the newest ones, so those before it go. */
static size_t first_kept(const struct wb_history *history, const struct wb_history_rule *rule)
{
    size_t count = history->versions.count, i = count;

    WB_CHECK(rule->policy.keep <= WB_STORE_KEEP_DURATION);
    switch (rule->policy.keep) {
    case WB_STORE_KEEP_NEWEST:
        break;
    case WB_STORE_KEEP_ALL:
        i = history->ghosts;
        break;
    case WB_STORE_KEEP_COUNT:
        i = count - history->ghosts > rule->policy.value ? count - (size_t)rule->policy.value : history->ghosts;
        break;
    case WB_STORE_KEEP_DURATION:
        for (; i > history->ghosts; i--) {
            const struct wb_history_version *next = i < count ? &history->versions.items[i] : NULL;
            int64_t end_ms = next ? history->times.items[next->first] : history->gone_ms;
            bool latest = !next && history->versions.items[i - 1].ceased == 0;
            if (!latest && end_ms < rule->now_ms - (int64_t)rule->policy.value)
                break;
        }
        break;
    }
    if (i == count && count > history->ghosts && history->versions.items[count - 1].ceased == 0)
        i = count - 1; /* the latest is always kept */
    WB_CHECK(i >= history->ghosts);
    WB_CHECK(i <= count);
    return i;
}

void wb_history_trim(struct wb_history *history, const struct wb_history_rule *rule)
{
    size_t kept = first_kept(history, rule);

    check_history(history);
    for (size_t i = 0; i < history->versions.count;) {
        struct wb_history_version *version = &history->versions.items[i];
        bool hollow = version->place.segment == 0, forgotten = i < kept;
        if (forgotten && !version->ghost && history->floor_ms < wb_history_last_ms(history, version))
            history->floor_ms = wb_history_last_ms(history, version);
        if (!hollow && (!forgotten || wb_history_is_held(version, rule))) {
            if (forgotten && !version->ghost) {
                version->ghost = true;
                history->ghosts++;
            }
            i++;
            continue;
        }
        WB_CHECK(version->ceased != 0);
        remove_version(history, i);
        kept -= forgotten;
    }
    if (history->versions.count == history->ghosts) {
        history->floor_ms = INT64_MIN;
        history->gone_ms = 0;
    }
    wb_history_thin(history, rule);
    check_history(history);
}

/* ---- looking ---------------------------------------------------------------------------------------------- */

const struct wb_history_version *wb_history_at(const struct wb_history *history, int64_t time_ms)
{
    const struct wb_history_version *found = NULL, *oldest = NULL;
    int64_t best = 0;

    for (size_t i = 0; i < history->versions.count; i++) {
        const struct wb_history_version *version = &history->versions.items[i];
        const int64_t *times = history->times.items + version->first;
        WB_CHECK(version->count > 0);
        if (!oldest || times[0] < history->times.items[oldest->first])
            oldest = version;
        size_t low = 0, high = version->count; /* the number of its captures at or before time_ms */
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (times[middle] <= time_ms)
                low = middle + 1;
            else
                high = middle;
        }
        if (low > 0 &&
            (!found || times[low - 1] > best || (times[low - 1] == best && version->arrived > found->arrived))) {
            found = version;
            best = times[low - 1];
        }
    }
    WB_CHECK(oldest || history->versions.count == 0);
    return found ? found : oldest;
}

const struct wb_history_version *wb_history_in(const struct wb_history *history, uint64_t epoch)
{
    check_history(history);
    WB_CHECK(epoch > 0);
    for (size_t i = history->versions.count; i > 0; i--) {
        const struct wb_history_version *version = &history->versions.items[i - 1];
        if (version->arrived <= epoch && (version->ceased == 0 || version->ceased > epoch))
            return version;
    }
    return NULL;
}
