/*
 * options.h - a command line, read as the table of commands says.
 *
 * Options may stand before and after the command and between its arguments;
 * "--" ends them; "--name=value" and "--name value" are the same.
 */
#ifndef WB_CLI_OPTIONS_H
#define WB_CLI_OPTIONS_H

#include "cli/commands.h"

#include <stdint.h>

/* Beside the codes of base/error.h: the program was called wrongly; exit status 2. */
#define WB_USAGE (-100)

struct wb_options {
    const struct wb_command *command; /* NULL: none was named */
    const char *dir;                  /* of the repository */
    bool json, help, version;
    const char **args;                /* the command's own, owned; the texts are the caller's */
    size_t arg_count;
    const char **list;                /* of the option that may be given several times, owned as args are */
    size_t list_count;
    const char *values[WB_COMMAND_OPTIONS_MAX]; /* beside command->options; a flag that is given is "" */
};

/*
 * Reads argv. WB_USAGE with a message naming what is wrong; options_out->command is
 * set even then where it was known. Release it in any case.
 */
int wb_options_parse(int argc, char **argv, struct wb_options *options_out);
void wb_options_release(struct wb_options *options);

/* wb_fail() for wrong usage that the table cannot tell: returns WB_USAGE. */
int wb_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Values of the command's options by name, which must be in the table. NULL, fallback: not given. */
bool wb_options_flag(const struct wb_options *options, const char *name);
const char *wb_options_text(const struct wb_options *options, const char *name);
uint64_t wb_options_number(const struct wb_options *options, const char *name, uint64_t fallback);
/* In milliseconds. */
int64_t wb_options_duration(const struct wb_options *options, const char *name, int64_t fallback);

/* All values of an option that may be given several times. */
const char *const *wb_options_list(const struct wb_options *options, const char *name, size_t *count_out);
int64_t wb_options_time(const struct wb_options *options, const char *name, int64_t fallback);

#endif
