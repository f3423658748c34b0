/* vaultpoints.c - finds the state that somebody means (vaultpoints.h). */
#include "vault/vaultpoints.h"
#include "base/date.h"
#include "base/error.h"

#include <stdio.h>

void wb_vault_state_of(const struct wb_vault_point *point, struct wb_vault_state *state_out)
{
    char name[WB_OBJECT_NAME_MAX];

    wb_vault_object_name("", &point->shipment, name);
    *state_out = (struct wb_vault_state){.time_ms = point->time_ms, .pages = point->pages, .bytes = point->bytes};
    snprintf(state_out->shipment, sizeof state_out->shipment, "%.*s", WB_VAULT_NAME_MAX - 1, name);
}

int wb_vault_choose_point(const struct wb_object_store *store, const struct wb_vault_manifest *manifest, int64_t at_ms,
                          struct wb_vault_point *point_out)
{
    char at[WB_DATE_TEXT_MAX], oldest[WB_DATE_TEXT_MAX];

    *point_out = (struct wb_vault_point){.number = 0};
    for (size_t i = manifest->points.count; i-- > 0;)
        if (at_ms < 0 || manifest->points.items[i].time_ms <= at_ms) {
            *point_out = manifest->points.items[i];
            return 0;
        }
    if (manifest->points.count == 0)
        return wb_fail(WB_E_NOTFOUND, "%s has no state that can be restored", wb_object_url(store));
    wb_date_format(at_ms, at);
    wb_date_format(manifest->points.items[0].time_ms, oldest);
    return wb_fail(WB_E_NOTFOUND, "%s has no state that is as old as %s; the oldest one is of %s", wb_object_url(store),
                   at, oldest);
}

bool wb_vault_has_point(const struct wb_vault_manifest *manifest, const struct wb_vault_point *point)
{
    for (size_t i = 0; i < manifest->points.count; i++) {
        const struct wb_vault_point *there = &manifest->points.items[i];
        if (there->number == point->number && there->shipment.run == point->shipment.run &&
            there->shipment.count == point->shipment.count)
            return true;
    }
    return false;
}
