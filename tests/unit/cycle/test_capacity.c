/* test_capacity.c - who comes into a repository of limited size: decided as by a naive twin, on random values. */
#include "cycle/capacity.h"
#include "cycle_support.h"

static void test_full(void **state)
{
    struct wb_capacity none = {0, 0}, pages = {10, 0}, bytes = {0, 1000};

    (void)state;
    assert_false(wb_capacity_full(&none, 1000000, 1000000));
    assert_false(wb_capacity_full(&pages, 9, 1000000));
    assert_true(wb_capacity_full(&pages, 10, 0));
    assert_false(wb_capacity_full(&bytes, 8, 800));
    assert_true(wb_capacity_full(&bytes, 10, 950)); /* no room for another average page */
    assert_true(wb_capacity_full(&bytes, 1, 5000));
}

static void test_newcomers(void **state)
{
    struct wb_webdb_page page = {.has_content = true};

    (void)state;
    assert_true(wb_capacity_is_stored(&page) && !wb_capacity_is_newcomer(&page));
    page = (struct wb_webdb_page){.location = WB_SLICE_LIT("http://a/"), .outcome = WB_OUTCOME_REDIRECT};
    assert_true(wb_capacity_is_stored(&page));
    page = (struct wb_webdb_page){.outcome = WB_OUTCOME_UNCHANGED}; /* of an unwanted type: it takes no place */
    assert_true(!wb_capacity_is_stored(&page) && !wb_capacity_is_newcomer(&page));
    page = (struct wb_webdb_page){.outcome = WB_OUTCOME_STORED}; /* evicted */
    assert_true(wb_capacity_is_newcomer(&page));
    page = (struct wb_webdb_page){.outcome = 0};
    assert_true(wb_capacity_is_newcomer(&page));
}

/* Replaces the least stored value, or fills a free place, as long as that is a gain. */
static size_t naive(double *stored, size_t count, size_t room, const double *new, size_t new_count, bool *in)
{
    size_t admitted = 0;

    for (size_t n = 0; n < new_count; n++) {
        size_t best = SIZE_MAX, least = SIZE_MAX;
        for (size_t i = 0; i < new_count; i++)
            if (!in[i] && (best == SIZE_MAX || new[i] > new[best]))
                best = i;
        for (size_t i = 0; i < count; i++)
            if (stored[i] >= 0 && (least == SIZE_MAX || stored[i] < stored[least]))
                least = i;
        if (room) {
            room--;
        } else {
            if (least == SIZE_MAX || !(new[best] > stored[least]))
                break;
            stored[least] = -1;
        }
        in[best] = true;
        admitted++;
    }
    return admitted;
}

static void test_admission(void **state)
{
    uint64_t seed = 88172645463325252ull;

    (void)state;
    for (int round = 0; round < 500; round++) {
        struct wb_admission admission = {.room = 0};
        double stored[12], new[12];
        bool in[12] = {false};
        size_t count, new_count;
#define RANDOM(n) (seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17, seed % (n))
        count = RANDOM(13);
        new_count = RANDOM(13);
        admission.room = RANDOM(4);
        admission.newcomers.max = admission.room + count;
        for (size_t i = 0; i < count; i++) {
            struct wb_webdb_page page = {.has_content = true, .score = (double)RANDOM(6)};
            stored[i] = page.score;
            assert_int_equal(wb_admission_stored(&admission, &page), 0);
        }
        for (size_t i = 0; i < new_count; i++) {
            struct wb_webdb_page page = {.number = i, .score = (double)RANDOM(8)};
            page.failures = (uint16_t)RANDOM(3);
            new[i] = page.score / (1 << page.failures);
            assert_int_equal(wb_admission_offer(&admission, &page), 0);
        }
        wb_admission_decide(&admission);
        size_t want = naive(stored, count, admission.room, new, new_count, in);
        assert_int_equal(admission.newcomers.count, want);
        for (size_t i = 0; i < new_count; i++)
            assert_int_equal(wb_admission_has(&admission, i), in[i]);
        wb_admission_release(&admission);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_newcomers),
        cmocka_unit_test(test_admission),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
