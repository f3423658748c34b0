/*
 * journal_verify.c - reads and checks the whole journal, and says in words what is wrong with it.
 *
 * It checks the heads of logs, the checksum and the parts of every record, every link, and that each record's
 * predecessor exists and is of the same site (unless its log was removed). It changes nothing and waits for nobody: a
 * log that is being written is checked as far as it has been flushed.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "journal/edit.h"
#include "journal/journal_reader.h"
#include "os/path.h"

#include <stdio.h>

enum { WORDS_MAX = 160 };

struct journal_verifier {
    struct wb_journal_reader *reader;
    struct wb_journal_reader *back; /* for predecessors, so that the scan keeps its window */
    wb_journal_found found;
    void *context;
    struct wb_buf mem;
    uint64_t records; /* intact ones so far */
};

static void report(struct journal_verifier *v, bool problem, const char *file, uint64_t offset, const char *words)
{
    WB_CHECK(file);
    WB_CHECK(words[0]);
    WB_CHECK(v->found != NULL);
    v->found(v->context, problem, file, offset, words);
}

static int check_links(struct journal_verifier *v, const struct wb_edit *edit, const char *file, uint64_t offset)
{
    struct wb_pagelink link;
    size_t at = 0, count = 0, stated = edit->kind == WB_EDIT_PAGE ? edit->page.link_count : edit->link_count;
    int more;

    WB_CHECK(edit->kind != WB_EDIT_RULES || stated == 0);
    while ((more = wb_edit_links_next(edit, &at, &v->mem, &link)) == 1)
        count++;
    WB_CHECK(more != 0 || at == edit->packed_links.len);
    WB_CHECK(at <= edit->packed_links.len);
    if (more == WB_E_CORRUPT || (more == 0 && count != stated))
        report(v, true, file, offset, "the links of a record are damaged");
    return more == WB_E_CORRUPT ? 0 : more;
}

static int check_prev(struct journal_verifier *v, const struct wb_edit *edit, const char *file, uint64_t offset)
{
    const struct wb_journal_file *there;
    struct wb_slice record;
    struct wb_edit prev;
    int err;

    if (edit->prev.log == 0)
        return 0;
    WB_CHECK(offset >= WB_JOURNAL_FILE_HEAD_BYTES);
    err = wb_journal_reader_find(v->back, edit->prev, &there, &record);
    WB_CHECK(err < 0 || there->number == edit->prev.log);
    WB_CHECK(err < 0 || record.len >= WB_EDIT_HEAD_BYTES);
    if (err == 0 && (!wb_edit_decode_head(record.ptr, &prev) || prev.site != edit->site))
        report(v, true, file, offset, "the predecessor of a record is of another site");
    else if (err == WB_E_CORRUPT)
        report(v, true, file, offset, "the predecessor of a record cannot be read");
    return err == WB_E_CORRUPT || err == WB_E_NOTFOUND || err == WB_E_NEWER ? 0 : err;
}

/* Reports what is after the last intact record of a log. */
static int check_tail(struct journal_verifier *v, const struct wb_journal_step *step)
{
    const struct wb_journal_file *file;
    char words[WORDS_MAX];
    uint64_t size;
    int err = wb_journal_reader_file(v->reader, step->place.log, &file);

    WB_CHECK(step->sight == WB_JOURNAL_END || step->sight == WB_JOURNAL_TORN);
    WB_CHECK(step->file != NULL);
    if (err == 0)
        err = wb_file_size(&file->file, &size);
    if (err < 0)
        return err;
    WB_CHECK(file->number == step->place.log);
    if (step->sight == WB_JOURNAL_TORN && size > step->place.offset) {
        snprintf(words, sizeof words, "the last %llu bytes are a record that was not written completely",
                 (unsigned long long)(size - step->place.offset));
        report(v, false, step->file, step->place.offset, words);
    } else if (file->end && size > file->end) {
        snprintf(words, sizeof words, "a crash left %llu bytes after the end of the records; they are ignored",
                 (unsigned long long)(size - file->end));
        report(v, false, step->file, file->end, words);
    } else if (file->end > size) {
        report(v, true, step->file, size, "the file is shorter than its head says");
    }
    return 0;
}

static const char *describe_damage(const struct wb_journal_step *step)
{
    WB_CHECK(step->sight == WB_JOURNAL_DAMAGED || step->sight == WB_JOURNAL_RECORD);
    if (step->sight == WB_JOURNAL_DAMAGED)
        return "the checksum of a record is wrong, or there is no record";
    return "the parts of a record do not add up to its length";
}

static int verify_log(struct journal_verifier *v, uint32_t number)
{
    struct wb_edit_place at = {number, 0};
    struct wb_journal_step step;
    struct wb_edit edit;
    int more, err = 0;

    WB_CHECK(number != 0);
    while (err == 0) {
        more = wb_journal_reader_step(v->reader, &at, &edit, &step);
        if (more == 0)
            return step.file ? check_tail(v, &step) : 0;
        if (more == WB_E_CORRUPT && step.file) {
            report(v, true, step.file, at.offset, describe_damage(&step));
            continue;
        }
        if (more < 0)
            return more;
        WB_CHECK(at.log == number);
        WB_CHECK(edit.kind != WB_EDIT_BATCH);
        WB_CHECK(step.sight == WB_JOURNAL_RECORD);
        WB_CHECK(step.file != NULL);
        v->records++;
        err = check_links(v, &edit, step.file, at.offset);
        if (err == 0)
            err = check_prev(v, &edit, step.file, at.offset);
    }
    return err;
}

/* Reports a log whose head cannot be read, and verifies the records of any other. */
static int verify_file(struct journal_verifier *v, const char *journal, uint32_t number)
{
    WB_CHECK(number != 0);
    const struct wb_journal_file *file;
    int err = wb_journal_reader_file(v->reader, number, &file);
    char *path;

    WB_CHECK(err < 0 || file->number == number);
    if (err == 0)
        return verify_log(v, number);
    if (err != WB_E_CORRUPT && err != WB_E_NEWER && err != WB_E_NOTFOUND)
        return err;
    path = wb_journal_file_path(journal, number);
    if (!path)
        return WB_E_NOMEM;
    if (err == WB_E_NOTFOUND) {
        if (wb_path_kind(path) == WB_PATH_FILE)
            report(v, false, path, 0, "a log without head and records: it was just created, or a crash left it so");
    } else {
        report(v, true, path, 0, err == WB_E_NEWER ? wb_error_message() : "the head is damaged");
    }
    wb_free(path);
    return 0;
}

int wb_journal_verify(const char *dir, wb_journal_found found, void *context, uint64_t *records_out)
{
    WB_CHECK(found != NULL);
    struct journal_verifier v = {.found = found, .context = context, .mem = WB_BUF_INIT};
    struct wb_journal_numbers numbers = WB_VEC_INIT;
    char *journal = wb_path_join(dir, WB_JOURNAL_DIR);
    int err = journal ? 0 : WB_E_NOMEM;

    *records_out = 0;
    if (err == 0)
        err = wb_journal_reader_open(dir, &v.reader);
    if (err == 0)
        err = wb_journal_reader_open(dir, &v.back);
    if (err == 0)
        err = wb_journal_file_list(journal, &numbers);
    for (size_t i = 0; i < numbers.count && err == 0; i++)
        err = verify_file(&v, journal, numbers.items[i]);
    *records_out = v.records;
    wb_journal_reader_close(v.reader);
    wb_journal_reader_close(v.back);
    wb_buf_release(&v.mem);
    wb_vec_release(&numbers);
    wb_free(journal);
    return err;
}
