/* page_query.c - adding conditions to a query and removing them again. See page_query.h. */
#include "serve/page_query.h"
#include "base/utf8.h"

#include <string.h>

static const char *const fields[] = {"site", "type", "lang", "status"};

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ';
}

size_t wb_page_query_word(struct wb_slice text)
{
    size_t length = wb_utf8_length(text.ptr, text.len);
    size_t end = length ? length : 1;

    while (end < text.len && !is_blank(text.ptr[end]))
        end++;
    return end;
}

/*
 * The next part of a query that is separated by blanks, where quotes and parentheses keep blanks together. False at
 * the end.
 */
static bool next_part(struct wb_slice query, size_t *at_inout, struct wb_slice *part_out)
{
    size_t at = *at_inout, depth = 0;
    bool quoted = false;

    while (at < query.len && is_blank(query.ptr[at]))
        at++;
    size_t begin = at;
    for (; at < query.len && (quoted || depth || !is_blank(query.ptr[at])); at++) {
        char c = query.ptr[at];
        if (c == '"')
            quoted = !quoted;
        else if (!quoted && c == '(')
            depth++;
        else if (!quoted && c == ')' && depth)
            depth--;
    }
    *at_inout = at;
    *part_out = wb_slice(query.ptr + begin, at - begin);
    return at > begin;
}

static bool is_of_field(struct wb_slice part, const char *field)
{
    size_t len = strlen(field);

    return part.len > len + 1 && memcmp(part.ptr, field, len) == 0 && part.ptr[len] == ':';
}

static bool is_term(struct wb_slice part)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (is_of_field(part, fields[i]))
            return true;
    return false;
}

/* Whether OR stands at the top level: then the query must be put into parentheses, and has no terms. */
static bool has_or(struct wb_slice query)
{
    struct wb_slice part;

    for (size_t at = 0; next_part(query, &at, &part);)
        if (wb_slice_equal(part, WB_SLICE_LIT("OR")))
            return true;
    return false;
}

static int append_part(struct wb_buf *out, struct wb_slice part)
{
    int err = out->len ? wb_buf_append_char(out, ' ') : 0;

    return err < 0 ? err : wb_buf_append_slice(out, part);
}

/* A value that contains anything but the usual characters of hosts and types is quoted; the quotes in it are dropped.
 */
static int append_term(struct wb_buf *out, const char *field, struct wb_slice value)
{
    bool plain = true;

    for (size_t i = 0; i < value.len; i++)
        plain = plain && !is_blank(value.ptr[i]) && !strchr("\"()", value.ptr[i]);
    int err = wb_buf_printf(out, "%s%s:%s", out->len ? " " : "", field, plain ? "" : "\"");
    for (size_t i = 0; i < value.len && err == 0; i++)
        if (value.ptr[i] != '"')
            err = wb_buf_append_char(out, value.ptr[i]);
    return err < 0 || plain ? err : wb_buf_append_char(out, '"');
}

int wb_page_query_refine(struct wb_slice query, const char *field, struct wb_slice value, struct wb_buf *out)
{
    struct wb_slice part;
    int err = 0;

    if (has_or(query)) {
        err = wb_buf_printf(out, "(%.*s)", WB_SLICE_ARG(query));
        return err < 0 ? err : append_term(out, field, value);
    }
    for (size_t at = 0; err == 0 && next_part(query, &at, &part);)
        if (!is_of_field(part, field))
            err = append_part(out, part);
    return err < 0 ? err : append_term(out, field, value);
}

bool wb_page_query_has(struct wb_slice query, const char *field, struct wb_slice *value_out)
{
    struct wb_slice part;

    *value_out = WB_SLICE_EMPTY;
    if (has_or(query))
        return false;
    for (size_t at = 0; next_part(query, &at, &part);)
        if (is_of_field(part, field)) {
            size_t skip = strlen(field) + 1;
            *value_out = wb_slice(part.ptr + skip, part.len - skip);
            return true;
        }
    return false;
}

int wb_page_query_term(struct wb_slice query, size_t number, struct wb_slice *term_out, struct wb_buf *rest_out)
{
    struct wb_slice part;
    size_t seen = 0;
    int err = 0;

    *term_out = WB_SLICE_EMPTY;
    wb_buf_clear(rest_out);
    if (has_or(query))
        return 0;
    for (size_t at = 0; err == 0 && next_part(query, &at, &part);) {
        if (is_term(part) && seen++ == number)
            *term_out = part;
        else
            err = append_part(rest_out, part);
    }
    return err < 0 ? err : term_out->len > 0;
}
