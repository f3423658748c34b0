/*
 * history.h - the past of one page in memory: its captures, the versions that follow from
 * them, and which of them are kept. These are the rules of store.h ("Versions and captures")
 * for all organisations; this file knows nothing about files or tables.
 *
 *   times     | 1  4  5 | 9 | 12  13  20 |       when the page was seen, in order
 *   epochs    | 1  1  3 | 3 |  4   4   7 |       in which each of these captures arrived
 *   versions  |    A    | B |     A      |       runs of equal contents
 *
 * Each version also has the epochs in which it arrived and ceased to be the latest. The two
 * orders are independent: a capture that arrives late takes its place in `times`, but it was
 * never the latest, so its version arrives and ceases in the same epoch and no snapshot
 * contains it.
 *
 * Ties. Captures of one time with different contents are different captures, in the order in which they arrived. Only
 * those whose content was cut short come before the others of their time, so that they never displace one that is
 * whole. A cut content with which another capture of the same time begins is replaced by that one.
 *
 * What a state shows. The state of an epoch shows the version that was the latest then, with the captures that had
 * arrived by then: their number and their times never change. Three changes of the list would change that: a version
 * that is divided, joined with its neighbour, or that loses a capture. If somebody still sees it, its old form stays
 * as a ghost that is `replaced`, and only states show it: it has no place in the timeline any more.
 *
 * Ghosts. A version that the policy no longer keeps, but that somebody still sees in a held
 * epoch, becomes a ghost. It stays readable until nobody sees it, but new captures neither join
 * nor split it: the timeline goes on without it. Ghosts come first in the list.
 *
 * Forgetting. A version that goes takes its captures along. So that they are not taken for new ones
 * when the same archive is imported again, the floor remembers how far we have forgotten:
 * nothing before it is added any more. Of its own time, what is not among the contents that were forgotten is added
 * if the page has other captures of that time, or if the oldest version begins later and has that content.
 */
#ifndef WB_CATALOG_HISTORY_H
#define WB_CATALOG_HISTORY_H

#include "base/vec.h"
#include "catalog/catalog_tables.h"

/* One version. */
struct wb_history_version {
    uint64_t content;         /* hash of status, media type and body (wb_history_content); 0: only the entry has it */
    uint64_t arrived, ceased; /* epochs; ceased is 0 in the latest version */
    struct wb_catalog_place place;
    uint64_t body_bytes;
    uint32_t stored_bytes;    /* what its death frees */
    uint16_t status;
    bool ghost;
    bool replaced;            /* a ghost that is not part of the timeline */
    size_t first, count;      /* its captures: a range of wb_history.times */
};

/*
 * So many contents of one time are remembered when they are forgotten. One of them may stand for all: in a copy of the
 * repository contents have other hashes, and nobody has the bytes of these any more.
 */
enum { WB_HISTORY_FORGOTTEN_MAX = 1024 };
#define WB_HISTORY_FORGOTTEN_ALL UINT64_MAX

struct wb_history {
    WB_VEC(struct wb_history_version) versions; /* ghosts, then the others in the order of time */
    WB_VEC(int64_t) times;                      /* of all captures, version by version */
    WB_VEC(uint64_t) epochs;                    /* in which they arrived; as many as times */
    WB_VEC(uint64_t) forgotten; /* contents that were seen at the time of the floor, if others can be added there */
    size_t ghosts;
    int64_t floor_ms; /* nothing before this is added; INT64_MIN if nothing was forgotten */
    int64_t gone_ms;  /* since when the page has been gone; 0 if it is not, or that is forgotten */
};

void wb_history_clear(struct wb_history *history);
void wb_history_release(struct wb_history *history);
int wb_history_copy(const struct wb_history *history, struct wb_history *copy_out);

/*
 * The hash by which equal contents are recognised; never 0. The seed is a secret of the repository. Contents that were
 * cut short have odd hashes, the others even ones.
 */
uint64_t wb_history_content(const struct wb_page *page, uint64_t seed);

static inline bool wb_history_is_cut(uint64_t content)
{
    return content & 1;
}

/* The latest version, or NULL. */
struct wb_history_version *wb_history_latest(struct wb_history *history);

/* The newest capture of a version. */
static inline int64_t wb_history_last_ms(const struct wb_history *history, const struct wb_history_version *version)
{
    WB_CHECK(version->count > 0);
    WB_CHECK(version->first + version->count <= history->times.count);
    return history->times.items[version->first + version->count - 1];
}

/*
 * The newest version that has this content and its bytes, or NULL. Ghosts are included, but not what only states show.
 * content must not be 0.
 */
struct wb_history_version *wb_history_find(struct wb_history *history, uint64_t content);

/* Puts a version with one capture at the end, as it was read: for a page that has only one. */
int wb_history_push(struct wb_history *history, const struct wb_history_version *version, int64_t time_ms,
                    uint64_t epoch);

/* The captures of the timeline that were seen at this time: *first_out is an index into times. Returns their number. */
size_t wb_history_tie(const struct wb_history *history, int64_t time_ms, size_t *first_out);

/* The version that has the capture with this index. */
const struct wb_history_version *wb_history_owner(const struct wb_history *history, size_t capture);

/* What decides which versions stay, and in which form. */
struct wb_history_rule {
    struct wb_store_history policy;
    const uint64_t *held; /* epochs that somebody sees, in ascending order */
    size_t held_count;
    int64_t now_ms;
};

/* A capture to be added. */
struct wb_history_capture {
    int64_t time_ms;
    uint64_t content;               /* 0: that of the latest version */
    uint64_t replaces;              /* a content of this time with which this one begins, cut short; or 0 */
    bool forgotten;                 /* it is known that others of its time came later, and that its bytes are gone */
    uint64_t epoch;                 /* of this commit */
    const struct wb_history_rule *rule; /* the clock, to recognise times that cannot be; and who sees what */
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

/* Whether the version is visible in one of the held epochs. */
bool wb_history_is_held(const struct wb_history_version *version, const struct wb_history_rule *rule);

/* With the policy newest, so many captures of a version are kept: the first one, and the newest. */
enum { WB_HISTORY_CAPTURES_MAX = 16 };

/* Gives up the others, except those that a held epoch shows (history_thin.c); trim() does this. */
void wb_history_thin(struct wb_history *history, const struct wb_history_rule *rule);

/*
 * Drops the versions that nobody keeps, and turns those into ghosts that only held epochs keep. In which epochs
 * captures arrived is remembered only as far as a held epoch can tell.
 */
void wb_history_trim(struct wb_history *history, const struct wb_history_rule *rule);

/* The version that has the newest capture at or before time_ms, or else the one with the oldest; NULL if empty. */
const struct wb_history_version *wb_history_at(const struct wb_history *history, int64_t time_ms);

/* The version that is visible in an epoch; NULL if there is none. */
const struct wb_history_version *wb_history_in(const struct wb_history *history, uint64_t epoch);

/* The newest capture of a version that had arrived by an epoch. */
int64_t wb_history_last_in(const struct wb_history *history, const struct wb_history_version *version, uint64_t epoch);

/*
 * Makes the history that of an epoch, so that the timeline has the captures that had arrived by then, as far as they
 * are still known. It is only good for being looked at.
 */
int wb_history_rewind(struct wb_history *history, uint64_t epoch);

/*
 * As bytes, and back (docs/formats/catalog.md). The latest version's place and lengths are not part of them: its entry
 * has those. Decoding gives WB_E_CORRUPT or WB_E_NOMEM; the message does not name the page.
 */
int wb_history_encode(const struct wb_history *history, uint64_t site, struct wb_buf *bytes_out);
int wb_history_decode(struct wb_slice bytes, struct wb_history *history_out, uint64_t *site_out);

#endif
