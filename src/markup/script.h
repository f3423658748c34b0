/*
 * script.h - finds the strings in a script that may name files. A crawler wants them, because nothing else says what a
 * script loads.
 *
 *   struct wb_script script;
 *   struct wb_script_item item;
 *
 *   wb_script_init(&script, text);
 *   while (wb_script_next(&script, &item))
 *       ...
 *
 * The script is not parsed, let alone run. Comments, regular expressions and templates are told apart from strings as
 * far as tokens allow it, which is not always: after a ) or a } a slash is taken for a division. The worst that follows
 * is a string too many or too few. Time is linear, and nothing is allocated. The text is UTF-8, or any encoding in
 * which each byte below 0x80 is a character of ASCII.
 */
#ifndef WB_MARKUP_SCRIPT_H
#define WB_MARKUP_SCRIPT_H

#include "base/slice.h"

enum wb_script_kind {
    WB_SCRIPT_STRING = 1, /* any string */
    WB_SCRIPT_IMPORT, /* what import "...", import ... from "...", export ... from "..." and import("...") name */
};

struct wb_script_item {
    enum wb_script_kind kind;
    struct wb_slice text; /* without the quotes; a string with escapes or line ends is left out */
};

struct wb_script {
    const char *at, *end;
    struct wb_slice word;   /* the name or keyword that was read last, unless it is behind a dot */
    struct wb_slice called; /* the same before the parenthesis that was just opened */
    bool opened;            /* what was read last is that parenthesis */
    bool dotted;            /* ...or a dot */
    bool value;             /* ...or the end of a value: a slash divides */
    uint64_t templates;     /* a stack of bits, one for each open brace: whether it is the ${ of a template */
    unsigned depth;
};

void wb_script_init(struct wb_script *script, struct wb_slice text);

/* Finds the next string; false at the end. */
bool wb_script_next(struct wb_script *script, struct wb_script_item *item_out);

#endif
