/* utf8.h - well-formed UTF-8, as the Unicode standard's table 3-7 defines it. */
#ifndef WB_BASE_UTF8_H
#define WB_BASE_UTF8_H

#include "base/buf.h"
#include "base/slice.h"

/* The length of the well-formed sequence at p, or 0 where there is none within len bytes. */
size_t wb_utf8_length(const char *p, size_t len);

/* The code point at p, of wb_utf8_length() bytes (which must not be 0). */
uint32_t wb_utf8_decode(const char *p, size_t length);

/* Writes 1 to 4 bytes; returns how many. cp is a scalar value. */
size_t wb_utf8_encode(uint32_t cp, char out[4]);

bool wb_utf8_valid(struct wb_slice s);

/*
 * Appends UTF-16 text as UTF-8, without its byte order mark. Each unpaired surrogate and a lone last
 * byte become U+FFFD. Stops before the output would exceed limit bytes. Only WB_E_NOMEM is an error.
 */
int wb_utf8_from_utf16(struct wb_slice utf16, bool big_endian, size_t limit, struct wb_buf *utf8_out);

#endif
