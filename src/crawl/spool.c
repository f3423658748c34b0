/*
 * spool.c - pages that were fetched and are not committed to the store yet.
 *
 *   head     at 0  "WBSP"    4  format 1 (2), zero (2)    8  checksum of bytes 0 to 8 (8)    48  zero (16)
 *            16 and 32: a round (8) and its checksum (8); an even round is at 16, an odd one at 32
 *   record   at 0  round (8)    8  bytes of the page record (8)    16  bytes of the line (8)
 *            24  checksum of bytes 0 to 24 and of what follows (8)    32  page record, line
 *
 * A record has a page, a line of the log of fetches, or both. A page and its line are written as one record, so that
 * recovery brings back both or neither.
 *
 * A record counts if and only if it has the number of the head's newest round, its checksum is right, and all
 * records before it count. A reset writes the next round over the older of the two in the head and goes back to the
 * start of the file; if that write is torn, the other round is still there. The first round of a spool is a random
 * number, so that no page can contain bytes that look like a record after the last one.
 *
 * Nothing is ever synced: see spool.h.
 */
#include "crawl/spool.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/path.h"
#include "os/random.h"

enum {
    SPOOL_MAGIC = 0x57425350,
    FORMAT = 1,
    HEAD_BYTES = 64,
    HEAD_CHECK_AT = 8,
    ROUNDS_AT = 16,
    ROUND_BYTES = 16,
    RECORD_CHECK_AT = 24,
    RECORD_HEAD_BYTES = 32,
    FILE_KEEP_BYTES = 64 << 20, /* a longer file is truncated when a round begins */
    BUFFER_KEEP_BYTES = 1 << 20,
};

#define SPOOL_DIR "spool"

_Static_assert(ROUNDS_AT == HEAD_CHECK_AT + 8, "the rounds follow the checksum of the head");
_Static_assert(ROUNDS_AT + 2 * ROUND_BYTES + 16 == HEAD_BYTES, "two rounds and 16 zero bytes fill the head");

struct wb_spool {
    uint32_t magic;
    struct wb_file file;
    uint64_t round;
    uint64_t at;          /* where the next record goes */
    struct wb_buf record; /* reused from record to record */
};

static uint64_t check_record(const char *head, const char *rest, size_t bytes)
{
    return wb_hash64(head, RECORD_CHECK_AT) ^ wb_hash64(rest, bytes);
}

static int write_round(const struct wb_file *file, uint64_t round)
{
    char bytes[ROUND_BYTES];

    wb_put64(bytes, round);
    wb_put64(bytes + 8, wb_hash64(bytes, 8));
    return wb_file_write_at(file, ROUNDS_AT + round % 2 * ROUND_BYTES, bytes, sizeof bytes);
}

static int write_head(const struct wb_file *file, uint64_t round)
{
    char head[HEAD_BYTES] = {0};
    int err;

    memcpy(head, "WBSP", 4);
    wb_put16(head + 4, FORMAT);
    wb_put64(head + HEAD_CHECK_AT, wb_hash64(head, HEAD_CHECK_AT));
    err = wb_file_write_at(file, 0, head, sizeof head);
    return err < 0 ? err : write_round(file, round);
}

/* Returns 1 if another process recovered and deleted the file before we locked it: it must be created again. */
static int create_file(const char *path, struct wb_file *file_out)
{
    int err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW, file_out);

    if (err == WB_E_INVALID)
        return wb_fail(WB_E_BUSY, "%s is in use, or was left by a process that died", path);
    if (err == 0)
        err = wb_file_lock(file_out, true);
    if (err == 0 && wb_file_unlinked(file_out)) {
        wb_file_close(file_out);
        return 1;
    }
    return err;
}

int wb_spool_create(const char *dir, const char *name, struct wb_spool **spool_out)
{
    struct wb_spool *spool = wb_alloc_zero(1, sizeof *spool);
    char *folder = wb_path_join(dir, SPOOL_DIR), *path = folder ? wb_path_join(folder, name) : NULL;
    int err = spool && path ? 0 : WB_E_NOMEM;

    *spool_out = NULL;
    if (spool)
        *spool = (struct wb_spool){.magic = SPOOL_MAGIC, .file = WB_FILE_INIT, .at = HEAD_BYTES};
    if (err == 0) {
        wb_random_bytes(&spool->round, sizeof spool->round);
        err = wb_path_mkdirs(folder);
    }
    if (err == 0)
        do
            err = create_file(path, &spool->file);
        while (err == 1);
    if (err == 0)
        err = write_head(&spool->file, spool->round);
    if (err == 0) {
        *spool_out = spool;
    } else if (spool) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        wb_spool_close(spool, spool->file.path != NULL);
        err = wb_error_restore(&why);
    }
    wb_free(folder);
    wb_free(path);
    return err;
}

int wb_spool_add(struct wb_spool *spool, const struct wb_page *page, struct wb_slice line)
{
    struct wb_buf *record = &spool->record;
    int err;

    WB_CHECK(spool->magic == SPOOL_MAGIC && spool->at >= HEAD_BYTES);
    WB_CHECK(page || line.len);
    wb_buf_clear(record);
    err = wb_buf_reserve(record, RECORD_HEAD_BYTES);
    if (err < 0)
        return err;
    record->len = RECORD_HEAD_BYTES;
    if (page)
        err = wb_page_encode(page, record);
    size_t page_bytes = record->len - RECORD_HEAD_BYTES;
    if (err == 0)
        err = wb_buf_append_slice(record, line);
    if (err == 0) {
        wb_put64(record->ptr, spool->round);
        wb_put64(record->ptr + 8, page_bytes);
        wb_put64(record->ptr + 16, line.len);
        wb_put64(record->ptr + RECORD_CHECK_AT,
                 check_record(record->ptr, record->ptr + RECORD_HEAD_BYTES, page_bytes + line.len));
        err = wb_file_write_at(&spool->file, spool->at, record->ptr, record->len);
    }
    if (err == 0)
        spool->at += record->len;
    if (record->cap > BUFFER_KEEP_BYTES)
        wb_buf_release(record);
    return err;
}

int wb_spool_reset(struct wb_spool *spool)
{
    int err;

    WB_CHECK(spool->magic == SPOOL_MAGIC && spool->at >= HEAD_BYTES);
    if (spool->at == HEAD_BYTES)
        return 0;
    err = write_round(&spool->file, spool->round + 1);
    if (err < 0)
        return err;
    spool->round++;
    /* If this fails, the file stays long, which does no harm: its records are of an old round. */
    if (spool->at > FILE_KEEP_BYTES)
        (void)wb_file_truncate(&spool->file, HEAD_BYTES);
    spool->at = HEAD_BYTES;
    return 0;
}

uint64_t wb_spool_bytes(const struct wb_spool *spool)
{
    WB_CHECK(spool->magic == SPOOL_MAGIC && spool->at >= HEAD_BYTES);
    return spool->at - HEAD_BYTES;
}

uint64_t wb_spool_round(const struct wb_spool *spool)
{
    WB_CHECK(spool->magic == SPOOL_MAGIC);
    return spool->round;
}

void wb_spool_close(struct wb_spool *spool, bool remove)
{
    if (!spool)
        return;
    WB_CHECK(spool->magic == SPOOL_MAGIC);
    if (remove)
        wb_path_unlink(spool->file.path);
    wb_file_close(&spool->file);
    wb_buf_release(&spool->record);
    spool->magic = 0;
    wb_free(spool);
}

bool wb_spool_exists(const char *dir, const char *name)
{
    char *folder = wb_path_join(dir, SPOOL_DIR), *path = folder ? wb_path_join(folder, name) : NULL;
    bool exists = !path || wb_path_kind(path) != WB_PATH_NONE;

    wb_free(folder);
    wb_free(path);
    return exists;
}

/* ---- recovery ---------------------------------------------------------------------------------------------------- */

struct spool_recovery {
    const char *folder;
    wb_spool_each each;
    void *context;
    uint64_t pages;
    struct wb_buf record;
};

static bool head_is_intact(const char *head)
{
    return memcmp(head, "WBSP", 4) == 0 && wb_get64(head + HEAD_CHECK_AT) == wb_hash64(head, HEAD_CHECK_AT);
}

/* The newest round of a head; false if neither of the two is intact. */
static bool find_round(const char *head, uint64_t *round_out)
{
    bool found = false;

    *round_out = 0;
    for (unsigned i = 0; i < 2; i++) {
        const char *bytes = head + ROUNDS_AT + i * ROUND_BYTES;
        uint64_t round = wb_get64(bytes);
        if (wb_get64(bytes + 8) != wb_hash64(bytes, 8) || round % 2 != i)
            continue;
        /* Compared by their difference, because rounds wrap around to 0. */
        if (!found || (int64_t)(round - *round_out) > 0)
            *round_out = round;
        found = true;
    }
    return found;
}

/* A spool that is being read. */
struct spool_reading {
    const struct wb_file *file;
    uint64_t size, round, at;
};

/*
 * Reads the next record that counts. 1 with an item, which borrows from record and page; 0: there are no more; or an
 * error.
 */
static int read_item(struct spool_reading *r, struct wb_buf *record, struct wb_page *page,
                     struct wb_spool_item *item_out)
{
    char head[RECORD_HEAD_BYTES];
    int err;

    if (r->size - r->at < RECORD_HEAD_BYTES)
        return 0;
    err = wb_file_read_exact(r->file, r->at, head, sizeof head);
    if (err < 0)
        return err == WB_E_CORRUPT ? 0 : err;
    uint64_t left = r->size - r->at - RECORD_HEAD_BYTES, page_bytes = wb_get64(head + 8),
             line_bytes = wb_get64(head + 16);
    if (wb_get64(head) != r->round || page_bytes > left || line_bytes > left - page_bytes ||
        page_bytes + line_bytes == 0)
        return 0;
    size_t bytes = (size_t)(page_bytes + line_bytes);
    wb_buf_clear(record);
    err = wb_buf_reserve(record, bytes);
    if (err == 0)
        err = wb_file_read_exact(r->file, r->at + RECORD_HEAD_BYTES, record->ptr, bytes);
    if (err < 0)
        return err == WB_E_CORRUPT ? 0 : err;
    record->len = bytes;
    if (wb_get64(head + RECORD_CHECK_AT) != check_record(head, record->ptr, bytes))
        return 0;
    err = page_bytes ? wb_page_decode(wb_slice(record->ptr, (size_t)page_bytes), page) : 0;
    if (err < 0)
        return err == WB_E_NEWER ? err : 0;
    if (page_bytes)
        page->id = wb_pageid_of_key(page->key);
    item_out->page = page_bytes ? page : NULL;
    item_out->line = wb_slice(record->ptr + page_bytes, (size_t)line_bytes);
    r->at += RECORD_HEAD_BYTES + bytes;
    return 1;
}

static int read_spool(struct spool_recovery *recovery, const struct wb_file *file, const char *name)
{
    char head[HEAD_BYTES];
    struct spool_reading r = {.file = file, .at = HEAD_BYTES};
    struct wb_spool_item item = {.owner = name}, end = {.owner = name, .end = true};
    struct wb_page page;
    uint64_t pages = 0;
    size_t got;
    int more = 0, err = wb_file_size(file, &r.size);

    if (err == 0)
        err = wb_file_read_at(file, 0, head, sizeof head, &got);
    if (err < 0)
        return err;
    /* Its process was killed before it wrote the head: there are no pages, but its leases must be given back. */
    if (got < sizeof head || !head_is_intact(head))
        return recovery->each(recovery->context, &end);
    if (wb_get16(head + 4) != FORMAT)
        return wb_fail_format(file->path, wb_get16(head + 4), FORMAT);
    if (!find_round(head, &r.round))
        return recovery->each(recovery->context, &end);
    item.round = end.round = r.round;
    while ((more = read_item(&r, &recovery->record, &page, &item)) == 1) {
        err = recovery->each(recovery->context, &item);
        if (err != 0)
            return err;
        pages += item.page != NULL;
    }
    if (more == 0)
        more = recovery->each(recovery->context, &end);
    if (more == 0)
        recovery->pages += pages;
    return more;
}

static int recover_entry(void *context, const struct wb_path_entry *entry)
{
    struct spool_recovery *recovery = context;
    struct wb_file file = WB_FILE_INIT;
    char *path = wb_path_join(recovery->folder, entry->name);
    int err = path ? 0 : WB_E_NOMEM;

    if (entry->kind != WB_PATH_FILE)
        goto done;
    if (err == 0)
        err = wb_file_open(path, WB_FILE_WRITE, &file);
    if (err == 0)
        err = wb_file_lock(&file, false);
    if (err == WB_E_BUSY || err == WB_E_NOTFOUND) {
        err = 0; /* it is in use, or another process has just recovered it */
        goto done;
    }
    if (err == 0 && !wb_file_unlinked(&file)) {
        err = read_spool(recovery, &file, entry->name);
        /* Deleted while we hold the lock: a process that waits for the lock then sees that the file is gone. */
        if (err == 0)
            err = wb_path_unlink(path);
    }
done:
    wb_file_close(&file);
    wb_free(path);
    return err;
}

int wb_spool_recover(const char *dir, wb_spool_each each, void *context, uint64_t *pages_out)
{
    struct spool_recovery recovery = {.each = each, .context = context, .record = WB_BUF_INIT};
    char *folder = wb_path_join(dir, SPOOL_DIR);
    int err = folder ? 0 : WB_E_NOMEM;

    *pages_out = 0;
    recovery.folder = folder;
    if (err == 0 && wb_path_kind(folder) != WB_PATH_NONE)
        err = wb_path_each(folder, recover_entry, &recovery);
    *pages_out = recovery.pages;
    wb_buf_release(&recovery.record);
    wb_free(folder);
    return err;
}
