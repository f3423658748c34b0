/*
 * test_parquet.c - random tables, with small pages and groups, are read back by hyparquet, which is not ours
 * (tests/e2e/read_parquet.mjs): every value, and bounds that hold. The bytes depend on the rows alone, and every
 * failure of memory or of the sink ends the work with its code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../seeded.h"
#include "../sourceroot.h"
#include "../testroot.h"
#include "base/buf.h"
#include "base/date.h"
#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "os/fault.h"
#include "os/path.h"
#include "parquet/parquet.h"

#include <errno.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define OK(call) assert_int_equal((call), 0)

static uint64_t chance;

static uint32_t test_below(uint32_t n)
{
    return (uint32_t)chance_below(&chance, n);
}

/* One column of each kind and each form. */
static const struct wb_parquet_column columns[] = {
    {"url", WB_PARQUET_TEXT, true},     {"title", WB_PARQUET_TEXT, false},    {"status", WB_PARQUET_WHOLE, true},
    {"depth", WB_PARQUET_WHOLE, false}, {"rank", WB_PARQUET_NUMBER, true},    {"trust", WB_PARQUET_NUMBER, false},
    {"time", WB_PARQUET_TIME, true},    {"modified", WB_PARQUET_TIME, false}, {"never", WB_PARQUET_TEXT, false},
};

enum { COLUMNS = COUNT(columns) };

/* ---- random rows ---------------------------------------------------------------------------------- */

/* Characters at the edges of lengths, of surrogates, and of Unicode. */
static const uint32_t characters[] = {'a', 'b', 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff};

/* Long texts often have long beginnings in common. wild: with bytes that are not UTF-8. */
static void random_text(struct wb_buf *text, bool wild)
{
    size_t len = test_below(4) ? test_below(20) : test_below(100) ? test_below(200) : 50000;
    uint32_t common = characters[test_below(COUNT(characters))];
    char bytes[4];

    wb_buf_clear(text);
    while (text->len < len) {
        uint32_t cp = test_below(3) ? common : characters[test_below(COUNT(characters))];
        OK(wb_buf_append(text, bytes, wb_utf8_encode(cp, bytes)));
        if (wild && test_below(10) == 0)
            OK(wb_buf_append_char(text, (char)(0x80 + test_below(0x80))));
    }
}

static int64_t random_whole(void)
{
    switch (test_below(5)) {
    case 0:
        return test_below(2) ? INT64_MAX : INT64_MIN;
    case 1:
        return -(int64_t)test_below(1000);
    default:
        return (int64_t)test_below(1u << test_below(32));
    }
}

static double random_number(void)
{
    static const double some[] = {0, -0.0, 1e308, -1e308, 5e-324, 0.1, -0.1};

    return test_below(3) ? (double)test_below(1000) / 7 - 50 : some[test_below(COUNT(some))];
}

struct row {
    struct wb_parquet_cell cells[COLUMNS];
    struct wb_buf texts[COLUMNS];
};

static void random_row(struct row *row, unsigned missing, bool wild)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        struct wb_parquet_cell *cell = &row->cells[i];
        *cell = (struct wb_parquet_cell){.known = columns[i].always || (i + 1 < COLUMNS && test_below(100) >= missing)};
        if (!cell->known)
            continue;
        random_text(&row->texts[i], wild);
        cell->text = wb_buf_slice(&row->texts[i]);
        cell->number = random_number();
        cell->whole = columns[i].kind == WB_PARQUET_TIME
                          ? (int64_t)test_below(1u << 31) * 1000 + (int64_t)test_below(1000)
                          : random_whole();
    }
}

static void release_row(struct row *row)
{
    for (size_t i = 0; i < COLUMNS; i++)
        wb_buf_release(&row->texts[i]);
}

/* What the reader should see. */
static void put_expected(const struct row *row, struct wb_buf *out)
{
    char text[64];
    struct wb_json j;

    wb_json_init(&j, out);
    wb_json_object(&j);
    for (size_t i = 0; i < COLUMNS; i++) {
        const struct wb_parquet_cell *cell = &row->cells[i];
        wb_json_key(&j, columns[i].name);
        if (!cell->known) {
            wb_json_null(&j);
        } else if (columns[i].kind == WB_PARQUET_TEXT) {
            wb_json_slice(&j, cell->text);
        } else if (columns[i].kind == WB_PARQUET_NUMBER) {
            wb_json_double_exact(&j, cell->number);
        } else if (columns[i].kind == WB_PARQUET_TIME) {
            wb_date_format(cell->whole, text);
            wb_json_str(&j, text);
        } else if (cell->whole < -(INT64_C(1) << 53) || cell->whole > INT64_C(1) << 53) {
            snprintf(text, sizeof text, "%lld", (long long)cell->whole);
            wb_json_str(&j, text);
        } else {
            wb_json_i64(&j, cell->whole);
        }
    }
    wb_json_object_end(&j);
    OK(wb_json_line(&j));
}

/* ---- tables --------------------------------------------------------------------------------------- */

static int collect(void *context, const void *bytes, size_t len)
{
    return wb_buf_append(context, bytes, len);
}

/* Writes a table that depends on the seed alone. */
static int write_table(uint64_t seed, size_t rows, const struct wb_parquet_limits *limits, bool wild,
                       struct wb_buf *out, struct wb_buf *expected)
{
    struct wb_parquet *parquet = NULL;
    struct row row = {0};

    chance = seed;
    unsigned missing = (unsigned)(test_below(3) * 50);
    int err = wb_parquet_new(columns, COLUMNS, limits, collect, out, &parquet);
    for (size_t i = 0; err == 0 && i < rows; i++) {
        random_row(&row, missing, wild);
        err = wb_parquet_row(parquet, row.cells);
        if (expected && err == 0)
            put_expected(&row, expected);
    }
    if (err == 0)
        err = wb_parquet_finish(parquet);
    wb_parquet_free(parquet);
    release_row(&row);
    return err;
}

static void write_whole(const char *path, const struct wb_buf *bytes)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes->ptr ? bytes->ptr : "", 1, bytes->len, f), bytes->len);
    assert_int_equal(fclose(f), 0);
}

static void test_round_trip(void **state)
{
    static const size_t sizes[] = {0, 1, 7, 8, 9, 100, 3000};
    char command[4096];

    (void)state;
    chance = test_seed();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct wb_parquet_limits limits = {1 + test_below(5000), 1 + test_below(200000), 1 + test_below(700)};
        struct wb_buf bytes = WB_BUF_INIT, again = WB_BUF_INIT, expected = WB_BUF_INIT;
        char table[1024], lines[1024];
        uint64_t seed = test_below(1u << 30), next = chance;
        OK(write_table(seed, sizes[i], &limits, i % 2, &bytes, &expected));
        OK(write_table(seed, sizes[i], &limits, i % 2, &again, NULL));
        chance = next;
        assert_int_equal(bytes.len, again.len);
        assert_memory_equal(bytes.ptr, again.ptr, bytes.len);
        snprintf(table, sizeof table, "%s", test_path("table.parquet"));
        snprintf(lines, sizeof lines, "%s", test_path("rows.jsonl"));
        write_whole(table, &bytes);
        write_whole(lines, &expected);
        snprintf(command, sizeof command, "node '%s/tests/e2e/read_parquet.mjs' '%s' '%s' >&2", test_source_root, table,
                 lines);
        assert_int_equal(system(command), 0);
        wb_buf_release(&bytes);
        wb_buf_release(&again);
        wb_buf_release(&expected);
    }
}

/* Memory is bounded by the limits: what a group needs is written when it is full. */
static void test_groups_are_written_when_they_are_full(void **state)
{
    struct wb_parquet_limits limits = {1000, 20000, 1000000};
    struct wb_parquet *parquet;
    struct wb_buf bytes = WB_BUF_INIT;
    struct row row = {0};
    size_t before = 0, writes = 0;

    (void)state;
    OK(wb_parquet_new(columns, COLUMNS, &limits, collect, &bytes, &parquet));
    for (size_t i = 0; i < 5000; i++) {
        random_row(&row, 0, false);
        OK(wb_parquet_row(parquet, row.cells));
        writes += bytes.len > before;
        before = bytes.len;
    }
    assert_true(writes >= 10);
    OK(wb_parquet_finish(parquet));
    wb_parquet_free(parquet);
    release_row(&row);
    wb_buf_release(&bytes);
}

/* ---- failures ------------------------------------------------------------------------------------- */

struct weak {
    unsigned left;
};

static int refuse(void *context, const void *bytes, size_t len)
{
    struct weak *weak = context;

    (void)bytes;
    (void)len;
    return weak->left-- == 0 ? wb_fail(WB_E_IO, "no room") : 0;
}

static void test_every_write_fails_once(void **state)
{
    struct wb_parquet_limits limits = {1000, 20000, 100};
    int err = WB_E_IO;

    (void)state;
    for (unsigned n = 0; err < 0; n++) {
        struct weak weak = {n};
        struct wb_parquet *parquet;
        struct row row = {0};
        chance = 7;
        err = wb_parquet_new(columns, COLUMNS, &limits, refuse, &weak, &parquet);
        for (size_t i = 0; err == 0 && i < 300; i++) {
            random_row(&row, 50, false);
            err = wb_parquet_row(parquet, row.cells);
        }
        if (parquet && err < 0) {
            assert_int_equal(wb_parquet_row(parquet, row.cells), WB_E_IO); /* it stays so */
            assert_int_equal(wb_parquet_finish(parquet), WB_E_IO);
        } else if (parquet) {
            err = wb_parquet_finish(parquet);
        }
        assert_true(err == 0 || err == WB_E_IO);
        wb_parquet_free(parquet);
        release_row(&row);
        assert_true(n < 1000);
    }
}

static void test_every_allocation_fails_once(void **state)
{
    struct wb_parquet_limits limits = {1000, 20000, 100};
    uint64_t seed = 11;

    (void)state;
    for (unsigned n = 1;; n++) {
        struct wb_parquet *parquet = NULL;
        struct row row = {0};
        struct weak strong = {UINT32_MAX};
        int err = 0;
        chance = seed;
        random_row(&row, 50, true);
        wb_fault_arm(WB_FAULT_ALLOC, n, ENOMEM);
        err = wb_parquet_new(columns, COLUMNS, &limits, refuse, &strong, &parquet);
        for (size_t i = 0; err == 0 && i < 250; i++)
            err = wb_parquet_row(parquet, row.cells);
        if (err == 0)
            err = wb_parquet_finish(parquet);
        wb_fault_disarm();
        bool struck = wb_fault_struck();
        assert_int_equal(err, struck ? WB_E_NOMEM : 0);
        wb_parquet_free(parquet);
        release_row(&row);
        if (!struck)
            break;
        assert_true(n < 10000);
    }
}

static void test_what_cannot_be_written_is_refused(void **state)
{
    static const struct wb_parquet_column time[] = {{"modified", WB_PARQUET_TIME, true}};
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_parquet *parquet;

    (void)state;
    OK(wb_parquet_new(time, 1, &WB_PARQUET_LIMITS, collect, &bytes, &parquet));
    struct wb_parquet_cell cell = {.known = true, .whole = INT64_MAX / 10};
    assert_int_equal(wb_parquet_row(parquet, &cell), WB_E_LIMIT);
    assert_non_null(strstr(wb_error_message(), "modified"));
    wb_parquet_free(parquet);
    wb_buf_release(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_groups_are_written_when_they_are_full),
        cmocka_unit_test(test_every_write_fails_once),
        cmocka_unit_test(test_every_allocation_fails_once),
        cmocka_unit_test(test_what_cannot_be_written_is_refused),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
