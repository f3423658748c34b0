/*
 * catalog_support.h - what the tests of the catalog share: each has a new catalog and a transaction that writes.
 */
#ifndef WB_TESTS_STORE_CATALOG_SUPPORT_H
#define WB_TESTS_STORE_CATALOG_SUPPORT_H

#include "store_support.h"

static char dir[DIR_MAX];
static struct wb_catalog *catalog;
static struct wb_catalog_txn txn;

static inline int begin(void **state)
{
    (void)state;
    test_dir(dir);
    must_ok(wb_catalog_open(dir, WB_TREE_CREATE, &catalog));
    must_ok(wb_catalog_txn_write(catalog, &txn));
    return 0;
}

static inline int end(void **state)
{
    (void)state;
    wb_catalog_txn_abort(&txn);
    wb_catalog_close(catalog);
    return 0;
}

#endif
