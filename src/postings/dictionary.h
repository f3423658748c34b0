/*
 * dictionary.h - the bytes of the dictionary: all terms in order, front-coded, in pages of about 16 KiB.
 *
 *   dictionary   page | page | ... | top | foot       (the data of a blob of kind "dict")
 *
 *   page         restart points r (4); where each is, counted from the start of the page (4 each); where the first list
 *                of the page is in the file of lists (8), and its first positions in the file of positions (8); terms
 *   term         varints: bytes of the key that are shared with the key before, bytes that follow; these bytes; entry
 *   term at a    varints: bytes of the key; the key; varints: where its list and its positions are, counted from the
 *   restart      first list and positions of the page; entry
 *                The entry is as in listformat.h.
 *   top          for each page: where it starts (8). For each page: where its key ends in the keys (4). The keys.
 *                The key of a page is the shortest prefix of its first key that is greater than the last key of the
 *                page before; for the first page it is empty.
 *   foot, 64     0 "WBDICT1\n"  8 terms (8)  16 pages (8)  24 where the top is (8)  32 bytes of all lists (8)
 *                40 bytes of all positions (8)  48 zero (16)
 *
 * Every 16th term or so is a restart point. An alias is never one, and so never the first of a page.
 */
#ifndef WB_POSTINGS_DICTIONARY_H
#define WB_POSTINGS_DICTIONARY_H

#include "postings/listformat.h"

#define DICTIONARY_FOOT_MAGIC "WBDICT1\n"
#define DICTIONARY_KIND "dict"
#define LISTS_KIND "list"
#define POSITIONS_KIND "posi"

enum {
    DICTIONARY_RESTART = 16,          /* terms between restart points */
    DICTIONARY_PAGE_BYTES = 16 << 10, /* terms of a page; it ends with the term that reaches this */
    DICTIONARY_FOOT_BYTES = 64,
    DICTIONARY_PAGE_HEAD = 4 + 8 + 8, /* without the restart points */
};
_Static_assert(sizeof DICTIONARY_FOOT_MAGIC == 8 + 1, "the foot starts with 8 letters");

/* ---- writing: for the output ------------------------------------------------------------------------- */

struct wb_dictionary_writer;

int wb_dictionary_create(const char *path, struct wb_dictionary_writer **writer_out);

/* Appends the entries of a part; they are checked as if they came from a stranger. */
int wb_dictionary_append(struct wb_dictionary_writer *writer, const struct wb_postings_part *part);
int wb_dictionary_finish(struct wb_dictionary_writer *writer, struct wb_postings_stat *stat);
void wb_dictionary_abandon(struct wb_dictionary_writer *writer);

/* ---- entries ----------------------------------------------------------------------------------------- */

/*
 * Reads an entry and moves *p behind it. *term_out gets everything but offsets. Returns the kind, or -1 if the entry
 * does not fit before end or makes no sense. An alias leaves *term_out alone.
 */
int wb_entry_get(const char **p, const char *end, struct wb_term *term_out);

/* ---- reading: for the set and the postlists ------------------------------------------------------------ */

/* Checks the foot and fills in the numbers of the set. */
int wb_dictionary_check(struct wb_postings *set);

#endif
