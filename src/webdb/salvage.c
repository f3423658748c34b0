/*
 * salvage.c - takes over what can still be read of a damaged edition: the rows of its pages and the robots.txt of its
 * sites.
 *
 * Links are not taken over. They name pages by number, and when rows are lost the numbers no longer fit. A rebuild of
 * webdb gets the links from the stored pages and the journal instead (cycle/rebuild.c). Nothing is repaired in place.
 */
#include "webdb/writer.h"
#include "base/bytes.h"
#include "os/path.h"
#include "webdb/pagerow.h"
#include "webdb/rulesrow.h"

struct salvage {
    struct wb_webdb_writer *writer;
    char *path; /* of the table being read */
    wb_webdb_found found;
    void *context;
    struct wb_buf mem;
};

/* Reports the thread's error message as a problem of the current table. */
static void report(const struct salvage *s)
{
    WB_CHECK(s->path != NULL);
    WB_CHECK(s->writer != NULL);
    if (s->found)
        s->found(s->context, s->path, 0, wb_error_message());
}

/* ---- pages ------------------------------------------------------------------------------------- */

/* The edit gets time 0, so it is applied before every event. Events that the row already knows then change nothing. */
static int add_row(struct salvage *s, const struct wb_table_record *record)
{
    struct wb_pageedit edit = {.kind = WB_PAGEEDIT_ADD_SCORE, .id = WB_PAGEEDIT_NO_ID};
    int err = wb_pagerow_decode(record->key, record->value, &s->mem, &edit.row);

    WB_CHECK(wb_writer_is(s->writer, WB_WRITER_COLLECTING));
    if (err == 0 && !(edit.row.flags & WB_PAGE_TARGET)) {
        edit.url = edit.row.url;
        err = wb_writer_add_page_edit(s->writer, &edit);
    }
    if (err != WB_E_CORRUPT && err != WB_E_INVALID)
        return err;
    report(s);
    return 0;
}

static int add_rows(struct salvage *s, struct wb_cursor *cursor)
{
    struct wb_table_record record;
    int got;

    WB_CHECK(cursor != NULL);
    WB_CHECK(s->path != NULL);
    for (uint64_t done = 0; (got = wb_cursor_next(cursor, &record)) != 0; done++) {
        int err = 0;
        if (got == WB_E_CORRUPT)
            report(s);
        else
            err = got < 0 ? got : add_row(s, &record);
        if (err == 0)
            err = wb_writer_progress(s->writer, "rows", done, 0);
        if (err < 0)
            return err;
    }
    return 0;
}

/* ---- robots.txt -------------------------------------------------------------------------------- */

static int add_rules(struct salvage *s, struct wb_cursor *cursor)
{
    struct wb_webdb_rules rules;
    struct wb_table_record record;
    int got;

    WB_CHECK(cursor != NULL);
    WB_CHECK(s->path != NULL);
    while ((got = wb_cursor_next(cursor, &record)) != 0) {
        int err = got < 0 ? got : wb_rulesrow_decode(record.value, &rules);
        if (err == 0 && record.key.len != sizeof(uint64_t))
            err = wb_fail(WB_E_CORRUPT, "a robots.txt whose key is not the hash of a site");
        if (err == 0)
            err = wb_merge_rules_add(s->writer, wb_get64_be(record.key.ptr), &rules);
        if (err == WB_E_CORRUPT)
            report(s);
        else if (err < 0)
            return err;
    }
    return 0;
}

/* ---- tables ------------------------------------------------------------------------------------ */

/* Opens a table and passes it to add(). A table that cannot be opened is reported and skipped. */
static int add_table(struct salvage *s, const char *edition, const char *name, const char *kind,
                     int (*add)(struct salvage *, struct wb_cursor *))
{
    struct wb_table *table = NULL;
    struct wb_cursor *cursor = NULL;

    WB_CHECK(s->path == NULL);
    WB_CHECK(edition != NULL);
    WB_CHECK(wb_writer_is(s->writer, WB_WRITER_COLLECTING));
    s->path = wb_path_join(edition, name);
    int err = s->path ? wb_table_open(s->path, kind, &table) : WB_E_NOMEM;
    if (err == 0)
        err = wb_cursor_open(table, &cursor);
    if (err == 0)
        err = add(s, cursor);
    if (err == WB_E_CORRUPT || err == WB_E_NOTFOUND) {
        report(s);
        err = 0;
    }
    wb_cursor_close(cursor);
    wb_table_close(table);
    wb_free(s->path);
    s->path = NULL;
    return err;
}

int wb_webdb_add_rows(struct wb_webdb_writer *writer, wb_webdb_found found, void *context)
{
    struct salvage s = {.writer = writer, .found = found, .context = context};

    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    WB_CHECK(writer->old_number == 0); /* the rows are added as edits, not merged */
    if (!writer->newest)
        return 0;
    char *edition = wb_edition_path(writer->dir, writer->newest);
    int err = edition ? add_table(&s, edition, WB_PAGES_FILE, WB_PAGES_KIND, add_rows) : WB_E_NOMEM;
    char *rules = edition ? wb_path_join(edition, WB_RULES_FILE) : NULL;
    /* Lost rules are not worth a report: crawlers ask for them again. */
    if (err == 0 && rules && wb_path_kind(rules) != WB_PATH_NONE)
        err = add_table(&s, edition, WB_RULES_FILE, WB_RULES_KIND, add_rules);
    wb_buf_release(&s.mem);
    wb_free(rules);
    wb_free(edition);
    return err;
}
