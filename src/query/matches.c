/* matches.c - finds the words of a query in a text. */
#include "query/matches.h"
#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"

#if defined(__SSE2__) && !defined(WB_SCAN_PLAIN)
#include <emmintrin.h>
#define MATCHES_WIDE
#endif

enum {
    PROSE_BYTES = 80,           /* a block that is as long is prose, even if no sentence ends with it */
    SOME_BYTES = 8 << 10,       /* of a text that are looked through if they have some of the words in prose... */
    ELSEWHERE_BYTES = 16 << 10, /* ...and if they have them elsewhere */
};

/* ---- what to look for ---------------------------------------------------------------------------- */

static bool is_alnum(char c)
{
    return wb_ascii_is_letter(c) || wb_ascii_is_digit(c);
}

/* In most languages, a stem begins like its word. These have stems without the prefixes, or in other letters. */
static bool has_prefixes(const char *language)
{
    static const char *const with[] = {"ar", "ga", "id", "nl", "sr", "ta", "yi"};

    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
        if (strcmp(language, with[i]) == 0)
            return true;
    return false;
}

/* How many letters at the end of a stem its words may lack: "happi" is the stem of "happy", "cheval" of "chevaux". */
static size_t changed_letters(const char *language)
{
    bool english = !*language || strcmp(language, "en") == 0;

    return english ? 1 : 3;
}

/* What all words with this stem begin with. "die" is the stem of "dying", "sky" that of "skies". */
static struct wb_slice sure_letters(struct wb_slice stem, size_t changed)
{
    size_t len = stem.len > 3 + changed ? stem.len - changed : stem.len > 3 ? 3 : 2;

    if (stem.len == 3 && stem.ptr[1] == 'i' && stem.ptr[2] == 'e')
        len = 1;
    return wb_slice(stem.ptr, len < stem.len ? len : stem.len);
}

static size_t common_length(struct wb_slice a, struct wb_slice b)
{
    size_t len = 0;

    while (len < a.len && len < b.len && a.ptr[len] == b.ptr[len])
        len++;
    return len;
}

static struct wb_needle make_needle(const struct wb_wanted *wanted, const char *language)
{
    struct wb_needle needle = {.kind = WB_NEEDLE_LETTERS};
    struct wb_slice begin = wanted->exact;
    bool foreign = !wanted->exact.len || (unsigned char)wanted->exact.ptr[0] >= 0x80;

    for (size_t i = 0; !wanted->prefix && i < wanted->stem_count; i++) {
        struct wb_slice stem = sure_letters(wanted->stems[i], changed_letters(language));
        foreign = foreign && stem.len && (unsigned char)stem.ptr[0] >= 0x80;
        begin = begin.len || wanted->exact.len || i > 0 ? wb_slice(begin.ptr, common_length(begin, stem)) : stem;
    }
    while (needle.len < begin.len && needle.len < WB_NEEDLE_MAX && is_alnum(begin.ptr[needle.len])) {
        needle.text[needle.len] = begin.ptr[needle.len];
        needle.len++;
    }
    if (needle.len == 0)
        needle.kind = foreign ? WB_NEEDLE_FOREIGN : WB_NEEDLE_UNKNOWN;
    return needle;
}

static void find_first_bytes(struct wb_matches *m)
{
    memset(m->first, has_prefixes(m->language), sizeof m->first);
    for (size_t i = 0; i < m->wanted_count; i++) {
        const struct wb_wanted *wanted = &m->wanted[i];
        if (wanted->exact.len)
            m->first[(unsigned char)wanted->exact.ptr[0]] = true;
        for (size_t s = 0; s < wanted->stem_count; s++)
            if (wanted->stems[s].len)
                m->first[(unsigned char)wanted->stems[s].ptr[0]] = true;
    }
}

void wb_matches_want(struct wb_matches *m, struct wb_words *words, const struct wb_wanted *wanted, size_t count)
{
    m->words = words;
    m->wanted = wanted;
    m->wanted_count = count < WB_MATCHES_WANTED_MAX ? count : WB_MATCHES_WANTED_MAX;
    m->language = NULL;
}

/* What depends on the language of the text. */
static void use_language(struct wb_matches *m, const char *language)
{
    m->language = language;
    m->unknown = has_prefixes(language);
    m->letters = false;
    memset(m->known, 0, sizeof m->known);
    for (size_t i = 0; i < m->wanted_count; i++) {
        m->needles[i] = make_needle(&m->wanted[i], language);
        m->unknown = m->unknown || m->needles[i].kind == WB_NEEDLE_UNKNOWN;
        m->letters = m->letters || m->needles[i].kind == WB_NEEDLE_LETTERS;
    }
    find_first_bytes(m);
}

void wb_matches_begin(struct wb_matches *m, const char *language, bool lines)
{
    WB_CHECK(m->words && language);
    if (!m->language || strcmp(m->language, language) != 0)
        use_language(m, language);
    m->lines = lines;
    m->done = 0;
    m->block = (struct wb_text_range){0, 0};
    m->in_prose = m->elsewhere = 0;
    wb_vec_clear(&m->items);
}

void wb_matches_release(struct wb_matches *m)
{
    wb_vec_release(&m->items);
}

/* ---- words --------------------------------------------------------------------------------------- */

static bool is_wanted(const struct wb_wanted *wanted, const struct wb_word *word)
{
    if (wanted->prefix)
        return wb_slice_starts(word->exact, wanted->exact);
    if (wanted->exact.len && wb_slice_equal(word->exact, wanted->exact))
        return true;
    for (size_t i = 0; word->kind == WB_WORD_PLAIN && i < wanted->stem_count; i++)
        if (wb_slice_equal(word->stem, wanted->stems[i]))
            return true;
    return false;
}

bool wb_matches_prose(struct wb_slice block)
{
    block = wb_slice_trim(block);
    return block.len >= PROSE_BYTES || (block.len && memchr(".!?;", block.ptr[block.len - 1], 4)) ||
           wb_slice_ends(block, WB_SLICE_LIT("。"));
}

/* Matches come in order, so the block of the last one is often that of the next. */
static bool judge_block(struct wb_matches *m, struct wb_slice text, size_t at)
{
    WB_CHECK(at >= m->block.begin); /* so that the block of the last one may be this one's */
    if (at >= m->block.end) {
        m->block = wb_text_block(text, at);
        m->block_is_prose =
            m->lines || wb_matches_prose(wb_slice(text.ptr + m->block.begin, m->block.end - m->block.begin));
    }
    return m->block_is_prose;
}

/* The number of the wanted word that a word matches; the number of wanted words if there is none. */
static int find_wanted(struct wb_matches *m, struct wb_word *word, unsigned *wanted_out)
{
    int err = word->kind == WB_WORD_PLAIN ? wb_words_stem_last(m->words, word, m->language, &word->stem) : 0;
    unsigned i = 0;

    while (err == 0 && i < m->wanted_count && !is_wanted(&m->wanted[i], word))
        i++;
    *wanted_out = i;
    return err;
}

static int add_match(struct wb_matches *m, struct wb_slice text, size_t begin, size_t end, unsigned wanted)
{
    WB_CHECK(wanted < m->wanted_count);
    WB_CHECK(begin < end && end <= text.len);
    WB_CHECK(m->items.count == 0 || m->items.items[m->items.count - 1].begin <= begin);
    struct wb_match match = {begin, end, wanted, judge_block(m, text, begin)};
    if (match.prose)
        m->in_prose |= UINT64_C(1) << wanted;
    else
        m->elsewhere |= UINT64_C(1) << wanted;
    return wb_vec_push(&m->items, match);
}

/* Whether a word begins as any wanted one does. Most do not, and need no stem. */
static bool may_be_wanted(const struct wb_matches *m, struct wb_slice exact)
{
    if (m->unknown)
        return m->first[(unsigned char)exact.ptr[0]];
    for (size_t i = 0; i < m->wanted_count; i++) {
        const struct wb_needle *needle = &m->needles[i];
        if (needle->kind == WB_NEEDLE_FOREIGN ? (unsigned char)exact.ptr[0] >= 0x80
                                              : wb_slice_starts(exact, wb_slice(needle->text, needle->len)))
            return true;
    }
    return false;
}

/* Reads all words of a part of the text. */
static int read_words(struct wb_matches *m, struct wb_slice text, size_t begin, size_t end)
{
    struct wb_word word;
    unsigned wanted = 0;

    WB_CHECK(begin <= end && end <= text.len);
    int more = 0, err = wb_words_begin(m->words, wb_slice(text.ptr + begin, end - begin), NULL);
    while (err == 0 && m->items.count < WB_MATCHES_MAX && (more = wb_words_next(m->words, &word)) > 0) {
        if (!may_be_wanted(m, word.exact))
            continue;
        err = find_wanted(m, &word, &wanted);
        if (err == 0 && wanted < m->wanted_count)
            err = add_match(m, text, begin + word.begin, begin + word.end, wanted);
    }
    return err < 0 ? err : more < 0 ? more : 0;
}

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ';
}

/* ---- needles ------------------------------------------------------------------------------------- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether a word begins at this place as the needle says. */
static bool is_at(struct wb_slice text, size_t at, size_t end, const struct wb_needle *needle)
{
    if (end - at < needle->len || (at && is_alnum(text.ptr[at - 1])))
        return false;
    for (size_t i = 0; i < needle->len; i++)
        if (lower(text.ptr[at + i]) != needle->text[i])
            return false;
    return true;
}

/* The first place in [at, end) where a word begins as the needle says; end if there is none. */
static size_t find_needle(struct wb_slice text, size_t at, size_t end, const struct wb_needle *needle)
{
    WB_CHECK(needle->kind == WB_NEEDLE_LETTERS && needle->len > 0);
#ifdef MATCHES_WIDE
    size_t next = needle->len > 1;
    __m128i first = _mm_set1_epi8(needle->text[0]), second = _mm_set1_epi8(needle->text[next]),
            small = _mm_set1_epi8(0x20);

    /* Capital letters become small ones; so do a few signs, which is_at() sorts out. */
    for (; at + 16 + next <= end; at += 16) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(text.ptr + at)),
                b = _mm_loadu_si128((const __m128i *)(const void *)(text.ptr + at + next));
        __m128i both = _mm_and_si128(_mm_cmpeq_epi8(_mm_or_si128(a, small), first),
                                     _mm_cmpeq_epi8(_mm_or_si128(b, small), second));
        for (unsigned bits = (unsigned)_mm_movemask_epi8(both); bits; bits &= bits - 1) {
            size_t place = at + (size_t)__builtin_ctz(bits);
            if (is_at(text, place, end, needle))
                return place;
        }
    }
#endif
    while (at < end && !is_at(text, at, end, needle))
        at++;
    return at;
}

/* How many letters of ASCII are in a row at this place, if that is a whole word for certain; otherwise 0. */
static size_t simple_word(struct wb_slice text, size_t at, size_t end)
{
    size_t len = 0;

    while (at + len < end && len < WB_NEEDLE_MAX && wb_ascii_is_letter(text.ptr[at + len]))
        len++;
    if (len == WB_NEEDLE_MAX)
        return 0;
    size_t next = at + len;
    if (next < end && memchr(",.;:)", text.ptr[next], 5))
        next++;
    return next == end || is_blank(text.ptr[next]) ? len : 0;
}

/* Looks a simple word up among those that are known; reads it, and notes it there, if it is not. */
static int read_simple(struct wb_matches *m, struct wb_slice text, size_t at, size_t len)
{
    char word[WB_NEEDLE_MAX] = {0};
    unsigned hash = 0;

    WB_CHECK(len > 0 && len < WB_NEEDLE_MAX);
    for (size_t i = 0; i < len; i++) {
        word[i] = lower(text.ptr[at + i]);
        hash = hash * 31 + (unsigned char)word[i];
    }
    struct wb_known_word *known = &m->known[hash % WB_KNOWN_WORDS];
    if (memcmp(known->text, word, sizeof word) != 0) {
        size_t before = m->items.count;
        int err = read_words(m, text, at, at + len);
        memcpy(known->text, word, sizeof word);
        known->wanted = m->items.count > before ? (uint8_t)m->items.items[before].wanted : WB_MATCHES_WANTED_MAX;
        return err;
    }
    return known->wanted < WB_MATCHES_WANTED_MAX ? add_match(m, text, at, at + len, known->wanted) : 0;
}

/* Reads the words around a needle. *at becomes the place from which on nothing was read. */
static int read_around(struct wb_matches *m, struct wb_slice text, size_t found, size_t end, size_t *at)
{
    size_t from = found, len = 0;

    WB_CHECK(*at <= found && found < end);
    while (from > *at && !is_blank(text.ptr[from - 1]))
        from--;
    if (from == found || (from + 1 == found && text.ptr[from] == '('))
        len = simple_word(text, found, end);
    if (len) {
        *at = found + len;
        return read_simple(m, text, found, len);
    }
    *at = found;
    while (*at < end && !is_blank(text.ptr[*at]))
        ++*at;
    return read_words(m, text, from, *at);
}

/* Reads the words of a part without letters beyond ASCII: only those between blanks where a needle is. */
static int find_in_ascii(struct wb_matches *m, struct wb_slice text, size_t begin, size_t end)
{
    size_t next[WB_MATCHES_WANTED_MAX], found = end, at = begin;
    int err = 0;

    for (size_t i = 0; i < m->wanted_count; i++) {
        bool letters = m->needles[i].kind == WB_NEEDLE_LETTERS;
        next[i] = letters ? find_needle(text, begin, end, &m->needles[i]) : end;
        found = next[i] < found ? next[i] : found;
    }
    while (err == 0 && found < end && m->items.count < WB_MATCHES_MAX) {
        err = read_around(m, text, found, end, &at);
        found = end;
        for (size_t i = 0; i < m->wanted_count; i++) {
            if (next[i] < at)
                next[i] = find_needle(text, at, end, &m->needles[i]);
            found = next[i] < found ? next[i] : found;
        }
    }
    return err;
}

/*
 * The first place of a letter that is not ASCII; end if there is none. Characters whose first byte is C2 or E2 are
 * signs, such as dashes and quotation marks: no word begins with one that is worth a search.
 */
static size_t find_foreign(struct wb_slice text, size_t at, size_t end)
{
#ifdef MATCHES_WIDE
    for (; at + 16 <= end; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(text.ptr + at));
        __m128i high = _mm_cmpeq_epi8(_mm_max_epu8(bytes, _mm_set1_epi8((char)0xc3)), bytes);
        int bits = _mm_movemask_epi8(_mm_andnot_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)0xe2)), high));
        if (bits)
            return at + (size_t)__builtin_ctz((unsigned)bits);
    }
#endif
    while (at < end && ((unsigned char)text.ptr[at] < 0xc3 || (unsigned char)text.ptr[at] == 0xe2))
        at++;
    return at;
}

int wb_matches_find(struct wb_matches *m, struct wb_slice text, size_t end)
{
    int err = 0;

    WB_CHECK(m->language != NULL);
    WB_CHECK(m->done <= end && end <= text.len);
    if (m->unknown && m->done < end) {
        err = read_words(m, text, m->done, end);
        m->done = end;
    }
    while (err == 0 && m->done < end && m->items.count < WB_MATCHES_MAX) {
        size_t at = find_foreign(text, m->done, end), from = at;
        while (at < end && from > m->done && !is_blank(text.ptr[from - 1]))
            from--;
        while (at < end && !is_blank(text.ptr[at]))
            at++;
        if (m->letters)
            err = find_in_ascii(m, text, m->done, from);
        if (err == 0 && from < at)
            err = read_words(m, text, from, at);
        m->done = at;
    }
    m->done = end;
    return err;
}

bool wb_matches_enough(const struct wb_matches *m)
{
    uint64_t all = m->wanted_count < 64 ? (UINT64_C(1) << m->wanted_count) - 1 : UINT64_MAX;

    if (m->items.count >= WB_MATCHES_MAX || (m->in_prose && (m->in_prose | m->elsewhere) == all))
        return true;
    return m->done >= (m->in_prose ? SOME_BYTES : m->elsewhere ? ELSEWHERE_BYTES : SIZE_MAX);
}
