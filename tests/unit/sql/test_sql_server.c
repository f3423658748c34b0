/*
 * test_sql_server.c - what goes wrong on the way to a PostgreSQL server: connections that are cut, refused or silent,
 * answers that are lost after the server has done what was asked, a server that crashes, clients that freeze.
 */
#include "../must.h"
#include "../postgresserver.h"
#include "../tcpproxy.h"
#include "sql/sql.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GET, SET, ADD, SLEEP, BACKEND, STATEMENTS };

static const char *const texts[STATEMENTS] = {
    [GET] = "SELECT value FROM webbase_test WHERE name = ?1",
    [SET] = "UPDATE webbase_test SET value = ?2 WHERE name = ?1 AND value = ?3",
    [ADD] = "UPDATE webbase_test SET value = value + ?2 WHERE name = ?1 RETURNING value",
    [SLEEP] = "SELECT pg_sleep(600)",
    [BACKEND] = "SELECT pg_backend_pid()",
};

struct place {
    struct tcp_proxy *proxy;
    char direct[512], url[512]; /* without and with the proxy */
    struct wb_sql *sql;         /* with it */
};

static const struct wb_sql_options short_options = {
    .texts = texts, .count = STATEMENTS, .answer_ms = 2000, .patience_ms = 60000};

static int make_table(struct wb_sql *sql, void *context)
{
    (void)context;
    return wb_sql_exec(sql, "CREATE TABLE webbase_test (name TEXT PRIMARY KEY, value BIGINT NOT NULL);"
                            "INSERT INTO webbase_test (name, value) VALUES ('a', 1), ('b', 2)");
}

static struct wb_sql *open_url(const char *url)
{
    struct wb_sql *sql = NULL;

    must_ok(wb_sql_open(url, &short_options, &sql));
    return sql;
}

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    char path[512];

    must(p);
    *state = p;
    wb_sql_reopen_tries = 100; /* as long as short_options allow */
    postgres_socket(path, sizeof path);
    p->proxy = proxy_start(path);
    postgres_schema(p->direct, sizeof p->direct);
    /* The server trusts everybody, so the password is only there to be looked for. */
    snprintf(p->url, sizeof p->url, "postgres://webbase:sekret@127.0.0.1:%d/postgres?sslmode=disable&%s",
             proxy_port(p->proxy), strstr(p->direct, "options="));
    p->sql = open_url(p->url);
    must_ok(wb_sql_transact(p->sql, WB_SQL_WRITE, make_table, NULL));
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    wb_sql_close(p->sql);
    proxy_stop(p->proxy);
    free(p);
    return 0;
}

static int get_value(struct wb_sql *sql, void *context)
{
    int64_t *value = context;
    int err = WB_SQL_RUN(sql, GET, wb_sql_str(WB_SLICE_LIT("a")));

    *value = err > 0 ? wb_sql_number(sql, GET, 0) : 0;
    wb_sql_end(sql, GET);
    return err;
}

static int64_t value_of(struct wb_sql *sql)
{
    int64_t value = -1;

    must_ok(wb_sql_transact(sql, WB_SQL_READ, get_value, &value));
    return value;
}

struct step {
    int64_t from, to;
    unsigned tries;
    bool uncertain, done;
};

static int take_step(struct wb_sql *sql, void *context)
{
    struct step *s = context;
    int64_t value;

    s->tries++;
    s->uncertain = wb_sql_uncertain(sql);
    int err = WB_SQL_RUN(sql, SET, wb_sql_str(WB_SLICE_LIT("a")), wb_sql_int(s->to), wb_sql_int(s->from));
    if (err >= 0)
        err = get_value(sql, &value);
    s->done = err >= 0 && value == s->to;
    return err;
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

static void lose_commit(struct place *p, bool swallow)
{
    struct step s = {.from = 1, .to = 7};

    proxy_lose(p->proxy, "COMMIT", 1, swallow);
    must_ok(wb_sql_transact(p->sql, WB_SQL_WRITE, take_step, &s));
    assert_int_equal(proxy_lost(p->proxy), 1);
    assert_true(s.done && s.uncertain);
    assert_int_equal(value_of(p->sql), 7);
}

static void test_lost_commit(void **state)
{
    lose_commit(*state, false);
}

/* The connection lives, but is silent: this side gives it up. */
static void test_swallowed_commit(void **state)
{
    lose_commit(*state, true);
}

static int add_one(struct wb_sql *sql, void *context)
{
    int err = WB_SQL_RUN(sql, ADD, wb_sql_str(WB_SLICE_LIT("a")), wb_sql_int(1));
    int64_t *value = context;

    *value = err > 0 ? wb_sql_number(sql, ADD, 0) : 0;
    wb_sql_end(sql, ADD);
    return err;
}

/* A statement that is a transaction alone was carried out although its answer is lost: repeating it adds once more. */
static void test_lost_one(void **state)
{
    struct place *p = *state;
    int64_t value;

    must_ok(wb_sql_transact(p->sql, WB_SQL_ONE, add_one, &value)); /* prepared from now on */
    assert_int_equal(value, 2);
    proxy_lose(p->proxy, "webbase_2", 1, false);
    must_ok(wb_sql_transact(p->sql, WB_SQL_ONE, add_one, &value));
    assert_int_equal(proxy_lost(p->proxy), 1);
    assert_int_equal(value, 4);
}

static int sleep_long(struct wb_sql *sql, void *context)
{
    unsigned *tries = context;

    ++*tries;
    return wb_sql_run(sql, SLEEP, NULL, 0);
}

/* The server ends a statement that takes too long. */
static void test_long_statement(void **state)
{
    struct place *p = *state;
    struct wb_sql_options options = short_options;
    struct wb_sql *sql = NULL;
    unsigned tries = 0;

    options.answer_ms = 2000;
    options.patience_ms = 1;
    must_ok(wb_sql_open(p->url, &options, &sql));
    assert_int_equal(wb_sql_transact(sql, WB_SQL_WRITE, sleep_long, &tries), WB_E_BUSY);
    assert_non_null(strstr(wb_error_message(), "statement timeout"));
    assert_int_equal(tries, 1);
    wb_sql_close(sql);
}

/* ---- connections ------------------------------------------------------------------------------------------------ */

static void test_cut(void **state)
{
    struct place *p = *state;

    for (int i = 1; i < 4; i++) {
        struct step s = {.from = i, .to = i + 1};
        proxy_cut(p->proxy);
        must_ok(wb_sql_transact(p->sql, WB_SQL_WRITE, take_step, &s));
        assert_true(s.done && !s.uncertain);
    }
    proxy_delay(p->proxy, 20);
    assert_int_equal(value_of(p->sql), 4);
}

/* Nobody answers; the message names the server, without the password. */
static void test_away(void **state)
{
    struct place *p = *state;
    int64_t value;
    char name[64];

    wb_sql_reopen_tries = 2;
    snprintf(name, sizeof name, "the PostgreSQL server at 127.0.0.1:%d, database postgres", proxy_port(p->proxy));
    assert_string_equal(wb_sql_where(p->sql), name);
    proxy_refuse(p->proxy, true);
    proxy_cut(p->proxy);
    assert_int_equal(wb_sql_transact(p->sql, WB_SQL_READ, get_value, &value), WB_E_IO);
    assert_non_null(strstr(wb_error_message(), name));
    assert_null(strstr(wb_error_message(), "sekret"));
    assert_int_equal(wb_sql_transact(p->sql, WB_SQL_READ, get_value, &value), WB_E_IO);
    proxy_refuse(p->proxy, false);
    assert_int_equal(value_of(p->sql), 1);
    /* It takes the connection, and that is all. */
    proxy_deaf(p->proxy, true);
    assert_true(wb_sql_transact(p->sql, WB_SQL_READ, get_value, &value) < 0);
    assert_non_null(strstr(wb_error_message(), name));
    proxy_deaf(p->proxy, false);
    wb_sql_reopen_tries = 100;
    assert_int_equal(value_of(p->sql), 1);
}

static int find_backend(struct wb_sql *sql, void *context)
{
    int64_t *pid = context;
    int err = wb_sql_run(sql, BACKEND, NULL, 0);

    *pid = err > 0 ? wb_sql_number(sql, BACKEND, 0) : 0;
    wb_sql_end(sql, BACKEND);
    return err;
}

/* One process of the server is killed: it ends all connections, recovers, and is back. */
static void test_crash(void **state)
{
    struct place *p = *state;
    struct wb_sql *other = open_url(p->direct);
    struct step s = {.from = 1, .to = 5};
    int64_t pid = 0;

    must_ok(wb_sql_transact(other, WB_SQL_READ, find_backend, &pid));
    assert_true(pid > 1);
    must(kill((pid_t)pid, SIGKILL) == 0);
    must_ok(wb_sql_transact(p->sql, WB_SQL_WRITE, take_step, &s));
    assert_true(s.done);
    assert_int_equal(value_of(other), 5);
    wb_sql_close(other);
}

/* ---- clients that freeze -------------------------------------------------------------------------------------------
 */

/* The server ends a transaction in which nothing happens, and releases its rows. */
static void test_frozen_client(void **state)
{
    struct place *p = *state;
    struct wb_sql *other = open_url(p->direct);
    struct step s = {.from = 1, .to = 9};
    int64_t value;

    must_ok(wb_sql_begin(p->sql, WB_SQL_WRITE));
    must_ok(WB_SQL_RUN(p->sql, SET, wb_sql_str(WB_SLICE_LIT("a")), wb_sql_int(2), wb_sql_int(1)));
    must_ok(wb_sql_transact(other, WB_SQL_WRITE, take_step, &s));
    assert_true(s.done);
    /* It thaws, and finds out. */
    int err = get_value(p->sql, &value);
    assert_int_equal(err < 0 ? err : wb_sql_commit(p->sql), WB_SQL_AGAIN);
    wb_sql_rollback(p->sql);
    assert_int_equal(value_of(p->sql), 9);
    wb_sql_close(other);
}

static void *change_later(void *context)
{
    struct step *s = context;
    struct place *p = *(struct place **)(s + 1);
    struct wb_sql *sql = open_url(p->direct);

    if (wb_sql_transact(sql, WB_SQL_WRITE, take_step, s) < 0)
        s->done = false;
    wb_sql_close(sql);
    return NULL;
}

/* An UPDATE that waits for a row judges its condition again when the row is free. */
static void test_judged_again(void **state)
{
    struct place *p = *state;
    struct {
        struct step s;
        struct place *place;
    } late = {.s = {.from = 1, .to = 3}, .place = p};
    pthread_t thread;
    int64_t waiting = 0;

    must_ok(wb_sql_begin(p->sql, WB_SQL_WRITE));
    must_ok(WB_SQL_RUN(p->sql, SET, wb_sql_str(WB_SLICE_LIT("a")), wb_sql_int(2), wb_sql_int(1)));
    must(pthread_create(&thread, NULL, change_later, &late) == 0);
    PGconn *conn = PQconnectdb(p->direct);
    for (int i = 0; i < 300 && !waiting; i++) {
        PGresult *result = PQexec(conn, "SELECT COUNT(*) FROM pg_locks WHERE NOT granted");
        waiting = atoi(PQgetvalue(result, 0, 0));
        PQclear(result);
        usleep(1000);
    }
    PQfinish(conn);
    /* If this took so long that the server has ended our transaction, the other one wins, and may. */
    int err = wb_sql_commit(p->sql);
    if (err < 0)
        wb_sql_rollback(p->sql);
    must(pthread_join(thread, NULL) == 0);
    assert_true(late.s.done == (err < 0));
    assert_int_equal(value_of(p->sql), err < 0 ? 3 : 2);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_lost_commit),  TEST(test_swallowed_commit),
        TEST(test_lost_one),     TEST(test_long_statement),
        TEST(test_cut),          TEST(test_away),
        TEST(test_crash),        TEST(test_frozen_client),
        TEST(test_judged_again),
    };

    return cmocka_run_group_tests_name("sql server", tests, NULL, postgres_end);
}
