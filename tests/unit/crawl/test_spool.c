/*
 * test_spool.c - pages between fetch and commit: they come back after a death, and those of earlier rounds do not.
 *
 * The crash test kills a process that adds and resets at any moment. It says through a pipe what it is about to do and
 * what it has done, so the parent knows which pages must, may and must not come back.
 */
#include "../journal/edit_support.h"
#include "../otherformat.h"
#include "crawl/spool.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

/* A page is a function of its number. */
struct made {
    struct wb_page page;
    char url[64], key[64];
    char *body;
};

static void make_page(uint32_t number, struct made *made)
{
    uint64_t state = number;
    size_t len = (size_t)chance_below(&state, number % 97 == 0 ? 300000 : 3000);

    *made = (struct made){.body = malloc(len + 1)};
    for (size_t i = 0; i < len; i++)
        made->body[i] = (char)(number + i * 13);
    snprintf(made->url, sizeof made->url, "https://example.org/page/%u", number);
    snprintf(made->key, sizeof made->key, "example.org/page/%u", number);
    made->page = (struct wb_page){.kind = WB_PAGE_RESPONSE, .status = 200, .time_ms = number, .lifetime = number % 10,
                                  .truncated = number % 3 == 0, .url = wb_slice_str(made->url),
                                  .key = wb_slice_str(made->key),
                                  .head = WB_SLICE_LIT("HTTP/1.1 200 OK\r\n"), .type = WB_SLICE_LIT("text/html"),
                                  .charset = WB_SLICE_EMPTY, .body = wb_slice(made->body, len), .body_bytes = len};
    made->page.id = wb_pageid_of_key(made->page.key);
    if (number % 2)
        wb_page_digest(&made->page);
}

static bool same_page(const struct wb_page *a, const struct wb_page *b)
{
    return wb_pageid_equal(a->id, b->id) && wb_slice_equal(a->url, b->url) && wb_slice_equal(a->key, b->key) &&
           wb_slice_equal(a->head, b->head) && wb_slice_equal(a->type, b->type) && wb_slice_equal(a->body, b->body) &&
           a->time_ms == b->time_ms && a->status == b->status && a->lifetime == b->lifetime &&
           a->truncated == b->truncated && a->digested == b->digested && memcmp(a->md5, b->md5, WB_MD5_BYTES) == 0 &&
           memcmp(a->sha1, b->sha1, WB_SHA1_BYTES) == 0;
}

/* The line of a page ends in its number; every third page has none. */
static struct wb_slice make_line(uint32_t number, char text[64])
{
    return number % 3 ? wb_slice(text, (size_t)snprintf(text, 64, "{\"page\":%u}\n", number)) : WB_SLICE_EMPTY;
}

static void add_page(struct wb_spool *spool, uint32_t number)
{
    struct made made;
    char text[64];

    make_page(number, &made);
    assert_int_equal(wb_spool_add(spool, &made.page, make_line(number, text)), 0);
    free(made.body);
}

/* ---- what comes back --------------------------------------------------------------------------------------------- */

struct back {
    uint32_t numbers[20000];
    size_t count, ends, lines; /* lines: without a page */
    size_t fail_at; /* the call that fails, NULL counted; 0: none */
    size_t calls;
};

static void check_line(const struct wb_spool_item *item)
{
    char text[64];

    if (item->page)
        assert_true(wb_slice_equal(item->line, make_line((uint32_t)item->page->time_ms, text)));
    else
        assert_true(wb_slice_equal(item->line, WB_SLICE_LIT("{\"alone\"}\n")));
}

static int take_back(void *context, const struct wb_spool_item *item)
{
    const struct wb_page *page = item->page;
    struct back *back = context;
    struct made made;

    assert_string_equal(item->owner, "a");
    if (++back->calls == back->fail_at)
        return WB_E_STOPPED;
    if (item->end) {
        assert_true(!page && item->line.len == 0);
        back->ends++;
        return 0;
    }
    check_line(item);
    if (!page) {
        back->lines++;
        return 0;
    }
    make_page((uint32_t)page->time_ms, &made);
    assert_true(same_page(page, &made.page)); /* digests too, and whether there are any */
    free(made.body);
    assert_true(back->count < COUNT(back->numbers));
    back->numbers[back->count++] = (uint32_t)page->time_ms;
    return 0;
}

static struct back back;
static bool spool_held; /* by this process */

static const char *spool_path(const char *dir)
{
    static char path[160];

    snprintf(path, sizeof path, "%s/spool/a", dir);
    return path;
}

/* Recovers. The pages must be first to first + count - 1; each spool that was left gives one end. */
static void expect_back(const char *dir, uint32_t first, size_t count)
{
    bool left = wb_path_kind(spool_path(dir)) == WB_PATH_FILE && !spool_held;
    uint64_t pages;

    memset(&back, 0, sizeof back);
    assert_int_equal(wb_spool_recover(dir, take_back, &back, &pages), 0);
    assert_int_equal(pages, count);
    assert_int_equal(back.count, count);
    assert_int_equal(back.ends, left);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(back.numbers[i], first + i);
}

static void test_rounds(void **state)
{
    const char *dir = new_dir();
    struct wb_spool *spool, *other;

    (void)state;
    expect_back(dir, 0, 0);
    assert_int_equal(wb_spool_create(dir, "a", &spool), 0);
    assert_int_equal(wb_spool_create(dir, "a", &other), WB_E_BUSY);
    for (uint32_t i = 0; i < 100; i++)
        add_page(spool, i);
    assert_true(wb_spool_bytes(spool) > 100 * 100);
    spool_held = true;
    expect_back(dir, 0, 0);
    spool_held = false;
    wb_spool_close(spool, false);
    assert_int_equal(wb_spool_create(dir, "a", &other), WB_E_BUSY); /* pages are in it */
    expect_back(dir, 0, 100);
    assert_int_equal(wb_path_kind(spool_path(dir)), WB_PATH_NONE);
    expect_back(dir, 0, 0);

    assert_int_equal(wb_spool_create(dir, "a", &spool), 0);
    for (uint32_t i = 0; i < 100; i++)
        add_page(spool, i);
    assert_int_equal(wb_spool_reset(spool), 0);
    assert_int_equal(wb_spool_bytes(spool), 0);
    for (uint32_t i = 200; i < 210; i++)
        add_page(spool, i);
    wb_spool_close(spool, false);
    expect_back(dir, 200, 10);

    assert_int_equal(wb_spool_create(dir, "a", &spool), 0);
    add_page(spool, 1);
    assert_int_equal(wb_spool_reset(spool), 0);
    assert_int_equal(wb_spool_reset(spool), 0);
    wb_spool_close(spool, false);
    expect_back(dir, 0, 0);

    assert_int_equal(wb_spool_create(dir, "a", &spool), 0);
    add_page(spool, 1);
    wb_spool_close(spool, true);
    assert_int_equal(wb_path_kind(spool_path(dir)), WB_PATH_NONE);
}

/* Lines without a page come back too, in order with the pages, and end with their round. */
static void test_lines(void **state)
{
    const char *dir = new_dir();
    struct wb_spool *spool;

    (void)state;
    assert_int_equal(wb_spool_create(dir, "a", &spool), 0);
    assert_int_equal(wb_spool_add(spool, NULL, WB_SLICE_LIT("{\"old\"}\n")), 0);
    uint64_t round = wb_spool_round(spool);
    assert_int_equal(wb_spool_reset(spool), 0);
    assert_true(wb_spool_round(spool) != round);
    for (uint32_t i = 1; i < 8; i++) {
        add_page(spool, i);
        assert_int_equal(wb_spool_add(spool, NULL, WB_SLICE_LIT("{\"alone\"}\n")), 0);
    }
    wb_spool_close(spool, false);
    expect_back(dir, 1, 7);
    assert_int_equal(back.lines, 7);
}

/* After a round that made the file very long, the file is truncated. */
static void test_long_round(void **state)
{
    const char *dir = new_dir();
    struct wb_spool *spool;
    struct made made;

    (void)state;
    assert_int_equal(wb_spool_create(dir, "a", &spool), 0);
    make_page(1, &made);
    char *body = calloc(1, 12 << 20);
    made.page.body = wb_slice(body, 12 << 20);
    made.page.digested = false;
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(wb_spool_add(spool, &made.page, WB_SLICE_EMPTY), 0);
    assert_true(wb_path_disk_bytes(spool_path(dir)) > 64 << 20);
    assert_int_equal(wb_spool_reset(spool), 0);
    assert_true(wb_path_disk_bytes(spool_path(dir)) < 1 << 20);
    add_page(spool, 5);
    wb_spool_close(spool, false);
    expect_back(dir, 5, 1);
    free(body);
    free(made.body);
}

/* If the callback fails, the file stays, and the next recovery gives everything again. */
static void test_failing_callee(void **state)
{
    const char *dir = new_dir();
    struct wb_spool *spool;
    uint64_t pages;

    (void)state;
    assert_int_equal(wb_spool_create(dir, "a", &spool), 0);
    for (uint32_t i = 0; i < 5; i++)
        add_page(spool, i);
    wb_spool_close(spool, false);
    for (size_t at = 1; at <= 6; at++) { /* the sixth is the commit */
        memset(&back, 0, sizeof back);
        back.fail_at = at;
        assert_int_equal(wb_spool_recover(dir, take_back, &back, &pages), WB_E_STOPPED);
        assert_int_equal(pages, 0);
    }
    expect_back(dir, 0, 5);
}

/* Whether the changed byte is in a round of the head that was never written. */
static bool slot_is_empty(const char *path, uint64_t at)
{
    struct wb_file file;
    char slot[16];
    unsigned set = 0;

    assert_int_equal(wb_file_open(path, WB_FILE_READ, &file), 0);
    assert_int_equal(wb_file_read_exact(&file, at / 16 * 16, slot, sizeof slot), 0);
    wb_file_close(&file);
    for (size_t i = 0; i < sizeof slot; i++)
        set += slot[i] != 0;
    return set <= 1;
}

/* The file is cut or changed anywhere: the pages before the damage come back, and nothing else. */
static void test_damage(void **state)
{
    const char *dir = new_dir();
    struct wb_spool *spool;
    uint64_t ends[9];

    (void)state;
    for (unsigned round = 0; round < 400; round++) {
        uint64_t chance = round;
        assert_int_equal(wb_spool_create(dir, "a", &spool), 0);
        for (uint32_t i = 1; i < 9; i++) {
            ends[i - 1] = 64 + wb_spool_bytes(spool);
            add_page(spool, i);
        }
        ends[8] = 64 + wb_spool_bytes(spool);
        wb_spool_close(spool, false);
        uint64_t at = round < 200 ? round / 2 : chance_below(&chance, ends[8]);
        size_t whole = 0;
        while (whole < 8 && ends[whole + 1] <= at)
            whole++;
        if (round % 2) {
            change_byte(spool_path(dir), at, 0x40);
            /* The other round, which was never written, and the end of the head have no meaning. */
            bool slack = at >= 48 || (at >= 16 && slot_is_empty(spool_path(dir), at));
            expect_back(dir, 1, at < 64 ? slack ? 8 : 0 : whole);
        } else {
            cut_file(spool_path(dir), at);
            expect_back(dir, 1, whole);
        }
    }
}

/* A spool of another format is refused and stays; so does one whose pages have another format. */
static void test_another_format(void **state)
{
    const char *dir = new_dir();
    struct wb_spool *spool;
    uint64_t pages;

    (void)state;
    assert_int_equal(wb_spool_create(dir, "a", &spool), 0);
    for (uint32_t i = 1; i < 4; i++)
        add_page(spool, i);
    wb_spool_close(spool, false);
    put_format(spool_path(dir), 0, 4, 2, 8);
    assert_refused_format(wb_spool_recover(dir, take_back, &back, &pages), spool_path(dir), 2);
    put_format(spool_path(dir), 0, 4, 1, 8);
    expect_back(dir, 1, 3);

    struct made made;
    struct wb_buf record = WB_BUF_INIT, head = WB_BUF_INIT;
    make_page(1, &made);
    assert_int_equal(wb_page_encode(&made.page, &record), 0);
    assert_int_equal(wb_spool_create(dir, "a", &spool), 0);
    assert_int_equal(wb_spool_add(spool, &made.page, WB_SLICE_EMPTY), 0);
    wb_spool_close(spool, false);
    assert_int_equal(wb_path_read(spool_path(dir), 1 << 20, &head), 0);
    char *at = head.ptr + 64; /* the only record: its checksum is at 24, its page at 32 */
    at[32 + 36] = 2;
    wb_put64(at + 24, wb_hash64(at, 24) ^ wb_hash64(at + 32, record.len));
    assert_int_equal(wb_path_replace(spool_path(dir), wb_buf_slice(&head)), 0);
    memset(&back, 0, sizeof back);
    assert_refused_format(wb_spool_recover(dir, take_back, &back, &pages), "the page record", 2);
    assert_int_equal(wb_path_kind(spool_path(dir)), WB_PATH_FILE);
    wb_buf_release(&record);
    wb_buf_release(&head);
    free(made.body);
}

static void test_full_disk(void **state)
{
    const char *dir = new_dir();
    struct wb_spool *spool;
    uint32_t next = 1000;

    (void)state;
    assert_int_equal(wb_spool_create(dir, "a", &spool), 0);
    for (unsigned i = 0; i < 50; i++) {
        struct made made;
        /* Writing another, longer page failed half-way at the same place. */
        make_page(97 * (i + 1), &made);
        wb_fault_arm(WB_FAULT_WRITE, 1, ENOSPC);
        assert_int_equal(wb_spool_add(spool, &made.page, WB_SLICE_EMPTY), WB_E_IO);
        wb_fault_disarm();
        free(made.body);
        if (i % 3)
            add_page(spool, next++);
    }
    wb_spool_close(spool, false);
    expect_back(dir, 1000, next - 1000);
    /* A round could not be started, once after an even one and once after an odd one. */
    for (unsigned resets = 0; resets < 2; resets++) {
        assert_int_equal(wb_spool_create(dir, "a", &spool), 0);
        add_page(spool, 1);
        if (resets)
            assert_int_equal(wb_spool_reset(spool), 0);
        add_page(spool, 2);
        wb_fault_arm(WB_FAULT_WRITE, 1, ENOSPC);
        assert_int_equal(wb_spool_reset(spool), WB_E_IO);
        wb_fault_disarm();
        add_page(spool, 3);
        wb_spool_close(spool, false);
        expect_back(dir, 1 + resets, 3 - resets);
    }
    for (uint64_t nth = 1; nth < 20; nth++) {
        wb_fault_arm(WB_FAULT_ANY, nth, EIO);
        int err = wb_spool_create(dir, "a", &spool);
        bool struck = wb_fault_struck();
        wb_fault_disarm();
        assert_int_equal(err < 0, struck);
        assert_int_not_equal(fcntl(STDIN_FILENO, F_GETFD), -1); /* a spool without a file closes no other one */
        if (err == 0)
            wb_spool_close(spool, true);
        assert_int_equal(wb_path_kind(spool_path(dir)), WB_PATH_NONE);
    }
}

/* ---- killed ------------------------------------------------------------------------------------------------------ */

enum { ADDED = 'a', RESETTING = 'r', RESET = 'd' };

struct word {
    uint32_t number; /* of the page added last; of the next one */
    uint32_t what;
};

struct writer {
    const char *dir;
    uint64_t seed;
};

static void say(int to, uint32_t what, uint32_t number)
{
    struct word word = {number, what};

    must(write(to, &word, sizeof word) == sizeof word);
}

static void spool_on(void *context, int to)
{
    const struct writer *w = context;
    uint64_t chance = w->seed;
    struct wb_spool *spool;

    must(wb_spool_create(w->dir, "a", &spool) == 0);
    for (uint32_t number = 1;; number++) {
        struct made made;
        char text[64];
        make_page(number, &made);
        must(wb_spool_add(spool, &made.page, make_line(number, text)) == 0);
        free(made.body);
        say(to, ADDED, number);
        if (chance_below(&chance, 12) == 0) {
            say(to, RESETTING, number);
            must(wb_spool_reset(spool) == 0);
            say(to, RESET, number);
        }
    }
}

static void test_killed(void **state)
{
    uint64_t chance = test_seed(), pages;
    size_t all = 0;

    (void)state;
    for (unsigned life = 0; life < 60; life++) {
        struct writer writer = {new_dir(), chance_next(&chance)};
        struct child child = start_child(spool_on, &writer);
        struct word word;
        uint32_t added = 0, reset = 0, resetting = 0;
        if (life % 2)
            assert_int_equal(poll(&(struct pollfd){child.from, POLLIN, 0}, 1, 30000), 1);
        kill_child(&child, (unsigned)chance_below(&chance, 3000));
        while (next_ack(&child, &word, sizeof word)) {
            added = word.number;
            reset = word.what == RESET ? word.number : reset;
            resetting = word.what == RESETTING ? word.number : resetting;
        }
        close(child.from);
        memset(&back, 0, sizeof back);
        assert_int_equal(wb_spool_recover(writer.dir, take_back, &back, &pages), 0);
        /* A reset that was announced may have happened, and one page after the last acknowledged one may be there. */
        if (resetting > reset && (back.count == 0 || back.numbers[0] > resetting))
            reset = resetting;
        uint32_t first = back.count ? back.numbers[0] : reset + 1;
        uint32_t last = back.count ? back.numbers[back.count - 1] : added;
        assert_int_equal(first, reset + 1);
        assert_true(back.count || added == reset);
        assert_true(last == added || last == added + 1);
        for (size_t i = 0; i < back.count; i++)
            assert_int_equal(back.numbers[i], first + i);
        all += back.count;
    }
    print_message("# %zu pages came back\n", all);
    assert_true(all > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds),         cmocka_unit_test(test_lines),  cmocka_unit_test(test_long_round),
        cmocka_unit_test(test_failing_callee), cmocka_unit_test(test_damage), cmocka_unit_test(test_another_format),
        cmocka_unit_test(test_full_disk),      cmocka_unit_test(test_killed),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
