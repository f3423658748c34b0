/*
 * xml.h - reads XML as a sequence of tags and text.
 *
 * It is lenient: broken markup never stops it, and whatever is not in a tag is text. A token borrows
 * from the document as written; references are decoded only if the caller asks for it. It makes one
 * pass, without a stack and without allocating.
 */
#ifndef WB_MARKUP_XML_H
#define WB_MARKUP_XML_H

#include "base/buf.h"

struct wb_xml {
    const char *at, *end;
    bool no_quote[2]; /* there is no further '"' (or '\'') in the rest of the document */
};

enum wb_xml_kind { WB_XML_OPEN = 1, WB_XML_CLOSE, WB_XML_TEXT };

struct wb_xml_token {
    enum wb_xml_kind kind;
    struct wb_slice prefix, name; /* of a tag: "atom:link" has "atom" and "link" */
    struct wb_slice attributes;   /* of an opening tag: all of them as written, for wb_xml_attribute() */
    bool empty;                   /* an opening tag that is also its end: <x/> */
    struct wb_slice text;
    bool coded;                   /* the text contains '&' and must be decoded; never in CDATA */
};

void wb_xml_init(struct wb_xml *xml, struct wb_slice utf8);

/* Reads the next token; false at the end. Skips comments, processing instructions and the document type. */
bool wb_xml_next(struct wb_xml *xml, struct wb_xml_token *token_out);

/* Finds the value of an attribute, as written; false if it is missing. prefix: "", or its prefix, such as "xml". */
bool wb_xml_attribute(const struct wb_xml_token *token, const char *prefix, const char *name,
                      struct wb_slice *value_out);

/* True if a tag has this name, in any case. */
bool wb_xml_is(const struct wb_xml_token *token, const char *name);

/* Appends text with XML's five references and numeric ones decoded; others stay. Never longer than the text. */
int wb_xml_decode(struct wb_slice text, struct wb_buf *out);

/* ---- text that may come in pieces --------------------------------------------------------- */

/* Collected text: a part of the document if it is one piece without references, otherwise a copy. */
struct wb_xml_text {
    struct wb_slice piece;
    struct wb_buf joined;
    bool copied;
};

#define WB_XML_TEXT_INIT ((struct wb_xml_text){.piece = {"", 0}})

void wb_xml_text_clear(struct wb_xml_text *text);

/* Adds the text of a token, unless there are more than max bytes already. */
int wb_xml_text_add(struct wb_xml_text *text, const struct wb_xml_token *token, size_t max);

/* Removes white space and control characters at both ends. */
struct wb_slice wb_xml_trim(struct wb_slice s);

/* The collected text, trimmed; valid until the next change. */
struct wb_slice wb_xml_text_get(const struct wb_xml_text *text);
void wb_xml_text_release(struct wb_xml_text *text);

/* ---- dates -------------------------------------------------------------------------------- */

/* Parses a date as sitemaps and feeds write it: W3CDTF (also a year alone) or RFC 822. */
bool wb_xml_date(struct wb_slice text, int64_t *time_ms_out);

#endif
