/*
 * fuzz_ask.c - arbitrary bytes as queries: whatever is accepted can be printed and is read again as the same tree, also
 * after it was simplified; whatever is refused has a message and a place that can be shown.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"
#include "query/ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has_column(void *context, struct wb_slice name)
{
    (void)context;
    return wb_slice_equal(name, WB_SLICE_LIT("quality"));
}

static const struct wb_ask_options options = {.has_column = has_column};

static void check_node(const struct wb_ask *ask, const struct wb_ask_node *node)
{
    WB_CHECK(node->begin < node->end && node->end <= ask->text.len && node->count >= 1);
    WB_CHECK(wb_utf8_valid(node->text) && wb_utf8_valid(node->column));
    WB_CHECK(node->kind > WB_ASK_NOT ? node->item_count == 0 : node->item_count >= (node->kind == WB_ASK_NOT ? 1 : 2));
    for (size_t i = 0; i < node->item_count; i++)
        check_node(ask, node->items[i]);
}

/* The printed tree is the same tree, and prints as the same text. It may be too long to be read again. */
static void check_again(const struct wb_ask_node *node, bool simple, struct wb_arena *arena)
{
    struct wb_buf text = WB_BUF_INIT, same = WB_BUF_INIT;
    struct wb_ask again;

    WB_CHECK(wb_ask_print(node, &text) == 0 && text.len > 0);
    int err = wb_ask_parse(wb_buf_slice(&text), &options, arena, &again);
    WB_CHECK(err == 0 || text.len > WB_ASK_BYTES_MAX);
    if (err == 0) {
        WB_CHECK(!simple || wb_ask_simplify(&again, arena) == 0);
        WB_CHECK(wb_ask_equal(node, again.root));
        WB_CHECK(wb_ask_print(again.root, &same) == 0);
        WB_CHECK(wb_slice_equal(wb_buf_slice(&text), wb_buf_slice(&same)));
    }
    wb_buf_release(&text);
    wb_buf_release(&same);
}

static void check_refused(struct wb_slice text, const struct wb_ask *ask)
{
    struct wb_buf lines = WB_BUF_INIT;

    WB_CHECK(!ask->root && ask->bad_at <= text.len);
    WB_CHECK(strstr(wb_error_message(), "at character ") && wb_utf8_valid(wb_slice_str(wb_error_message())));
    WB_CHECK(wb_ask_point(text, ask->bad_at, 80, &lines) == 0);
    WB_CHECK(wb_utf8_valid(wb_buf_slice(&lines)) && lines.ptr[lines.len - 2] == '^');
    wb_buf_release(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_slice text = wb_slice(size ? (const char *)data : "", size);
    struct wb_arena arena = {0};
    struct wb_ask_sort sort;
    struct wb_ask ask;

    int err = wb_ask_parse(text, &options, &arena, &ask);
    WB_CHECK(err == 0 || err == WB_E_INVALID);
    if (err == 0) {
        WB_CHECK(ask.node_count >= 1 && ask.node_count <= WB_ASK_NODES_MAX);
        check_node(&ask, ask.root);
        check_again(ask.root, false, &arena);
        WB_CHECK(wb_ask_simplify(&ask, &arena) == 0);
        check_node(&ask, ask.root);
        check_again(ask.root, true, &arena);
    } else {
        check_refused(text, &ask);
    }
    WB_CHECK(wb_ask_sort_parse(text, &options, &sort) == 0 || (sort.field == WB_ASK_ANY && !sort.reverse));
    WB_CHECK(wb_ask_check_column(text) == 0 || wb_error_message()[0]);
    wb_arena_release(&arena);
    return 0;
}
