/*
 * sql_checked.c - checksums for SQLite's pages: a VFS (sqlite.org/vfs.html) on top of the system's.
 *
 *   page:  [ content | 8 bytes checksum ]     checksum = XXH3 of the content + offset of the page * an odd number
 *
 * SQLite leaves the last bytes of each page alone if byte 20 of the file's head says how many
 * (SQLITE_FCNTL_RESERVE_BYTES). When a page is written to the database file, its checksum is put there. When it is
 * read, the checksum must match, or the read fails with SQLITE_IOERR_DATA. So a flipped bit never becomes an answer,
 * not even the answer that there is no such row, because the pages of the index were checked on the way. The offset
 * is part of the checksum, so a page in the wrong place does not match either. A page of zeros was never written; it
 * is passed to SQLite, which does not take it for a page.
 *
 * The write-ahead log and other files are passed through unchanged: the log has checksums of its own, and its pages get
 * theirs when they are copied into the database file.
 */
#include "sql/sql_checked.h"
#include "base/bytes.h"
#include "base/hash.h"

#include <string.h>

enum {
    HEAD_BYTES = 100,
    PAGE_SIZE_AT = 16,
    RESERVED_AT = 20,
    PAGE_BYTES_MIN = 512,
    PAGE_BYTES_MAX = 65536,
};

struct checked_file {
    sqlite3_file base;
    uint32_t page_bytes; /* 0: the head was not read yet */
    bool checked;        /* the pages have checksums */
    uint64_t bad;        /* offset of the last page that did not match */
    /* The system's own struct follows, aligned. */
};

#define FILE_BYTES ((sizeof(struct checked_file) + 15) / 16 * 16)

static sqlite3_vfs checked_vfs;
static sqlite3_io_methods checked_methods;

static sqlite3_file *real_file(sqlite3_file *file)
{
    return (sqlite3_file *)(void *)((char *)file + FILE_BYTES);
}

static sqlite3_vfs *real_vfs(void)
{
    return checked_vfs.pAppData;
}

static uint64_t check_page(const char *page, uint32_t bytes, uint64_t offset)
{
    return wb_hash64(page, bytes - WB_SQL_CHECKED_BYTES) + offset * 0x9e3779b97f4a7c15u;
}

static bool is_zero(const char *bytes, size_t len)
{
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

/* Learns from the head of the file how large pages are, and whether they have room for a checksum. */
static void look_at_head(struct checked_file *file, const char *head)
{
    uint32_t bytes = (uint32_t)((unsigned char)head[PAGE_SIZE_AT] << 8 | (unsigned char)head[PAGE_SIZE_AT + 1]);

    if (memcmp(head, "SQLite format 3", 16) != 0)
        return;
    file->page_bytes = bytes == 1 ? PAGE_BYTES_MAX : bytes;
    file->checked = head[RESERVED_AT] == WB_SQL_CHECKED_BYTES && file->page_bytes >= PAGE_BYTES_MIN;
}

/* If SQLite found the first page in its log, it has not read it from the file: then read it here. */
static void know_head(struct checked_file *file)
{
    sqlite3_file *real = real_file(&file->base);
    char head[HEAD_BYTES];

    if (file->page_bytes == 0 && real->pMethods->xRead(real, head, sizeof head, 0) == SQLITE_OK)
        look_at_head(file, head);
}

static bool is_page(struct checked_file *file, int len, int64_t offset)
{
    know_head(file);
    return file->checked && (uint32_t)len == file->page_bytes && offset % len == 0;
}

/* ---- reading and writing ---------------------------------------------------------------------------- */

static int checked_read(sqlite3_file *f, void *bytes, int len, sqlite3_int64 offset)
{
    struct checked_file *file = (struct checked_file *)(void *)f;
    int rc = real_file(f)->pMethods->xRead(real_file(f), bytes, len, offset);

    if (rc != SQLITE_OK)
        return rc;
    if (offset == 0 && len >= HEAD_BYTES)
        look_at_head(file, bytes);
    if (!is_page(file, len, offset))
        return SQLITE_OK;
    const char *page = bytes;
    if (wb_get64(page + len - WB_SQL_CHECKED_BYTES) == check_page(page, (uint32_t)len, (uint64_t)offset) ||
        is_zero(page, (size_t)len))
        return SQLITE_OK;
    file->bad = (uint64_t)offset;
    return SQLITE_IOERR_DATA;
}

static int checked_write(sqlite3_file *f, const void *bytes, int len, sqlite3_int64 offset)
{
    struct checked_file *file = (struct checked_file *)(void *)f;
    char page[PAGE_BYTES_MAX];

    if (offset == 0 && len >= HEAD_BYTES)
        look_at_head(file, bytes);
    if (is_page(file, len, offset) && len <= PAGE_BYTES_MAX) {
        /* Do not change SQLite's own copy: it may be writing the same bytes to its log. */
        memcpy(page, bytes, (size_t)len);
        wb_put64(page + len - WB_SQL_CHECKED_BYTES, check_page(page, (uint32_t)len, (uint64_t)offset));
        bytes = page;
    }
    return real_file(f)->pMethods->xWrite(real_file(f), bytes, len, offset);
}

/* ---- passed through ----------------------------------------------------------------------------------------- */

static int pass_close(sqlite3_file *f)
{
    return real_file(f)->pMethods->xClose(real_file(f));
}

static int pass_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    return real_file(f)->pMethods->xTruncate(real_file(f), size);
}

static int pass_sync(sqlite3_file *f, int flags)
{
    return real_file(f)->pMethods->xSync(real_file(f), flags);
}

static int pass_size(sqlite3_file *f, sqlite3_int64 *size_out)
{
    return real_file(f)->pMethods->xFileSize(real_file(f), size_out);
}

static int pass_lock(sqlite3_file *f, int lock)
{
    return real_file(f)->pMethods->xLock(real_file(f), lock);
}

static int pass_unlock(sqlite3_file *f, int lock)
{
    return real_file(f)->pMethods->xUnlock(real_file(f), lock);
}

static int pass_reserved(sqlite3_file *f, int *out)
{
    return real_file(f)->pMethods->xCheckReservedLock(real_file(f), out);
}

static int pass_control(sqlite3_file *f, int op, void *arg)
{
    return real_file(f)->pMethods->xFileControl(real_file(f), op, arg);
}

static int pass_sector(sqlite3_file *f)
{
    return real_file(f)->pMethods->xSectorSize(real_file(f));
}

static int pass_device(sqlite3_file *f)
{
    return real_file(f)->pMethods->xDeviceCharacteristics(real_file(f));
}

static int pass_shm_map(sqlite3_file *f, int region, int size, int extend, void volatile **out)
{
    return real_file(f)->pMethods->xShmMap(real_file(f), region, size, extend, out);
}

static int pass_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return real_file(f)->pMethods->xShmLock(real_file(f), offset, n, flags);
}

static void pass_shm_barrier(sqlite3_file *f)
{
    real_file(f)->pMethods->xShmBarrier(real_file(f));
}

static int pass_shm_unmap(sqlite3_file *f, int remove)
{
    return real_file(f)->pMethods->xShmUnmap(real_file(f), remove);
}

/* Version 2 has no xFetch, so no page comes through a memory map without being checked. */
static sqlite3_io_methods checked_methods = {
    .iVersion = 2,
    .xClose = pass_close,
    .xRead = checked_read,
    .xWrite = checked_write,
    .xTruncate = pass_truncate,
    .xSync = pass_sync,
    .xFileSize = pass_size,
    .xLock = pass_lock,
    .xUnlock = pass_unlock,
    .xCheckReservedLock = pass_reserved,
    .xFileControl = pass_control,
    .xSectorSize = pass_sector,
    .xDeviceCharacteristics = pass_device,
    .xShmMap = pass_shm_map,
    .xShmLock = pass_shm_lock,
    .xShmBarrier = pass_shm_barrier,
    .xShmUnmap = pass_shm_unmap,
};

/* ---- opening -------------------------------------------------------------------------------------------- */

static int checked_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *flags_out)
{
    struct checked_file *file = (struct checked_file *)(void *)f;

    (void)vfs;
    if (!(flags & SQLITE_OPEN_MAIN_DB))
        return real_vfs()->xOpen(real_vfs(), name, f, flags, flags_out);
    *file = (struct checked_file){.page_bytes = 0};
    int rc = real_vfs()->xOpen(real_vfs(), name, real_file(f), flags, flags_out);
    /* If it failed, SQLite must not call us back. */
    file->base.pMethods = rc == SQLITE_OK ? &checked_methods : NULL;
    return rc;
}

int wb_sql_checked_register(void)
{
    if (checked_vfs.zName)
        return SQLITE_OK;
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    if (!real)
        return SQLITE_ERROR;
    /* Everything but opening is the system's. Its functions do not look at the VFS that they are called with. */
    checked_vfs = *real;
    checked_vfs.pNext = NULL;
    checked_vfs.zName = WB_SQL_CHECKED_VFS;
    checked_vfs.szOsFile = (int)FILE_BYTES + real->szOsFile;
    checked_vfs.pAppData = real;
    checked_vfs.xOpen = checked_open;
    int rc = sqlite3_vfs_register(&checked_vfs, 0);
    if (rc != SQLITE_OK)
        checked_vfs.zName = NULL;
    return rc;
}

bool wb_sql_checked_state(sqlite3 *db, uint64_t *bad_out)
{
    sqlite3_file *f = NULL;

    *bad_out = 0;
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &f) != SQLITE_OK || !f ||
        f->pMethods != &checked_methods)
        return false;
    struct checked_file *file = (struct checked_file *)(void *)f;
    know_head(file);
    *bad_out = file->bad;
    return file->checked;
}
