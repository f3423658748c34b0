/*
 * cursor.c - reads the records of a table, starting from any key or number.
 *
 * A cursor caches the last few blocks, decompressed, so that repeated gets in one neighbourhood decompress nothing.
 * When blocks are asked for in order, it reads ahead. If a block is damaged, the cursor reports it and moves to the
 * next block. It never changes the table, which many cursors share, and it never checks that keys ascend:
 * table_verify.c does.
 *
 *   block, at == NULL    before the first record of the block, which is not loaded yet; block == foot.blocks is the end
 *   block, at, p, index  the block is in the slot `at`, and p is its next record
 *   held                 a seek has already decoded the next record: it is in `record`
 */
#include "base/error.h"
#include "base/mem.h"
#include "table/table_read.h"

enum {
    CURSOR_MAGIC = 0x57424355,   /* "WBCU" */
    SLOTS = 8,
    SLOT_BYTES_MAX = 256 << 10,  /* larger blocks share one extra slot */
    AHEAD_BYTES_MAX = 256 << 10,
    AHEAD_KEPT_MAX = 1 << 20,    /* a larger buffer, needed by one huge block, is freed again */
};

#define NO_BLOCK UINT64_MAX

_Static_assert(AHEAD_BYTES_MAX <= AHEAD_KEPT_MAX, "a buffer for reading ahead is kept");
_Static_assert((int)SLOT_BYTES_MAX >= TABLE_BLOCK_DEFAULT, "blocks of the usual size are not large ones");

/* A cached block. */
struct slot {
    uint64_t block; /* NO_BLOCK if the slot is empty */
    uint64_t used;  /* value of cursor->loads when it was last used */
    struct wb_buf raw;
    struct wb_table_block_view view;
};

struct wb_cursor {
    uint32_t magic;
    struct wb_table *table;
    ZSTD_DCtx *zstd;
    struct slot slots[SLOTS + 1]; /* the last one is for large blocks */
    uint64_t loads;               /* counts uses of blocks; the clock for replacing the least recently used slot */

    struct wb_buf ahead; /* bytes of the file, starting at ahead_at */
    uint64_t ahead_at;
    size_t ahead_bytes;  /* how much to read next time, if the reading goes on in order */
    uint64_t last_read;  /* the block read last */

    /* The position: see the drawing above. */
    uint64_t block;
    const struct slot *at;
    const char *p;
    uint32_t index;      /* number of the record at p within its block */
    char *key;           /* key of the record before p, from which the next key is completed */
    size_t key_len;
    bool held;
    struct wb_table_record record;
};

static bool is_open(const struct wb_cursor *cursor)
{
    return cursor->magic == CURSOR_MAGIC && cursor->block <= cursor->table->foot.blocks;
}

static void check_at_block(const struct wb_cursor *cursor)
{
    WB_CHECK(cursor->magic == CURSOR_MAGIC);
    WB_CHECK(cursor->at != NULL);
    WB_CHECK(cursor->at->block == cursor->block);
    WB_CHECK(cursor->block < cursor->table->foot.blocks);
}

int wb_cursor_open(struct wb_table *table, struct wb_cursor **cursor_out)
{
    WB_CHECK(table->magic == TABLE_MAGIC);
    WB_CHECK(table->places != NULL);
    struct wb_cursor *cursor = wb_alloc_zero(1, sizeof *cursor);
    *cursor_out = NULL;
    if (!cursor)
        return WB_E_NOMEM;
    cursor->magic = CURSOR_MAGIC;
    cursor->table = table;
    cursor->last_read = NO_BLOCK;
    for (size_t i = 0; i <= SLOTS; i++)
        cursor->slots[i].block = NO_BLOCK;
    cursor->key = wb_alloc(WB_TABLE_KEY_MAX);
    cursor->zstd = ZSTD_createDCtx();
    if (!cursor->key || !cursor->zstd) {
        wb_cursor_close(cursor);
        return wb_fail_nomem();
    }
    *cursor_out = cursor;
    return 0;
}

void wb_cursor_close(struct wb_cursor *cursor)
{
    if (!cursor)
        return;
    WB_CHECK(cursor->magic == CURSOR_MAGIC);
    cursor->magic = 0;
    for (size_t i = 0; i <= SLOTS; i++)
        wb_buf_release(&cursor->slots[i].raw);
    wb_buf_release(&cursor->ahead);
    ZSTD_freeDCtx(cursor->zstd);
    wb_free(cursor->key);
    wb_free(cursor);
}

/* ---- loading blocks -------------------------------------------------------------------------- */

/* The bytes of a block as they are in the file. As long as blocks are read in order, each read is twice as long. */
static int read_block(struct wb_cursor *cursor, uint64_t block, struct wb_slice *bytes_out)
{
    WB_CHECK(block < cursor->table->foot.blocks);
    const struct wb_table_block_place *place = &cursor->table->places[block];
    size_t size = (size_t)(place[1].offset - place->offset);
    bool in_order = block == cursor->last_read + 1;

    WB_CHECK(size > TABLE_BLOCK_HEAD_BYTES);
    *bytes_out = WB_SLICE_EMPTY;
    cursor->last_read = block;
    if (cursor->ahead.len >= size && place->offset >= cursor->ahead_at &&
        place->offset - cursor->ahead_at <= cursor->ahead.len - size) {
        *bytes_out = wb_slice(cursor->ahead.ptr + (place->offset - cursor->ahead_at), size);
        return 0;
    }
    cursor->ahead_bytes = in_order ? 2 * cursor->ahead_bytes + size : 0;
    if (cursor->ahead_bytes > AHEAD_BYTES_MAX)
        cursor->ahead_bytes = AHEAD_BYTES_MAX;
    uint64_t left = cursor->table->foot.index_at - place->offset;
    size_t want = cursor->ahead_bytes > size ? cursor->ahead_bytes : size;
    want = want < left ? want : (size_t)left;
    WB_CHECK(want >= size);
    if (cursor->ahead.cap > AHEAD_KEPT_MAX)
        wb_buf_release(&cursor->ahead);
    wb_buf_clear(&cursor->ahead);
    int err = wb_buf_reserve(&cursor->ahead, want);
    if (err == 0)
        err = wb_file_read_exact(&cursor->table->file, place->offset, cursor->ahead.ptr, want);
    if (err < 0)
        return err;
    cursor->ahead.len = want;
    cursor->ahead_at = place->offset;
    *bytes_out = wb_slice(cursor->ahead.ptr, size);
    return 0;
}

/* Decompresses a block into a slot, which is empty if this fails. */
static int fill_slot(struct wb_cursor *cursor, struct slot *slot, uint64_t block, struct wb_slice bytes)
{
    const struct wb_table *table = cursor->table;

    WB_CHECK(block < table->foot.blocks);
    uint64_t offset = table->places[block].offset;
    WB_CHECK(bytes.len == table->places[block + 1].offset - offset);
    slot->block = NO_BLOCK;
    if (slot->raw.cap > 2 * SLOT_BYTES_MAX)
        wb_buf_release(&slot->raw);
    int err = wb_table_block_unpack(cursor->zstd, bytes, offset, TABLE_BLOCK_RECORDS, table->file.path, &slot->raw,
                                    &slot->view);
    if (err < 0)
        return err;
    if (slot->view.records != wb_table_block_records(table, block))
        return wb_fail(WB_E_CORRUPT, "%s: the block at %llu has %u records, but the index says %u", table->file.path,
                       (unsigned long long)offset, slot->view.records, wb_table_block_records(table, block));
    slot->block = block;
    return 0;
}

/* Finds the block in a slot, or reads it into the slot that was not used for the longest time. */
static int load_block(struct wb_cursor *cursor, uint64_t block, const struct slot **slot_out)
{
    struct slot *slot = &cursor->slots[0];
    struct wb_slice bytes;
    int err;

    WB_CHECK(block < cursor->table->foot.blocks);
    *slot_out = NULL;
    cursor->loads++;
    for (size_t i = 0; i <= SLOTS; i++)
        if (cursor->slots[i].block == block) {
            cursor->slots[i].used = cursor->loads;
            *slot_out = &cursor->slots[i];
            return 0;
        }
    err = read_block(cursor, block, &bytes);
    if (err < 0)
        return err;
    for (size_t i = 1; i < SLOTS; i++)
        if (cursor->slots[i].used < slot->used)
            slot = &cursor->slots[i];
    /* This size has not been checked yet: it is used for nothing but choosing the slot. */
    if (bytes.len < TABLE_BLOCK_HEAD_BYTES || wb_get32(bytes.ptr + 12) > SLOT_BYTES_MAX)
        slot = &cursor->slots[SLOTS];
    err = fill_slot(cursor, slot, block, bytes);
    if (err < 0)
        return err;
    slot->used = cursor->loads;
    *slot_out = slot;
    return 0;
}

/* ---- reading on ------------------------------------------------------------------------------ */

static void move_before(struct wb_cursor *cursor, uint64_t block)
{
    WB_CHECK(block <= cursor->table->foot.blocks);
    cursor->block = block;
    cursor->at = NULL;
    cursor->held = false;
}

/*
 * Loads the block that the cursor is before. If the block is damaged, the cursor moves on to the next one; after any
 * other error it stays, so that the caller can try again.
 */
static int enter_block(struct wb_cursor *cursor)
{
    WB_CHECK(cursor->block < cursor->table->foot.blocks);
    WB_CHECK(cursor->at == NULL);
    WB_CHECK(!cursor->held);
    int err = load_block(cursor, cursor->block, &cursor->at);

    if (err == WB_E_CORRUPT)
        move_before(cursor, cursor->block + 1);
    if (err < 0)
        return err;
    cursor->p = cursor->at->view.raw;
    cursor->index = 0;
    cursor->key_len = 0;
    return 0;
}

/* Moves on to the next block and reports this one. */
static int leave_damaged(struct wb_cursor *cursor)
{
    check_at_block(cursor);
    WB_CHECK(!cursor->held);
    uint64_t offset = cursor->table->places[cursor->block].offset;
    move_before(cursor, cursor->block + 1);
    return wb_fail(WB_E_CORRUPT, "%s: the records of the block at %llu are damaged", cursor->table->file.path,
                   (unsigned long long)offset);
}

/* Decodes the next record of the loaded block into cursor->record. Returns 1, or 0 at the end of the block. */
static inline int next_in_block(struct wb_cursor *cursor)
{
    const struct wb_table_block_view *view = &cursor->at->view;
    const char *end = view->raw + view->end;
    struct wb_table_record_head head;

    if (cursor->index == view->records)
        return cursor->p == end ? 0 : leave_damaged(cursor);
    if (!wb_table_record_head_get(&cursor->p, end, cursor->index % TABLE_RESTART ? cursor->key_len : 0, &head))
        return leave_damaged(cursor);
    memcpy(cursor->key + head.shared, cursor->p, head.fresh);
    cursor->key_len = head.shared + head.fresh;
    cursor->record.key = wb_slice(cursor->key, cursor->key_len);
    cursor->record.value = wb_slice(cursor->p + head.fresh, head.value);
    cursor->record.number = cursor->table->places[cursor->block].first + cursor->index;
    cursor->p += head.fresh + head.value;
    cursor->index++;
    return 1;
}

int wb_cursor_next(struct wb_cursor *cursor, struct wb_table_record *record_out)
{
    int more = 0;

    WB_CHECK(is_open(cursor));
    if (cursor->held) {
        cursor->held = false;
        *record_out = cursor->record;
        return 1;
    }
    while (more == 0) {
        if (!cursor->at) {
            if (cursor->block >= cursor->table->foot.blocks)
                break;
            more = enter_block(cursor);
            if (more < 0)
                break;
        }
        more = next_in_block(cursor);
        if (more == 0)
            move_before(cursor, cursor->block + 1);
    }
    if (more != 1) {
        *record_out = (struct wb_table_record){0};
        return more;
    }
    *record_out = cursor->record;
    return 1;
}

/* ---- seeking --------------------------------------------------------------------------------- */

/* Moves to the restart point of this number in the loaded block. */
static int move_to_restart(struct wb_cursor *cursor, uint32_t restart)
{
    check_at_block(cursor);
    const struct wb_table_block_view *view = &cursor->at->view;
    WB_CHECK(restart < wb_table_block_restart_count(view->records));
    uint32_t place = wb_table_block_restart(view, restart);
    if (place >= view->end)
        return leave_damaged(cursor);
    cursor->p = view->raw + place;
    cursor->index = restart * TABLE_RESTART;
    cursor->key_len = 0;
    return 0;
}

/* Moves to the last restart point of the loaded block whose key is not greater than key, or to the first one. */
static int find_restart(struct wb_cursor *cursor, struct wb_slice key)
{
    check_at_block(cursor);
    const struct wb_table_block_view *view = &cursor->at->view;
    const char *end = view->raw + view->end;
    uint32_t low = 0, high = wb_table_block_restart_count(view->records);

    WB_CHECK(high > 0);
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        struct wb_table_record_head head;
        uint32_t place = wb_table_block_restart(view, middle);
        const char *p = view->raw + (place < view->end ? place : view->end);
        if (!wb_table_record_head_get(&p, end, 0, &head))
            return leave_damaged(cursor);
        if (wb_slice_compare(wb_slice(p, head.fresh), key) <= 0)
            low = middle;
        else
            high = middle;
    }
    return move_to_restart(cursor, low);
}

int wb_cursor_seek(struct wb_cursor *cursor, struct wb_slice key)
{
    int err, more;

    WB_CHECK(is_open(cursor));
    if (cursor->table->foot.blocks == 0) {
        move_before(cursor, 0);
        return 0;
    }
    move_before(cursor, wb_table_find_block(cursor->table, key));
    err = enter_block(cursor);
    if (err == 0)
        err = find_restart(cursor, key);
    if (err < 0)
        return err;
    while ((more = next_in_block(cursor)) == 1)
        if (wb_slice_compare(cursor->record.key, key) >= 0) {
            cursor->held = true;
            return 0;
        }
    if (more == 0)
        move_before(cursor, cursor->block + 1);
    return more;
}

/* Moves to just before the record of this number, which the index says exists. */
static int seek_number(struct wb_cursor *cursor, uint64_t number)
{
    const struct wb_table *table = cursor->table;
    int err;

    WB_CHECK(number < table->foot.records);
    move_before(cursor, wb_table_find_number(table, number));
    uint32_t index = (uint32_t)(number - table->places[cursor->block].first);
    err = enter_block(cursor);
    if (err == 0)
        err = move_to_restart(cursor, index / TABLE_RESTART);
    while (err == 0 && cursor->index < index) {
        int more = next_in_block(cursor);
        err = more < 0 ? more : more == 0 ? leave_damaged(cursor) : 0;
    }
    return err;
}

int wb_cursor_get(struct wb_cursor *cursor, struct wb_slice key, struct wb_table_record *record_out)
{
    int err = wb_cursor_seek(cursor, key);

    *record_out = (struct wb_table_record){0};
    if (err < 0)
        return err;
    if (!cursor->held || !wb_slice_equal(cursor->record.key, key))
        return wb_fail(WB_E_NOTFOUND, "%s has no record with this key", cursor->table->file.path);
    cursor->held = false;
    *record_out = cursor->record;
    return 0;
}

int wb_cursor_get_number(struct wb_cursor *cursor, uint64_t number, struct wb_table_record *record_out)
{
    int err;

    *record_out = (struct wb_table_record){0};
    WB_CHECK(is_open(cursor));
    if (number >= cursor->table->foot.records) {
        move_before(cursor, cursor->table->foot.blocks);
        return wb_fail(WB_E_NOTFOUND, "%s has no record number %llu", cursor->table->file.path,
                       (unsigned long long)number);
    }
    err = seek_number(cursor, number);
    if (err == 0)
        err = next_in_block(cursor);
    if (err < 0)
        return err;
    WB_CHECK(err == 1); /* fill_slot() has compared the number of records with the index */
    WB_CHECK(cursor->record.number == number);
    *record_out = cursor->record;
    return 0;
}
