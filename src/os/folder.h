/*
 * folder.h - directories as places for files: how much room they have, whether we may write there, whether they are
 * empty. For those who choose between directories on several disks; path.h has everything else about names.
 */
#ifndef WB_OS_FOLDER_H
#define WB_OS_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

/* The file system that a directory is on. */
struct wb_folder_space {
    uint64_t capacity; /* bytes */
    uint64_t free;     /* bytes that this process may still use */
};
int wb_folder_space(const char *path, struct wb_folder_space *space_out);

/* Whether files can be made there: false if we may not, or the file system is read-only, or there is no such folder. */
bool wb_folder_is_writable(const char *path);

/* Whether there is nothing in it; WB_E_NOTFOUND if it does not exist. */
int wb_folder_is_empty(const char *path, bool *empty_out);

/* Removes an empty directory. It is not an error if there is none. */
int wb_folder_remove(const char *path);

/* Removes a directory with everything in it. Symbolic links are removed, not what they point to. */
int wb_folder_remove_all(const char *path);

/* Distinguishes a file from every other one that may take its place. */
struct wb_folder_stamp {
    uint64_t device, inode;
    int64_t changed_ns;
};

/* The stamp of the file that a path names. Returns false, and clears the stamp, if there is none that we can see. */
bool wb_folder_stamp(const char *path, struct wb_folder_stamp *stamp_out);

/* What a file keeps for life, and a copy of it does not have. birth_ns is 0 where the file system does not know it. */
struct wb_folder_birth {
    uint64_t inode;
    int64_t birth_ns;
};

/* WB_E_NOTFOUND if there is no such file. */
int wb_folder_birth(const char *path, struct wb_folder_birth *birth_out);

static inline bool wb_folder_stamp_equal(const struct wb_folder_stamp *a, const struct wb_folder_stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->changed_ns == b->changed_ns;
}

#endif
