/*
 * vaultcollect.h - private to vault: one moment of a whole repository, while others write to it.
 *
 * The store's state is held, and all other files that belong to a repository are open or read: nothing of them
 * disappears before the moment is released (docs/design/0055-vault.md, "One moment").
 */
#ifndef WB_VAULT_VAULTCOLLECT_H
#define WB_VAULT_VAULTCOLLECT_H

#include "base/vec.h"
#include "os/file.h"
#include "os/folder.h"
#include "store/store_state.h"

enum { WB_COLLECT_LOG_HEAD = 64 }; /* the part of a log that changes in place */

/* A file that is not the store's. */
struct wb_collected_file {
    char *name; /* in the copy */
    bool grows; /* a log: only its head changes */
    bool whole; /* all of it is in `bytes`; otherwise the file is open */
    uint64_t size;
    struct wb_buf bytes; /* of a log: its head */
    struct wb_file file;
    struct wb_folder_stamp stamp; /* of a file that is open */
};

struct wb_collected {
    struct wb_store_state *state;
    int64_t time_ms; /* when the store's state was taken */
    struct wb_store_state_facts facts;
    uint32_t edition, generation;           /* the newest ones; 0: none */
    WB_VEC(struct wb_collected_file) files; /* by name */
    WB_VEC(struct wb_file) locks;           /* of directories that must stay */
};

/* since: stamps of buckets (store_state.h), or NULL. Release it even after an error. */
int wb_collect(const char *dir, const struct wb_buf *since, struct wb_collected *collected_out);
void wb_collected_release(struct wb_collected *collected);

/* Reads exactly len bytes. By any thread. */
int wb_collected_read(const struct wb_collected_file *file, uint64_t offset, size_t len, void *bytes_out);

/*
 * What changes with everything that a collection could find, as far as names, sizes and times of files show it: for
 * next to nothing. *fresh_out: something was written so recently that the same times could hide a further change.
 */
int wb_collect_look(const char *dir, uint64_t *look_out, bool *fresh_out);

#endif
