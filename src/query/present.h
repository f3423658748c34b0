/*
 * present.h - what makes a hit readable: snippets with highlights, and suggestions for misspelt words.
 */
#ifndef WB_QUERY_PRESENT_H
#define WB_QUERY_PRESENT_H

#include "base/arena.h"
#include "base/buf.h"
#include "index/index.h"
#include "postings/postings.h"
#include "words/words.h"

/* A word of the query, as pages may have it. */
struct wb_wanted {
    struct wb_slice exact;        /* folded; empty: any form with one of the stems */
    const struct wb_slice *stems; /* of a bare word */
    size_t stem_count;
    bool prefix; /* every word that begins with exact */
};

/* Working memory of one thread. */
struct wb_snippeter;

int wb_snippeter_new(struct wb_snippeter **snippeter_out);
void wb_snippeter_free(struct wb_snippeter *snippeter);

/* Snippets show these words from now on. They must stay valid. */
void wb_snippeter_want(struct wb_snippeter *snippeter, const struct wb_wanted *wanted, size_t count);

/* The text of a page, as far as it has been decoded. */
struct wb_snippet_text {
    struct wb_slice bytes; /* '\n' before each block, WB_KEPT_GAP where something is left out */
    const char *language;  /* determines the stems of its words, as in the index */
    bool lines;            /* every line counts as prose: the text has no blocks */
    /* Appends more: 1, 0 if there is no more, or an error. The bytes may move. NULL: there is no more. */
    int (*more)(struct wb_snippet_text *text);
    struct wb_text_reader *reader; /* for more() */
};

/*
 * Replaces *html_out by a snippet of the text: one or two passages that have as many of the wanted words as possible,
 * as HTML: escaped, and with <b> around these words. If it has none of them, its beginning. At most about 600 bytes of
 * text. The same text and words give the same snippet, however the text comes in parts.
 */
int wb_snippet(struct wb_snippeter *snippeter, struct wb_snippet_text *text, struct wb_buf *html_out);

/* ---- passages (sentences.c) ------------------------------------------------------------------------ */

struct wb_text_range {
    size_t begin, end;
};

/* Whether a sentence begins at this place, or ends there. */
bool wb_text_begins(struct wb_slice text, size_t at);
bool wb_text_ends(struct wb_slice text, size_t at);

/* The line that has this place, without its end. */
struct wb_text_range wb_text_block(struct wb_slice text, size_t at);

/*
 * A passage within a range that has [first, last), and ends about at `want`: it begins and ends with sentences if that
 * does not make it much longer or shorter, otherwise with words.
 */
struct wb_text_range wb_text_passage(struct wb_slice text, struct wb_text_range within, size_t first, size_t last,
                                     size_t want);

/* ---- texts that were made before (textcache.c) --------------------------------------------------- */

struct wb_text_cache;

/* Returns 1 and a copy of the text with this key, 0 if there is none, or WB_E_NOMEM. */
int wb_text_cache_find(struct wb_text_cache *cache, struct wb_slice key, struct wb_arena *arena,
                       struct wb_slice *text_out);

/* Keeps a copy, unless it is too long. */
void wb_text_cache_put(struct wb_text_cache *cache, struct wb_slice key, struct wb_slice text);

/* ---------------------------------------------------------------------------------------------------- */

/* The reader of words inside, for others in the same thread. */
struct wb_words *wb_snippeter_words(struct wb_snippeter *snippeter);

/*
 * Finds a word of the index that is spelt like this one, one or two letters apart: the one nearest, of equally near
 * ones that which most documents have. Returns 1 and appends it, or 0.
 */
int wb_spell(struct wb_postings *postings, struct wb_slice word, struct wb_buf *word_out);

#endif
