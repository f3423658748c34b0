/*
 * sorter_sort.c - sorts the entries of a chunk by their keys: multikey quicksort over cached prefixes.
 *
 * Entries are split three ways by 8 bytes of their keys at a time, which lie in the entries themselves. Those less and
 * greater are sorted on by the same bytes; of the equal ones the next 8 bytes are fetched, behind what all of them have in common.
 * A key is touched at most twice for each 8 bytes that it shares with others, however long the common beginnings are.
 *
 * The order of equal keys is that of their places in memory. Keys come from the web: where the pivots are bad again and
 * again, a heap sort takes over, and the recursion is into the smaller parts only.
 */
#include "table/sorter.h"

enum { SMALL = 24, LARGE = 256 };

struct sorting {
    const char *records;
};

/* What the prefixes of a group are: bytes of the keys from depth; or numbers that differ all, which settle the order. */
struct level {
    uint32_t depth;
    bool last;
};

static inline void exchange(struct wb_sorter_entry *a, struct wb_sorter_entry *b)
{
    struct wb_sorter_entry c = *a;

    *a = *b;
    *b = c;
}

/* Equal prefixes: the rest of the keys, then their places. */
static int compare_rest(const struct sorting *s, const struct wb_sorter_entry *a, const struct wb_sorter_entry *b, uint32_t depth)
{
    uint32_t from = depth + 8, least = a->key_len < b->key_len ? a->key_len : b->key_len;

    if (least > from) {
        int order = memcmp(wb_sorter_entry_key(a, s->records).ptr + from, wb_sorter_entry_key(b, s->records).ptr + from, least - from);
        if (order)
            return order;
    }
    /* One key begins with the other (behind the end of a key the prefix has zeros, and so has the longer one). */
    if (a->key_len != b->key_len)
        return a->key_len < b->key_len ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static inline bool is_less(const struct sorting *s, const struct wb_sorter_entry *a, const struct wb_sorter_entry *b, struct level level)
{
    if (a->prefix != b->prefix)
        return a->prefix < b->prefix;
    return !level.last && compare_rest(s, a, b, level.depth) < 0;
}

static void insertion_sort(const struct sorting *s, struct wb_sorter_entry *e, size_t n, struct level level)
{
    for (size_t i = 1; i < n; i++) {
        struct wb_sorter_entry moving = e[i];
        size_t to = i;
        for (; to > 0 && is_less(s, &moving, &e[to - 1], level); to--)
            e[to] = e[to - 1];
        e[to] = moving;
    }
}

static void sift_down(const struct sorting *s, struct wb_sorter_entry *e, size_t at, size_t n, struct level level)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_less(s, &e[child], &e[child + 1], level))
            child++;
        if (!is_less(s, &e[at], &e[child], level))
            break;
        exchange(&e[at], &e[child]);
    }
}

static void heap_sort(const struct sorting *s, struct wb_sorter_entry *e, size_t n, struct level level)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(s, e, i, n, level);
    for (size_t end = n; --end > 0;) {
        exchange(&e[0], &e[end]);
        sift_down(s, e, 0, end, level);
    }
}

static uint64_t median3(uint64_t a, uint64_t b, uint64_t c)
{
    return a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
}

static uint64_t choose_pivot(const struct wb_sorter_entry *e, size_t n)
{
    size_t step = n / 8, middle = n / 2;

    if (n < LARGE)
        return median3(e[0].prefix, e[middle].prefix, e[n - 1].prefix);
    return median3(median3(e[0].prefix, e[step].prefix, e[2 * step].prefix),
                   median3(e[middle - step].prefix, e[middle].prefix, e[middle + step].prefix),
                   median3(e[n - 1 - 2 * step].prefix, e[n - 1 - step].prefix, e[n - 1].prefix));
}

/* Less, equal, greater: [0, *equal_out), [*equal_out, *greater_out), the rest. */
static void partition(struct wb_sorter_entry *e, size_t n, uint64_t pivot, size_t *equal_out, size_t *greater_out)
{
    /* Equal ones gather at both ends and are brought to the middle afterwards: few of them is the common case. */
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
    size_t less = low - left, greater = right - high;
    for (size_t i = 0, m = left < less ? left : less; i < m; i++)
        exchange(&e[i], &e[low - 1 - i]);
    for (size_t i = 0, m = n - right < greater ? n - right : greater; i < m; i++)
        exchange(&e[high + i], &e[n - 1 - i]);
    *equal_out = less;
    *greater_out = n - greater;
}

/* Ended keys first; returns how many. Their prefixes become what settles their order, those of the others the next bytes. */
static size_t fetch_next(const struct sorting *s, struct wb_sorter_entry *e, size_t n, uint32_t depth)
{
    size_t ended = 0;

    for (size_t i = 0; i < n; i++) {
        if (e[i].key_len <= depth) {
            e[i].prefix = (uint64_t)e[i].key_len << 32 | e[i].at;
            exchange(&e[ended++], &e[i]);
            continue;
        }
        if (i + 8 < n)
            __builtin_prefetch(s->records + e[i + 8].at + ENTRY_HEAD_BYTES + depth);
        e[i].prefix = wb_sorter_entry_prefix(wb_sorter_entry_key(&e[i], s->records).ptr + depth, e[i].key_len - depth);
    }
    return ended;
}

/* Where the keys of a group that are equal before depth begin to differ, if that is not within the next 8 bytes. */
static uint32_t skip_common(const struct sorting *s, const struct wb_sorter_entry *e, size_t n, uint32_t depth)
{
    struct wb_slice first = wb_sorter_entry_key(&e[0], s->records);
    size_t common = first.len;

    for (size_t i = 1; i < n && common >= depth + 8; i++) {
        struct wb_slice key = wb_sorter_entry_key(&e[i], s->records);
        if (i + 8 < n)
            __builtin_prefetch(s->records + e[i + 8].at + ENTRY_HEAD_BYTES + depth);
        if (key.len < depth)
            return depth;
        common = depth + wb_table_key_shared(wb_slice(first.ptr + depth, common - depth), wb_slice(key.ptr + depth, key.len - depth));
    }
    return common >= depth + 8 ? (uint32_t)common : depth;
}

static unsigned patience(size_t n)
{
    unsigned bits = 0;

    for (; n; n >>= 1)
        bits++;
    return 3 * bits;
}

struct group {
    struct wb_sorter_entry *e;
    size_t n;
    struct level level;
    unsigned luck; /* splits left before this is a heap sort's case */
};

/* Splits a group into at most four, of which the largest comes last. Returns how many. */
static unsigned split(const struct sorting *s, const struct group *g, struct group parts[4])
{
    size_t equal, greater;
    unsigned count = 0;

    partition(g->e, g->n, choose_pivot(g->e, g->n), &equal, &greater);
    if (equal)
        parts[count++] = (struct group){g->e, equal, g->level, g->luck - 1};
    if (greater < g->n)
        parts[count++] = (struct group){g->e + greater, g->n - greater, g->level, g->luck - 1};
    if (!g->level.last && greater - equal > 1) {
        struct wb_sorter_entry *e = g->e + equal;
        size_t n = greater - equal;
        uint32_t depth = skip_common(s, e, n, g->level.depth + 8);
        size_t ended = fetch_next(s, e, n, depth);
        if (ended > 1)
            parts[count++] = (struct group){e, ended, {0, true}, patience(ended)};
        if (n - ended > 1)
            parts[count++] = (struct group){e + ended, n - ended, {depth, false}, patience(n - ended)};
    }
    for (unsigned i = 0; i + 1 < count; i++)
        if (parts[i].n > parts[count - 1].n) {
            struct group larger = parts[i];
            parts[i] = parts[count - 1];
            parts[count - 1] = larger;
        }
    return count;
}

static void sort_group(const struct sorting *s, struct group g)
{
    struct group parts[4];

    while (g.n > SMALL && g.luck > 0) {
        unsigned count = split(s, &g, parts);
        if (count == 0)
            return;
        for (unsigned i = 0; i + 1 < count; i++)
            sort_group(s, parts[i]);
        g = parts[count - 1];
    }
    if (g.n > SMALL)
        heap_sort(s, g.e, g.n, g.level);
    else
        insertion_sort(s, g.e, g.n, g.level);
}

void wb_sorter_entries_sort(struct wb_sorter_entry *entries, size_t count, const char *records)
{
    struct sorting s = {records};

    sort_group(&s, (struct group){entries, count, {0, false}, patience(count)});
}
