/*
 * test_lines.c - lines on their way to the readers of a crawl's log: none is lost or torn, whichever process is killed
 * and whether or not anybody reads.
 */
#include "../journal/edit_support.h"
#include "../otherformat.h"
#include "../rounds.h"
#include "crawl/teller.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static void append(struct wb_lines *lines, const char *text, uint64_t round)
{
    assert_int_equal(wb_lines_append(lines, wb_slice_str(text), round), 0);
}

static void expect_text(struct wb_lines *lines, const char *text)
{
    struct wb_buf got = WB_BUF_INIT;

    assert_int_equal(wb_lines_read(lines, 64, 1 << 20, &got), 0);
    assert_true(wb_slice_equal(wb_buf_slice(&got), wb_slice_str(text)));
    wb_buf_release(&got);
}

static void test_appended_once(void **state)
{
    const char *dir = new_dir();
    struct wb_lines *lines, *other;

    (void)state;
    assert_int_equal(wb_lines_open(dir, "a", WB_LINES_OWNER, &lines), 0);
    assert_int_equal(wb_lines_open(dir, "a", WB_LINES_HEIR, &other), WB_E_BUSY);
    assert_int_equal(wb_lines_open(dir, "a", WB_LINES_OWNER, &other), WB_E_BUSY);
    assert_int_equal(wb_lines_open(dir, "b", WB_LINES_HEIR, &other), WB_E_NOTFOUND);
    append(lines, "one\n", 7);
    append(lines, "two\n", 8);
    append(lines, "two\n", 8); /* recovery meets the round that its process had released */
    append(lines, "", 9);
    expect_text(lines, "one\ntwo\n");
    /* Recovery in another process appends more lines, and the teller sees them. */
    assert_int_equal(wb_lines_open(dir, "a", WB_LINES_HELPER, &other), 0);
    append(other, "two\n", 8);
    append(other, "three\n", 9);
    wb_lines_close(other);
    assert_int_equal(wb_lines_refresh(lines), 0);
    expect_text(lines, "one\ntwo\nthree\n");
    lines->told[WB_CRAWL_OUTPUT_JSON] += 4;
    assert_int_equal(wb_lines_note(lines), 0);
    wb_lines_close(lines);
    assert_int_equal(wb_lines_open(dir, "a", WB_LINES_HEIR, &lines), 0);
    assert_int_equal(lines->told[WB_CRAWL_OUTPUT_JSON], 68);
    assert_int_equal(lines->told[WB_CRAWL_OUTPUT_LOG], 64);
    expect_text(lines, "one\ntwo\nthree\n");
    wb_lines_close(lines);
}

/* Lines of a write that failed half-way do not count, and the next ones overwrite them. */
static void test_full_disk(void **state)
{
    const char *dir = new_dir();
    struct wb_lines *lines;

    (void)state;
    assert_int_equal(wb_lines_open(dir, "a", WB_LINES_OWNER, &lines), 0);
    append(lines, "one\n", 1);
    for (uint64_t nth = 1; nth <= 2; nth++) {
        wb_fault_arm(WB_FAULT_WRITE, nth, ENOSPC);
        assert_int_equal(wb_lines_append(lines, WB_SLICE_LIT("lost and longer\n"), 2), WB_E_IO);
        wb_fault_disarm();
    }
    append(lines, "two\n", 2);
    wb_lines_close(lines);
    assert_int_equal(wb_lines_open(dir, "a", WB_LINES_HEIR, &lines), 0);
    expect_text(lines, "one\ntwo\n");
    wb_lines_close(lines);
}

/* A file of lines that cannot be opened leaves nothing behind, and closes no file of others. */
static void test_out_of_memory(void **state)
{
    const char *dir = new_dir();
    struct wb_lines *lines;
    bool struck = true;

    (void)state;
    for (uint64_t nth = 1; struck; nth++) {
        wb_fault_arm(WB_FAULT_ALLOC, nth, ENOMEM);
        int err = wb_lines_open(dir, "a", WB_LINES_HELPER, &lines);
        struck = wb_fault_struck();
        wb_fault_disarm();
        assert_int_equal(err, struck ? WB_E_NOMEM : 0);
        assert_int_not_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
        if (err == 0)
            wb_lines_close(lines);
    }
}

static void test_damaged_head(void **state)
{
    const char *dir = new_dir();
    struct wb_lines *lines;
    char path[200];

    (void)state;
    snprintf(path, sizeof path, "%s/lines/a", dir);
    for (uint64_t at = 0; at < 64; at += 3) {
        assert_int_equal(wb_lines_open(dir, "a", WB_LINES_OWNER, &lines), 0);
        append(lines, "one\n", at + 1);
        wb_lines_close(lines);
        change_byte(path, at, 0x20);
        int err = wb_lines_open(dir, "a", WB_LINES_HEIR, &lines);
        if (err == 0)
            assert_true(lines->end >= 64 && lines->told[0] <= lines->end);
        wb_lines_close(lines);
        assert_int_equal(wb_path_unlink(path), 0);
    }
    assert_int_equal(wb_lines_open(dir, "a", WB_LINES_OWNER, &lines), 0);
    append(lines, "one\n", 1);
    wb_lines_close(lines);
    put_format(path, 0, 4, 2, 8);
    assert_refused_format(wb_lines_open(dir, "a", WB_LINES_HEIR, &lines), path, 2);
    put_format(path, 0, 4, 1, 8);
    assert_int_equal(wb_lines_open(dir, "a", WB_LINES_HEIR, &lines), 0);
    expect_text(lines, "one\n");
    wb_lines_close(lines);
}

/* While the file grows, the space of lines that all readers have is given back. */
static void test_space(void **state)
{
    const char *dir = new_dir();
    struct wb_lines *lines;
    struct wb_buf text = WB_BUF_INIT;
    char path[200];

    (void)state;
    snprintf(path, sizeof path, "%s/lines/a", dir);
    while (text.len < 300000)
        assert_int_equal(wb_buf_append_str(&text, "a line of some length, with its end\n"), 0);
    assert_int_equal(wb_lines_open(dir, "a", WB_LINES_OWNER, &lines), 0);
    for (uint64_t i = 1; i <= 40; i++) {
        assert_int_equal(wb_lines_append(lines, wb_buf_slice(&text), i), 0);
        lines->told[0] = lines->told[1] = lines->end;
        assert_int_equal(wb_lines_note(lines), 0);
    }
    assert_true(lines->end > 10 << 20);
    assert_true(wb_path_disk_bytes(path) < 6 << 20);
    wb_lines_close(lines);
    wb_buf_release(&text);
}

/* ---- the teller -------------------------------------------------------------------------------------------------- */

struct reader {
    struct wb_buf text;
    size_t room;  /* bytes that it still takes */
    int fails;
    const char *recovered; /* in this repository, somebody recovers the spool "a" while the reader takes something */
};

static struct reader readers[WB_CRAWL_OUTPUTS];

static const char *spool_of_a(const char *dir)
{
    static char path[200];

    snprintf(path, sizeof path, "%s/spool", dir);
    assert_int_equal(wb_path_mkdirs(path), 0);
    snprintf(path, sizeof path, "%s/spool/a", dir);
    return path;
}

/* Another crawl appends the lines that were in the spool, and then removes it. */
static void recover_a(const char *dir)
{
    struct wb_lines *lines;

    assert_int_equal(wb_lines_open(dir, "a", WB_LINES_HELPER, &lines), 0);
    append(lines, "from the spool\n", 9);
    wb_lines_close(lines);
    assert_int_equal(wb_path_unlink(spool_of_a(dir)), 0);
}

static int take(void *context, unsigned output, struct wb_slice bytes, size_t *taken_out)
{
    struct reader *reader = &((struct reader *)context)[output];

    *taken_out = 0;
    if (reader->fails)
        return wb_fail(WB_E_IO, "the reader fails");
    *taken_out = bytes.len < reader->room ? bytes.len : reader->room;
    reader->room -= *taken_out;
    assert_int_equal(wb_buf_append(&reader->text, bytes.ptr, *taken_out), 0);
    if (reader->recovered)
        recover_a(reader->recovered);
    reader->recovered = NULL;
    return 0;
}

static struct wb_crawl_sink new_sink(unsigned outputs)
{
    for (unsigned i = 0; i < WB_CRAWL_OUTPUTS; i++) {
        wb_buf_release(&readers[i].text);
        readers[i] = (struct reader){.room = SIZE_MAX};
    }
    return (struct wb_crawl_sink){.take = take, .context = readers, .outputs = outputs};
}

static void tell(struct wb_teller *teller)
{
    bool moved;

    assert_int_equal(wb_teller_tell(teller, &moved), 0);
}

static void expect_read(unsigned output, const char *text)
{
    assert_int_equal(readers[output].text.len, strlen(text));
    assert_true(wb_slice_equal(wb_buf_slice(&readers[output].text), wb_slice_str(text)));
}

static unsigned count_files(const char *dir);

/*
 * A reader that stops in the middle of a line does not keep the other waiting, and no line of another file gets into
 * that line.
 */
static void test_stalled(void **state)
{
    const char *dir = new_dir();
    struct wb_crawl_sink sink = new_sink(3);
    struct wb_teller *teller;
    struct wb_lines *a, *b;
    uint64_t left;

    (void)state;
    assert_int_equal(wb_teller_open(dir, &sink, &teller), 0);
    assert_int_equal(wb_teller_add(teller, "a", &a), 0);
    assert_int_equal(wb_teller_add(teller, "b", &b), 0);
    append(b, "first of b\nsecond of b\n", 1);
    readers[WB_CRAWL_OUTPUT_JSON].room = 15;
    tell(teller);
    expect_read(WB_CRAWL_OUTPUT_JSON, "first of b\nseco");
    expect_read(WB_CRAWL_OUTPUT_LOG, "first of b\nsecond of b\n");
    append(a, "first of a\n", 1);
    tell(teller);
    assert_int_equal(wb_teller_left(teller, &left), 0);
    assert_int_equal(left, 2);
    readers[WB_CRAWL_OUTPUT_JSON].room = 3;
    tell(teller);
    readers[WB_CRAWL_OUTPUT_JSON].room = SIZE_MAX;
    tell(teller);
    expect_read(WB_CRAWL_OUTPUT_JSON, "first of b\nsecond of b\nfirst of a\n");
    expect_read(WB_CRAWL_OUTPUT_LOG, "first of b\nsecond of b\nfirst of a\n");
    assert_int_equal(wb_teller_left(teller, &left), 0);
    assert_int_equal(left, 0);
    assert_int_equal(count_files(dir), 2); /* their processes go on */
    wb_teller_ended(teller, "a");
    tell(teller);
    assert_int_equal(count_files(dir), 1);
    wb_teller_ended(teller, "b");
    wb_teller_close(teller);
    assert_int_equal(count_files(dir), 0);
}

static int count_entry(void *context, const struct wb_path_entry *entry)
{
    (void)entry;
    ++*(unsigned *)context;
    return 0;
}

static unsigned count_files(const char *dir)
{
    char path[200];
    unsigned count = 0;

    snprintf(path, sizeof path, "%s/lines", dir);
    assert_int_equal(wb_path_each(path, count_entry, &count), 0);
    return count;
}

/* After a kill the next crawl continues with whole lines, for each reader where that reader was. */
static void test_next_crawl(void **state)
{
    const char *dir = new_dir();
    struct wb_crawl_sink sink = new_sink(3);
    struct wb_teller *teller;
    struct wb_lines *a;

    (void)state;
    assert_int_equal(wb_teller_open(dir, &sink, &teller), 0);
    assert_int_equal(wb_teller_add(teller, "a", &a), 0);
    append(a, "one\ntwo\nthree\n", 1);
    readers[WB_CRAWL_OUTPUT_JSON].room = 6;
    readers[WB_CRAWL_OUTPUT_LOG].room = 8;
    tell(teller);
    wb_teller_close(teller);
    assert_int_equal(count_files(dir), 1);
    /* A crawl without readers leaves the lines alone. */
    sink = new_sink(0);
    assert_int_equal(wb_teller_open(dir, &sink, &teller), 0);
    wb_teller_close(teller);
    assert_int_equal(count_files(dir), 1);
    /* The file stays, because its spool still exists and will bring more lines. */
    assert_int_equal(wb_path_replace(spool_of_a(dir), WB_SLICE_LIT("x")), 0);
    sink = new_sink(3);
    assert_int_equal(wb_teller_open(dir, &sink, &teller), 0);
    tell(teller);
    expect_read(WB_CRAWL_OUTPUT_JSON, "two\nthree\n");
    expect_read(WB_CRAWL_OUTPUT_LOG, "three\n");
    assert_int_equal(count_files(dir), 1);
    assert_int_equal(wb_path_unlink(spool_of_a(dir)), 0);
    tell(teller);
    assert_int_equal(count_files(dir), 0);
    wb_teller_close(teller);
}

/* The spool of a dead worker is recovered by another crawl at the moment in which all lines seem to be told. */
static void test_recovered_meanwhile(void **state)
{
    const char *dir = new_dir();
    struct wb_crawl_sink sink = new_sink(1u << WB_CRAWL_OUTPUT_JSON);
    struct wb_teller *teller;
    struct wb_lines *a;

    (void)state;
    assert_int_equal(wb_teller_open(dir, &sink, &teller), 0);
    assert_int_equal(wb_teller_add(teller, "a", &a), 0);
    assert_int_equal(wb_path_replace(spool_of_a(dir), WB_SLICE_LIT("x")), 0);
    append(a, "one\n", 1);
    wb_teller_ended(teller, "a");
    readers[WB_CRAWL_OUTPUT_JSON].recovered = dir;
    tell(teller);
    tell(teller);
    expect_read(WB_CRAWL_OUTPUT_JSON, "one\nfrom the spool\n");
    assert_int_equal(count_files(dir), 0);
    wb_teller_close(teller);
}

/* The position of an unused output follows the other, so that a later crawl with it does not repeat everything. */
static void test_one_output(void **state)
{
    const char *dir = new_dir();
    struct wb_crawl_sink sink = new_sink(1u << WB_CRAWL_OUTPUT_LOG);
    struct wb_teller *teller;
    struct wb_lines *a;

    (void)state;
    assert_int_equal(wb_teller_open(dir, &sink, &teller), 0);
    assert_int_equal(wb_teller_add(teller, "a", &a), 0);
    append(a, "one\ntwo\n", 1);
    readers[WB_CRAWL_OUTPUT_LOG].room = 4;
    tell(teller);
    wb_teller_close(teller);
    sink = new_sink(1u << WB_CRAWL_OUTPUT_JSON);
    assert_int_equal(wb_teller_open(dir, &sink, &teller), 0);
    tell(teller);
    expect_read(WB_CRAWL_OUTPUT_JSON, "two\n");
    wb_teller_close(teller);
    assert_int_equal(count_files(dir), 0);
}

static void test_failing_reader(void **state)
{
    const char *dir = new_dir();
    struct wb_crawl_sink sink = new_sink(1);
    struct wb_teller *teller;
    struct wb_lines *a;
    bool moved;

    (void)state;
    assert_int_equal(wb_teller_open(dir, &sink, &teller), 0);
    assert_int_equal(wb_teller_add(teller, "a", &a), 0);
    append(a, "one\n", 1);
    readers[0].fails = 1;
    assert_int_equal(wb_teller_tell(teller, &moved), WB_E_IO);
    wb_teller_ended(teller, "a");
    wb_teller_close(teller);
    sink = new_sink(1);
    assert_int_equal(wb_teller_open(dir, &sink, &teller), 0);
    tell(teller);
    expect_read(0, "one\n");
    wb_teller_close(teller);
}

/* ---- several crawls ---------------------------------------------------------------------------------------------- */

enum { TELLER_ROUNDS = 3000 };

/* Crawls that begin, tell one line and end, one after the other. Says the number of each one that worked. */
static void crawl_on(void *context, int to)
{
    const char *dir = context;
    uint32_t rounds = test_rounds(TELLER_ROUNDS);

    for (uint32_t i = 0; i < rounds; i++) {
        struct wb_crawl_sink sink = new_sink(1);
        struct wb_teller *teller;
        struct wb_lines *lines;
        bool moved;
        char name[40];
        snprintf(name, sizeof name, "%ld-%u", (long)getpid(), i);
        if (wb_teller_open(dir, &sink, &teller) != 0 || wb_teller_add(teller, name, &lines) != 0 ||
            wb_lines_append(lines, WB_SLICE_LIT("one\n"), i + 1) != 0)
            _exit(1);
        wb_teller_ended(teller, name);
        if (wb_teller_tell(teller, &moved) != 0 || !moved)
            _exit(1);
        wb_teller_close(teller);
        if (write(to, &i, sizeof i) != sizeof i)
            _exit(1);
    }
    _exit(0);
}

/* A crawl looks for files that others left behind while another one makes its own: each of them begins nevertheless. */
static void test_two_crawls(void **state)
{
    const char *dir = new_dir();

    (void)state;
    run_three(crawl_on, dir, test_rounds(TELLER_ROUNDS));
    assert_int_equal(count_files(dir), 0);
}

/* ---- killed ------------------------------------------------------------------------------------------------------ */

struct writer {
    const char *dir;
};

/* Writes batches of numbered lines; each batch is a round. */
static void write_on(void *context, int to)
{
    const struct writer *w = context;
    struct wb_lines *lines;
    char text[400];

    if (wb_lines_open(w->dir, "a", WB_LINES_OWNER, &lines) != 0)
        _exit(1);
    for (uint32_t round = 1;; round++) {
        size_t len = 0;
        for (uint32_t i = 0; i < 4; i++)
            len += (size_t)snprintf(text + len, sizeof text - len, "{\"round\":%u,\"line\":%u}\n", round, i);
        if (wb_lines_append(lines, wb_slice(text, len), round) != 0)
            _exit(1);
        if (write(to, &round, sizeof round) != sizeof round)
            _exit(1);
    }
}

/*
 * Everything that was acknowledged is there, and at most one batch more. If recovery appends the last round again,
 * nothing changes.
 */
static void test_killed(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned life = 0; life < 40; life++) {
        struct writer writer = {new_dir()};
        struct child child = start_child(write_on, &writer);
        struct wb_lines *lines;
        struct wb_buf text = WB_BUF_INIT;
        uint32_t acked = 0, round;
        kill_child(&child, (unsigned)chance_below(&chance, 3000));
        while (next_ack(&child, &round, sizeof round))
            acked = round;
        close(child.from);
        assert_int_equal(wb_lines_open(writer.dir, "a", WB_LINES_HELPER, &lines), 0);
        assert_true(lines->round == acked || lines->round == acked + 1);
        append(lines, "repeated\n", lines->round);
        assert_int_equal(wb_lines_read(lines, 64, SIZE_MAX, &text), 0);
        size_t count = 0;
        for (size_t i = 0; i < text.len; i++)
            count += text.ptr[i] == '\n';
        assert_int_equal(count, 4 * lines->round);
        wb_lines_close(lines);
        wb_buf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appended_once),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_damaged_head),
        cmocka_unit_test(test_space),
        cmocka_unit_test(test_stalled),
        cmocka_unit_test(test_next_crawl),
        cmocka_unit_test(test_recovered_meanwhile),
        cmocka_unit_test(test_one_output),
        cmocka_unit_test(test_failing_reader),
        cmocka_unit_test(test_two_crawls),
        cmocka_unit_test(test_killed),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
