/* dash_past.c - the chronicle in steps. See dash_past.h. */
#include "serve/dash_past.h"
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"

#include <inttypes.h>
#include <math.h>

#define HOUR_S INT64_C(3600)
#define DAY_S (24 * HOUR_S)

const struct wb_dash_past_choice wb_dash_past_choices[] = {
    {"hour", "Hour", HOUR_S},       {"day", "Day", DAY_S},         {"week", "Week", 7 * DAY_S},
    {"month", "Month", 31 * DAY_S}, {"year", "Year", 366 * DAY_S}, {"all", "All", 0},
};
const size_t wb_dash_past_choice_count = sizeof wb_dash_past_choices / sizeof *wb_dash_past_choices;

/* ---- the range --------------------------------------------------------------------------------------------------- */

static int find_choice(struct wb_slice word, const struct wb_dash_past_choice **choice_out)
{
    for (size_t i = 0; i < wb_dash_past_choice_count; i++)
        if (wb_slice_equal(word, wb_slice_str(wb_dash_past_choices[i].word))) {
            *choice_out = &wb_dash_past_choices[i];
            return 0;
        }
    return wb_fail(WB_E_INVALID, "range=%.*s is not hour, day, week, month, year or all", WB_SLICE_ARG(word));
}

static int see_first(void *context, const struct wb_chronicle_record *record)
{
    *(int64_t *)context = record->start_s;
    return 1;
}

/* When the chronicle begins; now if it is empty. */
static int find_first(struct wb_dash *dash, int64_t now_s, int64_t *first_out)
{
    *first_out = now_s;
    int err = wb_chronicle_read(wb_dash_chronicle(dash), WB_CHRONICLE_HOURS, 0, now_s, see_first, first_out);
    return err < 0 ? err : 0;
}

/* A length that people have a word for, and that periods of the chronicle fit into. */
static int64_t round_step(int64_t step_s)
{
    static const int64_t good[] = {1,   2,   5,    10,     15,         30,         60,         120,         300,
                                   600, 900, 1800, HOUR_S, 2 * HOUR_S, 3 * HOUR_S, 6 * HOUR_S, 12 * HOUR_S, DAY_S};

    WB_CHECK(step_s > 0);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (step_s <= good[i])
            return good[i];
    return (step_s + DAY_S - 1) / DAY_S * DAY_S;
}

/* Since when a level has all its records: a multiple of the next level's period. */
static int64_t reach_of(enum wb_chronicle_level level, int64_t now_s)
{
    int64_t since = now_s - wb_chronicle_slots(level) * wb_chronicle_period(level);
    int64_t next = level < WB_CHRONICLE_HOURS ? wb_chronicle_period(level + 1) : wb_chronicle_period(level);

    return since < 0 ? 0 : (since / next + 1) * next;
}

/* How short steps can be without gaps between them: of what is old only the coarse records are left. */
static int64_t least_step(int64_t from_s)
{
    int64_t now_s = wb_clock_wall_ms() / 1000;
    enum wb_chronicle_level level = WB_CHRONICLE_SECONDS;

    while (level < WB_CHRONICLE_HOURS && from_s < reach_of(level, now_s) - 2 * wb_chronicle_period(level + 1))
        level++;
    return wb_chronicle_period(level);
}

/* Makes the ends multiples of the step; a step that was not given follows from how many are wanted. */
static int align_range(struct wb_dash_past_range *range, int64_t step_s, int64_t steps_wanted)
{
    WB_CHECK(range->from_s >= 0 && range->from_s < range->to_s);
    WB_CHECK(steps_wanted > 0);
    int64_t length = range->to_s - range->from_s, least = least_step(range->from_s);

    range->step_s = step_s ? step_s : round_step((length + steps_wanted - 1) / steps_wanted);
    if (!step_s && range->step_s < least)
        range->step_s = least;
    range->from_s -= range->from_s % range->step_s;
    range->to_s += (range->step_s - range->to_s % range->step_s) % range->step_s;
    WB_CHECK(range->step_s > 0);
    WB_CHECK(range->from_s % range->step_s == 0 && range->to_s % range->step_s == 0);
    int64_t steps = (range->to_s - range->from_s) / range->step_s;
    return steps <= WB_DASH_PAST_STEPS_MAX
               ? 0
               : wb_fail(WB_E_INVALID,
                         "from %" PRId64 " to %" PRId64 " are %" PRId64 " steps of %" PRId64
                         " s; at most %d are possible",
                         range->from_s * 1000, range->to_s * 1000, steps, range->step_s, WB_DASH_PAST_STEPS_MAX);
}

int wb_dash_past_params(struct wb_call *call, int64_t steps_wanted, struct wb_dash_past_range *range_out,
                        const struct wb_dash_past_choice **choice_out)
{
    const uint64_t latest_ms = UINT64_C(253402300800000); /* the year 10000 */
    int64_t now_s = wb_clock_wall_ms() / 1000, first_s;
    struct wb_slice word = wb_call_param(call, "range");
    bool given = wb_call_param(call, "from").ptr || wb_call_param(call, "to").ptr;
    uint64_t from_ms, to_ms, step_s;

    *choice_out = given ? NULL : &wb_dash_past_choices[0];
    int err = wb_call_number(call, "to", (uint64_t)now_s * 1000 + 1000, latest_ms, &to_ms);
    uint64_t hour_before = to_ms > HOUR_S * 1000 ? to_ms - HOUR_S * 1000 : 0;
    if (err == 0)
        err = wb_call_number(call, "from", hour_before, latest_ms, &from_ms);
    if (err == 0)
        err = wb_call_number(call, "step", 0, 366 * DAY_S, &step_s);
    if (err == 0 && word.ptr && given)
        err = wb_fail(WB_E_INVALID, "range cannot be combined with from and to");
    if (err == 0 && word.ptr)
        err = find_choice(word, choice_out);
    if (err == 0 && from_ms >= to_ms)
        err = wb_fail(WB_E_INVALID, "from=%" PRIu64 " is not before to=%" PRIu64, from_ms, to_ms);
    if (err < 0)
        return err;
    *range_out = (struct wb_dash_past_range){.from_s = (int64_t)from_ms / 1000, .to_s = ((int64_t)to_ms + 999) / 1000};
    if (*choice_out && (*choice_out)->seconds)
        range_out->from_s = range_out->to_s - (*choice_out)->seconds;
    else if (*choice_out && (err = find_first(call->server->dash, now_s, &first_s)) == 0)
        range_out->from_s = first_s < range_out->to_s - HOUR_S ? first_s : range_out->to_s - HOUR_S;
    range_out->from_s = range_out->from_s < 0 ? 0 : range_out->from_s;
    return err < 0 ? err : align_range(range_out, (int64_t)step_s, steps_wanted);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static wb_chronicle_counted counted_numbers(void)
{
    wb_chronicle_counted counted = 0;

    for (size_t i = 0; i < WB_DASH_NUMBERS; i++)
        counted |= wb_dash_numbers[i].counted ? 1u << i : 0;
    return counted;
}

static int add_record(void *context, const struct wb_chronicle_record *record)
{
    struct wb_dash_past *past = context;
    size_t step = (size_t)((record->start_s - past->range.from_s) / past->range.step_s);

    WB_CHECK(record->start_s >= past->range.from_s);
    WB_CHECK(step < past->count);
    struct wb_chronicle_record *sum = &past->steps[step];
    if (sum->watched_ms == 0)
        *sum = *record;
    else
        wb_chronicle_merge(sum, record, counted_numbers());
    return 0;
}

/* The coarsest level whose periods fit into steps. */
static enum wb_chronicle_level choose_level(const struct wb_dash_past_range *range)
{
    enum wb_chronicle_level level = WB_CHRONICLE_HOURS;

    WB_CHECK(range->step_s > 0);
    while (level > WB_CHRONICLE_SECONDS && range->step_s % wb_chronicle_period(level) != 0)
        level--;
    return level;
}

/* What is too old for the finer levels is read from the coarser ones. */
static int read_levels(struct wb_chronicle *chronicle, struct wb_dash_past *past)
{
    WB_CHECK(past->range.from_s % past->range.step_s == 0);
    int64_t now_s = wb_clock_wall_ms() / 1000, from_s = past->range.from_s;
    enum wb_chronicle_level finest = choose_level(&past->range);
    int err = 0;

    for (enum wb_chronicle_level level = WB_CHRONICLE_HOURS; level > finest && err == 0; level--) {
        int64_t reach = reach_of(level - 1, now_s);
        int64_t until = reach < past->range.to_s ? reach : past->range.to_s;
        if (from_s >= until)
            continue;
        err = wb_chronicle_read(chronicle, level, from_s, until, add_record, past);
        from_s = until;
    }
    return err < 0 || from_s >= past->range.to_s
               ? err
               : wb_chronicle_read(chronicle, finest, from_s, past->range.to_s, add_record, past);
}

int wb_dash_past_read(struct wb_dash *dash, const struct wb_dash_past_range *range, struct wb_dash_past *past_out)
{
    WB_CHECK(range->step_s > 0);
    WB_CHECK(range->to_s > range->from_s);
    *past_out =
        (struct wb_dash_past){.range = *range, .count = (size_t)((range->to_s - range->from_s) / range->step_s)};
    past_out->steps = wb_alloc_zero(past_out->count + 1, sizeof *past_out->steps);
    return past_out->steps ? read_levels(wb_dash_chronicle(dash), past_out) : WB_E_NOMEM;
}

void wb_dash_past_release(struct wb_dash_past *past)
{
    wb_free(past->steps);
    *past = (struct wb_dash_past){.count = 0};
}

double wb_dash_past_value(const struct wb_dash_past *past, size_t step, enum wb_dash_number number)
{
    WB_CHECK(step < past->count);
    WB_CHECK(number < WB_DASH_NUMBERS);
    const struct wb_chronicle_record *record = &past->steps[step];

    if (record->watched_ms == 0)
        return NAN;
    return wb_dash_numbers[number].counted ? record->numbers[number] * 1000 / (double)record->watched_ms
                                           : record->numbers[number];
}
