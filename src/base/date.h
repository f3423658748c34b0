/* date.h - moments as milliseconds since 1970 UTC, and the ways archives write them. */
#ifndef WB_BASE_DATE_H
#define WB_BASE_DATE_H

#include "base/slice.h"

/* Spans of time. In the calendar used here (UTC without leap seconds) all days are equally long. */
#define WB_MINUTE_MS 60000
#define WB_HOUR_MS 3600000
#define WB_DAY_MS INT64_C(86400000)
#define WB_DAY_SECONDS 86400

#define WB_DATE_TEXT_MAX 32

/* RFC 3339 with milliseconds: 2026-01-02T03:04:05.678Z */
void wb_date_format(int64_t time_ms, char text_out[WB_DATE_TEXT_MAX]);

/*
 * W3CDTF as WARC and the command line use it: a date, or a date and a time with
 * optional seconds, fraction and zone (Z or +hh:mm; none means UTC). Years 1 to 9999.
 */
bool wb_date_parse(struct wb_slice text, int64_t *time_ms_out);

/* ARC's and CDX's digits: YYYYMMDDhhmmss; 4 to 17 digits, missing ones at their lowest. */
bool wb_date_parse_digits(struct wb_slice text, int64_t *time_ms_out);

/* HTTP's own form and no other: "Sun, 06 Nov 1994 08:49:37 GMT", the day of the week being the right one. Years 1 to 9999. */
#define WB_DATE_HTTP_BYTES 29
bool wb_date_parse_http(struct wb_slice text, int64_t *time_ms_out);

/* Writes exactly WB_DATE_HTTP_BYTES and no NUL. False where the year has not four digits; then nothing was written. */
bool wb_date_format_http(int64_t time_ms, char text_out[WB_DATE_HTTP_BYTES]);

#endif
