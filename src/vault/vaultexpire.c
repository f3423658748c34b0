/* vaultexpire.c - decides which states of a vault end (vaultexpire.h). Everything else follows from lifetimes. */
#include "vault/vaultexpire.h"
#include "base/date.h"

#define ALL_MS (15 * (int64_t)WB_MINUTE_MS)

/* Which span of time a point stands for: of all in one span, the last one stays. 0: it stands for itself. */
static int64_t span_of(int64_t age_ms)
{
    return age_ms <= ALL_MS ? 0 : age_ms <= WB_DAY_MS ? WB_MINUTE_MS : WB_HOUR_MS;
}

int wb_vault_expire(const struct wb_vault_points *points, int64_t now_ms, int64_t keep_ms, bool all,
                    struct wb_vault_numbers *ended, size_t *old_out)
{
    int err = 0;

    *old_out = 0;
    for (size_t i = 0; err == 0 && i < points->count; i++) {
        const struct wb_vault_point *point = &points->items[i], *next = i + 1 < points->count ? point + 1 : NULL;
        int64_t age_ms = now_ms - point->time_ms, span = span_of(age_ms);
        bool old = all || keep_ms == 0 || age_ms > keep_ms;
        bool many = span && next && next->time_ms >= 0 && point->time_ms / span == next->time_ms / span;
        *old_out += old;
        if (old || many)
            err = wb_vec_push(ended, point->number);
    }
    return err;
}
