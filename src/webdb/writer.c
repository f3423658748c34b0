/*
 * writer.c - begin and end of a writer. Edits are collected by writer_edits.c and writer_journal.c; here they are
 * sorted and merged when the writer is closed, one stage after the other.
 */
#include "webdb/writer.h"
#include "base/error.h"
#include "os/clock.h"
#include "os/limits.h"
#include "os/nameless.h"
#include "os/path.h"

#include <stdio.h>

enum {
    MEMORY_DEFAULT = 256 << 20,
    MEMORY_MIN = 16 << 20,
    SLOTS_MIN = 1 << 12,
    PROGRESS_EVERY = 1 << 12,
};

#define LOCK_NAME "lock"

/* ---- parts that the stages share ------------------------------------------------------------- */

int wb_writer_sorter(struct wb_webdb_writer *writer, unsigned eighths, struct wb_sorter **sorter_out)
{
    struct wb_sorter_options options = {.dir = writer->root, .memory_bytes = writer->options.memory_bytes / 8 * eighths,
                                        .threads = writer->options.threads > 1 ? writer->options.threads - 1 : 0};

    return wb_sorter_open(&options, sorter_out);
}

char *wb_writer_new_path(const struct wb_webdb_writer *writer, const char *name)
{
    return wb_path_join(writer->fresh, name);
}

char *wb_writer_old_path(const struct wb_webdb_writer *writer, const char *name)
{
    char *edition = wb_edition_path(writer->dir, writer->old_number);
    char *path = edition ? wb_path_join(edition, name) : NULL;

    wb_free(edition);
    return path;
}

/* A file of the old edition that is not there is damage: only whole ones are ever published. */
static int found_missing(int err)
{
    char message[WB_ERROR_MESSAGE_MAX];

    if (err != WB_E_NOTFOUND)
        return err;
    snprintf(message, sizeof message, "%s", wb_error_message());
    return wb_fail(WB_E_CORRUPT, "%s", message);
}

int wb_writer_old_table(struct wb_webdb_writer *writer, const char *name, const char *kind, struct wb_table **table_out,
                        struct wb_cursor **cursor_out)
{
    *table_out = NULL;
    *cursor_out = NULL;
    if (!writer->old_number)
        return 0;
    char *path = wb_writer_old_path(writer, name);
    if (!path)
        return WB_E_NOMEM;
    int err = found_missing(wb_table_open(path, kind, table_out));
    if (err == 0)
        err = wb_cursor_open(*table_out, cursor_out);
    wb_free(path);
    return err;
}

/* Damage of a column, told once: the first of it. */
static void note_damage(void *context, const char *file, uint64_t offset, const char *message)
{
    char copy[256]; /* message may be this thread's own */
    int *err = context;

    snprintf(copy, sizeof copy, "%s", message);
    if (*err == 0)
        *err = wb_fail(WB_E_CORRUPT, "%s, at %llu: %s", file, (unsigned long long)offset, copy);
}

int wb_writer_old_column(struct wb_webdb_writer *writer, const char *name, const char *kind, size_t record_bytes, struct wb_column *column_out)
{
    uint64_t records;
    int damage = 0;

    *column_out = WB_COLUMN_INIT;
    if (!writer->old_number)
        return 0;
    char *path = wb_writer_old_path(writer, name);
    if (!path)
        return WB_E_NOMEM;
    int err = found_missing(wb_column_verify(path, kind, record_bytes, note_damage, &damage, &records));
    if (err == 0)
        err = damage;
    if (err == 0)
        err = wb_column_open(path, kind, record_bytes, column_out);
    wb_free(path);
    return err;
}

int wb_writer_new_table(struct wb_webdb_writer *writer, const char *name, const char *kind, size_t block_bytes, struct wb_table_writer **table_out)
{
    struct wb_table_options options = {.block_bytes = block_bytes, .threads = writer->options.threads > 1 ? writer->options.threads - 1 : 0};
    char *path = wb_writer_new_path(writer, name);

    *table_out = NULL;
    if (!path)
        return WB_E_NOMEM;
    memcpy(options.kind, kind, sizeof options.kind);
    int err = wb_table_create(path, &options, table_out);
    wb_free(path);
    return err;
}

int wb_number_map_open(struct wb_webdb_writer *writer, uint64_t count, struct wb_number_map *map_out)
{
    void *memory = NULL;

    *map_out = (struct wb_number_map){NULL, 0};
    if (count == 0)
        return 0;
    int err = wb_nameless_map(writer->root, count * sizeof *map_out->numbers, &memory);
    if (err == 0)
        *map_out = (struct wb_number_map){memory, count};
    return err;
}

void wb_number_map_close(struct wb_number_map *map)
{
    if (map->numbers)
        wb_nameless_unmap(map->numbers, map->count * sizeof *map->numbers);
    *map = (struct wb_number_map){NULL, 0};
}

int wb_writer_progress(struct wb_webdb_writer *writer, const char *step, uint64_t done, uint64_t total)
{
    if (done % PROGRESS_EVERY != 0 || !writer->options.progress)
        return 0;
    if (!writer->options.progress(writer->options.progress_context, step, done, total))
        return wb_fail(WB_E_STOPPED, "stopped; the web database is as it was");
    return 0;
}

/* ---- begin -------------------------------------------------------------------------------------- */

static void fill_options(struct wb_webdb_writer *writer, const struct wb_webdb_options *options)
{
    if (options)
        writer->options = *options;
    struct wb_webdb_options *o = &writer->options;
    o->memory_bytes = o->memory_bytes == 0 ? MEMORY_DEFAULT : o->memory_bytes < MEMORY_MIN ? MEMORY_MIN : o->memory_bytes;
    o->threads = o->threads ? o->threads : wb_limits_processors();
    o->now_ms = o->now_ms ? o->now_ms : wb_clock_wall_ms();
}

static int take_lock(struct wb_webdb_writer *writer)
{
    char *path = wb_path_join(writer->root, LOCK_NAME);
    int err = path ? wb_path_mkdirs(writer->root) : WB_E_NOMEM;

    if (err == 0)
        err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &writer->lock);
    if (err == 0)
        err = wb_file_lock(&writer->lock, false);
    if (err == WB_E_BUSY)
        err = wb_fail(WB_E_BUSY, "%s: another update is at work", writer->root);
    wb_free(path);
    return err;
}

/* What the old edition has, which the next one begins with. */
static int read_old(struct wb_webdb_writer *writer)
{
    int err = wb_edition_newest(writer->dir, &writer->newest);

    if (err < 0 || !writer->newest || writer->options.anew)
        return err;
    writer->old_number = writer->newest;
    char *path = wb_writer_old_path(writer, WB_MANIFEST_FILE);
    err = path ? found_missing(wb_manifest_read(path, &writer->old)) : WB_E_NOMEM;
    wb_free(path);
    for (size_t i = 0; err == 0 && i < writer->old.logs.count; i++)
        err = wb_vec_push(&writer->next.logs, writer->old.logs.items[i]);
    return err;
}

static int make_slots(struct wb_webdb_writer *writer)
{
    size_t count = SLOTS_MIN;

    while (count * 2 * sizeof *writer->slots <= writer->options.memory_bytes / 8)
        count *= 2;
    writer->slots = wb_alloc_zero(count, sizeof *writer->slots);
    writer->slot_count = writer->slots ? count : 0;
    return writer->slots ? 0 : WB_E_NOMEM;
}

int wb_webdb_writer_open(const char *dir, const struct wb_webdb_options *options, struct wb_webdb_writer **writer_out)
{
    struct wb_webdb_writer *writer = wb_alloc_zero(1, sizeof *writer);
    int err = WB_E_NOMEM;

    *writer_out = NULL;
    if (!writer)
        return WB_E_NOMEM;
    writer->lock = WB_FILE_INIT;
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
        err = make_slots(writer);
    if (err == 0)
        err = wb_writer_sorter(writer, 3, &writer->page_edits);
    if (err == 0)
        err = wb_writer_sorter(writer, 3, &writer->link_edits);
    if (err < 0) {
        wb_webdb_writer_abandon(writer);
        return err;
    }
    *writer_out = writer;
    return 0;
}

/* ---- end ------------------------------------------------------------------------------------------ */

void wb_webdb_writer_abandon(struct wb_webdb_writer *writer)
{
    if (!writer)
        return;
    wb_merge_pages_close(writer);
    wb_sorter_close(writer->page_edits);
    wb_sorter_close(writer->link_edits);
    wb_sorter_close(writer->content_edits);
    wb_sorter_close(writer->target_edits);
    wb_sorter_close(writer->rules_edits);
    wb_near_close(writer);
    wb_column_close(&writer->contents);
    wb_number_map_close(&writer->id_numbers);
    wb_number_map_close(&writer->page_numbers);
    wb_number_map_close(&writer->content_numbers);
    if (writer->fresh)
        wb_edition_remove(writer->fresh);
    wb_file_close(&writer->lock);
    wb_manifest_release(&writer->old);
    wb_manifest_release(&writer->next);
    wb_url_release(&writer->url);
    wb_buf_release(&writer->key);
    wb_buf_release(&writer->surt);
    wb_buf_release(&writer->value);
    wb_buf_release(&writer->group);
    wb_free(writer->slots);
    wb_free(writer->fresh);
    wb_free(writer->root);
    wb_free(writer->dir);
    wb_free(writer);
}

/* ---- the merge ------------------------------------------------------------------------------------- */

/* An edition of an older version is rewritten even if there is nothing to merge. */
static bool must_merge(const struct wb_webdb_writer *writer)
{
    return writer->stat.page_edits + writer->stat.link_edits + writer->rules_count ||
           (writer->old_number && writer->old.version < WB_WEBDB_VERSION);
}

static int begin_merge(struct wb_webdb_writer *writer)
{
    int err = wb_publish_begin(writer);

    /* URLs have their numbers from stage 1 on: what found their ids is not needed any more. */
    wb_free(writer->slots);
    writer->slots = NULL;
    return err < 0 ? err : wb_merge_pages_begin(writer);
}

int wb_webdb_writer_next(struct wb_webdb_writer *writer, struct wb_webdb_page **page_out, const struct wb_webdb_site **site_out)
{
    int got = 0;

    *page_out = NULL;
    *site_out = NULL;
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

    while ((err = wb_webdb_writer_next(writer, &page, &site)) > 0)
        ; /* nobody said when it is due: it stays as it is */
    if (err == 0)
        err = wb_merge_contents(writer);
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

    writer->stat.bytes_before = writer->stat.bytes_after = writer->old.count.bytes;
    writer->stat.edition = writer->newest;
    if (must_merge(writer))
        err = merge(writer);
    else if (writer->moved && writer->old_number)
        err = wb_publish_manifest(writer);
    if (merge_out)
        *merge_out = writer->stat;
    wb_error_save(err, &failed);
    wb_webdb_writer_abandon(writer);
    return err < 0 ? wb_error_restore(&failed) : 0;
}
