/*
 * vaultfetch.h - private to vault: reads objects of a vault. Nothing is used before its checksum was checked; what
 * arrives damaged is asked for again, because the way here may have damaged it.
 */
#ifndef WB_VAULT_VAULTFETCH_H
#define WB_VAULT_VAULTFETCH_H

#include "vault/vaulthead.h"

/* "s3://BUCKET/PREFIX/objects/...", for messages. */
#define WB_VAULT_MESSAGE_NAME_MAX 4352
void wb_vault_full_name(const struct wb_object_store *store, const char *name,
                        char full_out[WB_VAULT_MESSAGE_NAME_MAX]);

/*
 * Reads the object that a manifest names. The contents are in *bytes or *mem, which are the caller's. WB_E_CORRUPT if
 * it is damaged, WB_E_NOTFOUND if it is missing; both name it.
 */
int wb_vault_fetch(struct wb_object_store *store, enum wb_vault_kind kind, const struct wb_vault_object *object,
                   struct wb_buf *bytes, struct wb_buf *mem, struct wb_slice *contents_out);

/* WB_E_NOTFOUND, which names the URL: there is no vault. */
int wb_vault_fetch_head(struct wb_object_store *store, struct wb_vault_head *head_out);

/* The manifest whose newest shipment head names. Release it even after an error. */
int wb_vault_fetch_manifest(struct wb_object_store *store, const struct wb_vault_head *head,
                            struct wb_vault_manifest *manifest_out);

/* The same; after an error, *at_out is the shipment that could not be read. */
int wb_vault_fetch_manifest_at(struct wb_object_store *store, const struct wb_vault_head *head,
                               struct wb_vault_manifest *manifest_out, struct wb_vault_object *at_out);

#endif
