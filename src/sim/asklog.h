/*
 * asklog.h - which URL was asked for when: 16 bytes a request, and the text of those
 * addresses that are no page's own.
 */
#ifndef WB_SIM_ASKLOG_H
#define WB_SIM_ASKLOG_H

#include "base/buf.h"

#define WB_ASKLOG_REQUESTS_MAX (1u << 24)
#define WB_ASKLOG_TEXT_MAX (64u << 20)

/* page is an offset into text: the target of what is no page. */
#define WB_ASKLOG_OTHER 1u
#define WB_ASKLOG_ALIAS 2u /* under the site's second name */
#define WB_ASKLOG_RAW 4u   /* site is a raw response's number */
#define WB_ASKLOG_HEAD 8u

struct wb_asklog_entry {
    uint32_t page;
    uint32_t site;
    uint64_t since_ms : 40; /* the start */
    uint64_t status : 16;   /* 0: nothing that is HTTP */
    uint64_t flags : 8;
};

_Static_assert(sizeof(struct wb_asklog_entry) == 16, "sixteen million requests are 256 MB");

struct wb_asklog {
    struct wb_asklog_entry **parts;
    uint64_t count;
    uint64_t dropped; /* not kept: there are too many, or no memory */
    struct wb_buf text;
};

void wb_asklog_init(struct wb_asklog *log);
void wb_asklog_release(struct wb_asklog *log);

/* target: its text where flags has WB_ASKLOG_OTHER, and then entry.page is set here. */
void wb_asklog_add(struct wb_asklog *log, struct wb_asklog_entry entry, struct wb_slice target);

const struct wb_asklog_entry *wb_asklog_get(const struct wb_asklog *log, uint64_t number);
struct wb_slice wb_asklog_target(const struct wb_asklog *log, const struct wb_asklog_entry *entry);

#endif
