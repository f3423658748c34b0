/*
 * phrase.c - whether the words of a phrase are at the right places in a document.
 *
 * In a row: word i is `offset` places behind the beginning of the phrase, in one space (title, headings, body, URL,
 * texts of links). With slop: all words are, in any order, in a stretch that has room for at most that many other
 * words; a word that the phrase has twice must be there twice.
 */
#include "base/check.h"
#include "base/error.h"
#include "query/queryplan.h"

#include <stdlib.h>

/* Behind the positions of two words: no page has so many words, and distances within a phrase are small. */
#define NOWHERE_A ((uint32_t)1 << 31)
#define NOWHERE_B ((uint32_t)3 << 30)

/* ---- the positions of a word ---------------------------------------------------------------------- */

static int compare_positions(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* A word that is in the document in several forms: the positions of all of them together. */
static int merge_positions(struct wb_leaf_words *phrase, size_t number, uint32_t docid)
{
    struct wb_slot *slot = &phrase->slots[number];
    struct wb_positions *all = &phrase->positions[number], one;
    size_t used = 0, first[WB_SPACES];
    int err = 0;

    WB_CHECK(phrase->merged && phrase->merged_cap);

    for (int s = 0; err == 0 && s < WB_SPACES; s++) {
        first[s] = used;
        for (size_t i = 0; err == 0 && i < slot->list_count; i++) {
            if (slot->lists[i]->docid != docid)
                continue;
            err = wb_postlist_positions(slot->lists[i], &one);
            if (err == 0)
                err = wb_grow(&phrase->merged[number], &phrase->merged_cap[number], used + one.count[s] + 1);
            if (err == 0 && one.count[s])
                memcpy(phrase->merged[number] + used, one.at[s], one.count[s] * sizeof *one.at[s]);
            used += err == 0 ? one.count[s] : 0;
        }
        all->count[s] = (uint32_t)(used - first[s]);
        if (err == 0 && all->count[s])
            qsort(phrase->merged[number] + first[s], all->count[s], sizeof(uint32_t), compare_positions);
    }
    for (int s = 0; err == 0 && s < WB_SPACES; s++)
        all->at[s] = phrase->merged[number] + first[s];
    return err;
}

static int read_positions(struct wb_leaf_words *phrase, size_t number, uint32_t docid)
{
    struct wb_slot *slot = &phrase->slots[number];
    struct wb_postlist *only = NULL;
    size_t having = 0;

    WB_CHECK(number < phrase->slot_count);

    for (size_t i = 0; i < slot->list_count; i++)
        if (wb_list_has(slot->lists[i], docid)) {
            only = slot->lists[i];
            having++;
        }
    if (having == 0) { /* only a list that failed can have lost it */
        memset(&phrase->positions[number], 0, sizeof phrase->positions[number]);
        return 0;
    }
    return having == 1 ? wb_postlist_positions(only, &phrase->positions[number])
                       : merge_positions(phrase, number, docid);
}

/* ---- places --------------------------------------------------------------------------------------- */

/* Whether a word is at this place. *at is where to look from, and moves on. */
static bool has_position(const struct wb_positions *positions, int space, uint32_t wanted, uint32_t *at)
{
    const uint32_t *p = positions->at[space];

    WB_CHECK(*at <= positions->count[space]);
    uint32_t count = positions->count[space], low = *at, near = count - low < 8 ? count : low + 8, step = 1;
    while (low < near && p[low] < wanted)
        low++;
    if (low == near && low < count && p[low] < wanted) {
        while (low + step < count && p[low + step] < wanted) {
            low += step;
            step *= 2;
        }
        for (step /= 2; step; step /= 2)
            if (low + step < count && p[low + step] < wanted)
                low += step;
        low++;
    }
    *at = low;
    return low < count && p[low] == wanted;
}

/* The first `count` words in a row: for each place of the one that has the fewest, the others at their distances. */
static bool in_a_row(const struct wb_leaf_words *phrase, int space, size_t count, uint32_t *at)
{
    size_t rarest = 0;

    WB_CHECK(count > 0 && count <= phrase->slot_count);
    for (size_t s = 1; s < count; s++)
        if (phrase->positions[s].count[space] < phrase->positions[rarest].count[space])
            rarest = s;
    uint32_t fewest = phrase->positions[rarest].count[space];
    memset(at, 0, count * sizeof *at);
    for (uint32_t i = 0; i < fewest; i++) {
        uint32_t place = phrase->positions[rarest].at[space][i], offset = phrase->slots[rarest].offset;
        bool all = place >= offset;
        for (size_t s = 0; all && s < count; s++)
            all = s == rarest ||
                  has_position(&phrase->positions[s], space, place - offset + phrase->slots[s].offset, &at[s]);
        if (all)
            return true;
    }
    return false;
}

/* How many slots before this one have the same word: it needs another occurrence than those. */
static uint32_t same_before(const struct wb_leaf_words *phrase, size_t slot)
{
    uint32_t same = 0;

    for (size_t i = 0; i < slot; i++)
        same += wb_slice_equal(phrase->slots[i].text, phrase->slots[slot].text);
    return same;
}

static uint32_t widest(const struct wb_leaf_words *phrase)
{
    uint32_t most = 0;

    for (size_t i = 0; i < phrase->slot_count; i++)
        most = phrase->slots[i].offset > most ? phrase->slots[i].offset : most;
    return most;
}

/* The smallest stretch that has all words: the word that is first moves on until the stretch is small enough. */
static bool close_together(const struct wb_leaf_words *phrase, int space, uint32_t *at)
{
    uint64_t room = (uint64_t)widest(phrase) + phrase->slop;

    WB_CHECK(phrase->slop > 0);
    for (size_t i = 0; i < phrase->slot_count; i++)
        at[i] = same_before(phrase, i);
    for (;;) {
        uint32_t low = UINT32_MAX, high = 0;
        size_t lowest = 0;
        for (size_t i = 0; i < phrase->slot_count; i++) {
            if (at[i] >= phrase->positions[i].count[space])
                return false;
            uint32_t place = phrase->positions[i].at[space][at[i]];
            high = place > high ? place : high;
            lowest = place < low ? i : lowest;
            low = place < low ? place : low;
        }
        if (high - low <= room)
            return true;
        /* All slots with the same word move together, so that they keep to different occurrences. */
        for (size_t i = 0; i < phrase->slot_count; i++)
            at[i] += wb_slice_equal(phrase->slots[i].text, phrase->slots[lowest].text);
    }
}

/* Whether the first `count` words, whose positions have been read, are at the right places. */
static bool match_first(const struct wb_leaf_words *phrase, size_t count)
{
    uint32_t at[WB_WORDLIST_MAX];
    bool found = false;

    WB_CHECK(count <= WB_WORDLIST_MAX);
    WB_CHECK(phrase->slop == 0 || count == phrase->slot_count); /* all of them are close together, or none */
    for (int space = 0; !found && space < WB_SPACES; space++) {
        bool all = phrase->spaces >> space & 1;
        for (size_t i = 0; all && i < count; i++)
            all = phrase->positions[i].count[space] > 0;
        if (all)
            found = phrase->slop ? close_together(phrase, space, at) : in_a_row(phrase, space, count, at);
    }
    return found;
}

typedef uint32_t wb_places4 __attribute__((vector_size(16)));

/* Whether two sets of four places have one in common. */
static inline wb_places4 common_of_four(wb_places4 x, wb_places4 y)
{
    wb_places4 same = (wb_places4)(x == y);

    same |= (wb_places4)(x == __builtin_shufflevector(y, y, 1, 2, 3, 0));
    same |= (wb_places4)(x == __builtin_shufflevector(y, y, 2, 3, 0, 1));
    return same | (wb_places4)(x == __builtin_shufflevector(y, y, 3, 0, 1, 2));
}

static inline bool any_place(wb_places4 same)
{
    uint64_t halves[2];

    memcpy(halves, &same, sizeof same);
    return (halves[0] | halves[1]) != 0;
}

static inline wb_places4 four_at(const uint32_t *at, uint32_t shift)
{
    wb_places4 four;

    memcpy(&four, at, sizeof four);
    return four + shift;
}

/*
 * Whether one of the positions of a, moved by its shift, is one of those of b, moved by its own. Each of four is
 * compared with each of four, and those whose last one is lower are done. No branch depends on a position.
 */
static bool have_common(const uint32_t *a, uint32_t a_count, uint32_t a_shift, const uint32_t *b, uint32_t b_count,
                        uint32_t b_shift)
{
    WB_CHECK(a_count > 0 && b_count > 0);
    if (a_count <= WB_POSITIONS_STEP && b_count <= WB_POSITIONS_STEP) {
        wb_places4 x[2] = {four_at(a, a_shift), four_at(a + 4, a_shift)};
        wb_places4 y[2] = {four_at(b, b_shift), four_at(b + 4, b_shift)};
        return any_place(common_of_four(x[0], y[0]) | common_of_four(x[0], y[1]) | common_of_four(x[1], y[0]) |
                         common_of_four(x[1], y[1]));
    }
    for (uint32_t i = 0, k = 0; i < a_count && k < b_count;) {
        wb_places4 x = four_at(a + i, a_shift), y = four_at(b + k, b_shift);
        if (any_place(common_of_four(x, y)))
            return true;
        bool lower = x[3] < y[3];
        i += lower ? 4 : 0;
        k += lower ? 0 : 4;
    }
    return false;
}

/* Whether the words are in a row in one space. Their numbers of positions there are known, and not 0. */
static int match_space(struct wb_leaf_words *phrase, enum wb_space space, bool *matches_out)
{
    const struct wb_slot *slots = phrase->slots;
    struct wb_positions *positions = phrase->positions;
    uint32_t at[WB_WORDLIST_MAX];
    int err = 0;

    *matches_out = true;
    for (size_t i = 0; err == 0 && *matches_out && i < phrase->slot_count; i++) {
        err = wb_postlist_positions_in(slots[i].lists[0], positions[i].count, space, i ? NOWHERE_B : NOWHERE_A,
                                       &positions[i].at[space]);
        /* Most documents that do not match fail with the two rarest words already. */
        if (err == 0 && i == 1)
            *matches_out = have_common(positions[0].at[space], positions[0].count[space], slots[1].offset,
                                       positions[1].at[space], positions[1].count[space], slots[0].offset);
    }
    if (err == 0 && *matches_out && phrase->slot_count > 2)
        *matches_out = in_a_row(phrase, (int)space, phrase->slot_count, at);
    return err;
}

/* Words that have one list each, in a row in any space: only positions in spaces that all of them are in are read. */
static int match_single(struct wb_leaf_words *phrase, uint32_t docid, bool *matches_out)
{
    int err = 0;

    *matches_out = false;
    for (size_t i = 0; err == 0 && i < phrase->slot_count; i++) {
        if (!wb_list_has(phrase->slots[i].lists[0], docid))
            return 0; /* only a list that failed can have lost it */
        err = wb_postlist_counts(phrase->slots[i].lists[0], phrase->positions[i].count);
    }
    for (int space = 0; err == 0 && !*matches_out && space < WB_SPACES; space++) {
        bool all = phrase->spaces >> space & 1;
        for (size_t i = 0; all && i < phrase->slot_count; i++)
            all = phrase->positions[i].count[space] > 0;
        if (all)
            err = match_space(phrase, (enum wb_space)space, matches_out);
    }
    return err;
}

int wb_phrase_matches(struct wb_leaf_words *phrase, uint32_t docid, bool *matches_out)
{
    size_t count = phrase->slot_count;
    bool single = phrase->slop == 0;
    int err = 0;

    WB_CHECK(phrase->phrase && count >= 2 && count <= WB_WORDLIST_MAX);
    *matches_out = true;
    for (size_t i = 0; i < count; i++)
        single &= phrase->slots[i].list_count == 1;
    if (single)
        return match_single(phrase, docid, matches_out);
    for (size_t i = 0; err == 0 && *matches_out && i < count; i++) {
        err = read_positions(phrase, i, docid);
        if (err == 0 && (i + 1 == count || (i == 1 && phrase->slop == 0)))
            *matches_out = match_first(phrase, i + 1);
    }
    return err;
}
