/* dispenser_support.c - see dispenser_support.h. */
#include "dispenser_support.h"
#include "../postgresserver.h"
#include "../removetree.h"
#include "os/random.h"

#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

bool in_child;

int end_server(void **state)
{
    return postgres_end(state);
}

/* ---- places ----------------------------------------------------------------------------------------------- */

static struct wb_sql *open_sql(const struct place *place, const char *const *texts, unsigned count)
{
    struct wb_sql *sql = NULL;
    char path[128];

    snprintf(path, sizeof path, "%s/dispenser.db", place->dir);
    struct wb_sql_options options = {.texts = texts, .count = count, .take_turns = true};
    must_ok(place->postgres ? wb_sql_open_postgres(place->url, &options, &sql)
                            : wb_sql_open_sqlite(path, &options, &sql));
    return sql;
}

int64_t ask_number(const struct place *place, const char *text)
{
    struct wb_sql *sql = open_sql(place, &text, 1);

    must_ok(wb_sql_begin(sql, false));
    must(wb_sql_run(sql, 0, NULL, 0) == 1);
    int64_t number = wb_sql_number(sql, 0, 0);
    wb_sql_rollback(sql);
    wb_sql_close(sql);
    return number;
}

void change(const struct place *place, const char *text)
{
    struct wb_sql *sql = open_sql(place, NULL, 0);

    must_ok(wb_sql_begin(sql, true));
    must_ok(wb_sql_exec(sql, text));
    must_ok(wb_sql_commit(sql));
    wb_sql_close(sql);
}

struct wb_dispenser *open_place(const struct place *place)
{
    struct wb_dispenser *d = NULL;

    must_ok(wb_dispenser_open(place->dir, place->postgres ? place->url : NULL, &d));
    return d;
}

void reopen_place(struct place *place)
{
    wb_dispenser_close(place->d);
    place->d = open_place(place);
}

int set_up_place(void **state)
{
    set_clock(0);
    struct place *place = calloc(1, sizeof *place);
    bool postgres = strcmp(*state, "postgres") == 0;

    must(place);
    *state = place;
    place->postgres = postgres;
    /* Use a file system in memory if there is one: closing a database costs fsyncs. */
    snprintf(place->dir, sizeof place->dir, "%s/webbase-dispenser.XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    must(mkdtemp(place->dir));
    if (postgres)
        postgres_schema(place->url, sizeof place->url);
    place->d = open_place(place);
    must_ok(begin_run(place->d, &place->run));
    must(place->run == 1);
    return 0;
}

int tear_down_place(void **state)
{
    struct place *place = *state;

    wb_dispenser_close(place->d);
    remove_tree(place->dir);
    free(place);
    return 0;
}

/* Each of these must return 0. */
static const char *const rules[] = {
    /* A head is ready and the best of its run, home and address; each of these with a ready site has a head. */
    "SELECT COUNT(*) FROM webbase_site s WHERE head = 1 AND (state <> 2 OR EXISTS (SELECT 1 FROM webbase_site b "
    "WHERE b.run = s.run AND b.home = s.home AND b.address_first = s.address_first AND b.state = 2 AND "
    "(b.rank, b.id) < (s.rank, s.id)))",
    "SELECT COUNT(*) FROM webbase_site s WHERE state = 2 AND NOT EXISTS (SELECT 1 FROM webbase_site b WHERE "
    "b.run = s.run AND b.home = s.home AND b.address_first = s.address_first AND b.head = 1)",
    "SELECT COUNT(*) FROM webbase_site WHERE state = 2 AND address_first = ''",
    /* The counts equal the numbers of rows. */
    "SELECT COUNT(*) FROM (SELECT run, state, COUNT(*) AS n FROM webbase_site GROUP BY run, state) AS t LEFT JOIN "
    "webbase_count c ON c.run = t.run AND c.state = t.state WHERE c.sites IS NULL OR c.sites <> t.n",
    "SELECT COALESCE(SUM(sites), 0) - (SELECT COUNT(*) FROM webbase_site) FROM webbase_count",
    /* A site has an owner exactly if it is claimed; seed_last is the id of its newest seed. */
    "SELECT COUNT(*) FROM webbase_site WHERE (state = 3) <> (owner <> '')",
    "SELECT COUNT(*) FROM webbase_site s "
    "WHERE seed_last <> COALESCE((SELECT MAX(id) FROM webbase_seed d WHERE d.site = s.id), 0)",
};

void check_tables(const struct place *place)
{
    struct wb_sql *sql = open_sql(place, rules, COUNT(rules));

    must_ok(wb_sql_begin(sql, false));
    for (unsigned i = 0; i < COUNT(rules); i++) {
        must(wb_sql_run(sql, i, NULL, 0) == 1);
        if (wb_sql_number(sql, i, 0) != 0)
            must_failed(rules[i], __FILE__, __LINE__);
    }
    wb_sql_rollback(sql);
    wb_sql_close(sql);
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

int tell(void *context, const struct wb_site_row *row)
{
    struct told *told = context;

    must(told->count < NAMES_MAX);
    told->ids[told->count++] = row->id;
    told->last = *row;
    snprintf(told->last_name, sizeof told->last_name, "%.*s", WB_SLICE_ARG(row->name));
    snprintf(told->last_owner, sizeof told->last_owner, "%.*s", WB_SLICE_ARG(row->owner));
    return 0;
}

struct wb_site_row row_of(struct wb_dispenser *d, const char *name)
{
    static char mem_bytes[8192];
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_site_row row;

    must_ok(wb_dispenser_get(d, wb_slice_str(name), &mem, &row));
    must(mem.len < sizeof mem_bytes);
    /* Copied to static memory, which nobody has to release. */
    memcpy(mem_bytes, mem.ptr, mem.len);
    struct wb_slice *const fields[] = {&row.name, &row.scheme, &row.class_name, &row.address, &row.reason,
                                       &row.alias_of, &row.probe, &row.home, &row.owner};
    for (size_t i = 0; i < COUNT(fields); i++)
        fields[i]->ptr = mem_bytes + (fields[i]->ptr - mem.ptr);
    wb_buf_release(&mem);
    return row;
}

int begin_run(struct wb_dispenser *d, int64_t *run_out)
{
    struct wb_run_plan nothing = {.count = 0};
    int64_t continues;

    return wb_dispenser_enter_run(d, &nothing, run_out, &continues);
}

void add_seed(struct wb_dispenser *d, int64_t run, const char *name, const char *url, bool anew)
{
    struct wb_seed seed = {.url = url ? wb_slice_str(url) : WB_SLICE_EMPTY};
    struct wb_site_plan plan = {.name = wb_slice_str(name), .scheme = WB_SLICE_LIT("http"), .priority = INT_MIN,
                                .delay_ms = -2, .budget = -2,
                                .seeds = &seed, .seed_count = url != NULL, .revisit = anew};
    uint64_t added;

    must_ok(wb_dispenser_add(d, run, &plan, 1, &added));
}

int64_t add_site(const struct place *place, const char *name, const char *address, int priority)
{
    char url[128];
    struct wb_seed seed = {.id = 0};
    struct wb_site_plan plan = {.name = wb_slice_str(name), .scheme = WB_SLICE_LIT("http"), .priority = priority,
                                .delay_ms = -2, .budget = -2, .seeds = &seed, .seed_count = 1};
    uint64_t added;

    snprintf(url, sizeof url, "http://%s/", name);
    seed.url = wb_slice_str(url);
    must_ok(wb_dispenser_add(place->d, place->run, &plan, 1, &added));
    must(added == 1);
    int64_t id = row_of(place->d, name).id;
    if (address)
        must_ok(wb_dispenser_resolved(place->d, id, wb_slice_str(address), INT64_MAX, WB_SLICE_EMPTY));
    return id;
}

struct wb_site_report report_of(int64_t id, enum wb_site_state state)
{
    return (struct wb_site_report){.id = id, .state = state, .reason = WB_SLICE_EMPTY, .alias_of = WB_SLICE_EMPTY,
                                   .probe = WB_SLICE_EMPTY,
                                   .home = WB_SLICE_EMPTY, .visit = 1, .seeds_taken = INT64_MAX};
}

int report_one(struct wb_dispenser *d, const char *owner, struct wb_site_report report)
{
    return wb_dispenser_report(d, wb_slice_str(owner), &report, 1);
}

static int64_t clock_ms;

static int64_t read_clock(void)
{
    return clock_ms;
}

void set_clock(int64_t now_ms)
{
    clock_ms = now_ms;
    wb_dispenser_test_clock = read_clock;
}

void real_clock(void)
{
    wb_dispenser_test_clock = NULL;
}

/* If the lease would end before it starts, it has expired. */
static int64_t length(int64_t until_ms)
{
    return until_ms > clock_ms ? until_ms - clock_ms : 0;
}

int claim_until(struct wb_dispenser *d, int64_t run, struct wb_slice owner, int64_t now_ms, int64_t until_ms,
                unsigned max, wb_site_each each, void *context)
{
    set_clock(now_ms);
    return wb_dispenser_claim(d, run, owner, now_ms, length(until_ms), max, each, context);
}

int borrow_until(struct wb_dispenser *d, struct wb_slice name, struct wb_slice scheme, struct wb_slice owner,
                 int64_t now_ms, int64_t until_ms, wb_site_each each, void *context)
{
    set_clock(now_ms);
    return wb_dispenser_borrow(d, name, scheme, owner, length(until_ms), each, context);
}

int renew_until(struct wb_dispenser *d, struct wb_slice owner, int64_t until_ms)
{
    return wb_dispenser_renew(d, owner, length(until_ms));
}

unsigned claim(struct wb_dispenser *d, int64_t run, const char *owner, int64_t now_ms, int64_t lease_ms, unsigned max,
               struct told *told)
{
    told->count = 0;
    must_ok(claim_until(d, run, wb_slice_str(owner), now_ms, lease_ms, max, tell, told));
    return told->count;
}

/* ---- children ------------------------------------------------------------------------------------------- */

pid_t start_child(int (*function)(void *context), void *context)
{
    fflush(NULL);
    pid_t child = fork();

    must(child >= 0);
    if (child == 0) {
        in_child = true;
        postgres_leave();
        for (int s = 1; s < 32; s++)
            signal(s, SIG_DFL);
        alarm(1200);
        _exit(function(context));
    }
    return child;
}

int end_child(pid_t child)
{
    int status;

    must(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void path_of(const struct place *p, char path_out[128])
{
    snprintf(path_out, 128, "%s/dispenser.db", p->dir);
}

bool message_has(const char *text)
{
    return strstr(wb_error_message(), text) != NULL;
}

int try_open(const struct place *p)
{
    struct wb_dispenser *d = NULL;
    int err = wb_dispenser_open(p->dir, p->postgres ? p->url : NULL, &d);

    assert_true((err == 0) == (d != NULL));
    wb_dispenser_close(d);
    return err;
}

/* ---- a bit of everything ------------------------------------------------------------------------------------- */

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

int use_everything(struct wb_dispenser *d)
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
