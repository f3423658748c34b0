/*
 * test_digest.c - MD5 and SHA-1 agree with the examples of their RFCs and with libcrypto, in the code
 * for every kind of processor that this one can imitate; pages that have digests are left alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/codec.h"
#include "page/digest.h"
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

/* ---- against libcrypto ------------------------------------------------------------------------ */

/* Runs the code for processors that lack some instructions, by hiding them (if this one has them at all). */
static const unsigned processors[] = {
    ~0u, 0, WB_DIGEST_AVX2, WB_DIGEST_SHA, WB_DIGEST_AVX2 | WB_DIGEST_SHA, WB_DIGEST_AVX512};

static char bytes[1 << 18];

static int fill(void **state)
{
    (void)state;
    srandom(11);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)random();
    return 0;
}

static void check_page(const struct wb_page *page)
{
    uint8_t md5[WB_MD5_BYTES], sha1[WB_SHA1_BYTES];

    assert_true(page->digested);
    wb_md5(page->body, md5);
    wb_sha1(page->body.ptr, page->body.len, sha1);
    assert_memory_equal(page->md5, md5, sizeof md5);
    assert_memory_equal(page->sha1, sha1, sizeof sha1);
}

/* Every length near those where the padding needs another block, at every alignment. */
static void test_every_length(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof processors / sizeof *processors; p++) {
        wb_digest_cpu_limit(processors[p]);
        for (size_t len = 0; len < 400; len++) {
            struct wb_page page = {.body = wb_slice(bytes + len % 67, len)};
            wb_page_digest(&page);
            check_page(&page);
        }
    }
    wb_digest_cpu_limit(~0u);
}

static void check_many(size_t count)
{
    struct wb_page pages[150], *all[150];

    assert_true(count <= 150);
    for (size_t i = 0; i < count; i++) {
        size_t most = random() % 10 == 0 ? sizeof bytes - 64 : random() % 2 ? 30000 : 100;
        pages[i] = (struct wb_page){.body = wb_slice(bytes + (size_t)random() % 64, (size_t)random() % most)};
        all[i] = &pages[i];
    }
    wb_page_digest_many(all, count);
    for (size_t i = 0; i < count; i++)
        check_page(all[i]);
}

static void test_many(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof processors / sizeof *processors; p++) {
        wb_digest_cpu_limit(processors[p]);
        for (size_t count = 0; count <= 20; count++)
            check_many(count);
        check_many(150);
    }
    wb_digest_cpu_limit(~0u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_digested_already),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, fill, NULL);
}
