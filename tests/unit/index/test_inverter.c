/*
 * test_inverter.c - documents in any order, flushed often, against a plain list of all occurrences.
 */
#include "index_support.h"
#include "../testroot.h"
#include "index/inverter.h"
#include "index/postingsource.h"
#include "index/run.h"

enum { DOCUMENTS = 300, WORDS_MAX = 400, VOCABULARY = 200, LANGUAGES = 3 };

/* One occurrence of a word. */
struct occurrence {
    char key[24];
    uint32_t docid, position;
    uint8_t field;
};

struct occurrences WB_VEC_OF(struct occurrence);

/* A stem of a word, which depends on the language; some words have none. */
static bool stem_of(unsigned word, unsigned language, char stem_out[16])
{
    snprintf(stem_out, 16, "s%u", word / (2 + language));
    return word % 7 != 0;
}

static void note_occurrence(struct occurrences *all, const char *text, char space, uint32_t docid, unsigned field,
                            uint32_t position)
{
    struct occurrence o = {.docid = docid, .position = position, .field = (uint8_t)field};

    snprintf(o.key, sizeof o.key, "%s%c", text, space);
    ok(wb_vec_push(all, o));
}

static void add_document(uint64_t *chance, struct wb_inverter *inverter, uint32_t docid, struct occurrences *all)
{
    static const enum wb_field order[] = {WB_FIELD_TITLE, WB_FIELD_HEADING, WB_FIELD_MAIN, WB_FIELD_URL,
                                          WB_FIELD_ANCHOR};
    unsigned language = (unsigned)chance_below(chance, LANGUAGES);

    wb_inverter_begin(inverter, docid, language);
    for (size_t f = 0; f < COUNT(order); f++) {
        uint32_t position = 0;
        size_t words = chance_below(chance, order[f] == WB_FIELD_MAIN ? WORDS_MAX : 8);
        for (size_t i = 0; i < words; i++) {
            unsigned word = (unsigned)chance_below(chance, 1 + chance_below(chance, VOCABULARY));
            enum wb_field field = order[f] == WB_FIELD_MAIN && chance_one_in(chance, 3) ? WB_FIELD_OTHER : order[f];
            char exact[16], stem[16];
            snprintf(exact, sizeof exact, "w%u", word);
            bool has_stem = stem_of(word, language, stem);
            position += (uint32_t)chance_below(chance, 3);
            int asks = wb_inverter_add(inverter, wb_slice_str(exact), has_stem, field, position);
            assert_true(asks == 0 || (asks == 1 && has_stem));
            if (asks)
                ok(wb_inverter_stem(inverter, wb_slice_str(stem)));
            note_occurrence(all, exact, WB_TERM_EXACT, docid, field, position);
            if (has_stem)
                note_occurrence(all, stem, WB_TERM_STEM, docid, field, position);
        }
    }
    ok(wb_inverter_end(inverter));
}

/* Adds what a run has for each posting: one occurrence for each position, or for each time. */
static void read_run(const struct wb_run *run, struct occurrences *found)
{
    struct wb_run_cursor cursor;
    struct wb_buf last = WB_BUF_INIT;
    struct wb_postingsource source = {.left = 0};

    for (wb_run_seek(run, WB_SLICE_EMPTY, &cursor); cursor.key.len; wb_run_next(&cursor)) {
        char text[16] = {0};
        assert_true(wb_slice_compare(wb_buf_slice(&last), cursor.key) < 0);
        wb_buf_clear(&last);
        ok(wb_buf_append_slice(&last, cursor.key));
        memcpy(text, cursor.key.ptr, cursor.key.len - WB_TERM_TAIL);
        char space = cursor.key.ptr[cursor.key.len - 1];
        uint64_t count = 0;
        uint32_t docid_before = 0;
        for (ok(wb_postingsource_run(&source, &cursor)); source.posting.docid != WB_DOCID_NONE;
             ok(wb_postingsource_next(&source))) {
            const struct wb_posting *posting = &source.posting;
            assert_true(count++ == 0 || posting->docid > docid_before);
            docid_before = posting->docid;
            for (unsigned field = 0; field < WB_FIELDS; field++)
                for (uint32_t i = 0; i < posting->frequency[field]; i++)
                    note_occurrence(found, text, space, posting->docid, field, 0);
        }
        assert_int_equal(count, cursor.count);
    }
    wb_postingsource_release(&source);
    wb_buf_release(&last);
}

static int by_all(const void *a, const void *b)
{
    const struct occurrence *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    if (order == 0)
        order = x->docid < y->docid ? -1 : x->docid > y->docid;
    return order ? order : (int)x->field - (int)y->field;
}

static void same_occurrences(struct occurrences *wanted, struct occurrences *found)
{
    assert_int_equal(wanted->count, found->count);
    qsort(wanted->items, wanted->count, sizeof *wanted->items, by_all);
    qsort(found->items, found->count, sizeof *found->items, by_all);
    for (size_t i = 0; i < wanted->count; i++)
        if (by_all(&wanted->items[i], &found->items[i]) != 0)
            fail_msg("%s in document %u, not %s in document %u", wanted->items[i].key, wanted->items[i].docid,
                     found->items[i].key, found->items[i].docid);
}

/* Flushes into a new run and reads that. */
static void flush_and_read(struct wb_inverter *inverter, struct occurrences *found)
{
    struct wb_run_writer writer;
    struct wb_run run;

    ok(wb_run_begin(test_root, &run, &writer));
    ok(wb_inverter_flush(inverter, &writer));
    ok(wb_run_finish(&writer));
    assert_true(wb_inverter_empty(inverter));
    read_run(&run, found);
    wb_run_release(&run);
}

static void test_random_documents(void **state)
{
    uint64_t chance = test_seed();
    struct occurrences wanted = WB_VEC_INIT, found = WB_VEC_INIT;
    struct wb_inverter *inverter = NULL;
    uint32_t docids[DOCUMENTS];
    unsigned flushes = 0;

    (void)state;
    ok(wb_inverter_new(1, &inverter));
    assert_true(wb_inverter_empty(inverter));
    for (uint32_t i = 0; i < DOCUMENTS; i++) {
        uint32_t other = (uint32_t)chance_below(&chance, i + 1);
        docids[i] = docids[other];
        docids[other] = i * 3;
    }
    for (uint32_t i = 0; i < DOCUMENTS; i++) {
        add_document(&chance, inverter, docids[i], &wanted);
        if (wb_inverter_full(inverter) || chance_one_in(&chance, 40)) {
            flush_and_read(inverter, &found);
            flushes++;
        }
    }
    flush_and_read(inverter, &found);
    assert_true(flushes > 1);
    same_occurrences(&wanted, &found);
    wb_inverter_free(inverter);
    wb_vec_release(&wanted);
    wb_vec_release(&found);
}

/* The gaps of positions, in the order of spaces. */
static void test_positions(void **state)
{
    static const struct {
        enum wb_field field;
        uint32_t position;
    } places[] = {{WB_FIELD_TITLE, 4}, {WB_FIELD_TITLE, 4}, {WB_FIELD_HEADING, 1}, {WB_FIELD_MAIN, 7},
                  {WB_FIELD_OTHER, 9}, {WB_FIELD_MAIN, 30}, {WB_FIELD_URL, 0},     {WB_FIELD_ANCHOR, 256}};
    static const uint32_t gaps[] = {4, 0, 1, 7, 2, 21, 0, 256};
    struct wb_postingsource source = {.left = 0};
    struct wb_inverter *inverter = NULL;
    struct wb_run_cursor cursor;
    struct wb_run_writer writer;
    struct wb_run run;

    (void)state;
    ok(wb_inverter_new(0, &inverter));
    wb_inverter_begin(inverter, 77, 0);
    for (size_t i = 0; i < COUNT(places); i++)
        if (wb_inverter_add(inverter, WB_SLICE_LIT("word"), true, places[i].field, places[i].position) == 1)
            ok(wb_inverter_stem(inverter, WB_SLICE_LIT("wor")));
    ok(wb_inverter_end(inverter));
    ok(wb_run_begin(test_root, &run, &writer));
    ok(wb_inverter_flush(inverter, &writer));
    ok(wb_run_finish(&writer));
    wb_run_seek(&run, WB_SLICE_EMPTY, &cursor);
    assert_memory_equal(cursor.key.ptr, "wor\0S", 5);
    ok(wb_postingsource_run(&source, &cursor));
    assert_int_equal(source.posting.docid, 77);
    assert_int_equal(source.posting.gap_count, 0);
    assert_int_equal(source.posting.frequency[WB_FIELD_MAIN], 2);
    assert_int_equal(wb_run_next(&cursor), 1);
    assert_memory_equal(cursor.key.ptr, "word\0E", 6);
    ok(wb_postingsource_run(&source, &cursor));
    assert_int_equal(source.posting.gap_count, COUNT(gaps));
    assert_memory_equal(source.posting.gaps, gaps, sizeof gaps);
    assert_int_equal(wb_run_next(&cursor), 0);
    wb_postingsource_release(&source);
    wb_run_release(&run);
    wb_inverter_free(inverter);
}

/* Every key of a long run can be found, and what is between two keys leads to the second. */
static void test_seek(void **state)
{
    struct wb_run_cursor cursor;
    struct wb_run_writer writer;
    struct wb_run run;
    char *room, key[16];

    (void)state;
    ok(wb_run_begin(test_root, &run, &writer));
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(key, sizeof key, "k%06u", 2 * i);
        ok(wb_run_term(&writer, wb_slice(key, 7), 1, 1000));
        ok(wb_run_room(&writer, 1000, &room));
        memset(room, (int)(i % 251), 1000);
        wb_run_took(&writer, 1000);
    }
    ok(wb_run_finish(&writer));
    assert_true(run.places.count > 4);
    for (unsigned i = 0; i < 4000; i++) {
        snprintf(key, sizeof key, "k%06u", i);
        wb_run_seek(&run, wb_slice(key, 7), &cursor);
        if (i == 3999) {
            assert_int_equal(cursor.key.len, 0);
            break;
        }
        snprintf(key, sizeof key, "k%06u", i + i % 2);
        assert_memory_equal(cursor.key.ptr, key, 7);
        assert_int_equal((uint8_t)cursor.postings.ptr[999], (i + 1) / 2 % 251);
    }
    wb_run_release(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_documents),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_seek),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
