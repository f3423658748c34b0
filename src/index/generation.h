/*
 * generation.h - the directory of a generation: the names of its files, its manifest, and an open one.
 *
 *   docids.wbb             docmap.h
 *   dictionary lists positions   of room postings
 *   out.wbg in.wbg         link graphs: successors of a docid, and the pages that link to it
 *   titles.wbt             docid, 4 bytes big-endian -> title; pages only
 *   urls.wbb               urlfile.h
 *   texts.wbb              what is kept of the texts of pages: textfile.h
 *   sites.wbt types.wbt    SURT of a site -> its ranges (sitetable.h); media type -> nothing: its rank is its number
 *   NAME.wbc               a column: wb_fact_kinds[].name
 *   prints.wbc             fingerprints and docids: prints.h
 *   completions.wbb        titles and words, for queries that are being typed: completions.h
 *   column-NAME.*          a column of a user: usercolumn.h
 *   manifest               written last
 */
#ifndef WB_INDEX_GENERATION_H
#define WB_INDEX_GENERATION_H

#include "base/vec.h"
#include "index/completions.h"
#include "index/docmap.h"
#include "index/index.h"
#include "index/textfile.h"
#include "index/urlfile.h"
#include "os/series.h"

#include <pthread.h>

#define WB_OUT_FILE "out.wbg"
#define WB_IN_FILE "in.wbg"
#define WB_TITLES_FILE "titles.wbt"
#define WB_TITLES_KIND "TITL"
#define WB_SITES_TABLE_FILE "sites.wbt"
#define WB_SITES_TABLE_KIND "GSIT"
#define WB_TYPES_FILE "types.wbt"
#define WB_TYPES_KIND "TYPE"
#define WB_GENERATION_MANIFEST "manifest"
#define WB_GENERATION_FORMAT 1

/* The columns. */
struct wb_fact_kind {
    const char *name; /* of the file, without ".wbc" */
    char kind[5];
    uint8_t bytes; /* of a value */
};
extern const struct wb_fact_kind wb_fact_kinds[WB_FACTS];

static inline bool wb_fact_is_of_pages(enum wb_fact fact)
{
    return fact >= WB_FACT_FIRST_OF_PAGES;
}

/* A column of a user, as the manifest names it. */
struct wb_manifest_column {
    char name[WB_STORE_NAME_MAX + 1];
    bool words;
    bool rank; /* numbers that each build computes from seeds */
    bool fact; /* what pages say themselves (factcolumn.h); words or not */
};

struct wb_generation_manifest {
    struct wb_index_info info;
    struct wb_store_history history; /* the policy that versions were counted by */
    uint8_t languages[256];
    size_t language_count;
    WB_VEC(struct wb_manifest_column) columns;
};

int wb_generation_write(const char *path, const struct wb_generation_manifest *manifest);
int wb_generation_read(const char *path, struct wb_generation_manifest *manifest_out);
void wb_generation_release(struct wb_generation_manifest *manifest);

/*
 * A small text with a headline, which ends with the number of its format, lines "name value", and a checksum in the
 * last line. Reading calls each() for every line between the first and the last; anything but 0 ends it, and
 * WB_E_CORRUPT becomes an error that names the file. WB_E_NOTFOUND if there is no such file, WB_E_NEWER if it has
 * another format.
 */
typedef int (*wb_sealed_line)(void *context, size_t line, struct wb_slice name, struct wb_slice value);
int wb_sealed_write(const char *path, const char *headline, uint64_t format, struct wb_slice lines);
int wb_sealed_read(const char *path, const char *headline, uint64_t format, wb_sealed_line each, void *context);

/* The holder of a generation, in the store and in webdb: "generation-7". */
#define WB_GENERATION_HOLDER "generation-"
void wb_generation_holder(uint32_t generation, char name_out[WB_STORE_NAME_MAX + 1]);

/* Opens one generation of a root. WB_E_NOTFOUND if it is gone, or a file of it. */
int wb_generation_open(const char *dir, const char *root, uint32_t number, struct wb_index **index_out);

enum { WB_INDEX_MAGIC = 0x57424958 }; /* "WBIX" */

struct wb_index {
    uint32_t magic;
    char *dir, *path;
    struct wb_file lock;
    struct wb_generation_manifest manifest;
    struct wb_docmap docmap;
    struct wb_column facts[WB_FACTS];
    bool fact_open[WB_FACTS];
    struct wb_column prints;
    bool prints_open;
    struct wb_completions completions;
    bool completions_open;
    pthread_mutex_t mutex; /* for what is opened when it is first asked for: facts, columns, texts */
    struct wb_postings *postings;
    struct wb_graph *out, *in;
    struct wb_table *titles, *sites, *types;
    struct wb_textfile texts;
    bool texts_open;
    struct wb_urlfile urls;
    struct wb_cursor *title_cursor, *site_cursor, *type_cursor;
    struct wb_webdb *webdb; /* opened when it is first needed */
    struct wb_buf text;     /* a URL or a name that was asked for */
    WB_VEC(struct wb_index_column) columns;
    struct wb_open_column {
        struct wb_column column;
        struct wb_table *table;
        struct wb_cursor *cursor;
    } * open_columns; /* one for each of columns */
};

/* Opens the fingerprints of an open generation, unless they are open, and checks them. */
int wb_generation_prints(struct wb_index *index);

/* Opens the completions of an open generation, unless they are open. */
int wb_generation_completions(struct wb_index *index);

/* Opens the kept texts of an open generation, unless they are open: without them, there are results all the same. */
int wb_generation_texts(struct wb_index *index);

/* The edition of an open generation. */
int wb_generation_webdb(struct wb_index *index, struct wb_webdb **webdb_out);

#endif
