/*
 * vaultfetch.c - gets objects of a vault and checks them (vaultfetch.h). It never writes.
 *
 * What arrives damaged is asked for again, because the way here may have damaged it. So is what is said to be missing,
 * after a moment: some stores do not show an object at once.
 */
#include "vault/vaultfetch.h"
#include "base/error.h"
#include "os/stop.h"

#include <stdio.h>
#include <time.h>

enum {
    ATTEMPTS = 3,
    MOMENT_MS = 250,
    CHAIN_MAX = 100000, /* shipments that a manifest may consist of */
};

void wb_vault_full_name(const struct wb_object_store *store, const char *name, char full_out[WB_VAULT_MESSAGE_NAME_MAX])
{
    snprintf(full_out, WB_VAULT_MESSAGE_NAME_MAX, "%s/%s", wb_object_url(store), name);
}

static void wait_a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = MOMENT_MS * 1000000L}, NULL);
}

int wb_vault_fetch(struct wb_object_store *store, enum wb_vault_kind kind, const struct wb_vault_object *object,
                   struct wb_buf *bytes, struct wb_buf *mem, struct wb_slice *contents_out)
{
    char name[WB_OBJECT_NAME_MAX], full[WB_VAULT_MESSAGE_NAME_MAX];
    int err = 0;

    *contents_out = WB_SLICE_EMPTY;
    wb_vault_object_name(kind == WB_VAULT_SHIPMENT ? WB_VAULT_SHIPMENTS : WB_VAULT_OBJECTS, object, name);
    wb_vault_full_name(store, name, full);
    for (int i = 0; i < ATTEMPTS; i++) {
        wb_buf_release(bytes);
        err = wb_object_get(store, name, WB_OBJECT_MAX, bytes);
        if (err == WB_E_NOTFOUND && i + 1 < ATTEMPTS && !wb_stop_requested()) {
            wait_a_moment();
            continue;
        }
        if (err == WB_E_NOTFOUND)
            return wb_fail(WB_E_NOTFOUND, "%s is missing", full);
        if (err == WB_E_LIMIT)
            return wb_fail(WB_E_CORRUPT, "%s is larger than any object of a vault", full);
        if (err < 0)
            return err;
        if (wb_vault_object_fits(object, wb_buf_slice(bytes)))
            return wb_vault_object_unpack(full, kind, wb_buf_slice(bytes), mem, contents_out);
    }
    /* Why it is not the right one, if it says so itself. */
    err = wb_vault_object_unpack(full, kind, wb_buf_slice(bytes), mem, contents_out);
    *contents_out = WB_SLICE_EMPTY;
    return err < 0 ? err : wb_fail(WB_E_CORRUPT, "%s is not the object that was put there: its bytes are others", full);
}

int wb_vault_fetch_head(struct wb_object_store *store, struct wb_vault_head *head_out)
{
    struct wb_buf bytes = WB_BUF_INIT, mem = WB_BUF_INIT;
    char full[WB_VAULT_MESSAGE_NAME_MAX];
    struct wb_slice contents;
    int err = 0;

    wb_vault_full_name(store, WB_VAULT_HEAD_NAME, full);
    for (int i = 0; i < ATTEMPTS; i++) {
        wb_buf_release(&bytes);
        err = wb_object_get(store, WB_VAULT_HEAD_NAME, WB_VAULT_HEAD_MAX, &bytes);
        if (err == WB_E_NOTFOUND)
            err = wb_fail(WB_E_NOTFOUND, "%s: there is no vault", wb_object_url(store));
        else if (err == WB_E_LIMIT)
            err = wb_fail(WB_E_CORRUPT, "%s is too large: it is not the head of a vault", full);
        if (err < 0)
            break;
        err = wb_vault_object_unpack(full, WB_VAULT_HEAD, wb_buf_slice(&bytes), &mem, &contents);
        if (err == 0)
            err = wb_vault_head_decode(full, contents, head_out);
        if (err != WB_E_CORRUPT)
            break;
    }
    wb_buf_release(&bytes);
    wb_buf_release(&mem);
    return err;
}

/* ---- the manifest -------------------------------------------------------------------------------------------- */

/* Where a shipment is in the chain, and what it says. */
struct link {
    struct wb_vault_object object;
    struct wb_vault_shipment shipment;
};

struct shipment_walk {
    struct wb_object_store *store;
    const struct wb_vault_head *head;
    WB_VEC(struct link) links; /* the newest first */
    struct wb_vault_object at; /* the shipment that is being read or applied */
    struct wb_buf bytes, mem;
};

static void name_of(const struct shipment_walk *walk, const struct wb_vault_object *object,
                    char full_out[WB_VAULT_MESSAGE_NAME_MAX])
{
    char name[WB_OBJECT_NAME_MAX];

    wb_vault_object_name(WB_VAULT_SHIPMENTS, object, name);
    wb_vault_full_name(walk->store, name, full_out);
}

/* Reads one more shipment: the one before those that were read. */
static int read_link(struct shipment_walk *walk, const struct wb_vault_object *object)
{
    char full[WB_VAULT_MESSAGE_NAME_MAX];
    struct wb_slice contents;

    walk->at = *object;
    int err = wb_vault_fetch(walk->store, WB_VAULT_SHIPMENT, object, &walk->bytes, &walk->mem, &contents);

    if (err < 0)
        return err;
    name_of(walk, object, full);
    struct link *link = wb_vec_add(&walk->links);
    if (!link)
        return WB_E_NOMEM;
    link->object = *object;
    err = wb_vault_shipment_decode(full, object, contents, &link->shipment);
    if (err < 0) {
        walk->links.count--;
        return err;
    }
    if (memcmp(link->shipment.repository, walk->head->repository, WB_VAULT_ID_BYTES) != 0)
        return wb_fail(WB_E_CORRUPT, "%s is a shipment of another repository", full);
    uint64_t number = link->shipment.number;
    if (walk->links.count == 1 ? number != walk->head->point.number : number >= link[-1].shipment.number)
        return wb_fail(WB_E_CORRUPT, "%s is not the shipment that belongs there", full);
    return 0;
}

static int read_chain(struct shipment_walk *walk)
{
    int err = read_link(walk, &walk->head->shipment);

    while (err == 0 && !walk->links.items[walk->links.count - 1].shipment.full) {
        struct wb_vault_object previous = walk->links.items[walk->links.count - 1].shipment.previous;
        if (walk->links.count == CHAIN_MAX)
            return wb_fail(WB_E_CORRUPT, "%s: no shipment of the last %d is a full one", wb_object_url(walk->store),
                           CHAIN_MAX);
        err = read_link(walk, &previous);
    }
    return err;
}

int wb_vault_fetch_manifest(struct wb_object_store *store, const struct wb_vault_head *head,
                            struct wb_vault_manifest *manifest_out)
{
    struct wb_vault_object at;

    return wb_vault_fetch_manifest_at(store, head, manifest_out, &at);
}

int wb_vault_fetch_manifest_at(struct wb_object_store *store, const struct wb_vault_head *head,
                               struct wb_vault_manifest *manifest_out, struct wb_vault_object *at_out)
{
    struct shipment_walk walk = {.store = store, .head = head};
    char full[WB_VAULT_MESSAGE_NAME_MAX];

    memset(manifest_out, 0, sizeof *manifest_out);
    int err = read_chain(&walk);
    for (size_t i = walk.links.count; err == 0 && i-- > 0;) {
        struct link *link = &walk.links.items[i];
        name_of(&walk, &link->object, full);
        walk.at = link->object;
        err = wb_vault_manifest_apply(manifest_out, full, &link->object, &link->shipment, NULL);
        wb_vault_shipment_release(&link->shipment);
    }
    for (size_t i = 0; i < walk.links.count; i++)
        wb_vault_shipment_release(&walk.links.items[i].shipment);
    *at_out = walk.at;
    wb_vec_release(&walk.links);
    wb_buf_release(&walk.bytes);
    wb_buf_release(&walk.mem);
    return err;
}
