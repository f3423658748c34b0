/*
 * fuzz_token.c - reads hostile tokens, and selections inside them.
 *
 *   input   flags (1: bit 0: the rest is a text; otherwise it is bytes, which get a right checksum), and then the token
 *
 * A token that is taken must be written in the same way again, and so must its selection.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/codec.h"
#include "base/hash.h"
#include "stream/spec.h"
#include "stream/token.h"

#define REPOSITORY UINT64_C(0x1122334455667788)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_spec(struct wb_slice bytes)
{
    struct wb_stream_spec spec, again;
    struct wb_buf first = WB_BUF_INIT, second = WB_BUF_INIT;

    if (wb_spec_decode(bytes, &spec) == 0) {
        WB_CHECK(wb_spec_encode(&spec, &first) == 0);
        WB_CHECK(wb_spec_decode(wb_buf_slice(&first), &again) == 0);
        WB_CHECK(wb_spec_encode(&again, &second) == 0);
        WB_CHECK(wb_slice_equal(wb_buf_slice(&first), wb_buf_slice(&second)));
        wb_stream_spec_release(&again);
    }
    wb_stream_spec_release(&spec);
    wb_buf_release(&first);
    wb_buf_release(&second);
}

static void try_token(struct wb_slice token)
{
    struct wb_stream_ticket ticket, again;
    struct wb_stream_place place, there;
    struct wb_token_writer writer;
    struct wb_buf mem = WB_BUF_INIT, other = WB_BUF_INIT;
    struct wb_slice text;

    if (wb_token_read(token, REPOSITORY, &ticket, &place, &mem) == 0) {
        try_spec(ticket.spec);
        WB_CHECK(wb_token_writer_init(&writer, REPOSITORY, &ticket) == 0);
        WB_CHECK(wb_token_write(&writer, &place, &text) == 0);
        WB_CHECK(wb_token_read(text, REPOSITORY, &again, &there, &other) == 0);
        WB_CHECK(again.snapshot == ticket.snapshot && again.holder == ticket.holder);
        WB_CHECK(there.position == place.position && there.index == place.index);
        wb_token_writer_release(&writer);
    }
    wb_buf_release(&mem);
    wb_buf_release(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char bytes[8192], text[16384];

    if (size == 0 || size > 3000)
        return 0;
    struct wb_slice rest = wb_slice((const char *)data + 1, size - 1);
    if (data[0] & 1) {
        try_token(rest);
        return 0;
    }
    bytes[0] = 1;
    wb_put64(bytes + 1, REPOSITORY);
    memcpy(bytes + 9, rest.ptr, rest.len);
    wb_put64(bytes + 9 + rest.len, wb_hash64(bytes, 9 + rest.len));
    wb_base64url_encode(bytes, rest.len + 17, text);
    try_token(wb_slice(text, WB_BASE64_CHARS(rest.len + 17)));
    try_spec(rest);
    return 0;
}
