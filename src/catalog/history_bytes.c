/*
 * history_bytes.c - the past of a page as bytes, and back. docs/formats/catalog.md lists the
 * fields. Times and places are stored as differences from the ones before, because versions
 * are close together in time, and after a compaction in the same block.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "catalog/history_list.h"

enum {
    HISTORY_FORMAT = 1,
    HISTORY_HEAD_BYTES = 9, /* format and site */
    NUMBER_MAX = 10,        /* bytes of the longest varint */
};

enum history_flags { HAS_FLOOR = 1, HAS_GONE = 2, HAS_FORGOTTEN = 4 };
enum version_flags {
    IS_LATEST = 1,
    IS_GHOST = 2,
    SAME_BLOCK = 4,
    IS_REPLACED = 8,
    HAS_EPOCHS = 16, /* some of its captures arrived in other epochs than the version */
    VERSION_FLAG_BITS = 5
};

/* ---- writing ---------------------------------------------------------------------------------- */

static int put_number(struct wb_buf *out, uint64_t value)
{
    char bytes[NUMBER_MAX];
    size_t len = wb_put_varint(bytes, value);

    WB_CHECK(len > 0);
    WB_CHECK(len <= sizeof bytes);
    return wb_buf_append(out, bytes, len);
}

static int put_difference(struct wb_buf *out, uint64_t value, uint64_t before)
{
    return put_number(out, wb_zigzag(value - before));
}

static int put_times(const int64_t *times, size_t count, int64_t before, struct wb_buf *out)
{
    int err = 0;

    WB_CHECK(count > 0);
    for (size_t i = 0; i < count && err == 0; i++) {
        WB_CHECK(i == 0 || times[i] > times[i - 1]);
        err = put_difference(out, (uint64_t)times[i], (uint64_t)before);
        before = times[i];
    }
    return err;
}

/* What an old version has in addition: where its bytes are. The entry of the page says that about the latest one. */
static int put_bytes(const struct wb_history_version *version, const struct wb_catalog_place *before,
                     struct wb_buf *out)
{
    char content[8];
    int err;

    WB_CHECK(version->place.logical > 0);
    WB_CHECK(version->ceased > 0);
    WB_CHECK(version->ceased >= version->arrived);
    WB_CHECK(version->place.segment > 0);
    wb_put64(content, version->content);
    err = wb_buf_append(out, content, sizeof content);
    if (err == 0)
        err = put_number(out, version->ceased - version->arrived);
    if (err == 0)
        err = put_number(out, version->status);
    if (err == 0)
        err = put_number(out, version->body_bytes);
    if (err == 0)
        err = put_number(out, version->stored_bytes);
    if (err == 0)
        err = put_difference(out, version->place.slot, before->slot);
    if (err < 0 || (version->place.segment == before->segment && version->place.logical == before->logical))
        return err;
    err = put_number(out, version->place.segment);
    return err < 0 ? err : put_number(out, version->place.logical);
}

static bool has_epochs(const struct wb_history *history, const struct wb_history_version *version)
{
    for (size_t i = version->first; i < version->first + version->count; i++)
        if (history->epochs.items[i] != version->arrived)
            return true;
    return false;
}

/* The epochs in which the captures arrived, as runs. */
static int put_epochs(const struct wb_history *history, const struct wb_history_version *version, struct wb_buf *out)
{
    const uint64_t *epochs = history->epochs.items + version->first;
    int err = 0;

    WB_CHECK(version->first + version->count <= history->epochs.count);
    for (size_t i = 0, next; i < version->count && err == 0; i = next) {
        for (next = i + 1; next < version->count && epochs[next] == epochs[i];)
            next++;
        err = put_number(out, next - i);
        if (err == 0)
            err = put_difference(out, epochs[i], version->arrived);
    }
    return err;
}

static int put_version(const struct wb_history *history, size_t i, const struct wb_catalog_place *before,
                       struct wb_buf *out)
{
    const struct wb_history_version *version = &history->versions.items[i];
    bool same = version->place.segment == before->segment && version->place.logical == before->logical;
    bool epochs = has_epochs(history, version);
    uint64_t flags = (version->ceased == 0 ? IS_LATEST : 0) | (version->ghost ? IS_GHOST : 0) |
                     (same ? SAME_BLOCK : 0) | (version->replaced ? IS_REPLACED : 0) | (epochs ? HAS_EPOCHS : 0);
    int64_t last = version->first ? history->times.items[version->first - 1] : 0;
    int err = put_number(out, (uint64_t)version->count << VERSION_FLAG_BITS | flags);

    WB_CHECK(i < history->versions.count);
    WB_CHECK(version->first + version->count <= history->times.count);
    WB_CHECK(!version->ghost || version->ceased != 0);
    WB_CHECK(version->count > 0);
    WB_CHECK(version->arrived > 0);
    if (err == 0)
        err = put_times(history->times.items + version->first, version->count, last, out);
    if (err == 0)
        err = put_number(out, version->arrived);
    if (err == 0 && epochs)
        err = put_epochs(history, version, out);
    return err < 0 || version->ceased == 0 ? err : put_bytes(version, before, out);
}

static int put_forgotten(const struct wb_history *history, struct wb_buf *out)
{
    int err = put_number(out, history->forgotten.count);
    char content[8];

    WB_CHECK(history->forgotten.count <= WB_HISTORY_FORGOTTEN_MAX);
    for (size_t i = 0; i < history->forgotten.count && err == 0; i++) {
        wb_put64(content, history->forgotten.items[i]);
        err = wb_buf_append(out, content, sizeof content);
    }
    return err;
}

int wb_history_encode(const struct wb_history *history, uint64_t site, struct wb_buf *bytes_out)
{
    char head[HISTORY_HEAD_BYTES] = {HISTORY_FORMAT};
    struct wb_catalog_place before = {0};
    uint64_t flags = (history->floor_ms != INT64_MIN ? HAS_FLOOR : 0) | (history->gone_ms ? HAS_GONE : 0) |
                     (history->forgotten.count ? HAS_FORGOTTEN : 0);
    int err;

    WB_CHECK(history->ghosts <= history->versions.count);
    WB_CHECK(history->versions.count <= history->times.count);
    WB_CHECK(history->versions.count > 0);
    wb_put64(head + 1, site);
    wb_buf_clear(bytes_out);
    err = wb_buf_append(bytes_out, head, sizeof head);
    if (err == 0)
        err = put_number(bytes_out, flags);
    if (err == 0 && flags & HAS_FLOOR)
        err = put_number(bytes_out, wb_zigzag((uint64_t)history->floor_ms));
    if (err == 0 && flags & HAS_GONE)
        err = put_number(bytes_out, wb_zigzag((uint64_t)history->gone_ms));
    if (err == 0 && flags & HAS_FORGOTTEN)
        err = put_forgotten(history, bytes_out);
    if (err == 0)
        err = put_number(bytes_out, history->versions.count);
    for (size_t i = 0; i < history->versions.count && err == 0; i++) {
        err = put_version(history, i, &before, bytes_out);
        if (history->versions.items[i].ceased != 0)
            before = history->versions.items[i].place;
    }
    return err;
}

/* ---- reading ------------------------------------------------------------------------------------- */

struct history_reader {
    const char *at, *end;
    bool ok;    /* false: the bytes are not a history */
    bool nomem; /* ... or memory ran out */
};

static uint64_t get_number(struct history_reader *r)
{
    uint64_t value = 0;

    WB_CHECK(r->at <= r->end);
    r->ok = r->ok && wb_get_varint(&r->at, r->end, &value);
    return r->ok ? value : 0;
}

static uint64_t get_difference(struct history_reader *r, uint64_t before)
{
    return before + wb_unzigzag(get_number(r));
}

static void get_times(struct history_reader *r, struct wb_history *history, uint64_t count)
{
    int64_t before = history->times.count ? history->times.items[history->times.count - 1] : 0;

    WB_CHECK(r->at <= r->end);
    WB_CHECK(history->ghosts <= history->versions.count);
    /* Each time takes a byte at least, so hostile counts cannot make us allocate much. */
    r->ok = r->ok && count > 0 && count <= (uint64_t)(r->end - r->at);
    r->nomem = r->nomem || (r->ok && wb_vec_reserve(&history->times, history->times.count + (size_t)count) < 0);
    r->ok = r->ok && !r->nomem;
    for (uint64_t i = 0; i < count && r->ok; i++) {
        int64_t time = (int64_t)get_difference(r, (uint64_t)before);
        r->ok = r->ok && (i == 0 || time > before) && wb_vec_push(&history->times, time) == 0;
        before = time;
    }
}

static void get_bytes(struct history_reader *r, struct wb_history_version *version, bool same_block,
                      const struct wb_catalog_place *before)
{
    WB_CHECK(r->at <= r->end);
    WB_CHECK(!version->ghost || version->ceased == 0);
    r->ok = r->ok && r->end - r->at >= 8;
    if (!r->ok)
        return;
    version->content = wb_get64(r->at);
    r->at += 8;
    version->ceased = version->arrived + get_number(r);
    uint64_t status = get_number(r), body = get_number(r), stored = get_number(r);
    uint64_t slot = get_difference(r, before->slot);
    uint64_t segment = same_block ? before->segment : get_number(r);
    uint64_t logical = same_block ? before->logical : get_number(r);
    r->ok = r->ok && version->content != 0 && status <= UINT16_MAX && body <= UINT32_MAX && stored <= UINT32_MAX &&
            slot <= UINT16_MAX && segment > 0 && segment <= UINT32_MAX && logical > 0 &&
            version->ceased >= version->arrived;
    version->status = (uint16_t)status;
    version->body_bytes = body;
    version->stored_bytes = (uint32_t)stored;
    version->place = (struct wb_catalog_place){(uint32_t)segment, (uint16_t)slot, logical};
}

/* The epochs in which the captures of a version arrived. */
static void get_epochs(struct history_reader *r, struct wb_history *history, const struct wb_history_version *version,
                       bool different)
{
    size_t left = r->ok ? version->count : 0;

    WB_CHECK(!r->ok || history->times.count == history->epochs.count + version->count);
    r->nomem = r->nomem || (r->ok && wb_vec_reserve(&history->epochs, history->times.count) < 0);
    r->ok = r->ok && !r->nomem;
    while (r->ok && left) {
        uint64_t run = different ? get_number(r) : left;
        uint64_t epoch = different ? get_difference(r, version->arrived) : version->arrived;
        r->ok = r->ok && run > 0 && run <= left && epoch > 0 && epoch != UINT64_MAX;
        for (uint64_t i = 0; i < run && r->ok; i++)
            history->epochs.items[history->epochs.count++] = epoch;
        left -= r->ok ? (size_t)run : 0;
    }
}

static void get_version(struct history_reader *r, struct wb_history *history, struct wb_catalog_place *before)
{
    uint64_t head = get_number(r), flags = head & ((1 << VERSION_FLAG_BITS) - 1);
    struct wb_history_version version = {
        .first = history->times.count,
        .count = (size_t)(head >> VERSION_FLAG_BITS),
        .ghost = flags & IS_GHOST,
        .replaced = flags & IS_REPLACED,
    };

    get_times(r, history, head >> VERSION_FLAG_BITS);
    version.arrived = get_number(r);
    get_epochs(r, history, &version, flags & HAS_EPOCHS);
    /* Ghosts come first and have ceased. The captures of the others are in the order of time. */
    bool after_others = history->ghosts < history->versions.count;
    r->ok = r->ok && version.arrived > 0 && !(version.ghost && (after_others || flags & IS_LATEST)) &&
            !(version.replaced && !version.ghost) &&
            !(after_others && history->times.items[version.first] < history->times.items[version.first - 1]);
    if (!(flags & IS_LATEST)) {
        get_bytes(r, &version, flags & SAME_BLOCK, before);
        *before = version.place;
    }
    history->ghosts += version.ghost;
    r->nomem = r->nomem || (r->ok && wb_vec_push(&history->versions, version) < 0);
    r->ok = r->ok && !r->nomem;
    WB_CHECK(!r->ok || history->ghosts <= history->versions.count);
}

static void get_forgotten(struct history_reader *r, struct wb_history *history)
{
    uint64_t count = get_number(r);

    r->ok = r->ok && count > 0 && count <= WB_HISTORY_FORGOTTEN_MAX && count <= (uint64_t)(r->end - r->at) / 8;
    r->nomem = r->nomem || (r->ok && wb_vec_reserve(&history->forgotten, (size_t)count) < 0);
    r->ok = r->ok && !r->nomem;
    for (uint64_t i = 0; i < count && r->ok; i++, r->at += 8)
        history->forgotten.items[history->forgotten.count++] = wb_get64(r->at);
}

int wb_history_decode(struct wb_slice bytes, struct wb_history *history_out, uint64_t *site_out)
{
    struct history_reader r = {bytes.ptr, bytes.ptr + bytes.len, bytes.len > HISTORY_HEAD_BYTES, false};
    struct wb_catalog_place before = {0};

    wb_history_clear(history_out);
    *site_out = 0;
    if (!r.ok)
        return wb_fail(WB_E_CORRUPT, "the bytes are not a history");
    if (bytes.ptr[0] != HISTORY_FORMAT)
        return wb_fail_format("the history of a page", (uint8_t)bytes.ptr[0], HISTORY_FORMAT);
    *site_out = wb_get64(bytes.ptr + 1);
    r.at += HISTORY_HEAD_BYTES;
    uint64_t flags = get_number(&r);
    if (flags & HAS_FLOOR)
        history_out->floor_ms = (int64_t)wb_unzigzag(get_number(&r));
    if (flags & HAS_GONE)
        history_out->gone_ms = (int64_t)wb_unzigzag(get_number(&r));
    if (flags & HAS_FORGOTTEN)
        get_forgotten(&r, history_out);
    uint64_t count = get_number(&r);
    r.ok = r.ok && count > 0 && flags <= (HAS_FLOOR | HAS_GONE | HAS_FORGOTTEN) &&
           !(flags & HAS_FORGOTTEN && !(flags & HAS_FLOOR));
    for (uint64_t i = 0; i < count && r.ok; i++) {
        bool latest_before = i > 0 && history_out->versions.items[i - 1].ceased == 0;
        get_version(&r, history_out, &before);
        r.ok = r.ok && !latest_before; /* the latest is the last */
    }
    if (r.nomem || (r.ok && wb_history_reserve(history_out, 0, 0) < 0))
        return wb_fail_nomem();
    WB_CHECK(r.at <= r.end);
    WB_CHECK(!r.ok || history_out->versions.count == count);
    WB_CHECK(!r.ok || history_out->epochs.count == history_out->times.count);
    bool whole = r.ok && r.at == r.end && !(history_out->gone_ms && wb_history_latest(history_out));
    return whole ? 0 : wb_fail(WB_E_CORRUPT, "the bytes are not a history");
}
