/*
 * present.h - what makes a hit readable: snippets with highlights, and suggestions for misspelt words.
 */
#ifndef WB_QUERY_PRESENT_H
#define WB_QUERY_PRESENT_H

#include "base/arena.h"
#include "base/buf.h"
#include "extract/extract.h"
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

/* What a snippet should show. */
struct wb_snippet_wish {
    const struct wb_wanted *wanted;
    size_t count;
    const char *language; /* of the page: determines the stems of its words, as in the index */
};

/*
 * Which wanted words were found, bit i for word i: in prose, in short blocks of the main text, in navigation and the
 * like (of words that the main text lacks only), and in headings that repeat the title.
 */
struct wb_snippet_found {
    uint64_t in[4];
};

/*
 * Appends a snippet of the page: one or two passages of its text that have as many of the wanted words as possible, as
 * HTML: escaped, and with <b> around these words. If it has none of them, its beginning. Words that the main text has
 * are shown there. At most about 600 bytes of text. The same page and words give the same snippet.
 */
int wb_snippet(struct wb_snippeter *snippeter, const struct wb_page *page, const struct wb_snippet_wish *wish,
               struct wb_buf *html_out, struct wb_snippet_found *found_out);

/*
 * Replaces *html_out by a snippet of the page that is made of a part of it, if the page is long (excerpt.c). Takes a
 * few milliseconds at most, unless the page is in another encoding than UTF-8.
 */
int wb_excerpt(struct wb_snippeter *snippeter, const struct wb_page *page, const struct wb_snippet_wish *wish,
               struct wb_buf *html_out);

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

/* The extractor and the reader of words inside, for others that read single pages in the same thread. */
struct wb_extractor *wb_snippeter_extractor(struct wb_snippeter *snippeter);
struct wb_words *wb_snippeter_words(struct wb_snippeter *snippeter);

/*
 * Finds a word of the index that is spelt like this one, one or two letters apart: the one nearest, of equally near
 * ones that which most documents have. Returns 1 and appends it, or 0.
 */
int wb_spell(struct wb_postings *postings, struct wb_slice word, struct wb_buf *word_out);

#endif
