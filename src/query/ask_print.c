/*
 * ask_print.c - a tree as text that parses to the same tree.
 */
#include "query/ask_own.h"
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>

static int print_node(const struct wb_ask_node *node, struct wb_buf *out);

static int print_field(const struct wb_ask_node *node, struct wb_buf *out)
{
    if (node->field == WB_ASK_ANY)
        return 0;
    if (node->field == WB_ASK_COLUMN)
        return wb_buf_printf(out, "%.*s:", WB_SLICE_ARG(node->column));
    return wb_buf_printf(out, "%s:", wb_ask_field_name(node->field));
}

static int print_text(const struct wb_ask_node *node, struct wb_buf *out)
{
    int err = print_field(node, out);

    WB_CHECK(node->text.len > 0);
    if (err == 0 && node->kind == WB_ASK_PHRASE)
        err = wb_buf_append_char(out, '"');
    if (err == 0)
        err = wb_buf_append_slice(out, node->text);
    if (err == 0 && node->kind != WB_ASK_WORD)
        err = wb_buf_append_char(out, node->kind == WB_ASK_PHRASE ? '"' : '*');
    if (err == 0 && node->slop)
        err = wb_buf_printf(out, "~%u", node->slop);
    return err;
}

/* A value is put into quotes if it would end early, or begin with an operator. */
static int print_value(const struct wb_ask_node *node, struct wb_buf *out)
{
    bool quotes = node->text.len && strchr("<>=", node->text.ptr[0]);

    WB_CHECK(node->text.len > 0 && !memchr(node->text.ptr, '"', node->text.len));
    for (size_t i = 0; i < node->text.len; i++)
        quotes = quotes || node->text.ptr[i] == ' ' || node->text.ptr[i] == '(' || node->text.ptr[i] == ')';
    int err = print_field(node, out);
    if (err == 0)
        err = wb_buf_printf(out, quotes ? "\"%.*s\"" : "%.*s", WB_SLICE_ARG(node->text));
    return err;
}

/* The shortest of the common forms that is read as the same number. */
static int print_number(const struct wb_ask_node *node, struct wb_buf *out)
{
    static const char *const ops[] = {"", "<", "<=", ">", ">="};
    char text[64];
    int digits = 15;

    WB_CHECK(node->op < sizeof ops / sizeof *ops);
    do
        snprintf(text, sizeof text, "%.*g", digits, node->number);
    while (strtod(text, NULL) != node->number && ++digits <= 17);
    int err = print_field(node, out);
    return err < 0 ? err : wb_buf_printf(out, "%s%s", ops[node->op], text);
}

static bool at_midnight(int64_t time_ms)
{
    return time_ms % WB_DAY_MS == 0;
}

/* A date, without the time if that is midnight. */
static int print_moment(const char *op, int64_t time_ms, bool day, struct wb_buf *out)
{
    char text[WB_DATE_TEXT_MAX];

    wb_date_format(time_ms, text);
    if (day)
        text[strlen("YYYY-MM-DD")] = 0;
    return wb_buf_printf(out, "%s%s", op, text);
}

static int print_times(const struct wb_ask_node *node, struct wb_buf *out)
{
    bool fetched = node->field == WB_ASK_FETCHED, from = node->low != INT64_MIN, to = node->high != INT64_MAX;

    WB_CHECK(from || to);
    int err = fetched ? wb_buf_append_str(out, from ? "after:" : "before:") : print_field(node, out);
    if (err < 0)
        return err;
    if (!to)
        return print_moment(fetched ? "" : ">=", node->low, at_midnight(node->low), out);
    if (!from)
        return print_moment(fetched ? "" : "<", node->high + 1, at_midnight(node->high + 1), out);
    WB_CHECK(!fetched && (node->low == node->high || node->low == node->high + 1 - WB_DAY_MS));
    return print_moment("", node->low, node->low < node->high, out);
}

static int print_range(const struct wb_ask_node *node, struct wb_buf *out)
{
    if (node->field >= WB_ASK_FETCHED)
        return print_times(node, out);
    int err = print_field(node, out);
    if (err < 0)
        return err;
    if (node->low == node->high)
        return wb_buf_printf(out, "%lld", (long long)node->low);
    if (node->high == INT64_MAX)
        return wb_buf_printf(out, ">=%lld", (long long)node->low);
    if (node->low == INT64_MIN)
        return wb_buf_printf(out, "<=%lld", (long long)node->high);
    WB_CHECK(node->field == WB_ASK_STATUS && node->low % 100 == 0 && node->high == node->low + 99);
    return wb_buf_printf(out, "%lldxx", (long long)node->low / 100);
}

static int print_leaf(const struct wb_ask_node *node, struct wb_buf *out)
{
    WB_CHECK(node->kind >= WB_ASK_WORD);
    switch (node->kind) {
    case WB_ASK_VALUE:
        return print_value(node, out);
    case WB_ASK_RANGE:
        return print_range(node, out);
    case WB_ASK_NUMBER:
        return print_number(node, out);
    default:
        return print_text(node, out);
    }
}

/* A leaf as often as it counts, joined as its group is. */
static int print_leaves(const struct wb_ask_node *node, const char *between, struct wb_buf *out)
{
    int err = print_leaf(node, out);

    for (uint32_t i = 1; err == 0 && i < node->count; i++) {
        err = wb_buf_append_str(out, between);
        if (err == 0)
            err = print_leaf(node, out);
    }
    return err;
}

static int print_group(const struct wb_ask_node *node, struct wb_buf *out)
{
    int err = wb_buf_append_char(out, '(');

    if (err == 0)
        err = print_node(node, out);
    return err < 0 ? err : wb_buf_append_char(out, ')');
}

static int print_not(const struct wb_ask_node *node, struct wb_buf *out)
{
    WB_CHECK(node->item_count == 1);
    const struct wb_ask_node *item = node->items[0];
    /* A bare word may begin with a -, too. */
    bool bare = item->item_count == 0 && item->count == 1 &&
                (item->field != WB_ASK_ANY || item->kind == WB_ASK_PHRASE || item->text.ptr[0] != '-');
    int err = wb_buf_append_char(out, '-');

    if (err < 0)
        return err;
    return bare ? print_leaf(item, out) : print_group(item, out);
}

/* Whether an item needs no parentheses in its group. None are added, so that the text is not nested too deeply. */
static bool binds_tighter(const struct wb_ask_node *item, const struct wb_ask_node *group)
{
    return item->kind == WB_ASK_AND && group->kind == WB_ASK_OR;
}

static int print_node(const struct wb_ask_node *node, struct wb_buf *out)
{
    const char *between = node->kind == WB_ASK_OR ? " OR " : " ";
    int err = 0;

    if (node->item_count == 0)
        return print_leaves(node, between, out);
    if (node->kind == WB_ASK_NOT)
        return print_not(node, out);
    for (size_t i = 0; err == 0 && i < node->item_count; i++) {
        const struct wb_ask_node *item = node->items[i];
        if (i > 0)
            err = wb_buf_append_str(out, between);
        if (err < 0)
            break;
        if (item->item_count == 0)
            err = print_leaves(item, between, out);
        else if (item->kind == WB_ASK_NOT)
            err = print_not(item, out);
        else
            err = binds_tighter(item, node) ? print_node(item, out) : print_group(item, out);
    }
    return err;
}

int wb_ask_print(const struct wb_ask_node *node, struct wb_buf *text_out)
{
    return print_node(node, text_out);
}
