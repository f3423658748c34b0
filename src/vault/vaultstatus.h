/* vaultstatus.h - private to vault: the file that tells others of this machine how the backups of a repository are
 * going. */
#ifndef WB_VAULT_VAULTSTATUS_H
#define WB_VAULT_VAULTSTATUS_H

#include "vault/vaultmemory.h"

struct wb_vault_noted {
    int64_t safe_ms, since_ms, unsafe_since_ms, error_ms;
    uint64_t safe_pages, bytes_waiting;
    bool following;
    char error[512]; /* a line; empty: none */
};

/* Reads what was noted last; all zero if nothing was. */
int wb_vault_noted_read(const char *folder, struct wb_vault_noted *noted_out, struct wb_buf *url_out);

/* Replaces the file, unless it has the same already. */
int wb_vault_noted_write(const struct wb_vault_memory *memory, const struct wb_vault_noted *noted);

#endif
