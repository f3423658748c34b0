/* run_args.c - turns the options of run into those of the room cycle, or into the command line of another run. */
#include "cli/run_args.h"
#include "base/date.h"
#include "base/error.h"
#include "cli/command_options.h"

#include <stdio.h>
#include <string.h>

/* "5000": pages; "500k", "20M", "10G": bytes. */
static int read_capacity(const struct wb_options *options, struct wb_capacity *capacity_out)
{
    static const char units[] = "kMGT";
    const char *text = wb_options_text(options, "capacity");
    size_t len = text ? strlen(text) : 0;
    const char *unit = len ? strchr(units, text[len - 1]) : NULL;
    uint64_t factor = 1, number = 0;

    *capacity_out = (struct wb_capacity){.pages = 0};
    if (!text)
        return 0;
    for (const char *u = units; unit && u <= unit; u++)
        factor *= 1000;
    if (!wb_slice_to_u64(wb_slice(text, len - (unit != NULL)), &number) || number == 0 || number > INT64_MAX / factor)
        return wb_options_usage("--capacity takes a number of pages such as 5000, or of bytes such as 500k, 20M or "
                                "10G, not '%s'",
                                text);
    *(unit ? &capacity_out->bytes : &capacity_out->pages) = number * factor;
    return 0;
}

int wb_run_args_fill(const struct wb_options *options, struct wb_cycle_options *o)
{
    bool bounded = wb_options_text(options, "cycles") || wb_options_text(options, "budget");

    *o = (struct wb_cycle_options){
        .cycles = wb_options_number(options, "cycles", 0),
        /* Without an end and without a budget, once a day is enough. */
        .every_ms = wb_options_duration(options, "every", bounded ? 0 : WB_DAY_MS),
        .memory_bytes = wb_options_size(options, "memory", 0),
    };
    int err = wb_crawl_args_fill(options, &o->crawl);
    if (err == 0)
        err = wb_crawl_args_check(&o->crawl);
    if (err == 0)
        err = wb_crawl_args_fill_generate(options, &o->generate);
    if (err == 0)
        err = read_capacity(options, &o->capacity);
    if (err == 0 && o->crawl.seeds_file && strcmp(o->crawl.seeds_file, "-") == 0)
        err = wb_options_usage("%s: --seeds is read in every cycle, so it cannot be standard input",
                               options->command->name);
    return err;
}

static bool is_given(const struct wb_options *options, const struct wb_option *option)
{
    size_t count = 0;

    if (option->kind == WB_OPTION_LIST)
        (void)wb_options_list(options, option->name, &count);
    else if (option->kind == WB_OPTION_FLAG)
        count = wb_options_flag(options, option->name);
    else
        count = wb_options_text(options, option->name) != NULL;
    return count > 0;
}

const char *wb_run_args_given(const struct wb_options *options)
{
    for (const struct wb_option *option = wb_run_options; option->name; option++)
        if (is_given(options, option) && strcmp(option->name, "memory") != 0) /* it is the server's as well */
            return option->name;
    return options->arg_count ? "" : NULL;
}

/* ---- the command line ---------------------------------------------------------------------------- */

/* Adds --name, or --name=value. */
static int add_option(struct wb_run_line *line, const char *name, const char *value)
{
    size_t size = strlen(name) + (value ? strlen(value) : 0) + sizeof "--=";
    char *word = wb_arena_take(&line->text, size);

    if (!word)
        return WB_E_NOMEM;
    snprintf(word, size, value ? "--%s=%s" : "--%s", name, value);
    return wb_vec_push(&line->words, word);
}

static int add_values(struct wb_run_line *line, const struct wb_options *options, const struct wb_option *option)
{
    size_t count;

    if (!is_given(options, option))
        return 0;
    if (option->kind == WB_OPTION_FLAG)
        return add_option(line, option->name, NULL);
    if (option->kind != WB_OPTION_LIST)
        return add_option(line, option->name, wb_options_text(options, option->name));
    const char *const *values = wb_options_list(options, option->name, &count);
    int err = 0;
    for (size_t i = 0; err == 0 && i < count; i++)
        err = add_option(line, option->name, values[i]);
    return err;
}

int wb_run_line_make(const struct wb_options *options, struct wb_run_line *line_out)
{
    *line_out = (struct wb_run_line){.words = WB_VEC_INIT};
    int err = wb_vec_push(&line_out->words, "webbase");
    if (err == 0)
        err = add_option(line_out, "repository", options->dir);
    if (err == 0)
        err = wb_vec_push(&line_out->words, "run");
    for (const struct wb_option *option = wb_run_options; err == 0 && option->name; option++)
        err = add_values(line_out, options, option);
    if (err == 0)
        err = wb_vec_push(&line_out->words, "--");
    for (size_t i = 0; err == 0 && i < options->arg_count; i++)
        err = wb_vec_push(&line_out->words, options->args[i]);
    return err < 0 ? err : wb_vec_push(&line_out->words, NULL);
}

void wb_run_line_release(struct wb_run_line *line)
{
    wb_vec_release(&line->words);
    wb_arena_release(&line->text);
}
