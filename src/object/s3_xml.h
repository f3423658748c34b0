/*
 * s3_xml.h - the XML of S3's answers, as events.
 *
 *   <a>1<b>2</b></a>   ->   BEGIN a, TEXT 1, BEGIN b, TEXT 2, END b, END a, OVER
 *
 * Only what such answers need: elements, text, entities for characters, CDATA. Attributes, comments and processing
 * instructions are skipped, prefixes of names are cut off. Document types are refused, so there are no entities to
 * expand.
 */
#ifndef WB_OBJECT_S3_XML_H
#define WB_OBJECT_S3_XML_H

#include "base/buf.h"

enum { WB_S3_XML_DEPTH_MAX = 16 };

enum wb_s3_xml_event { WB_S3_XML_BEGIN, WB_S3_XML_TEXT, WB_S3_XML_END, WB_S3_XML_OVER };

struct wb_s3_xml {
    struct wb_slice rest;
    struct wb_slice open[WB_S3_XML_DEPTH_MAX]; /* the elements around the place, from the outermost; without prefixes */
    size_t depth;
    struct wb_slice ended; /* the element of the last END */
    struct wb_buf text;    /* of the last TEXT */
    bool closing;          /* <a/> was read, and its end was not reported yet */
    bool any;              /* there was an element */
};

void wb_s3_xml_init(struct wb_s3_xml *xml, struct wb_slice text);
void wb_s3_xml_release(struct wb_s3_xml *xml);

/*
 * Finds the next event: an enum wb_s3_xml_event, or WB_E_PROTO if this is not such XML. After BEGIN the element is the
 * last one of `open`, after END it is `ended`. TEXT is in `text`, decoded; one text may come in several events.
 */
int wb_s3_xml_next(struct wb_s3_xml *xml);

/* Whether these elements, from the outermost, and no others are open: "Error/Code". */
bool wb_s3_xml_inside(const struct wb_s3_xml *xml, const char *elements);

#endif
