/*
 * xml.c - reads XML as a sequence of tags and text, for sitemaps, feeds and any other XML.
 *
 * It never validates: names need not match, and namespaces are just prefixes. It never expands
 * entities that a document declares, so that none can grow. Every byte is looked at a small number
 * of times, whatever the document.
 */
#include "markup/xml.h"

#include "base/codec.h"
#include "base/utf8.h"
#include "page/page.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' || (unsigned char)c >= 0x80;
}

static const char *find_byte(const char *at, const char *end, char c)
{
    const char *found = at < end ? memchr(at, c, (size_t)(end - at)) : NULL;

    return found ? found : end;
}

static bool starts_with(const char *at, const char *end, struct wb_slice text)
{
    return wb_slice_starts(wb_slice(at, (size_t)(end - at)), text);
}

/* Returns the position behind the next `text`, or the end. */
static const char *find_behind(const char *at, const char *end, struct wb_slice text)
{
    const char *found = memmem(at, (size_t)(end - at), text.ptr, text.len);

    return found ? found + text.len : end;
}

void wb_xml_init(struct wb_xml *xml, struct wb_slice utf8)
{
    *xml = (struct wb_xml){.at = utf8.ptr, .end = utf8.ptr + utf8.len};
}

/* Skips the quoted text at `at`; if there is no closing quote, only the opening one, which then means nothing. */
static const char *skip_quoted(struct wb_xml *xml, const char *at)
{
    bool *none = &xml->no_quote[*at == '"'];
    const char *close = *none ? xml->end : find_byte(at + 1, xml->end, *at);

    *none = close == xml->end;
    return *none ? at + 1 : close + 1;
}

/* Skips the document type at `at`, including the declarations inside its brackets. */
static const char *skip_doctype(struct wb_xml *xml, const char *at)
{
    bool inside = false;

    while (at < xml->end) {
        if (*at == '"' || *at == '\'') {
            at = skip_quoted(xml, at);
            continue;
        }
        if (inside && starts_with(at, xml->end, WB_SLICE_LIT("<!--"))) {
            at = find_behind(at + 4, xml->end, WB_SLICE_LIT("-->"));
            continue;
        }
        if (*at == '[' || *at == ']')
            inside = *at == '[';
        else if (*at == '>' && !inside)
            return at + 1;
        at++;
    }
    return at;
}

/* Splits "atom:link" into prefix and name. */
static void split_name(struct wb_slice whole, struct wb_slice *prefix_out, struct wb_slice *name_out)
{
    const char *colon = find_byte(whole.ptr, whole.ptr + whole.len, ':');

    *prefix_out = WB_SLICE_EMPTY;
    *name_out = whole;
    if (colon < whole.ptr + whole.len) {
        *prefix_out = wb_slice(whole.ptr, (size_t)(colon - whole.ptr));
        *name_out = wb_slice(colon + 1, whole.len - prefix_out->len - 1);
    }
}

/* Reads a tag whose name starts at xml->at. A tag without a '>' ends where the next one begins. */
static void read_tag(struct wb_xml *xml, struct wb_xml_token *token)
{
    const char *name = xml->at, *at = name;

    while (at < xml->end && !is_space(*at) && *at != '>' && *at != '/' && *at != '<')
        at++;
    split_name(wb_slice(name, (size_t)(at - name)), &token->prefix, &token->name);
    const char *attributes = at;
    while (at < xml->end && *at != '>' && *at != '<')
        at = *at == '"' || *at == '\'' ? skip_quoted(xml, at) : at + 1;
    token->attributes = wb_slice(attributes, (size_t)(at - attributes));
    if (at > attributes && at[-1] == '/') {
        token->empty = token->kind == WB_XML_OPEN;
        token->attributes.len--;
    }
    xml->at = at < xml->end && *at == '>' ? at + 1 : at;
}

/* Reads text up to the next '<'; `from` itself may be a '<' that begins no tag. */
static void read_text(struct wb_xml *xml, const char *from, struct wb_xml_token *token)
{
    const char *at = find_byte(from + 1, xml->end, '<');

    token->kind = WB_XML_TEXT;
    token->text = wb_slice(from, (size_t)(at - from));
    token->coded = find_byte(from, at, '&') < at;
    xml->at = at;
}

static void read_cdata(struct wb_xml *xml, struct wb_xml_token *token)
{
    const char *from = xml->at + 9, *behind = find_behind(from, xml->end, WB_SLICE_LIT("]]>"));
    bool closed = behind - from >= 3 && memcmp(behind - 3, "]]>", 3) == 0;

    token->kind = WB_XML_TEXT;
    token->text = wb_slice(from, (size_t)(behind - from) - (closed ? 3 : 0));
    xml->at = behind;
}

/* Skips "<!" or "<?" that is not CDATA. A processing instruction ends at '>', because many lack the '?'. */
static void skip_other(struct wb_xml *xml)
{
    const char *at = xml->at;

    if (starts_with(at, xml->end, WB_SLICE_LIT("<!--")))
        xml->at = find_behind(at + 4, xml->end, WB_SLICE_LIT("-->"));
    else if (wb_slice_starts_nocase(wb_slice(at, (size_t)(xml->end - at)), WB_SLICE_LIT("<!doctype")))
        xml->at = skip_doctype(xml, at + 9);
    else
        xml->at = find_behind(at, xml->end, WB_SLICE_LIT(">"));
}

bool wb_xml_next(struct wb_xml *xml, struct wb_xml_token *token_out)
{
    *token_out = (struct wb_xml_token){.prefix = WB_SLICE_EMPTY,
                                       .name = WB_SLICE_EMPTY,
                                       .attributes = WB_SLICE_EMPTY,
                                       .text = WB_SLICE_EMPTY};
    while (xml->at < xml->end) {
        const char *at = xml->at;
        char next = xml->end - at > 1 ? at[1] : 0;

        if (*at != '<') {
            read_text(xml, at, token_out);
            return true;
        }
        if (next == '/' || is_name_start(next)) {
            token_out->kind = next == '/' ? WB_XML_CLOSE : WB_XML_OPEN;
            xml->at = at + (next == '/' ? 2 : 1);
            read_tag(xml, token_out);
            return true;
        }
        if (starts_with(at, xml->end, WB_SLICE_LIT("<![CDATA["))) {
            read_cdata(xml, token_out);
            return true;
        }
        if (next != '!' && next != '?') {
            read_text(xml, at, token_out);
            return true;
        }
        skip_other(xml);
    }
    return false;
}

/* Removes the next attribute from *left; false at the end. */
static bool next_attribute(struct wb_slice *left, struct wb_slice *name_out, struct wb_slice *value_out)
{
    const char *at = left->ptr, *end = at + left->len;

    while (at < end && (is_space(*at) || *at == '=' || *at == '"' || *at == '\''))
        at++;
    const char *name = at;
    while (at < end && !is_space(*at) && *at != '=')
        at++;
    *name_out = wb_slice(name, (size_t)(at - name));
    *value_out = WB_SLICE_EMPTY;
    while (at < end && is_space(*at))
        at++;
    if (at < end && *at == '=') {
        for (at++; at < end && is_space(*at);)
            at++;
        const char *close = at < end && (*at == '"' || *at == '\'') ? find_byte(at + 1, end, *at) : NULL;
        const char *value = close ? at + 1 : at;
        if (!close)
            for (close = at; close < end && !is_space(*close);)
                close++;
        *value_out = wb_slice(value, (size_t)(close - value));
        at = close < end ? close + 1 : end;
    }
    *left = wb_slice(at, (size_t)(end - at));
    return name_out->len > 0;
}

bool wb_xml_attribute(const struct wb_xml_token *token, const char *prefix, const char *name,
                      struct wb_slice *value_out)
{
    struct wb_slice left = token->attributes, whole, its_prefix, its_name;

    while (next_attribute(&left, &whole, value_out)) {
        split_name(whole, &its_prefix, &its_name);
        if (wb_slice_equal_nocase(its_name, wb_slice_str(name)) &&
            wb_slice_equal_nocase(its_prefix, wb_slice_str(prefix)))
            return true;
    }
    *value_out = WB_SLICE_EMPTY;
    return false;
}

bool wb_xml_is(const struct wb_xml_token *token, const char *name)
{
    return wb_slice_equal_nocase(token->name, wb_slice_str(name));
}

/* ---- references ---------------------------------------------------------------------------- */

/* The code point of "#38" or "#x26"; 0 if XML does not allow it. */
static uint32_t number_of(struct wb_slice body)
{
    bool hex = body.len > 1 && (body.ptr[1] == 'x' || body.ptr[1] == 'X');
    uint32_t cp = 0;

    if (body.len == (hex ? 2u : 1u))
        return 0;
    for (size_t i = hex ? 2 : 1; i < body.len; i++) {
        int digit = wb_hex_digit(body.ptr[i]);
        if (digit < 0 || (!hex && digit > 9))
            return 0;
        cp = cp * (hex ? 16 : 10) + (uint32_t)digit;
        if (cp > 0x10ffff)
            return 0;
    }
    bool control = cp < 0x20 && cp != '\t' && cp != '\n' && cp != '\r';
    return control || (cp >= 0xd800 && cp <= 0xdfff) ? 0 : cp;
}

/* The code point of a reference, given the text between '&' and ';'; 0 if we do not know it. */
static uint32_t code_point_of(struct wb_slice body)
{
    static const struct {
        const char *name;
        char c;
    } names[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};

    if (body.len && body.ptr[0] == '#')
        return number_of(body);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (wb_slice_equal(body, wb_slice_str(names[i].name)))
            return (uint32_t)names[i].c;
    return 0;
}

int wb_xml_decode(struct wb_slice text, struct wb_buf *out)
{
    const char *at = text.ptr, *end = at + text.len;
    int err = wb_buf_reserve(out, text.len);

    if (err < 0)
        return err;
    while (at < end) {
        const char *amp = find_byte(at, end, '&');
        memcpy(out->ptr + out->len, at, (size_t)(amp - at));
        out->len += (size_t)(amp - at);
        if (amp == end)
            break;
        const char *semicolon = find_byte(amp, end - amp > 12 ? amp + 12 : end, ';');
        uint32_t cp =
            semicolon < end && *semicolon == ';' ? code_point_of(wb_slice(amp + 1, (size_t)(semicolon - amp - 1))) : 0;
        if (cp) {
            out->len += wb_utf8_encode(cp, out->ptr + out->len);
            at = semicolon + 1;
        } else {
            out->ptr[out->len++] = '&';
            at = amp + 1;
        }
    }
    return 0;
}

/* ---- text that may come in pieces ---------------------------------------------------------- */

void wb_xml_text_clear(struct wb_xml_text *text)
{
    text->piece = WB_SLICE_EMPTY;
    text->copied = false;
    wb_buf_clear(&text->joined);
}

int wb_xml_text_add(struct wb_xml_text *text, const struct wb_xml_token *token, size_t max)
{
    struct wb_slice more = token->text;
    size_t have = text->copied ? text->joined.len : text->piece.len;
    int err = 0;

    if (have > max || more.len == 0)
        return 0;
    if (more.len > max + 1)
        more.len = max + 1;
    if (have == 0 && !token->coded) {
        text->piece = more;
        return 0;
    }
    if (!text->copied)
        err = wb_buf_append_slice(&text->joined, text->piece);
    text->copied = true;
    if (err < 0)
        return err;
    return token->coded ? wb_xml_decode(more, &text->joined) : wb_buf_append_slice(&text->joined, more);
}

struct wb_slice wb_xml_trim(struct wb_slice s)
{
    while (s.len && (unsigned char)s.ptr[0] <= ' ')
        s = wb_slice(s.ptr + 1, s.len - 1);
    while (s.len && (unsigned char)s.ptr[s.len - 1] <= ' ')
        s.len--;
    return s;
}

struct wb_slice wb_xml_text_get(const struct wb_xml_text *text)
{
    return wb_xml_trim(text->copied ? wb_buf_slice(&text->joined) : text->piece);
}

void wb_xml_text_release(struct wb_xml_text *text)
{
    wb_buf_release(&text->joined);
    *text = WB_XML_TEXT_INIT;
}

/* ---- dates ---------------------------------------------------------------------------------- */

static bool all_digits(struct wb_slice s)
{
    uint64_t value;

    return wb_slice_to_u64(s, &value);
}

bool wb_xml_date(struct wb_slice text, int64_t *time_ms_out)
{
    static const char *const missing[] = {"-01-01", "-01"};
    struct wb_slice s = wb_slice_trim(text);
    char date[16];

    bool year = s.len == 4 && all_digits(s);
    bool month = s.len == 7 && s.ptr[4] == '-' && all_digits(wb_slice(s.ptr, 4)) && all_digits(wb_slice(s.ptr + 5, 2));
    if (year || month) {
        memcpy(date, s.ptr, s.len);
        memcpy(date + s.len, missing[month], strlen(missing[month]));
        s = wb_slice(date, sizeof "2000-01-01" - 1);
    }
    return wb_http_date_parse(s, time_ms_out);
}
