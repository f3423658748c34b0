/*
 * record.c - the page record as bytes, which a store keeps in compressed blocks.
 *
 *   at  bytes
 *   0   16 MD5 of body
 *   16  20 SHA-1 of body
 *   36  1  format, 1
 *   37  1  kind: 1 response, 2 resource
 *   38  2  status
 *   40  1  flags: 1 truncated, 2 payload digest follows, 4 key is part of url, 8 digested
 *   41  3  zero
 *   44  8  time, milliseconds since 1970
 *   52  4  allowed lifetime in days
 *   56  20 the payload digest that the archive gave; only with flag 2
 *       varints: the lengths of url, key (with flag 4, its offset in url comes before it),
 *                head, type, charset and body
 *       url, key (not with flag 4), head, type, charset, body
 *
 * Numbers are little-endian. A record is valid if and only if format, kind and flags are known,
 * the lengths add up to exactly its length, and with flag 4 the key is inside the url. The id is
 * not stored, because it is the hash of the key.
 *
 * This file never parses a URL: the page comes with both its url and its key.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/format.h"
#include "base/mem.h"
#include "page/digest.h"

#include <stdlib.h>

enum {
    RECORD_FORMAT = 1,
    FIXED_BYTES = 56,
    MD5_AT = 0,
    SHA1_AT = 16,
    FORMAT_AT = 36,
    KIND_AT = 37,
    STATUS_AT = 38,
    FLAGS_AT = 40,
    TIME_AT = 44,
    LIFETIME_AT = 52,
};

enum {
    FLAG_TRUNCATED = 1,
    FLAG_PAYLOAD_SHA1 = 2,
    FLAG_KEY_IN_URL = 4,
    FLAG_DIGESTED = 8,
    FLAGS_KNOWN = 15,
};

_Static_assert(SHA1_AT + WB_SHA1_BYTES == WB_RECORD_DIGEST_BYTES, "the digests come first...");
_Static_assert(FORMAT_AT == WB_RECORD_DIGEST_BYTES, "...and the format directly after them");
_Static_assert(MD5_AT + WB_MD5_BYTES == SHA1_AT, "the MD5 is followed by the SHA-1");
_Static_assert(KIND_AT == FORMAT_AT + 1 && STATUS_AT == KIND_AT + 1 && FLAGS_AT == STATUS_AT + 2, "without gaps");
_Static_assert(TIME_AT == FLAGS_AT + 4 && LIFETIME_AT == TIME_AT + 8, "three bytes of zero follow the flags");
_Static_assert(LIFETIME_AT + 4 == FIXED_BYTES, "the lifetime ends the fixed part");
_Static_assert(FLAGS_KNOWN == (FLAG_TRUNCATED | FLAG_PAYLOAD_SHA1 | FLAG_KEY_IN_URL | FLAG_DIGESTED), "all flags");

/* Finds the key in the url. It is nearly always there, because most URLs are "https://" + key. */
static bool find_key(struct wb_slice url, struct wb_slice key, size_t *at_out)
{
    const char *found = key.len ? memmem(url.ptr, url.len, key.ptr, key.len) : NULL;

    *at_out = found ? (size_t)(found - url.ptr) : 0;
    return found != NULL;
}

static void put_fixed(const struct wb_page *page, uint8_t flags, char *to)
{
    memset(to, 0, FIXED_BYTES);
    to[FORMAT_AT] = RECORD_FORMAT;
    to[KIND_AT] = (char)page->kind;
    wb_put16(to + STATUS_AT, page->status);
    to[FLAGS_AT] = (char)flags;
    wb_put64(to + TIME_AT, (uint64_t)page->time_ms);
    wb_put32(to + LIFETIME_AT, page->lifetime);
    memcpy(to + MD5_AT, page->md5, WB_MD5_BYTES);
    memcpy(to + SHA1_AT, page->sha1, WB_SHA1_BYTES);
}

int wb_page_encode(const struct wb_page *page, struct wb_buf *record_out)
{
    size_t key_at,
        text = page->url.len + page->key.len + page->head.len + page->type.len + page->charset.len + page->body.len;
    bool key_in_url = find_key(page->url, page->key, &key_at);
    uint8_t flags =
        (uint8_t)((page->truncated ? FLAG_TRUNCATED : 0) | (page->has_payload_sha1 ? FLAG_PAYLOAD_SHA1 : 0) |
                  (key_in_url ? FLAG_KEY_IN_URL : 0) | (page->digested ? FLAG_DIGESTED : 0));
    char varints[7 * WB_VARINT_MAX];
    size_t n = 0;
    int err;

    WB_CHECK(page->kind == WB_PAGE_RESPONSE || page->kind == WB_PAGE_RESOURCE);
    err = wb_buf_reserve(record_out, FIXED_BYTES + WB_SHA1_BYTES + sizeof varints + text);
    if (err < 0)
        return err;
    put_fixed(page, flags, record_out->ptr + record_out->len);
    record_out->len += FIXED_BYTES;
    if (page->has_payload_sha1)
        wb_buf_append(record_out, page->payload_sha1, WB_SHA1_BYTES);
    n += wb_put_varint(varints + n, page->url.len);
    if (key_in_url)
        n += wb_put_varint(varints + n, key_at);
    n += wb_put_varint(varints + n, page->key.len);
    n += wb_put_varint(varints + n, page->head.len);
    n += wb_put_varint(varints + n, page->type.len);
    n += wb_put_varint(varints + n, page->charset.len);
    n += wb_put_varint(varints + n, page->body.len);
    WB_CHECK(n <= sizeof varints);
    wb_buf_append(record_out, varints, n); /* none of these fails: the room is reserved */
    wb_buf_append_slice(record_out, page->url);
    if (!key_in_url)
        wb_buf_append_slice(record_out, page->key);
    wb_buf_append_slice(record_out, page->head);
    wb_buf_append_slice(record_out, page->type);
    wb_buf_append_slice(record_out, page->charset);
    return wb_buf_append_slice(record_out, page->body);
}

/* Reads the fixed part, whose digests may be stored apart from the rest of it. */
static void get_fixed(const char *digests, const char *rest, struct wb_page *page_out)
{
    uint8_t flags = (uint8_t)rest[FLAGS_AT - WB_RECORD_DIGEST_BYTES];

    page_out->kind = (uint8_t)rest[KIND_AT - WB_RECORD_DIGEST_BYTES];
    page_out->status = wb_get16(rest + STATUS_AT - WB_RECORD_DIGEST_BYTES);
    page_out->truncated = flags & FLAG_TRUNCATED;
    page_out->digested = flags & FLAG_DIGESTED;
    page_out->has_payload_sha1 = flags & FLAG_PAYLOAD_SHA1;
    page_out->time_ms = (int64_t)wb_get64(rest + TIME_AT - WB_RECORD_DIGEST_BYTES);
    page_out->lifetime = wb_get32(rest + LIFETIME_AT - WB_RECORD_DIGEST_BYTES);
    page_out->lifetime_count = page_out->lifetime;
    memcpy(page_out->md5, digests + MD5_AT, WB_MD5_BYTES);
    memcpy(page_out->sha1, digests + SHA1_AT, WB_SHA1_BYTES);
}

static bool fixed_is_known(const char *rest)
{
    uint8_t kind = (uint8_t)rest[KIND_AT - WB_RECORD_DIGEST_BYTES],
            flags = (uint8_t)rest[FLAGS_AT - WB_RECORD_DIGEST_BYTES];

    return (flags & ~FLAGS_KNOWN) == 0 && (kind == WB_PAGE_RESPONSE || kind == WB_PAGE_RESOURCE);
}

/* Reads everything before the body. Returns the length that the body should have in *body_len_out. */
static int decode_head(const char *digests, struct wb_fields *c, struct wb_page *page_out, uint64_t *body_len_out)
{
    struct wb_slice fixed = wb_fields_take_slice(c, FIXED_BYTES - WB_RECORD_DIGEST_BYTES);

    *page_out = (struct wb_page){0};
    *body_len_out = 0;
    uint8_t format = c->ok ? (uint8_t)fixed.ptr[FORMAT_AT - WB_RECORD_DIGEST_BYTES] : RECORD_FORMAT;
    if (format != RECORD_FORMAT)
        return wb_fail_format("the page record", format, RECORD_FORMAT);
    if (!c->ok || !fixed_is_known(fixed.ptr))
        return wb_fail(WB_E_CORRUPT, "not a page record");
    uint8_t flags = (uint8_t)fixed.ptr[FLAGS_AT - WB_RECORD_DIGEST_BYTES];
    get_fixed(digests, fixed.ptr, page_out);
    if (page_out->has_payload_sha1) {
        struct wb_slice given = wb_fields_take_slice(c, WB_SHA1_BYTES);
        memcpy(page_out->payload_sha1, given.ptr, given.len);
    }
    uint64_t url_len = wb_fields_take(c, UINT64_MAX);
    uint64_t key_at = flags & FLAG_KEY_IN_URL ? wb_fields_take(c, UINT64_MAX) : 0;
    uint64_t key_len = wb_fields_take(c, UINT64_MAX);
    uint64_t head_len = wb_fields_take(c, UINT64_MAX);
    uint64_t type_len = wb_fields_take(c, UINT64_MAX);
    uint64_t charset_len = wb_fields_take(c, UINT64_MAX);
    *body_len_out = wb_fields_take(c, UINT64_MAX);
    page_out->url = wb_fields_take_slice(c, url_len);
    if (flags & FLAG_KEY_IN_URL) {
        c->ok = c->ok && key_at <= url_len && key_len <= url_len - key_at;
        page_out->key = c->ok ? wb_slice(page_out->url.ptr + key_at, (size_t)key_len) : WB_SLICE_EMPTY;
    } else {
        page_out->key = wb_fields_take_slice(c, key_len);
    }
    page_out->head = wb_fields_take_slice(c, head_len);
    page_out->type = wb_fields_take_slice(c, type_len);
    page_out->charset = wb_fields_take_slice(c, charset_len);
    return 0;
}

static int bad_lengths(void)
{
    return wb_fail(WB_E_CORRUPT, "the lengths in a page record do not add up");
}

int wb_page_decode(struct wb_slice bytes, struct wb_page *page_out)
{
    *page_out = (struct wb_page){0};
    if (bytes.len < WB_RECORD_DIGEST_BYTES)
        return wb_fail(WB_E_CORRUPT, "not a page record");
    struct wb_fields c = wb_fields_of(wb_slice(bytes.ptr + WB_RECORD_DIGEST_BYTES, bytes.len - WB_RECORD_DIGEST_BYTES));
    uint64_t body_len;
    int err = decode_head(bytes.ptr, &c, page_out, &body_len);
    if (err < 0)
        return err;
    page_out->body = wb_fields_take_slice(&c, body_len);
    page_out->body_bytes = page_out->body.len;
    return c.ok && c.at == c.end ? 0 : bad_lengths();
}

int wb_page_decode_head(const char *digests, struct wb_slice head, uint64_t body_bytes, struct wb_page *page_out)
{
    struct wb_fields c = wb_fields_of(head);
    uint64_t body_len;
    int err = decode_head(digests, &c, page_out, &body_len);

    if (err < 0)
        return err;
    page_out->body_bytes = body_bytes;
    return c.ok && c.at == c.end && body_len == body_bytes ? 0 : bad_lengths();
}

static int compare_lengths(const void *a, const void *b, void *context)
{
    const struct wb_record_digest *records = context;
    size_t x = records[*(const size_t *)a].body_bytes, y = records[*(const size_t *)b].body_bytes;

    return x > y ? -1 : x < y;
}

/*
 * Collects the bodies that have no digests yet, and the numbers of their records. The longest comes
 * first, so that at the end no long one is left to be digested alone.
 */
static size_t undigested(const struct wb_record_digest *records, size_t count, struct wb_slice *bodies, size_t *which)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        const struct wb_record_digest *r = &records[i];
        WB_CHECK(r->record_bytes >= FIXED_BYTES && r->body_bytes <= r->record_bytes - FIXED_BYTES);
        if (!(r->record[FLAGS_AT] & FLAG_DIGESTED))
            which[n++] = i;
    }
    qsort_r(which, n, sizeof *which, compare_lengths, (void *)(uintptr_t)records);
    for (size_t i = 0; i < n; i++) {
        const struct wb_record_digest *r = &records[which[i]];
        /* A record ends with its body. */
        bodies[i] = wb_slice(r->record + r->record_bytes - r->body_bytes, r->body_bytes);
    }
    return n;
}

int wb_page_record_digest(const struct wb_record_digest *records, size_t count)
{
    struct wb_slice *bodies = wb_alloc(count * sizeof *bodies);
    size_t *which = wb_alloc(count * sizeof *which);
    uint8_t(*md5s)[WB_MD5_BYTES] = wb_alloc(count * sizeof *md5s);
    uint8_t(*sha1s)[WB_SHA1_BYTES] = wb_alloc(count * sizeof *sha1s);
    int err = bodies && which && md5s && sha1s ? 0 : WB_E_NOMEM;

    if (err == 0) {
        size_t n = undigested(records, count, bodies, which);
        wb_digest_many(bodies, n, md5s, sha1s);
        for (size_t i = 0; i < n; i++) {
            char *record = records[which[i]].record;
            memcpy(record + MD5_AT, md5s[i], WB_MD5_BYTES);
            memcpy(record + SHA1_AT, sha1s[i], WB_SHA1_BYTES);
            record[FLAGS_AT] = (char)(record[FLAGS_AT] | FLAG_DIGESTED);
        }
    }
    wb_free(bodies);
    wb_free(which);
    wb_free(md5s);
    wb_free(sha1s);
    return err;
}
