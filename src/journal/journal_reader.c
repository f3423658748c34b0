/*
 * journal_reader.c - reads records of the journal: one by its place, or all in order.
 *
 * Reads through a window with pread, never through a mapping, because files grow and may be cut while they
 * are read. The window doubles while several records in a row are found in it and halves when they are not,
 * so that a scan reads much at a time and a chain through interleaved sites little.
 *
 * A record that does not match its checksum is damage where the file has ended, or where a sound record
 * follows it; otherwise it is the torn tail of a writer that was killed or is writing now. It never writes.
 */
#include "journal/journal_reader.h"
#include "journal/edit_batch.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"
#include "journal/edit.h"

#include <stdlib.h>

enum {
    READER_MAGIC = 0x57425244,
    OPEN_MAX = 8,
    WINDOW_MIN = 4 << 10,
    WINDOW_MAX = 256 << 10,
    WINDOW_KEEP = 1 << 20, /* one that a giant record made larger is not kept */
    HITS_TO_GROW = 2,
};

struct open_log {
    struct wb_journal_file file; /* number 0: none */
    uint64_t used;
};

struct wb_journal_reader {
    uint32_t magic;
    char *journal;
    struct open_log logs[OPEN_MAX];
    uint64_t clock; /* of uses */

    struct wb_buf window;
    uint32_t window_log; /* 0: there is nothing in it */
    uint64_t window_at;
    size_t window_size;
    unsigned hits; /* records found in it since it was read */

    struct wb_edit_place stepped; /* the last place that a step gave, and where it ends */
    uint64_t stepped_next;

    struct wb_edit_batch_reader batch; /* at `stepped`, where some of its records were not given yet */

    uint32_t *numbers;
    size_t number_count;
};

int wb_journal_reader_open(const char *dir, struct wb_journal_reader **reader_out)
{
    struct wb_journal_reader *reader = wb_alloc_zero(1, sizeof *reader);
    int err = 0;

    *reader_out = NULL;
    if (!reader)
        return WB_E_NOMEM;
    reader->magic = READER_MAGIC;
    reader->window_size = WINDOW_MIN;
    for (size_t i = 0; i < OPEN_MAX; i++)
        reader->logs[i].file = WB_JOURNAL_FILE_INIT;
    reader->journal = wb_path_join(dir, WB_JOURNAL_DIR);
    if (!reader->journal)
        err = WB_E_NOMEM;
    if (err == 0)
        err = wb_journal_file_list(reader->journal, &reader->numbers, &reader->number_count);
    if (err < 0) {
        wb_journal_reader_close(reader);
        return err;
    }
    *reader_out = reader;
    return 0;
}

void wb_journal_reader_close(struct wb_journal_reader *reader)
{
    if (!reader)
        return;
    WB_CHECK(reader->magic == READER_MAGIC);
    for (size_t i = 0; i < OPEN_MAX; i++)
        wb_journal_file_close(&reader->logs[i].file);
    wb_buf_release(&reader->window);
    wb_edit_batch_reader_release(&reader->batch);
    wb_free(reader->numbers);
    wb_free(reader->journal);
    reader->magic = 0;
    wb_free(reader);
}

/* ---- bytes ------------------------------------------------------------------------------------ */

int wb_journal_reader_file(struct wb_journal_reader *reader, uint32_t number, const struct wb_journal_file **file_out)
{
    struct open_log *oldest = &reader->logs[0];
    int err;

    WB_CHECK(reader->magic == READER_MAGIC);
    *file_out = NULL;
    if (number == 0)
        return wb_fail(WB_E_NOTFOUND, "%s: no record is meant", reader->journal);
    for (size_t i = 0; i < OPEN_MAX; i++) {
        struct open_log *log = &reader->logs[i];
        if (log->file.number == number) {
            log->used = ++reader->clock;
            *file_out = &log->file;
            return 0;
        }
        if (log->used < oldest->used)
            oldest = log;
    }
    if (reader->window_log == oldest->file.number)
        reader->window_log = 0;
    wb_journal_file_close(&oldest->file);
    oldest->used = 0;
    err = wb_journal_file_open(reader->journal, number, false, &oldest->file);
    if (err < 0)
        return err;
    oldest->used = ++reader->clock;
    *file_out = &oldest->file;
    return 0;
}

static bool in_window(const struct wb_journal_reader *reader, uint32_t log, uint64_t offset, size_t need)
{
    return reader->window_log == log && offset >= reader->window_at && offset - reader->window_at <= reader->window.len &&
           reader->window.len - (offset - reader->window_at) >= need;
}

static int fill_window(struct wb_journal_reader *reader, const struct wb_journal_file *file, uint64_t offset, size_t need)
{
    bool backward = reader->window_log == file->number && offset < reader->window_at;
    uint64_t start = offset;
    int err;

    if (reader->hits >= HITS_TO_GROW && reader->window_size < WINDOW_MAX)
        reader->window_size *= 2;
    else if (reader->hits < HITS_TO_GROW && reader->window_size > WINDOW_MIN)
        reader->window_size /= 2;
    size_t size = reader->window_size > need ? reader->window_size : need;
    if (backward && size > WINDOW_MIN && need <= WINDOW_MIN) {
        uint64_t back = size - WINDOW_MIN;
        start = offset > back ? offset - back : 0;
        size = (size_t)(offset - start) + WINDOW_MIN;
    }
    reader->window_log = 0;
    reader->hits = 0;
    wb_buf_clear(&reader->window);
    if (reader->window.cap > WINDOW_KEEP)
        wb_buf_release(&reader->window);
    err = wb_buf_reserve(&reader->window, size);
    if (err == 0)
        err = wb_file_read_at(&file->file, start, reader->window.ptr, size, &reader->window.len);
    if (err < 0)
        return err;
    reader->window_log = file->number;
    reader->window_at = start;
    return 0;
}

/* Bytes at an offset: at least need where the file has them, or as many as it has. */
static int look_bytes(struct wb_journal_reader *reader, const struct wb_journal_file *file, uint64_t offset, size_t need, struct wb_slice *bytes_out)
{
    int err = 0;

    *bytes_out = WB_SLICE_EMPTY;
    if (!in_window(reader, file->number, offset, need))
        err = fill_window(reader, file, offset, need);
    if (err < 0)
        return err;
    if (in_window(reader, file->number, offset, 0))
        *bytes_out = wb_slice(reader->window.ptr + (offset - reader->window_at), reader->window.len - (size_t)(offset - reader->window_at));
    return 0;
}

/* ---- one record --------------------------------------------------------------------------------- */

/*
 * What is at an offset, as far as its own bytes tell. length_out: of a record that is there whole, sound or not; otherwise 0.
 * record_out is that of a sound one.
 */
static int look_record(struct wb_journal_reader *reader, const struct wb_journal_file *file, uint64_t offset, enum wb_journal_sight *sight_out,
                       struct wb_slice *record_out, size_t *length_out)
{
    uint64_t left = file->end == 0 ? UINT64_MAX : offset < file->end ? file->end - offset : 0;
    struct wb_slice bytes;
    int err = 0;

    *sight_out = WB_JOURNAL_END;
    *record_out = WB_SLICE_EMPTY;
    *length_out = 0;
    if (left == 0)
        return 0;
    err = look_bytes(reader, file, offset, WB_EDIT_HEAD_BYTES, &bytes);
    if (err < 0 || (bytes.len == 0 && file->end == 0))
        return err;
    *sight_out = file->end ? WB_JOURNAL_DAMAGED : WB_JOURNAL_TORN;
    if (bytes.len < WB_EDIT_HEAD_BYTES)
        return 0;
    size_t length = wb_edit_length(bytes.ptr);
    if (length == 0 || length > left)
        return 0;
    err = look_bytes(reader, file, offset, length, &bytes);
    if (err < 0 || bytes.len < length)
        return err;
    *length_out = length;
    *sight_out = WB_JOURNAL_DAMAGED;
    if (!wb_edit_is_intact(wb_slice(bytes.ptr, length), wb_edit_salt(file->writer, offset)))
        return 0;
    *sight_out = WB_JOURNAL_RECORD;
    *record_out = wb_slice(bytes.ptr, length);
    reader->hits++;
    return 0;
}

/* The same, and where to go on: past damage only where a sound record follows, or the end of the file as its head tells. */
static int judge_record(struct wb_journal_reader *reader, const struct wb_journal_file *file, uint64_t offset, struct wb_journal_step *step_out,
                        struct wb_slice *record_out)
{
    enum wb_journal_sight behind;
    struct wb_slice next_record;
    size_t length, next_length;
    int err;

    *step_out = (struct wb_journal_step){.place = {file->number, offset}, .file = file->file.path};
    err = look_record(reader, file, offset, &step_out->sight, record_out, &length);
    if (err < 0)
        return err;
    if (step_out->sight == WB_JOURNAL_RECORD)
        step_out->next = offset + length;
    if (step_out->sight != WB_JOURNAL_DAMAGED || length == 0)
        return 0;
    err = look_record(reader, file, offset + length, &behind, &next_record, &next_length);
    if (err < 0)
        return err;
    if (behind == WB_JOURNAL_RECORD || (behind == WB_JOURNAL_END && file->end))
        step_out->next = offset + length;
    else if (file->end == 0)
        step_out->sight = WB_JOURNAL_TORN;
    return 0;
}

static int fail_place(const struct wb_journal_file *file, uint64_t offset)
{
    return wb_fail(WB_E_CORRUPT, "%s: no sound record at %llu", file->file.path, (unsigned long long)offset);
}

int wb_journal_check_prev(const struct wb_journal_file *file, uint64_t offset, const struct wb_edit *edit)
{
    if (edit->prev.log == file->number && edit->prev.offset >= offset)
        return wb_fail(WB_E_CORRUPT, "%s: the record at %llu claims to follow one at %llu", file->file.path, (unsigned long long)offset,
                       (unsigned long long)edit->prev.offset);
    return 0;
}

static int decode_at(const struct wb_journal_file *file, uint64_t offset, struct wb_slice record, struct wb_edit *edit_out)
{
    int err = wb_edit_decode(record, edit_out);

    if (err < 0)
        return wb_fail(WB_E_CORRUPT, "%s: the record at %llu has parts that do not add up", file->file.path, (unsigned long long)offset);
    return wb_journal_check_prev(file, offset, edit_out);
}

int wb_journal_reader_find(struct wb_journal_reader *reader, struct wb_edit_place place, const struct wb_journal_file **file_out,
                        struct wb_slice *record_out)
{
    enum wb_journal_sight sight;
    size_t length;
    int err = wb_journal_reader_file(reader, place.log, file_out);

    if (err < 0)
        return err;
    if (place.offset < WB_JOURNAL_FILE_HEAD_BYTES)
        return fail_place(*file_out, place.offset);
    err = look_record(reader, *file_out, place.offset, &sight, record_out, &length);
    if (err == 0 && sight != WB_JOURNAL_RECORD)
        err = fail_place(*file_out, place.offset);
    return err;
}

int wb_journal_reader_get(struct wb_journal_reader *reader, struct wb_edit_place place, struct wb_edit *edit_out)
{
    const struct wb_journal_file *file;
    struct wb_slice record;
    int err = wb_journal_reader_find(reader, place, &file, &record);

    if (err == 0)
        err = decode_at(file, place.offset, record, edit_out);
    if (err < 0)
        *edit_out = (struct wb_edit){0};
    return err;
}

/* ---- all in order ----------------------------------------------------------------------------------- */

/* Where the record behind *at begins; 0 where the log cannot be read further. */
static int offset_behind(struct wb_journal_reader *reader, const struct wb_journal_file *file, struct wb_edit_place at, uint64_t *offset_out)
{
    struct wb_journal_step step;
    struct wb_slice record;
    int err = 0;

    *offset_out = WB_JOURNAL_FILE_HEAD_BYTES;
    if (at.offset < WB_JOURNAL_FILE_HEAD_BYTES)
        return 0;
    if (at.log == reader->stepped.log && at.offset == reader->stepped.offset) {
        *offset_out = reader->stepped_next;
        return 0;
    }
    err = judge_record(reader, file, at.offset, &step, &record);
    *offset_out = step.next;
    return err;
}

/* The next record of the batch at hand, which has one. */
static int next_of_batch(struct wb_journal_reader *reader, const struct wb_journal_file *file, struct wb_edit *edit_out, struct wb_journal_step *step_out)
{
    int got = wb_edit_batch_reader_next(&reader->batch, edit_out);

    if (got == 1)
        return 1;
    step_out->sight = WB_JOURNAL_DAMAGED;
    return got < 0 && got != WB_E_CORRUPT ? got : fail_place(file, step_out->place.offset);
}

int wb_journal_reader_step(struct wb_journal_reader *reader, struct wb_edit_place *at, struct wb_edit *edit_out, struct wb_journal_step *step_out)
{
    const struct wb_journal_file *file;
    struct wb_slice record;
    uint64_t offset = 0;
    int err = wb_journal_reader_file(reader, at->log, &file);

    *edit_out = (struct wb_edit){0};
    *step_out = (struct wb_journal_step){.place = *at};
    if (err == 0 && reader->batch.left && at->log == reader->stepped.log && at->offset == reader->stepped.offset) {
        *step_out = (struct wb_journal_step){WB_JOURNAL_RECORD, *at, reader->stepped_next, file->file.path};
        return next_of_batch(reader, file, edit_out, step_out);
    }
    if (err == 0)
        err = offset_behind(reader, file, *at, &offset);
    if (err < 0)
        return err;
    reader->batch.left = 0;
    step_out->file = file->file.path;
    if (offset == 0)
        return 0;
    err = judge_record(reader, file, offset, step_out, &record);
    if (err < 0 || step_out->sight == WB_JOURNAL_END || step_out->sight == WB_JOURNAL_TORN)
        return err;
    *at = step_out->place;
    reader->stepped = *at;
    reader->stepped_next = step_out->next;
    if (step_out->sight == WB_JOURNAL_DAMAGED)
        return fail_place(file, offset);
    err = decode_at(file, offset, record, edit_out);
    if (err < 0 || edit_out->kind != WB_EDIT_BATCH)
        return err < 0 ? err : 1;
    err = wb_edit_batch_reader_start(edit_out, &reader->batch);
    if (err == WB_E_CORRUPT)
        step_out->sight = WB_JOURNAL_DAMAGED;
    return err < 0 ? err : next_of_batch(reader, file, edit_out, step_out);
}

/* The next log after a number; 0: none. The folder is looked at again only at its end. */
static int next_log(struct wb_journal_reader *reader, uint32_t after, uint32_t *number_out)
{
    *number_out = 0;
    for (int again = 0; again < 2; again++) {
        size_t low = 0, high = reader->number_count;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (reader->numbers[middle] <= after)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < reader->number_count) {
            *number_out = reader->numbers[low];
            return 0;
        }
        if (again == 0) {
            wb_free(reader->numbers);
            int err = wb_journal_file_list(reader->journal, &reader->numbers, &reader->number_count);
            if (err < 0)
                return err;
        }
    }
    return 0;
}

int wb_journal_reader_next(struct wb_journal_reader *reader, struct wb_edit_place *at_inout, struct wb_edit *edit_out)
{
    struct wb_edit_place at = *at_inout;
    struct wb_journal_step step;
    int more = 0;

    WB_CHECK(reader->magic == READER_MAGIC);
    *edit_out = (struct wb_edit){0};
    for (;;) {
        if (at.log)
            more = wb_journal_reader_step(reader, &at, edit_out, &step);
        /* A log that went away or has no head yet has no records; a damaged head is told once, when the log is come to. */
        if (more == WB_E_NOTFOUND || ((more == WB_E_CORRUPT || more == WB_E_NEWER) && at.offset == 0 && at_inout->log == at.log))
            more = 0;
        if (more == WB_E_CORRUPT || more == WB_E_NEWER || more == 1)
            *at_inout = at;
        if (more != 0)
            return more;
        int err = next_log(reader, at.log, &at.log);
        at.offset = 0;
        if (err < 0 || at.log == 0)
            return err;
    }
}
