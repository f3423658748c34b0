/*
 * transfer_nodes.c - nodes that cannot be used while a transfer runs. Pages that are on such an update node, or that
 * only such a read node can take, stay on the update side, and the next transfer brings them. All others are brought.
 *
 *   update node   it is down: its pages cannot be read
 *   read node     it is down, read-only or full: pages of its range cannot be stored there, and no bucket of it can be
 *                 changed. With uniform distribution other nodes take new pages, so only buckets matter
 *
 * All nodes are looked at before anything is listed. If one fails on the way, what was put since the last commit is
 * dropped, all nodes are looked at again, and what has not arrived is brought without those that cannot be used.
 */
#include "base/check.h"
#include "move/move.h"
#include "os/clock.h"
#include "move/transfer.h"
#include "pagefile/pagefile.h"

#include <stdio.h>

/* ---- which nodes cannot be used ------------------------------------------------------------------------- */

/* The number of a node in the list, from 1 on; 0 if it can be used. */
static uint8_t number_in_list(const struct wb_transfer *t, uint32_t node)
{
    WB_CHECK(t->out.count <= UINT8_MAX);
    for (size_t i = 0; i < t->out.count; i++)
        if (t->out.items[i].node == node)
            return (uint8_t)(i + 1);
    return 0;
}

/* Adds a node to the list; why says what is wrong with it. */
static int leave_out(struct wb_transfer *t, uint32_t node, bool reads, const char *why)
{
    struct wb_transfer_out out = {.node = node, .reads = reads};

    WB_CHECK(node > 0);
    if (number_in_list(t, node))
        return 0;
    snprintf(out.why, sizeof out.why, "%s", why);
    int err = wb_vec_push(&t->out, out);
    if (err == 0 && !reads)
        err = wb_vec_push(&t->without, node);
    t->reads_out += err == 0 && reads;
    return err;
}

static int look_at_update_nodes(struct wb_transfer *t)
{
    struct wb_node *ignored;
    int err = wb_pagefile_renew_nodes(&t->from->files);

    WB_CHECK(t->from->magic == WB_REPO_MAGIC);
    for (size_t i = 0; i < t->from->nodes.items.count && err == 0; i++) {
        uint32_t node = t->from->nodes.items.items[i].row.number;
        err = wb_nodes_find(&t->from->nodes, node, &ignored);
        if (err == WB_E_DOWN)
            err = leave_out(t, node, false, wb_error_message());
    }
    return err;
}

static int look_at_read_nodes(struct wb_transfer *t, const char *why)
{
    struct wb_node *ignored;
    int err = wb_pagefile_renew_nodes(&t->to->files);

    WB_CHECK(t->to->magic == WB_REPO_MAGIC);
    for (size_t i = 0; i < t->to->nodes.items.count && err == 0; i++) {
        const struct wb_known_node *node = &t->to->nodes.items.items[i];
        err = wb_nodes_find_to_write(&t->to->nodes, node->row.number, &ignored);
        if (err == WB_E_DOWN)
            err = leave_out(t, node->row.number, true, wb_error_message());
        else if (err == 0 && node->failed_ns > t->began_ns) /* a write has failed there: it may be full */
            err = leave_out(t, node->row.number, true, why);
    }
    return err;
}

/* A page of the list that is on an update node which cannot be used. */
static int mark_page(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    struct wb_transfer *t = context;
    struct wb_transfer_page *page = wb_transfer_find(t, id);

    WB_CHECK(page != NULL);
    return page->involved || page->brought ? 0 : wb_transfer_place_out(t, id, &entry->place, &page->out);
}

int wb_transfer_mark(struct wb_transfer *t)
{
    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    return t->without.count ? wb_catalog_entry_each(&t->waiting, mark_page, t) : 0;
}

int wb_transfer_look(struct wb_transfer *t)
{
    struct wb_error_copy why;
    int err;

    WB_CHECK(t->began_ns > 0);
    wb_error_save(WB_E_DOWN, &why);
    err = look_at_update_nodes(t);
    return err < 0 ? err : look_at_read_nodes(t, why.message);
}

/* ---- which pages need them -------------------------------------------------------------------------------- */

int wb_transfer_place_out(struct wb_transfer *t, struct wb_pageid id, const struct wb_catalog_place *place,
                          uint8_t *out)
{
    struct wb_catalog_segment *row = &t->from_row;
    int err = 0;

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(place->segment > 0);
    /* Neighbours in the list are rarely neighbours on the disk, but there may be one long segment. */
    if (row->number != place->segment || !wb_catalog_range_has(&row->range, id))
        err = wb_parts_row_of(&t->waiting, &t->from_parts, place->segment, id, row);
    if (err < 0)
        row->number = 0;
    *out = err < 0 ? 0 : number_in_list(t, row->node);
    return err == WB_E_CORRUPT ? 0 : err; /* reported when the page is read */
}

int wb_transfer_history_out(struct wb_transfer *t, const struct wb_pageview *view, uint8_t *out)
{
    int err = 0;

    *out = 0;
    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    for (size_t i = 0; i < view->history.versions.count && err == 0 && *out == 0 && t->without.count; i++)
        if (view->history.versions.items[i].place.segment)
            err = wb_transfer_place_out(t, view->id, &view->history.versions.items[i].place, out);
    return err;
}

/* Looks among the buckets that have versions of a page. */
struct bucket_lookup {
    struct wb_transfer *t;
    const struct wb_pageview *view;
    uint8_t out;
};

static int look_up_files(void *context)
{
    struct bucket_lookup *l = context;
    struct wb_repo *to = l->t->to;
    const struct wb_history *history = &l->view->history;
    struct wb_catalog_segment row;
    int err = 0;

    WB_CHECK(to->reader.kind >= WB_CATALOG_TXN_AWAKE);
    for (size_t i = 0; i < history->versions.count && err == 0 && l->out == 0; i++) {
        uint32_t segment = history->versions.items[i].place.segment;
        if (segment == 0 || segment == WB_PAGEVIEW_PENDING_SEGMENT)
            continue;
        err = wb_parts_row_of(&to->reader, &to->files.parts, segment, l->view->id, &row);
        l->out = err == 0 ? number_in_list(l->t, row.node) : 0;
    }
    return err;
}

int wb_transfer_refused(struct wb_transfer *t, struct wb_pageid id, bool new, uint8_t *out)
{
    struct bucket_lookup lookup = {.t = t};
    struct wb_pageview *view;
    struct wb_bin bin;
    int err = 0;

    WB_CHECK(t->to->magic == WB_REPO_MAGIC);
    *out = 0;
    if (t->reads_out == 0)
        return 0;
    if (new && t->to->nodes.distribution == WB_DISTRIBUTION_HASH) {
        err = wb_bin_of(&t->to->nodes, id, &bin);
        if (err == 0 || err == WB_E_DOWN)
            *out = number_in_list(t, bin.node);
        err = err == WB_E_DOWN && *out ? 0 : err;
    }
    if (err < 0 || *out || !t->to->files.kind->can_change)
        return err;
    err = wb_repo_view(t->to, id, &view);
    lookup.view = view;
    if (err == 0)
        err = wb_repo_read(t->to, look_up_files, &lookup);
    *out = lookup.out;
    return err;
}

/* ---- when one fails on the way ---------------------------------------------------------------------------- */

/* Forgets what was put since the last commit. */
static void drop_uncommitted(struct wb_transfer *t, int err)
{
    struct wb_store_commit_counts ignored = {0};

    WB_CHECK(err < 0);
    if (t->to->writer->ops.count) /* so that the commit fails, whatever it was that did */
        (void)wb_writer_remember_failure(&t->to->writer->files, err);
    if (t->to->writer->files.failed.code < 0)
        (void)wb_store_commit(t->batch->read, &ignored);
    for (size_t i = 0; i < t->fresh.count; i++)
        t->pages.items[t->fresh.items[i]].brought = false;
    t->pages_done -= t->uncommitted_pages;
    t->bytes_done -= t->uncommitted_bytes;
    wb_vec_clear(&t->fresh);
    t->uncommitted = (struct wb_move_transfer_counts){0};
    t->uncommitted_pages = t->uncommitted_bytes = 0;
}

int wb_transfer_bring_around(struct wb_transfer *t)
{
    struct wb_error_copy why;
    int err;

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    while ((err = wb_transfer_bring(t)) < 0) {
        size_t before = t->out.count;
        wb_error_save(err, &why);
        drop_uncommitted(t, err);
        if (!wb_nodes_failed(&t->to->nodes, err) && !wb_nodes_failed(&t->from->nodes, err))
            return wb_error_restore(&why);
        wb_error_restore(&why);
        err = wb_transfer_look(t);
        if (err == 0)
            err = wb_transfer_mark(t);
        if (err < 0 || t->out.count == before) /* each time, there is one node less */
            return err < 0 ? err : wb_error_restore(&why);
    }
    return 0;
}

/* ---- the result -------------------------------------------------------------------------------------------- */

void wb_transfer_count_waiting(struct wb_transfer *t)
{
    struct wb_move_transfer_counts *counts = &t->counts;

    WB_CHECK(t->out.count <= 2 * WB_DESIGN_NODES_MAX);
    WB_CHECK(counts->wait_count == 0);
    for (size_t i = 0; i < t->pages.count; i++)
        if (!t->pages.items[i].brought && t->pages.items[i].out)
            t->out.items[t->pages.items[i].out - 1].pages++;
    for (size_t i = 0; i < t->kept.count; i++)
        t->out.items[t->kept.items[i].out - 1].revisits++;
    for (size_t i = 0; i < t->out.count; i++) {
        const struct wb_transfer_out *out = &t->out.items[i];
        if (out->pages + out->revisits == 0)
            continue;
        counts->waits[counts->wait_count++] = (struct wb_move_transfer_wait){out->node, out->pages, out->revisits};
        counts->waiting += out->pages;
    }
}

/* "12 pages wait for node 102, 3 for node 2" */
static void describe(const struct wb_transfer *t, char *text, size_t room)
{
    const struct wb_move_transfer_counts *counts = &t->counts;
    size_t len = 0;

    WB_CHECK(counts->wait_count > 0);
    for (size_t i = 0; i < counts->wait_count && len < room; i++) {
        const struct wb_move_transfer_wait *wait = &counts->waits[i];
        const char *what = wait->pages == 1 ? "page waits" : wait->pages ? "pages wait" : "revisits wait";
        int n = snprintf(text + len, room - len, "%s%llu %s for node %u", i ? ", " : "",
                         (unsigned long long)(wait->pages ? wait->pages : wait->revisits), what, wait->node);
        len += n > 0 ? (size_t)n : 0;
    }
}

int wb_transfer_report_waiting(const struct wb_transfer *t)
{
    enum { MOST = 200 }; /* of the message, so that there is room for the reason */
    char text[MOST];

    WB_CHECK(t->batch->magic == WB_BATCHED_MAGIC);
    if (t->counts.wait_count == 0)
        return 0;
    describe(t, text, sizeof text);
    for (size_t i = 0; i < t->out.count; i++)
        if (t->out.items[i].node == t->counts.waits[0].node)
            return wb_fail(WB_E_DOWN, "%s; the next transfer brings them, and everything else was brought: %s", text,
                           t->out.items[i].why);
    return 0;
}
