/*
 * css.c - finds the URLs in CSS by reading its tokens (CSS Syntax Level 3, section 4), without parsing rules.
 *
 *   comment, string           skipped as a whole; a string counts as a URL behind @import and in image-set()
 *   name, @name, #name, 1px   read as one token, so that "#url(x)" and "1url(x)" contain no URL
 *   url( ... )                a URL, unless the standard calls it a bad one
 *
 * It never decides whether a rule is valid: a URL in a rule that browsers ignore is found as well.
 */
#include "markup/css.h"
#include "base/utf8.h"

/* The longest name that means something, "-webkit-image-set"; of longer names, this much is compared. */
#define NAME_MAX_BYTES 24

static bool is_newline(char c)
{
    return c == '\n' || c == '\r' || c == '\f';
}

static bool is_name_byte(char c)
{
    return wb_ascii_is_letter(c) || wb_ascii_is_digit(c) || c == '_' || c == '-' || (uint8_t)c >= 0x80 || c == '\0';
}

/* True if a backslash at p begins an escape. At the end of the sheet it does, too. */
static bool is_escape(const char *p, const char *end)
{
    return *p == '\\' && (p + 1 == end || !is_newline(p[1]));
}

static int hex_value(char c)
{
    if (wb_ascii_is_digit(c))
        return c - '0';
    c = wb_ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Reads what follows a backslash: up to six hexadecimal digits and a blank, or any character. Returns where it ends;
 * *code_out is the code point, and 0 stands for the byte at p, which may begin a longer character.
 */
static const char *read_escape(const char *p, const char *end, uint32_t *code_out)
{
    uint32_t code = 0;
    int digits = 0;

    *code_out = 0xfffd;
    if (p == end)
        return p;
    for (; p < end && digits < 6 && hex_value(*p) >= 0; digits++)
        code = code * 16 + (uint32_t)hex_value(*p++);
    if (digits == 0) {
        *code_out = *p == '\0' ? 0xfffd : 0;
        return p + 1;
    }
    if (code != 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff))
        *code_out = code;
    if (p < end && *p == '\r' && end - p > 1 && p[1] == '\n')
        return p + 2;
    return p < end && wb_ascii_is_space(*p) ? p + 1 : p;
}

/* A name in lower case and without escapes, cut off. */
struct css_name {
    char text[NAME_MAX_BYTES];
    size_t len;
};

static void put_name(struct css_name *name, uint32_t code)
{
    /* Characters beyond ASCII need not be told apart: no name that we look for contains one. */
    if (name->len < NAME_MAX_BYTES)
        name->text[name->len++] = code < 0x80 ? wb_ascii_lower((char)code) : '\x7f';
}

/* Reads a name and returns where it ends; p itself if there is none. */
static const char *read_name(const char *p, const char *end, struct css_name *name_out)
{
    name_out->len = 0;
    while (p < end) {
        if (is_name_byte(*p)) {
            put_name(name_out, *p == '\0' ? 0xfffd : (uint8_t)*p);
            p++;
        } else if (is_escape(p, end)) {
            uint32_t code;
            const char *to = read_escape(p + 1, end, &code);
            put_name(name_out, code ? code : (uint8_t)p[1]);
            p = to;
        } else {
            break;
        }
    }
    return p;
}

static bool is_named(const struct css_name *name, const char *text)
{
    return wb_slice_equal(wb_slice(name->text, name->len), wb_slice_str(text));
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && wb_ascii_is_space(*p))
        p++;
    return p;
}

static const char *skip_comment(const char *p, const char *end)
{
    const char *close = end - p >= 2 ? memmem(p + 2, (size_t)(end - p - 2), "*/", 2) : NULL;

    return close ? close + 2 : end;
}

/*
 * Reads the string whose quote is at p. Returns where it ends; *item_out is what is in it. A string with a line end
 * in it is bad: *bad_out is set, and it ends before the line end.
 */
static const char *read_string(const char *p, const char *end, struct wb_css_item *item_out, bool *bad_out)
{
    char quote = *p++;
    const char *from = p;

    *item_out = (struct wb_css_item){WB_CSS_URL, WB_SLICE_EMPTY, quote, false};
    *bad_out = false;
    while (p < end && *p != quote && !is_newline(*p)) {
        item_out->coded |= *p == '\\' || *p == '\0';
        if (*p == '\\' && end - p > 1)
            p += p[1] == '\r' && end - p > 2 && p[2] == '\n' ? 3 : 2;
        else
            p++;
    }
    item_out->raw = wb_slice(from, (size_t)(p - from));
    if (p < end && *p != quote)
        *bad_out = true;
    return p < end && *p == quote ? p + 1 : p;
}

/* Skips the rest of a bad URL. */
static const char *skip_bad_url(const char *p, const char *end)
{
    while (p < end && *p != ')')
        p += *p == '\\' && end - p > 1 ? 2 : 1;
    return p < end ? p + 1 : p;
}

static bool spoils_url(char c)
{
    return c == '"' || c == '\'' || c == '(' || (c > 0 && c < ' ' && !wb_ascii_is_space(c)) || c == 0x7f;
}

/* Reads a URL without quotes; p is its first byte. Returns where the token ends; *bad_out: it is not a URL. */
static const char *read_plain_url(const char *p, const char *end, struct wb_css_item *item_out, bool *bad_out)
{
    const char *from = p;

    *item_out = (struct wb_css_item){WB_CSS_URL, WB_SLICE_EMPTY, 0, false};
    *bad_out = true;
    while (p < end && *p != ')' && !wb_ascii_is_space(*p)) {
        if (spoils_url(*p) || (*p == '\\' && !is_escape(p, end)))
            return skip_bad_url(p, end);
        item_out->coded |= *p == '\\' || *p == '\0';
        if (*p == '\\') {
            uint32_t code;
            p = read_escape(p + 1, end, &code);
        } else {
            p++;
        }
    }
    item_out->raw = wb_slice(from, (size_t)(p - from));
    p = skip_blanks(p, end);
    if (p < end && *p != ')')
        return skip_bad_url(p, end);
    *bad_out = false;
    return p < end ? p + 1 : p;
}

/* ---- the scanner ------------------------------------------------------------------------------------------- */

static void open_paren(struct wb_css *css, bool set)
{
    css->depth++;
    css->sets = css->sets << 1 | set; /* beyond 64 levels, the outermost are forgotten */
}

static void close_paren(struct wb_css *css)
{
    if (css->depth > 0)
        css->depth--;
    css->sets >>= 1;
}

/* Completes an item; false if it does not count. */
static bool finish_item(struct wb_css *css, struct wb_css_item *item)
{
    item->kind = css->import ? WB_CSS_IMPORT : css->font ? WB_CSS_FONT : WB_CSS_URL;
    css->import = false;
    return !css->other;
}

/* Reads what begins at css->at with a name; true if it is a URL. */
static bool take_name(struct wb_css *css, struct wb_css_item *item_out)
{
    struct css_name name;
    bool bad = false;

    css->at = read_name(css->at, css->end, &name);
    if (css->at == css->end || *css->at != '(') {
        css->import = false;
        return false;
    }
    css->at++;
    if (!is_named(&name, "url")) {
        open_paren(css, is_named(&name, "image-set") || is_named(&name, "-webkit-image-set") || is_named(&name, "src"));
        css->import = false;
        return false;
    }
    const char *p = skip_blanks(css->at, css->end);
    if (p < css->end && (*p == '"' || *p == '\'')) {
        open_paren(css, false);
        css->at = read_string(p, css->end, item_out, &bad);
    } else {
        css->at = read_plain_url(p, css->end, item_out, &bad);
    }
    return finish_item(css, item_out) && !bad;
}

/* Reads a string; true if it is a URL. */
static bool take_string(struct wb_css *css, struct wb_css_item *item_out)
{
    bool wanted = css->import || (css->depth > 0 && css->sets & 1), bad;

    css->at = read_string(css->at, css->end, item_out, &bad);
    return finish_item(css, item_out) && wanted && !bad;
}

/* Reads "@name". */
static void take_at_rule(struct wb_css *css)
{
    struct css_name name;

    css->at = read_name(css->at + 1, css->end, &name);
    css->import = is_named(&name, "import");
    css->other = is_named(&name, "namespace");
    css->before_font = is_named(&name, "font-face");
}

/* Reads a single character that is a token, or that begins a number or "#name". */
static void take_other(struct wb_css *css)
{
    struct css_name name;
    char c = *css->at++;

    switch (c) {
    case '(':
        open_paren(css, false);
        break;
    case ')':
        close_paren(css);
        break;
    case ';':
    case '{':
    case '}':
        /* There are no blocks inside that of @font-face. */
        css->font = c == '{' ? css->before_font : css->font && c == ';';
        css->before_font = css->other = false;
        break;
    case '<':
        if (css->end - css->at >= 3 && memcmp(css->at, "!--", 3) == 0)
            css->at += 3;
        break;
    default:
        if (c == '#' || wb_ascii_is_digit(c))
            css->at = read_name(css->at, css->end, &name);
        break;
    }
    css->import = false;
}

void wb_css_init(struct wb_css *css, struct wb_slice sheet)
{
    *css = (struct wb_css){.at = sheet.ptr, .end = sheet.ptr + sheet.len};
}

/* True if the '-' at p is the sign of a number. */
static bool is_sign(const char *p, const char *end)
{
    return *p == '-' && end - p > 1 &&
           (wb_ascii_is_digit(p[1]) || (p[1] == '.' && end - p > 2 && wb_ascii_is_digit(p[2])));
}

bool wb_css_next(struct wb_css *css, struct wb_css_item *item_out)
{
    *item_out = (struct wb_css_item){WB_CSS_URL, WB_SLICE_EMPTY, 0, false};
    while (css->at < css->end) {
        const char *p = css->at;
        if (wb_ascii_is_space(*p)) {
            css->at = skip_blanks(p, css->end);
        } else if (*p == '/' && css->end - p > 1 && p[1] == '*') {
            css->at = skip_comment(p, css->end);
        } else if (*p == '"' || *p == '\'') {
            if (take_string(css, item_out))
                return true;
        } else if (*p == '@') {
            take_at_rule(css);
        } else if (!wb_ascii_is_digit(*p) && !is_sign(p, css->end) && (is_name_byte(*p) || is_escape(p, css->end))) {
            if (take_name(css, item_out))
                return true;
        } else {
            take_other(css);
        }
    }
    return false;
}

/* ---- decoding and encoding ---------------------------------------------------------------------------------- */

/* Decodes the backslash at *p and moves behind it. */
static int decode_escape(const char **p, const char *end, struct wb_buf *out)
{
    const char *from = *p + 1;
    char utf8[4];
    uint32_t code;

    if (from < end && is_newline(*from)) { /* in a string, the line continues */
        *p = from + (*from == '\r' && end - from > 1 && from[1] == '\n' ? 2 : 1);
        return 0;
    }
    *p = read_escape(from, end, &code);
    if (from == end)
        return 0;
    return code ? wb_buf_append(out, utf8, wb_utf8_encode(code, utf8)) : wb_buf_append_char(out, *from);
}

int wb_css_decode(struct wb_slice raw, struct wb_buf *url_out)
{
    const char *p = raw.ptr, *end = p + raw.len;
    int err = 0;

    wb_buf_clear(url_out);
    while (err == 0 && p < end) {
        if (*p == '\\') {
            err = decode_escape(&p, end, url_out);
        } else {
            err = *p ? wb_buf_append_char(url_out, *p) : wb_buf_append_str(url_out, "\xef\xbf\xbd");
            p++;
        }
    }
    return err;
}

int wb_css_encode(struct wb_slice url, struct wb_buf *sheet_out)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < url.len; i++) {
        char c = url.ptr[i];
        if ((c >= 0 && c <= ' ') || c == 0x7f)
            err = wb_buf_printf(sheet_out, "\\%x ", (unsigned)c);
        else if (c == '"' || c == '\'' || c == '(' || c == ')' || c == '\\')
            err = wb_buf_printf(sheet_out, "\\%c", c);
        else
            err = wb_buf_append_char(sheet_out, c);
    }
    return err;
}

struct wb_slice wb_css_charset(struct wb_slice sheet)
{
    struct wb_slice rule = WB_SLICE_LIT("@charset \"");

    if (!wb_slice_starts(sheet, rule))
        return WB_SLICE_EMPTY;
    size_t rest = sheet.len - rule.len;
    const char *from = sheet.ptr + rule.len, *close = memchr(from, '"', rest < 1024 ? rest : 1024);
    bool whole = close && (size_t)(close - from) + 1 < rest && close[1] == ';';
    return whole ? wb_slice(from, (size_t)(close - from)) : WB_SLICE_EMPTY;
}
