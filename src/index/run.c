/*
 * run.c - writes runs through a buffer, and reads them through a mapping.
 *
 * A run is ours from beginning to end: nobody else sees the file. So what is read is only checked with assertions.
 */
#include "index/run.h"
#include "base/bytes.h"
#include "os/mapping.h"
#include "os/nameless.h"

enum {
    BUFFER_BYTES = 1 << 20,
    PLACE_EVERY = 256 << 10, /* bytes between two places that are remembered */
};

int wb_run_begin(const char *temp_dir, struct wb_run *run_out, struct wb_run_writer *writer_out)
{
    *run_out = (struct wb_run){.file = WB_FILE_INIT};
    *writer_out = (struct wb_run_writer){.run = run_out};
    int err = wb_nameless_open(temp_dir, &run_out->file);
    return err < 0 ? err : wb_buf_reserve(&writer_out->buffer, BUFFER_BYTES);
}

static int write_buffer(struct wb_run_writer *writer)
{
    int err = wb_file_write_at(&writer->run->file, writer->written, writer->buffer.ptr, writer->buffer.len);

    writer->written += writer->buffer.len;
    wb_buf_clear(&writer->buffer);
    return err;
}

int wb_run_room(struct wb_run_writer *writer, size_t bytes, char **room_out)
{
    int err = 0;

    if (writer->buffer.len && writer->buffer.len + bytes > BUFFER_BYTES)
        err = write_buffer(writer);
    if (err == 0)
        err = wb_buf_reserve(&writer->buffer, writer->buffer.len + bytes);
    *room_out = writer->buffer.ptr + writer->buffer.len;
    return err;
}

void wb_run_took(struct wb_run_writer *writer, size_t bytes)
{
    writer->buffer.len += bytes;
    WB_CHECK(writer->buffer.len <= writer->buffer.cap);
}

int wb_run_term(struct wb_run_writer *writer, struct wb_slice key, uint64_t count, uint64_t bytes)
{
    struct wb_run *run = writer->run;
    uint64_t offset = writer->written + writer->buffer.len;
    char *room;

    WB_CHECK(count > 0 && bytes > 0);
    WB_CHECK(key.len >= WB_TERM_TAIL && !run->map);
    if (run->places.count == 0 || offset - writer->last_place >= PLACE_EVERY) {
        struct wb_slice copy;
        int err = wb_arena_copy(&run->keys, key, &copy);
        if (err == 0)
            err = wb_vec_push(&run->places, (struct wb_run_place){copy, offset});
        if (err < 0)
            return err;
        writer->last_place = offset;
    }
    int err = wb_run_room(writer, 3 * WB_VARINT_MAX + key.len, &room);
    if (err < 0)
        return err;
    char *p = room + wb_put_varint(room, key.len);
    memcpy(p, key.ptr, key.len);
    p += key.len;
    p += wb_put_varint(p, count);
    p += wb_put_varint(p, bytes);
    wb_run_took(writer, (size_t)(p - room));
    return 0;
}

int wb_run_finish(struct wb_run_writer *writer)
{
    struct wb_run *run = writer->run;

    WB_CHECK(!run->map);
    int err = writer->buffer.len ? write_buffer(writer) : 0;
    wb_buf_release(&writer->buffer);
    run->bytes = writer->written;
    if (err == 0 && run->bytes)
        err = wb_mapping_open(&run->file, run->bytes, &run->map);
    return err;
}

void wb_run_release(struct wb_run *run)
{
    if (run->map)
        wb_mapping_close(run->map, run->bytes);
    wb_file_close(&run->file);
    wb_arena_release(&run->keys);
    wb_vec_release(&run->places);
    *run = (struct wb_run){.file = WB_FILE_INIT};
}

/* ---- reading ----------------------------------------------------------------------------------- */

int wb_run_next(struct wb_run_cursor *cursor)
{
    uint64_t len, bytes;

    if (cursor->at == cursor->end) {
        cursor->key = WB_SLICE_EMPTY;
        return 0;
    }
    bool ok = wb_get_varint(&cursor->at, cursor->end, &len) && len <= (uint64_t)(cursor->end - cursor->at);
    WB_CHECK(ok);
    cursor->key = wb_slice(cursor->at, len);
    cursor->at += len;
    ok = wb_get_varint(&cursor->at, cursor->end, &cursor->count) && wb_get_varint(&cursor->at, cursor->end, &bytes) &&
         bytes <= (uint64_t)(cursor->end - cursor->at);
    WB_CHECK(ok);
    cursor->postings = wb_slice(cursor->at, bytes);
    cursor->at += bytes;
    return 1;
}

void wb_run_seek(const struct wb_run *run, struct wb_slice from, struct wb_run_cursor *cursor_out)
{
    size_t low = 0, high = run->places.count; /* the last place whose key is not greater than from */

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (wb_slice_compare(run->places.items[middle].key, from) <= 0)
            low = middle;
        else
            high = middle;
    }
    const char *map = run->map;
    WB_CHECK(map || run->bytes == 0); /* it was finished */
    uint64_t begin = run->places.count ? run->places.items[low].offset : 0;
    *cursor_out = (struct wb_run_cursor){.at = map + begin, .end = map + run->bytes};
    while (wb_run_next(cursor_out) && wb_slice_compare(cursor_out->key, from) < 0)
        ;
}
