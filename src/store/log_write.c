/*
 * log_write.c - collects what a writer puts, touches and removes, until it commits.
 *
 * There are two collections. `ops` has every operation in the order in which it came; the
 * commit carries them out. `pending` has, for each page concerned, what is true of it
 * after the ops so far, so that a writer sees its own changes before they are committed.
 *
 * Whatever can be decided early is decided here: a page that is older than the stored
 * version is not even compressed. The commit decides again, because other processes
 * may commit in the meantime. This file never writes to the catalog or to a segment.
 */
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/limits.h"
#include "os/random.h"
#include "store/log.h"

enum { WORKERS_MAX = 8 };

struct wb_log_sizes wb_log_sizes = {
    .segment_bytes = WB_SEGMENT_BYTES_MAX,
    .block_bytes = WB_BLOCK_RAW_TARGET,
    .group_bytes = 16 << 20,
    .giant_bytes = 8 << 20,
};

/* ---- the index of pages and sites --------------------------------------------------------------- */

/* URLs come from strangers, who could choose them so that all end up in one place of the table: hence a secret seed. */
static void index_init(union wb_log_index *map)
{
    uint64_t seed;

    wb_random_bytes(&seed, sizeof seed);
    *map = (union wb_log_index)WB_MAP_INIT(seed);
}

static struct wb_log_index_entry *index_find(const union wb_log_index *map, struct wb_pageid id)
{
    struct wb_log_index_entry *entry = NULL;

    while ((entry = wb_map_next(map, id.lo, entry)))
        if (wb_pageid_equal(entry->id, id))
            break;
    return entry;
}

bool wb_log_index_get(const union wb_log_index *map, struct wb_pageid id, uint32_t *index_out)
{
    const struct wb_log_index_entry *entry = index_find(map, id);

    *index_out = entry ? entry->index : 0;
    return entry != NULL;
}

static int index_set(union wb_log_index *map, struct wb_pageid id, size_t index)
{

    struct wb_log_index_entry *entry = index_find(map, id);

    WB_CHECK(index < UINT32_MAX);
    if (!entry) {
        entry = wb_map_add(map, id.lo);
        if (!entry)
            return WB_E_NOMEM;
        entry->id = id;
    }
    entry->index = (uint32_t)index;
    return 0;
}

/* ---- the writer --------------------------------------------------------------------------------- */

int wb_log_writer_new(struct wb_log *log)
{
    struct wb_log_writer *writer = wb_alloc_zero(1, sizeof *writer);
    unsigned workers = wb_limits_processors() < WORKERS_MAX ? wb_limits_processors() : WORKERS_MAX;
    int err;

    WB_CHECK(log->magic == WB_LOG_MAGIC);
    WB_CHECK(log->store.mode == WB_STORE_WRITE);
    WB_CHECK(!log->writer);
    WB_CHECK(workers > 0);
    if (!writer)
        return WB_E_NOMEM;
    writer->magic = WB_LOG_WRITER_MAGIC;
    log->writer = writer;
    writer->commit = log->commit_at_open;
    index_init(&writer->site_index);
    index_init(&writer->pending_index);
    index_init(&writer->revisit_index);
    err = wb_log_builders_new(workers, &writer->builders);
    if (err == 0)
        err = wb_pool_new(workers, &writer->pool);
    return err;
}

void wb_log_ops_clear(struct wb_log_writer *writer)
{
    WB_CHECK(writer->magic == WB_LOG_WRITER_MAGIC);
    WB_CHECK(!writer->flight); /* whose jobs point into the ops */
    for (size_t i = 0; i < writer->ops.count; i++)
        wb_buf_release(&writer->ops.items[i].record);
    for (size_t i = 0; i < writer->sites.count; i++)
        wb_free(writer->sites.items[i].name);
    wb_vec_clear(&writer->ops);
    wb_vec_clear(&writer->sites);
    wb_vec_clear(&writer->pending);
    wb_map_clear(&writer->site_index);
    wb_map_clear(&writer->pending_index);
    wb_map_clear(&writer->revisit_index);
    writer->group_at = 0;
    writer->group_bytes = 0;
    writer->older = writer->barred = 0;
    writer->failed = (struct wb_error_copy){0};
}

void wb_log_tails_release(struct wb_log *log)
{
    WB_CHECK(log->writer->magic == WB_LOG_WRITER_MAGIC);

    struct wb_log_writer *writer = log->writer;
    uint64_t commit = writer->tails.count ? wb_log_newest_commit(log) : 0;

    WB_CHECK(writer->ops.count == 0); /* committed, or dropped */
    for (size_t i = 0; i < writer->tails.count; i++) {
        struct wb_log_tail *tail = &writer->tails.items[i];
        WB_CHECK(tail->bytes >= tail->bytes_committed);
        /* A clean end: no uncommitted bytes, and a seal. If this fails, the next writer recovers the segment. */
        if (wb_file_truncate(&tail->segment.file, tail->bytes_committed) == 0)
            wb_segment_write_seal(&tail->segment, tail->bytes_committed, commit);
        wb_segment_close(&tail->segment);
    }
    wb_vec_clear(&writer->tails);
}

void wb_log_writer_free(struct wb_log *log)
{
    struct wb_log_writer *writer = log->writer;

    if (!writer)
        return;
    WB_CHECK(writer->magic == WB_LOG_WRITER_MAGIC);
    wb_log_flush_drop(log);
    wb_pool_free(writer->pool);
    wb_log_builders_free(writer->builders);
    wb_log_ops_clear(writer);
    if (writer->tails.count == 0 && writer->commit > log->commit_at_open)
        wb_log_seal_any(log, wb_log_newest_commit(log));
    wb_log_tails_release(log);
    wb_vec_release(&writer->tails);
    wb_vec_release(&writer->ops);
    wb_vec_release(&writer->sites);
    wb_vec_release(&writer->pending);
    wb_map_release(&writer->site_index);
    wb_map_release(&writer->pending_index);
    wb_map_release(&writer->revisit_index);
    writer->magic = 0;
    wb_free(writer);
    log->writer = NULL;
}

/* ---- ops, and what they make true ------------------------------------------------------------ */

/* Finds a site among those of the ops, or adds it. */
static int intern_site(struct wb_log_writer *writer, struct wb_slice site, uint32_t *index_out)
{
    struct wb_pageid hash; /* the index works for any 128-bit hash */
    int err;

    WB_CHECK(writer->magic == WB_LOG_WRITER_MAGIC);
    wb_hash128(site.ptr, site.len, &hash.hi, &hash.lo);
    if (wb_log_index_get(&writer->site_index, hash, index_out)) {
        WB_CHECK(*index_out < writer->sites.count);
        return 0;
    }
    err = wb_vec_reserve(&writer->sites, writer->sites.count + 1);
    if (err < 0)
        return err;
    char *name = wb_strndup(site.ptr, site.len);
    if (!name)
        return WB_E_NOMEM;
    err = index_set(&writer->site_index, hash, writer->sites.count);
    if (err < 0) {
        wb_free(name);
        return err;
    }
    *index_out = (uint32_t)writer->sites.count;
    return wb_vec_push(&writer->sites, (struct wb_log_site){name, site.len, wb_hash64(site.ptr, site.len), 0});
}

bool wb_log_pending(struct wb_log *log, struct wb_pageid id, struct wb_log_pending *pending_out)
{
    uint32_t index;

    WB_CHECK(log->magic == WB_LOG_MAGIC);
    WB_CHECK(log->writer->magic == WB_LOG_WRITER_MAGIC);
    if (!wb_log_index_get(&log->writer->pending_index, id, &index))
        return false;
    WB_CHECK(index < log->writer->pending.count);
    *pending_out = log->writer->pending.items[index];
    return true;
}

/*
 * What is true of a page now: according to the ops if they concern it, otherwise according
 * to the catalog. If a site is given, also finds out whether the page is barred.
 */
static int effective(struct wb_log *log, struct wb_pageid id, const struct wb_slice *site,
                     struct wb_log_pending *pending_out, bool *barred_out)
{
    struct wb_catalog_entry entry;
    int err;

    WB_CHECK(log->writer->magic == WB_LOG_WRITER_MAGIC);
    *barred_out = false;
    if (wb_log_pending(log, id, pending_out)) {
        err = site ? wb_log_barred(&log->store, id, *site) : 0;
        *barred_out = err > 0;
        return err < 0 ? err : 0;
    }
    *pending_out = (struct wb_log_pending){.put_op = -1};
    err = site ? wb_log_entry_or_bar(log, id, *site, &entry, barred_out) : wb_log_entry(log, id, &entry);
    if (err == WB_E_NOTFOUND)
        return 0;
    pending_out->exists = err == 0 && !*barred_out;
    pending_out->time_ms = entry.time_ms;
    return err;
}

static int set_pending(struct wb_log_writer *writer, struct wb_pageid id, const struct wb_log_pending *pending)
{
    uint32_t index;
    int err;

    WB_CHECK(writer->magic == WB_LOG_WRITER_MAGIC);
    WB_CHECK(pending->put_op < 0 || pending->exists);
    if (wb_log_index_get(&writer->pending_index, id, &index)) {
        WB_CHECK(index < writer->pending.count);
        writer->pending.items[index] = *pending;
        return 0;
    }
    err = wb_vec_reserve(&writer->pending, writer->pending.count + 1);
    if (err == 0)
        err = index_set(&writer->pending_index, id, writer->pending.count);
    return err < 0 ? err : wb_vec_push(&writer->pending, *pending);
}

/* Adds an op and what it makes true. Either both happen or neither. */
static int add_op(struct wb_log_writer *writer, const struct wb_log_op *op, struct wb_log_pending *pending)
{
    WB_CHECK(writer->magic == WB_LOG_WRITER_MAGIC);

    int err = wb_vec_reserve(&writer->ops, writer->ops.count + 1);

    WB_CHECK(op->kind <= WB_LOG_OP_REVISIT);
    WB_CHECK((op->kind == WB_LOG_OP_REVISIT) == (pending == NULL));
    WB_CHECK((op->kind == WB_LOG_OP_PUT) == (op->record.len > 0));
    WB_CHECK(!op->appended);
    if (err < 0)
        return err;
    if (op->kind == WB_LOG_OP_PUT)
        pending->put_op = (int64_t)writer->ops.count;
    if (op->kind != WB_LOG_OP_REVISIT) {
        err = set_pending(writer, op->id, pending);
        if (err < 0)
            return err;
    }
    return wb_vec_push(&writer->ops, *op);
}

/* After a failed flush nothing more can be added: returns the error of the flush. */
static int check_usable(const struct wb_log_writer *writer)
{
    WB_CHECK(writer->magic == WB_LOG_WRITER_MAGIC);
    WB_CHECK(writer->group_at <= writer->ops.count);
    return writer->failed.code < 0 ? wb_error_restore(&writer->failed) : 0;
}

/* ---- put, touch, remove, revisit ----------------------------------------------------------------- */

/* The catalog has 16 bits for a number of days. */
static uint16_t days16(uint32_t days)
{
    return days > UINT16_MAX ? UINT16_MAX : (uint16_t)days;
}

/* With pages of several sites, waiting for a larger group pays, because pages of one site are then stored together. */
static bool group_is_full(const struct wb_log_writer *writer)
{
    WB_CHECK(writer->group_at <= writer->ops.count);
    return writer->group_bytes >= (writer->group_mixed ? wb_log_sizes.group_bytes : wb_log_sizes.group_bytes / 4);
}

/* Decides whether the page is stored at all, and counts those that are not. */
static bool is_wanted(struct wb_log_writer *writer, const struct wb_page *page, const struct wb_log_pending *now,
                      bool barred, enum wb_store_outcome *outcome_out)
{
    WB_CHECK(writer->magic == WB_LOG_WRITER_MAGIC);
    if (barred) {
        writer->barred++;
        *outcome_out = WB_STORE_PUT_BARRED;
        return false;
    }
    if (now->exists && !wb_store_time_replaces(page->time_ms, now->time_ms, wb_clock_wall_ms())) {
        writer->older++;
        *outcome_out = WB_STORE_PUT_OLDER;
        return false;
    }
    *outcome_out = now->exists ? WB_STORE_PUT_REPLACED : WB_STORE_PUT_NEW;
    return true;
}

int wb_log_put(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out)
{
    struct wb_log *log = wb_log_of_writer(store);
    struct wb_log_writer *writer = log->writer;
    struct wb_log_op op = {.kind = WB_LOG_OP_PUT, .id = page->id, .time_ms = page->time_ms};
    struct wb_slice site = wb_key_site(page->key);
    struct wb_log_pending now;
    bool barred;
    int err = check_usable(writer);

    if (err == 0)
        err = effective(log, page->id, &site, &now, &barred);
    if (err < 0 || !is_wanted(writer, page, &now, barred, outcome_out))
        return err;
    err = intern_site(writer, site, &op.site);
    if (err == 0)
        err = wb_page_encode(page, &op.record);
    if (err < 0)
        goto done;
    WB_CHECK(op.record.len > WB_RECORD_DIGEST_BYTES);
    WB_CHECK(op.site < writer->sites.count);
    op.entry = (struct wb_catalog_entry){
        .time_ms = page->time_ms,
        .body_bytes = (uint32_t)page->body.len,
        .status = page->status,
        .lifetime = days16(page->lifetime),
        .lifetime_count = days16(page->lifetime_count ? page->lifetime_count : page->lifetime),
        .site = writer->sites.items[op.site].hash,
    };
    struct wb_log_pending then = {
        .exists = true, .time_ms = page->time_ms, .site = op.site, .taken_down = now.taken_down};
    err = add_op(writer, &op, &then);
    if (err < 0)
        goto done;
    size_t record_bytes = op.record.len;
    writer->group_mixed = writer->group_bytes && (writer->group_mixed || op.site != writer->group_site);
    writer->group_site = op.site;
    writer->group_bytes += record_bytes;
    op.record = WB_BUF_INIT; /* the list owns it now */
    if (record_bytes >= wb_log_sizes.giant_bytes)
        err = wb_log_flush_all(log);
    else if (group_is_full(writer))
        err = wb_log_flush_start(log);
done:
    wb_buf_release(&op.record);
    return err;
}

/* What touch and remove start with: what is true of the page now. */
static int look_at(struct wb_log *log, struct wb_pageid id, struct wb_log_pending *now_out)
{
    WB_CHECK(log->magic == WB_LOG_MAGIC);

    bool barred;
    int err = check_usable(log->writer);

    return err < 0 ? err : effective(log, id, NULL, now_out, &barred);
}

int wb_log_touch(struct wb_store *store, struct wb_pageid id, int64_t time_ms)
{
    struct wb_log *log = wb_log_of_writer(store);
    struct wb_log_op op = {.kind = WB_LOG_OP_TOUCH, .id = id, .time_ms = time_ms};
    struct wb_log_pending now;
    int err = look_at(log, id, &now);

    if (err < 0)
        return err;
    if (!now.exists)
        return wb_store_not_found();
    if (wb_store_time_replaces(time_ms, now.time_ms, wb_clock_wall_ms()))
        now.time_ms = time_ms;
    now.touched = true;
    return add_op(log->writer, &op, &now);
}

/* Removes a page that only the snapshot has. */
static int remove_old(struct wb_log *log, struct wb_pageid id)
{
    struct wb_log_op op = {.kind = WB_LOG_OP_REMOVE_OLD, .id = id};
    struct wb_log_pending gone = {.put_op = -1};
    bool there = false;
    int err = 0;

    WB_CHECK(log->writer->magic == WB_LOG_WRITER_MAGIC);
    wb_log_pending(log, id, &gone);
    if (!gone.taken_down)
        err = wb_log_in_snapshot(log, id, &there);
    if (err < 0)
        return err;
    if (!there)
        return wb_store_not_found();
    gone.taken_down = true;
    return add_op(log->writer, &op, &gone);
}

int wb_log_remove(struct wb_store *store, struct wb_pageid id, struct wb_slice site, bool everywhere)
{
    struct wb_log *log = wb_log_of_writer(store);
    struct wb_log_op op = {.kind = everywhere ? WB_LOG_OP_REMOVE_EVERYWHERE : WB_LOG_OP_REMOVE, .id = id};
    struct wb_log_pending now, gone = {.put_op = -1};
    int err = look_at(log, id, &now);

    if (err < 0)
        return err;
    if (!now.exists)
        return everywhere ? remove_old(log, id) : wb_store_not_found();
    err = intern_site(log->writer, site, &op.site);
    gone.taken_down = everywhere || now.taken_down;
    return err < 0 ? err : add_op(log->writer, &op, &gone);
}

int wb_log_put_revisit(struct wb_store *store, struct wb_pageid id, struct wb_slice site,
                       const struct wb_store_revisit *revisit)
{
    struct wb_log *log = wb_log_of_writer(store);
    struct wb_log_writer *writer = log->writer;
    struct wb_log_op op = {.kind = WB_LOG_OP_REVISIT, .id = id, .revisit = *revisit};
    uint32_t known;
    int err = check_usable(writer);
    int barred = err == 0 ? wb_log_barred(store, id, site) : 0;

    if (barred) {
        writer->barred += barred > 0;
        return barred < 0 ? barred : 0;
    }
    if (err == 0)
        err = intern_site(writer, site, &op.site);
    if (err == 0) /* room first: the index must not name an op that does not exist */
        err = wb_vec_reserve(&writer->ops, writer->ops.count + 1);
    if (err == 0 && (!wb_log_index_get(&writer->revisit_index, id, &known) ||
                     writer->ops.items[known].revisit.time_ms < revisit->time_ms))
        err = index_set(&writer->revisit_index, id, writer->ops.count);
    return err < 0 ? err : add_op(writer, &op, NULL);
}

int wb_log_get_pending(struct wb_log *log, const struct wb_log_pending *pending, struct wb_page *page_out,
                       struct wb_buf *mem_out)
{
    struct wb_log_writer *writer = log->writer;
    int err;

    WB_CHECK(log->writer->magic == WB_LOG_WRITER_MAGIC);
    WB_CHECK(pending->exists);
    WB_CHECK(pending->put_op >= 0);
    WB_CHECK((size_t)pending->put_op < writer->ops.count);
    wb_log_flush_wait(log);
    const struct wb_log_op *op = &writer->ops.items[pending->put_op];
    WB_CHECK(op->kind == WB_LOG_OP_PUT);
    WB_CHECK(op->appended == (op->record.len == 0));
    wb_buf_clear(mem_out);
    if (op->appended) {
        size_t i = 0;
        while (i < writer->tails.count && writer->tails.items[i].segment.number != op->entry.place.segment)
            i++;
        WB_CHECK(i < writer->tails.count);
        err = wb_segment_read_record(&writer->tails.items[i].segment, &log->source, &op->entry.place, op->id,
                                     mem_out);
    } else {
        err = wb_buf_append_slice(mem_out, wb_buf_slice(&op->record));
        if (err == 0)
            err = wb_page_record_digest(
                &(struct wb_record_digest){mem_out->ptr, mem_out->len, op->entry.body_bytes}, 1);
    }
    if (err == 0)
        err = wb_log_page(wb_buf_slice(mem_out), op->id, NULL, page_out);
    if (err == 0) {
        page_out->time_ms = pending->time_ms;
        page_out->lifetime_count = pending->touched ? op->entry.lifetime : op->entry.lifetime_count;
    }
    return err;
}
