/*
 * history_list.c - the lists of a history: versions, and the times and epochs of their captures (history.h has the
 * picture). Nothing here decides what happens to a page.
 */
#include "catalog/history_list.h"
#include "base/bytes.h"
#include "base/hash.h"

void wb_history_clear(struct wb_history *history)
{
    wb_vec_clear(&history->versions);
    wb_vec_clear(&history->times);
    wb_vec_clear(&history->epochs);
    wb_vec_clear(&history->forgotten);
    history->ghosts = 0;
    history->floor_ms = INT64_MIN;
    history->gone_ms = 0;
}

void wb_history_release(struct wb_history *history)
{
    wb_vec_release(&history->versions);
    wb_vec_release(&history->times);
    wb_vec_release(&history->epochs);
    wb_vec_release(&history->forgotten);
}

int wb_history_reserve(struct wb_history *history, size_t versions, size_t captures)
{
    size_t most = history->versions.count + versions;
    int err = wb_vec_reserve(&history->versions, most);

    if (err == 0)
        err = wb_vec_reserve(&history->times, history->times.count + captures);
    if (err == 0)
        err = wb_vec_reserve(&history->epochs, history->epochs.count + captures);
    /* Of a single version nothing is forgotten, or everything, and then nothing needs to be remembered. */
    if (err == 0 && most > 1)
        err = wb_vec_reserve(&history->forgotten, history->forgotten.count + most);
    return err;
}

int wb_history_copy(const struct wb_history *history, struct wb_history *copy_out)
{
    wb_history_clear(copy_out);
    int err = wb_history_reserve(copy_out, history->versions.count, history->times.count);
    if (err == 0)
        err = wb_vec_reserve(&copy_out->forgotten, history->forgotten.count + history->versions.count);
    if (err < 0)
        return err;
    if (history->versions.count) {
        memcpy(copy_out->versions.items, history->versions.items,
               history->versions.count * sizeof *history->versions.items);
        memcpy(copy_out->times.items, history->times.items, history->times.count * sizeof *history->times.items);
        memcpy(copy_out->epochs.items, history->epochs.items, history->epochs.count * sizeof *history->epochs.items);
    }
    if (history->forgotten.count)
        memcpy(copy_out->forgotten.items, history->forgotten.items,
               history->forgotten.count * sizeof *history->forgotten.items);
    copy_out->versions.count = history->versions.count;
    copy_out->times.count = history->times.count;
    copy_out->epochs.count = history->epochs.count;
    copy_out->forgotten.count = history->forgotten.count;
    copy_out->ghosts = history->ghosts;
    copy_out->floor_ms = history->floor_ms;
    copy_out->gone_ms = history->gone_ms;
    return 0;
}

uint64_t wb_history_content(const struct wb_page *page, uint64_t seed)
{
    uint64_t parts[2] = {wb_hash64_seeded(page->type.ptr, page->type.len, seed + page->status),
                         wb_hash64_seeded(page->body.ptr, page->body.len, seed)};
    struct wb_slice location;
    /* Most redirects have no body, or always the same one: what they say is where they lead. */
    if (wb_http_status_redirects(page->status) && wb_http_header(page->head, "location", &location))
        parts[1] = wb_hash64_seeded(location.ptr, location.len, parts[1]);
    uint64_t content = wb_hash64_seeded(parts, sizeof parts, seed) & ~(uint64_t)1;

    WB_CHECK(page->body.ptr || page->body.len == 0);
    content = content ? content : 2;
    return content | page->truncated;
}

/* ---- looking ---------------------------------------------------------------------------------------------- */

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
    for (size_t i = history->versions.count; i > 0; i--) {
        struct wb_history_version *version = &history->versions.items[i - 1];
        if (version->content == content && wb_history_has_bytes(version))
            return version;
    }
    return NULL;
}

bool wb_history_was_forgotten(const struct wb_history *history, uint64_t content)
{
    WB_CHECK(history->forgotten.count <= WB_HISTORY_FORGOTTEN_MAX);
    for (size_t i = 0; i < history->forgotten.count; i++)
        if (history->forgotten.items[i] == content || history->forgotten.items[i] == WB_HISTORY_FORGOTTEN_ALL)
            return true;
    return false;
}

size_t wb_history_first_time(const struct wb_history *history)
{
    wb_history_check(history);
    return history->ghosts < history->versions.count ? history->versions.items[history->ghosts].first
                                                     : history->times.count;
}

size_t wb_history_owner_of(const struct wb_history *history, size_t time)
{
    size_t i = history->versions.count;

    WB_CHECK(time < history->times.count);
    while (i > 0 && history->versions.items[i - 1].first > time)
        i--;
    WB_CHECK(i > 0);
    return i - 1;
}

const struct wb_history_version *wb_history_owner(const struct wb_history *history, size_t capture)
{
    return &history->versions.items[wb_history_owner_of(history, capture)];
}

size_t wb_history_tie(const struct wb_history *history, int64_t time_ms, size_t *first_out)
{
    size_t low = wb_history_first_time(history), high = history->times.count, count = 0;

    WB_CHECK(low <= high);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (history->times.items[middle] < time_ms)
            low = middle + 1;
        else
            high = middle;
    }
    while (low + count < history->times.count && history->times.items[low + count] == time_ms)
        count++;
    *first_out = low;
    return count;
}

/* ---- changing --------------------------------------------------------------------------------------------- */

int wb_history_push(struct wb_history *history, const struct wb_history_version *version, int64_t time_ms,
                    uint64_t epoch)
{
    struct wb_history_version pushed = *version;
    int err = wb_history_reserve(history, 1, 1);

    WB_CHECK(version->place.segment > 0);
    WB_CHECK(version->arrived > 0);
    WB_CHECK(!version->ghost);
    if (err < 0)
        return err;
    pushed.first = history->times.count;
    pushed.count = 0;
    wb_history_insert_version(history, history->versions.count, &pushed);
    wb_history_insert_time(history, history->times.count, history->versions.count - 1, time_ms, epoch);
    return 0;
}

void wb_history_insert_version(struct wb_history *history, size_t at, const struct wb_history_version *version)
{
    WB_CHECK(at <= history->versions.count);
    WB_CHECK(history->versions.count < history->versions.cap);
    struct wb_history_version *items = history->versions.items;
    memmove(items + at + 1, items + at, (history->versions.count - at) * sizeof *items);
    items[at] = *version;
    history->versions.count++;
}

void wb_history_insert_time(struct wb_history *history, size_t at, size_t owner, int64_t time_ms, uint64_t epoch)
{
    WB_CHECK(owner < history->versions.count);
    WB_CHECK(at >= history->versions.items[owner].first);
    WB_CHECK(at <= history->versions.items[owner].first + history->versions.items[owner].count);
    WB_CHECK(at <= history->times.count);
    WB_CHECK(history->times.count < history->times.cap && history->epochs.count < history->epochs.cap);
    int64_t *times = history->times.items;
    uint64_t *epochs = history->epochs.items;
    memmove(times + at + 1, times + at, (history->times.count - at) * sizeof *times);
    memmove(epochs + at + 1, epochs + at, (history->epochs.count - at) * sizeof *epochs);
    times[at] = time_ms;
    epochs[at] = epoch;
    history->times.count++;
    history->epochs.count++;
    history->versions.items[owner].count++;
    for (size_t i = owner + 1; i < history->versions.count; i++)
        history->versions.items[i].first++;
}

void wb_history_remove_times(struct wb_history *history, size_t owner, size_t from, size_t to)
{
    size_t count = to - from;

    WB_CHECK(owner < history->versions.count);
    WB_CHECK(from >= history->versions.items[owner].first);
    WB_CHECK(from <= to);
    WB_CHECK(to <= history->times.count);
    WB_CHECK(history->versions.items[owner].count >= count);
    int64_t *times = history->times.items;
    uint64_t *epochs = history->epochs.items;
    memmove(times + from, times + to, (history->times.count - to) * sizeof *times);
    memmove(epochs + from, epochs + to, (history->epochs.count - to) * sizeof *epochs);
    history->times.count -= count;
    history->epochs.count -= count;
    history->versions.items[owner].count -= count;
    for (size_t i = owner + 1; i < history->versions.count; i++)
        history->versions.items[i].first -= count;
}

void wb_history_remove_version(struct wb_history *history, size_t at)
{
    WB_CHECK(at < history->versions.count);
    struct wb_history_version *items = history->versions.items;
    wb_history_remove_times(history, at, items[at].first, items[at].first + items[at].count);
    history->ghosts -= items[at].ghost;
    memmove(items + at, items + at + 1, (history->versions.count - at - 1) * sizeof *items);
    history->versions.count--;
}

void wb_history_drop(struct wb_history *history, size_t version)
{
    wb_history_check(history);
    WB_CHECK(version < history->versions.count);
    wb_history_remove_version(history, version);
    wb_history_check(history);
}

/* ---- ghosts ----------------------------------------------------------------------------------------------- */

void wb_history_make_ghost(struct wb_history *history, size_t index)
{
    struct wb_history_version *versions = history->versions.items, moved = versions[index];
    size_t begin = wb_history_first_time(history);

    WB_CHECK(!moved.ghost);
    WB_CHECK(moved.count > 0);
    WB_CHECK(begin <= moved.first);
    WB_CHECK(index >= history->ghosts);
    WB_CHECK(moved.ceased != 0);
    for (size_t i = 0; i < moved.count; i++) {
        int64_t *to = &history->times.items[begin + i], time_ms = history->times.items[moved.first + i];
        uint64_t *epoch_to = &history->epochs.items[begin + i], epoch = history->epochs.items[moved.first + i];
        memmove(to + 1, to, (moved.first - begin) * sizeof *to);
        memmove(epoch_to + 1, epoch_to, (moved.first - begin) * sizeof *epoch_to);
        *to = time_ms;
        *epoch_to = epoch;
    }
    for (size_t i = index; i > history->ghosts; i--) {
        versions[i] = versions[i - 1];
        versions[i].first += moved.count;
    }
    moved.first = begin;
    moved.ghost = true;
    versions[history->ghosts++] = moved;
}

int wb_history_freeze(struct wb_history *history, size_t index, const struct wb_history_capture *capture,
                      size_t *captures_out)
{
    struct wb_history_version form = history->versions.items[index];

    *captures_out = 0;
    WB_CHECK(index >= history->ghosts);
    WB_CHECK(form.arrived <= capture->epoch);
    if (form.arrived == capture->epoch || !wb_history_is_held(&form, capture->rule))
        return 0;
    int err = wb_history_reserve(history, 1, form.count);
    if (err < 0)
        return err;
    struct wb_history_version ghost = form;
    ghost.ceased = form.ceased ? form.ceased : capture->epoch;
    ghost.ghost = ghost.replaced = true;
    ghost.first = wb_history_first_time(history);
    ghost.count = 0;
    wb_history_insert_version(history, history->ghosts, &ghost);
    for (size_t i = 0; i < form.count; i++) { /* the original moves on with each capture of its copy */
        size_t from = history->versions.items[index + 1].first + i;
        wb_history_insert_time(history, ghost.first + i, history->ghosts, history->times.items[from],
                               history->epochs.items[from]);
    }
    history->ghosts++;
    struct wb_history_version *version = &history->versions.items[index + 1];
    version->arrived = capture->epoch;
    version->ceased = version->ceased ? capture->epoch : 0;
    *captures_out = form.count;
    wb_history_check(history);
    return 1;
}
