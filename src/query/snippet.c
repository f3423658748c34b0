/*
 * snippet.c - chooses the passages of a text that show best why a page was found.
 *
 *   text -> words that are wanted (matches.c) -> best passage, second best passage elsewhere -> HTML
 *
 * A passage is worth the number of different wanted words in it, then the number of matches; of equal ones the first
 * one counts. The second passage is only shown if it has a word that the first one lacks.
 *
 * The text is what the generation keeps of the page: its main text. It is decoded part by part, until all words were
 * found and one of them in prose. Passages come from prose; only for words that prose lacks, one may come from a short
 * block (an entry of a table of contents, say). sentences.c decides where a passage begins and ends; "…" stands where
 * it cuts a sentence, and between two passages, and never twice in a row.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "query/matches.h"

enum {
    PASSAGE_BYTES = 240,
    BEFORE_BYTES = 60,    /* of a passage before its first match */
    AROUND_BYTES = 480,   /* how far from its matches a passage may begin and end */
    STEP_BYTES = 2 << 10, /* of the text that are looked through before we ask whether that is enough */
    OPENING_BYTES = 60,   /* a page without matches is shown from the first block on that is as long */
};

enum { SNIPPETER_MAGIC = 0x5742534e }; /* "WBSN" */

struct wb_snippeter {
    uint32_t magic;
    struct wb_words *words;
    struct wb_matches matches;
};

/* What is being made. */
struct snippet {
    struct wb_snippeter *snippeter;
    struct wb_slice text;
    struct wb_buf *html;
    bool cut; /* a passage was written, so that there is a gap before the next one */
};

int wb_snippeter_new(struct wb_snippeter **snippeter_out)
{
    struct wb_snippeter *snippeter = wb_alloc_zero(1, sizeof *snippeter);
    int err = snippeter ? wb_words_new(&snippeter->words) : WB_E_NOMEM;

    if (snippeter)
        snippeter->magic = SNIPPETER_MAGIC;
    if (err < 0) {
        wb_snippeter_free(snippeter);
        snippeter = NULL;
    }
    *snippeter_out = snippeter;
    return err;
}

void wb_snippeter_free(struct wb_snippeter *snippeter)
{
    if (!snippeter)
        return;
    WB_CHECK(snippeter->magic == SNIPPETER_MAGIC);
    snippeter->magic = 0;
    wb_words_free(snippeter->words);
    wb_matches_release(&snippeter->matches);
    wb_free(snippeter);
}

struct wb_words *wb_snippeter_words(struct wb_snippeter *snippeter)
{
    WB_CHECK(snippeter->magic == SNIPPETER_MAGIC);
    return snippeter->words;
}

/* ---- passages ---------------------------------------------------------------------------------- */

struct passage {
    size_t begin, end;
    size_t first, last; /* where its first match begins, and its last one ends */
    uint64_t wanted;    /* a bit for each wanted word in it */
    unsigned matches;
};

/* The passage that begins shortly before match `first`. It ends where something is left out of the text. */
static struct passage passage_at(const struct snippet *s, size_t first)
{
    const struct wb_matches *matches = &s->snippeter->matches;
    const struct wb_match *items = matches->items.items;

    WB_CHECK(first < matches->items.count && items[first].end <= s->text.len);
    struct passage passage = {.begin = items[first].begin > BEFORE_BYTES ? items[first].begin - BEFORE_BYTES : 0,
                              .first = items[first].begin,
                              .last = items[first].end};

    passage.end = passage.begin + PASSAGE_BYTES < s->text.len ? passage.begin + PASSAGE_BYTES : s->text.len;
    if (passage.end > passage.first) {
        const char *gap = memchr(s->text.ptr + passage.first, WB_KEPT_GAP, passage.end - passage.first);
        passage.end = gap ? (size_t)(gap - s->text.ptr) : passage.end;
    }
    for (size_t i = first; i < matches->items.count && items[i].end <= passage.end; i++) {
        passage.wanted |= UINT64_C(1) << items[i].wanted;
        passage.last = items[i].end > passage.last ? items[i].end : passage.last;
        passage.matches++;
    }
    /* A match longer than a passage. */
    if (passage.matches == 0) {
        passage.matches = 1;
        passage.wanted = UINT64_C(1) << items[first].wanted;
        passage.end = items[first].end;
    }
    return passage;
}

/* The best passage that begins in prose, or outside, is not in `but`, and has words that are not in `known`. */
static struct passage best_passage(const struct snippet *s, bool prose, const struct passage *but, uint64_t known)
{
    const struct wb_matches *matches = &s->snippeter->matches;
    struct passage best = {.matches = 0};
    int best_words = 0;

    for (size_t i = 0; i < matches->items.count; i++) {
        if (matches->items.items[i].prose != prose)
            continue;
        struct passage passage = passage_at(s, i);
        if (but->matches && passage.begin < but->end && but->begin < passage.end)
            continue;
        int words = __builtin_popcountll(passage.wanted & ~known);
        if (words > best_words || (words == best_words && words && passage.matches > best.matches)) {
            best = passage;
            best_words = words;
        }
    }
    return best;
}

/* The part of the text around [first, last) of which nothing is left out, as far as it matters. */
static struct wb_text_range around(struct wb_slice text, size_t first, size_t last)
{
    WB_CHECK(first <= last && last <= text.len);
    size_t low = first > AROUND_BYTES ? first - AROUND_BYTES : 0,
           high = text.len - last > AROUND_BYTES ? last + AROUND_BYTES : text.len;
    const char *before = memrchr(text.ptr + low, WB_KEPT_GAP, first - low),
               *behind = memchr(text.ptr + last, WB_KEPT_GAP, high - last);

    return (struct wb_text_range){before ? (size_t)(before - text.ptr) + 1 : low,
                                  behind ? (size_t)(behind - text.ptr) : high};
}

/* Moves the ends of a passage to where sentences, or at least words, begin and end. */
static void fit(const struct snippet *s, struct passage *passage)
{
    struct wb_text_range within = around(s->text, passage->first, passage->last);
    struct wb_text_range fitted = wb_text_passage(s->text, within, passage->first, passage->last, passage->end);

    passage->begin = fitted.begin;
    passage->end = fitted.end;
}

/* ---- HTML -------------------------------------------------------------------------------------- */

static const char *entity_of(char c)
{
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    case '\n':
        return " ";
    default:
        return NULL;
    }
}

static int put_escaped(struct wb_slice text, struct wb_buf *html)
{
    size_t done = 0;
    int err = 0;

    for (size_t i = 0; err == 0 && i < text.len; i++) {
        const char *entity = entity_of(text.ptr[i]);
        if (!entity)
            continue;
        err = wb_buf_append(html, text.ptr + done, i - done);
        if (err == 0)
            err = wb_buf_append_str(html, entity);
        done = i + 1;
    }
    return err < 0 ? err : wb_buf_append(html, text.ptr + done, text.len - done);
}

/* Writes a part of a passage: the signs of headings that link to themselves are left out, and "……" becomes "…". */
static int put_text(struct wb_slice text, struct wb_buf *html)
{
    int err = 0;

    for (size_t at = 0; err == 0 && at < text.len;) {
        const char *dots = memmem(text.ptr + at, text.len - at, "…", strlen("…"));
        const char *sign = memmem(text.ptr + at, text.len - at, "¶", strlen("¶"));
        const char *stop = dots && (!sign || dots < sign) ? dots : sign ? sign : text.ptr + text.len;
        err = put_escaped(wb_slice(text.ptr + at, (size_t)(stop - text.ptr) - at), html);
        at = (size_t)(stop - text.ptr);
        if (stop == sign && stop) {
            at += strlen("¶");
        } else if (stop == dots && stop) {
            struct wb_slice before = wb_slice_trim(wb_buf_slice(html));
            if (err == 0 && !wb_slice_ends(before, WB_SLICE_LIT("…")))
                err = wb_buf_append(html, "…", strlen("…"));
            at += strlen("…");
        }
    }
    return err;
}

/* Puts "…" behind what is there, unless it ends so. */
static int put_gap(struct snippet *s)
{
    while (s->html->len && s->html->ptr[s->html->len - 1] == ' ')
        s->html->len--;
    while (wb_slice_ends(wb_buf_slice(s->html), WB_SLICE_LIT("...")))
        s->html->len -= 3;
    if (wb_slice_ends(wb_buf_slice(s->html), WB_SLICE_LIT("…")))
        return 0;
    return s->html->len ? wb_buf_append(s->html, " …", strlen(" …")) : wb_buf_append(s->html, "…", strlen("…"));
}

static int put_passage(struct snippet *s, const struct passage *passage)
{
    const struct wb_matches *matches = &s->snippeter->matches;
    struct wb_slice text = s->text;
    size_t at = passage->begin;

    WB_CHECK(passage->begin <= passage->end && passage->end <= text.len);
    bool begins = wb_text_begins(text, passage->begin), ends = wb_text_ends(text, passage->end);
    int err = s->cut || !begins ? put_gap(s) : 0;
    if (err == 0 && s->html->len)
        err = wb_buf_append(s->html, " ", 1);
    for (size_t i = 0; err == 0 && i < matches->items.count; i++) {
        const struct wb_match *match = &matches->items.items[i];
        if (match->begin < at || match->end > passage->end)
            continue;
        err = put_text(wb_slice(text.ptr + at, match->begin - at), s->html);
        if (err == 0)
            err = wb_buf_append(s->html, "<b>", 3);
        if (err == 0)
            err = put_escaped(wb_slice(text.ptr + match->begin, match->end - match->begin), s->html);
        if (err == 0)
            err = wb_buf_append(s->html, "</b>", 4);
        at = match->end;
    }
    if (err == 0)
        err = put_text(wb_slice(text.ptr + at, passage->end - at), s->html);
    if (err == 0 && !ends)
        err = put_gap(s);
    s->cut = true; /* if another one follows */
    return err;
}

/* ---- snippets ------------------------------------------------------------------------------------ */

/* Without any match: how the first prose begins; without any, how the text does. */
static int put_opening(struct snippet *s)
{
    size_t begin = 0;

    for (size_t at = 0; at < s->text.len;) {
        struct wb_text_range block = wb_text_block(s->text, at);
        if (block.end - block.begin >= OPENING_BYTES) {
            begin = block.begin;
            break;
        }
        at = block.end + 1;
    }
    while (begin < s->text.len && wb_ascii_is_space(s->text.ptr[begin]))
        begin++;
    struct wb_text_range within = around(s->text, begin, begin);
    struct wb_text_range range = wb_text_passage(s->text, within, begin, begin, begin + PASSAGE_BYTES);
    struct passage opening = {.begin = range.begin, .end = range.end};
    return put_passage(s, &opening);
}

/* The best passage, and another one for words that it lacks: outside of prose, if prose lacks them too. */
static int put_best(struct snippet *s)
{
    const struct passage none = {.matches = 0};
    struct passage first = best_passage(s, true, &none, 0);
    bool prose = first.matches > 0;

    if (!prose)
        first = best_passage(s, false, &none, 0);
    if (first.matches == 0)
        return put_opening(s);
    struct passage second = best_passage(s, prose, &first, first.wanted);
    bool same = second.matches > 0;
    if (prose && !same)
        second = best_passage(s, false, &first, first.wanted);
    fit(s, &first);
    if (second.matches)
        fit(s, &second);
    bool both = second.matches && (second.begin >= first.end || first.begin >= second.end);
    if (both && same && second.begin < first.begin) {
        struct passage other = first;
        first = second;
        second = other;
    }
    int err = put_passage(s, &first);
    return err == 0 && both ? put_passage(s, &second) : err;
}

/* The end of a line about STEP_BYTES behind `from`; `from` if there is none yet. */
static size_t whole_lines(struct wb_slice text, size_t from)
{
    WB_CHECK(from <= text.len);
    size_t low = text.len - from > STEP_BYTES ? from + STEP_BYTES : from;
    const char *end = memchr(text.ptr + low, '\n', text.len - low);

    if (!end)
        end = memrchr(text.ptr + from, '\n', text.len - from);
    return end ? (size_t)(end - text.ptr) : from;
}

void wb_snippeter_want(struct wb_snippeter *snippeter, const struct wb_wanted *wanted, size_t count)
{
    WB_CHECK(snippeter->magic == SNIPPETER_MAGIC);
    wb_matches_want(&snippeter->matches, snippeter->words, wanted, count);
}

int wb_snippet(struct wb_snippeter *snippeter, struct wb_snippet_text *text, struct wb_buf *html_out)
{
    struct wb_matches *matches = &snippeter->matches;
    int more = 1, err = 0;

    WB_CHECK(snippeter->magic == SNIPPETER_MAGIC);
    WB_CHECK(matches->words == snippeter->words); /* it was told what to show */
    wb_buf_clear(html_out);
    wb_matches_begin(matches, text->language, text->lines);
    while (err == 0 && more > 0 && !wb_matches_enough(matches)) {
        size_t end = whole_lines(text->bytes, matches->done);
        if (end > matches->done)
            err = wb_matches_find(matches, text->bytes, end);
        else
            more = text->more ? text->more(text) : 0;
    }
    if (err == 0 && more == 0)
        err = wb_matches_find(matches, text->bytes, text->bytes.len);
    err = err < 0 ? err : more < 0 ? more : 0;
    struct snippet s = {.snippeter = snippeter, .text = text->bytes, .html = html_out};
    return err < 0 ? err : put_best(&s);
}
