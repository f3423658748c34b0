/*
 * test_index_same.c - the central promise of generations: one that was merged from the last one has the same bytes
 * as one that is built from scratch, whatever has changed, and whatever memory and threads were used.
 */
#include "../unsynced.h"
#include "index_support.h"

enum { ROUNDS = 5 };

static char test_dir[MEMORY_DIR_MAX];

static void begin(struct web *web, uint64_t seed)
{
    char dir[80];

    assert_int_equal(make_memory_dir("index", test_dir), 0);
    snprintf(dir, sizeof dir, "%s/r", test_dir);
    web_init(web, dir, seed);
}

static void end(void)
{
    remove_tree(test_dir);
}

static int count_snapshot(void *context, const struct wb_store_snapshot *snapshot)
{
    (void)snapshot;
    ++*(unsigned *)context;
    return 0;
}

static int count_edition(void *context, uint32_t edition, const char *holder, int64_t since_ms)
{
    (void)edition;
    (void)since_ms;
    assert_true(strncmp(holder, "generation-", 11) == 0);
    ++*(unsigned *)context;
    return 0;
}

/* Only the active generation holds anything. */
static void check_holds(const struct web *web)
{
    unsigned snapshots = 0, editions = 0;
    struct wb_store *store = NULL;

    ok(wb_store_open(web->dir, WB_STORE_READ, &store));
    ok(wb_store_snapshot_each(store, count_snapshot, &snapshots));
    wb_store_close(store);
    ok(wb_webdb_holds(web->dir, count_edition, &editions));
    assert_int_equal(snapshots, 1);
    assert_int_equal(editions, 1);
}

/* ---- what a generation says ----------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void check_links(struct wb_index *index, const struct web *web, const struct web_url *url, uint32_t docid)
{
    size_t targets[WEB_LINKS], wanted = url->page ? web_targets(url->content, targets) : 0;
    struct wb_graph_cursor *cursor = NULL;
    uint32_t docids[WEB_LINKS];
    const uint32_t *list;
    size_t count;

    for (size_t i = 0; i < wanted; i++)
        ok(wb_index_find(index, wb_slice_str(web->urls[targets[i]].url), &docids[i]));
    qsort(docids, wanted, sizeof *docids, by_number);
    ok(wb_graph_cursor_open(wb_index_links_out(index), &cursor));
    ok(wb_graph_successors(cursor, docid, &list, &count));
    assert_int_equal(count, wanted);
    assert_memory_equal(list, docids, wanted * sizeof *docids);
    wb_graph_cursor_close(cursor);
}

/* Returns whether it is a page of the generation. */
static bool check_url(struct wb_index *index, const struct web *web, const struct web_url *url)
{
    struct wb_buf title = WB_BUF_INIT;
    struct wb_slice text;
    const void *status;
    uint32_t docid = 0;
    int err = wb_index_find(index, wb_slice_str(url->url), &docid);

    /* webdb adopts only pages with status 200; it knows others if something links to them. */
    if (err == WB_E_NOTFOUND && (!url->page || url->status != 200))
        return false;
    ok(err);
    assert_true((docid < wb_index_info(index)->pages) == url->page);
    ok(wb_index_url(index, docid, &text));
    assert_true(wb_slice_equal(text, wb_slice_str(url->url)));
    if (!url->page || url->status == 200) /* a page with another status has the links of its copies, if there are any */
        check_links(index, web, url, docid);
    if (url->page) {
        web_title(url->content, &title);
        ok(wb_index_title(index, docid, &text));
        /* Titles have words with entities in them; what is before these is the same. */
        assert_true(text.len >= 6 && memcmp(text.ptr, title.ptr, 6) == 0);
        ok(wb_index_fact(index, WB_FACT_STATUS, &status));
        assert_int_equal(((const uint16_t *)status)[docid], url->status);
    }
    wb_buf_release(&title);
    return url->page;
}

static void check_content(const struct web *web)
{
    struct wb_index *index = NULL;
    uint64_t pages = 0;

    ok(wb_index_open(web->dir, &index));
    for (size_t i = 0; i < WEB_URLS; i++) {
        pages += check_url(index, web, &web->urls[i]);
    }
    assert_int_equal(wb_index_info(index)->pages, pages);
    assert_true(wb_index_info(index)->urls > pages);
    wb_index_close(index);
    verify_sound(web->dir);
}

/* ---- incremental and from scratch ------------------------------------------------------------------- */

/* Builds the next generation from the last one, then from scratch, in another way each time. */
static void compare_builds(struct web *web, unsigned round)
{
    struct genfiles merged, scratch;
    struct wb_index_result first, second;
    struct warnings warnings;
    struct wb_index_options options = build_options(web, web_update(web), &warnings);
    char what[64];

    snprintf(what, sizeof what, "round %u", round);
    options.threads = 1 + round % 4;
    options.serial = round % 3 == 1;
    ok(wb_index_build(&options, &first));
    if (warnings.count)
        fail_msg("%s", warnings.last);
    read_genfiles(web->dir, &merged);
    check_content(web);
    options.from_scratch = true;
    options.threads = 4 - round % 4;
    options.serial = round % 2;
    options.memory_bytes = round % 2 ? 0 : 1;
    ok(wb_index_build(&options, &second));
    read_genfiles(web->dir, &scratch);
    same_genfiles(&merged, &scratch, what);
    assert_int_equal(second.read, second.info.pages);
    assert_true(round == 0 || first.read < first.info.pages);
    assert_int_equal(first.info.words, second.info.words);
    assert_int_equal(first.info.arcs, second.info.arcs);
    assert_int_equal(first.info.terms, second.info.terms);
    assert_int_equal(first.info.generation + 1, second.info.generation);
    check_holds(web);
}

static void test_merged_is_the_same(void **state)
{
    uint64_t seed = test_seed();
    struct web *web = wb_alloc(sizeof *web);

    (void)state;
    begin(web, seed);
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (round == 0)
            web_fill(web);
        else
            web_changes(web, 1 + chance_below(&web->chance, round == 1 ? 3 : 60));
        compare_builds(web, round);
    }
    wb_free(web);
    end();
}

/* Versions are counted; what a policy keeps must not depend on which generations are there. */
static void test_histories(void **state)
{
    static const struct wb_store_history histories[] = {{WB_STORE_KEEP_ALL, 0}, {WB_STORE_KEEP_COUNT, 2}};
    uint64_t seed = test_seed();
    struct web *web = wb_alloc(sizeof *web);

    (void)state;
    for (size_t i = 0; i < COUNT(histories); i++) {
        struct wb_store *store = NULL;
        begin(web, seed + i);
        ok(wb_store_open(web->dir, WB_STORE_WRITE, &store));
        ok(wb_store_set_history(store, &histories[i]));
        wb_store_close(store);
        web_fill(web);
        for (unsigned round = 0; round < 3; round++) {
            compare_builds(web, round);
            web_changes(web, 80);
        }
        end();
    }
    wb_free(web);
}

/* Nothing has changed: nothing is read. */
static void test_nothing_changed(void **state)
{
    struct web *web = wb_alloc(sizeof *web);
    struct genfiles before, after;
    struct wb_index_result result;

    (void)state;
    begin(web, test_seed());
    web_fill(web);
    result = web_build(web);
    assert_int_equal(result.read, result.info.pages);
    read_genfiles(web->dir, &before);
    result = web_build(web);
    assert_int_equal(result.read, 0);
    assert_int_equal(result.info.generation, 2);
    read_genfiles(web->dir, &after);
    same_genfiles(&before, &after, "nothing has changed");
    wb_free(web);
    end();
}

/* So little memory that there are many runs: the bytes are the same. */
static void test_tiny_memory(void **state)
{
    struct web *web = wb_alloc(sizeof *web);
    struct genfiles before, after;
    struct wb_index_result result;
    struct warnings warnings;

    (void)state;
    begin(web, test_seed());
    web->body_words = 3000;
    web->vocabulary = 8000;
    web_fill(web);
    struct wb_index_options options = build_options(web, web_update(web), &warnings);
    ok(wb_index_build(&options, &result));
    read_genfiles(web->dir, &before);
    for (unsigned threads = 1; threads <= 8; threads += 7) {
        options.from_scratch = true;
        options.memory_bytes = 1;
        options.threads = threads;
        ok(wb_index_build(&options, &result));
        if (result.runs < 4 || result.ranges < (threads == 1 ? 2 : 4))
            fail_msg("only %llu runs and %llu ranges", (unsigned long long)result.runs,
                     (unsigned long long)result.ranges);
        read_genfiles(web->dir, &after);
        same_genfiles(&before, &after, "little memory");
    }
    /* The same with the lists of the last generation. */
    web_changes(web, 40);
    options.edition = web_update(web);
    options.from_scratch = false;
    ok(wb_index_build(&options, &result));
    assert_true(result.ranges > 3 && result.read < result.info.pages);
    read_genfiles(web->dir, &after);
    options = build_options(web, options.edition, &warnings);
    options.from_scratch = true;
    ok(wb_index_build(&options, &result));
    read_genfiles(web->dir, &before);
    same_genfiles(&before, &after, "little memory, merged");
    wb_free(web);
    end();
}

/* A generation with other rules for words cannot be merged with. */
static void test_other_rules(void **state)
{
    struct web *web = wb_alloc(sizeof *web);
    struct genfiles before, after;
    struct wb_generation_manifest manifest;
    struct wb_index_result result;
    struct warnings warnings;
    char path[512];

    (void)state;
    begin(web, test_seed());
    web_fill(web);
    web_build(web);
    read_genfiles(web->dir, &before);
    snprintf(path, sizeof path, "%s/" WB_GENERATION_MANIFEST, before.path);
    ok(wb_generation_read(path, &manifest));
    manifest.info.rules++;
    ok(wb_generation_write(path, &manifest));
    wb_generation_release(&manifest);
    struct wb_index_options options = build_options(web, web_update(web), &warnings);
    ok(wb_index_build(&options, &result));
    assert_int_equal(warnings.count, 1);
    assert_non_null(strstr(warnings.last, "other rules"));
    assert_int_equal(result.read, result.info.pages);
    read_genfiles(web->dir, &after);
    same_genfiles(&before, &after, "other rules");
    wb_free(web);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merged_is_the_same), cmocka_unit_test(test_histories),
        cmocka_unit_test(test_nothing_changed),    cmocka_unit_test(test_tiny_memory),
        cmocka_unit_test(test_other_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
