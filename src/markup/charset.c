/*
 * charset.c - determines the encoding of a document, as the HTML standard does.
 *
 *   BOM -> what the transport says -> <meta> (HTML) or the declaration (XML) -> a guess (charset_guess.c)
 *
 * It looks for declarations only in the first PRESCAN_BYTES, and never converts anything: decode.c does.
 */
#include "markup/charset.h"

/*
 * The standard's prescan looks at 1024 bytes, and the parser may start again if it meets a <meta> behind
 * them. We never parse twice; our prescan looks further instead.
 */
enum { PRESCAN_BYTES = 16 << 10 };

const char *wb_charset_by_label(struct wb_slice label)
{
    const struct wb_encoding *encoding = wb_encoding_by_label(label);

    return encoding ? encoding->name : NULL;
}

static bool is_utf16(const char *name)
{
    return strncmp(name, "utf-16", 6) == 0;
}

/* A declaration that can be read as ASCII cannot be true if it says UTF-16: corrects it as the standard does. */
static const char *sane_in_meta(const char *name)
{
    if (is_utf16(name))
        return "utf-8";
    return strcmp(name, "x-user-defined") == 0 ? "windows-1252" : name;
}

/* ---- the declaration of XML --------------------------------------------------------------------- */

static size_t find_text(struct wb_slice s, size_t at, struct wb_slice text)
{
    const char *hit = at < s.len ? memmem(s.ptr + at, s.len - at, text.ptr, text.len) : NULL;

    return hit ? (size_t)(hit - s.ptr) : s.len;
}

/* The standard's "get an XML encoding": looks for encoding="..." in <?xml ... up to the first '>'. */
static const char *xml_declaration(struct wb_slice s)
{
    if (!wb_slice_starts(s, WB_SLICE_LIT("<?xml")))
        return NULL;
    s.len = find_text(s, 5, WB_SLICE_LIT(">"));
    size_t at = find_text(s, 5, WB_SLICE_LIT("encoding")) + 8;
    while (at < s.len && s.ptr[at] <= ' ')
        at++;
    if (at >= s.len || s.ptr[at] != '=')
        return NULL;
    at++;
    while (at < s.len && s.ptr[at] <= ' ')
        at++;
    if (at >= s.len || (s.ptr[at] != '"' && s.ptr[at] != '\''))
        return NULL;
    size_t end = find_text(s, at + 1, wb_slice(s.ptr + at, 1));
    if (end == s.len)
        return NULL;
    const char *name = wb_charset_by_label(wb_slice(s.ptr + at + 1, end - at - 1));
    return name && is_utf16(name) ? "utf-8" : name;
}

/* Recognises an XML declaration in UTF-16. */
static const char *xml_utf16(struct wb_slice s)
{
    if (s.len >= 6 && memcmp(s.ptr, "<\0?\0x\0", 6) == 0)
        return "utf-16le";
    return s.len >= 6 && memcmp(s.ptr, "\0<\0?\0x", 6) == 0 ? "utf-16be" : NULL;
}

/* ---- the prescan of HTML -------------------------------------------------------------------------- */

struct attribute {
    struct wb_slice name, value;
};

/*
 * The standard's "get an attribute". Returns false at the '>' of the tag or at the end of the bytes,
 * with *at there.
 */
static bool next_attribute(struct wb_slice s, size_t *at, struct attribute *attribute_out)
{
    size_t i = *at, start;

    *attribute_out = (struct attribute){WB_SLICE_EMPTY, WB_SLICE_EMPTY};
    while (i < s.len && (wb_ascii_is_space(s.ptr[i]) || s.ptr[i] == '/'))
        i++;
    *at = i;
    if (i >= s.len || s.ptr[i] == '>')
        return false;
    start = i;
    while (i < s.len && !wb_ascii_is_space(s.ptr[i]) && s.ptr[i] != '/' && s.ptr[i] != '>' &&
           (s.ptr[i] != '=' || i == start))
        i++;
    attribute_out->name = wb_slice(s.ptr + start, i - start);
    while (i < s.len && wb_ascii_is_space(s.ptr[i]))
        i++;
    *at = i;
    if (i >= s.len || s.ptr[i] != '=')
        return i < s.len;
    do
        i++;
    while (i < s.len && wb_ascii_is_space(s.ptr[i]));
    if (i < s.len && (s.ptr[i] == '"' || s.ptr[i] == '\'')) {
        size_t end = find_text(s, i + 1, wb_slice(s.ptr + i, 1));
        *at = end < s.len ? end + 1 : s.len;
        attribute_out->value = end < s.len ? wb_slice(s.ptr + i + 1, end - i - 1) : WB_SLICE_EMPTY;
        return end < s.len;
    }
    start = i;
    while (i < s.len && !wb_ascii_is_space(s.ptr[i]) && s.ptr[i] != '>')
        i++;
    attribute_out->value = wb_slice(s.ptr + start, i - start);
    *at = i;
    return i < s.len;
}

/* The standard's "extracting a character encoding from a meta element", from "text/html; charset=...". */
static const char *charset_of_content(struct wb_slice s)
{
    for (size_t at = 0; at + 7 <= s.len; at++) {
        if (!wb_slice_starts_nocase(wb_slice(s.ptr + at, s.len - at), WB_SLICE_LIT("charset")))
            continue;
        size_t i = at + 7;
        while (i < s.len && wb_ascii_is_space(s.ptr[i]))
            i++;
        if (i >= s.len || s.ptr[i] != '=')
            continue;
        do
            i++;
        while (i < s.len && wb_ascii_is_space(s.ptr[i]));
        if (i >= s.len)
            return NULL;
        size_t end = i;
        if (s.ptr[i] == '"' || s.ptr[i] == '\'') {
            end = find_text(s, i + 1, wb_slice(s.ptr + i, 1));
            return end < s.len ? wb_charset_by_label(wb_slice(s.ptr + i + 1, end - i - 1)) : NULL;
        }
        while (end < s.len && !wb_ascii_is_space(s.ptr[end]) && s.ptr[end] != ';')
            end++;
        return wb_charset_by_label(wb_slice(s.ptr + i, end - i));
    }
    return NULL;
}

/* Returns what one <meta ...> says, or NULL; *at moves past its attributes. */
static const char *read_meta(struct wb_slice s, size_t *at)
{
    struct attribute a;
    bool seen_pragma = false, seen_content = false, seen_charset = false, got_pragma = false;
    const char *by_content = NULL, *by_charset = NULL;

    while (next_attribute(s, at, &a)) {
        if (!seen_pragma && wb_slice_equal_nocase(a.name, WB_SLICE_LIT("http-equiv"))) {
            seen_pragma = true;
            got_pragma = wb_slice_equal_nocase(a.value, WB_SLICE_LIT("content-type"));
        } else if (!seen_content && wb_slice_equal_nocase(a.name, WB_SLICE_LIT("content"))) {
            seen_content = true;
            by_content = charset_of_content(a.value);
        } else if (!seen_charset && wb_slice_equal_nocase(a.name, WB_SLICE_LIT("charset"))) {
            seen_charset = true;
            by_charset = wb_charset_by_label(a.value);
        }
    }
    /* Ignore a tag that is cut off by the end of the window. */
    if (*at >= s.len)
        return NULL;
    if (seen_charset)
        return by_charset ? sane_in_meta(by_charset) : NULL;
    return by_content && got_pragma ? sane_in_meta(by_content) : NULL;
}

/* The standard's prescan of HTML: looks for a <meta> that declares an encoding, outside comments and other tags. */
static const char *prescan(struct wb_slice s)
{
    const char *name = xml_utf16(s);

    for (size_t at = 0; !name && at < s.len; at++) {
        const char *lt = memchr(s.ptr + at, '<', s.len - at);
        if (!lt)
            break;
        at = (size_t)(lt - s.ptr);
        struct wb_slice rest = wb_slice(lt, s.len - at);
        if (wb_slice_starts(rest, WB_SLICE_LIT("<!--"))) {
            at = find_text(s, at + 2, WB_SLICE_LIT("-->")) + 2;
            continue;
        }
        if (rest.len > 5 && wb_slice_starts_nocase(rest, WB_SLICE_LIT("<meta")) &&
            (wb_ascii_is_space(lt[5]) || lt[5] == '/')) {
            at += 5;
            name = read_meta(s, &at);
            continue;
        }
        size_t letter = rest.len > 1 && lt[1] == '/' ? 2 : 1;
        if (rest.len > letter && wb_ascii_is_letter(lt[letter])) {
            struct attribute a;
            while (at < s.len && !wb_ascii_is_space(s.ptr[at]) && s.ptr[at] != '>')
                at++;
            while (next_attribute(s, &at, &a))
                ;
        } else if (rest.len > 1 && (lt[1] == '!' || lt[1] == '/' || lt[1] == '?')) {
            at = find_text(s, at, WB_SLICE_LIT(">"));
        }
    }
    return name ? name : xml_declaration(s);
}

/* ---- the decision ------------------------------------------------------------------------------------------ */

static const char *by_bom(struct wb_slice s)
{
    if (wb_slice_starts(s, WB_SLICE_LIT("\xef\xbb\xbf")))
        return "utf-8";
    if (wb_slice_starts(s, WB_SLICE_LIT("\xfe\xff")))
        return "utf-16be";
    return wb_slice_starts(s, WB_SLICE_LIT("\xff\xfe")) ? "utf-16le" : NULL;
}

const char *wb_charset_of(struct wb_slice bytes, struct wb_slice transport, enum wb_charset_kind kind)
{
    struct wb_slice front = wb_slice(bytes.ptr, bytes.len < PRESCAN_BYTES ? bytes.len : PRESCAN_BYTES);
    const char *name = by_bom(bytes);

    if (!name)
        name = wb_charset_by_label(transport);
    if (!name && kind == WB_CHARSET_HTML)
        name = prescan(front);
    if (!name && kind == WB_CHARSET_XML)
        name = xml_declaration(front);
    if (!name)
        name = wb_charset_guess(bytes, kind != WB_CHARSET_TEXT, kind == WB_CHARSET_HTML ? "windows-1252" : "utf-8");
    return name;
}
