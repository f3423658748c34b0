/*
 * cmd_control.c - webbase control: tells a running crawl what to do, or asks it what it is doing.
 *
 *   webbase control pause | resume | stop SITE | delay SITE S | status
 *
 * With --json it prints what the crawl answers, a line for each crawl (crawl.h says what is in it).
 */
#include "base/error.h"
#include "cli/options.h"
#include "cli/output.h"
#include "crawl/crawl.h"

#include <string.h>

/* Reads the arguments. WB_USAGE with a message that says what is missing. */
static int read_command(const struct wb_options *options, struct wb_control_command *command_out)
{
    static const enum wb_control_verb verbs[] = {WB_CONTROL_PAUSE, WB_CONTROL_RESUME, WB_CONTROL_STOP, WB_CONTROL_DELAY,
                                                 WB_CONTROL_STATUS};
    const char *word = options->args[0];
    size_t wanted = 1;

    *command_out = (struct wb_control_command){0};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(word, wb_control_verb_word(verbs[i])) == 0)
            command_out->verb = verbs[i];
    if (!command_out->verb)
        return wb_options_usage("control: '%s' is not one of pause, resume, stop, delay and status", word);
    if (command_out->verb == WB_CONTROL_STOP)
        wanted = 2;
    if (command_out->verb == WB_CONTROL_DELAY)
        wanted = 3;
    if (options->arg_count < wanted)
        return wb_options_usage("control: %s needs %s", word, options->arg_count < 2 ? "a site" : "a time in seconds");
    if (options->arg_count > wanted)
        return wb_options_usage("control: %s does not take '%s'", word, options->args[wanted]);
    if (wanted > 1)
        command_out->site = options->args[1];
    if (wanted > 2 && !wb_options_parse_duration(options->args[2], &command_out->delay_ms))
        return wb_options_usage("control: delay takes seconds, or a duration such as 500ms or 2m, not '%s'",
                                options->args[2]);
    return 0;
}

static int write_words(const struct wb_control_command *command)
{
    switch (command->verb) {
    case WB_CONTROL_PAUSE:
        return wb_output_printf("paused: no new request begins until 'webbase control resume'\n");
    case WB_CONTROL_RESUME:
        return wb_output_printf("the crawl goes on\n");
    case WB_CONTROL_STOP:
        return wb_output_printf("%s is not asked for anything more in this crawl\n", command->site);
    default:
        return wb_output_printf("%s is asked at most once in %g seconds\n", command->site,
                                (double)command->delay_ms / 1000);
    }
}

int wb_cmd_control(const struct wb_options *options)
{
    struct wb_buf answer = WB_BUF_INIT;
    struct wb_control_command command;

    int err = read_command(options, &command);
    if (err == 0)
        err = wb_control_send(options->dir, &command, &answer);
    if (err == WB_E_INVALID)
        err = wb_options_usage("control: '%s' is not the name of a site", command.site);
    if (err == 0)
        err = options->json || command.verb == WB_CONTROL_STATUS ? wb_output_write(answer.ptr, answer.len)
                                                                 : write_words(&command);
    wb_buf_release(&answer);
    return err;
}
