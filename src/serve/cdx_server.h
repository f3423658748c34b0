/*
 * cdx_server.h - private to serve: the CDX API, as pywb (/cdx) and the Internet Archive (/cdx/search/cdx) speak it.
 *
 *   parameters --- cdx_params.c ---> struct cdx_query
 *   generation --- cdx_walk.c   ---> URLs, in the order of URL keys (url.h), forwards or backwards
 *   store      --- cdx_rows.c   ---> the captures of a key, one row each --- cdx_filter.c ---> those that are wanted
 *                  cdx_lines.c  ---> lines in the form that is asked for
 *                  api_cdx.c    ---> answers, in pieces, as the client takes them
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
    CDX_ORIG_LENGTH, /* these three with resolveRevisits only */
    CDX_ORIG_OFFSET,
    CDX_ORIG_FILENAME,
    CDX_FIELDS,
};

/* Name of a field; ia: as the Internet Archive calls it. */
const char *cdx_field_name(enum cdx_field field, bool ia);

/* By either name. Those of resolveRevisits are not found. */
bool cdx_field_find(struct wb_slice name, enum cdx_field *field_out);

/* ---- what is asked for (cdx_params.c) ------------------------------------------------------------ */

enum cdx_match { CDX_EXACT, CDX_PREFIX, CDX_HOST, CDX_DOMAIN };
enum cdx_sort { CDX_FORWARD, CDX_REVERSE, CDX_CLOSEST };
enum cdx_output { CDX_DEFAULT, CDX_CDXJ, CDX_TEXT, CDX_JSON, CDX_LINK };

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
    struct wb_buf url;     /* the normal form of the URL */
    struct wb_buf urlkey;  /* the URL key of that, or of the prefix */
    bool has_port;
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
    bool plain_fields;  /* chosen with fl, whose lines have no JSON unless an output is asked for */
    bool resolve;       /* revisits have the type of what they repeat, and its length in a field of its own */
    enum cdx_output output;
    struct {
        enum cdx_field field;
        size_t len;
    } collapses[CDX_COLLAPSES_MAX];
    size_t collapse_count;
    size_t collapse_time; /* digits of the time; rows that agree in them and in the status are one. 0: no such rule */
    bool show_pages, show_resume;
    bool paged;
    uint64_t page, page_size;
    struct wb_buf after_key; /* of the resume key: URL key... */
    uint32_t after_chunk;    /* ...group with that key... */
    int64_t after_ms;        /* ...and time of the last row... */
    uint64_t after_same;     /* ...and how many rows up to it have that time */
};

/* WB_E_INVALID names the parameter. Release the query even after an error. */
int cdx_query_read(struct wb_call *call, struct cdx_query *query_out);
void cdx_query_release(struct cdx_query *query);

/* Only the URL: "URL", "PREFIX*" or "*.HOST", and matchType. */
int cdx_query_url(struct wb_call *call, struct cdx_query *q);

/* ---- which URLs (cdx_walk.c) --------------------------------------------------------------------- */

/* A key with more URLs than this is delivered in several groups, so that the memory is bounded. */
enum { CDX_GROUP_MAX = 1000, CDX_PARTS_MAX = 3 };

/* Places in the order of URL keys. */
struct cdx_range {
    uint32_t first, end;
};

/* The URLs of the query in the order of their keys; those with equal keys come together, as a group. */
struct cdx_walk {
    struct wb_index *index;
    const uint32_t *order; /* the docid at each place */
    struct cdx_range parts[CDX_PARTS_MAX];
    size_t part_count;
    size_t at;     /* the range that is next; at >= part_count: none is left */
    uint32_t next; /* the place in it */
    bool reverse;
    uint64_t left; /* URLs that may still come */
    WB_VEC(struct wb_pageid) ids; /* of the group... */
    uint32_t chunk;               /* ...and how many groups with the same key came before it */
    struct wb_buf key, group_key; /* of the URL looked at last; of the group */
    uint32_t key_place;           /* where that URL is */
};

int cdx_walk_begin(struct wb_index *index, const struct cdx_query *query, struct cdx_walk *walk_out);
void cdx_walk_release(struct cdx_walk *walk);

/* How many URLs there are. */
uint64_t cdx_walk_count(const struct cdx_walk *walk);

/*
 * Leaves out the first URLs, and all but `count` after them. A group belongs to the page with its first URL, so that
 * its captures are in the order of time.
 */
int cdx_walk_page(struct cdx_walk *walk, uint64_t first, uint64_t count);

/* Moves to the next group. Returns 1, 0 at the end, or an error. */
int cdx_walk_next(struct cdx_walk *walk);

/* ---- captures (cdx_rows.c) ----------------------------------------------------------------------- */

struct cdx_row {
    int64_t time_ms;
    size_t number; /* among all rows, in the order in which they were read */
    struct wb_slice field[CDX_FIELDS];
};

/* The captures of URLs that have one key, oldest first. */
struct cdx_rows {
    WB_VEC(struct cdx_row) rows;
    struct wb_arena texts;
    uint64_t left_out;  /* captures that cannot be read, since the answer began */
    struct wb_buf lost; /* the message about the first of them */
};

/* Replaces the rows by those of these pages that match the query's times and filters. Not stored: no rows. */
int cdx_rows_read(struct wb_store *store, const struct wb_pageid *ids, size_t count, const struct cdx_query *query,
                  struct cdx_rows *rows);
void cdx_rows_release(struct cdx_rows *rows);

/* ---- lines (cdx_lines.c) ------------------------------------------------------------------------- */

#define CDX_JOB_MAGIC 0x5742434au

/* An answer that is being written, by one worker after the other. */
struct cdx_job {
    uint32_t magic; /* CDX_JOB_MAGIC until it is freed */
    struct cdx_query query;
    struct cdx_walk walk;
    struct wb_index *own; /* that the walk uses; NULL: the worker's */
    struct cdx_rows rows;
    struct wb_buf first; /* what was written before it was known that there is more than a piece */
    uint64_t skipped, written;
    bool begun, over;
    bool more;                             /* the limit was reached, and there is more */
    struct wb_buf last[CDX_COLLAPSES_MAX]; /* values of the row before */
    bool has_last;
    struct wb_buf last_time; /* with collapseTime: time and status of the row before */
    struct wb_buf resume;        /* of the last row that was written */
    int64_t same_ms;             /* of the row looked at last... */
    uint64_t same;               /* ...and how many rows of its group up to it have that time; 0: a new group begins */
    struct wb_buf origin;        /* output=link: where this server is */
    WB_VEC(struct wb_buf) lines; /* with limit=-N: the lines, from the last one backwards */
};

/* Whether lines are fields with blanks between them. */
bool cdx_is_plain(const struct cdx_query *query);

/* Each appends to out: what comes before the first line, a line, and what comes after the last one. */
int cdx_add_head(struct cdx_job *job, struct wb_buf *out);
int cdx_add_line(struct cdx_job *job, const struct cdx_row *row, struct wb_buf *out);
int cdx_add_foot(struct cdx_job *job, struct wb_buf *out);

/* ---- filters (cdx_filter.c) ---------------------------------------------------------------------- */

/* WB_E_INVALID: there is no such field. param: the parameter that names it. */
int cdx_field_unknown(const char *param, struct wb_slice name);

/* "[!][=|~]field:text". WB_E_INVALID names it. */
int cdx_filter_read(struct wb_slice text, bool ia, struct cdx_filter *filter_out);
void cdx_filter_release(struct cdx_filter *filter);

/* Returns 1 or 0; or WB_E_LIMIT if the expression takes too long. */
int cdx_filter_matches(const struct cdx_filter *filter, struct wb_slice value);

#endif
