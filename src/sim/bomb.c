/*
 * bomb.c - builds a gzip member from many equal parts.
 *
 * One part is deflated once, up to a full flush, and then repeated; the checksum is computed
 * by combining that of one part with itself. It never deflates the whole gigabyte.
 */
#include "sim/bomb.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"

#include <zlib.h>

#define PART_BYTES (1u << 20)
#define DOUBLINGS 10

/* Deflates one part of zeros, up to a full flush, so that copies of it can follow each other. */
static int deflate_part(struct wb_buf *part_out)
{
    z_stream z = {0};
    int err = 0;
    char *zeros = wb_alloc_zero(1, PART_BYTES);

    if (!zeros)
        return WB_E_NOMEM;
    if (deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        err = wb_fail_nomem();
    if (err == 0)
        err = wb_buf_reserve(part_out, 64u << 10);
    if (err == 0) {
        z.next_in = (Bytef *)zeros;
        z.avail_in = PART_BYTES;
        z.next_out = (Bytef *)part_out->ptr;
        z.avail_out = 64u << 10;
        deflate(&z, Z_FULL_FLUSH);
        part_out->len = (64u << 10) - z.avail_out;
    }
    deflateEnd(&z);
    wb_free(zeros);
    return err;
}

/* The CRC of one part of zeros. */
static uint32_t part_checksum(void)
{
    static const Bytef zeros[4096];
    uLong crc = crc32(0, NULL, 0);

    for (unsigned i = 0; i < PART_BYTES / sizeof zeros; i++)
        crc = crc32(crc, zeros, sizeof zeros);
    return (uint32_t)crc;
}

int wb_bomb_make(struct wb_buf *bytes_out)
{
    static const char head[10] = {0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    static const char last[2] = {3, 0}; /* an empty block that ends the stream */
    struct wb_buf part = WB_BUF_INIT;
    uLong crc = part_checksum();
    char tail[8];

    wb_buf_clear(bytes_out);
    int err = deflate_part(&part);
    if (err == 0)
        err = wb_buf_append(bytes_out, head, sizeof head);
    for (unsigned i = 0; err == 0 && i < 1u << DOUBLINGS; i++)
        err = wb_buf_append(bytes_out, part.ptr, part.len);
    for (unsigned i = 0; i < DOUBLINGS; i++)
        crc = crc32_combine(crc, crc, (z_off_t)PART_BYTES << i);
    wb_put32(tail, (uint32_t)crc);
    wb_put32(tail + 4, PART_BYTES << DOUBLINGS);
    if (err == 0)
        err = wb_buf_append(bytes_out, last, sizeof last);
    if (err == 0)
        err = wb_buf_append(bytes_out, tail, sizeof tail);
    wb_buf_release(&part);
    return err;
}
