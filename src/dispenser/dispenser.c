/*
 * dispenser.c - opens and closes the seed dispenser, and reads the clock by which leases are measured.
 * dispenser_rows.h lists the other files.
 *
 * The dispenser stores sites and leases. It never resolves a name, contacts a site or waits for one.
 */
#include "dispenser/dispenser_rows.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"

static const char *const statements[] = {
#define STATEMENT_TEXT(name, text) [name] = text,
    WB_DISPENSER_STATEMENTS(STATEMENT_TEXT)
#undef STATEMENT_TEXT
};

/* A claim may depend on rows that it does not change: take_turns (docs/design/0008-dispenser.md). */
static const struct wb_sql_options sql_options = {
    .texts = statements, .count = WB_DISPENSER_STATEMENT_COUNT, .take_turns = true, .indexed = true};

static int open_sqlite(const char *dir, struct wb_sql **sql_out)
{
    char *path = wb_path_join(dir, "dispenser.db");
    int err = path ? wb_sql_open_sqlite(path, &sql_options, sql_out) : WB_E_NOMEM;

    wb_free(path);
    return err;
}

static int check_epoch(struct wb_dispenser *d);

static int open_url(const char *dir, const char *url, struct wb_dispenser **dispenser_out)
{
    struct wb_dispenser *d = wb_alloc_zero(1, sizeof *d);
    int err;

    if (!d)
        return WB_E_NOMEM;
    d->magic = WB_DISPENSER_MAGIC;
    d->shared = strcmp(url, WB_DISPENSER_OWN) != 0;
    if (strcmp(url, WB_DISPENSER_OWN) == 0)
        err = open_sqlite(dir, &d->sql);
    else
        err = wb_sql_open_postgres(url, &sql_options, &d->sql);
    if (err == 0)
        err = wb_dispenser_schema(d);
    if (err == 0)
        err = check_epoch(d);
    if (err == 0) {
        *dispenser_out = d;
    } else {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        wb_dispenser_close(d);
        wb_error_restore(&why);
    }
    return err;
}

int wb_dispenser_open(const char *dir, const char *url, struct wb_dispenser **dispenser_out)
{
    struct wb_buf remembered = WB_BUF_INIT;
    int err = 0;

    *dispenser_out = NULL;
    if (!url)
        err = wb_dispenser_recall_url(dir, &remembered);
    else if (strcmp(url, WB_DISPENSER_OWN) != 0 && !wb_dispenser_is_url(wb_slice_str(url)))
        err = wb_fail(WB_E_INVALID, "a dispenser's URL starts with postgres:// or postgresql://");
    if (err == 0)
        err = open_url(dir, url ? url : remembered.len ? remembered.ptr : WB_DISPENSER_OWN, dispenser_out);
    wb_buf_release(&remembered);
    return err;
}

void wb_dispenser_close(struct wb_dispenser *d)
{
    if (!d)
        return;
    WB_CHECK(d->magic == WB_DISPENSER_MAGIC);
    wb_sql_close(d->sql);
    d->magic = 0;
    wb_free(d);
}

int wb_dispenser_verify(const char *dir, wb_dispenser_found found, void *context)
{
    char *path = wb_path_join(dir, "dispenser.db");
    int err = path ? 0 : WB_E_NOMEM;

    if (err == 0 && wb_path_kind(path) == WB_PATH_FILE)
        err = wb_sql_check_sqlite(path, found, context);
    wb_free(path);
    return err;
}

/* ---- the clock of leases ------------------------------------------------------------------------- */

int64_t (*wb_dispenser_test_clock)(void);

int wb_dispenser_lease_now(struct wb_dispenser *d, int64_t *now_ms_out)
{
    *now_ms_out = 0;
    if (!wb_dispenser_test_clock)
        return wb_sql_clock(d->sql, now_ms_out);
    *now_ms_out = wb_dispenser_test_clock();
    return 0;
}

static int read_clock(struct wb_dispenser *d, void *context)
{
    return wb_dispenser_lease_now(d, context);
}

int wb_dispenser_clock(struct wb_dispenser *d, int64_t *now_ms_out)
{
    return wb_dispenser_transact(d, false, read_clock, now_ms_out);
}

/*
 * SQLite's clock starts again with the machine. Its epoch says whether the leases in the database were given by this
 * clock.
 */
struct lease_epoch {
    int64_t now;
    bool same; /* the database was last used in the same epoch */
};

static int same_epoch(struct wb_dispenser *d, void *context)
{
    struct lease_epoch *epoch = context;
    int err = WB_SQL_RUN(d->sql, S_META, wb_sql_str(WB_SLICE_LIT("clock")));

    epoch->same = err == 1 && wb_sql_number(d->sql, S_META, 0) == epoch->now;
    wb_sql_end(d->sql, S_META);
    return err < 0 ? err : 0;
}

/* The machine was restarted, and its clock with it. No process that held a lease is alive: end all leases. */
static int end_epoch(struct wb_dispenser *d, void *context)
{
    struct lease_epoch *epoch = context;
    int err = same_epoch(d, epoch);

    if (err < 0 || epoch->same)
        return err;
    err = wb_sql_run(d->sql, S_LEASES_OVER, NULL, 0);
    if (err == 0)
        err = wb_sql_run(d->sql, S_HOMES_OVER, NULL, 0);
    return err < 0 ? err : WB_SQL_RUN(d->sql, S_META_SET, wb_sql_str(WB_SLICE_LIT("clock")), wb_sql_int(epoch->now));
}

static int check_epoch(struct wb_dispenser *d)
{
    struct lease_epoch epoch;
    int err = wb_sql_clock_epoch(d->sql, &epoch.now);

    if (err < 0 || epoch.now == 0)
        return err;
    err = wb_dispenser_transact(d, false, same_epoch, &epoch);
    return err < 0 || epoch.same ? err : wb_dispenser_transact(d, true, end_epoch, &epoch);
}
