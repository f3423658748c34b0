/*
 * journal_support.h - what the tests of the journal share: records that follow from a number, and what recovery
 * reported. Header only.
 */
#ifndef WB_TESTS_JOURNAL_SUPPORT_H
#define WB_TESTS_JOURNAL_SUPPORT_H

#include "edit_support.h"
#include "journal/journal.h"

enum { SITES = 5 };

/* A record whose content follows from its number. */
struct written {
    struct wb_edit_place place, prev;
    uint64_t site;
    unsigned number;
};

static char text_of[64];

UNUSED struct wb_edit make_edit(const struct written *w)
{
    snprintf(text_of, sizeof text_of, "record %u %.*s", w->number, (int)(w->number * 7 % 40),
             "........................................");
    return (struct wb_edit){.kind = w->number % 50 < SITES ? WB_EDIT_VISIT : WB_EDIT_REQUEST, .site = w->site,
                            .time_ms = w->number, .prev = w->prev, .text = wb_slice_str(text_of), .count = w->number};
}

UNUSED void expect_edit(const struct wb_edit *found, const struct written *w)
{
    struct wb_edit made = make_edit(w);

    assert_int_equal(found->kind, made.kind);
    assert_true(found->site == w->site);
    assert_int_equal(found->count, w->number);
    assert_int_equal(found->prev.log, w->prev.log);
    assert_int_equal(found->prev.offset, w->prev.offset);
    assert_true(wb_slice_equal(found->text, made.text));
}

/* Appends records of SITES sites in turn, each chained to the last one of its site. */
UNUSED void append_some(struct wb_journal_writer *log, struct written *list, size_t from, size_t count)
{
    for (size_t i = from; i < from + count; i++) {
        list[i] = (struct written){.site = 100 + i % SITES, .number = (unsigned)i,
                                   .prev = i < SITES ? WB_EDIT_NOWHERE : list[i - SITES].place};
        struct wb_edit edit = make_edit(&list[i]);
        assert_int_equal(wb_journal_writer_append(log, &edit, &list[i].place), 0);
    }
}

/* Writes a log of its own with the first records of list. It has ended, or is as a process leaves it that dies. */
UNUSED void write_log(const char *dir, struct written *list, size_t count, bool ended)
{
    struct wb_journal_writer *log;

    assert_int_equal(wb_journal_writer_open(dir, 0, &log), 0);
    append_some(log, list, 0, count);
    assert_int_equal(wb_journal_writer_flush(log), 0);
    if (ended)
        assert_int_equal(wb_journal_writer_finish(log), 0);
    wb_journal_writer_close(log);
}

UNUSED const char *log_path(const char *dir, uint32_t number)
{
    static char path[160];

    snprintf(path, sizeof path, "%s/journal/%08u.wbe", dir, number);
    return path;
}

/*
 * Reads everything: records must be those of list (some may be missing); returns how many, and how often there was
 * damage.
 */
UNUSED size_t read_all(const char *dir, const struct written *list, size_t count, unsigned *damage_out)
{
    struct wb_edit_place at = WB_EDIT_NOWHERE;
    struct wb_journal_reader *reader;
    struct wb_edit edit;
    size_t found = 0, next = 0;
    int more;

    *damage_out = 0;
    assert_int_equal(wb_journal_reader_open(dir, &reader), 0);
    while ((more = wb_journal_reader_next(reader, &at, &edit)) != 0) {
        if (more == WB_E_CORRUPT) {
            assert_true(++*damage_out < 100);
            continue;
        }
        assert_int_equal(more, 1);
        while (next < count && (list[next].place.log != at.log || list[next].place.offset != at.offset))
            next++;
        assert_true(next < count);
        expect_edit(&edit, &list[next]);
        found++;
    }
    wb_journal_reader_close(reader);
    return found;
}

/* What recovery reported. */
struct told {
    struct wb_edit_place places[64];
    uint64_t sites[64];
    size_t count;
    size_t fail_at; /* the callback that fails; 0: none */
};

UNUSED int note_told(void *context, const struct wb_edit *last, struct wb_edit_place place)
{
    struct told *told = context;

    assert_true(told->count < COUNT(told->places));
    told->sites[told->count] = last->site;
    told->places[told->count++] = place;
    return told->count == told->fail_at ? WB_E_STOPPED : 0;
}

UNUSED int mark_ended(void *context, const struct wb_edit *last, struct wb_edit_place place)
{
    (void)context;
    (void)last;
    (void)place;
    return 0;
}

#endif
