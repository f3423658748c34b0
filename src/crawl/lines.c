/*
 * lines.c - files of lines between the processes of a crawl and the readers of its log.
 *
 *   head   at 0  "WBLN"    4  format 1 (2), zero (2)    8  checksum of bytes 0 to 8 (8)
 *          16  end (8), round (8), checksum of both (8): written by the process that appends
 *          40  told to --json (8), told to --log (8), checksum of both (8): written by the parent
 *   then   lines, up to end; bytes after it do not count
 *
 * A file is valid if and only if its three checksums are right and 64 <= told <= end <= size. The text is written
 * before the head says that it counts, and each part of the head is one write of a few bytes: kill -9 leaves either
 * the state before or the state after. The text of a batch is synced before its end is written: after power loss
 * lines may be missing or come twice, but no line comes in pieces.
 */
#include "crawl/lines.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/path.h"

#include <time.h>

enum {
    LINES_MAGIC = 0x57424c4e,
    FORMAT = 1,
    HEAD_BYTES = 64,
    HEAD_CHECK_AT = 8,
    END_AT = 16,
    TOLD_AT = 40,
    PART_BYTES = 24,
    DISCARD_BYTES = 1 << 20, /* space is given back in steps of this */
    HEAD_TRIES = 5,          /* to read a head that may be just being written */
    HEAD_PAUSE_NS = 1000000,
};

_Static_assert(TOLD_AT + PART_BYTES == HEAD_BYTES, "the parts fill the head");

static int write_part(const struct wb_lines *lines, uint64_t at, uint64_t a, uint64_t b)
{
    char bytes[PART_BYTES];

    wb_put64(bytes, a);
    wb_put64(bytes + 8, b);
    wb_put64(bytes + 16, wb_hash64(bytes, 16));
    return wb_file_write_at(&lines->file, at, bytes, sizeof bytes);
}

static bool read_part(const char *bytes, uint64_t *a_out, uint64_t *b_out)
{
    if (wb_get64(bytes + 16) != wb_hash64(bytes, 16))
        return false;
    *a_out = wb_get64(bytes);
    *b_out = wb_get64(bytes + 8);
    return true;
}

static int write_head(struct wb_lines *lines)
{
    char head[HEAD_CHECK_AT + 8] = {0};

    lines->end = lines->told[0] = lines->told[1] = HEAD_BYTES;
    lines->round = 0;
    memcpy(head, "WBLN", 4);
    wb_put16(head + 4, FORMAT);
    wb_put64(head + HEAD_CHECK_AT, wb_hash64(head, HEAD_CHECK_AT));
    int err = wb_file_write_at(&lines->file, 0, head, sizeof head);
    if (err == 0)
        err = write_part(lines, END_AT, lines->end, lines->round);
    return err < 0 ? err : write_part(lines, TOLD_AT, lines->told[0], lines->told[1]);
}

/* 1: the head is valid; 0: it is missing or damaged; or an error. */
static int try_head(struct wb_lines *lines)
{
    char head[HEAD_BYTES];
    uint64_t size, end, round, told[WB_CRAWL_OUTPUTS];
    size_t got;

    int err = wb_file_size(&lines->file, &size);
    if (err == 0)
        err = wb_file_read_at(&lines->file, 0, head, sizeof head, &got);
    if (err < 0)
        return err;
    if (got < sizeof head || memcmp(head, "WBLN", 4) != 0)
        return 0;
    if (wb_get64(head + HEAD_CHECK_AT) != wb_hash64(head, HEAD_CHECK_AT))
        return 0;
    if (wb_get16(head + 4) != FORMAT)
        return wb_fail_format(lines->file.path, wb_get16(head + 4), FORMAT);
    if (!read_part(head + END_AT, &end, &round) || !read_part(head + TOLD_AT, &told[0], &told[1]))
        return 0;
    if (end < HEAD_BYTES || end > size)
        return 0;
    for (unsigned o = 0; o < WB_CRAWL_OUTPUTS; o++)
        if (told[o] < HEAD_BYTES || told[o] > end)
            return 0;
    lines->end = end;
    lines->round = round;
    memcpy(lines->told, told, sizeof told);
    return 1;
}

/* A head that is just being written may look damaged, so look several times before the file counts as empty. */
static int read_head(struct wb_lines *lines)
{
    int found = try_head(lines);

    for (unsigned i = 0; found == 0 && i < HEAD_TRIES; i++) {
        nanosleep(&(struct timespec){0, HEAD_PAUSE_NS}, NULL);
        found = try_head(lines);
    }
    return found;
}

/*
 * Returns 1 if somebody deleted the file before we had it: it must be created again. Between creating and locking it,
 * an heir may take our file for one that was left behind. It finds nothing in it and deletes it at once (adopt_file()
 * in teller.c), so the owner waits for the lock.
 */
static int open_file(const char *path, enum wb_lines_role role, struct wb_file *file_out)
{
    static const unsigned flags[] = {
        [WB_LINES_OWNER] = WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW,
        [WB_LINES_HEIR] = WB_FILE_WRITE,
        [WB_LINES_HELPER] = WB_FILE_WRITE | WB_FILE_CREATE,
    };
    int err = wb_file_open(path, flags[role], file_out);

    if (err == WB_E_INVALID)
        return wb_fail(WB_E_BUSY, "%s is in use, or was left by a process that died", path);
    if (err == 0 && role != WB_LINES_HELPER)
        err = wb_file_lock(file_out, role == WB_LINES_OWNER);
    if (err == 0 && wb_file_unlinked(file_out)) {
        wb_file_close(file_out);
        return role == WB_LINES_HEIR ? wb_fail(WB_E_NOTFOUND, "%s: no such file", path) : 1;
    }
    return err;
}

int wb_lines_open(const char *dir, const char *name, enum wb_lines_role role, struct wb_lines **lines_out)
{
    struct wb_lines *lines = wb_alloc_zero(1, sizeof *lines);
    char *folder = wb_path_join(dir, WB_LINES_DIR), *path = folder ? wb_path_join(folder, name) : NULL;
    int err = lines && path ? 0 : WB_E_NOMEM;

    *lines_out = NULL;
    if (lines)
        *lines = (struct wb_lines){.magic = LINES_MAGIC, .file = WB_FILE_INIT};
    if (err == 0)
        err = wb_path_mkdirs(folder);
    if (err == 0)
        do
            err = open_file(path, role, &lines->file);
        while (err == 1);
    uint64_t size = 0;
    if (err == 0)
        err = wb_file_size(&lines->file, &size);
    if (err == 0 && size)
        err = read_head(lines);
    if (err == 0)
        err = write_head(lines);
    if (err >= 0)
        *lines_out = lines;
    else
        wb_lines_close(lines);
    wb_free(folder);
    wb_free(path);
    return err < 0 ? err : 0;
}

void wb_lines_close(struct wb_lines *lines)
{
    if (!lines)
        return;
    WB_CHECK(lines->magic == LINES_MAGIC);
    wb_file_close(&lines->file);
    lines->magic = 0;
    wb_free(lines);
}

int wb_lines_append(struct wb_lines *lines, struct wb_slice text, uint64_t round)
{
    WB_CHECK(lines->magic == LINES_MAGIC && lines->end >= HEAD_BYTES);
    WB_CHECK(text.len == 0 || text.ptr[text.len - 1] == '\n');
    if (round == lines->round || text.len == 0)
        return 0;
    int err = wb_file_write_at(&lines->file, lines->end, text.ptr, text.len);
    /* If the new end survived a power cut and the text did not, garbage would be passed on as lines. */
    if (err == 0)
        err = wb_file_sync(&lines->file);
    if (err == 0)
        err = write_part(lines, END_AT, lines->end + text.len, round);
    if (err < 0)
        return err;
    lines->end += text.len;
    lines->round = round;
    return 0;
}

int wb_lines_refresh(struct wb_lines *lines)
{
    char bytes[PART_BYTES];
    uint64_t end, round;
    size_t got;

    WB_CHECK(lines->magic == LINES_MAGIC);
    int err = wb_file_read_at(&lines->file, END_AT, bytes, sizeof bytes, &got);
    /* A part that is just being written may look damaged; the next call will see it. */
    if (err < 0 || got < sizeof bytes || !read_part(bytes, &end, &round) || end < lines->end)
        return err;
    lines->end = end;
    lines->round = round;
    return 0;
}

int wb_lines_read(const struct wb_lines *lines, uint64_t at, size_t max, struct wb_buf *text_out)
{
    WB_CHECK(lines->magic == LINES_MAGIC && at >= HEAD_BYTES && at <= lines->end);
    size_t len = lines->end - at < max ? (size_t)(lines->end - at) : max;

    wb_buf_clear(text_out);
    int err = wb_buf_reserve(text_out, len);
    if (err == 0)
        err = wb_file_read_exact(&lines->file, at, text_out->ptr, len);
    if (err == 0)
        text_out->len = len;
    return err;
}

int wb_lines_note(struct wb_lines *lines)
{
    uint64_t least = lines->told[0] < lines->told[1] ? lines->told[0] : lines->told[1];

    WB_CHECK(lines->magic == LINES_MAGIC && least >= HEAD_BYTES && lines->discarded <= least);
    WB_CHECK(lines->told[0] <= lines->end && lines->told[1] <= lines->end);
    int err = write_part(lines, TOLD_AT, lines->told[0], lines->told[1]);
    /* The block of the head stays; the lines that every reader has become a hole. */
    uint64_t whole = least / DISCARD_BYTES * DISCARD_BYTES;
    if (err == 0 && whole > lines->discarded) {
        uint64_t from = lines->discarded ? lines->discarded : 4096;
        /* The position must be durable before the bytes before it go, for the same reason as in wb_lines_append(). */
        err = wb_file_sync(&lines->file);
        if (err < 0)
            return err;
        wb_file_discard(&lines->file, from, whole - from);
        lines->discarded = whole;
    }
    return err;
}
