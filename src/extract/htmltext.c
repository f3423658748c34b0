/*
 * htmltext.c - records where the text of a page is: its blocks, and the elements that contain them.
 *
 * A block is the text between two tags that begin or end one (paragraphs, headings, list items,
 * rows). For each block we know its length, how much of it is inside links, and what encloses it.
 * There is no tree of the page: only elements that contain blocks (div, section, nav, main, td, ...)
 * are recorded, each with its parent, class and id. The stack of open elements says what encloses a
 * block; an end tag closes the nearest element of its kind, and everything left open inside it. It
 * never decides what is main text: htmlmain.c does that at the end.
 */
#include "extract/html.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"
#include "extract/htmlnames.h"

/* ---- blocks ------------------------------------------------------------------------------ */

static int push_block(struct wb_html *h, struct wb_html_block block)
{
    if (h->block_count == WB_HTML_BLOCKS_MAX) {
        struct wb_html_block *last = &h->blocks[h->block_count - 1];
        last->to = block.to;
        last->link_bytes += block.link_bytes;
        return 0;
    }
    if (wb_grow(&h->blocks, &h->block_cap, h->block_count + 1) < 0)
        return WB_E_NOMEM;
    h->blocks[h->block_count++] = block;
    return 0;
}

/* A heading with more text than this was not closed. */
#define HEADING_BYTES_MAX 1000

static bool is_heading(unsigned tag)
{
    return tag >= WB_TAG_H1_ && tag <= WB_TAG_H6_;
}

/* A boundary between blocks: the text since the last boundary becomes a block. */
static int break_text(struct wb_html *h)
{
    struct wb_collapse *text = &h->x->text;

    wb_collapse_gap(text, '\n');
    if (text->len == h->block_from)
        return 0;
    if (h->anchor_open) {
        h->block_link_bytes += (uint32_t)(text->len - h->anchor_counted);
        h->anchor_counted = text->len;
    }
    if (h->in_heading && text->len - h->heading_from > HEADING_BYTES_MAX)
        h->in_heading = false;
    struct wb_html_block block = {.from = h->block_from,
                                  .to = (uint32_t)text->len,
                                  .link_bytes = h->block_link_bytes,
                                  .node = h->node,
                                  .tag = h->block_tag,
                                  .names = h->block_names,
                                  .heading = h->in_heading || is_heading(h->block_tag)};
    h->block_from = block.to;
    h->block_link_bytes = 0;
    return push_block(h, block);
}

/* ---- open elements ----------------------------------------------------------------------- */

/* Adds what the role of an element says about its place; false if it says nothing. */
static bool place_by_role(struct wb_slice role, uint8_t *place)
{
    static const struct {
        const char *role;
        uint8_t place;
    } roles[] = {
        {"main", WB_HTML_PLACE_MAIN}, {"article", WB_HTML_PLACE_ARTICLE}, {"navigation", WB_HTML_PLACE_BOILER},
        {"banner", WB_HTML_PLACE_BOILER}, {"contentinfo", WB_HTML_PLACE_BOILER},
        {"complementary", WB_HTML_PLACE_BOILER}, {"search", WB_HTML_PLACE_BOILER}, {"menu", WB_HTML_PLACE_BOILER},
        {"menubar", WB_HTML_PLACE_BOILER}, {"toolbar", WB_HTML_PLACE_BOILER}, {"tablist", WB_HTML_PLACE_BOILER},
        {"alert", WB_HTML_PLACE_BOILER}, {"dialog", WB_HTML_PLACE_BOILER}, {"alertdialog", WB_HTML_PLACE_BOILER},
    };

    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (wb_slice_equal_nocase(role, wb_slice_str(roles[i].role))) {
            *place |= roles[i].place;
            return true;
        }
    return false;
}

/* True if a, optional blanks, and b follow each other in s, as "display:" and "none" do. */
static bool has_words(struct wb_slice s, const char *a, const char *b)
{
    const char *at = memmem(s.ptr, s.len, a, strlen(a));

    if (!at)
        return false;
    at += strlen(a);
    while (at < s.ptr + s.len && *at == ' ')
        at++;
    return wb_slice_starts_nocase(wb_slice(at, s.len - (size_t)(at - s.ptr)), wb_slice_str(b));
}

/* Reads what one attribute says about an element. */
static void read_attribute(const struct wb_token_attr *a, struct wb_html_node *node, bool *by_role)
{
    struct wb_slice name = a->name, value = a->value;
    char lower[11];

    if (a->name_coded && name.len <= sizeof lower) {
        for (size_t i = 0; i < name.len; i++)
            lower[i] = wb_ascii_lower(name.ptr[i]);
        name.ptr = lower;
    }
    switch (name.len) {
    case 2:
        if (memcmp(name.ptr, "id", 2) == 0) {
            node->id = value.ptr;
            node->id_len = (uint32_t)value.len;
        }
        break;
    case 4:
        if (memcmp(name.ptr, "role", 4) == 0)
            *by_role = place_by_role(wb_slice_trim(value), &node->own);
        break;
    case 5:
        if (memcmp(name.ptr, "class", 5) == 0) {
            node->class_ = value.ptr;
            node->class_len = (uint32_t)value.len;
        } else if (memcmp(name.ptr, "style", 5) == 0 && has_words(value, "display:", "none")) {
            node->own |= WB_HTML_PLACE_HIDDEN;
        }
        break;
    case 6:
        if (memcmp(name.ptr, "hidden", 6) == 0)
            node->own |= WB_HTML_PLACE_HIDDEN;
        break;
    case 8:
        if (memcmp(name.ptr, "itemprop", 8) == 0 &&
            wb_slice_equal_nocase(wb_slice_trim(value), WB_SLICE_LIT("articleBody")))
            node->own |= WB_HTML_PLACE_BODY;
        break;
    case 11:
        if (memcmp(name.ptr, "aria-hidden", 11) == 0 && wb_slice_equal_nocase(value, WB_SLICE_LIT("true")))
            node->own |= WB_HTML_PLACE_HIDDEN;
        break;
    default:
        break;
    }
}

/* Determines the place of an element from its tag and attributes, and from what encloses it. */
static void place_of(const struct wb_html *h, struct wb_html_node *node)
{
    unsigned flags = wb_tag_facts[node->tag].flags;
    bool by_role = false;

    for (unsigned i = h->t.attr_count; i-- > 0;) /* backwards, so that the first one with a name counts */
        read_attribute(&h->t.attrs[i], node, &by_role);
    if (!by_role && flags & WB_TAG_MAIN)
        node->own |= node->tag == WB_TAG_ARTICLE_ ? WB_HTML_PLACE_ARTICLE : WB_HTML_PLACE_MAIN;
    /* The header of an article has its title and summary, and is content. */
    if (!by_role && flags & WB_TAG_BOILER &&
        !(node->tag == WB_TAG_HEADER_ && h->place & (WB_HTML_PLACE_MAIN | WB_HTML_PLACE_ARTICLE)))
        node->own |= WB_HTML_PLACE_BOILER;
    if (node->tag == WB_TAG_FIGURE_)
        node->own |= WB_HTML_PLACE_FIGURE;
    node->place = node->own & WB_HTML_PLACE_MAIN ? node->own : h->place | node->own;
}

static int push_node(struct wb_html *h, struct wb_html_node node)
{
    if (wb_grow(&h->nodes, &h->node_cap, h->node_count + 1) < 0)
        return WB_E_NOMEM;
    h->nodes[h->node_count++] = node;
    return 0;
}

int wb_html_begin_text(struct wb_html *h)
{
    h->depth = 0;
    h->depth_beyond = 0;
    h->place = h->block_tag = h->block_names = 0;
    h->in_heading = false;
    h->block_from = h->block_link_bytes = h->node = 0;
    h->block_count = h->node_count = 0;
    return push_node(h, (struct wb_html_node){.tag = WB_TAG_BODY_});
}

/* Closes open elements down to this depth, and notes where their blocks end. */
static void pop_open(struct wb_html *h, unsigned depth)
{
    WB_CHECK(depth <= h->depth && h->depth <= WB_HTML_DEPTH_MAX);
    while (h->depth > depth)
        h->nodes[h->open[--h->depth].node].block_to = (uint32_t)h->block_count;
    if (depth < h->heading_depth)
        h->in_heading = false;
    h->place = depth ? h->open[depth - 1].place : 0;
    h->node = depth ? h->open[depth - 1].node : 0;
}

/* The cells of a row are one block. But if a cell contains blocks, the text after them is a block too. */
static int end_cell(struct wb_html *h)
{
    return h->nodes[h->node].tag == WB_TAG_TD_ && h->nodes[h->node].block_from != h->block_count ? break_text(h) : 0;
}

/* A cell without an end tag ends with the next cell, or with its row. */
static int close_cell(struct wb_html *h)
{
    if (h->depth == 0 || h->depth_beyond || h->open[h->depth - 1].tag != WB_TAG_TD_)
        return 0;
    int err = end_cell(h);
    pop_open(h, h->depth - 1);
    return err;
}

int wb_html_enter(struct wb_html *h, enum wb_tag tag)
{
    if (h->depth == WB_HTML_DEPTH_MAX) {
        h->depth_beyond++;
        return 0;
    }
    int err = tag == WB_TAG_TD_ ? close_cell(h) : 0;
    if (err < 0)
        return err;
    struct wb_html_node node = {.parent = h->node, .block_from = (uint32_t)h->block_count, .tag = (uint8_t)tag};
    place_of(h, &node);
    h->place = node.place;
    if (h->node_count < WB_HTML_NODES_MAX) {
        h->node = (uint32_t)h->node_count;
        err = push_node(h, node);
        if (err < 0)
            return err;
    }
    h->open[h->depth++] = (struct wb_html_open){(uint8_t)tag, h->place, h->node};
    return 0;
}

/* How far down the stack an end tag looks for its start tag. */
#define LOOK_MAX 64

int wb_html_leave(struct wb_html *h, enum wb_tag tag)
{
    if (h->depth_beyond > 0) {
        h->depth_beyond--;
        return 0;
    }
    int err = tag == WB_TAG_TD_ ? end_cell(h) : 0;
    if (err < 0)
        return err;
    unsigned least = h->depth > LOOK_MAX ? h->depth - LOOK_MAX : 0;
    for (unsigned d = h->depth; d > least; d--) {
        if (h->open[d - 1].tag == tag) {
            pop_open(h, d - 1);
            return 0;
        }
        /* An end tag inside a table cell closes nothing outside the cell. */
        if (h->open[d - 1].tag == WB_TAG_TD_ && tag != WB_TAG_TABLE_)
            return 0;
    }
    return 0;
}

/* ---- the beginning and end of blocks ------------------------------------------------------------ */

/*
 * A heading ends with its end tag (or that of another level), with the element around it, or where a block begins that
 * cannot be part of a heading: its end tag was forgotten.
 */
static void begin_heading(struct wb_html *h, enum wb_tag tag)
{
    if (is_heading(tag)) {
        h->in_heading = true;
        h->heading_depth = h->depth;
        h->heading_from = (uint32_t)h->x->text.len;
    } else if (tag != WB_TAG_DIV_) {
        h->in_heading = false;
    }
}

/* Handles a start tag that begins a block. */
int wb_html_begin_block(struct wb_html *h, enum wb_tag tag)
{
    int err = tag == WB_TAG_TR_ ? close_cell(h) : 0;

    if (err == 0)
        err = break_text(h);
    if (tag == WB_TAG_BR_)
        return err;
    h->in_ruby = h->in_reading = false; /* a ruby without an end tag ends with its block */
    begin_heading(h, tag);
    h->block_tag = (uint8_t)tag;
    h->block_names = 0;
    if (h->t.attr_count && !(wb_tag_facts[tag].flags & WB_TAG_TRACKED)) {
        const struct wb_token_attr *a = wb_tokenizer_attr(&h->t, WB_SLICE_LIT("class"));
        if (a)
            h->block_names = wb_names_of(&h->names, a->value).means;
    }
    return err;
}

int wb_html_end_block(struct wb_html *h, enum wb_tag tag)
{
    int err = tag == WB_TAG_TR_ ? close_cell(h) : 0;

    if (err == 0)
        err = break_text(h);
    h->in_ruby = h->in_reading = false;
    h->in_heading = h->in_heading && !is_heading(tag);
    h->block_tag = h->block_names = 0;
    return err;
}

/* ---- main text --------------------------------------------------------------------------- */

/* Copies the kept blocks, which are the main text. */
static int copy_kept(struct wb_html *h)
{
    struct wb_extractor *x = h->x;
    struct wb_buf *main_text = &x->main_text;

    wb_buf_clear(main_text);
    int err = wb_buf_reserve(main_text, x->text.len);
    for (size_t i = 0; err == 0 && i < h->block_count;) {
        size_t from = i;
        if (!h->blocks[i++].kept)
            continue;
        while (i < h->block_count && h->blocks[i].kept)
            i++;
        size_t at = h->blocks[from].from;
        if (main_text->len == 0 && at > 0)
            at++; /* leave out the gap before it */
        err = wb_buf_append(main_text, x->text.ptr + at, h->blocks[i - 1].to - at);
    }
    x->out->main_text = wb_buf_slice(main_text);
    return err;
}

/* Lists what the parts of the text are. Neighbouring blocks of the same kind are one span. */
static int make_spans(struct wb_html *h)
{
    struct wb_extractor *x = h->x;

    x->span_count = 0;
    for (size_t i = 0; i < h->block_count; i++) {
        const struct wb_html_block *b = &h->blocks[i];
        uint32_t flags = (b->heading ? WB_EXTRACT_SPAN_HEADING : 0u) | (b->kept ? WB_EXTRACT_SPAN_MAIN : 0u);
        if (x->span_count && x->spans[x->span_count - 1].flags == flags) {
            x->spans[x->span_count - 1].end = b->to;
            continue;
        }
        if (wb_grow(&x->spans, &x->span_cap, x->span_count + 1) < 0)
            return WB_E_NOMEM;
        x->spans[x->span_count++] = (struct wb_extract_span){b->from, b->to, flags};
    }
    return 0;
}

int wb_html_finish_text(struct wb_html *h)
{
    int err = break_text(h);

    if (err < 0 || !(h->x->input->wants & (WB_EXTRACT_TEXT | WB_EXTRACT_SIMHASH)))
        return err;
    h->x->has_main_text = true;
    pop_open(h, 0);
    h->nodes[0].block_to = (uint32_t)h->block_count;
    err = wb_html_judge(h);
    if (err == 0)
        err = make_spans(h);
    if (err < 0)
        return err;
    for (size_t i = 0; i < h->block_count; i++)
        if (!h->blocks[i].kept)
            return copy_kept(h);
    h->x->out->main_text = wb_slice(h->x->text.ptr ? h->x->text.ptr : "", h->x->text.len);
    return 0;
}
