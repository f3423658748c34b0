/*
 * hash_verify.c - checks bucket files: every image, every record, the copies of entries against the catalog, and that
 * every version which the catalog knows is there. It changes nothing, and other processes may write in the meantime.
 *
 * Buckets are changed in place, so a state of the catalog that was held from the start would soon say something else
 * than the buckets. So each bucket is compared with the newest state at the time when it is read. A bucket whose stamp
 * is greater than the one in the row belongs to a commit that has not finished or that failed: it has all versions of
 * the state that counts, and possibly more.
 */
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "pagefile/hash_store.h"
#include "pagefile/hash_verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STRICT_TRIES = 10, CHECK_TRIES = 200 };

struct used_extent {
    uint64_t at, bytes;
};

/* A file that is being checked. */
struct bucket_check {
    struct wb_hash_check *check;
    struct wb_bucket_file file;
    char name[WB_SEGMENT_NAME_MAX];
    struct wb_catalog_txn txn;
    struct wb_catalog_segment row; /* in the state of txn */
    bool any_gone;
    struct wb_bucket bucket;
    bool pending; /* the bucket belongs to a commit that has not finished, or does not know all removals */
    struct wb_bucket_reader reader;
    struct wb_buf record;
    struct wb_pageview view;
    struct wb_parts parts;
    bool quiet, moved;
    unsigned problems;     /* that were found in the bucket */
    uint64_t pages;        /* latest versions in it */
    struct wb_pageid last; /* in a walk over the catalog: the last id of the bucket */
    WB_VEC(struct used_extent) extents;
};

static uint64_t offset_of(const struct bucket_check *f)
{
    return wb_bucket_at(&f->file, f->bucket.number);
}

/* Problems are counted first, and reported when it is certain that nobody changed the bucket in the meantime. */
static void report(struct bucket_check *f, uint64_t offset, const char *message)
{
    WB_CHECK(message[0] != '\0');
    f->problems++;
    if (!f->quiet)
        f->check->report(f->check->context, true, f->name, offset, message);
}

/* Reports damage, so that the work continues. Any other error ends it. */
static int absorb(struct bucket_check *f, int err, uint64_t offset)
{
    WB_CHECK(err <= 0);
    if (err != WB_E_CORRUPT && err != WB_E_NEWER)
        return err;
    report(f, offset, wb_error_message());
    return 0;
}

/* ---- one bucket ------------------------------------------------------------------------------------------------ */

/* Whether a place of the page is in this file. */
static int is_here(struct bucket_check *f, struct wb_pageid id, const struct wb_catalog_place *place, bool *here_out)
{
    struct wb_catalog_segment row;

    *here_out = false;
    if (place->segment == 0)
        return 0;
    int err = wb_parts_row_of(&f->txn, &f->parts, place->segment, id, &row);
    *here_out = err == 0 && row.number == f->row.number;
    return err;
}

/* Checks that a version which the catalog knows is in the bucket. */
static int expect_version(struct bucket_check *f, struct wb_pageid id, const struct wb_catalog_place *place)
{
    char message[128], hex[WB_PAGEID_HEX + 1];
    bool here;
    size_t at;
    int err = is_here(f, id, place, &here);

    if (err < 0 || !here || wb_bucket_find(&f->bucket, id, place, &at))
        return err;
    wb_pageid_hex(id, hex);
    snprintf(message, sizeof message, "bucket %llu does not have a version of page %s that the catalog knows",
             (unsigned long long)f->bucket.number, hex);
    report(f, offset_of(f), message);
    return 0;
}

/* Returns 1 behind the last id of the bucket. */
static int expect_page(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    struct bucket_check *f = context;
    struct wb_catalog_entry copy;
    bool here;

    if (wb_pageid_compare(id, f->last) > 0)
        return 1;
    int err = is_here(f, id, &entry->place, &here);
    if (err < 0 || !here)
        return err;
    f->pages++;
    if (!f->pending && !wb_bucket_find_page(&f->bucket, id, &copy))
        report(f, offset_of(f), "it does not have the entry of a page that the catalog knows");
    return expect_version(f, id, &entry->place);
}

static int expect_history(void *context, struct wb_pageid id, struct wb_slice bytes)
{
    struct bucket_check *f = context;

    (void)bytes;
    if (wb_pageid_compare(id, f->last) > 0)
        return 1;
    int err = wb_pageview_load(&f->txn, true, id, &f->view);
    for (size_t i = 0; i < f->view.history.versions.count && err == 0; i++)
        err = expect_version(f, id, &f->view.history.versions.items[i].place);
    return err;
}

/* Everything that the catalog knows must be in the bucket. */
static int check_complete(struct bucket_check *f)
{
    struct wb_pageid first = {.hi = f->bucket.number ? wb_bucket_edge(&f->file, f->bucket.number - 1) + 1
                                                     : f->file.range.prefix};

    f->last = (struct wb_pageid){.hi = wb_bucket_edge(&f->file, f->bucket.number), .lo = UINT64_MAX};
    int err = wb_catalog_entry_each_from(&f->txn, first, expect_page, f);
    if (err >= 0)
        err = wb_catalog_history_each(&f->txn, first, expect_history, f);
    return err < 0 ? err : 0;
}

/* Compares a record with what the catalog knows about its version; f->view is that of the page. */
static int check_record(struct bucket_check *f, const struct wb_bucket_version *stored)
{
    const struct wb_history *history = &f->view.history;
    struct wb_page page;
    int err = wb_pagefile_page(wb_buf_slice(&f->record), stored->id, NULL, &page);

    if (err == 0)
        err = wb_pagefile_check_digests(&page);
    if (err < 0)
        return err;
    bool known = false;
    struct wb_slice site = wb_key_site(page.key);
    for (size_t i = 0; f->check->sound && i < history->versions.count; i++) {
        const struct wb_history_version *version = &history->versions.items[i];
        if (!wb_catalog_place_equal(&version->place, &stored->place))
            continue;
        known = true;
        if (version->body_bytes != page.body.len || version->status != page.status ||
            f->view.site != wb_hash64(site.ptr, site.len) ||
            version->content != wb_history_content(&page, f->check->content_seed))
            return wb_fail(WB_E_CORRUPT, "the catalog and the record of %.*s contradict each other",
                           WB_SLICE_ARG(page.url));
    }
    if (f->check->sound && !f->pending && !known && stored->dead == 0)
        return wb_fail(WB_E_CORRUPT, "a version of %.*s is not known to the catalog, and not flagged as dead",
                       WB_SLICE_ARG(page.url));
    return 0;
}

/* The copy of an entry must be the entry. */
static int check_copy(struct bucket_check *f, const struct wb_bucket_page *page)
{
    const struct wb_catalog_entry *copy = &page->entry;
    struct wb_catalog_entry entry;
    int err = wb_catalog_entry_get(&f->txn, page->id, &entry);

    if (err == WB_E_NOTFOUND)
        return wb_fail(WB_E_CORRUPT, "it has the entry of a page that the catalog does not know");
    if (err < 0)
        return err;
    if (!wb_catalog_place_equal(&copy->place, &entry.place) || copy->time_ms != entry.time_ms ||
        copy->body_bytes != entry.body_bytes || copy->stored_bytes != entry.stored_bytes ||
        copy->epoch != entry.epoch || copy->content != entry.content || copy->history != entry.history ||
        copy->floor_ms != entry.floor_ms || copy->status != entry.status || copy->lifetime != entry.lifetime ||
        copy->lifetime_count != entry.lifetime_count || copy->site != entry.site)
        return wb_fail(WB_E_CORRUPT, "its copy of an entry differs from the catalog");
    return 0;
}

static int use_extent(struct bucket_check *f, uint64_t at, uint64_t bytes)
{
    return at ? wb_vec_push(&f->extents, (struct used_extent){at, bytes}) : 0;
}

static int check_versions(struct bucket_check *f)
{
    int err = use_extent(f, f->bucket.overflow_at, f->bucket.overflow_bytes);

    for (size_t i = 0; i < f->bucket.versions.count && err == 0; i++) {
        const struct wb_bucket_version *version = &f->bucket.versions.items[i];
        bool first = i == 0 || !wb_pageid_equal(version->id, (version - 1)->id);
        if (f->check->sound && first)
            err = wb_pageview_load(&f->txn, f->any_gone, version->id, &f->view);
        if (err == 0)
            err = use_extent(f, version->extent_at, version->extent_bytes);
        if (err == 0)
            err = wb_bucket_read_record(&f->reader, &f->file, &f->bucket, i, &f->record);
        if (err == 0)
            err = check_record(f, version);
        err = absorb(f, err, version->extent_at ? version->extent_at : offset_of(f));
    }
    for (size_t i = 0; i < f->bucket.pages.count && err == 0; i++)
        if (f->check->sound && !f->pending)
            err = absorb(f, check_copy(f, &f->bucket.pages.items[i]), offset_of(f));
    return err;
}

/* ---- one file --------------------------------------------------------------------------------------------------- */

/* Takes up the newest state, and the file that counts in it. Returns 1, or 0 if it is gone. */
static int renew(struct bucket_check *f)
{
    struct wb_hash_check *check = f->check;
    struct wb_catalog_summary summary;
    struct wb_node *node = NULL;
    int err = wb_catalog_txn_read(check->catalog, &f->txn);

    if (err == 0)
        err = wb_catalog_summary_get(&f->txn, &summary);
    if (err == 0)
        err = wb_catalog_segment_get(&f->txn, f->row.number, &f->row);
    if (err < 0)
        return err == WB_E_NOTFOUND ? 0 : err;
    f->any_gone = summary.gone > 0;
    if (f->file.magic && f->file.revision == f->row.revision)
        return 1;
    wb_bucket_file_close(&f->file);
    wb_vec_clear(&f->extents);
    wb_bucket_name(f->row.number, f->row.revision, f->name);
    err = check->node(check->context, f->row.node, &node);
    if (err == 0)
        err = wb_bucket_file_open(node, check->repo_id, &f->row, false, &f->file);
    return err < 0 ? err : 1;
}

/* Whether a sweep that was not committed has changed the bucket, or was about to: then it may be torn. */
static bool was_being_swept(struct bucket_check *f, uint64_t number)
{
    struct wb_bucket_swept swept = {0};
    bool listed = false;

    if (wb_bucket_swept_read(&f->file, f->row.logical_end, &swept) == 0)
        for (size_t i = 0; i < swept.buckets.count && !listed; i++)
            listed = swept.buckets.items[i] == number;
    wb_bucket_swept_release(&swept);
    return listed;
}

/* Reads a bucket. Somebody may be writing it just now, or it may be torn. */
static int read_bucket(struct bucket_check *f, uint64_t number)
{
    int err = WB_E_CORRUPT;

    wb_bucket_reader_forget(&f->reader);
    for (unsigned i = 0; i < STRICT_TRIES && err == WB_E_CORRUPT; i++) {
        err = wb_bucket_read_strictly(&f->file, number, &f->bucket);
        if (err == WB_E_CORRUPT)
            usleep(100u << i);
    }
    if (err != WB_E_CORRUPT || wb_bucket_read(&f->file, number, &f->bucket) < 0)
        return err;
    /* A torn bucket can have the old image, and behind it the end of the new one. */
    if (f->bucket.stamp <= f->row.logical_end && !was_being_swept(f, number))
        report(f, wb_bucket_at(&f->file, number), "the bucket is damaged; it can be read from the double-write file");
    else if (!f->quiet)
        f->check->report(f->check->context, false, f->name, wb_bucket_at(&f->file, number),
                         "the bucket is torn; it is read from the double-write file, and the next writer repairs it");
    return 0;
}

/* Checks the bucket that has the ids from `hi` on, in the newest state. *edge_out is the last one. */
static int check_once(struct bucket_check *f, uint64_t hi, uint64_t *edge_out)
{
    int err = renew(f);

    *edge_out = UINT64_MAX;
    f->problems = 0;
    f->pages = 0;
    f->moved = false;
    if (err > 0 && hi <= wb_catalog_range_last(&f->file.range)) {
        uint64_t number = wb_bucket_of(&f->file, (struct wb_pageid){.hi = hi}), state = wb_catalog_txn_id(&f->txn);
        *edge_out = wb_bucket_edge(&f->file, number);
        err = read_bucket(f, number);
        f->pending = err == 0 && (f->bucket.stamp > f->row.logical_end || f->row.unwritten);
        if (err == 0 && f->check->sound)
            err = check_complete(f);
        if (err == 0)
            err = check_versions(f);
        err = absorb(f, err, wb_bucket_at(&f->file, number));
        f->moved = wb_tree_moved(wb_catalog_tree(f->check->catalog), state);
    }
    wb_catalog_txn_abort(&f->txn);
    return err < 0 ? err : 0;
}

/* A commit may change the bucket while we compare it with the catalog: then we do it again. */
static int check_bucket(struct bucket_check *f, uint64_t hi, uint64_t *edge_out)
{
    size_t extents = f->extents.count;
    uint32_t revision = f->file.revision;
    int err = 0;

    f->quiet = true;
    for (unsigned i = 0; i < CHECK_TRIES && err == 0; i++) {
        f->extents.count = f->file.revision == revision ? extents : 0;
        err = check_once(f, hi, edge_out);
        if (err == 0 && f->problems && !f->moved) {
            f->quiet = false;
            f->extents.count = f->file.revision == revision ? extents : 0;
            err = check_once(f, hi, edge_out);
        }
        if (f->problems == 0 || !f->quiet)
            break;
    }
    f->check->pages += f->pages;
    return err;
}

static int compare_extents(const void *a, const void *b)
{
    const struct used_extent *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* No byte may belong to two extents. Several versions may share one. */
static void check_extents(struct bucket_check *f)
{
    struct used_extent *extents = f->extents.items;

    if (f->extents.count > 1)
        qsort(extents, f->extents.count, sizeof *extents, compare_extents);
    for (size_t i = 1; i < f->extents.count; i++)
        if (extents[i].at != extents[i - 1].at && extents[i].at < extents[i - 1].at + extents[i - 1].bytes)
            report(f, extents[i].at, "an extent begins inside of another one");
}

static int check_seal(struct bucket_check *f)
{
    uint64_t commit;

    if (!wb_bucket_read_seal(&f->file, &commit))
        return 0;
    return f->check->sealed(f->check->context, f->name, commit);
}

int wb_hash_check(struct wb_hash_check *check, const struct wb_catalog_segment *row)
{
    struct bucket_check f = {.check = check, .file = WB_BUCKET_FILE_INIT, .row = *row};
    uint64_t hi = row->range.prefix, last = wb_catalog_range_last(&row->range), edge = 0;
    int err = wb_bucket_reader_init(&f.reader);

    wb_bucket_name(row->number, row->revision, f.name);
    if (err == 0)
        err = renew(&f);
    wb_catalog_txn_abort(&f.txn);
    if (err > 0 && f.file.headless)
        report(&f, 0, "its header is damaged; the next writer makes a new one");
    if (err > 0)
        err = check_seal(&f);
    while (err == 0 && f.file.magic) {
        err = check_bucket(&f, hi, &edge);
        check->done += f.file.bucket_bytes;
        if (err == 0 && !check->progress(check->context, check->done))
            err = wb_fail(WB_E_STOPPED, "verification was stopped");
        if (edge >= last)
            break;
        hi = edge + 1;
    }
    if (err == 0)
        check_extents(&f);
    err = err == WB_E_DOWN ? 0 : absorb(&f, err, 0); /* a node that is down has been reported */
    wb_bucket_file_close(&f.file);
    wb_bucket_release(&f.bucket);
    wb_bucket_reader_release(&f.reader);
    wb_buf_release(&f.record);
    wb_pageview_release(&f.view);
    wb_vec_release(&f.parts);
    wb_vec_release(&f.extents);
    return err;
}
