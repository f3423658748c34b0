/* cmd_export_facts.h - the part of webbase export that writes facts. */
#ifndef WB_CLI_CMD_EXPORT_FACTS_H
#define WB_CLI_CMD_EXPORT_FACTS_H

#include "cli/options.h"

int wb_cmd_export_facts(const struct wb_options *options);

#endif
