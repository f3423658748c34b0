/* object_support.h - what the tests of object stores say again and again. */
#ifndef WB_TESTS_OBJECT_SUPPORT_H
#define WB_TESTS_OBJECT_SUPPORT_H

#include "../expect.h"
#include "base/buf.h"
#include "object/object.h"

/* What the object has; released by the caller. */
static inline struct wb_buf bytes_of(struct wb_object_store *store, const char *name)
{
    struct wb_buf bytes;

    ok(wb_object_get(store, name, WB_OBJECT_MAX, &bytes));
    return bytes;
}

static inline void expect_object(struct wb_object_store *store, const char *name, const char *want)
{
    struct wb_buf bytes = bytes_of(store, name);

    expect(wb_buf_slice(&bytes), want);
    wb_buf_release(&bytes);
}

static inline void expect_range(struct wb_object_store *store, const char *name, uint64_t offset, size_t len,
                                const char *want)
{
    struct wb_buf bytes;

    ok(wb_object_get_range(store, name, offset, len, &bytes));
    expect(wb_buf_slice(&bytes), want);
    wb_buf_release(&bytes);
}

static inline void expect_none(struct wb_object_store *store, const char *name)
{
    struct wb_buf bytes;
    uint64_t size;

    assert_int_equal(wb_object_get(store, name, WB_OBJECT_MAX, &bytes), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), name));
    assert_int_equal(bytes.len, 0);
    assert_int_equal(wb_object_get_range(store, name, 1, 1, &bytes), WB_E_NOTFOUND);
    assert_int_equal(wb_object_size(store, name, &size), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), name));
}

static inline int append_entry(void *context, const char *name, uint64_t size)
{
    return wb_buf_printf(context, "%s %llu\n", name, (unsigned long long)size);
}

/* Compares a listing with lines of "name size". */
static inline void expect_list(struct wb_object_store *store, const char *prefix, const char *want)
{
    struct wb_buf lines = WB_BUF_INIT;

    ok(wb_object_list(store, prefix, append_entry, &lines));
    expect(wb_buf_slice(&lines), want);
    wb_buf_release(&lines);
}

#endif
