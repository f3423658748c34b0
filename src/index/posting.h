/*
 * posting.h - a posting as the bytes of a run, between the inverter and the merge.
 *
 *   mask     1 byte: bit f is set if the term occurs in field f
 *   numbers  varint frequency of each of these fields, in their order
 *   gaps     of exact terms: the positions, as struct wb_posting has them, each as a varint
 *
 * The document is not part of the bytes, so that they can be copied whatever comes before them.
 */
#ifndef WB_INDEX_POSTING_H
#define WB_INDEX_POSTING_H

#include "base/bytes.h"
#include "postings/postings.h"

/* The last byte of a key in the dictionary: the folded word as written, or the stem of words. 0 is before it. */
#define WB_TERM_EXACT 'E'
#define WB_TERM_STEM 'S'
#define WB_TERM_TAIL 2 /* bytes of a key behind its text */

#endif
