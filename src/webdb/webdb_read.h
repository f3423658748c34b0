/*
 * webdb_read.h - an open edition, and what walks over pages and links share.
 *
 * A handle's own cursor serves the calls that get one thing; every walk has cursors of its own, so that any number of them
 * can be open on one handle. A short walk borrows them: opening one costs more than reading a few links, and blocks that were
 * unpacked for the walk before are often needed again.
 */
#ifndef WB_WEBDB_WEBDB_READ_H
#define WB_WEBDB_WEBDB_READ_H

#include "webdb/edition.h"

enum { WB_WEBDB_SPARES = 4 };

struct wb_webdb {
    char *path;               /* of the edition; its files may have lost their names since */
    struct wb_manifest manifest;
    struct wb_table *pages, *outlinks, *inlinks, *sites;
    struct wb_table *rules;   /* NULL: an edition of version 1 */
    struct wb_column contents, degrees;
    struct wb_column near;    /* empty: an edition of version 1 */
    struct wb_cursor *cursor; /* over pages */
    struct wb_webdb_spare {
        struct wb_table *table;
        struct wb_cursor *cursor; /* NULL: none */
    } spares[WB_WEBDB_SPARES];    /* given back by walks */
    struct wb_url url;
    struct wb_buf key, surt, mem;
};

/* The files of an edition of this number. WB_E_NOTFOUND where its directory, or a file, is not there. */
int wb_webdb_open_number(const char *dir, uint32_t number, struct wb_webdb **webdb_out);

/* A cursor that stands anywhere: seek first. Given back (NULL is allowed) it waits for the next one who needs one over this table. */
int wb_webdb_borrow(struct wb_webdb *webdb, struct wb_table *table, struct wb_cursor **cursor_out);
void wb_webdb_give_back(struct wb_webdb *webdb, struct wb_table *table, struct wb_cursor *cursor);

/* The row of a URL, whether it is a page or a mere target. WB_E_NOTFOUND, naming the URL; WB_E_INVALID. */
int wb_webdb_find_row(struct wb_webdb *webdb, struct wb_slice url, struct wb_table_record *record_out);

/* What a row says, with number, inlinks and score. 1; 0 where it is a mere target: then too page_out is filled. */
int wb_webdb_decode_row(const struct wb_webdb *webdb, const struct wb_table_record *record, struct wb_buf *mem, struct wb_webdb_page *page_out);

/* The links to a page, without those beyond UINT32_MAX. */
/* Of records that were checked: wb_column_check(). */
uint32_t wb_webdb_degree(const struct wb_webdb *webdb, uint64_t page);

const struct wb_content *wb_webdb_content(const struct wb_webdb *webdb, uint64_t number);

#endif
