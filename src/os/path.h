/*
 * path.h - names in the file system: finding out what is there, making, renaming, removing, listing.
 *
 * For everybody who deals with files by name. Like file.h, this is the only way to the disk, so that tests can make any
 * operation fail. Error messages name the path.
 *
 * A change to a directory (a file that is made, renamed or removed) survives a power failure only after the directory
 * itself was synced: wb_path_sync_dir() or wb_path_sync_parent(). The functions that say "durable" have done so.
 */
#ifndef WB_OS_PATH_H
#define WB_OS_PATH_H

#include "base/buf.h"

enum wb_path_kind { WB_PATH_NONE, WB_PATH_FILE, WB_PATH_DIR, WB_PATH_OTHER };

/* What a path names. A symbolic link counts as what it points to. WB_PATH_NONE also if we may not look. */
enum wb_path_kind wb_path_kind(const char *path);

/* Replaces `to` if it exists, atomically. Not durable yet. */
int wb_path_rename(const char *from, const char *to);

/* Removes a file. It is not an error if there is none. */
int wb_path_unlink(const char *path);

/* Makes a copy of a file, which is synced. WB_E_INVALID if `to` exists. */
int wb_path_copy(const char *from, const char *to);

/* Whether two files have the same bytes. WB_E_NOTFOUND if there is no such file. */
int wb_path_same(const char *a, const char *b, bool *same_out);

/* Returns the absolute path without symbolic links, allocated (wb_free). NULL after an error, with a message. */
char *wb_path_real(const char *path);

/*
 * Makes a directory and the missing ones above it. The entries of the directories that it makes are durable, and so
 * is the entry of the last one even if it existed: the process that made it may have been killed before it could
 * sync.
 */
int wb_path_mkdirs(const char *path);

/* Makes the entries of a directory durable. */
int wb_path_sync_dir(const char *path);

/*
 * Makes the entry of a path in its directory durable. A directory that we may write to but not read cannot be synced;
 * that is not an error.
 */
int wb_path_sync_parent(const char *path);

/* Returns "dir/name", allocated (wb_free); NULL when out of memory. */
char *wb_path_join(const char *dir, const char *name);

/* Returns the bytes that a file occupies on disk; 0 if there is no such file. */
uint64_t wb_path_disk_bytes(const char *path);

/* Reads a whole file. WB_E_LIMIT if it is larger than max bytes, WB_E_NOTFOUND if there is none. */
int wb_path_read(const char *path, size_t max, struct wb_buf *bytes_out);

/*
 * Replaces the content of a file, or makes the file: writes PATH.tmp, syncs it, renames it to PATH and syncs the
 * directory. After a crash the file has either the old content or the new one.
 */
int wb_path_replace(const char *path, struct wb_slice bytes);
int wb_path_replace_parts(const char *path, const struct wb_slice *parts, size_t count); /* one after the other */

/* ---- listing directories --------------------------------------------------------------------------------------- */

struct wb_path_entry {
    const char *name;       /* without the directory */
    enum wb_path_kind kind; /* of the entry itself: a symbolic link is WB_PATH_OTHER */
    uint64_t size;
    int64_t mtime_ms;
};

/*
 * Calls each() for every entry of a directory except . and .., in the order of their names. If each() returns anything
 * but 0, the walk ends and returns that. readdir() is not atomic: files can appear or disappear while we list them.
 */
int wb_path_each(const char *path, int (*each)(void *context, const struct wb_path_entry *entry), void *context);

#endif
