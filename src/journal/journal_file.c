/*
 * journal_file.c - one log of the journal as a file: its name, number, head, lock and end. It never looks at records.
 *
 * The head, 64 bytes, numbers little-endian:
 *
 *   0      4         6      8        12     16       24         32     40           48     64
 *   +------+---------+------+--------+------+--------+----------+------+------------+------+---- - -
 *   | WBEL | version | zero | number | zero | writer | checksum | end  | checksum   | zero | records
 *   +------+---------+------+--------+------+--------+----------+------+------------+------+---- - -
 *                                                     of 0 to 24         of writer
 *                                                                        and end
 *
 * Bytes 32 to 48 are zero until the log has ended. They are written once, in place; everything else is append-only.
 * If a crash interrupts that write, their checksum is wrong and the log counts as not ended. Recovery then reads it
 * once more, finds the same records and writes the same end.
 */
#include "journal/journal_file.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/path.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    FORMAT = 1,
    FORMAT_AT = 4,
    NUMBER_AT = 8,
    WRITER_AT = 16,
    CHECK_AT = 24,
    END_AT = 32,
    END_CHECK_AT = 40,
    END_BYTES = 16, /* the end and its checksum */
    NAME_MAX_BYTES = 32,
};

_Static_assert(WB_JOURNAL_FILE_HEAD_BYTES == 64, "the head of a log has 64 bytes on disk");
_Static_assert(CHECK_AT == WRITER_AT + 8 && END_AT == CHECK_AT + 8, "the first checksum covers all before it");
_Static_assert(END_CHECK_AT == END_AT + 8 && END_AT + END_BYTES == END_CHECK_AT + 8, "the end is written in one piece");
_Static_assert(END_AT + END_BYTES <= WB_JOURNAL_FILE_HEAD_BYTES, "the end is part of the head");

/* ---- names and numbers ------------------------------------------------------------------------------------------- */

static void format_name(uint32_t number, char name_out[NAME_MAX_BYTES])
{
    int length = snprintf(name_out, NAME_MAX_BYTES, "%08u.wbe", number);

    WB_CHECK(length > 0);
    WB_CHECK(length < NAME_MAX_BYTES);
}

/* False if this is not the name that a log has: "7.wbe" is not "00000007.wbe". */
static bool parse_name(const char *name, uint32_t *number_out)
{
    char canonical[NAME_MAX_BYTES];
    unsigned long long number = strtoull(name, NULL, 10);

    *number_out = (uint32_t)number;
    format_name(*number_out, canonical);
    return *number_out != 0 && strcmp(canonical, name) == 0;
}

char *wb_journal_file_path(const char *journal, uint32_t number)
{
    char name[NAME_MAX_BYTES];

    WB_CHECK(number != 0);
    format_name(number, name);
    return wb_path_join(journal, name);
}

static int list_entry(void *context, const struct wb_path_entry *entry)
{
    struct wb_journal_numbers *numbers = context;
    uint32_t number;

    if (entry->kind != WB_PATH_FILE || !parse_name(entry->name, &number))
        return 0;
    WB_CHECK(number != 0);
    return wb_vec_push(numbers, number);
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

int wb_journal_file_list(const char *journal, struct wb_journal_numbers *numbers_out)
{
    int err = 0;

    WB_CHECK(numbers_out->count == 0);
    if (wb_path_kind(journal) == WB_PATH_NONE)
        return 0;
    err = wb_path_each(journal, list_entry, numbers_out);
    if (err < 0) {
        wb_vec_release(numbers_out);
        return err;
    }
    /* The directory is sorted by name. That is not the order of the numbers if some have more than eight digits. */
    if (numbers_out->count)
        qsort(numbers_out->items, numbers_out->count, sizeof *numbers_out->items, compare_numbers);
    for (size_t i = 1; i < numbers_out->count; i++)
        WB_CHECK(numbers_out->items[i - 1] < numbers_out->items[i]);
    return 0;
}

size_t wb_journal_numbers_find(const struct wb_journal_numbers *numbers, uint32_t number)
{
    size_t low = 0, high = numbers->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (numbers->items[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    WB_CHECK(low == numbers->count || numbers->items[low] >= number);
    WB_CHECK(low == 0 || numbers->items[low - 1] < number);
    return low;
}

/* ---- creating -------------------------------------------------------------------------------------------------- */

static int open_number(const char *journal, uint32_t number, unsigned flags, struct wb_journal_file *file_out)
{
    WB_CHECK(number != 0);
    char *path = wb_journal_file_path(journal, number);

    *file_out = WB_JOURNAL_FILE_INIT;
    if (!path)
        return WB_E_NOMEM;
    int err = wb_file_open(path, flags, &file_out->file);
    wb_free(path);
    if (err == 0)
        file_out->number = number;
    return err;
}

static int write_head(const struct wb_journal_file *file)
{
    char head[WB_JOURNAL_FILE_HEAD_BYTES] = {0};

    WB_CHECK(file->number != 0);
    WB_CHECK(file->end == 0);
    memcpy(head, "WBEL", 4);
    wb_put16(head + FORMAT_AT, FORMAT);
    wb_put32(head + NUMBER_AT, file->number);
    wb_put64(head + WRITER_AT, file->writer);
    wb_put64(head + CHECK_AT, wb_hash64(head, CHECK_AT));
    return wb_file_write_at(&file->file, 0, head, sizeof head);
}

/* Returns 1 if this number cannot be had: another process took it, or removed our file before we had locked it. */
static int try_number(const char *journal, uint32_t number, uint64_t writer, struct wb_journal_file *file_out)
{
    WB_CHECK(number != 0);
    int err = open_number(journal, number, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW, file_out);

    if (err == WB_E_INVALID)
        return 1;
    if (err < 0)
        return err;
    WB_CHECK(file_out->number == number);
    file_out->writer = writer;
    err = wb_file_lock(&file_out->file, true);
    /*
     * Before we had the lock, recovery in another process may have removed the file, as one whose writer died at
     * once.
     */
    if (err == 0 && wb_file_unlinked(&file_out->file)) {
        wb_journal_file_close(file_out);
        return 1;
    }
    if (err == 0)
        err = write_head(file_out);
    if (err < 0) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        wb_path_unlink(file_out->file.path);
        wb_journal_file_close(file_out);
        return wb_error_restore(&why);
    }
    return 0;
}

int wb_journal_file_create(const char *journal, uint64_t writer, uint32_t after, struct wb_journal_file *file_out)
{
    struct wb_journal_numbers numbers = WB_VEC_INIT;
    uint32_t number = after;
    int err;

    *file_out = WB_JOURNAL_FILE_INIT;
    err = wb_path_mkdirs(journal);
    if (err == 0)
        err = wb_journal_file_list(journal, &numbers);
    if (err < 0)
        return err;
    if (numbers.count && numbers.items[numbers.count - 1] > number)
        number = numbers.items[numbers.count - 1];
    WB_CHECK(number >= after);
    wb_vec_release(&numbers);
    do {
        if (number == UINT32_MAX)
            return wb_fail(WB_E_LIMIT, "%s has no free number left", journal);
        err = try_number(journal, ++number, writer, file_out);
    } while (err == 1);
    WB_CHECK(err < 0 || (file_out->number > after && file_out->end == 0));
    return err;
}

/* ---- opening and ending ---------------------------------------------------------------------------------------- */

/* A power failure can leave a file with its length but without its bytes: then they are zero. */
static bool is_zero(const char *bytes, size_t len)
{
    WB_CHECK(len == WB_JOURNAL_FILE_HEAD_BYTES);
    for (size_t i = 0; i < len; i++)
        if (bytes[i])
            return false;
    return true;
}

/* The checksum that makes an end valid. It covers the writer too, so that it fits no other log. */
static uint64_t end_checksum(uint64_t writer, uint64_t end)
{
    char bytes[16];

    WB_CHECK(end >= WB_JOURNAL_FILE_HEAD_BYTES);
    wb_put64(bytes, writer);
    wb_put64(bytes + 8, end);
    return wb_hash64(bytes, sizeof bytes);
}

int wb_journal_file_read_head(struct wb_journal_file *file)
{
    char head[WB_JOURNAL_FILE_HEAD_BYTES];
    size_t got;
    int err = wb_file_read_at(&file->file, 0, head, sizeof head, &got);

    WB_CHECK(file->number != 0);
    if (err < 0)
        return err;
    /* Without a head the records cannot be read. Nobody refers to them: that is allowed only after a sync. */
    if (got < sizeof head || is_zero(head, sizeof head))
        return wb_fail(WB_E_NOTFOUND, "%s has no head", file->file.path);
    if (memcmp(head, "WBEL", 4) != 0 || wb_get64(head + CHECK_AT) != wb_hash64(head, CHECK_AT))
        return wb_fail(WB_E_CORRUPT, "%s: the head is damaged", file->file.path);
    if (wb_get16(head + FORMAT_AT) != FORMAT)
        return wb_fail_format(file->file.path, wb_get16(head + FORMAT_AT), FORMAT);
    if (wb_get32(head + NUMBER_AT) != file->number)
        return wb_fail(WB_E_CORRUPT, "%s: the head is that of another file", file->file.path);
    file->writer = wb_get64(head + WRITER_AT);
    file->end = wb_get64(head + END_AT);
    if (file->end < WB_JOURNAL_FILE_HEAD_BYTES ||
        wb_get64(head + END_CHECK_AT) != end_checksum(file->writer, file->end))
        file->end = 0;
    WB_CHECK(file->end == 0 || file->end >= WB_JOURNAL_FILE_HEAD_BYTES);
    return 0;
}

int wb_journal_file_open(const char *journal, uint32_t number, bool write, struct wb_journal_file *file_out)
{
    int err = open_number(journal, number, write ? WB_FILE_WRITE : WB_FILE_READ, file_out);

    if (err == 0)
        err = wb_journal_file_read_head(file_out);
    if (err < 0)
        wb_journal_file_close(file_out);
    WB_CHECK(err < 0 || (file_out->number == number && file_out->file.path));
    return err;
}

void wb_journal_file_close(struct wb_journal_file *file)
{
    wb_file_close(&file->file);
    *file = WB_JOURNAL_FILE_INIT;
}

int wb_journal_file_finish(struct wb_journal_file *file, uint64_t end)
{
    char bytes[END_BYTES];
    int err;

    WB_CHECK(file->number != 0);
    WB_CHECK(file->end == 0);
    WB_CHECK(end >= WB_JOURNAL_FILE_HEAD_BYTES);
    /* If the end were on disk before the records that it covers, a power failure would look like damage. */
    err = wb_file_sync(&file->file);
    if (err < 0)
        return err;
    WB_CHECK(file->file.fd >= 0);
    wb_put64(bytes, end);
    wb_put64(bytes + 8, end_checksum(file->writer, end));
    err = wb_file_write_at(&file->file, END_AT, bytes, END_BYTES);
    if (err == 0)
        file->end = end;
    return err;
}
