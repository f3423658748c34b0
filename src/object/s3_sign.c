/*
 * s3_sign.c - AWS Signature Version 4, from Amazon's description ("Signature Calculations for the Authorization
 * Header").
 *
 *   canonical request   method, path, query, fields with values, names of the fields, SHA-256 of the body; one a line
 *   text to sign        AWS4-HMAC-SHA256, date, scope, SHA-256 of the canonical request; one a line
 *   scope               YYYYMMDD/region/s3/aws4_request
 *   signing key         HMAC(HMAC(HMAC(HMAC("AWS4" + secret, YYYYMMDD), region), "s3"), "aws4_request")
 *   signature           HMAC(signing key, text to sign), in hexadecimal
 *
 * It knows nothing of requests but these parts. The secret key and what is derived from it are wiped from memory after
 * use.
 */
#include "object/s3_sign.h"
#include "base/check.h"
#include "base/codec.h"
#include "base/date.h"
#include "base/error.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

enum { HASH_BYTES = 32, DAY_CHARS = 8, SECRET_MAX = 512 };

void wb_s3_date_format(int64_t time_ms, char text_out[WB_S3_DATE_MAX])
{
    char date[WB_DATE_TEXT_MAX]; /* 2026-01-02T03:04:05.678Z */

    wb_date_format(time_ms, date);
    snprintf(text_out, WB_S3_DATE_MAX, "%.4s%.2s%.2sT%.2s%.2s%.2sZ", date, date + 5, date + 8, date + 11, date + 14,
             date + 17);
}

int wb_s3_sha256(struct wb_slice bytes, char hex_out[WB_S3_SHA256_HEX])
{
    unsigned char hash[HASH_BYTES];
    unsigned len = 0;

    *hex_out = '\0';
    if (EVP_Digest(bytes.ptr, bytes.len, hash, &len, EVP_sha256(), NULL) != 1 || len != sizeof hash)
        return wb_fail(WB_E_NOMEM, "OpenSSL could not compute a SHA-256");
    wb_hex_encode(hash, sizeof hash, hex_out);
    return 0;
}

int wb_s3_encode(struct wb_slice text, bool slashes, struct wb_buf *out)
{
    return wb_buf_append_escaped(out, text, slashes ? "-_.~/" : "-_.~");
}

static int append_names(const struct wb_s3_signing *s, struct wb_buf *out)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < s->field_count; i++)
        err = wb_buf_printf(out, "%s%s", i ? ";" : "", s->fields[i].name);
    return err;
}

static int append_canonical(const struct wb_s3_signing *s, struct wb_buf *out)
{
    int err = wb_buf_printf(out, "%s\n%s\n%s\n", s->method, s->path, s->query);

    for (size_t i = 0; err == 0 && i < s->field_count; i++) {
        WB_CHECK(i == 0 || strcmp(s->fields[i - 1].name, s->fields[i].name) < 0);
        err = wb_buf_printf(out, "%s:%s\n", s->fields[i].name, s->fields[i].value);
    }
    if (err == 0)
        err = wb_buf_append_char(out, '\n');
    if (err == 0)
        err = append_names(s, out);
    return err == 0 ? wb_buf_printf(out, "\n%s", s->payload) : err;
}

static int authenticate(const void *key, size_t key_len, struct wb_slice text, unsigned char hash_out[HASH_BYTES])
{
    unsigned len = 0;

    if (!HMAC(EVP_sha256(), key, (int)key_len, (const unsigned char *)text.ptr, text.len, hash_out, &len) ||
        len != HASH_BYTES)
        return wb_fail(WB_E_NOMEM, "OpenSSL could not compute an HMAC");
    return 0;
}

/* The key that signs everything of one day, in one region. */
static int derive_key(const struct wb_s3_signing *s, unsigned char key_out[HASH_BYTES])
{
    struct wb_slice parts[] = {wb_slice(s->date, DAY_CHARS), wb_slice_str(s->region), WB_SLICE_LIT("s3"),
                               WB_SLICE_LIT("aws4_request")};
    char first[sizeof "AWS4" + SECRET_MAX];
    int len = snprintf(first, sizeof first, "AWS4%s", s->secret), err;

    WB_CHECK(len > 0 && (size_t)len < sizeof first);
    err = authenticate(first, (size_t)len, parts[0], key_out);
    for (size_t i = 1; err == 0 && i < sizeof parts / sizeof *parts; i++) {
        unsigned char next[HASH_BYTES];
        err = authenticate(key_out, HASH_BYTES, parts[i], next);
        memcpy(key_out, next, HASH_BYTES);
        OPENSSL_cleanse(next, sizeof next);
    }
    OPENSSL_cleanse(first, sizeof first);
    return err;
}

int wb_s3_sign(const struct wb_s3_signing *s, struct wb_buf *out)
{
    struct wb_buf text = WB_BUF_INIT;
    unsigned char key[HASH_BYTES] = {0}, hash[HASH_BYTES];
    char hex[WB_S3_SHA256_HEX];
    int err;

    WB_CHECK(strlen(s->date) == WB_S3_DATE_MAX - 1);
    err = append_canonical(s, &text);
    if (err == 0)
        err = wb_s3_sha256(wb_buf_slice(&text), hex);
    wb_buf_clear(&text);
    if (err == 0)
        err = wb_buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n%.*s/%s/s3/aws4_request\n%s", s->date, DAY_CHARS, s->date,
                            s->region, hex);
    if (err == 0)
        err = derive_key(s, key);
    if (err == 0)
        err = authenticate(key, sizeof key, wb_buf_slice(&text), hash);
    if (err == 0) {
        wb_hex_encode(hash, sizeof hash, hex);
        err = wb_buf_printf(out, "AWS4-HMAC-SHA256 Credential=%s/%.*s/%s/s3/aws4_request,SignedHeaders=", s->access,
                            DAY_CHARS, s->date, s->region);
    }
    if (err == 0)
        err = append_names(s, out);
    if (err == 0)
        err = wb_buf_printf(out, ",Signature=%s", hex);
    OPENSSL_cleanse(key, sizeof key);
    wb_buf_release(&text);
    return err;
}
