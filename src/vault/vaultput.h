/*
 * vaultput.h - private to vault: threads that put objects, in bounded memory.
 *
 * A thread reads the bytes of a task, makes an object of them, and puts it, unless that is what the vault has already,
 * or what a shipment that was never finished has put. Every object that was put is remembered (vaultmemory.h) before
 * the task counts as done.
 */
#ifndef WB_VAULT_VAULTPUT_H
#define WB_VAULT_VAULTPUT_H

#include "vault/vaultplan.h"

struct wb_vault_putter;

struct wb_vault_putter_options {
    struct wb_object_store *store;
    const struct wb_vault_memory *memory;
    const struct wb_vault_manifest *manifest;
    struct wb_store_state *state; /* where pages are read */
    uint64_t run;
    uint32_t *count; /* objects of this run so far; changed */
    uint64_t total;  /* bytes of all tasks, for progress */
    void (*progress)(void *context, uint64_t bytes_done, uint64_t bytes_total);
    void *progress_context;
};

int wb_vault_putter_new(const struct wb_vault_putter_options *options, struct wb_vault_putter **putter_out);

/* The task must stay until it is done. Waits while too many tasks with rows of their own are not done. */
int wb_vault_putter_add(struct wb_vault_putter *putter, struct wb_vault_task *task);

/* Returns when all tasks are done, with the first error. */
int wb_vault_putter_wait(struct wb_vault_putter *putter);

/* Waits for what is being done. NULL is fine. Keeps the error message. */
void wb_vault_putter_free(struct wb_vault_putter *putter);

/* Deletes objects with several threads at once. What cannot be deleted stays in the list. */
void wb_vault_delete(struct wb_object_store *store, struct wb_vault_garbages *garbage);

#endif
