/*
 * rankwork.c - computes the ranks of a build.
 *
 * Room graph does the arithmetic; its results do not depend on threads or memory, so neither do the columns. Which URLs
 * and links count is decided in linkwork.c.
 */
#include "index/rankwork.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "index/columnfile.h"
#include "index/sitetable.h"
#include "os/nameless.h"
#include "os/path.h"

enum {
    STATIC_HALF = 1, /* a page with so many times the average PageRank gets half of the greatest static score */
};

#define SITE_GRAPH_FILE "sitegraph.wbg" /* only while its ranks are computed */

static bool go_on(void *context)
{
    return wb_build_progress(context, "PageRank", 0, 0) == 0;
}

static struct wb_graph_rank_options rank_options(struct wb_build *build)
{
    return (struct wb_graph_rank_options){
        .threads = build->threads, .memory_bytes = build->memory_bytes, .go_on = go_on, .context = build};
}

static int open_out(struct wb_build *build, struct wb_graph **graph_out)
{
    char *path = wb_build_path(build, WB_OUT_FILE);
    int err = path ? wb_graph_open(path, graph_out) : WB_E_NOMEM;

    wb_free(path);
    return err;
}

/* ---- PageRank ---------------------------------------------------------------------------------- */

static int count_out(struct wb_build *build, const struct wb_graph *out)
{
    struct wb_graph_cursor *cursor = NULL;
    const uint32_t *list;
    uint32_t node;
    size_t count;
    int more, err = wb_graph_cursor_open(out, &cursor);

    while (err == 0 && (more = wb_graph_next(cursor, &node, &list, &count)) != 0) {
        err = more < 0 ? more : 0;
        WB_CHECK(err < 0 || node < build->roster.url_count);
        if (err == 0)
            build->outlinks[node] = (uint32_t)count;
    }
    wb_graph_cursor_close(cursor);
    return err;
}

uint32_t wb_static_score(double rank, uint64_t urls)
{
    double times = rank * (double)urls;

    WB_CHECK(times >= 0);
    return (uint32_t)(times / (times + STATIC_HALF) * WB_SCORE_ONE + 0.5);
}

/* ---- host rank --------------------------------------------------------------------------------- */

/* Writes the graph of sites and opens it. Its file has no name afterwards: it is not part of the generation. */
static int open_sites(struct wb_build *build, const struct wb_graph *out, const uint32_t *site_of,
                      struct wb_graph **sites_out)
{
    struct wb_graph_derive_options derive = {.dir = build->root, .memory_bytes = build->memory_bytes};
    char *path = wb_build_path(build, SITE_GRAPH_FILE);
    int err = path ? wb_graph_group(out, site_of, build->roster.site_count, &derive, path, NULL) : WB_E_NOMEM;

    if (err == 0)
        err = wb_graph_open(path, sites_out);
    if (err == 0)
        err = wb_path_unlink(path);
    wb_free(path);
    return err;
}

static int rank_sites(struct wb_build *build, const struct wb_graph *out)
{
    const struct wb_roster *roster = &build->roster;
    struct wb_graph_rank_options options = rank_options(build);
    struct wb_graph *sites = NULL;
    size_t bytes = (roster->url_count + 1) * sizeof(uint32_t);
    void *memory = NULL;
    int err = wb_nameless_map(build->root, bytes, &memory);

    if (err < 0)
        return err;
    uint32_t *site_of = memory;
    for (uint64_t number = 0; number < roster->url_count; number++) {
        WB_CHECK(roster->urls[number].site < roster->site_count);
        site_of[wb_docmap_docid(&roster->docmap, number)] = roster->urls[number].site;
    }
    err = open_sites(build, out, site_of, &sites);
    if (err == 0)
        err = wb_graph_rank(sites, &options, build->site_ranks, NULL);
    wb_graph_close(sites);
    wb_nameless_unmap(memory, bytes);
    return err;
}

int wb_rankwork(struct wb_build *build)
{
    struct wb_graph_rank_options options = rank_options(build);
    struct wb_graph *out = NULL;
    int err = open_out(build, &out);

    if (err == 0)
        err = count_out(build, out);
    if (err == 0 && build->roster.url_count)
        err = wb_graph_rank(out, &options, build->ranks, NULL);
    if (err == 0 && build->roster.url_count)
        err = rank_sites(build, out);
    wb_graph_close(out);
    return err;
}

/* ---- personal ranks ---------------------------------------------------------------------------- */

/* Seeds that are being looked up. */
struct seed_match {
    struct wb_build *build;
    struct wb_seedset *set;
    struct wb_cursor *sites;
    const uint8_t *kinds; /* by number: enum wb_webdb_kind */
};

static int add_range(void *context, struct wb_index_range range)
{
    struct seed_match *match = context;
    const struct wb_docmap *docmap = &match->build->roster.docmap;
    int err = 0;

    WB_CHECK(range.first <= range.end && range.end <= docmap->urls);
    for (uint32_t docid = range.first; err == 0 && docid < range.end; docid++)
        if (docid < docmap->pages || match->kinds[wb_docmap_number(docmap, docid)] & WB_IS_LOADED)
            err = wb_vec_push(&match->set->docids, docid);
    return err;
}

static int match_seed(struct seed_match *match, const struct wb_table_record *seed)
{
    struct wb_build *build = match->build;
    struct wb_seedset *set = match->set;
    struct wb_webdb_page page;
    size_t before = set->docids.count;
    uint64_t number = 0;
    int err;

    WB_CHECK(seed->key.len >= 2);
    if (seed->key.ptr[0] == WB_COLUMNFILE_SEED_HOST) {
        struct wb_slice host = wb_slice(seed->key.ptr + 1, seed->key.len - 1);
        err = wb_sitetable_each(match->sites, &build->roster.docmap, build->path, host, add_range, match);
    } else {
        err = wb_webdb_number(build->webdb, seed->value, &number);
        if (err == 0)
            err = wb_webdb_get_number(build->webdb, number, &page);
        if (err == 0 && !(page.flags & WB_PAGE_BARRED)) /* what was taken down stays known, but is no place to start */
            err = wb_vec_push(&set->docids, wb_docmap_docid(&build->roster.docmap, number));
    }
    set->seeds++;
    set->unknown += set->docids.count == before;
    return err == WB_E_NOTFOUND ? 0 : err;
}

static int match_all(struct seed_match *match, struct wb_cursor *seeds, const char *table)
{
    struct wb_table_record record;
    int more, err = 0;

    while (err == 0 && (more = wb_cursor_next(seeds, &record)) != 0) {
        if (more < 0)
            return more;
        if (record.key.len < 2 ||
            (record.key.ptr[0] != WB_COLUMNFILE_SEED_URL && record.key.ptr[0] != WB_COLUMNFILE_SEED_HOST))
            return wb_fail(WB_E_CORRUPT, "%s is damaged: a seed has no meaning; give the rank again, or remove it",
                           table);
        err = match_seed(match, &record);
    }
    return err;
}

int wb_seedset_match(struct wb_build *build, const char *table, struct wb_seedset *set_out)
{
    struct seed_match match = {.build = build, .set = set_out};
    struct wb_table *seeds = NULL, *sites = NULL;
    struct wb_cursor *cursor = NULL;
    char *path = wb_build_path(build, WB_SITES_TABLE_FILE);
    int err = path ? wb_table_open(table, WB_COLUMNFILE_SEEDS_KIND, &seeds) : WB_E_NOMEM;

    *set_out = (struct wb_seedset){.seeds = 0};
    if (err == 0)
        err = wb_cursor_open(seeds, &cursor);
    if (err == 0)
        err = wb_table_open(path, WB_SITES_TABLE_KIND, &sites);
    if (err == 0)
        err = wb_cursor_open(sites, &match.sites);
    if (err == 0)
        err = wb_webdb_kinds(build->webdb, 0, build->roster.url_count, &match.kinds);
    if (err == 0)
        err = match_all(&match, cursor, table);
    wb_cursor_close(match.sites);
    wb_table_close(sites);
    wb_cursor_close(cursor);
    wb_table_close(seeds);
    wb_free(path);
    return err;
}

void wb_seedset_release(struct wb_seedset *set)
{
    wb_vec_release(&set->docids);
    *set = (struct wb_seedset){.seeds = 0};
}

int wb_rankwork_personal(struct wb_build *build, const struct wb_seedset *set, double *ranks_out)
{
    struct wb_graph_rank_options options = rank_options(build);
    struct wb_graph *out = NULL;

    WB_CHECK(set->docids.count > 0);
    int err = open_out(build, &out);
    options.seeds = set->docids.items;
    options.seed_count = set->docids.count;
    if (err == 0)
        err = wb_graph_rank(out, &options, ranks_out, NULL);
    wb_graph_close(out);
    return err;
}
