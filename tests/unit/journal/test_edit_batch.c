/*
 * test_edit_batch.c - batches in the journal: their records are read one by one, in order, among other records;
 * damage is reported once.
 */
#include "edit_support.h"

#include "journal/edit_batch.h"
#include "journal/edit.h"

/* A page whose URL and links follow from a number. */
static struct wb_edit page_edit(unsigned n, char *url, struct wb_pagelink links[2])
{
    sprintf(url, "http://h%u.example/%u", n % 7, n);
    links[0] = (struct wb_pagelink){.url = WB_SLICE_LIT("http://h.example/all"), .anchor = WB_SLICE_LIT("all"),
                                    .flags = WB_PAGELINK_FOLLOW};
    links[1] = (struct wb_pagelink){.url = wb_slice_str(url), .anchor = WB_SLICE_EMPTY};
    return (struct wb_edit){.kind = WB_EDIT_PAGE, .site = n, .time_ms = n,
                            .page = {.url = wb_slice_str(url), .outcome = WB_OUTCOME_STORED, .status = 200,
                                     .has_content = true,
                                     .type = WB_SLICE_EMPTY, .reason = WB_SLICE_EMPTY, .etag = WB_SLICE_EMPTY,
                                     .modified = WB_SLICE_EMPTY,
                                     .location = WB_SLICE_EMPTY, .links = links, .link_count = 2}};
}

static void add_page(struct wb_edit_batch *batch, unsigned n)
{
    struct wb_pagelink links[2];
    char url[64];
    struct wb_edit edit = page_edit(n, url, links);

    assert_int_equal(wb_edit_batch_add(batch, &edit), 0);
}

static void expect_page(const struct wb_edit *edit, unsigned n)
{
    struct wb_pagelink links[2], link;
    struct wb_buf mem = WB_BUF_INIT;
    char url[64];
    struct wb_edit want = page_edit(n, url, links);
    size_t at = 0;

    assert_int_equal(edit->kind, WB_EDIT_PAGE);
    assert_int_equal(edit->time_ms, want.time_ms);
    assert_true(wb_slice_equal(edit->page.url, want.page.url));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wb_edit_links_next(edit, &at, &mem, &link), 1);
        assert_true(wb_slice_equal(link.url, links[i].url) && wb_slice_equal(link.anchor, links[i].anchor));
    }
    assert_int_equal(wb_edit_links_next(edit, &at, &mem, &link), 0);
    wb_buf_release(&mem);
}

static void test_among_others(void **state)
{
    struct wb_edit_batch batch = {.count = 0};
    struct wb_edit_place places[60], at = WB_EDIT_NOWHERE;
    struct wb_journal_writer *log = NULL;
    struct wb_journal_reader *reader = NULL;
    const char *folder = new_dir();
    struct wb_edit edit;
    uint64_t seed = test_seed();
    unsigned sizes[60], n = 0;

    (void)state;
    assert_int_equal(wb_journal_writer_open(folder, 0, &log), 0);
    for (unsigned i = 0; i < COUNT(sizes); i++) {
        sizes[i] = (unsigned)chance_below(&seed, 4) ? 1 + (unsigned)chance_below(&seed, 40) : 0;
        for (unsigned k = 0; k < sizes[i]; k++)
            add_page(&batch, n++);
        assert_int_equal(wb_edit_batch_pack(&batch, &edit), 0);
        assert_int_equal(edit.kind, sizes[i] ? WB_EDIT_BATCH : 0);
        if (!sizes[i])
            edit = (struct wb_edit){.kind = WB_EDIT_PUSH, .time_ms = i, .count = WB_PUSH_CHANGED,
                                    .text = WB_SLICE_LIT("http://p.example/")};
        assert_int_equal(wb_journal_writer_append(log, &edit, &places[i]), 0);
    }
    assert_int_equal(wb_journal_writer_finish(log), 0);
    wb_journal_writer_close(log);

    assert_int_equal(wb_journal_reader_open(folder, &reader), 0);
    n = 0;
    for (unsigned i = 0; i < COUNT(sizes); i++)
        for (unsigned k = 0; k < (sizes[i] ? sizes[i] : 1); k++) {
            assert_int_equal(wb_journal_reader_next(reader, &at, &edit), 1);
            assert_int_equal(at.offset, places[i].offset);
            if (sizes[i])
                expect_page(&edit, n++);
            else
                assert_int_equal(edit.kind, WB_EDIT_PUSH);
        }
    assert_int_equal(wb_journal_reader_next(reader, &at, &edit), 0);
    /* A reader that starts from the place of a batch continues after the whole batch. */
    at = places[7];
    wb_journal_reader_close(reader);
    assert_int_equal(wb_journal_reader_open(folder, &reader), 0);
    assert_int_equal(wb_journal_reader_next(reader, &at, &edit), 1);
    assert_int_equal(at.offset, places[8].offset);
    wb_journal_reader_close(reader);
    wb_edit_batch_release(&batch);
}

/*
 * With any byte, length or count changed, the records are as they were, or the batch is damaged; there are never
 * more.
 */
static void test_damage(void **state)
{
    struct wb_edit_batch batch = {.count = 0};
    struct wb_edit_batch_reader unpacked = {.at = 0};
    struct wb_edit whole, edit;
    uint64_t seed = test_seed();

    (void)state;
    for (unsigned n = 0; n < 20; n++)
        add_page(&batch, n);
    assert_int_equal(wb_edit_batch_pack(&batch, &whole), 0);
    for (int round = 0; round < 4000; round++) {
        struct wb_buf text = WB_BUF_INIT;
        struct wb_edit broken = whole;
        unsigned n = 0;
        int got;
        assert_int_equal(wb_buf_append_slice(&text, whole.text), 0);
        if (round % 4 == 0)
            broken.count = (uint32_t)chance_below(&seed, 40);
        else if (round % 4 == 1)
            broken.until_ms += (int64_t)chance_below(&seed, 200) - 100;
        else
            text.ptr[chance_below(&seed, text.len)] ^= (char)(1 + chance_below(&seed, 255));
        broken.text = wb_slice(text.ptr, round % 4 == 3 ? chance_below(&seed, text.len) : text.len);
        int err = wb_edit_batch_reader_start(&broken, &unpacked);
        assert_true(err == 0 || err == WB_E_CORRUPT);
        while ((got = wb_edit_batch_reader_next(&unpacked, &edit)) == 1)
            expect_page(&edit, n++);
        assert_true(got == 0 || got == WB_E_CORRUPT);
        assert_true(n <= 20 && (got == WB_E_CORRUPT || err < 0 || n == broken.count));
        assert_int_equal(wb_edit_batch_reader_next(&unpacked, &edit), 0);
        wb_buf_release(&text);
    }
    wb_edit_batch_reader_release(&unpacked);
    wb_edit_batch_release(&batch);
}

/* A batch inside a batch is refused: otherwise unpacking could go on for ever. */
static void test_nested(void **state)
{
    struct wb_edit_batch inner = {.count = 0}, outer = {.count = 0};
    struct wb_edit_batch_reader unpacked = {.at = 0};
    struct wb_edit edit;

    (void)state;
    add_page(&inner, 1);
    assert_int_equal(wb_edit_batch_pack(&inner, &edit), 0);
    assert_int_equal(wb_edit_batch_add(&outer, &edit), 0);
    assert_int_equal(wb_edit_batch_pack(&outer, &edit), 0);
    assert_int_equal(wb_edit_batch_reader_start(&edit, &unpacked), 0);
    assert_int_equal(wb_edit_batch_reader_next(&unpacked, &edit), WB_E_CORRUPT);
    wb_edit_batch_reader_release(&unpacked);
    wb_edit_batch_release(&inner);
    wb_edit_batch_release(&outer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_among_others),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_nested),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
