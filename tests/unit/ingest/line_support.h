/* line_support.h - files of numbered lines, written with linewriter.h and read with linereader.h. */
#ifndef WB_TESTS_LINE_SUPPORT_H
#define WB_TESTS_LINE_SUPPORT_H

#include "ingest/linereader.h"
#include "ingest/linewriter.h"
#include "ingest_support.h"

static inline void write_lines(const char *name, size_t count)
{
    struct wb_linewriter *writer;
    char line[64];

    assert_int_equal(wb_linewriter_create(test_path(name), false, &writer), 0);
    for (size_t i = 0; i < count; i++) {
        int len = snprintf(line, sizeof line, "%zu\thttp://example.org/page/%zu\n", i, i * 7919);
        assert_int_equal(wb_linewriter_append(writer, line, (size_t)len), 0);
    }
    assert_int_equal(wb_linewriter_finish(writer), 0);
}

/* Reads what write_lines() wrote; returns the number of lines before the end or an error, which is in *end_out. */
static inline size_t read_lines(const char *name, int *end_out)
{
    struct wb_linereader *reader;
    struct wb_slice line;
    char expected[64];
    size_t count = 0;

    assert_int_equal(wb_linereader_open(test_path(name), &reader), 0);
    while ((*end_out = wb_linereader_next(reader, &line)) == 1) {
        snprintf(expected, sizeof expected, "%zu\thttp://example.org/page/%zu", count, count * 7919);
        assert_true(wb_slice_equal(line, wb_slice_str(expected)));
        count++;
        assert_int_equal(wb_linereader_number(reader), count);
    }
    wb_linereader_close(reader);
    return count;
}

#endif
