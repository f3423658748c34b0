/*
 * test_index_ranks.c - PageRank, host rank and personal ranks of generations, compared with the solution of the linear
 * equations that define them, for a random web whose links are known; seeds of all kinds; ranks that last.
 */
#include "index_web.h"

#include <math.h>

enum { RANK_HOSTS = 48 };

/* Many hosts have few URLs, so that their graph is sparse. */
static const char *host_of(size_t url)
{
    static const char *const hosts[] = {"alder.example", "birch.example:8080", "birch.example",
                                        "dogwood.test",  "elm.dogwood.test",   "deep.elm.dogwood.test"};
    static char names[RANK_HOSTS][24];

    if (url % 4 == 0)
        return hosts[url / 4 % COUNT(hosts)];
    size_t host = url * url % 251 % RANK_HOSTS;
    snprintf(names[host], sizeof names[host], "n%02zu.grove.test", host);
    return names[host];
}

/* Gives two thirds of the URLs pages of status 200. */
static void fill(void)
{
    struct wb_store *store = NULL;
    struct wb_store_commit_counts counts = {0};

    ok(wb_store_open(web->dir, WB_STORE_WRITE, &store));
    for (size_t i = 0; i < WEB_URLS; i++)
        snprintf(web->urls[i].url, sizeof web->urls[i].url, "http://%s/p%zu", host_of(i), i);
    for (size_t i = 0; i < WEB_URLS; i++) {
        struct web_url *url = &web->urls[i];
        if (chance_one_in(&web->chance, 3))
            continue;
        url->content = chance_next(&web->chance);
        url->anchors = chance_next(&web->chance);
        url->status = 200;
        url->page = true;
        web_put(web, store, url);
    }
    ok(wb_store_commit(store, &counts));
    wb_store_close(store);
}

static int set_up(void **state)
{
    (void)state;
    make_web();
    fill();
    return 0;
}

/* Builds with a rank from these seeds; text NULL removes it. */
static int build_with(const char *name, const char *text, struct warnings *warnings)
{
    struct wb_index_options options = build_options(web, web_update(web), warnings);
    struct wb_index_result result;
    char path[96];

    snprintf(path, sizeof path, "%s/seeds.txt", test_dir);
    if (text)
        ok(wb_path_replace(path, wb_slice_str(text)));
    struct wb_index_column_source source = {wb_slice_str(name), text ? path : NULL, true};
    options.columns = &source;
    options.column_count = 1;
    return wb_index_build(&options, &result);
}

/* ---- the ranks that should be ---------------------------------------------------------------------- */

/* A graph as a matrix: arc[u][v] says whether u links to v. */
struct dense {
    size_t nodes;
    bool arc[WEB_URLS][WEB_URLS];
    double jump[WEB_URLS]; /* adds up to 1 */
    double rank[WEB_URLS];
};

/*
 * Solves rank = 0.15 jump + 0.85 P rank by elimination, in which column u of P is what a walk does at u: it follows one
 * of the links of u, or jumps if there are none.
 */
static void solve(struct dense *g)
{
    static double a[WEB_URLS][WEB_URLS + 1];
    size_t n = g->nodes;

    for (size_t v = 0; v < n; v++) {
        for (size_t u = 0; u < n; u++) {
            size_t links = 0;
            for (size_t w = 0; w < n; w++)
                links += g->arc[u][w];
            double follow = links ? (g->arc[u][v] ? 1.0 / (double)links : 0) : g->jump[v];
            a[v][u] = (u == v) - 0.85 * follow;
        }
        a[v][n] = 0.15 * g->jump[v];
    }
    /* The matrix is diagonally dominant by columns, so no pivots need to be looked for. */
    for (size_t k = 0; k < n; k++)
        for (size_t i = k + 1; i < n; i++) {
            double factor = a[i][k] / a[k][k];
            for (size_t j = k; j <= n; j++)
                a[i][j] -= factor * a[k][j];
        }
    for (size_t k = n; k-- > 0;) {
        g->rank[k] = a[k][n];
        for (size_t j = k + 1; j < n; j++)
            g->rank[k] -= a[k][j] * g->rank[j];
        g->rank[k] /= a[k][k];
    }
}

/* The URLs that the generation should know: pages, and what they link to. node_out: by URL, or SIZE_MAX. */
static size_t known_urls(size_t node_out[WEB_URLS])
{
    bool known[WEB_URLS] = {false};
    size_t targets[WEB_LINKS], count = 0;

    for (size_t i = 0; i < WEB_URLS; i++) {
        size_t links = web->urls[i].page ? web_targets(web->urls[i].content, targets) : 0;
        known[i] = known[i] || web->urls[i].page;
        for (size_t k = 0; k < links; k++)
            known[targets[k]] = true;
    }
    for (size_t i = 0; i < WEB_URLS; i++)
        node_out[i] = known[i] ? count++ : SIZE_MAX;
    return count;
}

static struct dense *page_graph(size_t node[WEB_URLS])
{
    struct dense *g = wb_alloc_zero(1, sizeof *g);
    size_t targets[WEB_LINKS];

    g->nodes = known_urls(node);
    for (size_t i = 0; i < WEB_URLS; i++) {
        size_t links = web->urls[i].page ? web_targets(web->urls[i].content, targets) : 0;
        for (size_t k = 0; k < links; k++)
            g->arc[node[i]][node[targets[k]]] = true;
    }
    return g;
}

/* ---- the ranks that are ------------------------------------------------------------------------------ */

static double value_at(const double *values, struct wb_index *index, size_t url)
{
    uint32_t docid = 0;

    ok(wb_index_find(index, wb_slice_str(web->urls[url].url), &docid));
    return values[docid];
}

/* L1 distance to what the equations say. */
static double distance(const struct dense *g, const size_t node[WEB_URLS], const double *values, struct wb_index *index)
{
    double sum = 0;

    assert_int_equal(wb_index_info(index)->urls, g->nodes);
    for (size_t i = 0; i < WEB_URLS; i++)
        if (node[i] != SIZE_MAX)
            sum += fabs(g->rank[node[i]] - value_at(values, index, i));
    return sum;
}

static void expect_close(double l1)
{
    if (!(l1 < 1e-9))
        fail_msg("L1 distance is %g", l1);
}

static const double *personal(struct wb_index *index, const char *name)
{
    const struct wb_index_column *column = NULL;

    ok(wb_index_column(index, wb_slice_str(name), &column));
    assert_false(column->words);
    return column->numbers;
}

static void test_page_rank(void **state)
{
    struct wb_index *index = NULL;
    const void *ranks = NULL;
    size_t node[WEB_URLS];
    struct dense *g = page_graph(node);

    (void)state;
    web_build(web);
    for (size_t i = 0; i < g->nodes; i++)
        g->jump[i] = 1.0 / (double)g->nodes;
    solve(g);
    ok(wb_index_open(web->dir, &index));
    ok(wb_index_fact(index, WB_FACT_RANK, &ranks));
    expect_close(distance(g, node, ranks, index));
    wb_index_close(index);
    wb_free(g);
}

/* The graph of hosts: two hosts have an arc if any of their pages do, however many. */
static void test_host_rank(void **state)
{
    struct dense *pages, *hosts = wb_alloc_zero(1, sizeof *hosts);
    struct wb_index *index = NULL;
    const void *ranks = NULL;
    const char *names[WEB_URLS];
    size_t node[WEB_URLS], host[WEB_URLS];
    double sum = 0, least = 1, most = 0;

    (void)state;
    web_build(web);
    pages = page_graph(node);
    for (size_t i = 0; i < WEB_URLS; i++) {
        for (host[i] = 0; host[i] < hosts->nodes && strcmp(names[host[i]], host_of(i)) != 0;)
            host[i]++;
        if (node[i] != SIZE_MAX && host[i] == hosts->nodes)
            names[hosts->nodes++] = host_of(i);
    }
    assert_true(hosts->nodes > 20);
    for (size_t i = 0; i < WEB_URLS; i++)
        for (size_t j = 0; j < WEB_URLS; j++)
            if (node[i] != SIZE_MAX && node[j] != SIZE_MAX && host[i] != host[j] && pages->arc[node[i]][node[j]])
                hosts->arc[host[i]][host[j]] = true;
    for (size_t i = 0; i < hosts->nodes; i++)
        hosts->jump[i] = 1.0 / (double)hosts->nodes;
    solve(hosts);
    for (size_t i = 0; i < hosts->nodes; i++) {
        least = hosts->rank[i] < least ? hosts->rank[i] : least;
        most = hosts->rank[i] > most ? hosts->rank[i] : most;
    }
    assert_true(most > 2 * least); /* or the comparison would say little */
    ok(wb_index_open(web->dir, &index));
    ok(wb_index_fact(index, WB_FACT_HOSTRANK, &ranks));
    for (size_t i = 0; i < WEB_URLS; i++)
        if (node[i] != SIZE_MAX)
            sum += fabs(hosts->rank[host[i]] - value_at(ranks, index, i));
    expect_close(sum);
    wb_index_close(index);
    verify_sound(web->dir);
    wb_free(pages);
    wb_free(hosts);
}

/* ---- personal ranks ------------------------------------------------------------------------------- */

/* Compares a rank with the one that jumps to the URLs for which is_seed() is true. */
static void expect_personal(const char *name, bool (*is_seed)(size_t url))
{
    struct wb_index *index = NULL;
    size_t node[WEB_URLS], seeds = 0;
    struct dense *g = page_graph(node);

    for (size_t i = 0; i < WEB_URLS; i++)
        seeds += node[i] != SIZE_MAX && is_seed(i);
    assert_true(seeds > 0);
    for (size_t i = 0; i < WEB_URLS; i++)
        if (node[i] != SIZE_MAX)
            g->jump[node[i]] = is_seed(i) ? 1.0 / (double)seeds : 0;
    solve(g);
    ok(wb_index_open(web->dir, &index));
    expect_close(distance(g, node, personal(index, name), index));
    wb_index_close(index);
    wb_free(g);
    verify_sound(web->dir);
}

static size_t nth_page(size_t n)
{
    for (size_t i = 0; i < WEB_URLS; i++)
        if (web->urls[i].page && n-- == 0)
            return i;
    fail_msg("there are too few pages");
    return 0;
}

static bool is_one_of_three(size_t url)
{
    return url == nth_page(2) || url == nth_page(20) || url == nth_page(40);
}

/* URLs in several spellings; one twice. */
static void test_from_urls(void **state)
{
    struct warnings warnings;
    char text[1024];

    (void)state;
    snprintf(text, sizeof text, "# seeds\n\n%s\n  %s#part \r\n%s\n%s", web->urls[nth_page(2)].url,
             web->urls[nth_page(20)].url, web->urls[nth_page(20)].url, web->urls[nth_page(40)].url + strlen("http://"));
    ok(build_with("trust", text, &warnings));
    assert_int_equal(warnings.count, 0);
    expect_personal("trust", is_one_of_three);
}

static bool is_page_of_dogwood(size_t url)
{
    const char *host = host_of(url), *end = strstr(host, "dogwood.test");

    return web->urls[url].page && end;
}

static bool is_page_of_birch_8080(size_t url)
{
    return web->urls[url].page && strcmp(host_of(url), "birch.example:8080") == 0;
}

static bool is_either(size_t url)
{
    return is_page_of_dogwood(url) || is_one_of_three(url);
}

/* A host stands for its pages and those of hosts below it; with a port, only for that site. */
static void test_from_hosts(void **state)
{
    struct warnings warnings;
    char text[1024];

    (void)state;
    ok(build_with("trust", "Dogwood.TEST\n", &warnings));
    expect_personal("trust", is_page_of_dogwood);
    ok(build_with("trust", "birch.example:8080\nelm.nowhere.test\n", &warnings));
    assert_int_equal(warnings.count, 1);
    assert_non_null(strstr(warnings.last, "trust: 1 of 2 seeds"));
    expect_personal("trust", is_page_of_birch_8080);
    snprintf(text, sizeof text, "%s\n%s\n%s\ndogwood.test\nelm.dogwood.test\n", web->urls[nth_page(2)].url,
             web->urls[nth_page(20)].url, web->urls[nth_page(40)].url);
    ok(build_with("trust", text, &warnings));
    assert_int_equal(warnings.count, 0);
    expect_personal("trust", is_either);
}

/* A rank follows the web: later builds compute it again, merged or from scratch, with the same bytes. */
static void test_lasting(void **state)
{
    struct genfiles merged, scratch;
    struct wb_index_result result;
    struct warnings warnings;
    const struct wb_index_column *columns;
    struct wb_index *index = NULL;

    (void)state;
    web->no_takedowns = true;
    ok(build_with("trust", "dogwood.test\nhttp://late.test/page\n", &warnings));
    assert_int_equal(warnings.count, 1);
    ok(build_with("other", web->urls[nth_page(2)].url, &warnings));
    for (int round = 0; round < 3; round++) {
        web_changes(web, 20);
        struct wb_index_options options = build_options(web, web_update(web), &warnings);
        ok(wb_index_build(&options, &result));
        assert_true(result.read < result.info.pages);
        read_genfiles(web->dir, &merged);
        options.from_scratch = true;
        options.threads = 1;
        options.memory_bytes = 1;
        ok(wb_index_build(&options, &result));
        read_genfiles(web->dir, &scratch);
        same_genfiles(&merged, &scratch, "ranks");
        verify_sound(web->dir);
        assert_int_equal(warnings.count, 0); /* that a seed is unknown was said when it was given */
    }
    ok(build_with("trust", NULL, &warnings));
    assert_int_equal(build_with("trust", NULL, &warnings), WB_E_NOTFOUND);
    ok(wb_index_open(web->dir, &index));
    assert_int_equal(wb_index_columns(index, &columns), 1);
    assert_string_equal(columns[0].name, "other");
    wb_index_close(index);
}

/* A seed that is unknown counts once it is known; and if all vanish, the rank has no values. */
static void test_seeds_come_and_go(void **state)
{
    struct wb_update_options update = {.dir = web->dir, .memory_bytes = SMALL_MEMORY};
    struct wb_cycle_sink sink = {.progress = NULL};
    struct wb_expunge_stat stat;
    struct wb_store *store = NULL;
    struct wb_store_commit_counts counts = {0};
    struct web_url *late = &web->urls[WEB_URLS - 1];
    struct wb_index *index = NULL;
    struct wb_index_result result;
    struct warnings warnings;
    char text[256];

    (void)state;
    *late = (struct web_url){.content = 10, .anchors = 11, .status = 200};
    snprintf(late->url, sizeof late->url, "http://late.test/page");
    snprintf(text, sizeof text, "late.test\n%s\n", web->urls[nth_page(5)].url);
    ok(build_with("trust", text, &warnings));
    assert_int_equal(warnings.count, 1);
    assert_non_null(strstr(warnings.last, "1 of 2"));
    ok(wb_store_open(web->dir, WB_STORE_WRITE, &store));
    late->page = true;
    web_put(web, store, late);
    ok(wb_store_commit(store, &counts));
    wb_store_close(store);
    web_build(web);
    ok(build_with("trust", "http://late.test/page", &warnings));
    assert_int_equal(warnings.count, 0);
    ok(wb_index_open(web->dir, &index));
    uint32_t docid = 0;
    ok(wb_index_find(index, WB_SLICE_LIT("http://late.test/page"), &docid));
    assert_true(personal(index, "trust")[docid] >= 0.15);
    wb_index_close(index);
    ok(wb_expunge(&update, "http://late.test/page", false, &sink, NULL, NULL, &stat));
    struct wb_index_options options = build_options(web, web_update(web), &warnings);
    ok(wb_index_build(&options, &result));
    assert_int_equal(warnings.count, 1);
    assert_non_null(strstr(warnings.last, "none of its 1 seeds"));
    ok(wb_index_open(web->dir, &index));
    for (uint64_t i = 0; i < wb_index_info(index)->urls; i++)
        assert_true(isnan(personal(index, "trust")[i]));
    wb_index_close(index);
    verify_sound(web->dir);
}

static void test_bad_seeds(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"http://nowhere.test/\nnowhere.test\n", "none of the 2 seeds"},
        {"", "no seed"},
        {"# nothing\n\n", "no seed"},
        {"alder.example\nno host\n", "line 2"},
        {"mailto:someone@alder.example\n", "line 1"},
        {"ftp://alder.example/\n", "line 1"},
        {"http://\n", "line 1"},
    };
    struct warnings warnings;
    struct wb_index_info before, after;

    (void)state;
    web_build(web);
    ok(wb_index_newest(web->dir, &before));
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(build_with("trust", bad[i].text, &warnings), WB_E_INVALID);
        if (!strstr(wb_error_message(), bad[i].message) || !strstr(wb_error_message(), "seeds.txt") ||
            !strstr(wb_error_message(), "trust"))
            fail_msg("%s", wb_error_message());
    }
    ok(wb_index_newest(web->dir, &after));
    assert_int_equal(before.generation, after.generation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_page_rank, set_up, tear_down_web),
        cmocka_unit_test_setup_teardown(test_host_rank, set_up, tear_down_web),
        cmocka_unit_test_setup_teardown(test_from_urls, set_up, tear_down_web),
        cmocka_unit_test_setup_teardown(test_from_hosts, set_up, tear_down_web),
        cmocka_unit_test_setup_teardown(test_lasting, set_up, tear_down_web),
        cmocka_unit_test_setup_teardown(test_seeds_come_and_go, set_up, tear_down_web),
        cmocka_unit_test_setup_teardown(test_bad_seeds, set_up, tear_down_web),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
