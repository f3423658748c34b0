/*
 * fold.c - computes the table of characters from ICU's data.
 *
 * A character is folded by decomposing it (NFKD), dropping accents, folding its case, and composing what is left
 * (NFKC). This is repeated until nothing changes, so that folded text is folded to itself. It differs from the
 * standard's recipes in a few points, for which docs/design/0024-words.md gives reasons: Cyrillic letters such as й are
 * not accented ones, a stroke through a letter is an accent, all decimal digits are ASCII, and vowel signs are kept.
 */
#include "words/fold.h"
#include "base/check.h"

#include <pthread.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/uscript.h>
#include <unicode/ustring.h>
#include <unicode/utf16.h>

_Atomic unsigned char wb_fold_built[WB_FOLD_PAGES];
uint32_t wb_fold_entries[WB_FOLD_PAGES][256];

const uint8_t wb_fold_ascii[256] = {
    ['0'] = '0', ['1'] = '1', ['2'] = '2', ['3'] = '3', ['4'] = '4', ['5'] = '5', ['6'] = '6', ['7'] = '7', ['8'] = '8',
    ['9'] = '9', ['A'] = 'a', ['B'] = 'b', ['C'] = 'c', ['D'] = 'd', ['E'] = 'e', ['F'] = 'f', ['G'] = 'g', ['H'] = 'h',
    ['I'] = 'i', ['J'] = 'j', ['K'] = 'k', ['L'] = 'l', ['M'] = 'm', ['N'] = 'n', ['O'] = 'o', ['P'] = 'p', ['Q'] = 'q',
    ['R'] = 'r', ['S'] = 's', ['T'] = 't', ['U'] = 'u', ['V'] = 'v', ['W'] = 'w', ['X'] = 'x', ['Y'] = 'y', ['Z'] = 'z',
    ['a'] = 'a', ['b'] = 'b', ['c'] = 'c', ['d'] = 'd', ['e'] = 'e', ['f'] = 'f', ['g'] = 'g', ['h'] = 'h', ['i'] = 'i',
    ['j'] = 'j', ['k'] = 'k', ['l'] = 'l', ['m'] = 'm', ['n'] = 'n', ['o'] = 'o', ['p'] = 'p', ['q'] = 'q', ['r'] = 'r',
    ['s'] = 's', ['t'] = 't', ['u'] = 'u', ['v'] = 'v', ['w'] = 'w', ['x'] = 'x', ['y'] = 'y', ['z'] = 'z',
};

/* UTF-16 text while one character is folded. The longest result, that of U+FDFA, has 18 characters. */
struct fold_text {
    UChar units[3 * WB_FOLD_SEVERAL_MAX];
    int32_t len;
};

static UChar32 next_char(const struct fold_text *text, int32_t *at)
{
    UChar32 c = text->units[(*at)++];

    return c >= 0xd800 && c <= 0xdbff ? U16_GET_SUPPLEMENTARY(c, text->units[(*at)++]) : c;
}

static bool is_mark(UChar32 c)
{
    return U_GET_GC_MASK(c) & U_GC_M_MASK;
}

/* Letters, marks and numbers; not U+02BC, which is written as an apostrophe (cluster.c). */
static bool is_word(UChar32 c)
{
    return U_GET_GC_MASK(c) & (U_GC_L_MASK | U_GC_M_MASK | U_GC_N_MASK) && c != 0x2bc;
}

static bool is_ignorable(UChar32 c)
{
    return u_hasBinaryProperty(c, UCHAR_DEFAULT_IGNORABLE_CODE_POINT) || c == 0x640; /* tatweel only stretches a word */
}

static UScriptCode script_of(UChar32 c)
{
    UErrorCode err = U_ZERO_ERROR;

    return uscript_getScript(c, &err);
}

/* True for the voicing marks of kana. */
static bool is_kana_mark(UChar32 c)
{
    return c == 0x3099 || c == 0x309a;
}

/* True for scripts that are written without blanks; Hangul has blanks, but its words have many endings. */
static bool is_gram(UChar32 c)
{
    switch (script_of(c)) {
    case USCRIPT_HAN:
    case USCRIPT_HIRAGANA:
    case USCRIPT_KATAKANA:
    case USCRIPT_KATAKANA_OR_HIRAGANA:
    case USCRIPT_THAI:
    case USCRIPT_LAO:
    case USCRIPT_KHMER:
    case USCRIPT_MYANMAR:
    case USCRIPT_HANGUL:
        return true;
    default:
        return c == 0x30fc || is_kana_mark(c);
    }
}

/* True for accents and points that a reader can do without. In other scripts, marks are vowels. */
static bool is_accent(UChar32 c)
{
    if (!(U_GET_GC_MASK(c) & (U_GC_MN_MASK | U_GC_ME_MASK)) || is_kana_mark(c))
        return false;
    switch (script_of(c)) {
    case USCRIPT_INHERITED:
    case USCRIPT_COMMON:
    case USCRIPT_LATIN:
    case USCRIPT_GREEK:
    case USCRIPT_CYRILLIC:
    case USCRIPT_HEBREW:
    case USCRIPT_ARABIC:
    case USCRIPT_SYRIAC:
        return true;
    default:
        return false;
    }
}

/* In Cyrillic, a mark makes another letter (й, ї, ў), except for the dots of ё and a grave accent. */
static bool makes_letter(UChar32 base, UChar32 mark)
{
    return script_of(base) == USCRIPT_CYRILLIC && mark != 0x300 && !(mark == 0x308 && u_tolower(base) == 0x435) &&
           wb_fold_compose((uint32_t)base, (uint32_t)mark) != 0;
}

/* Letters with a stroke and ligatures, which have no decomposition; they are in lower case. */
static const char *plain_letters(UChar32 c)
{
    switch (c) {
    case 0xe6:
        return "ae";
    case 0xf8:
        return "o";
    case 0x111:
        return "d";
    case 0x127:
        return "h";
    case 0x131:
        return "i";
    case 0x142:
        return "l";
    case 0x153:
        return "oe";
    case 0x167:
        return "t";
    default:
        return NULL;
    }
}

static void append(struct fold_text *text, UChar32 c)
{
    UBool full = false;

    U16_APPEND(text->units, text->len, 3 * WB_FOLD_SEVERAL_MAX, c, full);
    WB_CHECK(!full);
}

static void normalize(const UNormalizer2 *form, struct fold_text *text)
{
    struct fold_text from = *text;
    UErrorCode err = U_ZERO_ERROR;

    text->len = unorm2_normalize(form, from.units, from.len, text->units, 3 * WB_FOLD_SEVERAL_MAX, &err);
    WB_CHECK(U_SUCCESS(err));
}

/* Drops accents and invisible characters, and turns digits and letters with a stroke into ASCII. */
static void simplify(struct fold_text *text)
{
    struct fold_text from = *text;
    UChar32 c, base = 0;

    text->len = 0;
    for (int32_t i = 0; i < from.len;) {
        c = next_char(&from, &i);
        const char *plain = plain_letters(c);
        if ((is_accent(c) && !makes_letter(base, c)) || is_ignorable(c) || !is_word(c))
            continue;
        if (plain)
            for (; *plain; plain++)
                append(text, *plain);
        else
            append(text, u_charType(c) == U_DECIMAL_DIGIT_NUMBER ? '0' + u_charDigitValue(c) : c);
        base = is_mark(c) ? base : c;
    }
}

/* Folds one character; the text is empty if nothing is left. */
static void fold_one(UChar32 c, struct fold_text *text)
{
    UErrorCode err = U_ZERO_ERROR;
    const UNormalizer2 *nfkd = unorm2_getNFKDInstance(&err), *nfkc = unorm2_getNFKCInstance(&err);
    struct fold_text before;

    WB_CHECK(U_SUCCESS(err)); /* the data is part of the library */
    text->len = 0;
    append(text, c);
    do {
        before = *text;
        normalize(nfkd, text);
        simplify(text);
        struct fold_text lower = *text;
        text->len =
            u_strFoldCase(text->units, 3 * WB_FOLD_SEVERAL_MAX, lower.units, lower.len, U_FOLD_CASE_DEFAULT, &err);
        WB_CHECK(U_SUCCESS(err));
        simplify(text);
        normalize(nfkc, text);
    } while (u_strCompare(before.units, before.len, text->units, text->len, false) != 0);
    int32_t at = 0;
    if (text->len > 0 && is_gram(next_char(text, &at)) && at < text->len) {
        /* A few characters of Thai, Lao and kana would be torn apart, and the pieces would be grams themselves. */
        text->len = 0;
        append(text, c);
    }
}

/* True if the compatibility decomposition has something that is not part of a word, as that of ½ has. */
static bool has_separator(UChar32 c)
{
    struct fold_text text = {.len = 0};
    UErrorCode err = U_ZERO_ERROR;

    append(&text, c);
    normalize(unorm2_getNFKDInstance(&err), &text);
    for (int32_t i = 0; i < text.len;) {
        c = next_char(&text, &i);
        if (!is_word(c))
            return true;
    }
    return false;
}

static bool is_separator(UChar32 c)
{
    if (c == 0x200b) /* a blank of width zero */
        return true;
    if (is_ignorable(c))
        return false;
    return !is_word(c) || (!(U_GET_GC_MASK(c) & (U_GC_L_MASK | U_GC_M_MASK)) && has_separator(c));
}

static uint32_t make_entry(UChar32 c)
{
    struct fold_text text;
    UChar32 first = 0, second = 0;
    int32_t at = 0;
    uint32_t class = WB_FOLD_LETTER, flags = 0;

    if ((c >= 0xd800 && c <= 0xdfff) || is_separator(c))
        return WB_FOLD_SEPARATOR << 21;
    if (is_ignorable(c))
        return WB_FOLD_NOTHING << 21;
    if (is_accent(c))
        return (uint32_t)c | WB_FOLD_ACCENT << 21;
    fold_one(c, &text);
    if (text.len == 0)
        return WB_FOLD_NOTHING << 21;
    first = next_char(&text, &at);
    if (u_getIntPropertyValue(first, UCHAR_NFC_QUICK_CHECK) != UNORM_YES)
        flags |= WB_FOLD_COMPOSES;
    if (U_GET_GC_MASK(first) & U_GC_ND_MASK)
        flags |= WB_FOLD_DIGIT;
    if (is_gram(first))
        class = is_mark(first) ? WB_FOLD_GRAM_MARK : WB_FOLD_GRAM;
    if (at == text.len)
        return (uint32_t)first | class << 21 | flags;
    second = next_char(&text, &at);
    if (at == text.len && first < 0x80 && second < 0x80)
        return (uint32_t)first | (uint32_t)second << 7 | class << 21 | flags | WB_FOLD_PAIR;
    return class << 21 | flags | WB_FOLD_SEVERAL;
}

void wb_fold_build(uint32_t page)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    WB_CHECK(page < WB_FOLD_PAGES);
    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(&wb_fold_built[page], memory_order_relaxed)) {
        for (uint32_t i = 0; i < 256; i++)
            wb_fold_entries[page][i] = make_entry((UChar32)(page << 8 | i));
        atomic_store_explicit(&wb_fold_built[page], 1, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
}

size_t wb_fold_several(uint32_t cp, uint32_t out[WB_FOLD_SEVERAL_MAX])
{
    struct fold_text text;
    UChar32 c;
    size_t count = 0;

    fold_one((UChar32)cp, &text);
    for (int32_t i = 0; i < text.len;) {
        c = next_char(&text, &i);
        WB_CHECK(count < WB_FOLD_SEVERAL_MAX);
        out[count++] = (uint32_t)c;
    }
    return count;
}

uint32_t wb_fold_compose(uint32_t first, uint32_t second)
{
    UErrorCode err = U_ZERO_ERROR;
    UChar32 both = unorm2_composePair(unorm2_getNFCInstance(&err), (UChar32)first, (UChar32)second);

    return both < 0 ? 0 : (uint32_t)both;
}
