/*
 * import_tree.c - the source that imports a tree of files as pages of a site.
 *
 *   DIR/a b/index.html, DIR at http://x.org/  ->  http://x.org/a%20b/
 *
 * The URL of a file is the URL of the tree followed by the file's path, with each name percent-encoded; index.html is
 * the page of its folder. It never follows symbolic links, and never goes more than DEPTH_MAX folders deep.
 */
#include "base/error.h"
#include "base/mem.h"
#include "ingest/import_source.h"
#include "os/file.h"
#include "os/path.h"

#include <stdio.h>

#define DEPTH_MAX 100

/* What a segment of a path may contain unescaped, beside letters and digits. */
#define PLAIN "-._~!$&'()*+,;=:@"

struct tree {
    struct wb_import_queue *queue;
    size_t body_max;
    const char *dir;     /* the folder being walked */
    struct wb_slice url; /* the URL of that folder, with a slash at the end */
    unsigned depth;
    struct wb_url parsed; /* these three: of the current file */
    struct wb_buf key, body;
};

static int walk(struct tree *tree);

static int push_error(struct tree *tree, const char *path, const char *message, bool fatal)
{
    return wb_import_source_push_error(tree->queue, path, 0, message, fatal, 0);
}

/* Reads the file into tree->body, or the part of it that is kept. */
static int read_body(struct tree *tree, const char *path, bool *cut_out)
{
    struct wb_file file = WB_FILE_INIT;
    uint64_t size = 0;
    size_t got = 0;

    *cut_out = false;
    wb_buf_clear(&tree->body);
    int err = wb_file_open(path, WB_FILE_READ, &file);
    if (err == 0)
        err = wb_file_size(&file, &size);
    if (err == 0 && size > tree->body_max) {
        *cut_out = true;
        size = tree->body_max;
    }
    if (err == 0)
        err = wb_buf_reserve(&tree->body, (size_t)size);
    if (err == 0 && size)
        err = wb_file_read_at(&file, 0, tree->body.ptr, (size_t)size, &got);
    tree->body.len = got;
    wb_file_close(&file);
    return err;
}

static int push_file(struct tree *tree, const char *path, const struct wb_path_entry *entry, struct wb_slice url)
{
    char message[80], future[WB_IMPORT_SOURCE_MESSAGE_MAX];
    bool cut = false;

    int err = read_body(tree, path, &cut);
    if (err == 0)
        err = wb_url_parse(url, NULL, &tree->parsed);
    if (err == 0)
        err = wb_url_key(&tree->parsed, &tree->key);
    if (err < 0)
        return err == WB_E_NOMEM ? err : push_error(tree, path, wb_error_message(), true);
    struct wb_page page = {
        .url = wb_url_href(&tree->parsed),
        .key = wb_buf_slice(&tree->key),
        .head = WB_SLICE_EMPTY,
        .type = wb_media_type_of_name(wb_slice_str(entry->name)),
        .charset = WB_SLICE_EMPTY,
        .body = wb_buf_slice(&tree->body),
        .body_bytes = tree->body.len,
        .time_ms = entry->mtime_ms,
        .status = 200,
        .kind = WB_PAGE_RESOURCE,
        .truncated = cut,
    };
    page.id = wb_pageid_of_key(page.key);
    atomic_fetch_add_explicit(&tree->queue->bytes_done, tree->body.len, memory_order_relaxed);
    bool ahead = wb_import_source_fix_time(&page, future);
    err = wb_import_source_push_page(tree->queue, &page, &tree->body, 1);
    if (err == 0 && ahead)
        err = push_error(tree, path, future, false);
    if (err == 0 && cut) {
        snprintf(message, sizeof message, "the file is longer than %zu bytes and was cut", tree->body_max);
        err = push_error(tree, path, message, false);
    }
    return err < 0 ? err : wb_import_source_push_file(tree->queue, 0);
}

static int walk_below(struct tree *tree, const char *path, struct wb_slice url)
{
    struct wb_slice url_before = tree->url;
    const char *dir_before = tree->dir;
    int err;

    if (tree->depth >= DEPTH_MAX)
        return push_error(tree, path, "the folder is nested too deep and was left out", true);
    tree->depth++;
    tree->dir = path;
    tree->url = url;
    err = walk(tree);
    tree->depth--;
    tree->dir = dir_before;
    tree->url = url_before;
    return err;
}

static int take_entry(void *context, const struct wb_path_entry *entry)
{
    struct tree *tree = context;
    struct wb_buf url = WB_BUF_INIT;
    char *path = NULL;
    int err = 0;

    if (entry->kind != WB_PATH_FILE && entry->kind != WB_PATH_DIR)
        return 0;
    path = wb_path_join(tree->dir, entry->name);
    if (!path)
        return WB_E_NOMEM;
    err = wb_buf_append_slice(&url, tree->url);
    if (err == 0 && !(entry->kind == WB_PATH_FILE && strcmp(entry->name, "index.html") == 0))
        err = wb_buf_append_escaped(&url, wb_slice_str(entry->name), PLAIN);
    if (err == 0 && entry->kind == WB_PATH_DIR)
        err = wb_buf_append_char(&url, '/');
    if (err == 0)
        err = entry->kind == WB_PATH_DIR ? walk_below(tree, path, wb_buf_slice(&url))
                                         : push_file(tree, path, entry, wb_buf_slice(&url));
    wb_buf_release(&url);
    wb_free(path);
    return err;
}

static int walk(struct tree *tree)
{
    int err = wb_path_each(tree->dir, take_entry, tree);

    /* A folder that cannot be read is reported and left out; only what ends the whole import is passed up. */
    if (err == 0 || err == WB_E_NOMEM || err == WB_E_STOPPED)
        return err;
    return push_error(tree, tree->dir, wb_error_message(), true);
}

int wb_import_tree_read(const struct wb_import_source *source, struct wb_import_queue *queue)
{
    struct tree tree = {.queue = queue, .body_max = source->body_max, .dir = source->dir, .url = source->dir_url,
                        .parsed = WB_URL_INIT};

    int err = walk(&tree);
    wb_url_release(&tree.parsed);
    wb_buf_release(&tree.key);
    wb_buf_release(&tree.body);
    return err;
}
