/*
 * tokenizer.c - the tokenizer of the HTML standard (section 13.2.5), over a whole document in memory.
 *
 * The 80 states of the standard read one character at a time. Here, each kind of token is read by one
 * function that looks for the bytes that end it; the result is the same. It copies nothing and
 * decodes nothing (wb_token_decode() does that when asked), looks at every byte a bounded number of
 * times, and never builds a tree.
 *
 *   text       up to a '<' that begins markup             read_data, read_raw, read_script, read_cdata
 *   tag        name, attributes, '>'                      read_tag
 *   comment    "<!--" ... "-->", and what looks like one  read_comment, read_bogus
 *   doctype    "<!doctype"                                read_doctype
 */
#include "markup/tokenizer.h"
#include "base/check.h"
#include "markup/entity.h"
#include "markup/scan.h"

enum byte_class {
    BLANK = 1 << 0,    /* tab, LF, FF, CR, space */
    TAG_END = 1 << 1,  /* ends the name of a tag: blank, '/', '>' */
    NAME_END = 1 << 2, /* ends the name of an attribute: those and '=' */
    CODED = 1 << 3,    /* A-Z, NUL: a name that contains it must be decoded */
    ALPHA = 1 << 4,
    VALUE_END = 1 << 5, /* ends an unquoted value: blank, '>' */
    VALUE_CODED = 1 << 6, /* '&', NUL (CR is blank) */
};

/* A reading function returns this if it found no token yet: t->at has moved, and reading continues in t->mode. */
#define AGAIN ((enum wb_token_kind)(WB_TOKEN_DOCTYPE + 1))

#define ENDS (BLANK | TAG_END | NAME_END | VALUE_END)

static const uint8_t byte_classes[256] = {
    ['\0'] = CODED | VALUE_CODED, ['&'] = VALUE_CODED,
    ['\t'] = ENDS, ['\n'] = ENDS, ['\f'] = ENDS, ['\r'] = ENDS, [' '] = ENDS,
    ['/'] = TAG_END | NAME_END, ['>'] = TAG_END | NAME_END | VALUE_END, ['='] = NAME_END,
    ['A'] = ALPHA | CODED, ['B'] = ALPHA | CODED, ['C'] = ALPHA | CODED, ['D'] = ALPHA | CODED, ['E'] = ALPHA | CODED,
    ['F'] = ALPHA | CODED, ['G'] = ALPHA | CODED, ['H'] = ALPHA | CODED, ['I'] = ALPHA | CODED, ['J'] = ALPHA | CODED,
    ['K'] = ALPHA | CODED, ['L'] = ALPHA | CODED, ['M'] = ALPHA | CODED, ['N'] = ALPHA | CODED, ['O'] = ALPHA | CODED,
    ['P'] = ALPHA | CODED, ['Q'] = ALPHA | CODED, ['R'] = ALPHA | CODED, ['S'] = ALPHA | CODED, ['T'] = ALPHA | CODED,
    ['U'] = ALPHA | CODED, ['V'] = ALPHA | CODED, ['W'] = ALPHA | CODED, ['X'] = ALPHA | CODED, ['Y'] = ALPHA | CODED,
    ['Z'] = ALPHA | CODED,
    ['a'] = ALPHA, ['b'] = ALPHA, ['c'] = ALPHA, ['d'] = ALPHA, ['e'] = ALPHA, ['f'] = ALPHA, ['g'] = ALPHA,
    ['h'] = ALPHA, ['i'] = ALPHA, ['j'] = ALPHA, ['k'] = ALPHA, ['l'] = ALPHA, ['m'] = ALPHA, ['n'] = ALPHA,
    ['o'] = ALPHA, ['p'] = ALPHA, ['q'] = ALPHA, ['r'] = ALPHA, ['s'] = ALPHA, ['t'] = ALPHA, ['u'] = ALPHA,
    ['v'] = ALPHA, ['w'] = ALPHA, ['x'] = ALPHA, ['y'] = ALPHA, ['z'] = ALPHA,
};

static inline bool is(char c, unsigned classes)
{
    return byte_classes[(uint8_t)c] & classes;
}

static inline const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && is(*p, BLANK))
        p++;
    return p;
}

static inline struct wb_slice between(const char *from, const char *to)
{
    return wb_slice(from, (size_t)(to - from));
}

/* True if the word (given in lower case) is at p, in any case. */
static bool has_word(const char *p, const char *end, const char *word, size_t len)
{
    return (size_t)(end - p) >= len && wb_slice_equal_nocase(wb_slice(p, len), wb_slice(word, len));
}

/* Completes the token from `from` to `to`. */
static enum wb_token_kind finish(struct wb_tokenizer *t, enum wb_token_kind kind, const char *from, const char *to)
{
    WB_CHECK(from <= to && to <= t->end);
    t->raw = between(from, to);
    t->at = to;
    t->kind = kind;
    return kind;
}

static enum wb_token_kind finish_text(struct wb_tokenizer *t, const char *from, const char *to, unsigned how)
{
    t->text = between(from, to);
    t->how = how;
    return finish(t, WB_TOKEN_TEXT, from, to);
}

/* ---- tags ------------------------------------------------------------------------------ */

static inline void keep_attr(struct wb_tokenizer *t, struct wb_slice name, struct wb_slice value, bool name_coded,
                             bool value_coded)
{
    if (t->attr_count == WB_TOKEN_ATTRS_MAX)
        t->attrs_left_out++;
    else
        t->attrs[t->attr_count++] = (struct wb_token_attr){name, value, name_coded, value_coded};
}

/* Reads what follows '='. Returns where the attribute ends, or NULL if the document ends first. */
static inline const char *read_value(const char *p, const char *end, struct wb_slice *value_out, bool *coded_out)
{
    p = skip_blanks(p, end);
    if (p == end)
        return NULL;
    if (*p == '"' || *p == '\'') {
        const char *close = wb_scan_value(p + 1, end, *p, coded_out);
        if (close == end)
            return NULL;
        *value_out = between(p + 1, close);
        return close + 1;
    }
    const char *from = p;
    unsigned seen = 0;
    for (; p < end && !is(*p, VALUE_END); p++)
        seen |= byte_classes[(uint8_t)*p];
    *coded_out = seen & VALUE_CODED;
    *value_out = between(from, p);
    return p;
}

/* Reads from behind the name to behind the '>'; NULL if the document ends first. */
static const char *read_attrs(struct wb_tokenizer *t, const char *p)
{
    const char *end = t->end;

    for (;;) {
        p = skip_blanks(p, end);
        if (p == end)
            return NULL;
        if (*p == '>')
            return p + 1;
        if (*p == '/') {
            p++;
            if (p < end && *p == '>') {
                t->self_closing = true;
                return p + 1;
            }
            continue;
        }
        const char *from = p;
        unsigned seen = 0;
        do
            seen |= byte_classes[(uint8_t)*p++]; /* a leading '=' belongs to the name */
        while (p < end && !is(*p, NAME_END));
        struct wb_slice name = between(from, p), value = WB_SLICE_EMPTY;
        bool coded = false;
        p = skip_blanks(p, end);
        if (p < end && *p == '=' && !(p = read_value(p + 1, end, &value, &coded)))
            return NULL;
        keep_attr(t, name, value, seen & CODED, coded);
    }
}

/* Reads a tag: `from` is its '<', `name` where its name begins. A tag that the document's end cuts off is dropped. */
static enum wb_token_kind read_tag(struct wb_tokenizer *t, const char *from, const char *name, enum wb_token_kind kind)
{
    const char *p = name;
    unsigned seen = 0;

    for (; p < t->end && !is(*p, TAG_END); p++)
        seen |= byte_classes[(uint8_t)*p];
    t->text = between(name, p);
    t->how = seen & CODED ? WB_DECODE_NAME : 0;
    t->self_closing = false;
    t->attr_count = 0;
    t->attrs_left_out = 0;
    const char *to = p < t->end && *p == '>' ? p + 1 : read_attrs(t, p);
    if (!to)
        return finish(t, WB_TOKEN_NONE, t->end, t->end);
    t->mode = WB_MODE_DATA;
    if (kind == WB_TOKEN_START)
        t->last_start = t->text;
    return finish(t, kind, from, to);
}

/* ---- comments -------------------------------------------------------------------------- */

static enum wb_token_kind finish_comment(struct wb_tokenizer *t, const char *from, struct wb_slice data, const char *to)
{
    t->text = data;
    t->how = WB_DECODE_NUL;
    return finish(t, WB_TOKEN_COMMENT, from, to);
}

/* Reads a bogus comment, which extends to the next '>'. */
static enum wb_token_kind read_bogus(struct wb_tokenizer *t, const char *from, const char *data)
{
    const char *close = wb_scan_byte(data, t->end, '>');

    return finish_comment(t, from, between(data, close), close < t->end ? close + 1 : close);
}

/* The length of an incomplete "--" or "--!" at the end of the document, which is not part of the comment. */
static size_t closing_left(struct wb_slice data)
{
    const char *end = data.ptr + data.len;

    if (data.len >= 3 && memcmp(end - 3, "--!", 3) == 0)
        return 3;
    if (data.len >= 2 && memcmp(end - 2, "--", 2) == 0)
        return 2;
    return data.len >= 1 && end[-1] == '-';
}

/* Reads a comment; data is behind "<!--". */
static enum wb_token_kind read_comment(struct wb_tokenizer *t, const char *from, const char *data)
{
    const char *end = t->end, *p = data;

    if (p < end && *p == '>')
        return finish_comment(t, from, WB_SLICE_EMPTY, p + 1);
    if (end - p >= 2 && p[0] == '-' && p[1] == '>')
        return finish_comment(t, from, WB_SLICE_EMPTY, p + 2);
    while ((p = wb_scan_byte(p, end, '>')) < end) {
        if (p - data >= 2 && p[-1] == '-' && p[-2] == '-')
            return finish_comment(t, from, between(data, p - 2), p + 1);
        if (p - data >= 3 && p[-1] == '!' && p[-2] == '-' && p[-3] == '-')
            return finish_comment(t, from, between(data, p - 3), p + 1);
        p++;
    }
    struct wb_slice rest = between(data, end);
    rest.len -= closing_left(rest);
    return finish_comment(t, from, rest, end);
}

/* ---- doctype --------------------------------------------------------------------------- */

static enum wb_token_kind finish_doctype(struct wb_tokenizer *t, const char *from, const char *p, bool quirks)
{
    t->doctype.force_quirks = quirks;
    return finish(t, WB_TOKEN_DOCTYPE, from, p < t->end ? p + 1 : p);
}

enum identifier { ID_READ, ID_BROKEN, ID_MISSING };

/* Reads the quoted identifier at *p. BROKEN: '>' or the end came inside or instead of it, and *p is there. */
static enum identifier read_identifier(const struct wb_tokenizer *t, const char **p, struct wb_slice *id_out,
                                       bool *has_out)
{
    const char *from = *p;

    if (from == t->end || *from == '>')
        return ID_BROKEN;
    if (*from != '"' && *from != '\'')
        return ID_MISSING;
    *p = wb_scan_either(from + 1, t->end, *from, '>');
    *id_out = between(from + 1, *p);
    *has_out = true;
    if (*p == t->end || **p == '>')
        return ID_BROKEN;
    ++*p;
    return ID_READ;
}

/* Reads identifiers; p is behind "PUBLIC" or "SYSTEM". */
static enum wb_token_kind read_identifiers(struct wb_tokenizer *t, const char *from, const char *p, bool is_public)
{
    struct wb_token_doctype *d = &t->doctype;
    enum identifier got = ID_READ;

    p = skip_blanks(p, t->end);
    if (is_public) {
        got = read_identifier(t, &p, &d->public_id, &d->has_public);
        p = skip_blanks(p, t->end);
        if (got == ID_READ && p < t->end && *p == '>')
            return finish_doctype(t, from, p, false);
    }
    if (got == ID_READ)
        got = read_identifier(t, &p, &d->system_id, &d->has_system);
    bool quirks = got != ID_READ;
    if (got == ID_BROKEN)
        return finish_doctype(t, from, p, true);
    p = skip_blanks(p, t->end);
    if (got == ID_READ && p == t->end)
        quirks = true;
    return finish_doctype(t, from, wb_scan_byte(p, t->end, '>'), quirks);
}

/* Reads a doctype; p is behind "<!doctype". */
static enum wb_token_kind read_doctype(struct wb_tokenizer *t, const char *from, const char *p)
{
    const char *end = t->end;

    t->doctype = (struct wb_token_doctype){WB_SLICE_EMPTY, WB_SLICE_EMPTY, false, false, false, false};
    t->text = WB_SLICE_EMPTY;
    t->how = WB_DECODE_NAME;
    p = skip_blanks(p, end);
    if (p == end || *p == '>')
        return finish_doctype(t, from, p, true);
    const char *name = p;
    while (p < end && *p != '>' && !is(*p, BLANK))
        p++;
    t->text = between(name, p);
    t->doctype.has_name = true;
    p = skip_blanks(p, end);
    if (p == end)
        return finish_doctype(t, from, p, true);
    if (*p == '>')
        return finish_doctype(t, from, p, false);
    if (has_word(p, end, "public", 6) || has_word(p, end, "system", 6))
        return read_identifiers(t, from, p + 6, wb_ascii_lower(*p) == 'p');
    return finish_doctype(t, from, wb_scan_byte(p, end, '>'), true);
}

/* ---- text ------------------------------------------------------------------------------ */

/* Reads a CDATA section up to "]]>". */
static enum wb_token_kind read_cdata(struct wb_tokenizer *t)
{
    const char *from = t->at, *p = from;

    while ((p = wb_scan_byte(p, t->end, '>')) < t->end && !(p - from >= 2 && p[-1] == ']' && p[-2] == ']'))
        p++;
    const char *to = p < t->end ? p - 2 : p;
    enum wb_token_kind kind = to > from ? finish_text(t, from, to, 0) : AGAIN;
    t->mode = WB_MODE_DATA;
    t->at = p < t->end ? p + 1 : p;
    return kind;
}

/* Reads what follows "<!". */
static enum wb_token_kind read_declaration(struct wb_tokenizer *t, const char *from)
{
    const char *p = from + 2;

    if (t->end - p >= 2 && p[0] == '-' && p[1] == '-')
        return read_comment(t, from, p + 2);
    if (has_word(p, t->end, "doctype", 7))
        return read_doctype(t, from, p + 7);
    if (t->foreign && t->end - p >= 7 && memcmp(p, "[CDATA[", 7) == 0) {
        t->mode = WB_MODE_CDATA;
        t->at = p + 7;
        return AGAIN;
    }
    return read_bogus(t, from, p);
}

/* Reads the markup that begins at `from`, a '<' that begins_markup() has accepted. */
static inline enum wb_token_kind read_markup(struct wb_tokenizer *t, const char *from)
{
    if (is(from[1], ALPHA))
        return read_tag(t, from, from + 1, WB_TOKEN_START);
    if (from[1] == '!')
        return read_declaration(t, from);
    if (from[1] == '?')
        return read_bogus(t, from, from + 1);
    if (is(from[2], ALPHA))
        return read_tag(t, from, from + 2, WB_TOKEN_END);
    return read_bogus(t, from, from + 2);
}

/* True if the '<' at p begins markup and is not just text. "</>" counts as markup; it is dropped. */
static inline bool begins_markup(const char *p, const char *end)
{
    if (end - p < 2)
        return false;
    if (p[1] == '/')
        return end - p > 2;
    return is(p[1], ALPHA) || p[1] == '!' || p[1] == '?';
}

/* Reads text or markup in ordinary content. */
static enum wb_token_kind read_data(struct wb_tokenizer *t)
{
    for (;;) {
        const char *from = t->at, *p = from;
        while ((p = wb_scan_byte(p, t->end, '<')) < t->end && !begins_markup(p, t->end))
            p++;
        if (p > from)
            return finish_text(t, from, p, WB_DECODE_ENTITIES);
        if (p == t->end)
            return finish(t, WB_TOKEN_NONE, p, p);
        if (p[1] != '/' || p[2] != '>')
            return read_markup(t, p);
        t->at = p + 3;
    }
}

/* True if "</", the name of the last start tag and the end of a name are at p. */
static bool closes_content(const struct wb_tokenizer *t, const char *p)
{
    size_t len = t->last_start.len;

    return (size_t)(t->end - p) > len + 2 && len && p[1] == '/' && is(p[len + 2], TAG_END) &&
           wb_slice_equal_nocase(wb_slice(p + 2, len), t->last_start);
}

/* Returns the text up to p or, if there is none, the end tag at p; nothing at the end of the document. */
static enum wb_token_kind finish_content(struct wb_tokenizer *t, const char *p, unsigned how)
{
    if (p > t->at)
        return finish_text(t, t->at, p, how);
    if (p == t->end)
        return finish(t, WB_TOKEN_NONE, p, p);
    return read_tag(t, p, p + 2, WB_TOKEN_END);
}

/* Reads content that only the end tag of its element ends. */
static enum wb_token_kind read_raw(struct wb_tokenizer *t, unsigned how)
{
    const char *p = t->at;

    while ((p = wb_scan_byte(p, t->end, '<')) < t->end && !closes_content(t, p))
        p++;
    return finish_content(t, p, how);
}

/* True if "script" and the end of a name are at p. */
static bool has_script(const char *p, const char *end)
{
    return has_word(p, end, "script", 6) && end - p > 6 && is(p[6], TAG_END);
}

/*
 * Reads a script: inside "<!--" ... "-->", a "<script>" counts as opened, and "</script>" closes that
 * one first.
 */
static enum wb_token_kind read_script(struct wb_tokenizer *t)
{
    const char *p = t->at, *end = t->end;
    const char *dashes = NULL; /* those of the "<!--" that is open */
    bool doubly = false;

    for (;; p++) {
        p = dashes ? wb_scan_either(p, end, '<', '>') : wb_scan_byte(p, end, '<');
        if (p == end)
            break;
        if (*p == '>') {
            if (p - dashes >= 2 && p[-1] == '-' && p[-2] == '-') {
                dashes = NULL;
                doubly = false;
            }
        } else if (doubly) {
            doubly = !(end - p > 2 && p[1] == '/' && has_script(p + 2, end));
            p += doubly ? 0 : 8; /* the '>' that ends the name does not also end a comment */
        } else if (closes_content(t, p)) {
            break;
        } else if (dashes) {
            doubly = has_script(p + 1, end);
            p += doubly ? 7 : 0;
        } else if (end - p >= 4 && memcmp(p, "<!--", 4) == 0) {
            dashes = p + 2;
            p += 3;
        }
    }
    return finish_content(t, p, WB_DECODE_NUL);
}

/* ---- the door -------------------------------------------------------------------------- */

void wb_tokenizer_init(struct wb_tokenizer *t, struct wb_slice utf8)
{
    t->at = utf8.ptr;
    t->end = utf8.ptr + utf8.len;
    t->mode = WB_MODE_DATA;
    t->foreign = false;
    t->last_start = t->raw = t->text = WB_SLICE_EMPTY;
    t->kind = WB_TOKEN_NONE;
    t->how = 0;
    t->self_closing = false;
    t->attr_count = 0;
    t->attrs_left_out = 0;
    t->doctype = (struct wb_token_doctype){WB_SLICE_EMPTY, WB_SLICE_EMPTY, false, false, false, false};
}

static inline enum wb_token_kind read_token(struct wb_tokenizer *t)
{
    switch (t->mode) {
    case WB_MODE_DATA:
        return read_data(t);
    case WB_MODE_RCDATA:
        return read_raw(t, WB_DECODE_ENTITIES | WB_DECODE_NUL);
    case WB_MODE_RAWTEXT:
        return read_raw(t, WB_DECODE_NUL);
    case WB_MODE_SCRIPT:
        return read_script(t);
    case WB_MODE_PLAINTEXT:
        return finish_content(t, t->end, WB_DECODE_NUL);
    case WB_MODE_CDATA:
        return read_cdata(t);
    }
    WB_CHECK(t->mode <= WB_MODE_CDATA);
    return WB_TOKEN_NONE;
}

enum wb_token_kind wb_tokenizer_next(struct wb_tokenizer *t)
{
    enum wb_token_kind kind;

    while ((kind = read_token(t)) == AGAIN)
        ;
    return kind;
}

/* True if an attribute has this name, which is given in lower case. */
static bool has_name(const struct wb_token_attr *attr, struct wb_slice name)
{
    char decoded[WB_DECODED_MAX(64)];

    if (!attr->name_coded)
        return wb_slice_equal(attr->name, name);
    if (wb_slice_equal_nocase(attr->name, name))
        return true;
    /* They can differ only by a NUL, which becomes U+FFFD, and no name that we look for contains that. */
    if (attr->name.len > 64)
        return false;
    return wb_slice_equal(wb_slice(decoded, wb_token_decode(attr->name, WB_DECODE_NAME, decoded)), name);
}

const struct wb_token_attr *wb_tokenizer_attr(const struct wb_tokenizer *t, struct wb_slice name)
{
    for (unsigned i = 0; i < t->attr_count; i++)
        if (has_name(&t->attrs[i], name))
            return &t->attrs[i];
    return NULL;
}

size_t wb_token_decode(struct wb_slice raw, unsigned how, char *out)
{
    const char *p = raw.ptr, *end = p + raw.len;
    char *start = out;

    while (p < end) {
        char c = *p++;
        size_t len = 0, taken = 0;
        if (c == '&' && how & WB_DECODE_ENTITIES &&
            (taken = wb_entity_read(p - 1, end, how & WB_DECODE_ATTRIBUTE, out, &len)) > 0) {
            p += taken - 1;
            out += len;
        } else if (c == '\r') {
            p += p < end && *p == '\n';
            *out++ = '\n';
        } else if (c == '\0' && how & WB_DECODE_NUL) {
            memcpy(out, "\xef\xbf\xbd", 3);
            out += 3;
        } else {
            *out++ = how & WB_DECODE_LOWER ? wb_ascii_lower(c) : c;
        }
    }
    return (size_t)(out - start);
}
