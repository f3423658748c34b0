/*
 * prints.h - the fingerprints of pages in order, so that those near a given one are found without looking at all.
 *
 *   prints.wbc     one record for each page that has a fingerprint: the SimHash, 8 bytes, and the docid, 4 bytes, both
 *                  little-endian, in ascending order of both
 */
#ifndef WB_INDEX_PRINTS_H
#define WB_INDEX_PRINTS_H

#include "index/generation.h"

#define WB_PRINTS_FILE "prints.wbc"
#define WB_PRINTS_KIND "GPRI"
#define WB_PRINT_BYTES 12

struct wb_build;

/* Writes the file, once there are docids. */
int wb_prints_write(struct wb_build *build);

/*
 * Calls each() for the records of the array whose fingerprints differ from `print` in at most `bits` bits (see
 * wb_index_near() for what it returns).
 */
int wb_prints_near(const char *records, uint64_t count, uint64_t print, unsigned bits, wb_index_each_near each,
                   void *context);

/* The first record that is out of order or does not belong to the page, and what is wrong; NULL: none is. */
const char *wb_prints_check(const char *records, uint64_t count, const uint64_t *prints, uint64_t pages,
                            uint64_t *record_out);

#endif
