/*
 * test_dispenser_faults.c - the database is damaged, newer, full, locked, gone or read-only: each call then fails
 * with an error that names the database, never crashes, and afterwards everything is as before.
 */
#include "dispenser_support.h"
#include "dispenser/dispenser_rows.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/path.h"

#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <limits.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_format(void **state)
{
    struct place *p = *state;
    change(p, "UPDATE webbase_meta SET value = 2 WHERE name = 'version'");
    assert_int_equal(try_open(p), WB_E_NEWER);
    assert_true(message_has(p->postgres ? "PostgreSQL" : p->dir));
    assert_true(message_has(" has format 2; this program reads format 1"));
    change(p, "UPDATE webbase_meta SET value = 0 WHERE name = 'version'");
    assert_int_equal(try_open(p), WB_E_CORRUPT);
    change(p, "DELETE FROM webbase_meta");
    assert_int_equal(try_open(p), WB_E_CORRUPT);
    change(p, "INSERT INTO webbase_meta (name, value) VALUES ('version', 1)");
    assert_int_equal(try_open(p), 0);
    int64_t run;
    assert_int_equal(begin_run(p->d, &run), WB_E_CORRUPT);
}

/* Rows that no call of ours writes. */
static void test_foreign_rows(void **state)
{
    struct place *p = *state;
    static const char *const changes[] = {
        "UPDATE webbase_site SET state = 99", "UPDATE webbase_site SET back_state = 0",
        "UPDATE webbase_site SET rank = 99999999999",
        "UPDATE webbase_site SET state = 3", "UPDATE webbase_site SET owner = 'x'",
        "UPDATE webbase_site SET attempts = -99999999999",
    };
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_site_row row;

    add_site(p, "a.org", "10.0.0.1", 0);
    for (size_t i = 0; i < COUNT(changes); i++) {
        change(p, changes[i]);
        assert_int_equal(wb_dispenser_get(p->d, WB_SLICE_LIT("a.org"), &mem, &row), WB_E_CORRUPT);
        change(p, "UPDATE webbase_site SET state = 2, back_state = 1, rank = 0, owner = '', attempts = 0");
        must_ok(wb_dispenser_get(p->d, WB_SLICE_LIT("a.org"), &mem, &row));
    }
    change(p, "DROP TABLE webbase_lost");
    assert_int_equal(renew_until(p->d, WB_SLICE_LIT("me"), 0), WB_E_CORRUPT);
    assert_true(message_has("webbase_lost"));
    must_ok(wb_dispenser_get(p->d, WB_SLICE_LIT("a.org"), &mem, &row));
    wb_buf_release(&mem);
}

static void test_url(void **state)
{
    static const char *const urls[] = {
        "postgres://user:sekret@/base?host=/nonexistent", "postgres://user:sekret@127.0.0.1:1/base",
        "postgres://user:sek%zzsekret@host/base",
        "postgres://user:sekret@[::1/base", "postgres://user:sekret@host/base?sekret=1",
        "postgresql://user:sekret@/base?host=/nonexistent&password=sekret",
    };
    (void)state;

    for (size_t i = 0; i < COUNT(urls); i++) {
        struct wb_dispenser *d = NULL;
        int err = wb_dispenser_open("/nonexistent", urls[i], &d);
        assert_true(err == WB_E_IO || err == WB_E_INVALID);
        assert_null(d);
        if (message_has("sekret"))
            fail_msg("the password is in: %s", wb_error_message());
        assert_true(err == WB_E_INVALID || message_has("/nonexistent") || message_has("127.0.0.1:1"));
    }
    struct wb_dispenser *d = NULL;
    assert_int_equal(wb_dispenser_open("/nonexistent", "mysql://user:sekret@host/", &d), WB_E_INVALID);
    assert_false(message_has("sekret"));
    assert_int_equal(wb_dispenser_open("/nonexistent", NULL, &d), WB_E_IO);
    assert_true(message_has("/nonexistent/dispenser.db"));
}

/* ---- memory ------------------------------------------------------------------------------------------------ */

static void test_memory(void **state)
{
    struct place *p = *state;
    bool struck = true;
    unsigned step = p->postgres ? 7 : 1;

    add_site(p, "a.org", "10.0.0.1", 0);
    for (uint64_t nth = 1; struck; nth += step) {
        struct wb_dispenser *d = NULL;
        wb_fault_arm(WB_FAULT_ALLOC, nth, ENOMEM);
        int err = wb_dispenser_open(p->dir, p->postgres ? p->url : NULL, &d);
        if (err == 0)
            err = use_everything(d);
        struck = wb_fault_struck();
        wb_fault_disarm();
        assert_int_equal(err, struck ? WB_E_NOMEM : 0);
        if (d)
            must_ok(use_everything(d));
        wb_dispenser_close(d);
    }
    check_tables(p);
}

/* ---- again ------------------------------------------------------------------------------------------------- */

/* A driver in front of the real one: its nth statement is not run, or its nth commit succeeds but reports a failure. */
static struct {
    const struct wb_sql_driver *real;
    struct wb_sql_driver driver;
    unsigned statements, commits; /* until it strikes; 0: never */
} shaky;

static int shaky_run(struct wb_sql *sql, unsigned statement, const struct wb_sql_value *values, unsigned count)
{
    if (shaky.statements && --shaky.statements == 0)
        return wb_fail(WB_SQL_AGAIN, "deadlock");
    return shaky.real->run(sql, statement, values, count);
}

static int always_again(struct wb_sql *sql, unsigned statement, const struct wb_sql_value *values, unsigned count)
{
    (void)sql, (void)statement, (void)values, (void)count;
    return wb_fail(WB_SQL_AGAIN, "deadlock");
}

static int shaky_commit(struct wb_sql *sql)
{
    int err = shaky.real->commit(sql);

    if (err == 0 && shaky.commits && --shaky.commits == 0)
        return wb_fail(WB_SQL_AGAIN, "connection lost");
    return err;
}

static void make_shaky(struct wb_dispenser *d, unsigned statements, unsigned commits)
{
    shaky.real = d->sql->driver;
    shaky.driver = *shaky.real;
    shaky.driver.run = shaky_run;
    shaky.driver.commit = shaky_commit;
    shaky.statements = statements;
    shaky.commits = commits;
    d->sql->driver = &shaky.driver;
}

static void test_again(void **state)
{
    struct place *p = *state;
    add_site(p, "a.org", "10.0.0.1", 0);
    for (unsigned nth = 1, left = 0; left == 0; nth += p->postgres ? 5 : 1) {
        make_shaky(p->d, nth, 0);
        must_ok(use_everything(p->d));
        p->d->sql->driver = shaky.real;
        left = shaky.statements;
    }
    for (unsigned nth = 1, left = 0; left == 0; nth++) {
        make_shaky(p->d, 0, nth);
        must_ok(use_everything(p->d));
        p->d->sql->driver = shaky.real;
        left = shaky.commits;
    }
    check_tables(p);
}

/* Sites claimed in a commit whose answer was lost are reported all the same: otherwise nobody would ever get them. */
static void test_commit_unknown(void **state)
{
    struct place *p = *state;
    struct told told, more;
    struct wb_dispenser_stat stat;
    char name[32], address[32];

    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "s%d.org", i);
        snprintf(address, sizeof address, "10.0.0.%d", i % 7);
        add_site(p, name, address, i % 3);
    }
    make_shaky(p->d, 0, 1);
    assert_int_equal(claim(p->d, p->run, "me", 0, LEASE, 8, &told), 8);
    p->d->sql->driver = shaky.real;
    assert_int_equal(shaky.commits, 0);
    must_ok(wb_dispenser_stat(p->d, p->run, &stat));
    assert_int_equal(stat.claimed, 8);
    assert_int_equal(claim(p->d, p->run, "me", 0, LEASE, 20, &more), 12);
    for (unsigned i = 0; i < 8 * 12; i++)
        assert_true(told.ids[i % 8] != more.ids[i / 8]);
    check_tables(p);
}

static void test_never_again(void **state)
{
    struct place *p = *state;
    int64_t run;

    make_shaky(p->d, 0, 0);
    shaky.driver.run = always_again;
    assert_int_equal(begin_run(p->d, &run), WB_E_BUSY);
    assert_true(message_has("deadlock"));
    p->d->sql->driver = shaky.real;
    must_ok(begin_run(p->d, &run));
    assert_int_equal(run, 2);
}

/* ---- locks and connections ------------------------------------------------------------------------------------- */

static int hold_lock(void *context)
{
    struct place *p = context;
    struct wb_sql *sql = NULL;
    char path[128], ready[160];

    path_of(p, path);
    struct wb_sql_options options = {.take_turns = true};
    must_ok(p->postgres ? wb_sql_open_postgres(p->url, &options, &sql) : wb_sql_open_sqlite(path, &options, &sql));
    must_ok(wb_sql_begin(sql, true));
    snprintf(ready, sizeof ready, "%s/locked", p->dir);
    must(close(open(ready, O_CREAT | O_WRONLY, 0666)) == 0);
    usleep(150000);
    must(unlink(ready) == 0);
    must_ok(wb_sql_commit(sql));
    return 0;
}

/* Writers wait for each other; readers do not. */
static void test_locked(void **state)
{
    struct place *p = *state;
    char ready[160];
    struct wb_dispenser_stat stat;
    int64_t run;

    snprintf(ready, sizeof ready, "%s/locked", p->dir);
    pid_t child = start_child(hold_lock, p);
    while (access(ready, F_OK) != 0)
        usleep(1000);
    must_ok(wb_dispenser_stat(p->d, 0, &stat));
    assert_int_equal(access(ready, F_OK), 0);
    must_ok(begin_run(p->d, &run));
    assert_int_not_equal(access(ready, F_OK), 0);
    assert_int_equal(end_child(child), 0);
}

static void cut_connections(const struct place *p)
{
    PGconn *conn = PQconnectdb(p->url);
    assert_int_equal(PQstatus(conn), CONNECTION_OK);
    PQclear(PQexec(conn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                         "WHERE pid <> pg_backend_pid() AND application_name = 'webbase'"));
    PQfinish(conn);
}

static void test_lost_connection(void **state)
{
    struct place *p = *state;
    struct told told;

    add_site(p, "a.org", "10.0.0.1", 0);
    add_site(p, "b.org", "10.0.0.2", 0);
    cut_connections(p);
    assert_int_equal(claim(p->d, p->run, "me", 0, LEASE, 1, &told), 1);
    cut_connections(p);
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_CLAIMED);
    cut_connections(p);
    must_ok(report_one(p->d, "me", report_of(told.ids[0], WB_SITE_DONE)));
    cut_connections(p);
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_DONE);
    check_tables(p);
}

/* This must be the last test: it ends the server. */
static void test_server_gone(void **state)
{
    struct place *p = *state;
    struct wb_dispenser_stat stat;
    int64_t run;

    must_ok(wb_dispenser_stat(p->d, 0, &stat));
    end_server(NULL);
    wb_sql_reopen_tries = 2;
    assert_int_equal(begin_run(p->d, &run), WB_E_IO);
    assert_true(message_has("the PostgreSQL server at /"));
    assert_int_equal(wb_dispenser_stat(p->d, 0, &stat), WB_E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_format),          BOTH(test_foreign_rows), cmocka_unit_test(test_url),
        BOTH(test_memory),          BOTH(test_again),        BOTH(test_commit_unknown),
        SQLITE(test_never_again),   BOTH(test_locked),       POSTGRES(test_lost_connection),
        POSTGRES(test_server_gone),
    };

    return cmocka_run_group_tests_name("dispenser faults", tests, NULL, end_server);
}
