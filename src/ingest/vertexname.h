/*
 * vertexname.h - the names of vertices in Common Crawl's graphs: a URL, or a host name with its labels reversed,
 * com.example. Used by graph_import.c and graph_export.c; docs/formats/graph.md describes the files.
 */
#ifndef WB_INGEST_VERTEXNAME_H
#define WB_INGEST_VERTEXNAME_H

#include "base/buf.h"

/*
 * Appends the name of a SURT's host, without its port: "com,example,www:8080)/path" -> "com.example.www". IP addresses
 * stay as they are.
 */
int wb_graph_host(struct wb_slice surt, struct wb_buf *name_out);

/*
 * Appends the URL of a vertex: a name that contains "://" is one, any other is a reversed host name, "com.example" ->
 * "http://example.com/". WB_E_PROTO if it is neither.
 */
int wb_graph_url(struct wb_slice name, struct wb_buf *url_out);

#endif
