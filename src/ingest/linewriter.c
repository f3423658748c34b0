/*
 * linewriter.c - writes plain or gzip'd files of lines. It never looks at what a line says.
 *
 *   bytes -> [text] -> deflate -> [packed] -> NAME.tmp -> rename
 */
#include "ingest/linewriter.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/newfile.h"

#include <limits.h>
#include <zlib.h>

enum {
    PACKED_BYTES = 256 << 10,
    TEXT_BYTES = 256 << 10,
    GZIP_WINDOW = 15 + 16, /* zlib's way to ask for gzip */
    GZIP_LEVEL = 6,
};

struct wb_linewriter {
    struct wb_newfile file;
    char *path;
    bool gzip;
    z_stream z;
    struct wb_buf text, packed; /* what waits to be deflated; what was deflated */
};

int wb_linewriter_create(const char *path, bool force, struct wb_linewriter **writer_out)
{
    struct wb_linewriter *w = wb_alloc_zero(1, sizeof *w);
    size_t len = strlen(path);
    int err = 0;

    *writer_out = NULL;
    if (!w)
        return WB_E_NOMEM;
    w->file = WB_NEWFILE_INIT;
    w->path = wb_strdup(path);
    if (!w->path)
        err = WB_E_NOMEM;
    if (err == 0 && len > 3 && strcmp(path + len - 3, ".gz") == 0) {
        if (deflateInit2(&w->z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
            err = wb_fail_nomem();
        w->gzip = err == 0;
    }
    if (err == 0)
        err = wb_newfile_open(&w->file, w->path, force);
    if (err < 0) {
        wb_linewriter_abandon(w);
        return err;
    }
    *writer_out = w;
    return 0;
}

/* Deflates everything in text; with last, also the end of the gzip'd data. */
static int pack_text(struct wb_linewriter *w, bool last)
{
    int got = Z_OK, err = wb_buf_reserve(&w->packed, PACKED_BYTES);

    WB_CHECK(w->text.len <= UINT_MAX);
    w->z.next_in = (Bytef *)w->text.ptr;
    w->z.avail_in = (uInt)w->text.len;
    do {
        if (err < 0)
            return err;
        w->z.next_out = (Bytef *)w->packed.ptr;
        w->z.avail_out = PACKED_BYTES;
        got = deflate(&w->z, last ? Z_FINISH : Z_NO_FLUSH);
        err = wb_newfile_write(&w->file, w->packed.ptr, PACKED_BYTES - w->z.avail_out);
    } while (err == 0 && (w->z.avail_in || (last && got != Z_STREAM_END)));
    wb_buf_clear(&w->text);
    return err;
}

int wb_linewriter_append(struct wb_linewriter *w, const void *bytes, size_t len)
{
    if (!w->gzip)
        return wb_newfile_write(&w->file, bytes, len);
    int err = wb_buf_append(&w->text, bytes, len);
    return err == 0 && w->text.len >= TEXT_BYTES ? pack_text(w, false) : err;
}

int wb_linewriter_finish(struct wb_linewriter *w)
{
    int err = w->gzip ? pack_text(w, true) : 0;

    if (err == 0)
        err = wb_newfile_finish(&w->file);
    wb_linewriter_abandon(w); /* what is complete has its name, and stays */
    return err;
}

void wb_linewriter_abandon(struct wb_linewriter *w)
{
    if (!w)
        return;
    if (w->gzip)
        deflateEnd(&w->z);
    wb_newfile_close(&w->file);
    wb_buf_release(&w->text);
    wb_buf_release(&w->packed);
    wb_free(w->path);
    wb_free(w);
}
