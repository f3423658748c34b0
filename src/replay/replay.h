/*
 * replay.h - the door of replay: a stored page as a browser is to show it, and what changed between two versions.
 *
 *   stored bytes, media type, URL, time --wb_replay_rewrite()--> bytes in which everything that the page names is
 *                                                                in the archive, at the same point in time
 *
 *   <a href="../x">      becomes   <a href="/web/20260102030405/https://example.org/x">, or stays as it is if each site
 *                                  has an origin of its own (replay_origin.h)
 *
 * Bytes go in and bytes come out: no files, no clock, no network. Any bytes are a page; time is linear in them, and the
 * output is bounded (WB_REPLAY_BYTES_MAX). Rewriting keeps a browser in the archive, but it is not what protects
 * the reader: the Content-Security-Policy of wb_replay_policy() must go with every reply
 * (docs/design/0032-replay.md).
 */
#ifndef WB_REPLAY_REPLAY_H
#define WB_REPLAY_REPLAY_H

#include "replay/difference.h"
#include "replay/replay_origin.h"

/* ---- rewriting (replay.c, replay_tag.c, replay_url.c) --------------------------------------------------------- */

struct wb_replay_page {
    struct wb_slice url;     /* of the page, absolute */
    struct wb_slice time;    /* its 14 digits: 20260102030405 */
    struct wb_slice type;    /* media type in lower case, without parameters; if empty, the bytes decide */
    struct wb_slice charset; /* what the transport says; empty if nothing */
    struct wb_slice body;
};

/* A change in a version of a page: bytes of its document; if from == to, the other version has something there. */
struct wb_replay_mark {
    uint32_t from, to;
    uint32_t change; /* counted from 1; the same in both versions */
};

/* In the order of the document. Only for the page that they were made of. */
struct wb_replay_marks {
    struct wb_replay_mark *items;
    size_t count, cap;
    uint32_t changes; /* the last one that has a mark */
    bool added;       /* these are of the new version */
    bool cut;         /* there are more changes, or more of the page, than was looked at */
};

struct wb_replay_options {
    struct wb_slice prefix; /* where the archive is: "/web/". Only characters that a URL may contain */
    struct wb_slice banner; /* HTML from wb_replay_banner(), put at the front of an HTML page's body; may be empty */
    struct wb_slice front;  /* the same, put at the front of its head, before everything that it loads */
    bool outermost;         /* the page is in the frame of a page of ours, which its links lead on */
    struct wb_buf *refresh; /* gets what the first refresh of the page says, "5;url=/web/..."; NULL: nobody asks */
    bool in_place;          /* the address of what is shown ends with the page's time and URL, so that relative
                               references lead into the archive even if they stay as they are */
    const struct wb_replay_base
        *origins; /* pages are on origins of their own, instead of below the prefix: then relative
                     references stay as they are, and scripts may run. NULL: they are not */
    const struct wb_replay_marks *marks; /* changes to be shown in an HTML page; NULL: none */
};

enum wb_replay_kind {
    WB_REPLAY_UNCHANGED, /* the body was copied: send it with the media type and charset that it was stored with */
    WB_REPLAY_HTML,      /* HTML or XHTML: send it with the charset of the result */
    WB_REPLAY_CSS,       /* the same for a style sheet... */
    WB_REPLAY_SVG,       /* ...and a drawing */
};

struct wb_replay_result {
    enum wb_replay_kind kind;
    const char *charset;   /* of the output, static text; "" if it is unchanged. It must be in the Content-Type of the
                              reply, because rewriting and the browser must agree on what is a tag */
    uint64_t urls;         /* how many URLs now lead into the archive... */
    uint64_t urls_dropped; /* ...and how many were invalid, scripts, or beyond the bound on the output */
};

/*
 * The output has at most this many bytes if the body has n and is in UTF-8 or an encoding with one byte per character,
 * apart from the banner. In other encodings it can have twice as many, because the page becomes UTF-8. URLs for which
 * there is no room stay relative where that means the same, and otherwise lead nowhere.
 */
#define WB_REPLAY_BYTES_MAX(n) (4 * (size_t)(n) + ((size_t)1 << 15))

/* Working memory that is reused for many pages; it belongs to one thread. */
struct wb_replayer;
int wb_replayer_new(struct wb_replayer **replayer_out);
void wb_replayer_free(struct wb_replayer *replayer);

/*
 * Appends the page as it is to be shown. What is not rewritten is copied byte for byte, unless the page's encoding is
 * not UTF-8 and not one of those with one byte per character: then all of it becomes UTF-8. WB_E_INVALID if the time is
 * not 14 digits or the prefix contains other characters; otherwise fails only with WB_E_NOMEM.
 */
int wb_replay_rewrite(struct wb_replayer *replayer, const struct wb_replay_page *page,
                      const struct wb_replay_options *options, struct wb_buf *out, struct wb_replay_result *result_out);

/*
 * Appends where a link of the page leads in the archive, for the Location of a stored redirect; with "mp_" if it is
 * outermost (struct wb_replay_options). WB_E_PROTO if it is not a URL or has a scheme that is not archived.
 */
int wb_replay_location(const struct wb_replay_page *page, struct wb_slice prefix, bool outermost, struct wb_slice href,
                       struct wb_buf *out);

/* ---- differences as seen (replay_marks.c) ------------------------------------------------------------------------ */

/* So many parts of words and bytes of text of a page are compared, and so many marks made. */
#define WB_REPLAY_PARTS_MAX ((size_t)1 << 19)
#define WB_REPLAY_MARKED_MAX ((size_t)8 << 20)
#define WB_REPLAY_MARKS_MAX ((size_t)10000)

/* Change 7 has the id "webbase-change-7" in both rewritten pages, unless it is beyond the last mark. */
#define WB_REPLAY_CHANGE_ID "webbase-change-"

/*
 * Compares the visible words of two versions of a page, as difference.h does. Pages that are not HTML have no
 * words. Release the marks even after an error. WB_E_NOMEM.
 */
int wb_replay_compare(struct wb_replayer *replayer, const struct wb_replay_page *old, const struct wb_replay_page *new,
                      struct wb_replay_marks *old_out, struct wb_replay_marks *new_out, uint32_t *changes_out);
void wb_replay_marks_release(struct wb_replay_marks *marks);

/*
 * The media type to show a page with: the stated one, or, if there is none, what its first bytes are by the WHATWG
 * standard for MIME sniffing. A page that has a type never becomes another. Borrowed from `type`, or static.
 */
struct wb_slice wb_replay_type(struct wb_slice type, struct wb_slice body);

/* ---- around the page (replay_banner.c) --------------------------------------------------------------------------- */

struct wb_replay_banner {
    struct wb_slice url, time; /* of the page, as in struct wb_replay_page */
    struct wb_slice prefix;    /* "/web/" */
    struct wb_slice versions;  /* what stands before a URL where all its versions are listed */
    bool in_frame;             /* the page is shown in a frame of another one: no banner */
    bool xml;                  /* the page is XHTML, which has no trees of their own in a page */
};

/*
 * Appends a small bar that says what this is: ASCII, without scripts. It can be folded up, and the styles of the page
 * do not apply to it.
 */
int wb_replay_banner(const struct wb_replay_banner *banner, struct wb_buf *html_out);

/*
 * The Content-Security-Policy of pages that are shown under the address of the server itself, whatever their type: no
 * scripts, no origin, and nothing is loaded from elsewhere. Static text.
 */
const char *wb_replay_policy(void);

#endif
