/*
 * ask_point.c - shows on a terminal which character of a query is meant.
 *
 *   ...alpha beta inlinks:>=many gamma...
 *                           ^
 *
 * Columns are counted as terminals do: wide characters take two, combining marks none. Where characters or terminals
 * are unusual, the ^ may be off by a column or two; the message has the number of the character.
 */
#include "query/ask_own.h"
#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"

#include <unicode/uchar.h>

#define DOTS "..."
#define COLUMNS_MIN 24

/* One character of the query, as it is shown. */
struct wb_ask_glyph {
    size_t len;           /* bytes in the query */
    struct wb_slice show; /* what is printed */
    size_t columns;
};

static size_t columns_of(uint32_t c)
{
    int8_t type = u_charType((UChar32)c);
    int width = u_getIntPropertyValue((UChar32)c, UCHAR_EAST_ASIAN_WIDTH);

    if (type == U_NON_SPACING_MARK || type == U_ENCLOSING_MARK)
        return 0;
    return width == U_EA_FULLWIDTH || width == U_EA_WIDE ? 2 : 1;
}

static struct wb_ask_glyph glyph_at(struct wb_slice text, size_t at)
{
    size_t len = wb_utf8_length(text.ptr + at, text.len - at);

    if (len == 0)
        return (struct wb_ask_glyph){1, WB_SLICE_LIT("?"), 1};
    uint32_t c = wb_utf8_decode(text.ptr + at, len);
    if (u_isUWhiteSpace((UChar32)c))
        return (struct wb_ask_glyph){len, WB_SLICE_LIT(" "), 1};
    /* Control and format characters could move the cursor or turn the line around. */
    if (!u_isprint((UChar32)c))
        return (struct wb_ask_glyph){len, WB_SLICE_LIT("?"), 1};
    return (struct wb_ask_glyph){len, wb_slice(text.ptr + at, len), columns_of(c)};
}

/* The offset of the character before `at`. */
static size_t step_back(struct wb_slice text, size_t at)
{
    WB_CHECK(at > 0);
    for (size_t len = at < 4 ? at : 4; len > 1; len--)
        if (wb_utf8_length(text.ptr + at - len, len) == len)
            return at - len;
    return at - 1;
}

/* Where the line begins: as far before `at` as fits into so many columns. *used_out is the columns that takes. */
static size_t line_begin(struct wb_slice text, size_t at, size_t columns, size_t *used_out)
{
    size_t begin = at, used = 0;

    while (begin > 0) {
        size_t before = step_back(text, begin), more = glyph_at(text, before).columns;
        if (used + more > columns)
            break;
        used += more;
        begin = before;
    }
    *used_out = used;
    return begin;
}

/* Where the line ends: as far from `at` as fits into so many columns. *used_out is the columns that takes. */
static size_t line_end(struct wb_slice text, size_t at, size_t columns, size_t *used_out)
{
    size_t end = at;

    *used_out = 0;
    while (end < text.len) {
        struct wb_ask_glyph glyph = glyph_at(text, end);
        if (*used_out + glyph.columns > columns)
            break;
        *used_out += glyph.columns;
        end += glyph.len;
    }
    return end;
}

int wb_ask_point(struct wb_slice text, size_t at, size_t columns, struct wb_buf *lines_out)
{
    /* Dots at both ends, and a column for a ^ behind the last character. */
    size_t room = (columns < COLUMNS_MIN ? COLUMNS_MIN : columns) - 2 * strlen(DOTS) - 1, before, after;

    WB_CHECK(at <= text.len);
    /* A third of the line is for what follows, the rest for what comes before; what one does not need, the other gets.
     */
    size_t end = line_end(text, at, room / 3, &after);
    size_t begin = line_begin(text, at, room - after, &before);
    end = line_end(text, at, room - before, &after);
    int err = begin > 0 ? wb_buf_append_str(lines_out, DOTS) : 0;
    for (size_t i = begin; err == 0 && i < end;) {
        struct wb_ask_glyph glyph = glyph_at(text, i);
        err = wb_buf_append_slice(lines_out, glyph.show);
        i += glyph.len;
    }
    if (err == 0)
        err = wb_buf_append_str(lines_out, end < text.len ? DOTS "\n" : "\n");
    if (err == 0)
        err = wb_buf_printf(lines_out, "%*s^\n", (int)(before + (begin > 0 ? strlen(DOTS) : 0)), "");
    return err;
}
