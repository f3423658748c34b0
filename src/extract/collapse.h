/*
 * collapse.h - private to extract: text as words with one gap between them.
 *
 * A gap is a blank, or '\n' if a block has ended. It is written only when a word follows, so that
 * text never begins or ends with a gap.
 */
#ifndef WB_EXTRACT_COLLAPSE_H
#define WB_EXTRACT_COLLAPSE_H

#include "base/slice.h"

/* ptr has room for cap + WB_COLLAPSE_SLACK bytes: words are written in wide pieces. */
#define WB_COLLAPSE_SLACK 48

struct wb_collapse {
    char *ptr;
    size_t len, cap;
    char gap; /* before the next word: 0, ' ' or '\n' */
    bool cut; /* cap was reached, and words were dropped */
};

/*
 * Appends the words of raw, decoded as `how` says (enum wb_token_decode; without WB_DECODE_NUL, a NUL
 * is dropped). Every kind of Unicode white space and all control characters separate words. The
 * function may read beyond raw, up to `readable`.
 */
void wb_collapse_append(struct wb_collapse *w, struct wb_slice raw, unsigned how, const char *readable);

/* Puts a gap before the next word; '\n' takes precedence over ' '. */
static inline void wb_collapse_gap(struct wb_collapse *w, char gap)
{
    if (w->gap != '\n')
        w->gap = gap;
}

#endif
