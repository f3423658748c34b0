/*
 * node_identity.c - makes directories nodes, checks them, and makes them ordinary directories again. It never looks
 * at what is in the files of a node. webbase.node is text, so that a person who comes across it understands what it is:
 *
 *   webbase node
 *   format 1
 *   repository 5d1c0f6f3f0e4a53a5d2b6a1a8d7c9e0
 *   number 2
 *   id 0123456789abcdef0123456789abcdef
 *   check 89abcdef01234567
 *
 * Valid if and only if it has exactly these lines in this order, the number is at least 1 and written without leading
 * zeros, and `check` is the XXH3 (64 bits, hexadecimal) of everything before its line. A higher format number is
 * believed without looking at the checksum, because the rest of the file may be different in that format.
 */
#include "place/node_identity.h"
#include "base/check.h"
#include "base/checked_text.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/format.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/path.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define TEMPORARY_NAME WB_NODE_IDENTITY_NAME ".tmp"

enum { IDENTITY_BYTES_MAX = 4096, FORMAT_MAX = 1000000 };

/* ---- the file -------------------------------------------------------------------------------- */

int wb_node_identity_format(const struct wb_node_identity *identity, struct wb_buf *text)
{
    char repository[2 * WB_NODE_ID_BYTES + 1], id[2 * WB_NODE_ID_BYTES + 1];

    WB_CHECK(identity->number > 0);
    wb_hex_encode(identity->repository, WB_NODE_ID_BYTES, repository);
    wb_hex_encode(identity->id, WB_NODE_ID_BYTES, id);
    int err = wb_buf_printf(text, "webbase node\nformat %d\nrepository %s\nnumber %u\nid %s\n", WB_NODE_FORMAT,
                            repository, identity->number, id);
    if (err == 0)
        err = wb_checked_text_end(text);
    return err;
}

static int parse_identity(const char *path, struct wb_slice bytes, struct wb_node_identity *out)
{
    struct wb_slice text = bytes, value;
    struct wb_buf again = WB_BUF_INIT;
    uint64_t format, number;

    if (!wb_checked_text_take(&text, "webbase", &value) || !wb_slice_equal(value, WB_SLICE_LIT("node")) ||
        !wb_checked_text_take(&text, "format", &value) || !wb_slice_to_u64(value, &format))
        return wb_fail(WB_E_CORRUPT, "%s is damaged", path);
    if (format > WB_NODE_FORMAT && format < FORMAT_MAX)
        return wb_fail_format(path, format, WB_NODE_FORMAT);
    if (format != WB_NODE_FORMAT || !wb_checked_text_take(&text, "repository", &value) ||
        !wb_hex_decode(value, out->repository, WB_NODE_ID_BYTES) || !wb_checked_text_take(&text, "number", &value) ||
        !wb_slice_to_u64(value, &number) || number == 0 || number > UINT32_MAX ||
        !wb_checked_text_take(&text, "id", &value) || !wb_hex_decode(value, out->id, WB_NODE_ID_BYTES))
        return wb_fail(WB_E_CORRUPT, "%s is damaged", path);
    out->number = (uint32_t)number;
    /* There is one way to write it, so the checksum and all that was not looked at so far is compared at once. */
    int err = wb_node_identity_format(out, &again);
    if (err == 0 && !wb_slice_equal(wb_buf_slice(&again), bytes))
        err = wb_fail(WB_E_CORRUPT, "%s is damaged: it does not match its checksum", path);
    wb_buf_release(&again);
    return err;
}

int wb_node_identity_read(const char *dir, struct wb_node_identity *identity_out)
{
    struct wb_buf bytes = WB_BUF_INIT;
    char *path = wb_path_join(dir, WB_NODE_IDENTITY_NAME);

    *identity_out = (struct wb_node_identity){0};
    if (!path)
        return WB_E_NOMEM;
    /* A pipe in its place would make us wait for a writer that never comes. */
    int err = wb_path_kind(path) == WB_PATH_OTHER ? WB_E_LIMIT : wb_path_read(path, IDENTITY_BYTES_MAX, &bytes);
    if (err == WB_E_LIMIT)
        err = wb_fail(WB_E_CORRUPT, "%s is damaged", path);
    if (err == 0)
        err = parse_identity(path, wb_buf_slice(&bytes), identity_out);
    wb_buf_release(&bytes);
    wb_free(path);
    return err;
}

static bool same_identity(const struct wb_node_identity *a, const struct wb_node_identity *b)
{
    return a->number == b->number && memcmp(a->repository, b->repository, WB_NODE_ID_BYTES) == 0 &&
           memcmp(a->id, b->id, WB_NODE_ID_BYTES) == 0;
}

/* ---- checking -------------------------------------------------------------------------------- */

static int anything(void *context, const struct wb_path_entry *entry)
{
    (void)context;
    return strcmp(entry->name, "lost+found") != 0;
}

/* There is no webbase.node: says what is there instead. */
static int not_a_node(const char *dir, uint32_t number)
{
    enum wb_path_kind kind = wb_path_kind(dir);

    if (kind == WB_PATH_NONE)
        return wb_fail(WB_E_DOWN, "node %u is down: %s is missing (is the disk mounted?)", number, dir);
    if (kind != WB_PATH_DIR)
        return wb_fail(WB_E_DOWN, "node %u is down: %s is not a directory", number, dir);
    int found = wb_path_each(dir, anything, NULL);
    if (found < 0)
        return found;
    if (found == 0)
        return wb_fail(WB_E_DOWN, "node %u is down: %s is empty (is the disk mounted?)", number, dir);
    return wb_fail(WB_E_DOWN, "node %u is down: %s is not a node, it has no file %s", number, dir,
                   WB_NODE_IDENTITY_NAME);
}

int wb_node_check(const char *dir, const struct wb_node_identity *expected)
{
    char why[WB_ERROR_MESSAGE_MAX];
    struct wb_node_identity found;

    WB_CHECK(expected->number > 0);
    int err = wb_node_identity_read(dir, &found);
    if (err == WB_E_NOTFOUND || (err == WB_E_IO && wb_path_kind(dir) != WB_PATH_DIR))
        err = not_a_node(dir, expected->number);
    if (err == WB_E_IO || err == WB_E_CORRUPT) {
        snprintf(why, sizeof why, "%s", wb_error_message());
        return wb_fail(WB_E_DOWN, "node %u is down: %s", expected->number, why);
    }
    if (err < 0)
        return err;
    if (memcmp(found.repository, expected->repository, WB_NODE_ID_BYTES) != 0)
        return wb_fail(WB_E_DOWN, "node %u is down: %s is a node of another repository", expected->number, dir);
    if (found.number != expected->number)
        return wb_fail(WB_E_DOWN, "node %u is down: %s is node %u", expected->number, dir, found.number);
    if (!same_identity(&found, expected))
        return wb_fail(WB_E_DOWN, "node %u is down: %s is another node that had this number", expected->number, dir);
    return 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Returns 1 at anything in the directory that is neither ours nor the file system's. */
static int foreign(void *context, const struct wb_path_entry *entry)
{
    (void)context;
    return strcmp(entry->name, TEMPORARY_NAME) != 0 && strcmp(entry->name, WB_NODE_DIR) != 0 && anything(NULL, entry);
}

/* Whether the directory in which `dir` is, or would be, exists. Negative: out of memory. */
static int parent_exists(const char *dir)
{
    char *parent = wb_strdup(dir);

    if (!parent)
        return WB_E_NOMEM;
    size_t len = strlen(parent);
    while (len > 1 && parent[len - 1] == '/')
        parent[--len] = '\0';
    char *slash = strrchr(parent, '/');
    if (slash)
        slash[slash == parent] = '\0';
    bool exists = wb_path_kind(slash ? parent : ".") == WB_PATH_DIR;
    wb_free(parent);
    return exists;
}

/* Makes the directory if it does not exist. Nothing above it is made: a missing parent may be a missing disk. */
static int make_dir(const char *dir)
{
    enum wb_path_kind kind = wb_path_kind(dir);
    int exists = kind == WB_PATH_NONE ? parent_exists(dir) : true;

    if (exists < 0)
        return exists;
    if (!exists)
        return wb_fail(WB_E_INVALID, "%s cannot be a node: the directory above it does not exist", dir);
    if (kind != WB_PATH_NONE && kind != WB_PATH_DIR)
        return wb_fail(WB_E_INVALID, "%s cannot be a node: it is not a directory", dir);
    return wb_path_mkdirs(dir);
}

int wb_node_dir_is_empty(const char *dir, bool *empty_out)
{
    int err = wb_path_each(dir, foreign, NULL);
    char *pages = err == 0 ? wb_path_join(dir, WB_NODE_DIR) : NULL;

    if (err == 0 && !pages)
        return WB_E_NOMEM;
    if (err == 0 && wb_path_kind(pages) != WB_PATH_NONE)
        err = wb_path_each(pages, anything, NULL);
    wb_free(pages);
    *empty_out = err == 0;
    return err < 0 ? err : 0;
}

/* Returns 1 if the directory is exactly this node, 0 if it can be made one, or an error that names it. */
static int look_at_dir(const char *dir, const struct wb_node_identity *identity)
{
    struct wb_node_identity found;
    int err = wb_node_identity_read(dir, &found);

    if (err == 0 && same_identity(&found, identity))
        return 1;
    if (err == 0 && memcmp(found.repository, identity->repository, WB_NODE_ID_BYTES) != 0)
        return wb_fail(WB_E_INVALID, "%s cannot be a node: it is a node of another repository", dir);
    if (err == 0)
        return wb_fail(WB_E_INVALID, "%s is node %u of this repository already", dir, found.number);
    if (err == WB_E_CORRUPT || err == WB_E_NEWER)
        return wb_fail(WB_E_INVALID, "%s cannot be a node: it is a node already, and its file %s cannot be read", dir,
                       WB_NODE_IDENTITY_NAME);
    if (err != WB_E_NOTFOUND)
        return err;
    bool empty;
    err = wb_node_dir_is_empty(dir, &empty);
    return err == 0 && !empty ? wb_fail(WB_E_INVALID, "%s cannot be a node: it is not empty", dir) : err;
}

/* Writes the temporary file, which is locked, and gives it its name: from then on the directory is a node. */
static int write_identity(const char *dir, const struct wb_file *temporary, const struct wb_node_identity *identity)
{
    struct wb_buf text = WB_BUF_INIT;
    char *path = wb_path_join(dir, WB_NODE_IDENTITY_NAME), *pages = wb_path_join(dir, WB_NODE_DIR);
    int err = path && pages ? wb_node_identity_format(identity, &text) : WB_E_NOMEM;

    if (err == 0)
        err = wb_path_mkdirs(pages);
    if (err == 0)
        err = wb_file_truncate(temporary, 0);
    if (err == 0)
        err = wb_file_write_at(temporary, 0, text.ptr, text.len);
    if (err == 0)
        err = wb_file_sync(temporary);
    if (err == 0)
        err = wb_path_rename(temporary->path, path);
    if (err == 0)
        err = wb_path_sync_dir(dir);
    wb_buf_release(&text);
    wb_free(pages);
    wb_free(path);
    return err;
}

int wb_node_make(const char *dir, const struct wb_node_identity *identity)
{
    struct wb_file temporary = WB_FILE_INIT;
    struct wb_error_copy why;

    WB_CHECK(identity->number > 0);
    char *path = wb_path_join(dir, TEMPORARY_NAME);
    int err = path ? make_dir(dir) : WB_E_NOMEM;
    if (err == 0)
        err = look_at_dir(dir, identity); /* before anything is made in it */
    if (err != 0)
        goto done;
    err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &temporary);
    if (err < 0)
        goto done;
    err = wb_file_lock(&temporary, false);
    if (err == WB_E_BUSY || (err == 0 && wb_file_unlinked(&temporary))) /* removed by another attempt that failed */
        err = wb_fail(WB_E_BUSY, "another process is making %s a node", dir);
    if (err < 0)
        goto done;
    err = look_at_dir(dir, identity); /* again: another process may have been faster */
    if (err == 0)
        err = write_identity(dir, &temporary, identity);
    if (err != 0) {
        wb_error_save(err < 0 ? err : 0, &why);
        wb_path_unlink(path);
        err = wb_error_restore(&why);
    }
done:
    wb_file_close(&temporary);
    wb_free(path);
    return err < 0 ? err : 0;
}

/* ---- un-making ------------------------------------------------------------------------------- */

static struct wb_slice take_digits(struct wb_slice *name)
{
    size_t len = 0;

    while (len < name->len && wb_ascii_is_digit(name->ptr[len]))
        len++;
    struct wb_slice digits = wb_slice(name->ptr, len);
    *name = wb_slice(name->ptr + len, name->len - len);
    return digits;
}

/* NNNNNNNN.seg, NNNNNNNN.R.seg, and the same with .bkt and .dw: the names of files that a store keeps on nodes. */
static bool is_ours(const char *name)
{
    struct wb_slice rest = wb_slice_str(name);

    if (take_digits(&rest).len < 8)
        return false;
    if (rest.len > 1 && rest.ptr[0] == '.' && wb_ascii_is_digit(rest.ptr[1])) {
        rest = wb_slice(rest.ptr + 1, rest.len - 1);
        take_digits(&rest);
    }
    return wb_slice_equal(rest, WB_SLICE_LIT(".seg")) || wb_slice_equal(rest, WB_SLICE_LIT(".bkt")) ||
           wb_slice_equal(rest, WB_SLICE_LIT(".dw"));
}

static int remove_ours(void *context, const struct wb_path_entry *entry)
{
    if (entry->kind != WB_PATH_FILE || !is_ours(entry->name))
        return 0;
    char *path = wb_path_join(context, entry->name);
    int err = path ? wb_path_unlink(path) : WB_E_NOMEM;
    wb_free(path);
    return err;
}

static int remove_named(const char *dir, const char *name)
{
    char *path = wb_path_join(dir, name);
    int err = path ? wb_path_unlink(path) : WB_E_NOMEM;

    wb_free(path);
    return err;
}

int wb_node_unmake(const char *dir, const struct wb_node_identity *expected)
{
    struct wb_node_identity found;

    WB_CHECK(expected->number > 0);
    int err = wb_node_identity_read(dir, &found);
    if (err == WB_E_NOTFOUND)
        return 0;
    err = wb_node_check(dir, expected);
    char *pages = err == 0 ? wb_path_join(dir, WB_NODE_DIR) : NULL;
    if (err == 0 && !pages)
        err = WB_E_NOMEM;
    if (err == 0 && wb_path_kind(pages) != WB_PATH_NONE) {
        err = wb_path_each(pages, remove_ours, pages);
        /* Otherwise they may be back after a power cut, when nothing tells any more whose they are. */
        if (err == 0)
            err = wb_path_sync_dir(pages);
        if (err == 0 && rmdir(pages) != 0 && errno != ENOTEMPTY && errno != EEXIST)
            err = wb_fail_errno("cannot remove %s", pages);
    }
    /* The identity goes last: as long as it is there, this can be repeated. */
    if (err == 0)
        err = remove_named(dir, TEMPORARY_NAME);
    if (err == 0)
        err = remove_named(dir, WB_NODE_IDENTITY_NAME);
    if (err == 0)
        err = wb_path_sync_dir(dir);
    wb_free(pages);
    return err;
}
