/*
 * numbermap.h - an array of 32-bit numbers, indexed by number, that may be larger than memory.
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

#endif
