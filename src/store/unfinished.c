/*
 * unfinished.c - the directory of a copy that is being made (unfinished.h). The mark is text:
 *
 *   webbase unfinished copy
 *   format 1
 *   id 0123456789abcdef0123456789abcdef     of the repository that it would have become
 *   node DIR                                for each node outside of it
 *   check 89abcdef01234567                  XXH3 (64 bits, hexadecimal) of everything before this line
 */
#include "store/unfinished.h"
#include "base/check.h"
#include "base/checked_text.h"
#include "base/codec.h"
#include "base/format.h"
#include "base/mem.h"
#include "os/folder.h"
#include "os/path.h"
#include "pagefile/pagefile.h"
#include "place/place.h"
#include "store/organisation.h"

#include <stdio.h>

enum { MARK_BYTES_MAX = 1 << 20, MARK_FORMAT = 1 };

/* ---- the mark ------------------------------------------------------------------------------------------------- */

int wb_unfinished_mark(const char *dir, const uint8_t *repository, const struct wb_store_options *options)
{
    static const struct wb_store_node_list none;
    const struct wb_store_node_list *lists[] = {options ? &options->nodes : &none,
                                                options ? &options->update_nodes : &none};
    struct wb_buf text = WB_BUF_INIT;
    char id[2 * WB_SUPERBLOCK_ID_BYTES + 1];
    char *path = wb_path_join(dir, WB_SUPERBLOCK_UNFINISHED);
    int err = path ? 0 : WB_E_NOMEM;

    wb_hex_encode(repository, WB_SUPERBLOCK_ID_BYTES, id);
    if (err == 0)
        err = wb_buf_printf(&text, "webbase unfinished copy\nformat %d\nid %s\n", MARK_FORMAT, id);
    for (size_t list = 0; list < 2; list++)
        for (size_t i = 0; lists[list]->dirs && i < lists[list]->count && err == 0; i++) {
            char *real = wb_nodes_real_path(lists[list]->dirs[i]);
            err = real ? 0 : WB_E_INVALID;
            if (err == 0 && strchr(real, '\n'))
                err = wb_fail(WB_E_INVALID, "%s cannot be a node: there is a line break in its name", real);
            if (err == 0)
                err = wb_buf_printf(&text, "node %s\n", real);
            wb_free(real);
        }
    if (err == 0)
        err = wb_checked_text_end(&text);
    if (err == 0)
        err = wb_path_replace(path, wb_buf_slice(&text));
    wb_buf_release(&text);
    wb_free(path);
    return err;
}

/* Empties a node outside of an unfinished copy, if it is still a node of that copy. */
static int clear_node(struct wb_slice name, const uint8_t *repository)
{
    struct wb_node_identity identity;
    char *dir = wb_strndup(name.ptr, name.len);
    int err = dir ? wb_node_identity_read(dir, &identity) : WB_E_NOMEM;

    if (err == 0 && memcmp(identity.repository, repository, sizeof identity.repository) == 0)
        err = wb_node_unmake(dir, &identity);
    wb_free(dir);
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* Takes the lines before those of the nodes off a mark, and returns the id. */
static int read_mark(const char *path, struct wb_slice bytes, uint8_t *id_out, struct wb_slice *nodes_out)
{
    struct wb_slice value;
    uint64_t format;

    if (!wb_checked_text_open(bytes, nodes_out) || !wb_checked_text_take(nodes_out, "webbase", &value) ||
        !wb_slice_equal(value, WB_SLICE_LIT("unfinished copy")) || !wb_checked_text_take(nodes_out, "format", &value) ||
        !wb_slice_to_u64(value, &format))
        return WB_E_CORRUPT;
    if (format != MARK_FORMAT)
        return wb_fail_format(path, format, MARK_FORMAT);
    bool sound = wb_checked_text_take(nodes_out, "id", &value) && wb_hex_decode(value, id_out, WB_SUPERBLOCK_ID_BYTES);
    return sound ? 0 : WB_E_CORRUPT;
}

/* Empties the nodes that the mark names. */
static int clear_nodes(const char *dir)
{
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_slice nodes, node;
    uint8_t repository[WB_SUPERBLOCK_ID_BYTES];
    char *path = wb_path_join(dir, WB_SUPERBLOCK_UNFINISHED);
    int err = path ? wb_path_read(path, MARK_BYTES_MAX, &bytes) : WB_E_NOMEM;

    int mark = err == 0 ? read_mark(path, wb_buf_slice(&bytes), repository, &nodes) : 0;
    if (mark == WB_E_NEWER)
        err = mark;
    bool damaged = mark == WB_E_CORRUPT;
    while (err == 0 && !damaged && nodes.len) {
        damaged = !wb_checked_text_take(&nodes, "node", &node);
        err = damaged ? 0 : clear_node(node, repository);
    }
    if (err == 0 && damaged)
        err = wb_fail(WB_E_CORRUPT, "%s is damaged: delete %s and try again", path, dir);
    wb_buf_release(&bytes);
    wb_free(path);
    return err;
}

/* ---- what is in the directory --------------------------------------------------------------------------------- */

/* What a copy may have in its directory. Nodes are there, too. What begins with the journal is of other rooms. */
static const char *const ours[] = {
    WB_SUPERBLOCK_UNFINISHED,
    WB_SUPERBLOCK_UNFINISHED ".tmp",
    WB_SUPERBLOCK_LOCK_NAME,
    WB_SUPERBLOCK_NAME ".tmp",
    WB_CATALOG_NAME,
    WB_SEGMENT_DIR,
    WB_BATCHED_UPDATE_DIR,
    WB_BATCHED_GATE_NAME,
    WB_BUSY_NAME,
    "compact.lock",
    "nodes.lock",
    WB_PAGEFILE_STAGING_NAME,
    "journal",
    "webdb",
    "index",
    "streams",
    "graph",
    "control",
    "vault",
    "cycle",
    "thresholds",
};

/* The names that stay when a copy starts again. */
enum { OURS_KEPT = 3 };

static bool is_ours(const char *name, size_t first)
{
    unsigned number;
    char exact[32];

    for (size_t i = first; i < sizeof ours / sizeof ours[0]; i++)
        if (strcmp(name, ours[i]) == 0)
            return true;
    if (sscanf(name, "node%8u", &number) != 1)
        return false;
    snprintf(exact, sizeof exact, "node%u", number);
    return strcmp(exact, name) == 0;
}

struct directory_check {
    const char *dir;
    bool unfinished; /* anything of ours may be there */
};

static int refuse_foreign(void *context, const struct wb_path_entry *entry)
{
    const struct directory_check *check = context;

    /* What is there before the mark. */
    if (strcmp(entry->name, WB_SUPERBLOCK_LOCK_NAME) == 0 ||
        strcmp(entry->name, WB_SUPERBLOCK_UNFINISHED ".tmp") == 0 || (check->unfinished && is_ours(entry->name, 0)))
        return 0;
    if (check->unfinished)
        return wb_fail(WB_E_INVALID, "%s is an unfinished copy, but also has other files (%s)", check->dir,
                       entry->name);
    return wb_fail(WB_E_INVALID, "%s is not empty", check->dir);
}

static int remove_ours(void *context, const struct wb_path_entry *entry)
{
    if (!is_ours(entry->name, OURS_KEPT))
        return 0;
    char *path = wb_path_join(context, entry->name);
    int err = !path ? WB_E_NOMEM : entry->kind == WB_PATH_DIR ? wb_folder_remove_all(path) : wb_path_unlink(path);
    wb_free(path);
    return err;
}

/* Removes what an unfinished copy has; its mark stays until everything else is gone. */
int wb_unfinished_clear(const char *dir)
{
    int err = clear_nodes(dir);

    if (err == 0)
        err = wb_path_each(dir, remove_ours, (void *)(uintptr_t)dir);
    return err < 0 ? err : wb_path_sync_dir(dir);
}

/* ---- which directory ------------------------------------------------------------------------------------------ */

/* Neither the directory itself nor one above it may be a repository or a node of one. */
static int check_above(const char *dir, char *real)
{
    struct wb_node_identity identity;

    WB_CHECK(real[0] == '/');
    for (char *end = real + 1;; end++) {
        if (*end != '/' && *end != '\0')
            continue;
        char separator = *end;
        *end = '\0';
        bool repository = wb_store_exists(real);
        int found = repository ? WB_E_NOTFOUND : wb_node_identity_read(real, &identity);
        bool node = found == 0 || found == WB_E_CORRUPT || found == WB_E_NEWER;
        int err = 0;
        if (repository && separator == '\0')
            err = wb_fail(WB_E_INVALID, "there is a repository at %s already", dir);
        else if (repository || node)
            err = wb_fail(WB_E_INVALID, "%s cannot be a repository: %s is %s", dir, real,
                          repository ? "one" : "a node of one");
        *end = separator;
        if (err < 0 || separator == '\0')
            return err;
    }
}

/* Checks that a copy can be made there, without changing anything. */
int wb_unfinished_check(const char *dir, bool *unfinished_out)
{
    struct directory_check check = {.dir = dir, .unfinished = wb_superblock_is_unfinished(dir)};
    enum wb_path_kind kind = wb_path_kind(dir);
    char *real = dir[0] ? wb_nodes_real_path(dir) : NULL;
    int err = real ? check_above(dir, real) : WB_E_INVALID;

    *unfinished_out = check.unfinished;
    if (!dir[0])
        err = wb_fail(WB_E_INVALID, "a copy needs a directory, and this one has no name");
    if (err == 0 && kind == WB_PATH_NONE) {
        *strrchr(real, '/') = '\0';
        if (wb_path_kind(real[0] ? real : "/") != WB_PATH_DIR)
            err = wb_fail(WB_E_INVALID, "%s cannot be made: the directory above it does not exist", dir);
    } else if (err == 0 && kind != WB_PATH_DIR) {
        err = wb_fail(WB_E_INVALID, "%s is not a directory", dir);
    } else if (err == 0) {
        err = wb_path_each(dir, refuse_foreign, &check);
    }
    wb_free(real);
    return err;
}

int wb_unfinished_lock(const char *dir, struct wb_file *lock_out)
{
    int err = wb_path_mkdirs(dir);

    if (err == 0)
        err = wb_file_open_locked(dir, WB_SUPERBLOCK_LOCK_NAME, lock_out);
    if (err == 0 && wb_file_unlinked(lock_out)) { /* by one that gave up just now */
        wb_file_close(lock_out);
        err = WB_E_BUSY;
    }
    return err == WB_E_BUSY ? wb_fail(err, "another process is making a repository in %s", dir) : err;
}

int wb_unfinished_end(const char *dir)
{
    char *mark = wb_path_join(dir, WB_SUPERBLOCK_UNFINISHED);
    int err = mark ? wb_path_unlink(mark) : WB_E_NOMEM; /* a mark beside a superblock means nothing any more */

    wb_free(mark);
    return err < 0 ? err : wb_path_sync_dir(dir);
}
