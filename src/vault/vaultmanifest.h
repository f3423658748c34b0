/*
 * vaultmanifest.h - private to vault: what is in a vault, in memory; and shipments, which change it, as bytes.
 *
 *   point   a state that can be restored. Points have ascending numbers: those of the shipments that brought them
 *   file    a file of the repository, or the rows of one of its catalogs
 *   piece   a part of a file: bytes of one object, or a few bytes in the shipment itself
 *
 * Files and pieces have a lifetime: the number of the first point that needs them (born) and of the first one that does
 * not any more (died). So the repository at point n consists of what is alive at n: born <= n < died. What is alive at
 * no point is forgotten, and its objects are garbage.
 *
 * A full shipment is a whole manifest. A difference has what is new, and what died: an item that the manifest has
 * already replaces it (files by id, pieces by file, offset and born). Other members are as in a full one.
 *
 * Shipments come from elsewhere: what is decoded has been checked (order, ranges, names of files), and so has a
 * manifest.
 */
#ifndef WB_VAULT_VAULTMANIFEST_H
#define WB_VAULT_VAULTMANIFEST_H

#include "base/arena.h"
#include "base/vec.h"
#include "vault/vaultobject.h"

#define WB_VAULT_ALIVE UINT64_MAX

enum {
    WB_VAULT_ID_BYTES = 16,
    WB_VAULT_PATH_MAX = 512,
    WB_VAULT_INLINE_MAX = 256, /* bytes of a piece that are in the shipment itself */
    WB_VAULT_PARTS_MAX = 2,    /* catalogs */
};

/* What a file is, which says how it is restored. */
enum wb_vault_file_kind {
    WB_VAULT_PAGES = 1, /* of the store's files of pages */
    WB_VAULT_SMALL,     /* what wb_store_state_each_small() gives */
    WB_VAULT_OTHER,     /* journal, webdb, index, graph, streams: written as they are */
    WB_VAULT_ROWS,      /* no file: "rows/0" and "rows/1" are the rows of a part */
};

struct wb_vault_file {
    uint32_t id; /* a number that no other file of this vault ever has */
    enum wb_vault_file_kind kind;
    const char *path; /* in the repository; in the arena */
    uint64_t born, died;
};

struct wb_vault_piece {
    uint32_t file; /* its id */
    uint32_t len;  /* > 0: of the contents */
    uint64_t offset;
    uint64_t born, died;
    bool run;              /* of rows: it begins a run, in which rows ascend; later runs replace rows of earlier ones */
    struct wb_slice bytes; /* in the arena; if it is empty, they are in the object */
    struct wb_vault_object object; /* otherwise none */
};

struct wb_vault_point {
    uint64_t number;
    struct wb_vault_object shipment; /* its run and count; the rest is 0 */
    int64_t time_ms;
    uint64_t pages, bytes; /* bytes: of all objects of pieces that are alive */
};

/* An object that nothing needs, and that may still be there. */
struct wb_vault_garbage {
    bool shipment;
    struct wb_vault_object object; /* run and count; the rest is 0 */
};

struct wb_vault_files WB_VEC_OF(struct wb_vault_file);
struct wb_vault_pieces WB_VEC_OF(struct wb_vault_piece);
struct wb_vault_points WB_VEC_OF(struct wb_vault_point);
struct wb_vault_garbages WB_VEC_OF(struct wb_vault_garbage);
struct wb_vault_objects WB_VEC_OF(struct wb_vault_object);
struct wb_vault_numbers WB_VEC_OF(uint64_t);

/* ---- shipments ----------------------------------------------------------------------------------------------- */

struct wb_vault_shipment {
    bool full;
    uint8_t repository[WB_VAULT_ID_BYTES];
    uint64_t number;
    struct wb_vault_object previous;  /* of a difference */
    uint64_t takedowns;               /* that had been carried out in all files of this state */
    uint32_t next_file;               /* greater than the id of every file so far */
    struct wb_vault_points points;    /* ascending; the last one is its own, and the only one of a difference */
    struct wb_vault_numbers ended;    /* of a difference: points that cannot be restored any more; ascending */
    struct wb_vault_files files;      /* by id */
    struct wb_vault_pieces pieces;    /* by file, offset, born */
    struct wb_vault_garbages garbage; /* replaces that of the shipment before */
    struct wb_arena arena;            /* paths and bytes */
};

/* The contents of its object. The point of a shipment has no name in it: that is the object's. */
int wb_vault_shipment_encode(const struct wb_vault_shipment *shipment, struct wb_buf *contents_out);

/* name: of the object, for messages; self: the same as numbers. After an error nothing is left to release. */
int wb_vault_shipment_decode(const char *name, const struct wb_vault_object *self, struct wb_slice contents,
                             struct wb_vault_shipment *shipment_out);
void wb_vault_shipment_release(struct wb_vault_shipment *shipment);

/* ---- the manifest -------------------------------------------------------------------------------------------- */

/* All zero: of a vault in which nothing is yet. */
struct wb_vault_manifest {
    uint8_t repository[WB_VAULT_ID_BYTES];
    uint64_t number, takedowns;
    uint32_t next_file;
    struct wb_vault_points points;
    struct wb_vault_files files;
    struct wb_vault_pieces pieces;
    struct wb_vault_garbages garbage;
    struct wb_vault_objects chain;         /* its shipments, from the last full one on */
    uint64_t full_bytes, difference_bytes; /* of the objects of the chain: the first, the others */
    struct wb_arena arena;
};

/*
 * Applies a shipment, whose object is `self`. WB_E_CORRUPT, with the name, if it does not fit; then the manifest can
 * only be released. dropped: gets the objects of pieces that no point needs any more; may be NULL.
 */
int wb_vault_manifest_apply(struct wb_vault_manifest *manifest, const char *name, const struct wb_vault_object *self,
                            const struct wb_vault_shipment *shipment, struct wb_vault_garbages *dropped);

/* Everything as a full shipment. It borrows what is in the manifest's arena. */
int wb_vault_manifest_full(const struct wb_vault_manifest *manifest, struct wb_vault_shipment *shipment_out);
void wb_vault_manifest_release(struct wb_vault_manifest *manifest);

const struct wb_vault_file *wb_vault_manifest_file(const struct wb_vault_manifest *manifest, uint32_t id);

/*
 * The repository at a point: its files in the order of their ids, each with its pieces, which follow each other from
 * offset 0 without gaps. Pointers are into the manifest. WB_E_CORRUPT, with the name, if the pieces are not so or two
 * files have the same path.
 */
struct wb_vault_state_file {
    const struct wb_vault_file *file;
    uint64_t bytes;
    size_t first, count; /* its pieces, in pieces below */
};
struct wb_vault_state_files WB_VEC_OF(struct wb_vault_state_file);
struct wb_vault_piece_list WB_VEC_OF(const struct wb_vault_piece *);
struct wb_vault_contents {
    struct wb_vault_state_files files;
    struct wb_vault_piece_list pieces;
    uint64_t stored; /* bytes of all their objects */
};
int wb_vault_contents_at(const struct wb_vault_manifest *manifest, const char *name, uint64_t number,
                         struct wb_vault_contents *contents_out);
void wb_vault_contents_release(struct wb_vault_contents *contents);

/* Whether a path may be that of a file of this kind: relative, below what belongs to a repository, without "..". */
bool wb_vault_path_fits(struct wb_slice path, enum wb_vault_file_kind kind);

static inline bool wb_vault_alive_at(uint64_t born, uint64_t died, uint64_t number)
{
    return born <= number && number < died;
}

#endif
