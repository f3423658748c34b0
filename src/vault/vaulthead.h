/*
 * vaulthead.h - private to vault: the object `head`, which names the owner of a vault and the newest shipment.
 */
#ifndef WB_VAULT_VAULTHEAD_H
#define WB_VAULT_VAULTHEAD_H

#include "vault/vaultmanifest.h"

enum {
    WB_VAULT_MACHINE_MAX = 255,
    WB_VAULT_DIRECTORY_MAX = 4095,
    WB_VAULT_HEAD_MAX = 16384, /* bytes of the object */
};

struct wb_vault_head {
    uint8_t repository[WB_VAULT_ID_BYTES];
    uint8_t owner[WB_VAULT_ID_BYTES];
    uint64_t term;    /* how often the owner has changed, from 1 */
    int64_t owned_ms; /* when this one became the owner */
    char machine[WB_VAULT_MACHINE_MAX + 1];
    char directory[WB_VAULT_DIRECTORY_MAX + 1];
    struct wb_vault_object shipment; /* the newest */
    struct wb_vault_point point;     /* what it brought; point.shipment is as above */
};

/* The contents of its object. */
int wb_vault_head_encode(const struct wb_vault_head *head, struct wb_buf *contents_out);

/* name: for messages. */
int wb_vault_head_decode(const char *name, struct wb_slice contents, struct wb_vault_head *head_out);

#endif
