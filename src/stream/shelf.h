/*
 * shelf.h - private to stream: what the repository keeps for streams because it is too large for a token. These are
 * selections with many sites, and lists of pages. Files are named by the hash of what is in them:
 *
 *   DIR/streams/shelf/0123456789abcdef       docs/formats/stream.md
 *
 * A file has a moment until which it is kept; every use moves that on. Nothing depends on it but resuming.
 */
#ifndef WB_STREAM_SHELF_H
#define WB_STREAM_SHELF_H

#include "base/buf.h"

/* A file that is not complete after this time was left by a crash. */
#define WB_SHELF_CRASH_MS (60 * 60 * 1000)

/* Puts bytes on the shelf until keep_ms, or keeps them longer if they are there already. */
int wb_shelf_put(const char *dir, struct wb_slice bytes, int64_t keep_ms, uint64_t *hash_out);

/* The hash that wb_shelf_put() would give. */
uint64_t wb_shelf_hash(struct wb_slice bytes);

/* WB_E_NOTFOUND if they are not there (any more), WB_E_CORRUPT if they are damaged, WB_E_NEWER. */
int wb_shelf_get(const char *dir, uint64_t hash, struct wb_buf *bytes_out);

/*
 * The same without reading it into memory. The bytes stay valid when the file is swept. Something empty is not worth a
 * file: WB_E_CORRUPT.
 */
struct wb_shelf_map {
    void *memory; /* NULL: nothing */
    size_t size;
    struct wb_slice bytes;
};
int wb_shelf_map(const char *dir, uint64_t hash, struct wb_shelf_map *map_out);
void wb_shelf_unmap(struct wb_shelf_map *map);

/* Removes what is no longer kept. Errors are ignored: the next sweep tries again. */
void wb_shelf_sweep(const char *dir, int64_t now_ms);

#endif
