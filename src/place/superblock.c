/*
 * superblock.c - reads and writes webbase.repo. It is text, so that a person who comes
 * across it understands what it is:
 *
 *   webbase repository
 *   format 1
 *   design Incr[hash,log]
 *   id 0123456789abcdef0123456789abcdef
 *   created 2026-01-02T03:04:05.678Z
 *   check 89abcdef01234567
 *
 * Valid if and only if it has exactly these lines in this order, and `check` is the XXH3 (64
 * bits, hexadecimal) of everything before its line. A higher format number is believed
 * without looking at the checksum, because the rest of the file may be different in that
 * format.
 */
#include "place/superblock.h"
#include "base/check.h"
#include "base/checked_text.h"
#include "base/codec.h"
#include "base/date.h"
#include "base/error.h"
#include "base/format.h"
#include "base/mem.h"
#include "os/path.h"

enum {
    SUPERBLOCK_BYTES_MAX = 4096,
    FORMAT_MAX = 1000000, /* a larger number is not a format */
};

int wb_superblock_parse(const char *path, struct wb_slice bytes, struct wb_superblock *out)
{
    struct wb_slice text = bytes, value, lines;
    uint64_t format;

    WB_CHECK(bytes.len <= SUPERBLOCK_BYTES_MAX);
    if (!wb_checked_text_take(&text, "webbase", &value) || !wb_slice_equal(value, WB_SLICE_LIT("repository")) ||
        !wb_checked_text_take(&text, "format", &value) || !wb_slice_to_u64(value, &format))
        return wb_fail(WB_E_CORRUPT, "%s is damaged", path);
    if (format > WB_SUPERBLOCK_FORMAT && format < FORMAT_MAX)
        return wb_fail_format(path, format, WB_SUPERBLOCK_FORMAT);
    if (format != WB_SUPERBLOCK_FORMAT || !wb_checked_text_take(&text, "design", &value) ||
        wb_design_parse(value, &out->design) != 0 || !wb_checked_text_take(&text, "id", &value) ||
        !wb_hex_decode(value, out->id, sizeof out->id) || !wb_checked_text_take(&text, "created", &value) ||
        !wb_date_parse(value, &out->created_ms))
        return wb_fail(WB_E_CORRUPT, "%s is damaged", path);
    WB_CHECK(text.ptr > bytes.ptr);
    WB_CHECK(text.ptr <= bytes.ptr + bytes.len);
    if (!wb_checked_text_open(bytes, &lines) || text.ptr != lines.ptr + lines.len)
        return wb_fail(WB_E_CORRUPT, "%s is damaged: it does not match its checksum", path);
    return 0;
}

/* Whether there is such a file in a directory. */
static bool has_file(const char *dir, const char *name)
{
    char *path = wb_path_join(dir, name);
    bool there = path && wb_path_kind(path) != WB_PATH_NONE;

    wb_free(path);
    return there;
}

bool wb_superblock_is_unfinished(const char *dir)
{
    return has_file(dir, WB_SUPERBLOCK_UNFINISHED) && !has_file(dir, WB_SUPERBLOCK_NAME);
}

int wb_superblock_refuse_unfinished(const char *dir)
{
    return wb_fail(
        WB_E_INVALID,
        "%s is an unfinished copy of a repository: run the 'convert' or 'restore' again that began it, or delete it",
        dir);
}

int wb_superblock_read(const char *dir, struct wb_superblock *superblock_out)
{
    struct wb_buf bytes = WB_BUF_INIT;
    char *path = wb_path_join(dir, WB_SUPERBLOCK_NAME);
    int err;

    *superblock_out = (struct wb_superblock){0};
    if (!path)
        return WB_E_NOMEM;
    enum wb_path_kind kind = wb_path_kind(dir);
    if (kind == WB_PATH_NONE)
        err = wb_fail(WB_E_NOTFOUND, "there is no repository at %s", dir);
    else if (kind == WB_PATH_DIR && wb_path_kind(path) != WB_PATH_NONE)
        err = wb_path_read(path, SUPERBLOCK_BYTES_MAX, &bytes);
    else if (kind == WB_PATH_DIR && wb_superblock_is_unfinished(dir))
        err = wb_superblock_refuse_unfinished(dir);
    else
        err = wb_fail(WB_E_NOTFOUND, "%s is not a repository", dir);
    if (err == 0)
        err = wb_superblock_parse(path, wb_buf_slice(&bytes), superblock_out);
    wb_buf_release(&bytes);
    wb_free(path);
    return err;
}

int wb_superblock_write(const char *dir, const struct wb_superblock *superblock)
{
    struct wb_buf text = WB_BUF_INIT;
    char id[2 * WB_SUPERBLOCK_ID_BYTES + 1], created[WB_DATE_TEXT_MAX], design[WB_DESIGN_TEXT_MAX];
    char *path = wb_path_join(dir, WB_SUPERBLOCK_NAME);
    int err;

    if (!path)
        return WB_E_NOMEM;
    wb_hex_encode(superblock->id, sizeof superblock->id, id);
    wb_date_format(superblock->created_ms, created);
    wb_design_format(&superblock->design, design);
    err = wb_buf_printf(&text, "webbase repository\nformat %d\ndesign %s\nid %s\ncreated %s\n", WB_SUPERBLOCK_FORMAT,
                        design, id, created);
    if (err == 0)
        err = wb_checked_text_end(&text);
    if (err == 0)
        err = wb_path_replace(path, wb_buf_slice(&text));
    wb_buf_release(&text);
    wb_free(path);
    return err;
}
