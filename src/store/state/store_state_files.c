/*
 * store_state_files.c - the files of a state (store_state.h): what they are called in a copy, and reading them from any
 * number of threads.
 *
 * Files are opened when they are first read, and some of them stay open. The state is held, so no file of it goes
 * before it is let go; what is appended to a file meanwhile is behind the bytes that belong to the state.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "store/state/store_state_own.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- names ---------------------------------------------------------------------------------------------------- */

void wb_state_node_dir(const struct wb_catalog_node *row, char dir_out[WB_STATE_NODE_MAX])
{
    bool own = row->inside && strcmp(row->dir, ".") == 0;

    WB_CHECK(row->number > 0);
    snprintf(dir_out, WB_STATE_NODE_MAX, own ? "" : "node%u", row->number);
}

/* The directory of the node with a number; "" also if there is only the repository's own. */
static void node_dir(const struct wb_state_part *part, uint32_t number, char dir_out[WB_STATE_NODE_MAX])
{
    const struct wb_known_node *known = part->nodes.items.count ? wb_nodes_known(&part->nodes, number) : NULL;

    dir_out[0] = '\0';
    if (known)
        wb_state_node_dir(&known->row, dir_out);
}

/* ---- the list ------------------------------------------------------------------------------------------------- */

/* Adds a file under the name that it has on its node; it is not changed by the caller any more. */
static int add_named(struct wb_store_state *state, struct wb_state_file file, uint32_t node)
{
    char dir[WB_STATE_NODE_MAX], name[WB_STATE_NAME_MAX];

    node_dir(file.part, node, dir);
    snprintf(name, sizeof name, "%s%s%s%s", file.part->prefix, dir, dir[0] ? "/" : "", file.node_name);
    file.name = wb_strdup(name);
    int err = file.name ? wb_vec_push(&state->files, file) : WB_E_NOMEM;
    if (err < 0)
        wb_free(file.name);
    return err;
}

/* A bucket file, and its double-write file, which is empty in a copy. */
static int add_buckets(struct wb_store_state *state, const struct wb_state_part *part,
                       const struct wb_catalog_segment *row)
{
    const struct wb_bucket_aside *aside = wb_state_aside(part, row);
    struct wb_state_file file = {.part = part, .aside = aside};

    WB_CHECK(aside != NULL);
    uint64_t extents_at = wb_bucket_extents_at(&aside->file);
    file.bytes = row->bytes > extents_at ? row->bytes : extents_at;
    part->kind->name(row->number, row->revision, file.node_name);
    int err = add_named(state, file, row->node);
    if (err < 0)
        return err;
    file = (struct wb_state_file){.part = part, .memory = aside->doubles, .bytes = sizeof aside->doubles};
    wb_bucket_doubles_name(row->number, row->revision, file.node_name);
    return add_named(state, file, row->node);
}

static int add_file(struct wb_store_state *state, struct wb_state_part *part, const struct wb_catalog_segment *row)
{
    struct wb_state_file file = {.part = part, .bytes = row->bytes};
    int err = wb_nodes_find(&part->nodes, row->node, &file.node);

    if (err < 0)
        return err;
    part->kind->name(row->number, row->revision, file.node_name);
    return add_named(state, file, row->node);
}

int wb_state_files_add(struct wb_store_state *state, struct wb_state_part *part)
{
    int err = 0;

    WB_CHECK(part->txn.kind == WB_CATALOG_TXN_HELD);
    for (size_t i = 0; i < part->rows.count && err == 0; i++)
        err = part->kind->in_place ? add_buckets(state, part, &part->rows.items[i])
                                   : add_file(state, part, &part->rows.items[i]);
    return err;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct wb_state_file *)a)->name, ((const struct wb_state_file *)b)->name);
}

void wb_state_files_sort(struct wb_store_state *state)
{
    if (state->files.count)
        qsort(state->files.items, state->files.count, sizeof *state->files.items, compare_names);
}

void wb_state_files_release(struct wb_store_state *state)
{
    for (size_t i = 0; i < state->files.count; i++) {
        struct wb_state_file *file = &state->files.items[i];
        WB_CHECK(file->readers == 0);
        wb_node_file_close(&file->file);
        wb_free(file->name);
    }
    wb_vec_release(&state->files);
}

int wb_store_state_each_file(struct wb_store_state *state, wb_store_each_file each, void *context)
{
    int err = 0;

    WB_CHECK(state->magic == WB_STATE_MAGIC);
    for (size_t i = 0; i < state->files.count && err == 0; i++) {
        const struct wb_state_file *file = &state->files.items[i];
        struct wb_store_state_file passed = {file->name, file->bytes, file->aside != NULL};
        err = each(context, &passed);
    }
    return err;
}

/* Finds a file by its name. WB_E_NOTFOUND. */
static int find_file(struct wb_store_state *state, const char *name, struct wb_state_file **file_out)
{
    struct wb_state_file wanted = {.name = (char *)(uintptr_t)name};

    WB_CHECK(state->magic == WB_STATE_MAGIC);
    *file_out = state->files.count ? bsearch(&wanted, state->files.items, state->files.count,
                                             sizeof *state->files.items, compare_names)
                                   : NULL;
    return *file_out ? 0 : wb_fail(WB_E_NOTFOUND, "%s does not belong to this state", name);
}

int wb_store_state_each_changed(struct wb_store_state *state, const char *name, wb_store_each_range each, void *context)
{
    struct wb_state_file *file;
    int err = find_file(state, name, &file);

    if (err == 0 && file->aside)
        return wb_bucket_aside_each(file->aside, file->bytes, WB_STATE_RANGE_MAX, each, context);
    for (uint64_t at = 0; err == 0 && at < file->bytes; at += WB_STATE_RANGE_MAX)
        err = each(context, at, file->bytes - at < WB_STATE_RANGE_MAX ? file->bytes - at : WB_STATE_RANGE_MAX);
    return err;
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

/* Closes a file that nobody is reading, if there are too many open. The caller has the mutex. */
static void make_room(struct wb_store_state *state)
{
    for (size_t i = 0; i < state->files.count && state->open >= WB_STATE_OPEN_MAX; i++) {
        struct wb_state_file *file = &state->files.items[i];
        if (!file->file.node || file->readers)
            continue;
        wb_node_file_close(&file->file);
        state->open--;
    }
}

/* Opens a file for one reader. */
static int open_file(struct wb_store_state *state, struct wb_state_file *file)
{
    int err = 0;

    pthread_mutex_lock(&state->mutex);
    if (!file->file.node) {
        make_room(state);
        err = wb_node_file_open(file->node, file->node_name, false, &file->file);
        if (err == WB_E_NOTFOUND)
            err = wb_fail(WB_E_CORRUPT, "%s: %s is missing", wb_node_label(file->node), file->node_name);
        state->open += err == 0;
    }
    file->readers += err == 0;
    pthread_mutex_unlock(&state->mutex);
    return err;
}

int wb_store_state_read(struct wb_store_state *state, const char *name, uint64_t offset, size_t len, void *bytes_out)
{
    struct wb_state_file *file;
    int err = find_file(state, name, &file);

    if (err == 0 && (len > file->bytes || offset > file->bytes - len))
        err = wb_fail(WB_E_INVALID, "%s has only %llu bytes in this state", name, (unsigned long long)file->bytes);
    if (err == 0 && file->memory)
        memcpy(bytes_out, file->memory + offset, len);
    if (err == 0 && file->aside)
        err = wb_bucket_aside_read(file->aside, &state->room, offset, len, bytes_out);
    if (err < 0 || file->memory || file->aside)
        return err;
    err = open_file(state, file);
    if (err < 0)
        return err;
    err = wb_node_file_read_exact(&file->file, offset, bytes_out, len);
    pthread_mutex_lock(&state->mutex);
    file->readers--;
    pthread_mutex_unlock(&state->mutex);
    return err;
}
