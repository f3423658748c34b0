/*
 * query.h - the door of query: asks one generation of the index.
 *
 *   text -> tree (ask.h) -> plan of iterators over docids -> windows of documents -> best hits -> titles, snippets
 *
 * Words, links and facts meet in one intersection: every predicate is an iterator over docids. Which pages are found
 * and in which order never depends on how the answer was computed: the best k are the first k of all.
 *
 * A searcher belongs to one thread. It keeps the generation that it opened; pages that are taken down disappear at
 * once nevertheless. docs/query.md has the language, docs/design/0027-query.md the reasons.
 */
#ifndef WB_QUERY_QUERY_H
#define WB_QUERY_QUERY_H

#include "index/index.h"
#include "query/ask.h"

struct wb_searcher;

/* Opens the active generation of a repository. WB_E_NOTFOUND if there is none yet. */
int wb_searcher_open(const char *dir, struct wb_searcher **searcher_out);
void wb_searcher_close(struct wb_searcher *searcher);
struct wb_index *wb_searcher_index(struct wb_searcher *searcher);

/* The docid of a URL as people write it, with or without a scheme. WB_E_NOTFOUND also if it cannot be a URL. */
int wb_searcher_find(struct wb_searcher *searcher, struct wb_slice url, uint32_t *docid_out);

/*
 * Texts of results (snippets, titles) that were made before: at most so many bytes. Searchers of several threads can
 * share them, and must be closed before they are freed. Freeing NULL is fine. seed: a number that nobody can guess, so
 * that nobody can choose texts that share a place.
 */
struct wb_text_cache;
int wb_text_cache_new(size_t bytes, uint64_t seed, struct wb_text_cache **cache_out);
void wb_text_cache_free(struct wb_text_cache *cache);

/* Gives up the texts of all generations but this one. */
void wb_text_cache_forget(struct wb_text_cache *cache, uint32_t generation);
void wb_searcher_use_cache(struct wb_searcher *searcher, struct wb_text_cache *cache);

/* ---- searching ----------------------------------------------------------------------------------- */

/* How words are weighed. All zero: as the generation was built to do. */
struct wb_ranking {
    bool plain;    /* BM25 on all words of a page alike: no fields, no PageRank */
    double k1, b;  /* 0: 1.2 and 0.75 */
};

enum wb_facet { WB_FACET_SITE, WB_FACET_TYPE, WB_FACET_LANG, WB_FACET_STATUS, WB_FACETS };

struct wb_search_options {
    struct wb_slice query;
    struct wb_ask_sort sort;      /* all zero: by score, best first */
    uint64_t limit, offset;
    unsigned facets;              /* bit i: enum wb_facet i */
    bool count;                   /* the total must be exact; otherwise it may be a lower bound */
    bool explain;                 /* fill in wb_results.plan and the parts of each score */
    bool collapse_site;           /* at most one hit for each site: the best */
    bool fold;                    /* what is much like a better result is folded under it (folding.c) */
    bool exhaustive;              /* look at every document, to compare with */
    bool no_texts;                /* docids and scores only: neither URL, title nor snippet */
    const _Atomic bool *give_up;  /* another thread sets it when the time is up; NULL: there is time */
    struct wb_ranking ranking;
};

/* A part of a score: of a word, or of PageRank. */
struct wb_hit_part {
    struct wb_slice term;         /* as typed; "PageRank" for the static part */
    uint32_t frequency[WB_FIELDS];
    double score;
};

enum wb_fold_why {
    WB_FOLD_NOT,
    WB_FOLD_NEAR,     /* a near duplicate */
    WB_FOLD_LANGUAGE, /* the same in another language */
    WB_FOLD_TITLE,    /* a page of the same site with the same title and much the same text */
};

/* A result that is folded under a hit. */
struct wb_folded {
    uint32_t docid;
    enum wb_fold_why why;
    struct wb_slice url, title;
    int64_t time_ms;
    const char *language; /* its code; "": unknown */
};

struct wb_hit {
    uint32_t docid;
    double score;
    struct wb_slice url, title;   /* title.ptr is NULL if it was never fetched */
    struct wb_slice snippet;      /* HTML: escaped text with <b> around what was asked for; ptr NULL: none */
    int64_t time_ms;              /* 0: never fetched */
    const char *language;         /* its code; "": unknown */
    const struct wb_folded *folded; /* in the order of results */
    size_t folded_count;
    const struct wb_hit_part *parts; /* of the score, if it is to be explained */
    size_t part_count;
    uint64_t length;              /* with parts: how many words the score takes the page to have */
};

struct wb_facet_value {
    struct wb_slice value;
    uint64_t count;
};

struct wb_results {
    uint64_t total;
    bool exact;                   /* total is the number of all results, not only a lower bound */
    uint64_t hit_total;           /* how many hits there are on all pages, which is less than total if any are folded */
    bool hit_total_exact;         /* otherwise there may be fewer, because more are folded further on */
    bool cut;                     /* the search was given up: these are the best of the documents seen until then */
    struct wb_hit *hits;          /* from hit number `offset` on, at most `limit` */
    size_t hit_count;
    struct wb_facet_value *facets[WB_FACETS]; /* most frequent first, equal ones by value */
    size_t facet_counts[WB_FACETS];
    struct wb_slice plan;         /* lines of text */
    struct wb_slice suggestion;   /* the query with words spelt as the index has them; ptr NULL: none */
    size_t bad_at;                /* if the query cannot be parsed: where */
    struct wb_arena arena;        /* owns all of this */
};

/* Whether the time of a search is up. */
static inline bool wb_search_is_given_up(const struct wb_search_options *options)
{
    return options && options->give_up && *options->give_up;
}

/* WB_E_INVALID: the query is wrong, the message says where. Release the results even after an error. */
int wb_search(struct wb_searcher *searcher, const struct wb_search_options *options, struct wb_results *results_out);
void wb_results_release(struct wb_results *results);

/*
 * If the query is nothing but the URL of a page that the generation knows, in any spelling (typedurl.c): its docid. It
 * is then the first of the results that are ordered by score. WB_E_NOTFOUND if it is anything else.
 */
int wb_search_url(struct wb_searcher *searcher, struct wb_slice query, uint32_t *docid_out);

/* ---- completions (complete.c) --------------------------------------------------------------------- */

enum wb_completion_kind {
    WB_COMPLETION_TITLE, /* a title of pages, or a part of one */
    WB_COMPLETION_WORD,  /* a word of pages */
    WB_COMPLETION_WORDS, /* what was typed, with another last word */
};

struct wb_found_completion {
    struct wb_slice text; /* a query */
    enum wb_completion_kind kind;
    struct wb_slice url;  /* the most important page with this title; ptr NULL: it is no title */
};

#define WB_COMPLETIONS_MAX 20

struct wb_completions_found {
    struct wb_found_completion items[WB_COMPLETIONS_MAX];
    size_t count;
    struct wb_arena arena; /* owns the texts */
};

/*
 * What a query that is being typed may become, at most `limit`, the best first. Takes a bounded number of steps.
 * give_up: as in wb_search_options; what was found until then is the answer. Release the result even after an error.
 */
int wb_complete(struct wb_searcher *searcher, struct wb_slice typed, size_t limit, const _Atomic bool *give_up,
                struct wb_completions_found *found_out);
void wb_completions_found_release(struct wb_completions_found *found);

/* ---- sets of pages ------------------------------------------------------------------------------- */

/*
 * All stored pages that match a query, as a set: bit docid % 64 of word docid / 64. URLs that were never fetched
 * are not in it. Without a query (query.ptr is NULL) these are all pages that were not taken down, of any status.
 * any_status: the query finds pages of any status, even if it does not have status:. The caller frees the bits with
 * wb_free(). WB_E_INVALID as for wb_search(), and *bad_at_out says where.
 */
int wb_search_pages(struct wb_searcher *searcher, struct wb_slice query, bool any_status, uint64_t **bits_out,
                    size_t *bad_at_out);

/* The numbers of in-links by docid, without the links of pages that were taken down before the last search. */
int wb_searcher_inlinks(struct wb_searcher *searcher, const uint32_t **inlinks_out);

/* ---- links and similar pages --------------------------------------------------------------------- */

struct wb_link_row {
    struct wb_slice url, anchor;
};

/*
 * The links to or from a URL, in the order of docids. WB_E_NOTFOUND if the generation does not know it. Pages that were
 * taken down have no links, and are no sources of any.
 */
int wb_links(struct wb_searcher *searcher, struct wb_slice url, enum wb_webdb_direction direction,
             int (*each)(void *context, const struct wb_link_row *row), void *context);

/* The same for a docid; does not look whether more pages were taken down since the last search. */
int wb_links_of(struct wb_searcher *searcher, uint32_t docid, enum wb_webdb_direction direction,
                int (*each)(void *context, const struct wb_link_row *row), void *context);

struct wb_similar_page {
    uint32_t docid;
    double score;                 /* 0 to 1 */
};

/*
 * Pages that are like this one, the most similar first, at most `limit`: by words, by pages that link to both, or by
 * both together (kinds: bit 0 words, bit 1 links; 0 means both).
 */
int wb_similar(struct wb_searcher *searcher, uint32_t docid, unsigned kinds, size_t limit,
               struct wb_similar_page *pages_out, size_t *count_out);

#endif
