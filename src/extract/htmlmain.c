/*
 * htmlmain.c - chooses the blocks that are the main text of a page.
 *
 * It combines two ideas. Length and links distinguish a paragraph from the rest (Kohlschuetter,
 * Fankhauser, Nejdl: "Boilerplate detection using shallow text features", WSDM 2010): a block is
 * prose if it is long or ends like a sentence, and has few links. And the main text is the element
 * in which most of the prose is close together (as in Arc90's Readability).
 *
 *   1. drop     removes what certainly is not content (htmldrop.c)
 *   2. choose   each block of prose votes for the elements that enclose it, with less weight for each
 *               level further out; the winner is widened to what encloses it, as long as that adds
 *               more prose than clutter
 *   3. clean    removes links, captions, the title, empty headings, and short blocks at both ends
 *
 * If nothing is found, all text is main text. What step 1 has left also tells how much of a page is
 * links. All passes are linear in the number of blocks and elements, both of which are bounded. It
 * never changes the text itself.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"
#include "extract/htmlmain.h"

/* ---- choose ------------------------------------------------------------------------------ */

/* Finds the element with this mark that has prose, if there is exactly one; otherwise 0. */
static uint32_t only_marked(const struct wb_html *h, const struct wb_html_sum *sums, uint8_t mark)
{
    uint32_t only = 0;

    for (uint32_t n = 1; n < h->node_count; n++) {
        if (!(h->nodes[n].own & mark) || sums[n].dropped || sums[n].prose == 0)
            continue;
        if (only && n >= sums[only].end)
            return 0;
        only = only ? only : n;
    }
    return only;
}

/*
 * Chooses the part of the page in which to look for the main text: what the page calls the body of
 * its article, its only <article>, or <main>. If there is more prose elsewhere, it is the whole page.
 */
static uint32_t choose_scope(const struct wb_html *h, const struct wb_html_sum *sums)
{
    uint32_t body = only_marked(h, sums, WB_HTML_PLACE_BODY), article = only_marked(h, sums, WB_HTML_PLACE_ARTICLE);

    if (body && sums[body].prose * 2 >= sums[0].prose)
        return body;
    if (article && sums[article].prose * 2 >= sums[0].prose)
        return article;
    for (uint32_t n = 1; n < h->node_count; n++)
        if (h->nodes[n].own & WB_HTML_PLACE_MAIN && !sums[n].dropped && sums[n].bytes > 0) {
            uint32_t outside = sums[0].prose - sums[n].prose;
            return outside < WB_HTML_OUTSIDE_BYTES || outside < 4 * sums[n].prose ? n : 0;
        }
    return 0;
}

#define VOTE_LEVELS 5

/* The weight of a block's vote: a paragraph has more than a sentence, and that more than an item of a list. */
static float weight_of(const struct wb_html_block *b)
{
    uint32_t len = wb_html_block_len(b), most = 500;

    if (b->kind & WB_HTML_KIND_PROSE)
        return len < 100 ? (float)len / 2 : 50 + (float)(len < most ? len : most);
    return b->kind & WB_HTML_KIND_LISTED && b->link_bytes * 3 <= len ? (float)(len < most ? len : most) / 2 : 0;
}

/* Lets every block vote for the elements that enclose it, VOTE_LEVELS of them, with decreasing weight. */
static void vote(struct wb_html *h, struct wb_html_sum *sums)
{
    for (size_t i = 0; i < h->block_count; i++) {
        const struct wb_html_block *b = &h->blocks[i];
        float votes = sums[b->node].dropped ? 0 : weight_of(b);
        uint32_t n = b->node;
        for (int level = 0; votes > 0 && level < VOTE_LEVELS; level++) {
            sums[n].votes += level == 0 ? votes : level == 1 ? votes / 2 : votes / (float)(3 * level);
            if (n == 0)
                break;
            n = h->nodes[n].parent;
        }
    }
}

/* Chooses the element with the most votes; the more of its text is links, the less its votes count. */
static uint32_t choose_node(const struct wb_html *h, const struct wb_html_sum *sums, uint32_t scope)
{
    uint32_t best = scope;
    float most = 0;

    for (uint32_t n = scope; n < sums[scope].end; n++) {
        float votes = sums[n].votes * (1 - (float)sums[n].links / (float)(sums[n].bytes + 1));
        if (h->nodes[n].own & WB_HTML_PLACE_BODY)
            votes *= 2;
        if (votes > most) {
            most = votes;
            best = n;
        }
    }
    return best;
}

/* True if the element has another child with prose that looks like child n: several posts, answers or sections. */
static bool has_twin(const struct wb_html *h, const struct wb_html_sum *sums, uint32_t up, uint32_t n)
{
    const struct wb_html_node *a = &h->nodes[n];

    for (uint32_t m = up + 1; m < sums[up].end; m = sums[m].end) {
        const struct wb_html_node *b = &h->nodes[m];
        if (m != n && a->tag == b->tag && sums[m].prose > 0 && !sums[m].dropped && a->class_len == b->class_len &&
            (a->class_len == 0 || memcmp(a->class_, b->class_, a->class_len) == 0))
            return true;
    }
    return false;
}

/* Widens the choice to enclosing elements as long as that adds text, because a text may be spread over several. */
static uint32_t widen(const struct wb_html *h, const struct wb_html_sum *sums, uint32_t scope, uint32_t top)
{
    bool twins = false;

    for (uint32_t n = top; n > scope;) {
        uint32_t up = h->nodes[n].parent;
        twins = twins || has_twin(h, sums, up, n);
        n = up;
        uint32_t more = sums[n].prose - sums[top].prose, junk = sums[n].junk - sums[top].junk;
        if (more * 6 < sums[top].prose || more < (twins ? junk / 2 : 2 * junk))
            continue;
        top = n;
        twins = false;
    }
    return top;
}

/* ---- clean ------------------------------------------------------------------------------- */

/* True if a heading repeats the title, which is extracted separately. */
static bool is_title(const struct wb_html *h, const struct wb_html_block *b)
{
    struct wb_slice text = wb_html_block_text(h, b), title = h->x->out->title;

    for (size_t i = 0; text.len && i + text.len <= title.len; i++)
        if (wb_slice_equal_nocase(text, wb_slice(title.ptr + i, text.len)))
            return true;
    return false;
}

/* True if a block belongs to the main text, provided that its element does. */
static bool is_wanted(const struct wb_html *h, const struct wb_html_block *b)
{
    uint32_t len = wb_html_block_len(b);

    if (b->tag == WB_TAG_PRE_)
        return true;
    if (b->names || b->tag == WB_TAG_FIGCAPTION_)
        return false;
    if (h->nodes[b->node].place & WB_HTML_PLACE_FIGURE && !(b->kind & WB_HTML_KIND_LISTED))
        return false;
    if (b->kind & WB_HTML_KIND_HEADING)
        return true;
    return b->kind & WB_HTML_KIND_LISTED ? b->link_bytes * 10 <= len * 9 : b->link_bytes * 3 <= len * 2;
}

/* The title is compared only with the first few <h1>, because a page may have any number of them. */
#define TITLES_MAX 8

/* Marks the wanted blocks, without the title. */
static void want_blocks(struct wb_html *h)
{
    unsigned titles = 0;

    for (size_t i = 0; i < h->block_count; i++) {
        struct wb_html_block *b = &h->blocks[i];
        bool title = b->tag == WB_TAG_H1_ && titles++ < TITLES_MAX && is_title(h, b);
        if (!title && is_wanted(h, b))
            b->kind |= WB_HTML_KIND_WANTED;
    }
}

/* Drops headings under which nothing was kept. */
static void drop_headings(struct wb_html *h)
{
    uint8_t above = WB_TAG_H1_; /* a heading of this level or a lower one has nothing below it */

    for (size_t i = h->block_count; i-- > 0;) {
        struct wb_html_block *b = &h->blocks[i];
        if (!b->kept)
            continue;
        if (!(b->kind & WB_HTML_KIND_HEADING))
            above = UINT8_MAX;
        else if (above <= b->tag)
            b->kept = 0;
        else
            above = b->tag;
    }
}

/* Drops short blocks before the first and after the last real text: author, date, buttons. */
static void trim_ends(struct wb_html *h)
{
    size_t from = 0, to = h->block_count;

    while (from < to && !(h->blocks[from].kept && (h->blocks[from].tag == WB_TAG_P_ ||
                                                   h->blocks[from].kind & (WB_HTML_KIND_HEADING | WB_HTML_KIND_TEXT))))
        h->blocks[from++].kept = 0;
    while (from < to && !(h->blocks[to - 1].kept &&
                          (h->blocks[to - 1].tag == WB_TAG_P_ || h->blocks[to - 1].kind & WB_HTML_KIND_TEXT)))
        h->blocks[--to].kept = 0;
}

static bool is_paragraph(const struct wb_html_block *b)
{
    return b->tag == WB_TAG_P_ && b->kind & WB_HTML_KIND_PROSE;
}

/* Drops a short block outside any paragraph between two paragraphs: it is a caption, a button or the like. */
static void drop_strays(struct wb_html *h)
{
    struct wb_html_block *before = NULL, *stray = NULL;

    for (size_t i = 0; i < h->block_count; i++) {
        struct wb_html_block *b = &h->blocks[i];
        if (!b->kept)
            continue;
        bool bare = b->tag != WB_TAG_P_ && b->tag != WB_TAG_BLOCKQUOTE_ &&
                    !(b->kind & (WB_HTML_KIND_HEADING | WB_HTML_KIND_TEXT));
        if (stray && is_paragraph(b))
            stray->kept = 0;
        stray = bare && before && is_paragraph(before) ? b : NULL;
        before = b;
    }
}

/*
 * Keeps the wanted blocks inside an element or, unless `choosy`, all blocks in it that are not
 * dropped. Returns how many bytes of them are not links.
 */
static uint64_t keep_blocks(struct wb_html *h, const struct wb_html_sum *sums, uint32_t top, bool choosy)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < h->block_count; i++) {
        struct wb_html_block *b = &h->blocks[i];
        b->kept = b->node >= top && b->node < sums[top].end && !sums[b->node].dropped &&
                  (!choosy || b->kind & WB_HTML_KIND_WANTED);
        bytes += b->kept ? wb_html_block_len(b) - b->link_bytes : 0;
    }
    return bytes;
}

/* Also keeps tables and lists next to the chosen element, and paragraphs directly inside its parent. */
static void keep_beside(struct wb_html *h, const struct wb_html_sum *sums, uint32_t top)
{
    uint32_t up = h->nodes[top].parent;

    for (size_t i = h->nodes[up].block_from; i < h->nodes[up].block_to; i++)
        if (h->blocks[i].node == up && h->blocks[i].kind & WB_HTML_KIND_PROSE &&
            h->blocks[i].kind & WB_HTML_KIND_WANTED)
            h->blocks[i].kept = 1;
    for (uint32_t n = up + 1; n < sums[up].end; n = sums[n].end) {
        const struct wb_html_node *node = &h->nodes[n];
        bool list = node->tag == WB_TAG_TABLE_ || node->tag == WB_TAG_UL_ || node->tag == WB_TAG_OL_;
        if (!list || n == top || sums[n].dropped || sums[n].links * 4 >= sums[n].bytes)
            continue;
        for (size_t i = node->block_from; i < node->block_to; i++)
            h->blocks[i].kept = h->blocks[i].kind & WB_HTML_KIND_WANTED && !sums[h->blocks[i].node].dropped;
    }
}

static bool any_kept(const struct wb_html *h)
{
    for (size_t i = 0; i < h->block_count; i++)
        if (h->blocks[i].kept)
            return true;
    return false;
}

/*
 * Not everything worth reading is prose: references, tables, listings and poems have little of it. If
 * most of what would be kept of <main> (or, without one, two thirds of the page) is outside the chosen
 * element, the choice was wrong, and everything in scope is kept.
 */
static void keep_chosen(struct wb_html *h, const struct wb_html_sum *sums, uint32_t scope, uint32_t top)
{
    want_blocks(h);
    uint64_t all = keep_blocks(h, sums, scope, true), chosen = scope == top ? all : keep_blocks(h, sums, top, true);
    if (sums[0].prose == 0 && all * 4 < sums[scope].links) {
        keep_blocks(h, sums, scope, false); /* an index, which has nothing but links */
        return;
    }
    bool prose = chosen * (scope ? 2 : 3) >= all;
    if (!prose)
        keep_blocks(h, sums, scope, true);
    else if (top > scope && !sums[h->nodes[top].parent].dropped)
        keep_beside(h, sums, top);
    drop_headings(h);
    if (prose) {
        trim_ends(h);
        drop_strays(h);
    }
    if (any_kept(h))
        return;
    /* A page of few words, of links only, or with everything in its header: keep whatever there is. */
    keep_blocks(h, sums, scope, true);
    if (!any_kept(h))
        keep_blocks(h, sums, scope, false);
    if (!any_kept(h))
        for (size_t i = 0; i < h->block_count; i++)
            h->blocks[i].kept = 1;
}

/*
 * How much of the text is inside links, in percent, rounded down: little of what is to be read, and most of a page that
 * only leads to others. What certainly is not content does not count: such a page has it as well.
 */
static uint8_t linked_share(const struct wb_html *h, const struct wb_html_sum *sums)
{
    uint64_t bytes = 0, linked = 0;

    for (size_t i = 0; i < h->block_count; i++) {
        const struct wb_html_block *b = &h->blocks[i];
        if (sums[b->node].dropped)
            continue;
        bytes += wb_html_block_len(b);
        linked += b->link_bytes;
    }
    WB_CHECK(linked <= bytes);
    return bytes ? (uint8_t)(linked * 100 / bytes) : 0;
}

int wb_html_judge(struct wb_html *h)
{
    WB_CHECK(h->depth == 0 && h->node_count > 0 && h->nodes[0].block_to == h->block_count);
    if (wb_grow(&h->sums, &h->sum_cap, h->node_count) < 0)
        return WB_E_NOMEM;
    struct wb_html_sum *sums = h->sums;
    wb_html_sum_up(h);
    wb_html_drop(h);
    vote(h, sums);
    uint32_t scope = choose_scope(h, sums), top = widen(h, sums, scope, choose_node(h, sums, scope));
    WB_CHECK(scope <= top && top < sums[scope].end);
    keep_chosen(h, sums, scope, top);
    h->x->out->linked = linked_share(h, sums);
    return 0;
}
