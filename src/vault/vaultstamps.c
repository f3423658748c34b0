/*
 * vaultstamps.c - which files a repository had at its last shipment, and which objects of the next one are there
 * already (vaultmemory.h).
 *
 *   stamps   "WBSTAMP1"   shipment (8)   term (8)   bytes of the store's stamps (4), and these   files (4)
 *            each file:  length of its name (2), name, size (8), device (8), inode (8), changed (8)
 *            XXH3 of everything before (8)
 *   parts    each object: hash of the path (8), offset (8), length (4), and the object as others name it (32)
 *            XXH3 of these bytes (8)
 */
#include "base/error.h"
#include "base/fields.h"
#include "base/format.h"
#include "base/hash.h"
#include "os/path.h"
#include "vault/vaultmemory.h"

#include <stdlib.h>

#define MARK "WBSTAMP1"

enum {
    STAMPS_MAX = 256 << 20,
    PARTS_MAX = 256 << 20,
    PART_FIELDS = 8 + 8 + 4 + WB_VAULT_OBJECT_REFERENCE,
    PART_BYTES = PART_FIELDS + 8,
};

/* ---- stamps -------------------------------------------------------------------------------------------------- */

static int append_stamp(struct wb_buf *bytes, const struct wb_vault_stamp *stamp)
{
    size_t len = strlen(stamp->name);
    char fixed[32], start[2];

    wb_put16(start, (uint16_t)len);
    wb_put64(fixed, stamp->size);
    wb_put64(fixed + 8, stamp->stamp.device);
    wb_put64(fixed + 16, stamp->stamp.inode);
    wb_put64(fixed + 24, (uint64_t)stamp->stamp.changed_ns);
    WB_CHECK(len <= WB_VAULT_PATH_MAX);
    if (wb_buf_append(bytes, start, sizeof start) < 0 || wb_buf_append(bytes, stamp->name, len) < 0)
        return WB_E_NOMEM;
    return wb_buf_append(bytes, fixed, sizeof fixed);
}

int wb_vault_stamps_save(const struct wb_vault_memory *memory, uint64_t number, uint64_t term, struct wb_slice store,
                         const struct wb_vault_stamps *stamps)
{
    struct wb_buf bytes = WB_BUF_INIT;
    char fixed[28] = MARK, count[4], check[8];
    char *path = wb_path_join(memory->folder, "stamps");
    int err = path ? 0 : WB_E_NOMEM;

    wb_put64(fixed + 8, number);
    wb_put64(fixed + 16, term);
    wb_put32(fixed + 24, (uint32_t)store.len);
    wb_put32(count, (uint32_t)stamps->count);
    if (err == 0)
        err = wb_buf_append(&bytes, fixed, sizeof fixed);
    if (err == 0)
        err = wb_buf_append_slice(&bytes, store);
    if (err == 0)
        err = wb_buf_append(&bytes, count, sizeof count);
    for (size_t i = 0; err == 0 && i < stamps->count; i++)
        err = append_stamp(&bytes, &stamps->items[i]);
    if (err == 0) {
        wb_put64(check, wb_hash64(bytes.ptr, bytes.len));
        err = wb_buf_append(&bytes, check, sizeof check);
    }
    if (err == 0)
        err = wb_path_replace(path, wb_buf_slice(&bytes));
    wb_buf_release(&bytes);
    wb_free(path);
    return err;
}

static int take_stamp(struct wb_fields *fields, struct wb_vault_stamps *stamps)
{
    const char *len = wb_fields_take_bytes(fields, 2);
    struct wb_slice name = wb_fields_take_slice(fields, len ? wb_get16(len) : 0);
    const char *p = wb_fields_take_bytes(fields, 32);

    if (!p)
        return 0;
    struct wb_vault_stamp stamp = {
        wb_strndup(name.ptr, name.len), wb_get64(p), {wb_get64(p + 8), wb_get64(p + 16), (int64_t)wb_get64(p + 24)}};
    if (!stamp.name || wb_vec_push(stamps, stamp) < 0) {
        wb_free(stamp.name);
        return WB_E_NOMEM;
    }
    return 0;
}

static int take_stamps(struct wb_slice bytes, uint64_t *number_out, uint64_t *term_out, struct wb_buf *store_out,
                       struct wb_vault_stamps *stamps)
{
    struct wb_fields fields = {bytes.ptr + 8, bytes.ptr + bytes.len - 8, true};
    const char *p = wb_fields_take_bytes(&fields, 20);
    uint64_t number = p ? wb_get64(p) : 0, term = p ? wb_get64(p + 8) : 0;
    struct wb_slice store = wb_fields_take_slice(&fields, p ? wb_get32(p + 16) : 0);
    const char *count = wb_fields_take_bytes(&fields, 4);
    int err = wb_buf_append_slice(store_out, store);

    for (uint32_t i = 0; err == 0 && fields.ok && i < wb_get32(count); i++)
        err = take_stamp(&fields, stamps);
    *number_out = err == 0 && fields.ok && fields.at == fields.end ? number : 0;
    *term_out = term;
    return err;
}

int wb_vault_stamps_load(const struct wb_vault_memory *memory, uint64_t *number_out, uint64_t *term_out,
                         struct wb_buf *store_out, struct wb_vault_stamps *stamps_out)
{
    struct wb_buf bytes = WB_BUF_INIT;
    char *path = wb_path_join(memory->folder, "stamps");
    int err = path ? wb_path_read(path, STAMPS_MAX, &bytes) : WB_E_NOMEM;

    *number_out = *term_out = 0;
    wb_buf_clear(store_out);
    wb_vault_stamps_release(stamps_out);
    if (err == 0 && bytes.len >= 8 + 20 + 4 + 8 && memcmp(bytes.ptr, MARK, 8) == 0 &&
        wb_get64(bytes.ptr + bytes.len - 8) == wb_hash64(bytes.ptr, bytes.len - 8))
        err = take_stamps(wb_buf_slice(&bytes), number_out, term_out, store_out, stamps_out);
    if (*number_out == 0) {
        wb_buf_clear(store_out);
        wb_vault_stamps_release(stamps_out);
    }
    wb_buf_release(&bytes);
    wb_free(path);
    return err == WB_E_NOTFOUND || err == WB_E_LIMIT ? 0 : err;
}

void wb_vault_stamps_release(struct wb_vault_stamps *stamps)
{
    for (size_t i = 0; i < stamps->count; i++)
        wb_free(stamps->items[i].name);
    wb_vec_release(stamps);
}

static int compare_name(const void *key, const void *item)
{
    return strcmp(key, ((const struct wb_vault_stamp *)item)->name);
}

const struct wb_vault_stamp *wb_vault_stamps_find(const struct wb_vault_stamps *stamps, const char *name)
{
    return stamps->count ? bsearch(name, stamps->items, stamps->count, sizeof *stamps->items, compare_name) : NULL;
}

/* ---- parts --------------------------------------------------------------------------------------------------- */

int wb_vault_parts_load(const struct wb_vault_memory *memory, struct wb_vault_parts *parts_out)
{
    struct wb_buf bytes = WB_BUF_INIT;
    char *path = wb_path_join(memory->folder, "parts");
    int err = path ? wb_path_read(path, PARTS_MAX, &bytes) : WB_E_NOMEM;

    wb_vec_clear(parts_out);
    for (size_t at = 0; err == 0 && bytes.len - at >= PART_BYTES; at += PART_BYTES) {
        const char *p = bytes.ptr + at;
        struct wb_vault_part part = {.file = wb_get64(p), .offset = wb_get64(p + 8), .len = wb_get32(p + 16)};
        if (wb_get64(p + PART_FIELDS) != wb_hash64(p, PART_FIELDS) || !wb_vault_object_take(p + 20, &part.object))
            break;
        err = wb_vec_push(parts_out, part);
    }
    wb_buf_release(&bytes);
    wb_free(path);
    return err == WB_E_NOTFOUND || err == WB_E_LIMIT ? 0 : err;
}

int wb_vault_parts_open(const struct wb_vault_memory *memory, struct wb_file *file_out, uint64_t *end_out)
{
    char *path = wb_path_join(memory->folder, "parts");
    uint64_t size = 0;
    int err = path ? wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, file_out) : WB_E_NOMEM;

    if (err == 0)
        err = wb_file_size(file_out, &size);
    *end_out = size / PART_BYTES * PART_BYTES; /* a crash may have left half a part */
    wb_free(path);
    return err;
}

int wb_vault_parts_add(const struct wb_file *file, uint64_t *end_inout, const struct wb_vault_part *part)
{
    char bytes[PART_BYTES];

    wb_put64(bytes, part->file);
    wb_put64(bytes + 8, part->offset);
    wb_put32(bytes + 16, part->len);
    wb_vault_object_put(bytes + 20, &part->object);
    wb_put64(bytes + PART_FIELDS, wb_hash64(bytes, PART_FIELDS));
    int err = wb_file_write_at(file, *end_inout, bytes, sizeof bytes);
    if (err == 0)
        *end_inout += sizeof bytes;
    return err;
}

int wb_vault_parts_clear(const struct wb_vault_memory *memory)
{
    char *path = wb_path_join(memory->folder, "parts");
    int err = path ? wb_path_unlink(path) : WB_E_NOMEM;

    wb_free(path);
    return err;
}
