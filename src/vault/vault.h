/*
 * vault.h - the door of vault: how does a repository outlive its machine?
 *
 * A *vault* is the files of one repository as objects under one URL (object.h). `ship` brings what is new in a
 * repository to its vault, while others write to the repository; `restore` makes a repository of a vault.
 *
 *   shipment   the difference between two states of the repository: an object that names its predecessor and the
 * objects it needs. `head`, the only object that is ever overwritten, names the newest safe       what a restore gives
 * back, whatever happens to the machine: the state of the shipment that head names owner      the one copy of the
 * repository that may ship. Others are refused until they take the vault over
 *
 * docs/formats/vault.md has the bytes, docs/design/0055-vault.md the reasons, docs/vault.md what users do with it.
 */
#ifndef WB_VAULT_VAULT_H
#define WB_VAULT_VAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "object/object.h"

#define WB_VAULT_NAME_MAX 64

/* A state that can be restored. */
struct wb_vault_state {
    char shipment[WB_VAULT_NAME_MAX]; /* its name, as messages and --list show it */
    int64_t time_ms;                  /* when it was taken */
    uint64_t pages;
    uint64_t bytes; /* of all objects that a restore reads */
};

/* ---- shipping ------------------------------------------------------------------------------------------------ */

struct wb_vault_shipper;

struct wb_vault_ship_options {
    int64_t keep_ms; /* older states stay restorable for so long; 0: only the newest. Default: 7 days */
    bool take_over;  /* become the owner */
    bool follow;     /* keep trying when the store does not answer; otherwise give up after 30 s */
    /* Called now and then during long work, from the thread that ships; may be NULL. */
    void (*progress)(void *context, uint64_t bytes_done, uint64_t bytes_total);
    void *progress_context;
};

struct wb_vault_shipped {
    struct wb_vault_state state; /* what is safe now */
    bool anything;               /* false: nothing was new, the newest state is as before */
    uint64_t objects, bytes;     /* that were written for it */
};

/*
 * Opens the repository `dir` and its vault. WB_E_DENIED names the owner if that is another copy or another repository;
 * WB_E_NEWER if the vault has another format; WB_E_BUSY if another process ships to the same vault. With `follow`, the
 * vault is not asked yet: wb_vault_ship() says the same.
 */
int wb_vault_shipper_open(const char *dir, const char *url, const struct wb_vault_ship_options *options,
                          struct wb_vault_shipper **shipper_out);

/* After a failure: reads the keys again, which may have been renewed. */
void wb_vault_shipper_renew(struct wb_vault_shipper *shipper);

/* Ships the newest state. When it returns 0, that state is safe. */
int wb_vault_ship(struct wb_vault_shipper *shipper, struct wb_vault_shipped *shipped_out);

/* Whether the repository has changed since the last shipment, as far as that can be seen for next to nothing. */
bool wb_vault_shipper_due(struct wb_vault_shipper *shipper);

/* After a failure: another copy has become the owner, so that trying again is of no use. */
bool wb_vault_shipper_lost(const struct wb_vault_shipper *shipper);
void wb_vault_shipper_close(struct wb_vault_shipper *shipper);

/* ---- restoring, looking -------------------------------------------------------------------------------------- */

struct wb_vault_restored {
    uint64_t pages, bytes; /* bytes: of the files that were written */
};

/*
 * Makes a repository in dir of the newest state, or with at_ms >= 0 of the newest that is not later. On failure dir is
 * as it was: absent or empty. WB_E_NOTFOUND: no vault there, or no state so old. WB_E_CORRUPT names the object.
 */
int wb_vault_restore(const char *url, const char *dir, int64_t at_ms,
                     void (*progress)(void *context, uint64_t bytes_done, uint64_t bytes_total), void *context,
                     struct wb_vault_restored *restored_out);

/* Calls each() for every state that can be restored, oldest first. */
int wb_vault_list(const char *url, int (*each)(void *context, const struct wb_vault_state *state), void *context);

/*
 * Reads every object that a state needs. Calls found() for each that is damaged or missing (problem), and for objects
 * that nothing needs (a note: a killed backup has left them). Returns 0 even if there are problems.
 */
int wb_vault_verify(const char *url,
                    void (*found)(void *context, bool problem, const char *object, const char *message), void *context,
                    uint64_t *objects_out, uint64_t *bytes_out);

/* ---- what a repository remembers of its vaults --------------------------------------------------------------------
 */

/* For stat, metrics and the dashboard: read from DIR/vault, without asking any store. */
struct wb_vault_status {
    const char *url;
    int64_t safe_ms; /* when the newest safe state was taken; 0: none yet */
    uint64_t safe_pages;
    int64_t since_ms;        /* the first shipment to this vault */
    int64_t unsafe_since_ms; /* since when there is something that is not safe, as the last look saw it; 0: nothing */
    uint64_t bytes_waiting;  /* what the last look found to be shipped */
    bool following;          /* a process ships continuously */
    const char *error;       /* the last failure, if nothing has succeeded since; otherwise empty */
    int64_t error_ms;
};
int wb_vault_status_each(const char *dir, int (*each)(void *context, const struct wb_vault_status *status),
                         void *context);

#endif
