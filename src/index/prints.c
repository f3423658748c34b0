/*
 * prints.c - writes the fingerprints of a generation in order, and finds those that are near a given one.
 *
 * The sorted fingerprints are a binary tree of their bits, from the highest one on: a range of the array is a node, and
 * a binary search parts it into its two children. The search follows the bits of the given fingerprint and leaves that
 * path at most `bits` times. At depth d it comes to at most C(d,0) + ... + C(d,bits) nodes: with 3 bits, to 723,000
 * nodes in all, whatever the pages are and however many there are. Fingerprints that nobody has chosen on purpose fill
 * only the upper levels of the tree: a million pages take 8,000 steps.
 */
#include "index/prints.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "extract/extract.h"
#include "index/build.h"
#include "os/nameless.h"

#include <stdlib.h>

enum { LINEAR = 16 }; /* so few records are compared one by one */

/* ---- writing ------------------------------------------------------------------------------------- */

struct print_entry {
    uint64_t print;
    uint32_t docid;
};

static int compare_entries(const void *a, const void *b)
{
    const struct print_entry *x = a, *y = b;

    if (x->print != y->print)
        return x->print < y->print ? -1 : 1;
    return x->docid < y->docid ? -1 : x->docid > y->docid;
}

static uint64_t gather(const struct wb_roster *roster, struct print_entry *entries)
{
    uint32_t docid = 0;
    uint64_t count = 0;

    for (uint64_t number = 0; number < roster->url_count; number++) {
        const struct wb_roster_url *url = &roster->urls[number];
        if (url->page == WB_DOCID_NONE)
            continue;
        WB_CHECK(docid < roster->known);
        if (url->simhash)
            entries[count++] = (struct print_entry){url->simhash, docid};
        docid++;
    }
    WB_CHECK(docid == roster->known);
    return count;
}

static int write_entries(const char *path, const struct print_entry *entries, uint64_t count)
{
    struct wb_column_writer *writer = NULL;
    char record[WB_PRINT_BYTES];
    int err = wb_column_create(path, WB_PRINTS_KIND, sizeof record, &writer);

    for (uint64_t i = 0; err == 0 && i < count; i++) {
        WB_CHECK(i == 0 || compare_entries(&entries[i - 1], &entries[i]) < 0);
        wb_put64(record, entries[i].print);
        wb_put32(record + 8, entries[i].docid);
        err = wb_column_add(writer, record);
    }
    if (err < 0) {
        wb_column_abandon(writer);
        return err;
    }
    return wb_column_finish(writer, NULL);
}

int wb_prints_write(struct wb_build *build)
{
    size_t bytes = (build->roster.known + 1) * sizeof(struct print_entry);
    void *memory = NULL;
    char *path = wb_build_path(build, WB_PRINTS_FILE);
    int err = path ? wb_nameless_map(build->root, bytes, &memory) : WB_E_NOMEM;

    if (err == 0) {
        struct print_entry *entries = memory;
        uint64_t count = gather(&build->roster, entries);
        qsort(entries, count, sizeof *entries, compare_entries);
        err = write_entries(path, entries, count);
    }
    if (memory)
        wb_nameless_unmap(memory, bytes);
    wb_free(path);
    return err;
}

/* ---- searching ----------------------------------------------------------------------------------- */

struct near_walk {
    const char *records;
    uint64_t print;
    unsigned bits;
    wb_index_each_near each;
    void *context;
};

static uint64_t print_at(const struct near_walk *w, uint64_t i)
{
    return wb_get64(w->records + i * WB_PRINT_BYTES);
}

/* The first record of a range whose fingerprint is not below a value. */
static uint64_t lower_bound(const struct near_walk *w, uint64_t first, uint64_t end, uint64_t value)
{
    while (first < end) {
        uint64_t middle = first + (end - first) / 2;
        if (print_at(w, middle) < value)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* Passes on records that are near; of those with one fingerprint, until each() has enough. */
static int pass_on(const struct near_walk *w, uint64_t first, uint64_t end)
{
    bool enough = false;

    WB_CHECK(first <= end);
    for (uint64_t i = first; i < end; i++) {
        uint64_t print = print_at(w, i);
        unsigned distance = wb_simhash_distance(print, w->print);
        enough = enough && print == print_at(w, i - 1);
        if (enough || distance > w->bits)
            continue;
        int got = w->each(w->context, wb_get32(w->records + i * WB_PRINT_BYTES + 8), distance);
        if (got < 0)
            return got;
        enough = got > 0;
        if (enough && end - i > LINEAR && print != UINT64_MAX) /* many pages may have the same one */
            i = lower_bound(w, i, end, print + 1) - 1;
    }
    return 0;
}

/* The records of a range agree on all bits above `bit`; `left` more may differ. */
static int walk(const struct near_walk *w, uint64_t first, uint64_t end, int bit, unsigned left)
{
    WB_CHECK(first <= end && bit < 64);
    if (end - first <= LINEAR || bit < 0)
        return pass_on(w, first, end);
    uint64_t low = bit == 63 ? UINT64_MAX : (UINT64_C(2) << bit) - 1, above = print_at(w, first) & ~low;
    if (left == 0) {
        uint64_t only = above | (w->print & low);
        first = lower_bound(w, first, end, only);
        return pass_on(w, first, only == UINT64_MAX ? end : lower_bound(w, first, end, only + 1));
    }
    uint64_t middle = lower_bound(w, first, end, above | UINT64_C(1) << bit);
    bool one = w->print >> bit & 1;
    int err = walk(w, one ? middle : first, one ? end : middle, bit - 1, left);
    return err < 0 ? err : walk(w, one ? first : middle, one ? middle : end, bit - 1, left - 1);
}

int wb_prints_near(const char *records, uint64_t count, uint64_t print, unsigned bits, wb_index_each_near each,
                   void *context)
{
    struct near_walk w = {records, print, bits, each, context};

    WB_CHECK(bits <= 64);
    return walk(&w, 0, count, 63, bits);
}

const char *wb_prints_check(const char *records, uint64_t count, const uint64_t *prints, uint64_t pages,
                            uint64_t *record_out)
{
    struct print_entry last = {0, 0};
    uint64_t with = 0;

    for (*record_out = 0; *record_out < count; ++*record_out) {
        const char *record = records + *record_out * WB_PRINT_BYTES;
        struct print_entry entry = {wb_get64(record), wb_get32(record + 8)};
        if (*record_out && compare_entries(&last, &entry) >= 0)
            return "a fingerprint is out of order";
        if (entry.docid >= pages || prints[entry.docid] != entry.print || entry.print == 0)
            return "a fingerprint is not that of its page";
        last = entry;
    }
    for (uint64_t docid = 0; docid < pages; docid++)
        with += prints[docid] != 0;
    return with == count ? NULL : "the fingerprint of a page is missing";
}
