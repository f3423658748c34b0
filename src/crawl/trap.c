/*
 * trap.c - guards against sites without end.
 *
 * The *shape* of a URL is its path and query with each run of digits replaced by '0' and each long hexadecimal word by
 * 'x'. URLs of one shape come from one template:
 *
 *   /news/2026/11/15?id=4711        ->  /news/0/0/0?id=0
 *   /s/5f2b9c0d1e4a7788ab/page      ->  /s/x/page
 *
 * Shapes are counted in a small table of fixed size, where a new shape replaces the least counted of its neighbours. A
 * trap produces many URLs, so its shape stays in the table. It knows nothing of pages but their path and SimHash.
 */
#include "crawl/trap.h"
#include "base/hash.h"
#include "base/mem.h"
#include "extract/extract.h"

#include <ctype.h>

enum {
    SHAPES = 64,
    PROBES = 8, /* slots in which a shape may be */
    SEGMENTS_MAX = WB_TRAP_DEPTH_MAX,
};

struct wb_trap_shape {
    uint64_t hash;
    uint64_t simhash;   /* of the last page of this shape */
    uint32_t urls;      /* that passed */
    uint32_t similar;   /* pages in a row that were like the one before */
    uint32_t tried;     /* asked for */
    uint32_t useful;    /* of these, URLs that gave a new page */
};

/* ---- paths that repeat themselves -------------------------------------------------------------------------------- */

/* The folders of a path; SEGMENTS_MAX + 1 if there are more than SEGMENTS_MAX. */
static size_t split_path(struct wb_slice path, struct wb_slice segments[SEGMENTS_MAX])
{
    size_t count = 0, at = 0;

    while (at < path.len && path.ptr[at] != '?') {
        size_t start = ++at;
        while (at < path.len && path.ptr[at] != '/' && path.ptr[at] != '?')
            at++;
        if (at == start)
            continue;
        if (count == SEGMENTS_MAX)
            return count + 1;
        segments[count++] = wb_slice(path.ptr + start, at - start);
    }
    return count;
}

static bool repeats(const struct wb_slice *segments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t same = 1, adjacent = 1;
        for (size_t k = i + 1; k < count; k++) {
            if (!wb_slice_equal(segments[i], segments[k]))
                continue;
            same++;
            adjacent += k == i + adjacent;
        }
        if (same > WB_TRAP_REPEAT_MAX || adjacent > WB_TRAP_ADJACENT_MAX)
            return true;
    }
    return false;
}

static const char *check_path(struct wb_slice path)
{
    struct wb_slice segments[SEGMENTS_MAX];
    size_t count;

    if (path.len > WB_TRAP_URL_MAX)
        return "trap:long";
    count = split_path(path, segments);
    if (count > SEGMENTS_MAX)
        return "trap:long";
    return repeats(segments, count) ? "trap:path" : NULL;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* Writes the shape of a path and returns its length. */
static size_t shape_of(struct wb_slice path, char *shape, size_t size)
{
    size_t len = 0;

    for (size_t i = 0; i < path.len && len + 1 < size;) {
        size_t digits = 0, hex = 0;
        while (i + digits < path.len && isdigit((unsigned char)path.ptr[i + digits]))
            digits++;
        while (i + hex < path.len && isxdigit((unsigned char)path.ptr[i + hex]))
            hex++;
        if (hex >= 16) {
            shape[len++] = 'x';
            i += hex;
        } else if (digits) {
            shape[len++] = '0';
            i += digits;
        } else {
            shape[len++] = path.ptr[i++];
        }
    }
    return len;
}

static bool has_word(struct wb_slice s, const char *word)
{
    size_t len = strlen(word);

    for (size_t i = 0; i + len <= s.len; i++)
        if (wb_slice_equal_nocase(wb_slice(s.ptr + i, len), wb_slice(word, len)))
            return true;
    return false;
}

/* Whether the shape looks like a template that turns dates into pages. */
static bool is_calendar(struct wb_slice shape)
{
    static const char *const words[] = {"calendar", "/cal?",  "/cal/",  "month=0", "year=0",
                                        "day=0",    "date=0", "week=0", "/0/0/0",  "events/0"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has_word(shape, words[i]))
            return has_word(shape, "0");
    return false;
}

/* Whether the path has a "year=" with a year far in the future, or from before there were web pages. */
static bool odd_year(struct wb_slice path, int64_t now_ms)
{
    int64_t this_year = 1970 + now_ms / 31556952000;

    for (size_t i = 0; i + 4 <= path.len; i++) {
        int64_t year = 0;
        size_t k = 0;
        if (!isdigit((unsigned char)path.ptr[i]) || (i && isdigit((unsigned char)path.ptr[i - 1])))
            continue;
        for (; i + k < path.len && k < 5 && isdigit((unsigned char)path.ptr[i + k]); k++)
            year = year * 10 + (path.ptr[i + k] - '0');
        bool told = i >= 5 && wb_slice_equal_nocase(wb_slice(path.ptr + i - 5, 5), WB_SLICE_LIT("year="));
        if (k == 4 && told && (year > this_year + 5 || year < 1900))
            return true;
    }
    return false;
}

/* Finds a shape or adds it. NULL: out of memory, which costs only the guard. */
static struct wb_trap_shape *find_shape(struct wb_trap *trap, uint64_t hash)
{
    struct wb_trap_shape *least = NULL;

    if (!trap->shapes)
        trap->shapes = wb_alloc_zero(SHAPES, sizeof *trap->shapes);
    if (!trap->shapes)
        return NULL;
    for (size_t i = 0; i < PROBES; i++) {
        struct wb_trap_shape *shape = &trap->shapes[(hash + i) % SHAPES];
        if (shape->hash == hash)
            return shape;
        if (!least || shape->urls < least->urls)
            least = shape;
    }
    *least = (struct wb_trap_shape){.hash = hash};
    return least;
}

static bool has_digit(struct wb_slice path)
{
    for (size_t i = 0; i < path.len; i++)
        if (isdigit((unsigned char)path.ptr[i]))
            return true;
    return false;
}

const char *wb_trap_check(struct wb_trap *trap, struct wb_slice path, int64_t now_ms)
{
    char text[WB_TRAP_URL_MAX + 1];
    const char *why = check_path(path);

    if (why || !has_digit(path))
        return why;
    if (odd_year(path, now_ms))
        return "trap:calendar";
    struct wb_slice shape = wb_slice(text, shape_of(path, text, sizeof text));
    struct wb_trap_shape *known = find_shape(trap, wb_hash64(shape.ptr, shape.len) | 1);
    if (!known)
        return NULL;
    if (known->similar >= WB_TRAP_SIMILAR_MAX)
        return "trap:similar";
    if (known->urls >= WB_TRAP_CALENDAR_MAX && is_calendar(shape))
        return "trap:calendar";
    known->urls++;
    return NULL;
}

/* The shape of a path; NULL if it has no numbers, is too long, or memory ran out. */
static struct wb_trap_shape *shape_at(struct wb_trap *trap, struct wb_slice path)
{
    char text[WB_TRAP_URL_MAX + 1];

    if (path.len > WB_TRAP_URL_MAX || !has_digit(path))
        return NULL;
    size_t len = shape_of(path, text, sizeof text);
    return find_shape(trap, wb_hash64(text, len) | 1);
}

void wb_trap_tried(struct wb_trap *trap, struct wb_slice path, bool useful)
{
    struct wb_trap_shape *known = shape_at(trap, path);

    if (!known)
        return;
    known->tried++;
    known->useful += useful;
}

double wb_trap_promise(struct wb_trap *trap, struct wb_slice path)
{
    const struct wb_trap_shape *known = shape_at(trap, path);

    if (!known)
        return 1;
    /* Counts as if two had been tried and useful before, so that a new family gets some attempts. */
    double useful = (known->useful + 2.0) / (known->tried + 2.0);
    /* The more pages there are of a family, the less another one adds. */
    return useful / (1 + known->useful / (double)WB_TRAP_FAMILY);
}

void wb_trap_learn(struct wb_trap *trap, struct wb_slice path, uint64_t simhash)
{
    struct wb_trap_shape *known = simhash ? shape_at(trap, path) : NULL;

    if (!known)
        return;
    bool like = known->simhash && wb_simhash_distance(known->simhash, simhash) <= WB_TRAP_SIMILAR_BITS;
    known->similar = like ? known->similar + 1 : 0;
    known->simhash = simhash;
}

void wb_trap_release(struct wb_trap *trap)
{
    wb_free(trap->shapes);
    trap->shapes = NULL;
}
