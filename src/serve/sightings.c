/* sightings.c - sorts and counts the captures of a URL. See sightings.h. */
#include "serve/sightings.h"
#include "base/check.h"

#include <stdlib.h>

const char *wb_sighting_kind_name(enum wb_sighting_kind kind)
{
    static const char *const names[WB_SIGHTING_KINDS] = {"new", "same", "redirect", "error"};

    WB_CHECK(kind < WB_SIGHTING_KINDS);
    return names[kind];
}

const char *wb_sighting_kind_words(enum wb_sighting_kind kind)
{
    static const char *const words[WB_SIGHTING_KINDS] = {"new content", "unchanged", "redirect", "error"};

    WB_CHECK(kind < WB_SIGHTING_KINDS);
    return words[kind];
}

static enum wb_sighting_kind kind_of(const struct wb_store_version *version, size_t number)
{
    if (version->status >= 400)
        return WB_SIGHTING_ERROR;
    if (wb_http_status_redirects(version->status))
        return WB_SIGHTING_REDIRECT;
    return number == 0 ? WB_SIGHTING_NEW : WB_SIGHTING_SAME;
}

/* A version is one range of the timeline, so those of one time stay in its order if versions do. */
static int by_time(const void *a, const void *b)
{
    const struct wb_sighting *x = a, *y = b;

    if (x->time_ms != y->time_ms)
        return x->time_ms < y->time_ms ? -1 : 1;
    if (x->version != y->version)
        return x->version < y->version ? -1 : 1;
    return x->kind < y->kind ? -1 : x->kind > y->kind;
}

int wb_sightings_of(const struct wb_store_timeline *timeline, struct wb_sightings *captures_out)
{
    *captures_out = (struct wb_sightings)WB_VEC_INIT;
    if (wb_vec_reserve(captures_out, timeline->time_count + 1) < 0)
        return WB_E_NOMEM;
    for (size_t i = 0; i < timeline->count; i++) {
        const struct wb_store_version *version = &timeline->versions[i];
        WB_CHECK(version->first + version->captures <= timeline->time_count);
        WB_CHECK(version->captures <= timeline->time_count - captures_out->count);
        for (size_t k = 0; k < version->captures; k++)
            captures_out->items[captures_out->count++] =
                (struct wb_sighting){timeline->times[version->first + k], i, kind_of(version, k)};
    }
    WB_CHECK(captures_out->count <= timeline->time_count);
    qsort(captures_out->items, captures_out->count, sizeof *captures_out->items, by_time);
    return 0;
}

void wb_sightings_release(struct wb_sightings *captures)
{
    wb_vec_release(captures);
}

size_t wb_sightings_from(const struct wb_sightings *captures, int64_t time_ms)
{
    size_t first = 0, end = captures->count;

    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (captures->items[middle].time_ms < time_ms)
            first = middle + 1;
        else
            end = middle;
    }
    WB_CHECK(first == captures->count || captures->items[first].time_ms >= time_ms);
    WB_CHECK(first == 0 || captures->items[first - 1].time_ms < time_ms);
    return first;
}

int64_t wb_sighting_span_of(int64_t time_ms, int64_t unit_ms)
{
    WB_CHECK(unit_ms > 0);
    return time_ms / unit_ms - (time_ms % unit_ms < 0);
}

int wb_sightings_count(const struct wb_sightings *captures, int64_t unit_ms, struct wb_sighting_spans *spans_out)
{
    *spans_out = (struct wb_sighting_spans)WB_VEC_INIT;
    for (size_t i = 0; i < captures->count; i++) {
        const struct wb_sighting *capture = &captures->items[i];
        int64_t number = wb_sighting_span_of(capture->time_ms, unit_ms);
        struct wb_sighting_span *span = spans_out->count ? &spans_out->items[spans_out->count - 1] : NULL;
        WB_CHECK(!span || span->number <= number); /* they are sorted */
        if (!span || span->number != number) {
            span = wb_vec_add(spans_out);
            if (!span)
                return WB_E_NOMEM;
            span->number = number;
        }
        span->count++;
        span->kinds[capture->kind]++;
    }
    return 0;
}

void wb_sighting_spans_release(struct wb_sighting_spans *spans)
{
    wb_vec_release(spans);
}
