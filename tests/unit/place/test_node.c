/*
 * test_node.c - files of nodes. Each test runs over a directory, and over a transport that delivers every request
 * twice: both replies must be the same, and so must everything that follows. Only the free space may have changed,
 * because others use the disk.
 */
#include "../expect.h"
#include "../testroot.h"
#include "base/mem.h"
#include "place/node.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/path.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct wb_node_identity identity = {.repository = {1, 2, 3}, .number = 2, .id = {9, 8}};
static struct wb_node *local, *node; /* node: local, or a transport to it */
static char dir[128];

static int deliver_twice(void *context, struct wb_slice request, struct wb_buf *reply)
{
    char name[WB_NODE_NAME_MAX];
    struct wb_node_request decoded;
    struct wb_buf first = WB_BUF_INIT;

    ok(wb_node_request_decode(request, name, &decoded));
    int err = wb_node_serve(context, request, &first);
    if (err == 0)
        err = wb_node_serve(context, request, reply);
    if (err == 0 && decoded.kind != WB_NODE_SPACE)
        assert_true(wb_slice_equal(wb_buf_slice(&first), wb_buf_slice(reply)));
    wb_buf_release(&first);
    return err;
}

static int open_node(void **state)
{
    make_root(state);
    snprintf(dir, sizeof dir, "%s/node2", test_root);
    ok(wb_node_make(dir, &identity));
    ok(wb_node_open(dir, &identity, &local));
    node = local;
    return 0;
}

static int open_wire(void **state)
{
    open_node(state);
    ok(wb_node_open_wire(dir, deliver_twice, local, &node));
    return 0;
}

static int close_node(void **state)
{
    if (node != local)
        wb_node_close(node);
    wb_node_close(local);
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
    wb_node_file_hint(&reader, WB_NODE_DISCARD, 0, 4); /* ignored: it has no claim */
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

/* More than fits into a message. */
static void test_large(void **state)
{
    enum { LEN = WB_NODE_BYTES_MAX + 1000 };
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

static void test_claims(void **state)
{
    struct wb_node_file first, second;

    (void)state;
    ok(wb_node_file_create(node, "pages/00000001.seg", &first));
    assert_int_equal(wb_node_file_create(node, "pages/00000001.seg", &second), WB_E_INVALID);
    ok(wb_node_file_open(node, "pages/00000001.seg", true, &second));
    assert_int_equal(wb_node_file_claim(&second), WB_E_BUSY);
    assert_int_equal(wb_node_file_write_at(&second, 0, "x", 1), WB_E_BUSY);
    assert_int_equal(wb_node_file_truncate(&second, 0), WB_E_BUSY);
    assert_int_equal(wb_node_file_remove(&second), WB_E_BUSY);
    assert_int_equal(wb_node_remove(node, "pages/00000001.seg"), WB_E_BUSY);
    wb_node_file_release(&first);
    assert_int_equal(wb_node_file_write_at(&first, 0, "late", 4), WB_E_BUSY); /* a repetition that arrives late */
    ok(wb_node_file_claim(&second));
    ok(wb_node_file_claim(&second));
    ok(wb_node_file_write_at(&second, 0, "x", 1));
    assert_int_equal(wb_node_file_claim(&first), WB_E_BUSY);
    wb_node_file_close(&second); /* ends the claim */
    ok(wb_node_file_claim(&first));
    wb_node_file_close(&first);
    ok(wb_node_file_open(node, "pages/00000001.seg", false, &first));
    ok(wb_node_file_claim(&first));
    assert_int_equal(wb_node_file_write_at(&first, 0, "x", 1), WB_E_INVALID); /* open for reading only */
    wb_node_file_close(&first);
    ok(wb_node_remove(node, "pages/00000001.seg"));
    ok(wb_node_remove(node, "pages/00000001.seg"));
    assert_int_equal(wb_node_file_open(node, "pages/00000001.seg", true, &first), WB_E_NOTFOUND);
}

/* Requests of an owner that has not opened the file, or whose node was started again, go by the name. */
static void test_without_open(void **state)
{
    struct wb_node_request request = {.kind = WB_NODE_CREATE, .owner = 5, .name = "pages/x"};
    struct wb_node_reply reply;
    char into[8];

    (void)state;
    ok(wb_node_call(node, &request, &reply));
    request.kind = WB_NODE_WRITE;
    request.bytes = WB_SLICE_LIT("abc");
    ok(wb_node_call(node, &request, &reply));
    wb_node_forget(local, 5); /* the connection ended: so did the claim */
    assert_int_equal(wb_node_call(node, &request, &reply), WB_E_BUSY);
    assert_true(reply.message.len > 0);
    request = (struct wb_node_request){.kind = WB_NODE_READ, .owner = 5, .name = "pages/x", .length = 8, .into = into};
    ok(wb_node_call(node, &request, &reply));
    expect(reply.bytes, "abc");
    request = (struct wb_node_request){.kind = WB_NODE_SYNC, .owner = 5, .name = "pages/x"};
    ok(wb_node_call(node, &request, &reply));
    request.kind = WB_NODE_CLAIM;
    ok(wb_node_call(node, &request, &reply));
    request.kind = WB_NODE_TRUNCATE;
    ok(wb_node_call(node, &request, &reply));
    request.kind = WB_NODE_SIZE;
    ok(wb_node_call(node, &request, &reply));
    assert_int_equal(reply.size, 0);
    request.kind = WB_NODE_CLOSE;
    ok(wb_node_call(node, &request, &reply));
    request.name = "pages/../webbase.node";
    request.kind = WB_NODE_REMOVE;
    assert_int_equal(wb_node_call(node, &request, &reply), WB_E_INVALID);
    assert_int_equal(wb_node_call(node, &(struct wb_node_request){.kind = WB_NODE_IDENTITY}, &reply), 0);
    assert_memory_equal(&reply.identity, &identity, sizeof identity);
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
    enum { FILES = 3000 }; /* more than one reply has room for */
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
            wb_node_file_open(local, "pages/00000001.seg", false, &mine) < 0 ||
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
    ok(wb_node_file_create(local, "pages/00000001.seg", &file));
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

static int send_nonsense(void *context, struct wb_slice request, struct wb_buf *reply)
{
    struct wb_node_reply answer = {.bytes = {"too many", 8}, .more = true};

    (void)request;
    if (*(int *)context == 0)
        return wb_buf_append_str(reply, "nonsense");
    if (*(int *)context == 1)
        return wb_fail(WB_E_DOWN, "no answer");
    if (*(int *)context == 3)
        answer.bytes.len = 0;
    return wb_node_reply_encode(&answer, reply);
}

static void test_bad_peer(void **state)
{
    static const int codes[] = {WB_E_PROTO, WB_E_DOWN, WB_E_PROTO, WB_E_PROTO};
    struct wb_buf reply = WB_BUF_INIT;
    struct wb_node *peer;
    uint64_t sums[3];

    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        ok(wb_node_open_wire("peer", send_nonsense, &kind, &peer));
        assert_int_equal(kind == 3 ? wb_node_each_file(peer, add_sizes, sums) : wb_node_sync_names(peer), codes[kind]);
        wb_node_close(peer);
    }
    assert_int_equal(wb_node_serve(local, WB_SLICE_LIT("nonsense"), &reply), WB_E_PROTO);
    assert_int_equal(reply.len, 0);
    wb_buf_release(&reply);
}

#define BOTH(test)                                                                                                     \
    cmocka_unit_test_setup_teardown(test, open_node, close_node),                                                      \
    {                                                                                                                  \
#test " over a transport", test, open_wire, close_node, NULL                                                   \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {BOTH(test_bytes),
                                       BOTH(test_large),
                                       BOTH(test_claims),
                                       BOTH(test_without_open),
                                       BOTH(test_list),
                                       BOTH(test_swap),
                                       BOTH(test_killed),
                                       cmocka_unit_test_setup_teardown(test_threads, open_node, close_node),
                                       cmocka_unit_test_setup_teardown(test_closed, open_node, close_node),
                                       cmocka_unit_test_setup_teardown(test_faults, open_node, close_node),
                                       cmocka_unit_test_setup_teardown(test_bad_peer, open_node, close_node)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
