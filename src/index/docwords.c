/*
 * docwords.c - the words of a page.
 *
 *   title     what the page calls itself
 *   headings  each followed by a gap, so that no phrase spans two of them
 *   body      main text and the rest, in reading order
 *   URL       host and path as words, without the scheme
 *   anchors   the texts of links to the page, which come from other pages (wb_docwords_anchors)
 */
#include "index/docwords.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "page/page.h"

enum {
    HEADING_GAP = 1,
    HEADING_BYTES_MAX = 300, /* of a heading that stands for a title */
};

int wb_docwords_init(struct wb_docwords *worker, size_t memory_bytes)
{
    *worker = (struct wb_docwords){.budget = 0};
    int err = wb_extractor_new(&worker->extractor);
    if (err == 0)
        err = wb_words_new(&worker->words);
    if (err == 0)
        err = wb_inverter_new(memory_bytes, &worker->inverter);
    return err;
}

void wb_docwords_release(struct wb_docwords *worker)
{
    wb_extractor_free(worker->extractor);
    wb_words_free(worker->words);
    wb_inverter_free(worker->inverter);
    wb_buf_release(&worker->kept);
    *worker = (struct wb_docwords){.budget = 0};
}

int wb_docwords_rules(uint64_t *rules_out)
{
    struct wb_words *words = NULL;
    uint64_t parts[2] = {WB_DOCWORDS_RULES, 0};
    int err = wb_words_new(&words);

    if (err == 0)
        err = wb_words_version(words, &parts[1]);
    wb_words_free(words);
    *rules_out = wb_hash64(parts, sizeof parts);
    return err;
}

/* Adds the words of a text from position *at on, which becomes the position after the last one. */
static int add_text(struct wb_docwords *worker, struct wb_slice text, const char *language, enum wb_field field,
                    uint32_t *at, uint32_t *words)
{
    struct wb_word word;
    uint32_t first = *at;
    struct wb_slice stem;
    /* Without stems: the inverter remembers those of words that it has seen before. */
    int more = 0, err = wb_words_begin(worker->words, text, NULL);

    WB_CHECK(field < WB_FIELDS);
    while (err == 0 && worker->budget && (more = wb_words_next(worker->words, &word)) > 0) {
        worker->budget--;
        err = wb_inverter_add(worker->inverter, word.exact, word.kind == WB_WORD_PLAIN, field, first + word.position);
        if (err > 0) {
            err = wb_words_stem_last(worker->words, &word, language, &stem);
            err = err < 0 ? err : wb_inverter_stem(worker->inverter, stem);
        }
        *at = first + word.position + 1;
        *words += word.kind != WB_WORD_COMPOUND;
    }
    return err < 0 ? err : more < 0 ? more : 0;
}

/* Adds the parts of the text of one kind, headings or not, in their own space. words: by field. */
static int add_spans(struct wb_docwords *worker, const struct wb_extract *extract, const char *language, bool headings,
                     uint32_t words[WB_FIELDS])
{
    uint32_t at = 0;
    int err = 0;

    for (size_t i = 0; err == 0 && i < extract->span_count; i++) {
        const struct wb_extract_span *span = &extract->spans[i];
        bool heading = span->flags & WB_EXTRACT_SPAN_HEADING;
        enum wb_field field = heading                              ? WB_FIELD_HEADING
                              : span->flags & WB_EXTRACT_SPAN_MAIN ? WB_FIELD_MAIN
                                                                   : WB_FIELD_OTHER;
        WB_CHECK(span->begin <= span->end);
        WB_CHECK(span->end <= extract->text.len);
        if (heading != headings)
            continue;
        err = add_text(worker, wb_slice(extract->text.ptr + span->begin, span->end - span->begin), language, field, &at,
                       &words[field]);
        at += heading ? HEADING_GAP : 0;
    }
    return err;
}

/* The language of a page: what its text looks like, or else what it says. */
static const char *language_of(const struct wb_extract *extract, uint8_t *number_out)
{
    *number_out = wb_language_number(wb_slice_str(extract->language));
    if (*number_out == 0)
        *number_out = wb_language_number(extract->lang);
    return wb_language_code(*number_out);
}

/* What a page is called: its title; without one, its first heading, if that is short enough to be one. */
static struct wb_slice name_of(const struct wb_extract *extract)
{
    for (size_t i = 0; extract->title.len == 0 && i < extract->span_count; i++) {
        const struct wb_extract_span *span = &extract->spans[i];
        WB_CHECK(span->begin <= span->end && span->end <= extract->text.len);
        struct wb_slice heading = wb_slice_trim(wb_slice(extract->text.ptr + span->begin, span->end - span->begin));
        if (span->flags & WB_EXTRACT_SPAN_HEADING && heading.len)
            return heading.len <= HEADING_BYTES_MAX ? heading : WB_SLICE_EMPTY;
    }
    return extract->title;
}

uint64_t wb_docwords_length(uint32_t words, uint8_t linked)
{
    WB_CHECK(linked <= 100);
    uint64_t more = (2u * 100 + 6u * linked) * linked; /* of 10,000 */

    return words ? words + words * more / 10000 : WB_UNKNOWN_LENGTH;
}

int wb_docwords_page(struct wb_docwords *worker, uint32_t docid, const struct wb_page *page,
                     struct wb_docfacts *work_out)
{
    struct wb_extract_input input = {page->url, page->type, page->charset, page->body,
                                     WB_EXTRACT_TEXT | WB_EXTRACT_LANGUAGE};
    struct wb_extract extract;
    uint32_t words[WB_FIELDS] = {0}, at = 0;

    WB_CHECK(docid != UINT32_MAX);
    int err = wb_extract(worker->extractor, &input, &extract);
    if (err < 0)
        return err;
    const char *language = language_of(&extract, &work_out->lang);
    worker->budget = WB_INDEX_WORDS_MAX;
    wb_inverter_begin(worker->inverter, docid, work_out->lang);
    err = add_text(worker, extract.title, language, WB_FIELD_TITLE, &at, &words[WB_FIELD_TITLE]);
    if (err == 0)
        err = add_spans(worker, &extract, language, true, words);
    if (err == 0)
        err = add_spans(worker, &extract, language, false, words);
    at = 0;
    worker->budget = WB_INDEX_WORDS_MAX;
    if (err == 0)
        err = add_text(worker, page->key, language, WB_FIELD_URL, &at, &words[WB_FIELD_URL]);
    if (err == 0)
        err = wb_inverter_end(worker->inverter);
    /* What is kept and shown is called that, too. */
    extract.title = name_of(&extract);
    if (err == 0)
        err = wb_kept_text_make(&extract, &worker->kept);
    work_out->kept = wb_buf_slice(&worker->kept);
    work_out->title = extract.title;
    work_out->published_ms = extract.published_ms;
    work_out->modified_ms = extract.modified_ms;
    work_out->facts = extract.facts;
    work_out->fact_count = extract.fact_count;
    work_out->words =
        words[WB_FIELD_TITLE] + words[WB_FIELD_HEADING] + words[WB_FIELD_MAIN] + (words[WB_FIELD_OTHER] + 3) / 4;
    work_out->length = wb_docwords_length(work_out->words, extract.linked);
    return err;
}

int wb_docwords_anchors(struct wb_docwords *worker, uint32_t docid, const struct wb_anchor *anchors, size_t count)
{
    uint32_t at = 0, words = 0;
    int err = 0;

    WB_CHECK(docid != UINT32_MAX);
    worker->budget = WB_INDEX_WORDS_MAX;
    /* Texts of links are short, and their language is not known: they are stemmed as English, like unknown pages. */
    wb_inverter_begin(worker->inverter, docid, 0);
    for (size_t i = 0; err == 0 && i < count; i++) {
        uint32_t before = words;
        /* The text of n links counts 1 + log2(n) times: a thousand links count more than one, but a list stays short.
         */
        for (uint32_t left = anchors[i].links; err == 0 && left; left /= 2) {
            err = add_text(worker, anchors[i].text, "", WB_FIELD_ANCHOR, &at, &words);
            at += WB_ANCHOR_GAP;
            if (words == before)
                break;
        }
    }
    return err < 0 ? err : wb_inverter_end(worker->inverter);
}
