/*
 * css.h - finds the URLs in a style sheet, or in the value of a style attribute. A crawler wants the URLs, and replay
 * writes others in their places.
 *
 *   struct wb_css css;
 *   struct wb_css_item item;
 *
 *   wb_css_init(&css, sheet);
 *   while (wb_css_next(&css, &item))
 *       if (item.coded)
 *           err = wb_css_decode(item.raw, &url);      // else item.raw is the URL
 *
 * The tokens are those of CSS Syntax Level 3: comments, strings and bad URLs hide what they contain, and any letter
 * of "url" or "@import" may be written as an escape. Time is linear, and nothing is allocated until a URL is decoded.
 * The sheet is UTF-8, or any encoding in which each byte below 0x80 is a character of ASCII.
 */
#ifndef WB_MARKUP_CSS_H
#define WB_MARKUP_CSS_H

#include "base/buf.h"

enum wb_css_kind {
    WB_CSS_URL = 1, /* an image or a cursor: url(...), src("...") and the strings of image-set(...) */
    WB_CSS_IMPORT,  /* another style sheet: @import "..." or @import url(...) */
    WB_CSS_FONT,    /* any URL inside @font-face { ... } */
};

struct wb_css_item {
    enum wb_css_kind kind;
    struct wb_slice raw; /* the URL as written: part of the sheet, without quotes or the blanks around it */
    char quote;          /* the quote before it, or 0 if it has none */
    bool coded;          /* it must be decoded: it contains an escape or a NUL */
};

struct wb_css {
    const char *at, *end;
    uint64_t sets; /* a stack of bits, one for each open parenthesis: whether a string in it is a URL */
    unsigned depth;
    bool import; /* what was read last is @import */
    bool other;  /* in another rule that names a URL without loading it: @namespace */
    bool font;   /* in the block of @font-face, ... */
    bool before_font; /* ... or between these words and the block */
};

void wb_css_init(struct wb_css *css, struct wb_slice sheet);

/* Finds the next URL; false at the end. Empty ones and fragments ("#a") are found too. */
bool wb_css_next(struct wb_css *css, struct wb_css_item *item_out);

/* Replaces the content of url_out by raw without its escapes; NUL becomes U+FFFD. Fails only with WB_E_NOMEM. */
int wb_css_decode(struct wb_slice raw, struct wb_buf *url_out);

/* Appends a URL so that it can stand where item.raw was: what would end it there gets a backslash. */
int wb_css_encode(struct wb_slice url, struct wb_buf *sheet_out);

/* The label of the rule @charset "LABEL"; at the front of a sheet; empty if it does not begin with one. */
struct wb_slice wb_css_charset(struct wb_slice sheet);

#endif
