/*
 * webdb_pages.c - walks over pages: all of them, those of a site, those with a content, all of them by content; and
 * over all URLs by number.
 *
 * A walk by URL reads the table of pages in order. A walk by MD5 reads the contents in order, and each entry names a
 * row anywhere in the table. So the rows of a few thousand entries are fetched at once, in the order of the table,
 * which decompresses each block only once. Then the pages are returned in the order of the entries. Memory is bounded
 * by GATHER_BYTES and one row.
 */
#include "base/bytes.h"
#include "webdb/spelling.h"
#include "webdb/webdb_read.h"

#include <stdlib.h>

enum {
    GATHER_ENTRIES = 4096,
    GATHER_BYTES = 4 << 20, /* bytes of rows per batch; the row that exceeds this is the last one of its batch */
};

_Static_assert(WB_TABLE_KEY_MAX <= UINT32_MAX, "the size of a key has 32 bits");
_Static_assert(WB_TABLE_VALUE_MAX <= UINT32_MAX, "so has the size of a value");

/* An entry of the batch and its row. */
struct gathered_row {
    uint64_t page;
    uint32_t turn;           /* position of the entry within the batch */
    uint32_t key_len, value_len;
    size_t at;               /* where the row is in wb_webdb_pages.rows */
};

enum { PAGES_MAGIC = 0x57425750 }; /* "WBWP" */

struct wb_webdb_pages {
    uint32_t magic;
    struct wb_webdb *webdb;
    struct wb_cursor *cursor;
    struct wb_buf prefix;      /* the walk ends at the first page whose SURT does not start with it */
    struct wb_buf mem;
    bool targets;              /* mere targets of links are returned too */
    bool by_content;           /* the rest is used by walks by content only */
    uint64_t entry, entry_end; /* the next entry to fetch, and where to stop */
    struct gathered_row *batch;
    size_t batch_most;         /* entries to fetch at once: fewer if rows are large */
    size_t batch_count, batch_at; /* entries that can be returned; how many have been */
    struct wb_buf rows;
};

static void check_walk(const struct wb_webdb_pages *pages)
{
    WB_CHECK(pages->magic == PAGES_MAGIC);
    WB_CHECK(pages->webdb->magic == WB_WEBDB_MAGIC);
    WB_CHECK(pages->batch_at <= pages->batch_count);
    WB_CHECK(pages->entry <= pages->entry_end);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_walk(struct wb_webdb *webdb, struct wb_webdb_pages **pages_out)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    struct wb_webdb_pages *pages = wb_alloc_zero(1, sizeof *pages);

    *pages_out = NULL;
    if (!pages)
        return WB_E_NOMEM;
    pages->magic = PAGES_MAGIC;
    pages->webdb = webdb;
    int err = wb_cursor_open(webdb->pages, &pages->cursor);
    if (err < 0) {
        wb_webdb_pages_close(pages);
        return err;
    }
    *pages_out = pages;
    return 0;
}

void wb_webdb_pages_close(struct wb_webdb_pages *pages)
{
    if (!pages)
        return;
    WB_CHECK(pages->magic == PAGES_MAGIC);
    WB_CHECK(pages->webdb->magic == WB_WEBDB_MAGIC);
    pages->magic = 0;
    wb_cursor_close(pages->cursor);
    wb_buf_release(&pages->prefix);
    wb_buf_release(&pages->mem);
    wb_buf_release(&pages->rows);
    wb_free(pages->batch);
    wb_free(pages);
}

int wb_webdb_pages(struct wb_webdb *webdb, struct wb_webdb_pages **pages_out)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    return open_walk(webdb, pages_out);
}

int wb_webdb_urls(struct wb_webdb *webdb, uint64_t from, struct wb_webdb_pages **pages_out)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    struct wb_table_record record;
    int err = open_walk(webdb, pages_out);

    if (err < 0)
        return err;
    (*pages_out)->targets = true;
    if (from > webdb->manifest.rows)
        from = webdb->manifest.rows;
    if (from > 0) /* the cursor is then just after the row before */
        err = wb_cursor_get_number((*pages_out)->cursor, from - 1, &record);
    if (err < 0) {
        wb_webdb_pages_close(*pages_out);
        *pages_out = NULL;
    }
    return err;
}

int wb_webdb_pages_of_site(struct wb_webdb *webdb, struct wb_slice site, struct wb_webdb_pages **pages_out)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    int err = open_walk(webdb, pages_out);

    if (err < 0)
        return err;
    err = wb_spelling_site_surt(site, &(*pages_out)->prefix);
    if (err == 0)
        err = wb_cursor_seek((*pages_out)->cursor, wb_buf_slice(&(*pages_out)->prefix));
    if (err < 0) {
        wb_webdb_pages_close(*pages_out);
        *pages_out = NULL;
    }
    return err;
}

/* Opens a walk over the entries [entry, entry_end) of the contents. */
static int open_by_content(struct wb_webdb *webdb, uint64_t entry, uint64_t entry_end,
                           struct wb_webdb_pages **pages_out)
{
    WB_CHECK(entry <= entry_end);
    WB_CHECK(entry_end <= webdb->contents.count);
    int err = open_walk(webdb, pages_out);

    if (err < 0)
        return err;
    struct wb_webdb_pages *pages = *pages_out;
    uint64_t most = entry_end - entry < GATHER_ENTRIES ? entry_end - entry : GATHER_ENTRIES;
    pages->by_content = true;
    pages->entry = entry;
    pages->entry_end = entry_end;
    pages->batch_most = GATHER_ENTRIES;
    pages->batch = wb_alloc_zero(most + 1, sizeof *pages->batch);
    if (!pages->batch) {
        wb_webdb_pages_close(pages);
        *pages_out = NULL;
        return WB_E_NOMEM;
    }
    return 0;
}

int wb_webdb_pages_by_md5(struct wb_webdb *webdb, struct wb_webdb_pages **pages_out)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    return open_by_content(webdb, 0, webdb->contents.count, pages_out);
}

int wb_webdb_get_pages(struct wb_webdb *webdb, const uint8_t md5[WB_MD5_BYTES],
                       struct wb_webdb_pages **pages_out)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    uint64_t first, end;
    int err = wb_contents_find(&webdb->contents, md5, &first);

    WB_CHECK(err < 0 || first < webdb->contents.count);
    *pages_out = NULL;
    if (err == WB_E_NOTFOUND)
        return open_by_content(webdb, 0, 0, pages_out);
    if (err < 0)
        return err;
    for (end = first + 1; end < webdb->contents.count; end++) {
        err = wb_column_check(&webdb->contents, end, 1);
        if (err < 0)
            return err;
        if (memcmp(wb_webdb_content(webdb, end)->md5, md5, WB_MD5_BYTES) != 0)
            break;
    }
    return open_by_content(webdb, first, end, pages_out);
}

/* ---- by content ------------------------------------------------------------------------------ */

static int compare_pages(const void *a, const void *b)
{
    const struct gathered_row *x = a, *y = b;

    return x->page < y->page ? -1 : x->page > y->page;
}

static int compare_turns(const void *a, const void *b)
{
    const struct gathered_row *x = a, *y = b;

    return x->turn < y->turn ? -1 : x->turn > y->turn;
}

static int gather_row(struct wb_webdb_pages *pages, struct gathered_row *row)
{
    struct wb_table_record record;

    check_walk(pages);
    WB_CHECK(pages->cursor != NULL);
    if (row->page >= pages->webdb->manifest.rows)
        return wb_fail(WB_E_CORRUPT, "%s: a content belongs to a page that does not exist", pages->webdb->path);
    int err = wb_cursor_get_number(pages->cursor, row->page, &record);
    if (err < 0)
        return err;
    row->at = pages->rows.len;
    row->key_len = (uint32_t)record.key.len;
    row->value_len = (uint32_t)record.value.len;
    WB_CHECK(record.number == row->page);
    err = wb_buf_append_slice(&pages->rows, record.key);
    return err < 0 ? err : wb_buf_append_slice(&pages->rows, record.value);
}

/*
 * Fetches the rows of the next entries. If the rows are so large that not all fit, only the entries before the first
 * one without a row are returned. The others are fetched again, and the next batches are smaller.
 */
static int gather_batch(struct wb_webdb_pages *pages)
{
    check_walk(pages);
    WB_CHECK(pages->by_content);
    WB_CHECK(pages->entry <= pages->entry_end);
    WB_CHECK(pages->batch_at == pages->batch_count); /* the last batch has been returned */
    uint64_t left = pages->entry_end - pages->entry;
    size_t count = left < pages->batch_most ? (size_t)left : pages->batch_most, whole = count, rows = 0;

    pages->batch_count = pages->batch_at = 0;
    if (count == 0)
        return 0;
    int err = wb_column_check(&pages->webdb->contents, pages->entry, count);
    if (err < 0)
        return err;
    for (size_t i = 0; i < count; i++) {
        const struct wb_content *entry = wb_webdb_content(pages->webdb, pages->entry + i);
        pages->batch[i] = (struct gathered_row){.page = wb_get64_be(entry->page), .turn = (uint32_t)i};
    }
    wb_buf_clear(&pages->rows);
    qsort(pages->batch, count, sizeof *pages->batch, compare_pages);
    for (size_t i = 0; i < count; i++) {
        struct gathered_row *row = &pages->batch[i];
        if (pages->rows.len >= GATHER_BYTES && row->turn > 0) {
            whole = row->turn < whole ? row->turn : whole;
            continue;
        }
        err = gather_row(pages, row);
        if (err < 0)
            return err;
        rows++;
    }
    qsort(pages->batch, count, sizeof *pages->batch, compare_turns);
    if (rows < count)
        pages->batch_most = rows / 2 + 1;
    else if (pages->batch_most < GATHER_ENTRIES)
        pages->batch_most = 2 * pages->batch_most < GATHER_ENTRIES ? 2 * pages->batch_most : GATHER_ENTRIES;
    WB_CHECK(whole > 0); /* the first entry always gets its row, so the walk makes progress */
    pages->batch_count = whole;
    pages->entry += whole;
    return 0;
}

static int next_by_content(struct wb_webdb_pages *pages, struct wb_webdb_page *page_out)
{
    check_walk(pages);
    WB_CHECK(pages->by_content);
    if (pages->batch_at == pages->batch_count) {
        int err = gather_batch(pages);
        if (err < 0 || pages->batch_count == 0)
            return err;
    }
    const struct gathered_row *row = &pages->batch[pages->batch_at];
    WB_CHECK(pages->batch_at < pages->batch_count);
    WB_CHECK(row->at + row->key_len + row->value_len <= pages->rows.len);
    uint64_t entry = pages->entry - pages->batch_count + pages->batch_at;
    struct wb_table_record record = {.key = wb_slice(pages->rows.ptr + row->at, row->key_len),
                                     .value = wb_slice(pages->rows.ptr + row->at + row->key_len, row->value_len),
                                     .number = row->page};
    pages->batch_at++;
    int is_page = wb_webdb_decode_row(pages->webdb, &record, &pages->mem, page_out);
    if (is_page < 0)
        return is_page;
    const uint8_t *md5 = wb_webdb_content(pages->webdb, entry)->md5;
    if (!is_page || !page_out->has_content || memcmp(page_out->md5, md5, WB_MD5_BYTES) != 0)
        return wb_fail(WB_E_CORRUPT, "%s: %.*s has another content than the one it was found by", pages->webdb->path,
                       page_out->url.len > 160 ? 160 : (int)page_out->url.len, page_out->url.ptr);
    return 1;
}

/* ---- the walk -------------------------------------------------------------------------------- */

int wb_webdb_pages_next(struct wb_webdb_pages *pages, struct wb_webdb_page *page_out)
{
    struct wb_table_record record;
    int more;

    check_walk(pages);
    *page_out = (struct wb_webdb_page){.number = 0};
    if (pages->by_content)
        return next_by_content(pages, page_out);
    while ((more = wb_cursor_next(pages->cursor, &record)) == 1) {
        if (!wb_slice_starts(record.key, wb_buf_slice(&pages->prefix)))
            return 0;
        more = wb_webdb_decode_row(pages->webdb, &record, &pages->mem, page_out);
        if (more != 0 || pages->targets) /* a page, or an error; mere targets are skipped unless they are wanted */
            return more < 0 ? more : 1;
    }
    *page_out = (struct wb_webdb_page){.number = 0};
    return more;
}
