/* test_store_nodes.c - the door passes calls about nodes on, and says so if an organisation has none. */
#include "store_support.h"

#include "move/move.h"
#include "store/organisation.h"


static int each_node(struct wb_store *store, int (*each)(void *context, const struct wb_store_node *node),
                     void *context)
{
    (void)store;
    return each(context, &(struct wb_store_node){.number = 7});
}

static int see_node(void *context, const struct wb_store_node *node)
{
    *(uint32_t *)context = node->number;
    return 42;
}

static void test_passed_on(void **state)
{
    struct wb_store_ops ops = {.node_each = each_node};
    struct wb_store store = {.magic = WB_STORE_MAGIC, .mode = WB_STORE_WRITE, .ops = &ops};
    uint32_t number = 0;

    (void)state;
    assert_int_equal(wb_store_node_each(&store, see_node, &number), 42);
    assert_int_equal(number, 7);
    assert_int_equal(wb_move_node_add(&store, "", true, NULL, NULL, NULL), WB_E_INVALID);
    assert_int_equal(wb_move_node_remove(&store, 0, NULL, NULL), WB_E_NOTFOUND);
}

static void test_no_nodes(void **state)
{
    struct wb_store_ops ops = {0};
    struct wb_store store = {.magic = WB_STORE_MAGIC, .mode = WB_STORE_WRITE, .ops = &ops};
    uint32_t number = 5;

    (void)state;
    assert_int_equal(wb_store_node_each(&store, see_node, &number), WB_E_INVALID);
    assert_string_equal(wb_error_message(), "this repository has no nodes");
    assert_int_equal(wb_move_node_add(&store, "/disk", false, NULL, NULL, &number), WB_E_INVALID);
    assert_int_equal(number, 0);
    assert_int_equal(wb_move_node_remove(&store, 1, NULL, NULL), WB_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_passed_on), cmocka_unit_test(test_no_nodes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
