/*
 * repo_verify.c - reads everything and checks that it fits together: every row of the catalog, every byte of every
 * segment, the digests of every page, and each of them against the others. It never changes anything. It holds one
 * state of the catalog all the time, so writers can continue in the meantime.
 *
 *   1 the catalog by itself: every page of its tree, then every row and the counters
 *   2 each segment: every block, every page, and whether the catalog agrees
 *   3 files on the nodes that no row mentions
 *
 * A problem is damage. A note is something that a crash left and the next writer removes.
 */
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "pagefile/pagefile.h"
#include "store/repo_verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void wb_repo_verify_report(struct wb_repo_verifier *v, bool problem, const char *file, uint64_t offset,
                           const char *format, ...)
{
    char message[WB_ERROR_MESSAGE_MAX];
    va_list args;

    WB_CHECK(v->result != NULL);
    WB_CHECK(file != NULL);
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (problem)
        v->result->problems++;
    else
        v->result->notes++;
    if (v->found)
        v->found(v->found_context, &(struct wb_store_finding){problem, file, offset, message});
}

/* Reports damage as a problem, so that the work continues. Any other error, such as a failing disk, ends it. */
static int absorb(struct wb_repo_verifier *v, int err, const char *file, uint64_t offset)
{
    WB_CHECK(v->result != NULL);
    WB_CHECK(err <= 0);
    if (err != WB_E_CORRUPT && err != WB_E_NEWER)
        return err;
    wb_repo_verify_report(v, true, file, offset, "%s", wb_error_message());
    return 0;
}

/* ---- segments against the catalog ------------------------------------------------------------------- */

/* What the catalog says about a page that was found in a segment. */
struct page_claim {
    bool latest, old;  /* which version has this place; neither if the page is dead */
    uint64_t body_bytes, site, content;
    uint16_t status;
};

/* Finds the version, if there is one, that is stored at this place. */
static int look_up_claim(struct wb_repo_verifier *v, struct wb_pageid id, const struct wb_catalog_place *place,
                         struct page_claim *claim_out)
{
    WB_CHECK(v->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(v->sound);
    *claim_out = (struct page_claim){0};
    int err = wb_pageview_load(&v->txn, v->summary.gone > 0, id, &v->view);
    if (err < 0)
        return err;
    for (size_t i = 0; i < v->view.history.versions.count; i++) {
        const struct wb_history_version *version = &v->view.history.versions.items[i];
        if (!wb_catalog_place_equal(&version->place, place))
            continue;
        *claim_out = (struct page_claim){
            .latest = version->ceased == 0,
            .old = version->ceased != 0,
            .body_bytes = version->body_bytes,
            .site = v->view.site,
            .content = version->content,
            .status = version->status,
        };
    }
    return err;
}

/* Whether a scan that trusts the flags (flags_hold and is_plain in disk_scan.c) would miss this page or show another.
 */
static bool is_misflagged(const struct wb_catalog_segment *row, const struct wb_block_entry *entry, bool latest)
{
    bool flagged = entry->flags & WB_BLOCK_ENTRY_OLD, hold = row->returned == 0 && row->old_epoch != UINT64_MAX;

    WB_CHECK(row->number > 0);
    return hold && flagged && latest;
}

static int check_page(struct wb_repo_verifier *v, const struct wb_catalog_segment *row,
                      const struct wb_block_head *head, const struct wb_block_entry *entry, struct wb_slice record)
{
    struct wb_catalog_place place = {wb_catalog_segment_origin(row), entry->slot, head->logical};
    struct page_claim c;
    struct wb_page page;
    int err = wb_pagefile_page(record, entry->id, NULL, &page);

    WB_CHECK(v->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(row->number < v->summary.next_segment || !v->sound);
    if (err == 0)
        err = wb_pagefile_check_digests(&page);
    if (err < 0)
        return err;
    if (entry->flags & WB_BLOCK_ENTRY_DEAD || !v->sound)
        return 0;
    err = look_up_claim(v, entry->id, &place, &c);
    if (err < 0)
        return err;
    struct wb_slice site = wb_key_site(page.key);
    uint64_t seed = wb_hash64(v->superblock->id, sizeof v->superblock->id);
    if ((c.latest || c.old) &&
        (c.body_bytes != page.body.len || c.status != page.status || c.site != wb_hash64(site.ptr, site.len) ||
         c.content != wb_history_content(&page, seed)))
        return wb_fail(WB_E_CORRUPT, "the catalog and the record of %.*s contradict each other",
                       WB_SLICE_ARG(page.url));
    if ((c.latest || c.old) && is_misflagged(row, entry, c.latest))
        return wb_fail(WB_E_CORRUPT, "the block is wrong about which version of %.*s is the latest",
                       WB_SLICE_ARG(page.url));
    v->tallies[row->number].found += c.latest || c.old;
    v->result->pages += c.latest;
    return 0;
}

static int check_block(struct wb_repo_verifier *v, const struct wb_catalog_segment *row,
                       const struct wb_block_index *index, const char *block, const char *file, uint64_t at)
{
    const struct wb_block_frame *lead = &index->frames.items[index->head.lead];
    struct wb_slice raw;

    WB_CHECK(v->zstd != NULL);
    WB_CHECK(index->entries.count > 0);
    WB_CHECK(index->head.lead < index->frames.count);
    wb_block_reader_open_bytes(v->zstd, index, block);
    /* If nothing can be read without it, damage of the lead is reported once, and not for each page. */
    int err = wb_block_is_base(index, index->head.lead) ? wb_block_read_frame(v->zstd, index->head.lead, &raw) : 0;
    if (err < 0)
        return absorb(v, err, file, at + lead->at);
    for (size_t i = 0; i < index->entries.count; i++) {
        const struct wb_block_entry *entry = &index->entries.items[i];
        err = wb_block_read_record(v->zstd, i, &v->record);
        if (err == 0)
            err = check_page(v, row, &index->head, entry, wb_buf_slice(&v->record));
        err = absorb(v, err, file, at + index->frames.items[entry->frame].at);
        if (err < 0)
            return err;
    }
    return 0;
}

static int check_blocks(struct wb_repo_verifier *v, const struct wb_catalog_segment *row,
                        const struct wb_segment *segment, const char *file)
{
    struct wb_segment_walk walk;
    struct wb_block_head head;
    const char *block;
    uint64_t at, before = v->done;
    int err;

    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(segment->number == row->number);
    WB_CHECK(segment->revision == row->revision);
    wb_segment_walk_init(&walk, segment, wb_segment_blocks_end(row));
    while ((err = wb_segment_walk_next(&walk, &head, &block, &at)) != 0) {
        if (err < 0) {
            err = absorb(v, err, file, walk.error_at);
            if (err < 0)
                break;
            continue;
        }
        if (head.commit > v->summary.commit)
            wb_repo_verify_report(
                v, true, WB_CATALOG_NAME, 0,
                "the catalog is at commit %llu, but a block in %s knows of commit %llu: it has lost commits",
                (unsigned long long)v->summary.commit, file, (unsigned long long)head.commit);
        err = check_block(v, row, &walk.index, block, file, at);
        v->done = before + at + head.bytes;
        if (err == 0 && v->progress && !v->progress(v->progress_context, v->done, v->total))
            err = wb_fail(WB_E_STOPPED, "verification was stopped");
        if (err < 0)
            break;
    }
    wb_segment_walk_release(&walk);
    return err;
}

static int read_newest_commit(struct wb_repo_verifier *v, uint64_t *commit_out)
{
    WB_CHECK(v->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(v->catalog != NULL);

    struct wb_catalog_summary summary;
    struct wb_catalog_txn txn;
    int err = wb_catalog_txn_read(v->catalog, &txn);

    if (err < 0)
        return err;
    err = wb_catalog_summary_get(&txn, &summary);
    if (err == 0)
        *commit_out = summary.commit;
    wb_catalog_txn_abort(&txn);
    return err;
}

/* A seal may be newer than the state that we hold, because a writer has committed and left since. So ask again. */
static int check_seal(struct wb_repo_verifier *v, uint64_t sealed_at, const char *file)
{
    WB_CHECK(v->txn.kind == WB_CATALOG_TXN_HELD);

    uint64_t commit = v->summary.commit;
    int err = sealed_at > commit ? read_newest_commit(v, &commit) : 0;

    if (err == 0 && sealed_at > commit)
        wb_repo_verify_report(v, true, WB_CATALOG_NAME, 0,
                              "the catalog is at commit %llu, but %s was sealed at commit %llu: it has lost commits",
                              (unsigned long long)commit, file, (unsigned long long)sealed_at);
    return absorb(v, err, WB_CATALOG_NAME, 0);
}

/* After the committed bytes there is nothing, a seal, the work of a running writer, or what a crash left. */
static int check_tail(struct wb_repo_verifier *v, const struct wb_catalog_segment *row, struct wb_segment *segment,
                      const char *file)
{
    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(segment->file.node != NULL);

    uint64_t size, sealed_at;
    int err = wb_node_file_size(&segment->file, &size);

    if (err == 0 && wb_segment_last_seal(segment, &sealed_at))
        err = check_seal(v, sealed_at, file);
    if (err < 0 || size == row->bytes)
        return err;
    if (size < row->bytes) {
        wb_repo_verify_report(v, true, file, size, "the file ends here, %llu bytes too early",
                              (unsigned long long)(row->bytes - size));
        return 0;
    }
    if (size == row->bytes + WB_SEGMENT_SEAL_BYTES && wb_segment_read_seal(segment, row->bytes, &sealed_at))
        return 0;
    if (wb_node_file_claim(&segment->file) < 0)
        return 0;
    wb_node_file_release(&segment->file);
    wb_repo_verify_report(
        v, false, file, row->bytes,
        "%llu bytes after the last commit, left by a process that was stopped: not part of the repository, dropped "
        "by the next writer",
        (unsigned long long)(size - row->bytes));
    return 0;
}

static int check_segment(struct wb_repo_verifier *v, const struct wb_catalog_segment *row)
{
    struct wb_segment segment = WB_SEGMENT_INIT;
    char file[WB_SEGMENT_NAME_MAX];
    int err;

    WB_CHECK(v->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(row->number > 0);
    struct wb_node *node;
    wb_segment_name(row->number, row->revision, file);
    err = wb_nodes_find(&v->nodes, row->node, &node);
    if (err == WB_E_DOWN) { /* check_nodes() has reported it */
        v->done += row->bytes;
        return 0;
    }
    if (err == 0)
        err = wb_segment_open(node, v->superblock->id, row, false, &segment);
    if (err < 0) {
        v->done += row->bytes;
        return absorb(v, err, file, 0);
    }
    err = check_blocks(v, row, &segment, file);
    if (err == 0)
        err = check_tail(v, row, &segment, file);
    wb_segment_close(&segment);
    if (err < 0 || !v->sound)
        return err;
    const struct wb_repo_tally *tally = &v->tallies[row->number];
    if (tally->found != tally->entries)
        wb_repo_verify_report(v, true, file, 0, "%llu of %llu pages that the catalog says are here cannot be found",
                              (unsigned long long)(tally->entries - tally->found), (unsigned long long)tally->entries);
    return 0;
}

/* ---- files that should not be there ---------------------------------------------------------------------- */

static int check_file(void *context, const struct wb_node_entry *entry)
{
    struct wb_repo_verifier *v = context;
    struct wb_node_file file = WB_NODE_FILE_INIT;
    const char *base = entry->name + sizeof WB_SEGMENT_DIR;
    uint32_t number, revision;

    WB_CHECK(v->catalog != NULL);
    WB_CHECK(v->txn.kind == WB_CATALOG_TXN_HELD);
    if (!v->kind->parse_name(base, &number, &revision)) {
        wb_repo_verify_report(v, false, WB_SEGMENT_DIR, 0, "%s is not a segment", base);
        return 0;
    }
    for (size_t i = 0; i < v->rows.count; i++)
        if (v->rows.items[i].number == number && v->rows.items[i].node == v->node &&
            revision <= v->rows.items[i].revision)
            return 0;
    bool retired;
    int err = wb_catalog_retired_has(&v->txn, number, revision, &retired);
    if (err < 0 || retired) /* compaction has replaced it; it is deleted when its last reader has gone */
        return err;
    struct wb_node *node;
    err = wb_nodes_find(&v->nodes, v->node, &node);
    if (err < 0)
        return err;
    /* If somebody has claimed the file, or it is newer than the state that we hold, it is work in progress. */
    if (wb_node_file_open(node, entry->name, false, &file) == 0 && wb_node_file_claim(&file) == 0 &&
        number < v->summary.next_segment + 1)
        wb_repo_verify_report(
            v, false, entry->name, 0,
            "left by a process that was stopped: not part of the repository, removed by the next writer");
    wb_node_file_close(&file);
    return 0;
}

/* ---- files that their kind checks ------------------------------------------------------------------------- */

static void report_finding(void *context, bool problem, const char *file, uint64_t offset, const char *message)
{
    wb_repo_verify_report(context, problem, file, offset, "%s", message);
}

static int find_node(void *context, uint32_t number, struct wb_node **node_out)
{
    struct wb_repo_verifier *v = context;

    WB_CHECK(number > 0);
    return wb_nodes_find(&v->nodes, number, node_out);
}

static int check_file_seal(void *context, const char *file, uint64_t commit)
{
    return check_seal(context, commit, file);
}

static bool report_progress(void *context, uint64_t done)
{
    struct wb_repo_verifier *v = context;

    return !v->progress || v->progress(v->progress_context, done, v->total > done ? v->total : done);
}

static int check_by_kind(struct wb_repo_verifier *v)
{
    struct wb_hash_check check = {
        .catalog = v->catalog,
        .repo_id = v->superblock->id,
        .content_seed = wb_hash64(v->superblock->id, sizeof v->superblock->id),
        .sound = v->sound,
        .context = v,
        .report = report_finding,
        .node = find_node,
        .sealed = check_file_seal,
        .progress = report_progress,
    };
    int err = 0;

    for (size_t i = 0; i < v->rows.count && err == 0; i++)
        err = v->kind->check(&check, &v->rows.items[i]);
    WB_CHECK(v->result->pages == 0);
    v->result->pages = check.pages;
    return err;
}

/* ---- the whole ---------------------------------------------------------------------------------------------- */

/* A node that is down is a problem: nothing is known about what is on it. */
static int check_nodes(struct wb_repo_verifier *v)
{
    WB_CHECK(v->tallies != NULL);
    for (size_t i = 0; i < v->nodes.items.count; i++) {
        const struct wb_known_node *node = &v->nodes.items.items[i];
        struct wb_node *reach;
        int err = wb_nodes_find(&v->nodes, node->row.number, &reach);
        if (err == WB_E_DOWN)
            wb_repo_verify_report(v, true, node->row.dir, 0, "%s: its pages were not checked", node->why);
        else if (err < 0)
            return err;
    }
    return 0;
}

/* Looks through the files of all nodes that are not down. */
static int check_files(struct wb_repo_verifier *v)
{
    WB_CHECK(v->txn.kind == WB_CATALOG_TXN_HELD);
    for (size_t i = 0; i < wb_nodes_count(&v->nodes); i++) {
        struct wb_node *node;
        v->node = wb_nodes_number(&v->nodes, i);
        if (wb_nodes_find(&v->nodes, v->node, &node) < 0)
            continue;
        int err = wb_node_each_file(node, check_file, v);
        if (err == WB_E_NOMEM)
            return err;
        if (err < 0)
            wb_repo_verify_report(v, true, WB_SEGMENT_DIR, 0, "%s", wb_error_message());
    }
    return 0;
}

static int check_segments(struct wb_repo_verifier *v)
{
    WB_CHECK(v->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(v->tallies != NULL);
    WB_CHECK(!v->zstd);

    int err = wb_block_reader_new(&v->zstd);

    if (err == 0)
        err = check_nodes(v);
    for (size_t i = 0; i < v->rows.count; i++)
        v->total += v->rows.items[i].bytes;
    if (err == 0 && v->kind->check)
        err = check_by_kind(v);
    else
        for (size_t i = 0; i < v->rows.count && err == 0; i++)
            err = check_segment(v, &v->rows.items[i]);
    return err < 0 ? err : check_files(v);
}

int wb_repo_verify(const char *dir, const struct wb_superblock *superblock, wb_store_found found, void *found_context,
                   wb_store_progress progress, void *progress_context, struct wb_store_verify_counts *counts_out)
{
    WB_CHECK(counts_out->problems == 0);
    WB_CHECK(counts_out->pages == 0);
    struct wb_repo_verifier v = {
        .superblock = superblock,
        .kind = wb_pagefile_kind(superblock->design.read.organisation),
        .found = found,
        .found_context = found_context,
        .progress = progress,
        .progress_context = progress_context,
        .result = counts_out,
    };
    int err = wb_catalog_open(dir, WB_TREE_READ, &v.catalog);

    wb_nodes_init(&v.nodes, dir, superblock);
    if (err == 0)
        err = wb_repo_verify_catalog(&v);
    err = absorb(&v, err, WB_CATALOG_NAME, 0);
    if (err == 0 && v.tallies)
        err = check_segments(&v);
    /* If a walk finds rows that a search does not find, the tree itself is damaged. */
    if (err == 0 && v.sound && counts_out->problems == 0 && counts_out->pages != v.summary.pages && !v.kind->in_place)
        wb_repo_verify_report(&v, true, WB_CATALOG_NAME, 0,
                              "%llu pages are in the catalog, %llu can be found through it",
                              (unsigned long long)v.summary.pages, (unsigned long long)counts_out->pages);
    wb_catalog_txn_abort(&v.txn);
    wb_catalog_close(v.catalog);
    wb_catalog_rows_release(&v.rows);
    wb_vec_release(&v.parts);
    wb_nodes_release(&v.nodes);
    wb_block_reader_free(v.zstd);
    wb_buf_release(&v.record);
    wb_pageview_release(&v.view);
    wb_free(v.tallies);
    return err;
}
