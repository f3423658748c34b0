/*
 * help.h - help text, man page and shell completion, all made from the table of commands. main.c and cmd_help.c use it.
 */
#ifndef WB_CLI_HELP_H
#define WB_CLI_HELP_H

#include "base/buf.h"
#include "cli/commands.h"

/* What the program is for, in a sentence of two lines. */
extern const char wb_help_purpose[];

/* Each of these appends the whole text; 0 or WB_E_NOMEM. */
int wb_help_program(struct wb_buf *text_out);
int wb_help_command(const struct wb_command *command, struct wb_buf *text_out);
int wb_help_man(struct wb_buf *text_out);
int wb_help_completion(struct wb_buf *text_out);

#endif
