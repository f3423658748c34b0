/*
 * api_history.c - GET /api/history?metric=&range=&from=&to=&step=: numbers of the dashboard over time.
 *
 *   {"from":1768435200000,"to":1768438800000,"step":60,"kept":"disk","time":[...],
 *    "metrics":{"crawl_pages":{"unit":"","per_second":true,"about":"...","values":[1.5,null,...]},...}}
 *
 * Times are milliseconds since 1970, step is in seconds. null: nobody watched then, or the number was not known.
 */
#include "base/check.h"
#include "base/error.h"
#include "serve/dash_past.h"

#include <math.h>

enum { STEPS_WANTED = 360 };

struct metric_set {
    bool wanted[WB_DASH_NUMBERS];
};

/* Names with commas between them; without any, all of them. */
static int read_metrics(struct wb_call *call, struct metric_set *set)
{
    struct wb_slice rest = wb_call_param(call, "metric");

    for (size_t i = 0; i < WB_DASH_NUMBERS; i++)
        set->wanted[i] = rest.len == 0;
    while (rest.len) {
        const char *comma = memchr(rest.ptr, ',', rest.len);
        struct wb_slice name = wb_slice(rest.ptr, comma ? (size_t)(comma - rest.ptr) : rest.len);
        enum wb_dash_number number = wb_dash_number_find(name);
        if (number == WB_DASH_NUMBERS)
            return wb_fail(WB_E_INVALID, "metric=%.*s: there is no such number; /api/history without metric has all",
                           WB_SLICE_ARG(name));
        set->wanted[number] = true;
        rest = wb_slice(rest.ptr + name.len, rest.len - name.len);
        rest = rest.len ? wb_slice(rest.ptr + 1, rest.len - 1) : rest;
    }
    return 0;
}

static void add_value(struct wb_json *j, double value)
{
    if (isnan(value))
        wb_json_null(j);
    else if (value == floor(value) && fabs(value) < 9e15)
        wb_json_i64(j, (int64_t)value);
    else
        wb_json_double(j, value);
}

static void add_metric(struct wb_json *j, const struct wb_dash_past *past, enum wb_dash_number number)
{
    const struct wb_dash_about *about = &wb_dash_numbers[number];

    wb_json_key(j, about->name);
    wb_json_object(j);
    wb_json_field_str(j, "about", about->text);
    wb_json_field_str(j, "unit", about->unit);
    wb_json_field_bool(j, "per_second", about->counted);
    wb_json_key(j, "values");
    wb_json_array(j);
    for (size_t i = 0; i < past->count; i++)
        add_value(j, wb_dash_past_value(past, i, number));
    wb_json_array_end(j);
    wb_json_object_end(j);
}

static void answer(struct wb_call *call, const struct wb_dash_past *past, const struct metric_set *set)
{
    WB_CHECK((int64_t)past->count * past->range.step_s == past->range.to_s - past->range.from_s);
    const struct wb_dash_past_range *range = &past->range;
    struct wb_json j;

    wb_call_json(call, &j);
    wb_json_field_i64(&j, "from", range->from_s * 1000);
    wb_json_field_i64(&j, "to", range->to_s * 1000);
    wb_json_field_i64(&j, "step", range->step_s);
    wb_json_field_str(&j, "kept",
                      wb_chronicle_role(wb_dash_chronicle(call->server->dash)) == WB_CHRONICLE_MEMORY ? "memory"
                                                                                                      : "disk");
    wb_json_key(&j, "time");
    wb_json_array(&j);
    for (size_t i = 0; i < past->count; i++)
        wb_json_i64(&j, (range->from_s + (int64_t)i * range->step_s) * 1000);
    wb_json_array_end(&j);
    wb_json_key(&j, "metrics");
    wb_json_object(&j);
    for (enum wb_dash_number number = 0; number < WB_DASH_NUMBERS; number++)
        if (set->wanted[number])
            add_metric(&j, past, number);
    wb_json_object_end(&j);
    (void)wb_http_reply_field(call->reply, "Cache-Control", WB_SLICE_LIT("no-store"));
    wb_call_json_end(call, &j, 0);
}

void wb_handle_history(struct wb_call *call)
{
    const struct wb_dash_past_choice *choice;
    struct wb_dash_past past = {.count = 0};
    struct wb_dash_past_range range;
    struct metric_set set;

    WB_CHECK(wb_call_is_fresh(call));
    int err = read_metrics(call, &set);
    if (err == 0)
        err = wb_dash_past_params(call, STEPS_WANTED, &range, &choice);
    if (err == 0)
        err = wb_dash_past_read(call->server->dash, &range, &past);
    if (err == 0)
        answer(call, &past, &set);
    else
        wb_call_fail(call, err);
    wb_dash_past_release(&past);
}
