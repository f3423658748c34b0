/*
 * vaultmemory.h - private to vault: what a repository remembers of a vault that it ships to.
 *
 *   DIR/vault/owner                      which copy of the repository this is: a random id
 *   DIR/vault/0123456789abcdef/          of one vault; the name is the hash of its URL
 *     memory                             text: what was shipped last, and what is under way
 *     stamps                             files as they were then
 *     parts                              objects of the shipment under way
 *     status                             text: for people who watch
 *     lock                               locked by the process that ships
 *
 * Everything here can be lost: then the next backup compares all bytes with what is in the vault. docs/formats/vault.md
 * has the bytes.
 */
#ifndef WB_VAULT_VAULTMEMORY_H
#define WB_VAULT_VAULTMEMORY_H

#include "os/file.h"
#include "os/folder.h"
#include "vault/vaultmanifest.h"

#define WB_VAULT_FOLDER "vault"

enum { WB_VAULT_STALE_MAX = 256, WB_VAULT_MARK_MAX = 4096 };

/* A file as it was when it was shipped: if it has this stamp, it has the same bytes. */
struct wb_vault_stamp {
    char *name;
    uint64_t size;
    struct wb_folder_stamp stamp;
};
struct wb_vault_stamps WB_VEC_OF(struct wb_vault_stamp);

struct wb_vault_memory {
    char *folder; /* of this vault */
    char *url;
    struct wb_file lock;
    bool whole;                       /* it was opened: the lock is ours, and what is there was read */
    uint8_t owner[WB_VAULT_ID_BYTES]; /* of this copy */
    int64_t since_ms;                 /* the first shipment; 0: there was none */
    uint64_t term;                    /* the one in which this copy was the owner; 0: it never was */
    uint64_t number;                  /* the newest shipment of this copy... */
    struct wb_vault_object shipment;  /* ...and its object */
    uint64_t deleted;                 /* the shipment whose garbage is gone */
    uint64_t mark_number;             /* the shipment whose state is marked; 0: none */
    struct wb_buf mark;
    uint64_t attempt;              /* the shipment that is under way, or was when the process died; 0: none */
    uint64_t run;                  /* of the process that tries it */
    struct wb_vault_numbers stale; /* runs that were killed, and may have left objects */
};

/*
 * Opens it for a process that ships, and makes what is not there. WB_E_BUSY if another process ships to this vault. If
 * this directory is a copy of another one, nothing is remembered, and *orphan_out has the mark of the other one
 * (release it).
 */
int wb_vault_memory_open(const char *dir, const char *url, struct wb_vault_memory *memory_out,
                         struct wb_buf *orphan_out);
void wb_vault_memory_close(struct wb_vault_memory *memory);

/* Replaces the file, durably. */
int wb_vault_memory_save(const struct wb_vault_memory *memory);

/* ---- stamps: number says of which shipment. store: wb_store_state_stamps(). Sorted by name. ------------------ */

int wb_vault_stamps_save(const struct wb_vault_memory *memory, uint64_t number, uint64_t term, struct wb_slice store,
                         const struct wb_vault_stamps *stamps);

/* number_out is 0 if there are none that can be used. */
int wb_vault_stamps_load(const struct wb_vault_memory *memory, uint64_t *number_out, uint64_t *term_out,
                         struct wb_buf *store_out, struct wb_vault_stamps *stamps_out);
void wb_vault_stamps_release(struct wb_vault_stamps *stamps);

/* NULL if there is none. */
const struct wb_vault_stamp *wb_vault_stamps_find(const struct wb_vault_stamps *stamps, const char *name);

/* ---- parts: objects that were put, but that no shipment has yet ---------------------------------------------- */

struct wb_vault_part {
    uint64_t file; /* hash of the path */
    uint64_t offset;
    uint32_t len;
    struct wb_vault_object object;
};
struct wb_vault_parts WB_VEC_OF(struct wb_vault_part);

/* Those of earlier processes. What is damaged ends the list. */
int wb_vault_parts_load(const struct wb_vault_memory *memory, struct wb_vault_parts *parts_out);

/* Opens the file to append to it. */
int wb_vault_parts_open(const struct wb_vault_memory *memory, struct wb_file *file_out, uint64_t *end_out);

/* It survives kill -9, but perhaps not a power failure. */
int wb_vault_parts_add(const struct wb_file *file, uint64_t *end_inout, const struct wb_vault_part *part);
int wb_vault_parts_clear(const struct wb_vault_memory *memory);

#endif
