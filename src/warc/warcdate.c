/*
 * warcdate.c - the dates of records. It only reads forms that can mean one moment alone, and never a clock: what cannot
 * be read gets its time from elsewhere (import_archive.c).
 */
#include "warc/warcdate.h"

#include "base/codec.h"
#include "base/date.h"

#include <stdio.h>

enum { TEXT_MAX = 64 };

/* Takes digits from the front of *text, as many as there are, but not more than max. Returns how many. */
static size_t take_digits(struct wb_slice *text, size_t max, int *value_out)
{
    size_t n = 0;

    *value_out = 0;
    while (n < text->len && n < max && wb_ascii_is_digit(text->ptr[n]))
        *value_out = *value_out * 10 + (text->ptr[n++] - '0');
    *text = wb_slice(text->ptr + n, text->len - n);
    return n;
}

static bool take_dash(struct wb_slice *text)
{
    if (text->len == 0 || text->ptr[0] != '-')
        return false;
    *text = wb_slice(text->ptr + 1, text->len - 1);
    return true;
}

static int month_days(int year, int month)
{
    static const char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

/* The month and day of a day of the year; false if the year has no such day. */
static bool of_year(int year, int day, int *month_out, int *day_out)
{
    int month = 1;

    while (month <= 12 && day > month_days(year, month))
        day -= month_days(year, month++);
    *month_out = month;
    *day_out = day;
    return month <= 12 && day >= 1;
}

/*
 * Reads "2009-03-65" and "2008-294" from the front of *text. Programs that write the day of the year behind the month
 * take both from one moment, so a day of two digits counts only if it lies in that month: otherwise it is a mistake.
 */
static bool take_day_of_year(struct wb_slice *text, int *year_out, int *month_out, int *day_out)
{
    int number, month = 0;

    if (take_digits(text, 4, year_out) != 4 || *year_out == 0 || !take_dash(text))
        return false;
    size_t digits = take_digits(text, 3, &number);
    if (digits == 2 && take_dash(text)) {
        month = number;
        digits = take_digits(text, 3, &number);
    } else if (digits != 3) {
        return false;
    }
    if (digits == 0 || month > 12 || !of_year(*year_out, number, month_out, day_out))
        return false;
    return digits == 3 || month == *month_out;
}

/* Puts the colon into a zone that lacks it: "-0800" at the end of a time. */
static void append_time(struct wb_slice rest, char *out, size_t room)
{
    size_t n = rest.len;
    bool bare = n > 5 && (rest.ptr[n - 5] == '-' || rest.ptr[n - 5] == '+');

    for (size_t i = bare ? n - 4 : n; i < n; i++)
        bare = bare && wb_ascii_is_digit(rest.ptr[i]);
    if (bare)
        snprintf(out, room, "%.*s:%.*s", (int)(n - 2), rest.ptr, 2, rest.ptr + n - 2);
    else
        snprintf(out, room, "%.*s", WB_SLICE_ARG(rest));
}

bool wb_warc_date_parse(struct wb_slice text, int64_t *time_ms_out)
{
    struct wb_slice rest = wb_slice_trim(text);
    char plain[2 * TEXT_MAX] = "";
    int year, month, day;

    if (wb_date_parse(rest, time_ms_out))
        return true;
    if (rest.len == 0 || rest.len > TEXT_MAX)
        return false;
    if (wb_ascii_is_digit(rest.ptr[rest.len - 1]) && rest.len >= 14 && wb_date_parse_digits(rest, time_ms_out))
        return true;
    const char *t = memchr(rest.ptr, 'T', rest.len);
    append_time(rest, plain, sizeof plain);
    if (t && wb_date_parse(wb_slice_str(plain), time_ms_out)) /* only the zone was unusual */
        return true;
    if (!take_day_of_year(&rest, &year, &month, &day))
        return false;
    size_t n = (size_t)snprintf(plain, sizeof plain, "%04d-%02d-%02d", year, month, day);
    append_time(rest, plain + n, sizeof plain - n);
    return wb_date_parse(wb_slice_str(plain), time_ms_out);
}
