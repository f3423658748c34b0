/*
 * nodes_make.h - makes the nodes of a new repository, and says whether a directory can become a node.
 *
 *   --nodes N      REPO/node1 ... REPO/nodeN, which are found relative to the repository
 *   --nodes A,B    these directories: new, or empty
 *
 * One node in the repository's own directory, which is the default, needs nothing of this.
 */
#ifndef WB_PLACE_NODES_MAKE_H
#define WB_PLACE_NODES_MAKE_H

#include "base/vec.h"
#include "catalog/catalog.h"
#include "place/init_options.h"

struct wb_superblock;

/* Whether the nodes of a new repository have rows in the catalog; false: it is one node in its own directory. */
bool wb_nodes_have_rows(const struct wb_store_options *options);

/*
 * Checks that a directory can become a node of the repository in repo_dir, which may not exist yet: it is new or empty,
 * its parent exists, and it is not inside or around the repository, another repository or node, or one of the other
 * directories. WB_E_INVALID names it and says why not. *dir_out is how it is written down: an absolute path, allocated
 * (wb_free).
 */
int wb_nodes_check_dir(const char *repo_dir, const char *dir, const char *const *others, size_t other_count,
                       char **dir_out);

/*
 * The absolute path without symbolic links of something that may not exist yet, allocated (wb_free). NULL after an
 * error, with a message.
 */
char *wb_nodes_real_path(const char *path);

/* Checks all directories of a new repository, before anything is made. */
int wb_nodes_check(const char *repo_dir, const struct wb_store_options *options);

struct wb_node_made {
    struct wb_catalog_node row;
    bool is_new; /* its directory did not exist before */
};
struct wb_nodes_made WB_VEC_OF(struct wb_node_made);

/*
 * Writes the rows of the nodes, and makes nothing. made_out must be released (wb_vec_release), also after an error.
 * The directories may be made only when the rows are on disk: if the creation is interrupted and repeated, the rows say
 * which directories it has made (wb_nodes_sweep()).
 */
int wb_nodes_plan(const char *repo_dir, const struct wb_store_options *options, struct wb_catalog_txn *txn,
                  struct wb_nodes_made *made_out);

/* Makes the directories. If that fails, what was made is removed again. */
int wb_nodes_make(const char *repo_dir, const struct wb_superblock *superblock, struct wb_nodes_made *made);

/*
 * Makes directories of nodes ordinary directories again, if the creation of their repository failed or was interrupted:
 * it has a catalog with their rows, but no superblock. Those of which `fresh` has the bit, counted from the first node,
 * are removed. The caller has the lock of the creation.
 */
int wb_nodes_sweep(const char *repo_dir, uint64_t fresh);

/* Which directories of the list do not exist: a bit for each of the first 64. */
uint64_t wb_nodes_fresh(const struct wb_store_options *options);

/* Whether an entry of a directory is what the interrupted creation of a repository has left of nodes inside it. */
bool wb_nodes_is_leftover(const char *repo_dir, const char *name);

#endif
