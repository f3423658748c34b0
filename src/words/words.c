/*
 * words.c - the door: reads a text word by word.
 *
 * Most words are up to 15 ASCII letters followed by a blank or a comma. They are read here, 16 bytes at a time.
 * Everything else is left to cluster.c and grams.c, which would give the same words for those.
 */
#include "words/words.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "words/wordscan.h"

/* Define WB_SCAN_PLAIN to test the code for other processors. */
#if defined(__SSE2__) && !defined(WB_SCAN_PLAIN)
#include <emmintrin.h>
#define QUICK_WIDE
#endif

int wb_words_new(struct wb_words **words_out)
{
    struct wb_words *w = wb_alloc_zero(1, sizeof *w);

    *words_out = NULL;
    if (!w)
        return WB_E_NOMEM;
    w->magic = WB_WORDS_MAGIC;
    w->asked_algorithm = wb_stem_algorithm(0); /* of "" */
    if (wb_stemmers_init(&w->stemmers) < 0) {
        wb_words_free(w);
        return WB_E_NOMEM;
    }
    *words_out = w;
    return 0;
}

void wb_words_free(struct wb_words *w)
{
    if (!w)
        return;
    WB_CHECK(w->magic == WB_WORDS_MAGIC);
    w->magic = 0;
    wb_stemmers_release(&w->stemmers);
    wb_free(w);
}

int wb_words_begin(struct wb_words *w, struct wb_slice text, const char *language)
{
    WB_CHECK(w->magic == WB_WORDS_MAGIC);
    w->text = text;
    w->at = w->taken = 0;
    w->position = 0;
    w->queued = w->given = 0;
    w->chained = w->in_run = false;
    w->url = WB_WORDS_URL_NONE;
    w->algorithm = language ? wb_stem_algorithm(wb_language_number(wb_slice_str(language))) : WB_STEM_NONE;
    return wb_stemmers_prepare(&w->stemmers, w->algorithm);
}

/* ---- stems --------------------------------------------------------------------------------------------------- */

static bool has_digit(const char *word, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (wb_ascii_is_digit(word[i]))
            return true;
    return false;
}

int wb_words_stem(struct wb_words *w, int algorithm, const char *word, size_t len, struct wb_slice *stem_out)
{
    const char *apostrophe = memchr(word, '\'', len);

    *stem_out = wb_slice(word, len);
    if (algorithm == WB_STEM_NONE)
        return 0;
    if (apostrophe) {
        size_t base = (size_t)(apostrophe - word);
        if (len - base != 2 || word[len - 1] != 's' || base == 0)
            return 0;
        /* "Knuth's" is found by "Knuth", in every language. */
        memcpy(w->base, word, base);
        memset(w->base + base, 0, 16);
        word = w->base;
        len = base;
        *stem_out = wb_slice(word, len);
    }
    return has_digit(word, len) ? 0 : wb_stem_find(&w->stemmers, algorithm, word, len, w->stem, stem_out);
}

/* Callers ask about one language again and again, and finding its number takes longer than most stems. */
static int algorithm_of(struct wb_words *w, const char *language)
{
    size_t len = strlen(language);

    if (len >= sizeof w->asked || strcmp(language, w->asked) != 0) {
        w->asked_algorithm = wb_stem_algorithm(wb_language_number(wb_slice(language, len)));
        memcpy(w->asked, len < sizeof w->asked ? language : "?", len < sizeof w->asked ? len + 1 : 2);
    }
    return w->asked_algorithm;
}

int wb_words_stem_last(struct wb_words *w, const struct wb_word *word, const char *language, struct wb_slice *stem_out)
{
    WB_CHECK(w->magic == WB_WORDS_MAGIC);
    WB_CHECK(word->kind == WB_WORD_PLAIN);
    int algorithm = algorithm_of(w, language);
    int err = wb_stemmers_prepare(&w->stemmers, algorithm);

    return err < 0 ? err : wb_words_stem(w, algorithm, word->exact.ptr, word->exact.len, stem_out);
}

/* ---- words of ASCII letters ------------------------------------------------------------------------------------ */

/* What a byte is to the reader of simple words. */
enum byte_kind {
    BYTE_LETTER = 1 << 0,
    BYTE_HIGH = 1 << 1,   /* beyond ASCII */
    BYTE_JOIN = 1 << 2,   /* it ends a word only if a blank follows */
    BYTE_SYMBOL = 1 << 3, /* it may belong to the word before it */
    BYTE_PREFIX = 1 << 4, /* it may belong to the word behind it */
    BYTE_BLANK = 1 << 5,
};

static const uint8_t byte_kinds[256] = {
    [0 ... ' '] = BYTE_BLANK,
    ['#'] = BYTE_SYMBOL | BYTE_PREFIX,
    ['&'] = BYTE_JOIN,
    ['\''] = BYTE_JOIN,
    ['+'] = BYTE_SYMBOL,
    ['-'] = BYTE_JOIN,
    ['.'] = BYTE_JOIN | BYTE_PREFIX,
    ['0' ... '9'] = BYTE_LETTER,
    [':'] = BYTE_JOIN,
    ['@'] = BYTE_PREFIX,
    ['A' ... 'Z'] = BYTE_LETTER,
    ['_'] = BYTE_SYMBOL | BYTE_PREFIX,
    ['a' ... 'z'] = BYTE_LETTER,
    [0x80 ... 0xff] = BYTE_HIGH,
};

#define QUICK_BYTES 16

/* Folds letters and digits from p until anything else comes; zeros follow. Returns how many, QUICK_BYTES at most. */
#ifdef QUICK_WIDE
static inline unsigned take_letters(const char *p, size_t left, char out[QUICK_BYTES], bool *digit)
{
    char padded[QUICK_BYTES] = {0};

    if (left < QUICK_BYTES) {
        memcpy(padded, p, left);
        p = padded;
    }
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p), lower = _mm_or_si128(v, _mm_set1_epi8(0x20));
    __m128i from_a = _mm_sub_epi8(lower, _mm_set1_epi8('a')), from_0 = _mm_sub_epi8(v, _mm_set1_epi8('0'));
    __m128i is_letter = _mm_cmpeq_epi8(_mm_min_epu8(from_a, _mm_set1_epi8(25)), from_a);
    __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(from_0, _mm_set1_epi8(9)), from_0);
    unsigned word = (unsigned)_mm_movemask_epi8(_mm_or_si128(is_letter, is_digit));
    unsigned len = (unsigned)__builtin_ctz(~word);
    static const uint8_t ones[2 * QUICK_BYTES] = {255, 255, 255, 255, 255, 255, 255, 255,
                                                  255, 255, 255, 255, 255, 255, 255, 255};
    __m128i mask = _mm_loadu_si128((const __m128i *)(const void *)(ones + QUICK_BYTES - len));
    _mm_storeu_si128((__m128i *)(void *)out, _mm_and_si128(lower, mask));
    *digit = (unsigned)_mm_movemask_epi8(is_digit) & ((1u << len) - 1);
    return len;
}
#else
static inline unsigned take_letters(const char *p, size_t left, char out[QUICK_BYTES], bool *digit)
{
    unsigned len = 0;

    memset(out, 0, QUICK_BYTES);
    *digit = false;
    while (len < QUICK_BYTES && len < left && wb_fold_ascii[(uint8_t)p[len]]) {
        out[len] = (char)wb_fold_ascii[(uint8_t)p[len]];
        *digit |= out[len] <= '9';
        len++;
    }
    return len;
}
#endif

/* True if a word that ends at `at` may be part of something longer. */
static inline bool goes_on(struct wb_slice text, size_t at)
{
    if (at == text.len)
        return false;
    uint8_t kind = byte_kinds[(uint8_t)text.ptr[at]];
    if (kind & (BYTE_HIGH | BYTE_SYMBOL))
        return true;
    return kind & BYTE_JOIN && at + 1 < text.len && !(byte_kinds[(uint8_t)text.ptr[at + 1]] & BYTE_BLANK);
}

/* Reads a simple word. Returns 1 if the next word is one, 0 if not, WB_E_NOMEM. */
static inline int take_quick(struct wb_words *w, struct wb_word *word_out)
{
    struct wb_slice text = w->text;
    size_t at = w->at;
    bool digit;

    if (w->chained || w->url)
        return 0;
    while (at < text.len && !(byte_kinds[(uint8_t)text.ptr[at]] & (BYTE_LETTER | BYTE_HIGH)))
        at++;
    w->at = at;
    if (at == text.len || byte_kinds[(uint8_t)text.ptr[at]] & BYTE_HIGH)
        return 0;
    if (at > 0 && byte_kinds[(uint8_t)text.ptr[at - 1]] & BYTE_PREFIX)
        return 0;
    char *bytes = w->parts[0].bytes;
    unsigned len = take_letters(text.ptr + at, text.len - at, bytes, &digit);
    if (len == QUICK_BYTES || goes_on(text, at + len))
        return 0;
    *word_out = (struct wb_word){.exact = wb_slice(bytes, len),
                                 .stem = wb_slice(bytes, len),
                                 .begin = at,
                                 .end = at + len,
                                 .position = w->position++,
                                 .kind = WB_WORD_PLAIN};
    w->at = w->taken = at + len;
    if (digit || w->algorithm == WB_STEM_NONE)
        return 1;
    int err = wb_stem_find(&w->stemmers, w->algorithm, bytes, len, w->stem, &word_out->stem);
    return err < 0 ? err : 1;
}

/* ---- all words ----------------------------------------------------------------------------------------------- */

static int take_queued(struct wb_words *w, struct wb_word *word_out)
{
    *word_out = w->queue[w->given++];
    word_out->stem = word_out->exact;
    if (word_out->kind != WB_WORD_PLAIN)
        return 1;
    int err = wb_words_stem(w, w->algorithm, word_out->exact.ptr, word_out->exact.len, &word_out->stem);
    return err < 0 ? err : 1;
}

int wb_words_next(struct wb_words *w, struct wb_word *word_out)
{
    WB_CHECK(w->magic == WB_WORDS_MAGIC);
    for (;;) {
        if (w->given < w->queued)
            return take_queued(w, word_out);
        if (w->in_run) {
            wb_words_next_gram(w, word_out);
            return 1;
        }
        int quick = take_quick(w, word_out);
        if (quick)
            return quick;
        if (!wb_words_scan(w))
            return 0;
    }
}
