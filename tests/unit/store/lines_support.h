/*
 * lines_support.h - what a scan returns, in order and with its positions, and random changes: for tests of what must
 * not change anything that a reader sees.
 */
#ifndef WB_TESTS_STORE_LINES_SUPPORT_H
#define WB_TESTS_STORE_LINES_SUPPORT_H

#include "parcel_support.h"

enum { PAGES = 400, SITES = 4 };

static uint64_t seed;
static bool takedowns = true; /* removals may reach snapshots, too */

/* ---- what a scan returns, in order ---------------------------------------------------------------------- */

struct line {
    struct wb_pageid id;
    uint64_t hash;
    struct wb_store_position position;
};
struct lines {
    struct line *list;
    size_t count, cap;
};

static inline void add_line(struct lines *lines, const struct wb_page *page, const struct wb_store_position *position)
{
    must_ok(wb_grow(&lines->list, &lines->cap, lines->count + 1));
    lines->list[lines->count++] = (struct line){page->id, page_hash(page, 0), *position};
}

static inline void lines_release(struct lines *lines)
{
    wb_free(lines->list);
    *lines = (struct lines){0};
}

/* Reads up to max pages, through parcels or one by one. Returns false at the end. */
static inline bool read_lines(struct parcel_reader *reader, bool parcels, size_t max, struct lines *lines)
{
    struct wb_store_position position;
    struct wb_page page;

    for (size_t i = 0; i < max; i++) {
        int got = parcels ? parcel_next(reader, &page) : wb_store_scan_next(reader->scan, &page);
        must_ok(got < 0 ? got : 0);
        if (got == 0)
            return false;
        if (parcels)
            parcel_tell(reader, &position);
        else
            wb_store_scan_tell(reader->scan, &position);
        add_line(lines, &page, &position);
    }
    return true;
}

static inline void all_lines(struct wb_store *store, const struct wb_store_scan_options *options, bool parcels,
                             struct lines *lines)
{
    struct parcel_reader reader = {0};

    must_ok(wb_store_scan_open(store, options, &reader.scan));
    while (read_lines(&reader, parcels, 100, lines))
        ;
    parcel_close(&reader);
}

static inline void must_be_same(const char *what, const struct lines *found, const struct lines *expected)
{
    if (found->count != expected->count)
        fail_msg("%s: %zu pages, not %zu (seed %llu)", what, found->count, expected->count, (unsigned long long)seed);
    for (size_t i = 0; i < found->count; i++)
        if (!wb_pageid_equal(found->list[i].id, expected->list[i].id) ||
            found->list[i].hash != expected->list[i].hash ||
            memcmp(&found->list[i].position, &expected->list[i].position, sizeof found->list[i].position) != 0)
            fail_msg("%s: page %zu of %zu differs (seed %llu)", what, i, found->count, (unsigned long long)seed);
}

/* ---- a repository ------------------------------------------------------------------------------------------ */

static inline struct spec some_page(uint64_t *chance, int64_t time_ms)
{
    uint32_t number = (uint32_t)chance_below(chance, PAGES);

    return (struct spec){.site = number % SITES,
                         .number = number,
                         .time_ms = time_ms,
                         .size = 20 + (uint32_t)chance_below(chance, chance_one_in(chance, 40) ? 60000 : 3000),
                         .variant = number % 7};
}

/* Puts, touches and removes pages, in a few commits. */
static inline void change_some(struct wb_store *store, uint64_t *chance, int64_t *clock, unsigned commits)
{
    for (unsigned c = 0; c < commits; c++) {
        unsigned ops = 1 + (unsigned)chance_below(chance, 60);
        for (unsigned i = 0; i < ops; i++) {
            struct spec spec = some_page(chance, *clock += 1000);
            unsigned kind = (unsigned)chance_below(chance, 12);
            int err = kind == 0   ? remove_spec(store, &spec, takedowns && chance_one_in(chance, 2))
                      : kind == 1 ? wb_store_touch(store, spec_id(&spec), spec.time_ms)
                                  : put_spec(store, &spec);
            must_ok(err == WB_E_NOTFOUND ? 0 : err);
        }
        commit_store(store);
    }
}

#endif
