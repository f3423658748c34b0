/*
 * cmd_push.c - webbase push: takes announcements of pages that are new, changed or gone.
 *
 *   2 pages announced as new or changed, 1 as gone
 *   {"event":"done","changed":2,"gone":1,"refused":0}     and "pages", "stored"... if there are pages
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/cycle_show.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cycle/cycle.h"

#include <inttypes.h>

static int write_json(const struct wb_push_stat *stat)
{
    struct wb_json j;

    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "changed", stat->changed);
    wb_json_field_u64(&j, "gone", stat->gone);
    wb_json_field_u64(&j, "refused", stat->refused);
    if (stat->pages) {
        wb_json_field_u64(&j, "pages", stat->pages);
        wb_json_field_u64(&j, "stored", stat->stored);
        wb_json_field_u64(&j, "unchanged", stat->unchanged);
        wb_json_field_u64(&j, "barred", stat->barred);
    }
    return wb_output_object_end(&j);
}

static int write_words(const struct wb_push_stat *stat)
{
    int err = wb_output_printf("%" PRIu64 " page%s announced as new or changed, %" PRIu64 " as gone\n", stat->changed,
                               wb_output_plural(stat->changed), stat->gone);

    if (err == 0 && stat->pages)
        err = wb_output_printf("%" PRIu64 " whole page%s: %" PRIu64 " stored, %" PRIu64 " unchanged, %" PRIu64
                               " taken down\n",
                               stat->pages, wb_output_plural(stat->pages), stat->stored, stat->unchanged, stat->barred);
    if (err == 0 && stat->refused)
        err = wb_output_printf("%" PRIu64 " refused: not an http or https URL\n", stat->refused);
    return err;
}

int wb_cmd_push(const struct wb_options *options)
{
    struct wb_push_stat stat;
    struct wb_cycle_show show;

    struct wb_cycle_sink sink = wb_cycle_show_init(&show, "push");
    int err = wb_push(options->dir, options->args[0], &sink, &stat);
    wb_cycle_show_end(&show);
    if (err == 0)
        err = options->json ? write_json(&stat) : write_words(&stat);
    return err;
}
