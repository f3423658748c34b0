/*
 * fuzz_wacz.c - WACZ files of arbitrary bytes: the directory, the entries and the package are refused or consistent,
 * and reading all of it ends.
 */
#include "base/check.h"
#include "base/error.h"
#include "warc/warc.h"
#include "warc/warcinput.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_archive(struct wb_wacz *wacz, size_t i)
{
    struct wb_warc_reader *reader = NULL;
    struct wb_warc_record record;
    uint64_t last = 0, turns = 0;

    int err = wb_wacz_open_archive(wacz, i, 5000, &reader);
    while (err >= 0 || err == WB_E_CORRUPT) {
        err = reader ? wb_warc_next(reader, &record) : 0;
        if (err == 0)
            break;
        uint64_t offset = err > 0 ? record.offset : wb_warc_error_offset(reader);
        WB_CHECK(offset >= last || err < 0);
        WB_CHECK(++turns < (1u << 22)); /* each call must make progress */
        last = offset;
    }
    wb_warc_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_file file = {memfd_create("fuzz", 0), NULL};
    struct wb_wacz *wacz = NULL;
    struct wb_wacz_entry entry;
    uint64_t before = 0;
    char path[64];

    WB_CHECK(file.fd >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file.fd);
    file.path = path;
    WB_CHECK(wb_file_write_at(&file, 0, data, size) == 0);
    int err = wb_wacz_open(path, &wacz);
    WB_CHECK(err == 0 || err == WB_E_PROTO || err == WB_E_CORRUPT || err == WB_E_LIMIT);
    if (err == 0)
        err = wb_wacz_read_package(wacz);
    for (size_t i = 0; wacz && wb_wacz_entry(wacz, i, &entry); i++) {
        WB_CHECK(entry.offset >= before && entry.bytes <= size);
        before = entry.offset + entry.bytes; /* entries do not overlap */
        if (entry.archive)
            read_archive(wacz, i);
        err = wb_wacz_check(wacz, i);
        WB_CHECK(err == 0 || err == WB_E_PROTO || err == WB_E_CORRUPT || err == WB_E_LIMIT);
    }
    wb_wacz_close(wacz);
    close(file.fd);
    return 0;
}
