/*
 * bench_webdb.c - measures edits of a database of pages and links, ours or another.
 *
 *   bench_webdb build|journal|edit|read|numbers|check --peer NAME --dir DIR [--pages N] [--edits N] [--memory MIB]
 *               [--threads N]
 *
 * build makes the initial database. journal writes the edits into the journal of a repository. edit is the main
 * measurement: it makes all edits, until they are durable and can be read. read asks for single pages and links.
 * numbers reads everything by number (only ours can). check compares the contents of the database with what they must
 * be. Prints one JSON line per measurement; bench/run makes the tables.
 */
#include "bench_webdb.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/path.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SEED = 7, READS = 20000, LISTS = 5000 };

struct job {
    const struct webdb_peer *peer;
    struct webdb_setting setting;
    uint32_t pages, edits;
};

static const struct webdb_peer *const peers[] = {
    &webdb_ours, &webdb_journal, &webdb_rocksdb, &webdb_rocksdb_bulk, &webdb_sqlite, &webdb_none,
};

uint64_t link_mix(const struct wb_webdb_link *link)
{
    return wb_hash64(link->from_md5, sizeof link->from_md5) * 3 + wb_hash64(link->to.ptr, link->to.len) * 5 +
           (wb_hash64(link->anchor.ptr, link->anchor.len) ^ wb_hash64(link->from_md5, 8)) + link->tag +
           link->flags * 256u;
}

int pack_page(const struct wb_webdb_page *page, struct wb_buf *row_out)
{
    const uint64_t numbers[] = {page->flags,
                                page->bytes,
                                page->status,
                                page->outcome,
                                page->depth,
                                page->failures,
                                page->signals,
                                (uint64_t)page->first_seen_ms,
                                (uint64_t)(page->last_seen_ms - page->first_seen_ms),
                                (uint64_t)(page->last_tried_ms - page->last_seen_ms),
                                (uint64_t)(page->last_seen_ms - page->last_changed_ms),
                                (uint64_t)page->hint_ms,
                                (uint64_t)(page->next_due_ms - page->last_seen_ms),
                                (uint64_t)page->expires_ms,
                                page->lifetime,
                                page->history.visits,
                                page->etag.len,
                                page->modified.len,
                                page->type.len};
    int err = wb_buf_reserve(row_out, 40 + sizeof numbers * 2 + page->etag.len + page->modified.len + page->type.len);

    if (err < 0)
        return err;
    wb_buf_append(row_out, page->md5, sizeof page->md5);
    wb_buf_append(row_out, &page->simhash, 8);
    wb_buf_append(row_out, &page->title_hash, 8);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        row_out->len += wb_put_varint(row_out->ptr + row_out->len, numbers[i]);
    wb_buf_append_slice(row_out, page->etag);
    wb_buf_append_slice(row_out, page->modified);
    return wb_buf_append_slice(row_out, page->type);
}

/* ---- memory, looked at all the time ------------------------------------------------------------- */

struct watch {
    pthread_t thread;
    atomic_bool ended;
    unsigned long anonymous_kb, file_kb; /* the peak of each */
};

static void look(struct watch *watch)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long kb;

    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "RssAnon: %lu kB", &kb) == 1 && kb > watch->anonymous_kb)
            watch->anonymous_kb = kb;
        if (sscanf(line, "RssFile: %lu kB", &kb) == 1 && kb > watch->file_kb)
            watch->file_kb = kb;
    }
    if (f)
        fclose(f);
}

static void *watch_memory(void *context)
{
    struct watch *watch = context;

    while (!atomic_load(&watch->ended)) {
        look(watch);
        usleep(20000);
    }
    return NULL;
}

/* ---- writing ---------------------------------------------------------------------------------------- */

static int hand_over(const struct job *job, void *state, const struct graph *graph, struct graph_page *p,
                     uint64_t *links)
{
    int err = job->peer->add_page(state, &p->page);

    for (size_t i = 0; err == 0 && i < p->link_count; i++) {
        struct wb_webdb_link link;

        graph_link(graph, p, i, &link);
        err = job->peer->add_link(state, &link);
    }
    *links += p->link_count;
    return err;
}

struct ordered {
    uint8_t md5[WB_MD5_BYTES];
    uint32_t number;
};

static int compare_md5(const void *a, const void *b)
{
    return memcmp(a, b, WB_MD5_BYTES);
}

/* Returns the order in which old pages are added: that of a crawl, or by MD5. The caller frees it. */
static struct ordered *order_pages(const struct job *job, const struct graph *graph, struct graph_page *p)
{
    struct ordered *order = wb_alloc_zero(graph->old_count, sizeof *order);

    for (uint32_t i = 0; order && i < graph->old_count; i++) {
        order[i].number = graph_shuffled(i, graph->old_count);
        graph_page(graph, true, order[i].number, 0, p);
        memcpy(order[i].md5, p->page.md5, sizeof order[i].md5);
    }
    if (order && job->peer->by_md5)
        qsort(order, graph->old_count, sizeof *order, compare_md5);
    return order;
}

static int run_build(struct job *job, const struct graph *graph)
{
    struct graph_page *p = wb_alloc(sizeof *p);
    struct ordered *order = p ? order_pages(job, graph, p) : NULL;
    uint64_t links = 0;
    void *state = NULL;
    int err;

    job->setting.build = true;
    job->setting.memory_bytes = (size_t)1 << 30; /* building is not measured */
    err = order ? job->peer->open(&job->setting, &state) : WB_E_NOMEM;
    for (uint32_t i = 0; err == 0 && i < graph->old_count; i++) {
        graph_page(graph, true, order[i].number, 0, p);
        err = hand_over(job, state, graph, p, &links);
    }
    if (err == 0)
        err = job->peer->finish(state);
    if (state)
        job->peer->close(state);
    if (err == 0)
        printf("{\"bench\":\"build\",\"peer\":\"%s\",\"pages\":%u,\"links\":%llu,\"disk\":%llu}\n", job->peer->name,
               graph->old_count, (unsigned long long)links, (unsigned long long)bench_dir_bytes(job->setting.dir));
    wb_free(order);
    wb_free(p);
    return err;
}

static int run_journal(struct job *job, const struct graph *graph)
{
    return webdb_write_journal(job->setting.dir, graph, job->edits);
}

static int make_edits(const struct job *job, const struct graph *graph, struct graph_page *p, uint64_t *links,
                      double *handed)
{
    double start = bench_seconds();
    void *state = NULL;
    int err = job->peer->open(&job->setting, &state);

    for (uint32_t i = 0; err == 0 && i < job->edits; i++) {
        graph_edit(graph, i, p);
        if (job->peer->from_journal)
            *links += p->link_count;
        else
            err = hand_over(job, state, graph, p, links);
    }
    *handed = bench_seconds() - start;
    if (err == 0)
        err = job->peer->finish(state);
    if (state)
        job->peer->close(state);
    return err;
}

static int run_edit(struct job *job, const struct graph *graph)
{
    struct graph_page *p = wb_alloc(sizeof *p);
    struct watch watch = {.anonymous_kb = 0};
    uint64_t links = 0;
    double start, cpu, seconds, handed = 0;
    int err = p ? 0 : WB_E_NOMEM;

    if (err < 0)
        return err;
    sync();
    if (pthread_create(&watch.thread, NULL, watch_memory, &watch) != 0) {
        wb_free(p);
        return wb_fail(WB_E_NOMEM, "no thread");
    }
    start = bench_seconds();
    cpu = bench_cpu_seconds();
    err = make_edits(job, graph, p, &links, &handed);
    seconds = bench_seconds() - start;
    cpu = bench_cpu_seconds() - cpu;
    atomic_store(&watch.ended, true);
    pthread_join(watch.thread, NULL);
    wb_free(p);
    if (err < 0)
        return err;
    printf("{\"bench\":\"edit\",\"peer\":\"%s\",\"page_edits\":%u,\"link_edits\":%llu,\"seconds\":%.3f,"
           "\"handed_over\":%.3f,\"cpu\":%.3f,\"edits_s\":%.0f,\"disk\":%llu,\"memory\":%llu,"
           "\"memory_anonymous\":%llu,\"memory_file\":%llu,\"settings\":\"%s\"}\n",
           job->peer->name, job->edits, (unsigned long long)links, seconds, handed, cpu,
           (double)(job->edits + links) / seconds, (unsigned long long)bench_dir_bytes(job->setting.dir),
           (unsigned long long)bench_rss_peak_bytes(), (unsigned long long)watch.anonymous_kb << 10,
           (unsigned long long)watch.file_kb << 10, job->peer->settings);
    return 0;
}

/* ---- reading ----------------------------------------------------------------------------------------- */

/* Chooses a page that exists after so many edits. */
static void random_page(const struct job *job, const struct graph *graph, uint64_t *seed, struct graph_page *p)
{
    uint32_t i = (uint32_t)(bench_random(seed) % graph->old_count);

    if (i * 2 + 1 < job->edits && bench_random(seed) % 2)
        graph_edit(graph, i * 2 + 1, p);
    else
        graph_page(graph, true, graph_shuffled(i, graph->old_count), i * 2 < job->edits, p);
}

static int read_pages(const struct job *job, const struct graph *graph, void *state, struct graph_page *p,
                      double *times)
{
    uint64_t seed = 42;
    int err = 0;

    for (size_t i = 0; err == 0 && i < READS; i++) {
        double start;

        random_page(job, graph, &seed, p);
        start = bench_seconds();
        err = job->peer->get_page(state, p->page.url);
        times[i] = bench_seconds() - start;
    }
    return err;
}

static int read_lists(const struct job *job, const struct graph *graph, void *state, struct graph_page *p,
                      double *times)
{
    uint64_t seed = 43;
    int err = 0;

    for (size_t i = 0; err == 0 && i < LISTS; i++) {
        struct webdb_sum sum = {.rows = 0};
        double start;

        random_page(job, graph, &seed, p);
        start = bench_seconds();
        err = job->peer->links_from(state, p->page.md5, &sum);
        times[i] = bench_seconds() - start;
        if (err == 0 && sum.rows != p->link_count)
            err = wb_fail(WB_E_CORRUPT, "%s: %llu links from %.*s, not %zu", job->peer->name,
                          (unsigned long long)sum.rows, WB_SLICE_ARG(p->page.url), p->link_count);
    }
    return err;
}

struct popular {
    uint64_t rows;
    double first_us, rows_s; /* medians */
};

static int read_popular(const struct job *job, const struct graph *graph, void *state, struct popular *popular)
{
    char url[GRAPH_URL_MAX];
    struct wb_slice to = graph_popular(graph, url);
    double first[101], all[11], start;
    int err = 0;

    for (size_t i = 0; err == 0 && i < 101; i++) {
        struct webdb_sum sum = {.rows = 0};

        start = bench_seconds();
        err = job->peer->links_to(state, to, 1, &sum);
        first[i] = bench_seconds() - start;
    }
    for (size_t i = 0; err == 0 && i < 11; i++) {
        struct webdb_sum sum = {.rows = 0};

        start = bench_seconds();
        err = job->peer->links_to(state, to, UINT64_MAX, &sum);
        all[i] = bench_seconds() - start;
        popular->rows = sum.rows;
    }
    popular->first_us = bench_quantile(first, 101, 0.5) * 1e6;
    popular->rows_s = (double)popular->rows / bench_quantile(all, 11, 0.5);
    return err;
}

static int run_read(struct job *job, const struct graph *graph)
{
    double *pages = wb_alloc_zero(READS, sizeof *pages), *lists = wb_alloc_zero(LISTS, sizeof *lists);
    struct graph_page *p = wb_alloc(sizeof *p);
    struct popular popular = {.rows = 0};
    void *state = NULL;
    int err = pages && lists && p ? job->peer->open_read(&job->setting, &state) : WB_E_NOMEM;

    for (int warm = 0; err == 0 && warm < 2; warm++)
        err = read_pages(job, graph, state, p, pages);
    for (int warm = 0; err == 0 && warm < 2; warm++)
        err = read_lists(job, graph, state, p, lists);
    if (err == 0)
        err = read_popular(job, graph, state, &popular);
    if (state)
        job->peer->close_read(state);
    if (err == 0)
        printf("{\"bench\":\"read\",\"peer\":\"%s\",\"get_p50_us\":%.2f,\"get_p99_us\":%.2f,\"from_p50_us\":%.2f,"
               "\"from_p99_us\":%.2f,\"to_rows\":%llu,\"to_first_us\":%.2f,\"to_rows_s\":%.0f}\n",
               job->peer->name, bench_quantile(pages, READS, 0.5) * 1e6, bench_quantile(pages, READS, 0.99) * 1e6,
               bench_quantile(lists, LISTS, 0.5) * 1e6, bench_quantile(lists, LISTS, 0.99) * 1e6,
               (unsigned long long)popular.rows, popular.first_us, popular.rows_s);
    wb_free(pages);
    wb_free(lists);
    wb_free(p);
    return err;
}

/* ---- checking --------------------------------------------------------------------------------------------- */

/* Computes what must be there: old pages that no edit changed, and what the edits added. */
static void expect(const struct job *job, const struct graph *graph, struct graph_page *p, struct webdb_sum *sum,
                   uint64_t *pages)
{
    for (uint32_t i = 0; i < graph->old_count + job->edits; i++) {
        if (i < graph->old_count && i * 2 < job->edits)
            continue;
        if (i < graph->old_count)
            graph_page(graph, true, graph_shuffled(i, graph->old_count), 0, p);
        else
            graph_edit(graph, i - graph->old_count, p);
        for (size_t k = 0; k < p->link_count; k++) {
            struct wb_webdb_link link;

            graph_link(graph, p, k, &link);
            sum->mix += link_mix(&link);
        }
        sum->rows += p->link_count;
        ++*pages;
    }
}

static int run_check(struct job *job, const struct graph *graph)
{
    struct graph_page *p = wb_alloc(sizeof *p);
    struct webdb_sum wanted = {.check = true}, got = {.check = true};
    uint64_t pages_wanted = 0, pages = 0, link_bytes = 0;
    void *state = NULL;
    int err = p ? job->peer->open_read(&job->setting, &state) : WB_E_NOMEM;

    if (err == 0)
        err = job->peer->links(state, &got);
    if (err == 0)
        err = job->peer->sizes(state, &pages, &link_bytes);
    if (state)
        job->peer->close_read(state);
    if (err == 0)
        expect(job, graph, p, &wanted, &pages_wanted);
    wb_free(p);
    if (err < 0)
        return err;
    if (got.rows != wanted.rows || got.mix != wanted.mix || (pages != pages_wanted && !job->peer->from_journal))
        return wb_fail(WB_E_CORRUPT, "%s: %llu pages and %llu links, not %llu and %llu, or others", job->peer->name,
                       (unsigned long long)pages, (unsigned long long)got.rows, (unsigned long long)pages_wanted,
                       (unsigned long long)wanted.rows);
    printf("{\"bench\":\"check\",\"peer\":\"%s\",\"ok\":true,\"pages\":%llu,\"links\":%llu,\"link_bytes\":%llu,"
           "\"bytes_a_link\":%.2f}\n",
           job->peer->name, (unsigned long long)pages, (unsigned long long)got.rows, (unsigned long long)link_bytes,
           (double)link_bytes / (double)got.rows);
    return 0;
}

/* ---- the command line --------------------------------------------------------------------------------------- */

static int run_by_number(struct job *job, const struct graph *graph)
{
    (void)graph;
    return run_numbers(&job->setting);
}

static const struct {
    const char *name;
    int (*run)(struct job *job, const struct graph *graph);
} commands[] = {
    {"build", run_build}, {"journal", run_journal},   {"edit", run_edit},
    {"read", run_read},   {"numbers", run_by_number}, {"check", run_check},
};

static int usage(void)
{
    fprintf(stderr, "usage: bench_webdb build|journal|edit|read|numbers|check --peer NAME --dir DIR [--pages N] "
                    "[--edits N] [--memory MIB] [--threads N]\n"
                    "peers:");
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
        fprintf(stderr, " %s", peers[i]->name);
    fprintf(stderr, "\n");
    return 2;
}

static bool parse_option(struct job *job, const char *name, const char *value)
{
    unsigned long number = strtoul(value, NULL, 10);

    if (strcmp(name, "--dir") == 0)
        job->setting.dir = value;
    else if (strcmp(name, "--pages") == 0 && number > 0 && number < 1u << 30)
        job->pages = (uint32_t)number;
    else if (strcmp(name, "--edits") == 0 && number < 1u << 30)
        job->edits = (uint32_t)number;
    else if (strcmp(name, "--memory") == 0 && number > 0)
        job->setting.memory_bytes = (size_t)number << 20;
    else if (strcmp(name, "--threads") == 0 && number > 0)
        job->setting.threads = (unsigned)number;
    else if (strcmp(name, "--peer") == 0)
        for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
            job->peer = strcmp(peers[i]->name, value) == 0 ? peers[i] : job->peer;
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    struct job job = {
        .setting = {.memory_bytes = (size_t)256 << 20, .threads = 2}, .pages = 200000, .edits = UINT32_MAX};
    struct graph graph = {.sites = NULL};
    int err = 0;

    for (int i = 2; i < argc; i += 2)
        if (i + 1 >= argc || !parse_option(&job, argv[i], argv[i + 1]))
            return usage();
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        if (!job.setting.dir || !job.peer)
            return usage();
        err = graph_new(SEED, job.pages, &graph);
        if (job.edits > graph_edit_count(&graph))
            job.edits = graph_edit_count(&graph);
        if (err == 0)
            err = wb_path_mkdirs(job.setting.dir);
        if (err == 0)
            err = commands[i].run(&job, &graph);
        graph_release(&graph);
        if (err < 0)
            fprintf(stderr, "bench_webdb: %s\n", wb_error_message());
        return err < 0 ? 1 : 0;
    }
    return usage();
}
