/*
 * journal_file.c - a file of the journal: its name, number, head, lock and end.
 *
 *   0  "WBEL"   4 version 1 (2 bytes), zero (2)   8 number (4)   12 zero (4)
 *   16 writer, by chance (8)   24 checksum of 0 to 24 (8)
 *   32 end of the records (8)  40 checksum of writer and end, 16 bytes (8)   48 zero (16)
 *
 * Bytes 32 to 48 are zero until the file has ended; they are written once, in place. Where a crash
 * tears that write their checksum does not hold, and the file counts as not ended: it is looked through
 * once more, which changes nothing. Everything else is append-only. It never looks at records.
 */
#include "journal/journal_file.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/path.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    VERSION = 1,
    NUMBER_AT = 8,
    WRITER_AT = 16,
    CHECK_AT = 24,
    END_AT = 32,
    END_CHECK_AT = 40,
    END_BYTES = 16,
    NAME_MAX_BYTES = 32,
};

_Static_assert(END_AT + END_BYTES <= WB_JOURNAL_FILE_HEAD_BYTES, "the end lies in the head");

static void format_name(uint32_t number, char name_out[NAME_MAX_BYTES])
{
    snprintf(name_out, NAME_MAX_BYTES, "%08u.wbe", number);
}

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

    format_name(number, name);
    return wb_path_join(journal, name);
}

/* ---- which there are ------------------------------------------------------------------------ */

struct list {
    uint32_t *numbers;
    size_t count, cap;
};

static int list_entry(void *context, const struct wb_dir_entry *entry)
{
    struct list *list = context;
    uint32_t number;

    if (entry->kind != WB_PATH_FILE || !parse_name(entry->name, &number))
        return 0;
    if (list->count == list->cap) {
        size_t cap = list->cap ? 2 * list->cap : 64;
        uint32_t *grown = wb_realloc(list->numbers, cap * sizeof *grown);
        if (!grown)
            return WB_E_NOMEM;
        list->numbers = grown;
        list->cap = cap;
    }
    list->numbers[list->count++] = number;
    return 0;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

int wb_journal_file_list(const char *journal, uint32_t **numbers_out, size_t *count_out)
{
    struct list list = {NULL, 0, 0};
    int err = 0;

    *numbers_out = NULL;
    *count_out = 0;
    if (wb_path_kind(journal) == WB_PATH_NONE)
        return 0;
    err = wb_dir_each(journal, list_entry, &list);
    if (err < 0) {
        wb_free(list.numbers);
        return err;
    }
    /* The directory is sorted by name, which is another order from nine digits on. */
    if (list.count)
        qsort(list.numbers, list.count, sizeof *list.numbers, compare_numbers);
    *numbers_out = list.numbers;
    *count_out = list.count;
    return 0;
}

/* ---- making ----------------------------------------------------------------------------------- */

static int open_number(const char *journal, uint32_t number, unsigned flags, struct wb_journal_file *file_out)
{
    char *path = wb_journal_file_path(journal, number);

    *file_out = WB_JOURNAL_FILE_INIT;
    if (!path)
        return WB_E_NOMEM;
    int err = wb_file_open(path, flags, &file_out->file);
    wb_free(path);
    file_out->number = number;
    return err;
}

static int write_head(const struct wb_journal_file *file)
{
    char head[WB_JOURNAL_FILE_HEAD_BYTES] = {0};

    memcpy(head, "WBEL", 4);
    wb_put16(head + 4, VERSION);
    wb_put32(head + NUMBER_AT, file->number);
    wb_put64(head + WRITER_AT, file->writer);
    wb_put64(head + CHECK_AT, wb_hash64(head, CHECK_AT));
    return wb_file_write_at(&file->file, 0, head, sizeof head);
}

/* 1 where somebody else took the number, or the file away before it was locked. */
static int try_number(const char *journal, uint32_t number, uint64_t writer, struct wb_journal_file *file_out)
{
    int err = open_number(journal, number, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW, file_out);

    if (err == WB_E_INVALID)
        return 1;
    if (err < 0)
        return err;
    file_out->writer = writer;
    err = wb_file_lock(&file_out->file, true);
    /* Between making and locking, recovery in another process may take it for an orphan without a head and remove it. */
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
    uint32_t *numbers = NULL, number = after;
    size_t count = 0;
    int err;

    *file_out = WB_JOURNAL_FILE_INIT;
    err = wb_path_mkdirs(journal);
    if (err == 0)
        err = wb_journal_file_list(journal, &numbers, &count);
    if (err < 0)
        return err;
    if (count && numbers[count - 1] > number)
        number = numbers[count - 1];
    wb_free(numbers);
    do {
        if (number == UINT32_MAX)
            return wb_fail(WB_E_LIMIT, "%s has no free number left", journal);
        err = try_number(journal, ++number, writer, file_out);
    } while (err == 1);
    return err;
}

/* ---- opening and ending --------------------------------------------------------------------------- */

/* What a file holds that had its length on disk before its bytes when the power failed. */
static bool is_zero(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i])
            return false;
    return true;
}

int wb_journal_file_read_head(struct wb_journal_file *file)
{
    char head[WB_JOURNAL_FILE_HEAD_BYTES], ends[END_BYTES];
    size_t got;
    int err = wb_file_read_at(&file->file, 0, head, sizeof head, &got);

    if (err < 0)
        return err;
    /* Its records cannot be read without it; nobody refers to them, because that is done only after a sync. */
    if (got < sizeof head || is_zero(head, sizeof head))
        return wb_fail(WB_E_NOTFOUND, "%s has no head", file->file.path);
    if (memcmp(head, "WBEL", 4) != 0 || wb_get64(head + CHECK_AT) != wb_hash64(head, CHECK_AT))
        return wb_fail(WB_E_CORRUPT, "%s: the head is damaged", file->file.path);
    if (wb_get16(head + 4) > VERSION)
        return wb_fail(WB_E_NEWER, "%s was made by a newer version", file->file.path);
    if (wb_get16(head + 4) != VERSION || wb_get32(head + NUMBER_AT) != file->number)
        return wb_fail(WB_E_CORRUPT, "%s: the head is that of another file", file->file.path);
    file->writer = wb_get64(head + WRITER_AT);
    file->end = wb_get64(head + END_AT);
    memcpy(ends, head + WRITER_AT, 8);
    memcpy(ends + 8, head + END_AT, 8);
    if (file->end < WB_JOURNAL_FILE_HEAD_BYTES || wb_get64(head + END_CHECK_AT) != wb_hash64(ends, sizeof ends))
        file->end = 0;
    return 0;
}

int wb_journal_file_open(const char *journal, uint32_t number, bool write, struct wb_journal_file *file_out)
{
    int err = open_number(journal, number, write ? WB_FILE_WRITE : WB_FILE_READ, file_out);

    if (err == 0)
        err = wb_journal_file_read_head(file_out);
    if (err < 0)
        wb_journal_file_close(file_out);
    return err;
}

void wb_journal_file_close(struct wb_journal_file *file)
{
    wb_file_close(&file->file);
    *file = WB_JOURNAL_FILE_INIT;
}

int wb_journal_file_finish(struct wb_journal_file *file, uint64_t end)
{
    char ends[8 + END_BYTES];
    int err;

    WB_CHECK(end >= WB_JOURNAL_FILE_HEAD_BYTES && file->end == 0);
    /* An end that is on disk before the records it speaks of would make damage out of a power loss. */
    err = wb_file_sync(&file->file);
    if (err < 0)
        return err;
    wb_put64(ends, file->writer);
    wb_put64(ends + 8, end);
    wb_put64(ends + 16, wb_hash64(ends, END_BYTES));
    err = wb_file_write_at(&file->file, END_AT, ends + 8, END_BYTES);
    if (err == 0)
        file->end = end;
    return err;
}
