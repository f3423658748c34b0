/*
 * repo_write.c - collects what a writer puts, touches and removes, until it commits.
 *
 * `ops` has every operation in the order in which it came; the commit carries them out. So that a
 * writer sees its own changes before they are committed, the ops of a page can be applied to a view of
 * it (pageview.c) at any time; they are chained for that purpose, the last one first.
 *
 * Whatever can be decided early is decided here: a page that is older than the stored
 * version is not even compressed. The commit decides again, because other processes
 * may commit in the meantime. This file never writes to the catalog or to a segment.
 */
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/random.h"
#include "store/repo.h"
#include "store/repo_base.h"
#include "store/repo_ops.h"

/* ---- the index of pages and sites --------------------------------------------------------------- */

/* URLs come from strangers, who could choose them so that all end up in one place of the table: hence a secret seed. */
static void index_init(union wb_op_index *map)
{
    uint64_t seed;

    wb_random_bytes(&seed, sizeof seed);
    *map = (union wb_op_index)WB_MAP_INIT(seed);
}

static struct wb_op_index_entry *index_find(const union wb_op_index *map, struct wb_pageid id)
{
    struct wb_op_index_entry *entry = NULL;

    while ((entry = wb_map_next(map, id.lo, entry)))
        if (wb_pageid_equal(entry->id, id))
            break;
    return entry;
}

bool wb_op_index_get(const union wb_op_index *map, struct wb_pageid id, uint32_t *index_out)
{
    const struct wb_op_index_entry *entry = index_find(map, id);

    *index_out = entry ? entry->index : 0;
    return entry != NULL;
}

int wb_op_index_set(union wb_op_index *map, struct wb_pageid id, size_t index)
{
    struct wb_op_index_entry *entry = index_find(map, id);

    WB_CHECK(index < UINT32_MAX);
    if (!entry) {
        entry = wb_map_add(map, id.lo);
        if (!entry)
            return WB_E_NOMEM;
        entry->id = id;
    }
    entry->index = (uint32_t)index;
    return 0;
}

/* ---- the writer --------------------------------------------------------------------------------- */

int wb_repo_writer_new(struct wb_repo *repo)
{
    struct wb_repo_writer *writer = wb_alloc_zero(1, sizeof *writer);

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(repo->store.mode == WB_STORE_WRITE);
    WB_CHECK(!repo->writer);
    if (!writer)
        return WB_E_NOMEM;
    writer->magic = WB_REPO_WRITER_MAGIC;
    repo->writer = writer;
    index_init(&writer->site_index);
    index_init(&writer->page_index);
    for (size_t i = 0; i < WB_REPO_VIEWS; i++)
        writer->views[i].last_op = -1;
    writer->files.commit_at_open = repo->commit_at_open;
    return wb_pagefile_writer_init(&repo->files, &writer->files);
}

void wb_ops_clear(struct wb_repo *repo)
{
    struct wb_repo_writer *writer = repo->writer;

    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    for (size_t i = 0; i < writer->ops.count; i++) {
        wb_buf_release(&writer->ops.items[i].record);
        wb_free(writer->ops.items[i].revisit);
    }
    for (size_t i = 0; i < writer->sites.count; i++)
        wb_free(writer->sites.items[i].name);
    wb_vec_clear(&writer->ops);
    wb_vec_clear(&writer->sites);
    wb_map_clear(&writer->site_index);
    wb_map_clear(&writer->page_index);
    writer->indexed = 0;
    for (size_t i = 0; i < WB_REPO_VIEWS; i++)
        writer->views[i].last_op = -1;
    writer->moment_known = false;
    writer->waiting_ops = 0;
    writer->spare_bytes = 0;
    writer->older = writer->barred = 0;
    wb_pagefile_forget(&repo->files);
    wb_busy_end(&repo->busy, &writer->busy);
}

void wb_repo_writer_free(struct wb_repo *repo)
{
    struct wb_repo_writer *writer = repo->writer;

    if (!writer)
        return;
    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    repo->files.kind->flush_drop(&repo->files);
    wb_ops_clear(repo);
    wb_pagefile_writer_release(&repo->files);
    wb_vec_release(&writer->ops);
    wb_vec_release(&writer->sites);
    wb_map_release(&writer->site_index);
    wb_map_release(&writer->page_index);
    for (size_t i = 0; i < WB_REPO_VIEWS; i++)
        wb_pageview_release(&writer->views[i].view);
    wb_pageview_release(&writer->spare);
    wb_vec_release(&writer->held);
    wb_vec_release(&writer->chain);
    writer->magic = 0;
    wb_free(writer);
    repo->writer = NULL;
}

/* ---- ops, and what they make true ------------------------------------------------------------ */

int wb_repo_site_index(struct wb_repo_writer *writer, struct wb_slice site, uint32_t *index_out)
{
    struct wb_pageid hash; /* the index works for any 128-bit hash */
    int err;

    WB_CHECK(site.ptr || site.len == 0);
    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    wb_hash128(site.ptr, site.len, &hash.hi, &hash.lo);
    if (wb_op_index_get(&writer->site_index, hash, index_out)) {
        WB_CHECK(*index_out < writer->sites.count);
        return 0;
    }
    err = wb_vec_reserve(&writer->sites, writer->sites.count + 1);
    if (err < 0)
        return err;
    char *name = wb_strndup(site.ptr, site.len);
    if (!name)
        return WB_E_NOMEM;
    err = wb_op_index_set(&writer->site_index, hash, writer->sites.count);
    if (err < 0) {
        wb_free(name);
        return err;
    }
    *index_out = (uint32_t)writer->sites.count;
    return wb_vec_push(&writer->sites, (struct wb_repo_site){name, site.len, wb_hash64(site.ptr, site.len), 0});
}

/* Reads what the next commit will go by. */
static int read_moment(void *context)
{
    struct wb_repo *repo = context;
    struct wb_repo_writer *writer = repo->writer;
    struct wb_catalog_summary summary;
    int err = wb_catalog_summary_get(&repo->reader, &summary);

    WB_CHECK(!writer->moment_known);
    WB_CHECK(repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    if (err == 0)
        err = wb_repo_epochs_held(repo, &repo->reader, &writer->held);
    writer->moment.epoch = wb_history_next_epoch(summary.epoch);
    writer->moment.rule =
        (struct wb_history_rule){summary.history, writer->held.items, writer->held.count, wb_clock_wall_ms()};
    writer->any_gone = summary.gone > 0;
    writer->any_waiting = summary.revisits > 0;
    writer->moment_known = err == 0;
    WB_CHECK(err < 0 || writer->moment.epoch > 1);
    return err;
}

/* A page that the catalog may know. */
struct view_load {
    struct wb_repo *repo;
    struct wb_pageid id;
    struct wb_pageview *view;
};

static int load_view(void *context)
{
    struct view_load *l = context;
    struct wb_moment *moment = &l->repo->writer->moment;
    int err = wb_pageview_load(&l->repo->reader, l->repo->writer->any_gone, l->id, l->view);

    WB_CHECK(l->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(l->repo->writer->moment_known);
    /* Others may have begun epochs since we have read the newest one. Ops come after all that the page has seen. */
    for (size_t i = 0; i < l->view->history.versions.count && err == 0; i++) {
        const struct wb_history_version *version = &l->view->history.versions.items[i];
        uint64_t newest = version->ceased > version->arrived ? version->ceased : version->arrived;
        moment->epoch = moment->epoch > newest ? moment->epoch : wb_history_next_epoch(newest);
    }
    return err < 0 ? err : wb_repo_base_view(l->repo, l->view);
}

static struct wb_catalog_place pending_place(size_t op)
{
    WB_CHECK(op < UINT32_MAX);
    return (struct wb_catalog_place){.segment = WB_PAGEVIEW_PENDING_SEGMENT, .logical = op + 1};
}

/* Applies the ops of a page after number `after`, up to number `last`, to its view. */
static int apply_ops(struct wb_repo_writer *writer, int64_t after, int64_t last, struct wb_pageview *view)
{
    enum wb_store_outcome ignored;
    size_t count = 0;
    int err = 0;

    WB_CHECK(after >= -1);
    WB_CHECK(after <= last);
    WB_CHECK(writer->moment_known);
    WB_CHECK(last < (int64_t)writer->ops.count);
    for (int64_t i = last; i > after; i = writer->ops.items[i].previous)
        count++;
    /* The chain leads from the last op to the first; they are applied the other way round. */
    wb_vec_clear(&writer->chain);
    err = wb_vec_reserve(&writer->chain, count);
    for (int64_t i = last; i > after && err == 0; i = writer->ops.items[i].previous)
        err = wb_vec_push(&writer->chain, (size_t)i);
    for (size_t i = count; i > 0 && err == 0; i--) {
        size_t op = writer->chain.items[i - 1];
        if (wb_op_knows_site(writer->ops.items[op].kind))
            view->site = writer->sites.items[writer->ops.items[op].site].hash;
        err = wb_op_apply(&writer->ops.items[op], pending_place(op), &writer->moment, view, &ignored);
    }
    return err;
}

int wb_repo_view(struct wb_repo *repo, struct wb_pageid id, struct wb_pageview **view_out)
{
    struct wb_repo_writer *writer = repo->writer;
    struct wb_repo_cached_view *cached = &writer->views[id.lo % WB_REPO_VIEWS];
    uint32_t last;
    int err = 0;

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    *view_out = NULL;
    if (!writer->moment_known)
        err = wb_repo_read(repo, read_moment, repo);
    if (err < 0)
        return err;
    writer->moment.rule.now_ms = wb_clock_wall_ms();
    bool concerned = wb_repo_last_op(writer, id, &last);
    if (!concerned) { /* nothing to remember: other processes may change the page until we do */
        *view_out = &writer->spare;
        return wb_repo_read(repo, load_view, &(struct view_load){repo, id, &writer->spare});
    }
    if (cached->last_op < 0 || !wb_pageid_equal(cached->view.id, id)) {
        cached->last_op = -1;
        err = wb_repo_read(repo, load_view, &(struct view_load){repo, id, &cached->view});
        if (err == 0)
            err = apply_ops(writer, -1, last, &cached->view);
    } else {
        err = apply_ops(writer, cached->last_op, last, &cached->view);
    }
    cached->last_op = err == 0 ? (int64_t)last : -1;
    WB_CHECK(cached->last_op < (int64_t)writer->ops.count);
    *view_out = &cached->view;
    return err;
}

/* ---- put, touch, remove ----------------------------------------------------------------------------- */

/* The catalog has 16 bits for a number of days. */
static uint16_t days16(uint32_t days)
{
    return days > UINT16_MAX ? UINT16_MAX : (uint16_t)days;
}

int wb_repo_can_change(struct wb_repo *repo, const struct wb_pageview *view)
{
    const struct wb_pagefile_kind *kind = repo->files.kind;

    return kind->can_change ? kind->can_change(&repo->files, view) : 0;
}

/* The view includes the op that was just added: keeps it for the next one. */
static void keep_view(struct wb_repo_writer *writer, struct wb_pageview *view)
{
    struct wb_repo_cached_view *cached = &writer->views[view->id.lo % WB_REPO_VIEWS];

    WB_CHECK(writer->ops.count > 0);
    WB_CHECK(wb_pageid_equal(writer->ops.items[writer->ops.count - 1].id, view->id));
    WB_CHECK(view == &writer->spare || view == &cached->view);
    if (view == &writer->spare) {
        struct wb_pageview other = cached->view;
        cached->view = writer->spare;
        writer->spare = other;
    }
    cached->last_op = (int64_t)writer->ops.count - 1;
}

/* Bytes that will not be stored must not be found in the view either. */
static void hollow_out(struct wb_pageview *view, struct wb_catalog_place place)
{
    WB_CHECK(place.segment == WB_PAGEVIEW_PENDING_SEGMENT);
    WB_CHECK(place.logical > 0);
    for (size_t i = 0; i < view->history.versions.count; i++)
        if (wb_catalog_place_equal(&view->history.versions.items[i].place, &place))
            view->history.versions.items[i].place = (struct wb_catalog_place){0};
}

/* Reads the bytes of a version of the page. */
static int read_rival(void *context, struct wb_pageid id, const struct wb_history_version *version,
                      struct wb_page *page_out, struct wb_buf *mem_out)
{
    return wb_repo_read_version(context, id, version, page_out, mem_out);
}

/*
 * What the commit will make of a put. Decides whether its bytes must be stored (then its kind is PUT), or
 * whether its time is enough (CAPTURE). *needed_out is false if the op would change nothing at all, and *spare_out
 * is true if its bytes may become necessary, because others could give up the content.
 */
static int forecast(struct wb_repo *repo, struct wb_op *op, const struct wb_page *page, struct wb_pageview **view_out,
                    enum wb_store_outcome *outcome_out, bool *needed_out, bool *spare_out)
{
    struct wb_repo_writer *writer = repo->writer;
    struct wb_catalog_place place = pending_place(writer->ops.count);
    int err = wb_repo_view(repo, op->id, view_out);

    WB_CHECK(op->content != 0);
    WB_CHECK(op->record.len == 0);
    *needed_out = *spare_out = false;
    if (err == 0)
        err = wb_repo_can_change(repo, *view_out);
    if (err == 0)
        err = wb_repo_rival(&(*view_out)->history, page, read_rival, repo, &op->replaces);
    *outcome_out = WB_STORE_PUT_KNOWN;
    if (err != 0) /* covered, or failed */
        return err < 0 ? err : 0;
    struct wb_history *history = &(*view_out)->history;
    /* A ghost may be gone by the time of the commit, and the bytes with it. */
    const struct wb_history_version *found = wb_history_find(history, op->content);
    bool theirs = found && found->place.segment == WB_CATALOG_BASE_SEGMENT && found->ceased != 0;
    bool known = found && !found->ghost && !theirs;
    bool pending = known && found->place.segment == WB_PAGEVIEW_PENDING_SEGMENT;
    op->kind = WB_OP_PUT;
    err = wb_op_apply(op, place, &writer->moment, *view_out, outcome_out);
    bool forgotten = *outcome_out == WB_STORE_PUT_PAST && writer->moment.rule.policy.keep == WB_STORE_KEEP_NEWEST;
    *needed_out = err == 0 && *outcome_out <= WB_STORE_PUT_PAST;
    if (err < 0 || !*needed_out)
        writer->views[op->id.lo % WB_REPO_VIEWS].last_op = -1; /* should it be that view, it is of no use any more */
    if (known || forgotten || *outcome_out == WB_STORE_PUT_CAPTURE)
        op->kind = WB_OP_CAPTURE;
    *spare_out = known && !forgotten && !pending;
    if (forgotten) {
        hollow_out(*view_out, place);
        *outcome_out = WB_STORE_PUT_OLDER;
    }
    return err;
}

int wb_repo_store_record(struct wb_repo *repo, const struct wb_op *op, struct wb_buf *record)
{
    struct wb_repo_writer *writer = repo->writer;
    struct wb_put put = {
        .id = op->id,
        .site = op->site,
        .site_hash = writer->sites.items[op->site].hash,
        .body_bytes = op->entry.body_bytes,
        .record = *record,
    };

    WB_CHECK(op->put == writer->files.puts.count + 1);
    *record = WB_BUF_INIT;
    int err = wb_pagefile_put(&repo->files, &put);
    wb_buf_release(&put.record);
    /* A segment that was begun may have a row or not. Both are fine; what was committed before is not affected. */
    if (err < 0 && wb_catalog_uncertain(repo->catalog)) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        (void)wb_repo_open_catalog(repo);
        err = wb_error_restore(&why);
    }
    return err;
}

/* Adds the op of a put. If its bytes are to be stored, or may have to be (spare), encodes the page. */
static int add_put(struct wb_repo *repo, struct wb_op *op, const struct wb_page *page, bool spare)
{
    struct wb_repo_writer *writer = repo->writer;
    struct wb_buf record = WB_BUF_INIT;
    int err = op->kind == WB_OP_PUT || spare ? wb_page_encode(page, &record) : 0;

    WB_CHECK(!spare || op->kind == WB_OP_CAPTURE);
    if (spare && record.len > wb_pagefile_sizes.spare_bytes - writer->spare_bytes)
        op->kind = WB_OP_PUT; /* it goes to the disk, where it may turn out to be dead, and not into memory */
    if (op->kind == WB_OP_PUT)
        op->put = (uint32_t)writer->files.puts.count + 1;
    else
        op->record = record;
    if (err == 0)
        err = wb_op_add(repo, op);
    if (err < 0) {
        wb_buf_release(&record);
        return err;
    }
    if (op->kind == WB_OP_CAPTURE) {
        writer->spare_bytes += record.len;
        WB_CHECK(writer->spare_bytes <= wb_pagefile_sizes.spare_bytes);
        return 0;
    }
    return wb_repo_store_record(repo, op, &record);
}

int wb_repo_put_captured(struct wb_repo *repo, struct wb_op *op)
{
    WB_CHECK(op->kind == WB_OP_CAPTURE && op->record.len > 0);
    op->kind = WB_OP_PUT;
    op->put = (uint32_t)repo->writer->files.puts.count + 1;
    return wb_repo_store_record(repo, op, &op->record);
}

int wb_repo_put(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out)
{
    struct wb_repo *repo = wb_repo_of_writer(store);
    struct wb_repo_writer *writer = repo->writer;
    struct wb_op op = {.id = page->id, .time_ms = page->time_ms, .has_lifetime = true};
    struct wb_slice site = wb_key_site(page->key);
    struct wb_pageview *view;
    bool needed, spare;
    int err = wb_pagefile_check_usable(&writer->files);
    int barred = err == 0 ? wb_repo_barred(store, page->id, site) : err;
    struct wb_bin bin;

    WB_CHECK(page->body.len <= WB_STORE_BODY_MAX);
    if (barred) {
        writer->barred += barred > 0;
        *outcome_out = WB_STORE_PUT_BARRED;
        return barred < 0 ? barred : 0;
    }
    err = wb_bin_of(&repo->nodes, page->id, &bin); /* whatever becomes of it, its node must be there */
    if (err < 0)
        return err;
    op.content = wb_history_content(page, repo->content_seed);
    op.entry = (struct wb_catalog_entry){
        .body_bytes = (uint32_t)page->body.len,
        .status = page->status,
        .lifetime = days16(page->lifetime),
        .lifetime_count = days16(page->lifetime_count ? page->lifetime_count : page->lifetime),
    };
    op.has_payload_sha1 = page->has_payload_sha1;
    memcpy(op.payload_sha1, page->payload_sha1, sizeof op.payload_sha1);
    err = forecast(repo, &op, page, &view, outcome_out, &needed, &spare);
    if (err < 0 || !needed) {
        writer->older += err == 0;
        return err;
    }
    err = wb_repo_site_index(writer, site, &op.site);
    if (err == 0) {
        view->site = writer->sites.items[op.site].hash;
        err = add_put(repo, &op, page, spare);
    }
    if (err == 0)
        keep_view(writer, view);
    return err;
}

/* The page as it is before an op is added. */
static int view_to_change(struct wb_repo *repo, struct wb_pageid id, struct wb_pageview **view_out)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(repo->store.mode == WB_STORE_WRITE);
    int err = wb_pagefile_check_usable(&repo->writer->files);

    return err < 0 ? err : wb_repo_view(repo, id, view_out);
}

int wb_repo_touch(struct wb_store *store, struct wb_pageid id, int64_t time_ms)
{
    struct wb_repo *repo = wb_repo_of_writer(store);
    struct wb_op op = {.kind = WB_OP_TOUCH, .id = id, .time_ms = time_ms};
    struct wb_pageview *view;
    int err = view_to_change(repo, id, &view);

    if (err == 0)
        err = wb_repo_can_change(repo, view);
    if (err < 0)
        return err;
    if (!wb_history_latest(&view->history))
        return wb_store_not_found();
    if (repo->base) { /* the page may come to be counted here */
        struct wb_slice site;
        err = wb_repo_base_site(repo, view->site, &site);
        if (err == 0)
            err = wb_repo_site_index(repo->writer, site, &op.site);
    }
    return err < 0 ? err : wb_op_add(repo, &op);
}

int wb_repo_remove(struct wb_store *store, struct wb_pageid id, struct wb_slice site, int64_t time_ms, bool everywhere)
{
    struct wb_repo *repo = wb_repo_of_writer(store);
    struct wb_op op = {.kind = everywhere ? WB_OP_REMOVE_EVERYWHERE : WB_OP_REMOVE, .id = id, .time_ms = time_ms};
    struct wb_pageview *view;
    int err = view_to_change(repo, id, &view);

    if (err < 0)
        return err;
    if (everywhere ? view->history.versions.count == 0 : !wb_history_latest(&view->history))
        return wb_store_not_found();
    err = wb_repo_site_index(repo->writer, site, &op.site);
    return err < 0 ? err : wb_op_add(repo, &op);
}

int wb_repo_get_pending(struct wb_repo *repo, size_t number, struct wb_page *page_out, struct wb_buf *mem_out)
{
    struct wb_repo_writer *writer = repo->writer;
    int err;

    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    WB_CHECK(number < writer->ops.count);
    const struct wb_op *op = &writer->ops.items[number];
    WB_CHECK(op->kind <= WB_OP_CAPTURE);
    WB_CHECK((op->kind == WB_OP_PUT) == (op->put > 0));
    if (op->put) {
        err = wb_pagefile_pending(&repo->files, op->put - 1, mem_out);
    } else {
        wb_buf_clear(mem_out);
        err = wb_buf_append_slice(mem_out, wb_buf_slice(&op->record));
        if (err == 0)
            err = wb_page_record_digest(
                &(struct wb_record_digest){mem_out->ptr, mem_out->len, op->entry.body_bytes}, 1);
    }
    return err < 0 ? err : wb_pagefile_page(wb_buf_slice(mem_out), op->id, NULL, page_out);
}
