/*
 * tree.c - opens the file of a tree, reads and writes the root record, and knows who holds
 * which state. It never looks into the pages of a table.
 *
 * There are two copies of the root record, at the beginning of pages 0 and 1:
 *
 *    0  "WBtree01" (8)
 *    8  checksum (8): XXH3 of bytes 16 to 1023
 *   16  transaction (8)
 *   24  pages of the file (4), bytes of a page (4)
 *   32  roots of 16 tables: page (4), level (4), checksum (8), rows (8)
 *  416  pointers to 32 index pages of the free-space map: page (4), checksum (8)
 *  800  four classes of pages given up: from (8), to (8), pages (8)
 *  896  free pages (8)
 *  904  zero, up to 1024
 *
 * A copy is valid if and only if its checksum matches and its numbers make sense (decode).
 * Both copies are the same, unless a commit is in progress or was interrupted:
 *
 *   pages ... sync   copy 0   sync   copy 1
 *
 * While copy 0 is being written, copy 1 still has the previous state, durably. While copy 1
 * is being written, copy 0 already has the new state, durably. So one valid copy is always
 * there, and a copy that is damaged later is replaced by the other one. A writer that
 * finds two different copies repairs that first.
 *
 * Locks are on bytes far beyond the end of the file: the writer has an exclusive lock on
 * one byte; each reader that holds state T has a shared lock on a byte that stands for T.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/bytelock.h"
#include "tree/tree_own.h"

#include <unistd.h>

enum {
    AT_TXN = 16,
    AT_PAGES = 24,
    AT_ROOTS = 32,
    ROOT_BYTES = 24,
    AT_SPACE = AT_ROOTS + WB_TREE_TABLES_MAX * ROOT_BYTES,
    REF_BYTES = 12,
    AT_CLASSES = AT_SPACE + WB_TREE_SPACE_MAX * REF_BYTES,
    CLASS_BYTES = 24,
    AT_FREE = AT_CLASSES + WB_TREE_CLASSES * CLASS_BYTES,
    AT_MARKS = AT_FREE + 8,
    MARK_BYTES = 12,
    TRIES = 1000,
};
_Static_assert(AT_SPACE == 416 && AT_CLASSES == 800 && AT_FREE == 896 && AT_MARKS == 904, "the root record");
_Static_assert(AT_MARKS + WB_TREE_MARKS_MAX * MARK_BYTES <= (int)WB_TREE_ROOT_BYTES, "the fields fit in it");
_Static_assert((int)WB_TREE_ROOT_BYTES <= (int)WB_TREE_PAGE_BYTES, "the root record fits in a page");
_Static_assert((int)AT_ROOTS == (int)WB_TREE_QUICK_BYTES, "the quick bytes end before the roots");

static const char MAGIC[8] = "WBtree01";

/* A file has at most 2^32 pages of 2^12 bytes, so the bytes from 2^46 on are free for locks. */
#define LOCK_WRITER ((uint64_t)1 << 46)
#define LOCK_READERS (LOCK_WRITER + 1)
#define TXN_MAX ((uint64_t)1 << 60)

/* ---- the root record as bytes ------------------------------------------------------------ */

static void encode(const struct wb_tree_state *state, char bytes[WB_TREE_ROOT_BYTES])
{
    WB_CHECK(state->txn > 0);
    WB_CHECK(state->pages < WB_TREE_IN_MEMORY);
    WB_CHECK(state->pages >= 2);
    WB_CHECK(state->txn < TXN_MAX);
    memset(bytes, 0, WB_TREE_ROOT_BYTES);
    memcpy(bytes, MAGIC, sizeof MAGIC);
    wb_put64(bytes + AT_TXN, state->txn);
    wb_put32(bytes + AT_PAGES, state->pages);
    wb_put32(bytes + AT_PAGES + 4, WB_TREE_PAGE_BYTES);
    for (unsigned i = 0; i < WB_TREE_TABLES_MAX; i++) {
        char *at = bytes + AT_ROOTS + i * ROOT_BYTES;
        const struct wb_tree_root *root = &state->roots[i];
        WB_CHECK(root->ref.page < state->pages);
        WB_CHECK((root->ref.page != 0) == (root->rows != 0));
        wb_put32(at, root->ref.page);
        wb_put32(at + 4, root->level);
        wb_put64(at + 8, root->ref.check);
        wb_put64(at + 16, root->rows);
    }
    for (unsigned i = 0; i < WB_TREE_SPACE_MAX; i++) {
        wb_put32(bytes + AT_SPACE + i * REF_BYTES, state->space[i].page);
        wb_put64(bytes + AT_SPACE + i * REF_BYTES + 4, state->space[i].check);
    }
    for (unsigned i = 0; i < WB_TREE_CLASSES; i++) {
        wb_put64(bytes + AT_CLASSES + i * CLASS_BYTES, state->classes[i].from);
        wb_put64(bytes + AT_CLASSES + i * CLASS_BYTES + 8, state->classes[i].to);
        wb_put64(bytes + AT_CLASSES + i * CLASS_BYTES + 16, state->classes[i].pages);
    }
    wb_put64(bytes + AT_FREE, state->free);
    for (unsigned i = 0; i < WB_TREE_MARKS_MAX; i++) {
        WB_CHECK((state->marks[i].txn != 0) == (state->marks[i].token != 0));
        wb_put64(bytes + AT_MARKS + i * MARK_BYTES, state->marks[i].txn);
        wb_put32(bytes + AT_MARKS + i * MARK_BYTES + 8, state->marks[i].token);
    }
    wb_put64(bytes + 8, wb_hash64(bytes + 16, WB_TREE_ROOT_BYTES - 16));
}

/* The format of an intact root record; 0 if it is damaged. */
static unsigned format_of(const char bytes[WB_TREE_ROOT_BYTES])
{
    bool intact = wb_get64(bytes + 8) == wb_hash64(bytes + 16, WB_TREE_ROOT_BYTES - 16);

    return intact ? wb_mark_format(bytes, MAGIC) : 0;
}

/* Returns false if the bytes are not a valid root record. Checks also that its numbers make sense. */
static bool decode(const char bytes[WB_TREE_ROOT_BYTES], struct wb_tree_state *state_out)
{
    struct wb_tree_state *s = state_out;

    *s = (struct wb_tree_state){.txn = wb_get64(bytes + AT_TXN),
                                .pages = wb_get32(bytes + AT_PAGES),
                                .free = wb_get64(bytes + AT_FREE)};
    if (format_of(bytes) != 1 || wb_get32(bytes + AT_PAGES + 4) != WB_TREE_PAGE_BYTES ||
        s->pages < WB_TREE_FIRST_PAGE || s->pages == WB_TREE_IN_MEMORY || s->txn == 0 || s->txn >= TXN_MAX / 2)
        return false;
    for (unsigned i = 0; i < WB_TREE_TABLES_MAX; i++) {
        const char *at = bytes + AT_ROOTS + i * ROOT_BYTES;
        s->roots[i] = (struct wb_tree_root){{wb_get32(at), wb_get64(at + 8)}, wb_get32(at + 4), wb_get64(at + 16)};
        if (s->roots[i].ref.page >= s->pages || s->roots[i].level >= WB_TREE_LEVELS_MAX ||
            (s->roots[i].ref.page != 0) != (s->roots[i].rows != 0))
            return false;
    }
    for (unsigned i = 0; i < WB_TREE_SPACE_MAX; i++) {
        const char *at = bytes + AT_SPACE + i * REF_BYTES;
        s->space[i] = (struct wb_tree_ref){wb_get32(at), wb_get64(at + 4)};
        if (s->space[i].page >= s->pages)
            return false;
    }
    for (unsigned i = 0; i < WB_TREE_CLASSES; i++) {
        const char *at = bytes + AT_CLASSES + i * CLASS_BYTES;
        s->classes[i] = (struct wb_tree_class){wb_get64(at), wb_get64(at + 8), wb_get64(at + 16)};
        if (s->classes[i].from > s->classes[i].to || s->classes[i].to > s->txn)
            return false;
    }
    for (unsigned i = 0; i < WB_TREE_MARKS_MAX; i++) {
        const char *at = bytes + AT_MARKS + i * MARK_BYTES;
        s->marks[i] = (struct wb_tree_mark){wb_get64(at), wb_get32(at + 8)};
        if (s->marks[i].txn >= s->txn || (s->marks[i].txn != 0) != (s->marks[i].token != 0))
            return false;
    }
    return true;
}

/* ---- reading and writing it --------------------------------------------------------------- */

int wb_tree_usable(const struct wb_tree *tree)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    if (!tree->uncertain)
        return 0;
    return wb_fail(WB_E_IO, "%s: it is not known whether the last commit is on disk; open it again", tree->file.path);
}

/* Reads both copies and decodes those that are valid. */
static int read_copies(struct wb_tree *tree, struct wb_tree_roots *roots_out, struct wb_tree_state states_out[2])
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);

    char bytes[WB_TREE_PAGE_BYTES + WB_TREE_ROOT_BYTES] = {0};
    size_t got;
    int err = wb_file_read_at(&tree->file, 0, bytes, sizeof bytes, &got);

    if (err < 0)
        return err;
    for (unsigned i = 0; i < 2; i++) {
        memcpy(roots_out->bytes[i], bytes + i * WB_TREE_PAGE_BYTES, WB_TREE_ROOT_BYTES);
        roots_out->sound[i] = decode(roots_out->bytes[i], &states_out[i]);
    }
    return 0;
}

int wb_tree_roots_read(struct wb_tree *tree, struct wb_tree_state *state_out, struct wb_tree_roots *roots_out)
{
    struct wb_tree_state states[2];
    struct wb_tree_roots roots;

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    for (unsigned i = 0; i < TRIES; i++) {
        int err = read_copies(tree, &roots, states);
        if (err < 0)
            return err;
        if (roots.sound[0] || roots.sound[1])
            break;
        usleep(i); /* a writer may have been writing one copy when we read it, and then the other */
    }
    if (roots_out)
        *roots_out = roots;
    for (unsigned i = 0; i < 2 && !roots.sound[0] && !roots.sound[1]; i++)
        if (format_of(roots.bytes[i]) > 1)
            return wb_fail_format(tree->file.path, format_of(roots.bytes[i]), 1);
    if (!roots.sound[0] && !roots.sound[1])
        return wb_fail(WB_E_CORRUPT, "%s is damaged: neither copy of its root record matches its checksum",
                       tree->file.path);
    unsigned newer = !roots.sound[0] || (roots.sound[1] && states[1].txn > states[0].txn);
    *state_out = states[newer];
    tree->newest = states[newer];
    tree->quick = newer == 0;
    memcpy(tree->quick_bytes, roots.bytes[0], sizeof tree->quick_bytes);
    return 0;
}

int wb_tree_root_write(struct wb_tree *tree, unsigned copy, const struct wb_tree_state *state)
{
    char page[WB_TREE_PAGE_BYTES] = {0};

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(state->txn > 0);
    WB_CHECK(tree->writable);
    WB_CHECK(tree->writing);
    WB_CHECK(copy < 2);
    encode(state, page);
    return wb_file_write_at(&tree->file, (uint64_t)copy * WB_TREE_PAGE_BYTES, page, sizeof page);
}

void wb_tree_adopt(struct wb_tree *tree, const struct wb_tree_state *state)
{
    char bytes[WB_TREE_ROOT_BYTES];

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(state->txn >= tree->newest.txn);
    encode(state, bytes);
    tree->newest = *state;
    tree->quick = true;
    memcpy(tree->quick_bytes, bytes, sizeof tree->quick_bytes);
}

/* Whether the root record is still the one that we read last. Its beginning has its checksum, which is enough. */
static int is_newest(struct wb_tree *tree, bool *newest_out)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);

    char bytes[WB_TREE_QUICK_BYTES];
    size_t got;
    int err = wb_file_read_at(&tree->file, 0, bytes, sizeof bytes, &got);

    *newest_out = err == 0 && got == sizeof bytes && tree->quick && memcmp(bytes, tree->quick_bytes, sizeof bytes) == 0;
    return err;
}

int wb_tree_look(struct wb_tree *tree, struct wb_tree_state *state_out)
{
    bool newest = false;
    int err = wb_tree_usable(tree);

    if (err == 0)
        err = is_newest(tree, &newest);
    if (err == 0 && !newest)
        err = wb_tree_roots_read(tree, state_out, NULL);
    else if (err == 0)
        *state_out = tree->newest;
    return err;
}

bool wb_tree_moved(struct wb_tree *tree, uint64_t txn)
{
    struct wb_tree_state state;
    struct wb_error_copy why;

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(txn > 0);
    wb_error_save(WB_E_CORRUPT, &why); /* if it really is damage, the caller still needs its message */
    bool moved = wb_tree_look(tree, &state) == 0 && state.txn != txn;
    wb_error_restore(&why);
    return moved;
}

/* ---- holding a state ------------------------------------------------------------------------ */

static struct wb_tree_held *find_held(struct wb_tree *tree, uint64_t txn)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(txn > 0);
    WB_CHECK(txn < TXN_MAX);
    for (size_t i = 0; i < tree->held.count; i++)
        if (tree->held.items[i].txn == txn)
            return &tree->held.items[i];
    return NULL;
}

/* Locks the number of a state, or counts once more if this handle has locked it already. */
static int lock_state(struct wb_tree *tree, uint64_t txn)
{
    struct wb_tree_held *held = find_held(tree, txn);
    int err;

    if (held) {
        held->count++;
        return 0;
    }
    err = wb_vec_reserve(&tree->held, tree->held.count + 1);
    if (err == 0)
        err = wb_bytelock_share(&tree->file, LOCK_READERS + txn);
    return err < 0 ? err : wb_vec_push(&tree->held, (struct wb_tree_held){txn, 1});
}

void wb_tree_let_go(struct wb_tree *tree, uint64_t txn)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(tree->pid == getpid());

    struct wb_tree_held *held = find_held(tree, txn);

    WB_CHECK(held);
    WB_CHECK(held->count > 0);
    if (--held->count > 0)
        return;
    wb_bytelock_release(&tree->file, LOCK_READERS + txn);
    *held = wb_vec_pop(&tree->held);
}

int wb_tree_hold(struct wb_tree *tree, struct wb_tree_state *state_out)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(tree->pid == getpid());

    struct wb_tree_state again;
    int err = wb_tree_look(tree, state_out);

    /*
     * Pages of our state are reused only by a transaction that starts after a newer state
     * was committed. So if our state is still the newest one now that we have the lock,
     * every such transaction will see the lock. Otherwise try again with the newer state.
     */
    for (unsigned i = 0; err == 0 && i < TRIES; i++) {
        err = lock_state(tree, state_out->txn);
        if (err < 0)
            return err;
        err = wb_tree_look(tree, &again);
        if (err == 0 && again.txn == state_out->txn)
            return 0;
        wb_tree_let_go(tree, state_out->txn);
        *state_out = again;
    }
    return err < 0 ? err : wb_fail(WB_E_BUSY, "%s changes too fast to be read", tree->file.path);
}

int wb_tree_first_held(struct wb_tree *tree, uint64_t from, uint64_t to, uint64_t *txn_out)
{
    uint64_t at;

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(from <= to);
    WB_CHECK(to <= TXN_MAX);
    int found = wb_bytelock_first(&tree->file, LOCK_READERS + from, LOCK_READERS + to, &at);
    *txn_out = found > 0 ? at - LOCK_READERS : UINT64_MAX;
    /* The kernel does not report our own locks to us. */
    for (size_t i = 0; i < tree->held.count && found >= 0; i++) {
        uint64_t txn = tree->held.items[i].txn;
        if (txn >= from && txn < to && txn < *txn_out) {
            *txn_out = txn;
            found = 1;
        }
    }
    return found;
}

int wb_tree_oldest(struct wb_tree *tree, uint64_t *txn_out)
{
    int found = wb_tree_first_held(tree, 0, TXN_MAX, txn_out);

    return found < 0 ? found : 0;
}

int wb_tree_lock_writer(struct wb_tree *tree)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(tree->writable);
    WB_CHECK(tree->pid == getpid());
    return wb_bytelock_take(&tree->file, LOCK_WRITER);
}

void wb_tree_unlock_writer(struct wb_tree *tree)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(!tree->writing);
    wb_bytelock_release(&tree->file, LOCK_WRITER);
}

int wb_tree_writer_busy(struct wb_tree *tree)
{
    uint64_t at;

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    return wb_bytelock_first(&tree->file, LOCK_WRITER, LOCK_WRITER + 1, &at);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Writes an empty tree, and syncs the file; the caller syncs the directory. */
static int write_empty(struct wb_tree *tree)
{
    struct wb_tree_state empty = {.txn = 1, .pages = WB_TREE_FIRST_PAGE};
    int err;

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(!tree->writing);
    WB_CHECK(tree->writable);
    tree->writing = true;
    err = wb_tree_root_write(tree, 0, &empty);
    if (err == 0)
        err = wb_tree_root_write(tree, 1, &empty);
    tree->writing = false;
    return err < 0 ? err : wb_file_sync(&tree->file);
}

int wb_tree_open(const char *path, enum wb_tree_mode mode, struct wb_tree **tree_out)
{
    WB_CHECK(mode <= WB_TREE_CREATE);

    static const unsigned flags[] = {WB_FILE_READ, WB_FILE_WRITE, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_TRUNCATE};
    struct wb_tree *tree = wb_alloc_zero(1, sizeof *tree);
    struct wb_tree_state state;
    int err;

    *tree_out = NULL;
    if (!tree)
        return WB_E_NOMEM;
    tree->magic = WB_TREE_MAGIC;
    tree->writable = mode != WB_TREE_READ;
    tree->pid = getpid();
    err = wb_file_open(path, flags[mode], &tree->file);
    if (err == WB_E_NOTFOUND)
        err = wb_fail(WB_E_CORRUPT, "%s is missing", path);
    if (err == 0 && mode == WB_TREE_CREATE)
        err = write_empty(tree);
    if (err == 0)
        err = wb_tree_roots_read(tree, &state, NULL);
    if (err < 0)
        wb_tree_close(tree);
    else
        *tree_out = tree;
    return err;
}

void wb_tree_close(struct wb_tree *tree)
{
    if (!tree)
        return;
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(!tree->writing);
    wb_tree_nodes_release(tree);
    wb_tree_space_release(&tree->space);
    wb_file_close(&tree->file); /* which also gives up all locks */
    wb_free(tree->out.bytes);
    wb_vec_release(&tree->held);
    tree->magic = 0;
    wb_free(tree);
}

const char *wb_tree_path(const struct wb_tree *tree)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    return tree->file.path;
}
