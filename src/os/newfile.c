/* newfile.c - writes a file under a temporary name and renames it at the end (newfile.h). */
#include "os/newfile.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"

#define WRITE_BYTES ((size_t)1 << 20)

static int refuse_existing(const struct wb_newfile *file)
{
    if (wb_path_kind(file->path) == WB_PATH_DIR)
        return wb_fail(WB_E_INVALID, "%s is a directory", file->path);
    if (!file->force && wb_path_kind(file->path) != WB_PATH_NONE)
        return wb_fail(WB_E_INVALID, "%s exists already; --force replaces it", file->path);
    return 0;
}

int wb_newfile_open(struct wb_newfile *file, const char *path, bool force)
{
    struct wb_buf name = WB_BUF_INIT;

    *file = WB_NEWFILE_INIT;
    file->path = path;
    file->force = force;
    int err = refuse_existing(file);
    if (err == 0)
        err = wb_buf_printf(&name, "%s.tmp", path);
    if (err == 0)
        err = wb_buf_terminate(&name);
    if (err == 0)
        err = wb_file_open(name.ptr, WB_FILE_WRITE | WB_FILE_CREATE, &file->file);
    /* Lock it before emptying it: another process may be writing this file just now. */
    if (err == 0)
        err = wb_file_lock(&file->file, false);
    if (err == 0) {
        file->temporary = wb_buf_take(&name).ptr;
        err = wb_file_truncate(&file->file, 0);
    }
    wb_buf_release(&name);
    return err;
}

/* Moves the bytes that wait to the file. */
static int write_waiting(struct wb_newfile *file)
{
    int err = wb_file_write_at(&file->file, file->offset, file->waiting.ptr, file->waiting.len);

    file->offset += file->waiting.len;
    wb_buf_clear(&file->waiting);
    return err;
}

int wb_newfile_write(struct wb_newfile *file, const void *bytes, size_t len)
{
    int err = wb_buf_append(&file->waiting, bytes, len);

    return err == 0 && file->waiting.len >= WRITE_BYTES ? write_waiting(file) : err;
}

int wb_newfile_finish(struct wb_newfile *file)
{
    int err = file->waiting.len ? write_waiting(file) : 0;

    if (err == 0)
        err = wb_file_sync(&file->file);
    if (err == 0)
        err = refuse_existing(file);
    if (err == 0)
        err = wb_path_rename(file->temporary, file->path);
    if (err < 0)
        return err;
    wb_free(file->temporary);
    file->temporary = NULL;
    return wb_path_sync_parent(file->path);
}

void wb_newfile_close(struct wb_newfile *file)
{
    struct wb_error_copy copy;

    wb_file_close(&file->file);
    if (file->temporary) {
        wb_error_save(0, &copy);
        wb_path_unlink(file->temporary);
        wb_error_restore(&copy);
    }
    wb_free(file->temporary);
    wb_buf_release(&file->waiting);
    *file = WB_NEWFILE_INIT;
}
