/*
 * store.c - the door of the room: creates and opens repositories, checks arguments, and
 * passes every call on to the repository's organisation (organisation.h).
 *
 * It never touches a page. The only file it knows is the superblock, which makes a
 * directory a repository: it is written last, so that an interrupted creation leaves no
 * repository, and repeating the creation finishes the work.
 */
#include "store/store.h"
#include "base/check.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/path.h"
#include "os/random.h"
#include "place/place.h"
#include "store/organisation.h"

#include <stdio.h>

const struct wb_organisation *wb_organisation_find(const struct wb_design *design)
{
    return design->batch ? &wb_organisation_batch : &wb_organisation_log;
}

/* ---- creating and opening --------------------------------------------------------------- */

bool wb_store_exists(const char *dir)
{

    char *path = wb_path_join(dir, WB_SUPERBLOCK_NAME);
    bool exists = path && wb_path_kind(path) != WB_PATH_NONE;

    wb_free(path);
    return exists;
}

int wb_store_require(const char *dir)
{
    if (wb_store_exists(dir))
        return 0;
    if (wb_superblock_is_unfinished(dir))
        return wb_superblock_refuse_unfinished(dir);
    return wb_fail(WB_E_NOTFOUND, "there is no repository at %s", dir);
}

struct creation {
    const char *dir;
    const struct wb_organisation *organisation;
    struct wb_store_options options;
};

/* Only files that an interrupted creation may have left are accepted: anything else belongs to somebody else. */
static int refuse_foreign(void *context, const struct wb_path_entry *entry)
{
    static const char *const ours[] = {WB_SUPERBLOCK_LOCK_NAME, WB_SUPERBLOCK_NAME ".tmp", NULL};
    const struct creation *c = context;
    const char *const *lists[] = {ours, c->organisation->files};

    WB_CHECK(c->organisation->files != NULL);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (const char *const *name = lists[i]; *name; name++)
            if (strcmp(entry->name, *name) == 0)
                return 0;
    if (wb_nodes_is_leftover(c->dir, entry->name))
        return 0;
    return wb_fail(WB_E_INVALID, "%s is not a repository, and not empty", c->dir);
}

/* If two processes create the same repository, the second one waits here, and then finds it already there. */
static int lock_creation(const char *dir, struct wb_file *lock_out)
{
    WB_CHECK(lock_out->fd < 0);

    char *path = wb_path_join(dir, WB_SUPERBLOCK_LOCK_NAME);
    int err = path ? wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, lock_out) : WB_E_NOMEM;

    wb_free(path);
    return err < 0 ? err : wb_file_lock(lock_out, true);
}

static int create_locked(const struct creation *c)
{
    struct wb_superblock superblock = {.design = c->options.design, .created_ms = wb_clock_wall_ms()};
    int err;

    WB_CHECK(c->organisation->create != NULL);
    if (wb_store_exists(c->dir))
        return wb_fail(WB_E_INVALID, "there is a repository at %s already", c->dir);
    wb_random_bytes(superblock.id, sizeof superblock.id);
    uint64_t fresh = wb_nodes_fresh(&c->options);
    err = c->organisation->create(c->dir, &superblock, &c->options);
    if (err == 0)
        err = wb_superblock_write(c->dir, &superblock);
    if (err < 0 && !wb_store_exists(c->dir)) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        (void)wb_nodes_sweep(c->dir, fresh);
        err = wb_error_restore(&why);
    }
    return err;
}

/* Removes the directory that we have just made, because it did not become a repository. */
static int take_back(const char *dir, int err)
{
    struct wb_error_copy why;

    WB_CHECK(err < 0);
    wb_error_save(err, &why);
    if (!wb_store_exists(dir))
        (void)wb_folder_remove_all(dir);
    return wb_error_restore(&why);
}

/*
 * If an interrupted creation has made nodes elsewhere, nobody has ever used them: they are released. The update part of
 * a batch design is made after the read part.
 */
static int release_leftovers(const char *dir, struct wb_file *lock_out)
{
    char *catalog = wb_path_join(dir, WB_CATALOG_NAME), *update = wb_path_join(dir, WB_BATCHED_UPDATE_DIR);
    bool there = catalog && wb_path_kind(catalog) != WB_PATH_NONE;
    int err = !catalog || !update ? WB_E_NOMEM : there ? lock_creation(dir, lock_out) : 0;
    bool unused = err == 0 && there && !wb_store_exists(dir); /* otherwise another process was faster */

    if (unused)
        err = wb_nodes_sweep(dir, 0);
    if (unused && err == 0)
        err = wb_nodes_sweep(update, 0);
    wb_free(catalog);
    wb_free(update);
    return err;
}

int wb_store_create(const char *dir, const struct wb_store_options *options)
{
    struct creation c = {.dir = dir, .options = options ? *options : (struct wb_store_options){.history = {0}}};
    struct wb_file lock = WB_FILE_INIT;
    int err = 0;

    WB_CHECK(c.options.history.keep <= WB_STORE_KEEP_DURATION);
    WB_CHECK(c.options.history.value <= WB_STORE_HISTORY_VALUE_MAX);
    c.organisation = wb_organisation_find(&c.options.design);
    enum wb_path_kind kind = wb_path_kind(dir);
    if (kind == WB_PATH_DIR && wb_superblock_is_unfinished(dir)) {
        err = wb_superblock_refuse_unfinished(dir);
    } else if (kind == WB_PATH_DIR && !wb_store_exists(dir)) {
        err = wb_path_each(dir, refuse_foreign, &c);
        if (err == 0)
            err = release_leftovers(dir, &lock);
    } else if (kind != WB_PATH_DIR && kind != WB_PATH_NONE) {
        err = wb_fail(WB_E_INVALID, "%s is not a directory", dir);
    }
    if (err == 0)
        err = wb_nodes_check(dir, &c.options); /* before anything is made */
    if (err == 0 && kind == WB_PATH_NONE)
        err = wb_path_mkdirs(dir);
    if (err == 0 && lock.fd < 0)
        err = lock_creation(dir, &lock);
    if (err == 0)
        err = create_locked(&c);
    if (err < 0 && lock.fd >= 0 && kind == WB_PATH_NONE)
        err = take_back(dir, err);
    if (err == 0 && kind == WB_PATH_DIR) /* the process that made the directory may not have synced its parent */
        err = wb_path_sync_parent(dir);
    wb_file_close(&lock);
    return err;
}

/* Reads the superblock and finds the organisation that it names. */
static int find_repository(const char *dir, struct wb_superblock *superblock_out,
                           const struct wb_organisation **organisation_out)
{
    int err = wb_superblock_read(dir, superblock_out);

    *organisation_out = NULL;
    if (err < 0)
        return err;
    *organisation_out = wb_organisation_find(&superblock_out->design);
    WB_CHECK((*organisation_out)->open);
    WB_CHECK((*organisation_out)->verify);
    return 0;
}

int wb_store_open(const char *dir, enum wb_store_mode mode, struct wb_store **store_out)
{
    const struct wb_organisation *organisation;
    struct wb_superblock superblock;

    WB_CHECK(mode == WB_STORE_READ || mode == WB_STORE_WRITE);
    *store_out = NULL;
    int err = find_repository(dir, &superblock, &organisation);
    if (err < 0)
        return err;
    err = organisation->open(dir, &superblock, mode, store_out);
    WB_CHECK(err == 0 ? (*store_out)->magic == WB_STORE_MAGIC && (*store_out)->mode == mode : !*store_out);
    return err;
}

int wb_store_verify(const char *dir, wb_store_found found, void *found_context, wb_store_progress progress,
                    void *progress_context, struct wb_store_verify_counts *counts_out)
{

    const struct wb_organisation *organisation;
    struct wb_superblock superblock;
    int err = find_repository(dir, &superblock, &organisation);

    *counts_out = (struct wb_store_verify_counts){0};
    if (err == WB_E_CORRUPT) {
        counts_out->problems = 1;
        if (found)
            found(found_context, &(struct wb_store_finding){true, WB_SUPERBLOCK_NAME, 0, wb_error_message()});
        return 0;
    }
    if (err < 0)
        return err;
    return organisation->verify(dir, &superblock, found, found_context, progress, progress_context, counts_out);
}

/* ---- calls that are passed on ------------------------------------------------------------------- */

void wb_store_close(struct wb_store *store)
{
    WB_CHECK(store == NULL || store->magic == WB_STORE_MAGIC);
    if (!store)
        return;
    store->ops->close(store);
}

int wb_store_put(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out)
{
    enum wb_store_outcome ignored;

    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(store->mode == WB_STORE_WRITE);
    if (!outcome_out)
        outcome_out = &ignored;
    *outcome_out = WB_STORE_PUT_NEW;
    WB_CHECK(wb_pageid_equal(page->id, wb_pageid_of_key(page->key)));
    if (page->body.len > WB_STORE_BODY_MAX)
        return wb_fail(WB_E_LIMIT, "the body of %.*s is larger than a store accepts", WB_SLICE_ARG(page->url));
    return store->ops->put(store, page, outcome_out);
}

int wb_store_touch(struct wb_store *store, struct wb_pageid id, int64_t time_ms)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(store->mode == WB_STORE_WRITE);
    return store->ops->touch(store, id, time_ms);
}

int wb_store_remove(struct wb_store *store, struct wb_pageid id, struct wb_slice site, int64_t time_ms, bool everywhere)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(store->mode == WB_STORE_WRITE);
    return store->ops->remove(store, id, site, time_ms, everywhere);
}

int wb_store_put_revisit(struct wb_store *store, const struct wb_store_revisit *revisit,
                         enum wb_store_outcome *outcome_out)
{
    enum wb_store_outcome ignored;

    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(revisit != NULL);
    WB_CHECK(store->mode == WB_STORE_WRITE);
    if (!outcome_out)
        outcome_out = &ignored;
    *outcome_out = WB_STORE_PUT_NEW;
    return store->ops->put_revisit(store, revisit, outcome_out);
}

int wb_store_get_revisit(struct wb_store *store, struct wb_pageid id, struct wb_store_revisit *revisit_out)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    *revisit_out = (struct wb_store_revisit){0};
    return store->ops->get_revisit(store, id, revisit_out);
}

int wb_store_waiting_each(struct wb_store *store, struct wb_pageid original,
                          int (*each)(void *context, const struct wb_store_revisit *revisit), void *context)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(each != NULL);
    return store->ops->waiting_each(store, original, each, context);
}

int wb_store_bar(struct wb_store *store, const struct wb_store_bar *bar)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(store->mode == WB_STORE_WRITE);
    WB_CHECK(bar->kind == WB_STORE_BAR_PAGE || (bar->kind == WB_STORE_BAR_SITE && bar->site.len && !bar->except));
    return store->ops->bar(store, bar);
}

int wb_store_allow(struct wb_store *store, const struct wb_store_bar *bar)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(store->mode == WB_STORE_WRITE);
    WB_CHECK(bar->kind == WB_STORE_BAR_PAGE || (bar->kind == WB_STORE_BAR_SITE && bar->site.len));
    return store->ops->allow(store, bar);
}

int wb_store_barred(struct wb_store *store, struct wb_pageid id, struct wb_slice site)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    return store->ops->barred(store, id, site);
}

int wb_store_bar_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_bar *bar), void *context)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(each != NULL);
    return store->ops->bar_each(store, each, context);
}

int wb_store_bar_version(struct wb_store *store, uint64_t *version_out)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(version_out != NULL);
    return store->ops->bar_version(store, version_out);
}

int wb_store_list_site(struct wb_store *store, struct wb_slice site, struct wb_pageid *ids_out, size_t max,
                       size_t *count_out)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(ids_out != NULL || max == 0);
    *count_out = 0;
    int err = store->ops->list_site(store, site, ids_out, max, count_out);
    WB_CHECK(*count_out <= max);
    return err;
}

int wb_store_commit(struct wb_store *store, struct wb_store_commit_counts *counts_inout)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(counts_inout != NULL);
    WB_CHECK(store->mode == WB_STORE_WRITE);
    return store->ops->commit(store, counts_inout);
}

int wb_store_seal(struct wb_store *store, struct wb_slice name, const struct wb_store_holder *holder,
                  struct wb_store_snapshot *snapshot_out)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(store->mode == WB_STORE_WRITE);
    WB_CHECK(memchr(holder->name, '\0', sizeof holder->name) != NULL);
    *snapshot_out = (struct wb_store_snapshot){0};
    int err = name.len ? wb_store_name_check(name) : 0;
    if (err == 0)
        err = store->ops->seal(store, name, holder, snapshot_out);
    WB_CHECK((err == 0) == (snapshot_out->number > 0));
    return err;
}

int wb_store_drop(struct wb_store *store, uint32_t number)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(store->mode == WB_STORE_WRITE);
    return store->ops->drop(store, number);
}

int wb_store_hold(struct wb_store *store, uint32_t number, const struct wb_store_holder *holder)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(store->mode == WB_STORE_WRITE);
    WB_CHECK(memchr(holder->name, '\0', sizeof holder->name) != NULL);
    return store->ops->hold(store, number, holder);
}

int wb_store_let_go(struct wb_store *store, uint32_t number, const struct wb_store_holder *holder)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(store->mode == WB_STORE_WRITE);
    WB_CHECK(memchr(holder->name, '\0', sizeof holder->name) != NULL);
    return store->ops->let_go(store, number, holder);
}

int wb_store_snapshot_each(struct wb_store *store,
                           int (*each)(void *context, const struct wb_store_snapshot *snapshot), void *context)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(each != NULL);
    return store->ops->snapshot_each(store, each, context);
}

int wb_store_history(struct wb_store *store, struct wb_store_history *history_out)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    *history_out = (struct wb_store_history){0};
    return store->ops->history(store, history_out);
}

int wb_store_set_history(struct wb_store *store, const struct wb_store_history *history)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(store->mode == WB_STORE_WRITE);
    WB_CHECK(history->keep <= WB_STORE_KEEP_DURATION);
    WB_CHECK(history->value <= WB_STORE_HISTORY_VALUE_MAX);
    return store->ops->set_history(store, history);
}

int wb_store_timeline(struct wb_store *store, struct wb_pageid id, struct wb_store_timeline *timeline_out)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    *timeline_out = (struct wb_store_timeline){0};
    int err = store->ops->timeline(store, id, 0, timeline_out);
    WB_CHECK((err == 0) == (timeline_out->count > 0));
    return err;
}

int wb_store_timeline_in(struct wb_store *store, struct wb_pageid id, uint64_t epoch,
                         struct wb_store_timeline *timeline_out)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(epoch > 0);
    *timeline_out = (struct wb_store_timeline){0};
    int err = store->ops->timeline(store, id, epoch, timeline_out);
    WB_CHECK((err == 0) == (timeline_out->count > 0));
    return err;
}

int wb_store_get_when(struct wb_store *store, struct wb_pageid id, const struct wb_store_when *when,
                      struct wb_page *page_out, struct wb_buf *mem_out)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    *page_out = (struct wb_page){0};
    int err = store->ops->get(store, id, when, page_out, mem_out);
    WB_CHECK(err < 0 || wb_pageid_equal(page_out->id, id));
    return err;
}

int wb_store_get(struct wb_store *store, struct wb_pageid id, struct wb_page *page_out, struct wb_buf *mem_out)
{
    return wb_store_get_when(store, id, &(struct wb_store_when){.kind = WB_STORE_WHEN_LATEST}, page_out, mem_out);
}

int wb_store_get_many(struct wb_store *store, const struct wb_pageid *ids, size_t count,
                      const struct wb_store_when *when, wb_store_each_page each, void *context)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(each != NULL);
    return count ? store->ops->get_many(store, ids, count, when, each, context) : 0;
}

int wb_store_time(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    *time_ms_out = 0;
    return store->ops->time(store, id, time_ms_out);
}

int wb_store_stat(struct wb_store *store, struct wb_store_stat *stat_out)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    *stat_out = (struct wb_store_stat){0};
    return store->ops->stat(store, stat_out);
}

int wb_store_scan_open(struct wb_store *store, const struct wb_store_scan_options *options,
                       struct wb_store_scan **scan_out)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(!options->gone || options->snapshot == 0);
    WB_CHECK(options->parts == 0 || (options->part >= 1 && options->part <= options->parts));
    *scan_out = NULL;
    return store->ops->scan_open(store, options, scan_out);
}

int wb_store_scan_ready(struct wb_store *store)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    return store->ops->scan_ready ? store->ops->scan_ready(store) : 0;
}

int wb_store_scan_check(struct wb_store *store, const struct wb_store_scan_options *options)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(!options->gone || options->snapshot == 0);
    return store->ops->scan_check ? store->ops->scan_check(store, options) : 0;
}

int wb_store_scan_next(struct wb_store_scan *scan, struct wb_page *page_out)
{
    WB_CHECK(scan->magic == WB_STORE_SCAN_MAGIC);
    *page_out = (struct wb_page){0};
    int got = scan->ops->scan_next(scan, page_out);
    WB_CHECK(got <= 1);
    return got;
}

int wb_store_scan_parcel(struct wb_store_scan *scan, struct wb_store_parcel *parcel_out)
{
    WB_CHECK(scan->magic == WB_STORE_SCAN_MAGIC);
    *parcel_out = (struct wb_store_parcel){0};
    int got = scan->ops->scan_parcel(scan, parcel_out);
    WB_CHECK(got <= 1);
    WB_CHECK(got <= 0 || (parcel_out->count > 0 && parcel_out->bytes.len > 0));
    return got;
}

void wb_store_scan_tell(const struct wb_store_scan *scan, struct wb_store_position *position_out)
{
    WB_CHECK(scan->magic == WB_STORE_SCAN_MAGIC);
    *position_out = (struct wb_store_position){{0}};
    scan->ops->scan_tell(scan, position_out);
}

int wb_store_position_compare(const struct wb_store *store, const struct wb_store_position *a,
                              const struct wb_store_position *b)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    return store->ops->position_compare(a, b);
}

int wb_store_scan_holds(struct wb_store_scan *scan, struct wb_store_scan_holds *holds_out)
{
    WB_CHECK(scan->magic == WB_STORE_SCAN_MAGIC);
    *holds_out = (struct wb_store_scan_holds){0};
    return scan->ops->scan_holds(scan, holds_out);
}

void wb_store_scan_close(struct wb_store_scan *scan)
{
    if (!scan)
        return;
    WB_CHECK(scan->magic == WB_STORE_SCAN_MAGIC);
    scan->ops->scan_close(scan);
}

int wb_store_id(const char *dir, char text_out[WB_STORE_ID_HEX + 1])
{

    struct wb_superblock superblock;
    int err = wb_superblock_read(dir, &superblock);

    _Static_assert(2 * WB_SUPERBLOCK_ID_BYTES == WB_STORE_ID_HEX, "two digits a byte");
    text_out[0] = '\0';
    if (err == 0)
        wb_hex_encode(superblock.id, sizeof superblock.id, text_out);
    return err;
}
