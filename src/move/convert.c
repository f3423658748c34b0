/*
 * convert.c - the directory of a copy (convert.h): what it may be, its mark while it is unfinished, and its end.
 *
 *   a new or empty directory -> mark -> everything else -> webbase.repo -> the mark goes
 *
 * As long as there is no webbase.repo, nobody can open it, and the mark says why. A process that dies in between leaves
 * the mark, and the next conversion into the same directory removes what is there and starts again. The mark is text:
 *
 *   webbase unfinished copy
 *   format 1
 *   id 0123456789abcdef0123456789abcdef     of the repository that it would have become
 *   node DIR                                for each node outside of it
 *   check 89abcdef01234567                  XXH3 (64 bits, hexadecimal) of everything before this line
 */
#include "move/convert.h"
#include "base/check.h"
#include "base/checked_text.h"
#include "base/codec.h"
#include "base/format.h"
#include "base/mem.h"
#include "move/move.h"
#include "place/place.h"
#include "os/clock.h"
#include "os/folder.h"
#include "os/path.h"
#include "os/random.h"
#include "store/batch/batched.h"
#include "store/inside.h"
#include "move/mover.h"

#include <stdio.h>
#include <stdlib.h>

enum { MARK_BYTES_MAX = 1 << 20, MARK_FORMAT = 1 };

/* ---- the mark ----------------------------------------------------------------------------------------------- */

static int write_mark(const char *dir, const struct wb_superblock *superblock, const struct wb_store_options *options)
{
    const struct wb_store_node_list *lists[] = {&options->nodes, &options->update_nodes};
    struct wb_buf text = WB_BUF_INIT;
    char id[2 * WB_SUPERBLOCK_ID_BYTES + 1];
    char *path = wb_path_join(dir, WB_SUPERBLOCK_UNFINISHED);
    int err = path ? 0 : WB_E_NOMEM;

    wb_hex_encode(superblock->id, sizeof superblock->id, id);
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
        err = wb_fail(WB_E_CORRUPT, "%s is damaged: delete %s and run convert again", path, dir);
    wb_buf_release(&bytes);
    wb_free(path);
    return err;
}

/* ---- what is in the directory ------------------------------------------------------------------------------- */

/* What a copy may have in its directory. Nodes are there, too. The last two are those of other rooms. */
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
    WB_MOVE_LOCK,
    WB_PAGEFILE_STAGING_NAME,
    "journal",
    "webdb",
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
static int clear(const char *dir)
{
    int err = clear_nodes(dir);

    if (err == 0)
        err = wb_path_each(dir, remove_ours, (void *)(uintptr_t)dir);
    return err < 0 ? err : wb_path_sync_dir(dir);
}

/* ---- which directory ---------------------------------------------------------------------------------------- */

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
static int check_target(const char *dir, bool *unfinished_out)
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

/* Makes the directory and locks it, so that two copies at once do not meet there. */
static int lock_target(const char *dir, struct wb_file *lock_out)
{
    int err = wb_path_mkdirs(dir);

    if (err == 0)
        err = wb_file_open_locked(dir, WB_SUPERBLOCK_LOCK_NAME, lock_out);
    return err == WB_E_BUSY ? wb_fail(err, "another process is making a repository in %s", dir) : err;
}

/* ---- the copy ----------------------------------------------------------------------------------------------- */

int wb_convert_progress(struct wb_convert *convert, uint64_t more)
{
    const struct wb_move_convert_sink *sink = convert->sink;

    convert->done += more;
    if (!sink->progress || sink->progress(sink->context, convert->done, convert->total))
        return 0;
    return wb_fail(WB_E_STOPPED, "stopped");
}

/* The two things that only a batch design has. */
static int remove_update_part(const char *dir)
{
    char *update = wb_path_join(dir, WB_BATCHED_UPDATE_DIR), *gate = wb_path_join(dir, WB_BATCHED_GATE_NAME);
    int err = update && gate ? wb_folder_remove_all(update) : WB_E_NOMEM;

    if (err == 0)
        err = wb_path_unlink(gate);
    wb_free(update);
    wb_free(gate);
    return err;
}

/* Everything but the superblock. */
static int copy_all(struct wb_convert *convert, const char *from, const char *to,
                    const struct wb_superblock *superblock, struct wb_store_options *options)
{
    struct wb_convert_source source = {0};
    struct wb_superblock made = *superblock;
    struct wb_store *store = NULL;
    struct wb_error_copy why;
    int err = wb_convert_source_open(from, &source);
    /* What waits in the source passes through update nodes that exist only for this. */
    bool transfer = err == 0 && source.superblock.design.batch && !made.design.batch;

    if (transfer)
        made.design = (struct wb_design){.batch = true, .read = made.design.read};
    const struct wb_organisation *organisation = wb_organisation_find(&made.design);
    options->design = made.design;
    options->history = source.summary.history;
    if (err == 0)
        err = organisation->create(to, &made, options);
    if (err == 0)
        err = organisation->open(to, &made, WB_STORE_WRITE, &store);
    if (err == 0)
        err = wb_convert_parts(convert, &source, store, transfer);
    if (err < 0)
        wb_error_save(err, &why);
    wb_store_close(store);
    wb_convert_source_close(&source);
    if (err < 0)
        return wb_error_restore(&why);
    return transfer ? remove_update_part(to) : 0;
}

/* The same while no transfer of the source can begin, if it is of a batch design. */
static int copy_behind_gate(struct wb_convert *convert, const char *from, const char *to,
                            const struct wb_superblock *superblock, struct wb_store_options *options)
{
    const struct wb_move_convert_sink *sink = convert->sink;
    struct wb_batched_gate gate = WB_BATCHED_GATE_INIT;
    struct wb_superblock source;
    int err = wb_superblock_read(from, &source);

    if (err == 0 && source.design.batch)
        err = wb_batched_gate_enter(from, false, &gate);
    if (err == 0 && sink->rest)
        err = sink->rest(sink->context, from, to);
    if (err == 0)
        err = copy_all(convert, from, to, superblock, options);
    if (source.design.batch)
        wb_batched_gate_leave(&gate);
    return err;
}

/* From an empty directory, which is locked, to a repository. */
static int make_copy(struct wb_convert *convert, const char *from, const char *to, struct wb_store_options *options)
{
    struct wb_superblock superblock = {.design = options->design, .created_ms = wb_clock_wall_ms()};
    char *mark = wb_path_join(to, WB_SUPERBLOCK_UNFINISHED);
    int err = mark ? 0 : WB_E_NOMEM;

    wb_random_bytes(superblock.id, sizeof superblock.id);
    if (err == 0)
        err = write_mark(to, &superblock, options);
    if (err == 0) {
        err = copy_behind_gate(convert, from, to, &superblock, options);
        if (err == 0)
            err = wb_superblock_write(to, &superblock);
        if (err < 0) {
            char why[WB_ERROR_MESSAGE_MAX];
            snprintf(why, sizeof why, "%s", err == WB_E_STOPPED ? "stopped" : wb_error_message());
            err = wb_fail(err, "%s; %s is unfinished: run convert again, or delete it", why, to);
        }
    }
    if (err == 0) /* a mark beside a superblock means nothing any more */
        err = wb_path_unlink(mark);
    if (err == 0)
        err = wb_path_sync_dir(to);
    wb_free(mark);
    return err;
}

int wb_move_convert(const char *from, const char *to, const struct wb_store_options *options,
                    const struct wb_move_convert_sink *sink, struct wb_move_convert_counts *counts_out)
{
    struct wb_convert convert = {.sink = sink};
    struct wb_store_options made = *options;
    struct wb_superblock source;
    struct wb_file lock = WB_FILE_INIT;
    bool unfinished = false;
    int err = wb_superblock_read(from, &source);

    *counts_out = (struct wb_move_convert_counts){0};
    if (err == 0)
        err = check_target(to, &unfinished);
    if (err == 0 && !unfinished)
        err = wb_nodes_check(to, options); /* before anything is made */
    if (err == 0)
        err = wb_convert_source_check(from);
    if (err == 0)
        err = lock_target(to, &lock);
    if (err == 0)
        err = check_target(to, &unfinished); /* another process may have been faster */
    if (err == 0 && unfinished)
        err = clear(to);
    if (err == 0 && unfinished)
        err = wb_nodes_check(to, options);
    if (err == 0)
        err = make_copy(&convert, from, to, &made);
    wb_file_close(&lock);
    wb_vec_release(&convert.lost_sites);
    if (err == 0)
        *counts_out = convert.counts;
    return err;
}
