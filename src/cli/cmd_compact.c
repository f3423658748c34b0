/*
 * cmd_compact.c - webbase compact: shows what wb_move_compact() does to free the space of dead pages.
 *
 *   rewrote 1 file with 1 page: 399 bytes became 362
 *   gave up 2 old versions that nobody keeps any more
 *   {"event":"damage","file":"segments/1","offset":4096,"message":"..."}   for damage that remains
 *   {"event":"note",...}             for damage that no page needed, and files on nodes that are down
 *   {"event":"done","segments":1,"pages":1,"versions":2,"moved":0,"bytes_before":399,...}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "move/move.h"
#include "os/stop.h"
#include "store/store.h"

#include <inttypes.h>

static bool on_progress(void *context, uint64_t done, uint64_t total)
{
    wb_progress_update(context, done, total, 0);
    return !wb_stop_requested();
}

#define TOLD_MAX 50 /* one bit can damage a lot */

struct compact_show {
    bool json;
    uint64_t told; /* damaged places */
    int err; /* of writing to standard output */
};

/* Damage that remains, damage that was dropped because no page needs it, and files on nodes that are down. */
static void on_damage(void *context, const struct wb_store_finding *finding)
{
    struct compact_show *show = context;
    struct wb_json j;

    wb_progress_clear();
    if (!show->json && show->told++ >= TOLD_MAX) {
        if (show->told == TOLD_MAX + 1)
            wb_report("further damaged places are only counted; --json lists all of them");
        return;
    }
    if (!show->json) {
        wb_report("%s at %" PRIu64 ": %s", finding->file, finding->offset, finding->message);
        return;
    }
    wb_output_object_begin(&j, finding->problem ? "damage" : "note");
    wb_json_field_str(&j, "file", finding->file);
    wb_json_field_u64(&j, "offset", finding->offset);
    wb_json_field_str(&j, "message", finding->message);
    int err = wb_output_object_end(&j);
    show->err = show->err < 0 ? show->err : err;
}

static int write_json(const struct wb_move_compact_counts *result)
{
    struct wb_json j;

    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "segments", result->files);
    wb_json_field_u64(&j, "pages", result->pages);
    wb_json_field_u64(&j, "versions", result->versions);
    wb_json_field_u64(&j, "moved", result->moved);
    wb_json_field_u64(&j, "bytes_before", result->bytes_before);
    wb_json_field_u64(&j, "bytes_after", result->bytes_after);
    wb_json_field_u64(&j, "skipped", result->skipped);
    wb_json_field_u64(&j, "damaged", result->damaged);
    wb_json_field_u64(&j, "dropped", result->dropped);
    return wb_output_object_end(&j);
}

static int write_words(const struct wb_move_compact_counts *result)
{
    int err = wb_output_printf("rewrote %" PRIu64 " file%s with %" PRIu64 " page%s: %" PRIu64
                               " bytes became %" PRIu64 "\n",
                               result->files, wb_output_plural(result->files), result->pages,
                               wb_output_plural(result->pages), result->bytes_before, result->bytes_after);

    if (err == 0 && result->versions)
        err = wb_output_printf("gave up %" PRIu64 " old version%s that nobody keeps any more\n", result->versions,
                               wb_output_plural(result->versions));
    if (err == 0 && result->moved)
        err = wb_output_printf("put %" PRIu64 " old version%s next to newer ones of the same page\n", result->moved,
                               wb_output_plural(result->moved));
    if (err == 0 && result->skipped)
        err = wb_output_printf("files in use, or on nodes that are down, which were left alone: %" PRIu64 "\n",
                               result->skipped);
    return err;
}

int wb_cmd_compact(const struct wb_options *options)
{
    struct wb_store *store = NULL;
    struct wb_move_compact_counts result;
    struct wb_progress progress;
    struct compact_show show = {.json = options->json};

    wb_stop_on_signals();
    int err = wb_store_open(options->dir, WB_STORE_WRITE, &store);
    if (err < 0)
        goto done;
    wb_progress_init(&progress, "compact");
    err = wb_move_compact(store, on_progress, &progress, on_damage, &show, &result);
    wb_progress_clear();
    if (err == 0)
        err = show.err;
    if (err == 0)
        err = options->json ? write_json(&result) : write_words(&result);
    if (err == 0 && result.damaged)
        err = wb_fail(WB_E_CORRUPT, "%" PRIu64 " damaged place%s stayed as %s; everything else was compacted. "
                      "'webbase verify' shows all damage", result.damaged, wb_output_plural(result.damaged),
                      result.damaged == 1 ? "it is" : "they are");
done:
    wb_store_close(store);
    return err;
}
