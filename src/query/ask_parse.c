/*
 * ask_parse.c - the grammar: operators, groups, words, phrases and text fields.
 *
 *   query   = and *( "OR" and )
 *   and     = operand *( ["AND"] operand )
 *   operand = "-" operand | "(" query ")" | phrase | word | prefix "*" | field ":" value
 *   phrase  = DQUOTE text DQUOTE [ "~" number ]
 *
 * A word is everything up to the next blank: punctuation is part of it, because c++ and std::vector are words, too.
 * Parentheses are part of a word if they are balanced in it and do not begin it, as in printf(3). Otherwise they group.
 *
 * Before anything is read, the query is copied, and everything that is not text becomes blanks: malformed UTF-8,
 * control characters and the blanks of Unicode. The copy is as long as the query, so that offsets stay the same.
 * The functions call each other recursively, at most WB_ASK_DEPTH_MAX levels deep.
 */
#include "query/ask_own.h"
#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"

#include <stdalign.h>
#include <stdio.h>

static int parse_query(struct wb_ask_parser *p, struct wb_ask_node **node_out);
static int parse_operand(struct wb_ask_parser *p, struct wb_ask_node **node_out);

/* ---- small tools ---------------------------------------------------------------------------------------------- */

int wb_ask_bad(struct wb_ask_parser *p, size_t at, const char *format, ...)
{
    char what[WB_ERROR_MESSAGE_MAX / 2];
    size_t character = 1;
    va_list args;

    WB_CHECK(at <= p->text.len);
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    /* Counted in the query as typed: in the copy, a blank of Unicode is several blanks. */
    for (size_t i = 0; i < at; character++) {
        size_t len = wb_utf8_length(p->typed.ptr + i, p->typed.len - i);
        i += len ? len : 1;
    }
    p->ask->bad_at = at;
    return wb_fail(WB_E_INVALID, "in the query, at character %zu: %s", character, what);
}

void *wb_ask_take(struct wb_arena *arena, size_t size)
{
    char *at = wb_arena_take(arena, size + alignof(max_align_t) - 1);

    return at ? (void *)(((uintptr_t)at + alignof(max_align_t) - 1) & ~(uintptr_t)(alignof(max_align_t) - 1)) : NULL;
}

int wb_ask_add(struct wb_ask_parser *p, enum wb_ask_kind kind, enum wb_ask_field field, size_t begin,
               struct wb_ask_node **node_out)
{
    *node_out = NULL;
    WB_CHECK(begin <= p->at);
    if (p->ask->node_count == WB_ASK_NODES_MAX)
        return wb_ask_bad(p, begin, "the query has more than %d parts", WB_ASK_NODES_MAX);
    struct wb_ask_node *node = wb_ask_take(p->arena, sizeof *node);
    if (!node)
        return WB_E_NOMEM;
    *node = (struct wb_ask_node){.kind = kind,
                                 .field = field,
                                 .count = 1,
                                 .begin = (uint32_t)begin,
                                 .end = (uint32_t)p->at,
                                 .text = WB_SLICE_EMPTY,
                                 .column = WB_SLICE_EMPTY};
    p->ask->node_count++;
    *node_out = node;
    return 0;
}

bool wb_ask_ends(const struct wb_ask_parser *p, size_t at)
{
    return at >= p->text.len || p->text.ptr[at] == ' ';
}

static void skip_blanks(struct wb_ask_parser *p)
{
    WB_CHECK(p->at <= p->text.len);
    while (p->at < p->text.len && p->text.ptr[p->at] == ' ')
        p->at++;
}

/* The byte at p->at + ahead; a blank behind the end. */
static char peek(const struct wb_ask_parser *p, size_t ahead)
{
    return wb_ask_ends(p, p->at + ahead) ? ' ' : p->text.ptr[p->at + ahead];
}

/* Whether the next thing is that operator. */
static bool at_operator(const struct wb_ask_parser *p, struct wb_slice word)
{
    struct wb_slice rest = wb_slice(p->text.ptr + p->at, p->text.len - p->at);
    char behind = peek(p, word.len);

    return wb_slice_starts(rest, word) && (behind == ' ' || behind == '(' || behind == ')' || behind == '"');
}

static const char *next_operator(const struct wb_ask_parser *p)
{
    return at_operator(p, WB_SLICE_LIT("OR")) ? "OR" : at_operator(p, WB_SLICE_LIT("AND")) ? "AND" : NULL;
}

/* ---- words and phrases ---------------------------------------------------------------------------------------- */

/* The offset behind the parenthesis that closes the one at `at`, if that is in the same chunk; else 0. */
static size_t behind_balanced(const struct wb_ask_parser *p, size_t at)
{
    size_t open = 0;

    WB_CHECK(p->text.ptr[at] == '(');
    for (; !wb_ask_ends(p, at); at++) {
        open += p->text.ptr[at] == '(';
        if (p->text.ptr[at] == ')' && --open == 0)
            return at + 1;
    }
    return 0;
}

/* Where the word at p->at ends. */
static size_t word_end(const struct wb_ask_parser *p)
{
    size_t at = p->at;

    WB_CHECK(at < p->text.len);
    while (!wb_ask_ends(p, at) && p->text.ptr[at] != ')') {
        size_t behind = 0;
        if (p->text.ptr[at] == '(' && !(behind = behind_balanced(p, at)))
            break;
        /* As in said:"no more", where said: is not a field. */
        if (p->text.ptr[at] == '"' && at > p->at && p->text.ptr[at - 1] == ':')
            break;
        at = behind ? behind : at + 1;
    }
    return at;
}

static int parse_word(struct wb_ask_parser *p, enum wb_ask_field field, size_t begin, struct wb_ask_node **node_out)
{
    size_t at = p->at, end = word_end(p), last = end;

    WB_CHECK(end > at);
    while (last > at && p->text.ptr[last - 1] == '*')
        last--;
    if (last == at)
        return wb_ask_bad(p, at, "* needs the beginning of a word before it");
    p->at = end;
    int err = wb_ask_add(p, last < end ? WB_ASK_PREFIX : WB_ASK_WORD, field, begin, node_out);
    if (err == 0)
        (*node_out)->text = wb_slice(p->text.ptr + at, last - at);
    return err;
}

/* The ~N behind a phrase. */
static int parse_slop(struct wb_ask_parser *p, uint32_t *slop_out)
{
    size_t begin = p->at;
    uint64_t slop;

    *slop_out = 0;
    if (peek(p, 0) != '~')
        return 0;
    for (p->at++; wb_ascii_is_digit(peek(p, 0)); p->at++)
        ;
    if (p->at == begin + 1 || (peek(p, 0) != ' ' && peek(p, 0) != ')'))
        return wb_ask_bad(p, begin, "~ behind a phrase needs a number, as in \"a b\"~5");
    if (!wb_slice_to_u64(wb_slice(p->text.ptr + begin + 1, p->at - begin - 1), &slop) || slop > WB_ASK_SLOP_MAX)
        return wb_ask_bad(p, begin + 1, "the number is too large, at most %d words can be between", WB_ASK_SLOP_MAX);
    *slop_out = (uint32_t)slop;
    return 0;
}

static int parse_phrase(struct wb_ask_parser *p, enum wb_ask_field field, size_t begin, struct wb_ask_node **node_out)
{
    size_t quote = p->at;
    uint32_t slop;

    WB_CHECK(p->text.ptr[quote] == '"');
    const char *close = memchr(p->text.ptr + quote + 1, '"', p->text.len - quote - 1);
    if (!close)
        return wb_ask_bad(p, quote, "this quote is never closed");
    struct wb_slice inside =
        wb_slice_trim(wb_slice(p->text.ptr + quote + 1, (size_t)(close - p->text.ptr) - quote - 1));
    if (inside.len == 0)
        return wb_ask_bad(p, quote, "the quotes are empty");
    p->at = (size_t)(close - p->text.ptr) + 1;
    int err = parse_slop(p, &slop);
    if (err == 0)
        err = wb_ask_add(p, WB_ASK_PHRASE, field, begin, node_out);
    if (err == 0) {
        (*node_out)->text = inside;
        (*node_out)->slop = slop;
    }
    return err;
}

/* ---- fields --------------------------------------------------------------------------------------------------- */

static const struct wb_ask_name column_name = {"", WB_ASK_COLUMN, WB_ASK_CLASS_COLUMN, true};

/* The field that begins at p->at, and the bytes of its name; NULL if what is there is text. */
static const struct wb_ask_name *find_field(const struct wb_ask_parser *p, struct wb_slice *name_out)
{
    const struct wb_ask_options *options = p->options;
    size_t len = 0;

    while (len <= WB_ASK_COLUMN_BYTES_MAX && (wb_ascii_is_letter(peek(p, len)) || wb_ascii_is_digit(peek(p, len)) ||
                                              peek(p, len) == '_' || peek(p, len) == '-'))
        len++;
    *name_out = wb_slice(p->text.ptr + p->at, len);
    if (len == 0 || peek(p, len) != ':')
        return NULL;
    const struct wb_ask_name *name = wb_ask_find_name(*name_out);
    if (!name && options && options->has_column && options->has_column(options->context, *name_out))
        name = &column_name;
    return name;
}

static int parse_group(struct wb_ask_parser *p, struct wb_ask_node **node_out)
{
    size_t open = p->at;

    WB_CHECK(p->text.ptr[open] == '(');
    if (p->depth == WB_ASK_DEPTH_MAX)
        return wb_ask_bad(p, open, "more than %d parentheses are open here", WB_ASK_DEPTH_MAX);
    p->depth++;
    p->at++;
    p->before = "(";
    p->before_at = open;
    int err = parse_query(p, node_out);
    if (err < 0)
        return err;
    if (p->at == p->text.len)
        return wb_ask_bad(p, open, "this parenthesis is never closed");
    WB_CHECK(p->text.ptr[p->at] == ')' && p->depth > 0);
    p->at++;
    p->depth--;
    return 0;
}

/* What follows title: or the like; p->at is behind the colon. */
static int parse_text_field(struct wb_ask_parser *p, const struct wb_ask_name *name, size_t begin,
                            struct wb_ask_node **node_out)
{
    enum wb_ask_field outer = p->group;

    WB_CHECK(name->field >= WB_ASK_TITLE && name->field <= WB_ASK_ANCHOR);
    WB_CHECK(outer == WB_ASK_ANY);
    switch (peek(p, 0)) {
    case ' ':
    case ')':
        return wb_ask_bad(p, p->at, "%s: needs a word, a phrase or a group right behind it", name->name);
    case '"':
        return parse_phrase(p, name->field, begin, node_out);
    case '-':
        if (peek(p, 1) != ' ' && peek(p, 1) != ')' && peek(p, 1) != '-')
            return wb_ask_bad(p, p->at, "the - must be before %s:", name->name);
        return parse_word(p, name->field, begin, node_out);
    case '(':
        p->group = name->field;
        int err = parse_group(p, node_out);
        p->group = outer;
        return err;
    default:
        return parse_word(p, name->field, begin, node_out);
    }
}

static int parse_field(struct wb_ask_parser *p, const struct wb_ask_name *name, struct wb_slice spelled,
                       struct wb_ask_node **node_out)
{
    size_t begin = p->at;

    WB_CHECK(p->text.ptr[begin + spelled.len] == ':');
    if (p->group != WB_ASK_ANY)
        return wb_ask_bad(p, begin, "%.*s: cannot be inside %s:( )", WB_SLICE_ARG(spelled),
                          wb_ask_field_name(p->group));
    p->at += spelled.len + 1;
    if (name->class == WB_ASK_CLASS_TEXT)
        return parse_text_field(p, name, begin, node_out);
    return wb_ask_parse_value(p, name, spelled, begin, node_out);
}

/* ---- operators ------------------------------------------------------------------------------------------------ */

/* Whether - is an operator here. A - on its own, and everything that begins with --, is text. */
static bool at_minus(const struct wb_ask_parser *p)
{
    return peek(p, 0) == '-' && peek(p, 1) != '-' && peek(p, 1) != ' ' && peek(p, 1) != ')';
}

static int parse_not(struct wb_ask_parser *p, struct wb_ask_node **node_out)
{
    WB_CHECK(at_minus(p));
    size_t begin = p->at++;
    struct wb_ask_node *inner = NULL, **items = NULL;

    if (next_operator(p))
        return wb_ask_bad(p, begin, "- cannot be before %s", next_operator(p));
    int err = parse_operand(p, &inner);
    if (err == 0)
        err = wb_ask_add(p, WB_ASK_NOT, WB_ASK_ANY, begin, node_out);
    if (err < 0)
        return err;
    items = wb_ask_take(p->arena, sizeof *items);
    if (!items)
        return WB_E_NOMEM;
    items[0] = inner;
    (*node_out)->items = items;
    (*node_out)->item_count = 1;
    return 0;
}

/* p->at is at something that can begin an operand. */
static int parse_operand(struct wb_ask_parser *p, struct wb_ask_node **node_out)
{
    struct wb_slice spelled;

    WB_CHECK(p->at < p->text.len && p->text.ptr[p->at] != ' ');
    p->before = NULL;
    if (at_minus(p))
        return parse_not(p, node_out);
    if (peek(p, 0) == '(')
        return parse_group(p, node_out);
    if (peek(p, 0) == '"')
        return parse_phrase(p, p->group, p->at, node_out);
    const struct wb_ask_name *name = find_field(p, &spelled);
    return name ? parse_field(p, name, spelled, node_out) : parse_word(p, p->group, p->at, node_out);
}

/* Something was expected at p->at, but there is the end, a ) or an operator. */
static int bad_operand(struct wb_ask_parser *p)
{
    const char *op = next_operator(p);
    bool opened = p->before && p->before[0] == '(';

    if (op && (!p->before || opened))
        return wb_ask_bad(p, p->at, "%s needs something before it; put it into quotes to search for the word", op);
    if (op)
        return wb_ask_bad(p, p->at, "%s cannot follow %s", op, p->before);
    if (p->before && !opened)
        return wb_ask_bad(p, p->before_at, "%s needs something after it; put it into quotes to search for the word",
                          p->before);
    if (p->at < p->text.len)
        return opened ? wb_ask_bad(p, p->before_at, "the parentheses are empty")
                      : wb_ask_bad(p, p->at, "this parenthesis was never opened");
    return opened ? wb_ask_bad(p, p->before_at, "this parenthesis is never closed")
                  : wb_ask_bad(p, 0, "the query is empty");
}

/* Makes a node of the items that were pushed since `mark`. A single item remains itself. */
static int close_list(struct wb_ask_parser *p, enum wb_ask_kind kind, size_t mark, struct wb_ask_node **node_out)
{
    size_t count = p->pending.count - mark;
    struct wb_ask_node **from = p->pending.items + mark;

    WB_CHECK(p->pending.count > mark);
    WB_CHECK(kind == WB_ASK_AND || kind == WB_ASK_OR);
    if (count == 1) {
        *node_out = from[0];
    } else {
        int err = wb_ask_add(p, kind, WB_ASK_ANY, from[0]->begin, node_out);
        struct wb_ask_node **items = err < 0 ? NULL : wb_ask_take(p->arena, count * sizeof *items);
        if (!items)
            return err < 0 ? err : WB_E_NOMEM;
        memcpy(items, from, count * sizeof *items);
        (*node_out)->end = from[count - 1]->end;
        (*node_out)->items = items;
        (*node_out)->item_count = count;
    }
    p->pending.count = mark;
    return 0;
}

static int parse_and(struct wb_ask_parser *p, struct wb_ask_node **node_out)
{
    size_t mark = p->pending.count;

    for (;;) {
        struct wb_ask_node *item;
        skip_blanks(p);
        if (p->pending.count > mark && !p->before && at_operator(p, WB_SLICE_LIT("AND"))) {
            p->before = "AND";
            p->before_at = p->at;
            p->at += strlen("AND");
            continue;
        }
        if (p->at == p->text.len || p->text.ptr[p->at] == ')' || next_operator(p)) {
            if (p->before || p->pending.count == mark)
                return bad_operand(p);
            return close_list(p, WB_ASK_AND, mark, node_out);
        }
        int err = parse_operand(p, &item);
        if (err == 0)
            err = wb_vec_push(&p->pending, item);
        if (err < 0)
            return err;
    }
}

/* Ends at the end of the text or at a ). */
static int parse_query(struct wb_ask_parser *p, struct wb_ask_node **node_out)
{
    size_t mark = p->pending.count;

    for (;;) {
        struct wb_ask_node *item;
        int err = parse_and(p, &item);
        if (err == 0)
            err = wb_vec_push(&p->pending, item);
        if (err < 0)
            return err;
        if (!at_operator(p, WB_SLICE_LIT("OR")))
            return close_list(p, WB_ASK_OR, mark, node_out);
        p->before = "OR";
        p->before_at = p->at;
        p->at += strlen("OR");
    }
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

/* White space of Unicode, control characters, and characters that only say where a text begins. */
static bool is_blank(uint32_t c)
{
    return c <= 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
           (c >= 0x2028 && c <= 0x2029) || c == 0x202f || c == 0x205f || c == 0x3000 || c == 0xfeff;
}

/* Copies the text, with blanks for everything that is not text. */
static int clean_copy(struct wb_slice text, struct wb_arena *arena, struct wb_slice *copy_out)
{
    char *copy = wb_arena_take(arena, text.len ? text.len : 1);

    *copy_out = WB_SLICE_EMPTY;
    if (!copy)
        return WB_E_NOMEM;
    for (size_t i = 0, len; i < text.len; i += len) {
        len = wb_utf8_length(text.ptr + i, text.len - i);
        if (len == 0 || is_blank(wb_utf8_decode(text.ptr + i, len))) {
            len = len ? len : 1;
            memset(copy + i, ' ', len);
        } else {
            memcpy(copy + i, text.ptr + i, len);
        }
    }
    *copy_out = wb_slice(copy, text.len);
    return 0;
}

int wb_ask_parse(struct wb_slice text, const struct wb_ask_options *options, struct wb_arena *arena,
                 struct wb_ask *ask_out)
{
    struct wb_ask_parser p = {
        .typed = text, .options = options, .arena = arena, .ask = ask_out, .pending = WB_VEC_INIT};
    bool too_long = text.len > WB_ASK_BYTES_MAX;
    struct wb_ask_node *root = NULL;

    *ask_out = (struct wb_ask){.text = WB_SLICE_EMPTY};
    int err = clean_copy(wb_slice(text.ptr, too_long ? WB_ASK_BYTES_MAX : text.len), arena, &p.text);
    if (err < 0)
        return err;
    ask_out->text = p.text;
    if (too_long)
        return wb_ask_bad(&p, WB_ASK_BYTES_MAX, "the query is longer than %d bytes", WB_ASK_BYTES_MAX);
    err = parse_query(&p, &root);
    WB_CHECK(err < 0 || (p.pending.count == 0 && p.group == WB_ASK_ANY)); /* all groups were closed */
    if (err == 0 && p.at < p.text.len)
        err = wb_ask_bad(&p, p.at, "this parenthesis was never opened");
    if (err == 0)
        ask_out->root = root;
    wb_vec_release(&p.pending);
    return err;
}
