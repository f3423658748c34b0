/* attrvalue.h - what the values of attributes say, as the HTML standard reads them. They are decoded already. */
#ifndef WB_MARKUP_ATTRVALUE_H
#define WB_MARKUP_ATTRVALUE_H

#include "base/slice.h"

/* A URL without the white space and control characters around it. */
static inline struct wb_slice wb_href_trim(struct wb_slice s)
{
    while (s.len > 0 && (uint8_t)*s.ptr <= ' ')
        s = wb_slice(s.ptr + 1, s.len - 1);
    while (s.len > 0 && (uint8_t)s.ptr[s.len - 1] <= ' ')
        s.len--;
    return s;
}

/*
 * Finds the URL of the next candidate of a srcset; false if there is none. *rest is what was not read yet, at first the
 * whole value; *href_out is part of it.
 */
bool wb_srcset_next(struct wb_slice *rest, struct wb_slice *href_out);

/*
 * Parses what a refresh says, "5; url='next.html'". Returns false if it is not a refresh; *href_out is part of content,
 * and empty if the page refreshes itself.
 */
bool wb_refresh_parse(struct wb_slice content, struct wb_slice *href_out);

#endif
