/* fold_support.h - applies edits to a page, each through its bytes, merge by merge. Header only. */
#ifndef WB_TESTS_FOLD_SUPPORT_H
#define WB_TESTS_FOLD_SUPPORT_H

#include "page_support.h"

#define URL "http://example.org/x"
#define SURT "org,example)/x"

struct bench {
    struct wb_pagefold fold;
    struct wb_buf row, value, mem;
};

UNUSED void begin(struct bench *b)
{
    assert_int_equal(wb_pagefold_begin(&b->fold, WB_SLICE_LIT(SURT), (struct wb_slice){NULL, 0}), 0);
    assert_false(b->fold.exists || b->fold.touched);
}

/* Ends a merge and starts the next one. */
UNUSED void merge(struct bench *b)
{
    struct wb_slice none = {NULL, 0};

    wb_buf_clear(&b->row);
    if (b->fold.exists)
        assert_int_equal(wb_pagerow_encode(&b->fold.page, &b->row), 0);
    assert_int_equal(wb_pagefold_begin(&b->fold, WB_SLICE_LIT(SURT), b->fold.exists ? wb_buf_slice(&b->row) : none), 0);
}

UNUSED int apply(struct bench *b, const struct wb_pageedit *edit)
{
    struct wb_pageedit again, named = *edit;

    if (!named.url.ptr)
        named.url = WB_SLICE_LIT(URL);
    named.surt = WB_SLICE_LIT(SURT);
    named.id = WB_PAGEEDIT_NO_ID;
    wb_buf_clear(&b->value);
    assert_int_equal(wb_pageedit_encode(&named, &b->value), 0);
    assert_int_equal(wb_pageedit_decode(WB_SLICE_LIT(SURT), named.time_ms, wb_buf_slice(&b->value), &b->mem, &again),
                     0);
    int got = wb_pagefold_apply(&b->fold, &again);
    if (got < 0)
        fail_msg("%s", wb_error_message());
    /* The page must not point into the memory of the edit. */
    memset(b->mem.ptr ? b->mem.ptr : (char *)&again, '?', b->mem.ptr ? b->mem.cap : 1);
    memset(b->value.ptr, '?', b->value.cap);
    return got;
}

UNUSED void release(struct bench *b)
{
    wb_pagefold_release(&b->fold);
    wb_buf_release(&b->row);
    wb_buf_release(&b->value);
    wb_buf_release(&b->mem);
}

#define EDIT(name, ...) (&(struct wb_pageedit){.kind = WB_PAGEEDIT_##name, __VA_ARGS__})
#define VISIT(at, what, ...) EDIT(VISIT, .time_ms = (at), .visit = {.outcome = WB_OUTCOME_##what, __VA_ARGS__})
#define CONTENT(n)                                                                                                     \
    .has_content = true, .md5 = {n}, .simhash = (n), .title_hash = (n) + 1, .bytes = (n)*100, .status = 200
#define T(day) (BASE_MS + (int64_t)(day) * WB_DAY_MS)

#endif
