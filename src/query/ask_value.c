/*
 * ask_value.c - what follows the colon of a field: values as typed, numbers, sizes and dates, with operators.
 *
 * Ranges of whole numbers and of times become inclusive bounds, so that nobody has to deal with operators again:
 * size:>5k is [5001, no bound].
 */
#include "query/ask_own.h"
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"

/* The first and the last moment that can be written with four digits for the year. */
#define TIME_MIN INT64_C(-62135596800000) /* 0001-01-01 */
#define TIME_MAX INT64_C(253402300799999) /* the end of 9999 */

static char here(const struct wb_ask_parser *p)
{
    return wb_ask_ends(p, p->at) ? ' ' : p->text.ptr[p->at];
}

/* ---- values as typed ------------------------------------------------------------------------------------------ */

static int quoted_value(struct wb_ask_parser *p, struct wb_slice name, struct wb_slice *value_out)
{
    size_t quote = p->at;

    WB_CHECK(here(p) == '"');
    const char *close = memchr(p->text.ptr + quote + 1, '"', p->text.len - quote - 1);
    if (!close)
        return wb_ask_bad(p, quote, "this quote is never closed");
    p->at = (size_t)(close - p->text.ptr) + 1;
    *value_out = wb_slice_trim(wb_slice(p->text.ptr + quote + 1, p->at - quote - 2));
    if (value_out->len == 0)
        return wb_ask_bad(p, quote, "%.*s: has an empty value", WB_SLICE_ARG(name));
    return 0;
}

/* A value ends at a blank, or at a ) that closes a group. URLs may contain parentheses. */
static int take_value(struct wb_ask_parser *p, struct wb_slice name, struct wb_slice *value_out)
{
    size_t begin = p->at, open = 0;

    *value_out = WB_SLICE_EMPTY;
    if (here(p) == '"')
        return quoted_value(p, name, value_out);
    if (here(p) == '(')
        return wb_ask_bad(p, begin, "%.*s: takes a single value; write (%.*s:A OR %.*s:B)", WB_SLICE_ARG(name),
                          WB_SLICE_ARG(name), WB_SLICE_ARG(name));
    for (; here(p) != ' '; p->at++) {
        if (here(p) == '"')
            return wb_ask_bad(p, p->at, "a value cannot contain a quote; in a URL, write %%22");
        if (here(p) == ')' && open == 0 && p->depth > 0)
            break;
        if (here(p) == '(')
            open++;
        else if (here(p) == ')' && open > 0)
            open--;
    }
    *value_out = wb_slice(p->text.ptr + begin, p->at - begin);
    if (value_out->len == 0)
        return wb_ask_bad(p, begin, "%.*s: needs a value right behind it", WB_SLICE_ARG(name));
    return 0;
}

static int add_value(struct wb_ask_parser *p, enum wb_ask_field field, struct wb_slice name, size_t begin,
                     struct wb_ask_node **node_out)
{
    size_t at = p->at;
    struct wb_slice value;

    int err = take_value(p, name, &value);
    if (err == 0 && field == WB_ASK_DUP && !wb_slice_equal(value, WB_SLICE_LIT("no")))
        return wb_ask_bad(p, at, "dup: takes only one value, no");
    if (err == 0)
        err = wb_ask_add(p, WB_ASK_VALUE, field, begin, node_out);
    if (err == 0)
        (*node_out)->text = value;
    return err;
}

/* ---- operators and operands ----------------------------------------------------------------------------------- */

/* Reads an operator, if there is one; = is the same as none. */
static enum wb_ask_op take_op(struct wb_ask_parser *p)
{
    char first = here(p);

    if (first != '<' && first != '>' && first != '=')
        return WB_ASK_EQ;
    p->at++;
    if (first == '=')
        return WB_ASK_EQ;
    bool equal = here(p) == '=';
    p->at += equal;
    return first == '<' ? (equal ? WB_ASK_LE : WB_ASK_LT) : (equal ? WB_ASK_GE : WB_ASK_GT);
}

/* Reads up to a blank or a parenthesis. */
static struct wb_slice take_operand(struct wb_ask_parser *p)
{
    size_t begin = p->at;

    while (here(p) != ' ' && here(p) != '(' && here(p) != ')')
        p->at++;
    return wb_slice(p->text.ptr + begin, p->at - begin);
}

/* Takes a decimal digit into *value; false if the number becomes too large. */
static bool add_digit(int64_t *value, char digit)
{
    WB_CHECK(*value >= 0 && *value <= WB_ASK_NUMBER_MAX);
    *value = *value * 10 + (digit - '0');
    return *value <= WB_ASK_NUMBER_MAX;
}

enum number_fault { NUMBER_FINE, NUMBER_BAD, NUMBER_LARGE };

/* How many zeros a unit at the end stands for; takes it off. */
static int take_unit(struct wb_slice *text)
{
    static const char units[] = "kmg";
    const char *unit = text->len ? strchr(units, wb_ascii_lower(text->ptr[text->len - 1])) : NULL;

    if (!unit || !*unit)
        return 0;
    text->len--;
    return (int)(unit - units + 1) * 3;
}

/* Reads a whole number; with units also 50k and 1.5M. */
static enum number_fault read_whole(struct wb_slice text, bool units, int64_t *value_out)
{
    int zeros = units ? take_unit(&text) : 0, fraction = -1;
    bool negative = text.len && text.ptr[0] == '-', large = false, any = false;
    int64_t value = 0;

    *value_out = 0;
    for (size_t i = negative; i < text.len; i++) {
        if (text.ptr[i] == '.' && fraction < 0 && zeros > 0) {
            fraction = 0;
            continue;
        }
        /* 1.5k is whole, 1.2345k is not. */
        if (!wb_ascii_is_digit(text.ptr[i]) || fraction == zeros)
            return NUMBER_BAD;
        any = true;
        fraction += fraction >= 0;
        large = large || !add_digit(&value, text.ptr[i]);
        value = large ? 0 : value;
    }
    if (!any)
        return NUMBER_BAD;
    for (int i = fraction < 0 ? 0 : fraction; i < zeros && !large; i++)
        large = !add_digit(&value, '0');
    *value_out = large ? 0 : negative ? -value : value;
    return large ? NUMBER_LARGE : NUMBER_FINE;
}

/* ---- ranges --------------------------------------------------------------------------------------------------- */

/* Turns an operator and the span first..last (a number, a moment, a day) into bounds. */
static void set_bounds(struct wb_ask_node *node, enum wb_ask_op op, int64_t first, int64_t last)
{
    WB_CHECK(first <= last && first > INT64_MIN && last < INT64_MAX);
    node->low = INT64_MIN;
    node->high = INT64_MAX;
    if (op == WB_ASK_EQ || op == WB_ASK_GE)
        node->low = first;
    else if (op == WB_ASK_GT)
        node->low = last + 1;
    if (op == WB_ASK_EQ || op == WB_ASK_LE)
        node->high = last;
    else if (op == WB_ASK_LT)
        node->high = first - 1;
}

static int add_range(struct wb_ask_parser *p, enum wb_ask_field field, size_t begin, enum wb_ask_op op, int64_t first,
                     int64_t last, struct wb_ask_node **node_out)
{
    int err = wb_ask_add(p, WB_ASK_RANGE, field, begin, node_out);

    if (err == 0)
        set_bounds(*node_out, op, first, last);
    return err;
}

/* Status codes are also written by their class, as in 4xx. */
static bool is_class(struct wb_slice text)
{
    return text.len == 3 && wb_ascii_is_digit(text.ptr[0]) && wb_ascii_lower(text.ptr[1]) == 'x' &&
           wb_ascii_lower(text.ptr[2]) == 'x';
}

static int parse_whole(struct wb_ask_parser *p, const struct wb_ask_name *name, size_t begin,
                       struct wb_ask_node **node_out)
{
    bool size = name->field == WB_ASK_SIZE;

    WB_CHECK(name->field >= WB_ASK_STATUS && name->field <= WB_ASK_VERSIONS);
    enum wb_ask_op op = take_op(p);
    size_t at = p->at;
    struct wb_slice text = take_operand(p);
    int64_t value;

    if (name->field == WB_ASK_STATUS && op == WB_ASK_EQ && is_class(text)) {
        value = (text.ptr[0] - '0') * 100;
        return add_range(p, name->field, begin, op, value, value + 99, node_out);
    }
    enum number_fault fault = read_whole(text, size, &value);
    if (fault == NUMBER_LARGE)
        return wb_ask_bad(p, at, "the number is too large");
    if (fault == NUMBER_BAD)
        return wb_ask_bad(p, at, "%s: needs a whole number, as in %s:>=10%s", name->name, name->name, size ? "k" : "");
    return add_range(p, name->field, begin, op, value, value, node_out);
}

/* after: and before: are operators themselves. */
static enum wb_ask_op take_date_op(struct wb_ask_parser *p, enum wb_ask_class class)
{
    if (class == WB_ASK_CLASS_AFTER)
        return WB_ASK_GE;
    return class == WB_ASK_CLASS_BEFORE ? WB_ASK_LT : take_op(p);
}

static int parse_date(struct wb_ask_parser *p, const struct wb_ask_name *name, size_t begin,
                      struct wb_ask_node **node_out)
{
    WB_CHECK(name->field >= WB_ASK_FETCHED && name->field <= WB_ASK_MODIFIED);
    enum wb_ask_op op = take_date_op(p, name->class);
    size_t at = p->at;
    struct wb_slice text = take_operand(p);
    int64_t time_ms;

    if (!wb_date_parse(text, &time_ms))
        return wb_ask_bad(p, at, "%s: needs a date, as in %s:%s2026-01-31", name->name, name->name,
                          name->class == WB_ASK_CLASS_DATE ? ">=" : "");
    int64_t last = text.len == strlen("YYYY-MM-DD") ? time_ms + WB_DAY_MS - 1 : time_ms;
    /* A time zone can move a date out of the years that can be written, and so can the end of the last day. */
    if (time_ms < TIME_MIN || time_ms > TIME_MAX || (last == TIME_MAX && (op == WB_ASK_GT || op == WB_ASK_LE)))
        return wb_ask_bad(p, at, "the date must be in the years 1 to 9998");
    return add_range(p, name->field, begin, op, time_ms, last, node_out);
}

static int parse_number(struct wb_ask_parser *p, enum wb_ask_field field, struct wb_slice name, enum wb_ask_op op,
                        size_t begin, struct wb_ask_node **node_out)
{
    size_t at = p->at;
    double number;

    WB_CHECK(field >= WB_ASK_RANK && field <= WB_ASK_COLUMN);
    if (!wb_slice_to_double(take_operand(p), &number))
        return wb_ask_bad(p, at, "%.*s: needs a number here, as in %.*s:>=0.5", WB_SLICE_ARG(name), WB_SLICE_ARG(name));
    int err = wb_ask_add(p, WB_ASK_NUMBER, field, begin, node_out);
    if (err == 0) {
        (*node_out)->op = op;
        (*node_out)->number = number;
    }
    return err;
}

static int parse_column(struct wb_ask_parser *p, struct wb_slice name, size_t begin, struct wb_ask_node **node_out)
{
    enum wb_ask_op op = take_op(p);
    int err = op == WB_ASK_EQ ? add_value(p, WB_ASK_COLUMN, name, begin, node_out)
                              : parse_number(p, WB_ASK_COLUMN, name, op, begin, node_out);

    if (err == 0)
        (*node_out)->column = name;
    return err;
}

int wb_ask_parse_value(struct wb_ask_parser *p, const struct wb_ask_name *name, struct wb_slice column, size_t begin,
                       struct wb_ask_node **node_out)
{
    switch (name->class) {
    case WB_ASK_CLASS_VALUE:
    case WB_ASK_CLASS_DUP:
        return add_value(p, name->field, wb_slice_str(name->name), begin, node_out);
    case WB_ASK_CLASS_WHOLE:
        return parse_whole(p, name, begin, node_out);
    case WB_ASK_CLASS_DATE:
    case WB_ASK_CLASS_AFTER:
    case WB_ASK_CLASS_BEFORE:
        return parse_date(p, name, begin, node_out);
    case WB_ASK_CLASS_NUMBER:
        return parse_number(p, name->field, column, take_op(p), begin, node_out);
    case WB_ASK_CLASS_COLUMN:
        return parse_column(p, column, begin, node_out);
    case WB_ASK_CLASS_TEXT:
        break;
    }
    WB_CHECK(false); /* a text field has no value */
    return WB_E_INVALID;
}
