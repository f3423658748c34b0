/* test_rowmerge.c - random runs of rows, compared with a map of all rows; disorder, failures, many runs, large rows. */
#include "vault/rowmerge.h"
#include "../faultkinds.h"
#include "../must.h"
#include "../rounds.h"
#include "../testroot.h"

#include "base/bytes.h"

bool in_child;

enum { TABLES = 3, KEYS = 40, PARTS = 2 };

/* What a row is in the end. One byte of each key is its number, and the rest is of any length. */
struct twin {
    uint64_t value[PARTS][TABLES][KEYS]; /* seed of the value; 0: not there */
};

static struct wb_slice key_of(unsigned number, char *out)
{
    memset(out, (int)number, 64);
    return wb_slice(out, 1 + number % 7 * 9); /* some are prefixes of what follows */
}

/* Good until the next call. The test itself allocates nothing, so that every failure is one of what it tests. */
static struct wb_slice value_of(uint64_t seed)
{
    static char bytes[100000];
    size_t len = seed % 97 == 0 ? sizeof bytes : seed % 50;

    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(seed >> (i % 8 * 8));
    return wb_slice(bytes, len);
}

/* Some rows of the tables, in order, as runs that share them; into the twin as well. */
static int add_runs(struct wb_rowmerge *merge, struct twin *twin, size_t part, uint64_t age, uint64_t density,
                    uint64_t *chance)
{
    struct wb_rowrun run;
    char key[64];
    int err = 0;

    wb_rowrun_begin(&run, merge, part, age);
    for (unsigned table = 0; table < TABLES && err == 0; table++)
        for (unsigned n = 0; n < KEYS && err == 0; n++) {
            if (!chance_one_in(chance, density))
                continue;
            uint64_t seed = chance_one_in(chance, 3) ? 0 : chance_next(chance) | 1;
            twin->value[part][table][n] = seed;
            err = wb_rowrun_add(&run, table, key_of(n, key), seed ? value_of(seed) : wb_slice(NULL, 0));
            if (err == 0 && chance_one_in(chance, 10)) { /* the next object of the same shipment */
                err = wb_rowrun_end(&run);
                if (err == 0)
                    wb_rowrun_begin(&run, merge, part, age);
            }
        }
    if (err == 0)
        err = wb_rowrun_end(&run);
    wb_rowrun_release(&run);
    return err;
}

struct comparison {
    const struct twin *twin;
    size_t part;
    unsigned next; /* the row that is expected at the earliest: table * KEYS + number */
};

static unsigned skip_missing(const struct comparison *c)
{
    unsigned at = c->next;

    while (at < TABLES * KEYS && !c->twin->value[c->part][at / KEYS][at % KEYS])
        at++;
    return at;
}

static int compare_row(void *context, unsigned table, struct wb_slice key, struct wb_slice value)
{
    struct comparison *c = context;
    unsigned at = skip_missing(c);
    char expected[64];

    must(at < TABLES * KEYS && table == at / KEYS);
    must(wb_slice_equal(key, key_of(at % KEYS, expected)));
    must(wb_slice_equal(value, value_of(c->twin->value[c->part][table][at % KEYS])));
    c->next = at + 1;
    return 0;
}

static int compare_part(struct wb_rowmerge *merge, const struct twin *twin, size_t part)
{
    struct comparison c = {.twin = twin, .part = part};
    int err = wb_rowmerge_each(merge, part, compare_row, &c);

    if (err == 0)
        must(skip_missing(&c) == TABLES * KEYS);
    return err;
}

static int one_chain(unsigned ages, uint64_t *chance)
{
    struct wb_rowmerge *merge = NULL;
    struct twin twin = {0};
    int err = wb_rowmerge_new(test_root, &merge);

    for (size_t part = PARTS; part-- > 0 && err == 0;) /* in any order */
        for (unsigned age = 0; age < ages && err == 0; age++)
            err = add_runs(merge, &twin, part, age, age == 0 ? 2 : 20, chance);
    for (size_t part = 0; part < PARTS && err == 0; part++)
        err = compare_part(merge, &twin, part);
    wb_rowmerge_free(merge);
    return err;
}

static void test_chains(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned round = 0; round < test_rounds(300); round++)
        must_ok(one_chain((unsigned)chance_below(&chance, 12), &chance));
}

/* More runs than are merged at once. */
static void test_long_chain(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    must_ok(one_chain(1030 + (unsigned)chance_below(&chance, 1300), &chance));
}

static void test_failures(void **state)
{
    uint64_t chance = test_seed();
    unsigned struck = 0;

    (void)state;
    for (size_t kind = 0; kind < sizeof fault_kinds / sizeof fault_kinds[0]; kind++)
        for (uint64_t n = 1;; n += 1 + chance_below(&chance, 3)) {
            uint64_t same = 7;
            wb_fault_arm(fault_kinds[kind].kind, n, fault_kinds[kind].error);
            int err = one_chain(9, &same);
            wb_fault_disarm();
            if (!wb_fault_struck()) {
                must_ok(err);
                break;
            }
            must(err < 0 || fault_kinds[kind].kind == WB_FAULT_ALLOC); /* giving memory back may fail unnoticed */
            struck++;
        }
    must(struck > 10);
}

static void test_order(void **state)
{
    struct wb_rowmerge *merge;
    struct wb_rowrun run;

    (void)state;
    must_ok(wb_rowmerge_new(test_root, &merge));
    wb_rowrun_begin(&run, merge, 0, 0);
    must_ok(wb_rowrun_add(&run, 1, WB_SLICE_LIT("b"), WB_SLICE_LIT("")));
    must(wb_rowrun_add(&run, 1, WB_SLICE_LIT("b"), WB_SLICE_LIT("")) == WB_E_CORRUPT);
    must(wb_rowrun_add(&run, 1, WB_SLICE_LIT("a"), WB_SLICE_LIT("")) == WB_E_CORRUPT);
    must(wb_rowrun_add(&run, 0, WB_SLICE_LIT("c"), WB_SLICE_LIT("")) == WB_E_CORRUPT);
    must_ok(wb_rowrun_add(&run, 1, WB_SLICE_LIT("bb"), WB_SLICE_LIT("")));
    must_ok(wb_rowrun_add(&run, 2, WB_SLICE_LIT(""), WB_SLICE_LIT("")));
    wb_rowrun_release(&run);
    wb_rowmerge_free(merge);
}

static int stop_at_third(void *context, unsigned table, struct wb_slice key, struct wb_slice value)
{
    (void)table;
    (void)key;
    (void)value;
    return ++*(unsigned *)context == 3 ? 7 : 0;
}

static void test_end_of_walk(void **state)
{
    struct wb_rowmerge *merge;
    struct wb_rowrun run;
    unsigned count = 0;
    char key[4];

    (void)state;
    must_ok(wb_rowmerge_new(test_root, &merge));
    must(wb_rowmerge_each(merge, 0, stop_at_third, &count) == 0 && count == 0);
    wb_rowrun_begin(&run, merge, 0, 0);
    for (uint32_t i = 0; i < 9; i++) {
        wb_put32_be(key, i);
        must_ok(wb_rowrun_add(&run, 0, wb_slice(key, sizeof key), WB_SLICE_LIT("")));
    }
    must_ok(wb_rowrun_end(&run));
    must(wb_rowmerge_each(merge, 0, stop_at_third, &count) == 7 && count == 3);
    wb_rowmerge_free(merge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains), cmocka_unit_test(test_long_chain),  cmocka_unit_test(test_failures),
        cmocka_unit_test(test_order),  cmocka_unit_test(test_end_of_walk),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
