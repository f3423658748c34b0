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

enum { LEASE = 1000 };

static void path_of(const struct place *p, char path_out[128])
{
    snprintf(path_out, 128, "%s/dispenser.db", p->dir);
}

static bool message_has(const char *text)
{
    return strstr(wb_error_message(), text) != NULL;
}

static int try_open(const struct place *p)
{
    struct wb_dispenser *d = NULL;
    int err = wb_dispenser_open(p->dir, p->postgres ? p->url : NULL, &d);

    assert_true((err == 0) == (d != NULL));
    wb_dispenser_close(d);
    return err;
}

static void test_version(void **state)
{
    struct place *p = *state;
    change(p, "UPDATE webbase_meta SET value = 4 WHERE name = 'version'");
    assert_int_equal(try_open(p), WB_E_NEWER);
    assert_true(message_has(p->postgres ? "PostgreSQL" : p->dir));
    change(p, "UPDATE webbase_meta SET value = 0 WHERE name = 'version'");
    assert_int_equal(try_open(p), WB_E_CORRUPT);
    change(p, "DELETE FROM webbase_meta");
    assert_int_equal(try_open(p), WB_E_CORRUPT);
    change(p, "INSERT INTO webbase_meta (name, value) VALUES ('version', 2)");
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

static int ignore_row(void *context, const struct wb_site_row *row)
{
    (void)context;
    (void)row;
    return 0;
}

static int ignore_seed(void *context, const struct wb_seed *seed)
{
    (void)context;
    (void)seed;
    return 0;
}

static int ignore_class(void *context, const struct wb_site_class *class)
{
    (void)context;
    (void)class;
    return 0;
}

/* A list with more seeds than one statement takes, one of them twice. */
static int use_lists(struct wb_dispenser *d)
{
    struct wb_seed seeds[12], known = {.url = WB_SLICE_LIT("http://k.org/")};
    struct wb_site_list list = {.name = WB_SLICE_LIT("n.org"), .scheme = WB_SLICE_LIT("http"), .seeds = seeds,
                                .seed_count = COUNT(seeds)};
    struct wb_site_plan plan = {.name = WB_SLICE_LIT("k.org"), .scheme = WB_SLICE_LIT("http"), .priority = INT_MIN,
                                .delay_ms = -2, .budget = -2, .seeds = &known, .seed_count = 1};
    struct wb_site_class class = {.name = WB_SLICE_LIT("news"), .fetches = 3, .delay_ms = -1};
    struct wb_dispenser_list_stat stat;
    char urls[COUNT(seeds)][32];
    int64_t run, newest;
    int err;

    for (size_t i = 0; i < COUNT(seeds); i++) {
        snprintf(urls[i], sizeof urls[i], "http://n.org/%zu", i % (COUNT(seeds) - 1));
        seeds[i] = (struct wb_seed){.url = wb_slice_str(urls[i])};
    }
    if ((err = wb_dispenser_set_classes(d, &class, 1)) < 0 || (err = wb_dispenser_classes(d, ignore_class, NULL)) < 0 ||
        (err = wb_dispenser_introduce(d, &plan, 1)) < 0 ||
        (err = wb_dispenser_enter_lists(d, LEASE, &list, 1, &plan.name, 1, &run, &stat)) < 0 ||
        (err = wb_dispenser_newest_list(d, &newest)) < 0)
        return err;
    must(stat.sites >= 1 && stat.urls == COUNT(seeds) && newest == run);
    return wb_dispenser_each(d, run, ignore_row, NULL);
}

/* Calls a bit of everything and returns the first error. */
static int use_everything(struct wb_dispenser *d)
{
    struct wb_seed seed = {.url = WB_SLICE_LIT("http://n.org/")};
    struct wb_site_plan plan = {.name = WB_SLICE_LIT("n.org"), .scheme = WB_SLICE_LIT("http"), .priority = 1,
                                .delay_ms = -1, .budget = -1, .seeds = &seed, .seed_count = 1, .revisit = true};
    struct wb_site_report report = report_of(1, WB_SITE_DONE);
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_site_row row;
    struct wb_dispenser_stat stat;
    struct wb_slice me = WB_SLICE_LIT("me");
    int64_t run;
    uint64_t count;
    int err;

    if ((err = begin_run(d, &run)) < 0 || (err = wb_dispenser_add(d, run, &plan, 1, &count)) < 0 ||
        (err = wb_dispenser_join_run(d, run, true, WB_SLICE_EMPTY)) < 0 ||
        (err = wb_dispenser_unresolved(d, run, 0, 9, ignore_row, NULL)) < 0 ||
        (err = wb_dispenser_get(d, WB_SLICE_LIT("n.org"), &mem, &row)) < 0 ||
        (err = wb_dispenser_resolved(d, row.id, WB_SLICE_LIT("10.0.0.1"), 9, WB_SLICE_EMPTY)) < 0 ||
        (err = claim_until(d, run, me, 0, LEASE, 9, ignore_row, NULL)) < 0 ||
        (err = borrow_until(d, WB_SLICE_LIT("b.org"), WB_SLICE_LIT("http"), me, 0, LEASE, ignore_row, NULL)) < 0 ||
        (err = renew_until(d, me, 2 * LEASE)) < 0 ||
        (err = wb_dispenser_report(d, me, &report, 1)) < 0 || (err = wb_dispenser_release(d, me)) < 0 ||
        (err = wb_dispenser_seeds(d, row.id, 0, ignore_seed, NULL)) < 0 ||
        (err = wb_dispenser_reopen(d, run, &count)) < 0 ||
        (err = wb_dispenser_neighbours(d, WB_SLICE_LIT("10.0.0.1"), ignore_row, NULL)) < 0 || (err = use_lists(d)) < 0)
        goto done;
    err = wb_dispenser_stat(d, 0, &stat);
done:
    wb_buf_release(&mem);
    return err;
}

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

/* ---- the file --------------------------------------------------------------------------------------------- */

/* Copies everything from the log into the one file. */
static void close_place(struct place *p)
{
    wb_dispenser_close(p->d);
    p->d = NULL;
}

static void test_not_a_database(void **state)
{
    struct place *p = *state;
    char path[128];

    close_place(p);
    path_of(p, path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 1000; i++)
        fprintf(f, "this is not a database\n");
    fclose(f);
    assert_int_equal(try_open(p), WB_E_CORRUPT);
    assert_true(message_has(path));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(try_open(p), WB_E_IO);
    assert_true(message_has(path));
}

/* Bytes of the file are changed: calls succeed, or fail with an error that names the file, but never crash or hang. */
static int use_damaged(void *context)
{
    struct place *p = context;
    struct wb_dispenser *d = NULL;
    char path[128];

    path_of(p, path);
    int err = wb_dispenser_open(p->dir, NULL, &d);
    if (err == 0)
        err = use_everything(d);
    wb_dispenser_close(d);
    must(err == 0 || err == WB_E_CORRUPT || err == WB_E_IO || err == WB_E_NOTFOUND || err == WB_E_NEWER ||
         err == WB_E_LIMIT);
    must(err == 0 || err == WB_E_NOTFOUND || message_has(path));
    return err == 0 ? 1 : 0;
}

static void test_damage(void **state)
{
    struct place *p = *state;
    uint64_t chance = test_seed();
    struct wb_buf good = WB_BUF_INIT;
    char path[128], name[32];
    unsigned noticed = 0, rounds = 60;

    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "s%d.org", i);
        add_site(p, name, "10.0.0.1", i % 5);
    }
    close_place(p);
    path_of(p, path);
    must_ok(wb_path_read(path, 64u << 20, &good));
    for (unsigned round = 0; round < rounds; round++) {
        struct wb_file file = WB_FILE_INIT;
        must_ok(wb_file_open(path, WB_FILE_WRITE | WB_FILE_TRUNCATE, &file));
        must_ok(wb_file_write_at(&file, 0, good.ptr, round % 4 == 3 ? chance_below(&chance, good.len) : good.len));
        for (unsigned k = 0; k < 40; k++) {
            /* Damage is worst in the heads of pages. */
            uint64_t page = chance_below(&chance, good.len / 4096) * 4096;
            uint64_t at = k % 2 ? chance_below(&chance, good.len) : page + chance_below(&chance, 16);
            uint8_t byte = (uint8_t)chance_below(&chance, 256);
            if (round % 4 != 3)
                must_ok(wb_file_write_at(&file, at, &byte, 1));
        }
        wb_file_close(&file);
        char other[160];
        snprintf(other, sizeof other, "%s-wal", path);
        unlink(other);
        snprintf(other, sizeof other, "%s-shm", path);
        unlink(other);
        int status = end_child(start_child(use_damaged, p));
        assert_true(status == 0 || status == 1);
        noticed += status == 0;
    }
    assert_true(noticed > rounds / 4);
    wb_buf_release(&good);
}

/* A limit on the size of files acts like a full disk: what fits is written, then nothing more. */
static int fill_disk(void *context)
{
    struct place *p = context;
    struct wb_dispenser *d = open_place(p);
    struct rlimit limit = {3 << 20, 3 << 20};
    char path[128], name[32];
    int err = 0;
    unsigned added = 0;

    path_of(p, path);
    signal(SIGXFSZ, SIG_IGN);
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    while (err == 0 && added < 100000) {
        struct wb_site_plan plan = {.name = wb_slice_str(name), .scheme = WB_SLICE_LIT("http"), .priority = 0,
                                    .delay_ms = -1, .budget = -1};
        uint64_t count;
        snprintf(name, sizeof name, "s%u.org", added++);
        plan.name = wb_slice_str(name);
        err = wb_dispenser_add(d, 1, &plan, 1, &count);
    }
    must(err == WB_E_IO && message_has(path));
    /* What was acknowledged can still be read. */
    snprintf(name, sizeof name, "s%u.org", added - 2);
    must(row_of(d, name).state == WB_SITE_UNRESOLVED);
    wb_dispenser_close(d);
    return 0;
}

static void test_full_disk(void **state)
{
    struct place *p = *state;

    close_place(p);
    assert_int_equal(end_child(start_child(fill_disk, p)), 0);
    p->d = open_place(p);
    assert_true(ask_number(p, "SELECT COUNT(*) FROM webbase_site") > 50);
    check_tables(p);
    add_site(p, "after.org", "10.0.0.1", 0);
}

static int open_read_only(void *context)
{
    struct place *p = context;
    struct wb_dispenser *d = NULL;

    if (getuid() == 0)
        must(setgid(65534) == 0 && setuid(65534) == 0);
    int err = wb_dispenser_open(p->dir, NULL, &d);
    /* If it can be read, writing is refused. */
    int64_t run;
    if (err == 0)
        err = begin_run(d, &run);
    must(err == WB_E_IO && message_has(p->dir));
    wb_dispenser_close(d);
    return 0;
}

static void test_read_only(void **state)
{
    struct place *p = *state;
    char path[128];

    close_place(p);
    path_of(p, path);
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(chmod(p->dir, 0555), 0);
    assert_int_equal(end_child(start_child(open_read_only, p)), 0);
    assert_int_equal(unlink(path) == 0 || getuid() != 0, 1);
    assert_int_equal(end_child(start_child(open_read_only, p)), 0);
    assert_int_equal(chmod(p->dir, 0755), 0);
}

/* ---- locks and connections ------------------------------------------------------------------------------------- */

static int hold_lock(void *context)
{
    struct place *p = context;
    struct wb_sql *sql = NULL;
    char path[128], ready[160];

    path_of(p, path);
    must_ok(p->postgres ? wb_sql_open_postgres(p->url, NULL, 0, &sql) : wb_sql_open_sqlite(path, NULL, 0, &sql));
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

/* ---- flipped bits ------------------------------------------------------------------------------------ */

static void count_problem(void *context, bool problem, uint64_t offset, const char *message)
{
    unsigned *problems = context;

    (void)offset, (void)message;
    *problems += problem;
}

static void flip(const char *path, uint64_t at, char bit)
{
    struct wb_file file;
    char byte;

    must_ok(wb_file_open(path, WB_FILE_WRITE, &file));
    must_ok(wb_file_read_exact(&file, at, &byte, 1));
    byte = (char)(byte ^ bit);
    must_ok(wb_file_write_at(&file, at, &byte, 1));
    wb_file_close(&file);
}

/* What a reader learns about a site, if anything. */
static int read_site(const struct place *p, const char *name, struct wb_site_row *row_out, struct wb_buf *mem)
{
    struct wb_dispenser *d = NULL;
    int err = wb_dispenser_open(p->dir, NULL, &d);

    if (err == 0)
        err = wb_dispenser_get(d, wb_slice_str(name), mem, row_out);
    wb_dispenser_close(d);
    return err;
}

/*
 * One bit is flipped anywhere in the file: a reader gets what was written, or learns that the file is damaged. It
 * never gets anything else, and never the answer that there is no such site. `verify` reports it, unless SQLite does
 * not use that byte.
 */
static void test_flips(void **state)
{
    struct place *p = *state;
    uint64_t chance = test_seed();
    char path[160], name[32];
    unsigned told = 0, found = 0, flips = 300;
    uint64_t size;
    struct wb_file file;

    for (unsigned i = 0; i < 200; i++) {
        struct wb_site_plan plan = {.scheme = WB_SLICE_LIT("http"), .class_name = WB_SLICE_EMPTY, .delay_ms = 5000 + i,
                                    .budget = -1};
        uint64_t added;
        snprintf(name, sizeof name, "site%u.org", i);
        plan.name = wb_slice_str(name);
        must_ok(wb_dispenser_add(p->d, p->run, &plan, 1, &added));
    }
    wb_dispenser_close(p->d);
    p->d = NULL;
    snprintf(path, sizeof path, "%s/dispenser.db", p->dir);
    must_ok(wb_file_open(path, WB_FILE_READ, &file));
    must_ok(wb_file_size(&file, &size));
    wb_file_close(&file);
    for (unsigned i = 0; i < flips; i++) {
        uint64_t at = i < 100 ? i : chance_below(&chance, size);
        char bit = (char)(1 << chance_below(&chance, 8));
        unsigned number = (unsigned)chance_below(&chance, 200), problems = 0;
        struct wb_buf mem = WB_BUF_INIT;
        struct wb_site_row row;
        flip(path, at, bit);
        must_ok(wb_dispenser_verify(p->dir, count_problem, &problems));
        snprintf(name, sizeof name, "site%u.org", number);
        int err = read_site(p, name, &row, &mem);
        told += err == 0;
        found += problems > 0;
        if (err == 0)
            assert_int_equal(row.delay_ms, 5000 + number);
        else if (err != WB_E_CORRUPT && err != WB_E_IO)
            fail_msg("bit %d of byte %llu: %d %s", bit, (unsigned long long)at, err, wb_error_message());
        wb_buf_release(&mem);
        flip(path, at, bit);
    }
    print_message("# of %u flips verify told of %u; %u lookups did not meet the damage\n", flips, found, told);
    assert_true(found > flips * 9 / 10);
    reopen_place(p);
    check_tables(p);
}

/* The same tables in a file made by SQLite alone, without our checksums. */
static void copy_plain(const char *path)
{
    char made[200], attach[240];
    sqlite3 *db;
    sqlite3_stmt *tables;

    snprintf(made, sizeof made, "%s-plain", path);
    snprintf(attach, sizeof attach, "ATTACH '%s' AS old", path);
    assert_int_equal(sqlite3_open(made, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, attach, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT sql FROM old.sqlite_master WHERE sql IS NOT NULL UNION ALL "
                                            "SELECT 'INSERT INTO ' || name || ' SELECT * FROM old.' || name "
                                            "FROM old.sqlite_master WHERE type = 'table'",
                                        -1, &tables, NULL), SQLITE_OK);
    while (sqlite3_step(tables) == SQLITE_ROW)
        assert_int_equal(sqlite3_exec(db, (const char *)sqlite3_column_text(tables, 0), NULL, NULL, NULL), SQLITE_OK);
    sqlite3_finalize(tables);
    assert_int_equal(sqlite3_exec(db, "UPDATE webbase_meta SET value = 2 WHERE name = 'version'", NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(rename(made, path), 0);
}

/* A file of version 2, without checksums, gets them when it is opened. */
static void test_earlier_version(void **state)
{
    struct place *p = *state;
    char path[160], head[100];
    struct wb_file file;
    unsigned problems = 0;

    add_site(p, "a.org", "10.0.0.1", 0);
    wb_dispenser_close(p->d);
    p->d = NULL;
    snprintf(path, sizeof path, "%s/dispenser.db", p->dir);
    copy_plain(path);
    must_ok(wb_dispenser_verify(p->dir, count_problem, &problems));
    assert_int_equal(problems, 0);
    for (unsigned i = 0; i < 2; i++) {
        must_ok(wb_file_open(path, WB_FILE_READ, &file));
        must_ok(wb_file_read_exact(&file, 0, head, sizeof head));
        wb_file_close(&file);
        assert_int_equal(head[20], i ? 8 : 0);
        reopen_place(p);
        assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_READY);
        wb_dispenser_close(p->d);
        p->d = NULL;
    }
    must_ok(wb_dispenser_verify(p->dir, count_problem, &problems));
    assert_int_equal(problems, 0);
    reopen_place(p);
    check_tables(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SQLITE(test_flips), SQLITE(test_earlier_version),
        BOTH(test_version),   BOTH(test_foreign_rows), cmocka_unit_test(test_url), BOTH(test_memory),
        BOTH(test_again),     BOTH(test_commit_unknown), SQLITE(test_never_again),
        SQLITE(test_not_a_database), SQLITE(test_damage), SQLITE(test_full_disk),  SQLITE(test_read_only),
        BOTH(test_locked),    POSTGRES(test_lost_connection), POSTGRES(test_server_gone),
    };

    return cmocka_run_group_tests_name("dispenser faults", tests, NULL, end_server);
}
