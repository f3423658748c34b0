/*
 * store_loader.c - makes a repository of files and rows (store_state.h).
 *
 *   directory with a mark -> rows go to new catalogs, files to their places -> everything is there? -> catalogs are
 *   committed -> webbase.repo, which makes it a repository -> the mark goes
 *
 * All rows of a catalog are put in one transaction, in the order of their keys: so its pages are filled one after the
 * other, and written when they are full. What comes in is foreign: it is bounded, and checked as far as that can be
 * done without reading pages. `verify` checks the rest.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/folder.h"
#include "os/path.h"
#include "place/place.h"
#include "store/state/store_state_own.h"
#include "store/store.h"
#include "store/unfinished.h"

#include <stdio.h>

enum { LOADER_MAGIC = 0x57424c44 };

/* A catalog that is being filled. */
struct loader_part {
    char *dir;
    struct wb_buf superblock_bytes; /* webbase.repo */
    struct wb_superblock superblock;
    bool has_superblock;
    struct wb_catalog *catalog; /* NULL: no row has come yet */
    struct wb_catalog_txn txn;
    bool committed;
    bool has_row; /* the following are those of the last one */
    unsigned table;
    size_t key_len;
    char key[WB_TREE_KEY_MAX];
};

struct wb_store_loader {
    uint32_t magic;
    char *dir;
    bool made;  /* the directory */
    bool begun; /* what is in the directory is ours */
    struct wb_file lock;
    struct loader_part parts[WB_STATE_PARTS_MAX];
    size_t at; /* the part that takes rows */
    bool finished;
};

/* ---- opening -------------------------------------------------------------------------------------------------- */

/* The id in the mark tells which nodes elsewhere belong to the copy; here all nodes are inside. */
static const uint8_t unknown[WB_SUPERBLOCK_ID_BYTES];

static int begin_copy(struct wb_store_loader *loader)
{
    bool unfinished;
    int err = wb_unfinished_check(loader->dir, &unfinished);

    if (err == 0)
        err = wb_unfinished_lock(loader->dir, &loader->lock);
    if (err == 0) /* another process may have been faster */
        err = wb_unfinished_check(loader->dir, &unfinished);
    loader->begun = err == 0;
    if (err == 0 && unfinished)
        err = wb_unfinished_clear(loader->dir);
    return err < 0 ? err : wb_unfinished_mark(loader->dir, unknown, NULL);
}

int wb_store_loader_open(const char *dir, struct wb_store_loader **loader_out)
{
    struct wb_store_loader *loader = wb_alloc_zero(1, sizeof *loader);

    *loader_out = NULL;
    if (!loader)
        return WB_E_NOMEM;
    loader->magic = LOADER_MAGIC;
    loader->lock = WB_FILE_INIT;
    loader->dir = wb_strdup(dir);
    loader->parts[0].dir = wb_strdup(dir);
    loader->parts[1].dir = wb_path_join(dir, WB_BATCHED_UPDATE_DIR);
    loader->made = wb_path_kind(dir) == WB_PATH_NONE;
    int err = loader->dir && loader->parts[0].dir && loader->parts[1].dir ? begin_copy(loader) : WB_E_NOMEM;
    if (err < 0) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        wb_store_loader_close(loader);
        return wb_error_restore(&why);
    }
    *loader_out = loader;
    return 0;
}

/* ---- small files ---------------------------------------------------------------------------------------------- */

/* The number in a name that is exactly "nodeN"; 0: it is none. */
static uint32_t node_number(struct wb_slice name)
{
    uint64_t number;
    struct wb_slice prefix = WB_SLICE_LIT("node");

    if (!wb_slice_starts(name, prefix) || name.len == prefix.len || name.ptr[prefix.len] == '0' ||
        !wb_slice_to_u64(wb_slice(name.ptr + prefix.len, name.len - prefix.len), &number) || number > UINT32_MAX)
        return 0;
    return (uint32_t)number;
}

/* A webbase.node. */
static int write_identity(struct loader_part *part, struct wb_slice node, struct wb_slice bytes)
{
    char dir[WB_STATE_NODE_MAX];

    snprintf(dir, sizeof dir, "node%u", node_number(node));
    char *path = wb_path_join(part->dir, dir), *pages = path ? wb_path_join(path, WB_NODE_DIR) : NULL;
    char *file = pages ? wb_path_join(path, WB_NODE_IDENTITY_NAME) : NULL;
    int err = file ? wb_path_mkdirs(pages) : WB_E_NOMEM;
    if (err == 0)
        err = wb_path_replace(file, bytes);
    wb_free(file);
    wb_free(pages);
    wb_free(path);
    return err;
}

int wb_store_loader_small(struct wb_store_loader *loader, const char *name, struct wb_slice bytes)
{
    static const struct wb_slice update = {WB_BATCHED_UPDATE_DIR "/", sizeof WB_BATCHED_UPDATE_DIR},
                                 end = {"/" WB_NODE_IDENTITY_NAME, sizeof WB_NODE_IDENTITY_NAME};
    struct wb_slice rest = wb_slice_str(name);
    struct loader_part *part = &loader->parts[0];

    WB_CHECK(loader->magic == LOADER_MAGIC);
    WB_CHECK(!loader->finished);
    if (bytes.len > WB_STATE_SMALL_MAX)
        return wb_fail(WB_E_CORRUPT, "%s is too long", name);
    if (wb_slice_starts(rest, update)) {
        rest = wb_slice(rest.ptr + update.len, rest.len - update.len);
        part = &loader->parts[1];
    }
    if (wb_slice_equal(rest, wb_slice_str(WB_SUPERBLOCK_NAME))) {
        int err = wb_superblock_parse(name, bytes, &part->superblock);
        part->has_superblock = err == 0;
        wb_buf_clear(&part->superblock_bytes);
        return err < 0 ? err : wb_buf_append_slice(&part->superblock_bytes, bytes);
    }
    if (wb_slice_ends(rest, end) && node_number(wb_slice(rest.ptr, rest.len - end.len)))
        return write_identity(part, wb_slice(rest.ptr, rest.len - end.len), bytes);
    return wb_fail(WB_E_CORRUPT, "a repository has no file %s", name);
}

/* ---- rows
 * ------------------------------------------------------------------------------------------------------------- */

static int refuse_row(unsigned table, const char *why)
{
    return wb_fail(WB_E_CORRUPT, "a row of table %u %s", table, why);
}

/* A node must be inside the repository, in the directory that a copy has for it: rows say where we read and write. */
static int check_node(const struct loader_part *part, struct wb_slice key, struct wb_slice value)
{
    struct wb_catalog_node node;
    char dir[WB_STATE_NODE_MAX];
    int err = wb_catalog_node_decode(part->catalog, key, value, &node);

    if (err < 0)
        return err;
    wb_state_node_dir(&node, dir);
    if (!node.inside || (dir[0] && strcmp(dir, node.dir) != 0))
        return refuse_row(WB_CATALOG_NODES, "names a directory that is not in the repository");
    return 0;
}

static bool is_table(unsigned table)
{
    switch (table) {
#define TABLE_CASE(name, number, words) case number:
        WB_CATALOG_TABLES(TABLE_CASE)
#undef TABLE_CASE
        return table != WB_CATALOG_RETIRED;
    default:
        return false;
    }
}

/* Begins the transaction that takes the rows of a part. */
static int begin_rows(struct loader_part *part)
{
    int err = wb_path_mkdirs(part->dir);

    WB_CHECK(!part->catalog);
    if (err == 0)
        err = wb_catalog_open(part->dir, WB_TREE_CREATE, &part->catalog);
    return err < 0 ? err : wb_catalog_txn_write(part->catalog, &part->txn);
}

static int end_rows(struct loader_part *part)
{
    struct wb_catalog_summary summary;

    if (!part->catalog)
        return wb_fail(WB_E_CORRUPT, "%s cannot be made: it has no rows", part->dir);
    int err = wb_catalog_summary_get(&part->txn, &summary);
    if (err == 0)
        err = wb_catalog_txn_commit(&part->txn);
    part->committed = err == 0;
    return err;
}

int wb_store_loader_row(struct wb_store_loader *loader, size_t part, unsigned table, struct wb_slice key,
                        struct wb_slice value)
{
    WB_CHECK(loader->magic == LOADER_MAGIC);
    WB_CHECK(!loader->finished);
    if (part >= WB_STATE_PARTS_MAX || !is_table(table))
        return wb_fail(WB_E_CORRUPT, "a catalog has no part %zu, or no table %u", part, table);
    struct loader_part *p = &loader->parts[part];
    struct wb_slice last = wb_slice(p->key, p->key_len);
    if (part < loader->at ||
        (p->has_row && (table < p->table || (table == p->table && wb_slice_compare(key, last) <= 0))))
        return refuse_row(table, "is out of order");
    if (key.len == 0 || key.len > WB_TREE_KEY_MAX || value.len == 0 || value.len > WB_TREE_VALUE_MAX)
        return refuse_row(table, "has an impossible length");
    int err = part > loader->at ? end_rows(&loader->parts[loader->at]) : 0;
    loader->at = err == 0 ? part : loader->at;
    if (err == 0 && !p->catalog)
        err = begin_rows(p);
    if (err == 0 && table == WB_CATALOG_NODES)
        err = check_node(p, key, value);
    if (err == 0)
        err = wb_tree_put(wb_catalog_tree(p->catalog), table, key, value);
    p->has_row = true;
    p->table = table;
    p->key_len = key.len;
    memcpy(p->key, key.ptr, key.len);
    return err;
}

/* ---- the end
 * ---------------------------------------------------------------------------------------------------------- */

/* Everything must be there that the rows of a part speak of. */
static int check_file(struct wb_nodes *nodes, const struct wb_pagefile_kind *kind, const struct wb_catalog_segment *row)
{
    struct wb_node_file file = WB_NODE_FILE_INIT;
    char name[WB_SEGMENT_NAME_MAX];
    struct wb_node *node;
    uint64_t size = 0;

    if (kind->in_place && row->revision == 0)
        return refuse_row(WB_CATALOG_SEGMENTS, "names a file that cannot be");
    kind->name(row->number, row->revision, name);
    int err = wb_nodes_has(nodes, row->node) ? wb_nodes_find(nodes, row->node, &node) : WB_E_NOTFOUND;
    if (err == 0)
        err = wb_node_file_open(node, name, false, &file);
    if (err == 0)
        err = wb_node_file_size(&file, &size);
    if (err == WB_E_NOTFOUND)
        err = wb_fail(WB_E_CORRUPT, "%s is missing on node %u", name, row->node);
    if (err == 0 && size < row->bytes)
        err = wb_fail(WB_E_CORRUPT, "%s has %llu bytes, but should have %llu", file.path, (unsigned long long)size,
                      (unsigned long long)row->bytes);
    wb_node_file_close(&file);
    return err;
}

/* A node that is not as its row says is damage here: nobody can have taken it away. */
static int check_nodes(struct wb_nodes *nodes)
{
    struct wb_error_copy why;
    struct wb_node *node;
    int err = 0;

    for (size_t i = 0; i < nodes->items.count && err == 0; i++)
        err = wb_nodes_find(nodes, nodes->items.items[i].row.number, &node);
    wb_error_save(err, &why);
    return err == WB_E_DOWN ? wb_fail(WB_E_CORRUPT, "%s", why.message) : err;
}

static int check_files(struct loader_part *part, struct wb_nodes *nodes, struct wb_catalog_txn *txn)
{
    const struct wb_pagefile_kind *kind = wb_pagefile_kind(part->superblock.design.read.organisation);
    struct wb_catalog_rows rows;
    int err = check_nodes(nodes);

    if (err == 0)
        err = wb_catalog_rows_read(txn, &rows);
    if (err < 0)
        return err;
    for (size_t i = 0; i < rows.count && err == 0; i++)
        err = check_file(nodes, kind, &rows.items[i]);
    wb_catalog_rows_release(&rows);
    return err;
}

/* The repository's own directory holds pages, unless all nodes are others. */
static int make_pages(struct loader_part *part, const struct wb_nodes *nodes)
{
    bool own = nodes->items.count == 0;

    for (size_t i = 0; i < nodes->items.count; i++)
        own = own || strcmp(nodes->items.items[i].row.dir, ".") == 0;
    char *pages = own ? wb_path_join(part->dir, WB_NODE_DIR) : NULL;
    int err = !own ? 0 : pages ? wb_path_mkdirs(pages) : WB_E_NOMEM;
    wb_free(pages);
    return err;
}

static int finish_part(struct loader_part *part, const struct wb_design_part *design)
{
    struct wb_catalog_txn txn = {0};
    struct wb_nodes nodes;

    if (!part->has_superblock || !part->catalog)
        return wb_fail(WB_E_CORRUPT, "%s cannot be made: its %s or its rows are missing", part->dir,
                       WB_SUPERBLOCK_NAME);
    part->superblock.design = (struct wb_design){.read = *design};
    wb_nodes_init(&nodes, part->dir, &part->superblock);
    int err = part->committed ? 0 : end_rows(part);
    if (err == 0)
        err = wb_catalog_txn_read(part->catalog, &txn);
    if (err == 0)
        err = wb_nodes_refresh(&nodes, &txn);
    if (err == 0)
        err = make_pages(part, &nodes);
    if (err == 0)
        err = check_files(part, &nodes, &txn);
    if (txn.catalog)
        wb_catalog_txn_abort(&txn);
    wb_nodes_release(&nodes);
    return err < 0 ? err : wb_path_sync_dir(part->dir);
}

static int write_superblock(const struct loader_part *part)
{
    char *path = wb_path_join(part->dir, WB_SUPERBLOCK_NAME);
    int err = path ? wb_path_replace(path, wb_buf_slice(&part->superblock_bytes)) : WB_E_NOMEM;

    wb_free(path);
    return err;
}

/* The update nodes of a batch design: the part, and the file that keeps transfers and readers apart. */
static int finish_update(struct wb_store_loader *loader, const struct wb_superblock *whole)
{
    struct loader_part *part = &loader->parts[1];

    if (part->has_superblock &&
        (part->superblock.design.batch || memcmp(part->superblock.id, whole->id, sizeof whole->id) != 0 ||
         memcmp(&part->superblock.design.read, &whole->design.update, sizeof whole->design.update) != 0))
        return wb_fail(WB_E_CORRUPT, "%s/%s does not belong to the repository", part->dir, WB_SUPERBLOCK_NAME);
    int err = finish_part(part, &whole->design.update);
    if (err == 0)
        err = wb_batched_gate_create(loader->dir);
    return err < 0 ? err : write_superblock(part);
}

int wb_store_loader_finish(struct wb_store_loader *loader)
{
    struct wb_superblock whole = loader->parts[0].superblock;
    struct loader_part *update = &loader->parts[1];

    WB_CHECK(loader->magic == LOADER_MAGIC);
    WB_CHECK(!loader->finished);
    int err = finish_part(&loader->parts[0], &whole.design.read);
    if (err == 0 && !whole.design.batch && (update->catalog || update->has_superblock))
        err = wb_fail(WB_E_CORRUPT, "%s has update nodes, but its design has none", loader->dir);
    if (err == 0 && whole.design.batch)
        err = finish_update(loader, &whole);
    if (err == 0)
        err = wb_path_sync_dir(loader->dir);
    if (err == 0 && loader->made)
        err = wb_path_sync_parent(loader->dir);
    if (err == 0)
        err = write_superblock(&loader->parts[0]);
    loader->finished = err == 0;
    if (err == 0)
        (void)wb_unfinished_end(loader->dir); /* beside a superblock, a mark that stays means nothing */
    return err;
}

/* ---- closing
 * ---------------------------------------------------------------------------------------------------------- */

static void remove_file(const struct wb_store_loader *loader, const char *name)
{
    char *path = wb_path_join(loader->dir, name);

    if (path)
        (void)wb_path_unlink(path);
    wb_free(path);
}

/*
 * Takes everything back. What cannot be removed stays behind the mark, and the next copy removes it. If only what
 * follows the superblock has failed, there is no mark any more, but a repository.
 */
static void take_back(struct wb_store_loader *loader)
{
    struct wb_error_copy why;

    wb_error_save(0, &why);
    bool marked = !wb_store_exists(loader->dir) || wb_unfinished_mark(loader->dir, unknown, NULL) == 0;
    if (marked)
        remove_file(loader, WB_SUPERBLOCK_NAME);
    /* Before the mark there was nothing to be cleared. */
    if (marked && (!wb_superblock_is_unfinished(loader->dir) || wb_unfinished_clear(loader->dir) == 0)) {
        remove_file(loader, WB_SUPERBLOCK_UNFINISHED);
        remove_file(loader, WB_SUPERBLOCK_UNFINISHED ".tmp");
        remove_file(loader, WB_SUPERBLOCK_LOCK_NAME);
        if (loader->made)
            (void)wb_folder_remove(loader->dir);
    }
    wb_error_restore(&why);
}

/* It could not even begin: removes the directory that it has made, unless another process has come meanwhile. */
static void leave(struct wb_store_loader *loader)
{
    struct wb_error_copy why;
    bool unfinished;

    wb_error_save(0, &why);
    if (loader->lock.fd >= 0 && wb_unfinished_check(loader->dir, &unfinished) == 0 && !unfinished)
        remove_file(loader, WB_SUPERBLOCK_LOCK_NAME);
    if (loader->made)
        (void)wb_folder_remove(loader->dir);
    wb_error_restore(&why);
}

static void close_part(struct loader_part *part)
{
    if (part->txn.catalog)
        wb_catalog_txn_abort(&part->txn);
    wb_catalog_close(part->catalog);
    wb_buf_release(&part->superblock_bytes);
    wb_free(part->dir);
}

void wb_store_loader_close(struct wb_store_loader *loader)
{
    if (!loader)
        return;
    WB_CHECK(loader->magic == LOADER_MAGIC);
    for (size_t i = 0; i < WB_STATE_PARTS_MAX; i++)
        close_part(&loader->parts[i]);
    if (loader->begun && !loader->finished)
        take_back(loader);
    else if (!loader->begun && loader->dir)
        leave(loader);
    wb_file_close(&loader->lock);
    wb_free(loader->dir);
    loader->magic = 0;
    wb_free(loader);
}
