/*
 * snippet.c - chooses the passages of a page that show best why it was found.
 *
 *   text -> words -> matches (place, which wanted word) -> best passage, second best passage elsewhere -> HTML
 *
 * A passage is worth the number of different wanted words in it, then the number of matches; of equal ones the first
 * one counts. The second passage is only shown if it has a word that the first one lacks. Time is linear in the text.
 *
 * Passages come from the prose of the main text. Only for a word that it lacks, one may come from a short block there
 * (an entry of a table of contents, say), and only if that has none either, one may be a block of the rest: of a menu.
 * A heading that repeats the title is left out, since the title is shown beside the snippet. sentences.c decides where
 * a passage begins and ends; "…" stands where it cuts a sentence, and between two passages, and never twice in a row.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "query/present.h"

enum {
    PASSAGE_BYTES = 240,
    BEFORE_BYTES = 60,    /* of a passage before its first match */
    MATCHES_MAX = 4096,   /* that are looked at */
    WANTED_MAX = 64,      /* words of a query that are highlighted */
    OPENING_BYTES = 60,   /* a block of the rest that is as long is not taken for a menu */
    PROSE_BYTES = 80,     /* a block that is as long is prose, even if no sentence ends with it */
};

/* Where a match is. */
enum snippet_place { PROSE, LISTED, REST, TITLE, PLACES };
_Static_assert(sizeof(struct wb_snippet_found) == PLACES * sizeof(uint64_t), "one set of words for each place");

struct snippet_match {
    size_t begin, end;
    unsigned wanted;
    enum snippet_place place;
    size_t range; /* the number of that part of the main text, if it is in there */
};

struct wb_snippeter {
    struct wb_extractor *extractor;
    struct wb_words *words;
    WB_VEC(struct snippet_match) matches;
    WB_VEC(struct wb_text_range) ranges; /* of the main text, without headings that repeat the title */
    WB_VEC(struct wb_text_range) titles; /* these headings */
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
    wb_vec_release(&snippeter->ranges);
    wb_vec_release(&snippeter->titles);
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

/* ---- the main text ------------------------------------------------------------------------------ */

/* "Installing¶" is a heading with a link to itself. */
static struct wb_slice heading_text(struct wb_slice text)
{
    text = wb_slice_trim(text);
    while (wb_slice_ends(text, WB_SLICE_LIT("¶")) || wb_slice_ends(text, WB_SLICE_LIT("#")))
        text = wb_slice_trim(wb_slice(text.ptr, text.len - (text.ptr[text.len - 1] == '#' ? 1 : strlen("¶"))));
    return text;
}

static bool repeats_title(const struct wb_extract *extract, const struct wb_extract_span *span)
{
    struct wb_slice heading = heading_text(wb_slice(extract->text.ptr + span->begin, span->end - span->begin));

    return span->flags & WB_EXTRACT_SPAN_HEADING && heading.len && extract->title.len &&
           memmem(extract->title.ptr, extract->title.len, heading.ptr, heading.len);
}

/* Neighbouring parts of the main text are one range. */
static int find_ranges(struct wb_snippeter *snippeter, const struct wb_extract *extract)
{
    int err = 0;

    wb_vec_clear(&snippeter->ranges);
    wb_vec_clear(&snippeter->titles);
    for (size_t i = 0; err == 0 && i < extract->span_count; i++) {
        const struct wb_extract_span *span = &extract->spans[i];
        struct wb_text_range range = {span->begin, span->end}, *last = NULL;
        if (snippeter->ranges.count)
            last = &snippeter->ranges.items[snippeter->ranges.count - 1];
        if (repeats_title(extract, span))
            err = wb_vec_push(&snippeter->titles, range);
        else if (span->flags & WB_EXTRACT_SPAN_MAIN && last && last->end == range.begin)
            last->end = range.end;
        else if (span->flags & WB_EXTRACT_SPAN_MAIN)
            err = wb_vec_push(&snippeter->ranges, range);
    }
    return err;
}

static bool is_prose(struct wb_slice block)
{
    block = wb_slice_trim(block);
    return block.len >= PROSE_BYTES || (block.len && memchr(".!?;", block.ptr[block.len - 1], 4)) ||
           wb_slice_ends(block, WB_SLICE_LIT("。"));
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
                     struct snippet_match match)
{
    int err = word->kind == WB_WORD_PLAIN ? wb_words_stem_last(snippeter->words, word, wish->language, &word->stem) : 0;

    for (match.wanted = 0; err == 0 && match.wanted < wish->count && match.wanted < WANTED_MAX; match.wanted++)
        if (matches(&wish->wanted[match.wanted], word))
            return wb_vec_push(&snippeter->matches, match);
    return err;
}

/* What is looked for, and where. */
struct match_search {
    struct wb_snippeter *snippeter;
    struct wb_slice text;
    const struct wb_snippet_wish *wish;
    struct wb_snippet_found *found;
    struct first_bytes first;
    struct wb_text_range block; /* of the last match in the main text */
    bool prose;
    bool lines; /* every line counts as prose: the text has no blocks */
};

/* Short blocks are not prose. Matches of the main text come in order. */
static enum snippet_place judge_block(struct match_search *m, size_t at)
{
    if (at >= m->block.end) {
        m->block = wb_text_block(m->text, at);
        m->prose = m->lines || is_prose(wb_slice(m->text.ptr + m->block.begin, m->block.end - m->block.begin));
    }
    return m->prose ? PROSE : LISTED;
}

/* Adds the matches in a part of the text. place: PROSE stands for all of the main text, and number for the range. */
static int search_part(struct match_search *m, struct wb_text_range part, enum snippet_place place, size_t number)
{
    struct wb_snippeter *snippeter = m->snippeter;
    struct wb_word word;
    int more = 0, err = 0;

    if (part.begin < part.end)
        err = wb_words_begin(snippeter->words, wb_slice(m->text.ptr + part.begin, part.end - part.begin), NULL);
    while (err == 0 && part.begin < part.end && snippeter->matches.count < MATCHES_MAX &&
           (more = wb_words_next(snippeter->words, &word)) > 0) {
        size_t count = snippeter->matches.count;
        if (!m->first.is[(unsigned char)word.exact.ptr[0]])
            continue;
        err = add_match(snippeter, m->wish, &word,
                        (struct snippet_match){part.begin + word.begin, part.begin + word.end, 0, place, number});
        if (err < 0 || snippeter->matches.count == count)
            continue;
        struct snippet_match *match = &snippeter->matches.items[count];
        match->place = place == PROSE ? judge_block(m, match->begin) : place;
        m->found->in[match->place] |= UINT64_C(1) << match->wanted;
    }
    return err < 0 ? err : more < 0 ? more : 0;
}

/* What is neither main text nor a title: only looked through for words that these lack. */
static int search_rest(struct match_search *m)
{
    const struct wb_snippeter *snippeter = m->snippeter;
    struct wb_text_range part = {0, 0};
    size_t range = 0, title = 0;
    int err = 0;

    while (err == 0 && part.end < m->text.len) {
        const struct wb_text_range *next = NULL;
        if (range < snippeter->ranges.count)
            next = &snippeter->ranges.items[range];
        if (title < snippeter->titles.count && (!next || snippeter->titles.items[title].begin < next->begin))
            next = &snippeter->titles.items[title++];
        else
            range += next != NULL;
        part.end = next ? next->begin : m->text.len;
        err = search_part(m, part, REST, 0);
        part.begin = part.end = next ? next->end : m->text.len;
    }
    return err;
}

/* Matches of one place are in order; those of the main text come first. */
static int find_matches(struct wb_snippeter *snippeter, const struct wb_extract *extract,
                        const struct wb_snippet_wish *wish, struct wb_snippet_found *found)
{
    struct match_search m = {.snippeter = snippeter,
                             .text = extract->text,
                             .wish = wish,
                             .found = found,
                             .lines = strcmp(extract->module, "html") != 0};
    uint64_t all = wish->count < WANTED_MAX ? (UINT64_C(1) << wish->count) - 1 : UINT64_MAX;
    int err = 0;

    *found = (struct wb_snippet_found){{0}};
    find_first_bytes(wish, &m.first);
    wb_vec_clear(&snippeter->matches);
    for (size_t i = 0; err == 0 && i < snippeter->ranges.count; i++)
        err = search_part(&m, snippeter->ranges.items[i], PROSE, i);
    for (size_t i = 0; err == 0 && i < snippeter->titles.count; i++)
        err = search_part(&m, snippeter->titles.items[i], TITLE, i);
    if (err == 0 && all & ~(found->in[PROSE] | found->in[LISTED] | found->in[TITLE]))
        err = search_rest(&m);
    return err;
}

/* ---- passages ---------------------------------------------------------------------------------- */

struct passage {
    size_t begin, end;
    size_t first, last; /* where its first match begins, and its last one ends */
    uint64_t wanted;    /* a bit for each wanted word in it */
    unsigned matches;
    enum snippet_place place;
    size_t range;
};

/* The passage that begins shortly before match `first`. */
static struct passage passage_at(const struct wb_snippeter *snippeter, size_t first)
{
    const struct snippet_match *items = snippeter->matches.items;
    struct passage passage = {.begin = items[first].begin > BEFORE_BYTES ? items[first].begin - BEFORE_BYTES : 0,
                              .first = items[first].begin,
                              .last = items[first].end,
                              .place = items[first].place,
                              .range = items[first].range};

    passage.end = passage.begin + PASSAGE_BYTES;
    for (size_t i = first; i < snippeter->matches.count && items[i].end <= passage.end; i++) {
        if (items[i].place >= REST || items[i].range != passage.range) {
            if (i > first)
                break;
        }
        passage.wanted |= UINT64_C(1) << items[i].wanted;
        passage.last = items[i].end;
        passage.matches++;
    }
    /* A match longer than a passage. */
    if (passage.matches == 0) {
        passage.wanted = UINT64_C(1) << items[first].wanted;
        passage.end = items[first].end;
    }
    return passage;
}

/* The best passage that begins in such a place, lies outside `but`, and has words that are not in `known`. */
static struct passage best_passage(const struct wb_snippeter *snippeter, enum snippet_place place,
                                   const struct passage *but, uint64_t known)
{
    struct passage best = {.matches = 0};
    int best_words = 0;

    for (size_t i = 0; i < snippeter->matches.count; i++) {
        if (snippeter->matches.items[i].place != place)
            continue;
        struct passage passage = passage_at(snippeter, i);
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

/* Moves the ends of a passage to where sentences, or at least words, begin and end. */
static void fit(const struct snippet *s, struct passage *passage)
{
    struct wb_text_range within = {0, s->text.len};

    if (passage->place != REST)
        within = s->snippeter->ranges.items[passage->range];
    else /* a menu: only the entry */
        within = wb_text_block(s->text, passage->first);
    if (passage->last > within.end) /* several entries: the first one */
        passage->last = passage->first;
    struct wb_text_range fitted = wb_text_passage(s->text, within, passage->first, passage->last, passage->end);
    passage->begin = fitted.begin;
    passage->end = fitted.end;
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
    struct wb_snippeter *snippeter = s->snippeter;
    struct wb_slice text = s->text;
    size_t at = passage->begin;
    bool begins = wb_text_begins(text, passage->begin), ends = wb_text_ends(text, passage->end);
    int err = s->cut || !begins ? put_gap(s) : 0;

    if (err == 0 && s->html->len)
        err = wb_buf_append(s->html, " ", 1);
    for (size_t i = 0; err == 0 && i < snippeter->matches.count; i++) {
        const struct snippet_match *match = &snippeter->matches.items[i];
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

/* Without any match: how the main text begins; without one, the first block that is longer than entries of menus. */
static int put_opening(struct snippet *s)
{
    struct wb_text_range within = {0, s->text.len};

    if (s->snippeter->ranges.count)
        within = s->snippeter->ranges.items[0];
    for (size_t at = 0; !s->snippeter->ranges.count && at < s->text.len;) {
        struct wb_text_range block = wb_text_block(s->text, at);
        if (block.end - block.begin >= OPENING_BYTES) {
            within.begin = block.begin;
            break;
        }
        at = block.end + 1;
    }
    while (within.begin < within.end && wb_ascii_is_space(s->text.ptr[within.begin]))
        within.begin++;
    struct wb_text_range range =
        wb_text_passage(s->text, within, within.begin, within.begin, within.begin + PASSAGE_BYTES);
    struct passage opening = {.begin = range.begin, .end = range.end};
    return put_passage(s, &opening);
}

/* The best passage, and another one for words that it lacks: of the next place, if the first place lacks them too. */
static int put_best(struct snippet *s, const struct wb_snippet_found *found)
{
    struct passage first = {.matches = 0}, second = {.matches = 0};

    for (enum snippet_place place = PROSE; place <= REST && second.matches == 0; place++)
        if (first.matches == 0) {
            first = best_passage(s->snippeter, place, &first, place == REST ? found->in[TITLE] : 0);
            if (first.matches)
                second = best_passage(s->snippeter, place, &first, first.wanted);
        } else {
            second = best_passage(s->snippeter, place, &first, first.wanted | (place == REST ? found->in[TITLE] : 0));
        }
    if (first.matches == 0)
        return put_opening(s);
    fit(s, &first);
    if (second.matches)
        fit(s, &second);
    bool both = second.matches && (second.begin >= first.end || first.begin >= second.end);
    if (both && second.place == first.place && second.begin < first.begin) {
        struct passage other = first;
        first = second;
        second = other;
    }
    int err = put_passage(s, &first);
    return err == 0 && both ? put_passage(s, &second) : err;
}

int wb_snippet(struct wb_snippeter *snippeter, const struct wb_page *page, const struct wb_snippet_wish *wish,
               struct wb_buf *html_out, struct wb_snippet_found *found_out)
{
    struct wb_extract_input input = {page->url, page->type, page->charset, page->body, WB_EXTRACT_TEXT};
    struct wb_extract extract;
    int err = wb_extract(snippeter->extractor, &input, &extract);

    if (err == 0)
        err = find_ranges(snippeter, &extract);
    if (err == 0)
        err = find_matches(snippeter, &extract, wish, found_out);
    struct snippet s = {.snippeter = snippeter, .text = extract.text, .html = html_out};
    return err < 0 ? err : put_best(&s, found_out);
}
