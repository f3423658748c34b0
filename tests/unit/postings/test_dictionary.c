/*
 * test_dictionary.c - terms are found by key and listed by prefix, however many there are; terms with the same postings
 * share a list; mistakes of a caller are refused.
 */
#include "postings_support.h"

enum { DOCS = 5000 };

static uint8_t lengths[DOCS];

static struct wb_slice key_of(const struct model *model)
{
    return wb_slice(model->key, model->key_len);
}

static int compare_models(const void *x, const void *y)
{
    return wb_slice_compare(key_of(x), key_of(y));
}

/* Random terms, in order, without repetitions; many have long common prefixes. */
static size_t random_terms(uint64_t *chance, struct model *models, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        bool many = chance_one_in(chance, 50);
        models[i] = random_model(chance, 1 + (uint32_t)chance_below(chance, many ? 300 : 4), chance_below(chance, 1000),
                                 1 + chance_below(chance, 6), chance_below(chance, 2), lengths);
        int len = snprintf(models[i].key, sizeof models[i].key, "%.*s%llu", (int)chance_below(chance, 30),
                           "internationalisationandsoonforever", (unsigned long long)chance_below(chance, 3 * count));
        models[i].key_len = (size_t)len;
        if (chance_one_in(chance, 4))
            models[i].key[chance_below(chance, models[i].key_len)] = (char)chance_next(chance);
    }
    qsort(models, count, sizeof *models, compare_models);
    for (size_t i = 0; i < count; i++)
        if (kept && wb_slice_equal(key_of(&models[kept - 1]), key_of(&models[i])))
            model_release(&models[i]);
        else
            models[kept++] = models[i];
    return kept;
}

/* The walk goes from the first key that is not below `from` to the end. */
static void try_walk(struct wb_postings *set, const struct model *models, size_t count, struct wb_slice from)
{
    struct wb_terms *terms;
    struct wb_slice key;
    struct wb_term term;
    size_t i = 0;

    OK(wb_terms_open(set, &terms));
    if (from.len || count % 2)
        OK(wb_terms_seek(terms, from));
    while (i < count && wb_slice_compare(key_of(&models[i]), from) < 0)
        i++;
    for (size_t steps = 0; i < count && steps < 3000; i++, steps++) {
        assert_int_equal(wb_terms_next(terms, &key, &term), 1);
        assert_true(wb_slice_equal(key, key_of(&models[i])));
        assert_int_equal(term.df, models[i].count);
        assert_true(term.total == models[i].total);
    }
    if (i == count)
        assert_int_equal(wb_terms_next(terms, &key, &term), 0);
    wb_terms_close(terms);
}

static void test_find(void **state)
{
    static const size_t counts[] = {0, 1, 2, 15, 16, 17, 33, 500, 20000};
    uint64_t chance = test_seed();

    (void)state;
    for (size_t c = 0; c < COUNT(counts); c++) {
        struct model *models = calloc(counts[c] + 1, sizeof *models);
        size_t count = random_terms(&chance, models, counts[c]);
        struct wb_postings *set;
        struct wb_term term;
        struct wb_postings_stat stat = write_models(test_path("set"), models, count, lengths, DOCS);
        OK(wb_postings_open(test_path("set"), lengths, DOCS, &set));
        assert_int_equal(set->terms, count);
        assert_int_equal(stat.terms, count);
        assert_true(counts[c] < 20000 || (set->pages > 20 && stat.inlined > count / 2));
        for (size_t i = 0; i < count; i++) {
            struct wb_postlist *list = open_list(set, &models[i]);
            assert_posting(list, &models[i], 0);
            wb_postlist_close(list);
        }
        for (unsigned n = 0; n < 300; n++) { /* keys that are hardly ever there */
            char other[80];
            int len =
                snprintf(other, sizeof other, "%.*s%llu", (int)chance_below(&chance, 36),
                         "internationalisationandsoonforever?", (unsigned long long)chance_below(&chance, 200000));
            struct wb_slice key = wb_slice(other, (size_t)len);
            bool there = false;
            for (size_t i = 0; i < count && !there; i++)
                there = wb_slice_equal(key, key_of(&models[i]));
            assert_int_equal(wb_postings_find(set, key, &term), there);
            if (n < 30)
                try_walk(set, models, count, wb_slice(other, (size_t)chance_below(&chance, (uint64_t)len + 1)));
        }
        assert_int_equal(wb_postings_find(set, WB_SLICE_EMPTY, &term), 0);
        try_walk(set, models, count, WB_SLICE_EMPTY);
        wb_postings_close(set);
        for (size_t i = 0; i < count; i++)
            model_release(&models[i]);
        free(models);
    }
}

/* The same postings without positions. */
static struct model stem_of(const struct model *model)
{
    struct model stem = *model;

    stem.postings = malloc(model->count * sizeof *stem.postings);
    assert_non_null(stem.postings);
    memcpy(stem.postings, model->postings, model->count * sizeof *stem.postings);
    for (uint32_t i = 0; i < model->count; i++)
        stem.postings[i].gap_count = 0;
    stem.positions = false;
    stem.gaps = NULL;
    return stem;
}

static void test_aliases(void **state)
{
    uint64_t chance = test_seed();
    static struct model models[400];
    size_t shared = 0;
    struct wb_postings *set;

    (void)state;
    for (size_t i = 0; i < COUNT(models); i += 2) {
        uint32_t count = 1 + (uint32_t)chance_below(&chance, chance_below(&chance, 2) ? 5 : 400);
        models[i] = random_model(&chance, count, 0, 1 + chance_below(&chance, 9), true, lengths);
        models[i + 1] = stem_of(&models[i]);
        if (chance_one_in(&chance, 3)) { /* one frequency is different */
            struct wb_posting *posting = &models[i + 1].postings[chance_below(&chance, count)];
            posting->frequency[chance_below(&chance, WB_FIELDS)]++;
            models[i + 1].total++;
        } else {
            shared++;
        }
        char key[16];
        snprintf(key, sizeof key, "word%04zu_", i);
        name_model(&models[i], key);
        name_model(&models[i + 1], key);
        models[i].key[models[i].key_len - 1] = 'E';
        models[i + 1].key[models[i].key_len - 1] = 'S';
    }
    struct wb_postings_stat stat = write_models(test_path("set"), models, COUNT(models), lengths, DOCS);
    assert_int_equal(stat.aliases, shared);
    OK(wb_postings_open(test_path("set"), lengths, DOCS, &set));
    for (size_t i = 0; i < COUNT(models); i++) {
        struct wb_postlist *list = open_list(set, &models[i]);
        for (uint32_t k = 0; k < models[i].count; k++, wb_postlist_next(list))
            assert_posting(list, &models[i], k);
        assert_int_equal(list->docid, WB_DOCID_END);
        wb_postlist_close(list);
    }
    wb_postings_close(set);
    for (size_t i = 0; i < COUNT(models); i++)
        model_release(&models[i]);
}

static void test_refused(void **state)
{
    struct wb_postings_writer *writer;
    struct wb_postings_output *output;
    struct wb_postings_part part;
    uint32_t gaps[4] = {0};
    struct wb_posting one = {.docid = 5, .frequency = {[WB_FIELD_MAIN] = 1}, .gaps = gaps, .gap_count = 1};
    static const char long_key[WB_TERM_MAX + 1] = {'a'};

    (void)state;
    for (int way = 0; way < 8; way++) {
        struct wb_posting bad = one;
        int err = 0;
        OK(wb_postings_writer_new(lengths, DOCS, &writer));
        OK(wb_postings_begin(writer, WB_SLICE_LIT("m"), true));
        OK(wb_postings_add(writer, &one));
        bad.docid = way == 0 ? 5 : way == 1 ? DOCS : 6;
        bad.gap_count = way == 2 ? 0 : 1;
        bad.frequency[WB_FIELD_MAIN] = way == 3 ? 0 : 1;
        if (way == 4)
            bad.frequency[WB_FIELD_OTHER] = (1u << 30) + 1;
        if (way < 5)
            err = wb_postings_add(writer, &bad);
        else
            OK(wb_postings_end(writer));
        if (way == 5)
            err = wb_postings_begin(writer, WB_SLICE_LIT("m"), true);
        if (way == 6)
            err = wb_postings_begin(writer, WB_SLICE_EMPTY, true);
        if (way == 7)
            err = wb_postings_begin(writer, wb_slice(long_key, sizeof long_key), true);
        assert_int_equal(err, WB_E_INVALID);
        assert_int_equal(wb_postings_take(writer, &part), WB_E_INVALID); /* it stays refused */
        wb_postings_writer_free(writer);
    }
    /* Ranges: not in order, or cut between two terms that may share a list. */
    for (int way = 0; way < 2; way++) {
        OK(wb_path_mkdirs(test_path("refused")));
        OK(wb_postings_create(test_path("refused"), &output));
        for (int range = 0; range < 2; range++) {
            OK(wb_postings_writer_new(lengths, DOCS, &writer));
            OK(wb_postings_begin(writer,
                                 range == 0 ? WB_SLICE_LIT("wordE")
                                 : way      ? WB_SLICE_LIT("wordS")
                                            : WB_SLICE_LIT("word"),
                                 true));
            OK(wb_postings_add(writer, &one));
            OK(wb_postings_end(writer));
            OK(wb_postings_take(writer, &part));
            assert_int_equal(wb_postings_append(output, &part), range ? WB_E_INVALID : 0);
            wb_postings_part_release(&part);
            wb_postings_writer_free(writer);
        }
        assert_int_equal(wb_postings_finish(output, NULL), WB_E_INVALID);
    }
}

/* A list without postings leaves no trace. */
static void test_empty_list(void **state)
{
    uint64_t chance = test_seed();
    struct model models[3] = {
        random_model(&chance, 3, 7, 2, true, lengths), {.count = 0}, random_model(&chance, 200, 7, 2, false, lengths)};
    struct wb_postings_stat stat;

    (void)state;
    name_model(&models[0], "a");
    name_model(&models[1], "b");
    name_model(&models[2], "c");
    stat = write_models(test_path("with"), models, 3, lengths, DOCS);
    assert_int_equal(stat.terms, 2);
    struct model without[2] = {models[0], models[2]};
    write_models(test_path("without"), without, 2, lengths, DOCS);
    assert_same_set(test_path("with"), test_path("without"));
    model_release(&models[0]);
    model_release(&models[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_empty_list),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
