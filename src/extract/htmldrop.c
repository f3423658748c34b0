/*
 * htmldrop.c - classifies the blocks of a page, adds up what its elements contain, and drops elements
 * that certainly are not content: by element, role and attribute, by name (htmlnames.c), or by a
 * heading such as "Read also".
 *
 * A name may be misleading. An element that contains most of the page's prose is never dropped
 * because of its name; a word that names most of the prose is ignored; and if dropping the comments
 * of readers leaves hardly anything, they are the content and are kept.
 */
#include "base/check.h"
#include "extract/htmlmain.h"

#define LONG_BYTES 100
#define SENTENCE_BYTES 40

/* ---- blocks ------------------------------------------------------------------------------ */

/* The length of a quote or bracket at the end, which may follow the end of a sentence; 0 if there is none. */
static size_t closer_len(const char *from, const char *end)
{
    if (end > from && (end[-1] == '"' || end[-1] == '\'' || end[-1] == ')' || end[-1] == ']'))
        return 1;
    if (end - from >= 2 && (uint8_t)end[-2] == 0xc2 && (uint8_t)end[-1] == 0xbb) /* » */
        return 2;
    if (end - from < 3)
        return 0;
    bool quote =
        (uint8_t)end[-3] == 0xe2 && (uint8_t)end[-2] == 0x80 && (uint8_t)end[-1] >= 0x98 && (uint8_t)end[-1] <= 0x9f;
    bool corner =
        (uint8_t)end[-3] == 0xe3 && (uint8_t)end[-2] == 0x80 && ((uint8_t)end[-1] == 0x8d || (uint8_t)end[-1] == 0x8f);
    return quote || corner ? 3 : 0;
}

/* True if the text ends like a sentence, in any of many scripts, ignoring quotes and brackets after it. */
static bool ends_sentence(const char *from, const char *end)
{
    static const char *const wide[] = {"。", "！", "？", "…", "।", "۔", "؟", "։", "።"};

    for (size_t len = 1, i = 0; len > 0 && i < 3; i++) {
        len = closer_len(from, end);
        end -= len;
    }
    if (end > from && (uint8_t)end[-1] < 0x80)
        return end[-1] == '.' || end[-1] == '!' || end[-1] == '?' || end[-1] == ':' || end[-1] == ';';
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        size_t len = strlen(wide[i]);
        if ((size_t)(end - from) >= len && memcmp(end - len, wide[i], len) == 0)
            return true;
    }
    return false;
}

/* True if a block is in a list or a table, or is code. */
static bool in_list(const struct wb_html *h, const struct wb_html_block *b)
{
    uint8_t in = h->nodes[b->node].tag;

    switch (b->tag) {
    case WB_TAG_LI_:
    case WB_TAG_DD_:
    case WB_TAG_DT_:
    case WB_TAG_PRE_:
    case WB_TAG_TR_:
    case WB_TAG_CAPTION_:
        return true;
    default:
        return in == WB_TAG_TD_ || in == WB_TAG_TABLE_ || in == WB_TAG_UL_ || in == WB_TAG_OL_;
    }
}

/* True for an address or another long word that is not meant to be read. */
static bool is_one_word(struct wb_slice text)
{
    return (uint8_t)*text.ptr < 0x80 && !memchr(text.ptr, ' ', text.len);
}

/* Classifies a block (enum wb_html_kind) by its element, its length, its end and its links. */
static uint8_t kind_of(const struct wb_html *h, const struct wb_html_block *b)
{
    uint32_t len = wb_html_block_len(b);

    if (b->tag >= WB_TAG_H1_ && b->tag <= WB_TAG_H6_)
        return WB_HTML_KIND_HEADING;
    uint8_t listed = in_list(h, b) ? WB_HTML_KIND_LISTED : 0;
    if (len < SENTENCE_BYTES)
        return listed ? WB_HTML_KIND_LISTED | WB_HTML_KIND_TEXT : 0;
    struct wb_slice text = wb_html_block_text(h, b);
    bool whole = b->tag == WB_TAG_PRE_ || ends_sentence(text.ptr, text.ptr + text.len);
    if ((len < LONG_BYTES && !whole) || is_one_word(text))
        return listed ? WB_HTML_KIND_LISTED | WB_HTML_KIND_TEXT : 0;
    /* In lists of other pages, the title is a link and the text is cut off. */
    bool prose = listed ? b->link_bytes * 5 <= len && (whole || len >= 2 * LONG_BYTES) : b->link_bytes * 3 <= len;
    return (uint8_t)(listed | WB_HTML_KIND_TEXT | (prose ? WB_HTML_KIND_PROSE : 0));
}

/* ---- what elements contain -------------------------------------------------------------------- */

/* Adds a block to the sums of its element. */
static void add_block(struct wb_html_sum *s, const struct wb_html_block *b)
{
    uint32_t len = wb_html_block_len(b);

    s->bytes += len;
    s->links += b->link_bytes;
    if (b->kind & WB_HTML_KIND_PROSE)
        s->prose += len;
    else if (!(b->kind & WB_HTML_KIND_HEADING) && (!(b->kind & WB_HTML_KIND_LISTED) || b->link_bytes * 2 > len))
        s->junk += b->link_bytes + (len - b->link_bytes) / 4;
}

static void add_node(struct wb_html_sum *up, const struct wb_html_sum *s)
{
    up->bytes += s->bytes;
    up->links += s->links;
    up->prose += s->prose;
    up->junk += s->junk;
}

/* Computes the sums of each element, without what is dropped. */
static void sum_up(const struct wb_html *h, struct wb_html_sum *sums)
{
    for (size_t n = 0; n < h->node_count; n++)
        sums[n].prose = sums[n].junk = sums[n].bytes = sums[n].links = 0;
    for (size_t i = 0; i < h->block_count; i++)
        if (!sums[h->blocks[i].node].dropped)
            add_block(&sums[h->blocks[i].node], &h->blocks[i]);
    for (size_t n = h->node_count; n-- > 1;)
        add_node(&sums[h->nodes[n].parent], &sums[n]);
}

/* Documentation names its sections after their topics: true if an id is such a name, which says nothing. */
static bool is_topic_id(const struct wb_html_node *node)
{
    static const char *const kinds[] = {"sect", "level", "chapter", "detail", "method", "refs"};
    struct wb_slice class_ = wb_slice(node->class_, node->class_len);

    for (size_t i = 0; i < node->id_len; i++)
        if (strchr("().,:;/%<>[]+", node->id[i]))
            return true;
    for (size_t i = 0; class_.len && i < sizeof kinds / sizeof *kinds; i++)
        if (memmem(class_.ptr, class_.len, kinds[i], strlen(kinds[i])))
            return true;
    return node->tag == WB_TAG_SECTION_ && class_.len == 0;
}

/* Reads what the class and the id of an element say about it. */
static void read_names(struct wb_html *h, const struct wb_html_node *node, struct wb_html_sum *s)
{
    struct wb_names by_class = {0, 0}, by_id = {0, 0};

    if (node->class_len)
        by_class = wb_names_of(&h->names, wb_slice(node->class_, node->class_len));
    if (node->id_len)
        by_id = wb_names_of(&h->names, wb_slice(node->id, node->id_len));
    if (by_id.means && is_topic_id(node))
        by_id = (struct wb_names){0, 0};
    s->around = by_class.around ? by_class.around : by_id.around;
    s->names = (uint8_t)(by_class.means | (by_id.means & ~WB_NAMES_HIDDEN));
    if (node->tag == WB_TAG_TD_ || node->tag == WB_TAG_TABLE_ || node->tag == WB_TAG_ARTICLE_)
        s->names &= (uint8_t)~WB_NAMES_SMALL; /* it may be a table of dates, or an article with a gallery */
}

void wb_html_sum_up(struct wb_html *h)
{
    struct wb_html_sum *sums = h->sums;

    for (uint32_t n = 0; n < h->node_count; n++)
        sums[n] = (struct wb_html_sum){.end = n + 1};
    for (size_t i = 0; i < h->block_count; i++) {
        struct wb_html_block *b = &h->blocks[i];
        WB_CHECK(b->node < h->node_count && b->from < b->to && b->link_bytes <= b->to - b->from);
        b->kind = kind_of(h, b);
        add_block(&sums[b->node], b);
        sums[b->node].has_h1 |= b->tag == WB_TAG_H1_;
    }
    for (size_t n = h->node_count; n-- > 1;) {
        WB_CHECK(h->nodes[n].parent < n); /* therefore one backward pass is enough */
        struct wb_html_sum *up = &sums[h->nodes[n].parent];
        add_node(up, &sums[n]);
        up->has_h1 |= sums[n].has_h1;
        up->holds |= sums[n].holds || h->nodes[n].own & (WB_HTML_PLACE_MAIN | WB_HTML_PLACE_BODY);
        up->end = sums[n].end > up->end ? sums[n].end : up->end;
    }
}

/* ---- dropping ----------------------------------------------------------------------- */

/* True if an element contains most of the prose, or something that is marked as content. */
static bool is_most(const struct wb_html_sum *sums, uint32_t n)
{
    return sums[n].holds || (sums[n].prose > 0 && sums[n].prose * 2 >= sums[0].prose);
}

/* What the first block of an element says about it, if it is a heading or short. */
static unsigned heading_says(const struct wb_html *h, const struct wb_html_node *node)
{
    const struct wb_html_block *b = &h->blocks[node->block_from];

    if (node->block_to - node->block_from < 2 || b->kind & WB_HTML_KIND_TEXT)
        return 0;
    unsigned says = b->kind & WB_HTML_KIND_HEADING ? b->names & (WB_NAMES_AROUND | WB_NAMES_COMMENT) : 0;
    return says ? says : wb_names_of_heading(&h->names, wb_html_block_text(h, b));
}

/* True for reasons that are certain: the element itself, or a sign that readers wrote it or that it leads elsewhere. */
static bool drops_surely(const struct wb_html *h, const struct wb_html_sum *sums, uint32_t n, bool comments)
{
    const struct wb_html_node *node = &h->nodes[n];

    if (node->own & WB_HTML_PLACE_BOILER)
        return true;
    if (node->own & WB_HTML_PLACE_HIDDEN || sums[n].names & WB_NAMES_HIDDEN)
        return sums[n].prose * 2 < sums[0].prose || sums[n].prose == 0;
    if (comments || sums[n].has_h1 || sums[n].holds)
        return false;
    return sums[n].names & WB_NAMES_COMMENT ||
           (heading_says(h, node) && sums[0].prose - sums[n].prose >= WB_HTML_OUTSIDE_BYTES);
}

/* Finds words that name so much of the page that they cannot have their usual meaning here. */
static void doubt_words(const struct wb_html *h, const struct wb_html_sum *sums, bool doubted_out[WB_NAMES_WORDS_MAX])
{
    uint64_t prose[WB_NAMES_WORDS_MAX] = {0};

    for (uint32_t n = 1; n < h->node_count; n++) {
        uint32_t up = h->nodes[n].parent;
        bool counted = sums[up].around == sums[n].around && !is_most(sums, up); /* already, as part of its parent */
        if (sums[n].around && !counted && !is_most(sums, n))
            prose[sums[n].around] += sums[n].prose;
    }
    for (size_t i = 0; i < WB_NAMES_WORDS_MAX; i++)
        doubted_out[i] = prose[i] > 0 && prose[i] * 2 >= sums[0].prose;
}

/* True if the name of an element says that it is not content, and nothing speaks against that. */
static bool drops_by_name(const struct wb_html_sum *sums, uint32_t n, const bool doubted[WB_NAMES_WORDS_MAX])
{
    const struct wb_html_sum *s = &sums[n];

    if (s->names & WB_NAMES_NEVER && !s->has_h1 && !s->holds && sums[0].prose - s->prose >= LONG_BYTES)
        return true;
    if (s->names & WB_NAMES_AROUND && !doubted[s->around] && !is_most(sums, n))
        return true;
    return s->names & WB_NAMES_SMALL && !s->holds && s->prose < 300 && s->prose * 8 < sums[0].prose;
}

/* True if the parent was dropped; <main> survives that. */
static bool is_inside_dropped(const struct wb_html *h, const struct wb_html_sum *sums, uint32_t n)
{
    return sums[h->nodes[n].parent].dropped && !(h->nodes[n].own & WB_HTML_PLACE_MAIN);
}

/* Drops what is not content. comments: the comments of readers are the content. */
static void drop_nodes(struct wb_html *h, struct wb_html_sum *sums, bool comments)
{
    bool doubted[WB_NAMES_WORDS_MAX];

    for (uint32_t n = 1; n < h->node_count; n++) {
        sums[n].dropped = is_inside_dropped(h, sums, n);
        if (sums[n].dropped || sums[n].bytes == 0)
            continue;
        read_names(h, &h->nodes[n], &sums[n]);
        sums[n].dropped = drops_surely(h, sums, n, comments);
    }
    sum_up(h, sums);
    doubt_words(h, sums, doubted);
    bool more = false;
    for (uint32_t n = 1; n < h->node_count; n++) {
        bool dropped = sums[n].dropped || is_inside_dropped(h, sums, n) || drops_by_name(sums, n, doubted);
        more |= dropped != sums[n].dropped && sums[n].bytes > 0;
        sums[n].dropped = dropped;
    }
    if (more)
        sum_up(h, sums);
}

void wb_html_drop(struct wb_html *h)
{
    uint32_t prose = h->sums[0].prose;

    drop_nodes(h, h->sums, false);
    /* If hardly anything is left, the comments of readers are the content. */
    if (h->sums[0].prose < WB_HTML_OUTSIDE_BYTES && prose - h->sums[0].prose > h->sums[0].prose) {
        wb_html_sum_up(h);
        drop_nodes(h, h->sums, true);
    }
}
