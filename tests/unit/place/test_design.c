/*
 * test_design.c - the notation of designs: every design and its spellings, and texts that are not designs.
 */
#include "base/error.h"
#include "place/design.h"
#include "unit/expect.h"

/* All 42 designs are different, and each is read back from its own text, with and without blanks. */
static void test_all(void **state)
{
    char seen[64][WB_DESIGN_TEXT_MAX], spaced[4 * WB_DESIGN_TEXT_MAX];
    struct wb_design design, again;
    unsigned count = 0;

    (void)state;
    for (; wb_design_nth(count, &design); count++) {
        assert_true(count < 64);
        wb_design_format(&design, seen[count]);
        for (unsigned i = 0; i < count; i++)
            assert_string_not_equal(seen[i], seen[count]);
        assert_int_equal(wb_design_parse(wb_slice_str(seen[count]), &again), 0);
        assert_memory_equal(&again, &design, sizeof design);
        size_t n = 0;
        spaced[n++] = ' ';
        for (const char *c = seen[count]; *c; c++) {
            bool mark = strchr("[](),", *c) != NULL;
            if (mark)
                spaced[n++] = count % 2 ? ' ' : '\n';
            spaced[n++] = *c;
            if (mark)
                spaced[n++] = count % 3 ? '\t' : '\r';
        }
        assert_int_equal(wb_design_parse(wb_slice(spaced, n), &again), 0);
        assert_memory_equal(&again, &design, sizeof design);
    }
    assert_int_equal(count, 6 + 36);
    assert_string_equal(seen[0], "Incr[hash,log]");
    assert_string_equal(seen[41], "Batch[U(uniform,hashed-log),R(uniform,hashed-log)]");
}

static void test_refused(void **state)
{
    static const struct {
        const char *text, *named;
    } wrong[] = {
        {"", "design"},
        {"Incr", "Incr"},
        {"Incr[]", "Incr[]"},
        {"Incr[hash]", "Incr[hash]"},
        {"Incr[hash,log", "Incr[hash,log"},
        {"Incr[hash,log]x", "Incr[hash,log]x"},
        {"Incr[hash,log,log]", "Incr[hash,log,log]"},
        {"Incr[log,hash]", "log"},
        {"Incr[moon,log]", "moon"},
        {"Incr[hash,drawer]", "drawer"},
        {"Incr[hash, hashed - log]", "hashed (log"},
        {"incr[hash,log]", "incr"},
        {"Incr[U(hash,log),R(hash,log)]", "Incr[U("},
        {"Batch[hash,log]", "Batch[hash,log]"},
        {"Batch[U(hash,log)]", "Batch[U(hash,log)]"},
        {"Batch[R(hash,log),U(hash,log)]", "Batch[R("},
        {"Batch[U(hash,log),U(hash,log)]", "U(hash,log),U("},
        {"Batch[U(hash,log),R(hash,pile)]", "pile"},
    };
    struct wb_design design;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(wb_design_parse(wb_slice_str(wrong[i].text), &design), WB_E_INVALID);
        assert_non_null(strstr(wb_error_message(), wrong[i].named));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all), cmocka_unit_test(test_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
