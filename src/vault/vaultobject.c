/*
 * vaultobject.c - writes and reads the frame that every object of a vault has (vaultobject.h draws it), and names.
 *
 * An object is valid if and only if its head is as drawn, the checksum matches, nothing follows the stored bytes, and
 * they give exactly as many bytes as the head says.
 */
#include "vault/vaultobject.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <zstd.h>

#define MARK "WBVAULT1"

enum {
    KIND_AT = 8,
    CODEC_AT = 9,
    ZERO_AT = 10,
    CONTENTS_AT = 16,
    STORED_AT = 24,
    CHECK_AT = 32,
    LEVEL = 3,
    CODEC_NONE = 0,
    CODEC_ZSTD = 1,
};
_Static_assert(CHECK_AT + 8 == WB_VAULT_OBJECT_HEAD, "the head as drawn");
_Static_assert(sizeof MARK == KIND_AT + 1, "the mark has eight characters");

/* ---- names --------------------------------------------------------------------------------------------------- */

void wb_vault_object_name(const char *folder, const struct wb_vault_object *object, char name_out[WB_OBJECT_NAME_MAX])
{
    WB_CHECK(wb_vault_object_is_one(object));
    snprintf(name_out, WB_OBJECT_NAME_MAX, "%s%016" PRIx64 "-%08" PRIx32, folder, object->run, object->count);
}

/* Lower-case digits only, so that a number has one spelling. */
static bool take_digits(struct wb_slice *text, unsigned digits, uint64_t *number_out)
{
    *number_out = 0;
    if (text->len < digits)
        return false;
    for (unsigned i = 0; i < digits; i++) {
        char c = text->ptr[i];
        if (wb_hex_digit(c) < 0 || (c >= 'A' && c <= 'F'))
            return false;
        *number_out = *number_out << 4 | (uint64_t)wb_hex_digit(c);
    }
    text->ptr += digits;
    text->len -= digits;
    return true;
}

bool wb_vault_object_parse(struct wb_slice name, bool *shipment_out, struct wb_vault_object *object_out)
{
    const struct wb_slice shipments = WB_SLICE_LIT(WB_VAULT_SHIPMENTS), objects = WB_SLICE_LIT(WB_VAULT_OBJECTS);
    uint64_t count;

    *object_out = (struct wb_vault_object){.run = 0};
    *shipment_out = wb_slice_starts(name, shipments);
    if (!*shipment_out && !wb_slice_starts(name, objects))
        return false;
    size_t folder = *shipment_out ? shipments.len : objects.len;
    struct wb_slice rest = {name.ptr + folder, name.len - folder};
    if (!take_digits(&rest, WB_VAULT_RUN_DIGITS, &object_out->run) || rest.len == 0 || *rest.ptr != '-')
        return false;
    rest.ptr++;
    rest.len--;
    if (!take_digits(&rest, WB_VAULT_COUNT_DIGITS, &count) || rest.len != 0 || count == 0)
        return false;
    object_out->count = (uint32_t)count;
    return true;
}

char *wb_vault_object_put(char *p, const struct wb_vault_object *object)
{
    WB_CHECK(wb_vault_object_is_one(object) && object->stored >= WB_VAULT_OBJECT_HEAD);
    wb_put64(p, object->run);
    wb_put32(p + 8, object->count);
    wb_put32(p + 12, object->stored);
    wb_put64(p + 16, object->hash[0]);
    wb_put64(p + 24, object->hash[1]);
    return p + WB_VAULT_OBJECT_REFERENCE;
}

bool wb_vault_object_take(const char *p, struct wb_vault_object *object_out)
{
    *object_out = (struct wb_vault_object){
        .run = wb_get64(p),
        .count = wb_get32(p + 8),
        .stored = wb_get32(p + 12),
        .hash = {wb_get64(p + 16), wb_get64(p + 24)},
    };
    return object_out->count > 0 && object_out->stored >= WB_VAULT_OBJECT_HEAD && object_out->stored <= WB_OBJECT_MAX;
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

static uint64_t check_of(const char *object, size_t stored)
{
    return wb_hash64_seeded(object + WB_VAULT_OBJECT_HEAD, stored, wb_hash64(object, CHECK_AT));
}

/* Appends the contents, compressed if that is asked for and makes them shorter. */
static int append_contents(struct wb_slice contents, bool compress, struct wb_buf *bytes, uint8_t *codec_out)
{
    *codec_out = CODEC_NONE;
    if (compress && contents.len > 0) {
        size_t bound = ZSTD_compressBound(contents.len);
        if (wb_buf_reserve(bytes, bound) < 0)
            return WB_E_NOMEM;
        size_t packed = ZSTD_compress(bytes->ptr + bytes->len, bound, contents.ptr, contents.len, LEVEL);
        if (ZSTD_isError(packed))
            return wb_fail_nomem(); /* nothing else can go wrong with a buffer of this size */
        if (packed < contents.len) {
            *codec_out = CODEC_ZSTD;
            bytes->len += packed;
            return 0;
        }
    }
    return wb_buf_append_slice(bytes, contents);
}

/* Fills in the head. */
static void seal(enum wb_vault_kind kind, uint8_t codec, size_t contents, struct wb_buf *bytes,
                 struct wb_vault_object *object)
{
    char *p = bytes->ptr;
    size_t stored = bytes->len - WB_VAULT_OBJECT_HEAD;

    WB_CHECK(bytes->len >= WB_VAULT_OBJECT_HEAD && bytes->len <= WB_OBJECT_MAX);
    WB_CHECK(kind >= WB_VAULT_BYTES && kind <= WB_VAULT_HEAD);
    memset(p, 0, WB_VAULT_OBJECT_HEAD);
    memcpy(p, MARK, KIND_AT);
    p[KIND_AT] = (char)kind;
    p[CODEC_AT] = (char)codec;
    wb_put64(p + CONTENTS_AT, contents);
    wb_put64(p + STORED_AT, stored);
    wb_put64(p + CHECK_AT, check_of(p, stored));
    object->stored = (uint32_t)bytes->len;
    wb_hash128(p, bytes->len, &object->hash[0], &object->hash[1]);
}

void wb_vault_object_seal(enum wb_vault_kind kind, struct wb_buf *bytes, struct wb_vault_object *object)
{
    seal(kind, CODEC_NONE, bytes->len - WB_VAULT_OBJECT_HEAD, bytes, object);
}

int wb_vault_object_pack(enum wb_vault_kind kind, struct wb_slice contents, bool compress, struct wb_buf *bytes_out,
                         struct wb_vault_object *object)
{
    const char head[WB_VAULT_OBJECT_HEAD] = {0};
    uint8_t codec;

    WB_CHECK(contents.len <= WB_VAULT_CONTENTS_MAX);
    wb_buf_clear(bytes_out);
    if (wb_buf_append(bytes_out, head, sizeof head) < 0)
        return WB_E_NOMEM;
    int err = append_contents(contents, compress, bytes_out, &codec);
    if (err == 0)
        seal(kind, codec, contents.len, bytes_out, object);
    return err;
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

bool wb_vault_object_fits(const struct wb_vault_object *object, struct wb_slice bytes)
{
    uint64_t hi, lo;

    if (bytes.len != object->stored)
        return false;
    wb_hash128(bytes.ptr, bytes.len, &hi, &lo);
    return hi == object->hash[0] && lo == object->hash[1];
}

/* What the head says fits what is there. */
static int check_head(const char *name, enum wb_vault_kind kind, struct wb_slice bytes)
{
    const char *p = bytes.ptr;
    unsigned format = bytes.len >= WB_VAULT_OBJECT_HEAD ? wb_mark_format(p, MARK) : 0;

    if (format == 0 || wb_get64(p + STORED_AT) != bytes.len - WB_VAULT_OBJECT_HEAD)
        return wb_fail(WB_E_CORRUPT, "%s is not an object of a vault, or was cut short", name);
    if (wb_get64(p + CHECK_AT) != check_of(p, bytes.len - WB_VAULT_OBJECT_HEAD))
        return wb_fail(WB_E_CORRUPT, "%s: the checksum does not match", name);
    if (format != 1)
        return wb_fail_format(name, format, 1);
    for (size_t i = ZERO_AT; i < CONTENTS_AT; i++)
        if (p[i] != 0)
            return wb_fail(WB_E_CORRUPT, "%s: its head is malformed", name);
    if ((uint8_t)p[KIND_AT] != kind)
        return wb_fail(WB_E_CORRUPT, "%s is an object of another kind", name);
    if (wb_get64(p + CONTENTS_AT) > WB_VAULT_CONTENTS_MAX)
        return wb_fail(WB_E_CORRUPT, "%s claims to have more bytes than any object", name);
    return 0;
}

int wb_vault_object_unpack(const char *name, enum wb_vault_kind kind, struct wb_slice bytes, struct wb_buf *mem,
                           struct wb_slice *contents_out)
{
    *contents_out = WB_SLICE_EMPTY;
    if (bytes.len > WB_OBJECT_MAX)
        return wb_fail(WB_E_CORRUPT, "%s is larger than any object", name);
    int err = check_head(name, kind, bytes);
    if (err < 0)
        return err;
    struct wb_slice stored = {bytes.ptr + WB_VAULT_OBJECT_HEAD, bytes.len - WB_VAULT_OBJECT_HEAD};
    size_t len = (size_t)wb_get64(bytes.ptr + CONTENTS_AT);
    switch ((uint8_t)bytes.ptr[CODEC_AT]) {
    case CODEC_NONE:
        if (len != stored.len)
            return wb_fail(WB_E_CORRUPT, "%s: its lengths contradict each other", name);
        *contents_out = stored;
        return 0;
    case CODEC_ZSTD:
        wb_buf_clear(mem);
        if (wb_buf_reserve(mem, len + 1) < 0)
            return WB_E_NOMEM;
        if (ZSTD_decompress(mem->ptr, len, stored.ptr, stored.len) != len)
            return wb_fail(WB_E_CORRUPT, "%s cannot be decompressed", name);
        mem->len = len;
        *contents_out = wb_buf_slice(mem);
        return 0;
    default:
        return wb_fail(WB_E_CORRUPT, "%s: its head is malformed", name);
    }
}
