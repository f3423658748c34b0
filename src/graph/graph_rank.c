/*
 * graph_rank.c - PageRank by iteration.
 *
 *   share[u]  = rank[u] / links of u                          what u gives to each node that it links to
 *   rank'[v]  = (1 - d + d * loose) * jump[v] + d * (sum of share[u] over all u that link to v)
 *   loose     = sum of rank[u] over all u without links
 *
 * The sum of a node is always formed in the order of its sources. In memory, each node adds up the shares of its
 * sources (pull); from the file, each list adds its share to its successors (push), and every thread goes through
 * all lists but only adds to its own range of nodes. Sums over all nodes are formed by blocks of nodes, and then over
 * the blocks. So the result does not depend on the number of threads, or on the way.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/pool.h"
#include "graph/graph_flip.h"
#include "os/clock.h"

#include <math.h>

enum {
    RANK_BLOCK = 4096, /* nodes */
    RANK_THREADS_MAX = 64,
    RANK_PARTS = 8, /* jobs per thread, so that threads end at about the same time */
};

/* Sums over the nodes of one block. */
struct rank_block {
    double loose, change;
};

struct rank_run {
    const struct wb_graph *graph;
    uint32_t nodes;
    double damping, jump_all; /* jump_all: jump[v] of every node; 0 if there are seeds */
    double jump_seed;
    uint8_t *is_seed; /* by node; NULL: every node is one */
    uint32_t *degree; /* links of each node */
    double *ranks, *share, *next;
    struct rank_block *blocks;
    size_t block_count;
    double jump_mass;       /* 1 - d + d * loose, of this iteration */
    struct graph_flip flip; /* empty: push */
    struct wb_pool *pool;
    unsigned threads;
    struct rank_job *jobs; /* RANK_PARTS for each thread */
};

/* Part of an iteration that one thread does: blocks [from, to), or nodes [from, to). */
struct rank_job {
    struct rank_run *run;
    size_t from, to;
    struct wb_error_copy error;
};

/* ---- one iteration ----------------------------------------------------------------------------- */

static double pull(const struct rank_run *run, uint32_t v)
{
    const uint32_t *source = run->flip.sources + run->flip.starts[v];
    const uint32_t *end = run->flip.sources + run->flip.starts[v + 1];
    double sum = 0;

    for (; source < end; source++)
        sum += run->share[*source];
    return sum;
}

/* Computes the new ranks of a block of nodes, and what they give in the next iteration. */
static void finish_block(struct rank_run *run, size_t b)
{
    uint32_t from = (uint32_t)(b * RANK_BLOCK);
    uint32_t to = run->nodes - from < RANK_BLOCK ? run->nodes : from + RANK_BLOCK;
    struct rank_block sums = {0, 0};

    for (uint32_t v = from; v < to; v++) {
        double sum = run->flip.starts ? pull(run, v) : run->next[v];
        double jump = run->is_seed && run->is_seed[v] ? run->jump_seed : run->jump_all;
        double rank = run->jump_mass * jump + run->damping * sum;
        sums.change += fabs(rank - run->ranks[v]);
        run->ranks[v] = rank;
        if (run->degree[v] == 0)
            sums.loose += rank;
        run->next[v] = run->degree[v] ? rank / run->degree[v] : 0;
    }
    run->blocks[b] = sums;
}

static void finish_job(void *context)
{
    struct rank_job *job = context;

    for (size_t b = job->from; b < job->to; b++)
        finish_block(job->run, b);
}

static int push_range(struct rank_run *run, uint32_t low, uint32_t high)
{
    struct wb_graph_cursor *cursor;
    const uint32_t *list;
    uint32_t node;
    size_t count;
    int err = wb_graph_cursor_open(run->graph, &cursor);

    if (err < 0)
        return err;
    memset(run->next + low, 0, (high - low) * sizeof *run->next);
    while ((err = wb_graph_next(cursor, &node, &list, &count)) > 0) {
        double share = run->share[node];
        wb_graph_list_part(&list, &count, low, high);
        for (size_t i = 0; i < count; i++)
            run->next[list[i]] += share;
    }
    wb_graph_cursor_close(cursor);
    return err;
}

static void push_job(void *context)
{
    struct rank_job *job = context;
    int err = push_range(job->run, (uint32_t)job->from, (uint32_t)job->to);

    if (err < 0)
        wb_error_save(err, &job->error);
}

/* Divides [0, size) into so many jobs, and runs them. */
static int run_jobs(struct rank_run *run, wb_pool_job job, size_t size, size_t count)
{
    struct rank_job *jobs = run->jobs;
    int err = 0;

    WB_CHECK(count > 0 && count <= (size_t)run->threads * RANK_PARTS);
    for (size_t i = 0; i < count; i++) {
        jobs[i].run = run;
        jobs[i].from = size * i / count;
        jobs[i].to = size * (i + 1) / count;
        jobs[i].error.code = 0;
    }
    for (size_t i = 0; i < count && err == 0; i++)
        err = wb_pool_submit(run->pool, job, &jobs[i]);
    wb_pool_wait(run->pool);
    for (size_t i = 0; i < count && err == 0; i++)
        if (jobs[i].error.code)
            err = wb_error_restore(&jobs[i].error);
    return err;
}

/* loose: the rank of the nodes without links, before and after. *change_out: how much the ranks changed in total. */
static int iterate(struct rank_run *run, double loose, double *loose_out, double *change_out)
{
    size_t parts = (size_t)run->threads * RANK_PARTS;
    int err = 0;

    *loose_out = *change_out = 0;
    run->jump_mass = 1 - run->damping + run->damping * loose;
    if (!run->flip.starts)
        err = run_jobs(run, push_job, run->nodes, run->threads);
    if (err == 0)
        err = run_jobs(run, finish_job, run->block_count, run->block_count < parts ? run->block_count : parts);
    if (err < 0)
        return err;
    for (size_t b = 0; b < run->block_count; b++) {
        *loose_out += run->blocks[b].loose;
        *change_out += run->blocks[b].change;
    }
    double *swap = run->share;
    run->share = run->next;
    run->next = swap;
    return 0;
}

/* ---- beginning and end ------------------------------------------------------------------------- */

static int take_seeds(struct rank_run *run, const struct wb_graph_rank_options *options)
{
    size_t different = 0;

    run->jump_all = 1.0 / run->nodes;
    if (!options->seeds)
        return 0;
    run->is_seed = wb_alloc_zero(run->nodes, 1);
    if (!run->is_seed)
        return WB_E_NOMEM;
    for (size_t i = 0; i < options->seed_count; i++) {
        if (options->seeds[i] >= run->nodes)
            return wb_fail(WB_E_INVALID, "the graph has no node %u to start from", options->seeds[i]);
        different += !run->is_seed[options->seeds[i]];
        run->is_seed[options->seeds[i]] = 1;
    }
    if (different == 0)
        return wb_fail(WB_E_INVALID, "a personalised rank needs at least one node to start from");
    run->jump_all = 0;
    run->jump_seed = 1.0 / (double)different;
    return 0;
}

/* Brings the graph into memory if it fits into the limit, and sets the degrees in any case. */
static int load_arcs(struct rank_run *run, size_t memory_bytes)
{
    struct wb_graph_stat stat;
    uint32_t *in = wb_alloc((size_t)run->nodes * sizeof *in);

    if (!in)
        return WB_E_NOMEM;
    wb_graph_stat(run->graph, &stat);
    int err = wb_graph_degrees(run->graph, in, run->degree);
    if (err == 0 && stat.arcs <= memory_bytes / 4 && stat.arcs * 4 + stat.nodes * 8 <= memory_bytes)
        err = wb_graph_flip_load(run->graph, 0, run->nodes, in, &run->flip);
    wb_free(in);
    return err;
}

/* The first ranks are the jumps themselves. Returns the rank of nodes without links. */
static double begin_ranks(struct rank_run *run)
{
    double loose = 0;

    for (uint32_t v = 0; v < run->nodes; v++) {
        double rank = run->is_seed && run->is_seed[v] ? run->jump_seed : run->jump_all;
        run->ranks[v] = rank;
        run->share[v] = run->degree[v] ? rank / run->degree[v] : 0;
        loose += run->degree[v] ? 0 : rank;
    }
    return loose;
}

static int run_all(struct rank_run *run, const struct wb_graph_rank_options *options, struct wb_graph_rank_stat *stat)
{
    double tolerance = options->tolerance > 0 ? options->tolerance : 1e-12;
    unsigned most = options->iterations ? options->iterations : 1000;
    int64_t start = wb_clock_mono_ns();
    int err = take_seeds(run, options);

    if (err == 0)
        err = load_arcs(run, options->memory_bytes ? options->memory_bytes : (size_t)1 << 30);
    if (err < 0)
        return err;
    stat->in_memory = run->flip.starts != NULL;
    int64_t loaded = wb_clock_mono_ns();
    stat->build_s = (double)(loaded - start) / 1e9;
    double loose = begin_ranks(run);
    do {
        if (options->go_on && !options->go_on(options->context))
            return wb_fail(WB_E_STOPPED, "stopped while ranking");
        err = iterate(run, loose, &loose, &stat->change);
        stat->iterations++;
    } while (err == 0 && stat->change >= tolerance && stat->iterations < most);
    stat->rank_s = (double)(wb_clock_mono_ns() - loaded) / 1e9;
    return err;
}

static void release_run(struct rank_run *run)
{
    wb_pool_free(run->pool);
    wb_graph_flip_release(&run->flip);
    wb_free(run->is_seed);
    wb_free(run->degree);
    wb_free(run->share);
    wb_free(run->next);
    wb_free(run->blocks);
    wb_free(run->jobs);
}

int wb_graph_rank(const struct wb_graph *graph, const struct wb_graph_rank_options *options, double *ranks_out,
                  struct wb_graph_rank_stat *stat_out)
{
    struct wb_graph_rank_stat unused;
    struct wb_graph_rank_stat *stat = stat_out ? stat_out : &unused;
    struct wb_graph_stat size;
    struct rank_run run = {
        .graph = graph, .ranks = ranks_out, .damping = options->damping > 0 ? options->damping : 0.85};

    *stat = (struct wb_graph_rank_stat){0};
    wb_graph_stat(graph, &size);
    if (run.damping >= 1)
        return wb_fail(WB_E_INVALID, "a damping of %g never comes to an end; it must be less than 1", run.damping);
    if (size.nodes == 0)
        return 0;
    run.nodes = (uint32_t)size.nodes;
    run.threads = options->threads == 0 ? 2 : options->threads < RANK_THREADS_MAX ? options->threads : RANK_THREADS_MAX;
    run.block_count = (run.nodes - 1) / RANK_BLOCK + 1;
    run.degree = wb_alloc((size_t)run.nodes * sizeof *run.degree);
    run.share = wb_alloc((size_t)run.nodes * sizeof *run.share);
    run.next = wb_alloc((size_t)run.nodes * sizeof *run.next);
    run.blocks = wb_alloc(run.block_count * sizeof *run.blocks);
    run.jobs = wb_alloc_zero((size_t)run.threads * RANK_PARTS, sizeof *run.jobs);
    int err = run.degree && run.share && run.next && run.blocks && run.jobs ? 0 : WB_E_NOMEM;
    if (err == 0)
        err = wb_pool_new(run.threads > 1 ? run.threads : 0, &run.pool);
    if (err == 0)
        err = run_all(&run, options, stat);
    release_run(&run);
    return err;
}
