/* test_nameless.c - temporary files leave no name behind, with O_TMPFILE and without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "os/fault.h"
#include "os/nameless.h"

#include <errno.h>
#include <unistd.h>

static char dir[] = "/tmp/webbase-test-XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

/* Fails if anything was left in it. */
static int remove_dir(void **state)
{
    (void)state;
    return rmdir(dir);
}

static void use_file(void)
{
    struct wb_file file;
    char byte = 0;

    assert_int_equal(wb_nameless_open(dir, &file), 0);
    assert_true(wb_file_unlinked(&file));
    assert_int_equal(wb_file_write_at(&file, 1000, "x", 1), 0);
    assert_int_equal(wb_file_read_exact(&file, 1000, &byte, 1), 0);
    assert_int_equal(byte, 'x');
    wb_file_close(&file);
}

static void test_open(void **state)
{
    struct wb_file file;

    (void)state;
    use_file();
    /* A file system without O_TMPFILE. */
    wb_fault_arm(WB_FAULT_OPEN, 1, EOPNOTSUPP);
    use_file();
    assert_true(wb_fault_struck());
    wb_fault_arm(WB_FAULT_OPEN, 1, ENOSPC);
    assert_int_equal(wb_nameless_open(dir, &file), WB_E_IO);
    wb_fault_disarm();
    assert_int_equal(file.fd, -1);
    assert_non_null(strstr(wb_error_message(), dir));
    assert_int_equal(wb_nameless_open("/no/such/folder", &file), WB_E_IO);
}

static void test_map(void **state)
{
    size_t bytes = 3 << 20;
    void *memory;

    (void)state;
    assert_int_equal(wb_nameless_map(dir, bytes, &memory), 0);
    for (size_t i = 0; i < bytes; i += 4096)
        assert_int_equal(((char *)memory)[i], 0);
    memset(memory, 1, bytes);
    wb_nameless_unmap(memory, bytes);
    wb_fault_arm(WB_FAULT_WRITE, 1, ENOSPC);
    assert_int_equal(wb_nameless_map(dir, bytes, &memory), WB_E_IO);
    wb_fault_disarm();
    assert_null(memory);
    /* More than any disk has: reported now, not by a signal when the memory is touched. */
    assert_int_equal(wb_nameless_map(dir, (size_t)1 << 60, &memory), WB_E_IO);
    assert_null(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_map),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
