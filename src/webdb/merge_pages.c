/*
 * merge_pages.c - the first stage: pages by URL.
 *
 * Goes through the old rows and the sorted edits side by side. What comes of each page is written, its new number noted for its
 * old one and for the ids by which links name it, and where its content became another the second stage is told.
 * Rows that are mere targets go when nothing leads to them any more.
 */
#include "webdb/writer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "webdb/pagerow.h"
#include "webdb/sitesum.h"

#include <math.h>

enum {
    PAGES_BLOCK = 8 << 10, /* what one page costs to unpack */
    SITES_BLOCK = 4 << 10,
    WEEK_MS = 7 * 24 * 3600 * 1000,
};

struct page_stage {
    struct wb_webdb_writer *writer;
    struct wb_table *old_pages, *old_sites;
    struct wb_cursor *pages_cursor, *sites_cursor;
    struct wb_column degrees, near;    /* of the old generation; near is empty in one of version 1 */
    struct wb_table_writer *pages, *sites;
    struct wb_merge *merge;
    struct wb_pagefold fold;
    struct wb_pageedit edit;
    struct wb_buf edit_mem, row_mem, row, site;
    struct wb_webdb_site sum;          /* of the site at hand */
    struct wb_webdb_site before;       /* the same in the old generation */
    bool known_before;
    uint32_t *ids;                     /* that the page at hand is named by */
    size_t id_count, id_cap;
    uint64_t number;                   /* of the next row */
};

/* ---- sites -------------------------------------------------------------------------------------- */

static int end_site(struct page_stage *s)
{
    int err = 0;

    if (s->sum.pages) {
        wb_buf_clear(&s->row);
        err = wb_sitesum_encode(&s->sum, &s->row);
        if (err == 0)
            err = wb_table_add(s->sites, wb_buf_slice(&s->site), wb_buf_slice(&s->row));
        s->writer->next.count.sites++;
    }
    s->sum = (struct wb_webdb_site){0};
    return err;
}

/* Pages of a site lie together: their SURTs begin with its own. */
static int enter_site(struct page_stage *s, struct wb_slice surt)
{
    struct wb_slice site = wb_surt_site(surt);
    struct wb_record record;

    if (s->site.len && wb_slice_equal(site, wb_buf_slice(&s->site)))
        return 0;
    int err = end_site(s);
    wb_buf_clear(&s->site);
    if (err == 0)
        err = wb_buf_append_slice(&s->site, site);
    s->known_before = false;
    if (err < 0 || !s->sites_cursor)
        return err;
    err = wb_cursor_get(s->sites_cursor, site, &record);
    if (err == 0)
        err = wb_sitesum_decode(record.value, &s->before);
    s->known_before = err == 0;
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* ---- one page -------------------------------------------------------------------------------------- */

static int count_page(struct page_stage *s, const struct wb_webdb_page *page)
{
    struct wb_webdb_count *count = &s->writer->next.count;

    if (page->flags & WB_PAGE_TARGET)
        return 0;
    count->pages++;
    count->fetched += page->has_content && !(page->flags & WB_PAGE_LOADED);
    wb_sitesum_add(&s->sum, page);
    return wb_near_add(s->writer, page, s->number);
}

static int write_row(struct page_stage *s, struct wb_slice surt, struct wb_slice row)
{
    if (s->number >= WB_NUMBERS_MAX)
        return wb_fail(WB_E_LIMIT, "%s: more than %u URLs", s->writer->root, WB_NUMBERS_MAX);
    int err = wb_table_add(s->pages, surt, row);
    s->number++;
    return err;
}

static uint32_t old_degree(const struct page_stage *s, const struct wb_record *old)
{
    return old->key.ptr && old->number < s->degrees.count ? wb_get32(wb_column_at(&s->degrees, old->number)) : 0;
}

/* No edit is about it. */
static int keep_page(struct page_stage *s, const struct wb_record *old)
{
    struct wb_webdb_page page;
    int err = wb_pagerow_decode(old->key, old->value, &s->row_mem, &page);

    if (err < 0)
        return err;
    bool idle = (page.flags & WB_PAGE_TARGET) && old_degree(s, old) == 0;
    s->writer->page_numbers.numbers[old->number] = idle ? WB_NO_NUMBER : (uint32_t)s->number;
    if (idle)
        return 0;
    err = enter_site(s, old->key);
    if (err < 0)
        return err;
    err = count_page(s, &page);
    return err < 0 ? err : write_row(s, old->key, old->value);
}

static int content_edit(struct page_stage *s, const uint8_t md5[WB_EDIT_MD5_BYTES], char what)
{
    struct wb_content entry;

    memcpy(entry.md5, md5, WB_EDIT_MD5_BYTES);
    wb_put64_be(entry.page, s->number);
    return wb_sorter_add(s->writer->content_edits, wb_slice((const char *)&entry, sizeof entry), wb_slice(&what, 1));
}

static int tell_content(struct page_stage *s, bool had, const uint8_t old_md5[WB_EDIT_MD5_BYTES])
{
    const struct wb_webdb_page *page = &s->fold.page;
    bool same = had && page->has_content && memcmp(old_md5, page->md5, WB_EDIT_MD5_BYTES) == 0;
    int err = 0;

    if (had && !same)
        err = content_edit(s, old_md5, WB_CONTENT_REMOVE);
    if (err == 0 && page->has_content && !same)
        err = content_edit(s, page->md5, WB_CONTENT_ADD);
    return err;
}

static void set_due(struct page_stage *s, const struct wb_record *old)
{
    struct wb_webdb_page *page = &s->fold.page;
    const struct wb_webdb_options *o = &s->writer->options;

    page->inlinks = old_degree(s, old);
    /* Families are found when all rows are written: what a page is due by is the last edition's. */
    page->near = old->key.ptr && old->number < s->near.count && wb_get32(wb_column_at(&s->near, old->number)) != WB_NO_NUMBER;
    if (!(page->flags & WB_PAGE_SCORED))
        page->score = log2(2 + (double)page->inlinks);
    if (page->last_tried_ms == 0)
        page->next_due_ms = 0;
    else
        page->next_due_ms = o->due ? o->due(o->due_context, page, s->known_before ? &s->before : NULL) : page->last_tried_ms + WEEK_MS;
}

static int note_id(struct page_stage *s, uint32_t id)
{
    if (s->id_count == s->id_cap) {
        size_t cap = s->id_cap ? s->id_cap * 2 : 64;
        uint32_t *ids = wb_realloc(s->ids, cap * sizeof *ids);
        if (!ids)
            return WB_E_NOMEM;
        s->ids = ids;
        s->id_cap = cap;
    }
    s->ids[s->id_count++] = id;
    return 0;
}

static int apply_edit(struct page_stage *s, struct wb_slice surt, const struct wb_record *record)
{
    int64_t time_ms = (int64_t)wb_get64_be(record->key.ptr + record->key.len - 8);
    int err = wb_pageedit_decode(surt, time_ms, record->value, &s->edit_mem, &s->edit);

    if (err < 0)
        return err;
    int applied = wb_pagefold_apply(&s->fold, &s->edit);
    if (applied < 0 || s->edit.id == WB_PAGEEDIT_NO_ID)
        return applied < 0 ? applied : 0;
    if (s->edit.id >= s->writer->id_numbers.count)
        return wb_fail(WB_E_CORRUPT, "%s: an edit was not sorted as it was given", s->writer->root);
    /* A link that hangs on an addition which did not happen is told so here. */
    s->writer->id_numbers.numbers[s->edit.id] = WB_NO_NUMBER;
    return s->edit.kind != WB_PAGEEDIT_ADD_ABSENT || applied ? note_id(s, s->edit.id) : 0;
}

static int apply_edits(struct page_stage *s, struct wb_slice surt, const struct wb_record *first)
{
    struct wb_record record;
    int got;

    s->id_count = 0;
    got = apply_edit(s, surt, first);
    while (got == 0 && (got = wb_merge_edit(s->merge, &record)) > 0)
        got = apply_edit(s, surt, &record);
    return got;
}

static void count_change(struct page_stage *s, bool was_page)
{
    struct wb_webdb_merge *stat = &s->writer->stat;
    bool is_page = s->fold.exists && !(s->fold.page.flags & WB_PAGE_TARGET);

    stat->pages_added += is_page && !was_page;
    stat->pages_deleted += was_page && !is_page;
    stat->pages_changed += is_page && was_page && s->fold.touched;
}

static int edit_page(struct page_stage *s, struct wb_slice surt, const struct wb_record *old, const struct wb_record *first)
{
    uint8_t old_md5[WB_EDIT_MD5_BYTES];
    int err = wb_pagefold_begin(&s->fold, surt, old->value);

    if (err < 0)
        return err;
    bool had = old->key.ptr && s->fold.page.has_content, was_page = old->key.ptr && !(s->fold.page.flags & WB_PAGE_TARGET);
    memcpy(old_md5, s->fold.page.md5, sizeof old_md5);
    err = apply_edits(s, surt, first);
    if (err == 0)
        err = enter_site(s, surt);
    if (err < 0)
        return err;
    count_change(s, was_page);
    for (size_t i = 0; i < s->id_count; i++)
        s->writer->id_numbers.numbers[s->ids[i]] = s->fold.exists ? (uint32_t)s->number : WB_NO_NUMBER;
    if (old->key.ptr)
        s->writer->page_numbers.numbers[old->number] = s->fold.exists ? (uint32_t)s->number : WB_NO_NUMBER;
    if (!s->fold.exists)
        return 0;
    struct wb_slice row = old->value;
    if (s->fold.touched || !old->key.ptr) {
        set_due(s, old);
        wb_buf_clear(&s->row);
        err = wb_pagerow_encode(&s->fold.page, &s->row);
        row = wb_buf_slice(&s->row);
    }
    if (err == 0)
        err = tell_content(s, had, old_md5);
    if (err < 0)
        return err;
    err = count_page(s, &s->fold.page);
    return err < 0 ? err : write_row(s, surt, row);
}

/* ---- all of them --------------------------------------------------------------------------------------- */

static int open_stage(struct page_stage *s)
{
    struct wb_webdb_writer *writer = s->writer;
    int err = wb_writer_old_table(writer, WB_PAGES_FILE, WB_PAGES_KIND, &s->old_pages, &s->pages_cursor);

    if (err == 0)
        err = wb_writer_old_table(writer, WB_SITES_FILE, WB_SITES_KIND, &s->old_sites, &s->sites_cursor);
    if (err == 0)
        err = wb_writer_old_column(writer, WB_DEGREES_FILE, WB_DEGREES_KIND, sizeof(uint32_t), &s->degrees);
    if (err == 0 && writer->old.version >= 2)
        err = wb_writer_old_column(writer, WB_NEAR_FILE, WB_NEAR_KIND, sizeof(uint32_t), &s->near);
    if (err == 0)
        err = wb_near_open(writer);
    if (err == 0)
        err = wb_writer_new_table(writer, WB_PAGES_FILE, WB_PAGES_KIND, PAGES_BLOCK, &s->pages);
    if (err == 0)
        err = wb_writer_new_table(writer, WB_SITES_FILE, WB_SITES_KIND, SITES_BLOCK, &s->sites);
    if (err == 0)
        err = wb_number_map_open(writer, writer->next_id, &writer->id_numbers);
    if (err == 0)
        err = wb_number_map_open(writer, writer->old.rows, &writer->page_numbers);
    if (err == 0)
        err = wb_writer_sorter(writer, 1, &writer->content_edits);
    if (err == 0)
        err = wb_sorter_sort(writer->page_edits);
    return err < 0 ? err : wb_merge_open(s->pages_cursor, writer->page_edits, WB_PAGEEDIT_SUFFIX, &s->merge);
}

static void close_stage(struct page_stage *s)
{
    wb_merge_close(s->merge);
    wb_cursor_close(s->pages_cursor);
    wb_cursor_close(s->sites_cursor);
    wb_table_close(s->old_pages);
    wb_table_close(s->old_sites);
    wb_column_close(&s->degrees);
    wb_column_close(&s->near);
    wb_table_abandon(s->pages);
    wb_table_abandon(s->sites);
    wb_pagefold_release(&s->fold);
    wb_buf_release(&s->edit_mem);
    wb_buf_release(&s->row_mem);
    wb_buf_release(&s->row);
    wb_buf_release(&s->site);
    wb_free(s->ids);
}

static int walk_pages(struct page_stage *s)
{
    struct wb_sorter_stat edits;
    struct wb_record old, edit;
    struct wb_slice key;
    int got;

    wb_sorter_stat(s->writer->page_edits, &edits);
    for (uint64_t done = 0; (got = wb_merge_next(s->merge, &key, &old)) > 0; done++) {
        if (old.key.ptr && old.number >= s->writer->old.rows)
            return wb_fail(WB_E_CORRUPT, "%s: more rows of pages than its manifest tells", s->writer->root);
        int err = wb_merge_edit(s->merge, &edit);
        if (err >= 0)
            err = err ? edit_page(s, key, &old, &edit) : keep_page(s, &old);
        if (err == 0)
            err = wb_writer_progress(s->writer, "pages by URL", done, s->writer->old.rows + edits.records);
        if (err < 0)
            return err;
    }
    return got < 0 ? got : end_site(s);
}

int wb_merge_pages(struct wb_webdb_writer *writer)
{
    struct page_stage s = {.writer = writer, .degrees = WB_COLUMN_INIT, .near = WB_COLUMN_INIT};
    int err = wb_writer_group_flush(writer);

    if (err == 0)
        err = open_stage(&s);
    if (err == 0)
        err = walk_pages(&s);
    if (err == 0) {
        err = wb_table_finish(s.pages, NULL);
        s.pages = NULL;
    }
    if (err == 0) {
        err = wb_table_finish(s.sites, NULL);
        s.sites = NULL;
    }
    writer->next.rows = s.number;
    close_stage(&s);
    wb_sorter_close(writer->page_edits);
    writer->page_edits = NULL;
    return err;
}
