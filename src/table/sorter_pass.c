/*
 * sorter_pass.c - reduces the number of runs until they can all be merged at once.
 *
 * Each input of a merge needs memory for its buffers. If all runs together need more than there is, neighbouring runs
 * are merged into longer ones, but no more of them than necessary. Neighbouring means by order, so that records with
 * equal keys stay in the order in which they were added. The disk space of merged runs is given back to the file
 * system.
 *
 * Only one merge exists at a time, and the last one is not run here: it is left in sorter->tree for the pump.
 */
#include "base/mem.h"
#include "os/nameless.h"
#include "table/sorter.h"

enum {
    WINDOW_MAX = 1 << 20,
    READER_ZSTD_BYTES = 160 << 10, /* memory of a zstd context for decompression */
};

/*
 * The memory that inputs may use. The output of a merge needs some too: a run writer, or the pump for the last merge.
 */
static size_t input_budget(const struct wb_sorter *sorter)
{
    WB_CHECK(sorter->magic == SORTER_MAGIC);
    WB_CHECK(sorter->readers_ready);
    size_t writer = wb_sorter_run_writer_cost(sorter->block_bytes), pump = wb_sorter_pump_cost(sorter->block_bytes);
    size_t taken = (writer > pump ? writer : pump) + sorter->readers.zstd_count * READER_ZSTD_BYTES;
    return sorter->memory_bytes > 2 * taken ? sorter->memory_bytes - taken : sorter->memory_bytes / 2;
}

static size_t total_cost(const struct wb_sorter *sorter, const struct wb_sorter_run *runs, size_t count)
{
    size_t cost = 0;

    for (size_t i = 0; i < count; i++)
        cost += wb_sorter_input_run_cost(&runs[i], sorter->block_bytes);
    return cost;
}

/* Opens an input for each run and a tree over them. The caller releases the tree, even if this fails. */
static int open_tree(struct wb_sorter *sorter, const struct wb_sorter_run *runs, size_t count,
                     struct wb_sorter_tree *tree)
{
    WB_CHECK(count > 0);
    for (size_t i = 1; i < count; i++)
        WB_CHECK(runs[i - 1].order < runs[i].order);
    struct wb_sorter_input **inputs = wb_alloc_zero(count, sizeof *inputs);
    size_t budget = input_budget(sorter), cost = total_cost(sorter, runs, count);
    size_t window = wb_sorter_input_window_min(sorter->block_bytes);
    int err = 0;

    if (!inputs)
        return WB_E_NOMEM;
    /* Memory that is left over makes the windows larger. */
    if (cost < budget)
        window += (budget - cost) / count / 2;
    window = window < WINDOW_MAX ? window : WINDOW_MAX;
    for (size_t i = 0; i < count && err == 0; i++)
        err = wb_sorter_input_open_run(&runs[i], &sorter->readers, sorter->block_bytes, window, &inputs[i]);
    if (err < 0) {
        *tree = (struct wb_sorter_tree){.inputs = inputs, .count = (uint32_t)count};
        return err;
    }
    return wb_sorter_tree_init(tree, inputs, count);
}

/* Writes everything that the tree returns as one run. */
static int write_merged(struct wb_sorter *sorter, struct wb_sorter_tree *tree, struct wb_sorter_run *run_out)
{
    struct wb_sorter_run_writer writer;
    const struct wb_sorter_input *record;
    size_t shared;
    int more, err = 0;

    WB_CHECK(tree->count >= 2);
    WB_CHECK(!tree->started);
    if (sorter->merged.fd < 0)
        err = wb_nameless_open(sorter->dir, &sorter->merged);
    if (err < 0)
        return err;
    err = wb_sorter_run_writer_init(&writer, &sorter->merged, sorter->merged_bytes, sorter->block_bytes,
                                    wb_sorter_should_pack(sorter));
    while (err == 0 && (more = wb_sorter_tree_next(tree, &record, &shared)) != 0)
        err = more < 0 ? more : wb_sorter_run_writer_add(&writer, record->key, shared, record->value);
    if (err == 0)
        err = wb_sorter_run_writer_finish(&writer, run_out);
    wb_sorter_run_writer_release(&writer);
    return err;
}

/* Merges the runs [first, first + count) into one, which takes the place of the first. */
static int merge_some(struct wb_sorter *sorter, size_t first, size_t count)
{
    struct wb_sorter_tree tree = {0};
    struct wb_sorter_run merged = {0};
    struct wb_sorter_run *runs = sorter->runs.items;
    size_t all = sorter->runs.count;

    WB_CHECK(sorter->sorted);
    WB_CHECK(count >= 2);
    WB_CHECK(first + count <= all);
    int err = open_tree(sorter, runs + first, count, &tree);
    if (err == 0)
        err = write_merged(sorter, &tree, &merged);
    wb_sorter_tree_release(&tree);
    if (err < 0)
        return err;
    sorter->merged_bytes += merged.bytes;
    sorter->stat.runs++;
    sorter->stat.run_bytes += merged.bytes;
    merged.order = runs[first].order;
    for (size_t i = first; i < first + count; i++) {
        wb_file_discard(runs[i].file, runs[i].offset, runs[i].bytes);
        merged.depth = merged.depth > runs[i].depth + 1 ? merged.depth : runs[i].depth + 1;
    }
    runs[first] = merged;
    memmove(runs + first + 1, runs + first + count, (all - first - count) * sizeof *runs);
    sorter->runs.count -= count - 1;
    return 0;
}

/*
 * How many runs to merge, starting from first: as many as fit in memory, but no more than it takes to reduce the memory
 * that all runs need by `excess` bytes. At least two, if there are two.
 */
static size_t choose_runs(const struct wb_sorter *sorter, size_t first, size_t excess)
{
    size_t all = sorter->runs.count, budget = input_budget(sorter), cost = 0, largest = 0, count = 0;
    const struct wb_sorter_run *runs = sorter->runs.items;

    WB_CHECK(first < all);
    WB_CHECK(excess > 0);
    while (first + count < all) {
        size_t more = wb_sorter_input_run_cost(&runs[first + count], sorter->block_bytes);
        if (cost + more > budget && count >= 2)
            break;
        cost += more;
        largest = largest > more ? largest : more;
        count++;
        if (count >= 2 && cost - largest >= excess)
            break;
    }
    return count;
}

int wb_sorter_merge_runs(struct wb_sorter *sorter)
{
    WB_CHECK(sorter->spilling);
    WB_CHECK(sorter->sorted);
    WB_CHECK(sorter->runs.count > 0);
    size_t cost, first = 0, budget = input_budget(sorter);
    const struct wb_sorter_run *runs = sorter->runs.items;
    int err = 0;

    while (err == 0 && sorter->runs.count > 2 && (cost = total_cost(sorter, runs, sorter->runs.count)) > budget) {
        size_t count = first + 1 < sorter->runs.count ? choose_runs(sorter, first, cost - budget) : 0;
        if (count >= 2)
            err = merge_some(sorter, first, count);
        first = count >= 2 ? first + 1 : 0; /* at the end of the runs, start the next pass */
    }
    if (err < 0)
        return err;
    for (size_t i = 0; i < sorter->runs.count; i++)
        sorter->stat.passes = sorter->stat.passes > runs[i].depth + 1 ? sorter->stat.passes : runs[i].depth + 1;
    return open_tree(sorter, runs, sorter->runs.count, &sorter->tree);
}
