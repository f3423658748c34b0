/* bench_graph.c - generates the web of bench_graph.h. It reads and writes no files and keeps no pages. */
#include "bench_graph.h"

#include "base/bytes.h"
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "extract/extract.h"

#include <math.h>
#include <stdio.h>

enum { PAGES_A_SITE = 100, SITE_MIN = 8, NAVIGATION = 15, DIRECTORY = 64, FIRST_VISIT_S = 1790000000 };

static const char words[128][10] = {
    "about",   "account",  "across",   "advice",   "album",   "animal",   "archive",  "article", "artist",   "atlas",
    "author",  "autumn",   "balance",  "ballad",   "beach",   "bicycle",  "bird",     "board",   "book",     "border",
    "bridge",  "bronze",   "budget",   "camera",   "canal",   "candle",   "castle",   "catalog", "center",   "chapter",
    "chart",   "city",     "climate",  "coast",    "coffee",  "college",  "color",    "comet",   "copper",   "corner",
    "country", "course",   "culture",  "data",     "design",  "dialect",  "distance", "doctor",  "dream",    "early",
    "economy", "editor",   "effect",   "electric", "engine",  "europe",   "event",    "family",  "farm",     "festival",
    "field",   "film",     "finance",  "flower",   "forest",  "form",     "fountain", "future",  "gallery",  "garden",
    "glass",   "grammar",  "guide",    "guitar",   "harbor",  "health",   "history",  "horizon", "house",    "index",
    "island",  "journal",  "kitchen",  "labor",    "lake",    "language", "law",      "leader",  "letter",   "library",
    "light",   "machine",  "magazine", "manual",   "market",  "medicine", "memory",   "metal",   "method",   "mirror",
    "modern",  "mountain", "museum",   "music",    "nature",  "news",     "notes",    "number",  "ocean",    "office",
    "opera",   "orange",   "paper",    "people",   "photo",   "planet",   "poem",     "project", "question", "railway",
    "recipe",  "report",   "river",    "school",   "science", "theater",  "travel",   "winter",
};

static const char *const tlds[] = {"com", "org", "net", "de", "co.uk", "edu", "fr", "info"};

/* Mixes two numbers into one that looks random. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = a + b * 0x9e3779b97f4a7c15 + 0x632be59bd9b4e019;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static double unit(uint64_t random)
{
    return (double)(random >> 11) * 0x1p-53;
}

static char *put_word(char *at, uint64_t which)
{
    const char *word = words[which % 128];
    size_t len = strnlen(word, sizeof words[0]);

    memcpy(at, word, sizeof words[0]); /* copies too much; what follows overwrites the rest */
    return at + len;
}

static char *put_text(char *at, const char *text)
{
    size_t len = strlen(text);

    memcpy(at, text, len);
    return at + len;
}

static char *put_number(char *at, uint32_t number)
{
    char digits[10];
    size_t n = 0;

    do
        digits[n++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (n > 0)
        *at++ = digits[--n];
    return at;
}

/* ---- sites ------------------------------------------------------------------------------------ */

static void name_site(struct graph *graph, uint32_t s)
{
    struct graph_site *site = &graph->sites[s];
    uint64_t h = mix(graph->seed, s);
    char *at = put_text(site->host, h % 3 ? "www." : "");

    at = put_word(at, h >> 8);
    at = put_word(at, h >> 16);
    at = put_number(at, s);
    *at++ = '.';
    at = put_text(at, tlds[(h >> 32) % 8]);
    site->host_len = (uint32_t)(at - site->host);
}

/* Sizes are proportional to 1/rank^0.9; the largest site gets what rounding leaves over. */
static void size_sites(struct graph *graph)
{
    double sum = 0;
    uint32_t given = 0, spread = graph->old_count - graph->site_count * SITE_MIN, at_old = 0, at_new = 0;

    for (uint32_t s = 0; s < graph->site_count; s++)
        sum += pow(s + 1, -0.9);
    for (uint32_t s = 0; s < graph->site_count; s++) {
        graph->sites[s].old_count = SITE_MIN + (uint32_t)(spread * pow(s + 1, -0.9) / sum);
        given += graph->sites[s].old_count;
    }
    WB_CHECK(given <= graph->old_count);
    graph->sites[0].old_count += graph->old_count - given;
    for (uint32_t s = 0; s < graph->site_count; s++) {
        struct graph_site *site = &graph->sites[s];

        site->new_count = (at_old + site->old_count) / 2 - at_new;
        site->old_first = at_old;
        site->new_first = at_new;
        site->size = site->old_count * 7 / 2;
        at_old += site->old_count;
        at_new += site->new_count;
    }
    graph->new_count = at_new;
}

int graph_new(uint64_t seed, uint32_t old_count, struct graph *graph_out)
{
    *graph_out = (struct graph){.seed = seed, .old_count = old_count, .site_count = old_count / PAGES_A_SITE};
    if (graph_out->site_count < 2)
        return wb_fail(WB_E_INVALID, "a web of fewer than %d pages", 2 * PAGES_A_SITE);
    graph_out->sites = wb_alloc_zero(graph_out->site_count, sizeof(*graph_out->sites));
    if (!graph_out->sites)
        return WB_E_NOMEM;
    size_sites(graph_out);
    for (uint32_t s = 0; s < graph_out->site_count; s++)
        name_site(graph_out, s);
    return 0;
}

void graph_release(struct graph *graph)
{
    wb_free(graph->sites);
    *graph = (struct graph){.sites = NULL};
}

/* ---- pages -------------------------------------------------------------------------------------- */

static size_t make_url(const struct graph *graph, uint32_t s, uint32_t local, char *url_out)
{
    const struct graph_site *site = &graph->sites[s];
    uint64_t folder = mix(graph->seed + s, local / DIRECTORY), h = mix(graph->seed ^ s, local + 1000);
    char *at = put_text(url_out, "https://");

    memcpy(at, site->host, sizeof site->host);
    at += site->host_len;
    *at++ = '/';
    if (local == 0)
        return (size_t)(at - url_out);
    at = put_word(at, folder);
    *at++ = '/';
    if (folder >> 60 > 3) {
        at = put_word(at, folder >> 8);
        *at++ = '/';
    }
    for (uint64_t n = 2 + (h >> 60) % 3; n > 0; n--) {
        at = put_word(at, h);
        *at++ = '-';
        h >>= 8;
    }
    at = put_number(at, local);
    at = put_text(at, ".html");
    return (size_t)(at - url_out);
}

static void fill_facts(struct graph_page *p, uint64_t content, int64_t seen_ms)
{
    struct wb_webdb_page *page = &p->page;

    page->has_content = true;
    wb_put64(page->md5, mix(content, 1));
    wb_put64(page->md5 + 8, mix(content, 2));
    page->simhash = mix(content, 3);
    page->title_hash = mix(content, 4);
    page->bytes = 4000 + content % 60000;
    page->status = 200;
    page->outcome = WB_OUTCOME_STORED;
    page->depth = (uint16_t)(p->local == 0 ? 0 : 1 + p->local % 5);
    page->first_seen_ms = (int64_t)FIRST_VISIT_S * 1000;
    page->last_seen_ms = page->last_tried_ms = page->last_changed_ms = seen_ms;
    page->next_due_ms = seen_ms + 7 * WB_DAY_MS;
    page->flags = WB_PAGE_WANTED;
    page->type = WB_SLICE_LIT("text/html");
    if (content % 2) {
        int n = snprintf(p->etag, sizeof p->etag, "\"%llx\"", (unsigned long long)mix(content, 5));
        page->etag = wb_slice(p->etag, (size_t)n);
    }
}

/* Chooses a page of the same site: a neighbour, or one of the better-known pages. */
static uint32_t inner_target(const struct graph_site *site, uint32_t local, uint64_t random)
{
    double u = unit(random);

    if (random % 2)
        return (local + 1 + (uint32_t)(random >> 8) % 40) % site->size;
    return (uint32_t)(u * u * site->size);
}

/* A few sites get most of the links, mostly to their front page. The most popular sites are not the largest. */
static void outer_target(const struct graph *graph, uint64_t random, struct graph_target *target)
{
    double rank = exp(log(graph->site_count) * pow(unit(random), 1.2)) - 1;

    target->site = ((uint32_t)rank + graph->site_count / 3) % graph->site_count;
    target->local = random % 10 < 7 ? 0 : (uint32_t)(random >> 8) % graph->sites[target->site].size;
}

/* Returns false if the page already has this link. slots holds 256 numbers of links, counted from 1. */
static bool is_new(const struct graph_page *p, uint8_t slots[256], const struct graph_target *target)
{
    uint8_t at = (uint8_t)(target->site * 31 + target->local);

    for (; slots[at]; at++)
        if (p->links[slots[at] - 1].site == target->site && p->links[slots[at] - 1].local == target->local)
            return false;
    slots[at] = (uint8_t)(p->link_count + 1);
    return true;
}

static void make_links(const struct graph *graph, struct graph_page *p)
{
    const struct graph_site *site = &graph->sites[p->site];
    uint64_t own = mix(graph->seed + 77, (uint64_t)p->site << 32 | p->local);
    size_t count = 20 + own % 62;
    uint8_t slots[256] = {0};

    p->link_count = 0;
    for (uint64_t i = 0; p->link_count < count && i < 2 * GRAPH_LINKS_MAX; i++) {
        uint64_t random = mix(own, i);
        struct graph_target target = {.site = p->site, .tag = WB_EXTRACT_LINK_A, .flags = WB_PAGELINK_FOLLOW};

        if (random % 10 == 0)
            random = mix(random, p->version);
        if (i < NAVIGATION)
            target.local = (uint32_t)i, target.navigation = true;
        else if (random >> 32 & 1 && i % 4 == 3) /* an eighth of the draws; the other kinds repeat links more often */
            outer_target(graph, mix(random, 9), &target);
        else
            target.local = inner_target(site, p->local, mix(random, 8));
        if (is_new(p, slots, &target))
            p->links[p->link_count++] = target;
    }
}

void graph_page(const struct graph *graph, bool old, uint32_t number, uint32_t version, struct graph_page *page_out)
{
    uint32_t low = 0, high = graph->site_count;
    const struct graph_site *site;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if ((old ? graph->sites[middle].old_first : graph->sites[middle].new_first) <= number)
            low = middle;
        else
            high = middle;
    }
    site = &graph->sites[low];
    page_out->site = low;
    page_out->local = old ? number - site->old_first : site->old_count + number - site->new_first;
    page_out->version = version;
    page_out->page = (struct wb_webdb_page){.flags = 0};
    page_out->page.url = wb_slice(page_out->url, make_url(graph, low, page_out->local, page_out->url));
    fill_facts(page_out, mix(graph->seed + version, (uint64_t)low << 32 | page_out->local),
               (int64_t)FIRST_VISIT_S * 1000 + ((int64_t)version + !old) * WB_DAY_MS + number);
    make_links(graph, page_out);
}

/* Navigation has the same anchors everywhere; the anchor of most other links is the name of their target. */
static size_t make_anchor(const struct graph *graph, const struct graph_page *p, const struct graph_target *target,
                          char *anchor_out)
{
    uint64_t h = mix(graph->seed + target->site, target->local + 5000);
    char *at;

    if (!target->navigation && h % 10 < 3)
        h = mix(h, p->local);
    at = put_word(anchor_out, h >> 8);
    for (uint64_t n = target->navigation ? 0 : (h >> 60) % 4; n > 0; n--) {
        *at++ = ' ';
        at = put_word(at, h >> (8 + 8 * n));
    }
    return (size_t)(at - anchor_out);
}

void graph_link(const struct graph *graph, struct graph_page *page, size_t i, struct wb_webdb_link *link_out)
{
    const struct graph_target *target = &page->links[i];

    memcpy(link_out->from_md5, page->page.md5, sizeof link_out->from_md5);
    link_out->to = wb_slice(page->to, make_url(graph, target->site, target->local, page->to));
    link_out->anchor = wb_slice(page->anchor, make_anchor(graph, page, target, page->anchor));
    link_out->tag = target->tag;
    link_out->flags = target->flags;
}

/* ---- orders ---------------------------------------------------------------------------------------- */

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

uint32_t graph_shuffled(uint32_t number, uint32_t count)
{
    uint32_t step = (uint32_t)(count * 0.6180339887) | 1;

    while (common_divisor(step, count) != 1)
        step += 2;
    return (uint32_t)((uint64_t)number * step % count);
}

struct wb_slice graph_popular(const struct graph *graph, char url_out[GRAPH_URL_MAX])
{
    return wb_slice(url_out, make_url(graph, graph->site_count / 3, 0, url_out));
}

uint32_t graph_edit_count(const struct graph *graph)
{
    return 2 * graph->new_count;
}

void graph_edit(const struct graph *graph, uint32_t i, struct graph_page *page_out)
{
    if (i % 2)
        graph_page(graph, false, graph_shuffled(i / 2, graph->new_count), 0, page_out);
    else
        graph_page(graph, true, graph_shuffled(i / 2, graph->old_count), 1, page_out);
}
