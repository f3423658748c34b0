/*
 * journal_logs.c - the logs of a journal as files: which there are, who writes them, and removing them.
 *
 * It never decides which logs are no longer needed: webdb knows what it has merged, the crawl knows which visits
 * are unfinished, and both pass that in as values.
 */
#include "journal/journal_reader.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"
#include "journal/edit.h"

#include <stdlib.h>

enum { NEWEST_BYTES = 4096 }; /* a newest log that is larger is worth an empty successor, so that it can be removed */

/* ---- listing ---------------------------------------------------------------------------------- */

/* A log that vanished or whose head is damaged is listed with end 0: whoever reads it reports the damage. */
static int look_at_log(const char *journal, struct wb_journal_log *log)
{
    struct wb_journal_file file = WB_JOURNAL_FILE_INIT;
    int err = wb_journal_file_open(journal, log->number, false, &file);

    if (err == 0)
        err = wb_file_size(&file.file, &log->bytes);
    if (err == 0) {
        log->ended = file.end != 0;
        log->end = file.end ? file.end : log->bytes;
    }
    wb_journal_file_close(&file);
    return err == WB_E_NOTFOUND || err == WB_E_CORRUPT ? 0 : err;
}

static int list_logs(const char *journal, struct wb_journal_log **logs_out, size_t *count_out)
{
    uint32_t *numbers = NULL;
    size_t count = 0;
    int err = wb_journal_file_list(journal, &numbers, &count);
    struct wb_journal_log *logs = err == 0 && count ? wb_alloc_zero(count, sizeof *logs) : NULL;

    if (err == 0 && count && !logs)
        err = WB_E_NOMEM;
    for (size_t i = 0; err == 0 && i < count; i++) {
        WB_CHECK(i == 0 || numbers[i - 1] < numbers[i]);
        logs[i].number = numbers[i];
        err = look_at_log(journal, &logs[i]);
    }
    wb_free(numbers);
    if (err < 0) {
        wb_free(logs);
        return err;
    }
    *logs_out = logs;
    *count_out = count;
    return 0;
}

int wb_journal_list_logs(const char *dir, struct wb_journal_log **logs_out, size_t *count_out)
{
    char *journal = wb_path_join(dir, WB_JOURNAL_DIR);

    *logs_out = NULL;
    *count_out = 0;
    int err = journal ? list_logs(journal, logs_out, count_out) : WB_E_NOMEM;
    wb_free(journal);
    return err;
}

bool wb_journal_log_is_written(const char *dir, uint32_t log)
{
    struct wb_journal_file file = WB_JOURNAL_FILE_INIT;
    char *journal = wb_path_join(dir, WB_JOURNAL_DIR);
    bool locked = journal && wb_journal_file_open(journal, log, false, &file) == 0 &&
                  wb_file_lock(&file.file, false) == WB_E_BUSY;

    wb_journal_file_close(&file);
    wb_free(journal);
    return locked;
}

bool wb_journal_log_is_of_crawl(struct wb_journal_reader *reader, uint32_t log)
{
    struct wb_edit_place first_place = {log, WB_JOURNAL_FILE_HEAD_BYTES};
    const struct wb_journal_file *file;
    struct wb_slice record;
    struct wb_edit first;

    if (wb_journal_reader_find(reader, first_place, &file, &record) < 0 || !wb_edit_decode_head(record.ptr, &first))
        return true;
    return first.kind != WB_EDIT_BATCH && first.kind != WB_EDIT_PUSH && first.kind != WB_EDIT_EXPUNGE &&
           first.kind != WB_EDIT_ASK;
}

/* ---- what unfinished visits need ----------------------------------------------------------------- */

static int compare_logs(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

bool wb_journal_needs_log(const struct wb_journal_needs *needs, uint32_t log)
{
    return needs->all || (needs->count && bsearch(&log, needs->logs, needs->count, sizeof log, compare_logs));
}

void wb_journal_needs_release(struct wb_journal_needs *needs)
{
    wb_free(needs->logs);
    *needs = WB_JOURNAL_NEEDS_INIT;
}

/* ---- removing ------------------------------------------------------------------------------------- */

/* Creates an empty log that has already ended. */
static int add_empty_log(const char *dir)
{
    struct wb_journal_writer *writer = NULL;
    int err = wb_journal_writer_open(dir, 0, &writer);

    if (err == 0)
        err = wb_journal_writer_finish(writer);
    wb_journal_writer_close(writer);
    return err;
}

static int remove_log(const char *journal, uint32_t number, uint64_t *bytes)
{
    struct wb_journal_log log = {.number = number};
    char *path = NULL;
    int err = look_at_log(journal, &log);

    if (err < 0)
        return err;
    WB_CHECK(log.ended);
    path = wb_journal_file_path(journal, number);
    err = path ? wb_path_unlink(path) : WB_E_NOMEM;
    *bytes += err == 0 ? log.bytes : 0;
    wb_free(path);
    return err;
}

static int remove_logs(const char *dir, const char *journal, const uint32_t *numbers, size_t count, uint64_t *bytes)
{
    struct wb_journal_log *logs = NULL;
    size_t log_count = 0;
    int err = list_logs(journal, &logs, &log_count);
    const struct wb_journal_log *newest = log_count ? &logs[log_count - 1] : NULL;

    if (err == 0 && count && newest && numbers[count - 1] == newest->number) {
        if (newest->bytes > NEWEST_BYTES)
            err = add_empty_log(dir);
        else
            count--;
    }
    for (size_t i = 0; err == 0 && i < count; i++)
        err = remove_log(journal, numbers[i], bytes);
    if (err == 0 && *bytes)
        err = wb_path_sync_dir(journal);
    wb_free(logs);
    return err;
}

int wb_journal_remove_logs(const char *dir, const uint32_t *logs, size_t count, uint64_t *bytes_out)
{
    char *journal = wb_path_join(dir, WB_JOURNAL_DIR);

    *bytes_out = 0;
    int err = journal ? remove_logs(dir, journal, logs, count, bytes_out) : WB_E_NOMEM;
    wb_free(journal);
    return err;
}
