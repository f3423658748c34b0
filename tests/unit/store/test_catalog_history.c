/*
 * test_catalog_history.c - the catalog's tables of the past: history, snapshots, holders, revisits and
 * waiting. Rows are written, read and walked over; those that are wrong are damage.
 */
#include "catalog_support.h"
#include "base/bytes.h"
#include "base/hash.h"

enum { ROOM = 959 }; /* bytes of a history that fit in one row */

static void put_raw(enum wb_catalog_table table, struct wb_slice key, struct wb_slice value)
{
    must_ok(wb_tree_put(wb_catalog_tree(catalog), table, key, value));
}

static void delete_raw(enum wb_catalog_table table, struct wb_slice key)
{
    must_ok(wb_tree_delete(wb_catalog_tree(catalog), table, key));
}

/* Expects damage, and that the message names the file and the table. */
static void is_corrupt(int err, const char *table)
{
    assert_int_equal(err, WB_E_CORRUPT);
    assert_non_null(strstr(wb_error_message(), wb_catalog_path(catalog)));
    assert_non_null(strstr(wb_error_message(), table));
}

/* ---- history ---------------------------------------------------------------------------------------------- */

static struct wb_slice history_key(struct wb_pageid id, unsigned part, char key[WB_PAGEID_BYTES + 2])
{
    wb_pageid_put(id, key);
    key[WB_PAGEID_BYTES] = (char)(part >> 8);
    key[WB_PAGEID_BYTES + 1] = (char)part;
    return wb_slice(key, WB_PAGEID_BYTES + 2);
}

/* Fills a buffer with bytes that depend on their number and on `kind`. */
static struct wb_slice history_bytes(struct wb_buf *buf, size_t len, unsigned kind)
{
    wb_buf_clear(buf);
    for (size_t i = 0; i < len; i++)
        must_ok(wb_buf_append_char(buf, (char)(i * 7 + i / 256 + kind)));
    return wb_buf_slice(buf);
}

static void check_history(struct wb_pageid id, struct wb_slice expected)
{
    struct wb_buf read = WB_BUF_INIT;

    must_ok(wb_catalog_history_get(&txn, id, &read));
    assert_true(wb_slice_equal(wb_buf_slice(&read), expected));
    wb_buf_release(&read);
}

static void test_history_lengths(void **state)
{
    static const size_t lengths[] = {
        1,         2,    ROOM - 1, ROOM,   ROOM + 1, 2 * ROOM - 1, 2 * ROOM, 2 * ROOM + 1, 300 * ROOM,
        17 * ROOM, ROOM, 5,        100000, 1};
    struct wb_pageid id = {3, 4}, before = {3, 3}, after = {3, 5};
    struct wb_buf bytes = WB_BUF_INIT, other = WB_BUF_INIT, read = WB_BUF_INIT;

    (void)state;
    struct wb_slice neighbour = history_bytes(&other, 3 * ROOM + 5, 99);
    must_ok(wb_catalog_history_put(&txn, before, neighbour));
    must_ok(wb_catalog_history_put(&txn, after, neighbour));
    assert_int_equal(wb_catalog_history_get(&txn, id, &read), WB_E_NOTFOUND);
    must_ok(wb_catalog_history_delete(&txn, id)); /* nothing */
    for (size_t i = 0; i < COUNT(lengths); i++) {
        struct wb_slice history = history_bytes(&bytes, lengths[i], (unsigned)i);
        must_ok(wb_catalog_history_put(&txn, id, history));
        check_history(id, history);
        check_history(before, neighbour);
        check_history(after, neighbour);
        /* Nothing is left of a longer one. */
        assert_int_equal(wb_catalog_count(&txn, WB_CATALOG_HISTORY), 8 + (lengths[i] + ROOM - 1) / ROOM);
    }
    must_ok(wb_catalog_history_delete(&txn, id));
    assert_int_equal(wb_catalog_history_get(&txn, id, &read), WB_E_NOTFOUND);
    assert_int_equal(wb_catalog_count(&txn, WB_CATALOG_HISTORY), 8);
    check_history(before, neighbour);
    wb_buf_release(&bytes);
    wb_buf_release(&other);
    wb_buf_release(&read);
}

/* A history can have 65536 rows, and no more. */
static void test_history_limit(void **state)
{
    struct wb_buf bytes = WB_BUF_INIT;
    size_t max = (size_t)65536 * ROOM;
    struct wb_pageid id = {1, 1};

    (void)state;
    must_ok(wb_buf_reserve(&bytes, max + 1));
    memset(bytes.ptr, 'x', max + 1);
    must_ok(wb_catalog_history_put(&txn, id, wb_slice(bytes.ptr, max)));
    check_history(id, wb_slice(bytes.ptr, max));
    assert_int_equal(wb_catalog_history_put(&txn, id, wb_slice(bytes.ptr, max + 1)), WB_E_LIMIT);
    wb_buf_release(&bytes);
}

/* What a walk over histories has seen: a hash of ids and bytes. */
struct history_tally {
    uint64_t hash;
    unsigned count, stop_at;
};

static int see_history(void *context, struct wb_pageid id, struct wb_slice bytes)
{
    struct history_tally *tally = context;
    uint64_t parts[] = {tally->hash, id.hi, id.lo, wb_hash64(bytes.ptr, bytes.len)};

    tally->hash = wb_hash64((const char *)parts, sizeof parts);
    return ++tally->count == tally->stop_at ? 42 : 0;
}

static void test_history_walk(void **state)
{
    struct wb_buf bytes = WB_BUF_INIT;
    uint64_t chance = test_seed();
    size_t lengths[200];

    (void)state;
    for (unsigned i = 0; i < COUNT(lengths); i++) {
        lengths[i] = 1 + chance_below(&chance, chance_one_in(&chance, 10) ? 20000 : 100);
        must_ok(wb_catalog_history_put(&txn, (struct wb_pageid){i * 3, i}, history_bytes(&bytes, lengths[i], i)));
    }
    for (unsigned from = 0; from <= COUNT(lengths); from += 20) {
        struct history_tally found = {0}, expected = {0};
        must_ok(wb_catalog_history_each(&txn, (struct wb_pageid){from * 3, from}, see_history, &found));
        for (unsigned i = from; i < COUNT(lengths); i++)
            see_history(&expected, (struct wb_pageid){i * 3, i}, history_bytes(&bytes, lengths[i], i));
        assert_true(found.count == COUNT(lengths) - from && found.hash == expected.hash);
        /* From between two pages on. */
        found = (struct history_tally){0};
        must_ok(wb_catalog_history_each(&txn, (struct wb_pageid){from ? from * 3 - 1 : 0, 0}, see_history, &found));
        assert_true(found.count == COUNT(lengths) - from && found.hash == expected.hash);
    }
    struct history_tally few = {.stop_at = 7};
    assert_int_equal(wb_catalog_history_each(&txn, (struct wb_pageid){0, 0}, see_history, &few), 42);
    assert_int_equal(few.count, 7);
    wb_buf_release(&bytes);
}

/* A walk and a get must both notice what harm() does to a history of four rows. */
static void damaged_history(void (*harm)(struct wb_pageid id), bool get_notices)
{
    struct wb_pageid id = {3, 4};
    struct wb_buf bytes = WB_BUF_INIT, read = WB_BUF_INIT;
    struct history_tally tally = {0};

    must_ok(wb_catalog_history_put(&txn, id, history_bytes(&bytes, 3 * ROOM + 100, 0)));
    must_ok(wb_catalog_history_each(&txn, (struct wb_pageid){0, 0}, see_history, &tally));
    harm(id);
    is_corrupt(wb_catalog_history_each(&txn, (struct wb_pageid){0, 0}, see_history, &tally), "history");
    if (get_notices)
        is_corrupt(wb_catalog_history_get(&txn, id, &read), "history");
    must_ok(wb_catalog_clear(&txn, WB_CATALOG_HISTORY));
    wb_buf_release(&bytes);
    wb_buf_release(&read);
}

static void lose_second(struct wb_pageid id)
{
    char key[WB_PAGEID_BYTES + 2];

    delete_raw(WB_CATALOG_HISTORY, history_key(id, 1, key));
}

static void lose_last(struct wb_pageid id)
{
    char key[WB_PAGEID_BYTES + 2];

    delete_raw(WB_CATALOG_HISTORY, history_key(id, 3, key));
}

static void lose_first(struct wb_pageid id)
{
    char key[WB_PAGEID_BYTES + 2];

    delete_raw(WB_CATALOG_HISTORY, history_key(id, 0, key));
}

static void end_early(struct wb_pageid id)
{
    char key[WB_PAGEID_BYTES + 2];

    put_raw(WB_CATALOG_HISTORY, history_key(id, 1, key), wb_slice("\0xyz", 4));
}

static void no_bytes(struct wb_pageid id)
{
    char key[WB_PAGEID_BYTES + 2];

    put_raw(WB_CATALOG_HISTORY, history_key(id, 3, key), wb_slice("\0", 1));
}

static void unknown_kind(struct wb_pageid id)
{
    char key[WB_PAGEID_BYTES + 2];

    put_raw(WB_CATALOG_HISTORY, history_key(id, 3, key), wb_slice("\2x", 2));
}

static void short_key(struct wb_pageid id)
{
    char key[WB_PAGEID_BYTES + 2];

    put_raw(WB_CATALOG_HISTORY, wb_slice(history_key(id, 3, key).ptr, WB_PAGEID_BYTES + 1), wb_slice("\0x", 2));
}

static void test_history_damage(void **state)
{
    (void)state;
    damaged_history(lose_second, true);
    damaged_history(lose_last, true);
    damaged_history(lose_first, false); /* a page without a history; its entry says that it has one */
    damaged_history(end_early, false);
    damaged_history(no_bytes, true);
    damaged_history(unknown_kind, true);
    damaged_history(short_key, false);
}

/* ---- snapshots and holders ------------------------------------------------------------------------------------ */

static int list_snapshot(void *context, const struct wb_store_snapshot *snapshot)
{
    return wb_buf_printf(context, "%u %s %llu %lld %llu;", snapshot->number, snapshot->name,
                         (unsigned long long)snapshot->epoch, (long long)snapshot->time_ms,
                         (unsigned long long)snapshot->pages);
}

static int list_holder(void *context, uint32_t number, const struct wb_store_holder *holder)
{
    return wb_buf_printf(context, "%u %d %s %lld;", number, holder->kind, holder->name, (long long)holder->expires_ms);
}

/* Takes the text out of the buffer. */
static void is_text(struct wb_buf *text, const char *expected)
{
    must_ok(wb_buf_terminate(text));
    assert_string_equal(text->ptr, expected);
    wb_buf_clear(text);
}

static void test_snapshots(void **state)
{
    struct wb_store_snapshot one = {.number = 1, .epoch = 7, .time_ms = -5, .pages = 3, .name = "first"},
                             large = {.number = UINT32_MAX, .epoch = UINT64_MAX, .time_ms = INT64_MIN}, read;
    struct wb_buf text = WB_BUF_INIT;

    (void)state;
    memset(large.name, 'n', WB_STORE_NAME_MAX);
    assert_int_equal(wb_catalog_snapshot_get(&txn, 1, &read), WB_E_NOTFOUND);
    must_ok(wb_catalog_snapshot_put(&txn, &large));
    must_ok(wb_catalog_snapshot_put(&txn, &one));
    must_ok(wb_catalog_snapshot_put(&txn, &(struct wb_store_snapshot){.number = 256, .epoch = 8}));
    must_ok(wb_catalog_snapshot_get(&txn, UINT32_MAX, &read));
    assert_true(read.number == UINT32_MAX && read.epoch == UINT64_MAX && read.time_ms == INT64_MIN && read.pages == 0);
    assert_string_equal(read.name, large.name);
    must_ok(wb_catalog_snapshot_delete(&txn, UINT32_MAX));
    assert_int_equal(wb_catalog_snapshot_delete(&txn, UINT32_MAX), WB_E_NOTFOUND);
    must_ok(wb_catalog_snapshot_each(&txn, list_snapshot, &text));
    is_text(&text, "1 first 7 -5 3;256  8 0 0;");
    wb_buf_release(&text);
}

static void wrong_snapshot(struct wb_slice key, size_t len, uint64_t epoch)
{
    struct wb_store_snapshot read;
    struct wb_buf text = WB_BUF_INIT;
    char row[200];

    memset(row, 'x', sizeof row);
    wb_put64(row, epoch);
    put_raw(WB_CATALOG_SNAPSHOTS, key, wb_slice(row, len));
    is_corrupt(wb_catalog_snapshot_each(&txn, list_snapshot, &text), "snapshots");
    if (key.len == 4)
        is_corrupt(wb_catalog_snapshot_get(&txn, wb_get32_be(key.ptr), &read), "");
    must_ok(wb_catalog_clear(&txn, WB_CATALOG_SNAPSHOTS));
    wb_buf_release(&text);
}

static void test_snapshot_damage(void **state)
{
    (void)state;
    wrong_snapshot(wb_slice("\0\0\0\1", 4), 23, 1);
    wrong_snapshot(wb_slice("\0\0\0\1", 4), 24 + WB_STORE_NAME_MAX + 1, 1);
    wrong_snapshot(wb_slice("\0\0\0\1", 4), 30, 0);
    wrong_snapshot(wb_slice("\0\0\0\0", 4), 30, 1);
    wrong_snapshot(wb_slice("\0\0\0\1\1", 5), 30, 1);
}

static void test_holders(void **state)
{
    struct wb_store_holder person = {.kind = WB_STORE_HOLDER_PERSON, .expires_ms = -1},
                           stream = {.kind = WB_STORE_HOLDER_STREAM, .name = "a", .expires_ms = INT64_MAX},
                           generation = {.kind = WB_STORE_HOLDER_GENERATION};
    struct wb_buf text = WB_BUF_INIT, expected = WB_BUF_INIT;

    (void)state;
    memset(generation.name, 'g', WB_STORE_NAME_MAX);
    must_ok(wb_catalog_holder_each(&txn, 1, list_holder, &text));
    must_ok(wb_catalog_holder_put(&txn, 2, &stream));
    must_ok(wb_catalog_holder_put(&txn, 2, &generation));
    must_ok(wb_catalog_holder_put(&txn, 2, &person));
    must_ok(wb_catalog_holder_put(&txn, 1, &person));
    must_ok(wb_catalog_holder_put(&txn, 258, &person));
    person.expires_ms = 0;
    must_ok(wb_catalog_holder_put(&txn, 2, &person)); /* later, or never */
    must_ok(wb_catalog_holder_each(&txn, 2, list_holder, &text));
    must_ok(wb_buf_printf(&expected, "2 0  0;2 1 %s 0;2 2 a %lld;", generation.name, (long long)INT64_MAX));
    must_ok(wb_buf_terminate(&expected));
    is_text(&text, expected.ptr);
    must_ok(wb_catalog_holder_delete(&txn, 2, &generation));
    assert_int_equal(wb_catalog_holder_delete(&txn, 2, &generation), WB_E_NOTFOUND);
    assert_int_equal(wb_catalog_holder_delete(&txn, 1, &stream), WB_E_NOTFOUND);
    must_ok(wb_catalog_holder_each(&txn, 3, list_holder, &text));
    must_ok(wb_catalog_holder_each(&txn, 1, list_holder, &text));
    must_ok(wb_catalog_holder_each(&txn, 258, list_holder, &text));
    is_text(&text, "1 0  -1;258 0  -1;");
    wb_buf_release(&text);
    wb_buf_release(&expected);
}

static int stop_holder(void *context, uint32_t number, const struct wb_store_holder *holder)
{
    unsigned *count = context;

    (void)number;
    (void)holder;
    ++*count;
    return 42;
}

static void test_holder_damage(void **state)
{
    static const struct {
        const char *key;
        size_t key_len, len;
    } wrong[] = {
        {"\0\0\0\1", 4, 8},    {"\0\0\0\1\3x", 6, 8}, {"\0\0\0\1\377x", 6, 8},
        {"\0\0\0\1\2x", 6, 7}, {"\0\0\0\1\2x", 6, 9},
    };
    struct wb_store_holder stream = {.kind = WB_STORE_HOLDER_STREAM, .name = "a"};
    struct wb_buf text = WB_BUF_INIT;
    char key[5 + WB_STORE_NAME_MAX + 1];
    unsigned count = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        put_raw(WB_CATALOG_HOLDERS, wb_slice(wrong[i].key, wrong[i].key_len), wb_slice("123456789", wrong[i].len));
        is_corrupt(wb_catalog_holder_each(&txn, 1, list_holder, &text), "holders");
        must_ok(wb_catalog_clear(&txn, WB_CATALOG_HOLDERS));
    }
    memset(key, 1, sizeof key);
    wb_put32_be(key, 1);
    put_raw(WB_CATALOG_HOLDERS, wb_slice(key, sizeof key), wb_slice("12345678", 8));
    is_corrupt(wb_catalog_holder_each(&txn, 1, list_holder, &text), "holders");
    must_ok(wb_catalog_clear(&txn, WB_CATALOG_HOLDERS));
    must_ok(wb_catalog_holder_put(&txn, 1, &stream));
    stream.name[0] = 'b';
    must_ok(wb_catalog_holder_put(&txn, 1, &stream));
    assert_int_equal(wb_catalog_holder_each(&txn, 1, stop_holder, &count), 42);
    assert_int_equal(count, 1);
    wb_buf_release(&text);
}

/* ---- revisits ------------------------------------------------------------------------------------------------- */

static int list_revisit(void *context, const struct wb_store_revisit *revisit, uint64_t site)
{
    return wb_buf_printf(context, "%llu@%lld of %llu@%lld %s%s%02x site %llu %.*s;", (unsigned long long)revisit->id.lo,
                         (long long)revisit->time_ms, (unsigned long long)revisit->original.lo,
                         (long long)revisit->original_ms, revisit->has_sha1 ? "sha1 " : "",
                         revisit->not_modified ? "not modified " : "", revisit->sha1[WB_SHA1_BYTES - 1],
                         (unsigned long long)site, WB_SLICE_ARG(revisit->url));
}

static void put_revisit(uint64_t id, int64_t time_ms, uint64_t original, const char *url, bool expect_new)
{
    struct wb_store_revisit revisit = {.id = {0, id},
                                       .time_ms = time_ms,
                                       .has_sha1 = time_ms % 2 != 0,
                                       .not_modified = time_ms % 3 != 0,
                                       .original_ms = time_ms - 1,
                                       .original = {0, original},
                                       .url = wb_slice_str(url)};
    bool is_new;

    revisit.sha1[WB_SHA1_BYTES - 1] = 0xee;
    must_ok(wb_catalog_revisit_put(&txn, id * 10, &revisit, &is_new));
    assert_int_equal(is_new, expect_new);
}

static int delete_revisit(uint64_t id, int64_t time_ms, uint64_t original)
{
    struct wb_store_revisit revisit = {.id = {0, id}, .time_ms = time_ms, .original = {0, original}};

    return wb_catalog_revisit_delete(&txn, &revisit);
}

static void test_revisits(void **state)
{
    struct wb_buf text = WB_BUF_INIT;

    (void)state;
    must_ok(wb_catalog_revisit_of(&txn, (struct wb_pageid){0, 1}, list_revisit, &text));
    put_revisit(1, 3, 1, "", true);
    put_revisit(1, -6, 1, "", true);
    put_revisit(1, 300, 1, "", true);
    put_revisit(2, 9, 1, "http://two/", true);
    put_revisit(3, 9, 1, "", true);
    put_revisit(1, 3, 2, "http://x/", false); /* the first one stays */
    must_ok(wb_catalog_revisit_of(&txn, (struct wb_pageid){0, 1}, list_revisit, &text));
    is_text(&text, "1@-6 of 1@-7 ee site 10 ;1@3 of 1@2 sha1 ee site 10 ;1@300 of 1@299 ee site 10 ;");
    must_ok(wb_catalog_revisit_of(&txn, (struct wb_pageid){0, 4}, list_revisit, &text));
    must_ok(wb_catalog_revisit_waiting(&txn, (struct wb_pageid){0, 2}, list_revisit, &text));
    is_text(&text, "");
    must_ok(wb_catalog_revisit_waiting(&txn, (struct wb_pageid){0, 1}, list_revisit, &text));
    is_text(&text, "2@9 of 1@8 sha1 ee site 20 http://two/;3@9 of 1@8 sha1 ee site 30 ;");
    assert_int_equal(wb_catalog_count(&txn, WB_CATALOG_WAITING), 2);
    must_ok(delete_revisit(2, 9, 1));
    assert_int_equal(delete_revisit(2, 9, 1), WB_E_NOTFOUND);
    must_ok(delete_revisit(1, 3, 1));
    assert_int_equal(wb_catalog_count(&txn, WB_CATALOG_WAITING), 1);
    must_ok(wb_catalog_revisit_each(&txn, list_revisit, &text));
    is_text(&text, "1@-6 of 1@-7 ee site 10 ;1@300 of 1@299 ee site 10 ;3@9 of 1@8 sha1 ee site 30 ;");
    wb_buf_release(&text);
}

/* A URL that does not fit in a row is left out: the revisit waits for a content of its own. */
static void test_long_url(void **state)
{
    struct wb_buf text = WB_BUF_INIT;
    char url[WB_TREE_VALUE_MAX + 2];

    (void)state;
    memset(url, 'u', sizeof url);
    url[WB_TREE_VALUE_MAX + 1] = '\0';
    put_revisit(2, 9, 1, url, true);
    must_ok(wb_catalog_revisit_waiting(&txn, (struct wb_pageid){0, 1}, list_revisit, &text));
    is_text(&text, "2@9 of 1@8 sha1 ee site 20 ;");
    url[WB_TREE_VALUE_MAX] = '\0';
    put_revisit(2, 10, 7, url, true);
    must_ok(wb_catalog_revisit_waiting(&txn, (struct wb_pageid){0, 7}, list_revisit, &text));
    must_ok(wb_buf_terminate(&text));
    assert_non_null(strstr(text.ptr, url));
    wb_buf_release(&text);
}

static void test_revisit_damage(void **state)
{
    struct wb_buf text = WB_BUF_INIT;
    char key[3 * WB_PAGEID_BYTES] = {0}, row[80] = {0};
    struct wb_pageid one = {0, 1};

    (void)state;
    put_revisit(2, 9, 1, "http://two/", true);
    wb_pageid_put(one, key);
    wb_pageid_put((struct wb_pageid){0, 2}, key + WB_PAGEID_BYTES);
    wb_put64_be(key + 2 * WB_PAGEID_BYTES, (uint64_t)9 ^ (uint64_t)1 << 63);
    struct wb_slice waiting = wb_slice(key, 2 * WB_PAGEID_BYTES + 8),
                    revisit = wb_slice(key + WB_PAGEID_BYTES, WB_PAGEID_BYTES + 8);
    delete_raw(WB_CATALOG_WAITING, waiting);
    is_corrupt(delete_revisit(2, 9, 1), "waiting");
    put_revisit(2, 9, 1, "http://two/", true);
    delete_raw(WB_CATALOG_REVISITS, revisit);
    is_corrupt(wb_catalog_revisit_waiting(&txn, one, list_revisit, &text), "waiting");
    put_revisit(2, 9, 3, "http://two/", true); /* waits for 3, but table waiting says for 1 */
    is_corrupt(wb_catalog_revisit_waiting(&txn, one, list_revisit, &text), "waiting");
    must_ok(wb_catalog_clear(&txn, WB_CATALOG_WAITING));
    put_raw(WB_CATALOG_WAITING, wb_slice(key, waiting.len - 1), wb_slice("u", 1));
    is_corrupt(wb_catalog_revisit_waiting(&txn, one, list_revisit, &text), "waiting");
    must_ok(wb_catalog_clear(&txn, WB_CATALOG_WAITING));
    for (size_t len = 0; len <= sizeof row; len++) {
        put_raw(WB_CATALOG_REVISITS, revisit, wb_slice(row, len));
        int err = wb_catalog_revisit_each(&txn, list_revisit, &text);
        len == 53 ? must_ok(err) : is_corrupt(err, "revisits");
        err = wb_catalog_revisit_of(&txn, (struct wb_pageid){0, 2}, list_revisit, &text);
        len == 53 ? must_ok(err) : is_corrupt(err, "revisits");
    }
    must_ok(wb_catalog_clear(&txn, WB_CATALOG_REVISITS));
    row[0] = 4; /* an unknown flag */
    put_raw(WB_CATALOG_REVISITS, revisit, wb_slice(row, 53));
    is_corrupt(wb_catalog_revisit_each(&txn, list_revisit, &text), "revisits");
    wb_buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_history_lengths, begin, end),
        cmocka_unit_test_setup_teardown(test_history_limit, begin, end),
        cmocka_unit_test_setup_teardown(test_history_walk, begin, end),
        cmocka_unit_test_setup_teardown(test_history_damage, begin, end),
        cmocka_unit_test_setup_teardown(test_snapshots, begin, end),
        cmocka_unit_test_setup_teardown(test_snapshot_damage, begin, end),
        cmocka_unit_test_setup_teardown(test_holders, begin, end),
        cmocka_unit_test_setup_teardown(test_holder_damage, begin, end),
        cmocka_unit_test_setup_teardown(test_revisits, begin, end),
        cmocka_unit_test_setup_teardown(test_long_url, begin, end),
        cmocka_unit_test_setup_teardown(test_revisit_damage, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
