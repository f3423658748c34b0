/*
 * merge_pages.c - the first stage: pages by URL.
 *
 * Goes through the old rows and the sorted edits side by side. What comes of each page is written, its new number noted for its
 * old one and for the ids by which links name it, and where its content became another the second stage is told.
 * Rows that are mere targets go when nothing leads to them any more.
 */
#include "webdb/writer.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "webdb/pagerow.h"
#include "webdb/sitesum.h"

#include <math.h>

enum {
    PAGES_BLOCK = 8 << 10, /* what one page costs to unpack */
    SITES_BLOCK = 4 << 10,
};

struct wb_page_stage {
    struct wb_webdb_writer *writer;
    struct wb_table *old_pages, *old_sites;
    struct wb_cursor *pages_cursor, *sites_cursor;
    struct wb_column degrees, near;    /* of the old edition; near is empty in one of version 1 */
    struct wb_table_writer *pages, *sites;
    struct wb_merge *merge;
    struct wb_pagefold fold;
    struct wb_pageedit edit;
    struct wb_buf edit_mem, row_mem, row, site;
    struct wb_webdb_site sum;          /* of the site at hand */
    struct wb_webdb_site before;       /* the same in the old edition */
    bool known_before;
    uint32_t *ids;                     /* that the page at hand is named by */
    size_t id_count, id_cap;
    uint64_t number;                   /* of the next row */
    uint64_t done, steps;              /* progress */
    /* The page at hand; key and old borrow from merge until its next step. */
    struct wb_slice key;
    struct wb_table_record old;
    bool had_content;                  /* old_md5 is that of the old row */
    uint8_t old_md5[WB_EDIT_MD5_BYTES];
    bool asking;                       /* the caller was given the page and sets next_due_ms */
};

/* ---- sites -------------------------------------------------------------------------------------- */

static int end_site(struct wb_page_stage *s)
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
static int enter_site(struct wb_page_stage *s, struct wb_slice surt)
{
    struct wb_slice site = wb_surt_site(surt);
    struct wb_table_record record;

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

static int count_page(struct wb_page_stage *s, const struct wb_webdb_page *page)
{
    struct wb_webdb_count *count = &s->writer->next.count;

    if (page->flags & WB_PAGE_TARGET)
        return 0;
    count->pages++;
    count->fetched += page->has_content && !(page->flags & WB_PAGE_LOADED);
    wb_sitesum_add(&s->sum, page);
    return wb_near_add(s->writer, page, s->number);
}

static int write_row(struct wb_page_stage *s, struct wb_slice surt, struct wb_slice row)
{
    if (s->number >= WB_NUMBERS_MAX)
        return wb_fail(WB_E_LIMIT, "%s: more than %u URLs", s->writer->root, WB_NUMBERS_MAX);
    int err = wb_table_add(s->pages, surt, row);
    s->number++;
    return err;
}

static uint32_t old_degree(const struct wb_page_stage *s, const struct wb_table_record *old)
{
    return old->key.ptr && old->number < s->degrees.count ? wb_get32(wb_column_at(&s->degrees, old->number)) : 0;
}

/* No edit is about it. */
static int keep_page(struct wb_page_stage *s, const struct wb_table_record *old)
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

static int content_edit(struct wb_page_stage *s, const uint8_t md5[WB_EDIT_MD5_BYTES], char what)
{
    struct wb_content entry;

    memcpy(entry.md5, md5, WB_EDIT_MD5_BYTES);
    wb_put64_be(entry.page, s->number);
    return wb_sorter_add(s->writer->content_edits, wb_slice((const char *)&entry, sizeof entry), wb_slice(&what, 1));
}

static int tell_content(struct wb_page_stage *s)
{
    const struct wb_webdb_page *page = &s->fold.page;
    bool same = s->had_content && page->has_content && memcmp(s->old_md5, page->md5, WB_EDIT_MD5_BYTES) == 0;
    int err = 0;

    if (s->had_content && !same)
        err = content_edit(s, s->old_md5, WB_CONTENT_REMOVE);
    if (err == 0 && page->has_content && !same)
        err = content_edit(s, page->md5, WB_CONTENT_ADD);
    return err;
}

/* Fills in what the time at which a page is due depends on. */
static void prepare_due(struct wb_page_stage *s)
{
    struct wb_webdb_page *page = &s->fold.page;
    const struct wb_table_record *old = &s->old;

    page->inlinks = old_degree(s, old);
    /* Near duplicates are found after all rows are written, so this is what the last edition found. */
    page->near = old->key.ptr && old->number < s->near.count && wb_get32(wb_column_at(&s->near, old->number)) != WB_NO_NUMBER;
    if (!(page->flags & WB_PAGE_SCORED))
        page->score = log2(2 + (double)page->inlinks);
    if (page->last_tried_ms == 0)
        page->next_due_ms = 0; /* never fetched: as soon as possible */
}

static int note_id(struct wb_page_stage *s, uint32_t id)
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

static int apply_edit(struct wb_page_stage *s, struct wb_slice surt, const struct wb_table_record *record)
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

static int apply_edits(struct wb_page_stage *s, struct wb_slice surt, const struct wb_table_record *first)
{
    struct wb_table_record record;
    int got;

    s->id_count = 0;
    got = apply_edit(s, surt, first);
    while (got == 0 && (got = wb_merge_edit(s->merge, &record)) > 0)
        got = apply_edit(s, surt, &record);
    return got;
}

static void count_change(struct wb_page_stage *s, bool was_page)
{
    struct wb_webdb_merge *stat = &s->writer->stat;
    bool is_page = s->fold.exists && !(s->fold.page.flags & WB_PAGE_TARGET);

    stat->pages_added += is_page && !was_page;
    stat->pages_deleted += was_page && !is_page;
    stat->pages_changed += is_page && was_page && s->fold.touched;
}

static bool is_touched(const struct wb_page_stage *s)
{
    return s->fold.touched || !s->old.key.ptr;
}

/* Writes the page at hand as the edits left it. */
static int write_edited(struct wb_page_stage *s)
{
    struct wb_slice row = s->old.value;
    int err = 0;

    if (is_touched(s)) {
        wb_buf_clear(&s->row);
        err = wb_pagerow_encode(&s->fold.page, &s->row);
        row = wb_buf_slice(&s->row);
    }
    if (err == 0)
        err = tell_content(s);
    if (err == 0)
        err = count_page(s, &s->fold.page);
    return err < 0 ? err : write_row(s, s->key, row);
}

static void number_page(struct wb_page_stage *s)
{
    uint32_t number = s->fold.exists ? (uint32_t)s->number : WB_NO_NUMBER;

    for (size_t i = 0; i < s->id_count; i++)
        s->writer->id_numbers.numbers[s->ids[i]] = number;
    if (s->old.key.ptr)
        s->writer->page_numbers.numbers[s->old.number] = number;
}

/* Applies the edits of the page at hand. 1: the caller must say when it is due before it is written; 0: done. */
static int edit_page(struct wb_page_stage *s, const struct wb_table_record *first)
{
    int err = wb_pagefold_begin(&s->fold, s->key, s->old.value);

    if (err < 0)
        return err;
    bool was_page = s->old.key.ptr && !(s->fold.page.flags & WB_PAGE_TARGET);
    s->had_content = s->old.key.ptr && s->fold.page.has_content;
    memcpy(s->old_md5, s->fold.page.md5, sizeof s->old_md5);
    err = apply_edits(s, s->key, first);
    if (err == 0)
        err = enter_site(s, s->key);
    if (err < 0)
        return err;
    count_change(s, was_page);
    number_page(s);
    if (!s->fold.exists)
        return 0;
    if (is_touched(s)) {
        prepare_due(s);
        if (s->fold.page.last_tried_ms)
            return 1;
    }
    return write_edited(s);
}

/* ---- all of them, as far as the next question -------------------------------------------------------------- */

static int open_stage(struct wb_page_stage *s)
{
    struct wb_webdb_writer *writer = s->writer;
    struct wb_sorter_stat edits;
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
    if (err == 0) {
        wb_sorter_stat(writer->page_edits, &edits);
        s->steps = writer->old.rows + edits.records;
    }
    return err < 0 ? err : wb_merge_open(s->pages_cursor, writer->page_edits, WB_PAGEEDIT_SUFFIX, &s->merge);
}

void wb_merge_pages_close(struct wb_webdb_writer *writer)
{
    struct wb_page_stage *s = writer->page_stage;

    if (!s)
        return;
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
    wb_free(s);
    writer->page_stage = NULL;
}

int wb_merge_pages_begin(struct wb_webdb_writer *writer)
{
    struct wb_page_stage *s = wb_alloc_zero(1, sizeof *s);

    WB_CHECK(!writer->page_stage);
    if (!s)
        return WB_E_NOMEM;
    s->writer = writer;
    s->degrees = s->near = WB_COLUMN_INIT;
    writer->page_stage = s;
    int err = wb_writer_group_flush(writer);
    return err < 0 ? err : open_stage(s);
}

/* Takes the next URL of either side. 1: the caller must say when it is due; 0: it is done; 2: there is none. */
static int take_page(struct wb_page_stage *s)
{
    struct wb_table_record edit;
    int got = wb_merge_next(s->merge, &s->key, &s->old);

    if (got <= 0)
        return got < 0 ? got : 2;
    if (s->old.key.ptr && s->old.number >= s->writer->old.rows)
        return wb_fail(WB_E_CORRUPT, "%s: more rows of pages than its manifest tells", s->writer->root);
    got = wb_merge_edit(s->merge, &edit);
    if (got < 0)
        return got;
    return got ? edit_page(s, &edit) : keep_page(s, &s->old);
}

static int finish_pages(struct wb_page_stage *s)
{
    struct wb_webdb_writer *writer = s->writer;
    struct wb_table_writer *pages = s->pages, *sites = s->sites;
    int err = end_site(s);

    if (err == 0) {
        s->pages = NULL;
        err = wb_table_finish(pages, NULL);
    }
    if (err == 0) {
        s->sites = NULL;
        err = wb_table_finish(sites, NULL);
    }
    writer->next.rows = s->number;
    wb_merge_pages_close(writer);
    wb_sorter_close(writer->page_edits);
    writer->page_edits = NULL;
    return err;
}

int wb_merge_pages_next(struct wb_webdb_writer *writer, struct wb_webdb_page **page_out, const struct wb_webdb_site **site_out)
{
    struct wb_page_stage *s = writer->page_stage;
    int got;

    *page_out = NULL;
    *site_out = NULL;
    do {
        got = s->asking ? write_edited(s) : take_page(s);
        s->asking = got == 1;
        if (s->asking) {
            *page_out = &s->fold.page;
            *site_out = s->known_before ? &s->before : NULL;
            return 1;
        }
        if (got == 0)
            got = wb_writer_progress(writer, "pages by URL", s->done++, s->steps);
    } while (got == 0);
    return got < 0 ? got : finish_pages(s);
}
