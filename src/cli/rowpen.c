/* rowpen.c - writes the cells of one row into a buffer. It knows neither tables nor files. */
#include "cli/rowpen.h"
#include "base/date.h"

#include <inttypes.h>
#include <stdio.h>

enum { NAME_COLUMNS = 16 }; /* of words */

void wb_rowpen_begin(struct wb_rowpen *pen, enum wb_rowpen_mode mode, struct wb_buf *out)
{
    *pen = (struct wb_rowpen){.mode = mode, .out = out, .first = true};
    wb_json_init(&pen->json, out);
    if (mode == WB_ROWPEN_JSON)
        wb_json_object(&pen->json);
}

int wb_rowpen_end(struct wb_rowpen *pen)
{
    if (pen->mode == WB_ROWPEN_JSON) {
        wb_json_object_end(&pen->json);
        return wb_json_line(&pen->json);
    }
    if (pen->err == 0 && pen->mode != WB_ROWPEN_WORDS)
        pen->err = wb_buf_append_char(pen->out, '\n');
    return pen->err;
}

int wb_rowpen_clean(struct wb_buf *out, struct wb_slice text, char instead)
{
    size_t at = out->len;
    int err = wb_buf_append_slice(out, text);

    for (size_t i = at; err == 0 && i < out->len; i++)
        if ((unsigned char)out->ptr[i] < ' ' || out->ptr[i] == 0x7f)
            out->ptr[i] = instead;
    return err;
}

/* Starts a cell; if it returns true, a value must be written to pen->json or pen->out, and the cell be closed. */
static bool open_cell(struct wb_rowpen *pen, const char *name)
{
    if (pen->err < 0)
        return false;
    if (pen->mode == WB_ROWPEN_JSON) {
        wb_json_key(&pen->json, name);
        return true;
    }
    if (pen->mode == WB_ROWPEN_WORDS) {
        pen->err = wb_buf_printf(pen->out, "%-*s", NAME_COLUMNS, name);
        return pen->err == 0;
    }
    if (!pen->first)
        pen->err = wb_buf_append_char(pen->out, '\t');
    pen->first = false;
    if (pen->err == 0 && pen->mode == WB_ROWPEN_HEADING)
        pen->err = wb_buf_append_str(pen->out, name);
    return pen->err == 0 && pen->mode != WB_ROWPEN_HEADING;
}

static void close_cell(struct wb_rowpen *pen)
{
    if (pen->err == 0 && pen->mode == WB_ROWPEN_WORDS)
        pen->err = wb_buf_append_char(pen->out, '\n');
}

void wb_rowpen_text(struct wb_rowpen *pen, const char *name, struct wb_slice text)
{
    if (pen->mode == WB_ROWPEN_WORDS && text.len == 0)
        return;
    if (!open_cell(pen, name))
        return;
    if (pen->mode == WB_ROWPEN_JSON)
        wb_json_slice(&pen->json, text);
    else
        pen->err = wb_rowpen_clean(pen->out, text, pen->mode == WB_ROWPEN_TSV ? ' ' : '?');
    close_cell(pen);
}

void wb_rowpen_none(struct wb_rowpen *pen, const char *name)
{
    if (pen->mode == WB_ROWPEN_WORDS || !open_cell(pen, name))
        return;
    if (pen->mode == WB_ROWPEN_JSON)
        wb_json_null(&pen->json);
}

void wb_rowpen_some(struct wb_rowpen *pen, const char *name, struct wb_slice text)
{
    if (text.len)
        wb_rowpen_text(pen, name, text);
    else
        wb_rowpen_none(pen, name);
}

void wb_rowpen_u64(struct wb_rowpen *pen, const char *name, uint64_t number)
{
    if (!open_cell(pen, name))
        return;
    if (pen->mode == WB_ROWPEN_JSON)
        wb_json_u64(&pen->json, number);
    else
        pen->err = wb_buf_printf(pen->out, "%" PRIu64, number);
    close_cell(pen);
}

void wb_rowpen_double(struct wb_rowpen *pen, const char *name, double number)
{
    if (!open_cell(pen, name))
        return;
    if (pen->mode == WB_ROWPEN_JSON)
        wb_json_double(&pen->json, number);
    else
        pen->err = wb_buf_printf(pen->out, "%.6g", number);
    close_cell(pen);
}

void wb_rowpen_time(struct wb_rowpen *pen, const char *name, int64_t time_ms)
{
    char text[WB_DATE_TEXT_MAX];

    if (time_ms == 0 || time_ms == INT64_MAX) {
        wb_rowpen_none(pen, name);
        return;
    }
    wb_date_format(time_ms, text);
    wb_rowpen_text(pen, name, wb_slice_str(text));
}

void wb_rowpen_hex64(struct wb_rowpen *pen, const char *name, bool known, uint64_t number)
{
    char text[17];

    snprintf(text, sizeof text, "%016" PRIx64, number);
    wb_rowpen_some(pen, name, known ? wb_slice_str(text) : WB_SLICE_EMPTY);
}

void wb_rowpen_bool(struct wb_rowpen *pen, const char *name, bool value)
{
    if (!open_cell(pen, name))
        return;
    if (pen->mode == WB_ROWPEN_JSON)
        wb_json_bool(&pen->json, value);
    else
        pen->err = wb_buf_append_char(pen->out, value ? '1' : '0');
    close_cell(pen);
}
