/*
 * fuzz_linklist.c - arbitrary bytes as pieces of link lists and as manifests.
 *
 * The first byte says what the rest is:
 *   0 a piece of a list of links      1 a manifest without its checksum, which is computed
 * Whatever can be read is written and read again, and must be the same.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/path.h"
#include "webdb/edition.h"
#include "webdb/linklist.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t read_items(struct wb_slice piece, struct wb_linkitem items_out[WB_LINKLIST_ITEMS])
{
    struct wb_linklist list;
    size_t count = 0;
    int more = wb_linklist_open(&list, piece);

    while (more == 0 && count < WB_LINKLIST_ITEMS && (more = wb_linklist_next(&list, &items_out[count])) == 1) {
        struct wb_linkitem *item = &items_out[count];
        WB_CHECK(count == 0 || item->number > item[-1].number);
        WB_CHECK(item->anchor.len <= 255 && item->anchor.ptr >= piece.ptr &&
                 item->anchor.ptr + item->anchor.len <= piece.ptr + piece.len);
        count++;
        more = 0;
    }
    WB_CHECK(more == 0 || more == WB_E_CORRUPT);
    if (more < 0)
        return 0;
    WB_CHECK(count >= 1 && count == list.count && wb_linklist_next(&list, &(struct wb_linkitem){.number = 0}) == 0);
    return count;
}

/* The numbers alone are the same as those of the items, or they are too large. */
static void try_numbers(struct wb_slice piece, const struct wb_linkitem *items, size_t count)
{
    static uint32_t numbers[WB_LINKLIST_ITEMS];
    struct wb_linklist list;

    if (wb_linklist_open(&list, piece) < 0)
        return;
    if (wb_linklist_numbers(wb_linklist_tail(&list), list.count, 1ull << 32, numbers) < 0)
        WB_CHECK(count == 0 || items[count - 1].number > UINT32_MAX);
    else
        for (size_t i = 0; i < count; i++)
            WB_CHECK(numbers[i] == items[i].number);
}

static void try_piece(struct wb_slice piece)
{
    static struct wb_linkitem items[WB_LINKLIST_ITEMS], again[WB_LINKLIST_ITEMS];
    struct wb_buf buf = WB_BUF_INIT;
    size_t count = read_items(piece, items);

    try_numbers(piece, items, count);
    if (count == 0)
        return;
    WB_CHECK(wb_linklist_encode(items, count, &buf) == 0);
    WB_CHECK(read_items(wb_buf_slice(&buf), again) == count);
    for (size_t i = 0; i < count; i++)
        WB_CHECK(items[i].number == again[i].number && items[i].tag == again[i].tag &&
                 items[i].flags == again[i].flags && wb_slice_equal(items[i].anchor, again[i].anchor));
    wb_buf_release(&buf);
}

static void write_file(const char *path, struct wb_slice bytes)
{
    struct wb_file file;

    WB_CHECK(wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_TRUNCATE, &file) == 0);
    WB_CHECK(wb_file_write_at(&file, 0, bytes.ptr, bytes.len) == 0);
    wb_file_close(&file);
}

static void try_manifest(struct wb_slice bytes)
{
    struct wb_buf whole = WB_BUF_INIT, again = WB_BUF_INIT;
    struct wb_manifest manifest;
    char path[64];

    snprintf(path, sizeof path, "/tmp/webbase-fuzz-manifest-%d", (int)getpid());
    WB_CHECK(wb_buf_reserve(&whole, bytes.len + 8) == 0);
    memcpy(whole.ptr, bytes.ptr, bytes.len);
    wb_put64(whole.ptr + bytes.len, wb_hash64(bytes.ptr, bytes.len));
    whole.len = bytes.len + 8;
    write_file(path, wb_buf_slice(&whole));
    int err = wb_manifest_read(path, &manifest);
    WB_CHECK(err == 0 || err == WB_E_CORRUPT || err == WB_E_NEWER);
    if (err == 0) {
        WB_CHECK(wb_manifest_write(path, &manifest) == 0 && wb_path_read(path, whole.len, &again) == 0);
        WB_CHECK(wb_slice_equal(wb_buf_slice(&whole), wb_buf_slice(&again)));
    }
    wb_manifest_release(&manifest);
    wb_path_unlink(path);
    wb_buf_release(&whole);
    wb_buf_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct wb_slice rest = wb_slice((const char *)data + 1, size - 1);
    if (data[0] == 0)
        try_piece(rest);
    else if (data[0] == 1)
        try_manifest(rest);
    return 0;
}
