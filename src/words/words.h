/*
 * words.h - the door of words: turns text into the words that indexes and queries agree on.
 *
 *   text -> letters, digits and marks -> folded: "Straße" = strasse, "naïve" = naive -> stem: "networks" = network
 *                joined by punctuation -> also a compound: std::vector, 3.11.7, c++
 *                scripts without blanks -> pairs of characters: 東京都 = 東京 京都 都
 *
 * The same code reads pages and queries, so what was indexed is found. Any bytes are text: invalid UTF-8 separates
 * words. Time is linear in the text and memory is bounded. Why the rules are as they are: docs/design/0024-words.md.
 */
#ifndef WB_WORDS_WORDS_H
#define WB_WORDS_WORDS_H

#include "base/slice.h"

/* A longer word is cut, in pages and in queries, after this many bytes or characters, whichever comes first. */
#define WB_WORD_BYTES_MAX 128
#define WB_WORD_CHARS_MAX 64

/* A longer chain of words, in bytes or parts, gives its parts but no compound. */
#define WB_COMPOUND_BYTES_MAX 64
#define WB_COMPOUND_PARTS_MAX 8

enum wb_word_kind {
    WB_WORD_PLAIN,    /* letters, digits and marks; also "don't" and "Knuth's" */
    WB_WORD_COMPOUND, /* plain words and punctuation as typed, without a dot at the end: std::vector, u.s, c++, .net */
    WB_WORD_GRAM,     /* two neighbouring characters of a script without blanks; at the end of a run, the last one */
};

struct wb_word {
    struct wb_slice exact; /* folded; 1 to WB_WORD_BYTES_MAX bytes of UTF-8 without NUL */
    struct wb_slice stem;  /* of a plain word, 1 to WB_WORD_BYTES_MAX bytes; otherwise the same as exact */
    size_t begin, end;     /* where it is in the text, in bytes */
    uint32_t position;     /* 0, 1, 2, ...; a compound has the position of its first part */
    uint8_t kind;          /* enum wb_word_kind */
    uint8_t parts;         /* of a compound: how many of the words that follow are its parts; otherwise 0 */
    bool last;             /* of a gram: it is a single character, the last of its run */
};

/* ---- text into words (words.c) ------------------------------------------------------------------------------- */

/* The working memory of one thread, about 2 MB; reused for one text after the other. */
struct wb_words;

int wb_words_new(struct wb_words **words_out);
void wb_words_free(struct wb_words *words);

/*
 * Begins to read a text, which must stay valid until the last word was taken. The language (a code such as "de" or a
 * tag such as "de-CH") determines the stems: "" and unknown languages are read as English; in a language for which
 * there is no algorithm, stem and word are the same. NULL: no stems are wanted, and stem is the same as exact.
 * The only error is WB_E_NOMEM.
 */
int wb_words_begin(struct wb_words *words, struct wb_slice text, const char *language);

/*
 * Gets the next word; a compound comes before its parts. Returns 1, or 0 at the end of the text, or WB_E_NOMEM. The
 * slices in *word_out are valid until the next call.
 */
int wb_words_next(struct wb_words *words, struct wb_word *word_out);

/*
 * The stem of the plain word that was taken last, for readers that began without a language because they need only few
 * stems. It is valid until the next call. The only error is WB_E_NOMEM.
 */
int wb_words_stem_last(struct wb_words *words, const struct wb_word *word, const char *language,
                       struct wb_slice *stem_out);

/* ---- queries (wordquery.c) ----------------------------------------------------------------------------------- */

enum wb_wordlist_shape {
    WB_WORDLIST_NOTHING,  /* there is no word in it */
    WB_WORDLIST_WORD,     /* one plain word or gram. A gram with `last` set stands for every gram that begins with it */
    WB_WORDLIST_COMPOUND, /* a compound, followed by its parts */
    WB_WORDLIST_SEQUENCE, /* several words, to be found at these distances from each other */
};

/* More words than this in one piece of a query are left out. */
#define WB_WORDLIST_MAX 256

/*
 * The words of a piece of a query. In a sequence, the last character of a run of grams is left out unless it is the
 * whole run, because the pairs imply it. A reader takes either a compound, and skips its parts, or the parts: where
 * compounds are not indexed (URLs, see docs/design/0024-words.md), the parts are the choice.
 */
struct wb_wordlist {
    enum wb_wordlist_shape shape;
    struct wb_word *words;
    size_t count, cap;
    uint32_t positions; /* how many positions the piece takes */
    bool cut;           /* it had more than WB_WORDLIST_MAX words */
    char *bytes;        /* the memory of the slices */
    size_t bytes_cap;
};

#define WB_WORDLIST_INIT                                                                                               \
    {                                                                                                                  \
        WB_WORDLIST_NOTHING, NULL, 0, 0, 0, false, NULL, 0                                                             \
    }

/*
 * Finds the words of a piece of a query as typed, usually what is between two blanks; the stems are those of no
 * language. *list_out is initialised (WB_WORDLIST_INIT), and is reused or released by the caller. It is valid until
 * then, whatever happens to `words`. The only error is WB_E_NOMEM.
 */
int wb_words_of_query(struct wb_words *words, struct wb_slice piece, struct wb_wordlist *list);
void wb_wordlist_release(struct wb_wordlist *list);

/* More than all algorithms together can give. */
#define WB_STEMS_MAX 32

struct wb_stems {
    struct wb_slice items[WB_STEMS_MAX]; /* in order, each once */
    size_t count;
    char bytes[WB_STEMS_MAX * WB_WORD_BYTES_MAX];
};

/*
 * Finds the stems of a plain word (wb_word.exact) under each of the languages, given by their numbers. The only error
 * is WB_E_NOMEM.
 */
int wb_words_stems(struct wb_words *words, struct wb_slice exact, const uint8_t *languages, size_t count,
                   struct wb_stems *stems_out);

/*
 * Gets a number that changes if the same text may give other words: with other rules, another version of ICU or of
 * Snowball. Indexes are merged only if they were made with the same number. The only error is WB_E_NOMEM.
 */
int wb_words_version(struct wb_words *words, uint64_t *version_out);

/* ---- languages (languages.c) --------------------------------------------------------------------------------- */

/*
 * Languages have numbers, which are kept on disk and therefore never change: 0 is unknown, and the others are those
 * of ISO 639-1 and the further ones that language detection knows (ceb, haw, ...).
 */
#define WB_LANGUAGES 207

/* The number of a code or tag ("de", "DE", "de-CH", "de_CH"); 0 if it is unknown. */
uint8_t wb_language_number(struct wb_slice code);

/* The code of a number below WB_LANGUAGES; "" for 0. */
const char *wb_language_code(uint8_t number);

/* What people who speak it call the language (languagename.c): "Deutsch" for "de". The code if that is not known. */
#define WB_LANGUAGE_NAME_MAX 64
void wb_language_name(const char *code, char name_out[WB_LANGUAGE_NAME_MAX]);

#endif
