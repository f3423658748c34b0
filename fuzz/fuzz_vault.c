/*
 * fuzz_vault.c - arbitrary bytes as what comes out of a vault.
 *
 * The first byte says what the rest is:
 *   0 rows of a catalog    1 the contents of a shipment    2 the contents of head    3 a whole object
 * What can be read is written and read again, and must be the same. A shipment is also applied, and each of its states
 * is looked at.
 */
#include "base/check.h"
#include "base/error.h"
#include "vault/vaulthead.h"
#include "vault/vaultrows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads rows and writes them again. Returns what reading says at the end. */
static int copy_rows(struct wb_slice piece, struct wb_vault_rows_writer *writer)
{
    struct wb_vault_rows_reader reader = {.key = WB_BUF_INIT};
    int more;

    wb_vault_rows_read(&reader, "the object", piece);
    while ((more = wb_vault_rows_next(&reader)) > 0)
        WB_CHECK(wb_vault_rows_add(writer, &reader.row) == 0);
    wb_vault_rows_reader_release(&reader);
    return more;
}

static void try_rows(struct wb_slice piece)
{
    struct wb_vault_rows_writer first = {.bytes = WB_BUF_INIT}, second = {.bytes = WB_BUF_INIT};
    int err = copy_rows(piece, &first);

    WB_CHECK(err == 0 || err == WB_E_CORRUPT);
    WB_CHECK(copy_rows(wb_buf_slice(&first.bytes), &second) == 0 && first.count == second.count);
    WB_CHECK(wb_slice_equal(wb_buf_slice(&first.bytes), wb_buf_slice(&second.bytes)));
    wb_vault_rows_release(&first);
    wb_vault_rows_release(&second);
}

/* The states of a vault in which this is the only shipment. */
static void try_manifest(const struct wb_vault_shipment *shipment, const struct wb_vault_object *self)
{
    struct wb_vault_manifest manifest = {.number = 0};
    struct wb_vault_contents contents;
    int err = wb_vault_manifest_apply(&manifest, "the shipment", self, shipment, NULL);

    WB_CHECK(err == 0 || err == WB_E_CORRUPT);
    for (size_t i = 0; err == 0 && i < manifest.points.count; i++) {
        if (wb_vault_contents_at(&manifest, "the shipment", manifest.points.items[i].number, &contents) < 0)
            continue;
        for (size_t k = 0; k < contents.files.count; k++) {
            const struct wb_vault_state_file *file = &contents.files.items[k];
            uint64_t end = 0;
            for (size_t p = 0; p < file->count; p++) {
                WB_CHECK(contents.pieces.items[file->first + p]->offset == end);
                end += contents.pieces.items[file->first + p]->len;
            }
            WB_CHECK(end == file->bytes);
        }
        wb_vault_contents_release(&contents);
    }
    wb_vault_manifest_release(&manifest);
}

static void try_shipment(struct wb_slice contents)
{
    struct wb_vault_object self = {.run = 1, .count = 1, .stored = 100};
    struct wb_vault_shipment shipment, again;
    struct wb_buf first = WB_BUF_INIT, second = WB_BUF_INIT;
    int err = wb_vault_shipment_decode("the shipment", &self, contents, &shipment);

    WB_CHECK(err == 0 || err == WB_E_CORRUPT);
    if (err < 0)
        return;
    try_manifest(&shipment, &self);
    WB_CHECK(wb_vault_shipment_encode(&shipment, &first) == 0);
    WB_CHECK(wb_vault_shipment_decode("the shipment", &self, wb_buf_slice(&first), &again) == 0);
    WB_CHECK(wb_vault_shipment_encode(&again, &second) == 0);
    WB_CHECK(wb_slice_equal(wb_buf_slice(&first), wb_buf_slice(&second)));
    wb_vault_shipment_release(&shipment);
    wb_vault_shipment_release(&again);
    wb_buf_release(&first);
    wb_buf_release(&second);
}

static void try_head(struct wb_slice contents)
{
    struct wb_vault_head head, again;
    struct wb_buf first = WB_BUF_INIT, second = WB_BUF_INIT;
    int err = wb_vault_head_decode("head", contents, &head);

    WB_CHECK(err == 0 || err == WB_E_CORRUPT);
    if (err < 0)
        return;
    WB_CHECK(wb_vault_head_encode(&head, &first) == 0);
    WB_CHECK(wb_vault_head_decode("head", wb_buf_slice(&first), &again) == 0);
    WB_CHECK(wb_vault_head_encode(&again, &second) == 0);
    WB_CHECK(wb_slice_equal(wb_buf_slice(&first), wb_buf_slice(&second)));
    wb_buf_release(&first);
    wb_buf_release(&second);
}

static void try_object(struct wb_slice bytes)
{
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_slice contents;

    for (int kind = WB_VAULT_BYTES; kind <= WB_VAULT_HEAD; kind++) {
        int err = wb_vault_object_unpack("the object", (enum wb_vault_kind)kind, bytes, &mem, &contents);
        WB_CHECK(err == 0 || err == WB_E_CORRUPT || err == WB_E_NEWER || err == WB_E_NOMEM);
    }
    wb_buf_release(&mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(struct wb_slice) = {try_rows, try_shipment, try_head, try_object};

    if (size > 0 && data[0] < sizeof readers / sizeof *readers)
        readers[data[0]](wb_slice((const char *)data + 1, size - 1));
    return 0;
}
