/* manpage.c - prints the table of commands as the man page webbase(1), in man(7) macros. */
#include "cli/help.h"

#include <string.h>

/* Appends one line of text, escaped so that troff takes nothing in it for a request or an escape. */
static int add_text(const char *text, size_t len, struct wb_buf *out)
{
    int err = 0;

    if (len && (text[0] == '.' || text[0] == '\''))
        err = wb_buf_append_str(out, "\\&");
    for (size_t i = 0; err == 0 && i < len; i++) {
        if (text[i] == '\\')
            err = wb_buf_append_str(out, "\\e");
        else if (text[i] == '-')
            err = wb_buf_append_str(out, "\\-");
        else
            err = wb_buf_append_char(out, text[i]);
    }
    return err;
}

static int add_string(const char *text, struct wb_buf *out)
{
    return add_text(text, strlen(text), out);
}

/* Appends paragraphs; lines that start with two blanks are printed as they are. */
static int add_description(const char *text, struct wb_buf *out)
{
    bool shown = false;
    int err = 0;

    while (err == 0 && *text) {
        size_t len = strcspn(text, "\n");
        bool show = len > 2 && text[0] == ' ' && text[1] == ' ';
        if (show != shown)
            err = wb_buf_append_str(out, show ? ".nf\n" : ".fi\n");
        shown = show;
        if (err == 0)
            err = len ? add_text(text, len, out) : wb_buf_append_str(out, ".IP");
        if (err == 0)
            err = wb_buf_append_char(out, '\n');
        text += len + (text[len] == '\n');
    }
    return err == 0 && shown ? wb_buf_append_str(out, ".fi\n") : err;
}

static int add_option(const struct wb_option *option, struct wb_buf *out)
{
    int err = wb_buf_append_str(out, ".TP\n\\fB");

    if (err == 0 && option->letter)
        err = wb_buf_printf(out, "\\-%c\\fR, \\fB", option->letter);
    if (err == 0)
        err = wb_buf_append_str(out, "\\-\\-");
    if (err == 0)
        err = add_string(option->name, out);
    if (err == 0)
        err = wb_buf_append_str(out, "\\fR");
    if (err == 0 && option->arg) {
        err = wb_buf_append_str(out, " \\fI");
        if (err == 0)
            err = add_string(option->arg, out);
        if (err == 0)
            err = wb_buf_append_str(out, "\\fR");
    }
    if (err == 0)
        err = wb_buf_append_char(out, '\n');
    if (err == 0)
        err = add_string(option->help, out);
    return err < 0 ? err : wb_buf_append_char(out, '\n');
}

static int add_options(const struct wb_option *options, struct wb_buf *out)
{
    int err = 0;

    for (; err == 0 && options->name; options++)
        err = add_option(options, out);
    return err;
}

/* Appends a command with its description, and its options indented below it. */
static int add_command(const struct wb_command *command, struct wb_buf *out)
{
    int err = wb_buf_printf(out, ".TP\n\\fB%s\\fR ", command->name);

    if (err == 0)
        err = add_string(command->usage, out);
    if (err == 0)
        err = wb_buf_append_char(out, '\n');
    if (err == 0)
        err = add_description(command->description, out);
    if (err == 0 && command->options->name) {
        err = wb_buf_append_str(out, ".RS\n");
        if (err == 0)
            err = add_options(command->options, out);
        if (err == 0)
            err = wb_buf_append_str(out, ".RE\n");
    }
    return err;
}

int wb_help_man(struct wb_buf *text_out)
{
    int err = wb_buf_append_str(text_out,
        ".TH WEBBASE 1 \"\" \"webbase " WB_VERSION "\" \"User Commands\"\n"
        ".SH NAME\nwebbase \\- a repository for slices of the web\n"
        ".SH SYNOPSIS\n.B webbase\n[\\fB\\-r\\fR \\fIDIR\\fR] \\fICOMMAND\\fR [...]\n"
        ".SH DESCRIPTION\n");

    if (err == 0)
        err = wb_buf_append_str(text_out, wb_help_purpose);
    if (err == 0)
        err = wb_buf_append_str(text_out,
                                "\n.SH OPTIONS\nEvery command takes these options. Options may be anywhere on "
                                          "the command line; \\fB\\-\\-\\fR ends them.\n");
    if (err == 0)
        err = add_options(wb_common_options, text_out);
    if (err == 0)
        err = wb_buf_append_str(text_out, ".SH COMMANDS\n");
    for (const struct wb_command *c = wb_commands; err == 0 && c->name; c++)
        err = add_command(c, text_out);
    if (err == 0)
        err = wb_buf_append_str(text_out,
            ".SH EXIT STATUS\n0 success; 1 failure, explained by a message on standard error; 2 wrong usage.\n"
            ".SH ENVIRONMENT\n.TP\n.B WEBBASE_REPO\nthe repository, unless \\-r is given\n"
            ".SH FILES\n.TP\n.I ./webbase\\-data\nthe repository, unless \\-r is given or WEBBASE_REPO is set\n");
    return err;
}
