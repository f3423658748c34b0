/*
 * same_marks.h - what must hold of the marks in any two versions of a page, for the test and the fuzz target: without
 * them, each is rewritten to the same bytes as without a comparison, and with them it has the same tags.
 */
#ifndef WB_TESTS_SAME_MARKS_H
#define WB_TESTS_SAME_MARKS_H

#include "base/check.h"
#include "markup/markup.h"
#include "markup/tagwalk.h"
#include "replay/replay.h"

#include <string.h>

/* The length of a mark's start or end tag at p; 0: there is none. Pages may contain the same. */
static inline size_t mark_at(const char *p, const char *end)
{
    static const char *const fronts[] = {"<ins id=\"" WB_REPLAY_CHANGE_ID, "<del id=\"" WB_REPLAY_CHANGE_ID,
                                         "<ins style=\"", "<del style=\""};

    if (end - p >= 6 && (memcmp(p, "</ins>", 6) == 0 || memcmp(p, "</del>", 6) == 0))
        return 6;
    for (size_t i = 0; i < sizeof fronts / sizeof *fronts; i++) {
        size_t len = strlen(fronts[i]);
        const char *close = (size_t)(end - p) > len && memcmp(p, fronts[i], len) == 0
                                ? memmem(p, (size_t)(end - p), "!important", 10)
                                : NULL;
        close = close ? memchr(close, '>', (size_t)(end - close)) : NULL;
        if (close)
            return (size_t)(close + 1 - p);
    }
    return 0;
}

static inline void strip_marks(struct wb_slice html, struct wb_buf *out)
{
    const char *end = html.ptr + html.len;

    wb_buf_clear(out);
    for (const char *p = html.ptr; p < end;) {
        size_t mark = mark_at(p, end);
        WB_CHECK(mark || wb_buf_append_char(out, *p) == 0);
        p += mark ? mark : 1;
    }
}

/* The tags of a document, one per line, without ins and del. */
static inline void list_tags(struct wb_slice html, struct wb_buf *out)
{
    static struct wb_tagwalk *walk;
    const struct wb_tokenizer *t;

    WB_CHECK(walk || wb_tagwalk_new(&walk) == 0);
    wb_buf_clear(out);
    wb_tagwalk_begin(walk, html, false);
    while ((t = wb_tagwalk_next(walk))->kind != WB_TOKEN_NONE) {
        if (t->kind == WB_TOKEN_TEXT || wb_slice_equal(t->text, WB_SLICE_LIT("ins")) ||
            wb_slice_equal(t->text, WB_SLICE_LIT("del")))
            continue;
        WB_CHECK(wb_buf_printf(out, "%d %.*s %u\n", (int)t->kind, WB_SLICE_ARG(t->text),
                               t->kind == WB_TOKEN_START ? t->attr_count : 0) == 0);
    }
}

/* Returns how many changes there are. HTML, in an encoding that stays. */
static inline uint32_t check_marks(struct wb_replayer *r, const struct wb_replay_page *old,
                                   const struct wb_replay_page *new)
{
    static struct wb_buf plain, marked, one, two;
    struct wb_replay_marks marks[2];
    struct wb_replay_result info;
    uint32_t changes;

    WB_CHECK(wb_replay_compare(r, old, new, &marks[0], &marks[1], &changes) == 0);
    for (int i = 0; i < 2; i++) {
        struct wb_replay_options options = {.prefix = WB_SLICE_LIT("/web/")};
        WB_CHECK(marks[i].count <= WB_REPLAY_MARKS_MAX && marks[i].changes <= changes);
        wb_buf_clear(&plain);
        WB_CHECK(wb_replay_rewrite(r, i ? new : old, &options, &plain, &info) == 0);
        options.marks = &marks[i];
        wb_buf_clear(&marked);
        WB_CHECK(wb_replay_rewrite(r, i ? new : old, &options, &marked, &info) == 0);
        WB_CHECK((marks[i].count == 0) == (plain.len == marked.len));
        strip_marks(wb_buf_slice(&plain), &one);
        strip_marks(wb_buf_slice(&marked), &two);
        WB_CHECK(wb_slice_equal(wb_buf_slice(&one), wb_buf_slice(&two)));
        list_tags(wb_buf_slice(&plain), &one);
        list_tags(wb_buf_slice(&marked), &two);
        WB_CHECK(wb_slice_equal(wb_buf_slice(&one), wb_buf_slice(&two)));
        wb_replay_marks_release(&marks[i]);
    }
    return changes;
}

#endif
