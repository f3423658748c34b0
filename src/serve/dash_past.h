/*
 * dash_past.h - private to serve: a stretch of the past in steps, for charts, tables and /api/history.
 *
 *   "the last day"  ->  from, to, step  ->  numbers per step, with gaps where nobody watched
 */
#ifndef WB_SERVE_DASH_PAST_H
#define WB_SERVE_DASH_PAST_H

#include "serve/dash.h"

enum { WB_DASH_PAST_STEPS_MAX = 4000 };

struct wb_dash_past_range {
    int64_t from_s, to_s, step_s; /* to - from is a multiple of step, and so is from */
};

/* What people choose from: "hour", "day"... NULL: there is no such range. */
struct wb_dash_past_choice {
    const char *word, *title;
    int64_t seconds; /* 0: all that there is */
};
extern const struct wb_dash_past_choice wb_dash_past_choices[];
extern const size_t wb_dash_past_choice_count;

/*
 * Reads the parameters range, from, to and step of a call; steps_wanted: how many there are if step is not given.
 * Without any of them it is the last hour. WB_E_INVALID names the parameter that is wrong. *choice_out: the range by
 * its word; NULL: from and to were given.
 */
int wb_dash_past_params(struct wb_call *call, int64_t steps_wanted, struct wb_dash_past_range *range_out,
                        const struct wb_dash_past_choice **choice_out);

struct wb_dash_past {
    struct wb_dash_past_range range;
    size_t count;                      /* steps */
    struct wb_chronicle_record *steps; /* watched_ms 0: nobody watched */
};

int wb_dash_past_read(struct wb_dash *dash, const struct wb_dash_past_range *range, struct wb_dash_past *past_out);
void wb_dash_past_release(struct wb_dash_past *past);

/* A number in a step: what was measured, or what was counted per second. NaN: unknown. */
double wb_dash_past_value(const struct wb_dash_past *past, size_t step, enum wb_dash_number number);

#endif
