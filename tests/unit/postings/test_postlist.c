/*
 * test_postlist.c - lists of all sizes and densities come back as they were written: posting by posting, by seeking, in
 * windows and in blocks; and no score is above its bound.
 */
#include "postings_support.h"

/* Sizes around blocks and groups, with the distance between documents. */
static const struct shape {
    uint32_t count;
    uint64_t spread;
} shapes[] = {
    {1, 1},    {2, 1},      {3, 100},   {4, 7},          {8, 1000},       {9, 2},         {33, 40},  {127, 3},
    {128, 1},  {128, 2},    {129, 1},   {129, 500},      {255, 4},        {256, 3},       {257, 9},  {1000, 1},
    {1000, 2}, {1000, 3},   {1000, 5},  {1000, 8},       {1000, 12},      {4095, 1},      {4096, 2}, {4097, 30},
    {5000, 4}, {9000, 600}, {20000, 2}, {300, 1u << 20}, {200, 10000000}, {8, 200000000},
};

struct fixture {
    uint8_t *lengths;
    uint32_t docs;
    struct model models[2 * COUNT(shapes)];
    struct wb_postings *set;
};

static const uint32_t all_docs = UINT32_MAX;

static void make_fixture(struct fixture *fixture, uint64_t *chance)
{
    const char *dir = test_path("set");
    char key[32];

    fixture->docs = all_docs;
    fixture->lengths = make_lengths(all_docs);
    for (size_t i = 0; i < 2 * COUNT(shapes); i++) {
        const struct shape *shape = &shapes[i / 2];
        uint64_t span = 2 * shape->spread * shape->count, most = UINT32_MAX - 1;
        /* Half of the lists end near the last possible document. */
        uint64_t first = chance_one_in(chance, 2) ? chance_below(chance, 5000) : span < most ? most - span : 0;
        fixture->models[i] = random_model(chance, shape->count, first, shape->spread, i % 2, fixture->lengths);
        snprintf(key, sizeof key, "term%03zu", i);
        name_model(&fixture->models[i], key);
    }
    struct wb_postings_stat stat;
    stat = write_models(dir, fixture->models, COUNT(fixture->models), fixture->lengths, all_docs);
    assert_int_equal(stat.terms, COUNT(fixture->models));
    OK(wb_postings_open(dir, fixture->lengths, all_docs, &fixture->set));
}

static void release_fixture(struct fixture *fixture)
{
    wb_postings_close(fixture->set);
    for (size_t i = 0; i < COUNT(fixture->models); i++)
        model_release(&fixture->models[i]);
    munmap(fixture->lengths, fixture->docs);
}

static void test_walk(void **state)
{
    uint64_t chance = test_seed();
    struct fixture fixture;

    (void)state;
    make_fixture(&fixture, &chance);
    for (size_t m = 0; m < COUNT(fixture.models); m++) {
        const struct model *model = &fixture.models[m];
        struct wb_postlist *list = open_list(fixture.set, model);
        for (uint32_t i = 0; i < model->count; i++) {
            if (i == 0 || chance_below(&chance, 4)) /* not always all of it: everything is decoded lazily */
                assert_posting(list, model, i);
            uint32_t next = i + 1 < model->count ? model->postings[i + 1].docid : WB_DOCID_END;
            assert_int_equal(wb_postlist_next(list), next);
        }
        assert_int_equal(wb_postlist_next(list), WB_DOCID_END);
        OK(wb_postlist_error(list));
        wb_postlist_close(list);
    }
    release_fixture(&fixture);
}

/* The number of the first posting that is not below docid. */
static uint32_t model_seek(const struct model *model, uint64_t docid)
{
    uint32_t i = 0;

    while (i < model->count && model->postings[i].docid < docid)
        i++;
    return i;
}

static void test_seek(void **state)
{
    uint64_t chance = test_seed();
    struct fixture fixture;

    (void)state;
    make_fixture(&fixture, &chance);
    for (size_t m = 0; m < COUNT(fixture.models); m++) {
        const struct model *model = &fixture.models[m];
        struct wb_postlist *list = open_list(fixture.set, model);
        for (unsigned n = 0; n < 300; n++) {
            uint32_t docid = model->postings[chance_below(&chance, model->count)].docid;
            docid += (uint32_t)chance_below(&chance, 3) - 1;
            if (chance_one_in(&chance, 30))
                docid = (uint32_t)chance_next(&chance);
            uint32_t i = model_seek(model, docid), want = i < model->count ? model->postings[i].docid : WB_DOCID_END;
            assert_int_equal(wb_postlist_seek(list, docid), want);
            if (i < model->count) {
                assert_posting(list, model, i);
                want = i + 1 < model->count ? model->postings[i + 1].docid : WB_DOCID_END;
            }
            assert_int_equal(wb_postlist_next(list), want);
        }
        wb_postlist_close(list);
    }
    release_fixture(&fixture);
}

static uint32_t model_score(const struct fixture *fixture, const struct model *model, uint32_t i,
                            const struct wb_scorer *scorer)
{
    const struct wb_posting *posting = &model->postings[i];

    return wb_score(scorer, wb_posting_weight(posting->frequency), fixture->lengths[posting->docid]);
}

static uint32_t best_score(const struct fixture *fixture, const struct model *model, uint32_t first, uint32_t last,
                           const struct wb_scorer *scorer)
{
    uint32_t best = 0;

    for (uint32_t i = 0; i < model->count; i++)
        if (model->postings[i].docid >= first && model->postings[i].docid <= last) {
            uint32_t score = model_score(fixture, model, i, scorer);
            best = score > best ? score : best;
        }
    return best;
}

/* A scorer with random parameters. */
static struct wb_scorer random_scorer(uint64_t *chance)
{
    struct wb_scorer scorer;

    wb_scorer_init(&scorer, 0.01 + 20 * chance_unit(chance), 0.1 + 3 * chance_unit(chance), chance_unit(chance),
                   1 + (double)chance_below(chance, 3000), 1);
    return scorer;
}

static void test_bounds(void **state)
{
    uint64_t chance = test_seed();
    struct fixture fixture;

    (void)state;
    make_fixture(&fixture, &chance);
    for (size_t m = 0; m < COUNT(fixture.models); m++) {
        const struct model *model = &fixture.models[m];
        struct wb_postlist *list = open_list(fixture.set, model);
        struct wb_scorer scorer = random_scorer(&chance);
        uint32_t best = best_score(&fixture, model, 0, WB_DOCID_END, &scorer), bound = wb_postlist_bound(list, &scorer);
        assert_true(bound >= best);
        if (model->count <= WB_BLOCK_POSTINGS)
            assert_int_equal(bound, best);
        for (unsigned n = 0; n < 60; n++) {
            uint32_t a = model->postings[chance_below(&chance, model->count)].docid;
            uint32_t b = chance_below(&chance, 2) ? a + (uint32_t)chance_below(&chance, 5000)
                                                  : model->postings[chance_below(&chance, model->count)].docid;
            uint32_t first = a < b ? a : b, last = a < b ? b : a;
            best = best_score(&fixture, model, first, last, &scorer);
            bound = wb_postlist_bound_range(list, &scorer, first, last);
            assert_true(bound >= best);
            assert_true(bound <= wb_postlist_bound(list, &scorer));
            if (model->count <= WB_BLOCK_POSTINGS)
                assert_int_equal(bound, best);
            uint32_t end = wb_postlist_block_last(list, first);
            uint32_t i = model_seek(model, first), block_end = i / WB_BLOCK_POSTINGS * WB_BLOCK_POSTINGS + 127;
            assert_int_equal(end, i >= model->count          ? WB_DOCID_END
                                  : block_end < model->count ? model->postings[block_end].docid
                                                             : model->postings[model->count - 1].docid);
        }
        assert_int_equal(list->docid, model->postings[0].docid); /* bounds do not move it */
        wb_postlist_close(list);
    }
    release_fixture(&fixture);
}

/* Compares all operations on one window with the model. */
static void try_window(const struct fixture *fixture, const struct model *model, struct wb_postlist *list,
                       const struct wb_scorer *scorer, uint32_t base, uint32_t size, uint64_t *chance)
{
    uint64_t bits[64], want_bits[64] = {0}, summed[64], mask[64], both[64] = {0}, want_both[64];
    static uint32_t sums[4096], want_sums[4096], masked[4096], want_masked[4096];
    uint32_t i = model_seek(model, base), n;

    for (unsigned w = 0; w < 64; w++)
        mask[w] = chance_one_in(chance, 3) ? chance_next(chance) & chance_next(chance) & chance_next(chance) : 0;
    memset(bits, 0, sizeof bits);
    memset(summed, 0, sizeof summed);
    for (unsigned d = 0; d < size; d++)
        sums[d] = want_sums[d] = masked[d] = want_masked[d] = (uint32_t)chance_below(chance, 1000);
    for (n = i; n < model->count && (uint64_t)model->postings[n].docid < (uint64_t)base + size; n++) {
        uint32_t at = model->postings[n].docid - base;
        want_bits[at / 64] |= 1ull << at % 64;
        want_sums[at] += model_score(fixture, model, n, scorer);
        if (mask[at / 64] >> at % 64 & 1)
            want_masked[at] += model_score(fixture, model, n, scorer);
    }
    uint32_t next = n < model->count ? model->postings[n].docid : WB_DOCID_END;
    assert_int_equal(wb_postlist_fill(list, base, size, NULL, bits), next);
    assert_memory_equal(bits, want_bits, size / 8);
    memset(bits, 0, sizeof bits);
    assert_int_equal(wb_postlist_fill(list, base, size, mask, bits), next);
    for (unsigned w = 0; w < size / 64; w++) {
        assert_int_equal(bits[w] & mask[w], want_bits[w] & mask[w]);
        assert_int_equal(bits[w] & ~want_bits[w], 0);
    }
    assert_int_equal(wb_postlist_sum(list, base, size, scorer, sums, summed), next);
    assert_memory_equal(summed, want_bits, size / 8);
    assert_memory_equal(sums, want_sums, size * sizeof *sums);
    assert_int_equal(wb_postlist_sum_masked(list, base, size, scorer, masked, mask, both), next);
    assert_memory_equal(masked, want_masked, size * sizeof *sums);
    for (unsigned w = 0; w < size / 64; w++)
        want_both[w] = want_bits[w] & mask[w];
    assert_memory_equal(both, want_both, size / 8);
    assert_int_equal(list->docid, next);
    if (next != WB_DOCID_END)
        assert_posting(list, model, n);
}

static void test_windows(void **state)
{
    uint64_t chance = test_seed();
    struct fixture fixture;

    (void)state;
    make_fixture(&fixture, &chance);
    for (size_t m = 0; m < COUNT(fixture.models); m++) {
        const struct model *model = &fixture.models[m];
        struct wb_postlist *list = open_list(fixture.set, model);
        struct wb_scorer scorer = random_scorer(&chance);
        /* In order, from window to window that has a document. */
        unsigned tried = 0;
        for (uint32_t docid = list->docid; docid != WB_DOCID_END && tried < 40; docid = list->docid, tried++)
            try_window(&fixture, model, list, &scorer, docid / 4096 * 4096, 4096, &chance);
        /* Anywhere, of any size. */
        for (unsigned n = 0; n < 30; n++) {
            uint64_t base = model->postings[chance_below(&chance, model->count)].docid / 64 * 64;
            uint64_t back = 64 * chance_below(&chance, 60), size = 64 * (1 + chance_below(&chance, 64));
            base = base > back ? base - back : 0;
            size = base + size <= UINT32_MAX + 1ull ? size : UINT32_MAX + 1ull - base;
            try_window(&fixture, model, list, &scorer, (uint32_t)base, (uint32_t)size, &chance);
        }
        OK(wb_postlist_error(list));
        wb_postlist_close(list);
    }
    release_fixture(&fixture);
}

/* Lists and blocks that are read and written again give the same files, whether or not they are taken apart. */
static void test_rewrite(void **state)
{
    uint64_t chance = test_seed();
    struct fixture fixture;
    struct wb_postings_writer *writer;
    struct wb_postings_output *output;
    struct wb_postings_part part;
    struct wb_posting_block block = WB_POSTING_BLOCK_INIT;
    struct wb_posting posting;
    int more;

    (void)state;
    make_fixture(&fixture, &chance);
    OK(wb_path_mkdirs(test_path("again")));
    OK(wb_postings_create(test_path("again"), &output));
    OK(wb_postings_writer_new(fixture.lengths, fixture.docs, &writer));
    for (size_t m = 0; m < COUNT(fixture.models); m++) {
        const struct model *model = &fixture.models[m];
        struct wb_postlist *list = open_list(fixture.set, model);
        bool whole = chance_below(&chance, 2);
        OK(wb_postings_begin(writer, wb_slice(model->key, model->key_len), model->positions));
        bool copied = list->df <= WB_BLOCK_POSTINGS && chance_below(&chance, 2);
        if (copied)
            OK(wb_postings_add_list(writer, list, list->docids));
        for (uint32_t number = 0; (more = copied ? 0 : wb_postlist_read(list, number, &block)) == 1; number++) {
            if (whole)
                OK(add_block(writer, &block));
            for (uint32_t i = 0; !whole && i < block.count; i++) {
                OK(wb_posting_block_get(&block, i, &posting));
                OK(wb_postings_add(writer, &posting));
            }
        }
        OK(more);
        OK(wb_postings_end(writer));
        wb_postlist_close(list);
        /* Ranges end anywhere, but not between keys that differ only in their last byte. */
        if (m % 10 == 9 && chance_below(&chance, 2)) {
            OK(wb_postings_take(writer, &part));
            OK(wb_postings_append(output, &part));
            wb_postings_part_release(&part);
        }
    }
    OK(wb_postings_take(writer, &part));
    OK(wb_postings_append(output, &part));
    OK(wb_postings_finish(output, NULL));
    wb_postings_part_release(&part);
    wb_postings_writer_free(writer);
    wb_posting_block_release(&block);
    assert_same_set(test_path("set"), test_path("again"));
    release_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walk),    cmocka_unit_test(test_seek),    cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_windows), cmocka_unit_test(test_rewrite),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
