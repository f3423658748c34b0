/* completion.c - prints the table of commands as a completion script for bash. */
#include "cli/help.h"

#include <string.h>

static int add_names(const struct wb_option *options, struct wb_buf *out)
{
    int err = 0;

    for (; err == 0 && options->name; options++)
        err = wb_buf_printf(out, " --%s", options->name);
    return err;
}

/* Appends a case of what may follow an option. */
static int add_values(const struct wb_option *option, struct wb_buf *out)
{
    int err = 0;

    switch (option->kind) {
    case WB_OPTION_FLAG:
        return 0;
    case WB_OPTION_CHOICE:
        err = wb_buf_printf(out, "        --%s) COMPREPLY=($(compgen -W '", option->name);
        for (const char *c = option->arg; err == 0 && *c; c++)
            err = wb_buf_append_char(out, *c == '|' ? ' ' : *c);
        return err < 0 ? err : wb_buf_append_str(out, "' -- \"$word\")); return ;;\n");
    case WB_OPTION_DIR:
        return wb_buf_printf(out, "        --%s) COMPREPLY=($(compgen -d -- \"$word\")); return ;;\n", option->name);
    case WB_OPTION_FILE:
        return wb_buf_printf(out, "        --%s) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n", option->name);
    case WB_OPTION_TEXT:
    case WB_OPTION_NUMBER:
    case WB_OPTION_COUNT:
    case WB_OPTION_RATE:
    case WB_OPTION_SIZE:
    case WB_OPTION_DURATION:
    case WB_OPTION_LIST:
    case WB_OPTION_TIME:
        return wb_buf_printf(out, "        --%s) return ;;\n", option->name);
    }
    return 0;
}

/* Appends the case of one command: its options, the words for its first argument, and what may follow an option. */
static int add_command_case(const struct wb_command *command, struct wb_buf *out)
{
    int err = wb_buf_printf(out, "    %s)\n        options='", command->name);

    if (err == 0)
        err = add_names(command->options, out);
    if (err == 0)
        err = wb_buf_append_char(out, '\'');
    if (err == 0 && command->words) {
        err = wb_buf_append_str(out, " words='");
        for (const char *c = command->words; err == 0 && *c; c++)
            err = wb_buf_append_char(out, *c == '|' ? ' ' : *c);
        if (err == 0)
            err = wb_buf_append_char(out, '\'');
    }
    if (err == 0)
        err = wb_buf_append_str(out, "\n        case $last in\n");
    for (const struct wb_option *o = command->options; err == 0 && o->name; o++)
        err = add_values(o, out);
    return err < 0 ? err : wb_buf_append_str(out, "        esac ;;\n");
}

int wb_help_completion(struct wb_buf *text_out)
{
    int err = wb_buf_append_str(text_out,
        "# bash completion for webbase; made from its table of commands\n"
        "_webbase() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]} command= options= words= i\n"
        "    COMPREPLY=()\n"
        "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
        "        case ${COMP_WORDS[i]} in\n"
        "        -r|--repository) i=$((i + 1)) ;;\n"
        "        -*) ;;\n"
        "        *) command=${COMP_WORDS[i]}; break ;;\n"
        "        esac\n"
        "    done\n"
        "    case $last in -r|--repository) COMPREPLY=($(compgen -d -- \"$word\")); return ;; esac\n"
        "    case $command in\n");

    for (const struct wb_command *c = wb_commands; err == 0 && c->name; c++)
        err = add_command_case(c, text_out);
    if (err == 0)
        err = wb_buf_append_str(text_out, "    esac\n    if [[ $word == -* ]]; then\n"
                                          "        COMPREPLY=($(compgen -W \"$options");
    if (err == 0)
        err = add_names(wb_common_options, text_out);
    if (err == 0)
        err = wb_buf_append_str(text_out, "\" -- \"$word\"))\n    elif [[ -z $command || $command == help ]]; then\n"
                                          "        COMPREPLY=($(compgen -W '");
    for (const struct wb_command *c = wb_commands; err == 0 && c->name; c++)
        err = wb_buf_printf(text_out, " %s", c->name);
    if (err == 0)
        err = wb_buf_append_str(text_out, "' -- \"$word\"))\n    elif [[ $last == \"$command\" && $words ]]; then\n"
                                          "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n    else\n"
                                          "        COMPREPLY=($(compgen -f -- \"$word\"))\n    fi\n}\n"
                                          "complete -o filenames -F _webbase webbase\n");
    return err;
}
