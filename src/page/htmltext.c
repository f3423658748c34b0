/*
 * htmltext.c - where the text of a page lies, and which of it is the page's own.
 *
 * Text comes in blocks: what stands between two elements that begin or end one
 * (paragraphs, headings, list items, rows). Of each we know its length, how much of it
 * is inside links, and what encloses it. Without a tree, what encloses it is told by a stack of
 * the elements that matter (div, section, nav, main, ...); an end tag closes the nearest
 * of its kind, and with it whatever was left open inside.
 *
 * Main text, once all blocks are known (after Kohlschuetter, Fankhauser and Nejdl,
 * "Boilerplate detection using shallow text features", WSDM 2010):
 *   - where the page has <main> or <article>, only blocks inside them
 *   - never blocks of navigation, headers, footers and the like
 *   - blocks that are mostly links are dropped, long ones with few links are kept
 *   - short ones go with their neighbours
 */
#include "page/html.h"
#include "base/error.h"
#include "base/mem.h"

/* ---- blocks ------------------------------------------------------------------------------ */

static int push_block(struct wb_html *h, struct wb_html_block block)
{
    if (h->block_count == WB_HTML_BLOCKS_MAX) {
        struct wb_html_block *last = &h->blocks[h->block_count - 1];
        last->to = block.to;
        last->link_bytes += block.link_bytes;
        return 0;
    }
    if (h->block_count == h->block_cap) {
        size_t cap = h->block_cap ? 2 * h->block_cap : 256;
        struct wb_html_block *blocks = wb_realloc(h->blocks, cap * sizeof *blocks);
        if (!blocks)
            return WB_E_NOMEM;
        h->blocks = blocks;
        h->block_cap = cap;
    }
    h->blocks[h->block_count++] = block;
    return 0;
}

/* A block boundary: what was written since the last one is a block. */
int wb_html_break(struct wb_html *h)
{
    struct wb_words *text = &h->x->text;

    wb_words_gap(text, '\n');
    if (text->len == h->block_from)
        return 0;
    if (h->anchor_open) {
        h->block_link_bytes += (uint32_t)(text->len - h->anchor_counted);
        h->anchor_counted = text->len;
    }
    struct wb_html_block block = {h->block_from, (uint32_t)text->len, h->block_link_bytes, h->place, 0};
    h->block_from = block.to;
    h->block_link_bytes = 0;
    h->place &= (uint8_t)~WB_PLACE_HEADINGS; /* one that nobody closes ends with its first block */
    return push_block(h, block);
}

/* ---- open elements ----------------------------------------------------------------------- */

/* What an element's role says of the place: true where it says something. */
static bool place_by_role(struct wb_slice role, uint8_t *place)
{
    static const struct {
        const char *role;
        uint8_t place;
    } roles[] = {
        {"main", WB_PLACE_MAIN}, {"article", WB_PLACE_ARTICLE}, {"navigation", WB_PLACE_BOILER}, {"banner", WB_PLACE_BOILER},
        {"contentinfo", WB_PLACE_BOILER}, {"complementary", WB_PLACE_BOILER}, {"search", WB_PLACE_BOILER},
        {"menu", WB_PLACE_BOILER}, {"menubar", WB_PLACE_BOILER}, {"toolbar", WB_PLACE_BOILER}, {"tablist", WB_PLACE_BOILER},
        {"alert", WB_PLACE_BOILER}, {"dialog", WB_PLACE_BOILER}, {"alertdialog", WB_PLACE_BOILER},
    };

    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (wb_slice_equal_nocase(role, wb_slice_str(roles[i].role))) {
            *place = roles[i].place;
            return true;
        }
    return false;
}

static uint8_t place_of(const struct wb_html *h, enum wb_tag tag)
{
    unsigned flags = wb_tag_facts[tag].flags;
    uint8_t own = 0;
    const struct wb_token_attr *role = h->t.attr_count ? wb_tokenizer_attr(&h->t, WB_SLICE_LIT("role")) : NULL;

    if (!role || !place_by_role(wb_slice_trim(role->value), &own)) {
        if (flags & WB_TAG_MAIN)
            own = tag == WB_TAG_ARTICLE_ ? WB_PLACE_ARTICLE : WB_PLACE_MAIN;
        else if (flags & WB_TAG_BOILER)
            own = WB_PLACE_BOILER;
        /* The header of an article is its title and summary. */
        if (tag == WB_TAG_HEADER_ && h->place & (WB_PLACE_MAIN | WB_PLACE_ARTICLE))
            own = 0;
    }
    uint8_t place = h->place & (uint8_t)~WB_PLACE_HEADINGS;
    return own & WB_PLACE_MAIN ? WB_PLACE_MAIN : place | own;
}

int wb_html_enter(struct wb_html *h, enum wb_tag tag)
{
    if (h->depth == WB_HTML_DEPTH_MAX) {
        h->depth_beyond++;
        return 0;
    }
    h->place = place_of(h, tag);
    h->open[h->depth++] = (struct wb_html_open){(uint8_t)tag, h->place};
    return 0;
}

/* How far down an end tag looks for its start. */
#define LOOK_MAX 64

int wb_html_leave(struct wb_html *h, enum wb_tag tag)
{
    if (h->depth_beyond > 0) {
        h->depth_beyond--;
        return 0;
    }
    unsigned least = h->depth > LOOK_MAX ? h->depth - LOOK_MAX : 0;
    for (unsigned d = h->depth; d > least; d--)
        if (h->open[d - 1].tag == tag) {
            h->depth = d - 1;
            h->place = d > 1 ? h->open[d - 2].place : 0;
            return 0;
        }
    return 0;
}

/* ---- main text --------------------------------------------------------------------------- */

#define LONG_BYTES 80

enum verdict { DROP, SHORT, KEEP, KEPT_ALONG /* kept, but no reason to keep others */ };

static enum verdict judge_block(const struct wb_html_block *b, uint8_t within)
{
    uint32_t len = b->to - b->from;

    if (b->place & WB_PLACE_BOILER || (within && !(b->place & within)))
        return DROP;
    if (within) /* the author said that this is the content: only what is nothing but links goes */
        return b->link_bytes * 10 > len * 9 ? DROP : len < LONG_BYTES ? SHORT : KEEP;
    if (b->link_bytes * 2 > len)
        return DROP;
    return len >= LONG_BYTES && b->link_bytes * 3 <= len ? KEEP : SHORT;
}

/* A heading that is a link is a heading. */
static bool is_heading(const struct wb_html_block *b)
{
    return b->place & WB_PLACE_HEADING && !(b->place & WB_PLACE_BOILER);
}

/*
 * Short blocks are kept where the nearest block that is not short is kept, on either side; headings
 * where the one after them is. Inside <main> both are kept in any case, and so is every <h1>.
 */
static void judge_blocks(struct wb_html *h, uint8_t within)
{
    enum verdict near = SHORT;
    bool any = false;

    for (size_t i = 0; i < h->block_count; i++) {
        struct wb_html_block *b = &h->blocks[i];
        b->kept = (uint8_t)judge_block(b, within);
        if (b->kept == DROP && is_heading(b) && (!within || b->place & within))
            b->kept = SHORT;
        if (b->kept == SHORT && (within || b->place & WB_PLACE_H1))
            b->kept = KEPT_ALONG;
        any |= b->kept == KEEP;
    }
    for (size_t i = h->block_count; i-- > 0;) { /* what follows */
        struct wb_html_block *b = &h->blocks[i];
        if (b->kept == SHORT && (near == KEEP || !any))
            b->kept = KEPT_ALONG;
        else if (b->kept == KEEP || b->kept == DROP)
            near = b->kept;
    }
    near = SHORT;
    for (size_t i = 0; i < h->block_count; i++) { /* what precedes */
        struct wb_html_block *b = &h->blocks[i];
        if (b->kept == SHORT && near == KEEP && !is_heading(b))
            b->kept = KEPT_ALONG;
        else if (b->kept == KEEP || b->kept == DROP)
            near = b->kept;
    }
}

/* The place that holds the content: <main>, else <article>, 0 where the page has neither. */
static uint8_t content_place(const struct wb_html *h)
{
    uint8_t seen = 0;

    for (size_t i = 0; i < h->block_count; i++)
        if (!(h->blocks[i].place & WB_PLACE_BOILER))
            seen |= h->blocks[i].place;
    return seen & WB_PLACE_MAIN ? WB_PLACE_MAIN : seen & WB_PLACE_ARTICLE;
}

static int copy_kept(struct wb_html *h)
{
    struct wb_extractor *x = h->x;
    struct wb_buf *main_text = &x->main_text;

    wb_buf_clear(main_text);
    int err = wb_buf_reserve(main_text, x->text.len);
    for (size_t i = 0; err == 0 && i < h->block_count;) {
        size_t from = i;
        if (h->blocks[i++].kept < KEEP)
            continue;
        while (i < h->block_count && h->blocks[i].kept >= KEEP)
            i++;
        size_t at = h->blocks[from].from;
        if (main_text->len == 0 && at > 0)
            at++; /* without the gap before it */
        err = wb_buf_append(main_text, x->text.ptr + at, h->blocks[i - 1].to - at);
    }
    x->out->main_text = wb_buf_slice(main_text);
    return err;
}

int wb_html_finish_text(struct wb_html *h)
{
    int err = wb_html_break(h);

    if (err < 0 || !(h->x->input->wants & (WB_WANT_TEXT | WB_WANT_SIMHASH)))
        return err;
    h->x->has_main_text = true;
    judge_blocks(h, content_place(h));
    for (size_t i = 0; i < h->block_count; i++)
        if (h->blocks[i].kept < KEEP)
            return copy_kept(h);
    h->x->out->main_text = wb_slice(h->x->text.ptr ? h->x->text.ptr : "", h->x->text.len);
    return 0;
}
