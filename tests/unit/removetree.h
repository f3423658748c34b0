/* removetree.h - removes what a test has left in its directory. */
#ifndef WB_TESTS_REMOVETREE_H
#define WB_TESTS_REMOVETREE_H

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* Removes a directory and everything in it. */
static inline int remove_tree(const char *dir)
{
    return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
