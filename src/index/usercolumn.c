/* usercolumn.c - writes the columns of users by docid, and reads them. columnfile.c reads what users bring. */
#include "index/usercolumn.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "index/build.h"
#include "index/columnfile.h"
#include "index/idtable.h"
#include "index/rankwork.h"
#include "os/nameless.h"
#include "os/path.h"

#include <math.h>
#include <stdio.h>

enum { NAME_BYTES = WB_STORE_NAME_MAX + 32, SORT_BYTES = 32 << 20 };

static void file_name(const char *column, const char *end, char name_out[NAME_BYTES])
{
    WB_CHECK(*column && strlen(column) <= WB_STORE_NAME_MAX); /* a name that is cut would be that of another column */
    snprintf(name_out, NAME_BYTES, "column-%s.%s", column, end);
}

static char *column_path(const char *dir, const char *column, const char *end)
{
    char name[NAME_BYTES];

    file_name(column, end, name);
    return wb_path_join(dir, name);
}

char *wb_usercolumn_path(const char *dir, const char *column)
{
    return column_path(dir, column, WB_COLUMNFILE_END);
}

/* ---- values ------------------------------------------------------------------------------------ */

/* Whether one of the first `count` columns that are given has this name. */
static bool is_among(const struct wb_build *build, size_t count, const char *name)
{
    WB_CHECK(count <= build->options->column_count);
    for (size_t i = 0; i < count; i++)
        if (wb_slice_equal(build->options->columns[i].name, wb_slice_str(name)))
            return true;
    return false;
}

static bool is_given(const struct wb_build *build, const char *name)
{
    return is_among(build, build->options->column_count, name);
}

static int read_given(struct wb_build *build, size_t number)
{
    const struct wb_index_column_source *source = &build->options->columns[number];
    struct wb_manifest_column column = {.rank = source->rank};

    /* The name becomes that of a file, and a word of the manifest. */
    if (wb_store_name_check(source->name) < 0)
        return wb_fail(WB_E_INVALID,
                       "'%.*s' cannot be the name of a column: use 1 to %d letters, digits, '.', '_', '-'",
                       (int)(source->name.len < 100 ? source->name.len : 100), source->name.ptr, WB_STORE_NAME_MAX);
    memcpy(column.name, source->name.ptr, source->name.len);
    if (is_among(build, number, column.name))
        return wb_fail(WB_E_INVALID, "the column %s is given twice", column.name);
    char *path = column_path(build->path, column.name, WB_COLUMNFILE_END);
    int err = WB_E_NOMEM;
    if (path && source->rank)
        err = wb_columnfile_import_seeds(source->path, column.name, build->root, path);
    else if (path)
        err = wb_columnfile_import(source->path, column.name, build->root, path, &column.words);
    wb_free(path);
    return err < 0 ? err : wb_vec_push(&build->manifest.columns, column);
}

/* The columns of the last generation that are not given again. */
static int take_over(struct wb_build *build, const struct wb_generation_manifest *old, const char *old_path)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < old->columns.count; i++) {
        const struct wb_manifest_column *column = &old->columns.items[i];
        if (column->fact || is_given(build, column->name))
            continue;
        char *from = column_path(old_path, column->name, WB_COLUMNFILE_END);
        char *to = column_path(build->path, column->name, WB_COLUMNFILE_END);
        /* A table is never changed, so both generations can have the same file. */
        err = from && to ? wb_path_copy(from, to) : WB_E_NOMEM;
        wb_free(from);
        wb_free(to);
        if (err == 0)
            err = wb_vec_push(&build->manifest.columns, *column);
    }
    return err;
}

/* A column can only be removed if there is one. */
static int check_removals(const struct wb_build *build, const struct wb_generation_manifest *old)
{
    for (size_t i = 0; i < build->options->column_count; i++) {
        const struct wb_index_column_source *source = &build->options->columns[i];
        bool found = source->path != NULL;
        for (size_t j = 0; !found && j < old->columns.count; j++)
            found = !old->columns.items[j].fact &&
                    wb_slice_equal(source->name, wb_slice_str(old->columns.items[j].name));
        if (!found)
            return wb_fail(WB_E_NOTFOUND, "there is no column %.*s to remove", WB_SLICE_ARG(source->name));
    }
    return 0;
}

int wb_usercolumns_read(struct wb_build *build)
{
    struct wb_generation_manifest old = {.language_count = 0};

    WB_CHECK(build->path && build->manifest.columns.count == 0);
    char *path = build->last ? wb_series_path(build->last_root, build->last) : NULL;
    char *manifest = path ? wb_path_join(path, WB_GENERATION_MANIFEST) : NULL;
    int err = build->last && !manifest ? WB_E_NOMEM : 0;
    if (err == 0 && manifest)
        err = wb_generation_read(manifest, &old);
    if (err == WB_E_CORRUPT || err == WB_E_NEWER || err == WB_E_NOTFOUND) {
        /* If this were an error, no index could be built any more. */
        wb_build_warn(build, "%s; if there were columns of users, give them again", wb_error_message());
        err = 0;
    }
    if (err == 0)
        err = check_removals(build, &old);
    for (size_t i = 0; err == 0 && i < build->options->column_count; i++)
        if (build->options->columns[i].path)
            err = read_given(build, i);
    if (err == 0 && path)
        err = take_over(build, &old, path);
    wb_generation_release(&old);
    wb_free(manifest);
    wb_free(path);
    return err;
}

/* Compares a column that is given with that of the same name in the last generation. */
static int is_same(struct wb_build *build, const struct wb_manifest_column *column,
                   const struct wb_generation_manifest *old, const char *old_path, bool *same_out)
{
    int err = 0;

    *same_out = false;
    for (size_t i = 0; err == 0 && i < old->columns.count; i++) {
        const struct wb_manifest_column *was = &old->columns.items[i];
        if (was->fact || strcmp(was->name, column->name) != 0 || was->words != column->words ||
            was->rank != column->rank)
            continue;
        char *from = column_path(old_path, column->name, WB_COLUMNFILE_END);
        char *to = column_path(build->path, column->name, WB_COLUMNFILE_END);
        err = from && to ? wb_path_same(from, to, same_out) : WB_E_NOMEM;
        wb_free(from);
        wb_free(to);
    }
    return err;
}

int wb_usercolumns_same(struct wb_build *build, bool *same_out)
{
    struct wb_generation_manifest old = {.language_count = 0};

    WB_CHECK(build->last > 0);
    char *path = wb_series_path(build->last_root, build->last);
    char *manifest = path ? wb_path_join(path, WB_GENERATION_MANIFEST) : NULL;
    int err = manifest ? wb_generation_read(manifest, &old) : WB_E_NOMEM;

    size_t users = 0;
    for (size_t i = 0; err == 0 && i < old.columns.count; i++)
        users += !old.columns.items[i].fact;
    /* A column that is removed is missing here. */
    *same_out = err == 0 && build->manifest.columns.count == users;
    for (size_t i = 0; err == 0 && *same_out && i < build->manifest.columns.count; i++)
        err = is_same(build, &build->manifest.columns.items[i], &old, path, same_out);
    wb_generation_release(&old);
    wb_free(manifest);
    wb_free(path);
    return err;
}

/* ---- personal ranks ---------------------------------------------------------------------------- */

static int check_seeds(struct wb_build *build, const struct wb_index_column_source *source)
{
    struct wb_seedset set = {.seeds = 0};
    char name[WB_STORE_NAME_MAX + 1];

    WB_CHECK(source->name.len < sizeof name); /* read_given() has checked it */
    snprintf(name, sizeof name, "%.*s", WB_SLICE_ARG(source->name));
    char *table = column_path(build->path, name, WB_COLUMNFILE_END);
    int err = table ? wb_seedset_match(build, table, &set) : WB_E_NOMEM;
    if (err == 0 && set.docids.count == 0)
        err = wb_fail(WB_E_INVALID, "rank %s: %s: none of the %llu seeds is known", name, source->path,
                      (unsigned long long)set.seeds);
    else if (err == 0 && set.unknown)
        wb_build_warn(build, "rank %s: %llu of %llu seeds are not known yet; they count as soon as they are", name,
                      (unsigned long long)set.unknown, (unsigned long long)set.seeds);
    wb_seedset_release(&set);
    wb_free(table);
    return err;
}

int wb_usercolumns_check(struct wb_build *build)
{
    int err = 0;

    WB_CHECK(build->roster.docmap.urls == build->roster.url_count); /* seeds become docids */
    for (size_t i = 0; err == 0 && i < build->options->column_count; i++)
        if (build->options->columns[i].rank && build->options->columns[i].path)
            err = check_seeds(build, &build->options->columns[i]);
    return err;
}

/* ---- columns ----------------------------------------------------------------------------------- */

/* A column that is being written. */
struct column_work {
    struct wb_build *build;
    const struct wb_manifest_column *column;
    const struct wb_idtable *ids;
    struct wb_table *values;
    struct wb_cursor *cursor;
    double *numbers; /* by docid; or */
    uint32_t *codes;
    struct wb_sorter *words; /* word -> docid */
    uint64_t unknown, rows;
};

/* Calls for each value whose URL has a docid. */
static int each_value(struct column_work *work)
{
    struct wb_table_record record;
    char docid_bytes[4];
    int more, err = 0;

    while (err == 0 && (more = wb_cursor_next(work->cursor, &record)) != 0) {
        if (more < 0)
            return more;
        if (record.key.len != WB_PAGEID_BYTES || (!work->column->words && record.value.len != 8))
            return wb_fail(WB_E_CORRUPT, "the values of the column %s are damaged; give it again, or remove it",
                           work->column->name);
        uint32_t docid = wb_idtable_find(work->ids, wb_pageid_get(record.key.ptr));
        work->rows++;
        work->unknown += docid == WB_DOCID_NONE;
        if (docid == WB_DOCID_NONE)
            continue;
        WB_CHECK(docid < work->build->roster.url_count);
        wb_put32(docid_bytes, docid);
        if (work->column->words)
            err = wb_sorter_add(work->words, record.value, wb_slice(docid_bytes, sizeof docid_bytes));
        else
            memcpy(&work->numbers[docid], record.value.ptr, sizeof(double));
    }
    return err;
}

/* Gives each word its rank, and writes the table of words. */
static int number_words(struct column_work *work)
{
    struct wb_table_options options = {.kind = WB_COLUMNFILE_WORDS_KIND};
    struct wb_table_writer *table = NULL;
    struct wb_buf last = WB_BUF_INIT;
    struct wb_table_record record;
    char *path = column_path(work->build->path, work->column->name, "wbt");
    uint32_t code = 0;
    int more = 0, err = path ? wb_table_create(path, &options, &table) : WB_E_NOMEM;

    if (err == 0)
        err = wb_sorter_sort(work->words);
    while (err == 0 && (more = wb_sorter_next(work->words, &record)) > 0) {
        if (code == 0 || !wb_slice_equal(record.key, wb_buf_slice(&last))) {
            wb_buf_clear(&last);
            err = wb_buf_append_slice(&last, record.key);
            if (err == 0)
                err = wb_table_add(table, record.key, WB_SLICE_EMPTY);
            code++;
        }
        WB_CHECK(record.value.len == sizeof code);
        uint32_t docid = wb_get32(record.value.ptr);
        WB_CHECK(docid < work->build->roster.url_count);
        work->codes[docid] = code;
    }
    wb_buf_release(&last);
    wb_free(path);
    err = err < 0 ? err : more < 0 ? more : 0;
    if (err < 0) {
        wb_table_abandon(table);
        return err;
    }
    return wb_table_finish(table, NULL);
}

static int write_values(const struct column_work *work)
{
    bool words = work->column->words;
    struct wb_column_writer *writer = NULL;

    WB_CHECK(words ? work->codes != NULL : work->numbers != NULL);
    char *path = column_path(work->build->path, work->column->name, "wbc");
    int err = path ? wb_column_create(path, words ? WB_COLUMNFILE_CODES_KIND : WB_COLUMNFILE_NUMBERS_KIND,
                                      words ? sizeof *work->codes : sizeof *work->numbers, &writer)
                   : WB_E_NOMEM;

    for (uint64_t docid = 0; err == 0 && docid < work->build->roster.url_count; docid++)
        err = wb_column_add(writer, words ? (void *)&work->codes[docid] : &work->numbers[docid]);
    wb_free(path);
    if (err < 0) {
        wb_column_abandon(writer);
        return err;
    }
    return wb_column_finish(writer, NULL);
}

/* By docid; there are none yet. */
static int open_numbers(struct column_work *work)
{
    uint64_t urls = work->build->roster.url_count;

    WB_CHECK(!work->numbers && !work->column->words);
    work->numbers = wb_alloc_zero(urls + 1, sizeof *work->numbers);
    for (uint64_t docid = 0; work->numbers && docid < urls; docid++)
        work->numbers[docid] = NAN;
    return work->numbers ? 0 : WB_E_NOMEM;
}

static int open_work(struct column_work *work)
{
    struct wb_sorter_options sort = {.dir = work->build->root, .memory_bytes = SORT_BYTES};
    uint64_t urls = work->build->roster.url_count;
    char *path = column_path(work->build->path, work->column->name, WB_COLUMNFILE_END);
    int err = path ? wb_table_open(path, WB_COLUMNFILE_KIND, &work->values) : WB_E_NOMEM;

    wb_free(path);
    if (err == 0)
        err = wb_cursor_open(work->values, &work->cursor);
    if (err == 0 && work->column->words) {
        work->codes = wb_alloc_zero(urls + 1, sizeof *work->codes);
        err = work->codes ? wb_sorter_open(&sort, &work->words) : WB_E_NOMEM;
    } else if (err == 0) {
        err = open_numbers(work);
    }
    return err;
}

static int write_rank(struct wb_build *build, const struct wb_manifest_column *column)
{
    struct column_work work = {.build = build, .column = column};
    struct wb_seedset set = {.seeds = 0};
    char *table = column_path(build->path, column->name, WB_COLUMNFILE_END);
    int err = table ? open_numbers(&work) : WB_E_NOMEM;

    if (err == 0)
        err = wb_seedset_match(build, table, &set);
    if (err == 0 && set.docids.count)
        err = wb_rankwork_personal(build, &set, work.numbers);
    else if (err == 0)
        wb_build_warn(build, "rank %s: none of its %llu seeds is known any more, so it has no values", column->name,
                      (unsigned long long)set.seeds);
    if (err == 0)
        err = write_values(&work);
    wb_seedset_release(&set);
    wb_free(work.numbers);
    wb_free(table);
    return err;
}

static int write_one(struct wb_build *build, const struct wb_manifest_column *column, const struct wb_idtable *ids)
{
    struct column_work work = {.build = build, .column = column, .ids = ids};
    int err = open_work(&work);

    if (err == 0)
        err = each_value(&work);
    if (err == 0 && column->words)
        err = number_words(&work);
    if (err == 0)
        err = write_values(&work);
    if (err == 0 && work.unknown && is_given(build, column->name))
        wb_build_warn(build, "column %s: %llu of %llu URLs are not known yet; their values wait for them", column->name,
                      (unsigned long long)work.unknown, (unsigned long long)work.rows);
    wb_sorter_close(work.words);
    wb_cursor_close(work.cursor);
    wb_table_close(work.values);
    wb_free(work.codes);
    wb_free(work.numbers);
    return err;
}

int wb_usercolumns_write(struct wb_build *build)
{
    struct wb_idtable ids = {.slots = NULL};
    struct wb_column column = WB_COLUMN_INIT;

    if (build->manifest.columns.count == 0)
        return 0;
    char *path = wb_build_path(build, "id.wbc");
    int err = path ? wb_column_open(path, wb_fact_kinds[WB_FACT_ID].kind, WB_PAGEID_BYTES, &column) : WB_E_NOMEM;
    if (err == 0)
        err = wb_idtable_open(build->root, column.records, column.count, &ids);
    for (size_t i = 0; err == 0 && i < build->manifest.columns.count; i++)
        err = build->manifest.columns.items[i].rank ? write_rank(build, &build->manifest.columns.items[i])
                                                    : write_one(build, &build->manifest.columns.items[i], &ids);
    wb_idtable_close(&ids);
    wb_column_close(&column);
    wb_free(path);
    return err;
}

/* ---- reading ----------------------------------------------------------------------------------- */

int wb_usercolumns_open(struct wb_index *index)
{
    const struct wb_generation_manifest *manifest = &index->manifest;
    int err = 0;

    index->open_columns = wb_alloc_zero(manifest->columns.count + 1, sizeof *index->open_columns);
    if (!index->open_columns)
        return WB_E_NOMEM;
    for (size_t i = 0; err == 0 && i < manifest->columns.count; i++) {
        struct wb_index_column column = {.words = manifest->columns.items[i].words};
        memcpy(column.name, manifest->columns.items[i].name, sizeof column.name);
        err = wb_vec_push(&index->columns, column);
    }
    return err;
}

static void unload_column(struct wb_open_column *open)
{
    wb_cursor_close(open->cursor);
    wb_table_close(open->table);
    wb_column_close(&open->column);
    *open = (struct wb_open_column){.table = NULL};
}

void wb_usercolumns_close(struct wb_index *index)
{
    for (size_t i = 0; index->open_columns && i < index->columns.count; i++)
        unload_column(&index->open_columns[i]);
    wb_free(index->open_columns);
    wb_vec_release(&index->columns);
}

/* Opens the files of a column when it is first asked for. */
static int load_column(struct wb_index *index, size_t at)
{
    struct wb_index_column *column = &index->columns.items[at];
    struct wb_open_column *open = &index->open_columns[at];

    WB_CHECK(!column->numbers && !column->codes && !open->table);
    char *path = column_path(index->path, column->name, "wbc"), *words = column_path(index->path, column->name, "wbt");
    int err = path && words
                  ? wb_column_open(path, column->words ? WB_COLUMNFILE_CODES_KIND : WB_COLUMNFILE_NUMBERS_KIND,
                                   column->words ? sizeof *column->codes : sizeof *column->numbers, &open->column)
                  : WB_E_NOMEM;
    if (err == 0 && open->column.count != index->docmap.urls)
        err = wb_fail(WB_E_CORRUPT, "%s has another number of values than its generation has URLs", path);
    if (err == 0)
        err = wb_column_check(&open->column, 0, open->column.count);
    if (err == 0 && column->words)
        err = wb_table_open(words, WB_COLUMNFILE_WORDS_KIND, &open->table);
    if (err == 0 && column->words)
        err = wb_cursor_open(open->table, &open->cursor);
    if (err == 0 && column->words)
        column->codes = (const void *)open->column.records;
    else if (err == 0)
        column->numbers = (const void *)open->column.records;
    wb_free(path);
    wb_free(words);
    if (err < 0)
        unload_column(open);
    return err;
}

int wb_index_column(struct wb_index *index, struct wb_slice name, const struct wb_index_column **column_out)
{
    WB_CHECK(index->magic == WB_INDEX_MAGIC);
    for (size_t i = 0; i < index->columns.count; i++) {
        struct wb_index_column *column = &index->columns.items[i];
        if (!wb_slice_equal(name, wb_slice_str(column->name)))
            continue;
        pthread_mutex_lock(&index->mutex);
        int err = column->numbers || column->codes ? 0 : load_column(index, i);
        pthread_mutex_unlock(&index->mutex);
        *column_out = column;
        return err;
    }
    return wb_fail(WB_E_NOTFOUND, "there is no column %.*s", WB_SLICE_ARG(name));
}

size_t wb_index_columns(struct wb_index *index, const struct wb_index_column **columns_out)
{
    WB_CHECK(index->magic == WB_INDEX_MAGIC);
    *columns_out = index->columns.items;
    return index->columns.count;
}

/* The files of a column of words that was asked for. */
static struct wb_open_column *open_words(struct wb_index *index, const struct wb_index_column *column)
{
    size_t at = (size_t)(column - index->columns.items);

    WB_CHECK(at < index->columns.count);
    WB_CHECK(column->words && index->open_columns[at].cursor);
    return &index->open_columns[at];
}

int wb_index_column_code(struct wb_index *index, const struct wb_index_column *column, struct wb_slice word,
                         uint32_t *code_out)
{
    struct wb_open_column *open = open_words(index, column);
    struct wb_table_record record;

    int err = wb_cursor_get(open->cursor, word, &record);
    *code_out = err == 0 ? (uint32_t)record.number + 1 : 0;
    return err == WB_E_NOTFOUND ? 0 : err;
}

int wb_index_column_word(struct wb_index *index, const struct wb_index_column *column, uint32_t code,
                         struct wb_slice *word_out)
{
    struct wb_open_column *open = open_words(index, column);
    struct wb_table_record record;

    *word_out = WB_SLICE_EMPTY;
    if (code == 0)
        return 0;
    int err = wb_cursor_get_number(open->cursor, code - 1, &record);
    if (err == 0)
        *word_out = record.key;
    return err;
}
