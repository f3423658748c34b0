/*
 * stem.h - private to words: stems by Snowball's algorithms, remembered in a cache.
 *
 * An algorithm is a number below WB_STEM_ALGORITHMS; the table is in languages.c. The stem is a function of the folded
 * word and the algorithm, so pages and queries agree on it, whatever came before.
 */
#ifndef WB_WORDS_STEM_H
#define WB_WORDS_STEM_H

#include "words/words.h"

#define WB_STEM_ALGORITHMS 31
#define WB_STEM_NONE (-1) /* the stem is the word */

/* The number of the algorithm for a language, by the language's number; English for 0. */
int wb_stem_algorithm(uint8_t language);

/* The name that Snowball gives it. */
const char *wb_stem_algorithm_name(int algorithm);

/* Words of at most this many bytes are cached. */
#define WB_STEM_CACHED_BYTES 48
#define WB_STEM_SUFFIX_BYTES 12

/* A word and its stem, which is the beginning of the word and then a suffix. One line of the processor's cache. */
struct wb_stem_slot {
    uint64_t word[WB_STEM_CACHED_BYTES / 8]; /* padded with zeros; empty if all are zero */
    char suffix[WB_STEM_SUFFIX_BYTES];
    uint8_t algorithm, keep, suffix_len, unused;
};
_Static_assert(sizeof(struct wb_stem_slot) == 64, "one line of the processor's cache");

#define WB_STEM_SLOTS ((size_t)1 << 15)

struct wb_stemmers {
    struct sb_stemmer *made[WB_STEM_ALGORITHMS]; /* NULL until one is wanted */
    struct wb_stem_slot *slots;                  /* WB_STEM_SLOTS of them, in sets of two */
};

int wb_stemmers_init(struct wb_stemmers *s);
void wb_stemmers_release(struct wb_stemmers *s);

/* Makes sure that the algorithm can be used (WB_STEM_NONE always can). */
int wb_stemmers_prepare(struct wb_stemmers *s, int algorithm);

/* Room for a word as wb_stem_find() needs it: zeros follow the word, up to the next multiple of 16 bytes. */
#define WB_STEM_ROOM (WB_WORD_BYTES_MAX + 16)

/*
 * Finds the stem of a word of len bytes (1 to WB_WORD_BYTES_MAX), with an algorithm that is prepared. *stem_out is the
 * word itself, or is in memory of WB_STEM_ROOM bytes. The only error is WB_E_NOMEM.
 */
int wb_stem_find(struct wb_stemmers *s, int algorithm, const char *word, size_t len, char *memory,
                 struct wb_slice *stem_out);

#endif
