/*
 * charset.h - encodings: which one a document is in, and converting it to UTF-8.
 *
 *   charset.c         which encoding a document is in: BOM, transport, <meta>, declaration, or else...
 *   charset_guess.c   ...a guess from the bytes
 *   charset_table.c   the encodings of the WHATWG Encoding standard, and their labels
 *   decode.c          from any of them to UTF-8
 */
#ifndef WB_MARKUP_CHARSET_H
#define WB_MARKUP_CHARSET_H

#include "base/buf.h"

/* ---- charset.c, decode.c ------------------------------------------------------------------------ */

/*
 * Determines the encoding of a document as the HTML standard does. The first of these decides:
 *
 *   1. a BOM
 *   2. the charset parameter of the transport, unless it is empty
 *   3. HTML: a <meta> in the first 16 KiB (the standard looks at 1024 bytes, but lets its parser find
 *      later ones); XML: its declaration
 *   4. a guess from the bytes: valid UTF-8, UTF-16 without a BOM, the usual multi-byte encodings
 *   5. windows-1252
 *
 * Returns the standard's name in lower case ("windows-1252", "utf-8", "shift_jis"), static text.
 */
enum wb_charset_kind { WB_CHARSET_HTML, WB_CHARSET_XML, WB_CHARSET_TEXT };
const char *wb_charset_of(struct wb_slice bytes, struct wb_slice transport, enum wb_charset_kind kind);

/* The standard's name for a label ("latin1" -> "windows-1252"), or NULL. Static text. */
const char *wb_charset_by_label(struct wb_slice label);

/*
 * Converts bytes to UTF-8, without a BOM and with U+FFFD for everything malformed. If the bytes are
 * well-formed UTF-8 already, nothing is copied and *utf8_out is part of them; otherwise it is in mem,
 * which is cleared first. At most `limit` bytes are written.
 */
int wb_charset_decode(const char *charset, struct wb_slice bytes, size_t limit, struct wb_buf *mem,
                      struct wb_slice *utf8_out);

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
