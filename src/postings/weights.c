/*
 * weights.c - the numbers that scores are made of: weighted frequencies, lengths as bytes, scorers.
 */
#include "postings/postings.h"
#include "base/check.h"

#include <math.h>

/*
 * A title is short and says what its page is about: who types it wants that page, however long its text is and however
 * often the words are in others. With 12 instead of 32, more titles miss their page (tests/e2e/quality.py).
 */
const uint8_t wb_field_weight[WB_FIELDS] = {
    [WB_FIELD_TITLE] = 32, [WB_FIELD_HEADING] = 8, [WB_FIELD_MAIN] = 4,
    [WB_FIELD_OTHER] = 1,  [WB_FIELD_URL] = 6,     [WB_FIELD_ANCHOR] = 8,
};

/* floor(log2(n)); n is not 0. */
static unsigned log2_of(uint64_t n)
{
    return 63 - (unsigned)__builtin_clzll(n);
}

/*
 * Bytes up to 24 are lengths. From 16 on, a length is 2^e * (1 + m / 8) rounded down, and its byte is 8 * e + m - 12:
 * that is 24 for the length 24.
 */
uint8_t wb_length_byte(uint64_t words)
{
    if (words <= 24)
        return (uint8_t)words;
    unsigned e = log2_of(words), m = (unsigned)(words >> (e - 3)) & 7;
    return 8 * e + m - 12 < 255 ? (uint8_t)(8 * e + m - 12) : 255;
}

uint64_t wb_length_of_byte(uint8_t byte)
{
    if (byte <= 24)
        return byte;
    unsigned code = byte + 12u;
    return (uint64_t)(8 + code % 8) << (code / 8 - 3);
}

double wb_idf(uint64_t docs, uint64_t df)
{
    WB_CHECK(df <= docs);
    return log(1 + ((double)(docs - df) + 0.5) / ((double)df + 0.5));
}

/*
 * The length that a score takes a page to have, in average lengths. BM25 assumes that a page that is twice as long says
 * half as much with each of its words. A reference page is longer because it has many parts, and one of them may be
 * what was asked for: beyond LONG, its length counts less. Beyond HUGE_LENGTH it counts more than it is, because that
 * is no page, but a whole book or site in one file, which finds everything and answers nothing.
 * docs/design/0048-page-kinds.md has the measurements. It never decreases, which bounds of scores rely on.
 */
#define LONG 4.0
#define LONG_POWER 0.75
#define HUGE_LENGTH 64.0
#define HUGE_POWER 1.5

static double counted_length(uint64_t length, double average)
{
    double relative = average > 0 ? (double)length / average : 1;

    if (relative <= LONG)
        return relative;
    if (relative <= HUGE_LENGTH)
        return LONG * pow(relative / LONG, LONG_POWER);
    return LONG * pow(HUGE_LENGTH / LONG, LONG_POWER) * pow(relative / HUGE_LENGTH, HUGE_POWER);
}

void wb_scorer_init(struct wb_scorer *scorer, double idf, double k1, double b, double average_length, double boost)
{
    double unit = idf * boost * (k1 + 1) * WB_SCORE_ONE;

    WB_CHECK(k1 > 0 && b >= 0 && b <= 1);
    scorer->unit = unit < 1 << 30 ? (float)unit : (float)(1 << 30);
    for (unsigned byte = 0; byte < 256; byte++) {
        double relative = counted_length(wb_length_of_byte((uint8_t)byte), average_length);
        double inverse = 1 / (4 * k1 * (1 - b + b * relative));
        /* b = 1 and an empty page: any finite number that is greater than the others will do. */
        scorer->inverse[byte] = inverse < 1e6 ? (float)inverse : 1e6f;
    }
}
