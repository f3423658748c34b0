/*
 * html.h - private to extract: the state of the html module while it reads one page, shared by its
 * files.
 *
 *   tokenizer.c -> html.c ----> htmltext.c   text: blocks, and the elements that contain them
 *                     |              +-----> htmlmain.c   which blocks are the main text
 *                     |                      (htmldrop.c: which certainly are not)
 *                     +-------> htmllinks.c  links and their anchors
 *                     +-------> htmlneeds.c  scripts, media, styles (css.c)
 *                     +-------> htmlfacts.c  title, meta, dates, language
 *
 * struct wb_html is made on first use, initialised for every page by html.c, and reused for the next.
 * There is no tree of the page: only the stack of open elements, and the lists of blocks and of the
 * elements that contain them.
 */
#ifndef WB_EXTRACT_HTML_H
#define WB_EXTRACT_HTML_H

#include "extract/htmlnames.h"
#include "extract/module.h"

/* Elements that are nested deeper are only counted. */
#define WB_HTML_DEPTH_MAX 256

/* If a page has more blocks than this, all further text belongs to the last one. */
#define WB_HTML_BLOCKS_MAX (1u << 16)

/* If a page has more elements with blocks than this, further ones count as part of what encloses them. */
#define WB_HTML_NODES_MAX (1u << 16)

/* In what kind of element a block of text is. */
enum wb_html_place {
    WB_HTML_PLACE_BOILER = 1 << 0,  /* navigation, header, footer, ... */
    WB_HTML_PLACE_MAIN = 1 << 1,    /* <main> */
    WB_HTML_PLACE_ARTICLE = 1 << 2, /* <article> */
    WB_HTML_PLACE_BODY = 1 << 3,    /* what the page calls the body of its article */
    WB_HTML_PLACE_HIDDEN = 1 << 4,  /* it is not shown */
    WB_HTML_PLACE_FIGURE = 1 << 5,
};

/* A block of text: everything between two tags that begin or end a block. */
struct wb_html_block {
    uint32_t from, to;   /* its range in the text, including the gap before it */
    uint32_t link_bytes; /* how much of it is inside links */
    uint32_t node;       /* the element that contains it */
    uint8_t tag;         /* the last tag before it that began or ended a block: p, li, h2, pre, ... */
    uint8_t names;       /* enum wb_names_mean: what the class and id of that element say */
    uint8_t kind;        /* enum wb_html_kind */
    uint8_t kept : 1;    /* it is part of the main text */
    uint8_t heading : 1; /* it is inside <h1> to <h6>, though `tag` may be that of an element in between */
};

/* An element that contains blocks. They are in document order, so inner elements follow the outer one. */
struct wb_html_node {
    uint32_t parent;                /* the first element is its own parent */
    uint32_t block_from, block_to;
    const char *class_, *id;        /* the attributes as written */
    uint32_t class_len, id_len;
    uint8_t tag;                    /* enum wb_tag */
    uint8_t place;                  /* enum wb_html_place of what is inside */
    uint8_t own;                    /* the part of it that this element adds */
};

/* An open element on the stack. */
struct wb_html_open {
    uint8_t tag;   /* enum wb_tag */
    uint8_t place; /* enum wb_html_place of what is inside */
    uint32_t node;
};

struct wb_html {
    struct wb_extractor *x;
    struct wb_tokenizer t;
    struct wb_tag_index tags;

    bool silent;             /* the text that follows is not visible... */
    bool in_title;           /* ...because it is the title... */
    bool in_jsonld;          /* ...or because it is JSON-LD... */
    bool in_style;           /* ...or because it is a style sheet... */
    bool in_module;          /* ...or because it is a script that imports others */
    bool in_ruby;
    bool in_reading;         /* in ruby: the text only says how what precedes it is pronounced */
    unsigned templates;      /* how many <template>s are open; nothing inside them counts */
    struct wb_foreign foreign; /* where svg and math are open */

    /* text */
    struct wb_html_open open[WB_HTML_DEPTH_MAX];
    unsigned depth;
    uint64_t depth_beyond;   /* how many open elements did not fit on the stack */
    uint8_t place;
    uint8_t block_tag, block_names; /* tag and names of the next block */
    bool in_heading;                /* <h1> to <h6> is open... */
    unsigned heading_depth;         /* ...in this many open elements... */
    uint32_t heading_from;          /* ...and its text starts here */
    uint32_t node;                  /* the innermost open element with blocks */
    uint32_t block_from, block_link_bytes;
    struct wb_html_block *blocks;
    size_t block_count, block_cap;
    struct wb_html_node *nodes;
    size_t node_count, node_cap;
    struct wb_html_sum *sums;       /* one per node, see htmlmain.h */
    size_t sum_cap;
    struct wb_names_index names;

    /* the link that is open */
    bool anchor_open;
    bool anchor_blank;       /* a single blank follows the tag that opened it */
    size_t anchor_link;      /* its number; SIZE_MAX if it was not kept */
    size_t anchor_from;      /* where its text starts */
    size_t anchor_counted;   /* up to here its text has been counted as link text */
    struct wb_slice anchor_alt;

    /* facts */
    bool has_title, has_base, has_refresh, has_description, has_lang;
    struct wb_slice canonical_href;
    uint8_t published_rank, modified_rank, author_rank, type_rank; /* how good the source was; 0: none yet */
    unsigned jsonld_count; /* how many scripts of JSON-LD there were */
};

/* ---- htmltext.c ------------------------------------------------------------------------------ */

/* begin_text and finish_text enclose a page. The others are called for tags that begin or end a block or element. */
int wb_html_begin_text(struct wb_html *h);
int wb_html_begin_block(struct wb_html *h, enum wb_tag tag);
int wb_html_end_block(struct wb_html *h, enum wb_tag tag);
int wb_html_enter(struct wb_html *h, enum wb_tag tag);
int wb_html_leave(struct wb_html *h, enum wb_tag tag);
int wb_html_finish_text(struct wb_html *h);

/* ---- htmlmain.c ------------------------------------------------------------------------------ */

/* Decides which blocks are main text: sets `kept` of each. */
int wb_html_judge(struct wb_html *h);

/* ---- htmllinks.c ----------------------------------------------------------------------------- */

/* Takes the links of a start tag: a, area, link, iframe, frame, img, source, form, base. */
int wb_html_links(struct wb_html *h, enum wb_tag tag);
int wb_html_anchor_end(struct wb_html *h, bool by_tag);
int wb_html_refresh(struct wb_html *h, struct wb_slice content);

/* ---- htmlneeds.c ----------------------------------------------------------------------------- */

/* Takes what a start tag needs in order to be displayed; tag may be WB_TAG_OTHER. */
int wb_html_needs(struct wb_html *h, enum wb_tag tag);

/* The tag of a <link>, which says what it is needed for, if it is. */
enum wb_extract_tag wb_html_link_need(struct wb_html *h, const struct wb_extract_link *link);

/* Takes what the text of a <style> names. */
int wb_html_style(struct wb_html *h);

/* Whether a <script> is a module, whose text says what it imports. */
bool wb_html_is_module(struct wb_html *h);

/* ---- htmlfacts.c ----------------------------------------------------------------------------- */

int wb_html_title(struct wb_html *h);
int wb_html_meta(struct wb_html *h);
int wb_html_time(struct wb_html *h);
int wb_html_lang(struct wb_html *h);

/* wb_html_script() looks at the start tag of a script; if that is JSON-LD, wb_html_jsonld() reads its text. */
void wb_html_script(struct wb_html *h);
int wb_html_jsonld(struct wb_html *h);

/* ---- html.c ---------------------------------------------------------------------------------- */

/* Gets the decoded value of an attribute of the current start tag, if it has one; valid until the next page. */
int wb_html_value(struct wb_html *h, struct wb_slice name, bool *found_out, struct wb_slice *value_out);

void wb_html_free(struct wb_html *h);

#endif
