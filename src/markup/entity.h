/*
 * entity.h - HTML's character references, named ("&eacute;") and numeric. Used by the tokenizer for attribute
 * values and by extract (collapse.c) for text.
 */
#ifndef WB_MARKUP_ENTITY_H
#define WB_MARKUP_ENTITY_H

#include "base/slice.h"

/* A reference stands for at most this many bytes. */
#define WB_ENTITY_UTF8_MAX 6

/* An upper bound for the length of n bytes of text after its references have been decoded. */
#define WB_ENTITY_GROWN(n) ((n) + (n) / 5 + WB_ENTITY_UTF8_MAX)

/*
 * Reads the character reference at p, which points to an '&', as the HTML standard does: the longest
 * name that matches counts; some old names may lack their semicolon (but not in an attribute before
 * '=' or an alphanumeric character); invalid numbers are corrected. Returns how many bytes the
 * reference has and writes the characters it stands for, or 0 if the '&' is just text.
 */
size_t wb_entity_read(const char *p, const char *end, bool in_attribute, char utf8_out[WB_ENTITY_UTF8_MAX],
                      size_t *len_out);

#endif
