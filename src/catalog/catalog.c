/*
 * catalog.c - opens the catalog's file and manages its transactions. It never looks into
 * a row: what rows mean is in catalog_rows.c, catalog_history.c, catalog_sites.c and
 * catalog_snapshots.c, how they are stored in tree*.c.
 *
 * Single reads, such as a get, do not hold their state, because the lock would cost more
 * than the read. Why this is safe: a writer that reuses one of the state's pages changes
 * the page's checksum, so the read fails with WB_E_CORRUPT but never returns wrong data.
 * wb_catalog_call() then asks the tree whether there is a newer state. If so, the failure
 * is not damage, and the read is repeated with a state that is held.
 */
#include "catalog/catalog_tables.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"

enum { CATALOG_MAGIC = 0x57424341 };

struct wb_catalog {
    uint32_t magic;
    struct wb_tree *tree;
    bool holding;       /* transactions hold their state when they are woken: this is the second attempt */
    bool looked;        /* in the current wb_catalog_call(), a transaction was woken without holding ... */
    uint64_t looked_at; /* ... the state with this number */
};

static const char *const table_names[] = {
#define WB_CATALOG_TABLE_NAME(name, number, words) [number] = words,
    WB_CATALOG_TABLES(WB_CATALOG_TABLE_NAME)
#undef WB_CATALOG_TABLE_NAME
};
_Static_assert(sizeof table_names / sizeof *table_names <= WB_TREE_TABLES_MAX, "the tree has room for all tables");

int wb_catalog_corrupt(const struct wb_catalog *catalog, enum wb_catalog_table table, const char *what)
{
    WB_CHECK(catalog->magic == CATALOG_MAGIC);
    WB_CHECK(table < sizeof table_names / sizeof *table_names);
    WB_CHECK(table_names[table]);
    return wb_fail(WB_E_CORRUPT, "%s is damaged: %s in table %s", wb_catalog_path(catalog), what, table_names[table]);
}

const char *wb_catalog_path(const struct wb_catalog *catalog)
{
    WB_CHECK(catalog->magic == CATALOG_MAGIC);
    return wb_tree_path(catalog->tree);
}

struct wb_tree *wb_catalog_tree(const struct wb_catalog *catalog)
{
    WB_CHECK(catalog->tree != NULL);
    WB_CHECK(catalog->magic == CATALOG_MAGIC);
    return catalog->tree;
}

int wb_catalog_open(const char *dir, enum wb_tree_mode mode, struct wb_catalog **catalog_out)
{
    WB_CHECK(mode <= WB_TREE_CREATE);
    struct wb_catalog *catalog = wb_alloc_zero(1, sizeof *catalog);
    char *path = wb_path_join(dir, WB_CATALOG_NAME);
    int err = catalog && path ? wb_tree_open(path, mode, &catalog->tree) : WB_E_NOMEM;

    *catalog_out = err == 0 ? catalog : NULL;
    if (err < 0)
        wb_free(catalog);
    else
        catalog->magic = CATALOG_MAGIC;
    wb_free(path);
    return err;
}

void wb_catalog_close(struct wb_catalog *catalog)
{
    if (!catalog)
        return;
    WB_CHECK(catalog->magic == CATALOG_MAGIC);
    WB_CHECK(!catalog->holding);
    wb_tree_close(catalog->tree);
    catalog->magic = 0;
    wb_free(catalog);
}

int wb_catalog_call(struct wb_catalog *catalog, int (*function)(void *context), void *context)
{
    bool outer = catalog->holding;
    int err;

    WB_CHECK(function != NULL);
    WB_CHECK(catalog->magic == CATALOG_MAGIC);
    catalog->looked = false;
    err = function(context);
    bool gone = err == WB_E_CORRUPT || err == WB_E_DOWN; /* of a row, a file, or a whole node */
    if (!gone || outer || !catalog->looked || !wb_tree_moved(catalog->tree, catalog->looked_at))
        return err;
    catalog->holding = true;
    err = function(context);
    catalog->holding = false;
    return err;
}

/* ---- transactions -------------------------------------------------------------------- */

const struct wb_tree_state *wb_catalog_txn_state(const struct wb_catalog_txn *txn)
{
    WB_CHECK(txn->catalog->magic == CATALOG_MAGIC);
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    return txn->kind == WB_CATALOG_TXN_WRITING ? wb_tree_next(txn->catalog->tree) : &txn->state;
}

int wb_catalog_txn_read(struct wb_catalog *catalog, struct wb_catalog_txn *txn_out)
{
    WB_CHECK(catalog->magic == CATALOG_MAGIC);
    *txn_out = (struct wb_catalog_txn){.catalog = catalog};
    int err = wb_tree_hold(catalog->tree, &txn_out->state);
    if (err == 0)
        txn_out->kind = WB_CATALOG_TXN_HELD;
    return err;
}

void wb_catalog_txn_init(struct wb_catalog *catalog, struct wb_catalog_txn *txn_out)
{
    WB_CHECK(catalog->magic == CATALOG_MAGIC);
    *txn_out = (struct wb_catalog_txn){.catalog = catalog, .kind = WB_CATALOG_TXN_PARKED};
}

int wb_catalog_txn_wake(struct wb_catalog_txn *txn)
{
    WB_CHECK(txn->catalog->magic == CATALOG_MAGIC);
    WB_CHECK(txn->kind == WB_CATALOG_TXN_PARKED);

    struct wb_catalog *catalog = txn->catalog;
    int err = catalog->holding ? wb_tree_hold(catalog->tree, &txn->state) : wb_tree_look(catalog->tree, &txn->state);

    if (err < 0)
        return err;
    txn->kind = catalog->holding ? WB_CATALOG_TXN_HELD : WB_CATALOG_TXN_AWAKE;
    if (!catalog->holding) {
        catalog->looked = true;
        catalog->looked_at = txn->state.txn;
    }
    return 0;
}

void wb_catalog_txn_park(struct wb_catalog_txn *txn)
{
    WB_CHECK(txn->catalog->magic == CATALOG_MAGIC);
    WB_CHECK(txn->kind != WB_CATALOG_TXN_WRITING);
    WB_CHECK(txn->kind != WB_CATALOG_TXN_CLOSED);
    if (txn->kind == WB_CATALOG_TXN_HELD)
        wb_tree_let_go(txn->catalog->tree, txn->state.txn);
    txn->kind = WB_CATALOG_TXN_PARKED;
}

int wb_catalog_txn_write(struct wb_catalog *catalog, struct wb_catalog_txn *txn_out)
{
    WB_CHECK(catalog->magic == CATALOG_MAGIC);
    *txn_out = (struct wb_catalog_txn){.catalog = catalog};
    int err = wb_tree_begin(catalog->tree);
    if (err == 0)
        txn_out->kind = WB_CATALOG_TXN_WRITING;
    return err;
}

int wb_catalog_txn_commit(struct wb_catalog_txn *txn)
{
    WB_CHECK(txn->catalog->magic == CATALOG_MAGIC);
    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    txn->kind = WB_CATALOG_TXN_CLOSED;
    return wb_tree_commit(txn->catalog->tree);
}

void wb_catalog_txn_abort(struct wb_catalog_txn *txn)
{
    WB_CHECK(txn->kind == WB_CATALOG_TXN_CLOSED || txn->catalog->magic == CATALOG_MAGIC);
    if (txn->kind == WB_CATALOG_TXN_WRITING)
        wb_tree_abort(txn->catalog->tree);
    else if (txn->kind == WB_CATALOG_TXN_HELD)
        wb_tree_let_go(txn->catalog->tree, txn->state.txn);
    txn->kind = WB_CATALOG_TXN_CLOSED;
}

uint64_t wb_catalog_txn_id(const struct wb_catalog_txn *txn)
{
    WB_CHECK(txn->catalog->magic == CATALOG_MAGIC);
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    return wb_catalog_txn_state(txn)->txn;
}

bool wb_catalog_uncertain(const struct wb_catalog *catalog)
{
    WB_CHECK(catalog->tree != NULL);
    WB_CHECK(catalog->magic == CATALOG_MAGIC);
    return wb_tree_uncertain(catalog->tree);
}

int wb_catalog_pin(struct wb_catalog *catalog, uint64_t epoch)
{
    WB_CHECK(catalog->magic == CATALOG_MAGIC);
    WB_CHECK(epoch > 0);
    WB_CHECK(catalog->tree != NULL);
    return wb_tree_pin(catalog->tree, epoch);
}

void wb_catalog_unpin(struct wb_catalog *catalog, uint64_t epoch)
{
    WB_CHECK(catalog->magic == CATALOG_MAGIC);
    WB_CHECK(epoch > 0);
    WB_CHECK(catalog->tree != NULL);
    wb_tree_unpin(catalog->tree, epoch);
}

int wb_catalog_oldest_reader(struct wb_catalog *catalog, uint64_t *txn_id_out)
{
    WB_CHECK(catalog->magic == CATALOG_MAGIC);
    return wb_tree_oldest(catalog->tree, txn_id_out);
}

int wb_catalog_check(struct wb_catalog_txn *txn, wb_tree_found found, void *context)
{
    WB_CHECK(txn->catalog->magic == CATALOG_MAGIC);
    WB_CHECK(txn->kind == WB_CATALOG_TXN_HELD);
    return wb_tree_check(txn->catalog->tree, wb_catalog_txn_state(txn), found, context);
}

/* ---- tables as a whole ------------------------------------------------------------------ */

uint64_t wb_catalog_count(const struct wb_catalog_txn *txn, enum wb_catalog_table table)
{
    WB_CHECK(txn->catalog->magic == CATALOG_MAGIC);
    WB_CHECK(table < sizeof table_names / sizeof *table_names);
    return wb_catalog_txn_state(txn)->roots[table].rows;
}

uint64_t wb_catalog_version(const struct wb_catalog_txn *txn, enum wb_catalog_table table)
{
    WB_CHECK(table < sizeof table_names / sizeof *table_names);
    WB_CHECK(txn->kind == WB_CATALOG_TXN_AWAKE || txn->kind == WB_CATALOG_TXN_HELD);

    /* The root page has the checksums of the pages below it, and the number of the transaction that wrote it. */
    const struct wb_tree_root *root = &txn->state.roots[table];
    return root->rows ? root->ref.check : 0;
}

bool wb_catalog_same(const struct wb_catalog_txn *a, const struct wb_catalog_txn *b, enum wb_catalog_table table)
{
    WB_CHECK(table < sizeof table_names / sizeof *table_names);
    const struct wb_tree_root *x = &wb_catalog_txn_state(a)->roots[table];
    const struct wb_tree_root *y = &wb_catalog_txn_state(b)->roots[table];

    WB_CHECK(strcmp(wb_catalog_path(a->catalog), wb_catalog_path(b->catalog)) == 0);
    return wb_tree_ref_equal(x->ref, y->ref) && x->rows == y->rows;
}

int wb_catalog_clear(struct wb_catalog_txn *txn, enum wb_catalog_table table)
{
    WB_CHECK(txn->catalog->magic == CATALOG_MAGIC);
    WB_CHECK(table != WB_CATALOG_SUMMARY);
    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    return wb_tree_clear(txn->catalog->tree, table);
}
