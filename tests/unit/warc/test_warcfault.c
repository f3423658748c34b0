/* test_warcfault.c - each allocation and each read fails once, while reading and writing: a clean error, no leak. */
#include "warc_support.h"

#include <errno.h>

#include "os/fault.h"

static int take_bytes(void *context, const void *bytes, size_t len)
{
    return wb_buf_append(context, bytes, len);
}

/* Reads everything, makes pages of it, and writes the pages again. */
static int copy_archive(struct wb_slice bytes, const char *name, enum wb_warc_coding coding, struct wb_buf *out)
{
    struct wb_warc_reader *reader = NULL;
    struct wb_warc_writer *writer = NULL;
    struct wb_warc_mem mem = WB_WARC_MEM_INIT;
    struct wb_warc_record record;
    struct wb_page page;
    const char *problem;
    int err = open_bytes(bytes, name, 4096, &reader);

    if (err == 0)
        err = wb_warc_writer_new(coding, take_bytes, out, &writer);
    if (err == 0)
        err = wb_warc_write_info(writer, name, 0);
    while (err == 0 && (err = wb_warc_next(reader, &record)) > 0) {
        err = wb_warc_page(&record, 4096, &mem, &page, &problem);
        if (err == 0)
            err = wb_warc_write_page(writer, &page);
    }
    wb_warc_close(reader);
    wb_warc_writer_free(writer);
    wb_warc_mem_release(&mem);
    return err;
}

static void fail_each(unsigned kind, int error, int code)
{
    struct archive plain = make_archive(3, 100);
    static const enum wb_warc_coding codings[] = {WB_WARC_PLAIN, WB_WARC_GZIP, WB_WARC_ZSTD};

    for (enum packing p = PLAIN; p <= ZSTD; p++) {
        struct archive a = packed(&plain, p);
        bool struck = true;
        uint64_t nth;
        for (nth = 1; struck; nth++) {
            struct wb_buf out = WB_BUF_INIT;
            wb_fault_arm(kind, nth, error);
            int err = copy_archive(wb_buf_slice(&a.bytes), name_for(p), codings[p], &out);
            struck = wb_fault_struck();
            wb_fault_disarm();
            if (err != (struck ? code : 0))
                fail_msg("%s: failure %" PRIu64 " gives %d: %s", name_for(p), nth, err, wb_error_message());
            wb_buf_release(&out);
        }
        assert_true(nth > 2);
        archive_release(&a);
    }
    archive_release(&plain);
}

static void test_memory(void **state)
{
    (void)state;
    fail_each(WB_FAULT_ALLOC, ENOMEM, WB_E_NOMEM);
}

static void test_reads(void **state)
{
    (void)state;
    fail_each(WB_FAULT_READ, EIO, WB_E_IO);
}

/* A file that is one damaged stream, so that the search and zlib are exercised too. */
static void test_while_searching(void **state)
{
    (void)state;
    struct archive plain = make_archive(5, 40);

    for (enum packing p = PLAIN; p <= ZSTD; p++) {
        struct archive a = packed(&plain, p);
        bool struck = true;
        memset(a.bytes.ptr + a.at[2] + (p == PLAIN ? 0 : 20), 0x55, 40);
        for (uint64_t nth = 1; struck; nth++) {
            struct wb_warc_reader *reader = NULL;
            struct wb_warc_record record;
            size_t records = 0;
            wb_fault_arm(WB_FAULT_ALLOC | WB_FAULT_READ, nth, ENOMEM);
            int err = open_bytes(wb_buf_slice(&a.bytes), name_for(p), BLOCK_MAX, &reader);
            while (err >= 0 || err == WB_E_CORRUPT) {
                err = wb_warc_next(reader, &record);
                if (err == 0)
                    break;
                records += err > 0;
            }
            struck = wb_fault_struck();
            wb_fault_disarm();
            if (err != (struck ? WB_E_NOMEM : 0) || (!struck && records != 4))
                fail_msg("%s: failure %" PRIu64 " gives %d and %zu records", name_for(p), nth, err, records);
            if (reader && err < 0)
                assert_int_equal(wb_warc_next(reader, &record), err); /* final */
            wb_warc_close(reader);
        }
        archive_release(&a);
    }
    archive_release(&plain);
}

static int refuse(void *context, const void *bytes, size_t len)
{
    size_t *left = context;

    (void)bytes;
    if (len > *left)
        return wb_fail(WB_E_IO, "no space left");
    *left -= len;
    return 0;
}

/* A sink that is full after a given number of bytes. */
static void test_full_sink(void **state)
{
    (void)state;
    struct wb_buf body = response_block(1, 2000);
    struct wb_page page = {.url = WB_SLICE_LIT("http://a.example/"), .kind = WB_PAGE_RESOURCE, .status = 200,
                           .type = WB_SLICE_LIT("text/plain"), .charset = WB_SLICE_EMPTY, .head = WB_SLICE_EMPTY,
                           .body = wb_buf_slice(&body)};

    wb_page_digest(&page);
    for (enum wb_warc_coding c = WB_WARC_PLAIN; c <= WB_WARC_ZSTD; c++) {
        int last = WB_E_IO;
        for (size_t room = 0; last == WB_E_IO; room += 500) {
            struct wb_warc_writer *writer = NULL;
            size_t left = room;
            assert_int_equal(wb_warc_writer_new(c, refuse, &left, &writer), 0);
            last = wb_warc_write_info(writer, NULL, 0);
            if (last == 0)
                last = wb_warc_write_page(writer, &page);
            if (last == 0)
                last = wb_warc_write_revisit(writer, &page, 0);
            assert_true(last == 0 || last == WB_E_IO);
            assert_true(room < 200000);
            wb_warc_writer_free(writer);
        }
    }
    wb_buf_release(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_while_searching),
        cmocka_unit_test(test_full_sink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
