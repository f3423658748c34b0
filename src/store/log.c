/*
 * log.c - the log organisation: creating and opening it, reading single pages,
 * counting. A page is found in the catalog and read from its segment; both under
 * one read transaction, so that compaction cannot take the file away in between.
 */
#include "store/log.h"
#include "base/check.h"
#include "base/mem.h"
#include "os/clock.h"

#include <stdio.h>

static void log_close(struct wb_store *store);
static int log_stat(struct wb_store *store, struct wb_store_stat *stat_out);
static int log_get_revisit(struct wb_store *store, struct wb_pageid id, struct wb_store_revisit *revisit_out);

static const struct wb_store_ops log_ops = {
    .close = log_close,
    .put = wb_log_put,
    .touch = wb_log_touch,
    .remove = wb_log_remove,
    .put_revisit = wb_log_put_revisit,
    .get_revisit = log_get_revisit,
    .bar = wb_log_bar,
    .allow = wb_log_allow,
    .barred = wb_log_barred,
    .bar_each = wb_log_bar_each,
    .list_site = wb_log_list_site,
    .commit = wb_log_commit,
    .snapshot = wb_log_snapshot,
    .get = wb_log_get,
    .time = wb_log_time,
    .scan_open = wb_log_scan_open,
    .scan_next = wb_log_scan_next,
    .scan_close = wb_log_scan_close,
    .stat = log_stat,
    .compact = wb_log_compact,
};

/* ---- creating and opening --------------------------------------------------------------- */

static int write_first_state(struct wb_catalog *catalog)
{
    struct wb_catalog_summary state = {.epoch = 1, .next_segment = 1};
    struct wb_catalog_txn txn;
    int err = wb_catalog_txn_write(catalog, &txn);

    if (err < 0)
        return err;
    err = wb_catalog_summary_put(&txn, &state);
    if (err == 0)
        return wb_catalog_txn_commit(&txn);
    wb_catalog_txn_abort(&txn);
    return err;
}

/* Segments without a superblock are not a leftover: somebody lost that file, and the pages are still there. */
static int refuse_segment(void *context, const struct wb_dir_entry *entry)
{
    return wb_fail(WB_E_INVALID, "%s holds segments (%s) but no %s: nothing was changed", (const char *)context, entry->name,
                   WB_SUPERBLOCK_NAME);
}

static int log_create(const char *dir, const struct wb_superblock *superblock)
{
    struct wb_catalog *catalog = NULL;
    char *pages = wb_path_join(dir, WB_SEGMENT_DIR);
    int err;

    (void)superblock;
    if (!pages)
        return WB_E_NOMEM;
    err = wb_path_mkdirs(pages);
    if (err == 0)
        err = wb_dir_each(pages, refuse_segment, (void *)(uintptr_t)dir);
    /* One that a creation that died left is replaced: nobody has used it, because the superblock comes last. */
    if (err == 0)
        err = wb_catalog_open(dir, WB_TREE_CREATE, &catalog);
    if (err == 0)
        err = write_first_state(catalog);
    wb_catalog_close(catalog);
    if (err == 0)
        err = wb_path_sync_dir(dir);
    wb_free(pages);
    return err;
}

int wb_log_open_catalog(struct wb_log *log)
{
    struct wb_catalog *catalog;
    int err = wb_catalog_open(log->dir, log->store.mode == WB_STORE_WRITE ? WB_TREE_WRITE : WB_TREE_READ, &catalog);

    if (err < 0)
        return err;
    wb_catalog_close(log->catalog);
    log->catalog = catalog;
    wb_catalog_txn_init(catalog, &log->reader);
    return 0;
}

/* The state again, as it is by now. */
static int refresh_state(struct wb_log *log, struct wb_catalog_summary *state_out)
{
    wb_catalog_txn_park(&log->reader);
    int err = wb_catalog_txn_wake(&log->reader);
    return err < 0 ? err : wb_catalog_summary_get(&log->reader, state_out);
}

/*
 * A copy of the catalog, put back from a backup, is sound by itself and knows nothing
 * of later commits; so is the state before, if the root record was lost in a crash.
 * The newest segments' seals know.
 */
static int check_not_rolled_back(void *context)
{
    struct wb_log *log = context;
    struct wb_log_rows rows = {0};
    struct wb_catalog_summary state;
    struct wb_segment segment = WB_SEGMENT_INIT;
    uint64_t sealed_at;
    int err = wb_catalog_txn_wake(&log->reader);

    if (err < 0)
        return err;
    err = wb_catalog_summary_get(&log->reader, &state);
    log->commit_at_open = state.commit;
    if (err == 0)
        err = wb_log_rows_read(&log->reader, &rows);
    for (size_t i = rows.count; err == 0 && i > 0 && i + WB_LOG_SEALED_MAX > rows.count; i--) {
        const struct wb_catalog_segment *row = &rows.rows[i - 1];
        if (wb_segment_open(log->dir, log->superblock.id, row, false, &segment) < 0)
            continue; /* a damaged segment is the business of whoever reads from it */
        wb_segment_last_seal(&segment, &sealed_at);
        if (sealed_at > state.commit) /* a writer may have committed and left since we looked */
            err = refresh_state(log, &state);
        if (err == 0 && sealed_at > state.commit)
            err = wb_fail(WB_E_CORRUPT, "%s is damaged: it is at commit %llu, but %s was sealed at commit %llu",
                          wb_catalog_path(log->catalog), (unsigned long long)state.commit, segment.file.path,
                          (unsigned long long)sealed_at);
        wb_segment_close(&segment);
    }
    wb_catalog_txn_park(&log->reader);
    wb_log_rows_release(&rows);
    return err;
}

static int log_open(const char *dir, const struct wb_superblock *superblock, enum wb_store_mode mode, struct wb_store **store_out)
{
    struct wb_log *log = wb_alloc_zero(1, sizeof *log);
    int err;

    *store_out = NULL;
    if (!log)
        return WB_E_NOMEM;
    log->store = (struct wb_store){WB_STORE_MAGIC, mode, &log_ops};
    log->superblock = *superblock;
    for (size_t i = 0; i < WB_LOG_FILES_MAX; i++)
        log->files[i] = WB_SEGMENT_INIT;
    log->dir = wb_strdup(dir);
    err = log->dir ? wb_segment_reader_init(&log->source) : WB_E_NOMEM;
    if (err == 0)
        err = wb_log_open_catalog(log);
    if (err == 0)
        err = wb_catalog_call(log->catalog, check_not_rolled_back, log);
    if (err == 0 && mode == WB_STORE_WRITE)
        err = wb_log_recover(log);
    if (err == 0 && mode == WB_STORE_WRITE)
        err = wb_log_writer_new(log);
    if (err < 0) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        log_close(&log->store);
        return wb_error_restore(&why);
    }
    *store_out = &log->store;
    return 0;
}

static void log_close(struct wb_store *store)
{
    struct wb_log *log = wb_log_of(store);

    wb_log_writer_free(log);
    for (size_t i = 0; i < WB_LOG_FILES_MAX; i++)
        wb_segment_close(&log->files[i]);
    wb_catalog_close(log->catalog);
    wb_segment_reader_release(&log->source);
    wb_free(log->dir);
    wb_free(log);
}

const struct wb_organisation wb_organisation_log = {"log", log_create, log_open, wb_log_verify};

/* ---- reading a page ------------------------------------------------------------------------- */

struct page_lookup {
    struct wb_log *log;
    struct wb_pageid id;
    const struct wb_slice *site; /* NULL: bars are not asked for */
    bool barred;
    struct wb_catalog_entry entry;
    struct wb_catalog_segment row;
    struct wb_segment *segment;
};

/* An open file of the segment, from the cache or into it. */
static int cached_segment(struct wb_log *log, const struct wb_catalog_segment *row, struct wb_segment **segment_out)
{
    *segment_out = NULL;
    for (size_t i = 0; i < WB_LOG_FILES_MAX; i++) {
        struct wb_segment *file = &log->files[i];
        if (file->file.fd >= 0 && file->number == row->number && file->revision == row->revision) {
            *segment_out = file;
            return 0;
        }
    }
    struct wb_segment *file = &log->files[log->file_next];
    log->file_next = (log->file_next + 1) % WB_LOG_FILES_MAX;
    wb_segment_close(file);
    int err = wb_segment_open(log->dir, log->superblock.id, row, false, file);
    if (err == 0)
        *segment_out = file;
    return err;
}

static int look_up(void *context)
{
    struct page_lookup *l = context;
    struct wb_log *log = l->log;
    int err = wb_catalog_txn_wake(&log->reader);

    if (err < 0)
        return err;
    err = wb_catalog_entry_get(&log->reader, WB_CATALOG_PAGES, l->id, &l->entry);
    if (err == 0)
        err = wb_catalog_segment_get(&log->reader, l->entry.place.segment, &l->row);
    else
        goto done;
    if (err == WB_E_NOTFOUND)
        err = wb_catalog_corrupt(log->catalog, WB_CATALOG_SEGMENTS, "a segment without a row");
    if (err == 0) /* opened while the transaction keeps compaction from deleting it */
        err = cached_segment(log, &l->row, &l->segment);
done:
    wb_catalog_txn_park(&log->reader);
    return err;
}

static int look_up_entry(void *context)
{
    struct page_lookup *l = context;
    int err = wb_catalog_txn_wake(&l->log->reader);

    if (err < 0)
        return err;
    if (l->site)
        err = wb_log_bar_look(l->log, l->id, *l->site, &l->barred);
    if (err == 0 && !l->barred)
        err = wb_catalog_entry_get(&l->log->reader, WB_CATALOG_PAGES, l->id, &l->entry);
    wb_catalog_txn_park(&l->log->reader);
    return err;
}

int wb_log_entry_or_bar(struct wb_log *log, struct wb_pageid id, struct wb_slice site, struct wb_catalog_entry *entry_out, bool *barred_out)
{
    struct page_lookup l = {.log = log, .id = id, .site = &site};
    int err = wb_catalog_call(log->catalog, look_up_entry, &l);

    *entry_out = l.entry;
    *barred_out = l.barred;
    return err;
}

int wb_log_entry(struct wb_log *log, struct wb_pageid id, struct wb_catalog_entry *entry_out)
{
    struct page_lookup l = {.log = log, .id = id};
    int err = wb_catalog_call(log->catalog, look_up_entry, &l);

    *entry_out = l.entry;
    return err;
}

int wb_log_page_identify(struct wb_page *page, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    page->id = wb_pageid_of_key(page->key);
    if (!wb_pageid_equal(page->id, id))
        return wb_fail(WB_E_CORRUPT, "the page %.*s lies where another should", WB_SLICE_ARG(page->key));
    if (entry) {
        page->time_ms = entry->time_ms;
        page->epoch = entry->epoch;
        page->lifetime_count = entry->lifetime_count;
    }
    return 0;
}

struct snapshot_lookup {
    struct wb_log *log;
    struct wb_pageid id;
    bool in;
};

static int look_up_snapshot(void *context)
{
    struct snapshot_lookup *l = context;
    struct wb_catalog_entry entry;
    struct wb_catalog_summary state;
    int err = wb_catalog_txn_wake(&l->log->reader);

    if (err < 0)
        return err;
    err = wb_catalog_summary_get(&l->log->reader, &state);
    if (err == 0)
        err = wb_catalog_entry_get(&l->log->reader, WB_CATALOG_OLD, l->id, &entry);
    l->in = err == 0;
    if (err == WB_E_NOTFOUND) { /* the latest version there, which an op removes and the commit will make old */
        err = wb_catalog_entry_get(&l->log->reader, WB_CATALOG_PAGES, l->id, &entry);
        l->in = err == 0 && state.snapshot > 0 && entry.epoch <= state.snapshot_epoch;
    }
    wb_catalog_txn_park(&l->log->reader);
    return err == WB_E_NOTFOUND ? 0 : err;
}

int wb_log_in_snapshot(struct wb_log *log, struct wb_pageid id, bool *in_out)
{
    struct snapshot_lookup l = {.log = log, .id = id};
    int err = wb_catalog_call(log->catalog, look_up_snapshot, &l);

    *in_out = l.in;
    return err;
}

int wb_log_page(struct wb_slice record, struct wb_pageid id, const struct wb_catalog_entry *entry, struct wb_page *page_out)
{
    int err = wb_page_decode(record, page_out);

    return err < 0 ? err : wb_log_page_identify(page_out, id, entry);
}

int wb_log_time(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out)
{
    struct wb_log *log = wb_log_of(store);
    struct wb_log_pending pending;
    struct wb_catalog_entry entry;

    if (log->writer && wb_log_pending(log, id, &pending)) {
        *time_ms_out = pending.time_ms;
        return pending.exists ? 0 : wb_fail(WB_E_NOTFOUND, "not in the repository");
    }
    int err = wb_log_entry(log, id, &entry);
    if (err == 0)
        *time_ms_out = entry.time_ms;
    return err;
}

int wb_log_get(struct wb_store *store, struct wb_pageid id, struct wb_page *page_out, struct wb_buf *mem_out)
{
    struct wb_log *log = wb_log_of(store);
    struct page_lookup l = {.log = log, .id = id};
    struct wb_log_pending pending = {.exists = true, .put_op = -1};
    int err;

    if (log->writer && wb_log_pending(log, id, &pending)) {
        if (!pending.exists)
            return wb_fail(WB_E_NOTFOUND, "not in the repository");
        if (pending.put_op >= 0)
            return wb_log_get_pending(log, &pending, page_out, mem_out);
    }
    err = wb_catalog_call(log->catalog, look_up, &l);
    if (err == 0)
        err = wb_segment_read_record(l.segment, &log->source, &l.entry.place, id, mem_out);
    if (err == 0)
        err = wb_log_page(wb_buf_slice(mem_out), id, &l.entry, page_out);
    if (err == 0 && pending.touched) { /* not yet committed */
        page_out->lifetime_count = l.entry.lifetime;
        if (wb_store_time_replaces(pending.time_ms, page_out->time_ms, wb_clock_wall_ms()))
            page_out->time_ms = pending.time_ms;
    }
    return err;
}

struct revisit_lookup {
    struct wb_log *log;
    struct wb_pageid id;
    struct wb_store_revisit revisit;
};

static int look_up_revisit(void *context)
{
    struct revisit_lookup *l = context;
    int err = wb_catalog_txn_wake(&l->log->reader);

    if (err < 0)
        return err;
    err = wb_catalog_revisit_get(&l->log->reader, l->id, &l->revisit);
    wb_catalog_txn_park(&l->log->reader);
    return err;
}

static int log_get_revisit(struct wb_store *store, struct wb_pageid id, struct wb_store_revisit *revisit_out)
{
    struct wb_log *log = wb_log_of(store);
    struct revisit_lookup l = {.log = log, .id = id};
    uint32_t taken;
    int err = wb_catalog_call(log->catalog, look_up_revisit, &l);

    *revisit_out = l.revisit;
    if ((err < 0 && err != WB_E_NOTFOUND) || !log->writer || !wb_idmap_get(&log->writer->revisit_map, id, &taken))
        return err;
    const struct wb_log_op *op = &log->writer->ops[taken];
    if (err == WB_E_NOTFOUND || op->revisit.time_ms > l.revisit.time_ms)
        *revisit_out = op->revisit;
    return 0;
}

/* ---- statistics ---------------------------------------------------------------------------------- */

static int add_row(void *context, const struct wb_catalog_segment *row)
{
    struct wb_log_rows *rows = context;

    if (rows->count == rows->cap) {
        size_t cap = rows->cap ? rows->cap * 2 : 16;
        struct wb_catalog_segment *grown = wb_realloc(rows->rows, cap * sizeof *grown);
        if (!grown)
            return WB_E_NOMEM;
        rows->rows = grown;
        rows->cap = cap;
    }
    rows->rows[rows->count++] = *row;
    return 0;
}

int wb_log_rows_read(struct wb_catalog_txn *txn, struct wb_log_rows *rows_out)
{
    *rows_out = (struct wb_log_rows){0};
    int err = wb_catalog_segment_each(txn, add_row, rows_out);
    if (err < 0)
        wb_log_rows_release(rows_out);
    return err;
}

void wb_log_rows_release(struct wb_log_rows *rows)
{
    wb_free(rows->rows);
    *rows = (struct wb_log_rows){0};
}

struct overview_read {
    struct wb_log *log;
    struct wb_log_overview now;
};

static int read_overview(void *context)
{
    struct overview_read *r = context;
    int err = wb_catalog_txn_wake(&r->log->reader);

    if (err < 0)
        return err;
    err = wb_catalog_summary_get(&r->log->reader, &r->now.state);
    if (err == 0)
        err = wb_log_rows_read(&r->log->reader, &r->now.rows);
    wb_catalog_txn_park(&r->log->reader);
    return err;
}

int wb_log_overview(struct wb_log *log, struct wb_log_overview *now_out)
{
    struct overview_read r = {.log = log};
    int err = wb_catalog_call(log->catalog, read_overview, &r);

    *now_out = r.now;
    return err;
}

struct disk_usage {
    const char *dir;
    uint64_t bytes;
};

static int disk_bytes(const char *dir, uint64_t *bytes_inout);

/* Everything that lies in the directory, of whichever room: folders too. */
static int add_disk_bytes(void *context, const struct wb_dir_entry *entry)
{
    struct disk_usage *usage = context;
    char *path = wb_path_join(usage->dir, entry->name);
    int err = path ? 0 : WB_E_NOMEM;

    if (err == 0 && entry->kind == WB_PATH_FILE)
        usage->bytes += wb_path_disk_bytes(path);
    else if (err == 0 && entry->kind == WB_PATH_DIR)
        err = disk_bytes(path, &usage->bytes);
    wb_free(path);
    return err == WB_E_NOTFOUND ? 0 : err;
}

static int disk_bytes(const char *dir, uint64_t *bytes_inout)
{
    struct disk_usage usage = {dir, *bytes_inout};
    int err = wb_dir_each(dir, add_disk_bytes, &usage);

    *bytes_inout = usage.bytes;
    return err;
}

struct retired_bytes {
    struct wb_log *log;
    uint64_t bytes;
};

static int add_retired(void *context, uint32_t number, uint32_t revision, uint64_t txn_id)
{
    struct retired_bytes *r = context;
    char name[WB_SEGMENT_NAME_MAX];

    (void)txn_id;
    wb_segment_name(number, revision, name);
    char *path = wb_path_join(r->log->dir, name);
    if (!path)
        return WB_E_NOMEM;
    r->bytes += wb_path_disk_bytes(path);
    wb_free(path);
    return 0;
}

/* Files that compaction replaced and that wait for their last reader: the next writer deletes them. */
static int count_retired(void *context)
{
    struct retired_bytes *r = context;
    int err = wb_catalog_txn_wake(&r->log->reader);

    if (err < 0)
        return err;
    r->bytes = 0;
    err = wb_catalog_retired_each(&r->log->reader, add_retired, r);
    wb_catalog_txn_park(&r->log->reader);
    return err;
}

static int log_stat(struct wb_store *store, struct wb_store_stat *stat_out)
{
    struct wb_log *log = wb_log_of(store);
    struct retired_bytes retired = {.log = log};
    struct wb_log_overview s = {0};
    int err = wb_log_overview(log, &s);

    if (err == 0)
        err = wb_catalog_call(log->catalog, count_retired, &retired);
    if (err < 0) {
        wb_log_rows_release(&s.rows);
        return err;
    }
    *stat_out = (struct wb_store_stat){
        .pages = s.state.pages,
        .sites = s.state.sites,
        .pages_old = s.state.old,
        .revisits = s.state.revisits,
        .bars = s.state.bars,
        .bytes_pages = s.state.bytes_pages,
        .segments = s.rows.count,
        .epoch = s.state.epoch,
        .snapshot = s.state.snapshot,
        .bytes_dead = retired.bytes,
        .organisation = log->superblock.organisation,
        .update = log->superblock.update,
    };
    for (size_t i = 0; i < s.rows.count; i++) {
        const struct wb_catalog_segment *row = &s.rows.rows[i];
        stat_out->bytes_dead += row->live || !row->pages ? row->bytes_dead : row->bytes;
    }
    wb_log_rows_release(&s.rows);
    return disk_bytes(log->dir, &stat_out->bytes_stored);
}
