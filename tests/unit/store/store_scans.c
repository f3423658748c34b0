/* store_scans.c - what tests do with scans (store_support.h). */
#include "store_support.h"
#include "base/mem.h"

void see(struct sights *sights, const struct wb_page *page, unsigned without)
{
    if (sights->count == sights->cap) {
        sights->cap = sights->cap ? sights->cap * 2 : 64;
        sights->list = realloc(sights->list, sights->cap * sizeof *sights->list);
        must(sights->list != NULL);
    }
    sights->list[sights->count++] =
        (struct seen){page->id, page_hash(page, without), page->time_ms, page->epoch, page->lifetime_count};
}

bool scan_some(struct wb_store_scan *scan, size_t max, unsigned without, struct sights *sights)
{
    struct wb_page page;
    int more = 1;

    while (max-- > 0 && (more = wb_store_scan_next(scan, &page)) > 0)
        see(sights, &page, without);
    must_ok(more);
    return more > 0;
}

void drain_scan(struct wb_store_scan *scan, unsigned without, struct sights *sights)
{
    scan_some(scan, SIZE_MAX, without, sights);
    wb_store_scan_close(scan);
}

void scan_all(struct wb_store *store, const struct wb_store_scan_options *options, unsigned without,
              struct sights *sights)
{
    struct wb_store_scan *scan;

    must_ok(wb_store_scan_open(store, options, &scan));
    drain_scan(scan, without, sights);
}

static int compare_seen(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;

    return wb_pageid_compare(x->id, y->id);
}

static void print_seen(const char *who, const struct seen *seen)
{
    fprintf(stderr, "  %s: page %016llx time %lld epoch %llu lifetime count %u hash %016llx\n", who,
            (unsigned long long)seen->id.hi, (long long)seen->time_ms, (unsigned long long)seen->epoch,
            seen->lifetime_count, (unsigned long long)seen->hash);
}

static bool has_sight(const struct sights *sights, struct wb_pageid id)
{
    for (size_t i = 0; sights && i < sights->count; i++)
        if (wb_pageid_equal(sights->list[i].id, id))
            return true;
    return false;
}

void compare_sights_except(const char *what, struct sights *found, struct sights *expected,
                           const struct sights *may_miss)
{
    size_t i = 0, j = 0;

    if (found->count)
        qsort(found->list, found->count, sizeof *found->list, compare_seen);
    if (expected->count)
        qsort(expected->list, expected->count, sizeof *expected->list, compare_seen);
    while (j < expected->count) {
        bool same = i < found->count && wb_pageid_equal(found->list[i].id, expected->list[j].id) &&
                    found->list[i].hash == expected->list[j].hash;
        if (!same && !has_sight(may_miss, expected->list[j].id))
            break;
        i += same;
        j++;
    }
    if (i == found->count && j == expected->count)
        return;
    fprintf(stderr, "%s: %zu pages found, %zu expected; they differ from number %zu on\n", what, found->count,
            expected->count, i);
    if (i < found->count)
        print_seen("found", &found->list[i]);
    if (j < expected->count)
        print_seen("expected", &expected->list[j]);
    must(false); /* the scans differ */
}

void compare_sights(const char *what, struct sights *found, struct sights *expected)
{
    compare_sights_except(what, found, expected, NULL);
}

void sights_release(struct sights *sights)
{
    free(sights->list);
    *sights = (struct sights){0};
}
