/*
 * terms.h - what is kept beside pages, in the words that the catalog shares with everybody who uses the store:
 * policies, outcomes, revisits, bars and snapshots. The store's door includes it, so the names are those of the store.
 */
#ifndef WB_CATALOG_TERMS_H
#define WB_CATALOG_TERMS_H

#include "base/date.h"
#include "page/page.h"

/* Which versions are kept although they are no longer the latest and no snapshot holds them. */
struct wb_store_history {
    enum wb_store_keep {
        WB_STORE_KEEP_NEWEST, /* none */
        WB_STORE_KEEP_ALL,
        WB_STORE_KEEP_COUNT,    /* of each page the `value` newest versions, the latest included */
        WB_STORE_KEEP_DURATION, /* those that were the latest at some moment of the last `value` milliseconds */
    } keep;
    uint64_t value; /* at most WB_STORE_HISTORY_VALUE_MAX, so that it can be subtracted from any time */
};
#define WB_STORE_HISTORY_VALUE_MAX ((uint64_t)INT64_MAX / 2)

/* What wb_store_put() did with a page. This is a forecast: the commit decides again and counts. */
enum wb_store_outcome {
    WB_STORE_PUT_NEW,     /* stored: the repository had no page with this id */
    WB_STORE_PUT_VERSION, /* stored: a new version, which becomes the latest */
    WB_STORE_PUT_CAPTURE, /* its content is stored already: it is a further capture */
    WB_STORE_PUT_PAST,    /* stored as a version that is not the latest */
    WB_STORE_PUT_KNOWN,   /* nothing changes: there is a capture of this page and time */
    WB_STORE_PUT_OLDER,   /* not stored: the history policy keeps nothing that old */
    WB_STORE_PUT_BARRED,  /* not stored: the page or its site was taken down */
};

/* A stored time that is further in the future than this can only come from a wrong clock (wb_store_put()). */
#define WB_STORE_AHEAD_MS WB_DAY_MS

static inline bool wb_store_time_is_ahead(int64_t time_ms, int64_t now_ms)
{
    return time_ms > now_ms + WB_STORE_AHEAD_MS;
}

/*
 * A revisit is a capture without bytes: the page was seen at time_ms and had the same content
 * as its original, an older capture of the same page or of another one. The original is known by
 * its digest, or by its time (to the second), or it is whatever the page was just before
 * (not_modified). If the page has that content, the revisit becomes a capture of it. Otherwise
 * it waits in the repository, and becomes a capture when the content arrives.
 */
struct wb_store_revisit {
    struct wb_pageid id;  /* the page that was seen */
    struct wb_slice site; /* its site */
    int64_t time_ms;
    bool has_sha1;
    bool not_modified;
    uint8_t sha1[WB_SHA1_BYTES];
    int64_t original_ms;       /* 0: not known */
    struct wb_pageid original; /* the page of the original: the same id, or that of a copy */
    struct wb_slice url;       /* of the page that was seen; may be empty if the original is the same page */
};

/* What wb_store_bar() and wb_store_allow() are about. */
enum wb_store_bar_kind { WB_STORE_BAR_PAGE, WB_STORE_BAR_SITE };

struct wb_store_bar {
    enum wb_store_bar_kind kind;
    struct wb_pageid id;  /* the page, if kind is WB_STORE_BAR_PAGE */
    struct wb_slice site; /* the site; for a page, the site it belongs to */
    bool except;          /* an exception instead of a bar: allows this page although its site is barred */
    int64_t time_ms;      /* when it was set */
};

#define WB_STORE_NAME_MAX 64

/* Who keeps a snapshot. It lives as long as somebody holds it whose time has not run out. */
struct wb_store_holder {
    enum wb_store_holder_kind {
        WB_STORE_HOLDER_PERSON, /* at most one, without a name of its own: the person who sealed it, or named it */
        WB_STORE_HOLDER_GENERATION,
        WB_STORE_HOLDER_STREAM,
    } kind;
    char name[WB_STORE_NAME_MAX + 1];
    int64_t expires_ms; /* 0: never */
};

struct wb_store_snapshot {
    uint32_t number;                  /* from 1; numbers are never used again */
    char name[WB_STORE_NAME_MAX + 1]; /* empty if it has none */
    uint64_t epoch;                   /* what is visible in it: versions that had arrived and not ceased by then */
    int64_t time_ms;                  /* when it was sealed */
    int64_t expires_ms;               /* when its last holder lets go; 0: never */
    uint64_t pages;                   /* when it was sealed */
    struct wb_store_holder *holders;
    size_t holder_count;
};

/* Something that verify or compact found. */
struct wb_store_finding {
    bool problem;     /* true: damage; false: a note, such as leftovers of a crash, which are harmless */
    const char *file; /* relative to the repository */
    uint64_t offset;
    const char *message;
};
typedef void (*wb_store_found)(void *context, const struct wb_store_finding *finding);

/* Called now and then with the bytes done and the total. Returning false stops the work cleanly: WB_E_STOPPED. */
typedef bool (*wb_store_progress)(void *context, uint64_t done, uint64_t total);

#endif
