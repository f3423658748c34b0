/*
 * words.h - private to page: text as words with one gap between them.
 *
 * A gap is a blank, or '\n' where a block ended. It is written only when a word
 * follows it, so that text never begins or ends with one.
 */
#ifndef WB_EXTRACT_WORDS_H
#define WB_EXTRACT_WORDS_H

#include "base/slice.h"

/* ptr has room for cap + WB_WORDS_SLACK bytes: words are written in wide pieces. */
#define WB_WORDS_SLACK 48

struct wb_words {
    char *ptr;
    size_t len, cap;
    char gap; /* before the next word: 0, ' ' or '\n' */
    bool cut; /* cap was reached, words were dropped */
};

/*
 * Appends the words of raw, decoded as how says (enum wb_token_decode; a NUL is dropped
 * unless it says otherwise). White space is every kind that Unicode knows, and control
 * characters. Bytes up to readable, which is at or behind raw's end, may be looked at.
 */
void wb_words_append(struct wb_words *w, struct wb_slice raw, unsigned how, const char *readable);

/* A gap comes before the next word; '\n' outdoes ' '. */
static inline void wb_words_gap(struct wb_words *w, char gap)
{
    if (w->gap != '\n')
        w->gap = gap;
}

#endif
