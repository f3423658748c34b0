/* page_query.c - adding conditions to a query and removing them again. See page_query.h. */
#include "serve/page_query.h"
#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"
#include "query/query.h"

#include <string.h>

/* A parsed query, as far as it is one. */
struct query_parts {
    struct wb_arena arena;
    struct wb_ask ask;
    struct wb_ask_node **items; /* that all have to match; none if the query has OR at its top level, or is wrong */
    size_t count;
    struct wb_ask_node *single; /* the whole query, if it has only one part */
    bool is_or;
};

/* Columns of users count as words here, which is the same text. */
static int read_parts(struct wb_slice query, struct query_parts *q)
{
    struct wb_ask_options options = {.has_column = NULL};

    *q = (struct query_parts){.count = 0};
    int err = wb_ask_parse(query, &options, &q->arena, &q->ask);
    if (err < 0)
        return err == WB_E_INVALID ? 0 : err;
    q->is_or = q->ask.root->kind == WB_ASK_OR;
    if (q->ask.root->kind == WB_ASK_AND) {
        q->items = q->ask.root->items;
        q->count = q->ask.root->item_count;
    } else if (!q->is_or) {
        q->single = q->ask.root;
        q->items = &q->single;
        q->count = 1;
    }
    return 0;
}

static bool is_term(const struct wb_ask_node *node)
{
    return (node->kind == WB_ASK_VALUE || node->kind == WB_ASK_RANGE) &&
           (node->field == WB_ASK_SITE || node->field == WB_ASK_TYPE || node->field == WB_ASK_LANG ||
            node->field == WB_ASK_STATUS);
}

static bool is_of_field(const struct wb_ask_node *node, const char *field)
{
    return is_term(node) && strcmp(wb_ask_field_name(node->field), field) == 0;
}

/* Appends the items that are left in the list, which loses those that are NULL. grouped: something will follow. */
static int print_items(struct query_parts *q, bool grouped, struct wb_buf *out)
{
    WB_CHECK(q->count > 0);
    WB_CHECK(!q->is_or);
    struct wb_ask_node root = *q->ask.root;
    size_t left = 0;

    for (size_t i = 0; i < q->count; i++)
        if (q->items[i])
            q->items[left++] = q->items[i];
    root.items = q->items;
    root.item_count = left;
    if (left == 0)
        return 0;
    if (left > 1)
        return wb_ask_print(&root, out);
    bool braces = grouped && q->items[0]->kind == WB_ASK_OR;
    int err = braces ? wb_buf_append_char(out, '(') : 0;
    if (err == 0)
        err = wb_ask_print(q->items[0], out);
    return err < 0 || !braces ? err : wb_buf_append_char(out, ')');
}

/* A value that contains more than the usual characters of hosts and types is quoted; the quotes in it are dropped. */
static int append_term(struct wb_buf *out, const char *field, struct wb_slice value)
{
    bool plain = true;

    for (size_t i = 0; i < value.len; i++)
        plain = plain && (unsigned char)value.ptr[i] > ' ' && !strchr("\"()", value.ptr[i]);
    int err = wb_buf_printf(out, "%s%s:%s", out->len ? " " : "", field, plain ? "" : "\"");
    for (size_t i = 0; i < value.len && err == 0; i++)
        if (value.ptr[i] != '"')
            err = wb_buf_append_char(out, value.ptr[i]);
    return err < 0 || plain ? err : wb_buf_append_char(out, '"');
}

/* As typed if possible. In parentheses, a parenthesis without a partner would get another meaning. */
static int append_whole(struct wb_slice query, const struct query_parts *q, struct wb_buf *out)
{
    WB_CHECK(!q->is_or || q->count == 0);
    if (!q->is_or)
        return wb_buf_append_slice(out, query);
    int err = wb_buf_append_char(out, '(');
    if (err == 0)
        err = wb_ask_print(q->ask.root, out);
    return err < 0 ? err : wb_buf_append_char(out, ')');
}

int wb_page_query_refine(struct wb_slice query, const char *field, struct wb_slice value, struct wb_buf *out)
{
    struct query_parts q;
    bool replaced = false;

    int err = read_parts(query, &q);
    for (size_t i = 0; err == 0 && i < q.count; i++)
        if (is_of_field(q.items[i], field)) {
            q.items[i] = NULL;
            replaced = true;
        }
    if (err == 0 && replaced)
        err = print_items(&q, true, out);
    else if (err == 0)
        err = append_whole(query, &q, out);
    if (err == 0)
        err = append_term(out, field, value);
    wb_arena_release(&q.arena);
    return err;
}

bool wb_page_query_has(struct wb_slice query, const char *field)
{
    struct query_parts q;
    bool has = false;

    if (read_parts(query, &q) == 0)
        for (size_t i = 0; i < q.count; i++)
            has |= is_of_field(q.items[i], field);
    wb_arena_release(&q.arena);
    return has;
}

int wb_page_query_term(struct wb_slice query, size_t number, struct wb_slice *term_out, struct wb_buf *rest_out)
{
    struct query_parts q;
    size_t seen = 0;

    *term_out = WB_SLICE_EMPTY;
    wb_buf_clear(rest_out);
    int err = read_parts(query, &q);
    for (size_t i = 0; err == 0 && i < q.count; i++) {
        struct wb_ask_node *node = q.items[i];
        if (!is_term(node) || seen++ != number)
            continue;
        WB_CHECK(node->begin <= node->end && node->end <= query.len);
        *term_out = wb_slice(query.ptr + node->begin, node->end - node->begin);
        q.items[i] = NULL;
        err = print_items(&q, false, rest_out);
        break;
    }
    wb_arena_release(&q.arena);
    return err < 0 ? err : term_out->len > 0;
}

size_t wb_page_query_word(struct wb_slice text)
{
    WB_CHECK(text.len > 0);
    size_t length = wb_utf8_length(text.ptr, text.len);
    size_t end = length ? length : 1;

    while (end < text.len && (unsigned char)text.ptr[end] > ' ')
        end++;
    WB_CHECK(end <= text.len);
    return end;
}
