/* cmd_webdb_graph.h - the actions of webdb that read and write files. Options: vertices, edges, hosts, force, pages, links, memory. */
#ifndef WB_CLI_CMD_WEBDB_GRAPH_H
#define WB_CLI_CMD_WEBDB_GRAPH_H

#include "cli/options.h"

int wb_cmd_webdb_import(const struct wb_options *options);
int wb_cmd_webdb_export(const struct wb_options *options);

#endif
