/*
 * md5.c - MD5 (RFC 1321) of eight messages side by side.
 *
 * MD5 is a chain of 64 steps that each wait for the one before, so one message
 * leaves most of the processor idle. Here step i of eight messages is one vector
 * operation. Written by hand because nothing in Debian does it and digests were
 * half of the time of storing pages (docs/design/0005-digests.md).
 *
 *   lane 0 |==== page 3 ====|== page 9 ==|...     a lane takes the next message
 *   lane 1 |======= page 1 =======|= page 7 =|    when its own is done; idle lanes
 *   ...                                           chew on zeros
 *
 * The vectors are the compiler's own (GCC and Clang), in whatever width the
 * processor has; no intrinsics, no assembly.
 */
#include "page/md5.h"
#include "base/bytes.h"
#include "base/check.h"

enum { LANES = 8, FEW = 3, BLOCK = 64, STEPS = 64 };

typedef uint32_t vec __attribute__((vector_size(LANES * 4)));

struct state {
    vec a, b, c, d;
};

/* floor(2^32 * abs(sin(i + 1))) */
static const uint32_t sines[STEPS] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

static const uint32_t start[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};

/* Eight rows of eight words become eight columns. */
#define PAIR(x, y, low, high)                                             \
    low = __builtin_shufflevector(x, y, 0, 8, 1, 9, 4, 12, 5, 13);        \
    high = __builtin_shufflevector(x, y, 2, 10, 3, 11, 6, 14, 7, 15)
#define QUAD(x, y, low, high)                                             \
    low = __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13);        \
    high = __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15)
#define HALF(x, y, low, high)                                             \
    low = __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11);        \
    high = __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15)

/* Words 8*half .. 8*half+7 of the lanes' blocks, word by word. */
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
        vec sum_ = (a) + (f) + w[word] + sines[i];            \
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

/* Takes `blocks` blocks of every lane. */
static inline __attribute__((always_inline)) void digest_blocks(struct state *state, const char *const *lanes, size_t blocks)
{
    vec a = state->a, b = state->b, c = state->c, d = state->d, w[16];

    for (size_t at = 0; at < blocks * BLOCK; at += BLOCK) {
        vec a0 = a, b0 = b, c0 = c, d0 = d;
        load_words(lanes, at, w);
        load_words(lanes, at + BLOCK / 2, w + 8);
        FOUR(F1, 0, 0, 1, 2, 3, 7, 12, 17, 22);
        FOUR(F1, 4, 4, 5, 6, 7, 7, 12, 17, 22);
        FOUR(F1, 8, 8, 9, 10, 11, 7, 12, 17, 22);
        FOUR(F1, 12, 12, 13, 14, 15, 7, 12, 17, 22);
        FOUR(F2, 16, 1, 6, 11, 0, 5, 9, 14, 20);
        FOUR(F2, 20, 5, 10, 15, 4, 5, 9, 14, 20);
        FOUR(F2, 24, 9, 14, 3, 8, 5, 9, 14, 20);
        FOUR(F2, 28, 13, 2, 7, 12, 5, 9, 14, 20);
        FOUR(F3, 32, 5, 8, 11, 14, 4, 11, 16, 23);
        FOUR(F3, 36, 1, 4, 7, 10, 4, 11, 16, 23);
        FOUR(F3, 40, 13, 0, 3, 6, 4, 11, 16, 23);
        FOUR(F3, 44, 9, 12, 15, 2, 4, 11, 16, 23);
        FOUR(F4, 48, 0, 7, 14, 5, 6, 10, 15, 21);
        FOUR(F4, 52, 12, 3, 10, 1, 6, 10, 15, 21);
        FOUR(F4, 56, 8, 15, 6, 13, 6, 10, 15, 21);
        FOUR(F4, 60, 4, 11, 2, 9, 6, 10, 15, 21);
        a += a0;
        b += b0;
        c += c0;
        d += d0;
    }
    *state = (struct state){a, b, c, d};
}

/* Compiled twice: the vectors are one register wide with AVX2, two without. */
static void digest_blocks_plain(struct state *state, const char *const *lanes, size_t blocks)
{
    digest_blocks(state, lanes, blocks);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void digest_blocks_avx2(struct state *state, const char *const *lanes, size_t blocks)
{
    digest_blocks(state, lanes, blocks);
}
#endif

static void take_blocks(struct state *state, const char *const *lanes, size_t blocks)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        digest_blocks_avx2(state, lanes, blocks);
        return;
    }
#endif
    digest_blocks_plain(state, lanes, blocks);
}

/* ---- lanes ---------------------------------------------------------------------------- */

/* What a lane is at: the whole blocks of a message, then its tail with the padding. */
struct lane {
    size_t message;
    size_t blocks;      /* left of the present part */
    bool busy, in_tail;
    size_t tail_blocks;
    char tail[2 * BLOCK];
};

struct digester {
    struct state state;
    const char *at[LANES];
    struct lane lane[LANES];
};

static const char idle_bytes[BLOCK * 16];
enum { IDLE_BLOCKS = sizeof idle_bytes / BLOCK };

static void set_lane_state(struct state *state, int lane, const uint32_t words[4])
{
    state->a[lane] = words[0];
    state->b[lane] = words[1];
    state->c[lane] = words[2];
    state->d[lane] = words[3];
}

static void begin_message(struct digester *d, int index, size_t message, struct wb_slice bytes)
{
    struct lane *lane = &d->lane[index];
    size_t rest = bytes.len % BLOCK;

    *lane = (struct lane){.message = message, .blocks = bytes.len / BLOCK, .busy = true};
    lane->tail_blocks = rest < BLOCK - 8 ? 1 : 2;
    if (rest)
        memcpy(lane->tail, bytes.ptr + bytes.len - rest, rest);
    lane->tail[rest] = (char)0x80;
    wb_put64(lane->tail + lane->tail_blocks * BLOCK - 8, (uint64_t)bytes.len * 8);
    d->at[index] = bytes.ptr;
    set_lane_state(&d->state, index, start);
}

static void write_digest(const struct state *state, int lane, uint8_t *digest_out)
{
    wb_put32(digest_out, state->a[lane]);
    wb_put32(digest_out + 4, state->b[lane]);
    wb_put32(digest_out + 8, state->c[lane]);
    wb_put32(digest_out + 12, state->d[lane]);
}

/* Gives each lane that has nothing left its next part: the tail, or another message. False where all are idle. */
static bool refill(struct digester *d, const struct wb_slice *messages, size_t count, size_t *next,
                   uint8_t (*digests_out)[WB_MD5_BYTES])
{
    bool any = false;

    for (int i = 0; i < LANES; i++) {
        struct lane *lane = &d->lane[i];
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

    /* For so few the lanes would be slower. */
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
