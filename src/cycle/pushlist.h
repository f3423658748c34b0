/*
 * pushlist.h - what somebody pushes: announcements of pages that are new, changed or gone, and whole pages. It is read
 * from lines or from JSON, checked as a whole, and then applied (wb_pusher_apply() in cycle.h). `webbase push` and the
 * server's POST /api/push both use it.
 *
 *   https://example.org/news        new or changed, also as "new URL" or "changed URL"
 *   gone https://example.org/old    deleted: the page is fetched, and removed if it is really gone
 *   # comment
 *
 * or one JSON object with any of these:
 *
 *   {"urlList": [URL, ...], "host": HOST}          as in IndexNow
 *   {"changed": [URL, ...], "gone": [URL, ...]}
 *   {"url": URL}
 *   {"pages": [{"url": URL, "html": TEXT} | {"url": URL, "type": MEDIA TYPE, "body_base64": BYTES}, ...]}
 *
 * where a page may also have "time" (RFC 3339), "status", "headers" (an object) and "lifetime" (days).
 */
#ifndef WB_CYCLE_PUSHLIST_H
#define WB_CYCLE_PUSHLIST_H

#include "base/arena.h"
#include "base/vec.h"
#include "journal/journal.h"
#include "page/page.h"

struct json_t;

/* An announcement. */
struct wb_push_url {
    struct wb_slice url; /* without a fragment */
    struct wb_slice site;
    enum wb_push what;
};

/* How to read. */
struct wb_push_reading {
    const char *name;     /* where the text comes from, for messages */
    const char *provider; /* who pushes; the head of each page names it */
    int64_t now_ms;       /* the time of pages that have none */
    bool strict;          /* JSON only; an invalid URL refuses everything instead of being left out */
    size_t items_max;     /* URLs and pages; 0: no limit */
    void (*warn)(void *context, const char *message); /* about the first URLs that were left out; may be NULL */
    void *context;
};

struct wb_push_list {
    WB_VEC(struct wb_push_url) urls;
    WB_VEC(struct wb_page) pages; /* complete but for their digests */
    uint64_t refused;             /* announcements that are not http or https URLs, and were left out */
    struct wb_arena text;         /* of the URLs and pages, but for... */
    struct json_t *root;          /* ...bodies that were sent as text */
};

/* The head of a page from a provider has this field. */
#define WB_PUSH_PROVIDER_FIELD "X-WebBase-Provider"

/* Brackets and braces in JSON may be nested this deep. */
#define WB_PUSH_DEPTH_MAX 16

/*
 * Reads everything, or fails: WB_E_PROTO if it is not JSON; WB_E_INVALID if a member is not as above, or a page is
 * dated more than a day ahead; WB_E_LIMIT if there is too much of anything. The text may be freed afterwards. The list
 * must be released even if this fails.
 */
int wb_push_list_read(struct wb_slice text, const struct wb_push_reading *reading, struct wb_push_list *list_out);
void wb_push_list_release(struct wb_push_list *list);

/*
 * Whether a site belongs to a host: it is that host or a subdomain of it. A host without a port covers all ports. Both
 * must be in normal form.
 */
bool wb_push_covers(struct wb_slice host, struct wb_slice site);

#endif
