/* streaming.c - opens, resumes, moves and closes streams (stream_own.h lists the phases of a stream). */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/stop.h"
#include "stream/stream_own.h"
#include "words/words.h"

#include <inttypes.h>
#include <stdatomic.h>

/* A longer selection goes to the shelf, and tokens have its hash. */
#define SPEC_BYTES_MAX 600
#define RENEW_EVERY 64 /* records between two looks at the clock */
#define PASSED_AT_ONCE 1024 /* pages that are passed over between two looks at whether to go on */
#define SWEEP_NS (INT64_C(3600) * 1000000000)

/* ---- homes --------------------------------------------------------------------------------------- */

int wb_stream_home_open(const char *dir, struct wb_stream_home **home_out)
{
    char id[WB_STORE_ID_HEX + 1];
    int err = wb_store_id(dir, id);

    *home_out = NULL;
    if (err < 0)
        return err;
    struct wb_stream_home *home = wb_alloc_zero(1, sizeof *home);
    if (!home)
        return WB_E_NOMEM;
    home->magic = WB_STREAM_HOME_MAGIC;
    home->repository = wb_token_repository(id);
    pthread_mutex_init(&home->deal_mutex, NULL);
    wb_readers_init(&home->readers);
    home->deal_window = WB_DEAL_WINDOW;
    home->silence_ns = WB_DEAL_SILENCE_MS * INT64_C(1000000);
    home->dir = wb_strdup(dir);
    err = home->dir ? wb_carousels_new(dir, &WB_CAROUSEL_LIMITS, &home->carousels) : WB_E_NOMEM;
    if (err < 0) {
        wb_stream_home_close(home);
        return err;
    }
    home->swept_ns = wb_clock_mono_ns();
    wb_shelf_sweep(dir, wb_clock_wall_ms());
    *home_out = home;
    return 0;
}

void wb_stream_home_hasten(struct wb_stream_home *home)
{
    WB_CHECK(home->magic == WB_STREAM_HOME_MAGIC);
    home->at_once = true;
}

/* A server has its home open for months, so the shelf is swept every hour. */
static void sweep_now_and_then(struct wb_stream_home *home)
{
    int64_t now_ns = wb_clock_mono_ns(), swept_ns = atomic_load(&home->swept_ns);

    /* Of several threads that find it due, one does it. */
    if (now_ns - swept_ns >= SWEEP_NS && atomic_compare_exchange_strong(&home->swept_ns, &swept_ns, now_ns))
        wb_shelf_sweep(home->dir, wb_clock_wall_ms());
}

void wb_stream_home_close(struct wb_stream_home *home)
{
    if (!home)
        return;
    WB_CHECK(home->magic == WB_STREAM_HOME_MAGIC);
    home->magic = 0;
    WB_CHECK(!home->deals);
    pthread_mutex_destroy(&home->deal_mutex);
    wb_readers_release(&home->readers);
    wb_carousels_free(home->carousels);
    wb_free(home->dir);
    wb_free(home);
}

/* ---- what is delivered --------------------------------------------------------------------------- */

/* Copies what was asked for, as its bytes say. */
static int take_spec(struct wb_stream *stream, const struct wb_stream_spec *asked, struct wb_slice bytes)
{
    WB_CHECK(!stream->supplier && stream->delivered == 0);
    struct wb_arena *texts = &stream->spec.selection.texts;
    int err = wb_spec_decode(bytes, &stream->spec);

    if (err == 0)
        err = wb_arena_copy(texts, asked->name, &stream->spec.name);
    if (err == 0)
        err = wb_arena_copy(texts, asked->snapshot, &stream->spec.snapshot);
    stream->spec.who = asked->who;
    stream->spec.facts = asked->facts;
    stream->spec.docids = asked->docids;
    return err;
}

/*
 * Checks that a token stands for what is asked for. A snapshot may be repeated too: by any name, it must be the one of
 * the token.
 */
static int check_agreement(struct wb_stream *stream, const struct wb_stream_spec *asked, const char *what)
{
    struct wb_store_snapshot snapshot = {0};
    int err = wb_spec_agree(asked, &stream->spec, what);

    if (err < 0 || asked->state != WB_STREAM_SNAPSHOT)
        return err;
    err = wb_store_snapshot_find(stream->store, asked->snapshot, &snapshot);
    if (err == 0 && snapshot.number != stream->ticket.snapshot)
        err = wb_fail(WB_E_INVALID, "%s stands for a stream of snapshot %" PRIu32 ", not of '%.*s'", what,
                      stream->ticket.snapshot, WB_SLICE_ARG(asked->snapshot));
    wb_store_snapshot_release(&snapshot);
    return err;
}

/* The spec is too large for a token: it is on the shelf, or it was given again. */
static int find_kept_spec(struct wb_stream *stream, const struct wb_stream_spec *asked)
{
    uint64_t hash = wb_get64(stream->ticket.spec.ptr);
    int err = wb_spec_encode(asked, &stream->spec_bytes);

    if (err < 0 || wb_shelf_hash(wb_buf_slice(&stream->spec_bytes)) == hash)
        return err;
    err = wb_shelf_get(stream->home->dir, hash, &stream->spec_bytes);
    if (err == WB_E_NOTFOUND)
        err = wb_fail(WB_E_NOTFOUND, "the selection of this stream is no longer kept; give it again with the token");
    return err;
}

static int read_token(struct wb_stream *stream, const struct wb_stream_spec *asked, struct wb_slice token,
                      const char *what, struct wb_buf *mem)
{
    int err = wb_token_read(token, stream->home->repository, &stream->ticket, &stream->place, mem);

    if (err == 0 && stream->ticket.kept)
        err = find_kept_spec(stream, asked);
    else if (err == 0)
        err = wb_buf_append_slice(&stream->spec_bytes, stream->ticket.spec);
    if (err == 0)
        err = take_spec(stream, asked, wb_buf_slice(&stream->spec_bytes));
    if (err == 0)
        err = check_agreement(stream, asked, what);
    stream->ticket.spec = WB_SLICE_EMPTY;
    /* The snapshot of a named stream that has ended may be gone. */
    return err == 0 && !stream->finished ? wb_hold_resume(stream) : err;
}

/* ---- the index ----------------------------------------------------------------------------------- */

static bool needs_index(const struct wb_stream_spec *spec)
{
    return spec->selection.query.len || spec->order == WB_STREAM_RANK;
}

/* An index that is useful, but not necessary: if there is none, pages are read instead. */
static bool wants_index(const struct wb_stream_spec *spec)
{
    return needs_index(spec) || spec->docids || spec->selection.lang.len || spec->order == WB_STREAM_MODIFIED;
}

static int open_index(struct wb_stream *stream)
{
    WB_CHECK(!stream->searcher);
    if (!wants_index(&stream->spec))
        return 0;
    int err = wb_searcher_open(stream->home->dir, &stream->searcher);
    if (err != WB_E_NOTFOUND)
        return err;
    if (needs_index(&stream->spec))
        return wb_fail(WB_E_NOTFOUND, "%s needs an index, and there is none yet: build it with 'webbase index'",
                       stream->spec.selection.query.len ? "a query" : "the order of ranks");
    return 0;
}

/*
 * Finds out what the index can answer for this stream, and what pages must be read for. make: the list is still to be
 * made.
 */
static int use_index(struct wb_stream *stream, bool make)
{
    WB_CHECK(!stream->extractor && !stream->docids.slots);
    const struct wb_stream_spec *spec = &stream->spec;
    bool listed = make || stream->ticket.listed, table = make && wants_index(spec);
    int err = 0;

    if (stream->searcher) {
        const struct wb_index_info *info = wb_index_info(wb_searcher_index(stream->searcher));
        stream->generation_open = info->generation == stream->ticket.generation;
    }
    /* A list that the index helped to make has only pages of the language. With versions, each capture has its own. */
    if (spec->selection.lang.len && (spec->versions || !listed || !stream->ticket.generation)) {
        stream->language = wb_language_number(spec->selection.lang);
        err = wb_extractor_new(&stream->extractor);
    }
    if (err == 0 && stream->searcher && (table || (spec->docids && stream->generation_open)))
        err = wb_docid_table_init(&stream->docids, wb_searcher_index(stream->searcher));
    return err;
}

uint8_t wb_stream_language(const struct wb_extract *extract)
{
    uint8_t number = wb_language_number(wb_slice_str(extract->language));

    return number ? number : wb_language_number(extract->lang);
}

int wb_stream_has_language(struct wb_stream *stream, const struct wb_page *page)
{
    struct wb_extract_input input = {.url = page->url, .type = page->type, .charset = page->charset,
                                     .body = page->body, .wants = WB_EXTRACT_LANGUAGE};
    struct wb_extract extract;

    if (stream->language == 0)
        return 1;
    WB_CHECK(stream->magic == WB_STREAM_MAGIC && stream->extractor);
    int err = wb_extract(stream->extractor, &input, &extract);
    return err < 0 ? err : wb_stream_language(&extract) == stream->language;
}

/* ---- lists and tokens ---------------------------------------------------------------------------- */

/*
 * Puts bytes on the shelf. A repository that cannot be written to has no shelf, and readers leave nothing on it: that
 * only affects resuming. A list can be made again as long as its snapshot and its index are there.
 */
static int keep(struct wb_stream *stream, struct wb_slice bytes, uint64_t *hash_out)
{
    if (stream->spec.who != WB_STREAM_OWNER) {
        *hash_out = wb_shelf_hash(bytes);
        return 0;
    }

    int err = wb_shelf_put(stream->home->dir, bytes, wb_hold_until_ms(stream), hash_out);

    return err == WB_E_IO ? 0 : err;
}

/* Takes the list of a stream that is resumed from the shelf. Returns 1, 0 if it is not there, or an error. */
static int load_list(struct wb_stream *stream)
{
    int err = wb_pagelist_load(&stream->list, stream->home->dir, stream->ticket.list_hash);

    if (err == WB_E_NOTFOUND)
        return 0;
    return err < 0 ? err : 1;
}

/* Makes the list of a new stream, or the same list again. */
static int make_list(struct wb_stream *stream)
{
    WB_CHECK(!stream->list.count);
    uint64_t hash = 0;
    int err = wb_pagelist_make(stream);

    if (err == 0)
        err = keep(stream, wb_pagelist_ids(&stream->list), &hash);
    if (err == 0 && stream->ticket.listed && hash != stream->ticket.list_hash)
        err = wb_fail(WB_E_NOTFOUND, "the list of this stream's pages is no longer kept, and cannot be made again; "
                      "start the stream again");
    stream->ticket.list_hash = hash;
    stream->ticket.listed = true;
    return err;
}

/* Phase 3. */
static int find_list(struct wb_stream *stream, bool fresh)
{
    int loaded = !fresh && stream->ticket.listed ? load_list(stream) : 0;
    bool make = fresh ? wb_pagelist_needed(stream) : stream->ticket.listed && loaded == 0;
    int err = loaded < 0 ? loaded : 0;

    if (err == 0 && !fresh && (make || stream->spec.docids))
        err = open_index(stream);
    if (err == 0)
        err = use_index(stream, make);
    if (err == 0 && make)
        err = make_list(stream);
    return err;
}

static int prepare_tokens(struct wb_stream *stream)
{
    char hash_bytes[8];
    uint64_t hash;
    int err = 0;

    WB_CHECK(stream->tokens.fixed == 0);
    stream->ticket.spec = wb_buf_slice(&stream->spec_bytes);
    stream->ticket.kept = stream->spec_bytes.len > SPEC_BYTES_MAX;
    if (stream->ticket.kept) {
        err = keep(stream, stream->ticket.spec, &hash);
        wb_put64(hash_bytes, hash);
        stream->ticket.spec = wb_slice(hash_bytes, sizeof hash_bytes);
    }
    if (err == 0)
        err = wb_token_writer_init(&stream->tokens, stream->home->repository, &stream->ticket);
    stream->ticket.spec = WB_SLICE_EMPTY;
    return err;
}

/* ---- nodes --------------------------------------------------------------------------------------- */

/*
 * For servers: whether the nodes that the stream needs are there, as far as that can be known before it begins. A list
 * was just made, for which all of them were needed, or is resumed: then the next pages are read ahead. A stream with a
 * limit may end before it comes to the node.
 */
static int check_nodes(struct wb_stream *stream)
{
    WB_CHECK(stream->home->at_once);
    const struct wb_stream_place *place = &stream->place;
    bool on = place->has_at && (!place->has_start || place->wrapped);
    struct wb_store_scan_options options = {
        .snapshot = stream->ticket.snapshot,
        .site = wb_selection_only_site(&stream->spec.selection),
        .after = on ? &place->at : NULL,
        .until = place->wrapped ? &place->start : NULL,
        .at_once = true,
    };

    if (stream->ticket.listed)
        return wb_listfeed_ahead(stream);
    return stream->spec.limit ? 0 : wb_store_scan_check(stream->store, &options);
}

/* ---- opening and closing ------------------------------------------------------------------------- */

static int open_fresh(struct wb_stream *stream, const struct wb_stream_spec *asked)
{
    int err = wb_spec_encode(asked, &stream->spec_bytes);

    if (err == 0)
        err = take_spec(stream, asked, wb_buf_slice(&stream->spec_bytes));
    if (err == 0)
        err = open_index(stream);
    return err == 0 ? wb_hold_take(stream) : err;
}

/* Phases 1 and 2. *fresh_out: the stream is not resumed. */
static int open_what(struct wb_stream *stream, const struct wb_stream_spec *asked, bool *fresh_out)
{
    struct wb_buf token = WB_BUF_INIT, mem = WB_BUF_INIT;
    int err = wb_spec_check(asked);

    if (err == 0 && asked->name.len)
        err = wb_named_take(stream, asked->name, &token, &stream->finished);
    else if (err == 0)
        err = wb_buf_append_slice(&token, asked->resume);
    *fresh_out = token.len == 0;
    if (err == 0 && token.len == 0)
        err = open_fresh(stream, asked);
    else if (err == 0)
        err = read_token(stream, asked, wb_buf_slice(&token), asked->name.len ? "this name" : "the token", &mem);
    wb_buf_release(&mem);
    wb_buf_release(&token);
    return err;
}

int wb_stream_open(struct wb_stream_home *home, const struct wb_stream_spec *spec, bool share,
                   struct wb_stream **stream_out)
{
    struct wb_stream *stream = wb_alloc_zero(1, sizeof *stream);
    bool fresh = true;

    WB_CHECK(home->magic == WB_STREAM_HOME_MAGIC);
    *stream_out = NULL;
    if (!stream)
        return WB_E_NOMEM;
    stream->magic = WB_STREAM_MAGIC;
    stream->home = home;
    stream->share = share;
    stream->spec = WB_STREAM_SPEC_INIT;
    stream->spec.who = spec->who;
    sweep_now_and_then(home);
    int err = wb_store_open(home->dir, WB_STORE_READ, &stream->store);
    if (err == 0 && home->at_once) /* before anything is written: a transfer may keep writers waiting, too */
        err = wb_store_scan_ready(stream->store);
    if (err == 0)
        err = open_what(stream, spec, &fresh);
    if (err == 0 && !stream->finished)
        err = find_list(stream, fresh);
    if (err == 0 && !stream->finished && home->at_once)
        err = check_nodes(stream);
    if (err == 0 && !stream->finished)
        err = prepare_tokens(stream);
    if (err < 0 && fresh) /* before its name is saved, nobody can resume it */
        wb_hold_give_up(stream);
    if (err == 0 && (fresh || stream->adopted) && stream->named)
        err = wb_named_save(stream, true);
    if (stream->names)
        wb_readers_name_done(stream->home);
    stream->names = false;
    if (err < 0) {
        wb_stream_close(stream);
        return err;
    }
    *stream_out = stream;
    return 0;
}

void wb_stream_close(struct wb_stream *stream)
{
    struct wb_error_copy copy;

    if (!stream)
        return;
    WB_CHECK(stream->magic == WB_STREAM_MAGIC);
    wb_error_save(0, &copy);
    stream->magic = 0;
    wb_wirefeed_free(stream->wire);
    wb_storedfeed_release(stream);
    wb_listfeed_release(stream);
    wb_pagelist_release(&stream->list);
    wb_docid_table_release(&stream->docids);
    wb_extractor_free(stream->extractor);
    wb_searcher_close(stream->searcher);
    wb_named_release(stream->named);
    if (stream->names)
        wb_readers_name_done(stream->home);
    if (stream->shared)
        wb_readers_leave(stream->home, stream->shared);
    wb_token_writer_release(&stream->tokens);
    wb_buf_release(&stream->spec_bytes);
    wb_stream_spec_release(&stream->spec);
    wb_store_close(stream->store);
    wb_free(stream);
    wb_error_restore(&copy);
}

/* ---- moving -------------------------------------------------------------------------------------- */

/* A named stream has ended only when everything has arrived: wb_stream_acknowledge() says so. */
int wb_stream_finish(struct wb_stream *stream)
{
    WB_CHECK(stream->magic == WB_STREAM_MAGIC && !stream->finished);
    stream->finished = true;
    wb_storedfeed_release(stream);
    if (!stream->named)
        wb_hold_finish(stream);
    return 0;
}

bool wb_stream_waits(const struct wb_stream *stream)
{
    WB_CHECK(stream->magic == WB_STREAM_MAGIC);
    return stream->waits;
}

int wb_stream_pause(struct wb_stream *stream)
{
    WB_CHECK(stream->magic == WB_STREAM_MAGIC);
    if (++stream->passed < PASSED_AT_ONCE)
        return 0;
    stream->passed = 0;
    if (wb_stop_requested())
        return wb_fail(WB_E_STOPPED, "stopped by a signal");
    return stream->home->at_once ? WB_STREAM_AGAIN : 0;
}

int wb_stream_next(struct wb_stream *stream, struct wb_stream_record *record_out)
{
    WB_CHECK(stream->magic == WB_STREAM_MAGIC);
    *record_out = (struct wb_stream_record){.docid = WB_DOCID_NONE};
    if (stream->finished)
        return 0;
    if (stream->late.code < 0) { /* counted already */
        int err = wb_error_restore(&stream->late);
        stream->late.code = 0;
        return err;
    }
    if (wb_stream_is_full(stream))
        return wb_stream_finish(stream);
    int got = stream->ticket.listed ? wb_listfeed_next(stream, record_out) : wb_storedfeed_next(stream, record_out);
    if (got == WB_E_CORRUPT)
        stream->damaged++;
    if (got == 0)
        return wb_stream_finish(stream);
    if (got != 1)
        return got;
    stream->passed = 0;
    record_out->position = stream->place.position++;
    stream->delivered++;
    if (stream->spec.docids && stream->generation_open)
        record_out->docid = wb_docid_table_find(&stream->docids, record_out->page.id);
    if (stream->delivered % RENEW_EVERY == 0)
        wb_hold_renew(stream);
    int err = wb_token_write(&stream->tokens, &stream->place, &record_out->token);
    return err < 0 ? err : 1;
}

int wb_stream_token(struct wb_stream *stream, struct wb_buf *out)
{
    struct wb_slice token = WB_SLICE_EMPTY;
    int err = 0;

    WB_CHECK(stream->magic == WB_STREAM_MAGIC);
    if (stream->tokens.fixed)
        err = wb_token_write(&stream->tokens, &stream->place, &token);
    return err == 0 ? wb_buf_append_slice(out, token) : err;
}

int wb_stream_is_down(struct wb_stream *stream, uint64_t bars, const struct wb_page *page)
{
    WB_CHECK(stream->magic == WB_STREAM_MAGIC);
    uint64_t now;
    int err = wb_store_bar_version(stream->store, &now);

    if (err < 0 || now == bars)
        return err;
    return wb_store_barred(stream->store, page->id, wb_key_site(page->key));
}

void wb_stream_keep(struct wb_stream *stream)
{
    WB_CHECK(stream->magic == WB_STREAM_MAGIC);
    wb_hold_renew(stream);
}

int wb_stream_acknowledge(struct wb_stream *stream)
{
    WB_CHECK(stream->magic == WB_STREAM_MAGIC);
    wb_hold_renew(stream);
    int err = stream->named ? wb_named_save(stream, stream->finished) : 0;
    if (err == 0 && stream->finished)
        wb_hold_finish(stream);
    return err;
}

void wb_stream_info(struct wb_stream *stream, struct wb_stream_info *info_out)
{
    WB_CHECK(stream->magic == WB_STREAM_MAGIC);
    *info_out = (struct wb_stream_info){
        .snapshot = stream->ticket.snapshot,
        .generation = stream->ticket.generation,
        .epoch = stream->ticket.epoch,
        .pages = stream->ticket.listed ? stream->list.count : stream->pages,
        .delivered = stream->delivered,
        .damaged = stream->damaged,
        .shared = stream->supplier && stream->supplier->shared,
    };
}
