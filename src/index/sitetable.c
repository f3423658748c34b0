/* sitetable.c - writes the table of sites, and finds the docids of hosts and domains in it. */
#include "index/sitetable.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "url/url.h"

enum { ROW_BYTES = 16 };

int wb_sitetable_add(struct wb_sitetable *table, struct wb_slice surt, bool page, uint32_t *site_out)
{
    struct wb_slice name = wb_surt_site(surt), copy;
    size_t count = table->sites.count;

    if (count == 0 || !wb_slice_equal(name, table->sites.items[count - 1].surt)) {
        int err = wb_arena_copy(&table->texts, name, &copy);
        if (err == 0)
            err = wb_vec_push(&table->sites, (struct wb_sitetable_site){.surt = copy});
        if (err < 0)
            return err;
    }
    struct wb_sitetable_site *site = &table->sites.items[table->sites.count - 1];
    site->pages += page;
    site->others += !page;
    *site_out = (uint32_t)table->sites.count - 1;
    return 0;
}

int wb_sitetable_write(const struct wb_sitetable *table, const char *path, uint32_t pages)
{
    struct wb_table_options options = {.kind = WB_SITES_TABLE_KIND};
    struct wb_table_writer *writer = NULL;
    uint32_t page = 0, other = pages;
    int err = wb_table_create(path, &options, &writer);

    for (size_t i = 0; err == 0 && i < table->sites.count; i++) {
        const struct wb_sitetable_site *site = &table->sites.items[i];
        WB_CHECK(site->pages <= pages - page && site->others < WB_DOCID_NONE - other);
        char row[ROW_BYTES];
        wb_put32(row, page);
        wb_put32(row + 4, page += site->pages);
        wb_put32(row + 8, other);
        wb_put32(row + 12, other += site->others);
        err = wb_table_add(writer, site->surt, wb_slice(row, sizeof row));
    }
    if (err < 0) {
        wb_table_abandon(writer);
        return err;
    }
    WB_CHECK(page == pages); /* or others of one site would have the docids of pages of the next */
    return wb_table_finish(writer, NULL);
}

void wb_sitetable_release(struct wb_sitetable *table)
{
    wb_arena_release(&table->texts);
    wb_vec_release(&table->sites);
}

/* ---- finding ----------------------------------------------------------------------------------- */

/* "www.Example.org" -> "org,example,www"; a port stays at the end, and an address as it is. Empty if it is not a host.
 */
static int reverse_labels(struct wb_slice host, struct wb_buf *out)
{
    struct wb_buf key = WB_BUF_INIT;
    int err;

    if (host.len && host.ptr[host.len - 1] == '.')
        host.len--;
    err = wb_buf_append_slice(&key, host);
    for (size_t i = 0; err == 0 && i < key.len; i++)
        if (key.ptr[i] >= 'A' && key.ptr[i] <= 'Z')
            key.ptr[i] = (char)(key.ptr[i] - 'A' + 'a');
    if (err == 0)
        err = wb_buf_append_char(&key, '/');
    wb_buf_clear(out);
    if (err == 0 && !memchr(host.ptr ? host.ptr : "", '/', host.len))
        err = wb_surt_of_key(wb_buf_slice(&key), out);
    bool whole = out->len > 2 && out->ptr[out->len - 2] == ')';
    out->len = err == 0 && whole ? out->len - 2 : 0;
    wb_buf_release(&key);
    return err;
}

/* A table of sites that is being searched. */
struct site_search {
    struct wb_cursor *cursor;
    const struct wb_docmap *docmap;
    const char *path;
    int (*each)(void *context, struct wb_index_range range);
    void *context;
};

static int damaged_row(const struct site_search *search)
{
    return wb_fail(WB_E_CORRUPT, "%s/" WB_SITES_TABLE_FILE ": a row is damaged", search->path);
}

static int read_row(const struct site_search *search, struct wb_slice value, struct wb_sitetable_row *row_out)
{
    const struct wb_docmap *docmap = search->docmap;

    if (value.len == ROW_BYTES)
        *row_out = (struct wb_sitetable_row){{wb_get32(value.ptr), wb_get32(value.ptr + 4)},
                                             {wb_get32(value.ptr + 8), wb_get32(value.ptr + 12)}};
    if (value.len != ROW_BYTES || row_out->pages.first > row_out->pages.end || row_out->pages.end > docmap->pages ||
        row_out->others.first > row_out->others.end || row_out->others.first < docmap->pages ||
        row_out->others.end > docmap->urls)
        return damaged_row(search);
    return 0;
}

/* Whether a site is the host, or one of its subdomains: what follows the labels is ")", ":" or ",". */
static bool belongs(struct wb_slice key, struct wb_slice labels)
{
    bool port = memchr(labels.ptr, ':', labels.len) != NULL && labels.ptr[labels.len - 1] != ']';
    char next = key.len > labels.len ? key.ptr[labels.len] : 0;

    return wb_slice_starts(key, labels) && (next == ')' || (!port && (next == ',' || next == ':')));
}

static int each_part(const struct site_search *search, struct wb_slice labels, bool pages)
{
    struct wb_sitetable_row row = {.pages.first = 0};
    struct wb_table_record record;
    uint32_t behind = 0; /* the range before */
    int more, err = wb_cursor_seek(search->cursor, labels);

    while (err == 0 && (more = wb_cursor_next(search->cursor, &record)) != 0) {
        if (more < 0)
            return more;
        if (!wb_slice_starts(record.key, labels))
            break;
        err = read_row(search, record.value, &row);
        struct wb_index_range range = pages ? row.pages : row.others;
        if (err == 0 && range.first < behind)
            err = damaged_row(search);
        behind = range.end;
        if (err == 0 && range.first < range.end && belongs(record.key, labels))
            err = search->each(search->context, range);
    }
    return err;
}

int wb_sitetable_each(struct wb_cursor *cursor, const struct wb_docmap *docmap, const char *path, struct wb_slice host,
                      int (*each)(void *context, struct wb_index_range range), void *context)
{
    struct site_search search = {cursor, docmap, path, each, context};
    struct wb_buf labels = WB_BUF_INIT;
    int err = reverse_labels(host, &labels);

    if (err == 0 && labels.len)
        err = each_part(&search, wb_buf_slice(&labels), true);
    if (err == 0 && labels.len)
        err = each_part(&search, wb_buf_slice(&labels), false);
    wb_buf_release(&labels);
    return err;
}

int wb_index_sites(struct wb_index *index, struct wb_slice host,
                   int (*each)(void *context, struct wb_index_range range), void *context)
{
    WB_CHECK(index->magic == WB_INDEX_MAGIC);
    return wb_sitetable_each(index->site_cursor, &index->docmap, index->path, host, each, context);
}
