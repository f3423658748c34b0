/* factpen.c - writes rows of facts as CSV or JSON lines, or hands them to SQLite or to the room parquet. */
#include "facts/factpen.h"
#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

/* ---- CSV ----------------------------------------------------------------------------------------- */

static int put_csv_text(struct wb_buf *line, struct wb_slice text)
{
    bool quotes = false;
    int err = 0;

    for (size_t i = 0; i < text.len && !quotes; i++)
        quotes = memchr(",\"\r\n", text.ptr[i], 4) != NULL;
    if (!quotes)
        return wb_buf_append_slice(line, text);
    err = wb_buf_append_char(line, '"');
    for (size_t i = 0; err == 0 && i < text.len; i++) {
        if (text.ptr[i] == '"')
            err = wb_buf_append_char(line, '"');
        if (err == 0)
            err = wb_buf_append_char(line, text.ptr[i]);
    }
    return err < 0 ? err : wb_buf_append_char(line, '"');
}

static int put_csv_cell(struct wb_buf *line, const struct wb_factcell *cell)
{
    switch (cell->kind) {
    case WB_FACTCELL_TEXT:
    case WB_FACTCELL_TIME:
        return put_csv_text(line, cell->text);
    case WB_FACTCELL_WHOLE:
        return wb_buf_printf(line, "%" PRIu64, cell->whole);
    case WB_FACTCELL_NUMBER:
        return wb_buf_append_double(line, cell->number);
    case WB_FACTCELL_NONE:
        break;
    }
    return 0;
}

/* Writes a line with the cells, or with the names of the columns if there are none. */
static int write_csv(struct wb_factpen *pen, const struct wb_factcell *cells)
{
    int err = 0;

    wb_buf_clear(&pen->line);
    for (size_t i = 0; err == 0 && i < pen->column_count; i++) {
        if (i)
            err = wb_buf_append_char(&pen->line, ',');
        if (err == 0)
            err = cells ? put_csv_cell(&pen->line, &cells[i])
                        : put_csv_text(&pen->line, wb_slice_str(pen->columns[i].name));
    }
    if (err == 0)
        err = wb_buf_append_str(&pen->line, "\r\n");
    return err < 0 ? err : wb_newfile_write(&pen->file, pen->line.ptr, pen->line.len);
}

/* ---- JSON lines ------------------------------------------------------------------------------------ */

static int write_json(struct wb_factpen *pen, const struct wb_factcell *cells)
{
    struct wb_json j;

    wb_buf_clear(&pen->line);
    wb_json_init(&j, &pen->line);
    wb_json_object(&j);
    for (size_t i = 0; i < pen->column_count; i++) {
        wb_json_key(&j, pen->columns[i].name);
        switch (cells[i].kind) {
        case WB_FACTCELL_TEXT:
        case WB_FACTCELL_TIME:
            wb_json_slice(&j, cells[i].text);
            break;
        case WB_FACTCELL_WHOLE:
            wb_json_u64(&j, cells[i].whole);
            break;
        case WB_FACTCELL_NUMBER:
            wb_json_double_exact(&j, cells[i].number);
            break;
        case WB_FACTCELL_NONE:
            wb_json_null(&j);
            break;
        }
    }
    wb_json_object_end(&j);
    int err = wb_json_line(&j);
    return err < 0 ? err : wb_newfile_write(&pen->file, pen->line.ptr, pen->line.len);
}

/* ---- Parquet --------------------------------------------------------------------------------------- */

static int write_parquet(void *context, const void *bytes, size_t len)
{
    struct wb_factpen *pen = context;

    return wb_newfile_write(&pen->file, bytes, len);
}

static int open_parquet(struct wb_factpen *pen)
{
    static const enum wb_parquet_kind kinds[] = {[WB_FACTCELL_TEXT] = WB_PARQUET_TEXT,
                                                 [WB_FACTCELL_WHOLE] = WB_PARQUET_WHOLE,
                                                 [WB_FACTCELL_NUMBER] = WB_PARQUET_NUMBER,
                                                 [WB_FACTCELL_TIME] = WB_PARQUET_TIME};

    pen->parquet_columns = wb_alloc_zero(pen->column_count, sizeof *pen->parquet_columns);
    pen->parquet_cells = wb_alloc_zero(pen->column_count, sizeof *pen->parquet_cells);
    if (!pen->parquet_columns || !pen->parquet_cells)
        return WB_E_NOMEM;
    for (size_t i = 0; i < pen->column_count; i++) {
        const struct wb_factcolumn *column = &pen->columns[i];
        pen->parquet_columns[i] = (struct wb_parquet_column){column->name, kinds[column->kind], column->always};
    }
    return wb_parquet_new(pen->parquet_columns, pen->column_count, &WB_PARQUET_LIMITS, write_parquet, pen,
                          &pen->parquet);
}

static int add_to_parquet(struct wb_factpen *pen, const struct wb_factcell *cells)
{
    for (size_t i = 0; i < pen->column_count; i++) {
        const struct wb_factcell *cell = &cells[i];
        bool time = cell->kind == WB_FACTCELL_TIME;
        if (cell->kind == WB_FACTCELL_WHOLE && cell->whole > INT64_MAX)
            return wb_fail(WB_E_LIMIT, "a value of the column %s is too large for Parquet", pen->columns[i].name);
        pen->parquet_cells[i] = (struct wb_parquet_cell){.known = cell->kind != WB_FACTCELL_NONE,
                                                         .text = cell->text,
                                                         .whole = time ? cell->time_ms : (int64_t)cell->whole,
                                                         .number = cell->number};
    }
    return wb_parquet_row(pen->parquet, pen->parquet_cells);
}

/* ---- the pen ------------------------------------------------------------------------------------- */

int wb_factpen_open(struct wb_factpen *pen, const struct wb_facts_options *options, const struct wb_factcolumn *columns,
                    size_t column_count)
{
    *pen = WB_FACTPEN_INIT;
    pen->format = options->format;
    pen->columns = columns;
    pen->column_count = column_count;
    int err = wb_newfile_open(&pen->file, options->path, options->force);
    if (err == 0 && pen->format == WB_FACTS_SQLITE)
        err = wb_factsqlite_open(pen->file.temporary, columns, column_count, &pen->sqlite);
    if (err == 0 && pen->format == WB_FACTS_PARQUET)
        err = open_parquet(pen);
    if (err == 0 && pen->format == WB_FACTS_CSV)
        err = write_csv(pen, NULL);
    return err;
}

bool wb_factpen_has_links(const struct wb_factpen *pen)
{
    return pen->format == WB_FACTS_SQLITE;
}

int wb_factpen_row(struct wb_factpen *pen, const struct wb_factcell *cells)
{
    switch (pen->format) {
    case WB_FACTS_CSV:
        return write_csv(pen, cells);
    case WB_FACTS_JSONL:
        return write_json(pen, cells);
    case WB_FACTS_PARQUET:
        return add_to_parquet(pen, cells);
    case WB_FACTS_SQLITE:
        break;
    }
    return wb_factsqlite_row(pen->sqlite, cells, pen->column_count);
}

int wb_factpen_link(struct wb_factpen *pen, struct wb_slice from, struct wb_slice to, struct wb_slice anchor)
{
    WB_CHECK(wb_factpen_has_links(pen));
    return wb_factsqlite_link(pen->sqlite, from, to, anchor);
}

int wb_factpen_finish(struct wb_factpen *pen)
{
    int err = pen->sqlite ? wb_factsqlite_finish(pen->sqlite) : pen->parquet ? wb_parquet_finish(pen->parquet) : 0;

    wb_factsqlite_close(pen->sqlite);
    pen->sqlite = NULL;
    return err < 0 ? err : wb_newfile_finish(&pen->file);
}

void wb_factpen_close(struct wb_factpen *pen)
{
    wb_factsqlite_close(pen->sqlite);
    wb_parquet_free(pen->parquet);
    wb_free(pen->parquet_columns);
    wb_free(pen->parquet_cells);
    wb_newfile_close(&pen->file);
    wb_buf_release(&pen->line);
    *pen = WB_FACTPEN_INIT;
}
