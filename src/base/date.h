/*
 * date.h - moments as milliseconds since 1970 UTC, and the ways in which WARC, CDX, HTTP and people write them.
 *
 * Parsers return false, and set the time to 0, if the text is anything but a valid date in their form. For the dates
 * that web servers really send see page's httpdate.c, which forgives more.
 */
#ifndef WB_BASE_DATE_H
#define WB_BASE_DATE_H

#include "base/slice.h"

/* Spans of time. In the calendar used here (UTC without leap seconds) all days are equally long. */
#define WB_MINUTE_MS 60000
#define WB_HOUR_MS 3600000
#define WB_DAY_MS INT64_C(86400000)
#define WB_DAY_SECONDS 86400

#define WB_DATE_TEXT_MAX 32

/* Writes RFC 3339 with milliseconds, 2026-01-02T03:04:05.678Z, and a NUL. */
void wb_date_format(int64_t time_ms, char text_out[WB_DATE_TEXT_MAX]);

/*
 * Reads W3CDTF as WARC and the command line use it: a date, or a date and a time. Seconds, fraction and zone (Z or
 * +hh:mm) are optional; without a zone it is UTC. Years 1 to 9999.
 */
bool wb_date_parse(struct wb_slice text, int64_t *time_ms_out);

/* Reads the digits of ARC and CDX, YYYYMMDDhhmmss. 4 to 17 of them; parts that are missing have their lowest value. */
bool wb_date_parse_digits(struct wb_slice text, int64_t *time_ms_out);

/* The same for 1 to 14 digits, as the last millisecond of what they name: "2026" is the end of that year. */
bool wb_date_parse_digits_end(struct wb_slice text, int64_t *time_ms_out);

/*
 * Reads HTTP's preferred form and no other, "Sun, 06 Nov 1994 08:49:37 GMT". The day of the week must be right. Years 1
 * to 9999.
 */
#define WB_DATE_HTTP_BYTES 29
bool wb_date_parse_http(struct wb_slice text, int64_t *time_ms_out);

/* Writes exactly WB_DATE_HTTP_BYTES and no NUL. Returns false, and writes nothing, unless the year is 1 to 9999. */
bool wb_date_format_http(int64_t time_ms, char text_out[WB_DATE_HTTP_BYTES]);

/* The day of a date, counted from 1 January 1970, and back. Any year; month and day must be valid. */
int64_t wb_date_days(int64_t year, int64_t month, int64_t day);
void wb_date_civil(int64_t days, int64_t *year_out, int64_t *month_out, int64_t *day_out);

#endif
