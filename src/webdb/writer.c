/*
 * writer.c - opens and closes a writer, and has what the stages of the merge share.
 *
 * writer_edits.c and writer_journal.c collect the edits. When the writer is closed they are merged here, one stage
 * after the other. Nothing on disk changes before that, except that leftovers of dead writers are removed.
 */
#include "webdb/writer.h"
#include "os/clock.h"
#include "os/limits.h"
#include "os/path.h"

#include <stdio.h>

enum {
    MEMORY_DEFAULT = 256 << 20,
    MEMORY_MIN = 16 << 20,
    URLS_MIN = 1 << 12,
    PROGRESS_EVERY = 1 << 12,
};
_Static_assert((URLS_MIN & (URLS_MIN - 1)) == 0, "the hash table of URLs has a power of two slots");

static void check_writer(const struct wb_webdb_writer *writer)
{
    WB_CHECK(writer->magic == WB_WRITER_MAGIC);
    WB_CHECK(writer->lock->fd >= 0);
    WB_CHECK(writer->dir != NULL);
    WB_CHECK(writer->root != NULL);
    WB_CHECK(writer->old_number == 0 || writer->old_number == writer->newest);
}

/* ---- what the stages share --------------------------------------------------------------------- */

/* Threads that work beside the caller's own. */
static unsigned helper_threads(const struct wb_webdb_writer *writer)
{
    return writer->options.threads > 1 ? writer->options.threads - 1 : 0;
}

int wb_writer_open_sorter(struct wb_webdb_writer *writer, unsigned eighths, struct wb_sorter **sorter_out)
{
    struct wb_sorter_options options = {.dir = writer->root, .memory_bytes = writer->options.memory_bytes / 8 * eighths,
                                        .threads = helper_threads(writer)};

    check_writer(writer);
    WB_CHECK(eighths >= 1);
    WB_CHECK(eighths <= 8);
    return wb_sorter_open(&options, sorter_out);
}

char *wb_writer_new_path(const struct wb_webdb_writer *writer, const char *name)
{
    check_writer(writer);
    WB_CHECK(writer->fresh != NULL);
    return wb_path_join(writer->fresh, name);
}

char *wb_writer_old_path(const struct wb_webdb_writer *writer, const char *name)
{
    char *edition = wb_edition_path(writer->dir, writer->old_number);
    char *path = edition ? wb_path_join(edition, name) : NULL;

    check_writer(writer);
    WB_CHECK(writer->old_number > 0);
    wb_free(edition);
    return path;
}

/* Only complete editions are published, so a file of the old edition that is missing is damage. */
static int corrupt_if_missing(int err)
{
    char message[WB_ERROR_MESSAGE_MAX];

    WB_CHECK(err <= 0);
    if (err != WB_E_NOTFOUND)
        return err;
    snprintf(message, sizeof message, "%s", wb_error_message());
    return wb_fail(WB_E_CORRUPT, "%s", message);
}

/* The path of a file of the old edition that a stage of the merge will read; NULL if there is no old edition. */
static int name_old_file(const struct wb_webdb_writer *writer, const char *name, char **path_out)
{
    *path_out = NULL;
    WB_CHECK(wb_writer_is(writer, WB_WRITER_MERGING));
    if (!writer->old_number)
        return 0;
    *path_out = wb_writer_old_path(writer, name);
    return *path_out ? 0 : WB_E_NOMEM;
}

int wb_writer_open_old_table(struct wb_webdb_writer *writer, const char *name, const char *kind,
                             struct wb_table **table_out, struct wb_cursor **cursor_out)
{
    char *path;

    check_writer(writer);
    *table_out = NULL;
    *cursor_out = NULL;
    int err = name_old_file(writer, name, &path);
    if (err < 0 || !path)
        return err;
    err = corrupt_if_missing(wb_table_open(path, kind, table_out));
    if (err == 0)
        err = wb_cursor_open(*table_out, cursor_out);
    wb_free(path);
    return err;
}

/* Turns the first problem of a column into an error. */
static void note_damage(void *context, const char *file, uint64_t offset, const char *message)
{
    char copy[256]; /* message may be in the buffer that wb_fail() writes to */
    int *err = context;

    WB_CHECK(message != NULL);
    snprintf(copy, sizeof copy, "%s", message);
    if (*err == 0)
        *err = wb_fail(WB_E_CORRUPT, "%s, at %llu: %s", file, (unsigned long long)offset, copy);
}

int wb_writer_open_old_column(struct wb_webdb_writer *writer, const char *name, const char *kind, size_t record_bytes,
                              struct wb_column *column_out)
{
    uint64_t records;
    char *path;
    int damage = 0;

    check_writer(writer);
    *column_out = WB_COLUMN_INIT;
    int err = name_old_file(writer, name, &path);
    if (err < 0 || !path)
        return err;
    err = corrupt_if_missing(wb_column_verify(path, kind, record_bytes, note_damage, &damage, &records));
    if (err == 0)
        err = damage;
    if (err == 0)
        err = wb_column_open(path, kind, record_bytes, column_out);
    wb_free(path);
    return err;
}

int wb_writer_create_table(struct wb_webdb_writer *writer, const char *name, const char *kind, size_t block_bytes,
                           struct wb_table_writer **table_out)
{
    struct wb_table_options options = {.block_bytes = block_bytes, .threads = helper_threads(writer)};
    char *path = wb_writer_new_path(writer, name);

    check_writer(writer);
    *table_out = NULL;
    WB_CHECK(wb_writer_is(writer, WB_WRITER_MERGING));
    WB_CHECK(strlen(kind) + 1 == sizeof options.kind);
    if (!path)
        return WB_E_NOMEM;
    memcpy(options.kind, kind, sizeof options.kind);
    int err = wb_table_create(path, &options, table_out);
    wb_free(path);
    return err;
}

int wb_writer_create_column(struct wb_webdb_writer *writer, const char *name, const char *kind, size_t record_bytes,
                            struct wb_column_writer **column_out)
{
    char *path = wb_writer_new_path(writer, name);

    check_writer(writer);
    *column_out = NULL;
    WB_CHECK(wb_writer_is(writer, WB_WRITER_MERGING));
    int err = path ? wb_column_create(path, kind, record_bytes, column_out) : WB_E_NOMEM;
    wb_free(path);
    return err;
}

int wb_writer_progress(struct wb_webdb_writer *writer, const char *step, uint64_t done, uint64_t total)
{
    WB_CHECK(writer->magic == WB_WRITER_MAGIC);
    if (done % PROGRESS_EVERY != 0 || !writer->options.progress)
        return 0;
    check_writer(writer);
    if (!writer->options.progress(writer->options.progress_context, step, done, total))
        return wb_fail(WB_E_STOPPED, "stopped; the web database is as it was");
    return 0;
}

/* ---- opening ----------------------------------------------------------------------------------- */

static void fill_options(struct wb_webdb_writer *writer, const struct wb_webdb_options *options)
{
    struct wb_webdb_options *o = &writer->options;

    if (options)
        *o = *options;
    if (o->memory_bytes == 0)
        o->memory_bytes = MEMORY_DEFAULT;
    if (o->memory_bytes < MEMORY_MIN)
        o->memory_bytes = MEMORY_MIN;
    o->threads = o->threads ? o->threads : wb_limits_processors();
    o->now_ms = o->now_ms ? o->now_ms : wb_clock_wall_ms();
    WB_CHECK(o->memory_bytes >= MEMORY_MIN);
    WB_CHECK(o->threads > 0);
    WB_CHECK(o->now_ms != 0);
}

int wb_webdb_lock(const char *dir, struct wb_file *lock_out)
{
    char *root = wb_path_join(dir, WB_WEBDB_DIR);

    *lock_out = WB_FILE_INIT;
    int err = root ? wb_series_lock(root, lock_out) : WB_E_NOMEM;
    if (err == WB_E_BUSY)
        err = wb_fail(err, "%s: another update is at work", root);
    wb_free(root);
    return err;
}

static int take_lock(struct wb_webdb_writer *writer)
{
    WB_CHECK(!writer->lock);
    writer->lock = writer->options.lock ? writer->options.lock : &writer->own_lock;
    WB_CHECK(!writer->options.lock || writer->lock->fd >= 0); /* the caller has it */
    return writer->options.lock ? 0 : wb_webdb_lock(writer->dir, &writer->own_lock);
}

/* Finds the old edition. The next one starts with its positions in the journal. */
static int read_old(struct wb_webdb_writer *writer)
{
    int err = wb_edition_newest(writer->dir, &writer->newest);

    check_writer(writer);
    WB_CHECK(writer->old_number == 0);
    WB_CHECK(writer->lock->fd >= 0); /* nobody replaces the edition while we hold the lock */
    if (err < 0 || !writer->newest)
        return err;
    writer->old_number = writer->newest;
    char *path = wb_writer_old_path(writer, WB_MANIFEST_FILE);
    err = path ? corrupt_if_missing(wb_manifest_read(path, &writer->old)) : WB_E_NOMEM;
    wb_free(path);
    if (writer->options.from_scratch) { /* a damaged edition is no obstacle, but one of another format is */
        wb_manifest_release(&writer->old);
        writer->old_number = 0;
        return err == WB_E_NEWER || err == WB_E_NOMEM ? err : 0;
    }
    writer->next.count.store_epoch = writer->old.count.store_epoch;
    for (size_t i = 0; err == 0 && i < writer->old.logs.count; i++)
        err = wb_vec_push(&writer->next.logs, writer->old.logs.items[i]);
    return err;
}

static int make_urls(struct wb_webdb_writer *writer)
{
    size_t count = URLS_MIN;

    check_writer(writer);
    WB_CHECK(writer->urls == NULL);
    WB_CHECK(writer->options.memory_bytes >= MEMORY_MIN);
    while (count * 2 * sizeof *writer->urls <= writer->options.memory_bytes / 8)
        count *= 2;
    writer->urls = wb_alloc_zero(count, sizeof *writer->urls);
    writer->urls_cap = writer->urls ? count : 0;
    return writer->urls ? 0 : WB_E_NOMEM;
}

int wb_webdb_writer_open(const char *dir, const struct wb_webdb_options *options, struct wb_webdb_writer **writer_out)
{
    struct wb_webdb_writer *writer = wb_alloc_zero(1, sizeof *writer);
    int err = WB_E_NOMEM;

    WB_CHECK(dir != NULL);
    *writer_out = NULL;
    if (!writer)
        return WB_E_NOMEM;
    writer->magic = WB_WRITER_MAGIC;
    writer->state = WB_WRITER_COLLECTING;
    writer->own_lock = WB_FILE_INIT;
    writer->removals = 1;
    fill_options(writer, options);
    writer->dir = wb_strdup(dir);
    writer->root = wb_path_join(dir, WB_WEBDB_DIR);
    if (writer->dir && writer->root)
        err = take_lock(writer);
    if (err == 0)
        err = read_old(writer);
    if (err == 0)
        err = wb_publish_clean(writer);
    if (err == 0)
        err = make_urls(writer);
    if (err == 0)
        err = wb_writer_open_sorter(writer, 3, &writer->page_edits);
    if (err == 0)
        err = wb_writer_open_sorter(writer, 3, &writer->link_edits);
    if (err < 0) {
        wb_webdb_writer_abandon(writer);
        return err;
    }
    *writer_out = writer;
    return 0;
}

/* ---- closing ----------------------------------------------------------------------------------- */

void wb_webdb_writer_abandon(struct wb_webdb_writer *writer)
{
    if (!writer)
        return;
    WB_CHECK(writer->magic == WB_WRITER_MAGIC);
    wb_merge_pages_close(writer);
    wb_sorter_close(writer->page_edits);
    wb_sorter_close(writer->link_edits);
    wb_sorter_close(writer->content_edits);
    wb_sorter_close(writer->id_edits);
    wb_sorter_close(writer->target_edits);
    wb_sorter_close(writer->rules_edits);
    wb_merge_near_close(writer);
    wb_column_close(&writer->contents);
    wb_numbermap_close(&writer->id_numbers);
    wb_numbermap_close(&writer->page_numbers);
    wb_numbermap_close(&writer->content_numbers);
    if (writer->fresh)
        wb_series_remove(writer->fresh);
    wb_file_close(&writer->own_lock);
    wb_manifest_release(&writer->old);
    wb_manifest_release(&writer->next);
    wb_url_release(&writer->url);
    wb_buf_release(&writer->key);
    wb_buf_release(&writer->surt);
    wb_buf_release(&writer->value);
    wb_buf_release(&writer->group);
    wb_free(writer->urls);
    wb_free(writer->fresh);
    wb_free(writer->root);
    wb_free(writer->dir);
    writer->magic = 0;
    wb_free(writer);
}

void wb_webdb_writer_saw_epoch(struct wb_webdb_writer *writer, uint64_t epoch)
{
    check_writer(writer);
    WB_CHECK(writer->state != WB_WRITER_PUBLISHED);
    writer->next.count.store_epoch = epoch;
}

/* ---- the merge --------------------------------------------------------------------------------- */

static bool must_merge(const struct wb_webdb_writer *writer)
{
    WB_CHECK(writer->magic == WB_WRITER_MAGIC);
    return writer->stat.page_edits + writer->stat.link_edits + writer->rules_count > 0;
}

/* Whether the manifest has something new to say, although no table changes. */
static bool must_replace_manifest(const struct wb_webdb_writer *writer)
{
    WB_CHECK(writer->magic == WB_WRITER_MAGIC);
    return writer->journal_moved || writer->next.count.store_epoch != writer->old.count.store_epoch;
}

static int begin_merge(struct wb_webdb_writer *writer)
{
    check_writer(writer);
    WB_CHECK(!writer->page_stage);
    WB_CHECK(!writer->pages_merged);
    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    int err = wb_writer_flush_links(writer);
    writer->state = WB_WRITER_MERGING;
    if (err == 0)
        err = wb_publish_begin(writer);
    /* From stage 1 on, URLs have numbers: the table that finds their ids is no longer needed. */
    wb_free(writer->urls);
    writer->urls = NULL;
    return err < 0 ? err : wb_merge_pages_open(writer);
}

int wb_webdb_writer_next(struct wb_webdb_writer *writer, struct wb_webdb_page **page_out,
                         const struct wb_webdb_site **site_out)
{
    int got = 0;

    check_writer(writer);
    *page_out = NULL;
    *site_out = NULL;
    WB_CHECK(writer->state != WB_WRITER_PUBLISHED);
    if (writer->pages_merged || !must_merge(writer))
        return 0;
    if (!writer->page_stage)
        got = begin_merge(writer);
    if (got == 0)
        got = wb_merge_pages_next(writer, page_out, site_out);
    writer->pages_merged = got == 0;
    return got;
}

static int merge(struct wb_webdb_writer *writer)
{
    const struct wb_webdb_site *site;
    struct wb_webdb_page *page;
    int err;

    check_writer(writer);
    WB_CHECK(writer->state != WB_WRITER_PUBLISHED);
    while ((err = wb_webdb_writer_next(writer, &page, &site)) > 0)
        ; /* the caller did not ask: next_due_ms stays as it is */
    if (err == 0)
        err = wb_merge_contents(writer);
    if (err == 0)
        err = wb_merge_ids(writer);
    if (err == 0)
        err = wb_merge_outlinks(writer);
    if (err == 0)
        err = wb_merge_inlinks(writer);
    if (err == 0)
        err = wb_merge_near(writer);
    if (err == 0)
        err = wb_merge_rules(writer);
    return err < 0 ? err : wb_publish(writer);
}

int wb_webdb_writer_close(struct wb_webdb_writer *writer, struct wb_webdb_merge *merge_out)
{
    struct wb_error_copy failed;
    int err = 0;

    check_writer(writer);
    WB_CHECK(writer->state != WB_WRITER_PUBLISHED);
    writer->stat.bytes_before = writer->stat.bytes_after = writer->old.count.bytes;
    writer->stat.edition = writer->newest;
    if (must_merge(writer))
        err = merge(writer);
    else if (writer->old_number && must_replace_manifest(writer))
        err = wb_publish_manifest(writer);
    if (merge_out)
        *merge_out = writer->stat;
    wb_error_save(err, &failed);
    wb_webdb_writer_abandon(writer);
    return err < 0 ? wb_error_restore(&failed) : 0;
}
