/*
 * sorted_source.c - damage that a source of sorted scans has found (sorted_source.h).
 */
#include "pagefile/sorted_source.h"
#include "base/error.h"

int wb_sorted_damaged(struct wb_sorted_chunk *chunk, uint32_t segment, uint64_t at)
{
    struct wb_error_copy why;

    wb_error_save(WB_E_CORRUPT, &why);
    for (size_t i = 0; i < chunk->known.count; i++)
        if (chunk->known.items[i].segment == segment && chunk->known.items[i].at == at)
            return 0;
    int err = wb_vec_push(&chunk->errors, why);
    if (err == 0) {
        err = wb_vec_push(&chunk->known, (struct wb_sorted_damage){segment, at});
        chunk->errors.count -= err < 0;
    }
    return err;
}
