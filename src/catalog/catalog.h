/*
 * catalog.h - the door of catalog: which versions of which page exist, in which epochs, and where?
 *
 *   terms.h            policies, outcomes, revisits, bars, snapshots: words that users of the store know, too
 *   catalog_tables.h   the tables, their rows, and transactions
 *   history.h          the past of one page: captures, versions, what a policy keeps
 *   pageview.h         a page as a transaction sees it and changes it
 *
 * It decides nothing about files: a place is a number of a file and a position that others understand.
 */
#ifndef WB_CATALOG_CATALOG_H
#define WB_CATALOG_CATALOG_H

#include "catalog/catalog_tables.h"
#include "catalog/history.h"
#include "catalog/pageview.h"
#include "catalog/terms.h"

#endif
