/* test_import.c - an import through the door of ingest: what the sink is told, what is counted, what is stored. */
#include "place/share.h"
#include "base/error.h"
#include "ingest/ingest.h"
#include "ingest_support.h"
#include "store/store.h"

#include <sys/stat.h>

#define WARC(uri, body, length)                                                                                        \
    "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: " uri "\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n"               \
    "Content-Type: application/http; msgtype=response\r\nContent-Length: " length "\r\n\r\n"                           \
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" body "\r\n\r\n"

/* What the sink was told. */
struct heard {
    uint64_t errors, commits, pages;
    char file[128], message[256];
    uint64_t offset;
    int answer; /* of the callbacks */
};

static int hear_error(void *context, const struct wb_ingest_error *error)
{
    struct heard *heard = context;

    heard->errors++;
    heard->offset = error->offset;
    snprintf(heard->file, sizeof heard->file, "%s", error->file);
    snprintf(heard->message, sizeof heard->message, "%s", error->message);
    return heard->answer;
}

static int hear_commit(void *context, uint64_t pages)
{
    struct heard *heard = context;

    heard->commits++;
    assert_true(pages >= heard->pages);
    heard->pages = pages;
    return heard->answer;
}

static int run(const struct wb_import_options *options, struct heard *heard, struct wb_import *import_out)
{
    struct wb_ingest_sink sink = {.context = heard, .error = hear_error, .commit = hear_commit};

    return wb_import(options, &sink, import_out);
}

static uint64_t stored_pages(void)
{
    struct wb_store *store;
    struct wb_store_stat stat;

    assert_int_equal(wb_store_open(repo, WB_STORE_READ, &store), 0);
    assert_int_equal(wb_store_stat(store, &stat), 0);
    wb_store_close(store);
    return stat.pages;
}

static void test_archives(void **state)
{
    const char *files[] = {test_path("a.warc"), test_path("missing.warc")};
    struct wb_import_options options = {.dir = repo, .files = files, .file_count = 2, .body_max = 1000};
    struct heard heard = {.errors = 0};
    struct wb_import import;

    (void)state;
    put("a.warc", WARC("http://h.example/", "<p>x", "48") WARC("http://h.example/b", "<p>y", "48"));
    assert_int_equal(run(&options, &heard, &import), 0);
    assert_int_equal(import.records, 2);
    assert_int_equal(import.pages, 2);
    assert_int_equal(import.files, 1);
    assert_int_equal(import.unreadable, 1);
    assert_int_equal(heard.pages, 2);
    assert_true(heard.commits >= 1);
    assert_int_equal(heard.errors, 1);
    assert_non_null(strstr(heard.message, "missing.warc"));
    assert_int_equal(stored_pages(), 2);
    /* The same once more changes nothing. */
    options.file_count = 1;
    heard = (struct heard){.errors = 0};
    assert_int_equal(run(&options, &heard, &import), 0);
    assert_int_equal(import.pages, 0);
    assert_int_equal(import.older, 2);
    assert_int_equal(import.unreadable, 0);
}

static void test_a_damaged_record(void **state)
{
    const char *files[] = {test_path("d.warc")};
    struct wb_import_options options = {.dir = repo, .files = files, .file_count = 1, .body_max = 1000};
    struct heard heard = {.errors = 0};
    struct wb_import import;
    char text[1000];

    (void)state;
    snprintf(text, sizeof text, "%s%s", WARC("http://h.example/", "<p>x", "48"), WARC("nonsense", "<p>y", "48"));
    put("d.warc", text);
    assert_int_equal(run(&options, &heard, &import), 0);
    assert_int_equal(import.pages, 1);
    assert_int_equal(import.errors, 1);
    assert_int_equal(heard.errors, 1);
    assert_string_equal(heard.file, files[0]);
    assert_int_equal(heard.offset, strlen(WARC("http://h.example/", "<p>x", "48")));
}

static void test_a_tree(void **state)
{
    struct wb_buf url = WB_BUF_INIT;
    struct wb_import_options options = {.dir = repo, .tree = test_path("tree"), .body_max = 1000, .no_journal = true};
    struct heard heard = {.errors = 0};
    struct wb_import import;

    (void)state;
    assert_int_equal(mkdir(test_path("tree"), 0700), 0);
    assert_int_equal(mkdir(test_path("tree/sub"), 0700), 0);
    put("tree/index.html", "<p>root");
    put("tree/sub/a b.txt", "words");
    assert_int_equal(wb_import_tree_url("http://h.example/docs", &url), 0);
    assert_true(wb_slice_equal(wb_buf_slice(&url), WB_SLICE_LIT("http://h.example/docs/")));
    options.tree_url = wb_buf_slice(&url);
    assert_int_equal(run(&options, &heard, &import), 0);
    assert_int_equal(import.pages, 2);
    assert_int_equal(import.files, 2);
    assert_int_equal(stored_pages(), 2);
    options.tree = test_path("tree/index.html");
    assert_int_equal(run(&options, &heard, &import), WB_E_INVALID);
    wb_buf_release(&url);
    assert_int_equal(wb_import_tree_url("http://h.example/?q", &url), WB_E_PROTO);
    assert_int_equal(wb_import_tree_url("nonsense", &url), WB_E_PROTO);
    wb_buf_release(&url);
}

/* Nobody listens any more: the import ends, and what it has read until then is stored. */
static void test_a_sink_that_fails(void **state)
{
    const char *files[] = {test_path("a.warc"), test_path("missing.warc"), test_path("b.warc")};
    struct wb_import_options options = {.dir = repo, .files = files, .file_count = 3, .body_max = 1000};
    struct heard heard = {.answer = WB_E_IO};
    struct wb_import import;

    (void)state;
    put("a.warc", WARC("http://h.example/", "<p>x", "48"));
    put("b.warc", WARC("http://h.example/b", "<p>y", "48"));
    assert_int_equal(run(&options, &heard, &import), WB_E_IO);
    assert_int_equal(heard.errors, 1);
    assert_int_equal(heard.commits, 0);
    assert_int_equal(import.pages, 1);
    assert_int_equal(stored_pages(), 1);
}

/* ---- nodes that go away ------------------------------------------------------------------------------------------ */

enum { ON_FIRST = 10, ON_OTHERS = 200, NODES_PAGES = ON_FIRST + 2 * ON_OTHERS };

/* Takes node 2 away in the first attempt, and node 3 in the second one, always with pages that are not committed. */
struct robber {
    struct heard heard;
    char nodes[2][256], away[2][256];
    unsigned calls, taken;
    bool spoiled; /* a commit came at the wrong moment, because the machine is slow: try again */
};

static int hear_robbed(void *context, const struct wb_ingest_error *error)
{
    struct robber *r = context;

    r->calls = 0;
    return hear_error(&r->heard, error);
}

static int hear_robbed_commit(void *context, uint64_t pages)
{
    struct robber *r = context;

    return hear_commit(&r->heard, pages);
}

static void rob(void *context, const struct wb_ingest_progress *progress)
{
    struct robber *r = context;
    bool first = r->taken == 0 && ++r->calls == 100;
    bool second = r->taken == 1 && r->heard.errors == ON_OTHERS && ++r->calls == 20;

    (void)progress;
    if (!first && !second)
        return;
    r->spoiled = r->spoiled || r->heard.pages != (first ? 0 : ON_FIRST);
    assert_int_equal(rename(r->nodes[r->taken], r->away[r->taken]), 0);
    r->taken++;
    r->calls = 0;
}

/* Pages of node 1, then of node 2, then of node 3. Which node has a page follows from the first bits of its id. */
static void put_pages_by_node(void)
{
    static char text[NODES_PAGES * 400];
    char key[64];
    size_t len = 0;

    for (unsigned node = 1; node <= 3; node++) {
        struct wb_cells cells = wb_share_of_new(node - 1, 3);
        for (unsigned n = 0, count = 0; count < (node == 1 ? ON_FIRST : ON_OTHERS); n++) {
            snprintf(key, sizeof key, "h.example/%06u", n);
            if (!wb_cells_has(&cells, wb_cell_of(wb_pageid_of_key(wb_slice_str(key)).hi)))
                continue;
            count++;
            len += (size_t)snprintf(text + len, sizeof text - len, WARC("http://%s", "<p>x", "48"), key);
        }
    }
    put("nodes.warc", text);
}

static int import_robbed(unsigned round, struct robber *r, struct wb_import *import_out)
{
    const char *files[] = {test_path("nodes.warc")};
    char name[32], dir[200];
    struct wb_store_options made = {.nodes = {NULL, 3}};
    struct wb_ingest_sink sink = {.context = r, .error = hear_robbed, .commit = hear_robbed_commit, .progress = rob};

    snprintf(name, sizeof name, "robbed%u", round);
    snprintf(dir, sizeof dir, "%s", test_path(name));
    *r = (struct robber){.taken = 0};
    for (unsigned i = 0; i < 2; i++) {
        snprintf(r->nodes[i], sizeof r->nodes[i], "%s/node%u", dir, i + 2);
        snprintf(r->away[i], sizeof r->away[i], "%s/away%u", dir, i + 2);
    }
    assert_int_equal(wb_store_create(dir, &made), 0);
    struct wb_import_options options = {
        .dir = dir, .files = files, .file_count = 1, .body_max = 1000, .no_journal = true};
    int err = wb_import(&options, &sink, import_out);
    if (r->spoiled)
        return err;
    assert_int_equal(err, WB_E_DOWN);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(rename(r->away[i], r->nodes[i]), 0);
    char message[WB_ERROR_MESSAGE_MAX];
    snprintf(message, sizeof message, "%s", wb_error_message());
    struct wb_import again;
    sink = (struct wb_ingest_sink){.context = NULL};
    assert_int_equal(wb_import(&options, &sink, &again), 0);
    assert_int_equal(again.pages, 2 * ON_OTHERS);
    return wb_fail(err, "%s", message);
}

/* If a second node goes away, the import ends: it says what is stored, that stays, and the rest can be imported. */
static void test_two_nodes_that_go_away(void **state)
{
    struct robber r = {.spoiled = true};
    struct wb_import import;

    (void)state;
    put_pages_by_node();
    for (unsigned round = 0; r.spoiled && round < 50; round++)
        (void)import_robbed(round, &r, &import);
    assert_false(r.spoiled);
    assert_int_equal(r.taken, 2);
    assert_int_equal(import.pages, ON_FIRST);
    assert_non_null(strstr(wb_error_message(), "node 3 is down"));
    assert_non_null(strstr(wb_error_message(), "stay: 10."));
    assert_non_null(strstr(wb_error_message(), "once more"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_archives),
        TEST(test_a_damaged_record),
        TEST(test_a_tree),
        TEST(test_a_sink_that_fails),
        TEST(test_two_nodes_that_go_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
