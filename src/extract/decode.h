/*
 * decode.h - private to extract: how far bytes are ASCII or UTF-8. Used by the decoder itself and
 * by the guess at an encoding; wb_charset_decode() is declared in the door.
 */
#ifndef WB_EXTRACT_DECODE_H
#define WB_EXTRACT_DECODE_H

#include "base/slice.h"

/* How many bytes at the front are ASCII. */
size_t wb_decode_ascii_prefix(const char *p, size_t len);

/* How many bytes at the front are well-formed UTF-8. */
size_t wb_decode_utf8_prefix(const char *p, size_t len);

#endif
