/* removetree.h - a directory for a test, and removing what the test has left in it. */
#ifndef WB_TESTS_REMOVETREE_H
#define WB_TESTS_REMOVETREE_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* Makes a directory, in memory if possible, for tests that are not about power loss. Returns 0, or -1. */
enum { MEMORY_DIR_MAX = 64 };
static inline int make_memory_dir(const char *room, char dir_out[MEMORY_DIR_MAX])
{
    const char *base = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";

    snprintf(dir_out, MEMORY_DIR_MAX, "%s/webbase-%s-XXXXXX", base, room);
    return mkdtemp(dir_out) ? 0 : -1;
}

/* Removes a directory and everything in it. */
static inline int remove_tree(const char *dir)
{
    return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
