/*
 * extract.h - the door of extract: finds out what is in a page.
 *
 *   bytes -> encoding -> UTF-8 -> module for the media type -> struct wb_extract
 *                                 (html, text, xml)            text, links, facts,
 *                                                              language, fingerprint
 *
 * One extractor is reused for many pages and belongs to one thread; what it returns is valid until
 * its next call. Time is linear in the input and memory is bounded by the limits below, whatever the
 * bytes are. To add a module, for PDF say, read module.h. Why it works this way:
 * docs/design/0006-pages.md.
 */
#ifndef WB_EXTRACT_EXTRACT_H
#define WB_EXTRACT_EXTRACT_H

#include "page/page.h"

/* ---- what is in a page ------------------------------------------------------------------ */

/* The element that a link comes from. */
enum wb_extract_tag {
    WB_EXTRACT_LINK_A = 1,
    WB_EXTRACT_LINK_AREA,
    WB_EXTRACT_LINK_LINK,
    WB_EXTRACT_LINK_IFRAME,
    WB_EXTRACT_LINK_FRAME,
    WB_EXTRACT_LINK_IMG,     /* src, and each candidate of srcset */
    WB_EXTRACT_LINK_SOURCE,  /* srcset of <source> */
    WB_EXTRACT_LINK_FORM,
    WB_EXTRACT_LINK_META,    /* refresh */
    WB_EXTRACT_LINK_FEED,    /* an entry of RSS or Atom */
    WB_EXTRACT_LINK_SITEMAP, /* a loc of a sitemap */
    /* Only if WB_EXTRACT_NEEDS is wanted: */
    WB_EXTRACT_LINK_SCRIPT,  /* src of <script> */
    WB_EXTRACT_LINK_MEDIA,   /* sound, video, subtitles, plug-ins: video, audio, source, track, embed, object */
    WB_EXTRACT_LINK_STYLE = 16, /* a style sheet or a font: <link rel=stylesheet>, @import, @font-face. 14 is taken:
                                   WB_PAGELINK_TAG_SITEMAP; and 15 stands for a second byte in the journal */
    WB_EXTRACT_LINK_IMAGE,   /* icons, posters, backgrounds, and url() in style sheets and style attributes */
    WB_EXTRACT_LINK_END,
};

/* What a page needs in order to be displayed. A set of bits. */
enum wb_extract_need {
    WB_EXTRACT_NEED_IMAGES = 1 << 0,
    WB_EXTRACT_NEED_STYLES = 1 << 1,
    WB_EXTRACT_NEED_SCRIPTS = 1 << 2,
    WB_EXTRACT_NEED_MEDIA = 1 << 3,
};

/* Which need a link of this kind fills; 0: none, it leads elsewhere. */
unsigned wb_extract_need(unsigned tag);

/* True if this is the type of a file that is no page, but needs others: a style sheet or a script. */
bool wb_extract_is_needy(struct wb_slice type);

/* The media type of bytes that came without one; empty: they show none. Static text. */
struct wb_slice wb_extract_sniff(struct wb_slice bytes);

/* True if a link of this kind leads to a page for people: not to an image or a style sheet, and not to a form. */
bool wb_extract_leads_on(unsigned tag);

const char *wb_extract_tag_name(enum wb_extract_tag tag); /* "a", "area", ... */

enum wb_extract_rel {
    WB_EXTRACT_REL_NOFOLLOW = 1 << 0,
    WB_EXTRACT_REL_CANONICAL = 1 << 1,
    WB_EXTRACT_REL_ALTERNATE = 1 << 2,
    WB_EXTRACT_REL_FEED = 1 << 3,      /* alternate, and its type is RSS or Atom */
    WB_EXTRACT_REL_STYLESHEET = 1 << 4,
    WB_EXTRACT_REL_INDEX = 1 << 5,     /* in a sitemap index: the target is another sitemap */
    WB_EXTRACT_REL_ICON = 1 << 6,      /* icon, apple-touch-icon, mask-icon */
    WB_EXTRACT_REL_PRELOAD = 1 << 7,   /* preload or modulepreload */
};

struct wb_extract_link {
    uint8_t tag;            /* enum wb_extract_tag */
    uint8_t rels;           /* enum wb_extract_rel */
    struct wb_slice href;   /* as written, but with entities decoded and outer white space removed */
    struct wb_slice url;    /* resolved (WHATWG href, with its fragment); empty if it is not a URL */
    struct wb_slice anchor; /* the text inside, white space collapsed, or the alt of an image; at most
                               WB_EXTRACT_ANCHOR_MAX bytes. A single blank beside a tag is kept */
    struct wb_slice rel;    /* the attribute as written */
    int64_t modified_ms;    /* the lastmod of a sitemap or feed entry; 0 if it has none */
};

/* What a part of the text is. A part without any of these is navigation, a footer or the like. */
enum wb_extract_span_flags {
    WB_EXTRACT_SPAN_HEADING = 1 << 0, /* inside <h1> to <h6> */
    WB_EXTRACT_SPAN_MAIN = 1 << 1,    /* part of the main text */
};

struct wb_extract_span {
    uint32_t begin, end; /* in the text; the '\n' before a block belongs to the block */
    uint32_t flags;      /* enum wb_extract_span_flags */
};

/* What a page says besides: "width" is "640". Names are letters, digits, '_', '-' and '.', and no two are equal. */
struct wb_extract_fact {
    struct wb_slice name, value;
};

#define WB_EXTRACT_FACTS_MAX 64u         /* per page; names have at most 64 bytes, values at most 4096 */
#define WB_EXTRACT_ANCHOR_MAX 512
#define WB_EXTRACT_LINKS_MAX (1u << 16)  /* per page; further links are only counted (sitemaps have 50,000) */
#define WB_EXTRACT_TEXT_MAX (8u << 20)   /* longer text is cut off */

/* ---- directives for robots (robotstag.c) ------------------------------------------------ */

enum wb_robotstag {
    WB_ROBOTSTAG_NOINDEX = 1 << 0,
    WB_ROBOTSTAG_NOFOLLOW = 1 << 1,
    WB_ROBOTSTAG_NOARCHIVE = 1 << 2,
    WB_ROBOTSTAG_NOSNIPPET = 1 << 3,
};

/*
 * What all X-Robots-Tag headers of a response head say together, as a set of enum wb_robotstag. A part
 * that is meant for one agent only ("otherbot: nofollow") counts if it names `agent`, in any case.
 */
unsigned wb_robotstag_of_head(struct wb_slice head, struct wb_slice agent);

/* ---- extracting --------------------------------------------------------------------------- */

struct wb_extract {
    const char *module;          /* "html", "text", "xml", "css", "script", "image", "office", "pdf", or the name of
                                    a user's; "" if no module accepts the type */
    const char *module_error;    /* "failed": a document is damaged, or not what its type says. "crash", "time",
                                    "memory": what a module in a process of its own came to. Otherwise "" */
    const char *charset;         /* the encoding, by the standard's name; "" for binary types */
    struct wb_slice title, description;
    struct wb_slice canonical;   /* resolved; empty if there is none */
    struct wb_slice base;        /* the URL against which links were resolved */
    struct wb_slice lang;        /* what the page says (<html lang>), as written */
    const char *language;        /* a guess from the text, as an ISO 639-1 code; "" if unsure */
    struct wb_slice robots;      /* the content of every <meta name=robots>, joined by ", " */
    unsigned robots_flags;       /* the same as a set of enum wb_robotstag */
    int64_t published_ms, modified_ms; /* what the page says (meta, JSON-LD, <time>); 0 if nothing */
    struct wb_slice author;      /* what the page says (meta, JSON-LD), several joined by ", "; empty if nothing */
    struct wb_slice type;        /* what the page says it is: "NewsArticle", "article"; empty if nothing */
    struct wb_slice text;        /* visible text in reading order, white space collapsed, '\n' between blocks */
    struct wb_slice main_text;   /* the same without navigation, headers, footers and lists of links */
    const struct wb_extract_span *spans; /* all of the text, in order; neighbours have different flags */
    size_t span_count;
    uint8_t linked;              /* percent of the text without navigation that is inside links; 0 if nobody looked */
    uint64_t simhash;            /* of the main text, or of the text if there is no main text; 0: no words */
    const struct wb_extract_link *links; /* in document order */
    size_t link_count;
    const struct wb_extract_fact *facts; /* in the order in which they were found */
    size_t fact_count;
    uint64_t links_left_out;     /* how many exceeded WB_EXTRACT_LINKS_MAX */
    bool text_cut;               /* the text exceeded WB_EXTRACT_TEXT_MAX */
    bool sitemap;                /* the links are those of a sitemap or sitemap index... */
    bool feed;                   /* ...or of an RSS or Atom feed */
};

/* What to extract; facts are always extracted. */
enum wb_extract_wants {
    WB_EXTRACT_LINKS = 1 << 0,
    WB_EXTRACT_TEXT = 1 << 1,     /* text, main text and spans */
    WB_EXTRACT_LANGUAGE = 1 << 2, /* needs the text, but does not return it */
    WB_EXTRACT_SIMHASH = 1 << 3,  /* needs the text, but does not return it */
    WB_EXTRACT_NEEDS = 1 << 4,    /* with LINKS: also links to scripts, media, and whatever style sheets name */
    WB_EXTRACT_ALL = (1 << 4) - 1, /* what most callers want: everything but NEEDS */
};

struct wb_extract_input {
    struct wb_slice url;     /* of the page, absolute */
    struct wb_slice type;    /* media type in lower case, without parameters; if empty, the bytes decide */
    struct wb_slice charset; /* what the transport says; empty if nothing */
    struct wb_slice body;
    unsigned wants;          /* enum wb_extract_wants */
};

struct wb_extractor;
int wb_extractor_new(struct wb_extractor **extractor_out);
void wb_extractor_free(struct wb_extractor *extractor);

/* Any bytes are a page: this fails only with WB_E_NOMEM. Everything in *extract_out is valid until the next call. */
int wb_extract(struct wb_extractor *extractor, const struct wb_extract_input *input, struct wb_extract *extract_out);

/*
 * Extracts the links of bytes that were fetched as a sitemap, whatever their media type: they are
 * unpacked if they are gzip (50 MiB at most), and the content decides whether this is a sitemap, a
 * feed or a list of URLs. Anything else has no links.
 */
int wb_sitemap_extract(struct wb_extractor *extractor, struct wb_slice url, struct wb_slice bytes,
                       struct wb_extract *extract_out);

/* ---- modules of users (foreign.c) ------------------------------------------------------------- */

#define WB_EXTRACT_MODULES_MAX 16u

/* A module of a user: see webbase/module.h. */
struct wb_extract_module {
    char *name, *file, *argument;
    char *types; /* "image/png,text/x-note" */
};

/* What a page may cost a module in a process of its own, PDF included. */
struct wb_extract_limits {
    unsigned time_s;
    uint64_t memory_bytes;
};

/*
 * From now on, extractors of this process, and of processes that it forks, use these modules. The first that names a
 * type gets its pages, and all of them come before what is built in. Call it before there are extractors.
 */
int wb_extract_use(const struct wb_extract_module *modules, size_t count, const struct wb_extract_limits *limits);

/* How many there are, and one of them. */
size_t wb_extract_using(void);
const struct wb_extract_module *wb_extract_module(size_t module);

/* How many pages these processes gave to a module since, and how many of those ended in an error. */
void wb_extract_used(size_t module, uint64_t *pages_out, uint64_t *errors_out);

/* Starts a module and ends it. *types_out, to be freed, is what it reads; the error names the file. */
int wb_extract_module_check(const struct wb_extract_module *module, const struct wb_extract_limits *limits,
                            char **types_out);

/* ---- what is remembered of a page (factfinder.c) -------------------------------------------- */

struct wb_link_slot;

/* Working memory for reading one page after another, in one thread. */
struct wb_factfinder {
    struct wb_extractor *extractor;
    struct wb_pagelink *links;  /* of the current page, each target once */
    size_t link_cap;
    struct wb_link_slot *slots; /* a hash table that finds a link by its target */
    size_t links_max;           /* a page's first links are remembered, no more; 0: all */
    bool needs;                 /* what the current page needs was extracted, too */
    uint32_t stamp;             /* identifies the current page: slots with another stamp are free */
};

#define WB_FACTFINDER_INIT ((struct wb_factfinder){.extractor = NULL})

/* Release it even if init failed. */
int wb_factfinder_init(struct wb_factfinder *finder);
void wb_factfinder_release(struct wb_factfinder *finder);

/*
 * Extracts a page and finds what is remembered of its content. agent is the robots token that selects X-Robots-Tag
 * headers. wants is WB_EXTRACT_LINKS, with WB_EXTRACT_NEEDS if the crawl fetches such things, or 0 to leave out the
 * links. facts_out and extract_out borrow from page and finder, until the next call. Fails only with WB_E_NOMEM.
 */
int wb_factfinder_read(struct wb_factfinder *finder, const struct wb_page *page, struct wb_slice agent, unsigned wants,
                       struct wb_pagefacts *facts_out, struct wb_extract *extract_out);

/*
 * Finds the links of an extract, such as that of a sitemap, as they are remembered. nofollow applies to all of them.
 * *links_out borrows as above.
 */
int wb_factfinder_links(struct wb_factfinder *finder, const struct wb_extract *extract, bool nofollow,
                        const struct wb_pagelink **links_out, size_t *count_out);

/* ---- facts -------------------------------------------------------------------------------- */

struct wb_json;

/* Adds "facts":{NAME:VALUE}: a value that is a number as such, others as strings; nothing if there are no facts. */
void wb_extract_json_facts(struct wb_json *j, const struct wb_extract *extract);

/* True if a value is a number as JSON writes one; *number_out (may be NULL) is its value. */
bool wb_extract_number(struct wb_slice value, double *number_out);

/* ---- fingerprints ------------------------------------------------------------------------- */

/* In how many bits two SimHashes differ: similar texts differ in few. */
static inline unsigned wb_simhash_distance(uint64_t a, uint64_t b)
{
    return (unsigned)__builtin_popcountll(a ^ b);
}

#endif
