/*
 * docmap.h - which URL has which docid.
 *
 * An edition numbers its URLs in the order of SURTs. A generation numbers the same URLs so that those with a page come
 * first: docids [0, pages) are the pages of its snapshot, [pages, urls) all others, each part in the order of SURTs.
 * One bit per URL says to which part it belongs; counting bits maps one number to the other (rank and select).
 *
 *   number    0  1  2  3  4  5  6
 *   bit       1  0  0  1  1  0  1
 *   docid     0  4  5  1  2  6  3
 */
#ifndef WB_INDEX_DOCMAP_H
#define WB_INDEX_DOCMAP_H

#include "index/index.h"
#include "table/table.h"

#define WB_DOCMAP_FILE "docids.wbb"
#define WB_DOCMAP_KIND "DOCM"

/* ---- writing ----------------------------------------------------------------------------------- */

/* Writes the map: bit i of pages, counted from the lowest bit of the first word, belongs to number i. */
int wb_docmap_write(const char *path, const uint64_t *bits, uint64_t urls);

/* ---- reading ----------------------------------------------------------------------------------- */

/* An open map. Any number of threads may share it. All zero is a closed one. */
struct wb_docmap {
    struct wb_blob blob;
    const char *blocks; /* inside the mapping */
    uint64_t urls, pages;
};

/* Checks all of the file. WB_E_CORRUPT names it. */
int wb_docmap_open(const char *path, struct wb_docmap *map_out);
void wb_docmap_close(struct wb_docmap *map);

/* number must be less than urls. */
bool wb_docmap_is_page(const struct wb_docmap *map, uint64_t number);
uint32_t wb_docmap_docid(const struct wb_docmap *map, uint64_t number);

/* docid must be less than urls. */
uint64_t wb_docmap_number(const struct wb_docmap *map, uint32_t docid);

#endif
