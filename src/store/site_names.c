/*
 * site_names.c - the names of sites, by their hashes (site_names.h). They are in memory, because the table of sites is
 * in the order of names.
 */
#include "store/site_names.h"
#include "base/check.h"
#include "base/hash.h"

#include <stdlib.h>

static int add_name(void *context, struct wb_slice site, uint64_t pages)
{
    struct wb_site_names *names = context;
    struct wb_named_site name = {.hash = wb_catalog_site_hash(site), .at = names->text.len, .len = site.len};

    WB_CHECK(site.len > 0);
    (void)pages;
    name.named = name.hash == wb_hash64(site.ptr, site.len);
    int err = wb_buf_append_slice(&names->text, site);
    return err < 0 ? err : wb_vec_push(&names->items, name);
}

static int compare_names(const void *a, const void *b)
{
    const struct wb_named_site *x = a, *y = b;

    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

int wb_site_names_add(struct wb_catalog_txn *txn, struct wb_site_names *names)
{
    int err = wb_catalog_site_each(txn, add_name, names);

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    if (names->items.count > 1)
        qsort(names->items.items, names->items.count, sizeof *names->items.items, compare_names);
    return err;
}

const struct wb_named_site *wb_site_names_find(const struct wb_site_names *names, uint64_t hash)
{
    struct wb_named_site key = {.hash = hash};

    WB_CHECK(names->items.items || names->items.count == 0);
    return names->items.count ? bsearch(&key, names->items.items, names->items.count, sizeof key, compare_names) : NULL;
}

struct wb_slice wb_site_names_text(const struct wb_site_names *names, const struct wb_named_site *name)
{
    WB_CHECK(name->at + name->len <= names->text.len);
    return wb_slice(names->text.ptr + name->at, name->len);
}

void wb_site_names_release(struct wb_site_names *names)
{
    wb_vec_release(&names->items);
    wb_buf_release(&names->text);
}
