/*
 * spill.c - queues of short byte strings that may be larger than memory.
 *
 *   pop <- [ head ] <- block <- block <- ... <- [ tail ] <- push
 *
 * A queue is one stream of items, each a varint length and its bytes. The stream is cut into blocks of 4 KiB without
 * regard to items, so an item may be spread over several blocks. When the tail fills a block, it is written to disk;
 * but if the head is empty and nothing is on disk, the tail becomes the head, and nothing is written. The order of
 * blocks and the checksum of each are kept in memory (8 bytes for 4 KiB), because nobody else reads the file.
 *
 * A push that fails changes nothing; a pop that fails can be repeated.
 */
#include "crawl/spill.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"
#include "os/nameless.h"

enum {
    SPILL_MAGIC = 0x5742534c,
    BLOCK_BYTES = 4096,
    ITEM_MAX = 64 << 10,
    BUFFER_MIN = 64,
    FILE_KEEP_BYTES = 16 << 20, /* a longer file is truncated when no block is in use */
};

struct spill_block {
    uint32_t next;  /* in its queue, or in the list of free blocks; 0: it is the last */
    uint32_t check; /* checksum of its bytes */
};

struct wb_spill {
    uint32_t magic;
    struct wb_file file;
    WB_VEC(struct spill_block) blocks; /* block n is at offset (n - 1) * BLOCK_BYTES; there is no block 0 */
    uint32_t free;                     /* the first free block; 0: there is none */
    uint32_t used;
};

int wb_spill_open(const char *dir, struct wb_spill **spill_out)
{
    struct wb_spill *spill = wb_alloc_zero(1, sizeof *spill);
    int err;

    *spill_out = NULL;
    if (!spill)
        return WB_E_NOMEM;
    spill->magic = SPILL_MAGIC;
    spill->file = WB_FILE_INIT;
    err = wb_vec_push(&spill->blocks, (struct spill_block){0, 0}); /* the block 0 that does not exist */
    if (err == 0)
        err = wb_nameless_open(dir, &spill->file);
    if (err < 0) {
        wb_spill_close(spill);
        return err;
    }
    *spill_out = spill;
    return 0;
}

void wb_spill_close(struct wb_spill *spill)
{
    if (!spill)
        return;
    WB_CHECK(spill->magic == SPILL_MAGIC);
    wb_file_close(&spill->file);
    wb_vec_release(&spill->blocks);
    spill->magic = 0;
    wb_free(spill);
}

uint64_t wb_spill_bytes(const struct wb_spill *spill)
{
    WB_CHECK(spill->magic == SPILL_MAGIC);
    return (uint64_t)spill->used * BLOCK_BYTES;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static int take_block(struct wb_spill *spill, uint32_t *block_out)
{
    *block_out = spill->free;
    if (spill->free) {
        WB_CHECK(spill->free < spill->blocks.count);
        spill->free = spill->blocks.items[spill->free].next;
    } else {
        if (spill->blocks.count >= UINT32_MAX / 2)
            return wb_fail(WB_E_LIMIT, "the temporary file in %s is full", spill->file.path);
        int err = wb_vec_push(&spill->blocks, (struct spill_block){0, 0});
        if (err < 0)
            return err;
        *block_out = (uint32_t)(spill->blocks.count - 1);
    }
    spill->blocks.items[*block_out] = (struct spill_block){0, 0};
    spill->used++;
    return 0;
}

/* Gives a chain of blocks back, from the first to its end. */
static void give_blocks(struct wb_spill *spill, uint32_t first)
{
    while (first) {
        WB_CHECK(first < spill->blocks.count && spill->used > 0);
        uint32_t next = spill->blocks.items[first].next;
        spill->blocks.items[first].next = spill->free;
        spill->free = first;
        spill->used--;
        first = next;
    }
    if (spill->used == 0 && (uint64_t)spill->blocks.count * BLOCK_BYTES > FILE_KEEP_BYTES) {
        /* If this fails, the file stays longer than needed, which does no harm. */
        (void)wb_file_truncate(&spill->file, 0);
        spill->free = 0;
        spill->blocks.count = 1;
    }
}

static uint64_t block_at(uint32_t block)
{
    WB_CHECK(block > 0);
    return (uint64_t)(block - 1) * BLOCK_BYTES;
}

/* Writes count blocks of bytes as a chain. After an error no block is taken. */
static int write_blocks(struct wb_spill *spill, const char *bytes, size_t count, uint32_t *first_out,
                        uint32_t *last_out)
{
    int err = 0;

    *first_out = *last_out = 0;
    for (size_t i = 0; i < count && err == 0; i++) {
        uint32_t block;
        err = take_block(spill, &block);
        if (err < 0)
            break;
        if (*last_out)
            spill->blocks.items[*last_out].next = block;
        else
            *first_out = block;
        *last_out = block;
        spill->blocks.items[block].check = wb_hash32(bytes + i * BLOCK_BYTES, BLOCK_BYTES);
        err = wb_file_write_at(&spill->file, block_at(block), bytes + i * BLOCK_BYTES, BLOCK_BYTES);
    }
    if (err < 0) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        give_blocks(spill, *first_out);
        *first_out = *last_out = 0;
        err = wb_error_restore(&why);
    }
    return err;
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* Makes room for more bytes. Doubles up to the size of a block, so that a short queue takes little memory. */
static int reserve_bytes(struct wb_buf *buf, size_t more)
{
    size_t want = buf->len + more, cap = buf->cap ? buf->cap : BUFFER_MIN;

    if (buf->cap >= want)
        return 0;
    while (cap < want)
        cap *= 2;
    return wb_buf_reserve(buf, cap - buf->len);
}

/* An item that filled a block may have made the buffer larger than a block: gives the rest back. */
static void fit_buffer(struct wb_buf *buf)
{
    if (buf->cap > BLOCK_BYTES)
        wb_buf_trim(buf, BUFFER_MIN);
}

static bool head_is_empty(const struct wb_spill_queue *queue)
{
    return queue->head_at == queue->head.len;
}

/* The tail becomes the head, because nothing is between them. */
static void turn_tail(struct wb_spill_queue *queue)
{
    WB_CHECK(head_is_empty(queue) && queue->first == 0);
    wb_buf_release(&queue->head);
    queue->head = wb_buf_take(&queue->tail);
    queue->head_at = 0;
    fit_buffer(&queue->head);
}

/* ---- the queue --------------------------------------------------------------------------------------------------- */

/* Writes the part of the tail that fills whole blocks, and keeps the rest. */
static int spill_tail(struct wb_spill *spill, struct wb_spill_queue *queue)
{
    WB_CHECK(queue->tail.len >= BLOCK_BYTES && (queue->first == 0) == (queue->last == 0));
    size_t count = queue->tail.len / BLOCK_BYTES, written = count * BLOCK_BYTES;
    uint32_t first, last;
    int err = write_blocks(spill, queue->tail.ptr, count, &first, &last);

    if (err < 0)
        return err;
    if (queue->last)
        spill->blocks.items[queue->last].next = first;
    else
        queue->first = first;
    queue->last = last;
    memmove(queue->tail.ptr, queue->tail.ptr + written, queue->tail.len - written);
    queue->tail.len -= written;
    return 0;
}

int wb_spill_push(struct wb_spill *spill, struct wb_spill_queue *queue, struct wb_slice item)
{
    size_t before = queue->tail.len;
    int err;

    WB_CHECK(spill->magic == SPILL_MAGIC && queue->head_at <= queue->head.len);
    if (item.len > ITEM_MAX)
        return wb_fail(WB_E_LIMIT, "an item of %zu bytes is too long for a queue", item.len);
    err = reserve_bytes(&queue->tail, WB_VARINT_MAX + item.len);
    if (err < 0)
        return err;
    queue->tail.len += wb_put_varint(queue->tail.ptr + queue->tail.len, item.len);
    wb_buf_append_slice(&queue->tail, item);
    if (queue->tail.len >= BLOCK_BYTES) {
        if (head_is_empty(queue) && queue->first == 0)
            turn_tail(queue);
        else if ((err = spill_tail(spill, queue)) < 0) {
            queue->tail.len = before;
            return err;
        }
    }
    queue->count++;
    fit_buffer(&queue->tail);
    return 0;
}

/* Appends more bytes to what is left of the head: the next block, or else the tail. */
static int refill_head(struct wb_spill *spill, struct wb_spill_queue *queue)
{
    size_t left = queue->head.len - queue->head_at, more = queue->first ? BLOCK_BYTES : queue->tail.len;
    struct wb_buf fresh = WB_BUF_INIT;
    int err;

    if (more == 0)
        return wb_fail(WB_E_CORRUPT, "a queue in the temporary file in %s ends in the middle of an item",
                       spill->file.path);
    if (left == 0 && queue->first == 0) {
        turn_tail(queue);
        return 0;
    }
    err = wb_buf_reserve(&fresh, left + more);
    if (err < 0)
        return err;
    wb_buf_append(&fresh, wb_buf_slice(&queue->head).ptr + queue->head_at, left);
    if (queue->first) {
        uint32_t block = queue->first;
        WB_CHECK(block < spill->blocks.count);
        err = wb_file_read_exact(&spill->file, block_at(block), fresh.ptr + left, BLOCK_BYTES);
        if (err == 0 && wb_hash32(fresh.ptr + left, BLOCK_BYTES) != spill->blocks.items[block].check)
            err = wb_fail(WB_E_CORRUPT, "a block of the temporary file in %s is not what was written",
                          spill->file.path);
        if (err < 0) {
            wb_buf_release(&fresh);
            return err;
        }
        fresh.len += BLOCK_BYTES;
        queue->first = spill->blocks.items[block].next;
        if (queue->first == 0)
            queue->last = 0;
        spill->blocks.items[block].next = 0;
        give_blocks(spill, block);
    } else {
        wb_buf_append_slice(&fresh, wb_buf_slice(&queue->tail));
        wb_buf_release(&queue->tail);
    }
    wb_buf_release(&queue->head);
    queue->head = fresh;
    queue->head_at = 0;
    return 0;
}

/* The item at the beginning of the head; false if not all of it is there yet. */
static bool look_item(const struct wb_spill_queue *queue, struct wb_slice *item_out)
{
    struct wb_slice head = wb_buf_slice(&queue->head);
    const char *p = head.ptr + queue->head_at, *end = head.ptr + head.len;
    uint64_t len;

    *item_out = WB_SLICE_EMPTY;
    if (head_is_empty(queue) || !wb_get_varint(&p, end, &len) || len > (uint64_t)(end - p))
        return false;
    *item_out = wb_slice(p, (size_t)len);
    return true;
}

int wb_spill_pop(struct wb_spill *spill, struct wb_spill_queue *queue, struct wb_buf *mem, struct wb_slice *item_out)
{
    int err = 0;

    WB_CHECK(spill->magic == SPILL_MAGIC && queue->head_at <= queue->head.len);
    *item_out = WB_SLICE_EMPTY;
    if (queue->count == 0) {
        WB_CHECK(queue->first == 0 && head_is_empty(queue) && queue->tail.len == 0);
        return 0;
    }
    while (!look_item(queue, item_out)) {
        err = refill_head(spill, queue);
        if (err < 0)
            return err;
    }
    if (queue->count == 1) {
        /* An empty queue takes no memory. */
        wb_buf_clear(mem);
        err = wb_buf_append_slice(mem, *item_out);
        if (err < 0) {
            *item_out = WB_SLICE_EMPTY;
            return err;
        }
        *item_out = wb_buf_slice(mem);
        wb_spill_clear(spill, queue);
        return 1;
    }
    queue->head_at = (size_t)(item_out->ptr + item_out->len - queue->head.ptr);
    queue->count--;
    return 1;
}

void wb_spill_clear(struct wb_spill *spill, struct wb_spill_queue *queue)
{
    WB_CHECK(spill->magic == SPILL_MAGIC);
    give_blocks(spill, queue->first);
    wb_buf_release(&queue->head);
    wb_buf_release(&queue->tail);
    *queue = (struct wb_spill_queue){0};
}

size_t wb_spill_queue_bytes(const struct wb_spill_queue *queue)
{
    return queue->head.cap + queue->tail.cap;
}
