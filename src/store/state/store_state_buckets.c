/*
 * store_state_buckets.c - bucket files of a state (store_state.h): they change in place, so what is wanted of them is
 * copied aside (pagefile/bucket_aside.h). Most of it is copied while writers go on. Then a transaction of the catalog
 * keeps them waiting, and only what has changed meanwhile is copied again: so the buckets and the rows are of the same
 * moment.
 *
 * The stamps of a state, by which a later one finds what has changed since:
 *
 *   +------+--------+--------------+-------+-------------------------------------------------------+- -  -+------+
 *   | WBSS | format | id of the    | count | part, number, revision, last stamp, end of the extents |      | XXH3 |
 *   +------+--------+--------------+-------+-------------------------------------------------------+- -  -+------+
 *      4       2         16            4        2      4        4           8            8                    8
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/nameless.h"
#include "store/state/store_state_own.h"

enum {
    MANY = 32,      /* buckets: if so many were copied, there may be others by now ... */
    PASSES_MAX = 4, /* ... but a writer that is faster than we are has to wait in the end */
};
enum { FORMAT = 1, HEAD_BYTES = 4 + 2 + WB_SUPERBLOCK_ID_BYTES + 4, FILE_BYTES = 26, CHECK_BYTES = 8 };

static const char magic[4] = "WBSS";

/* ---- stamps --------------------------------------------------------------------------------------------------- */

int wb_store_state_stamps(struct wb_store_state *state, struct wb_buf *stamps_out)
{
    char head[HEAD_BYTES], check[CHECK_BYTES];
    uint32_t count = 0;
    int err;

    WB_CHECK(state->magic == WB_STATE_MAGIC);
    wb_buf_clear(stamps_out);
    memcpy(head, magic, sizeof magic);
    wb_put16(head + 4, FORMAT);
    memcpy(head + 6, state->superblock.id, WB_SUPERBLOCK_ID_BYTES);
    err = wb_buf_append(stamps_out, head, sizeof head);
    for (size_t p = 0; p < state->part_count && err == 0; p++)
        for (size_t i = 0; state->parts[p].kind->in_place && i < state->parts[p].rows.count && err == 0; i++) {
            const struct wb_catalog_segment *row = &state->parts[p].rows.items[i];
            char file[FILE_BYTES];
            wb_put16(file, (uint16_t)p);
            wb_put32(file + 2, row->number);
            wb_put32(file + 6, row->revision);
            wb_put64(file + 10, row->logical_end);
            wb_put64(file + 18, row->bytes);
            err = wb_buf_append(stamps_out, file, sizeof file);
            count++;
        }
    if (err < 0)
        return err;
    wb_put32(stamps_out->ptr + HEAD_BYTES - 4, count);
    wb_put64(check, wb_hash64(stamps_out->ptr, stamps_out->len));
    return wb_buf_append(stamps_out, check, sizeof check);
}

bool wb_state_stamps_valid(const struct wb_buf *stamps, const uint8_t *repository)
{
    const char *at = stamps->ptr;

    return stamps->len >= HEAD_BYTES + CHECK_BYTES && memcmp(at, magic, sizeof magic) == 0 &&
           wb_get16(at + 4) == FORMAT && memcmp(at + 6, repository, WB_SUPERBLOCK_ID_BYTES) == 0 &&
           (stamps->len - HEAD_BYTES - CHECK_BYTES) == (uint64_t)wb_get32(at + HEAD_BYTES - 4) * FILE_BYTES &&
           wb_get64(at + stamps->len - CHECK_BYTES) == wb_hash64(at, stamps->len - CHECK_BYTES);
}

/* What was carried before of a file; the stamps are valid, or NULL. */
static void take_since(const struct wb_buf *stamps, size_t part, struct wb_bucket_aside *aside)
{
    uint32_t count = stamps ? wb_get32(stamps->ptr + HEAD_BYTES - 4) : 0;

    for (uint32_t i = 0; i < count; i++) {
        const char *at = stamps->ptr + HEAD_BYTES + (size_t)i * FILE_BYTES;
        if (wb_get16(at) == part && wb_get32(at + 2) == aside->file.number &&
            wb_get32(at + 6) == aside->file.revision) {
            aside->since_stamp = wb_get64(at + 10);
            aside->since_end = wb_get64(at + 18);
        }
    }
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

struct wb_bucket_aside *wb_state_aside(const struct wb_state_part *part, const struct wb_catalog_segment *row)
{
    for (size_t i = 0; i < part->asides.count; i++)
        if (part->asides.items[i]->file.number == row->number && part->asides.items[i]->file.revision == row->revision)
            return part->asides.items[i];
    return NULL;
}

/* Finds the file of a row, or opens it. */
static int open_aside(struct wb_store_state *state, struct wb_state_part *part, const struct wb_catalog_segment *row,
                      struct wb_bucket_aside **aside_out)
{
    struct wb_node *node;

    *aside_out = wb_state_aside(part, row);
    if (*aside_out)
        return 0;
    int err = wb_nodes_find(&part->nodes, row->node, &node);
    struct wb_bucket_aside *aside = err == 0 ? wb_alloc(sizeof *aside) : NULL;
    if (err < 0 || !aside)
        return err < 0 ? err : WB_E_NOMEM;
    err = wb_bucket_aside_open(node, part->superblock.id, row, aside);
    if (err == 0)
        err = wb_vec_push(&part->asides, aside);
    if (err < 0) {
        wb_bucket_aside_close(aside);
        wb_free(aside);
        return err;
    }
    take_since(state->since, (size_t)(part - state->parts), aside);
    *aside_out = aside;
    return 0;
}

void wb_state_asides_release(struct wb_state_part *part)
{
    for (size_t i = 0; i < part->asides.count; i++) {
        wb_bucket_aside_close(part->asides.items[i]);
        wb_free(part->asides.items[i]);
    }
    wb_vec_release(&part->asides);
}

/* Copies what is wanted of all files of the state that is held. */
static int copy_files(struct wb_store_state *state, struct wb_state_part *part, bool alone, bool *settled_out)
{
    int err = 0;

    *settled_out = true;
    for (size_t i = 0; i < part->rows.count && err == 0 && *settled_out; i++) {
        struct wb_bucket_aside *aside;
        err = open_aside(state, part, &part->rows.items[i], &aside);
        if (err == 0 && alone)
            err = wb_bucket_aside_settled(aside, &part->rows.items[i], settled_out);
        if (err == 0 && *settled_out)
            err = wb_bucket_aside_copy(aside, &part->rows.items[i], alone, &state->room);
    }
    return err;
}

int wb_state_buckets_prepare(struct wb_store_state *state, struct wb_state_part *part)
{
    int err = state->room.file.fd < 0 ? wb_nameless_open(state->parts[0].dir, &state->room.file) : 0;
    uint64_t more = MANY;

    WB_CHECK(part->kind->in_place);
    for (unsigned i = 0; i < PASSES_MAX && more >= MANY && err == 0; i++) {
        uint64_t before = state->room.copied;
        bool settled;
        err = wb_state_part_hold(part);
        if (err == 0)
            err = copy_files(state, part, false, &settled);
        wb_state_part_let_go(part);
        more = state->room.copied - before;
    }
    return err;
}

int wb_state_buckets_hold(struct wb_store_state *state, struct wb_state_part *part, bool *settled_out)
{
    struct wb_catalog *catalog = NULL;
    struct wb_catalog_txn alone = {0};
    struct wb_error_copy why;
    int err = wb_catalog_open(part->dir, WB_TREE_WRITE, &catalog);

    WB_CHECK(part->kind->in_place);
    *settled_out = true;
    if (err == 0)
        err = wb_catalog_txn_write(catalog, &alone);
    if (err == 0)
        err = wb_state_part_hold(part);
    if (err == 0)
        err = copy_files(state, part, true, settled_out);
    wb_error_save(err, &why);
    if (alone.catalog)
        wb_catalog_txn_abort(&alone);
    wb_catalog_close(catalog);
    return err < 0 ? wb_error_restore(&why) : 0;
}
