/* zip_support.h - shared by the tests of ZIP and WACZ files: makes ZIP files by hand, right and wrong ones. */
#ifndef WB_TESTS_ZIP_SUPPORT_H
#define WB_TESTS_ZIP_SUPPORT_H

#include "warc_support.h"

#include "base/bytes.h"
#include "warc/wacz.h"
#include "zipdir/zipdir.h"

#include <unistd.h>

struct zip {
    struct wb_buf bytes, central;
    unsigned count;
};

#define ZIP_INIT ((struct zip){.count = 0})

/* An entry as its headers describe it. Zero: as it should be. */
struct zip_lie {
    uint16_t flags, method;
    uint32_t crc, packed, size, offset;
    uint16_t local_extra;
};

static inline struct wb_buf deflate_of(struct wb_slice plain)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
    struct wb_buf out = WB_BUF_INIT;

    assert_non_null(c);
    assert_int_equal(wb_buf_reserve(&out, libdeflate_deflate_compress_bound(c, plain.len)), 0);
    out.len = libdeflate_deflate_compress(c, plain.ptr, plain.len, out.ptr, out.cap);
    assert_true(out.len > 0);
    libdeflate_free_compressor(c);
    return out;
}

/* Adds an entry; the lie is what its headers say instead of the truth. Both headers say the same. */
static inline void zip_add_lie(struct zip *z, const char *name, bool deflated, struct wb_slice data, struct zip_lie lie)
{
    struct wb_buf packed = deflated ? deflate_of(data) : WB_BUF_INIT;
    struct wb_slice bytes = deflated ? wb_buf_slice(&packed) : data;
    uint8_t local[30] = {'P', 'K', 3, 4}, central[46] = {'P', 'K', 1, 2};
    static const char zeros[70000];

    wb_put16(local + 6, lie.flags);
    wb_put16(local + 8, lie.method ? lie.method : deflated ? 8 : 0);
    wb_put32(local + 14, lie.crc ? lie.crc : libdeflate_crc32(0, data.ptr, data.len));
    wb_put32(local + 18, lie.packed ? lie.packed : (uint32_t)bytes.len);
    wb_put32(local + 22, lie.size ? lie.size : (uint32_t)data.len);
    wb_put16(local + 26, (uint16_t)strlen(name));
    wb_put16(local + 28, lie.local_extra);
    memcpy(central + 8, local + 6, 20); /* flags to the lengths of the sizes have the same order */
    wb_put16(central + 28, (uint16_t)strlen(name));
    wb_put32(central + 42, lie.offset ? lie.offset : (uint32_t)z->bytes.len);
    assert_int_equal(wb_buf_append(&z->bytes, local, sizeof local), 0);
    assert_int_equal(wb_buf_append_str(&z->bytes, name), 0);
    assert_int_equal(wb_buf_append(&z->bytes, zeros, lie.local_extra), 0);
    assert_int_equal(wb_buf_append_slice(&z->bytes, bytes), 0);
    assert_int_equal(wb_buf_append(&z->central, central, sizeof central), 0);
    assert_int_equal(wb_buf_append_str(&z->central, name), 0);
    z->count++;
    wb_buf_release(&packed);
}

static inline void zip_add(struct zip *z, const char *name, bool deflated, struct wb_slice data)
{
    zip_add_lie(z, name, deflated, data, (struct zip_lie){0});
}

/* Appends the directory; z->bytes is the file then. */
static inline void zip_end(struct zip *z)
{
    uint8_t end[22] = {'P', 'K', 5, 6};

    wb_put16(end + 8, (uint16_t)z->count);
    wb_put16(end + 10, (uint16_t)z->count);
    wb_put32(end + 12, (uint32_t)z->central.len);
    wb_put32(end + 16, (uint32_t)z->bytes.len);
    assert_int_equal(wb_buf_append_slice(&z->bytes, wb_buf_slice(&z->central)), 0);
    assert_int_equal(wb_buf_append(&z->bytes, end, sizeof end), 0);
}

static inline void zip_release(struct zip *z)
{
    wb_buf_release(&z->bytes);
    wb_buf_release(&z->central);
}

/* A file of these bytes that lives as long as it is open. */
static inline struct wb_file zip_file(struct wb_slice bytes)
{
    struct wb_file file = {memfd_create("zip", 0), NULL};
    char path[64];

    assert_true(file.fd >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file.fd);
    file.path = strdup(path);
    assert_int_equal(wb_file_write_at(&file, 0, bytes.ptr, bytes.len), 0);
    return file;
}

#endif
