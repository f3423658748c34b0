/*
 * segment_walk.c - walks through all blocks of a segment in the order of the file, reading
 * large pieces at a time. It checks the header and directory of each block, but not the
 * frames: code that decompresses them does.
 *
 * When a block is damaged, the walk reports it once, and then looks for the next block: a
 * position with a valid header whose name belongs to exactly this position. The name
 * matters, because a page may contain bytes that look like a block, but the author of
 * that page could not know where it would be stored.
 */
#include "base/check.h"
#include "base/error.h"
#include "pagefile/segment.h"

#include <stdio.h>

enum {
    WINDOW_BYTES = 512 << 10, /* small, so that the bytes are still in the processor's cache when they are used */
    MAGIC_BYTES = 4,
};

void wb_segment_walk_init(struct wb_segment_walk *walk, const struct wb_segment *segment, uint64_t end)
{
    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    *walk = (struct wb_segment_walk){.segment = segment, .next = WB_SEGMENT_HEADER_BYTES, .end = end};
    wb_node_file_hint(&segment->file, WB_NODE_SEQUENTIAL, 0, 0);
}

void wb_segment_walk_release(struct wb_segment_walk *walk)
{
    WB_CHECK(walk->window.len <= walk->window.cap);
    wb_buf_release(&walk->window);
    wb_block_index_release(&walk->index);
}

/* Reads the window that begins at `at`. What the old one has of it is moved instead of read again. */
static int move_window(struct wb_segment_walk *walk, uint64_t at, size_t want)
{
    uint64_t end = walk->window_at + walk->window.len;
    size_t kept = at >= walk->window_at && at < end ? (size_t)(end - at) : 0, got = 0;

    WB_CHECK(kept < want);
    WB_CHECK(kept <= walk->window.len);
    if (kept)
        memmove(walk->window.ptr, walk->window.ptr + (at - walk->window_at), kept);
    walk->window_at = at;
    walk->window.len = kept;
    int err = wb_buf_reserve(&walk->window, want - kept);
    if (err == 0)
        err = wb_node_file_read_at(&walk->segment->file, at + kept, walk->window.ptr + kept, want - kept, &got);
    walk->window.len += err == 0 ? got : 0;
    return err;
}

/*
 * Makes sure that the window contains `need` bytes from `at`, or as many as there are
 * before the end. *have_out is how many bytes the window has from there on.
 */
static int look(struct wb_segment_walk *walk, uint64_t at, size_t need, const char **bytes_out, size_t *have_out)
{
    uint64_t left = at < walk->end ? walk->end - at : 0;

    WB_CHECK(walk->segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(need > 0);
    WB_CHECK(walk->window.len <= walk->window.cap);
    *bytes_out = NULL;
    *have_out = 0;
    if (need > left)
        need = (size_t)left;
    if (walk->ahead && need && walk->ahead->wait(walk->ahead, at, need, bytes_out, have_out)) {
        *have_out = *have_out < left ? *have_out : (size_t)left;
        return 0;
    }
    if (at < walk->window_at || at + need > walk->window_at + walk->window.len) {
        size_t want = need > WINDOW_BYTES ? need : left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
        int err = move_window(walk, at, want);
        if (err < 0)
            return err;
    }
    *bytes_out = walk->window.ptr + (at - walk->window_at);
    *have_out = (size_t)(walk->window_at + walk->window.len - at);
    return 0;
}

/* Whether a block with this header belongs at this position. */
static bool belongs_here(const struct wb_segment_walk *walk, const struct wb_block_head *head, uint64_t at)
{
    uint64_t place;

    WB_CHECK(walk->segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(head->count > 0);
    return wb_segment_locate(walk->segment, head->logical, &place) == 0 && place == at;
}

/* Moves walk->next from a damaged block to the next block that can be found, or to the end. */
static int resynchronise(struct wb_segment_walk *walk)
{
    const char *bytes;
    size_t have;

    uint64_t end = wb_segment_stretch_end(walk->segment, walk->next, walk->end);

    WB_CHECK(walk->next >= WB_SEGMENT_HEADER_BYTES);
    WB_CHECK(walk->next < end);
    for (uint64_t at = walk->next + 1; at + WB_BLOCK_HEADER_BYTES <= end;) {
        int err = look(walk, at, WB_BLOCK_HEADER_BYTES, &bytes, &have);
        if (err < 0)
            return err;
        if (have < WB_BLOCK_HEADER_BYTES)
            break;
        const char *found = memmem(bytes, have, "WBBK", MAGIC_BYTES);
        if (!found) {
            at += have - (MAGIC_BYTES - 1); /* the last bytes may be the beginning of it */
            continue;
        }
        struct wb_block_head head;
        at += (uint64_t)(found - bytes);
        err = look(walk, at, WB_BLOCK_HEADER_BYTES, &bytes, &have);
        if (err < 0)
            return err;
        if (have >= WB_BLOCK_HEADER_BYTES && wb_block_head_read(bytes, &head) == 0 && belongs_here(walk, &head, at)) {
            walk->next = at;
            return 0;
        }
        at++;
    }
    walk->next = end;
    return 0;
}

/* Completes the current error message with the file and the position. */
static int name_place(const struct wb_segment_walk *walk, uint64_t at, int code)
{
    char why[WB_ERROR_MESSAGE_MAX];

    WB_CHECK(code < 0);
    snprintf(why, sizeof why, "%s", wb_error_message());
    return wb_fail(code, "%s at %llu: %s", walk->segment->file.path, (unsigned long long)at, why);
}

/* The header of the block at `at` cannot be trusted: reports that, and looks for the next block. */
static int damaged(struct wb_segment_walk *walk, uint64_t at, int code)
{
    struct wb_error_copy why;

    WB_CHECK(code < 0);
    WB_CHECK(at == walk->next);
    wb_error_save(code, &why);
    walk->error_at = at;
    int err = resynchronise(walk);
    if (err < 0)
        return err;
    WB_CHECK(walk->next > at);
    WB_CHECK(walk->next <= walk->end);
    wb_error_restore(&why);
    return name_place(walk, at, code);
}

static int damaged_because(struct wb_segment_walk *walk, uint64_t at, const char *what)
{
    WB_CHECK(at == walk->next);
    wb_fail(WB_E_CORRUPT, "%s", what);
    return damaged(walk, at, WB_E_CORRUPT);
}

int wb_segment_walk_next(struct wb_segment_walk *walk, struct wb_block_head *head_out, const char **block_out,
                         uint64_t *at_out)
{
    uint64_t at = wb_segment_pass_map(walk->segment, walk->next, walk->end);
    const char *bytes;
    size_t have;
    int err;

    WB_CHECK(walk->segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(walk->next >= WB_SEGMENT_HEADER_BYTES);
    walk->next = at;
    *block_out = NULL;
    *at_out = at;
    *head_out = (struct wb_block_head){0};
    if (at >= walk->end)
        return 0;
    err = look(walk, at, WB_BLOCK_HEADER_BYTES, &bytes, &have);
    if (err < 0)
        return err;
    if (have < WB_BLOCK_HEADER_BYTES)
        return damaged_because(walk, at, "the file ends here");
    err = wb_block_head_read(bytes, head_out);
    if (err < 0)
        return damaged(walk, at, err);
    if (!belongs_here(walk, head_out, at))
        return damaged_because(walk, at, "the block is not where its name says");
    if (head_out->bytes > wb_segment_stretch_end(walk->segment, at, walk->end) - at)
        return damaged_because(walk, at, "the block is longer than its file");
    err = look(walk, at, (size_t)head_out->bytes, &bytes, &have);
    if (err < 0)
        return err;
    if (have < head_out->bytes)
        return damaged_because(walk, at, "the file ends inside the block");
    walk->next = at + head_out->bytes; /* the header is valid, so the next block is where it says */
    err = wb_block_index_read(head_out, bytes + WB_BLOCK_HEADER_BYTES, &walk->index);
    if (err < 0) {
        walk->error_at = at;
        return name_place(walk, at, err);
    }
    *block_out = bytes;
    return 1;
}
