/*
 * import_item.h - one thing that a source has found: a page, a revisit, an error, or the end of a file. Items travel
 * from the source (import_source.c makes them) through the queue and the journal to the importer, in lists.
 */
#ifndef WB_INGEST_IMPORT_ITEM_H
#define WB_INGEST_IMPORT_ITEM_H

#include "page/page.h"

enum wb_import_item_kind {
    WB_IMPORT_PAGE,
    WB_IMPORT_REVISIT,
    WB_IMPORT_ERROR,  /* something could not be read */
    WB_IMPORT_FILE,   /* a file was read to its end */
};

/* What a revisit record says about the original: the page that it is a revisit of. */
struct wb_import_original {
    bool known_profile, not_modified;
    bool has_sha1;
    bool elsewhere;         /* the record names another URL as the original; id is the id of that URL */
    struct wb_pageid id;
    uint8_t sha1[WB_SHA1_BYTES];
    int64_t time_ms;        /* when the original was fetched; 0: the record does not say */
};

/* One thing that the reader found. It owns everything its slices and texts point to. */
struct wb_import_item {
    struct wb_import_item *next; /* lists are handed on as a whole and walked once, so one link is enough */
    enum wb_import_item_kind kind;
    size_t bytes;            /* memory that it holds */
    uint64_t records;        /* records read since the previous item, including its own */

    /*
     * A page or a revisit. A revisit sets url, key, id and time; and head, status, type and charset if it has a head.
     */
    struct wb_page page;
    struct wb_buf body;      /* holds the page's body if that was moved here instead of copied */
    bool barred;             /* the page was taken down: it is counted, but neither journaled nor stored */
    struct wb_import_original original; /* of a revisit only */

    /* An error. */
    const char *file;
    uint64_t offset;
    const char *message;
    bool fatal;              /* the rest of the file is not read */

    size_t used;             /* bytes of text that are in use */
    char text[];
};

/* An item with room for this many bytes of text; NULL if there is no memory. */
struct wb_import_item *wb_import_item_new(enum wb_import_item_kind kind, size_t text_bytes);
void wb_import_item_free(struct wb_import_item *item);

/* Copies text into the item, which must have room for it, and returns the copy. */
struct wb_slice wb_import_item_copy(struct wb_import_item *item, struct wb_slice text);

#endif
