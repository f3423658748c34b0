/* test_idna.c - international domains: the standard's own cases, limits, threads. */
#include "support.h"
#include "url/idna.h"

#include <pthread.h>

/* The host of "https://" + domain + "/x", which is what the cases are about; NULL if that is not a URL. */
static const char *host_of(const char *domain, size_t len, char text_out[1024])
{
    struct wb_url url = WB_URL_INIT;
    struct wb_buf input = WB_BUF_INIT;
    const char *host = NULL;

    assert_int_equal(wb_buf_append_str(&input, "https://"), 0);
    assert_int_equal(wb_buf_append(&input, domain, len), 0);
    assert_int_equal(wb_buf_append_str(&input, "/x"), 0);
    if (wb_url_parse(wb_buf_slice(&input), NULL, &url) == 0) {
        struct wb_slice s = wb_url_host(&url);
        assert_in_range(s.len, 1, 1023);
        memcpy(text_out, s.ptr, s.len);
        text_out[s.len] = '\0';
        host = text_out;
    }
    wb_buf_release(&input);
    wb_url_release(&url);
    return host;
}

/* 1 if a case gives another host than the standard says. */
static int check_case(const json_t *c)
{
    char text[1024];
    const json_t *input = json_object_get(c, "input");
    const char *want = json_string_value(json_object_get(c, "output"));
    const char *got = host_of(json_string_value(input), json_string_length(input), text);

    if ((got == NULL) == (want == NULL) && (!got || strcmp(got, want) == 0))
        return 0;
    print_error("'%s': %s, not %s\n", json_string_value(input), got ? got : "failure", want ? want : "failure");
    return 1;
}

static void test_standard(void **state)
{
    (void)state;
    assert_int_equal(each_case("toascii.json", 80, check_case), 0);
}

/* What Unicode 15.1 and 16 changed: the first and the last character of every range in newer_mappings. */
static void test_newer_mappings(void **state)
{
    (void)state;
    static const char *const ignored[] = {"a\u115f\u1160b", "a\u17b4\u17b5b", "a\u180eb", "a\u2061\u2063b",
                                          "a\u206a\u206fb", "a\u3164\uffa0b", "a\U0001d173\U0001d17ab"};
    /* A character and what it is mapped to must give the same domain. */
    static const char *const mapped[][2] = {
        {"a\u04c0b", "a\u04cfb"},     {"a\u10a0b", "a\u2d00b"},   {"a\u10c5b", "a\u2d25b"},   {"a\u1e9eb", "a\u00dfb"},
        {"\u2132", "\u214e"},         {"\u2183", "\u2184"},       {"\U0002f868", "\u36fc"},   {"\U0002f874", "\u5f53"},
        {"\U0002f91f", "\U000243ab"}, {"\U0002f95f", "\u7aee"},   {"\U0002f9bf", "\u45d7"},
    };
    char text[1024], twin[1024];

    for (size_t i = 0; i < COUNT(ignored); i++) {
        assert_non_null(host_of(ignored[i], strlen(ignored[i]), text));
        assert_string_equal(text, "ab");
    }
    for (size_t i = 0; i < COUNT(mapped); i++) {
        assert_non_null(host_of(mapped[i][0], strlen(mapped[i][0]), text));
        assert_non_null(host_of(mapped[i][1], strlen(mapped[i][1]), twin));
        assert_string_equal(text, twin);
        assert_non_null(strstr(text, "xn--"));
    }
}

static void test_limits(void **state)
{
    (void)state;
    char domain[WB_IDNA_MAX_BYTES + 2], ascii[WB_IDNA_MAX_BYTES];
    size_t len = 0;

    /* Characters that are all different make punycode slow and long. */
    for (size_t i = 0; i + 3 <= sizeof domain; i += 3) {
        uint32_t cp = 0x4e00 + (uint32_t)(i * 7 % 20000);
        domain[i] = (char)(0xe0 | cp >> 12);
        domain[i + 1] = (char)(0x80 | (cp >> 6 & 63));
        domain[i + 2] = (char)(0x80 | (cp & 63));
    }
    assert_int_equal(wb_idna_to_ascii(wb_slice(domain, WB_IDNA_MAX_BYTES + 1), ascii, &len), WB_E_LIMIT);
    assert_int_equal(wb_idna_to_ascii(wb_slice(domain, 3 * 100), ascii, &len), 0);
    assert_in_range(len, 100, 600);
    assert_int_equal(wb_idna_to_ascii(wb_slice(domain, 3 * 100 - 1), ascii, &len), WB_E_PROTO);
    assert_int_equal(len, 0);
    /* Ligatures that become many letters each: 18 for 3 bytes. */
    for (size_t i = 0; i + 3 <= WB_IDNA_MAX_BYTES; i += 3)
        memcpy(domain + i, "\xef\xb7\xba", 3);
    assert_true(wb_idna_to_ascii(wb_slice(domain, WB_IDNA_MAX_BYTES / 3 * 3), ascii, &len) < 0);
}

static void *ask(void *context)
{
    char ascii[WB_IDNA_MAX_BYTES];
    size_t len = 0;
    int *wrong = context;

    for (int i = 0; i < 200; i++)
        if (wb_idna_to_ascii(WB_SLICE_LIT("b\xc3\xbc" "cher.example"), ascii, &len) != 0 ||
            !slice_is(wb_slice(ascii, len), "xn--bcher-kva.example"))
            *wrong = 1;
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    int wrong[4] = {0};

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &wrong[i]), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(wrong[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_standard), cmocka_unit_test(test_newer_mappings),
                                       cmocka_unit_test(test_limits), cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
