/*
 * test_webdb_model.c - random mixes of every operation of a writer, and of records of the journal, over several
 * editions. After each, every call of a reader must show the same as the naive twin. Then the same with lists and
 * tables that do not fit in memory.
 *
 * A trace is a function of its seed (WEBBASE_SEED).
 */
#include "../rounds.h"
#include "webdb_compare.h"

enum { TRACES = 20, GENERATIONS = 6 };

static uint64_t seed;

/* ---- everything happens to everything -------------------------------------------------------- */

struct trace {
    const char *dir;
    uint64_t chance;
    struct twin twin, before; /* before: what the reader that is held sees */
    struct twin_batch batch;
    struct wb_webdb *held;
    struct wb_journal_writer *log; /* one that stays open for some editions; NULL: none */
    int64_t now_ms;
    uint32_t edition;
};

/* A writer that is abandoned changes nothing and takes nothing from the journal. */
static void abandon_some(struct trace *t)
{
    struct wb_webdb_writer *writer = NULL;
    static struct twin_batch dropped;

    twin_batch_make(&dropped, chance_next(&t->chance), t->now_ms, 30, 0);
    assert_int_equal(wb_webdb_writer_open(t->dir, NULL, &writer), 0);
    assert_int_equal(twin_call_writer(writer, &dropped), 0);
    wb_webdb_writer_abandon(writer);
}

/* A page comes with its number of links, and with what was known about its site before. */
static void check_page_and_site(void *context, const struct wb_webdb_page *page, const struct wb_webdb_site *site)
{
    const struct twin *old = context;
    uint64_t pages = 0, fetched = 0;
    unsigned url = 0;

    while (url < TWIN_URLS && !wb_slice_equal(page->surt, wb_slice_str(twin_surts[url])))
        url++;
    assert_true(url < TWIN_URLS);
    assert_int_equal(page->inlinks, count_inlinks(old, url));
    for (unsigned i = url / TWIN_PATHS * TWIN_PATHS; i < (url / TWIN_PATHS + 1) * TWIN_PATHS; i++) {
        pages += old->pages[i].there;
        fetched += old->pages[i].there && old->pages[i].row.has_content;
    }
    assert_true((site != NULL) == (pages > 0));
    assert_true(!site || (site->pages == pages && site->fetched == fetched));
}

static uint64_t count_without_source(const struct trace *t)
{
    uint64_t count = 0;

    for (size_t i = 0; i < t->batch.count; i++)
        for (size_t k = 0; k < t->batch.edits[i].link_count; k++)
            count += !twin_has_content(&t->twin, t->batch.edits[i].links[k].md5);
    return count;
}

static void check_merge(const struct trace *t, const struct wb_webdb_merge *merge, const struct twin *old)
{
    uint64_t added = 0, deleted = 0, links_added = 0, links_deleted = 0;

    for (unsigned url = 0; url < TWIN_URLS; url++) {
        added += t->twin.pages[url].there && !old->pages[url].there;
        deleted += !t->twin.pages[url].there && old->pages[url].there;
        for (unsigned md5 = 0; md5 < TWIN_MD5S; md5++) {
            links_added += t->twin.links[md5][url].there && !old->links[md5][url].there;
            links_deleted += !t->twin.links[md5][url].there && old->links[md5][url].there;
        }
    }
    assert_int_equal(merge->edition, t->edition);
    assert_int_equal(merge->pages_added, added);
    assert_int_equal(merge->pages_deleted, deleted);
    assert_int_equal(merge->links_added, links_added);
    assert_int_equal(merge->links_deleted, links_deleted);
    assert_int_equal(merge->links_without_source, count_without_source(t));
    assert_int_equal(merge->records, twin_count_records(&t->batch));
}

/* Writes to a new log, or to one that stays open. */
static void write_journal(struct trace *t)
{
    if (!t->log && chance_below(&t->chance, 3) == 0)
        worked(wb_journal_writer_open(t->dir, 0, &t->log));
    if (!t->log) {
        worked(twin_write_journal(t->dir, &t->batch));
        return;
    }
    worked(twin_append_journal(t->log, &t->batch));
    if (chance_below(&t->chance, 3))
        return;
    /* The log ends cleanly, or as after a crash. */
    if (chance_below(&t->chance, 2))
        worked(wb_journal_writer_finish(t->log));
    wb_journal_writer_close(t->log);
    t->log = NULL;
}

static void next_edition(struct trace *t)
{
    static struct twin old;
    struct wb_webdb_merge merge;
    size_t calls = 1 + chance_below(&t->chance, 150),
           records = chance_below(&t->chance, 3) ? chance_below(&t->chance, 100) : 0;

    t->now_ms += 1000 + (int64_t)chance_below(&t->chance, 1000);
    twin_batch_make(&t->batch, chance_next(&t->chance), t->now_ms, calls, records);
    write_journal(t);
    if (chance_below(&t->chance, 4) == 0)
        abandon_some(t);
    old = t->twin;
    t->batch.look = check_page_and_site;
    t->batch.look_context = &old;
    worked(twin_update(t->dir, &t->batch, 1 + chance_below(&t->chance, 2) * (32 << 20),
                       (unsigned)chance_below(&t->chance, 3), &merge));
    twin_apply(&t->twin, &t->batch);
    t->edition++;
    check_merge(t, &merge, &old);
    same_as_newest(&t->twin, t->dir);
    check_clean(t->dir);
    check_editions(t->dir, t->held ? 2 : 1);
    if (t->held) {
        same_as_twin(&t->before, t->held);
        wb_webdb_close(t->held);
        t->held = NULL;
    }
    if (chance_below(&t->chance, 2)) {
        worked(wb_webdb_open(t->dir, &t->held));
        t->before = t->twin;
    }
}

static void test_traces(void **state)
{
    static struct trace t;

    (void)state;
    for (unsigned i = 0; i < test_rounds(TRACES); i++) {
        t = (struct trace){.dir = new_dir(), .chance = seed + i, .now_ms = 1790000000000};
        for (unsigned g = 0; g < GENERATIONS; g++)
            next_edition(&t);
        wb_webdb_close(t.held);
        if (t.log)
            wb_journal_writer_close(t.log);
    }
}

/* Without anything to merge there is no new edition, and without any data no database. */
static void test_nothing(void **state)
{
    const char *dir = new_dir();
    struct wb_webdb_writer *writer = NULL;
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_merge merge;
    struct twin_batch batch;

    (void)state;
    assert_int_equal(wb_webdb_open(dir, &webdb), WB_E_NOTFOUND);
    assert_null(webdb);
    check_clean(dir);
    assert_int_equal(wb_webdb_writer_open(dir, NULL, &writer), 0);
    assert_int_equal(wb_webdb_add_journal(writer, NULL, NULL), 0);
    assert_int_equal(wb_webdb_writer_close(writer, &merge), 0);
    assert_int_equal(merge.edition, 0);
    assert_int_equal(wb_webdb_open(dir, &webdb), WB_E_NOTFOUND);
    twin_batch_make(&batch, 1, 1790000000000, 20, 0);
    assert_int_equal(twin_update(dir, &batch, 0, 0, &merge), 0);
    assert_int_equal(merge.edition, 1);
    batch.count = 0;
    assert_int_equal(twin_update(dir, &batch, 0, 0, &merge), 0);
    assert_int_equal(merge.edition, 1);
    check_tidy(dir);
}

static void test_bad_urls(void **state)
{
    const char *dir = new_dir();
    struct wb_webdb_writer *writer = NULL;
    struct wb_webdb_page page = {.url = WB_SLICE_LIT("mailto:me@example.org")};
    struct wb_webdb_link link = {.to = WB_SLICE_LIT("http://")};

    (void)state;
    assert_int_equal(wb_webdb_writer_open(dir, NULL, &writer), 0);
    assert_int_equal(wb_webdb_add_page(writer, &page), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), "mailto:me@example.org"));
    assert_int_equal(wb_webdb_add_link(writer, &link), WB_E_INVALID);
    page.url = WB_SLICE_LIT("http://example.org/");
    assert_int_equal(wb_webdb_add_page(writer, &page), 0);
    assert_int_equal(wb_webdb_writer_close(writer, NULL), 0);
    check_clean(dir);
}

/* ---- long lists, more than memory holds ------------------------------------------------------ */

enum { HUB_PAGES = 40000, OUT_LINKS = 9000 };

static struct wb_slice crowd_url(unsigned number, struct wb_buf *text)
{
    wb_buf_clear(text);
    assert_int_equal(
        wb_buf_printf(text,
                      "https://crowd%u.example/a/path/that/makes/urls/long/enough/to/fill/the/sorters/page-%u.html",
                      number % 50, number),
        0);
    return wb_buf_slice(text);
}

static void crowd_md5(unsigned number, unsigned version, uint8_t md5_out[WB_MD5_BYTES])
{
    uint64_t chance = (uint64_t)version << 32 | number, a = chance_next(&chance), b = chance_next(&chance);

    memcpy(md5_out, &a, 8);
    memcpy(md5_out + 8, &b, 8);
}

static void add_crowd(struct wb_webdb_writer *writer, unsigned first, unsigned step, unsigned version,
                      const char *anchor)
{
    struct wb_buf text = WB_BUF_INIT;

    for (unsigned i = first; i < HUB_PAGES; i += step) {
        struct wb_webdb_page page = {
            .url = crowd_url(i, &text), .has_content = true, .etag = WB_SLICE_LIT("\"some validator of a page\"")};
        struct wb_webdb_link link = {
            .to = WB_SLICE_LIT("https://hub.example/"), .anchor = wb_slice_str(anchor), .tag = 1};
        crowd_md5(i, version, page.md5);
        memcpy(link.from_md5, page.md5, sizeof link.from_md5);
        worked(wb_webdb_add_page(writer, &page));
        worked(wb_webdb_add_link(writer, &link));
    }
    wb_buf_release(&text);
}

static void add_many_links(struct wb_webdb_writer *writer, const uint8_t md5[WB_MD5_BYTES])
{
    struct wb_buf text = WB_BUF_INIT;

    for (unsigned i = 0; i < OUT_LINKS; i++) {
        struct wb_webdb_link link = {.to = crowd_url(OUT_LINKS - i, &text),
                                     .anchor = wb_slice_str(i % 2 ? "odd" : "even")};
        memcpy(link.from_md5, md5, sizeof link.from_md5);
        worked(wb_webdb_add_link(writer, &link));
    }
    wb_buf_release(&text);
}

/* Writes to the journal that every step-th page from first on has expired. */
static void expunge_crowd(const char *dir, unsigned first, unsigned step)
{
    struct wb_buf text = WB_BUF_INIT;
    struct wb_journal_writer *log = NULL;
    struct wb_edit_place place;

    worked(wb_journal_writer_open(dir, 0, &log));
    for (unsigned i = first; i < HUB_PAGES; i += step) {
        struct wb_edit edit = {.kind = WB_EDIT_EXPUNGE, .time_ms = 1767225600000, .count = WB_EXPUNGE_EXPIRED,
                               .text = crowd_url(i, &text)};
        worked(wb_journal_writer_append(log, &edit, &place));
    }
    worked(wb_journal_writer_flush(log));
    worked(wb_journal_writer_finish(log));
    wb_journal_writer_close(log);
    wb_buf_release(&text);
}

struct crowd {
    uint64_t links, old, renewed;
};

/* The links to the hub come in the order of their sources, each once. */
static struct crowd count_crowd(const char *dir)
{
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_links *links = NULL;
    struct wb_webdb_link link;
    struct wb_webdb_page page;
    struct crowd crowd = {0, 0, 0};
    uint8_t last[WB_MD5_BYTES] = {0};

    worked(wb_webdb_open(dir, &webdb));
    worked(wb_webdb_links_to(webdb, WB_SLICE_LIT("http://hub.example"), &links));
    while (worked(wb_webdb_links_next(links, &link)) > 0) {
        assert_true(crowd.links == 0 || memcmp(last, link.from_md5, sizeof last) < 0);
        memcpy(last, link.from_md5, sizeof last);
        crowd.links++;
        crowd.old += wb_slice_equal(link.anchor, WB_SLICE_LIT("old"));
        crowd.renewed += wb_slice_equal(link.anchor, WB_SLICE_LIT("renewed"));
        bool exists;
        assert_int_equal(wb_webdb_page_exists(webdb, link.from_md5, &exists), 0);
        assert_true(exists);
    }
    wb_webdb_links_close(links);
    assert_int_equal(wb_webdb_get_page(webdb, WB_SLICE_LIT("https://hub.example/"), &page), 0);
    assert_int_equal(page.inlinks, crowd.links);
    wb_webdb_close(webdb);
    return crowd;
}

static unsigned count_links_from(const char *dir, const uint8_t md5[WB_MD5_BYTES])
{
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_links *links = NULL;
    struct wb_webdb_link link;
    unsigned count = 0;

    worked(wb_webdb_open(dir, &webdb));
    worked(wb_webdb_links_from(webdb, md5, &links));
    while (worked(wb_webdb_links_next(links, &link)) > 0)
        count++;
    wb_webdb_links_close(links);
    wb_webdb_close(webdb);
    return count;
}

static void test_long_lists(void **state)
{
    const char *dir = new_dir();
    struct wb_webdb_options small = {.memory_bytes = 1, .threads = 2};
    struct wb_webdb_writer *writer = NULL;
    struct wb_webdb_page hub = {.url = WB_SLICE_LIT("https://hub.example/"), .has_content = true};
    struct wb_webdb_merge merge;
    struct crowd crowd;

    (void)state;
    crowd_md5(0, 9, hub.md5);
    worked(wb_webdb_writer_open(dir, &small, &writer));
    add_crowd(writer, 0, 1, 0, "old");
    worked(wb_webdb_add_page(writer, &hub));
    add_many_links(writer, hub.md5);
    worked(wb_webdb_writer_close(writer, &merge));
    assert_int_equal(merge.links_added, HUB_PAGES + OUT_LINKS);
    crowd = count_crowd(dir);
    assert_int_equal(crowd.links, HUB_PAGES);
    assert_int_equal(crowd.old, HUB_PAGES);
    assert_int_equal(count_links_from(dir, hub.md5), OUT_LINKS);
    check_clean(dir);

    /* A third of the pages gets another content, a third is removed, and in the rest some links get other anchors. */
    worked(wb_webdb_writer_open(dir, &small, &writer));
    add_crowd(writer, 0, 3, 1, "new");
    expunge_crowd(dir, 1, 3);
    worked(wb_webdb_add_journal(writer, NULL, NULL));
    add_crowd(writer, 2, 6, 0, "renewed");
    worked(wb_webdb_writer_close(writer, &merge));
    crowd = count_crowd(dir);
    assert_int_equal(crowd.links, HUB_PAGES - (HUB_PAGES + 1) / 3);
    assert_int_equal(crowd.renewed, (HUB_PAGES + 3) / 6);
    assert_int_equal(crowd.old, HUB_PAGES / 3 - (HUB_PAGES + 3) / 6);
    assert_int_equal(merge.links_deleted, (HUB_PAGES + 2) / 3 + (HUB_PAGES + 1) / 3);
    assert_int_equal(count_links_from(dir, hub.md5), OUT_LINKS);
    check_clean(dir);
}

static int begin(void **state)
{
    seed = test_seed();
    twin_init();
    return make_root(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_bad_urls),
        cmocka_unit_test(test_traces),
        cmocka_unit_test(test_long_lists),
    };

    return cmocka_run_group_tests(tests, begin, remove_root);
}
