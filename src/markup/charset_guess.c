/*
 * charset_guess.c - guesses the encoding of bytes about which nothing is said.
 *
 *   UTF-16 by its zeros -> ASCII -> UTF-8 -> ISO-2022-JP by its escapes -> ICU's detector -> windows-1252
 *
 * The first four take hardly any time and decide nearly every page. ICU's detector looks for the
 * structure of multi-byte encodings and for common trigrams of single-byte ones. It is slow, so we
 * show it at most SAMPLE bytes, from around the bytes that are not ASCII. In a page with markup we
 * show it only the text, because tags, scripts and styles look like English. Apart from the search
 * for the first byte that is not ASCII, nothing here depends on the length of the document.
 */
#include "markup/charset.h"

#include <unicode/ucsdet.h>

enum {
    WINDOW = 64 << 10,   /* how far we look for UTF-8 */
    MARKUP = 1 << 20,    /* how far we look for text between tags... */
    TEXT = 16 << 10,     /* ...of which this much is enough */
    UTF16_LOOKED = 1024,
    SAMPLE = 3 << 10,    /* how much the detector is shown */
    AROUND = 48,         /* how much ASCII is kept on both sides of other bytes */
    HIGH_MIN = 4,        /* fewer bytes that are not ASCII say nothing */
};

/* UTF-16 text has many characters below U+0100, at least its blanks and digits: every other byte is often zero. */
static const char *guess_utf16(struct wb_slice s)
{
    size_t zeros[2] = {0, 0}, len = (s.len < UTF16_LOOKED ? s.len : UTF16_LOOKED) & ~(size_t)1;

    if (!memchr(s.ptr, 0, len))
        return NULL;
    for (size_t i = 0; i < len; i++)
        zeros[i % 2] += s.ptr[i] == 0;
    if (zeros[1] * 8 >= len && zeros[1] > 16 * zeros[0])
        return "utf-16le";
    return zeros[0] * 8 >= len && zeros[0] > 16 * zeros[1] ? "utf-16be" : NULL;
}

/* True if there are the escape sequences of ISO-2022-JP, which is Japanese in seven bits. */
static bool has_escapes(struct wb_slice s)
{
    struct wb_slice front = wb_slice(s.ptr, s.len < WINDOW ? s.len : WINDOW);

    return memmem(front.ptr, front.len, "\x1b$B", 3) || memmem(front.ptr, front.len, "\x1b$@", 3);
}

/* True if all of it is UTF-8, except that the last character may be cut off. */
static bool looks_utf8(struct wb_slice s)
{
    size_t valid = wb_decode_utf8_prefix(s.ptr, s.len);

    return valid == s.len || (valid > 0 && s.len - valid < 4);
}

/* ---- text without markup ------------------------------------------------------------------- */

/* In every encoding that we consider, the bytes of "<", ">" and "&" mean these characters and nothing else. */

static size_t find_end(struct wb_slice s, size_t at, struct wb_slice end)
{
    const char *hit = at < s.len ? memmem(s.ptr + at, s.len - at, end.ptr, end.len) : NULL;

    return hit ? (size_t)(hit - s.ptr) + end.len : s.len;
}

/* Returns the end of an element without text, such as <script>, whose start tag begins at `at`. */
static size_t skip_element(struct wb_slice s, size_t at, struct wb_slice name)
{
    while ((at = find_end(s, at, WB_SLICE_LIT("</"))) < s.len)
        if (wb_slice_starts_nocase(wb_slice(s.ptr + at, s.len - at), name))
            return find_end(s, at, WB_SLICE_LIT(">"));
    return s.len;
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '#';
}

/* Returns the end of the markup that begins at `at`, or `at` if none begins there. */
static size_t skip_markup(struct wb_slice s, size_t at)
{
    struct wb_slice rest = wb_slice(s.ptr + at, s.len - at);

    if (*rest.ptr == '&') { /* a reference */
        size_t end = 1;
        while (end < rest.len && end < 32 && is_name(rest.ptr[end]))
            end++;
        return end > 1 ? at + end + (end < rest.len && rest.ptr[end] == ';') : at;
    }
    if (wb_slice_starts(rest, WB_SLICE_LIT("<!--")))
        return find_end(s, at + 4, WB_SLICE_LIT("-->"));
    if (wb_slice_starts_nocase(rest, WB_SLICE_LIT("<script")))
        return skip_element(s, at, WB_SLICE_LIT("script"));
    if (wb_slice_starts_nocase(rest, WB_SLICE_LIT("<style")))
        return skip_element(s, at, WB_SLICE_LIT("style"));
    bool tag = rest.len > 1 && (is_name(rest.ptr[1]) || (rest.ptr[1] && strchr("/!?", rest.ptr[1])));
    return tag ? find_end(s, at, WB_SLICE_LIT(">")) : at;
}

static size_t count_high(struct wb_slice s)
{
    size_t high = 0;

    for (size_t i = 0; i < s.len; i++)
        high += (uint8_t)s.ptr[i] >= 0x80;
    return high;
}

/*
 * Copies the text between tags, with a blank for each tag. If TEXT bytes of it are all ASCII, it
 * starts again behind them.
 */
static size_t take_text(struct wb_slice s, char text_out[TEXT])
{
    size_t n = 0, at = 0;

    while (at < s.len) {
        if (n == TEXT) {
            if (count_high(wb_slice(text_out, n)) >= HIGH_MIN)
                break;
            n = 0;
        }
        size_t end = s.ptr[at] == '<' || s.ptr[at] == '&' ? skip_markup(s, at) : at;
        bool blank = end > at || (uint8_t)s.ptr[at] <= ' ';
        if (!blank || (n > 0 && text_out[n - 1] != ' '))
            text_out[n++] = blank ? ' ' : s.ptr[at];
        at = end > at ? end : at + 1;
    }
    return n;
}

/* ---- asking the detector ---------------------------------------------------------------------------------- */

/* Takes the bytes that are not ASCII and a little around them; a blank replaces what is left out. */
static size_t take_sample(struct wb_slice s, char sample_out[SAMPLE])
{
    size_t n = 0, at = 0;

    while (at < s.len && n + 2 * AROUND + 1 < SAMPLE) {
        size_t ascii = wb_decode_ascii_prefix(s.ptr + at, s.len - at);
        if (ascii > 2 * AROUND) {
            memcpy(sample_out + n, s.ptr + at, AROUND);
            n += AROUND;
            sample_out[n++] = ' ';
            at += ascii - AROUND;
            ascii = AROUND;
            if (at + ascii == s.len)
                break;
        }
        memcpy(sample_out + n, s.ptr + at, ascii);
        n += ascii;
        at += ascii;
        while (at < s.len && n < SAMPLE && (uint8_t)s.ptr[at] >= 0x80)
            sample_out[n++] = s.ptr[at++];
    }
    return n;
}

/* Rejects an answer that the standard does not have, or that is impossible without a BOM or escapes. */
static const char *usable_name(const char *icu_name)
{
    const struct wb_encoding *encoding = wb_encoding_by_label(wb_slice_str(icu_name));

    if (!encoding)
        return NULL;
    bool usable =
        encoding->way == WB_ENCODING_SINGLE || encoding->way == WB_ENCODING_ICU || encoding->way == WB_ENCODING_UTF8;
    return usable ? encoding->name : NULL;
}

static const char *ask_detector(const char *sample, size_t len)
{
    UErrorCode status = U_ZERO_ERROR;
    UCharsetDetector *detector = ucsdet_open(&status);
    const char *name = NULL;
    int32_t count = 0;

    if (U_FAILURE(status))
        return NULL;
    ucsdet_setText(detector, sample, (int32_t)len, &status);
    const UCharsetMatch **matches = ucsdet_detectAll(detector, &count, &status);
    for (int32_t i = 0; U_SUCCESS(status) && i < count && !name; i++)
        name = usable_name(ucsdet_getName(matches[i], &status));
    ucsdet_close(detector);
    return name;
}

/*
 * Corrects the detector: it knows neither the Cyrillic of DOS nor Ukrainian in KOI8, and if there is
 * hardly any text, it answers at random.
 */
static const char *correct_answer(const char *name, const char *sample, size_t len)
{
    size_t high = 0, dos_letters = 0, dos_middle = 0, ukrainian = 0, pairs = 0;

    for (size_t i = 0; i < len; i++) {
        uint8_t b = (uint8_t)sample[i];
        high += b >= 0x80;
        pairs += b >= 0x80 && i + 1 < len && (uint8_t)sample[i + 1] >= 0x80;
        dos_middle += b >= 0xa0 && b <= 0xaf;
        dos_letters += (b >= 0x80 && b <= 0xaf) || (b >= 0xe0 && b <= 0xf1);
        ukrainian +=
            b == 0xa4 || b == 0xa6 || b == 0xa7 || b == 0xad || b == 0xb4 || b == 0xb6 || b == 0xb7 || b == 0xbd;
    }
    if (high < HIGH_MIN)
        return "windows-1252";
    if (strcmp(name, "koi8-r") == 0 && ukrainian * 50 > high)
        return "koi8-u";
    /* In the Cyrillic of DOS, half of the letters are 0xa0 to 0xaf, where other encodings have signs. */
    if (strncmp(name, "windows-125", 11) == 0 && dos_letters * 20 >= high * 19 && dos_middle * 4 >= high &&
        pairs * 2 >= high)
        return "ibm866";
    return name;
}

/*
 * The Greek encodings of ISO and Windows differ in one letter. Where one has it, the other has an
 * apostrophe or a paragraph sign, which cannot be at the start of a word.
 */
static const char *which_greek(const char *name, const char *sample, size_t len)
{
    size_t windows = 0, iso = 0;

    if (strcmp(name, "iso-8859-7") != 0 && strcmp(name, "windows-1253") != 0)
        return name;
    for (size_t i = 0; i + 1 < len; i++) {
        bool starts = (i == 0 || sample[i - 1] == ' ') && (uint8_t)sample[i + 1] >= 0xc1;
        windows += starts && (uint8_t)sample[i] == 0xa2;
        iso += starts && (uint8_t)sample[i] == 0xb6;
    }
    return windows > iso ? "windows-1253" : iso > windows ? "iso-8859-7" : name;
}

/* Asks the detector about a sample of the bytes, and corrects its answer. */
static const char *guess_by_sample(struct wb_slice bytes)
{
    char sample[SAMPLE];
    size_t len = take_sample(bytes, sample);
    const char *name = ask_detector(sample, len);

    return which_greek(correct_answer(name ? name : "windows-1252", sample, len), sample, len);
}

const char *wb_charset_guess(struct wb_slice bytes, bool markup, const char *ascii)
{
    char text[TEXT];
    const char *name = guess_utf16(bytes);

    if (name)
        return name;
    size_t at = wb_decode_ascii_prefix(bytes.ptr, bytes.len);
    if (at == bytes.len)
        return has_escapes(bytes) ? "iso-2022-jp" : ascii;
    if (looks_utf8(wb_slice(bytes.ptr + at, bytes.len - at < WINDOW ? bytes.len - at : WINDOW)))
        return "utf-8";
    if (markup) {
        struct wb_slice plain =
            wb_slice(text, take_text(wb_slice(bytes.ptr, bytes.len < MARKUP ? bytes.len : MARKUP), text));
        if (count_high(plain) >= HIGH_MIN)
            return guess_by_sample(plain);
    }
    size_t front = at < AROUND ? at : AROUND;
    struct wb_slice rest = wb_slice(bytes.ptr + at - front, bytes.len - at + front);
    rest.len = rest.len < WINDOW ? rest.len : WINDOW;
    return guess_by_sample(rest);
}
