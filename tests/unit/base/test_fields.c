/* test_fields.c - fields of packed records are read back as written; a cut record is not read past its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../seeded.h"
#include "base/fields.h"

enum { FIELDS_MAX = 40, TEXT_MAX = 30, ROUNDS = 2000 };

enum kind { NUMBER, SIGNED, TIME, TEXT, DOUBLE, SHORT_DOUBLE, BYTE, KINDS };

struct field {
    enum kind kind;
    uint64_t bits; /* the number; a double's bits; the length of a text */
};

static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
static const int64_t from_ms = 1700000000000;

static double to_double(uint64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

static uint64_t to_bits(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static struct field random_field(uint64_t *chance)
{
    struct field field = {(enum kind)chance_below(chance, KINDS), chance_next(chance) >> chance_below(chance, 64)};

    if (chance_one_in(chance, 4))
        field.bits = 0 - field.bits;
    if (field.kind == TEXT)
        field.bits %= TEXT_MAX;
    if (field.kind == BYTE)
        field.bits &= 0xff;
    if (field.kind == SHORT_DOUBLE)
        field.bits = to_bits((double)(field.bits % 1000) / 8);
    return field;
}

static char *put_field(char *p, struct field field)
{
    switch (field.kind) {
    case NUMBER:
        return wb_fields_put(p, field.bits);
    case SIGNED:
        return wb_fields_put_signed(p, (int64_t)field.bits);
    case TIME:
        return wb_fields_put_time(p, (int64_t)field.bits, from_ms);
    case TEXT:
        return wb_fields_put_text(p, wb_slice(letters, (size_t)field.bits));
    case DOUBLE:
        return wb_fields_put_double(p, to_double(field.bits));
    case SHORT_DOUBLE:
        return wb_fields_put_short_double(p, to_double(field.bits));
    default:
        *p = (char)field.bits;
        return p + 1;
    }
}

/* What is read of a field, in the form of struct field. */
static uint64_t take_field(struct wb_fields *fields, enum kind kind)
{
    struct wb_slice text;

    switch (kind) {
    case NUMBER:
        return wb_fields_take(fields, UINT64_MAX);
    case SIGNED:
        return (uint64_t)wb_fields_take_signed(fields);
    case TIME:
        return (uint64_t)wb_fields_take_time(fields, from_ms);
    case TEXT:
        text = wb_fields_take_text(fields);
        assert_true(text.len == 0 || (text.ptr + text.len <= fields->end && text.len < TEXT_MAX));
        assert_memory_equal(text.len ? text.ptr : letters, letters, text.len);
        return text.len;
    case DOUBLE:
        return to_bits(wb_fields_take_double(fields));
    case SHORT_DOUBLE:
        return to_bits(wb_fields_take_short_double(fields));
    default:
        return wb_fields_take_byte(fields);
    }
}

static void check_record(uint64_t *chance)
{
    struct field written[FIELDS_MAX];
    char record[FIELDS_MAX * (TEXT_MAX + WB_VARINT_MAX)], *p = record;
    size_t count = chance_below(chance, FIELDS_MAX);

    for (size_t i = 0; i < count; i++)
        p = put_field(p, written[i] = random_field(chance));
    struct wb_fields fields = wb_fields_of(wb_slice(record, (size_t)(p - record)));
    for (size_t i = 0; i < count; i++)
        assert_true(take_field(&fields, written[i].kind) == written[i].bits);
    assert_true(fields.ok && fields.at == fields.end);
    if (p == record)
        return;
    /* Cut somewhere: fails, and stays failed. */
    fields = wb_fields_of(wb_slice(record, chance_below(chance, (uint64_t)(p - record))));
    for (size_t i = 0; i < count; i++) {
        bool was_ok = fields.ok;
        take_field(&fields, written[i].kind);
        assert_true(fields.at <= fields.end && (was_ok || !fields.ok));
    }
    assert_false(fields.ok);
    assert_int_equal(wb_fields_take(&fields, UINT64_MAX), 0);
    assert_int_equal(wb_fields_take_text(&fields).len, 0);
    assert_null(wb_fields_take_bytes(&fields, 0));
}

static void test_model(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned i = 0; i < ROUNDS; i++)
        check_record(&chance);
}

static void test_limits(void **state)
{
    struct wb_fields fields = wb_fields_of(WB_SLICE_LIT("\x05\x80\x02"));
    char bytes[16];

    (void)state;
    assert_int_equal(wb_fields_take(&fields, 5), 5);
    assert_int_equal(wb_fields_take(&fields, 255), 0); /* 256 is there */
    assert_false(fields.ok);
    assert_int_equal(wb_fields_put_short_double(bytes, 1.0) - bytes, 3);
    assert_int_equal(wb_fields_put_short_double(bytes, 0.0) - bytes, 1);
    assert_int_equal(wb_fields_put_signed(bytes, -1) - bytes, 1);
    assert_int_equal(wb_zigzag((uint64_t)-1), 1);
    assert_true(wb_unzigzag(wb_zigzag(UINT64_C(1) << 63)) == UINT64_C(1) << 63);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_model), cmocka_unit_test(test_limits)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
