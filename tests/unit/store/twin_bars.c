/*
 * twin_bars.c - the bars and exceptions of the twin.
 */
#include "twin_state.h"
#include "base/error.h"
#include "base/mem.h"

static struct wb_twin_bar *find_bar(struct wb_twin_bars *bars, enum wb_store_bar_kind kind, struct wb_pageid id,
                                    struct wb_slice site)
{
    for (size_t i = 0; i < bars->count; i++) {
        const struct wb_store_bar *bar = &bars->items[i].bar;
        bool same = kind == WB_STORE_BAR_PAGE ? wb_pageid_equal(bar->id, id) : wb_slice_equal(bar->site, site);
        if (bar->kind == kind && same)
            return &bars->items[i];
    }
    return NULL;
}

static void add_bar(struct wb_twin_bars *bars, const struct wb_store_bar *bar)
{
    struct wb_twin_bar added = {*bar, wb_strndup(bar->site.ptr, bar->site.len)};

    WB_CHECK(added.site);
    added.bar.site = wb_slice_str(added.site);
    WB_CHECK(wb_vec_push(bars, added) == 0);
}

static void drop_bar(struct wb_twin_bars *bars, struct wb_twin_bar *bar)
{
    wb_free(bar->site);
    *bar = wb_vec_pop(bars);
}

bool wb_twin_barred(struct wb_twin_bars *bars, struct wb_pageid id, struct wb_slice site)
{
    const struct wb_twin_bar *page = find_bar(bars, WB_STORE_BAR_PAGE, id, site);

    return page ? !page->bar.except : find_bar(bars, WB_STORE_BAR_SITE, id, site) != NULL;
}

void wb_twin_bar_set(struct wb_twin_bars *bars, const struct wb_store_bar *bar)
{
    struct wb_twin_bar *known = find_bar(bars, bar->kind, bar->id, bar->site);

    if (known)
        drop_bar(bars, known);
    for (size_t i = 0; i < bars->count;) /* a bar on a site ends the exceptions of its pages */
        if (bar->kind == WB_STORE_BAR_SITE && bars->items[i].bar.except &&
            wb_slice_equal(bars->items[i].bar.site, bar->site))
            drop_bar(bars, &bars->items[i]);
        else
            i++;
    add_bar(bars, bar);
}

static int allow_page(struct wb_twin_bars *bars, const struct wb_store_bar *bar)
{
    struct wb_twin_bar *page = find_bar(bars, WB_STORE_BAR_PAGE, bar->id, bar->site);
    bool site_barred = find_bar(bars, WB_STORE_BAR_SITE, bar->id, bar->site) != NULL;
    struct wb_store_bar exception = *bar;

    if (page ? page->bar.except : !site_barred)
        return wb_fail(WB_E_NOTFOUND, "the page is not barred");
    exception.except = true;
    if (!page)
        add_bar(bars, &exception);
    else if (site_barred)
        page->bar.except = true;
    else
        drop_bar(bars, page);
    return 0;
}

static int allow_site(struct wb_twin_bars *bars, struct wb_slice site)
{
    bool lifted = false;

    for (size_t i = 0; i < bars->count;)
        if (wb_slice_equal(bars->items[i].bar.site, site)) {
            drop_bar(bars, &bars->items[i]);
            lifted = true;
        } else {
            i++;
        }
    return lifted ? 0 : wb_fail(WB_E_NOTFOUND, "%.*s is not barred", WB_SLICE_ARG(site));
}

int wb_twin_bar_lift(struct wb_twin_bars *bars, const struct wb_store_bar *bar)
{
    return bar->kind == WB_STORE_BAR_PAGE ? allow_page(bars, bar) : allow_site(bars, bar->site);
}

void wb_twin_bars_release(struct wb_twin_bars *bars)
{
    while (bars->count)
        drop_bar(bars, &bars->items[bars->count - 1]);
    wb_vec_release(bars);
}
