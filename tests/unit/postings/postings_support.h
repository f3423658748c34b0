/*
 * postings_support.h - what the tests of postings share: a list as plain arrays, made at random, written and compared.
 * Header only, because every test program is one file.
 */
#ifndef WB_TESTS_POSTINGS_SUPPORT_H
#define WB_TESTS_POSTINGS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../seeded.h"
#include "../testroot.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/path.h"
#include "postings/postlist.h"

#include <errno.h>
#include <ftw.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNUSED __attribute__((unused)) static
#define COUNT(array) (sizeof(array) / sizeof *(array))

UNUSED void check_ok(int err, const char *file, int line)
{
    if (err < 0) {
        fprintf(stderr, "%s:%d: %d: %s\n", file, line, err, wb_error_message());
        fail();
    }
}

#define OK(call) check_ok((call), __FILE__, __LINE__)

/* ---- lengths ------------------------------------------------------------------------------------- */

/* A length byte for each of so many documents; only the pages of memory that are touched exist. */
UNUSED uint8_t *make_lengths(uint32_t docs)
{
    uint8_t *lengths = mmap(NULL, docs, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_true(lengths != MAP_FAILED);
    return lengths;
}

/* ---- lists as plain arrays ------------------------------------------------------------------------- */

struct model {
    char key[64];
    size_t key_len;
    bool positions;
    uint32_t count;
    struct wb_posting *postings; /* gaps point into `gaps` */
    uint32_t *gaps;
    size_t gap_count;
    uint64_t total;
};

UNUSED void model_release(struct model *model)
{
    free(model->postings);
    free(model->gaps);
    *model = (struct model){.count = 0};
}

UNUSED void random_frequencies(uint64_t *chance, uint32_t frequency[WB_FIELDS])
{
    memset(frequency, 0, WB_FIELDS * sizeof *frequency);
    if (chance_below(chance, 3)) {
        frequency[WB_FIELD_MAIN] = 1 + (uint32_t)chance_below(chance, chance_one_in(chance, 4) ? 20 : 2);
        if (chance_one_in(chance, 200))
            frequency[WB_FIELD_MAIN] = 20000; /* more than a weight can be */
        return;
    }
    for (unsigned f = 0; f < WB_FIELDS; f++)
        if (chance_one_in(chance, 3))
            frequency[f] = 1 + (uint32_t)chance_below(chance, chance_one_in(chance, 10) ? 300 : 2);
    if (wb_occurrences(frequency) == 0)
        frequency[chance_below(chance, WB_FIELDS)] = 1;
}

/* Adds all postings of a block. */
UNUSED int add_block(struct wb_postings_writer *writer, const struct wb_posting_block *block)
{
    size_t gap_at = 0;

    return wb_postings_add_range(writer, block, 0, block->count, &gap_at);
}

/* A list of `count` postings: from document `first` on, `spread` documents apart on average. */
UNUSED struct model random_model(uint64_t *chance, uint32_t count, uint64_t first, uint64_t spread, bool positions,
                                 uint8_t *lengths)
{
    struct model model = {.positions = positions, .count = count};
    size_t room = 1000;

    model.postings = calloc(count ? count : 1, sizeof *model.postings);
    model.gaps = malloc(room * sizeof *model.gaps);
    assert_true(model.postings && model.gaps);
    for (uint32_t i = 0; i < count; i++) {
        struct wb_posting *posting = &model.postings[i];
        first += i ? 1 + (spread > 1 ? chance_below(chance, 2 * spread - 1) : 0) : 0;
        posting->docid = (uint32_t)first;
        lengths[first] = (uint8_t)chance_below(chance, chance_one_in(chance, 3) ? 256 : 90);
        random_frequencies(chance, posting->frequency);
        if (!positions && posting->frequency[WB_FIELD_MAIN] == 20000)
            posting->frequency[WB_FIELD_MAIN] = 1u << 30;
        uint64_t occurrences = wb_occurrences(posting->frequency);
        model.total += occurrences;
        posting->gap_count = positions ? occurrences : 0;
        if (model.gap_count + posting->gap_count > room)
            model.gaps = realloc(model.gaps, (room = 2 * (model.gap_count + posting->gap_count)) * sizeof *model.gaps);
        assert_non_null(model.gaps);
        for (size_t k = 0; k < posting->gap_count; k++)
            model.gaps[model.gap_count++] = (uint32_t)chance_below(chance, chance_one_in(chance, 20) ? 5000 : 60);
    }
    size_t at = 0; /* only now, because the array has moved */
    for (uint32_t i = 0; i < count; i++) {
        model.postings[i].gaps = model.gaps + at;
        at += model.postings[i].gap_count;
    }
    return model;
}

UNUSED void name_model(struct model *model, const char *key)
{
    model->key_len = strlen(key);
    memcpy(model->key, key, model->key_len);
}

UNUSED void write_model(struct wb_postings_writer *writer, const struct model *model)
{
    OK(wb_postings_begin(writer, wb_slice(model->key, model->key_len), model->positions));
    for (uint32_t i = 0; i < model->count; i++)
        OK(wb_postings_add(writer, &model->postings[i]));
    OK(wb_postings_end(writer));
}

/* Writes lists in this order, as one range, into a directory. */
UNUSED struct wb_postings_stat write_models(const char *dir, const struct model *models, size_t count,
                                            const uint8_t *lengths, uint32_t docs)
{
    struct wb_postings_writer *writer;
    struct wb_postings_output *output;
    struct wb_postings_part part;
    struct wb_postings_stat stat;

    OK(wb_path_mkdirs(dir));
    OK(wb_postings_writer_new(lengths, docs, &writer));
    OK(wb_postings_create(dir, &output));
    for (size_t i = 0; i < count; i++)
        write_model(writer, &models[i]);
    OK(wb_postings_take(writer, &part));
    OK(wb_postings_append(output, &part));
    OK(wb_postings_finish(output, &stat));
    wb_postings_part_release(&part);
    wb_postings_writer_free(writer);
    return stat;
}

UNUSED struct wb_buf read_file(const char *dir, const char *name)
{
    char *path = wb_path_join(dir, name);
    struct wb_buf bytes;

    OK(wb_path_read(path, (size_t)1 << 30, &bytes));
    wb_free(path);
    return bytes;
}

/* Whether the three files of two sets have the same bytes. */
UNUSED void assert_same_set(const char *a, const char *b)
{
    static const char *const names[] = {"dictionary", "lists", "positions"};

    for (size_t i = 0; i < COUNT(names); i++) {
        struct wb_buf x = read_file(a, names[i]), y = read_file(b, names[i]);
        assert_int_equal(x.len, y.len);
        assert_memory_equal(x.ptr, y.ptr, x.len);
        wb_buf_release(&x);
        wb_buf_release(&y);
    }
}

UNUSED struct wb_postlist *open_list(struct wb_postings *set, const struct model *model)
{
    struct wb_term term;
    struct wb_postlist *list;

    assert_int_equal(wb_postings_find(set, wb_slice(model->key, model->key_len), &term), 1);
    assert_int_equal(term.df, model->count);
    assert_true(term.total == model->total);
    assert_int_equal(term.positions, model->positions);
    OK(wb_postlist_open(set, &term, &list));
    return list;
}

/* Reading only one space gives the same positions, and fills up. */
UNUSED void assert_spaces(struct wb_postlist *list, const struct wb_posting *want)
{
    const uint32_t filler = 0x80000007, *gaps = want->gaps, *positions;
    uint32_t counts[WB_SPACES];

    OK(wb_postlist_counts(list, counts));
    for (int space = 0; space < WB_SPACES; gaps += counts[space++]) {
        uint32_t position = 0;
        if (counts[space] == 0)
            continue;
        OK(wb_postlist_positions_in(list, counts, (enum wb_space)space, filler, &positions));
        for (uint32_t k = 0; k < counts[space]; k++)
            assert_int_equal(positions[k], position += gaps[k]);
        for (uint32_t k = counts[space]; k % WB_POSITIONS_STEP; k++)
            assert_int_equal(positions[k], filler);
    }
    assert_int_equal(gaps - want->gaps, want->gap_count);
}

/* The current posting is number i of the model, with all its frequencies and positions. */
UNUSED void assert_posting(struct wb_postlist *list, const struct model *model, uint32_t i)
{
    const struct wb_posting *want = &model->postings[i];
    uint32_t frequency[WB_FIELDS], at = 0;
    struct wb_positions positions;

    assert_int_equal(list->docid, want->docid);
    assert_int_equal(wb_postlist_weight(list), wb_posting_weight(want->frequency));
    OK(wb_postlist_frequencies(list, frequency));
    assert_memory_equal(frequency, want->frequency, sizeof frequency);
    if (!model->positions)
        return;
    assert_spaces(list, want);
    OK(wb_postlist_positions(list, &positions));
    for (int space = 0; space < WB_SPACES; space++) {
        uint32_t position = 0, count = 0;
        for (int f = 0; f < WB_FIELDS; f++)
            count += wb_space_of_field((enum wb_field)f) == (enum wb_space)space ? frequency[f] : 0;
        assert_int_equal(positions.count[space], count);
        for (uint32_t k = 0; k < count; k++) {
            position += want->gaps[at++];
            assert_int_equal(positions.at[space][k], position);
        }
    }
    assert_int_equal(at, want->gap_count);
}

UNUSED void count_found(void *context, const char *file, uint64_t offset, const char *message)
{
    (void)file;
    (void)offset;
    assert_true(message[0]);
    ++*(unsigned *)context;
}

#endif
