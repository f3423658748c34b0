/*
 * cdx_server.h - private to serve: the CDX API, as pywb (/cdx) and the Internet Archive (/cdx/search/cdx) speak it.
 *
 *   parameters --- cdx_params.c ---> struct cdx_query
 *   generation --- cdx_walk.c   ---> URLs, in the order of SURTs, forwards or backwards
 *   store      --- cdx_rows.c   ---> the captures of a URL, one row each --- cdx_filter.c ---> those that are wanted
 *                  api_cdx.c    ---> lines, in pieces, as the client takes them
 */
#ifndef WB_SERVE_CDX_SERVER_H
#define WB_SERVE_CDX_SERVER_H

#include "base/vec.h"
#include "serve/server.h"

enum cdx_field {
    CDX_URLKEY,
    CDX_TIMESTAMP,
    CDX_URL,
    CDX_MIME,
    CDX_STATUS,
    CDX_DIGEST,
    CDX_LENGTH,
    CDX_REDIRECT,
    CDX_FIELDS,
};

/* Name of a field; ia: as the Internet Archive calls it. */
const char *cdx_field_name(enum cdx_field field, bool ia);

/* By either name. */
bool cdx_field_find(struct wb_slice name, enum cdx_field *field_out);

/* ---- what is asked for (cdx_params.c) ------------------------------------------------------------ */

enum cdx_match { CDX_EXACT, CDX_PREFIX, CDX_HOST, CDX_DOMAIN };
enum cdx_sort { CDX_FORWARD, CDX_REVERSE, CDX_CLOSEST };
enum cdx_output { CDX_TEXT, CDX_JSON };

enum { CDX_FILTERS_MAX = 16, CDX_COLLAPSES_MAX = 8 };

struct cdx_filter {
    enum cdx_field field;
    bool not ;
    enum { CDX_CONTAINS, CDX_EQUALS, CDX_REGEX } kind;
    struct wb_slice text;
    struct cdx_regex *regex;
    bool whole; /* the expression must match the whole value, not only its beginning */
};

struct cdx_query {
    bool ia;               /* asked at /cdx/search/cdx */
    struct wb_arena texts; /* of the filters */
    struct wb_buf key;     /* normal form of the URL, of its prefix, or of its host */
    struct wb_pageid id;   /* of the URL */
    enum cdx_match match;
    int64_t from_ms, to_ms; /* both included */
    uint64_t limit;         /* UINT64_MAX: none */
    uint64_t offset;
    bool last; /* the last `limit` ones */
    enum cdx_sort sort;
    int64_t closest_ms;
    struct cdx_filter filters[CDX_FILTERS_MAX];
    size_t filter_count;
    enum cdx_field fields[CDX_FIELDS];
    size_t field_count; /* 0: all */
    enum cdx_output output;
    struct {
        enum cdx_field field;
        size_t len;
    } collapses[CDX_COLLAPSES_MAX];
    size_t collapse_count;
    bool show_pages, show_resume;
    bool paged;
    uint64_t page, page_size;
    struct wb_buf after_key; /* of the resume key: the SURT... */
    int64_t after_ms;        /* ...and time of the last row */
};

/* WB_E_INVALID names the parameter. Release the query even after an error. */
int cdx_query_read(struct wb_call *call, struct cdx_query *query_out);
void cdx_query_release(struct cdx_query *query);

/* ---- which URLs (cdx_walk.c) --------------------------------------------------------------------- */

/* Docids of the query, merged from pages and other URLs into the order of SURTs. */
struct cdx_walk {
    struct wb_index *index;
    WB_VEC(struct wb_index_range) parts[2]; /* of pages, and of other URLs: each in order */
    size_t at[2];                           /* the range that is next in each */
    uint32_t next[2];                       /* the docid in it; at[i] == count: none is left */
    bool reverse;
    uint64_t left; /* URLs that may still come */
};

int cdx_walk_begin(struct wb_index *index, const struct cdx_query *query, struct cdx_walk *walk_out);
void cdx_walk_release(struct cdx_walk *walk);

/* How many URLs there are. */
uint64_t cdx_walk_count(const struct cdx_walk *walk);

/* Leaves out the first n. */
void cdx_walk_skip(struct cdx_walk *walk, uint64_t n);

/* False at the end. */
bool cdx_walk_next(struct cdx_walk *walk, uint32_t *docid_out);

/* ---- captures (cdx_rows.c) ----------------------------------------------------------------------- */

struct cdx_row {
    int64_t time_ms;
    struct wb_slice field[CDX_FIELDS];
};

/* The captures of one URL, oldest first. */
struct cdx_rows {
    WB_VEC(struct cdx_row) rows;
    struct wb_arena texts;
};

/* The rows of a page that match the query's times and filters. Nothing is stored of it: no rows. */
int cdx_rows_read(struct wb_store *store, struct wb_pageid id, const struct cdx_query *query, struct cdx_rows *rows);
void cdx_rows_release(struct cdx_rows *rows);

/* ---- filters (cdx_filter.c) ---------------------------------------------------------------------- */

/* "[!][=|~]field:text". WB_E_INVALID names it. */
int cdx_filter_read(struct wb_slice text, bool ia, struct cdx_filter *filter_out);
void cdx_filter_release(struct cdx_filter *filter);

/* Returns 1 or 0; or WB_E_LIMIT if the expression takes too long. */
int cdx_filter_matches(const struct cdx_filter *filter, struct wb_slice value);

#endif
