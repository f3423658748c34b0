/* test_completions.c - completions against a comparison with all texts; how texts are folded; damaged files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../expect.h"
#include "../otherformat.h"
#include "../removetree.h"
#include "../seeded.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/mem.h"
#include "index/completions.h"
#include "os/file.h"
#include "os/path.h"

enum { TEXTS_MAX = 6000, ASKED = 400, WANTED = 10 };

struct model_text {
    struct wb_completion_text folded;
    char shown[WB_COMPLETION_TEXT_MAX + 1];
    uint16_t first, other;
    uint32_t number;
};

struct model {
    char dir[64], path[96];
    struct wb_words *words;
    struct model_text *texts;
    size_t count;
    uint64_t chance;
};

static int setup(void **state)
{
    struct model *model = calloc(1, sizeof *model);

    assert_non_null(model);
    strcpy(model->dir, "/tmp/webbase-completions-XXXXXX");
    assert_non_null(mkdtemp(model->dir));
    snprintf(model->path, sizeof model->path, "%s/completions", model->dir);
    assert_int_equal(wb_words_new(&model->words), 0);
    model->texts = calloc(TEXTS_MAX, sizeof *model->texts);
    assert_non_null(model->texts);
    model->chance = test_seed();
    *state = model;
    return 0;
}

static int teardown(void **state)
{
    struct model *model = *state;

    wb_words_free(model->words);
    remove_tree(model->dir);
    free(model->texts);
    free(model);
    return 0;
}

/* ---- folding -------------------------------------------------------------------------------------------- */

static void expect_folded(struct model *model, const char *text, bool typed, const char *want, size_t starts)
{
    struct wb_completion_text folded;

    assert_int_equal(wb_completion_fold(model->words, wb_slice_str(text), typed, &folded), 0);
    if (folded.folded_len != strlen(want) || memcmp(folded.folded, want, folded.folded_len) != 0)
        fail_msg("\"%s\" is folded to \"%.*s\", not \"%s\"", text, (int)folded.folded_len, folded.folded, want);
    assert_int_equal(folded.start_count, starts);
}

static void test_folding(void **state)
{
    struct model *model = *state;
    char text[4096];

    expect_folded(model, "Netfilter manual: filter tables", false, "netfilter manual filter tables", 4);
    expect_folded(model, "  \xC3\x9C" "ber Stra\xC3\x9F" "e!", false, "uber strasse", 2);
    expect_folded(model, "std::vector<int>", false, "std vector int", 3);
    expect_folded(model, "filter", true, "filter", 1);
    expect_folded(model, "filter ", true, "filter ", 1);
    expect_folded(model, "filter ", false, "filter", 1);
    expect_folded(model, "...", true, "", 0);
    expect_folded(model, "\xE6\x9D\xB1\xE4\xBA\xAC\xE9\x83\xBD", false, "\xE6\x9D\xB1\xE4\xBA\xAC\xE9\x83\xBD", 1);
    expect_folded(model, "\xE6\x9D\xB1\xE4\xBA\xAC", true, "\xE6\x9D\xB1\xE4\xBA\xAC", 1);
    expect_folded(model, "a b c d e f g h i j", false, "a b c d e f g h i j", WB_COMPLETION_STARTS_MAX);
    /* More than fits ends with a whole word. */
    memset(text, 'x', sizeof text);
    for (size_t i = 9; i < sizeof text; i += 10)
        text[i] = i % 20 == 9 ? ' ' : '\x01';
    struct wb_completion_text folded;
    assert_int_equal(wb_completion_fold(model->words, wb_slice(text, sizeof text), false, &folded), 0);
    assert_true(folded.cut);
    assert_int_equal(folded.folded_len, 119);
    assert_int_equal(folded.end, 119);
}

/* ---- against all of them -------------------------------------------------------------------------------- */

static int by_folded(const void *a, const void *b)
{
    const struct model_text *x = a, *y = b;

    return wb_slice_compare(wb_slice(x->folded.folded, x->folded.folded_len),
                            wb_slice(y->folded.folded, y->folded.folded_len));
}

/* Titles of few words that begin alike, so that many texts share their beginnings. */
static void make_title(struct model *model, char title[WB_COMPLETION_TEXT_MAX + 1])
{
    static const char *const words[] = {"a",      "ab",    "Abel",   "abc",          "filter",
                                        "Filters", "fil\xC3\xA9", "\xE6\x9D\xB1\xE4\xBA\xAC", "x",    "table",
                                        "tab",    "c++",   "9",      "the",          "\303\234ber"};
    size_t count = 1 + chance_below(&model->chance, 12), len = 0;

    title[0] = '\0';
    for (size_t i = 0; i < count && len < WB_COMPLETION_TEXT_MAX - 16; i++)
        len += (size_t)sprintf(title + len, "%s%s", i ? " " : "",
                               words[chance_below(&model->chance, sizeof words / sizeof *words)]);
}

static void make_texts(struct model *model, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        struct model_text *text = &model->texts[i];
        make_title(model, text->shown);
        text->first = (uint16_t)chance_below(&model->chance, chance_one_in(&model->chance, 2) ? 9 : 65536);
        text->other = (uint16_t)chance_below(&model->chance, chance_one_in(&model->chance, 2) ? 9 : 65536);
        assert_int_equal(wb_completion_fold(model->words, wb_slice_str(text->shown), false, &text->folded), 0);
    }
    qsort(model->texts, count, sizeof *model->texts, by_folded);
    for (size_t i = 0; i < count; i++)
        if (model->texts[i].folded.folded_len &&
            (kept == 0 || by_folded(&model->texts[kept - 1], &model->texts[i]) != 0))
            model->texts[kept++] = model->texts[i];
    model->count = kept;
}

static void write_texts(struct model *model)
{
    struct wb_completions_writer *writer = NULL;

    assert_int_equal(wb_completions_create(model->path, model->dir, &writer), 0);
    for (size_t i = 0; i < model->count; i++) {
        struct model_text *text = &model->texts[i];
        text->number = (uint32_t)i;
        struct wb_completion completion = {.text = wb_slice_str(text->shown),
                                           .folded = wb_slice(text->folded.folded, text->folded.folded_len),
                                           .docid = i % 3 ? (uint32_t)i : WB_DOCID_NONE,
                                           .pages = (uint32_t)i,
                                           .is_word = i % 3 == 0};
        assert_int_equal(wb_completions_add(writer, &completion, text->first, text->other), 0);
    }
    assert_int_equal(wb_completions_finish(writer), 0);
}

/* The weight by which a text is found; -1: it is not. */
static int weight_of(const struct model_text *text, struct wb_slice typed)
{
    int weight = -1;

    for (size_t i = 0; i < text->folded.start_count; i++) {
        size_t at = text->folded.starts[i];
        int own = at ? text->other : text->first;
        if (wb_slice_starts(wb_slice(text->folded.folded + at, text->folded.folded_len - at), typed) && own > weight)
            weight = own;
    }
    return weight;
}

struct got {
    const struct model *model;
    uint32_t numbers[WANTED];
    size_t count;
};

static int note(void *context, const struct wb_completion *completion)
{
    struct got *got = context;
    const struct model_text *text = &got->model->texts[completion->pages];

    assert_true(completion->pages < got->model->count);
    assert_true(wb_slice_equal(completion->text, wb_slice_str(text->shown)) ||
                wb_slice_equal(completion->text, completion->folded));
    assert_int_equal(completion->docid, completion->pages % 3 ? completion->pages : WB_DOCID_NONE);
    assert_int_equal(completion->is_word, completion->pages % 3 == 0);
    got->numbers[got->count++] = completion->pages;
    return got->count == WANTED;
}

static int descending(const void *a, const void *b)
{
    return *(const int *)b - *(const int *)a;
}

static void compare(struct model *model, const struct wb_completions *completions, struct wb_slice typed)
{
    static int weights[TEXTS_MAX];
    struct got got = {.model = model};
    size_t want = 0;

    for (size_t i = 0; i < model->count; i++)
        if (typed.len && (weights[want] = weight_of(&model->texts[i], typed)) >= 0)
            want++;
    qsort(weights, want, sizeof *weights, descending);
    assert_true(wb_completions_find(completions, typed, note, &got) >= 0);
    assert_int_equal(got.count, want < WANTED ? want : WANTED);
    for (size_t i = 0; i < got.count; i++) {
        assert_int_equal(weight_of(&model->texts[got.numbers[i]], typed), weights[i]);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(got.numbers[k], got.numbers[i]);
    }
}

static void test_against_all(void **state)
{
    static const size_t sizes[] = {0, 1, 8, 64, 65, 700, TEXTS_MAX};
    struct model *model = *state;

    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct wb_completions completions;
        uint64_t at = 0;
        make_texts(model, sizes[s]);
        write_texts(model);
        assert_int_equal(wb_completions_open(model->path, &completions), 0);
        assert_null(wb_completions_verify(&completions, TEXTS_MAX, &at));
        for (int i = 0; i < ASKED; i++) {
            char title[WB_COMPLETION_TEXT_MAX + 1];
            struct wb_completion_text typed;
            make_title(model, title);
            title[1 + chance_below(&model->chance, 12)] = '\0'; /* perhaps in the middle of a character */
            assert_int_equal(wb_completion_fold(model->words, wb_slice_str(title), true, &typed), 0);
            compare(model, &completions, wb_slice(typed.folded, typed.folded_len));
        }
        compare(model, &completions, WB_SLICE_LIT("a"));
        wb_completions_close(&completions);
    }
}

/* A wrong byte anywhere is found by its checksum; readers fail, or find what is there. */
static void test_damage(void **state)
{
    struct model *model = *state;
    struct wb_buf bytes = WB_BUF_INIT;

    make_texts(model, 300);
    write_texts(model);
    assert_int_equal(wb_path_read(model->path, 1 << 24, &bytes), 0);
    for (int round = 0; round < 200; round++) {
        struct wb_completions completions;
        struct got got = {.model = model};
        size_t at = chance_below(&model->chance, bytes.len);
        char was = bytes.ptr[at];
        bytes.ptr[at] = (char)(was ^ (1 << chance_below(&model->chance, 8)));
        assert_int_equal(wb_path_replace(model->path, wb_buf_slice(&bytes)), 0);
        int err = wb_completions_open(model->path, &completions);
        if (err == 0) {
            err = wb_completions_find(&completions, WB_SLICE_LIT("a"), note, &got);
            wb_completions_close(&completions);
        }
        assert_true(err >= 0 || err == WB_E_CORRUPT || err == WB_E_NEWER);
        bytes.ptr[at] = was;
    }
    struct wb_completions other;
    assert_int_equal(wb_path_replace(model->path, wb_buf_slice(&bytes)), 0);
    put_blob_format(model->path, WB_COMPLETIONS_KIND, WB_COMPLETION_FOOT_BYTES - 7, '2');
    assert_refused_format(wb_completions_open(model->path, &other), model->path, 2);
    wb_buf_release(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_folding, setup, teardown),
        cmocka_unit_test_setup_teardown(test_against_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
