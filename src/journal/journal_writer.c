/*
 * journal_writer.c - writes the edit log.
 *
 * Phases of a file: made and locked -> current: records are appended -> before: a newer one is current,
 * but whoever keeps places may not have made them durable yet -> ended: the head says so, the lock is gone.
 * A writer therefore has at most two files that are not ended, and recovery looks through both.
 *
 * Records gather in a buffer whose place in the file is known; a flush is one write at that place, so one that
 * failed is simply made again. It never reads a record.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"
#include "os/random.h"
#include "journal/journal_file.h"
#include "journal/edit.h"

enum {
    LOG_MAGIC = 0x57424c47,
    ROLL_BYTES = 64 << 20,
    BUFFER_BYTES = 1 << 20, /* past this an append flushes by itself; a larger buffer is not kept */
};

struct wb_journal_writer {
    uint32_t magic;
    char *journal;
    struct wb_journal_file current, before; /* before: not open where there is none */
    uint64_t written;        /* bytes of current that the kernel has */
    uint64_t before_written; /* of before */
    uint64_t roll_bytes;
    struct wb_buf buffer;    /* what comes behind them */
    bool rolled;             /* wb_journal_writer_rolled has not been asked since */
    bool synced, before_synced, dir_synced;
    bool finished;
};

static uint64_t new_writer(void)
{
    uint64_t writer;

    wb_random_bytes(&writer, sizeof writer);
    return writer;
}

int wb_journal_writer_open(const char *dir, uint64_t roll_bytes, struct wb_journal_writer **log_out)
{
    struct wb_journal_writer *log = wb_alloc_zero(1, sizeof *log);
    int err = 0;

    *log_out = NULL;
    if (!log)
        return WB_E_NOMEM;
    log->magic = LOG_MAGIC;
    log->current = log->before = WB_JOURNAL_FILE_INIT;
    log->roll_bytes = roll_bytes ? roll_bytes : ROLL_BYTES;
    log->journal = wb_path_join(dir, WB_JOURNAL_DIR);
    if (!log->journal)
        err = WB_E_NOMEM;
    if (err == 0)
        err = wb_journal_file_create(log->journal, new_writer(), 0, &log->current);
    if (err < 0) {
        wb_journal_writer_close(log);
        return err;
    }
    log->written = WB_JOURNAL_FILE_HEAD_BYTES;
    *log_out = log;
    return 0;
}

/* The current file becomes the one before, and that one ends. Nothing is changed where it fails. */
static int roll_over(struct wb_journal_writer *log)
{
    struct wb_journal_file next = WB_JOURNAL_FILE_INIT;
    int err = 0;

    WB_CHECK(log->buffer.len == 0);
    if (log->before.file.path && log->before.end == 0)
        err = wb_journal_file_finish(&log->before, log->before_written);
    if (err == 0)
        err = wb_journal_file_create(log->journal, log->current.writer, log->current.number, &next);
    if (err < 0)
        return err;
    wb_journal_file_close(&log->before);
    log->before = log->current;
    log->before_written = log->written;
    log->before_synced = log->synced;
    log->current = next;
    log->written = WB_JOURNAL_FILE_HEAD_BYTES;
    log->synced = log->dir_synced = false;
    log->rolled = true;
    return 0;
}

int wb_journal_writer_append(struct wb_journal_writer *log, const struct wb_edit *edit, struct wb_edit_place *place_out)
{
    uint64_t offset;
    int err = 0;

    WB_CHECK(log->magic == LOG_MAGIC && !log->finished);
    *place_out = WB_EDIT_NOWHERE;
    if (log->buffer.len >= BUFFER_BYTES)
        err = wb_journal_writer_flush(log);
    if (err < 0)
        return err;
    offset = log->written + log->buffer.len;
    WB_CHECK(edit->prev.log != log->current.number || edit->prev.offset < offset);
    err = wb_edit_encode(edit, wb_edit_salt(log->current.writer, offset), &log->buffer);
    if (err == 0)
        *place_out = (struct wb_edit_place){log->current.number, offset};
    return err;
}

int wb_journal_writer_flush(struct wb_journal_writer *log)
{
    int err;

    WB_CHECK(log->magic == LOG_MAGIC);
    if (log->buffer.len == 0)
        return 0;
    err = wb_file_write_at(&log->current.file, log->written, log->buffer.ptr, log->buffer.len);
    if (err < 0)
        return err;
    log->written += log->buffer.len;
    log->synced = false;
    wb_buf_clear(&log->buffer);
    if (log->buffer.cap > 2 * BUFFER_BYTES)
        wb_buf_release(&log->buffer);
    /* The records are where they belong; a new file that cannot be made now is tried for at the next flush. */
    if (log->written >= log->roll_bytes)
        (void)roll_over(log);
    return 0;
}

int wb_journal_writer_sync(struct wb_journal_writer *log)
{
    int err = wb_journal_writer_flush(log);

    if (err == 0 && !log->before_synced && log->before.file.path) {
        err = wb_file_sync(&log->before.file);
        log->before_synced = err == 0;
    }
    if (err == 0 && !log->synced) {
        err = wb_file_sync(&log->current.file);
        log->synced = err == 0;
    }
    if (err == 0 && !log->dir_synced) {
        err = wb_path_sync_dir(log->journal);
        log->dir_synced = err == 0;
    }
    return err;
}

bool wb_journal_writer_rolled(struct wb_journal_writer *log)
{
    bool rolled = log->rolled;

    log->rolled = false;
    return rolled;
}

int wb_journal_writer_finish(struct wb_journal_writer *log)
{
    int err = wb_journal_writer_sync(log);

    if (err == 0 && log->before.file.path && log->before.end == 0)
        err = wb_journal_file_finish(&log->before, log->before_written);
    if (err == 0 && log->current.end == 0)
        err = wb_journal_file_finish(&log->current, log->written);
    log->finished = err == 0;
    return err;
}

void wb_journal_writer_close(struct wb_journal_writer *log)
{
    if (!log)
        return;
    WB_CHECK(log->magic == LOG_MAGIC);
    wb_journal_file_close(&log->before);
    wb_journal_file_close(&log->current);
    wb_buf_release(&log->buffer);
    wb_free(log->journal);
    log->magic = 0;
    wb_free(log);
}
