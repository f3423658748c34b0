/*
 * utf8.h - well-formed UTF-8, as table 3-7 of the Unicode standard defines it: no overlong forms, no surrogates,
 * nothing beyond U+10FFFF. For everybody who must not pass on malformed text.
 */
#ifndef WB_BASE_UTF8_H
#define WB_BASE_UTF8_H

#include "base/buf.h"
#include "base/slice.h"

/* The length of the well-formed sequence at p; 0 if the len bytes there do not begin with one. */
size_t wb_utf8_length(const char *p, size_t len);

/* The code point at p. length is what wb_utf8_length() returned, and not 0. */
uint32_t wb_utf8_decode(const char *p, size_t length);

/* Writes 1 to 4 bytes and returns how many. cp is at most U+10FFFF and not a surrogate. */
size_t wb_utf8_encode(uint32_t cp, char out[4]);

bool wb_utf8_valid(struct wb_slice s);

/*
 * Appends UTF-16 text as UTF-8, without its byte order mark. Each unpaired surrogate, and a single byte left at the
 * end, becomes U+FFFD. Stops before the output would exceed limit bytes. The only error is WB_E_NOMEM.
 */
int wb_utf8_from_utf16(struct wb_slice utf16, bool big_endian, size_t limit, struct wb_buf *utf8_out);

#endif
