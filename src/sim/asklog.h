/*
 * asklog.h - a log of the requests: who asked for which URL, and when.
 *
 * A request takes 16 bytes. A page is logged by its number; the text of the target is kept only
 * for requests that are not for the exact address of a page. truth.c reports the log, so that a
 * test can see what a crawler really did.
 */
#ifndef WB_SIM_ASKLOG_H
#define WB_SIM_ASKLOG_H

#include "base/buf.h"

#define WB_ASKLOG_REQUESTS_MAX (1u << 24)
#define WB_ASKLOG_TEXT_MAX (64u << 20)

/* Flags. OTHER: not a page; `page` is an offset into `text`, where the target is. */
#define WB_ASKLOG_OTHER 1u
#define WB_ASKLOG_ALIAS 2u /* asked for under the site's second name */
#define WB_ASKLOG_RAW 4u   /* `site` is the number of a raw response */
#define WB_ASKLOG_HEAD 8u

struct wb_asklog_entry {
    uint32_t page;
    uint32_t site;
    uint64_t since_ms : 40; /* time since the start */
    uint64_t status : 16;   /* 0 if the answer was not HTTP */
    uint64_t flags : 8;
};

_Static_assert(sizeof(struct wb_asklog_entry) == 16, "sixteen million requests are 256 MB");

struct wb_asklog {
    struct wb_asklog_entry **parts;
    uint64_t count;
    uint64_t dropped; /* how many requests were not logged: there were too many, or no memory */
    struct wb_buf text;
};

void wb_asklog_init(struct wb_asklog *log);
void wb_asklog_release(struct wb_asklog *log);

/* Logs a request. If its flags have WB_ASKLOG_OTHER, the target is kept and entry.page is set to its place. */
void wb_asklog_add(struct wb_asklog *log, struct wb_asklog_entry entry, struct wb_slice target);

const struct wb_asklog_entry *wb_asklog_get(const struct wb_asklog *log, uint64_t number);
struct wb_slice wb_asklog_target(const struct wb_asklog *log, const struct wb_asklog_entry *entry);

#endif
