/*
 * alternates.c - finds pages that have the same text in other languages.
 *
 * While the roster is made, the languages of pages are not known yet. So for each language that a URL may name, the
 * sorter gets one record, and one for the URL as it is:
 *
 *   key     hash of the SURT without the code (8 bytes, big-endian), docid (4, big-endian)
 *   value   the number of the language; or 0 and the numbers of all that the URL may name
 *
 * Later the records with one hash are looked at together, and those that do not fit the language of their page are left
 * out. Two URLs with one hash by accident are on different sites nearly always; readers compare the sites.
 */
#include "index/alternates.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "words/words.h"

enum { CODES_MAX = 4, KEY_BYTES = 8 + 4, SURT_BYTES_MAX = 2048 };

/* ---- what a URL says ----------------------------------------------------------------------------- */

struct code {
    size_t begin, end; /* in the SURT */
    uint8_t language;
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_part_of_word(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || (unsigned char)c >= 0x80 || c == '%';
}

/* The end of a region: "-AT" or "_br"; otherwise `at`. */
static size_t skip_region(struct wb_slice surt, size_t at)
{
    bool region = at + 3 <= surt.len && (surt.ptr[at] == '-' || surt.ptr[at] == '_') && is_letter(surt.ptr[at + 1]) &&
                  is_letter(surt.ptr[at + 2]) && (at + 3 == surt.len || !is_part_of_word(surt.ptr[at + 3]));

    return region ? at + 3 : at;
}

/* Finds the codes of languages behind the site. Returns how many there are, at most CODES_MAX. */
static size_t find_codes(struct wb_slice surt, struct code codes[CODES_MAX])
{
    const char *path = memchr(surt.ptr, ')', surt.len);
    size_t count = 0, at = path ? (size_t)(path - surt.ptr) + 1 : surt.len;

    while (at < surt.len && count < CODES_MAX) {
        size_t begin = at;
        while (at < surt.len && is_part_of_word(surt.ptr[at]))
            at++;
        uint8_t language = at - begin == 2 || at - begin == 3
                               ? wb_language_number(wb_slice(surt.ptr + begin, at - begin))
                               : 0;
        if (language) {
            at = skip_region(surt, at);
            codes[count++] = (struct code){begin - 1, at, language}; /* with what parts it from the word before */
        }
        at += at == begin || at < surt.len ? 1 : 0;
    }
    return count;
}

static int note(struct wb_build *build, uint64_t hash, uint32_t docid, struct wb_slice languages)
{
    char key[KEY_BYTES];

    WB_CHECK(languages.len > 0);
    wb_put64_be(key, hash);
    wb_put32_be(key + 8, docid);
    return wb_sorter_add(build->languages, wb_slice(key, sizeof key), languages);
}

int wb_alternates_note(struct wb_build *build, struct wb_slice surt, uint32_t docid)
{
    char without[SURT_BYTES_MAX], all[1 + CODES_MAX] = {0};
    struct code codes[CODES_MAX];
    size_t count = surt.len <= sizeof without ? find_codes(surt, codes) : 0;
    int err = 0;

    for (size_t i = 0; err == 0 && i < count; i++) {
        WB_CHECK(codes[i].begin <= codes[i].end && codes[i].end <= surt.len);
        size_t rest = surt.len - codes[i].end;
        memcpy(without, surt.ptr, codes[i].begin);
        memcpy(without + codes[i].begin, surt.ptr + codes[i].end, rest);
        all[1 + i] = (char)codes[i].language;
        err = note(build, wb_hash64(without, codes[i].begin + rest), docid, wb_slice(all + 1 + i, 1));
    }
    return err < 0 ? err : note(build, wb_hash64(surt.ptr, surt.len), docid, wb_slice(all, 1 + count));
}

/* ---- which pages fit each other -------------------------------------------------------------------- */

/* Whether a URL says what the language of its page is; or, as it is, that it names no language. */
static bool fits(struct wb_slice languages, uint8_t language)
{
    bool plain = languages.ptr[0] == 0;

    for (size_t i = plain ? 1 : 0; i < languages.len; i++)
        if ((uint8_t)languages.ptr[i] == language)
            return !plain;
    return plain;
}

int wb_alternates_find(struct wb_build *build)
{
    struct wb_table_record record;
    uint64_t hash = 0;
    uint32_t first = WB_DOCID_NONE;
    int more = 0, err = wb_sorter_sort(build->languages);

    for (uint32_t docid = 0; docid < build->roster.known; docid++)
        build->alternates[docid] = docid;
    while (err == 0 && (more = wb_sorter_next(build->languages, &record)) > 0) {
        WB_CHECK(record.key.len == KEY_BYTES && record.value.len > 0);
        uint64_t own = wb_get64_be(record.key.ptr);
        uint32_t docid = wb_get32_be(record.key.ptr + 8);
        WB_CHECK(docid < build->roster.known);
        uint8_t language = build->contents[docid].lang;
        if (language == 0 || !fits(record.value, language))
            continue;
        if (own != hash || first == WB_DOCID_NONE) {
            hash = own;
            first = docid;
        }
        /* A page whose URL names its language twice keeps the group that it came into first. */
        if (build->alternates[docid] == docid)
            build->alternates[docid] = first;
    }
    return err < 0 ? err : more;
}
