/*
 * vaultclean.c - deletes objects that nothing needs: those that the manifest calls garbage, and those that attempts
 * have left which were killed or have failed. What the newest shipment needs is never deleted, whatever a list says.
 */
#include "base/error.h"
#include "base/map.h"
#include "vault/vaultshipper.h"

#include <inttypes.h>
#include <stdio.h>

/* What the manifest needs. */
struct needed_entry {
    uint64_t hash; /* of the name */
    uint64_t run;
    uint32_t count;
    bool shipment;
};
union needed_names WB_MAP_OF(struct needed_entry);

static uint64_t name_hash(const struct wb_vault_object *object)
{
    return object->run ^ (uint64_t)object->count << 32 ^ object->count;
}

static int need(union needed_names *needed, bool shipment, const struct wb_vault_object *object)
{
    struct needed_entry *entry = wb_map_add(needed, name_hash(object));

    if (!entry)
        return WB_E_NOMEM;
    entry->run = object->run;
    entry->count = object->count;
    entry->shipment = shipment;
    return 0;
}

static bool is_needed(const union needed_names *needed, bool shipment, const struct wb_vault_object *object)
{
    struct needed_entry *entry = NULL;

    while ((entry = wb_map_next(needed, name_hash(object), entry)))
        if (entry->run == object->run && entry->count == object->count && entry->shipment == shipment)
            return true;
    return false;
}

static int find_needed(const struct wb_vault_manifest *manifest, union needed_names *needed)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < manifest->pieces.count; i++)
        if (wb_vault_object_is_one(&manifest->pieces.items[i].object))
            err = need(needed, false, &manifest->pieces.items[i].object);
    for (size_t i = 0; err == 0 && i < manifest->chain.count; i++)
        err = need(needed, true, &manifest->chain.items[i]);
    return err;
}

/* Takes what is needed off a list, and deletes the rest; what cannot be deleted stays in the list. */
static int delete_unneeded(struct wb_vault_shipper *shipper, const union needed_names *needed,
                           struct wb_vault_garbages *garbage)
{
    size_t kept = 0;

    for (size_t i = 0; i < garbage->count; i++)
        if (!is_needed(needed, garbage->items[i].shipment, &garbage->items[i].object))
            garbage->items[kept++] = garbage->items[i];
    garbage->count = kept;
    wb_vault_delete(shipper->store, garbage);
    return 0;
}

void wb_vault_clean_garbage(struct wb_vault_shipper *shipper)
{
    struct wb_vault_manifest *manifest = &shipper->manifest;
    union needed_names needed = WB_MAP_INIT(0);

    if (manifest->garbage.count == 0)
        return;
    if (shipper->memory.deleted == manifest->number)
        wb_vec_clear(&manifest->garbage);
    else if (find_needed(manifest, &needed) == 0)
        delete_unneeded(shipper, &needed, &manifest->garbage);
    wb_map_release(&needed);
}

/* ---- leftovers ----------------------------------------------------------------------------------------------- */

static int note_object(void *context, const char *name, uint64_t size)
{
    struct wb_vault_garbages *found = context;
    struct wb_vault_garbage garbage;

    (void)size;
    if (!wb_vault_object_parse(wb_slice_str(name), &garbage.shipment, &garbage.object))
        return 0; /* somebody else's */
    return wb_vec_push(found, garbage);
}

/* Everything of a run. A list can be old: then something stays, which `backup --verify` shows. */
static int list_run(struct wb_vault_shipper *shipper, uint64_t run, struct wb_vault_garbages *found)
{
    static const char *const folders[] = {WB_VAULT_OBJECTS, WB_VAULT_SHIPMENTS};
    char prefix[64];
    int err = 0;

    for (size_t i = 0; err == 0 && i < sizeof folders / sizeof *folders; i++) {
        snprintf(prefix, sizeof prefix, "%s%016" PRIx64 "-", folders[i], run);
        err = wb_object_list(shipper->store, prefix, note_object, found);
    }
    return err;
}

/* Objects that were put, but that no shipment has used. */
static int note_parts(struct wb_vault_shipper *shipper, struct wb_vault_garbages *found)
{
    struct wb_vault_parts parts = WB_VEC_INIT;
    int err = wb_vault_parts_load(&shipper->memory, &parts);

    for (size_t i = 0; err == 0 && i < parts.count; i++)
        err = wb_vec_push(found, (struct wb_vault_garbage){false, parts.items[i].object});
    wb_vec_release(&parts);
    return err;
}

int wb_vault_clean_leftovers(struct wb_vault_shipper *shipper)
{
    struct wb_vault_garbages found = WB_VEC_INIT;
    union needed_names needed = WB_MAP_INIT(0);
    int err = find_needed(&shipper->manifest, &needed);

    if (err == 0)
        err = note_parts(shipper, &found);
    for (size_t i = 0; err == 0 && i < shipper->orphans.count; i++)
        err = wb_vec_push(&found, shipper->orphans.items[i]);
    for (size_t i = 0; err == 0 && i < shipper->memory.stale.count; i++)
        err = list_run(shipper, shipper->memory.stale.items[i], &found);
    if (err == 0)
        err = delete_unneeded(shipper, &needed, &found);
    if (err == 0 && found.count == 0) {
        wb_vec_clear(&shipper->memory.stale);
        wb_vec_clear(&shipper->orphans);
        err = wb_vault_parts_clear(&shipper->memory);
    }
    wb_map_release(&needed);
    wb_vec_release(&found);
    return err;
}
