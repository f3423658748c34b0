/* vaultpoints.h - private to vault: states that can be restored, as people name them. */
#ifndef WB_VAULT_VAULTPOINTS_H
#define WB_VAULT_VAULTPOINTS_H

#include "vault/vault.h"
#include "vault/vaultmanifest.h"

/* What --list shows of a point. */
void wb_vault_state_of(const struct wb_vault_point *point, struct wb_vault_state *state_out);

/* The newest point, or with at_ms >= 0 the newest that is not later. WB_E_NOTFOUND names the vault and the oldest
 * point. */
int wb_vault_choose_point(const struct wb_object_store *store, const struct wb_vault_manifest *manifest, int64_t at_ms,
                          struct wb_vault_point *point_out);

/* Whether it can be restored. */
bool wb_vault_has_point(const struct wb_vault_manifest *manifest, const struct wb_vault_point *point);

#endif
