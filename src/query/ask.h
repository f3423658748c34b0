/*
 * ask.h - the query language: text -> tree of predicates -> text. docs/query.md describes it for users.
 *
 *   title:stanford "exact phrase" -word (a OR b) inlinks:>=10
 *
 *   AND -- WORD title stanford
 *       -- PHRASE "exact phrase"
 *       -- NOT -- WORD word
 *       -- OR -- WORD a
 *             -- WORD b
 *       -- RANGE inlinks 10..
 *
 * The parser knows nothing about pages. It does not split words, fold case or read URLs: the text of a node is what
 * was typed, and who evaluates the tree analyses it.
 */
#ifndef WB_QUERY_ASK_H
#define WB_QUERY_ASK_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"

#define WB_ASK_BYTES_MAX 65536
#define WB_ASK_NODES_MAX 4096
#define WB_ASK_DEPTH_MAX 64     /* parentheses inside parentheses */
#define WB_ASK_SLOP_MAX 1000000 /* as many words of a page are indexed */
#define WB_ASK_COLUMN_BYTES_MAX 64
#define WB_ASK_NUMBER_MAX (INT64_C(1) << 53) /* whole numbers up to this one are exact as a double, too */

enum wb_ask_kind {
    WB_ASK_AND,    /* items: two or more */
    WB_ASK_OR,     /* items: two or more */
    WB_ASK_NOT,    /* items: one */
    WB_ASK_WORD,   /* text in field: a chunk as typed, which may be several words (e-mail) or none (&) */
    WB_ASK_PREFIX, /* text in field, without its * */
    WB_ASK_PHRASE, /* text in field, slop */
    WB_ASK_VALUE,  /* field has the value text: a host, a URL, a media type, a word or number in a user column */
    WB_ASK_RANGE,  /* low <= field <= high: whole numbers, or times in milliseconds */
    WB_ASK_NUMBER, /* field op number: rank, hostrank and user columns */
};

enum wb_ask_field {
    /* of WORD, PREFIX and PHRASE; ANY: bare words */
    WB_ASK_ANY,
    WB_ASK_TITLE,
    WB_ASK_HEADING,
    WB_ASK_URL,
    WB_ASK_ANCHOR,
    /* of VALUE */
    WB_ASK_SITE,
    WB_ASK_SUFFIX,
    WB_ASK_LINK,
    WB_ASK_LINKFROM,
    WB_ASK_RELATED,
    WB_ASK_TYPE,
    WB_ASK_LANG,
    WB_ASK_DUP, /* the value is always "no" */
    /* of RANGE: whole numbers */
    WB_ASK_STATUS,
    WB_ASK_INLINKS,
    WB_ASK_OUTLINKS,
    WB_ASK_SIZE,
    WB_ASK_DEPTH,
    WB_ASK_VERSIONS,
    /* of RANGE: times */
    WB_ASK_FETCHED, /* after: and before: */
    WB_ASK_CHANGED,
    WB_ASK_PUBLISHED,
    WB_ASK_MODIFIED,
    /* of NUMBER; COLUMN also of VALUE */
    WB_ASK_RANK,
    WB_ASK_HOSTRANK,
    WB_ASK_COLUMN, /* the name of the user column is in the node */
};

enum wb_ask_op { WB_ASK_EQ, WB_ASK_LT, WB_ASK_LE, WB_ASK_GT, WB_ASK_GE };

struct wb_ask_node {
    enum wb_ask_kind kind;
    enum wb_ask_field field;
    enum wb_ask_op op;            /* NUMBER */
    uint32_t slop;                /* PHRASE: how many other words may be between; 0: the words in a row */
    uint32_t count;               /* WORD, PREFIX, PHRASE: how often the query has it, 1 or more; others: 1 */
    uint32_t begin, end;          /* where it is in the query: bytes, the end is not part of it */
    struct wb_slice text, column; /* in the arena; well-formed UTF-8 without control characters */
    double number;                /* NUMBER; always finite */
    int64_t low, high;            /* RANGE; INT64_MIN and INT64_MAX: no bound on this side */
    struct wb_ask_node **items;
    size_t item_count;
};

/* A parsed query. */
struct wb_ask {
    struct wb_slice text;     /* the query; each byte that is not text became a blank, so that offsets are the same */
    struct wb_ask_node *root; /* NULL if parsing failed */
    size_t node_count;        /* as parsed */
    size_t bad_at;            /* if parsing failed with WB_E_INVALID: where, in bytes */
};

struct wb_ask_options {
    /* Whether there is a user column of that name; NULL: there are none. */
    bool (*has_column)(void *context, struct wb_slice name);
    void *context;
};

/*
 * Parses a query. The tree is as written: parentheses are gone, but a group in a group stays one. WB_E_INVALID with a
 * message that says what is wrong "at character N", and ask_out->bad_at; WB_E_NOMEM. The tree lives as long as the
 * arena and does not need `text` any more.
 */
int wb_ask_parse(struct wb_slice text, const struct wb_ask_options *options, struct wb_arena *arena,
                 struct wb_ask *ask_out);

/*
 * Simplifies the tree in place: groups in groups of the same kind become one, a double negation disappears, equal
 * leaves of a group become one whose count is the sum of theirs. Finds the same pages. The only error is WB_E_NOMEM.
 */
int wb_ask_simplify(struct wb_ask *ask, struct wb_arena *arena);

/*
 * Appends the canonical text of a tree: parsing it gives the same tree, and simplifying it too if the tree was
 * simplified. The only error is WB_E_NOMEM.
 */
int wb_ask_print(const struct wb_ask_node *node, struct wb_buf *text_out);

/* A test seam. Whether two trees are the same, wherever their parts are in the query. */
bool wb_ask_equal(const struct wb_ask_node *a, const struct wb_ask_node *b);

/*
 * Appends two lines for a terminal of so many columns: the query, or the part of it that is around byte `at`, and a ^
 * below that byte. What a terminal cannot show is replaced. The only error is WB_E_NOMEM.
 */
int wb_ask_point(struct wb_slice text, size_t at, size_t columns, struct wb_buf *lines_out);

/* ---- names and numbers ---------------------------------------------------------------------------------------- */

/* Whether the language has a field of that name. */
bool wb_ask_is_field(struct wb_slice name);

/* The name of a field; "after" for WB_ASK_FETCHED, "" for WB_ASK_ANY and WB_ASK_COLUMN. */
const char *wb_ask_field_name(enum wb_ask_field field);

/*
 * 0 if a user column may have that name, or WB_E_INVALID with a message that names it: letters, digits, _ and -, of
 * which the first is a letter, and not the name of a field, of a sort key or of a fact that `export` writes.
 */
int wb_ask_check_column(struct wb_slice name);

/* What results are sorted by. */
struct wb_ask_sort {
    enum wb_ask_field field; /* WB_ASK_ANY: score; WB_ASK_FETCHED: date; WB_ASK_COLUMN: the column named in column */
    bool reverse;            /* it was written with a - */
    struct wb_slice column;  /* part of the text that was parsed */
};

/*
 * Reads [-]score, rank, hostrank, date, url, published, modified, changed, size, inlinks, outlinks, depth, versions, or
 * a user column. WB_E_INVALID with a message for anything else.
 */
int wb_ask_sort_parse(struct wb_slice text, const struct wb_ask_options *options, struct wb_ask_sort *sort_out);

#endif
