/*
 * manifest.h - the manifest of an edition: its counts, and how far each log of the journal has been merged into it.
 *
 * It is written last, so an edition that has a valid manifest is complete. manifest.c draws the bytes.
 */
#ifndef WB_WEBDB_MANIFEST_H
#define WB_WEBDB_MANIFEST_H

#include "base/vec.h"
#include "webdb/webdb.h"

#define WB_MANIFEST_FILE "manifest"

#define WB_WEBDB_FORMAT 1 /* of the files of an edition */

/* How much of one log of the journal is in the edition. */
struct wb_manifest_log {
    uint32_t log;  /* its number, from 1 */
    uint64_t last; /* offset of the last record that was merged; 0 if none was */
    uint64_t end;  /* where that record ends */
};

struct wb_manifest {
    struct wb_webdb_count count; /* bytes and link_bytes do not count the manifest itself */
    uint64_t rows;               /* of pages by URL, targets included */
    WB_VEC(struct wb_manifest_log) logs; /* by number */
};

/* Replaces the file at path. */
int wb_manifest_write(const char *path, const struct wb_manifest *manifest);

/* WB_E_NOTFOUND, WB_E_CORRUPT, WB_E_NEWER. After an error the manifest is empty. */
int wb_manifest_read(const char *path, struct wb_manifest *manifest_out);
void wb_manifest_release(struct wb_manifest *manifest);

#endif
