/*
 * webdb_rows.h - prints pages, links and sites of webdb: as JSON, as tab-separated columns below a header line, or as
 * words. cmd_webdb.c uses it. Rows are collected in a buffer and written in large pieces.
 */
#ifndef WB_CLI_WEBDB_ROWS_H
#define WB_CLI_WEBDB_ROWS_H

#include "base/buf.h"
#include "webdb/webdb.h"

enum wb_webdb_rows_form { WB_WEBDB_ROWS_WORDS, WB_WEBDB_ROWS_JSON, WB_WEBDB_ROWS_TSV };
enum wb_webdb_rows_kind { WB_WEBDB_ROWS_PAGES, WB_WEBDB_ROWS_LINKS, WB_WEBDB_ROWS_SITES, WB_WEBDB_ROWS_COUNTS };

/* What the store knows about the versions of a page. */
struct wb_webdb_rows_past {
    uint64_t versions, captures; /* that can be read */
    int64_t since_ms;            /* when the latest version was first seen; 0: there is none */
    int64_t gone_ms;             /* since when the page has been gone; 0: it is not */
};

/* What the index knows about a page. */
struct wb_webdb_rows_rank {
    bool known;  /* there is a generation, and it has the page */
    double rank; /* PageRank */
};

struct wb_webdb_rows {
    enum wb_webdb_rows_form form;
    enum wb_webdb_rows_kind kind;
    bool whole;           /* words: each fact has its own line, instead of one line for a page */
    bool headed;          /* the header line was written */
    struct wb_slice near; /* the URL of the page that this page is a near duplicate of; empty: there is none */
    const struct wb_webdb_rows_past *past; /* of the page, for JSON and words; NULL: nobody has asked */
    const struct wb_webdb_rows_rank *rank; /* the same */
    struct wb_buf out;
};

/* site: what is known about the site, for the rate of change; NULL: nothing. */
int wb_webdb_rows_page(struct wb_webdb_rows *rows, const struct wb_webdb_page *page, const struct wb_webdb_site *site);
int wb_webdb_rows_link(struct wb_webdb_rows *rows, const struct wb_webdb_link *link);
int wb_webdb_rows_site(struct wb_webdb_rows *rows, const struct wb_webdb_site *site);
int wb_webdb_rows_count(struct wb_webdb_rows *rows, const struct wb_webdb_count *count);

/* Writes what is left in the buffer. A table without rows still has its header line. */
int wb_webdb_rows_end(struct wb_webdb_rows *rows);
void wb_webdb_rows_release(struct wb_webdb_rows *rows);

#endif
