/*
 * charset.h - private to extract: what the files about encodings share. The door declares their results,
 * wb_charset_of() and wb_charset_decode().
 *
 *   charset.c         which encoding a document is in: BOM, transport, <meta>, declaration, or else...
 *   charset_guess.c   ...a guess from the bytes
 *   charset_table.c   the encodings of the WHATWG Encoding standard, and their labels
 *   decode.c          from any of them to UTF-8
 */
#ifndef WB_EXTRACT_CHARSET_H
#define WB_EXTRACT_CHARSET_H

#include "base/slice.h"

/* ---- charset_table.c ------------------------------------------------------------------------ */

enum wb_encoding_way {
    WB_ENCODING_UTF8,
    WB_ENCODING_UTF16LE,
    WB_ENCODING_UTF16BE,
    WB_ENCODING_SINGLE,       /* one byte per character, by a table */
    WB_ENCODING_ICU,          /* several bytes per character, by a converter of ICU */
    WB_ENCODING_REPLACEMENT,  /* too dangerous to decode: the document becomes a single U+FFFD */
    WB_ENCODING_USER_DEFINED, /* 0x80-0xff are U+F780-U+F7FF */
};

struct wb_encoding {
    const char *name;      /* the standard's name, in lower case */
    enum wb_encoding_way way;
    const uint16_t *upper; /* for WB_ENCODING_SINGLE: the code points of 0x80 to 0xff */
    const char *icu;       /* for WB_ENCODING_ICU: the name of the converter */
};

/*
 * Finds an encoding by any of the standard's labels, which include the names; case and outer white
 * space are ignored. NULL if it is not a label.
 */
const struct wb_encoding *wb_encoding_by_label(struct wb_slice label);

/* ---- charset_guess.c ------------------------------------------------------------------------ */

/*
 * Guesses the encoding of bytes about which nothing is said. Returns a name of the standard, static
 * text. markup: only what is between tags is text. ascii: the answer for bytes that are all ASCII.
 */
const char *wb_charset_guess(struct wb_slice bytes, bool markup, const char *ascii);

/* ---- decode.c ------------------------------------------------------------------------------- */

/* How many bytes at the front are ASCII, and how many are well-formed UTF-8. */
size_t wb_decode_ascii_prefix(const char *p, size_t len);
size_t wb_decode_utf8_prefix(const char *p, size_t len);

#endif
