/*
 * build.c - builds the next generation, step by step (build.h), publishes it with one rename, and lets go of what older
 * generations held.
 *
 * While it works it has the lock of DIR/index, wherever the generations are, so there is one build at a time. The
 * snapshot and the edition are held in the name of the new generation from the beginning (genholds.c).
 */
#include "index/build.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "index/alternates.h"
#include "index/docwords.h"
#include "index/factwork.h"
#include "index/linkwork.h"
#include "index/listmerge.h"
#include "index/pipeline.h"
#include "index/prints.h"
#include "index/rankwork.h"
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
    MEMORY_MIN = 8 << 20,
    TITLE_MEMORY = 32 << 20,
    URLKEY_MEMORY = 32 << 20,
    LANGUAGE_MEMORY = 16 << 20,
    DAMAGES_SHOWN = 20, /* one bit can damage a lot */
};

/* ---- what the steps use ------------------------------------------------------------------------ */

char *wb_build_path(const struct wb_build *build, const char *name)
{
    WB_CHECK(build->path);
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

void wb_build_damaged(struct wb_build *build)
{
    if (build->result->damaged < DAMAGES_SHOWN)
        wb_build_warn(build, "%s; the pages there are not indexed", wb_error_message());
    else if (build->result->damaged == DAMAGES_SHOWN)
        wb_build_warn(build, "further damaged places are only counted");
    build->result->damaged++;
}

int wb_build_run(struct wb_build *build, struct wb_run_writer *writer_out)
{
    struct wb_run *run = wb_alloc_zero(1, sizeof *run);
    int err = WB_E_NOMEM;

    if (!run)
        return err;
    run->file = WB_FILE_INIT;
    WB_CHECK(build->root != NULL);
    pthread_mutex_lock(&build->mutex);
    err = wb_vec_push(&build->runs, run);
    pthread_mutex_unlock(&build->mutex);
    if (err < 0) {
        wb_free(run);
        return err;
    }
    return wb_run_begin(build->root, run, writer_out);
}

/* ---- begin and end ------------------------------------------------------------------------------- */

/* Seals the snapshot and holds the edition for the new generation. */
static int hold(struct wb_build *build)
{
    struct wb_store_holder holder = {.kind = WB_STORE_HOLDER_GENERATION};
    char name[WB_STORE_NAME_MAX + 1];

    WB_CHECK(!build->held && build->lock.fd >= 0); /* with the lock, the number is ours */
    wb_generation_holder(build->number, holder.name);
    wb_generation_holder(build->number, name);
    build->held = true; /* perhaps only one of the two, if this fails */
    int err = wb_webdb_hold(build->options->dir, build->options->edition, name);
    if (err == 0)
        err = wb_store_seal(build->store, WB_SLICE_EMPTY, &holder, &build->snapshot);
    return err;
}

/* Where the last generation is, and its number; 0 if there is none. */
static int find_last(struct wb_build *build)
{
    const struct wb_whereabouts *where = &build->where;

    build->lost = !wb_whereabouts_at_home(where, where->root) && wb_path_kind(where->root) != WB_PATH_DIR;
    if (build->lost && !build->options->index_dir)
        return wb_fail(WB_E_NOTFOUND,
                       "%s, where the index of this repository is, is missing; --index-dir builds it elsewhere",
                       where->root);
    int err = build->lost ? 0 : wb_series_newest(where->root, &build->last);
    build->number = build->last;
    /* Nothing there says which numbers were in use: what they held does. */
    if (err == 0 && build->last == 0)
        err = wb_build_greatest_holder(build, &build->number);
    if (err == 0 && build->number == UINT32_MAX)
        err = wb_fail(WB_E_LIMIT, "%s: no number is left for a new generation", where->root);
    build->number++;
    build->last_root = err == 0 ? wb_strdup(where->root) : NULL;
    return err < 0 ? err : build->last_root ? 0 : WB_E_NOMEM;
}

/* Makes the root of the new generation, and lets later builds know of it before anything is in it. */
static int open_root(struct wb_build *build)
{
    struct wb_whereabouts *where = &build->where;

    WB_CHECK(!build->root && where->root);
    int err = build->options->index_dir
                  ? wb_whereabouts_root(build->options->dir, build->options->index_dir, &build->root)
                  : 0;
    if (err == 0 && !build->root)
        err = (build->root = wb_strdup(where->root)) ? 0 : WB_E_NOMEM;
    if (err == 0 && !wb_whereabouts_at_home(where, build->root))
        err = wb_series_lock(build->root, &build->root_lock);
    if (err == 0 && strcmp(build->root, where->root) != 0 && !wb_whereabouts_at_home(where, build->root)) {
        err = wb_whereabouts_add(where, build->root);
        if (err == 0)
            err = wb_whereabouts_write(where);
    }
    return err;
}

/* The lock, and where the last generation and the new one are. */
static int open_series(struct wb_build *build)
{
    const struct wb_index_options *options = build->options;
    char *home = wb_path_join(options->dir, WB_INDEX_DIR);
    int err = home ? wb_store_open(options->dir, WB_STORE_WRITE, &build->store) : WB_E_NOMEM;

    if (err == 0)
        err = wb_series_lock(home, &build->lock);
    if (err == WB_E_BUSY)
        err = wb_fail(WB_E_BUSY, "%s: another index is being built", home);
    wb_free(home);
    if (err == 0)
        err = wb_whereabouts_read(options->dir, &build->where);
    if (err == 0)
        err = find_last(build);
    if (err == 0 && !build->lost) /* if it comes back before there is another one, it still has what it holds */
        err = wb_build_tidy(build, build->last);
    if (err == 0)
        err = open_root(build);
    return err < 0 ? err : wb_docwords_rules(&build->result->info.rules);
}

/*
 * Begins the new generation, unless there is nothing for it: *current_out. First comes what users may have got wrong,
 * when nothing was done yet. A column that is given as it was given before is nothing new either.
 */
static int open_build(struct wb_build *build, bool *current_out)
{
    const struct wb_index_options *options = build->options;
    int err = open_series(build);
    uint64_t rules = build->result->info.rules;

    *current_out = false;
    if (err == 0 && options->if_changed)
        err = wb_build_is_current(build, current_out);
    if (err < 0 || (*current_out && options->column_count == 0))
        return err;
    err = wb_series_begin(build->root, &build->path);
    if (err == 0)
        err = wb_usercolumns_read(build);
    if (err == 0 && *current_out)
        err = wb_usercolumns_same(build, current_out);
    if (err < 0 || *current_out)
        return err;
    build->result->info = (struct wb_index_info){.rules = rules}; /* not that of the last generation */
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

    WB_CHECK(!build->contents && build->roster.known <= urls);
    int err = allocate(build, build->roster.known, sizeof *build->contents, &build->contents);
    if (err == 0)
        err = allocate(build, build->roster.known, sizeof *build->alternates, &build->alternates);
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
    if (err == 0)
        err = allocate(build, build->roster.site_count, sizeof *build->site_ranks, &build->site_ranks);
    if (err == 0)
        err = wb_textwork_begin(build);
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
    unmap(build->alternates, build->roster.known, sizeof *build->alternates);
    unmap(build->lengths, urls, sizeof *build->lengths);
    unmap(build->inlinks, urls, sizeof *build->inlinks);
    unmap(build->outlinks, urls, sizeof *build->outlinks);
    unmap(build->anchors, urls, sizeof *build->anchors);
    unmap(build->ranks, urls, sizeof *build->ranks);
    unmap(build->site_ranks, build->roster.site_count, sizeof *build->site_ranks);
    wb_sorter_close(build->titles);
    wb_factcolumns_release(&build->facts);
    wb_textwork_release(&build->texts);
    wb_sorter_close(build->urlkeys);
    wb_sorter_close(build->languages);
    wb_carry_release(&build->carry);
    wb_roster_release(&build->roster);
    wb_generation_release(&build->manifest);
    wb_webdb_close(build->webdb);
    wb_store_snapshot_release(&build->snapshot);
    wb_store_close(build->store);
    wb_file_close(&build->root_lock);
    wb_file_close(&build->lock);
    wb_whereabouts_release(&build->where);
    pthread_mutex_destroy(&build->mutex);
    wb_free(build->path);
    wb_free(build->root);
    wb_free(build->last_root);
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

    WB_CHECK(info->words == 0 && build->manifest.language_count == 0);
    WB_CHECK(build->held); /* what it was made of stays as long as it does */
    info->generation = build->number;
    info->snapshot = build->snapshot.number;
    info->epoch = build->snapshot.epoch;
    info->edition = build->options->edition;
    info->time_ms = wb_clock_wall_ms();
    info->pages = build->roster.known;
    info->urls = build->roster.url_count;
    info->damaged = build->result->damaged;
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

    WB_CHECK(!build->carry.old);
    *old_out = NULL;
    if (build->from_scratch || build->last == 0)
        return 0;
    err = wb_generation_open(build->options->dir, build->last_root, build->last, old_out);
    for (int fact = 0; err == 0 && fact < WB_FACTS; fact++)
        err = wb_index_fact(*old_out, (enum wb_fact)fact, &values);
    if (err == 0)
        err = wb_generation_prints(*old_out);
    if (err == 0)
        err = wb_generation_completions(*old_out);
    if (err == 0)
        err = wb_generation_texts(*old_out);
    bool other_rules = err == 0 && (*old_out)->manifest.info.rules != build->result->info.rules;
    if (err < 0 && err != WB_E_NOMEM)
        wb_build_warn(build, "%s; everything is indexed again", wb_error_message());
    if (other_rules)
        wb_build_warn(build, "generation %" PRIu32 " was made with other rules for words; everything is indexed again",
                      build->last);
    if (err < 0 || other_rules) {
        wb_index_close(*old_out);
        *old_out = NULL;
    }
    return err == WB_E_NOMEM ? err : 0;
}

static double seconds_since(int64_t *from_ms)
{
    int64_t now = wb_clock_mono_ns() / 1000000, from = *from_ms;

    *from_ms = now;
    return (double)(now - from) / 1000;
}

static int make(struct wb_build *build)
{
    struct wb_sorter_options urlkeys = {.dir = build->root, .memory_bytes = URLKEY_MEMORY};
    struct wb_sorter_options languages = {.dir = build->root, .memory_bytes = LANGUAGE_MEMORY};
    struct wb_index *old = NULL;
    int64_t at = wb_clock_mono_ns() / 1000000;
    int err = wb_sorter_open(&urlkeys, &build->urlkeys);

    if (err == 0)
        err = wb_sorter_open(&languages, &build->languages);
    if (err == 0)
        err = wb_roster_make(build, &build->roster);
    if (err == 0)
        err = wb_usercolumns_check(build);
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
    if (err == 0)
        err = wb_alternates_find(build);
    build->result->scan_s = seconds_since(&at);
    if (err == 0)
        err = wb_linkwork(build);
    if (err == 0)
        wb_carry_drop_anchors(&build->carry, build->anchors);
    if (err == 0)
        err = wb_rankwork(build);
    build->result->links_s = seconds_since(&at);
    if (err == 0)
        err = wb_listmerge(build);
    build->result->merge_s = seconds_since(&at);
    if (err == 0)
        err = wb_factwork_columns(build);
    if (err == 0)
        err = wb_prints_write(build);
    if (err == 0)
        err = wb_factwork_titles(build);
    if (err == 0)
        err = wb_completionwork(build);
    if (err == 0)
        err = wb_textwork_write(build);
    if (err == 0)
        err = wb_factcolumns_write(build);
    if (err == 0)
        err = wb_usercolumns_write(build);
    return err < 0 ? err : write_manifest(build);
}

/*
 * Readers find the new generation from now on. If the index moves, that is the moment at which `where` names another
 * directory; until then, the generation that was renamed there counts for nothing.
 */
static int publish(struct wb_build *build, bool *counts_out)
{
    struct wb_whereabouts *where = &build->where;

    WB_CHECK(build->held && build->path && build->number > build->last);
    int err = wb_series_publish(build->root, build->path, build->number, counts_out);
    if (err < 0 || strcmp(build->root, where->root) == 0)
        return err;
    *counts_out = false;
    char *path = wb_series_path(build->root, build->number), *root = wb_strdup(build->root);
    err = path && root && !wb_whereabouts_at_home(where, where->root) ? wb_whereabouts_add(where, where->root)
          : path && root                                              ? 0
                                                                      : WB_E_NOMEM;
    wb_free(build->path);
    build->path = path; /* what is to be removed if this fails */
    if (err < 0) {
        wb_free(root);
        return err;
    }
    wb_free(where->root);
    where->root = root;
    wb_whereabouts_remove(where, root);
    err = wb_whereabouts_write(where);
    if (err < 0) {
        /* The file may have been replaced nevertheless. */
        struct wb_error_copy error;
        struct wb_whereabouts now;
        wb_error_save(err, &error);
        *counts_out = wb_whereabouts_read(build->options->dir, &now) == 0 && strcmp(now.root, root) == 0;
        wb_whereabouts_release(&now);
        return wb_error_restore(&error);
    }
    *counts_out = true;
    return 0;
}

/* Nothing of a build that failed stays. The message of the failure does; what is left over, the next build removes. */
static void undo(struct wb_build *build, int err)
{
    struct wb_error_copy error;

    WB_CHECK(err < 0);
    wb_error_save(err, &error);
    if (build->path)
        wb_series_remove(build->path);
    if (build->held)
        wb_build_let_go(build);
    wb_error_restore(&error);
}

/* *carried_out: the build used the last generation. */
static int build_once(const struct wb_index_options *options, bool from_scratch, struct wb_index_result *result_out,
                      bool *carried_out)
{
    struct wb_build build = {.options = options,
                             .result = result_out,
                             .lock = WB_FILE_INIT,
                             .root_lock = WB_FILE_INIT,
                             .texts = {.file = WB_FILE_INIT},
                             .from_scratch = from_scratch};
    bool counts = false, current = false;

    *result_out = (struct wb_index_result){.read = 0};
    build.memory_bytes = options->memory_bytes ? options->memory_bytes : MEMORY_DEFAULT;
    build.memory_bytes = build.memory_bytes > MEMORY_MIN ? build.memory_bytes : MEMORY_MIN;
    build.threads = options->serial ? 1 : options->threads ? options->threads : wb_limits_processors();
    pthread_mutex_init(&build.mutex, NULL);
    int err = open_build(&build, &current);
    if (err == 0 && !current)
        err = make(&build);
    if (err == 0 && !current)
        err = publish(&build, &counts);
    WB_CHECK(err < 0 || counts != current);
    result_out->unchanged = err == 0 && current;
    *carried_out = build.carry.old != NULL;
    result_out->runs = build.runs.count;
    if (result_out->unchanged) {
        if (build.path)
            wb_series_remove(build.path);
    } else if (!counts) {
        undo(&build, err);
    } else if (err == 0) {
        wb_carry_release(&build.carry); /* it uses the last generation */
        int tidied = wb_build_tidy(&build, build.number);
        if (tidied < 0)
            wb_build_warn(&build, "%s; the next build removes what is left of earlier ones", wb_error_message());
    }
    close_build(&build);
    return err;
}

int wb_index_build(const struct wb_index_options *options, struct wb_index_result *result_out)
{
    int64_t at = wb_clock_mono_ns() / 1000000;
    bool carried = false;
    int err = build_once(options, options->from_scratch, result_out, &carried);

    /* Opening the last generation does not read all of it: damage may show only when its lists are merged. */
    if (err == WB_E_CORRUPT && carried) {
        char text[WB_ERROR_MESSAGE_MAX + 64];
        snprintf(text, sizeof text, "%s; everything is indexed again", wb_error_message());
        if (options->warn)
            options->warn(options->context, text);
        err = build_once(options, true, result_out, &carried);
    }
    result_out->total_s = seconds_since(&at);
    return err;
}
