/* graph_bytes.c - reads a plain or gzip'd file piece by piece. */
#include "graph/graph_bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"

enum {
    PIECE_BYTES = 256 << 10,
    GZIP_WINDOW_BITS = 15 + 16, /* zlib's way to ask for gzip */
};

/* Reads the next piece of the file into packed, which is empty at the end of the file. */
static int read_piece(struct graph_bytes *b)
{
    size_t got = 0;
    int err = wb_file_read_at(&b->file, b->done, b->packed.ptr, PIECE_BYTES, &got);

    b->packed.len = got;
    b->done += got;
    b->z.next_in = (Bytef *)b->packed.ptr;
    b->z.avail_in = (uInt)got;
    return err;
}

static int begin_gzip(struct graph_bytes *b)
{
    b->z.zalloc = wb_alloc_hook;
    b->z.zfree = wb_free_hook;
    if (inflateInit2(&b->z, GZIP_WINDOW_BITS) != Z_OK)
        return wb_fail_nomem();
    b->gzip = true;
    b->in_member = true;
    return wb_buf_reserve(&b->text, PIECE_BYTES);
}

int wb_graph_bytes_open(const char *path, struct graph_bytes *bytes_out)
{
    struct graph_bytes *b = bytes_out;

    *b = (struct graph_bytes){.file = WB_FILE_INIT};
    int err = wb_path_kind(path) == WB_PATH_DIR ? wb_fail(WB_E_INVALID, "%s is a directory", path) : 0;
    if (err == 0)
        err = wb_file_open(path, WB_FILE_READ, &b->file);
    if (err == 0)
        err = wb_file_size(&b->file, &b->size);
    if (err == 0)
        err = wb_buf_reserve(&b->packed, PIECE_BYTES);
    if (err < 0)
        return err;
    wb_file_sequential(&b->file);
    err = read_piece(b);
    if (err == 0 && b->packed.len >= 2 && memcmp(b->packed.ptr, "\x1f\x8b", 2) == 0)
        err = begin_gzip(b);
    return err;
}

void wb_graph_bytes_close(struct graph_bytes *b)
{
    if (b->gzip)
        inflateEnd(&b->z);
    wb_file_close(&b->file);
    wb_buf_release(&b->packed);
    wb_buf_release(&b->text);
}

static int damaged(const struct graph_bytes *b, const char *words)
{
    return wb_fail(WB_E_CORRUPT, "%s: the gzip'd data %s", b->file.path, words);
}

/* A gzip'd file may have several members, one after the other. */
static int inflate_piece(struct graph_bytes *b)
{
    int err = 0;

    b->text.len = 0;
    while (err == 0 && b->text.len == 0) {
        if (b->z.avail_in == 0)
            err = read_piece(b);
        if (err < 0)
            return err;
        if (b->z.avail_in == 0)
            return b->in_member ? damaged(b, "breaks off") : 0;
        if (!b->in_member && inflateReset(&b->z) != Z_OK)
            return damaged(b, "is wrong");
        b->in_member = true;
        b->z.next_out = (Bytef *)b->text.ptr;
        b->z.avail_out = PIECE_BYTES;
        int result = inflate(&b->z, Z_NO_FLUSH);
        if (result == Z_MEM_ERROR)
            return wb_fail_nomem();
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return damaged(b, "is wrong");
        b->in_member = result != Z_STREAM_END;
        b->text.len = PIECE_BYTES - b->z.avail_out;
    }
    return err;
}

int wb_graph_bytes_next(struct graph_bytes *b, struct wb_slice *text_out)
{
    int err = 0;

    *text_out = wb_slice("", 0);
    if (b->gzip) {
        err = inflate_piece(b);
        if (err == 0)
            *text_out = wb_buf_slice(&b->text);
        return err;
    }
    if (b->z.avail_in == 0)
        err = read_piece(b);
    if (err == 0)
        *text_out = wb_buf_slice(&b->packed);
    b->z.avail_in = 0; /* handed out */
    return err;
}
