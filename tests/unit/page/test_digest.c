/* test_digest.c - MD5 and SHA-1 by the examples of their RFCs; what has digests is left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/codec.h"
#include "page/page.h"

static const struct {
    const char *text, *md5, *sha1;
} known[] = {
    {"", "d41d8cd98f00b204e9800998ecf8427e", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
    {"abc", "900150983cd24fb0d6963f7d28e17f72", "a9993e364706816aba3e25717850c26c9cd0d89d"},
    {"message digest", "f96b697d7cb7938d525a2f31aaf161d0", "c12252ceda8be8994d5fa0290a47231c1d16aae3"},
};

static void test_known(void **state)
{
    char text[2 * WB_SHA1_BYTES + 1];
    uint8_t sha1[WB_SHA1_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct wb_page page = {.body = wb_slice_str(known[i].text)};
        wb_page_digest(&page);
        assert_true(page.digested);
        wb_hex_encode(page.md5, sizeof page.md5, text);
        assert_string_equal(text, known[i].md5);
        wb_hex_encode(page.sha1, sizeof page.sha1, text);
        assert_string_equal(text, known[i].sha1);
        wb_sha1(known[i].text, strlen(known[i].text), sha1);
        assert_memory_equal(sha1, page.sha1, sizeof sha1);
    }
}

static void test_digested_already(void **state)
{
    struct wb_page page = {.body = WB_SLICE_LIT("abc"), .digested = true, .md5 = {1}, .sha1 = {2}};

    (void)state;
    wb_page_digest(&page);
    assert_int_equal(page.md5[0], 1);
    assert_int_equal(page.sha1[0], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known), cmocka_unit_test(test_digested_already)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
