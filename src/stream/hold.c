/*
 * hold.c - which snapshot a stream delivers, and keeping it (stream_own.h, phases 2 and 5).
 *
 * A stream holds its snapshot under a name of its own, which its tokens carry: a stream that is resumed renews its old
 * hold instead of adding another. Streams of readers hold it together (readers.c), those of strangers not at all.
 *
 * Renewing and sealing write to the repository. If that is not possible (a read-only or full disk, another user's
 * directory), the stream works without a hold: the scan itself keeps what it reads.
 */
#include "base/check.h"
#include "base/error.h"
#include "os/clock.h"
#include "os/random.h"
#include "stream/stream_own.h"

#include <inttypes.h>
#include <stdio.h>

#define RENEW_NS (INT64_C(60) * 1000000000)
#define TRIES 20

struct wb_store_holder wb_hold_holder(uint64_t number, int64_t expires_ms)
{
    struct wb_store_holder holder = {.kind = WB_STORE_HOLDER_STREAM, .expires_ms = expires_ms};

    if (number == WB_HOLD_OF_READERS)
        snprintf(holder.name, sizeof holder.name, "readers");
    else
        snprintf(holder.name, sizeof holder.name, "%016" PRIx64, number);
    return holder;
}

int64_t wb_hold_until_ms(const struct wb_stream *stream)
{
    return wb_clock_wall_ms() + (stream->spec.name.len ? WB_STREAM_NAMED_HOLD_MS : WB_STREAM_HOLD_MS);
}

int wb_hold_writer(const char *dir, struct wb_store **store_out)
{
    int err = wb_store_open(dir, WB_STORE_WRITE, store_out);

    if (err == WB_E_IO)
        return 0;
    return err < 0 ? err : 1;
}

static int hold_with_readers(struct wb_stream *stream, uint32_t number)
{
    WB_CHECK(stream->spec.who == WB_STREAM_READER);
    if (stream->shared)
        wb_readers_leave(stream->home, stream->shared);
    int got = wb_readers_hold(stream->home, number);

    stream->held = got > 0;
    stream->shared = got > 0 ? number : 0;
    stream->renewed_ns = wb_clock_mono_ns();
    return got < 0 && got != WB_E_IO ? got : 0;
}

/* Holds a snapshot by its number. WB_E_NOTFOUND if it is gone. */
static int hold(struct wb_stream *stream, uint32_t number, int64_t expires_ms)
{
    WB_CHECK(number > 0);
    if (stream->spec.who == WB_STREAM_STRANGER)
        return 0;
    if (stream->spec.who == WB_STREAM_READER)
        return hold_with_readers(stream, number);

    struct wb_store_holder holder = wb_hold_holder(stream->ticket.holder, expires_ms);
    struct wb_store *store = NULL;
    int got = wb_hold_writer(stream->home->dir, &store);
    int err = got > 0 ? wb_store_hold(store, number, &holder) : got;

    stream->held = got > 0 && err == 0;
    wb_store_close(store);
    stream->renewed_ns = wb_clock_mono_ns();
    return err < 0 && err != WB_E_IO ? err : 0;
}

static void draw_holder(struct wb_stream *stream)
{
    stream->ticket.holder = WB_HOLD_OF_READERS;
    while (stream->spec.who == WB_STREAM_OWNER && stream->ticket.holder <= WB_HOLD_OF_READERS)
        wb_random_bytes(&stream->ticket.holder, sizeof stream->ticket.holder);
}

/* Copies what matters about the snapshot. */
static int look_at(struct wb_stream *stream, struct wb_slice which)
{
    WB_CHECK(stream->magic == WB_STREAM_MAGIC);
    struct wb_store_snapshot snapshot = {0};
    int err = wb_store_snapshot_find(stream->store, which, &snapshot);

    if (err == 0) {
        stream->ticket.snapshot = snapshot.number;
        stream->ticket.epoch = snapshot.epoch;
        stream->pages = snapshot.pages;
    }
    wb_store_snapshot_release(&snapshot);
    return err;
}

static int look_at_number(struct wb_stream *stream, uint32_t number)
{
    char text[16];

    snprintf(text, sizeof text, "%" PRIu32, number);
    return look_at(stream, wb_slice_str(text));
}

/* Seals the state of this moment for the stream alone. Returns 1; 0 if nothing can be written; or an error. */
static int seal_own(struct wb_stream *stream, struct wb_store_snapshot *snapshot_out)
{
    WB_CHECK(stream->spec.who == WB_STREAM_OWNER && stream->ticket.holder > WB_HOLD_OF_READERS);
    struct wb_store_holder holder = wb_hold_holder(stream->ticket.holder, wb_hold_until_ms(stream));
    struct wb_store *store = NULL;
    int got = wb_hold_writer(stream->home->dir, &store);
    int err = got > 0 ? wb_store_seal(store, WB_SLICE_EMPTY, &holder, snapshot_out) : got;

    wb_store_close(store);
    return err < 0 ? err : got;
}

/* Seals the state of this moment. If nothing can be written, the stream delivers it without a snapshot. */
static int seal(struct wb_stream *stream)
{
    struct wb_store_snapshot snapshot = {0};
    struct wb_store_stat stat;
    int got = 0;

    if (stream->spec.who == WB_STREAM_OWNER)
        got = seal_own(stream, &snapshot);
    else if (stream->spec.who == WB_STREAM_READER)
        got = wb_readers_seal(stream->home, &snapshot);
    if (got == WB_E_IO)
        got = 0;
    int err = got < 0 ? got : 0;
    stream->shared = got > 0 && stream->spec.who == WB_STREAM_READER ? snapshot.number : 0;
    stream->renewed_ns = wb_clock_mono_ns();
    stream->ticket.sealed = true;
    if (err == 0 && got > 0) {
        stream->held = true;
        stream->ticket.snapshot = snapshot.number;
        stream->ticket.epoch = snapshot.epoch;
        stream->pages = snapshot.pages;
    } else if (err == 0) {
        err = wb_store_stat(stream->store, &stat);
        stream->ticket.epoch = stat.epoch;
        stream->pages = stat.pages;
    }
    wb_store_snapshot_release(&snapshot);
    return err;
}

/* The numbers of the generation that is active. All zero if there is none. */
static int newest_generation(struct wb_stream *stream, struct wb_index_info *info_out)
{
    if (!stream->searcher)
        return wb_index_newest(stream->home->dir, info_out);
    *info_out = *wb_index_info(wb_searcher_index(stream->searcher));
    return 0;
}

/* Holds the snapshot of the active generation. The next one may become active, and this one go, at any moment. */
static int take_generation(struct wb_stream *stream, struct wb_index_info *info)
{
    int err = 0;

    for (int i = 0; i < TRIES; i++) {
        err = newest_generation(stream, info);
        if (err < 0)
            return err;
        if (info->generation == 0)
            return seal(stream);
        err = hold(stream, info->snapshot, wb_hold_until_ms(stream));
        if (err == 0)
            err = look_at_number(stream, info->snapshot);
        if (err != WB_E_NOTFOUND)
            break;
    }
    return err;
}

int wb_hold_take(struct wb_stream *stream)
{
    struct wb_index_info info = {0};
    int err = 0;

    WB_CHECK(stream->magic == WB_STREAM_MAGIC && stream->ticket.snapshot == 0 && !stream->held);
    draw_holder(stream);
    if (stream->spec.state == WB_STREAM_LATEST || stream->spec.versions) {
        err = seal(stream);
    } else if (stream->spec.state == WB_STREAM_SNAPSHOT) {
        err = look_at(stream, stream->spec.snapshot);
        if (err == 0)
            err = hold(stream, stream->ticket.snapshot, wb_hold_until_ms(stream));
        if (err == 0)
            err = newest_generation(stream, &info);
    } else {
        err = take_generation(stream, &info);
    }
    if (err == 0 && info.generation && info.snapshot == stream->ticket.snapshot)
        stream->ticket.generation = info.generation;
    if (!stream->held)
        stream->ticket.holder = 0;
    return err;
}

int wb_hold_resume(struct wb_stream *stream)
{
    struct wb_store_stat stat;

    WB_CHECK(stream->magic == WB_STREAM_MAGIC && !stream->held && !stream->shared);
    if (stream->ticket.snapshot == 0) {
        int err = wb_store_stat(stream->store, &stat);
        if (err == 0 && stat.epoch != stream->ticket.epoch)
            err = wb_fail(WB_E_NOTFOUND, "the repository has changed since this stream began, and no snapshot could be "
                                         "held for it; start it again");
        stream->pages = stat.pages;
        return err;
    }
    uint64_t epoch = stream->ticket.epoch;
    int err = look_at_number(stream, stream->ticket.snapshot);
    if (err == 0 && stream->ticket.epoch != epoch)
        err = wb_fail(WB_E_INVALID, "the token does not match snapshot %" PRIu32 " of this repository",
                      stream->ticket.snapshot);
    if (err == 0 && stream->ticket.holder) {
        stream->adopted = stream->ticket.holder == WB_HOLD_OF_READERS && stream->spec.who == WB_STREAM_OWNER;
        if (stream->adopted || stream->spec.who != WB_STREAM_OWNER)
            draw_holder(stream);
        err = hold(stream, stream->ticket.snapshot, wb_hold_until_ms(stream));
    }
    if (err == WB_E_NOTFOUND)
        err = wb_fail(WB_E_NOTFOUND,
                      "snapshot %" PRIu32 ", which this stream delivers, is gone; start the stream "
                      "again",
                      stream->ticket.snapshot);
    return err;
}

void wb_hold_renew(struct wb_stream *stream)
{
    uint64_t hash;

    WB_CHECK(stream->magic == WB_STREAM_MAGIC);
    if (!stream->held || wb_clock_mono_ns() - stream->renewed_ns < RENEW_NS)
        return;
    if (stream->shared) {
        stream->renewed_ns = wb_clock_mono_ns();
        wb_readers_renew(stream->home, stream->shared);
        return;
    }
    WB_CHECK(stream->spec.who == WB_STREAM_OWNER);
    hold(stream, stream->ticket.snapshot, wb_hold_until_ms(stream));
    if (stream->ticket.listed)
        wb_shelf_put(stream->home->dir, wb_pagelist_ids(&stream->list), wb_hold_until_ms(stream), &hash);
    if (stream->ticket.kept)
        wb_shelf_put(stream->home->dir, wb_buf_slice(&stream->spec_bytes), wb_hold_until_ms(stream), &hash);
}

int wb_hold_let_go(const char *dir, uint32_t snapshot, uint64_t number)
{
    WB_CHECK(number > WB_HOLD_OF_READERS); /* readers.c counts those */
    struct wb_store_holder holder = wb_hold_holder(number, 0);
    struct wb_store *store = NULL;
    int got = wb_hold_writer(dir, &store);
    int err = got > 0 ? wb_store_let_go(store, snapshot, &holder) : got;

    wb_store_close(store);
    return err == WB_E_NOTFOUND ? 0 : err;
}

void wb_hold_give_up(struct wb_stream *stream)
{
    struct wb_error_copy copy;

    WB_CHECK(stream->magic == WB_STREAM_MAGIC);
    if (!stream->held)
        return;
    wb_error_save(0, &copy);
    if (!stream->shared)
        (void)wb_hold_let_go(stream->home->dir, stream->ticket.snapshot, stream->ticket.holder);
    else if (stream->ticket.sealed) /* nobody else has used it */
        wb_readers_give_up(stream->home, stream->shared);
    else
        wb_readers_leave(stream->home, stream->shared);
    stream->shared = 0;
    stream->held = false;
    wb_error_restore(&copy);
}

/* All streams of a snapshot that have ended hold it under one name, so that holders do not pile up. */
static int hold_for_finished(const char *dir, uint32_t snapshot)
{
    struct wb_store_holder holder = {.kind = WB_STORE_HOLDER_STREAM,
                                     .name = "finished",
                                     .expires_ms = wb_clock_wall_ms() + WB_STREAM_DONE_HOLD_MS};
    struct wb_store *store = NULL;
    int got = wb_hold_writer(dir, &store);
    int err = got > 0 ? wb_store_hold(store, snapshot, &holder) : got;

    wb_store_close(store);
    return err;
}

/*
 * Its reader may still be busy with the last records, or die and come back: so the hold stays for a while. Not that of
 * a snapshot that a person asked for by its name, who may want to drop it now; and a named stream is not resumed after
 * its end.
 */
void wb_hold_finish(struct wb_stream *stream)
{
    struct wb_error_copy copy;
    int err = 0;

    WB_CHECK(stream->magic == WB_STREAM_MAGIC);
    if (!stream->held || stream->shared)
        return;
    wb_error_save(0, &copy);
    if (stream->spec.state != WB_STREAM_SNAPSHOT && !stream->spec.name.len)
        err = hold_for_finished(stream->home->dir, stream->ticket.snapshot);
    if (err == 0) /* otherwise its own hold stays until it expires */
        wb_hold_let_go(stream->home->dir, stream->ticket.snapshot, stream->ticket.holder);
    stream->held = false;
    wb_error_restore(&copy);
}
