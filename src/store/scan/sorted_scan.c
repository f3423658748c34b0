/*
 * sorted_scan.c - returns all pages of one state in the order of their ids, each exactly once (sorted_scan.h).
 *
 * As in a scan of a log (disk_scan.c), the state is an epoch, which the scan pins, so that every version that is
 * visible in it stays until the scan ends. A state of the catalog is held only while a chunk is being loaded. Between
 * calls the scan has no file open: the records of its chunk are in memory, a few dozen megabytes.
 *
 * A page that is taken down must not be delivered long after that. So when the catalog has moved on since the chunk
 * was loaded, the next few pages are looked up once more before they are returned.
 */
#include "store/scan/sorted_scan.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"

enum {
    JUDGE_AT_ONCE = 64,   /* pages that are looked up once more together */
    PREFETCH = 2,         /* so many pages ahead, a record is fetched into the processor's cache ... */
    PREFETCH_BYTES = 512, /* ... as far as its head usually goes */
    CACHE_LINE = 64,
};

static int sorted_next(struct wb_store_scan *base, struct wb_page *page_out);
static int sorted_parcel(struct wb_store_scan *base, struct wb_store_parcel *parcel_out);
static void sorted_tell(const struct wb_store_scan *base, struct wb_store_position *position_out);
static int sorted_holds(struct wb_store_scan *base, struct wb_store_scan_holds *holds_out);
static void sorted_close(struct wb_store_scan *base);

/* A scan is called through its own table; the others are never called through it. */
static const struct wb_store_ops sorted_ops = {
    .scan_next = sorted_next,
    .scan_parcel = sorted_parcel,
    .scan_tell = sorted_tell,
    .scan_holds = sorted_holds,
    .scan_close = sorted_close,
};

_Static_assert(offsetof(struct wb_sorted_scan, scan) == 0, "a wb_store_scan of this kind is a wb_sorted_scan");

static struct wb_sorted_scan *scan_of(struct wb_store_scan *base)
{
    struct wb_sorted_scan *scan = (struct wb_sorted_scan *)base;

    WB_CHECK(base->magic == WB_STORE_SCAN_MAGIC);
    WB_CHECK(base->ops == &sorted_ops);
    WB_CHECK(scan->index <= scan->chunk.items.count);
    return scan;
}

/* ---- positions ---------------------------------------------------------------------------------------- */

/* A position is the id of a page. Its first byte distinguishes it from one in a log (disk_parcel.c). */
enum {
    POSITION_SORTED = 2,
    POSITION_HAS_ID_AT = 1,
    POSITION_ID_AT = 16,
    POSITION_CHECK_AT = WB_STORE_POSITION_BYTES - 8,
};

static void put_position(const struct wb_sorted_scan *scan, struct wb_store_position *position_out)
{
    char *bytes = position_out->bytes;

    WB_CHECK(scan->repo->magic == WB_REPO_MAGIC);
    memset(bytes, 0, WB_STORE_POSITION_BYTES);
    bytes[0] = POSITION_SORTED;
    bytes[POSITION_HAS_ID_AT] = scan->has_told;
    if (scan->has_told)
        wb_pageid_put(scan->told, bytes + POSITION_ID_AT);
    wb_put64(bytes + POSITION_CHECK_AT, wb_hash64_seeded(bytes, POSITION_CHECK_AT, scan->repo->content_seed));
}

static void sorted_tell(const struct wb_store_scan *base, struct wb_store_position *position_out)
{
    WB_CHECK(base->magic == WB_STORE_SCAN_MAGIC);
    WB_CHECK(base->ops == &sorted_ops);
    put_position((const struct wb_sorted_scan *)base, position_out);
}

bool wb_sorted_position_is(const struct wb_store_position *position)
{
    return position->bytes[0] == POSITION_SORTED;
}

int wb_sorted_position_compare(const struct wb_store_position *a, const struct wb_store_position *b)
{
    WB_CHECK(wb_sorted_position_is(a));
    WB_CHECK(wb_sorted_position_is(b));
    if (a->bytes[POSITION_HAS_ID_AT] != b->bytes[POSITION_HAS_ID_AT])
        return a->bytes[POSITION_HAS_ID_AT] < b->bytes[POSITION_HAS_ID_AT] ? -1 : 1;
    return wb_pageid_compare(wb_pageid_get(a->bytes + POSITION_ID_AT), wb_pageid_get(b->bytes + POSITION_ID_AT));
}

/* The id of a position; *has_out is false for one before all pages. WB_E_INVALID if it is a foreign one. */
static int take_position(const struct wb_sorted_scan *scan, const struct wb_store_position *position, bool *has_out,
                         struct wb_pageid *id_out)
{
    const char *bytes = position->bytes;

    WB_CHECK(scan->repo->magic == WB_REPO_MAGIC);
    if (bytes[0] != POSITION_SORTED ||
        wb_get64(bytes + POSITION_CHECK_AT) != wb_hash64_seeded(bytes, POSITION_CHECK_AT, scan->repo->content_seed))
        return wb_fail(WB_E_INVALID, "this is not a position in a scan of %s", scan->repo->dir);
    *has_out = bytes[POSITION_HAS_ID_AT];
    *id_out = wb_pageid_get(bytes + POSITION_ID_AT);
    return 0;
}

/* ---- opening and closing -------------------------------------------------------------------------------- */

static void sorted_close(struct wb_store_scan *base)
{
    struct wb_sorted_scan *scan = scan_of(base);

    wb_busy_end(&scan->repo->busy, &scan->busy);
    if (scan->context)
        scan->source->close(scan->context);
    wb_catalog_txn_abort(&scan->txn);
    wb_catalog_close(scan->catalog); /* which ends the pin */
    wb_catalog_rows_release(&scan->rows);
    wb_vec_release(&scan->parts);
    wb_pageview_release(&scan->view);
    wb_vec_release(&scan->chunk.items);
    wb_vec_release(&scan->chunk.errors);
    wb_vec_release(&scan->chunk.known);
    for (size_t i = 0; i < WB_SORTED_TEXTS; i++)
        wb_buf_release(&scan->chunk.texts[i]);
    wb_scan_pack_release(&scan->pack);
    wb_free(scan->site);
    wb_store_scan_release(&scan->scan);
    wb_free(scan);
}

/* Part number `part` of the repository: an equal share of all values of id.hi. */
static void choose_part(struct wb_sorted_scan *scan, uint32_t part, uint32_t parts)
{
    scan->first = 0;
    scan->last = UINT64_MAX;
    if (parts <= 1)
        return;
    WB_CHECK(part >= 1);
    WB_CHECK(part <= parts);
    unsigned __int128 all = (unsigned __int128)1 << 64;
    scan->first = (uint64_t)((all * (part - 1) + parts - 1) / parts);
    if (part < parts)
        scan->last = (uint64_t)((all * part + parts - 1) / parts) - 1;
}

static int take_options(struct wb_sorted_scan *scan, const struct wb_store_scan_options *options)
{
    bool has_until = true;
    int err = 0;

    WB_CHECK(!scan->site);
    WB_CHECK(!scan->has_told);
    choose_part(scan, options->part, options->parts);
    scan->chunk.alone = options->parts <= 1;
    scan->since = options->since;
    scan->facts = scan->chunk.facts = options->facts;
    scan->gone = options->gone;
    scan->without = options->without;
    scan->without_count = options->without_count;
    scan->until = (struct wb_pageid){UINT64_MAX, UINT64_MAX};
    if (options->site.len) {
        scan->site_hash = wb_hash64(options->site.ptr, options->site.len);
        scan->site = wb_strndup(options->site.ptr, options->site.len);
        err = scan->site ? 0 : WB_E_NOMEM;
    }
    if (err == 0 && options->after)
        err = take_position(scan, options->after, &scan->has_told, &scan->told);
    if (err == 0 && options->until)
        err = take_position(scan, options->until, &has_until, &scan->until);
    if (err == 0 && !has_until)
        err = wb_fail(WB_E_INVALID, "a scan of %s cannot end at this position", scan->repo->dir);
    scan->has_reached =
        scan->has_told && scan->told.hi >= scan->first; /* a position of another part may be before it */
    scan->reached = scan->told;
    return err;
}

int wb_sorted_scan_open(struct wb_repo *repo, const struct wb_sorted_source *source,
                        const struct wb_store_scan_options *options, struct wb_store_scan **scan_out)
{
    struct wb_sorted_scan *scan = wb_alloc_zero(1, sizeof *scan);

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(source->chunk_bytes > 0);
    *scan_out = NULL;
    if (!scan)
        return WB_E_NOMEM;
    wb_store_scan_init(&scan->scan, &repo->store);
    scan->scan.ops = &sorted_ops;
    scan->repo = repo;
    scan->source = source;
    int err = take_options(scan, options);
    if (err == 0)
        err = source->open(&repo->files, &scan->context);
    if (err == 0)
        err = wb_catalog_open(repo->dir, WB_TREE_READ, &scan->catalog);
    if (err == 0)
        err = wb_repo_pin_epoch(scan->catalog, options->snapshot, &scan->epoch);
    if (err < 0) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        sorted_close(&scan->scan);
        return wb_error_restore(&why);
    }
    scan->busy = wb_busy_begin(&repo->busy, WB_BUSY_STREAM, wb_nodes_number(&repo->nodes, 0),
                               wb_nodes_number(&repo->nodes, wb_nodes_count(&repo->nodes) - 1));
    *scan_out = &scan->scan;
    return 0;
}

static int sorted_holds(struct wb_store_scan *base, struct wb_store_scan_holds *holds_out)
{
    struct wb_sorted_scan *scan = scan_of(base);

    WB_CHECK(scan->epoch > 0);
    *holds_out = (struct wb_store_scan_holds){.epoch = scan->epoch};
    return 0;
}

/* ---- chunks --------------------------------------------------------------------------------------------- */

/* Takes up the newest state of the catalog. */
static int begin(struct wb_sorted_scan *scan)
{
    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_CLOSED);
    int err = wb_catalog_txn_read(scan->catalog, &scan->txn);
    if (err < 0)
        return wb_error_break(err);
    scan->state = wb_catalog_txn_id(&scan->txn);
    return 0;
}

int wb_sorted_catalog_damaged(struct wb_sorted_chunk *chunk)
{
    return wb_sorted_damaged(chunk, 0, wb_hash64(wb_error_message(), strlen(wb_error_message())));
}

static int load_held(struct wb_sorted_scan *scan, struct wb_pageid *reached_out, bool *more_out)
{
    struct wb_sorted_chunk *chunk = &scan->chunk;
    int err = wb_catalog_summary_get(&scan->txn, &scan->summary);

    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(chunk->errors.count == 0);
    for (size_t i = 0; i < WB_SORTED_TEXTS; i++)
        wb_buf_clear(&chunk->texts[i]);
    if (err == 0)
        err = wb_catalog_rows_read(&scan->txn, &scan->rows);
    int more = err == 0 ? wb_sorted_pick(scan, reached_out) : err;
    if (more < 0)
        return more;
    *more_out = more > 0;
    chunk->txn = &scan->txn;
    chunk->rows = &scan->rows;
    size_t count = chunk->items.count;
    err = count ? scan->source->load(scan->context, chunk) : 0;
    if (err == 0 && chunk->items.count < count) {
        WB_CHECK(chunk->items.count > 0);
        *reached_out = chunk->items.items[chunk->items.count - 1].id;
        *more_out = true;
    }
    return err;
}

bool wb_sorted_scan_is(const struct wb_store_scan *scan)
{
    WB_CHECK(scan->magic == WB_STORE_SCAN_MAGIC);
    return scan->ops == &sorted_ops;
}

/* The first of these nodes that has an item of the chunk, or 0. */
static int find_node(struct wb_sorted_scan *scan, const uint32_t *nodes, size_t count, uint32_t *node_out)
{
    struct wb_catalog_segment row;

    WB_CHECK(*node_out == 0);
    for (size_t i = 0; i < scan->chunk.items.count && *node_out == 0; i++) {
        const struct wb_sorted_item *item = &scan->chunk.items.items[i];
        int err = wb_parts_row_of(&scan->txn, &scan->parts, item->entry.place.segment, item->id, &row);
        if (err < 0)
            return err;
        for (size_t k = 0; k < count && *node_out == 0; k++)
            if (nodes[k] == row.node)
                *node_out = nodes[k];
    }
    return 0;
}

int wb_sorted_scan_needs(struct wb_store_scan *base, const uint32_t *nodes, size_t count, uint32_t *node_out)
{
    struct wb_sorted_scan *scan = scan_of(base);
    struct wb_pageid reached;
    int more = 1;

    WB_CHECK(scan->chunk.items.count == 0);
    *node_out = 0;
    while (more > 0 && *node_out == 0) {
        int err = begin(scan);
        if (err == 0)
            err = wb_catalog_summary_get(&scan->txn, &scan->summary);
        wb_catalog_rows_release(&scan->rows);
        if (err == 0)
            err = wb_catalog_rows_read(&scan->txn, &scan->rows);
        more = err == 0 ? wb_sorted_pick(scan, &reached) : err;
        wb_vec_clear(&scan->chunk.errors); /* the reader of the pages is told */
        wb_vec_clear(&scan->chunk.known);
        if (more >= 0) {
            scan->reached = reached;
            scan->has_reached = true;
            err = find_node(scan, nodes, count, node_out);
            more = err < 0 ? err : more;
        }
        wb_catalog_txn_abort(&scan->txn);
    }
    return more < 0 ? more : 0;
}

/* Loads the next chunk, which may turn out to be empty. */
static int load_chunk(struct wb_sorted_scan *scan)
{
    struct wb_pageid reached;
    size_t known = scan->chunk.known.count;
    bool more = false;
    int err = begin(scan);

    WB_CHECK(!scan->ended);
    WB_CHECK(scan->index == scan->chunk.items.count);
    wb_catalog_rows_release(&scan->rows);
    if (err == 0)
        err = load_held(scan, &reached, &more);
    wb_catalog_txn_abort(&scan->txn);
    scan->index = scan->judged = 0;
    scan->chunk_state = scan->state;
    if (err < 0) { /* the next call begins with the same chunk once more; so this must not be taken for damage */
        wb_vec_clear(&scan->chunk.items);
        wb_vec_clear(&scan->chunk.errors);
        scan->chunk.known.count = known;
        return wb_error_break(err);
    }
    scan->reached = reached;
    scan->has_reached = true;
    scan->ended = !more;
    return 0;
}

/* Drops those of the next items that cannot be read any more, if the catalog has changed. */
static int judge_again(struct wb_sorted_scan *scan)
{
    struct wb_sorted_chunk *chunk = &scan->chunk;
    size_t end = scan->index + JUDGE_AT_ONCE < chunk->items.count ? scan->index + JUDGE_AT_ONCE : chunk->items.count;
    int err = begin(scan);

    WB_CHECK(scan->index < chunk->items.count);
    for (size_t i = scan->index; i < end && err == 0 && scan->state != scan->chunk_state; i++) {
        bool there;
        err = wb_sorted_is_there(scan, &chunk->items.items[i], &there);
        if (err == 0 && !there)
            chunk->items.items[i].bytes = 0;
        if (err == WB_E_CORRUPT) { /* it may have been taken down, so it is not delivered */
            chunk->items.items[i].bytes = 0;
            err = wb_sorted_catalog_damaged(chunk);
        }
    }
    wb_catalog_txn_abort(&scan->txn);
    if (err == 0)
        scan->judged = end;
    return err;
}

/* ---- pages ---------------------------------------------------------------------------------------------- */

/* Decodes the record of an item. Returns 1, or 0 if it is of another site. */
static int read_item(struct wb_sorted_scan *scan, const struct wb_sorted_item *item, struct wb_page *page_out)
{
    const struct wb_buf *text = &scan->chunk.texts[item->text];
    struct wb_slice record = wb_slice(text->ptr + item->at, item->bytes);
    char why[WB_ERROR_MESSAGE_MAX];
    int err;

    WB_CHECK(item->at + item->bytes <= text->len);
    WB_CHECK(item->bytes >= WB_RECORD_DIGEST_BYTES);
    if (scan->facts) {
        struct wb_slice head = wb_slice(record.ptr + WB_RECORD_DIGEST_BYTES, record.len - WB_RECORD_DIGEST_BYTES);
        err = wb_page_decode_head(record.ptr, head, item->entry.body_bytes, page_out);
    } else {
        err = wb_page_decode(record, page_out);
    }
    if (err == 0)
        err = wb_pagefile_identify(page_out, item->id, &item->entry);
    if (err == WB_E_CORRUPT || err == WB_E_NEWER) {
        strcpy(why, wb_error_message());
        return wb_fail(err, "%s: segment %u, block %llu: %s", scan->repo->dir, item->entry.place.segment,
                       (unsigned long long)item->entry.place.logical, why);
    }
    if (err < 0)
        return err;
    return !scan->site || wb_slice_equal(wb_key_site(page_out->key), wb_slice_str(scan->site));
}

/* Damage that was found when the chunk was loaded, one after the other. */
static int report(struct wb_sorted_chunk *chunk)
{
    struct wb_error_copy *errors = chunk->errors.items;

    WB_CHECK(chunk->errors.count > 0);
    int err = wb_error_restore(&errors[0]);
    chunk->errors.count--;
    memmove(errors, errors + 1, chunk->errors.count * sizeof *errors);
    return err;
}

/* The records of neighbours are far apart in memory, and decoding a head would wait for it. */
static void prefetch(const struct wb_sorted_chunk *chunk, const struct wb_sorted_item *item)
{
    const char *record = chunk->texts[item->text].ptr + item->at;

    WB_CHECK(item->text < WB_SORTED_TEXTS);
    for (size_t i = 0; i < PREFETCH_BYTES && i < item->bytes; i += CACHE_LINE)
        __builtin_prefetch(record + i, 0, 2);
}

static int sorted_next(struct wb_store_scan *base, struct wb_page *page_out)
{
    struct wb_sorted_scan *scan = scan_of(base);
    struct wb_sorted_chunk *chunk = &scan->chunk;

    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_CLOSED);
    WB_CHECK(scan->epoch > 0);
    for (;;) {
        int err = 0;
        if (chunk->errors.count)
            return report(chunk);
        if (scan->index == chunk->items.count && scan->ended)
            return 0;
        if (scan->index == chunk->items.count)
            err = load_chunk(scan);
        else if (scan->index == scan->judged)
            err = judge_again(scan);
        if (err < 0)
            return err;
        if (chunk->errors.count || scan->index == scan->judged)
            continue;
        const struct wb_sorted_item *item = &chunk->items.items[scan->index++];
        if (scan->index + PREFETCH <= chunk->items.count)
            prefetch(chunk, item + PREFETCH);
        err = item->bytes ? read_item(scan, item, page_out) : 0;
        if (err < 0)
            return err;
        if (err > 0) {
            scan->told = item->id;
            scan->has_told = true;
            return 1;
        }
    }
}

static int sorted_parcel(struct wb_store_scan *base, struct wb_store_parcel *parcel_out)
{
    struct wb_sorted_scan *scan = scan_of(base);
    int err = wb_scan_pack_late(&scan->pack);

    WB_CHECK(!scan->facts);
    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_CLOSED);
    return err < 0 ? err : wb_scan_pack(&scan->pack, base, sorted_next, parcel_out);
}
