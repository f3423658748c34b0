/*
 * site_names.h - finds the name of a site whose hash is known: rows of pages have only that (site_names.c).
 */
#ifndef WB_STORE_SITE_NAMES_H
#define WB_STORE_SITE_NAMES_H

#include "base/buf.h"
#include "base/vec.h"
#include "catalog/catalog.h"

struct wb_named_site {
    uint64_t hash;
    size_t at, len; /* in wb_site_names.text */
    bool named;     /* that is its name: keys of sites may be something else (catalog_sites.c) */
};

struct wb_site_names {
    WB_VEC(struct wb_named_site) items; /* by hash */
    struct wb_buf text;
};

/* Adds all sites of a catalog. */
int wb_site_names_add(struct wb_catalog_txn *txn, struct wb_site_names *names);

/* NULL if the site is not among them. */
const struct wb_named_site *wb_site_names_find(const struct wb_site_names *names, uint64_t hash);
struct wb_slice wb_site_names_text(const struct wb_site_names *names, const struct wb_named_site *name);
void wb_site_names_release(struct wb_site_names *names);

#endif
