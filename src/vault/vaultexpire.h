/* vaultexpire.h - private to vault: which states can be restored no longer. */
#ifndef WB_VAULT_VAULTEXPIRE_H
#define WB_VAULT_VAULTEXPIRE_H

#include "vault/vaultmanifest.h"

/*
 * Appends the numbers of the points that end when a new one comes: those older than keep_ms (0: all), and some of very
 * many: all of the last 15 minutes stay, then the last one of each minute for a day, then the last one of each hour.
 * With `all`, every point ends. *old_out: how many of them are too old, rather than too many.
 */
int wb_vault_expire(const struct wb_vault_points *points, int64_t now_ms, int64_t keep_ms, bool all,
                    struct wb_vault_numbers *ended, size_t *old_out);

#endif
