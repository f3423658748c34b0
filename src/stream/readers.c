/*
 * readers.c - what readers, who have no token, may leave behind: a few holds that they share, and a few names.
 *
 * All streams of readers that deliver the same snapshot hold it under one name, "readers". The home counts how many of
 * them are under way. When the last one has ended, the hold stays until its time is over, so that a reader who comes
 * back can resume; or until a new one needs its place. A server that starts again finds the holds of the one before.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/locked.h"
#include "base/mem.h"
#include "os/clock.h"
#include "stream/stream_own.h"

#define RENEW_NS (INT64_C(60) * 1000000000)

void wb_readers_init(struct wb_readers *readers)
{
    pthread_mutex_init(&readers->mutex, NULL);
    readers->idle_ms = WB_STREAM_READER_IDLE_MS;
}

void wb_readers_release(struct wb_readers *readers)
{
    WB_CHECK(readers->names_opening == 0);
    pthread_mutex_destroy(&readers->mutex);
}

/* ---- holds: all of these are called with the mutex ----------------------------------------------- */

static struct wb_readers_hold *find_hold(struct wb_readers *readers, uint32_t snapshot)
{
    WB_CHECK(wb_is_locked(&readers->mutex) && readers->hold_count <= WB_STREAM_READER_HOLDS);
    for (size_t i = 0; i < readers->hold_count; i++)
        if (readers->holds[i].snapshot == snapshot)
            return &readers->holds[i];
    return NULL;
}

static void remove_hold(struct wb_readers *readers, struct wb_readers_hold *hold)
{
    WB_CHECK(wb_is_locked(&readers->mutex) && hold < readers->holds + readers->hold_count && hold->streams == 0);
    *hold = readers->holds[--readers->hold_count];
}

static struct wb_readers_hold *add_hold(struct wb_readers *readers, uint32_t snapshot, int64_t renewed_ns)
{
    WB_CHECK(readers->hold_count < WB_STREAM_READER_HOLDS && !find_hold(readers, snapshot));
    struct wb_readers_hold *hold = &readers->holds[readers->hold_count++];
    *hold = (struct wb_readers_hold){.snapshot = snapshot, .renewed_ns = renewed_ns};
    return hold;
}

/* The one to give up for a new one: of those that no stream needs, the one that was renewed first. NULL: none. */
static struct wb_readers_hold *idle_hold(struct wb_readers *readers)
{
    struct wb_readers_hold *idle = NULL;

    WB_CHECK(wb_is_locked(&readers->mutex));
    for (size_t i = 0; i < readers->hold_count; i++)
        if (readers->holds[i].streams == 0 && (!idle || readers->holds[i].renewed_ns < idle->renewed_ns))
            idle = &readers->holds[i];
    return idle;
}

static int let_go(struct wb_store *store, uint32_t snapshot)
{
    struct wb_store_holder holder = wb_hold_holder(WB_HOLD_OF_READERS, 0);
    int err = wb_store_let_go(store, snapshot, &holder);

    return err == WB_E_NOTFOUND ? 0 : err;
}

struct found_holds {
    WB_VEC(uint32_t) snapshots;
};

static int look_for_hold(void *context, const struct wb_store_snapshot *snapshot)
{
    struct found_holds *found = context;
    struct wb_store_holder own = wb_hold_holder(WB_HOLD_OF_READERS, 0);

    for (size_t i = 0; i < snapshot->holder_count; i++)
        if (snapshot->holders[i].kind == own.kind && strcmp(snapshot->holders[i].name, own.name) == 0)
            return wb_vec_push(&found->snapshots, snapshot->number);
    return 0;
}

/* Once: takes over the holds of an earlier process. Should there be too many, the oldest are given up. */
static int take_over(struct wb_readers *readers, struct wb_store *store)
{
    WB_CHECK(wb_is_locked(&readers->mutex));
    struct found_holds found = {WB_VEC_INIT};
    int err = readers->looked ? 0 : wb_store_snapshot_each(store, look_for_hold, &found);

    for (size_t i = 0; err == 0 && i < found.snapshots.count; i++) {
        uint32_t snapshot = found.snapshots.items[i];
        if (find_hold(readers, snapshot))
            continue;
        if (i + WB_STREAM_READER_HOLDS < found.snapshots.count || readers->hold_count == WB_STREAM_READER_HOLDS)
            err = let_go(store, snapshot);
        else
            add_hold(readers, snapshot, INT64_MIN);
    }
    readers->looked = readers->looked || err == 0;
    wb_vec_release(&found.snapshots);
    return err;
}

static int make_room(struct wb_readers *readers, struct wb_store *store)
{
    int err = take_over(readers, store);

    if (err < 0 || readers->hold_count < WB_STREAM_READER_HOLDS)
        return err;
    struct wb_readers_hold *idle = idle_hold(readers);
    if (!idle)
        return wb_fail(WB_E_CROWDED,
                       "readers without a token are reading %d other snapshots; try again later, or give a token",
                       WB_STREAM_READER_HOLDS);
    err = let_go(store, idle->snapshot);
    if (err == 0)
        remove_hold(readers, idle);
    return err;
}

static struct wb_store_holder own_holder(void)
{
    return wb_hold_holder(WB_HOLD_OF_READERS, wb_clock_wall_ms() + WB_STREAM_READER_HOLD_MS);
}

/* Returns 1; 0 if the repository cannot be written to; or an error. */
static int hold_now(struct wb_stream_home *home, uint32_t snapshot)
{
    WB_CHECK(wb_is_locked(&home->readers.mutex));
    struct wb_store_holder holder = own_holder();
    struct wb_readers *readers = &home->readers;
    struct wb_store *store = NULL;
    int got = wb_hold_writer(home->dir, &store);
    int err = got > 0 ? take_over(readers, store) : got;

    if (err == 0 && got > 0 && !find_hold(readers, snapshot))
        err = make_room(readers, store);
    if (err == 0 && got > 0)
        err = wb_store_hold(store, snapshot, &holder);
    struct wb_readers_hold *hold = find_hold(readers, snapshot);
    if (err == 0 && got > 0 && !hold)
        hold = add_hold(readers, snapshot, 0);
    if (err == 0 && hold)
        hold->renewed_ns = wb_clock_mono_ns();
    if (err == WB_E_NOTFOUND && hold && hold->streams == 0)
        remove_hold(readers, hold);
    wb_store_close(store);
    return err < 0 ? err : got;
}

/* ---- holding ------------------------------------------------------------------------------------- */

int wb_readers_hold(struct wb_stream_home *home, uint32_t snapshot)
{
    struct wb_readers *readers = &home->readers;
    int got = 1;

    WB_CHECK(home->magic == WB_STREAM_HOME_MAGIC && snapshot > 0);
    pthread_mutex_lock(&readers->mutex);
    const struct wb_readers_hold *hold = find_hold(readers, snapshot);
    if (!hold || hold->renewed_ns == INT64_MIN || wb_clock_mono_ns() - hold->renewed_ns >= RENEW_NS)
        got = hold_now(home, snapshot);
    if (got > 0)
        find_hold(readers, snapshot)->streams++;
    pthread_mutex_unlock(&readers->mutex);
    return got;
}

int wb_readers_seal(struct wb_stream_home *home, struct wb_store_snapshot *snapshot_out)
{
    WB_CHECK(home->magic == WB_STREAM_HOME_MAGIC);
    struct wb_store_holder holder = own_holder();
    struct wb_readers *readers = &home->readers;
    struct wb_store *store = NULL;

    pthread_mutex_lock(&readers->mutex);
    int got = wb_hold_writer(home->dir, &store);
    int err = got > 0 ? make_room(readers, store) : got;
    if (err == 0 && got > 0)
        err = wb_store_seal(store, WB_SLICE_EMPTY, &holder, snapshot_out);
    if (err == 0 && got > 0)
        add_hold(readers, snapshot_out->number, wb_clock_mono_ns())->streams = 1;
    pthread_mutex_unlock(&readers->mutex);
    wb_store_close(store);
    return err < 0 ? err : got;
}

void wb_readers_renew(struct wb_stream_home *home, uint32_t snapshot)
{
    struct wb_readers *readers = &home->readers;

    pthread_mutex_lock(&readers->mutex);
    const struct wb_readers_hold *hold = find_hold(readers, snapshot);
    if (hold && wb_clock_mono_ns() - hold->renewed_ns >= RENEW_NS)
        (void)hold_now(home, snapshot); /* if it fails, the scan still keeps what it reads */
    pthread_mutex_unlock(&readers->mutex);
}

void wb_readers_leave(struct wb_stream_home *home, uint32_t snapshot)
{
    WB_CHECK(home->magic == WB_STREAM_HOME_MAGIC);
    struct wb_readers *readers = &home->readers;

    pthread_mutex_lock(&readers->mutex);
    struct wb_readers_hold *hold = find_hold(readers, snapshot);
    WB_CHECK(hold && hold->streams > 0);
    hold->streams--;
    pthread_mutex_unlock(&readers->mutex);
}

void wb_readers_give_up(struct wb_stream_home *home, uint32_t snapshot)
{
    struct wb_readers *readers = &home->readers;
    struct wb_store *store = NULL;

    wb_readers_leave(home, snapshot);
    pthread_mutex_lock(&readers->mutex);
    struct wb_readers_hold *hold = find_hold(readers, snapshot);
    if (hold && hold->streams == 0 && wb_hold_writer(home->dir, &store) > 0 && let_go(store, snapshot) == 0)
        remove_hold(readers, hold);
    pthread_mutex_unlock(&readers->mutex);
    wb_store_close(store);
}

/* ---- names --------------------------------------------------------------------------------------- */

/* The first idle name gives way. It may turn out to be in use: then the next one is tried. */
static int drop_idle_name(struct wb_stream_home *home, struct wb_named_readers *names)
{
    WB_CHECK(wb_is_locked(&home->readers.mutex));
    int64_t until_ms = wb_clock_wall_ms() - home->readers.idle_ms;
    int err = WB_E_BUSY;

    while (err == WB_E_BUSY && names->first[0] && names->first_saved_ms < until_ms) {
        err = wb_stream_named_drop(home, wb_slice_str(names->first));
        if (err == WB_E_NOTFOUND)
            err = 0;
        names->after_ms = names->first_saved_ms;
        if (err == WB_E_BUSY && wb_named_count_readers(home, names) < 0)
            break;
    }
    return err;
}

int wb_readers_name(struct wb_stream_home *home)
{
    WB_CHECK(home->magic == WB_STREAM_HOME_MAGIC);
    struct wb_readers *readers = &home->readers;
    struct wb_named_readers names = {.after_ms = INT64_MIN};

    pthread_mutex_lock(&readers->mutex);
    int err = wb_named_count_readers(home, &names);
    if (err == 0 && names.count + readers->names_opening >= WB_STREAM_READER_NAMES) {
        err = drop_idle_name(home, &names);
        if (err == WB_E_BUSY)
            err = wb_fail(WB_E_CROWDED,
                          "readers without a token have %d named streams already; try again later, or give a token",
                          WB_STREAM_READER_NAMES);
    }
    readers->names_opening += err == 0;
    pthread_mutex_unlock(&readers->mutex);
    return err;
}

void wb_readers_name_done(struct wb_stream_home *home)
{
    pthread_mutex_lock(&home->readers.mutex);
    WB_CHECK(home->readers.names_opening > 0);
    home->readers.names_opening--;
    pthread_mutex_unlock(&home->readers.mutex);
}
