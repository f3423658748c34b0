/*
 * test_postings_damage.c - a flipped byte anywhere gives WB_E_CORRUPT with the name of the file, or the right answer.
 * Every write and every allocation may fail. Blocks can be filtered, and threads can share a set.
 */
#include "../otherformat.h"
#include "postings_support.h"

#include <pthread.h>

enum { DOCS = 20000, TERMS = 60 };

static uint8_t lengths[DOCS];

static void make_models(uint64_t *chance, struct model *models)
{
    for (size_t i = 0; i < TERMS; i++) {
        char key[16];
        uint32_t count = i % 20 == 0 ? 1500 : i % 5 == 0 ? 200 : 1 + (uint32_t)chance_below(chance, 12);
        models[i] =
            random_model(chance, count, chance_below(chance, 1000), 1 + chance_below(chance, 5), i % 3 != 0, lengths);
        snprintf(key, sizeof key, "term%03zu", i);
        name_model(&models[i], key);
    }
}

/* Reads everything; returns the number of errors. Whatever is not an error is right. */
static unsigned read_all(struct wb_postings *set, const struct model *models, const char *changed)
{
    struct wb_scorer scorer;
    unsigned errors = 0;

    wb_scorer_init(&scorer, 2, 1.2, 0.75, 300, 1);
    for (size_t m = 0; m < TERMS; m++) {
        const struct model *model = &models[m];
        struct wb_postlist *list = NULL;
        struct wb_term term;
        int err = wb_postings_find(set, wb_slice(model->key, model->key_len), &term);
        assert_true(err == 1 || err == WB_E_CORRUPT);
        if (err == 1)
            err = wb_postlist_open(set, &term, &list);
        for (uint32_t i = 0; err == 0 && i < model->count; i++) {
            uint32_t frequency[WB_FIELDS];
            struct wb_positions positions;
            if (list->docid != WB_DOCID_END) {
                assert_int_equal(list->docid, model->postings[i].docid);
                err = wb_postlist_frequencies(list, frequency);
                if (err == 0)
                    assert_memory_equal(frequency, model->postings[i].frequency, sizeof frequency);
                if (err == 0 && model->positions)
                    err = wb_postlist_positions(list, &positions);
                if (err == 0)
                    assert_posting(list, model, i);
            }
            if (err == 0 && wb_postlist_next(list) == WB_DOCID_END && i + 1 < model->count)
                err = wb_postlist_error(list);
            assert_true(err <= 0 && (err < 0 || i + 1 == model->count || list->docid != WB_DOCID_END));
        }
        if (err < 0) {
            assert_int_equal(err, WB_E_CORRUPT);
            assert_non_null(strstr(wb_error_message(), changed));
            errors++;
        }
        wb_postlist_close(list);
    }
    return errors;
}

static void test_flips(void **state)
{
    static const char *const names[] = {"dictionary", "lists", "positions"};
    uint64_t chance = test_seed(), terms;
    static struct model models[TERMS];
    unsigned problems = 0, noticed = 0;

    (void)state;
    make_models(&chance, models);
    write_models(test_path("set"), models, TERMS, lengths, DOCS);
    OK(wb_postings_verify(test_path("set"), lengths, DOCS, count_found, &problems, &terms));
    assert_int_equal(problems, 0);
    assert_int_equal(terms, TERMS);
    for (unsigned round = 0; round < 200; round++) {
        struct wb_buf bytes = read_file(test_path("set"), names[round % 3]);
        char *path = wb_path_join(test_path("set"), names[round % 3]);
        size_t at = chance_below(&chance, bytes.len);
        struct wb_postings *set;
        char was = bytes.ptr[at];
        struct wb_file file;
        bytes.ptr[at] = (char)(was ^ 1 << chance_below(&chance, 8));
        OK(wb_path_unlink(path));
        OK(wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &file));
        OK(wb_file_write_at(&file, 0, bytes.ptr, bytes.len));
        problems = 0;
        OK(wb_postings_verify(test_path("set"), lengths, DOCS, count_found, &problems, &terms));
        assert_true(problems > 0);
        int err = wb_postings_open(test_path("set"), lengths, DOCS, &set);
        assert_true(err == 0 || err == WB_E_CORRUPT || err == WB_E_NEWER);
        if (err == 0)
            noticed += read_all(set, models, path) > 0;
        else
            assert_non_null(strstr(wb_error_message(), path));
        noticed += err < 0;
        wb_postings_close(err == 0 ? set : NULL);
        bytes.ptr[at] = was;
        OK(wb_file_write_at(&file, 0, bytes.ptr, bytes.len));
        wb_file_close(&file);
        wb_buf_release(&bytes);
        wb_free(path);
    }
    assert_int_equal(noticed, 200); /* the files are so small that each byte is in a piece that is read */
    char *dictionary = wb_path_join(test_path("set"), "dictionary");
    struct wb_postings *other;
    put_blob_format(dictionary, "dict", 64 - 6, '2');
    assert_refused_format(wb_postings_open(test_path("set"), lengths, DOCS, &other), dictionary, 2);
    wb_free(dictionary);
    for (size_t i = 0; i < TERMS; i++)
        model_release(&models[i]);
}

/* What is written and read back with some postings and some anchors left out. */
static void test_filter(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned round = 0; round < 60; round++) {
        struct model model = random_model(&chance, 1 + (uint32_t)chance_below(&chance, 500), 3, 4, round % 2, lengths);
        struct model want = {.positions = model.positions};
        struct wb_posting_block block = WB_POSTING_BLOCK_INIT;
        struct wb_postings_writer *writer;
        struct wb_postings_output *output;
        struct wb_postings_part part;
        struct wb_postings *set;
        uint8_t keep[WB_BLOCK_POSTINGS];
        uint64_t seldom = 1 + chance_below(&chance, 2) * chance_below(&chance, 50);
        name_model(&model, "term");
        name_model(&want, "term");
        want.postings = calloc(model.count, sizeof *want.postings);
        assert_non_null(want.postings);
        write_models(test_path("old"), &model, 1, lengths, DOCS);
        OK(wb_postings_open(test_path("old"), lengths, DOCS, &set));
        OK(wb_postings_writer_new(lengths, DOCS, &writer));
        OK(wb_postings_begin(writer, WB_SLICE_LIT("term"), model.positions));
        struct wb_postlist *list = open_list(set, &model);
        uint32_t i = 0;
        for (uint32_t n = 0; wb_postlist_read(list, n, &block) == 1; n++) {
            for (uint32_t k = 0; k < block.count; k++, i++) {
                struct wb_posting posting = model.postings[i];
                keep[k] = chance_below(&chance, seldom) ? WB_KEEP_ALL : (uint8_t)chance_below(&chance, 3);
                if (keep[k] == WB_KEEP_NO_ANCHOR) {
                    posting.gap_count -= posting.gap_count ? posting.frequency[WB_FIELD_ANCHOR] : 0;
                    posting.frequency[WB_FIELD_ANCHOR] = 0;
                }
                posting.docid += 17;
                if (keep[k] != WB_KEEP_NOTHING && wb_occurrences(posting.frequency))
                    want.postings[want.count++] = posting;
            }
            wb_posting_block_filter(&block, keep);
            for (uint32_t k = 0; k < block.count; k++)
                block.docid[k] += 17;
            OK(add_block(writer, &block));
        }
        OK(wb_postings_end(writer));
        OK(wb_path_mkdirs(test_path("new")));
        OK(wb_postings_create(test_path("new"), &output));
        OK(wb_postings_take(writer, &part));
        OK(wb_postings_append(output, &part));
        OK(wb_postings_finish(output, NULL));
        write_models(test_path("want"), &want, 1, lengths, DOCS);
        assert_same_set(test_path("new"), test_path("want"));
        wb_postlist_close(list);
        wb_postings_close(set);
        wb_postings_part_release(&part);
        wb_postings_writer_free(writer);
        wb_posting_block_release(&block);
        model_release(&model);
        free(want.postings);
    }
}

/* Writes a small set; returns the first error. */
static int write_all(const char *dir, const struct model *models)
{
    struct wb_postings_writer *writer = NULL;
    struct wb_postings_output *output = NULL;
    struct wb_postings_part part = WB_POSTINGS_PART_INIT;
    int err = wb_postings_writer_new(lengths, DOCS, &writer);

    if (err == 0)
        err = wb_postings_create(dir, &output);
    for (size_t m = 0; err == 0 && m < 4; m++) {
        const struct model *model = &models[m];
        err = wb_postings_begin(writer, wb_slice(model->key, model->key_len), model->positions);
        for (uint32_t i = 0; err == 0 && i < model->count; i++)
            err = wb_postings_add(writer, &model->postings[i]);
        if (err == 0)
            err = wb_postings_end(writer);
    }
    if (err == 0)
        err = wb_postings_take(writer, &part);
    if (err == 0)
        err = wb_postings_append(output, &part);
    int end = output ? wb_postings_finish(output, NULL) : 0;
    wb_postings_part_release(&part);
    wb_postings_writer_free(writer);
    return err < 0 ? err : end;
}

static int read_some(const char *dir, const struct model *model)
{
    struct wb_postings *set = NULL;
    struct wb_postlist *list = NULL;
    struct wb_posting_block block = WB_POSTING_BLOCK_INIT;
    struct wb_positions positions;
    struct wb_terms *terms = NULL;
    struct wb_slice key;
    struct wb_term term;
    int err = wb_postings_open(dir, lengths, DOCS, &set);

    if (err == 0)
        err = wb_terms_open(set, &terms);
    if (err == 0)
        err = wb_terms_next(terms, &key, &term) == 1 ? 0 : WB_E_CORRUPT;
    if (err == 0)
        err = wb_postings_find(set, wb_slice(model->key, model->key_len), &term) == 1 ? 0 : WB_E_CORRUPT;
    if (err == 0)
        err = wb_postlist_open(set, &term, &list);
    if (err == 0)
        err = wb_postlist_positions(list, &positions);
    if (err == 0 && wb_postlist_read(list, 1, &block) < 0)
        err = WB_E_NOMEM;
    wb_posting_block_release(&block);
    wb_postlist_close(list);
    wb_terms_close(terms);
    wb_postings_close(set);
    return err;
}

static void test_faults(void **state)
{
    uint64_t chance = test_seed();
    static struct model models[TERMS];
    unsigned struck = 0;

    (void)state;
    make_models(&chance, models);
    struct model few[4] = {models[1], models[2], models[5], models[20]};
    OK(wb_path_mkdirs(test_path("fault")));
    for (int reading = 0; reading < 2; reading++)
        for (uint64_t nth = 1;; nth++) {
            wb_fault_arm(WB_FAULT_ANY, nth, ENOSPC);
            int err = reading ? read_some(test_path("fault"), &few[3]) : write_all(test_path("fault"), few);
            bool hit = wb_fault_struck();
            wb_fault_disarm();
            assert_true(hit ? err == WB_E_IO || err == WB_E_NOMEM : err == 0);
            if (!hit)
                break;
            struck++;
        }
    assert_true(struck > 40);
    for (size_t i = 0; i < TERMS; i++)
        model_release(&models[i]);
}

struct reader {
    struct wb_postings *set;
    const struct model *models;
    bool right;
};

static void *read_in_thread(void *context)
{
    struct reader *reader = context;

    reader->right = true;
    for (size_t m = 0; m < TERMS; m++) {
        const struct model *model = &reader->models[m];
        struct wb_term term;
        struct wb_postlist *list;
        uint32_t i = 0;
        reader->right &= wb_postings_find(reader->set, wb_slice(model->key, model->key_len), &term) == 1 &&
                         wb_postlist_open(reader->set, &term, &list) == 0;
        if (!reader->right)
            return NULL;
        for (uint32_t docid = list->docid; docid != WB_DOCID_END; docid = wb_postlist_next(list), i++)
            reader->right &= i < model->count && docid == model->postings[i].docid;
        reader->right &= i == model->count;
        wb_postlist_close(list);
    }
    return NULL;
}

static void test_threads(void **state)
{
    uint64_t chance = test_seed();
    static struct model models[TERMS];
    struct reader readers[4];
    pthread_t threads[4];
    struct wb_postings *set;

    (void)state;
    make_models(&chance, models);
    write_models(test_path("set"), models, TERMS, lengths, DOCS);
    OK(wb_postings_open(test_path("set"), lengths, DOCS, &set));
    for (size_t i = 0; i < COUNT(threads); i++) {
        readers[i] = (struct reader){set, models, false};
        assert_int_equal(pthread_create(&threads[i], NULL, read_in_thread, &readers[i]), 0);
    }
    for (size_t i = 0; i < COUNT(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(readers[i].right);
    }
    wb_postings_close(set);
    for (size_t i = 0; i < TERMS; i++)
        model_release(&models[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flips),
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
