/* command_options.h - the options of each command, for its row in the table of commands (commands.c). */
#ifndef WB_CLI_COMMAND_OPTIONS_H
#define WB_CLI_COMMAND_OPTIONS_H

#include "cli/commands.h"

/* In each array, the last option has no name. */
extern const struct wb_option wb_init_options[];
extern const struct wb_option wb_convert_options[];
extern const struct wb_option wb_backup_options[];
extern const struct wb_option wb_restore_options[];
extern const struct wb_option wb_emulate_options[];
extern const struct wb_option wb_cluster_options[];
extern const struct wb_option wb_import_options[];
extern const struct wb_option wb_export_options[];
extern const struct wb_option wb_get_options[];
extern const struct wb_option wb_snapshot_options[];
extern const struct wb_option wb_nodes_options[];
extern const struct wb_option wb_crawl_options[];
extern const struct wb_option wb_webdb_options[];
extern const struct wb_option wb_index_options[];
extern const struct wb_option wb_links_options[];
extern const struct wb_option wb_search_options[];
extern const struct wb_option wb_similar_options[];
extern const struct wb_option wb_serve_options[];
extern const struct wb_option wb_stream_options[];
extern const struct wb_option wb_update_options[];
extern const struct wb_option wb_generate_options[];
extern const struct wb_option wb_expunge_options[];
extern const struct wb_option wb_run_options[];
extern const struct wb_option wb_why_options[];
extern const struct wb_option wb_graph_options[];
extern const struct wb_option wb_url_options[];
extern const struct wb_option wb_robots_options[];
extern const struct wb_option wb_advise_options[];
extern const struct wb_option wb_web_options[];
extern const struct wb_option wb_extract_options[];
extern const struct wb_option wb_help_options[];
extern const struct wb_option wb_no_options[];

#endif
