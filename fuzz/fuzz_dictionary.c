/*
 * fuzz_dictionary.c - reads a hostile dictionary, without checksums: walks through it, looks for keys, and opens the
 * lists that are inlined.
 *
 *   input   flags (1: bit 0: make the foot fit the rest), and then the dictionary
 *
 * Nothing may be read outside of these bytes.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "postings/dictionary.h"

#include <stdlib.h>

enum { DOCS = 1 << 16, STEPS_MAX = 3000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t lengths[DOCS];

static void try_term(struct wb_postings *set, struct wb_slice key, const struct wb_term *term)
{
    struct wb_postlist *list;

    WB_CHECK(key.len <= WB_TERM_MAX);
    WB_CHECK(term->df > 0);
    if (wb_postlist_open(set, term, &list) < 0)
        return;
    for (uint32_t docid = list->docid; docid != WB_DOCID_END; docid = wb_postlist_next(list))
        WB_CHECK(docid < DOCS);
    wb_postlist_close(list);
}

static void read_dictionary(struct wb_postings *set, struct wb_slice input)
{
    struct wb_terms *terms;
    struct wb_slice key;
    struct wb_term term;

    WB_CHECK(wb_terms_open(set, &terms) == 0);
    for (unsigned n = 0; n < STEPS_MAX && wb_terms_next(terms, &key, &term) == 1; n++)
        try_term(set, key, &term);
    for (size_t i = 0; i < 40 && i < input.len; i++) {
        struct wb_slice any = wb_slice(input.ptr + i, input.len - i < 12 ? input.len - i : 1 + i % 12);
        if (wb_postings_find(set, any, &term) == 1)
            try_term(set, any, &term);
        if (wb_terms_seek(terms, any) == 0 && wb_terms_next(terms, &key, &term) == 1)
            try_term(set, key, &term);
    }
    wb_terms_close(terms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_postings set = {.lengths = lengths, .docs = DOCS};
    static char nothing[64];
    static atomic_uchar checked[1] = {1};

    if (size < 1 + DICTIONARY_FOOT_BYTES)
        return 0;
    size_t len = size - 1;
    char *copy = malloc(len);
    WB_CHECK(copy != NULL);
    memcpy(copy, data + 1, len);
    char *foot = copy + len - DICTIONARY_FOOT_BYTES;
    if (data[0] & 1) {
        memcpy(foot, DICTIONARY_FOOT_MAGIC, 8);
        wb_put64(foot + 24, wb_get64(foot + 24) % (len - DICTIONARY_FOOT_BYTES + 1));
        wb_put64(foot + 16, wb_get64(foot + 16) % ((len - DICTIONARY_FOOT_BYTES - wb_get64(foot + 24)) / 12 + 1));
    }
    set.dictionary = (struct wb_blob){.data = copy, .bytes = len, .map = copy, .path = (char *)"fuzz"};
    set.dictionary.checked = malloc(len / 65536 + 1);
    WB_CHECK(set.dictionary.checked != NULL);
    memset(set.dictionary.checked, 1, len / 65536 + 1);
    /* There are no lists and positions; but the foot says how many bytes they have. */
    set.lists = (struct wb_blob){.data = nothing, .map = nothing, .path = (char *)"fuzz", .checked = checked};
    set.positions = set.lists;
    wb_put64(foot + 32, 0);
    wb_put64(foot + 40, 0);
    if (wb_dictionary_check(&set) == 0)
        read_dictionary(&set, wb_slice((const char *)data, size));
    free(set.dictionary.checked);
    free(copy);
    return 0;
}
