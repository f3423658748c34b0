/*
 * test_vaultrestore.c - restores of vaults that a test has made (madevault.h): the same repository comes back, or
 * nothing. Each object is damaged, each operation on a file fails, the process is killed at each of them, and shipments
 * lie.
 */
#include "../faultkinds.h"
#include "madevault.h"
#include "os/folder.h"
#include "os/path.h"
#include "vault/vault.h"
#include "vault/vaultrows.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static int restore(const char *vault, const char *to)
{
    struct wb_vault_restored restored;
    char url[DIR_MAX + 8];

    vault_url(vault, url);
    return wb_vault_restore(url, to, -1, NULL, NULL, &restored);
}

static bool is_absent(const char *dir)
{
    bool empty = false;

    return wb_path_kind(dir) == WB_PATH_NONE || (wb_folder_is_empty(dir, &empty) == 0 && empty);
}

static void expect_file(const char *dir, const char *name, size_t bytes)
{
    struct wb_buf got = WB_BUF_INIT;
    char path[DIR_MAX];

    path_in(dir, name, path);
    must_ok(wb_path_read(path, 1 << 20, &got));
    must(got.len == bytes);
    for (size_t i = 0; i < bytes; i++)
        must((uint8_t)got.ptr[i] == made_vault_journal_byte(i));
    wb_buf_release(&got);
}

/* `to` is what the original is. */
static void expect_restored(const char *from, const char *to)
{
    verify_clean(to);
    compare_dirs(to, from);
    expect_file(to, MADE_VAULT_JOURNAL, MADE_VAULT_JOURNAL_BYTES);
    expect_file(to, MADE_VAULT_EMPTY, 0);
}

/* A repository of a design, its vault, and where it is to be restored. */
struct case_dirs {
    char from[DIR_MAX], vault[DIR_MAX], targets[DIR_MAX], to[DIR_MAX];
};

static void make_case(struct case_dirs *dirs, size_t design, uint64_t *chance)
{
    test_dir(dirs->from);
    test_dir(dirs->vault);
    test_dir(dirs->targets);
    path_in(dirs->targets, "to", dirs->to);
    make_source(dirs->from, design, chance);
    make_vault(dirs->from, dirs->vault, chance);
}

/* ---- the same comes back --------------------------------------------------------------------------------- */

static void test_all_designs(void **state)
{
    uint64_t chance = test_seed();
    struct case_dirs dirs;

    (void)state;
    use_small_sizes(60000);
    for (unsigned round = 0; round < test_rounds(4); round++)
        for (size_t i = 0; i < DESIGNS; i++) {
            print_message("# %s\n", designs[i].design);
            make_case(&dirs, i, &chance);
            must_ok(restore(dirs.vault, dirs.to));
            expect_restored(dirs.from, dirs.to);
            go_on(dirs.to, options_of(i).design.batch, dirs.from, options_of(i).design.batch, chance);
            must(restore(dirs.vault, dirs.to) == WB_E_INVALID);
            verify_clean(dirs.to);
            must_ok(remove_tree(dirs.to));
        }
    use_usual_sizes();
}

/* ---- damage ---------------------------------------------------------------------------------------------- */

struct objects {
    const char *vault;
    WB_VEC(char *) paths;
};

static int keep_path(void *context, const char *name, uint64_t size)
{
    struct objects *objects = context;
    char path[DIR_MAX];

    (void)size;
    path_in(objects->vault, name, path);
    char *copy = strdup(path);
    must(copy != NULL);
    return wb_vec_push(&objects->paths, copy);
}

static struct objects list_objects(const char *vault)
{
    struct objects objects = {.vault = vault};
    struct wb_object_store *store;
    char url[DIR_MAX + 8];

    vault_url(vault, url);
    must_ok(wb_object_open(url, NULL, &store));
    must_ok(wb_object_list(store, "", keep_path, &objects));
    wb_object_close(store);
    must(objects.paths.count > 5);
    return objects;
}

struct findings {
    unsigned problems, notes;
    char object[WB_OBJECT_NAME_MAX];
};

static void on_found(void *context, bool problem, const char *object, const char *message)
{
    struct findings *findings = context;

    must(message[0] != '\0');
    findings->problems += problem;
    findings->notes += !problem;
    snprintf(findings->object, sizeof findings->object, "%s", object);
}

static struct findings verify_vault(const char *vault)
{
    struct findings findings = {.problems = 0};
    uint64_t objects, bytes;
    char url[DIR_MAX + 8];

    vault_url(vault, url);
    must_ok(wb_vault_verify(url, on_found, &findings, &objects, &bytes));
    return findings;
}

/* Flips a byte, cuts the object short, or removes it. Returns what it was. */
static struct wb_buf spoil(const char *path, uint64_t *chance)
{
    struct wb_buf was = WB_BUF_INIT, now = WB_BUF_INIT;

    must_ok(wb_path_read(path, WB_OBJECT_MAX, &was));
    must_ok(wb_buf_append_slice(&now, wb_buf_slice(&was)));
    switch (chance_below(chance, 5)) {
    case 0:
        now.len = (size_t)chance_below(chance, now.len);
        must_ok(wb_path_replace(path, wb_buf_slice(&now)));
        break;
    case 1:
        must_ok(wb_path_unlink(path));
        break;
    default:
        now.ptr[chance_below(chance, now.len)] ^= (char)(1 << chance_below(chance, 8));
        must_ok(wb_path_replace(path, wb_buf_slice(&now)));
    }
    wb_buf_release(&now);
    return was;
}

static void test_damage(void **state)
{
    uint64_t chance = test_seed();
    struct case_dirs dirs;

    (void)state;
    use_small_sizes(60000);
    make_case(&dirs, (size_t)chance_below(&chance, DESIGNS), &chance);
    struct objects objects = list_objects(dirs.vault);
    struct findings sound = verify_vault(dirs.vault);
    must(sound.problems == 0 && sound.notes == 0);
    for (size_t i = 0; i < objects.paths.count; i += (size_t)test_stride_of(&chance, objects.paths.count)) {
        const char *path = objects.paths.items[i], *name = strrchr(path, '/') + 1;
        struct wb_buf was = spoil(path, &chance);
        must(restore(dirs.vault, dirs.to) < 0);
        must(strstr(wb_error_message(), strcmp(name, WB_VAULT_HEAD_NAME) ? name : dirs.vault) != NULL);
        must(is_absent(dirs.to));
        if (strcmp(name, WB_VAULT_HEAD_NAME) != 0 || wb_path_kind(path) != WB_PATH_NONE) {
            struct findings findings = verify_vault(dirs.vault);
            must(findings.problems == 1 && findings.notes == 0);
            must(strcmp(strrchr(findings.object, '/') ? strrchr(findings.object, '/') + 1 : findings.object, name) ==
                 0);
        }
        must_ok(wb_path_replace(path, wb_buf_slice(&was)));
        wb_buf_release(&was);
    }
    must_ok(restore(dirs.vault, dirs.to));
    expect_restored(dirs.from, dirs.to);
    for (size_t i = 0; i < objects.paths.count; i++)
        free(objects.paths.items[i]);
    wb_vec_release(&objects.paths);
    use_usual_sizes();
}

/* ---- failures -------------------------------------------------------------------------------------------- */

/* The nth operation on a file fails, for every n. Other threads work at the same time, so n is not always the same one.
 */
static void test_failures(void **state)
{
    uint64_t chance = test_seed();
    struct case_dirs dirs;
    unsigned struck = 0;

    (void)state;
    use_small_sizes(60000);
    make_case(&dirs, (size_t)chance_below(&chance, DESIGNS), &chance);
    for (size_t kind = 0; kind < COUNT(fault_kinds); kind++)
        for (uint64_t n = 1;; n += test_stride(&chance)) {
            wb_fault_arm(fault_kinds[kind].kind, n, fault_kinds[kind].error);
            int err = restore(dirs.vault, dirs.to);
            wb_fault_disarm();
            if (err == 0) {
                expect_restored(dirs.from, dirs.to);
                must_ok(remove_tree(dirs.to));
            } else {
                must(wb_fault_struck() && wb_error_message()[0]);
                must(is_absent(dirs.to));
                struck++;
            }
            if (!wb_fault_struck())
                break;
        }
    must(struck > 5);
    use_usual_sizes();
}

/* No write succeeds from some moment on: the disk is full, also for what cleans up. */
struct full_disk {
    atomic_uint left;
};

static int judge_full(void *context, enum wb_fault_kind kind, const char *path)
{
    struct full_disk *disk = context;

    (void)path;
    if (kind != WB_FAULT_WRITE)
        return 0;
    unsigned left = atomic_load(&disk->left);
    while (left > 0 && !atomic_compare_exchange_weak(&disk->left, &left, left - 1))
        continue;
    return left > 0 ? 0 : ENOSPC;
}

static void test_full_disk(void **state)
{
    uint64_t chance = test_seed();
    struct case_dirs dirs;

    (void)state;
    use_small_sizes(60000);
    make_case(&dirs, (size_t)chance_below(&chance, DESIGNS), &chance);
    for (unsigned n = 0;; n += test_stride(&chance)) {
        struct full_disk disk = {n};
        wb_fault_ask(judge_full, &disk);
        int err = restore(dirs.vault, dirs.to);
        wb_fault_ask(NULL, NULL);
        if (err == 0)
            break;
        must(is_absent(dirs.to));
    }
    expect_restored(dirs.from, dirs.to);
    use_usual_sizes();
}

/* ---- kills ----------------------------------------------------------------------------------------------- */

struct killed_restore {
    const struct case_dirs *dirs;
    unsigned kill_at; /* operation on a file or directory */
    atomic_uint count;
};

static int judge_kill(void *context, enum wb_fault_kind kind, const char *path)
{
    struct killed_restore *killed = context;

    (void)kind;
    (void)path;
    if (atomic_fetch_add(&killed->count, 1) + 1 == killed->kill_at)
        kill(getpid(), SIGKILL);
    return 0;
}

static int restore_in_child(void *context)
{
    struct killed_restore *killed = context;

    wb_fault_ask(judge_kill, killed);
    return restore(killed->dirs->vault, killed->dirs->to) < 0;
}

static void test_kills(void **state)
{
    uint64_t chance = test_seed();
    struct case_dirs dirs;
    unsigned kills = 0;

    (void)state;
    use_small_sizes(60000);
    make_case(&dirs, (size_t)chance_below(&chance, DESIGNS), &chance);
    for (unsigned n = 1;; n += test_stride(&chance)) {
        struct killed_restore killed = {&dirs, n, 0};
        struct wb_store *store;
        int status = run_child(restore_in_child, &killed);
        if (status == 0)
            break;
        must(status == -SIGKILL);
        kills++;
        int err = wb_store_open(dirs.to, WB_STORE_READ, &store);
        if (err == 0) { /* killed after it had become visible */
            wb_store_close(store);
            expect_restored(dirs.from, dirs.to);
            must_ok(remove_tree(dirs.to));
            continue;
        }
        must_ok(restore(dirs.vault, dirs.to));
        verify_clean(dirs.to);
        must_ok(remove_tree(dirs.to));
    }
    expect_restored(dirs.from, dirs.to);
    must(kills > 5);
    use_usual_sizes();
}

/* ---- shipments that lie ---------------------------------------------------------------------------------- */

enum lie {
    LIE_LENGTH, /* a piece is longer than its object... */
    LIE_GAP,    /* ...or not where the one before ends */
    LIE_NO_ROWS,
    LIE_PART, /* rows of a catalog that the design does not have */
    LIE_TABLE,
    LIE_SMALL, /* a small file that no repository has */
    LIE_NO_SMALL,
    LIE_NO_PAGES,
    LIE_FOLDER, /* a file where another one needs a folder */
    LIE_TWICE,
    LIES,
};

static void drop_files(struct made_vault *made, enum wb_vault_file_kind kind)
{
    struct wb_vault_shipment *shipment = &made->shipment;
    size_t files = 0, pieces = 0;

    for (size_t i = 0; i < shipment->pieces.count; i++) {
        size_t f = 0;
        while (shipment->files.items[f].id != shipment->pieces.items[i].file)
            f++;
        if (shipment->files.items[f].kind != kind)
            shipment->pieces.items[pieces++] = shipment->pieces.items[i];
    }
    for (size_t i = 0; i < shipment->files.count; i++)
        if (shipment->files.items[i].kind != kind)
            shipment->files.items[files++] = shipment->files.items[i];
    shipment->files.count = files;
    shipment->pieces.count = pieces;
}

static void add_rows(struct made_vault *made, const char *path, unsigned table)
{
    struct wb_vault_rows_writer writer = {.bytes = WB_BUF_INIT};
    struct wb_vault_row row = {table, WB_SLICE_LIT("key"), WB_SLICE_LIT("value")};

    must_ok(wb_vault_rows_add(&writer, &row));
    made_vault_file(made, WB_VAULT_ROWS, path, wb_buf_slice(&writer.bytes));
    for (size_t i = 0; i < made->shipment.pieces.count; i++)
        if (made->shipment.pieces.items[i].file == made->shipment.next_file)
            made->shipment.pieces.items[i].run = made->shipment.pieces.items[i].offset == 0;
    wb_vault_rows_release(&writer);
}

static void tell_lie(struct made_vault *made, enum lie lie)
{
    struct wb_vault_pieces *pieces = &made->shipment.pieces;
    size_t at = 0;

    while (!wb_vault_object_is_one(&pieces->items[at].object))
        at++;
    switch (lie) {
    case LIE_LENGTH:
        while (at + 1 < pieces->count && pieces->items[at + 1].file == pieces->items[at].file)
            at++;
        while (!wb_vault_object_is_one(&pieces->items[at].object))
            at--;
        if (at + 1 < pieces->count && pieces->items[at + 1].file == pieces->items[at].file)
            pieces->items[at + 1].offset++;
        pieces->items[at].len++;
        break;
    case LIE_GAP:
        pieces->items[pieces->count - 1].offset++;
        break;
    case LIE_NO_ROWS:
        drop_files(made, WB_VAULT_ROWS);
        break;
    case LIE_PART:
        add_rows(made, "rows/1", 0);
        break;
    case LIE_TABLE:
        drop_files(made, WB_VAULT_ROWS);
        add_rows(made, "rows/0", 250);
        break;
    case LIE_SMALL:
        made_vault_file(made, WB_VAULT_SMALL, "node3/webbase.repo", WB_SLICE_LIT("?"));
        break;
    case LIE_NO_SMALL:
        drop_files(made, WB_VAULT_SMALL);
        break;
    case LIE_NO_PAGES:
        drop_files(made, WB_VAULT_PAGES);
        break;
    case LIE_FOLDER:
        made_vault_file(made, WB_VAULT_OTHER, MADE_VAULT_EMPTY "/inside", WB_SLICE_LIT("?"));
        break;
    case LIE_TWICE:
        made_vault_file(made, WB_VAULT_OTHER, MADE_VAULT_JOURNAL, WB_SLICE_LIT("?"));
        break;
    case LIES:
        break;
    }
}

static void test_lies(void **state)
{
    uint64_t chance = test_seed();
    char from[DIR_MAX], vault[DIR_MAX], targets[DIR_MAX], to[DIR_MAX];
    struct made_vault made;

    (void)state;
    use_small_sizes(60000);
    test_dir(from);
    make_source(from, 0, &chance);
    for (enum lie lie = LIE_LENGTH; lie < LIES; lie++) {
        test_dir(vault);
        test_dir(targets);
        path_in(targets, "to", to);
        made_vault_fill(&made, from, vault, &chance);
        tell_lie(&made, lie);
        made_vault_finish(&made);
        int err = restore(vault, to);
        print_message("# lie %d: %s\n", (int)lie, err < 0 ? wb_error_message() : "believed");
        must(err < 0);
        must(is_absent(to));
    }
    use_usual_sizes();
}

/* ---- states that expire ---------------------------------------------------------------------------------- */

/* As soon as objects are read, the vault gets another state, and what the one before needed is deleted. */
struct successor {
    char vault[DIR_MAX], next[DIR_MAX], old[DIR_MAX];
    atomic_bool done;
    unsigned times;
};

static int judge_succeed(void *context, enum wb_fault_kind kind, const char *path)
{
    struct successor *s = context;
    char objects[DIR_MAX];

    path_in(s->vault, "objects/", objects);
    if (kind != WB_FAULT_OPEN || strncmp(path, objects, strlen(objects)) != 0 || atomic_exchange(&s->done, true))
        return 0;
    must(rename(s->vault, s->old) == 0 && rename(s->next, s->vault) == 0);
    return 0;
}

static void test_expired_state(void **state)
{
    uint64_t chance = test_seed();
    char from[2][DIR_MAX], dirs[DIR_MAX], to[DIR_MAX], url[DIR_MAX + 8];
    struct wb_vault_restored restored;

    (void)state;
    use_small_sizes(60000);
    for (unsigned round = 0; round < test_rounds(8); round++) {
        struct successor s = {.times = 1};
        test_dir(dirs);
        path_in(dirs, "vault", s.vault);
        path_in(dirs, "next", s.next);
        path_in(dirs, "old", s.old);
        path_in(dirs, "to", to);
        for (size_t i = 0; i < 2; i++) {
            test_dir(from[i]);
            make_source(from[i], 0, &chance);
            make_vault(from[i], i ? s.next : s.vault, &chance);
        }
        bool at = round % 2;
        vault_url(s.vault, url);
        wb_fault_ask(judge_succeed, &s);
        int err = wb_vault_restore(url, to, at ? 1700000000000 : -1, NULL, NULL, &restored);
        wb_fault_ask(NULL, NULL);
        must_ok(err);
        must(atomic_load(&s.done));
        expect_restored(from[1], to);
    }
    use_usual_sizes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_designs),   cmocka_unit_test(test_damage), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_full_disk),     cmocka_unit_test(test_kills),  cmocka_unit_test(test_lies),
        cmocka_unit_test(test_expired_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
