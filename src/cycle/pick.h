/*
 * pick.h - the best of many: keeps the most urgent pages that were offered, at most as many as told, 24 bytes each.
 */
#ifndef WB_CYCLE_PICK_H
#define WB_CYCLE_PICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wb_pick_tier { WB_TIER_PUSHED, WB_TIER_EXPIRING, WB_TIER_VALUE };

/* Why a page is there, for the counts. */
enum wb_pick_kind { WB_PICK_PUSHED, WB_PICK_EXPIRING, WB_PICK_FRESH, WB_PICK_DUE };

struct wb_picked {
    uint64_t number;  /* of the page, in its generation of webdb */
    double value;     /* within a tier: the greater, the sooner */
    uint8_t tier;     /* enum wb_pick_tier: the lower, the sooner */
    uint8_t kind;     /* enum wb_pick_kind */
};

struct wb_pick {
    struct wb_picked *items;   /* a heap whose first is the least urgent, until sorted */
    size_t count, cap;
    uint64_t max;              /* UINT64_MAX: all */
};

/* True where a is more urgent than b. Equals go by number, so that the same pages give the same choice. */
bool wb_picked_before(const struct wb_picked *a, const struct wb_picked *b);

/* Takes it, or leaves the least urgent one out. WB_E_NOMEM. */
int wb_pick_offer(struct wb_pick *pick, const struct wb_picked *item);

/* Leaves the least urgent ones out until at most max are there. */
void wb_pick_trim(struct wb_pick *pick, uint64_t max);
void wb_pick_release(struct wb_pick *pick);

#endif
