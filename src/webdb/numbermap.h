/*
 * numbermap.h - arrays and sets of 32-bit numbers that may be larger than memory.
 *
 * A merge needs a few of these: from an old page number to the new one, from the id of a URL to its page number, and so
 * on. The array is a mapping of a file without a name, so that the kernel can write it out when memory is short.
 */
#ifndef WB_WEBDB_NUMBERMAP_H
#define WB_WEBDB_NUMBERMAP_H

#include "base/check.h"
#include "base/error.h"
#include "os/nameless.h"

#define WB_NO_NUMBER UINT32_MAX         /* the thing has no number, or no longer has one */
#define WB_NUMBERS_MAX (UINT32_MAX - 1) /* how many pages, contents or ids there can be */
_Static_assert(WB_NUMBERS_MAX < WB_NO_NUMBER, "the highest number is not the mark for none");

struct wb_numbermap {
    uint32_t *numbers; /* NULL if count is 0 */
    uint64_t count;
};

/* All numbers are 0 at first. dir: where the file is made. */
static inline int wb_numbermap_open(const char *dir, uint64_t count, struct wb_numbermap *map_out)
{
    void *memory = NULL;

    WB_CHECK(dir != NULL);
    *map_out = (struct wb_numbermap){NULL, 0};
    if (count == 0)
        return 0;
    if (count > WB_NUMBERS_MAX)
        return wb_fail(WB_E_LIMIT, "%s: more than %u numbers", dir, WB_NUMBERS_MAX);
    int err = wb_nameless_map(dir, count * sizeof *map_out->numbers, &memory);
    WB_CHECK(err < 0 || memory != NULL);
    if (err == 0)
        *map_out = (struct wb_numbermap){memory, count};
    return err;
}

static inline void wb_numbermap_close(struct wb_numbermap *map)
{
    WB_CHECK((map->numbers == NULL) == (map->count == 0));
    if (map->numbers)
        wb_nameless_unmap(map->numbers, map->count * sizeof *map->numbers);
    *map = (struct wb_numbermap){NULL, 0};
}

static inline void wb_numbermap_set(struct wb_numbermap *map, uint64_t at, uint32_t number)
{
    WB_CHECK(at < map->count);
    map->numbers[at] = number;
}

/*
 * A set of numbers that are added in any order, and returned in ascending order: the pages that link to one target.
 * They are kept in an array; if they are very many, as bits in a mapped file, one for each possible number.
 *
 *   wb_numberset_add() ... -> wb_numberset_sort() -> wb_numberset_next() ... until it returns 0: it is empty again
 *
 * Zeroed memory with dir and limit set is an empty set. After an error it can only be released.
 */
struct wb_numberset {
    const char *dir;  /* where the file is made */
    uint64_t limit;   /* all numbers are less than this */
    uint32_t *numbers, *spare; /* spare: for sorting */
    size_t count, cap, spare_cap;
    bool sorted;      /* the numbers can be returned */
    bool in_bits;     /* numbers have been moved to bits */
    uint64_t *bits;   /* NULL until they are needed for the first time; all 0 unless in_bits */
    uint64_t bit_at;  /* the next word to return */
};

/* WB_E_CORRUPT if it finds that a number was added before; otherwise wb_numberset_sort() finds it. */
int wb_numberset_add(struct wb_numberset *set, uint32_t number);
int wb_numberset_sort(struct wb_numberset *set);

/* Returns 1 and some numbers, which are valid until the next call with this set; 0 if there are no more. */
int wb_numberset_next(struct wb_numberset *set, const uint32_t **numbers_out, size_t *count_out);
void wb_numberset_release(struct wb_numberset *set);

#endif
