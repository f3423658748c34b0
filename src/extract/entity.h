/* entity.h - private to page: HTML's character references, named and numeric. */
#ifndef WB_EXTRACT_ENTITY_H
#define WB_EXTRACT_ENTITY_H

#include "base/slice.h"

#define WB_ENTITY_UTF8_MAX 6

/* What a reference of n bytes becomes is never longer than this. */
#define WB_ENTITY_GROWN(n) ((n) + (n) / 5 + WB_ENTITY_UTF8_MAX)

/*
 * Reads the character reference at p, which is an '&', as the HTML standard does:
 * the longest name that matches, names of old without their semicolon too (not in
 * an attribute before '=' or an alphanumeric), numbers corrected. Returns the bytes
 * it takes, and writes what it stands for; 0 where it is no reference and the '&' is text.
 */
size_t wb_entity_read(const char *p, const char *end, bool in_attribute, char utf8_out[WB_ENTITY_UTF8_MAX], size_t *len_out);

#endif
