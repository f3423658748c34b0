/*
 * repo_commit.c - makes the ops of a writer durable, all of them or none:
 *
 *   1 append what is still in memory to the segments      (append_flush.c)
 *   2 sync the segments                                   (append_sync.c)
 *   3 one transaction of the catalog: entries, segment rows, sites, the summary
 *
 * The catalog's commit at the end of step 3 is the moment at which the pages exist. Before it, the
 * catalog knows nothing about the new bytes, and the next writer cuts them off. If there are many ops,
 * the rest of step 3 happens during step 2.
 *
 * Step 3 decides about each op again, because other processes may have committed newer
 * pages or set bars since the op was taken. A page that was taken down in the meantime
 * is left out; the next compaction removes its bytes.
 *
 * A capture counts on a content that is stored already. If another process has given it up, step 3 is
 * abandoned, the capture becomes a put with bytes of its own, and all three steps are repeated. Each time,
 * fewer captures are left.
 *
 * Which versions a page has after its ops, and where they are, is decided by history.c and
 * kept by repo_edit.c.
 *
 * This file never compresses or appends anything.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/clock.h"
#include "pagefile/pagefile.h"
#include "store/repo.h"
#include "store/repo_ops.h"

#include <stdlib.h>

enum {
    MANY_OPS = 32, /* looking at them takes longer than waking a thread */
    SOON = 8,      /* so many ops ahead, memory is asked for what is needed */
};

/* A commit in progress. */
struct log_commit {
    struct wb_repo_edit edit;
    struct wb_store_commit_counts counts;
    uint32_t *order;         /* the ops, sorted by page id, then in the order in which they came */
    struct wb_append_sync sync; /* of their bytes */
    bool page_changed;          /* the page whose ops are being applied */
    WB_VEC(uint32_t) puts;      /* of the page that is being changed */
    WB_VEC(struct wb_op *) to_store; /* captures that must become puts: the transaction is abandoned */
};

/* ---- the ops ----------------------------------------------------------------------------------------- */

static int is_barred(struct log_commit *c, const struct wb_op *op, bool *barred_out)
{
    const struct wb_repo_site *site = &c->edit.repo->writer->sites.items[op->site];

    WB_CHECK(c->edit.txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(op->site < c->edit.repo->writer->sites.count);
    *barred_out = false;
    return c->edit.summary.bars ? wb_repo_bar_holds(&c->edit.txn, op->id, wb_slice(site->name, site->len), barred_out)
                                : 0;
}

static int apply_revisit(struct log_commit *c, const struct wb_op *op)
{
    bool is_new = false;
    int err =
        wb_catalog_revisit_put(&c->edit.txn, c->edit.repo->writer->sites.items[op->site].hash, op->revisit, &is_new);

    WB_CHECK(op->revisit != NULL);
    WB_CHECK(op->kind == WB_OP_REVISIT || op->kind == WB_OP_CAPTURE);
    c->edit.summary.revisits += err == 0 && is_new;
    return err;
}

static void count_outcome(struct log_commit *c, const struct wb_op *op, enum wb_store_outcome outcome)
{
    struct wb_store_commit_counts *counts = &c->counts;

    WB_CHECK(outcome <= WB_STORE_PUT_OLDER);
    WB_CHECK(op->kind != WB_OP_REVISIT);
    if (op->kind == WB_OP_REMOVE || op->kind == WB_OP_REMOVE_EVERYWHERE) {
        counts->removed += outcome == WB_STORE_PUT_NEW;
        return;
    }
    bool forgets = c->edit.summary.history.keep == WB_STORE_KEEP_NEWEST;
    counts->added += outcome == WB_STORE_PUT_NEW;
    counts->replaced += outcome == WB_STORE_PUT_VERSION;
    counts->captures += outcome == WB_STORE_PUT_CAPTURE;
    counts->past += outcome == WB_STORE_PUT_PAST && !forgets;
    counts->older += (outcome == WB_STORE_PUT_PAST && forgets) || outcome >= WB_STORE_PUT_KNOWN;
}

/* Whether the op is a capture whose content was there when it was taken, but is not any more. */
static bool has_lost_its_content(struct wb_pageview *view, const struct wb_op *op)
{
    WB_CHECK(op->kind != WB_OP_CAPTURE || op->content != 0);
    WB_CHECK(wb_pageid_equal(view->id, op->id));
    if (op->kind != WB_OP_CAPTURE || (op->record.len == 0 && !op->revisit))
        return false;
    return !wb_history_find(&view->history, op->content);
}

/* Whether some version has its bytes at the place where this put was appended. */
static bool is_used(const struct wb_pageview *view, const struct wb_op *op)
{
    WB_CHECK(op->put > 0);
    for (size_t i = view->history.versions.count; i > 0; i--)
        if (wb_catalog_place_equal(&view->history.versions.items[i - 1].place, &op->entry.place))
            return true;
    return false;
}

/* Applies an op to the page that is being changed. */
static int apply_op(struct log_commit *c, struct wb_op *op, bool *touched, bool *on_request)
{
    enum wb_store_outcome outcome;
    struct wb_pageview *view = &c->edit.view;
    bool barred = false;
    int err = 0;

    WB_CHECK(wb_pageid_equal(view->id, op->id));
    WB_CHECK(c->edit.txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(op->kind != WB_OP_PUT || op->put > 0);
    if (op->kind == WB_OP_PUT || op->kind == WB_OP_CAPTURE || op->kind == WB_OP_REVISIT)
        err = is_barred(c, op, &barred);
    if (err < 0)
        return err;
    if (barred) {
        c->counts.barred++;
        *on_request = *on_request || op->kind == WB_OP_PUT; /* its bytes must not stay */
        return 0;
    }
    bool lost = has_lost_its_content(view, op);
    if (lost && op->record.len)
        return wb_vec_push(&c->to_store, op);
    if (op->kind == WB_OP_REVISIT || lost)
        return apply_revisit(c, op);
    if (wb_op_knows_site(op->kind)) {
        uint64_t site = c->edit.repo->writer->sites.items[op->site].hash;
        if (view->history.versions.count && view->site != site)
            return wb_catalog_corrupt(c->edit.repo->catalog, WB_CATALOG_PAGES, "a page of another site");
        view->site = site;
    }
    err = wb_op_apply(op, op->entry.place, &c->edit.moment, view, &outcome);
    if (err < 0)
        return err;
    count_outcome(c, op, outcome);
    c->page_changed = c->page_changed || outcome <= WB_STORE_PUT_PAST;
    bool as_stored = op->kind == WB_OP_PUT && op->entry.lifetime_count == op->entry.lifetime &&
                     outcome != WB_STORE_PUT_CAPTURE && !op->differs;
    *touched = *touched || !as_stored;
    *on_request = *on_request || (op->kind == WB_OP_REMOVE_EVERYWHERE && outcome == WB_STORE_PUT_NEW);
    return 0;
}

/* Bytes that were appended for a version that does not exist after all are dead from the start. */
static int bury_unused(struct log_commit *c, const struct wb_op *op)
{
    struct wb_catalog_segment *row;

    WB_CHECK(c->to_store.count == 0);
    if (c->edit.repo->files.kind->places_at_commit) /* they are written only if they are needed */
        return 0;
    if (!wb_op_has_bytes(op->kind) || is_used(&c->edit.view, op))
        return 0;
    int err = wb_pagefile_edit_row(&c->edit.files, op->entry.place.segment, &row);
    if (err == 0)
        row->bytes_dead += op->entry.stored_bytes;
    return err;
}

/* The records of a page's ops get their places, if they do not have them yet; and the ops know these then. */
static int place_records(struct log_commit *c, const uint32_t *order, size_t count)
{
    struct wb_repo_writer *writer = c->edit.repo->writer;
    const struct wb_pagefile_kind *kind = c->edit.repo->files.kind;
    int err = 0;

    wb_vec_clear(&c->puts);
    for (size_t i = 0; i < count && err == 0; i++)
        if (writer->ops.items[order[i]].put)
            err = wb_vec_push(&c->puts, writer->ops.items[order[i]].put - 1);
    if (err == 0 && kind->edit_place)
        err = kind->edit_place(&c->edit.files, c->puts.items, c->puts.count);
    for (size_t i = 0; i < count && err == 0; i++) {
        struct wb_op *op = &writer->ops.items[order[i]];
        const struct wb_put *put = op->put ? &writer->files.puts.items[op->put - 1] : NULL;
        if (!put)
            continue;
        WB_CHECK(put->placed);
        op->entry.place = put->place;
        op->entry.stored_bytes = put->stored_bytes;
    }
    return err;
}

/* Makes the page of which these are copies, unless that comes later. */
static int adopt_page(struct log_commit *c, const uint32_t *order, size_t count)
{
    WB_CHECK(count > 0);
    struct wb_repo_writer *writer = c->edit.repo->writer;
    int err = place_records(c, order, count);

    if (err < 0 || !writer->adopt)
        return err;
    err = writer->adopt(writer->adopt_context, &c->edit, order, count);
    for (size_t i = 0; i < count && err == 0; i++)
        err = bury_unused(c, &writer->ops.items[order[i]]);
    return err;
}

/* Applies all ops of one page: order[0] to order[count - 1]. */
static int apply_page(struct log_commit *c, const uint32_t *order, size_t count)
{
    struct wb_op *ops = c->edit.repo->writer->ops.items;
    struct wb_repo_site *sites = c->edit.repo->writer->sites.items;
    bool touched = false, on_request = false, resolved = false;

    WB_CHECK(count > 0);
    if (ops[order[0]].kind >= WB_OP_ADOPT)
        return adopt_page(c, order, count);
    c->page_changed = false;
    int err = wb_repo_edit_load(&c->edit, ops[order[0]].id);
    if (err == 0)
        err = place_records(c, order, count);
    for (size_t i = 0; i < count && err == 0; i++)
        err = apply_op(c, &ops[order[i]], &touched, &on_request);
    if (c->to_store.count) /* the remaining pages are looked at only to find all such captures at once */
        return err;
    if (err == 0 && c->edit.summary.revisits)
        err = wb_repo_resolve_revisits(&c->edit, order, count, &c->counts.captures, &resolved);
    c->edit.changed = c->edit.changed || c->page_changed;
    touched = touched || resolved;
    int64_t ignored = 0, *pages = &ignored;
    for (size_t i = 0; i < count; i++)
        if (wb_op_knows_site(ops[order[i]].kind) || (c->edit.repo->base && pages == &ignored))
            pages = &sites[ops[order[i]].site].delta;
    /* A page of the base that stays as it is does not wait here. */
    bool waits = !c->edit.repo->base || c->edit.view.had_entry || c->edit.view.had_rows;
    if (err == 0 && (waits || c->page_changed || resolved))
        err = wb_repo_edit_save(&c->edit, touched, on_request, pages);
    else if (on_request)
        wb_repo_edit_take_down(&c->edit);
    for (size_t i = 0; i < count && err == 0; i++)
        err = bury_unused(c, &ops[order[i]]);
    WB_CHECK(ignored == 0);
    return err;
}

/* Writes by how much the number of pages of each site has changed. */
static int apply_sites(struct wb_repo_edit *edit)
{
    struct wb_repo_writer *writer = edit->repo->writer;
    int err = 0;

    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    for (size_t i = 0; i < writer->sites.count && err == 0; i++) {
        const struct wb_repo_site *site = &writer->sites.items[i];
        if (site->delta)
            err = wb_catalog_site_add(&edit->txn, wb_slice(site->name, site->len), site->delta, &edit->summary);
    }
    return err;
}

/* The ops are all over the memory: brings one that is needed soon into the processor's cache. */
static void foresee(const struct log_commit *c, size_t at)
{
    const struct wb_repo_writer *writer = c->edit.repo->writer;

    WB_CHECK(c->order != NULL);
    for (size_t line = 0; at < writer->ops.count && line < sizeof *writer->ops.items; line += 64)
        __builtin_prefetch((const char *)&writer->ops.items[c->order[at]] + line);
}

static int apply(struct log_commit *c)
{
    struct wb_repo_writer *writer = c->edit.repo->writer;
    int err = wb_repo_edit_begin(c->edit.repo, &c->edit);

    WB_CHECK(c->to_store.count == 0);
    WB_CHECK(c->order != NULL);
    if (err == 0)
        err = wb_tails_apply(&c->edit.files);
    /* In the order of ids, so that rows that are neighbours in the tree are changed one after the other. */
    for (size_t i = 0, next; i < writer->ops.count && err == 0; i = next) {
        struct wb_pageid id = writer->ops.items[c->order[i]].id;
        foresee(c, i + SOON);
        for (next = i + 1; next < writer->ops.count; next++)
            if (!wb_pageid_equal(writer->ops.items[c->order[next]].id, id))
                break;
        err = apply_page(c, c->order + i, next - i);
    }
    if (err == 0 && c->to_store.count == 0)
        err = apply_sites(&c->edit);
    if (err == 0)
        err = wb_append_sync_end(&c->edit.repo->files, &c->sync);
    if (err == 0 && c->to_store.count == 0)
        err = wb_repo_edit_end(&c->edit);
    wb_catalog_txn_abort(&c->edit.txn);
    return err;
}

/* ---- before and after the transaction --------------------------------------------------------------------- */

/* Leaves segments to which no new pages go any more, because nodes were added or removed: they have to be moved. */
static void leave_old_bins(struct wb_repo *repo)
{
    struct wb_catalog_summary summary;
    const struct wb_repo_writer *writer = repo->writer;
    bool current = true;

    WB_CHECK(writer->ops.count == 0);
    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    /* Reading anything takes up the newest rows of the nodes. If that fails, the next commit finds out. */
    if (writer->files.tails.count == 0 || wb_repo_summary(repo, &summary) < 0)
        return;
    for (size_t i = 0; i < writer->files.tails.count; i++)
        current = current && wb_bin_is_current(&repo->nodes, &writer->files.tails.items[i].bin);
    if (!current)
        wb_tails_release(&repo->files);
}

/* After a failed commit: removes the bytes that were appended, and forgets the ops. */
static void roll_back(struct wb_repo *repo)
{
    WB_CHECK(repo->writer->magic == WB_REPO_WRITER_MAGIC);
    WB_CHECK(!wb_catalog_uncertain(repo->catalog));
    wb_pagefile_drop(&repo->files);
    wb_ops_clear(repo);
}

void wb_repo_decide(struct wb_repo *repo)
{
    struct wb_error_copy why;

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(repo->writer->magic == WB_REPO_WRITER_MAGIC);
    if (!wb_catalog_uncertain(repo->catalog))
        return;
    wb_error_save(WB_E_IO, &why);
    wb_pagefile_abandon(&repo->files);
    wb_ops_clear(repo);
    (void)wb_repo_open_catalog(repo); /* if this fails, the old handle stays, and every call on it says what is wrong */
    wb_error_restore(&why);
}

/* Damage that the files were found to have, and that stays. */
static uint64_t count_damaged(const struct wb_repo_edit *edit)
{
    const struct wb_pagefile_kind *kind = edit->repo->files.kind;

    return kind->edit_tell ? kind->edit_tell(&edit->files, NULL, NULL) : 0;
}

/* Captures whose content was given up become puts. Returns 1, for the commit to be repeated, or an error. */
static int store_captures(struct log_commit *c)
{
    int err = 0;

    WB_CHECK(c->to_store.count > 0);
    for (size_t i = 0; i < c->to_store.count && err == 0; i++)
        err = wb_repo_put_captured(c->edit.repo, c->to_store.items[i]);
    return err < 0 ? err : 1;
}

/* The three steps of a commit. Returns 1 if they must be repeated, because captures have become puts. */
static int try_commit(struct wb_repo *repo, struct wb_store_commit_counts *counts_out)
{
    struct wb_repo_writer *writer = repo->writer;
    struct log_commit c = {.edit = {.repo = repo, .forgetting = repo->writer->thorough}};
    int err = wb_pagefile_flush(&repo->files);

    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    if (err < 0)
        return err;
    WB_CHECK(!writer->files.flight);
    WB_CHECK(writer->files.failed.code == 0);
    c.order = wb_alloc((writer->ops.count + 1) * sizeof *c.order);
    err = c.order ? wb_append_sync_begin(&repo->files, writer->ops.count >= MANY_OPS, &c.sync) : WB_E_NOMEM;
    if (err == 0)
        err = wb_repo_order_ops(writer->ops.items, writer->ops.count, c.order);
    if (err == 0)
        err = apply(&c);
    if (err == 0 && c.to_store.count == 0) {
        writer->files.commit = c.edit.summary.commit;
        c.counts.damaged = count_damaged(&c.edit);
        *counts_out = c.counts;
    }
    if (err < 0) { /* what is being synced must not be cut off meanwhile */
        struct wb_error_copy why;
        wb_error_save(err, &why);
        (void)wb_append_sync_end(&repo->files, &c.sync);
        wb_error_restore(&why);
    }
    wb_free(c.order);
    wb_repo_edit_release(&c.edit);
    if (err == 0 && c.to_store.count)
        err = store_captures(&c);
    wb_vec_release(&c.puts);
    wb_vec_release(&c.to_store);
    return err;
}

/*
 * Files that change in place are written by the commit itself. If a node is full then, pages that can be on any node go
 * to another one. Each attempt avoids one node more.
 */
static bool can_go_elsewhere(struct wb_repo *repo, int err, size_t tries)
{
    WB_CHECK(repo->writer->magic == WB_REPO_WRITER_MAGIC);
    return err == WB_E_IO && repo->files.failed_nodes > tries && tries < repo->nodes.items.count &&
           repo->nodes.distribution == WB_DISTRIBUTION_UNIFORM && !wb_catalog_uncertain(repo->catalog);
}

static int commit_ops(struct wb_repo *repo, struct wb_store_commit_counts *counts_out)
{
    struct wb_repo_writer *writer = repo->writer;
    size_t tries = 0;

    repo->files.failed_nodes = 0;
    writer->attempt = 0;
    int err = writer->files.failed.code < 0 ? wb_error_restore(&writer->files.failed) : try_commit(repo, counts_out);

    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    WB_CHECK(writer->ops.count > 0 || writer->files.failed.code < 0);
    while (err > 0 || can_go_elsewhere(repo, err, tries)) {
        for (size_t i = 0; i < writer->sites.count; i++)
            writer->sites.items[i].delta = 0;
        WB_CHECK(writer->files.flight == NULL || err > 0);
        tries += err < 0;
        writer->attempt++;
        err = try_commit(repo, counts_out);
    }
    return err;
}

int wb_repo_commit(struct wb_store *store, struct wb_store_commit_counts *counts_inout)
{
    struct wb_repo *repo = wb_repo_of_writer(store);
    struct wb_repo_writer *writer = repo->writer;
    struct wb_store_commit_counts counts = {0};
    int err;

    WB_CHECK(repo->reader.kind == WB_CATALOG_TXN_PARKED);
    bool nothing = writer->ops.count == 0 && writer->files.failed.code == 0;
    err = nothing ? 0 : commit_ops(repo, &counts);
    if (err < 0) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        if (wb_catalog_uncertain(repo->catalog))
            wb_repo_decide(repo);
        else
            roll_back(repo);
        return wb_error_restore(&why);
    }
    counts.older += writer->older;
    counts.barred += writer->barred;
    wb_store_counts_add(counts_inout, &counts);
    if (!nothing)
        wb_tails_close_full(&repo->files);
    wb_ops_clear(repo);
    if (repo->files.replaced) { /* a long run would collect many of them */
        repo->files.replaced = false;
        (void)wb_pagefile_purge(&repo->files); /* if this fails, the next writer deletes them */
        wb_repo_decide(repo);
    }
    WB_CHECK(writer->ops.count == 0);
    WB_CHECK(writer->files.flight == NULL);
    leave_old_bins(repo);
    return 0;
}

int wb_repo_change(struct wb_store *store, struct wb_repo_change *change, int (*make)(void *context), void *context)
{
    struct wb_repo *repo = wb_repo_of_writer(store);
    struct wb_store_commit_counts counts = {0};
    int err = wb_repo_commit(store, &counts);

    WB_CHECK(change->txn.kind == WB_CATALOG_TXN_CLOSED);
    WB_CHECK(repo->writer->ops.count == 0);
    WB_CHECK(!repo->writer->moment_known); /* it depends on what is changed */
    change->repo = repo;
    change->now_ms = wb_clock_wall_ms();
    if (err == 0)
        err = wb_catalog_txn_write(repo->catalog, &change->txn);
    if (err == 0)
        err = wb_catalog_summary_get(&change->txn, &change->summary);
    if (err == 0)
        err = make(context);
    change->summary.commit++;
    if (err == 0)
        err = wb_catalog_summary_put(&change->txn, &change->summary);
    if (err == 0)
        err = wb_catalog_txn_commit(&change->txn);
    wb_catalog_txn_abort(&change->txn);
    if (err == 0)
        repo->writer->files.commit = change->summary.commit;
    wb_repo_decide(repo);
    return err;
}
