/*
 * engine.h - what the files of the engine share: the searcher, the plan of a query, and windows of documents.
 *
 *   searcher.c                     opening; what must not be shown, and what was taken down
 *   queryplan.c planwords.c planfacts.c planplaces.c    tree of the language -> nodes and leaves
 *   leaf.c phrase.c                which documents of a window match a leaf
 *   windows.c                      which documents of a window match the plan
 *   scoring.c topk.c               what they score, and the best ones
 *   gather.c                       all of them: counts, facets, orders other than by score
 *   folding.c                       results that are much like a better one
 *   hits.c hittexts.c explain.c pageset.c    what the caller gets
 *   siblings.c similar.c linkrows.c    pages that are alike, and links
 *
 * Documents are looked at in windows of up to WB_WINDOW docids: a set of documents is a bit for each, and an
 * intersection is the AND of words. Windows are visited in ascending order.
 */
#ifndef WB_QUERY_ENGINE_H
#define WB_QUERY_ENGINE_H

#include "base/vec.h"
#include "query/present.h"
#include "query/query.h"
#include "words/words.h"

#define WB_WINDOW 4096u
#define WB_WINDOW_WORDS (WB_WINDOW / 64)
#define WB_PANE 512u              /* bounds are looked at for parts of a window of this size */
#define WB_PANES (WB_WINDOW / WB_PANE)
#define WB_PLAN_LISTS_MAX 16384u  /* posting lists that a query opens */
#define WB_PLAN_TERMS_MAX 2000000u       /* terms that begin with the prefixes of a query... */
#define WB_PLAN_POSTINGS_MAX 400000000u  /* ...and their postings */
#define WB_PLAN_VERIFIED_MAX 5000000u    /* documents looked at for fields or positions, plus four for each URL */

/* The documents base, base + 1, ... base + size - 1; both are multiples of 64. */
struct wb_window {
    uint32_t base, size;
};

struct wb_windowbits {
    uint64_t word[WB_WINDOW_WORDS];
};

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

/* ---- the searcher ----------------------------------------------------------------------------- */

struct wb_searcher {
    struct wb_index *index;
    struct wb_store *store;
    struct wb_snippeter *snippeter;
    struct wb_text_reader *reader; /* of what the generation keeps of pages */
    struct wb_text_cache *texts; /* that were made before; NULL: none are kept */
    struct wb_words *words;      /* of the snippeter */
    struct wb_wordlist wordlist;
    uint32_t pages, urls;
    size_t bit_words;            /* of the following: enough for whole windows */
    uint64_t *shown;             /* a bit for each document that queries without status: may find */
    uint64_t *allowed;           /* a bit for each that was not taken down */
    bool all_shown;
    uint64_t barred;             /* how many documents were taken down */
    bool bars_read;
    size_t counted;              /* memory of the sets and columns below and above, for kept.h */
    uint64_t bars_version;       /* of the bars that `allowed` reflects, or of some before them */
    uint32_t *inlinks;           /* in-links without those of pages that were taken down; NULL: see the column */
    const uint32_t *statics;     /* what PageRank adds to a score; NULL until it is needed */
    uint32_t *static_max;        /* the greatest of each pane */
    struct wb_scorer model;      /* of words without their units, for these parameters; 0: there is none yet */
    double model_k1, model_b;
    struct wb_graph_cursor *in, *out; /* NULL until they are needed */
    struct wb_arena scratch;     /* of wb_similar() and wb_links() */
};

/* Reads the bars again, if they have changed, and what else decides whether a page is shown. */
int wb_searcher_refresh(struct wb_searcher *searcher);

/* Whether a document was taken down. */
static inline bool wb_searcher_barred(const struct wb_searcher *searcher, uint32_t docid)
{
    return searcher->barred && !(searcher->allowed[docid / 64] >> docid % 64 & 1);
}

int wb_searcher_statics(struct wb_searcher *searcher);

/* Successors of a document in one of the graphs; valid until the next call for the same direction. */
int wb_searcher_arcs(struct wb_searcher *searcher, enum wb_webdb_direction direction, uint32_t docid,
                     const uint32_t **list_out, size_t *count_out);

/* ---- the plan ----------------------------------------------------------------------------------- */

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
    WB_LEAF_WORDS,  /* slots */
    WB_LEAF_DOCS,   /* docs, ascending */
    WB_LEAF_BITS,   /* bits of all documents */
    WB_LEAF_RANGES, /* ranges, ascending */
    WB_LEAF_COLUMN, /* a test of a value */
};

enum wb_value_kind { WB_VALUE_U8, WB_VALUE_U16, WB_VALUE_U32, WB_VALUE_U64, WB_VALUE_I64, WB_VALUE_DOUBLE,
                     WB_VALUE_SELF /* U32: the document's own docid */ };

struct wb_leaf {
    enum wb_leaf_kind kind;
    const struct wb_ask_node *ask;
    uint64_t cost;             /* how many documents it has, about */
    bool scored;               /* it counts for the score */
    bool verify;               /* its lists only give candidates: wb_leaf_verify() decides */
    bool deferred;             /* it is verified after everything else */
    struct wb_slot *slots;     /* WORDS */
    size_t slot_count;
    uint32_t slop;
    bool phrase;               /* positions matter */
    unsigned fields;           /* bit f: enum wb_field f counts; 0: all do */
    unsigned spaces;           /* bit s: the phrase may be in enum wb_space s */
    struct wb_positions *positions; /* of each slot, while a document is verified */
    uint32_t **merged;         /* of each slot: positions in several lists, in order */
    size_t *merged_cap;
    const uint32_t *docs;      /* DOCS */
    size_t doc_count;
    const uint32_t *doc_scores; /* DOCS: what each adds to the score; may be NULL */
    const uint64_t *bits;      /* BITS */
    struct wb_slice prefix;    /* BITS: all words that begin with this */
    uint32_t constant;         /* BITS, DOCS: what each document adds to the score, or the most that one adds */
    struct wb_index_range *ranges; /* RANGES */
    size_t range_count;
    enum wb_value_kind value;  /* COLUMN */
    const void *values;
    uint32_t end;              /* documents from here on have no value (COLUMN), or do not exist (WORDS) */
    int64_t low, high;
    int64_t none;              /* COLUMN: the value that means that there is none */
    bool has_none;
    double number;
    enum wb_ask_op op;
    struct wb_window matched_at;   /* the window of `matched`, if its size is not 0 */
    struct wb_windowbits *matched; /* what was found and verified there; only of leaves with verify and scored */
};

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
int wb_plan_prefix(struct wb_qplan *plan, const struct wb_ask_node *ask, struct wb_slice text, unsigned fields,
                   bool scored, struct wb_qnode **node_out);
int wb_plan_fact(struct wb_qplan *plan, const struct wb_ask_node *ask, struct wb_qnode **node_out);
int wb_plan_place(struct wb_qplan *plan, const struct wb_ask_node *ask, bool scored, struct wb_qnode **node_out);
int wb_plan_leaf_node(struct wb_qplan *plan, struct wb_leaf *leaf, struct wb_qnode **node_out);

/* Opens the list of a term; *list_out is NULL if there is no such term. */
int wb_plan_list(struct wb_qplan *plan, struct wb_slice text, char space, struct wb_postlist **list_out,
                 uint32_t *df_out);
int wb_plan_open_term(struct wb_qplan *plan, const struct wb_term *term, struct wb_postlist **list_out);

/* Calls each() for all exact terms that begin with a text. */
int wb_plan_each_term(struct wb_qplan *plan, struct wb_slice prefix,
                      int (*each)(void *context, struct wb_slice key, const struct wb_term *term), void *context);

/* Takes memory that wb_qplan_release() frees. */
int wb_qplan_keep(struct wb_qplan *plan, void *memory);

/* ---- leaves ------------------------------------------------------------------------------------- */

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

/* Whether the document has the word. Moves the lists. */
bool wb_slot_has(struct wb_slot *slot, uint32_t docid);

/* phrase.c: whether the words are at the right places in one of the spaces. All slots have the document. */
int wb_phrase_matches(struct wb_leaf *leaf, uint32_t docid, bool *matches_out);

/* ---- windows ------------------------------------------------------------------------------------ */

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

/* ---- scores -------------------------------------------------------------------------------------- */

#define WB_STATIC_WHOLE_BITS 11 /* WB_SCORE_ONE << 11 is still a uint32_t */
#define WB_STATIC_WHOLE (1u << WB_STATIC_WHOLE_BITS)

/* What PageRank adds to the score of a document, or to the greatest of some: value is from the column. */
static inline uint32_t wb_scoring_static(const struct wb_qplan *plan, uint32_t value)
{
    return value * plan->static_share >> (WB_STATIC_WHOLE_BITS + plan->shift);
}

/* Prepares the scores of a plan: terms, scorers, scale. */
int wb_scoring_prepare(struct wb_qplan *plan);

/* Finds the bounds of all terms in the panes of a whole window. */
void wb_scoring_look(struct wb_qplan *plan, uint32_t base);

/* No document of these panes of that window scores more than this. Also sets the bounds of the terms. */
uint32_t wb_scoring_bound(struct wb_qplan *plan, uint32_t base, uint32_t first, uint32_t end);

/*
 * Computes the scores of the documents whose bits are set, all parts included. Clears the bits of those that cannot
 * score more than `least`; 0: keeps all. Bounds must be those of the window if least is not 0.
 */
void wb_scoring_sum(struct wb_qplan *plan, struct wb_window window, struct wb_windowbits *bits, uint32_t least,
                    uint32_t *sums);

/* Adds the scores of one term to the documents whose bits are set: one by one if they are few. */
void wb_scoring_add(const struct wb_qplan *plan, const struct wb_scoreterm *term, struct wb_window window,
                    const uint64_t *mask, uint32_t *sums);

/* The score of a document as people see it. */
double wb_scoring_value(const struct wb_qplan *plan, uint32_t score);

/* The score of one posting without fields, for plain BM25. */
uint32_t wb_scoring_plain(const struct wb_qplan *plan, const struct wb_slot *slot, uint32_t docid,
                          const uint32_t frequency[WB_FIELDS]);

/* ---- results -------------------------------------------------------------------------------------- */

/* A result: the greater the key the better; equal keys by docid ascending. */
struct wb_found {
    uint64_t key;
    uint32_t docid, score;
};

/* The best `max` of what is added. */
struct wb_topk {
    uint64_t max;
    WB_VEC(struct wb_found) items; /* a heap, the worst first */
};

int wb_topk_add(struct wb_topk *topk, struct wb_found found);

/* Puts them in order, the best first. */
void wb_topk_sort(struct wb_topk *topk);

/* The best by score. *counted_out is how many results were seen; *exact_out whether these were all. */
int wb_topk_search(struct wb_qplan *plan, struct wb_topk *topk, uint64_t *counted_out, bool *exact_out);

/* What is wanted of all results. */
struct wb_gather {
    struct wb_topk *topk;      /* the best by the order of the options; NULL: not wanted */
    unsigned facets;
    uint64_t *bits;            /* a bit for each document, all zero, to be set for results; NULL: not wanted */
    uint64_t total;
    uint32_t *counts[WB_FACETS]; /* by number of site, type, language, status; NULL if not wanted */
    size_t count_sizes[WB_FACETS];
};

/* Looks at all results: those of each group of near duplicates once if the query has dup:no. */
int wb_gather_all(struct wb_qplan *plan, struct wb_gather *gather);
void wb_gather_release(struct wb_gather *gather);

/* Parses and simplifies a query for the searcher's generation. If it is wrong, ask_out->bad_at says where. */
int wb_searcher_parse(struct wb_searcher *searcher, struct wb_slice query, struct wb_arena *arena,
                      struct wb_ask *ask_out);

/* How the best results are folded (folding.c). Places are those in the order of results. */
struct wb_foldmember {
    size_t hit; /* the number of the hit */
    size_t place;
    enum wb_fold_why why;
};

struct wb_foldlist {
    WB_VEC(size_t) hits;                  /* the place of each hit */
    WB_VEC(struct wb_foldmember) members; /* what is folded under the hits that are wanted */
    uint64_t folded;                      /* under any hit */
    bool whole;                           /* these are all results */
    bool enough;                          /* nothing that was not found could change the hits that are wanted */
};

/*
 * How many results must be found for the hits that are wanted; before: how many were found that were not enough, or 0.
 * Without folding, these are offset + limit.
 */
uint64_t wb_fold_depth(const struct wb_search_options *options, uint64_t before);

/* Folds results that are in order. The list is empty at first; its vectors are the caller's to release. */
int wb_fold(const struct wb_qplan *plan, const struct wb_topk *topk, struct wb_foldlist *list);

/* Turns what was found into what the caller gets. list: NULL if nothing is folded. */
int wb_hits_make(struct wb_qplan *plan, const struct wb_topk *topk, const struct wb_foldlist *list,
                 struct wb_results *results);
int wb_hits_facets(struct wb_qplan *plan, const struct wb_gather *gather, struct wb_results *results);

/* Begins the key of a text in the cache of the searcher. */
enum wb_text_kind { WB_TEXT_HIT, WB_TEXT_NAMES, WB_TEXT_SPELLING };
int wb_hits_key(const struct wb_qplan *plan, enum wb_text_kind kind, struct wb_buf *key);

/* Fetches the URL and the title of a document; a URL that was never fetched has no title. */
int wb_hits_names(const struct wb_qplan *plan, struct wb_arena *arena, uint32_t docid, struct wb_slice *url_out,
                  struct wb_slice *title_out);

/*
 * Fills in URLs, titles and snippets of the hits; a URL that was never fetched has neither of the latter. And suggests
 * another spelling of the query if it found little.
 */
int wb_hits_texts(struct wb_qplan *plan, struct wb_results *results);
int wb_hits_suggest(struct wb_qplan *plan, struct wb_results *results);

/* The plan as lines of text, with the number of documents of each part. */
int wb_explain_plan(struct wb_qplan *plan, struct wb_buf *lines_out);

/* The parts of a document's score. */
int wb_explain_hit(struct wb_qplan *plan, uint32_t docid, struct wb_arena *arena, struct wb_hit *hit);

/* ---- pages that are alike -------------------------------------------------------------------------- */

struct wb_sibling {
    uint32_t docid;
    double score; /* 0 to 1: cosine of the sets of pages that link to both */
};
struct wb_siblings WB_VEC_OF(struct wb_sibling);

/* The pages to which the same pages link, at most max of them, the most similar first; without what was taken down. */
int wb_siblings_find(struct wb_searcher *searcher, uint32_t docid, size_t max, struct wb_siblings *siblings);

#endif
