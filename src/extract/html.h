/*
 * html.h - private to page: the html module's state while it reads one page, shared
 * by its files.
 *
 *   html.c       the loop over tokens: what each element sets off
 *   htmltext.c   where the text is: blocks, and the elements that hold them
 *   htmlmain.c   which blocks are the main text (htmldrop.c: which surely are not)
 *   htmllinks.c  links and their anchors
 *   htmlfacts.c  title, meta, dates, language
 */
#ifndef WB_EXTRACT_HTML_H
#define WB_EXTRACT_HTML_H

#include "extract/htmlnames.h"
#include "extract/htmltag.h"
#include "extract/module.h"

/* Deeper elements are counted, not told apart. */
#define WB_HTML_DEPTH_MAX 256

/* More blocks than this are one. */
#define WB_HTML_BLOCKS_MAX (1u << 16)

/* Elements that may hold blocks, beyond this number, count as part of what encloses them. */
#define WB_HTML_NODES_MAX (1u << 16)

/* Where a block of text lies. */
enum wb_html_place {
    WB_PLACE_BOILER = 1 << 0,  /* in navigation, header, footer, ... */
    WB_PLACE_MAIN = 1 << 1,    /* in <main> */
    WB_PLACE_ARTICLE = 1 << 2, /* in <article> */
    WB_PLACE_BODY = 1 << 3,    /* in what the page calls the body of its article */
    WB_PLACE_HIDDEN = 1 << 4,  /* not shown */
    WB_PLACE_FIGURE = 1 << 5,
};

/* A block of text: what stands between two elements that begin or end one. */
struct wb_html_block {
    uint32_t from, to;   /* of the text, the gap before it included */
    uint32_t link_bytes; /* of it inside links */
    uint32_t node;       /* what it lies in */
    uint8_t tag;         /* the last one that began or ended a block before it: p, li, h2, pre, ... */
    uint8_t names;       /* enum wb_names of that element */
    uint8_t kind;        /* enum wb_html_kind */
    uint8_t kept;        /* it is main text */
};

/* An element that holds blocks. They are in document order: what is inside follows. */
struct wb_html_node {
    uint32_t parent;                /* the first one is its own */
    uint32_t block_from, block_to;
    const char *class_, *id;        /* as written */
    uint32_t class_len, id_len;
    uint8_t tag;                    /* enum wb_tag */
    uint8_t place;                  /* enum wb_html_place, of what is inside */
    uint8_t own;                    /* what it adds to that */
};

struct wb_html_open {
    uint8_t tag;   /* enum wb_tag */
    uint8_t place; /* of what is inside */
    uint32_t node;
};

struct wb_html {
    struct wb_extractor *x;
    struct wb_tokenizer t;
    struct wb_tag_index tags;

    bool xml;                /* the page is XHTML: <x/> is empty whatever x is, and CDATA is allowed everywhere */
    bool silent;             /* the text that follows is not visible */
    bool in_title;           /* ... because it is the title */
    bool in_jsonld;          /* ... because it is JSON-LD */
    bool in_ruby;
    bool in_reading;         /* of ruby: how the text before it is pronounced, which is not text */
    unsigned templates;      /* open <template>s: nothing inside counts */
    uint64_t foreign;        /* a bit for each change of language, the innermost lowest: 1 svg or math, 0 HTML inside */
    unsigned foreign_depth;

    /* text */
    struct wb_html_open open[WB_HTML_DEPTH_MAX];
    unsigned depth;
    uint64_t depth_beyond;   /* open elements that did not fit */
    uint8_t place;
    uint8_t block_tag, block_names; /* of the next block */
    uint32_t node;                  /* the innermost that is open */
    uint32_t block_from, block_link_bytes;
    struct wb_html_block *blocks;
    size_t block_count, block_cap;
    struct wb_html_node *nodes;
    size_t node_count, node_cap;
    struct wb_html_sum *sums;       /* of each node, see htmlmain.h */
    size_t sum_cap;
    struct wb_names_index names;

    /* the link that is open */
    bool anchor_open;
    bool anchor_blank; /* a lone blank follows the tag that opened it */
    size_t anchor_link;      /* SIZE_MAX: it was not kept */
    size_t anchor_from;      /* of the text */
    size_t anchor_counted;   /* up to here its text is counted as that of links */
    struct wb_slice anchor_alt;

    /* facts */
    bool has_title, has_base, has_refresh, has_description, has_lang;
    struct wb_slice canonical_href;
    uint8_t published_rank, modified_rank, author_rank, type_rank; /* how good a source said it; 0: none */
    unsigned jsonld_count; /* scripts of it */
};

/* ---- htmltext.c ------------------------------------------------------------------------------ */

int wb_html_begin_text(struct wb_html *h);
int wb_html_begin_block(struct wb_html *h, enum wb_tag tag);
int wb_html_end_block(struct wb_html *h, enum wb_tag tag);
int wb_html_break(struct wb_html *h);
int wb_html_enter(struct wb_html *h, enum wb_tag tag);
int wb_html_leave(struct wb_html *h, enum wb_tag tag);
int wb_html_finish_text(struct wb_html *h);

/* ---- htmlmain.c ------------------------------------------------------------------------------ */

/* Sets kept of every block. */
int wb_html_judge(struct wb_html *h);

/* ---- htmllinks.c ----------------------------------------------------------------------------- */

/* A start tag that may have links: a, area, link, iframe, frame, img, source, form, base. */
int wb_html_links(struct wb_html *h, enum wb_tag tag);
int wb_html_anchor_end(struct wb_html *h, bool by_tag);
int wb_html_refresh(struct wb_html *h, struct wb_slice content);

/* ---- htmlfacts.c ----------------------------------------------------------------------------- */

int wb_html_title(struct wb_html *h);
int wb_html_meta(struct wb_html *h);
int wb_html_time(struct wb_html *h);
int wb_html_lang(struct wb_html *h);

/* The start tag of a script, and its text where it is JSON-LD. */
void wb_html_script(struct wb_html *h);
int wb_html_jsonld(struct wb_html *h);

/* ---- html.c ---------------------------------------------------------------------------------- */

/* The value of the start tag's attribute, decoded; false where it has none of that name. It stays until the next page. */
int wb_html_value(struct wb_html *h, struct wb_slice name, bool *found_out, struct wb_slice *value_out);

void wb_html_free(struct wb_html *h);

#endif
