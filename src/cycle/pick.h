/*
 * pick.h - keeps the most urgent of the pages that are offered, up to a maximum number. A page takes 24 bytes.
 */
#ifndef WB_CYCLE_PICK_H
#define WB_CYCLE_PICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wb_pick_tier { WB_PICK_TIER_PUSHED, WB_PICK_TIER_EXPIRING, WB_PICK_TIER_VALUE };

/* Why a page was picked; only for the counts. */
enum wb_pick_kind { WB_PICK_PUSHED, WB_PICK_EXPIRING, WB_PICK_FRESH, WB_PICK_DUE };

struct wb_pick_item {
    uint64_t number;  /* the page's number in the edition of webdb */
    double value;     /* within a tier, higher values come first */
    uint8_t tier;     /* enum wb_pick_tier; lower tiers come first */
    uint8_t kind;     /* enum wb_pick_kind */
};

struct wb_pick {
    struct wb_pick_item *items;   /* a heap with the least urgent item on top, until it is sorted */
    size_t count, cap;
    uint64_t max;              /* UINT64_MAX: all */
};

/* True if a is more urgent than b. Ties are broken by number, so that the same pages give the same choice. */
bool wb_pick_item_before(const struct wb_pick_item *a, const struct wb_pick_item *b);

/* Adds an item; if there are too many, drops the least urgent one. WB_E_NOMEM. */
int wb_pick_offer(struct wb_pick *pick, const struct wb_pick_item *item);

/* Drops the least urgent items until at most max are left. */
void wb_pick_trim(struct wb_pick *pick, uint64_t max);
void wb_pick_release(struct wb_pick *pick);

#endif
