/*
 * node.c - what all nodes have in common: calling, serving a transport, and requests about the whole node. The node
 * behind a transport is here too, because it does nothing but encode and decode.
 */
#include "place/node.h"
#include "base/check.h"
#include "base/container.h"
#include "base/error.h"
#include "base/mem.h"
#include "place/node_inside.h"
#include "os/random.h"

#include <pthread.h>

enum { LIST_BYTES = 64 << 10 };

int wb_node_init(struct wb_node *node, const char *label)
{
    uint64_t first;

    wb_random_bytes(&first, sizeof first);
    node->magic = WB_NODE_MAGIC;
    node->label = wb_strdup(label);
    atomic_store(&node->holders, 1);
    atomic_store(&node->next_owner, first);
    return node->label ? 0 : WB_E_NOMEM;
}

void wb_node_hold(struct wb_node *node)
{
    WB_CHECK(node->magic == WB_NODE_MAGIC);
    atomic_fetch_add(&node->holders, 1);
}

/* Owners count from a random number, because they must differ from those of all other processes. */
uint64_t wb_node_owner(struct wb_node *node)
{
    uint64_t owner;

    WB_CHECK(node->magic == WB_NODE_MAGIC);
    do
        owner = atomic_fetch_add(&node->next_owner, 1);
    while (owner == 0);
    return owner;
}

void wb_node_close(struct wb_node *node)
{
    if (!node)
        return;
    WB_CHECK(node->magic == WB_NODE_MAGIC);
    if (atomic_fetch_sub(&node->holders, 1) != 1)
        return;
    node->close(node);
    wb_free(node->label);
    node->magic = 0;
    wb_free(node);
}

const char *wb_node_label(const struct wb_node *node)
{
    WB_CHECK(node->magic == WB_NODE_MAGIC);
    return node->label;
}

int wb_node_call(struct wb_node *node, const struct wb_node_request *request, struct wb_node_reply *reply)
{
    WB_CHECK(node->magic == WB_NODE_MAGIC);
    *reply = (struct wb_node_reply){0};
    reply->code = node->call(node, request, reply);
    if (reply->code < 0)
        reply->message = wb_slice_str(wb_error_message());
    return reply->code;
}

void wb_node_forget(struct wb_node *node, uint64_t owner)
{
    WB_CHECK(node->magic == WB_NODE_MAGIC);
    if (node->forget)
        node->forget(node, owner);
}

int wb_node_serve(struct wb_node *node, struct wb_slice bytes, struct wb_buf *out)
{
    char name[WB_NODE_NAME_MAX];
    struct wb_node_request request;
    struct wb_node_reply reply;
    struct wb_buf room = WB_BUF_INIT;
    int err = wb_node_request_decode(bytes, name, &request);

    if (err == 0 && (request.kind == WB_NODE_READ || request.kind == WB_NODE_LIST)) {
        err = wb_buf_reserve(&room, (size_t)request.length + 1);
        request.into = room.ptr;
    }
    if (err == 0) {
        wb_node_call(node, &request, &reply);
        err = wb_node_reply_encode(&reply, out);
    }
    wb_buf_release(&room);
    return err;
}

/* ---- a node behind a transport --------------------------------------------------------------- */

struct wire_node {
    struct wb_node node;
    wb_node_exchange exchange;
    void *context;
    pthread_mutex_t mutex; /* for the buffers: one request is under way at a time */
    struct wb_buf request, reply;
};

/* Whether the reply fits the request: a node that sends more than it was asked for is not trusted. */
static int check_reply(const struct wire_node *wire, const struct wb_node_request *request,
                       const struct wb_node_reply *reply)
{
    bool reads = request->kind == WB_NODE_READ || request->kind == WB_NODE_LIST;

    if (reply->bytes.len > (reads && reply->code == 0 ? request->length : 0))
        return wb_fail(WB_E_PROTO, "%s: the node sent %zu bytes that nobody asked for", wire->node.label,
                       reply->bytes.len);
    if (request->kind == WB_NODE_LIST && reply->code == 0 && reply->more && reply->bytes.len == 0)
        return wb_fail(WB_E_PROTO, "%s: the node's list of files does not end", wire->node.label);
    return 0;
}

/* Sends a request and takes its reply. The mutex is locked. */
static int exchange(struct wire_node *wire, const struct wb_node_request *request, struct wb_node_reply *reply)
{
    wb_buf_clear(&wire->request);
    wb_buf_clear(&wire->reply);
    int err = wb_node_request_encode(request, &wire->request);
    if (err == 0)
        err = wire->exchange(wire->context, wb_buf_slice(&wire->request), &wire->reply);
    if (err == 0)
        err = wb_node_reply_decode(wb_buf_slice(&wire->reply), reply);
    if (err == 0)
        err = check_reply(wire, request, reply);
    if (err < 0)
        return err;
    if (reply->code < 0)
        return wb_fail(reply->code, "%.*s", WB_SLICE_ARG(reply->message));
    if (reply->bytes.len) {
        memcpy(request->into, reply->bytes.ptr, reply->bytes.len);
        reply->bytes.ptr = request->into;
    }
    return 0;
}

static int call_wire(struct wb_node *node, const struct wb_node_request *request, struct wb_node_reply *reply)
{
    struct wire_node *wire = WB_CONTAINER_OF(node, struct wire_node, node);

    pthread_mutex_lock(&wire->mutex);
    int err = exchange(wire, request, reply);
    pthread_mutex_unlock(&wire->mutex);
    return err;
}

static void close_wire(struct wb_node *node)
{
    struct wire_node *wire = WB_CONTAINER_OF(node, struct wire_node, node);

    wb_buf_release(&wire->request);
    wb_buf_release(&wire->reply);
    pthread_mutex_destroy(&wire->mutex);
}

int wb_node_open_wire(const char *label, wb_node_exchange transport, void *context, struct wb_node **node_out)
{
    struct wire_node *wire = wb_alloc_zero(1, sizeof *wire);

    *node_out = NULL;
    if (!wire)
        return WB_E_NOMEM;
    wire->node.call = call_wire;
    wire->node.close = close_wire;
    wire->exchange = transport;
    wire->context = context;
    pthread_mutex_init(&wire->mutex, NULL);
    int err = wb_node_init(&wire->node, label);
    if (err < 0)
        wb_node_close(&wire->node);
    else
        *node_out = &wire->node;
    return err;
}

/* ---- requests about the whole node ----------------------------------------------------------- */

int wb_node_probe(struct wb_node *node)
{
    struct wb_node_reply reply;

    return wb_node_call(node, &(struct wb_node_request){.kind = WB_NODE_IDENTITY}, &reply);
}

int wb_node_space(struct wb_node *node, struct wb_node_space *space_out)
{
    struct wb_node_reply reply;
    int err = wb_node_call(node, &(struct wb_node_request){.kind = WB_NODE_SPACE}, &reply);

    *space_out = (struct wb_node_space){reply.capacity, reply.free, reply.read_only};
    return err;
}

/* Calls each() for the entries of one reply; *last_out is the last name. */
static int each_entry(struct wb_slice entries, int (*each)(void *context, const struct wb_node_entry *entry),
                      void *context, char last_out[WB_NODE_NAME_MAX])
{
    struct wb_node_entry entry;
    int got, err = 0;

    while (err == 0 && (got = wb_node_entry_take(&entries, &entry)) != 0) {
        if (got > 0 && strcmp(entry.name, last_out) <= 0)
            got = wb_fail(WB_E_PROTO, "the list of a node's files is not in order");
        memcpy(last_out, entry.name, WB_NODE_NAME_MAX);
        err = got < 0 ? got : each(context, &entry);
    }
    return err;
}

int wb_node_each_file(struct wb_node *node, int (*each)(void *context, const struct wb_node_entry *entry),
                      void *context)
{
    char *room = wb_alloc(LIST_BYTES), last[WB_NODE_NAME_MAX] = "";
    struct wb_node_reply reply = {.more = true};
    int err = room ? 0 : WB_E_NOMEM;

    while (err == 0 && reply.more) {
        struct wb_node_request request = {.kind = WB_NODE_LIST, .name = last, .length = LIST_BYTES, .into = room};
        err = wb_node_call(node, &request, &reply);
        if (err == 0)
            err = each_entry(reply.bytes, each, context, last);
    }
    wb_free(room);
    return err;
}

int wb_node_sync_names(struct wb_node *node)
{
    struct wb_node_reply reply;

    return wb_node_call(node, &(struct wb_node_request){.kind = WB_NODE_SYNC_NAMES}, &reply);
}

int wb_node_remove(struct wb_node *node, const char *name)
{
    struct wb_node_request request = {.kind = WB_NODE_REMOVE, .owner = wb_node_owner(node), .name = name};
    struct wb_node_reply reply;

    return wb_node_call(node, &request, &reply);
}
