/*
 * httpdate.c - parses the dates of HTTP headers (RFC 9110, 5.6.7), as leniently as browsers do for cookies.
 *
 *   Sun, 06 Nov 1994 08:49:37 GMT      Sunday, 06-Nov-94 08:49:37 GMT      Sun Nov  6 08:49:37 1994
 *
 * The words of a date may come in any order and with any delimiters between them; each word is
 * recognised by what it looks like. A year of two digits is one of 1970 to 2069. It never reads a
 * clock or a locale.
 */
#include "base/date.h"
#include "page/page.h"

#include <stdio.h>

enum {
    TEXT_MAX = 128,                   /* a longer text is not a date */
    RETRY_SECONDS_MAX = 10 * 366 * WB_DAY_SECONDS,
};

struct date {
    int year, month, day, hour, minute, second; /* -1: not seen yet; hour tells that for the whole time */
    int zone_min;
};

/* Reads a number of at most four digits, and nothing else. */
static bool read_number(struct wb_slice s, int *value_out)
{
    uint64_t value;

    *value_out = 0;
    if (s.len > 4 || !wb_slice_to_u64(s, &value))
        return false;
    *value_out = (int)value;
    return true;
}

/* Reads hh:mm or hh:mm:ss. */
static bool read_time(struct wb_slice s, struct date *date)
{
    int part[3] = {0, 0, 0}, n = 0;

    while (n < 3) {
        size_t len = 0;
        while (len < s.len && s.ptr[len] != ':')
            len++;
        if (len == 0 || len > 2 || !read_number(wb_slice(s.ptr, len), &part[n++]))
            return false;
        if (len == s.len)
            break;
        s = wb_slice(s.ptr + len + 1, s.len - len - 1);
        if (n == 3)
            return false;
    }
    if (n < 2)
        return false;
    date->hour = part[0];
    date->minute = part[1];
    date->second = part[2];
    return true;
}

static int read_month(struct wb_slice s)
{
    static const char *const months[] = {"january", "february", "march",     "april",   "may",      "june",
                                         "july",    "august",   "september", "october", "november", "december"};

    for (int i = 0; i < 12 && s.len >= 3; i++)
        if (wb_slice_starts_nocase(wb_slice_str(months[i]), s))
            return i + 1;
    return -1;
}

/* Reads one of RFC 822's names of time zones; any other name counts as GMT. */
static int read_zone_name(struct wb_slice s)
{
    static const struct {
        const char *name;
        int hours;
    } zones[] = {{"est", -5}, {"edt", -4}, {"cst", -6}, {"cdt", -5},
                 {"mst", -7}, {"mdt", -6}, {"pst", -8}, {"pdt", -7}};

    for (size_t i = 0; i < sizeof zones / sizeof *zones; i++)
        if (wb_slice_equal_nocase(s, wb_slice_str(zones[i].name)))
            return zones[i].hours * 60;
    return 0;
}

/* Reads hhmm or hh:mm, the part of a time zone after its sign. */
static bool read_zone_offset(struct wb_slice s, bool negative, struct date *date)
{
    char digits[4];
    int value;

    if (s.len == 5 && s.ptr[2] == ':') {
        memcpy(digits, s.ptr, 2);
        memcpy(digits + 2, s.ptr + 3, 2);
    } else if (s.len == 4) {
        memcpy(digits, s.ptr, 4);
    } else {
        return false;
    }
    if (!read_number(wb_slice(digits, 4), &value) || value / 100 > 23 || value % 100 > 59)
        return false;
    date->zone_min = (value / 100 * 60 + value % 100) * (negative ? -1 : 1);
    return true;
}

/* Takes one word of a date; `before` is the character in front of it. False if it does not belong in a date. */
static bool take_word(struct wb_slice word, char before, struct date *date)
{
    int value;

    if (!wb_ascii_is_digit(word.ptr[0])) {
        int month = read_month(word);
        if (month > 0 && date->month < 0)
            date->month = month;
        else if (date->hour >= 0 && date->zone_min == 0)
            date->zone_min = read_zone_name(word);
        return true;
    }
    if (date->hour >= 0 && (before == '+' || before == '-') && read_zone_offset(word, before == '-', date))
        return true;
    if (memchr(word.ptr, ':', word.len))
        return date->hour < 0 && read_time(word, date);
    if (before == '.' && date->hour >= 0)
        return true; /* a fraction of the second */
    if (!read_number(word, &value))
        return false;
    if (word.len <= 2 && date->day < 0) {
        date->day = value;
    } else if ((word.len == 4 || word.len == 2) && date->year < 0) {
        date->year = word.len == 4 ? value : value + (value < 70 ? 2000 : 1900);
    } else {
        return false;
    }
    return true;
}

static bool split_date(struct wb_slice s, struct date *date)
{
    for (size_t i = 0; i < s.len;) {
        size_t start = i;
        bool digits = wb_ascii_is_digit(s.ptr[i]);
        while (i < s.len && (digits ? wb_ascii_is_digit(s.ptr[i]) || s.ptr[i] == ':'
                                    : wb_ascii_lower(s.ptr[i]) >= 'a' && wb_ascii_lower(s.ptr[i]) <= 'z'))
            i++;
        if (i == start) {
            i++;
            continue;
        }
        bool whole = date->year >= 0 && date->month >= 0 && date->day >= 0 && date->hour >= 0;
        if (!take_word(wb_slice(s.ptr + start, i - start), start ? s.ptr[start - 1] : ' ', date))
            return whole; /* if a header has two dates, the first one counts */
    }
    return date->year >= 0 && date->month >= 0 && date->day >= 0;
}

bool wb_http_date_parse(struct wb_slice text, int64_t *time_ms_out)
{
    struct wb_slice s = wb_slice_trim(text);
    struct date date = {-1, -1, -1, -1, 0, 0, 0};
    char iso[64];

    *time_ms_out = 0;
    if (s.len > TEXT_MAX)
        return false;
    if (wb_date_parse(s, time_ms_out))
        return true;
    if (!split_date(s, &date))
        return false;
    snprintf(iso, sizeof iso, "%04d-%02d-%02dT%02d:%02d:%02dZ", date.year, date.month, date.day,
             date.hour < 0 ? 0 : date.hour, date.minute, date.second);
    if (!wb_date_parse(wb_slice_str(iso), time_ms_out))
        return false;
    *time_ms_out -= (int64_t)date.zone_min * 60000;
    return true;
}

bool wb_http_retry_after(struct wb_slice value, int64_t now_ms, int64_t *time_ms_out)
{
    struct wb_slice s = wb_slice_trim(value);
    uint64_t seconds = 0;
    size_t digits = 0;

    *time_ms_out = 0;
    while (digits < s.len && wb_ascii_is_digit(s.ptr[digits])) {
        if (seconds < RETRY_SECONDS_MAX)
            seconds = seconds * 10 + (uint64_t)(s.ptr[digits] - '0');
        digits++;
    }
    /* A number of seconds, possibly with a fraction. */
    if (digits && (digits == s.len || s.ptr[digits] == '.')) {
        *time_ms_out = now_ms + 1000 * (int64_t)(seconds < RETRY_SECONDS_MAX ? seconds : RETRY_SECONDS_MAX);
        return true;
    }
    return wb_http_date_parse(s, time_ms_out);
}

/* ---- Last-Modified ------------------------------------------------------------------------- */

#define WEB_BEGAN_MS INT64_C(631152000000) /* 1990-01-01 */

int64_t wb_http_modified(struct wb_slice head, int64_t fetched_ms)
{
    int64_t modified_ms = 0, answered_ms = fetched_ms;
    struct wb_slice value;

    if (!wb_http_header(head, "Last-Modified", &value) || !wb_http_date_parse(value, &modified_ms))
        return 0;
    if (wb_http_header(head, "Date", &value) && !wb_http_date_parse(value, &answered_ms))
        answered_ms = fetched_ms;
    bool likely = modified_ms >= WEB_BEGAN_MS && modified_ms <= fetched_ms;
    return likely && modified_ms / 1000 < answered_ms / 1000 ? modified_ms : 0;
}
