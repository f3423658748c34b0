/* attrvalue.c - splits the values of attributes that hold more than a URL: srcset, and content of a refresh. */
#include "markup/attrvalue.h"

#include <string.h>

/* ---- srcset ------------------------------------------------------------------------------- */

/* Skips the descriptors of a candidate, up to a comma that is not inside parentheses. */
static const char *skip_descriptors(const char *p, const char *end)
{
    bool inside = false;

    for (; p < end && (inside || *p != ','); p++)
        inside = *p == '(' || (inside && *p != ')');
    return p;
}

bool wb_srcset_next(struct wb_slice *rest, struct wb_slice *href_out)
{
    const char *p = rest->ptr, *end = p + rest->len;

    *href_out = WB_SLICE_EMPTY;
    while (href_out->len == 0 && p < end) {
        while (p < end && (wb_ascii_is_space(*p) || *p == ','))
            p++;
        const char *from = p;
        while (p < end && !wb_ascii_is_space(*p))
            p++;
        const char *to = p;
        while (to > from && to[-1] == ',')
            to--;
        if (to == p)
            p = skip_descriptors(p, end);
        *href_out = wb_slice(from, (size_t)(to - from));
    }
    *rest = wb_slice(p, (size_t)(end - p));
    return href_out->len > 0;
}

/* ---- refresh ------------------------------------------------------------------------------ */

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && wb_ascii_is_space(*p))
        p++;
    return p;
}

static bool is_number(char c)
{
    return wb_ascii_is_digit(c) || c == '.';
}

/* Skips the optional "URL = " before the URL. */
static const char *skip_url_word(const char *p, const char *end)
{
    if (!wb_slice_starts_nocase(wb_slice(p, (size_t)(end - p)), WB_SLICE_LIT("url")))
        return p;
    const char *q = skip_blanks(p + 3, end);
    return q < end && *q == '=' ? skip_blanks(q + 1, end) : p;
}

bool wb_refresh_parse(struct wb_slice content, struct wb_slice *href_out)
{
    const char *end = content.ptr + content.len, *p = skip_blanks(content.ptr, end), *from = p;

    *href_out = WB_SLICE_EMPTY;
    while (p < end && is_number(*p))
        p++;
    if (p == from)
        return false;
    if (p == end)
        return true;
    if (*p != ';' && *p != ',' && !wb_ascii_is_space(*p))
        return false;
    p = skip_blanks(p, end);
    if (p < end && (*p == ';' || *p == ','))
        p++;
    p = skip_url_word(skip_blanks(p, end), end);
    if (p == end)
        return true;
    if (*p == '"' || *p == '\'') {
        const char *close = memchr(p + 1, *p, (size_t)(end - p - 1));
        end = close ? close : end;
        p++;
    }
    *href_out = wb_slice(p, (size_t)(end - p));
    return true;
}
