/*
 * fuzz_pagequery.c - arbitrary queries that facets change: the changed query is one, it has the new condition in place
 * of the old ones, and without it finds the same as before.
 */
#include "base/check.h"
#include "query/query.h"
#include "serve/page_query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_site(const struct wb_ask_node *node)
{
    return node->kind == WB_ASK_VALUE && node->field == WB_ASK_SITE;
}

/* The tree without the conditions on the site at its top level; NULL: nothing is left. */
static struct wb_ask_node *without_site(struct wb_ask_node *node)
{
    size_t left = 0;

    if (node->kind != WB_ASK_AND)
        return is_site(node) ? NULL : node;
    for (size_t i = 0; i < node->item_count; i++)
        if (!is_site(node->items[i]))
            node->items[left++] = node->items[i];
    node->item_count = left;
    /* A group that is left alone is no group any more. */
    return left == 0 ? NULL : left == 1 ? without_site(node->items[0]) : node;
}

static struct wb_ask_node *parsed(struct wb_slice text, struct wb_arena *arena)
{
    struct wb_ask_options options = {.has_column = NULL};
    struct wb_ask ask;

    return wb_ask_parse(text, &options, arena, &ask) == 0 ? ask.root : NULL;
}

/* The terms are distinct, each can be removed, and what is left is a query with one term less. */
static void check_terms(struct wb_slice query, struct wb_arena *arena)
{
    struct wb_buf rest = WB_BUF_INIT, less = WB_BUF_INIT;
    struct wb_slice term, other;
    size_t terms = 0, left = 0;

    while (wb_page_query_term(query, terms, &term, &rest) > 0)
        terms++;
    WB_CHECK(terms <= WB_ASK_NODES_MAX);
    if (terms && wb_page_query_term(query, terms - 1, &term, &rest) > 0 && rest.len && rest.len < WB_ASK_BYTES_MAX) {
        struct wb_ask_node *root = parsed(wb_buf_slice(&rest), arena);
        WB_CHECK(root);
        while (wb_page_query_term(wb_buf_slice(&rest), left, &other, &less) > 0)
            left++;
        /* A group that is left alone is no group any more: its own terms count then. */
        WB_CHECK(left + 1 == terms || terms == 1);
    }
    wb_buf_release(&rest);
    wb_buf_release(&less);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_slice query = wb_slice((const char *)data, size);
    struct wb_arena arena = {0};
    struct wb_buf refined = WB_BUF_INIT;
    struct wb_ask_node *before = parsed(query, &arena);

    WB_CHECK(wb_page_query_refine(query, "site", WB_SLICE_LIT("x.example"), &refined) == 0);
    if (before && refined.len <= WB_ASK_BYTES_MAX - 2) {
        struct wb_ask_node *after = parsed(wb_buf_slice(&refined), &arena);
        WB_CHECK(after);
        const struct wb_ask_node *term = after->kind == WB_ASK_AND ? after->items[after->item_count - 1] : after;
        WB_CHECK(is_site(term) && wb_slice_equal(term->text, WB_SLICE_LIT("x.example")));
        struct wb_ask_node *a = without_site(before), *b = without_site(after);
        WB_CHECK(!a == !b && (!a || wb_ask_equal(a, b)));
    }
    if (before)
        check_terms(query, &arena);
    wb_buf_release(&refined);
    wb_arena_release(&arena);
    return 0;
}
