/* extract_support.h - shared by the tests of extract: one extractor for all cases, and the page it made last. */
#ifndef WB_TESTS_EXTRACT_SUPPORT_H
#define WB_TESTS_EXTRACT_SUPPORT_H

#include "../expect.h"
#include "extract/module.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct wb_extractor *extractor;
static struct wb_extract page;

static inline int set_up(void **state)
{
    (void)state;
    return wb_extractor_new(&extractor);
}

static inline int tear_down(void **state)
{
    (void)state;
    wb_extractor_free(extractor);
    return 0;
}

/* Extracts a body at https://example.org/ with this media type and charset. */
static inline void see_page(const char *type, const char *charset, struct wb_slice body, unsigned wants)
{
    struct wb_extract_input input = {WB_SLICE_LIT("https://example.org/"), wb_slice_str(type), wb_slice_str(charset),
                                     body, wants};

    assert_int_equal(wb_extract(extractor, &input, &page), 0);
}

#endif
