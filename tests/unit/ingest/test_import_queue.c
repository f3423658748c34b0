/* test_import_queue.c - items arrive complete and in order, and their total size stays bounded. */
#include "base/error.h"
#include "ingest/import_source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define IN_FLIGHT_MAX ((size_t)24 << 20)

struct producer {
    struct wb_import_queue *queue;
    size_t count;
    size_t body_bytes;
    int err;
};

static void *produce(void *context)
{
    struct producer *p = context;
    struct wb_buf body = WB_BUF_INIT, none = WB_BUF_INIT;

    p->err = wb_buf_reserve(&body, p->body_bytes);
    body.len = p->body_bytes;
    for (size_t i = 0; p->err == 0 && i < p->count; i++) {
        char name[32];
        memset(body.ptr, (int)('a' + i % 26), body.len);
        struct wb_page page = {.url = wb_slice(name, (size_t)sprintf(name, "page %zu", i)), .key = WB_SLICE_LIT("key"),
                               .head = WB_SLICE_EMPTY, .type = WB_SLICE_LIT("t"), .charset = WB_SLICE_LIT("c"),
                               .body = wb_buf_slice(&body)};
        p->err = wb_import_source_push_page(p->queue, &page, &none, 1);
    }
    wb_import_queue_close(p->queue);
    wb_buf_release(&body);
    return NULL;
}

static void assert_page(const struct wb_import_item *item, size_t i, size_t body_bytes)
{
    char name[32];

    snprintf(name, sizeof name, "page %zu", i);
    assert_int_equal(item->kind, WB_IMPORT_PAGE);
    assert_true(wb_slice_equal(item->page.url, wb_slice_str(name)));
    assert_true(wb_slice_equal(item->page.key, WB_SLICE_LIT("key")));
    assert_true(wb_slice_equal(item->page.charset, WB_SLICE_LIT("c")));
    assert_int_equal(item->page.body.len, body_bytes);
    assert_int_equal(item->page.body.ptr[0], 'a' + (int)(i % 26));
    assert_int_equal(item->page.body.ptr[body_bytes - 1], 'a' + (int)(i % 26));
    assert_int_equal(item->records, 1);
}

/* Sends everything through the queue; returns the largest number of bytes in flight. */
static size_t carry(size_t count, size_t body_bytes)
{
    struct wb_import_queue queue;
    struct producer p = {&queue, count, body_bytes, 0};
    struct wb_import_item *list;
    pthread_t thread;
    size_t seen = 0, most = 0;

    wb_import_queue_init(&queue);
    assert_int_equal(pthread_create(&thread, NULL, produce, &p), 0);
    while (wb_import_queue_take(&queue, 1000, &list)) {
        pthread_mutex_lock(&queue.mutex);
        most = queue.in_flight > most ? queue.in_flight : most;
        pthread_mutex_unlock(&queue.mutex);
        while (list) {
            struct wb_import_item *next = list->next;
            assert_page(list, seen++, body_bytes);
            wb_import_queue_free_item(&queue, list);
            list = next;
        }
    }
    pthread_join(thread, NULL);
    wb_import_queue_release(&queue);
    assert_int_equal(p.err, 0);
    assert_int_equal(seen, count);
    return most;
}

static void test_small_pages_in_order(void **state)
{
    (void)state;
    assert_true(carry(10000, 1000) <= IN_FLIGHT_MAX + (1 << 20));
}

static void test_medium_pages_are_bounded(void **state)
{
    (void)state;
    assert_true(carry(100, 3 << 20) <= IN_FLIGHT_MAX + (1 << 20));
}

static void test_a_large_page_goes_alone(void **state)
{
    (void)state;
    assert_true(carry(5, 40 << 20) < (41 << 20));
}

static void test_a_large_body_is_moved(void **state)
{
    struct wb_import_queue queue;
    struct wb_buf body = WB_BUF_INIT;
    struct wb_import_item *list;

    (void)state;
    wb_import_queue_init(&queue);
    assert_int_equal(wb_buf_reserve(&body, 1 << 20), 0);
    body.len = 1 << 20;
    memset(body.ptr, 'x', body.len);
    const char *bytes = body.ptr;
    struct wb_page page = {.url = WB_SLICE_LIT("u"), .key = WB_SLICE_LIT("k"), .head = WB_SLICE_EMPTY,
                           .type = WB_SLICE_EMPTY, .charset = WB_SLICE_EMPTY, .body = wb_buf_slice(&body)};
    assert_int_equal(wb_import_source_push_page(&queue, &page, &body, 1), 0);
    assert_null(body.ptr);
    assert_int_equal(wb_import_queue_take(&queue, 1000, &list), 1);
    assert_non_null(list);
    assert_ptr_equal(list->page.body.ptr, bytes);
    wb_import_queue_free_item(&queue, list);
    wb_import_queue_release(&queue);
}

static void test_waiting_ends(void **state)
{
    struct wb_import_queue queue;
    struct wb_import_item *list;

    (void)state;
    wb_import_queue_init(&queue);
    assert_int_equal(wb_import_queue_take(&queue, 20, &list), 1);
    assert_null(list);
    wb_import_queue_close(&queue);
    assert_int_equal(wb_import_queue_take(&queue, 20, &list), 0);
    wb_import_queue_release(&queue);
}

static void test_a_stopped_reader_returns(void **state)
{
    struct wb_import_queue queue;
    struct producer p = {&queue, 1000, 1 << 20, 0};
    pthread_t thread;

    (void)state;
    wb_import_queue_init(&queue);
    assert_int_equal(pthread_create(&thread, NULL, produce, &p), 0);
    usleep(20000);
    wb_import_queue_stop(&queue);
    pthread_join(thread, NULL);
    assert_int_equal(p.err, WB_E_STOPPED);
    wb_import_queue_release(&queue);
}

static void test_errors_carry_their_place(void **state)
{
    struct wb_import_queue queue;
    struct wb_import_item *list;

    (void)state;
    wb_import_queue_init(&queue);
    assert_int_equal(wb_import_source_push_error(&queue, "f.warc", 77, "it is broken", true, 3), 0);
    assert_int_equal(wb_import_source_push_file(&queue, 2), 0);
    wb_import_queue_close(&queue);
    assert_int_equal(wb_import_queue_take(&queue, 1000, &list), 1);
    assert_int_equal(list->kind, WB_IMPORT_ERROR);
    assert_string_equal(list->file, "f.warc");
    assert_string_equal(list->message, "it is broken");
    assert_int_equal(list->offset, 77);
    assert_int_equal(list->records, 3);
    assert_true(list->fatal);
    assert_int_equal(list->next->kind, WB_IMPORT_FILE);
    assert_int_equal(list->next->records, 2);
    wb_import_queue_free_item(&queue, list->next);
    wb_import_queue_free_item(&queue, list);
    wb_import_queue_release(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_pages_in_order),
        cmocka_unit_test(test_medium_pages_are_bounded),
        cmocka_unit_test(test_a_large_page_goes_alone),
        cmocka_unit_test(test_a_large_body_is_moved),
        cmocka_unit_test(test_waiting_ends),
        cmocka_unit_test(test_a_stopped_reader_returns),
        cmocka_unit_test(test_errors_carry_their_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
