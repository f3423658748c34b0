/*
 * extract.h - the door of extract: from a page's bytes to UTF-8, text, links,
 * facts, language and fingerprint.
 *
 *   bytes -> charset -> UTF-8 -> module by media type -> struct wb_extract
 *                                (html, text, xml: a file and a table row each)
 *
 * One extractor is reused for many pages and belongs to one thread; what it
 * returns is valid until its next call. Bounded: time linear in the input, memory
 * by the limits below, whatever the bytes.
 */
#ifndef WB_EXTRACT_EXTRACT_H
#define WB_EXTRACT_EXTRACT_H

#include "page/page.h"

/* ---- charset (charset.c) ------------------------------------------------------------ */

/*
 * The encoding of a document as the HTML standard finds it: a BOM, then the
 * transport's charset parameter (empty: none), then for HTML a prescan of the first 16 KiB for <meta> (the
 * standard looks at 1024 bytes and lets its parser find later ones), for XML its declaration, then a guess from the bytes (valid
 * UTF-8, UTF-16 without a BOM, the usual multi-byte encodings), then windows-1252. Returns the
 * standard's name in lower case ("windows-1252", "utf-8", "shift_jis"), static text.
 */
enum wb_charset_kind { WB_CHARSET_HTML, WB_CHARSET_XML, WB_CHARSET_TEXT };
const char *wb_charset_of(struct wb_slice bytes, struct wb_slice transport, enum wb_charset_kind kind);

/* The standard's name for a label ("latin1" -> "windows-1252"), or NULL. Static text. */
const char *wb_charset_by_label(struct wb_slice label);

/*
 * Bytes to UTF-8, a BOM dropped, what is malformed as U+FFFD. Where the bytes are
 * well-formed UTF-8 already nothing is copied and utf8_out is a part of bytes;
 * otherwise it lies in mem, which is cleared first. At most limit bytes come out.
 */
int wb_charset_decode(const char *charset, struct wb_slice bytes, size_t limit, struct wb_buf *mem, struct wb_slice *utf8_out);

/* ---- what is seen in a page ----------------------------------------------------------- */

enum wb_extract_tag {
    WB_EXTRACT_LINK_A = 1,
    WB_EXTRACT_LINK_AREA,
    WB_EXTRACT_LINK_LINK,
    WB_EXTRACT_LINK_IFRAME,
    WB_EXTRACT_LINK_FRAME,
    WB_EXTRACT_LINK_IMG,     /* src and each candidate of srcset */
    WB_EXTRACT_LINK_SOURCE,  /* srcset of <source> */
    WB_EXTRACT_LINK_FORM,
    WB_EXTRACT_LINK_META,    /* refresh */
    WB_EXTRACT_LINK_FEED,    /* an entry of RSS or Atom */
    WB_EXTRACT_LINK_SITEMAP, /* a loc of a sitemap */
};
const char *wb_extract_tag_name(enum wb_extract_tag tag); /* "a", "area", ... */

enum wb_extract_rel {
    WB_EXTRACT_REL_NOFOLLOW = 1 << 0,
    WB_EXTRACT_REL_CANONICAL = 1 << 1,
    WB_EXTRACT_REL_ALTERNATE = 1 << 2,
    WB_EXTRACT_REL_FEED = 1 << 3,      /* alternate, of type RSS or Atom */
    WB_EXTRACT_REL_STYLESHEET = 1 << 4,
    WB_EXTRACT_REL_INDEX = 1 << 5,     /* of a sitemap index: the target is another sitemap */
};

struct wb_extract_link {
    uint8_t tag;            /* enum wb_extract_tag */
    uint8_t rels;           /* enum wb_extract_rel */
    struct wb_slice href;   /* as written, entities decoded, outer white space trimmed */
    struct wb_slice url;    /* resolved (WHATWG href, fragment kept); empty: it is no URL */
    struct wb_slice anchor; /* text inside, white space collapsed, or an image's alt; at most WB_EXTRACT_ANCHOR_MAX bytes. A lone blank beside a tag is kept */
    struct wb_slice rel;    /* the attribute as written */
    int64_t modified_ms;    /* of a sitemap or feed entry: lastmod; 0: not told */
};

#define WB_EXTRACT_ANCHOR_MAX 512
#define WB_EXTRACT_LINKS_MAX (1u << 16)          /* of a page; more are counted, not kept (sitemaps have 50,000) */
#define WB_EXTRACT_TEXT_MAX (8u << 20)   /* of text kept */

enum wb_robotstag {
    WB_ROBOTSTAG_NOINDEX = 1 << 0,
    WB_ROBOTSTAG_NOFOLLOW = 1 << 1,
    WB_ROBOTSTAG_NOARCHIVE = 1 << 2,
    WB_ROBOTSTAG_NOSNIPPET = 1 << 3,
};

/*
 * Reads "index, NoFollow" or "none" into flags. In an X-Robots-Tag value a part may be meant
 * for one agent only ("otherbot: nofollow"): such parts count where it is agent (any case);
 * agent empty: they never do.
 */
unsigned wb_robotstag_parse(struct wb_slice value, struct wb_slice agent);

/* All X-Robots-Tag headers of a response head together. */
unsigned wb_robotstag_of_head(struct wb_slice head, struct wb_slice agent);

struct wb_extract {
    const char *module;          /* "html", "text", "xml"; "" where no module takes the type */
    const char *charset;         /* as found, the standard's name; "" for binary types */
    struct wb_slice title, description;
    struct wb_slice canonical;   /* resolved; empty: none */
    struct wb_slice base;        /* what links were resolved against */
    struct wb_slice lang;        /* as the page says (<html lang>), as written */
    const char *language;        /* as guessed from the text: ISO 639-1 code; "" where unsure */
    struct wb_slice robots;      /* content of <meta name=robots>, all of them joined by ", " */
    unsigned robots_flags;       /* of it, enum wb_robotstag */
    int64_t published_ms, modified_ms; /* as the page says (meta, JSON-LD, <time>); 0: not told */
    struct wb_slice author;      /* as the page says (meta, JSON-LD), names with ", " between them; empty: not told */
    struct wb_slice type;        /* what it says that it is: "NewsArticle", "article"; empty: not told */
    struct wb_slice text;        /* visible text in reading order, white space collapsed, '\n' between blocks */
    struct wb_slice main_text;   /* the same without navigation, headers, footers, lists of links */
    uint64_t simhash;            /* of the main text, or of the text where there is no main text; 0: no words */
    const struct wb_extract_link *links; /* in document order */
    size_t link_count;
    uint64_t links_left_out;     /* beyond WB_EXTRACT_LINKS_MAX */
    bool text_cut;               /* beyond WB_EXTRACT_TEXT_MAX */
    bool sitemap;                /* links are those of a sitemap or sitemap index */
    bool feed;                   /* ... of an RSS or Atom feed */
};

enum wb_extract_wants {
    WB_EXTRACT_LINKS = 1 << 0,
    WB_EXTRACT_TEXT = 1 << 1,     /* text and main text */
    WB_EXTRACT_LANGUAGE = 1 << 2, /* needs text */
    WB_EXTRACT_SIMHASH = 1 << 3,  /* needs text */
    WB_EXTRACT_ALL = (1 << 4) - 1,
};

struct wb_extract_input {
    struct wb_slice url;     /* of the page, absolute */
    struct wb_slice type;    /* media type without parameters, lower case; empty: sniffed */
    struct wb_slice charset; /* of the transport; empty: none */
    struct wb_slice body;
    unsigned wants;          /* enum wb_extract_wants */
};

struct wb_extractor;
int wb_extractor_new(struct wb_extractor **extractor_out);
void wb_extractor_free(struct wb_extractor *extractor);

/* Only WB_E_NOMEM is an error: any bytes are a page. Everything in extract_out is valid until the next call. */
int wb_extract(struct wb_extractor *extractor, const struct wb_extract_input *input, struct wb_extract *extract_out);

/* ---- parts of it that are useful alone ------------------------------------------------------ */

/*
 * Bytes that were asked for as a sitemap, whatever their media type: unpacked where they are
 * gzip (50 MiB at most), a sitemap, a feed or a text of URLs by looking. Of anything else there are no links.
 */
int wb_sitemap_extract(struct wb_extractor *extractor, struct wb_slice url, struct wb_slice bytes, struct wb_extract *extract_out);

/* ISO 639-1 code (or 639-3 where there is none) of UTF-8 text by its letters; "" where unsure. Static text. */
const char *wb_language_of(struct wb_slice utf8);

/* 64-bit SimHash over word 3-shingles of UTF-8 text, case folded; 0 where there is no word. */
uint64_t wb_simhash_of(struct wb_slice utf8);
static inline unsigned wb_simhash_distance(uint64_t a, uint64_t b)
{
    return (unsigned)__builtin_popcountll(a ^ b);
}

#endif
