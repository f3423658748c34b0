/*
 * prune.c - how much of the journal no generation has yet, and removing logs that one has whole. A log that has not ended is never
 * removed: its writer is at work, or the next crawl has to look it through.
 */
#include "webdb/editfile.h"
#include "base/error.h"
#include "base/mem.h"
#include "webdb/generation.h"

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

static int prune_log(const struct journal *journal, uint32_t log, int (*keep)(void *context, uint32_t log), void *context, uint64_t *bytes)
{
    struct wb_edit_file file = WB_EDIT_FILE_INIT;
    uint64_t size = 0;
    int err = wb_edit_file_open(journal->path, log, false, &file);
    bool whole = err == 0 && file.end && merged_end(journal, log) >= file.end;

    if (whole)
        err = wb_file_size(&file.file, &size);
    wb_edit_file_close(&file);
    if (err < 0 || !whole)
        return err == WB_E_NOTFOUND || err == WB_E_CORRUPT ? 0 : err;
    int kept = keep ? keep(context, log) : 0;
    if (kept != 0)
        return kept < 0 ? kept : 0;
    char *path = wb_edit_file_path(journal->path, log);
    err = path ? wb_path_unlink(path) : WB_E_NOMEM;
    *bytes += err == 0 ? size : 0;
    wb_free(path);
    return err;
}

int wb_webdb_prune_journal(const char *dir, int (*keep)(void *context, uint32_t log), void *context, uint64_t *bytes_out)
{
    struct journal journal;

    *bytes_out = 0;
    int err = open_journal(dir, &journal);
    /* The newest one holds the number that no other may get. */
    for (size_t i = 0; err == 0 && i + 1 < journal.count; i++)
        err = prune_log(&journal, journal.logs[i], keep, context, bytes_out);
    if (err == 0 && *bytes_out)
        err = wb_path_sync_dir(journal.path);
    close_journal(&journal);
    return err;
}
