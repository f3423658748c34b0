/*
 * digest.c - MD5 and SHA-1 of bodies.
 *
 * The digests identify content; they protect no secrets. Our own code computes them where it is
 * faster than libcrypto (fused.c: both digests of one page; md5.c: many pages). This file chooses,
 * and never computes a digest itself.
 */
#include "base/check.h"
#include "page/digest.h"
#include "page/fused.h"
#include "page/md5.h"

#include <openssl/evp.h>
#include <pthread.h>

static EVP_MD *md5, *sha1;
static pthread_once_t fetched = PTHREAD_ONCE_INIT;

/* Fetching an algorithm by name takes longer than digesting a small page, so it is done once. */
static void fetch(void)
{
    md5 = EVP_MD_fetch(NULL, "MD5", NULL);
    sha1 = EVP_MD_fetch(NULL, "SHA1", NULL);
    WB_CHECK(md5 && sha1);
}

static void digest(const EVP_MD *algorithm, const void *bytes, size_t len, uint8_t *digest_out, unsigned size)
{
    unsigned written = 0;

    WB_CHECK(EVP_Digest(bytes, len, digest_out, &written, algorithm, NULL) == 1);
    WB_CHECK(written == size);
}

void wb_sha1(const void *bytes, size_t len, uint8_t digest_out[WB_SHA1_BYTES])
{
    pthread_once(&fetched, fetch);
    digest(sha1, bytes, len, digest_out, WB_SHA1_BYTES);
}

void wb_md5(struct wb_slice message, uint8_t digest_out[WB_MD5_BYTES])
{
    pthread_once(&fetched, fetch);
    digest(md5, message.ptr, message.len, digest_out, WB_MD5_BYTES);
}

void wb_page_digest(struct wb_page *page)
{
    if (page->digested)
        return;
    if (wb_fused_usable()) {
        wb_fused_digest(page->body, page->md5, page->sha1);
    } else {
        wb_md5(page->body, page->md5);
        wb_sha1(page->body.ptr, page->body.len, page->sha1);
    }
    page->digested = true;
}

/* With fewer messages, the lanes of md5.c are slower than one after another. */
#define LANES_MIN 3

void wb_digest_many(const struct wb_slice *messages, size_t count, uint8_t (*md5s_out)[WB_MD5_BYTES],
                    uint8_t (*sha1s_out)[WB_SHA1_BYTES])
{
    bool fused = wb_fused_usable();

    if (fused && count < LANES_MIN) {
        for (size_t i = 0; i < count; i++)
            wb_fused_digest(messages[i], md5s_out[i], sha1s_out[i]);
        return;
    }
    wb_md5_many(messages, count, md5s_out);
    if (fused)
        wb_fused_sha1_many(messages, count, sha1s_out);
    else
        for (size_t i = 0; i < count; i++)
            wb_sha1(messages[i].ptr, messages[i].len, sha1s_out[i]);
}

#define AT_ONCE 64

void wb_page_digest_many(struct wb_page *const *pages, size_t count)
{
    struct wb_slice bodies[AT_ONCE];
    struct wb_page *which[AT_ONCE];
    uint8_t md5s[AT_ONCE][WB_MD5_BYTES], sha1s[AT_ONCE][WB_SHA1_BYTES];

    for (size_t at = 0; at < count;) {
        size_t n = 0;
        for (; n < AT_ONCE && at < count; at++) {
            if (pages[at]->digested)
                continue;
            which[n] = pages[at];
            bodies[n++] = pages[at]->body;
        }
        wb_digest_many(bodies, n, md5s, sha1s);
        for (size_t i = 0; i < n; i++) {
            memcpy(which[i]->md5, md5s[i], WB_MD5_BYTES);
            memcpy(which[i]->sha1, sha1s[i], WB_SHA1_BYTES);
            which[i]->digested = true;
        }
    }
}
