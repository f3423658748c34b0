/*
 * s3_xml.c - reads the XML of S3's answers, which anybody may have written: it accepts what it understands, without
 * recursion, in time that grows with the length, and refuses the rest.
 */
#include "object/s3_xml.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/utf8.h"

void wb_s3_xml_init(struct wb_s3_xml *xml, struct wb_slice text)
{
    *xml = (struct wb_s3_xml){.rest = text};
    if (wb_slice_starts(text, WB_SLICE_LIT("\xef\xbb\xbf")))
        xml->rest = wb_slice(text.ptr + 3, text.len - 3);
}

void wb_s3_xml_release(struct wb_s3_xml *xml)
{
    wb_buf_release(&xml->text);
}

static int malformed(const char *what)
{
    return wb_fail(WB_E_PROTO, "this is not the XML of S3: %s", what);
}

static void skip(struct wb_s3_xml *xml, size_t len)
{
    xml->rest = wb_slice(xml->rest.ptr + len, xml->rest.len - len);
}

/* The length up to and with some text; 0 if it does not come. */
static size_t length_to(struct wb_slice rest, struct wb_slice text)
{
    const char *found = memmem(rest.ptr, rest.len, text.ptr, text.len);

    return found ? (size_t)(found - rest.ptr) + text.len : 0;
}

/* ---- characters -------------------------------------------------------------------------------------------- */

/* The character that &NAME; stands for; -1 if there is none. */
static int32_t character_of(struct wb_slice name)
{
    static const struct {
        const char *name;
        char character;
    } names[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    bool hex = name.len > 1 && name.ptr[1] == 'x';
    int32_t value = 0;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (wb_slice_equal(name, wb_slice_str(names[i].name)))
            return names[i].character;
    if (name.len < (hex ? 3u : 2u) || *name.ptr != '#')
        return -1;
    for (size_t i = hex ? 2 : 1; i < name.len; i++) {
        int digit = wb_hex_digit(name.ptr[i]);
        if (digit < 0 || (!hex && digit > 9))
            return -1;
        value = value * (hex ? 16 : 10) + digit;
        if (value > 0x10ffff)
            return -1;
    }
    return value == 0 || (value >= 0xd800 && value <= 0xdfff) ? -1 : value;
}

/* Decodes text up to the next tag. */
static int read_text(struct wb_s3_xml *xml)
{
    const char *end = memchr(xml->rest.ptr, '<', xml->rest.len);
    size_t len = end ? (size_t)(end - xml->rest.ptr) : xml->rest.len;
    int err = 0;

    for (size_t at = 0; err == 0 && at < len;) {
        const char *p = xml->rest.ptr + at;
        const char *entity = memchr(p, '&', len - at);
        size_t plain = entity ? (size_t)(entity - p) : len - at;
        err = wb_buf_append(&xml->text, p, plain);
        at += plain;
        if (err < 0 || !entity)
            continue;
        const char *semicolon = memchr(entity, ';', len - at < 12 ? len - at : 12);
        int32_t c = semicolon ? character_of(wb_slice(entity + 1, (size_t)(semicolon - entity) - 1)) : -1;
        if (c < 0)
            return malformed("an entity that stands for no character");
        char bytes[4];
        err = wb_buf_append(&xml->text, bytes, wb_utf8_encode((uint32_t)c, bytes));
        at += (size_t)(semicolon - entity) + 1;
    }
    skip(xml, len);
    return err;
}

/* ---- tags -------------------------------------------------------------------------------------------------- */

static bool is_name_char(char c)
{
    return wb_ascii_is_letter(c) || wb_ascii_is_digit(c) || strchr("_-.:", c);
}

/* Takes a name off the rest, and its prefix off the name. */
static struct wb_slice take_name(struct wb_s3_xml *xml)
{
    size_t len = 0, begin = 0;
    const char *p = xml->rest.ptr;

    for (; len < xml->rest.len && p[len] && is_name_char(p[len]); len++)
        if (p[len] == ':')
            begin = len + 1;
    skip(xml, len);
    return wb_slice(p + begin, len - begin);
}

/* Skips attributes. Returns the length up to the '>' of the tag; 0 if it does not come. Quotes may hold a '>'. */
static size_t length_of_attributes(struct wb_slice rest)
{
    char quote = 0;

    for (size_t i = 0; i < rest.len; i++) {
        char c = rest.ptr[i];
        if (quote)
            quote = c == quote ? 0 : quote;
        else if (c == '"' || c == '\'')
            quote = c;
        else if (c == '>')
            return i + 1;
        else if (c == '<')
            return 0;
    }
    return 0;
}

static int close_element(struct wb_s3_xml *xml)
{
    xml->closing = false;
    xml->ended = xml->open[--xml->depth];
    return WB_S3_XML_END;
}

static int read_begin(struct wb_s3_xml *xml)
{
    skip(xml, 1);
    struct wb_slice name = take_name(xml);
    size_t len = length_of_attributes(xml->rest);

    if (name.len == 0 || len == 0)
        return malformed("a tag without a name or an end");
    if (xml->depth == 0 && xml->any)
        return malformed("two elements, one after the other, on the outside");
    if (xml->depth == WB_S3_XML_DEPTH_MAX)
        return malformed("too many elements within each other");
    xml->closing = len > 1 && xml->rest.ptr[len - 2] == '/';
    xml->open[xml->depth++] = name;
    xml->any = true;
    skip(xml, len);
    return WB_S3_XML_BEGIN;
}

static int read_end(struct wb_s3_xml *xml)
{
    skip(xml, 2);
    struct wb_slice name = take_name(xml);

    while (xml->rest.len && wb_ascii_is_space(*xml->rest.ptr))
        skip(xml, 1);
    if (xml->rest.len == 0 || *xml->rest.ptr != '>' || xml->depth == 0 ||
        !wb_slice_equal(name, xml->open[xml->depth - 1]))
        return malformed("the end of an element that is not open");
    skip(xml, 1);
    return close_element(xml);
}

/* Skips a comment or an instruction: 1; 0: there is none. */
static int skip_others(struct wb_s3_xml *xml)
{
    static const struct {
        struct wb_slice begin, end;
    } others[] = {{{"<!--", 4}, {"-->", 3}}, {{"<?", 2}, {"?>", 2}}};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (!wb_slice_starts(xml->rest, others[i].begin))
            continue;
        size_t len = length_to(xml->rest, others[i].end);
        if (len == 0)
            return malformed("a comment or an instruction without an end");
        skip(xml, len);
        return 1;
    }
    return 0;
}

static int read_cdata(struct wb_s3_xml *xml)
{
    struct wb_slice begin = WB_SLICE_LIT("<![CDATA["), end = WB_SLICE_LIT("]]>");
    size_t len = length_to(xml->rest, end);

    if (!wb_slice_starts(xml->rest, begin) || len < begin.len + end.len)
        return malformed("a declaration");
    int err = wb_buf_append(&xml->text, xml->rest.ptr + begin.len, len - begin.len - end.len);
    skip(xml, len);
    return err;
}

static bool is_blank(struct wb_slice text)
{
    return wb_slice_trim(text).len == 0;
}

int wb_s3_xml_next(struct wb_s3_xml *xml)
{
    wb_buf_clear(&xml->text);
    if (xml->closing)
        return close_element(xml);
    while (xml->rest.len) {
        int others = skip_others(xml), err = 0;
        if (others < 0)
            return others;
        if (others > 0)
            continue;
        if (wb_slice_starts(xml->rest, WB_SLICE_LIT("</")))
            return read_end(xml);
        if (wb_slice_starts(xml->rest, WB_SLICE_LIT("<!")))
            err = read_cdata(xml);
        else if (*xml->rest.ptr == '<')
            return read_begin(xml);
        else
            err = read_text(xml);
        if (err < 0)
            return err;
        if (xml->depth)
            return WB_S3_XML_TEXT;
        if (!is_blank(wb_buf_slice(&xml->text)))
            return malformed("text outside of all elements");
        wb_buf_clear(&xml->text);
    }
    if (xml->depth || !xml->any)
        return malformed("it ends in the middle");
    return WB_S3_XML_OVER;
}

bool wb_s3_xml_inside(const struct wb_s3_xml *xml, const char *elements)
{
    size_t depth = 0;

    for (const char *p = elements; *p; depth++) {
        size_t len = strcspn(p, "/");
        if (depth >= xml->depth || !wb_slice_equal(xml->open[depth], wb_slice(p, len)))
            return false;
        p += len + (p[len] == '/');
    }
    return depth == xml->depth;
}
