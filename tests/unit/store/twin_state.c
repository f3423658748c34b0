/*
 * twin_state.c - the lists of pages, versions, records and revisits that make up a state of the twin. It only
 * searches, adds, removes and copies; twin_history.c and twin.c decide when.
 */
#include "twin_state.h"
#include "base/mem.h"

/* ---- records ----------------------------------------------------------------------------------- */

struct wb_twin_record *wb_twin_record_new(const struct wb_page *page)
{
    struct wb_twin_record *record = wb_alloc_zero(1, sizeof *record);
    struct wb_page digested = *page;

    WB_CHECK(record);
    wb_page_digest(&digested);
    WB_CHECK(wb_page_encode(&digested, &record->bytes) == 0);
    record->refs = 1;
    return record;
}

struct wb_twin_record *wb_twin_record_ref(struct wb_twin_record *record)
{
    WB_CHECK(record->refs > 0);
    record->refs++;
    return record;
}

void wb_twin_record_unref(struct wb_twin_record *record)
{
    WB_CHECK(record->refs > 0);
    if (--record->refs)
        return;
    wb_buf_release(&record->bytes);
    wb_free(record);
}

static void decode(const struct wb_twin_record *record, struct wb_page *page_out)
{
    WB_CHECK(record->refs > 0);
    WB_CHECK(wb_page_decode(wb_buf_slice(&record->bytes), page_out) == 0); /* we have encoded it ourselves */
}

bool wb_twin_record_same(const struct wb_twin_record *a, const struct wb_twin_record *b)
{
    struct wb_page x, y;

    decode(a, &x);
    decode(b, &y);
    return x.status == y.status && x.truncated == y.truncated && wb_slice_equal(x.type, y.type) &&
           wb_slice_equal(x.body, y.body);
}

/* ---- versions ------------------------------------------------------------------------------------ */

struct wb_twin_version *wb_twin_version_insert(struct wb_twin_page *page, size_t at, struct wb_twin_record *record,
                                               int64_t time_ms)
{
    WB_CHECK(at <= page->versions.count);
    WB_CHECK(wb_vec_add(&page->versions));

    struct wb_twin_version *version = &page->versions.items[at];

    memmove(version + 1, version, (page->versions.count - 1 - at) * sizeof *version);
    *version = (struct wb_twin_version){.record = wb_twin_record_ref(record)};
    WB_CHECK(wb_vec_push(&version->times, time_ms) == 0);
    return version;
}

void wb_twin_version_release(struct wb_twin_version *version)
{
    wb_twin_record_unref(version->record);
    wb_vec_release(&version->times);
}

void wb_twin_version_drop(struct wb_twin_page *page, size_t at)
{
    WB_CHECK(at < page->versions.count);

    struct wb_twin_version *version = &page->versions.items[at];

    wb_twin_version_release(version);
    page->versions.count--;
    memmove(version, version + 1, (page->versions.count - at) * sizeof *version);
}

void wb_twin_version_copy(const struct wb_twin_version *from, struct wb_twin_version *to_out)
{
    *to_out = *from;
    to_out->record = wb_twin_record_ref(from->record);
    to_out->times.items = NULL;
    to_out->times.count = to_out->times.cap = 0;
    for (size_t i = 0; i < from->times.count; i++)
        WB_CHECK(wb_vec_push(&to_out->times, from->times.items[i]) == 0);
}

int64_t wb_twin_version_first(const struct wb_twin_version *version)
{
    WB_CHECK(version->times.count > 0);
    return version->times.items[0];
}

int64_t wb_twin_version_last(const struct wb_twin_version *version)
{
    WB_CHECK(version->times.count > 0);
    return version->times.items[version->times.count - 1];
}

void wb_twin_version_page(const struct wb_twin_version *version, struct wb_page *page_out)
{
    decode(version->record, page_out);
    page_out->id = wb_pageid_of_key(page_out->key);
    page_out->time_ms = wb_twin_version_last(version);
    page_out->epoch = version->arrived;
    page_out->lifetime = version->lifetime;
    page_out->lifetime_count = version->lifetime_count;
}

/* ---- pages ----------------------------------------------------------------------------------------- */

struct wb_twin_page *wb_twin_page_find(const struct wb_twin_state *state, struct wb_pageid id)
{
    for (size_t i = 0; i < state->pages.count; i++)
        if (wb_pageid_equal(state->pages.items[i].id, id))
            return &state->pages.items[i];
    return NULL;
}

struct wb_twin_page *wb_twin_page_make(struct wb_twin_state *state, struct wb_pageid id)
{
    struct wb_twin_page *page = wb_twin_page_find(state, id);

    if (!page) {
        page = wb_vec_add(&state->pages);
        WB_CHECK(page);
        page->id = id;
        page->floor_ms = INT64_MIN;
    }
    return page;
}

void wb_twin_page_release(struct wb_twin_page *page)
{
    while (page->versions.count)
        wb_twin_version_drop(page, page->versions.count - 1);
    while (page->forgotten.count)
        wb_twin_record_unref(wb_vec_pop(&page->forgotten));
    wb_vec_release(&page->forgotten);
    wb_vec_release(&page->versions);
}

void wb_twin_page_drop(struct wb_twin_state *state, struct wb_twin_page *page)
{
    WB_CHECK(page >= state->pages.items);
    WB_CHECK(page < state->pages.items + state->pages.count);
    wb_twin_page_release(page);
    *page = wb_vec_pop(&state->pages);
}

void wb_twin_page_copy(const struct wb_twin_page *from, struct wb_twin_page *to_out)
{
    *to_out = *from;
    memset(&to_out->versions, 0, sizeof to_out->versions);
    memset(&to_out->forgotten, 0, sizeof to_out->forgotten);
    for (size_t i = 0; i < from->forgotten.count; i++)
        WB_CHECK(wb_vec_push(&to_out->forgotten, wb_twin_record_ref(from->forgotten.items[i])) == 0);
    for (size_t i = 0; i < from->versions.count; i++) {
        struct wb_twin_version *version = wb_vec_add(&to_out->versions);
        WB_CHECK(version);
        wb_twin_version_copy(&from->versions.items[i], version);
    }
}

bool wb_twin_page_in_site(const struct wb_twin_page *page, struct wb_slice site)
{
    struct wb_page decoded;

    WB_CHECK(page->versions.count > 0);
    decode(page->versions.items[0].record, &decoded);
    return wb_slice_equal(wb_key_site(decoded.key), site);
}

/* ---- revisits ---------------------------------------------------------------------------------------- */

void wb_twin_revisit_add(struct wb_twin_state *state, const struct wb_store_revisit *revisit)
{
    struct wb_twin_revisit added = {wb_strndup(revisit->site.ptr, revisit->site.len),
                                    wb_strndup(revisit->url.len ? revisit->url.ptr : "", revisit->url.len), *revisit};
    size_t at = state->revisits.count;

    WB_CHECK(added.site && added.url);
    WB_CHECK(wb_vec_add(&state->revisits));
    for (; at > 0 && state->revisits.items[at - 1].revisit.time_ms > revisit->time_ms; at--)
        state->revisits.items[at] = state->revisits.items[at - 1];
    added.revisit.site = wb_slice_str(added.site);
    added.revisit.url = wb_slice_str(added.url);
    state->revisits.items[at] = added;
}

void wb_twin_revisit_drop(struct wb_twin_state *state, size_t at)
{
    struct wb_twin_revisit *revisit = &state->revisits.items[at];

    WB_CHECK(at < state->revisits.count);
    wb_free(revisit->site);
    wb_free(revisit->url);
    state->revisits.count--;
    memmove(revisit, revisit + 1, (state->revisits.count - at) * sizeof *revisit);
}

/* ---- a whole state ------------------------------------------------------------------------------------- */

void wb_twin_state_release(struct wb_twin_state *state)
{
    for (size_t i = 0; i < state->pages.count; i++)
        wb_twin_page_release(&state->pages.items[i]);
    while (state->revisits.count)
        wb_twin_revisit_drop(state, state->revisits.count - 1);
    wb_vec_release(&state->pages);
    wb_vec_release(&state->revisits);
    *state = (struct wb_twin_state){0};
}

void wb_twin_state_copy(const struct wb_twin_state *from, struct wb_twin_state *to_out)
{
    *to_out = (struct wb_twin_state){.epoch = from->epoch, .changed = from->changed};
    for (size_t i = 0; i < from->pages.count; i++) {
        struct wb_twin_page *copied = wb_vec_add(&to_out->pages);
        WB_CHECK(copied);
        wb_twin_page_copy(&from->pages.items[i], copied);
    }
    for (size_t i = 0; i < from->revisits.count; i++)
        wb_twin_revisit_add(to_out, &from->revisits.items[i].revisit);
}
