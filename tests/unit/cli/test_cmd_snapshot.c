/* test_cmd_snapshot.c - what 'webbase snapshot' says about holders that only other parts of the program can add. */
#include "../stream/versions_support.h"

#include "cli/options.h"
#include "cli/output.h"
#include "os/path.h"

#include <fcntl.h>
#include <unistd.h>

/* Runs 'webbase snapshot' with up to three words; what it prints goes to out. */
static int run_snapshot(const char *first, const char *second, const char *third, struct wb_buf *out)
{
    char *argv[] = {(char *)"webbase", (char *)"-r", (char *)test_path("repo"), (char *)"snapshot",
                    (char *)first,     (char *)second, (char *)third};
    const char *path = test_path("stdout");
    struct wb_options options;
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), saved;

    fflush(stdout);
    saved = dup(1);
    dup2(file, 1);
    int result = wb_options_parse(4 + (first != NULL) + (second != NULL) + (third != NULL), argv, &options);
    if (result == 0)
        result = options.command->run(&options);
    wb_options_release(&options);
    assert_int_equal(wb_output_flush(), 0);
    dup2(saved, 1);
    close(saved);
    close(file);
    wb_buf_release(out); /* reading replaces it */
    assert_int_equal(wb_path_read(path, 1 << 20, out), 0);
    assert_int_equal(wb_buf_terminate(out), 0);
    return result;
}

static struct wb_store_holder holder(enum wb_store_holder_kind kind, const char *name)
{
    struct wb_store_holder h = {.kind = kind};

    snprintf(h.name, sizeof h.name, "%s", name);
    return h;
}

static void assert_has(const struct wb_buf *text, const char *part)
{
    if (!strstr(text->ptr, part))
        fail_msg("'%s' is not in '%s'", part, text->ptr);
}

static void test_holders_are_named(void **state)
{
    struct wb_store *store = new_store("repo", WB_STORE_KEEP_NEWEST);
    struct wb_store_holder generation = holder(WB_STORE_HOLDER_GENERATION, "7");
    struct wb_store_holder stream = holder(WB_STORE_HOLDER_STREAM, "nightly");
    struct wb_buf out = WB_BUF_INIT;

    (void)state;
    put_on(store, "a", 0, "A");
    assert_int_equal(run_snapshot(NULL, NULL, NULL, &out), 0);
    assert_string_equal(out.ptr, "sealed snapshot 1 with 1 page; it is kept until it is dropped\n");
    assert_int_equal(wb_store_hold(store, 1, &generation), 0);
    assert_int_equal(wb_store_hold(store, 1, &stream), 0);
    assert_int_equal(run_snapshot("list", "--json", NULL, &out), 0);
    assert_has(&out, "\"held_by\":[\"person\",\"generation 7\",\"stream nightly\"]");
    assert_int_equal(run_snapshot("list", NULL, NULL, &out), 0);
    assert_has(&out, "  person, generation 7, stream nightly\n");

    /* Others hold it, so it cannot be dropped, and the message names one of them. */
    assert_int_equal(run_snapshot("drop", "1", NULL, &out), WB_E_BUSY);
    assert_non_null(strstr(wb_error_message(), "generation 7"));
    assert_string_equal(out.ptr, "");
    assert_int_equal(wb_store_let_go(store, 1, &generation), 0);
    assert_int_equal(run_snapshot("drop", "1", NULL, &out), WB_E_BUSY);
    assert_non_null(strstr(wb_error_message(), "nightly"));
    assert_int_equal(wb_store_let_go(store, 1, &stream), 0);
    assert_int_equal(run_snapshot("drop", "1", "--json", &out), 0);
    assert_string_equal(out.ptr, "{\"event\":\"done\",\"snapshot\":1,\"name\":null}\n");
    assert_int_equal(run_snapshot("list", "--json", NULL, &out), 0);
    assert_string_equal(out.ptr, "");
    wb_buf_release(&out);
    wb_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holders_are_named),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
