/*
 * test_spill.c - several queues at once against plain lists, on a full disk, and how little memory an idle queue
 * takes.
 */
#include "../journal/edit_support.h"
#include "crawl/spill.h"

enum { QUEUES = 40, ITEM_MAX = 64 << 10 };

/* An item is a function of its number. */
static size_t item_bytes(uint64_t number)
{
    uint64_t state = number;
    uint64_t kind = chance_below(&state, 500);
    uint64_t limit = kind == 0 ? ITEM_MAX + 1 : kind < 20 ? 9000 : 160;

    return (size_t)chance_below(&state, limit);
}

static struct wb_slice item_of(uint64_t number)
{
    static char bytes[ITEM_MAX];
    size_t len = item_bytes(number);

    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(number * 31 + i * 7);
    return wb_slice(bytes, len);
}

static void expect_item(struct wb_slice found, uint64_t number)
{
    struct wb_slice item = item_of(number);

    assert_int_equal(found.len, item.len);
    assert_memory_equal(found.ptr, item.ptr, item.len);
}

/* The twin of a queue: items are numbered in the order in which they are pushed. */
struct model {
    struct wb_spill_queue queue;
    uint64_t base, pushed, popped;
};

static void push_one(struct wb_spill *spill, struct model *m)
{
    assert_int_equal(wb_spill_push(spill, &m->queue, item_of(m->base + m->pushed)), 0);
    m->pushed++;
}

static void pop_one(struct wb_spill *spill, struct model *m, struct wb_buf *mem)
{
    struct wb_slice item;
    int got = wb_spill_pop(spill, &m->queue, mem, &item);

    assert_int_equal(got, m->popped < m->pushed);
    if (got)
        expect_item(item, m->base + m->popped++);
    else
        assert_int_equal(item.len, 0);
}

static void test_model(void **state)
{
    uint64_t chance = test_seed(), most = 0;
    static struct model models[QUEUES];
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_spill *spill;

    (void)state;
    memset(models, 0, sizeof models);
    assert_int_equal(wb_spill_open(test_root, &spill), 0);
    for (unsigned i = 0; i < QUEUES; i++)
        models[i].base = chance_next(&chance) >> 8;
    for (unsigned round = 0; round < 3000; round++) {
        struct model *m = &models[chance_below(&chance, QUEUES)];
        uint64_t count = chance_below(&chance, 200), kind = chance_below(&chance, 100);
        bool filling = round % 1000 < 600;
        if (kind == 0) {
            wb_spill_clear(spill, &m->queue);
            m->popped = m->pushed;
            assert_int_equal(wb_spill_queue_bytes(&m->queue), 0);
        }
        for (uint64_t k = 0; k < count; k++)
            if (chance_below(&chance, 100) < (filling ? 65 : 35))
                push_one(spill, m);
            else
                pop_one(spill, m, &mem);
        assert_int_equal(m->queue.count, m->pushed - m->popped);
        most = wb_spill_bytes(spill) > most ? wb_spill_bytes(spill) : most;
    }
    assert_true(most > 1 << 20);
    for (unsigned i = 0; i < QUEUES; i++) {
        while (models[i].popped < models[i].pushed)
            pop_one(spill, &models[i], &mem);
        pop_one(spill, &models[i], &mem);
        assert_int_equal(wb_spill_queue_bytes(&models[i].queue), 0);
    }
    assert_int_equal(wb_spill_bytes(spill), 0);
    wb_buf_release(&mem);
    wb_spill_close(spill);
}

/* How much memory a queue of short items takes, however long it is. */
static void test_memory(void **state)
{
    struct wb_spill_queue queue = {0};
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_spill *spill;
    struct wb_slice item;
    size_t most = 0;
    char text[ITEM_MAX + 1];

    (void)state;
    memset(text, 'x', sizeof text);
    assert_int_equal(wb_spill_open(test_root, &spill), 0);
    assert_int_equal(wb_spill_pop(spill, &queue, &mem, &item), 0);
    assert_int_equal(wb_spill_push(spill, &queue, wb_slice(text, 20)), 0);
    assert_in_range(wb_spill_queue_bytes(&queue), 20, 64);
    assert_int_equal(wb_spill_bytes(spill), 0);
    for (unsigned i = 0; i < 100000; i++) {
        assert_int_equal(wb_spill_push(spill, &queue, wb_slice(text, 60 + i % 40)), 0);
        most = wb_spill_queue_bytes(&queue) > most ? wb_spill_queue_bytes(&queue) : most;
    }
    assert_true(wb_spill_bytes(spill) > 7 << 20);
    for (unsigned i = 0; i < 100001; i++) {
        assert_int_equal(wb_spill_pop(spill, &queue, &mem, &item), 1);
        assert_int_equal(item.len, i ? 60 + (i - 1) % 40 : 20);
        most = wb_spill_queue_bytes(&queue) > most ? wb_spill_queue_bytes(&queue) : most;
    }
    print_message("# a queue of 100000 short items takes at most %zu bytes of memory\n", most);
    assert_true(most < 10000);
    assert_int_equal(wb_spill_queue_bytes(&queue), 0);
    /* A long item takes memory only while it is in the queue. */
    assert_int_equal(wb_spill_push(spill, &queue, wb_slice(text, ITEM_MAX)), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(wb_spill_push(spill, &queue, wb_slice(text, 10)), 0);
    assert_int_equal(wb_spill_pop(spill, &queue, &mem, &item), 1);
    assert_int_equal(item.len, ITEM_MAX);
    assert_int_equal(wb_spill_pop(spill, &queue, &mem, &item), 1);
    assert_true(wb_spill_queue_bytes(&queue) < 10000);
    assert_int_equal(wb_spill_push(spill, &queue, wb_slice(text, ITEM_MAX + 1)), WB_E_LIMIT);
    wb_spill_clear(spill, &queue);
    wb_buf_release(&mem);
    wb_spill_close(spill);
}

/* Every operation fails once: what was pushed stays, what failed is not there, and the queue still works. */
static void test_faults(void **state)
{
    static const unsigned kinds[] = {WB_FAULT_WRITE, WB_FAULT_READ, WB_FAULT_ALLOC, WB_FAULT_ANY};
    uint64_t chance = test_seed();

    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        struct model m = {.base = chance_next(&chance) >> 8};
        struct wb_buf mem = WB_BUF_INIT;
        struct wb_spill *spill;
        unsigned failures = 0;
        assert_int_equal(wb_spill_open(test_root, &spill), 0);
        for (unsigned i = 0; i < 20000; i++) {
            struct wb_slice item;
            bool push = chance_below(&chance, 100) < (i < 10000 ? 60 : 40);
            uint64_t before = m.queue.count;
            struct wb_slice pushed = item_of(m.base + m.pushed);
            wb_fault_arm(kinds[k], 1 + chance_below(&chance, 3), ENOSPC);
            int err = push ? wb_spill_push(spill, &m.queue, pushed) : wb_spill_pop(spill, &m.queue, &mem, &item);
            bool struck = wb_fault_struck();
            wb_fault_disarm();
            if (err < 0) {
                assert_true(struck && (err == WB_E_IO || err == WB_E_NOMEM));
                assert_int_equal(m.queue.count, before);
                failures++;
            } else if (push) {
                m.pushed++;
            } else if (err == 1) {
                expect_item(item, m.base + m.popped++);
            }
        }
        assert_true(failures > 10);
        while (m.popped < m.pushed)
            pop_one(spill, &m, &mem);
        assert_int_equal(wb_spill_bytes(spill), 0);
        wb_buf_release(&mem);
        wb_spill_close(spill);
    }
}

/* The file gives its space back once it is empty, and still works afterwards. */
static void test_many_blocks(void **state)
{
    static struct model models[3];
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_spill *spill;

    (void)state;
    memset(models, 0, sizeof models);
    assert_int_equal(wb_spill_open(test_root, &spill), 0);
    for (unsigned life = 0; life < 2; life++) {
        for (unsigned i = 0; wb_spill_bytes(spill) < 24 << 20; i++)
            push_one(spill, &models[i % 3]);
        for (unsigned i = 0; i < 3; i++)
            while (models[i].popped < models[i].pushed)
                pop_one(spill, &models[i], &mem);
        assert_int_equal(wb_spill_bytes(spill), 0);
    }
    wb_buf_release(&mem);
    wb_spill_close(spill);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_many_blocks),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
