/* coded_support.h - bodies for the scripted server: repeated, compressed, coded. Header only. */
#ifndef WB_TESTS_CODED_SUPPORT_H
#define WB_TESTS_CODED_SUPPORT_H

#include "fetch_support.h"

#include <zlib.h>

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
#define UNUSED __attribute__((unused)) static

UNUSED bool send_repeated(struct peer *peer, const char *unit, size_t times)
{
    struct wb_buf many = WB_BUF_INIT;
    bool sent = true;

    for (size_t i = 0; i < times; i++)
        wb_buf_append_str(&many, unit);
    sent = peer_send(peer, many.ptr, many.len);
    wb_buf_release(&many);
    return sent;
}

/* wbits 31: gzip, 15: zlib. */
UNUSED void deflate_bytes(const void *bytes, size_t len, int wbits, struct wb_buf *out)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)bytes, .avail_in = (unsigned)len};

    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, wbits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t most = deflateBound(&z, len);
    assert_int_equal(wb_buf_reserve(out, most), 0);
    z.next_out = (unsigned char *)out->ptr + out->len;
    z.avail_out = (unsigned)most;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out->len += most - z.avail_out;
    deflateEnd(&z);
}

UNUSED bool send_coded(struct peer *peer, const char *codings, const struct wb_buf *bytes)
{
    char head[256];

    snprintf(head, sizeof head, OK_HEAD "Content-Encoding: %s\r\nContent-Length: %zu\r\n\r\n", codings, bytes->len);
    return peer_say(peer, head) && peer_send(peer, bytes->ptr, bytes->len);
}

UNUSED void make_zeros(size_t len, struct wb_buf *out)
{
    assert_int_equal(wb_buf_reserve(out, len), 0);
    memset(out->ptr, 0, len);
    out->len = len;
}

/* So many zeros, compressed with gzip `layers` times. */
UNUSED bool send_bomb(struct peer *peer, size_t bytes, const char *codings, int layers)
{
    struct wb_buf now = WB_BUF_INIT;

    make_zeros(bytes, &now);
    for (int i = 0; i < layers; i++) {
        struct wb_buf next = WB_BUF_INIT;
        deflate_bytes(now.ptr, now.len, 31, &next);
        wb_buf_release(&now);
        now = next;
    }
    bool going = send_coded(peer, codings, &now);
    wb_buf_release(&now);
    return going;
}

#endif
