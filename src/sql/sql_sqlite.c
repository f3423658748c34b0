/*
 * sql_sqlite.c - implements sql.h over a SQLite file.
 *
 * The file is in write-ahead-log mode, so readers never wait. With synchronous=NORMAL a commit costs no fsync:
 * committed transactions survive kill -9, while a power failure may undo the last ones (never half of one). That is
 * enough for a dispenser, because the journal of the crawl tells what was lost; `durable` asks for more. A writer that
 * finds the file locked waits for up to patience_ms.
 *
 * SQLite opens, writes and maps its files itself, not through os/file.h.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/path.h"
#include "sql/sql_checked.h"
#include "sql/sql_driver.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

enum {
    OPEN_TRIES = 200, /* to switch on the write-ahead log: there SQLite does not wait by itself */
    PAUSE_MS_MAX = 12,
    BOOT_ID_MAX = 128,
    CACHE_KB = 16 << 10,
    WAL_BYTES_MAX = 64 << 20, /* size to which the log is cut after it was copied back */
};

/* "WBdc" in the head of the file marks a database whose pages have checksums. */
#define CHECKED_ID 0x57426463
#define SET_CHECKED_ID "PRAGMA application_id = 1463968867"
_Static_assert(CHECKED_ID == 1463968867, "both are the same number");

struct sqlite {
    struct wb_sql base;
    sqlite3 *db;
    sqlite3_stmt **statements; /* NULL: not prepared yet */
    int64_t waiting_since_ns;
};

static int on_busy(void *context, int count)
{
    struct sqlite *s = context;
    int64_t now_ns = wb_clock_mono_ns();

    if (count == 0)
        s->waiting_since_ns = now_ns;
    if (now_ns - s->waiting_since_ns > s->base.options.patience_ms * (int64_t)1000000)
        return 0;
    wb_sql_pause(PAUSE_MS_MAX);
    return 1;
}

/* The system's errno behind an SQLITE_IOERR or SQLITE_CANTOPEN; 0 if it is not known. */
static int system_reason(const struct sqlite *s, int rc, int last_errno)
{
    if ((rc & 0xff) != SQLITE_IOERR && (rc & 0xff) != SQLITE_CANTOPEN)
        return 0;
    int number = s->db ? sqlite3_system_errno(s->db) : 0;
    if (number)
        return number;
    /* A failed COMMIT leaves it in errno only. It is not left from an earlier failure: these errors end the program. */
    bool limit = last_errno == ENOSPC || last_errno == EDQUOT || last_errno == EFBIG || last_errno == EMFILE ||
                 last_errno == ENFILE;
    return limit ? last_errno : 0;
}

/* The only place where SQLite's codes become ours. */
static int fail(const struct sqlite *s, int rc)
{
    uint64_t bad = 0;
    int number = system_reason(s, rc, errno);
    const char *words = s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc);

    if (rc == SQLITE_IOERR_DATA && s->db) {
        wb_sql_checked_state(s->db, &bad);
        return wb_fail(WB_E_CORRUPT, "%s is damaged: the page at %llu does not match its checksum", s->base.where,
                       (unsigned long long)bad);
    }
    /* SQLite itself only says "disk I/O error" or "unable to open database file". */
    if (number) {
        errno = number;
        return wb_fail_errno("cannot %s %s", (rc & 0xff) == SQLITE_IOERR ? "read or write" : "open", s->base.where);
    }
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return wb_fail(WB_SQL_AGAIN, "%s is locked by another process", s->base.where);
    case SQLITE_NOMEM:
        return wb_fail_nomem();
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return wb_fail(WB_E_CORRUPT, "%s is damaged: %s", s->base.where, words);
    case SQLITE_FULL:
        return wb_fail(WB_E_IO, "cannot write %s: no space left on the disk", s->base.where);
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return wb_fail(WB_E_IO, "cannot write %s: %s", s->base.where, words);
    case SQLITE_CANTOPEN:
        return wb_fail(WB_E_IO, "cannot open %s: %s", s->base.where, words);
    case SQLITE_TOOBIG:
        return wb_fail(WB_E_LIMIT, "%s: %s", s->base.where, words);
    case SQLITE_ERROR:
        /* Our statements are right, so the tables are not as we made them. */
        return wb_fail(WB_E_CORRUPT, "%s does not contain what it should: %s", s->base.where, words);
    default:
        return wb_fail(WB_E_IO, "%s: %s", s->base.where, words);
    }
}

static int exec_text(struct wb_sql *sql, const char *text)
{
    struct sqlite *s = (struct sqlite *)sql;
    int rc = sqlite3_exec(s->db, text, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : fail(s, rc);
}

static int has_table(struct wb_sql *sql, const char *name)
{
    struct sqlite *s = (struct sqlite *)sql;
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(s->db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1", -1, &statement,
                                NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    int result = rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : fail(s, rc);
    sqlite3_finalize(statement);
    return result;
}

/* ---- time ------------------------------------------------------------------------------------------- */

static int read_clock(struct wb_sql *sql, int64_t *now_ms_out)
{
    *now_ms_out = sql->test_clock ? sql->test_clock() : wb_clock_mono_ns() / 1000000;
    return 0;
}

int64_t wb_sql_test_server;

/* Functions for statements. A file is always the same server. */
static void give_server(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count, (void)values;
    sqlite3_result_int64(context, wb_sql_test_server);
}

static void give_clock(sqlite3_context *context, int count, sqlite3_value **values)
{
    int64_t now_ms = 0;

    (void)count, (void)values;
    read_clock(sqlite3_user_data(context), &now_ms);
    sqlite3_result_int64(context, now_ms);
}

/*
 * Identifies the current start of the machine. If the kernel does not say, it counts as always the same, and leases
 * last until they expire or are released.
 */
static int clock_epoch(int64_t *epoch_out)
{
    struct wb_buf text = WB_BUF_INIT;
    int err = wb_path_read("/proc/sys/kernel/random/boot_id", BOOT_ID_MAX, &text);

    *epoch_out = err == 0 && text.len ? (int64_t)(wb_hash64(text.ptr, text.len) | 1) : 1;
    wb_buf_release(&text);
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* ---- statements ---------------------------------------------------------------------------------- */

static int prepare_statement(struct sqlite *s, unsigned n)
{
    int rc;

    if (s->statements[n])
        return 0;
    rc = sqlite3_prepare_v3(s->db, s->base.options.texts[n], -1, SQLITE_PREPARE_PERSISTENT, &s->statements[n], NULL);
    return rc == SQLITE_OK ? 0 : fail(s, rc);
}

static int step_statement(struct sqlite *s, unsigned n)
{
    int rc = sqlite3_step(s->statements[n]);

    if (rc == SQLITE_ROW)
        return 1;
    int err = rc == SQLITE_DONE ? 0 : fail(s, rc);
    sqlite3_reset(s->statements[n]);
    return err;
}

static int run_statement(struct wb_sql *sql, unsigned n, const struct wb_sql_value *values, unsigned count)
{
    struct sqlite *s = (struct sqlite *)sql;
    int rc = SQLITE_OK, err = prepare_statement(s, n);

    if (err < 0)
        return err;
    sqlite3_stmt *statement = s->statements[n];
    sqlite3_reset(statement);
    WB_CHECK(sqlite3_bind_parameter_count(statement) == (int)count);
    for (unsigned i = 0; i < count && rc == SQLITE_OK; i++) {
        const struct wb_sql_value *v = &values[i];
        /* Later steps read the text too, when the caller's copy may no longer exist. */
        if (v->is_text)
            rc = sqlite3_bind_text64(statement, (int)i + 1, v->text.len ? v->text.ptr : "", v->text.len,
                                     SQLITE_TRANSIENT, SQLITE_UTF8);
        else
            rc = sqlite3_bind_int64(statement, (int)i + 1, v->number);
    }
    return rc == SQLITE_OK ? step_statement(s, n) : fail(s, rc);
}

static int next_row(struct wb_sql *sql, unsigned n)
{
    return step_statement((struct sqlite *)sql, n);
}

static int64_t column_number(const struct wb_sql *sql, unsigned n, unsigned column)
{
    return sqlite3_column_int64(((const struct sqlite *)sql)->statements[n], (int)column);
}

static struct wb_slice column_text(const struct wb_sql *sql, unsigned n, unsigned column)
{
    sqlite3_stmt *statement = ((const struct sqlite *)sql)->statements[n];
    const char *text = (const char *)sqlite3_column_text(statement, (int)column);

    return text ? wb_slice(text, (size_t)sqlite3_column_bytes(statement, (int)column)) : WB_SLICE_EMPTY;
}

static void end_statement(struct wb_sql *sql, unsigned n)
{
    sqlite3_reset(((struct sqlite *)sql)->statements[n]);
}

/* ---- transactions ---------------------------------------------------------------------------------- */

/* A transaction of one statement is one like all others: it costs no round trips. */
static int begin_transaction(struct wb_sql *sql, enum wb_sql_kind kind)
{
    return exec_text(sql, kind == WB_SQL_READ ? "BEGIN" : "BEGIN IMMEDIATE");
}

static int commit_transaction(struct wb_sql *sql)
{
    return exec_text(sql, "COMMIT");
}

static void rollback_transaction(struct wb_sql *sql)
{
    struct sqlite *s = (struct sqlite *)sql;

    for (unsigned i = 0; i < s->base.options.count; i++)
        sqlite3_reset(s->statements[i]);
    if (!sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

/* ---- opening ----------------------------------------------------------------------------------------- */

static void close_sqlite(struct wb_sql *sql)
{
    struct sqlite *s = (struct sqlite *)sql;

    for (unsigned i = 0; s->statements && i < s->base.options.count; i++)
        sqlite3_finalize(s->statements[i]);
    sqlite3_close(s->db);
    wb_free(s->statements);
}

static const struct wb_sql_driver driver = {
    .id_type = "INTEGER PRIMARY KEY",
    .close = close_sqlite,
    .has_table = has_table,
    .clock = read_clock,
    .clock_epoch = clock_epoch,
    .exec = exec_text,
    .begin = begin_transaction,
    .commit = commit_transaction,
    .rollback = rollback_transaction,
    .run = run_statement,
    .next = next_row,
    .number = column_number,
    .text = column_text,
    .end = end_statement,
};

/* ---- checksums ------------------------------------------------------------------------------------- */

static int read_pragma(struct sqlite *s, const char *text, int64_t *value_out)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(s->db, text, -1, &statement, NULL);

    *value_out = 0;
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        *value_out = sqlite3_column_int64(statement, 0);
    int err = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : fail(s, rc);
    sqlite3_finalize(statement);
    return err;
}

static int refuse_foreign(const struct sqlite *s)
{
    return wb_fail(WB_E_CORRUPT, "%s is not a database of webbase, or its head is damaged", s->base.where);
}

/*
 * Makes sure that the pages have checksums: a new file has them from the start. The id in the head says that there must
 * be checksums. So a flipped bit in the byte that says how many bytes of a page SQLite leaves to us is recognised as
 * damage, too.
 */
static int want_checksums(struct sqlite *s)
{
    int reserved = WB_SQL_CHECKED_BYTES;
    int64_t pages = 0, id = 0;
    uint64_t bad;

    int rc = sqlite3_file_control(s->db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
    if (rc != SQLITE_OK)
        return fail(s, rc);
    int err = read_pragma(s, "PRAGMA page_count", &pages);
    if (err == 0)
        err = read_pragma(s, "PRAGMA application_id", &id);
    if (err < 0)
        return err;
    if (pages == 0)
        return exec_text(&s->base, SET_CHECKED_ID);
    if (id != CHECKED_ID)
        return refuse_foreign(s);
    if (!wb_sql_checked_state(s->db, &bad))
        return wb_fail(WB_E_CORRUPT, "%s is damaged: its head says that its pages have no checksums", s->base.where);
    return 0;
}

/* Two processes that do this to a new file at the same time get in each other's way, and SQLite does not wait here. */
static int set_up(struct sqlite *s)
{
    int err = WB_SQL_AGAIN;

    for (int i = 0; err == WB_SQL_AGAIN && i < OPEN_TRIES; i++) {
        if (i)
            wb_sql_pause(PAUSE_MS_MAX);
        err = want_checksums(s);
        if (err == 0)
            err = exec_text(&s->base, s->base.options.durable
                                          ? "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"
                                          : "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    }
    if (err < 0)
        return err == WB_SQL_AGAIN ? WB_E_BUSY : err;
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    char text[160];
    snprintf(text, sizeof text, "PRAGMA cell_size_check = ON; PRAGMA cache_size = -%d; PRAGMA journal_size_limit = %d",
             CACHE_KB, WAL_BYTES_MAX);
    return exec_text(&s->base, text);
}

static int open_file(struct sqlite *s, const char *path)
{
    int create = s->base.options.existing ? 0 : SQLITE_OPEN_CREATE;
    int rc = wb_sql_checked_register();

    if (!create && wb_path_kind(path) == WB_PATH_NONE)
        return wb_fail(WB_E_NOTFOUND, "there is no database %s", path);
    if (rc == SQLITE_OK)
        rc = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | create | SQLITE_OPEN_NOMUTEX, WB_SQL_CHECKED_VFS);
    if (rc != SQLITE_OK)
        return fail(s, rc);
    sqlite3_extended_result_codes(s->db, 1);
    sqlite3_busy_handler(s->db, on_busy, s);
    rc = sqlite3_create_function(s->db, "webbase_now_ms", 0, SQLITE_UTF8, s, give_clock, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(s->db, "webbase_server", 0, SQLITE_UTF8, s, give_server, NULL, NULL);
    return rc == SQLITE_OK ? set_up(s) : fail(s, rc);
}

int wb_sql_open_sqlite(const char *path, const struct wb_sql_options *options, struct wb_sql **sql_out)
{
    struct sqlite *s = NULL;
    int err = WB_E_NOMEM;

    *sql_out = NULL;
    s = wb_alloc_zero(1, sizeof *s);
    if (!s)
        return WB_E_NOMEM;
    wb_sql_init(&s->base, &driver, options);
    s->statements = wb_alloc_zero(options->count, sizeof *s->statements);
    s->base.where = wb_strdup(path);
    if (s->statements && s->base.where)
        err = open_file(s, path);
    if (err == 0)
        *sql_out = &s->base;
    else
        wb_sql_close(&s->base);
    return err;
}

/* ---- checking ------------------------------------------------------------------------------------------ */

/* Opens the file for checking only; also in a directory in which nothing can be written. */
static int open_to_check(struct sqlite *s, const char *path)
{
    struct wb_buf uri = WB_BUF_INIT;
    int rc = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, WB_SQL_CHECKED_VFS);
    int64_t pages;

    sqlite3_extended_result_codes(s->db, 1);
    sqlite3_busy_handler(s->db, on_busy, s);
    int err = rc == SQLITE_OK ? read_pragma(s, "PRAGMA page_count", &pages) : fail(s, rc);
    if (err != WB_E_IO)
        return err;
    /* Opening it as immutable ignores its log. If there is one, keep the first error instead. */
    if (wb_buf_printf(&uri, "%s-wal", path) < 0 || wb_buf_terminate(&uri) < 0 || wb_path_kind(uri.ptr) != WB_PATH_NONE)
        goto done;
    wb_buf_clear(&uri);
    if (wb_buf_append_str(&uri, "file:") < 0)
        goto done;
    for (const char *c = path; *c; c++)
        if (wb_buf_printf(&uri, *c == '%' || *c == '?' || *c == '#' ? "%%%02x" : "%c", (unsigned char)*c) < 0)
            goto done;
    if (wb_buf_append_str(&uri, "?immutable=1") < 0 || wb_buf_terminate(&uri) < 0)
        goto done;
    sqlite3_close(s->db);
    rc = sqlite3_open_v2(uri.ptr, &s->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
                         WB_SQL_CHECKED_VFS);
    sqlite3_extended_result_codes(s->db, 1);
    err = rc == SQLITE_OK ? read_pragma(s, "PRAGMA page_count", &pages) : fail(s, rc);
done:
    wb_buf_release(&uri);
    return err;
}

static int check_database(struct sqlite *s, wb_sql_found found, void *context)
{
    sqlite3_stmt *statement = NULL;
    uint64_t bad;
    int64_t id = 0, pages = 0;
    int rc, err = read_pragma(s, "PRAGMA application_id", &id);

    if (err == 0)
        err = read_pragma(s, "PRAGMA page_count", &pages);
    if (err < 0 || pages == 0) /* without a page, nobody has begun it */
        return err;
    if (!wb_sql_checked_state(s->db, &bad) && id == CHECKED_ID)
        found(context, true, 0, "the head says that the pages have no checksums");
    else if (id != CHECKED_ID)
        found(context, true, 0, "not a database of webbase, or its head is damaged");
    rc = sqlite3_prepare_v2(s->db, "PRAGMA integrity_check", -1, &statement, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(statement);
        const char *words = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
        if (words && strcmp(words, "ok") != 0)
            found(context, true, 0, words);
    }
    err = rc == SQLITE_DONE ? 0 : fail(s, rc);
    sqlite3_finalize(statement);
    return err;
}

int wb_sql_check_sqlite(const char *path, wb_sql_found found, void *context)
{
    struct sqlite s = {0};
    uint64_t bad = 0;

    wb_sql_init(&s.base, &driver, &(struct wb_sql_options){.count = 0});
    s.base.where = wb_strdup(path);
    if (!s.base.where)
        return WB_E_NOMEM;
    int rc = wb_sql_checked_register();
    int err = rc == SQLITE_OK ? open_to_check(&s, path) : fail(&s, rc);
    if (err == 0)
        err = check_database(&s, found, context);
    if (err == WB_E_CORRUPT) {
        wb_sql_checked_state(s.db, &bad);
        found(context, true, bad, wb_error_message());
        err = 0;
    }
    sqlite3_close(s.db);
    wb_free(s.base.where);
    return err == WB_SQL_AGAIN ? WB_E_BUSY : err;
}
