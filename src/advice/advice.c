/*
 * advice.c - judges storage designs by the work that a load makes for their nodes (docs/design/0037-advice.md). It only
 * calculates: costs and load come from the caller.
 *
 *   load x costs -> seconds of work per second, of the update side and of the read side
 *                -> divided among the nodes: how busy the busiest of them is -> score = 1 / that
 */
#include "advice/advice.h"
#include "advice/advice_costs.h"
#include "base/check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nobody transfers as soon as one page in a hundred has changed. */
#define RATIO_MIN 0.01
/* A log is compacted when so much of it is dead, however long that takes. */
#define DEAD_SHARE 0.25
#define US 1e-6

const struct wb_advice_costs wb_advice_measured = WB_ADVICE_MEASURED;

const char *wb_advice_measured_where(void)
{
    return WB_ADVICE_MEASURED_WHERE;
}

/* ---- designs ------------------------------------------------------------------------------------ */

/* Where new pages arrive. */
static const struct wb_design_part *update_part(const struct wb_design *design)
{
    return design->batch ? &design->update : &design->read;
}

/* ---- work --------------------------------------------------------------------------------------- */

/* Microseconds per page of the load, and where they are spent. */
struct page_costs {
    double add;   /* where the crawler's pages arrive, compaction included in an incremental design */
    double clear; /* of that, compaction */
    double send;  /* batch: reading them from the update nodes */
    double take;  /* batch: what the read nodes do for each new page */
    double get, stream;
};

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double most(double a, double b)
{
    return a > b ? a : b;
}

/* If the share X of the pages is dead, (1-X)/X pages that stay are copied for each of them. */
static double compaction(const struct wb_advice_organisation_costs *o, double ratio)
{
    return o->compact * (1 - ratio) / ratio;
}

/* What is particular to an organisation. */
static const struct advice_organisation {
    bool sorted; /* it sends pages in the order of their ids */
    bool merges; /* it merges sorted pages with its own; otherwise they are added, and dead ones compacted away */
    const char *adding, *getting;
} organisations[] = {
    [WB_ORGANISATION_LOG] = {false, false, "appends to one log", "takes an index and a page"},
    [WB_ORGANISATION_HASH] = {true, true, "reads and writes a bucket", "takes one bucket"},
    [WB_ORGANISATION_HASHED_LOG] = {true, false, "appends to logs of id ranges", "takes an index and a page"},
};

_Static_assert(sizeof organisations / sizeof *organisations == WB_ADVICE_ORGANISATIONS, "each organisation has a row");

/*
 * Section 3.3.1: logs compact, receive and rebuild their index; buckets are merged with a sorted stream. Between nodes
 * of the same organisation, pages move as they are stored.
 */
static double transfer_cost(const struct wb_advice_costs *costs, const struct wb_design *design, double ratio)
{
    const struct wb_advice_organisation_costs *read = &costs->organisation[design->read.organisation];
    bool sorted = organisations[design->update.organisation].sorted;
    double cost, add = sorted ? read->add_sorted : read->add;

    if (design->update.organisation == design->read.organisation)
        add = read->bring;
    if (organisations[design->read.organisation].merges)
        cost = sorted ? costs->merge / ratio : add;
    else
        cost = add + compaction(read, ratio) + costs->index / ratio;
    /* A page may be on any node: its old version must be found in the global index, and its new place noted there. */
    if (design->read.distribution == WB_DISTRIBUTION_UNIFORM)
        cost += costs->index;
    /* Each update node then has pages for each read node, so that every stream is divided. */
    if (design->update.distribution == WB_DISTRIBUTION_UNIFORM)
        cost += costs->index;
    return cost;
}

static struct page_costs costs_of(const struct wb_advice_costs *costs, const struct wb_design *design, double ratio)
{
    const struct wb_advice_organisation_costs *update = &costs->organisation[update_part(design)->organisation];
    const struct wb_advice_organisation_costs *read = &costs->organisation[design->read.organisation];
    bool uniform = design->read.distribution == WB_DISTRIBUTION_UNIFORM;
    struct page_costs c = {.add = update->add, .get = read->get, .stream = read->stream};

    WB_CHECK(ratio > 0 && ratio <= 1);
    if (uniform)
        c.get += costs->lookup;
    if (design->batch) {
        c.send = update->stream;
        c.take = transfer_cost(costs, design, ratio);
    } else {
        c.clear = compaction(read, most(ratio, DEAD_SHARE));
        c.add += c.clear + (uniform ? costs->index : 0);
    }
    return c;
}

/* Seconds of work per second; above 1 it is more than one node can do. */
struct load_work {
    double update;   /* additions, and sending them */
    double transfer; /* taking them */
    double get, stream;
};

static struct load_work work_of(const struct page_costs *c, const struct wb_advice_load *load)
{
    return (struct load_work){.update = load->add * (c->add + c->send) * US,
                              .transfer = load->add * c->take * US,
                              .get = load->get * c->get * US,
                              .stream = load->stream * c->stream * US};
}

/*
 * How busy the busiest node is, all nodes doing everything. Where reading and writing meet on a node, both take longer.
 * With uniform distribution new pages avoid the nodes that are being read, so that this happens on one of them.
 */
static double busy_together(const struct wb_advice_costs *costs, const struct load_work *w, unsigned nodes, bool avoid)
{
    double write = w->update + w->transfer, read = w->get + w->stream;
    double meeting = 2 * least(write, read) * costs->conflict;

    return (write + read + meeting / (avoid ? nodes : 1)) / nodes;
}

/* The same for update nodes and read nodes; divides the nodes so that it is least. */
static double busy_apart(const struct load_work *w, unsigned nodes, unsigned *update_nodes_out)
{
    double best = 0;

    WB_CHECK(nodes >= 2);
    *update_nodes_out = 0;
    for (unsigned m = 1; m < nodes; m++) {
        double busy = most(w->update / m, (w->transfer + w->get + w->stream) / (nodes - m));
        if (*update_nodes_out == 0 || busy < best) {
            best = busy;
            *update_nodes_out = m;
        }
    }
    return best;
}

/* ---- advice -------------------------------------------------------------------------------------- */

static double rate(double nodes, double cost_us)
{
    return cost_us > 0 ? nodes / (cost_us * US) : 0;
}

static void set_rates(struct wb_advice *a, const struct page_costs *c, unsigned nodes)
{
    unsigned readers = nodes - a->update_nodes;

    a->get = rate(readers, c->get);
    a->stream = rate(readers, c->stream);
    if (a->update_nodes)
        a->add = least(rate(a->update_nodes, c->add + c->send), rate(readers, c->take));
    else
        a->add = rate(nodes, c->add + c->send + c->take);
}

/* "additions", "transfers", "gets" or "streams", whichever is most work. */
static const char *heaviest(const struct load_work *w, double *share_out)
{
    const char *const names[] = {"additions", "transfers", "gets", "streams"};
    const double works[] = {w->update, w->transfer, w->get, w->stream};
    double sum = works[0] + works[1] + works[2] + works[3];
    size_t top = 0;

    for (size_t i = 1; i < 4; i++)
        if (works[i] > works[top])
            top = i;
    *share_out = sum > 0 ? works[top] / sum : 0;
    return names[top];
}

/* Appends to the reason; what does not fit is cut. */
static void add_reason(struct wb_advice *a, const char *text)
{
    size_t used = strlen(a->reason);

    WB_CHECK(used < sizeof a->reason);
    snprintf(a->reason + used, sizeof a->reason - used, "%s", text);
}

static void explain_batch(struct wb_advice *a, const struct load_work *w, unsigned nodes)
{
    unsigned readers = nodes - a->update_nodes;
    char text[160];

    if (a->update_nodes)
        snprintf(text, sizeof text, "; %u update node%s and %u read node%s", a->update_nodes,
                 a->update_nodes == 1 ? "" : "s", readers, readers == 1 ? "" : "s");
    else
        snprintf(text, sizeof text, "; update node and read node share one disk");
    add_reason(a, text);
    snprintf(text, sizeof text, "; transfers keep the read nodes busy for %.2g %% of the time",
             100 * least(1, w->transfer / readers));
    if (w->transfer > 0)
        add_reason(a, text);
}

const char *wb_advice_score_text(double score, char text_out[WB_ADVICE_SCORE_TEXT_MAX])
{
    snprintf(text_out, WB_ADVICE_SCORE_TEXT_MAX, score >= 10 ? "%.0f" : "%.2g", score);
    return text_out;
}

/* "63 us", "28.2 ms" */
static const char *spell_cost(double us, char text_out[32])
{
    snprintf(text_out, 32, us < 1000 ? "%.3g us" : "%.3g ms", us < 1000 ? us : us / 1000);
    return text_out;
}

static void explain(struct wb_advice *a, const struct page_costs *c, const struct load_work *w, unsigned nodes)
{
    double share;
    const char *what = heaviest(w, &share);
    char text[200], cost[32], score[WB_ADVICE_SCORE_TEXT_MAX];

    snprintf(a->reason, sizeof a->reason, "carries %s times this load; %s are %.0f %% of the work",
             wb_advice_score_text(a->score, score), what, 100 * share);
    snprintf(text, sizeof text, "; an addition %s (%s", organisations[update_part(&a->design)->organisation].adding,
             spell_cost(c->add - c->clear + c->send, cost));
    if (w->update > 0)
        add_reason(a, text);
    snprintf(text, sizeof text, ", and %s for compaction", spell_cost(c->clear, cost));
    if (w->update > 0 && c->clear > 0)
        add_reason(a, text);
    if (w->update > 0)
        add_reason(a, ")");
    snprintf(text, sizeof text, "; a get %s (%s)", organisations[a->design.read.organisation].getting,
             spell_cost(c->get, cost));
    if (w->get > 0)
        add_reason(a, text);
    if (a->design.batch)
        explain_batch(a, w, nodes);
}

/* Costs are not known more exactly, so designs whose scores differ in the third digit are equally good. */
static double two_digits(double score)
{
    char text[32];

    WB_CHECK(score > 0);
    snprintf(text, sizeof text, "%.1e", score);
    return strtod(text, NULL);
}

static void judge(const struct wb_advice_costs *costs, const struct wb_advice_load *load, unsigned number,
                  struct wb_advice *a)
{
    struct wb_design design;
    bool known = wb_design_nth(number, &design);

    WB_CHECK(known);
    struct page_costs c = costs_of(costs, &design, most(load->update_ratio, RATIO_MIN));
    struct load_work w = work_of(&c, load);
    bool avoid = design.read.distribution == WB_DISTRIBUTION_UNIFORM;
    double busy;

    *a = (struct wb_advice){.design = design};
    if (design.batch && load->nodes > 1)
        busy = busy_apart(&w, load->nodes, &a->update_nodes);
    else
        busy = busy_together(costs, &w, load->nodes, avoid);
    a->score = busy > 1 / WB_ADVICE_SCORE_MAX ? two_digits(1 / busy) : WB_ADVICE_SCORE_MAX;
    set_rates(a, &c, load->nodes);
    explain(a, &c, &w, load->nodes);
}

/* Of equals, the one with the lower number comes first: incremental, hash distribution, log. */

struct judged {
    double score;
    unsigned number;
};

static int compare_judged(const void *left, const void *right)
{
    const struct judged *a = left, *b = right;

    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

void wb_advice_for(const struct wb_advice_costs *costs, const struct wb_advice_load *load,
                   struct wb_advice advice_out[WB_ADVICE_DESIGNS])
{
    struct judged order[WB_ADVICE_DESIGNS];

    WB_CHECK(load->nodes >= 1 && load->update_ratio >= 0 && load->update_ratio <= 1);
    WB_CHECK(load->add >= 0 && load->get >= 0 && load->stream >= 0);
    for (unsigned i = 0; i < WB_ADVICE_DESIGNS; i++) {
        judge(costs, load, i, &advice_out[0]);
        order[i] = (struct judged){advice_out[0].score, i};
    }
    qsort(order, WB_ADVICE_DESIGNS, sizeof *order, compare_judged);
    for (unsigned i = 0; i < WB_ADVICE_DESIGNS; i++)
        judge(costs, load, order[i].number, &advice_out[i]);
}
