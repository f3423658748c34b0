/*
 * journal_verify.c - reads and checks the whole journal, and says in words what is wrong with it.
 *
 * Checked: heads of files, checksums and parts of records, every link, and that each record's predecessor is
 * there and of the same site (where its log still is). It changes nothing and waits for nobody: a log that is
 * being written is checked as far as it is.
 */
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"
#include "journal/journal_reader.h"
#include "journal/edit.h"

#include <stdio.h>

enum { WORDS_MAX = 160 };

struct verifier {
    struct wb_journal_reader *reader, *back; /* back: for predecessors, so that the scan keeps its window */
    wb_journal_found found;
    void *context;
    struct wb_buf mem;
    uint64_t records;
};

static void tell(struct verifier *v, bool problem, const char *file, uint64_t offset, const char *words)
{
    v->found(v->context, problem, file, offset, words);
}

static int check_links(struct verifier *v, const struct wb_edit *edit, const char *file, uint64_t offset)
{
    struct wb_edit_link link;
    size_t at = 0, count = 0, told = edit->kind == WB_EDIT_PAGE ? edit->page.link_count : edit->link_count;
    int more;

    while ((more = wb_edit_links_next(edit, &at, &v->mem, &link)) == 1)
        count++;
    if (more == WB_E_CORRUPT || (more == 0 && count != told))
        tell(v, true, file, offset, "the links of a record are damaged");
    return more == WB_E_CORRUPT ? 0 : more;
}

static int check_prev(struct verifier *v, const struct wb_edit *edit, const char *file, uint64_t offset)
{
    const struct wb_journal_file *there;
    struct wb_slice record;
    struct wb_edit prev;
    int err;

    if (edit->prev.log == 0)
        return 0;
    err = wb_journal_reader_find(v->back, edit->prev, &there, &record);
    if (err == 0 && (!wb_edit_decode_head(record.ptr, &prev) || prev.site != edit->site))
        tell(v, true, file, offset, "a record whose predecessor is of another site");
    else if (err == WB_E_CORRUPT)
        tell(v, true, file, offset, "a record whose predecessor cannot be read");
    return err == WB_E_CORRUPT || err == WB_E_NOTFOUND || err == WB_E_NEWER ? 0 : err;
}

/* How a log ends: what lies behind its sound records. */
static int check_tail(struct verifier *v, const struct wb_journal_step *step)
{
    const struct wb_journal_file *file;
    char words[WORDS_MAX];
    uint64_t size;
    int err = wb_journal_reader_file(v->reader, step->place.log, &file);

    if (err == 0)
        err = wb_file_size(&file->file, &size);
    if (err < 0)
        return err;
    if (step->sight == WB_JOURNAL_TORN && size > step->place.offset) {
        snprintf(words, sizeof words, "the last %llu bytes are a record that was not written whole",
                 (unsigned long long)(size - step->place.offset));
        tell(v, false, step->file, step->place.offset, words);
    } else if (file->end && size > file->end) {
        snprintf(words, sizeof words, "%llu bytes behind the end, left by a crash, do not count", (unsigned long long)(size - file->end));
        tell(v, false, step->file, file->end, words);
    } else if (file->end > size) {
        tell(v, true, step->file, size, "the file is shorter than its head says");
    }
    return 0;
}

static int verify_log(struct verifier *v, uint32_t number)
{
    struct wb_edit_place at = {number, 0};
    struct wb_journal_step step;
    struct wb_edit edit;
    int more, err = 0;

    while (err == 0) {
        more = wb_journal_reader_step(v->reader, &at, &edit, &step);
        if (more == 0)
            return step.file ? check_tail(v, &step) : 0;
        if (more == WB_E_CORRUPT && step.file) {
            tell(v, true, step.file, at.offset, step.sight == WB_JOURNAL_DAMAGED ? "a record does not match its checksum, or is none"
                                                                                   : "a record has parts that do not add up");
            continue;
        }
        if (more < 0)
            return more;
        v->records++;
        err = check_links(v, &edit, step.file, at.offset);
        if (err == 0)
            err = check_prev(v, &edit, step.file, at.offset);
    }
    return err;
}

static int verify_file(struct verifier *v, const char *journal, uint32_t number)
{
    const struct wb_journal_file *file;
    int err = wb_journal_reader_file(v->reader, number, &file);
    char *path;

    if (err == 0)
        return verify_log(v, number);
    if (err != WB_E_CORRUPT && err != WB_E_NEWER && err != WB_E_NOTFOUND)
        return err;
    path = wb_journal_file_path(journal, number);
    if (!path)
        return WB_E_NOMEM;
    if (err == WB_E_NOTFOUND) {
        if (wb_path_kind(path) == WB_PATH_FILE)
            tell(v, false, path, 0, "a log that was only just begun, or whose head a crash left empty: it has no records");
    } else {
        tell(v, true, path, 0, err == WB_E_NEWER ? "made by a newer version" : "the head is damaged");
    }
    wb_free(path);
    return 0;
}

int wb_journal_verify(const char *dir, wb_journal_found found, void *context, uint64_t *records_out)
{
    struct verifier v = {.found = found, .context = context, .mem = WB_BUF_INIT};
    uint32_t *numbers = NULL;
    size_t count = 0;
    char *journal = wb_path_join(dir, WB_JOURNAL_DIR);
    int err = journal ? 0 : WB_E_NOMEM;

    *records_out = 0;
    if (err == 0)
        err = wb_journal_reader_open(dir, &v.reader);
    if (err == 0)
        err = wb_journal_reader_open(dir, &v.back);
    if (err == 0)
        err = wb_journal_file_list(journal, &numbers, &count);
    for (size_t i = 0; i < count && err == 0; i++)
        err = verify_file(&v, journal, numbers[i]);
    *records_out = v.records;
    wb_journal_reader_close(v.reader);
    wb_journal_reader_close(v.back);
    wb_buf_release(&v.mem);
    wb_free(numbers);
    wb_free(journal);
    return err;
}
