/*
 * table_support.h - what the tests of table share: seeded random numbers, a temporary directory, and records in memory
 * to compare with. Header only, because every test program is one file.
 */
#ifndef WB_TESTS_TABLE_SUPPORT_H
#define WB_TESTS_TABLE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../seeded.h"
#include "../testroot.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/path.h"
#include "table/table.h"

#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNUSED __attribute__((unused)) static
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- files ---------------------------------------------------------------------- */

UNUSED struct wb_buf read_whole(const char *path)
{
    struct wb_buf bytes;

    assert_int_equal(wb_path_read(path, (size_t)1 << 30, &bytes), 0);
    return bytes;
}

UNUSED void write_whole(const char *path, const void *bytes, size_t len)
{
    struct wb_file file;

    /* Unlinked instead of truncated: some file systems sync a file that replaces truncated contents. */
    assert_int_equal(wb_path_unlink(path), 0);
    assert_int_equal(wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &file), 0);
    assert_int_equal(wb_file_write_at(&file, 0, bytes, len), 0);
    wb_file_close(&file);
}

/* ---- records ------------------------------------------------------------------------------ */

/* Records in one buffer, in the order in which they were added. */
struct list {
    struct wb_buf bytes;
    struct item {
        size_t key_at, key_len, value_len, number;
    } *items;
    size_t count, room;
};

UNUSED void list_add(struct list *list, struct wb_slice key, struct wb_slice value)
{
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->items = realloc(list->items, list->room * sizeof *list->items);
        assert_non_null(list->items);
    }
    list->items[list->count] = (struct item){list->bytes.len, key.len, value.len, list->count};
    list->count++;
    assert_int_equal(wb_buf_append_slice(&list->bytes, key), 0);
    assert_int_equal(wb_buf_append_slice(&list->bytes, value), 0);
}

UNUSED struct wb_slice list_key(const struct list *list, size_t i)
{
    return wb_slice(list->bytes.ptr + list->items[i].key_at, list->items[i].key_len);
}

UNUSED struct wb_slice list_value(const struct list *list, size_t i)
{
    return wb_slice(list->bytes.ptr + list->items[i].key_at + list->items[i].key_len, list->items[i].value_len);
}

UNUSED void list_release(struct list *list)
{
    wb_buf_release(&list->bytes);
    free(list->items);
    *list = (struct list){0};
}

UNUSED int order_of(struct wb_slice a, struct wb_slice b)
{
    size_t least = a.len < b.len ? a.len : b.len;
    int order = least ? memcmp(a.ptr, b.ptr, least) : 0;

    return order ? order : a.len < b.len ? -1 : a.len > b.len;
}

static const struct list *sorting_list;

UNUSED int compare_items(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    const char *bytes = sorting_list->bytes.ptr;
    int order = order_of(wb_slice(bytes + a->key_at, a->key_len), wb_slice(bytes + b->key_at, b->key_len));

    return order ? order : a->number < b->number ? -1 : a->number > b->number;
}

/* Sorts by key; records with equal keys stay in the order in which they were added. */
UNUSED void list_sort(struct list *list)
{
    sorting_list = list;
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, compare_items);
}

/* Keeps the first of several records with equal keys. The list must be sorted. */
UNUSED void list_unique(struct list *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++)
        if (kept == 0 || order_of(list_key(list, kept - 1), list_key(list, i)) != 0)
            list->items[kept++] = list->items[i];
    list->count = kept;
}

UNUSED bool same_bytes(struct wb_slice a, struct wb_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/*
 * A random key of one of several kinds: empty and short ones, URLs with long common prefixes, binary keys of 10 and 16
 * bytes, keys that differ only in trailing zeros, bytes above 127, long ones.
 */
UNUSED struct wb_slice random_key(uint64_t *chance, char *memory, size_t room)
{
    static const char *const sites[] = {"com,example)/", "com,example,www)/a/very/long/common/beginning/of/many/pages/",
                                        "org,wikipedia,en)/wiki/", ""};
    size_t len = 0;

    switch (chance_below(chance, 8)) {
    case 0:
        len = chance_below(chance, 4);
        for (size_t i = 0; i < len; i++)
            memory[i] = (char)('a' + chance_below(chance, 2));
        break;
    case 1:
    case 2:
    case 3:
        len = (size_t)snprintf(memory, room, "%s%s%zu/page-%zu.html", sites[chance_below(chance, COUNT(sites))],
                               chance_below(chance, 2) ? "archive/" : "", chance_below(chance, 20),
                               chance_below(chance, 300));
        break;
    case 4:
        len = 10;
        for (size_t i = 0; i < len; i++)
            memory[i] = (char)chance_next(chance);
        break;
    case 5:
        len = 16;
        memset(memory, (int)chance_below(chance, 3), len);
        memory[chance_below(chance, 16)] = (char)chance_next(chance);
        break;
    case 6: /* trailing zeros, across the boundaries of 8 bytes */
        len = chance_below(chance, 26);
        memset(memory, 0, len);
        if (len)
            memory[0] = (char)chance_below(chance, 2);
        break;
    default:
        len = 100 + chance_below(chance, room > 600 ? 500 : room - 100);
        memset(memory, 0xff, len);
        memory[chance_below(chance, len)] = (char)chance_next(chance);
    }
    return wb_slice(memory, len);
}

UNUSED void check_ok(int err, const char *file, int line)
{
    if (err < 0) {
        fprintf(stderr, "%s:%d: %d: %s\n", file, line, err, wb_error_message());
        fail();
    }
}

#define OK(call) check_ok((call), __FILE__, __LINE__)

#endif
