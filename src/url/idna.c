/*
 * idna.c - international domains to ASCII: the URL standard's "domain to ASCII".
 *
 * UTS #46 with ICU: nontransitional, with CheckBidi and CheckJoiners, without CheckHyphens, UseSTD3ASCIIRules and
 * VerifyDnsLength. ICU always checks hyphens and lengths, but it reports them as flags beside the result, which we
 * ignore. ASCII domains never come here. docs/design/0002-urls.md says why we do not use libidn2.
 */
#include "url/idna.h"
#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"

#include <pthread.h>
#include <unicode/uidna.h>

/*
 * The mappings that Unicode 15.1 and 16 changed in UTS #46, for characters that ICU 72 (Unicode 15) already knows. We
 * apply them before ICU sees the domain: an old ICU then gives the new result, and a new one is not affected.
 */
static const struct idna_mapping {
    uint32_t first, last;
    uint32_t to; /* what first becomes, and so on up to last; 0: they are removed */
} newer_mappings[] = {
    {0x04c0, 0x04c0, 0x04cf},     /* palochka */
    {0x10a0, 0x10c5, 0x2d00},     /* Georgian capitals */
    {0x115f, 0x1160, 0},          /* Hangul fillers */
    {0x17b4, 0x17b5, 0},          /* Khmer inherent vowels */
    {0x180e, 0x180e, 0},          /* Mongolian vowel separator */
    {0x1e9e, 0x1e9e, 0x00df},     /* capital sharp s */
    {0x2061, 0x2063, 0},          /* invisible operators */
    {0x206a, 0x206f, 0},          /* deprecated format controls */
    {0x2132, 0x2132, 0x214e},     /* turned F */
    {0x2183, 0x2183, 0x2184},     /* reversed C */
    {0x3164, 0x3164, 0},          /* Hangul filler */
    {0xffa0, 0xffa0, 0},          /* halfwidth Hangul filler */
    {0x1d173, 0x1d17a, 0},        /* musical format controls */
    {0x2f868, 0x2f868, 0x36fc},   /* CJK compatibility ideographs of corrigendum 4 */
    {0x2f874, 0x2f874, 0x5f53},
    {0x2f91f, 0x2f91f, 0x243ab},
    {0x2f95f, 0x2f95f, 0x7aee},
    {0x2f9bf, 0x2f9bf, 0x45d7},
};

/* Errors that ICU reports although we did not ask for these checks. The URL standard turns them off. */
#define IGNORED_ERRORS                                                                                         \
    (UIDNA_ERROR_EMPTY_LABEL | UIDNA_ERROR_LABEL_TOO_LONG | UIDNA_ERROR_DOMAIN_NAME_TOO_LONG |             \
     UIDNA_ERROR_LEADING_HYPHEN | UIDNA_ERROR_TRAILING_HYPHEN | UIDNA_ERROR_HYPHEN_3_4)

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static UIDNA *idna; /* never changes once it is open; shared by all threads; kept until the process ends */

static void open_idna(void)
{
    UErrorCode status = U_ZERO_ERROR;

    idna = uidna_openUTS46(UIDNA_CHECK_BIDI | UIDNA_CHECK_CONTEXTJ | UIDNA_NONTRANSITIONAL_TO_ASCII |
                               UIDNA_NONTRANSITIONAL_TO_UNICODE,
                           &status);
    if (U_FAILURE(status))
        idna = NULL;
}

/* What a code point becomes; 0 if it is removed. */
static uint32_t map_newer(uint32_t cp)
{
    for (size_t i = 0; i < sizeof newer_mappings / sizeof *newer_mappings; i++) {
        const struct idna_mapping *m = &newer_mappings[i];
        if (cp >= m->first && cp <= m->last)
            return m->to ? m->to + (cp - m->first) : 0;
    }
    return cp;
}

/* Applies the newer mappings. Writes at most domain.len bytes, because none makes a character longer. -1: not UTF-8. */
static int32_t map_domain(struct wb_slice domain, char *out)
{
    char *start = out;

    for (size_t i = 0; i < domain.len;) {
        size_t n = wb_utf8_length(domain.ptr + i, domain.len - i);
        if (n == 0)
            return -1;
        uint32_t cp = wb_utf8_decode(domain.ptr + i, n);
        uint32_t to = n > 1 ? map_newer(cp) : cp;
        if (to != 0 || cp == 0)
            out += wb_utf8_encode(to, out);
        i += n;
    }
    return (int32_t)(out - start);
}

int wb_idna_to_ascii(struct wb_slice domain, char *ascii_out, size_t *len_out)
{
    char mapped[WB_IDNA_MAX_BYTES];
    UIDNAInfo info = UIDNA_INFO_INITIALIZER;
    UErrorCode status = U_ZERO_ERROR;

    *len_out = 0;
    WB_CHECK(domain.len > 0);
    if (domain.len > sizeof mapped)
        return WB_E_LIMIT;
    int32_t len = map_domain(domain, mapped);
    if (len < 0)
        return WB_E_PROTO;
    pthread_once(&opened, open_idna);
    if (!idna)
        return wb_fail_nomem();
    len = uidna_nameToASCII_UTF8(idna, mapped, len, ascii_out, WB_IDNA_MAX_BYTES, &info, &status);
    if (status == U_MEMORY_ALLOCATION_ERROR)
        return wb_fail_nomem();
    if (status == U_BUFFER_OVERFLOW_ERROR)
        return WB_E_LIMIT;
    if (U_FAILURE(status) || (info.errors & ~(uint32_t)IGNORED_ERRORS) != 0)
        return WB_E_PROTO;
    *len_out = (size_t)len;
    return 0;
}
