/*
 * xml.h - private to page: XML as a run of tags and text.
 *
 * Forgiving: broken markup never stops it, and what stands in no tag is text. A
 * token borrows from the document, as written; references are decoded where the
 * caller asks for it. No stack, no memory, one pass.
 */
#ifndef WB_EXTRACT_XML_H
#define WB_EXTRACT_XML_H

#include "base/buf.h"

struct wb_xml {
    const char *at, *end;
    bool no_quote[2]; /* there is no more '"', '\'' in what is left */
};

enum wb_xml_kind { WB_XML_OPEN = 1, WB_XML_CLOSE, WB_XML_TEXT };

struct wb_xml_token {
    enum wb_xml_kind kind;
    struct wb_slice prefix, name; /* of a tag: "atom:link" is "atom" and "link" */
    struct wb_slice attributes;   /* of an opening tag: all of them, for wb_xml_attribute() */
    bool empty;                   /* an opening tag that is its own end: <x/> */
    struct wb_slice text;
    bool coded;                   /* the text has '&' in it; never so in CDATA */
};

void wb_xml_init(struct wb_xml *xml, struct wb_slice utf8);

/* False at the end. Comments, processing instructions and the document type are passed over. */
bool wb_xml_next(struct wb_xml *xml, struct wb_xml_token *token_out);

/* The value of an attribute as written; false where there is none. prefix: "" or its own, such as "xml". */
bool wb_xml_attribute(const struct wb_xml_token *token, const char *prefix, const char *name, struct wb_slice *value_out);

/* Whether a tag has that name, in any case. */
bool wb_xml_is(const struct wb_xml_token *token, const char *name);

/* Appends text with references decoded: XML's five and numbers, others stay as they are. Never longer than text. */
int wb_xml_decode(struct wb_slice text, struct wb_buf *out);

/* ---- text that may come in pieces --------------------------------------------------------- */

/* A part of the document where it came as one piece without references, a copy otherwise. */
struct wb_xml_text {
    struct wb_slice piece;
    struct wb_buf joined;
    bool copied;
};

#define WB_XML_TEXT_INIT ((struct wb_xml_text){.piece = {"", 0}})

void wb_xml_text_clear(struct wb_xml_text *text);

/* Adds a token's text; nothing once there are more than max bytes. */
int wb_xml_text_add(struct wb_xml_text *text, const struct wb_xml_token *token, size_t max);

/* Without white space and control characters at both ends, which no URL has there. */
struct wb_slice wb_xml_trim(struct wb_slice s);

/* Trimmed; valid until the next change. */
struct wb_slice wb_xml_text_get(const struct wb_xml_text *text);
void wb_xml_text_release(struct wb_xml_text *text);

/* ---- dates -------------------------------------------------------------------------------- */

/* W3CDTF (a year alone, too) or RFC 822, as sitemaps and feeds write them. */
bool wb_xml_date(struct wb_slice text, int64_t *time_ms_out);

#endif
