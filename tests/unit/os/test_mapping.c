/* A mapped file is found by its path, and its pages leave this process's memory and come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/error.h"
#include "os/fault.h"
#include "os/mapping.h"

#include <errno.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES ((size_t)8 << 20)

/* KB of mapped files in this process's memory. */
static long resident_kb(void)
{
    char line[256];
    long kb = -1;
    FILE *status = fopen("/proc/self/status", "re");

    assert_non_null(status);
    while (fgets(line, sizeof line, status))
        sscanf(line, "RssFile: %ld", &kb);
    fclose(status);
    return kb;
}

static long sum(const char *bytes)
{
    long total = 0;

    for (size_t i = 0; i < BYTES; i += 512)
        total += bytes[i];
    return total;
}

static void test_find_and_drop(void **state)
{
    char path[] = "/tmp/webbase-mapping-XXXXXX";
    char *piece = calloc(1, BYTES);
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_non_null(piece);
    for (size_t i = 0; i < BYTES; i++)
        piece[i] = (char)(i % 7);
    assert_int_equal(write(fd, piece, BYTES), BYTES);
    assert_null(wb_mapping_find(path));
    char *map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(map != MAP_FAILED);
    assert_ptr_equal(wb_mapping_find(path), map);
    assert_null(wb_mapping_find("/no/such/file"));

    long before = sum(map), full = resident_kb();
    wb_mapping_drop(map, BYTES);
    assert_true(full - resident_kb() >= (long)(BYTES / 1024) * 9 / 10);
    assert_int_equal(sum(map), before);
    munmap(map, BYTES);
    close(fd);
    unlink(path);
    free(piece);
}

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
    assert_memory_equal(map, "mapped", 6); /* it stays */
    wb_mapping_close(map, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_find_and_drop), cmocka_unit_test(test_open_and_close)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
