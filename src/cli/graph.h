/*
 * graph.h - webdb as a bare graph in Common Crawl's text files, both ways. docs/formats/graph.md describes them.
 *
 *   vertices   ID <TAB> NAME     a URL, or a host name reversed: com.example
 *   edges      ID <TAB> ID
 */
#ifndef WB_CLI_GRAPH_H
#define WB_CLI_GRAPH_H

#include "base/buf.h"
#include "webdb/webdb.h"

#define WB_GRAPH_MEMORY ((size_t)256 << 20)

struct wb_graph_export {
    const char *dir;             /* the repository */
    const char *vertices, *edges;
    bool hosts;                  /* vertices are hosts, not pages */
    bool force;                  /* replaces files that are there */
    size_t memory_bytes;
    /* what came of it */
    uint64_t vertex_count, edge_count;
    uint64_t loose;              /* links to what is no page any more: no edges */
};

int wb_graph_export(struct wb_graph_export *graph);

struct wb_graph_import {
    const char *dir;
    const char *vertices, *edges;
    size_t memory_bytes;
    /* what came of it */
    uint64_t vertex_count, edge_count;
    uint64_t bad_lines;          /* the first of them were told on standard error */
    uint64_t loose;              /* edges from or to an ID that no vertex has */
    uint64_t known;              /* vertices whose pages have a content already: their edges come from that */
    uint64_t unfinished;         /* files that could not be read to their end */
    struct wb_webdb_merge merge; /* of webdb */
};

/* WB_E_PROTO where nothing in the files could be read. */
int wb_graph_import(struct wb_graph_import *graph);

/* "com,example,www:8080)/path" -> "com.example.www"; addresses as they are. The SURT's host without its port, appended. */
int wb_graph_host(struct wb_slice surt, struct wb_buf *name_out);

/* The URL of a vertex: a name with "://" is one, any other a reversed host name. Appended. WB_E_PROTO where it is neither. */
int wb_graph_url(struct wb_slice name, struct wb_buf *url_out);

/* A writer for what is loaded: it stops on a signal, and leaves alone when pages are due. */
int wb_graph_writer_open(const char *dir, size_t memory_bytes, int64_t now_ms, struct wb_webdb_writer **writer_out);

#endif
