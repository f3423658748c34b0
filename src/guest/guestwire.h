/*
 * guestwire.h - private to guest: what goes through the socket. Numbers are little-endian.
 *
 *   hello     | u32 bytes | u8 'Y' or 'N' | types of the module, or why it cannot be loaded |
 *   request   | u32 bytes | 4 times: u32 length, bytes |        url, type, charset, body
 *   answer    | u32 bytes | u8 result: 0 or 1 | parts |
 *   part      | u8 kind | u32 length of the first text | u32 length of the second | both |
 *             kind: enum wb_guest_part_kind; dates have one text of 8 bytes, the milliseconds
 *
 * `bytes` counts what follows it. The guest sends a hello when it has loaded the module, then one answer a request.
 */
#ifndef WB_GUEST_GUESTWIRE_H
#define WB_GUEST_GUESTWIRE_H

#include "guest/guest.h"

#define WB_GUEST_HELLO_MAX 8192u
#define WB_GUEST_REQUEST_MAX ((uint32_t)1 << 30)
#define WB_GUEST_PART_BYTES 9u
#define WB_GUEST_SOCKET 3 /* the descriptor in the guest */

#endif
