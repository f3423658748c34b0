/*
 * test_weights.c - the numbers that scores are made of: weights, length bytes, codes, impacts, scorers.
 */
#include "postings_support.h"

#include <math.h>

static void test_weight(void **state)
{
    uint32_t frequency[WB_FIELDS] = {0};

    (void)state;
    assert_int_equal(wb_posting_weight(frequency), 0);
    frequency[WB_FIELD_MAIN] = 3;
    assert_int_equal(wb_posting_weight(frequency), 12);
    frequency[WB_FIELD_OTHER] = 5;
    assert_int_equal(wb_posting_weight(frequency), 17);
    frequency[WB_FIELD_HEADING] = 1;
    frequency[WB_FIELD_TITLE] = 2;
    frequency[WB_FIELD_URL] = 1;
    assert_int_equal(wb_posting_weight(frequency), 17 + 8 + 64 + 6);
    static const uint32_t damped[][2] = {{1, 1}, {2, 2}, {3, 2}, {4, 3}, {1000, 10}, {UINT32_MAX, 32}};
    for (size_t i = 0; i < COUNT(damped); i++) {
        frequency[WB_FIELD_ANCHOR] = damped[i][0];
        assert_int_equal(wb_posting_weight(frequency), 95 + 8 * damped[i][1]);
    }
    frequency[WB_FIELD_TITLE] = UINT32_MAX;
    assert_int_equal(wb_posting_weight(frequency), WB_WEIGHT_MAX);
}

static void test_length_byte(void **state)
{
    (void)state;
    for (uint64_t words = 0; words <= 24; words++)
        assert_int_equal(wb_length_byte(words), words);
    for (unsigned byte = 0; byte < 255; byte++) {
        uint64_t words = wb_length_of_byte((uint8_t)byte), next = wb_length_of_byte((uint8_t)(byte + 1));
        assert_true(words < next);
        assert_int_equal(wb_length_byte(words), byte);
        assert_int_equal(wb_length_byte(next - 1), byte);
        if (byte >= 24) /* 8 steps per doubling */
            assert_true((double)next / (double)words <= 1.1251);
        if (byte >= 32)
            assert_true(wb_length_of_byte((uint8_t)(byte - 8)) * 2 == words || byte < 36);
    }
    assert_int_equal(wb_length_byte(UINT64_MAX), 255);
}

static void test_weight_codes(void **state)
{
    (void)state;
    for (uint32_t weight = 0; weight <= WB_WEIGHT_MAX; weight++) {
        uint8_t code = wb_weight_code(weight);
        assert_true(wb_weight_of_code(code) >= weight);
        assert_true(weight == 0 || wb_weight_of_code((uint8_t)(code - 1)) < weight);
        float f = (float)weight;
        wb_vec4 four = wb_weight_code4((wb_float4){f, f, f, f});
        assert_true(four[0] == code && four[3] == code);
        assert_true(wb_weight_of_code4((wb_vec4){code, 0, 0, code})[3] == (float)wb_weight_of_code(code));
    }
}

/* A code and its extra bytes give the frequencies and the weight back. */
static void test_codes(void **state)
{
    uint64_t chance = test_seed(), sum;
    uint32_t frequency[WB_FIELDS], back[WB_FIELDS];
    uint8_t extra[WB_POSTING_EXTRA_MAX];
    size_t len;

    (void)state;
    for (unsigned round = 0; round < 100000; round++) {
        random_frequencies(&chance, frequency);
        if (chance_one_in(&chance, 10))
            frequency[chance_below(&chance, WB_FIELDS)] = 1u << chance_below(&chance, 31);
        uint32_t code = wb_code_put(frequency, extra, &len);
        assert_ptr_equal(wb_code_frequencies(code, extra, extra + len, back), extra + len);
        assert_memory_equal(back, frequency, sizeof back);
        assert_int_equal(wb_code_weight(code), wb_posting_weight(frequency));
        wb_float4 four = wb_code_weight4((wb_vec4){code, code, code, code});
        assert_true(four[1] == (float)wb_code_weight(code));
        if (code & 1) {
            assert_ptr_equal(wb_code_occurrences(code, extra, extra + len, &sum), extra + len);
            assert_true(sum == wb_occurrences(frequency));
            for (size_t cut = 0; cut < len; cut++)
                assert_null(wb_code_get(code, extra, extra + cut, back));
        }
    }
    for (uint32_t code = UINT32_MAX; code > UINT32_MAX - 9; code--) /* only a hostile writer makes these */
        assert_int_equal(wb_code_weight(code), WB_WEIGHT_MAX);
}

/* The impacts of any set of postings cover all of them, and are exact if there are few pairs. */
static void test_impacts(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned round = 0; round < 3000; round++) {
        struct wb_impact_table table;
        uint8_t impacts[IMPACTS_BYTES], lengths[200];
        uint32_t weights[200];
        size_t n = 1 + chance_below(&chance, round % 2 ? 200 : 8);
        struct wb_scorer scorer;
        uint32_t best = 0;
        wb_scorer_init(&scorer, 5 * chance_unit(&chance), 1.2, 0.75, 1 + (double)chance_below(&chance, 1000), 1);
        wb_impact_table_clear(&table);
        for (size_t i = 0; i < n; i++) {
            weights[i] = 1 + (uint32_t)chance_below(&chance, chance_one_in(&chance, 9) ? WB_WEIGHT_MAX : 32);
            lengths[i] = (uint8_t)chance_below(&chance, 256);
            wb_impact_table_add(&table, wb_weight_code(weights[i]), lengths[i]);
            uint32_t code_weight = wb_weight_of_code(wb_weight_code(weights[i]));
            uint32_t score = wb_score(&scorer, code_weight, lengths[i] < 254 ? lengths[i] : 254);
            best = score > best ? score : best;
        }
        wb_impact_table_put(&table, impacts);
        for (size_t i = 0; i < n; i++)
            assert_true(wb_impacts_cover(impacts, weights[i], lengths[i]));
        assert_true(wb_impacts_bound(impacts, &scorer) >= best);
        if (n <= IMPACTS_PAIRS)
            assert_int_equal(wb_impacts_bound(impacts, &scorer), best);
        assert_false(wb_impacts_cover(impacts, WB_WEIGHT_MAX + 10000, 255));
    }
}

static void test_scorer(void **state)
{
    struct wb_scorer scorer;
    uint64_t chance = test_seed();

    (void)state;
    assert_true(fabs(wb_idf(1000, 10) - log(1 + 990.5 / 10.5)) < 1e-12);
    wb_scorer_init(&scorer, 2, 1.2, 0.75, 100, 1);
    /* 3 occurrences in the main text of a page of 100 words: 2 * 3 / (3 + 1.2) * 2.2 */
    double want = 2.0 * 3 / (3 + 1.2 * (0.25 + 0.75 * (double)wb_length_of_byte(wb_length_byte(100)) / 100)) * 2.2;
    assert_true(fabs(wb_score(&scorer, 12, wb_length_byte(100)) / (double)WB_SCORE_ONE - want) < 1e-5);
    /* Never less for a greater weight or a shorter page, whatever the rounding. */
    for (unsigned round = 0; round < 20; round++) {
        wb_scorer_init(&scorer, 20 * chance_unit(&chance), 0.1 + 3 * chance_unit(&chance), chance_unit(&chance),
                       1 + (double)chance_below(&chance, 5000), 1);
        for (unsigned byte = 0; byte < 256; byte += 5)
            for (uint32_t weight = 0; weight < WB_WEIGHT_MAX; weight += 1 + weight / 40) {
                uint32_t score = wb_score(&scorer, weight, (uint8_t)byte);
                assert_true(wb_score(&scorer, weight + 1, (uint8_t)byte) >= score);
                assert_true(byte == 0 || wb_score(&scorer, weight, (uint8_t)(byte - 1)) >= score);
            }
    }
    wb_scorer_init(&scorer, 1e12, 1.2, 1, 0, 1); /* still a number */
    assert_true(wb_score(&scorer, WB_WEIGHT_MAX, 0) <= 1u << 30);
}

/* What x in wb_score() says about the length, in average lengths: b is 1, so that nothing else is in it. */
static double counted(const struct wb_scorer *scorer, uint64_t words)
{
    return 1 / (4 * 1.2 * (double)scorer->inverse[wb_length_byte(words)]);
}

/* Lengths count as they are up to four average lengths, then less, and more where a page is a whole book. */
static void test_counted_lengths(void **state)
{
    struct wb_scorer scorer;
    double before = 0;

    (void)state;
    wb_scorer_init(&scorer, 2, 1.2, 1, 128, 1);
    for (uint64_t words = 64; words <= 512; words *= 2)
        assert_true(fabs(counted(&scorer, words) - (double)words / 128) < 1e-5);
    assert_true(fabs(counted(&scorer, 16 * 512) - 4 * 8) < 1e-3);
    for (uint64_t words = 1024; words <= 64 * 128; words *= 2)
        assert_true(counted(&scorer, words) < 1.7 * counted(&scorer, words / 2));
    for (uint64_t words = 128 * 128; words <= 1024 * 128; words *= 2)
        assert_true(counted(&scorer, words) > 2.8 * counted(&scorer, words / 2));
    for (unsigned byte = 1; byte < 256; byte++) {
        double now = counted(&scorer, wb_length_of_byte((uint8_t)byte));
        assert_true(now > before);
        before = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weight), cmocka_unit_test(test_length_byte), cmocka_unit_test(test_weight_codes),
        cmocka_unit_test(test_codes),  cmocka_unit_test(test_impacts),     cmocka_unit_test(test_scorer),
        cmocka_unit_test(test_counted_lengths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
