/* vaultrows.c - writes and reads rows of a catalog as bytes (vaultrows.h). */
#include "vault/vaultrows.h"
#include "base/check.h"
#include "base/error.h"
#include "base/fields.h"
#include "vault/vaultobject.h"

int wb_vault_rows_compare(const struct wb_vault_row *a, const struct wb_vault_row *b)
{
    return a->table != b->table ? (a->table < b->table ? -1 : 1) : wb_slice_compare(a->key, b->key);
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

static size_t shared_bytes(struct wb_slice a, struct wb_slice b)
{
    size_t n = 0;

    while (n < a.len && n < b.len && a.ptr[n] == b.ptr[n])
        n++;
    return n;
}

int wb_vault_rows_add(struct wb_vault_rows_writer *writer, const struct wb_vault_row *row)
{
    size_t shared = shared_bytes(wb_buf_slice(&writer->key), row->key);
    struct wb_slice rest = {row->key.ptr + shared, row->key.len - shared};
    size_t most = 1 + 3 * WB_VARINT_MAX + rest.len + row->value.len;

    WB_CHECK(row->table <= UINT8_MAX);
    WB_CHECK(row->value.ptr || row->value.len == 0);
    if (most > WB_VAULT_CONTENTS_MAX - writer->bytes.len)
        return wb_fail(WB_E_LIMIT, "a row of the catalog has %zu bytes: too many for an object", row->value.len);
    if (wb_buf_reserve(&writer->bytes, most) < 0)
        return WB_E_NOMEM;
    char *p = writer->bytes.ptr + writer->bytes.len;
    *p++ = (char)row->table;
    p = wb_fields_put(p, shared);
    p = wb_fields_put_text(p, rest);
    p = wb_fields_put(p, row->value.ptr ? row->value.len + 1 : 0);
    if (row->value.len)
        memcpy(p, row->value.ptr, row->value.len);
    p += row->value.len;
    writer->bytes.len = (size_t)(p - writer->bytes.ptr);
    writer->count++;
    writer->key.len = shared;
    return wb_buf_append_slice(&writer->key, rest);
}

void wb_vault_rows_clear(struct wb_vault_rows_writer *writer)
{
    wb_buf_clear(&writer->bytes);
    wb_buf_clear(&writer->key);
    writer->count = 0;
}

void wb_vault_rows_release(struct wb_vault_rows_writer *writer)
{
    wb_buf_release(&writer->bytes);
    wb_buf_release(&writer->key);
    writer->count = 0;
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

void wb_vault_rows_read(struct wb_vault_rows_reader *reader, const char *name, struct wb_slice piece)
{
    wb_buf_clear(&reader->key);
    reader->name = name;
    reader->at = piece.ptr;
    reader->end = piece.ptr + piece.len;
    reader->begun = false;
    reader->row = (struct wb_vault_row){.table = 0, .key = WB_SLICE_EMPTY, .value = {NULL, 0}};
}

static int malformed(const struct wb_vault_rows_reader *reader)
{
    return wb_fail(WB_E_CORRUPT, "%s: its rows are malformed", reader->name);
}

int wb_vault_rows_next(struct wb_vault_rows_reader *reader)
{
    struct wb_fields fields = {reader->at, reader->end, true};

    if (reader->at == reader->end)
        return 0;
    unsigned table = wb_fields_take_byte(&fields);
    size_t shared = (size_t)wb_fields_take(&fields, reader->key.len);
    struct wb_slice rest = wb_fields_take_text(&fields);
    uint64_t len = wb_fields_take(&fields, UINT64_MAX);
    struct wb_slice value = len ? wb_fields_take_slice(&fields, len - 1) : wb_slice(NULL, 0);
    if (!fields.ok)
        return malformed(reader);
    /* They ascend if the table does, or what follows the shared bytes does. */
    struct wb_slice before = {reader->key.len ? reader->key.ptr + shared : "", reader->key.len - shared};
    if (reader->begun &&
        (table < reader->row.table || (table == reader->row.table && wb_slice_compare(rest, before) <= 0)))
        return malformed(reader);
    reader->key.len = shared;
    if (wb_buf_append_slice(&reader->key, rest) < 0)
        return WB_E_NOMEM;
    reader->row = (struct wb_vault_row){table, wb_buf_slice(&reader->key), value};
    reader->begun = true;
    reader->at = fields.at;
    return 1;
}

void wb_vault_rows_reader_release(struct wb_vault_rows_reader *reader)
{
    wb_buf_release(&reader->key);
    reader->at = reader->end = NULL;
}
