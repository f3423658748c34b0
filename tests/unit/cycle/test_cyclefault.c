/*
 * test_cyclefault.c - every step of the cycle while one operation after the other fails.
 *
 * Whatever fails, the step says so or does its work; what it leaves behind is a sound repository, and the same step
 * done again comes to the same end as if nothing had been.
 */
#include "../rounds.h"
#include "cycle_support.h"
#include "os/fault.h"

#include <errno.h>

#define NTH_MAX 20000

static uint64_t chance;

static void ignore(void *context, const char *file, uint64_t offset, const char *message)
{
    fail_msg("%s at %llu: %s (%s)", file, (unsigned long long)offset, message, (char *)context);
}

static void assert_sound(const char *dir, const char *when)
{
    struct wb_webdb_count count;
    struct wb_store_verify_counts verify;

    ok(wb_webdb_check(dir, ignore, (void *)when, &count));
    ok(wb_store_verify(dir, NULL, NULL, NULL, NULL, &verify));
    assert_int_equal(verify.problems, 0);
}

/* Early operations one by one, later ones in strides. */
static uint64_t next(uint64_t nth)
{
    return nth + test_stride(&chance) + nth / 8;
}

struct step {
    const char *name;
    void (*prepare)(const char *dir);
    int (*work)(const char *dir);
    void (*check)(const char *dir);
};

static void run_step(const struct step *step, unsigned kinds)
{
    bool struck = true;

    for (uint64_t nth = 1; struck && nth < NTH_MAX; nth = next(nth)) {
        void *state = NULL;
        assert_int_equal(set_up_repository(&state), 0);
        step->prepare(state);
        wb_fault_arm(kinds, nth, ENOSPC);
        int err = step->work(state);
        struck = wb_fault_struck();
        wb_fault_disarm();
        if (!struck)
            ok(err);
        assert_sound(state, step->name);
        ok(step->work(state));
        step->check(state);
        assert_sound(state, step->name);
        assert_int_equal(tear_down_repository(&state), 0);
    }
    assert_false(struck);
}

/* ---- pages ----------------------------------------------------------------------------------------------- */

static const char *const urls[] = {"http://h.test/a", "http://h.test/b", "http://h.test/gone", "http://h.test/expires",
                                   "http://i.test/x"};

static void prepare_pages(const char *dir)
{
    int64_t now = wb_clock_wall_ms();
    struct wb_webdb_page pages[COUNT(urls)];

    for (size_t i = 0; i < COUNT(urls); i++) {
        pages[i] = fetched_page(urls[i], now - 20 * WB_DAY_MS);
        store_page(dir, urls[i], now - 20 * WB_DAY_MS, 90);
    }
    pages[2].flags |= WB_PAGE_GONE;
    pages[3].lifetime = 20;
    pages[3].expires_ms = now - 1000;
    pages[3].asked_ms = now - WB_DAY_MS;
    add_pages(dir, pages, COUNT(pages));
    make_site(dir, "h.test", WB_SITE_DONE, 0);
    make_site(dir, "i.test", WB_SITE_DONE, 0);
}

static int work_generate(const char *dir)
{
    struct wb_generate_options options = {.dir = dir, .budget = 3};
    struct wb_generate generate;

    int err = wb_generate(&options, NULL, &generate);
    if (err == 0) {
        assert_int_equal(generate.urls, 3);
        assert_int_equal(generate.expiring, 1);
    }
    return err;
}

static void check_generate(const char *dir)
{
    struct wb_buf asked = WB_BUF_INIT;

    read_journal(dir, WB_EDIT_ASK, &asked);
    assert_non_null(strstr(asked.ptr, "http://h.test/expires"));
    wb_buf_release(&asked);
}

static int work_expunge(const char *dir)
{
    struct wb_update_options options = {.dir = dir, .memory_bytes = SMALL_MEMORY, .threads = 1};
    struct wb_expunge_stat stat;

    return wb_expunge_expired(&options, NULL, NULL, NULL, &stat);
}

static void check_expunge(const char *dir)
{
    struct wb_webdb_page page;

    for (size_t i = 0; i < COUNT(urls); i++) {
        bool stays = i != 2 && i != 3;
        assert_int_equal(in_store(dir, urls[i]), stays);
        assert_int_equal(get_page(dir, urls[i], &page), stays);
    }
}

static int work_takedown(const char *dir)
{
    struct wb_update_options options = {.dir = dir, .memory_bytes = SMALL_MEMORY, .threads = 1};
    struct wb_expunge_stat stat;

    return wb_expunge(&options, "h.test", false, NULL, NULL, NULL, &stat);
}

static void check_takedown(const char *dir)
{
    struct wb_webdb_page page;

    for (size_t i = 0; i < COUNT(urls); i++) {
        assert_int_equal(in_store(dir, urls[i]), i == 4);
        assert_true(get_page(dir, urls[i], &page));
        assert_int_equal((page.flags & WB_PAGE_BARRED) != 0, i != 4);
        store_page(dir, urls[i], wb_clock_wall_ms() + 1000, 90);
        assert_int_equal(in_store(dir, urls[i]), i == 4);
    }
}

/* ---- announcements ------------------------------------------------------------------------------------------ */

static char *list_path(const char *dir)
{
    return wb_path_join(dir, "announced");
}

static void prepare_list(const char *dir)
{
    char *path = list_path(dir);

    ok(wb_path_replace(path, WB_SLICE_LIT("{\"changed\": [\"http://h.test/new\"], \"gone\": [\"http://h.test/a\"]}")));
    prepare_pages(dir);
    free(path);
}

static int work_push(const char *dir)
{
    char *path = list_path(dir);
    struct wb_update_options options = {.dir = dir, .memory_bytes = SMALL_MEMORY, .threads = 1};
    struct wb_webdb_merge merge;
    struct wb_push_stat stat;

    int err = path ? wb_push(dir, path, NULL, &stat) : WB_E_NOMEM;
    if (err == 0)
        err = wb_update(&options, NULL, &merge, NULL);
    free(path);
    return err;
}

static void check_push(const char *dir)
{
    struct wb_webdb_page page;

    assert_true(get_page(dir, "http://h.test/new", &page) && page.flags & WB_PAGE_PUSHED);
    assert_true(get_page(dir, "http://h.test/a", &page) && page.flags & WB_PAGE_PUSHED_GONE);
}

static const struct step steps[] = {
    {"generate", prepare_pages, work_generate, check_generate},
    {"expunge", prepare_pages, work_expunge, check_expunge},
    {"takedown", prepare_pages, work_takedown, check_takedown},
    {"push", prepare_list, work_push, check_push},
};

static void test_files_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(steps); i++)
        run_step(&steps[i], WB_FAULT_OPEN | WB_FAULT_READ | WB_FAULT_WRITE | WB_FAULT_SYNC | WB_FAULT_RENAME);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(steps); i++)
        run_step(&steps[i], WB_FAULT_ALLOC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files_fail), cmocka_unit_test(test_memory_runs_out)};

    chance = test_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
