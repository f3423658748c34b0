/*
 * file.h - files and directories. Everything that touches the disk goes through
 * here (SQLite's own files excepted), so that tests can make any operation fail.
 * Messages name the path.
 */
#ifndef WB_OS_FILE_H
#define WB_OS_FILE_H

#include "base/buf.h"

struct wb_file {
    int fd;     /* -1: not open */
    char *path; /* owned */
};

#define WB_FILE_INIT ((struct wb_file){-1, NULL})

enum wb_file_flags {
    WB_FILE_READ = 0,
    WB_FILE_WRITE = 1 << 0,    /* read and write */
    WB_FILE_CREATE = 1 << 1,   /* made where it is not there */
    WB_FILE_NEW = 1 << 2,      /* with CREATE: WB_E_INVALID where it is there */
    WB_FILE_TRUNCATE = 1 << 3,
};

/* WB_E_NOTFOUND where there is no such file. */
int wb_file_open(const char *path, unsigned flags, struct wb_file *file_out);
void wb_file_close(struct wb_file *file);

/* Up to len bytes at offset; fewer only at the end of the file. */
int wb_file_read_at(const struct wb_file *file, uint64_t offset, void *bytes_out, size_t len, size_t *got_out);

/* Exactly len bytes, or WB_E_CORRUPT naming the file where it ends before. */
int wb_file_read_exact(const struct wb_file *file, uint64_t offset, void *bytes_out, size_t len);
int wb_file_write_at(const struct wb_file *file, uint64_t offset, const void *bytes, size_t len);
int wb_file_sync(const struct wb_file *file);
int wb_file_truncate(const struct wb_file *file, uint64_t size);
int wb_file_size(const struct wb_file *file, uint64_t *size_out);

/* Whether the file has no name any more: somebody removed it after it was opened. */
bool wb_file_unlinked(const struct wb_file *file);

/* An advisory lock on the whole file that ends with the process; WB_E_BUSY where another holds it and wait is false. */
int wb_file_lock(const struct wb_file *file, bool wait);
void wb_file_unlock(const struct wb_file *file);

/* Tells the kernel that the file is read once from start to end. */
void wb_file_sequential(const struct wb_file *file);

/* Asks the kernel to begin writing a part to disk; promises nothing. */
void wb_file_write_back(const struct wb_file *file, uint64_t offset, uint64_t len);

/* Gives the space of a part back, which then reads as zeros; promises nothing, because not every file system can. */
void wb_file_discard(const struct wb_file *file, uint64_t offset, uint64_t len);

/* ---- paths ------------------------------------------------------------------ */

enum wb_path_kind { WB_PATH_NONE, WB_PATH_FILE, WB_PATH_DIR, WB_PATH_OTHER };

/* What is there; a symbolic link counts as what it points to. */
enum wb_path_kind wb_path_kind(const char *path);
int wb_path_rename(const char *from, const char *to);

/* No error where it is not there. */
int wb_path_unlink(const char *path);

/* Makes a directory and those above it; the entry of each that it made is durable afterwards, and so is the last one's in any case. */
int wb_path_mkdirs(const char *path);

/* Makes entries of a directory durable. */
int wb_path_sync_dir(const char *path);

/* Makes the entry of a path in its directory durable. A directory that we may write to but not read cannot be synced, which is no error. */
int wb_path_sync_parent(const char *path);

/* dir/name in memory from the heap; NULL when out of memory. */
char *wb_path_join(const char *dir, const char *name);

/* Bytes that a file takes on disk; 0 where it is not there. */
uint64_t wb_path_disk_bytes(const char *path);

/* Whether the disk that a file is on has next to no space left. */
bool wb_path_disk_full(const char *path);

/* A whole small file; WB_E_LIMIT where it is larger than max. */
int wb_path_read(const char *path, size_t max, struct wb_buf *bytes_out);

/* Replaces a whole file: a temporary beside it, fsync, rename, fsync of the directory. */
int wb_path_replace(const char *path, struct wb_slice bytes);

/* ---- walking ------------------------------------------------------------------ */

struct wb_dir_entry {
    const char *name; /* without the directory */
    enum wb_path_kind kind; /* of the entry itself: symbolic links are WB_PATH_OTHER */
    uint64_t size;
    int64_t mtime_ms;
};

/* Calls back for each entry of a directory but . and .., sorted by name; a non-zero return ends the walk and is returned. */
int wb_dir_each(const char *path, int (*each)(void *context, const struct wb_dir_entry *entry), void *context);

#endif
