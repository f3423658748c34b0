/*
 * vaultshipper.h - private to vault: a process that ships, between two shipments.
 *
 *   open -> [ prepare: head, owner, manifest -> collect -> plan -> put -> shipment -> head -> remember -> delete ] ...
 * -> close
 */
#ifndef WB_VAULT_VAULTSHIPPER_H
#define WB_VAULT_VAULTSHIPPER_H

#include "vault/vault.h"
#include "vault/vaultfetch.h"
#include "vault/vaultmemory.h"
#include "vault/vaultplan.h"
#include "vault/vaultput.h"
#include "vault/vaultstatus.h"

#define WB_VAULT_SHIPPER_MAGIC 0x57425653u

struct wb_vault_shipper {
    unsigned magic;
    char *dir;
    struct wb_vault_ship_options options;
    struct wb_object_store *store;
    uint8_t repository[WB_VAULT_ID_BYTES];
    struct wb_vault_memory memory;
    struct wb_vault_noted status;

    /* What the vault says. */
    bool has_head;
    struct wb_vault_head head;         /* as it was read last */
    struct wb_vault_manifest manifest; /* number 0: nothing, or not read */
    bool trusted;                      /* the manifest's newest point came from this copy, and nothing is in doubt */
    bool rewrite;                      /* head has to be written although nothing is new... */
    uint64_t term;                     /* ...with this term */
    bool lost;                         /* another copy is the owner, or it is the vault of another repository */

    /* What this process ships. */
    uint64_t run;
    uint32_t count;
    struct wb_vault_garbages orphans; /* shipments that were put, but perhaps not named by any head */
    uint64_t begun;                   /* the shipment that DIR/vault knows to be under way */
    struct wb_vault_stamps stamps;    /* files as they were at shipment stamps_number, in a term */
    struct wb_buf store_stamps;
    uint64_t stamps_number, stamps_term;
    struct wb_store_state *last; /* the state of shipment last_number; NULL: none */
    uint64_t last_number;
    struct wb_store_state *anchor; /* while it follows: that of the last full one; it may be `last` */
    uint64_t anchor_number;
    int64_t marked_ns, expired_ms;
    uint64_t look;
    bool looked, fresh;
};

/* ---- vaultshipper.c ------------------------------------------------------------------------------------------ */

/* For people who watch: so many bytes are to be shipped; the newest state is safe; the last attempt has failed. */
void wb_vault_note_waiting(struct wb_vault_shipper *shipper, uint64_t bytes);
void wb_vault_note_safe(struct wb_vault_shipper *shipper);
void wb_vault_note_failure(struct wb_vault_shipper *shipper);

/* Marks the state that was shipped last, so that the next process finds what has changed since; and saves all that is
 * known. */
int wb_vault_save_stamps(struct wb_vault_shipper *shipper);
int wb_vault_mark_last(struct wb_vault_shipper *shipper);

/* ---- vaultowner.c -------------------------------------------------------------------------------------------- */

/*
 * Reads head and, if need be, the manifest, and decides whose the vault is. WB_E_DENIED, with `lost`, if this copy may
 * not ship.
 */
int wb_vault_prepare(struct wb_vault_shipper *shipper);

/* Whether head is still what it was in prepare. */
int wb_vault_check_head(struct wb_vault_shipper *shipper);

/* Writes head, which names the manifest's newest shipment. */
int wb_vault_put_head(struct wb_vault_shipper *shipper);

/* ---- vaultshiprows.c ----------------------------------------------------------------------------------------- */

/*
 * Plans the rows of all parts, and hands them to the putter. before() is called before the first one is. merge: what
 * was shipped since the last full shipment may be put together.
 */
int wb_vault_ship_rows(struct wb_vault_shipper *shipper, struct wb_vault_plan *plan, struct wb_vault_putter *putter,
                       bool merge, int (*before)(struct wb_vault_shipper *shipper, uint64_t number));

/* ---- vaultclean.c -------------------------------------------------------------------------------------------- */

/* Deletes the manifest's garbage; what is alive in it is a mistake, and stays. */
void wb_vault_clean_garbage(struct wb_vault_shipper *shipper);

/* Deletes what killed and failed attempts have left. */
int wb_vault_clean_leftovers(struct wb_vault_shipper *shipper);

#endif
