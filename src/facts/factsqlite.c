/*
 * factsqlite.c - writes facts and links to a SQLite database:
 *
 *   pages(url, id, time, ..., columns of users)     index on url, unique
 *   links(from_url, to_url, anchor)                 indexes on from_url and on to_url
 *
 * The file is new and nobody sees it before it is complete, so there is neither a rollback journal nor syncing while it
 * is written; os/newfile.c syncs it at the end. SQLite opens and writes the file itself, not through os/file.h.
 */
#include "base/error.h"
#include "base/mem.h"
#include "facts/factpen.h"

#include <errno.h>
#include <sqlite3.h>

struct wb_factsqlite {
    sqlite3 *db;
    sqlite3_stmt *page, *link;
    const char *path; /* the caller's */
};

static int fail(const struct wb_factsqlite *s, int rc)
{
    int reason = s->db ? sqlite3_system_errno(s->db) : 0;

    if ((rc & 0xff) == SQLITE_NOMEM)
        return wb_fail_nomem();
    if ((rc & 0xff) == SQLITE_FULL)
        return wb_fail(WB_E_IO, "cannot write %s: no space left on the disk", s->path);
    /* SQLite itself only says "disk I/O error" or "unable to open database file". */
    if (reason && ((rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_CANTOPEN)) {
        errno = reason;
        return wb_fail_errno("cannot write %s", s->path);
    }
    return wb_fail(WB_E_IO, "cannot write %s: %s", s->path, s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc));
}

static int run_text(struct wb_factsqlite *s, const char *text)
{
    int rc = sqlite3_exec(s->db, text, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : fail(s, rc);
}

/* ---- tables -------------------------------------------------------------------------------------- */

/*
 * Appends the name of a column in quotes. SQLite does not distinguish upper and lower case in names, but columns of
 * users may differ in nothing else: the second one gets a number.
 */
static int put_name(struct wb_buf *sql, const struct wb_factcolumn *columns, size_t at)
{
    unsigned same = 1;

    for (size_t i = 0; i < at; i++)
        same += sqlite3_stricmp(columns[i].name, columns[at].name) == 0;
    return same == 1 ? wb_buf_printf(sql, "\"%s\"", columns[at].name)
                     : wb_buf_printf(sql, "\"%s:%u\"", columns[at].name, same);
}

static int make_pages(struct wb_factsqlite *s, const struct wb_factcolumn *columns, size_t count)
{
    static const char *const types[] = {[WB_FACTCELL_NONE] = "",
                                        [WB_FACTCELL_TEXT] = " TEXT",
                                        [WB_FACTCELL_WHOLE] = " INTEGER",
                                        [WB_FACTCELL_NUMBER] = " REAL",
                                        [WB_FACTCELL_TIME] = " TEXT"};
    struct wb_buf sql = WB_BUF_INIT;
    int err = wb_buf_append_str(&sql, "CREATE TABLE pages (");

    for (size_t i = 0; err == 0 && i < count; i++) {
        if (i)
            err = wb_buf_append_str(&sql, ", ");
        if (err == 0)
            err = put_name(&sql, columns, i);
        if (err == 0)
            err = wb_buf_printf(&sql, "%s%s", types[columns[i].kind], columns[i].always ? " NOT NULL" : "");
    }
    if (err == 0)
        err = wb_buf_append_str(&sql, ")");
    if (err == 0)
        err = wb_buf_terminate(&sql);
    if (err == 0)
        err = run_text(s, sql.ptr);
    wb_buf_release(&sql);
    return err;
}

static int prepare(struct wb_factsqlite *s, size_t columns)
{
    struct wb_buf sql = WB_BUF_INIT;
    int err = wb_buf_append_str(&sql, "INSERT INTO pages VALUES (");

    for (size_t i = 0; err == 0 && i < columns; i++)
        err = wb_buf_append_str(&sql, i ? ", ?" : "?");
    if (err == 0)
        err = wb_buf_append_str(&sql, ")");
    if (err == 0)
        err = wb_buf_terminate(&sql);
    int rc = err == 0 ? sqlite3_prepare_v2(s->db, sql.ptr, -1, &s->page, NULL) : SQLITE_OK;
    if (err == 0 && rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(s->db, "INSERT INTO links VALUES (?, ?, ?)", -1, &s->link, NULL);
    wb_buf_release(&sql);
    return err < 0 ? err : rc == SQLITE_OK ? 0 : fail(s, rc);
}

int wb_factsqlite_open(const char *path, const struct wb_factcolumn *columns, size_t column_count,
                       struct wb_factsqlite **sqlite_out)
{
    struct wb_factsqlite *s = wb_alloc_zero(1, sizeof *s);

    *sqlite_out = NULL;
    if (!s)
        return WB_E_NOMEM;
    s->path = path;
    int rc = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE, NULL);
    int err = rc == SQLITE_OK ? 0 : fail(s, rc);
    if (err == 0)
        err = run_text(s, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
                          "PRAGMA encoding = 'UTF-8'; BEGIN");
    if (err == 0)
        err = make_pages(s, columns, column_count);
    if (err == 0)
        err = run_text(s, "CREATE TABLE links (from_url TEXT NOT NULL, to_url TEXT NOT NULL, anchor TEXT NOT NULL)");
    if (err == 0)
        err = prepare(s, column_count);
    if (err < 0)
        wb_factsqlite_close(s);
    else
        *sqlite_out = s;
    return err;
}

void wb_factsqlite_close(struct wb_factsqlite *sqlite)
{
    if (!sqlite)
        return;
    sqlite3_finalize(sqlite->page);
    sqlite3_finalize(sqlite->link);
    sqlite3_close(sqlite->db);
    wb_free(sqlite);
}

/* ---- rows ---------------------------------------------------------------------------------------- */

/* The text must stay where it is until the statement was run. */
static int bind_text(sqlite3_stmt *statement, int at, struct wb_slice text)
{
    return sqlite3_bind_text64(statement, at, text.ptr ? text.ptr : "", text.len, SQLITE_STATIC, SQLITE_UTF8);
}

static int insert(struct wb_factsqlite *s, sqlite3_stmt *statement, int rc)
{
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    int err = rc == SQLITE_DONE ? 0 : fail(s, rc);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return err;
}

int wb_factsqlite_row(struct wb_factsqlite *sqlite, const struct wb_factcell *cells, size_t count)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; rc == SQLITE_OK && i < count; i++) {
        int at = (int)i + 1;
        switch (cells[i].kind) {
        case WB_FACTCELL_TEXT:
        case WB_FACTCELL_TIME:
            rc = bind_text(sqlite->page, at, cells[i].text);
            break;
        case WB_FACTCELL_WHOLE:
            rc = sqlite3_bind_int64(sqlite->page, at, (sqlite3_int64)cells[i].whole);
            break;
        case WB_FACTCELL_NUMBER:
            rc = sqlite3_bind_double(sqlite->page, at, cells[i].number);
            break;
        case WB_FACTCELL_NONE:
            rc = sqlite3_bind_null(sqlite->page, at);
            break;
        }
    }
    return insert(sqlite, sqlite->page, rc);
}

int wb_factsqlite_link(struct wb_factsqlite *sqlite, struct wb_slice from, struct wb_slice to, struct wb_slice anchor)
{
    int rc = bind_text(sqlite->link, 1, from);

    if (rc == SQLITE_OK)
        rc = bind_text(sqlite->link, 2, to);
    if (rc == SQLITE_OK)
        rc = bind_text(sqlite->link, 3, anchor);
    return insert(sqlite, sqlite->link, rc);
}

/* Indexes are made when all rows are there, because sorting once is faster. */
int wb_factsqlite_finish(struct wb_factsqlite *sqlite)
{
    return run_text(sqlite, "CREATE UNIQUE INDEX pages_url ON pages (url);"
                            "CREATE INDEX links_from ON links (from_url);"
                            "CREATE INDEX links_to ON links (to_url);"
                            "COMMIT");
}
