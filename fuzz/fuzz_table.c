/*
 * fuzz_table.c - arbitrary bytes as tables: opened, verified, walked and searched.
 *
 * The first byte says what the rest is:
 *   0 a file, unchanged
 *   1 a file whose checksums are corrected first
 *   2 raw bytes of blocks, around which a file is made
 * A fuzzer cannot guess checksums and would never reach the code behind them, hence 1 and 2. If
 * verify finds nothing wrong, every other operation must succeed.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "table/table_format.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ASKED_MAX = 64, BLOCKS_MAX = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- correcting checksums ----------------------------------------------------------------------- */

static void mend_file(char *bytes, size_t size)
{
    size_t at = TABLE_HEAD_BYTES;

    if (size < TABLE_HEAD_BYTES + TABLE_FOOT_BYTES)
        return;
    char *foot = bytes + size - TABLE_FOOT_BYTES;
    wb_put64(bytes + 24, wb_hash64(bytes, 24));
    while (at + TABLE_BLOCK_HEAD_BYTES <= size - TABLE_FOOT_BYTES) {
        size_t block = (size_t)wb_table_block_size(bytes + at);
        if (block == 0 || block > size - TABLE_FOOT_BYTES - at)
            break;
        wb_put64(bytes + at, wb_table_checksum_at(wb_hash64(bytes + at + 8, block - 8), at));
        at += block;
    }
    wb_put64(foot + 40, size);
    wb_put64(foot + 56, wb_hash64(foot, 56));
}

/* ---- a file around raw blocks ---------------------------------------------------------------- */

static void append_block(struct wb_buf *file, struct wb_slice raw, uint32_t records, enum wb_table_block_type what)
{
    char head[TABLE_BLOCK_HEAD_BYTES] = {0};
    size_t at = file->len;

    wb_put32(head + 8, (uint32_t)raw.len);
    wb_put32(head + 12, (uint32_t)raw.len);
    wb_put32(head + 16, records);
    wb_put32(head + 20, (uint32_t)what << 8);
    WB_CHECK(wb_buf_append(file, head, sizeof head) == 0 && wb_buf_append_slice(file, raw) == 0);
    wb_put64(file->ptr + at, wb_table_checksum_at(wb_hash64(file->ptr + at + 8, file->len - at - 8), at));
}

/*
 * Each piece has the number of its records (2 bytes), its length (2 bytes), the length of its
 * key in the index (1 byte), and then raw bytes. After the last piece come 2 bytes: the total
 * length of all keys and values.
 */
static void make_file(struct wb_slice input, struct wb_buf *file)
{
    struct wb_table_block_builder index = {0};
    struct wb_buf index_raw = WB_BUF_INIT;
    struct wb_table_foot foot = {0};
    char head[TABLE_HEAD_BYTES], tail[TABLE_FOOT_BYTES], value[2 * WB_VARINT_MAX];

    wb_table_head_put("fuzz", head);
    WB_CHECK(wb_buf_append(file, head, sizeof head) == 0);
    for (; input.len > 5 && foot.blocks < BLOCKS_MAX; foot.blocks++) {
        size_t records = wb_get16(input.ptr), len = wb_get16(input.ptr + 2), key_len = (uint8_t)input.ptr[4];
        struct wb_slice raw = wb_slice(input.ptr + 5, len < input.len - 5 ? len : input.len - 5);
        /* The first record of a block has its full key after three small numbers. */
        struct wb_slice key = wb_slice(raw.ptr + 3, raw.len > 3 && foot.blocks ? raw.len - 3 : 0);
        key.len = key.len < key_len ? key.len : key_len;
        append_block(file, raw, (uint32_t)records, TABLE_BLOCK_RECORDS);
        size_t value_len = wb_put_varint(value, TABLE_BLOCK_HEAD_BYTES + raw.len);
        value_len += wb_put_varint(value + value_len, records);
        size_t shared = wb_table_key_shared(wb_buf_slice(&index.last_key), key);
        WB_CHECK(wb_table_block_builder_add(&index, &index_raw, key, shared, wb_slice(value, value_len)) == 0);
        foot.records += records;
        input = wb_slice(raw.ptr + raw.len, input.len - 5 - raw.len);
    }
    foot.raw_bytes = input.len >= 2 ? wb_get16(input.ptr) : 0;
    foot.index_at = file->len;
    uint32_t entries = index.records;
    WB_CHECK(wb_table_block_builder_finish(&index, &index_raw) == 0);
    if (entries)
        append_block(file, wb_buf_slice(&index_raw), entries, TABLE_BLOCK_INDEX);
    foot.file_bytes = file->len + sizeof tail;
    wb_table_foot_put(&foot, "fuzz", tail);
    WB_CHECK(wb_buf_append(file, tail, sizeof tail) == 0);
    wb_table_block_builder_release(&index);
    wb_buf_release(&index_raw);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void count_problem(void *context, const char *file, uint64_t offset, const char *message)
{
    (void)file;
    (void)offset;
    WB_CHECK(message[0]);
    ++*(unsigned *)context;
}

/* Walks all records in order and returns how many there were. */
static uint64_t walk(struct wb_cursor *cursor, const struct wb_table_stat *stat, bool sound)
{
    struct wb_table_record record;
    struct wb_buf last = WB_BUF_INIT;
    uint64_t count = 0, errors = 0;
    int more;

    while ((more = wb_cursor_next(cursor, &record)) != 0) {
        if (more < 0) {
            WB_CHECK(more == WB_E_CORRUPT && !sound && ++errors <= stat->blocks);
            continue;
        }
        WB_CHECK(record.number < stat->records && record.key.len <= WB_TABLE_KEY_MAX);
        if (sound)
            WB_CHECK(record.number == count &&
                     (count == 0 || wb_slice_compare(wb_buf_slice(&last), record.key) < 0));
        wb_buf_clear(&last);
        WB_CHECK(wb_buf_append_slice(&last, record.key) == 0);
        count++;
    }
    wb_buf_release(&last);
    return count;
}

static void ask(struct wb_cursor *cursor, const struct wb_table_stat *stat, struct wb_slice input, bool sound)
{
    struct wb_table_record record;
    struct wb_buf key = WB_BUF_INIT;

    for (uint64_t i = 0; i < ASKED_MAX; i++) {
        uint64_t number = stat->records <= ASKED_MAX ? i : i * (stat->records / ASKED_MAX);
        int err = wb_cursor_get_number(cursor, number, &record);
        WB_CHECK(!sound || err == (number < stat->records ? 0 : WB_E_NOTFOUND));
        if (err < 0)
            continue;
        wb_buf_clear(&key);
        WB_CHECK(wb_buf_append_slice(&key, record.key) == 0);
        err = wb_cursor_get(cursor, wb_buf_slice(&key), &record);
        WB_CHECK(!sound || (err == 0 && record.number == number));
    }
    for (size_t i = 0; i < ASKED_MAX && i < input.len; i++) {
        struct wb_slice any = wb_slice(input.ptr + i, input.len - i < 20 ? input.len - i : 20);
        int err = wb_cursor_seek(cursor, any);
        WB_CHECK(!sound || err == 0);
        if (wb_cursor_next(cursor, &record) == 1 && err == 0 && sound)
            WB_CHECK(wb_slice_compare(record.key, any) >= 0);
    }
    wb_buf_release(&key);
}

static void try_table(struct wb_slice file, struct wb_slice input)
{
    static int fd = -1;
    char path[64];
    struct wb_table *table;
    struct wb_cursor *cursor;
    struct wb_table_stat stat;
    unsigned problems = 0;
    uint64_t records;

    if (fd < 0)
        fd = memfd_create("table", 0);
    WB_CHECK(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, file.ptr, file.len, 0) == (ssize_t)file.len);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    WB_CHECK(wb_table_verify(path, "fuzz", count_problem, &problems, &records) == 0);
    int err = wb_table_open(path, "fuzz", &table);
    WB_CHECK(err == 0 || ((err == WB_E_CORRUPT || err == WB_E_NEWER) && problems == 1));
    if (err < 0)
        return;
    wb_table_stat(table, &stat);
    WB_CHECK(wb_cursor_open(table, &cursor) == 0);
    uint64_t came = walk(cursor, &stat, problems == 0);
    WB_CHECK(came <= stat.records && (problems > 0 || (came == stat.records && records == stat.records)));
    ask(cursor, &stat, input, problems == 0);
    wb_cursor_close(cursor);
    wb_table_close(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_buf file = WB_BUF_INIT;

    if (size < 1)
        return 0;
    struct wb_slice input = wb_slice((const char *)data + 1, size - 1);
    if (data[0] % 3 == 2)
        make_file(input, &file);
    else
        WB_CHECK(wb_buf_append_slice(&file, input) == 0);
    if (data[0] % 3 == 1)
        mend_file(file.ptr, file.len);
    try_table(wb_buf_slice(&file), input);
    wb_buf_release(&file);
    return 0;
}
