/* test_md5.c - MD5 of many messages at once agrees with libcrypto, whatever their number and lengths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "page/md5.h"

#include <stdlib.h>

static char bytes[1 << 20];

static void check(const struct wb_slice *messages, size_t count)
{
    uint8_t(*many)[WB_MD5_BYTES] = malloc((count + 1) * sizeof *many);
    uint8_t one[WB_MD5_BYTES];

    assert_non_null(many);
    memset(many, 0xee, (count + 1) * sizeof *many);
    wb_md5_many(messages, count, many);
    for (size_t i = 0; i < count; i++) {
        wb_md5(messages[i], one);
        assert_memory_equal(many[i], one, sizeof one);
    }
    assert_int_equal(many[count][0], 0xee); /* nothing is written behind the last one */
    free(many);
}

static int fill(void **state)
{
    (void)state;
    srandom(7);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)random();
    return 0;
}

/* The examples of RFC 1321, A.5, so that libcrypto is not the only witness. */
static void test_known(void **state)
{
    static const char *const texts[] = {"", "a", "abc", "message digest"};
    static const uint8_t first_bytes[] = {0xd4, 0x0c, 0x90, 0xf9};
    struct wb_slice messages[4];
    uint8_t digests[4][WB_MD5_BYTES];

    (void)state;
    for (size_t i = 0; i < 4; i++)
        messages[i] = wb_slice_str(texts[i]);
    wb_md5_many(messages, 4, digests);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(digests[i][0], first_bytes[i]);
    assert_int_equal(digests[2][15], 0x72);
}

/* Every length near those where the padding needs another block. */
static void test_every_length(void **state)
{
    struct wb_slice messages[300];

    (void)state;
    for (size_t i = 0; i < 300; i++)
        messages[i] = wb_slice(bytes + i, i);
    check(messages, 300);
}

static void test_every_count(void **state)
{
    struct wb_slice messages[40];

    (void)state;
    for (size_t i = 0; i < 40; i++)
        messages[i] = wb_slice(bytes + (size_t)random() % 1000, (size_t)random() % 5000);
    for (size_t count = 0; count <= 40; count++)
        check(messages, count);
}

static void test_uneven_lengths(void **state)
{
    struct wb_slice messages[60];

    (void)state;
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < 60; i++) {
            size_t most = random() % 10 == 0 ? sizeof bytes - 64 : random() % 2 ? 30000 : 100;
            messages[i] = wb_slice(bytes + (size_t)random() % 64, (size_t)random() % most);
        }
        check(messages, 60);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_every_count),
        cmocka_unit_test(test_uneven_lengths),
    };

    return cmocka_run_group_tests(tests, fill, NULL);
}
