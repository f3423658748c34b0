/*
 * indexing.c - the step index: merges what is unmerged, then lets room index build the next generation.
 *
 * The update comes first, so that the edition has seen everything that the snapshot, which is sealed a moment later,
 * contains. What is stored between the two is left for the next generation.
 */
#include "base/error.h"
#include "cycle/cycle.h"
#include "query/query.h"

static bool on_progress(void *context, const char *step, uint64_t done, uint64_t total)
{
    const struct wb_cycle_sink *sink = context;

    return !sink->progress || sink->progress(sink->context, step, done, total);
}

static void on_warning(void *context, const char *message)
{
    const struct wb_cycle_sink *sink = context;

    if (sink->warn)
        sink->warn(sink->context, message);
}

static bool is_column_name(struct wb_slice name)
{
    return wb_ask_check_column(name) == 0;
}

int wb_cycle_index(const struct wb_update_options *update, const struct wb_index_options *options,
                   const struct wb_cycle_sink *sink, struct wb_index_result *result_out)
{
    struct wb_index_options o = *options;
    struct wb_cycle_sink copy = *sink;
    struct wb_webdb_merge merge;
    int err = wb_update(update, sink, &merge, NULL);

    *result_out = (struct wb_index_result){.read = 0};
    if (err < 0)
        return err;
    if (merge.edition == 0)
        return wb_fail(WB_E_NOTFOUND, "%s has no pages to index yet", update->dir);
    o.dir = update->dir;
    o.edition = merge.edition;
    o.memory_bytes = update->memory_bytes;
    o.threads = update->threads;
    o.progress = on_progress;
    o.warn = on_warning;
    o.context = &copy;
    o.column_name = is_column_name;
    return wb_index_build(&o, result_out);
}
