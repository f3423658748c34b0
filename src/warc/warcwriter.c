/*
 * warcwriter.c - writes pages and revisits as WARC 1.1 records (docs/formats/warc.md).
 *
 * Makes the header of each record, with digests of the bytes that are really written; pack.c
 * compresses them. It never opens a file: the bytes go to the caller's sink.
 */
#include "warc/warc.h"

#include "base/check.h"
#include "base/codec.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/random.h"
#include "warc/pack.h"
#include "warc/xcrawl.h"

#include <inttypes.h>
#include <openssl/evp.h>

#define DIGEST_TEXT_MAX 40

#define WRITER_MAGIC 0x57525752u

struct wb_warc_writer {
    uint32_t magic; /* WRITER_MAGIC from new to free */
    struct wb_pack *pack;
    struct wb_buf header, http;
    const char *extra_name;      /* of a field that every record gets */
    struct wb_slice extra_value; /* empty: there is none */
    EVP_MD_CTX *sha1;
    char payload_digest[DIGEST_TEXT_MAX]; /* of the record that is being written */
    wb_warc_listener listener;
    void *listener_context;
};

int wb_warc_coding_of_name(const char *path, enum wb_warc_coding *coding_out)
{
    static const struct {
        struct wb_slice ending;
        enum wb_warc_coding coding;
    } endings[] = {
        {{".warc", 5}, WB_WARC_PLAIN},
        {{".warc.gz", 8}, WB_WARC_GZIP},
        {{".warc.zst", 9}, WB_WARC_ZSTD},
    };
    struct wb_slice name = wb_slice_str(path);

    *coding_out = WB_WARC_PLAIN;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        struct wb_slice end = endings[i].ending;
        if (name.len > end.len && wb_slice_ends_nocase(name, end)) {
            *coding_out = endings[i].coding;
            return 0;
        }
    }
    return wb_fail(WB_E_INVALID, "%s: an archive's name ends in .warc, .warc.gz or .warc.zst", path);
}

int wb_warc_writer_new(enum wb_warc_coding coding, wb_warc_sink sink, void *context, struct wb_warc_writer **writer_out)
{
    *writer_out = NULL;
    struct wb_warc_writer *w = wb_alloc_zero(1, sizeof *w);
    if (!w)
        return WB_E_NOMEM;
    w->magic = WRITER_MAGIC;
    int err = wb_pack_new(coding, sink, context, &w->pack);
    w->sha1 = EVP_MD_CTX_new();
    if (err == 0 && !w->sha1)
        err = wb_fail_nomem();
    if (err < 0) {
        wb_warc_writer_free(w);
        return err;
    }
    *writer_out = w;
    return 0;
}

void wb_warc_writer_free(struct wb_warc_writer *writer)
{
    if (!writer)
        return;
    WB_CHECK(writer->magic == WRITER_MAGIC);
    writer->magic = 0;
    wb_pack_free(writer->pack);
    wb_buf_release(&writer->header);
    wb_buf_release(&writer->http);
    EVP_MD_CTX_free(writer->sha1);
    wb_free(writer);
}

void wb_warc_writer_listen(struct wb_warc_writer *writer, wb_warc_listener listener, void *context)
{
    WB_CHECK(writer->magic == WRITER_MAGIC);
    writer->listener = listener;
    writer->listener_context = context;
}

/* Writes the parts of a page's record and tells the listener. */
static int write_record(struct wb_warc_writer *w, const struct wb_slice *parts, size_t count,
                        const struct wb_page *page, bool revisit)
{
    int err = wb_pack_write(w->pack, parts, count);

    return err == 0 && w->listener ? w->listener(w->listener_context, page, revisit, w->payload_digest) : err;
}

/* ---- pieces of a header ------------------------------------------------------------------- */

/* Writes "sha1:" and the digest, in base32, of two parts taken as one. */
static int digest_text(struct wb_warc_writer *w, struct wb_slice first, struct wb_slice second,
                       char text_out[DIGEST_TEXT_MAX])
{
    uint8_t digest[EVP_MAX_MD_SIZE];

    if (!EVP_DigestInit_ex(w->sha1, EVP_sha1(), NULL) || !EVP_DigestUpdate(w->sha1, first.ptr, first.len) ||
        !EVP_DigestUpdate(w->sha1, second.ptr, second.len) || !EVP_DigestFinal_ex(w->sha1, digest, NULL))
        return wb_fail_nomem();
    _Static_assert(5 + WB_SHA1_BYTES * 8 / 5 < DIGEST_TEXT_MAX, "\"sha1:\", 32 digits of base32 and a NUL fit");
    memcpy(text_out, "sha1:", 5);
    wb_base32_encode(digest, WB_SHA1_BYTES, text_out + 5);
    return 0;
}

/* The same for a page whose digest has been computed. */
static void known_digest(const struct wb_page *page, char text_out[DIGEST_TEXT_MAX])
{
    memcpy(text_out, "sha1:", 5);
    wb_base32_encode(page->sha1, WB_SHA1_BYTES, text_out + 5);
}

/* A random UUID (RFC 9562, version 4). */
static void uuid_text(char text_out[37])
{
    uint8_t b[16];
    char hex[33];

    wb_random_bytes(b, sizeof b);
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    wb_hex_encode(b, sizeof b, hex);
    static const uint8_t groups[] = {8, 4, 4, 4, 12};
    char *to = text_out;
    const char *from = hex;
    for (size_t i = 0; i < sizeof groups; i++) {
        memcpy(to, from, groups[i]);
        to += groups[i];
        from += groups[i];
        *to++ = '-';
    }
    to[-1] = '\0';
}

/* Writes the lines that every record starts with. */
static int start_header(struct wb_buf *h, const char *type, int64_t time_ms)
{
    char uuid[37], date[WB_DATE_TEXT_MAX];

    uuid_text(uuid);
    wb_date_format(time_ms, date);
    wb_buf_clear(h);
    return wb_buf_printf(h, "WARC/1.1\r\nWARC-Type: %s\r\nWARC-Record-ID: <urn:uuid:%s>\r\nWARC-Date: %s\r\n", type,
                         uuid, date);
}

/* Appends a named field; control characters become blanks, so that no value can end the line. */
static int add_field(struct wb_buf *h, const char *name, struct wb_slice value)
{
    int err = wb_buf_printf(h, "%s: ", name);

    if (err == 0)
        err = wb_buf_reserve(h, value.len + 2);
    if (err < 0)
        return err;
    for (size_t i = 0; i < value.len; i++)
        h->ptr[h->len++] = (unsigned char)value.ptr[i] < 0x20 ? ' ' : value.ptr[i];
    h->ptr[h->len++] = '\r';
    h->ptr[h->len++] = '\n';
    return 0;
}

void wb_warc_writer_extra(struct wb_warc_writer *writer, const char *name, struct wb_slice value)
{
    WB_CHECK(writer->magic == WRITER_MAGIC);
    writer->extra_name = name;
    writer->extra_value = value;
}

static int add_extra(struct wb_warc_writer *w)
{
    return w->extra_value.len ? add_field(&w->header, w->extra_name, w->extra_value) : 0;
}

/* ---- records -------------------------------------------------------------------------------- */

int wb_warc_write_info(struct wb_warc_writer *writer, const char *file_name, int64_t now_ms)
{
    static const struct wb_slice block =
        WB_SLICE_LIT("software: WebBase\r\nformat: WARC File Format 1.1\r\n"
                     "conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n");
    struct wb_buf *h = &writer->header;
    char digest[DIGEST_TEXT_MAX];
    int err = digest_text(writer, block, WB_SLICE_EMPTY, digest);

    if (err == 0)
        err = start_header(h, "warcinfo", now_ms);
    if (err == 0 && file_name)
        err = add_field(h, "WARC-Filename", wb_slice_str(file_name));
    if (err == 0)
        err = wb_buf_printf(
            h, "WARC-Block-Digest: %s\r\nContent-Type: application/warc-fields\r\nContent-Length: %zu\r\n\r\n", digest,
            block.len);
    if (err < 0)
        return err;
    struct wb_slice parts[] = {wb_buf_slice(h), block, WB_SLICE_LIT("\r\n\r\n")};
    return wb_pack_write(writer->pack, parts, 3);
}

/* Writes the media type of a resource together with its charset, so that a reader gets both back. */
static int add_resource_type(struct wb_buf *h, const struct wb_page *page)
{
    if (page->type.len == 0)
        return 0;
    if (page->charset.len == 0)
        return add_field(h, "Content-Type", page->type);
    int err = add_field(h, "Content-Type", page->type);
    if (err < 0)
        return err;
    h->len -= 2;
    return wb_buf_printf(h, "; charset=%.*s\r\n", WB_SLICE_ARG(page->charset));
}

static int page_header(struct wb_warc_writer *w, const struct wb_page *page)
{
    struct wb_buf *h = &w->header;
    struct wb_slice http = wb_buf_slice(&w->http);
    bool response = page->kind == WB_PAGE_RESPONSE;
    char block_digest[DIGEST_TEXT_MAX];
    int err = digest_text(w, http, page->body, block_digest);

    if (page->digested)
        known_digest(page, w->payload_digest);
    else if (err == 0)
        err = digest_text(w, page->body, WB_SLICE_EMPTY, w->payload_digest);
    if (err == 0)
        err = start_header(h, response ? "response" : "resource", page->time_ms);
    if (err == 0)
        err = add_field(h, "WARC-Target-URI", page->url);
    if (err == 0)
        err = wb_buf_printf(h, "WARC-Block-Digest: %s\r\nWARC-Payload-Digest: %s\r\n", block_digest, w->payload_digest);
    if (err == 0 && page->truncated)
        err = wb_buf_append_str(h, "WARC-Truncated: length\r\n");
    if (err == 0 && response)
        err = wb_buf_append_str(h, "Content-Type: application/http; msgtype=response\r\n");
    if (err == 0 && !response)
        err = add_resource_type(h, page);
    if (err == 0)
        err = add_extra(w);
    if (err == 0)
        err = wb_buf_printf(h, "Content-Length: %zu\r\n\r\n", http.len + page->body.len);
    return err;
}

int wb_warc_write_page(struct wb_warc_writer *writer, const struct wb_page *page)
{
    int err = 0;

    WB_CHECK(writer->magic == WRITER_MAGIC);
    WB_CHECK(page->kind == WB_PAGE_RESPONSE || page->kind == WB_PAGE_RESOURCE);
    wb_buf_clear(&writer->http);
    if (page->kind == WB_PAGE_RESPONSE) {
        err = wb_xcrawl_write(page->head, page->body.len, &writer->http);
        if (err == 0)
            err = wb_buf_append_str(&writer->http, "\r\n");
    }
    if (err == 0)
        err = page_header(writer, page);
    if (err < 0)
        return err;
    struct wb_slice parts[] = {wb_buf_slice(&writer->header), wb_buf_slice(&writer->http), page->body,
                               WB_SLICE_LIT("\r\n\r\n")};
    return write_record(writer, parts, 4, page, false);
}

/* The profile of WARC 1.1 for "the payload is the same, as its digest shows" (ISO 28500:2017, 6.7.2). */
#define REVISIT_PROFILE "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"

int wb_warc_write_revisit(struct wb_warc_writer *writer, const struct wb_page *page, int64_t original_ms)
{
    struct wb_buf *h = &writer->header;
    char block_digest[DIGEST_TEXT_MAX], original[WB_DATE_TEXT_MAX];

    WB_CHECK(writer->magic == WRITER_MAGIC);
    WB_CHECK(page->digested);
    known_digest(page, writer->payload_digest);
    wb_date_format(original_ms, original);
    int err = digest_text(writer, WB_SLICE_EMPTY, WB_SLICE_EMPTY, block_digest);
    if (err == 0)
        err = start_header(h, "revisit", page->time_ms);
    if (err == 0)
        err = add_field(h, "WARC-Target-URI", page->url);
    if (err == 0)
        err = wb_buf_append_str(h, "WARC-Profile: " REVISIT_PROFILE "\r\n");
    if (err == 0)
        err = add_field(h, "WARC-Refers-To-Target-URI", page->url);
    if (err == 0)
        err = add_extra(writer);
    if (err == 0)
        err = wb_buf_printf(h, "WARC-Refers-To-Date: %s\r\nWARC-Block-Digest: %s\r\nWARC-Payload-Digest: %s\r\n"
                            "Content-Length: 0\r\n\r\n", original, block_digest, writer->payload_digest);
    if (err < 0)
        return err;
    struct wb_slice parts[] = {wb_buf_slice(h), WB_SLICE_LIT("\r\n\r\n")};
    return write_record(writer, parts, 2, page, true);
}

int wb_warc_write_text(struct wb_warc_writer *writer, const struct wb_page *page, struct wb_slice text)
{
    struct wb_buf *h = &writer->header;
    char digest[DIGEST_TEXT_MAX];

    WB_CHECK(writer->magic == WRITER_MAGIC);
    WB_CHECK(page->url.len > 0);
    int err = digest_text(writer, text, WB_SLICE_EMPTY, digest);
    if (err == 0)
        err = start_header(h, "conversion", page->time_ms);
    if (err == 0)
        err = add_field(h, "WARC-Target-URI", page->url);
    if (err == 0)
        err = add_extra(writer);
    if (err == 0)
        err = wb_buf_printf(h, "WARC-Block-Digest: %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n",
                            digest, text.len);
    if (err < 0)
        return err;
    struct wb_slice parts[] = {wb_buf_slice(h), text, WB_SLICE_LIT("\r\n\r\n")};
    return wb_pack_write(writer->pack, parts, 3);
}
