/*
 * log_recover.c - what a crash left behind, and files that no reader needs any
 * more; and which segment a writer appends to. Nothing here is needed for reading:
 * readers never look past what the catalog says is committed.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/path.h"
#include "store/log.h"

#include <stdio.h>

struct row_read {
    struct wb_log *log;
    uint32_t number;
    struct wb_catalog_segment row;
};

static int read_row(void *context)
{
    struct row_read *r = context;

    return wb_catalog_segment_get(&r->log->reader, r->number, &r->row);
}

/*
 * Opens a segment for appending, with its lock: WB_E_BUSY where another process
 * has it. The row is read again under the lock, because it may have grown.
 */
static int claim(struct wb_log *log, const struct wb_catalog_segment *seen, struct wb_segment *segment_out, struct wb_catalog_segment *row_out)
{
    struct row_read r = {.log = log, .number = seen->number};
    int err = wb_segment_open(log->dir, log->superblock.id, seen, true, segment_out);

    if (err < 0)
        return err;
    err = wb_file_lock(&segment_out->file, false);
    if (err == 0)
        err = wb_log_read(log, read_row, &r);
    if (err == 0 && (r.row.sealed || r.row.revision != seen->revision))
        err = wb_fail(WB_E_BUSY, "%s was compacted meanwhile", segment_out->file.path);
    if (err < 0)
        wb_segment_close(segment_out);
    *row_out = r.row;
    return err;
}

uint64_t wb_log_newest_commit(struct wb_log *log)
{
    struct wb_log_overview r = {0};
    int err = wb_log_overview(log, &r);

    wb_log_rows_release(&r.rows);
    return err == 0 ? r.summary.commit : log->writer->commit;
}

void wb_log_seal_any(struct wb_log *log, uint64_t commit)
{
    struct wb_log_overview r = {0};
    bool done = false;

    /* Where nothing can be sealed, nothing is lost but a way to find out that the catalog was damaged. */
    if (wb_log_overview(log, &r) < 0)
        return;
    for (size_t i = r.rows.count; i > 0 && i + WB_LOG_SEALED_MAX > r.rows.count && !done; i--) {
        struct row_read again = {.log = log, .number = r.rows.rows[i - 1].number};
        struct wb_segment segment;
        if (wb_segment_open(log->dir, log->superblock.id, &r.rows.rows[i - 1], true, &segment) < 0)
            continue;
        if (wb_file_lock(&segment.file, false) == 0 && wb_log_read(log, read_row, &again) == 0 &&
            again.row.revision == segment.revision && wb_file_truncate(&segment.file, again.row.bytes) == 0)
            done = wb_segment_write_seal(&segment, again.row.bytes, commit) == 0;
        wb_segment_close(&segment);
    }
    wb_log_rows_release(&r.rows);
}

/* Cuts off bytes after the committed ones, unless they are the seal of a clean end. */
static int cut_tail(struct wb_log *log, const struct wb_catalog_segment *seen)
{
    struct wb_segment segment;
    struct wb_catalog_segment row;
    uint64_t size, sealed_at;
    int err = claim(log, seen, &segment, &row);

    if (err < 0) /* somebody writes to it, or it is damaged: then verify and get say so */
        return err == WB_E_NOMEM || err == WB_E_IO ? err : 0;
    err = wb_file_size(&segment.file, &size);
    if (err == 0 && size > row.bytes &&
        !(size == row.bytes + WB_SEGMENT_SEAL_BYTES && wb_segment_read_seal(&segment, row.bytes, &sealed_at)))
        err = wb_file_truncate(&segment.file, row.bytes);
    wb_segment_close(&segment);
    return err;
}

struct file_known {
    struct wb_log *log;
    uint32_t number, revision;
    bool known;
};

/* Whether the catalog knows a file: as a segment, an earlier revision of one, or one retired whole. */
static int look_up_file(void *context)
{
    struct file_known *f = context;
    struct wb_catalog_txn *txn = &f->log->reader;
    struct wb_catalog_segment row;
    int err = wb_catalog_segment_get(txn, f->number, &row);

    if (err == 0)
        f->known = f->revision <= row.revision;
    else if (err == WB_E_NOTFOUND)
        err = wb_catalog_retired_has(txn, f->number, f->revision, &f->known);
    return err;
}

/* A segment file that the catalog does not know was made by a process that died before its first commit. */
static int remove_orphan(void *context, const struct wb_dir_entry *entry)
{
    struct file_known f = {.log = context};
    struct wb_file file = WB_FILE_INIT;
    char name[WB_SEGMENT_NAME_MAX];
    int err;

    if (!wb_segment_name_parse(entry->name, &f.number, &f.revision))
        return 0;
    err = wb_log_read(f.log, look_up_file, &f);
    if (err < 0 || f.known)
        return err;
    wb_segment_name(f.number, f.revision, name);
    char *path = wb_path_join(f.log->dir, name);
    if (!path)
        return WB_E_NOMEM;
    err = wb_file_open(path, WB_FILE_READ, &file);
    if (err == 0 && wb_file_lock(&file, false) == 0) {
        /* Its maker may have committed it since we looked; with the lock we know. */
        err = wb_log_read(f.log, look_up_file, &f);
        if (err == 0 && !f.known)
            err = wb_path_unlink(path);
    }
    wb_file_close(&file);
    wb_free(path);
    return err == WB_E_NOTFOUND ? 0 : err;
}

int wb_log_recover(struct wb_log *log)
{
    struct wb_log_overview r = {0};
    char *pages = wb_path_join(log->dir, WB_SEGMENT_DIR);
    int err = pages ? wb_log_purge(log) : WB_E_NOMEM;

    if (err == 0)
        err = wb_log_overview(log, &r);
    for (size_t i = 0; i < r.rows.count && err == 0; i++)
        if (!r.rows.rows[i].sealed)
            err = cut_tail(log, &r.rows.rows[i]);
    if (err == 0)
        err = wb_dir_each(pages, remove_orphan, log);
    wb_log_rows_release(&r.rows);
    wb_free(pages);
    return err;
}

/* ---- retired files ---------------------------------------------------------------------------- */

struct purge_work {
    struct wb_log *log;
    struct wb_catalog_txn txn;
    uint64_t oldest;
    struct {
        uint32_t number, revision;
    } files[256];
    size_t count;
};

static int add_purgeable(void *context, uint32_t number, uint32_t revision, uint64_t txn_id)
{
    struct purge_work *p = context;

    if (txn_id <= p->oldest && p->count < sizeof p->files / sizeof p->files[0]) {
        p->files[p->count].number = number;
        p->files[p->count++].revision = revision;
    }
    return 0;
}

static int delete_retired(struct purge_work *p)
{
    char name[WB_SEGMENT_NAME_MAX];
    int err = 0;

    for (size_t i = 0; i < p->count && err == 0; i++) {
        wb_segment_name(p->files[i].number, p->files[i].revision, name);
        char *path = wb_path_join(p->log->dir, name);
        if (!path)
            return WB_E_NOMEM;
        err = wb_path_unlink(path);
        if (err == 0)
            err = wb_catalog_retired_delete(&p->txn, p->files[i].number, p->files[i].revision);
        wb_free(path);
    }
    return err;
}

struct retired_count {
    struct wb_log *log;
    uint64_t rows;
};

static int count_retired(void *context)
{
    struct retired_count *c = context;

    c->rows = wb_catalog_count(&c->log->reader, WB_CATALOG_RETIRED);
    return 0;
}

static int purge_files(struct purge_work *p)
{
    /* A write transaction begins with making the newest state durable, so a file that it does not need can go. */
    int err = wb_catalog_txn_write(p->log->catalog, &p->txn);

    /* Inside the transaction: a reader that begins from here on sees everything that was ever retired. */
    if (err == 0)
        err = wb_catalog_oldest_reader(p->log->catalog, &p->oldest);
    if (err == 0)
        err = wb_catalog_retired_each(&p->txn, add_purgeable, p);
    if (err == 0 && p->count)
        err = delete_retired(p);
    if (err == 0 && p->count)
        err = wb_catalog_txn_commit(&p->txn);
    wb_catalog_txn_abort(&p->txn);
    return err;
}

int wb_log_purge(struct wb_log *log)
{
    struct purge_work p = {.log = log};
    struct retired_count count = {.log = log};
    int err = wb_log_read(log, count_retired, &count);

    return err < 0 || count.rows == 0 ? err : purge_files(&p);
}

/* ---- choosing a segment to append to --------------------------------------------------------------- */

static int add_tail(struct wb_log_writer *writer, const struct wb_segment *segment, uint64_t bytes)
{
    struct wb_log_tail *grown = wb_realloc(writer->tails, (writer->tail_count + 1) * sizeof *grown);

    if (!grown)
        return WB_E_NOMEM;
    writer->tails = grown;
    writer->tails[writer->tail_count++] = (struct wb_log_tail){.segment = *segment, .bytes = bytes, .bytes_committed = bytes};
    return 0;
}

static bool is_tail(const struct wb_log_writer *writer, uint32_t number)
{
    for (size_t i = 0; i < writer->tail_count; i++)
        if (writer->tails[i].segment.number == number)
            return true;
    return false;
}

/* An unsealed segment that nobody holds, cut back to its committed bytes. */
static int reuse_segment(struct wb_log *log, const struct wb_log_rows *rows, bool *done_out)
{
    struct wb_segment segment;
    struct wb_catalog_segment row;

    *done_out = false;
    for (size_t i = rows->count; i > 0 && !*done_out; i--) {
        const struct wb_catalog_segment *seen = &rows->rows[i - 1];
        if (seen->sealed || is_tail(log->writer, seen->number))
            continue;
        if (claim(log, seen, &segment, &row) < 0)
            continue;
        int err = wb_file_truncate(&segment.file, row.bytes);
        if (err == 0)
            err = add_tail(log->writer, &segment, row.bytes);
        if (err < 0) {
            wb_segment_close(&segment);
            return err;
        }
        *done_out = true;
    }
    return 0;
}

struct segment_registration {
    struct wb_log *log;
    struct wb_catalog_txn txn;
    uint32_t number;
};

static int register_segment(struct segment_registration *r)
{
    struct wb_catalog_segment row = {.number = r->number, .bytes = WB_SEGMENT_HEADER_BYTES, .logical_end = WB_SEGMENT_HEADER_BYTES};
    struct wb_catalog_summary state;
    int err = wb_catalog_txn_write(r->log->catalog, &r->txn);

    if (err == 0)
        err = wb_catalog_summary_get(&r->txn, &state);
    if (err == 0)
        err = wb_catalog_segment_put(&r->txn, &row);
    if (err == 0) {
        if (state.next_segment <= r->number)
            state.next_segment = r->number + 1;
        state.commit++;
        err = wb_catalog_summary_put(&r->txn, &state);
    }
    if (err == 0)
        err = wb_catalog_txn_commit(&r->txn);
    if (err == 0)
        r->log->writer->commit = state.commit;
    wb_catalog_txn_abort(&r->txn);
    return err;
}

/* The next number whose file is not there yet; the file is the claim, made before the row. */
static int create_segment(struct wb_log *log, uint32_t number, struct wb_segment *segment_out)
{
    int err;

    do {
        err = wb_segment_create(log->dir, log->superblock.id, number, 0, segment_out);
        number++;
    } while (err == WB_E_INVALID);
    return err < 0 ? err : wb_file_sync(&segment_out->file);
}

static int new_segment(struct wb_log *log, uint32_t first)
{
    struct segment_registration r = {.log = log};
    struct wb_segment segment = WB_SEGMENT_INIT;
    char *pages = wb_path_join(log->dir, WB_SEGMENT_DIR);
    struct wb_error_copy why;
    int err = pages ? create_segment(log, first, &segment) : WB_E_NOMEM;

    if (err == 0)
        err = wb_path_sync_dir(pages);
    if (err == 0) {
        r.number = segment.number;
        err = register_segment(&r);
    }
    if (err == 0)
        err = add_tail(log->writer, &segment, WB_SEGMENT_HEADER_BYTES);
    if (err < 0) {
        wb_error_save(err, &why);
        if (wb_catalog_uncertain(log->catalog)) /* the segment may have a row or not; what was committed before is not touched by that */
            (void)wb_log_open_catalog(log);
        wb_segment_close(&segment); /* without a row the file is an orphan, which the next writer removes */
        wb_error_restore(&why);
    }
    wb_free(pages);
    return err;
}

int wb_log_tail_open(struct wb_log *log)
{
    struct wb_log_overview r = {0};
    bool done = false;
    int err = wb_log_overview(log, &r);

    if (err == 0)
        err = reuse_segment(log, &r.rows, &done);
    if (err == 0 && !done)
        err = new_segment(log, r.summary.next_segment); /* a number is never given twice */
    wb_log_rows_release(&r.rows);
    return err;
}
