/*
 * fused.c - MD5 and SHA-1 of one message at the same time, and SHA-1 of two messages.
 *
 * Both digests are chains in which each step waits for the one before, so that either of them
 * alone leaves most of the processor idle. The two chains are independent: if their steps
 * alternate, four of one and four of the other, SHA-1 fits into the gaps of MD5 and costs next
 * to nothing. MD5 uses ordinary registers and SHA-1 the SHA instructions, so they do not
 * compete. Two SHA-1 chains fit beside each other in the same way.
 *
 *   MD5    |step|wait|step|wait|step|wait ...      64 steps per block, about 290 cycles
 *   SHA-1       |4 rounds|    |4 rounds| ...       20 groups per block, about 120 cycles
 *
 * We wrote this by hand because libcrypto has no such function, and digests took a fifth of the
 * crawler's time (measurements in docs/design/0005-digests.md). It never runs without
 * wb_fused_usable(): digest.c has the way around.
 */
#include "page/fused.h"
#include "base/bytes.h"
#include "base/check.h"
#include "page/digest.h"
#include "page/md5_rounds.h"

bool wb_fused_usable(void)
{
    return wb_digest_cpu() & WB_DIGEST_SHA;
}

#if defined(__x86_64__)
#include <immintrin.h>

enum { BLOCK = 64 };

/* The last one or two blocks of a message: its last bytes and the padding. */
struct sha1_tail {
    char bytes[2 * BLOCK];
    size_t blocks;
};

static void fill_tail(struct wb_slice message, bool big_endian, struct sha1_tail *tail_out)
{
    size_t rest = message.len % BLOCK;
    uint64_t bits = (uint64_t)message.len * 8;

    memset(tail_out, 0, sizeof *tail_out);
    tail_out->blocks = rest < BLOCK - 8 ? 1 : 2;
    if (rest)
        memcpy(tail_out->bytes, message.ptr + message.len - rest, rest);
    tail_out->bytes[rest] = (char)0x80;
    char *end = tail_out->bytes + tail_out->blocks * BLOCK;
    if (big_endian)
        wb_put64_be(end - 8, bits);
    else
        wb_put64(end - 8, bits);
}

/* ---- MD5: the steps of md5_rounds.h in ordinary registers -------------------------------- */

/*
 * Each function is split in two: the part that can be added before b, the newest word, is known,
 * and the rest. (c & ~d) and (b & d) have no bit in common, so their sum is F2.
 */
#define F1_EARLY(b, c, d) 0
#define F1_LATE(b, c, d) ((d) ^ ((b) & ((c) ^ (d))))
#define F2_EARLY(b, c, d) ((c) & ~(d))
#define F2_LATE(b, c, d) ((b) & (d))
#define F3_EARLY(b, c, d) 0
#define F3_LATE(b, c, d) ((b) ^ ((c) ^ (d)))
#define F4_EARLY(b, c, d) 0
#define F4_LATE(b, c, d) ((c) ^ ((b) | ~(d)))

/* The empty assembly stops the compiler from adding in another order, which would lengthen the chain. */
#define STEP(F, a, b, c, d, word, i, turn)                                         \
    do {                                                                           \
        (a) += wb_md5_sines[i] + wb_get32(md5_at + 4 * (word)) + F##_EARLY(b, c, d); \
        __asm__("" : "+r"(a));                                                     \
        (a) += F##_LATE(b, c, d);                                                  \
        (a) = (b) + ((a) << (turn) | (a) >> (32 - (turn)));                        \
    } while (0)
#define FOUR(F, i, g0, g1, g2, g3, t0, t1, t2, t3) \
    STEP(F, a, b, c, d, g0, i, t0);                \
    STEP(F, d, a, b, c, g1, (i) + 1, t1);          \
    STEP(F, c, d, a, b, g2, (i) + 2, t2);          \
    STEP(F, b, c, d, a, g3, (i) + 3, t3)

/* ---- SHA-1 (FIPS 180-4): 20 groups of four rounds ------------------------------------------ */

static const uint32_t sha1_start[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};

/* Two values of e alternate; m0 to m3 hold the words of the last sixteen rounds, four each. */
struct sha1 {
    __m128i abcd, e0, e1, m0, m1, m2, m3, abcd_before, e_before;
};

#define SHA1_LOAD(at, i) _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)((at) + 16 * (i))), swap)
#define SHA1_FIRST(s, at)                               \
    (s).abcd_before = (s).abcd;                         \
    (s).e_before = (s).e0;                              \
    (s).m0 = SHA1_LOAD(at, 0);                          \
    (s).e0 = _mm_add_epi32((s).e0, (s).m0);             \
    (s).e1 = (s).abcd;                                  \
    (s).abcd = _mm_sha1rnds4_epu32((s).abcd, (s).e0, 0)
#define SHA1_ROUNDS(s, e, e_next, m, f)                 \
    (s).e = _mm_sha1nexte_epu32((s).e, (s).m);          \
    (s).e_next = (s).abcd;                              \
    (s).abcd = _mm_sha1rnds4_epu32((s).abcd, (s).e, f)
/* Computes the words of later rounds: x finishes n, contributes to r, and starts q. */
#define SHA1_FINISH(s, n, x) (s).n = _mm_sha1msg2_epu32((s).n, (s).x)
#define SHA1_BEGIN(s, q, x) (s).q = _mm_sha1msg1_epu32((s).q, (s).x)
#define SHA1_MIX(s, r, x) (s).r = _mm_xor_si128((s).r, (s).x)
#define SHA1_GROUP(s, e, e_next, x, n, q, r, f) \
    SHA1_FINISH(s, n, x);                       \
    SHA1_ROUNDS(s, e, e_next, x, f);            \
    SHA1_BEGIN(s, q, x);                        \
    SHA1_MIX(s, r, x)

#define SHA1_0(s, at) SHA1_FIRST(s, at)
#define SHA1_1(s, at)                \
    (s).m1 = SHA1_LOAD(at, 1);       \
    SHA1_ROUNDS(s, e1, e0, m1, 0);   \
    SHA1_BEGIN(s, m0, m1)
#define SHA1_2(s, at)                \
    (s).m2 = SHA1_LOAD(at, 2);       \
    SHA1_ROUNDS(s, e0, e1, m2, 0);   \
    SHA1_BEGIN(s, m1, m2);           \
    SHA1_MIX(s, m0, m2)
#define SHA1_3(s, at)                \
    (s).m3 = SHA1_LOAD(at, 3);       \
    SHA1_GROUP(s, e1, e0, m3, m0, m2, m1, 0)
#define SHA1_4(s, at) SHA1_GROUP(s, e0, e1, m0, m1, m3, m2, 0)
#define SHA1_5(s, at) SHA1_GROUP(s, e1, e0, m1, m2, m0, m3, 1)
#define SHA1_6(s, at) SHA1_GROUP(s, e0, e1, m2, m3, m1, m0, 1)
#define SHA1_7(s, at) SHA1_GROUP(s, e1, e0, m3, m0, m2, m1, 1)
#define SHA1_8(s, at) SHA1_GROUP(s, e0, e1, m0, m1, m3, m2, 1)
#define SHA1_9(s, at) SHA1_GROUP(s, e1, e0, m1, m2, m0, m3, 1)
#define SHA1_10(s, at) SHA1_GROUP(s, e0, e1, m2, m3, m1, m0, 2)
#define SHA1_11(s, at) SHA1_GROUP(s, e1, e0, m3, m0, m2, m1, 2)
#define SHA1_12(s, at) SHA1_GROUP(s, e0, e1, m0, m1, m3, m2, 2)
#define SHA1_13(s, at) SHA1_GROUP(s, e1, e0, m1, m2, m0, m3, 2)
#define SHA1_14(s, at) SHA1_GROUP(s, e0, e1, m2, m3, m1, m0, 2)
#define SHA1_15(s, at) SHA1_GROUP(s, e1, e0, m3, m0, m2, m1, 3)
#define SHA1_16(s, at) SHA1_GROUP(s, e0, e1, m0, m1, m3, m2, 3)
#define SHA1_17(s, at)               \
    SHA1_FINISH(s, m2, m1);          \
    SHA1_ROUNDS(s, e1, e0, m1, 3);   \
    SHA1_MIX(s, m3, m1)
#define SHA1_18(s, at)               \
    SHA1_FINISH(s, m3, m2);          \
    SHA1_ROUNDS(s, e0, e1, m2, 3)
#define SHA1_19(s, at)                                      \
    SHA1_ROUNDS(s, e1, e0, m3, 3);                          \
    (s).e0 = _mm_sha1nexte_epu32((s).e0, (s).e_before);     \
    (s).abcd = _mm_add_epi32((s).abcd, (s).abcd_before)

/* Words are big-endian, and the instructions expect the first one in the highest position. */
#define SHA1_SWAP _mm_set_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f)

#define SHA1_TARGET __attribute__((target("sha,sse4.1")))

SHA1_TARGET static inline void load_sha1(const uint32_t words[5], struct sha1 *s_out)
{
    s_out->abcd = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)words), 0x1b);
    s_out->e0 = _mm_set_epi32((int)words[4], 0, 0, 0);
}

SHA1_TARGET static inline void save_sha1(const struct sha1 *s, uint32_t words_out[5])
{
    _mm_storeu_si128((__m128i *)(void *)words_out, _mm_shuffle_epi32(s->abcd, 0x1b));
    words_out[4] = (uint32_t)_mm_extract_epi32(s->e0, 3);
}

/* ---- both digests of one message --------------------------------------------------------------------------------- */

/* Digests `blocks` blocks. The two digests may read different memory, because their padding differs. */
SHA1_TARGET static void take_both(uint32_t md5[4], uint32_t sha1[5], const char *md5_at, const char *sha1_at,
                                  size_t blocks)
{
    const __m128i swap = SHA1_SWAP;
    uint32_t a = md5[0], b = md5[1], c = md5[2], d = md5[3];
    struct sha1 s;

    load_sha1(sha1, &s);
    for (; blocks > 0; blocks--, md5_at += BLOCK, sha1_at += BLOCK) {
        uint32_t a0 = a, b0 = b, c0 = c, d0 = d;
        SHA1_0(s, sha1_at);
        WB_MD5_0(FOUR);
        SHA1_1(s, sha1_at);
        WB_MD5_1(FOUR);
        SHA1_2(s, sha1_at);
        WB_MD5_2(FOUR);
        SHA1_3(s, sha1_at);
        WB_MD5_3(FOUR);
        SHA1_4(s, sha1_at);
        SHA1_5(s, sha1_at);
        WB_MD5_4(FOUR);
        SHA1_6(s, sha1_at);
        WB_MD5_5(FOUR);
        SHA1_7(s, sha1_at);
        WB_MD5_6(FOUR);
        SHA1_8(s, sha1_at);
        WB_MD5_7(FOUR);
        SHA1_9(s, sha1_at);
        SHA1_10(s, sha1_at);
        WB_MD5_8(FOUR);
        SHA1_11(s, sha1_at);
        WB_MD5_9(FOUR);
        SHA1_12(s, sha1_at);
        WB_MD5_10(FOUR);
        SHA1_13(s, sha1_at);
        WB_MD5_11(FOUR);
        SHA1_14(s, sha1_at);
        SHA1_15(s, sha1_at);
        WB_MD5_12(FOUR);
        SHA1_16(s, sha1_at);
        WB_MD5_13(FOUR);
        SHA1_17(s, sha1_at);
        WB_MD5_14(FOUR);
        SHA1_18(s, sha1_at);
        WB_MD5_15(FOUR);
        SHA1_19(s, sha1_at);
        a += a0;
        b += b0;
        c += c0;
        d += d0;
    }
    md5[0] = a;
    md5[1] = b;
    md5[2] = c;
    md5[3] = d;
    save_sha1(&s, sha1);
}

static void write_sha1(const uint32_t words[5], uint8_t digest_out[WB_SHA1_BYTES])
{
    for (int i = 0; i < 5; i++)
        wb_put32_be(digest_out + 4 * i, words[i]);
}

void wb_fused_digest(struct wb_slice message, uint8_t md5_out[WB_MD5_BYTES], uint8_t sha1_out[WB_SHA1_BYTES])
{
    uint32_t md5[4], sha1[5];
    struct sha1_tail md5_tail, sha1_tail;

    WB_CHECK(wb_fused_usable());
    memcpy(md5, wb_md5_start, sizeof md5);
    memcpy(sha1, sha1_start, sizeof sha1);
    take_both(md5, sha1, message.ptr, message.ptr, message.len / BLOCK);
    fill_tail(message, false, &md5_tail);
    fill_tail(message, true, &sha1_tail);
    take_both(md5, sha1, md5_tail.bytes, sha1_tail.bytes, md5_tail.blocks);
    for (int i = 0; i < 4; i++)
        wb_put32(md5_out + 4 * i, md5[i]);
    write_sha1(sha1, sha1_out);
}

/* ---- SHA-1 of two messages ------------------------------------------------------------------------------ */

struct sha1_lane {
    uint32_t state[5];
    const char *at;
    size_t blocks;        /* what is left of the present part: first the whole blocks of the message, then its tail */
    uint8_t *digest;      /* where the result goes; NULL if the lane is idle */
    bool in_tail;
    struct sha1_tail tail;
};

#define TWO(group)        \
    group(s, first->at);  \
    group(t, second->at)

SHA1_TARGET static void take_two(struct sha1_lane *first, struct sha1_lane *second, size_t blocks)
{
    const __m128i swap = SHA1_SWAP;
    struct sha1 s, t;

    load_sha1(first->state, &s);
    load_sha1(second->state, &t);
    for (; blocks > 0; blocks--, first->at += BLOCK, second->at += BLOCK) {
        TWO(SHA1_0);
        TWO(SHA1_1);
        TWO(SHA1_2);
        TWO(SHA1_3);
        TWO(SHA1_4);
        TWO(SHA1_5);
        TWO(SHA1_6);
        TWO(SHA1_7);
        TWO(SHA1_8);
        TWO(SHA1_9);
        TWO(SHA1_10);
        TWO(SHA1_11);
        TWO(SHA1_12);
        TWO(SHA1_13);
        TWO(SHA1_14);
        TWO(SHA1_15);
        TWO(SHA1_16);
        TWO(SHA1_17);
        TWO(SHA1_18);
        TWO(SHA1_19);
    }
    save_sha1(&s, first->state);
    save_sha1(&t, second->state);
}

static void begin_lane(struct sha1_lane *lane, struct wb_slice message, uint8_t *digest)
{
    memcpy(lane->state, sha1_start, sizeof lane->state);
    lane->at = message.ptr;
    lane->blocks = message.len / BLOCK;
    lane->digest = digest;
    lane->in_tail = false;
    fill_tail(message, true, &lane->tail);
}

/* Gives a lane that has nothing left to do the tail of its message, or the next message. */
static void refill(struct sha1_lane *lane, const struct wb_slice *messages, size_t count, size_t *next,
                   uint8_t (*digests)[WB_SHA1_BYTES])
{
    while (lane->blocks == 0) {
        if (lane->digest && !lane->in_tail) {
            lane->in_tail = true;
            lane->at = lane->tail.bytes;
            lane->blocks = lane->tail.blocks;
            return;
        }
        if (lane->digest)
            write_sha1(lane->state, lane->digest);
        lane->digest = NULL;
        if (*next == count)
            return;
        begin_lane(lane, messages[*next], digests[*next]);
        (*next)++;
    }
}

void wb_fused_sha1_many(const struct wb_slice *messages, size_t count, uint8_t (*digests_out)[WB_SHA1_BYTES])
{
    struct sha1_lane lanes[2] = {{.blocks = 0}, {.blocks = 0}}, idle;
    size_t next = 0;

    WB_CHECK(wb_fused_usable());
    for (;;) {
        refill(&lanes[0], messages, count, &next, digests_out);
        refill(&lanes[1], messages, count, &next, digests_out);
        struct sha1_lane *a = &lanes[0], *b = &lanes[1];
        if (!a->digest && !b->digest)
            return;
        if (!a->digest || !b->digest) {
            /* Let the idle lane repeat the work of the other one: that costs no time. */
            a = a->digest ? a : b;
            idle = *a;
            b = &idle;
        }
        size_t blocks = a->blocks < b->blocks ? a->blocks : b->blocks;
        take_two(a, b, blocks);
        a->blocks -= blocks;
        b->blocks -= blocks;
    }
}

#else

void wb_fused_digest(struct wb_slice message, uint8_t md5_out[WB_MD5_BYTES], uint8_t sha1_out[WB_SHA1_BYTES])
{
    (void)message, (void)md5_out, (void)sha1_out;
    WB_CHECK(wb_fused_usable());
}

void wb_fused_sha1_many(const struct wb_slice *messages, size_t count, uint8_t (*digests_out)[WB_SHA1_BYTES])
{
    (void)messages, (void)count, (void)digests_out;
    WB_CHECK(wb_fused_usable());
}

#endif
