/*
 * model_convert.c - a step of the model test: the repository is converted to some other design, and the trace goes on
 * with the copy. For the twin nothing changes, except that snapshots lose those holders that a copy does not have, and
 * that it is not known any more which contents were forgotten.
 */
#include "model_trace.h"
#include "twin.h"
#include "move/move.h"

struct lost_holders {
    struct {
        uint32_t number;
        struct wb_store_holder holder;
    } list[256];
    size_t count;
};

static int gather_lost(void *context, const struct wb_store_snapshot *snapshot)
{
    struct lost_holders *lost = context;

    for (size_t i = 0; i < snapshot->holder_count; i++)
        if (snapshot->holders[i].kind != WB_STORE_HOLDER_PERSON) {
            must(lost->count < COUNT(lost->list));
            lost->list[lost->count].number = snapshot->number;
            lost->list[lost->count++].holder = snapshot->holders[i];
        }
    return 0;
}

void step_convert(struct trace *t)
{
    struct wb_store_options options = {
        .design.read = {.distribution = (enum wb_distribution)chance_below(&t->chance, 2),
                        .organisation = (enum wb_organisation_kind)chance_below(&t->chance, 3)},
        .nodes = {NULL, 1 + chance_below(&t->chance, 3)},
    };
    struct wb_move_convert_sink sink = {.progress = NULL};
    struct wb_move_convert_counts counts;
    struct lost_holders lost = {.count = 0};
    char to[DIR_MAX], design[WB_DESIGN_TEXT_MAX];

    step_commit(t);
    wb_design_format(&options.design, design);
    say(t, "convert", NULL);
    say(t, design, NULL);
    end_scans(t);
    for (size_t i = 0; i < WALKS_MAX; i++)
        end_walk(&t->walks[i]);
    wb_store_close(t->p.log);
    test_dir(to);
    must_ok(wb_move_convert(t->dir, to, &options, &sink, &counts));
    remove_tree(t->dir);
    strcpy(t->dir, to);
    t->p.log = open_store(t->dir, WB_STORE_WRITE);
    wb_twin_converted(t->p.twin);
    must_ok(wb_store_snapshot_each(t->p.twin, gather_lost, &lost));
    for (size_t i = 0; i < lost.count; i++)
        must_ok(wb_store_let_go(t->p.twin, lost.list[i].number, &lost.list[i].holder));
    compare_stat(t);
    compare_snapshots(&t->p);
    verify_clean(t->dir);
}
