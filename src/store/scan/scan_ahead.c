/*
 * scan_ahead.c - reads the next segments of a scan ahead (scan_ahead.h).
 *
 * A *slot* has the bytes of one segment. The scan's thread chooses which segment that is, and a thread of the node
 * fills it piece by piece. One lock protects the progress of all slots; the bytes themselves need none: a piece is
 * announced after it was read, it never moves, and nobody writes to it again as long as the slot is in use.
 *
 *   free --plan--> waiting, then reading (its node's thread) --take--> used by the scan --give_back--> free
 *                                   |--- no longer wanted, when its thread has noticed ------------------^
 */
#include "store/scan/scan_ahead.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/pool.h"

#include <pthread.h>

enum {
    LANES_MAX = 8, /* threads: nodes beyond that share them */
    SLOTS_MAX = 8,
    SLOTS_SPARE = 2,           /* besides one for each node: what the scan uses, and what is ready */
    SLOT_BYTES_MAX = 17 << 20, /* a full segment of several nodes, and a block; of a longer one, only the beginning */
    PIECE_BYTES = 1 << 20,
};

struct ahead_slot {
    struct wb_segment_ahead bytes; /* must be the first member */
    struct wb_scan_ahead *ahead;
    struct wb_catalog_segment row; /* as it was when it was planned */
    const uint8_t *repo_id;
    struct wb_node *node; /* held until the file is open */
    char *text;           /* SLOT_BYTES_MAX; NULL until it is used for the first time */
    size_t want;

    /* ---- protected by the lock ---- */
    bool used;    /* not free */
    bool reading; /* its thread has not ended yet */
    bool open;    /* the segment is */
    bool taken, unwanted;
    size_t have;
    struct wb_segment segment;
};

_Static_assert(offsetof(struct ahead_slot, bytes) == 0, "the bytes of a slot are the slot");

struct wb_scan_ahead {
    pthread_mutex_t lock;
    pthread_cond_t news; /* a slot has made progress */
    size_t slot_count;   /* of those below, that may be used at all */
    struct ahead_slot slots[SLOTS_MAX];
    struct wb_pool *lanes[LANES_MAX]; /* NULL until needed */
    uint32_t scans;
};

static bool wait_for_bytes(struct wb_segment_ahead *bytes, uint64_t at, size_t need, const char **bytes_out,
                           size_t *have_out);

/* ---- the thread of a node --------------------------------------------------------------------------------- */

static void announce(struct ahead_slot *slot, size_t more, bool done)
{
    pthread_mutex_lock(&slot->ahead->lock);
    WB_CHECK(slot->used);
    WB_CHECK(slot->have + more <= slot->want);
    slot->have += more;
    slot->reading = !done;
    pthread_cond_broadcast(&slot->ahead->news);
    pthread_mutex_unlock(&slot->ahead->lock);
}

static bool is_unwanted(struct ahead_slot *slot)
{
    pthread_mutex_lock(&slot->ahead->lock);
    bool unwanted = slot->unwanted;
    pthread_mutex_unlock(&slot->ahead->lock);
    return unwanted;
}

/* Opens the file. Nothing else touches slot->segment before it is announced. */
static bool open_file(struct ahead_slot *slot)
{
    if (!slot->text)
        slot->text = wb_alloc(SLOT_BYTES_MAX);
    int err = slot->text ? wb_segment_open(slot->node, slot->repo_id, &slot->row, false, &slot->segment) : WB_E_NOMEM;
    wb_node_close(slot->node);
    slot->node = NULL;
    if (err == 0)
        wb_node_file_hint(&slot->segment.file, WB_NODE_SEQUENTIAL, 0, 0);
    pthread_mutex_lock(&slot->ahead->lock);
    slot->open = err == 0;
    pthread_cond_broadcast(&slot->ahead->news);
    pthread_mutex_unlock(&slot->ahead->lock);
    return err == 0;
}

/* Errors are not reported: a reader that needs the bytes reads them again, and gets the message. */
static void read_slot(void *context)
{
    struct ahead_slot *slot = context;
    size_t have = 0;
    bool going = !is_unwanted(slot) && open_file(slot);

    WB_CHECK(slot->want <= SLOT_BYTES_MAX);
    while (going && have < slot->want && !is_unwanted(slot)) {
        size_t size = slot->want - have < PIECE_BYTES ? slot->want - have : PIECE_BYTES, got = 0;
        going = wb_node_file_read_at(&slot->segment.file, have, slot->text + have, size, &got) == 0 && got == size;
        if (going)
            announce(slot, size, false);
        have += size;
    }
    announce(slot, 0, true);
}

/* ---- slots ---------------------------------------------------------------------------------------------- */

/* Makes a slot free, whose thread has ended. */
static void empty_slot(struct ahead_slot *slot)
{
    WB_CHECK(slot->used);
    WB_CHECK(!slot->reading);
    if (slot->open && !slot->taken)
        wb_segment_close(&slot->segment);
    wb_node_close(slot->node);
    slot->node = NULL;
    slot->used = slot->open = slot->taken = slot->unwanted = false;
    slot->have = 0;
}

static bool is_same(const struct wb_catalog_segment *a, const struct wb_catalog_segment *b)
{
    return a->number == b->number && a->revision == b->revision && a->node == b->node;
}

/* The slot of a segment, if it was not taken; NULL if there is none. */
static struct ahead_slot *find_slot(struct wb_scan_ahead *ahead, const struct wb_catalog_segment *row)
{
    WB_CHECK(row->number > 0);
    for (size_t i = 0; i < ahead->slot_count; i++) {
        struct ahead_slot *slot = &ahead->slots[i];
        if (slot->used && !slot->taken && !slot->unwanted && is_same(&slot->row, row))
            return slot;
    }
    return NULL;
}

/* A free slot, or NULL. The caller has the lock. */
static struct ahead_slot *find_free(struct wb_scan_ahead *ahead)
{
    WB_CHECK(ahead->slot_count <= SLOTS_MAX);
    for (size_t i = 0; i < ahead->slot_count; i++) {
        struct ahead_slot *slot = &ahead->slots[i];
        if (slot->used && slot->unwanted && !slot->reading)
            empty_slot(slot);
        if (!slot->used)
            return slot;
    }
    return NULL;
}

/* ---- the thread of the scan -------------------------------------------------------------------------------- */

int wb_scan_ahead_new(uint32_t scans, struct wb_scan_ahead **ahead_out)
{
    struct wb_scan_ahead *ahead = wb_alloc_zero(1, sizeof *ahead);

    *ahead_out = NULL;
    if (!ahead)
        return WB_E_NOMEM;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->news, NULL);
    ahead->scans = scans ? scans : 1;
    for (size_t i = 0; i < SLOTS_MAX; i++) {
        ahead->slots[i].bytes.wait = wait_for_bytes;
        ahead->slots[i].ahead = ahead;
    }
    *ahead_out = ahead;
    return 0;
}

void wb_scan_ahead_free(struct wb_scan_ahead *ahead)
{
    if (!ahead)
        return;
    pthread_mutex_lock(&ahead->lock);
    for (size_t i = 0; i < SLOTS_MAX; i++) {
        WB_CHECK(!ahead->slots[i].taken);
        ahead->slots[i].unwanted = ahead->slots[i].used;
    }
    pthread_mutex_unlock(&ahead->lock);
    for (size_t i = 0; i < LANES_MAX; i++)
        wb_pool_free(ahead->lanes[i]);
    for (size_t i = 0; i < SLOTS_MAX; i++) {
        if (ahead->slots[i].used)
            empty_slot(&ahead->slots[i]);
        wb_free(ahead->slots[i].text);
    }
    pthread_mutex_destroy(&ahead->lock);
    pthread_cond_destroy(&ahead->news);
    wb_free(ahead);
}

/* The thread that reads from a node. */
static struct wb_pool *find_lane(struct wb_scan_ahead *ahead, const struct wb_nodes *nodes, uint32_t node)
{
    size_t at = 0;

    while (at + 1 < wb_nodes_count(nodes) && wb_nodes_number(nodes, at) != node)
        at++;
    struct wb_pool **lane = &ahead->lanes[at % LANES_MAX];
    if (!*lane && wb_pool_new(1, lane) < 0)
        return NULL;
    return *lane;
}

/* Fills a slot. Returns false if that is impossible now. */
static bool begin_slot(struct wb_scan_ahead *ahead, struct ahead_slot *slot, struct wb_nodes *nodes,
                       const uint8_t *repo_id, const struct wb_catalog_segment *row)
{
    struct wb_pool *lane = find_lane(ahead, nodes, row->node);
    struct wb_node *node = wb_nodes_reach(nodes, row->node);
    uint64_t end = wb_segment_blocks_end(row);

    WB_CHECK(!slot->used);
    if (!lane || !node)
        return false;
    wb_node_hold(node);
    slot->row = *row;
    slot->repo_id = repo_id;
    slot->node = node;
    slot->want = end < SLOT_BYTES_MAX ? (size_t)end : SLOT_BYTES_MAX;
    slot->used = slot->reading = true;
    if (wb_pool_submit(lane, read_slot, slot) == 0)
        return true;
    slot->reading = false;
    empty_slot(slot);
    return false;
}

/* Gives up what is not among the rows any more. The caller has the lock. */
static void forget_others(struct wb_scan_ahead *ahead, const struct wb_catalog_segment *rows, size_t count)
{
    for (size_t i = 0; i < ahead->slot_count; i++) {
        struct ahead_slot *slot = &ahead->slots[i];
        bool wanted = !slot->used || slot->taken;
        for (size_t k = 0; k < count && !wanted; k++)
            wanted = is_same(&slot->row, &rows[k]);
        slot->unwanted = slot->unwanted || !wanted;
    }
}

void wb_scan_ahead_plan(struct wb_scan_ahead *ahead, struct wb_nodes *nodes, const uint8_t *repo_id,
                        const struct wb_catalog_segment *rows, size_t count)
{
    size_t most = wb_nodes_count(nodes) + SLOTS_SPARE;

    most = most > SLOTS_MAX ? SLOTS_MAX : most;
    most = most / ahead->scans > SLOTS_SPARE ? most / ahead->scans : SLOTS_SPARE;
    if (most > ahead->slot_count)
        ahead->slot_count = most;
    pthread_mutex_lock(&ahead->lock);
    forget_others(ahead, rows, count);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].live == 0 || find_slot(ahead, &rows[i]))
            continue;
        struct ahead_slot *slot = find_free(ahead);
        if (!slot)
            break;
        pthread_mutex_unlock(&ahead->lock); /* nobody else uses a slot that is free */
        bool begun = begin_slot(ahead, slot, nodes, repo_id, &rows[i]);
        pthread_mutex_lock(&ahead->lock);
        if (!begun)
            break;
    }
    pthread_mutex_unlock(&ahead->lock);
}

/* ---- what was read --------------------------------------------------------------------------------------- */

static struct ahead_slot *slot_of(struct wb_segment_ahead *bytes)
{
    struct ahead_slot *slot = (struct ahead_slot *)bytes;

    WB_CHECK(bytes->wait == wait_for_bytes);
    WB_CHECK(slot->taken);
    return slot;
}

static bool wait_for_bytes(struct wb_segment_ahead *bytes, uint64_t at, size_t need, const char **bytes_out,
                           size_t *have_out)
{
    struct ahead_slot *slot = slot_of(bytes);

    if (at > slot->want || need > slot->want - at)
        return false;
    pthread_mutex_lock(&slot->ahead->lock);
    while (slot->have < at + need && slot->reading)
        pthread_cond_wait(&slot->ahead->news, &slot->ahead->lock);
    size_t have = slot->have;
    pthread_mutex_unlock(&slot->ahead->lock);
    if (have < at + need)
        return false;
    *bytes_out = slot->text + at;
    *have_out = have - (size_t)at;
    return true;
}

bool wb_scan_ahead_take(struct wb_scan_ahead *ahead, const struct wb_catalog_segment *row,
                        struct wb_segment *segment_out, struct wb_segment_ahead **bytes_out)
{
    pthread_mutex_lock(&ahead->lock);
    struct ahead_slot *slot = find_slot(ahead, row);
    while (slot && slot->reading && !slot->open)
        pthread_cond_wait(&ahead->news, &ahead->lock);
    bool there = slot && slot->open;
    if (there) {
        slot->taken = true;
        *segment_out = slot->segment;
        *bytes_out = &slot->bytes;
    } else if (slot) {
        slot->unwanted = true;
    }
    pthread_mutex_unlock(&ahead->lock);
    return there;
}

void wb_scan_ahead_give_back(struct wb_segment_ahead *bytes)
{
    struct ahead_slot *slot = slot_of(bytes);

    pthread_mutex_lock(&slot->ahead->lock);
    slot->unwanted = true;
    while (slot->reading)
        pthread_cond_wait(&slot->ahead->news, &slot->ahead->lock);
    empty_slot(slot);
    pthread_mutex_unlock(&slot->ahead->lock);
}
