/*
 * memento.h - private to serve: the captures of a URL as Memento (RFC 7089) sees them.
 *
 *   URI-R  the original      http://example.org/
 *   URI-M  a memento         /web/20260102030405/http://example.org/
 *   URI-G  the timegate      /web/http://example.org/
 *   URI-T  the timemap       /timemap/link/http://example.org/
 */
#ifndef WB_SERVE_MEMENTO_H
#define WB_SERVE_MEMENTO_H

#include "serve/server.h"

/* What an address below /web/ asks for. */
struct wb_memento_target {
    struct wb_buf url; /* with a scheme */
    struct wb_pageid id;
    bool has_time;
    bool has_second; /* all 14 digits, as the links of a replayed page have them */
    int64_t time_ms; /* the last millisecond of what the digits say */
    bool raw;        /* id_: the bytes as they are stored */
    bool main;       /* mp_: in a frame, but not as a part of another page */
    bool list;       /* "*": all versions */
};

/* Reads what follows /web/ in a target. WB_E_PROTO or WB_E_INVALID if it is not a URL of the web. */
int wb_memento_parse(struct wb_slice rest, struct wb_memento_target *target_out);
void wb_memento_target_release(struct wb_memento_target *target);

/* The same for an address that has only a URL. */
int wb_memento_url(struct wb_slice text, struct wb_memento_target *target_out);

/* The newest capture at or before time_ms, or else the oldest one. The timeline has at least one. */
size_t wb_memento_find(const struct wb_store_timeline *timeline, int64_t time_ms);

/*
 * The capture that belongs to a page of this second: one of the same second, or else the nearest one. Of two that are
 * equally near, it is the later one, because files are fetched after their page. If seals (of snapshots, in any order)
 * show that the earlier one is of another cycle and the later one is not, the later one may be up to four times as far.
 */
size_t wb_memento_near(const struct wb_store_timeline *timeline, int64_t time_ms, const int64_t *seals,
                       size_t seal_count);

/* "http://host": where this server is, as the client sees it. */
int wb_memento_origin(struct wb_call *call, struct wb_buf *out);

/* Appends /web/TS/URL. */
int wb_memento_address(struct wb_slice origin, struct wb_slice url, int64_t time_ms, struct wb_buf *out);

/* Adds the field Memento-Datetime. */
int wb_memento_datetime(struct wb_call *call, int64_t time_ms);

/* Longer URLs are not repeated in fields: clients would refuse them. The timemap has the same links in its body. */
#define WB_MEMENTO_LINKED_MAX 2000

/* Adds the field Link, unless the URL is too long for it. at: the capture that is shown; SIZE_MAX: none. */
int wb_memento_links(struct wb_call *call, struct wb_slice url, const struct wb_store_timeline *timeline, size_t at);

#endif
