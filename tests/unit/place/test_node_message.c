/* test_node_message.c - messages survive the way through bytes, and bytes that are no message are refused. */
#include "../expect.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "place/node.h"

#include <stdio.h>

static const struct wb_node_request requests[] = {
    {.kind = WB_NODE_IDENTITY},
    {.kind = WB_NODE_SPACE},
    {.kind = WB_NODE_LIST, .name = "", .length = 4096},
    {.kind = WB_NODE_LIST, .name = "pages/00000001.seg", .length = WB_NODE_BYTES_MAX},
    {.kind = WB_NODE_CREATE, .name = "pages/00000001.seg", .owner = 1},
    {.kind = WB_NODE_OPEN, .name = "pages/00000001.2.seg", .owner = UINT64_MAX, .write = true},
    {.kind = WB_NODE_CLOSE, .name = "pages/a", .owner = 2},
    {.kind = WB_NODE_READ, .name = "pages/00000001.seg", .owner = 3, .offset = 1ull << 40, .length = 12345},
    {.kind = WB_NODE_WRITE, .name = "pages/00000001.seg", .owner = 3, .offset = 64, .bytes = {"a\0b", 3}},
    {.kind = WB_NODE_WRITE, .name = "pages/00000001.seg", .owner = 3},
    {.kind = WB_NODE_SIZE, .name = "pages/00000001.seg", .owner = 3},
    {.kind = WB_NODE_SYNC, .name = "pages/00000001.seg", .owner = 3},
    {.kind = WB_NODE_SYNC_NAMES},
    {.kind = WB_NODE_TRUNCATE, .name = "pages/00000001.seg", .owner = 3, .offset = 77},
    {.kind = WB_NODE_REMOVE, .name = "pages/00000001.seg", .owner = 3},
    {.kind = WB_NODE_CLAIM, .name = "pages/00000001.seg", .owner = 3},
    {.kind = WB_NODE_RELEASE, .name = "pages/00000001.seg", .owner = 3},
    {.kind = WB_NODE_HINT, .name = "pages/x", .owner = 3, .offset = 1, .length = 1ull << 40, .hint = WB_NODE_DISCARD},
};

static void same_request(const struct wb_node_request *a, const struct wb_node_request *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->owner, b->owner);
    assert_string_equal(a->name ? a->name : "", b->name ? b->name : "");
    assert_int_equal(a->offset, b->offset);
    assert_int_equal(a->length, b->length);
    assert_true(wb_slice_equal(a->bytes, b->bytes));
    assert_int_equal(a->write, b->write);
    assert_int_equal(a->hint, b->hint);
}

static void test_requests(void **state)
{
    unsigned kinds = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(requests); i++) {
        struct wb_buf bytes = WB_BUF_INIT;
        struct wb_node_request back;
        char name[WB_NODE_NAME_MAX];
        ok(wb_node_request_encode(&requests[i], &bytes));
        ok(wb_node_request_decode(wb_buf_slice(&bytes), name, &back));
        same_request(&back, &requests[i]);
        kinds |= 1u << back.kind;
        for (size_t len = 0; len < bytes.len; len++)
            assert_int_equal(wb_node_request_decode(wb_slice(bytes.ptr, len), name, &back), WB_E_PROTO);
        for (size_t at = 0; at < bytes.len * 8; at++) {
            bytes.ptr[at / 8] = (char)(bytes.ptr[at / 8] ^ 1 << at % 8);
            int err = wb_node_request_decode(wb_buf_slice(&bytes), name, &back);
            assert_true(err == WB_E_PROTO || (err == WB_E_NEWER && at / 8 >= 4 && at / 8 < 6));
            bytes.ptr[at / 8] = (char)(bytes.ptr[at / 8] ^ 1 << at % 8);
        }
        ok(wb_buf_append_char(&bytes, 0));
        assert_int_equal(wb_node_request_decode(wb_buf_slice(&bytes), name, &back), WB_E_PROTO);
        wb_buf_release(&bytes);
    }
    assert_int_equal(kinds, (1u << WB_NODE_KINDS) - 2); /* each kind was there */
}

static void test_refused_requests(void **state)
{
    static const struct wb_node_request refused[] = {
        {.kind = 0},
        {.kind = WB_NODE_KINDS},
        {.kind = WB_NODE_READ, .name = "pages/a", .length = 1}, /* no owner */
        {.kind = WB_NODE_READ, .owner = 1, .length = 1},        /* no name */
        {.kind = WB_NODE_SPACE, .name = "pages/a"},
        {.kind = WB_NODE_SPACE, .owner = 1},
        {.kind = WB_NODE_READ, .owner = 1, .name = "pages/a", .length = WB_NODE_BYTES_MAX + 1},
        {.kind = WB_NODE_READ, .owner = 1, .name = "pages/a", .offset = UINT64_MAX, .length = 1},
        {.kind = WB_NODE_READ, .owner = 1, .name = "pages/a", .bytes = {"x", 1}},
        {.kind = WB_NODE_SIZE, .owner = 1, .name = "pages/a", .offset = 1},
        {.kind = WB_NODE_SIZE, .owner = 1, .name = "pages/a", .length = 1},
        {.kind = WB_NODE_SIZE, .owner = 1, .name = "pages/a", .write = true},
        {.kind = WB_NODE_SIZE, .owner = 1, .name = "pages/a", .hint = WB_NODE_DISCARD},
        {.kind = WB_NODE_HINT, .owner = 1, .name = "pages/a", .hint = WB_NODE_HINTS},
        {.kind = WB_NODE_HINT, .owner = 1, .name = "pages/a", .offset = 2, .length = INT64_MAX},
        {.kind = WB_NODE_LIST, .length = WB_NODE_LIST_BYTES_MIN - 1},
        {.kind = WB_NODE_LIST, .length = 1000, .name = "../x"},
    };
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
    struct wb_buf bytes = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++)
        assert_int_equal(wb_node_request_encode(&refused[i], &bytes), WB_E_INVALID);
    for (size_t i = 0; i < COUNT(names); i++) {
        struct wb_node_request request = {.kind = WB_NODE_SIZE, .owner = 1, .name = names[i]};
        assert_int_equal(wb_node_request_check(&request), WB_E_INVALID);
    }
    assert_int_equal(bytes.len, 0);
    assert_true(wb_node_name_valid(WB_SLICE_LIT("pages/00000001.2.seg")));
    assert_false(wb_node_name_valid(WB_SLICE_LIT("pages/a\0b")));
}

/* A message whose checksum is right, because its sender made it so, is checked all the same. */
static void test_forged(void **state)
{
    struct wb_node_request request = {.kind = WB_NODE_SIZE, .owner = 1, .name = "pages/a"}, back;
    char name[WB_NODE_NAME_MAX];
    int refused = 0;

    (void)state;
    for (size_t at = 6; at < 48; at++) {
        struct wb_buf bytes = WB_BUF_INIT;
        ok(wb_node_request_encode(&request, &bytes));
        bytes.ptr[at] = (char)(bytes.ptr[at] + 0x40);
        uint64_t check = wb_hash64_seeded(bytes.ptr + 56, 7, wb_hash64(bytes.ptr, 48));
        wb_put64(bytes.ptr + 48, wb_hash64_seeded("", 0, check));
        int err = wb_node_request_decode(wb_buf_slice(&bytes), name, &back);
        assert_true(at >= 8 && at < 16 ? err == 0 : err == WB_E_PROTO); /* any owner will do */
        refused += err < 0;
        wb_buf_release(&bytes);
    }
    assert_int_equal(refused, 34);
}

static void test_replies(void **state)
{
    static const struct wb_node_reply replies[] = {
        {0},
        {.bytes = {"x\0y", 3}, .more = true},
        {.code = WB_E_DOWN, .message = {"node 2 is down", 14}},
        {.size = 1, .capacity = UINT64_MAX, .free = 2, .read_only = true},
        {.identity = {.repository = {1}, .number = 7, .id = {2}}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(replies); i++) {
        struct wb_buf bytes = WB_BUF_INIT;
        struct wb_node_reply back;
        ok(wb_node_reply_encode(&replies[i], &bytes));
        ok(wb_node_reply_decode(wb_buf_slice(&bytes), &back));
        assert_int_equal(back.code, replies[i].code);
        assert_true(wb_slice_equal(back.message, replies[i].message));
        assert_true(wb_slice_equal(back.bytes, replies[i].bytes));
        assert_int_equal(back.size, replies[i].size);
        assert_int_equal(back.capacity, replies[i].capacity);
        assert_int_equal(back.free, replies[i].free);
        assert_int_equal(back.read_only, replies[i].read_only);
        assert_int_equal(back.more, replies[i].more);
        assert_memory_equal(&back.identity, &replies[i].identity, sizeof back.identity);
        for (size_t len = 0; len < bytes.len; len++)
            assert_int_equal(wb_node_reply_decode(wb_slice(bytes.ptr, len), &back), WB_E_PROTO);
        for (size_t at = 6; at < bytes.len; at++) {
            bytes.ptr[at] ^= 4;
            assert_int_equal(wb_node_reply_decode(wb_buf_slice(&bytes), &back), WB_E_PROTO);
            bytes.ptr[at] ^= 4;
        }
        wb_buf_release(&bytes);
    }
}

static void test_entries(void **state)
{
    struct wb_node_entry a = {.name = "pages/a", .size = 5, .disk_bytes = UINT64_MAX}, b = {.name = "pages/b"}, back;
    char bytes[2 * WB_NODE_LIST_BYTES_MIN];

    (void)state;
    size_t len = wb_node_entry_put(&a, bytes);
    len += wb_node_entry_put(&b, bytes + len);
    struct wb_slice rest = wb_slice(bytes, len);
    assert_int_equal(wb_node_entry_take(&rest, &back), 1);
    assert_memory_equal(&back, &a, sizeof a);
    assert_int_equal(wb_node_entry_take(&rest, &back), 1);
    assert_memory_equal(&back, &b, sizeof b);
    assert_int_equal(wb_node_entry_take(&rest, &back), 0);
    rest = wb_slice(bytes, len - 1);
    assert_int_equal(wb_node_entry_take(&rest, &back), 1);
    assert_int_equal(wb_node_entry_take(&rest, &back), WB_E_PROTO);
    bytes[1] = '/'; /* a name outside the node */
    rest = wb_slice(bytes, len);
    assert_int_equal(wb_node_entry_take(&rest, &back), WB_E_PROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_requests), cmocka_unit_test(test_refused_requests),
                                       cmocka_unit_test(test_forged), cmocka_unit_test(test_replies),
                                       cmocka_unit_test(test_entries)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
