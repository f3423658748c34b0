/* numbermap.c - an array of numbers in a mapped file without a name: see numbermap.h. */
#include "webdb/numbermap.h"
#include "base/error.h"
#include "os/nameless.h"

int wb_numbermap_open(const char *dir, uint64_t count, struct wb_numbermap *map_out)
{
    void *memory = NULL;

    *map_out = (struct wb_numbermap){NULL, 0};
    if (count == 0)
        return 0;
    if (count > WB_NUMBERS_MAX)
        return wb_fail(WB_E_LIMIT, "%s: more than %u numbers", dir, WB_NUMBERS_MAX);
    int err = wb_nameless_map(dir, count * sizeof *map_out->numbers, &memory);
    if (err == 0)
        *map_out = (struct wb_numbermap){memory, count};
    return err;
}

void wb_numbermap_close(struct wb_numbermap *map)
{
    WB_CHECK((map->numbers == NULL) == (map->count == 0));
    if (map->numbers)
        wb_nameless_unmap(map->numbers, map->count * sizeof *map->numbers);
    *map = (struct wb_numbermap){NULL, 0};
}
