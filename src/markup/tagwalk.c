/*
 * tagwalk.c - what of a document is markup: where svg and math are open (html.c needs that, too), and a walk through
 * all tags for callers who copy a document with changes.
 *
 * It never decides what a tag means, and changes nothing.
 */
#include "markup/tagwalk.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "markup/charset.h"
#include "markup/css.h"
#include "page/page.h"

/* ---- svg and math ------------------------------------------------------------------------ */

#define FOREIGN_DEPTH_MAX 63

void wb_foreign_init(struct wb_foreign *f, struct wb_tokenizer *t, bool xml)
{
    *f = (struct wb_foreign){0, 0, xml};
    t->foreign = xml;
}

/* Beyond FOREIGN_DEPTH_MAX levels, nothing changes. */
void wb_foreign_push(struct wb_foreign *f, struct wb_tokenizer *t, bool foreign)
{
    if (t->self_closing || f->depth == FOREIGN_DEPTH_MAX)
        return;
    f->bits = f->bits << 1 | foreign;
    f->depth++;
    t->foreign = foreign || f->xml;
}

static void pop_language(struct wb_foreign *f, struct wb_tokenizer *t)
{
    f->bits >>= 1;
    f->depth--;
    t->foreign = wb_foreign_in(f) || f->xml;
}

/* True for the elements of svg and math that contain HTML (the standard's integration points). */
static bool contains_html(enum wb_tag tag)
{
    switch (tag) {
    case WB_TAG_FOREIGNOBJECT_:
    case WB_TAG_ANNOTATION_XML_:
    case WB_TAG_MI_:
    case WB_TAG_MN_:
    case WB_TAG_MO_:
    case WB_TAG_MS_:
    case WB_TAG_MTEXT_:
        return true;
    default:
        return false;
    }
}

bool wb_foreign_start(struct wb_foreign *f, struct wb_tokenizer *t, enum wb_tag tag)
{
    switch (tag) {
    case WB_TAG_SVG_:
    case WB_TAG_MATH_:
        wb_foreign_push(f, t, true);
        return true;
    case WB_TAG_TITLE_:
    case WB_TAG_DESC_:
    case WB_TAG_METADATA_:
        wb_foreign_push(f, t, tag == WB_TAG_METADATA_);
        return true;
    default:
        if (contains_html(tag)) {
            wb_foreign_push(f, t, false);
            return true;
        }
        if (!(wb_tag_facts[tag].flags & WB_TAG_BREAKOUT))
            return true;
        while (wb_foreign_in(f))
            pop_language(f, t);
        return false;
    }
}

void wb_foreign_end(struct wb_foreign *f, struct wb_tokenizer *t, enum wb_tag tag)
{
    switch (tag) {
    case WB_TAG_SVG_:
    case WB_TAG_MATH_:
        while (f->depth > 0 && !wb_foreign_in(f))
            pop_language(f, t);
        if (f->depth > 0)
            pop_language(f, t);
        break;
    case WB_TAG_METADATA_:
        if (f->depth > 1 && wb_foreign_in(f))
            pop_language(f, t);
        break;
    default:
        if ((tag == WB_TAG_TITLE_ || tag == WB_TAG_DESC_ || contains_html(tag)) && !wb_foreign_in(f))
            pop_language(f, t);
        break;
    }
}

/* ---- encodings --------------------------------------------------------------------------- */

int wb_tagwalk_bytes(const char *charset, struct wb_slice body, struct wb_buf *mem, struct wb_slice *bytes_out,
                     const char **charset_out)
{
    const struct wb_encoding *encoding = wb_encoding_by_label(wb_slice_str(charset));

    WB_CHECK(encoding); /* it is a name of the standard */
    *bytes_out = body;
    *charset_out = encoding->name;
    switch (encoding->way) {
    case WB_ENCODING_UTF8:
    case WB_ENCODING_SINGLE:
    case WB_ENCODING_USER_DEFINED:
        return 0;
    default:
        *charset_out = "utf-8";
        return wb_charset_decode(encoding->name, body, WB_PAGE_MAX_BYTES, mem, bytes_out);
    }
}

int wb_tagwalk_utf8(const char *charset, struct wb_slice part, struct wb_buf *mem, struct wb_slice *utf8_out)
{
    bool utf8 = strcmp(charset, "utf-8") == 0, mark = wb_slice_starts(part, WB_SLICE_LIT("\xef\xbb\xbf"));

    *utf8_out = part;
    if (utf8 && wb_decode_utf8_prefix(part.ptr, part.len) == part.len)
        return 0;
    int err = wb_charset_decode(charset, part, WB_DECODED_MAX(part.len), mem, utf8_out);
    if (err < 0 || !utf8 || !mark)
        return err;
    /* At the front of a document it would be a BOM, but here it is a character. */
    err = wb_buf_reserve(mem, 3);
    if (err < 0)
        return err;
    memmove(mem->ptr + 3, mem->ptr, mem->len);
    memcpy(mem->ptr, "\xef\xbb\xbf", 3);
    mem->len += 3;
    *utf8_out = wb_buf_slice(mem);
    return 0;
}

const char *wb_tagwalk_css_charset(struct wb_slice sheet, struct wb_slice transport)
{
    struct wb_slice label = wb_charset_by_label(transport) ? transport : wb_css_charset(sheet);
    const char *named = wb_charset_by_label(label);

    /* A rule that can be read as ASCII cannot be true if it says UTF-16. */
    if (named && label.ptr != transport.ptr && strncmp(named, "utf-16", 6) == 0)
        label = WB_SLICE_LIT("utf-8");
    return wb_charset_of(sheet, label, WB_CHARSET_TEXT);
}

/* ---- the walk ---------------------------------------------------------------------------- */

struct wb_tagwalk {
    struct wb_tokenizer t;
    struct wb_tag_index tags;
    struct wb_foreign foreign;
    bool in_foreign; /* the current token is */
};

int wb_tagwalk_new(struct wb_tagwalk **walk_out)
{
    struct wb_tagwalk *walk = wb_alloc_zero(1, sizeof *walk);

    *walk_out = walk;
    if (!walk)
        return WB_E_NOMEM;
    wb_tag_index_init(&walk->tags);
    wb_tagwalk_begin(walk, WB_SLICE_EMPTY, false);
    return 0;
}

void wb_tagwalk_free(struct wb_tagwalk *walk)
{
    wb_free(walk);
}

void wb_tagwalk_begin(struct wb_tagwalk *walk, struct wb_slice document, bool xml)
{
    wb_tokenizer_init(&walk->t, document);
    wb_foreign_init(&walk->foreign, &walk->t, xml);
    walk->in_foreign = false;
}

/* Handles a start tag: svg and math, and how the content of the element is read. */
static void take_start(struct wb_tagwalk *walk)
{
    enum wb_tag tag = wb_tag_find(&walk->tags, &walk->t);

    if (wb_foreign_in(&walk->foreign) && (tag == WB_TAG_OTHER || wb_foreign_start(&walk->foreign, &walk->t, tag))) {
        walk->in_foreign = true;
        return;
    }
    walk->in_foreign = tag == WB_TAG_SVG_ || tag == WB_TAG_MATH_;
    if (walk->in_foreign)
        wb_foreign_push(&walk->foreign, &walk->t, true);
    else if (!walk->foreign.xml) /* in XML, all content is markup */
        walk->t.mode = wb_tag_facts[tag].mode;
}

const struct wb_tokenizer *wb_tagwalk_next(struct wb_tagwalk *walk)
{
    enum wb_token_kind kind = wb_tokenizer_next(&walk->t);

    walk->in_foreign = wb_foreign_in(&walk->foreign);
    if (kind == WB_TOKEN_START)
        take_start(walk);
    else if (kind == WB_TOKEN_END && walk->foreign.depth > 0)
        wb_foreign_end(&walk->foreign, &walk->t, wb_tag_find(&walk->tags, &walk->t));
    return &walk->t;
}

bool wb_tagwalk_is_foreign(const struct wb_tagwalk *walk)
{
    return walk->in_foreign;
}
