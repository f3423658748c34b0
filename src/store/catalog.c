/*
 * catalog.c - the tree behind the catalog: opening it and its transactions. What the
 * rows mean is in catalog_rows.c.
 *
 * Single reads (a get, a put that looks for an older version) do not tell writers
 * of themselves, because that would cost more than the read. A page that a writer has
 * used for something else meanwhile fails its checksum, so such a read can fail but
 * not be wrong; wb_catalog_call() then repeats it with a state that stays.
 */
#include "store/catalog.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/file.h"

struct wb_catalog {
    struct wb_tree *tree;
    bool holding;      /* transactions that are woken hold their state */
    bool looked;       /* one was woken that does not, and saw: */
    uint64_t looked_at;
};

static const char *const table_names[] = {
#define WB_CATALOG_TABLE_NAME(name, number, words) [number] = words,
    WB_CATALOG_TABLES(WB_CATALOG_TABLE_NAME)
#undef WB_CATALOG_TABLE_NAME
};
_Static_assert(sizeof table_names / sizeof *table_names <= WB_TREE_TABLES_MAX, "the tree has room for all tables");

int wb_catalog_corrupt(const struct wb_catalog *catalog, enum wb_catalog_table table, const char *what)
{
    return wb_fail(WB_E_CORRUPT, "%s is damaged: %s in table %s", wb_catalog_path(catalog), what, table_names[table]);
}

const char *wb_catalog_path(const struct wb_catalog *catalog)
{
    return wb_tree_path(catalog->tree);
}

struct wb_tree *wb_catalog_tree(const struct wb_catalog *catalog)
{
    return catalog->tree;
}

int wb_catalog_open(const char *dir, enum wb_tree_mode mode, struct wb_catalog **catalog_out)
{
    struct wb_catalog *catalog = wb_alloc_zero(1, sizeof *catalog);
    char *path = wb_path_join(dir, WB_CATALOG_NAME);
    int err = catalog && path ? wb_tree_open(path, mode, &catalog->tree) : WB_E_NOMEM;

    *catalog_out = err == 0 ? catalog : NULL;
    if (err < 0)
        wb_free(catalog);
    wb_free(path);
    return err;
}

void wb_catalog_close(struct wb_catalog *catalog)
{
    if (!catalog)
        return;
    wb_tree_close(catalog->tree);
    wb_free(catalog);
}

int wb_catalog_call(struct wb_catalog *catalog, int (*function)(void *context), void *context)
{
    bool outer = catalog->holding;
    int err;

    catalog->looked = false;
    err = function(context);
    if (err != WB_E_CORRUPT || outer || !catalog->looked || !wb_tree_moved(catalog->tree, catalog->looked_at))
        return err;
    catalog->holding = true;
    err = function(context);
    catalog->holding = false;
    return err;
}

/* ---- transactions -------------------------------------------------------------------- */

const struct wb_tree_state *wb_catalog_txn_state(const struct wb_catalog_txn *txn)
{
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    return txn->kind == WB_CATALOG_TXN_WRITING ? wb_tree_next(txn->catalog->tree) : &txn->state;
}

int wb_catalog_txn_read(struct wb_catalog *catalog, struct wb_catalog_txn *txn_out)
{
    *txn_out = (struct wb_catalog_txn){.catalog = catalog};
    int err = wb_tree_hold(catalog->tree, &txn_out->state);
    if (err == 0)
        txn_out->kind = WB_CATALOG_TXN_HELD;
    return err;
}

void wb_catalog_txn_init(struct wb_catalog *catalog, struct wb_catalog_txn *txn_out)
{
    *txn_out = (struct wb_catalog_txn){.catalog = catalog, .kind = WB_CATALOG_TXN_PARKED};
}

int wb_catalog_txn_wake(struct wb_catalog_txn *txn)
{
    struct wb_catalog *catalog = txn->catalog;
    int err = catalog->holding ? wb_tree_hold(catalog->tree, &txn->state) : wb_tree_look(catalog->tree, &txn->state);

    WB_CHECK(txn->kind == WB_CATALOG_TXN_PARKED);
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
    if (txn->kind == WB_CATALOG_TXN_HELD)
        wb_tree_let_go(txn->catalog->tree, txn->state.txn);
    txn->kind = WB_CATALOG_TXN_PARKED;
}

int wb_catalog_txn_write(struct wb_catalog *catalog, struct wb_catalog_txn *txn_out)
{
    *txn_out = (struct wb_catalog_txn){.catalog = catalog};
    int err = wb_tree_begin(catalog->tree);
    if (err == 0)
        txn_out->kind = WB_CATALOG_TXN_WRITING;
    return err;
}

int wb_catalog_txn_commit(struct wb_catalog_txn *txn)
{
    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    txn->kind = WB_CATALOG_TXN_CLOSED;
    return wb_tree_commit(txn->catalog->tree);
}

void wb_catalog_txn_abort(struct wb_catalog_txn *txn)
{
    if (txn->kind == WB_CATALOG_TXN_WRITING)
        wb_tree_abort(txn->catalog->tree);
    else if (txn->kind == WB_CATALOG_TXN_HELD)
        wb_tree_let_go(txn->catalog->tree, txn->state.txn);
    txn->kind = WB_CATALOG_TXN_CLOSED;
}

uint64_t wb_catalog_txn_id(const struct wb_catalog_txn *txn)
{
    return wb_catalog_txn_state(txn)->txn;
}

bool wb_catalog_uncertain(const struct wb_catalog *catalog)
{
    return wb_tree_uncertain(catalog->tree);
}

int wb_catalog_oldest_reader(struct wb_catalog *catalog, uint64_t *txn_id_out)
{
    return wb_tree_oldest(catalog->tree, txn_id_out);
}

int wb_catalog_check(struct wb_catalog_txn *txn, wb_tree_found found, void *context)
{
    return wb_tree_check(txn->catalog->tree, wb_catalog_txn_state(txn), found, context);
}

/* ---- tables as a whole ------------------------------------------------------------------ */

int wb_catalog_count(struct wb_catalog_txn *txn, enum wb_catalog_table table, uint64_t *rows_out)
{
    *rows_out = wb_catalog_txn_state(txn)->roots[table].rows;
    return 0;
}

int wb_catalog_clear(struct wb_catalog_txn *txn, enum wb_catalog_table table)
{
    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    return wb_tree_clear(txn->catalog->tree, table);
}
