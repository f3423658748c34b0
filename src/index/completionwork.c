/*
 * completionwork.c - collects titles and words for completions, and weighs them.
 *
 *   titles, parted at " - ", " | " and the like, and the words of the dictionary
 *     -> by folded text: each once, with the most important page that has it -> the file (completionwrite.c)
 *
 * Nothing is known of what readers ask, because no log is kept of that. So what many pages are about stands for what
 * many ask: a title counts more if it is that of a page with a high PageRank or of many pages, a word if many have it.
 * Words that an eighth of all pages have say nothing, and rare words may be anything: neither are completions.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "index/build.h"
#include "index/rankwork.h"

enum {
    SORT_MEMORY = 32 << 20,
    TITLE_BYTES_MAX = 1024, /* of a title that are looked at */
    PARTS_MAX = 4,
    WORD_BYTES_MIN = 3,
    WORD_BYTES_MAX = 40,
    FEW_PAGES = 40,         /* so few pages are about one thing: any word of theirs may be a completion */
    HEAD = 13,              /* of a value of the first sorter: docid, static part of the score, pages, flags */
    WEIGHT_FIRST = 20000,   /* the text begins with what was typed */
    WEIGHT_TITLE = 12000,
    WEIGHT_RANK = 12000,
    WEIGHT_PAGES = 1000, /* for each doubling */
    WEIGHT_WORD = 1900,  /* the same */
    WEIGHT_SHORT = 20,   /* for each byte that a title is shorter than the longest */
};

struct completionwork {
    struct wb_build *build;
    struct wb_words *words;
    struct wb_sorter *texts;
    struct wb_completions_writer *writer;
    struct wb_buf value; /* of a record */
};

/* ---- titles ------------------------------------------------------------------------------------------------ */

/* Controls, marks that change the direction, and the like: nothing that belongs into a line of text. */
static bool is_odd(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp <= 0xa0) || cp == 0xad || (cp >= 0x200b && cp <= 0x200f) ||
           (cp >= 0x2028 && cp <= 0x202f) || (cp >= 0x2060 && cp <= 0x206f) || cp == 0xfeff || cp >= 0xe0000;
}

/* Appends a text as one line: every run of blanks and odd characters becomes one blank. */
static int append_line(struct wb_buf *out, struct wb_slice text)
{
    bool blank = false;
    int err = 0;

    for (size_t at = 0; err == 0 && at < text.len;) {
        size_t n = wb_utf8_length(text.ptr + at, text.len - at);
        bool gap = n == 0 || text.ptr[at] == ' ' || is_odd(wb_utf8_decode(text.ptr + at, n));
        if (!gap && blank)
            err = wb_buf_append_char(out, ' ');
        if (!gap && err == 0)
            err = wb_buf_append(out, text.ptr + at, n);
        blank = gap;
        at += n ? n : 1;
    }
    return err;
}

/* A part of a title: what its words are, and how it is shown. */
static int add_part(struct completionwork *work, struct wb_slice part, uint32_t docid)
{
    const struct wb_build *build = work->build;
    struct wb_completion_text text;

    WB_CHECK(docid < build->roster.known);
    int err = wb_completion_fold(work->words, part, false, &text);
    char head[HEAD] = {0};
    if (err < 0 || text.folded_len < 2)
        return err;
    /* If it was cut, what is behind the last word is cut too. Otherwise that may be a bracket. */
    struct wb_slice shown = text.cut ? wb_slice(part.ptr + text.begin, text.end - text.begin) : wb_slice_trim(part);
    wb_put32(head, docid);
    wb_put32(head + 4, wb_static_score(build->ranks[docid], build->roster.url_count));
    wb_put32(head + 8, 1);
    wb_buf_clear(&work->value);
    err = wb_buf_append(&work->value, head, sizeof head);
    if (err == 0)
        err = append_line(&work->value, shown);
    if (work->value.len > HEAD + WB_COMPLETION_TEXT_MAX) /* punctuation, mostly: it is shown as it is folded */
        work->value.len = HEAD;
    return err < 0 ? err
                   : wb_sorter_add(work->texts, wb_slice(text.folded, text.folded_len), wb_buf_slice(&work->value));
}

/* The length of what parts a title at this place; 0: nothing does. It has a blank on both sides. */
static size_t separator_at(struct wb_slice title, size_t at)
{
    static const char *const marks[] = {" - ",  " | ",  " \xE2\x80\x94 ", " \xE2\x80\x93 ", " \xC2\xB7 ",
                                        " \xE2\x80\xA2 ", " :: ", " \xC2\xBB ", " \xC2\xAB ", " \xE2\x80\xBA "};

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (wb_slice_starts(wb_slice(title.ptr + at, title.len - at), wb_slice_str(marks[i])))
            return strlen(marks[i]);
    return 0;
}

static int add_title(struct completionwork *work, struct wb_slice title, uint32_t docid)
{
    size_t begin = 0;
    unsigned parts = 0;
    int err = 0;

    title.len = title.len < TITLE_BYTES_MAX ? title.len : TITLE_BYTES_MAX;
    for (size_t at = 0; err == 0 && at < title.len && parts < PARTS_MAX; at++) {
        size_t length = title.ptr[at] == ' ' ? separator_at(title, at) : 0;
        if (length == 0)
            continue;
        err = add_part(work, wb_slice(title.ptr + begin, at - begin), docid);
        parts++;
        begin = at + length;
        at = begin - 1;
    }
    return err < 0 || parts == PARTS_MAX || begin >= title.len
               ? err
               : add_part(work, wb_slice(title.ptr + begin, title.len - begin), docid);
}

static bool is_good_status(const struct wb_roster *roster, uint64_t number)
{
    WB_CHECK(roster->urls[number].page < roster->page_count);
    const struct wb_roster_page *page = &roster->pages[roster->urls[number].page];

    return page->status >= 200 && page->status <= 299;
}

/* Titles of pages with a good status. The pages come in the order of docids, both in the roster and in the table. */
static int add_titles(struct completionwork *work)
{
    const struct wb_roster *roster = &work->build->roster;
    struct wb_table_record record;
    struct wb_table *table = NULL;
    struct wb_cursor *cursor = NULL;
    char *path = wb_build_path(work->build, WB_TITLES_FILE);
    int more = 0, err = path ? wb_table_open(path, WB_TITLES_KIND, &table) : WB_E_NOMEM;

    wb_free(path);
    if (err == 0)
        err = wb_cursor_open(table, &cursor);
    for (uint64_t number = 0; err == 0 && number < roster->url_count; number++) {
        if (roster->urls[number].page == WB_DOCID_NONE)
            continue;
        more = wb_cursor_next(cursor, &record);
        WB_CHECK(more != 0);
        if (more < 0)
            err = more;
        WB_CHECK(more < 0 || record.key.len == 4); /* we have just written the table */
        if (err == 0 && record.value.len && is_good_status(roster, number))
            err = add_title(work, record.value, wb_get32_be(record.key.ptr));
    }
    wb_cursor_close(cursor);
    wb_table_close(table);
    return err;
}

/* ---- words ------------------------------------------------------------------------------------------------- */

/* Letters of scripts that have blanks. In others, pairs of characters were indexed, which are no words. */
static bool is_word(struct wb_slice text)
{
    if (text.len < WORD_BYTES_MIN || text.len > WORD_BYTES_MAX)
        return false;
    for (size_t at = 0; at < text.len;) {
        size_t n = wb_utf8_length(text.ptr + at, text.len - at);
        uint32_t cp = n ? wb_utf8_decode(text.ptr + at, n) : 0;
        if (n == 0 || (cp < 0x80 && (cp < 'a' || cp > 'z')) || (cp >= 0x0e00 && cp <= 0x0eff) ||
            (cp >= 0x1000 && cp <= 0x109f) || (cp >= 0x1780 && cp <= 0x17ff) || cp >= 0x2000)
            return false;
        at += n;
    }
    return true;
}

static int add_words(struct completionwork *work)
{
    const struct wb_build *build = work->build;
    uint64_t pages = build->roster.known, least = 2 + pages / 10000, most = pages > FEW_PAGES ? pages / 8 : pages;
    struct wb_postings *postings = NULL;
    struct wb_terms *terms = NULL;
    struct wb_slice key;
    struct wb_term term;
    int more = 0, err = wb_postings_open(build->path, build->lengths, (uint32_t)build->roster.url_count, &postings);

    if (err == 0)
        err = wb_terms_open(postings, &terms);
    while (err == 0 && (more = wb_terms_next(terms, &key, &term)) > 0) {
        char head[HEAD] = {0};
        struct wb_slice text = wb_slice(key.ptr, key.len > 2 ? key.len - 2 : 0);
        if (key.len <= 2 || memcmp(key.ptr + text.len, "\0E", 2) != 0 || term.df < least || term.df > most ||
            !is_word(text))
            continue;
        wb_put32(head, WB_DOCID_NONE);
        wb_put32(head + 8, term.df);
        head[12] = 1;
        err = wb_sorter_add(work->texts, text, wb_slice(head, sizeof head));
    }
    wb_terms_close(terms);
    wb_postings_close(postings);
    return err < 0 ? err : more;
}

/* ---- texts --------------------------------------------------------------------------------------------------- */

/* Everything with one folded form. */
struct text_group {
    struct wb_buf folded, shown;
    uint32_t docid, score, pages, df;
};

/* `each` for each doubling of a number from 1 on, at most `most` times; between two powers of 2, a straight line. */
static uint32_t doublings(uint32_t n, uint32_t most, uint32_t each)
{
    WB_CHECK(n > 0);
    uint32_t log = 31 - (uint32_t)__builtin_clz(n);
    uint32_t rest = (uint32_t)((((uint64_t)n << 16 >> log) - 65536) * each >> 16);

    return log < most ? log * each + rest : most * each;
}

static uint16_t weight_of(const struct text_group *group)
{
    WB_CHECK(group->folded.len <= WB_COMPLETION_TEXT_MAX);
    uint32_t word = group->df ? doublings(group->df, 20, WEIGHT_WORD) : 0;
    uint32_t rank = (uint32_t)((uint64_t)group->score * WEIGHT_RANK >> 20);
    uint32_t title = group->docid == WB_DOCID_NONE
                         ? 0
                         : WEIGHT_TITLE + (rank < WEIGHT_RANK ? rank : WEIGHT_RANK) +
                               doublings(group->pages, 8, WEIGHT_PAGES) +
                               (WB_COMPLETION_TEXT_MAX - (uint32_t)group->folded.len) * WEIGHT_SHORT;

    WB_CHECK((word > title ? word : title) <= UINT16_MAX - WEIGHT_FIRST);
    return (uint16_t)(word > title ? word : title);
}

static int end_group(struct completionwork *work, const struct text_group *group)
{
    uint16_t weight = weight_of(group);
    struct wb_completion completion = {
        .folded = wb_buf_slice(&group->folded),
        .text = group->docid == WB_DOCID_NONE || group->shown.len == 0 ? wb_buf_slice(&group->folded)
                                                                        : wb_buf_slice(&group->shown),
        .docid = group->docid,
        .pages = group->df > group->pages ? group->df : group->pages,
        .is_word = group->df != 0,
    };

    return group->folded.len == 0
               ? 0
               : wb_completions_add(work->writer, &completion, (uint16_t)(weight + WEIGHT_FIRST), weight);
}

/* The title of the page with the highest rank is the one that is shown; of equals that of the lowest docid. */
static int add_to_group(struct text_group *group, struct wb_slice value)
{
    uint32_t docid = wb_get32(value.ptr), score = wb_get32(value.ptr + 4), pages = wb_get32(value.ptr + 8);

    if (value.ptr[12]) {
        group->df = pages;
        return 0;
    }
    group->pages++;
    if (group->docid != WB_DOCID_NONE &&
        (score < group->score || (score == group->score && docid >= group->docid)))
        return 0;
    group->docid = docid;
    group->score = score;
    wb_buf_clear(&group->shown);
    return wb_buf_append(&group->shown, value.ptr + HEAD, value.len - HEAD);
}

static int write_texts(struct completionwork *work)
{
    struct text_group group = {.docid = WB_DOCID_NONE};
    struct wb_table_record record;
    int more = 0, err = wb_sorter_sort(work->texts);

    while (err == 0 && (more = wb_sorter_next(work->texts, &record)) > 0) {
        WB_CHECK(record.value.len >= HEAD && record.key.len <= WB_COMPLETION_TEXT_MAX);
        if (!wb_slice_equal(record.key, wb_buf_slice(&group.folded))) {
            err = end_group(work, &group);
            wb_buf_clear(&group.folded);
            wb_buf_clear(&group.shown);
            group.docid = WB_DOCID_NONE;
            group.score = group.pages = group.df = 0;
            if (err == 0)
                err = wb_buf_append_slice(&group.folded, record.key);
        }
        if (err == 0)
            err = add_to_group(&group, record.value);
    }
    if (err == 0 && more == 0)
        err = end_group(work, &group);
    wb_buf_release(&group.folded);
    wb_buf_release(&group.shown);
    return err < 0 ? err : more;
}

int wb_completionwork(struct wb_build *build)
{
    struct wb_sorter_options sort = {.dir = build->root, .memory_bytes = SORT_MEMORY};
    struct completionwork work = {.build = build};
    char *path = wb_build_path(build, WB_COMPLETIONS_FILE);
    int err = path ? wb_words_new(&work.words) : WB_E_NOMEM;

    if (err == 0)
        err = wb_sorter_open(&sort, &work.texts);
    if (err == 0)
        err = wb_completions_create(path, build->root, &work.writer);
    if (err == 0)
        err = add_titles(&work);
    if (err == 0)
        err = add_words(&work);
    if (err == 0)
        err = wb_build_progress(build, "writing completions", 0, 1);
    if (err == 0)
        err = write_texts(&work);
    if (err == 0)
        err = wb_completions_finish(work.writer);
    else
        wb_completions_abandon(work.writer);
    wb_sorter_close(work.texts);
    wb_words_free(work.words);
    wb_buf_release(&work.value);
    wb_free(path);
    return err;
}
