/*
 * docwords.h - the words of a document: extract its text, find its words, and hand them to an inverter.
 *
 * A worker belongs to one thread. Which words of a page are indexed, in which field and at which position, is decided
 * here and nowhere else.
 */
#ifndef WB_INDEX_DOCWORDS_H
#define WB_INDEX_DOCWORDS_H

#include "extract/extract.h"
#include "index/inverter.h"
#include "index/kepttext.h"
#include "words/words.h"

#define WB_INDEX_WORDS_MAX 1000000 /* of a page; further words are not indexed */
#define WB_ANCHOR_GAP 256          /* between two texts of links to the same URL, so that no phrase spans them */

/*
 * Gets a number that changes if the same page may give other postings: WB_DOCWORDS_RULES, which must be counted up with
 * every such change of docwords.c or of the weights of fields (wb_posting_weight), and the rules of room words.
 */
#define WB_DOCWORDS_RULES 3
int wb_docwords_rules(uint64_t *rules_out);

/*
 * The length of a page for its score. A page that mostly leads to others (an index, a table of contents, a list of what
 * uses something) has many words and says little about each, so the greater the share s of its text that is inside
 * links, the longer it counts: 1 + 2 s + 6 s^2 times its words. A document of whose words nothing is known, because it
 * was never fetched or has no text, would be found by its URL and the links to it as if it were the shortest page of
 * all; it counts like a page of middle length. docs/design/0048-page-kinds.md has the measurements.
 */
#define WB_UNKNOWN_LENGTH 500
uint64_t wb_docwords_length(uint32_t words, uint8_t linked);

struct wb_docwords {
    struct wb_extractor *extractor;
    struct wb_words *words;
    struct wb_inverter *inverter;
    struct wb_buf kept; /* of the last page */
    uint32_t budget;    /* words that the current document may still have */
};

/* What the contents of a page say, besides their words. It borrows from the worker, until its next page. */
struct wb_docfacts {
    struct wb_slice title;
    struct wb_slice kept; /* what is kept of its text: kepttext.h */
    int64_t published_ms, modified_ms; /* what the page says; 0: nothing */
    const struct wb_extract_fact *facts; /* what modules say */
    size_t fact_count;
    uint32_t words;  /* of main text, headings and title, and a quarter of the others */
    uint64_t length; /* for scoring: wb_docwords_length() */
    uint8_t lang;    /* wb_language_number() */
};

int wb_docwords_init(struct wb_docwords *worker, size_t memory_bytes);
void wb_docwords_release(struct wb_docwords *worker);

/* Adds a page to the inverter. */
int wb_docwords_page(struct wb_docwords *worker, uint32_t docid, const struct wb_page *page,
                     struct wb_docfacts *work_out);

/* The texts of the links to a URL, each once with the number of links that have it. Adds them to the inverter. */
struct wb_anchor {
    struct wb_slice text;
    uint32_t links;
};
int wb_docwords_anchors(struct wb_docwords *worker, uint32_t docid, const struct wb_anchor *anchors, size_t count);

#endif
