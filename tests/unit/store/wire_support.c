/* wire_support.c - the transport of wire_support.h. Stores use several threads, so it has a lock. */
#include "wire_support.h"
#include "../must.h"
#include "../seeded.h"
#include "base/error.h"
#include "base/vec.h"
#include "place/nodes.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    pthread_mutex_t mutex;
    uint64_t chance;
    WB_VEC(struct wb_node *) far; /* the other ends, which live until use_no_wire() */
    struct wire_counts counts;
} wire = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* A reply may be lost: then the request comes a second time, and what counts is the second reply. */
static int exchange(void *context, struct wb_slice request, struct wb_buf *reply)
{
    char name[WB_NODE_NAME_MAX];
    struct wb_node_request decoded;
    struct wb_buf lost = WB_BUF_INIT;

    must_ok(wb_node_request_decode(request, name, &decoded));
    pthread_mutex_lock(&wire.mutex);
    bool twice = chance_below(&wire.chance, 3) == 0;
    wire.counts.requests[decoded.kind]++;
    wire.counts.repeated += twice;
    pthread_mutex_unlock(&wire.mutex);
    int err = twice ? wb_node_serve(context, request, &lost) : 0;
    wb_buf_release(&lost);
    return err < 0 ? err : wb_node_serve(context, request, reply);
}

static int open_far(const char *dir, const struct wb_node_identity *identity, struct wb_node **node_out)
{
    struct wb_node *far = NULL;
    char label[512];
    int err = wb_node_open(dir, identity, &far);

    *node_out = NULL;
    if (err < 0)
        return err;
    pthread_mutex_lock(&wire.mutex);
    err = wb_vec_push(&wire.far, far);
    pthread_mutex_unlock(&wire.mutex);
    if (err < 0) {
        wb_node_close(far);
        return err;
    }
    snprintf(label, sizeof label, "far:%s", dir);
    return wb_node_open_wire(label, exchange, far, node_out);
}

void use_wire(void)
{
    wire.chance = test_seed();
    wb_nodes_open = open_far;
}

void use_no_wire(void)
{
    wb_nodes_open = wb_node_open;
    for (size_t i = 0; i < wire.far.count; i++)
        wb_node_close(wire.far.items[i]);
    wb_vec_release(&wire.far);
    wire.counts = (struct wire_counts){0};
}

struct wire_counts wire_counted(void)
{
    return wire.counts;
}

__attribute__((constructor)) static void begin(void)
{
    if (getenv("WEBBASE_TEST_WIRE")) {
        use_wire();
        atexit(use_no_wire);
    }
}
