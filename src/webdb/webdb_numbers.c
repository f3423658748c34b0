/*
 * webdb_numbers.c - from numbers to URLs, kinds and ids of pages, and back.
 *
 * The number of a URL is its rank in pages by URL. Kinds are a column by number, one byte each. Pages by id are a
 * column that is sorted by id: a single id is found by interpolation, as MD5s are. If ids ascend, each is found by
 * looking ahead from the one before, in steps that double. This file never reads links.
 */
#include "base/bytes.h"
#include "webdb/pagerow.h"
#include "webdb/spelling.h"
#include "webdb/webdb_read.h"

_Static_assert(WB_WEBDB_NO_NUMBER == UINT32_MAX, "no row has this number: see numbermap.h");

static void check_handle(const struct wb_webdb *webdb)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    WB_CHECK(webdb->path != NULL);
}

static int no_number(const struct wb_webdb *webdb, uint64_t number)
{
    check_handle(webdb);
    return wb_fail(WB_E_NOTFOUND, "%s has no number %llu", webdb->path, (unsigned long long)number);
}

int wb_webdb_number(struct wb_webdb *webdb, struct wb_slice url, uint64_t *number_out)
{
    struct wb_table_record record;

    check_handle(webdb);
    *number_out = 0;
    int err = wb_webdb_find_row(webdb, url, &record);
    if (err == 0)
        *number_out = record.number;
    return err;
}

int wb_webdb_get_number(struct wb_webdb *webdb, uint64_t number, struct wb_webdb_page *page_out)
{
    struct wb_table_record record;

    check_handle(webdb);
    *page_out = (struct wb_webdb_page){.number = 0};
    if (number >= webdb->manifest.rows)
        return no_number(webdb, number);
    int err = wb_cursor_get_number(webdb->cursor, number, &record);
    if (err == 0)
        err = wb_webdb_decode_row(webdb, &record, &webdb->mem, page_out);
    return err < 0 ? err : 0;
}

int wb_webdb_kinds(struct wb_webdb *webdb, uint64_t first, uint64_t count, const uint8_t **kinds_out)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    WB_CHECK(webdb->kinds.count == webdb->manifest.rows);
    *kinds_out = NULL;
    if (first > webdb->kinds.count || count > webdb->kinds.count - first)
        return no_number(webdb, first + count);
    int err = count > 0 ? wb_column_check(&webdb->kinds, first, count) : 0;
    if (err == 0)
        *kinds_out = wb_column_at(&webdb->kinds, first);
    return err;
}

/* ---- ids ------------------------------------------------------------------------------------- */

/* Compares an id with the entry of a rank. */
static int compare_at(const struct wb_webdb *webdb, const uint8_t id[16], uint64_t rank, int *order_out)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    WB_CHECK(rank < webdb->ids.count);
    int err = wb_column_check(&webdb->ids, rank, 1);

    *order_out = err < 0 ? 0 : memcmp(id, ((const struct wb_stored_id *)wb_column_at(&webdb->ids, rank))->id, 16);
    return err;
}

/*
 * Finds the first rank from *rank on whose id is not less than this one; all entries before *rank are less. Looks 1, 2,
 * 4, ... entries ahead, then halves the range.
 */
static int look_ahead(const struct wb_webdb *webdb, const uint8_t id[16], uint64_t *rank)
{
    uint64_t low = *rank, high = low, step = 1; /* the answer is in [low, high] once the first loop has ended */
    int order = 1, err = 0;

    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    WB_CHECK(low <= webdb->ids.count);
    while (err == 0 && high < webdb->ids.count) {
        err = compare_at(webdb, id, high, &order);
        if (order <= 0)
            break;
        low = high + 1;
        high = step < webdb->ids.count - high ? high + step : webdb->ids.count;
        step *= 2;
    }
    while (err == 0 && low < high) {
        uint64_t middle = low + (high - low) / 2;
        err = compare_at(webdb, id, middle, &order);
        if (order <= 0)
            high = middle;
        else
            low = middle + 1;
    }
    *rank = low;
    return err;
}

/* Finds the rank of an id; with ahead, from *rank on. WB_E_NOTFOUND sets no message. */
static int find_id(const struct wb_webdb *webdb, const uint8_t id[16], bool ahead, uint64_t *rank)
{
    int order, err;

    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    WB_CHECK(*rank <= webdb->ids.count);
    if (!ahead)
        return wb_contents_find(&webdb->ids, id, rank);
    err = look_ahead(webdb, id, rank);
    if (err < 0)
        return err;
    if (*rank == webdb->ids.count)
        return WB_E_NOTFOUND;
    err = compare_at(webdb, id, *rank, &order);
    return err < 0 ? err : order == 0 ? 0 : WB_E_NOTFOUND;
}

/* The page of an entry, which has been compared with its checksum. */
static int page_at(const struct wb_webdb *webdb, uint64_t rank, uint32_t *number_out)
{
    WB_CHECK(rank < webdb->ids.count);
    const struct wb_stored_id *entry = wb_column_at(&webdb->ids, rank);

    *number_out = wb_get32_be(entry->page);
    if (*number_out >= webdb->manifest.rows)
        return wb_fail(WB_E_CORRUPT, "%s/%s: an entry belongs to a page that does not exist", webdb->path, WB_IDS_FILE);
    return 0;
}

int wb_webdb_numbers_of_ids(struct wb_webdb *webdb, const struct wb_pageid *ids, size_t count, uint32_t *numbers_out)
{
    uint64_t rank = 0;
    bool known = false; /* rank is where the id before this one is, or would be */
    uint8_t bytes[16];
    int err = 0;

    check_handle(webdb);
    WB_CHECK(count == 0 || numbers_out != NULL);
    WB_CHECK(count == 0 || ids != NULL);
    for (size_t i = 0; i < count; i++)
        numbers_out[i] = WB_WEBDB_NO_NUMBER;
    for (size_t i = 0; err == 0 && i < count; i++) {
        wb_pageid_put(ids[i], bytes);
        bool ahead = known && wb_pageid_compare(ids[i - 1], ids[i]) <= 0;
        err = find_id(webdb, bytes, ahead, &rank);
        known = err == 0 || ahead;
        if (err == 0)
            err = page_at(webdb, rank, &numbers_out[i]);
        else if (err == WB_E_NOTFOUND)
            err = 0;
    }
    return err;
}

int wb_webdb_id_at(struct wb_webdb *webdb, uint64_t rank, struct wb_pageid *id_out, uint64_t *number_out)
{
    uint32_t number;

    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    *id_out = (struct wb_pageid){0, 0};
    *number_out = 0;
    if (rank >= webdb->ids.count)
        return wb_fail(WB_E_NOTFOUND, "%s has only %llu stored pages", webdb->path,
                       (unsigned long long)webdb->ids.count);
    int err = wb_column_check(&webdb->ids, rank, 1);
    if (err == 0)
        err = page_at(webdb, rank, &number);
    if (err < 0)
        return err;
    *id_out = wb_pageid_get(((const struct wb_stored_id *)wb_column_at(&webdb->ids, rank))->id);
    *number_out = number;
    return 0;
}

int wb_webdb_page_id(struct wb_webdb *webdb, const struct wb_webdb_page *page, struct wb_pageid *id_out)
{
    check_handle(webdb);
    WB_CHECK(page->surt.len > 0);
    return wb_spelling_id(page->surt, &webdb->key, id_out);
}
