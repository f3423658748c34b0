/*
 * webdb_read.c - opens an edition and gets single things out of it: a page, a site, a robots.txt, counts.
 *
 * An edition never changes, so readers need no lock to read; they lock it so that no writer removes it. Between finding
 * the newest edition and locking it, a writer may publish the next one and remove this one; then the next one is
 * opened. This file never writes.
 */
#include "webdb/webdb_read.h"
#include "base/bytes.h"
#include "os/path.h"
#include "webdb/numbermap.h"
#include "webdb/pagerow.h"
#include "webdb/rulesrow.h"
#include "webdb/sitesum.h"
#include "webdb/spelling.h"

#include <math.h>

enum { NAME_SHOWN_MAX = 400 }; /* bytes of a URL or a site in a message */

/* The part of a name that a message shows, for "%.*s". */
#define SHOWN(name) ((name).len > NAME_SHOWN_MAX ? NAME_SHOWN_MAX : (int)(name).len), (name).ptr

static void check_handle(const struct wb_webdb *webdb)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    WB_CHECK(webdb->path != NULL);
    WB_CHECK(webdb->cursor != NULL);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_table(struct wb_webdb *webdb, const char *name, const char *kind, struct wb_table **table_out)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    char *path = wb_path_join(webdb->path, name);
    int err = path ? wb_table_open(path, kind, table_out) : WB_E_NOMEM;

    WB_CHECK(err < 0 || *table_out != NULL);
    wb_free(path);
    return err;
}

static int open_column(struct wb_webdb *webdb, const char *name, const char *kind, size_t record_bytes,
                       struct wb_column *column_out)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    char *path = wb_path_join(webdb->path, name);
    int err = path ? wb_column_open(path, kind, record_bytes, column_out) : WB_E_NOMEM;

    WB_CHECK(err < 0 || column_out->record_bytes == record_bytes);
    wb_free(path);
    return err;
}

/* The numbers in one file are positions in another: refuse the edition if the sizes do not fit together. */
static int check_sizes(const struct wb_webdb *webdb)
{
    struct wb_table_stat stat;

    WB_CHECK(webdb->pages != NULL);
    WB_CHECK(webdb->rules != NULL);
    wb_table_stat(webdb->pages, &stat);
    if (stat.records > WB_NUMBERS_MAX)
        return wb_fail(WB_E_CORRUPT, "%s: it has more rows than there are numbers", webdb->path);
    if (stat.records != webdb->manifest.rows || webdb->degrees.count != stat.records ||
        webdb->contents.count > stat.records || webdb->near.count != stat.records ||
        webdb->kinds.count != stat.records || webdb->ids.count > stat.records)
        return wb_fail(WB_E_CORRUPT, "%s: its files do not belong to the same edition", webdb->path);
    return 0;
}

static int open_files(struct wb_webdb *webdb)
{
    char *path = wb_path_join(webdb->path, WB_MANIFEST_FILE);
    int err = path ? wb_manifest_read(path, &webdb->manifest) : WB_E_NOMEM;

    WB_CHECK(webdb->path != NULL);
    wb_free(path);
    if (err == 0)
        err = open_table(webdb, WB_PAGES_FILE, WB_PAGES_KIND, &webdb->pages);
    if (err == 0)
        err = open_column(webdb, WB_CONTENTS_FILE, WB_CONTENTS_KIND, sizeof(struct wb_content), &webdb->contents);
    if (err == 0)
        err = open_table(webdb, WB_OUTLINKS_FILE, WB_OUTLINKS_KIND, &webdb->outlinks);
    if (err == 0)
        err = open_table(webdb, WB_INLINKS_FILE, WB_INLINKS_KIND, &webdb->inlinks);
    if (err == 0)
        err = open_column(webdb, WB_DEGREES_FILE, WB_DEGREES_KIND, sizeof(uint32_t), &webdb->degrees);
    if (err == 0)
        err = open_table(webdb, WB_SITES_FILE, WB_SITES_KIND, &webdb->sites);
    if (err == 0)
        err = open_column(webdb, WB_NEAR_FILE, WB_NEAR_KIND, sizeof(uint32_t), &webdb->near);
    if (err == 0)
        err = open_table(webdb, WB_RULES_FILE, WB_RULES_KIND, &webdb->rules);
    if (err == 0)
        err = open_column(webdb, WB_KINDS_FILE, WB_KINDS_KIND, 1, &webdb->kinds);
    if (err == 0)
        err = open_column(webdb, WB_IDS_FILE, WB_IDS_KIND, sizeof(struct wb_stored_id), &webdb->ids);
    if (err == 0)
        err = check_sizes(webdb);
    return err < 0 ? err : wb_cursor_open(webdb->pages, &webdb->cursor);
}

/* WB_E_NOTFOUND if the directory of the edition or one of its files is missing. */
static int open_number(const char *dir, uint32_t number, struct wb_webdb **webdb_out)
{
    struct wb_webdb *webdb = wb_alloc_zero(1, sizeof *webdb);
    int err;

    WB_CHECK(dir != NULL);
    WB_CHECK(number > 0);
    *webdb_out = NULL;
    if (!webdb)
        return WB_E_NOMEM;
    webdb->magic = WB_WEBDB_MAGIC;
    webdb->url = WB_URL_INIT;
    webdb->lock = WB_FILE_INIT;
    webdb->path = wb_edition_path(dir, number);
    err = webdb->path ? wb_edition_share(dir, number, &webdb->lock) : WB_E_NOMEM;
    if (err == 0)
        err = open_files(webdb);
    if (err < 0) {
        wb_webdb_close(webdb);
        return err;
    }
    WB_CHECK(webdb->degrees.count == webdb->manifest.rows);
    WB_CHECK(webdb->contents.count <= webdb->manifest.rows);
    check_handle(webdb);
    *webdb_out = webdb;
    return 0;
}

int wb_webdb_open_edition(const char *dir, uint32_t edition, struct wb_webdb **webdb_out)
{
    WB_CHECK(dir != NULL);
    *webdb_out = NULL;
    if (edition == 0)
        return wb_fail(WB_E_INVALID, "editions are numbered from 1");
    int err = open_number(dir, edition, webdb_out);
    if (err != WB_E_NOTFOUND)
        return err;
    /* An edition goes as a whole. So if its directory is there, one of its files is missing, which is damage. */
    struct wb_error_copy why;
    wb_error_save(WB_E_CORRUPT, &why);
    char *path = wb_edition_path(dir, edition);
    if (!path)
        return WB_E_NOMEM;
    bool gone = wb_path_kind(path) == WB_PATH_NONE;
    wb_free(path);
    if (gone)
        return wb_fail(WB_E_NOTFOUND, "%s has no edition %u of the web database", dir, edition);
    return wb_error_restore(&why);
}

int wb_webdb_open(const char *dir, struct wb_webdb **webdb_out)
{
    uint32_t tried = 0, newest;

    WB_CHECK(dir != NULL);
    *webdb_out = NULL;
    for (;;) {
        struct wb_error_copy why = {.code = 0};
        if (tried)
            wb_error_save(WB_E_CORRUPT, &why);
        int err = wb_edition_newest(dir, &newest);
        if (err < 0)
            return err;
        if (newest == 0)
            return wb_fail(WB_E_NOTFOUND, "%s has no web database yet", dir);
        if (newest == tried) /* it was not replaced, so one of its files is missing */
            return wb_error_restore(&why);
        err = open_number(dir, newest, webdb_out);
        if (err != WB_E_NOTFOUND)
            return err;
        tried = newest;
    }
}

void wb_webdb_close(struct wb_webdb *webdb)
{
    if (!webdb)
        return;
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    WB_CHECK(webdb->cursor == NULL || webdb->pages != NULL);
    webdb->magic = 0;
    wb_cursor_close(webdb->cursor);
    for (size_t i = 0; i < WB_WEBDB_SPARES; i++)
        wb_cursor_close(webdb->spares[i].cursor);
    wb_table_close(webdb->pages);
    wb_table_close(webdb->outlinks);
    wb_table_close(webdb->inlinks);
    wb_table_close(webdb->sites);
    wb_table_close(webdb->rules);
    wb_column_close(&webdb->near);
    wb_column_close(&webdb->kinds);
    wb_column_close(&webdb->ids);
    wb_column_close(&webdb->contents);
    wb_column_close(&webdb->degrees);
    wb_manifest_release(&webdb->manifest);
    wb_url_release(&webdb->url);
    wb_buf_release(&webdb->key);
    wb_buf_release(&webdb->surt);
    wb_buf_release(&webdb->mem);
    wb_file_close(&webdb->lock);
    wb_free(webdb->path);
    wb_free(webdb);
}

int wb_webdb_borrow(struct wb_webdb *webdb, struct wb_table *table, struct wb_cursor **cursor_out)
{
    check_handle(webdb);
    *cursor_out = NULL;
    WB_CHECK(table != NULL);
    for (size_t i = 0; i < WB_WEBDB_SPARES; i++) {
        struct wb_webdb_spare *spare = &webdb->spares[i];
        if (spare->cursor && spare->table == table) {
            *cursor_out = spare->cursor;
            spare->cursor = NULL;
            return 0;
        }
    }
    return wb_cursor_open(table, cursor_out);
}

void wb_webdb_give_back(struct wb_webdb *webdb, struct wb_table *table, struct wb_cursor *cursor)
{
    struct wb_webdb_spare *to = NULL;

    check_handle(webdb);
    WB_CHECK(table != NULL || cursor == NULL);
    for (size_t i = 0; i < WB_WEBDB_SPARES && cursor; i++) {
        struct wb_webdb_spare *spare = &webdb->spares[i];
        if (spare->cursor && spare->table == table) { /* one spare cursor per table is enough */
            to = NULL;
            break;
        }
        if (!spare->cursor && !to)
            to = spare;
    }
    if (to)
        *to = (struct wb_webdb_spare){table, cursor};
    else
        wb_cursor_close(cursor);
}

/* ---- rows ------------------------------------------------------------------------------------ */

uint32_t wb_webdb_degree(const struct wb_webdb *webdb, uint64_t page)
{
    WB_CHECK(page < webdb->degrees.count);
    return wb_get32(wb_column_at(&webdb->degrees, page));
}

const struct wb_content *wb_webdb_content(const struct wb_webdb *webdb, uint64_t number)
{
    WB_CHECK(number < webdb->contents.count);
    return wb_column_at(&webdb->contents, number);
}

int wb_webdb_find_row(struct wb_webdb *webdb, struct wb_slice url, struct wb_table_record *record_out)
{
    check_handle(webdb);
    WB_CHECK(url.len == 0 || url.ptr != NULL);
    *record_out = (struct wb_table_record){.number = 0};
    int err = wb_spelling_surt(url, &webdb->url, &webdb->key, &webdb->surt);

    if (err == 0)
        err = wb_cursor_get(webdb->cursor, wb_buf_slice(&webdb->surt), record_out);
    if (err == WB_E_NOTFOUND)
        return wb_fail(WB_E_NOTFOUND, "%.*s is not known", SHOWN(url));
    return err;
}

int wb_webdb_decode_row(const struct wb_webdb *webdb, const struct wb_table_record *record, struct wb_buf *mem,
                        struct wb_webdb_page *page_out)
{
    const struct wb_column *near = &webdb->near;

    check_handle(webdb);
    WB_CHECK(record->number < webdb->manifest.rows);
    WB_CHECK(mem != NULL);
    int err = wb_pagerow_decode(record->key, record->value, mem, page_out);

    if (err < 0)
        return err;
    err = wb_column_check(&webdb->degrees, record->number, 1);
    if (err == 0 && record->number < near->count)
        err = wb_column_check(near, record->number, 1);
    if (err < 0)
        return err;
    page_out->number = record->number;
    page_out->inlinks = wb_webdb_degree(webdb, record->number);
    page_out->near_number = record->number < near->count ? wb_get32(wb_column_at(near, record->number)) : UINT32_MAX;
    page_out->near = page_out->near_number != UINT32_MAX;
    if (!(page_out->flags & WB_PAGE_SCORED))
        page_out->score = log2(2 + (double)page_out->inlinks);
    return !(page_out->flags & WB_PAGE_TARGET);
}

/* ---- single things --------------------------------------------------------------------------- */

int wb_webdb_get_page(struct wb_webdb *webdb, struct wb_slice url, struct wb_webdb_page *page_out)
{
    struct wb_table_record record;

    check_handle(webdb);
    *page_out = (struct wb_webdb_page){.number = 0};
    int err = wb_webdb_find_row(webdb, url, &record);
    if (err < 0)
        return err;
    int is_page = wb_webdb_decode_row(webdb, &record, &webdb->mem, page_out);
    if (is_page == 0) {
        *page_out = (struct wb_webdb_page){.number = 0};
        return wb_fail(WB_E_NOTFOUND, "%.*s is not known as a page", SHOWN(url));
    }
    return is_page < 0 ? is_page : 0;
}

int wb_webdb_page_url(struct wb_webdb *webdb, uint64_t number, struct wb_buf *url_out)
{
    struct wb_cursor *cursor = NULL;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_webdb_page page;
    struct wb_table_record record;

    check_handle(webdb);
    wb_buf_clear(url_out);
    int err = wb_webdb_borrow(webdb, webdb->pages, &cursor);
    if (err == 0)
        err = wb_cursor_get_number(cursor, number, &record);
    if (err == 0)
        err = wb_pagerow_decode(record.key, record.value, &mem, &page);
    if (err == 0)
        err = wb_buf_append_slice(url_out, page.url);
    if (err == WB_E_NOTFOUND)
        err = wb_fail(WB_E_NOTFOUND, "%s has no page number %llu", webdb->path, (unsigned long long)number);
    wb_buf_release(&mem);
    wb_webdb_give_back(webdb, webdb->pages, cursor);
    return err;
}

int wb_webdb_page_exists(struct wb_webdb *webdb, const uint8_t md5[WB_MD5_BYTES], bool *exists_out)
{
    uint64_t number;

    check_handle(webdb);
    WB_CHECK(md5 != NULL);
    int err = wb_contents_find(&webdb->contents, md5, &number);

    *exists_out = err == 0;
    WB_CHECK(!*exists_out || number < webdb->contents.count);
    return err == WB_E_NOTFOUND ? 0 : err;
}

int wb_webdb_get_site(struct wb_webdb *webdb, struct wb_slice name, struct wb_webdb_site *site_out)
{
    struct wb_cursor *cursor = NULL;
    struct wb_table_record record;

    check_handle(webdb);
    *site_out = (struct wb_webdb_site){.name = WB_SLICE_EMPTY};
    int err = wb_spelling_site_surt(name, &webdb->surt);
    if (err == 0)
        err = wb_webdb_borrow(webdb, webdb->sites, &cursor);
    if (err == 0)
        err = wb_cursor_get(cursor, wb_buf_slice(&webdb->surt), &record);
    if (err == 0)
        err = wb_sitesum_decode(record.value, site_out);
    if (err == 0)
        site_out->name = name;
    if (err == WB_E_NOTFOUND)
        err = wb_fail(WB_E_NOTFOUND, "no page of %.*s is known", SHOWN(name));
    wb_webdb_give_back(webdb, webdb->sites, cursor);
    return err;
}

int wb_webdb_get_rules(struct wb_webdb *webdb, struct wb_slice site, struct wb_webdb_rules *rules_out)
{
    struct wb_cursor *cursor = NULL;
    struct wb_table_record record;
    char key[8];

    check_handle(webdb);
    *rules_out = (struct wb_webdb_rules){0};
    wb_put64_be(key, wb_edit_site(site));
    int err = wb_webdb_borrow(webdb, webdb->rules, &cursor);
    if (err == 0)
        err = wb_cursor_get(cursor, wb_slice(key, sizeof key), &record);
    wb_buf_clear(&webdb->mem);
    if (err == 0)
        err = wb_buf_append_slice(&webdb->mem, record.value);
    if (err == 0)
        err = wb_rulesrow_decode(wb_buf_slice(&webdb->mem), rules_out);
    if (err == WB_E_NOTFOUND)
        err = wb_fail(WB_E_NOTFOUND, "no robots.txt of %.*s is known", SHOWN(site));
    wb_webdb_give_back(webdb, webdb->rules, cursor);
    return err;
}

void wb_webdb_count(const struct wb_webdb *webdb, struct wb_webdb_count *count_out)
{
    check_handle(webdb);
    *count_out = webdb->manifest.count;
    WB_CHECK(count_out->pages <= webdb->manifest.rows);
}
