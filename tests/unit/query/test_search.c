/*
 * test_search.c - random queries of all kinds find exactly the documents that a test of each document finds, and the
 * best k are the first k of all.
 */
#include "search_support.h"

/* ---- queries as trees ---------------------------------------------------------------------------- */

enum kind { WORD, PHRASE, NEAR, TITLE, HEADING, ANCHOR, PREFIX, SITE, LINK, LINKFROM, INLINKS, STATUS, NOT, AND, OR };

struct query {
    enum kind kind;
    uint16_t words[4];
    size_t count;    /* of words, or of items */
    uint32_t number; /* slop; document; bound; host */
    bool below;      /* INLINKS: < instead of >= */
    char prefix[8];
    struct query *items[4];
};

static bool has_word(const struct text *text, uint16_t word)
{
    for (size_t i = 0; i < text->count; i++)
        if (text->words[i] == word)
            return true;
    return false;
}

static bool has_row(const struct text *text, const struct query *q)
{
    for (size_t i = 0; i + q->count <= text->count; i++)
        if (memcmp(text->words + i, q->words, q->count * sizeof *q->words) == 0)
            return true;
    return false;
}

/* Two words with at most so many others between them, in any order. */
static bool has_near(const struct text *text, const struct query *q)
{
    for (size_t i = 0; i < text->count; i++)
        for (size_t k = 0; k < text->count; k++)
            if (i != k && text->words[i] == q->words[0] && text->words[k] == q->words[1] &&
                (i < k ? k - i : i - k) <= q->number + 1)
                return true;
    return false;
}

static bool in_any_text(const struct doc *doc, const struct query *q,
                        bool (*test)(const struct text *text, const struct query *q))
{
    bool found = false;

    if (!doc->far)
        found = test(&doc->title, q) || test(&doc->heading, q) || test(&doc->body, q);
    for (size_t i = 0; !found && i < doc->anchor_count; i++)
        found = test(&doc->anchors[i], q);
    return found;
}

static bool test_word(const struct text *text, const struct query *q)
{
    return has_word(text, q->words[0]);
}

static const struct web *the_web;

static bool test_prefix(const struct text *text, const struct query *q)
{
    for (size_t i = 0; i < text->count; i++)
        if (text->words[i] != SEPARATOR &&
            strncmp(the_web->vocabulary[text->words[i]], q->prefix, strlen(q->prefix)) == 0)
            return true;
    return false;
}

/* The URL of a page is words, too. */
static bool url_begins(const struct doc *doc, const char *prefix)
{
    bool begin = true, found = false;

    for (const char *p = doc->url; *p && !doc->far; p++) {
        found |= begin && strncmp(p, prefix, strlen(prefix)) == 0;
        begin = *p == '.' || *p == '/';
    }
    return found;
}

static bool in_anchors(const struct doc *doc, uint16_t word)
{
    for (size_t i = 0; i < doc->anchor_count; i++)
        if (has_word(&doc->anchors[i], word))
            return true;
    return false;
}

static bool links_to(const struct doc *doc, uint32_t number)
{
    for (size_t i = 0; i < doc->link_count; i++)
        if (doc->links[i] == number)
            return true;
    return false;
}

static bool in_site(const struct doc *doc, const char *site)
{
    const char *host = host_name(doc->host);
    size_t more = strlen(host) > strlen(site) ? strlen(host) - strlen(site) : 0;

    return strcmp(host + more, site) == 0 && (more == 0 || host[more - 1] == '.');
}

/* Whether a query only says what documents must not have. Then it is about pages, and not about other URLs. */
static bool only_negations(const struct query *q)
{
    bool only = q->kind == AND;

    for (size_t i = 0; only && i < q->count; i++)
        only = only_negations(q->items[i]);
    return only || q->kind == NOT;
}

static bool holds(const struct query *q, uint32_t number);

/* A part of an AND. Negations only take away what the other parts find. */
static bool part_holds(const struct query *q, uint32_t number)
{
    bool all = true;

    if (!only_negations(q))
        return holds(q, number);
    if (q->kind == NOT)
        return !holds(q->items[0], number);
    for (size_t i = 0; i < q->count; i++)
        all &= part_holds(q->items[i], number);
    return all;
}

static bool holds(const struct query *q, uint32_t number)
{
    const struct doc *doc = &the_web->docs[number];
    bool all = true, any = false;

    switch (q->kind) {
    case WORD:
        return in_any_text(doc, q, test_word);
    case PHRASE:
        return in_any_text(doc, q, has_row);
    case NEAR:
        return in_any_text(doc, q, has_near);
    case PREFIX:
        return in_any_text(doc, q, test_prefix) || url_begins(doc, q->prefix);
    case TITLE:
        return !doc->far && has_word(&doc->title, q->words[0]);
    case HEADING:
        return !doc->far && has_word(&doc->heading, q->words[0]);
    case ANCHOR:
        return in_anchors(doc, q->words[0]);
    case SITE:
        return in_site(doc, host_name((uint16_t)q->number));
    case LINK:
        return !doc->far && links_to(doc, q->number);
    case LINKFROM:
        return links_to(&the_web->docs[q->number], number);
    case INLINKS:
        return q->below ? doc->inlinks < q->number : doc->inlinks >= q->number;
    case STATUS:
        return !doc->far && doc->missing == (q->number == 404);
    case NOT:
        return !doc->far && !holds(q->items[0], number);
    case AND:
        for (size_t i = 0; i < q->count; i++)
            all &= part_holds(q->items[i], number);
        return all && !(doc->far && only_negations(q));
    case OR:
        for (size_t i = 0; i < q->count; i++)
            any |= holds(q->items[i], number);
        return any;
    }
    return false;
}

static bool has_status(const struct query *q, bool negated)
{
    if (q->kind == STATUS)
        return !negated;
    if (q->kind == NOT)
        return has_status(q->items[0], !negated);
    for (size_t i = 0; (q->kind == AND || q->kind == OR) && i < q->count; i++)
        if (has_status(q->items[i], negated))
            return true;
    return false;
}

static void print_query(const struct query *q, struct wb_buf *out)
{
    const char(*v)[12] = the_web->vocabulary;

    switch (q->kind) {
    case WORD:
        ok(wb_buf_append_str(out, v[q->words[0]]));
        break;
    case PHRASE:
    case NEAR:
        for (size_t i = 0; i < q->count; i++)
            ok(wb_buf_printf(out, "%s%s", i ? " " : "\"", v[q->words[i]]));
        ok(q->kind == NEAR ? wb_buf_printf(out, "\"~%u", q->number) : wb_buf_append_str(out, "\""));
        break;
    case PREFIX:
        ok(wb_buf_printf(out, "%s*", q->prefix));
        break;
    case TITLE:
        ok(wb_buf_printf(out, "title:%s", v[q->words[0]]));
        break;
    case HEADING:
        ok(wb_buf_printf(out, "heading:%s", v[q->words[0]]));
        break;
    case ANCHOR:
        ok(wb_buf_printf(out, "anchor:%s", v[q->words[0]]));
        break;
    case SITE:
        ok(wb_buf_printf(out, "site:%s", host_name((uint16_t)q->number)));
        break;
    case LINK:
        ok(wb_buf_printf(out, "link:%s", the_web->docs[q->number].url));
        break;
    case LINKFROM:
        ok(wb_buf_printf(out, "linkfrom:%s", the_web->docs[q->number].url));
        break;
    case INLINKS:
        ok(wb_buf_printf(out, "inlinks:%s%u", q->below ? "<" : ">=", q->number));
        break;
    case STATUS:
        ok(wb_buf_printf(out, "status:%u", q->number));
        break;
    case NOT:
        ok(wb_buf_append_str(out, "-"));
        print_query(q->items[0], out);
        break;
    case AND:
    case OR:
        ok(wb_buf_append_str(out, "("));
        for (size_t i = 0; i < q->count; i++) {
            ok(wb_buf_append_str(out, i == 0 ? "" : q->kind == AND ? " " : " OR "));
            print_query(q->items[i], out);
        }
        ok(wb_buf_append_str(out, ")"));
        break;
    }
}

/* ---- random ones ----------------------------------------------------------------------------------- */

static struct query *new_query(enum kind kind)
{
    struct query *q = wb_alloc_zero(1, sizeof *q);

    assert_non_null(q);
    q->kind = kind;
    return q;
}

static void free_query(struct query *q)
{
    for (size_t i = 0; i < 4; i++)
        if (q->items[i])
            free_query(q->items[i]);
    wb_free(q);
}

/* Words that some document has next to each other. */
static void pick_row(struct web *web, struct query *q, size_t count)
{
    for (;;) {
        const struct doc *doc = &web->docs[chance_below(&web->chance, DOCS)];
        const struct text *text = chance_one_in(&web->chance, 4) ? &doc->title : &doc->body;
        size_t at = chance_below(&web->chance, text->count);
        bool fine = at + count <= text->count;
        for (size_t i = 0; fine && i < count; i++) {
            q->words[i] = text->words[at + i];
            fine = q->words[i] != SEPARATOR;
        }
        if (fine)
            break;
    }
    q->count = count;
}

static struct query *random_leaf(struct web *web)
{
    static const enum kind kinds[] = {WORD,  WORD,    WORD,   WORD,   WORD, WORD, PHRASE,   PHRASE,  NEAR,
                                      TITLE, HEADING, ANCHOR, PREFIX, SITE, LINK, LINKFROM, INLINKS, STATUS};
    struct query *q = new_query(kinds[chance_below(&web->chance, sizeof kinds / sizeof *kinds)]);

    q->words[0] = pick_word(web);
    q->count = 1;
    if (q->kind == PHRASE)
        pick_row(web, q, 2 + chance_below(&web->chance, 2));
    if (q->kind == NEAR) {
        pick_row(web, q, 2);
        q->number = 1 + (uint32_t)chance_below(&web->chance, 6);
    }
    if (q->kind == PREFIX)
        snprintf(q->prefix, sizeof q->prefix, "%.*s", (int)(2 + chance_below(&web->chance, 3)),
                 web->vocabulary[q->words[0]]);
    if (q->kind == SITE)
        q->number = (uint32_t)chance_below(&web->chance, HOSTS);
    if (q->kind == LINK)
        q->number = (uint32_t)(DOCS - 50 + chance_below(&web->chance, 50 + FAR));
    if (q->kind == LINKFROM)
        q->number = (uint32_t)chance_below(&web->chance, DOCS);
    if (q->kind == INLINKS) {
        q->number = (uint32_t)chance_below(&web->chance, 6);
        q->below = chance_one_in(&web->chance, 2);
    }
    if (q->kind == STATUS)
        q->number = chance_one_in(&web->chance, 2) ? 200 : 404;
    return q;
}

static struct query *random_query(struct web *web, unsigned depth)
{
    if (depth == 0 || chance_one_in(&web->chance, 4))
        return random_leaf(web);
    struct query *q = new_query(chance_one_in(&web->chance, 2) ? AND : OR);
    q->count = 2 + chance_below(&web->chance, 3);
    for (size_t i = 0; i < q->count; i++) {
        q->items[i] = random_query(web, depth - 1);
        if (chance_one_in(&web->chance, 5)) {
            struct query *not = new_query(NOT);
            not ->count = 1;
            not ->items[0] = q->items[i];
            q->items[i] = not ;
        }
    }
    return q;
}

/* ---- tests ------------------------------------------------------------------------------------------- */

static void search(struct web *web, struct wb_slice text, struct wb_search_options options, struct wb_results *results)
{
    options.query = text;
    options.no_texts = true;
    if (wb_search(web->searcher, &options, results) < 0)
        fail_msg("%.*s: %s", WB_SLICE_ARG(text), wb_error_message());
}

static void expect_found(struct web *web, const struct query *q, struct wb_slice text, const struct wb_results *all)
{
    uint8_t *found = wb_alloc_zero(DOCS + FAR, 1);
    bool any_status = has_status(q, false);

    for (size_t i = 0; i < all->hit_count; i++)
        found[all->hits[i].docid]++;
    for (uint32_t i = 0; i < DOCS + FAR; i++) {
        const struct doc *doc = &web->docs[i];
        if (doc->docid == WB_DOCID_NONE)
            continue;
        bool wanted = holds(q, i) && (any_status || !doc->missing);
        if (found[doc->docid] != wanted)
            fail_msg("%.*s: %s is found %d times, wanted %d", WB_SLICE_ARG(text), doc->url, found[doc->docid], wanted);
    }
    assert_int_equal(all->total, all->hit_count);
    assert_true(all->exact);
    wb_free(found);
}

static void expect_top(struct web *web, struct wb_slice text, const struct wb_results *all, uint64_t offset, uint64_t k)
{
    struct wb_results top;

    search(web, text, (struct wb_search_options){.limit = k, .offset = offset, .count = true}, &top);
    assert_int_equal(top.total, all->hit_count);
    size_t left = all->hit_count > offset ? all->hit_count - (size_t)offset : 0;
    assert_int_equal(top.hit_count, left < k ? left : k);
    for (size_t i = 0; i < top.hit_count; i++)
        if (top.hits[i].docid != all->hits[offset + i].docid || top.hits[i].score != all->hits[offset + i].score)
            fail_msg("%.*s: hit %zu of the best %zu is %u with %f instead of %u with %f", WB_SLICE_ARG(text), i,
                     (size_t)k, top.hits[i].docid, top.hits[i].score, all->hits[offset + i].docid,
                     all->hits[offset + i].score);
    wb_results_release(&top);
}

static void expect_parts(struct web *web, struct wb_slice text)
{
    struct wb_results results;

    search(web, text, (struct wb_search_options){.limit = 20, .explain = true}, &results);
    assert_true(results.plan.len > 0);
    for (size_t i = 0; i < results.hit_count; i++) {
        double sum = 0;
        for (size_t k = 0; k < results.hits[i].part_count; k++)
            sum += results.hits[i].parts[k].score;
        if (sum != results.hits[i].score)
            fail_msg("%.*s: the parts of a score are %f instead of %f", WB_SLICE_ARG(text), sum, results.hits[i].score);
    }
    wb_results_release(&results);
}

static void random_queries(void **state)
{
    struct web *web = *state;
    size_t empty = 0, rounds = 400;

    the_web = web;
    for (size_t n = 0; n < rounds; n++) {
        struct query *q = random_query(web, (unsigned)(n % 4));
        struct wb_buf text = WB_BUF_INIT;
        struct wb_results all;
        print_query(q, &text);
        search(web, wb_buf_slice(&text), (struct wb_search_options){.limit = 100000, .exhaustive = true}, &all);
        expect_found(web, q, wb_buf_slice(&text), &all);
        for (size_t i = 1; i < all.hit_count; i++)
            assert_true(all.hits[i - 1].score > all.hits[i].score ||
                        (all.hits[i - 1].score == all.hits[i].score && all.hits[i - 1].docid < all.hits[i].docid));
        expect_top(web, wb_buf_slice(&text), &all, 0, 1);
        expect_top(web, wb_buf_slice(&text), &all, 0, 10);
        expect_top(web, wb_buf_slice(&text), &all, 7, 100);
        if (n % 4 == 0)
            expect_parts(web, wb_buf_slice(&text));
        empty += all.hit_count == 0;
        wb_results_release(&all);
        wb_buf_release(&text);
        free_query(q);
    }
    assert_true(empty < rounds / 2);
}

/* Many words, of which many are in each document, so that bounds decide. */
static void many_words(void **state)
{
    struct web *web = *state;

    for (size_t n = 0; n < 100; n++) {
        struct wb_buf text = WB_BUF_INIT;
        struct wb_results all;
        size_t words = 1 + chance_below(&web->chance, 12);
        for (size_t i = 0; i < words; i++)
            ok(wb_buf_printf(&text, "%s%s", i ? n % 3 ? " OR " : " " : "", web->vocabulary[pick_word(web)]));
        search(web, wb_buf_slice(&text), (struct wb_search_options){.limit = 100000, .exhaustive = true}, &all);
        expect_top(web, wb_buf_slice(&text), &all, 0, 1);
        expect_top(web, wb_buf_slice(&text), &all, 0, 10);
        expect_top(web, wb_buf_slice(&text), &all, 0, 1000);
        wb_results_release(&all);
        wb_buf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_queries),
        cmocka_unit_test(many_words),
    };

    return cmocka_run_group_tests_name("search", tests, set_up_web, tear_down_web);
}
