/* slice.c - compares, trims and reads borrowed bytes. It never copies any. */
#include "base/slice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool wb_slice_starts_nocase(struct wb_slice s, struct wb_slice prefix)
{
    if (s.len < prefix.len)
        return false;
    for (size_t i = 0; i < prefix.len; i++)
        if (wb_ascii_lower(s.ptr[i]) != wb_ascii_lower(prefix.ptr[i]))
            return false;
    return true;
}

bool wb_slice_equal_nocase(struct wb_slice a, struct wb_slice b)
{
    return a.len == b.len && wb_slice_starts_nocase(a, b);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct wb_slice wb_slice_trim(struct wb_slice s)
{
    while (s.len && is_blank(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len && is_blank(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

bool wb_slice_to_u64(struct wb_slice s, uint64_t *value_out)
{
    uint64_t value = 0;

    *value_out = 0;
    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
        uint64_t digit = (uint64_t)(s.ptr[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *value_out = value;
    return true;
}

/* Moves *at over digits and returns how many there are. */
static size_t skip_digits(struct wb_slice text, size_t *at)
{
    size_t begin = *at;

    while (*at < text.len && text.ptr[*at] >= '0' && text.ptr[*at] <= '9')
        ++*at;
    return *at - begin;
}

bool wb_slice_to_double(struct wb_slice text, double *number_out)
{
    char copy[512];
    size_t at = 0;

    *number_out = 0;
    /* strtod() accepts more than we do, such as "inf" and hexadecimal numbers. */
    if (at < text.len && (text.ptr[at] == '-' || text.ptr[at] == '+'))
        at++;
    size_t digits = skip_digits(text, &at);
    if (at < text.len && text.ptr[at] == '.') {
        at++;
        digits += skip_digits(text, &at);
    }
    if (digits == 0)
        return false;
    if (at < text.len && (text.ptr[at] == 'e' || text.ptr[at] == 'E')) {
        at++;
        if (at < text.len && (text.ptr[at] == '-' || text.ptr[at] == '+'))
            at++;
        if (skip_digits(text, &at) == 0)
            return false;
    }
    if (at != text.len || text.len >= sizeof copy)
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    double number = strtod(copy, NULL);
    if (!isfinite(number))
        return false;
    *number_out = number;
    return true;
}

bool wb_slice_next_line(struct wb_slice *rest, struct wb_slice *line_out)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;

    *line_out = wb_slice(rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len);
    if (rest->len == 0)
        return false;
    size_t taken = line_out->len + (end != NULL);
    *rest = wb_slice(rest->ptr + taken, rest->len - taken);
    return true;
}

bool wb_slice_next_text_line(struct wb_slice *rest, struct wb_slice *line_out)
{
    size_t len = 0;

    while (len < rest->len && rest->ptr[len] != '\n' && rest->ptr[len] != '\r')
        len++;
    *line_out = wb_slice(rest->ptr, len);
    if (rest->len == 0)
        return false;
    size_t taken = len + (len < rest->len);
    if (len + 1 < rest->len && rest->ptr[len] == '\r' && rest->ptr[len + 1] == '\n')
        taken++;
    *rest = wb_slice(rest->ptr + taken, rest->len - taken);
    return true;
}
