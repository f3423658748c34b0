/* charset_table.h - private to page: the encodings of the WHATWG Encoding standard and how each is decoded. */
#ifndef WB_EXTRACT_CHARSET_TABLE_H
#define WB_EXTRACT_CHARSET_TABLE_H

#include "base/slice.h"

enum wb_encoding_way {
    WB_ENCODING_UTF8,
    WB_ENCODING_UTF16LE,
    WB_ENCODING_UTF16BE,
    WB_ENCODING_SINGLE,       /* a byte a character, by a table */
    WB_ENCODING_ICU,          /* several bytes a character, by ICU's converter */
    WB_ENCODING_REPLACEMENT,  /* encodings too dangerous to decode: U+FFFD once */
    WB_ENCODING_USER_DEFINED, /* 0x80-0xff are U+F780-U+F7FF */
};

struct wb_encoding {
    const char *name;      /* the standard's, in lower case */
    enum wb_encoding_way way;
    const uint16_t *upper; /* of WB_ENCODING_SINGLE: code points of 0x80 to 0xff */
    const char *icu;       /* of WB_ENCODING_ICU: the converter's name */
};

/* By any of the standard's labels, outer white space and case ignored; NULL where it is none. Names are labels too. */
const struct wb_encoding *wb_encoding_by_label(struct wb_slice label);

/* How many bytes at the front are ASCII, and how many are well-formed UTF-8 (decode.c). */
size_t wb_ascii_prefix(const char *p, size_t len);
size_t wb_utf8_prefix(const char *p, size_t len);

#endif
