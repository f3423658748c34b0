/*
 * htmlmain.h - private to extract: what is known about blocks and elements while the main text is
 * chosen, shared by the two steps.
 *
 *   htmldrop.c   classifies blocks, adds up what elements contain, and drops elements that certainly
 *                are not content
 *   htmlmain.c   chooses the main text from the rest
 */
#ifndef WB_EXTRACT_HTMLMAIN_H
#define WB_EXTRACT_HTMLMAIN_H

#include "extract/html.h"

/* What a block is. */
enum wb_html_kind {
    WB_HTML_KIND_PROSE = 1 << 0,   /* a paragraph written by an author, or code */
    WB_HTML_KIND_HEADING = 1 << 1,
    WB_HTML_KIND_LISTED = 1 << 2,  /* in a list or table, or code, and therefore possibly short */
    WB_HTML_KIND_TEXT = 1 << 3,    /* long enough for the main text to begin or end with it */
    WB_HTML_KIND_WANTED = 1 << 4,  /* main text, if the element that contains it is */
};

/* What is known about an element while the main text is chosen. */
struct wb_html_sum {
    uint32_t end;          /* the first element behind it that is not inside it */
    uint32_t prose;        /* bytes of prose */
    uint32_t bytes, links; /* bytes of all text, and of links */
    uint32_t junk;         /* bytes that are neither prose nor in a list, without headings */
    float votes;
    uint8_t names;         /* enum wb_names_mean */
    uint8_t around;        /* the word that said WB_NAMES_AROUND */
    bool has_h1;
    bool holds;            /* it contains something that is marked as content */
    bool dropped;
};

/* If there is less prose than this outside an element, that does not prove that the content is outside. */
#define WB_HTML_OUTSIDE_BYTES 200

static inline uint32_t wb_html_block_len(const struct wb_html_block *b)
{
    return b->to - b->from;
}

static inline struct wb_slice wb_html_block_text(const struct wb_html *h, const struct wb_html_block *b)
{
    return wb_slice_trim(wb_slice(h->x->text.ptr + b->from, wb_html_block_len(b)));
}

/* Sets the kind of every block, and fills h->sums with nothing dropped. */
void wb_html_sum_up(struct wb_html *h);

/* Drops elements that are not content, and removes them from h->sums. */
void wb_html_drop(struct wb_html *h);

#endif
