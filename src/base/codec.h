/* codec.h - bytes as text: hexadecimal and RFC 4648 base32. */
#ifndef WB_BASE_CODEC_H
#define WB_BASE_CODEC_H

#include "base/slice.h"

/* Writes 2*len lower-case digits and a NUL. */
void wb_hex_encode(const void *bytes, size_t len, char *text_out);

/* False unless text has exactly 2*len digits, of either case. */
bool wb_hex_decode(struct wb_slice text, void *bytes_out, size_t len);

/* Writes the digits of base32 without padding, and a NUL; 20 bytes give 32 digits. */
void wb_base32_encode(const void *bytes, size_t len, char *text_out);

/* False unless text is base32 of exactly len bytes, of either case, unpadded. */
bool wb_base32_decode(struct wb_slice text, void *bytes_out, size_t len);

/* The value of a hexadecimal digit, or -1. */
int wb_hex_digit(char c);

#endif
