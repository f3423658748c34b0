/* idna.h - international domains. Private to url. */
#ifndef WB_URL_IDNA_H
#define WB_URL_IDNA_H

#include "base/slice.h"

/*
 * No domain that needs IDNA may be longer than this: before it in bytes of UTF-8, after it in ASCII letters. Punycode
 * takes time that is quadratic in the length of a label. The limit excludes no name that could exist: the DNS takes at
 * most 253 letters, which stand for at most 253 characters of at most four bytes.
 */
#define WB_IDNA_MAX_BYTES 1024

/*
 * Converts a domain in UTF-8 that is not ASCII to ASCII. ascii_out has room for WB_IDNA_MAX_BYTES. WB_E_PROTO if it is
 * not a valid domain, WB_E_LIMIT if it is too long; for these two no message is set.
 */
int wb_idna_to_ascii(struct wb_slice domain, char *ascii_out, size_t *len_out);

#endif
