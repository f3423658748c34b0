/*
 * segment_walk.c - all blocks of a segment in the order they lie on disk, read in
 * large pieces. Where a block is damaged the walk says so once and looks for the
 * next place that holds a block header with a true checksum and the name of that place: a page may hold
 * the bytes of a block, but it does not know where it will lie.
 */
#include "base/check.h"
#include "base/error.h"
#include "store/segment.h"

#include <stdio.h>

enum { WINDOW_BYTES = 512 << 10 }; /* what the kernel copies stays in the processor's cache until it is decompressed */

void wb_segment_walk_init(struct wb_segment_walk *walk, const struct wb_segment *segment, uint64_t end)
{
    *walk = (struct wb_segment_walk){.segment = segment, .next = WB_SEGMENT_HEADER_BYTES, .end = end};
    wb_file_sequential(&segment->file);
}

void wb_segment_walk_release(struct wb_segment_walk *walk)
{
    wb_buf_release(&walk->window);
}

/* At least `need` bytes at `at` in the window (fewer only at the end); returns where they are. */
static int look(struct wb_segment_walk *walk, uint64_t at, size_t need, const char **bytes_out, size_t *have_out)
{
    uint64_t left = at < walk->end ? walk->end - at : 0;
    size_t got;
    int err;

    *bytes_out = NULL;
    *have_out = 0;
    if (need > left)
        need = (size_t)left;
    if (at < walk->window_at || at + need > walk->window_at + walk->window.len) {
        size_t want = need > WINDOW_BYTES ? need : left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
        wb_buf_clear(&walk->window);
        err = wb_buf_reserve(&walk->window, want);
        if (err == 0)
            err = wb_file_read_at(&walk->segment->file, at, walk->window.ptr, want, &got);
        if (err < 0)
            return err;
        walk->window_at = at;
        walk->window.len = got;
    }
    *bytes_out = walk->window.ptr + (at - walk->window_at);
    *have_out = (size_t)(walk->window_at + walk->window.len - at);
    return 0;
}

static bool lies_here(const struct wb_segment_walk *walk, const struct wb_block_head *head, uint64_t at)
{
    uint64_t place;

    return wb_segment_locate(walk->segment, head->logical, &place) == 0 && place == at;
}

/* Moves walk->next to the next header after a damaged place, or to the end. */
static int resynchronise(struct wb_segment_walk *walk)
{
    const char *bytes;
    size_t have;

    for (uint64_t at = walk->next + 1; at + WB_BLOCK_HEADER_BYTES <= walk->end;) {
        int err = look(walk, at, WB_BLOCK_HEADER_BYTES, &bytes, &have);
        if (err < 0)
            return err;
        if (have < WB_BLOCK_HEADER_BYTES)
            break;
        const char *found = memmem(bytes, have, "WBBK", 4);
        if (!found) {
            at += have - 3;
            continue;
        }
        struct wb_block_head head;
        at += (uint64_t)(found - bytes);
        err = look(walk, at, WB_BLOCK_HEADER_BYTES, &bytes, &have);
        if (err < 0)
            return err;
        if (have >= WB_BLOCK_HEADER_BYTES && wb_block_head_read(bytes, &head) == 0 && lies_here(walk, &head, at)) {
            walk->next = at;
            return 0;
        }
        at++;
    }
    walk->next = walk->end;
    return 0;
}

static int damaged(struct wb_segment_walk *walk, uint64_t at, int code)
{
    char why[WB_ERROR_MESSAGE_MAX];

    snprintf(why, sizeof why, "%s", wb_error_message());
    walk->error_at = at;
    int err = resynchronise(walk);
    if (err < 0)
        return err;
    return wb_fail(code, "%s at %llu: %s", walk->segment->file.path, (unsigned long long)at, why);
}

int wb_segment_walk_next(struct wb_segment_walk *walk, struct wb_block_head *head_out, const char **block_out, uint64_t *at_out)
{
    uint64_t at = walk->next;
    const char *bytes;
    size_t have;
    int err;

    *block_out = NULL;
    *at_out = at;
    *head_out = (struct wb_block_head){0};
    if (at >= walk->end)
        return 0;
    err = look(walk, at, WB_BLOCK_HEADER_BYTES, &bytes, &have);
    if (err < 0)
        return err;
    if (have < WB_BLOCK_HEADER_BYTES) {
        wb_fail(WB_E_CORRUPT, "the file ends here");
        return damaged(walk, at, WB_E_CORRUPT);
    }
    err = wb_block_head_read(bytes, head_out);
    if (err < 0)
        return damaged(walk, at, err);
    if (!lies_here(walk, head_out, at)) {
        wb_fail(WB_E_CORRUPT, "the block does not lie where its name says");
        return damaged(walk, at, WB_E_CORRUPT);
    }
    if (head_out->bytes > walk->end - at) {
        wb_fail(WB_E_CORRUPT, "the block does not end with its file");
        return damaged(walk, at, WB_E_CORRUPT);
    }
    err = look(walk, at, (size_t)head_out->bytes, &bytes, &have);
    if (err < 0)
        return err;
    if (have < head_out->bytes) {
        wb_fail(WB_E_CORRUPT, "the file ends inside the block");
        return damaged(walk, at, WB_E_CORRUPT);
    }
    err = wb_block_directory_check(head_out, bytes + WB_BLOCK_HEADER_BYTES);
    if (err < 0) {
        walk->error_at = at;
        walk->next = at + head_out->bytes; /* the header is sound: the next block is where it says */
        char why[WB_ERROR_MESSAGE_MAX];
        snprintf(why, sizeof why, "%s", wb_error_message());
        return wb_fail(err, "%s at %llu: %s", walk->segment->file.path, (unsigned long long)at, why);
    }
    *block_out = bytes;
    walk->next = at + head_out->bytes;
    return 1;
}
