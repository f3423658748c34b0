/* warcdate.h - private to warc: the dates of records, including the forms that some writers made up. */
#ifndef WB_WARC_WARCDATE_H
#define WB_WARC_WARCDATE_H

#include "base/slice.h"

/*
 * Reads a WARC-Date. Beside W3CDTF:
 *
 *   2009-03-65T08:43:19-0800    the day of the year where the day of the month belongs, and a zone without a colon
 *   2008-294T12:00:00Z          the day of the year, as ISO 8601 has it
 *   20240501100000              the digits of ARC and CDX
 *
 * Returns false, and sets the time to 0, if it has none of these forms.
 */
bool wb_warc_date_parse(struct wb_slice text, int64_t *time_ms_out);

#endif
