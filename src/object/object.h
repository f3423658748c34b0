/*
 * object.h - the door of object: where do bytes lie that must outlive this machine?
 *
 * An *object store* keeps objects: names with bytes, written once as a whole. There are two kinds behind this door:
 *
 *   s3://BUCKET/PREFIX   an object store that speaks S3, over HTTP (s3_*.c)
 *   file:///DIR          a directory, also on NFS (filestore.c)
 *
 * Only five requests exist, because every store has them: put, get (whole or a range), size, delete and list. There are
 * no conditional writes and no uploads in parts. A name is relative to the URL, and consists of letters, digits, '.',
 * '_',
 * '-' and '/'; no part of it is empty or begins with '.', and no object may have a name that is a folder of another's.
 * Other names are WB_E_INVALID. The prefix in the URL is taken literally.
 *
 * One place for both kinds (object.c) does what every caller needs: it repeats what failed for a passing reason, with
 * growing pauses of random length; gives up when the store has not answered for `patience_ms`; lets at most
 * `requests_max` requests run at once, however many threads there are; and counts. Whether bytes are the right ones
 * is not known here: callers have checksums.
 *
 * What is final at once: WB_E_DENIED (a wrong key, no permission, an unknown bucket: the message says what to do),
 * WB_E_NOTFOUND (the store says that there is no such object), WB_E_INVALID (a URL that is none). What was tried for
 * patience_ms: WB_E_DOWN, naming the store. WB_E_STOPPED if the process was asked to stop (os/stop.h) meanwhile, and
 * `stoppable` is set.
 *
 * Threads: all functions but open and close may be called by any number of threads at once.
 */
#ifndef WB_OBJECT_OBJECT_H
#define WB_OBJECT_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/* No object is larger. */
#define WB_OBJECT_MAX (64u << 20)
#define WB_OBJECT_NAME_MAX 128

struct wb_object_store;

struct wb_object_options {
    unsigned requests_max; /* at once; 0: 16 */
    int64_t patience_ms;   /* how long a request is repeated without an answer; 0: 30 s */
    bool stoppable;        /* a request to stop ends waiting; what the store answers at once still succeeds */
};

/* What has happened since the store was opened. */
struct wb_object_counts {
    uint64_t puts, gets, sizes, deletes, lists; /* that succeeded; of a list, each page counts */
    uint64_t bytes_put, bytes_got;
    uint64_t repeated; /* attempts that failed for a passing reason */
};

/* Whether a text is a URL of an object store. WB_E_INVALID names it, and says which URLs there are. Asks nobody. */
int wb_object_url_check(const char *url);

/*
 * Opens a store. Asks it nothing yet, but reads the keys: WB_E_DENIED says where they are looked for. options may be
 * NULL. The directory of a file:// URL is made by the first put.
 */
int wb_object_open(const char *url, const struct wb_object_options *options, struct wb_object_store **store_out);
void wb_object_close(struct wb_object_store *store);

/* The URL, for messages. It never contains a key. */
const char *wb_object_url(const struct wb_object_store *store);
void wb_object_counts(struct wb_object_store *store, struct wb_object_counts *counts_out);

/*
 * Writes an object; when it returns 0, the object is durable and every later get sees it. If an answer is lost, the
 * same bytes are put again under the same name. An object of that name is replaced.
 */
int wb_object_put(struct wb_object_store *store, const char *name, struct wb_slice bytes);

/*
 * Reads a whole object. WB_E_NOTFOUND; WB_E_LIMIT if it is longer than max. A body that was cut short is asked for
 * again.
 */
int wb_object_get(struct wb_object_store *store, const char *name, size_t max, struct wb_buf *bytes_out);

/* Reads up to len bytes (1 to WB_OBJECT_MAX) from an offset on; fewer only at the end of the object. */
int wb_object_get_range(struct wb_object_store *store, const char *name, uint64_t offset, size_t len,
                        struct wb_buf *bytes_out);

/* The length of an object. WB_E_NOTFOUND. */
int wb_object_size(struct wb_object_store *store, const char *name, uint64_t *size_out);

/* It is not an error if there is none. */
int wb_object_delete(struct wb_object_store *store, const char *name);

/*
 * Calls each() for the objects whose names begin with a prefix, in ascending order of names. A listing may be old: it
 * can lack new objects and have deleted ones. Names that no object of ours can have are left out. A non-zero return of
 * each() ends the listing and is returned. each() may use the store.
 */
typedef int (*wb_object_each)(void *context, const char *name, uint64_t size);
int wb_object_list(struct wb_object_store *store, const char *prefix, wb_object_each each, void *context);

#endif
