/*
 * test_store_loader.c - making repositories of files and rows: what is foreign is refused or harmless, directories of
 * others are left alone, and a loader that is killed leaves what the next one, or a conversion, empties.
 */
#include "state_support.h"
#include "os/path.h"

#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- a repository in pieces
 * --------------------------------------------------------------------------------------------- */

struct pieces {
    char from[DIR_MAX];
    struct shelf shelf;
    struct wb_store_state *state;
    struct {
        char name[DIR_MAX];
        struct wb_buf bytes;
    } smalls[16];
    size_t small_count;
    char file[DIR_MAX]; /* the name of one that has pages */
};

static int look_at_file(void *context, const struct wb_store_state_file *file)
{
    struct pieces *p = context;

    if (!strstr(file->name, ".dw"))
        snprintf(p->file, sizeof p->file, "%s", file->name);
    return 0;
}

static int gather_small(void *context, const char *name, struct wb_slice bytes)
{
    struct pieces *p = context;

    must(p->small_count < COUNT(p->smalls));
    snprintf(p->smalls[p->small_count].name, DIR_MAX, "%s", name);
    p->smalls[p->small_count].bytes = WB_BUF_INIT;
    return wb_buf_append_slice(&p->smalls[p->small_count++].bytes, bytes);
}

static void take_pieces(struct pieces *p, size_t design, uint64_t *chance)
{
    p->small_count = 0;
    test_dir(p->from);
    make_source(p->from, design, chance);
    shelf_init(&p->shelf);
    p->state = shelf_hold(&p->shelf, p->from);
    shelf_add(&p->shelf, p->state, p->from, false);
    must_ok(wb_store_state_each_small(p->state, gather_small, p));
    must_ok(wb_store_state_each_file(p->state, look_at_file, p));
}

static void drop_pieces(struct pieces *p)
{
    wb_store_state_let_go(p->state);
    shelf_release(&p->shelf);
    for (size_t i = 0; i < p->small_count; i++)
        wb_buf_release(&p->smalls[i].bytes);
    remove_tree(p->from);
}

/* What is different from the pieces. */
struct change {
    size_t without_small;     /* the number of one, counted from 1 */
    size_t part, without_row; /* the same */
    size_t twice_row;         /* comes twice */
    const char *without_file; /* a part of a name */
    const char *short_file;
    const struct shelf_row *instead; /* of row instead_at of the part, counted from 1 */
    size_t instead_at;
};

static int load_rows(const struct pieces *p, struct wb_store_loader *loader, const struct change *c)
{
    int err = 0;

    for (size_t part = 0; part < p->shelf.parts && err == 0; part++)
        for (size_t i = 0; i < p->shelf.rows[part].count && err == 0; i++) {
            const struct shelf_row *row = &p->shelf.rows[part].items[i];
            bool here = part == c->part;
            if (here && i + 1 == c->without_row)
                continue;
            if (here && i + 1 == c->instead_at)
                row = c->instead;
            for (unsigned n = here && i + 1 == c->twice_row ? 2 : 1; n > 0 && err == 0; n--)
                err = wb_store_loader_row(loader, part, row->table, wb_buf_slice(&row->key), wb_buf_slice(&row->value));
        }
    return err;
}

struct copying {
    const struct pieces *pieces;
    const struct change *change;
    const char *to;
};

static int copy_file(void *context, const struct wb_store_state_file *file)
{
    const struct copying *c = context;
    char from[DIR_MAX], to[DIR_MAX];

    if (c->change->without_file && strstr(file->name, c->change->without_file))
        return 0;
    path_in(c->pieces->shelf.dir, file->name, from);
    path_in(c->to, file->name, to);
    *strrchr(to, '/') = '\0';
    must_ok(wb_path_mkdirs(to));
    path_in(c->to, file->name, to);
    must_ok(wb_path_copy(from, to));
    if (c->change->short_file && strstr(file->name, c->change->short_file))
        must(truncate(to, (off_t)file->bytes - 1) == 0);
    return 0;
}

static int load(const struct pieces *p, const char *to, const struct change *change)
{
    struct copying copying = {p, change, to};
    struct wb_store_loader *loader;
    int err = wb_store_loader_open(to, &loader);

    if (err == 0)
        err = wb_store_state_each_file(p->state, copy_file, &copying);
    for (size_t i = 0; i < p->small_count && err == 0; i++)
        if (i + 1 != change->without_small)
            err = wb_store_loader_small(loader, p->smalls[i].name, wb_buf_slice(&p->smalls[i].bytes));
    if (err == 0)
        err = load_rows(p, loader, change);
    if (err == 0)
        err = wb_store_loader_finish(loader);
    wb_store_loader_close(loader);
    return err;
}

static void expect_refused(const struct pieces *p, const char *to, const struct change *change)
{
    int err = load(p, to, change);

    if (err != WB_E_CORRUPT)
        fail_msg("loading returned %d: without file %s, short %s, small %zu, row %zu, part %zu, twice %zu, instead %zu "
                 "of table %u",
                 err, change->without_file ? change->without_file : "-", change->short_file ? change->short_file : "-",
                 change->without_small, change->without_row, change->part, change->twice_row, change->instead_at,
                 change->instead ? change->instead->table : 0);
    must(wb_error_message()[0] != '\0' && wb_path_kind(to) == WB_PATH_NONE);
}

/* ---- what is foreign
 * ---------------------------------------------------------------------------------------------------- */

static void set(struct wb_buf *buf, const char *bytes, size_t len)
{
    wb_buf_clear(buf);
    must_ok(wb_buf_append(buf, bytes, len));
}

/* Rows that cannot be, in the place of a row in the middle. */
static void refuse_rows(const struct pieces *p, const char *to)
{
    static const unsigned tables[] = {WB_CATALOG_RETIRED, 12, 15, 16, 100, UINT32_MAX};
    const struct shelf_row *middle = &p->shelf.rows[0].items[p->shelf.rows[0].count / 2];
    struct shelf_row row = {.table = middle->table};
    struct change change = {.instead = &row, .instead_at = p->shelf.rows[0].count / 2 + 1};
    static char room[WB_TREE_VALUE_MAX + 1];

    set(&row.key, middle->key.ptr, middle->key.len);
    set(&row.value, middle->value.ptr, middle->value.len);
    for (size_t i = 0; i < COUNT(tables); i++) {
        row.table = tables[i];
        expect_refused(p, to, &change);
    }
    row.table = middle->table;
    set(&row.value, room, 0);
    expect_refused(p, to, &change);
    set(&row.value, room, WB_TREE_VALUE_MAX + 1);
    expect_refused(p, to, &change);
    set(&row.value, middle->value.ptr, middle->value.len);
    set(&row.key, room, 0);
    expect_refused(p, to, &change);
    set(&row.key, room, WB_TREE_KEY_MAX + 1);
    expect_refused(p, to, &change);
    const struct shelf_row *first = &p->shelf.rows[0].items[0]; /* comes again, out of order */
    row.table = first->table;
    set(&row.key, first->key.ptr, first->key.len);
    expect_refused(p, to, &change);
    wb_buf_release(&row.key);
    wb_buf_release(&row.value);
    expect_refused(p, to, &(struct change){.twice_row = 1});
    expect_refused(p, to, &(struct change){.twice_row = p->shelf.rows[0].count});
}

/* Rows of nodes say where files are: nowhere else than in the repository. */
static void refuse_nodes(const struct pieces *p, const char *to)
{
    static const char *const dirs[] = {"/tmp", "../x", "node7", "node1/../..", ".."};

    for (size_t part = 0; part < p->shelf.parts; part++)
        for (size_t i = 0; i < p->shelf.rows[part].count; i++) {
            const struct shelf_row *was = &p->shelf.rows[part].items[i];
            struct shelf_row row = {.table = WB_CATALOG_NODES};
            struct wb_catalog_node node;
            char value[WB_TREE_VALUE_MAX];
            if (was->table != WB_CATALOG_NODES)
                continue;
            set(&row.key, was->key.ptr, was->key.len);
            for (size_t d = 0; d <= COUNT(dirs); d++) {
                must_ok(wb_catalog_node_decode(NULL, wb_buf_slice(&was->key), wb_buf_slice(&was->value), &node));
                if (d < COUNT(dirs))
                    snprintf(node.dir, sizeof node.dir, "%s", dirs[d]);
                else
                    node.inside = false;
                set(&row.value, value, wb_catalog_node_encode(&node, value));
                expect_refused(p, to, &(struct change){.part = part, .instead = &row, .instead_at = i + 1});
            }
            wb_buf_release(&row.key);
            wb_buf_release(&row.value);
            return;
        }
}

static void test_foreign(void **state)
{
    static const size_t few[] = {0, 1, 4, 8};
    uint64_t chance = test_seed();
    char targets[DIR_MAX], to[DIR_MAX];
    static struct pieces p;

    (void)state;
    use_small_sizes(60000);
    test_dir(targets);
    path_in(targets, "to", to);
    for (size_t d = 0; d < COUNT(few); d++) {
        take_pieces(&p, few[d], &chance);
        refuse_rows(&p, to);
        refuse_nodes(&p, to);
        for (size_t i = 0; i < p.small_count; i++)
            expect_refused(&p, to, &(struct change){.without_small = i + 1});
        for (size_t part = 0; part < p.shelf.parts; part++)
            for (size_t i = 0; i < p.shelf.rows[part].count; i++)
                if (p.shelf.rows[part].items[i].table == WB_CATALOG_SUMMARY)
                    expect_refused(&p, to, &(struct change){.part = part, .without_row = i + 1});
        expect_refused(&p, to, &(struct change){.without_file = p.file});
        expect_refused(&p, to, &(struct change){.short_file = p.file});
        must_ok(load(&p, to, &(struct change){.part = 0}));
        verify_clean(to);
        compare_dirs(to, p.from);
        remove_tree(to);
        drop_pieces(&p);
    }
    use_usual_sizes();
}

static void test_names(void **state)
{
    static const char *const names[] = {"webbase",
                                        "../webbase.repo",
                                        "/webbase.repo",
                                        "node0/webbase.node",
                                        "node01/webbase.node",
                                        "node/webbase.node",
                                        "nodex/webbase.node",
                                        "node1/../webbase.node",
                                        "node4294967296/webbase.node",
                                        "update/update/webbase.repo",
                                        "update/webbase.node",
                                        "catalog.wbt",
                                        "node-1/webbase.node",
                                        "",
                                        "update/"};
    struct wb_store_loader *loader;
    char targets[DIR_MAX], to[DIR_MAX];
    static char room[5000];

    (void)state;
    test_dir(targets);
    path_in(targets, "to", to);
    must_ok(wb_store_loader_open(to, &loader));
    for (size_t i = 0; i < COUNT(names); i++)
        must(wb_store_loader_small(loader, names[i], WB_SLICE_LIT("x")) == WB_E_CORRUPT);
    must(wb_store_loader_small(loader, "webbase.repo", WB_SLICE_LIT("webbase repository\n")) == WB_E_CORRUPT);
    must(wb_store_loader_small(loader, "node1/webbase.node", wb_slice(room, sizeof room)) == WB_E_CORRUPT);
    must(wb_store_loader_finish(loader) == WB_E_CORRUPT);
    wb_store_loader_close(loader);
    must(wb_path_kind(to) == WB_PATH_NONE);
}

/* Values that are damaged: refused, or in a repository that can be asked, verified and written to. */
static void test_damaged_rows(void **state)
{
    uint64_t chance = test_seed();
    char targets[DIR_MAX], to[DIR_MAX];
    static struct pieces p;
    unsigned refused = 0, loaded = 0;

    (void)state;
    use_small_sizes(60000);
    test_dir(targets);
    path_in(targets, "to", to);
    for (unsigned round = test_rounds(200); round > 0; round--) {
        if (round % 40 == 0 || !p.state) {
            if (p.state)
                drop_pieces(&p);
            take_pieces(&p, chance_below(&chance, DESIGNS), &chance);
        }
        size_t part = chance_below(&chance, p.shelf.parts);
        struct shelf_row *row = &p.shelf.rows[part].items[chance_below(&chance, p.shelf.rows[part].count)];
        size_t at = chance_below(&chance, row->value.len);
        char was = row->value.ptr[at];
        row->value.ptr[at] = (char)(was ^ (1 << chance_below(&chance, 8)));
        int err = load(&p, to, &(struct change){.part = 0});
        row->value.ptr[at] = was;
        must(err == 0 || err == WB_E_CORRUPT);
        refused += err < 0;
        loaded += err == 0;
        if (err < 0) {
            must(wb_path_kind(to) == WB_PATH_NONE);
            continue;
        }
        verify_count(to, false);
        struct wb_store *store;
        if (wb_store_open(to, WB_STORE_WRITE, &store) == 0) {
            struct wb_store_commit_counts counts = {0};
            (void)put_spec(store, &(struct spec){.site = 1, .number = 1, .time_ms = 9000000, .size = 100});
            (void)wb_store_commit(store, &counts);
            wb_store_close(store);
        }
        remove_tree(to);
    }
    must(refused + loaded > 0);
    drop_pieces(&p);
    use_usual_sizes();
}

/* ---- directories
 * ---------------------------------------------------------------------------------------------------------- */

static void expect_no_place(const char *dir, int err, const char *why)
{
    struct wb_store_loader *loader;

    must(wb_store_loader_open(dir, &loader) == err && !loader);
    if (!strstr(wb_error_message(), why))
        fail_msg("the message is: %s", wb_error_message());
}

static void test_directories(void **state)
{
    char base[DIR_MAX], dir[DIR_MAX], inside[DIR_MAX], file[DIR_MAX];
    struct wb_store_options options = {.nodes = {NULL, 2}};
    struct wb_store_loader *loader;

    (void)state;
    test_dir(base);
    path_in(base, "repository", dir);
    must_ok(wb_store_create(dir, &options));
    uint64_t before = hash_tree(dir);
    expect_no_place(dir, WB_E_INVALID, "already");
    path_in(dir, "x", inside);
    expect_no_place(inside, WB_E_INVALID, "is one");
    path_in(dir, "node1", inside);
    expect_no_place(inside, WB_E_INVALID, dir);
    must(hash_tree(dir) == before);
    path_in(base, "thesis", dir);
    must(mkdir(dir, 0777) == 0);
    path_in(dir, "text", file);
    must_ok(wb_path_replace(file, WB_SLICE_LIT("years of work")));
    expect_no_place(dir, WB_E_INVALID, "not empty");
    expect_no_place(file, WB_E_INVALID, "not a directory");
    must(file_bytes(file) == 13);
    path_in(base, "missing/x", dir);
    expect_no_place(dir, WB_E_INVALID, "does not exist");
    expect_no_place("", WB_E_INVALID, "no name");
    path_in(base, "empty", dir);
    must(mkdir(dir, 0777) == 0);
    must_ok(wb_store_loader_open(dir, &loader));
    expect_no_place(dir, WB_E_BUSY, "another process");
    struct wb_store *store;
    must(wb_store_open(dir, WB_STORE_READ, &store) == WB_E_INVALID && strstr(wb_error_message(), "unfinished"));
    path_in(dir, "journal", inside); /* whoever uses the loader adds what it does not know */
    must(mkdir(inside, 0777) == 0);
    wb_store_loader_close(loader);
    must(wb_path_kind(dir) == WB_PATH_DIR && rmdir(dir) == 0); /* it was there, and is empty again */
}

/* ---- killed
 * ----------------------------------------------------------------------------------------------------------------- */

struct killing {
    const struct pieces *pieces;
    const char *to;
};

static int load_child(void *context)
{
    const struct killing *k = context;

    must_ok(load(k->pieces, k->to, &(struct change){.part = 0}));
    return 0;
}

static void test_killed(void **state)
{
    uint64_t chance = test_seed();
    char targets[DIR_MAX], to[DIR_MAX], path[DIR_MAX];
    static struct pieces p;
    struct killing k = {&p, to};
    unsigned unfinished = 0, rounds = test_rounds(40);

    (void)state;
    use_small_sizes(60000);
    test_dir(targets);
    path_in(targets, "to", to);
    for (unsigned round = 0; round < rounds || unfinished == 0; round++) {
        struct timespec began, ended;
        struct wb_store *store = NULL;
        if (round % 8 == 0) {
            if (round)
                drop_pieces(&p);
            take_pieces(&p, chance_below(&chance, DESIGNS), &chance);
        }
        clock_gettime(CLOCK_MONOTONIC, &began);
        must(run_child(load_child, &k) == 0);
        clock_gettime(CLOCK_MONOTONIC, &ended);
        remove_tree(to);
        uint64_t us = (uint64_t)((ended.tv_sec - began.tv_sec) * 1000000 + (ended.tv_nsec - began.tv_nsec) / 1000);
        pid_t child = start_child(load_child, &k);
        usleep((useconds_t)chance_below(&chance, us + 1));
        kill(child, SIGKILL);
        end_child(child);
        int err = wb_store_open(to, WB_STORE_READ, &store);
        must(err == 0 || err == WB_E_INVALID || err == WB_E_NOTFOUND);
        wb_store_close(store);
        unfinished += err == WB_E_INVALID;
        if (err == WB_E_INVALID && chance_one_in(&chance, 4)) { /* what others have put there stays */
            path_in(to, "thesis", path);
            must_ok(wb_path_replace(path, WB_SLICE_LIT("years of work")));
            must(load(&p, to, &(struct change){.part = 0}) == WB_E_INVALID && file_bytes(path) == 13);
            must(unlink(path) == 0);
        }
        if (err < 0 && chance_one_in(&chance, 3))
            convert(p.from, to, 0);
        else if (err < 0)
            must_ok(load(&p, to, &(struct change){.part = 0}));
        verify_clean(to);
        remove_tree(to);
    }
    drop_pieces(&p);
    use_usual_sizes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_foreign),     cmocka_unit_test(test_names),  cmocka_unit_test(test_damaged_rows),
        cmocka_unit_test(test_directories), cmocka_unit_test(test_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
