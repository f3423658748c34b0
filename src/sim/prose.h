/* prose.h - text that a language detector takes for English, and that differs from page to page. */
#ifndef WB_SIM_PROSE_H
#define WB_SIM_PROSE_H

#include "sim/chance.h"
#include "sim/pen.h"

/* A noun, for titles and paths. */
struct wb_slice wb_prose_noun(uint32_t number);

/* Writes two or three capitalised words. */
void wb_prose_title(struct wb_pen *pen, uint64_t name);

/* Writes a sentence; `own` selects the page's vocabulary of made-up words. */
void wb_prose_sentence(struct wb_pen *pen, struct wb_chance_dice *dice, uint64_t own);

/* Writes a Japanese sentence in UTF-8, for pages in Japanese encodings. */
void wb_prose_japanese(struct wb_pen *pen, struct wb_chance_dice *dice);

#endif
