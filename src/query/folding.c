/*
 * folding.c - which of the best results are shown as hits, and which are folded under a hit that they are much like.
 *
 * Results are looked at in their order, whatever it is. A result is folded under the first hit that is at most
 * FOLD_REACH places before it and that it is like, or that something is folded under that it is like (a translation of
 * a copy); otherwise it is a hit. So what becomes of a result depends on its place and on those before it alone, not on
 * which page of results is asked for: each one is either a hit or folded under one, and the one that it is folded under
 * is shown on one page with all that is folded there.
 *
 *   place       0    1    2    3    4    5
 *   result      A    B    A'   C    B'   D          A' is like A
 *   hit         0    1    (0)  2    (1)  3
 *
 * Folding needs the FOLD_REACH results after the last hit of a page, and costs a look at a few columns for each.
 * Results from FOLD_PLACES on are never folded, which bounds how many must be found before any page.
 */
#include "base/check.h"
#include "base/error.h"
#include "extract/extract.h"
#include "query/results.h"

enum {
    FOLD_REACH = 40,
    FOLD_PLACES = 5000,
    FOLD_DEEPER = 4, /* times as many results are looked for if there were too few hits among them */
    FOLD_TITLE_BITS = 12, /* pages of a site with one title are alike if their fingerprints differ in no more bits */
};

/* What decides whether two pages are alike. */
struct kin {
    uint64_t simhash;
    uint32_t near, alternate, site, title;
    uint8_t language;
    bool page; /* it was fetched */
};

struct columns {
    const uint64_t *simhash;
    const uint32_t *near, *alternate, *site, *title;
    const uint8_t *language;
    uint32_t pages;
};

static int open_columns(struct wb_searcher *searcher, struct columns *columns_out)
{
    static const enum wb_fact facts[] = {WB_FACT_SIMHASH, WB_FACT_NEAR,  WB_FACT_ALTERNATE,
                                         WB_FACT_SITE,    WB_FACT_TITLE, WB_FACT_LANG};
    const void *values[sizeof facts / sizeof *facts];
    int err = 0;

    for (size_t i = 0; err == 0 && i < sizeof facts / sizeof *facts; i++)
        err = wb_index_fact(searcher->index, facts[i], &values[i]);
    if (err < 0)
        return err;
    *columns_out = (struct columns){values[0], values[1], values[2], values[3], values[4], values[5], searcher->pages};
    return 0;
}

static struct kin kin_of(const struct columns *columns, uint32_t docid)
{
    if (docid >= columns->pages)
        return (struct kin){.page = false};
    return (struct kin){columns->simhash[docid], columns->near[docid],  columns->alternate[docid],
                        columns->site[docid],    columns->title[docid], columns->language[docid],
                        true};
}

/* Whether two pages are the same in two languages, or near duplicates of each other. */
static bool are_related(const struct kin *a, const struct kin *b)
{
    return a->page && b->page &&
           (a->near == b->near ||
            (a->site == b->site && a->alternate == b->alternate && a->language != b->language));
}

/* Whether a page has the title of a hit of its site, and much the same text. */
static bool is_titled_alike(const struct kin *hit, const struct kin *kin)
{
    return hit->page && kin->page && hit->site == kin->site && hit->title == kin->title && hit->title &&
           hit->language == kin->language && hit->simhash && kin->simhash &&
           wb_simhash_distance(hit->simhash, kin->simhash) <= FOLD_TITLE_BITS;
}

static uint64_t add_places(uint64_t a, uint64_t b)
{
    return a <= UINT64_MAX - b ? a + b : UINT64_MAX;
}

uint64_t wb_fold_depth(const struct wb_search_options *options, uint64_t before)
{
    uint64_t need = add_places(options->offset, options->limit);
    uint64_t most = add_places(need, FOLD_PLACES + FOLD_REACH);

    if (!options->fold || options->limit == 0)
        return options->limit ? need : 0;
    uint64_t depth = before ? (before <= most / FOLD_DEEPER ? before * FOLD_DEEPER : most)
                            : add_places(need, (need < FOLD_PLACES ? need : FOLD_PLACES) + FOLD_REACH);
    return depth < most ? depth : most;
}

/* A result that others may still be folded with. */
struct recent {
    struct kin kin;
    size_t hit; /* the number of the hit that it is, or is folded under */
};

struct folding {
    const struct wb_found *found;
    struct wb_foldlist *list;
    struct recent recent[FOLD_REACH]; /* by place, modulo FOLD_REACH */
    uint32_t near[FOLD_REACH], alternate[FOLD_REACH], title[FOLD_REACH]; /* of these, to be compared all at once */
    uint64_t offset, need;
};

/*
 * Whether a result may be folded with any recent one. Nearly always it may not, which is found out without branches. In
 * place of what is not known there is the docid: if it is equal to something else, that is found out later.
 */
static bool may_have_kin(const struct folding *f, size_t place, uint32_t docid, const struct kin *kin)
{
    uint32_t title = kin->title ? kin->title : docid, equal = 0;
    size_t count = place < FOLD_REACH ? place : FOLD_REACH;

    WB_CHECK(place < FOLD_PLACES);
    if (!kin->page)
        return false;
    for (size_t i = 0; i < count; i++)
        equal |= (uint32_t)(f->near[i] == kin->near) | (uint32_t)(f->alternate[i] == kin->alternate) |
                 (uint32_t)(f->title[i] == title);
    return equal != 0;
}

static void remember(struct folding *f, size_t place, uint32_t docid, const struct kin *kin, size_t hit)
{
    size_t i = place % FOLD_REACH;

    WB_CHECK(hit <= f->list->hits.count); /* equal: it is the next hit */
    f->recent[i] = (struct recent){*kin, hit};
    f->near[i] = kin->page ? kin->near : docid;
    f->alternate[i] = kin->page ? kin->alternate : docid;
    f->title[i] = kin->page && kin->title ? kin->title : docid;
}

/*
 * The first hit within reach that a result is folded under: one that it is like, or under which something is folded
 * that it is like. Returns its number, or the number of hits.
 */
static size_t find_hit(const struct folding *f, size_t place, const struct kin *kin, enum wb_fold_why *why_out)
{
    const size_t *places = f->list->hits.items;
    size_t best = f->list->hits.count;

    *why_out = WB_FOLD_NOT;
    for (size_t i = place > FOLD_REACH ? place - FOLD_REACH : 0; i < place; i++) {
        const struct recent *recent = &f->recent[i % FOLD_REACH];
        WB_CHECK(recent->hit < f->list->hits.count && places[recent->hit] <= i);
        bool related = are_related(&recent->kin, kin), reached = place - places[recent->hit] <= FOLD_REACH;
        if (!reached || recent->hit >= best ||
            !(related || (places[recent->hit] == i && is_titled_alike(&recent->kin, kin))))
            continue;
        best = recent->hit;
        *why_out = related ? WB_FOLD_NEAR : WB_FOLD_TITLE;
    }
    return best;
}

/* What people are told: that a result is in another language than the hit is more than that it is alike. */
static enum wb_fold_why judge(const struct folding *f, size_t hit, const struct kin *kin, enum wb_fold_why why)
{
    WB_CHECK(hit < f->list->hits.count);
    size_t place = f->list->hits.items[hit];
    const struct kin *other = &f->recent[place % FOLD_REACH].kin;

    return why == WB_FOLD_NEAR && other->language != kin->language ? WB_FOLD_LANGUAGE : why;
}

static int take_result(struct folding *f, const struct columns *columns, size_t place)
{
    enum wb_fold_why why = WB_FOLD_NOT;
    size_t hit = f->list->hits.count;

    if (place >= FOLD_PLACES)
        return wb_vec_push(&f->list->hits, place);
    uint32_t docid = f->found[place].docid;
    struct kin kin = kin_of(columns, docid);
    if (may_have_kin(f, place, docid, &kin))
        hit = find_hit(f, place, &kin, &why);
    /* The result that is FOLD_REACH places before this one may be the hit: look at it before it is replaced. */
    why = why == WB_FOLD_NOT ? why : judge(f, hit, &kin, why);
    remember(f, place, docid, &kin, hit);
    if (why == WB_FOLD_NOT)
        return wb_vec_push(&f->list->hits, place);
    f->list->folded++;
    if (hit < f->offset || hit >= f->need)
        return 0;
    return wb_vec_push(&f->list->members, ((struct wb_foldmember){hit, place, why}));
}

int wb_fold(const struct wb_qplan *plan, const struct wb_topk *topk, struct wb_foldlist *list)
{
    const struct wb_search_options *options = plan->options;
    struct folding f = {.found = topk->items.items, .list = list, .offset = options->offset,
                        .need = add_places(options->offset, options->limit)};
    size_t count = topk->items.count;
    struct columns columns = {.pages = 0};

    WB_CHECK(topk->sorted);
    WB_CHECK(list->hits.count == 0 && list->members.count == 0 && list->folded == 0);
    int err = open_columns(plan->searcher, &columns);
    for (size_t place = 0; err == 0 && place < count; place++)
        err = take_result(&f, &columns, place);
    list->whole = count < topk->max;
    list->enough = list->whole || (f.need > 0 && list->hits.count >= f.need &&
                                   list->hits.items[f.need - 1] + FOLD_REACH < count);
    return err;
}
