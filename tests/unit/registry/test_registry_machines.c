/*
 * test_registry_machines.c - real processes as machines, on a real PostgreSQL server and on SQLite, by real clocks.
 * They are killed between any two statements, frozen for longer than a lease, cut off by a proxy, and one comes back
 * under its name while the earlier process is only frozen. The database is away for longer than a lease.
 *
 * Each process writes down, in memory that all share, at which moments it believed that it holds a shard.
 * CLOCK_BOOTTIME is the same for all, so it is the true time. Afterwards, in the order of time, the terms of each shard
 * must only grow.
 */
#include "registry_support.h"
#include "../children.h"
#include "../postgresserver.h"
#include "../rounds.h"
#include "../tcpproxy.h"
#include "os/clock.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MACHINES = 3, SHARDS = 8, REAL_LEASE = 2000, BELIEFS = 200000 };

/* A process believed this at that moment. */
struct belief {
    int64_t at_ns;
    int process, shard;
    int64_t term;
};

static struct {
    atomic_uint count, publications, processes;
    atomic_bool stop;
    struct belief beliefs[BELIEFS];
} * shared;

static struct machine {
    struct cluster_place *place;
    struct tcp_proxy *proxy; /* between it and the server; NULL: none */
    char url[512], name[8];
    pid_t pid;
} machines[MACHINES + 1];

static void note_beliefs(const struct wb_registry *r, int process)
{
    for (unsigned shard = 0; shard < SHARDS; shard++) {
        int64_t term;
        if (!wb_registry_holds(r, shard, &term))
            continue;
        /* What is believed before and after a moment is believed at it, even if the process was frozen in between. */
        int64_t at_ns = wb_clock_mono_ns();
        unsigned n = wb_registry_holds(r, shard, NULL) ? atomic_fetch_add(&shared->count, 1) : BELIEFS;
        if (n < BELIEFS)
            shared->beliefs[n] = (struct belief){at_ns, process, (int)shard, term};
    }
}

static void follow(struct wb_registry *r, const char *name)
{
    struct wb_registry_steps steps = WB_VEC_INIT;
    struct wb_registry_view view;
    struct wb_registry_shard taken;

    if (wb_registry_look(r, &view) < 0)
        return;
    must_ok(wb_registry_place(&view, &steps));
    for (size_t i = 0; i < steps.count; i++) {
        if (!steps.items[i].from[0] && strcmp(steps.items[i].to, name) == 0)
            (void)wb_registry_take(r, steps.items[i].shard, &taken);
        else if (strcmp(steps.items[i].from, name) == 0)
            (void)wb_registry_hand_over(r, steps.items[i].shard, steps.items[i].to);
    }
    wb_vec_release(&steps);
    wb_registry_view_release(&view);
}

static void publish(struct wb_registry *r, int process, unsigned shard, unsigned n)
{
    struct wb_registry_publication p = {.shard = shard, .bytes = 1};
    struct wb_registry_shard now;
    char head[WB_REGISTRY_HEAD_MAX], old[WB_REGISTRY_HEAD_MAX];

    int at = wb_registry_own_find(r, shard);
    if (at < 0)
        return;
    snprintf(old, sizeof old, "%s", r->own.items[at].row.head);
    snprintf(head, sizeof head, "%d-%u", process, n);
    p.old_head = old;
    p.head = head;
    int err = wb_registry_publish(r, &p, &now);
    /* A publication whose answer was lost for good has happened. */
    if (err == WB_E_CORRUPT && (at = wb_registry_own_find(r, shard)) >= 0)
        r->own.items[at].row = now;
    atomic_fetch_add(&shared->publications, err == 0);
}

static int be_machine(void *context)
{
    const struct machine *m = context;
    int process = (int)atomic_fetch_add(&shared->processes, 1);
    struct wb_registry *r = NULL;
    int64_t next_ns = 0;

    postgres_leave();
    wb_sql_reopen_tries = 2;
    while (!atomic_load(&shared->stop) && (wb_registry_open(m->url, &r) < 0 || join_as(r, m->name) < 0)) {
        wb_registry_close(r);
        r = NULL;
        usleep(100000);
    }
    for (unsigned n = 0; !atomic_load(&shared->stop); n++) {
        if (wb_clock_mono_ns() >= next_ns) {
            next_ns = wb_clock_mono_ns() + REAL_LEASE / 8 * INT64_C(1000000);
            if (wb_registry_renew(r, NULL) == WB_E_DENIED)
                break;
        }
        note_beliefs(r, process);
        if (n % 4 == 0)
            follow(r, m->name);
        publish(r, process, n % SHARDS, n);
        usleep(10000);
    }
    wb_registry_close(r);
    return 0;
}

static void start_machine(struct machine *m)
{
    m->pid = start_child(be_machine, m);
}

static void end_machine(pid_t *pid, int signal_number)
{
    if (*pid > 0) {
        kill(*pid, signal_number);
        kill(*pid, SIGCONT);
        must(waitpid(*pid, NULL, 0) == *pid);
    }
    *pid = 0;
}

/* ---- afterwards -----------------------------------------------------------------------------------------------------
 */

static int compare_beliefs(const void *a, const void *b)
{
    const struct belief *x = a, *y = b;

    if (x->shard != y->shard)
        return x->shard - y->shard;
    return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

/*
 * Sorted by time, the beliefs in a shard must not go from one process to another and back, or down in their terms: then
 * at some moment two believed it.
 */
static void check_beliefs(void)
{
    unsigned count = atomic_load(&shared->count);

    must(count > 0 && count < BELIEFS);
    qsort(shared->beliefs, count, sizeof *shared->beliefs, compare_beliefs);
    for (unsigned i = 1; i < count; i++) {
        const struct belief *x = &shared->beliefs[i - 1], *y = &shared->beliefs[i];
        bool same = x->process == y->process && x->term == y->term;
        if (x->shard == y->shard && !same && y->term <= x->term) {
            print_error("shard %d: process %d in term %lld, and %.3f s later process %d in term %lld\n", x->shard,
                        x->process, (long long)x->term, (double)(y->at_ns - x->at_ns) / 1e9, y->process,
                        (long long)y->term);
            must(!"terms and holders follow each other");
        }
    }
}

/* Waits until each shard has a holder whose lease lasts. */
static void await_holders(const struct cluster_place *p)
{
    for (unsigned tries = 0;; tries++) {
        struct wb_registry_view view;
        unsigned held = 0;
        must_ok(wb_registry_look(p->admin, &view));
        for (unsigned i = 0; i < SHARDS; i++) {
            const struct wb_registry_machine *m = wb_registry_view_machine(&view, view.shards.items[i].holder);
            held += m && m->lease_ms > 0;
        }
        wb_registry_view_release(&view);
        if (held == SHARDS)
            return;
        must(tries < 1200);
        usleep(100000);
    }
}

/* ---- what happens
 * ------------------------------------------------------------------------------------------------------ */

static void hurt(struct machine *m, uint64_t *chance)
{
    unsigned ms = REAL_LEASE / 2 + (unsigned)chance_below(chance, REAL_LEASE);
    pid_t frozen = m->pid;

    switch (chance_below(chance, m->proxy ? 6 : 3)) {
    case 0: /* killed between any two statements, and back at once */
        end_machine(&m->pid, SIGKILL);
        start_machine(m);
        break;
    case 1: /* frozen, perhaps for longer than a lease */
        kill(m->pid, SIGSTOP);
        usleep(ms * 1000);
        kill(m->pid, SIGCONT);
        break;
    case 2: /* frozen, and another process begins under its name; then it thaws */
        kill(m->pid, SIGSTOP);
        start_machine(m);
        usleep(2 * ms * 1000);
        kill(frozen, SIGCONT);
        usleep(200000);
        end_machine(&frozen, SIGKILL);
        break;
    case 3:
        proxy_refuse(m->proxy, true);
        proxy_cut(m->proxy);
        usleep(2 * ms * 1000);
        proxy_refuse(m->proxy, false);
        break;
    case 4: /* what it asks is done, and it does not hear of it */
        proxy_silent(m->proxy, true);
        usleep(ms * 1000);
        proxy_cut(m->proxy);
        proxy_silent(m->proxy, false);
        break;
    default:
        proxy_lose(m->proxy, chance_one_in(chance, 2) ? "COMMIT" : "webbase_", 1 + (unsigned)chance_below(chance, 9),
                   false);
        usleep(ms * 1000);
        proxy_lose(m->proxy, NULL, 0, false);
        break;
    }
}

static void run_machines(bool postgres, unsigned rounds)
{
    struct cluster_place place;
    uint64_t chance = test_seed();
    char socket_path[512];

    own_clocks(false);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(shared != MAP_FAILED);
    must_ok(make_cluster(&place, postgres, SHARDS, 1, REAL_LEASE));
    memset(machines, 0, sizeof machines);
    for (unsigned i = 0; i < MACHINES; i++) {
        struct machine *m = &machines[i];
        m->place = &place;
        snprintf(m->name, sizeof m->name, "m%u", i);
        snprintf(m->url, sizeof m->url, "%s", place.url);
        if (postgres) {
            postgres_socket(socket_path, sizeof socket_path);
            m->proxy = proxy_start(socket_path);
            snprintf(m->url, sizeof m->url, "postgres://webbase@127.0.0.1:%d/postgres?sslmode=disable&%s",
                     proxy_port(m->proxy), strstr(place.url, "options="));
        }
    }
    for (unsigned i = 0; i < MACHINES; i++)
        start_machine(&machines[i]);
    await_holders(&place);
    for (unsigned round = 0; round < rounds; round++)
        hurt(&machines[chance_below(&chance, MACHINES)], &chance);
    if (postgres) {
        /* The database is away for all of them, for longer than a lease. */
        for (unsigned i = 0; i < MACHINES; i++) {
            proxy_refuse(machines[i].proxy, true);
            proxy_cut(machines[i].proxy);
        }
        usleep(2 * REAL_LEASE * 1000);
        for (unsigned i = 0; i < MACHINES; i++)
            proxy_refuse(machines[i].proxy, false);
    }
    await_holders(&place);
    atomic_store(&shared->stop, true);
    for (unsigned i = 0; i < MACHINES; i++) {
        must(waitpid(machines[i].pid, NULL, 0) == machines[i].pid);
        if (machines[i].proxy)
            proxy_stop(machines[i].proxy);
    }
    printf("# %u processes, %u publications, %u looks at what they hold\n", atomic_load(&shared->processes),
           atomic_load(&shared->publications), atomic_load(&shared->count));
    check_beliefs();
    check_rules(&place);
    assert_true(atomic_load(&shared->publications) > 0);
    remove_cluster(&place);
    munmap(shared, sizeof *shared);
}

static void test_sqlite(void **state)
{
    (void)state;
    run_machines(false, test_rounds(20));
}

static void test_postgres(void **state)
{
    (void)state;
    run_machines(true, test_rounds(30));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sqlite), cmocka_unit_test(test_postgres)};

    return cmocka_run_group_tests_name("registry machines", tests, NULL, postgres_end);
}
