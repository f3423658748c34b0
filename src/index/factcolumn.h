/*
 * factcolumn.h - columns of facts: what modules say about pages ("width" is "640"), for searches and tables.
 *
 * They are written like the columns of users (usercolumn.h), with the values by page id beside them, and the manifest
 * says that nobody brought them: each build makes them from the pages that it reads and the last generation. A column
 * has numbers if all its values are, otherwise words. A column that a user brings under the same name takes its place.
 */
#ifndef WB_INDEX_FACTCOLUMN_H
#define WB_INDEX_FACTCOLUMN_H

#include "base/arena.h"
#include "base/vec.h"
#include "extract/extract.h"
#include "page/page.h"

struct wb_build;
struct wb_sorter;

#define WB_FACT_COLUMNS_MAX 64u /* of a generation: those that most pages have */

/* A name that pages have given a value to. */
struct wb_factname {
    struct wb_slice name; /* in the arena */
    uint64_t pages;
    bool words;
};

/* What was gathered; all zero: nothing. */
struct wb_factcolumns {
    WB_VEC(struct wb_factname) names;
    struct wb_arena arena;
    struct wb_sorter *values; /* name, zero byte, page id -> value; NULL: no page has a fact */
    struct wb_buf key;
};

/* Takes the facts of a page that was read. The caller has the mutex of the build. */
int wb_factcolumns_add(struct wb_build *build, uint32_t docid, const struct wb_extract_fact *facts, size_t count);

/*
 * Adds the facts of pages that were not read, writes the values by page id, and names the columns in the manifest:
 * wb_usercolumns_write() does the rest.
 */
int wb_factcolumns_write(struct wb_build *build);
void wb_factcolumns_release(struct wb_factcolumns *columns);

#endif
