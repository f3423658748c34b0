/* test_token.c - tokens: what goes in comes out, and nothing else is taken for a token. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../seeded.h"
#include "base/bytes.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/hash.h"
#include "stream/token.h"

#define REPOSITORY UINT64_C(0x1122334455667788)

static void random_position(uint64_t *chance, struct wb_store_position *position)
{
    for (size_t i = 0; i < sizeof position->bytes; i++)
        position->bytes[i] = chance_one_in(chance, 3) ? (char)chance_next(chance) : 0;
}

static void random_token(uint64_t *chance, struct wb_stream_ticket *ticket, struct wb_stream_place *place, char *spec)
{
    static const char letters[] = "site\0example\xff";
    size_t len = chance_below(chance, 600);

    for (size_t i = 0; i < len; i++)
        spec[i] = letters[chance_below(chance, sizeof letters)];
    *ticket = (struct wb_stream_ticket){.snapshot = (uint32_t)chance_next(chance) >> chance_below(chance, 32),
                                        .generation = (uint32_t)chance_below(chance, 1000),
                                        .epoch = chance_next(chance) >> chance_below(chance, 64),
                                        .holder = chance_next(chance),
                                        .sealed = chance_one_in(chance, 2),
                                        .spec = wb_slice(spec, len),
                                        .listed = chance_one_in(chance, 2)};
    ticket->list_hash = ticket->listed ? chance_next(chance) : 0;
    *place = (struct wb_stream_place){.position = chance_next(chance) >> chance_below(chance, 64),
                                      .index = chance_next(chance) >> chance_below(chance, 64),
                                      .within = chance_one_in(chance, 2),
                                      .has_at = chance_one_in(chance, 2),
                                      .has_start = chance_one_in(chance, 2),
                                      .wrapped = chance_one_in(chance, 2)};
    place->capture_ms = place->within ? (int64_t)chance_next(chance) : 0;
    place->capture_tie = place->within ? chance_next(chance) >> chance_below(chance, 64) : 0;
    if (place->has_at)
        random_position(chance, &place->at);
    if (place->has_start)
        random_position(chance, &place->start);
}

static void assert_same(const struct wb_stream_ticket *a, const struct wb_stream_ticket *b,
                        const struct wb_stream_place *x, const struct wb_stream_place *y)
{
    assert_true(a->snapshot == b->snapshot && a->generation == b->generation && a->epoch == b->epoch);
    assert_true(a->holder == b->holder && a->sealed == b->sealed && a->kept == b->kept && a->listed == b->listed);
    assert_true(a->list_hash == b->list_hash && wb_slice_equal(a->spec, b->spec));
    assert_true(x->position == y->position && x->index == y->index && x->within == y->within);
    assert_true(x->capture_ms == y->capture_ms && x->capture_tie == y->capture_tie && x->has_at == y->has_at &&
                x->has_start == y->has_start);
    assert_true(x->wrapped == y->wrapped && memcmp(&x->at, &y->at, sizeof x->at) == 0);
    assert_memory_equal(&x->start, &y->start, sizeof x->start);
}

static void test_round_trip(void **state)
{
    uint64_t chance = test_seed();
    struct wb_buf mem = WB_BUF_INIT;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        struct wb_token_writer writer;
        struct wb_stream_ticket ticket, read;
        struct wb_stream_place place, at, next;
        struct wb_slice token;
        char spec[600], first[WB_TOKEN_TEXT_MAX];
        random_token(&chance, &ticket, &place, spec);
        assert_int_equal(wb_token_writer_init(&writer, REPOSITORY, &ticket), 0);
        assert_int_equal(wb_token_write(&writer, &place, &token), 0);
        assert_true(token.len <= WB_TOKEN_TEXT_MAX);
        for (size_t k = 0; k < token.len; k++)
            assert_true(wb_ascii_is_letter(token.ptr[k]) || wb_ascii_is_digit(token.ptr[k]) || token.ptr[k] == '-' ||
                        token.ptr[k] == '_');
        assert_int_equal(wb_token_read(token, REPOSITORY, &read, &at, &mem), 0);
        assert_same(&ticket, &read, &place, &at);
        memcpy(first, token.ptr, token.len);
        next = place;
        next.position++;
        size_t len = token.len;
        assert_int_equal(wb_token_write(&writer, &next, &token), 0);
        assert_true(token.len != len || memcmp(first, token.ptr, len) != 0);
        wb_token_writer_release(&writer);
    }
    wb_buf_release(&mem);
}

static void assert_refused(struct wb_slice token, struct wb_buf *mem)
{
    struct wb_stream_ticket ticket;
    struct wb_stream_place place;

    assert_int_equal(wb_token_read(token, REPOSITORY, &ticket, &place, mem), WB_E_INVALID);
    assert_true(strlen(wb_error_message()) > 10);
}

/* Changes every bit, cuts everywhere, doubles: all of it is refused. */
static void test_damage(void **state)
{
    uint64_t chance = test_seed();
    struct wb_buf mem = WB_BUF_INIT;

    (void)state;
    for (int i = 0; i < 20; i++) {
        struct wb_token_writer writer;
        struct wb_stream_ticket ticket;
        struct wb_stream_place place;
        struct wb_slice token;
        char spec[600], text[2 * WB_TOKEN_TEXT_MAX];
        random_token(&chance, &ticket, &place, spec);
        assert_int_equal(wb_token_writer_init(&writer, REPOSITORY, &ticket), 0);
        assert_int_equal(wb_token_write(&writer, &place, &token), 0);
        memcpy(text, token.ptr, token.len);
        memcpy(text + token.len, token.ptr, token.len);
        for (size_t bit = 0; bit < token.len * 8; bit++) {
            text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
            assert_refused(wb_slice(text, token.len), &mem);
            text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        }
        for (size_t len = 0; len < token.len; len++)
            assert_refused(wb_slice(text, len), &mem);
        assert_refused(wb_slice(text, 2 * token.len), &mem);
        assert_refused(wb_slice(text, token.len + 1), &mem);
        wb_token_writer_release(&writer);
    }
    wb_buf_release(&mem);
}

/* A token with a right checksum: of another repository, of another format, or with nonsense inside. */
static void test_tokens_with_a_right_checksum(void **state)
{
    uint64_t chance = test_seed();
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_token_writer writer;
    struct wb_stream_ticket ticket;
    struct wb_stream_place place;
    struct wb_slice token;
    char spec[600], bytes[64], text[100];

    (void)state;
    random_token(&chance, &ticket, &place, spec);
    assert_int_equal(wb_token_writer_init(&writer, REPOSITORY + 1, &ticket), 0);
    assert_int_equal(wb_token_write(&writer, &place, &token), 0);
    assert_refused(token, &mem);
    assert_non_null(strstr(wb_error_message(), "another repository"));
    wb_token_writer_release(&writer);
    for (int i = 0; i < 100000; i++) {
        size_t len = 9 + chance_below(&chance, 40);
        for (size_t k = 0; k < len; k++)
            bytes[k] = (char)(chance_one_in(&chance, 2) ? chance_below(&chance, 4) : chance_next(&chance));
        bytes[0] = (char)chance_below(&chance, 3);
        wb_put64(bytes + 1, REPOSITORY);
        wb_put64(bytes + len, wb_hash64(bytes, len));
        wb_base64url_encode(bytes, len + 8, text);
        int err = wb_token_read(wb_slice(text, WB_BASE64_CHARS(len + 8)), REPOSITORY, &ticket, &place, &mem);
        assert_int_equal(err == WB_E_NEWER, bytes[0] != 1);
        assert_true(err == 0 || err == WB_E_INVALID || err == WB_E_NEWER);
        if (err == WB_E_NEWER && bytes[0] == 2)
            assert_string_equal(wb_error_message(), "the token has format 2; this program reads format 1");
    }
    wb_buf_release(&mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_tokens_with_a_right_checksum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
