/*
 * vaultcrew.h - private to vault: threads that read many objects of a vault at once, in bounded memory.
 *
 * The pieces are begun in the order in which they are given, and end in any order. Each object is checked before its
 * contents are handed on (vaultfetch.h).
 */
#ifndef WB_VAULT_VAULTCREW_H
#define WB_VAULT_VAULTCREW_H

#include "vault/vaultfetch.h"

/* Reads a piece, from its object or from the shipment. The contents are in the manifest, in *bytes or in *mem. */
int wb_vault_fetch_piece(struct wb_object_store *store, const struct wb_vault_piece *piece, struct wb_buf *bytes,
                         struct wb_buf *mem, struct wb_slice *contents_out);

struct wb_vaultcrew;

struct wb_vaultcrew_sink {
    /* The contents of a piece, in any of the threads. An error ends the crew. */
    int (*take)(void *context, size_t piece, struct wb_slice contents);

    /* A piece that cannot be read, with the current error's message. Returns 0 to go on. NULL: it ends the crew. */
    int (*failed)(void *context, size_t piece, int err);
    void *context;
};

/* Called by whoever waits, now and then. */
struct wb_vaultcrew_progress {
    void (*show)(void *context, uint64_t bytes_done, uint64_t bytes_total); /* may be NULL */
    void *context;
    uint64_t total;
};

/* The pieces and the store must stay until the end. */
int wb_vaultcrew_start(struct wb_object_store *store, const struct wb_vault_piece *const *pieces, size_t count,
                       const struct wb_vaultcrew_sink *sink, struct wb_vaultcrew **crew_out);

/* Returns when the first `count` pieces are done, or with the first error. WB_E_STOPPED after a signal (os/stop.h). */
int wb_vaultcrew_wait(struct wb_vaultcrew *crew, size_t count, const struct wb_vaultcrew_progress *progress);

/* How many bytes of objects have been read and handed on. */
uint64_t wb_vaultcrew_bytes(struct wb_vaultcrew *crew);

/* Begins no further piece, and returns when all threads have ended. NULL is fine. Keeps the error message. */
void wb_vaultcrew_end(struct wb_vaultcrew *crew);

#endif
