/*
 * block_support.h - blocks for tests: records of pages that are made again to be compared, and blocks with a known
 * arrangement of frames.
 */
#ifndef WB_TESTS_BLOCK_SUPPORT_H
#define WB_TESTS_BLOCK_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../madepage.h"
#include "../must.h"
#include "../seeded.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "block/block_bytes.h"

#define UNUSED __attribute__((unused))
#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { PAGES_MAX = 200 };

struct block {
    struct wb_block_page pages[PAGES_MAX];
    struct wb_buf records[PAGES_MAX];
    size_t count;
    struct wb_buf bytes;
    struct wb_block_index index;
};

static struct wb_block_builder *builder;
static struct wb_block_reader *reader;

UNUSED static int set_up(void **state)
{
    (void)state;
    return wb_block_builder_new(&builder) < 0 || wb_block_reader_new(&reader) < 0;
}

UNUSED static int tear_down(void **state)
{
    (void)state;
    wb_block_builder_free(builder);
    wb_block_reader_free(reader);
    return 0;
}

/* Adds a version of a page, which differs from version 0 in a few bytes. newest is as in struct wb_block_page. */
UNUSED static void add_version(struct block *block, const struct spec *spec, uint32_t version, uint32_t newest)
{
    struct wb_buf *record = &block->records[block->count];
    struct made made;

    assert_true(block->count < PAGES_MAX);
    make_page(spec, &made);
    for (size_t i = 0; version > 0 && i + 4 <= made.body.len; i += 2000 + version)
        wb_put32(made.body.ptr + i, version * 7919);
    wb_page_digest(&made.page);
    must_ok(wb_page_encode(&made.page, record));
    block->pages[block->count++] =
        (struct wb_block_page){.id = made.page.id, .record = wb_buf_slice(record), .site = 5, .newest = newest};
    made_release(&made);
}

UNUSED static void add_record(struct block *block, uint32_t size)
{
    struct spec spec = {
        .site = 1, .number = (uint32_t)block->count, .time_ms = 1000, .size = size, .variant = (uint32_t)block->count};

    add_version(block, &spec, 0, 0);
}

UNUSED static int check(struct block *block)
{
    struct wb_block_head head;
    int err = wb_block_head_read(block->bytes.ptr, &head);

    return err < 0 ? err : wb_block_index_read(&head, block->bytes.ptr + WB_BLOCK_HEADER_BYTES, &block->index);
}

UNUSED static void build(struct block *block)
{
    must_ok(wb_block_build(builder, block->pages, block->count, &block->bytes));
    wb_block_stamp(block->bytes.ptr, 64, 3);
    must_ok(check(block));
    assert_int_equal(block->index.head.bytes, block->bytes.len);
}

UNUSED static void block_release(struct block *block)
{
    for (size_t i = 0; i < block->count; i++)
        wb_buf_release(&block->records[i]);
    wb_buf_release(&block->bytes);
    wb_block_index_release(&block->index);
    *block = (struct block){0};
}

UNUSED static void check_facts(const struct wb_page *page, const struct wb_page *facts)
{
    assert_true(wb_slice_equal(page->url, facts->url));
    assert_true(wb_slice_equal(page->key, facts->key));
    assert_true(wb_slice_equal(page->head, facts->head));
    assert_true(wb_slice_equal(page->type, facts->type));
    assert_true(wb_slice_equal(page->charset, facts->charset));
    assert_int_equal(facts->body.len, 0);
    assert_int_equal(page->body.len, facts->body_bytes);
    assert_int_equal(page->time_ms, facts->time_ms);
    assert_int_equal(page->status, facts->status);
    assert_memory_equal(page->sha1, facts->sha1, sizeof page->sha1);
}

/* The pages of `block` that are in `bytes` and not dead are as they were written. Returns how many there are. */
UNUSED static size_t check_pages(const struct block *block, const char *bytes, size_t len)
{
    struct wb_block_head head;
    struct wb_block_index index = {0};
    struct wb_buf record = WB_BUF_INIT;
    size_t came = 0;

    must_ok(wb_block_head_read(bytes, &head));
    assert_int_equal(head.bytes, len);
    must_ok(wb_block_index_read(&head, bytes + WB_BLOCK_HEADER_BYTES, &index));
    for (size_t i = 0; i < block->count; i++) {
        struct wb_page page, facts, expected;
        size_t at;
        if (!wb_block_find_slot(&index, block->pages[i].slot, &at))
            continue;
        if (index.entries.items[at].flags & WB_BLOCK_ENTRY_DEAD)
            continue;
        assert_true(wb_pageid_equal(index.entries.items[at].id, block->pages[i].id));
        must_ok(wb_page_decode(block->pages[i].record, &expected));
        wb_block_reader_open_bytes(reader, &index, bytes);
        must_ok(wb_block_read_facts(reader, at, &facts));
        check_facts(&expected, &facts);
        must_ok(wb_block_read_record(reader, at, &record));
        assert_true(wb_slice_equal(wb_buf_slice(&record), block->pages[i].record));
        must_ok(wb_block_read_page(reader, at, &page));
        assert_true(wb_slice_equal(page.body, expected.body));
        came++;
    }
    wb_buf_release(&record);
    wb_block_index_release(&index);
    return came;
}

/* Walks through all pages in order, with and without bodies, in one go. */
UNUSED static void check_walk(const struct block *block)
{
    for (int facts = 0; facts < 2; facts++) {
        wb_block_reader_open_bytes(reader, &block->index, block->bytes.ptr);
        for (size_t i = 0; i < block->index.entries.count; i++) {
            struct wb_page page;
            if (facts)
                must_ok(wb_block_read_facts(reader, i, &page));
            else
                must_ok(wb_block_read_page(reader, i, &page));
            assert_true(wb_pageid_equal(wb_pageid_of_key(page.key), block->index.entries.items[i].id));
            assert_int_equal(page.body_bytes, block->index.entries.items[i].body_bytes);
            assert_int_equal(page.body.len, facts ? 0 : page.body_bytes);
        }
    }
}

/* Corrects the checksums of header and directory after a change. */
UNUSED static void mend(struct block *block)
{
    char *head = block->bytes.ptr;
    size_t bytes = wb_get32(head + HEAD_DIRECTORY_BYTES_AT);

    if (WB_BLOCK_HEADER_BYTES + bytes <= block->bytes.len)
        wb_put64(head + HEAD_DIRECTORY_CHECK_AT, wb_hash64(head + WB_BLOCK_HEADER_BYTES, bytes));
    wb_block_stamp(head, 64, 3);
}

enum { SHARED = 11 };

/* Eleven pages of 10 KB: four in the lead, four before it and three after it. */
UNUSED static void make_shared(struct block *block)
{
    for (size_t i = 0; i < SHARED; i++)
        add_record(block, 10000);
    build(block);
    assert_int_equal(block->index.frames.count, 3);
    assert_int_equal(block->index.head.lead, 1);
    for (size_t i = 0; i < SHARED; i++) {
        assert_int_equal(block->index.entries.items[i].frame, i / 4);
        assert_int_equal(block->pages[i].stored_bytes > 0, i / 4 != 1);
    }
}

/* A lead, two frames, and two frames of older versions. */
UNUSED static void make_example(struct block *block)
{
    struct wb_buf after = WB_BUF_INIT;
    bool dead[SHARED] = {false};

    make_shared(block);
    size_t first = block->count;
    for (uint32_t i = 0; i < 2; i++) {
        struct spec spec = {.site = 1, .number = i * 9, .time_ms = 1000, .size = 10000, .variant = i * 9};
        add_version(block, &spec, 1, i * 9 + 1);
    }
    struct wb_block_change change = {.dead = dead, .extra = block->pages + first, .extra_count = 2};
    must_ok(wb_block_rewrite(builder, reader, &block->index, block->bytes.ptr, &change, &after));
    wb_buf_release(&block->bytes);
    block->bytes = after;
    must_ok(check(block));
    assert_int_equal(block->index.frames.count, 5);
}

#endif
