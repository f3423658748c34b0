/* cmd_help.c - webbase help: prints the help of the program or of a command, the man page, or the bash completion. */
#include "base/error.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/output.h"

int wb_cmd_help(const struct wb_options *options)
{
    struct wb_buf text = WB_BUF_INIT;
    const struct wb_command *command = NULL;
    int err = 0;

    if (options->arg_count) {
        command = wb_command_find(options->args[0]);
        if (!command)
            return wb_options_usage("unknown command '%s'", options->args[0]);
    }
    if (wb_options_flag(options, "man"))
        err = wb_help_man(&text);
    else if (wb_options_flag(options, "completion"))
        err = wb_help_completion(&text);
    else
        err = command ? wb_help_command(command, &text) : wb_help_program(&text);
    if (err == 0)
        err = wb_output_write(text.ptr, text.len);
    wb_buf_release(&text);
    return err;
}
