/*
 * htmlmain.h - private to page: what is known of blocks and elements while the main text
 * is chosen, shared by its two steps.
 *
 *   htmldrop.c   what blocks are and elements hold; which elements are surely not content
 *   htmlmain.c   which of the rest is
 */
#ifndef WB_EXTRACT_HTMLMAIN_H
#define WB_EXTRACT_HTMLMAIN_H

#include "extract/html.h"

/* What a block is. */
enum wb_html_kind {
    WB_KIND_PROSE = 1 << 0,   /* a paragraph that somebody wrote, or code */
    WB_KIND_HEADING = 1 << 1,
    WB_KIND_LISTED = 1 << 2,  /* in a list or table, or code: may be short */
    WB_KIND_TEXT = 1 << 3,    /* long enough to begin or end with */
    WB_KIND_WANTED = 1 << 4,  /* main text, if what it lies in is */
};

/* What is known of an element, while a page is judged. */
struct wb_html_sum {
    uint32_t end;          /* the first element that is not inside */
    uint32_t prose;        /* bytes */
    uint32_t bytes, links; /* of all text, and of links */
    uint32_t junk;         /* bytes that are neither prose nor in a list, headings left out */
    float votes;
    uint8_t names;         /* enum wb_names_mean */
    uint8_t around;        /* the word that said WB_NAMES_AROUND */
    bool has_h1;
    bool holds;            /* something that is marked as content is inside */
    bool dropped;
};

/* Less prose than this beside it does not prove that something is not the content. */
#define WB_HTML_OUTSIDE_BYTES 200

static inline uint32_t wb_html_block_len(const struct wb_html_block *b)
{
    return b->to - b->from;
}

static inline struct wb_slice wb_html_block_text(const struct wb_html *h, const struct wb_html_block *b)
{
    return wb_slice_trim(wb_slice(h->x->text.ptr + b->from, wb_html_block_len(b)));
}

/* Sets the kind of every block, and h->sums with nothing dropped. */
void wb_html_sum_up(struct wb_html *h);

/* Drops elements; h->sums are then without them. */
void wb_html_drop(struct wb_html *h);

#endif
