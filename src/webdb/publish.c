/*
 * publish.c - makes a new edition the newest one, with a single rename, and removes the editions that it replaces.
 *
 *   new-XXXX/ with all tables -> manifest written, directory synced -> renamed to its number -> older ones removed
 *
 * A crash before the rename leaves the old edition as it was; after the rename the new one counts, whatever else fails.
 * An older edition that is held (edition.c) stays. The next writer looks again.
 */
#include "webdb/writer.h"
#include "os/path.h"
#include "os/random.h"

#include <inttypes.h>
#include <stdio.h>

#define NEW_PREFIX "new-"

/* ---- cleaning up ------------------------------------------------------------------------------- */

struct cleaning {
    const struct wb_webdb_writer *writer;
    uint32_t keep; /* editions from this number on are kept */
    bool retired;  /* at least one has got another name */
};

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Renames an old edition that nobody holds. remove_entry() finds it under its new name. */
static int retire_entry(void *context, const struct wb_path_entry *entry)
{
    struct cleaning *cleaning = context;
    uint32_t number = wb_edition_number(entry->name);

    WB_CHECK(cleaning->writer->lock.fd >= 0);
    WB_CHECK(cleaning->writer->dir != NULL);
    if (entry->kind != WB_PATH_DIR || number == 0 || number >= cleaning->keep)
        return 0;
    int retired = wb_edition_retire(cleaning->writer->dir, number, &cleaning->writer->lock);
    cleaning->retired = cleaning->retired || retired > 0;
    return retired < 0 ? retired : 0;
}

static int remove_entry(void *context, const struct wb_path_entry *entry)
{
    const struct cleaning *cleaning = context;

    WB_CHECK(cleaning->writer->lock.fd >= 0);
    WB_CHECK(cleaning->writer->root != NULL);
    if (entry->kind != WB_PATH_DIR ||
        !(has_prefix(entry->name, NEW_PREFIX) || has_prefix(entry->name, WB_RETIRED_PREFIX)))
        return 0;
    char *path = wb_path_join(cleaning->writer->root, entry->name);
    int err = path ? wb_edition_remove(path) : WB_E_NOMEM;
    wb_free(path);
    return err;
}

/* We hold the writer's lock, so unfinished editions belong to writers that have died. */
static int clean(const struct wb_webdb_writer *writer, uint32_t keep)
{
    struct cleaning cleaning = {.writer = writer, .keep = keep};

    WB_CHECK(writer->lock.fd >= 0);
    WB_CHECK(writer->fresh == NULL);
    int err = wb_path_each(writer->root, retire_entry, &cleaning);
    if (err == 0 &&
        cleaning.retired) /* an edition under its own name never lacks a file, not even after a power loss */
        err = wb_path_sync_dir(writer->root);
    return err < 0 ? err : wb_path_each(writer->root, remove_entry, &cleaning);
}

int wb_publish_clean(struct wb_webdb_writer *writer)
{
    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    return clean(writer, writer->newest);
}

/* ---- the new edition --------------------------------------------------------------------------- */

int wb_publish_begin(struct wb_webdb_writer *writer)
{
    char name[32];
    uint64_t chance = 0;

    WB_CHECK(wb_writer_is(writer, WB_WRITER_MERGING));
    WB_CHECK(writer->fresh == NULL);
    wb_random_bytes(&chance, sizeof chance);
    snprintf(name, sizeof name, NEW_PREFIX "%016" PRIx64, chance);
    writer->fresh = wb_path_join(writer->root, name);
    return writer->fresh ? wb_path_mkdirs(writer->fresh) : WB_E_NOMEM;
}

static int add_size(void *context, const struct wb_path_entry *entry)
{
    struct wb_webdb_count *count = context;

    WB_CHECK(count->link_bytes <= count->bytes);
    WB_CHECK(strcmp(entry->name, WB_MANIFEST_FILE) != 0); /* it is written last */
    count->bytes += entry->size;
    if (strcmp(entry->name, WB_INLINKS_FILE) == 0 || strcmp(entry->name, WB_OUTLINKS_FILE) == 0)
        count->link_bytes += entry->size;
    return 0;
}

static int write_manifest(struct wb_webdb_writer *writer)
{
    char *path = wb_writer_new_path(writer, WB_MANIFEST_FILE);
    int err = path ? wb_path_each(writer->fresh, add_size, &writer->next.count) : WB_E_NOMEM;

    WB_CHECK(writer->fresh != NULL);
    WB_CHECK(writer->next.version == WB_WEBDB_VERSION);
    if (err == 0)
        err = wb_manifest_write(path, &writer->next);
    wb_free(path);
    return err;
}

int wb_publish(struct wb_webdb_writer *writer)
{
    struct wb_webdb_count *count = &writer->next.count;

    WB_CHECK(wb_writer_is(writer, WB_WRITER_MERGING));
    WB_CHECK(writer->pages_merged);
    WB_CHECK(!writer->page_stage);
    WB_CHECK(writer->lock.fd >= 0);
    WB_CHECK(writer->fresh != NULL);
    WB_CHECK(count->links == writer->outlinks); /* both tables of links hold the same number */
    if (writer->newest == UINT32_MAX)
        return wb_fail(WB_E_LIMIT, "%s: no number is left for a new edition", writer->root);
    writer->next.version = WB_WEBDB_VERSION;
    count->edition = writer->newest + 1;
    count->time_ms = writer->options.now_ms;
    char *path = wb_edition_path(writer->dir, count->edition);
    int err = path ? write_manifest(writer) : WB_E_NOMEM;
    if (err == 0)
        err = wb_path_sync_dir(writer->fresh);
    if (err == 0)
        err = wb_path_rename(writer->fresh, path);
    wb_free(path);
    if (err < 0)
        return err;
    wb_free(writer->fresh);
    writer->fresh = NULL;
    writer->state = WB_WRITER_PUBLISHED;
    writer->stat.edition = count->edition;
    writer->stat.bytes_after = count->bytes;
    /* The new edition is there now, whatever else fails. What cannot be removed here is removed by the next writer. */
    err = wb_path_sync_dir(writer->root);
    if (err == 0)
        clean(writer, count->edition);
    return err;
}

int wb_publish_manifest(struct wb_webdb_writer *writer)
{
    char *path = wb_writer_old_path(writer, WB_MANIFEST_FILE);
    struct wb_manifest manifest = writer->old;

    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    WB_CHECK(writer->old_number > 0);
    WB_CHECK(manifest.version == WB_WEBDB_VERSION); /* an older edition is written again */
    manifest.logs = writer->next.logs;              /* borrowed */
    manifest.count.store_epoch = writer->next.count.store_epoch;
    int err = path ? wb_manifest_write(path, &manifest) : WB_E_NOMEM;
    wb_free(path);
    return err;
}
