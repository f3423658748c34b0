/* A mapped file is found by its path, and its pages leave this process's memory and come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "os/mapping.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_find_and_drop)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
