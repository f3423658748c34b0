/*
 * zipwriter.c - writes ZIP files (PKWARE's APPNOTE 6.3, sections 4.3 and 4.5).
 *
 *   { local header | bytes | data descriptor } ...  { central header } ...  [zip64 end  locator]  end
 *
 *   local header     4 signature "PK\3\4"  2 version  2 flags  2 method  4 time  4 crc 0  4+4 sizes 0  2 name
 *                    2 extra
 *   data descriptor  4 signature "PK\7\8"  4 crc  4+4 sizes, packed first (8+8 in a large entry)
 *   central header   4 signature "PK\1\2"  2+2 versions  2 flags  2 method  4 time  4 crc  4+4 sizes  2 name  2 extra
 *                    2 comment  2 disk  2+4 attributes  4 offset
 *
 * A large entry has an extra field for 64-bit sizes in both headers. An entry beyond 4 GiB has one for its offset in
 * the central header only. Some readers (wabac.js) take the absence of a central extra field as the absence of a local
 * one, and the two cases above never contradict that.
 */
#include "warc/zipwriter.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"

#include <libdeflate.h>
#include <openssl/evp.h>
#include <zlib.h>

#define ZIPWRITER_MAGIC 0x57425a57u

#define LOCAL_BYTES 30
#define CENTRAL_BYTES 46
#define END_BYTES 22
#define END64_BYTES 56
#define LOCATOR_BYTES 20

#define FLAGS 0x0808 /* bit 3: sizes follow the bytes; bit 11: names are UTF-8 */
#define VERSION 20
#define VERSION64 45
#define EXTRA64 1 /* the id of the extra field for 64-bit numbers */
#define NAME_MAX_BYTES 1024
#define METHOD_DEFLATE 8
#define PACKED_BYTES ((size_t)16 << 10) /* so much of what deflate makes goes to the sink at once */

struct wb_zipwriter {
    uint32_t magic; /* ZIPWRITER_MAGIC from new to free */
    wb_zipwriter_sink sink;
    void *context;
    uint64_t offset; /* bytes written */
    uint32_t stamp;  /* the time of all entries, as MS-DOS writes it */
    WB_VEC(struct wb_zipwriter_entry) entries;
    bool open; /* the last one has not ended */
    bool finished;
    EVP_MD_CTX *sha256;
    z_stream deflate; /* of the open entry, if that is deflated */
};

/* MS-DOS has no years before 1980 and after 2107, and its seconds are even. */
static uint32_t dos_time(int64_t time_ms)
{
    char date[WB_DATE_TEXT_MAX];
    uint32_t part[6] = {0};

    wb_date_format(time_ms, date);
    for (size_t i = 0, at = 0; i < 6; i++) {
        for (; date[at] && !wb_ascii_is_digit(date[at]); at++)
            ;
        for (; wb_ascii_is_digit(date[at]); at++)
            part[i] = part[i] * 10 + (uint32_t)(date[at] - '0');
    }
    if (part[0] < 1980 || part[0] > 2107)
        return 1u << 21 | 1u << 16;
    return (part[0] - 1980) << 25 | part[1] << 21 | part[2] << 16 | part[3] << 11 | part[4] << 5 | part[5] / 2;
}

int wb_zipwriter_new(wb_zipwriter_sink sink, void *context, int64_t now_ms, struct wb_zipwriter **zip_out)
{
    *zip_out = NULL;
    struct wb_zipwriter *z = wb_alloc_zero(1, sizeof *z);
    if (!z)
        return WB_E_NOMEM;
    *z = (struct wb_zipwriter){.magic = ZIPWRITER_MAGIC, .sink = sink, .context = context, .stamp = dos_time(now_ms)};
    z->sha256 = EVP_MD_CTX_new();
    if (!z->sha256) {
        wb_zipwriter_free(z);
        return wb_fail_nomem();
    }
    *zip_out = z;
    return 0;
}

void wb_zipwriter_free(struct wb_zipwriter *zip)
{
    if (!zip)
        return;
    WB_CHECK(zip->magic == ZIPWRITER_MAGIC);
    zip->magic = 0;
    deflateEnd(&zip->deflate);
    for (size_t i = 0; i < zip->entries.count; i++)
        wb_free(zip->entries.items[i].name);
    wb_vec_release(&zip->entries);
    EVP_MD_CTX_free(zip->sha256);
    wb_free(zip);
}

static int put(struct wb_zipwriter *z, const void *bytes, size_t len)
{
    int err = z->sink(z->context, bytes, len);

    z->offset += len;
    return err;
}

/* ---- entries ------------------------------------------------------------------------------- */

static struct wb_zipwriter_entry *last_entry(struct wb_zipwriter *z)
{
    WB_CHECK(z->entries.count > 0);
    return &z->entries.items[z->entries.count - 1];
}

static int begin(struct wb_zipwriter *zip, const char *name, uint64_t at_most, bool deflated)
{
    uint8_t head[LOCAL_BYTES + 20] = {'P', 'K', 3, 4};
    size_t name_bytes = strlen(name);
    bool large = at_most >= UINT32_MAX;

    WB_CHECK(zip->magic == ZIPWRITER_MAGIC);
    WB_CHECK(!zip->open && !zip->finished);
    WB_CHECK(name_bytes > 0 && name_bytes <= NAME_MAX_BYTES);
    char *copy = wb_strdup(name);
    if (!copy)
        return WB_E_NOMEM;
    int err =
        wb_vec_push(&zip->entries, (struct wb_zipwriter_entry){.name = copy, .offset = zip->offset, .large = large,
                                                               .deflated = deflated});
    if (err < 0) {
        wb_free(copy);
        return err;
    }
    zip->open = true;
    if (!EVP_DigestInit_ex(zip->sha256, EVP_sha256(), NULL))
        return wb_fail_nomem();
    wb_put16(head + 4, large ? VERSION64 : VERSION);
    wb_put16(head + 6, FLAGS);
    wb_put16(head + 8, deflated ? METHOD_DEFLATE : 0);
    wb_put32(head + 10, zip->stamp);
    wb_put16(head + 26, (uint16_t)name_bytes);
    wb_put16(head + 28, large ? 20 : 0);
    if (large) { /* both sizes are in the extra field, where they are 0 too: they follow the bytes */
        wb_put32(head + 18, UINT32_MAX);
        wb_put32(head + 22, UINT32_MAX);
        wb_put16(head + LOCAL_BYTES, EXTRA64);
        wb_put16(head + LOCAL_BYTES + 2, 16);
    }
    err = put(zip, head, LOCAL_BYTES);
    if (err == 0)
        err = put(zip, name, name_bytes);
    return err == 0 && large ? put(zip, head + LOCAL_BYTES, 20) : err;
}

int wb_zipwriter_begin(struct wb_zipwriter *zip, const char *name, uint64_t at_most)
{
    return begin(zip, name, at_most, false);
}

int wb_zipwriter_begin_deflated(struct wb_zipwriter *zip, const char *name, uint64_t at_most)
{
    WB_CHECK(zip->magic == ZIPWRITER_MAGIC && !zip->open);
    zip->deflate = (z_stream){.zalloc = wb_alloc_hook, .zfree = wb_free_hook};
    if (deflateInit2(&zip->deflate, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return wb_fail_nomem();
    /* What cannot be compressed becomes longer, by less than a thousandth. */
    uint64_t longer = at_most / 1000 + PACKED_BYTES;
    return begin(zip, name, at_most < UINT64_MAX - longer ? at_most + longer : at_most, true);
}

/* Gives the sink what deflate makes of some bytes; with Z_FINISH also of those that it has kept. */
static int put_deflated(struct wb_zipwriter *z, const void *bytes, size_t len, int flush)
{
    struct wb_zipwriter_entry *entry = last_entry(z);
    uint8_t packed[PACKED_BYTES];
    int err = 0;

    WB_CHECK(len <= UINT32_MAX);
    z->deflate.next_in = (z_const Bytef *)(uintptr_t)bytes;
    z->deflate.avail_in = (uInt)len;
    do {
        z->deflate.next_out = packed;
        z->deflate.avail_out = sizeof packed;
        WB_CHECK(deflate(&z->deflate, flush) != Z_STREAM_ERROR);
        size_t made = sizeof packed - z->deflate.avail_out;
        entry->packed += made;
        err = made ? put(z, packed, made) : 0;
    } while (err == 0 && z->deflate.avail_out == 0);
    return err;
}

int wb_zipwriter_write(struct wb_zipwriter *zip, const void *bytes, size_t len)
{
    struct wb_zipwriter_entry *entry = last_entry(zip);

    WB_CHECK(zip->open);
    if (!entry->large && entry->bytes + len >= UINT32_MAX)
        return wb_fail(WB_E_LIMIT, "%s is larger than was announced", entry->name);
    if (!EVP_DigestUpdate(zip->sha256, bytes, len))
        return wb_fail_nomem();
    entry->crc = libdeflate_crc32(entry->crc, bytes, len);
    entry->bytes += len;
    if (entry->deflated)
        return put_deflated(zip, bytes, len, Z_NO_FLUSH);
    entry->packed += len;
    return put(zip, bytes, len);
}

int wb_zipwriter_end(struct wb_zipwriter *zip)
{
    struct wb_zipwriter_entry *entry = last_entry(zip);
    uint8_t descriptor[24] = {'P', 'K', 7, 8};

    WB_CHECK(zip->open);
    int err = entry->deflated ? put_deflated(zip, "", 0, Z_FINISH) : 0;
    if (err < 0)
        return err;
    deflateEnd(&zip->deflate);
    zip->deflate = (z_stream){0};
    zip->open = false;
    WB_CHECK(entry->large || entry->packed < UINT32_MAX);
    if (!EVP_DigestFinal_ex(zip->sha256, entry->sha256, NULL))
        return wb_fail_nomem();
    wb_put32(descriptor + 4, entry->crc);
    if (entry->large) {
        wb_put64(descriptor + 8, entry->packed);
        wb_put64(descriptor + 16, entry->bytes);
        return put(zip, descriptor, 24);
    }
    wb_put32(descriptor + 8, (uint32_t)entry->packed);
    wb_put32(descriptor + 12, (uint32_t)entry->bytes);
    return put(zip, descriptor, 16);
}

uint64_t wb_zipwriter_bytes(const struct wb_zipwriter *zip)
{
    WB_CHECK(zip->open);
    return zip->entries.items[zip->entries.count - 1].bytes;
}

const struct wb_zipwriter_entry *wb_zipwriter_entry(const struct wb_zipwriter *zip, size_t i)
{
    WB_CHECK(zip->magic == ZIPWRITER_MAGIC && !zip->open);
    return i < zip->entries.count ? &zip->entries.items[i] : NULL;
}

/* ---- the directory ------------------------------------------------------------------------- */

static int put_central(struct wb_zipwriter *z, const struct wb_zipwriter_entry *entry)
{
    uint8_t head[CENTRAL_BYTES] = {'P', 'K', 1, 2}, extra[4 + 24] = {EXTRA64};
    size_t name_bytes = strlen(entry->name), extra_bytes = 4;
    bool far = entry->offset >= UINT32_MAX;

    if (entry->large) {
        wb_put64(extra + 4, entry->bytes);
        wb_put64(extra + 12, entry->packed);
        extra_bytes += 16;
    }
    if (far) {
        wb_put64(extra + extra_bytes, entry->offset);
        extra_bytes += 8;
    }
    extra_bytes = extra_bytes > 4 ? extra_bytes : 0;
    wb_put16(extra + 2, (uint16_t)(extra_bytes - 4));
    wb_put16(head + 4, (uint16_t)(3 << 8 | VERSION64)); /* 3: made on Unix, so that the attributes are a file mode */
    wb_put16(head + 6, extra_bytes ? VERSION64 : VERSION);
    wb_put16(head + 8, FLAGS);
    wb_put16(head + 10, entry->deflated ? METHOD_DEFLATE : 0);
    wb_put32(head + 12, z->stamp);
    wb_put32(head + 16, entry->crc);
    wb_put32(head + 20, entry->large ? UINT32_MAX : (uint32_t)entry->packed);
    wb_put32(head + 24, entry->large ? UINT32_MAX : (uint32_t)entry->bytes);
    wb_put16(head + 28, (uint16_t)name_bytes);
    wb_put16(head + 30, (uint16_t)extra_bytes);
    wb_put32(head + 38, 0100644u << 16);
    wb_put32(head + 42, far ? UINT32_MAX : (uint32_t)entry->offset);
    int err = put(z, head, CENTRAL_BYTES);
    if (err == 0)
        err = put(z, entry->name, name_bytes);
    return err == 0 && extra_bytes ? put(z, extra, extra_bytes) : err;
}

/* The end for a directory whose numbers need 64 bits, and the locator that points to it. */
static int put_end64(struct wb_zipwriter *z, uint64_t start, uint64_t bytes)
{
    uint8_t end[END64_BYTES + LOCATOR_BYTES] = {'P', 'K', 6, 6}, *locator = end + END64_BYTES;

    wb_put64(end + 4, END64_BYTES - 12);
    wb_put16(end + 12, VERSION64);
    wb_put16(end + 14, VERSION64);
    wb_put64(end + 24, z->entries.count);
    wb_put64(end + 32, z->entries.count);
    wb_put64(end + 40, bytes);
    wb_put64(end + 48, start);
    memcpy(locator, "PK\6\7", 4);
    wb_put64(locator + 8, start + bytes);
    wb_put32(locator + 16, 1);
    return put(z, end, sizeof end);
}

int wb_zipwriter_finish(struct wb_zipwriter *zip)
{
    uint8_t end[END_BYTES] = {'P', 'K', 5, 6};
    uint64_t start = zip->offset;
    int err = 0;

    WB_CHECK(zip->magic == ZIPWRITER_MAGIC);
    WB_CHECK(!zip->open && !zip->finished);
    zip->finished = true;
    for (size_t i = 0; err == 0 && i < zip->entries.count; i++)
        err = put_central(zip, &zip->entries.items[i]);
    uint64_t bytes = zip->offset - start;
    bool large = start >= UINT32_MAX || bytes >= UINT32_MAX || zip->entries.count >= UINT16_MAX;
    if (err == 0 && large)
        err = put_end64(zip, start, bytes);
    if (err < 0)
        return err;
    uint16_t count = zip->entries.count >= UINT16_MAX ? UINT16_MAX : (uint16_t)zip->entries.count;
    wb_put16(end + 8, count);
    wb_put16(end + 10, count);
    wb_put32(end + 12, bytes >= UINT32_MAX ? UINT32_MAX : (uint32_t)bytes);
    wb_put32(end + 16, start >= UINT32_MAX ? UINT32_MAX : (uint32_t)start);
    return put(zip, end, END_BYTES);
}
