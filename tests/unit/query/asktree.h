/*
 * asktree.h - trees of the query language as short text, for tables of expectations.
 *
 *   and(w[alpha] title.p[bet] not(q[a b]~3) site=[x.org] size[..4999] rank>=0.5 w[gamma]x2)
 */
#ifndef WB_TESTS_ASKTREE_H
#define WB_TESTS_ASKTREE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "query/ask.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static inline void show_bound(int64_t bound, struct wb_buf *out)
{
    if (bound != INT64_MIN && bound != INT64_MAX)
        assert_int_equal(wb_buf_printf(out, "%lld", (long long)bound), 0);
}

static inline void show_leaf(const struct wb_ask_node *node, struct wb_buf *out)
{
    static const char *const ops[] = {"=", "<", "<=", ">", ">="};
    static const char letters[] = {[WB_ASK_WORD] = 'w', [WB_ASK_PREFIX] = 'p', [WB_ASK_PHRASE] = 'q'};
    const char *name = wb_ask_field_name(node->field);

    assert_int_equal(wb_buf_append_slice(out, node->column), 0);
    assert_int_equal(wb_buf_append_str(out, name), 0);
    if (node->kind == WB_ASK_NUMBER) {
        assert_int_equal(wb_buf_printf(out, "%s%g", ops[node->op], node->number), 0);
    } else if (node->kind == WB_ASK_VALUE) {
        assert_int_equal(wb_buf_printf(out, "=[%.*s]", WB_SLICE_ARG(node->text)), 0);
    } else if (node->kind == WB_ASK_RANGE) {
        assert_int_equal(wb_buf_append_char(out, '['), 0);
        show_bound(node->low, out);
        assert_int_equal(wb_buf_append_str(out, ".."), 0);
        show_bound(node->high, out);
        assert_int_equal(wb_buf_append_char(out, ']'), 0);
    } else {
        assert_int_equal(
            wb_buf_printf(out, "%s%c[%.*s]", *name ? "." : "", letters[node->kind], WB_SLICE_ARG(node->text)), 0);
    }
    if (node->slop)
        assert_int_equal(wb_buf_printf(out, "~%u", node->slop), 0);
    if (node->count != 1)
        assert_int_equal(wb_buf_printf(out, "x%u", node->count), 0);
}

static inline void show_tree(const struct wb_ask_node *node, struct wb_buf *out)
{
    static const char *const names[] = {[WB_ASK_AND] = "and(", [WB_ASK_OR] = "or(", [WB_ASK_NOT] = "not("};

    assert_true(node->end > node->begin);
    if (node->item_count == 0) {
        show_leaf(node, out);
        return;
    }
    assert_int_equal(wb_buf_append_str(out, names[node->kind]), 0);
    for (size_t i = 0; i < node->item_count; i++) {
        if (i > 0)
            assert_int_equal(wb_buf_append_char(out, ' '), 0);
        show_tree(node->items[i], out);
    }
    assert_int_equal(wb_buf_append_char(out, ')'), 0);
}

/* The columns of the tests: quality and color-2. */
static inline bool test_has_column(void *context, struct wb_slice name)
{
    (void)context;
    return wb_slice_equal(name, WB_SLICE_LIT("quality")) || wb_slice_equal(name, WB_SLICE_LIT("color-2"));
}

static const struct wb_ask_options test_options = {.has_column = test_has_column};

/* Fails unless the buffer holds that text; empties it. */
static inline void expect_text(struct wb_buf *got, const char *want)
{
    assert_int_equal(wb_buf_terminate(got), 0);
    assert_string_equal(got->ptr, want);
    wb_buf_clear(got);
}

#endif
