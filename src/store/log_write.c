/*
 * log_write.c - what a writer has taken and not yet committed: a list of ops in
 * the order they came, and for each page concerned what is true of it now. It
 * decides early what can be decided (an older version is not stored at all); the
 * commit decides again, because other processes commit meanwhile.
 */
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/limits.h"
#include "store/log.h"

enum { WORKERS_MAX = 8 };

struct wb_log_sizes wb_log_sizes = {
    .segment_bytes = WB_SEGMENT_BYTES_MAX,
    .block_bytes = WB_BLOCK_RAW_TARGET,
    .group_bytes = 16 << 20,
    .giant_bytes = 8 << 20,
};

int wb_log_writer_new(struct wb_log *log)
{
    struct wb_log_writer *writer = wb_alloc_zero(1, sizeof *writer);
    unsigned workers = wb_limits_processors() < WORKERS_MAX ? wb_limits_processors() : WORKERS_MAX;
    int err;

    if (!writer)
        return WB_E_NOMEM;
    writer->magic = WB_LOG_WRITER_MAGIC;
    log->writer = writer;
    writer->commit = log->commit_at_open;
    err = wb_log_builders_new(workers, &writer->builders);
    if (err == 0)
        err = wb_pool_new(workers, &writer->pool);
    return err;
}

void wb_log_ops_clear(struct wb_log_writer *writer)
{
    for (size_t i = 0; i < writer->op_count; i++)
        wb_buf_release(&writer->ops[i].record);
    for (size_t i = 0; i < writer->site_count; i++)
        wb_free(writer->sites[i].name);
    writer->op_count = writer->group_at = 0;
    writer->site_count = 0;
    writer->pending_count = 0;
    writer->group_bytes = 0;
    writer->older = writer->barred = 0;
    writer->failed = (struct wb_error_copy){0};
    wb_idmap_clear(&writer->site_map);
    wb_idmap_clear(&writer->pending_map);
    wb_idmap_clear(&writer->revisit_map);
}

void wb_log_tails_release(struct wb_log *log)
{
    struct wb_log_writer *writer = log->writer;
    uint64_t commit = writer->tail_count ? wb_log_newest_commit(log) : 0;

    for (size_t i = 0; i < writer->tail_count; i++) {
        struct wb_log_tail *tail = &writer->tails[i];
        /* Leaving cleanly: no uncommitted bytes, and a seal. Where that fails the next writer recovers. */
        if (wb_file_truncate(&tail->segment.file, tail->bytes_committed) == 0)
            wb_segment_write_seal(&tail->segment, tail->bytes_committed, commit);
        wb_segment_close(&tail->segment);
    }
    writer->tail_count = 0;
}

void wb_log_writer_free(struct wb_log *log)
{
    struct wb_log_writer *writer = log->writer;

    if (!writer)
        return;
    wb_log_flush_drop(log);
    wb_pool_free(writer->pool);
    wb_log_builders_free(writer->builders);
    wb_log_ops_clear(writer);
    if (writer->tail_count == 0 && writer->commit > log->commit_at_open)
        wb_log_seal_any(log, wb_log_newest_commit(log));
    wb_log_tails_release(log);
    wb_free(writer->tails);
    wb_free(writer->ops);
    wb_free(writer->sites);
    wb_free(writer->pending);
    wb_idmap_release(&writer->site_map);
    wb_idmap_release(&writer->pending_map);
    wb_idmap_release(&writer->revisit_map);
    wb_free(writer);
    log->writer = NULL;
}

/* ---- ops and what they make true ------------------------------------------------------------ */

/* Room for one more of each in the three growing arrays. */
static int reserve(void **array, size_t count, size_t *cap, size_t size)
{
    if (count < *cap)
        return 0;
    size_t more = *cap ? *cap * 2 : 64;
    void *grown = wb_realloc(*array, more * size);
    if (!grown)
        return WB_E_NOMEM;
    *array = grown;
    *cap = more;
    return 0;
}

static int intern_site(struct wb_log_writer *writer, struct wb_slice site, uint32_t *index_out)
{
    struct wb_pageid hash;
    int err;

    wb_hash128(site.ptr, site.len, &hash.hi, &hash.lo);
    if (wb_idmap_get(&writer->site_map, hash, index_out))
        return 0;
    err = reserve((void **)&writer->sites, writer->site_count, &writer->site_cap, sizeof *writer->sites);
    if (err < 0)
        return err;
    char *name = wb_strndup(site.ptr, site.len);
    if (!name)
        return WB_E_NOMEM;
    err = wb_idmap_set(&writer->site_map, hash, (uint32_t)writer->site_count);
    if (err < 0) {
        wb_free(name);
        return err;
    }
    writer->sites[writer->site_count] = (struct wb_log_site){name, site.len, wb_hash64(site.ptr, site.len), 0};
    *index_out = (uint32_t)writer->site_count++;
    return 0;
}

bool wb_log_pending(struct wb_log *log, struct wb_pageid id, struct wb_log_pending *pending_out)
{
    uint32_t index;

    if (!wb_idmap_get(&log->writer->pending_map, id, &index))
        return false;
    *pending_out = log->writer->pending[index];
    return true;
}

/* What is true of a page now: by the ops, else by the catalog. With a site, also whether the page is barred. */
static int effective(struct wb_log *log, struct wb_pageid id, const struct wb_slice *site, struct wb_log_pending *pending_out, bool *barred_out)
{
    struct wb_catalog_entry entry;
    int err;

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

    if (wb_idmap_get(&writer->pending_map, id, &index)) {
        writer->pending[index] = *pending;
        return 0;
    }
    err = reserve((void **)&writer->pending, writer->pending_count, &writer->pending_cap, sizeof *writer->pending);
    if (err == 0)
        err = wb_idmap_set(&writer->pending_map, id, (uint32_t)writer->pending_count);
    if (err == 0)
        writer->pending[writer->pending_count++] = *pending;
    return err;
}

/* Adds an op and what it makes true; either both happen or neither. */
static int add_op(struct wb_log_writer *writer, const struct wb_log_op *op, struct wb_log_pending *pending)
{
    int err = reserve((void **)&writer->ops, writer->op_count, &writer->op_cap, sizeof *writer->ops);

    if (err < 0)
        return err;
    if (op->kind == WB_LOG_OP_PUT)
        pending->put_op = (int64_t)writer->op_count;
    if (op->kind != WB_LOG_OP_REVISIT) {
        err = set_pending(writer, op->id, pending);
        if (err < 0)
            return err;
    }
    writer->ops[writer->op_count++] = *op;
    return 0;
}

static int check_usable(const struct wb_log_writer *writer)
{
    return writer->failed.code < 0 ? wb_error_restore(&writer->failed) : 0;
}

/* ---- the four operations ------------------------------------------------------------------------ */

static uint16_t days16(uint32_t days)
{
    return days > UINT16_MAX ? UINT16_MAX : (uint16_t)days;
}

/* A group of several sites waits, so that neighbours are gathered; one of a single site has nothing to wait for. */
static bool group_is_full(const struct wb_log_writer *writer)
{
    return writer->group_bytes >= (writer->group_mixed ? wb_log_sizes.group_bytes : wb_log_sizes.group_bytes / 4);
}

/* Whether the page is taken at all; counts those that are not. */
static bool is_wanted(struct wb_log_writer *writer, const struct wb_page *page, const struct wb_log_pending *now, bool barred,
                      enum wb_store_outcome *outcome_out)
{
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
    struct wb_log *log = wb_log_of(store);
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
    op.entry = (struct wb_catalog_entry){
        .time_ms = page->time_ms,
        .body_bytes = (uint32_t)page->body.len,
        .status = page->status,
        .lifetime = days16(page->lifetime),
        .lifetime_count = days16(page->lifetime_count ? page->lifetime_count : page->lifetime),
        .site = writer->sites[op.site].hash,
    };
    struct wb_log_pending then = {.exists = true, .time_ms = page->time_ms, .site = op.site, .taken_down = now.taken_down};
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

int wb_log_touch(struct wb_store *store, struct wb_pageid id, int64_t time_ms)
{
    struct wb_log *log = wb_log_of(store);
    struct wb_log_op op = {.kind = WB_LOG_OP_TOUCH, .id = id, .time_ms = time_ms};
    struct wb_log_pending now;
    bool barred;
    int err = check_usable(log->writer);

    if (err == 0)
        err = effective(log, id, NULL, &now, &barred);
    if (err < 0)
        return err;
    if (!now.exists)
        return wb_fail(WB_E_NOTFOUND, "not in the repository");
    if (wb_store_time_replaces(time_ms, now.time_ms, wb_clock_wall_ms()))
        now.time_ms = time_ms;
    now.touched = true;
    return add_op(log->writer, &op, &now);
}

/* Takes down a page that only the snapshot has. */
static int remove_old(struct wb_log *log, struct wb_pageid id)
{
    struct wb_log_op op = {.kind = WB_LOG_OP_REMOVE_OLD, .id = id};
    struct wb_log_pending gone = {.put_op = -1};
    bool there = false;
    int err = 0;

    wb_log_pending(log, id, &gone);
    if (!gone.taken_down)
        err = wb_log_in_snapshot(log, id, &there);
    if (err < 0)
        return err;
    if (!there)
        return wb_fail(WB_E_NOTFOUND, "not in the repository");
    gone.taken_down = true;
    return add_op(log->writer, &op, &gone);
}

int wb_log_remove(struct wb_store *store, struct wb_pageid id, struct wb_slice site, bool everywhere)
{
    struct wb_log *log = wb_log_of(store);
    struct wb_log_op op = {.kind = everywhere ? WB_LOG_OP_REMOVE_EVERYWHERE : WB_LOG_OP_REMOVE, .id = id};
    struct wb_log_pending now, gone = {.put_op = -1};
    bool barred;
    int err = check_usable(log->writer);

    if (err == 0)
        err = effective(log, id, NULL, &now, &barred);
    if (err < 0)
        return err;
    if (!now.exists)
        return everywhere ? remove_old(log, id) : wb_fail(WB_E_NOTFOUND, "not in the repository");
    err = intern_site(log->writer, site, &op.site);
    gone.taken_down = everywhere || now.taken_down;
    return err < 0 ? err : add_op(log->writer, &op, &gone);
}

int wb_log_put_revisit(struct wb_store *store, struct wb_pageid id, struct wb_slice site, const struct wb_store_revisit *revisit)
{
    struct wb_log *log = wb_log_of(store);
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
    if (err == 0) /* room first: the map must not name an op that is not there */
        err = reserve((void **)&writer->ops, writer->op_count, &writer->op_cap, sizeof *writer->ops);
    if (err == 0 && (!wb_idmap_get(&writer->revisit_map, id, &known) || writer->ops[known].revisit.time_ms < revisit->time_ms))
        err = wb_idmap_set(&writer->revisit_map, id, (uint32_t)writer->op_count);
    return err < 0 ? err : add_op(writer, &op, NULL);
}

int wb_log_get_pending(struct wb_log *log, const struct wb_log_pending *pending, struct wb_page *page_out, struct wb_buf *mem_out)
{
    struct wb_log_writer *writer = log->writer;
    int err;

    WB_CHECK(pending->put_op >= 0 && (size_t)pending->put_op < writer->op_count);
    wb_log_flush_wait(log);
    const struct wb_log_op *op = &writer->ops[pending->put_op];
    wb_buf_clear(mem_out);
    if (op->appended) {
        size_t i = 0;
        while (i < writer->tail_count && writer->tails[i].segment.number != op->entry.place.segment)
            i++;
        WB_CHECK(i < writer->tail_count);
        err = wb_segment_read_record(&writer->tails[i].segment, &log->source, &op->entry.place, op->id, mem_out);
    } else {
        err = wb_buf_append_slice(mem_out, wb_buf_slice(&op->record));
        if (err == 0)
            err = wb_page_record_digest(&(struct wb_record_digest){mem_out->ptr, mem_out->len, op->entry.body_bytes}, 1);
    }
    if (err == 0)
        err = wb_log_page(wb_buf_slice(mem_out), op->id, NULL, page_out);
    if (err == 0) {
        page_out->time_ms = pending->time_ms;
        page_out->lifetime_count = pending->touched ? op->entry.lifetime : op->entry.lifetime_count;
    }
    return err;
}
