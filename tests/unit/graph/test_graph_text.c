/*
 * test_graph_text.c - graphs as text: what is read, what is refused and with which words, plain and gzip'd, with an
 * error at every step.
 */
#include "graph_support.h"

#include <errno.h>
#include <zlib.h>

static int read_text(const char *text, size_t len, bool gzip, struct wb_graph_stat *stat_out, uint64_t *repeated_out)
{
    struct wb_graph_text_options options = {0};
    const char *path = test_path("text");

    if (gzip) {
        /* Two members, cut anywhere. */
        gzFile out = gzopen(path, "wb");
        assert_int_equal(gzwrite(out, text, (unsigned)(len / 2)), len / 2);
        gzclose(out);
        out = gzopen(path, "ab");
        assert_int_equal(gzwrite(out, text + len / 2, (unsigned)(len - len / 2)), len - len / 2);
        gzclose(out);
    } else {
        write_file(path, text, len);
    }
    return wb_graph_read_text(path, &options, test_path("graph"), stat_out, repeated_out);
}

static const struct {
    const char *text, *message; /* message: part of it; NULL if the text is right */
    uint64_t nodes, arcs, repeated;
} cases[] = {
    {"3\n1 2\n\n0 2\n", NULL, 3, 4, 0},
    {"3\n1 2\n\n0 2", NULL, 3, 4, 0},
    {"3\r\n2 1\r\n\r\n 2\t0  \r\n", NULL, 3, 4, 0},
    {"1\n0 0 0\n", NULL, 1, 1, 2},
    {"2\n1 0 1 0\n1\n", NULL, 2, 3, 2},
    {"0\n", NULL, 0, 0, 0},
    {"0", NULL, 0, 0, 0},
    {"002\n01\n000\n", NULL, 2, 2, 0},
    {"", "line 1: the first line must be the number of nodes", 0, 0, 0},
    {"\n1\n", "line 1: the first line must be the number of nodes", 0, 0, 0},
    {"2 2\n1\n0\n", "line 1: the first line must be the number of nodes alone", 0, 0, 0},
    {"x\n1 2\n", "line 1: 'x' is not part of a number", 0, 0, 0},
    {"3\n1 2\n", "ends after line 2: it has 3 nodes, but only the successors of 1", 0, 0, 0},
    {"2\n5\n\n", "line 2: there is no node 5; the graph has 2 nodes", 0, 0, 0},
    {"2\n\n-1\n", "line 3: '-' is not part of a number", 0, 0, 0},
    {"99999999999999999999\n", "line 1: the number is too large", 0, 0, 0},
    {"4294967296\n", "line 1: a graph has at most 4294967295 nodes", 0, 0, 0},
    {"1\n0 0 zero\n", "line 2: 'z' is not part of a number", 0, 0, 0},
    {"-5\n", "line 1: '-' is not part of a number", 0, 0, 0},
    {"1\n0\n0\n", "line 3: the graph has more lines than nodes", 0, 0, 0},
    {"1\n0\n\n", "line 3: the graph has more lines than nodes", 0, 0, 0},
    {"1\n\xff\n", "line 2: the byte 0xff is not part of a number", 0, 0, 0},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int gzip = 0; gzip < 2; gzip++) {
            struct wb_graph_stat stat;
            uint64_t repeated;
            int err = read_text(cases[i].text, strlen(cases[i].text), gzip, &stat, &repeated);
            if (cases[i].message) {
                assert_int_equal(err, WB_E_PROTO);
                assert_non_null(strstr(wb_error_message(), cases[i].message));
                assert_non_null(strstr(wb_error_message(), test_path("text")));
                assert_int_equal(wb_path_kind(test_path("graph")), WB_PATH_NONE);
                continue;
            }
            OK(err);
            assert_int_equal(stat.nodes, cases[i].nodes);
            assert_int_equal(stat.arcs, cases[i].arcs);
            assert_int_equal(repeated, cases[i].repeated);
        }
}

/* Random lists, shuffled and with repeated numbers, over many pieces of the file. */
static void test_shuffled(void **state)
{
    uint64_t chance = test_seed();
    struct wb_buf text = WB_BUF_INIT;
    struct wb_graph_stat stat;
    struct wb_graph *graph;
    struct model m;

    (void)state;
    model_make(&m, LOOK_HUBS, 3000, &chance);
    OK(wb_buf_printf(&text, "%u\n", m.nodes));
    for (uint32_t v = 0; v < m.nodes; v++) {
        size_t count = model_count(&m, v), first = count ? chance_below(&chance, count) : 0;
        for (size_t i = 0; i < count; i++)
            OK(wb_buf_printf(&text, "%u ", model_list(&m, v)[(first + i) % count]));
        for (uint64_t again = count ? chance_below(&chance, 4) : 0; again > 0; again--)
            OK(wb_buf_printf(&text, "%u ", model_list(&m, v)[chance_below(&chance, count)]));
        OK(wb_buf_append_char(&text, '\n'));
    }
    for (int gzip = 0; gzip < 2; gzip++) {
        OK(read_text(text.ptr, text.len, gzip, &stat, NULL));
        OK(wb_graph_open(test_path("graph"), &graph));
        compare_graph(&m, graph);
        wb_graph_close(graph);
    }
    wb_buf_release(&text);
    model_release(&m);
}

/* A line that repeats two numbers a million times does not need memory for a million numbers. */
static void test_repeated(void **state)
{
    struct wb_buf text = WB_BUF_INIT;
    struct wb_graph_stat stat;
    uint64_t repeated;

    (void)state;
    OK(wb_buf_append_str(&text, "2\n"));
    for (int i = 0; i < 500000; i++)
        OK(wb_buf_append_str(&text, "1 0 "));
    OK(wb_buf_append_str(&text, "\n\n"));
    OK(read_text(text.ptr, text.len, true, &stat, &repeated));
    assert_int_equal(stat.arcs, 2);
    assert_int_equal(repeated, 999998);
    wb_buf_release(&text);
}

static void test_damaged_gzip(void **state)
{
    struct wb_graph_text_options options = {0};
    struct wb_graph_stat stat;
    struct wb_buf bytes;

    (void)state;
    OK(read_text("3\n1 2\n\n0 2\n", 11, true, &stat, NULL));
    OK(wb_path_read(test_path("text"), 1 << 20, &bytes));
    for (size_t len = 2; len < bytes.len; len++) {
        write_file(test_path("cut"), bytes.ptr, len);
        int err = wb_graph_read_text(test_path("cut"), &options, test_path("graph"), &stat, NULL);
        assert_true(err == WB_E_CORRUPT || err == WB_E_PROTO); /* PROTO: it was cut between the two members */
        assert_non_null(strstr(wb_error_message(), test_path("cut")));
    }
    wb_buf_release(&bytes);
    assert_int_equal(wb_graph_read_text(test_root, &options, test_path("graph"), &stat, NULL), WB_E_INVALID);
    assert_int_equal(wb_graph_read_text(test_path("none"), &options, test_path("graph"), &stat, NULL), WB_E_NOTFOUND);
}

static void test_faults(void **state)
{
    struct wb_graph_stat stat;
    uint64_t n = 1;

    (void)state;
    OK(read_text("3\n2 1\n\n0 2\n", 11, true, &stat, NULL));
    for (;; n++) {
        struct wb_graph_text_options options = {0};
        wb_fault_arm(WB_FAULT_ANY, n, EIO);
        int err = wb_graph_read_text(test_path("text"), &options, test_path("graph"), &stat, NULL);
        wb_fault_disarm();
        if (!wb_fault_struck()) {
            OK(err);
            break;
        }
        assert_true(err == WB_E_IO || err == WB_E_NOMEM);
    }
    assert_true(n > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),        cmocka_unit_test(test_shuffled), cmocka_unit_test(test_repeated),
        cmocka_unit_test(test_damaged_gzip), cmocka_unit_test(test_faults),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
