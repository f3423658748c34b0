/*
 * file.h - open files: reading, writing, syncing, locking.
 *
 * Everything that touches the disk goes through this header and path.h (SQLite's own files excepted), so that
 * tests can make any operation fail (fault.h). Error messages name the path. Every transfer names its offset, so
 * threads can share a struct wb_file. Interrupted or partial reads and writes are continued until they are complete.
 *
 *   struct wb_file file = WB_FILE_INIT;
 *   int err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &file);
 *   if (err == 0)
 *       err = wb_file_write_at(&file, 0, bytes, len);
 *   if (err == 0)
 *       err = wb_file_sync(&file);          // only now do the bytes survive a power failure
 *   wb_file_close(&file);                   // safe in any case
 */
#ifndef WB_OS_FILE_H
#define WB_OS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wb_file {
    int fd;     /* -1: not open */
    char *path; /* owned; for messages */
};

#define WB_FILE_INIT ((struct wb_file){-1, NULL})

enum wb_file_flags {
    WB_FILE_READ = 0,
    WB_FILE_WRITE = 1 << 0,    /* for reading and writing */
    WB_FILE_CREATE = 1 << 1,   /* make the file if it does not exist */
    WB_FILE_NEW = 1 << 2,      /* with CREATE: WB_E_INVALID if the file exists */
    WB_FILE_TRUNCATE = 1 << 3, /* cut it to zero bytes */
    WB_FILE_PRIVATE = 1 << 4,  /* with CREATE: only the owner may read it */
};

/* WB_E_NOTFOUND if there is no such file. */
int wb_file_open(const char *path, unsigned flags, struct wb_file *file_out);

/* Closing a file that is not open does nothing. */
void wb_file_close(struct wb_file *file);

/* Reads up to len bytes at offset. *got_out is less than len only at the end of the file. */
int wb_file_read_at(const struct wb_file *file, uint64_t offset, void *bytes_out, size_t len, size_t *got_out);

/* Reads exactly len bytes; WB_E_CORRUPT if the file ends before. */
int wb_file_read_exact(const struct wb_file *file, uint64_t offset, void *bytes_out, size_t len);

/* Writes all bytes at offset. After an error any part of them may have been written. */
int wb_file_write_at(const struct wb_file *file, uint64_t offset, const void *bytes, size_t len);

/* Returns when the file's bytes and its size are on disk. The file's name is not: see wb_path_sync_parent(). */
int wb_file_sync(const struct wb_file *file);

int wb_file_truncate(const struct wb_file *file, uint64_t size);
int wb_file_size(const struct wb_file *file, uint64_t *size_out);

/* Returns true if the file's last name was removed after it was opened. */
bool wb_file_unlinked(const struct wb_file *file);

/*
 * Takes an exclusive advisory lock on the whole file (flock). It ends when the file is closed or the process ends.
 * If somebody else holds it: waits, or returns WB_E_BUSY if wait is false.
 */
int wb_file_lock(const struct wb_file *file, bool wait);
void wb_file_unlock(const struct wb_file *file);

/*
 * Opens the file of this name in a directory, making it if needed, and locks it, without waiting: WB_E_BUSY. For others
 * that lock it in this way both is one step: if they find that a process has the file open for this (in /proc), they
 * cannot lock it before that process lets go. So a process that is stopped between the two steps is not overtaken.
 */
int wb_file_open_locked(const char *dir, const char *name, struct wb_file *file_out);

/*
 * Whether somebody else holds the lock. Looking disturbs nobody: two processes that look at the same time see no lock,
 * and wb_file_lock() waits until they have looked. Not for a file that this handle has locked: it would lose the lock.
 */
bool wb_file_is_locked(const struct wb_file *file);

/* ---- hints: the kernel may ignore them, so they return nothing ---------------------------------------------- */

/* The file will be read once, from start to end. */
void wb_file_sequential(const struct wb_file *file);

/* The kernel should begin to write this part to disk. It is not durable before wb_file_sync(). */
void wb_file_write_back(const struct wb_file *file, uint64_t offset, uint64_t len);

/* This part is no longer needed: its disk space can be freed. Afterwards it may read as zeros. */
void wb_file_discard(const struct wb_file *file, uint64_t offset, uint64_t len);

#endif
