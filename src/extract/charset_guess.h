/*
 * charset_guess.h - private to extract: guesses the encoding of bytes about which nothing is said.
 * Used by charset.c when BOM, transport and document say nothing.
 */
#ifndef WB_EXTRACT_CHARSET_GUESS_H
#define WB_EXTRACT_CHARSET_GUESS_H

#include "base/slice.h"

/*
 * Returns a name of the Encoding standard, static text. markup: only what is between tags is text.
 * ascii: the answer for bytes that are all ASCII.
 */
const char *wb_charset_guess(struct wb_slice bytes, bool markup, const char *ascii);

#endif
