/*
 * nodes_make.c - makes the nodes of a new repository (nodes_make.h). Everything is checked before anything is made, so
 * that a refusal leaves nothing behind. It never touches a directory that has anything in it.
 */
#include "place/nodes_make.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"
#include "place/node.h"
#include "os/folder.h"
#include "os/path.h"
#include "os/random.h"
#include "place/nodes.h"
#include "place/share.h"
#include "place/superblock.h"

#include <stdio.h>

bool wb_nodes_have_rows(const struct wb_store_options *options)
{
    return options->nodes.dirs != NULL || options->nodes.count > 1 || options->first_node > 1;
}

/* ---- paths ------------------------------------------------------------------------------------------------- */

/* Cuts a path at its last slash. Returns the last part, or NULL if there is nothing to cut; then it is as it was. */
static char *cut_path(char *path)
{
    size_t len = strlen(path);

    WB_CHECK(len > 0);
    while (len > 1 && path[len - 1] == '/')
        path[--len] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash || slash[1] == '\0')
        return NULL;
    *slash = '\0';
    return slash + 1;
}

char *wb_nodes_real_path(const char *path)
{
    if (wb_path_kind(path) != WB_PATH_NONE)
        return wb_path_real(path);
    char *above = wb_strdup(path), *real = NULL, *joined = NULL;
    if (!above)
        return NULL;
    char *last = cut_path(above);
    if (!last && above[0] == '/')
        wb_fail(WB_E_INVALID, "%s cannot be found", path);
    else
        real = wb_nodes_real_path(!last ? "." : above[0] ? above : "/");
    if (real)
        joined = wb_path_join(real, last ? last : above);
    wb_free(real);
    wb_free(above);
    return joined;
}

/* Whether `inner` is `outer`, or below it. Both are real paths. */
static bool is_within(const char *inner, const char *outer)
{
    size_t len = strlen(outer);

    WB_CHECK(inner[0] == '/');
    WB_CHECK(outer[0] == '/');
    while (len > 1 && outer[len - 1] == '/')
        len--;
    return strncmp(inner, outer, len) == 0 && (len == 1 || inner[len] == '\0' || inner[len] == '/');
}

/* ---- checking ------------------------------------------------------------------------------------------------ */

/* The directory itself: new or empty, and its parent is there. */
static int check_empty(const char *dir, const char *real)
{
    struct wb_node_identity identity;
    bool empty = true;
    char *above = wb_strdup(real);
    int err = above ? 0 : WB_E_NOMEM;

    WB_CHECK(real[0] == '/');
    if (err < 0)
        return err;
    enum wb_path_kind kind = wb_path_kind(real);
    bool rooted = cut_path(above) && wb_path_kind(above[0] ? above : "/") == WB_PATH_DIR;
    if (kind == WB_PATH_NONE && !rooted)
        err = wb_fail(WB_E_INVALID, "%s cannot be a node: the directory above it does not exist", dir);
    else if (kind != WB_PATH_NONE && kind != WB_PATH_DIR)
        err = wb_fail(WB_E_INVALID, "%s cannot be a node: it is not a directory", dir);
    else if (kind == WB_PATH_DIR && wb_node_identity_read(real, &identity) != WB_E_NOTFOUND)
        err = wb_fail(WB_E_INVALID, "%s cannot be a node: it is a node of a repository already", dir);
    else if (kind == WB_PATH_DIR)
        err = wb_node_dir_is_empty(real, &empty);
    if (err == 0 && !empty)
        err = wb_fail(WB_E_INVALID, "%s cannot be a node: it is not empty", dir);
    wb_free(above);
    return err;
}

/* No directory above it may be a repository or a node. */
static int check_above(const char *dir, const char *real)
{
    char *above = wb_strdup(real);
    int err = above ? 0 : WB_E_NOMEM;

    WB_CHECK(real[0] == '/');
    while (err == 0 && cut_path(above) && above[0]) {
        struct wb_node_identity identity;
        char *path = wb_path_join(above, WB_SUPERBLOCK_NAME);
        if (!path)
            err = WB_E_NOMEM;
        else if (wb_path_kind(path) != WB_PATH_NONE)
            err = wb_fail(WB_E_INVALID, "%s cannot be a node: %s is a repository", dir, above);
        else if (wb_node_identity_read(above, &identity) == 0)
            err = wb_fail(WB_E_INVALID, "%s cannot be a node: %s is one", dir, above);
        wb_free(path);
    }
    wb_free(above);
    return err;
}

/* Two directories must not be in each other. */
static int check_apart(const char *dir, const char *real, const char *other, const char *what)
{
    char *real_other = wb_nodes_real_path(other);
    int err = real_other ? 0 : WB_E_INVALID;

    WB_CHECK(real[0] == '/');
    if (err == 0 && strcmp(real, real_other) == 0)
        err = wb_fail(WB_E_INVALID, "%s cannot be a node: it is %s already", dir, what);
    else if (err == 0 && is_within(real, real_other))
        err = wb_fail(WB_E_INVALID, "%s cannot be a node: it is inside %s, %s", dir, other, what);
    else if (err == 0 && is_within(real_other, real))
        err = wb_fail(WB_E_INVALID, "%s cannot be a node: %s, %s, is inside it", dir, other, what);
    wb_free(real_other);
    return err;
}

int wb_nodes_check_dir(const char *repo_dir, const char *dir, const char *const *others, size_t other_count,
                       char **dir_out)
{
    char *real = dir[0] ? wb_nodes_real_path(dir) : NULL;
    int err = real ? check_apart(dir, real, repo_dir, "the repository") : WB_E_INVALID;

    *dir_out = NULL;
    if (!dir[0])
        err = wb_fail(WB_E_INVALID, "a node needs a directory, and this one has no name");
    for (size_t i = 0; i < other_count && err == 0; i++)
        err = check_apart(dir, real, others[i], "another node");
    if (err == 0)
        err = check_empty(dir, real);
    if (err == 0)
        err = check_above(dir, real);
    /* As it was given, because a link may have a meaning; but it must not depend on where we are. */
    if (err == 0)
        *dir_out = wb_strdup(dir[0] == '/' ? dir : real);
    if (err == 0 && !*dir_out)
        err = WB_E_NOMEM;
    if (err == 0 && strlen(*dir_out) > WB_CATALOG_DIR_MAX) {
        err = wb_fail(WB_E_INVALID, "%s cannot be a node: its name is longer than %d bytes", dir, WB_CATALOG_DIR_MAX);
        wb_free(*dir_out);
        *dir_out = NULL;
    }
    wb_free(real);
    return err;
}

int wb_nodes_check(const char *repo_dir, const struct wb_store_options *options)
{
    const struct wb_store_node_list *lists[] = {&options->nodes, &options->update_nodes};
    WB_VEC(const char *) dirs = WB_VEC_INIT; /* of both, which must be apart from each other, too */
    int err = 0;

    for (size_t l = 0; l < 2 && err == 0; l++)
        if (lists[l]->count > WB_DESIGN_NODES_MAX)
            err = wb_fail(WB_E_INVALID, "%s cannot have %zu nodes, %d at most", repo_dir, lists[l]->count,
                          WB_DESIGN_NODES_MAX);
    for (size_t l = 0; l < 2; l++)
        for (size_t i = 0; lists[l]->dirs && i < lists[l]->count && err == 0; i++)
            err = wb_vec_push(&dirs, lists[l]->dirs[i]);
    for (size_t i = 0; i < dirs.count && err == 0; i++) {
        char *written;
        err = wb_nodes_check_dir(repo_dir, dirs.items[i], dirs.items, i, &written);
        wb_free(written);
    }
    wb_vec_release(&dirs);
    return err;
}

/* ---- making -------------------------------------------------------------------------------------------------- */

/* The rows of all nodes, without making anything. */
static int plan_nodes(const char *repo_dir, const struct wb_store_options *options, struct wb_nodes_made *made_out)
{
    const struct wb_store_node_list *list = &options->nodes;
    size_t count = list->count ? list->count : 1;
    uint32_t first = options->first_node ? options->first_node : 1;
    int err = 0;

    WB_CHECK(wb_nodes_have_rows(options));
    for (size_t i = 0; i < count && err == 0; i++) {
        struct wb_catalog_node node = {.number = first + (uint32_t)i, .inside = !list->dirs};
        char *dir = NULL;
        if (options->design.read.distribution == WB_DISTRIBUTION_HASH)
            node.cells = wb_share_of_new(i, count);
        wb_random_bytes(node.id, sizeof node.id);
        if (list->dirs)
            err = wb_nodes_check_dir(repo_dir, list->dirs[i], list->dirs, i, &dir);
        if (err == 0 && dir)
            snprintf(node.dir, sizeof node.dir, "%s", dir);
        else
            snprintf(node.dir, sizeof node.dir, "node%u", node.number);
        wb_free(dir);
        if (err == 0)
            err = wb_vec_push(made_out, (struct wb_node_made){.row = node});
    }
    return err;
}

/* Removes what an interrupted creation has left of a node inside the repository; nobody has ever used it. */
static int clear_leftover(const char *dir)
{
    struct wb_node_identity found;
    int err = wb_node_identity_read(dir, &found);

    return err == 0 ? wb_node_unmake(dir, &found) : err == WB_E_NOTFOUND ? 0 : err;
}

static int make_node(const char *repo_dir, const struct wb_superblock *superblock, struct wb_node_made *node)
{
    struct wb_node_identity identity = wb_nodes_identity(superblock->id, &node->row);
    char *dir = wb_nodes_path(repo_dir, &node->row);
    int err = dir ? 0 : WB_E_NOMEM;

    WB_CHECK(node->row.number > 0);
    if (err == 0)
        node->is_new = wb_path_kind(dir) == WB_PATH_NONE;
    if (err == 0 && node->row.inside && !node->is_new)
        err = clear_leftover(dir);
    if (err == 0)
        err = wb_node_make(dir, &identity);
    wb_free(dir);
    return err;
}

/* Removes everything that makes the directory a node, and if is_new, the directory itself. */
static void remove_node(const char *dir, const struct wb_node_identity *identity, bool is_new)
{
    char *pages = wb_path_join(dir, WB_NODE_DIR);

    WB_CHECK(identity->number > 0);
    if (wb_node_unmake(dir, identity) == 0 && pages)
        (void)wb_folder_remove(pages); /* if there is no webbase.node yet, it may be there nevertheless */
    if (is_new)
        (void)wb_folder_remove(dir);
    wb_free(pages);
}

static void undo(const char *repo_dir, const struct wb_superblock *superblock, struct wb_nodes_made *made)
{
    struct wb_error_copy why;

    wb_error_save(WB_E_IO, &why);
    for (size_t i = 0; i < made->count; i++) {
        struct wb_node_identity identity = wb_nodes_identity(superblock->id, &made->items[i].row);
        char *dir = wb_nodes_path(repo_dir, &made->items[i].row);
        if (dir)
            remove_node(dir, &identity, made->items[i].is_new);
        wb_free(dir);
    }
    wb_error_restore(&why);
}

int wb_nodes_plan(const char *repo_dir, const struct wb_store_options *options, struct wb_catalog_txn *txn,
                  struct wb_nodes_made *made_out)
{
    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    *made_out = (struct wb_nodes_made){0};

    int err = plan_nodes(repo_dir, options, made_out);

    for (size_t i = 0; i < made_out->count && err == 0; i++)
        err = wb_catalog_node_put(txn, &made_out->items[i].row);
    return err;
}

int wb_nodes_make(const char *repo_dir, const struct wb_superblock *superblock, struct wb_nodes_made *made)
{
    size_t count = 0;
    int err = 0;

    WB_CHECK(made->count > 0);
    for (; count < made->count && err == 0; count++)
        err = make_node(repo_dir, superblock, &made->items[count]);
    if (err < 0) {
        made->count = count;
        undo(repo_dir, superblock, made);
    }
    return err;
}

/* ---- what a failed creation has left ----------------------------------------------------------------------- */

static int is_foreign(void *context, const struct wb_path_entry *entry)
{
    (void)context;
    return strcmp(entry->name, WB_NODE_DIR) != 0 &&
           strncmp(entry->name, WB_NODE_IDENTITY_NAME, strlen(WB_NODE_IDENTITY_NAME)) != 0;
}

uint64_t wb_nodes_fresh(const struct wb_store_options *options)
{
    uint64_t fresh = 0;

    for (size_t i = 0; options->nodes.dirs && i < options->nodes.count && i < 64; i++)
        if (wb_path_kind(options->nodes.dirs[i]) == WB_PATH_NONE)
            fresh |= (uint64_t)1 << i;
    return fresh;
}

static int add_swept(void *context, const struct wb_catalog_node *row)
{
    WB_CHECK(row->number > 0);
    return wb_vec_push((struct wb_nodes_made *)context, (struct wb_node_made){.row = *row});
}

int wb_nodes_sweep(const char *repo_dir, uint64_t fresh)
{
    struct wb_nodes_made made = {0};
    struct wb_catalog *catalog = NULL;
    struct wb_catalog_txn txn = {0};
    char *path = wb_path_join(repo_dir, WB_CATALOG_NAME);
    bool there = path && wb_path_kind(path) != WB_PATH_NONE;
    int err = !path ? WB_E_NOMEM : there ? wb_catalog_open(repo_dir, WB_TREE_READ, &catalog) : 0;

    if (err == 0 && there)
        err = wb_catalog_txn_read(catalog, &txn);
    if (err == 0 && there)
        err = wb_catalog_node_each(&txn, add_swept, &made);
    for (size_t i = 0; i < made.count && err == 0; i++) {
        struct wb_node_identity found;
        char *dir = wb_nodes_path(repo_dir, &made.items[i].row);
        if (!dir)
            err = WB_E_NOMEM;
        else if (wb_node_identity_read(dir, &found) == 0 && found.number == made.items[i].row.number &&
                 memcmp(found.id, made.items[i].row.id, sizeof found.id) == 0)
            remove_node(dir, &found, i < 64 && fresh >> i & 1);
        wb_free(dir);
    }
    if (txn.catalog)
        wb_catalog_txn_abort(&txn);
    wb_catalog_close(catalog);
    wb_vec_release(&made);
    wb_free(path);
    return err == WB_E_NOMEM ? err : 0; /* a catalog that cannot be read names no nodes */
}

bool wb_nodes_is_leftover(const char *repo_dir, const char *name)
{
    unsigned number;
    char exact[32];
    bool empty = true;

    if (sscanf(name, "node%8u", &number) != 1)
        return false;
    snprintf(exact, sizeof exact, "node%u", number);
    char *dir = strcmp(exact, name) == 0 ? wb_path_join(repo_dir, name) : NULL;
    char *pages = dir ? wb_path_join(dir, WB_NODE_DIR) : NULL;
    bool leftover = pages && wb_path_each(dir, is_foreign, NULL) == 0 &&
                    (wb_path_kind(pages) == WB_PATH_NONE || (wb_folder_is_empty(pages, &empty) == 0 && empty));
    wb_free(pages);
    wb_free(dir);
    return leftover;
}
