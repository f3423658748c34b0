/*
 * cmd_update.c - webbase update: lets wb_update() merge the journal into webdb, and shows the result.
 *
 *   edition 1: 2 pages added, 0 changed, 0 deleted; 1 link added, 0 deleted
 *   {"event":"done","edition":1,"records":2,"page_edits":3,...}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/cycle_show.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cycle/cycle.h"
#include "os/stop.h"

#include <inttypes.h>

static int write_json(const struct wb_webdb_merge *merge, uint64_t freed)
{
    struct wb_json j;

    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "edition", merge->edition);
    wb_json_field_u64(&j, "records", merge->records);
    wb_json_field_u64(&j, "page_edits", merge->page_edits);
    wb_json_field_u64(&j, "link_edits", merge->link_edits);
    wb_json_field_u64(&j, "pages_added", merge->pages_added);
    wb_json_field_u64(&j, "pages_changed", merge->pages_changed);
    wb_json_field_u64(&j, "pages_deleted", merge->pages_deleted);
    wb_json_field_u64(&j, "links_added", merge->links_added);
    wb_json_field_u64(&j, "links_deleted", merge->links_deleted);
    wb_json_field_u64(&j, "links_without_source", merge->links_without_source);
    wb_json_field_u64(&j, "bytes_before", merge->bytes_before);
    wb_json_field_u64(&j, "bytes_after", merge->bytes_after);
    wb_json_field_u64(&j, "bytes_freed", freed);
    return wb_output_object_end(&j);
}

static int write_words(const struct wb_webdb_merge *merge, uint64_t freed)
{
    int err;

    if (merge->records == 0 && merge->page_edits == 0 && merge->link_edits == 0)
        err = wb_output_printf("nothing new; webdb is edition %" PRIu32 "\n", merge->edition);
    else
        err = wb_output_printf("edition %" PRIu32 ": %" PRIu64 " page%s added, %" PRIu64 " changed, %" PRIu64
                               " deleted; %" PRIu64 " link%s added, %" PRIu64 " deleted\n",
                               merge->edition, merge->pages_added, wb_output_plural(merge->pages_added),
                               merge->pages_changed, merge->pages_deleted, merge->links_added,
                               wb_output_plural(merge->links_added), merge->links_deleted);
    if (err == 0 && freed)
        err = wb_output_printf("removed %" PRIu64 " bytes of the journal that nobody needs any more\n", freed);
    return err;
}

int wb_cmd_update(const struct wb_options *options)
{
    struct wb_update_options o = {.dir = options->dir, .dispenser = wb_options_text(options, "dispenser"),
                                  .memory_bytes = wb_options_size(options, "memory", 0),
                                  .rebuild = wb_options_flag(options, "rebuild")};
    struct wb_cycle_show show;
    struct wb_webdb_merge merge;
    uint64_t freed;

    struct wb_cycle_sink sink = wb_cycle_show_init(&show, "update");
    wb_stop_on_signals();
    int err = wb_update(&o, &sink, &merge, &freed);
    wb_cycle_show_end(&show);
    if (err == WB_E_CORRUPT && !o.rebuild)
        sink.warn(sink.context, "webdb is damaged and stays as it is; 'webbase update --rebuild' makes a new one");
    if (err == 0)
        err = options->json ? write_json(&merge, freed) : write_words(&merge, freed);
    return err;
}
