/*
 * build.c - builds the next generation, step by step (build.h), publishes it with one rename, and lets go of what older
 * generations held.
 *
 * While it works it has the lock of the series, so there is one build at a time. The snapshot and the edition are held
 * in the name of the new generation from the beginning. If the build dies, its holds are found by the next one: a hold
 * of a generation whose directory does not exist belongs to nobody.
 */
#include "index/build.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "index/factwork.h"
#include "index/linkwork.h"
#include "index/listmerge.h"
#include "index/pipeline.h"
#include "index/usercolumn.h"
#include "os/clock.h"
#include "os/limits.h"
#include "os/nameless.h"
#include "os/path.h"
#include "words/words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MEMORY_DEFAULT = 512 << 20,
    MEMORY_MIN = 64 << 20,
    TITLE_MEMORY = 32 << 20,
};

/* ---- what the steps use ------------------------------------------------------------------------ */

char *wb_build_path(const struct wb_build *build, const char *name)
{
    return wb_path_join(build->path, name);
}

int wb_build_progress(struct wb_build *build, const char *step, uint64_t done, uint64_t total)
{
    const struct wb_index_options *options = build->options;

    if (options->progress && !options->progress(options->context, step, done, total))
        return wb_fail(WB_E_STOPPED, "stopped; the generation before stays");
    return 0;
}

void wb_build_warn(struct wb_build *build, const char *format, ...)
{
    char text[WB_ERROR_MESSAGE_MAX + 64];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (build->options->warn)
        build->options->warn(build->options->context, text);
}

int wb_build_run(struct wb_build *build, struct wb_run_writer *writer_out)
{
    struct wb_run *run = wb_alloc_zero(1, sizeof *run);
    int err = WB_E_NOMEM;

    if (!run)
        return err;
    run->file = WB_FILE_INIT;
    pthread_mutex_lock(&build->mutex);
    err = wb_vec_push(&build->runs, run);
    pthread_mutex_unlock(&build->mutex);
    if (err < 0) {
        wb_free(run);
        return err;
    }
    return wb_run_begin(build->root, run, writer_out);
}

/* ---- holds ------------------------------------------------------------------------------------- */

/* The number in "generation-7"; 0 if it is another holder. */
static uint32_t generation_of(const char *holder)
{
    size_t prefix = strlen(WB_GENERATION_HOLDER);
    uint64_t number = 0;

    if (strncmp(holder, WB_GENERATION_HOLDER, prefix) != 0 ||
        !wb_slice_to_u64(wb_slice_str(holder + prefix), &number) || number > UINT32_MAX)
        return 0;
    return (uint32_t)number;
}

static bool exists(const struct wb_build *build, uint32_t generation)
{
    char *path = wb_series_path(build->root, generation);
    bool there = path && wb_path_kind(path) == WB_PATH_DIR;

    wb_free(path);
    return there;
}

/* A hold that belongs to nobody any more. */
struct stale {
    uint32_t what; /* the number of the snapshot or edition */
    uint32_t generation;
};

struct stale_list {
    const struct wb_build *build;
    WB_VEC(struct stale) items;
};

static int note_stale(struct stale_list *list, uint32_t what, const char *holder)
{
    uint32_t generation = generation_of(holder);

    if (generation == 0 || generation == list->build->number || exists(list->build, generation))
        return 0;
    return wb_vec_push(&list->items, (struct stale){what, generation});
}

static int note_edition(void *context, uint32_t edition, const char *holder, int64_t since_ms)
{
    (void)since_ms;
    return note_stale(context, edition, holder);
}

static int note_snapshot(void *context, const struct wb_store_snapshot *snapshot)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < snapshot->holder_count; i++)
        if (snapshot->holders[i].kind == WB_STORE_HOLDER_GENERATION)
            err = note_stale(context, snapshot->number, snapshot->holders[i].name);
    return err;
}

static int let_snapshot_go(struct wb_build *build, uint32_t snapshot, uint32_t generation)
{
    struct wb_store_holder holder = {.kind = WB_STORE_HOLDER_GENERATION};

    wb_generation_holder(generation, holder.name);
    int err = wb_store_let_go(build->store, snapshot, &holder);
    return err == WB_E_NOTFOUND ? 0 : err;
}

static int release_edition(struct wb_build *build, uint32_t edition, uint32_t generation)
{
    char name[WB_STORE_NAME_MAX + 1];

    wb_generation_holder(generation, name);
    int err = wb_webdb_release(build->options->dir, edition, name);
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* Removes generations before `keep` that nobody uses, and gives up the holds of all that are gone. */
static int tidy(struct wb_build *build, uint32_t keep)
{
    struct stale_list list = {.build = build};
    int err = wb_series_clean(build->root, keep, &build->lock);

    if (err == 0)
        err = wb_webdb_holds(build->options->dir, note_edition, &list);
    for (size_t i = 0; err == 0 && i < list.items.count; i++)
        err = release_edition(build, list.items.items[i].what, list.items.items[i].generation);
    wb_vec_clear(&list.items);
    if (err == 0)
        err = wb_store_snapshot_each(build->store, note_snapshot, &list);
    for (size_t i = 0; err == 0 && i < list.items.count; i++)
        err = let_snapshot_go(build, list.items.items[i].what, list.items.items[i].generation);
    wb_vec_release(&list.items);
    return err;
}

/* ---- begin and end ------------------------------------------------------------------------------- */

/* Seals the snapshot and holds the edition for the new generation. */
static int hold(struct wb_build *build)
{
    struct wb_store_holder holder = {.kind = WB_STORE_HOLDER_GENERATION};
    char name[WB_STORE_NAME_MAX + 1];

    wb_generation_holder(build->number, holder.name);
    wb_generation_holder(build->number, name);
    int err = wb_webdb_hold(build->options->dir, build->options->edition, name);
    if (err == 0)
        err = wb_store_seal(build->store, WB_SLICE_EMPTY, &holder, &build->snapshot);
    return err;
}

static int open_build(struct wb_build *build)
{
    const struct wb_index_options *options = build->options;
    uint32_t newest = 0;
    int err = wb_generation_root(options->dir, &build->root);

    if (err == 0)
        err = wb_series_lock(build->root, &build->lock);
    if (err == WB_E_BUSY)
        err = wb_fail(WB_E_BUSY, "%s: another index is being built", build->root);
    if (err == 0)
        err = wb_series_newest(build->root, &newest);
    if (err == 0 && newest == UINT32_MAX)
        err = wb_fail(WB_E_LIMIT, "%s: no number is left for a new generation", build->root);
    build->number = newest + 1;
    if (err == 0)
        err = wb_store_open(options->dir, WB_STORE_WRITE, &build->store);
    if (err == 0)
        err = tidy(build, newest);
    if (err == 0)
        err = wb_series_begin(build->root, &build->path);
    /* First what users may have got wrong: then nothing was done yet. */
    if (err == 0)
        err = wb_usercolumns_read(build);
    if (err == 0)
        err = hold(build);
    return err < 0 ? err : wb_webdb_open_edition(options->dir, options->edition, &build->webdb);
}

static int allocate(struct wb_build *build, uint64_t count, size_t bytes, void *pointer_out)
{
    void *memory = NULL;
    int err = wb_nameless_map(build->root, (count + 1) * bytes, &memory);

    memcpy(pointer_out, &memory, sizeof memory);
    return err;
}

/* The arrays that steps fill in. */
static int open_arrays(struct wb_build *build)
{
    struct wb_sorter_options titles = {.dir = build->root, .memory_bytes = TITLE_MEMORY};
    uint64_t urls = build->roster.url_count;
    int err = allocate(build, build->roster.known, sizeof *build->contents, &build->contents);

    if (err == 0)
        err = allocate(build, urls, sizeof *build->lengths, &build->lengths);
    if (err == 0)
        err = allocate(build, urls, sizeof *build->inlinks, &build->inlinks);
    if (err == 0)
        err = allocate(build, urls, sizeof *build->outlinks, &build->outlinks);
    if (err == 0)
        err = allocate(build, urls, sizeof *build->anchors, &build->anchors);
    if (err == 0)
        err = allocate(build, urls, sizeof *build->ranks, &build->ranks);
    return err < 0 ? err : wb_sorter_open(&titles, &build->titles);
}

static void unmap(void *memory, uint64_t count, size_t bytes)
{
    if (memory)
        wb_nameless_unmap(memory, (count + 1) * bytes);
}

static void close_build(struct wb_build *build)
{
    uint64_t urls = build->roster.url_count;

    for (size_t i = 0; i < build->runs.count; i++) {
        wb_run_release(build->runs.items[i]);
        wb_free(build->runs.items[i]);
    }
    wb_vec_release(&build->runs);
    unmap(build->contents, build->roster.known, sizeof *build->contents);
    unmap(build->lengths, urls, sizeof *build->lengths);
    unmap(build->inlinks, urls, sizeof *build->inlinks);
    unmap(build->outlinks, urls, sizeof *build->outlinks);
    unmap(build->anchors, urls, sizeof *build->anchors);
    unmap(build->ranks, urls, sizeof *build->ranks);
    wb_sorter_close(build->titles);
    wb_carry_release(&build->carry);
    wb_roster_release(&build->roster);
    wb_generation_release(&build->manifest);
    wb_webdb_close(build->webdb);
    wb_store_snapshot_release(&build->snapshot);
    wb_store_close(build->store);
    wb_file_close(&build->lock);
    pthread_mutex_destroy(&build->mutex);
    wb_free(build->path);
    wb_free(build->root);
}

/* ---- the manifest ------------------------------------------------------------------------------ */

static int add_size(void *context, const struct wb_path_entry *entry)
{
    *(uint64_t *)context += entry->size;
    return 0;
}

static int write_manifest(struct wb_build *build)
{
    struct wb_index_info *info = &build->result->info;
    bool lang[256] = {false};
    char *path = wb_build_path(build, WB_GENERATION_MANIFEST);

    info->generation = build->number;
    info->snapshot = build->snapshot.number;
    info->epoch = build->snapshot.epoch;
    info->edition = build->options->edition;
    info->time_ms = wb_clock_wall_ms();
    info->pages = build->roster.known;
    info->urls = build->roster.url_count;
    info->terms = build->result->postings.terms;
    for (uint64_t docid = 0; docid < info->pages; docid++) {
        info->words += build->contents[docid].words;
        lang[build->contents[docid].lang] = true;
    }
    lang[0] = true; /* the texts of links */
    for (unsigned i = 0; i < 256; i++)
        if (lang[i])
            build->manifest.languages[build->manifest.language_count++] = (uint8_t)i;
    int err = path ? wb_path_each(build->path, add_size, &info->bytes) : WB_E_NOMEM;
    build->manifest.info = *info;
    if (err == 0)
        err = wb_generation_write(path, &build->manifest);
    wb_free(path);
    return err;
}

/* ---- the build --------------------------------------------------------------------------------- */

/* Opens the last generation to build on it. If it cannot be used, everything is built from scratch, with a warning. */
static int open_last(struct wb_build *build, struct wb_index **old_out)
{
    const void *values;
    int err = 0;

    *old_out = NULL;
    if (build->options->from_scratch || build->number == 1)
        return 0;
    err = wb_generation_open(build->options->dir, build->root, build->number - 1, old_out);
    for (int fact = 0; err == 0 && fact < WB_FACTS; fact++)
        err = wb_index_fact(*old_out, (enum wb_fact)fact, &values);
    if (err < 0 && err != WB_E_NOMEM) {
        wb_build_warn(build, "%s; everything is indexed again", wb_error_message());
        wb_index_close(*old_out);
        *old_out = NULL;
        err = 0;
    }
    return err;
}

static double seconds_since(int64_t *from_ms)
{
    int64_t now = wb_clock_mono_ns() / 1000000, from = *from_ms;

    *from_ms = now;
    return (double)(now - from) / 1000;
}

static int make(struct wb_build *build)
{
    struct wb_index *old = NULL;
    int64_t at = wb_clock_mono_ns() / 1000000;
    int err = wb_roster_make(build, &build->roster);

    if (err == 0)
        err = open_arrays(build);
    if (err == 0)
        err = open_last(build, &old);
    if (err == 0)
        err = wb_carry_make(build, old, &build->carry);
    if (err == 0)
        err = wb_pipeline(build);
    if (err == 0)
        err = wb_factwork_carry(build);
    build->result->scan_s = seconds_since(&at);
    if (err == 0)
        err = wb_linkwork(build);
    if (err == 0)
        wb_carry_drop_anchors(&build->carry, build->anchors);
    build->result->links_s = seconds_since(&at);
    if (err == 0)
        err = wb_listmerge(build);
    build->result->merge_s = seconds_since(&at);
    if (err == 0)
        err = wb_factwork_columns(build);
    if (err == 0)
        err = wb_factwork_titles(build);
    if (err == 0)
        err = wb_usercolumns_write(build);
    return err < 0 ? err : write_manifest(build);
}

int wb_index_build(const struct wb_index_options *options, struct wb_index_result *result_out)
{
    struct wb_build build = {.options = options, .result = result_out, .lock = WB_FILE_INIT};
    int64_t at = wb_clock_mono_ns() / 1000000;
    bool renamed = false;

    *result_out = (struct wb_index_result){.read = 0};
    build.memory_bytes = options->memory_bytes ? options->memory_bytes : MEMORY_DEFAULT;
    build.memory_bytes = build.memory_bytes > MEMORY_MIN ? build.memory_bytes : MEMORY_MIN;
    build.threads = options->serial ? 1 : options->threads ? options->threads : wb_limits_processors();
    pthread_mutex_init(&build.mutex, NULL);
    int err = open_build(&build);
    if (err == 0)
        err = make(&build);
    if (err == 0)
        err = wb_series_publish(build.root, build.path, build.number, &renamed);
    if (build.path && !renamed)
        wb_series_remove(build.path);
    if (!renamed && build.store && build.snapshot.number) {
        /* The message of the failure stays; what cannot be given up now, the next build gives up. */
        struct wb_error_copy error;
        wb_error_save(err, &error);
        let_snapshot_go(&build, build.snapshot.number, build.number);
        release_edition(&build, options->edition, build.number);
        wb_error_restore(&error);
    }
    result_out->runs = build.runs.count;
    if (err == 0) {
        wb_carry_release(&build.carry); /* it uses the last generation */
        tidy(&build, build.number);
    }
    result_out->total_s = seconds_since(&at);
    close_build(&build);
    return err;
}
