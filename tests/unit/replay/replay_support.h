/* replay_support.h - shared by the tests of replay: one replayer for all cases, and the page it made last. */
#ifndef WB_TESTS_REPLAY_SUPPORT_H
#define WB_TESTS_REPLAY_SUPPORT_H

#include "base/error.h"
#include "extract/extract.h"
#include "replay/replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define TIME "20260102030405"
#define HERE "https://example.org/dir/page.html"
#define IN_ARCHIVE "/web/" TIME "/"

static struct wb_replayer *replayer;
static struct wb_buf output;
static struct wb_replay_result result;

static inline int set_up(void **state)
{
    (void)state;
    return wb_replayer_new(&replayer);
}

static inline int tear_down(void **state)
{
    (void)state;
    wb_replayer_free(replayer);
    wb_buf_release(&output);
    return 0;
}

/* Rewrites a page at HERE into `output`. */
static inline struct wb_slice rewrite(const char *type, const char *charset, struct wb_slice body,
                                      const struct wb_replay_options *options)
{
    struct wb_replay_page page = {WB_SLICE_LIT(HERE), WB_SLICE_LIT(TIME), wb_slice_str(type), wb_slice_str(charset),
                                  body};

    wb_buf_clear(&output);
    assert_int_equal(wb_replay_rewrite(replayer, &page, options, &output, &result), 0);
    return wb_buf_slice(&output);
}

static const struct wb_replay_options plain_options = {.prefix = {"/web/", 5}};

static inline void expect_bytes(struct wb_slice body, struct wb_slice got, struct wb_slice want)
{
    if (!wb_slice_equal(got, want))
        fail_msg("'%.*s':\n want '%.*s',\n  got '%.*s'", WB_SLICE_ARG(body), WB_SLICE_ARG(want), WB_SLICE_ARG(got));
}

/* Rewrites HTML in UTF-8. */
static inline void expect_html(const char *body, const char *want)
{
    struct wb_slice got = rewrite("text/html", "utf-8", wb_slice_str(body), &plain_options);

    expect_bytes(wb_slice_str(body), got, wb_slice_str(want));
}

#endif
