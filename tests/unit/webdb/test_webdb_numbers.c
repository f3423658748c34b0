/*
 * test_webdb_numbers.c - an edition by number: URLs, kinds, ids of pages, and links as pairs of numbers, compared with
 * the arrays that the edition was written from.
 */
#include "../allocfail.h"
#include "../rounds.h"
#include "../smallmemory.h"
#include "webdb_arcs_model.h"
#include "webdb_harms.h"

/* ---- rows and ids ---------------------------------------------------------------------------- */

static void same_row(const struct wb_webdb_page *found, const struct wb_webdb_page *expected)
{
    assert_int_equal(found->number, expected->number);
    assert_true(wb_slice_equal(found->url, expected->url) && wb_slice_equal(found->surt, expected->surt));
    assert_true(found->flags == expected->flags && found->has_content == expected->has_content);
    assert_memory_equal(found->md5, expected->md5, WB_MD5_BYTES);
    assert_true(found->inlinks == expected->inlinks && found->bytes == expected->bytes);
    assert_true(found->last_seen_ms == expected->last_seen_ms && found->status == expected->status);
}

static struct wb_pageid id_of(struct wb_slice text)
{
    struct wb_url url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT;

    assert_int_equal(wb_url_parse(text, NULL, &url), 0);
    assert_int_equal(wb_url_key(&url, &key), 0);
    struct wb_pageid id = wb_pageid_of_key(wb_buf_slice(&key));
    wb_url_release(&url);
    wb_buf_release(&key);
    return id;
}

static void expect_rows(struct wb_webdb *webdb, const struct parts *parts, uint64_t *chance)
{
    struct wb_webdb_page page;
    struct wb_webdb_pages *pages;
    struct wb_pageid id;
    const uint8_t *kinds;
    uint64_t number;
    size_t from = chance_below(chance, parts->page_count + 1);

    assert_int_equal(wb_webdb_urls(webdb, from, &pages), 0);
    for (size_t i = from; i < parts->page_count; i++) {
        assert_int_equal(wb_webdb_pages_next(pages, &page), 1);
        same_row(&page, &parts->pages[i]);
    }
    assert_int_equal(wb_webdb_pages_next(pages, &page), 0);
    wb_webdb_pages_close(pages);
    for (size_t i = 0; i < parts->page_count; i++) {
        assert_int_equal(wb_webdb_number(webdb, parts->pages[i].url, &number), 0);
        assert_int_equal(number, i);
        assert_int_equal(wb_webdb_get_number(webdb, i, &page), 0);
        same_row(&page, &parts->pages[i]);
        assert_int_equal(wb_webdb_page_id(webdb, &page, &id), 0);
        assert_true(wb_pageid_equal(id, id_of(parts->pages[i].url)));
        assert_int_equal(wb_webdb_kinds(webdb, i, 1, &kinds), 0);
        assert_int_equal(kinds[0], parts->kinds[i]);
    }
    assert_int_equal(wb_webdb_kinds(webdb, 0, parts->page_count, &kinds), 0);
    assert_memory_equal(kinds, parts->kinds, parts->page_count);
}

/* All ids of the model, ids that are near one, and random ones; sorted or not. */
static void expect_ids(struct wb_webdb *webdb, const struct parts *parts, uint64_t *chance, bool sorted)
{
    size_t count = 3 * parts->id_count + 10;
    struct wb_pageid *ids = wb_alloc_zero(count, sizeof *ids);
    uint32_t *numbers = wb_alloc_zero(count, sizeof *numbers);

    for (size_t i = 0; i < count; i++) {
        if (i / 3 < parts->id_count)
            ids[i] = wb_pageid_get(parts->ids[i / 3].id);
        else
            ids[i] = (struct wb_pageid){i == count - 1 ? UINT64_MAX : chance_next(chance), chance_next(chance)};
        ids[i].lo += i / 3 < parts->id_count ? i % 3 : 0;
    }
    if (!sorted)
        for (size_t i = count - 1; i > 0; i--) {
            size_t j = chance_below(chance, i + 1);
            struct wb_pageid held = ids[i];
            ids[i] = ids[j];
            ids[j] = held;
        }
    assert_int_equal(wb_webdb_numbers_of_ids(webdb, ids, count, numbers), 0);
    for (size_t i = 0; i < count; i++) {
        struct wb_stored_id key;
        wb_pageid_put(ids[i], key.id);
        uint32_t expected = WB_WEBDB_NO_NUMBER;
        size_t low = 0, high = parts->id_count;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (memcmp(parts->ids[middle].id, key.id, 16) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < parts->id_count && memcmp(parts->ids[low].id, key.id, 16) == 0)
            expected = wb_get32_be(parts->ids[low].page);
        assert_int_equal(numbers[i], expected);
    }
    wb_free(ids);
    wb_free(numbers);
}

static void expect_id_order(struct wb_webdb *webdb, const struct parts *parts)
{
    struct wb_pageid id;
    uint64_t number;

    for (size_t i = 0; i < parts->id_count; i++) {
        assert_int_equal(wb_webdb_id_at(webdb, i, &id, &number), 0);
        assert_true(wb_pageid_equal(id, wb_pageid_get(parts->ids[i].id)));
        assert_int_equal(number, wb_get32_be(parts->ids[i].page));
    }
    assert_int_equal(wb_webdb_id_at(webdb, parts->id_count, &id, &number), WB_E_NOTFOUND);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_model(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (size_t i = 0; i < PARTS_SIZES; i++) {
        struct parts parts;
        struct wb_webdb *webdb;
        struct wb_webdb_count count;
        const char *dir = new_dir();
        make_parts_of_size(&chance, i, &parts);
        write_parts(dir, 7, &parts);
        assert_int_equal(wb_webdb_open_edition(dir, 7, &webdb), 0);
        wb_webdb_count(webdb, &count);
        assert_true(count.urls == parts.page_count && count.fetched == parts.id_count && count.edition == 7);
        expect_rows(webdb, &parts, &chance);
        expect_ids(webdb, &parts, &chance, true);
        expect_ids(webdb, &parts, &chance, false);
        expect_id_order(webdb, &parts);
        expect_arcs(webdb, &parts, &chance);
        wb_webdb_close(webdb);
        free_parts(&parts);
    }
}

/* So many pages link to one that they are sorted as bits; and more arcs than fit into the memory of a sorter. */
static void test_many(void **state)
{
    uint64_t chance = test_seed();
    struct parts parts;
    struct wb_webdb *webdb;
    struct wb_webdb_arcs *walk;
    const char *dir = new_dir();
    struct wb_webdb_arcs_options small = {.memory_bytes = 1};

    (void)state;
    make_parts(&chance, 150000, 100, 900000, &parts);
    write_parts(dir, 1, &parts);
    assert_int_equal(wb_webdb_open(dir, &webdb), 0);
    struct arcs arcs = make_arcs(&parts);
    for (enum wb_webdb_direction direction = WB_ARCS_OUT; direction <= WB_ARCS_IN; direction++) {
        sort_arcs(&arcs, direction);
        assert_int_equal(wb_webdb_arcs(webdb, direction, &small, &walk), 0);
        expect_walk(walk, &arcs, 0, arcs.count, direction, false);
    }
    uint32_t most = 0;
    for (size_t i = 0; i < parts.page_count; i++)
        most = parts.degrees[i] > most ? parts.degrees[i] : most;
    assert_true(most > 70000);
    wb_free(arcs.items);
    wb_webdb_close(webdb);
    free_parts(&parts);
}

enum { LONG_LINKS = 9000, ANCHOR_BYTES = 255 };

static void long_anchor(unsigned number, char anchor_out[ANCHOR_BYTES])
{
    uint64_t chance = number;

    for (size_t i = 0; i < ANCHOR_BYTES; i++)
        anchor_out[i] = (char)('a' + chance_below(&chance, 26));
}

/* A page with as many and as long anchors as there can be; and another one with the same content. */
static void test_long_anchors(void **state)
{
    const char *dir = new_dir();
    struct wb_webdb_writer *writer;
    struct wb_webdb_page page = {.url = WB_SLICE_LIT("http://a.example/"), .has_content = true, .md5 = {1}};
    struct wb_webdb_arcs_options options = {.memory_bytes = 1, .texts = true};
    struct wb_webdb *webdb;
    struct wb_webdb_arcs *walk;
    struct wb_webdb_portion portion;
    char url[64], anchor[ANCHOR_BYTES];
    size_t seen = 0;
    int more;

    (void)state;
    assert_int_equal(wb_webdb_writer_open(dir, NULL, &writer), 0);
    assert_int_equal(wb_webdb_add_page(writer, &page), 0);
    page.url = WB_SLICE_LIT("http://b.example/");
    assert_int_equal(wb_webdb_add_page(writer, &page), 0);
    for (unsigned i = 0; i < LONG_LINKS; i++) {
        struct wb_webdb_link link = {.from_md5 = {1}, .anchor = wb_slice(anchor, sizeof anchor), .tag = 1};
        snprintf(url, sizeof url, "http://c.example/%04u", i);
        long_anchor(i, anchor);
        link.to = wb_slice_str(url);
        assert_int_equal(wb_webdb_add_link(writer, &link), 0);
    }
    assert_int_equal(wb_webdb_writer_close(writer, NULL), 0);
    assert_int_equal(wb_webdb_open(dir, &webdb), 0);
    assert_int_equal(wb_webdb_arcs(webdb, WB_ARCS_OUT, &options, &walk), 0);
    while ((more = wb_webdb_arcs_next(walk, &portion)) == 1)
        for (size_t i = 0; i < portion.count; i++, seen++) {
            assert_int_equal(portion.number, seen / LONG_LINKS);
            assert_int_equal(portion.ends[i], 2 + seen % LONG_LINKS);
            long_anchor((unsigned)(seen % LONG_LINKS), anchor);
            assert_true(wb_slice_equal(portion.texts[i].anchor, wb_slice(anchor, sizeof anchor)));
        }
    assert_int_equal(more, 0);
    assert_int_equal(seen, 2 * LONG_LINKS);
    wb_webdb_arcs_close(walk);
    wb_webdb_close(webdb);
}

static bool never(void *context, const char *step, uint64_t done, uint64_t total)
{
    (void)step;
    (void)done;
    (void)total;
    ++*(unsigned *)context;
    return false;
}

static void test_unknown(void **state)
{
    const char *dir = new_dir();
    uint64_t chance = 1, number;
    struct parts parts;
    struct wb_webdb *webdb;
    struct wb_webdb_page page;
    struct wb_webdb_pages *pages;
    struct wb_webdb_arcs *walk;
    const uint8_t *kinds;
    unsigned asked = 0;
    struct wb_webdb_arcs_options stop = {.progress = never, .progress_context = &asked};

    (void)state;
    make_parts(&chance, 50, 4, 200, &parts);
    write_parts(dir, 1, &parts);
    assert_int_equal(wb_webdb_open_edition(dir, 2, &webdb), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), "edition 2"));
    assert_int_equal(wb_webdb_open_edition(dir, 0, &webdb), WB_E_INVALID);
    write_parts(dir, 3, &parts);
    char *edition = wb_edition_path(dir, 3), *ids = wb_path_join(edition, WB_IDS_FILE);
    assert_int_equal(wb_path_unlink(ids), 0);
    assert_int_equal(wb_webdb_open_edition(dir, 3, &webdb), WB_E_CORRUPT);
    assert_non_null(strstr(wb_error_message(), WB_IDS_FILE));
    wb_free(ids);
    wb_free(edition);
    assert_int_equal(wb_webdb_open_edition(dir, 1, &webdb), 0);
    assert_int_equal(wb_webdb_number(webdb, WB_SLICE_LIT("http://nobody.example/"), &number), WB_E_NOTFOUND);
    assert_int_equal(wb_webdb_number(webdb, WB_SLICE_LIT("no url"), &number), WB_E_INVALID);
    assert_int_equal(wb_webdb_get_number(webdb, 50, &page), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), "no number 50"));
    assert_int_equal(wb_webdb_get_number(webdb, UINT64_MAX, &page), WB_E_NOTFOUND);
    assert_int_equal(wb_webdb_kinds(webdb, 50, 1, &kinds), WB_E_NOTFOUND);
    assert_int_equal(wb_webdb_kinds(webdb, 1, UINT64_MAX, &kinds), WB_E_NOTFOUND);
    assert_int_equal(wb_webdb_arcs_of(webdb, 50, WB_ARCS_IN, NULL, &walk), WB_E_NOTFOUND);
    assert_null(walk);
    assert_int_equal(wb_webdb_urls(webdb, UINT64_MAX, &pages), 0);
    assert_int_equal(wb_webdb_pages_next(pages, &page), 0);
    wb_webdb_pages_close(pages);
    assert_int_equal(wb_webdb_arcs(webdb, WB_ARCS_OUT, &stop, &walk), WB_E_STOPPED);
    assert_int_equal(asked, 1);
    wb_webdb_close(webdb);
    free_parts(&parts);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static int read_walk(struct wb_webdb_arcs *walk, uint64_t *sum)
{
    struct wb_webdb_portion portion;
    int more;

    while ((more = wb_webdb_arcs_next(walk, &portion)) == 1)
        for (size_t i = 0; i < portion.count; i++) {
            *sum += portion.number * 31 + portion.ends[i];
            if (portion.texts)
                *sum += portion.texts[i].anchor.len + portion.texts[i].tag;
        }
    if (more < 0) /* the walk is over */
        assert_int_equal(wb_webdb_arcs_next(walk, &portion), more);
    wb_webdb_arcs_close(walk);
    return more;
}

/* Reads everything by number. *sum_out depends on all of it. */
static int read_numbers(const char *dir, uint64_t *sum_out)
{
    struct wb_webdb *webdb;
    struct wb_webdb_arcs *walk;
    struct wb_webdb_count count;
    struct wb_pageid id;
    const uint8_t *kinds;
    uint64_t number;
    uint32_t found;
    int err = wb_webdb_open(dir, &webdb);

    *sum_out = 0;
    if (err < 0)
        return err;
    wb_webdb_count(webdb, &count);
    for (int round = 0; err == 0 && round < 4; round++) {
        struct wb_webdb_arcs_options options = {.memory_bytes = SMALL_MEMORY, .texts = round & 2};
        err = wb_webdb_arcs(webdb, round & 1 ? WB_ARCS_IN : WB_ARCS_OUT, &options, &walk);
        if (err == 0)
            err = read_walk(walk, sum_out);
    }
    for (uint64_t i = 0; err == 0 && i < count.urls; i++) {
        err = wb_webdb_arcs_of(webdb, i, i & 1 ? WB_ARCS_IN : WB_ARCS_OUT, NULL, &walk);
        if (err == 0)
            err = read_walk(walk, sum_out);
        if (err == 0)
            err = wb_webdb_kinds(webdb, i, 1, &kinds);
        *sum_out += err == 0 ? kinds[0] : 0;
    }
    for (uint64_t i = 0; err == 0 && i < count.fetched; i++) {
        err = wb_webdb_id_at(webdb, i, &id, &number);
        if (err == 0)
            err = wb_webdb_numbers_of_ids(webdb, &id, 1, &found);
        *sum_out += id.lo + number + found;
    }
    wb_webdb_close(webdb);
    return err;
}

static void write_sample(const char *dir, struct parts *parts)
{
    uint64_t chance = 12345;

    make_parts(&chance, 60, 5, 400, parts);
    parts->piece_items = 7;
    write_parts(dir, 1, parts);
}

/* Changed bytes: the right numbers, or an error about damage. */
static void test_damage(void **state)
{
    static const char *const names[] = {WB_PAGES_FILE,    WB_CONTENTS_FILE, WB_KINDS_FILE,
                                        WB_OUTLINKS_FILE, WB_INLINKS_FILE,  WB_IDS_FILE};
    const char *dir = new_dir();
    struct parts parts;
    uint64_t chance = test_seed(), right, sum;
    unsigned noticed = 0;
    char *edition = wb_edition_path(dir, 1);

    (void)state;
    write_sample(dir, &parts);
    assert_int_equal(read_numbers(dir, &right), 0);
    for (size_t i = 0; i < COUNT(names); i++) {
        char *path = wb_path_join(edition, names[i]);
        struct wb_buf whole = WB_BUF_INIT;
        assert_int_equal(wb_path_read(path, 1 << 24, &whole), 0);
        for (int n = 0; n < 60; n++) {
            uint64_t at = chance_below(&chance, whole.len);
            uint8_t mask = (uint8_t)(1u << chance_below(&chance, 8));
            change_byte(path, at, mask);
            int err = read_numbers(dir, &sum);
            assert_true(err == WB_E_CORRUPT || err == WB_E_NEWER || (err == 0 && sum == right));
            noticed += err < 0;
            change_byte(path, at, mask);
        }
        wb_buf_release(&whole);
        wb_free(path);
    }
    assert_true(noticed > 200);
    wb_free(edition);
    free_parts(&parts);
}

/* Files with correct checksums that contradict each other: numbers or an error about damage, but no crash. */
static void test_contradictions(void **state)
{
    unsigned refused = 0;
    uint64_t sum;

    (void)state;
    for (size_t i = 0; i < COUNT(harms); i++) {
        uint64_t chance = 12345;
        struct parts parts;
        const char *dir = new_dir();
        make_parts(&chance, 60, 5, 400, &parts);
        parts.piece_items = 7;
        harms[i].harm(&parts);
        write_parts(dir, 1, &parts);
        int err = read_numbers(dir, &sum);
        if (err != 0 && err != WB_E_CORRUPT && err != WB_E_NOTFOUND)
            fail_msg("%s: %d %s", harms[i].name, err, wb_error_message());
        refused += err == WB_E_CORRUPT;
        if (strstr(harms[i].name, "beyond the last") || strstr(harms[i].name, "copy"))
            assert_int_equal(err, WB_E_CORRUPT);
        free_parts(&parts);
    }
    assert_true(refused > 10);
}

/* If the disk or memory fails, there is an error and nothing leaks; otherwise all is there. */
static void test_faults(void **state)
{
    const char *dir = new_dir();
    struct parts parts;
    uint64_t right, sum, chance = test_seed();

    (void)state;
    write_sample(dir, &parts);
    assert_int_equal(read_numbers(dir, &right), 0);
    for (uint64_t nth = 1;; nth += (1 + nth / 20) * test_stride(&chance)) {
        wb_fault_arm(WB_FAULT_ANY, nth, EIO);
        int err = read_numbers(dir, &sum);
        bool struck = wb_fault_struck();
        wb_fault_disarm();
        assert_int_equal(err < 0, struck);
        if (!struck)
            break;
    }
    for (size_t nth = 0;; nth += (1 + nth / 20) * test_stride(&chance)) {
        alloc_fail_nth(nth);
        int err = read_numbers(dir, &sum);
        bool failed = alloc_has_failed();
        wb_alloc_should_fail = NULL;
        assert_int_equal(err, failed ? WB_E_NOMEM : 0);
        assert_true(failed || sum == right);
        if (!failed)
            break;
    }
    free_parts(&parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),        cmocka_unit_test(test_many),           cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_damage),       cmocka_unit_test(test_contradictions), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_long_anchors),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
