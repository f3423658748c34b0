/*
 * languages.c - the numbers of languages, and which of them have a stemming algorithm.
 *
 * Both tables end up in files: a number is never given to another language. Append only.
 */
#include "words/stem.h"
#include "base/check.h"

#include <pthread.h>

/* By number. 1 to 184 are ISO 639-1 in order; then a retired code, and codes of ISO 639-3 that CLD2 knows. */
static const char codes[WB_LANGUAGES][4] = {
    "",    "aa",  "ab",  "ae",  "af",  "ak",  "am",  "an",  "ar",  "as",  "av",  "ay",  "az",  "ba",  "be",  "bg",
    "bh",  "bi",  "bm",  "bn",  "bo",  "br",  "bs",  "ca",  "ce",  "ch",  "co",  "cr",  "cs",  "cu",  "cv",  "cy",
    "da",  "de",  "dv",  "dz",  "ee",  "el",  "en",  "eo",  "es",  "et",  "eu",  "fa",  "ff",  "fi",  "fj",  "fo",
    "fr",  "fy",  "ga",  "gd",  "gl",  "gn",  "gu",  "gv",  "ha",  "he",  "hi",  "ho",  "hr",  "ht",  "hu",  "hy",
    "hz",  "ia",  "id",  "ie",  "ig",  "ii",  "ik",  "io",  "is",  "it",  "iu",  "ja",  "jv",  "ka",  "kg",  "ki",
    "kj",  "kk",  "kl",  "km",  "kn",  "ko",  "kr",  "ks",  "ku",  "kv",  "kw",  "ky",  "la",  "lb",  "lg",  "li",
    "ln",  "lo",  "lt",  "lu",  "lv",  "mg",  "mh",  "mi",  "mk",  "ml",  "mn",  "mr",  "ms",  "mt",  "my",  "na",
    "nb",  "nd",  "ne",  "ng",  "nl",  "nn",  "no",  "nr",  "nv",  "ny",  "oc",  "oj",  "om",  "or",  "os",  "pa",
    "pi",  "pl",  "ps",  "pt",  "qu",  "rm",  "rn",  "ro",  "ru",  "rw",  "sa",  "sc",  "sd",  "se",  "sg",  "si",
    "sk",  "sl",  "sm",  "sn",  "so",  "sq",  "sr",  "ss",  "st",  "su",  "sv",  "sw",  "ta",  "te",  "tg",  "th",
    "ti",  "tk",  "tl",  "tn",  "to",  "tr",  "ts",  "tt",  "tw",  "ty",  "ug",  "uk",  "ur",  "uz",  "ve",  "vi",
    "vo",  "wa",  "wo",  "xh",  "yi",  "yo",  "za",  "zh",  "zu",  "sh",  "ceb", "chr", "crs", "gaa", "haw", "hmn",
    "kha", "kri", "lif", "loz", "lua", "luo", "mfe", "new", "nso", "pam", "raj", "sco", "syr", "tum", "war",
};

/* The languages that Snowball has an algorithm for. */
static const struct {
    const char *code, *algorithm;
} stemmed[] = {
    {"ar", "arabic"},    {"ca", "catalan"},    {"da", "danish"},     {"de", "german"},   {"el", "greek"},
    {"en", "english"},   {"es", "spanish"},    {"eu", "basque"},     {"fi", "finnish"},  {"fr", "french"},
    {"ga", "irish"},     {"hi", "hindi"},      {"hu", "hungarian"},  {"hy", "armenian"}, {"id", "indonesian"},
    {"it", "italian"},   {"lt", "lithuanian"}, {"nb", "norwegian"},  {"ne", "nepali"},   {"nl", "dutch"},
    {"nn", "norwegian"}, {"no", "norwegian"},  {"pt", "portuguese"}, {"ro", "romanian"}, {"ru", "russian"},
    {"sh", "serbian"},   {"sr", "serbian"},    {"sv", "swedish"},    {"ta", "tamil"},    {"tr", "turkish"},
    {"yi", "yiddish"},
};
_Static_assert(sizeof stemmed / sizeof *stemmed == WB_STEM_ALGORITHMS, "stem.h says how many algorithms there are");
_Static_assert(WB_STEM_ALGORITHMS < WB_STEMS_MAX, "each algorithm may give a stem, and the word may be another");

uint8_t wb_language_number(struct wb_slice code)
{
    char lower[4] = "";
    size_t len = 0;

    while (len < code.len && code.ptr[len] != '-' && code.ptr[len] != '_') {
        if (len == 3)
            return 0;
        lower[len] = wb_ascii_lower(code.ptr[len]);
        len++;
    }
    for (uint8_t i = 1; len && i < WB_LANGUAGES; i++)
        if (memcmp(lower, codes[i], sizeof lower) == 0)
            return i;
    return 0;
}

const char *wb_language_code(uint8_t number)
{
    WB_CHECK(number < WB_LANGUAGES);
    return codes[number];
}

/* By the number of the language; queries ask for all languages of an index, for each of their words. */
static int8_t algorithms[WB_LANGUAGES];
static pthread_once_t algorithms_made = PTHREAD_ONCE_INIT;

static void make_algorithms(void)
{
    for (int language = 0; language < WB_LANGUAGES; language++) {
        const char *code = language ? codes[language] : "en";
        algorithms[language] = WB_STEM_NONE;
        for (int i = 0; i < WB_STEM_ALGORITHMS; i++)
            if (strcmp(stemmed[i].code, code) == 0)
                algorithms[language] = (int8_t)i;
    }
}

int wb_stem_algorithm(uint8_t language)
{
    pthread_once(&algorithms_made, make_algorithms);
    return language < WB_LANGUAGES ? algorithms[language] : WB_STEM_NONE;
}

const char *wb_stem_algorithm_name(int algorithm)
{
    WB_CHECK(algorithm >= 0 && algorithm < WB_STEM_ALGORITHMS);
    return stemmed[algorithm].algorithm;
}
