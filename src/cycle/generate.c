/*
 * generate.c - decides what is fetched next and hands it to the dispenser.
 *
 *   pass 1   every page of webdb is judged (candidate.c); each pool keeps its most urgent pages (pick.c)
 *   shares   classes with their own number of fetches take theirs, all others share the rest of the budget
 *   pass 2   the picked pages are listed, site after site, the most urgent first; one transaction makes the list a run
 *   pass 3   pages that were listed because they are about to expire are recorded in the journal; if a crawl does not
 *            bring them back, expunge removes them. Those of a site that another crawl holds are not in the run
 *
 * If it is killed before the transaction, nothing has changed. If it is killed after it, pass 3 is missing: those pages
 * are listed once more before they can be expunged. Between the passes it knows pages only by their numbers.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"
#include "cycle/candidate.h"
#include "cycle/rankscore.h"
#include "cycle/thresholds.h"
#include "os/clock.h"
#include "os/stop.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PROGRESS_PAGES 4096
#define BATCH_BYTES (64u << 20) /* the URLs of one site are sorted in portions of this size */
#define ASK_LINKS 1024          /* URLs in one journal record */

/* Pages that compete for the same fetches. */
struct pool {
    struct wb_pick pick;
    double theta;
    uint64_t due;  /* candidates whose value reached theta */
};

#define GENERATE_MAGIC 0x57424745u

struct generate {
    uint32_t magic;              /* GENERATE_MAGIC while wb_generate() is at work */
    const struct wb_generate_options *options;
    const struct wb_cycle_sink *sink;
    struct wb_webdb *webdb;
    struct wb_store *store;
    bool bars;                   /* the store has bars: something was taken down */
    struct wb_fetchlist *list;
    const struct wb_site_class *classes;
    size_t class_count;
    struct wb_thresholds thresholds;
    double *thetas;              /* by class */
    struct pool common, *pools;  /* pools: by class */
    struct wb_candidate_judge judge;
    struct wb_rankscore scores;
    struct wb_pick site;         /* the current site's pages, if it may not list all of them */
    struct pool *site_pool;
    int64_t now_ms;
    uint64_t walked, known;      /* progress of the current pass */
    struct wb_pick chosen;       /* the picked pages of all pools, by number */
    struct wb_generate *out;
};

static int go_on(struct generate *g, const char *step)
{
    if (g->walked++ % PROGRESS_PAGES)
        return 0;
    if (wb_stop_requested() || (g->sink->progress && !g->sink->progress(g->sink->context, step, g->walked, g->known)))
        return wb_fail(WB_E_STOPPED, "stopped");
    return 0;
}

static void warn(void *context, const char *message)
{
    const struct generate *g = context;

    WB_CHECK(g->magic == GENERATE_MAGIC);
    if (g->sink->warn)
        g->sink->warn(g->sink->context, message);
}

/* ---- pass 1 ------------------------------------------------------------------------------------------------ */

static struct pool *pool_of_site(struct generate *g)
{
    size_t at = wb_candidate_class(&g->judge);

    WB_CHECK(at == SIZE_MAX || at < g->class_count);
    return at != SIZE_MAX && g->classes[at].fetches >= 0 ? &g->pools[at] : &g->common;
}

static void count_verdict(struct wb_generate *out, enum wb_candidate_verdict verdict)
{
    out->blocked += verdict == WB_CANDIDATE_BLOCKED;
    out->barred += verdict == WB_CANDIDATE_BARRED;
    out->trapped += verdict == WB_CANDIDATE_TRAPPED;
    out->outside += verdict == WB_CANDIDATE_OUTSIDE;
    out->early += verdict == WB_CANDIDATE_EARLY;
}

/* All pages of the current site were judged: its most urgent ones now compete with those of other sites. */
static int leave_site(struct generate *g)
{
    int err = 0;

    WB_CHECK(g->site.count == 0 || g->site_pool);
    for (size_t i = 0; err == 0 && i < g->site.count; i++)
        err = wb_pick_offer(&g->site_pool->pick, &g->site.items[i]);
    g->site.count = 0;
    return err;
}

static int take_candidate(struct generate *g, const struct wb_pick_item *item)
{
    struct pool *pool = pool_of_site(g);
    uint64_t site_max = wb_candidate_site_max(&g->judge);

    pool->due += item->tier == WB_PICK_TIER_VALUE && item->value >= pool->theta;
    if (site_max >= pool->pick.max)
        return wb_pick_offer(&pool->pick, item);
    WB_CHECK(g->site.count == 0 || (g->site_pool == pool && g->site.max == site_max)); /* those of one site */
    g->site.max = site_max;
    g->site_pool = pool;
    return wb_pick_offer(&g->site, item);
}

/* The index is no condition for a crawl: if it cannot be read, scores are those that webdb has. */
static int doubt_ranks(struct generate *g, int err)
{
    char text[600];

    WB_CHECK(err < 0);
    if (err == WB_E_NOMEM)
        return err;
    snprintf(text, sizeof text, "pages are chosen without their PageRank: %.500s", wb_error_message());
    warn(g, text);
    wb_rankscore_close(&g->scores);
    return 0;
}

static int open_ranks(struct generate *g)
{
    struct wb_webdb_count count;

    WB_CHECK(!g->scores.index);
    wb_webdb_count(g->webdb, &count);
    int err = wb_rankscore_open(&g->scores, g->options->dir, count.edition);
    return err < 0 ? doubt_ranks(g, err) : 0;
}

static int judge_page(struct generate *g, struct wb_webdb_page *page, enum wb_candidate_verdict *verdict_out,
                      struct wb_pick_item *item_out)
{
    int err = wb_rankscore_set(&g->scores, page);

    if (err < 0)
        err = doubt_ranks(g, err);
    return err < 0 ? err : wb_candidate_judge(&g->judge, page, verdict_out, item_out);
}

static int judge_pages(struct generate *g)
{
    struct wb_webdb_pages *pages = NULL;
    struct wb_webdb_page page;
    enum wb_candidate_verdict verdict;
    struct wb_pick_item item;
    uint64_t sites = 0;
    int got = 0, err = wb_webdb_pages(g->webdb, &pages);

    g->walked = 0;
    if (err == 0)
        err = open_ranks(g);
    while (err == 0 && (got = wb_webdb_pages_next(pages, &page)) > 0) {
        err = go_on(g, "choosing");
        if (err == 0)
            err = judge_page(g, &page, &verdict, &item);
        if (err == 0 && sites != g->judge.sites)
            err = leave_site(g);
        if (err < 0)
            break;
        sites = g->judge.sites;
        g->out->known++;
        count_verdict(g->out, verdict);
        if (verdict == WB_CANDIDATE_YES)
            err = take_candidate(g, &item);
    }
    if (err == 0 && got == 0)
        err = leave_site(g);
    wb_rankscore_close(&g->scores);
    wb_webdb_pages_close(pages);
    return err < 0 ? err : got;
}

/* ---- shares ------------------------------------------------------------------------------------------------- */

/* Corrects the threshold: compares how many pages reached it with how many fetches were available for them. */
static int move_threshold(struct generate *g, struct pool *pool, struct wb_slice class_name)
{
    uint64_t urgent = 0;

    WB_CHECK(pool->theta > 0);
    if (pool->pick.max == UINT64_MAX)
        return 0;
    for (size_t i = 0; i < pool->pick.count; i++)
        urgent += pool->pick.items[i].tier != WB_PICK_TIER_VALUE;
    if (urgent < pool->pick.max)
        pool->theta = wb_refresh_move_theta(pool->theta, (double)pool->due, (double)(pool->pick.max - urgent));
    return wb_thresholds_set(&g->thresholds, g->options->policy, class_name, pool->theta);
}

static int gather_pool(struct generate *g, const struct wb_pick *pick)
{
    int err = 0;

    WB_CHECK(g->chosen.max == UINT64_MAX); /* none is dropped any more */
    for (size_t i = 0; err == 0 && i < pick->count; i++)
        err = wb_pick_offer(&g->chosen, &pick->items[i]);
    return err;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = ((const struct wb_pick_item *)a)->number, y = ((const struct wb_pick_item *)b)->number;

    return x < y ? -1 : x > y;
}

/* Classes take their fetches in the order in which they are defined; the rest is for all other sites. */
static int share_budget(struct generate *g)
{
    WB_CHECK(g->site.count == 0 && g->chosen.count == 0);
    uint64_t left = g->options->budget ? g->options->budget : UINT64_MAX;
    int err = 0;

    g->chosen = (struct wb_pick){.max = UINT64_MAX};
    for (size_t i = 0; err == 0 && i < g->class_count; i++) {
        struct pool *pool = &g->pools[i];
        if (g->classes[i].fetches < 0)
            continue;
        if (pool->pick.max > left)
            pool->pick.max = left;
        wb_pick_trim(&pool->pick, pool->pick.max);
        WB_CHECK(pool->pick.count <= left);
        if (left != UINT64_MAX)
            left -= pool->pick.count;
        err = move_threshold(g, pool, g->classes[i].name);
        if (err == 0)
            err = gather_pool(g, &pool->pick);
        wb_pick_release(&pool->pick);
    }
    g->common.pick.max = left;
    wb_pick_trim(&g->common.pick, left);
    if (err == 0)
        err = move_threshold(g, &g->common, WB_SLICE_EMPTY);
    if (err == 0 && g->chosen.count == 0) {
        /* The usual case needs no copy. */
        g->chosen = g->common.pick;
        g->common.pick = (struct wb_pick){0};
    } else if (err == 0) {
        err = gather_pool(g, &g->common.pick);
        wb_pick_release(&g->common.pick);
    }
    if (err == 0 && g->chosen.count)
        qsort(g->chosen.items, g->chosen.count, sizeof *g->chosen.items, compare_numbers);
    WB_CHECK(err < 0 || !g->options->budget || g->chosen.count <= g->options->budget);
    g->out->theta = g->common.theta;
    return err;
}

/* ---- walks over what was chosen ------------------------------------------------------------------------------- */

typedef int (*chosen_each)(void *context, const struct wb_webdb_page *page, const struct wb_pick_item *item);

static int each_chosen(struct generate *g, const char *step, chosen_each each, void *context)
{
    struct wb_webdb_pages *pages = NULL;
    struct wb_webdb_page page;
    size_t at = 0;
    int got = 0, err = wb_webdb_pages(g->webdb, &pages);

    g->walked = 0;
    while (err == 0 && at < g->chosen.count && (got = wb_webdb_pages_next(pages, &page)) > 0) {
        err = go_on(g, step);
        if (err < 0 || page.number < g->chosen.items[at].number)
            continue;
        WB_CHECK(page.number == g->chosen.items[at].number);
        err = each(context, &page, &g->chosen.items[at++]);
    }
    WB_CHECK(err < 0 || got < 0 || at == g->chosen.count); /* all of them are in the edition that they are from */
    wb_webdb_pages_close(pages);
    return err < 0 ? err : got < 0 ? got : 0;
}

struct listing_entry {
    struct wb_pick_item item;
    size_t at;                /* offset of its URL in the batch's text */
    uint32_t len;
    uint16_t depth;
};

/* The URLs of one site, to be sorted and then listed. */
struct fetch_listing {
    struct generate *generate;
    struct wb_buf text, site; /* site: what their SURTs begin with */
    WB_VEC(struct listing_entry) entries;
};

static int compare_entries(const void *a, const void *b)
{
    const struct listing_entry *x = a, *y = b;

    return wb_pick_item_before(&x->item, &y->item) ? -1 : wb_pick_item_before(&y->item, &x->item);
}

static int flush_batch(struct fetch_listing *batch)
{
    int err = 0;

    if (batch->entries.count)
        qsort(batch->entries.items, batch->entries.count, sizeof *batch->entries.items, compare_entries);
    for (size_t i = 0; err == 0 && i < batch->entries.count; i++) {
        const struct listing_entry *e = &batch->entries.items[i];
        WB_CHECK(e->at + e->len <= batch->text.len);
        err = wb_fetchlist_add(batch->generate->list, wb_slice(batch->text.ptr + e->at, e->len), e->depth);
    }
    wb_vec_clear(&batch->entries);
    wb_buf_clear(&batch->text);
    return err;
}

static int enter_batch(struct fetch_listing *batch, struct wb_slice surt)
{
    struct wb_slice site = wb_surt_site(surt);

    if (wb_slice_equal(site, wb_buf_slice(&batch->site)) && batch->text.len < BATCH_BYTES)
        return 0;
    int err = flush_batch(batch);
    wb_buf_clear(&batch->site);
    return err < 0 ? err : wb_buf_append_slice(&batch->site, site);
}

static int list_page(void *context, const struct wb_webdb_page *page, const struct wb_pick_item *item)
{
    WB_CHECK(page->url.len <= UINT32_MAX);
    struct fetch_listing *batch = context;
    struct wb_generate *out = batch->generate->out;

    WB_CHECK(batch->generate->magic == GENERATE_MAGIC);
    int err = enter_batch(batch, page->surt);
    if (err < 0)
        return err;
    struct listing_entry entry = {*item, batch->text.len, (uint32_t)page->url.len, page->depth};
    if (wb_vec_push(&batch->entries, entry) < 0)
        return WB_E_NOMEM;
    out->pushed += item->kind == WB_PICK_PUSHED;
    out->expiring += item->kind == WB_PICK_EXPIRING;
    out->fresh += item->kind == WB_PICK_FRESH;
    out->due += item->kind == WB_PICK_DUE;
    return wb_buf_append_slice(&batch->text, page->url);
}

static int list_chosen(struct generate *g)
{
    struct fetch_listing batch = {.generate = g};
    struct wb_dispenser_list_stat stat;

    int err = each_chosen(g, "listing", list_page, &batch);
    if (err == 0)
        err = flush_batch(&batch);
    WB_CHECK(err < 0 || batch.entries.count == 0);
    if (err == 0)
        err = wb_fetchlist_commit(g->list, &g->out->run, &stat);
    if (err == 0) {
        g->out->urls = stat.urls;
        g->out->sites = stat.sites;
    }
    wb_vec_release(&batch.entries);
    wb_buf_release(&batch.text);
    wb_buf_release(&batch.site);
    return err;
}

/* ---- expiring pages ------------------------------------------------------------------------------------------- */

/* URLs of expiring pages, gathered for one journal record. */
struct asking {
    struct generate *generate;
    struct wb_journal_writer *log;
    int64_t now_ms;
    struct wb_buf site;      /* what the SURTs of its pages begin with */
    bool joined;             /* the site takes part in the run */
    struct wb_url url;
    struct wb_buf key, text;
    struct wb_pagelink links[ASK_LINKS];
    size_t ends[ASK_LINKS];
    size_t count;
};

static int flush_asked(struct asking *asking)
{
    WB_CHECK(asking->count <= ASK_LINKS);
    struct wb_edit edit = {.kind = WB_EDIT_ASK, .time_ms = asking->now_ms, .links = asking->links,
                           .link_count = asking->count};
    struct wb_edit_place place;
    size_t at = 0;

    if (asking->count == 0)
        return 0;
    for (size_t i = 0; i < asking->count; at = asking->ends[i++])
        asking->links[i] = (struct wb_pagelink){.url = wb_slice(asking->text.ptr + at, asking->ends[i] - at),
                                                .anchor = WB_SLICE_EMPTY};
    int err = wb_journal_writer_append(asking->log, &edit, &place);
    asking->count = 0;
    wb_buf_clear(&asking->text);
    return err;
}

/* A site that another crawl holds was left out of the run: nobody was asked to fetch its pages. */
static int enter_asked_site(struct asking *asking, const struct wb_webdb_page *page)
{
    struct generate *g = asking->generate;
    struct wb_slice site = wb_surt_site(page->surt);

    if (asking->site.len && wb_slice_equal(site, wb_buf_slice(&asking->site)))
        return 0;
    wb_buf_clear(&asking->site);
    int err = wb_buf_append_slice(&asking->site, site);
    if (err == 0)
        err = wb_url_parse(page->url, NULL, &asking->url);
    if (err == 0)
        err = wb_url_key(&asking->url, &asking->key);
    if (err < 0)
        return err;
    return wb_fetchlist_joined(g->list, g->out->run, wb_key_site(wb_buf_slice(&asking->key)), &asking->joined);
}

static int ask_page(void *context, const struct wb_webdb_page *page, const struct wb_pick_item *item)
{
    struct asking *asking = context;

    if (item->kind != WB_PICK_EXPIRING)
        return 0;
    int err = enter_asked_site(asking, page);
    if (err < 0 || !asking->joined)
        return err;
    err = wb_buf_append_slice(&asking->text, page->url);
    if (err < 0)
        return err;
    WB_CHECK(asking->count < ASK_LINKS);
    asking->ends[asking->count++] = asking->text.len;
    return asking->count == ASK_LINKS ? flush_asked(asking) : 0;
}

static int note_expiring(struct generate *g)
{
    if (g->out->expiring == 0)
        return 0;
    struct asking *asking = wb_alloc_zero(1, sizeof *asking);
    if (!asking)
        return WB_E_NOMEM;
    asking->generate = g;
    asking->now_ms = g->now_ms;
    asking->url = WB_URL_INIT;
    int err = wb_journal_writer_open(g->options->dir, 0, &asking->log);
    if (err == 0)
        err = each_chosen(g, "noting expiring pages", ask_page, asking);
    if (err == 0)
        err = flush_asked(asking);
    WB_CHECK(err < 0 || asking->count == 0);
    if (err == 0)
        err = wb_journal_writer_finish(asking->log);
    wb_journal_writer_close(asking->log);
    wb_url_release(&asking->url);
    wb_buf_release(&asking->site);
    wb_buf_release(&asking->key);
    wb_buf_release(&asking->text);
    wb_free(asking);
    return err;
}

/* ---- opening and closing ----------------------------------------------------------------------- */

static void warn_of_classes(struct generate *g)
{
    uint64_t wanted = 0;
    char text[200];

    for (size_t i = 0; i < g->class_count; i++)
        wanted += g->classes[i].fetches > 0 ? (uint64_t)g->classes[i].fetches : 0;
    if (!g->options->budget || wanted <= g->options->budget)
        return;
    snprintf(text, sizeof text, "the classes ask for %" PRIu64 " fetches in total, but the budget is %" PRIu64, wanted,
             g->options->budget);
    warn(g, text);
}

static int open_pools(struct generate *g)
{
    WB_CHECK(!g->pools && g->list);
    const struct wb_generate_options *o = g->options;

    g->classes = wb_fetchlist_classes(g->list, &g->class_count);
    g->pools = wb_alloc_zero(g->class_count + 1, sizeof *g->pools);
    g->thetas = wb_alloc_zero(g->class_count + 1, sizeof *g->thetas);
    if (!g->pools || !g->thetas)
        return WB_E_NOMEM;
    for (size_t i = 0; i < g->class_count; i++) {
        g->thetas[i] = g->pools[i].theta = wb_thresholds_get(&g->thresholds, o->policy, g->classes[i].name);
        g->pools[i].pick.max = g->classes[i].fetches < 0 ? 0 : (uint64_t)g->classes[i].fetches;
    }
    g->common.pick.max = o->budget ? o->budget : UINT64_MAX;
    g->common.theta = wb_thresholds_get(&g->thresholds, o->policy, WB_SLICE_EMPTY);
    warn_of_classes(g);
    return 0;
}

static int open_store(struct generate *g)
{
    WB_CHECK(!g->store);
    struct wb_store_stat stat;
    int err = wb_store_open(g->options->dir, WB_STORE_READ, &g->store);

    if (err == 0)
        err = wb_store_stat(g->store, &stat);
    g->bars = err == 0 && stat.bars;
    return err;
}

static int open_generate(struct generate *g)
{
    const struct wb_generate_options *o = g->options;
    struct wb_webdb_count count;

    g->now_ms = o->now_ms ? o->now_ms : wb_clock_wall_ms();
    WB_CHECK(g->now_ms > 0);
    int err = wb_webdb_open(o->dir, &g->webdb);
    if (err == WB_E_NOTFOUND) {
        err = wb_store_require(o->dir);
        return err < 0 ? err
                       : wb_fail(WB_E_NOTFOUND,
                                 "there is no webdb in %s yet: 'webbase update' creates it from "
                                 "what crawls and imports recorded",
                                 o->dir);
    }
    if (err == 0)
        err = open_store(g);
    if (err == 0)
        err = wb_fetchlist_open(o->dir, o->dispenser, o->seeds_file, warn, g, &g->list);
    if (err == 0 && o->class_name)
        wb_fetchlist_limit(g->list, o->class_name);
    if (err == 0)
        err = wb_thresholds_read(o->dir, warn, g, &g->thresholds);
    if (err == 0)
        err = open_pools(g);
    if (err < 0)
        return err;
    wb_webdb_count(g->webdb, &count);
    g->known = count.pages;
    g->judge = (struct wb_candidate_judge){
        .magic = WB_CANDIDATE_JUDGE_MAGIC,
        .webdb = g->webdb,
        .store = g->bars ? g->store : NULL,
        .list = g->list,
        .classes = g->classes,
        .class_count = g->class_count,
        .refresh = {.policy = o->policy, .theta = g->common.theta, .min_days = o->min_days, .max_days = o->max_days},
        .thetas = g->thetas,
        .scope = o->scope,
        .class_name = o->class_name,
        .types = o->types,
        .now_ms = g->now_ms,
        .tried_ms = o->tried_ms,
        .depth_limit = o->depth_limit,
        .period_ms = o->period_ms,
        .delay_ms = o->delay_ms,
        .horizon_ms = g->now_ms + (o->horizon_ms ? o->horizon_ms : WB_DAY_MS),
        .url = WB_URL_INIT,
    };
    return 0;
}

static void close_generate(struct generate *g)
{
    for (size_t i = 0; g->pools && i < g->class_count; i++)
        wb_pick_release(&g->pools[i].pick);
    wb_pick_release(&g->common.pick);
    wb_pick_release(&g->chosen);
    wb_pick_release(&g->site);
    wb_candidate_release(&g->judge);
    wb_thresholds_release(&g->thresholds);
    wb_free(g->pools);
    wb_free(g->thetas);
    wb_fetchlist_close(g->list);
    wb_store_close(g->store);
    wb_webdb_close(g->webdb);
}

int wb_generate(const struct wb_generate_options *options, const struct wb_cycle_sink *sink,
                struct wb_generate *generate_out)
{
    static const struct wb_cycle_sink quiet = {NULL, NULL, NULL};
    struct generate g = {.magic = GENERATE_MAGIC, .options = options, .sink = sink ? sink : &quiet,
                         .out = generate_out};

    *generate_out = (struct wb_generate){0};
    int err = open_generate(&g);
    if (err == 0)
        err = judge_pages(&g);
    if (err == 0)
        err = share_budget(&g);
    if (err == 0)
        err = list_chosen(&g);
    if (err == 0)
        err = note_expiring(&g);
    if (err == 0) {
        g.thresholds.policy = options->policy;
        err = wb_thresholds_write(options->dir, &g.thresholds);
    }
    close_generate(&g);
    return err;
}
