/*
 * codec.h - bytes as text: hexadecimal, for ids and digests; the base32 of RFC 4648, for WARC's digests; and its base64
 * with the alphabet for URLs, for tokens, and with the usual one, for bodies in JSON.
 */
#ifndef WB_BASE_CODEC_H
#define WB_BASE_CODEC_H

#include "base/slice.h"

/* Writes 2*len lower-case digits and a NUL; text_out has room for them. */
void wb_hex_encode(const void *bytes, size_t len, char *text_out);

/* Returns false unless text consists of exactly 2*len digits. Upper and lower case are accepted. */
bool wb_hex_decode(struct wb_slice text, void *bytes_out, size_t len);

/* Writes base32 without padding, and a NUL. 20 bytes give 32 digits. */
void wb_base32_encode(const void *bytes, size_t len, char *text_out);

/* Returns false unless text is base32 of exactly len bytes, without padding. Upper and lower case are accepted. */
bool wb_base32_decode(struct wb_slice text, void *bytes_out, size_t len);

/* Base64 with '-' and '_', without padding: WB_BASE64_CHARS(len) characters and no NUL. */
#define WB_BASE64_CHARS(len) (((len) * 4 + 2) / 3)
void wb_base64url_encode(const void *bytes, size_t len, char *text_out);

/* The number of bytes that a text of this length stands for, which decoding writes. */
#define WB_BASE64_BYTES(chars) ((chars) / 4 * 3 + ((chars) % 4 ? (chars) % 4 - 1 : 0))

/* Returns false unless the text is exactly what encoding some bytes gives. */
bool wb_base64url_decode(struct wb_slice text, void *bytes_out);

/*
 * Decodes base64 with '+' and '/' and padding. bytes_out has room for text.len / 4 * 3 bytes. Returns false unless the
 * text is exactly what encoding some bytes gives: no blanks, no line ends, no missing padding.
 */
bool wb_base64_decode(struct wb_slice text, void *bytes_out, size_t *len_out);

/* The value of a hexadecimal digit; -1 for any other byte. */
int wb_hex_digit(char c);

#endif
