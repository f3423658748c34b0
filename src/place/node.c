/*
 * node.c - a node: a directory, and what concerns all of its files.
 *
 * Names are checked before anything is opened: nothing outside of the directory is ever touched. Before a name is
 * opened, created, removed or listed, the identity of the directory is checked; if webbase.node is still the same file
 * as the last time, that costs one stat(). A file that is open stays usable when its directory has been replaced: it is
 * a file of the right node.
 */
#include "place/node.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/slice.h"
#include "place/node_inside.h"
#include "os/folder.h"
#include "os/path.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { NODE_MAGIC = 0x57424e44 };

struct wb_node {
    uint32_t magic;
    _Atomic uint32_t holders; /* those who have opened it, and its open files */
    char *dir;
    char *identity_path, *pages; /* DIR/webbase.node, DIR/pages */
    bool has_identity;
    struct wb_node_identity identity;
    pthread_mutex_t mutex; /* for what follows */
    bool checked;          /* webbase.node was right when it was the file with this stamp */
    struct wb_folder_stamp stamp;
};

/* ---- opening and closing --------------------------------------------------------------------- */

int wb_node_open(const char *dir, const struct wb_node_identity *identity, struct wb_node **node_out)
{
    struct wb_node *node = wb_alloc_zero(1, sizeof *node);

    *node_out = NULL;
    if (!node)
        return WB_E_NOMEM;
    node->magic = NODE_MAGIC;
    atomic_store(&node->holders, 1);
    pthread_mutex_init(&node->mutex, NULL);
    node->dir = wb_strdup(dir);
    node->identity_path = wb_path_join(dir, WB_NODE_IDENTITY_NAME);
    node->pages = wb_path_join(dir, WB_NODE_DIR);
    node->has_identity = identity != NULL;
    if (identity)
        node->identity = *identity;
    if (!node->dir || !node->identity_path || !node->pages) {
        wb_node_close(node);
        return WB_E_NOMEM;
    }
    *node_out = node;
    return 0;
}

void wb_node_hold(struct wb_node *node)
{
    WB_CHECK(node->magic == NODE_MAGIC);
    atomic_fetch_add(&node->holders, 1);
}

void wb_node_close(struct wb_node *node)
{
    if (!node)
        return;
    WB_CHECK(node->magic == NODE_MAGIC);
    if (atomic_fetch_sub(&node->holders, 1) != 1)
        return;
    wb_free(node->identity_path);
    wb_free(node->pages);
    wb_free(node->dir);
    pthread_mutex_destroy(&node->mutex);
    node->magic = 0;
    wb_free(node);
}

const char *wb_node_label(const struct wb_node *node)
{
    WB_CHECK(node->magic == NODE_MAGIC);
    return node->dir;
}

/* ---- who the node is ------------------------------------------------------------------------- */

int wb_node_probe(struct wb_node *node)
{
    struct wb_folder_stamp stamp;

    WB_CHECK(node->magic == NODE_MAGIC);
    if (!node->has_identity)
        return 0;
    bool there = wb_folder_stamp(node->identity_path, &stamp);
    pthread_mutex_lock(&node->mutex);
    bool same = there && node->checked && wb_folder_stamp_equal(&stamp, &node->stamp);
    pthread_mutex_unlock(&node->mutex);
    if (same)
        return 0;
    int err = wb_node_check(node->dir, &node->identity);
    pthread_mutex_lock(&node->mutex);
    node->checked = err == 0 && there;
    node->stamp = stamp;
    pthread_mutex_unlock(&node->mutex);
    return err;
}

int wb_node_space(struct wb_node *node, struct wb_node_space *space_out)
{
    struct wb_folder_space room;
    int err = wb_node_probe(node);

    *space_out = (struct wb_node_space){0};
    if (err == 0)
        err = wb_folder_space(node->dir, &room);
    if (err < 0)
        return err;
    *space_out = (struct wb_node_space){room.capacity, room.free, !wb_folder_is_writable(node->pages)};
    return 0;
}

/* ---- files by name --------------------------------------------------------------------------- */

/* Whether this is the name of a file of a node: pages/ and one component of letters, digits, '.', '_' and '-'. */
static bool is_name(struct wb_slice name)
{
    static const struct wb_slice dir = {WB_NODE_DIR "/", sizeof WB_NODE_DIR};

    if (!wb_slice_starts(name, dir) || name.len == dir.len || name.len >= WB_NODE_NAME_MAX)
        return false;
    if (name.ptr[dir.len] == '.') /* ".", ".." and hidden files */
        return false;
    for (size_t i = dir.len; i < name.len; i++) {
        char c = name.ptr[i];
        if (!wb_ascii_is_digit(c) && !wb_ascii_is_letter(c) && c != '.' && c != '_' && c != '-')
            return false;
    }
    return true;
}

int wb_node_open_named(struct wb_node *node, const char *name, unsigned flags, struct wb_file *file_out)
{
    *file_out = WB_FILE_INIT;
    if (!is_name(wb_slice_str(name)))
        return wb_fail(WB_E_INVALID, "%s: a file of a node cannot have the name %s", node->dir, name);
    int err = wb_node_probe(node);
    if (err < 0)
        return err;
    char *path = wb_path_join(node->dir, name);
    if (!path)
        return WB_E_NOMEM;
    /* A pipe in the place of a file would make us wait for a writer that never comes. */
    err = wb_path_kind(path) == WB_PATH_OTHER ? wb_fail(WB_E_CORRUPT, "%s is not a file", path)
                                              : wb_file_open(path, flags, file_out);
    wb_free(path);
    return err;
}

int wb_node_remove(struct wb_node *node, const char *name)
{
    struct wb_file file;
    int err = wb_node_open_named(node, name, WB_FILE_READ, &file);

    if (err == WB_E_NOTFOUND)
        return 0;
    if (err == 0)
        err = wb_file_lock(&file, false);
    /* If somebody removed it before us, what has that name now is another file, which was made meanwhile. */
    if (err == 0 && !wb_file_unlinked(&file))
        err = wb_path_unlink(file.path);
    wb_file_close(&file);
    return err;
}

int wb_node_sync_names(struct wb_node *node)
{
    int err = wb_node_probe(node);

    return err < 0 ? err : wb_path_sync_dir(node->pages);
}

struct file_walk {
    const struct wb_node *node;
    int (*each)(void *context, const struct wb_node_entry *entry);
    void *context;
};

static int walk_one(void *context, const struct wb_path_entry *found)
{
    const struct file_walk *walk = context;
    struct wb_node_entry entry = {.size = found->size};

    int len = snprintf(entry.name, sizeof entry.name, WB_NODE_DIR "/%s", found->name);
    if (found->kind != WB_PATH_FILE || len >= (int)sizeof entry.name || !is_name(wb_slice_str(entry.name)))
        return 0;
    char *path = wb_path_join(walk->node->dir, entry.name);
    if (!path)
        return WB_E_NOMEM;
    entry.disk_bytes = wb_path_disk_bytes(path);
    wb_free(path);
    return walk->each(walk->context, &entry);
}

int wb_node_each_file(struct wb_node *node, int (*each)(void *context, const struct wb_node_entry *entry),
                      void *context)
{
    struct file_walk walk = {node, each, context};
    int err = wb_node_probe(node);

    if (err < 0 || wb_path_kind(node->pages) == WB_PATH_NONE)
        return err;
    return wb_path_each(node->pages, walk_one, &walk);
}
