/*
 * loadrow.c - reads a line of JSON, with libjansson, or of a tab-separated table into named texts. It knows no field.
 */
#include "ingest/loadrow.h"
#include "base/codec.h"
#include "base/date.h"
#include "base/error.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

/* Where in mem a text is. Until the row is complete mem may move, so this is an offset. */
struct text_span {
    size_t at, len;
};

/* ---- tab-separated ------------------------------------------------------------------------------ */

static size_t split_tabs(struct wb_slice line, struct wb_slice cells_out[WB_LOADROW_CELLS])
{
    size_t count = 0;

    for (;;) {
        const char *tab = memchr(line.ptr, '\t', line.len);
        size_t len = tab ? (size_t)(tab - line.ptr) : line.len;
        if (count < WB_LOADROW_CELLS)
            cells_out[count] = wb_slice(line.ptr, len);
        count++;
        if (!tab)
            return count;
        line = wb_slice(tab + 1, line.len - len - 1);
    }
}

static int read_heading(struct wb_loadrow *row, struct wb_slice line)
{
    int err = wb_buf_append_slice(&row->heading, line);

    if (err < 0)
        return err;
    row->count = split_tabs(wb_buf_slice(&row->heading), row->names);
    if (row->count > WB_LOADROW_CELLS)
        return wb_fail(WB_E_LIMIT, "a header line of more than %d columns", WB_LOADROW_CELLS);
    row->tabs = true;
    return 0;
}

static int read_tabs(struct wb_loadrow *row, struct wb_slice line)
{
    size_t cells = split_tabs(line, row->texts);

    if (cells != row->count)
        return wb_fail(WB_E_PROTO, "%zu columns under a header line of %zu", cells, row->count);
    return 1;
}

/* ---- JSON --------------------------------------------------------------------------------------- */

static int append_value(struct wb_buf *mem, const json_t *value)
{
    if (json_is_string(value))
        return wb_buf_append(mem, json_string_value(value), json_string_length(value));
    if (json_is_integer(value))
        return wb_buf_printf(mem, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (json_is_real(value))
        return wb_buf_printf(mem, "%.17g", json_real_value(value));
    if (json_is_boolean(value))
        return wb_buf_append_char(mem, json_is_true(value) ? '1' : '0');
    return 0;
}

/* Appends the values of an object that is an element of an array, separated by blanks, in the order of the file. */
static int append_object(struct wb_buf *mem, json_t *object)
{
    int err = 0;

    for (void *at = json_object_iter(object); err == 0 && at; at = json_object_iter_next(object, at)) {
        if (at != json_object_iter(object))
            err = wb_buf_append_char(mem, ' ');
        if (err == 0)
            err = append_value(mem, json_object_iter_value(at));
    }
    return err;
}

static int append_array(struct wb_buf *mem, const json_t *array)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < json_array_size(array); i++) {
        json_t *value = json_array_get(array, i);
        if (i > 0)
            err = wb_buf_append_str(mem, json_is_object(value) ? "; " : ",");
        if (err == 0)
            err = json_is_object(value) ? append_object(mem, value) : append_value(mem, value);
    }
    return err;
}

static int read_fields(struct wb_loadrow *row)
{
    struct text_span spans[WB_LOADROW_CELLS];
    int err = 0;

    row->count = 0;
    wb_buf_clear(&row->mem);
    for (void *at = json_object_iter(row->object); err == 0 && at; at = json_object_iter_next(row->object, at)) {
        const json_t *value = json_object_iter_value(at);
        if (row->count == WB_LOADROW_CELLS)
            return wb_fail(WB_E_PROTO, "an object of more than %d fields", WB_LOADROW_CELLS);
        row->names[row->count] = wb_slice_str(json_object_iter_key(at));
        spans[row->count].at = row->mem.len;
        err = json_is_array(value) ? append_array(&row->mem, value) : append_value(&row->mem, value);
        spans[row->count].len = row->mem.len - spans[row->count].at;
        row->count++;
    }
    for (size_t i = 0; err == 0 && i < row->count; i++)
        row->texts[i] = spans[i].len ? wb_slice(row->mem.ptr + spans[i].at, spans[i].len) : WB_SLICE_EMPTY;
    return err;
}

static int read_json(struct wb_loadrow *row, struct wb_slice line)
{
    json_error_t error;

    row->object = json_loadb(line.ptr, line.len, JSON_REJECT_DUPLICATES, &error);
    if (!row->object)
        return wb_fail(WB_E_PROTO, "not JSON: %s", error.text);
    if (!json_is_object(row->object))
        return wb_fail(WB_E_PROTO, "not a JSON object");
    int err = read_fields(row);
    return err < 0 ? err : 1;
}

/* ---- both --------------------------------------------------------------------------------------- */

int wb_loadrow_read(struct wb_loadrow *row, struct wb_slice line)
{
    bool first = !row->begun;

    json_decref(row->object);
    row->object = NULL;
    if (line.len == 0)
        return 0;
    row->begun = true;
    if (first && line.ptr[0] != '{')
        return read_heading(row, line);
    return row->tabs ? read_tabs(row, line) : read_json(row, line);
}

void wb_loadrow_release(struct wb_loadrow *row)
{
    json_decref(row->object);
    wb_buf_release(&row->heading);
    wb_buf_release(&row->mem);
    *row = (struct wb_loadrow){.count = 0};
}

static size_t find_name(const struct wb_loadrow *row, const char *name)
{
    struct wb_slice wanted = wb_slice_str(name);
    size_t at = 0;

    while (at < row->count && !wb_slice_equal(row->names[at], wanted))
        at++;
    return at;
}

bool wb_loadrow_has(const struct wb_loadrow *row, const char *name)
{
    return find_name(row, name) < row->count;
}

struct wb_slice wb_loadrow_text(const struct wb_loadrow *row, const char *name)
{
    size_t at = find_name(row, name);

    return at < row->count ? row->texts[at] : WB_SLICE_EMPTY;
}

static int bad_field(const char *name, struct wb_slice text, const char *what)
{
    return wb_fail(WB_E_PROTO, "%s should be %s, not %.*s", name, what, text.len > 60 ? 60 : (int)text.len, text.ptr);
}

int wb_loadrow_number(const struct wb_loadrow *row, const char *name, uint64_t max, uint64_t *number_out)
{
    struct wb_slice text = wb_loadrow_text(row, name);

    *number_out = 0;
    if (text.len && (!wb_slice_to_u64(text, number_out) || *number_out > max))
        return bad_field(name, text, "a number");
    return 0;
}

int wb_loadrow_double(const struct wb_loadrow *row, const char *name, double *number_out)
{
    struct wb_slice text = wb_loadrow_text(row, name);
    char copy[64], *end = copy;

    *number_out = 0;
    if (text.len == 0)
        return 0;
    if (text.len < sizeof copy) {
        memcpy(copy, text.ptr, text.len);
        copy[text.len] = '\0';
        *number_out = strtod(copy, &end);
    }
    return end == copy || *end || !isfinite(*number_out) ? bad_field(name, text, "a number") : 0;
}

int wb_loadrow_time(const struct wb_loadrow *row, const char *name, int64_t *time_ms_out)
{
    struct wb_slice text = wb_loadrow_text(row, name);

    *time_ms_out = 0;
    return text.len && !wb_date_parse(text, time_ms_out) ? bad_field(name, text, "a time") : 0;
}

int wb_loadrow_hex(const struct wb_loadrow *row, const char *name, void *bytes_out, size_t len, bool *there_out)
{
    struct wb_slice text = wb_loadrow_text(row, name);

    memset(bytes_out, 0, len);
    *there_out = text.len > 0;
    return text.len && !wb_hex_decode(text, bytes_out, len) ? bad_field(name, text, "hexadecimal digits") : 0;
}
