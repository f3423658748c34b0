/*
 * checked_text.h - small files of text for people, with a checksum: lines "NAME VALUE", and a last one of this file's.
 *
 *   format 1
 *   number 2
 *   check 89abcdef01234567      XXH3 (64 bits, hexadecimal, lower case) of all bytes before this line
 *
 * Everything from the first byte to the newline at the end of the last line is covered, there are no NUL bytes, and
 * nothing follows. What the lines say is the caller's business, who also decides whether to look at the checksum first:
 * most read the number of the format before, because later formats may end differently.
 */
#ifndef WB_BASE_CHECKED_TEXT_H
#define WB_BASE_CHECKED_TEXT_H

#include "base/buf.h"

enum { WB_CHECKED_TEXT_CHECK_BYTES = 6 + 16 + 1 }; /* of the last line: "check ", digits, newline */

/* Appends the last line to the lines before it. */
int wb_checked_text_end(struct wb_buf *text);

/* The lines before the last one, which borrow from bytes. False, and no lines, if bytes are not such a text. */
bool wb_checked_text_open(struct wb_slice bytes, struct wb_slice *lines_out);

/*
 * Takes the next line, "name value" and a newline, off *lines. The value may be empty or have more blanks. False if
 * there is no line, or a different one; then *lines is as before.
 */
bool wb_checked_text_take(struct wb_slice *lines, const char *name, struct wb_slice *value_out);

#endif
