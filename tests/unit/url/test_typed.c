/* test_typed.c - URLs as people write them. */
#include "support.h"

static void test_with_and_without_a_scheme(void **state)
{
    static const struct {
        const char *text, *href;
    } cases[] = {
        {"http://a.example/x", "http://a.example/x"},
        {"https://a.example", "https://a.example/"},
        {"a.example", "http://a.example/"},
        {"A.Example/b?c=http://d", "http://a.example/b?c=http://d"},
        {"a.example?q", "http://a.example/?q"},
        {"a.example:8080", "http://a.example:8080/"},
        {"a.example:8080/b:c", "http://a.example:8080/b:c"},
        {"localhost:8080/b", "http://localhost:8080/b"},
        {"a.example:443/b", "https://a.example/b"},
        {"a.example:80/b", "http://a.example/b"},
        {"127.0.0.1:8080", "http://127.0.0.1:8080/"},
        {"[::1]:8080/b", "http://[::1]:8080/b"},
        {"//a.example/b", "http://a.example/b"},
        {" a.example/b \n", "http://a.example/b"},
        {"b\xc3\xbc" "cher.example", "http://xn--bcher-kva.example/"},
        {"localhost", "http://localhost/"},
        {"ftp:21", "ftp://0.0.0.21/"},
        {"http:8080", "http://0.0.31.144/"},
        {"mailto:a@b.example", "mailto:a@b.example"},
        {"urn:isbn:1", "urn:isbn:1"},
        {"tel:5551234", "tel:5551234"},
        {"urn:pageinfo:http://a.example/", "urn:pageinfo:http://a.example/"},
    };
    struct wb_url url = WB_URL_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (wb_url_parse_typed(wb_slice_str(cases[i].text), &url) < 0)
            fail_msg("%s: %s", cases[i].text, wb_error_message());
        if (!wb_slice_equal(wb_url_href(&url), wb_slice_str(cases[i].href)))
            fail_msg("%s is %.*s, not %s", cases[i].text, WB_SLICE_ARG(wb_url_href(&url)), cases[i].href);
    }
    wb_url_release(&url);
}

static void test_what_is_neither(void **state)
{
    static const char *const wrong[] = {"", " ", "two words", "/a", "?a", "#a", "\\a", "http://", "http://[", "[::1",
                                        "://a", "a.example:99999", ":80"};
    struct wb_url url = WB_URL_INIT;
    struct wb_buf large = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int err = wb_url_parse_typed(wb_slice_str(wrong[i]), &url);
        if (err != WB_E_PROTO)
            fail_msg("'%s' gives %d", wrong[i], err);
        assert_non_null(strstr(wb_error_message(), wrong[i][0] == ' ' ? "" : wrong[i]));
    }
    while (large.len <= WB_URL_MAX_BYTES)
        assert_int_equal(wb_buf_append_str(&large, "a.example/"), 0);
    assert_int_equal(wb_url_parse_typed(wb_buf_slice(&large), &url), WB_E_LIMIT);
    wb_buf_release(&large);
    wb_url_release(&url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_with_and_without_a_scheme),
        cmocka_unit_test(test_what_is_neither),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
