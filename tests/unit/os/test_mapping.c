/* test_mapping.c - a mapping stays valid when its file is closed and removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/error.h"
#include "os/fault.h"
#include "os/mapping.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static void test_open_and_close(void **state)
{
    char path[] = "/tmp/webbase-mapping-XXXXXX";
    int fd = mkstemp(path);
    struct wb_file file;
    void *map;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "mapped", 6), 6);
    close(fd);
    assert_int_equal(wb_file_open(path, WB_FILE_READ, &file), 0);
    wb_fault_arm(WB_FAULT_READ, 1, EIO);
    assert_int_equal(wb_mapping_open(&file, 6, &map), WB_E_IO);
    assert_null(map);
    wb_fault_disarm();
    assert_int_equal(wb_mapping_open(&file, 6, &map), 0);
    wb_file_close(&file);
    assert_int_equal(unlink(path), 0);
    assert_memory_equal(map, "mapped", 6);
    wb_mapping_close(map, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_open_and_close)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
