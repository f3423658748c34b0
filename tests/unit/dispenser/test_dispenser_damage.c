/*
 * test_dispenser_damage.c - the file of the SQLite dispenser is damaged, full, read-only or foreign. A
 * reader gets what was written or an error that names the file, never anything else.
 */
#include "dispenser_support.h"
#include "dispenser/dispenser_rows.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/path.h"

#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <limits.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the file --------------------------------------------------------------------------------------------- */

/* Copies everything from the log into the one file. */
static void close_place(struct place *p)
{
    wb_dispenser_close(p->d);
    p->d = NULL;
}

static void test_not_a_database(void **state)
{
    struct place *p = *state;
    char path[128];

    close_place(p);
    path_of(p, path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 1000; i++)
        fprintf(f, "this is not a database\n");
    fclose(f);
    assert_int_equal(try_open(p), WB_E_CORRUPT);
    assert_true(message_has(path));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(try_open(p), WB_E_IO);
    assert_true(message_has(path));
}

/* Bytes of the file are changed: calls succeed, or fail with an error that names the file, but never crash or hang. */
static int use_damaged(void *context)
{
    struct place *p = context;
    struct wb_dispenser *d = NULL;
    char path[128];

    path_of(p, path);
    int err = wb_dispenser_open(p->dir, NULL, &d);
    if (err == 0)
        err = use_everything(d);
    wb_dispenser_close(d);
    must(err == 0 || err == WB_E_CORRUPT || err == WB_E_IO || err == WB_E_NOTFOUND || err == WB_E_NEWER ||
         err == WB_E_LIMIT);
    must(err == 0 || err == WB_E_NOTFOUND || message_has(path));
    return err == 0 ? 1 : 0;
}

static void test_damage(void **state)
{
    struct place *p = *state;
    uint64_t chance = test_seed();
    struct wb_buf good = WB_BUF_INIT;
    char path[128], name[32];
    unsigned noticed = 0, rounds = 60;

    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "s%d.org", i);
        add_site(p, name, "10.0.0.1", i % 5);
    }
    close_place(p);
    path_of(p, path);
    must_ok(wb_path_read(path, 64u << 20, &good));
    for (unsigned round = 0; round < rounds; round++) {
        struct wb_file file = WB_FILE_INIT;
        must_ok(wb_file_open(path, WB_FILE_WRITE | WB_FILE_TRUNCATE, &file));
        must_ok(wb_file_write_at(&file, 0, good.ptr, round % 4 == 3 ? chance_below(&chance, good.len) : good.len));
        for (unsigned k = 0; k < 40; k++) {
            /* Damage is worst in the heads of pages. */
            uint64_t page = chance_below(&chance, good.len / 4096) * 4096;
            uint64_t at = k % 2 ? chance_below(&chance, good.len) : page + chance_below(&chance, 16);
            uint8_t byte = (uint8_t)chance_below(&chance, 256);
            if (round % 4 != 3)
                must_ok(wb_file_write_at(&file, at, &byte, 1));
        }
        wb_file_close(&file);
        char other[160];
        snprintf(other, sizeof other, "%s-wal", path);
        unlink(other);
        snprintf(other, sizeof other, "%s-shm", path);
        unlink(other);
        int status = end_child(start_child(use_damaged, p));
        assert_true(status == 0 || status == 1);
        noticed += status == 0;
    }
    assert_true(noticed > rounds / 4);
    wb_buf_release(&good);
}

/* A limit on the size of files acts like a full disk: what fits is written, then nothing more. */
static int fill_disk(void *context)
{
    struct place *p = context;
    struct wb_dispenser *d = open_place(p);
    struct rlimit limit = {3 << 20, 3 << 20};
    char path[128], name[32];
    int err = 0;
    unsigned added = 0;

    path_of(p, path);
    signal(SIGXFSZ, SIG_IGN);
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    while (err == 0 && added < 100000) {
        struct wb_site_plan plan = {.name = wb_slice_str(name), .scheme = WB_SLICE_LIT("http"), .priority = 0,
                                    .delay_ms = -1, .budget = -1};
        uint64_t count;
        snprintf(name, sizeof name, "s%u.org", added++);
        plan.name = wb_slice_str(name);
        err = wb_dispenser_add(d, 1, &plan, 1, &count);
    }
    must(err == WB_E_IO && message_has(path));
    /* What was acknowledged can still be read. */
    snprintf(name, sizeof name, "s%u.org", added - 2);
    must(row_of(d, name).state == WB_SITE_UNRESOLVED);
    wb_dispenser_close(d);
    return 0;
}

static void test_full_disk(void **state)
{
    struct place *p = *state;

    close_place(p);
    assert_int_equal(end_child(start_child(fill_disk, p)), 0);
    p->d = open_place(p);
    assert_true(ask_number(p, "SELECT COUNT(*) FROM webbase_site") > 50);
    check_tables(p);
    add_site(p, "after.org", "10.0.0.1", 0);
}

static int open_read_only(void *context)
{
    struct place *p = context;
    struct wb_dispenser *d = NULL;

    if (getuid() == 0)
        must(setgid(65534) == 0 && setuid(65534) == 0);
    int err = wb_dispenser_open(p->dir, NULL, &d);
    /* If it can be read, writing is refused. */
    int64_t run;
    if (err == 0)
        err = begin_run(d, &run);
    must(err == WB_E_IO && message_has(p->dir));
    wb_dispenser_close(d);
    return 0;
}

static void test_read_only(void **state)
{
    struct place *p = *state;
    char path[128];

    close_place(p);
    path_of(p, path);
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(chmod(p->dir, 0555), 0);
    assert_int_equal(end_child(start_child(open_read_only, p)), 0);
    assert_int_equal(unlink(path) == 0 || getuid() != 0, 1);
    assert_int_equal(end_child(start_child(open_read_only, p)), 0);
    assert_int_equal(chmod(p->dir, 0755), 0);
}

/* ---- flipped bits ------------------------------------------------------------------------------------ */

static void count_problem(void *context, bool problem, uint64_t offset, const char *message)
{
    unsigned *problems = context;

    (void)offset, (void)message;
    *problems += problem;
}

static void flip(const char *path, uint64_t at, char bit)
{
    struct wb_file file;
    char byte;

    must_ok(wb_file_open(path, WB_FILE_WRITE, &file));
    must_ok(wb_file_read_exact(&file, at, &byte, 1));
    byte = (char)(byte ^ bit);
    must_ok(wb_file_write_at(&file, at, &byte, 1));
    wb_file_close(&file);
}

/* What a reader learns about a site, if anything. */
static int read_site(const struct place *p, const char *name, struct wb_site_row *row_out, struct wb_buf *mem)
{
    struct wb_dispenser *d = NULL;
    int err = wb_dispenser_open(p->dir, NULL, &d);

    if (err == 0)
        err = wb_dispenser_get(d, wb_slice_str(name), mem, row_out);
    wb_dispenser_close(d);
    return err;
}

/*
 * One bit is flipped anywhere in the file: a reader gets what was written, or learns that the file is damaged. It
 * never gets anything else, and never the answer that there is no such site. `verify` reports it, unless SQLite does
 * not use that byte.
 */
static void test_flips(void **state)
{
    struct place *p = *state;
    uint64_t chance = test_seed();
    char path[160], name[32];
    unsigned told = 0, found = 0, flips = 300;
    uint64_t size;
    struct wb_file file;

    for (unsigned i = 0; i < 200; i++) {
        struct wb_site_plan plan = {.scheme = WB_SLICE_LIT("http"), .class_name = WB_SLICE_EMPTY, .delay_ms = 5000 + i,
                                    .budget = -1};
        uint64_t added;
        snprintf(name, sizeof name, "site%u.org", i);
        plan.name = wb_slice_str(name);
        must_ok(wb_dispenser_add(p->d, p->run, &plan, 1, &added));
    }
    wb_dispenser_close(p->d);
    p->d = NULL;
    snprintf(path, sizeof path, "%s/dispenser.db", p->dir);
    must_ok(wb_file_open(path, WB_FILE_READ, &file));
    must_ok(wb_file_size(&file, &size));
    wb_file_close(&file);
    for (unsigned i = 0; i < flips; i++) {
        uint64_t at = i < 100 ? i : chance_below(&chance, size);
        char bit = (char)(1 << chance_below(&chance, 8));
        unsigned number = (unsigned)chance_below(&chance, 200), problems = 0;
        struct wb_buf mem = WB_BUF_INIT;
        struct wb_site_row row;
        flip(path, at, bit);
        must_ok(wb_dispenser_verify(p->dir, count_problem, &problems));
        snprintf(name, sizeof name, "site%u.org", number);
        int err = read_site(p, name, &row, &mem);
        told += err == 0;
        found += problems > 0;
        if (err == 0)
            assert_int_equal(row.delay_ms, 5000 + number);
        else if (err != WB_E_CORRUPT && err != WB_E_IO)
            fail_msg("bit %d of byte %llu: %d %s", bit, (unsigned long long)at, err, wb_error_message());
        wb_buf_release(&mem);
        flip(path, at, bit);
    }
    print_message("# of %u flips verify told of %u; %u lookups did not meet the damage\n", flips, found, told);
    assert_true(found > flips * 9 / 10);
    reopen_place(p);
    check_tables(p);
}

/* A file that another program made, with pages without checksums, is refused and left as it is. */
static void test_foreign_database(void **state)
{
    struct place *p = *state;
    struct wb_buf before = WB_BUF_INIT, after = WB_BUF_INIT;
    char path[160];
    unsigned problems = 0;
    sqlite3 *db;

    wb_dispenser_close(p->d);
    p->d = NULL;
    snprintf(path, sizeof path, "%s/dispenser.db", p->dir);
    must_ok(wb_path_unlink(path));
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE theirs (name TEXT)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    must_ok(wb_path_read(path, 1 << 20, &before));
    assert_int_equal(try_open(p), WB_E_CORRUPT);
    assert_true(message_has(path) && message_has("is not a database of webbase"));
    must_ok(wb_dispenser_verify(p->dir, count_problem, &problems));
    assert_int_equal(problems, 1);
    must_ok(wb_path_read(path, 1 << 20, &after));
    assert_true(wb_slice_equal(wb_buf_slice(&before), wb_buf_slice(&after)));
    wb_buf_release(&before);
    wb_buf_release(&after);
    must_ok(wb_path_unlink(path));
    reopen_place(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SQLITE(test_not_a_database), SQLITE(test_damage), SQLITE(test_full_disk),
        SQLITE(test_read_only),      SQLITE(test_flips),  SQLITE(test_foreign_database),
    };

    return cmocka_run_group_tests_name("dispenser faults", tests, NULL, end_server);
}
