/*
 * vaultmanifest.c - applies shipments to a manifest, forgets what no point needs any more, and says what a point
 * consists of (vaultmanifest.h). It knows nothing of objects but their names.
 *
 * Files, pieces and points are sorted arrays, and so are those of a shipment. Applying is a merge.
 */
#include "vault/vaultmanifest.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"
#include "os/random.h"

#include <stdlib.h>

void wb_vault_manifest_release(struct wb_vault_manifest *manifest)
{
    wb_vec_release(&manifest->points);
    wb_vec_release(&manifest->files);
    wb_vec_release(&manifest->pieces);
    wb_vec_release(&manifest->garbage);
    wb_vec_release(&manifest->chain);
    wb_arena_release(&manifest->arena);
    memset(manifest, 0, sizeof *manifest);
}

static int compare_ids(const void *key, const void *item)
{
    uint32_t id = *(const uint32_t *)key, other = ((const struct wb_vault_file *)item)->id;

    return id < other ? -1 : id > other;
}

const struct wb_vault_file *wb_vault_manifest_file(const struct wb_vault_manifest *manifest, uint32_t id)
{
    const struct wb_vault_files *files = &manifest->files;

    return files->count ? bsearch(&id, files->items, files->count, sizeof *files->items, compare_ids) : NULL;
}

/* ---- applying a shipment ------------------------------------------------------------------------------------- */

static int misfit(const char *name)
{
    return wb_fail(WB_E_CORRUPT, "%s does not fit the shipments before it", name);
}

/* The shipment's file is new, or the same one with the end of its life. */
static int merge_files(struct wb_vault_manifest *manifest, const char *name, const struct wb_vault_shipment *shipment)
{
    struct wb_vault_files merged = WB_VEC_INIT, *old = &manifest->files;
    const struct wb_vault_files *fresh = &shipment->files;
    size_t i = 0, k = 0;
    struct wb_slice path;

    if (wb_vec_reserve(&merged, old->count + fresh->count) < 0)
        return WB_E_NOMEM;
    while (i < old->count || k < fresh->count) {
        if (k == fresh->count || (i < old->count && old->items[i].id < fresh->items[k].id)) {
            merged.items[merged.count++] = old->items[i++];
            continue;
        }
        struct wb_vault_file file = fresh->items[k++];
        if (i < old->count && old->items[i].id == file.id) {
            const struct wb_vault_file *was = &old->items[i++];
            if (was->kind != file.kind || was->born != file.born || strcmp(was->path, file.path) != 0)
                goto wrong;
            file.path = was->path;
        } else if (file.id < manifest->next_file) {
            goto wrong;
        } else if (wb_arena_copy(&manifest->arena, wb_slice(file.path, strlen(file.path) + 1), &path) < 0) {
            wb_vec_release(&merged);
            return WB_E_NOMEM;
        } else {
            file.path = path.ptr;
        }
        merged.items[merged.count++] = file;
    }
    wb_vec_release(old);
    *old = merged;
    return 0;
wrong:
    wb_vec_release(&merged);
    return misfit(name);
}

static int compare_pieces(const struct wb_vault_piece *a, const struct wb_vault_piece *b)
{
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return a->born != b->born ? (a->born < b->born ? -1 : 1) : 0;
}

static int merge_pieces(struct wb_vault_manifest *manifest, const char *name, const struct wb_vault_shipment *shipment)
{
    struct wb_vault_pieces merged = WB_VEC_INIT, *old = &manifest->pieces;
    const struct wb_vault_pieces *fresh = &shipment->pieces;
    size_t i = 0, k = 0;

    if (wb_vec_reserve(&merged, old->count + fresh->count) < 0)
        return WB_E_NOMEM;
    while (i < old->count || k < fresh->count) {
        int order = k == fresh->count ? -1 : i == old->count ? 1 : compare_pieces(&old->items[i], &fresh->items[k]);
        if (order < 0) {
            merged.items[merged.count++] = old->items[i++];
            continue;
        }
        struct wb_vault_piece piece = fresh->items[k++];
        if (order == 0) {
            const struct wb_vault_piece *was = &old->items[i++];
            if (was->len != piece.len || was->run != piece.run || !wb_vault_object_equal(&was->object, &piece.object) ||
                !wb_slice_equal(was->bytes, piece.bytes))
                goto wrong;
            piece.bytes = was->bytes;
        } else if (piece.bytes.len && wb_arena_copy(&manifest->arena, piece.bytes, &piece.bytes) < 0) {
            wb_vec_release(&merged);
            return WB_E_NOMEM;
        }
        merged.items[merged.count++] = piece;
    }
    wb_vec_release(old);
    *old = merged;
    return 0;
wrong:
    wb_vec_release(&merged);
    return misfit(name);
}

/* Adds the points of the shipment, and takes away those that ended. */
static int merge_points(struct wb_vault_manifest *manifest, const char *name, const struct wb_vault_shipment *shipment)
{
    struct wb_vault_points *points = &manifest->points;
    size_t kept = 0, ended = 0;

    for (size_t i = 0; i < points->count; i++) {
        if (ended < shipment->ended.count && shipment->ended.items[ended] == points->items[i].number)
            ended++;
        else
            points->items[kept++] = points->items[i];
    }
    points->count = kept;
    if (ended != shipment->ended.count)
        return misfit(name);
    for (size_t i = 0; i < shipment->points.count; i++)
        if (wb_vec_push(points, shipment->points.items[i]) < 0)
            return WB_E_NOMEM;
    return 0;
}

/* ---- forgetting ---------------------------------------------------------------------------------------------- */

/* Whether there is a point in a lifetime. */
static bool is_needed(const struct wb_vault_points *points, uint64_t born, uint64_t died)
{
    size_t low = 0, high = points->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (points->items[middle].number < born)
            low = middle + 1;
        else
            high = middle;
    }
    return low < points->count && points->items[low].number < died;
}

/* Ends pieces with their files, and drops what no point needs. */
static int forget(struct wb_vault_manifest *manifest, const char *name, struct wb_vault_garbages *dropped)
{
    struct wb_vault_files *files = &manifest->files;
    struct wb_vault_pieces *pieces = &manifest->pieces;
    size_t kept = 0, f = 0;

    for (size_t i = 0; i < pieces->count; i++) {
        struct wb_vault_piece piece = pieces->items[i];
        while (f < files->count && files->items[f].id < piece.file)
            f++;
        if (f == files->count || files->items[f].id != piece.file || piece.born < files->items[f].born ||
            (piece.run && files->items[f].kind != WB_VAULT_ROWS))
            return misfit(name);
        if (piece.died > files->items[f].died)
            piece.died = files->items[f].died;
        if (piece.born < piece.died && is_needed(&manifest->points, piece.born, piece.died)) {
            pieces->items[kept++] = piece;
        } else if (dropped && piece.bytes.len == 0) {
            struct wb_vault_garbage garbage = {false, {piece.object.run, piece.object.count, 0, {0, 0}}};
            if (wb_vec_push(dropped, garbage) < 0)
                return WB_E_NOMEM;
        }
    }
    pieces->count = kept;
    kept = 0;
    for (size_t i = 0; i < files->count; i++)
        if (is_needed(&manifest->points, files->items[i].born, files->items[i].died))
            files->items[kept++] = files->items[i];
    files->count = kept;
    return 0;
}

int wb_vault_manifest_apply(struct wb_vault_manifest *manifest, const char *name, const struct wb_vault_object *self,
                            const struct wb_vault_shipment *shipment, struct wb_vault_garbages *dropped)
{
    bool first = manifest->number == 0;

    if (shipment->full != first || shipment->number <= manifest->number || shipment->next_file < manifest->next_file)
        return misfit(name);
    int err = merge_files(manifest, name, shipment);
    if (err == 0)
        err = merge_pieces(manifest, name, shipment);
    if (err == 0)
        err = merge_points(manifest, name, shipment);
    if (err == 0)
        err = forget(manifest, name, dropped);
    wb_vec_clear(&manifest->garbage);
    for (size_t i = 0; err == 0 && i < shipment->garbage.count; i++)
        err = wb_vec_push(&manifest->garbage, shipment->garbage.items[i]);
    if (err == 0)
        err = wb_vec_push(&manifest->chain, *self);
    if (err < 0)
        return err;
    memcpy(manifest->repository, shipment->repository, WB_VAULT_ID_BYTES);
    manifest->number = shipment->number;
    manifest->takedowns = shipment->takedowns;
    manifest->next_file = shipment->next_file;
    if (first)
        manifest->full_bytes = self->stored;
    else
        manifest->difference_bytes += self->stored;
    return 0;
}

/* ---- as a shipment ------------------------------------------------------------------------------------------- */

int wb_vault_manifest_full(const struct wb_vault_manifest *manifest, struct wb_vault_shipment *shipment_out)
{
    memset(shipment_out, 0, sizeof *shipment_out);
    WB_CHECK(manifest->number > 0);
    shipment_out->full = true;
    memcpy(shipment_out->repository, manifest->repository, WB_VAULT_ID_BYTES);
    shipment_out->number = manifest->number;
    shipment_out->takedowns = manifest->takedowns;
    shipment_out->next_file = manifest->next_file;
    if (wb_vec_reserve(&shipment_out->points, manifest->points.count) < 0 ||
        wb_vec_reserve(&shipment_out->files, manifest->files.count) < 0 ||
        wb_vec_reserve(&shipment_out->pieces, manifest->pieces.count) < 0 ||
        wb_vec_reserve(&shipment_out->garbage, manifest->garbage.count) < 0) {
        wb_vault_shipment_release(shipment_out);
        return WB_E_NOMEM;
    }
    for (size_t i = 0; i < manifest->points.count; i++)
        shipment_out->points.items[shipment_out->points.count++] = manifest->points.items[i];
    for (size_t i = 0; i < manifest->files.count; i++)
        shipment_out->files.items[shipment_out->files.count++] = manifest->files.items[i];
    for (size_t i = 0; i < manifest->pieces.count; i++)
        shipment_out->pieces.items[shipment_out->pieces.count++] = manifest->pieces.items[i];
    for (size_t i = 0; i < manifest->garbage.count; i++)
        shipment_out->garbage.items[shipment_out->garbage.count++] = manifest->garbage.items[i];
    return 0;
}

/* ---- a point ------------------------------------------------------------------------------------------------- */

void wb_vault_contents_release(struct wb_vault_contents *contents)
{
    wb_vec_release(&contents->files);
    wb_vec_release(&contents->pieces);
    contents->stored = 0;
}

struct path_entry {
    uint64_t hash;
    const char *path;
};

/* The paths of a point are different. */
static int check_paths(const char *name, const struct wb_vault_contents *contents)
{
    WB_MAP(struct path_entry) paths = WB_MAP_INIT(0);
    int err = 0;

    wb_random_bytes(&paths.map.seed, sizeof paths.map.seed);
    for (size_t i = 0; err == 0 && i < contents->files.count; i++) {
        const char *path = contents->files.items[i].file->path;
        uint64_t hash = wb_hash64_seeded(path, strlen(path), paths.map.seed);
        struct path_entry *entry = NULL;
        while ((entry = wb_map_next(&paths, hash, entry)))
            if (strcmp(entry->path, path) == 0)
                err = wb_fail(WB_E_CORRUPT, "%s names %s twice", name, path);
        entry = wb_map_add(&paths, hash);
        if (!entry)
            err = WB_E_NOMEM;
        else
            entry->path = path;
    }
    wb_map_release(&paths);
    return err;
}

/* The pieces of a file at a point, from pieces[*at] on. */
static int collect_pieces(const struct wb_vault_manifest *manifest, const char *name, uint64_t number, size_t *at,
                          struct wb_vault_state_file *file, struct wb_vault_contents *contents)
{
    for (; *at < manifest->pieces.count && manifest->pieces.items[*at].file == file->file->id; ++*at) {
        const struct wb_vault_piece *piece = &manifest->pieces.items[*at];
        if (!wb_vault_alive_at(piece->born, piece->died, number))
            continue;
        if (piece->offset != file->bytes || (file->file->kind == WB_VAULT_ROWS && piece->offset == 0 && !piece->run))
            return wb_fail(WB_E_CORRUPT, "%s: parts of %s are missing or overlap", name, file->file->path);
        file->bytes += piece->len;
        file->count++;
        contents->stored += piece->object.stored;
        if (wb_vec_push(&contents->pieces, piece) < 0)
            return WB_E_NOMEM;
    }
    return 0;
}

int wb_vault_contents_at(const struct wb_vault_manifest *manifest, const char *name, uint64_t number,
                         struct wb_vault_contents *contents_out)
{
    size_t at = 0;
    int err = 0;

    memset(contents_out, 0, sizeof *contents_out);
    for (size_t i = 0; err == 0 && i < manifest->files.count; i++) {
        const struct wb_vault_file *file = &manifest->files.items[i];
        while (at < manifest->pieces.count && manifest->pieces.items[at].file < file->id)
            at++;
        if (!wb_vault_alive_at(file->born, file->died, number))
            continue;
        struct wb_vault_state_file row = {.file = file, .first = contents_out->pieces.count};
        err = collect_pieces(manifest, name, number, &at, &row, contents_out);
        if (err == 0)
            err = wb_vec_push(&contents_out->files, row);
    }
    if (err == 0)
        err = check_paths(name, contents_out);
    if (err < 0)
        wb_vault_contents_release(contents_out);
    return err;
}
