/*
 * decode.c - converts bytes in any encoding of the Encoding standard to UTF-8.
 *
 * Well-formed UTF-8 is recognised at the speed of memory and never copied. Malformed UTF-8 is
 * repaired as the standard says: each maximal subpart becomes one U+FFFD. Single-byte encodings use
 * our tables; the others use ICU's converters, which each thread opens once and keeps. It never
 * decides which encoding the bytes are in (charset.c), and never writes more than the limit.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "markup/charset.h"

#include <pthread.h>
#include <unicode/ucnv.h>
#include <unicode/ucnv_cb.h>

enum { CHUNK = 16 << 10, CONVERTERS = 8 };

#define HIGH_BITS UINT64_C(0x8080808080808080)

static inline uint64_t load64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

size_t wb_decode_ascii_prefix(const char *p, size_t len)
{
    size_t i = 0;

    for (; i + 64 <= len; i += 64) {
        uint64_t any = 0;
        for (size_t k = 0; k < 64; k += 8)
            any |= load64(p + i + k);
        if (any & HIGH_BITS)
            break;
    }
    while (i + 8 <= len && !(load64(p + i) & HIGH_BITS))
        i += 8;
    while (i < len && (uint8_t)p[i] < 0x80)
        i++;
    return i;
}

/* Text that is not ASCII mostly consists of 2- and 3-byte sequences, so those are checked without a call. */
size_t wb_decode_utf8_prefix(const char *p, size_t len)
{
    size_t i = 0;

    while (i < len) {
        uint8_t a = (uint8_t)p[i];
        if (a < 0x80) {
            if (i + 8 <= len && !(load64(p + i) & HIGH_BITS))
                i += wb_decode_ascii_prefix(p + i, len - i);
            else
                i++;
            continue;
        }
        if (a >= 0xc2 && a <= 0xdf && len - i >= 2 && (p[i + 1] & 0xc0) == 0x80) {
            i += 2;
            continue;
        }
        if (a >= 0xe1 && a <= 0xec && len - i >= 3 && (p[i + 1] & 0xc0) == 0x80 && (p[i + 2] & 0xc0) == 0x80) {
            i += 3;
            continue;
        }
        size_t n = wb_utf8_length(p + i, len - i);
        if (n == 0)
            break;
        i += n;
    }
    return i;
}

/* ---- UTF-8 --------------------------------------------------------------------------- */

/* Returns the length up to limit, without a character that the limit would cut. */
static size_t cut_at(const char *p, size_t len, size_t limit)
{
    if (len <= limit)
        return len;
    size_t at = limit;
    while (at > 0 && (p[at] & 0xc0) == 0x80)
        at--;
    return at;
}

static inline void put_char(struct wb_buf *mem, uint32_t cp)
{
    mem->len += wb_utf8_encode(cp, mem->ptr + mem->len);
}

/* The length of the malformed sequence at p that becomes one U+FFFD: what could begin a character, at least a byte. */
static size_t malformed_length(const char *p, size_t len)
{
    const uint8_t *b = (const uint8_t *)p;
    uint8_t low = b[0] == 0xe0 ? 0xa0 : b[0] == 0xf0 ? 0x90 : 0x80;
    uint8_t high = b[0] == 0xed ? 0x9f : b[0] == 0xf4 ? 0x8f : 0xbf;
    size_t wanted = b[0] >= 0xf0 && b[0] <= 0xf4 ? 4 : b[0] >= 0xe0 && b[0] <= 0xef ? 3 : 1;
    size_t n = 1;

    while (n < wanted && n < len && b[n] >= low && b[n] <= high) {
        n++;
        low = 0x80;
        high = 0xbf;
    }
    return n;
}

/* Copies UTF-8 whose first `valid` bytes are well-formed, and replaces every malformed sequence with U+FFFD. */
static int mend_utf8(struct wb_slice bytes, size_t valid, size_t limit, struct wb_buf *mem)
{
    size_t at = 0;

    while (at < bytes.len && mem->len <= limit) {
        if (wb_buf_append(mem, bytes.ptr + at, valid) < 0)
            return WB_E_NOMEM;
        at += valid;
        if (at < bytes.len) {
            if (wb_buf_append(mem, "\xef\xbf\xbd", 3) < 0)
                return WB_E_NOMEM;
            at += malformed_length(bytes.ptr + at, bytes.len - at);
            valid = wb_decode_utf8_prefix(bytes.ptr + at, bytes.len - at);
        }
    }
    return 0;
}

/* Returns well-formed UTF-8 where it is, without a BOM; otherwise makes a repaired copy. */
static int decode_utf8(struct wb_slice bytes, size_t limit, struct wb_buf *mem, struct wb_slice *utf8_out)
{
    if (wb_slice_starts(bytes, WB_SLICE_LIT("\xef\xbb\xbf")))
        bytes = wb_slice(bytes.ptr + 3, bytes.len - 3);
    size_t looked = bytes.len < limit ? bytes.len : limit;
    size_t valid = wb_decode_utf8_prefix(bytes.ptr, looked);
    /* A character that the limit cuts off is not malformed. */
    if (valid == looked ||
        (looked < bytes.len && wb_utf8_length(bytes.ptr + valid, bytes.len - valid) > looked - valid)) {
        *utf8_out = wb_slice(bytes.ptr, valid);
        return 0;
    }
    return mend_utf8(bytes, valid, limit, mem);
}

/* ---- one or two bytes per character ------------------------------------------------------------------- */

/* Decodes one byte per character; without a table, as x-user-defined. */
static int decode_single(const uint16_t *upper, struct wb_slice bytes, size_t limit, struct wb_buf *mem)
{
    for (size_t at = 0; at < bytes.len && mem->len <= limit;) {
        size_t end = bytes.len - at < CHUNK ? bytes.len : at + CHUNK;
        if (wb_buf_reserve(mem, 3 * (end - at)) < 0)
            return WB_E_NOMEM;
        while (at < end) {
            uint8_t b = (uint8_t)bytes.ptr[at];
            if (b >= 0x80) {
                put_char(mem, upper ? upper[b - 0x80] : 0xf700u + b);
                at++;
                continue;
            }
            size_t n = wb_decode_ascii_prefix(bytes.ptr + at, end - at);
            memcpy(mem->ptr + mem->len, bytes.ptr + at, n);
            mem->len += n;
            at += n;
        }
    }
    return 0;
}

static inline uint32_t utf16_unit(const uint8_t *b, bool big)
{
    return (uint32_t)b[big] | (uint32_t)b[!big] << 8;
}

/* Decodes UTF-16, pairs of surrogates included; half a pair becomes U+FFFD. */
static int decode_utf16(bool big, struct wb_slice bytes, size_t limit, struct wb_buf *mem)
{
    const uint8_t *b = (const uint8_t *)bytes.ptr;
    size_t units = bytes.len / 2, at = 0;

    if (units && utf16_unit(b, big) == 0xfeff)
        at = 1;
    while (at < units && mem->len <= limit) {
        size_t end = units - at < CHUNK ? units : at + CHUNK;
        if (wb_buf_reserve(mem, 3 * (end - at) + 4) < 0)
            return WB_E_NOMEM;
        while (at < end) {
            uint32_t cp = utf16_unit(b + 2 * at++, big);
            uint32_t low = (cp & 0xfc00) == 0xd800 && at < units ? utf16_unit(b + 2 * at, big) : 0;
            if ((low & 0xfc00) == 0xdc00) {
                cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
                at++;
            }
            put_char(mem, (cp & 0x1ff800) == 0xd800 ? 0xfffd : cp);
        }
    }
    return bytes.len % 2 ? wb_buf_append(mem, "\xef\xbf\xbd", 3) : 0;
}

/* ---- ICU ------------------------------------------------------------------------------------------ */

/* The converters of a thread, which are closed when it ends. */
struct converters {
    UConverter *utf8;
    struct {
        const char *name;
        UConverter *converter;
    } slots[CONVERTERS];
};

static pthread_key_t converters_key;
static pthread_once_t converters_once = PTHREAD_ONCE_INIT;

static void close_converters(void *arg)
{
    struct converters *all = arg;

    ucnv_close(all->utf8);
    for (size_t i = 0; i < CONVERTERS; i++)
        ucnv_close(all->slots[i].converter);
    wb_free(all);
}

static void make_key(void)
{
    WB_CHECK(pthread_key_create(&converters_key, close_converters) == 0);
}

/*
 * Two rules of the standard that ICU does not have: if an unassigned pair ends in an ASCII byte, that
 * byte is put back into the stream, so that no markup is lost; and 0x80 in gb18030 is the euro sign.
 */
static void replace_malformed(const void *context, UConverterToUnicodeArgs *args, const char *units, int32_t count,
                              UConverterCallbackReason reason, UErrorCode *status)
{
    UChar out[2] = {0xfffd, 0};
    int32_t n = 1;

    if (reason > UCNV_IRREGULAR)
        return;
    if (count == 1 && (uint8_t)units[0] == 0x80 && context)
        out[0] = *(const UChar *)context;
    if (reason == UCNV_UNASSIGNED && count == 2 && (uint8_t)units[1] < 0x80)
        out[n++] = (UChar)units[1];
    *status = U_ZERO_ERROR;
    ucnv_cbToUWriteUChars(args, out, n, 0, status);
}

static int open_converter(const char *name, UConverter **converter_out)
{
    static const UChar euro = 0x20ac;
    UErrorCode status = U_ZERO_ERROR;

    *converter_out = ucnv_open(name, &status);
    if (status == U_MEMORY_ALLOCATION_ERROR)
        return wb_fail_nomem();
    if (U_FAILURE(status))
        return wb_fail(WB_E_IO, "ICU has no converter '%s': %s", name, u_errorName(status));
    ucnv_setToUCallBack(*converter_out, replace_malformed, strcmp(name, "gb18030") == 0 ? &euro : NULL, NULL, NULL,
                        &status);
    WB_CHECK(U_SUCCESS(status));
    return 0;
}

/* Gets the thread's converter with this name (a pointer from the table), and the one that writes UTF-8. */
static int get_converters(const char *name, UConverter **from_out, UConverter **to_out)
{
    WB_CHECK(pthread_once(&converters_once, make_key) == 0);
    struct converters *all = pthread_getspecific(converters_key);
    size_t i = 0;
    int err = 0;

    if (!all) {
        all = wb_alloc_zero(1, sizeof *all);
        if (!all)
            return WB_E_NOMEM;
        if (pthread_setspecific(converters_key, all) != 0) {
            wb_free(all);
            return wb_fail_nomem();
        }
    }
    if (!all->utf8)
        err = open_converter("UTF-8", &all->utf8);
    while (all->slots[i].name && strcmp(all->slots[i].name, name) != 0) {
        i++;
        WB_CHECK(i < CONVERTERS);
    }
    if (err == 0 && !all->slots[i].converter)
        err = open_converter(name, &all->slots[i].converter);
    if (err < 0)
        return err;
    all->slots[i].name = name;
    *from_out = all->slots[i].converter;
    *to_out = all->utf8;
    return 0;
}

/* Decodes with a converter of ICU, in chunks, until the limit is exceeded. */
static int decode_icu(const char *name, struct wb_slice bytes, size_t limit, struct wb_buf *mem)
{
    UChar pivot[1024], *pivot_from = pivot, *pivot_to = pivot;
    UConverter *from = NULL, *to = NULL;
    UErrorCode status = U_BUFFER_OVERFLOW_ERROR;
    bool first = true;

    int err = get_converters(name, &from, &to);
    if (err < 0)
        return err;
    /* These encodings are ASCII up to the first byte that is not, except the one with escapes. */
    size_t plain = strcmp(name, "iso-2022-jp") == 0 ? 0 : wb_decode_ascii_prefix(bytes.ptr, bytes.len);
    if (wb_buf_append(mem, bytes.ptr, plain < limit ? plain : limit) < 0)
        return WB_E_NOMEM;
    const char *source = bytes.ptr + plain, *source_end = bytes.ptr + bytes.len;

    while (status == U_BUFFER_OVERFLOW_ERROR && mem->len <= limit) {
        if (wb_buf_reserve(mem, CHUNK) < 0)
            return WB_E_NOMEM;
        char *target = mem->ptr + mem->len;
        status = U_ZERO_ERROR;
        ucnv_convertEx(to, from, &target, mem->ptr + mem->cap, &source, source_end, pivot, &pivot_from, &pivot_to,
                       pivot + sizeof pivot / sizeof *pivot, first, true, &status);
        mem->len = (size_t)(target - mem->ptr);
        first = false;
    }
    if (status == U_MEMORY_ALLOCATION_ERROR)
        return wb_fail_nomem();
    return 0;
}

int wb_charset_decode(const char *charset, struct wb_slice bytes, size_t limit, struct wb_buf *mem,
                      struct wb_slice *utf8_out)
{
    const struct wb_encoding *encoding = wb_encoding_by_label(wb_slice_str(charset));
    int err = 0;

    *utf8_out = WB_SLICE_EMPTY;
    wb_buf_clear(mem);
    switch (encoding ? encoding->way : WB_ENCODING_UTF8) {
    case WB_ENCODING_UTF8:
        err = decode_utf8(bytes, limit, mem, utf8_out);
        break;
    case WB_ENCODING_UTF16LE:
    case WB_ENCODING_UTF16BE:
        err = decode_utf16(encoding->way == WB_ENCODING_UTF16BE, bytes, limit, mem);
        break;
    case WB_ENCODING_SINGLE:
    case WB_ENCODING_USER_DEFINED:
        if (wb_decode_ascii_prefix(bytes.ptr, bytes.len) == bytes.len)
            *utf8_out = wb_slice(bytes.ptr, bytes.len < limit ? bytes.len : limit);
        else
            err = decode_single(encoding->upper, bytes, limit, mem);
        break;
    case WB_ENCODING_ICU:
        err = decode_icu(encoding->icu, bytes, limit, mem);
        break;
    case WB_ENCODING_REPLACEMENT:
        err = bytes.len ? wb_buf_append(mem, "\xef\xbf\xbd", 3) : 0;
        break;
    }
    if (err < 0)
        return err;
    if (mem->len)
        *utf8_out = wb_slice(mem->ptr, cut_at(mem->ptr, mem->len, limit));
    return 0;
}
