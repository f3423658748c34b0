/* test_urlfile.c - URLs come back as they were, without passwords; of damage, the file is named. */
#include "index_support.h"
#include "../testroot.h"
#include "index/urlfile.h"

enum { URLS = 500 };

static void make_url(uint64_t *chance, struct wb_buf *url)
{
    wb_buf_clear(url);
    ok(wb_buf_printf(url, "https://%s%s.example/", chance_one_in(chance, 10) ? "user:secret@" : "",
                     chance_one_in(chance, 2) ? "docs" : "library"));
    for (size_t parts = chance_below(chance, 6); parts > 0; parts--)
        ok(wb_buf_printf(url, "part%u/", (unsigned)chance_below(chance, 5)));
    if (chance_one_in(chance, 50))
        for (size_t i = 0; i < 20000; i++)
            ok(wb_buf_append_char(url, 'x'));
}

static void write_urls(const char *path, uint64_t seed, uint64_t count)
{
    struct wb_urlfile_writer writer;
    struct wb_buf url = WB_BUF_INIT;
    int err = wb_urlfile_create(path, &writer);

    for (uint64_t i = 0; err == 0 && i < count; i++) {
        make_url(&seed, &url);
        err = wb_urlfile_add(&writer, wb_buf_slice(&url));
    }
    ok(wb_urlfile_end(&writer, err));
    wb_buf_release(&url);
}

/* Compares all URLs with what was written. Returns the first error. */
static int check_urls(const char *path, uint64_t seed, uint64_t count)
{
    struct wb_buf urls[URLS] = {WB_BUF_INIT}, memory = WB_BUF_INIT, got = WB_BUF_INIT;
    struct wb_urlfile file;
    int err = wb_urlfile_open(path, &file);

    assert_true(err < 0 || file.count == count);
    for (uint64_t i = 0; i < count; i++)
        make_url(&seed, &urls[i]);
    for (uint64_t n = 0; err == 0 && n < 2 * count; n++) { /* also in another order */
        uint64_t number = n < count ? n : n * 211 % count;
        struct wb_slice wanted;
        ok(wb_url_public(wb_buf_slice(&urls[number]), &memory, &wanted));
        err = wb_urlfile_get(&file, number, &got);
        assert_true(err < 0 || wb_slice_equal(wb_buf_slice(&got), wanted));
        assert_null(err < 0 ? NULL : memmem(got.ptr, got.len, "secret", 6));
    }
    for (uint64_t i = 0; i < count; i++)
        wb_buf_release(&urls[i]);
    wb_buf_release(&memory);
    wb_buf_release(&got);
    wb_urlfile_close(&file);
    return err;
}

static void test_round(void **state)
{
    static const uint64_t counts[] = {0, 1, 15, 16, 17, URLS};
    uint64_t seed = test_seed();

    (void)state;
    for (size_t i = 0; i < COUNT(counts); i++) {
        write_urls(test_path("urls"), seed + i, counts[i]);
        ok(check_urls(test_path("urls"), seed + i, counts[i]));
    }
}

static void test_flips(void **state)
{
    uint64_t seed = test_seed(), chance = seed;
    struct wb_buf bytes = WB_BUF_INIT;
    unsigned noticed = 0;

    (void)state;
    write_urls(test_path("urls"), seed, URLS);
    ok(wb_path_read(test_path("urls"), SIZE_MAX / 2, &bytes));
    for (unsigned round = 0; round < 60; round++) {
        size_t at = chance_below(&chance, bytes.len);
        bytes.ptr[at] = (char)(bytes.ptr[at] ^ 4);
        ok(wb_path_replace(test_path("changed"), wb_buf_slice(&bytes)));
        bytes.ptr[at] = (char)(bytes.ptr[at] ^ 4);
        int err = check_urls(test_path("changed"), seed, URLS);
        assert_true(err == 0 || err == WB_E_CORRUPT || err == WB_E_NEWER);
        assert_true(err == 0 || strstr(wb_error_message(), test_path("changed")));
        noticed += err < 0;
    }
    assert_true(noticed > 50);
    wb_buf_release(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round), cmocka_unit_test(test_flips)};

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
