/*
 * snippet.c - chooses the passages of a page that show best why it was found.
 *
 *   text -> words -> matches (place, which wanted word) -> best passage, second best passage elsewhere -> HTML
 *
 * A passage is worth the number of different wanted words in it, then the number of matches; of equal ones the first
 * one counts. The second passage is only shown if it has a word that the first one lacks. Time is linear in the text.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "query/present.h"

enum {
    PASSAGE_BYTES = 240,
    BEFORE_BYTES = 60,  /* of a passage before its first match */
    MATCHES_MAX = 4096, /* that are looked at */
    WANTED_MAX = 64,    /* words of a query that are highlighted */
};

struct snippet_match {
    size_t begin, end;
    unsigned wanted;
};

struct passage {
    size_t begin, end;
    uint64_t wanted; /* a bit for each wanted word in it */
    unsigned matches;
};

struct wb_snippeter {
    struct wb_extractor *extractor;
    struct wb_words *words;
    WB_VEC(struct snippet_match) matches;
};

int wb_snippeter_new(struct wb_snippeter **snippeter_out)
{
    struct wb_snippeter *snippeter = wb_alloc_zero(1, sizeof *snippeter);
    int err = snippeter ? wb_extractor_new(&snippeter->extractor) : WB_E_NOMEM;

    if (err == 0)
        err = wb_words_new(&snippeter->words);
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
    wb_extractor_free(snippeter->extractor);
    wb_words_free(snippeter->words);
    wb_vec_release(&snippeter->matches);
    wb_free(snippeter);
}

struct wb_extractor *wb_snippeter_extractor(struct wb_snippeter *snippeter)
{
    return snippeter->extractor;
}

struct wb_words *wb_snippeter_words(struct wb_snippeter *snippeter)
{
    return snippeter->words;
}

/* ---- matches ----------------------------------------------------------------------------------- */

static bool matches(const struct wb_wanted *wanted, const struct wb_word *word)
{
    if (wanted->prefix)
        return wb_slice_starts(word->exact, wanted->exact);
    if (wanted->exact.len && wb_slice_equal(word->exact, wanted->exact))
        return true;
    for (size_t i = 0; word->kind == WB_WORD_PLAIN && i < wanted->stem_count; i++)
        if (wb_slice_equal(word->stem, wanted->stems[i]))
            return true;
    return false;
}

/* The bytes that a word can begin with if it, or its stem, is wanted. */
struct first_bytes {
    bool is[256];
};

/*
 * In most languages, a stem begins like its word, so only words that begin like a wanted one need a stem. Arabic,
 * Indonesian and others have prefixes; whatever is not known to be without is taken for one of these.
 */
static bool has_prefixes(const char *language)
{
    static const char *const without[] = {"",   "en", "de", "fr", "es", "it", "pt",
                                          "da", "sv", "no", "nb", "nn", "fi", "ru"};

    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (wb_slice_equal(wb_slice_str(language), wb_slice_str(without[i])))
            return false;
    return true;
}

static void find_first_bytes(const struct wb_snippet_wish *wish, struct first_bytes *first)
{
    memset(first, has_prefixes(wish->language), sizeof *first);
    for (size_t i = 0; i < wish->count; i++) {
        const struct wb_wanted *wanted = &wish->wanted[i];
        if (wanted->exact.len)
            first->is[(unsigned char)wanted->exact.ptr[0]] = true;
        for (size_t s = 0; s < wanted->stem_count; s++)
            if (wanted->stems[s].len)
                first->is[(unsigned char)wanted->stems[s].ptr[0]] = true;
    }
}

static int add_match(struct wb_snippeter *snippeter, const struct wb_snippet_wish *wish, struct wb_word *word,
                     uint64_t *found)
{
    int err = word->kind == WB_WORD_PLAIN ? wb_words_stem_last(snippeter->words, word, wish->language, &word->stem) : 0;

    for (unsigned i = 0; err == 0 && i < wish->count && i < WANTED_MAX; i++)
        if (matches(&wish->wanted[i], word)) {
            *found |= UINT64_C(1) << i;
            return wb_vec_push(&snippeter->matches, (struct snippet_match){word->begin, word->end, i});
        }
    return err;
}

static int find_matches(struct wb_snippeter *snippeter, struct wb_slice text, const struct wb_snippet_wish *wish,
                        uint64_t *found_out)
{
    struct first_bytes first;
    struct wb_word word;
    int more = 0, err = wb_words_begin(snippeter->words, text, NULL);

    *found_out = 0;
    find_first_bytes(wish, &first);
    wb_vec_clear(&snippeter->matches);
    while (err == 0 && snippeter->matches.count < MATCHES_MAX && (more = wb_words_next(snippeter->words, &word)) > 0)
        if (first.is[(unsigned char)word.exact.ptr[0]])
            err = add_match(snippeter, wish, &word, found_out);
    return err < 0 ? err : more < 0 ? more : 0;
}

/* ---- passages ---------------------------------------------------------------------------------- */

/* The passage that begins shortly before match `first`. */
static struct passage passage_at(const struct wb_snippeter *snippeter, size_t first)
{
    const struct snippet_match *items = snippeter->matches.items;
    struct passage passage = {.begin = items[first].begin > BEFORE_BYTES ? items[first].begin - BEFORE_BYTES : 0};

    passage.end = passage.begin + PASSAGE_BYTES;
    for (size_t i = first; i < snippeter->matches.count && items[i].end <= passage.end; i++) {
        passage.wanted |= UINT64_C(1) << items[i].wanted;
        passage.matches++;
    }
    /* A match longer than a passage. */
    if (passage.matches == 0) {
        passage.wanted = UINT64_C(1) << items[first].wanted;
        passage.end = items[first].end;
    }
    return passage;
}

/* The best passage outside `but`, counting only words that are not in it; but may be NULL. */
static struct passage best_passage(const struct wb_snippeter *snippeter, const struct passage *but)
{
    struct passage best = {.matches = 0};
    int best_words = 0;

    for (size_t i = 0; i < snippeter->matches.count; i++) {
        struct passage passage = passage_at(snippeter, i);
        if (but && passage.begin < but->end && but->begin < passage.end)
            continue;
        int words = __builtin_popcountll(passage.wanted & ~(but ? but->wanted : 0));
        if (words > best_words || (words == best_words && words && passage.matches > best.matches)) {
            best = passage;
            best_words = words;
        }
    }
    return best;
}

/* Moves the ends of a passage to where words begin and end; a word that is very long is cut. */
static void snap(struct wb_slice text, struct passage *passage)
{
    size_t begin = passage->begin, end = passage->end < text.len ? passage->end : text.len;

    if (begin > 0)
        for (size_t at = begin; at < begin + BEFORE_BYTES / 2 && at < text.len; at++)
            if (text.ptr[at] == ' ' || text.ptr[at] == '\n') {
                begin = at + 1;
                break;
            }
    while (begin < text.len && begin > 0 && (text.ptr[begin] & 0xc0) == 0x80)
        begin++;
    if (end < text.len)
        for (size_t at = end; at > end - BEFORE_BYTES / 2 && at > begin; at--)
            if (text.ptr[at] == ' ' || text.ptr[at] == '\n') {
                end = at;
                break;
            }
    while (end > begin && end < text.len && (text.ptr[end] & 0xc0) == 0x80)
        end--;
    *passage = (struct passage){begin, end > begin ? end : begin, passage->wanted, passage->matches};
}

/* ---- HTML -------------------------------------------------------------------------------------- */

static int put_escaped(struct wb_slice text, struct wb_buf *html)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < text.len; i++) {
        const char *entity = NULL;
        switch (text.ptr[i]) {
        case '<':
            entity = "&lt;";
            break;
        case '>':
            entity = "&gt;";
            break;
        case '&':
            entity = "&amp;";
            break;
        case '"':
            entity = "&quot;";
            break;
        case '\n':
            entity = " ";
            break;
        }
        err = entity ? wb_buf_append(html, entity, strlen(entity)) : wb_buf_append(html, &text.ptr[i], 1);
    }
    return err;
}

static int put_passage(const struct wb_snippeter *snippeter, struct wb_slice text, const struct passage *passage,
                       struct wb_buf *html)
{
    size_t at = passage->begin;
    int err = passage->begin ? wb_buf_append(html, "… ", strlen("… ")) : 0;

    for (size_t i = 0; err == 0 && i < snippeter->matches.count; i++) {
        const struct snippet_match *match = &snippeter->matches.items[i];
        if (match->begin < at || match->end > passage->end)
            continue;
        err = put_escaped(wb_slice(text.ptr + at, match->begin - at), html);
        if (err == 0)
            err = wb_buf_append(html, "<b>", 3);
        if (err == 0)
            err = put_escaped(wb_slice(text.ptr + match->begin, match->end - match->begin), html);
        if (err == 0)
            err = wb_buf_append(html, "</b>", 4);
        at = match->end;
    }
    if (err == 0)
        err = put_escaped(wb_slice(text.ptr + at, passage->end - at), html);
    if (err == 0 && passage->end < text.len)
        err = wb_buf_append(html, " …", strlen(" …"));
    return err;
}

int wb_snippet(struct wb_snippeter *snippeter, const struct wb_page *page, const struct wb_snippet_wish *wish,
               struct wb_buf *html_out, uint64_t *found_out)
{
    struct wb_extract_input input = {page->url, page->type, page->charset, page->body, WB_EXTRACT_TEXT};
    struct wb_extract extract;
    int err = wb_extract(snippeter->extractor, &input, &extract);

    if (err < 0)
        return err;
    struct wb_slice text = extract.text;
    err = find_matches(snippeter, text, wish, found_out);
    if (err < 0)
        return err;
    if (snippeter->matches.count == 0) {
        text = extract.main_text.len ? extract.main_text : extract.text;
        struct passage opening = {.end = PASSAGE_BYTES};
        snap(text, &opening);
        return put_passage(snippeter, text, &opening, html_out);
    }
    struct passage first = best_passage(snippeter, NULL), second = best_passage(snippeter, &first);
    bool two = second.wanted & ~first.wanted;
    if (two && second.begin < first.begin) {
        struct passage other = first;
        first = second;
        second = other;
    }
    snap(text, &first);
    err = put_passage(snippeter, text, &first, html_out);
    if (err == 0 && two) {
        snap(text, &second);
        err = put_passage(snippeter, text, &second, html_out);
    }
    return err;
}
