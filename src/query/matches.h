/*
 * matches.h - where the words of a query are in a text, for snippet.c.
 *
 * Most words of a text are not wanted, so they are not read: a wanted word begins with certain letters, and only where
 * these begin a word, the bytes up to the next blanks are split into words. That finds the same as reading every word.
 */
#ifndef WB_QUERY_MATCHES_H
#define WB_QUERY_MATCHES_H

#include "base/vec.h"
#include "query/present.h"

#define WB_MATCHES_MAX 1024      /* that are looked at */
#define WB_MATCHES_WANTED_MAX 64 /* words of a query that are highlighted */
#define WB_NEEDLE_MAX 16

struct wb_match {
    size_t begin, end;
    unsigned wanted;
    bool prose; /* in a block that is long or ends like a sentence; otherwise in an entry of a list or the like */
};

/* How words that match a wanted one begin. */
struct wb_needle {
    enum wb_needle_kind {
        WB_NEEDLE_LETTERS, /* with these letters and digits of ASCII, in any case */
        WB_NEEDLE_FOREIGN, /* with a character that no ASCII text has */
        WB_NEEDLE_UNKNOWN,
    } kind;
    char text[WB_NEEDLE_MAX];
    size_t len;
};

/* A word that was read before, and what came of it. The commonest words of a text are looked at again and again. */
struct wb_known_word {
    char text[WB_NEEDLE_MAX]; /* in lower case, filled up with zeros; the first byte is 0: no word */
    uint8_t wanted;           /* WB_MATCHES_WANTED_MAX: none */
};
#define WB_KNOWN_WORDS 128

struct wb_matches {
    struct wb_words *words;
    const struct wb_wanted *wanted;
    size_t wanted_count;
    const char *language;
    struct wb_known_word known[WB_KNOWN_WORDS];
    WB_VEC(struct wb_match) items; /* in order */
    struct wb_needle needles[WB_MATCHES_WANTED_MAX];
    bool unknown, letters;      /* some needle is of this kind */
    bool first[256];            /* the bytes that wanted words or their stems begin with */
    bool lines;                 /* every line counts as prose */
    size_t done;                /* bytes of the text that were looked through */
    struct wb_text_range block; /* of the last match */
    bool block_is_prose;
    uint64_t in_prose, elsewhere; /* bit i: word i was found there */
};

/* Looks for these words from now on; they must stay valid. */
void wb_matches_want(struct wb_matches *matches, struct wb_words *words, const struct wb_wanted *wanted, size_t count);

/* Begins with a new text. language: determines the stems of its words; it must stay valid. */
void wb_matches_begin(struct wb_matches *matches, const char *language, bool lines);
void wb_matches_release(struct wb_matches *matches);

/* Looks through the text from where the last call ended up to `end`: the end of a line, or of the text. */
int wb_matches_find(struct wb_matches *matches, struct wb_slice text, size_t end);

/* Whether all words were found, and one of them in prose; or some, and much of the text was looked through. */
bool wb_matches_enough(const struct wb_matches *matches);

/* Whether a block is long or ends like a sentence. */
bool wb_matches_prose(struct wb_slice block);

#endif
