/*
 * journal_logs.c - the logs of a journal as files: lists them, says who writes them, and removes them.
 *
 * It never decides which logs are no longer needed: webdb knows what it has merged, the crawl knows which visits
 * are unfinished, and both pass that in as values.
 */
#include "journal/journal_reader.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "journal/edit.h"
#include "os/path.h"

/* If the newest log is larger than this, an empty log is created to replace it, so that it can be removed. */
enum { NEWEST_BYTES = 4096 };

_Static_assert(NEWEST_BYTES > (int)WB_JOURNAL_FILE_HEAD_BYTES, "an empty log is never replaced by another empty one");

/* ---- listing ---------------------------------------------------------------------------------- */

/* A log that vanished or whose head is damaged is listed with end 0: its reader reports the damage. */
static int look_at_log(const char *journal, struct wb_journal_log *log)
{
    struct wb_journal_file file = WB_JOURNAL_FILE_INIT;
    int err = wb_journal_file_open(journal, log->number, false, &file);

    WB_CHECK(log->number != 0);
    WB_CHECK(!log->ended);
    WB_CHECK(log->end == 0);
    if (err == 0)
        err = wb_file_size(&file.file, &log->bytes);
    if (err == 0) {
        log->ended = file.end != 0;
        log->end = file.end ? file.end : log->bytes;
        WB_CHECK(log->end >= WB_JOURNAL_FILE_HEAD_BYTES);
    }
    wb_journal_file_close(&file);
    return err == WB_E_NOTFOUND || err == WB_E_CORRUPT ? 0 : err;
}

static int list_logs(const char *journal, struct wb_journal_log **logs_out, size_t *count_out)
{
    struct wb_journal_numbers numbers = WB_VEC_INIT;
    int err = wb_journal_file_list(journal, &numbers);
    struct wb_journal_log *logs = err == 0 && numbers.count ? wb_alloc_zero(numbers.count, sizeof *logs) : NULL;

    *logs_out = NULL;
    *count_out = 0;
    if (err == 0 && numbers.count && !logs)
        err = WB_E_NOMEM;
    for (size_t i = 0; err == 0 && i < numbers.count; i++) {
        WB_CHECK(i == 0 || numbers.items[i - 1] < numbers.items[i]);
        logs[i].number = numbers.items[i];
        err = look_at_log(journal, &logs[i]);
    }
    if (err == 0) {
    WB_CHECK((logs == NULL) == (numbers.count == 0));
        *logs_out = logs;
        *count_out = numbers.count;
        logs = NULL;
    }
    wb_free(logs);
    wb_vec_release(&numbers);
    return err;
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

    WB_CHECK(log != 0);
    bool locked = journal && wb_journal_file_open(journal, log, false, &file) == 0 && wb_file_is_locked(&file.file);
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

    WB_CHECK(log != 0);
    if (wb_journal_reader_find(reader, first_place, &file, &record) < 0 || !wb_edit_decode_head(record.ptr, &first))
        return true;
    WB_CHECK(file->number == log);
    return first.kind != WB_EDIT_BATCH && first.kind != WB_EDIT_PUSH && first.kind != WB_EDIT_EXPUNGE &&
           first.kind != WB_EDIT_ASK;
}

/* ---- what unfinished visits need ----------------------------------------------------------------- */

bool wb_journal_needs_log(const struct wb_journal_needs *needs, uint32_t log)
{
    WB_CHECK(log != 0);
    struct wb_journal_numbers numbers = {needs->logs, needs->count, needs->count};
    size_t at = wb_journal_numbers_find(&numbers, log);

    WB_CHECK(needs->logs || needs->count == 0);
    return needs->all || (at < numbers.count && numbers.items[at] == log);
}

void wb_journal_needs_release(struct wb_journal_needs *needs)
{
    WB_CHECK(needs->logs || needs->count == 0);
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
    WB_CHECK(err < 0 || writer);
    wb_journal_writer_close(writer);
    return err;
}

/* Adds the size of the file to *bytes. */
static int remove_log(const char *journal, uint32_t number, uint64_t *bytes)
{
    struct wb_journal_log log = {.number = number};
    char *path = NULL;
    int err = look_at_log(journal, &log);

    if (err < 0 || log.end == 0) /* 0: another process removed it meanwhile */
        return err;
    WB_CHECK(log.ended); /* nobody may be writing to it, and recovery must have read it */
    WB_CHECK(log.number == number);
    WB_CHECK(log.end >= WB_JOURNAL_FILE_HEAD_BYTES);
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

    WB_CHECK(count == 0 || numbers[0] != 0);
    for (size_t i = 1; i < count; i++)
        WB_CHECK(numbers[i - 1] < numbers[i]);
    WB_CHECK(*bytes == 0);
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

    WB_CHECK(logs || count == 0);
    *bytes_out = 0;
    int err = journal ? remove_logs(dir, journal, logs, count, bytes_out) : WB_E_NOMEM;
    wb_free(journal);
    return err;
}
