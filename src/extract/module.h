/*
 * module.h - private to page: processing modules, and what they write into.
 *
 * A module understands one family of media types. It is one file and one row of
 * the table in extract.c, which chooses it, makes the document UTF-8 and calls it:
 *
 *   wb_extract() -> choose module -> charset -> UTF-8 -> module->run(x)
 *                   -> text, links, facts closed -> language, SimHash
 *
 * A module reads x->utf8 and writes through the sink below, and sets facts (title,
 * lang, published_ms, feed, ...) in x->out. Slices that it puts there lie in
 * x->utf8 or were made by wb_sink_keep(); both stay until the next page. Any bytes
 * are a document: run returns 0 or WB_E_NOMEM, nothing else.
 */
#ifndef WB_EXTRACT_MODULE_H
#define WB_EXTRACT_MODULE_H

#include "base/arena.h"
#include "extract/extract.h"
#include "extract/words.h"

struct wb_extractor;

struct wb_module {
    const char *name;                       /* "html", "text", "xml" */
    enum wb_charset_kind charset_kind;
    bool (*accepts)(struct wb_slice type);  /* a media type without parameters, lower case */
    int (*run)(struct wb_extractor *x);
};

extern const struct wb_module wb_module_html; /* html.c */
extern const struct wb_module wb_module_text; /* plaintext.c */
extern const struct wb_module wb_module_xml;  /* xml.c, with feed.c and sitemap.c */

#define WB_RESOLVED_SLOTS 256 /* of the cache of resolved hrefs */
#define WB_LINKS_URL_BYTES_MAX ((size_t)32 << 20) /* a long base makes every link long, or slow: beyond this, links are left out */

struct wb_resolved {
    uint64_t hash;
    uint32_t page;          /* the page it was resolved in */
    struct wb_slice head;   /* href up to its '#' */
    struct wb_slice url;
};

/* One thread's working memory; what a page left in it is reused for the next. */
struct wb_extractor {
    const struct wb_extract_input *input;
    struct wb_extract *out;      /* facts go here directly; text and links through the sink */
    struct wb_slice utf8;        /* the document, well-formed UTF-8 without a BOM */
    struct wb_buf decoded;       /* its memory, where it was not UTF-8 already */
    struct wb_arena arena;       /* what must not move until the next page */

    struct wb_words text;        /* has room for all that may come: it does not move while a page is read */
    struct wb_buf text_memory;
    struct wb_buf main_text;     /* memory for it, where a module tells it apart... */
    bool has_main_text;          /* ...and says so, having set out->main_text; otherwise all text is main text */

    struct wb_extract_link *links;
    size_t link_count, link_cap;
    struct wb_url base;          /* links are resolved against it; href empty: there is none */
    struct wb_url resolved;      /* working memory */
    struct wb_resolved *slots;   /* WB_RESOLVED_SLOTS */
    uint32_t page;               /* counts pages, so that slots of earlier ones are not taken for this one's */
    size_t url_bytes;            /* what the page's resolved URLs cost */

    struct wb_html *html;        /* the html module's own working memory, made on first use */
};

/* ---- the sink (sink.c) ------------------------------------------------------------------ */

/*
 * Makes room for text of at most max bytes; called once by a module before any text.
 * UTF-8 text as it stands needs its own length.
 */
int wb_sink_room(struct wb_extractor *x, size_t max);

/* Words of UTF-8 text: white space is collapsed, also with what came before. Beyond WB_EXTRACT_TEXT_MAX: dropped, text_cut is set. */
void wb_sink_text(struct wb_extractor *x, struct wb_slice utf8);

/* A block ends: '\n' before the next word. */
void wb_sink_break(struct wb_extractor *x);

/* A copy that stays until the next page; white space collapsed and trimmed by the second. */
int wb_sink_keep(struct wb_extractor *x, struct wb_slice s, struct wb_slice *kept_out);
int wb_sink_keep_words(struct wb_extractor *x, struct wb_slice s, size_t max, struct wb_slice *kept_out);

/* The same of text that is still to be decoded (enum wb_token_decode). */
int wb_sink_keep_raw_words(struct wb_extractor *x, struct wb_slice raw, unsigned how, size_t max, struct wb_slice *kept_out);

/*
 * Takes a link: tag, rels, href, anchor, rel and modified_ms as given (the slices
 * must stay until the next page), href trimmed, url resolved here. Beyond
 * WB_EXTRACT_LINKS_MAX (or WB_LINKS_URL_BYTES_MAX) it is only counted, where links are not wanted not even that. link_out, where
 * not NULL, is the link's number or SIZE_MAX; x->links[number] may still get its anchor.
 */
int wb_sink_link(struct wb_extractor *x, const struct wb_extract_link *link, size_t *link_out);

/* What a resolved URL is counted as, in bytes: the base is gone over even where nothing of it remains. */
static inline size_t wb_sink_cost(const struct wb_extractor *x, struct wb_slice url)
{
    return url.len > x->base.href.len ? url.len : x->base.href.len;
}

/* Resolves against x->base; empty where it is no URL. The result stays until the next page. */
int wb_sink_resolve(struct wb_extractor *x, struct wb_slice href, struct wb_slice *url_out);

/* Sets what links are resolved against from now on (itself resolved against the page's URL); no URL: no change. */
int wb_sink_base(struct wb_extractor *x, struct wb_slice href);

#endif
