/* backup_look.h - the halves of webbase backup that only look at a vault: --list and --verify. */
#ifndef WB_CLI_BACKUP_LOOK_H
#define WB_CLI_BACKUP_LOOK_H

#include "cli/options.h"

/* Prints the states that can be restored. */
int wb_backup_list(const struct wb_options *options, const char *url);

/* Prints what is damaged or missing. WB_E_CORRUPT if anything is. */
int wb_backup_verify(const struct wb_options *options, const char *url);

#endif
