/* model_random.c - see model_trace.h. */
#include "model_trace.h"
#include "os/clock.h"

void say(const struct trace *t, const char *what, const struct spec *spec)
{
    if (!t->print)
        return;
    fprintf(stderr, "%u %s", t->step, what);
    if (spec)
        fprintf(stderr, " site %u number %u (%016llx) time %lld size %u cut %u variant %u content %u", spec->site,
                spec->number, (unsigned long long)spec_id(spec).hi, (long long)spec->time_ms, spec->size, spec->cut,
                spec->variant, spec->content);
    fprintf(stderr, "\n");
}

int64_t last_unit(const struct trace *t)
{
    return t->clock_ms - UNIT_MS / 2;
}

void set_clock(struct trace *t)
{
    if (t->p.committed && t->tick_ms > UNIT_MS / 100) {
        t->tick_ms = 0;
        t->clock_ms += UNIT_MS;
    }
    wb_clock_shift(t->clock_ms - wb_clock_wall_ms(), 0);
}

/* ---- what is put ------------------------------------------------------------------------------- */

int64_t random_time(struct trace *t, struct wb_pageid id)
{
    struct wb_store_timeline timeline;
    uint64_t r = chance_below(&t->chance, 20);
    int64_t time_ms = last_unit(t) + (t->tick_ms += (int64_t)chance_below(&t->chance, 100));

    if (r < 3)
        time_ms =
            last_unit(t) - (int64_t)chance_below(&t->chance, 60) * UNIT_MS + (int64_t)chance_below(&t->chance, 3000);
    else if (r < 6 && wb_store_timeline(t->p.twin, id, &timeline) == 0) {
        time_ms = timeline.times[chance_below(&t->chance, timeline.time_count)] +
                  (int64_t)(chance_below(&t->chance, 12) / 5) - 1;
        wb_store_timeline_release(&timeline);
    } else if (r < 7)
        time_ms += (int64_t)chance_below(&t->chance, 6) * WB_DAY_MS / 2;
    return time_ms;
}

void choose_content(struct trace *t, struct spec *spec)
{
    uint64_t own = t->chance, *c = &t->chance;

    spec->content = (uint32_t)chance_below(c, 3);
    if (spec->content) { /* one of few, which return; everything about it follows from its number */
        own = spec->content * 31 + spec->site * 7 + spec->number;
        c = &own;
    }
    spec->variant = (uint32_t)chance_below(c, 1000);
    switch (chance_below(c, 8)) {
    case 0:
        spec->size = (uint32_t)chance_below(c, 3);
        break;
    case 1:
        spec->size = (uint32_t)chance_below(c, t->shape.body_max);
        break;
    default:
        spec->size = (uint32_t)chance_below(c, t->shape.body_max / 16);
    }
    if (t->shape.giant_max && chance_one_in(c, 150))
        spec->size = (uint32_t)chance_below(c, t->shape.giant_max);
    spec->dress = (uint32_t)chance_below(&t->chance, 4) * 37;
}

struct spec random_spec(struct trace *t)
{
    struct spec spec = {
        .site = (uint32_t)chance_below(&t->chance, t->shape.sites),
        .number = (uint32_t)chance_below(&t->chance, t->shape.numbers),
    };

    choose_content(t, &spec);
    if (chance_one_in(&t->chance, 8))
        spec.cut = 1 + (uint32_t)chance_below(&t->chance, spec.size + 1);
    spec.time_ms = random_time(t, spec_id(&spec));
    return spec;
}

struct wb_store_history random_history(struct trace *t)
{
    switch (chance_below(&t->chance, 4)) {
    case 0:
        return (struct wb_store_history){WB_STORE_KEEP_NEWEST, 0};
    case 1:
        return (struct wb_store_history){WB_STORE_KEEP_ALL, 0};
    case 2:
        return (struct wb_store_history){WB_STORE_KEEP_COUNT, 1 + chance_below(&t->chance, 4)};
    default:
        return (struct wb_store_history){WB_STORE_KEEP_DURATION,
                                         (1 + chance_below(&t->chance, 40)) * (uint64_t)UNIT_MS};
    }
}

uint32_t random_snapshot(struct trace *t)
{
    struct wb_store_stat stat;
    uint32_t number = 0;

    must_ok(wb_store_stat(t->p.twin, &stat));
    for (unsigned tries = 0; tries < 20; tries++) {
        struct wb_store_snapshot found;
        char text[16];
        number = 1 + (uint32_t)chance_below(&t->chance, stat.snapshot + 1);
        snprintf(text, sizeof text, "%u", number);
        int err = wb_store_snapshot_find(t->p.twin, wb_slice_str(text), &found);
        if (err == 0 || chance_one_in(&t->chance, 20)) {
            wb_store_snapshot_release(&found);
            break;
        }
    }
    return number;
}

struct wb_store_holder random_holder(struct trace *t)
{
    struct wb_store_holder holder = {.kind = (enum wb_store_holder_kind)chance_below(&t->chance, 3)};

    if (holder.kind != WB_STORE_HOLDER_PERSON)
        snprintf(holder.name, sizeof holder.name, "holder-%u", (unsigned)chance_below(&t->chance, 3));
    if (chance_one_in(&t->chance, 2))
        holder.expires_ms = last_unit(t) + UNIT_MS * (1 + (int64_t)chance_below(&t->chance, 20));
    return holder;
}
