/*
 * prune.c - how much of the journal no generation has yet, and removing logs that one has whole. A log that has not ended is never
 * removed: its writer is at work, or the next crawl has to look it through.
 */
#include "webdb/editreader.h"
#include "base/error.h"
#include "base/mem.h"
#include "webdb/editrecord.h"
#include "webdb/generation.h"

enum { NEWEST_BYTES = 4096 }; /* a newest log that is larger is worth a successor, so that it can go */

struct journal {
    char *path;
    uint32_t *logs;
    size_t count;
    struct wb_manifest manifest; /* of the newest generation; empty where there is none */
};

static void close_journal(struct journal *journal)
{
    wb_free(journal->path);
    wb_free(journal->logs);
    wb_manifest_release(&journal->manifest);
}

/* A generation may be replaced while we look: then its successor is read. */
static int read_manifest(const char *dir, struct wb_manifest *manifest)
{
    for (;;) {
        uint32_t number, newer;
        int err = wb_generation_newest(dir, &number);
        if (err < 0 || !number)
            return err;
        char *generation = wb_generation_path(dir, number);
        char *path = generation ? wb_path_join(generation, WB_MANIFEST_FILE) : NULL;
        err = path ? wb_manifest_read(path, manifest) : WB_E_NOMEM;
        wb_free(path);
        wb_free(generation);
        if (err != WB_E_NOTFOUND || wb_generation_newest(dir, &newer) < 0 || newer == number)
            return err;
    }
}

static int open_journal(const char *dir, struct journal *journal)
{
    *journal = (struct journal){.path = wb_path_join(dir, WB_EDIT_DIR)};
    int err = journal->path ? wb_edit_file_list(journal->path, &journal->logs, &journal->count) : WB_E_NOMEM;

    return err < 0 ? err : read_manifest(dir, &journal->manifest);
}

/* Where the newest generation is in a log. */
static uint64_t merged_end(const struct journal *journal, uint32_t log)
{
    for (size_t i = 0; i < journal->manifest.merged_count; i++)
        if (journal->manifest.merged[i].log == log && journal->manifest.merged[i].last)
            return journal->manifest.merged[i].end;
    return WB_EDIT_FILE_HEAD_BYTES;
}

static int add_unmerged(const struct journal *journal, uint32_t log, uint64_t *bytes)
{
    struct wb_edit_file file = WB_EDIT_FILE_INIT;
    uint64_t end = 0, merged = merged_end(journal, log);
    int err = wb_edit_file_open(journal->path, log, false, &file);

    if (err == 0)
        err = file.end ? (end = file.end, 0) : wb_file_size(&file.file, &end);
    *bytes += err == 0 && end > merged ? end - merged : 0;
    wb_edit_file_close(&file);
    /* What is damaged is told by those who read it. */
    return err == WB_E_NOTFOUND || err == WB_E_CORRUPT ? 0 : err;
}

int wb_webdb_unmerged(const char *dir, uint64_t *bytes_out)
{
    struct journal journal;

    *bytes_out = 0;
    int err = open_journal(dir, &journal);
    for (size_t i = 0; err == 0 && i < journal.count; i++)
        err = add_unmerged(&journal, journal.logs[i], bytes_out);
    close_journal(&journal);
    return err;
}

/* ---- pruning --------------------------------------------------------------------------------------------- */

struct pruning {
    struct journal journal;
    struct wb_edit_reader *reader;
    int (*keep)(void *context, uint32_t log);
    void *context;
};

/* A log has one writer. Those that are no crawlers (imports, announcements, removals) begin with records that no crawler writes. */
static bool is_of_crawl(struct pruning *p, uint32_t log)
{
    const struct wb_edit_file *file;
    struct wb_slice record;
    struct wb_edit first;

    if (wb_edit_reader_find(p->reader, (struct wb_edit_place){log, WB_EDIT_FILE_HEAD_BYTES}, &file, &record) < 0 ||
        !wb_edit_head(record.ptr, &first))
        return true;
    return first.kind != WB_EDIT_BATCH && first.kind != WB_EDIT_PUSH && first.kind != WB_EDIT_EXPUNGE && first.kind != WB_EDIT_ASK;
}

/* 1: it may go; 0: not. */
static int may_go(struct pruning *p, uint32_t log, uint64_t *size_out)
{
    struct wb_edit_file file = WB_EDIT_FILE_INIT;
    int err = wb_edit_file_open(p->journal.path, log, false, &file);
    bool whole = err == 0 && file.end && merged_end(&p->journal, log) >= file.end;

    *size_out = 0;
    if (whole)
        err = wb_file_size(&file.file, size_out);
    wb_edit_file_close(&file);
    if (err < 0 || !whole)
        return err == WB_E_NOTFOUND || err == WB_E_CORRUPT ? 0 : err;
    if (!p->keep || !is_of_crawl(p, log))
        return 1;
    int kept = p->keep(p->context, log);
    return kept < 0 ? kept : !kept;
}

static int prune_log(struct pruning *p, uint32_t log, uint64_t *bytes)
{
    uint64_t size;
    int go = may_go(p, log, &size);

    if (go <= 0)
        return go;
    char *path = wb_edit_file_path(p->journal.path, log);
    int err = path ? wb_path_unlink(path) : WB_E_NOMEM;
    *bytes += err == 0 ? size : 0;
    wb_free(path);
    return err;
}

/* The newest log holds the number that no other may get: an empty one takes its place, where that pays. */
static int succeed_newest(const char *dir, struct pruning *p)
{
    struct wb_edit_log *log = NULL;
    uint64_t size;
    int go = p->journal.count ? may_go(p, p->journal.logs[p->journal.count - 1], &size) : 0;

    if (go <= 0 || size <= NEWEST_BYTES)
        return go < 0 ? go : 0;
    int err = wb_edit_log_create(dir, 0, &log);
    if (err == 0)
        err = wb_edit_log_finish(log);
    wb_edit_log_close(log);
    return err < 0 ? err : 1;
}

int wb_webdb_prune_journal(const char *dir, int (*keep)(void *context, uint32_t log), void *context, uint64_t *bytes_out)
{
    struct pruning p = {.keep = keep, .context = context};

    *bytes_out = 0;
    int err = open_journal(dir, &p.journal);
    if (err == 0)
        err = wb_edit_reader_open(dir, &p.reader);
    int succeeded = err < 0 ? err : succeed_newest(dir, &p);
    err = succeeded < 0 ? succeeded : 0;
    for (size_t i = 0; err == 0 && i + 1 < p.journal.count + (size_t)succeeded; i++)
        err = prune_log(&p, p.journal.logs[i], bytes_out);
    if (err == 0 && *bytes_out)
        err = wb_path_sync_dir(p.journal.path);
    wb_edit_reader_close(p.reader);
    close_journal(&p.journal);
    return err;
}
