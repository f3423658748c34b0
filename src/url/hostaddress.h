/*
 * hostaddress.h - hosts that are numbers: IPv4 and IPv6 addresses in URLs. Private to url.
 *
 * The reading functions return false if the text is not such an address. The writing functions return the address
 * behind what they wrote: at most 15 bytes for IPv4, at most 41 for IPv6.
 */
#ifndef WB_URL_HOSTADDRESS_H
#define WB_URL_HOSTADDRESS_H

#include "base/slice.h"

/* Returns true if the last label of a domain is a number: then the domain must be an IPv4 address, or it is invalid. */
bool wb_hostaddress_ends_in_number(struct wb_slice domain);

bool wb_hostaddress_read4(struct wb_slice text, uint32_t *address_out);
char *wb_hostaddress_write4(char *out, uint32_t address);

/* The eight pieces of an IPv6 address. It is read without brackets and written with them. */
bool wb_hostaddress_read6(struct wb_slice text, uint16_t pieces_out[8]);
char *wb_hostaddress_write6(char *out, const uint16_t pieces[8]);

#endif
