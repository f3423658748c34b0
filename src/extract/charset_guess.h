/* charset_guess.h - private to page: the encoding of bytes that nothing is said of. */
#ifndef WB_EXTRACT_CHARSET_GUESS_H
#define WB_EXTRACT_CHARSET_GUESS_H

#include "base/slice.h"

/*
 * A name of the Encoding standard's, static text. markup: the text is what stands between tags. ascii is what
 * it says of bytes that are all ASCII.
 */
const char *wb_charset_guess(struct wb_slice bytes, bool markup, const char *ascii);

#endif
