/*
 * peer_sqlite.c - SQLite as a page store: a table of blobs that are compressed with zstd.
 *
 * journal_mode=WAL, synchronous=FULL (a commit is durable), a cache of 64 MB, the
 * whole file mapped for reading, page size 4096 (the default). A row holds the
 * key (unique), the number of bytes before compression, and head + body as one zstd frame
 * of level 3. There is one transaction per batch.
 */
#include "bench.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"

#include <sqlite3.h>
#include <zstd.h>

struct lite_state {
    sqlite3 *db;
    sqlite3_stmt *insert, *select;
    ZSTD_CCtx *packer;
    ZSTD_DCtx *unpacker;
    struct wb_buf raw, packed;
    char *path;
};

static int lite_fail(struct lite_state *s)
{
    return wb_fail(WB_E_IO, "%s: %s", s->path, s->db ? sqlite3_errmsg(s->db) : "out of memory");
}

static void lite_close(void *state)
{
    struct lite_state *s = state;

    if (!s)
        return;
    sqlite3_finalize(s->insert);
    sqlite3_finalize(s->select);
    sqlite3_close(s->db);
    ZSTD_freeCCtx(s->packer);
    ZSTD_freeDCtx(s->unpacker);
    wb_buf_release(&s->raw);
    wb_buf_release(&s->packed);
    wb_free(s->path);
    wb_free(s);
}

static int lite_prepare(struct lite_state *s, bool create)
{
    const char *setup = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-65536;"
                        "PRAGMA mmap_size=34359738368;";
    const char *table = "CREATE TABLE pages(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, raw INTEGER, value BLOB)";
    const char *insert = "INSERT INTO pages(key, raw, value) VALUES(?1, ?2, ?3)"
                         " ON CONFLICT(key) DO UPDATE SET raw = ?2, value = ?3";

    if (sqlite3_open(s->path, &s->db) != SQLITE_OK || sqlite3_exec(s->db, setup, NULL, NULL, NULL) != SQLITE_OK ||
        (create && sqlite3_exec(s->db, table, NULL, NULL, NULL) != SQLITE_OK) ||
        sqlite3_prepare_v2(s->db, insert, -1, &s->insert, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(s->db, "SELECT raw, value FROM pages WHERE key = ?1", -1, &s->select, NULL) != SQLITE_OK)
        return lite_fail(s);
    s->packer = ZSTD_createCCtx();
    s->unpacker = ZSTD_createDCtx();
    if (!s->packer || !s->unpacker)
        return wb_fail_nomem();
    ZSTD_CCtx_setParameter(s->packer, ZSTD_c_compressionLevel, 3);
    return 0;
}

static int open_path(const char *path, bool create, struct lite_state **state_out)
{
    struct lite_state *s = wb_alloc_zero(1, sizeof(*s));
    int err = s ? 0 : WB_E_NOMEM;

    *state_out = NULL;
    if (err == 0) {
        s->path = wb_strdup(path);
        err = s->path ? lite_prepare(s, create) : WB_E_NOMEM;
    }
    if (err < 0) {
        lite_close(s);
        return err;
    }
    *state_out = s;
    return 0;
}

static int lite_open(const char *dir, bool create, void **state_out)
{
    struct lite_state *s = NULL;
    struct wb_buf path = WB_BUF_INIT;
    int err = wb_buf_printf(&path, "%s/pages.sqlite", dir);

    if (err == 0)
        err = wb_buf_terminate(&path);
    if (err == 0)
        err = open_path(path.ptr, create, &s);
    wb_buf_release(&path);
    *state_out = s;
    return err;
}

/* Packs the length of the head (4 bytes), head and body as one zstd frame into s->packed. */
static int pack_page(struct lite_state *s, const struct wb_page *page)
{
    size_t raw = 4 + page->head.len + page->body.len, got;

    s->raw.len = s->packed.len = 0;
    if (wb_buf_reserve(&s->raw, raw) < 0 || wb_buf_reserve(&s->packed, ZSTD_compressBound(raw)) < 0)
        return WB_E_NOMEM;
    wb_put32(s->raw.ptr, (uint32_t)page->head.len);
    s->raw.len = 4;
    wb_buf_append_slice(&s->raw, page->head);
    wb_buf_append_slice(&s->raw, page->body);
    got = ZSTD_compress2(s->packer, s->packed.ptr, s->packed.cap, s->raw.ptr, s->raw.len);
    if (ZSTD_isError(got))
        return wb_fail(WB_E_NOMEM, "zstd: %s", ZSTD_getErrorName(got));
    s->packed.len = got;
    return 0;
}

static int add_row(struct lite_state *s, const struct wb_page *page)
{
    int err = pack_page(s, page), rc;

    if (err < 0)
        return err;
    sqlite3_bind_text(s->insert, 1, page->key.ptr, (int)page->key.len, SQLITE_STATIC);
    sqlite3_bind_int64(s->insert, 2, (sqlite3_int64)s->raw.len);
    sqlite3_bind_blob64(s->insert, 3, s->packed.ptr, s->packed.len, SQLITE_STATIC);
    rc = sqlite3_step(s->insert);
    sqlite3_reset(s->insert);
    return rc == SQLITE_DONE ? 0 : lite_fail(s);
}

static int lite_add(void *state, const struct wb_page *pages, size_t count)
{
    struct lite_state *s = state;
    int err = sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK ? 0 : lite_fail(s);

    for (size_t i = 0; i < count && err == 0; i++)
        err = add_row(s, &pages[i]);
    if (err == 0 && sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        err = lite_fail(s);
    return err;
}

static int lite_finish(void *state)
{
    struct lite_state *s = state;

    return sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) == SQLITE_OK ? 0
                                                                                                       : lite_fail(s);
}

/* Unpacks the columns `raw` and `value` of a row; `first` is the number of the first one. */
static int read_row(struct lite_state *s, sqlite3_stmt *row, int first, struct wb_slice key, struct scan_sum *sum)
{
    size_t raw = (size_t)sqlite3_column_int64(row, first), got;
    const void *packed = sqlite3_column_blob(row, first + 1);
    size_t packed_bytes = (size_t)sqlite3_column_bytes(row, first + 1), head;

    s->raw.len = 0;
    if (wb_buf_reserve(&s->raw, raw) < 0)
        return WB_E_NOMEM;
    got = ZSTD_decompressDCtx(s->unpacker, s->raw.ptr, s->raw.cap, packed, packed_bytes);
    if (got != raw || raw < 4)
        return wb_fail(WB_E_CORRUPT, "%s: a row does not unpack", s->path);
    head = wb_get32(s->raw.ptr);
    sum->pages++;
    sum->bytes += raw - 4;
    if (sum->check)
        sum->mix += page_mix(key, wb_slice(s->raw.ptr + 4, head), wb_slice(s->raw.ptr + 4 + head, raw - 4 - head));
    return 0;
}

static int lite_get(void *state, struct wb_slice key, struct scan_sum *sum)
{
    struct lite_state *s = state;
    int err;

    sqlite3_bind_text(s->select, 1, key.ptr, (int)key.len, SQLITE_STATIC);
    if (sqlite3_step(s->select) == SQLITE_ROW)
        err = read_row(s, s->select, 0, key, sum);
    else
        err = wb_fail(WB_E_NOTFOUND, "%.*s: not found", WB_SLICE_ARG(key));
    sqlite3_reset(s->select);
    return err;
}

static sqlite3_int64 row_count(struct lite_state *s)
{
    sqlite3_stmt *max = NULL;
    sqlite3_int64 rows = 0;

    if (sqlite3_prepare_v2(s->db, "SELECT max(id) FROM pages", -1, &max, NULL) == SQLITE_OK &&
        sqlite3_step(max) == SQLITE_ROW)
        rows = sqlite3_column_int64(max, 0);
    sqlite3_finalize(max);
    return rows;
}

static int lite_scan(void *state, unsigned part, unsigned parts, const struct wb_slice *split, struct scan_sum *sum)
{
    struct lite_state *own = NULL; /* each thread needs its own connection */
    sqlite3_stmt *rows = NULL;
    int err = open_path(((struct lite_state *)state)->path, false, &own);
    sqlite3_int64 count = err == 0 ? row_count(own) : 0;

    (void)split;
    if (err < 0)
        return err;
    if (sqlite3_prepare_v2(own->db, "SELECT key, raw, value FROM pages WHERE id > ?1 AND id <= ?2", -1, &rows, NULL) !=
        SQLITE_OK)
        err = lite_fail(own);
    sqlite3_bind_int64(rows, 1, count * part / parts);
    sqlite3_bind_int64(rows, 2, count * (part + 1) / parts);
    while (err == 0 && sqlite3_step(rows) == SQLITE_ROW) {
        struct wb_slice key =
            wb_slice((const char *)sqlite3_column_text(rows, 0), (size_t)sqlite3_column_bytes(rows, 0));

        err = read_row(own, rows, 1, key, sum);
    }
    sqlite3_finalize(rows);
    lite_close(own);
    return err;
}

const struct peer peer_sqlite = {
    .name = "sqlite",
    .settings = "WAL, synchronous=FULL, zstd level 3 blobs, cache 64 MB, file mapped",
    .open = lite_open,
    .add = lite_add,
    .finish = lite_finish,
    .get = lite_get,
    .scan = lite_scan,
    .close = lite_close,
};
