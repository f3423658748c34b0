/*
 * memo.h - private to stream: what was computed from the pages of a batch, kept for the other streams that share it.
 *
 * A page has room for one text of each kind. The first stream that needs one makes it; others that need it at the same
 * moment make that of a later page instead of waiting, because they will need that one next.
 */
#ifndef WB_STREAM_MEMO_H
#define WB_STREAM_MEMO_H

#include "page/page.h"

enum wb_memo_kind {
    WB_MEMO_JSON, /* the line up to the token */
    WB_MEMO_TEXT, /* the text of the page */
    WB_MEMO_KINDS,
};

/* The memos of a batch. */
struct wb_memo_set;

/* That of one page: an element of an array. */
struct wb_stream_memo;

/* pages must stay until the set is freed. Texts together take at most bytes_max. */
int wb_memo_set_new(const struct wb_page *pages, size_t count, size_t bytes_max, struct wb_memo_set **set_out);
void wb_memo_set_free(struct wb_memo_set *set);
struct wb_stream_memo *wb_memo_of(struct wb_memo_set *set, size_t page);

enum wb_memo_got {
    WB_MEMO_THERE, /* the text, which stays as long as the set */
    WB_MEMO_MAKE,  /* the caller makes it, and calls wb_memo_put() */
    WB_MEMO_BUSY,  /* somebody else is making it */
};
enum wb_memo_got wb_memo_take(struct wb_stream_memo *memo, enum wb_memo_kind kind, struct wb_slice *text_out);

/* Keeps a copy of a text, if there is room. An empty one: it could not be made, and somebody else may try. */
void wb_memo_put(struct wb_stream_memo *memo, enum wb_memo_kind kind, struct wb_slice text);

/* Finds one of the next pages whose text nobody makes. The caller makes it, and calls wb_memo_put(). NULL: none. */
struct wb_stream_memo *wb_memo_ahead(struct wb_stream_memo *memo, enum wb_memo_kind kind,
                                     const struct wb_page **page_out);

/* Waits until nobody is making the text. */
void wb_memo_wait(struct wb_stream_memo *memo, enum wb_memo_kind kind);

#endif
