/*
 * bench_edit.h - makes the next version of a page, as an editor might.
 *
 * About one word in fifty of the text is replaced by another word: the text is what stands between tags, except in
 * scripts, styles and comments. The replaced words are in a few places, each of 1 to 12 neighbouring words, and at
 * least one word is replaced. The new words are drawn from the texts of the corpus, so that frequent words are
 * drawn often; each is drawn by itself, so that a new phrase is harder to compress than real prose.
 *
 * In the HTTP head, Date, Last-Modified, ETag and Content-Length change as a web server would change them.
 */
#ifndef WB_BENCH_BENCH_EDIT_H
#define WB_BENCH_BENCH_EDIT_H

#include "base/vec.h"
#include "bench.h"

struct editor {
    WB_VEC(struct wb_slice) pool;  /* words of the corpus, as often as they occur in the sample */
    WB_VEC(struct wb_slice) words; /* of the page that is being edited */
    WB_VEC(bool) chosen;           /* which of them are replaced */
    uint64_t words_seen, words_replaced;
    uint64_t text_bytes, body_bytes;
};

#define EDITOR_INIT ((struct editor){.words_seen = 0})

/* Collects the words. The corpus must stay. */
int editor_init(const struct corpus *corpus, struct editor *editor_out);
void editor_release(struct editor *editor);

/*
 * Makes the next version of `page`: step_ms later, and with other words that depend on the seed alone. Its head and
 * body borrow from mem, everything else is as in `page`, which must not borrow from mem.
 */
int editor_next(struct editor *editor, const struct wb_page *page, uint64_t seed, int64_t step_ms, struct wb_buf *mem,
                struct wb_page *page_out);

#endif
