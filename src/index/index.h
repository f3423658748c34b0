/*
 * index.h - the door of index: generations, which are what readers query.
 *
 *   build        scans a snapshot of the store, walks an edition of webdb, and writes the next generation
 *   generation   posting lists, link graph and columns over one snapshot and one edition; never changed afterwards
 *
 *   DIR/index/           the series of generations (os/series.h), or:
 *   DIR/index/where      the directory that has it, if it is on another device
 *
 * Everything in a generation is about docids: [0, pages) are the pages of the snapshot in the order of SURTs, and
 * [pages, urls) every other URL of the edition, in the same order. A generation holds its snapshot and its edition
 * until a later one is active and no reader uses it any more. A reader keeps the generation that it opened.
 *
 * The room `query` asks; this room never ranks pages for a query. docs/formats/generation.md has the files,
 * docs/design/0026-index.md the reasons.
 */
#ifndef WB_INDEX_INDEX_H
#define WB_INDEX_INDEX_H

#include "graph/graph.h"
#include "postings/postings.h"
#include "store/store.h"
#include "webdb/webdb.h"

#define WB_DOCID_NONE UINT32_MAX
#define WB_DEPTH_DELETED 0xfffe /* of a URL that was deleted by hand: searches do not show it (the column depth) */

/* ---- columns ------------------------------------------------------------------------------------- */

/* What is known about each document. Columns of pages have a value for each page, the others for each URL. */
enum wb_fact {
    /* of URLs */
    WB_FACT_ID,       /* 16 bytes: the page id */
    WB_FACT_LENGTH,   /* uint8_t: length byte for scoring */
    WB_FACT_SITE,     /* uint32_t: number of the site, in the order of SURTs */
    WB_FACT_DEPTH,    /* uint16_t: links from a seed */
    WB_FACT_INLINKS,  /* uint32_t: pages that link to it */
    WB_FACT_RANK,     /* double: PageRank */
    WB_FACT_HOSTRANK, /* double: PageRank of its site, in the graph of sites */
    WB_FACT_STATIC,   /* uint32_t: what PageRank adds to a score (WB_SCORE_ONE) */
    WB_FACT_ANCHORS,  /* uint64_t: hash of the texts of the links to it, by which the next build sees a change */
    WB_FACT_KEYORDER, /* uint32_t: not about the document; the docid that has this place in the order of URL keys */
    /* of pages */
    WB_FACT_OUTLINKS,  /* uint32_t */
    WB_FACT_TIME,      /* int64_t ms: when it was fetched */
    WB_FACT_CHANGED,   /* int64_t ms: when its content last changed, as far as known */
    WB_FACT_PUBLISHED, /* int64_t ms: what the page says; 0: nothing */
    WB_FACT_MODIFIED,  /* int64_t ms: what the page says; 0: nothing */
    WB_FACT_SIZE,      /* uint64_t: bytes of the body */
    WB_FACT_WORDS,     /* uint32_t: words that count for its length */
    WB_FACT_STATUS,    /* uint16_t */
    WB_FACT_TYPE,      /* uint32_t: number of the media type, in alphabetical order */
    WB_FACT_LANG,      /* uint8_t: wb_language_number() */
    WB_FACT_SIMHASH,   /* uint64_t */
    WB_FACT_NEAR,      /* uint32_t: docid of the page that it is a near duplicate of; its own if of no page */
    WB_FACT_VERSIONS,  /* uint32_t: versions that can be read */
    WB_FACT_TITLE,     /* uint32_t: hash of the title; 0: it has none */
    WB_FACT_ALTERNATE, /* uint32_t: docid of the first page that has the same text in another language; or its own */
    WB_FACTS,
};
#define WB_FACT_FIRST_OF_PAGES WB_FACT_OUTLINKS

/* ---- reading ---------------------------------------------------------------------------------------- */

/* An open generation. Any number of threads may share it, except where a function says otherwise. */
struct wb_index;

struct wb_index_info {
    uint32_t generation;
    uint32_t snapshot;
    uint64_t epoch; /* of the snapshot */
    uint32_t edition;
    int64_t time_ms;      /* when it was built */
    uint64_t pages, urls; /* docids: pages have those below pages */
    uint64_t words;       /* of all pages; the average length is words / pages */
    uint64_t arcs;
    uint64_t terms, bytes; /* bytes: of all its files */
    uint64_t rules;        /* by which its words were found; generations with other rules are not merged */
    uint64_t damaged;      /* pages that could not be read, and are missing */
};

/* Opens the active generation. WB_E_NOTFOUND if there is none yet. */
int wb_index_open(const char *dir, struct wb_index **index_out);
void wb_index_close(struct wb_index *index);
const struct wb_index_info *wb_index_info(const struct wb_index *index);

/* Only the numbers of the active generation, cheaply. All zero if there is none. */
int wb_index_newest(const char *dir, struct wb_index_info *info_out);

/* The directory that has the generations (a series: os/series.h), from the heap. For those who copy them as files. */
int wb_index_root(const char *dir, char **root_out);

/* The values of a fact, checked and in the byte order of the machine: an array with one item per page or URL. */
int wb_index_fact(struct wb_index *index, enum wb_fact fact, const void **values_out);

/*
 * Calls each() for the pages whose fingerprints (SimHash) differ from `print` in at most `bits` bits, those with the
 * same fingerprint one after the other, by docid. If it returns more than 0, the rest of these is passed over. Takes a
 * bounded number of steps, however many pages there are (prints.c).
 */
typedef int (*wb_index_each_near)(void *context, uint32_t docid, unsigned distance);
int wb_index_near(struct wb_index *index, uint64_t print, unsigned bits, wb_index_each_near each, void *context);

struct wb_postings *wb_index_postings(struct wb_index *index);

/* Successors of a docid: the URLs that it links to; and in the other graph, the pages that link to it. */
const struct wb_graph *wb_index_links_out(const struct wb_index *index);
const struct wb_graph *wb_index_links_in(const struct wb_index *index);

/* The place of a document among all URLs, pages or not, in the order of SURTs: its number in the edition. */
uint64_t wb_index_order(const struct wb_index *index, uint32_t docid);

/* The docid of the URL that has this number in the generation's edition. */
uint32_t wb_index_docid(const struct wb_index *index, uint64_t number);

/* The languages of the pages, as wb_language_number() has them. Valid as long as the generation is open. */
const uint8_t *wb_index_languages(const struct wb_index *index, size_t *count_out);

/*
 * The following use one handle of webdb and one cursor each, so only one thread at a time may call them. Texts are
 * valid until the next call of the same function.
 */

/* The docid of a URL. WB_E_NOTFOUND, WB_E_INVALID. */
int wb_index_find(struct wb_index *index, struct wb_slice url, uint32_t *docid_out);

/* The docid of a page by its id. WB_E_NOTFOUND. */
int wb_index_find_id(struct wb_index *index, struct wb_pageid id, uint32_t *docid_out);

/* The URL of a document, without a user and a password: readers do not need them. */
int wb_index_url(struct wb_index *index, uint32_t docid, struct wb_slice *url_out);

/* The fingerprint of any URL, even if it is no page of the snapshot and only webdb knows its content; 0: none. */
int wb_index_print(struct wb_index *index, uint32_t docid, uint64_t *print_out);
int wb_index_title(struct wb_index *index, uint32_t docid, struct wb_slice *title_out);

/* A title, or what somebody types, folded as the words of pages are (completiontext.c). */
#define WB_COMPLETION_TEXT_MAX 120 /* bytes of a text, folded and as it is shown */
#define WB_COMPLETION_STARTS_MAX 8
struct wb_completion_text {
    char folded[WB_COMPLETION_TEXT_MAX]; /* words, parted by one blank, apart from scripts without blanks */
    size_t folded_len;
    uint8_t starts[WB_COMPLETION_STARTS_MAX]; /* where words begin in it */
    size_t start_count;
    size_t begin, end; /* of its words, in what was folded */
    size_t last;       /* where the last word begins in what was folded */
    bool cut;          /* there was more */
};

/*
 * Folds a text. typed: it is the beginning of something, so that a blank at its end means that a word is complete. The
 * only error is WB_E_NOMEM.
 */
struct wb_words;
int wb_completion_fold(struct wb_words *words, struct wb_slice text, bool typed, struct wb_completion_text *text_out);

/* What a query that is being typed may become (completions.h). Valid as long as the generation is open. */
struct wb_completion {
    struct wb_slice text, folded; /* as it is shown, and as words are folded */
    uint32_t docid;               /* the most important page with this title; WB_DOCID_NONE: none has it */
    uint32_t pages;               /* how many have the title, or the word */
    bool is_word;                 /* it is a word of pages; it may be a title as well */
};
typedef int (*wb_index_each_completion)(void *context, const struct wb_completion *completion);

/*
 * Calls each() for titles and words in which a word begins like this folded text, the most important first, until it
 * returns something else than 0, or 200 were tried. Takes a bounded number of steps. Returns an error, or what each()
 * returned. Any thread may call it.
 */
int wb_index_complete(struct wb_index *index, struct wb_slice folded, wb_index_each_completion each, void *context);

/* The name of a site or media type by its number. WB_E_NOTFOUND after the last one. */
int wb_index_site(struct wb_index *index, uint32_t site, struct wb_slice *name_out);
int wb_index_type(struct wb_index *index, uint32_t type, struct wb_slice *name_out);

/* Docids of a site: a range of pages and a range of other URLs. */
struct wb_index_range {
    uint32_t first, end;
};

/*
 * Calls each() with the ranges of a host and its subdomains: "example.org", or just "edu". With a port, only that site.
 * Ranges of pages come first, in order, then those of other URLs.
 */
int wb_index_sites(struct wb_index *index, struct wb_slice host,
                   int (*each)(void *context, struct wb_index_range range), void *context);

/* The arcs of a document with their texts: those that come from it, or lead to it. Docids, in no particular order. */
typedef int (*wb_index_each_link)(void *context, uint32_t docid, struct wb_slice anchor);
int wb_index_links(struct wb_index *index, uint32_t docid, enum wb_webdb_direction direction, wb_index_each_link each,
                   void *context);

/* ---- kept texts ----------------------------------------------------------------------------------- */

/* Between two parts of the main text between which something is left out. */
#define WB_KEPT_GAP '\f'

/*
 * What the generation keeps of the text of a page, so that nobody has to read the page: its title, and the beginning
 * of its main text (64 KiB), with '\n' before each block. Everything is valid until the next call with the reader.
 */
struct wb_index_text {
    struct wb_slice title;
    struct wb_slice text; /* as far as it has been decoded */
    bool lines;           /* the text has no blocks: every line counts as prose */
    bool cut;             /* the page has more text than is kept */
};

/* Working memory of one thread. */
struct wb_text_reader;

int wb_text_reader_new(struct wb_text_reader **reader_out);
void wb_text_reader_free(struct wb_text_reader *reader);

/* Gets the beginning of the text of a page: 4 KiB, or all if it is shorter. Nothing is kept of other documents. */
int wb_index_text(struct wb_index *index, struct wb_text_reader *reader, uint32_t docid,
                  struct wb_index_text *text_out);

/* Gets 8 KiB more of the same page, behind the text so far. Returns 1, 0 if there is no more, or an error. */
int wb_index_text_more(struct wb_text_reader *reader, struct wb_index_text *text_inout);

/* ---- columns of users --------------------------------------------------------------------------- */

struct wb_index_column {
    char name[WB_STORE_NAME_MAX + 1];
    bool words;            /* values are words; otherwise numbers */
    const double *numbers; /* by docid; NaN: none */
    const uint32_t *codes; /* by docid: rank of the word, from 1; 0: none */
};

/* By name, with its values. WB_E_NOTFOUND. */
int wb_index_column(struct wb_index *index, struct wb_slice name, const struct wb_index_column **column_out);

/* All of them; only those that wb_index_column() was called for have values. */
size_t wb_index_columns(struct wb_index *index, const struct wb_index_column **columns_out);

/* The code of a word of a column of words; 0 if no document has it. And the word of a code. */
int wb_index_column_code(struct wb_index *index, const struct wb_index_column *column, struct wb_slice word,
                         uint32_t *code_out);
int wb_index_column_word(struct wb_index *index, const struct wb_index_column *column, uint32_t code,
                         struct wb_slice *word_out);

/* ---- building ----------------------------------------------------------------------------------- */

/* Called now and then. If it returns false, the work stops with WB_E_STOPPED and the old generation stays. */
typedef bool (*wb_index_progress)(void *context, const char *step, uint64_t done, uint64_t total);
typedef void (*wb_index_warn)(void *context, const char *message);

/* A column to set: NAME and the file with its values; path NULL removes the column. */
struct wb_index_column_source {
    struct wb_slice name;
    const char *path;
    bool rank; /* the file has seeds, and the values are the personal rank from them, computed in each build */
};

struct wb_index_options {
    const char *dir;       /* of the repository */
    const char *index_dir; /* where generations go from now on; NULL: as before */
    uint32_t edition;      /* of webdb, which has seen the snapshot's epoch in full */
    size_t memory_bytes;   /* 0: 512 MiB */
    unsigned threads;      /* 0: one for each processor */
    bool from_scratch;     /* do not build on the last generation */
    bool if_changed;       /* build nothing if the last generation is what would be built */
    bool serial;           /* load, process and flush one after the other, to measure what the pipeline gains */
    const struct wb_index_column_source *columns;
    size_t column_count;
    bool (*column_name)(struct wb_slice name); /* which facts of pages may become columns; NULL: all */
    wb_index_progress progress; /* may be NULL, as the others */
    wb_index_warn warn;
    void *context;
};

struct wb_index_result {
    struct wb_index_info info;
    bool unchanged;      /* nothing is new: info is that of the generation that is active, the rest is 0 */
    uint64_t read;       /* pages that were read; the others were taken from the last generation */
    uint64_t unknown;    /* stored pages that webdb does not know: not indexed */
    uint64_t damaged;    /* pages that could not be read */
    uint64_t html_bytes; /* of the pages that were read */
    uint64_t runs;       /* that pages were sorted into */
    uint64_t ranges;     /* of terms that were merged by themselves */
    double scan_s, links_s, merge_s, total_s;
    struct wb_postings_stat postings;
};

/*
 * Seals a snapshot and builds the next generation over it and the edition; then gives up older generations that nobody
 * uses. WB_E_BUSY if another build is at work. With if_changed, it may find that there is nothing to do.
 */
int wb_index_build(const struct wb_index_options *options, struct wb_index_result *result_out);

/* Checks everything in the active generation. Problems are passed to found. */
int wb_index_verify(const char *dir, wb_webdb_found found, void *context);

#endif
