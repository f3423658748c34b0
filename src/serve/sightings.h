/*
 * sightings.h - private to serve: all captures of a URL in the order of time, what each of them found, and how many
 * there are in each span of time, for calendars.
 *
 *   timeline of the store --wb_sightings_of()--> captures --wb_sightings_count()--> spans: a quarter of an hour, a day
 *
 * Nothing here reads a page: a timeline has all that is needed, so 100,000 captures cost milliseconds.
 */
#ifndef WB_SERVE_SIGHTINGS_H
#define WB_SERVE_SIGHTINGS_H

#include "base/vec.h"
#include "store/store.h"

enum wb_sighting_kind {
    WB_SIGHTING_NEW,      /* a page, with content that differs from that of the capture before */
    WB_SIGHTING_SAME,     /* a page whose content was seen before */
    WB_SIGHTING_REDIRECT, /* 301, 302, 303, 307, 308 */
    WB_SIGHTING_ERROR,    /* any status from 400 */
    WB_SIGHTING_KINDS,
};

/* Its name for programs: "new", "same", "redirect", "error". And for people. */
const char *wb_sighting_kind_name(enum wb_sighting_kind kind);
const char *wb_sighting_kind_words(enum wb_sighting_kind kind);

struct wb_sighting {
    int64_t time_ms;
    size_t version; /* index into the versions of the timeline */
    enum wb_sighting_kind kind;
};

struct wb_sightings WB_VEC_OF(struct wb_sighting);

/* The captures of a timeline, oldest first; those of one time in the order of the timeline. WB_E_NOMEM. */
int wb_sightings_of(const struct wb_store_timeline *timeline, struct wb_sightings *captures_out);
void wb_sightings_release(struct wb_sightings *captures);

/* The index of the first capture at or after a time; their count if there is none. */
size_t wb_sightings_from(const struct wb_sightings *captures, int64_t time_ms);

/* Of one span of time: how many captures of each kind. */
struct wb_sighting_span {
    int64_t number; /* of the span, counted from 1970: time_ms / unit_ms, rounded down */
    uint64_t count, kinds[WB_SIGHTING_KINDS];
};

struct wb_sighting_spans WB_VEC_OF(struct wb_sighting_span);

/* The spans in which there are captures, oldest first. unit_ms: their length. WB_E_NOMEM. */
int wb_sightings_count(const struct wb_sightings *captures, int64_t unit_ms, struct wb_sighting_spans *spans_out);
void wb_sighting_spans_release(struct wb_sighting_spans *spans);

/* The number of the span that a time is in: floor(time_ms / unit_ms), also before 1970. */
int64_t wb_sighting_span_of(int64_t time_ms, int64_t unit_ms);

#endif
