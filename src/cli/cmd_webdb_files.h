/* cmd_webdb_files.h - the actions of webbase webdb that read and write files. cmd_webdb.c has them in its table. */
#ifndef WB_CLI_CMD_WEBDB_FILES_H
#define WB_CLI_CMD_WEBDB_FILES_H

#include "cli/options.h"

int wb_cmd_webdb_import(const struct wb_options *options);
int wb_cmd_webdb_export(const struct wb_options *options);

#endif
