/* node_file.c - files of nodes (node_file.h). */
#include "place/node_file.h"
#include "base/check.h"
#include "base/error.h"
#include "place/node_inside.h"
#include "os/path.h"

#include <string.h>

/* ---- opening and claiming -------------------------------------------------------------------- */

static struct wb_node_file file_of(struct wb_node *node, const char *name, struct wb_file opened)
{
    wb_node_hold(node);
    return (struct wb_node_file){
        .node = node, .file = opened, .path = opened.path, .name = opened.path + strlen(opened.path) - strlen(name)};
}

int wb_node_file_open(struct wb_node *node, const char *name, bool write, struct wb_node_file *file_out)
{
    struct wb_file opened;
    int err = wb_node_open_named(node, name, write ? WB_FILE_WRITE : WB_FILE_READ, &opened);

    *file_out = WB_NODE_FILE_INIT;
    if (err < 0)
        return err;
    *file_out = file_of(node, name, opened);
    file_out->writable = write;
    return 0;
}

/* Makes a file and locks it. */
static int create_locked(struct wb_node *node, const char *name, struct wb_file *file_out)
{
    /* Before we have the lock, another process may take the file for an orphan and remove it: then we start again. */
    for (;;) {
        int err = wb_node_open_named(node, name, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW, file_out);
        if (err < 0)
            return err;
        err = wb_file_lock(file_out, true);
        if (err == 0 && !wb_file_unlinked(file_out))
            return 0;
        wb_file_close(file_out);
        if (err < 0)
            return err;
    }
}

int wb_node_file_create(struct wb_node *node, const char *name, struct wb_node_file *file_out)
{
    struct wb_file made;
    int err = create_locked(node, name, &made);

    *file_out = WB_NODE_FILE_INIT;
    if (err < 0)
        return err;
    *file_out = file_of(node, name, made);
    file_out->writable = file_out->claimed = true;
    return 0;
}

void wb_node_file_close(struct wb_node_file *file)
{
    if (file->node) {
        wb_file_close(&file->file);
        wb_node_close(file->node);
    }
    *file = WB_NODE_FILE_INIT;
}

int wb_node_file_claim(struct wb_node_file *file)
{
    WB_CHECK(file->node != NULL);
    int err = wb_file_lock(&file->file, false); /* locking what we have locked already does nothing */
    if (err == 0 && wb_file_unlinked(&file->file)) {
        wb_file_unlock(&file->file);
        err = wb_fail(WB_E_NOTFOUND, "%s: no such file", file->path);
    }
    file->claimed = err == 0;
    return err;
}

void wb_node_file_release(struct wb_node_file *file)
{
    WB_CHECK(file->node != NULL);
    if (file->claimed)
        wb_file_unlock(&file->file);
    file->claimed = false;
}

/* ---- using ----------------------------------------------------------------------------------- */

int wb_node_file_read_at(const struct wb_node_file *file, uint64_t offset, void *bytes_out, size_t len, size_t *got_out)
{
    WB_CHECK(file->node != NULL);
    return wb_file_read_at(&file->file, offset, bytes_out, len, got_out);
}

int wb_node_file_read_exact(const struct wb_node_file *file, uint64_t offset, void *bytes_out, size_t len)
{
    WB_CHECK(file->node != NULL);
    return wb_file_read_exact(&file->file, offset, bytes_out, len);
}

/* Two who write to the same file would destroy what the other has written. */
static void check_claim(const struct wb_node_file *file)
{
    WB_CHECK(file->node != NULL);
    WB_CHECK(file->claimed);
    WB_CHECK(file->writable);
}

int wb_node_file_write_at(const struct wb_node_file *file, uint64_t offset, const void *bytes, size_t len)
{
    check_claim(file);
    return wb_file_write_at(&file->file, offset, bytes, len);
}

int wb_node_file_sync(const struct wb_node_file *file)
{
    WB_CHECK(file->node != NULL);
    return wb_file_sync(&file->file);
}

int wb_node_file_truncate(const struct wb_node_file *file, uint64_t size)
{
    check_claim(file);
    return wb_file_truncate(&file->file, size);
}

int wb_node_file_size(const struct wb_node_file *file, uint64_t *size_out)
{
    WB_CHECK(file->node != NULL);
    return wb_file_size(&file->file, size_out);
}

int wb_node_file_remove(const struct wb_node_file *file)
{
    WB_CHECK(file->node != NULL);
    if (wb_file_unlinked(&file->file))
        return 0;
    if (!file->claimed) /* then nobody may have claimed it */
        return wb_node_remove(file->node, file->name);
    int err = wb_node_probe(file->node);
    return err < 0 ? err : wb_path_unlink(file->path);
}

void wb_node_file_hint(const struct wb_node_file *file, enum wb_node_hint hint, uint64_t offset, uint64_t len)
{
    WB_CHECK(file->node != NULL);
    if (hint == WB_NODE_SEQUENTIAL)
        wb_file_sequential(&file->file);
    else
        wb_file_write_back(&file->file, offset, len);
}
