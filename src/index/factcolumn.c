/*
 * factcolumn.c - gathers what modules say about pages, and writes the values by page id.
 *
 * A repository without such pages has no sorter, no columns and no cost.
 */
#include "index/factcolumn.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "index/build.h"
#include "index/columnfile.h"
#include "index/usercolumn.h"
#include "os/path.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAMES_MAX = 1024, SORT_BYTES = 16 << 20, DOUBLE_BYTES = 32 };

void wb_factcolumns_release(struct wb_factcolumns *f)
{
    wb_sorter_close(f->values);
    wb_vec_release(&f->names);
    wb_arena_release(&f->arena);
    wb_buf_release(&f->key);
    *f = (struct wb_factcolumns){.values = NULL};
}

/* ---- gathering ----------------------------------------------------------------------------------- */

/* A name that becomes that of a file and a word of queries. */
static bool is_column_name(const struct wb_build *build, struct wb_slice name)
{
    return wb_store_name_check(name) == 0 && (!build->options->column_name || build->options->column_name(name));
}

/* *name_out is NULL if the name cannot be that of a column, or there are too many. */
static int find_name(struct wb_build *build, struct wb_slice name, struct wb_factname **name_out)
{
    struct wb_factcolumns *f = &build->facts;
    struct wb_factname fresh = {.pages = 0};

    *name_out = NULL;
    for (size_t i = 0; i < f->names.count; i++)
        if (wb_slice_equal(f->names.items[i].name, name)) {
            *name_out = &f->names.items[i];
            return 0;
        }
    if (f->names.count == NAMES_MAX || !is_column_name(build, name))
        return 0;
    int err = wb_arena_copy(&f->arena, name, &fresh.name);
    if (err == 0)
        err = wb_vec_push(&f->names, fresh);
    if (err == 0)
        *name_out = &f->names.items[f->names.count - 1];
    return err;
}

static int add_value(struct wb_build *build, struct wb_slice name, struct wb_pageid id, struct wb_slice value)
{
    struct wb_sorter_options sort = {.dir = build->root, .memory_bytes = SORT_BYTES};
    struct wb_factcolumns *f = &build->facts;
    struct wb_factname *known;
    char bytes[WB_PAGEID_BYTES];
    int err = find_name(build, name, &known);

    if (err < 0 || !known)
        return err;
    known->pages++;
    known->words = known->words || !wb_extract_number(value, NULL);
    if (!f->values)
        err = wb_sorter_open(&sort, &f->values);
    wb_pageid_put(id, bytes);
    wb_buf_clear(&f->key);
    if (err == 0)
        err = wb_buf_append_slice(&f->key, name);
    if (err == 0)
        err = wb_buf_append_char(&f->key, '\0');
    if (err == 0)
        err = wb_buf_append(&f->key, bytes, sizeof bytes);
    return err < 0 ? err : wb_sorter_add(f->values, wb_buf_slice(&f->key), value);
}

int wb_factcolumns_add(struct wb_build *build, uint32_t docid, const struct wb_extract_fact *facts, size_t count)
{
    int err = 0;

    WB_CHECK(docid < build->roster.known && count <= WB_EXTRACT_FACTS_MAX);
    if (count == 0)
        return 0;
    struct wb_pageid id = build->roster.urls[wb_docmap_number(&build->roster.docmap, docid)].id;
    for (size_t i = 0; err == 0 && i < count; i++)
        err = add_value(build, facts[i].name, id, facts[i].value);
    return err;
}

/* ---- the last generation ------------------------------------------------------------------------- */

/* A value as a text again. */
static struct wb_slice value_text(struct wb_slice value, bool words, char number_out[DOUBLE_BYTES])
{
    double number;

    if (words)
        return value;
    WB_CHECK(value.len == sizeof number);
    memcpy(&number, value.ptr, sizeof number);
    snprintf(number_out, DOUBLE_BYTES, "%.17g", number);
    return wb_slice_str(number_out);
}

static int carry_values(struct wb_build *build, const struct wb_manifest_column *column, struct wb_cursor *cursor)
{
    struct wb_table_record record;
    char number[DOUBLE_BYTES];
    int more = 0, err = 0;

    while (err == 0 && (more = wb_cursor_next(cursor, &record)) > 0) {
        if (record.key.len != WB_PAGEID_BYTES || (!column->words && record.value.len != sizeof(double)))
            return wb_fail(WB_E_CORRUPT, "the values of the column %s are damaged", column->name);
        struct wb_pageid id = wb_pageid_get(record.key.ptr);
        const struct wb_roster_page *page = wb_roster_find(&build->roster, id);
        if (!page || page->docid == WB_DOCID_NONE || wb_carry_is_fresh(&build->carry, page->docid))
            continue;
        err = add_value(build, wb_slice_str(column->name), id, value_text(record.value, column->words, number));
    }
    return err < 0 ? err : more;
}

static int carry_column(struct wb_build *build, const struct wb_manifest_column *column)
{
    struct wb_cursor *cursor = NULL;
    struct wb_table *table = NULL;
    char *path = wb_usercolumn_path(build->carry.old->path, column->name);
    int err = path ? wb_table_open(path, WB_COLUMNFILE_KIND, &table) : WB_E_NOMEM;

    if (err == 0)
        err = wb_cursor_open(table, &cursor);
    if (err == 0)
        err = carry_values(build, column, cursor);
    wb_cursor_close(cursor);
    wb_table_close(table);
    wb_free(path);
    return err;
}

static int carry_old(struct wb_build *build)
{
    const struct wb_index *old = build->carry.old;
    int err = 0;

    for (size_t i = 0; old && err == 0 && i < old->manifest.columns.count; i++)
        if (old->manifest.columns.items[i].fact)
            err = carry_column(build, &old->manifest.columns.items[i]);
    return err;
}

/* ---- writing --------------------------------------------------------------------------------------- */

static bool is_of_user(const struct wb_build *build, struct wb_slice name)
{
    for (size_t i = 0; i < build->manifest.columns.count; i++)
        if (wb_slice_equal(name, wb_slice_str(build->manifest.columns.items[i].name)))
            return true;
    return false;
}

static int compare_names(const void *a, const void *b)
{
    const struct wb_factname *x = a, *y = b;

    return x->pages != y->pages ? (x->pages < y->pages ? 1 : -1) : wb_slice_compare(x->name, y->name);
}

/* Which names become columns: those that most pages have. */
static void choose_names(struct wb_build *build)
{
    struct wb_factcolumns *f = &build->facts;
    size_t kept = 0;

    for (size_t i = 0; i < f->names.count; i++)
        if (!is_of_user(build, f->names.items[i].name))
            f->names.items[kept++] = f->names.items[i];
    f->names.count = kept;
    if (kept)
        qsort(f->names.items, kept, sizeof *f->names.items, compare_names);
    if (kept > WB_FACT_COLUMNS_MAX) {
        wb_build_warn(build, "pages have %zu kinds of facts; only the %u that most pages have become columns", kept,
                      WB_FACT_COLUMNS_MAX);
        f->names.count = WB_FACT_COLUMNS_MAX;
    }
}

static const struct wb_factname *find_chosen(const struct wb_factcolumns *f, struct wb_slice name)
{
    for (size_t i = 0; i < f->names.count; i++)
        if (wb_slice_equal(f->names.items[i].name, name))
            return &f->names.items[i];
    return NULL;
}

/* The column under way. */
struct fact_pen {
    struct wb_build *build;
    const struct wb_factname *name;
    struct wb_table_writer *table;
};

static int begin_column(struct fact_pen *pen, const struct wb_factname *name)
{
    struct wb_table_options options = {.kind = WB_COLUMNFILE_KIND};
    struct wb_manifest_column column = {.words = name->words, .fact = true};

    WB_CHECK(!pen->table && name->name.len <= WB_STORE_NAME_MAX);
    memcpy(column.name, name->name.ptr, name->name.len);
    char *path = wb_usercolumn_path(pen->build->path, column.name);
    int err = path ? wb_table_create(path, &options, &pen->table) : WB_E_NOMEM;
    wb_free(path);
    pen->name = name;
    return err < 0 ? err : wb_vec_push(&pen->build->manifest.columns, column);
}

static int end_column(struct fact_pen *pen)
{
    struct wb_table_writer *table = pen->table;

    pen->table = NULL;
    pen->name = NULL;
    return table ? wb_table_finish(table, NULL) : 0;
}

static int write_record(struct fact_pen *pen, const struct wb_table_record *record)
{
    size_t len = record->key.len - WB_PAGEID_BYTES - 1;
    struct wb_slice name = wb_slice(record->key.ptr, len);
    struct wb_slice id = wb_slice(record->key.ptr + len + 1, WB_PAGEID_BYTES);
    double number;
    int err = 0;

    WB_CHECK(record->key.len > WB_PAGEID_BYTES + 1 && record->key.ptr[len] == '\0');
    if (!pen->name || !wb_slice_equal(pen->name->name, name)) {
        const struct wb_factname *chosen = find_chosen(&pen->build->facts, name);
        err = end_column(pen);
        if (err < 0 || !chosen)
            return err;
        err = begin_column(pen, chosen);
    }
    if (err == 0 && pen->name->words)
        return wb_table_add(pen->table, id, record->value);
    bool is_number = wb_extract_number(record->value, &number);
    WB_CHECK(err < 0 || is_number); /* or the column would have words */
    return err < 0 ? err : wb_table_add(pen->table, id, wb_slice((const char *)&number, sizeof number));
}

int wb_factcolumns_write(struct wb_build *build)
{
    struct fact_pen pen = {.build = build};
    struct wb_table_record record;
    int err = carry_old(build), more = 0;

    if (err < 0 || !build->facts.values)
        return err;
    choose_names(build);
    err = wb_sorter_sort(build->facts.values);
    while (err == 0 && (more = wb_sorter_next(build->facts.values, &record)) > 0)
        err = write_record(&pen, &record);
    if (err == 0 && more == 0)
        return end_column(&pen);
    wb_table_abandon(pen.table);
    return err < 0 ? err : more;
}
