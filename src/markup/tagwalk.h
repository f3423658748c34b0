/*
 * tagwalk.h - what of a document is markup: the encoding in which tags can be found, where svg and math are open, and
 * a walk through all tags for those who copy a document with changes.
 */
#ifndef WB_MARKUP_TAGWALK_H
#define WB_MARKUP_TAGWALK_H

#include "base/buf.h"
#include "markup/htmltag.h"

/* ---- the walk ---------------------------------------------------------------------------- */

/*
 * Walks through a document. Each token borrows from the document: names, values and text are parts of it, so their
 * addresses say where they are. A new document may begin at any time.
 */
struct wb_tagwalk;
int wb_tagwalk_new(struct wb_tagwalk **walk_out);
void wb_tagwalk_free(struct wb_tagwalk *walk);
void wb_tagwalk_begin(struct wb_tagwalk *walk, struct wb_slice document, bool xml);

/* Reads the next token. It is valid until the next call; at the end its kind is WB_TOKEN_NONE. */
const struct wb_tokenizer *wb_tagwalk_next(struct wb_tagwalk *walk);

/* True if the token is in svg or math, and so is the start tag of either. */
bool wb_tagwalk_is_foreign(const struct wb_tagwalk *walk);

/* ---- encodings --------------------------------------------------------------------------- */

/*
 * The document as bytes in which each byte below 0x80 is a character of ASCII, so that tags can be found in them: the
 * body itself if its encoding is UTF-8 or has one byte per character, otherwise the body in UTF-8 (in mem, cut at
 * WB_PAGE_MAX_BYTES). charset is what wb_charset_of() returns; *charset_out is that of the bytes. Static text.
 */
int wb_tagwalk_bytes(const char *charset, struct wb_slice body, struct wb_buf *mem, struct wb_slice *bytes_out,
                    const char **charset_out);

/* A part of such bytes as UTF-8. Nothing is copied if the part is the same in UTF-8; otherwise it is in mem. */
int wb_tagwalk_utf8(const char *charset, struct wb_slice part, struct wb_buf *mem, struct wb_slice *utf8_out);

/* The encoding of a style sheet: BOM, transport, @charset, or a guess. */
const char *wb_tagwalk_css_charset(struct wb_slice sheet, struct wb_slice transport);

/* ---- svg and math ------------------------------------------------------------------------ */

/* Which parts of a document are not HTML. The tokenizer must know: CDATA sections exist only there. */
struct wb_foreign {
    uint64_t bits;  /* a stack, the innermost lowest: 1 inside svg or math, 0 in HTML inside that */
    unsigned depth;
    bool xml;       /* the document is XHTML: any <x/> is empty, and CDATA is allowed everywhere */
};

static inline bool wb_foreign_in(const struct wb_foreign *f)
{
    return f->depth > 0 && f->bits & 1;
}

/* At the front of a document. */
void wb_foreign_init(struct wb_foreign *f, struct wb_tokenizer *t, bool xml);

/* Enters svg or math, or HTML inside them, at a start tag that is not self-closing. */
void wb_foreign_push(struct wb_foreign *f, struct wb_tokenizer *t, bool foreign);

/* A start tag inside svg or math. Returns false if it belongs to HTML and has therefore ended svg and math. */
bool wb_foreign_start(struct wb_foreign *f, struct wb_tokenizer *t, enum wb_tag tag);

/* An end tag while svg or math is open: leaves them, or the HTML inside them. */
void wb_foreign_end(struct wb_foreign *f, struct wb_tokenizer *t, enum wb_tag tag);

#endif
