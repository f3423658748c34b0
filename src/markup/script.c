/* script.c - reads the tokens of JavaScript, as far as it takes to find strings. */
#include "markup/script.h"

#include "base/bytes.h"
#include "base/check.h"

#include <string.h>

#define DEPTH_MAX 64 /* deeper braces are counted, but not remembered */

void wb_script_init(struct wb_script *script, struct wb_slice text)
{
    *script = (struct wb_script){.at = text.ptr, .end = text.ptr + text.len, .word = WB_SLICE_EMPTY,
                                 .called = WB_SLICE_EMPTY};
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           (unsigned char)c >= 0x80;
}

/* Forgets what was read before; value: what was just read ends a value. */
static void take(struct wb_script *s, bool value)
{
    s->word = s->called = WB_SLICE_EMPTY;
    s->opened = s->dotted = false;
    s->value = value;
}

/* A word after which a value begins, so that a slash begins a regular expression. */
static bool precedes_value(struct wb_slice word)
{
    static const char *const words[] = {"return", "typeof", "case", "in",  "of",         "delete", "void",
                                        "throw",  "new",    "else", "do",  "instanceof", "yield",  "await"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (wb_slice_equal(word, wb_slice_str(words[i])))
            return true;
    return false;
}

static void take_word(struct wb_script *s)
{
    const char *begin = s->at;
    bool dotted = s->dotted;

    while (s->at < s->end && is_word(*s->at))
        s->at++;
    struct wb_slice word = wb_slice(begin, (size_t)(s->at - begin));
    take(s, dotted || !precedes_value(word));
    s->word = dotted ? WB_SLICE_EMPTY : word;
}

static void skip_comment(struct wb_script *s)
{
    size_t left = (size_t)(s->end - s->at) - 2;
    const char *end = s->at[1] == '/' ? memchr(s->at + 2, '\n', left) : memmem(s->at + 2, left, "*/", 2);

    s->at = !end ? s->end : s->at[1] == '/' ? end : end + 2;
}

/*
 * A regular expression ends at a slash that is not inside [...]; a line end shows that it was not a regular expression.
 */
static void skip_expression(struct wb_script *s)
{
    bool in_class = false;

    for (s->at++; s->at < s->end && *s->at != '\n' && (in_class || *s->at != '/'); s->at++) {
        if (*s->at == '\\' && s->end - s->at > 1)
            s->at++;
        else if (*s->at == '[' || *s->at == ']')
            in_class = *s->at == '[';
    }
    s->at += s->at < s->end && *s->at == '/';
    take(s, true);
}

static enum wb_script_kind kind_of(const struct wb_script *s)
{
    struct wb_slice word = s->opened ? s->called : s->word;

    return wb_slice_equal(word, WB_SLICE_LIT("import")) || (!s->opened && wb_slice_equal(word, WB_SLICE_LIT("from")))
               ? WB_SCRIPT_IMPORT
               : WB_SCRIPT_STRING;
}

/* Reads a string to its closing quote. Returns whether it can be taken as it is. */
static bool take_string(struct wb_script *s, struct wb_script_item *item_out)
{
    char quote = *s->at++;
    const char *begin = s->at;
    bool plain = true;

    for (; s->at < s->end && *s->at != quote && *s->at != '\n'; s->at++) {
        if (*s->at == '\\') {
            plain = false;
            s->at += s->end - s->at > 1;
        }
    }
    bool closed = s->at < s->end && *s->at == quote;
    *item_out = (struct wb_script_item){kind_of(s), wb_slice(begin, (size_t)(s->at - begin))};
    s->at += closed;
    take(s, true);
    return plain && closed;
}

/* Reads a template, or the rest of one, to its end or to the next ${. Returns whether it is a plain string. */
static bool take_template(struct wb_script *s, bool whole, struct wb_script_item *item_out)
{
    const char *begin = ++s->at;

    for (; s->at < s->end && *s->at != '`'; s->at++) {
        if (*s->at == '\\') {
            whole = false;
            s->at += s->end - s->at > 1;
        } else if (*s->at == '\n') {
            whole = false;
        } else if (*s->at == '$' && s->end - s->at > 1 && s->at[1] == '{') {
            s->templates = s->depth < DEPTH_MAX ? s->templates | UINT64_C(1) << s->depth : s->templates;
            s->depth++;
            s->at += 2;
            take(s, false);
            return false;
        }
    }
    *item_out = (struct wb_script_item){kind_of(s), wb_slice(begin, (size_t)(s->at - begin))};
    bool closed = s->at < s->end;
    s->at += closed;
    take(s, true);
    return whole && closed;
}

/* Reads a brace. Returns true if it ends the ${ of a template, which then goes on. */
static bool take_brace(struct wb_script *s)
{
    if (*s->at == '{') {
        if (s->depth < DEPTH_MAX)
            s->templates &= ~(UINT64_C(1) << s->depth);
        s->depth++;
    } else if (s->depth > 0 && --s->depth < DEPTH_MAX && s->templates >> s->depth & 1) {
        return true;
    }
    take(s, *s->at == '}');
    s->at++;
    return false;
}

static void take_sign(struct wb_script *s)
{
    char c = *s->at++;
    struct wb_slice word = s->word;

    take(s, c == ')' || c == ']');
    s->opened = c == '(';
    s->called = s->opened ? word : WB_SLICE_EMPTY;
    s->dotted = c == '.';
}

/* Reads the next token. Returns true if it is a string that can be taken. */
static bool take_token(struct wb_script *s, struct wb_script_item *item_out)
{
    char c = *s->at, next = s->end - s->at > 1 ? s->at[1] : '\0';

    if (c == ' ' || (c >= '\t' && c <= '\r'))
        s->at++;
    else if (c == '/' && (next == '/' || next == '*'))
        skip_comment(s);
    else if (c == '/' && !s->value)
        skip_expression(s);
    else if (is_word(c))
        take_word(s);
    else if (c == '"' || c == '\'')
        return take_string(s, item_out);
    else if (c == '`')
        return take_template(s, true, item_out);
    else if (c == '{' || c == '}')
        return take_brace(s) && take_template(s, false, item_out);
    else
        take_sign(s);
    return false;
}

bool wb_script_next(struct wb_script *script, struct wb_script_item *item_out)
{
    while (script->at < script->end) {
        const char *before = script->at;
        bool found = take_token(script, item_out);
        WB_CHECK(script->at > before && script->at <= script->end);
        if (found)
            return true;
    }
    return false;
}
