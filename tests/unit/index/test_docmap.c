/*
 * test_docmap.c - docids and numbers against counting bits one by one, for all sizes around those of words and blocks;
 * and the table of sites.
 */
#include "index_support.h"
#include "../testroot.h"
#include "index/docmap.h"
#include "index/sitetable.h"
#include "url/url.h"

static void set_bit(uint64_t *bits, uint64_t i)
{
    bits[i / 64] |= UINT64_C(1) << i % 64;
}

/* Writes and opens a map, and compares every number and every docid. */
static void check_map(const uint64_t *bits, uint64_t urls)
{
    const char *path = test_path("docids");
    struct wb_docmap map;
    uint64_t pages = 0, page = 0, other;

    ok(wb_docmap_write(path, bits, urls));
    ok(wb_docmap_open(path, &map));
    for (uint64_t i = 0; i < urls; i++)
        pages += bits[i / 64] >> i % 64 & 1;
    assert_int_equal(map.urls, urls);
    assert_int_equal(map.pages, pages);
    other = pages;
    for (uint64_t i = 0; i < urls; i++) {
        bool is_page = bits[i / 64] >> i % 64 & 1;
        uint32_t docid = (uint32_t)(is_page ? page++ : other++);
        assert_int_equal(wb_docmap_is_page(&map, i), is_page);
        assert_int_equal(wb_docmap_docid(&map, i), docid);
        assert_int_equal(wb_docmap_number(&map, docid), i);
    }
    wb_docmap_close(&map);
}

static void test_sizes(void **state)
{
    static const uint64_t around[] = {0, 64, 128, 448, 512, 576, 1024, 4096};
    uint64_t chance = test_seed(), bits[80];

    (void)state;
    for (size_t i = 0; i < COUNT(around); i++)
        for (uint64_t urls = around[i] < 3 ? 0 : around[i] - 3; urls < around[i] + 4; urls++)
            for (unsigned one_in = 1; one_in <= 600; one_in = one_in * 5 + 1) {
                memset(bits, 0, sizeof bits);
                for (uint64_t j = 0; j < urls; j++)
                    if (chance_one_in(&chance, one_in))
                        set_bit(bits, j);
                check_map(bits, urls);
            }
}

static void test_runs_of_pages(void **state)
{
    uint64_t chance = test_seed(), *bits = wb_alloc_zero(400, sizeof *bits);

    (void)state;
    for (int round = 0; round < 20; round++) {
        uint64_t urls = 10000 + chance_below(&chance, 15000);
        memset(bits, 0, 400 * sizeof *bits);
        for (uint64_t i = 0; i < urls;) {
            bool page = chance_one_in(&chance, 2);
            for (uint64_t end = i + chance_below(&chance, 1500); i < end && i < urls; i++)
                if (page)
                    set_bit(bits, i);
        }
        check_map(bits, urls);
    }
    wb_free(bits);
}

/* Whatever byte is another one: the map is refused, with its name. */
static void test_damaged_map(void **state)
{
    const char *path = test_path("damaged");
    uint64_t chance = test_seed(), bits[20] = {5, UINT64_MAX, 0, 77};
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_docmap map;

    (void)state;
    ok(wb_docmap_write(path, bits, 1200));
    ok(wb_path_read(path, 1 << 20, &bytes));
    for (size_t i = 0; i < bytes.len; i += 1 + chance_below(&chance, 5)) {
        char before = bytes.ptr[i];
        bytes.ptr[i] = (char)(before ^ (char)(1 + chance_below(&chance, 255)));
        ok(wb_path_replace(path, wb_buf_slice(&bytes)));
        int err = wb_docmap_open(path, &map);
        if (err != WB_E_CORRUPT && err != WB_E_NEWER)
            fail_msg("byte %zu: %d", i, err);
        assert_non_null(strstr(wb_error_message(), path));
        bytes.ptr[i] = before;
    }
    wb_buf_release(&bytes);
}

/* ---- sites ----------------------------------------------------------------------------------------- */

struct site_url {
    const char *surt;
    bool page;
};

/* In the order of SURTs. */
static const struct site_url site_urls[] = {
    {"192.0.2.7)/", true},        {"192.0.2.7:80)/", false},        {"[2001:db8::1])/", true},
    {"com,example)/", true},      {"com,example)/a", false},        {"com,example)/b", true},
    {"com,example,www)/", false}, {"com,example,www:8080)/", true}, {"com,exampleother)/", true},
    {"com,examples)/", false},    {"org,example)/x", true},
};

struct ranges {
    struct wb_index_range items[16];
    size_t count;
};

static int note_range(void *context, struct wb_index_range range)
{
    struct ranges *ranges = context;

    assert_true(ranges->count < COUNT(ranges->items));
    ranges->items[ranges->count++] = range;
    return 0;
}

/* Whether a site is meant by a host: itself, or a subdomain; a host with a port means one site. */
static bool meant(const char *surt, const char *labels)
{
    size_t len = strlen(labels);
    char next = strncmp(surt, labels, len) == 0 ? surt[len] : 0;

    return strchr(labels, ':') ? next == ')' : next == ')' || next == ',' || next == ':';
}

static void check_host(struct wb_index *index, const char *host, const char *labels)
{
    uint32_t docids[COUNT(site_urls)], page = 0, other = 0, at = 0;
    bool wanted[COUNT(site_urls)] = {false}, found[COUNT(site_urls)] = {false};
    struct ranges ranges = {.count = 0};

    for (size_t i = 0; i < COUNT(site_urls); i++)
        other += site_urls[i].page;
    for (size_t i = 0; i < COUNT(site_urls); i++) {
        docids[i] = site_urls[i].page ? page++ : other++;
        wanted[docids[i]] = meant(site_urls[i].surt, labels);
    }
    ok(wb_index_sites(index, wb_slice_str(host), note_range, &ranges));
    for (size_t i = 0; i < ranges.count; i++) {
        assert_true(ranges.items[i].first >= at && ranges.items[i].first < ranges.items[i].end);
        for (at = ranges.items[i].first; at < ranges.items[i].end; at++)
            found[at] = true;
    }
    assert_memory_equal(wanted, found, sizeof wanted);
}

static void test_sites(void **state)
{
    const char *path = test_path("sites");
    struct wb_sitetable sites = {.sites = WB_VEC_INIT};
    struct wb_index index = {.magic = WB_INDEX_MAGIC, .path = (char[]){"here"}};
    uint32_t site, last = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(site_urls); i++) {
        ok(wb_sitetable_add(&sites, wb_slice_str(site_urls[i].surt), site_urls[i].page, &site));
        assert_true(site == last || site == last + 1);
        last = site;
        index.docmap.pages += site_urls[i].page;
        index.docmap.urls++;
    }
    assert_int_equal(last, 8);
    ok(wb_sitetable_write(&sites, path, (uint32_t)index.docmap.pages));
    wb_sitetable_release(&sites);
    ok(wb_table_open(path, WB_SITES_TABLE_KIND, &index.sites));
    ok(wb_cursor_open(index.sites, &index.site_cursor));
    check_host(&index, "example.com", "com,example");
    check_host(&index, "192.0.2.7", "192.0.2.7");
    check_host(&index, "192.0.2", "nothing");
    check_host(&index, "[2001:DB8::1]", "[2001:db8::1]");
    check_host(&index, "example.com/", "nothing");
    check_host(&index, "EXAMPLE.com.", "com,example");
    check_host(&index, "www.example.com", "com,example,www");
    check_host(&index, "www.example.com:8080", "com,example,www:8080");
    check_host(&index, "com", "com");
    check_host(&index, "exampl.com", "com,exampl");
    check_host(&index, "examples.com", "com,examples");
    check_host(&index, "net", "net");
    index.docmap.urls--; /* now the rows name more URLs than there are */
    assert_int_equal(wb_index_sites(&index, WB_SLICE_LIT("com"), note_range, &(struct ranges){.count = 0}),
                     WB_E_CORRUPT);
    wb_cursor_close(index.site_cursor);
    wb_table_close(index.sites);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_runs_of_pages),
        cmocka_unit_test(test_damaged_map),
        cmocka_unit_test(test_sites),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
