/*
 * madevault.h - vaults that are made by a test instead of a shipper: in pieces that are much smaller than usual, with
 * rows in many runs, of which only the last word on each row is true.
 */
#ifndef WB_TESTS_MADEVAULT_H
#define WB_TESTS_MADEVAULT_H

#include "../store/convert_support.h"
#include "vault/vaulthead.h"

struct made_vault {
    struct wb_vault_head head;
    struct wb_vault_shipment shipment; /* full; a test may change it before made_vault_finish() */
    struct wb_object_store *store;
    uint64_t run;
    uint32_t count; /* of objects so far */
    uint64_t *chance;
    size_t piece_bytes; /* the most */
    unsigned runs;      /* of rows of each part */
};

/* Where the objects are: file://DIR. */
void vault_url(const char *dir, char url_out[DIR_MAX + 8]);

/* Everything but the shipment and head, of the newest state of a repository, with a journal of some bytes and an empty
 * list. */
void made_vault_fill(struct made_vault *made, const char *repo, const char *dir, uint64_t *chance);
void made_vault_finish(struct made_vault *made);

/* Both. */
void make_vault(const char *repo, const char *dir, uint64_t *chance);

/* Puts contents as an object, and sets `object`. */
void made_vault_put(struct made_vault *made, enum wb_vault_kind kind, struct wb_slice contents,
                    struct wb_vault_object *object);

/* Adds a file with these bytes to the shipment. */
void made_vault_file(struct made_vault *made, enum wb_vault_file_kind kind, const char *path, struct wb_slice bytes);

/* What made_vault_fill() has put into "journal/00000001.log". */
#define MADE_VAULT_JOURNAL "journal/00000001.log"
#define MADE_VAULT_EMPTY "streams/lists/empty"
enum { MADE_VAULT_JOURNAL_BYTES = 70000 };
uint8_t made_vault_journal_byte(size_t at);

#endif
