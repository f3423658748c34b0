/*
 * format.h - the numbers of formats. What a program writes begins with such a number, and a program reads one number
 * only: docs/formats/README.md says what a release promises, and what it means to be refused.
 */
#ifndef WB_BASE_FORMAT_H
#define WB_BASE_FORMAT_H

#include <stdint.h>

/*
 * For what is intact but has another format than the one that this program reads: WB_E_NEWER, and the message
 * "WHAT has format FOUND; this program reads format READ".
 */
int wb_fail_format(const char *what, uint64_t found, uint64_t read);

/*
 * Some formats begin with a mark of eight characters in which the number of the format is a digit: "WBCHRON1". Returns
 * that number if the bytes are this mark with any digit from 1 on in that place, otherwise 0. mark is that of format 1.
 */
unsigned wb_mark_format(const char *bytes, const char *mark);

#endif
