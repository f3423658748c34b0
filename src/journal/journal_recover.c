/*
 * journal_recover.c - takes up the logs of writers that died.
 *
 * Phases: files that have not ended and that nobody holds are locked, all of them at once -> grouped by writer,
 * because one may have left two -> looked through for the last record of each site -> told to the caller ->
 * marked as ended where their sound records end. Until that mark a crash changes nothing: it is all done again.
 * A torn tail stays in its file, behind the end; records are never changed.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"
#include "journal/journal_reader.h"

#include <stdlib.h>

struct orphan {
    struct wb_journal_file file;
    uint64_t end; /* of its sound records */
};

struct orphans {
    struct orphan *list;
    size_t count;
};

/* ---- the last record of each site ----------------------------------------------------------------- */

struct last {
    uint64_t site;
    struct wb_edit_place place; /* log 0: a free slot */
};

struct lasts {
    struct last *slots; /* open addressing, a power of two of them */
    size_t cap, count;
};

static struct last *find_slot(struct last *slots, size_t cap, uint64_t site)
{
    size_t i = (size_t)(site * 0x9e3779b97f4a7c15 >> 20) & (cap - 1);

    while (slots[i].place.log && slots[i].site != site)
        i = (i + 1) & (cap - 1);
    return &slots[i];
}

static int note_last(struct lasts *lasts, uint64_t site, struct wb_edit_place place)
{
    if (4 * (lasts->count + 1) > 3 * lasts->cap) {
        size_t cap = lasts->cap ? 2 * lasts->cap : 256;
        struct last *slots = wb_alloc_zero(cap, sizeof *slots);
        if (!slots)
            return WB_E_NOMEM;
        for (size_t i = 0; i < lasts->cap; i++)
            if (lasts->slots[i].place.log)
                *find_slot(slots, cap, lasts->slots[i].site) = lasts->slots[i];
        wb_free(lasts->slots);
        lasts->slots = slots;
        lasts->cap = cap;
    }
    struct last *slot = find_slot(lasts->slots, lasts->cap, site);
    lasts->count += slot->place.log == 0;
    *slot = (struct last){site, place};
    return 0;
}

static int compare_places(const void *a, const void *b)
{
    const struct wb_edit_place *x = &((const struct last *)a)->place, *y = &((const struct last *)b)->place;

    if (x->log != y->log)
        return x->log < y->log ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Tells them in the order in which they lie in the files; the table is used up. */
static int tell_lasts(struct wb_journal_reader *reader, struct lasts *lasts, wb_journal_orphan orphan, void *context)
{
    size_t n = 0;

    for (size_t i = 0; i < lasts->cap; i++)
        if (lasts->slots[i].place.log)
            lasts->slots[n++] = lasts->slots[i];
    WB_CHECK(n == lasts->count);
    if (n)
        qsort(lasts->slots, n, sizeof *lasts->slots, compare_places);
    for (size_t i = 0; i < n; i++) {
        struct wb_edit edit;
        int err = wb_journal_reader_get(reader, lasts->slots[i].place, &edit);
        if (err == 0)
            err = orphan(context, &edit, lasts->slots[i].place);
        if (err != 0)
            return err;
    }
    return 0;
}

/* ---- orphans ------------------------------------------------------------------------------------------- */

/* 1 with the file locked; 0 where it is none of ours: ended, held, gone or damaged. */
static int take_orphan(const char *journal, uint32_t number, struct wb_journal_file *file_out)
{
    int err = wb_journal_file_open(journal, number, true, file_out);

    if (err == WB_E_CORRUPT || err == WB_E_NEWER)
        return 0; /* verify tells of it; it must not stop a crawl */
    if (err < 0)
        return err;
    if (file_out->end == 0) {
        err = wb_file_lock(&file_out->file, false);
        /* Another process may have taken it up before we held it. */
        if (err == 0)
            err = wb_journal_file_read_head(file_out);
        if (err == 0 && file_out->end == 0)
            return 1;
    }
    wb_journal_file_close(file_out);
    return err == WB_E_BUSY ? 0 : err;
}

/*
 * A file without a head: its writer died between making and writing it, the power failed before the head was on disk, or the
 * writer is just there.
 */
static int remove_headless(const char *journal, uint32_t number)
{
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

static int take_orphans(const char *journal, struct orphans *orphans)
{
    uint32_t *numbers = NULL;
    size_t count = 0;
    int err = wb_journal_file_list(journal, &numbers, &count);

    if (err < 0 || count == 0)
        return err;
    orphans->list = wb_alloc_zero(count, sizeof *orphans->list);
    if (!orphans->list)
        err = WB_E_NOMEM;
    for (size_t i = 0; i < count && err >= 0; i++) {
        err = take_orphan(journal, numbers[i], &orphans->list[orphans->count].file);
        if (err == 1)
            orphans->count++;
        else if (err == WB_E_NOTFOUND)
            err = remove_headless(journal, numbers[i]);
    }
    wb_free(numbers);
    return err < 0 ? err : 0;
}

static int compare_orphans(const void *a, const void *b)
{
    const struct wb_journal_file *x = &((const struct orphan *)a)->file, *y = &((const struct orphan *)b)->file;

    if (x->writer != y->writer)
        return x->writer < y->writer ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int look_through(struct wb_journal_reader *reader, struct orphan *orphan, struct lasts *lasts)
{
    struct wb_edit_place at = {orphan->file.number, 0};
    struct wb_journal_step step;
    struct wb_edit edit;
    int more;

    orphan->end = WB_JOURNAL_FILE_HEAD_BYTES;
    for (;;) {
        more = wb_journal_reader_step(reader, &at, &edit, &step);
        if (more == 1) {
            int err = note_last(lasts, edit.site, at);
            if (err < 0)
                return err;
        } else if (more != WB_E_CORRUPT || step.sight == WB_JOURNAL_END) {
            return more;
        }
        /* Past damage the walk goes on where it can. */
        if (step.next)
            orphan->end = step.next;
    }
}

/* All files of one writer. */
static int recover_writer(const char *dir, struct orphan *list, size_t count, wb_journal_orphan orphan, void *context)
{
    struct wb_journal_reader *reader = NULL;
    struct lasts lasts = {NULL, 0, 0};
    int err = wb_journal_reader_open(dir, &reader);

    for (size_t i = 0; i < count && err == 0; i++)
        err = look_through(reader, &list[i], &lasts);
    if (err == 0)
        err = tell_lasts(reader, &lasts, orphan, context);
    for (size_t i = 0; i < count && err == 0; i++)
        err = wb_journal_file_finish(&list[i].file, list[i].end);
    wb_free(lasts.slots);
    wb_journal_reader_close(reader);
    return err;
}

int wb_journal_recover(const char *dir, wb_journal_orphan orphan, void *context)
{
    struct orphans orphans = {NULL, 0};
    char *journal = wb_path_join(dir, WB_JOURNAL_DIR);
    int err = journal ? take_orphans(journal, &orphans) : WB_E_NOMEM;

    if (err == 0 && orphans.count)
        qsort(orphans.list, orphans.count, sizeof *orphans.list, compare_orphans);
    for (size_t i = 0; i < orphans.count && err == 0;) {
        size_t n = 1;
        while (i + n < orphans.count && orphans.list[i + n].file.writer == orphans.list[i].file.writer)
            n++;
        err = recover_writer(dir, orphans.list + i, n, orphan, context);
        i += n;
    }
    for (size_t i = 0; i < orphans.count; i++)
        wb_journal_file_close(&orphans.list[i].file);
    wb_free(orphans.list);
    wb_free(journal);
    return err;
}
