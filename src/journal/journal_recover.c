/*
 * journal_recover.c - finds the logs of writers that died, reports the last record of each site in them, and ends them.
 *
 * Phases of a recovery:
 *
 *   1 adopt    lock every log that has not ended and that no process holds; all of them, before the first is read
 *   2 group    by writer, because a dead writer may have left two logs
 *   3 read     each group, for the last record of each site
 *   4 report   these records to the caller
 *   5 end      mark the logs of the group as ended, where their intact records end
 *
 * A crash before phase 5 changes nothing: the next recovery does it all again. An unfinished record stays in its
 * file, after the end. Records are never changed.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "journal/journal_reader.h"
#include "os/path.h"
#include "os/random.h"

#include <stdlib.h>

/* A log whose writer died. We hold its lock. */
struct orphan_log {
    struct wb_journal_file file;
    uint64_t end; /* of its intact records, found by reading them */
};

struct orphan_logs WB_VEC_OF(struct orphan_log);

/* ---- the last record of each site ------------------------------------------------------------------------------ */

struct last_record {
    uint64_t hash, site;
    struct wb_edit_place place;
};

union last_records WB_MAP_OF(struct last_record);

static int note_last(union last_records *lasts, uint64_t site, struct wb_edit_place place)
{
    struct last_record *last = NULL;

    WB_CHECK(place.log != 0);
    while ((last = wb_map_next(lasts, site, last)) && last->site != site)
        ;
    if (!last && !(last = wb_map_add(lasts, site)))
        return WB_E_NOMEM;
    last->site = site;
    last->place = place;
    WB_CHECK(wb_map_count(lasts) > 0);
    return 0;
}

static int compare_places(const void *a, const void *b)
{
    const struct wb_edit_place *x = a, *y = b;

    if (x->log != y->log)
        return x->log < y->log ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Reports them in the order of their places, so that the logs are read from start to end. */
static int report_lasts(struct wb_journal_reader *reader, const union last_records *lasts, wb_journal_orphan orphan,
                        void *context)
{
    WB_VEC(struct wb_edit_place) places = WB_VEC_INIT;
    const struct last_record *last = NULL;
    int err = wb_vec_reserve(&places, wb_map_count(lasts));

    WB_CHECK(orphan != NULL);
    while (err == 0 && (last = wb_map_each(lasts, last)))
        err = wb_vec_push(&places, last->place);
    WB_CHECK(err < 0 || places.count == wb_map_count(lasts));
    if (err == 0 && places.count)
        qsort(places.items, places.count, sizeof *places.items, compare_places);
    for (size_t i = 0; err == 0 && i < places.count; i++) {
        struct wb_edit edit;
        WB_CHECK(i == 0 || compare_places(&places.items[i - 1], &places.items[i]) <= 0); /* a batch has one place */
        err = wb_journal_reader_get(reader, places.items[i], &edit);
        if (err == 0)
            err = orphan(context, &edit, places.items[i]);
    }
    wb_vec_release(&places);
    return err;
}

/* ---- adopting logs --------------------------------------------------------------------------------------------- */

/*
 * Returns 1 with the log locked, or 0 if we must leave it alone: it has ended, its writer is alive, or it is damaged.
 * WB_E_NOTFOUND if it was removed or has no head.
 */
static int adopt_log(const char *journal, uint32_t number, struct wb_journal_file *file_out)
{
    WB_CHECK(number != 0);
    int err = wb_journal_file_open(journal, number, true, file_out);

    if (err == WB_E_CORRUPT || err == WB_E_NEWER)
        return 0; /* `verify` reports it; it must not stop a crawl */
    if (err < 0)
        return err;
    if (file_out->end == 0) {
        err = wb_file_lock(&file_out->file, false);
        /* Before we had the lock, another process may have recovered the log: look again. */
        if (err == 0)
            err = wb_journal_file_read_head(file_out);
        WB_CHECK(err < 0 || file_out->number == number);
        if (err == 0 && file_out->end == 0)
            return 1;
    }
    wb_journal_file_close(file_out);
    return err == WB_E_BUSY ? 0 : err;
}

/*
 * Removes a log without a head, if nobody holds it. Its writer died before it wrote the head, or the power failed
 * before the head was on disk. If the writer is just about to write it, it notices the removal (try_number() in
 * journal_file.c).
 */
static int remove_headless(const char *journal, uint32_t number)
{
    WB_CHECK(number != 0);
    struct wb_journal_file file = WB_JOURNAL_FILE_INIT;
    char *path = wb_journal_file_path(journal, number);
    int err = path ? wb_file_open(path, WB_FILE_WRITE, &file.file) : WB_E_NOMEM;

    if (err == 0)
        err = wb_file_lock(&file.file, false);
    if (err == 0 && !wb_file_unlinked(&file.file)) {
        file.number = number;
        err = wb_journal_file_read_head(&file);
        if (err == WB_E_NOTFOUND)
            err = wb_path_unlink(path);
    }
    wb_journal_file_close(&file);
    wb_free(path);
    return err == WB_E_BUSY || err == WB_E_NOTFOUND || err == WB_E_CORRUPT || err == WB_E_NEWER ? 0 : err;
}

static int adopt_logs(const char *journal, struct orphan_logs *orphans)
{
    struct wb_journal_numbers numbers = WB_VEC_INIT;
    int err = wb_journal_file_list(journal, &numbers);

    WB_CHECK(orphans->count == 0);
    if (err == 0)
        err = wb_vec_reserve(orphans, numbers.count);
    for (size_t i = 0; i < numbers.count && err >= 0; i++) {
        struct orphan_log orphan = {.file = WB_JOURNAL_FILE_INIT};
        err = adopt_log(journal, numbers.items[i], &orphan.file);
        WB_CHECK(err != 1 || orphan.file.end == 0);
        if (err == 1)
            err = wb_vec_push(orphans, orphan);
        else if (err == WB_E_NOTFOUND)
            err = remove_headless(journal, numbers.items[i]);
    }
    WB_CHECK(orphans->count <= numbers.count);
    wb_vec_release(&numbers);
    return err < 0 ? err : 0;
}

static int compare_orphans(const void *a, const void *b)
{
    const struct wb_journal_file *x = &((const struct orphan_log *)a)->file, *y = &((const struct orphan_log *)b)->file;

    if (x->writer != y->writer)
        return x->writer < y->writer ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* ---- reading and ending them ----------------------------------------------------------------------------------- */

static int read_orphan(struct wb_journal_reader *reader, struct orphan_log *orphan, union last_records *lasts)
{
    struct wb_edit_place at = {orphan->file.number, 0};
    struct wb_journal_step step;
    struct wb_edit edit;
    int more;

    WB_CHECK(orphan->file.number != 0);
    WB_CHECK(orphan->file.end == 0);
    WB_CHECK(at.offset == 0);
    orphan->end = WB_JOURNAL_FILE_HEAD_BYTES;
    for (;;) {
        more = wb_journal_reader_step(reader, &at, &edit, &step);
        if (more == 1) {
            WB_CHECK(at.log == orphan->file.number);
            WB_CHECK(edit.kind != WB_EDIT_BATCH);
            int err = note_last(lasts, edit.site, at);
            if (err < 0)
                return err;
        } else if (more != WB_E_CORRUPT || step.sight == WB_JOURNAL_END) {
            return more;
        }
        /* Continue after damage if possible. */
        if (step.next) {
            WB_CHECK(step.next >= orphan->end);
            orphan->end = step.next;
        }
    }
}

/* Recovers all logs of one writer. */
static int recover_writer(const char *dir, struct orphan_log *logs, size_t count, wb_journal_orphan orphan,
                          void *context)
{
    struct wb_journal_reader *reader = NULL;
    union last_records lasts = WB_MAP_INIT(0);
    int err = wb_journal_reader_open(dir, &reader);

    WB_CHECK(count > 0);
    wb_random_bytes(&lasts.map.seed, sizeof lasts.map.seed); /* strangers choose the names of sites */
    for (size_t i = 0; i < count && err == 0; i++) {
        WB_CHECK(logs[i].file.writer == logs[0].file.writer);
        WB_CHECK(i == 0 || logs[i - 1].file.number < logs[i].file.number);
        err = read_orphan(reader, &logs[i], &lasts);
        WB_CHECK(logs[i].end >= WB_JOURNAL_FILE_HEAD_BYTES);
    }
    if (err == 0)
        err = report_lasts(reader, &lasts, orphan, context);
    for (size_t i = 0; i < count && err == 0; i++)
        err = wb_journal_file_finish(&logs[i].file, logs[i].end);
    WB_CHECK(err != 0 || logs[count - 1].file.end == logs[count - 1].end);
    wb_map_release(&lasts);
    wb_journal_reader_close(reader);
    return err;
}

int wb_journal_recover(const char *dir, wb_journal_orphan orphan, void *context)
{
    struct orphan_logs orphans = WB_VEC_INIT;
    char *journal = wb_path_join(dir, WB_JOURNAL_DIR);
    int err = journal ? adopt_logs(journal, &orphans) : WB_E_NOMEM;

    WB_CHECK(orphan != NULL);
    if (err == 0 && orphans.count)
        qsort(orphans.items, orphans.count, sizeof *orphans.items, compare_orphans);
    for (size_t i = 0; i < orphans.count && err == 0;) {
        size_t n = 1;
        while (i + n < orphans.count && orphans.items[i + n].file.writer == orphans.items[i].file.writer)
            n++;
        WB_CHECK(i + n <= orphans.count);
        err = recover_writer(dir, orphans.items + i, n, orphan, context);
        i += n;
    }
    for (size_t i = 0; i < orphans.count; i++)
        wb_journal_file_close(&orphans.items[i].file);
    wb_vec_release(&orphans);
    wb_free(journal);
    return err;
}
