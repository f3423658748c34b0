/* webdb_arcs_model.h - links as pairs of numbers: what must come out of an edition that was written from arrays. */
#ifndef WB_TESTS_WEBDB_ARCS_MODEL_H
#define WB_TESTS_WEBDB_ARCS_MODEL_H

#include "webdb_support.h"

/* ---- the model ------------------------------------------------------------------------------- */

struct arc {
    uint32_t from, to;
    const struct part_link *link;
};

struct arcs {
    struct arc *items;
    size_t count;
};

static int by_source(const void *a, const void *b)
{
    const struct arc *x = a, *y = b;

    return x->from != y->from ? (x->from < y->from ? -1 : 1) : x->to != y->to ? (x->to < y->to ? -1 : 1) : 0;
}

static int by_target(const void *a, const void *b)
{
    const struct arc *x = a, *y = b;

    return x->to != y->to ? (x->to < y->to ? -1 : 1) : x->from != y->from ? (x->from < y->from ? -1 : 1) : 0;
}

/* Every page with a content has the links of that content. */
static struct arcs make_arcs(const struct parts *parts)
{
    struct arcs arcs = {NULL, 0};
    size_t cap = 1024;

    arcs.items = wb_alloc(cap * sizeof *arcs.items);
    for (size_t i = 0; i < parts->out_count; i++)
        for (size_t e = parts->out[i].owner;
             e < parts->content_count && content_of_entry(parts, e) == parts->out[i].owner; e++) {
            if (arcs.count == cap)
                arcs.items = wb_realloc(arcs.items, (cap *= 2) * sizeof *arcs.items);
            arcs.items[arcs.count++] = (struct arc){(uint32_t)wb_get64_be(parts->contents[e].page),
                                                    (uint32_t)parts->out[i].number, &parts->out[i]};
        }
    return arcs;
}

static void sort_arcs(struct arcs *arcs, enum wb_webdb_direction direction)
{
    if (arcs->count)
        qsort(arcs->items, arcs->count, sizeof *arcs->items, direction == WB_ARCS_OUT ? by_source : by_target);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void same_text(const struct wb_webdb_arc_text *text, const struct part_link *link)
{
    assert_true(wb_slice_equal(text->anchor, wb_slice(link->anchor, link->anchor_len)));
    assert_true(text->tag == link->tag && text->flags == link->flags);
}

/* Finds an arc among those of one URL, which are in the order of their other ends. */
static size_t find_arc(const struct arcs *arcs, size_t first, size_t end, enum wb_webdb_direction direction,
                       uint32_t other)
{
    for (; first < end; first++)
        if ((direction == WB_ARCS_OUT ? arcs->items[first].to : arcs->items[first].from) == other)
            return first;
    fail();
    return 0;
}

/* The walk must return items[at, end), URL by URL. With texts by target, the ends of a URL come in any order. */
static void expect_walk(struct wb_webdb_arcs *walk, const struct arcs *arcs, size_t at, size_t end,
                        enum wb_webdb_direction direction, bool texts)
{
    struct wb_webdb_portion portion;
    size_t first = at; /* of the current URL */
    int more;

    while ((more = wb_webdb_arcs_next(walk, &portion)) == 1) {
        assert_true(portion.count > 0 && (portion.texts != NULL) == texts && portion.count <= end - at);
        for (size_t i = 0; i < portion.count; i++, at++) {
            const struct arc *arc = &arcs->items[at];
            uint32_t number = direction == WB_ARCS_OUT ? arc->from : arc->to;
            assert_int_equal(portion.number, number);
            if (at > 0 && number != (direction == WB_ARCS_OUT ? arc[-1].from : arc[-1].to))
                first = at;
            if (texts && direction == WB_ARCS_IN) {
                arc = &arcs->items[find_arc(arcs, first, end, direction, portion.ends[i])];
                assert_int_equal(arc->to, number);
            }
            assert_int_equal(portion.ends[i], direction == WB_ARCS_OUT ? arc->to : arc->from);
            if (texts)
                same_text(&portion.texts[i], arc->link);
        }
    }
    assert_int_equal(more, 0);
    assert_int_equal(at, end);
    wb_webdb_arcs_close(walk);
}

static void expect_arcs(struct wb_webdb *webdb, const struct parts *parts, uint64_t *chance)
{
    struct arcs arcs = make_arcs(parts);
    struct wb_webdb_arcs *walk;

    for (int round = 0; round < 4; round++) {
        enum wb_webdb_direction direction = round & 1 ? WB_ARCS_IN : WB_ARCS_OUT;
        struct wb_webdb_arcs_options options = {.texts = round & 2, .memory_bytes = 1, .threads = round & 1};
        sort_arcs(&arcs, direction);
        assert_int_equal(wb_webdb_arcs(webdb, direction, &options, &walk), 0);
        expect_walk(walk, &arcs, 0, arcs.count, direction, options.texts);
        size_t step = 1 + parts->page_count / 100;
        for (size_t n = chance_below(chance, step); n < parts->page_count; n += step) {
            size_t at = 0, end;
            while (at < arcs.count && (direction == WB_ARCS_OUT ? arcs.items[at].from : arcs.items[at].to) != n)
                at++;
            for (end = at; end < arcs.count; end++)
                if ((direction == WB_ARCS_OUT ? arcs.items[end].from : arcs.items[end].to) != n)
                    break;
            assert_int_equal(wb_webdb_arcs_of(webdb, n, direction, &options, &walk), 0);
            expect_walk(walk, &arcs, at, end, direction, options.texts);
        }
    }
    wb_free(arcs.items);
}

#endif
