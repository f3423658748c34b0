/*
 * wordscan.h - private to words: the state while a text is read, shared by the files that read it.
 *
 *   words.c   the door; reads a word of ASCII letters directly, which is the usual case
 *     `-> cluster.c   any other word: parts, what joins them, and whether they are a compound
 *     |     `-> part.c   one part: letters, digits and marks, folded
 *     `-> grams.c     characters of scripts without blanks, in pairs
 */
#ifndef WB_WORDS_WORDSCAN_H
#define WB_WORDS_WORDSCAN_H

#include "words/fold.h"
#include "words/stem.h"
#include "words/words.h"

/* The parts that are read at a time. Of a longer chain, only the parts are words, so it can be read piece by piece. */
#define WB_CLUSTER_PARTS (2 * WB_COMPOUND_PARTS_MAX)

/* A word while it is read. Zeros follow it when it is complete, as wb_stem_find() needs it. */
struct wb_wordbuf {
    char bytes[WB_STEM_ROOM];
    size_t len;
    unsigned chars;
    bool full;  /* the rest of the word is left out */
    bool digit; /* it has a digit */
};

/* A character of a script without blanks, with its marks. Further marks are left out. */
#define WB_UNIT_BYTES_MAX 24
_Static_assert(2 * WB_UNIT_BYTES_MAX <= WB_WORD_BYTES_MAX, "a gram is a word");

struct wb_unit {
    char bytes[WB_UNIT_BYTES_MAX];
    size_t len;
    size_t last; /* where its last character is, to which a mark may be added */
    size_t begin, end;
};

enum wb_words_url {
    WB_WORDS_URL_NONE,
    WB_WORDS_URL_HOST, /* the next word is the host of a URL */
    WB_WORDS_URL_REST, /* what follows the host, up to the next blank; it has no compounds */
};

#define WB_WORDS_MAGIC 0x574f5244u

struct wb_words {
    uint32_t magic; /* WB_WORDS_MAGIC from new to free */
    bool chained;   /* the last part was joined to what follows, but the chain is too long for a compound */
    bool in_run;    /* a run of grams goes on; `unit` is its last character */
    uint8_t url;    /* enum wb_words_url */
    int algorithm;
    uint32_t position; /* of the next word */
    struct wb_slice text;
    size_t at;    /* up to here the text has been read... */
    size_t taken; /* ...and up to here it belongs to words */

    /* The words of a cluster: a compound, perhaps, and its parts. */
    struct wb_word queue[1 + WB_CLUSTER_PARTS];
    unsigned queued, given;
    struct wb_wordbuf parts[WB_CLUSTER_PARTS];
    char compound[WB_COMPOUND_BYTES_MAX];

    struct wb_unit unit;
    char gram[2 * WB_UNIT_BYTES_MAX];

    char stem[WB_STEM_ROOM], base[WB_STEM_ROOM];
    struct wb_stemmers stemmers;
    char asked[12]; /* the language for which stems of single words were last asked for */
    int asked_algorithm;
};

/* The class of the character at `at`. *len_out is its length, 1 for a byte that is not UTF-8, 0 at the end. */
enum wb_fold_class wb_words_class_at(struct wb_slice text, size_t at, size_t *len_out, uint32_t *cp_out);

/* Reads the letters at `at`, which has at least one. Returns where they end. */
size_t wb_part_read(struct wb_slice text, size_t at, struct wb_wordbuf *part);

/* Appends a few ASCII letters and marks to a part, or nothing if they do not fit. */
void wb_part_append(struct wb_wordbuf *part, struct wb_slice bytes);

/* Reads the next cluster into the queue, or begins a run of grams. False at the end of the text. */
bool wb_words_scan(struct wb_words *w);

/* Begins a run of grams at `at`; gets the next gram of the run. */
void wb_words_begin_run(struct wb_words *w, size_t at);
void wb_words_next_gram(struct wb_words *w, struct wb_word *word_out);

/* The stem of a plain word in a buffer as wb_stem_find() needs it. Words with digits are their own stems. */
int wb_words_stem(struct wb_words *w, int algorithm, const char *word, size_t len, struct wb_slice *stem_out);

#endif
