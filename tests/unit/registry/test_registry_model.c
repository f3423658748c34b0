/*
 * test_registry_model.c - simulated machines that do what machines do, in any order, in a time that the test moves.
 * They freeze before a request is sent, before it is carried out and before its answer is read; they lose their
 * connection, lose answers to commits that have happened, die and come back under their names; the database is away for
 * longer than a lease, its clock is set, and a standby that has lost the last second takes its place.
 *
 * At every moment of true time, no two processes may believe that they hold the same shard. And a naive twin, which has
 * the rules as a few comparisons, looks at the rows after each commit: what changed must be what the machine may
 * change.
 */
#include "registry_support.h"
#include "../postgresserver.h"
#include "../rounds.h"

enum { MACHINES = 4, PROCESSES = 64, SHARDS = 8, TICK_MS = 50, DEPTH_MAX = 3, HEADS_MAX = 4096 };

struct process {
    struct wb_registry *r;       /* NULL: it has ended */
    unsigned machine;            /* whose name it has */
    int64_t offset_ns, rate_ppm; /* of its clock */
    int64_t cut_until_ms;        /* it does not reach the database */
    int64_t next_renewal_ms;
    bool busy; /* it is frozen, in the middle of something */
    bool joined;
    char want_head[WB_REGISTRY_HEAD_MAX];
};

/* What the twin knows of a row. */
struct twin_shard {
    char holder[WB_REGISTRY_NAME_MAX], head[WB_REGISTRY_HEAD_MAX];
    int64_t term;
};

static struct {
    struct cluster_place place;
    uint64_t chance;
    struct process processes[PROCESSES];
    unsigned count, depth, heads;
    bool failing;          /* faults happen */
    int64_t away_until_ms; /* the database is */
    struct twin_shard shards[SHARDS];
    struct wb_registry_view view;                 /* the last look */
    struct process *publisher[SHARDS][HEADS_MAX]; /* of a term */
    unsigned takes, publications, moves, lost, failovers;
} sim;

static const char *const names[MACHINES] = {"a", "b", "c", "d"};

static struct process *process_of(const struct wb_registry *r)
{
    for (unsigned i = 0; i < sim.count; i++)
        if (sim.processes[i].r == r)
            return &sim.processes[i];
    return NULL;
}

static int64_t process_clock(const struct wb_registry *r)
{
    const struct process *p = process_of(r);
    int64_t ns = true_ms * 1000000;

    return p ? ns + p->offset_ns + ns / 1000000 * p->rate_ppm : ns;
}

/* ---- what must be true at every moment ----------------------------------------------------------------------------
 */

static void check_believers(void)
{
    for (unsigned shard = 0; shard < SHARDS; shard++) {
        const struct process *one = NULL;
        for (unsigned i = 0; i < sim.count; i++) {
            const struct process *p = &sim.processes[i];
            if (!p->r || !wb_registry_holds(p->r, shard, NULL))
                continue;
            if (one) {
                print_error("at %lld both process %td (%s) and %u (%s) believe that they hold shard %u\n",
                            (long long)true_ms, one - sim.processes, names[one->machine], i, names[p->machine], shard);
                must(!"one believer at a time");
            }
            one = p;
        }
    }
}

static void act(struct process *p);

/* Time passes; whoever is not frozen does something. */
static void pass(int64_t ms)
{
    int64_t until_ms = true_ms + ms;

    sim.depth++;
    while (true_ms < until_ms) {
        true_ms += 1 + (int64_t)chance_below(&sim.chance, TICK_MS);
        check_believers();
        for (unsigned i = 0; i < sim.count && sim.depth <= DEPTH_MAX; i++)
            if (sim.processes[i].r && !sim.processes[i].busy)
                act(&sim.processes[i]);
    }
    sim.depth--;
}

/* A moment in which a process may freeze. */
static void freeze(unsigned one_in)
{
    if (sim.failing && sim.depth < DEPTH_MAX && chance_one_in(&sim.chance, one_in))
        pass((int64_t)chance_below(&sim.chance, chance_one_in(&sim.chance, 2) ? LEASE / 8 : 2 * LEASE));
}

/* ---- the twin
 * -------------------------------------------------------------------------------------------------------- */

static void twin_refuses(const struct process *p, unsigned shard, const char *what)
{
    print_error("process %td (%s), shard %u: %s\n", p - sim.processes, names[p->machine], shard, what);
    must(!"the twin allows it");
}

/* Whether a machine's lease was over when this commit happened. Its row may be changed by it, so the look before
 * counts. */
static bool lease_over(const char *name)
{
    const struct wb_registry_machine *m = wb_registry_view_machine(&sim.view, name);
    int64_t now_ms = true_ms + database_ahead_ms;

    return !m || m->lease_ms <= now_ms - sim.view.now_ms;
}

static void judge_holder(const struct process *p, unsigned shard, const struct twin_shard *was,
                         const struct wb_registry_shard *now)
{
    const char *name = names[p->machine];

    if (strcmp(was->holder, now->holder) == 0) {
        /* Only a process that begins under a name gives the shards of that name another term. */
        if (now->term != was->term && (now->term != was->term + 1 || strcmp(now->holder, name) != 0))
            twin_refuses(p, shard, "the term has changed without a reason");
        return;
    }
    bool giving = strcmp(was->holder, name) == 0;
    if (now->holder[0] ? now->term != was->term + 1 : now->term != was->term)
        twin_refuses(p, shard, "the term does not count the holders");
    if (!giving && strcmp(now->holder, name) != 0)
        twin_refuses(p, shard, "it has given away what it did not have");
    if (!giving && was->holder[0] && !lease_over(was->holder))
        twin_refuses(p, shard, "it has taken a shard from a machine whose lease was not over");
    sim.takes += !giving;
    sim.moves += giving && now->holder[0];
}

/* After a commit of this process. */
static void look(struct process *p)
{
    struct wb_registry_view view;

    must_ok(wb_registry_look(sim.place.admin, &view));
    for (unsigned i = 0; i < SHARDS; i++) {
        struct twin_shard *was = &sim.shards[i];
        const struct wb_registry_shard *now = &view.shards.items[i];
        if (p)
            judge_holder(p, i, was, now);
        if (p && strcmp(was->head, now->head) != 0) {
            must(now->term < HEADS_MAX);
            struct process **publisher = &sim.publisher[i][now->term];
            if (strcmp(was->holder, names[p->machine]) != 0 || strcmp(now->head, p->want_head) != 0)
                twin_refuses(p, i, "it has published what it does not hold");
            if (*publisher && *publisher != p)
                twin_refuses(p, i, "two processes have published in one term");
            *publisher = p;
            sim.publications++;
        }
        snprintf(was->holder, sizeof was->holder, "%s", now->holder);
        snprintf(was->head, sizeof was->head, "%s", now->head);
        was->term = now->term;
    }
    wb_registry_view_release(&sim.view);
    sim.view = view;
}

/* ---- a driver between the machines and the database
 * ---------------------------------------------------------------------- */

static const struct wb_sql_driver *real;
static struct wb_sql_driver shaky;

static struct process *process_of_sql(const struct wb_sql *sql)
{
    for (unsigned i = 0; i < sim.count; i++)
        if (sim.processes[i].r && sim.processes[i].r->sql == sql)
            return &sim.processes[i];
    must(!"a process");
    return NULL;
}

static bool is_away(const struct process *p)
{
    return true_ms < sim.away_until_ms || true_ms < p->cut_until_ms;
}

static int shaky_begin(struct wb_sql *sql, enum wb_sql_kind kind)
{
    const struct process *p = process_of_sql(sql);

    freeze(60);
    return is_away(p) ? wb_fail(WB_E_IO, "cannot reach the database") : real->begin(sql, kind);
}

/* A statement that is a transaction in PostgreSQL: nobody waits for it while it is on its way. */
static bool is_alone(const struct wb_sql *sql)
{
    return sim.place.postgres && sql->kind == WB_SQL_ONE;
}

static int lose_answer(struct process *p)
{
    sim.lost++;
    /* Sometimes for good. */
    if (chance_one_in(&sim.chance, 2))
        p->cut_until_ms = true_ms + (int64_t)chance_below(&sim.chance, 2 * LEASE);
    return wb_fail(WB_SQL_AGAIN, "the connection was lost");
}

static int shaky_run(struct wb_sql *sql, unsigned statement, const struct wb_sql_value *values, unsigned count)
{
    struct process *p = process_of_sql(sql);

    if (is_alone(sql)) {
        freeze(30); /* the request is on its way */
        if (is_away(p))
            return wb_fail(WB_SQL_AGAIN, "the connection was lost");
    }
    int err = real->run(sql, statement, values, count);
    if (is_alone(sql) && err >= 0) {
        look(p);
        if (sim.failing && chance_one_in(&sim.chance, 30))
            return lose_answer(p);
        freeze(30);
    }
    return err;
}

static int shaky_commit(struct wb_sql *sql)
{
    struct process *p = process_of_sql(sql);

    if (sim.failing && chance_one_in(&sim.chance, 60))
        return wb_fail(WB_SQL_AGAIN, "the connection was lost before the commit");
    int err = real->commit(sql);
    if (err < 0 || is_alone(sql) || sql->kind == WB_SQL_READ)
        return err;
    look(p);
    if (sim.failing && chance_one_in(&sim.chance, 20))
        return lose_answer(p);
    sql->in_transaction = false; /* it is over, whatever happens to the answer */
    freeze(30);
    return 0;
}

/* ---- what machines do
 * ---------------------------------------------------------------------------------------------------- */

static struct process *start_process(unsigned machine)
{
    must(sim.count < PROCESSES);
    struct process *p = &sim.processes[sim.count++];

    *p = (struct process){.machine = machine, .busy = true};
    p->offset_ns = (int64_t)chance_below(&sim.chance, 1000000) * 1000000000;
    p->rate_ppm = (int64_t)chance_below(&sim.chance, 2001) - 1000;
    p->r = open_machine(&sim.place);
    real = p->r->sql->driver;
    shaky = *real;
    shaky.begin = shaky_begin;
    shaky.run = shaky_run;
    shaky.commit = shaky_commit;
    p->r->sql->driver = &shaky;
    p->busy = false;
    return p;
}

static void end_process(struct process *p)
{
    wb_registry_close(p->r);
    p->r = NULL;
}

static bool is_expected(int err)
{
    return err == 0 || err == WB_E_DOWN || err == WB_E_DENIED || err == WB_E_BUSY || err == WB_E_NOTFOUND;
}

static void publish(struct process *p, unsigned shard)
{
    struct wb_registry_shard now;
    struct wb_registry_publication publication = {
        .shard = shard, .head = p->want_head, .pages = 1, .bytes = chance_below(&sim.chance, 1000)};
    char old[WB_REGISTRY_HEAD_MAX];

    if (!wb_registry_holds(p->r, shard, NULL))
        return;
    int at = wb_registry_own_find(p->r, shard);
    snprintf(old, sizeof old, "%s", p->r->own.items[at].row.head);
    snprintf(p->want_head, sizeof p->want_head, "h%u", ++sim.heads);
    publication.old_head = old;
    int err = wb_registry_publish(p->r, &publication, &now);
    /* The database has lost what it had confirmed, or a publication whose answer was lost has happened: go on from
     * there. */
    if (err == WB_E_CORRUPT && (at = wb_registry_own_find(p->r, shard)) >= 0)
        p->r->own.items[at].row = now;
    must(err == WB_E_CORRUPT || is_expected(err));
}

static void follow_placement(struct process *p)
{
    struct wb_registry_steps steps = WB_VEC_INIT;
    struct wb_registry_view view;
    struct wb_registry_shard taken;
    int err = wb_registry_look(p->r, &view);

    must(is_expected(err));
    if (err < 0)
        return;
    must_ok(wb_registry_place(&view, &steps));
    for (size_t i = 0; i < steps.count && err != WB_E_DOWN; i++) {
        const struct wb_registry_step *s = &steps.items[i];
        if (!s->from[0] && strcmp(s->to, names[p->machine]) == 0)
            err = wb_registry_take(p->r, s->shard, &taken);
        else if (strcmp(s->from, names[p->machine]) == 0)
            err = wb_registry_hand_over(p->r, s->shard, s->to);
        must(is_expected(err));
    }
    wb_vec_release(&steps);
    wb_registry_view_release(&view);
}

static void renew(struct process *p)
{
    p->next_renewal_ms = true_ms + 1000;
    if (!p->joined) {
        int err = join_as(p->r, names[p->machine]);
        must(is_expected(err));
        p->joined = p->r->session[0] != '\0';
        return;
    }
    int err = wb_registry_renew(p->r, NULL);
    must(is_expected(err));
    /* Removed, or replaced by another process of its name. */
    if (err == WB_E_DENIED)
        p->joined = false;
    if (err == WB_E_DENIED && sim.count > MACHINES && chance_one_in(&sim.chance, 2))
        end_process(p);
}

static void act(struct process *p)
{
    unsigned shard = (unsigned)chance_below(&sim.chance, SHARDS);
    struct wb_registry_shard taken;
    int err = 0;

    p->busy = true;
    if (true_ms >= p->next_renewal_ms)
        renew(p);
    if (p->r && p->joined) {
        switch (chance_below(&sim.chance, sim.failing ? 80 : 40)) {
        case 0:
        case 1:
        case 2:
            publish(p, shard);
            break;
        case 3:
        case 4:
            follow_placement(p);
            break;
        case 41:
        case 42:
            err = wb_registry_take(p->r, shard, &taken); /* whatever it looks like */
            break;
        case 43:
            if (wb_registry_own_find(p->r, shard) >= 0)
                err = wb_registry_release(p->r, shard);
            break;
        case 44:
            if (wb_registry_own_find(p->r, shard) >= 0 && p->machine != 0)
                err = wb_registry_hand_over(p->r, shard, names[0]);
            break;
        case 45:
            must(wb_registry_anything_free(p->r) <= 1);
            break;
        default:
            break;
        }
        must(is_expected(err));
    }
    p->busy = false;
}

/* ---- what happens to them
 * -------------------------------------------------------------------------------------------------- */

/* The database as it was a while ago takes its place: what was committed since is lost. SQLite only. */
static void remember_tables(void)
{
    change_rows(&sim.place, "DROP TABLE IF EXISTS old_shard; DROP TABLE IF EXISTS old_machine;"
                            "CREATE TABLE old_shard AS SELECT * FROM webbase_shard;"
                            "CREATE TABLE old_machine AS SELECT * FROM webbase_machine");
}

static void fail_over(void)
{
    change_rows(&sim.place, "DELETE FROM webbase_shard; INSERT INTO webbase_shard SELECT * FROM old_shard;"
                            "DELETE FROM webbase_machine; INSERT INTO webbase_machine SELECT * FROM old_machine");
    wb_sql_test_server++;
    sim.failovers++;
    /* Terms that were lost are given again, to others. */
    memset(sim.publisher, 0, sizeof sim.publisher);
    look(NULL);
}

static void misfortune(void)
{
    struct process *p = &sim.processes[chance_below(&sim.chance, sim.count)];

    switch (chance_below(&sim.chance, 12)) {
    case 0:
        sim.away_until_ms = true_ms + (int64_t)chance_below(&sim.chance, 3 * LEASE);
        break;
    case 1:
    case 2:
    case 3:
        p->cut_until_ms = true_ms + (int64_t)chance_below(&sim.chance, 3 * LEASE);
        break;
    case 4:
        if (!p->busy && p->r)
            end_process(p);
        break;
    case 5:
    case 6:
        /* A process begins, perhaps while another one with its name is at work, frozen or cut off. */
        if (sim.count < PROCESSES)
            start_process((unsigned)chance_below(&sim.chance, MACHINES));
        break;
    case 7:
        database_ahead_ms += (int64_t)chance_below(&sim.chance, 4 * LEASE) - 2 * LEASE;
        look(NULL);
        break;
    case 8:
        if (!sim.place.postgres && sim.depth == 0) {
            remember_tables();
            pass(1 + (int64_t)chance_below(&sim.chance, 1000));
            fail_over();
        }
        break;
    default:
        break;
    }
}

static void print_state(void)
{
    look(NULL);
    for (unsigned i = 0; i < SHARDS; i++)
        print_error("shard %u: holder '%s', wanted '%s', term %lld\n", i, sim.view.shards.items[i].holder,
                    sim.view.shards.items[i].wanted, (long long)sim.view.shards.items[i].term);
    for (size_t i = 0; i < sim.view.machines.count; i++)
        print_error("machine %s: lease %lld ms, %s\n", sim.view.machines.items[i].name,
                    (long long)sim.view.machines.items[i].lease_ms,
                    sim.view.machines.items[i].steady ? "steady" : "not steady");
    for (unsigned i = 0; i < sim.count; i++)
        if (sim.processes[i].r)
            print_error("process %u (%s): lease %lld ms, %zu shards, %s\n", i, names[sim.processes[i].machine],
                        (long long)wb_registry_lease_left_ms(sim.processes[i].r), sim.processes[i].r->own.count,
                        wb_registry_may_take(sim.processes[i].r) ? "may take" : "may not take");
}

static unsigned count_held(void)
{
    unsigned held = 0;

    for (unsigned shard = 0; shard < SHARDS; shard++)
        for (unsigned i = 0; i < sim.count; i++)
            held += sim.processes[i].r && wb_registry_holds(sim.processes[i].r, shard, NULL);
    return held;
}

/* Everything is well again: after some leases all shards have a holder who knows it, and the cluster is even. */
static void recover(void)
{
    unsigned held = 0;

    sim.failing = false;
    sim.away_until_ms = 0;
    for (unsigned i = 0; i < sim.count; i++)
        sim.processes[i].cut_until_ms = 0;
    for (unsigned m = 0; m < MACHINES; m++) {
        bool found = false;
        for (unsigned i = 0; i < sim.count && !found; i++)
            found = sim.processes[i].r && sim.processes[i].machine == m;
        if (!found)
            start_process(m);
    }
    /* Shards go on moving, because publications change their sizes: one may be on its way at any moment. */
    for (unsigned i = 0; i < 60 && held != SHARDS; i++) {
        pass(i ? 300 : 12 * LEASE);
        held = count_held();
    }
    if (held != SHARDS)
        print_state();
    assert_int_equal(held, SHARDS);
    check_rules(&sim.place);
}

static void run_trace(bool postgres, uint64_t seed)
{
    memset(&sim, 0, sizeof sim);
    sim.chance = seed;
    own_clocks(true);
    wb_registry_test_clock = process_clock;
    must_ok(make_cluster(&sim.place, postgres, SHARDS, 1, LEASE));
    look(NULL);
    for (unsigned i = 0; i < MACHINES; i++)
        start_process(i);
    sim.failing = true;
    for (unsigned i = 0; i < 60; i++) {
        misfortune();
        pass(LEASE / 2);
    }
    recover();
    printf("# %u processes, %u takeovers, %u moves, %u publications, %u answers lost, %u failovers\n", sim.count,
           sim.takes, sim.moves, sim.publications, sim.lost, sim.failovers);
    assert_true(sim.takes > SHARDS && sim.publications > 0 && sim.lost > 0);
    for (unsigned i = 0; i < sim.count; i++)
        wb_registry_close(sim.processes[i].r);
    wb_registry_view_release(&sim.view);
    remove_cluster(&sim.place);
}

static void run_traces(bool postgres, unsigned rounds)
{
    uint64_t chance = test_seed();

    /* With WEBBASE_SEED the first trace is the one that failed. */
    for (unsigned i = 0; i < test_rounds(rounds); i++) {
        uint64_t seed = i ? chance_next(&chance) >> 16 : chance;
        printf("# trace with WEBBASE_SEED=%llu\n", (unsigned long long)seed);
        fflush(stdout);
        run_trace(postgres, seed);
    }
}

static void test_sqlite(void **state)
{
    (void)state;
    run_traces(false, 40);
}

static void test_postgres(void **state)
{
    (void)state;
    run_traces(true, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sqlite), cmocka_unit_test(test_postgres)};

    return cmocka_run_group_tests_name("registry model", tests, NULL, postgres_end);
}
