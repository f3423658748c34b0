/* help.c - prints the table of commands as text for a terminal. */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

const char wb_help_purpose[] =
    "Keeps a private copy of a part of the web: crawls sites politely, imports and exports web\n"
    "archives, stores every page safely and compactly, and finds any page by its URL.";

enum {
    WIDTH = 88,         /* of a line of help, like the descriptions in commands.c */
    NAME_COLUMNS = 22,  /* a name that is longer has a line to itself */
    HELP_COLUMN = 2 + NAME_COLUMNS + 2,
};

/* Appends words, broken into lines of at most WIDTH columns that start at HELP_COLUMN. */
static int add_words(const char *words, struct wb_buf *out)
{
    size_t column = HELP_COLUMN;
    int err = 0;

    while (err == 0 && *words) {
        size_t len = strcspn(words, " ");
        bool first = column == HELP_COLUMN;
        if (!first && column + 1 + len > WIDTH) {
            err = wb_buf_printf(out, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
            first = true;
        }
        if (err == 0 && !first)
            err = wb_buf_append_char(out, ' ');
        if (err == 0)
            err = wb_buf_append(out, words, len);
        column += len + !first;
        words += len + strspn(words + len, " ");
    }
    return err < 0 ? err : wb_buf_append_char(out, '\n');
}

static int add_option(const struct wb_option *option, struct wb_buf *out)
{
    char name[64];
    size_t used = 0;

    if (option->letter)
        used = (size_t)snprintf(name, sizeof name, "-%c, ", option->letter);
    snprintf(name + used, sizeof name - used, "--%s%s%s", option->name, option->arg ? " " : "",
             option->arg ? option->arg : "");
    int err = strlen(name) > NAME_COLUMNS ? wb_buf_printf(out, "  %s\n%*s", name, HELP_COLUMN, "")
                                          : wb_buf_printf(out, "  %-*s  ", NAME_COLUMNS, name);
    return err < 0 ? err : add_words(option->help, out);
}

/* Nothing, not even the title, if there are no options. */
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
    int err = wb_buf_printf(text_out, "Usage: webbase [-r DIR] COMMAND [...]\n\n%s\n\nCommands:\n", wb_help_purpose);

    for (const struct wb_command *c = wb_commands; err == 0 && c->name; c++)
        err = wb_buf_printf(text_out, "  %-10s %s\n", c->name, c->summary);
    if (err == 0)
        err = add_options("Options:", wb_common_options, text_out);
    if (err == 0)
        err = wb_buf_append_str(text_out, "\n'webbase COMMAND --help' explains a command.\n"
                                          "Exit status: 0 success, 1 failure, 2 wrong usage.\n");
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
