/*
 * module.h - private to extract: what a module is, and the sink that it writes into. To add a module,
 * this is the header to read.
 *
 * A module understands one family of media types. These exist: html (html.c and the files that html.h
 * lists), text (plaintext.c, the shortest example), xml (xmlpage.c, with sitemap.c and feed.c), image (picture.c),
 * office (office.c and the files that office.h lists), and css and script (csslinks.c, scriptlinks.c), which only find
 * what such files need. PDF and the modules of users are read in processes of their own (foreign.c).
 * To add one, for sound say:
 *
 *   1. Write sound.c. It defines `const struct wb_module wb_module_sound`.
 *   2. Declare that below, and add it to the table in extract.c and to meson.build.
 *   3. If such pages come without a media type, add their first bytes to sniff.c.
 *   4. Add tests/unit/extract/test_sound.c and, because it reads bytes from the web, fuzz/fuzz_sound.c.
 *
 * What happens to a page:
 *
 *   extract.c   chooses the first module whose accepts() likes the media type
 *   extract.c   determines the encoding and converts the body to UTF-8 (x->utf8)
 *   sound.c     run(x): reads x->utf8 (or, if its format is not text, the bytes in x->input->body)
 *                 wb_sink_room(), then wb_sink_text() and wb_sink_break()   if text is wanted
 *                 wb_sink_link()                                            for every link
 *                 x->out->title = ..., lang, published_ms, ...              for the facts it finds
 *   extract.c   computes language and SimHash from the text
 *
 * The rules for run(): x->input->wants says what is asked for. A slice that it puts into x->out or
 * into a link must stay valid until the next page: it is part of x->utf8, or was made by
 * wb_sink_keep(). Any bytes are a document: run() returns 0 or WB_E_NOMEM and nothing else. It takes
 * time linear in the document, and the memory it uses itself is bounded.
 */
#ifndef WB_EXTRACT_MODULE_H
#define WB_EXTRACT_MODULE_H

#include "base/arena.h"
#include "extract/collapse.h"
#include "extract/extract.h"
#include "markup/markup.h"

struct wb_extractor;

struct wb_module {
    const char *name;                       /* what struct wb_extract calls module: "html", "text", "xml" */
    bool binary;                            /* its documents are bytes and not text: there is no x->utf8 */
    enum wb_charset_kind charset_kind;      /* how the document may declare its encoding */
    bool (*accepts)(struct wb_slice type);  /* is given a media type in lower case, without parameters */
    int (*run)(struct wb_extractor *x);
};

extern const struct wb_module wb_module_html; /* html.c */
extern const struct wb_module wb_module_text; /* plaintext.c */
extern const struct wb_module wb_module_xml;  /* xmlpage.c */
extern const struct wb_module wb_module_css;  /* csslinks.c; only if WB_EXTRACT_NEEDS is wanted... */
extern const struct wb_module wb_module_script; /* scriptlinks.c; ...like this one */

extern const struct wb_module wb_module_picture; /* picture.c */
extern const struct wb_module wb_module_office;  /* office.c */

/* The cache of resolved hrefs has this many slots. */
#define WB_SINK_SLOTS 256

/* With a long base, every link is long and slow to resolve. Beyond this many bytes, links are left out. */
#define WB_SINK_URL_BYTES_MAX ((size_t)32 << 20)

/* What an href was resolved to. */
struct wb_sink_resolved {
    uint64_t hash;
    uint32_t page;          /* the page in which it was resolved */
    struct wb_slice head;   /* the href up to its '#' */
    struct wb_slice url;
};

#define WB_EXTRACTOR_MAGIC 0x45585452u

/* The working memory of one thread; memory that a page has taken is reused for the next. */
struct wb_extractor {
    uint32_t magic;              /* WB_EXTRACTOR_MAGIC from new to free */
    const struct wb_extract_input *input;
    struct wb_extract *out;      /* facts go here directly; text and links go through the sink */
    struct wb_slice utf8;        /* the document, well-formed UTF-8 without a BOM */
    struct wb_buf decoded;       /* its memory, if it was not UTF-8 already */
    struct wb_arena arena;       /* for everything that must not move until the next page */

    struct wb_collapse text;        /* has room for all text of the page, so that it never moves */
    struct wb_buf text_memory;
    struct wb_buf main_text;     /* memory for the main text, if a module distinguishes it... */
    bool has_main_text;          /* ...and says so here, after setting out->main_text; otherwise all text is main */
    struct wb_extract_span *spans; /* set together with the main text... */
    size_t span_count, span_cap;
    struct wb_extract_span whole;  /* ...or all text is one span */

    struct wb_extract_link *links;
    size_t link_count, link_cap;
    struct wb_url base;          /* links are resolved against it; if its href is empty, there is none */
    struct wb_url resolved;      /* working memory */
    struct wb_sink_resolved *slots;   /* WB_SINK_SLOTS of them */
    uint32_t page;               /* counts pages, so that slots of an earlier page are not used for this one */
    size_t url_bytes;            /* the sum of wb_sink_cost() of the page's links */

    struct wb_buf css;           /* working memory of csslinks.c */
    struct wb_extract_fact facts[WB_EXTRACT_FACTS_MAX];
    size_t fact_count;
    struct wb_guests *foreign;  /* guests and their memory (foreign.c), made on first use */
    struct wb_html *html;        /* the working memory of the html module, made on first use */
};

/* ---- the sink (sink.c) ------------------------------------------------------------------ */

/*
 * Makes room for at most max bytes of text; called once, before any text. Plain UTF-8 needs no more
 * than its own length.
 */
int wb_sink_room(struct wb_extractor *x, size_t max);

/*
 * Appends the words of UTF-8 text and collapses white space, also across calls. Beyond
 * WB_EXTRACT_TEXT_MAX it drops them and sets text_cut.
 */
void wb_sink_text(struct wb_extractor *x, struct wb_slice utf8);

/* Ends a block: the next word is preceded by '\n'. */
void wb_sink_break(struct wb_extractor *x);

/* Makes a copy that is valid until the next page; the second one also collapses and trims white space. */
int wb_sink_keep(struct wb_extractor *x, struct wb_slice s, struct wb_slice *kept_out);
int wb_sink_keep_words(struct wb_extractor *x, struct wb_slice s, size_t max, struct wb_slice *kept_out);

/* The same as wb_sink_keep_words(), for text that must be decoded first (how: enum wb_token_decode). */
int wb_sink_keep_raw_words(struct wb_extractor *x, struct wb_slice raw, unsigned how, size_t max,
                           struct wb_slice *kept_out);

/*
 * Adds a link. The module sets everything except url; the slices must stay valid until the next page.
 * The sink trims href and resolves url. Beyond WB_EXTRACT_LINKS_MAX (or WB_SINK_URL_BYTES_MAX), the
 * link is only counted; if links are not wanted, nothing happens. *link_out (link_out may be NULL) is
 * the number of the link, or SIZE_MAX if it was not kept; the anchor of x->links[number] may be set
 * later.
 */
int wb_sink_link(struct wb_extractor *x, const struct wb_extract_link *link, size_t *link_out);

/*
 * Adds a fact, or replaces the value of the fact of this name. Both slices must stay valid until the next page. Facts
 * beyond the limits of extract.h, and values of nothing, are dropped.
 */
int wb_sink_fact(struct wb_extractor *x, struct wb_slice name, struct wb_slice value);

/* A date of a document: 0, which means nothing, unless it is one of the years 1 to 9999. */
int64_t wb_sink_time(int64_t time_ms);

/* How many bytes a resolved URL is counted as: resolving takes as long as the base, even if the result is short. */
static inline size_t wb_sink_cost(const struct wb_extractor *x, struct wb_slice url)
{
    return url.len > x->base.href.len ? url.len : x->base.href.len;
}

/* Resolves href against x->base; *url_out is empty if it is not a URL, and is valid until the next page. */
int wb_sink_resolve(struct wb_extractor *x, struct wb_slice href, struct wb_slice *url_out);

/* Changes the base for all further links; href is resolved against the present base, and ignored if it is not a URL. */
int wb_sink_base(struct wb_extractor *x, struct wb_slice href);

/* ---- texts: language (language.cc), fingerprint (simhash.c), directives (robotstag.c) ------------ */

/* Guesses the language of UTF-8 text: an ISO 639-1 code (639-3 if there is none); "" if unsure. Static text. */
const char *wb_language_of(struct wb_slice utf8);

/* 64-bit SimHash over the 3-word shingles of UTF-8 text, ignoring case; 0 if there is no word. */
uint64_t wb_simhash_of(struct wb_slice utf8);

/*
 * Parses "index, NoFollow" or "none" into a set of enum wb_robotstag. In an X-Robots-Tag header, a
 * part may be meant for one agent only ("otherbot: nofollow"). Such a part counts if it names
 * `agent` (in any case); if agent is empty, it never counts.
 */
unsigned wb_robotstag_parse(struct wb_slice value, struct wb_slice agent);

/* ---- what bytes without a media type are (sniff.c) ------------------------------------------- */

/* The media type of bytes for which no type is given. Static text. */
struct wb_slice wb_sniff_type(struct wb_slice bytes);

/*
 * The name of the first element, after white space, comments, <?...?> and <!...>; empty if something
 * else comes first.
 */
struct wb_slice wb_sniff_root(struct wb_slice bytes);

/* True if this is the root element of a feed or a sitemap. */
bool wb_sniff_is_feed(struct wb_slice root);

/* ---- style sheets (csslinks.c) ------------------------------------------------------------------ */

/* Takes what a style sheet needs as links of the page. sheet must stay valid until the next page. */
int wb_css_links(struct wb_extractor *x, struct wb_slice sheet);

/* ---- scripts (scriptlinks.c) -------------------------------------------------------------------- */

/* Takes what a script may load as links of the page. text must stay valid until the next page. */
int wb_script_links(struct wb_extractor *x, struct wb_slice text);

#endif
