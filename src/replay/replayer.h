/*
 * replayer.h - private to replay: the state of rewriting one page, shared by its files.
 *
 *   replay.c      which kind of page it is; the walk through its tokens; where the banner goes
 *   replay_tag.c  one tag: which attributes name something, and their new values
 *   replay_marks.c changes between two versions: which, and their markup
 *   replay_url.c  one URL: from what the page says to where that is in the archive
 */
#ifndef WB_REPLAY_REPLAYER_H
#define WB_REPLAY_REPLAYER_H

#include "extract/extract.h"
#include "markup/markup.h"
#include "replay/replay.h"

/* A document, and the documents in its srcdoc attributes. A srcdoc inside those is dropped. */
#define WB_REPLAY_LEVELS 2

/* Rewriting may add this many bytes to a document of n bytes; then URLs stay relative, or lead nowhere. */
#define WB_REPLAY_GROWTH_MAX(n) (2 * (size_t)(n) + ((size_t)1 << 15))

/* The bytes of URLs that are resolved, each with its base, for a document of n bytes. Further ones are not resolved. */
#define WB_REPLAY_WORK_MAX(n) (16 * (size_t)(n) + ((size_t)4 << 20))

/* A document that is being rewritten. */
struct wb_replay_level {
    struct wb_tagwalk *walk;
    struct wb_slice bytes; /* the document... */
    const char *charset;   /* ...and its encoding, which has all of ASCII */
    const char *copied;    /* up to here it has been written */
    struct wb_buf *out;
    bool in_style;          /* the text that follows is CSS */
    struct wb_slice front;  /* still to be written; empty if there is none */
    struct wb_slice banner; /* the same */
    struct wb_slice unseen; /* the name of the element of <head> whose content is skipped in search of its place */
    const struct wb_replay_marks *marks; /* NULL: none; and the next one */
    size_t mark;
    /* working memory */
    struct wb_buf utf8, plain, value; /* of an attribute: in UTF-8, without entities, its new value */
    struct wb_buf part, url, place;   /* of CSS: a URL in UTF-8, without escapes, its new place */
};

#define WB_REPLAYER_MAGIC 0x52504c59u

struct wb_replayer {
    uint32_t magic;
    struct wb_extractor *extractor;
    struct wb_replay_level levels[WB_REPLAY_LEVELS];
    struct wb_tag_index tags;
    const struct wb_replay_options *options;
    struct wb_slice time;
    struct wb_url base, resolved; /* links are resolved against base, unless its href is empty */
    bool base_differs;            /* the page has a <base> that is not its own URL */
    size_t growth_left;           /* bytes by which the page may still become longer */
    size_t work_left;             /* bytes of URLs that may still be resolved */
    struct wb_buf document;       /* the page in UTF-8, if it was in another encoding */
    struct wb_replay_result *result;
};

/* ---- replay.c ------------------------------------------------------------------------------------------------- */

/* Rewrites an HTML document of the next level into out. */
int wb_replayer_document(struct wb_replayer *r, unsigned depth, struct wb_slice bytes, const char *charset, bool xml,
                         struct wb_buf *out);

/* Writes the part of the document up to `to` unchanged. */
int wb_replayer_copy(struct wb_replay_level *level, const char *to);

/*
 * The document of a page as bytes in which tags can be found (wb_tagwalk_bytes()), in mem if they are not those of the
 * page. bytes_out->ptr NULL: the page is not HTML.
 */
int wb_replayer_markup(struct wb_replayer *r, const struct wb_replay_page *page, struct wb_buf *mem,
                       struct wb_slice *bytes_out, const char **charset_out, bool *xml_out);

/* ---- replay_marks.c --------------------------------------------------------------------------------------------- */

/* No mark adds more. */
#define WB_REPLAY_MARK_BYTES 512

/* Writes the marks that are in this text of the document. */
int wb_replayer_marks(struct wb_replay_level *level, struct wb_slice text);

/* ---- replay_tag.c ----------------------------------------------------------------------------------------------- */

/* Rewrites the start tag that the level's walk is at. */
int wb_replayer_tag(struct wb_replayer *r, unsigned depth, const struct wb_tokenizer *t);

/* Rewrites the text of a style element. */
int wb_replayer_style(struct wb_replayer *r, struct wb_replay_level *level, const struct wb_tokenizer *t);

/*
 * Appends a style sheet or the value of a style attribute to out, which must not be part, url or place of the
 * level. *changed_out says whether any of its URLs changed.
 */
int wb_replayer_css(struct wb_replayer *r, struct wb_replay_level *level, struct wb_slice css, const char *charset,
                    struct wb_buf *out, bool *changed_out);

/* ---- replay_url.c ----------------------------------------------------------------------------------------------- */

/* Where a URL is. */
enum wb_replay_place {
    WB_REPLAY_PLACE_LINK, /* the reader may follow it */
    WB_REPLAY_PLACE_LOAD, /* the browser loads it by itself */
    WB_REPLAY_PLACE_PART, /* the same, but a fragment means a part of this document: svg and CSS */
};

/* Prepares the resolving of URLs for a page. */
int wb_replayer_begin_urls(struct wb_replayer *r, const struct wb_replay_page *page, struct wb_slice base);

/* Pays for a part of the page that becomes longer. False if that would be too much; then nothing is paid. */
bool wb_replayer_grow(struct wb_replayer *r, size_t before, size_t after);

/* Appends what a URL becomes; *kept_out: it stays as it is, and nothing was appended. */
int wb_replayer_url(struct wb_replayer *r, struct wb_slice href, enum wb_replay_place place, struct wb_buf *out,
                    bool *kept_out);

#endif
