/*
 * test_journal_writer.c - the logs of the journal: writing, reading, chains, damage, and a fault in each operation.
 */
#include "journal_support.h"
#include "journal/edit.h"
#include "journal/journal_file.h"

static void expect_chain(struct wb_journal_reader *reader, const struct written *list, size_t last, bool whole)
{
    struct wb_edit_place *places;
    struct wb_edit edit;
    size_t count, i = last, n;

    assert_int_equal(wb_journal_reader_chain(reader, list[last].place, whole, &places, &count), 0);
    for (n = count; n > 0; n--) {
        assert_int_equal(places[n - 1].log, list[i].place.log);
        assert_int_equal(places[n - 1].offset, list[i].place.offset);
        assert_int_equal(wb_journal_reader_get(reader, places[n - 1], &edit), 0);
        expect_edit(&edit, &list[i]);
        if (n > 1)
            i -= SITES;
    }
    assert_true(whole ? i < SITES : i % 50 < SITES);
    assert_true(count > 0);
    wb_free(places);
}

static void test_write_and_read(void **state)
{
    const char *dir = new_dir();
    struct wb_journal_writer *log;
    struct wb_journal_reader *reader;
    struct wb_edit_place at = WB_EDIT_NOWHERE, held;
    struct wb_edit edit;
    static struct written list[5000];
    unsigned damage;

    (void)state;
    assert_int_equal(wb_journal_reader_open(dir, &reader), 0);
    assert_int_equal(wb_journal_reader_next(reader, &at, &edit), 0); /* there is no journal */
    assert_int_equal(wb_journal_writer_open(dir, 20000, &log), 0);
    append_some(log, list, 0, 10);
    assert_int_equal(wb_journal_reader_get(reader, list[0].place, &edit), WB_E_CORRUPT); /* not flushed */
    assert_int_equal(wb_journal_writer_flush(log), 0);
    assert_int_equal(wb_journal_reader_get(reader, list[9].place, &edit), 0);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(wb_journal_reader_next(reader, &at, &edit), 1);
    held = at;
    assert_int_equal(wb_journal_reader_next(reader, &at, &edit), 0);
    assert_memory_equal(&held, &at, sizeof at);
    /* The reader continues as the log grows and new logs are started. */
    unsigned rolls = 0;
    for (size_t i = 10; i < 5000; i += 10) {
        append_some(log, list, i, 10);
        assert_int_equal(wb_journal_writer_flush(log), 0);
        rolls += wb_journal_writer_rolled(log);
        assert_false(wb_journal_writer_rolled(log));
        for (unsigned k = 0; k < 10; k++) {
            assert_int_equal(wb_journal_reader_next(reader, &at, &edit), 1);
            expect_edit(&edit, &list[i + k]);
        }
        assert_int_equal(wb_journal_reader_next(reader, &at, &edit), 0);
    }
    assert_in_range(rolls, 10, 30);
    assert_int_equal(list[4999].place.log, rolls + 1);
    for (size_t i = 4990; i < 5000; i++) {
        expect_chain(reader, list, i, true);
        expect_chain(reader, list, i, false);
    }
    assert_int_equal(wb_journal_reader_get(reader, (struct wb_edit_place){rolls + 2, 64}, &edit), WB_E_NOTFOUND);
    assert_int_equal(wb_journal_reader_get(reader, (struct wb_edit_place){1, 65}, &edit), WB_E_CORRUPT);
    assert_int_equal(wb_journal_reader_get(reader, (struct wb_edit_place){1, 0}, &edit), WB_E_CORRUPT);
    wb_journal_reader_close(reader);
    assert_int_equal(wb_journal_writer_finish(log), 0);
    wb_journal_writer_close(log);
    assert_int_equal(read_all(dir, list, 5000, &damage), 5000);
    assert_int_equal(damage, 0);
}

/* Huge records between small ones, and a buffer that flushes by itself. */
static void test_large(void **state)
{
    const char *dir = new_dir();
    char *text = malloc(9 << 20);
    struct wb_journal_writer *log;
    struct wb_journal_reader *reader;
    struct wb_edit_place places[40], *chain;
    struct wb_edit edit;
    size_t count;

    (void)state;
    memset(text, 'r', 9 << 20);
    assert_int_equal(wb_journal_writer_open(dir, 0, &log), 0);
    for (unsigned i = 0; i < 40; i++) {
        struct wb_edit rules = {.kind = i ? WB_EDIT_RULES : WB_EDIT_VISIT, .site = 1,
                                .prev = i ? places[i - 1] : WB_EDIT_NOWHERE,
                                .text = WB_SLICE_EMPTY, .rules = {.reason = WB_SLICE_EMPTY,
                                                                  .text = {text, i % 8 == 5 ? 9 << 20 : i * 100}}};
        assert_int_equal(wb_journal_writer_append(log, &rules, &places[i]), 0);
    }
    assert_true(wb_path_disk_bytes(log_path(dir, 1)) > 20 << 20);
    assert_int_equal(wb_journal_writer_sync(log), 0);
    assert_int_equal(wb_journal_reader_open(dir, &reader), 0);
    assert_int_equal(wb_journal_reader_chain(reader, places[39], false, &chain, &count), 0);
    assert_int_equal(count, 40);
    for (unsigned i = 0; i < 40; i++) {
        assert_int_equal(chain[i].offset, places[i].offset);
        assert_int_equal(wb_journal_reader_get(reader, chain[i], &edit), 0);
        assert_int_equal(edit.rules.text.len, i % 8 == 5 ? 9 << 20 : i * 100);
    }
    wb_free(chain);
    wb_journal_reader_close(reader);
    wb_journal_writer_close(log);
    free(text);
}

static void test_numbers(void **state)
{
    const char *dir = new_dir();
    struct wb_journal_writer *a, *b;
    struct wb_edit_place place;
    struct wb_edit edit = {.kind = WB_EDIT_WAIT, .text = WB_SLICE_LIT("x")};

    (void)state;
    assert_int_equal(wb_journal_writer_open(dir, 0, &a), 0);
    assert_int_equal(wb_journal_writer_open(dir, 0, &b), 0);
    assert_int_equal(wb_journal_writer_append(a, &edit, &place), 0);
    assert_int_equal(place.log, 1);
    assert_int_equal(wb_journal_writer_append(b, &edit, &place), 0);
    assert_int_equal(place.log, 2);
    wb_journal_writer_close(a);
    wb_journal_writer_close(b);
}

/* A log that has not ended is cut anywhere: every complete record is read, and nothing counts as damage. */
static void test_torn(void **state)
{
    const char *dir = new_dir();
    static struct written list[60];
    unsigned damage;

    (void)state;
    write_log(dir, list, 60, false);
    uint64_t size;
    struct wb_file file;
    assert_int_equal(wb_file_open(log_path(dir, 1), WB_FILE_READ, &file), 0);
    assert_int_equal(wb_file_size(&file, &size), 0);
    wb_file_close(&file);
    while (size-- > 0) {
        cut_file(log_path(dir, 1), size);
        size_t expected = 0; /* the number of complete records */
        while (expected + 1 < 60 && list[expected + 1].place.offset <= size)
            expected++;
        assert_int_equal(read_all(dir, list, 60, &damage), expected);
        assert_int_equal(damage, 0);
    }
}

/*
 * One changed byte costs at most the record that it is in. Only if it is in the length of a record, and the log has not
 * ended, it costs the records after it, too.
 */
static void damage_everywhere(bool ended)
{
    const char *dir = new_dir();
    static struct written list[40];
    unsigned damage;

    write_log(dir, list, 40, ended);
    for (size_t i = 1; i < 40; i++)
        for (uint64_t at = list[i - 1].place.offset; at < list[i].place.offset; at++) {
            change_byte(log_path(dir, 1), at, (uint8_t)(1 + at % 255));
            size_t found = read_all(dir, list, 40, &damage);
            if (at < list[i - 1].place.offset + 4) {
                assert_true(found >= i - 1 && found < 40);
                assert_true(damage == 1 || !ended);
            } else {
                assert_int_equal(found, 39);
                assert_int_equal(damage, 1);
            }
            change_byte(log_path(dir, 1), at, (uint8_t)(1 + at % 255));
        }
    assert_int_equal(read_all(dir, list, 40, &damage), 40);
    /* In the last record it is damage if the log has ended; otherwise the record counts as unfinished. */
    change_byte(log_path(dir, 1), list[39].place.offset + 20, 1);
    assert_int_equal(read_all(dir, list, 40, &damage), 39);
    assert_int_equal(damage, ended);
    change_byte(log_path(dir, 1), list[39].place.offset + 20, 1);
    /* In the head it costs the whole log, reported once. In the end it only means that the log has not ended. */
    for (uint64_t at = 0; at < 48; at++) {
        change_byte(log_path(dir, 1), at, 64);
        assert_int_equal(read_all(dir, list, 40, &damage), at < 32 ? 0 : 40);
        assert_int_equal(damage, at < 32 ? 1 : 0);
        change_byte(log_path(dir, 1), at, 64);
    }
}

static void test_damage(void **state)
{
    (void)state;
    damage_everywhere(true);
    damage_everywhere(false);
}

/* ---- chains that lie ---------------------------------------------------------------------------- */

/* Writes one record at the end of a log, bypassing the writer, with any prev. */
static struct wb_edit_place forge(const char *dir, struct wb_journal_file *file, uint64_t *at, uint64_t site,
                                  struct wb_edit_place prev)
{
    struct wb_edit edit = {.kind = WB_EDIT_REQUEST, .site = site, .prev = prev, .text = WB_SLICE_LIT("address")};
    struct wb_edit_place place = {file->number, *at};
    struct wb_buf record = WB_BUF_INIT;

    (void)dir;
    assert_int_equal(wb_edit_encode(&edit, wb_edit_salt(file->writer, *at), &record), 0);
    assert_int_equal(wb_file_write_at(&file->file, *at, record.ptr, record.len), 0);
    *at += record.len;
    wb_buf_release(&record);
    return place;
}

static void expect_bad_chain(const char *dir, struct wb_edit_place last, int code)
{
    struct wb_journal_reader *reader;
    struct wb_edit_place *places;
    size_t count;

    assert_int_equal(wb_journal_reader_open(dir, &reader), 0);
    for (int whole = 0; whole < 2; whole++) {
        assert_int_equal(wb_journal_reader_chain(reader, last, whole, &places, &count), code);
        assert_null(places);
        assert_int_equal(count, 0);
    }
    wb_journal_reader_close(reader);
}

static void test_bad_chains(void **state)
{
    const char *dir = new_dir();
    char journal[160];
    struct wb_journal_file a, b;
    uint64_t at_a = WB_JOURNAL_FILE_HEAD_BYTES, at_b = at_a, size;
    struct wb_edit_place first, second, third;

    (void)state;
    snprintf(journal, sizeof journal, "%s/journal", dir);
    assert_int_equal(wb_journal_file_create(journal, 77, 0, &a), 0);
    assert_int_equal(wb_journal_file_create(journal, 78, 0, &b), 0);
    first = forge(dir, &a, &at_a, 1, WB_EDIT_NOWHERE);
    size = at_a - first.offset;
    /* A chain that leads to itself, and one that leads forwards. */
    second = forge(dir, &a, &at_a, 1, (struct wb_edit_place){1, at_a});
    expect_bad_chain(dir, second, WB_E_CORRUPT);
    second = forge(dir, &a, &at_a, 1, (struct wb_edit_place){1, at_a + size});
    forge(dir, &a, &at_a, 1, first);
    expect_bad_chain(dir, second, WB_E_CORRUPT);
    /* A circle through two logs. */
    second = forge(dir, &a, &at_a, 1, (struct wb_edit_place){2, at_b});
    third = forge(dir, &b, &at_b, 1, second);
    expect_bad_chain(dir, third, WB_E_CORRUPT);
    expect_bad_chain(dir, second, WB_E_CORRUPT);
    /* A chain that leads to another site, to no record, to no log. */
    second = forge(dir, &a, &at_a, 2, first);
    expect_bad_chain(dir, second, WB_E_CORRUPT);
    second = forge(dir, &a, &at_a, 1, (struct wb_edit_place){1, first.offset + 1});
    expect_bad_chain(dir, second, WB_E_CORRUPT);
    expect_bad_chain(dir, (struct wb_edit_place){9, 64}, WB_E_NOTFOUND);
    wb_journal_file_close(&a);
    wb_journal_file_close(&b);
}

/* A site is handed back and forth between two writers; then the log of one is removed. */
static void test_chain_over_logs(void **state)
{
    const char *dir = new_dir();
    struct wb_journal_writer *logs[2];
    struct wb_edit_place last = WB_EDIT_NOWHERE, *places;
    struct wb_journal_reader *reader;
    size_t count;

    (void)state;
    assert_int_equal(wb_journal_writer_open(dir, 0, &logs[0]), 0);
    assert_int_equal(wb_journal_writer_open(dir, 0, &logs[1]), 0);
    for (unsigned i = 0; i < 1000; i++) {
        struct wb_edit edit = {.kind = WB_EDIT_REQUEST, .site = 5, .prev = last, .text = WB_SLICE_LIT("a")};
        assert_int_equal(wb_journal_writer_append(logs[i / 3 % 2], &edit, &last), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(wb_journal_writer_finish(logs[i]), 0);
        wb_journal_writer_close(logs[i]);
    }
    assert_int_equal(wb_journal_reader_open(dir, &reader), 0);
    assert_int_equal(wb_journal_reader_chain(reader, last, true, &places, &count), 0);
    assert_int_equal(count, 1000);
    assert_int_equal(places[0].log, 1);
    assert_int_equal(places[3].log, 2);
    wb_free(places);
    wb_journal_reader_close(reader);
    assert_int_equal(unlink(log_path(dir, 3 - last.log)), 0);
    assert_int_equal(wb_journal_reader_open(dir, &reader), 0);
    assert_int_equal(wb_journal_reader_chain(reader, last, true, &places, &count), 0);
    assert_int_equal(count, 1000 % 3 ? 1000 % 3 : 3); /* as much as still exists */
    wb_free(places);
    assert_int_equal(wb_journal_reader_chain(reader, last, false, &places, &count), WB_E_NOTFOUND);
    wb_journal_reader_close(reader);
}

/* ---- faults ----------------------------------------------------------------------------------------- */

/* The disk is full for a while: nothing is lost, the flush is repeated. */
static void test_full_disk(void **state)
{
    const char *dir = new_dir();
    struct wb_journal_writer *log;
    static struct written list[2000];
    unsigned damage, failures = 0;

    (void)state;
    assert_int_equal(wb_journal_writer_open(dir, 10000, &log), 0);
    for (size_t i = 0; i < 2000; i += 10) {
        append_some(log, list, i, 10);
        wb_fault_arm(WB_FAULT_WRITE | WB_FAULT_OPEN, 1 + i / 10 % 16, ENOSPC);
        int err = wb_journal_writer_flush(log);
        wb_fault_disarm();
        assert_true(err == 0 || err == WB_E_IO);
        failures += err < 0;
    }
    assert_true(failures >= 12);
    assert_int_equal(wb_journal_writer_finish(log), 0);
    wb_journal_writer_close(log);
    assert_int_equal(read_all(dir, list, 2000, &damage), 2000);
    assert_int_equal(damage, 0);
    assert_true(list[1999].place.log > 5);
}

/* Does everything once, with the nth operation failing. What was flushed must be there all the same. */
static int whole_life(const char *dir, struct written *list, size_t *flushed_out)
{
    struct wb_journal_writer *log = NULL;
    struct wb_journal_reader *reader = NULL;
    struct wb_edit_place at = WB_EDIT_NOWHERE, *chain = NULL;
    struct told told = {0};
    struct wb_edit edit;
    size_t count;
    int err = wb_journal_writer_open(dir, 1500, &log);

    *flushed_out = 0;
    for (size_t i = 0; i < 50 && err == 0; i++) {
        list[i] = (struct written){.site = 100 + i % SITES, .number = (unsigned)i,
                                   .prev = i < SITES ? WB_EDIT_NOWHERE : list[i - SITES].place};
        edit = make_edit(&list[i]);
        err = wb_journal_writer_append(log, &edit, &list[i].place);
        if (err == 0 && i % 10 == 9)
            err = i == 29 ? wb_journal_writer_sync(log) : wb_journal_writer_flush(log);
        if (err == 0 && i % 10 == 9)
            *flushed_out = i + 1;
    }
    if (err == 0)
        err = wb_journal_reader_open(dir, &reader);
    if (err == 0)
        err = wb_journal_reader_chain(reader, list[49].place, true, &chain, &count);
    while (err == 0 && (err = wb_journal_reader_next(reader, &at, &edit)) == 1)
        err = 0;
    wb_free(chain);
    wb_journal_reader_close(reader);
    wb_journal_writer_close(log);
    if (err == 0)
        err = wb_journal_recover(dir, note_told, &told);
    return err;
}

static void test_faults(void **state)
{
    static struct written list[50];
    unsigned failed = 0;

    (void)state;
    for (uint64_t nth = 1;; nth++) {
        const char *dir = new_dir();
        size_t flushed;
        unsigned damage;
        wb_fault_arm(WB_FAULT_ANY, nth, EIO);
        int err = whole_life(dir, list, &flushed);
        bool struck = wb_fault_struck();
        wb_fault_disarm();
        assert_true(struck || err == 0);
        failed += err < 0;
        assert_true(err == 0 || err == WB_E_IO || err == WB_E_NOMEM);
        assert_int_equal(wb_journal_recover(dir, mark_ended, NULL), 0);
        assert_true(read_all(dir, list, 50, &damage) >= flushed);
        assert_int_equal(damage, 0);
        if (!struck)
            break;
    }
    assert_true(failed > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_and_read),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_torn),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_bad_chains),
        cmocka_unit_test(test_chain_over_logs),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_faults),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
