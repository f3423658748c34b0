/*
 * index_lives.h - for tests in which builds fail, die, move and meet readers: what must be left afterwards.
 */
#ifndef WB_TESTS_INDEX_LIVES_H
#define WB_TESTS_INDEX_LIVES_H

#include "index_support.h"
#include "index/whereabouts.h"

/* ---- holds --------------------------------------------------------------------------------------- */

struct hold_counts {
    unsigned snapshots, editions;
};

static inline int count_snapshot(void *context, const struct wb_store_snapshot *snapshot)
{
    struct hold_counts *counts = context;

    assert_true(snapshot->number > 0);
    counts->snapshots++;
    return 0;
}

static inline int count_edition(void *context, uint32_t edition, const char *holder, int64_t since_ms)
{
    struct hold_counts *counts = context;

    (void)since_ms;
    assert_true(edition > 0);
    assert_true(strncmp(holder, "generation-", 11) == 0);
    counts->editions++;
    return 0;
}

static inline struct hold_counts count_holds(const char *dir)
{
    struct hold_counts counts = {0};
    struct wb_store *store = NULL;

    ok(wb_store_open(dir, WB_STORE_READ, &store));
    ok(wb_store_snapshot_each(store, count_snapshot, &counts));
    wb_store_close(store);
    ok(wb_webdb_holds(dir, count_edition, &counts));
    return counts;
}

/* ---- directories --------------------------------------------------------------------------------- */

static inline int count_entry(void *context, const struct wb_path_entry *entry)
{
    /* What is left of a replaced file is replaced when that is written again. */
    if (strcmp(entry->name, "lock") != 0 && strcmp(entry->name, WB_INDEX_WHERE) != 0 &&
        strcmp(entry->name, WB_INDEX_WHERE ".tmp") != 0)
        ++*(unsigned *)context;
    return 0;
}

/* Entries of a series: generations, and whatever else is left there. */
static inline unsigned count_entries(const char *root)
{
    unsigned count = 0;

    if (wb_path_kind(root) == WB_PATH_DIR)
        ok(wb_path_each(root, count_entry, &count));
    return count;
}

/* So many generations are there, in all directories together, and each holds a snapshot and an edition. */
static inline void check_tidy(const char *dir, unsigned generations)
{
    struct hold_counts counts = count_holds(dir);
    struct wb_whereabouts where;
    unsigned entries;

    ok(wb_whereabouts_read(dir, &where));
    entries = count_entries(where.home);
    if (!wb_whereabouts_at_home(&where, where.root))
        entries += count_entries(where.root);
    for (size_t i = 0; i < where.others.count; i++)
        entries += count_entries(where.others.items[i]);
    if (generations == 1)
        assert_int_equal(where.others.count, 0);
    wb_whereabouts_release(&where);
    assert_int_equal(entries, generations);
    assert_int_equal(counts.snapshots, generations);
    assert_int_equal(counts.editions, generations);
}

static inline uint32_t newest_generation(const char *dir)
{
    struct wb_index_info info;

    ok(wb_index_newest(dir, &info));
    return info.generation;
}

/* ---- reading ------------------------------------------------------------------------------------- */

static inline int sum_page(void *context, size_t i, int err, const struct wb_page *page)
{
    (void)i;
    ok(err);
    *(uint64_t *)context += wb_hash64(page->body.ptr, page->body.len);
    return 0;
}

/* The bodies of all pages, as the generation's snapshot has them. */
static inline uint64_t sum_bodies(struct wb_index *index, const char *dir)
{
    const struct wb_index_info *info = wb_index_info(index);
    struct wb_store_when when = {.kind = WB_STORE_WHEN_SNAPSHOT, .snapshot = info->snapshot};
    struct wb_pageid *ids = wb_alloc((info->pages + 1) * sizeof *ids);
    struct wb_store *store = NULL;
    const void *values;
    uint64_t sum = 0;

    ok(wb_index_fact(index, WB_FACT_ID, &values));
    for (uint64_t i = 0; i < info->pages; i++)
        ids[i] = wb_pageid_get((const char *)values + i * WB_PAGEID_BYTES);
    ok(wb_store_open(dir, WB_STORE_READ, &store));
    ok(wb_store_get_many(store, ids, info->pages, &when, sum_page, &sum));
    wb_store_close(store);
    wb_free(ids);
    return sum;
}

/* Reads everything that an open generation can show: its own files, its edition and its snapshot. */
static inline uint64_t read_generation(struct wb_index *index, const char *dir)
{
    const struct wb_index_info *info = wb_index_info(index);
    struct wb_terms *terms = NULL;
    struct wb_slice text;
    struct wb_term term;
    const void *values;
    uint64_t sum = sum_bodies(index, dir), count = 0;
    int more;

    for (uint32_t docid = 0; docid < info->urls; docid++) {
        ok(wb_index_url(index, docid, &text));
        sum = sum * 31 + wb_hash64(text.ptr, text.len);
        ok(wb_index_title(index, docid, &text));
        sum = sum * 31 + wb_hash64(text.ptr, text.len);
    }
    ok(wb_index_fact(index, WB_FACT_RANK, &values));
    sum = sum * 31 + wb_hash64(values, info->urls * sizeof(double));
    ok(wb_terms_open(wb_index_postings(index), &terms));
    while ((more = ok(wb_terms_next(terms, &text, &term))) > 0) {
        sum = sum * 31 + wb_hash64(text.ptr, text.len) + term.df;
        count++;
    }
    wb_terms_close(terms);
    assert_int_equal(count, info->terms);
    return sum;
}

#endif
