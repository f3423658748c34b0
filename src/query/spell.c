/*
 * spell.c - words that are spelt almost like a given one.
 *
 * One letter apart: every such spelling is looked up. Two letters apart: the words of the dictionary that begin with
 * the same two letters are compared. For words that no page has: a rare one may be exactly what is meant.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"
#include "query/present.h"

enum {
    WORD_MIN = 4, /* shorter words have too many neighbours */
    WORD_MAX = 40,
    TERMS_MAX = 50000, /* of the dictionary that are compared */
    TAIL = 2,          /* bytes of a key behind its text: 0 and 'E' */
};

/* The best word so far. */
struct best_word {
    uint32_t df;
    unsigned distance; /* 0: there is none */
    size_t len;
    char text[2 * WORD_MAX];
};

static void consider(struct best_word *best, struct wb_slice word, unsigned distance, uint32_t df)
{
    WB_CHECK(distance > 0 && df > 0); /* 0 means that there is no word yet */
    if (word.len > sizeof best->text || (best->distance && distance > best->distance) ||
        (distance == best->distance && df <= best->df))
        return;
    *best = (struct best_word){.df = df, .distance = distance, .len = word.len};
    memcpy(best->text, word.ptr, word.len);
}

static int look_up(struct wb_postings *postings, const char *text, size_t len, struct best_word *best)
{
    char key[2 * WORD_MAX + TAIL];
    struct wb_term term;

    if (len == 0 || len + TAIL > sizeof key)
        return 0;
    memcpy(key, text, len);
    memcpy(key + len, "\0E", TAIL);
    int found = wb_postings_find(postings, wb_slice(key, len + TAIL), &term);
    if (found > 0 && term.df > 0)
        consider(best, wb_slice(text, len), 1, term.df);
    return found < 0 ? found : 0;
}

/* Looks up every spelling that differs in one letter: left out, exchanged with the next, replaced, or put in. */
static int one_apart(struct wb_postings *postings, struct wb_slice word, struct best_word *best)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    char text[2 * WORD_MAX];
    int err = 0;

    WB_CHECK(word.len < sizeof text); /* one letter is put in */
    for (size_t i = 0; err == 0 && i <= word.len; i++) {
        size_t rest = word.len - i;
        memcpy(text, word.ptr, i);
        if (rest) {
            memcpy(text + i, word.ptr + i + 1, rest - 1);
            err = look_up(postings, text, word.len - 1, best);
        }
        if (err == 0 && rest > 1) {
            memcpy(text + i, word.ptr + i, rest);
            text[i] = word.ptr[i + 1];
            text[i + 1] = word.ptr[i];
            err = look_up(postings, text, word.len, best);
        }
        for (const char *c = letters; err == 0 && *c; c++) {
            text[i] = *c;
            memcpy(text + i + 1, word.ptr + i, rest);
            err = look_up(postings, text, word.len + 1, best);
            if (err == 0 && rest && word.ptr[i] != *c) {
                memcpy(text + i + 1, word.ptr + i + 1, rest - 1);
                err = look_up(postings, text, word.len, best);
            }
        }
    }
    return err;
}

/* The number of letters in which two words differ, if it is at most 2; otherwise 3. */
static unsigned distance(struct wb_slice a, struct wb_slice b)
{
    unsigned before[WORD_MAX + 2], row[WORD_MAX + 2];

    if (a.len > WORD_MAX || b.len > WORD_MAX || a.len > b.len + 2 || b.len > a.len + 2)
        return 3;
    for (unsigned j = 0; j <= b.len; j++)
        before[j] = j;
    for (unsigned i = 1; i <= a.len; i++) {
        unsigned least = row[0] = i;
        for (unsigned j = 1; j <= b.len; j++) {
            unsigned change = before[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);
            unsigned skip = (before[j] < row[j - 1] ? before[j] : row[j - 1]) + 1;
            row[j] = change < skip ? change : skip;
            least = row[j] < least ? row[j] : least;
        }
        if (least > 2)
            return 3;
        memcpy(before, row, (b.len + 1) * sizeof *row);
    }
    return before[b.len] > 2 ? 3 : before[b.len];
}

static int two_apart(struct wb_postings *postings, struct wb_slice word, struct best_word *best)
{
    struct wb_terms *terms = NULL;
    struct wb_term term;
    struct wb_slice key, prefix = wb_slice(word.ptr, 2);

    WB_CHECK(word.len >= 2 && best->distance == 0); /* or it is near enough already */
    int more = 0, err = wb_terms_open(postings, &terms);
    if (err == 0)
        err = wb_terms_seek(terms, prefix);
    for (int i = 0; err == 0 && i < TERMS_MAX && (more = wb_terms_next(terms, &key, &term)) > 0; i++) {
        if (!wb_slice_starts(key, prefix))
            break;
        if (key.len <= TAIL || key.ptr[key.len - 1] != 'E' || term.df == 0)
            continue;
        struct wb_slice text = wb_slice(key.ptr, key.len - TAIL);
        unsigned apart = distance(word, text);
        if (apart && apart <= 2)
            consider(best, text, apart, term.df);
    }
    wb_terms_close(terms);
    return err < 0 ? err : more < 0 ? more : 0;
}

int wb_spell(struct wb_postings *postings, struct wb_slice word, struct wb_buf *word_out)
{
    struct best_word best = {.distance = 0};

    if (word.len < WORD_MIN || word.len > WORD_MAX)
        return 0;
    for (size_t i = 0; i < word.len; i++)
        if (word.ptr[i] < 'a' || word.ptr[i] > 'z') /* identifiers and other scripts are meant as they are typed */
            return 0;
    int err = one_apart(postings, word, &best);
    if (err == 0 && best.distance == 0 && word.len >= WORD_MIN + 2)
        err = two_apart(postings, word, &best);
    if (err < 0 || best.distance == 0)
        return err;
    err = wb_buf_append(word_out, best.text, best.len);
    return err < 0 ? err : 1;
}
