/*
 * journal_writer.c - appends records to a log of its own. It never reads a record.
 *
 * The phases of a log of this writer:
 *
 *   current   created and locked; records are appended to it
 *   before    a newer log is current. The caller may not yet have made durable the places of records in this one, so it
 *             has not ended: if we die now, recovery reads it
 *   ended     the head says so; the lock is released
 *
 * So a writer that dies leaves at most two logs that have not ended, and recovery reads both.
 *
 *   offset of a record = written + length of the buffer before it
 *
 *   [ head | records that the kernel has ][ buffer ]
 *                                         ^ written
 *
 * A flush writes the buffer at that known offset. One that failed is simply repeated.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "journal/edit.h"
#include "journal/journal_file.h"
#include "os/path.h"
#include "os/random.h"

enum {
    WRITER_MAGIC = 0x57424c47,
    ROLL_BYTES = 64 << 20,
    BUFFER_BYTES = 1 << 20, /* with more than this, append flushes first; a much larger buffer is freed after a flush */
};

struct wb_journal_writer {
    uint32_t magic;
    char *journal;                          /* the directory */
    struct wb_journal_file current, before; /* before is closed while there is only one log */
    uint64_t written;                       /* bytes of current that the kernel has */
    uint64_t before_written;                /* the same of before */
    uint64_t roll_bytes;                    /* size at which a new log is started */
    struct wb_buf buffer;                   /* records that follow at offset `written` */
    bool rolled;                            /* a log was started since wb_journal_writer_rolled() was last called */
    bool synced, before_synced, dir_synced; /* current, before and the directory are on disk */
    bool finished;
};

/* Every function of the door starts with this. */
static void check_writer(const struct wb_journal_writer *writer)
{
    WB_CHECK(writer->magic == WRITER_MAGIC);
    WB_CHECK(writer->written >= WB_JOURNAL_FILE_HEAD_BYTES);
    WB_CHECK(!writer->finished || (writer->buffer.len == 0 && writer->current.end == writer->written));
}

static uint64_t new_writer(void)
{
    uint64_t writer;

    wb_random_bytes(&writer, sizeof writer);
    return writer;
}

int wb_journal_writer_open(const char *dir, uint64_t roll_bytes, struct wb_journal_writer **writer_out)
{
    struct wb_journal_writer *writer = wb_alloc_zero(1, sizeof *writer);
    int err = 0;

    *writer_out = NULL;
    if (!writer)
        return WB_E_NOMEM;
    writer->magic = WRITER_MAGIC;
    writer->current = writer->before = WB_JOURNAL_FILE_INIT;
    writer->roll_bytes = roll_bytes ? roll_bytes : ROLL_BYTES;
    writer->journal = wb_path_join(dir, WB_JOURNAL_DIR);
    if (!writer->journal)
        err = WB_E_NOMEM;
    if (err == 0)
        err = wb_journal_file_create(writer->journal, new_writer(), 0, &writer->current);
    if (err < 0) {
        wb_journal_writer_close(writer);
        return err;
    }
    writer->written = WB_JOURNAL_FILE_HEAD_BYTES;
    WB_CHECK(writer->current.number != 0);
    WB_CHECK(writer->current.end == 0);
    *writer_out = writer;
    return 0;
}

/* Ends the log before, if there is one that has not ended yet. */
static int finish_before(struct wb_journal_writer *writer)
{
    if (writer->before.number == 0 || writer->before.end)
        return 0;
    WB_CHECK(writer->before.number < writer->current.number);
    WB_CHECK(writer->before.writer == writer->current.writer);
    WB_CHECK(writer->before_written >= WB_JOURNAL_FILE_HEAD_BYTES);
    return wb_journal_file_finish(&writer->before, writer->before_written);
}

/* Starts a new log: the current one becomes the one before. If that fails, the current one stays current. */
static int roll_over(struct wb_journal_writer *writer)
{
    struct wb_journal_file next = WB_JOURNAL_FILE_INIT;
    int err = finish_before(writer);

    WB_CHECK(writer->buffer.len == 0);
    WB_CHECK(!writer->finished);
    if (err == 0)
        err = wb_journal_file_create(writer->journal, writer->current.writer, writer->current.number, &next);
    if (err < 0)
        return err;
    WB_CHECK(next.number > writer->current.number);
    WB_CHECK(next.writer == writer->current.writer);
    wb_journal_file_close(&writer->before);
    writer->before = writer->current;
    writer->before_written = writer->written;
    writer->before_synced = writer->synced;
    writer->current = next;
    writer->written = WB_JOURNAL_FILE_HEAD_BYTES;
    writer->synced = writer->dir_synced = false;
    writer->rolled = true;
    WB_CHECK(writer->before.number < writer->current.number);
    WB_CHECK(writer->before.end == 0);
    return 0;
}

int wb_journal_writer_append(struct wb_journal_writer *writer, const struct wb_edit *edit,
                             struct wb_edit_place *place_out)
{
    uint64_t offset;
    int err = 0;

    check_writer(writer);
    WB_CHECK(!writer->finished);
    WB_CHECK(writer->current.number != 0);
    *place_out = WB_EDIT_NOWHERE;
    if (writer->buffer.len >= BUFFER_BYTES)
        err = wb_journal_writer_flush(writer);
    if (err < 0)
        return err;
    offset = writer->written + writer->buffer.len;
    WB_CHECK(edit->prev.log != writer->current.number || edit->prev.offset < offset); /* chains lead backwards */
    err = wb_edit_encode(edit, wb_edit_salt(writer->current.writer, offset), &writer->buffer);
    WB_CHECK(err < 0 || writer->written + writer->buffer.len >= offset + WB_EDIT_HEAD_BYTES);
    if (err == 0)
        *place_out = (struct wb_edit_place){writer->current.number, offset};
    return err;
}

int wb_journal_writer_flush(struct wb_journal_writer *writer)
{
    int err;

    check_writer(writer);
    if (writer->buffer.len == 0)
        return 0;
    WB_CHECK(writer->current.end == 0); /* nothing is written to a log that has ended */
    err = wb_file_write_at(&writer->current.file, writer->written, writer->buffer.ptr, writer->buffer.len);
    if (err < 0)
        return err;
    WB_CHECK(writer->current.number != 0);
    writer->written += writer->buffer.len;
    writer->synced = false;
    wb_buf_clear(&writer->buffer);
    if (writer->buffer.cap > 2 * BUFFER_BYTES)
        wb_buf_release(&writer->buffer);
    /* The records are where they belong. If a new log cannot be created now, the next flush tries again. */
    if (writer->written >= writer->roll_bytes)
        (void)roll_over(writer);
    return 0;
}

int wb_journal_writer_sync(struct wb_journal_writer *writer)
{
    int err = wb_journal_writer_flush(writer);

    WB_CHECK(err < 0 || writer->buffer.len == 0);
    WB_CHECK(writer->before.number || writer->before_written == 0);
    if (err == 0 && !writer->before_synced && writer->before.number) {
        err = wb_file_sync(&writer->before.file);
        writer->before_synced = err == 0;
    }
    if (err == 0 && !writer->synced) {
        err = wb_file_sync(&writer->current.file);
        writer->synced = err == 0;
    }
    if (err == 0 && !writer->dir_synced) {
        err = wb_path_sync_dir(writer->journal);
        writer->dir_synced = err == 0;
    }
    WB_CHECK(err < 0 || (writer->synced && writer->dir_synced));
    return err;
}

bool wb_journal_writer_rolled(struct wb_journal_writer *writer)
{
    bool rolled = writer->rolled;

    check_writer(writer);
    WB_CHECK(!rolled || writer->before.number != 0);
    writer->rolled = false;
    return rolled;
}

int wb_journal_writer_finish(struct wb_journal_writer *writer)
{
    int err = wb_journal_writer_sync(writer);

    if (err == 0)
        err = finish_before(writer);
    if (err == 0 && writer->current.end == 0)
        err = wb_journal_file_finish(&writer->current, writer->written);
    writer->finished = err == 0;
    WB_CHECK(err < 0 || writer->current.end == writer->written);
    WB_CHECK(err < 0 || writer->before.number == 0 || writer->before.end == writer->before_written);
    return err;
}

void wb_journal_writer_close(struct wb_journal_writer *writer)
{
    if (!writer)
        return;
    WB_CHECK(writer->magic == WRITER_MAGIC);
    wb_journal_file_close(&writer->before);
    wb_journal_file_close(&writer->current);
    wb_buf_release(&writer->buffer);
    wb_free(writer->journal);
    writer->magic = 0;
    wb_free(writer);
}
