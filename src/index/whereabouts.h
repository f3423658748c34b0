/*
 * whereabouts.h - in which directories the generations of a repository are.
 *
 *   DIR/index          at home: here are the lock of the builds and, as a rule, the generations
 *   DIR/index/where    if they are elsewhere: which directory has them, and which others may still have some
 *
 * A build that moves the generations names the new directory as an `other` one before it writes anything there, and the
 * old one afterwards. So whatever dies in between, the next build knows every directory that it has to clean.
 */
#ifndef WB_INDEX_WHEREABOUTS_H
#define WB_INDEX_WHEREABOUTS_H

#include "base/vec.h"

#include <stdbool.h>

#define WB_INDEX_DIR "index"
#define WB_INDEX_WHERE "where"

/* All zero: nothing is known yet. All paths are from the heap. */
struct wb_whereabouts {
    char *home;            /* DIR/index */
    char *root;            /* the series of generations that readers use */
    WB_VEC(char *) others; /* further series, which are to be cleaned; DIR/index is not among them */
};

/* Reads where the generations of a repository are. Release it even after an error. WB_E_CORRUPT names the file. */
int wb_whereabouts_read(const char *dir, struct wb_whereabouts *where_out);

/* Replaces DIR/index/where, durably; or removes it, if everything is at home. */
int wb_whereabouts_write(const struct wb_whereabouts *where);

/* Whether a series is DIR/index. */
bool wb_whereabouts_at_home(const struct wb_whereabouts *where, const char *root);

/* Adds a directory to the others, unless it is one of them; or takes it away. */
int wb_whereabouts_add(struct wb_whereabouts *where, const char *root);
void wb_whereabouts_remove(struct wb_whereabouts *where, const char *root);
void wb_whereabouts_release(struct wb_whereabouts *where);

/*
 * The series for generations in index_dir, from the heap: index_dir/webbase-ID, where ID is that of the repository; or
 * DIR/index, if index_dir is the repository itself. WB_E_NOTFOUND and WB_E_INVALID name index_dir if it is no directory
 * that can be used.
 */
int wb_whereabouts_root(const char *dir, const char *index_dir, char **root_out);

#endif
