/* help.h - help text, man page and shell completion, all from the table of commands. */
#ifndef WB_CLI_HELP_H
#define WB_CLI_HELP_H

#include "base/buf.h"
#include "cli/commands.h"

/* Each appends the whole text; 0 or WB_E_NOMEM. */
int wb_help_program(struct wb_buf *text_out);
int wb_help_command(const struct wb_command *command, struct wb_buf *text_out);
int wb_help_man(struct wb_buf *text_out);
int wb_help_completion(struct wb_buf *text_out);

#endif
