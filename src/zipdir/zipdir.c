/*
 * zipdir.c - reads the directory of a ZIP file (PKWARE's APPNOTE 6.3, section 4.3; zipwriter.c draws the parts).
 *
 *   ... entries ... | central header, one per entry | [zip64 end, locator] | end, comment of up to 64 KiB |
 *
 * Nothing here is believed: counts and sizes are bounded before memory is allocated, offsets are compared with the size
 * of the file, and entries with each other. Files in several parts, and bytes before or between the parts of the
 * directory, are refused.
 */
#include "zipdir/zipdir.h"

#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"

#include <inttypes.h>
#include <libdeflate.h>
#include <stdlib.h>

#define LOCAL_BYTES 30
#define CENTRAL_BYTES 46
#define END_BYTES 22
#define END64_BYTES 56
#define LOCATOR_BYTES 20
#define COMMENT_MAX 0xffff
#define EXTRA64 1

#define ENCRYPTED 0x2041 /* flags: encrypted, strongly encrypted, or with a masked local header */

/* Where the directory is, as the end of the file says. */
struct zipdir_place {
    uint64_t offset, bytes, count;
    uint64_t end; /* where it must end: at the end record, or at that of zip64 */
};

static int damaged(const struct wb_file *file, const char *what)
{
    return wb_fail(WB_E_CORRUPT, "%s: the ZIP file is damaged or cut off: %s", file->path, what);
}

/* ---- the end of the file ------------------------------------------------------------------- */

/* Reads the end record of zip64, to which the locator before the end record points. */
static int read_end64(const struct wb_file *file, uint64_t end_at, struct zipdir_place *place)
{
    uint8_t locator[LOCATOR_BYTES], end[END64_BYTES];

    if (end_at < LOCATOR_BYTES + END64_BYTES)
        return damaged(file, "its directory has no place");
    int err = wb_file_read_exact(file, end_at - LOCATOR_BYTES, locator, sizeof locator);
    if (err < 0)
        return err;
    uint64_t at = wb_get64(locator + 8);
    if (memcmp(locator, "PK\6\7", 4) != 0 || at > end_at - LOCATOR_BYTES - END64_BYTES)
        return damaged(file, "its directory is not where it should be");
    err = wb_file_read_exact(file, at, end, sizeof end);
    if (err < 0)
        return err;
    if (memcmp(end, "PK\6\6", 4) != 0 || wb_get32(end + 16) != 0 || wb_get32(end + 20) != 0 ||
        wb_get64(end + 24) != wb_get64(end + 32))
        return damaged(file, "the end of its directory is invalid");
    *place = (struct zipdir_place){
        .offset = wb_get64(end + 48), .bytes = wb_get64(end + 40), .count = wb_get64(end + 32), .end = at};
    return 0;
}

static int read_end(const struct wb_file *file, const uint8_t *end, uint64_t end_at, struct zipdir_place *place)
{
    *place = (struct zipdir_place){
        .offset = wb_get32(end + 16), .bytes = wb_get32(end + 12), .count = wb_get16(end + 10), .end = end_at};
    if (place->offset == UINT32_MAX || place->bytes == UINT32_MAX || place->count == UINT16_MAX)
        return read_end64(file, end_at, place);
    if (wb_get16(end + 4) != 0 || wb_get16(end + 6) != 0 || wb_get16(end + 8) != place->count)
        return damaged(file, "it is a part of several");
    return 0;
}

/* Finds the end record, which only a comment may follow. */
static int find_place(const struct wb_file *file, uint64_t size, struct wb_buf *tail, struct zipdir_place *place)
{
    size_t want = size < END_BYTES + COMMENT_MAX ? (size_t)size : END_BYTES + COMMENT_MAX;
    int err = wb_buf_reserve(tail, want + 1);

    if (err == 0)
        err = wb_file_read_exact(file, size - want, tail->ptr, want);
    if (err < 0)
        return err;
    for (size_t at = want >= END_BYTES ? want - END_BYTES + 1 : 0; at-- > 0;) {
        const uint8_t *end = (const uint8_t *)tail->ptr + at;
        if (memcmp(end, "PK\5\6", 4) == 0 && at + END_BYTES + wb_get16(end + 20) == want)
            return read_end(file, end, size - want + at, place);
    }
    return WB_E_NOTFOUND;
}

/* ---- entries ------------------------------------------------------------------------------- */

/* Replaces the numbers that did not fit in 32 bits by those in the extra field. Returns false if one is missing. */
static bool read_extra(const uint8_t *extra, size_t len, struct wb_zipdir_entry *entry)
{
    uint64_t *const numbers[] = {&entry->size, &entry->packed, &entry->offset};

    while (len >= 4) {
        size_t bytes = wb_get16(extra + 2);
        const uint8_t *field = extra + 4;
        if (bytes > len - 4)
            break; /* some writers pad with zeros, or worse; that matters only if we need what follows */
        if (wb_get16(extra) == EXTRA64)
            for (size_t i = 0; i < 3; i++)
                if (*numbers[i] == UINT32_MAX && bytes >= 8) {
                    *numbers[i] = wb_get64(field);
                    field += 8;
                    bytes -= 8;
                }
        size_t whole = (size_t)wb_get16(extra + 2) + 4;
        extra += whole;
        len -= whole;
    }
    return entry->size != UINT32_MAX && entry->packed != UINT32_MAX && entry->offset != UINT32_MAX;
}

/* We never make files of names, but the author of such a name means no good, and messages show names. */
static bool is_decent(struct wb_slice name)
{
    if (name.len == 0 || name.ptr[0] == '/')
        return false;
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == 0x7f || name.ptr[i] == '\\')
            return false;
    for (size_t at = 0; at <= name.len;) {
        const char *slash = memchr(name.ptr + at, '/', name.len - at);
        size_t end = slash ? (size_t)(slash - name.ptr) : name.len;
        if (end - at == 2 && memcmp(name.ptr + at, "..", 2) == 0)
            return false;
        at = end + 1;
    }
    return true;
}

/* Reads the central header at *at and moves *at behind it. */
static int read_entry(const struct wb_file *file, struct wb_slice bytes, size_t *at, struct wb_zipdir_entry *entry)
{
    const uint8_t *head = (const uint8_t *)bytes.ptr + *at;

    if (bytes.len - *at < CENTRAL_BYTES || memcmp(head, "PK\1\2", 4) != 0)
        return damaged(file, "an entry of its directory is invalid");
    size_t name = wb_get16(head + 28), extra = wb_get16(head + 30), comment = wb_get16(head + 32);
    if (bytes.len - *at - CENTRAL_BYTES < name + extra + comment)
        return damaged(file, "an entry of its directory is cut off");
    *entry = (struct wb_zipdir_entry){
        .name = wb_slice((const char *)head + CENTRAL_BYTES, name),
        .offset = wb_get32(head + 42),
        .packed = wb_get32(head + 20),
        .size = wb_get32(head + 24),
        .crc = wb_get32(head + 16),
        .method = wb_get16(head + 10),
        .flags = wb_get16(head + 8),
    };
    if (!is_decent(entry->name))
        return damaged(file, "it has an entry whose name is not a relative path");
    if (!read_extra(head + CENTRAL_BYTES + name, extra, entry))
        return damaged(file, "an entry of its directory has no size");
    *at += CENTRAL_BYTES + name + extra + comment;
    return 0;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct wb_zipdir_entry *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

static int compare_names(const void *a, const void *b)
{
    const struct wb_slice *x = a, *y = b;

    return wb_slice_compare(*x, *y);
}

static int refuse_twins(const struct wb_file *file, const struct wb_zipdir *dir)
{
    WB_VEC(struct wb_slice) names = WB_VEC_INIT;
    int err = wb_vec_reserve(&names, dir->entries.count + 1);

    for (size_t i = 0; err == 0 && i < dir->entries.count; i++)
        names.items[names.count++] = dir->entries.items[i].name;
    if (err == 0)
        qsort(names.items, names.count, sizeof *names.items, compare_names);
    for (size_t i = 1; err == 0 && i < names.count; i++)
        if (wb_slice_equal(names.items[i - 1], names.items[i]))
            err = wb_fail(WB_E_CORRUPT, "%s: the ZIP file has two entries named %.*s", file->path,
                          WB_SLICE_ARG(names.items[i]));
    wb_vec_release(&names);
    return err;
}

/* Entries that overlap are how a small file becomes an endless one. */
static int refuse_overlaps(const struct wb_file *file, struct wb_zipdir *dir, uint64_t limit)
{
    for (size_t i = 0; i < dir->entries.count; i++) {
        struct wb_zipdir_entry *e = &dir->entries.items[i];
        uint64_t head = LOCAL_BYTES + e->name.len;
        e->limit = i + 1 < dir->entries.count ? e[1].offset : limit;
        if (e->offset > e->limit || e->limit - e->offset < head || e->limit - e->offset - head < e->packed)
            return wb_fail(WB_E_CORRUPT, "%s: the ZIP file is damaged or cut off: %.*s overlaps what follows it",
                           file->path, WB_SLICE_ARG(e->name));
    }
    return 0;
}

static int read_entries(struct wb_zipdir *dir, const struct wb_file *file, const struct zipdir_place *place)
{
    int err = wb_vec_reserve(&dir->entries, (size_t)place->count + 1);
    size_t at = 0;

    for (uint64_t i = 0; err == 0 && i < place->count; i++)
        err = read_entry(file, wb_buf_slice(&dir->bytes), &at, &dir->entries.items[dir->entries.count++]);
    if (err == 0 && at != dir->bytes.len)
        err = damaged(file, "its directory is longer than its entries");
    if (err < 0)
        return err;
    qsort(dir->entries.items, dir->entries.count, sizeof *dir->entries.items, compare_offsets);
    err = refuse_overlaps(file, dir, place->offset);
    return err < 0 ? err : refuse_twins(file, dir);
}

int wb_zipdir_read(struct wb_zipdir *dir, const struct wb_file *file)
{
    struct wb_buf tail = WB_BUF_INIT;
    struct zipdir_place place = {.offset = 0};
    uint64_t size = 0;

    *dir = (struct wb_zipdir){.bytes = WB_BUF_INIT};
    int err = wb_file_size(file, &size);
    if (err == 0)
        err = find_place(file, size, &tail, &place);
    wb_buf_release(&tail);
    if (err == WB_E_NOTFOUND)
        return wb_fail(WB_E_PROTO, "%s is not a ZIP file, or is cut off", file->path);
    if (err < 0)
        return err;
    if (place.count > WB_ZIPDIR_ENTRIES_MAX || place.bytes > WB_ZIPDIR_BYTES_MAX)
        return wb_fail(WB_E_LIMIT, "%s: a ZIP file with %" PRIu64 " entries is too large", file->path, place.count);
    if (place.offset > place.end || place.end - place.offset != place.bytes ||
        place.bytes / CENTRAL_BYTES < place.count)
        return damaged(file, "its directory is not where it should be");
    err = wb_buf_reserve(&dir->bytes, (size_t)place.bytes + 1);
    if (err == 0)
        err = wb_file_read_exact(file, place.offset, dir->bytes.ptr, (size_t)place.bytes);
    dir->bytes.len = err < 0 ? 0 : (size_t)place.bytes;
    return err < 0 ? err : read_entries(dir, file, &place);
}

void wb_zipdir_release(struct wb_zipdir *dir)
{
    wb_vec_release(&dir->entries);
    wb_buf_release(&dir->bytes);
}

/* ---- data ---------------------------------------------------------------------------------- */

static int refuse(const struct wb_file *file, const struct wb_zipdir_entry *entry, const char *what)
{
    return wb_fail(WB_E_PROTO, "%s:%.*s %s", file->path, WB_SLICE_ARG(entry->name), what);
}

int wb_zipdir_data(const struct wb_file *file, const struct wb_zipdir_entry *entry, uint64_t *data_out)
{
    uint8_t head[LOCAL_BYTES];

    *data_out = 0;
    if (entry->flags & ENCRYPTED)
        return refuse(file, entry, "is encrypted");
    if (entry->method != WB_ZIPDIR_STORED && entry->method != WB_ZIPDIR_DEFLATED)
        return refuse(file, entry, "is compressed in a way that WebBase does not read");
    if (entry->method == WB_ZIPDIR_STORED && entry->size != entry->packed)
        return refuse(file, entry, "has two different sizes");
    if (entry->size > WB_ZIPDIR_RATIO_FREE && entry->size / WB_ZIPDIR_RATIO_MAX > entry->packed)
        return refuse(file, entry, "would expand to more than 200 times its size");
    int err = wb_file_read_exact(file, entry->offset, head, sizeof head);
    if (err < 0)
        return err;
    uint64_t data = entry->offset + LOCAL_BYTES + wb_get16(head + 26) + wb_get16(head + 28);
    if (memcmp(head, "PK\3\4", 4) != 0 || wb_get16(head + 8) != entry->method || data > entry->limit ||
        entry->packed > entry->limit - data)
        return wb_fail(WB_E_CORRUPT, "%s:%.*s has a damaged header", file->path, WB_SLICE_ARG(entry->name));
    *data_out = data;
    return 0;
}

static int inflate_entry(const struct wb_file *file, const struct wb_zipdir_entry *entry, struct wb_slice packed,
                         struct wb_buf *out)
{
    struct libdeflate_decompressor *inflater = libdeflate_alloc_decompressor();
    size_t got = 0;

    if (!inflater)
        return wb_fail_nomem();
    enum libdeflate_result result =
        libdeflate_deflate_decompress(inflater, packed.ptr, packed.len, out->ptr, (size_t)entry->size, &got);
    libdeflate_free_decompressor(inflater);
    if (result != LIBDEFLATE_SUCCESS || got != entry->size)
        return wb_fail(WB_E_CORRUPT, "%s:%.*s is damaged", file->path, WB_SLICE_ARG(entry->name));
    out->len = got;
    return 0;
}

int wb_zipdir_load(const struct wb_file *file, const struct wb_zipdir_entry *entry, size_t max, struct wb_buf *out)
{
    struct wb_buf packed = WB_BUF_INIT;
    uint64_t data;
    int err = wb_zipdir_data(file, entry, &data);

    wb_buf_clear(out);
    if (err == 0 && entry->size > max)
        err = wb_fail(WB_E_LIMIT, "%s:%.*s is too large", file->path, WB_SLICE_ARG(entry->name));
    if (err == 0)
        err = wb_buf_reserve(out, (size_t)entry->size + 1);
    if (err == 0)
        err = wb_buf_reserve(&packed, (size_t)entry->packed + 1);
    if (err == 0)
        err = wb_file_read_exact(file, data, packed.ptr, (size_t)entry->packed);
    packed.len = err == 0 ? (size_t)entry->packed : 0;
    if (err == 0 && entry->method == WB_ZIPDIR_DEFLATED)
        err = inflate_entry(file, entry, wb_buf_slice(&packed), out);
    else if (err == 0)
        err = wb_buf_append_slice(out, wb_buf_slice(&packed));
    if (err == 0 && libdeflate_crc32(0, out->ptr, out->len) != entry->crc)
        err = wb_fail(WB_E_CORRUPT, "%s:%.*s is damaged", file->path, WB_SLICE_ARG(entry->name));
    wb_buf_release(&packed);
    return err;
}
