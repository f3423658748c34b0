/*
 * commands.h - the one table of commands. The option parser, the help, the man page and the shell completion are all
 * made from it, so that none of them can disagree.
 *
 * To add a command, say `webbase thing`:
 *
 *   1  write cmd_thing.c with int wb_cmd_thing(const struct wb_options *options), and add it to meson.build;
 *   2  declare wb_cmd_thing at the end of this header;
 *   3  give it a row in wb_commands (commands.c): name, usage, words, summary, description, options, how many
 *      arguments it takes, and the function. Its options are an array in command_options.c.
 *
 * Help, man page and completion show the new row at once, and tests/unit/cli/test_help.c checks that. Add the command
 * to the list in tests/e2e/commands.py, and test there what it does.
 *
 * A command reads its options with wb_options_text() and its siblings (options.h), calls the door of one room, and
 * shows the result with wb_output_*() (output.h): words for people, and with --json an object per line. Long work shows
 * how far it has come with progress.h; messages for people go to standard error with wb_report() (report.h). A command
 * never calls exit(): it returns, and main.c turns the result into the exit status. cmd_push.c is a short example.
 */
#ifndef WB_CLI_COMMANDS_H
#define WB_CLI_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

/* What an option takes. The parser checks the value, and the completion suggests files, directories and choices. */
enum wb_option_kind {
    WB_OPTION_FLAG,     /* no value */
    WB_OPTION_TEXT,     /* any text that is not empty; so are FILE and DIR */
    WB_OPTION_FILE,
    WB_OPTION_DIR,
    WB_OPTION_NUMBER,   /* a decimal number from 1 */
    WB_OPTION_COUNT,    /* a decimal number from 0 */
    WB_OPTION_RATE,     /* a decimal number from 0, which may have a fraction: 0.5 */
    WB_OPTION_SIZE,     /* a number of bytes from 1, which may have a unit: 500k, 2M, 1G (k is 1000) */
    WB_OPTION_DURATION, /* seconds, which may have a fraction or a unit: 0.5, 90, 10m, 6h, 30d */
    WB_OPTION_LIST,     /* text; may be given several times */
    WB_OPTION_TIME,     /* RFC 3339 or a date */
    WB_OPTION_CHOICE,   /* one of the words in arg, which are separated by | */
};

struct wb_option {
    const char *name; /* without the dashes */
    char letter;      /* the short form, or 0; only common options have one */
    enum wb_option_kind kind;
    const char *arg;  /* the name of the value in help texts; NULL for a flag */
    const char *help; /* half a sentence; starts in lower case, has no full stop */
};

#define WB_ARGS_ANY ((size_t)-1)

/* A command has at most this many options, without the common ones. */
#define WB_COMMAND_OPTIONS_MAX 64

struct wb_options;

struct wb_command {
    const char *name;
    const char *usage;       /* what follows the name, in one line */
    const char *words;       /* what the completion suggests as the first argument, separated by |; NULL: files */
    const char *summary;     /* half a sentence; starts in lower case, has no full stop */
    const char *description; /* paragraphs; a line that starts with two blanks is printed as it is */
    const struct wb_option *options; /* the last one has no name */
    size_t args_min, args_max;       /* how many arguments it takes; WB_ARGS_ANY: any number */

    /*
     * Does the work. Returns 0 if it is done; 1 if it failed, and has said so; a negative code if it failed, with the
     * message in wb_error_message(); WB_USAGE (options.h) if it was called wrongly.
     */
    int (*run)(const struct wb_options *options);
};

/* In the order of the help; the last one has no name. */
extern const struct wb_command wb_commands[];

/* The options that every command takes; the last one has no name. */
extern const struct wb_option wb_common_options[];

/* NULL if there is no such command. */
const struct wb_command *wb_command_find(const char *name);

int wb_cmd_init(const struct wb_options *options);
int wb_cmd_import(const struct wb_options *options);
int wb_cmd_export(const struct wb_options *options);
int wb_cmd_get(const struct wb_options *options);
int wb_cmd_versions(const struct wb_options *options);
int wb_cmd_snapshot(const struct wb_options *options);
int wb_cmd_history(const struct wb_options *options);
int wb_cmd_stat(const struct wb_options *options);
int wb_cmd_verify(const struct wb_options *options);
int wb_cmd_compact(const struct wb_options *options);
int wb_cmd_nodes(const struct wb_options *options);
int wb_cmd_transfer(const struct wb_options *options);
int wb_cmd_crawl(const struct wb_options *options);
int wb_cmd_webdb(const struct wb_options *options);
int wb_cmd_index(const struct wb_options *options);
int wb_cmd_links(const struct wb_options *options);
int wb_cmd_search(const struct wb_options *options);
int wb_cmd_similar(const struct wb_options *options);
int wb_cmd_serve(const struct wb_options *options);
int wb_cmd_stream(const struct wb_options *options);
int wb_cmd_update(const struct wb_options *options);
int wb_cmd_generate(const struct wb_options *options);
int wb_cmd_convert(const struct wb_options *options);
int wb_cmd_backup(const struct wb_options *options);
int wb_cmd_restore(const struct wb_options *options);
int wb_cmd_emulate(const struct wb_options *options);
int wb_cmd_push(const struct wb_options *options);
int wb_cmd_expunge(const struct wb_options *options);
int wb_cmd_cluster(const struct wb_options *options);
int wb_cmd_run(const struct wb_options *options);
int wb_cmd_control(const struct wb_options *options);
int wb_cmd_why(const struct wb_options *options);
int wb_cmd_graph(const struct wb_options *options);
int wb_cmd_url(const struct wb_options *options);
int wb_cmd_robots(const struct wb_options *options);
int wb_cmd_web(const struct wb_options *options);
int wb_cmd_advise(const struct wb_options *options);
int wb_cmd_extract(const struct wb_options *options);
int wb_cmd_help(const struct wb_options *options);

#endif
