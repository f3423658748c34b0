/*
 * ingest.h - the door of ingest: taking web archives, file trees and graphs into a repository, and writing graphs out.
 *
 *   wb_import()         archives, or a tree of files    -> pages in the store, and the journal
 *   wb_page_import      pages in memory                 -> the same
 *   wb_emulate()        pages of another repository, at a set rate -> the same
 *   wb_graph_import()   vertices and edges as text      -> pages and links of webdb
 *   wb_rows_import()    rows that `webdb pages` printed -> pages and links of webdb
 *   wb_graph_export()   webdb                           -> vertices and edges as text
 *   wb_waczpen          pages, one by one               -> a WACZ file (waczpen.h)
 *
 * Each call does the whole job: options go in, counts come out, and a sink is told what happens in between. Nothing
 * here prints, reads a command line or ends the process, so a command and a server use it in the same way. All but
 * wb_page_import look at wb_stop_requested() (os/stop.h) between two pages or lines. docs/formats/graph.md describes
 * the text files.
 *
 *   struct wb_ingest_sink sink = {.context = &log, .error = write_error};
 *   struct wb_import_options options = {.dir = "repo", .files = files, .file_count = 2, .body_max = WB_PAGE_MAX_BYTES};
 *   struct wb_import import;
 *   int err = wb_import(&options, &sink, &import);      import.pages of import.records were stored
 */
#ifndef WB_INGEST_INGEST_H
#define WB_INGEST_INGEST_H

#include "base/buf.h"
#include "ingest/waczpen.h"
#include "page/page.h"
#include "webdb/webdb.h"

/* ---- events ------------------------------------------------------------------------------------ */

/* Something in the input could not be read or used. The texts are valid during the call only. */
struct wb_ingest_error {
    const char *file;     /* the input file; for a page that the repository refused, its URL */
    uint64_t offset;      /* of the record in an archive, in bytes; 0 in other files */
    uint64_t line;        /* in a file of lines, from 1; 0 in other files */
    const char *message;
    bool fatal;           /* the rest of the file is not read, or the page is lost */
};

/* How far the work has come. */
struct wb_ingest_progress {
    const char *file;                 /* the file being read; NULL if the numbers are about all files together */
    uint64_t bytes_done, bytes_total; /* of input; bytes_total 0: unknown */
    uint64_t count;                   /* pages stored durably, or lines read */
};

/*
 * Who is told. Any callback may be NULL. All calls come from the thread that called the import. A negative result of a
 * callback ends the import with that error; wb_import() first commits what it has taken until then.
 */
struct wb_ingest_sink {
    void *context;
    int (*error)(void *context, const struct wb_ingest_error *error);
    int (*commit)(void *context, uint64_t pages); /* pages: how many of this import are durable now */
    /* Called for every page or line, so it must be cheap. */
    void (*progress)(void *context, const struct wb_ingest_progress *progress);
};

/* Appends the error as one line for people, which names the file and the place. */
int wb_ingest_error_text(const struct wb_ingest_error *error, struct wb_buf *text_out);

/* ---- pages: archives and file trees ------------------------------------------------------------ */

struct wb_import_options {
    const char *dir;               /* the repository; it is created if there is none */
    const char *const *files;      /* WARC and ARC files, or... */
    size_t file_count;
    const char *tree;              /* ...if not NULL, a directory whose files are pages below tree_url */
    struct wb_slice tree_url;      /* as wb_import_tree_url() made it */
    size_t body_max;               /* bytes of a body that are kept, up to WB_STORE_BODY_MAX */
    size_t max_links;              /* the journal gets at most the first links of a page; 0: no limit */
    bool no_journal;               /* store only: webdb will not hear of the pages */
};

/* The result of an import. */
struct wb_import {
    uint64_t files, records;
    uint64_t pages;       /* stored: new ones, and new versions of those that the repository had */
    uint64_t replaced;    /* of these, versions that became the latest of their page */
    uint64_t captures;    /* records that brought no new bytes: a further capture of a stored version */
    uint64_t older;       /* captures that are known already, or too old for the history policy */
    uint64_t revisits;    /* revisit records, whatever became of them */
    uint64_t barred;      /* kept out because they were taken down */
    uint64_t errors;      /* the sink was told about each of them */
    uint64_t unreadable;  /* files that could not be read, or not to their end */
    uint64_t damaged;     /* places of the repository that turned out to be damaged */
};

/*
 * Imports everything, committing at least once a second. If a stop is requested, it commits what was read and returns
 * 0. Bad input costs a counted error. The import fails only if the disk, the memory, the repository or the sink does.
 */
int wb_import(const struct wb_import_options *options, const struct wb_ingest_sink *sink, struct wb_import *import_out);

/*
 * Imports of pages that the caller has in memory, into a repository that exists. Several threads and processes may have
 * one each. Adding is one commit: all pages are durable when it returns 0. Each page has everything but its digests. An
 * import that has failed can only be closed. Finish before closing, unless it has failed.
 */
struct wb_page_import;
int wb_page_import_open(const char *dir, struct wb_page_import **import_out);
int wb_page_import_add(struct wb_page_import *import, const struct wb_page *pages, size_t count,
                       struct wb_import *counts_out);
int wb_page_import_finish(struct wb_page_import *import);
void wb_page_import_close(struct wb_page_import *import); /* NULL is allowed */

/* The pages of another repository, added at a set rate, as a crawler would. */
struct wb_emulate_options {
    const char *dir;    /* the repository; it is created if there is none */
    const char *source; /* the other one, which is not changed */
    double rate;        /* pages in a second, more than 0 */
    uint64_t pages;     /* how many; 0: all */
};

/*
 * Adds pages until there are no more, or a stop is requested. Each gets the time at which it is added. Pages of the
 * source that cannot be read are passed to the sink as errors. Commits several times in a second.
 */
int wb_emulate(const struct wb_emulate_options *options, const struct wb_ingest_sink *sink,
               struct wb_import *counts_out);

/* Appends the URL of a tree, with a slash at its end. WB_E_PROTO if text is not a URL, or has a query or a fragment. */
int wb_import_tree_url(const char *text, struct wb_buf *url_out);

/* ---- graphs and rows --------------------------------------------------------------------------- */

/* Memory for sorting, if nobody asks for something else. */
#define WB_INGEST_MEMORY_BYTES ((size_t)256 << 20)

/* The result of loading a graph or rows. */
struct wb_ingest_load {
    uint64_t pages;              /* vertices, or rows of pages, that were read */
    uint64_t links;              /* edges, or rows of links, that were read */
    uint64_t bad_lines;          /* the sink was told about the first few */
    uint64_t loose;              /* links that were left out because their source or target is unknown */
    uint64_t known;              /* vertices whose page had a content already; their edges start from that content */
    uint64_t unfinished;         /* files that could not be read to their end */
    struct wb_webdb_merge merge; /* what changed in webdb */
};

struct wb_graph_import_options {
    const char *dir;             /* the repository; it is created if there is none */
    const char *vertices;        /* files */
    const char *edges;           /* NULL: there are none */
    size_t memory_bytes;
};

/* webdb changes once everything was read, or not at all. WB_E_PROTO if there is no vertex in the file. */
int wb_graph_import(const struct wb_graph_import_options *options, const struct wb_ingest_sink *sink,
                    struct wb_ingest_load *load_out);

struct wb_rows_import_options {
    const char *dir;             /* the repository; it is created if there is none */
    const char *pages, *links;   /* files; either may be NULL */
    size_t memory_bytes;
};

/* webdb changes once everything was read, or not at all. WB_E_PROTO if no line of the files could be read. */
int wb_rows_import(const struct wb_rows_import_options *options, const struct wb_ingest_sink *sink,
                   struct wb_ingest_load *load_out);

struct wb_graph_export_options {
    const char *dir;
    const char *vertices, *edges; /* files to write; a name that ends in .gz is compressed */
    bool hosts;                   /* the vertices are hosts instead of pages */
    bool force;                   /* replace files that exist */
    size_t memory_bytes;
};

struct wb_graph_export {
    uint64_t vertices, edges;
    uint64_t loose;               /* links that are not edges because their target is not a known page any more */
};

/* The files appear under their names when they are complete. WB_E_NOTFOUND if there is no webdb yet. */
int wb_graph_export(const struct wb_graph_export_options *options, struct wb_graph_export *export_out);

/* ---- words of rows ----------------------------------------------------------------------------- */

/* "stored", "unchanged", ... for an enum wb_edit_outcome; NULL if there is no such outcome. */
const char *wb_rowwords_outcome(unsigned outcome);

/* The i-th flag of a page (WB_PAGE_WANTED, ...) and its word, for i from 0; NULL after the last one. */
const char *wb_rowwords_flag(size_t i, unsigned *flag_out);

#endif
