/*
 * vaultplan.h - private to vault: what has to be shipped so that a vault has a state of a repository.
 *
 *   plan     compares the files of a moment (vaultcollect.h) with the newest point of a manifest: some pieces stay,
 * some die, and what is new becomes tasks task     a range of a file as it is now: to be put (vaultput.h), unless it
 * turns out to be what the vault has already change   the shipment that comes of it
 *
 * If the vault was written by this copy without a gap, it is *trusted*: files that only grow have their old bytes, and
 * files with the stamps of last time are unchanged. Otherwise all bytes are read and compared with the hashes in the
 * manifest.
 */
#ifndef WB_VAULT_VAULTPLAN_H
#define WB_VAULT_VAULTPLAN_H

#include "vault/vaultcollect.h"
#include "vault/vaultmanifest.h"
#include "vault/vaultmemory.h"

enum {
    WB_VAULT_CHUNK = 16 << 20,     /* bytes of a file in one object */
    WB_VAULT_ROWS_CHUNK = 4 << 20, /* of rows */
};

/* A file as it is now. */
struct wb_vault_source {
    enum wb_vault_file_kind kind;
    const char *name;
    uint64_t size;
    bool in_place, grows, unchanged;
    struct wb_slice bytes;                     /* of a small file */
    const struct wb_collected_file *collected; /* of another one; NULL: of pages */
};

/* An array of these stays where it is; each task is written by one thread. */
struct wb_vault_task {
    const struct wb_vault_source *source; /* NULL: rows */
    const char *name;                     /* of the file */
    uint32_t file;
    uint64_t offset;
    uint32_t len;
    bool run;
    struct wb_buf rows;               /* instead of a source */
    const struct wb_vault_piece *was; /* what the manifest has in exactly this range; NULL: nothing */
    /* Set by who does it: */
    bool same; /* it is what it was */
    bool put;  /* by this process, or it was tried */
    struct wb_vault_object object;
};

struct wb_vault_plan {
    const struct wb_collected *moment;
    const struct wb_vault_manifest *manifest;
    bool trusted, full;
    uint64_t number;                        /* of the shipment */
    struct wb_vault_contents old;           /* the newest point */
    WB_VEC(struct wb_vault_source) sources; /* by name */
    WB_VEC(struct wb_buf) smalls;           /* what sources borrow */
    WB_VEC(char *) names;                   /* the same */
    WB_VEC(struct wb_vault_task *) tasks;
    uint64_t bytes; /* that tasks read */
    struct wb_vault_shipment change;
    struct wb_vault_stamps stamps; /* for next time */
};

/* All zero before, but for moment, manifest, trusted, full and number. known: stamps of the manifest's newest point. */
int wb_vault_plan_files(struct wb_vault_plan *plan, const struct wb_vault_stamps *known);

/*
 * Rows of a part. With base all rows follow, in a new file. Otherwise those that differ from point `since`: what came
 * after it dies. *file_out and *offset_out say where the next rows go.
 */
int wb_vault_plan_rows(struct wb_vault_plan *plan, size_t part, bool base, uint64_t since, uint32_t *file_out,
                       uint64_t *offset_out);

/* How the rows of a part lie in the newest point. */
struct wb_vault_rows_look {
    bool any;                        /* false: there are none */
    uint64_t born;                   /* of the file */
    uint64_t base_bytes, more_bytes; /* of objects: the first run, the others */
    size_t runs;
};
void wb_vault_plan_look(const struct wb_vault_plan *plan, size_t part, struct wb_vault_rows_look *look_out);

/* A task for rows, which takes *rows. It is in plan->tasks. */
int wb_vault_plan_add_rows(struct wb_vault_plan *plan, const char *name, uint32_t file, uint64_t offset, bool run,
                           struct wb_buf *rows, struct wb_vault_task **task_out);

/* When all tasks are done: completes plan->change but for its points, what ended, and garbage. */
int wb_vault_plan_end(struct wb_vault_plan *plan);

/* Whether plan->change has anything. */
bool wb_vault_plan_has_news(const struct wb_vault_plan *plan);
void wb_vault_plan_release(struct wb_vault_plan *plan);

#endif
