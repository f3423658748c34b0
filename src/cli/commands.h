/*
 * commands.h - the one table of commands. Parsing, help text, the man page and
 * the shell completion are all made from it.
 */
#ifndef WB_CLI_COMMANDS_H
#define WB_CLI_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

enum wb_option_kind {
    WB_OPTION_FLAG,
    WB_OPTION_TEXT,
    WB_OPTION_FILE,
    WB_OPTION_DIR,
    WB_OPTION_NUMBER, /* decimal digits, at least 1 */
    WB_OPTION_COUNT,  /* decimal digits, 0 too */
    WB_OPTION_DURATION, /* seconds, with a fraction or a unit: 0.5, 90, 10m, 6h, 30d */
    WB_OPTION_LIST,   /* text that may be given several times; one such option a command */
    WB_OPTION_TIME,   /* RFC 3339 or a date */
    WB_OPTION_CHOICE, /* one of the words in arg, which | separates */
};

struct wb_option {
    const char *name; /* without the dashes */
    char letter;      /* its short form, or 0 */
    enum wb_option_kind kind;
    const char *arg;  /* what stands for its value in help text; NULL for a flag */
    const char *help;
};

#define WB_ARGS_ANY ((size_t)-1)

/* A command has at most this many options of its own. */
#define WB_COMMAND_OPTIONS_MAX 48

struct wb_options;

struct wb_command {
    const char *name;
    const char *usage;   /* what follows the name, in one line */
    const char *summary; /* half a sentence */
    const char *description; /* paragraphs; a line that starts with two blanks is shown as it is */
    const struct wb_option *options; /* ended by one without a name */
    size_t args_min, args_max;

    /*
     * 0: done; 1: could not, and has said so; a negative code: could not, the
     * message is wb_error_message(). WB_USAGE: was called wrongly.
     */
    int (*run)(const struct wb_options *options);
};

/* Ended by one without a name. */
extern const struct wb_command wb_commands[];

/* The options every command takes; ended by one without a name. */
extern const struct wb_option wb_common_options[];

const struct wb_command *wb_command_find(const char *name);

int wb_cmd_init(const struct wb_options *options);
int wb_cmd_import(const struct wb_options *options);
int wb_cmd_export(const struct wb_options *options);
int wb_cmd_get(const struct wb_options *options);
int wb_cmd_stat(const struct wb_options *options);
int wb_cmd_verify(const struct wb_options *options);
int wb_cmd_compact(const struct wb_options *options);
int wb_cmd_crawl(const struct wb_options *options);
int wb_cmd_webdb(const struct wb_options *options);
int wb_cmd_update(const struct wb_options *options);
int wb_cmd_generate(const struct wb_options *options);
int wb_cmd_push(const struct wb_options *options);
int wb_cmd_expunge(const struct wb_options *options);
int wb_cmd_run(const struct wb_options *options);
int wb_cmd_why(const struct wb_options *options);
int wb_cmd_url(const struct wb_options *options);
int wb_cmd_robots(const struct wb_options *options);
int wb_cmd_web(const struct wb_options *options);
int wb_cmd_extract(const struct wb_options *options);
int wb_cmd_help(const struct wb_options *options);

#endif
