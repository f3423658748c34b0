/*
 * html.c - the module for HTML: one loop over the tokens, which passes each element to the code for
 * text, links and facts (html.h has a picture).
 *
 * It never builds a tree. The part of a tree that matters (which text is hidden, what encloses it,
 * where svg begins) is kept as counts and a stack of bounded depth.
 */
#include "extract/html.h"
#include "base/error.h"
#include "base/mem.h"

/* ---- tokens ------------------------------------------------------------------------------ */

int wb_html_value(struct wb_html *h, struct wb_slice name, bool *found_out, struct wb_slice *value_out)
{
    const struct wb_token_attr *attr = wb_tokenizer_attr(&h->t, name);

    *found_out = attr;
    *value_out = attr ? attr->value : WB_SLICE_EMPTY;
    if (!attr || !attr->value_coded)
        return 0;
    bool nul = attr->value.len && memchr(attr->value.ptr, '\0', attr->value.len);
    size_t room = nul ? WB_DECODED_MAX(attr->value.len) : WB_ENTITY_GROWN(attr->value.len);
    char *at = wb_arena_take(&h->x->arena, room);
    if (!at)
        return WB_E_NOMEM;
    size_t len = wb_token_decode(attr->value, WB_DECODE_VALUE, at);
    wb_arena_untake(&h->x->arena, room - len);
    *value_out = wb_slice(at, len);
    return 0;
}

/* Does what an element needs at its start, apart from what its flags say. */
static int take_special(struct wb_html *h, enum wb_tag tag)
{
    switch (tag) {
    case WB_TAG_A_:
    case WB_TAG_AREA_:
    case WB_TAG_BASE_:
    case WB_TAG_FORM_:
    case WB_TAG_FRAME_:
    case WB_TAG_IFRAME_:
    case WB_TAG_IMG_:
    case WB_TAG_LINK_:
    case WB_TAG_SOURCE_:
        return wb_html_links(h, tag);
    case WB_TAG_HTML_:
        return wb_html_lang(h);
    case WB_TAG_META_:
        return wb_html_meta(h);
    case WB_TAG_TIME_:
        return wb_html_time(h);
    case WB_TAG_RB_:
    case WB_TAG_RUBY_:
        h->in_ruby |= tag == WB_TAG_RUBY_;
        h->in_reading = false;
        return 0;
    case WB_TAG_RP_:
    case WB_TAG_RT_:
    case WB_TAG_RTC_:
        h->in_reading = h->in_ruby;
        return 0;
    case WB_TAG_SCRIPT_:
        wb_html_script(h);
        return 0;
    case WB_TAG_TITLE_:
        h->in_title = !h->has_title;
        return 0;
    case WB_TAG_TEMPLATE_: /* its content does not count, unless it declares that it is shown */
        h->templates += !wb_tokenizer_attr(&h->t, WB_SLICE_LIT("shadowrootmode"));
        return 0;
    case WB_TAG_SVG_:
    case WB_TAG_MATH_:
        wb_foreign_push(&h->foreign, &h->t, true);
        return 0;
    default:
        return 0;
    }
}

static int take_end_of(struct wb_html *h, enum wb_tag tag);

/* True for the elements of svg whose text is not shown. */
static bool is_unseen(enum wb_tag tag)
{
    return tag == WB_TAG_TITLE_ || tag == WB_TAG_DESC_ || tag == WB_TAG_METADATA_ || tag == WB_TAG_SCRIPT_ ||
           tag == WB_TAG_STYLE_;
}

/* Handles a start tag: block boundaries, open elements, special elements, and how the content is read. */
static int take_start(struct wb_html *h)
{
    enum wb_tag tag = wb_tag_find(&h->tags, &h->t);
    const struct wb_tag_facts *facts = &wb_tag_facts[tag];
    int err = 0;

    h->silent = h->in_title = h->in_jsonld = h->in_style = h->in_module = false;
    bool needs = h->x->input->wants & WB_EXTRACT_NEEDS && !h->templates;
    if (needs && (err = wb_html_needs(h, tag)) < 0)
        return err;
    if (tag == WB_TAG_OTHER)
        return 0;
    if (wb_foreign_in(&h->foreign) && wb_foreign_start(&h->foreign, &h->t, tag)) {
        h->silent = is_unseen(tag) && !h->t.self_closing;
        return tag == WB_TAG_A_ && !h->templates ? wb_html_links(h, tag) : 0;
    }
    if (h->templates) {
        h->templates += tag == WB_TAG_TEMPLATE_;
        if (tag == WB_TAG_SVG_ || tag == WB_TAG_MATH_)
            wb_foreign_push(&h->foreign, &h->t, true);
    } else {
        if (facts->flags & WB_TAG_BLOCK)
            err = wb_html_begin_block(h, tag);
        else if (facts->flags & WB_TAG_CELL)
            wb_collapse_gap(&h->x->text, ' ');
        if (err == 0 && facts->flags & WB_TAG_TRACKED)
            err = wb_html_enter(h, tag);
        if (err == 0 && facts->flags & WB_TAG_SPECIAL)
            err = take_special(h, tag);
    }
    if (h->foreign.xml && h->t.self_closing)
        return err < 0 ? err : take_end_of(h, tag);
    h->t.mode = facts->mode;
    h->silent = facts->flags & WB_TAG_SILENT;
    h->in_style = needs && tag == WB_TAG_STYLE_;
    h->in_module = needs && tag == WB_TAG_SCRIPT_ && wb_html_is_module(h);
    return err;
}

/* Ends a part of ruby: after a reading, the base text continues. */
static void end_ruby(struct wb_html *h, enum wb_tag tag)
{
    switch (tag) {
    case WB_TAG_RP_:
    case WB_TAG_RT_:
    case WB_TAG_RTC_:
        h->in_reading = false;
        break;
    case WB_TAG_RUBY_:
        h->in_ruby = h->in_reading = false;
        break;
    default:
        break;
    }
}

/* Handles the end of an element: an end tag, or an empty element of XHTML. */
static int take_end_of(struct wb_html *h, enum wb_tag tag)
{
    unsigned flags = wb_tag_facts[tag].flags;
    int err = 0;

    h->silent = h->in_title = h->in_jsonld = h->in_style = h->in_module = false;
    if (tag == WB_TAG_OTHER)
        return 0;
    if (h->foreign.depth)
        wb_foreign_end(&h->foreign, &h->t, tag);
    if (h->templates) {
        h->templates -= tag == WB_TAG_TEMPLATE_;
        return 0;
    }
    if (tag == WB_TAG_A_)
        return wb_html_anchor_end(h, true);
    if (h->in_ruby)
        end_ruby(h, tag);
    if (flags & WB_TAG_BLOCK)
        err = wb_html_end_block(h, tag);
    else if (flags & WB_TAG_CELL)
        wb_collapse_gap(&h->x->text, ' ');
    if (err == 0 && flags & WB_TAG_TRACKED)
        err = wb_html_leave(h, tag);
    return err;
}

/* Handles text: the title, JSON-LD, visible text, or nothing. */
static int take_text(struct wb_html *h)
{
    if (h->in_title)
        return wb_html_title(h);
    if (h->in_jsonld)
        return wb_html_jsonld(h);
    if (h->in_style)
        return wb_html_style(h);
    if (h->in_module)
        return wb_script_links(h->x, h->t.text);
    /* NULs are dropped: as U+FFFD, they might need more room than there is. */
    if (!h->silent && !h->templates && !h->in_reading)
        wb_collapse_append(&h->x->text, h->t.text, h->t.how & WB_DECODE_ENTITIES, h->t.end);
    return 0;
}

static int take_tokens(struct wb_html *h)
{
    int err = 0;

    for (;;) {
        switch (wb_tokenizer_next(&h->t)) {
        case WB_TOKEN_NONE:
            return 0;
        case WB_TOKEN_TEXT:
            err = take_text(h);
            break;
        case WB_TOKEN_START:
            err = take_start(h);
            break;
        case WB_TOKEN_END:
            err = take_end_of(h, wb_tag_find(&h->tags, &h->t));
            break;
        case WB_TOKEN_COMMENT:
        case WB_TOKEN_DOCTYPE:
            break;
        }
        if (err < 0)
            return err;
    }
}

/* ---- the module -------------------------------------------------------------------------- */

/* Prepares the module's state for a page. */
static int begin_page(struct wb_extractor *x)
{
    struct wb_html *h = x->html;

    if (!h) {
        h = x->html = wb_alloc_zero(1, sizeof *h);
        if (!h)
            return WB_E_NOMEM;
        wb_tag_index_init(&h->tags);
        wb_names_index_init(&h->names);
    }
    h->x = x;
    wb_tokenizer_init(&h->t, x->utf8);
    /* A page that is served as text/html is read as HTML, even if it claims to be XHTML. */
    bool xml = x->input->type.len && !wb_slice_equal(x->input->type, WB_SLICE_LIT("text/html"));
    wb_foreign_init(&h->foreign, &h->t, xml);
    h->silent = h->in_title = h->in_jsonld = h->in_style = h->in_module = false;
    h->anchor_open = h->in_ruby = h->in_reading = false;
    h->templates = 0;
    h->has_title = h->has_base = h->has_refresh = h->has_description = h->has_lang = false;
    h->canonical_href = WB_SLICE_EMPTY;
    h->published_rank = h->modified_rank = h->author_rank = h->type_rank = 0;
    h->jsonld_count = 0;
    int err = wb_html_begin_text(h);
    return err < 0 ? err : wb_sink_room(x, WB_ENTITY_GROWN(x->utf8.len));
}

static int run_html(struct wb_extractor *x)
{
    int err = begin_page(x);

    if (err == 0)
        err = take_tokens(x->html);
    if (err == 0)
        err = wb_html_anchor_end(x->html, false);
    return err < 0 ? err : wb_html_finish_text(x->html);
}

void wb_html_free(struct wb_html *h)
{
    if (!h)
        return;
    wb_free(h->blocks);
    wb_free(h->nodes);
    wb_free(h->sums);
    wb_free(h);
}

static bool accepts_html(struct wb_slice type)
{
    return wb_slice_equal(type, WB_SLICE_LIT("text/html")) ||
           wb_slice_equal(type, WB_SLICE_LIT("application/xhtml+xml"));
}

const struct wb_module wb_module_html = {
    .name = "html", .charset_kind = WB_CHARSET_HTML, .accepts = accepts_html, .run = run_html};
