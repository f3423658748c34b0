/*
 * office.h - private to extract: documents that are ZIP files of XML parts.
 *
 *   office.c       the module: which format it is, which parts it has and in which order
 *   officepart.c   reads one part: its text, links and facts
 */
#ifndef WB_EXTRACT_OFFICE_H
#define WB_EXTRACT_OFFICE_H

#include "base/vec.h"
#include "extract/module.h"
#include "zipdir/zipdir.h"

#define WB_OFFICE_ENTRIES_MAX 20000u           /* of the ZIP file... */
#define WB_OFFICE_PARTS_MAX 4000u              /* ...that are read... */
#define WB_OFFICE_PART_MAX ((size_t)32 << 20)  /* ...bytes of one, inflated... */
#define WB_OFFICE_BYTES_MAX ((size_t)96 << 20) /* ...and of all together */

/* A name for something of the document: an id and what it stands for. */
struct wb_office_name {
    struct wb_slice id, target;
};

struct wb_office_names WB_VEC_OF(struct wb_office_name);

struct wb_office {
    struct wb_extractor *x;
    struct wb_file file; /* the document, in memory */
    struct wb_zipdir dir;
    struct wb_buf part;           /* the one under way */
    size_t bytes, parts;          /* read so far */
    struct wb_office_names links; /* of the part under way: id -> URL, in the order of ids */
    struct wb_buf decoded;
    struct {
        struct wb_slice href; /* empty: the text under way is in no link */
        const char *end;      /* the element that ends it */
        size_t begin;         /* in the text */
    } link;
};

/* How the elements of a format are read. Lists end with NULL; names are without prefixes. */
struct wb_office_words {
    const char *text;                           /* only what is in this element is text; NULL: everything */
    const char *const *blocks;                  /* these end a block; NULL: all but `inside` do */
    const char *const *inside;                  /* these are part of a line, if blocks is NULL */
    const char *const *gaps;                    /* these stand for a blank */
    const char *const *skipped;                 /* what is in these is no text */
    const char *link, *link_prefix, *link_name; /* the element of a link, and its attribute with the URL; NULL: by id */
};

/* ---- officepart.c -------------------------------------------------------------------------------- */

/* Loads a part into office->part. Returns 1 if it is there, 0 if it is missing, damaged or too large; or WB_E_NOMEM. */
int wb_office_load(struct wb_office *office, struct wb_slice name);
bool wb_office_has(const struct wb_office *office, const char *name);

/* These read the part that was loaded last. They fail only with WB_E_NOMEM. */
int wb_office_read_text(struct wb_office *office, const struct wb_office_words *words);
int wb_office_read_facts(struct wb_office *office, bool date_published);

/* Finds elements of a name with two attributes: id -> target, sorted by id. only: another attribute must be this. */
int wb_office_read_names(struct wb_office *office, const char *element, const char *id, const char *target,
                         const char *only, const char *value, struct wb_office_names *names_out);
const struct wb_office_name *wb_office_find_name(const struct wb_office_names *names, struct wb_slice id);

/* An attribute, decoded and valid until the next page; empty if it is missing. */
int wb_office_attribute(struct wb_office *office, const struct wb_xml_token *token, const char *prefix,
                        const char *name, struct wb_slice *value_out);

#endif
