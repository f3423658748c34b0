/*
 * kepttext.h - what a generation keeps of the text of a page, so that results can be shown without reading the page.
 *
 *   kept = flags (1) | bytes of the title (varint) | title | text
 *
 * The text is the main text of the page, white space collapsed and with '\n' between blocks, as extraction found it.
 * Headings that repeat the title are left out, since the title is shown beside it. WB_KEPT_GAP stands where something
 * is left out, so that no passage spans it. A page without main text keeps all of its text.
 */
#ifndef WB_INDEX_KEPTTEXT_H
#define WB_INDEX_KEPTTEXT_H

#include "base/buf.h"
#include "extract/extract.h"

enum wb_kept_flags {
    WB_KEPT_LINES = 1 << 0, /* the text has no blocks: every line counts as prose */
    WB_KEPT_CUT = 1 << 1,   /* the page has more text than WB_KEPT_TEXT_MAX */
};

#define WB_KEPT_TITLE_MAX 8192u
#define WB_KEPT_TEXT_MAX (64u << 10)
#define WB_KEPT_HEAD_MAX (1 + 10 + WB_KEPT_TITLE_MAX)
#define WB_KEPT_MAX (WB_KEPT_HEAD_MAX + WB_KEPT_TEXT_MAX)

/* Replaces *kept by what is kept of a page. The only error is WB_E_NOMEM. */
int wb_kept_text_make(const struct wb_extract *extract, struct wb_buf *kept);

/* Splits the beginning of what is kept into its parts. False if the bytes make no sense. */
bool wb_kept_text_split(struct wb_slice kept, unsigned *flags_out, struct wb_slice *title_out,
                        struct wb_slice *text_out);

#endif
