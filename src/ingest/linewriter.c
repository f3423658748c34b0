/*
 * linewriter.c - writes plain or gzip'd files of lines. It never looks at what a line says.
 *
 *   bytes -> [text] -> deflate -> [packed] -> NAME.tmp -> rename
 */
#include "ingest/linewriter.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/path.h"

#include <limits.h>
#include <zlib.h>

enum {
    PACKED_BYTES = 256 << 10,
    TEXT_BYTES = 256 << 10,
    GZIP_WINDOW = 15 + 16, /* zlib's way to ask for gzip */
    GZIP_LEVEL = 6,
};

struct wb_linewriter {
    struct wb_file file;        /* NAME.tmp */
    char *path;                 /* NAME */
    uint64_t offset;            /* where the next bytes go */
    bool force, gzip;
    z_stream z;
    struct wb_buf text, packed; /* what waits to be deflated; what was deflated */
};

/* Looked at twice: before the work starts, and again just before the rename. */
static int refuse_existing(const char *path, bool force)
{
    if (wb_path_kind(path) == WB_PATH_DIR)
        return wb_fail(WB_E_INVALID, "%s is a directory", path);
    if (!force && wb_path_kind(path) != WB_PATH_NONE)
        return wb_fail(WB_E_INVALID, "%s exists already; --force replaces it", path);
    return 0;
}

static int open_temporary(struct wb_linewriter *w)
{
    struct wb_buf name = WB_BUF_INIT;
    int err = wb_buf_printf(&name, "%s.tmp", w->path);

    if (err == 0)
        err = wb_buf_terminate(&name);
    if (err == 0)
        err = wb_file_open(name.ptr, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_TRUNCATE, &w->file);
    wb_buf_release(&name);
    return err;
}

int wb_linewriter_create(const char *path, bool force, struct wb_linewriter **writer_out)
{
    struct wb_linewriter *w = NULL;
    size_t len = strlen(path);
    int err = refuse_existing(path, force);

    *writer_out = NULL;
    if (err < 0)
        return err;
    w = wb_alloc_zero(1, sizeof *w);
    if (!w)
        return WB_E_NOMEM;
    w->file = WB_FILE_INIT;
    w->force = force;
    w->path = wb_strdup(path);
    if (!w->path)
        err = WB_E_NOMEM;
    if (err == 0 && len > 3 && strcmp(path + len - 3, ".gz") == 0) {
        if (deflateInit2(&w->z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
            err = wb_fail_nomem();
        w->gzip = err == 0;
    }
    if (err == 0)
        err = open_temporary(w);
    if (err < 0) {
        wb_linewriter_abandon(w);
        return err;
    }
    *writer_out = w;
    return 0;
}

static int write_out(struct wb_linewriter *w, const char *bytes, size_t len)
{
    int err = len ? wb_file_write_at(&w->file, w->offset, bytes, len) : 0;

    if (err == 0)
        w->offset += len;
    return err;
}

/* Writes everything in text to the file; with last, also the end of the gzip'd data. */
static int flush_text(struct wb_linewriter *w, bool last)
{
    int err = 0, got = Z_OK;

    if (!w->gzip) {
        err = write_out(w, w->text.ptr, w->text.len);
        wb_buf_clear(&w->text);
        return err;
    }
    err = wb_buf_reserve(&w->packed, PACKED_BYTES);
    WB_CHECK(w->text.len <= UINT_MAX);
    w->z.next_in = (Bytef *)w->text.ptr;
    w->z.avail_in = (uInt)w->text.len;
    do {
        if (err < 0)
            return err;
        w->z.next_out = (Bytef *)w->packed.ptr;
        w->z.avail_out = PACKED_BYTES;
        got = deflate(&w->z, last ? Z_FINISH : Z_NO_FLUSH);
        err = write_out(w, w->packed.ptr, PACKED_BYTES - w->z.avail_out);
    } while (err == 0 && (w->z.avail_in || (last && got != Z_STREAM_END)));
    wb_buf_clear(&w->text);
    return err;
}

int wb_linewriter_append(struct wb_linewriter *w, const void *bytes, size_t len)
{
    int err = wb_buf_append(&w->text, bytes, len);

    return err == 0 && w->text.len >= TEXT_BYTES ? flush_text(w, false) : err;
}

static void free_writer(struct wb_linewriter *w)
{
    if (w->gzip)
        deflateEnd(&w->z);
    wb_file_close(&w->file);
    wb_buf_release(&w->text);
    wb_buf_release(&w->packed);
    wb_free(w->path);
    wb_free(w);
}

int wb_linewriter_finish(struct wb_linewriter *w)
{
    int err = flush_text(w, true);

    if (err == 0)
        err = wb_file_sync(&w->file);
    if (err == 0)
        err = refuse_existing(w->path, w->force);
    if (err == 0)
        err = wb_path_rename(w->file.path, w->path);
    if (err < 0) {
        wb_linewriter_abandon(w);
        return err;
    }
    free_writer(w);
    return 0;
}

void wb_linewriter_abandon(struct wb_linewriter *w)
{
    if (!w)
        return;
    if (w->file.path)
        wb_path_unlink(w->file.path);
    free_writer(w);
}
