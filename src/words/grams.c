/*
 * grams.c - reads scripts without blanks, as overlapping pairs of characters.
 *
 *   東京都   東京 at position 0, 京都 at 1, 都 at 2
 *
 * A run of n characters has n grams, so that every character begins one: a query for a single character finds the
 * grams that begin with it. A character is one with its marks, which are never dropped in these scripts.
 */
#include "base/check.h"
#include "base/utf8.h"
#include "words/wordscan.h"

/* Adds a character to a unit, unless it is too long already. */
static void put(struct wb_unit *unit, uint32_t cp)
{
    char bytes[4];
    size_t len = wb_utf8_encode(cp, bytes);

    if (unit->len + len > WB_UNIT_BYTES_MAX)
        return;
    memcpy(unit->bytes + unit->len, bytes, len);
    unit->last = unit->len;
    unit->len += len;
}

static void put_folded(struct wb_unit *unit, uint32_t entry)
{
    WB_CHECK(!(entry & (WB_FOLD_PAIR | WB_FOLD_SEVERAL))); /* a gram is never folded to several characters */
    put(unit, wb_fold_code(entry));
}

/* Adds a character to the one before it, if they form one: か and the voicing mark, or the letters of Hangul. */
static bool compose(struct wb_unit *unit, uint32_t cp)
{
    uint32_t both = wb_fold_compose(wb_utf8_decode(unit->bytes + unit->last, unit->len - unit->last), cp);

    if (!both)
        return false;
    unit->len = unit->last;
    put_folded(unit, wb_fold_of(both));
    return true;
}

/* True if the character belongs to the unit before it, to which it is added. */
static bool joins_unit(struct wb_unit *unit, enum wb_fold_class class, uint32_t cp)
{
    uint32_t entry = wb_fold_of(cp);

    switch (class) {
    case WB_FOLD_GRAM:
        return entry & WB_FOLD_COMPOSES && compose(unit, wb_fold_code(entry));
    case WB_FOLD_GRAM_MARK:
        if (!(entry & WB_FOLD_COMPOSES) || !compose(unit, wb_fold_code(entry)))
            put_folded(unit, entry);
        return true;
    case WB_FOLD_ACCENT:
    case WB_FOLD_NOTHING:
        return true;
    default:
        return false;
    }
}

/* Reads the character at `at` and its marks. */
static void read_unit(struct wb_words *w, size_t at, struct wb_unit *unit)
{
    size_t len;
    uint32_t cp;

    enum wb_fold_class class = wb_words_class_at(w->text, at, &len, &cp);
    WB_CHECK(class == WB_FOLD_GRAM || class == WB_FOLD_GRAM_MARK);
    unit->begin = at;
    unit->len = unit->last = 0;
    put_folded(unit, wb_fold_of(cp));
    WB_CHECK(unit->len > 0);
    for (;;) {
        at += len;
        class = wb_words_class_at(w->text, at, &len, &cp);
        if (!joins_unit(unit, class, cp))
            break;
    }
    unit->end = w->at = w->taken = at;
}

void wb_words_begin_run(struct wb_words *w, size_t at)
{
    WB_CHECK(!w->in_run);
    w->in_run = true;
    read_unit(w, at, &w->unit);
}

void wb_words_next_gram(struct wb_words *w, struct wb_word *word_out)
{
    size_t len;
    uint32_t cp;
    enum wb_fold_class class = wb_words_class_at(w->text, w->at, &len, &cp);

    WB_CHECK(w->in_run);
    *word_out = (struct wb_word){.begin = w->unit.begin, .end = w->unit.end, .position = w->position++};
    word_out->kind = WB_WORD_GRAM;
    memcpy(w->gram, w->unit.bytes, w->unit.len);
    size_t gram_len = w->unit.len;
    if (class == WB_FOLD_GRAM || class == WB_FOLD_GRAM_MARK) {
        read_unit(w, w->at, &w->unit);
        memcpy(w->gram + gram_len, w->unit.bytes, w->unit.len);
        gram_len += w->unit.len;
        word_out->end = w->unit.end;
    } else {
        w->in_run = false;
        word_out->last = true;
    }
    word_out->exact = word_out->stem = wb_slice(w->gram, gram_len);
}
