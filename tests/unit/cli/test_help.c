/* test_help.c - every command and option of the table is in help text, man page and completion. */
#include "base/buf.h"
#include "cli/help.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void assert_contains(const struct wb_buf *text, const char *part)
{
    if (!text->len || !memmem(text->ptr, text->len, part, strlen(part)))
        fail_msg("'%s' is missing", part);
}

static void test_program_lists_commands(void **state)
{
    struct wb_buf text = WB_BUF_INIT;
    char line[100];

    (void)state;
    assert_int_equal(wb_help_program(&text), 0);
    for (const struct wb_command *c = wb_commands; c->name; c++) {
        snprintf(line, sizeof line, "\n  %-10s %s\n", c->name, c->summary);
        assert_contains(&text, line);
    }
    assert_contains(&text, "-r, --repository DIR");
    wb_buf_release(&text);
}

/* Line ends and runs of blanks become one blank: options are explained in lines of a bounded width. */
static void fold_blanks(struct wb_buf *text)
{
    size_t to = 0;

    for (size_t i = 0; i < text->len; i++)
        if ((text->ptr[i] != ' ' && text->ptr[i] != '\n') || to == 0 || text->ptr[to - 1] != ' ')
            text->ptr[to++] = text->ptr[i] == '\n' ? ' ' : text->ptr[i];
    text->len = to;
}

/* Every line but the first, which shows the usage. */
static void assert_narrow(const struct wb_buf *text)
{
    size_t start = 0;

    for (size_t i = 0; i < text->len; i++) {
        if (text->ptr[i] != '\n')
            continue;
        if (start && i - start > 90)
            fail_msg("%.*s", (int)(i - start), text->ptr + start);
        start = i + 1;
    }
}

static void test_commands_explain_themselves(void **state)
{
    char name[64];

    (void)state;
    for (const struct wb_command *c = wb_commands; c->name; c++) {
        struct wb_buf text = WB_BUF_INIT;
        assert_int_equal(wb_help_command(c, &text), 0);
        assert_contains(&text, c->usage);
        assert_contains(&text, c->description);
        for (const struct wb_option *o = c->options; o->name; o++) {
            snprintf(name, sizeof name, "  --%s", o->name);
            assert_contains(&text, name);
        }
        assert_narrow(&text);
        fold_blanks(&text);
        for (const struct wb_option *o = c->options; o->name; o++)
            assert_contains(&text, o->help);
        wb_buf_release(&text);
    }
}

/* Escapes the hyphens, as man(7) wants it. */
static void escape_hyphens(const char *text, char *out)
{
    for (; *text; text++) {
        if (*text == '-')
            *out++ = '\\';
        *out++ = *text;
    }
    *out = '\0';
}

static void test_man_page_has_everything(void **state)
{
    struct wb_buf text = WB_BUF_INIT;
    char name[200], escaped[400];

    (void)state;
    assert_int_equal(wb_help_man(&text), 0);
    assert_contains(&text, ".TH WEBBASE 1");
    for (const struct wb_command *c = wb_commands; c->name; c++) {
        snprintf(name, sizeof name, ".TP\n\\fB%s\\fR", c->name);
        assert_contains(&text, name);
        for (const struct wb_option *o = c->options; o->name; o++) {
            snprintf(name, sizeof name, "--%s", o->name);
            escape_hyphens(name, escaped);
            assert_contains(&text, escaped);
            escape_hyphens(o->help, escaped);
            assert_contains(&text, escaped);
        }
    }
    wb_buf_release(&text);
}

static void test_completion_knows_everything(void **state)
{
    struct wb_buf text = WB_BUF_INIT;
    char name[64];

    (void)state;
    assert_int_equal(wb_help_completion(&text), 0);
    for (const struct wb_command *c = wb_commands; c->name; c++) {
        snprintf(name, sizeof name, "\n    %s)\n", c->name);
        assert_contains(&text, name);
        for (const struct wb_option *o = c->options; o->name; o++) {
            snprintf(name, sizeof name, " --%s", o->name);
            assert_contains(&text, name);
        }
    }
    assert_contains(&text, "compgen -W 'log hash hashed-log'");
    assert_contains(&text, " words='list drop'");
    wb_buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program_lists_commands),
        cmocka_unit_test(test_commands_explain_themselves),
        cmocka_unit_test(test_man_page_has_everything),
        cmocka_unit_test(test_completion_knows_everything),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
