/*
 * htmllinks.c - takes the links of HTML elements, with their anchors.
 *
 * It never decides which links are followed: even a mailto: is a link here.
 */
#include "extract/html.h"
#include "base/error.h"

/* ---- rel --------------------------------------------------------------------------------- */

/* Removes the next word from *rest; false at the end. */
static bool next_word(struct wb_slice *rest, struct wb_slice *word_out)
{
    const char *p = rest->ptr, *end = p + rest->len;

    while (p < end && wb_ascii_is_space(*p))
        p++;
    const char *from = p;
    while (p < end && !wb_ascii_is_space(*p))
        p++;
    *word_out = wb_slice(from, (size_t)(p - from));
    *rest = wb_slice(p, (size_t)(end - p));
    return p > from;
}

/* Reads the words of a rel attribute; `type` tells whether an alternate is a feed. */
static uint8_t read_rels(struct wb_slice rel, struct wb_slice type)
{
    static const struct {
        const char *word;
        uint8_t rel;
    } words[] = {
        {"nofollow", WB_EXTRACT_REL_NOFOLLOW},
        {"canonical", WB_EXTRACT_REL_CANONICAL},
        {"alternate", WB_EXTRACT_REL_ALTERNATE},
        {"stylesheet", WB_EXTRACT_REL_STYLESHEET},
        {"icon", WB_EXTRACT_REL_ICON},
        {"apple-touch-icon", WB_EXTRACT_REL_ICON},
        {"mask-icon", WB_EXTRACT_REL_ICON},
        {"preload", WB_EXTRACT_REL_PRELOAD},
        {"modulepreload", WB_EXTRACT_REL_PRELOAD},
    };
    uint8_t rels = 0;
    struct wb_slice word;

    while (next_word(&rel, &word))
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (wb_slice_equal_nocase(word, wb_slice_str(words[i].word)))
                rels |= words[i].rel;
    type = wb_slice_trim(type);
    if (rels & WB_EXTRACT_REL_ALTERNATE && (wb_slice_starts_nocase(type, WB_SLICE_LIT("application/rss+xml")) ||
                                    wb_slice_starts_nocase(type, WB_SLICE_LIT("application/atom+xml"))))
        rels |= WB_EXTRACT_REL_FEED;
    return rels;
}

/* ---- anchors ----------------------------------------------------------------------------- */

/* Cuts an anchor to at most WB_EXTRACT_ANCHOR_MAX bytes, without splitting a character. */
static struct wb_slice cut_anchor(struct wb_slice s)
{
    if (s.len <= WB_EXTRACT_ANCHOR_MAX)
        return s;
    s.len = WB_EXTRACT_ANCHOR_MAX;
    while (s.len > 0 && ((uint8_t)s.ptr[s.len] & 0xc0) == 0x80)
        s.len--;
    while (s.len > 0 && wb_ascii_is_space(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

/*
 * True if there is a single blank between a tag and a word. Browsers show it, so it belongs to the
 * anchor; line ends and indentation are only layout. p is the byte next to the tag, q the one next
 * to p.
 */
static bool is_lone_blank(char p, char q)
{
    return p == ' ' && !wb_ascii_is_space(q) && q != '<' && q != '>';
}

/* Gets the anchor: a part of the page's text if it is in one block, otherwise a copy. */
static int anchor_of_text(struct wb_html *h, bool blank_after, struct wb_slice *anchor_out)
{
    const struct wb_collapse *text = &h->x->text;
    struct wb_slice s = wb_slice(text->ptr + h->anchor_from, text->len - h->anchor_from);

    if (s.len > 0 && wb_ascii_is_space(*s.ptr))
        s = wb_slice(s.ptr + 1, s.len - 1);
    s = cut_anchor(s);
    *anchor_out = s;
    bool before = h->anchor_blank && s.len < WB_EXTRACT_ANCHOR_MAX,
         after = blank_after && s.len + before < WB_EXTRACT_ANCHOR_MAX;
    if (s.len == 0 || (!before && !after && !memchr(s.ptr, '\n', s.len)))
        return 0;
    char copy[WB_EXTRACT_ANCHOR_MAX];
    size_t len = 0;
    if (before)
        copy[len++] = ' ';
    for (size_t i = 0; i < s.len; i++)
        copy[len++] = s.ptr[i] == '\n' ? ' ' : s.ptr[i];
    if (after)
        copy[len++] = ' ';
    return wb_sink_keep(h->x, wb_slice(copy, len), anchor_out);
}

int wb_html_anchor_end(struct wb_html *h, bool by_tag)
{
    struct wb_slice anchor = WB_SLICE_EMPTY;
    int err = 0;

    if (!h->anchor_open)
        return 0;
    h->anchor_open = false;
    h->block_link_bytes += (uint32_t)(h->x->text.len - h->anchor_counted);
    if (h->anchor_link == SIZE_MAX)
        return 0;
    if (h->x->text.len > h->anchor_from) /* then a tag and a word precede this tag, and raw.ptr[-2] exists */
        err = anchor_of_text(h, by_tag && is_lone_blank(h->t.raw.ptr[-1], h->t.raw.ptr[-2]), &anchor);
    h->x->links[h->anchor_link].anchor = anchor.len ? anchor : h->anchor_alt;
    return err;
}

/* Starts collecting the anchor of a link: the text from here to its end. */
static void open_anchor(struct wb_html *h, size_t link)
{
    h->anchor_open = true;
    h->anchor_link = link;
    h->anchor_from = h->anchor_counted = h->x->text.len;
    h->anchor_alt = WB_SLICE_EMPTY;
    h->anchor_blank = h->t.end - h->t.at >= 2 && is_lone_blank(h->t.at[0], h->t.at[1]);
}

/* Reads the alt of an image or area, with white space collapsed. */
static int read_alt(struct wb_html *h, struct wb_slice *alt_out)
{
    const struct wb_token_attr *alt = wb_tokenizer_attr(&h->t, WB_SLICE_LIT("alt"));

    *alt_out = WB_SLICE_EMPTY;
    if (!alt || alt->value.len == 0)
        return 0;
    return wb_sink_keep_raw_words(h->x, alt->value, alt->value_coded ? WB_DECODE_VALUE : 0, WB_EXTRACT_ANCHOR_MAX,
                                  alt_out);
}

/* ---- one function for each kind of element --------------------------------------------------------- */

/* Reads the href (or another attribute) and the rel of the current start tag. */
static int read_link(struct wb_html *h, enum wb_extract_tag tag, struct wb_slice attribute,
                     struct wb_extract_link *link_out, bool *found_out)
{
    bool found = false;

    *link_out = (struct wb_extract_link){.tag = (uint8_t)tag, .href = WB_SLICE_EMPTY, .url = WB_SLICE_EMPTY,
                                 .anchor = WB_SLICE_EMPTY, .rel = WB_SLICE_EMPTY};
    int err = wb_html_value(h, attribute, found_out, &link_out->href);
    if (err < 0 || !*found_out || h->t.attr_count == 1)
        return err;
    err = wb_html_value(h, WB_SLICE_LIT("rel"), &found, &link_out->rel);
    if (found)
        link_out->rels = read_rels(link_out->rel, WB_SLICE_EMPTY);
    return err;
}

static int take_a(struct wb_html *h)
{
    struct wb_extract_link link;
    bool found;
    size_t number = SIZE_MAX;

    int err = wb_html_anchor_end(h, false); /* links do not nest */
    if (err == 0)
        err = read_link(h, WB_EXTRACT_LINK_A, WB_SLICE_LIT("href"), &link, &found);
    if (err == 0 && !found && h->foreign.depth)
        err = read_link(h, WB_EXTRACT_LINK_A, WB_SLICE_LIT("xlink:href"), &link, &found);
    if (err < 0 || !found)
        return err;
    err = wb_sink_link(h->x, &link, &number);
    if (err == 0)
        open_anchor(h, number);
    return err;
}

static int take_area(struct wb_html *h)
{
    struct wb_extract_link link;
    bool found;

    int err = read_link(h, WB_EXTRACT_LINK_AREA, WB_SLICE_LIT("href"), &link, &found);
    if (err < 0 || !found)
        return err;
    err = read_alt(h, &link.anchor);
    return err < 0 ? err : wb_sink_link(h->x, &link, NULL);
}

/* Takes <link href>, and notes the first canonical one. */
static int take_link(struct wb_html *h)
{
    struct wb_extract_link link;
    struct wb_slice type;
    bool found, typed;
    size_t number = SIZE_MAX;

    int err = read_link(h, WB_EXTRACT_LINK_LINK, WB_SLICE_LIT("href"), &link, &found);
    if (err < 0 || !found || link.href.len == 0)
        return err;
    err = wb_html_value(h, WB_SLICE_LIT("type"), &typed, &type);
    if (err < 0)
        return err;
    link.rels = read_rels(link.rel, type);
    if (h->x->input->wants & WB_EXTRACT_NEEDS)
        link.tag = (uint8_t)wb_html_link_need(h, &link);
    err = wb_sink_link(h->x, &link, &number);
    if (err < 0 || !(link.rels & WB_EXTRACT_REL_CANONICAL) || h->x->out->canonical.len > 0)
        return err;
    h->canonical_href = link.href;
    return wb_sink_resolve(h->x, link.href, &h->x->out->canonical);
}

/* Takes the link of an element with a plain src or action; an empty one leads nowhere. */
static int take_plain(struct wb_html *h, enum wb_extract_tag tag, struct wb_slice attribute)
{
    struct wb_extract_link link;
    bool found;

    int err = read_link(h, tag, attribute, &link, &found);
    if (err < 0 || !found || link.href.len == 0)
        return err;
    return wb_sink_link(h->x, &link, NULL);
}

/* Takes the candidates of a srcset. */
static int take_srcset(struct wb_html *h, enum wb_extract_tag tag, struct wb_slice alt)
{
    struct wb_slice srcset, href;
    bool found;

    int err = wb_html_value(h, WB_SLICE_LIT("srcset"), &found, &srcset);
    while (err == 0 && wb_srcset_next(&srcset, &href)) {
        struct wb_extract_link link = {
            .tag = (uint8_t)tag, .href = href, .url = WB_SLICE_EMPTY, .anchor = alt, .rel = WB_SLICE_EMPTY};
        err = wb_sink_link(h->x, &link, NULL);
    }
    return err;
}

/* Takes the src and srcset of an image; its alt may become the anchor of the link around it. */
static int take_img(struct wb_html *h)
{
    struct wb_extract_link link;
    bool found;

    int err = read_link(h, WB_EXTRACT_LINK_IMG, WB_SLICE_LIT("src"), &link, &found);
    if (err == 0)
        err = read_alt(h, &link.anchor);
    if (err < 0)
        return err;
    if (h->anchor_open && h->anchor_alt.len == 0)
        h->anchor_alt = link.anchor;
    if (found && link.href.len > 0)
        err = wb_sink_link(h->x, &link, NULL);
    return err < 0 ? err : take_srcset(h, WB_EXTRACT_LINK_IMG, link.anchor);
}

/*
 * Resolves the links before the base again. A long base makes all of them long; beyond the sink's
 * limit they are left out.
 */
static int resolve_again(struct wb_html *h)
{
    struct wb_extractor *x = h->x;
    int err = 0;

    x->url_bytes = 0;
    for (size_t i = 0; err == 0 && i < x->link_count; i++) {
        if (x->url_bytes > WB_SINK_URL_BYTES_MAX) {
            x->out->links_left_out += x->link_count - i;
            x->link_count = i;
            if (h->anchor_open && h->anchor_link >= i)
                h->anchor_link = SIZE_MAX;
            break;
        }
        err = wb_sink_resolve(x, x->links[i].href, &x->links[i].url);
        x->url_bytes += wb_sink_cost(x, x->links[i].url);
    }
    return err;
}

/* The first <base href> applies to all links, including those before it. */
static int take_base(struct wb_html *h)
{
    struct wb_extractor *x = h->x;
    struct wb_slice href;
    bool found;

    int err = h->has_base ? 0 : wb_html_value(h, WB_SLICE_LIT("href"), &found, &href);
    if (err < 0 || h->has_base || !found)
        return err;
    h->has_base = true;
    err = wb_sink_base(x, href);
    if (err == 0)
        err = resolve_again(h);
    if (err == 0 && x->out->canonical.len > 0)
        err = wb_sink_resolve(x, h->canonical_href, &x->out->canonical);
    return err;
}

int wb_html_links(struct wb_html *h, enum wb_tag tag)
{
    switch (tag) {
    case WB_TAG_A_:
        return take_a(h);
    case WB_TAG_AREA_:
        return take_area(h);
    case WB_TAG_BASE_:
        return take_base(h);
    case WB_TAG_FORM_:
        return take_plain(h, WB_EXTRACT_LINK_FORM, WB_SLICE_LIT("action"));
    case WB_TAG_FRAME_:
        return take_plain(h, WB_EXTRACT_LINK_FRAME, WB_SLICE_LIT("src"));
    case WB_TAG_IFRAME_:
        return take_plain(h, WB_EXTRACT_LINK_IFRAME, WB_SLICE_LIT("src"));
    case WB_TAG_IMG_:
        return take_img(h);
    case WB_TAG_LINK_:
        return take_link(h);
    case WB_TAG_SOURCE_:
        return take_srcset(h, WB_EXTRACT_LINK_SOURCE, WB_SLICE_EMPTY);
    default:
        return 0;
    }
}

/* ---- refresh ----------------------------------------------------------------------------- */

int wb_html_refresh(struct wb_html *h, struct wb_slice content)
{
    struct wb_extract_link link = {
        .tag = WB_EXTRACT_LINK_META, .url = WB_SLICE_EMPTY, .anchor = WB_SLICE_EMPTY, .rel = WB_SLICE_EMPTY};

    if (h->has_refresh || !wb_refresh_parse(content, &link.href))
        return 0;
    h->has_refresh = true;
    return link.href.len ? wb_sink_link(h->x, &link, NULL) : 0;
}
