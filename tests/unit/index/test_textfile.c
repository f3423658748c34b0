/*
 * test_textfile.c - what is kept of the texts of pages: any text comes back as it was, with and without a dictionary;
 * of damage, the file is named, and no other text comes out.
 */
#include "../otherformat.h"
#include "index_support.h"
#include "../testroot.h"
#include "base/bytes.h"
#include "index/textfile.h"

#include <zdict.h>

enum { TEXTS = 150 };

struct texts {
    struct wb_buf kept[TEXTS];
    struct wb_buf dictionary, ids;
};

/* Any bytes, some of them like text, some as long as they may be. */
static void make_text(uint64_t *chance, struct wb_buf *kept)
{
    size_t len = chance_one_in(chance, 40)   ? WB_KEPT_TEXT_MAX
                 : chance_one_in(chance, 10) ? chance_below(chance, 60000)
                                             : chance_below(chance, 5000);
    size_t title = chance_below(chance, 80);
    char head[1 + WB_VARINT_MAX];
    bool noise = chance_one_in(chance, 5);

    head[0] = (char)chance_below(chance, 4);
    ok(wb_buf_append(kept, head, 1 + wb_put_varint(head + 1, title)));
    for (len += kept->len + title; kept->len < len;) {
        if (noise)
            ok(wb_buf_append_char(kept, (char)chance_next(chance)));
        else
            web_word(chance, 500, kept);
    }
    kept->len = len;
}

static void make_texts(uint64_t *chance, struct texts *texts, bool dictionary)
{
    struct wb_buf samples = WB_BUF_INIT;
    size_t sizes[TEXTS];
    char id[WB_PAGEID_BYTES] = {0};

    *texts = (struct texts){.dictionary = WB_BUF_INIT};
    for (size_t i = 0; i < TEXTS; i++) {
        if (!chance_one_in(chance, 15)) /* others could not be read */
            make_text(chance, &texts->kept[i]);
        sizes[i] = texts->kept[i].len < 3000 ? texts->kept[i].len : 3000;
        ok(wb_buf_append(&samples, texts->kept[i].ptr ? texts->kept[i].ptr : "", sizes[i]));
    }
    if (dictionary) {
        ok(wb_buf_reserve(&texts->dictionary, WB_TEXT_DICTIONARY_MAX));
        size_t bytes = ZDICT_trainFromBuffer(texts->dictionary.ptr, 20000, samples.ptr, sizes, TEXTS);
        assert_false(ZDICT_isError(bytes));
        texts->dictionary.len = bytes;
        for (size_t i = 0; i < 20; i++)
            ok(wb_buf_append(&texts->ids, id, sizeof id));
    }
    wb_buf_release(&samples);
}

static void release_texts(struct texts *texts)
{
    for (size_t i = 0; i < TEXTS; i++)
        wb_buf_release(&texts->kept[i]);
    wb_buf_release(&texts->dictionary);
    wb_buf_release(&texts->ids);
}

static void write_texts(const char *path, const struct texts *texts)
{
    struct wb_text_dictionary dictionary = {wb_buf_slice(&texts->dictionary), wb_buf_slice(&texts->ids), 77};
    struct wb_textfile_writer *writer;

    ok(wb_textfile_create(path, test_root, TEXTS, &dictionary, &writer));
    for (size_t i = 0; i < TEXTS; i++)
        ok(wb_textfile_add(writer, wb_buf_slice(&texts->kept[i])));
    ok(wb_textfile_finish(writer));
}

static int decode(struct wb_text_decoder *decoder, const struct wb_textfile *file, uint32_t page)
{
    int more = wb_text_decoder_begin(decoder, file, page);

    for (more = more < 0 ? more : 1; more > 0;)
        more = wb_text_decoder_more(decoder);
    return more;
}

static void check_texts(const char *path, const struct texts *texts)
{
    struct wb_text_decoder decoder;
    struct wb_textfile file;

    ok(wb_textfile_open(path, &file));
    ok(wb_text_decoder_init(&decoder));
    assert_int_equal(file.pages, TEXTS);
    assert_int_equal(file.dictionary.bytes.len, texts->dictionary.len);
    assert_int_equal(file.dictionary.samples.len, texts->ids.len);
    assert_int_equal(file.dictionary.pages, 77);
    for (size_t n = 0; n < 2 * TEXTS; n++) { /* also in another order */
        uint32_t page = (uint32_t)(n < TEXTS ? n : n * 59 % TEXTS);
        ok(decode(&decoder, &file, page));
        assert_true(wb_slice_equal(wb_buf_slice(&decoder.kept), wb_buf_slice(&texts->kept[page])));
    }
    ok(wb_textfile_verify(&file));
    wb_text_decoder_release(&decoder);
    wb_textfile_close(&file);
}

static void test_round(void **state)
{
    uint64_t chance = test_seed();
    struct texts *texts = wb_alloc(sizeof *texts);

    (void)state;
    for (int dictionary = 0; dictionary < 2; dictionary++) {
        make_texts(&chance, texts, dictionary);
        write_texts(test_path("texts"), texts);
        check_texts(test_path("texts"), texts);
        release_texts(texts);
    }
    wb_free(texts);
}

/* Records of one file in another one with the same dictionary. */
static void test_copied(void **state)
{
    uint64_t chance = test_seed();
    struct texts *texts = wb_alloc(sizeof *texts);
    struct wb_textfile_writer *writer;
    struct wb_textfile file;

    (void)state;
    make_texts(&chance, texts, true);
    write_texts(test_path("texts"), texts);
    ok(wb_textfile_open(test_path("texts"), &file));
    ok(wb_textfile_create(test_path("copy"), test_root, TEXTS, &file.dictionary, &writer));
    for (uint32_t i = 0; i < TEXTS; i++) {
        struct wb_slice record;
        ok(wb_textfile_record(&file, i, &record));
        if (chance_one_in(&chance, 3))
            ok(wb_textfile_add(writer, wb_buf_slice(&texts->kept[i])));
        else
            ok(wb_textfile_add_record(writer, record));
    }
    ok(wb_textfile_finish(writer));
    check_texts(test_path("copy"), texts);
    wb_textfile_close(&file);
    release_texts(texts);
    wb_free(texts);
}

/* A bit is another one: the file is named, or nothing depends on the bit. No other text comes out. */
static void test_flips(void **state)
{
    const char *path = test_path("texts"), *changed = test_path("changed");
    uint64_t chance = test_seed();
    struct texts *texts = wb_alloc(sizeof *texts);
    struct wb_buf bytes = WB_BUF_INIT;
    unsigned noticed = 0;

    (void)state;
    make_texts(&chance, texts, true);
    write_texts(path, texts);
    ok(wb_path_read(path, SIZE_MAX / 2, &bytes));
    for (unsigned round = 0; round < 60; round++) {
        size_t at = round % 2 ? bytes.len - 1 - chance_below(&chance, 3000) : chance_below(&chance, bytes.len);
        struct wb_text_decoder decoder;
        struct wb_textfile file;
        bytes.ptr[at] = (char)(bytes.ptr[at] ^ 1);
        ok(wb_path_replace(changed, wb_buf_slice(&bytes)));
        bytes.ptr[at] = (char)(bytes.ptr[at] ^ 1);
        int err = wb_textfile_open(changed, &file);
        ok(wb_text_decoder_init(&decoder));
        for (uint32_t page = 0; err == 0 && page < TEXTS; page++) {
            err = decode(&decoder, &file, page);
            assert_true(err < 0 || wb_slice_equal(wb_buf_slice(&decoder.kept), wb_buf_slice(&texts->kept[page])));
        }
        assert_true(err == 0 || err == WB_E_CORRUPT || err == WB_E_NEWER);
        assert_true(err == 0 || strstr(wb_error_message(), changed));
        noticed += err < 0;
        wb_text_decoder_release(&decoder);
        wb_textfile_close(&file);
    }
    assert_true(noticed > 50);
    struct wb_textfile other;
    put_blob_format(path, WB_TEXTS_KIND, 64 - 6, '2');
    assert_refused_format(wb_textfile_open(path, &other), path, 2);
    wb_buf_release(&bytes);
    release_texts(texts);
    wb_free(texts);
}

/* ---- what is kept ------------------------------------------------------------------------------ */

static void keep(struct wb_extractor *extractor, const char *type, const char *body, struct wb_buf *kept)
{
    struct wb_extract_input input = {WB_SLICE_LIT("http://a.test/"), wb_slice_str(type), WB_SLICE_LIT("utf-8"),
                                     wb_slice_str(body), WB_EXTRACT_TEXT};
    struct wb_extract extract;

    ok(wb_extract(extractor, &input, &extract));
    ok(wb_kept_text_make(&extract, kept));
}

static void test_kept(void **state)
{
    struct wb_extractor *extractor;
    struct wb_buf kept = WB_BUF_INIT, body = WB_BUF_INIT;
    struct wb_slice title, text;
    unsigned flags;

    (void)state;
    ok(wb_extractor_new(&extractor));
    keep(extractor, "text/html",
         "<title>Boats and how to sail them</title><nav><ul><li><a href=x>elsewhere</a></ul></nav>"
         "<main><h1>Boats</h1><p>Boats are built of wood, and some of them of steel, or of concrete.</p>"
         "<p>They are sailed by people who have time, by night and by day, in all seas.</p></main>"
         "<footer>impressum</footer>",
         &kept);
    assert_true(wb_kept_text_split(wb_buf_slice(&kept), &flags, &title, &text));
    assert_true(wb_slice_equal(title, WB_SLICE_LIT("Boats and how to sail them")));
    assert_int_equal(flags, 0);
    text = wb_slice_trim(text);
    assert_true(wb_slice_starts(text, WB_SLICE_LIT("Boats are built of wood, and some of them of steel, or of ")));
    assert_true(wb_slice_ends(text, WB_SLICE_LIT("concrete.\nThey are sailed by people who have time, by night and by "
                                                 "day, in all seas.")));
    keep(extractor, "text/plain", "one\ntwo", &kept);
    assert_true(wb_kept_text_split(wb_buf_slice(&kept), &flags, &title, &text));
    assert_int_equal(flags, WB_KEPT_LINES);
    /* A long text is cut between words, or at least between characters. */
    while (body.len < 2 * WB_KEPT_TEXT_MAX)
        ok(wb_buf_append_str(&body, body.len < WB_KEPT_TEXT_MAX / 2 ? "words and words " : "日本語"));
    ok(wb_buf_terminate(&body));
    keep(extractor, "text/plain", body.ptr, &kept);
    assert_true(wb_kept_text_split(wb_buf_slice(&kept), &flags, &title, &text));
    assert_int_equal(flags, WB_KEPT_LINES | WB_KEPT_CUT);
    assert_true(text.len <= WB_KEPT_TEXT_MAX && text.len > WB_KEPT_TEXT_MAX - 4);
    assert_true(wb_slice_ends(text, WB_SLICE_LIT("日")) || wb_slice_ends(text, WB_SLICE_LIT("本")) ||
                wb_slice_ends(text, WB_SLICE_LIT("語")));
    for (size_t len = 0; len < 20; len++) /* what is cut makes no sense, or less of it */
        wb_kept_text_split(wb_slice(kept.ptr, len), &flags, &title, &text);
    wb_buf_release(&kept);
    wb_buf_release(&body);
    wb_extractor_free(extractor);
}

/* ---- from one generation to the next ------------------------------------------------------------ */

static void open_texts(const struct web *web, struct wb_textfile *file)
{
    char path[256 + 16];
    struct genfiles *files = wb_alloc(sizeof *files);

    read_genfiles(web->dir, files);
    snprintf(path, sizeof path, "%s/%s", files->path, WB_TEXTS_FILE);
    ok(wb_textfile_open(path, file));
    wb_free(files);
}

/* Whether the dictionary was made of a page. */
static bool is_sample(const struct wb_textfile *file, struct wb_pageid id)
{
    for (size_t at = 0; at < file->dictionary.samples.len; at += WB_PAGEID_BYTES)
        if (wb_pageid_equal(wb_pageid_get(file->dictionary.samples.ptr + at), id))
            return true;
    return false;
}

/* A dictionary stays while its pages do; when one is taken down, nothing of it stays. */
static void test_dictionary(void **state)
{
    struct web *web = wb_alloc(sizeof *web);
    struct wb_textfile first, second, third;
    struct wb_buf site = WB_BUF_INIT;
    char dir[80];

    (void)state;
    snprintf(dir, sizeof dir, "%s/r", test_root);
    web_init(web, dir, test_seed());
    web->body_words = 900;
    web->no_takedowns = true;
    web_fill(web);
    web_build(web);
    open_texts(web, &first);
    assert_true(first.dictionary.bytes.len > 1000);
    for (size_t i = 0; i < WEB_URLS; i++) /* an edit: the dictionary stays, and its pages are still there */
        if (web->urls[i].page && i % 5 == 0) {
            struct wb_store_commit_counts counts = {0};
            struct wb_store *store = NULL;
            ok(wb_store_open(web->dir, WB_STORE_WRITE, &store));
            web_write(web, store, &web->urls[i]);
            ok(wb_store_commit(store, &counts));
            wb_store_close(store);
        }
    web_build(web);
    open_texts(web, &second);
    assert_true(wb_slice_equal(first.dictionary.bytes, second.dictionary.bytes));
    verify_sound(web->dir);
    size_t gone = 0;
    while (!web->urls[gone].page || !is_sample(&second, web_id(&web->urls[gone], &site))) {
        wb_buf_clear(&site);
        gone++;
        assert_true(gone < WEB_URLS);
    }
    struct wb_update_options options = {.dir = web->dir, .memory_bytes = SMALL_MEMORY};
    struct wb_cycle_sink sink = {.progress = NULL};
    struct wb_expunge_stat stat;
    ok(wb_expunge(&options, web->urls[gone].url, false, &sink, NULL, NULL, &stat));
    web_build(web);
    open_texts(web, &third);
    assert_false(is_sample(&third, web_id(&web->urls[gone], &site)));
    assert_false(wb_slice_equal(second.dictionary.bytes, third.dictionary.bytes));
    verify_sound(web->dir);
    wb_textfile_close(&first);
    wb_textfile_close(&second);
    wb_textfile_close(&third);
    wb_buf_release(&site);
    wb_free(web);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round), cmocka_unit_test(test_copied),     cmocka_unit_test(test_flips),
        cmocka_unit_test(test_kept),  cmocka_unit_test(test_dictionary),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
