/*
 * bench_grow.c - measures the cost of adding a page as a store grows.
 *
 * The corpus is added again and again, each time with other URLs and other bodies.
 * Copies of a page are a whole corpus apart, so no compression window or block contains two of
 * them. The time in which variants are made is not counted, even if a store works in
 * the background meanwhile.
 */
#include "bench_store.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdio.h>
#include <unistd.h>

struct grow {
    const struct bench_job *job;
    const struct corpus *corpus;
    void *state;
    struct wb_page *pages; /* an array of job->batch */
    struct wb_buf *mems;
    size_t done;
};

static int add_batch(struct grow *g, size_t count, double *seconds)
{
    double start;
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++) {
        size_t n = g->done + i;

        err = corpus_variant(&g->corpus->pages[n % g->corpus->count], (uint32_t)(n / g->corpus->count), true,
                             &g->mems[i], &g->pages[i]);
    }
    start = bench_seconds();
    if (err == 0)
        err = g->job->peer->add(g->state, g->pages, count);
    *seconds += bench_seconds() - start;
    /* Release the buffers: otherwise each would grow to the size of the largest page and count as the store's memory.
     */
    for (size_t i = 0; i < count; i++)
        wb_buf_release(&g->mems[i]);
    g->done += count;
    return err;
}

static int grow_store(struct grow *g, uint64_t rss)
{
    double seconds = 0, cpu = bench_cpu_seconds(), total = 0, start;
    size_t mark = 10000, last = 0;
    int err = 0;

    while (g->done < g->job->pages && err == 0) {
        size_t until = mark < g->job->pages ? mark : g->job->pages;

        err = add_batch(g, until - g->done < g->job->batch ? until - g->done : g->job->batch, &seconds);
        if (err < 0 || g->done < until)
            continue;
        printf("{\"bench\":\"grow\",\"peer\":\"%s\",\"pages\":%zu,\"added\":%zu,\"seconds\":%.3f,\"pages_s\":%.0f,"
               "\"us_page\":%.1f,\"cpu_us_page\":%.1f,\"memory\":%llu}\n",
               g->job->peer->name, g->done, g->done - last, seconds, (double)(g->done - last) / seconds,
               seconds * 1e6 / (double)(g->done - last), (bench_cpu_seconds() - cpu) * 1e6 / (double)(g->done - last),
               (unsigned long long)(bench_rss_peak_bytes() - rss));
        fflush(stdout);
        total += seconds;
        seconds = 0;
        cpu = bench_cpu_seconds();
        last = g->done;
        mark = mark < 100000 ? 100000 : mark + 100000;
    }
    start = bench_seconds();
    if (err == 0)
        err = g->job->peer->finish(g->state);
    total += bench_seconds() - start;
    if (err == 0)
        printf("{\"bench\":\"grow_total\",\"peer\":\"%s\",\"pages\":%zu,\"seconds\":%.3f,\"finish_seconds\":%.3f,"
               "\"pages_s\":%.0f,\"disk\":%llu}\n",
               g->job->peer->name, g->done, total, bench_seconds() - start, (double)g->done / total,
               (unsigned long long)bench_dir_bytes(g->job->dir));
    return err;
}

int bench_grow(const struct bench_job *job, struct corpus *corpus)
{
    struct grow g = {.job = job, .corpus = corpus};
    uint64_t rss = 0;
    int err = 0;

    g.pages = wb_alloc_zero(job->batch, sizeof(*g.pages));
    g.mems = wb_alloc_zero(job->batch, sizeof(*g.mems));
    if (!g.pages || !g.mems) {
        err = WB_E_NOMEM;
        goto done;
    }
    sync();
    rss = bench_rss_bytes();
    err = job->peer->open(job->dir, true, &g.state);
    if (err == 0)
        err = grow_store(&g, rss);
done:
    if (g.state)
        job->peer->close(g.state);
    for (size_t i = 0; g.mems && i < job->batch; i++)
        wb_buf_release(&g.mems[i]);
    wb_free(g.mems);
    wb_free(g.pages);
    return err;
}
