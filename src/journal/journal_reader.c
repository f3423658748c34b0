/*
 * journal_reader.c - reads records of the journal: one by its place, or all in order. It never writes.
 *
 * Bytes come through a window that is filled with pread. A mapping would be unsafe, because logs grow, and may be
 * cut, while they are read. The window doubles as long as several records in a row are found in it, and halves when
 * they are not: a scan of a whole log then reads large pieces, and a walk along the chain of one site among many
 * reads small ones.
 *
 * Four layers, each using the one above it:
 *
 *   look_bytes    bytes at an offset, through the window
 *   look_record   what is at an offset, judged by its own bytes: a record, damage, or the end
 *   judge_record  the same, judged by what follows too, and where to continue
 *   step, next    the record after a place: unpacks batches, goes from log to log
 *
 * Is a record with a wrong checksum damaged, or just unfinished? If the log has ended, or an intact record follows,
 * it is damaged. Otherwise it is the last record of a writer that was killed, or that is writing it at this moment.
 */
#include "journal/journal_reader.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "journal/edit.h"
#include "journal/edit_batch.h"
#include "os/path.h"

enum {
    READER_MAGIC = 0x57425244,
    OPEN_MAX = 8,
    WINDOW_MIN = 4 << 10,
    WINDOW_MAX = 256 << 10,
    WINDOW_KEEP = 1 << 20, /* a window that a huge record made larger than this is freed afterwards */
    HITS_TO_GROW = 2,
};

_Static_assert(WINDOW_MIN >= (int)WB_EDIT_HEAD_BYTES, "a window holds at least the head of a record");
_Static_assert(WINDOW_MIN <= WINDOW_MAX && WINDOW_MAX <= WINDOW_KEEP, "a window that grew by hits is kept");

/* A log that the reader keeps open. The one that was not used for the longest time makes room for another. */
struct open_log {
    struct wb_journal_file file; /* number 0: not open */
    uint64_t used;               /* use_count at its last use */
};

struct wb_journal_reader {
    uint32_t magic;
    char *journal; /* the directory */
    struct open_log logs[OPEN_MAX];
    uint64_t use_count;

    struct wb_buf window;
    uint32_t window_log; /* the log that the bytes in the window are from; 0: it is empty */
    uint64_t window_at;  /* their offset there */
    size_t window_size;  /* how much to read next time */
    unsigned hits;       /* records found in the window since it was filled */

    struct wb_edit_place stepped; /* the last place that a step returned... */
    uint64_t stepped_next;        /* ...and the offset of the record after it */

    struct wb_edit_batch_reader batch; /* the batch at `stepped`, if some of its records were not returned yet */

    struct wb_journal_numbers numbers; /* the logs there are, as of the last time we looked */
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
        err = wb_journal_file_list(reader->journal, &reader->numbers);
    if (err < 0) {
        wb_journal_reader_close(reader);
        return err;
    }
    WB_CHECK(reader->window_log == 0);
    WB_CHECK(reader->batch.left == 0);
    *reader_out = reader;
    return 0;
}

void wb_journal_reader_close(struct wb_journal_reader *reader)
{
    if (!reader)
        return;
    WB_CHECK(reader->magic == READER_MAGIC);
    WB_CHECK(reader->window_size <= WINDOW_MAX);
    for (size_t i = 0; i < OPEN_MAX; i++)
        wb_journal_file_close(&reader->logs[i].file);
    wb_buf_release(&reader->window);
    wb_edit_batch_reader_release(&reader->batch);
    wb_vec_release(&reader->numbers);
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
        return wb_fail(WB_E_NOTFOUND, "%s: there is no log 0", reader->journal);
    for (size_t i = 0; i < OPEN_MAX; i++) {
        struct open_log *log = &reader->logs[i];
        if (log->file.number == number) {
            log->used = ++reader->use_count;
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
    oldest->used = ++reader->use_count;
    *file_out = &oldest->file;
    WB_CHECK(oldest->file.number == number);
    return 0;
}

static bool in_window(const struct wb_journal_reader *reader, uint32_t log, uint64_t offset, size_t need)
{
    WB_CHECK(log != 0);
    return reader->window_log == log && offset >= reader->window_at &&
           offset - reader->window_at <= reader->window.len &&
           reader->window.len - (offset - reader->window_at) >= need;
}

/* Adapts the size of the window, and fills it with at least `need` bytes from offset on, if the log has them. */
static int fill_window(struct wb_journal_reader *reader, const struct wb_journal_file *file, uint64_t offset,
                       size_t need)
{
    bool backward = reader->window_log == file->number && offset < reader->window_at;
    uint64_t start = offset;
    int err;

    if (reader->hits >= HITS_TO_GROW && reader->window_size < WINDOW_MAX)
        reader->window_size *= 2;
    else if (reader->hits < HITS_TO_GROW && reader->window_size > WINDOW_MIN)
        reader->window_size /= 2;
    WB_CHECK(reader->window_size >= WINDOW_MIN);
    WB_CHECK(reader->window_size <= WINDOW_MAX);
    size_t size = reader->window_size > need ? reader->window_size : need;
    if (backward && size > WINDOW_MIN && need <= WINDOW_MIN) {
        /* A walk along a chain goes backwards: read what is before the offset too. */
        uint64_t back = size - WINDOW_MIN;
        start = offset > back ? offset - back : 0;
        size = (size_t)(offset - start) + WINDOW_MIN;
    }
    WB_CHECK(start <= offset);
    WB_CHECK(offset - start + need <= size);
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
    WB_CHECK(reader->window.len <= size);
    WB_CHECK(reader->window.cap >= size);
    reader->window_log = file->number;
    reader->window_at = start;
    return 0;
}

/* Returns at least `need` bytes from offset on, or as many as the log has. */
static int look_bytes(struct wb_journal_reader *reader, const struct wb_journal_file *file, uint64_t offset,
                      size_t need, struct wb_slice *bytes_out)
{
    int err = 0;

    WB_CHECK(file->number != 0);
    WB_CHECK(offset >= WB_JOURNAL_FILE_HEAD_BYTES);
    *bytes_out = WB_SLICE_EMPTY;
    if (!in_window(reader, file->number, offset, need))
        err = fill_window(reader, file, offset, need);
    if (err < 0)
        return err;
    if (in_window(reader, file->number, offset, 0)) {
        size_t skipped = (size_t)(offset - reader->window_at);
        WB_CHECK(skipped <= reader->window.len);
        *bytes_out = wb_slice(reader->window.ptr + skipped, reader->window.len - skipped);
    }
    return 0;
}

/* ---- one record --------------------------------------------------------------------------------- */

/*
 * Says what is at an offset, judged by its own bytes. *record_out: the record, if it is intact. *length_out: its
 * length, if all of its bytes are there, intact or not; otherwise 0.
 */
static int look_record(struct wb_journal_reader *reader, const struct wb_journal_file *file, uint64_t offset,
                       enum wb_journal_sight *sight_out, struct wb_slice *record_out, size_t *length_out)
{
    uint64_t left = file->end == 0 ? UINT64_MAX : offset < file->end ? file->end - offset : 0;
    struct wb_slice bytes;
    int err = 0;

    WB_CHECK(offset >= WB_JOURNAL_FILE_HEAD_BYTES);
    WB_CHECK(file->end == 0 || file->end >= WB_JOURNAL_FILE_HEAD_BYTES);
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
    WB_CHECK(length >= WB_EDIT_HEAD_BYTES);
    WB_CHECK(file->end == 0 || offset + length <= file->end);
    reader->hits++;
    return 0;
}

/*
 * Says what is at an offset, judged by what follows too, and where to continue. Damage is passed only if an intact
 * record follows, or the end that the head of the log states: otherwise the stated length of the damaged record may
 * be wrong.
 */
static int judge_record(struct wb_journal_reader *reader, const struct wb_journal_file *file, uint64_t offset,
                        struct wb_journal_step *step_out, struct wb_slice *record_out)
{
    enum wb_journal_sight behind;
    struct wb_slice next_record;
    size_t length, next_length;
    int err;

    *step_out = (struct wb_journal_step){.place = {file->number, offset}, .file = file->file.path};
    err = look_record(reader, file, offset, &step_out->sight, record_out, &length);
    if (err < 0)
        return err;
    WB_CHECK((step_out->sight == WB_JOURNAL_RECORD) == (record_out->len > 0));
    WB_CHECK(step_out->sight != WB_JOURNAL_RECORD || record_out->len == length);
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
    WB_CHECK(step_out->next == 0 || step_out->next >= offset + WB_EDIT_HEAD_BYTES); /* so that a scan always ends */
    return 0;
}

static int fail_place(const struct wb_journal_file *file, uint64_t offset)
{
    WB_CHECK(file->file.path != NULL);
    return wb_fail(WB_E_CORRUPT, "%s: there is no intact record at %llu", file->file.path, (unsigned long long)offset);
}

int wb_journal_check_prev(const struct wb_journal_file *file, uint64_t offset, const struct wb_edit *edit)
{
    WB_CHECK(file->number != 0);
    WB_CHECK(offset >= WB_JOURNAL_FILE_HEAD_BYTES);
    if (edit->prev.log == file->number && edit->prev.offset >= offset)
        return wb_fail(WB_E_CORRUPT, "%s: the record at %llu claims to follow one at %llu", file->file.path,
                       (unsigned long long)offset, (unsigned long long)edit->prev.offset);
    return 0;
}

static int decode_at(const struct wb_journal_file *file, uint64_t offset, struct wb_slice record,
                     struct wb_edit *edit_out)
{
    int err = wb_edit_decode(record, edit_out);

    WB_CHECK(record.len >= WB_EDIT_HEAD_BYTES);
    if (err < 0)
        return wb_fail(WB_E_CORRUPT, "%s: the parts of the record at %llu do not add up to its length", file->file.path,
                       (unsigned long long)offset);
    return wb_journal_check_prev(file, offset, edit_out);
}

int wb_journal_reader_find(struct wb_journal_reader *reader, struct wb_edit_place place,
                           const struct wb_journal_file **file_out, struct wb_slice *record_out)
{
    enum wb_journal_sight sight;
    size_t length;
    int err = wb_journal_reader_file(reader, place.log, file_out);

    *record_out = WB_SLICE_EMPTY;
    if (err < 0)
        return err;
    if (place.offset < WB_JOURNAL_FILE_HEAD_BYTES)
        return fail_place(*file_out, place.offset);
    err = look_record(reader, *file_out, place.offset, &sight, record_out, &length);
    if (err == 0 && sight != WB_JOURNAL_RECORD)
        err = fail_place(*file_out, place.offset);
    WB_CHECK(err < 0 || record_out->len == length);
    return err;
}

int wb_journal_reader_get(struct wb_journal_reader *reader, struct wb_edit_place place, struct wb_edit *edit_out)
{
    const struct wb_journal_file *file;
    struct wb_slice record;
    int err = wb_journal_reader_find(reader, place, &file, &record);

    if (err == 0)
        err = decode_at(file, place.offset, record, edit_out);
    WB_CHECK(err < 0 || file->number == place.log);
    if (err < 0)
        *edit_out = (struct wb_edit){0};
    return err;
}

/* ---- all records in order ----------------------------------------------------------------------------------- */

static bool is_at_stepped(const struct wb_journal_reader *reader, struct wb_edit_place at)
{
    WB_CHECK(at.log != 0);
    return at.log == reader->stepped.log && at.offset == reader->stepped.offset;
}

/* Finds the offset of the record after the one at a place; 0: the rest of the log cannot be read. */
static int offset_behind(struct wb_journal_reader *reader, const struct wb_journal_file *file, struct wb_edit_place at,
                         uint64_t *offset_out)
{
    struct wb_journal_step step;
    struct wb_slice record;
    int err = 0;

    WB_CHECK(file->number == at.log);
    *offset_out = WB_JOURNAL_FILE_HEAD_BYTES;
    if (at.offset < WB_JOURNAL_FILE_HEAD_BYTES)
        return 0;
    if (is_at_stepped(reader, at)) {
        *offset_out = reader->stepped_next;
        return 0;
    }
    err = judge_record(reader, file, at.offset, &step, &record);
    *offset_out = step.next;
    WB_CHECK(step.next == 0 || step.next > at.offset);
    return err;
}

/* The next record of the current batch, which has records left. */
static int next_of_batch(struct wb_journal_reader *reader, const struct wb_journal_file *file, struct wb_edit *edit_out,
                         struct wb_journal_step *step_out)
{
    WB_CHECK(reader->batch.left > 0);
    int got = wb_edit_batch_reader_next(&reader->batch, edit_out);

    WB_CHECK(step_out->place.log == file->number);
    WB_CHECK(got != 1 || edit_out->kind != WB_EDIT_BATCH);
    if (got == 1)
        return 1;
    step_out->sight = WB_JOURNAL_DAMAGED;
    return got < 0 && got != WB_E_CORRUPT ? got : fail_place(file, step_out->place.offset);
}

int wb_journal_reader_step(struct wb_journal_reader *reader, struct wb_edit_place *at, struct wb_edit *edit_out,
                           struct wb_journal_step *step_out)
{
    const struct wb_journal_file *file;
    struct wb_slice record;
    uint64_t offset = 0;
    int err = wb_journal_reader_file(reader, at->log, &file);

    *edit_out = (struct wb_edit){0};
    *step_out = (struct wb_journal_step){.place = *at};
    if (err == 0 && reader->batch.left && is_at_stepped(reader, *at)) {
        *step_out = (struct wb_journal_step){WB_JOURNAL_RECORD, *at, reader->stepped_next, file->file.path};
        return next_of_batch(reader, file, edit_out, step_out);
    }
    if (err == 0)
        err = offset_behind(reader, file, *at, &offset);
    if (err < 0)
        return err;
    WB_CHECK(offset == 0 || offset > at->offset);
    reader->batch.left = 0;
    step_out->file = file->file.path;
    if (offset == 0)
        return 0;
    err = judge_record(reader, file, offset, step_out, &record);
    if (err < 0 || step_out->sight == WB_JOURNAL_END || step_out->sight == WB_JOURNAL_TORN)
        return err;
    WB_CHECK(step_out->place.log == at->log);
    WB_CHECK(step_out->place.offset > at->offset);
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

/* Finds the log with the next number after `after`; 0: there is none. */
static int next_log(struct wb_journal_reader *reader, uint32_t after, uint32_t *number_out)
{
    size_t at = after == UINT32_MAX ? reader->numbers.count : wb_journal_numbers_find(&reader->numbers, after + 1);

    *number_out = 0;
    if (at == reader->numbers.count && after != UINT32_MAX) {
        /* New logs may have been created since we listed the directory. */
        wb_vec_clear(&reader->numbers);
        int err = wb_journal_file_list(reader->journal, &reader->numbers);
        if (err < 0)
            return err;
        at = wb_journal_numbers_find(&reader->numbers, after + 1);
    }
    if (at < reader->numbers.count)
        *number_out = reader->numbers.items[at];
    WB_CHECK(*number_out == 0 || *number_out > after);
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
        WB_CHECK(at.log != 0 || at.offset == 0);
        if (at.log)
            more = wb_journal_reader_step(reader, &at, edit_out, &step);
        /*
         * A log that was removed or has no head yet has no records. A damaged head is reported once, on reaching the
         * log.
         */
        if (more == WB_E_NOTFOUND || ((more == WB_E_CORRUPT || more == WB_E_NEWER) && at.offset == 0 &&
                                      at_inout->log == at.log))
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
