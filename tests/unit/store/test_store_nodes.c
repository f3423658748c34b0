/* test_store_nodes.c - the door passes calls about nodes on, and says so if an organisation has none. */
#include "store_support.h"

#include "store/organisation.h"

static int calls;

static int each_node(struct wb_store *store, int (*each)(void *context, const struct wb_store_node *node),
                     void *context)
{
    (void)store;
    return each(context, &(struct wb_store_node){.number = 7});
}

static int add_node(struct wb_store *store, const char *dir, bool update, wb_store_progress progress, void *context,
                    uint32_t *number_out)
{
    must(store->mode == WB_STORE_WRITE && strcmp(dir, "/disk") == 0 && update && !progress && !context);
    *number_out = 8;
    calls++;
    return 0;
}

static int remove_node(struct wb_store *store, uint32_t number, wb_store_progress progress, void *context)
{
    must(store->mode == WB_STORE_WRITE && number == 9 && !progress && !context);
    calls++;
    return 0;
}

static int see_node(void *context, const struct wb_store_node *node)
{
    *(uint32_t *)context = node->number;
    return 42;
}

static void test_passed_on(void **state)
{
    struct wb_store_ops ops = {.node_each = each_node, .node_add = add_node, .node_remove = remove_node};
    struct wb_store store = {.magic = WB_STORE_MAGIC, .mode = WB_STORE_WRITE, .ops = &ops};
    uint32_t number = 0;

    (void)state;
    assert_int_equal(wb_store_node_each(&store, see_node, &number), 42);
    assert_int_equal(number, 7);
    must_ok(wb_store_node_add(&store, "/disk", true, NULL, NULL, &number));
    assert_int_equal(number, 8);
    must_ok(wb_store_node_add(&store, "/disk", true, NULL, NULL, NULL));
    assert_int_equal(wb_store_node_add(&store, "", true, NULL, NULL, NULL), WB_E_INVALID);
    must_ok(wb_store_node_remove(&store, 9, NULL, NULL));
    assert_int_equal(wb_store_node_remove(&store, 0, NULL, NULL), WB_E_NOTFOUND);
    assert_int_equal(calls, 3);
}

static void test_no_nodes(void **state)
{
    struct wb_store_ops ops = {0};
    struct wb_store store = {.magic = WB_STORE_MAGIC, .mode = WB_STORE_WRITE, .ops = &ops};
    uint32_t number = 5;

    (void)state;
    assert_int_equal(wb_store_node_each(&store, see_node, &number), WB_E_INVALID);
    assert_string_equal(wb_error_message(), "this repository has no nodes");
    assert_int_equal(wb_store_node_add(&store, "/disk", false, NULL, NULL, &number), WB_E_INVALID);
    assert_int_equal(number, 0);
    assert_int_equal(wb_store_node_remove(&store, 1, NULL, NULL), WB_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_passed_on), cmocka_unit_test(test_no_nodes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
