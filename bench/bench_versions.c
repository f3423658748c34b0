/*
 * bench_versions.c - measures a repository that remembers: many versions of each page, and many snapshots.
 *
 *   bench_versions add      --dir DIR --corpus DIR   a store of policy `all`, and N versions of the corpus
 *   bench_versions compact  --dir DIR --corpus DIR   compacts it, and says what its bytes are
 *   bench_versions get      --dir DIR --corpus DIR   gets pages of each version, in turns, and checks them
 *   bench_versions seal     --dir DIR --corpus DIR   seals snapshots of a store of many small pages
 *   bench_versions twin     --dir DIR --corpus DIR   two stores with the same pages, one of them with snapshots
 *   bench_versions held     --dir DIR --corpus DIR   gets and scans of both, in turns
 *
 * How a version differs from the one before is described in bench_edit.h. Each command prints JSON lines.
 */
#include "bench_versions.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "bench_edit.h"
#include "move/move.h"
#include "os/path.h"
#include "pagefile/segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- adding ------------------------------------------------------------------------------------------------ */

struct adding {
    const struct versions_job *job;
    struct corpus *corpus;
    struct editor editor;
    struct wb_buf *mems; /* the present version of each page borrows from here */
    uint64_t *hashes;    /* of the bodies, version by version */
};

static int make_version(struct adding *a, size_t version)
{
    int err = 0;

    for (size_t i = 0; i < a->corpus->count && err == 0; i++) {
        struct wb_page *page = &a->corpus->pages[i];
        struct wb_buf mem = WB_BUF_INIT;

        if (version > 0) {
            err = editor_next(&a->editor, page, version * 1000003 + i, VERSION_STEP_MS, &mem, page);
            wb_buf_release(&a->mems[i]);
            a->mems[i] = mem;
        }
        a->hashes[version * a->corpus->count + i] = wb_hash64(page->body.ptr, page->body.len);
    }
    return err;
}

static int add_version(struct adding *a, struct wb_store *store, size_t version)
{
    struct wb_store_commit_counts counts = {0};
    double start = bench_seconds(), cpu = bench_cpu_seconds();
    int err = 0;

    for (size_t i = 0; i < a->corpus->count && err == 0; i++) {
        err = wb_store_put(store, &a->corpus->pages[i], NULL);
        if (err == 0 && ((i + 1) % a->job->batch == 0 || i + 1 == a->corpus->count))
            err = wb_store_commit(store, &counts);
    }
    start = bench_seconds() - start;
    cpu = bench_cpu_seconds() - cpu;
    if (err == 0)
        printf("{\"bench\":\"version\",\"version\":%zu,\"pages\":%zu,\"seconds\":%.4f,\"cpu\":%.4f,\"pages_s\":%.0f,"
               "\"pages_cpu_s\":%.0f,\"new\":%llu,\"disk\":%llu,\"words_share\":%.4f,\"text_share\":%.4f}\n",
               version + 1, a->corpus->count, start, cpu, (double)a->corpus->count / start,
               (double)a->corpus->count / cpu, (unsigned long long)(counts.added + counts.replaced),
               (unsigned long long)bench_dir_bytes(a->job->dir),
               (double)a->editor.words_replaced / (double)(a->editor.words_seen + 1),
               (double)a->editor.text_bytes / (double)(a->editor.body_bytes + 1));
    fflush(stdout);
    return err;
}

static char *beside(const char *dir, const char *what)
{
    struct wb_buf path = WB_BUF_INIT;

    return wb_buf_printf(&path, "%s.%s", dir, what) < 0 || wb_buf_terminate(&path) < 0 ? NULL : path.ptr;
}

/* Stores the last version of every page by itself: edits make pages a little harder to compress. */
static int add_alone(struct adding *a)
{
    char *dir = beside(a->job->dir, "alone");
    struct wb_store_commit_counts counts = {0};
    struct wb_store *store = NULL;
    int err = dir ? wb_store_create(dir, NULL) : WB_E_NOMEM;

    if (err == 0)
        err = wb_store_open(dir, WB_STORE_WRITE, &store);
    for (size_t i = 0; i < a->corpus->count && err == 0; i++) {
        err = wb_store_put(store, &a->corpus->pages[i], NULL);
        if (err == 0 && ((i + 1) % a->job->batch == 0 || i + 1 == a->corpus->count))
            err = wb_store_commit(store, &counts);
    }
    wb_store_close(store);
    if (err == 0)
        printf("{\"bench\":\"alone\",\"disk\":%llu}\n", (unsigned long long)bench_dir_bytes(dir));
    wb_free(dir);
    return err;
}

static int run_add(const struct versions_job *job, struct corpus *corpus)
{
    struct adding a = {.job = job, .corpus = corpus, .editor = EDITOR_INIT};
    struct wb_store_options options = {.history = {.keep = WB_STORE_KEEP_ALL}};
    struct wb_store *store = NULL;
    char *path = beside(job->dir, "hashes");
    int err = editor_init(corpus, &a.editor);

    a.mems = wb_alloc_zero(corpus->count, sizeof *a.mems);
    a.hashes = wb_alloc_zero(corpus->count * job->versions, sizeof *a.hashes);
    if (err == 0 && (!a.mems || !a.hashes || !path))
        err = WB_E_NOMEM;
    if (err == 0)
        err = wb_store_create(job->dir, &options);
    if (err == 0)
        err = wb_store_open(job->dir, WB_STORE_WRITE, &store);
    for (size_t version = 0; version < job->versions && err == 0; version++) {
        err = make_version(&a, version);
        sync();
        if (err == 0)
            err = add_version(&a, store, version);
    }
    wb_store_close(store);
    if (err == 0)
        err = add_alone(&a);
    if (err == 0)
        err = wb_path_replace(path, wb_slice((char *)a.hashes, corpus->count * job->versions * sizeof *a.hashes));
    for (size_t i = 0; a.mems && i < corpus->count; i++)
        wb_buf_release(&a.mems[i]);
    editor_release(&a.editor);
    wb_free(a.mems);
    wb_free(a.hashes);
    wb_free(path);
    return err;
}

/* ---- compaction, and what the bytes are ------------------------------------------------------------------------ */

struct bytes_walk {
    const char *dir;
    struct wb_block_index index;
    uint64_t blocks, entries, old, dead, directories, frames, old_frames, segments;
};

struct seen_id {
    struct wb_pageid id;
    size_t at;
};

static int compare_seen(const void *a, const void *b)
{
    const struct seen_id *x = a, *y = b;
    int order = wb_pageid_compare(x->id, y->id);

    return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

/* A frame whose first page occurs earlier in the block has older versions only. */
static int add_block(struct bytes_walk *w)
{
    size_t count = w->index.entries.count;
    struct seen_id *seen = wb_alloc((count + 1) * sizeof *seen);
    bool *old = wb_alloc_zero(count + 1, sizeof *old);
    int err = seen && old ? 0 : WB_E_NOMEM;

    for (size_t i = 0; i < count && err == 0; i++) {
        seen[i] = (struct seen_id){w->index.entries.items[i].id, i};
        w->dead += (w->index.entries.items[i].flags & WB_BLOCK_ENTRY_DEAD) != 0;
    }
    if (err == 0)
        qsort(seen, count, sizeof *seen, compare_seen);
    for (size_t i = 1; i < count && err == 0; i++)
        old[seen[i].at] = wb_pageid_equal(seen[i].id, seen[i - 1].id);
    for (size_t i = 0; i < count && err == 0; i++)
        w->old += old[i];
    for (size_t i = 0; i < w->index.frames.count && err == 0; i++) {
        const struct wb_block_frame *frame = &w->index.frames.items[i];

        *(old[frame->first] ? &w->old_frames : &w->frames) += frame->stored_bytes;
    }
    w->blocks++;
    w->entries += count;
    w->directories += wb_block_directory_end(&w->index.head);
    wb_free(seen);
    wb_free(old);
    return err;
}

static int add_segment(void *context, const struct wb_path_entry *entry)
{
    struct bytes_walk *w = context;
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_block_head head;
    char *path = wb_path_join(w->dir, entry->name);
    int err = path ? wb_path_read(path, (size_t)2 << 30, &bytes) : WB_E_NOMEM;

    for (size_t at = WB_SEGMENT_HEADER_BYTES; err == 0 && at + WB_BLOCK_HEADER_BYTES < bytes.len; at += head.bytes) {
        if (memcmp(bytes.ptr + at, "WBBK", 4) != 0) /* the map or the seal */
            break;
        err = wb_block_head_read(bytes.ptr + at, &head);
        if (err == 0)
            err = wb_block_index_read(&head, bytes.ptr + at + WB_BLOCK_HEADER_BYTES, &w->index);
        if (err == 0)
            err = add_block(w);
    }
    w->segments += bytes.len;
    wb_buf_release(&bytes);
    wb_free(path);
    return err;
}

static int print_bytes(const struct versions_job *job, const char *when)
{
    struct bytes_walk w = {.dir = wb_path_join(job->dir, WB_SEGMENT_DIR)};
    int err = w.dir ? wb_path_each(w.dir, add_segment, &w) : WB_E_NOMEM;
    uint64_t disk = bench_dir_bytes(job->dir);

    if (err == 0)
        printf("{\"bench\":\"bytes\",\"when\":\"%s\",\"disk\":%llu,\"segments\":%llu,\"rest\":%lld,\"blocks\":%llu,"
               "\"entries\":%llu,\"old\":%llu,\"dead\":%llu,\"directories\":%llu,\"frames\":%llu,"
               "\"old_frames\":%llu}\n",
               when, (unsigned long long)disk, (unsigned long long)w.segments, (long long)disk - (long long)w.segments,
               (unsigned long long)w.blocks, (unsigned long long)w.entries, (unsigned long long)w.old,
               (unsigned long long)w.dead, (unsigned long long)w.directories, (unsigned long long)w.frames,
               (unsigned long long)w.old_frames);
    wb_block_index_release(&w.index);
    wb_free((void *)(uintptr_t)w.dir);
    return err;
}

static int run_compact(const struct versions_job *job, struct corpus *corpus)
{
    struct wb_store *store = NULL;
    struct wb_move_compact_counts done = {0};
    double start, cpu;
    int err = print_bytes(job, "before");

    (void)corpus;
    if (err == 0)
        err = wb_store_open(job->dir, WB_STORE_WRITE, &store);
    sync();
    start = bench_seconds();
    cpu = bench_cpu_seconds();
    if (err == 0)
        err = wb_move_compact(store, NULL, NULL, NULL, NULL, &done);
    start = bench_seconds() - start;
    cpu = bench_cpu_seconds() - cpu;
    wb_store_close(store);
    if (err == 0)
        printf("{\"bench\":\"compact\",\"seconds\":%.3f,\"cpu\":%.3f,\"files\":%llu,\"pages\":%llu,\"moved\":%llu,"
               "\"bytes_before\":%llu,\"bytes_after\":%llu,\"mb_s\":%.1f,\"memory\":%llu}\n",
               start, cpu, (unsigned long long)done.files, (unsigned long long)done.pages,
               (unsigned long long)done.moved, (unsigned long long)done.bytes_before,
               (unsigned long long)done.bytes_after, (double)done.bytes_before / start / 1e6,
               (unsigned long long)bench_rss_peak_bytes());
    return err < 0 ? err : print_bytes(job, "after");
}

/* ---- getting ---------------------------------------------------------------------------------------------- */

struct getting {
    const struct versions_job *job;
    const struct corpus *corpus;
    struct wb_store *store;
    const uint64_t *hashes;
    struct wb_buf mem;
};

/* Gets random pages of version 1 to N, or the latest version (0) without asking for a time. */
static int get_version(struct getting *g, size_t version, uint64_t seed, double *cpu_out, double *seconds_out)
{
    double cpu = bench_cpu_seconds(), start = bench_seconds();
    size_t number = version ? version - 1 : g->job->versions - 1;
    int err = 0;

    for (size_t i = 0; i < g->job->gets && err == 0; i++) {
        size_t at = bench_random(&seed) % g->corpus->count;
        const struct wb_page *first = &g->corpus->pages[at];
        struct wb_store_when when = {.kind = WB_STORE_WHEN_TIME,
                                     .time_ms = first->time_ms + (int64_t)number * VERSION_STEP_MS};
        struct wb_page page;

        err = version ? wb_store_get_when(g->store, first->id, &when, &page, &g->mem)
                      : wb_store_get(g->store, first->id, &page, &g->mem);
        if (err == 0 && wb_hash64(page.body.ptr, page.body.len) != g->hashes[number * g->corpus->count + at])
            err = wb_fail(WB_E_CORRUPT, "version %zu of %.*s is another one", number + 1, WB_SLICE_ARG(first->url));
    }
    *cpu_out = bench_cpu_seconds() - cpu;
    *seconds_out = bench_seconds() - start;
    return err;
}

static int run_get(const struct versions_job *job, struct corpus *corpus)
{
    struct getting g = {.job = job, .corpus = corpus};
    struct wb_buf hashes = WB_BUF_INIT;
    char *path = beside(job->dir, "hashes");
    double cpu = 0, seconds = 0;
    int err = path ? wb_path_read(path, (size_t)1 << 30, &hashes) : WB_E_NOMEM;

    g.hashes = (const uint64_t *)(const void *)hashes.ptr;
    if (err == 0 && hashes.len != corpus->count * job->versions * sizeof *g.hashes)
        err = wb_fail(WB_E_INVALID, "%s: was made with other pages or versions", path);
    if (err == 0)
        err = wb_store_open(job->dir, WB_STORE_READ, &g.store);
    for (size_t round = 0; round <= job->rounds && err == 0; round++) /* the first round only warms up */
        for (size_t version = 0; version <= job->versions && err == 0; version++) {
            err = get_version(&g, version, round * 1000 + version + 1, &cpu, &seconds);
            if (err == 0 && round > 0)
                printf("{\"bench\":\"get\",\"version\":%zu,\"gets\":%zu,\"pages_cpu_s\":%.0f,\"pages_s\":%.0f}\n",
                       version, job->gets, (double)job->gets / cpu, (double)job->gets / seconds);
        }
    wb_store_close(g.store);
    wb_buf_release(&hashes);
    wb_buf_release(&g.mem);
    wb_free(path);
    return err;
}

/* ---- the command line ------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(const struct versions_job *job, struct corpus *corpus);
} commands[] = {
    {"add", run_add},     {"compact", run_compact}, {"get", run_get},
    {"seal", bench_seal}, {"twin", bench_twin},     {"held", bench_held},
};

static bool parse_option(struct versions_job *job, const char *name, const char *value)
{
    const struct {
        const char *name;
        size_t *number;
    } numbers[] = {
        {"--batch", &job->batch},   {"--pages", &job->pages},       {"--gets", &job->gets},
        {"--rounds", &job->rounds}, {"--versions", &job->versions}, {"--snapshots", &job->snapshots},
    };

    if (strcmp(name, "--dir") == 0)
        job->dir = value;
    else if (strcmp(name, "--corpus") == 0)
        job->corpus_dir = value;
    else
        for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
            if (strcmp(name, numbers[i].name) == 0) {
                *numbers[i].number = strtoul(value, NULL, 10);
                return true;
            }
    return strcmp(name, "--dir") == 0 || strcmp(name, "--corpus") == 0;
}

/* Keeps about `wanted` pages, in runs of 500 from all over the corpus, so that neighbours stay neighbours. */
static void thin_out(struct corpus *corpus, size_t wanted)
{
    size_t step = wanted ? (corpus->count + wanted - 1) / wanted : 1, kept = 0;

    for (size_t i = 0; i < corpus->count; i++)
        if (i / 500 % step == 0)
            corpus->pages[kept++] = corpus->pages[i];
    corpus->count = kept;
}

int main(int argc, char **argv)
{
    struct versions_job job = {.batch = 1000, .gets = 5000, .rounds = 3, .versions = 10, .snapshots = 100};
    struct corpus corpus = CORPUS_INIT;
    int err = WB_E_INVALID;

    for (int i = 2; i < argc; i += 2)
        if (i + 1 >= argc || !parse_option(&job, argv[i], argv[i + 1]))
            argc = 0;
    for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands); i++) {
        if (strcmp(argv[1], commands[i].name) != 0 || !job.dir || !job.corpus_dir || job.batch == 0)
            continue;
        err = corpus_load(job.corpus_dir, &corpus);
        if (strcmp(argv[1], "seal") != 0)
            thin_out(&corpus, job.pages);
        if (err == 0)
            err = commands[i].run(&job, &corpus);
        corpus_release(&corpus);
        if (err < 0)
            fprintf(stderr, "bench_versions: %s\n", wb_error_message());
        return err < 0 ? 1 : 0;
    }
    fprintf(stderr, "usage: bench_versions add|compact|get|seal|twin|held --dir DIR --corpus DIR [--batch N]\n"
                    "       [--pages N] [--versions N] [--gets N] [--rounds N] [--snapshots N]\n");
    return 2;
}
