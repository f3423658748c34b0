/*
 * fuzz_tree.c - arbitrary bytes as the pages of a catalog tree.
 *
 * The first byte is the level of the root page; the second says whether checksums and page
 * numbers are corrected first (1), because a fuzzer cannot guess them. The rest are pages, of
 * which the first is the root; a root record and a free-space map are added. Then the tree is
 * read, compared with one whose root is another page, checked, changed and read again.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "tree/tree_own.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES_MAX = 12, FIRST = 2, TABLE = 0 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    char pages[FIRST + PAGES_MAX + 2][WB_TREE_PAGE_BYTES];
    bool mended[FIRST + PAGES_MAX];
    uint32_t count;
};

static uint64_t hash_of(const char *page)
{
    return wb_hash64(page, WB_TREE_PAGE_BYTES);
}

/* Corrects page number, kind, level and table of a page, and the checksums in its pointers; each page once. */
static void mend(struct input *in, uint32_t number, unsigned level)
{
    char *page = in->pages[number];

    if (in->mended[number])
        return;
    in->mended[number] = true;
    wb_tree_page_stamp(page, number, 1);
    page[6] = WB_TREE_KIND_TREE;
    page[7] = (char)level;
    wb_put16(page + 16, TABLE);
    for (unsigned i = 0;
         level > 0 && i < wb_tree_page_count(page) && WB_TREE_HEADER_BYTES + 2 * i + 2 <= WB_TREE_PAGE_BYTES; i++) {
        unsigned at = wb_get16(page + WB_TREE_HEADER_BYTES + 2 * i);
        if (at + 14 > WB_TREE_PAGE_BYTES || at < WB_TREE_HEADER_BYTES + 2 * i)
            continue;
        uint32_t below = FIRST + wb_get32(page + at) % in->count;
        wb_put32(page + at, below);
        mend(in, below, level - 1);
        wb_put64(page + at + 4, hash_of(in->pages[below]));
    }
}

/* A free-space map in which all pages are in use. */
static void add_space(struct input *in, struct wb_tree_state *state)
{
    uint32_t map = FIRST + in->count, index = map + 1;
    char *page = in->pages[map], *refs = in->pages[index] + WB_TREE_HEADER_BYTES;

    wb_tree_page_init(page, WB_TREE_KIND_SPACE, 0, 0);
    memset(page + WB_TREE_HEADER_BYTES, 0x11, (index + 1) / 2);
    page[WB_TREE_HEADER_BYTES + (index + 1) / 2] = (char)((index + 1) % 2);
    wb_tree_page_stamp(page, map, 1);
    wb_tree_page_init(in->pages[index], WB_TREE_KIND_SPACE_INDEX, 0, 0);
    wb_put32(refs, map);
    wb_put64(refs + 4, hash_of(page));
    wb_tree_page_stamp(in->pages[index], index, 1);
    state->space[0] = (struct wb_tree_ref){index, hash_of(in->pages[index])};
    state->pages = index + 1;
}

static int see_row(void *context, struct wb_slice key, struct wb_slice value)
{
    uint64_t *rows = context;

    WB_CHECK(key.len > 0 && key.len <= WB_TREE_KEY_MAX && value.len <= WB_TREE_VALUE_MAX);
    (*rows)++;
    return 0;
}

static void read_all(struct wb_tree *tree, const struct wb_tree_state *state)
{
    char value[WB_TREE_VALUE_MAX];
    uint64_t rows = 0;
    size_t len;

    WB_CHECK(wb_tree_check(tree, state, NULL, NULL) == 0);
    int err = wb_tree_each(tree, state, TABLE, see_row, &rows);
    WB_CHECK(err == 0 || err == WB_E_CORRUPT);
    err = wb_tree_get(tree, state, TABLE, WB_SLICE_LIT("key"), value, sizeof value, &len);
    WB_CHECK(err == 0 || err == WB_E_CORRUPT || err == WB_E_NOTFOUND);
}

/* What differs from a state whose root is the last page. */
static void compare_all(struct wb_tree *tree, const struct wb_tree_state *state, const struct input *in)
{
    struct wb_tree_state other = *state;
    const char *page = in->pages[FIRST + in->count - 1];
    uint64_t rows = 0;

    other.roots[TABLE] = (struct wb_tree_root){.ref = {FIRST + in->count - 1, hash_of(page)}, .rows = 3};
    other.roots[TABLE].level = wb_tree_page_level(page) % WB_TREE_LEVELS_MAX;
    int err = wb_tree_diff(tree, state, &other, TABLE, see_row, &rows);
    WB_CHECK(err == 0 || err == WB_E_CORRUPT);
    err = wb_tree_diff(tree, &other, state, TABLE, see_row, &rows);
    WB_CHECK(err == 0 || err == WB_E_CORRUPT);
}

static void change_all(struct wb_tree *tree)
{
    char key[16] = "key", value[700] = {0};
    int err = wb_tree_begin(tree);

    WB_CHECK(err == 0 || err == WB_E_CORRUPT);
    for (unsigned i = 0; err == 0 && i < 40; i++) {
        key[3] = (char)(i * 37);
        int one = i % 3 == 2 ? wb_tree_delete(tree, TABLE, wb_slice(key, i % 16 + 1))
                             : wb_tree_put(tree, TABLE, wb_slice(key, i % 16 + 1), wb_slice(value, i * 17));
        WB_CHECK(one == 0 || one == WB_E_CORRUPT || one == WB_E_NOTFOUND || one == WB_E_IO);
    }
    if (err == 0 && key[3] % 2)
        (void)wb_tree_clear(tree, TABLE);
    if (err == 0)
        (void)wb_tree_commit(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct input in;
    struct wb_tree_state state = {.txn = 2};
    struct wb_tree *tree;
    char path[64];

    if (size < 3)
        return 0;
    memset(&in, 0, sizeof in);
    size -= 2;
    if (size > PAGES_MAX * WB_TREE_PAGE_BYTES)
        size = PAGES_MAX * WB_TREE_PAGE_BYTES;
    in.count = (uint32_t)((size + WB_TREE_PAGE_BYTES - 1) / WB_TREE_PAGE_BYTES);
    memcpy(in.pages[FIRST], data + 2, size);
    state.roots[TABLE] = (struct wb_tree_root){.level = data[0] % 4, .rows = 3};
    if (data[1] & 1)
        mend(&in, FIRST, state.roots[TABLE].level);
    state.roots[TABLE].ref = (struct wb_tree_ref){FIRST, hash_of(in.pages[FIRST])};
    add_space(&in, &state);

    int fd = memfd_create("tree", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    WB_CHECK(fd >= 0 && wb_tree_open(path, WB_TREE_CREATE, &tree) == 0);
    WB_CHECK(wb_file_write_at(&tree->file, FIRST * WB_TREE_PAGE_BYTES, in.pages[FIRST],
                              (size_t)(in.count + 2) * WB_TREE_PAGE_BYTES) == 0);
    tree->writing = true;
    WB_CHECK(wb_tree_root_write(tree, 0, &state) == 0 && wb_tree_root_write(tree, 1, &state) == 0);
    tree->writing = false;
    for (unsigned i = 0; i < 3; i++) {
        WB_CHECK(wb_tree_look(tree, &state) == 0);
        read_all(tree, &state);
        compare_all(tree, &state, &in);
        change_all(tree);
    }
    wb_tree_close(tree);
    close(fd);
    return 0;
}
