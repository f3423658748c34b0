/*
 * otherformat.h - gives a file the number of another format, with a checksum that is right, and checks how it is
 * refused.
 */
#ifndef WB_TESTS_OTHERFORMAT_H
#define WB_TESTS_OTHERFORMAT_H

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "os/file.h"
#include "os/path.h"
#include "table/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { HEAD_BYTES_MAX = 4096 };

/*
 * Changes a byte of a head that begins at an offset of the file. The head has the checksum of its first check_at bytes
 * behind them; 0: it has none that covers this byte.
 */
static inline void put_format(const char *path, uint64_t offset, size_t at, char number, size_t check_at)
{
    struct wb_file file;
    char head[HEAD_BYTES_MAX];

    assert_true(at < HEAD_BYTES_MAX - 8 && check_at <= HEAD_BYTES_MAX - 8);
    assert_int_equal(wb_file_open(path, WB_FILE_WRITE, &file), 0);
    assert_int_equal(wb_file_write_at(&file, offset + at, &number, 1), 0);
    if (check_at) {
        assert_int_equal(wb_file_read_exact(&file, offset, head, check_at), 0);
        wb_put64(head + check_at, wb_hash64(head, check_at));
        assert_int_equal(wb_file_write_at(&file, offset + check_at, head + check_at, 8), 0);
    }
    wb_file_close(&file);
}

/* The same in the last bytes of a blob, whose sums cover them: writes the blob again. */
static inline void put_blob_format(const char *path, const char *kind, size_t from_end, char number)
{
    struct wb_blob_writer *writer;
    struct wb_blob blob;
    uint64_t bytes;

    assert_int_equal(wb_blob_open(path, kind, &blob), 0);
    size_t before = (size_t)blob.bytes - from_end;
    assert_int_equal(wb_blob_check(&blob, 0, (size_t)blob.bytes), 0);
    assert_int_equal(wb_path_unlink(path), 0); /* an open blob stays readable */
    assert_int_equal(wb_blob_create(path, kind, &writer), 0);
    assert_int_equal(wb_blob_append(writer, blob.data, before), 0);
    assert_int_equal(wb_blob_append(writer, &number, 1), 0);
    assert_int_equal(wb_blob_append(writer, blob.data + before + 1, from_end - 1), 0);
    assert_int_equal(wb_blob_finish(writer, &bytes), 0);
    wb_blob_close(&blob);
}

/* The error names what was refused, the number that it has and the number that is read. */
static inline void assert_refused_format(int err, const char *what, unsigned number)
{
    char words[64];

    snprintf(words, sizeof words, "has format %u; this program reads format 1", number);
    assert_int_equal(err, WB_E_NEWER);
    assert_non_null(strstr(wb_error_message(), what));
    assert_non_null(strstr(wb_error_message(), words));
}

#endif
