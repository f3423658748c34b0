/* help.c - the table of commands as text for a terminal. */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

static int add_option(const struct wb_option *option, struct wb_buf *out)
{
    char left[64];
    size_t used = 0;

    if (option->letter)
        used = (size_t)snprintf(left, sizeof left, "-%c, ", option->letter);
    snprintf(left + used, sizeof left - used, "--%s%s%s", option->name, option->arg ? " " : "", option->arg ? option->arg : "");
    /* A name that fills its column has the words on a line of their own. */
    return wb_buf_printf(out, strlen(left) > 22 ? "  %s\n                          %s\n" : "  %-22s  %s\n", left, option->help);
}

static int add_options(const char *title, const struct wb_option *options, struct wb_buf *out)
{
    if (!options->name)
        return 0;
    int err = wb_buf_printf(out, "\n%s\n", title);
    for (; err == 0 && options->name; options++)
        err = add_option(options, out);
    return err;
}

int wb_help_program(struct wb_buf *text_out)
{
    int err = wb_buf_append_str(text_out, "Usage: webbase [-r DIR] COMMAND [...]\n\n"
                                          "Keeps a private copy of a part of the web: takes web archives in, keeps every page\n"
                                          "safely and compactly, gives any page back by URL, writes archives out.\n\n"
                                          "Commands:\n");

    for (const struct wb_command *c = wb_commands; err == 0 && c->name; c++)
        err = wb_buf_printf(text_out, "  %-10s %s\n", c->name, c->summary);
    if (err == 0)
        err = add_options("Options:", wb_common_options, text_out);
    if (err == 0)
        err = wb_buf_append_str(text_out, "\n'webbase COMMAND --help' says more about a command.\n"
                                          "Exit status: 0 done, 1 could not, 2 called wrongly.\n");
    return err;
}

int wb_help_command(const struct wb_command *command, struct wb_buf *text_out)
{
    int err = wb_buf_printf(text_out, "Usage: webbase [-r DIR] %s%s%s\n\n%c%s.\n\n%s\n", command->name,
                            *command->usage ? " " : "", command->usage, command->summary[0] - 'a' + 'A',
                            command->summary + 1, command->description);

    if (err == 0)
        err = add_options("Options:", command->options, text_out);
    return err < 0 ? err : add_options("Options of every command:", wb_common_options, text_out);
}
