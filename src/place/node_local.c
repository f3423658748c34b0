/*
 * node_local.c - a node that is a directory of this machine.
 *
 * Each file that an owner has opened or created has a *seat*: a descriptor that stays open until the owner closes it.
 * So a file that was removed can be read by those who have it open, and a claim is a lock on the descriptor (flock),
 * which excludes other owners, of this process and of others, and ends with the process. Requests for a file that the
 * owner has not opened open it for the moment.
 *
 * Names are checked before anything is opened: nothing outside the directory is ever touched. Before a name is opened,
 * created, removed or listed, the identity of the directory is checked; if webbase.node is still the same file as the
 * last time, that costs one stat(). A seat whose directory has been replaced stays valid: it is a file of the right
 * node.
 */
#include "base/check.h"
#include "base/container.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"
#include "place/node_inside.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/path.h"

#include <pthread.h>
#include <stdio.h>

enum { SEATS_MAX = 1 << 16 };

/* An open file of an owner. */
struct node_seat {
    uint64_t owner; /* 0: free */
    struct wb_file file;
    char name[WB_NODE_NAME_MAX];
    unsigned users; /* requests that are using it now */
    bool created, writable, claimed;
    bool leaving; /* closed while it was in use: the last user closes it */
};

struct local_node {
    struct wb_node node;
    bool has_identity;
    struct wb_node_identity identity;
    char *identity_path, *pages; /* DIR/webbase.node, DIR/pages */
    pthread_mutex_t mutex;       /* for everything below, and for the members of seats except file and name */
    WB_VEC(struct node_seat *) seats;
    bool checked; /* webbase.node was right when it was the file with this stamp */
    struct wb_folder_stamp stamp;
};

/* ---- who the node is ------------------------------------------------------------------------- */

/* WB_E_DOWN unless the directory is (still, or again) the node that it must be. */
static int check_identity(struct local_node *local)
{
    struct wb_folder_stamp stamp;

    if (!local->has_identity)
        return 0;
    bool there = wb_folder_stamp(local->identity_path, &stamp);
    pthread_mutex_lock(&local->mutex);
    bool same = there && local->checked && wb_folder_stamp_equal(&stamp, &local->stamp);
    pthread_mutex_unlock(&local->mutex);
    if (same)
        return 0;
    int err = wb_node_check(local->node.label, &local->identity);
    pthread_mutex_lock(&local->mutex);
    local->checked = err == 0 && there;
    local->stamp = stamp;
    pthread_mutex_unlock(&local->mutex);
    return err;
}

static int space(struct local_node *local, struct wb_node_reply *reply)
{
    struct wb_folder_space room;
    int err = check_identity(local);

    if (err == 0)
        err = wb_folder_space(local->node.label, &room);
    if (err < 0)
        return err;
    reply->capacity = room.capacity;
    reply->free = room.free;
    reply->read_only = !wb_folder_is_writable(local->pages);
    return 0;
}

/* ---- seats ----------------------------------------------------------------------------------- */

static bool is_seat_of(const struct node_seat *seat, const struct wb_node_request *request)
{
    return seat->owner == request->owner && !seat->leaving && strcmp(seat->name, request->name) == 0;
}

/* Finds the seat of the request's owner and file; 0 if there is none. The mutex is locked. */
static uint32_t find_seat(const struct local_node *local, const struct wb_node_request *request)
{
    if (request->owner == 0)
        return 0;
    if (request->seat && request->seat <= local->seats.count &&
        is_seat_of(local->seats.items[request->seat - 1], request))
        return request->seat;
    for (uint32_t i = 0; i < local->seats.count; i++)
        if (is_seat_of(local->seats.items[i], request))
            return i + 1;
    return 0;
}

/* Takes a seat for use. NULL: the owner has not opened the file. */
static struct node_seat *take_seat(struct local_node *local, const struct wb_node_request *request,
                                   uint32_t *number_out)
{
    struct node_seat *seat = NULL;

    pthread_mutex_lock(&local->mutex);
    *number_out = find_seat(local, request);
    if (*number_out) {
        seat = local->seats.items[*number_out - 1];
        seat->users++;
    }
    pthread_mutex_unlock(&local->mutex);
    return seat;
}

/* Closes a seat that is used no more. The mutex is locked. */
static void end_seat(struct node_seat *seat)
{
    WB_CHECK(seat->users == 0);
    wb_file_close(&seat->file);
    *seat = (struct node_seat){.file = WB_FILE_INIT};
}

static void leave_seat(struct local_node *local, struct node_seat *seat)
{
    pthread_mutex_lock(&local->mutex);
    WB_CHECK(seat->users > 0);
    if (--seat->users == 0 && seat->leaving)
        end_seat(seat);
    pthread_mutex_unlock(&local->mutex);
}

/* Gives an open file a seat. On error the file stays the caller's. The mutex is locked. */
static int add_seat(struct local_node *local, const struct wb_node_request *request, const struct node_seat *fresh,
                    uint32_t *number_out)
{
    uint32_t i = 0;

    while (i < local->seats.count && local->seats.items[i]->owner)
        i++;
    if (i == SEATS_MAX)
        return wb_fail(WB_E_LIMIT, "too many files of %s are open", local->node.label);
    if (i == local->seats.count) {
        struct node_seat *seat = wb_alloc_zero(1, sizeof *seat);
        if (!seat || wb_vec_push(&local->seats, seat) < 0) {
            wb_free(seat);
            return WB_E_NOMEM;
        }
    }
    struct node_seat *seat = local->seats.items[i];
    *seat = *fresh;
    seat->owner = request->owner;
    snprintf(seat->name, sizeof seat->name, "%s", request->name);
    *number_out = i + 1;
    return 0;
}

/* ---- opening and creating -------------------------------------------------------------------- */

static int open_named(struct local_node *local, const struct wb_node_request *request, unsigned flags,
                      struct wb_file *file_out)
{
    *file_out = WB_FILE_INIT;
    int err = check_identity(local);
    if (err < 0)
        return err;
    char *path = wb_path_join(local->node.label, request->name);
    if (!path)
        return WB_E_NOMEM;
    /* A pipe in the place of a file would make us wait for a writer that never comes. */
    err = wb_path_kind(path) == WB_PATH_OTHER ? wb_fail(WB_E_CORRUPT, "%s is not a file", path)
                                              : wb_file_open(path, flags, file_out);
    wb_free(path);
    return err;
}

/* Makes a file and locks it. */
static int create_locked(struct local_node *local, const struct wb_node_request *request, struct wb_file *file_out)
{
    /* Before we have the lock, another process may take the file for an orphan and remove it: then we start again. */
    for (;;) {
        int err = open_named(local, request, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW, file_out);
        if (err < 0)
            return err;
        err = wb_file_lock(file_out, true);
        if (err == 0 && !wb_file_unlinked(file_out))
            return 0;
        wb_file_close(file_out);
        if (err < 0)
            return err;
    }
}

/* open, create; and claim, of a file that is not open. */
static int open_seat(struct local_node *local, const struct wb_node_request *request, struct wb_node_reply *reply)
{
    bool create = request->kind == WB_NODE_CREATE, write = create || request->write;
    struct node_seat fresh = {.created = create, .writable = write, .claimed = create};

    pthread_mutex_lock(&local->mutex);
    reply->seat = find_seat(local, request);
    struct node_seat *old = reply->seat ? local->seats.items[reply->seat - 1] : NULL;
    bool again = old && (create ? old->created : old->writable || !write);
    pthread_mutex_unlock(&local->mutex);
    if (again)
        return 0;
    if (old)
        return wb_fail(WB_E_INVALID, "%s/%s: its owner has it open in another way", local->node.label, request->name);
    int err = create ? create_locked(local, request, &fresh.file)
                     : open_named(local, request, write ? WB_FILE_WRITE : WB_FILE_READ, &fresh.file);
    if (err < 0)
        return err;
    pthread_mutex_lock(&local->mutex);
    err = add_seat(local, request, &fresh, &reply->seat);
    pthread_mutex_unlock(&local->mutex);
    if (err < 0) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        if (create)
            wb_path_unlink(fresh.file.path);
        wb_file_close(&fresh.file);
        return wb_error_restore(&why);
    }
    return 0;
}

static int close_seat(struct local_node *local, const struct wb_node_request *request)
{
    pthread_mutex_lock(&local->mutex);
    uint32_t number = find_seat(local, request);
    struct node_seat *seat = number ? local->seats.items[number - 1] : NULL;
    if (seat && seat->users)
        seat->leaving = true;
    else if (seat)
        end_seat(seat);
    pthread_mutex_unlock(&local->mutex);
    return 0;
}

/* ---- requests for open files ----------------------------------------------------------------- */

static int claim(struct node_seat *seat)
{
    int err = wb_file_lock(&seat->file, false); /* locking what we have locked already does nothing */

    if (err == 0 && wb_file_unlinked(&seat->file)) {
        wb_file_unlock(&seat->file);
        return wb_fail(WB_E_NOTFOUND, "%s: no such file", seat->file.path);
    }
    if (err == 0)
        seat->claimed = true;
    return err;
}

static void release(struct node_seat *seat)
{
    if (seat->claimed)
        wb_file_unlock(&seat->file);
    seat->claimed = false;
}

static int must_be_claimed(const struct node_seat *seat, const struct wb_node_request *request)
{
    if (!seat || !seat->claimed)
        return wb_fail(WB_E_BUSY, "%s: only who has claimed the file may write to it", request->name);
    if (!seat->writable)
        return wb_fail(WB_E_INVALID, "%s is open for reading only", seat->file.path);
    return 0;
}

static int hint(const struct node_seat *seat, const struct wb_node_request *request)
{
    if (!seat)
        return 0;
    if (request->hint == WB_NODE_SEQUENTIAL)
        wb_file_sequential(&seat->file);
    else if (request->hint == WB_NODE_WRITE_BACK)
        wb_file_write_back(&seat->file, request->offset, request->length);
    else if (seat->claimed && seat->writable)
        wb_file_discard(&seat->file, request->offset, request->length);
    return 0;
}

/* What can be done with a file that somebody has opened: read, size, sync. */
static int use_file(const struct wb_file *file, const struct wb_node_request *request, struct wb_node_reply *reply)
{
    size_t got;
    int err;

    switch (request->kind) {
    case WB_NODE_READ:
        err = wb_file_read_at(file, request->offset, request->into, (size_t)request->length, &got);
        reply->bytes = wb_slice(request->into, err == 0 ? got : 0);
        return err;
    case WB_NODE_SIZE:
        return wb_file_size(file, &reply->size);
    default:
        WB_CHECK(request->kind == WB_NODE_SYNC);
        return wb_file_sync(file);
    }
}

static int remove_named(struct local_node *local, const struct node_seat *seat, const struct wb_node_request *request)
{
    struct wb_file file = WB_FILE_INIT;
    int err;

    if (seat && wb_file_unlinked(&seat->file))
        return 0;
    /* Who has the claim may remove it. For anybody else: nobody may have it. */
    if (!seat || !seat->claimed) {
        err = open_named(local, request, WB_FILE_READ, &file);
        if (err == WB_E_NOTFOUND)
            return 0;
        if (err == 0)
            err = wb_file_lock(&file, false);
        /* Somebody removed it before us. What has that name now is another file, which was made meanwhile. */
        if (err == 0 && wb_file_unlinked(&file)) {
            wb_file_close(&file);
            return 0;
        }
    } else {
        err = check_identity(local);
    }
    if (err == 0)
        err = wb_path_unlink(seat ? seat->file.path : file.path);
    wb_file_close(&file);
    return err;
}

/* Requests that name a file, except for opening and closing. */
static int call_file(struct local_node *local, struct node_seat *seat, const struct wb_node_request *request,
                     struct wb_node_reply *reply)
{
    struct wb_file file = WB_FILE_INIT;
    int err;

    switch (request->kind) {
    case WB_NODE_WRITE:
        err = must_be_claimed(seat, request);
        return err < 0 ? err : wb_file_write_at(&seat->file, request->offset, request->bytes.ptr, request->bytes.len);
    case WB_NODE_TRUNCATE:
        err = must_be_claimed(seat, request);
        return err < 0 ? err : wb_file_truncate(&seat->file, request->offset);
    case WB_NODE_CLAIM:
        WB_CHECK(seat != NULL);
        return claim(seat);
    case WB_NODE_RELEASE:
        if (seat)
            release(seat);
        return 0;
    case WB_NODE_REMOVE:
        return remove_named(local, seat, request);
    case WB_NODE_HINT:
        return hint(seat, request);
    default:
        if (seat)
            return use_file(&seat->file, request, reply);
        err = open_named(local, request, WB_FILE_READ, &file);
        if (err == 0)
            err = use_file(&file, request, reply);
        wb_file_close(&file);
        return err;
    }
}

/* ---- names ----------------------------------------------------------------------------------- */

/* A listing under way. */
struct listing {
    const struct local_node *local;
    const struct wb_node_request *request;
    size_t used;
    bool more;
};

static int list_one(void *context, const struct wb_path_entry *found)
{
    struct listing *listing = context;
    struct wb_node_entry entry = {.size = found->size};
    char *to = (char *)listing->request->into + listing->used;

    int len = snprintf(entry.name, sizeof entry.name, WB_NODE_DIR "/%s", found->name);
    if (found->kind != WB_PATH_FILE || len >= (int)sizeof entry.name || !wb_node_name_valid(wb_slice_str(entry.name)) ||
        strcmp(entry.name, listing->request->name ? listing->request->name : "") <= 0)
        return 0;
    if (listing->request->length - listing->used < WB_NODE_LIST_BYTES_MIN) {
        listing->more = true;
        return 1;
    }
    char *path = wb_path_join(listing->local->node.label, entry.name);
    if (!path)
        return WB_E_NOMEM;
    entry.disk_bytes = wb_path_disk_bytes(path);
    wb_free(path);
    listing->used += wb_node_entry_put(&entry, to);
    return 0;
}

static int list(struct local_node *local, const struct wb_node_request *request, struct wb_node_reply *reply)
{
    struct listing listing = {.local = local, .request = request};
    int err = check_identity(local);

    if (err == 0 && wb_path_kind(local->pages) != WB_PATH_NONE)
        err = wb_path_each(local->pages, list_one, &listing);
    reply->bytes = wb_slice(request->into, err < 0 ? 0 : listing.used);
    reply->more = listing.more;
    return err < 0 ? err : 0;
}

/* ---- the node -------------------------------------------------------------------------------- */

static int call_node(struct local_node *local, const struct wb_node_request *request, struct wb_node_reply *reply)
{
    int err = wb_node_request_check(request);

    if (err < 0)
        return err;
    switch (request->kind) {
    case WB_NODE_IDENTITY:
        err = check_identity(local);
        reply->identity = local->identity;
        return err;
    case WB_NODE_SPACE:
        return space(local, reply);
    case WB_NODE_LIST:
        return list(local, request, reply);
    case WB_NODE_SYNC_NAMES:
        err = check_identity(local);
        return err < 0 ? err : wb_path_sync_dir(local->pages);
    case WB_NODE_CREATE:
    case WB_NODE_OPEN:
        return open_seat(local, request, reply);
    case WB_NODE_CLOSE:
        return close_seat(local, request);
    default:
        return call_file(local, NULL, request, reply);
    }
}

static int call_local(struct wb_node *node, const struct wb_node_request *request, struct wb_node_reply *reply)
{
    struct local_node *local = WB_CONTAINER_OF(node, struct local_node, node);
    bool opens = request->kind == WB_NODE_OPEN || request->kind == WB_NODE_CREATE || request->kind == WB_NODE_CLOSE;
    uint32_t number = 0;
    /* What names an open file has been checked before; the kernel checks offset and length. */
    struct node_seat *seat = opens || !request->name ? NULL : take_seat(local, request, &number);

    if (!seat && request->kind == WB_NODE_CLAIM) {
        struct wb_node_request open = *request;
        open.kind = WB_NODE_OPEN;
        open.write = true;
        int err = call_node(local, &open, reply);
        if (err < 0)
            return err;
        seat = take_seat(local, request, &number);
    }
    if (!seat)
        return call_node(local, request, reply);
    int err = call_file(local, seat, request, reply);
    reply->seat = number;
    leave_seat(local, seat);
    return err;
}

static void forget_owner(struct wb_node *node, uint64_t owner)
{
    struct local_node *local = WB_CONTAINER_OF(node, struct local_node, node);

    WB_CHECK(owner != 0);
    pthread_mutex_lock(&local->mutex);
    for (size_t i = 0; i < local->seats.count; i++) {
        struct node_seat *seat = local->seats.items[i];
        if (seat->owner == owner && seat->users)
            seat->leaving = true;
        else if (seat->owner == owner)
            end_seat(seat);
    }
    pthread_mutex_unlock(&local->mutex);
}

static void close_local(struct wb_node *node)
{
    struct local_node *local = WB_CONTAINER_OF(node, struct local_node, node);

    for (size_t i = 0; i < local->seats.count; i++) {
        if (local->seats.items[i]->owner)
            end_seat(local->seats.items[i]);
        wb_free(local->seats.items[i]);
    }
    wb_vec_release(&local->seats);
    wb_free(local->identity_path);
    wb_free(local->pages);
    pthread_mutex_destroy(&local->mutex);
}

int wb_node_open(const char *dir, const struct wb_node_identity *identity, struct wb_node **node_out)
{
    struct local_node *local = wb_alloc_zero(1, sizeof *local);

    *node_out = NULL;
    if (!local)
        return WB_E_NOMEM;
    local->node.call = call_local;
    local->node.forget = forget_owner;
    local->node.close = close_local;
    pthread_mutex_init(&local->mutex, NULL);
    local->identity_path = wb_path_join(dir, WB_NODE_IDENTITY_NAME);
    local->pages = wb_path_join(dir, WB_NODE_DIR);
    local->has_identity = identity != NULL;
    if (identity)
        local->identity = *identity;
    int err = wb_node_init(&local->node, dir);
    if (err == 0 && (!local->identity_path || !local->pages))
        err = WB_E_NOMEM;
    if (err < 0)
        wb_node_close(&local->node);
    else
        *node_out = &local->node;
    return err;
}
