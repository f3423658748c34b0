/*
 * repo_recover.c - what a writer does when it opens a repository: repairs what a crash left
 * behind, deletes files that no reader needs any more, and chooses the segment that it
 * appends to.
 *
 * Readers need none of this: they never look beyond what the catalog says is committed.
 * What a crash can leave, and who removes it:
 *
 *   bytes after the committed end of a segment   cut off when the next writer opens the store, or reuses the segment
 *   a segment file without a row                 removed when the next writer opens the store
 *   a replaced file that nobody deleted          deleted by the next writer, once no reader needs it
 *
 * A segment belongs to the process that holds the lock on its file (flock). The kernel
 * releases the lock when the process ends, however it ends.
 */
#include "base/check.h"
#include "base/mem.h"
#include "pagefile/hash_store.h"
#include "store/repo.h"

#include <stdio.h>

/* Reads one segment row. */
struct row_read {
    struct wb_repo *repo;
    uint32_t number;
    struct wb_catalog_segment row;
};

static int read_row(void *context)
{
    struct row_read *r = context;

    WB_CHECK(r->number > 0);
    WB_CHECK(r->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    return wb_catalog_segment_get(&r->repo->reader, r->number, &r->row);
}

/*
 * Opens a segment for appending and locks it; WB_E_BUSY if another process has the
 * lock. Reads the row again under the lock, because the segment may have grown.
 */
static int claim(struct wb_repo *repo, const struct wb_catalog_segment *seen, struct wb_segment *segment_out,
                 struct wb_catalog_segment *row_out)
{
    struct row_read r = {.repo = repo, .number = seen->number};
    struct wb_node *node;
    int err = wb_nodes_find_to_write(&repo->nodes, seen->node, &node);

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(seen->number > 0);
    WB_CHECK(!seen->sealed);
    *segment_out = WB_SEGMENT_INIT;
    if (err == 0)
        err = wb_segment_open(node, repo->superblock.id, seen, true, segment_out);
    if (err < 0)
        return err;
    err = wb_node_file_claim(&segment_out->file);
    if (err == 0)
        err = wb_repo_read(repo, read_row, &r);
    if (err == 0 && (r.row.sealed || r.row.revision != seen->revision))
        err = wb_fail(WB_E_BUSY, "%s was compacted in the meantime", segment_out->file.path);
    if (err < 0)
        wb_segment_close(segment_out);
    *row_out = r.row;
    return err;
}

uint64_t wb_repo_newest_commit(struct wb_repo *repo)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(repo->writer->magic == WB_REPO_WRITER_MAGIC);

    struct wb_repo_overview o = {0};
    int err = wb_repo_overview(repo, &o);

    wb_catalog_rows_release(&o.rows);
    return err == 0 ? o.summary.commit : repo->writer->commit;
}

/* Seals a segment, unless another process has it. */
static bool try_to_seal(struct wb_repo *repo, const struct wb_catalog_segment *seen, uint64_t commit)
{
    struct row_read now = {.repo = repo, .number = seen->number};
    struct wb_segment segment;
    bool done = false;
    struct wb_node *node;

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(repo->writer->tails.count == 0);
    if (wb_nodes_find_to_write(&repo->nodes, seen->node, &node) < 0 ||
        wb_segment_open(node, repo->superblock.id, seen, true, &segment) < 0)
        return false;
    if (wb_node_file_claim(&segment.file) == 0 && wb_repo_read(repo, read_row, &now) == 0 &&
        now.row.revision == segment.revision && wb_node_file_truncate(&segment.file, now.row.bytes) == 0)
        done = wb_segment_write_seal(&segment, now.row.bytes, commit) == 0;
    wb_segment_close(&segment);
    return done;
}

void wb_repo_seal_any(struct wb_repo *repo, uint64_t commit)
{
    struct wb_repo_overview o = {0};
    bool done = false;

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(repo->writer->tails.count == 0);
    /* If nothing can be sealed, no data is lost: we only lose one way to notice that the catalog went back in time. */
    if (wb_repo_overview(repo, &o) < 0)
        return;
    for (size_t i = o.rows.count; i > 0 && i + WB_REPO_SEALED_MAX > o.rows.count && !done; i--)
        done = try_to_seal(repo, &o.rows.items[i - 1], commit);
    wb_catalog_rows_release(&o.rows);
}

/* Cuts off everything after the committed bytes, unless it is the seal of a clean end. */
static int cut_tail(struct wb_repo *repo, const struct wb_catalog_segment *seen)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);

    struct wb_segment segment;
    struct wb_catalog_segment row;
    uint64_t size, sealed_at;
    int err = claim(repo, seen, &segment, &row);

    WB_CHECK(!seen->sealed);
    if (err < 0) /* if somebody is writing to it, leave it alone; if it is damaged, verify and get report that */
        return (err == WB_E_NOMEM || err == WB_E_IO) && !wb_repo_node_failed(repo, err) ? err : 0;
    err = wb_node_file_size(&segment.file, &size);
    if (err == 0 && size > row.bytes) {
        bool sealed =
            size == row.bytes + WB_SEGMENT_SEAL_BYTES && wb_segment_read_seal(&segment, row.bytes, &sealed_at);
        if (!sealed)
            err = wb_node_file_truncate(&segment.file, row.bytes);
    }
    wb_segment_close(&segment);
    return wb_repo_node_failed(repo, err) ? 0 : err;
}

struct file_known {
    struct wb_repo *repo;
    uint32_t node, number, revision;
    bool known;
};

/* Whether the catalog knows a file: as a segment, as an earlier revision of one, or as one that was retired. */
static int look_up_file(void *context)
{
    struct file_known *f = context;
    struct wb_catalog_txn *txn = &f->repo->reader;
    struct wb_catalog_segment row;
    int err = wb_catalog_segment_get(txn, f->number, &row);

    WB_CHECK(f->repo->magic == WB_REPO_MAGIC);
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    f->known = err == 0 && f->node == row.node && f->revision <= row.revision;
    return f->known ? 0 : wb_catalog_retired_has(txn, f->number, f->revision, &f->known);
}

/* A node whose files a writer looks through. */
struct orphan_walk {
    struct wb_repo *repo;
    uint32_t number;
    struct wb_node *node;
};

/* A segment file that the catalog does not know was created by a process that died before it could add the row. */
static int remove_orphan(void *context, const struct wb_node_entry *entry)
{
    const struct orphan_walk *walk = context;
    struct file_known f = {.repo = walk->repo, .node = walk->number};
    struct wb_node_file file = WB_NODE_FILE_INIT;
    int err;

    WB_CHECK(f.repo->magic == WB_REPO_MAGIC);
    if (!wb_segment_name_parse(entry->name + sizeof WB_SEGMENT_DIR, &f.number, &f.revision))
        return 0;
    err = wb_repo_read(f.repo, look_up_file, &f);
    if (err < 0 || f.known)
        return err;
    err = wb_node_file_open(walk->node, entry->name, false, &file);
    if (err == 0 && wb_node_file_claim(&file) == 0) {
        /* Its creator may have added the row since we looked. Now that we have the claim, the answer is final. */
        err = wb_repo_read(f.repo, look_up_file, &f);
        if (err == 0 && !f.known)
            err = wb_node_file_remove(&file);
    }
    wb_node_file_close(&file);
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* Removes the orphans of a node. One that is out of reach is looked through when it is back. */
static int remove_orphans(struct wb_repo *repo, uint32_t number)
{
    struct orphan_walk walk = {.repo = repo, .number = number};
    int err = wb_nodes_find_to_write(&repo->nodes, number, &walk.node);

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(number > 0);
    if (err == 0) {
        wb_node_hold(walk.node); /* reading the catalog may refresh the table of nodes */
        err = wb_node_each_file(walk.node, remove_orphan, &walk);
        wb_node_close(walk.node);
    }
    return wb_repo_node_failed(repo, err) ? 0 : err;
}

int wb_repo_recover(struct wb_repo *repo)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(repo->store.mode == WB_STORE_WRITE);
    WB_CHECK(!repo->writer);

    struct wb_repo_overview o = {0};
    int err = wb_repo_purge(repo);

    if (err == 0)
        err = wb_repo_overview(repo, &o);
    for (size_t i = 0; i < o.rows.count && err == 0; i++)
        if (!o.rows.items[i].sealed)
            err = cut_tail(repo, &o.rows.items[i]);
    for (size_t i = 0; i < wb_nodes_count(&repo->nodes) && err == 0; i++)
        err = (repo->hash ? wb_hash_recover : remove_orphans)(repo, wb_nodes_number(&repo->nodes, i));
    wb_catalog_rows_release(&o.rows);
    return err;
}

/* ---- retired files ---------------------------------------------------------------------------- */

/* A transaction that deletes replaced files. If there are more than fit here, the next purge deletes the rest. */
struct purge_work {
    struct wb_repo *repo;
    struct wb_catalog_txn txn;
    uint64_t oldest; /* the oldest state that a reader holds */
    struct {
        uint32_t number, revision, node;
    } files[256];
    size_t count;
};

static int add_purgeable(void *context, uint32_t number, uint32_t revision, uint32_t node, uint64_t txn_id)
{
    struct purge_work *p = context;
    struct wb_node *reach;

    WB_CHECK(number > 0);
    WB_CHECK(p->count <= sizeof p->files / sizeof p->files[0]);
    if (txn_id > p->oldest || p->count == sizeof p->files / sizeof p->files[0])
        return 0;
    /* What is on a node that is out of reach is deleted when it is back; what was on one that was removed is gone. */
    if (!wb_nodes_has(&p->repo->nodes, node) || wb_nodes_find_to_write(&p->repo->nodes, node, &reach) == 0) {
        p->files[p->count].number = number;
        p->files[p->count].node = node;
        p->files[p->count++].revision = revision;
    }
    return 0;
}

static int delete_file(struct wb_repo *repo, uint32_t number, uint32_t revision, uint32_t node_number)
{
    char name[WB_SEGMENT_NAME_MAX];
    struct wb_node *node;

    WB_CHECK(number > 0);
    if (!wb_nodes_has(&repo->nodes, node_number))
        return 0;
    int err = wb_repo_node(repo, node_number, &node);
    if (err < 0)
        return err;
    if (repo->hash)
        return wb_bucket_file_remove(node, number, revision);
    wb_segment_name(number, revision, name);
    return wb_node_remove(node, name);
}

/* The file goes first, then its row: if we die in between, the next purge finds the file already gone. */
static int delete_retired(struct purge_work *p)
{
    int err = 0;

    WB_CHECK(p->count > 0);
    WB_CHECK(p->txn.kind == WB_CATALOG_TXN_WRITING);
    for (size_t i = 0; i < p->count && err == 0; i++) {
        err = delete_file(p->repo, p->files[i].number, p->files[i].revision, p->files[i].node);
        /* It is deleted when the node can be used again, and when nobody has claimed the file any more. */
        if (err == WB_E_BUSY || wb_repo_node_failed(p->repo, err))
            err = 0;
        else if (err == 0)
            err = wb_catalog_retired_delete(&p->txn, p->files[i].number, p->files[i].revision);
    }
    return err;
}

struct retired_count {
    struct wb_repo *repo;
    uint64_t rows;
};

static int count_retired(void *context)
{
    struct retired_count *c = context;

    WB_CHECK(c->repo->magic == WB_REPO_MAGIC);
    WB_CHECK(c->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    c->rows = wb_catalog_count(&c->repo->reader, WB_CATALOG_RETIRED);
    return 0;
}

static int purge_files(struct purge_work *p)
{
    WB_CHECK(p->repo->magic == WB_REPO_MAGIC);
    WB_CHECK(p->count == 0);
    /* Starting a write transaction makes the newest state durable. So files that this state does not need may go. */
    int err = wb_catalog_txn_write(p->repo->catalog, &p->txn);

    /* Ask inside the transaction: readers that start from now on see a state that does not need the retired files. */
    if (err == 0)
        err = wb_catalog_oldest_reader(p->repo->catalog, &p->oldest);
    if (err == 0)
        err = wb_catalog_retired_each(&p->txn, add_purgeable, p);
    if (err == 0 && p->count)
        err = delete_retired(p);
    if (err == 0 && p->count)
        err = wb_catalog_txn_commit(&p->txn);
    wb_catalog_txn_abort(&p->txn);
    return err;
}

int wb_repo_purge(struct wb_repo *repo)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(repo->store.mode == WB_STORE_WRITE);

    struct purge_work p = {.repo = repo};
    struct retired_count count = {.repo = repo};
    int err = wb_repo_read(repo, count_retired, &count);

    return err < 0 || count.rows == 0 ? err : purge_files(&p);
}

/* ---- choosing a segment to append to --------------------------------------------------------------- */

/* The writer owns the segment from now on; on error the caller still does. */
static int add_tail(struct wb_repo_writer *writer, const struct wb_segment *segment, const struct wb_bin *bin,
                    uint64_t bytes)
{
    WB_CHECK(bytes >= WB_SEGMENT_HEADER_BYTES);
    WB_CHECK(segment->file.node != NULL);
    WB_CHECK(bytes >= segment->tail_at);
    return wb_vec_push(&writer->tails,
                       (struct wb_tail){.segment = *segment, .bin = *bin, .bytes = bytes, .bytes_committed = bytes});
}

static bool is_tail(const struct wb_repo_writer *writer, uint32_t number)
{
    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    WB_CHECK(number > 0);
    for (size_t i = 0; i < writer->tails.count; i++)
        if (writer->tails.items[i].segment.number == number)
            return true;
    return false;
}

/* Takes an unfinished segment that nobody has locked, and cuts it back to its committed bytes. */
static int reuse_segment(struct wb_repo *repo, const struct wb_catalog_rows *rows, const struct wb_bin *bin,
                         bool *done_out)
{
    struct wb_segment segment;
    struct wb_catalog_segment row;

    WB_CHECK(repo->writer->magic == WB_REPO_WRITER_MAGIC);
    *done_out = false;
    for (size_t i = rows->count; i > 0 && !*done_out; i--) {
        const struct wb_catalog_segment *seen = &rows->items[i - 1];
        if (seen->sealed || is_tail(repo->writer, seen->number) ||
            !wb_bin_equal(&(struct wb_bin){seen->node, seen->range}, bin))
            continue;
        if (claim(repo, seen, &segment, &row) < 0)
            continue;
        int err = wb_node_file_truncate(&segment.file, row.bytes);
        if (err == 0)
            err = add_tail(repo->writer, &segment, bin, row.bytes);
        if (err < 0) {
            wb_segment_close(&segment);
            return err;
        }
        *done_out = true;
    }
    return 0;
}

/* A node that is being removed gets no segment any more, whatever this writer knew about it. */
static int check_bin(struct wb_catalog_txn *txn, const struct wb_bin *bin)
{
    struct wb_catalog_node node;

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    if (wb_catalog_count(txn, WB_CATALOG_NODES) == 0)
        return 0;
    int err = wb_catalog_node_get(txn, bin->node, &node);
    if (err == WB_E_NOTFOUND || (err == 0 && node.leaving))
        err = wb_fail(WB_E_DOWN, "node %u was removed", bin->node);
    return err;
}

/*
 * Adds the row of a new, empty segment to the catalog. Returns 1 if the number was given to another segment in the
 * meantime: on another node there may be a file of the same number. Then *next_out is the first number that is free.
 */
static int register_segment(struct wb_repo *repo, uint32_t number, const struct wb_bin *bin, uint32_t *next_out)
{
    WB_CHECK(repo->writer->magic == WB_REPO_WRITER_MAGIC);

    struct wb_catalog_segment row = {
        .number = number,
        .node = bin->node,
        .range = bin->range,
        .bytes = WB_SEGMENT_HEADER_BYTES,
        .logical_end = WB_SEGMENT_HEADER_BYTES,
    };
    struct wb_catalog_summary summary;
    struct wb_catalog_txn txn;
    int err = wb_catalog_txn_write(repo->catalog, &txn);

    WB_CHECK(number > 0);
    if (err == 0)
        err = wb_catalog_summary_get(&txn, &summary);
    if (err == 0)
        err = check_bin(&txn, bin);
    if (err == 0 && number < summary.next_segment) {
        *next_out = summary.next_segment;
        err = 1;
    }
    if (err == 0)
        err = wb_catalog_segment_put(&txn, &row);
    if (err == 0) {
        summary.next_segment = number + 1;
        summary.commit++;
        err = wb_catalog_summary_put(&txn, &summary);
    }
    if (err == 0)
        err = wb_catalog_txn_commit(&txn);
    if (err == 0)
        repo->writer->commit = summary.commit;
    wb_catalog_txn_abort(&txn);
    return err;
}

/* Creates the file of the next free number. The file claims the number, before there is a row. */
static int create_segment(struct wb_repo *repo, uint32_t node, uint32_t number, struct wb_segment *segment_out)
{
    struct wb_node *reach;
    int err = wb_nodes_find_to_write(&repo->nodes, node, &reach);

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(number > 0);
    if (err < 0)
        return err;
    do {
        err = wb_segment_create(reach, repo->superblock.id, number, 0, segment_out);
        number++;
    } while (err == WB_E_INVALID);
    if (err == 0)
        err = wb_node_file_sync(&segment_out->file);
    return err < 0 ? err : wb_node_sync_names(reach);
}

/* Creates a segment and its row, and adds it to the tails. first: the number to try first. */
static int new_segment(struct wb_repo *repo, const struct wb_bin *bin, uint32_t first)
{
    WB_CHECK(repo->writer->magic == WB_REPO_WRITER_MAGIC);

    struct wb_segment segment = WB_SEGMENT_INIT;
    struct wb_error_copy why;
    int err;

    WB_CHECK(first > 0);
    for (;;) {
        err = create_segment(repo, bin->node, first, &segment);
        if (err == 0)
            err = register_segment(repo, segment.number, bin, &first);
        if (err <= 0)
            break;
        wb_node_file_remove(&segment.file); /* without a row, it is an orphan anyway */
        wb_segment_close(&segment);
    }
    if (err == 0)
        err = add_tail(repo->writer, &segment, bin, WB_SEGMENT_HEADER_BYTES);
    if (err < 0) {
        wb_error_save(err, &why);
        /* The segment may have a row or not. Both are fine, and what was committed before is not affected. */
        if (wb_catalog_uncertain(repo->catalog))
            (void)wb_repo_open_catalog(repo);
        wb_segment_close(&segment); /* without a row, the file is an orphan that the next writer removes */
        wb_error_restore(&why);
    }
    return err;
}

int wb_tail_open(struct wb_repo *repo, const struct wb_bin *bin)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(repo->writer->magic == WB_REPO_WRITER_MAGIC);
    WB_CHECK(bin->node > 0);

    struct wb_repo_overview o = {0};
    bool done = false;
    int err = wb_repo_overview(repo, &o);

    if (err == 0)
        err = reuse_segment(repo, &o.rows, bin, &done);
    if (err == 0 && !done)
        err = new_segment(repo, bin, o.summary.next_segment); /* numbers are never reused */
    wb_catalog_rows_release(&o.rows);
    WB_CHECK(err < 0 || repo->writer->tails.count > 0);
    return err;
}
