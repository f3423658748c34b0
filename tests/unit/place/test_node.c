/* test_node.c - files of nodes, and the directory they are in: who may write to them, and what happens if it goes away.
 */
#include "../expect.h"
#include "../testroot.h"
#include "base/mem.h"
#include "place/node.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/path.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct wb_node_identity identity = {.repository = {1, 2, 3}, .number = 2, .id = {9, 8}};
static struct wb_node *node;
static char dir[128];

static int open_node(void **state)
{
    make_root(state);
    snprintf(dir, sizeof dir, "%s/node2", test_root);
    ok(wb_node_make(dir, &identity));
    ok(wb_node_open(dir, &identity, &node));
    return 0;
}

static int close_node(void **state)
{
    wb_node_close(node);
    return remove_root(state);
}

static void test_bytes(void **state)
{
    struct wb_node_file file, reader;
    char got[16];
    size_t len;
    uint64_t size;

    (void)state;
    ok(wb_node_file_create(node, "pages/00000001.seg", &file));
    assert_non_null(strstr(file.path, dir));
    ok(wb_node_file_write_at(&file, 0, "hello", 5));
    ok(wb_node_file_write_at(&file, 3, "p me", 4));
    ok(wb_node_file_sync(&file));
    ok(wb_node_sync_names(node));
    ok(wb_node_file_open(node, "pages/00000001.seg", false, &reader));
    ok(wb_node_file_read_at(&reader, 0, got, sizeof got, &len));
    expect(wb_slice(got, len), "help me");
    ok(wb_node_file_read_exact(&reader, 2, got, 3));
    expect(wb_slice(got, 3), "lp ");
    assert_int_equal(wb_node_file_read_exact(&reader, 2, got, 6), WB_E_CORRUPT);
    ok(wb_node_file_read_at(&reader, 100, got, sizeof got, &len));
    assert_int_equal(len, 0);
    ok(wb_node_file_truncate(&file, 4));
    ok(wb_node_file_size(&reader, &size));
    assert_int_equal(size, 4);
    wb_node_file_hint(&reader, WB_NODE_SEQUENTIAL, 0, 0);
    wb_node_file_hint(&file, WB_NODE_WRITE_BACK, 0, 4);
    ok(wb_node_file_read_exact(&reader, 0, got, 4));
    expect(wb_slice(got, 4), "help");
    /* What was removed can be read by those who have it open. */
    ok(wb_node_file_remove(&file));
    ok(wb_node_file_read_exact(&reader, 0, got, 4));
    wb_node_file_close(&file);
    wb_node_file_close(&reader);
    assert_int_equal(wb_node_file_open(node, "pages/00000001.seg", false, &reader), WB_E_NOTFOUND);
    wb_node_file_close(&reader); /* it is not open */
}

static void test_large(void **state)
{
    enum { LEN = (16 << 20) + 1000 };
    char *bytes = wb_alloc(LEN), *back = wb_alloc_zero(1, LEN);
    struct wb_node_file file;
    size_t got;

    (void)state;
    for (size_t i = 0; i < LEN; i++)
        bytes[i] = (char)(i * 31 + (i >> 9));
    ok(wb_node_file_create(node, "pages/large", &file));
    ok(wb_node_file_write_at(&file, 10, bytes, LEN));
    ok(wb_node_file_read_exact(&file, 10, back, LEN));
    assert_memory_equal(bytes, back, LEN);
    ok(wb_node_file_read_at(&file, 11, back, LEN, &got));
    assert_int_equal(got, LEN - 1);
    wb_node_file_close(&file);
    wb_free(bytes);
    wb_free(back);
}

static int write_byte(const struct wb_node_file *file)
{
    return wb_node_file_write_at(file, 0, "x", 1);
}

static int cut_off(const struct wb_node_file *file)
{
    return wb_node_file_truncate(file, 0);
}

/* Whether a process that does this to the file is stopped: writing to what others may write to is a bug of ours. */
static bool ends_at_once(int (*use)(const struct wb_node_file *file), const struct wb_node_file *file)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        struct rlimit none = {0, 0};
        int null = open("/dev/null", O_WRONLY);
        setrlimit(RLIMIT_CORE, &none);
        dup2(null, STDERR_FILENO); /* what the assertion says */
        use(file);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void test_claims(void **state)
{
    struct wb_node_file first, second;

    (void)state;
    ok(wb_node_file_create(node, "pages/00000001.seg", &first));
    assert_int_equal(wb_node_file_create(node, "pages/00000001.seg", &second), WB_E_INVALID);
    ok(wb_node_file_open(node, "pages/00000001.seg", true, &second));
    assert_int_equal(wb_node_file_claim(&second), WB_E_BUSY);
    assert_true(ends_at_once(write_byte, &second));
    assert_true(ends_at_once(cut_off, &second));
    assert_int_equal(wb_node_file_remove(&second), WB_E_BUSY);
    assert_int_equal(wb_node_remove(node, "pages/00000001.seg"), WB_E_BUSY);
    wb_node_file_release(&first);
    assert_true(ends_at_once(write_byte, &first)); /* no longer */
    ok(wb_node_file_claim(&second));
    ok(wb_node_file_claim(&second));
    ok(wb_node_file_write_at(&second, 0, "x", 1));
    assert_int_equal(wb_node_file_claim(&first), WB_E_BUSY);
    wb_node_file_close(&second); /* ends the claim */
    ok(wb_node_file_claim(&first));
    wb_node_file_close(&first);
    ok(wb_node_file_open(node, "pages/00000001.seg", false, &first));
    ok(wb_node_file_claim(&first));
    assert_true(ends_at_once(write_byte, &first)); /* open for reading only */
    wb_node_file_close(&first);
    ok(wb_node_remove(node, "pages/00000001.seg"));
    ok(wb_node_remove(node, "pages/00000001.seg"));
    assert_int_equal(wb_node_file_open(node, "pages/00000001.seg", true, &first), WB_E_NOTFOUND);
}

/* Nothing outside of the directory can be named. */
static void test_names(void **state)
{
    static const char *const names[] = {
        "",
        "pages",
        "pages/",
        "pages/.",
        "pages/..",
        "pages/.hidden",
        "pages/a/b",
        "pages/../webbase.node",
        "/etc/passwd",
        "webbase.node",
        "pages//a",
        "Pages/a",
        "pages/a b",
        "pages/\xc3\xa4",
        "pages/a\n",
        "pages/0123456789012345678901234567890123456789012345678901234567890123",
    };
    struct wb_node_file file;

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_int_equal(wb_node_file_create(node, names[i], &file), WB_E_INVALID);
        assert_int_equal(wb_node_file_open(node, names[i], true, &file), WB_E_INVALID);
        assert_null(file.node);
        assert_int_equal(wb_node_remove(node, names[i]), WB_E_INVALID);
    }
    ok(wb_node_check(dir, &identity));
    ok(wb_node_file_create(node, "pages/012345678901234567890123456789012345678901234567890123456", &file));
    assert_string_equal(file.name, "pages/012345678901234567890123456789012345678901234567890123456");
    wb_node_file_close(&file);
    ok(wb_node_file_create(node, "pages/00000001.2.seg", &file));
    wb_node_file_close(&file);
    /* A pipe would make us wait for somebody who writes to it. */
    assert_int_equal(mkfifo(test_path("node2/pages/pipe"), 0600), 0);
    assert_int_equal(wb_node_file_open(node, "pages/pipe", false, &file), WB_E_CORRUPT);
}

static int add_sizes(void *context, const struct wb_node_entry *entry)
{
    uint64_t *sums = context;

    sums[0]++;
    sums[1] += entry->size;
    sums[2] += entry->disk_bytes;
    return entry->size == 7 ? 42 : 0;
}

static void test_list(void **state)
{
    enum { FILES = 3000 };
    uint64_t sums[3] = {0};
    struct wb_node_space space;
    char name[64];

    (void)state;
    for (unsigned i = 1; i <= FILES; i++) {
        struct wb_file file;
        snprintf(name, sizeof name, "node2/pages/%08u.seg", i);
        ok(wb_file_open(test_path(name), WB_FILE_WRITE | WB_FILE_CREATE, &file));
        if (i == 5)
            ok(wb_file_write_at(&file, 0, "12345", 5));
        wb_file_close(&file);
    }
    ok(wb_path_replace(test_path("node2/pages/a name that we never write"), wb_slice_str("x")));
    ok(wb_path_mkdirs(test_path("node2/pages/dir")));
    ok(wb_node_each_file(node, add_sizes, sums));
    assert_int_equal(sums[0], FILES);
    assert_int_equal(sums[1], 5);
    ok(wb_path_replace(test_path("node2/pages/00000006.seg"), wb_slice_str("1234567")));
    sums[0] = 0;
    assert_int_equal(wb_node_each_file(node, add_sizes, sums), 42);
    assert_int_equal(sums[0], 6);
    ok(wb_node_space(node, &space));
    assert_true(space.capacity > 0 && space.free <= space.capacity && !space.read_only);
}

/* The disk goes away, another comes in its place, and it comes back. */
static void test_swap(void **state)
{
    struct wb_node_identity other = identity;
    struct wb_node_file file, another;
    struct wb_node_space space;
    char got[4];

    (void)state;
    ok(wb_node_file_create(node, "pages/00000001.seg", &file));
    ok(wb_node_file_write_at(&file, 0, "abcd", 4));
    ok(wb_path_rename(dir, test_path("away")));
    assert_int_equal(wb_node_file_open(node, "pages/00000001.seg", true, &another), WB_E_DOWN);
    assert_int_equal(wb_node_space(node, &space), WB_E_DOWN);
    assert_int_equal(wb_node_probe(node), WB_E_DOWN);
    assert_non_null(strstr(wb_error_message(), "missing"));
    ok(wb_path_mkdirs(test_path("node2/pages")));
    assert_int_equal(wb_node_file_create(node, "pages/00000002.seg", &another), WB_E_DOWN);
    other.number = 3;
    ok(wb_path_rename(dir, test_path("empty")));
    ok(wb_node_make(dir, &other));
    assert_int_equal(wb_node_file_create(node, "pages/00000002.seg", &another), WB_E_DOWN);
    assert_non_null(strstr(wb_error_message(), "is node 3"));
    assert_int_equal(wb_node_sync_names(node), WB_E_DOWN);
    assert_int_equal(wb_node_remove(node, "pages/00000001.seg"), WB_E_DOWN);
    assert_int_equal(wb_path_kind(test_path("node2/pages/00000002.seg")), WB_PATH_NONE);
    ok(wb_node_file_read_exact(&file, 0, got, 4)); /* it is still a file of the right node */
    ok(wb_path_rename(dir, test_path("three")));
    ok(wb_path_rename(test_path("away"), dir));
    ok(wb_node_probe(node));
    ok(wb_node_file_open(node, "pages/00000001.seg", false, &another));
    ok(wb_node_file_read_exact(&another, 0, got, 4));
    expect(wb_slice(got, 4), "abcd");
    wb_node_file_close(&another);
    wb_node_file_close(&file);
}

enum { THREADS = 4, ROUNDS = 300 };

/* Reads a file that all threads share, and opens and closes files of its own. */
static void *use_node(void *context)
{
    const struct wb_node_file *shared = context;
    char got[4];

    for (int i = 0; i < ROUNDS; i++) {
        struct wb_node_file mine = WB_NODE_FILE_INIT;
        if (wb_node_file_read_exact(shared, 0, got, 4) < 0 || memcmp(got, "abcd", 4) != 0 ||
            wb_node_file_open(node, "pages/00000001.seg", false, &mine) < 0 ||
            wb_node_file_read_exact(&mine, 0, got, 4) < 0 || memcmp(got, "abcd", 4) != 0)
            return (void *)1;
        wb_node_file_close(&mine);
    }
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[THREADS];
    struct wb_node_file file;

    (void)state;
    ok(wb_node_file_create(node, "pages/00000001.seg", &file));
    ok(wb_node_file_write_at(&file, 0, "abcd", 4));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_node, &file), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    wb_node_file_close(&file);
}

/* A node that was closed lives as long as its open files. */
static void test_closed(void **state)
{
    struct wb_node *mine;
    struct wb_node_file file;
    char got[4];

    (void)state;
    ok(wb_node_open(dir, &identity, &mine));
    ok(wb_node_file_create(mine, "pages/00000001.seg", &file));
    wb_node_close(mine);
    ok(wb_node_file_write_at(&file, 0, "abcd", 4));
    ok(wb_node_file_read_exact(&file, 0, got, 4));
    expect(wb_slice(got, 4), "abcd");
    wb_node_file_close(&file);
}

/* A claim ends with the process that has it. */
static void test_killed(void **state)
{
    struct wb_node_file file;
    int ends[2];
    char c;

    (void)state;
    ok(wb_path_replace(test_path("node2/pages/00000001.seg"), wb_slice_str("")));
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct wb_node *mine;
        if (wb_node_open(dir, &identity, &mine) == 0 &&
            wb_node_file_open(mine, "pages/00000001.seg", true, &file) == 0 && wb_node_file_claim(&file) == 0 &&
            write(ends[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ends[0], &c, 1), 1);
    ok(wb_node_file_open(node, "pages/00000001.seg", true, &file));
    assert_int_equal(wb_node_file_claim(&file), WB_E_BUSY);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    ok(wb_node_file_claim(&file));
    wb_node_file_close(&file);
    close(ends[0]);
    close(ends[1]);
}

static int make_and_write(void)
{
    struct wb_node_file file = WB_NODE_FILE_INIT;
    int err = wb_node_file_create(node, "pages/00000001.seg", &file);

    if (err == 0)
        err = wb_node_file_write_at(&file, 0, "abcd", 4);
    if (err == 0)
        err = wb_node_file_sync(&file);
    if (err == 0)
        err = wb_node_sync_names(node);
    wb_node_file_close(&file);
    return err;
}

/* Whatever fails is reported, leaves nothing open, and can be done again. */
static void test_faults(void **state)
{
    uint64_t n = 1;

    (void)state;
    for (;; n++) {
        wb_fault_arm(WB_FAULT_ANY, n, EIO);
        int err = make_and_write();
        wb_fault_disarm();
        bool struck = wb_fault_struck();
        assert_true(struck ? err < 0 : err == 0);
        ok(wb_node_remove(node, "pages/00000001.seg"));
        if (!struck)
            break;
    }
    assert_true(n > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_bytes, open_node, close_node),
                                       cmocka_unit_test_setup_teardown(test_large, open_node, close_node),
                                       cmocka_unit_test_setup_teardown(test_claims, open_node, close_node),
                                       cmocka_unit_test_setup_teardown(test_names, open_node, close_node),
                                       cmocka_unit_test_setup_teardown(test_list, open_node, close_node),
                                       cmocka_unit_test_setup_teardown(test_swap, open_node, close_node),
                                       cmocka_unit_test_setup_teardown(test_killed, open_node, close_node),
                                       cmocka_unit_test_setup_teardown(test_threads, open_node, close_node),
                                       cmocka_unit_test_setup_teardown(test_closed, open_node, close_node),
                                       cmocka_unit_test_setup_teardown(test_faults, open_node, close_node)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
