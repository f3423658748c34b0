/*
 * peer_webdb_sqlite.c - SQLite as a database of pages and links: two tables, each with an index in the other order.
 *
 *   pages(url, md5, facts)           by URL, and an index by MD5
 *   links(md5, url, kind, anchor)    by MD5 and URL, and an index by URL and MD5 that also holds the rest
 *
 * Tables without rowids; journal_mode=WAL, synchronous=NORMAL, one transaction, a checkpoint at the end (after which it
 * is durable); the cache uses the memory allowed, the file is mapped for reading. The initial database is built without
 * a journal, in order of MD5, with its indexes at the end.
 */
#include "bench_webdb.h"

#include "base/error.h"
#include "base/mem.h"

#include <sqlite3.h>
#include <stdio.h>

enum { GET_MD5, PUT_PAGE, HAS_MD5, DELETE_LINKS, PUT_LINK, GET_PAGE, LINKS_TO, LINKS_FROM, STATEMENTS };

static const char *const statements[STATEMENTS] = {
    [GET_MD5] = "SELECT md5 FROM pages WHERE url = ?1",
    [PUT_PAGE] = "INSERT OR REPLACE INTO pages(url, md5, facts) VALUES(?1, ?2, ?3)",
    [HAS_MD5] = "SELECT 1 FROM pages WHERE md5 = ?1 LIMIT 1",
    [DELETE_LINKS] = "DELETE FROM links WHERE md5 = ?1",
    [PUT_LINK] = "INSERT OR REPLACE INTO links(md5, url, kind, anchor) VALUES(?1, ?2, ?3, ?4)",
    [GET_PAGE] = "SELECT facts FROM pages WHERE url = ?1",
    [LINKS_TO] = "SELECT md5, url, kind, anchor FROM links WHERE url = ?1 LIMIT ?2",
    [LINKS_FROM] = "SELECT md5, url, kind, anchor FROM links WHERE md5 = ?1",
};

struct lite {
    sqlite3 *db;
    sqlite3_stmt *run[STATEMENTS];
    bool build;
    struct wb_buf row;
};

static int lite_fail(const struct lite *s)
{
    return wb_fail(WB_E_IO, "sqlite: %s", s->db ? sqlite3_errmsg(s->db) : "out of memory");
}

static int run_sql(const struct lite *s, const char *sql)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : lite_fail(s);
}

static void lite_close(void *state)
{
    struct lite *s = state;

    if (!s)
        return;
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(s->run[i]);
    sqlite3_close(s->db);
    wb_buf_release(&s->row);
    wb_free(s);
}

static int prepare(struct lite *s, const struct webdb_setting *setting)
{
    char pragmas[256];
    int err;

    snprintf(pragmas, sizeof pragmas,
             "PRAGMA cache_size=-%zu; PRAGMA mmap_size=34359738368; PRAGMA journal_mode=%s; PRAGMA synchronous=%s;",
             setting->memory_bytes >> 10, setting->build ? "OFF" : "WAL", setting->build ? "OFF" : "NORMAL");
    err = run_sql(s, pragmas);
    if (err == 0 && setting->build)
        err = run_sql(
            s,
            "CREATE TABLE pages(url TEXT PRIMARY KEY, md5 BLOB, facts BLOB) WITHOUT ROWID;"
            "CREATE TABLE links(md5 BLOB, url TEXT, kind INTEGER, anchor TEXT, PRIMARY KEY(md5, url)) WITHOUT ROWID;");
    for (int i = 0; err == 0 && i < STATEMENTS; i++)
        if (sqlite3_prepare_v2(s->db, statements[i], -1, &s->run[i], NULL) != SQLITE_OK)
            err = lite_fail(s);
    return err;
}

static int lite_open(const struct webdb_setting *setting, void **state_out)
{
    struct lite *s = wb_alloc_zero(1, sizeof(*s));
    struct wb_buf path = WB_BUF_INIT;
    int err = s ? wb_buf_printf(&path, "%s/web.sqlite", setting->dir) : WB_E_NOMEM;

    *state_out = NULL;
    if (err == 0)
        err = wb_buf_terminate(&path);
    if (err == 0 && sqlite3_open(path.ptr, &s->db) != SQLITE_OK)
        err = lite_fail(s);
    if (err == 0)
        err = prepare(s, setting);
    wb_buf_release(&path);
    if (err < 0) {
        lite_close(s);
        return err;
    }
    s->build = setting->build;
    *state_out = s;
    return 0;
}

static int lite_open_write(const struct webdb_setting *setting, void **state_out)
{
    int err = lite_open(setting, state_out);

    if (err == 0)
        err = run_sql(*state_out, "BEGIN");
    return err;
}

/* ---- writing ------------------------------------------------------------------------------------- */

static int step_done(const struct lite *s, int which)
{
    int rc = sqlite3_step(s->run[which]);

    sqlite3_reset(s->run[which]);
    return rc == SQLITE_DONE ? 0 : lite_fail(s);
}

static void bind_text(const struct lite *s, int which, int at, struct wb_slice text)
{
    sqlite3_bind_text(s->run[which], at, text.ptr, (int)text.len, SQLITE_STATIC);
}

static void bind_md5(const struct lite *s, int which, int at, const uint8_t *md5)
{
    sqlite3_bind_blob(s->run[which], at, md5, WB_MD5_BYTES, SQLITE_STATIC);
}

/* Finds out whether the page existed with another content, which is returned in old_out. */
static bool had_other(const struct lite *s, const struct wb_webdb_page *page, uint8_t *old_out)
{
    bool other = false;

    bind_text(s, GET_MD5, 1, page->url);
    if (sqlite3_step(s->run[GET_MD5]) == SQLITE_ROW) {
        memcpy(old_out, sqlite3_column_blob(s->run[GET_MD5], 0), WB_MD5_BYTES);
        other = memcmp(old_out, page->md5, WB_MD5_BYTES) != 0;
    }
    sqlite3_reset(s->run[GET_MD5]);
    return other;
}

static int lite_add_page(void *state, const struct wb_webdb_page *page)
{
    struct lite *s = state;
    uint8_t old[WB_MD5_BYTES];
    bool other = !s->build && had_other(s, page, old), left = false;
    int err;

    s->row.len = 0;
    err = pack_page(page, &s->row);
    if (err < 0)
        return err;
    bind_text(s, PUT_PAGE, 1, page->url);
    bind_md5(s, PUT_PAGE, 2, page->md5);
    sqlite3_bind_blob(s->run[PUT_PAGE], 3, s->row.ptr, (int)s->row.len, SQLITE_STATIC);
    err = step_done(s, PUT_PAGE);
    if (err == 0 && other) {
        bind_md5(s, HAS_MD5, 1, old);
        left = sqlite3_step(s->run[HAS_MD5]) == SQLITE_ROW;
        sqlite3_reset(s->run[HAS_MD5]);
    }
    if (err == 0 && other && !left) {
        bind_md5(s, DELETE_LINKS, 1, old);
        err = step_done(s, DELETE_LINKS);
    }
    return err;
}

static int lite_add_link(void *state, const struct wb_webdb_link *link)
{
    struct lite *s = state;

    bind_md5(s, PUT_LINK, 1, link->from_md5);
    bind_text(s, PUT_LINK, 2, link->to);
    sqlite3_bind_int(s->run[PUT_LINK], 3, link->tag << 8 | link->flags);
    bind_text(s, PUT_LINK, 4, link->anchor);
    return step_done(s, PUT_LINK);
}

static int lite_finish(void *state)
{
    struct lite *s = state;
    int err = run_sql(s, "COMMIT");

    if (err == 0 && s->build)
        err = run_sql(s, "CREATE INDEX pages_by_md5 ON pages(md5); CREATE INDEX links_by_url ON links(url, md5, kind, "
                         "anchor); ANALYZE;");
    if (err == 0 && !s->build &&
        sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) != SQLITE_OK)
        err = lite_fail(s);
    return err;
}

/* ---- reading --------------------------------------------------------------------------------------- */

static int lite_get_page(void *state, struct wb_slice url)
{
    struct lite *s = state;
    bool found;

    bind_text(s, GET_PAGE, 1, url);
    found = sqlite3_step(s->run[GET_PAGE]) == SQLITE_ROW && sqlite3_column_blob(s->run[GET_PAGE], 0);
    sqlite3_reset(s->run[GET_PAGE]);
    return found ? 0 : wb_fail(WB_E_NOTFOUND, "%.*s: not found", WB_SLICE_ARG(url));
}

static struct wb_slice column_text(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);

    return wb_slice(text ? text : "", (size_t)sqlite3_column_bytes(row, column));
}

static int walk_links(const struct lite *s, sqlite3_stmt *rows, struct webdb_sum *sum)
{
    int rc;

    while ((rc = sqlite3_step(rows)) == SQLITE_ROW) {
        struct wb_webdb_link link = {.to = column_text(rows, 1), .anchor = column_text(rows, 3)};
        int kind = sqlite3_column_int(rows, 2);

        sum->rows++;
        memcpy(link.from_md5, sqlite3_column_blob(rows, 0), WB_MD5_BYTES);
        link.tag = (uint8_t)(kind >> 8);
        link.flags = (uint8_t)kind;
        if (sum->check)
            sum->mix += link_mix(&link);
    }
    return rc == SQLITE_DONE ? 0 : lite_fail(s);
}

static int lite_links_to(void *state, struct wb_slice url, uint64_t limit, struct webdb_sum *sum)
{
    struct lite *s = state;
    int err;

    bind_text(s, LINKS_TO, 1, url);
    sqlite3_bind_int64(s->run[LINKS_TO], 2, limit > INT64_MAX ? -1 : (sqlite3_int64)limit);
    err = walk_links(s, s->run[LINKS_TO], sum);
    sqlite3_reset(s->run[LINKS_TO]);
    return err;
}

static int lite_links_from(void *state, const uint8_t md5[WB_MD5_BYTES], struct webdb_sum *sum)
{
    struct lite *s = state;
    int err;

    bind_md5(s, LINKS_FROM, 1, md5);
    err = walk_links(s, s->run[LINKS_FROM], sum);
    sqlite3_reset(s->run[LINKS_FROM]);
    return err;
}

static int lite_links(void *state, struct webdb_sum *sum)
{
    struct lite *s = state;
    sqlite3_stmt *all = NULL;
    int err = 0;

    if (sqlite3_prepare_v2(s->db, "SELECT md5, url, kind, anchor FROM links", -1, &all, NULL) != SQLITE_OK)
        return lite_fail(s);
    err = walk_links(s, all, sum);
    sqlite3_finalize(all);
    return err;
}

/* SQLite does not report the bytes of a table without an extension, so we report none. */
static int lite_sizes(void *state, uint64_t *pages_out, uint64_t *link_bytes_out)
{
    struct lite *s = state;
    sqlite3_stmt *count = NULL;

    *pages_out = *link_bytes_out = 0;
    if (sqlite3_prepare_v2(s->db, "SELECT count(*) FROM pages", -1, &count, NULL) != SQLITE_OK)
        return lite_fail(s);
    if (sqlite3_step(count) == SQLITE_ROW)
        *pages_out = (uint64_t)sqlite3_column_int64(count, 0);
    sqlite3_finalize(count);
    return 0;
}

const struct webdb_peer webdb_sqlite = {
    .name = "sqlite",
    .settings = "WAL, synchronous=NORMAL, one transaction, checkpoint at the end, file mapped",
    .by_md5 = true,
    .open = lite_open_write,
    .add_page = lite_add_page,
    .add_link = lite_add_link,
    .finish = lite_finish,
    .close = lite_close,
    .open_read = lite_open,
    .get_page = lite_get_page,
    .links_to = lite_links_to,
    .links_from = lite_links_from,
    .links = lite_links,
    .sizes = lite_sizes,
    .close_read = lite_close,
};
