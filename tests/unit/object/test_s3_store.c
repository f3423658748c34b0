/* test_s3_store.c - objects in an S3 store: what is sent, what is understood, what a person is told. */
#include "s3_support.h"

#include "../testroot.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/path.h"

#include <stdatomic.h>
#include <unistd.h>

static struct stand stand;

static int begin(void **state)
{
    (void)state;
    stand_start(&stand);
    return 0;
}

static int end(void **state)
{
    (void)state;
    stand_stop(&stand);
    return 0;
}

static void expect_target(unsigned number, const char *want)
{
    assert_true(number < stand_requests(&stand));
    assert_string_equal(stand.targets[number], want);
}

static void use_all(struct wb_object_store *store)
{
    uint64_t size;

    expect_none(store, "head");
    ok(wb_object_put(store, "head", wb_slice_str("old")));
    ok(wb_object_put(store, "head", wb_slice_str("0123456789")));
    expect_object(store, "head", "0123456789");
    expect_range(store, "head", 0, 1, "0");
    expect_range(store, "head", 3, 4, "3456");
    expect_range(store, "head", 8, 100, "89");
    expect_range(store, "head", 10, 5, "");
    expect_range(store, "head", INT64_MAX, WB_OBJECT_MAX, "");
    ok(wb_object_size(store, "head", &size));
    assert_int_equal(size, 10);
    ok(wb_object_put(store, "empty", WB_SLICE_EMPTY));
    expect_object(store, "empty", "");
    expect_range(store, "empty", 0, 9, "");
    ok(wb_object_size(store, "empty", &size));
    assert_int_equal(size, 0);
    for (char name[] = "objects/0"; name[8] < '8'; name[8]++)
        ok(wb_object_put(store, name, wb_slice_str(name + 8)));
    expect_list(store, "",
                "empty 0\nhead 10\nobjects/0 1\nobjects/1 1\nobjects/2 1\nobjects/3 1\nobjects/4 1\n"
                "objects/5 1\nobjects/6 1\nobjects/7 1\n");
    expect_list(store, "objects/7", "objects/7 1\n");
    expect_list(store, "q", "");
    ok(wb_object_delete(store, "head"));
    ok(wb_object_delete(store, "head"));
    expect_none(store, "head");
}

/* With prefixes that must be encoded, each character as itself. Every request is signed for what arrives. */
static void test_prefixes(void **state)
{
    static const char *const urls[] = {"s3://bucket", "s3://bucket/p/q/", "s3://bucket/team=a+b:c,d@e/v1.0~x",
                                       "s3://bucket/a b%20c/../d?x=1&y#z/\xc3\xbc", "s3://bucket//p"};
    unsigned connections = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(urls); i++) {
        struct wb_object_store *store = stand_open(&stand, urls[i]);
        assert_int_equal(stand.connections, connections); /* opening asks nobody */
        use_all(store);
        wb_object_close(store);
        /* One thread needs one connection. */
        assert_int_equal(stand.connections, ++connections);
    }
    assert_int_equal(stand.bad, 0);
    assert_true(stand_has(&stand, "team=a+b:c,d@e/v1.0~x/objects/3", "3"));
    assert_true(stand_has(&stand, "a b%20c/../d?x=1&y#z/\xc3\xbc/objects/3", "3"));
    assert_true(stand_has(&stand, "objects/3", "3"));
    assert_true(stand_has(&stand, "/p/objects/3", "3"));
}

static void test_targets(void **state)
{
    struct wb_object_store *store = stand_open(&stand, "s3://bucket/a b/../c+d");
    struct wb_object_counts counts;

    (void)state;
    ok(wb_object_put(store, "x/y", wb_slice_str("bytes")));
    expect_target(0, "PUT /bucket/a%20b/../c%2Bd/x/y");
    expect_list(store, "x/", "x/y 5\n");
    expect_target(1, "GET /bucket?encoding-type=url&list-type=2&prefix=a%20b%2F..%2Fc%2Bd%2Fx%2F");
    ok(wb_object_delete(store, "x/y"));
    expect_target(2, "DELETE /bucket/a%20b/../c%2Bd/x/y");
    wb_object_counts(store, &counts);
    assert_int_equal(counts.puts, 1);
    assert_int_equal(counts.lists, 1);
    assert_int_equal(counts.deletes, 1);
    assert_int_equal(counts.bytes_put, 5);
    wb_object_close(store);
}

static void test_token(void **state)
{
    struct wb_object_store *store;

    (void)state;
    stand.token = "session/TOKEN+==";
    stand_environment(&stand);
    setenv("AWS_SESSION_TOKEN", stand.token, 1);
    ok(wb_object_open("s3://bucket/t", NULL, &store));
    use_all(store);
    wb_object_close(store);
    assert_int_equal(stand.bad, 0);
}

/* ---- what a person is told --------------------------------------------------------------------------------- */

struct refusal {
    int status;
    const char *code, *more; /* what the store says */
    int err;
    const char *words[3];
};

static const struct refusal refusals[] = {
    {403, "SignatureDoesNotMatch", NULL, WB_E_DENIED, {"AWS_SECRET_ACCESS_KEY", "s3://bucket/p", STAND_ACCESS}},
    {403, "InvalidAccessKeyId", NULL, WB_E_DENIED, {"AWS_ACCESS_KEY_ID", STAND_ACCESS, "127.0.0.1"}},
    {400, "ExpiredToken", NULL, WB_E_DENIED, {"expired", "AWS_SESSION_TOKEN"}},
    {400, "InvalidToken", NULL, WB_E_DENIED, {"session token", "AWS_SESSION_TOKEN"}},
    {404, "NoSuchBucket", NULL, WB_E_DENIED, {"no bucket bucket", "127.0.0.1", "s3://bucket/p"}},
    {400, "InvalidBucketName", NULL, WB_E_DENIED, {"bucket", "s3://bucket/p"}},
    {403, "AccessDenied", NULL, WB_E_DENIED, {"p/name", "bucket", "permission"}},
    {403, "QuotaExceeded", NULL, WB_E_DENIED, {"no room", "bucket"}},
    {401, "Unauthorized", NULL, WB_E_DENIED, {"p/name", "bucket"}},
    {400,
     "AuthorizationHeaderMalformed",
     "<Region>eu-west-3</Region>",
     WB_E_DENIED,
     {"AWS_REGION=eu-west-3", "not in us-east-1"}},
    {400, "AuthorizationHeaderMalformed", NULL, WB_E_DENIED, {"AWS_REGION", "us-east-1"}},
    {301, "PermanentRedirect", NULL, WB_E_DENIED, {"region", "bucket"}},
    {307, "TemporaryRedirect", NULL, WB_E_DENIED, {"region", "bucket"}},
    {404, "NoSuchKey", NULL, WB_E_NOTFOUND, {"s3://bucket/p", "name"}},
    {404, "WeAreNoStore", NULL, WB_E_PROTO, {"127.0.0.1", "404", "AWS_ENDPOINT_URL"}},
    {400, "InvalidRequest", NULL, WB_E_PROTO, {"400", "InvalidRequest", "a & b"}},
    {405, "MethodNotAllowed", NULL, WB_E_PROTO, {"405", "MethodNotAllowed"}},
    {501, "NotImplemented", NULL, WB_E_PROTO, {"501", "NotImplemented"}},
    {302, "Found", NULL, WB_E_PROTO, {"302"}},
};

static void expect_words(const struct refusal *r)
{
    for (size_t i = 0; i < COUNT(r->words) && r->words[i]; i++)
        if (!strstr(wb_error_message(), r->words[i]))
            fail_msg("%d %s: no '%s' in '%s'", r->status, r->code, r->words[i], wb_error_message());
    assert_null(strstr(wb_error_message(), STAND_SECRET));
}

/* One request is made, and the answer is final. */
static void test_refusals(void **state)
{
    struct wb_object_store *store = stand_open(&stand, "s3://bucket/p");
    struct wb_buf bytes;
    uint64_t size;

    (void)state;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        const struct refusal *r = &refusals[i];
        stand.rest = (struct act){ACT_STATUS, r->status, r->code, r->more};
        unsigned before = stand_requests(&stand);
        assert_int_equal(wb_object_get(store, "name", 10, &bytes), r->err);
        expect_words(r);
        if (r->err != WB_E_NOTFOUND) {
            assert_int_equal(wb_object_put(store, "name", wb_slice_str("x")), r->err);
            expect_words(r);
            assert_int_equal(wb_object_delete(store, "name"), r->err);
            expect_words(r);
            assert_int_equal(stand_requests(&stand) - before, 3);
        }
        /* The answer to HEAD has no reason, so a GET follows. */
        before = stand_requests(&stand);
        assert_int_equal(wb_object_size(store, "name", &size), r->err);
        expect_words(r);
        assert_int_equal(stand_requests(&stand) - before, 2);
    }
    wb_object_close(store);
}

/* A listing that is refused names the bucket; "no such key" is no answer to it. */
static void test_list_refused(void **state)
{
    struct wb_object_store *store = stand_open(&stand, "s3://bucket/p");

    (void)state;
    stand_refuse(&stand, 403, "AccessDenied");
    assert_int_equal(wb_object_list(store, "", append_entry, NULL), WB_E_DENIED);
    assert_non_null(strstr(wb_error_message(), "list the bucket bucket"));
    assert_non_null(strstr(wb_error_message(), "s3:ListBucket"));
    stand_refuse(&stand, 404, "NoSuchKey");
    assert_int_equal(wb_object_list(store, "", append_entry, NULL), WB_E_PROTO);
    wb_object_close(store);
}

static void test_clocks(void **state)
{
    struct wb_object_store *store = stand_open(&stand, "s3://bucket/p");
    struct wb_buf bytes;

    (void)state;
    stand.date_shift_ms = 1200000;
    stand_refuse(&stand, 403, "RequestTimeTooSkewed");
    assert_int_equal(wb_object_get(store, "x", 10, &bytes), WB_E_DENIED);
    assert_non_null(strstr(wb_error_message(), "clock of this machine is"));
    assert_non_null(strstr(wb_error_message(), "min"));
    assert_non_null(strstr(wb_error_message(), "behind that of 127.0.0.1"));
    stand.date_shift_ms = -1200000;
    stand_refuse(&stand, 403, "RequestTimeTooSkewed");
    assert_int_equal(wb_object_get(store, "x", 10, &bytes), WB_E_DENIED);
    assert_non_null(strstr(wb_error_message(), "ahead of that of 127.0.0.1"));
    /* The clocks agree: the request was on its way for too long, and is signed again. */
    stand.date_shift_ms = 0;
    stand_refuse(&stand, 403, "RequestTimeTooSkewed");
    ok(wb_object_put(store, "x", wb_slice_str("y")));
    assert_true(stand_has(&stand, "p/x", "y"));
    /* No date: we do not know by how much. */
    stand_next(&stand, (struct act){.kind = ACT_CANNED,
                                    .canned = "HTTP/1.1 403 x\r\nContent-Length: 47\r\n\r\n"
                                              "<Error><Code>RequestTimeTooSkewed</Code></Error>"});
    assert_int_equal(wb_object_get(store, "x", 10, &bytes), WB_E_DENIED);
    assert_non_null(strstr(wb_error_message(), "clock"));
    wb_object_close(store);
}

/* ---- keys that change -------------------------------------------------------------------------------------- */

static void write_token(const char *token)
{
    char text[300];

    snprintf(text, sizeof text, "[default]\naws_access_key_id=%s\naws_secret_access_key=%s\naws_session_token=%s\n",
             STAND_ACCESS, STAND_SECRET, token);
    ok(wb_path_replace(test_path("credentials"), wb_slice_str(text)));
}

/* Keys from the file are read again when they are refused, and only then. */
static void test_new_keys(void **state)
{
    static const char *const codes[] = {"ExpiredToken", "InvalidToken", "InvalidAccessKeyId", "SignatureDoesNotMatch"};
    struct wb_object_store *store;
    struct wb_buf bytes;

    (void)state;
    stand_environment(&stand);
    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    setenv("AWS_SHARED_CREDENTIALS_FILE", test_path("credentials"), 1);
    write_token("zero");
    stand.token = "zero";
    ok(wb_object_open("s3://bucket/p", NULL, &store));
    ok(wb_object_put(store, "x", wb_slice_str("y")));
    for (size_t i = 0; i < COUNT(codes); i++) {
        unsigned before = stand_requests(&stand);
        stand_refuse(&stand, 400, codes[i]);
        assert_int_equal(wb_object_get(store, "x", 10, &bytes), WB_E_DENIED);
        assert_non_null(strstr(wb_error_message(), test_path("credentials")));
        assert_int_equal(stand_requests(&stand) - before, 1);
        stand.token = i % 2 ? "one" : "two";
        write_token(stand.token);
        before = stand_requests(&stand);
        stand_refuse(&stand, 400, codes[i]);
        expect_object(store, "x", "y");
        assert_int_equal(stand_requests(&stand) - before, 2);
    }
    /* The same with HEAD, which does not say what is wrong. */
    uint64_t size;
    stand.token = "three";
    write_token(stand.token);
    stand_refuse(&stand, 400, "ExpiredToken");
    stand_refuse(&stand, 400, "ExpiredToken");
    ok(wb_object_size(store, "x", &size));
    assert_int_equal(size, 1);
    wb_object_close(store);
}

/* ---- many at once ------------------------------------------------------------------------------------------ */

enum { THREADS = 16, TURNS = 12, AT_ONCE = 4, BYTES = 70000 };

struct crowd {
    struct wb_object_store *store;
    atomic_uint next;
};

static void *use_in_thread(void *context)
{
    struct crowd *crowd = context;
    unsigned who = crowd->next++;
    char name[32], *letters = wb_alloc(BYTES);

    memset(letters, (int)('a' + who), BYTES);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        struct wb_buf bytes;
        size_t len = BYTES - (who * 31 + turn) % 1000;
        snprintf(name, sizeof name, "t%u/%u", who, turn);
        if (wb_object_put(crowd->store, name, wb_slice(letters, len)) < 0 ||
            wb_object_get(crowd->store, name, BYTES, &bytes) < 0 || bytes.len != len ||
            memcmp(bytes.ptr, letters, len) != 0) {
            fprintf(stderr, "%s: %s\n", name, wb_error_message());
            abort();
        }
        wb_buf_release(&bytes);
        if (turn % 3 == 0 && wb_object_delete(crowd->store, name) < 0)
            abort();
    }
    wb_free(letters);
    return NULL;
}

static void test_crowd(void **state)
{
    struct wb_object_options options = {.requests_max = AT_ONCE};
    struct crowd crowd = {.next = 0};
    struct wb_object_counts counts;
    pthread_t threads[THREADS];

    (void)state;
    stand_environment(&stand);
    ok(wb_object_open("s3://bucket/p", &options, &crowd.store));
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_in_thread, &crowd), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    wb_object_counts(crowd.store, &counts);
    assert_int_equal(counts.puts, THREADS * TURNS);
    assert_int_equal(counts.gets, THREADS * TURNS);
    assert_int_equal(counts.bytes_got, counts.bytes_put);
    assert_int_equal(stand_count(&stand), THREADS * TURNS * 2 / 3);
    assert_int_equal(stand.bad, 0);
    assert_true(stand.connections <= AT_ONCE);
    wb_object_close(crowd.store);
}

/* So many requests run at once, and no more. */
static void test_at_once(void **state)
{
    struct wb_object_options options = {.requests_max = AT_ONCE};
    struct crowd crowd = {.next = 0};
    pthread_t threads[THREADS];
    unsigned running = 0;

    (void)state;
    stand_environment(&stand);
    ok(wb_object_open("s3://bucket/p", &options, &crowd.store));
    stand.holding = true;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_in_thread, &crowd), 0);
    while (running < AT_ONCE) {
        usleep(1000);
        pthread_mutex_lock(&stand.mutex);
        running = stand.running;
        pthread_mutex_unlock(&stand.mutex);
    }
    usleep(50000); /* the others get an opportunity to be wrong */
    pthread_mutex_lock(&stand.mutex);
    stand.holding = false;
    pthread_cond_broadcast(&stand.changed);
    pthread_mutex_unlock(&stand.mutex);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(stand.running_most, AT_ONCE);
    wb_object_close(crowd.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_prefixes, begin, end),
        cmocka_unit_test_setup_teardown(test_targets, begin, end),
        cmocka_unit_test_setup_teardown(test_token, begin, end),
        cmocka_unit_test_setup_teardown(test_refusals, begin, end),
        cmocka_unit_test_setup_teardown(test_list_refused, begin, end),
        cmocka_unit_test_setup_teardown(test_clocks, begin, end),
        cmocka_unit_test_setup_teardown(test_new_keys, begin, end),
        cmocka_unit_test_setup_teardown(test_crowd, begin, end),
        cmocka_unit_test_setup_teardown(test_at_once, begin, end),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
