/*
 * test_journal_crash.c - writers are killed at any moment: every record that was flushed is there, its chain is whole,
 * and recovery tells the last place of each site.
 *
 * A writer acknowledges each batch through a pipe after its flush; what it writes is a function of the
 * record's number, so the parent need not be told more than places.
 */
#include "edit_support.h"
#include "webdb/webdb.h"

#include <poll.h>

enum { SITES = 20, BATCH_MAX = 12, WRITERS = 2, RECORDS_MAX = 400000 };

struct ack {
    uint32_t number; /* of the record, counted by its writer */
    bool last;       /* of its batch: the flush has returned */
    bool rolled;     /* the writer started a new log: every place so far is durable */
    struct wb_edit_place place;
};

struct writer {
    const char *dir;
    uint64_t seed;
    unsigned which;
    struct wb_edit_place trail[SITES]; /* left by the previous life */
};

static uint64_t site_of(unsigned writer, unsigned slot)
{
    return 1000u * (writer + 1) + slot;
}

static void write_on(void *context, int to)
{
    struct writer *w = context;
    uint64_t chance = w->seed;
    struct wb_journal_writer *log;
    uint32_t number = 0;

    must(wb_journal_writer_open(w->dir, 30000, &log) == 0);
    for (;;) {
        struct ack acks[BATCH_MAX] = {0};
        size_t count = 1 + chance_below(&chance, BATCH_MAX);
        for (size_t i = 0; i < count; i++) {
            unsigned slot = (unsigned)chance_below(&chance, SITES);
            char text[200];
            memset(text, 'a' + (int)(number % 26), sizeof text);
            struct wb_edit edit = {.kind = WB_EDIT_REQUEST, .site = site_of(w->which, slot), .time_ms = number,
                                   .prev = w->trail[slot], .text = wb_slice(text,
                                                                            number % sizeof text), .count = number};
            must(wb_journal_writer_append(log, &edit, &w->trail[slot]) == 0);
            acks[i] = (struct ack){.number = number++, .last = i + 1 == count, .place = w->trail[slot]};
        }
        must(wb_journal_writer_flush(log) == 0);
        acks[count - 1].rolled = wb_journal_writer_rolled(log);
        must(write(to, acks, count * sizeof *acks) == (ssize_t)(count * sizeof *acks));
    }
}

struct acked {
    struct ack *list;
    size_t count, kept; /* kept: how many a keeper of places had made durable when the writer last rolled over */
};

static void read_acks(struct child *child, struct acked *acked)
{
    struct ack ack;
    size_t whole = 0;

    acked->count = acked->kept = 0;
    while (acked->count < RECORDS_MAX && next_ack(child, &ack, sizeof ack)) {
        acked->list[acked->count++] = ack;
        if (ack.last)
            whole = acked->count;
        if (ack.rolled)
            acked->kept = acked->count;
    }
    close(child->from);
    assert_int_equal(whole, acked->count); /* the pipe accepts a batch completely or not at all */
}

struct recovery {
    struct wb_edit_place last[WRITERS][SITES];
};

static int note_orphan(void *context, const struct wb_edit *last, struct wb_edit_place place)
{
    struct recovery *recovery = context;
    uint64_t writer = last->site / 1000 - 1, slot = last->site % 1000;

    assert_true(writer < WRITERS && slot < SITES);
    assert_int_equal(recovery->last[writer][slot].log, 0); /* once */
    recovery->last[writer][slot] = place;
    return 0;
}

static void no_problem(void *context, bool problem, const char *file, uint64_t offset, const char *message)
{
    (void)context;
    if (problem)
        fail_msg("%s at %llu: %s", file, (unsigned long long)offset, message);
}

/* Every acknowledged record is read as it was written. *last becomes the newest of each site. */
static void check_acked(struct wb_journal_reader *reader, const struct acked *acked, unsigned writer,
                        struct wb_edit_place kept[SITES], struct wb_edit_place newest[SITES])
{
    for (size_t i = 0; i < acked->count; i++) {
        struct wb_edit edit;
        assert_int_equal(wb_journal_reader_get(reader, acked->list[i].place, &edit), 0);
        assert_int_equal(edit.count, acked->list[i].number);
        assert_int_equal(edit.text.len, acked->list[i].number % 200);
        for (size_t k = 0; k < edit.text.len; k++)
            assert_int_equal(edit.text.ptr[k], 'a' + (int)(edit.count % 26));
        size_t slot = (size_t)(edit.site - site_of(writer, 0));
        assert_true(slot < SITES);
        newest[slot] = acked->list[i].place;
        if (i < acked->kept)
            kept[slot] = acked->list[i].place;
    }
}

/* The chain from the recovered place goes through every acknowledged record of the site. */
static size_t check_chain(struct wb_journal_reader *reader, struct wb_edit_place last, struct wb_edit_place newest)
{
    struct wb_edit_place *places;
    size_t count;
    bool found = newest.log == 0;

    assert_int_equal(wb_journal_reader_chain(reader, last, true, &places, &count), 0);
    for (size_t i = 0; i < count; i++)
        found = found || (places[i].log == newest.log && places[i].offset == newest.offset);
    assert_true(found);
    wb_free(places);
    return count;
}

static void check_writer(const char *dir, struct writer *w, const struct acked *acked,
                         struct wb_edit_place recovered[SITES], size_t total[SITES])
{
    struct wb_edit_place kept[SITES], newest[SITES];
    struct wb_journal_reader *reader;
    size_t seen[SITES] = {0};

    memcpy(kept, w->trail, sizeof kept);
    memcpy(newest, w->trail, sizeof newest);
    assert_int_equal(wb_journal_reader_open(dir, &reader), 0);
    check_acked(reader, acked, w->which, kept, newest);
    for (size_t i = 0; i < acked->count; i++) {
        struct wb_edit edit;
        assert_int_equal(wb_journal_reader_get(reader, acked->list[i].place, &edit), 0);
        seen[edit.site - site_of(w->which, 0)]++;
    }
    for (size_t slot = 0; slot < SITES; slot++) {
        /* What recovery reports, or what was durable when the writer started its newest log. */
        struct wb_edit_place last = recovered[slot].log ? recovered[slot] : kept[slot];
        size_t count = last.log ? check_chain(reader, last, newest[slot]) : 0;
        assert_true(count >= total[slot] + seen[slot]);
        /* The kill may have come between a batch and its acknowledgement. */
        assert_true(count <= total[slot] + seen[slot] + BATCH_MAX);
        total[slot] = count;
        w->trail[slot] = last;
    }
    wb_journal_reader_close(reader);
}

static void test_killed_writers(void **state)
{
    uint64_t chance = test_seed(), records;
    const char *dir = new_dir();
    struct writer writers[WRITERS] = {0};
    static size_t total[WRITERS][SITES];
    struct acked acked = {.list = malloc(RECORDS_MAX * sizeof(struct ack))};
    size_t all = 0;

    (void)state;
    for (unsigned life = 0; life < 12; life++) {
        struct child children[WRITERS];
        struct recovery recovery = {0}, again = {0};
        for (unsigned i = 0; i < WRITERS; i++) {
            writers[i].dir = dir;
            writers[i].seed = chance_next(&chance);
            writers[i].which = i;
            children[i] = start_child(write_on, &writers[i]);
        }
        /*
         * The pipes are not read meanwhile: a writer runs until its pipe is full, and is killed before that or in it.
         */
        for (unsigned i = 0; i < WRITERS; i++) {
            /* Every other time, wait until it has written something, however slow the machine is. */
            if (life % 2)
                assert_int_equal(poll(&(struct pollfd){children[i].from, POLLIN, 0}, 1, 30000), 1);
            kill_child(&children[i], (unsigned)chance_below(&chance, 6000));
        }
        assert_int_equal(wb_journal_recover(dir, note_orphan, &recovery), 0);
        for (unsigned i = 0; i < WRITERS; i++) {
            read_acks(&children[i], &acked);
            all += acked.count;
            check_writer(dir, &writers[i], &acked, recovery.last[i], total[i]);
        }
        assert_int_equal(wb_journal_recover(dir, note_orphan, &again), 0);
        assert_int_equal(again.last[0][0].log, 0);
    }
    assert_true(all > 100);
    print_message("# %zu records acknowledged\n", all);
    assert_int_equal(wb_journal_verify(dir, no_problem, NULL, &records), 0);
    assert_true(records >= all);
    free(acked.list);
}

/* Recovery is killed from inside its callback: the next one loses nothing. */
static int die_at(void *context, const struct wb_edit *last, struct wb_edit_place place)
{
    unsigned *left = context;

    (void)last;
    (void)place;
    if (--*left == 0)
        kill(getpid(), SIGKILL);
    return 0;
}

struct dying {
    const char *dir;
    unsigned left;
};

static void recover_and_die(void *context, int to)
{
    struct dying *dying = context;

    (void)to;
    must(wb_journal_recover(dying->dir, die_at, &dying->left) == 0);
    kill(getpid(), SIGKILL);
}

static void test_killed_recovery(void **state)
{
    struct writer writer = {.dir = new_dir(), .seed = test_seed()};
    struct child child = start_child(write_on, &writer);
    struct recovery recovery = {0};
    struct ack ack;
    unsigned told = 0;

    (void)state;
    for (unsigned i = 0; i < 200; i++)
        assert_true(next_ack(&child, &ack, sizeof ack));
    kill_child(&child, 0);
    close(child.from);
    for (unsigned at = 1; at <= 3; at++) {
        struct dying dying = {writer.dir, at};
        child = start_child(recover_and_die, &dying);
        kill_child(&child, 100000);
        close(child.from);
    }
    assert_int_equal(wb_journal_recover(writer.dir, note_orphan, &recovery), 0);
    for (unsigned slot = 0; slot < SITES; slot++)
        told += recovery.last[0][slot].log != 0;
    assert_true(told > 0);
}

/* ---- making logs while another process takes up those of the dead ------------------------------------ */

enum { MAKERS = 3, MADE = 300 };

static void make_logs(void *context, int to)
{
    const char *dir = context;

    for (uint32_t i = 0; i < MADE; i++) {
        struct wb_edit edit = {.kind = WB_EDIT_REQUEST, .site = 1000, .text = WB_SLICE_LIT("x"), .count = i};
        struct ack ack = {.number = i};
        struct wb_journal_writer *log;
        must(wb_journal_writer_open(dir, 0, &log) == 0);
        must(wb_journal_writer_append(log, &edit, &ack.place) == 0);
        must(wb_journal_writer_flush(log) == 0);
        wb_journal_writer_close(log);
        must(write(to, &ack, sizeof ack) == sizeof ack);
    }
}

static int forget_orphan(void *context, const struct wb_edit *last, struct wb_edit_place place)
{
    (void)context;
    (void)last;
    (void)place;
    return 0;
}

static void recover_always(void *context, int to)
{
    (void)to;
    for (;;)
        must(wb_journal_recover(context, forget_orphan, NULL) == 0);
}

static void test_made_while_recovered(void **state)
{
    const char *dir = new_dir();
    struct child makers[MAKERS], recoverer = start_child(recover_always, (void *)(uintptr_t)dir);
    struct wb_journal_reader *reader;

    (void)state;
    for (unsigned i = 0; i < MAKERS; i++)
        makers[i] = start_child(make_logs, (void *)(uintptr_t)dir);
    assert_int_equal(wb_journal_reader_open(dir, &reader), 0);
    for (unsigned i = 0; i < MAKERS; i++) {
        struct ack ack;
        struct wb_edit edit;
        int status;
        for (uint32_t n = 0; n < MADE; n++) {
            assert_true(next_ack(&makers[i], &ack, sizeof ack));
            assert_int_equal(wb_journal_reader_get(reader, ack.place, &edit), 0);
            assert_int_equal(edit.count, n);
        }
        close(makers[i].from);
        assert_int_equal(waitpid(makers[i].pid, &status, 0), makers[i].pid);
        assert_int_equal(status, 0);
    }
    wb_journal_reader_close(reader);
    kill_child(&recoverer, 0);
    close(recoverer.from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_writers),
        cmocka_unit_test(test_made_while_recovered),
        cmocka_unit_test(test_killed_recovery),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
