/* test_sorter.c - any records, with any amount of memory, come out as qsort() would order them. */
#include "table_support.h"

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

struct setting {
    size_t memory_bytes;
    unsigned threads;
};

static const struct setting settings[] = {{64 << 20, 0}, {0, 0}, {0, 1}, {5 << 20, 2}, {16 << 20, 3}, {1 << 20, 7}};

static struct wb_sorter *open_sorter(struct setting setting)
{
    struct wb_sorter *sorter;

    OK(wb_sorter_open(&(struct wb_sorter_options){test_root, setting.memory_bytes, setting.threads}, &sorter));
    return sorter;
}

static void check_sorted(struct wb_sorter *sorter, struct list *list)
{
    struct wb_table_record record;

    list_sort(list);
    for (size_t i = 0; i < list->count; i++) {
        assert_int_equal(wb_sorter_next(sorter, &record), 1);
        assert_true(same_bytes(record.key, list_key(list, i)));
        assert_true(same_bytes(record.value, list_value(list, i)));
    }
    for (int again = 0; again < 2; again++)
        assert_int_equal(wb_sorter_next(sorter, &record), 0);
}

static struct wb_sorter_stat sort_list(struct list *list, struct setting setting)
{
    struct wb_sorter *sorter = open_sorter(setting);
    struct wb_sorter_stat stat;
    uint64_t bytes = 0;

    for (size_t i = 0; i < list->count; i++) {
        OK(wb_sorter_add(sorter, list_key(list, i), list_value(list, i)));
        bytes += list_key(list, i).len + list_value(list, i).len;
    }
    OK(wb_sorter_sort(sorter));
    check_sorted(sorter, list);
    wb_sorter_stat(sorter, &stat);
    assert_int_equal(stat.records, list->count);
    assert_int_equal(stat.bytes, bytes);
    assert_true((stat.runs == 0) == (stat.passes == 0) && (stat.runs == 0) == (stat.run_bytes == 0));
    wb_sorter_close(sorter);
    return stat;
}

static unsigned files_in_root(void)
{
    unsigned count = 0;
    DIR *dir = opendir(test_root);

    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2;
}

/* ---- what is sorted ------------------------------------------------------------------------------ */

static void add_random(struct list *list, uint64_t *chance, size_t bytes, size_t value_max)
{
    char memory[700];
    char *value = malloc(value_max + 1);

    assert_non_null(value);
    memset(value, 'v', value_max + 1);
    while (list->bytes.len < bytes) {
        struct wb_slice key = random_key(chance, memory, sizeof memory);
        size_t len = chance_below(chance, value_max + 1);
        snprintf(value, value_max + 1 < 20 ? value_max + 1 : 20, "%zu", list->count); /* tells equal keys apart */
        list_add(list, key, wb_slice(value, len));
    }
    free(value);
}

static void test_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(settings); i++) {
        struct list list = {0};
        struct wb_sorter_stat stat = sort_list(&list, settings[i]);
        assert_int_equal(stat.runs, 0);
        wb_sorter_close(open_sorter(settings[i]));
    }
    wb_sorter_close(NULL);
}

static void test_model(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (size_t i = 0; i < COUNT(settings); i++)
        for (size_t round = 0; round < 5; round++) {
            static const size_t sizes[] = {10, 3000, 1 << 20, 9 << 20, 24 << 20};
            struct list list = {0};
            add_random(&list, &chance, sizes[round], round == 3 ? 2000 : 30);
            struct wb_sorter_stat stat = sort_list(&list, settings[i]);
            if (round < 3 || settings[i].memory_bytes == 64 << 20)
                assert_int_equal(stat.runs, 0); /* it fits: nothing is written */
            if (round == 4 && settings[i].memory_bytes < 17 << 20)
                assert_true(stat.runs > 1 && stat.passes >= 1 && stat.run_bytes > 0);
            list_release(&list);
        }
    assert_int_equal(files_in_root(), 0);
}

/* So many records that the later runs are compressed and the earlier ones are not. */
static void test_packed(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned threads = 0; threads < 3; threads += 2) {
        struct list list = {0};
        add_random(&list, &chance, 40 << 20, 100);
        struct wb_sorter_stat stat = sort_list(&list, (struct setting){4 << 20, threads});
        assert_true(stat.run_bytes > 16 << 20);
        assert_true(stat.run_bytes < list.bytes.len / 3 * 2);
        list_release(&list);
    }
}

/* So many runs in so little memory that they are merged more than once. */
static void test_passes(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned threads = 0; threads < 3; threads += 2) {
        struct list list = {0};
        char key[8], *value = malloc(400 << 10);
        assert_non_null(value);
        memset(value, 'x', 400 << 10);
        for (size_t i = 0; i < 300; i++) { /* inputs with records this large need much memory */
            wb_put64_be(key, chance_below(&chance, 100));
            wb_put64(value, i);
            list_add(&list, wb_slice(key, 8),
                     wb_slice(value, i % 3 ? (200u << 10) + chance_below(&chance, 200 << 10) : 8));
        }
        struct wb_sorter_stat stat = sort_list(&list, (struct setting){0, threads});
        assert_true(stat.passes > 1);
        assert_true(stat.run_bytes > list.bytes.len);
        list_release(&list);
        free(value);
    }
}

static void test_equal_keys(void **state)
{
    static const char *const keys[] = {"", "same", "the same key, and longer than eight bytes"};

    (void)state;
    for (size_t i = 0; i < 2 * COUNT(settings); i++) {
        struct list list = {0};
        size_t count = i < COUNT(settings) ? 1000 : 300000;
        for (uint32_t n = 0; n < count; n++) {
            char value[4];
            wb_put32(value, n);
            list_add(&list, wb_slice_str(keys[n % 7 ? 2 : n % 2]), wb_slice(value, 4));
        }
        sort_list(&list, settings[i % COUNT(settings)]);
        list_release(&list);
    }
}

/* Orders that are hard for quicksort, and very long keys that differ only at the end. */
static void test_shapes(void **state)
{
    char *key = calloc(1, WB_TABLE_KEY_MAX);

    (void)state;
    assert_non_null(key);
    for (unsigned shape = 0; shape < 5; shape++) {
        struct list list = {0};
        size_t count = shape == 4 ? 40 : 100000;
        for (size_t n = 0; n < count; n++) {
            size_t len = shape == 4 ? WB_TABLE_KEY_MAX - n % 3 : 8;
            if (shape == 0)
                wb_put64_be(key, n);
            else if (shape == 1)
                wb_put64_be(key, count - n);
            else if (shape == 2)
                wb_put64_be(key, n % 2 ? n : count - n); /* organ pipes */
            else if (shape == 3)
                wb_put64_be(key, n * n % 1009);
            else
                key[WB_TABLE_KEY_MAX - 8] = (char)(n * 7);
            list_add(&list, wb_slice(key, len), WB_SLICE_LIT("v"));
        }
        sort_list(&list, settings[shape % 2]);
        list_release(&list);
    }
    free(key);
}

static void test_too_large(void **state)
{
    struct wb_sorter *sorter = open_sorter((struct setting){4 << 20, 0});
    struct wb_table_record record;
    char *value = calloc(1, 8 << 20);

    (void)state;
    assert_non_null(value);
    assert_int_equal(wb_sorter_add(sorter, WB_SLICE_LIT("k"), wb_slice(value, 8 << 20)), WB_E_LIMIT);
    assert_int_equal(wb_sorter_add(sorter, wb_slice(value, WB_TABLE_KEY_MAX + 1), WB_SLICE_EMPTY), WB_E_LIMIT);
    OK(wb_sorter_add(sorter, WB_SLICE_LIT("k"), wb_slice(value, 400 << 10))); /* the sorter can still be used */
    OK(wb_sorter_sort(sorter));
    assert_int_equal(wb_sorter_next(sorter, &record), 1);
    assert_int_equal(record.value.len, 400 << 10);
    wb_sorter_close(sorter);
    free(value);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A sanitizer replaces the allocator, so the heap cannot be watched. */
#ifndef WB_TEST_SANITIZED

/* How many bytes are allocated, according to the allocator. */
static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static atomic_bool watching;
static size_t heap_peak;

static void *watch_heap(void *context)
{
    (void)context;
    while (watching) {
        size_t now = heap_bytes();
        if (now > heap_peak)
            heap_peak = now;
        usleep(200);
    }
    return NULL;
}

static size_t sort_and_watch(struct setting setting, size_t bytes, size_t value_max, uint64_t seed)
{
    pthread_t watcher;
    struct wb_table_record record;
    char memory[700], *value = calloc(1, value_max + 1);
    size_t added = 0, before;
    uint64_t chance = seed;

    assert_non_null(value);
    before = heap_bytes();
    heap_peak = 0;
    watching = true;
    assert_int_equal(pthread_create(&watcher, NULL, watch_heap, NULL), 0);
    struct wb_sorter *sorter = open_sorter(setting);
    while (added < bytes) {
        struct wb_slice key = random_key(&chance, memory, sizeof memory);
        size_t len = chance_below(&chance, value_max + 1);
        OK(wb_sorter_add(sorter, key, wb_slice(value, len)));
        added += key.len + len;
    }
    OK(wb_sorter_sort(sorter));
    while (wb_sorter_next(sorter, &record) == 1)
        ;
    wb_sorter_close(sorter);
    watching = false;
    pthread_join(watcher, NULL);
    free(value);
    return heap_peak > before ? heap_peak - before : 0;
}

static void test_memory(void **state)
{
    static const struct setting bounds[] = {{4 << 20, 0}, {4 << 20, 2}, {4 << 20, 7}, {16 << 20, 1}, {64 << 20, 2}};
    uint64_t seed = test_seed();

    (void)state;
    for (size_t i = 0; i < COUNT(bounds); i++)
        for (size_t large = 0; large < 2; large++) {
            /* With little memory, so many records that some runs are compressed too. */
            size_t bytes = (bounds[i].memory_bytes < 16 << 20 ? 12 : 3) * bounds[i].memory_bytes;
            size_t peak = sort_and_watch(bounds[i], bytes, large ? bounds[i].memory_bytes / 10 : 50, seed + i);
            printf("# %zu MiB, %u threads: peak %zu KiB\n", bounds[i].memory_bytes >> 20, bounds[i].threads,
                   peak >> 10);
            assert_true(peak > bounds[i].memory_bytes / 4); /* otherwise nothing was watched */
            assert_true(peak <= bounds[i].memory_bytes);
        }
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),   cmocka_unit_test(test_model),      cmocka_unit_test(test_packed),
        cmocka_unit_test(test_passes),    cmocka_unit_test(test_equal_keys), cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_too_large),
#ifndef WB_TEST_SANITIZED
        cmocka_unit_test(test_memory),
#endif
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
