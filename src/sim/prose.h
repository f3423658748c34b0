/* prose.h - text that looks like English to a language guesser, and unlike any other page's. */
#ifndef WB_SIM_PROSE_H
#define WB_SIM_PROSE_H

#include "sim/chance.h"
#include "sim/pen.h"

/* The word of a number: one of the common ones for small numbers (which come often), lower case. */
struct wb_slice wb_prose_word(uint32_t number);

/* A word with a meaning of its own, for titles and paths. */
struct wb_slice wb_prose_noun(uint32_t number);

/* Two or three words with capitals. */
void wb_prose_title(struct wb_pen *pen, uint64_t name);

/* A sentence; own is the name of the page's own vocabulary of made-up words. */
void wb_prose_sentence(struct wb_pen *pen, struct wb_dice *dice, uint64_t own);

/* Japanese, for pages in encodings of Japan; UTF-8. */
void wb_prose_japanese(struct wb_pen *pen, struct wb_dice *dice);

#endif
