/*
 * charset_table.h - private to extract: the encodings of the WHATWG Encoding standard, and how each
 * of them is decoded.
 */
#ifndef WB_EXTRACT_CHARSET_TABLE_H
#define WB_EXTRACT_CHARSET_TABLE_H

#include "base/slice.h"

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

#endif
