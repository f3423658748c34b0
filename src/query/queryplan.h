/*
 * queryplan.h - the plan of a query, and which documents match it.
 *
 *   queryplan.c planwords.c planfacts.c planplaces.c    tree of the language -> nodes and leaves
 *   leaf.c phrase.c                which documents of a window match a leaf
 *   windows.c                      which documents of a window match the plan
 *
 * Documents are looked at in windows of up to WB_WINDOW docids: a set of documents is a bit for each, and an
 * intersection is the AND of words. Windows are visited in ascending order.
 */
#ifndef WB_QUERY_QUERYPLAN_H
#define WB_QUERY_QUERYPLAN_H

#include "base/check.h"
#include "query/searcher.h"

#define WB_PLAN_LISTS_MAX 16384u  /* posting lists that a query opens */
#define WB_PLAN_TERMS_MAX 2000000u       /* terms that begin with the prefixes of a query... */
#define WB_PLAN_POSTINGS_MAX 400000000u  /* ...and their postings */
#define WB_PLAN_VERIFIED_MAX 5000000u    /* documents looked at for fields or positions, plus four for each URL */

/* ---- windows ------------------------------------------------------------------------------------ */

/* The documents base, base + 1, ... base + size - 1; both are multiples of 64. */
struct wb_window {
    uint32_t base, size;
};

struct wb_windowbits {
    uint64_t word[WB_WINDOW_WORDS];
};

/* Whether it is made of whole words, and does not reach beyond the WB_WINDOW documents that it is a part of. */
static inline bool wb_window_is_sound(struct wb_window window)
{
    return (window.base | window.size) % 64 == 0 && window.size <= WB_WINDOW - window.base % WB_WINDOW;
}

/* Calls the statement with `doc` for each set bit, ascending. */
#define WB_EACH_DOC(window, bits, doc, ...)                                            \
    for (uint32_t w_ = 0; w_ < (window).size / 64; w_++)                               \
        for (uint64_t left_ = (bits)->word[w_]; left_; left_ &= left_ - 1) {           \
            uint32_t doc = (window).base + 64 * w_ + (uint32_t)__builtin_ctzll(left_); \
            __VA_ARGS__                                                                \
        }

static inline void wb_bits_clear(struct wb_window window, struct wb_windowbits *bits)
{
    memset(bits->word, 0, window.size / 8);
}

/* Not __builtin_popcountll(): without an instruction for it, which the oldest machines lack, it is a call. */
static inline uint32_t wb_word_count(uint64_t word)
{
    word -= word >> 1 & 0x5555555555555555;
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
    return (uint32_t)(((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56);
}

static inline uint32_t wb_bits_count(struct wb_window window, const struct wb_windowbits *bits)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < window.size / 64; i++)
        count += wb_word_count(bits->word[i]);
    return count;
}

static inline bool wb_bits_any(struct wb_window window, const struct wb_windowbits *bits)
{
    uint64_t any = 0;

    for (uint32_t i = 0; i < window.size / 64; i++)
        any |= bits->word[i];
    return any != 0;
}

static inline void wb_bits_and(struct wb_window window, struct wb_windowbits *bits, const uint64_t *other)
{
    for (uint32_t i = 0; i < window.size / 64; i++)
        bits->word[i] &= other[i];
}

static inline void wb_bits_drop(struct wb_windowbits *bits, uint32_t at)
{
    bits->word[at / 64] &= ~(1ull << at % 64);
}

/* Sets the bits of the documents first to end - 1 that are in the window. */
void wb_bits_range(struct wb_window window, struct wb_windowbits *bits, uint32_t first, uint32_t end);

/* ---- leaves --------------------------------------------------------------------------------------- */

/* One word of a leaf: the documents of any of the lists. */
struct wb_slot {
    struct wb_slice text;
    struct wb_slice *stems;    /* of a bare word */
    size_t stem_count;
    bool open;                 /* every word that begins with the text */
    struct wb_postlist **lists;
    size_t list_count;
    uint64_t df;               /* of all lists together */
    uint32_t offset;           /* of a phrase: its distance from the first word */
    struct wb_scorer *scorer;  /* NULL: it does not count for the score */
    double unit;               /* the score for an infinite frequency; of the scorer, before scaling */
    size_t first_term;         /* the terms of its lists in wb_qplan.terms follow each other from here on */
};

enum wb_leaf_kind {
    WB_LEAF_NOTHING,
    WB_LEAF_WORDS,
    WB_LEAF_DOCS,
    WB_LEAF_BITS,
    WB_LEAF_RANGES,
    WB_LEAF_COLUMN,
};

enum wb_value_kind { WB_VALUE_U8, WB_VALUE_U16, WB_VALUE_U32, WB_VALUE_U64, WB_VALUE_I64, WB_VALUE_DOUBLE,
                     WB_VALUE_SELF /* U32: the document's own docid */ };

/* No document: no page has one of the words. */
struct wb_leaf_nothing {
    const struct wb_slot *slot; /* if it is a single one; otherwise NULL */
};

/* The documents that have all words. */
struct wb_leaf_words {
    struct wb_slot *slots;     /* the rarest first */
    size_t slot_count;
    uint32_t docs;             /* how many documents there are */
    uint32_t slop;
    bool phrase;               /* positions matter */
    unsigned fields;           /* bit f: enum wb_field f counts; 0: all do */
    unsigned spaces;           /* bit s: the phrase may be in enum wb_space s */
    struct wb_positions *positions; /* of each slot of a phrase, while a document is verified */
    uint32_t **merged;         /* of each slot: positions in several lists, in order */
    size_t *merged_cap;
    struct wb_window matched_at;   /* the window of `matched`, if its size is not 0 */
    struct wb_windowbits *matched; /* what was found and verified there; only of leaves with verify and scored */
};

/* These documents. */
struct wb_leaf_docs {
    const uint32_t *items;     /* ascending */
    size_t count;
    const uint32_t *scores;    /* what each adds to the score; may be NULL */
};

/* A bit for each document. */
struct wb_leaf_bits {
    const uint64_t *words;
    struct wb_slice prefix;    /* all words that begin with this */
};

/* All documents of these ranges. */
struct wb_leaf_ranges {
    struct wb_index_range *items; /* ascending */
    size_t count;
};

/* The documents whose value in a column passes a test. */
struct wb_leaf_column {
    enum wb_value_kind value;
    const void *values;
    uint32_t end;              /* documents from here on have no value */
    int64_t low, high;         /* of all kinds but DOUBLE and SELF */
    int64_t none;              /* the value that means that there is none */
    bool has_none;
    double number;             /* of DOUBLE */
    enum wb_ask_op op;
};

/* What a document can match. Only the part for its kind is there: see WB_LEAF_PART. */
struct wb_leaf {
    enum wb_leaf_kind kind;
    bool scored;               /* it counts for the score */
    bool verify;               /* WORDS: its lists only give candidates: wb_leaf_verify() decides */
    bool deferred;             /* it is verified after everything else */
    uint32_t constant;         /* BITS, DOCS: what each document adds to the score, or the most that one adds */
    uint64_t cost;             /* how many documents it has, about */
    const struct wb_ask_node *ask;
    union {
        struct wb_leaf_nothing nothing;
        struct wb_leaf_words words;
        struct wb_leaf_docs docs;
        struct wb_leaf_bits bits;
        struct wb_leaf_ranges ranges;
        struct wb_leaf_column column;
    };
};

/* The part of a leaf, which must be of that kind; const if the leaf is. */
#define WB_LEAF_PART(leaf, part_kind, part) (WB_CHECK((leaf)->kind == (part_kind)), &(leaf)->part)
#define WB_WORDS_OF(leaf) WB_LEAF_PART(leaf, WB_LEAF_WORDS, words)
#define WB_DOCS_OF(leaf) WB_LEAF_PART(leaf, WB_LEAF_DOCS, docs)
#define WB_BITS_OF(leaf) WB_LEAF_PART(leaf, WB_LEAF_BITS, bits)
#define WB_RANGES_OF(leaf) WB_LEAF_PART(leaf, WB_LEAF_RANGES, ranges)
#define WB_NOTHING_OF(leaf) WB_LEAF_PART(leaf, WB_LEAF_NOTHING, nothing)
#define WB_COLUMN_OF(leaf) WB_LEAF_PART(leaf, WB_LEAF_COLUMN, column)

/* ---- the plan ----------------------------------------------------------------------------------- */

enum wb_qnode_kind { WB_QNODE_AND, WB_QNODE_OR, WB_QNODE_NOT, WB_QNODE_LEAF };

struct wb_qnode {
    enum wb_qnode_kind kind;
    struct wb_qnode **items;   /* of AND: the cheapest first, negations last */
    size_t item_count;
    struct wb_leaf *leaf;
    uint64_t cost;
};

/* A list that counts for the score. */
struct wb_scoreterm {
    struct wb_postlist *list;
    const struct wb_scorer *scorer;
    struct wb_leaf *leaf;
    struct wb_slot *slot;
    uint32_t panes[WB_PANES];  /* bounds in each pane of the window that is being looked at */
    uint32_t bound;            /* the greatest of those that wb_scoring_bound() was last asked for */
};

struct wb_qplan {
    struct wb_searcher *searcher;
    const struct wb_search_options *options;
    struct wb_arena *arena;
    struct wb_ask ask;
    struct wb_qnode *root;     /* NULL: nothing can match */
    WB_VEC(struct wb_leaf *) leaves;
    WB_VEC(struct wb_postlist *) lists;
    WB_VEC(struct wb_scoreterm) terms;
    WB_VEC(struct wb_scoreterm *) order; /* the terms by their bounds */
    WB_VEC(void *) memory;     /* of leaves, to be freed */
    bool with_status;          /* the query has status:, so that pages of any status are found */
    bool dup_no;
    uint32_t typed;            /* the page whose URL the query is, which comes first; WB_DOCID_NONE: it is not a URL */
    bool any_of_words;         /* it asks for any of some words, and besides only for what has no score: */
    struct wb_qnode **filters;
    size_t filter_count;
    bool all_of_words;         /* it asks for all of some words, and nothing else */
    bool plain;                /* BM25 without fields and PageRank */
    double k1, b, average;
    double scale;              /* scores are multiplied by this, so that their sums fit */
    unsigned shift;            /* the same for PageRank: scale is 2^-shift */
    uint32_t static_share;     /* how much of its part of a score PageRank gets in this query; WB_STATIC_WHOLE: all */
    uint64_t terms_seen, postings_seen; /* of prefixes */
    uint64_t verified;         /* how often a document was looked at for its fields or positions */
    uint32_t constants;        /* the most that leaves without lists can add to a score */
    uint32_t statics;          /* the most that PageRank can add where wb_scoring_bound() was last asked for */
    const uint32_t *words;     /* of plain: lengths of pages */
    int err;                   /* the first error of a leaf */
};

/* Makes the plan of a parsed query. typed: as in the plan. Release it even after an error. */
int wb_qplan_make(struct wb_searcher *searcher, const struct wb_search_options *options, struct wb_arena *arena,
                  const struct wb_ask *ask, uint32_t typed, struct wb_qplan *plan_out);
void wb_qplan_release(struct wb_qplan *plan);

/* The first error of any list or leaf. */
int wb_qplan_error(const struct wb_qplan *plan);

/* Zeroed and aligned memory that lives as long as the plan's arena; NULL: out of memory. */
void *wb_qplan_take(struct wb_qplan *plan, size_t size);
struct wb_leaf *wb_qplan_leaf(struct wb_qplan *plan, const struct wb_ask_node *ask, enum wb_leaf_kind kind);
struct wb_qnode *wb_qplan_node(struct wb_qplan *plan, enum wb_qnode_kind kind, size_t items);

/* Make the node of one leaf of the tree; *node_out is NULL if there is nothing to look for, as in "&". */
int wb_plan_words(struct wb_qplan *plan, const struct wb_ask_node *ask, bool scored, struct wb_qnode **node_out);
int wb_plan_fact(struct wb_qplan *plan, const struct wb_ask_node *ask, struct wb_qnode **node_out);
int wb_plan_place(struct wb_qplan *plan, const struct wb_ask_node *ask, bool scored, struct wb_qnode **node_out);
int wb_plan_leaf_node(struct wb_qplan *plan, struct wb_leaf *leaf, struct wb_qnode **node_out);

/* Opens the list of a term; *list_out is NULL if there is no such term. */
int wb_plan_list(struct wb_qplan *plan, struct wb_slice text, char space, struct wb_postlist **list_out,
                 uint32_t *df_out);

/* Takes memory that wb_qplan_release() frees. */
int wb_qplan_keep(struct wb_qplan *plan, void *memory);

/* ---- which documents match a leaf ------------------------------------------------------------------- */

/* The first document from `from` on that may match; WB_DOCID_END if there is none. */
uint32_t wb_leaf_next(struct wb_leaf *leaf, uint32_t from);

/* Sets the bits of the candidates in the window; other bits stay. */
void wb_leaf_fill(struct wb_leaf *leaf, struct wb_window window, struct wb_windowbits *bits);

/* Clears the bits of documents that are no candidates. */
void wb_leaf_filter(struct wb_leaf *leaf, struct wb_window window, struct wb_windowbits *bits);

/* Clears the bits of candidates that do not match. */
void wb_leaf_verify(struct wb_qplan *plan, struct wb_leaf *leaf, struct wb_window window, struct wb_windowbits *bits);

/* Whether a candidate matches. An error is kept in the plan. */
bool wb_leaf_matches(struct wb_qplan *plan, struct wb_leaf *leaf, uint32_t docid);

/* Whether a list has a document. It is often the next one; behind the last one, there is room to look. */
static inline bool wb_list_has(struct wb_postlist *list, uint32_t docid)
{
    if (list->docid == docid)
        return true;
    if (list->at < list->count && list->docids[list->at + 1] == docid) {
        list->docid = docid;
        list->at++;
        return true;
    }
    return wb_postlist_seek(list, docid) == docid;
}

/* phrase.c: whether the words are at the right places in one of the spaces. All slots have the document. */
int wb_phrase_matches(struct wb_leaf_words *phrase, uint32_t docid, bool *matches_out);

/* ---- which documents match the plan ----------------------------------------------------------------- */

/* The first document from `from` on that may match; WB_DOCID_END if there is none. */
uint32_t wb_qnode_next(const struct wb_qplan *plan, const struct wb_qnode *node, uint32_t from);

/* The documents of the window that match. Returns whether there are any. */
bool wb_qnode_eval(struct wb_qplan *plan, const struct wb_qnode *node, struct wb_window window,
                   struct wb_windowbits *bits_out);

/* Clears the bits of documents that do not match. */
void wb_qnode_filter(struct wb_qplan *plan, const struct wb_qnode *node, struct wb_window window,
                     struct wb_windowbits *bits);

/* The results in a window, but deferred leaves are not verified yet. Pages that must not be shown are left out. */
bool wb_qplan_eval(struct wb_qplan *plan, struct wb_window window, struct wb_windowbits *bits_out);
void wb_qplan_verify(struct wb_qplan *plan, struct wb_window window, struct wb_windowbits *bits);

/* The next window at or after a docid that may have results; size is 0 if there is none. */
struct wb_window wb_qplan_window(const struct wb_qplan *plan, uint32_t from);

/* The bits of documents that this query may find, from the window on. */
const uint64_t *wb_qplan_shown(const struct wb_qplan *plan, struct wb_window window);

#endif
