/*
 * store_state_mark.c - marks: durable names of states, by which rows are found that have changed since (store_state.h).
 * Each part has a mark of its catalog (tree_mark.c). What the caller keeps:
 *
 *   +------+--------+--------------+-------+------------------+- -  -+-------+
 *   | WBSM | format | id of the    | parts | length, mark     |      | XXH3  |
 *   |      |        | repository   |       | of the catalog   |      |       |
 *   +------+--------+--------------+-------+------------------+- -  -+-------+
 *      4       2         16            2       2, length                 8
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/path.h"
#include "store/state/store_state_own.h"

enum { FORMAT = 1, HEAD_BYTES = 4 + 2 + WB_SUPERBLOCK_ID_BYTES + 2, CHECK_BYTES = 8 };

static const char magic[4] = "WBSM";

/* ---- as bytes ------------------------------------------------------------------------------------------------- */

static int encode(const struct wb_store_state *state, const struct wb_tree_marked *marked, struct wb_buf *mark_out)
{
    char bytes[HEAD_BYTES + WB_STATE_PARTS_MAX * (2 + WB_TREE_MARK_BYTES_MAX) + CHECK_BYTES], *at = bytes + HEAD_BYTES;

    memcpy(bytes, magic, sizeof magic);
    wb_put16(bytes + 4, FORMAT);
    memcpy(bytes + 6, state->superblock.id, WB_SUPERBLOCK_ID_BYTES);
    wb_put16(bytes + 6 + WB_SUPERBLOCK_ID_BYTES, (uint16_t)state->part_count);
    for (size_t i = 0; i < state->part_count; i++) {
        size_t len = wb_tree_mark_encode(&marked[i], at + 2);
        wb_put16(at, (uint16_t)len);
        at += 2 + len;
    }
    wb_put64(at, wb_hash64(bytes, (size_t)(at - bytes)));
    wb_buf_clear(mark_out);
    return wb_buf_append(mark_out, bytes, (size_t)(at - bytes) + CHECK_BYTES);
}

size_t wb_state_mark_decode(struct wb_slice mark, const uint8_t *repository,
                            struct wb_tree_marked marked_out[WB_STATE_PARTS_MAX])
{
    if (mark.len < HEAD_BYTES + CHECK_BYTES || memcmp(mark.ptr, magic, sizeof magic) != 0 ||
        wb_get16(mark.ptr + 4) != FORMAT || memcmp(mark.ptr + 6, repository, WB_SUPERBLOCK_ID_BYTES) != 0 ||
        wb_get64(mark.ptr + mark.len - CHECK_BYTES) != wb_hash64(mark.ptr, mark.len - CHECK_BYTES))
        return 0;
    size_t count = wb_get16(mark.ptr + 6 + WB_SUPERBLOCK_ID_BYTES);
    const char *at = mark.ptr + HEAD_BYTES, *end = mark.ptr + mark.len - CHECK_BYTES;
    for (size_t i = 0; i < count; i++) {
        size_t len = end - at < 2 ? 0 : wb_get16(at);
        if (i == WB_STATE_PARTS_MAX || len == 0 || (size_t)(end - at) < 2 + len ||
            !wb_tree_mark_decode(wb_slice(at + 2, len), &marked_out[i]))
            return 0;
        at += 2 + len;
    }
    return at == end ? count : 0;
}

/* ---- setting and dropping ------------------------------------------------------------------------------------- */

/* A transaction of a catalog that sets a mark, or drops it if state is NULL. */
static int change_mark(const char *dir, const struct wb_tree_state *state, struct wb_tree_marked *mark)
{
    struct wb_catalog *catalog = NULL;
    struct wb_catalog_txn txn = {0};
    bool changed = true;
    int err = wb_catalog_open(dir, WB_TREE_WRITE, &catalog);

    if (err == 0)
        err = wb_catalog_txn_write(catalog, &txn);
    if (err == 0 && state)
        err = wb_tree_mark(wb_catalog_tree(catalog), state, mark);
    else if (err == 0)
        changed = wb_tree_unmark(wb_catalog_tree(catalog), mark);
    if (err == 0 && changed)
        err = wb_catalog_txn_commit(&txn);
    if (txn.catalog)
        wb_catalog_txn_abort(&txn);
    wb_catalog_close(catalog);
    return err;
}

int wb_store_state_mark(struct wb_store_state *state, struct wb_buf *mark_out)
{
    struct wb_tree_marked marked[WB_STATE_PARTS_MAX];
    struct wb_error_copy why;
    size_t count = 0;
    int err = 0;

    WB_CHECK(state->magic == WB_STATE_MAGIC);
    for (; count < state->part_count && err == 0; count++)
        err = change_mark(state->parts[count].dir, wb_catalog_txn_state(&state->parts[count].txn), &marked[count]);
    if (err == 0)
        err = encode(state, marked, mark_out);
    else
        count--;
    if (err == 0)
        return 0;
    wb_error_save(err, &why);
    while (count-- > 0)
        (void)change_mark(state->parts[count].dir, NULL, &marked[count]);
    return wb_error_restore(&why);
}

int wb_store_unmark(const char *dir, struct wb_slice mark)
{
    struct wb_tree_marked marked[WB_STATE_PARTS_MAX];
    struct wb_superblock superblock;
    int err = wb_superblock_read(dir, &superblock);
    size_t count = err == 0 ? wb_state_mark_decode(mark, superblock.id, marked) : 0;

    for (size_t i = 0; i < count && err == 0; i++) {
        char *path = i ? wb_path_join(dir, WB_BATCHED_UPDATE_DIR) : wb_strdup(dir);
        err = path ? change_mark(path, NULL, &marked[i]) : WB_E_NOMEM;
        wb_free(path);
    }
    return err;
}
