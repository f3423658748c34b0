/*
 * test_sql.c - the room sql with both databases: URLs, the clock, kinds of transactions, and what is promised to those
 * whose work is repeated.
 */
#include "../must.h"
#include "../postgresserver.h"
#include "../removetree.h"
#include "sql/sql_driver.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { GET, SET, ADD, NOW, RETURNED, INSERT, STATEMENTS };

static const char *const texts[STATEMENTS] = {
    [GET] = "SELECT value FROM webbase_test WHERE name = ?1",
    [SET] = "UPDATE webbase_test SET value = ?2 WHERE name = ?1 AND value = ?3",
    [ADD] = "UPDATE webbase_test SET value = value + ?2 WHERE name = ?1",
    [NOW] = "SELECT webbase_now_ms()",
    [RETURNED] = "UPDATE webbase_test SET value = value + 1 WHERE name = ?1 RETURNING value, webbase_now_ms()",
    [INSERT] = "INSERT INTO webbase_test (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING",
};

struct place {
    char dir[64];
    char url[512];
    bool postgres;
    struct wb_sql *sql;
};

static struct wb_sql *open_place(const struct place *p, struct wb_sql_options options)
{
    struct wb_sql *sql = NULL;

    options.texts = texts;
    options.count = STATEMENTS;
    must_ok(wb_sql_open(p->url, &options, &sql));
    return sql;
}

static int make_table(struct wb_sql *sql, void *context)
{
    (void)context;
    return wb_sql_exec(sql, "CREATE TABLE webbase_test (name TEXT PRIMARY KEY, value BIGINT NOT NULL);"
                            "INSERT INTO webbase_test (name, value) VALUES ('a', 1), ('b', 2)");
}

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);

    must(p);
    p->postgres = strcmp(*state, "postgres") == 0;
    *state = p;
    snprintf(p->dir, sizeof p->dir, "/tmp/webbase-sql.XXXXXX");
    must(mkdtemp(p->dir));
    if (p->postgres)
        postgres_schema(p->url, sizeof p->url);
    else
        snprintf(p->url, sizeof p->url, "sqlite://%s/test.db", p->dir);
    p->sql = open_place(p, (struct wb_sql_options){.durable = true});
    must_ok(wb_sql_transact(p->sql, WB_SQL_WRITE, make_table, NULL));
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    wb_sql_close(p->sql);
    remove_tree(p->dir);
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

/* ---- URLs ---------------------------------------------------------------------------------------------------------
 */

static void test_urls(void **state)
{
    static const struct {
        const char *url, *shown;
        enum wb_sql_url_kind kind;
    } urls[] = {
        {"sqlite:///var/lib/web.db", "sqlite:///var/lib/web.db", WB_SQL_URL_SQLITE},
        {"sqlite:///", "sqlite:///", WB_SQL_URL_NONE},
        {"sqlite://web.db", "sqlite://web.db", WB_SQL_URL_NONE},
        {"sqlite", "sqlite", WB_SQL_URL_NONE},
        {"/var/lib/web.db", "/var/lib/web.db", WB_SQL_URL_NONE},
        {"mysql://u:sekret@h/d", "mysql://u:***@h/d", WB_SQL_URL_NONE},
        {"postgres://h/d", "postgres://h/d", WB_SQL_URL_POSTGRES},
        {"postgres://u@h:5432/d", "postgres://u@h:5432/d", WB_SQL_URL_POSTGRES},
        {"postgresql://u:sekret@h:5432/d", "postgresql://u:***@h:5432/d", WB_SQL_URL_POSTGRES},
        {"postgres://u:sekret@h,i:1/d?password=sekret", "postgres://u:***@h,i:1/d?...", WB_SQL_URL_POSTGRES},
        {"postgres://u:sek@ret@h/d", "postgres://u:***@h/d", WB_SQL_URL_POSTGRES},
        {"postgres://u:sek/ret@h/d", "postgres://u:***@h/d", WB_SQL_URL_POSTGRES},
        {"postgres://u:sek?ret@h/d", "postgres://u:***?...", WB_SQL_URL_POSTGRES},
        {"postgres://h/d?user=u&password=sekret", "postgres://h/d?...", WB_SQL_URL_POSTGRES},
    };
    struct wb_buf shown = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(urls); i++) {
        assert_int_equal(wb_sql_url_kind(wb_slice_str(urls[i].url)), urls[i].kind);
        wb_buf_clear(&shown);
        must_ok(wb_sql_url_redact(wb_slice_str(urls[i].url), &shown));
        must_ok(wb_buf_terminate(&shown));
        assert_string_equal(shown.ptr, urls[i].shown);
    }
    wb_buf_release(&shown);
}

/* Whatever is wrong with a URL: the message names the server if it can, and never the password or a part of it. */
static void test_no_password(void **state)
{
    static const char *const urls[] = {
        "postgres://u:sekret@127.0.0.1:1/d",
        "postgres://u:sek%zzsekret@h/d",
        "postgres://u:sekret/x@h/d",
        "postgres://u:sekret?x@h/d",
        "postgres://sekret:sekret@[::1/d",
        "postgres://127.0.0.1:1/d?password=sekret",
        "postgres://127.0.0.1:1/d?sslmode=sekret",
        "mysql://u:sekret@h/d",
        "sekret",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(urls); i++) {
        struct wb_sql_options options = {.count = 0};
        struct wb_sql *sql = NULL;
        int err = wb_sql_open(urls[i], &options, &sql);
        assert_true(err == WB_E_IO || err == WB_E_INVALID);
        assert_null(sql);
        /* The value of sslmode is no secret, and libpq names it. */
        if (strstr(wb_error_message(), "sekret") && !strstr(urls[i], "sslmode"))
            fail_msg("the password is in: %s", wb_error_message());
    }
}

static void test_existing(void **state)
{
    struct wb_sql_options options = {.existing = true};
    struct wb_sql *sql = NULL;

    (void)state;
    assert_int_equal(wb_sql_open("sqlite:///nonexistent/a.db", &options, &sql), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), "/nonexistent/a.db"));
    assert_null(sql);
}

/* ---- the clock -----------------------------------------------------------------------------------------------------
 */

static int read_clocks(struct wb_sql *sql, void *context)
{
    int64_t *times = context;
    int err = wb_sql_clock(sql, &times[0]);

    if (err == 0)
        err = wb_sql_run(sql, NOW, NULL, 0);
    times[1] = err > 0 ? wb_sql_number(sql, NOW, 0) : 0;
    wb_sql_end(sql, NOW);
    return err < 0 ? err : wb_sql_clock(sql, &times[2]);
}

static int64_t no_clock(void)
{
    return 123456789012;
}

/* The clock in a statement is that of the call; both go on inside of a transaction. */
static void test_clock(void **state)
{
    struct place *p = *state;
    int64_t times[3];

    must_ok(wb_sql_transact(p->sql, WB_SQL_WRITE, read_clocks, times));
    assert_true(times[0] > 0 && times[0] <= times[1] && times[1] <= times[2]);
    wb_sql_test_clock = no_clock;
    struct wb_sql *sql = open_place(p, (struct wb_sql_options){.count = 0});
    wb_sql_test_clock = NULL;
    must_ok(wb_sql_transact(sql, WB_SQL_WRITE, read_clocks, times));
    for (int i = 0; i < 3; i++)
        assert_int_equal(times[i], no_clock());
    wb_sql_close(sql);
}

/* ---- kinds of transactions -----------------------------------------------------------------------------------------
 */

static int add_returning(struct wb_sql *sql, void *context)
{
    int64_t *value = context;
    int err = WB_SQL_RUN(sql, RETURNED, wb_sql_str(WB_SLICE_LIT("a")));

    *value = err > 0 ? wb_sql_number(sql, RETURNED, 0) : 0;
    wb_sql_end(sql, RETURNED);
    return err;
}

/* One statement is a transaction, with turns or without. */
static void test_one(void **state)
{
    struct place *p = *state;
    struct wb_sql *turns = open_place(p, (struct wb_sql_options){.take_turns = true});
    int64_t value;

    must_ok(wb_sql_transact(p->sql, WB_SQL_ONE, add_returning, &value));
    assert_int_equal(value, 2);
    assert_int_equal(value_of(turns), 2);
    must_ok(wb_sql_transact(turns, WB_SQL_ONE, add_returning, &value));
    assert_int_equal(value, 3);
    assert_int_equal(value_of(p->sql), 3);
    wb_sql_close(turns);
}

static int add_and_fail(struct wb_sql *sql, void *context)
{
    int err = WB_SQL_RUN(sql, ADD, wb_sql_str(WB_SLICE_LIT("a")), wb_sql_int(10));

    (void)context;
    return err < 0 ? err : wb_fail(WB_E_LIMIT, "enough");
}

static void test_rolled_back(void **state)
{
    struct place *p = *state;

    assert_int_equal(wb_sql_transact(p->sql, WB_SQL_WRITE, add_and_fail, NULL), WB_E_LIMIT);
    assert_string_equal(wb_error_message(), "enough");
    assert_false(wb_sql_uncertain(p->sql));
    assert_int_equal(value_of(p->sql), 1);
}

/* ---- repeating
 * -------------------------------------------------------------------------------------------------------- */

/* A driver in front of the real one, which loses answers. */
static struct {
    const struct wb_sql_driver *real;
    struct wb_sql_driver driver;
    unsigned commits; /* so many of the next commits succeed, but nobody hears of it */
    unsigned runs;    /* the same for statements */
} shaky;

static int shaky_commit(struct wb_sql *sql)
{
    int err = shaky.real->commit(sql);

    if (err == 0 && shaky.commits) {
        shaky.commits--;
        return wb_fail(WB_SQL_AGAIN, "connection lost");
    }
    return err;
}

static int shaky_run(struct wb_sql *sql, unsigned statement, const struct wb_sql_value *values, unsigned count)
{
    int err = shaky.real->run(sql, statement, values, count);

    if (err >= 0 && shaky.runs) {
        shaky.runs--;
        return wb_fail(WB_SQL_AGAIN, "connection lost");
    }
    return err;
}

static void make_shaky(struct wb_sql *sql)
{
    shaky.real = sql->driver;
    shaky.driver = *shaky.real;
    shaky.driver.commit = shaky_commit;
    shaky.driver.run = shaky_run;
    sql->driver = &shaky.driver;
}

/* What a work must bear, done right: the change is bound to what was before, and an earlier attempt's is recognised. */
struct step {
    int64_t from, to;
    unsigned tries;
    bool uncertain; /* what the last try was told */
    bool done;
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

static void test_lost_commit(void **state)
{
    struct place *p = *state;
    struct step s = {.from = 1, .to = 7};

    make_shaky(p->sql);
    shaky.commits = 2;
    must_ok(wb_sql_transact(p->sql, WB_SQL_WRITE, take_step, &s));
    assert_true(s.done && s.uncertain);
    assert_int_equal(s.tries, 3);
    assert_false(wb_sql_uncertain(p->sql));
    /* A transaction that only reads is never in doubt. */
    shaky.commits = 100;
    int64_t value;
    assert_int_equal(wb_sql_transact(p->sql, WB_SQL_READ, get_value, &value), WB_E_BUSY);
    assert_false(wb_sql_uncertain(p->sql));
    /* A failure that came before the commit is none either. */
    shaky.commits = 0;
    shaky.runs = 1;
    s = (struct step){.from = 7, .to = 8};
    must_ok(wb_sql_transact(p->sql, WB_SQL_WRITE, take_step, &s));
    assert_true(s.done && !s.uncertain && s.tries == 2);
    /* If it fails in the end, the caller is told that it may have happened. */
    shaky.commits = 100;
    s = (struct step){.from = 8, .to = 9};
    assert_int_equal(wb_sql_transact(p->sql, WB_SQL_WRITE, take_step, &s), WB_E_BUSY);
    assert_true(wb_sql_uncertain(p->sql));
    shaky.commits = 0;
    assert_int_equal(value_of(p->sql), 9);
    p->sql->driver = shaky.real;
}

/* The answer to the only statement of a transaction is lost. SQLite has rolled it back, PostgreSQL has not. */
static void test_lost_one(void **state)
{
    struct place *p = *state;
    int64_t value;

    make_shaky(p->sql);
    shaky.runs = 1000;
    assert_int_equal(wb_sql_transact(p->sql, WB_SQL_ONE, add_returning, &value), WB_E_BUSY);
    assert_true(wb_sql_uncertain(p->sql));
    unsigned tries = 1000 - shaky.runs;
    shaky.runs = 0;
    assert_int_equal(value_of(p->sql), p->postgres ? 1 + tries : 1);
    p->sql->driver = shaky.real;
}

/* ---- others
 * ------------------------------------------------------------------------------------------------------------ */

/* Without turns, PostgreSQL lets two transactions change different rows at the same time. */
static void test_no_turns(void **state)
{
    struct place *p = *state;
    struct wb_sql *other = open_place(p, (struct wb_sql_options){.count = 0});

    if (p->postgres) {
        must_ok(wb_sql_begin(p->sql, WB_SQL_WRITE));
        must_ok(WB_SQL_RUN(p->sql, ADD, wb_sql_str(WB_SLICE_LIT("b")), wb_sql_int(1)));
        must_ok(wb_sql_begin(other, WB_SQL_WRITE));
        must_ok(WB_SQL_RUN(other, ADD, wb_sql_str(WB_SLICE_LIT("a")), wb_sql_int(1)));
        must_ok(wb_sql_commit(other));
        assert_int_equal(value_of(other), 2);
        must_ok(wb_sql_commit(p->sql));
    }
    wb_sql_close(other);
}

#define BOTH(test)                                                                                                     \
    {#test " (sqlite)", test, set_up, tear_down, (void *)"sqlite"},                                                    \
    {                                                                                                                  \
#test " (postgres)", test, set_up, tear_down, (void *)"postgres"                                               \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls),
        cmocka_unit_test(test_no_password),
        cmocka_unit_test(test_existing),
        BOTH(test_clock),
        BOTH(test_one),
        BOTH(test_rolled_back),
        BOTH(test_lost_commit),
        BOTH(test_lost_one),
        BOTH(test_no_turns),
    };

    return cmocka_run_group_tests_name("sql", tests, NULL, postgres_end);
}
