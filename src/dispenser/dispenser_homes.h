/* dispenser_homes.h - which repository a site stays with: for claims and renewals. Used inside this room only. */
#ifndef WB_DISPENSER_DISPENSER_HOMES_H
#define WB_DISPENSER_DISPENSER_HOMES_H

#include "dispenser/dispenser_rows.h"

/* A home is not written again if its time would become longer by less than this. */
#define WB_DISPENSER_SEEN_MS 5000

/* A home whose ready sites may be claimed, and how far its heads were looked at. */
struct wb_dispenser_home {
    char *name;          /* empty: sites that nobody has visited */
    int64_t rank, id;    /* its next head that can be claimed, by rank and id... */
    bool looked, over;   /* ...if it was looked for, and there is one */
};

struct wb_dispenser_homes WB_VEC_OF(struct wb_dispenser_home);

/* Inside a writing transaction: the handle's home lives until then, in its run. Does nothing if it has no home. */
int wb_dispenser_homes_seen(struct wb_dispenser *d, int64_t judge_ms, int64_t until_ms);

/*
 * Lists the homes with ready sites in the run that this handle may claim: none, its own, and those that are gone. A
 * handle without a home may claim all.
 */
int wb_dispenser_homes_open(struct wb_dispenser *d, int64_t run, int64_t judge_ms,
                            struct wb_dispenser_homes *homes_out);
void wb_dispenser_homes_release(struct wb_dispenser_homes *homes);

#endif
