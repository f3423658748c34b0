/*
 * objectkind.h - what a kind of object store must be able to do. Used inside this room only.
 *
 * Each function makes one attempt, and is called by many threads at once. WB_E_DOWN means that it failed for a
 * passing reason: object.c waits and calls it again. All other errors are final.
 */
#ifndef WB_OBJECT_OBJECTKIND_H
#define WB_OBJECT_OBJECTKIND_H

#include "base/vec.h"
#include "object/object.h"
#include "object/objecturl.h"

/* One attempt: what it may take, and how it went. */
struct wb_object_try {
    bool stoppable;
    int64_t stall_ms;   /* it fails if nothing moves for so long */
    int64_t silence_ms; /* out, for WB_E_DOWN: for how long nothing had moved when it failed; -1: all the time */
};

/* What is read of an object: all of it, WB_E_LIMIT if that is more than len bytes; or part of it, up to len bytes. */
struct wb_object_span {
    bool whole;
    uint64_t offset;
    size_t len;
};

struct wb_object_entry {
    size_t name_at; /* in names; ends with NUL */
    uint64_t size;
};

/* A part of a listing, in ascending order of names. */
struct wb_object_page {
    struct wb_buf names;
    WB_VEC(struct wb_object_entry) entries;
    bool more;           /* another page follows */
    struct wb_buf token; /* where it begins, for the kind; kept from one page to the next */
};

struct wb_object_kind {
    /* Reads what is needed besides the URL, but asks no store. */
    int (*open)(const struct wb_object_url *url, void **place_out);
    void (*close)(void *place); /* NULL is fine */
    int (*put)(void *place, const char *name, struct wb_slice bytes, struct wb_object_try *try);
    int (*get)(void *place, const char *name, const struct wb_object_span *span, struct wb_buf *bytes_out,
               struct wb_object_try *try);
    int (*size)(void *place, const char *name, uint64_t *size_out, struct wb_object_try *try);
    int (*remove)(void *place, const char *name, struct wb_object_try *try);
    /*
     * Lists names with a prefix from page->token on, and sets the token for the next page. Fills the page, which is
     * empty but for the token; after WB_E_DOWN, the token is as it was.
     */
    int (*list)(void *place, const char *prefix, struct wb_object_page *page, struct wb_object_try *try);
};

extern const struct wb_object_kind wb_object_files, wb_object_s3;

/* A test seam: called when a pause between two attempts begins, with its length. It may move the clock. */
extern void (*wb_object_pausing)(int64_t length_ms);

/* Appends an entry. */
int wb_object_page_add(struct wb_object_page *page, const char *name, uint64_t size);

/* Whether a name may be given to an object: WB_OBJECT_NAME_MAX characters, none of its parts hidden or empty. */
bool wb_object_name_valid(const char *name);

#endif
