/*
 * history.h - the past of one page in memory: its captures, the versions that follow from
 * them, and which of them are kept. These are the rules of store.h ("Versions and captures")
 * for all organisations; this file knows nothing about files or tables.
 *
 *   times     | 1  4  5 | 9 | 12  13  20 |       when the page was seen, in order
 *   versions  |    A    | B |     A      |       runs of equal contents
 *
 * Each version also has the epochs in which it arrived and ceased to be the latest. The two
 * orders are independent: a capture that arrives late takes its place in `times`, but it was
 * never the latest, so its version arrives and ceases in the same epoch and no snapshot
 * contains it.
 *
 * Ghosts. A version that the policy no longer keeps, but that somebody still sees in a held
 * epoch, becomes a ghost. It stays readable until nobody sees it, but new captures neither join
 * nor split it: the timeline goes on without it. Ghosts come first in the list.
 *
 * Forgetting. A version that goes takes its captures along. So that they are not taken for new ones
 * when the same archive is imported again, the floor remembers how far we have forgotten:
 * nothing at or before it is added any more.
 */
#ifndef WB_STORE_HISTORY_H
#define WB_STORE_HISTORY_H

#include "base/vec.h"
#include "store/catalog/catalog.h"

/* One version. */
struct wb_history_version {
    uint64_t content;         /* hash of status, media type and body (wb_history_content); 0: not known */
    uint64_t arrived, ceased; /* epochs; ceased is 0 in the latest version */
    struct wb_catalog_place place;
    uint64_t body_bytes;
    uint32_t stored_bytes;    /* what its death frees */
    uint16_t status;
    bool ghost;
    size_t first, count;      /* its captures: a range of wb_history.times */
};

struct wb_history {
    WB_VEC(struct wb_history_version) versions; /* ghosts, then the others in the order of time */
    WB_VEC(int64_t) times;                      /* of all captures, version by version */
    size_t ghosts;
    int64_t floor_ms; /* nothing at or before this is added; INT64_MIN if nothing was forgotten */
    int64_t gone_ms;  /* since when the page has been gone; 0 if it is not, or that is forgotten */
};

void wb_history_clear(struct wb_history *history);
void wb_history_release(struct wb_history *history);

/* The hash by which equal contents are recognised; never 0. The seed is a secret of the repository. */
uint64_t wb_history_content(const struct wb_page *page, uint64_t seed);

/* The latest version, or NULL. */
struct wb_history_version *wb_history_latest(struct wb_history *history);

/* The newest capture of a version. */
static inline int64_t wb_history_last_ms(const struct wb_history *history, const struct wb_history_version *version)
{
    WB_CHECK(version->count > 0);
    WB_CHECK(version->first + version->count <= history->times.count);
    return history->times.items[version->first + version->count - 1];
}

/* The newest version that has this content and its bytes, ghosts included, or NULL. content must not be 0. */
struct wb_history_version *wb_history_find(struct wb_history *history, uint64_t content);

/* Puts a version with one capture at the end, as it was read: for a page that has only one. */
int wb_history_push(struct wb_history *history, const struct wb_history_version *version, int64_t time_ms);

/* A capture to be added. */
struct wb_history_capture {
    int64_t time_ms;
    uint64_t content;
    uint64_t epoch;                 /* of this commit */
    int64_t now_ms;                 /* the clock, to recognise times that cannot be */
    const struct wb_history_version *bytes; /* place, lengths and status of the content, should it become a version */
};

/*
 * Adds a capture. Of the outcomes, PUT_NEW and PUT_VERSION mean that it began a version that is now the
 * latest, PUT_PAST one that is not, PUT_CAPTURE that it joined one; PUT_KNOWN and PUT_OLDER change
 * nothing. If the bytes are not known (bytes->place.segment is 0), it can still begin a version of the
 * past: a hollow one, which the next trim removes, but which parts those around it.
 */
int wb_history_add(struct wb_history *history, const struct wb_history_capture *capture,
                   enum wb_store_outcome *outcome_out);

/* There is no latest version any more. */
void wb_history_end(struct wb_history *history, int64_t gone_ms, uint64_t epoch);

/*
 * Takes a version with all its captures away, because its bytes are lost. They are not forgotten: if they come again,
 * they are new. If it was the latest, there is no latest version any more, and it is not known since when.
 */
void wb_history_drop(struct wb_history *history, size_t version);

/* What decides which versions stay. */
struct wb_history_rule {
    struct wb_store_history policy;
    const uint64_t *held; /* epochs that somebody sees, in ascending order */
    size_t held_count;
    int64_t now_ms;
};

/* Whether the version is visible in one of the held epochs. */
bool wb_history_is_held(const struct wb_history_version *version, const struct wb_history_rule *rule);

/* So many captures of a version are kept, unless the policy keeps all: the first one, and the newest. */
enum { WB_HISTORY_CAPTURES_MAX = 16 };

/* Gives up the others (history_thin.c); trim() ends with this. */
void wb_history_thin(struct wb_history *history, const struct wb_history_rule *rule);

/* Drops the versions that nobody keeps, and turns those into ghosts that only held epochs keep. */
void wb_history_trim(struct wb_history *history, const struct wb_history_rule *rule);

/* The version that has the newest capture at or before time_ms, or else the one with the oldest; NULL if empty. */
const struct wb_history_version *wb_history_at(const struct wb_history *history, int64_t time_ms);

/* The version that is visible in an epoch; NULL if there is none. */
const struct wb_history_version *wb_history_in(const struct wb_history *history, uint64_t epoch);

/*
 * As bytes, and back (docs/formats/catalog.md). The latest version's place and lengths are not part of them: its entry
 * has those. Decoding gives WB_E_CORRUPT or WB_E_NOMEM; the message does not name the page.
 */
int wb_history_encode(const struct wb_history *history, uint64_t site, struct wb_buf *bytes_out);
int wb_history_decode(struct wb_slice bytes, struct wb_history *history_out, uint64_t *site_out);

#endif
