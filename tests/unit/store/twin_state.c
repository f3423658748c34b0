/*
 * twin_state.c - the lists of pages, revisits and bars that make up a state of the twin.
 * It only searches, adds, removes and copies; twin.c decides when.
 */
#include "twin_state.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

/* ---- versions ------------------------------------------------------------------------------ */

struct wb_twin_version *wb_twin_version_find(const struct wb_twin_versions *versions, struct wb_pageid id)
{
    for (size_t i = 0; i < versions->count; i++)
        if (wb_pageid_equal(versions->items[i].id, id))
            return &versions->items[i];
    return NULL;
}

void wb_twin_versions_release(struct wb_twin_versions *versions)
{
    WB_CHECK(versions->count <= versions->cap);
    for (size_t i = 0; i < versions->count; i++)
        wb_buf_release(&versions->items[i].record);
    wb_vec_release(versions);
}

int wb_twin_version_add(struct wb_twin_versions *versions, struct wb_twin_version *version)
{
    WB_CHECK(!wb_twin_version_find(versions, version->id)); /* one version of each page in each list */
    WB_CHECK(version->record.len > 0);
    WB_CHECK(version->epoch > 0);
    int err = wb_vec_push(versions, *version);
    if (err == 0)
        version->record = WB_BUF_INIT; /* the list owns it now */
    return err;
}

void wb_twin_version_drop(struct wb_twin_versions *versions, struct wb_twin_version *version)
{
    WB_CHECK(version->record.len == 0 || version->epoch > 0);
    WB_CHECK(version >= versions->items);
    WB_CHECK(version < versions->items + versions->count);
    wb_buf_release(&version->record);
    *version = wb_vec_pop(versions);
}

static int copy_versions(const struct wb_twin_versions *from, struct wb_twin_versions *to_out)
{
    int err = 0;

    WB_CHECK(to_out->count == 0);
    for (size_t i = 0; i < from->count && err == 0; i++) {
        struct wb_twin_version version = from->items[i];
        version.record = WB_BUF_INIT;
        err = wb_buf_append_slice(&version.record, wb_buf_slice(&from->items[i].record));
        if (err == 0)
            err = wb_twin_version_add(to_out, &version);
        wb_buf_release(&version.record);
    }
    WB_CHECK(err < 0 || to_out->count == from->count);
    return err;
}

int wb_twin_retire(struct wb_twin_state *state, struct wb_twin_version *version)
{
    WB_CHECK(state->epoch > 0);
    WB_CHECK(version->epoch <= state->epoch);
    if (state->snapshot && version->epoch <= state->snapshot_epoch) {
        struct wb_twin_version moved = *version;
        version->record = WB_BUF_INIT;
        int err = wb_twin_version_add(&state->old, &moved);
        wb_buf_release(&moved.record);
        if (err < 0)
            return err;
    }
    wb_twin_version_drop(&state->pages, version);
    return 0;
}

int wb_twin_version_page(const struct wb_twin_version *version, struct wb_page *page_out)
{
    int err = wb_page_decode(wb_buf_slice(&version->record), page_out);

    WB_CHECK(err == 0 || err == WB_E_NOMEM); /* the record was encoded by us and never left memory */
    page_out->id = version->id;
    page_out->time_ms = version->time_ms;
    page_out->epoch = version->epoch;
    page_out->lifetime_count = version->lifetime_count;
    return err;
}

/* ---- revisits -------------------------------------------------------------------------------- */

struct wb_twin_revisit *wb_twin_revisit_find(struct wb_twin_state *state, struct wb_pageid id)
{
    WB_CHECK(state->revisits.count <= state->revisits.cap);
    for (size_t i = 0; i < state->revisits.count; i++)
        if (wb_pageid_equal(state->revisits.items[i].id, id))
            return &state->revisits.items[i];
    return NULL;
}

int wb_twin_revisit_add(struct wb_twin_state *state, struct wb_pageid id, struct wb_slice site,
                        const struct wb_store_revisit *revisit)
{
    char *name = wb_strndup(site.ptr, site.len);
    int err = name ? wb_vec_push(&state->revisits, (struct wb_twin_revisit){id, name, *revisit}) : WB_E_NOMEM;

    WB_CHECK(err < 0 || wb_twin_revisit_find(state, id) == &state->revisits.items[state->revisits.count - 1]);
    if (err < 0)
        wb_free(name);
    return err;
}

void wb_twin_revisit_drop(struct wb_twin_state *state, struct wb_twin_revisit *revisit)
{
    WB_CHECK(revisit >= state->revisits.items);
    WB_CHECK(state->revisits.count > 0);
    wb_free(revisit->site);
    *revisit = wb_vec_pop(&state->revisits);
}

/* ---- bars ------------------------------------------------------------------------------------- */

static struct wb_twin_bar *find_bar(struct wb_twin_state *state, enum wb_store_bar_kind kind, struct wb_pageid id,
                                    struct wb_slice site)
{
    WB_CHECK(kind == WB_STORE_BAR_PAGE || kind == WB_STORE_BAR_SITE);
    for (size_t i = 0; i < state->bars.count; i++) {
        const struct wb_store_bar *bar = &state->bars.items[i].bar;
        bool same = kind == WB_STORE_BAR_PAGE ? wb_pageid_equal(bar->id, id) : wb_slice_equal(bar->site, site);
        if (bar->kind == kind && same)
            return &state->bars.items[i];
    }
    return NULL;
}

static int add_bar(struct wb_twin_state *state, const struct wb_store_bar *bar)
{
    char *name = wb_strndup(bar->site.ptr, bar->site.len);
    int err = name ? wb_vec_push(&state->bars, (struct wb_twin_bar){*bar, name}) : WB_E_NOMEM;

    WB_CHECK(bar->kind == WB_STORE_BAR_PAGE || !bar->except);
    if (err == 0)
        state->bars.items[state->bars.count - 1].bar.site = wb_slice(name, bar->site.len);
    else
        wb_free(name);
    return err;
}

static void drop_bar(struct wb_twin_state *state, struct wb_twin_bar *bar)
{
    WB_CHECK(bar >= state->bars.items);
    WB_CHECK(state->bars.count > 0);
    wb_free(bar->site);
    *bar = wb_vec_pop(&state->bars);
}

bool wb_twin_barred(struct wb_twin_state *state, struct wb_pageid id, struct wb_slice site)
{
    WB_CHECK(state->epoch > 0);

    const struct wb_twin_bar *page = find_bar(state, WB_STORE_BAR_PAGE, id, site);

    return page ? !page->bar.except : find_bar(state, WB_STORE_BAR_SITE, id, site) != NULL;
}

/* A bar on a site ends the exceptions of its pages. */
static void drop_exceptions(struct wb_twin_state *state, struct wb_slice site)
{
    WB_CHECK(site.len > 0);
    for (size_t i = 0; i < state->bars.count;)
        if (state->bars.items[i].bar.except && wb_slice_equal(state->bars.items[i].bar.site, site))
            drop_bar(state, &state->bars.items[i]);
        else
            i++;
}

/* Remembered revisits of what is barred are deleted. */
static void drop_revisits(struct wb_twin_state *state, const struct wb_store_bar *bar)
{
    WB_CHECK(!bar->except);
    for (size_t i = 0; i < state->revisits.count;) {
        struct wb_twin_revisit *revisit = &state->revisits.items[i];
        bool goes = bar->kind == WB_STORE_BAR_PAGE ? wb_pageid_equal(revisit->id, bar->id)
                                                   : wb_slice_equal(wb_slice_str(revisit->site), bar->site);
        if (goes)
            wb_twin_revisit_drop(state, revisit);
        else
            i++;
    }
}

int wb_twin_bar_set(struct wb_twin_state *state, const struct wb_store_bar *bar)
{
    WB_CHECK(bar->kind == WB_STORE_BAR_PAGE || !bar->except);

    struct wb_twin_bar *known = find_bar(state, bar->kind, bar->id, bar->site);

    if (known)
        drop_bar(state, known);
    if (bar->kind == WB_STORE_BAR_SITE)
        drop_exceptions(state, bar->site);
    if (!bar->except)
        drop_revisits(state, bar);
    int err = add_bar(state, bar);
    WB_CHECK(err < 0 || find_bar(state, bar->kind, bar->id, bar->site));
    return err;
}

static int allow_page(struct wb_twin_state *state, const struct wb_store_bar *bar)
{
    struct wb_twin_bar *page = find_bar(state, WB_STORE_BAR_PAGE, bar->id, bar->site);
    bool site_barred = find_bar(state, WB_STORE_BAR_SITE, bar->id, bar->site) != NULL;
    struct wb_store_bar exception = *bar;

    WB_CHECK(bar->kind == WB_STORE_BAR_PAGE);
    if (page ? page->bar.except : !site_barred)
        return wb_fail(WB_E_NOTFOUND, "the page is not barred");
    exception.except = true;
    if (!page)
        return add_bar(state, &exception);
    if (site_barred)
        page->bar.except = true;
    else
        drop_bar(state, page);
    return 0;
}

static int allow_site(struct wb_twin_state *state, struct wb_slice site)
{
    bool lifted = false;

    WB_CHECK(site.len > 0);
    for (size_t i = 0; i < state->bars.count;)
        if (wb_slice_equal(state->bars.items[i].bar.site, site)) {
            drop_bar(state, &state->bars.items[i]);
            lifted = true;
        } else {
            i++;
        }
    return lifted ? 0 : wb_fail(WB_E_NOTFOUND, "%.*s is not barred", WB_SLICE_ARG(site));
}

int wb_twin_bar_lift(struct wb_twin_state *state, const struct wb_store_bar *bar)
{
    WB_CHECK(bar->kind == WB_STORE_BAR_PAGE || bar->site.len > 0);

    int err = bar->kind == WB_STORE_BAR_PAGE ? allow_page(state, bar) : allow_site(state, bar->site);

    WB_CHECK(err < 0 || !wb_twin_barred(state, bar->id, bar->site));
    return err;
}

/* ---- a whole state ----------------------------------------------------------------------------- */

void wb_twin_state_release(struct wb_twin_state *state)
{
    wb_twin_versions_release(&state->pages);
    wb_twin_versions_release(&state->old);
    while (state->revisits.count)
        wb_twin_revisit_drop(state, &state->revisits.items[0]);
    while (state->bars.count)
        drop_bar(state, &state->bars.items[0]);
    wb_vec_release(&state->revisits);
    wb_vec_release(&state->bars);
    *state = (struct wb_twin_state){0};
}

int wb_twin_state_copy(const struct wb_twin_state *from, struct wb_twin_state *to_out)
{
    int err;

    WB_CHECK(from->epoch > 0);
    WB_CHECK(from->snapshot > 0 || from->old.count == 0);
    *to_out = (struct wb_twin_state){
        .epoch = from->epoch, .snapshot = from->snapshot, .snapshot_epoch = from->snapshot_epoch};
    err = copy_versions(&from->pages, &to_out->pages);
    if (err == 0)
        err = copy_versions(&from->old, &to_out->old);
    for (size_t i = 0; i < from->revisits.count && err == 0; i++) {
        const struct wb_twin_revisit *revisit = &from->revisits.items[i];
        err = wb_twin_revisit_add(to_out, revisit->id, wb_slice_str(revisit->site), &revisit->revisit);
    }
    for (size_t i = 0; i < from->bars.count && err == 0; i++)
        err = add_bar(to_out, &from->bars.items[i].bar);
    if (err < 0)
        wb_twin_state_release(to_out);
    return err;
}
