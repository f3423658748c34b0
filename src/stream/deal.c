/*
 * deal.c - deals a named stream out to workers (stream.h). It reads the stream as any reader does, and keeps a copy of
 * every record that was dealt but not acknowledged.
 *
 *   acknowledged            dealt, in the order of the stream                     not read yet
 *   ----------------------| done | worker A | done | nobody's | worker B | ... |------------------
 *                         ^ the place that the repository remembers            ^ the stream's place
 *
 * A worker that says nothing keeps its records until others have to wait for them: because so many were dealt after
 * them, or because they are the last ones. Then they go to others, and the worker is told when it asks for more.
 *
 * Locks: that of the home guards the list of deals and how many workers each has; that of a deal guards the rest. The
 * first is taken before the second.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/locked.h"
#include "base/mem.h"
#include "base/vec.h"
#include "os/clock.h"
#include "stream/stream_own.h"
#include "stream/wire.h"

#define WORKER_BYTES_MAX ((size_t)64 << 20) /* of pages that a worker may have; but always one */

enum { DEAL_MAGIC = 0x5742444c, WORKER_MAGIC = 0x5742444b, FRAME_RECORDS = 128 };

/* A record that was dealt. */
struct deal_item {
    bool done;
    struct wb_deal_worker *worker;  /* who has it; NULL: nobody */
    struct wb_stream_record record; /* without token; page without texts if it is done */
    struct wb_stream_place place;   /* after it */
    struct wb_arena texts;
    size_t bytes;
    uint64_t bars;    /* what was taken down before is not this page */
    unsigned readers; /* workers that have it at hand: so long its texts stay, even if another has got it... */
    bool over;        /* ...and then the last of them frees it, because it has left the deal */
};

struct wb_deal {
    uint32_t magic;
    struct wb_stream_home *home;
    struct wb_deal *next;
    char name[WB_STORE_NAME_MAX + 1];
    size_t workers; /* guarded by the home */

    pthread_mutex_t mutex; /* guards what follows */
    struct wb_stream *stream;
    WB_VEC(struct deal_item *) items; /* in the order of the stream; the first one is not done */
    size_t free_from;                 /* no item before this one is nobody's */
    struct wb_stream_place place;     /* after the last record up to which all are acknowledged */
    bool ended;                       /* the stream has no more records */
    struct wb_error_copy broken;      /* code < 0: a record may have been lost, so none after it may be acknowledged */
    bool finished;                    /* and all were acknowledged */
};

struct wb_deal_worker {
    uint32_t magic;
    struct wb_deal *deal;
    WB_VEC(struct deal_item *) items; /* that it has, in the order in which it got them */
    struct deal_item *at_hand;        /* the one that its caller is looking at; NULL: none */
    size_t bytes;
    int64_t heard_ns; /* when it joined, acknowledged something, or got a record while it had none */
    bool late;        /* its records went to others */
    struct wb_buf token;

    /* ---- as bytes ---- */
    bool headed, end_put;
    uint64_t sent;
    struct wb_store_packer *packer;
    WB_VEC(struct wb_wire_record) records;
};

/* ---- items --------------------------------------------------------------------------------------- */

static void drop_texts(struct deal_item *item)
{
    struct wb_page *page = &item->record.page;

    if (item->readers)
        return;
    wb_arena_release(&item->texts);
    *page = (struct wb_page){.id = page->id};
    item->bytes = 0;
}

static void free_item(struct deal_item *item)
{
    item->over = true;
    if (item->readers)
        return;
    drop_texts(item);
    wb_free(item);
}

/* The caller of this worker needs the record no longer that it got last. Called with the deal's lock. */
static void put_down(struct wb_deal_worker *worker)
{
    WB_CHECK(wb_is_locked(&worker->deal->mutex));
    struct deal_item *item = worker->at_hand;

    worker->at_hand = NULL;
    if (!item || --item->readers)
        return;
    if (item->over)
        free_item(item);
    else if (item->done)
        drop_texts(item);
}

/* A copy of a record that the stream has just returned. */
static int new_item(const struct wb_stream *stream, const struct wb_stream_record *record, struct deal_item **item_out)
{
    WB_CHECK(stream->place.position == record->position + 1);
    struct deal_item *item = wb_alloc_zero(1, sizeof *item);

    *item_out = NULL;
    if (!item)
        return WB_E_NOMEM;
    item->record = *record;
    item->record.token = WB_SLICE_EMPTY;
    item->record.memo = NULL;
    item->place = stream->place;
    struct wb_page *page = &item->record.page;
    struct wb_slice *texts[] = {&page->url, &page->key, &page->head, &page->type, &page->charset, &page->body};
    int err = 0;
    for (size_t i = 0; err == 0 && i < sizeof texts / sizeof *texts; i++) {
        item->bytes += texts[i]->len;
        err = wb_arena_copy(&item->texts, *texts[i], texts[i]);
    }
    if (err < 0) {
        free_item(item);
        return err;
    }
    *item_out = item;
    return 0;
}

/* ---- the place that the repository remembers ------------------------------------------------------ */

/* Saves the place up to which everything is acknowledged. */
static int save(struct wb_deal *deal, bool now)
{
    WB_CHECK(deal->magic == DEAL_MAGIC && deal->place.position <= deal->stream->place.position);
    struct wb_stream *stream = deal->stream;
    struct wb_stream_place head = stream->place;

    stream->place = deal->place;
    stream->finished = deal->finished;
    int err = wb_named_save(stream, now || deal->finished);
    if (err == 0 && deal->finished)
        wb_hold_finish(stream);
    else
        wb_hold_renew(stream);
    stream->place = head;
    stream->finished = deal->ended;
    return err;
}

/* Removes the items at the beginning that are done. */
static int pass_done(struct wb_deal *deal)
{
    size_t done = 0;

    WB_CHECK(wb_is_locked(&deal->mutex) && deal->free_from <= deal->items.count);
    while (done < deal->items.count && deal->items.items[done]->done) {
        WB_CHECK(deal->items.items[done]->place.position > deal->place.position); /* it only goes forward */
        deal->place = deal->items.items[done]->place;
        free_item(deal->items.items[done++]);
    }
    deal->items.count -= done;
    memmove(deal->items.items, deal->items.items + done, deal->items.count * sizeof *deal->items.items);
    deal->free_from -= deal->free_from < done ? deal->free_from : done;
    bool was_finished = deal->finished;
    deal->finished = deal->ended && deal->items.count == 0;
    return done || deal->finished != was_finished ? save(deal, false) : 0;
}

/* ---- joining and leaving -------------------------------------------------------------------------- */

static void free_deal(struct wb_deal *deal)
{
    WB_CHECK(deal->magic == DEAL_MAGIC && deal->workers == 0);
    for (size_t i = 0; i < deal->items.count; i++)
        free_item(deal->items.items[i]);
    wb_vec_release(&deal->items);
    wb_stream_close(deal->stream);
    pthread_mutex_destroy(&deal->mutex);
    deal->magic = 0;
    wb_free(deal);
}

static int open_deal(struct wb_stream_home *home, const struct wb_stream_spec *spec, struct wb_deal **deal_out)
{
    struct wb_stream_spec named = *spec; /* borrows everything */
    struct wb_deal *deal = wb_alloc_zero(1, sizeof *deal);

    *deal_out = NULL;
    if (!deal)
        return WB_E_NOMEM;
    deal->magic = DEAL_MAGIC;
    deal->home = home;
    pthread_mutex_init(&deal->mutex, NULL);
    named.name = spec->join;
    named.join = WB_SLICE_EMPTY;
    int err = wb_stream_open(home, &named, false, &deal->stream);
    if (err < 0) {
        free_deal(deal);
        return err;
    }
    WB_CHECK(spec->join.len <= WB_STORE_NAME_MAX);
    memcpy(deal->name, spec->join.ptr, spec->join.len);
    deal->place = deal->stream->place;
    deal->ended = deal->finished = deal->stream->finished;
    *deal_out = deal;
    return 0;
}

/* Finds the deal of this name, or opens it. Called with the home's lock. */
static int find_deal(struct wb_stream_home *home, const struct wb_stream_spec *spec, struct wb_deal **deal_out)
{
    WB_CHECK(wb_is_locked(&home->deal_mutex));
    struct wb_deal *deal = home->deals;

    while (deal && !wb_slice_equal(wb_slice_str(deal->name), spec->join))
        deal = deal->next;
    *deal_out = deal;
    if (deal && spec->who != WB_STREAM_OWNER && deal->stream->spec.who == WB_STREAM_OWNER)
        return wb_fail(WB_E_DENIED, "the stream '%.*s' was begun with a token: it needs one", WB_SLICE_ARG(spec->join));
    if (deal)
        return wb_spec_agree(spec, &deal->stream->spec, "this name");
    int err = open_deal(home, spec, deal_out);
    if (err < 0)
        return err;
    (*deal_out)->next = home->deals;
    home->deals = *deal_out;
    return 0;
}

int wb_deal_join(struct wb_stream_home *home, const struct wb_stream_spec *spec, struct wb_deal_worker **worker_out)
{
    WB_CHECK(home->magic == WB_STREAM_HOME_MAGIC && spec->join.len > 0);
    struct wb_deal_worker *worker = wb_alloc_zero(1, sizeof *worker);

    *worker_out = NULL;
    if (!worker)
        return WB_E_NOMEM;
    worker->magic = WORKER_MAGIC;
    worker->heard_ns = wb_clock_mono_ns();
    pthread_mutex_lock(&home->deal_mutex);
    int err = find_deal(home, spec, &worker->deal);
    if (err == 0)
        worker->deal->workers++;
    pthread_mutex_unlock(&home->deal_mutex);
    if (err < 0) {
        wb_free(worker);
        return err;
    }
    *worker_out = worker;
    return 0;
}

/* What the worker has goes to others. Called with the deal's lock. */
static void give_back(struct wb_deal_worker *worker)
{
    WB_CHECK(wb_is_locked(&worker->deal->mutex));
    struct wb_deal *deal = worker->deal;

    for (size_t i = 0; i < worker->items.count; i++) {
        WB_CHECK(worker->items.items[i]->worker == worker);
        worker->items.items[i]->worker = NULL;
        deal->free_from = 0;
    }
    wb_vec_release(&worker->items);
    worker->bytes = 0;
}

void wb_deal_leave(struct wb_deal_worker *worker)
{
    if (!worker)
        return;

    WB_CHECK(worker->magic == WORKER_MAGIC && worker->deal->magic == DEAL_MAGIC);
    struct wb_deal *deal = worker->deal, **at = &deal->home->deals;
    pthread_mutex_lock(&deal->mutex);
    put_down(worker);
    give_back(worker);
    pthread_mutex_unlock(&deal->mutex);
    struct wb_stream_home *home = deal->home;
    pthread_mutex_lock(&home->deal_mutex);
    WB_CHECK(deal->workers > 0);
    bool last = --deal->workers == 0;
    while (last && *at != deal)
        at = &(*at)->next;
    if (last) {
        *at = deal->next;
        (void)save(deal, true); /* if it fails, records that were acknowledged are repeated */
        free_deal(deal);
    }
    pthread_mutex_unlock(&home->deal_mutex);
    worker->magic = 0;
    wb_store_packer_free(worker->packer);
    wb_vec_release(&worker->records);
    wb_buf_release(&worker->token);
    wb_free(worker);
}

/* ---- dealing -------------------------------------------------------------------------------------- */

/*
 * Reads the next record of the stream. Returns 1, 0 at its end, WB_DEAL_LATER, WB_STREAM_AGAIN, or an error. If a
 * record is lost because there was no memory or the disk failed, nothing more is read: it comes again when all workers
 * have left and the stream is joined again.
 */
static int read_item(struct wb_deal *deal, struct deal_item **item_out)
{
    struct wb_stream_record record;

    WB_CHECK(wb_is_locked(&deal->mutex));
    *item_out = NULL;
    if (deal->ended)
        return 0;
    if (deal->broken.code < 0)
        return wb_error_restore(&deal->broken);
    if (deal->items.count >= deal->home->deal_window)
        return WB_DEAL_LATER;
    uint64_t bars;
    int err = wb_store_bar_version(deal->stream->store, &bars);
    if (err == 0)
        err = wb_vec_reserve(&deal->items, deal->items.count + 1);
    if (err < 0)
        return err;
    int got = wb_stream_next(deal->stream, &record);
    deal->ended = got == 0;
    if (got == WB_E_BUSY && wb_stream_waits(deal->stream))
        return WB_DEAL_LATER;
    if (got == 1)
        got = (err = new_item(deal->stream, &record, item_out)) < 0 ? err : 1;
    if (got == WB_E_NOMEM || got == WB_E_IO)
        wb_error_save(got, &deal->broken);
    if (got != 1)
        return got;
    (*item_out)->bars = bars;
    deal->items.items[deal->items.count++] = *item_out;
    return 1;
}

/* Whether so much of what it has is not acknowledged that it gets nothing more. */
static bool has_enough(const struct wb_deal_worker *worker)
{
    return worker->items.count >= WB_DEAL_RECORDS_MAX || (worker->items.count && worker->bytes >= WORKER_BYTES_MAX);
}

/*
 * This worker has to wait for others: is the one that has the oldest record silent? Then its records are nobody's.
 * Called with the deal's lock.
 */
static bool relieve(struct wb_deal_worker *worker)
{
    WB_CHECK(wb_is_locked(&worker->deal->mutex));
    struct wb_deal *deal = worker->deal;
    struct wb_deal_worker *other = deal->items.count ? deal->items.items[0]->worker : NULL;

    if (has_enough(worker) || (!deal->ended && deal->items.count < deal->home->deal_window))
        return false; /* it does not wait for others */
    if (!other || other == worker || wb_clock_mono_ns() - other->heard_ns < deal->home->silence_ns)
        return false;
    give_back(other);
    other->late = true;
    return true;
}

static int refuse_late(const struct wb_deal *deal)
{
    return wb_fail(WB_E_STOPPED,
                   "other workers had to wait for this one, which acknowledged nothing for %d seconds: its records "
                   "went to them",
                   (int)(deal->home->silence_ns / 1000000000));
}

/* Chooses the record that this worker gets. Returns 1, 0 at the end, WB_DEAL_LATER, or an error. */
static int choose_item(struct wb_deal_worker *worker, struct deal_item **item_out)
{
    struct wb_deal *deal = worker->deal;

    *item_out = NULL;
    if (deal->finished)
        return 0;
    if (has_enough(worker))
        return WB_DEAL_LATER;
    for (; deal->free_from < deal->items.count; deal->free_from++) {
        struct deal_item *item = deal->items.items[deal->free_from];
        if (item->done || item->worker)
            continue;
        int down = wb_stream_is_down(deal->stream, item->bars, &item->record.page);
        if (down <= 0) {
            *item_out = down == 0 ? item : NULL;
            return down < 0 ? down : 1;
        }
        item->done = true; /* nobody gets it any more */
        drop_texts(item);
    }
    int got = read_item(deal, item_out);
    if (got != 0)
        return got;
    int err = pass_done(deal);
    if (err < 0)
        return err;
    return deal->finished ? 0 : WB_DEAL_LATER;
}

/* The same, but does not wait for those who say nothing. */
static int choose_in_time(struct wb_deal_worker *worker, struct deal_item **item_out)
{
    int got = worker->late ? refuse_late(worker->deal) : choose_item(worker, item_out);

    while (got == WB_DEAL_LATER && relieve(worker))
        got = choose_item(worker, item_out);
    return got;
}

/* Called with the deal's lock. */
static int deal_one(struct wb_deal_worker *worker, struct deal_item **item_out)
{
    WB_CHECK(wb_is_locked(&worker->deal->mutex));
    int err = wb_vec_reserve(&worker->items, worker->items.count + 1);

    *item_out = NULL;
    put_down(worker);
    if (err < 0)
        return err;
    wb_hold_renew(worker->deal->stream);
    int got = choose_in_time(worker, item_out);
    if (got != 1)
        return got;
    if (worker->items.count == 0)
        worker->heard_ns = wb_clock_mono_ns();
    WB_CHECK(!(*item_out)->worker && !(*item_out)->done); /* each record goes to one worker at a time */
    (*item_out)->worker = worker;
    worker->items.items[worker->items.count++] = *item_out;
    worker->bytes += (*item_out)->bytes;
    worker->at_hand = *item_out;
    worker->at_hand->readers++;
    return 1;
}

int wb_deal_next(struct wb_deal_worker *worker, struct wb_stream_record *record_out)
{
    struct wb_deal *deal = worker->deal;
    struct deal_item *item;
    struct wb_slice token;

    WB_CHECK(worker->magic == WORKER_MAGIC);
    *record_out = (struct wb_stream_record){.docid = WB_DOCID_NONE};
    pthread_mutex_lock(&deal->mutex);
    int got = deal_one(worker, &item);
    wb_buf_clear(&worker->token);
    if (got == 1) {
        int err = wb_token_write(&deal->stream->tokens, &item->place, &token);
        if (err == 0)
            err = wb_buf_append_slice(&worker->token, token);
        *record_out = item->record;
        record_out->token = wb_buf_slice(&worker->token);
        got = err < 0 ? err : 1;
    }
    pthread_mutex_unlock(&deal->mutex);
    return got;
}

bool wb_deal_warning(struct wb_deal_worker *worker, char text_out[WB_ERROR_MESSAGE_MAX])
{
    WB_CHECK(worker->magic == WORKER_MAGIC);
    pthread_mutex_lock(&worker->deal->mutex);
    bool any = wb_stream_warning(worker->deal->stream, text_out);
    pthread_mutex_unlock(&worker->deal->mutex);
    return any;
}

int wb_deal_acknowledge(struct wb_deal_worker *worker, uint64_t position)
{
    struct wb_deal *deal = worker->deal;
    size_t upto = 0;
    int err = 0;

    WB_CHECK(worker->magic == WORKER_MAGIC);
    pthread_mutex_lock(&deal->mutex);
    for (size_t i = 0; i < worker->items.count && upto == 0; i++)
        if (worker->items.items[i]->record.position == position)
            upto = i + 1;
    for (size_t i = 0; i < upto; i++) {
        struct deal_item *item = worker->items.items[i];
        worker->bytes -= item->bytes;
        item->done = true;
        item->worker = NULL;
        if (item == worker->at_hand)
            put_down(worker);
        drop_texts(item);
    }
    worker->items.count -= upto;
    memmove(worker->items.items, worker->items.items + upto, worker->items.count * sizeof *worker->items.items);
    if (upto)
        worker->heard_ns = wb_clock_mono_ns();
    if (upto)
        err = pass_done(deal);
    pthread_mutex_unlock(&deal->mutex);
    return err;
}

/* ---- as bytes ------------------------------------------------------------------------------------- */

static int put_header(struct wb_deal_worker *worker, struct wb_buf *out)
{
    WB_CHECK(!worker->headed);
    struct wb_deal *deal = worker->deal;
    struct wb_buf token = WB_BUF_INIT;
    struct wb_stream_info info;
    int err = worker->packer ? 0 : wb_store_packer_new(&worker->packer);

    pthread_mutex_lock(&deal->mutex);
    if (err == 0)
        err = wb_stream_token(deal->stream, &token);
    wb_stream_info(deal->stream, &info);
    pthread_mutex_unlock(&deal->mutex);
    if (err == 0)
        err = wb_wire_put_header(deal->home->repository, &info, wb_buf_slice(&token), out);
    worker->headed = err == 0;
    wb_buf_release(&token);
    return err < 0 ? err : 1;
}

/* Deals records until there are enough for a frame. Returns what came instead of the next one, or 1. */
static int collect(struct wb_deal_worker *worker)
{
    struct deal_item *item;
    int got = 1;

    wb_vec_clear(&worker->records);
    while (got == 1 && worker->records.count < FRAME_RECORDS && !wb_store_packer_full(worker->packer)) {
        pthread_mutex_lock(&worker->deal->mutex);
        got = deal_one(worker, &item);
        pthread_mutex_unlock(&worker->deal->mutex);
        if (got != 1)
            break;
        struct wb_wire_record record = {
            .place = item->place,
            .position = item->record.position,
            .docid = item->record.docid,
            .revisit = item->record.revisit,
            .original_ms = item->record.original_ms,
        };
        int err = wb_store_packer_add(worker->packer, &item->record.page, NULL);
        if (err == 0)
            err = wb_vec_push(&worker->records, record);
        got = err < 0 ? err : 1;
    }
    return got;
}

int wb_deal_next_wire(struct wb_deal_worker *worker, struct wb_buf *out)
{
    struct wb_store_parcel parcel;
    struct wb_error_copy copy;
    int err = 0;

    WB_CHECK(worker->magic == WORKER_MAGIC);
    if (worker->end_put)
        return 0;
    if (!worker->headed)
        return put_header(worker, out);
    int got = collect(worker);
    wb_error_save(got < 0 ? got : 0, &copy);
    if (worker->records.count) {
        err = wb_store_packer_finish(worker->packer, &parcel);
        if (err == 0)
            err = wb_wire_put_records(&parcel, worker->records.items, out);
        worker->sent += worker->records.count;
    }
    if (err < 0)
        return err;
    if (got == WB_E_CORRUPT || got == WB_E_BROKEN) {
        wb_error_restore(&copy);
        err = wb_wire_put_damage(wb_error_message(), out);
    }
    if (got == WB_E_BROKEN && err == 0) { /* to ask again would lead to the same place */
        err = wb_wire_put_end(worker->sent, out);
        worker->end_put = err == 0;
    } else if (got == 0) {
        err = wb_wire_put_end(worker->sent, out);
        worker->end_put = err == 0;
    } else if (got < 0 && got != WB_E_CORRUPT) {
        return wb_error_restore(&copy);
    }
    if (err < 0)
        return err;
    return got >= WB_DEAL_LATER && worker->records.count == 0 ? got : 1;
}
