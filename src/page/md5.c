/*
 * md5.c - MD5 (RFC 1321) of eight messages side by side.
 *
 * MD5 is a chain of 64 steps, each of which waits for the one before, so that one message leaves
 * most of the processor idle. Here, step i of eight messages is one vector operation. We wrote it
 * by hand because no library in Debian does this, and digests took half of the time of storing
 * pages (docs/design/0005-digests.md).
 *
 *   lane 0 |==== page 3 ====|== page 9 ==|...     a lane takes the next message
 *   lane 1 |======= page 1 =======|= page 7 =|    when it has finished one; idle
 *   ...                                           lanes digest zeros
 *
 * It uses the vector types of the compiler (GCC and Clang), in whatever width the processor has,
 * but no intrinsics and no assembly. It never reads beyond a message.
 */
#include "page/md5.h"
#include "base/bytes.h"
#include "base/check.h"
#include "page/digest.h"
#include "page/md5_rounds.h"

enum { LANES = 8, FEW = 3, BLOCK = 64 };

typedef uint32_t vec __attribute__((vector_size(LANES * 4)));

struct md5_state {
    vec a, b, c, d;
};

/* These three transpose eight rows of eight words. */
#define PAIR(x, y, low, high)                                             \
    low = __builtin_shufflevector(x, y, 0, 8, 1, 9, 4, 12, 5, 13);        \
    high = __builtin_shufflevector(x, y, 2, 10, 3, 11, 6, 14, 7, 15)
#define QUAD(x, y, low, high)                                             \
    low = __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13);        \
    high = __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15)
#define HALF(x, y, low, high)                                             \
    low = __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11);        \
    high = __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15)

/* Loads eight words of every lane's block, starting at byte `at`; words[i] then has word i of each lane. */
static inline __attribute__((always_inline)) void load_words(const char *const *lanes, size_t at, vec words[8])
{
    vec r[LANES], s[LANES], t[LANES];

    for (int i = 0; i < LANES; i++)
        memcpy(&r[i], lanes[i] + at, sizeof r[i]);
    for (int i = 0; i < LANES; i += 2) {
        PAIR(r[i], r[i + 1], s[i], s[i + 1]);
    }
    for (int i = 0; i < LANES; i += 4) {
        QUAD(s[i], s[i + 2], t[i], t[i + 1]);
        QUAD(s[i + 1], s[i + 3], t[i + 2], t[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        HALF(t[i], t[i + 4], words[i], words[i + 4]);
    }
}

#define STEP(f, a, b, c, d, word, i, turn)                    \
    do {                                                      \
        vec sum_ = (a) + (f) + w[word] + wb_md5_sines[i];            \
        (a) = (b) + (sum_ << (turn) | sum_ >> (32 - (turn))); \
    } while (0)
#define F1(b, c, d) ((d) ^ ((b) & ((c) ^ (d))))
#define F2(b, c, d) ((c) ^ ((d) & ((b) ^ (c))))
#define F3(b, c, d) ((b) ^ (c) ^ (d))
#define F4(b, c, d) ((c) ^ ((b) | ~(d)))
#define FOUR(F, i, g0, g1, g2, g3, t0, t1, t2, t3)   \
    STEP(F(b, c, d), a, b, c, d, g0, i, t0);         \
    STEP(F(a, b, c), d, a, b, c, g1, (i) + 1, t1);   \
    STEP(F(d, a, b), c, d, a, b, g2, (i) + 2, t2);   \
    STEP(F(c, d, a), b, c, d, a, g3, (i) + 3, t3)

/* Digests `blocks` blocks of every lane. */
static inline __attribute__((always_inline)) void digest_blocks(struct md5_state *state, const char *const *lanes,
                                                                size_t blocks)
{
    vec a = state->a, b = state->b, c = state->c, d = state->d, w[16];

    for (size_t at = 0; at < blocks * BLOCK; at += BLOCK) {
        vec a0 = a, b0 = b, c0 = c, d0 = d;
        load_words(lanes, at, w);
        load_words(lanes, at + BLOCK / 2, w + 8);
        WB_MD5_0(FOUR);
        WB_MD5_1(FOUR);
        WB_MD5_2(FOUR);
        WB_MD5_3(FOUR);
        WB_MD5_4(FOUR);
        WB_MD5_5(FOUR);
        WB_MD5_6(FOUR);
        WB_MD5_7(FOUR);
        WB_MD5_8(FOUR);
        WB_MD5_9(FOUR);
        WB_MD5_10(FOUR);
        WB_MD5_11(FOUR);
        WB_MD5_12(FOUR);
        WB_MD5_13(FOUR);
        WB_MD5_14(FOUR);
        WB_MD5_15(FOUR);
        a += a0;
        b += b0;
        c += c0;
        d += d0;
    }
    *state = (struct md5_state){a, b, c, d};
}

/* The same code is compiled for each kind of processor: a vector is one register with AVX2, two without. */
static void digest_blocks_plain(struct md5_state *state, const char *const *lanes, size_t blocks)
{
    digest_blocks(state, lanes, blocks);
}

#if defined(__x86_64__)
/* With AVX-512, a rotation and any function of three operands are one instruction each. */
__attribute__((target("avx512f,avx512vl"))) static void
digest_blocks_avx512(struct md5_state *state, const char *const *lanes, size_t blocks)
{
    digest_blocks(state, lanes, blocks);
}

__attribute__((target("avx2"))) static void
digest_blocks_avx2(struct md5_state *state, const char *const *lanes, size_t blocks)
{
    digest_blocks(state, lanes, blocks);
}
#endif

static void take_blocks(struct md5_state *state, const char *const *lanes, size_t blocks)
{
#if defined(__x86_64__)
    unsigned cpu = wb_digest_cpu();
    if (cpu & WB_DIGEST_AVX512) {
        digest_blocks_avx512(state, lanes, blocks);
        return;
    }
    if (cpu & WB_DIGEST_AVX2) {
        digest_blocks_avx2(state, lanes, blocks);
        return;
    }
#endif
    digest_blocks_plain(state, lanes, blocks);
}

/* ---- lanes ---------------------------------------------------------------------------- */

/* What a lane works on: first the whole blocks of a message, then its tail with the padding. */
struct md5_lane {
    size_t message;
    size_t blocks;      /* how many are left of the present part */
    bool busy, in_tail;
    size_t tail_blocks;
    char tail[2 * BLOCK];
};

struct digester {
    struct md5_state state;
    const char *at[LANES];
    struct md5_lane lane[LANES];
};

static const char idle_bytes[BLOCK * 16];
enum { IDLE_BLOCKS = sizeof idle_bytes / BLOCK };

static void set_lane_state(struct md5_state *state, int lane, const uint32_t words[4])
{
    state->a[lane] = words[0];
    state->b[lane] = words[1];
    state->c[lane] = words[2];
    state->d[lane] = words[3];
}

static void begin_message(struct digester *d, int index, size_t message, struct wb_slice bytes)
{
    struct md5_lane *lane = &d->lane[index];
    size_t rest = bytes.len % BLOCK;

    *lane = (struct md5_lane){.message = message, .blocks = bytes.len / BLOCK, .busy = true};
    lane->tail_blocks = rest < BLOCK - 8 ? 1 : 2;
    if (rest)
        memcpy(lane->tail, bytes.ptr + bytes.len - rest, rest);
    lane->tail[rest] = (char)0x80;
    wb_put64(lane->tail + lane->tail_blocks * BLOCK - 8, (uint64_t)bytes.len * 8);
    d->at[index] = bytes.ptr;
    set_lane_state(&d->state, index, wb_md5_start);
}

static void write_digest(const struct md5_state *state, int lane, uint8_t *digest_out)
{
    wb_put32(digest_out, state->a[lane]);
    wb_put32(digest_out + 4, state->b[lane]);
    wb_put32(digest_out + 8, state->c[lane]);
    wb_put32(digest_out + 12, state->d[lane]);
}

/* Gives each lane that has nothing left its next part: the tail, or another message. False if all are idle. */
static bool refill(struct digester *d, const struct wb_slice *messages, size_t count, size_t *next,
                   uint8_t (*digests_out)[WB_MD5_BYTES])
{
    bool any = false;

    for (int i = 0; i < LANES; i++) {
        struct md5_lane *lane = &d->lane[i];
        while (lane->blocks == 0) {
            if (lane->busy && !lane->in_tail) {
                lane->in_tail = true;
                lane->blocks = lane->tail_blocks;
                d->at[i] = lane->tail;
                continue;
            }
            if (lane->busy)
                write_digest(&d->state, i, digests_out[lane->message]);
            lane->busy = false;
            if (*next == count)
                break;
            begin_message(d, i, *next, messages[*next]);
            (*next)++;
        }
        any = any || lane->busy;
    }
    return any;
}

void wb_md5_many(const struct wb_slice *messages, size_t count, uint8_t (*digests_out)[WB_MD5_BYTES])
{
    struct digester d = {0};
    size_t next = 0;

    /* With so few messages, the lanes would be slower. */
    while (count < FEW && next < count) {
        wb_md5(messages[next], digests_out[next]);
        next++;
    }
    while (refill(&d, messages, count, &next, digests_out)) {
        size_t blocks = SIZE_MAX;
        bool idle = false;
        for (int i = 0; i < LANES; i++) {
            if (d.lane[i].busy && d.lane[i].blocks < blocks)
                blocks = d.lane[i].blocks;
            idle = idle || !d.lane[i].busy;
        }
        if (idle && blocks > IDLE_BLOCKS)
            blocks = IDLE_BLOCKS;
        for (int i = 0; i < LANES; i++)
            if (!d.lane[i].busy)
                d.at[i] = idle_bytes;
        take_blocks(&d.state, d.at, blocks);
        for (int i = 0; i < LANES; i++) {
            d.at[i] += blocks * BLOCK;
            if (d.lane[i].busy)
                d.lane[i].blocks -= blocks;
        }
    }
}
