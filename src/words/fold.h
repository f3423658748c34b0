/*
 * fold.h - private to words: what each character is, and what it is folded to.
 *
 * The table has one entry per code point, computed with ICU when a text first has a character of the same page of 256.
 * It is shared by all threads and only grows.
 *
 *   entry   bits 0-20  the folded code point; or two ASCII letters of 7 bits each (PAIR)
 *                21-23 enum wb_fold_class
 *                24-27 flags
 */
#ifndef WB_WORDS_FOLD_H
#define WB_WORDS_FOLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wb_fold_class {
    WB_FOLD_SEPARATOR, /* it ends a word */
    WB_FOLD_LETTER,    /* or a digit, or a mark that is part of the spelling */
    WB_FOLD_GRAM,      /* a character of a script without blanks */
    WB_FOLD_GRAM_MARK, /* a mark that belongs to the character before it */
    WB_FOLD_ACCENT,    /* a mark that is dropped, unless it forms another letter with the one before it */
    WB_FOLD_NOTHING,   /* invisible, and does not end a word: soft hyphen, joiners, variation selectors */
};

#define WB_FOLD_DIGIT (1u << 24)
#define WB_FOLD_COMPOSES (1u << 25) /* it may form one character with the one before it */
#define WB_FOLD_PAIR (1u << 26)
#define WB_FOLD_SEVERAL (1u << 27) /* it is folded to several characters; see wb_fold_several() */

#define WB_FOLD_PAGES 0x1100

extern _Atomic unsigned char wb_fold_built[WB_FOLD_PAGES];
extern uint32_t wb_fold_entries[WB_FOLD_PAGES][256];

/* ASCII letters in lower case and digits; 0 for everything else. */
extern const uint8_t wb_fold_ascii[256];

void wb_fold_build(uint32_t page);

/* The entry of a code point up to U+10FFFF. */
static inline uint32_t wb_fold_of(uint32_t cp)
{
    if (!atomic_load_explicit(&wb_fold_built[cp >> 8], memory_order_acquire))
        wb_fold_build(cp >> 8);
    return wb_fold_entries[cp >> 8][cp & 255];
}

static inline enum wb_fold_class wb_fold_class_of(uint32_t entry)
{
    return entry >> 21 & 7;
}

static inline uint32_t wb_fold_code(uint32_t entry)
{
    return entry & 0x1fffff;
}

/* Writes what the code point is folded to, if that is several characters, and returns how many. */
#define WB_FOLD_SEVERAL_MAX 32
size_t wb_fold_several(uint32_t cp, uint32_t out[WB_FOLD_SEVERAL_MAX]);

/* The character that two form together, as the Unicode standard composes them; 0 if they form none. */
uint32_t wb_fold_compose(uint32_t first, uint32_t second);

#endif
