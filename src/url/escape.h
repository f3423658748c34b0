/* escape.h - which bytes must be escaped where in a URL, and percent-escapes. Private to url. */
#ifndef WB_URL_ESCAPE_H
#define WB_URL_ESCAPE_H

#include "base/slice.h"

/* Sets of bytes: the percent-encode sets of the URL standard, and the bytes at which its states end. */
enum wb_byte_class {
    WB_BYTE_C0 = 1 << 0,            /* C0 control percent-encode set */
    WB_BYTE_FRAGMENT = 1 << 1,      /* fragment percent-encode set */
    WB_BYTE_QUERY = 1 << 2,         /* query percent-encode set */
    WB_BYTE_SPECIAL_QUERY = 1 << 3, /* special-query percent-encode set */
    WB_BYTE_PATH = 1 << 4,          /* path percent-encode set */
    WB_BYTE_USERINFO = 1 << 5,      /* userinfo percent-encode set */
    WB_BYTE_BAD_HOST = 1 << 6,      /* forbidden host code points */
    WB_BYTE_BAD_DOMAIN = 1 << 7,    /* forbidden domain code points */
    WB_BYTE_UNRESERVED = 1 << 8,    /* RFC 3986: letters, digits, - . _ ~ */
    WB_BYTE_SCHEME = 1 << 9,        /* letters, digits, + - . */
    WB_BYTE_UPPER = 1 << 10,        /* A to Z */
    WB_BYTE_UNCLEAN = 1 << 11,      /* tab, LF, CR, and everything that is not ASCII */
    WB_BYTE_SEGMENT_END = 1 << 12,  /* / ? # */
    WB_BYTE_AUTHORITY = 1 << 13,    /* the bytes that split an authority: / \ ? # : @ [ ] */
};

/* The sets that each byte is in. */
extern const uint16_t wb_byte_class[256];

static inline bool wb_byte_is(char c, unsigned classes)
{
    return (wb_byte_class[(uint8_t)c] & classes) != 0;
}

/* Writes %XX and returns the address behind it. */
char *wb_escape_byte(char *out, char c);

/* Writes text with the bytes of a set escaped (at most 3 * text.len bytes) and returns the address behind it. */
char *wb_escape_text(char *out, struct wb_slice text, unsigned set);

/* The byte that the escape at p stands for; -1 if there is no valid escape at p. */
int wb_escape_value(const char *p, const char *end);

/* Writes text with its escapes undone (at most text.len bytes; out may be text.ptr) and returns how many bytes. */
size_t wb_escape_undo(struct wb_slice text, char *out);

#endif
