/*
 * vaultobject.h - private to vault: an object of a vault as bytes, its name, and what a manifest knows about it.
 *
 *   head   0 "WBVAULT1", whose last character is the format
 *          8 kind (1)   9 codec: 0 none, 1 zstd (1)   10 zero (6)
 *         16 bytes of the contents (8)   24 stored bytes (8)
 *         32 XXH3 of the stored bytes, seeded with XXH3 of bytes 0 to 31 (8)
 *   40     the stored bytes, up to the end of the object
 *
 * docs/formats/vault.md describes what the contents of each kind are. Objects come from elsewhere: everything here
 * takes any bytes.
 */
#ifndef WB_VAULT_VAULTOBJECT_H
#define WB_VAULT_VAULTOBJECT_H

#include "base/buf.h"
#include "object/object.h"

enum wb_vault_kind {
    WB_VAULT_BYTES = 1, /* a piece of a file, or of the rows of a catalog (vaultrows.h) */
    WB_VAULT_SHIPMENT,  /* vaultmanifest.h */
    WB_VAULT_HEAD,      /* vaulthead.h */
};

enum {
    WB_VAULT_OBJECT_HEAD = 40,
    WB_VAULT_CONTENTS_MAX = WB_OBJECT_MAX - WB_VAULT_OBJECT_HEAD, /* whatever they are compressed to */
    WB_VAULT_RUN_DIGITS = 16,
    WB_VAULT_COUNT_DIGITS = 8,
};

#define WB_VAULT_HEAD_NAME "head"
#define WB_VAULT_SHIPMENTS "shipments/"
#define WB_VAULT_OBJECTS "objects/"

/* An object, as another one names it. All zero: none. */
struct wb_vault_object {
    uint64_t run;     /* a random number of the process that put it... */
    uint32_t count;   /* ...and which of its objects this is, from 1 */
    uint32_t stored;  /* bytes of the whole object */
    uint64_t hash[2]; /* XXH3 (128 bits) of the whole object: high, low */
};

static inline bool wb_vault_object_is_one(const struct wb_vault_object *object)
{
    return object->count != 0;
}

static inline bool wb_vault_object_equal(const struct wb_vault_object *a, const struct wb_vault_object *b)
{
    return a->run == b->run && a->count == b->count && a->stored == b->stored && a->hash[0] == b->hash[0] &&
           a->hash[1] == b->hash[1];
}

/* "objects/0123456789abcdef-00000001"; folder is WB_VAULT_OBJECTS or WB_VAULT_SHIPMENTS. */
void wb_vault_object_name(const char *folder, const struct wb_vault_object *object, char name_out[WB_OBJECT_NAME_MAX]);

/* Reads such a name, with its folder. Length and hash are 0 then. False if it is no name of ours. */
bool wb_vault_object_parse(struct wb_slice name, bool *shipment_out, struct wb_vault_object *object_out);

/*
 * Makes an object of contents, which are at most WB_VAULT_CONTENTS_MAX bytes. If `compress` is set and it helps, they
 * are compressed. Sets length and hash in *object; its name is the caller's.
 */
int wb_vault_object_pack(enum wb_vault_kind kind, struct wb_slice contents, bool compress, struct wb_buf *bytes_out,
                         struct wb_vault_object *object);

/*
 * The same for contents that lie behind WB_VAULT_OBJECT_HEAD bytes of *bytes, which become the head: nothing is copied,
 * and nothing is compressed.
 */
void wb_vault_object_seal(enum wb_vault_kind kind, struct wb_buf *bytes, struct wb_vault_object *object);

/*
 * Checks a whole object and finds its contents, which are in `bytes` or in `mem`. name is for messages. WB_E_CORRUPT;
 * WB_E_NEWER if it is sound, but has another format.
 */
int wb_vault_object_unpack(const char *name, enum wb_vault_kind kind, struct wb_slice bytes, struct wb_buf *mem,
                           struct wb_slice *contents_out);

/* Whether these are the bytes that a manifest means. */
bool wb_vault_object_fits(const struct wb_vault_object *object, struct wb_slice bytes);

/* How objects are named within contents: 32 bytes. */
enum { WB_VAULT_OBJECT_REFERENCE = 8 + 4 + 4 + 16 };
char *wb_vault_object_put(char *p, const struct wb_vault_object *object);

/* Reads it. False if it cannot be one. */
bool wb_vault_object_take(const char *p, struct wb_vault_object *object_out);

#endif
