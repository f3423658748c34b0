/*
 * sorter_sort.c - sorts the entries of a chunk by key, with a multikey quicksort over cached prefixes.
 *
 * Every entry caches 8 bytes of its key. A group of entries is split three ways by these bytes: less than, equal to and
 * greater than a pivot. The less and the greater part are sorted further by the same 8 bytes. The entries of the equal
 * part fetch their next 8 bytes, skipping what all of them have in common. A key in memory is therefore touched at most
 * twice for each 8 bytes that it shares with others, however long the common prefixes are.
 *
 * Records with equal keys are ordered by their offset in the chunk, which is the order in which they were added.
 *
 * Keys come from the web and may be hostile. If the pivots are bad again and again, a heap sort takes over; and the
 * recursion goes into the smaller parts only, so its depth is bounded.
 */
#include "table/sorter.h"

enum {
    SMALL = 24,  /* groups up to this size are sorted by insertion */
    LARGE = 256, /* from this size on, the pivot is chosen from nine entries instead of three */
};

_Static_assert(SMALL < LARGE, "large groups are split before they are small");
_Static_assert(LARGE / 8 > 0, "the nine entries are different ones");
_Static_assert(WB_TABLE_KEY_MAX < UINT32_MAX - 8, "eight bytes after any depth have an offset too");

/*
 * What the prefixes of a group mean. Normally: bytes of the keys, starting at depth; all keys of the group are equal
 * before depth. If last is set: numbers that are all different and decide the order by themselves.
 */
struct prefix_level {
    uint32_t depth;
    bool last;
};

static inline void exchange(struct wb_sorter_entry *a, struct wb_sorter_entry *b)
{
    struct wb_sorter_entry c = *a;

    *a = *b;
    *b = c;
}

/* Compares two entries whose prefixes are equal: by the rest of their keys, then by their offsets. */
static int compare_rest(const char *records, const struct wb_sorter_entry *a, const struct wb_sorter_entry *b,
                        uint32_t depth)
{
    uint32_t from = depth + 8, least = a->key_len < b->key_len ? a->key_len : b->key_len;

    if (least > from) {
        const char *x = wb_sorter_entry_key(a, records).ptr, *y = wb_sorter_entry_key(b, records).ptr;
        int order = memcmp(x + from, y + from, least - from);
        if (order)
            return order;
    }
    /*
     * One key is a prefix of the other: if a key ends within the cached bytes, the longer one has zeros there as well.
     */
    if (a->key_len != b->key_len)
        return a->key_len < b->key_len ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static inline bool is_less(const char *records, const struct wb_sorter_entry *a, const struct wb_sorter_entry *b,
                           struct prefix_level level)
{
    if (a->prefix != b->prefix)
        return a->prefix < b->prefix;
    return !level.last && compare_rest(records, a, b, level.depth) < 0;
}

static void insertion_sort(const char *records, struct wb_sorter_entry *e, size_t n, struct prefix_level level)
{
    WB_CHECK(n <= SMALL);
    for (size_t i = 1; i < n; i++) {
        struct wb_sorter_entry moving = e[i];
        size_t to = i;
        for (; to > 0 && is_less(records, &moving, &e[to - 1], level); to--)
            e[to] = e[to - 1];
        e[to] = moving;
    }
}

static void sift_down(const char *records, struct wb_sorter_entry *e, size_t at, size_t n, struct prefix_level level)
{
    WB_CHECK(at < n);
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_less(records, &e[child], &e[child + 1], level))
            child++;
        if (!is_less(records, &e[at], &e[child], level))
            break;
        exchange(&e[at], &e[child]);
    }
}

static void heap_sort(const char *records, struct wb_sorter_entry *e, size_t n, struct prefix_level level)
{
    WB_CHECK(n > SMALL); /* smaller groups are sorted by insertion */
    for (size_t i = n / 2; i-- > 0;)
        sift_down(records, e, i, n, level);
    for (size_t end = n; --end > 0;) {
        exchange(&e[0], &e[end]);
        sift_down(records, e, 0, end, level);
    }
}

static uint64_t median3(uint64_t a, uint64_t b, uint64_t c)
{
    return a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
}

static uint64_t choose_pivot(const struct wb_sorter_entry *e, size_t n)
{
    size_t step = n / 8, middle = n / 2;

    WB_CHECK(n > SMALL);
    if (n < LARGE)
        return median3(e[0].prefix, e[middle].prefix, e[n - 1].prefix);
    return median3(median3(e[0].prefix, e[step].prefix, e[2 * step].prefix),
                   median3(e[middle - step].prefix, e[middle].prefix, e[middle + step].prefix),
                   median3(e[n - 1 - 2 * step].prefix, e[n - 1 - step].prefix, e[n - 1].prefix));
}

/*
 * Partitions the entries by their prefixes: [0, *equal_out) are less than the pivot, [*equal_out, *greater_out) equal
 * to it, the rest greater.
 */
static void partition(struct wb_sorter_entry *e, size_t n, uint64_t pivot, size_t *equal_out, size_t *greater_out)
{
    /* Equal entries are collected at both ends and moved to the middle at the end: usually there are few of them. */
    size_t left = 0, low = 0, high = n, right = n;

    for (;;) {
        for (; low < high && e[low].prefix <= pivot; low++)
            if (e[low].prefix == pivot)
                exchange(&e[left++], &e[low]);
        for (; low < high && e[high - 1].prefix >= pivot; high--)
            if (e[high - 1].prefix == pivot)
                exchange(&e[--right], &e[high - 1]);
        if (low >= high)
            break;
        exchange(&e[low++], &e[--high]);
    }
    WB_CHECK(low == high);
    WB_CHECK(left <= low);
    WB_CHECK(high <= right);
    size_t less = low - left, greater = right - high;
    for (size_t i = 0, m = left < less ? left : less; i < m; i++)
        exchange(&e[i], &e[low - 1 - i]);
    for (size_t i = 0, m = n - right < greater ? n - right : greater; i < m; i++)
        exchange(&e[high + i], &e[n - 1 - i]);
    *equal_out = less;
    *greater_out = n - greater;
}

/*
 * Prepares the equal part for depth. Keys that end before depth are moved to the front, and their prefixes are set to
 * numbers that decide their order; the others fetch their next 8 bytes. Returns how many keys have ended.
 */
static size_t fetch_next(const char *records, struct wb_sorter_entry *e, size_t n, uint32_t depth)
{
    size_t ended = 0;

    WB_CHECK(n >= 2);
    for (size_t i = 0; i < n; i++) {
        if (e[i].key_len <= depth) {
            e[i].prefix = (uint64_t)e[i].key_len << 32 | e[i].at;
            exchange(&e[ended++], &e[i]);
            continue;
        }
        if (i + 8 < n)
            __builtin_prefetch(records + e[i + 8].at + ENTRY_HEAD_BYTES + depth);
        e[i].prefix = wb_sorter_entry_prefix(wb_sorter_entry_key(&e[i], records).ptr + depth, e[i].key_len - depth);
    }
    return ended;
}

/*
 * The keys of a group are equal before depth. Returns the depth at which they start to differ if that is at least 8
 * bytes further on, otherwise depth.
 */
static uint32_t skip_common(const char *records, const struct wb_sorter_entry *e, size_t n, uint32_t depth)
{
    WB_CHECK(n >= 2);
    struct wb_slice first = wb_sorter_entry_key(&e[0], records);
    size_t common = first.len;

    for (size_t i = 1; i < n && common >= depth + 8; i++) {
        struct wb_slice key = wb_sorter_entry_key(&e[i], records);
        if (i + 8 < n)
            __builtin_prefetch(records + e[i + 8].at + ENTRY_HEAD_BYTES + depth);
        if (key.len < depth)
            return depth;
        struct wb_slice a = wb_slice(first.ptr + depth, common - depth);
        struct wb_slice b = wb_slice(key.ptr + depth, key.len - depth);
        common = depth + wb_table_key_shared(a, b);
    }
    return common >= depth + 8 ? (uint32_t)common : depth;
}

/* How many splits a group of n entries may take before the pivots count as bad: 3 log2(n). */
static unsigned splits_allowed(size_t n)
{
    unsigned bits = 0;

    WB_CHECK(n > 0);
    for (; n; n >>= 1)
        bits++;
    return 3 * bits;
}

/* Entries that are equal before level.depth and still have to be sorted. */
struct entry_group {
    struct wb_sorter_entry *e;
    size_t n;
    struct prefix_level level;
    unsigned splits_left; /* before a heap sort takes over */
};

/* Splits a group into at most four groups and returns their number. The largest comes last. */
static unsigned split(const char *records, const struct entry_group *g, struct entry_group parts[4])
{
    size_t equal, greater;
    unsigned count = 0;

    WB_CHECK(g->n > SMALL);
    WB_CHECK(g->splits_left > 0);
    partition(g->e, g->n, choose_pivot(g->e, g->n), &equal, &greater);
    if (equal)
        parts[count++] = (struct entry_group){g->e, equal, g->level, g->splits_left - 1};
    if (greater < g->n)
        parts[count++] = (struct entry_group){g->e + greater, g->n - greater, g->level, g->splits_left - 1};
    if (!g->level.last && greater - equal > 1) {
        struct wb_sorter_entry *e = g->e + equal;
        size_t n = greater - equal;
        uint32_t depth = skip_common(records, e, n, g->level.depth + 8);
        size_t ended = fetch_next(records, e, n, depth);
        if (ended > 1)
            parts[count++] = (struct entry_group){e, ended, {0, true}, splits_allowed(ended)};
        if (n - ended > 1)
            parts[count++] = (struct entry_group){e + ended, n - ended, {depth, false}, splits_allowed(n - ended)};
    }
    for (unsigned i = 0; i + 1 < count; i++)
        if (parts[i].n > parts[count - 1].n) {
            struct entry_group larger = parts[i];
            parts[i] = parts[count - 1];
            parts[count - 1] = larger;
        }
    return count;
}

static void sort_group(const char *records, struct entry_group g)
{
    struct entry_group parts[4];

    while (g.n > SMALL && g.splits_left > 0) {
        unsigned count = split(records, &g, parts);
        if (count == 0)
            return;
        for (unsigned i = 0; i + 1 < count; i++) {
            WB_CHECK(parts[i].n <= g.n / 2); /* so the recursion is never deeper than the logarithm of n */
            sort_group(records, parts[i]);
        }
        g = parts[count - 1];
    }
    if (g.n > SMALL)
        heap_sort(records, g.e, g.n, g.level);
    else
        insertion_sort(records, g.e, g.n, g.level);
}

void wb_sorter_entries_sort(struct wb_sorter_entry *entries, size_t count, const char *records)
{
    WB_CHECK(entries != NULL);
    WB_CHECK(count > 0);
    WB_CHECK(records != NULL);
    sort_group(records, (struct entry_group){entries, count, {0, false}, splits_allowed(count)});
    /* The ends are in order; test_sorter.c compares everything between them. */
    WB_CHECK(wb_slice_compare(wb_sorter_entry_key(&entries[0], records),
                              wb_sorter_entry_key(&entries[count - 1], records)) <= 0);
}
