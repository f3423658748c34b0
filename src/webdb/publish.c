/*
 * publish.c - makes a new edition the newest one, with a single rename, and removes the editions that it replaces.
 *
 *   new-XXXX/ with all tables -> manifest written, directory synced -> renamed to its number -> older ones removed
 *
 * If nothing has changed, only the manifest of the old edition is replaced: it says how far the journal was read.
 *
 * A crash before the rename leaves the old edition as it was; after the rename the new one counts, whatever else fails.
 * An older edition that is held (edition.c) stays. The next writer looks again.
 */
#include "webdb/writer.h"
#include "os/path.h"


int wb_publish_clean(struct wb_webdb_writer *writer)
{
    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    WB_CHECK(writer->fresh == NULL);
    return wb_series_clean(writer->root, writer->newest, writer->lock);
}

int wb_publish_begin(struct wb_webdb_writer *writer)
{
    WB_CHECK(wb_writer_is(writer, WB_WRITER_MERGING));
    WB_CHECK(writer->fresh == NULL);
    return wb_series_begin(writer->root, &writer->fresh);
}

static int add_size(void *context, const struct wb_path_entry *entry)
{
    struct wb_webdb_count *count = context;

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
    if (err == 0)
        err = wb_manifest_write(path, &writer->next);
    wb_free(path);
    return err;
}

struct edition_files {
    struct wb_webdb_writer *writer;
    bool same; /* so far */
};

static int compare_file(void *context, const struct wb_path_entry *entry)
{
    struct edition_files *files = context;
    char *old = wb_writer_old_path(files->writer, entry->name), *fresh = wb_writer_new_path(files->writer, entry->name);
    int err = old && fresh ? wb_path_same(old, fresh, &files->same) : WB_E_NOMEM;

    if (err < 0 && err != WB_E_NOMEM) { /* whatever is wrong with the old file, the fresh one is good */
        files->same = false;
        err = 0;
    }
    wb_free(old);
    wb_free(fresh);
    return err < 0 ? err : !files->same; /* the first difference ends it */
}

/*
 * Whether all tables are what they were before: a journal that says only what is known already. Then the old edition
 * stays, so that what was made from it is still what would be made now (indexes).
 */
static int is_unchanged(struct wb_webdb_writer *writer, bool *same_out)
{
    struct edition_files files = {.writer = writer, .same = true};
    int err = 0;

    *same_out = false;
    if (writer->old_number == 0 || writer->old_number != writer->newest)
        return 0;
    err = wb_path_each(writer->fresh, compare_file, &files);
    *same_out = err == 0 && files.same;
    return err < 0 ? err : 0;
}

int wb_publish(struct wb_webdb_writer *writer)
{
    struct wb_webdb_count *count = &writer->next.count;

    WB_CHECK(wb_writer_is(writer, WB_WRITER_MERGING));
    WB_CHECK(writer->pages_merged);
    WB_CHECK(!writer->page_stage);
    WB_CHECK(writer->lock->fd >= 0);
    WB_CHECK(writer->fresh != NULL);
    WB_CHECK(count->links == writer->outlinks); /* both tables of links hold the same number */
    if (writer->newest == UINT32_MAX)
        return wb_fail(WB_E_LIMIT, "%s: no number is left for a new edition", writer->root);
    bool same;
    int err = is_unchanged(writer, &same);
    if (err < 0 || same)
        return err < 0 ? err : wb_publish_manifest(writer);
    count->edition = writer->newest + 1;
    count->time_ms = writer->options.now_ms;
    bool renamed = false;
    err = write_manifest(writer);
    if (err == 0)
        err = wb_series_publish(writer->root, writer->fresh, count->edition, &renamed);
    if (!renamed)
        return err;
    wb_free(writer->fresh);
    writer->fresh = NULL;
    writer->state = WB_WRITER_PUBLISHED;
    writer->stat.edition = count->edition;
    writer->stat.bytes_after = count->bytes;
    /* The new edition is there now, whatever else fails. What cannot be removed here is removed by the next writer. */
    if (err == 0)
        wb_series_clean(writer->root, count->edition, writer->lock);
    return err;
}

int wb_publish_manifest(struct wb_webdb_writer *writer)
{
    char *path = wb_writer_old_path(writer, WB_MANIFEST_FILE);
    struct wb_manifest manifest = writer->old;

    WB_CHECK(writer->state != WB_WRITER_PUBLISHED);
    WB_CHECK(writer->old_number > 0);
    manifest.logs = writer->next.logs; /* borrowed */
    manifest.count.store_epoch = writer->next.count.store_epoch;
    int err = path ? wb_manifest_write(path, &manifest) : WB_E_NOMEM;
    wb_free(path);
    return err;
}
