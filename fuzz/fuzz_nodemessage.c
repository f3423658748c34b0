/*
 * fuzz_nodemessage.c - hostile requests to a node, replies of one, and lists of its files.
 *
 *   input   flags (1: bits 0 and 1: a request, a reply or a list; bit 2: the checksum is corrected first), then the
 * bytes
 *
 * A message that is taken must be written in the same way again.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "place/node.h"

enum { INPUT_REQUEST, INPUT_REPLY, INPUT_LIST, INPUT_MEND = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Corrects the checksum of a message whose head has these fields, if its lengths are right. */
static void mend(char *bytes, size_t size, size_t head, size_t first_at)
{
    if (size < head)
        return;
    uint64_t first = wb_get32(bytes + first_at), second = wb_get32(bytes + first_at + 4);
    if (first + second != size - head)
        return;
    uint64_t check = wb_hash64_seeded(bytes + head, first, wb_hash64(bytes, head - 8));
    wb_put64(bytes + head - 8, wb_hash64_seeded(bytes + head + first, second, check));
}

static void try_request(struct wb_slice bytes)
{
    struct wb_buf again = WB_BUF_INIT;
    struct wb_node_request request;
    char name[WB_NODE_NAME_MAX];
    int err = wb_node_request_decode(bytes, name, &request);

    if (err == 0) {
        WB_CHECK(wb_node_request_encode(&request, &again) == 0);
        WB_CHECK(wb_slice_equal(wb_buf_slice(&again), bytes));
        WB_CHECK(!strstr(name, "..") || strchr(name, '/') == strrchr(name, '/'));
    }
    wb_buf_release(&again);
}

static void try_reply(struct wb_slice bytes)
{
    struct wb_buf again = WB_BUF_INIT;
    struct wb_node_reply reply;

    if (wb_node_reply_decode(bytes, &reply) == 0) {
        WB_CHECK(wb_node_reply_encode(&reply, &again) == 0);
        WB_CHECK(wb_slice_equal(wb_buf_slice(&again), bytes));
    }
    wb_buf_release(&again);
}

static void try_list(struct wb_slice rest)
{
    char bytes[WB_NODE_LIST_BYTES_MIN];
    struct wb_node_entry entry;

    while (wb_node_entry_take(&rest, &entry) == 1)
        WB_CHECK(wb_node_entry_put(&entry, bytes) <= sizeof bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    char *bytes = wb_alloc(size);
    WB_CHECK(bytes != NULL);
    memcpy(bytes, data + 1, size - 1);
    struct wb_slice input = wb_slice(bytes, size - 1);
    switch (data[0] & 3) {
    case INPUT_REQUEST:
        if (data[0] & INPUT_MEND)
            mend(bytes, input.len, WB_NODE_REQUEST_BYTES, 32);
        try_request(input);
        break;
    case INPUT_REPLY:
        if (data[0] & INPUT_MEND)
            mend(bytes, input.len, WB_NODE_REPLY_BYTES, 68);
        try_reply(input);
        break;
    default:
        try_list(input);
        break;
    }
    wb_free(bytes);
    return 0;
}
