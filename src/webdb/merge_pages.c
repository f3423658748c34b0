/*
 * merge_pages.c - stage 1 of the merge: pages by URL.
 *
 * Walks the old rows and the sorted edits together, and applies the edits of each page to its row. The new row is
 * written. Its number is recorded for the old number and for the ids by which links refer to the page. If the page has
 * another content than before, or the store has it now and did not before, stage 2 is told. The row of a mere target is
 * dropped when no link leads to it any more. The sums of each site are written along the way, and the kind of each row.
 *
 * The stage pauses at each changed page, so that the caller of the writer can set its next due time:
 *
 *   take_page() -> edit_page() -> the caller sets next_due_ms -> write_edited()
 *              \-> keep_page(): no edit, the old row is copied
 *
 * This stage never decides when a page is due, and never looks at links.
 */
#include "webdb/writer.h"
#include "base/bytes.h"
#include "webdb/pagerow.h"
#include "webdb/sitesum.h"
#include "webdb/spelling.h"

#include <math.h>

enum {
    PAGES_BLOCK = 8 << 10, /* small blocks, because getting one page decompresses one block */
    SITES_BLOCK = 4 << 10,
};

struct wb_merge_pages {
    struct wb_webdb_writer *writer;
    struct wb_table *old_pages, *old_sites;
    struct wb_cursor *pages_cursor, *sites_cursor;
    struct wb_column degrees, near; /* of the old edition */
    struct wb_table_writer *pages, *sites;
    struct wb_column_writer *kinds;
    struct wb_merge *merge;
    struct wb_pagefold fold;
    struct wb_pageedit edit;
    struct wb_buf edit_mem, row_mem, row, site, key_mem;
    struct wb_webdb_site sum;          /* of the current site, so far */
    struct wb_webdb_site before;       /* what the old edition says about it */
    bool known_before;                 /* the old edition says something about it */
    uint64_t number;                   /* the number that the next row gets */
    uint64_t done, steps;              /* progress */

    /* The current page. key and old borrow from merge until its next step. */
    struct wb_slice key;
    struct wb_table_record old;
    WB_VEC(uint32_t) ids;              /* the ids by which links refer to it */
    unsigned old_kind;                 /* the kind of the old row; WB_IS_TARGET if there is none */
    bool had_content;                  /* the old row has a content, old_md5 */
    uint8_t old_md5[WB_MD5_BYTES];
    bool asking;                       /* the caller has the page and sets next_due_ms */
};

/* ---- sites -------------------------------------------------------------------------------------- */

/* What is true whenever a function of this stage is entered. */
static void check_stage(const struct wb_merge_pages *s)
{
    WB_CHECK(wb_writer_is(s->writer, WB_WRITER_MERGING));
    WB_CHECK(s->writer->page_stage == s);
    WB_CHECK(s->writer->next.count.pages <= s->number + 1); /* a page is counted just before it is written */
    WB_CHECK(s->number <= WB_NUMBERS_MAX);
}

/* Writes the sums of the current site, unless it has only targets. */
static int end_site(struct wb_merge_pages *s)
{
    int err = 0;

    check_stage(s);
    WB_CHECK(s->sum.fetched <= s->sum.pages);
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

/* Called for each page. The pages of a site follow each other, because their SURTs start with that of the site. */
static int enter_site(struct wb_merge_pages *s, struct wb_slice surt)
{
    struct wb_slice site = wb_surt_site(surt);
    struct wb_table_record record;

    check_stage(s);
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

/* ---- one page -------------------------------------------------------------------------------- */

static int count_page(struct wb_merge_pages *s, const struct wb_webdb_page *page)
{
    struct wb_webdb_count *count = &s->writer->next.count;

    check_stage(s);
    if (page->flags & WB_PAGE_TARGET)
        return 0;
    count->pages++;
    count->fetched += page->has_content && !(page->flags & WB_PAGE_LOADED);
    wb_sitesum_add(&s->sum, page);
    return wb_merge_near_add(s->writer, page, s->number);
}

/* Tells stage 2 if the store has the page now and did not before, or the other way round. */
static int tell_id(struct wb_merge_pages *s, struct wb_slice surt, unsigned old_kind, unsigned kind)
{
    bool listed = old_kind & WB_IS_STORED; /* it is in the old pages by id */
    bool stored = kind & WB_IS_STORED;
    struct wb_pageid id;
    char key[16], value[1 + 4];

    check_stage(s);
    WB_CHECK(s->number < WB_NUMBERS_MAX);
    if (listed == stored)
        return 0;
    int err = wb_spelling_id(surt, &s->key_mem, &id);
    if (err < 0)
        return err;
    wb_pageid_put(id, key);
    value[0] = stored ? WB_CONTENT_ADD : WB_CONTENT_REMOVE;
    wb_put32_be(value + 1, (uint32_t)s->number);
    return wb_sorter_add(s->writer->id_edits, wb_slice(key, sizeof key), wb_slice(value, sizeof value));
}

static int write_row(struct wb_merge_pages *s, struct wb_slice surt, struct wb_slice row, unsigned kind)
{
    uint8_t byte = (uint8_t)kind;

    check_stage(s);
    WB_CHECK(kind <= UINT8_MAX);
    WB_CHECK(wb_slice_starts(surt, wb_buf_slice(&s->site))); /* it is counted in the sums of its own site */
    if (s->number >= WB_NUMBERS_MAX)
        return wb_fail(WB_E_LIMIT, "%s: there are more than %u URLs", s->writer->root, WB_NUMBERS_MAX);
    int err = wb_table_add(s->pages, surt, row);
    s->number++;
    return err < 0 ? err : wb_column_add(s->kinds, &byte);
}

/* How many links led to a page in the old edition. */
static uint32_t old_degree(const struct wb_merge_pages *s, const struct wb_table_record *old)
{
    return old->key.ptr && old->number < s->degrees.count ? wb_get32(wb_column_at(&s->degrees, old->number)) : 0;
}

/* No edit concerns this page: copies its row. */
static int keep_page(struct wb_merge_pages *s, const struct wb_table_record *old)
{
    struct wb_webdb_page page;
    int err = wb_pagerow_decode(old->key, old->value, &s->row_mem, &page);

    check_stage(s);
    WB_CHECK(old->key.ptr != NULL);
    WB_CHECK(!s->asking);
    if (err < 0)
        return err;
    bool unused = (page.flags & WB_PAGE_TARGET) && old_degree(s, old) == 0; /* a target that nothing leads to */
    wb_numbermap_set(&s->writer->page_numbers, old->number, unused ? WB_NO_NUMBER : (uint32_t)s->number);
    if (unused)
        return 0;
    err = enter_site(s, old->key);
    if (err < 0)
        return err;
    unsigned kind = wb_edition_kind(&page);
    err = count_page(s, &page);
    if (err == 0)
        err = tell_id(s, old->key, kind, kind);
    return err < 0 ? err : write_row(s, old->key, old->value, kind);
}

static int add_content_edit(struct wb_merge_pages *s, const uint8_t md5[WB_MD5_BYTES], enum wb_content_edit what)
{
    struct wb_content entry;
    char byte = (char)what;

    check_stage(s);
    WB_CHECK(what == WB_CONTENT_ADD || what == WB_CONTENT_REMOVE);
    WB_CHECK(s->number < WB_NUMBERS_MAX);
    memcpy(entry.md5, md5, WB_MD5_BYTES);
    wb_put64_be(entry.page, s->number);
    return wb_sorter_add(s->writer->content_edits, wb_slice((const char *)&entry, sizeof entry), wb_slice(&byte, 1));
}

/* Tells stage 2 if the page has another content than before. */
static int tell_content(struct wb_merge_pages *s)
{
    const struct wb_webdb_page *page = &s->fold.page;
    bool same = s->had_content && page->has_content && memcmp(s->old_md5, page->md5, WB_MD5_BYTES) == 0;
    int err = 0;

    check_stage(s);
    WB_CHECK(s->fold.exists);
    if (s->had_content && !same)
        err = add_content_edit(s, s->old_md5, WB_CONTENT_REMOVE);
    if (err == 0 && page->has_content && !same)
        err = add_content_edit(s, page->md5, WB_CONTENT_ADD);
    return err;
}

/* Whether the row must be encoded again. */
static bool is_touched(const struct wb_merge_pages *s)
{
    return s->fold.touched || !s->old.key.ptr;
}

/* Fills in the fields on which the next due time depends. */
static void prepare_due(struct wb_merge_pages *s)
{
    struct wb_webdb_page *page = &s->fold.page;
    const struct wb_table_record *old = &s->old;

    check_stage(s);
    WB_CHECK(s->fold.exists);
    WB_CHECK(is_touched(s));
    page->inlinks = old_degree(s, old);
    /* Near duplicates are found after all rows are written, so this is what the last edition found. */
    page->near = old->key.ptr && old->number < s->near.count &&
                 wb_get32(wb_column_at(&s->near, old->number)) != WB_NO_NUMBER;
    if (!(page->flags & WB_PAGE_SCORED))
        page->score = log2(2 + (double)page->inlinks);
    if (page->last_tried_ms == 0)
        page->next_due_ms = 0; /* never fetched: as soon as possible */
}

static int apply_edit(struct wb_merge_pages *s, struct wb_slice surt, const struct wb_table_record *record)
{
    int64_t time_ms = (int64_t)wb_get64_be(record->key.ptr + record->key.len - 8);
    int err = wb_pageedit_decode(surt, time_ms, record->value, &s->edit_mem, &s->edit);

    check_stage(s);
    WB_CHECK(record->key.len == surt.len + WB_PAGEEDIT_SUFFIX);
    if (err < 0)
        return err;
    int applied = wb_pagefold_apply(&s->fold, &s->edit);
    if (applied < 0 || s->edit.id == WB_PAGEEDIT_NO_ID)
        return applied < 0 ? applied : 0;
    if (s->edit.id >= s->writer->id_numbers.count)
        return wb_fail(WB_E_CORRUPT, "%s: an edit came out of the sorter with another id", s->writer->root);
    /* If a page is not added because it is there already, a link that depends on the addition finds no number here. */
    wb_numbermap_set(&s->writer->id_numbers, s->edit.id, WB_NO_NUMBER);
    return s->edit.kind != WB_PAGEEDIT_ADD_ABSENT || applied ? wb_vec_push(&s->ids, s->edit.id) : 0;
}

static int apply_edits(struct wb_merge_pages *s, struct wb_slice surt, const struct wb_table_record *first)
{
    struct wb_table_record record;
    int got;

    check_stage(s);
    WB_CHECK(first->key.len >= WB_PAGEEDIT_SUFFIX);
    wb_vec_clear(&s->ids);
    got = apply_edit(s, surt, first);
    while (got == 0 && (got = wb_merge_edit(s->merge, &record)) > 0)
        got = apply_edit(s, surt, &record);
    return got;
}

static void count_change(struct wb_merge_pages *s, bool was_page)
{
    struct wb_webdb_merge *stat = &s->writer->stat;
    bool is_page = s->fold.exists && !(s->fold.page.flags & WB_PAGE_TARGET);

    check_stage(s);
    stat->pages_added += is_page && !was_page;
    stat->pages_deleted += was_page && !is_page;
    stat->pages_changed += is_page && was_page && s->fold.touched;
}

/* Writes the current page as the edits have left it. */
static int write_edited(struct wb_merge_pages *s)
{
    struct wb_slice row = s->old.value;
    int err = 0;

    check_stage(s);
    WB_CHECK(s->fold.exists);
    WB_CHECK(wb_slice_equal(s->fold.page.surt, s->key));
    if (is_touched(s)) {
        wb_buf_clear(&s->row);
        err = wb_pagerow_encode(&s->fold.page, &s->row);
        row = wb_buf_slice(&s->row);
    }
    if (err == 0)
        err = tell_content(s);
    unsigned kind = wb_edition_kind(&s->fold.page);
    if (err == 0)
        err = count_page(s, &s->fold.page);
    if (err == 0)
        err = tell_id(s, s->key, s->old_kind, kind);
    return err < 0 ? err : write_row(s, s->key, row, kind);
}

/* Records the new number of the current page. */
static void number_page(struct wb_merge_pages *s)
{
    uint32_t number = s->fold.exists ? (uint32_t)s->number : WB_NO_NUMBER;

    check_stage(s);
    for (size_t i = 0; i < s->ids.count; i++)
        wb_numbermap_set(&s->writer->id_numbers, s->ids.items[i], number);
    if (s->old.key.ptr)
        wb_numbermap_set(&s->writer->page_numbers, s->old.number, number);
}

/*
 * Applies the edits of the current page. Returns 1 if the caller must set its next due time first; 0 if it is written.
 */
static int edit_page(struct wb_merge_pages *s, const struct wb_table_record *first)
{
    int err = wb_pagefold_begin(&s->fold, s->key, s->old.value);

    check_stage(s);
    WB_CHECK(!s->asking);
    WB_CHECK(s->key.len > 0);
    if (err < 0)
        return err;
    s->old_kind = s->old.key.ptr ? wb_edition_kind(&s->fold.page) : WB_IS_TARGET;
    bool was_page = s->old_kind & WB_IS_PAGE;
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

/* ---- the stage ------------------------------------------------------------------------------- */

static int open_stage(struct wb_merge_pages *s)
{
    struct wb_webdb_writer *writer = s->writer;
    struct wb_sorter_stat edits;
    int err = wb_writer_open_old_table(writer, WB_PAGES_FILE, WB_PAGES_KIND, &s->old_pages, &s->pages_cursor);

    WB_CHECK(wb_writer_is(s->writer, WB_WRITER_MERGING));
    WB_CHECK(writer->page_edits != NULL);
    WB_CHECK(writer->content_edits == NULL);
    if (err == 0)
        err = wb_writer_open_old_table(writer, WB_SITES_FILE, WB_SITES_KIND, &s->old_sites, &s->sites_cursor);
    if (err == 0)
        err = wb_writer_open_old_column(writer, WB_DEGREES_FILE, WB_DEGREES_KIND, sizeof(uint32_t), &s->degrees);
    if (err == 0)
        err = wb_writer_open_old_column(writer, WB_NEAR_FILE, WB_NEAR_KIND, sizeof(uint32_t), &s->near);
    if (err == 0)
        err = wb_merge_near_open(writer);
    if (err == 0)
        err = wb_writer_create_table(writer, WB_PAGES_FILE, WB_PAGES_KIND, PAGES_BLOCK, &s->pages);
    if (err == 0)
        err = wb_writer_create_table(writer, WB_SITES_FILE, WB_SITES_KIND, SITES_BLOCK, &s->sites);
    if (err == 0)
        err = wb_writer_create_column(writer, WB_KINDS_FILE, WB_KINDS_KIND, 1, &s->kinds);
    if (err == 0)
        err = wb_writer_open_sorter(writer, 1, &writer->id_edits);
    if (err == 0)
        err = wb_numbermap_open(writer->root, writer->next_id, &writer->id_numbers);
    if (err == 0)
        err = wb_numbermap_open(writer->root, writer->old.rows, &writer->page_numbers);
    if (err == 0)
        err = wb_writer_open_sorter(writer, 1, &writer->content_edits);
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
    struct wb_merge_pages *s = writer->page_stage;

    WB_CHECK(!s || s->writer == writer);
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
    wb_column_abandon(s->kinds);
    wb_pagefold_release(&s->fold);
    wb_buf_release(&s->edit_mem);
    wb_buf_release(&s->row_mem);
    wb_buf_release(&s->row);
    wb_buf_release(&s->site);
    wb_buf_release(&s->key_mem);
    wb_vec_release(&s->ids);
    wb_free(s);
    writer->page_stage = NULL;
}

int wb_merge_pages_open(struct wb_webdb_writer *writer)
{
    struct wb_merge_pages *s = wb_alloc_zero(1, sizeof *s);

    WB_CHECK(wb_writer_is(writer, WB_WRITER_MERGING));
    WB_CHECK(!writer->page_stage);
    WB_CHECK(!writer->pages_merged);
    WB_CHECK(writer->group.len == 0); /* all links are in the sorter */
    if (!s)
        return WB_E_NOMEM;
    s->writer = writer;
    s->degrees = s->near = WB_COLUMN_INIT;
    writer->page_stage = s;
    return open_stage(s);
}

enum { NO_MORE_PAGES = 2 };

/*
 * Takes the next URL of either side. Returns 1 if the caller must set its next due time; 0 if it is done; NO_MORE_PAGES
 * at the end.
 */
static int take_page(struct wb_merge_pages *s)
{
    struct wb_table_record edit;
    int got = wb_merge_next(s->merge, &s->key, &s->old);

    check_stage(s);
    WB_CHECK(!s->asking);
    WB_CHECK(s->merge != NULL);
    if (got <= 0)
        return got < 0 ? got : NO_MORE_PAGES;
    if (s->old.key.ptr && s->old.number >= s->writer->old.rows)
        return wb_fail(WB_E_CORRUPT, "%s: there are more rows of pages than the manifest says", s->writer->root);
    got = wb_merge_edit(s->merge, &edit);
    if (got < 0)
        return got;
    return got ? edit_page(s, &edit) : keep_page(s, &s->old);
}

static int finish_pages(struct wb_merge_pages *s)
{
    struct wb_webdb_writer *writer = s->writer;
    struct wb_table_writer *pages = s->pages, *sites = s->sites;
    struct wb_column_writer *kinds = s->kinds;
    int err = end_site(s);

    check_stage(s);
    WB_CHECK(!s->asking);
    WB_CHECK(writer->next.count.pages <= s->number);
    if (err == 0) {
        s->pages = NULL;
        err = wb_table_finish(pages, NULL);
    }
    if (err == 0) {
        s->sites = NULL;
        err = wb_table_finish(sites, NULL);
    }
    if (err == 0) {
        s->kinds = NULL;
        err = wb_column_finish(kinds, NULL);
    }
    writer->next.rows = s->number;
    wb_merge_pages_close(writer);
    wb_sorter_close(writer->page_edits);
    writer->page_edits = NULL;
    return err;
}

int wb_merge_pages_next(struct wb_webdb_writer *writer, struct wb_webdb_page **page_out,
                        const struct wb_webdb_site **site_out)
{
    struct wb_merge_pages *s = writer->page_stage;
    int got;

    *page_out = NULL;
    *site_out = NULL;
    WB_CHECK(s != NULL);
    WB_CHECK(s->writer == writer);
    check_stage(s);
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
