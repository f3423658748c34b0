/*
 * test_vaultship.c - random histories of repositories, shipped now and then: each state that is kept comes back as it
 * was.
 *
 * The twin of a state is a copy of the directory, made right after it was shipped. Shippers are left open, closed,
 * killed at any operation on a file, and made to fail at any; the directory is copied and the vault taken over.
 */
#include "../faultkinds.h"
#include "journal/journal.h"
#include "madevault.h"
#include "os/path.h"
#include "store/store_state.h"
#include "vault/vault.h"
#include "vault/vaultfetch.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum { STATES_MAX = 64, DAY_MS = 86400000 };

/* A vault, and what must be in it. */
struct model {
    char repo[DIR_MAX], vault[DIR_MAX], scratch[DIR_MAX], url[DIR_MAX + 8];
    uint64_t chance;
    bool batch;
    int64_t time_ms; /* of the next change */
    unsigned twins;  /* directories so far */
    struct {
        char shipment[WB_VAULT_NAME_MAX], twin[DIR_MAX];
        int64_t time_ms;
    } states[STATES_MAX];
    size_t count;
    struct wb_vault_shipper *shipper; /* NULL: none is open */
    int64_t keep_ms;
    bool take_over;
    uint64_t takedowns; /* that the newest state has carried out */
};

/* ---- what happens to the repository -------------------------------------------------------------------------- */

static void write_journal(const char *dir, uint64_t *chance)
{
    struct wb_journal_writer *writer;
    struct wb_edit_place place;
    struct wb_edit edit = {
        .kind = WB_EDIT_PUSH, .site = chance_next(chance), .time_ms = 1000, .count = WB_PUSH_CHANGED};

    edit.text = WB_SLICE_LIT("http://pushed.example/");
    must_ok(wb_journal_writer_open(dir, 0, &writer));
    for (uint64_t i = 1 + chance_below(chance, 200); i > 0; i--)
        must_ok(wb_journal_writer_append(writer, &edit, &place));
    if (chance_one_in(chance, 2))
        must_ok(wb_journal_writer_finish(writer));
    else
        must_ok(wb_journal_writer_sync(writer));
    wb_journal_writer_close(writer);
}

/* Adds to a named stream's file what nobody reads, or replaces it. */
static void write_small_file(const char *dir, uint64_t *chance)
{
    char folder[DIR_MAX], path[DIR_MAX], bytes[9000];
    size_t len = (size_t)chance_below(chance, sizeof bytes);

    memset(bytes, (int)chance_below(chance, 256), sizeof bytes);
    path_in(dir, "graph", folder);
    path_in(folder, "links", path);
    must_ok(wb_path_mkdirs(folder));
    must_ok(wb_path_replace(path, wb_slice(bytes, len)));
}

static void change(struct model *model)
{
    struct wb_move_compact_counts compacted;
    struct wb_store *store = open_store(model->repo, WB_STORE_WRITE);

    if (!chance_one_in(&model->chance, 4))
        fill(store, &model->chance, model->batch, model->time_ms);
    model->time_ms += 100000;
    if (chance_one_in(&model->chance, 3))
        must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &compacted));
    wb_store_close(store);
    if (chance_one_in(&model->chance, 2))
        write_journal(model->repo, &model->chance);
    if (chance_one_in(&model->chance, 2))
        write_small_file(model->repo, &model->chance);
}

/* ---- the model ----------------------------------------------------------------------------------------------- */

static void model_begin(struct model *model, uint64_t chance)
{
    memset(model, 0, sizeof *model);
    model->chance = chance;
    test_dir(model->repo);
    test_dir(model->vault);
    test_dir(model->scratch);
    vault_url(model->vault, model->url);
    size_t design = (size_t)chance_below(&model->chance, DESIGNS);
    model->batch = options_of(design).design.batch;
    model->time_ms = 5000000;
    model->keep_ms = 7 * (int64_t)DAY_MS;
    print_message("# %s\n", designs[design].design);
    make_source(model->repo, design, &model->chance);
}

static void close_shipper(struct model *model)
{
    wb_vault_shipper_close(model->shipper);
    model->shipper = NULL;
}

static int open_shipper(struct model *model)
{
    struct wb_vault_ship_options options = {
        .keep_ms = model->keep_ms, .take_over = model->take_over, .follow = chance_one_in(&model->chance, 2)};

    return wb_vault_shipper_open(model->repo, model->url, &options, &model->shipper);
}

/* Whether pages were taken down since the last state, and a compaction has removed their bytes. */
static bool has_taken_down(struct model *model)
{
    struct wb_store_state_facts facts;
    struct wb_store_state *state;

    must_ok(wb_store_state_hold(model->repo, NULL, &state));
    wb_store_state_facts(state, &facts);
    wb_store_state_let_go(state);
    if (facts.takedowns_open || facts.takedowns <= model->takedowns)
        return false;
    model->takedowns = facts.takedowns;
    return true;
}

/* What was shipped is what the directory has now. */
static void add_twin(struct model *model, const struct wb_vault_state *state)
{
    char name[32];

    if (has_taken_down(model) || model->keep_ms == 0)
        model->count = 0;
    must(model->count < STATES_MAX);
    snprintf(name, sizeof name, "twin%u", model->twins++);
    path_in(model->scratch, name, model->states[model->count].twin);
    copy_repository(model->repo, model->states[model->count].twin);
    memcpy(model->states[model->count].shipment, state->shipment, WB_VAULT_NAME_MAX);
    model->states[model->count++].time_ms = state->time_ms;
}

static void ship(struct model *model)
{
    struct wb_vault_shipped shipped;

    if (!model->shipper)
        must_ok(open_shipper(model));
    must_ok(wb_vault_ship(model->shipper, &shipped));
    if (shipped.anything)
        add_twin(model, &shipped.state);
    must(strcmp(shipped.state.shipment, model->states[model->count - 1].shipment) == 0);
    must_ok(wb_vault_ship(model->shipper, &shipped));
    must(!shipped.anything && shipped.objects == 0);
}

/* When it follows, only shipping says whether it may. */
static int try_ship(struct model *model)
{
    struct wb_vault_shipped shipped;
    int err = open_shipper(model);

    return err < 0 ? err : wb_vault_ship(model->shipper, &shipped);
}

struct listing {
    const struct model *model;
    size_t at;
};

static int compare_state(void *context, const struct wb_vault_state *state)
{
    struct listing *listing = context;

    must(listing->at < listing->model->count);
    must(strcmp(state->shipment, listing->model->states[listing->at].shipment) == 0);
    must(state->time_ms == listing->model->states[listing->at].time_ms);
    listing->at++;
    return 0;
}

static void on_problem(void *context, bool problem, const char *object, const char *message)
{
    unsigned *found = context;

    print_message("# %s %s: %s\n", problem ? "problem" : "note", object, message);
    *found += problem;
}

static void expect_same_files(const char *a, const char *b, const char *name)
{
    char x[DIR_MAX], y[DIR_MAX];

    path_in(a, name, x);
    path_in(b, name, y);
    must((wb_path_kind(x) == WB_PATH_DIR) == (wb_path_kind(y) == WB_PATH_DIR));
    if (wb_path_kind(x) == WB_PATH_DIR)
        must(hash_tree(x) == hash_tree(y));
}

/* The states are those of the model, all objects are sound, and one of the states comes back. */
static void check(struct model *model)
{
    struct listing listing = {model, 0};
    struct wb_vault_restored restored;
    uint64_t objects, bytes;
    unsigned found = 0;
    char to[DIR_MAX];

    must_ok(wb_vault_list(model->url, compare_state, &listing));
    must(listing.at == model->count);
    must_ok(wb_vault_verify(model->url, on_problem, &found, &objects, &bytes));
    must(found == 0);
    size_t i = chance_one_in(&model->chance, 2) ? model->count - 1 : (size_t)chance_below(&model->chance, model->count);
    path_in(model->scratch, "restored", to);
    must_ok(wb_vault_restore(model->url, to, model->states[i].time_ms, NULL, NULL, &restored));
    verify_clean(to);
    compare_dirs(to, model->states[i].twin);
    expect_same_files(to, model->states[i].twin, "journal");
    expect_same_files(to, model->states[i].twin, "graph");
    must_ok(remove_tree(to));
}

/* ---- kills --------------------------------------------------------------------------------------------------- */

struct killed_ship {
    const struct model *model;
    unsigned kill_at; /* operation on a file or directory */
    atomic_uint count;
};

static int judge_kill(void *context, enum wb_fault_kind kind, const char *path)
{
    struct killed_ship *killed = context;

    (void)kind;
    (void)path;
    if (atomic_fetch_add(&killed->count, 1) + 1 == killed->kill_at)
        kill(getpid(), SIGKILL);
    return 0;
}

static int ship_in_child(void *context)
{
    struct killed_ship *killed = context;
    struct model model = *killed->model;
    struct wb_vault_shipped shipped;

    wb_fault_ask(judge_kill, killed);
    if (open_shipper(&model) < 0 || wb_vault_ship(model.shipper, &shipped) < 0)
        return 1;
    close_shipper(&model);
    return 0;
}

struct newest {
    struct wb_vault_state state;
    size_t count;
};

static int note_newest(void *context, const struct wb_vault_state *state)
{
    struct newest *newest = context;

    newest->state = *state;
    newest->count++;
    return 0;
}

/* What a process that died has made safe. */
static void adopt(struct model *model)
{
    struct newest newest = {.count = 0};
    int err = wb_vault_list(model->url, note_newest, &newest);

    must(err == 0 || (err == WB_E_NOTFOUND && model->count == 0));
    if (newest.count && (!model->count || strcmp(newest.state.shipment, model->states[model->count - 1].shipment) != 0))
        add_twin(model, &newest.state);
}

/* Kills a process that ships. Returns false if it came to its end. */
static bool ship_and_die(struct model *model, unsigned kill_at)
{
    struct killed_ship killed = {model, kill_at, 0};

    close_shipper(model);
    int status = run_child(ship_in_child, &killed);
    must(status == 0 || status == -SIGKILL);
    adopt(model);
    return status != 0;
}

static int count_object(void *context, const char *name, uint64_t size)
{
    (void)size;
    *(size_t *)context += strcmp(name, "head") != 0;
    return 0;
}

/* Nothing is left over of those that died. */
static void expect_no_leftovers(struct model *model)
{
    struct wb_vault_manifest manifest;
    struct wb_object_store *store;
    struct wb_vault_head head;
    size_t there = 0, needed = 0;

    must_ok(wb_object_open(model->url, NULL, &store));
    must_ok(wb_vault_fetch_head(store, &head));
    must_ok(wb_vault_fetch_manifest(store, &head, &manifest));
    must_ok(wb_object_list(store, "", count_object, &there));
    for (size_t i = 0; i < manifest.pieces.count; i++)
        needed += wb_vault_object_is_one(&manifest.pieces.items[i].object);
    needed += manifest.chain.count;
    if (there != needed)
        print_message("# %zu objects, %zu needed, %zu garbage\n", there, needed, manifest.garbage.count);
    must(there == needed);
    wb_vault_manifest_release(&manifest);
    wb_object_close(store);
}

/* ---- tests --------------------------------------------------------------------------------------------------- */

static void test_histories(void **state)
{
    uint64_t chance = test_seed();
    struct model model;

    (void)state;
    use_small_sizes(60000);
    for (unsigned round = 0; round < test_rounds(12); round++) {
        model_begin(&model, chance_next(&chance));
        for (unsigned step = 0; step < 10; step++) {
            if (step)
                change(&model);
            if (chance_one_in(&model.chance, 3))
                ship_and_die(&model, 1 + (unsigned)chance_below(&model.chance, 150));
            model.keep_ms = chance_one_in(&model.chance, 5) ? 0 : 7 * (int64_t)DAY_MS;
            if (model.keep_ms == 0 || chance_one_in(&model.chance, 3))
                close_shipper(&model);
            ship(&model);
            if (chance_one_in(&model.chance, 3) || step == 9)
                check(&model);
            if (model.keep_ms == 0)
                close_shipper(&model);
        }
        expect_no_leftovers(&model);
        close_shipper(&model);
    }
    use_usual_sizes();
}

/* The most pieces that a file has in the newest state, except those that change in place. */
static size_t most_pieces(struct model *model)
{
    struct wb_vault_contents contents;
    struct wb_vault_manifest manifest;
    struct wb_object_store *store;
    struct wb_vault_head head;
    size_t most = 0;

    must_ok(wb_object_open(model->url, NULL, &store));
    must_ok(wb_vault_fetch_head(store, &head));
    must_ok(wb_vault_fetch_manifest(store, &head, &manifest));
    must_ok(wb_vault_contents_at(&manifest, "the vault", manifest.number, &contents));
    for (size_t i = 0; i < contents.files.count; i++)
        if (!strstr(contents.files.items[i].file->path, ".bkt"))
            most = contents.files.items[i].count > most ? contents.files.items[i].count : most;
    must(manifest.chain.count <= 34);
    wb_vault_contents_release(&contents);
    wb_vault_manifest_release(&manifest);
    wb_object_close(store);
    return most;
}

/* Many small shipments of one process: full ones in between, and pieces that are put together. */
static void test_follow(void **state)
{
    uint64_t chance = test_seed();
    struct model model;

    (void)state;
    use_small_sizes(60000);
    model_begin(&model, chance_next(&chance));
    struct wb_vault_ship_options options = {.keep_ms = 0, .follow = true};
    must_ok(wb_vault_shipper_open(model.repo, model.url, &options, &model.shipper));
    model.keep_ms = 0;
    for (unsigned i = 0; i < 80; i++) {
        struct wb_store *store = open_store(model.repo, WB_STORE_WRITE);
        struct spec spec = {
            .site = CONVERT_SITES + i % 3, .number = i, .time_ms = 9000000 + i, .size = 300, .variant = 5};
        must_ok(put_spec(store, &spec));
        commit_store(store);
        wb_store_close(store);
        must(wb_vault_shipper_due(model.shipper));
        model.count = 0;
        ship(&model);
        if (i % 20 == 19)
            check(&model);
    }
    must(most_pieces(&model) < 45);
    expect_no_leftovers(&model);
    close_shipper(&model);
    use_usual_sizes();
}

/* The process dies at each operation on a file. */
static void test_kills(void **state)
{
    uint64_t chance = test_seed();
    struct model model;

    (void)state;
    use_small_sizes(60000);
    model_begin(&model, chance_next(&chance));
    ship(&model);
    for (unsigned n = 1;; n += test_stride(&model.chance)) {
        if (n % 7 == 1)
            change(&model);
        if (!ship_and_die(&model, n))
            break;
        if (chance_one_in(&model.chance, 3)) {
            ship(&model);
            expect_no_leftovers(&model);
            check(&model);
            model.keep_ms = 0;
        }
        if (model.count > 20)
            model.keep_ms = 0;
    }
    close_shipper(&model);
    ship(&model);
    expect_no_leftovers(&model);
    check(&model);
    close_shipper(&model);
    use_usual_sizes();
}

/* How many objects that the newest state needs were there before. */
struct reuse {
    WB_VEC(struct wb_vault_object) there;
};

static int note_there(void *context, const char *name, uint64_t size)
{
    struct reuse *reuse = context;
    struct wb_vault_object object;
    bool shipment;

    (void)size;
    return wb_vault_object_parse(wb_slice_str(name), &shipment, &object) && !shipment
               ? wb_vec_push(&reuse->there, object)
               : 0;
}

static size_t count_reused(struct model *model, const struct reuse *reuse)
{
    struct wb_vault_manifest manifest;
    struct wb_object_store *store;
    struct wb_vault_head head;
    size_t reused = 0;

    must_ok(wb_object_open(model->url, NULL, &store));
    must_ok(wb_vault_fetch_head(store, &head));
    must_ok(wb_vault_fetch_manifest(store, &head, &manifest));
    for (size_t i = 0; i < manifest.pieces.count; i++)
        for (size_t k = 0; k < reuse->there.count; k++)
            reused += manifest.pieces.items[i].object.run == reuse->there.items[k].run &&
                      manifest.pieces.items[i].object.count == reuse->there.items[k].count;
    wb_vault_manifest_release(&manifest);
    wb_object_close(store);
    return reused;
}

/* A first backup that was killed near its end: what it has put is not put again. */
static void test_what_is_there_is_used(void **state)
{
    uint64_t chance = test_seed();
    struct reuse reuse = {.there = WB_VEC_INIT};
    struct wb_object_store *store;
    struct model model;

    (void)state;
    use_small_sizes(60000);
    model_begin(&model, chance_next(&chance));
    for (unsigned n = 20; reuse.there.count < 2; n += 3) {
        wb_vec_clear(&reuse.there);
        must(ship_and_die(&model, n) && model.count == 0);
        must_ok(wb_object_open(model.url, NULL, &store));
        must_ok(wb_object_list(store, "objects/", note_there, &reuse));
        wb_object_close(store);
    }
    ship(&model);
    /* The last ones may have been put, but not noted. */
    must(count_reused(&model, &reuse) > 0);
    expect_no_leftovers(&model);
    check(&model);
    close_shipper(&model);
    wb_vec_release(&reuse.there);
    use_usual_sizes();
}

/* Each operation on a file fails: the vault has the state before, or the new one, and the next backup succeeds. */
static void test_failures(void **state)
{
    uint64_t chance = test_seed();
    struct model model;
    unsigned struck = 0;

    (void)state;
    use_small_sizes(60000);
    model_begin(&model, chance_next(&chance));
    ship(&model);
    for (size_t kind = 0; kind < COUNT(fault_kinds); kind++)
        for (uint64_t n = 1;; n += test_stride(&model.chance)) {
            close_shipper(&model);
            if (n % 5 == 1)
                change(&model);
            model.keep_ms = model.count > 10 ? 0 : 7 * (int64_t)DAY_MS;
            wb_fault_arm(fault_kinds[kind].kind, n, fault_kinds[kind].error);
            int err = try_ship(&model);
            close_shipper(&model);
            wb_fault_disarm();
            bool hit = wb_fault_struck();
            must(err == 0 || (hit && wb_error_message()[0]));
            struck += err < 0;
            adopt(&model);
            if (!hit)
                break;
            if (chance_one_in(&model.chance, 4)) {
                ship(&model);
                check(&model);
            }
        }
    must(struck > 5);
    change(&model);
    ship(&model);
    expect_no_leftovers(&model);
    check(&model);
    close_shipper(&model);
    use_usual_sizes();
}

/* Two copies of one directory: only one of them ships, until the other one takes the vault over. */
static void test_two_copies(void **state)
{
    uint64_t chance = test_seed();
    struct model model;
    char other[DIR_MAX], swap[DIR_MAX];

    (void)state;
    use_small_sizes(60000);
    model_begin(&model, chance_next(&chance));
    ship(&model);
    close_shipper(&model);
    path_in(model.scratch, "other", other);
    copy_repository(model.repo, other);
    for (unsigned i = 0; i < 4; i++) {
        memcpy(swap, model.repo, DIR_MAX);
        memcpy(model.repo, other, DIR_MAX);
        memcpy(other, swap, DIR_MAX);
        change(&model);
        model.take_over = false;
        must(try_ship(&model) == WB_E_DENIED && strstr(wb_error_message(), other) != NULL);
        close_shipper(&model);
        model.take_over = true;
        ship(&model);
        check(&model);
        change(&model);
        ship(&model);
        check(&model);
        close_shipper(&model);
    }
    use_usual_sizes();
}

/* A head that is set back by a late PUT is corrected by the next shipment. */
static void test_late_head(void **state)
{
    uint64_t chance = test_seed();
    struct wb_buf old = WB_BUF_INIT;
    struct model model;
    char head[DIR_MAX];

    (void)state;
    use_small_sizes(60000);
    model_begin(&model, chance_next(&chance));
    path_in(model.vault, "head", head);
    ship(&model);
    must_ok(wb_path_read(head, 1 << 20, &old));
    change(&model);
    ship(&model);
    must_ok(wb_path_replace(head, wb_buf_slice(&old)));
    for (unsigned i = 0; i < 2; i++) {
        struct wb_vault_shipped shipped;
        close_shipper(&model);
        must_ok(open_shipper(&model));
        must_ok(wb_vault_ship(model.shipper, &shipped));
        must(!shipped.anything);
        check(&model);
        must_ok(wb_path_unlink(head)); /* and one that is lost */
    }
    close_shipper(&model);
    ship(&model);
    check(&model);
    close_shipper(&model);
    wb_buf_release(&old);
    use_usual_sizes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_histories),
        cmocka_unit_test(test_follow),
        cmocka_unit_test(test_kills),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_two_copies),
        cmocka_unit_test(test_late_head),
        cmocka_unit_test(test_what_is_there_is_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
