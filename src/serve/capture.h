/*
 * capture.h - private to serve: the captures of a URL as replay needs them: which one to show, and the parts of a reply
 * that do not depend on the address under which it is shown (web_replay.c, origin_replay.c).
 */
#ifndef WB_SERVE_CAPTURE_H
#define WB_SERVE_CAPTURE_H

#include "replay/replay.h"
#include "serve/memento.h"
#include "warc/warc.h"

/* A stored page, and what it borrows from. */
struct wb_memento {
    struct wb_page page; /* the URL has no password, and the type is what the bytes are if none was stated */
    char digits[WB_CDX_TIME_MAX];
    struct wb_buf mem, public;
};

/* Reads the capture at this place of a timeline. */
int wb_capture_read(struct wb_call *call, struct wb_pageid id, const struct wb_store_timeline *timeline, size_t at,
                    struct wb_memento *capture_out);
void wb_capture_release(struct wb_memento *capture);

/* Gets the captures of a page. WB_E_NOTFOUND if there are none. */
int wb_capture_timeline(struct wb_call *call, struct wb_pageid id, struct wb_store_timeline *timeline_out);

/* Chooses the capture for a time, or the newest one. */
int wb_capture_choose(struct wb_call *call, const struct wb_memento_target *t, const struct wb_store_timeline *timeline,
                      size_t *at_out);

/*
 * Reads the page as its newest capture at or before a time has it, or else its oldest one. Unlike wb_store_get_when(),
 * which gives the time of the version's newest capture, the page has the time of that capture. The page borrows from
 * mem_out, which the caller releases. WB_E_NOTFOUND if there is no capture.
 */
int wb_capture_at(struct wb_call *call, struct wb_pageid id, int64_t time_ms, struct wb_page *page_out,
                  struct wb_buf *mem_out);

/* The capture nearest to this one that is not a redirect; *is_out: whether this one is. The same one if all are. */
size_t wb_capture_beside(const struct wb_store_timeline *timeline, size_t at, bool *is_out);

/*
 * There is no capture of this URL. It may be one of an alias: webdb knows where a crawl found the same page, under the
 * name that it crawls. Returns 1 and the other one, 0, or an error. The caller releases it in any case.
 */
int wb_capture_alias(struct wb_call *call, const struct wb_memento_target *t, struct wb_memento_target *other_out);

/* The status of the original; but what is stored is neither a part nor "you have it already". */
unsigned wb_capture_status(const struct wb_page *page);

/* Adds the Content-Type as the server sent it, as long as it says the same as the record. charset: of what is sent. */
int wb_capture_type(struct wb_call *call, const struct wb_page *page, const char *charset);

/*
 * Adds the fields with which a browser may keep the reply, but asks each time whether that is still so: a page can be
 * taken down, and another capture can become the nearest one. how: all that the reply depends on besides the capture.
 * *known_out: the client has it.
 */
int wb_capture_validator(struct wb_call *call, const struct wb_memento *capture, struct wb_slice how, bool *known_out);

/* The page for the room replay. */
struct wb_replay_page wb_capture_page(const struct wb_memento *capture);

/* Whether the browser says that it asks for this: "document", "iframe". False if it does not say. */
bool wb_capture_is_for(const struct wb_call *call, const char *dest);

/* Whether the browser shows this in a page, of ours or of others. */
bool wb_capture_is_embedded(const struct wb_call *call);

#endif
