/* test_error.c - one message per thread, never too long, carried from one thread to another by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

#include <errno.h>
#include <pthread.h>

static void *fail_elsewhere(void *context)
{
    assert_string_equal(wb_error_message(), "");
    wb_fail(WB_E_PROTO, "elsewhere");
    wb_error_save(WB_E_PROTO, context);
    return NULL;
}

static void test_threads(void **state)
{
    struct wb_error_copy copy;
    pthread_t thread;

    (void)state;
    assert_int_equal(wb_fail(WB_E_CORRUPT, "%s is damaged", "x"), WB_E_CORRUPT);
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &copy), 0);
    pthread_join(thread, NULL);
    assert_string_equal(wb_error_message(), "x is damaged");
    assert_int_equal(wb_error_restore(&copy), WB_E_PROTO);
    assert_string_equal(wb_error_message(), "elsewhere");
}

static void test_errno(void **state)
{
    (void)state;
    errno = ENOSPC;
    assert_int_equal(wb_fail_errno("cannot write %s", "f"), WB_E_IO);
    assert_string_equal(wb_error_message(), "cannot write f: No space left on device");
    errno = EMFILE;
    assert_int_equal(wb_fail_errno("cannot open %s", "f"), WB_E_IO);
    assert_string_equal(wb_error_message(), "cannot open f: Too many open files (raise the limit with ulimit -n)");
    errno = EFBIG;
    assert_int_equal(wb_fail_errno("cannot write %s", "f"), WB_E_IO);
    assert_string_equal(wb_error_message(), "cannot write f: File too large (see ulimit -f)");
    errno = ENOMEM;
    assert_int_equal(wb_fail_errno("cannot map"), WB_E_NOMEM);
    assert_int_equal(wb_fail_nomem(), WB_E_NOMEM);
    assert_string_equal(wb_error_message(), "out of memory");
}

static void test_long(void **state)
{
    char text[3000];

    (void)state;
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    wb_fail(WB_E_IO, "%s", text);
    assert_int_equal(strlen(wb_error_message()), WB_ERROR_MESSAGE_MAX - 1);
    errno = EIO;
    wb_fail_errno("%s", text);
    assert_int_equal(strlen(wb_error_message()), WB_ERROR_MESSAGE_MAX - 1);
}

static void test_words(void **state)
{
    (void)state;
    assert_string_equal(wb_error_words(WB_E_BUSY), "in use by another process");
    assert_string_equal(wb_error_words(0), "no error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads), cmocka_unit_test(test_errno),
                                       cmocka_unit_test(test_long), cmocka_unit_test(test_words)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
