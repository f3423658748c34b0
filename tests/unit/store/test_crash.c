/*
 * test_crash.c - a writer is killed at a random moment, or the power fails: commits that were
 * acknowledged are there, and one that was not is there completely or not at all.
 *
 * What the commits of a repository do is a function of the seed and of their number. So the
 * parent knows what must be there after each of them: after the acknowledged ones, or after
 * one more, whose acknowledgement was lost in the kill. The parent itself never opens a
 * store, because an open catalog must not be used after fork.
 *
 * Snapshots are sealed and dropped, and the policy changes, according to the number of the commit too. A snapshot
 * must be there from its acknowledged commit until the one that drops it, and contain exactly what was there then.
 */
#include "store_support.h"
#include "move/move.h"
#include "os/path.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

enum {
    PAGES = 60,
    OPS_MAX = 24,
    SEAL_EVERY = 9, /* commits: number 4, 13, 22 ... seal a snapshot */
    SEAL_AT = 4,
    DROP_AFTER = 15, /* so many commits later it is dropped, before that commit's own pages are put */
    SEALED_MAX = 3,  /* that can be there at once */
};

/* Another process writes the same pages: they may have been removed, or a compaction may be running. */
static bool shared;

/* What is in a repository after a number of commits. */
struct model {
    uint64_t seed;
    unsigned commits;
    struct spec latest[PAGES]; /* time 0 if the page does not exist */
    struct {
        unsigned commit; /* 0: not used */
        struct spec pages[PAGES];
    } sealed[SEALED_MAX];
};

struct writer {
    char dir[DIR_MAX];
    struct model model;
    int pipe_fd;
    bool compact_always;
    unsigned pause_after; /* after this many commits, puts more without committing, reports that and waits; 0: never */
};

static bool seals(unsigned commit)
{
    return commit % SEAL_EVERY == SEAL_AT;
}

/* Whether this commit drops a snapshot; it was sealed DROP_AFTER commits earlier. */
static bool drops(unsigned commit)
{
    return commit >= DROP_AFTER && seals(commit - DROP_AFTER);
}

static void forget_page(struct model *model, uint32_t page)
{
    for (size_t i = 0; i < SEALED_MAX; i++)
        model->sealed[i].pages[page].time_ms = 0;
}

/* Applies commit number model->commits to the model and, if there is one, to the store. */
static void do_ops(struct model *model, struct wb_store *store)
{
    uint64_t chance = model->seed * 1000003 + model->commits;
    uint64_t ops = 1 + chance_below(&chance, OPS_MAX);

    for (uint64_t i = 0; i < ops; i++) {
        uint32_t page = (uint32_t)chance_below(&chance, PAGES);
        struct spec *latest = &model->latest[page];
        if (chance_one_in(&chance, 8)) {
            bool everywhere = chance_one_in(&chance, 2);
            int err = latest->time_ms && store ? remove_spec(store, latest, everywhere) : 0;
            must(err == 0 || (shared && err == WB_E_NOTFOUND));
            if (latest->time_ms && everywhere)
                forget_page(model, page);
            latest->time_ms = 0;
            continue;
        }
        *latest = (struct spec){.site = page % 7,
                                .number = page,
                                .time_ms = 1000 + (int64_t)model->commits * 100 + (int64_t)i,
                                .size = (uint32_t)chance_below(&chance, chance_one_in(&chance, 12) ? 30000 : 1500),
                                .variant = (uint32_t)chance_below(&chance, 700)};
        if (store)
            must_ok(put_spec(store, latest));
    }
    if (seals(model->commits)) {
        size_t i = model->commits / SEAL_EVERY % SEALED_MAX;
        model->sealed[i].commit = model->commits;
        memcpy(model->sealed[i].pages, model->latest, sizeof model->latest);
    }
    model->commits++;
}

static void acknowledge(const struct writer *w, unsigned commits)
{
    must(write(w->pipe_fd, &commits, sizeof commits) == sizeof commits);
}

static void compact_store(struct wb_store *store)
{
    struct wb_move_compact_counts compact;
    int err = wb_move_compact(store, NULL, NULL, NULL, NULL, &compact);

    must(err == 0 || (shared && err == WB_E_BUSY));
}

static void name_snapshot(unsigned commit, char name_out[WB_STORE_NAME_MAX + 1])
{
    snprintf(name_out, WB_STORE_NAME_MAX + 1, "c%u", commit);
}

/* If another process writes too, it may have used the name. */
static void seal_commit(struct wb_store *store, unsigned commit)
{
    const struct wb_store_holder person = {.kind = WB_STORE_HOLDER_PERSON};
    struct wb_store_snapshot snapshot;
    char name[WB_STORE_NAME_MAX + 1];

    name_snapshot(commit, name);
    int err = wb_store_seal(store, wb_slice_str(name), &person, &snapshot);
    must(err == 0 || (shared && err == WB_E_INVALID));
    wb_store_snapshot_release(&snapshot);
}

/* An earlier attempt at the same commit may have dropped it before it was killed. */
static void drop_commit(struct wb_store *store, unsigned commit)
{
    struct wb_store_snapshot snapshot;
    char name[WB_STORE_NAME_MAX + 1];

    name_snapshot(commit, name);
    int err = wb_store_snapshot_find(store, wb_slice_str(name), &snapshot);
    if (err == 0)
        err = wb_store_drop(store, snapshot.number);
    must(err == 0 || err == WB_E_NOTFOUND);
    wb_store_snapshot_release(&snapshot);
}

static void change_policy(struct wb_store *store, unsigned commit)
{
    const struct wb_store_history policies[] = {{WB_STORE_KEEP_ALL, 0},
                                                {WB_STORE_KEEP_COUNT, 2},
                                                {WB_STORE_KEEP_NEWEST, 0},
                                                {WB_STORE_KEEP_DURATION, (uint64_t)100 * 365 * WB_DAY_MS}};

    must_ok(wb_store_set_history(store, &policies[commit % COUNT(policies)]));
}

static int write_on(void *context)
{
    struct writer *w = context;
    struct wb_store *store = open_store(w->dir, WB_STORE_WRITE);

    for (;;) {
        unsigned number = w->model.commits;
        if (drops(number))
            drop_commit(store, number - DROP_AFTER);
        if (number % 7 == 3)
            change_policy(store, number);
        do_ops(&w->model, store);
        if (seals(number))
            seal_commit(store, number);
        else
            commit_store(store);
        acknowledge(w, w->model.commits);
        if (w->compact_always || number % 5 == 2)
            compact_store(store);
        if (w->pause_after && --w->pause_after == 0)
            break;
    }
    do_ops(&w->model, store);
    acknowledge(w, UINT32_MAX);
    pause();
    return 0;
}

/* ---- looking at what is left ------------------------------------------------------------------ */

struct inspection {
    char dir[DIR_MAX];
    struct model model; /* as acknowledged */
};

static bool is_state(const struct model *model, struct sights *found)
{
    size_t pages = 0, i = 0;
    bool same = true;

    for (uint32_t page = 0; page < PAGES; page++)
        pages += model->latest[page].time_ms != 0;
    if (found->count != pages)
        return false;
    for (uint32_t page = 0; page < PAGES && same; page++) {
        const struct spec *spec = &model->latest[page];
        if (!spec->time_ms)
            continue;
        struct wb_pageid id = spec_id(spec);
        for (i = 0; i < found->count && !wb_pageid_equal(found->list[i].id, id); i++)
            ;
        same = i < found->count && found->list[i].time_ms == spec->time_ms;
    }
    return same;
}

static void check_pages(struct wb_store *store, const struct model *model)
{
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page page;

    for (uint32_t i = 0; i < PAGES; i++) {
        const struct spec *spec = &model->latest[i];
        if (spec->time_ms)
            must(holds_spec(store, spec));
        else
            must(wb_store_get(store, spec_id(&(struct spec){.site = i % 7, .number = i}), &page, &memory) ==
                 WB_E_NOTFOUND);
    }
    wb_buf_release(&memory);
}

/* Whether the snapshot of a commit is there. If so, it contains exactly the pages of that moment. */
static bool has_snapshot(struct wb_store *store, unsigned commit, const struct spec *pages)
{
    struct wb_store_snapshot snapshot;
    struct sights found = {0};
    char name[WB_STORE_NAME_MAX + 1];
    size_t expected = 0;

    name_snapshot(commit, name);
    int err = wb_store_snapshot_find(store, wb_slice_str(name), &snapshot);
    must(err == 0 || err == WB_E_NOTFOUND);
    if (err < 0)
        return false;
    scan_all(store, &(struct wb_store_scan_options){.snapshot = snapshot.number}, 0, &found);
    for (uint32_t i = 0; i < PAGES; i++) {
        size_t j = 0;
        if (!pages[i].time_ms)
            continue;
        expected++;
        while (j < found.count && !wb_pageid_equal(found.list[j].id, spec_id(&pages[i])))
            j++;
        must(j < found.count && found.list[j].time_ms == pages[i].time_ms);
    }
    must(found.count == expected);
    sights_release(&found);
    wb_store_snapshot_release(&snapshot);
    return true;
}

/*
 * acknowledged: what the writer has said; the model may be one commit further. Returns true if the snapshot of that
 * commit is missing: the writer was killed between committing and sealing.
 */
static bool check_sealed(struct wb_store *store, const struct model *model, unsigned acknowledged)
{
    bool missing = false;

    for (size_t i = 0; i < SEALED_MAX; i++) {
        unsigned commit = model->sealed[i].commit, dropped = commit + DROP_AFTER;
        if (!commit)
            continue;
        bool there = has_snapshot(store, commit, model->sealed[i].pages);
        if (commit < acknowledged && dropped > model->commits) /* the commit that drops it has not begun */
            must(there);
        if (dropped < model->commits)
            must(!there);
        missing = missing || (commit == acknowledged && !there);
    }
    return missing;
}

/* What an inspection has found. */
enum { FURTHER = 1, NOT_SEALED = 2 };

/* Returns 0 if the state is the acknowledged one, FURTHER if it is one commit further, perhaps with NOT_SEALED. */
static int inspect(void *context)
{
    struct inspection *in = context;
    struct sights found = {0};
    struct wb_store_scan_options all = {0};
    unsigned acknowledged = in->model.commits;
    int further = 0;

    verify_clean(in->dir); /* before a writer has cleaned up */
    struct wb_store *store = open_store(in->dir, WB_STORE_READ);
    scan_all(store, &all, 0, &found);
    if (!is_state(&in->model, &found)) {
        do_ops(&in->model, NULL);
        further = FURTHER;
        must(is_state(&in->model, &found));
    }
    check_pages(store, &in->model);
    bool missing = check_sealed(store, &in->model, acknowledged);
    wb_store_close(store);
    store = open_store(in->dir, WB_STORE_WRITE);
    check_pages(store, &in->model);
    check_sealed(store, &in->model, acknowledged);
    wb_store_close(store);
    must(verify_clean(in->dir).notes == 0); /* opening for writing has cleaned up */
    sights_release(&found);
    return further | (missing ? NOT_SEALED : 0);
}

static void inspect_in_child(const char *dir, struct model *model)
{
    struct inspection in = {.model = *model};

    snprintf(in.dir, sizeof in.dir, "%s", dir);
    int status = run_child(inspect, &in);
    if (status < 0 || status > (FURTHER | NOT_SEALED))
        fprintf(stderr, "inspecting ended with %d after %u commits, seed %llu\n", status, model->commits,
                (unsigned long long)model->seed);
    must(status >= 0 && status <= (FURTHER | NOT_SEALED));
    if (status & FURTHER)
        do_ops(model, NULL);
    if (status & NOT_SEALED)
        model->sealed[(model->commits - 1) / SEAL_EVERY % SEALED_MAX].commit = 0;
}

/* ---- killing ---------------------------------------------------------------------------------------- */

static int create(void *context)
{
    create_store(context);
    return 0;
}

/* Reads acknowledgements until there are `wanted` of them, or the writer pauses. */
static void follow(int fd, struct model *model, unsigned wanted)
{
    unsigned commits = 0;

    while (wanted-- > 0 && read(fd, &commits, sizeof commits) == sizeof commits && commits != UINT32_MAX) {
        do_ops(model, NULL);
        must(model->commits == commits);
    }
}

/* A writer continues from the model and is killed; the model is then what was acknowledged. */
static void write_and_kill(const char *dir, struct model *model, uint64_t *chance)
{
    struct writer w = {.model = *model, .compact_always = chance_one_in(chance, 3)};
    int fds[2];

    snprintf(w.dir, sizeof w.dir, "%s", dir);
    must(pipe(fds) == 0);
    w.pipe_fd = fds[1];
    pid_t child = start_child(write_on, &w);
    close(fds[1]);
    follow(fds[0], model, (unsigned)chance_below(chance, 5));
    usleep((useconds_t)chance_below(chance, 4000));
    kill(child, SIGKILL);
    must(end_child(child) == -SIGKILL);
    follow(fds[0], model, UINT32_MAX);
    close(fds[0]);
}

static void test_killed_writers(void **state)
{
    uint64_t chance = test_seed();
    struct model model = {0};
    char dir[DIR_MAX] = "";
    unsigned rounds = test_rounds(400);

    (void)state;
    for (unsigned i = 0; i < rounds; i++) {
        if (i % 40 == 0) {
            if (dir[0])
                remove_tree(dir);
            model = (struct model){.seed = chance_next(&chance)};
            test_dir(dir);
            if (i % 80 == 0)
                use_small_sizes(20000);
            else
                use_usual_sizes();
            must(run_child(create, dir) == 0);
        }
        write_and_kill(dir, &model, &chance);
        inspect_in_child(dir, &model);
    }
    use_usual_sizes();
}

static int check_sound(void *context)
{
    verify_clean(context);
    wb_store_close(open_store(context, WB_STORE_WRITE));
    must(verify_clean(context).notes == 0);
    return 0;
}

/* A writer is killed while another one continues, which must not notice. */
static void test_killed_beside_another(void **state)
{
    uint64_t chance = test_seed();
    struct model model = {.seed = chance_next(&chance)}, none = {.seed = chance_next(&chance)};
    struct writer steady = {0};
    char dir[DIR_MAX];
    int fds[2];

    (void)state;
    use_small_sizes(20000);
    shared = true;
    test_dir(dir);
    must(run_child(create, dir) == 0);
    steady.model = model;
    snprintf(steady.dir, sizeof steady.dir, "%s", dir);
    must(pipe(fds) == 0);
    steady.pipe_fd = fds[1];
    steady.pause_after = 10 + test_rounds(60);
    pid_t child = start_child(write_on, &steady);
    close(fds[1]);
    /* The other one removes and replaces the same pages, so we can only verify, not compare contents. */
    for (unsigned i = 0; i < test_rounds(40); i++) {
        none.commits = 0;
        write_and_kill(dir, &none, &chance);
    }
    follow(fds[0], &model, UINT32_MAX);
    must(model.commits == 10 + test_rounds(60));
    kill(child, SIGKILL);
    must(end_child(child) == -SIGKILL);
    close(fds[0]);
    must(run_child(check_sound, dir) == 0);
    use_usual_sizes();
    shared = false;
}

static void test_killed_creation(void **state)
{
    uint64_t chance = test_seed();
    unsigned rounds = test_rounds(100);

    (void)state;
    for (unsigned i = 0; i < rounds; i++) {
        struct model model = {.seed = chance_next(&chance)};
        char dir[DIR_MAX];
        test_dir(dir);
        pid_t child = start_child(create, dir);
        usleep((useconds_t)chance_below(&chance, 2500));
        kill(child, SIGKILL);
        end_child(child);
        if (!wb_store_exists(dir))
            must(run_child(create, dir) == 0);
        inspect_in_child(dir, &model);
        remove_tree(dir);
    }
}

/* A creation that was killed early may leave a catalog without a root record. */
static void test_leftovers_of_a_creation(void **state)
{
    struct model model = {.seed = 1};
    char dir[DIR_MAX], path[DIR_MAX];
    struct wb_buf zeros = WB_BUF_INIT;

    (void)state;
    must_ok(wb_buf_reserve(&zeros, 4096));
    memset(zeros.ptr, 0, 4096);
    for (size_t len = 0; len <= 4096; len += 1024) {
        test_dir(dir);
        path_in(dir, WB_CATALOG_NAME, path);
        must_ok(wb_path_replace(path, wb_slice(zeros.ptr, len)));
        path_in(dir, WB_SUPERBLOCK_NAME ".tmp", path);
        must_ok(wb_path_replace(path, wb_slice(zeros.ptr, len)));
        assert_int_equal(run_child(create, dir), 0);
        inspect_in_child(dir, &model);
    }
    wb_buf_release(&zeros);
}

/* ---- power loss ------------------------------------------------------------------------------------------- */

struct loss {
    char dir[DIR_MAX];
    uint64_t chance;
    struct wb_repo *repo;
};

/* Damages the bytes after the committed ones of a segment: what was written but not synced may be anything. */
static void lose(const char *dir, const struct wb_catalog_segment *row, uint64_t *chance)
{
    char path[DIR_MAX];
    uint8_t bytes[4096];

    segment_path(dir, row, path);
    uint64_t size = file_bytes(path), left = size > row->bytes ? size - row->bytes : 0;
    int fd = open(path, O_RDWR);
    must(fd >= 0 && size >= row->bytes);
    uint64_t at = row->bytes + (left ? chance_below(chance, left + 1) : 0);
    switch (chance_below(chance, 4)) {
    case 0:
        must(ftruncate(fd, (off_t)at) == 0);
        break;
    case 1: /* zeros from there on */
        must(ftruncate(fd, (off_t)at) == 0 && ftruncate(fd, (off_t)(size + chance_below(chance, 5000))) == 0);
        break;
    case 2: /* garbage from there on */
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)chance_next(chance);
        must(pwrite(fd, bytes, 1 + chance_below(chance, sizeof bytes), (off_t)at) > 0);
        break;
    default: /* some zeros, then what was written */
        memset(bytes, 0, sizeof bytes);
        if (at < size)
            must(pwrite(fd, bytes, size - at < sizeof bytes ? size - at : sizeof bytes, (off_t)at) > 0);
    }
    close(fd);
}

static int lose_of_rows(void *context)
{
    struct loss *loss = context;
    struct wb_catalog_rows rows;

    must_ok(wb_catalog_txn_wake(&loss->repo->reader));
    must_ok(wb_catalog_rows_read(&loss->repo->reader, &rows));
    wb_catalog_txn_park(&loss->repo->reader);
    for (size_t i = 0; i < rows.count; i++)
        if (!rows.items[i].sealed)
            lose(loss->dir, &rows.items[i], &loss->chance);
    wb_catalog_rows_release(&rows);
    return 0;
}

static int lose_tails(void *context)
{
    struct loss *loss = context;
    struct wb_store *store = open_store(loss->dir, WB_STORE_READ);

    loss->repo = wb_repo_of(store);
    must_ok(wb_catalog_call(loss->repo->catalog, lose_of_rows, loss));
    wb_store_close(store);
    return 0;
}

static void test_power_loss(void **state)
{
    uint64_t chance = test_seed();
    unsigned rounds = test_rounds(12);

    (void)state;
    for (unsigned i = 0; i < rounds; i++) {
        struct model model = {.seed = chance_next(&chance)};
        struct writer w = {.model = model, .pause_after = 1 + (unsigned)chance_below(&chance, 12)};
        int fds[2];
        /* Small groups, so that uncommitted blocks reach the file. */
        use_small_sizes(i % 2 ? 40000 : 4000000);
        wb_pagefile_sizes.group_bytes = 4000;
        test_dir(w.dir);
        must(run_child(create, w.dir) == 0);
        must(pipe(fds) == 0);
        w.pipe_fd = fds[1];
        pid_t child = start_child(write_on, &w);
        close(fds[1]);
        follow(fds[0], &model, UINT32_MAX);
        for (unsigned j = 0; j < 10; j++) {
            struct loss loss = {.chance = chance_next(&chance)};
            struct model copied = model;
            test_dir(loss.dir);
            copy_repository(w.dir, loss.dir);
            must(run_child(lose_tails, &loss) == 0);
            inspect_in_child(loss.dir, &copied);
            must(copied.commits == model.commits);
            write_and_kill(loss.dir, &copied, &chance);
            inspect_in_child(loss.dir, &copied);
            remove_tree(loss.dir);
        }
        kill(child, SIGKILL);
        end_child(child);
        close(fds[0]);
        remove_tree(w.dir);
    }
    use_usual_sizes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_writers),  cmocka_unit_test(test_killed_beside_another),
        cmocka_unit_test(test_killed_creation), cmocka_unit_test(test_leftovers_of_a_creation),
        cmocka_unit_test(test_power_loss),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
