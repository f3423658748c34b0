/*
 * webdb_read.h - an open edition, and what the walks over pages and links share.
 *
 * The calls that get a single thing use the cursor of the handle. Every walk has its own cursors, so that any number of
 * walks can be open on one handle. A walk borrows them and gives them back: opening a cursor costs more than reading a
 * few links, and the blocks that it has cached for the last walk are often needed again.
 */
#ifndef WB_WEBDB_WEBDB_READ_H
#define WB_WEBDB_WEBDB_READ_H

#include "webdb/edition.h"

enum {
    WB_WEBDB_MAGIC = 0x57425744, /* "WBWD" */
    WB_WEBDB_SPARES = 4,
};

struct wb_webdb {
    uint32_t magic;
    char *path;               /* of the edition */
    struct wb_file lock;      /* holds the edition; not open if there was nothing to lock */
    struct wb_manifest manifest;
    struct wb_table *pages, *outlinks, *inlinks, *sites;
    struct wb_table *rules;
    struct wb_column contents, degrees;
    struct wb_column near;
    struct wb_column kinds, ids; /* empty in editions of versions 1 and 2 */
    struct wb_cursor *cursor; /* over pages */
    struct wb_webdb_spare {
        struct wb_table *table;
        struct wb_cursor *cursor; /* NULL if the place is free */
    } spares[WB_WEBDB_SPARES];    /* cursors that walks have given back */
    struct wb_url url;            /* this and the next three: reused memory */
    struct wb_buf key, surt, mem;
};

/*
 * Borrows a cursor over a table of this handle. Its position is undefined: seek first. Give it back when it is no
 * longer needed; the cursor may be NULL then.
 */
int wb_webdb_borrow(struct wb_webdb *webdb, struct wb_table *table, struct wb_cursor **cursor_out);
void wb_webdb_give_back(struct wb_webdb *webdb, struct wb_table *table, struct wb_cursor *cursor);

/* Finds the row of a URL, be it a page or a mere target. WB_E_NOTFOUND names the URL; WB_E_INVALID. */
int wb_webdb_find_row(struct wb_webdb *webdb, struct wb_slice url, struct wb_table_record *record_out);

/* Decodes a row and fills in number, inlinks, near and score. Returns 1 if it is a page, 0 if it is a mere target. */
int wb_webdb_decode_row(const struct wb_webdb *webdb, const struct wb_table_record *record, struct wb_buf *mem,
                        struct wb_webdb_page *page_out);

/* How many links lead to a page; UINT32_MAX means that many or more. Call wb_column_check() for the record first. */
uint32_t wb_webdb_degree(const struct wb_webdb *webdb, uint64_t page);

/* An entry of pages by MD5. Call wb_column_check() for it first. */
const struct wb_content *wb_webdb_content(const struct wb_webdb *webdb, uint64_t number);

#endif
