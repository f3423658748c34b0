/* htmltag.h - the elements of HTML that mean something to us, and how to find them by name. */
#ifndef WB_MARKUP_HTMLTAG_H
#define WB_MARKUP_HTMLTAG_H

#include "markup/tokenizer.h"

enum wb_tag_flags {
    WB_TAG_BLOCK = 1 << 0,   /* begins and ends a block of text */
    WB_TAG_CELL = 1 << 1,    /* is separated by a blank */
    WB_TAG_TRACKED = 1 << 2, /* is kept on the stack of open elements */
    WB_TAG_BOILER = 1 << 3,  /* contains what is around the content: navigation, header, footer */
    WB_TAG_MAIN = 1 << 4,    /* contains the content */
    WB_TAG_BREAKOUT = 1 << 5, /* ends svg and math, because it cannot be inside them */
    WB_TAG_SILENT = 1 << 6,  /* its content is not markup, and not visible text either */
    WB_TAG_SPECIAL = 1 << 7, /* extract (html.c) does something at its start */
};

/* The table of elements: identifier, name, flags, and the mode in which the tokenizer reads its content. */
#define WB_TAGS(X)                                                                        \
    X(A, "a", SPECIAL, DATA)                                                              \
    X(ADDRESS, "address", BLOCK, DATA)                                                    \
    X(ANNOTATION_XML, "annotation-xml", 0, DATA)                                          \
    X(AREA, "area", SPECIAL, DATA)                                                        \
    X(ARTICLE, "article", BLOCK | TRACKED | MAIN, DATA)                                   \
    X(ASIDE, "aside", BLOCK | TRACKED | BOILER, DATA)                                     \
    X(AUDIO, "audio", 0, DATA)                                                            \
    X(B, "b", BREAKOUT, DATA)                                                             \
    X(BASE, "base", SPECIAL, DATA)                                                        \
    X(BIG, "big", BREAKOUT, DATA)                                                         \
    X(BLOCKQUOTE, "blockquote", BLOCK | BREAKOUT, DATA)                                   \
    X(BODY, "body", BLOCK | BREAKOUT, DATA)                                               \
    X(BR, "br", BLOCK | BREAKOUT, DATA)                                                   \
    X(BUTTON, "button", CELL, DATA)                                                       \
    X(CAPTION, "caption", BLOCK, DATA)                                                    \
    X(CENTER, "center", BLOCK | BREAKOUT, DATA)                                           \
    X(CODE, "code", BREAKOUT, DATA)                                                       \
    X(DD, "dd", BLOCK | BREAKOUT, DATA)                                                   \
    X(DESC, "desc", 0, DATA)                                                              \
    X(DETAILS, "details", BLOCK, DATA)                                                    \
    X(DIALOG, "dialog", BLOCK | TRACKED | BOILER, DATA)                                   \
    X(DIR, "dir", BLOCK, DATA)                                                            \
    X(DIV, "div", BLOCK | TRACKED | BREAKOUT, DATA)                                       \
    X(DL, "dl", BLOCK | BREAKOUT, DATA)                                                   \
    X(DT, "dt", BLOCK | BREAKOUT, DATA)                                                   \
    X(EM, "em", BREAKOUT, DATA)                                                           \
    X(EMBED, "embed", BREAKOUT, DATA)                                                     \
    X(FIELDSET, "fieldset", BLOCK, DATA)                                                  \
    X(FIGCAPTION, "figcaption", BLOCK, DATA)                                              \
    X(FIGURE, "figure", BLOCK | TRACKED, DATA)                                            \
    X(FOOTER, "footer", BLOCK | TRACKED | BOILER, DATA)                                   \
    X(FOREIGNOBJECT, "foreignobject", 0, DATA)                                            \
    X(FORM, "form", BLOCK | TRACKED | SPECIAL, DATA)                                      \
    X(FRAME, "frame", SPECIAL, DATA)                                                      \
    X(FRAMESET, "frameset", BLOCK, DATA)                                                  \
    X(H1, "h1", BLOCK | BREAKOUT, DATA)                                                   \
    X(H2, "h2", BLOCK | BREAKOUT, DATA)                                                   \
    X(H3, "h3", BLOCK | BREAKOUT, DATA)                                                   \
    X(H4, "h4", BLOCK | BREAKOUT, DATA)                                                   \
    X(H5, "h5", BLOCK | BREAKOUT, DATA)                                                   \
    X(H6, "h6", BLOCK | BREAKOUT, DATA)                                                   \
    X(HEAD, "head", BLOCK | BREAKOUT, DATA)                                               \
    X(HEADER, "header", BLOCK | TRACKED | BOILER, DATA)                                   \
    X(HGROUP, "hgroup", BLOCK, DATA)                                                      \
    X(HR, "hr", BLOCK | BREAKOUT, DATA)                                                   \
    X(HTML, "html", BLOCK | SPECIAL, DATA)                                                \
    X(I, "i", BREAKOUT, DATA)                                                             \
    X(IFRAME, "iframe", SILENT | SPECIAL, RAWTEXT)                                        \
    X(IMAGE, "image", 0, DATA)                                                            \
    X(IMG, "img", BREAKOUT | SPECIAL, DATA)                                               \
    X(INPUT, "input", CELL, DATA)                                                         \
    X(LEGEND, "legend", BLOCK, DATA)                                                      \
    X(LI, "li", BLOCK | BREAKOUT, DATA)                                                   \
    X(LINK, "link", SPECIAL, DATA)                                                        \
    X(LISTING, "listing", BLOCK | BREAKOUT, DATA)                                         \
    X(MAIN, "main", BLOCK | TRACKED | MAIN, DATA)                                         \
    X(MATH, "math", SPECIAL, DATA)                                                        \
    X(MENU, "menu", BLOCK | TRACKED | BOILER | BREAKOUT, DATA)                            \
    X(META, "meta", BREAKOUT | SPECIAL, DATA)                                             \
    X(METADATA, "metadata", 0, DATA)                                                      \
    X(MI, "mi", 0, DATA)                                                                  \
    X(MN, "mn", 0, DATA)                                                                  \
    X(MO, "mo", 0, DATA)                                                                  \
    X(MS, "ms", 0, DATA)                                                                  \
    X(MTEXT, "mtext", 0, DATA)                                                            \
    X(NAV, "nav", BLOCK | TRACKED | BOILER, DATA)                                         \
    X(NOBR, "nobr", BREAKOUT, DATA)                                                       \
    X(NOEMBED, "noembed", SILENT, RAWTEXT)                                                \
    X(NOFRAMES, "noframes", SILENT, RAWTEXT)                                              \
    X(OBJECT, "object", 0, DATA)                                                          \
    X(OL, "ol", BLOCK | TRACKED | BREAKOUT, DATA)                                         \
    X(OPTGROUP, "optgroup", BLOCK, DATA)                                                  \
    X(OPTION, "option", BLOCK, DATA)                                                      \
    X(P, "p", BLOCK | BREAKOUT, DATA)                                                     \
    X(PLAINTEXT, "plaintext", BLOCK, PLAINTEXT)                                           \
    X(PRE, "pre", BLOCK | BREAKOUT, DATA)                                                 \
    X(RB, "rb", SPECIAL, DATA)                                                            \
    X(RP, "rp", SPECIAL, DATA)                                                            \
    X(RT, "rt", SPECIAL, DATA)                                                            \
    X(RTC, "rtc", SPECIAL, DATA)                                                          \
    X(RUBY, "ruby", BREAKOUT | SPECIAL, DATA)                                             \
    X(S, "s", BREAKOUT, DATA)                                                             \
    X(SCRIPT, "script", SILENT | SPECIAL, SCRIPT)                                         \
    X(SEARCH, "search", BLOCK | TRACKED | BOILER, DATA)                                   \
    X(SECTION, "section", BLOCK | TRACKED, DATA)                                          \
    X(SELECT, "select", BLOCK | TRACKED | BOILER, DATA)                                   \
    X(SMALL, "small", BREAKOUT, DATA)                                                     \
    X(SOURCE, "source", SPECIAL, DATA)                                                    \
    X(SPAN, "span", BREAKOUT, DATA)                                                       \
    X(STRIKE, "strike", BREAKOUT, DATA)                                                   \
    X(STRONG, "strong", BREAKOUT, DATA)                                                   \
    X(STYLE, "style", SILENT, RAWTEXT)                                                    \
    X(SUB, "sub", BREAKOUT, DATA)                                                         \
    X(SUMMARY, "summary", BLOCK, DATA)                                                    \
    X(SUP, "sup", BREAKOUT, DATA)                                                         \
    X(SVG, "svg", SPECIAL, DATA)                                                          \
    X(TABLE, "table", BLOCK | TRACKED | BREAKOUT, DATA)                                   \
    X(TBODY, "tbody", BLOCK, DATA)                                                        \
    X(TD, "td", CELL | TRACKED, DATA)                                                     \
    X(TEMPLATE, "template", SPECIAL, DATA)                                                \
    X(TEXTAREA, "textarea", CELL, RCDATA)                                                 \
    X(TFOOT, "tfoot", BLOCK, DATA)                                                        \
    X(TH, "th", CELL, DATA)                                                               \
    X(THEAD, "thead", BLOCK, DATA)                                                        \
    X(TIME, "time", SPECIAL, DATA)                                                        \
    X(TITLE, "title", SILENT | SPECIAL, RCDATA)                                           \
    X(TR, "tr", BLOCK, DATA)                                                              \
    X(TRACK, "track", 0, DATA)                                                            \
    X(TT, "tt", BREAKOUT, DATA)                                                           \
    X(U, "u", BREAKOUT, DATA)                                                             \
    X(UL, "ul", BLOCK | TRACKED | BREAKOUT, DATA)                                         \
    X(VAR, "var", BREAKOUT, DATA)                                                         \
    X(VIDEO, "video", 0, DATA)                                                            \
    X(XMP, "xmp", BLOCK, RAWTEXT)

enum wb_tag {
    WB_TAG_OTHER,
#define WB_TAG_ENUM(id, name, flags, mode) WB_TAG_##id##_,
    WB_TAGS(WB_TAG_ENUM)
#undef WB_TAG_ENUM
    WB_TAG_COUNT,
};

struct wb_tag_facts {
    const char *name;
    uint16_t flags; /* enum wb_tag_flags */
    uint8_t mode;   /* enum wb_token_mode */
};

/* Indexed by enum wb_tag; WB_TAG_OTHER has no flags. */
extern const struct wb_tag_facts wb_tag_facts[WB_TAG_COUNT];

/* A hash table that finds tags by the first eight bytes of their names. */
#define WB_TAG_SLOTS 512
struct wb_tag_index {
    struct {
        uint64_t word;
        uint8_t len, tag;
    } slots[WB_TAG_SLOTS];
};

void wb_tag_index_init(struct wb_tag_index *index);

/* Finds the tag of the start or end tag that the tokenizer has just read. */
enum wb_tag wb_tag_find(const struct wb_tag_index *index, const struct wb_tokenizer *t);

#endif
