/*
 * stem.c - stems by Snowball's library, which is given only what it can bear, and a cache in front of it.
 *
 * libstemmer 2.2 (Debian 12) has bugs that later releases mention. Ours to avoid:
 *   - it reports an error for a few words, such as Greek "ισαισα" (snowball issue 204), in the same way as it reports
 *     that memory is exhausted; and after an error, its string variables may be NULL, which it does not expect. So the
 *     word is its own stem then, and the stemmer is made again;
 *   - old versions cut characters in two (issue 89). A stem that is not UTF-8 is not used;
 *   - some algorithms delete all of a word. A stem is never empty.
 * The words are short (WB_WORD_BYTES_MAX), valid UTF-8 and folded, and those with digits are not stemmed.
 */
#include "words/stem.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <libstemmer.h>

int wb_stemmers_init(struct wb_stemmers *s)
{
    *s = (struct wb_stemmers){.slots = wb_alloc_zero(WB_STEM_SLOTS, sizeof *s->slots)};
    return s->slots ? 0 : WB_E_NOMEM;
}

void wb_stemmers_release(struct wb_stemmers *s)
{
    for (int i = 0; i < WB_STEM_ALGORITHMS; i++)
        sb_stemmer_delete(s->made[i]);
    wb_free(s->slots);
    *s = (struct wb_stemmers){.slots = NULL};
}

int wb_stemmers_prepare(struct wb_stemmers *s, int algorithm)
{
    WB_CHECK(algorithm == WB_STEM_NONE || (algorithm >= 0 && algorithm < WB_STEM_ALGORITHMS));
    if (algorithm == WB_STEM_NONE || s->made[algorithm])
        return 0;
    s->made[algorithm] = sb_stemmer_new(wb_stem_algorithm_name(algorithm), "UTF_8");
    return s->made[algorithm] ? 0 : wb_fail_nomem();
}

/* Asks the library. */
static int ask(struct wb_stemmers *s, int algorithm, struct wb_slice word, char *memory, struct wb_slice *stem_out)
{
    struct sb_stemmer *stemmer = s->made[algorithm];

    *stem_out = word;
    const sb_symbol *stem = sb_stemmer_stem(stemmer, (const sb_symbol *)word.ptr, (int)word.len);
    if (!stem) {
        sb_stemmer_delete(stemmer);
        s->made[algorithm] = NULL;
        return wb_stemmers_prepare(s, algorithm);
    }
    struct wb_slice found = wb_slice((const char *)stem, (size_t)sb_stemmer_length(stemmer));
    if (found.len == 0 || found.len > WB_WORD_BYTES_MAX || !wb_utf8_valid(found) || wb_slice_equal(found, word))
        return 0;
    memcpy(memory, found.ptr, found.len);
    *stem_out = wb_slice(memory, found.len);
    return 0;
}

/* ---- the cache ----------------------------------------------------------------------------------------------- */

static struct wb_stem_slot *find_set(struct wb_stemmers *s, int algorithm, const uint64_t *word, size_t count)
{
    uint64_t hash = (uint64_t)algorithm;

    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ word[i]) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 32;
    }
    return &s->slots[hash * 2 % WB_STEM_SLOTS];
}

static bool holds(const struct wb_stem_slot *slot, int algorithm, const uint64_t *word, size_t count)
{
    uint64_t differ = slot->algorithm ^ (uint64_t)algorithm;

    for (size_t i = 0; i < count; i++)
        differ |= slot->word[i] ^ word[i];
    return differ == 0 && (count == WB_STEM_CACHED_BYTES / 8 || slot->word[count] == 0);
}

/* The first slot of a set is the one that was used last; the other one is replaced. */
static void swap_slots(struct wb_stem_slot *set)
{
    struct wb_stem_slot slot = set[0];

    set[0] = set[1];
    set[1] = slot;
}

static struct wb_slice remembered(const struct wb_stem_slot *slot, const char *word, size_t len, char *memory)
{
    if (slot->suffix_len == 0)
        return wb_slice(word, slot->keep);
    WB_CHECK(slot->keep <= len);
    memcpy(memory, word, slot->keep);
    memcpy(memory + slot->keep, slot->suffix, sizeof slot->suffix);
    return wb_slice(memory, (size_t)slot->keep + slot->suffix_len);
}

/* Fills a slot, unless the stem has too little in common with the word. */
static void remember(struct wb_stem_slot *slot, int algorithm, const uint64_t *words, size_t count,
                     struct wb_slice word, struct wb_slice stem)
{
    size_t keep = 0;

    while (keep < word.len && keep < stem.len && word.ptr[keep] == stem.ptr[keep])
        keep++;
    if (stem.len - keep > WB_STEM_SUFFIX_BYTES)
        return;
    *slot = (struct wb_stem_slot){
        .algorithm = (uint8_t)algorithm, .keep = (uint8_t)keep, .suffix_len = (uint8_t)(stem.len - keep)};
    memcpy(slot->word, words, count * sizeof *words);
    memcpy(slot->suffix, stem.ptr + keep, stem.len - keep);
}

int wb_stem_find(struct wb_stemmers *s, int algorithm, const char *word, size_t len, char *memory,
                 struct wb_slice *stem_out)
{
    uint64_t words[WB_STEM_CACHED_BYTES / 8];
    size_t count = (len + 7) / 8;

    WB_CHECK(len > 0 && len <= WB_WORD_BYTES_MAX);
    *stem_out = wb_slice(word, len);
    if (algorithm == WB_STEM_NONE)
        return 0;
    if (len > WB_STEM_CACHED_BYTES)
        return ask(s, algorithm, *stem_out, memory, stem_out);
    memcpy(words, word, 8 * count);
    struct wb_stem_slot *set = find_set(s, algorithm, words, count);
    bool first = holds(&set[0], algorithm, words, count);
    if (first || holds(&set[1], algorithm, words, count)) {
        if (!first)
            swap_slots(set);
        *stem_out = remembered(&set[0], word, len, memory);
        return 0;
    }
    int err = ask(s, algorithm, wb_slice(word, len), memory, stem_out);
    if (err < 0)
        return err;
    set[1] = set[0];
    remember(&set[0], algorithm, words, count, wb_slice(word, len), *stem_out);
    return 0;
}
