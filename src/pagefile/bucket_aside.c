/* bucket_aside.c - copies buckets aside (bucket_aside.h). It changes nothing in bucket files. */
#include "pagefile/bucket_aside.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

int wb_bucket_aside_open(struct wb_node *node, const uint8_t *repo_id, const struct wb_catalog_segment *row,
                         struct wb_bucket_aside *aside_out)
{
    *aside_out = (struct wb_bucket_aside){.looked_at = row->logical_end};
    int err = wb_bucket_file_open(node, repo_id, row, false, &aside_out->file);
    if (err < 0)
        return err;
    wb_bucket_file_header(&aside_out->file, repo_id, aside_out->header);
    wb_bucket_doubles_header(&aside_out->file, aside_out->doubles);
    return 0;
}

void wb_bucket_aside_close(struct wb_bucket_aside *aside)
{
    wb_bucket_file_close(&aside->file);
    wb_vec_release(&aside->copies);
}

/* ---- copying -------------------------------------------------------------------------------------------------- */

/* Where the copy of a bucket is, or would be, among the copies. */
static size_t place_of(const struct wb_bucket_aside *aside, uint64_t number)
{
    size_t low = 0, high = aside->copies.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (aside->copies.items[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Copies a bucket, whose copy is, or comes, at this place. */
static int copy_bucket(struct wb_bucket_aside *aside, uint64_t number, size_t at, bool alone,
                       struct wb_bucket_room *room, char *bytes)
{
    bool known = at < aside->copies.count && aside->copies.items[at].number == number;
    uint64_t stamp, to = known ? aside->copies.items[at].at : room->end;
    int err = wb_bucket_read_raw(&aside->file, number, bytes, &stamp);

    if (err == 0 && stamp == 0 && !alone) { /* it may be being written */
        aside->whole = false;
        return 0;
    }
    if (err == 0)
        err = wb_file_write_at(&room->file, to, bytes, aside->file.bucket_bytes);
    if (err == 0 && !known)
        err = wb_vec_reserve(&aside->copies, aside->copies.count + 1);
    if (err < 0)
        return err;
    if (!known) {
        struct wb_bucket_copied *items = aside->copies.items;
        memmove(&items[at + 1], &items[at], (aside->copies.count++ - at) * sizeof *items);
        room->end += aside->file.bucket_bytes;
    }
    aside->copies.items[at] = (struct wb_bucket_copied){number, stamp, to};
    room->copied++;
    return 0;
}

int wb_bucket_aside_copy(struct wb_bucket_aside *aside, const struct wb_catalog_segment *row, bool alone,
                         struct wb_bucket_room *room)
{
    char *bytes = wb_alloc(aside->file.bucket_bytes);
    int err = bytes ? 0 : WB_E_NOMEM;

    WB_CHECK(aside->file.number == row->number && aside->file.revision == row->revision);
    if (err == 0 && alone && aside->whole && aside->looked_at == row->logical_end) {
        wb_free(bytes); /* nobody has committed a sweep since, and settled() says that none is half done */
        return 0;
    }
    aside->looked_at = row->logical_end;
    aside->whole = true;
    for (uint64_t number = 0; number < aside->file.count && err == 0; number++) {
        uint64_t stamp;
        size_t at = place_of(aside, number);
        bool known = at < aside->copies.count && aside->copies.items[at].number == number;
        err = wb_bucket_read_stamp(&aside->file, number, &stamp);
        bool wanted = known || stamp == 0 || stamp > aside->since_stamp;
        if (err == 0 && wanted && !(known && stamp && aside->copies.items[at].stamp == stamp))
            err = copy_bucket(aside, number, at, alone, room, bytes);
    }
    wb_free(bytes);
    return err;
}

int wb_bucket_aside_settled(const struct wb_bucket_aside *aside, const struct wb_catalog_segment *row,
                            bool *settled_out)
{
    struct wb_bucket_swept swept;
    int err = wb_bucket_swept_read(&aside->file, row->logical_end, &swept);

    *settled_out = err == 0 && swept.stamp <= row->logical_end && !aside->file.headless;
    wb_bucket_swept_release(&swept);
    return err == WB_E_CORRUPT ? 0 : err;
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

/* Reads a part of one bucket. */
static int read_copy(const struct wb_bucket_aside *aside, const struct wb_bucket_room *room, uint64_t number,
                     uint64_t from, size_t len, char *bytes_out)
{
    size_t at = place_of(aside, number);

    if (at == aside->copies.count || aside->copies.items[at].number != number)
        return wb_fail(WB_E_INVALID, "bucket %llu of %s was carried before", (unsigned long long)number,
                       aside->file.file.path);
    return wb_file_read_exact(&room->file, aside->copies.items[at].at + from, bytes_out, len);
}

int wb_bucket_aside_read(const struct wb_bucket_aside *aside, const struct wb_bucket_room *room, uint64_t offset,
                         size_t len, char *bytes_out)
{
    const struct wb_bucket_file *file = &aside->file;
    uint64_t extents_at = wb_bucket_extents_at(file);
    int err = 0;

    for (size_t part; len > 0 && err == 0; offset += part, bytes_out += part, len -= part) {
        uint64_t end, from = offset - WB_BUCKET_FILE_HEADER_BYTES;
        if (offset < WB_BUCKET_FILE_HEADER_BYTES)
            end = WB_BUCKET_FILE_HEADER_BYTES;
        else
            end = offset < extents_at ? wb_bucket_at(file, from / file->bucket_bytes + 1) : offset + len;
        part = len < end - offset ? len : (size_t)(end - offset);
        if (offset < WB_BUCKET_FILE_HEADER_BYTES)
            memcpy(bytes_out, aside->header + offset, part);
        else if (offset < extents_at)
            err = read_copy(aside, room, from / file->bucket_bytes, from % file->bucket_bytes, part, bytes_out);
        else /* extents are never changed */
            err = wb_node_file_read_exact(&file->file, offset, bytes_out, part);
    }
    return err;
}

int wb_bucket_aside_each(const struct wb_bucket_aside *aside, uint64_t end, uint64_t range_max,
                         int (*each)(void *context, uint64_t offset, uint64_t len), void *context)
{
    const struct wb_bucket_file *file = &aside->file;
    bool before = aside->since_end > 0;
    int err = before ? 0 : each(context, 0, WB_BUCKET_FILE_HEADER_BYTES);

    for (size_t i = 0; i < aside->copies.count && err == 0; i++)
        err = each(context, wb_bucket_at(file, aside->copies.items[i].number), file->bucket_bytes);
    for (uint64_t at = before ? aside->since_end : wb_bucket_extents_at(file); at < end && err == 0; at += range_max)
        err = each(context, at, end - at < range_max ? end - at : range_max);
    return err;
}
