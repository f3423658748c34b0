/*
 * test_journal_recover.c - the logs of writers that died: recovery reports the last record of each site and ends
 * them, and `verify` says what is wrong with a journal.
 */
#include "../otherformat.h"
#include "journal_support.h"
#include "journal/journal_file.h"

#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_recover(void **state)
{
    const char *dir = new_dir();
    struct wb_journal_writer *live, *dead, *ended;
    static struct written list[1000], other[100];
    struct wb_edit_place lones[20]; /* the records of sites that have only one */
    struct told told = {.fail_at = 3};
    size_t expected = SITES, current = 0;

    (void)state;
    assert_int_equal(wb_journal_recover(dir, note_told, &told), 0); /* no journal */
    assert_int_equal(wb_journal_writer_open(dir, 0, &live), 0);
    assert_int_equal(wb_journal_writer_open(dir, 0, &ended), 0);
    append_some(ended, other, 0, 100);
    assert_int_equal(wb_journal_writer_finish(ended), 0);
    wb_journal_writer_close(ended);
    append_some(live, other, 0, 100);
    assert_int_equal(wb_journal_writer_flush(live), 0);
    assert_int_equal(wb_journal_writer_open(dir, 20000, &dead), 0);
    for (size_t i = 0; i < 1000; i += 10) {
        struct wb_edit lone = {.kind = WB_EDIT_VISIT, .site = 10000 + i, .text = WB_SLICE_LIT("once")};
        append_some(dead, list, i, 10);
        if (i % 50 == 0)
            assert_int_equal(wb_journal_writer_append(dead, &lone, &lones[i / 50]), 0);
        assert_int_equal(wb_journal_writer_flush(dead), 0);
    }
    append_some(live, other, 0, 1); /* never flushed */
    wb_journal_writer_close(dead);
    /* The log of a writer that died before it wrote the head. */
    FILE *headless = fopen(log_path(dir, 90), "w");
    fputs("WBEL", headless);
    fclose(headless);
    /* A file that is not a log. */
    headless = fopen(log_path(dir, 91), "w");
    for (unsigned i = 0; i < 100; i++)
        fputs("not a log", headless);
    fclose(headless);

    assert_int_equal(wb_journal_recover(dir, note_told, &told), WB_E_STOPPED);
    told = (struct told){0};
    assert_int_equal(wb_journal_recover(dir, note_told, &told), 0);
    /* Each site is reported once, from the two newest logs. */
    for (size_t i = 0; i < COUNT(lones); i++) {
        expected += lones[i].log + 1 >= list[999].place.log;
        current += lones[i].log == list[999].place.log;
    }
    assert_in_range(expected, SITES + 4, SITES + COUNT(lones) - 4);
    assert_true(current < expected - SITES);
    assert_int_equal(told.count, expected);
    for (size_t i = 0; i < SITES; i++) {
        const struct wb_edit_place *place = &told.places[expected - SITES + i];
        assert_int_equal(place->log, list[995 + i].place.log);
        assert_int_equal(place->offset, list[995 + i].place.offset);
        assert_true(told.sites[expected - SITES + i] == list[995 + i].site);
    }
    assert_int_equal(wb_path_kind(log_path(dir, 90)), WB_PATH_NONE);
    assert_int_equal(wb_path_kind(log_path(dir, 91)), WB_PATH_FILE);
    told.count = 0;
    assert_int_equal(wb_journal_recover(dir, note_told, &told), 0);
    assert_int_equal(told.count, 0);
    wb_journal_writer_close(live);
    assert_int_equal(wb_journal_recover(dir, note_told, &told), 0);
    assert_int_equal(told.count, SITES);
}

/* What a crash left after the records is ignored, now and later. */
static void test_recover_torn(void **state)
{
    const char *dir = new_dir();
    static struct written list[60];
    struct told told = {0};
    unsigned damage;

    (void)state;
    write_log(dir, list, 60, false);
    cut_file(log_path(dir, 1), list[59].place.offset + 20);
    assert_int_equal(wb_journal_recover(dir, note_told, &told), 0);
    assert_int_equal(told.count, SITES);
    assert_int_equal(told.places[4].offset, list[58].place.offset);
    assert_int_equal(told.places[0].offset, list[54].place.offset);
    assert_int_equal(read_all(dir, list, 60, &damage), 59);
    assert_int_equal(damage, 0);
    /* Even if those bytes are repaired they are ignored: the head says where the records end. */
    change_byte(log_path(dir, 1), list[59].place.offset, 1);
    assert_int_equal(read_all(dir, list, 60, &damage), 59);
    assert_int_equal(damage, 0);
    change_byte(log_path(dir, 1), list[58].place.offset + 9, 1);
    assert_int_equal(read_all(dir, list, 60, &damage), 58);
    assert_int_equal(damage, 1);
}

/* Somebody asks whether the log has a writer, at the moment in which it is recovered. */
static void test_recover_while_somebody_looks(void **state)
{
    const char *dir = new_dir();
    static struct written list[60];
    struct wb_file file;
    struct told told = {0};
    int ready[2], status;
    char byte;

    (void)state;
    write_log(dir, list, 60, false);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        bool held = wb_file_open(log_path(dir, 1), WB_FILE_READ, &file) == 0 && flock(file.fd, LOCK_SH) == 0 &&
                    write(ready[1], "x", 1) == 1;
        usleep(20000);
        _exit(!held);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_false(wb_journal_log_is_written(dir, 1));
    assert_int_equal(wb_journal_recover(dir, note_told, &told), 0);
    assert_int_equal(told.count, SITES);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ready[0]);
    close(ready[1]);
}

/* ---- verifying ------------------------------------------------------------------------------------ */

struct verdict {
    unsigned problems, remarks;
    uint64_t offset;
};

static void note_found(void *context, bool problem, const char *file, uint64_t offset, const char *message)
{
    struct verdict *verdict = context;

    assert_non_null(strstr(file, "journal/"));
    assert_true(message[0]);
    *(problem ? &verdict->problems : &verdict->remarks) += 1;
    verdict->offset = offset;
}

static void expect_verdict(const char *dir, uint64_t records, unsigned problems, unsigned remarks, uint64_t offset)
{
    struct verdict verdict = {0};
    uint64_t found;

    assert_int_equal(wb_journal_verify(dir, note_found, &verdict, &found), 0);
    assert_int_equal(found, records);
    assert_int_equal(verdict.problems, problems);
    assert_int_equal(verdict.remarks, remarks);
    if (problems || remarks)
        assert_int_equal(verdict.offset, offset);
}

static void test_verify(void **state)
{
    const char *dir = new_dir();
    struct wb_journal_writer *log;
    static struct written list[60];

    (void)state;
    expect_verdict(dir, 0, 0, 0, 0);
    assert_int_equal(wb_journal_writer_open(dir, 0, &log), 0);
    append_some(log, list, 0, 60);
    assert_int_equal(wb_journal_writer_flush(log), 0);
    expect_verdict(dir, 60, 0, 0, 0);
    wb_journal_writer_close(log);
    cut_file(log_path(dir, 1), list[59].place.offset + 20);
    expect_verdict(dir, 59, 0, 1, list[59].place.offset);
    assert_int_equal(wb_journal_recover(dir, mark_ended, NULL), 0);
    expect_verdict(dir, 59, 0, 1, list[59].place.offset);
    /* A damaged record, and the one that follows it in its chain. */
    change_byte(log_path(dir, 1), list[20].place.offset + 30, 1);
    expect_verdict(dir, 58, 2, 1, list[59].place.offset);
    change_byte(log_path(dir, 1), list[20].place.offset + 30, 1);
    cut_file(log_path(dir, 1), list[58].place.offset);
    expect_verdict(dir, 58, 2, 0, list[58].place.offset);
    change_byte(log_path(dir, 1), 9, 1);
    expect_verdict(dir, 0, 1, 0, 0);
}

/* A log of another format is reported with its number; readers and recovery leave it alone. */
static void test_another_format(void **state)
{
    const char *dir = new_dir();
    struct wb_journal_file file = WB_JOURNAL_FILE_INIT;
    struct wb_journal_writer *log;
    static struct written list[10];
    struct told told = {0};

    (void)state;
    assert_int_equal(wb_journal_writer_open(dir, 0, &log), 0);
    append_some(log, list, 0, 10);
    assert_int_equal(wb_journal_writer_finish(log), 0);
    wb_journal_writer_close(log);
    put_format(log_path(dir, 1), 0, 4, 2, 24);
    char *journal = wb_path_join(dir, WB_JOURNAL_DIR);
    assert_refused_format(wb_journal_file_open(journal, 1, false, &file), log_path(dir, 1), 2);
    expect_verdict(dir, 0, 1, 0, 0);
    assert_int_equal(wb_journal_recover(dir, note_told, &told), 0);
    assert_int_equal(told.count, 0);
    put_format(log_path(dir, 1), 0, 4, 1, 24);
    expect_verdict(dir, 10, 0, 0, 0);
    wb_free(journal);
}

/* The power failed when the file had its length but not its bytes: worth a note, until recovery removes it. */
static void test_zero_head(void **state)
{
    const char *dir = new_dir();
    static struct written list[20], lost[20];
    struct told told = {0};
    unsigned damage;
    char zeros[64] = {0};
    struct wb_file file;

    (void)state;
    write_log(dir, list, 20, true);
    write_log(dir, lost, 20, false);
    assert_int_equal(wb_file_open(log_path(dir, 2), WB_FILE_WRITE, &file), 0);
    assert_int_equal(wb_file_write_at(&file, 0, zeros, sizeof zeros), 0);
    wb_file_close(&file);
    expect_verdict(dir, 20, 0, 1, 0);
    assert_int_equal(read_all(dir, list, 20, &damage), 20);
    assert_int_equal(damage, 0);
    assert_int_equal(wb_journal_recover(dir, note_told, &told), 0);
    assert_int_equal(wb_path_kind(log_path(dir, 2)), WB_PATH_NONE);
    expect_verdict(dir, 20, 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recover),
        cmocka_unit_test(test_recover_torn),
        cmocka_unit_test(test_recover_while_somebody_looks),
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_another_format),
        cmocka_unit_test(test_zero_head),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
