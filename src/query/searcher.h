/*
 * searcher.h - an open generation: its documents, which of them must not be shown, and its graphs.
 *
 *   searcher.c                     opening; what must not be shown, and what was taken down
 *   siblings.c similar.c linkrows.c    pages that are alike, and links
 *
 * Documents are looked at in windows of up to WB_WINDOW docids (queryplan.h), so sets of documents have room for whole
 * windows.
 */
#ifndef WB_QUERY_SEARCHER_H
#define WB_QUERY_SEARCHER_H

#include "base/check.h"
#include "base/vec.h"
#include "query/present.h"
#include "query/query.h"

#define WB_WINDOW 4096u
#define WB_WINDOW_WORDS (WB_WINDOW / 64)
#define WB_PANE 512u              /* bounds are looked at for parts of a window of this size */
#define WB_PANES (WB_WINDOW / WB_PANE)

enum { WB_SEARCHER_MAGIC = 0x57425153 }; /* "WBQS" */

struct wb_searcher {
    uint32_t magic;
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

/* Parses and simplifies a query for the searcher's generation. If it is wrong, ask_out->bad_at says where. */
int wb_searcher_parse(struct wb_searcher *searcher, struct wb_slice query, struct wb_arena *arena,
                      struct wb_ask *ask_out);

/* Reads the bars again, if they have changed, and what else decides whether a page is shown. */
int wb_searcher_refresh(struct wb_searcher *searcher);

/* Whether a document was taken down. */
static inline bool wb_searcher_barred(const struct wb_searcher *searcher, uint32_t docid)
{
    WB_CHECK(docid < searcher->urls);
    return searcher->barred && !(searcher->allowed[docid / 64] >> docid % 64 & 1);
}

int wb_searcher_statics(struct wb_searcher *searcher);

/* Successors of a document in one of the graphs; valid until the next call for the same direction. */
int wb_searcher_arcs(struct wb_searcher *searcher, enum wb_webdb_direction direction, uint32_t docid,
                     const uint32_t **list_out, size_t *count_out);

/* ---- pages that are alike -------------------------------------------------------------------------- */

struct wb_sibling {
    uint32_t docid;
    double score; /* 0 to 1: cosine of the sets of pages that link to both */
};
struct wb_siblings WB_VEC_OF(struct wb_sibling);

/* The pages to which the same pages link, at most max of them, the most similar first; without what was taken down. */
int wb_siblings_find(struct wb_searcher *searcher, uint32_t docid, size_t max, struct wb_siblings *siblings);

#endif
