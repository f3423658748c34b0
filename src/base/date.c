/*
 * date.c - the proleptic Gregorian calendar, without libc and its locales and time zones.
 *
 * wb_date_days() and wb_date_civil() are Howard Hinnant's algorithms: they count in eras of 400 years (146097
 * days) that begin on 1 March, so that the leap day is the last day of a year.
 */
#include "base/date.h"
#include "base/check.h"

#include <stdio.h>

int64_t wb_date_days(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

void wb_date_civil(int64_t z, int64_t *y, int64_t *m, int64_t *d)
{
    z += 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    *d = doy - (153 * mp + 2) / 5 + 1;
    *m = mp < 10 ? mp + 3 : mp - 9;
    *y = yoe + era * 400 + (*m <= 2);
}

void wb_date_format(int64_t time_ms, char text_out[WB_DATE_TEXT_MAX])
{
    int64_t days = time_ms / WB_DAY_MS, rest = time_ms % WB_DAY_MS;
    int64_t y, m, d;

    if (rest < 0) {
        rest += WB_DAY_MS;
        days--;
    }
    wb_date_civil(days, &y, &m, &d);
    snprintf(text_out, WB_DATE_TEXT_MAX, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (int)y, (int)m, (int)d,
             (int)(rest / WB_HOUR_MS), (int)(rest / WB_MINUTE_MS % 60), (int)(rest / 1000 % 60), (int)(rest % 1000));
}

struct date_fields {
    int64_t year, month, day, hour, minute, second, ms;
};

static bool fields_to_ms(const struct date_fields *f, int64_t *time_ms_out)
{
    static const int days_in[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    if (f->year < 1 || f->year > 9999 || f->month < 1 || f->month > 12 || f->day < 1)
        return false;
    bool leap = f->year % 4 == 0 && (f->year % 100 != 0 || f->year % 400 == 0);
    int last = days_in[f->month - 1] + (f->month == 2 && leap);
    /* A leap second (60) counts as the first second of the next minute. */
    if (f->day > last || f->hour > 23 || f->minute > 59 || f->second > 60)
        return false;
    int64_t days = wb_date_days(f->year, f->month, f->day);
    *time_ms_out = (days * WB_DAY_SECONDS + f->hour * 3600 + f->minute * 60 + f->second) * 1000 + f->ms;
    return true;
}

/* The take_...() functions read something at the front of *s and move *s behind it. This one: exactly n digits. */
static bool take_digits(struct wb_slice *s, size_t n, int64_t *value_out)
{
    int64_t value = 0;

    if (s->len < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (s->ptr[i] < '0' || s->ptr[i] > '9')
            return false;
        value = value * 10 + (s->ptr[i] - '0');
    }
    s->ptr += n;
    s->len -= n;
    *value_out = value;
    return true;
}

static bool take_char(struct wb_slice *s, char c)
{
    if (s->len == 0 || wb_ascii_lower(s->ptr[0]) != wb_ascii_lower(c))
        return false;
    s->ptr++;
    s->len--;
    return true;
}

/* A fraction of a second: one or more digits, of which the first three count. */
static bool take_fraction(struct wb_slice *s, int64_t *ms_out)
{
    int64_t ms = 0, digit, scale = 100;
    bool any = false;

    while (take_digits(s, 1, &digit)) {
        ms += digit * scale;
        scale /= 10;
        any = true;
    }
    *ms_out = ms;
    return any;
}

static bool take_zone(struct wb_slice *s, int64_t *offset_min_out)
{
    int64_t hours, minutes;

    *offset_min_out = 0;
    if (s->len == 0 || take_char(s, 'Z'))
        return true;
    bool negative = s->ptr[0] == '-';
    if (!take_char(s, '+') && !take_char(s, '-'))
        return false;
    if (!take_digits(s, 2, &hours) || (take_char(s, ':'), !take_digits(s, 2, &minutes)))
        return false;
    if (hours > 23 || minutes > 59)
        return false;
    *offset_min_out = (hours * 60 + minutes) * (negative ? -1 : 1);
    return true;
}

bool wb_date_parse(struct wb_slice text, int64_t *time_ms_out)
{
    struct wb_slice s = wb_slice_trim(text);
    struct date_fields f = {0};
    int64_t zone = 0;

    *time_ms_out = 0;
    if (!take_digits(&s, 4, &f.year) || !take_char(&s, '-') || !take_digits(&s, 2, &f.month) || !take_char(&s, '-') ||
        !take_digits(&s, 2, &f.day))
        return false;
    if (s.len) {
        if (!take_char(&s, 'T') && !take_char(&s, ' '))
            return false;
        if (!take_digits(&s, 2, &f.hour) || !take_char(&s, ':') || !take_digits(&s, 2, &f.minute))
            return false;
        if (take_char(&s, ':') && !take_digits(&s, 2, &f.second))
            return false;
        if (take_char(&s, '.') && !take_fraction(&s, &f.ms))
            return false;
        if (!take_zone(&s, &zone))
            return false;
    }
    if (s.len || !fields_to_ms(&f, time_ms_out))
        return false;
    *time_ms_out -= zone * WB_MINUTE_MS;
    return true;
}

bool wb_date_parse_digits(struct wb_slice text, int64_t *time_ms_out)
{
    struct wb_slice s = wb_slice_trim(text);
    struct date_fields f = {.month = 1, .day = 1};

    *time_ms_out = 0;
    if (!take_digits(&s, 4, &f.year))
        return false;
    if (s.len && !take_digits(&s, 2, &f.month))
        return false;
    if (s.len && !take_digits(&s, 2, &f.day))
        return false;
    if (s.len && !take_digits(&s, 2, &f.hour))
        return false;
    if (s.len && !take_digits(&s, 2, &f.minute))
        return false;
    if (s.len && !take_digits(&s, 2, &f.second))
        return false;
    if (s.len && (s.len > 3 || !take_fraction(&s, &f.ms)))
        return false;
    return s.len == 0 && fields_to_ms(&f, time_ms_out);
}

/* ---- HTTP -------------------------------------------------------------------------------------- */

static const char week_days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

_Static_assert(sizeof "Sun, 06 Nov 1994 08:49:37 GMT" - 1 == WB_DATE_HTTP_BYTES, "the length of HTTP's form");
_Static_assert(sizeof "-2147483648-01-01T00:00:00.000Z" <= WB_DATE_TEXT_MAX, "any int is shown as a year");

static const char *week_day(int64_t days)
{
    int64_t day = (days + 4) % 7; /* 1970 began on a Thursday */

    return week_days[day < 0 ? day + 7 : day];
}

static bool take_text(struct wb_slice *s, const char *text, size_t len)
{
    if (!wb_slice_starts(*s, wb_slice(text, len)))
        return false;
    s->ptr += len;
    s->len -= len;
    return true;
}

bool wb_date_parse_digits_end(struct wb_slice text, int64_t *time_ms_out)
{
    char digits[] = "99991231235959";

    *time_ms_out = 0;
    if (text.len == 0 || text.len > 14)
        return false;
    memcpy(digits, text.ptr, text.len);
    /* A month may have fewer than 31 days. */
    for (int day = 31; day >= 28; day--) {
        if (text.len < 8) {
            digits[6] = (char)('0' + day / 10);
            digits[7] = (char)('0' + day % 10);
        }
        if (wb_date_parse_digits(wb_slice(digits, 14), time_ms_out)) {
            *time_ms_out += 999;
            return true;
        }
    }
    return false;
}

bool wb_date_parse_http(struct wb_slice text, int64_t *time_ms_out)
{
    struct wb_slice s = text;
    struct date_fields f = {0};
    int64_t time_ms = 0;

    *time_ms_out = 0;
    if (text.len != WB_DATE_HTTP_BYTES)
        return false;
    s = wb_slice(text.ptr + 3, text.len - 3);
    if (!take_text(&s, ", ", 2) || !take_digits(&s, 2, &f.day) || !take_text(&s, " ", 1))
        return false;
    for (f.month = 1; f.month <= 12 && !take_text(&s, months[f.month - 1], 3);)
        f.month++;
    if (!take_text(&s, " ", 1) || !take_digits(&s, 4, &f.year) || !take_text(&s, " ", 1))
        return false;
    if (!take_digits(&s, 2, &f.hour) || !take_text(&s, ":", 1) || !take_digits(&s, 2, &f.minute))
        return false;
    if (!take_text(&s, ":", 1) || !take_digits(&s, 2, &f.second) || !take_text(&s, " GMT", 4))
        return false;
    if (!fields_to_ms(&f, &time_ms))
        return false;
    if (memcmp(text.ptr, week_day(wb_date_days(f.year, f.month, f.day)), 3) != 0)
        return false;
    *time_ms_out = time_ms;
    return true;
}

static char *put_two(char *p, int64_t value)
{
    *p++ = (char)('0' + value / 10);
    *p++ = (char)('0' + value % 10);
    return p;
}

bool wb_date_format_http(int64_t time_ms, char text_out[WB_DATE_HTTP_BYTES])
{
    int64_t days = time_ms / WB_DAY_MS, second = time_ms % WB_DAY_MS, y = 0, m = 0, d = 0;
    char *p = text_out;

    if (second < 0) {
        second += WB_DAY_MS;
        days--;
    }
    second /= 1000;
    /* before 0001-01-01, or from 10000-01-01 on */
    if (days < -719162 || days >= 2932897)
        return false;
    wb_date_civil(days, &y, &m, &d);
    memcpy(p, week_day(days), 3);
    memcpy(p + 3, ", ", 2);
    p = put_two(p + 5, d);
    *p++ = ' ';
    memcpy(p, months[m - 1], 3);
    p[3] = ' ';
    p = put_two(put_two(p + 4, y / 100), y % 100);
    *p++ = ' ';
    p = put_two(p, second / 3600);
    *p++ = ':';
    p = put_two(p, second / 60 % 60);
    *p++ = ':';
    p = put_two(p, second % 60);
    memcpy(p, " GMT", 4);
    WB_CHECK(p + 4 == text_out + WB_DATE_HTTP_BYTES);
    return true;
}
