/*
 * fuzz_loader.c - arbitrary rows of a repository that is made of files and rows (store/store_state.h). The first byte
 * says which design it has, and whether the rest is a mark (bit 7), whose checksum is corrected, or rows, one after the
 * other:
 *
 *   table, and the part in bit 7 (1)   length of the key (2, little-endian)   length of the value (2)   key   value
 *
 * What the loader takes must be a repository that can be opened, verified, read and written to, or say what is wrong.
 */
#include "../tests/unit/removetree.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "os/file.h"
#include "os/path.h"
#include "place/place.h"
#include "store/store.h"
#include "store/store_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS_MAX = 200, SMALL_MAX = 4096 };

static char base[MEMORY_DIR_MAX], dir[MEMORY_DIR_MAX + 8];

static void remove_base(void)
{
    nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_base(void)
{
    if (base[0])
        return;
    snprintf(base, sizeof base, "/dev/shm/webbase-fuzz-XXXXXX");
    if (!mkdtemp(base)) {
        snprintf(base, sizeof base, "/tmp/webbase-fuzz-XXXXXX");
        WB_CHECK(mkdtemp(base));
    }
    atexit(remove_base);
    snprintf(dir, sizeof dir, "%s/copy", base);
}

static bool went_well(int err)
{
    WB_CHECK(err <= 0);
    WB_CHECK(err == 0 || wb_error_message()[0] != '\0');
    return err == 0;
}

/* ---- small files ---------------------------------------------------------------------------------------------- */

static void add_superblock(struct wb_store_loader *loader, const char *name, const struct wb_design *design)
{
    struct wb_superblock superblock = {.design = *design, .created_ms = 1000};
    struct wb_buf bytes = WB_BUF_INIT;
    char path[sizeof base + 32];

    memset(superblock.id, 7, sizeof superblock.id);
    WB_CHECK(wb_superblock_write(base, &superblock) == 0);
    snprintf(path, sizeof path, "%s/" WB_SUPERBLOCK_NAME, base);
    WB_CHECK(wb_path_read(path, SMALL_MAX, &bytes) == 0 && wb_path_unlink(path) == 0);
    WB_CHECK(went_well(wb_store_loader_small(loader, name, wb_buf_slice(&bytes))));
    wb_buf_release(&bytes);
}

static void add_smalls(struct wb_store_loader *loader, const struct wb_design *design)
{
    struct wb_node_identity identity = {.number = 1};
    struct wb_buf bytes = WB_BUF_INIT;

    memset(identity.repository, 7, sizeof identity.repository);
    memset(identity.id, 1, sizeof identity.id);
    add_superblock(loader, "webbase.repo", design);
    if (design->batch)
        add_superblock(loader, "update/webbase.repo", &(struct wb_design){.read = design->update});
    WB_CHECK(wb_node_identity_format(&identity, &bytes) == 0);
    WB_CHECK(went_well(wb_store_loader_small(loader, "node1/webbase.node", wb_buf_slice(&bytes))));
    wb_buf_release(&bytes);
}

/* Files that rows can speak of; there is nothing in them. */
static void add_files(void)
{
    static const char *const names[] = {"00000001.seg", "00000001.1.bkt", "00000001.1.dw"};
    char path[sizeof dir + 32];

    snprintf(path, sizeof path, "%s/" WB_NODE_DIR, dir);
    WB_CHECK(wb_path_mkdirs(path) == 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct wb_file file;
        snprintf(path, sizeof path, "%s/" WB_NODE_DIR "/%s", dir, names[i]);
        WB_CHECK(wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &file) == 0);
        WB_CHECK(wb_file_truncate(&file, 1 << 20) == 0);
        wb_file_close(&file);
    }
}

/* ---- using what was made
 * ------------------------------------------------------------------------------------------------ */

static int see_row(void *context, unsigned table, struct wb_slice key, struct wb_slice value)
{
    (void)table;
    *(uint64_t *)context += key.len + value.len;
    return 0;
}

static int see_file(void *context, const struct wb_store_state_file *file)
{
    *(uint64_t *)context += file->bytes;
    return 0;
}

static void use_repository(void)
{
    struct wb_store_verify_counts counts;
    struct wb_store_state *state;
    struct wb_store *store;
    struct wb_store_stat stat;
    uint64_t seen = 0;

    (void)went_well(wb_store_verify(dir, NULL, NULL, NULL, NULL, &counts));
    if (went_well(wb_store_state_hold(dir, NULL, &state))) {
        (void)went_well(wb_store_state_rows(state, 0, see_row, &seen));
        (void)went_well(wb_store_state_each_file(state, see_file, &seen));
        wb_store_state_let_go(state);
    }
    for (unsigned mode = 0; mode < 2; mode++)
        if (went_well(wb_store_open(dir, mode ? WB_STORE_WRITE : WB_STORE_READ, &store))) {
            struct wb_store_commit_counts committed = {0};
            (void)went_well(wb_store_stat(store, &stat));
            if (mode)
                (void)went_well(wb_store_commit(store, &committed));
            wb_store_close(store);
        }
}

/* ---- marks
 * ------------------------------------------------------------------------------------------------------------- */

static void try_mark(const uint8_t *data, size_t size)
{
    struct wb_store_options options = {.history = {0}};
    struct wb_store_state *state;
    uint64_t seen = 0;
    char id[WB_STORE_ID_HEX + 1], *bytes = malloc(size + 8);

    WB_CHECK(bytes && wb_store_create(dir, &options) == 0 && wb_store_id(dir, id) == 0);
    WB_CHECK(wb_store_state_hold(dir, NULL, &state) == 0);
    memcpy(bytes, data, size);
    for (size_t i = 0; i < WB_STORE_ID_HEX / 2 && 6 + i < size; i++) { /* of this repository */
        unsigned value = 0;
        sscanf(id + 2 * i, "%2x", &value);
        bytes[6 + i] = (char)value;
    }
    wb_put64(bytes + size, wb_hash64(bytes, size));
    (void)wb_store_state_rows_since_mark(state, 0, wb_slice(bytes, size + 8), see_row, &seen);
    WB_CHECK(went_well(wb_store_unmark(dir, wb_slice(bytes, size + 8))));
    struct wb_buf since = {bytes, size + 8, size + 8};
    wb_store_state_let_go(state);
    WB_CHECK(wb_store_state_hold(dir, &since, &state) == 0);
    wb_store_state_let_go(state);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_store_loader *loader;
    struct wb_design design;
    int err = 0;

    if (size < 2)
        return 0;
    make_base();
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (data[0] & 128) {
        try_mark(data + 1, size - 1);
        return 0;
    }
    WB_CHECK(wb_design_nth(data[0] % 42, &design));
    WB_CHECK(went_well(wb_store_loader_open(dir, &loader)));
    add_smalls(loader, &design);
    add_files();
    size_t at = 1;
    for (unsigned rows = 0; err == 0 && rows < ROWS_MAX && size - at >= 5; rows++) {
        size_t key = wb_get16(data + at + 1), value = wb_get16(data + at + 3), room = size - at - 5;
        uint8_t table = data[at];
        key = key < room ? key : room;
        value = value < room - key ? value : room - key;
        err = wb_store_loader_row(loader, table >> 7, table & 127, wb_slice((const char *)data + at + 5, key),
                                  wb_slice((const char *)data + at + 5 + key, value));
        (void)went_well(err);
        at += 5 + key + value;
    }
    if (err == 0)
        err = wb_store_loader_finish(loader);
    wb_store_loader_close(loader);
    WB_CHECK(went_well(err) == wb_store_exists(dir));
    if (err == 0)
        use_repository();
    else
        WB_CHECK(wb_path_kind(dir) == WB_PATH_NONE);
    return 0;
}
