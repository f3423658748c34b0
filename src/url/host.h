/* host.h - hosts: domains, addresses and opaque ones. Private to url. */
#ifndef WB_URL_HOST_H
#define WB_URL_HOST_H

#include "url/reader.h"

/*
 * No host that is not ASCII is longer than this, before IDNA in bytes and after it
 * in letters: punycode takes time that is quadratic in a label's length. A name of
 * 253 letters, the most that the DNS takes, stands for at most 253 characters of
 * four bytes.
 */
#define WB_HOST_MAX_BYTES 1024

/* Reads a host as the standard's host parser does and writes it. */
int wb_host_read(struct wb_reader *r, struct wb_slice host);

/* address.c: whether a domain's last label is a number, so that it must be an IPv4 address. */
bool wb_address_ends_in_number(struct wb_slice domain);

/* False where it is not an address. An IPv4 address is written in at most 15 bytes, an IPv6 address in at most 41. */
bool wb_address_read4(struct wb_slice text, uint32_t *address_out);
char *wb_address_write4(char *out, uint32_t address);
bool wb_address_read6(struct wb_slice text, uint16_t pieces_out[8]); /* without brackets */
char *wb_address_write6(char *out, const uint16_t pieces[8]);         /* with brackets */

/* idna.c: a domain in UTF-8 that is not ASCII, to ASCII; ascii_out has WB_HOST_MAX_BYTES. */
int wb_idna_to_ascii(struct wb_slice domain, char *ascii_out, size_t *len_out);

#endif
