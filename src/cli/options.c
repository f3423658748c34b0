/*
 * options.c - parses command lines. It checks what the table of commands can express: names, numbers, times, choices,
 * the number of arguments. It never looks at files.
 */
#include "cli/options.h"
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/slice.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_MAX 1e15 /* beyond that, a double does not tell two whole numbers apart */

struct option_parser {
    int argc;
    char **argv;
    int at; /* the index of the next word */
    struct wb_options *out;
};

int wb_options_usage(const char *format, ...)
{
    char text[WB_ERROR_MESSAGE_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return wb_fail(WB_USAGE, "%s", text);
}

/* The index of an option in the table; that of the last row, which has no name, if there is none. */
static size_t option_index(const struct wb_option *table, const char *name, size_t len)
{
    size_t i = 0;

    while (table[i].name && !(strlen(table[i].name) == len && memcmp(table[i].name, name, len) == 0))
        i++;
    return i;
}

/* Whether value is one of words, which are separated by |. */
static bool choice_known(const char *words, const char *value)
{
    size_t len = strlen(value);

    for (const char *word = words;; word++) {
        size_t n = strcspn(word, "|");
        if (n == len && memcmp(word, value, len) == 0)
            return true;
        word += n;
        if (!*word)
            return false;
    }
}

/* "0.5", "90s", "10m", "6h", "30d", "2w", "1y": to milliseconds. A year has 365 days, as in a history policy. */
bool wb_options_parse_duration(const char *text, int64_t *ms_out)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", WB_MINUTE_MS}, {"min", WB_MINUTE_MS}, {"h", WB_HOUR_MS},
                 {"d", WB_DAY_MS}, {"w", 7 * WB_DAY_MS}, {"y", 365 * WB_DAY_MS}};
    char *end = NULL;

    *ms_out = 0;
    /* strtod() would also take "inf", "nan" and hexadecimal numbers. */
    if ((!(*text >= '0' && *text <= '9') && *text != '.') || strpbrk(text, "xX"))
        return false;
    double value = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].unit) == 0 && value * units[i].ms < 1e14) {
            *ms_out = (int64_t)(value * units[i].ms + 0.5);
            return true;
        }
    return false;
}

/* "0.5", "90", ".25" */
static bool parse_rate(const char *text, double *rate_out)
{
    char *end = NULL;

    *rate_out = 0;
    if (!*text || text[strspn(text, "0123456789.")]) /* strtod() would also take "inf", "nan", "1e9" and "-1" */
        return false;
    *rate_out = strtod(text, &end);
    return end != text && !*end && *rate_out < RATE_MAX;
}

/* "1234", "500k", "2M", "1G": to bytes. */
static bool parse_size(const char *text, uint64_t *bytes_out)
{
    static const char units[] = "kMGT";
    size_t len = strlen(text);
    const char *unit = len ? strchr(units, text[len - 1]) : NULL;
    uint64_t factor = 1;

    for (const char *u = units; unit && u <= unit; u++)
        factor *= 1000;
    if (!wb_slice_to_u64(wb_slice(text, len - (unit != NULL)), bytes_out) || *bytes_out == 0 ||
        *bytes_out > INT64_MAX / factor)
        return false;
    *bytes_out *= factor;
    return true;
}

/* Whether the value is what the kind of the option wants; WB_USAGE with a message if not. */
static int check_value(const struct wb_option *option, const char *value)
{
    uint64_t number;
    int64_t time_ms;
    double rate;

    switch (option->kind) {
    case WB_OPTION_NUMBER:
        if (!wb_slice_to_u64(wb_slice_str(value), &number) || number == 0)
            return wb_options_usage("--%s takes a number of at least 1, not '%s'", option->name, value);
        return 0;
    case WB_OPTION_COUNT:
        if (!wb_slice_to_u64(wb_slice_str(value), &number))
            return wb_options_usage("--%s takes a number, not '%s'", option->name, value);
        return 0;
    case WB_OPTION_RATE:
        if (!parse_rate(value, &rate))
            return wb_options_usage("--%s takes a number such as 100 or 0.5, not '%s'", option->name, value);
        return 0;
    case WB_OPTION_SIZE:
        if (!parse_size(value, &number))
            return wb_options_usage("--%s takes a number of bytes such as 500000, 500k or 2M, not '%s'", option->name,
                                    value);
        return 0;
    case WB_OPTION_DURATION:
        if (!wb_options_parse_duration(value, &time_ms))
            return wb_options_usage("--%s takes seconds, or a duration such as 500ms, 10m, 6h or 30d, not '%s'",
                                    option->name, value);
        return 0;
    case WB_OPTION_TIME:
        if (!wb_date_parse(wb_slice_str(value), &time_ms))
            return wb_options_usage("--%s takes a time such as 2026-01-31 or 2026-01-31T12:00:00Z, not '%s'",
                                    option->name, value);
        return 0;
    case WB_OPTION_CHOICE:
        if (!choice_known(option->arg, value))
            return wb_options_usage("--%s takes one of %s, not '%s'", option->name, option->arg, value);
        return 0;
    case WB_OPTION_TEXT:
    case WB_OPTION_FILE:
    case WB_OPTION_DIR:
    case WB_OPTION_LIST:
        if (!*value)
            return wb_options_usage("--%s takes %s, not an empty text", option->name, option->arg);
        return 0;
    case WB_OPTION_FLAG:
        break;
    }
    return 0;
}

/* value: the text after '=', or directly after a letter; if it is NULL, the value is the next word. */
static int read_value(struct option_parser *p, const struct wb_option *option, const char *value,
                      const char **value_out)
{
    *value_out = "";
    if (option->kind == WB_OPTION_FLAG)
        return value ? wb_options_usage("--%s takes no value", option->name) : 0;
    if (!value && p->at < p->argc)
        value = p->argv[p->at++];
    if (!value)
        return wb_options_usage("--%s needs a value: %s", option->name, option->arg);
    *value_out = value;
    return check_value(option, value);
}

/* Takes an option that every command has. */
static int take_common(struct option_parser *p, const struct wb_option *option, const char *value)
{
    int err = read_value(p, option, value, &value);

    if (err < 0)
        return err;
    if (strcmp(option->name, "repository") == 0)
        p->out->dir = value;
    else if (strcmp(option->name, "json") == 0)
        p->out->json = true;
    else if (strcmp(option->name, "help") == 0)
        p->out->help = true;
    else
        p->out->version = true;
    return 0;
}

/* Where the values of an option end in the list. */
static size_t list_end(const struct wb_options *options, size_t index)
{
    size_t end = 0;

    for (size_t i = 0; i <= index; i++)
        end += options->list_counts[i];
    return end;
}

/* Puts a value behind those that the option has already. */
static void add_to_list(struct wb_options *options, size_t index, const char *value)
{
    size_t at = list_end(options, index);

    memmove(options->list + at + 1, options->list + at, (options->list_count - at) * sizeof *options->list);
    options->list[at] = value;
    options->list_count++;
    options->list_counts[index]++;
}

/* Takes "--name", "--name=value", or "--name" with the next word as its value. */
static int take_long(struct option_parser *p, const char *word)
{
    const char *name = word + 2;
    size_t len = strcspn(name, "=");
    const char *value = name[len] ? name + len + 1 : NULL;
    size_t i = option_index(wb_common_options, name, len);

    if (wb_common_options[i].name)
        return take_common(p, &wb_common_options[i], value);
    if (!p->out->command)
        return wb_options_usage("unknown option '%s'", word);
    i = option_index(p->out->command->options, name, len);
    if (!p->out->command->options[i].name)
        return wb_options_usage("%s: unknown option '%s'", p->out->command->name, word);
    WB_CHECK(i < WB_COMMAND_OPTIONS_MAX);
    int err = read_value(p, &p->out->command->options[i], value, &p->out->values[i]);
    if (err == 0 && p->out->command->options[i].kind == WB_OPTION_LIST)
        add_to_list(p->out, i, p->out->values[i]);
    return err;
}

/* Takes "-r", whose value may follow directly: "-rDIR". Only common options have a letter. */
static int take_short(struct option_parser *p, const char *word)
{
    for (const struct wb_option *o = wb_common_options; o->name; o++)
        if (o->letter == word[1])
            return take_common(p, o, word[2] ? word + 2 : NULL);
    return wb_options_usage("unknown option '%s'", word);
}

/* The first word that is not an option names the command; the others are its arguments. */
static int take_word(struct option_parser *p, const char *word)
{
    if (p->out->command) {
        p->out->args[p->out->arg_count++] = word;
        return 0;
    }
    p->out->command = wb_command_find(word);
    return p->out->command ? 0 : wb_options_usage("unknown command '%s'", word);
}

static int check_counts(const struct wb_options *options)
{
    const struct wb_command *command = options->command;

    if (!command)
        return wb_options_usage("no command is given");
    if (options->arg_count < command->args_min)
        return wb_options_usage("%s: an argument is missing: webbase %s %s", command->name, command->name,
                                command->usage);
    if (options->arg_count > command->args_max)
        return wb_options_usage("%s: does not take '%s'", command->name, options->args[command->args_max]);
    return 0;
}

static const char *default_dir(void)
{
    const char *dir = getenv("WEBBASE_REPO");

    return dir && *dir ? dir : "webbase-data";
}

int wb_options_parse(int argc, char **argv, struct wb_options *options_out)
{
    struct option_parser p = {argc, argv, 1, options_out};
    bool ended = false;
    int err = 0;

    *options_out = (struct wb_options){.dir = default_dir()};
    options_out->args = wb_alloc_zero((size_t)argc + 1, sizeof *options_out->args);
    options_out->list = wb_alloc_zero((size_t)argc + 1, sizeof *options_out->list);
    if (!options_out->args || !options_out->list)
        return WB_E_NOMEM;
    while (err == 0 && p.at < argc) {
        const char *word = argv[p.at++];
        if (!ended && strcmp(word, "--") == 0)
            ended = true;
        else if (!ended && word[0] == '-' && word[1] == '-')
            err = take_long(&p, word);
        else if (!ended && word[0] == '-' && word[1])
            err = take_short(&p, word);
        else
            err = take_word(&p, word);
    }
    /* Someone who asks for help need not get the rest right. */
    if (options_out->help || options_out->version)
        return 0;
    return err < 0 ? err : check_counts(options_out);
}

void wb_options_release(struct wb_options *options)
{
    wb_free(options->args);
    wb_free(options->list);
    *options = (struct wb_options){0};
}

const char *wb_options_text(const struct wb_options *options, const char *name)
{
    size_t i = option_index(options->command->options, name, strlen(name));

    WB_CHECK(options->command->options[i].name);
    return options->values[i];
}

bool wb_options_flag(const struct wb_options *options, const char *name)
{
    return wb_options_text(options, name) != NULL;
}

uint64_t wb_options_number(const struct wb_options *options, const char *name, uint64_t fallback)
{
    const char *text = wb_options_text(options, name);
    uint64_t number = fallback;

    if (text)
        WB_CHECK(wb_slice_to_u64(wb_slice_str(text), &number));
    return number;
}

double wb_options_rate(const struct wb_options *options, const char *name, double fallback)
{
    const char *text = wb_options_text(options, name);
    double rate = fallback;

    if (text)
        WB_CHECK(parse_rate(text, &rate));
    return rate;
}

int64_t wb_options_duration(const struct wb_options *options, const char *name, int64_t fallback_ms)
{
    const char *text = wb_options_text(options, name);
    int64_t ms = fallback_ms;

    if (text)
        WB_CHECK(wb_options_parse_duration(text, &ms));
    return ms;
}

const char *const *wb_options_list(const struct wb_options *options, const char *name, size_t *count_out)
{
    size_t i = option_index(options->command->options, name, strlen(name));

    WB_CHECK(options->command->options[i].kind == WB_OPTION_LIST);
    *count_out = options->list_counts[i];
    return options->list + list_end(options, i) - *count_out;
}

uint64_t wb_options_size(const struct wb_options *options, const char *name, uint64_t fallback)
{
    const char *text = wb_options_text(options, name);
    uint64_t bytes = fallback;

    if (text)
        WB_CHECK(parse_size(text, &bytes));
    return bytes;
}

int64_t wb_options_time(const struct wb_options *options, const char *name, int64_t fallback_ms)
{
    const char *text = wb_options_text(options, name);
    int64_t time_ms = fallback_ms;

    if (text)
        WB_CHECK(wb_date_parse(wb_slice_str(text), &time_ms));
    return time_ms;
}
