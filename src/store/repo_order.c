/*
 * repo_order.c - sorts the ops of a commit (repo_ops.h). Ids are hashes, so many of them are sorted by the bytes of
 * their upper halves, one byte after the other, without comparing anything. Those whose upper halves are the same
 * are the same page, unless somebody has taken pains: then everything is compared after all.
 */
#include "base/check.h"
#include "base/mem.h"
#include "store/repo_ops.h"

#include <stdlib.h>

enum { FEW = 256 };

/* The upper half of an id, and the number of its op. */
struct op_key {
    uint64_t hi;
    uint32_t op;
};

static int compare_ops(const void *a, const void *b, void *context)
{
    const struct wb_op *ops = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = wb_pageid_compare(ops[x].id, ops[y].id);

    return order ? order : x < y ? -1 : x > y;
}

static void compare_all(const struct wb_op *ops, size_t count, uint32_t *order_out)
{
    WB_CHECK(count <= UINT32_MAX);
    for (size_t i = 0; i < count; i++)
        order_out[i] = (uint32_t)i;
    qsort_r(order_out, count, sizeof *order_out, compare_ops, (void *)(uintptr_t)ops);
}

/* Sorts by one byte of the keys. What is equal stays in its order. */
static void distribute(const struct op_key *from, size_t count, unsigned shift, struct op_key *to)
{
    size_t starts[256] = {0}, sum = 0;

    WB_CHECK(shift < 64);
    for (size_t i = 0; i < count; i++)
        starts[from[i].hi >> shift & 255]++;
    for (size_t b = 0; b < 256; b++) {
        size_t many = starts[b];
        starts[b] = sum;
        sum += many;
    }
    WB_CHECK(sum == count);
    for (size_t i = 0; i < count; i++)
        to[starts[from[i].hi >> shift & 255]++] = from[i];
}

int wb_repo_order_ops(const struct wb_op *ops, size_t count, uint32_t *order_out)
{
    WB_CHECK(count < UINT32_MAX);
    if (count < FEW) {
        compare_all(ops, count, order_out);
        return 0;
    }
    struct op_key *keys = wb_alloc(2 * count * sizeof *keys), *from = keys, *to = keys ? keys + count : NULL;
    if (!keys)
        return WB_E_NOMEM;
    for (size_t i = 0; i < count; i++)
        keys[i] = (struct op_key){ops[i].id.hi, (uint32_t)i};
    for (unsigned shift = 0; shift < 64; shift += 8) {
        distribute(from, count, shift, to);
        struct op_key *swap = from;
        from = to;
        to = swap;
    }
    bool sorted = true;
    for (size_t i = 0; i < count; i++) {
        order_out[i] = from[i].op;
        sorted = sorted && (i == 0 || from[i - 1].hi != from[i].hi ||
                            wb_pageid_equal(ops[from[i - 1].op].id, ops[from[i].op].id));
    }
    wb_free(keys);
    if (!sorted)
        compare_all(ops, count, order_out);
    return 0;
}
