/*
 * repository.h - opens the repository that an import writes to. An import may be the first thing that happens to a
 * repository, so each of these creates it if there is none.
 */
#ifndef WB_INGEST_REPOSITORY_H
#define WB_INGEST_REPOSITORY_H

#include "store/store.h"
#include "webdb/webdb.h"

/* The store, for writing pages. */
int wb_repository_open_store(const char *dir, struct wb_store **store_out);

/* webdb, for loading rows: the merge ends early after a signal, and leaves alone when pages are due. */
int wb_repository_open_webdb(const char *dir, size_t memory_bytes, int64_t now_ms, struct wb_webdb_writer **writer_out);

#endif
