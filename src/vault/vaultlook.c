/*
 * vaultlook.c - what is in a vault: its states, and whether all of its objects are as they were put there. Changes
 * nothing.
 *
 * A backup may go on meanwhile and delete what has expired. So what is missing or damaged is a problem only if the
 * vault still needs it afterwards; and what nothing needs is mentioned only if it is still there.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "vault/vault.h"
#include "vault/vaultcrew.h"
#include "vault/vaultpoints.h"
#include "vault/vaultrows.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int wb_vault_list(const char *url, int (*each)(void *context, const struct wb_vault_state *state), void *context)
{
    struct wb_object_options options = {.stoppable = true};
    struct wb_object_store *store = NULL;
    struct wb_vault_manifest manifest = {.number = 0};
    struct wb_vault_head head;
    int err = wb_object_open(url, &options, &store);

    if (err == 0)
        err = wb_vault_fetch_head(store, &head);
    if (err == 0)
        err = wb_vault_fetch_manifest(store, &head, &manifest);
    for (size_t i = 0; i < manifest.points.count && err == 0; i++) {
        struct wb_vault_state state;
        wb_vault_state_of(&manifest.points.items[i], &state);
        err = each(context, &state);
    }
    wb_vault_manifest_release(&manifest);
    wb_object_close(store);
    return err;
}

/* ---- verify ---------------------------------------------------------------------------------------------- */

/* A piece that could not be read. */
struct trouble {
    size_t piece;
    char *message; /* owned */
};

/* An object by which two manifests can be compared. */
struct needed {
    bool shipment;
    uint64_t run;
    uint32_t count;
};
struct needed_list WB_VEC_OF(struct needed);

struct verification {
    struct wb_object_store *store;
    void (*found)(void *context, bool problem, const char *object, const char *message);
    void *context;
    struct wb_vault_manifest manifest;
    WB_VEC(const struct wb_vault_piece *) pieces; /* those that are objects */
    pthread_mutex_t lock;
    WB_VEC(struct trouble) troubles; /* protected by the lock */
    struct needed_list needed;       /* by the manifest of now; sorted */
    uint64_t objects, bytes;
};

static int compare_needed(const void *a, const void *b)
{
    const struct needed *x = a, *y = b;

    if (x->shipment != y->shipment)
        return x->shipment ? 1 : -1;
    if (x->run != y->run)
        return x->run < y->run ? -1 : 1;
    return (x->count > y->count) - (x->count < y->count);
}

static bool is_needed(const struct verification *v, bool shipment, const struct wb_vault_object *object)
{
    struct needed wanted = {shipment, object->run, object->count};

    return v->needed.count && bsearch(&wanted, v->needed.items, v->needed.count, sizeof wanted, compare_needed) != NULL;
}

/* Reads again what the vault needs by now. */
static int find_needed(struct verification *v)
{
    struct wb_vault_manifest manifest = {.number = 0};
    struct wb_vault_head head;
    int err = wb_vault_fetch_head(v->store, &head);

    wb_vec_clear(&v->needed);
    if (err == 0)
        err = wb_vault_fetch_manifest(v->store, &head, &manifest);
    for (size_t i = 0; i < manifest.chain.count && err == 0; i++)
        err =
            wb_vec_push(&v->needed, (struct needed){true, manifest.chain.items[i].run, manifest.chain.items[i].count});
    for (size_t i = 0; i < manifest.pieces.count && err == 0; i++) {
        const struct wb_vault_object *object = &manifest.pieces.items[i].object;
        if (wb_vault_object_is_one(object))
            err = wb_vec_push(&v->needed, (struct needed){false, object->run, object->count});
    }
    if (v->needed.count)
        qsort(v->needed.items, v->needed.count, sizeof *v->needed.items, compare_needed);
    wb_vault_manifest_release(&manifest);
    return err;
}

/* ---- reading everything ---------------------------------------------------------------------------------- */

static int note_trouble(void *context, size_t piece, int err)
{
    struct verification *v = context;
    struct trouble trouble = {.piece = piece};

    if (err != WB_E_CORRUPT && err != WB_E_NOTFOUND && err != WB_E_NEWER)
        return err;
    trouble.message = wb_strdup(wb_error_message());
    pthread_mutex_lock(&v->lock);
    int pushed = trouble.message ? wb_vec_push(&v->troubles, trouble) : WB_E_NOMEM;
    pthread_mutex_unlock(&v->lock);
    if (pushed < 0)
        wb_free(trouble.message);
    return pushed;
}

/* The bytes are those that were put there. Rows must also be such. */
static int check_piece(void *context, size_t number, struct wb_slice contents)
{
    struct verification *v = context;
    const struct wb_vault_piece *piece = v->pieces.items[number];
    const struct wb_vault_file *file = wb_vault_manifest_file(&v->manifest, piece->file);
    char name[WB_OBJECT_NAME_MAX], full[WB_VAULT_MESSAGE_NAME_MAX];
    struct wb_vault_rows_reader reader = {0};
    int err;

    WB_CHECK(file);
    if (file->kind != WB_VAULT_ROWS)
        return 0;
    wb_vault_object_name(WB_VAULT_OBJECTS, &piece->object, name);
    wb_vault_full_name(v->store, name, full);
    wb_vault_rows_read(&reader, full, contents);
    while ((err = wb_vault_rows_next(&reader)) > 0)
        continue;
    wb_vault_rows_reader_release(&reader);
    return err < 0 ? note_trouble(v, number, err) : 0;
}

static int read_pieces(struct verification *v)
{
    struct wb_vaultcrew_sink sink = {.take = check_piece, .failed = note_trouble, .context = v};
    struct wb_vaultcrew *crew = NULL;
    int err = 0;

    for (size_t i = 0; i < v->manifest.pieces.count && err == 0; i++)
        if (wb_vault_object_is_one(&v->manifest.pieces.items[i].object))
            err = wb_vec_push(&v->pieces, &v->manifest.pieces.items[i]);
    if (err == 0)
        err = wb_vaultcrew_start(v->store, v->pieces.items, v->pieces.count, &sink, &crew);
    if (err == 0)
        err = wb_vaultcrew_wait(crew, v->pieces.count, NULL);
    if (crew) {
        v->objects += v->pieces.count;
        v->bytes += wb_vaultcrew_bytes(crew);
    }
    wb_vaultcrew_end(crew);
    return err;
}

static int compare_troubles(const void *a, const void *b)
{
    const struct trouble *x = a, *y = b;

    return (x->piece > y->piece) - (x->piece < y->piece);
}

/* Says what is wrong, in the order of the manifest. */
static void tell_troubles(struct verification *v)
{
    char name[WB_OBJECT_NAME_MAX];

    if (v->troubles.count)
        qsort(v->troubles.items, v->troubles.count, sizeof *v->troubles.items, compare_troubles);
    for (size_t i = 0; i < v->troubles.count; i++) {
        const struct wb_vault_object *object = &v->pieces.items[v->troubles.items[i].piece]->object;
        wb_vault_object_name(WB_VAULT_OBJECTS, object, name);
        if (is_needed(v, false, object))
            v->found(v->context, true, name, v->troubles.items[i].message);
    }
}

/* ---- what nothing needs ---------------------------------------------------------------------------------- */

struct leftover {
    char *name; /* owned */
};
struct leftovers {
    struct verification *v;
    WB_VEC(struct leftover) list;
};

static int look_at_name(void *context, const char *name, uint64_t size)
{
    struct leftovers *leftovers = context;
    struct wb_vault_object object;
    bool shipment;

    (void)size;
    if (strcmp(name, WB_VAULT_HEAD_NAME) == 0 ||
        (wb_vault_object_parse(wb_slice_str(name), &shipment, &object) && is_needed(leftovers->v, shipment, &object)))
        return 0;
    char *copy = wb_strdup(name);
    int err = copy ? wb_vec_push(&leftovers->list, (struct leftover){copy}) : WB_E_NOMEM;
    if (err < 0)
        wb_free(copy);
    return err;
}

/* A listing may be old, so it proves nothing: what is told has been found there afterwards. */
static int tell_leftovers(struct verification *v)
{
    struct leftovers leftovers = {.v = v};
    struct wb_vault_object object;
    bool shipment;
    uint64_t size;
    int listed = wb_object_list(v->store, "", look_at_name, &leftovers);
    int err = listed == WB_E_NOMEM || listed == WB_E_STOPPED ? listed : 0;

    if (listed < 0 && err == 0)
        v->found(v->context, false, "", wb_error_message());
    if (err == 0 && leftovers.list.count)
        err = find_needed(v);
    for (size_t i = 0; i < leftovers.list.count; i++) {
        const char *name = leftovers.list.items[i].name;
        bool ours = wb_vault_object_parse(wb_slice_str(name), &shipment, &object);
        if (err == 0 && !(ours && is_needed(v, shipment, &object)) && wb_object_size(v->store, name, &size) == 0)
            v->found(v->context, false, name,
                     ours ? "nothing needs it: it belongs to a backup that was killed, or that is still under way"
                          : "it does not belong to the vault");
        wb_free(leftovers.list.items[i].name);
    }
    wb_vec_release(&leftovers.list);
    return err;
}

/* ---- the door -------------------------------------------------------------------------------------------- */

/* What is read before anything else. *go_on_out: the manifest is there. */
static int read_manifest(struct verification *v, bool *go_on_out)
{
    struct wb_vault_head head;
    struct wb_vault_object failed;
    char name[WB_OBJECT_NAME_MAX] = WB_VAULT_HEAD_NAME;
    int err = wb_vault_fetch_head(v->store, &head);

    *go_on_out = false;
    if (err == 0) {
        err = wb_vault_fetch_manifest_at(v->store, &head, &v->manifest, &failed);
        if (err < 0)
            wb_vault_object_name(WB_VAULT_SHIPMENTS, &failed, name);
        err = err == WB_E_NOTFOUND ? WB_E_CORRUPT : err;
    }
    if (err == WB_E_CORRUPT) {
        v->found(v->context, true, name, wb_error_message());
        return 0;
    }
    *go_on_out = err == 0;
    for (size_t i = 0; i < v->manifest.chain.count; i++)
        v->bytes += v->manifest.chain.items[i].stored;
    v->objects += 1 + v->manifest.chain.count;
    return err;
}

/* Every state must be a whole repository. */
static int check_points(struct verification *v)
{
    struct wb_vault_contents contents;
    char full[WB_VAULT_MESSAGE_NAME_MAX], name[WB_OBJECT_NAME_MAX];

    for (size_t i = 0; i < v->manifest.points.count; i++) {
        wb_vault_object_name(WB_VAULT_SHIPMENTS, &v->manifest.points.items[i].shipment, name);
        wb_vault_full_name(v->store, name, full);
        int err = wb_vault_contents_at(&v->manifest, full, v->manifest.points.items[i].number, &contents);
        if (err == 0)
            wb_vault_contents_release(&contents);
        if (err == WB_E_CORRUPT)
            v->found(v->context, true, name, wb_error_message());
        else if (err < 0)
            return err;
    }
    return 0;
}

int wb_vault_verify(const char *url,
                    void (*found)(void *context, bool problem, const char *object, const char *message), void *context,
                    uint64_t *objects_out, uint64_t *bytes_out)
{
    struct wb_object_options options = {.stoppable = true};
    struct verification v = {.found = found, .context = context};
    bool go_on = false;

    *objects_out = *bytes_out = 0;
    WB_CHECK(pthread_mutex_init(&v.lock, NULL) == 0);
    int err = wb_object_open(url, &options, &v.store);
    if (err == 0)
        err = read_manifest(&v, &go_on);
    if (err == 0 && go_on)
        err = check_points(&v);
    if (err == 0 && go_on)
        err = read_pieces(&v);
    if (err == 0 && go_on)
        err = find_needed(&v);
    if (err == 0 && go_on) {
        tell_troubles(&v);
        err = tell_leftovers(&v);
    }
    *objects_out = v.objects;
    *bytes_out = v.bytes;
    for (size_t i = 0; i < v.troubles.count; i++)
        wb_free(v.troubles.items[i].message);
    wb_vec_release(&v.troubles);
    wb_vec_release(&v.pieces);
    wb_vec_release(&v.needed);
    wb_vault_manifest_release(&v.manifest);
    wb_object_close(v.store);
    pthread_mutex_destroy(&v.lock);
    return err;
}
