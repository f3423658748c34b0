/*
 * salvage.c - takes over the rows of pages, and robots.txt, of an edition that is damaged. Numbers of pages are lost with any row that is, so the
 * tables of links cannot be: they are made again from pages and journal by whoever has them.
 */
#include "webdb/writer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "os/path.h"
#include "webdb/pagerow.h"
#include "webdb/rulesrow.h"

struct salvage {
    struct wb_webdb_writer *writer;
    char *path;
    wb_webdb_found found;
    void *context;
    struct wb_buf mem;
};

static void tell(const struct salvage *s)
{
    if (s->found)
        s->found(s->context, s->path, 0, wb_error_message());
}

/* At time 0 it comes before every event: those that the row knows of already change nothing, later ones do. */
static int add_row(struct salvage *s, const struct wb_table_record *record)
{
    struct wb_pageedit edit = {.kind = WB_PAGEEDIT_ADD_SCORE, .id = WB_PAGEEDIT_NO_ID};
    int err = wb_pagerow_decode(record->key, record->value, &s->mem, &edit.row);

    if (err == 0 && !(edit.row.flags & WB_PAGE_TARGET)) {
        edit.url = edit.row.url;
        err = wb_writer_page_edit(s->writer, &edit);
    }
    if (err != WB_E_CORRUPT && err != WB_E_INVALID)
        return err;
    tell(s);
    return 0;
}

static int add_rows(struct salvage *s, struct wb_cursor *cursor)
{
    struct wb_table_record record;
    int got;

    for (uint64_t done = 0; (got = wb_cursor_next(cursor, &record)) != 0; done++) {
        int err = 0;
        if (got == WB_E_CORRUPT)
            tell(s);
        else
            err = got < 0 ? got : add_row(s, &record);
        if (err == 0)
            err = wb_writer_progress(s->writer, "rows", done, 0);
        if (err < 0)
            return err;
    }
    return 0;
}

/* ---- robots.txt ------------------------------------------------------------------------------------ */

static int add_rules(struct salvage *s, struct wb_cursor *cursor)
{
    struct wb_webdb_rules rules;
    struct wb_table_record record;
    int got;

    while ((got = wb_cursor_next(cursor, &record)) != 0) {
        int err = got < 0 ? got : wb_rulesrow_decode(record.value, &rules);
        if (err == 0 && record.key.len == 8)
            err = wb_writer_rules(s->writer, wb_get64_be(record.key.ptr), &rules);
        if (err == WB_E_CORRUPT)
            tell(s);
        else if (err < 0)
            return err;
    }
    return 0;
}

/* ---- tables ---------------------------------------------------------------------------------------------- */

/* What of a table can be read, through add(). */
static int add_table(struct salvage *s, const char *edition, const char *name, const char *kind, int (*add)(struct salvage *, struct wb_cursor *))
{
    struct wb_table *table = NULL;
    struct wb_cursor *cursor = NULL;

    s->path = wb_path_join(edition, name);
    int err = s->path ? wb_table_open(s->path, kind, &table) : WB_E_NOMEM;
    if (err == 0)
        err = wb_cursor_open(table, &cursor);
    if (err == 0)
        err = add(s, cursor);
    if (err == WB_E_CORRUPT || err == WB_E_NOTFOUND) {
        tell(s); /* nothing of it can be read */
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

    if (!writer->newest)
        return 0;
    char *edition = wb_edition_path(writer->dir, writer->newest);
    int err = edition ? add_table(&s, edition, WB_PAGES_FILE, WB_PAGES_KIND, add_rows) : WB_E_NOMEM;
    char *rules = edition ? wb_path_join(edition, WB_RULES_FILE) : NULL;
    /* Editions of version 1 have none. */
    if (err == 0 && rules && wb_path_kind(rules) != WB_PATH_NONE)
        err = add_table(&s, edition, WB_RULES_FILE, WB_RULES_KIND, add_rules);
    wb_buf_release(&s.mem);
    wb_free(rules);
    wb_free(edition);
    return err;
}
