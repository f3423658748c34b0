/*
 * extract.c - the pipeline from the bytes of a page to what is in it.
 *
 *   media type (or, without one, the bytes) -> module -> encoding -> UTF-8 -> module->run()
 *        -> language, SimHash
 *
 * It has one table of modules and knows no format itself (module.h says how to add one). An
 * extractor keeps its memory from page to page.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "extract/extract.h"
#include "extract/foreign.h"
#include "extract/html.h"
#include "extract/module.h"

/* The modules. The first one that accepts the media type gets the page. */
static const struct wb_module *const modules[] = {&wb_module_html, &wb_module_text, &wb_module_xml,
                                                 &wb_module_picture, &wb_module_office};

/* Those of files that only say what they need; asked first, if that is wanted. */
static const struct wb_module *const needy[] = {&wb_module_css, &wb_module_script};

/* A larger buffer is freed after a page instead of being kept for the next one. */
#define KEPT_BYTES ((size_t)4 << 20)

int wb_extractor_new(struct wb_extractor **extractor_out)
{
    struct wb_extractor *x = wb_alloc_zero(1, sizeof *x);

    *extractor_out = NULL;
    if (!x)
        return WB_E_NOMEM;
    x->magic = WB_EXTRACTOR_MAGIC;
    x->slots = wb_alloc_zero(WB_SINK_SLOTS, sizeof *x->slots);
    if (!x->slots) {
        wb_extractor_free(x);
        return WB_E_NOMEM;
    }
    *extractor_out = x;
    return 0;
}

void wb_extractor_free(struct wb_extractor *x)
{
    if (!x)
        return;
    WB_CHECK(x->magic == WB_EXTRACTOR_MAGIC && !x->input); /* not while it extracts a page */
    x->magic = 0;
    wb_html_free(x->html);
    wb_foreign_free(x);
    wb_buf_release(&x->decoded);
    wb_buf_release(&x->text_memory);
    wb_buf_release(&x->main_text);
    wb_buf_release(&x->css);
    wb_arena_release(&x->arena);
    wb_url_release(&x->base);
    wb_url_release(&x->resolved);
    wb_free(x->links);
    wb_free(x->spans);
    wb_free(x->slots);
    wb_free(x);
}

static void empty_buf(struct wb_buf *buf)
{
    if (buf->cap > KEPT_BYTES)
        wb_buf_release(buf);
    wb_buf_clear(buf);
}

/* ---- one page ------------------------------------------------------------------------------ */

/* Prepares the extractor and *out for a page: everything is empty, and the base is the page's URL. */
static int begin_page(struct wb_extractor *x, const struct wb_extract_input *input, struct wb_extract *out)
{
    *out = (struct wb_extract){.module = "", .module_error = "", .charset = "", .language = ""};
    out->title = out->description = out->canonical = out->base = out->lang = out->robots = out->author = out->type =
        WB_SLICE_EMPTY;
    out->text = out->main_text = WB_SLICE_EMPTY;
    x->input = input;
    x->out = out;
    x->utf8 = WB_SLICE_EMPTY;
    x->text = (struct wb_collapse){NULL, 0, 0, 0, false};
    x->has_main_text = false;
    x->link_count = x->url_bytes = x->span_count = x->fact_count = 0;
    x->page++;
    wb_arena_clear(&x->arena);
    empty_buf(&x->decoded);
    empty_buf(&x->text_memory);
    empty_buf(&x->main_text);
    int err = wb_url_parse(input->url, NULL, &x->base);
    if (err < 0)
        return err == WB_E_NOMEM ? err : 0; /* without a base, relative links cannot be resolved */
    return wb_sink_keep(x, wb_url_href(&x->base), &out->base);
}

static const struct wb_module *find_needy(struct wb_slice type)
{
    for (size_t i = 0; i < sizeof needy / sizeof *needy; i++)
        if (needy[i]->accepts(type))
            return needy[i];
    return NULL;
}

bool wb_extract_is_needy(struct wb_slice type)
{
    return find_needy(type) != NULL;
}

struct wb_slice wb_extract_sniff(struct wb_slice bytes)
{
    return wb_sniff_type(bytes);
}

/*
 * Chooses the module for a page, or NULL. The root element corrects two common mistakes: feeds that
 * are served as HTML, and XHTML that is served as XML.
 */
static const struct wb_module *choose_module(const struct wb_extract_input *input, struct wb_slice type)
{
    const struct wb_module *chosen = NULL;

    if (input->wants & WB_EXTRACT_NEEDS)
        chosen = find_needy(type);
    if (chosen)
        return chosen;
    for (size_t i = 0; !chosen && i < sizeof modules / sizeof *modules; i++)
        if (modules[i]->accepts(type))
            chosen = modules[i];
    if (chosen != &wb_module_html && chosen != &wb_module_xml)
        return chosen;
    struct wb_slice root = wb_sniff_root(input->body);
    if (chosen == &wb_module_html)
        return wb_sniff_is_feed(root) ? &wb_module_xml : chosen;
    return wb_slice_equal_nocase(root, WB_SLICE_LIT("html")) ? &wb_module_html : chosen;
}

/* Puts the spans of the text into *out: those of the module or, if it has none, a single one. */
static void place_spans(struct wb_extractor *x)
{
    struct wb_extract *out = x->out;

    x->whole = (struct wb_extract_span){0, (uint32_t)out->text.len, WB_EXTRACT_SPAN_MAIN};
    out->spans = x->has_main_text ? x->spans : &x->whole;
    out->span_count = x->has_main_text ? x->span_count : out->text.len > 0;
    WB_CHECK(out->span_count ? out->spans[out->span_count - 1].end == out->text.len : out->text.len == 0);
}

/* Completes *out after the module has run: text, links, and what is computed from the text. */
static void end_page(struct wb_extractor *x, unsigned wants)
{
    struct wb_extract *out = x->out;

    out->links = x->links;
    out->link_count = x->link_count;
    out->facts = x->facts;
    out->fact_count = x->fact_count;
    out->text_cut = x->text.cut;
    out->text = x->text.len ? wb_slice(x->text.ptr, x->text.len) : WB_SLICE_EMPTY;
    if (!x->has_main_text)
        out->main_text = out->text;
    place_spans(x);
    struct wb_slice telling = out->main_text.len ? out->main_text : out->text;
    if (wants & WB_EXTRACT_LANGUAGE)
        out->language = wb_language_of(telling);
    if (wants & WB_EXTRACT_SIMHASH)
        out->simhash = wb_simhash_of(telling);
    if (!(wants & WB_EXTRACT_TEXT)) {
        out->text = out->main_text = WB_SLICE_EMPTY;
        out->spans = NULL;
        out->span_count = 0;
    }
}

static int run_module(struct wb_extractor *x, const struct wb_module *module)
{
    const struct wb_extract_input *input = x->input;
    int err = 0;

    x->out->module = module->name;
    if (!module->binary) {
        x->out->charset = wb_charset_of(input->body, input->charset, module->charset_kind);
        err = wb_charset_decode(x->out->charset, input->body, WB_PAGE_MAX_BYTES, &x->decoded, &x->utf8);
    }
    return err < 0 ? err : module->run(x);
}

int wb_extract(struct wb_extractor *x, const struct wb_extract_input *input, struct wb_extract *extract_out)
{
    struct wb_extract_input asked = *input;

    WB_CHECK(x->magic == WB_EXTRACTOR_MAGIC && !x->input); /* one thread, one page at a time */
    WB_CHECK((input->wants & ~(unsigned)(WB_EXTRACT_ALL | WB_EXTRACT_NEEDS)) == 0);
    if (asked.wants & (WB_EXTRACT_LANGUAGE | WB_EXTRACT_SIMHASH))
        asked.wants |= WB_EXTRACT_TEXT;
    int err = begin_page(x, &asked, extract_out);
    struct wb_slice type = input->type.len ? input->type : wb_sniff_type(input->body);
    int guest = wb_foreign_first(type);
    const struct wb_module *module = guest < 0 ? choose_module(input, type) : NULL;
    if (!module && guest < 0)
        guest = wb_foreign_last(type);
    if (err < 0 || (!module && guest < 0))
        goto done;
    err = module ? run_module(x, module) : wb_foreign_run(x, guest, type);
    WB_CHECK(err == 0 || err == WB_E_NOMEM);       /* any bytes are a page */
    WB_CHECK(x->link_count <= WB_EXTRACT_LINKS_MAX && x->text.len <= WB_EXTRACT_TEXT_MAX);
    if (err == 0)
        end_page(x, input->wants);
done:
    x->input = NULL;
    x->out = NULL;
    return err;
}

const char *wb_extract_tag_name(enum wb_extract_tag tag)
{
    static const char *const names[] = {
        [WB_EXTRACT_LINK_A] = "a", [WB_EXTRACT_LINK_AREA] = "area", [WB_EXTRACT_LINK_LINK] = "link",
        [WB_EXTRACT_LINK_IFRAME] = "iframe", [WB_EXTRACT_LINK_FRAME] = "frame", [WB_EXTRACT_LINK_IMG] = "img",
        [WB_EXTRACT_LINK_SOURCE] = "source", [WB_EXTRACT_LINK_FORM] = "form", [WB_EXTRACT_LINK_META] = "meta",
        [WB_EXTRACT_LINK_FEED] = "feed", [WB_EXTRACT_LINK_SITEMAP] = "sitemap",
        [WB_EXTRACT_LINK_SCRIPT] = "script", [WB_EXTRACT_LINK_MEDIA] = "media", [WB_EXTRACT_LINK_STYLE] = "style",
        [WB_EXTRACT_LINK_IMAGE] = "image",
    };

    WB_CHECK(tag >= WB_EXTRACT_LINK_A && tag < WB_EXTRACT_LINK_END);
    return names[tag] ? names[tag] : "";
}

bool wb_extract_leads_on(unsigned tag)
{
    switch (tag) {
    case WB_EXTRACT_LINK_A:
    case WB_EXTRACT_LINK_AREA:
    case WB_EXTRACT_LINK_IFRAME:
    case WB_EXTRACT_LINK_FRAME:
    case WB_EXTRACT_LINK_META:
    case WB_EXTRACT_LINK_FEED:
    case WB_EXTRACT_LINK_SITEMAP:
        return true;
    default:
        return false;
    }
}

unsigned wb_extract_need(unsigned tag)
{
    switch (tag) {
    case WB_EXTRACT_LINK_IMG:
    case WB_EXTRACT_LINK_SOURCE:
    case WB_EXTRACT_LINK_IMAGE:
        return WB_EXTRACT_NEED_IMAGES;
    case WB_EXTRACT_LINK_STYLE:
        return WB_EXTRACT_NEED_STYLES;
    case WB_EXTRACT_LINK_SCRIPT:
        return WB_EXTRACT_NEED_SCRIPTS;
    case WB_EXTRACT_LINK_MEDIA:
        return WB_EXTRACT_NEED_MEDIA;
    default:
        return 0;
    }
}
