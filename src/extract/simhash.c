/*
 * simhash.c - computes the 64-bit SimHash (Charikar) of the 3-word shingles of a text.
 *
 *   words -> a hash of each -> a hash of every three in a row -> bit i of the result is set if most of
 *                                                               these hashes have bit i set
 *
 * A word is a run of letters, marks and digits, with its case folded; in scripts without blanks
 * between words, every character counts as a word. A shingle counts as often as it occurs. ASCII is
 * classified sixteen bytes at a time, and words are hashed eight bytes at a time. It never allocates,
 * and does not require well-formed UTF-8: malformed bytes belong to no word.
 *
 * The 64 counters are stored as bit planes: plane k has bit k of every counter, so that eight hashes
 * are added with a few dozen operations on 64-bit words.
 */
#include "base/utf8.h"
#include "extract/module.h"

#include <pthread.h>
#include <unicode/uchar.h>
#include <unicode/uscript.h>

/* ---- counting ------------------------------------------------------------------------------------ */

enum { BATCH = 8, PLANES = 32 };

struct counter {
    uint64_t planes[PLANES]; /* with the weights 1, 2, 4, ... */
    uint64_t batch[BATCH];
    uint64_t count;          /* how many hashes so far, including those in the batch */
};

/* A full adder with 64 lanes: *sum += a + b; returns the carry. */
static inline uint64_t add3(uint64_t *sum, uint64_t a, uint64_t b)
{
    uint64_t half = *sum ^ a, carry = (*sum & a) | (half & b);

    *sum = half ^ b;
    return carry;
}

/* Adds the eight hashes of the batch to all 64 counters at once, with carry-save adders. */
static void count_batch(struct counter *c)
{
    const uint64_t *h = c->batch;
    uint64_t *p = c->planes;
    uint64_t twos_a = add3(&p[0], h[0], h[1]), twos_b = add3(&p[0], h[2], h[3]);
    uint64_t fours_a = add3(&p[1], twos_a, twos_b);

    twos_a = add3(&p[0], h[4], h[5]);
    twos_b = add3(&p[0], h[6], h[7]);
    uint64_t carry = add3(&p[2], fours_a, add3(&p[1], twos_a, twos_b));
    for (size_t k = 3; k < PLANES && carry; k++) {
        uint64_t next = p[k] & carry;
        p[k] ^= carry;
        carry = next;
    }
}

static inline void count_hash(struct counter *c, uint64_t hash)
{
    c->batch[c->count++ % BATCH] = hash;
    if (c->count % BATCH == 0)
        count_batch(c);
}

/* Returns the majority of each bit; a tie gives 0. */
static uint64_t count_majority(struct counter *c)
{
    uint64_t result = 0;

    for (uint64_t i = c->count % BATCH; i % BATCH; i++)
        c->batch[i] = 0;
    if (c->count % BATCH)
        count_batch(c);
    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t set = 0;
        for (unsigned k = 0; k < PLANES; k++)
            set |= (c->planes[k] >> bit & 1) << k;
        if (2 * set > c->count)
            result |= UINT64_C(1) << bit;
    }
    return result;
}

/* ---- words ------------------------------------------------------------------------------------------- */

#define FOLD_BITS UINT64_C(0x2020202020202020)
#define MUL_A UINT64_C(0x9e3779b97f4a7c15)
#define MUL_B UINT64_C(0xc2b2ae3d27d4eb4f)
#define MUL_C UINT64_C(0xd6e8feb86659fd93)

static inline uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= MUL_C;
    return h ^ h >> 29;
}

struct shingler {
    struct counter counter;
    uint64_t first, second; /* the hashes of the last two words */
    uint64_t words;
};

static inline void add_word(struct shingler *s, uint64_t word)
{
    if (s->words++ >= 2)
        count_hash(&s->counter, mix((s->first * MUL_A + s->second) * MUL_B + word));
    s->first = s->second;
    s->second = word;
}

/* The hash of a word is made from eight folded bytes at a time; the last eight are padded with zeros. */
static inline uint64_t chain(uint64_t hash, uint64_t eight)
{
    return mix((hash ^ eight) * MUL_A);
}

static inline uint64_t load64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Adds a word of ASCII letters and digits, so that one bit folds the case; p is readable for 8 bytes beyond its end. */
static inline void add_ascii(struct shingler *s, const char *p, size_t len)
{
    uint64_t hash = 0;

    for (; len > 8; p += 8, len -= 8)
        hash = chain(hash, load64(p) | FOLD_BITS);
    add_word(s, chain(hash, (load64(p) | FOLD_BITS) & UINT64_MAX >> (64 - 8 * len)));
}

/* ---- letters that are not ASCII ------------------------------------------------------------------------ */

/*
 * What Unicode says about each character below U+10000; ICU is asked only once. A letter has its
 * folded form, a character that is a word by itself has ALONE, and one that belongs to no word has 0.
 */
enum { LETTER = 2, ALONE = 1 };
static uint16_t letters[0x10000];
static pthread_once_t letters_once = PTHREAD_ONCE_INIT;

static uint8_t kind_of(UChar32 cp)
{
    UErrorCode status = U_ZERO_ERROR;

    if (!(U_GET_GC_MASK(cp) & (U_GC_L_MASK | U_GC_M_MASK | U_GC_N_MASK)))
        return 0;
    switch (uscript_getScript(cp, &status)) {
    case USCRIPT_HAN:
    case USCRIPT_HIRAGANA:
    case USCRIPT_KATAKANA:
    case USCRIPT_BOPOMOFO:
    case USCRIPT_YI:
    case USCRIPT_THAI:
    case USCRIPT_LAO:
    case USCRIPT_KHMER:
    case USCRIPT_MYANMAR:
    case USCRIPT_TIBETAN:
        return ALONE;
    default:
        return LETTER;
    }
}

/* Fills letters[], once per process. */
static void learn_letters(void)
{
    for (UChar32 cp = 0; cp < 0x10000; cp++) {
        UChar32 fold = u_foldCase(cp, U_FOLD_CASE_DEFAULT);
        uint8_t kind = kind_of(cp);
        letters[cp] = kind == LETTER ? (uint16_t)(fold < 0x10000 ? fold : cp) : kind;
    }
}

/* A word that is built character by character. */
struct simhash_word {
    uint64_t hash, eight;
    unsigned bytes; /* how many of `eight` are used */
    bool open;
};

/* Appends one to three bytes to a word. */
static inline void push_bytes(struct simhash_word *w, uint64_t bytes, unsigned count)
{
    w->eight |= bytes << 8 * w->bytes;
    w->bytes += count;
    if (w->bytes >= 8) {
        w->hash = chain(w->hash, w->eight);
        w->bytes -= 8;
        w->eight = w->bytes ? bytes >> 8 * (count - w->bytes) : 0;
    }
}

static inline void end_word(struct shingler *s, struct simhash_word *w)
{
    if (w->open)
        add_word(s, w->bytes ? chain(w->hash, w->eight) : w->hash);
    *w = (struct simhash_word){0, 0, 0, false};
}

/* What letters[] would have for a character beyond U+FFFF. */
static uint32_t rare_letter(uint32_t cp)
{
    uint8_t kind = kind_of((UChar32)cp);

    return kind == LETTER ? (uint32_t)u_foldCase((UChar32)cp, U_FOLD_CASE_DEFAULT) : kind;
}

/* Adds a character to the word. One that belongs to no word ends it, and so does one that is a word by itself. */
static inline void push_char(struct shingler *s, struct simhash_word *w, uint32_t cp)
{
    uint32_t letter = cp < 0x10000 ? letters[cp] : rare_letter(cp);

    if (letter > ALONE) {
        w->open = true;
        push_bytes(w, letter, letter < 0x80 ? 1 : letter < 0x10000 ? 2 : 3);
        return;
    }
    end_word(s, w);
    if (letter == ALONE)
        add_word(s, chain(0, cp));
}

/* Adds the words of a run of ASCII letters and digits and any bytes that are not ASCII. */
static void add_mixed(struct shingler *s, const char *p, size_t len)
{
    struct simhash_word w = {0, 0, 0, false};

    (void)pthread_once(&letters_once, learn_letters);
    for (size_t i = 0; i < len;) {
        uint8_t a = (uint8_t)p[i];
        size_t n = 1;
        if (a < 0x80) {
            push_char(s, &w, a);
        } else if (a >= 0xc2 && a <= 0xdf && len - i >= 2 && (p[i + 1] & 0xc0) == 0x80) {
            push_char(s, &w, (uint32_t)(a & 0x1f) << 6 | (p[i + 1] & 0x3f));
            n = 2;
        } else if (a >= 0xe1 && a <= 0xec && len - i >= 3 && (p[i + 1] & 0xc0) == 0x80 && (p[i + 2] & 0xc0) == 0x80) {
            push_char(s, &w, (uint32_t)(a & 0xf) << 12 | (uint32_t)(p[i + 1] & 0x3f) << 6 | (p[i + 2] & 0x3f));
            n = 3;
        } else {
            n = wb_utf8_length(p + i, len - i);
            if (n)
                push_char(s, &w, wb_utf8_decode(p + i, n));
            else
                end_word(s, &w);
            n += n == 0;
        }
        i += n;
    }
    end_word(s, &w);
}

/* ---- finding words --------------------------------------------------------------------------------------- */

/* For 64 bytes: which may belong to words (all that are not ASCII may), and which are not ASCII. */
struct masks {
    uint64_t word, high;
};

/* Classifies 64 bytes at p. */
static inline struct masks classify(const char *p)
{
    struct masks m = {0, 0};

#ifdef WB_SCAN_WIDE
    for (unsigned k = 0; k < 64; k += WB_SCAN_WIDE) {
        __m128i v = wb_scan_load(p + k), lower = _mm_or_si128(v, _mm_set1_epi8(0x20));
        __m128i letter = _mm_and_si128(_mm_cmpgt_epi8(lower, _mm_set1_epi8('a' - 1)),
                                       _mm_cmplt_epi8(lower, _mm_set1_epi8('z' + 1)));
        __m128i digit =
            _mm_and_si128(_mm_cmpgt_epi8(v, _mm_set1_epi8('0' - 1)), _mm_cmplt_epi8(v, _mm_set1_epi8('9' + 1)));
        m.high |= (uint64_t)wb_scan_mask(v) << k;
        m.word |= (uint64_t)wb_scan_mask(_mm_or_si128(letter, digit)) << k;
    }
#else
    for (unsigned k = 0; k < 64; k++) {
        char lower = (char)(p[k] | 0x20);
        m.high |= (uint64_t)((uint8_t)p[k] >= 0x80) << k;
        m.word |= (uint64_t)((lower >= 'a' && lower <= 'z') || (p[k] >= '0' && p[k] <= '9')) << k;
    }
#endif
    m.word |= m.high;
    return m;
}

static bool in_word(char c)
{
    return (uint8_t)c >= 0x80 || (c >= '0' && c <= '9') || (wb_ascii_lower(c) >= 'a' && wb_ascii_lower(c) <= 'z');
}

/*
 * Adds the words that end within the 64 bytes at p. Returns how many bytes that took: up to the start
 * of the last word, if it continues beyond them; 0 if that word is all 64 bytes.
 */
static size_t add_words(struct shingler *s, const char *p)
{
    struct masks m = classify(p);

    while (m.word) {
        unsigned start = (unsigned)__builtin_ctzll(m.word);
        uint64_t behind = ~(m.word >> start);
        unsigned len = behind ? (unsigned)__builtin_ctzll(behind) : 64;
        if (start + len == 64)
            return start;
        uint64_t bits = ((UINT64_C(1) << len) - 1) << start;
        if (m.high & bits)
            add_mixed(s, p + start, len);
        else
            add_ascii(s, p + start, len);
        m.word &= ~bits;
    }
    return 64;
}

uint64_t wb_simhash_of(struct wb_slice utf8)
{
    struct shingler s = {.words = 0};
    const char *p = utf8.ptr, *end = utf8.ptr + utf8.len;
    char tail[2 * 64 + 8] = {0};

    while (end - p >= 64 + 8) {
        size_t done = add_words(&s, p);
        if (done == 0) {
            /* A very long word, or a text without blanks. */
            for (done = 64; p + done < end && in_word(p[done]);)
                done++;
            add_mixed(&s, p, done);
        }
        p += done;
    }
    size_t left = (size_t)(end - p);
    memcpy(tail, p, left);
    for (size_t at = 0; at < left;) {
        size_t done = add_words(&s, tail + at);
        if (done == 0) {
            done = left - at;
            add_mixed(&s, tail + at, done);
        }
        at += done;
    }
    if (s.words == 0)
        return 0;
    if (s.words < 3)
        count_hash(&s.counter, mix((s.first * MUL_A + s.second) * MUL_B));
    uint64_t hash = count_majority(&s.counter);
    return hash ? hash : 1;
}
