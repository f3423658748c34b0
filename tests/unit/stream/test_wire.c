/*
 * test_wire.c - a stream as bytes: what is written is what is read, in whatever pieces it arrives; a stream that is cut
 * anywhere is never taken for a complete one; and a changed byte is never taken for the truth.
 */
#include "../otherformat.h"
#include "../store/store_support.h"
#include "stream/wire.h"

enum { RECORDS = 60, PER_FRAME = 13 };

static const uint64_t repository = 0x1234567890abcdef;

static struct wb_stream_place place_of(uint64_t position)
{
    struct wb_stream_place place = {.position = position, .has_at = true, .index = position / 3};

    for (size_t i = 0; i < sizeof place.at.bytes; i += 3)
        place.at.bytes[i] = (char)(position * (i + 1));
    place.within = position % 5 == 2;
    place.capture_ms = place.within ? 77 * (int64_t)position : 0;
    place.capture_tie = place.within ? position % 3 : 0;
    place.has_start = true;
    place.wrapped = position > RECORDS / 2;
    place.start.bytes[3] = 9;
    return place;
}

static void ticket_writer(struct wb_token_writer *writer)
{
    struct wb_stream_ticket ticket = {.snapshot = 7, .epoch = 99, .holder = 5, .spec = WB_SLICE_LIT("spec")};

    must_ok(wb_token_writer_init(writer, repository, &ticket));
}

static void make(uint64_t number, struct made *made)
{
    struct spec spec = {.site = (uint32_t)number % 4,
                        .number = (uint32_t)number / 2,
                        .time_ms = 1000000 + (int64_t)number,
                        .size = (uint32_t)(number * number % 4000)};

    make_page(&spec, made);
    made->page.epoch = number / 7 + 1;
    made->page.lifetime_count = (uint32_t)number % 3;
    wb_page_digest(&made->page);
}

static struct wb_wire_record record_of(uint64_t number)
{
    return (struct wb_wire_record){
        .place = place_of(number + 1),
        .position = number,
        .docid = number % 11 == 10 ? WB_DOCID_NONE : (uint32_t)(number * 1000003 % 500),
        .revisit = number % 9 == 4,
        .original_ms = number % 9 == 4 ? -5 + (int64_t)number : 0,
    };
}

/* A stream of RECORDS records, with a damaged place in the middle. */
static void write_stream(struct wb_buf *out)
{
    struct wb_stream_info info = {.snapshot = 7, .generation = 3, .epoch = 99, .pages = RECORDS};
    struct wb_stream_place begin = place_of(0);
    struct wb_store_packer *packer;
    struct wb_store_parcel parcel;
    struct wb_token_writer tokens;
    struct wb_slice token;

    ticket_writer(&tokens);
    must_ok(wb_token_write(&tokens, &begin, &token));
    must_ok(wb_wire_put_header(repository, &info, token, out));
    must_ok(wb_store_packer_new(&packer));
    struct wb_wire_record records[PER_FRAME];
    size_t count = 0;
    for (uint64_t i = 0; i < RECORDS; i++) {
        struct made made;
        make(i, &made);
        must_ok(wb_store_packer_add(packer, &made.page, NULL));
        made_release(&made);
        records[count++] = record_of(i);
        if (count < PER_FRAME && i + 1 < RECORDS)
            continue;
        must_ok(wb_store_packer_finish(packer, &parcel));
        must_ok(wb_wire_put_records(&parcel, records, out));
        count = 0;
        if (i == 2 * PER_FRAME - 1)
            must_ok(wb_wire_put_damage("block 17\n is damaged", out));
    }
    must_ok(wb_wire_put_end(RECORDS, out));
    wb_store_packer_free(packer);
    wb_token_writer_release(&tokens);
}

static void check_record(const struct wb_stream_record *found, uint64_t number)
{
    struct wb_stream_place place = place_of(number + 1);
    struct wb_wire_record record = record_of(number);
    struct wb_token_writer tokens;
    struct wb_slice token;
    struct made made;

    make(number, &made);
    assert_true(page_hash(&found->page, 0) == page_hash(&made.page, 0));
    made_release(&made);
    assert_true(found->position == number && found->docid == record.docid && found->revisit == record.revisit &&
                found->original_ms == record.original_ms);
    ticket_writer(&tokens);
    must_ok(wb_token_write(&tokens, &place, &token));
    assert_true(wb_slice_equal(found->token, token));
    wb_token_writer_release(&tokens);
}

/* Reads what has arrived. Returns the last result that was neither a record nor damage. */
static int read_on(struct wb_wire_reader *reader, uint64_t *records, unsigned *damages, bool check)
{
    struct wb_stream_record record;
    int got;

    while ((got = wb_wire_reader_next(reader, &record)) == WB_WIRE_RECORD || got == WB_WIRE_DAMAGE) {
        if (got == WB_WIRE_RECORD && check)
            check_record(&record, *records);
        *records += got == WB_WIRE_RECORD;
        if (got == WB_WIRE_DAMAGE)
            ++*damages;
    }
    return got;
}

static void test_pieces(void **state)
{
    static const size_t pieces[] = {1, 7, 24, 100, 1000, 16384, 1 << 20};
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_wire_reader *reader;
    struct wb_stream_info info;

    (void)state;
    write_stream(&bytes);
    must_ok(wb_wire_reader_new(&reader));
    for (size_t p = 0; p < COUNT(pieces); p++) {
        uint64_t records = 0;
        unsigned damages = 0;
        int got = 0;
        wb_wire_reader_reset(reader);
        assert_false(wb_wire_reader_info(reader, &info));
        for (size_t at = 0; at < bytes.len; at += pieces[p]) {
            assert_int_equal(got, WB_WIRE_MORE);
            size_t len = bytes.len - at < pieces[p] ? bytes.len - at : pieces[p];
            must_ok(wb_wire_reader_feed(reader, wb_slice(bytes.ptr + at, len)));
            got = read_on(reader, &records, &damages, true);
        }
        assert_int_equal(got, WB_WIRE_END);
        assert_int_equal(records, RECORDS);
        assert_int_equal(damages, 1);
        assert_true(wb_wire_reader_info(reader, &info));
        assert_true(info.snapshot == 7 && info.generation == 3 && info.epoch == 99 && info.pages == RECORDS);
    }
    wb_wire_reader_free(reader);
    wb_buf_release(&bytes);
}

/* Bytes may arrive while records of the frame before are still waiting. */
static void test_feed_between_records(void **state)
{
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_wire_reader *reader;
    struct wb_stream_record record;
    uint64_t records = 0;
    size_t at = 0;
    int got = 0;

    (void)state;
    write_stream(&bytes);
    must_ok(wb_wire_reader_new(&reader));
    while (got != WB_WIRE_END) {
        size_t len = bytes.len - at < 5000 ? bytes.len - at : 5000;
        must_ok(wb_wire_reader_feed(reader, wb_slice(bytes.ptr + at, len)));
        at += len;
        got = wb_wire_reader_next(reader, &record);
        must_ok(got);
        if (got == WB_WIRE_RECORD)
            check_record(&record, records++);
    }
    assert_int_equal(records, RECORDS);
    wb_wire_reader_free(reader);
    wb_buf_release(&bytes);
}

/* A stream that is cut after any byte has no end. */
static void test_cuts(void **state)
{
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_wire_reader *reader;
    uint64_t records = 0;
    unsigned damages = 0;

    (void)state;
    write_stream(&bytes);
    must_ok(wb_wire_reader_new(&reader));
    for (size_t at = 0; at < bytes.len; at++) { /* after each byte, the reader is asked as if it were the last one */
        assert_int_equal(read_on(reader, &records, &damages, false), WB_WIRE_MORE);
        must_ok(wb_wire_reader_feed(reader, wb_slice(bytes.ptr + at, 1)));
    }
    assert_int_equal(read_on(reader, &records, &damages, false), WB_WIRE_END);
    wb_wire_reader_free(reader);
    wb_buf_release(&bytes);
}

/* A frame that is left out, repeated, or comes after the end is noticed; so is a byte that was changed. */
static void test_changes(void **state)
{
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_wire_reader *reader;
    unsigned fatal = 0, lost = 0;

    (void)state;
    write_stream(&bytes);
    must_ok(wb_wire_reader_new(&reader));
    for (size_t at = 0; at < bytes.len; at += at < 3000 ? 1 : 61) {
        uint64_t records = 0;
        unsigned damages = 0;
        wb_wire_reader_reset(reader);
        bytes.ptr[at] ^= 0x20;
        must_ok(wb_wire_reader_feed(reader, wb_buf_slice(&bytes)));
        int got = read_on(reader, &records, &damages, false);
        assert_true(got <= 0 || damages > 1); /* of a block, a page may be lost, but that is reported */
        fatal += got < 0;
        lost += got == WB_WIRE_END;
        bytes.ptr[at] ^= 0x20;
    }
    assert_true(fatal > 0 && lost > 0);
    wb_wire_reader_reset(reader);
    uint64_t records = 0;
    unsigned damages = 0;
    must_ok(wb_wire_reader_feed(reader, wb_buf_slice(&bytes)));
    must_ok(wb_wire_reader_feed(reader, WB_SLICE_LIT("x")));
    assert_int_equal(read_on(reader, &records, &damages, false), WB_WIRE_END);
    assert_int_equal(read_on(reader, &records, &damages, false), WB_E_PROTO);
    wb_wire_reader_free(reader);
    wb_buf_release(&bytes);
}

/* The header says which format the stream has: a byte behind "WBST". */
static void test_another_format(void **state)
{
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_wire_reader *reader;
    uint64_t records = 0;
    unsigned damages = 0;

    (void)state;
    write_stream(&bytes);
    size_t fields = (uint8_t)bytes.ptr[4] + 256 * (size_t)(uint8_t)bytes.ptr[5];
    assert_memory_equal(bytes.ptr + 24, "WBST\1", 5);
    bytes.ptr[28] = 2;
    wb_put64(bytes.ptr + 16, wb_hash64_seeded(bytes.ptr + 24, fields, wb_hash64(bytes.ptr, 16)));
    must_ok(wb_wire_reader_new(&reader));
    must_ok(wb_wire_reader_feed(reader, wb_buf_slice(&bytes)));
    assert_refused_format(read_on(reader, &records, &damages, true), "the stream of the server", 2);
    wb_wire_reader_free(reader);
    wb_buf_release(&bytes);
}

/* The end says how many records there were. */
static void test_missing_records(void **state)
{
    struct wb_buf bytes = WB_BUF_INIT, shorter = WB_BUF_INIT;
    struct wb_wire_reader *reader;
    uint64_t records = 0;
    unsigned damages = 0;

    (void)state;
    write_stream(&bytes);
    size_t header = 24 + (size_t)(uint8_t)bytes.ptr[4] + 256 * (size_t)(uint8_t)bytes.ptr[5], end = bytes.len - 25;
    must_ok(wb_buf_append(&shorter, bytes.ptr, header));
    must_ok(wb_buf_append(&shorter, bytes.ptr + end, bytes.len - end));
    must_ok(wb_wire_reader_new(&reader));
    must_ok(wb_wire_reader_feed(reader, wb_buf_slice(&shorter)));
    assert_int_equal(read_on(reader, &records, &damages, true), WB_E_PROTO);
    assert_non_null(strstr(wb_error_message(), "missing"));
    wb_wire_reader_free(reader);
    wb_buf_release(&bytes);
    wb_buf_release(&shorter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_feed_between_records),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_missing_records),
        cmocka_unit_test(test_another_format),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
