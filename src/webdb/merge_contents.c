/*
 * merge_contents.c - the second stage: pages by MD5.
 *
 * The old entries, with the new numbers of their pages, and the first stage's edits, both in order. Numbers of pages only move
 * apart or together, never past one another, so the old entries stay in order when they get new ones.
 */
#include "webdb/writer.h"
#include "base/bytes.h"
#include "base/error.h"

struct content_stage {
    struct wb_webdb_writer *writer;
    struct wb_column old;
    struct wb_column_writer *contents;
    struct wb_table_record edit;
    int edit_more;               /* 1: there is one */
    uint64_t old_at;             /* entries read */
    struct wb_content entry;     /* the old one that is next, with its page's new number */
    bool entry_more;
    uint64_t written;
    uint8_t md5[WB_EDIT_MD5_BYTES]; /* of the last entry written */
};

static int open_stage(struct content_stage *s)
{
    struct wb_webdb_writer *writer = s->writer;
    char *path = wb_writer_new_path(writer, WB_CONTENTS_FILE);
    int err = path ? wb_column_create(path, WB_CONTENTS_KIND, sizeof(struct wb_content), &s->contents) : WB_E_NOMEM;

    wb_free(path);
    if (err == 0)
        err = wb_writer_old_column(writer, WB_CONTENTS_FILE, WB_CONTENTS_KIND, sizeof(struct wb_content), &s->old);
    if (err == 0)
        err = wb_number_map_open(writer, s->old.count, &writer->content_numbers);
    return err < 0 ? err : wb_sorter_sort(writer->content_edits);
}

static int next_edit(struct content_stage *s)
{
    s->edit_more = wb_sorter_next(s->writer->content_edits, &s->edit);
    return s->edit_more < 0 ? s->edit_more : 0;
}

/* The next old entry whose page is still there. */
static int next_entry(struct content_stage *s)
{
    const struct wb_number_map *pages = &s->writer->page_numbers;

    for (s->entry_more = false; s->old_at < s->old.count && !s->entry_more; s->old_at++) {
        const struct wb_content *old = wb_column_at(&s->old, s->old_at);
        uint64_t page = wb_get64_be(old->page);
        if (page >= pages->count)
            return wb_fail(WB_E_CORRUPT, "%s: an entry of pages by MD5 has no page", s->writer->root);
        s->entry = *old;
        wb_put64_be(s->entry.page, pages->numbers[page]);
        s->entry_more = pages->numbers[page] != WB_NO_NUMBER;
    }
    return 0;
}

static int write_entry(struct content_stage *s, const struct wb_content *entry)
{
    if (s->written == 0 || memcmp(s->md5, entry->md5, sizeof s->md5) != 0) {
        memcpy(s->md5, entry->md5, sizeof s->md5);
        s->writer->next.count.contents++;
    }
    s->written++;
    return wb_column_add(s->contents, entry);
}

/* An old entry stays, unless an edit says otherwise. */
static int step(struct content_stage *s)
{
    int order = !s->entry_more ? 1 : s->edit_more <= 0 ? -1 : memcmp(&s->entry, s->edit.key.ptr, sizeof s->entry);
    bool add = s->edit_more > 0 && order >= 0 && s->edit.value.ptr[0] == WB_CONTENT_ADD;
    int err = 0;

    if (order < 0 || add) {
        struct wb_content entry;
        memcpy(&entry, order < 0 ? (const char *)&s->entry : s->edit.key.ptr, sizeof entry);
        err = write_entry(s, &entry);
    }
    if (err == 0 && order <= 0)
        err = next_entry(s);
    return err == 0 && order >= 0 ? next_edit(s) : err;
}

static const uint8_t *md5_at(const struct wb_column *contents, uint64_t number)
{
    return ((const struct wb_content *)wb_column_at(contents, number))->md5;
}

/* New numbers of the old contents. One that all its pages left and others took up in the same merge keeps its links. */
static void map_contents(struct content_stage *s)
{
    const struct wb_column *fresh = &s->writer->contents;
    uint32_t *numbers = s->writer->content_numbers.numbers;
    uint64_t at = 0;

    for (uint64_t i = 0; i < s->old.count; i++) {
        const uint8_t *md5 = md5_at(&s->old, i);
        numbers[i] = WB_NO_NUMBER;
        if (i && memcmp(md5, md5_at(&s->old, i - 1), WB_EDIT_MD5_BYTES) == 0)
            continue; /* a content is named by its first entry alone */
        int order = 1;
        while (at < fresh->count && (order = memcmp(md5_at(fresh, at), md5, WB_EDIT_MD5_BYTES)) < 0)
            at++;
        if (at < fresh->count && order == 0)
            numbers[i] = (uint32_t)at;
    }
}

int wb_merge_contents(struct wb_webdb_writer *writer)
{
    struct content_stage s = {.writer = writer, .old = WB_COLUMN_INIT};
    char *path = NULL;
    uint64_t bytes = 0;
    int err = open_stage(&s);

    if (err == 0)
        err = next_edit(&s);
    if (err == 0)
        err = next_entry(&s);
    for (uint64_t done = 0; err == 0 && (s.entry_more || s.edit_more > 0); done++) {
        err = step(&s);
        if (err == 0)
            err = wb_writer_progress(writer, "pages by MD5", done, s.old.count);
    }
    if (err == 0) {
        err = wb_column_finish(s.contents, &bytes);
        s.contents = NULL;
        path = wb_writer_new_path(writer, WB_CONTENTS_FILE);
    }
    if (err == 0)
        err = path ? wb_column_open(path, WB_CONTENTS_KIND, sizeof(struct wb_content), &writer->contents) : WB_E_NOMEM;
    if (err == 0)
        map_contents(&s);
    wb_free(path);
    wb_column_abandon(s.contents);
    wb_column_close(&s.old);
    wb_sorter_close(writer->content_edits);
    writer->content_edits = NULL;
    return err;
}
