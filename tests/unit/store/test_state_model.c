/*
 * test_state_model.c - states are held at any moment while another process writes, seals, takes down, compacts and
 * transfers, and carried to a shelf by what has changed. Each of them is the state after some step of the writer: the
 * repository that is made of the shelf answers everything as a twin does that has taken the same steps. The writer goes
 * on meanwhile. And writers that are killed in the middle of something leave states that can be held.
 *
 * The twin is one in memory (twin.h) for incremental designs; for batch designs, another repository.
 */
#include "state_support.h"
#include "twin.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STEPS = 70, WAIT_MS = 1, WAITS_MAX = 600000 };

/* What writer and carrier share. */
struct race {
    size_t design;
    uint64_t seed;
    bool batch;
    char from[DIR_MAX];
    pid_t carrier;
    _Atomic unsigned done;    /* steps that the writer has taken */
    _Atomic unsigned allowed; /* the writer waits before it takes more steps than this */
};

/* ---- steps ---------------------------------------------------------------------------------------------------- */

/* Pages come and go. Takedowns concern both parts of a batch design, one after the other: not here. */
static void change_pages(struct wb_store *store, uint64_t *chance, unsigned step, bool batch)
{
    for (uint64_t i = 3 + chance_below(chance, 12); i > 0; i--) {
        int64_t time_ms = 1000000 + step * 1000 + (int64_t)i * 10;
        if (!batch) {
            change_page(store, chance, time_ms);
        } else {
            struct spec spec = {.site = (uint32_t)chance_below(chance, CONVERT_SITES),
                                .number = (uint32_t)chance_below(chance, CONVERT_NUMBERS),
                                .time_ms = time_ms,
                                .size = (uint32_t)chance_below(chance, 3000),
                                .content = (uint32_t)chance_below(chance, 4)};
            int err = chance_one_in(chance, 6) ? remove_spec(store, &spec, false) : put_spec(store, &spec);
            must(err == 0 || err == WB_E_NOTFOUND);
        }
    }
    commit_store(store);
}

/* One step, which is one change that readers can see, or none. on_disk: false for the twin in memory. */
static void take_step(struct wb_store *store, const struct race *race, unsigned step, bool on_disk)
{
    uint64_t chance = race->seed + step * UINT64_C(0x51ed270b27);
    struct spec spec = {.site = (uint32_t)chance_below(&chance, CONVERT_SITES),
                        .number = (uint32_t)chance_below(&chance, CONVERT_NUMBERS),
                        .time_ms = 1000000 + step * 1000};
    uint64_t kind = chance_below(&chance, 10);
    struct wb_move_transfer_counts transferred;
    struct wb_move_compact_counts compacted;

    if (kind == 0) {
        seal_store(store);
    } else if (kind == 1 && race->batch) {
        must_ok(wb_move_transfer(store, NULL, NULL, NULL, NULL, &transferred));
    } else if (kind == 1) {
        int err = bar_spec(store, &spec, WB_STORE_BAR_PAGE, chance_one_in(&chance, 2));
        must(err == 0 || err == WB_E_NOTFOUND);
    } else if (kind == 2) {
        int err = wb_store_drop(store, 1 + (uint32_t)chance_below(&chance, 6));
        must(err == 0 || err == WB_E_NOTFOUND);
    } else if (kind == 3 && !race->batch) {
        int err = remove_spec(store, &spec, true);
        must(err == 0 || err == WB_E_NOTFOUND);
        commit_store(store);
    } else if (kind == 4) {
        if (on_disk)
            must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &compacted));
        else
            wb_twin_compact(store);
    } else {
        change_pages(store, &chance, step, race->batch);
    }
}

static int write_steps(void *context)
{
    struct race *race = context;
    struct wb_store *store = open_store(race->from, WB_STORE_WRITE);

    for (unsigned step = 0; step < STEPS; step++) {
        for (unsigned i = 0; race->allowed <= step; i++) {
            must(i < WAITS_MAX && getppid() == race->carrier);
            usleep(WAIT_MS * 1000);
        }
        if (step % 17 == 16) { /* it leaves, and another one comes */
            wb_store_close(store);
            store = open_store(race->from, WB_STORE_WRITE);
        }
        take_step(store, race, step, true);
        race->done = step + 1;
    }
    wb_store_close(store);
    return 0;
}

/* ---- the twin ------------------------------------------------------------------------------------------------- */

struct twin_of_race {
    const struct race *race;
    struct wb_store *store;
    char dir[DIR_MAX]; /* of a batch design */
    unsigned steps;
    const char *copy;
};

static void open_twin(struct twin_of_race *twin, const struct race *race)
{
    struct wb_store_history history = {WB_STORE_KEEP_ALL, 0};
    struct wb_store_options options = options_of(race->design);

    *twin = (struct twin_of_race){.race = race};
    if (race->batch) {
        test_dir(twin->dir);
        options.history = history;
        must_ok(wb_store_create(twin->dir, &options));
        twin->store = open_store(twin->dir, WB_STORE_WRITE);
    } else {
        must_ok(wb_twin_open(&twin->store));
        must_ok(wb_store_set_history(twin->store, &history));
    }
}

static int compare_with_twin(void *context)
{
    const struct twin_of_race *twin = context;
    int null = open("/dev/null", O_WRONLY);

    /* Why the copy is not the state after another step need not be said. */
    if (!getenv("WEBBASE_TRACE"))
        must(null >= 0 && dup2(null, STDERR_FILENO) >= 0);
    if (twin->race->batch) {
        compare_dirs(twin->copy, twin->dir);
    } else {
        struct wb_store *copy = open_store(twin->copy, WB_STORE_READ);
        compare_stores(copy, twin->store);
        wb_store_close(copy);
    }
    return 0;
}

/* The copy is the twin after some number of steps between first and last. */
static void expect_some_step(struct twin_of_race *twin, const char *copy, unsigned first, unsigned last)
{
    twin->copy = copy;
    for (unsigned steps = first; steps <= last; steps++) {
        for (; twin->steps < steps; twin->steps++)
            take_step(twin->store, twin->race, twin->steps, twin->race->batch);
        if (run_child(compare_with_twin, twin) == 0)
            return;
    }
    fail_msg("the copy is not the state after %u to %u steps", first, last);
}

/* ---- the race ------------------------------------------------------------------------------------------------- */

static void wait_for_steps(struct race *race, unsigned steps)
{
    for (unsigned i = 0; race->done < steps && i < WAITS_MAX; i++)
        usleep(WAIT_MS * 1000);
    must(race->done >= steps);
}

/* Carries states while the writer takes its steps. Returns how many it took while states were held. */
static unsigned carry_states(struct race *race, struct twin_of_race *twin, const char *to, uint64_t *chance)
{
    unsigned meanwhile = 0;
    struct shelf shelf;

    shelf_init(&shelf);
    while (race->done < STEPS) {
        unsigned before = race->done;
        race->allowed = before + 2; /* it is taking steps while the state is taken */
        wait_for_steps(race, before + (unsigned)chance_below(chance, 2));
        before = race->done;
        struct wb_store_state *state = shelf_hold(&shelf, race->from);
        unsigned after = race->done + 1;
        race->allowed = after + 3;
        if (after + 2 < STEPS) {
            wait_for_steps(race, after + 2); /* nobody keeps it waiting */
            meanwhile += 2;
        }
        shelf_add(&shelf, state, race->from, !chance_one_in(chance, 6));
        shelf_load(&shelf, state, to);
        wb_store_state_let_go(state);
        verify_clean(to);
        expect_some_step(twin, to, before, after < STEPS ? after : STEPS);
        remove_tree(to);
        race->allowed = STEPS;
        if (race->done + 12 < STEPS)
            wait_for_steps(race, race->done + (unsigned)chance_below(chance, 9));
    }
    shelf_release(&shelf);
    return meanwhile;
}

static struct race *new_race(void)
{
    struct race *race = mmap(NULL, sizeof *race, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    must(race != MAP_FAILED);
    race->carrier = getpid();
    return race;
}

static void make_repository(struct race *race)
{
    struct wb_store_options options = options_of(race->design);

    test_dir(race->from);
    race->batch = options.design.batch;
    options.history = (struct wb_store_history){WB_STORE_KEEP_ALL, 0};
    must_ok(wb_store_create(race->from, &options));
}

static void test_while_others_write(void **state)
{
    struct race *race = new_race();
    uint64_t chance = test_seed();
    char targets[DIR_MAX], to[DIR_MAX];

    (void)state;
    use_small_sizes(60000);
    for (unsigned round = test_rounds(DESIGNS); round > 0; round--) {
        struct twin_of_race twin;
        race->design = chance_below(&chance, DESIGNS);
        race->seed = chance_next(&chance);
        race->done = race->allowed = 0;
        fprintf(stderr, "# %s\n", designs[race->design].design);
        make_repository(race);
        test_dir(targets);
        path_in(targets, "to", to);
        pid_t writer = start_child(write_steps, race);
        open_twin(&twin, race);
        unsigned meanwhile = carry_states(race, &twin, to, &chance);
        must(end_child(writer) == 0);
        fprintf(stderr, "# %u steps while states were held\n", meanwhile);
        must(meanwhile > 0);
        wb_store_close(twin.store);
        verify_clean(race->from);
        remove_tree(race->from);
        remove_tree(targets);
    }
    munmap(race, sizeof *race);
    use_usual_sizes();
}

/* ---- killed --------------------------------------------------------------------------------------------------- */

static void test_killed_writers(void **state)
{
    struct race *race = new_race();
    uint64_t chance = test_seed();
    char targets[DIR_MAX], to[DIR_MAX];

    (void)state;
    use_small_sizes(60000);
    test_dir(targets);
    path_in(targets, "to", to);
    for (unsigned round = test_rounds(4 * DESIGNS); round > 0; round--) {
        struct wb_store_state *held;
        struct shelf shelf;
        race->design = chance_below(&chance, DESIGNS);
        race->seed = chance_next(&chance);
        race->done = 0;
        race->allowed = STEPS;
        make_repository(race);
        shelf_init(&shelf);
        for (unsigned killed = 0; killed < 3; killed++) {
            unsigned steps = (unsigned)chance_below(&chance, STEPS / 2);
            race->done = 0;
            pid_t writer = start_child(write_steps, race);
            wait_for_steps(race, steps);
            usleep((useconds_t)chance_below(&chance, 3000));
            kill(writer, SIGKILL);
            int status = end_child(writer);
            must(status == -SIGKILL || status == 0);
            held = shelf_hold(&shelf, race->from);
            shelf_add(&shelf, held, race->from, true);
            shelf_load(&shelf, held, to);
            wb_store_state_let_go(held);
            verify_clean(to);
            wb_store_close(open_store(race->from, WB_STORE_WRITE)); /* repairs what there is to repair */
            verify_clean(race->from);
            compare_dirs(to, race->from);
            remove_tree(to);
        }
        shelf_release(&shelf);
        remove_tree(race->from);
    }
    munmap(race, sizeof *race);
    use_usual_sizes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_while_others_write),
        cmocka_unit_test(test_killed_writers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
