/*
 * main.c - finds the command that the command line names, runs it, and turns its result into the exit status: 0
 * success, 1 failure, 2 wrong usage. Error messages of commands are printed here and nowhere else.
 */
#include "base/error.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/module_args.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/secret_args.h"
#include "guest/guest.h"
#include "os/limits.h"

#include <inttypes.h>
#include <stdio.h>

static int show_help(const struct wb_command *command)
{
    struct wb_buf text = WB_BUF_INIT;

    int err = command ? wb_help_command(command, &text) : wb_help_program(&text);
    if (err == 0)
        err = wb_output_write(text.ptr, text.len);
    wb_buf_release(&text);
    return err;
}

static int run(const struct wb_options *options)
{
    if (options->help)
        return show_help(options->command);
    if (options->version)
        return wb_output_printf("webbase %s\n", WB_VERSION);
    int err = wb_module_args_begin(options);
    if (err < 0)
        return err;
    int result = options->command->run(options);
    struct wb_error_copy said;
    wb_error_save(result, &said);
    err = wb_module_args_end(options);
    if (result >= 0)
        return err < 0 ? err : result;
    return wb_error_restore(&said);
}

/* Reports what went wrong, if the command has not done so, and returns the exit status. */
static int exit_status(int result, const struct wb_command *command)
{
    wb_progress_clear();
    if (result >= 0)
        return result;
    if (result == WB_USAGE) {
        wb_report("%s", wb_error_message());
        fprintf(stderr, "Try 'webbase %s%s--help'.\n", command ? command->name : "", command ? " " : "");
        return 2;
    }
    uint64_t memory = result == WB_E_NOMEM ? wb_limits_memory() : 0;
    if (memory)
        wb_report("%s (ulimit -v allows this process %" PRIu64 " MB)", wb_error_message(), memory / 1000000);
    else if (!wb_output_gone())
        wb_report("%s", wb_error_message());
    return 1;
}

int main(int argc, char **argv)
{
    struct wb_options options = {0};

    if (argc > 0 && strcmp(argv[0], WB_GUEST_NAME) == 0)
        return wb_guest_main(argc, argv);
    wb_guest_program("/proc/self/exe");
    wb_limits_prepare();
    int result = wb_secret_args_hide(argc, argv);
    if (result == 0)
        result = wb_options_parse(argc, argv, &options);
    if (result == 0)
        result = run(&options);
    if (wb_output_flush() < 0 && result == 0)
        result = WB_E_IO;
    int status = exit_status(result, options.command);
    wb_options_release(&options);
    return status;
}
