/*
 * options.h - a command line, read according to the table of commands (commands.h). Every command gets one.
 *
 * Options may come before and after the command and between its arguments; "--" ends them; "--name=value" and
 * "--name value" mean the same.
 */
#ifndef WB_CLI_OPTIONS_H
#define WB_CLI_OPTIONS_H

#include "cli/commands.h"

#include <stdint.h>

/* An error besides those of base/error.h: the program was called wrongly. The exit status is 2. */
#define WB_USAGE (-100)

struct wb_options {
    const struct wb_command *command; /* NULL: none was named */
    const char *dir;                  /* the repository */
    bool json, help, version;
    const char **args;                /* the arguments of the command. The array is owned; the texts are argv's */
    size_t arg_count;
    const char **list;                /* values of WB_OPTION_LIST options; owned as args are... */
    size_t list_count;
    size_t list_counts[WB_COMMAND_OPTIONS_MAX]; /* ...in the order of command->options: how many each of them has */
    const char *values[WB_COMMAND_OPTIONS_MAX]; /* of command->options, in that order; "" for a flag that was given */
};

/*
 * Reads argv. WB_USAGE with a message that names what is wrong; options_out->command is set even then if the command
 * was recognised. Must be released even if this fails.
 */
int wb_options_parse(int argc, char **argv, struct wb_options *options_out);
void wb_options_release(struct wb_options *options);

/* Like wb_fail(), for a mistake that the table cannot express: sets the message and returns WB_USAGE. */
int wb_options_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- values of the command's options, by name --------------------------------------------------- */

/* The name must be in the table. An option that was not given is false, NULL or fallback. */
bool wb_options_flag(const struct wb_options *options, const char *name);
const char *wb_options_text(const struct wb_options *options, const char *name);
uint64_t wb_options_number(const struct wb_options *options, const char *name, uint64_t fallback);

/* A number that may have a fraction. */
double wb_options_rate(const struct wb_options *options, const char *name, double fallback);

/* A number of bytes. */
uint64_t wb_options_size(const struct wb_options *options, const char *name, uint64_t fallback);

/* A duration and a moment, both in milliseconds. */
int64_t wb_options_duration(const struct wb_options *options, const char *name, int64_t fallback_ms);
int64_t wb_options_time(const struct wb_options *options, const char *name, int64_t fallback_ms);

/*
 * Reads "0.5", "90", "500ms", "10m", "6h", "30d" or "2w" into milliseconds. False: it is not a duration. For arguments;
 * the values of options are checked by their kind.
 */
bool wb_options_parse_duration(const char *text, int64_t *ms_out);

/* All values of an option that may be given several times, in the order in which they were given. */
const char *const *wb_options_list(const struct wb_options *options, const char *name, size_t *count_out);

#endif
