/*
 * merge_contents.c - stage 2 of the merge: pages by MD5, and pages by id.
 *
 * Merges the old entries, with the new numbers of their pages, and the content edits of stage 1; both are sorted. From
 * one edition to the next, page numbers keep their order, so the old entries are still sorted after they were
 * renumbered. Then it finds the new number of each old content. Pages by id are merged in the same way from the id
 * edits. It never looks at rows or links.
 */
#include "webdb/writer.h"
#include "base/bytes.h"

struct content_stage {
    struct wb_webdb_writer *writer;
    struct wb_column old;
    struct wb_column_writer *contents;
    struct wb_table_record edit;
    int edit_more;           /* 1 if edit is the next edit, 0 at the end */
    uint64_t old_at;         /* how many old entries have been read */
    struct wb_content entry; /* the next old entry, with the new number of its page */
    bool entry_more;         /* false at the end */
    uint64_t written;
    struct wb_content last; /* the last entry written */
};

/* What is true whenever a function of this stage is entered. */
static void check_stage(const struct content_stage *s)
{
    WB_CHECK(wb_writer_is(s->writer, WB_WRITER_MERGING));
    WB_CHECK(s->writer->pages_merged);
    WB_CHECK(s->old_at <= s->old.count);
    WB_CHECK(s->writer->next.count.contents <= s->written);
}

static int open_stage(struct content_stage *s)
{
    struct wb_webdb_writer *writer = s->writer;
    int err =
        wb_writer_create_column(writer, WB_CONTENTS_FILE, WB_CONTENTS_KIND, sizeof(struct wb_content), &s->contents);

    check_stage(s);
    WB_CHECK(writer->content_edits != NULL);
    if (err == 0)
        err = wb_writer_open_old_column(writer, WB_CONTENTS_FILE, WB_CONTENTS_KIND, sizeof(struct wb_content), &s->old);
    if (err == 0)
        err = wb_numbermap_open(writer->root, s->old.count, &writer->content_numbers);
    return err < 0 ? err : wb_sorter_sort(writer->content_edits);
}

static int next_edit(struct content_stage *s)
{
    check_stage(s);
    s->edit_more = wb_sorter_next(s->writer->content_edits, &s->edit);
    WB_CHECK(s->edit_more <= 0 || (s->edit.key.len == sizeof(struct wb_content) && s->edit.value.len == 1));
    return s->edit_more < 0 ? s->edit_more : 0;
}

/* Finds the next old entry whose page still exists. */
static int next_entry(struct content_stage *s)
{
    const struct wb_numbermap *pages = &s->writer->page_numbers;

    check_stage(s);
    for (s->entry_more = false; s->old_at < s->old.count && !s->entry_more; s->old_at++) {
        const struct wb_content *old = wb_column_at(&s->old, s->old_at);
        uint64_t page = wb_get64_be(old->page);
        if (page >= pages->count)
            return wb_fail(WB_E_CORRUPT, "%s: an entry of pages by MD5 names a page that does not exist",
                           s->writer->root);
        s->entry = *old;
        wb_put64_be(s->entry.page, pages->numbers[page]);
        s->entry_more = pages->numbers[page] != WB_NO_NUMBER;
    }
    return 0;
}

static int write_entry(struct content_stage *s, const struct wb_content *entry)
{
    check_stage(s);
    WB_CHECK(wb_get64_be(entry->page) < s->writer->next.rows);
    if (s->written && memcmp(&s->last, entry, sizeof s->last) >= 0)
        return wb_fail(WB_E_CORRUPT, "%s: the entries of pages by MD5 are not in order", s->writer->root);
    s->writer->next.count.contents += s->written == 0 || memcmp(s->last.md5, entry->md5, sizeof entry->md5) != 0;
    s->last = *entry;
    s->written++;
    return wb_column_add(s->contents, entry);
}

/* Writes or drops the lower of the next entry and the next edit. An old entry stays unless an edit removes it. */
static int step(struct content_stage *s)
{
    int order = !s->entry_more ? 1 : s->edit_more <= 0 ? -1 : memcmp(&s->entry, s->edit.key.ptr, sizeof s->entry);
    bool add = s->edit_more > 0 && order >= 0 && s->edit.value.ptr[0] == WB_CONTENT_ADD;
    int err = 0;

    check_stage(s);
    WB_CHECK(s->entry_more || s->edit_more > 0);
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
    WB_CHECK(number < contents->count);
    return ((const struct wb_content *)wb_column_at(contents, number))->md5;
}

/*
 * Finds the new number of each old content, by walking both columns. A content that all its pages have lost, and that
 * others got in the same merge, keeps its links.
 */
static void map_contents(struct content_stage *s)
{
    const struct wb_column *fresh = &s->writer->contents;
    uint32_t *numbers = s->writer->content_numbers.numbers;
    uint64_t at = 0;

    check_stage(s);
    WB_CHECK(fresh->count == s->written);
    WB_CHECK(s->writer->content_numbers.count == s->old.count);
    for (uint64_t i = 0; i < s->old.count; i++) {
        const uint8_t *md5 = md5_at(&s->old, i);
        numbers[i] = WB_NO_NUMBER;
        if (i && memcmp(md5, md5_at(&s->old, i - 1), WB_MD5_BYTES) == 0)
            continue; /* only the first entry of a content names it */
        int order = 1;
        while (at < fresh->count && (order = memcmp(md5_at(fresh, at), md5, WB_MD5_BYTES)) < 0)
            at++;
        if (at < fresh->count && order == 0)
            numbers[i] = (uint32_t)at;
    }
}

int wb_merge_contents(struct wb_webdb_writer *writer)
{
    struct content_stage s = {.writer = writer, .old = WB_COLUMN_INIT};
    char *path = NULL;

    WB_CHECK(writer->content_edits != NULL);
    WB_CHECK(writer->contents.count == 0);
    WB_CHECK(wb_writer_is(writer, WB_WRITER_MERGING));
    WB_CHECK(writer->pages_merged);
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
        err = wb_column_finish(s.contents, NULL);
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

/* ---- pages by id ----------------------------------------------------------------------------- */

struct id_stage {
    struct wb_webdb_writer *writer;
    struct wb_column old;
    struct wb_column_writer *ids;
    struct wb_table_record edit;
    int edit_more;             /* 1 if edit is the next edit, 0 at the end */
    uint64_t old_at;           /* how many old entries have been read */
    struct wb_stored_id entry; /* the next old entry, with the new number of its page */
    bool entry_more;           /* false at the end */
    bool any;                  /* an entry was written: last */
    struct wb_stored_id last;
};

static void check_id_stage(const struct id_stage *s)
{
    WB_CHECK(wb_writer_is(s->writer, WB_WRITER_MERGING));
    WB_CHECK(s->writer->pages_merged);
    WB_CHECK(s->old_at <= s->old.count);
}

static int open_id_stage(struct id_stage *s)
{
    struct wb_webdb_writer *writer = s->writer;
    int err = wb_writer_create_column(writer, WB_IDS_FILE, WB_IDS_KIND, sizeof(struct wb_stored_id), &s->ids);

    check_id_stage(s);
    WB_CHECK(writer->id_edits != NULL);
    if (err == 0)
        err = wb_writer_open_old_column(writer, WB_IDS_FILE, WB_IDS_KIND, sizeof(struct wb_stored_id), &s->old);
    return err < 0 ? err : wb_sorter_sort(writer->id_edits);
}

static int next_id_edit(struct id_stage *s)
{
    check_id_stage(s);
    s->edit_more = wb_sorter_next(s->writer->id_edits, &s->edit);
    WB_CHECK(s->edit_more <= 0 || (s->edit.key.len == sizeof s->entry.id && s->edit.value.len == 1 + 4));
    return s->edit_more < 0 ? s->edit_more : 0;
}

/* Finds the next old entry whose page still exists. */
static int next_id_entry(struct id_stage *s)
{
    const struct wb_numbermap *pages = &s->writer->page_numbers;

    check_id_stage(s);
    for (s->entry_more = false; s->old_at < s->old.count && !s->entry_more; s->old_at++) {
        const struct wb_stored_id *old = wb_column_at(&s->old, s->old_at);
        uint32_t page = wb_get32_be(old->page);
        if (page >= pages->count)
            return wb_fail(WB_E_CORRUPT, "%s: an entry of pages by id names a page that does not exist",
                           s->writer->root);
        s->entry = *old;
        wb_put32_be(s->entry.page, pages->numbers[page]);
        s->entry_more = pages->numbers[page] != WB_NO_NUMBER;
    }
    return 0;
}

static int write_id(struct id_stage *s, const struct wb_stored_id *entry)
{
    int order = s->any ? memcmp(s->last.id, entry->id, sizeof entry->id) : -1;

    check_id_stage(s);
    WB_CHECK(wb_get32_be(entry->page) < s->writer->next.rows);
    if (order > 0)
        return wb_fail(WB_E_CORRUPT, "%s: the entries of pages by id are not in order", s->writer->root);
    if (order == 0) /* two URLs have the same id, which the store cannot tell apart either: the first one stays */
        return 0;
    s->any = true;
    s->last = *entry;
    return wb_column_add(s->ids, entry);
}

/* Writes or drops the lower of the next entry and the next edit. An old entry stays unless an edit concerns its page.
 */
static int step_ids(struct id_stage *s)
{
    int order = !s->entry_more ? 1 : s->edit_more <= 0 ? -1 : memcmp(s->entry.id, s->edit.key.ptr, sizeof s->entry.id);
    int err = 0;

    check_id_stage(s);
    WB_CHECK(s->entry_more || s->edit_more > 0);
    if (order < 0) {
        err = write_id(s, &s->entry);
    } else if (s->edit.value.ptr[0] == WB_CONTENT_ADD) {
        struct wb_stored_id entry;
        memcpy(entry.id, s->edit.key.ptr, sizeof entry.id);
        memcpy(entry.page, s->edit.value.ptr + 1, sizeof entry.page);
        err = write_id(s, &entry);
    }
    if (err == 0 && order <= 0)
        err = next_id_entry(s);
    return err == 0 && order >= 0 ? next_id_edit(s) : err;
}

int wb_merge_ids(struct wb_webdb_writer *writer)
{
    struct id_stage s = {.writer = writer, .old = WB_COLUMN_INIT};

    WB_CHECK(wb_writer_is(writer, WB_WRITER_MERGING));
    WB_CHECK(writer->content_edits == NULL); /* pages by MD5 are done */
    WB_CHECK(writer->id_edits != NULL);
    int err = open_id_stage(&s);

    if (err == 0)
        err = next_id_edit(&s);
    if (err == 0)
        err = next_id_entry(&s);
    for (uint64_t done = 0; err == 0 && (s.entry_more || s.edit_more > 0); done++) {
        err = step_ids(&s);
        if (err == 0)
            err = wb_writer_progress(writer, "pages by id", done, s.old.count);
    }
    if (err == 0) {
        err = wb_column_finish(s.ids, NULL);
        s.ids = NULL;
    }
    wb_column_abandon(s.ids);
    wb_column_close(&s.old);
    wb_sorter_close(writer->id_edits);
    writer->id_edits = NULL;
    return err;
}
