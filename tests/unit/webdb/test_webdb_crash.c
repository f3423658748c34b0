/*
 * test_webdb_crash.c - writers that die. Afterwards the newest edition is the old one, unchanged, or the new one,
 * complete; the next writer continues from there and removes what was left.
 *
 * This file replaces the calls of the C library that change files: a child dies before or after any one of them, and a
 * file that is not synced when its edition gets its name is noticed. Nothing is really synced, because kill -9 does not
 * need it.
 */
#include "../rounds.h"
#include "webdb_compare.h"

#include <dirent.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

enum { INODES_MAX = 256, BATCHES = 40 };

static uint64_t seed;

/* ---- instead of the C library's calls -------------------------------------------------------- */

struct steps {
    atomic_uint done;     /* moments before and after calls, so far */
    unsigned die_at;      /* 0: never */
    atomic_uint unsynced; /* files that were not synced when their edition got its name */
    atomic_uint published;
};
static struct steps *steps; /* shared with children */
static bool watched;        /* this is a child whose calls count */
static struct {
    atomic_ulong inode;
    atomic_bool dirty;
} inodes[INODES_MAX];

static void moment(void)
{
    if (watched && atomic_fetch_add(&steps->done, 1) + 1 == steps->die_at)
        kill(getpid(), SIGKILL);
}

static unsigned long inode_of(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

static void set_dirty(unsigned long inode, bool dirty)
{
    if (!watched)
        return;
    for (size_t i = 0; i < INODES_MAX; i++) {
        unsigned long none = 0;
        if (atomic_load(&inodes[i].inode) == inode || atomic_compare_exchange_strong(&inodes[i].inode, &none, inode)) {
            atomic_store(&inodes[i].dirty, dirty);
            return;
        }
    }
}

static bool is_dirty(unsigned long inode, bool unknown)
{
    for (size_t i = 0; i < INODES_MAX; i++)
        if (atomic_load(&inodes[i].inode) == inode)
            return atomic_load(&inodes[i].dirty);
    return unknown;
}

/* Whether a directory, or a file in it, has bytes that were not synced. */
static void look_for_unsynced(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    if (!dir)
        return;
    atomic_fetch_add(&steps->published, 1);
    atomic_fetch_add(&steps->unsynced, is_dirty(inode_of(dirfd(dir)), true));
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            atomic_fetch_add(&steps->unsynced, is_dirty(entry->d_ino, true));
    closedir(dir);
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
    set_dirty(inode_of(fd), true);
    moment();
    ssize_t n = syscall(SYS_pwrite64, fd, bytes, len, offset);
    moment();
    return n;
}

int fdatasync(int fd)
{
    moment();
    set_dirty(inode_of(fd), false);
    return 0;
}

int fsync(int fd)
{
    moment();
    set_dirty(inode_of(fd), false);
    return 0;
}

int rename(const char *from, const char *to)
{
    moment();
    if (watched && strstr(from, "/new-"))
        look_for_unsynced(from);
    int result = (int)syscall(SYS_rename, from, to);
    moment();
    return result;
}

int unlink(const char *path)
{
    moment();
    return (int)syscall(SYS_unlink, path);
}

int rmdir(const char *path)
{
    moment();
    return (int)syscall(SYS_rmdir, path);
}

int mkdir(const char *path, mode_t mode)
{
    moment();
    int result = (int)syscall(SYS_mkdir, path, mode);
    moment();
    return result;
}

/* ---- one death, anywhere --------------------------------------------------------------------- */

static const char *copy_dir(const char *from)
{
    const char *to = new_dir();

    copy_tree(from, to);
    return to;
}

static void remove_dir(const char *dir)
{
    remove_tree(dir);
}

struct update {
    const char *dir;
    const struct twin_batch *batch;
    unsigned threads;
};

static void update_in_child(void *context, int to)
{
    const struct update *update = context;

    (void)to;
    watched = true;
    must(twin_update(update->dir, update->batch, 1, update->threads, NULL) == 0);
}

static int wait_for(struct child *child)
{
    int status;

    close(child->from);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    return status;
}

static uint32_t newest_edition(const char *dir)
{
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_count count = {.edition = 0};
    int err = wb_webdb_open(dir, &webdb);

    if (err == 0) {
        wb_webdb_count(webdb, &count);
        wb_webdb_close(webdb);
    }
    assert_true(err == 0 || err == WB_E_NOTFOUND);
    return count.edition;
}

/* Only the newest edition is left on disk. */
static void check_space(const char *dir)
{
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_count count;

    check_tidy(dir);
    worked(wb_webdb_open(dir, &webdb));
    wb_webdb_count(webdb, &count);
    wb_webdb_close(webdb);
    uint64_t bytes = look_into(dir).bytes;
    assert_true(bytes >= count.bytes && bytes < count.bytes + 4096);
}

struct deaths {
    const char *dir;         /* with `before` in it, and the journal of the batch */
    struct twin before, after;
    struct twin_batch batch, more;
    uint32_t edition;     /* of before */
};

/* Kills the update at a given moment. Returns false if it had ended before. */
static bool die_once(struct deaths *d, unsigned at, unsigned threads)
{
    static struct twin further;
    const char *dir = copy_dir(d->dir);
    struct update update = {dir, &d->batch, threads};
    struct wb_webdb_writer *writer = NULL;
    struct child child;

    atomic_store(&steps->done, 0);
    steps->die_at = at;
    child = start_child(update_in_child, &update);
    int status = wait_for(&child);
    steps->die_at = 0;
    assert_true((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
                (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    uint32_t edition = newest_edition(dir);
    assert_true(edition == d->edition || edition == d->edition + 1);
    assert_true(WIFSIGNALED(status) || edition == d->edition + 1);
    if (edition)
        same_as_newest(edition == d->edition ? &d->before : &d->after, dir);
    check_clean(dir);
    /* The next writer removes the leftovers, even if it has nothing else to do. */
    worked(wb_webdb_writer_open(dir, NULL, &writer));
    worked(wb_webdb_writer_close(writer, NULL));
    if (edition)
        check_space(dir);
    /*
     * The same once more where it was not done, then another: the journal is not merged twice, and nothing is left
     * over.
     */
    if (edition == d->edition)
        worked(twin_update(dir, &d->batch, 0, 1, NULL));
    same_as_newest(&d->after, dir);
    check_space(dir);
    further = d->after;
    worked(twin_update(dir, &d->more, 0, 2, NULL));
    twin_apply(&further, &d->more);
    same_as_newest(&further, dir);
    check_clean(dir);
    check_space(dir);
    remove_dir(dir);
    return WIFSIGNALED(status);
}

static void make_deaths(struct deaths *d, unsigned editions)
{
    uint64_t chance = seed;

    memset(d, 0, sizeof *d);
    d->dir = new_dir();
    for (unsigned i = 0; i < editions; i++) {
        twin_batch_make(&d->batch, chance_next(&chance), 1790000000000 + 1000 * i, 120, 60);
        worked(twin_write_journal(d->dir, &d->batch));
        worked(twin_update(d->dir, &d->batch, 0, 1, NULL));
        twin_apply(&d->before, &d->batch);
        d->edition++;
    }
    twin_batch_make(&d->batch, chance_next(&chance), 1790000100000, 120, 60);
    twin_batch_make(&d->more, chance_next(&chance), 1790000200000, 50, 0);
    worked(twin_write_journal(d->dir, &d->batch));
    d->after = d->before;
    twin_apply(&d->after, &d->batch);
}

/* At every moment, or at the share of them that this run does. */
static void die_everywhere(unsigned editions)
{
    static struct deaths d;
    static char dir[96];
    uint64_t chance = seed;
    unsigned at = test_stride(&chance);

    make_deaths(&d, editions);
    snprintf(dir, sizeof dir, "%s", d.dir);
    d.dir = dir;
    atomic_store(&steps->unsynced, 0);
    atomic_store(&steps->published, 0);
    while (die_once(&d, at, 1 + (unsigned)chance_below(&chance, 2)))
        at += test_stride(&chance);
    printf("# fewer than %u moments to die at\n", at);
    /*
     * Every file is written and synced, the edition gets its name, the old one is removed: no fewer moments than that.
     */
    assert_true(at > 30);
    assert_true(atomic_load(&steps->published) > 0);
    assert_int_equal(atomic_load(&steps->unsynced), 0);
}

static void test_first_edition(void **state)
{
    (void)state;
    die_everywhere(0);
}

static void test_later_edition(void **state)
{
    (void)state;
    die_everywhere(2);
}

/* ---- a held edition -------------------------------------------------------------------------- */

/* What a child has done: each is written to its pipe before the next one begins. */
enum held_step { HELD = 1, UPDATED, RELEASING };

static void hold_in_child(void *context, int to)
{
    const struct deaths *d = context;
    char step = HELD;

    watched = true;
    must(wb_webdb_hold(d->dir, d->edition, "generation-1") == 0);
    must(write(to, &step, 1) == 1);
    must(twin_update(d->dir, &d->batch, 1, 1, NULL) == 0);
    step = UPDATED;
    must(write(to, &step, 1) == 1);
    step = RELEASING;
    must(write(to, &step, 1) == 1);
    must(wb_webdb_release(d->dir, d->edition, "generation-1") == 0);
    must(twin_update(d->dir, &d->more, 1, 1, NULL) == 0);
}

/* Kills the child at a given moment. Returns false if it had ended before. */
static bool die_holding(struct deaths *d, unsigned at)
{
    struct wb_webdb *webdb = NULL;
    const char *dir = copy_dir(d->dir), *from = d->dir;
    char step = 0, next;
    int status;

    atomic_store(&steps->done, 0);
    steps->die_at = at;
    d->dir = dir;
    struct child child = start_child(hold_in_child, d);
    d->dir = from;
    while (next_ack(&child, &next, 1))
        step = next;
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    close(child.from);
    steps->die_at = 0;
    assert_true((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
                (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    check_clean(dir);
    /* The edition is complete or gone, and not gone if its hold was acknowledged. The next writer leaves it so. */
    for (int round = 0; round < 2; round++) {
        struct wb_webdb_writer *writer = NULL;
        int err = wb_webdb_open_edition(dir, d->edition, &webdb);
        assert_true(err == 0 || (err == WB_E_NOTFOUND && step != HELD && step != UPDATED));
        if (err == 0)
            same_as_twin(&d->before, webdb);
        wb_webdb_close(webdb);
        worked(wb_webdb_writer_open(dir, NULL, &writer));
        worked(wb_webdb_writer_close(writer, NULL));
    }
    int err = wb_webdb_release(dir, d->edition, "generation-1");
    assert_true(err == 0 || (err == WB_E_NOTFOUND && step != HELD && step != UPDATED));
    worked(twin_update(dir, &d->more, 0, 1, NULL));
    check_space(dir);
    check_clean(dir);
    remove_dir(dir);
    return WIFSIGNALED(status);
}

static void test_held(void **state)
{
    static struct deaths d;
    static char dir[96];
    uint64_t chance = seed;
    unsigned at = test_stride(&chance);

    (void)state;
    make_deaths(&d, 1);
    snprintf(dir, sizeof dir, "%s", d.dir);
    d.dir = dir;
    while (die_holding(&d, at))
        at += test_stride(&chance);
    printf("# fewer than %u moments to die at\n", at);
    assert_true(at > 60);
}

/* ---- deaths at any time, with readers beside ------------------------------------------------- */

static struct twin twins[BATCHES + 1];
static struct twin_batch batches[BATCHES];

struct run {
    const char *dir;
    uint32_t from;
};

static void update_on(void *context, int to)
{
    const struct run *run = context;

    for (uint32_t i = run->from; i < BATCHES; i++) {
        must(twin_update(run->dir, &batches[i], 1, 1 + i % 2, NULL) == 0);
        must(write(to, &i, sizeof i) == sizeof i);
    }
}

/* A reader always gets one of the editions that were written, complete. */
static void read_for(const char *dir, uint64_t microseconds)
{
    struct timespec now, end;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += (long)(microseconds * 1000);
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    do {
        struct wb_webdb *webdb = NULL;
        struct wb_webdb_count count;
        int err = wb_webdb_open(dir, &webdb);
        assert_true(err == 0 || err == WB_E_NOTFOUND);
        if (err == 0) {
            wb_webdb_count(webdb, &count);
            assert_true(count.edition <= BATCHES);
            same_as_twin(&twins[count.edition], webdb);
        }
        wb_webdb_close(webdb);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

static void test_killed_writers(void **state)
{
    uint64_t chance = seed + 1;
    struct run run = {.dir = new_dir(), .from = 0};
    unsigned kills = 0, patience = 1;

    (void)state;
    for (uint32_t i = 0; i < BATCHES; i++) {
        twin_batch_make(&batches[i], chance_next(&chance), 1790000000000 + 1000 * i, 1 + chance_below(&chance, 200), 0);
        twins[i + 1] = twins[i];
        twin_apply(&twins[i + 1], &batches[i]);
    }
    while (run.from < BATCHES && kills < 120) {
        struct child child = start_child(update_on, &run);
        uint32_t acknowledged = run.from, ack;
        int status;
        read_for(run.dir, patience * chance_below(&chance, kills % 4 ? 12000 : 60000));
        kill(child.pid, SIGKILL);
        assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
        assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
        kills += WIFSIGNALED(status);
        while (next_ack(&child, &ack, sizeof ack))
            acknowledged = ack + 1;
        close(child.from);
        uint32_t edition = newest_edition(run.dir);
        assert_true(edition == acknowledged || edition == acknowledged + 1);
        if (edition)
            same_as_newest(&twins[edition], run.dir);
        check_clean(run.dir);
        /* A slow or busy machine gets further before the next kill. */
        patience += edition == run.from && patience < 100;
        run.from = edition;
    }
    printf("# killed %u times, %u editions\n", kills, run.from);
    assert_true(kills > 0 && run.from > 0);
}

static int begin(void **state)
{
    seed = test_seed();
    twin_init();
    steps = mmap(NULL, sizeof *steps, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return steps == MAP_FAILED ? -1 : make_root(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_edition),
        cmocka_unit_test(test_later_edition),
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_killed_writers),
    };

    return cmocka_run_group_tests(tests, begin, remove_root);
}
