/* cmd_compact.c - webbase compact: gives back the space of dead pages. */
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "os/stop.h"
#include "store/store.h"

#include <inttypes.h>

static bool on_progress(void *context, uint64_t done, uint64_t total)
{
    wb_progress_update(context, done, total, 0);
    return !wb_stop_requested();
}

struct told {
    bool json;
    int err; /* of writing */
};

/* Damage that stays is an error, damage that is gone is worth a line. */
static void on_damage(void *context, const struct wb_store_finding *report)
{
    struct told *told = context;
    struct wb_buf line = WB_BUF_INIT;
    struct wb_json j;

    wb_progress_clear();
    if (!told->json) {
        wb_report("%s at %" PRIu64 ": %s", report->file, report->offset, report->message);
        return;
    }
    wb_json_init(&j, &line);
    wb_json_object(&j);
    wb_json_field_str(&j, "event", report->problem ? "damage" : "dropped");
    wb_json_field_str(&j, "file", report->file);
    wb_json_field_u64(&j, "offset", report->offset);
    wb_json_field_str(&j, "message", report->message);
    int err = wb_output_object(&j);
    told->err = told->err < 0 ? told->err : err;
    wb_buf_release(&line);
}

static int write_json(const struct wb_store_compact_counts *result)
{
    struct wb_buf line = WB_BUF_INIT;
    struct wb_json j;

    wb_json_init(&j, &line);
    wb_json_object(&j);
    wb_json_field_str(&j, "event", "done");
    wb_json_field_u64(&j, "segments", result->segments);
    wb_json_field_u64(&j, "pages", result->pages);
    wb_json_field_u64(&j, "bytes_before", result->bytes_before);
    wb_json_field_u64(&j, "bytes_after", result->bytes_after);
    wb_json_field_u64(&j, "skipped", result->skipped);
    wb_json_field_u64(&j, "damaged", result->damaged);
    wb_json_field_u64(&j, "dropped", result->dropped);
    int err = wb_output_object(&j);
    wb_buf_release(&line);
    return err;
}

static int write_words(const struct wb_store_compact_counts *result)
{
    int err = wb_output_printf("rewrote %" PRIu64 " segment%s with %" PRIu64 " page%s: %" PRIu64 " bytes became %" PRIu64 "\n",
                               result->segments, wb_plural(result->segments), result->pages, wb_plural(result->pages),
                               result->bytes_before, result->bytes_after);

    if (err == 0 && result->skipped)
        err = wb_output_printf("left alone, because in use: %" PRIu64 " segment%s\n", result->skipped,
                               wb_plural(result->skipped));
    return err;
}

int wb_cmd_compact(const struct wb_options *options)
{
    struct wb_store *store = NULL;
    struct wb_store_compact_counts result;
    struct wb_progress progress;
    struct told told = {.json = options->json};

    wb_stop_on_signals();
    int err = wb_store_open(options->dir, WB_STORE_WRITE, &store);
    if (err < 0)
        goto done;
    wb_progress_init(&progress, "compact");
    err = wb_store_compact(store, on_progress, &progress, on_damage, &told, &result);
    wb_progress_clear();
    if (err == 0)
        err = told.err;
    if (err == 0)
        err = options->json ? write_json(&result) : write_words(&result);
    if (err == 0 && result.damaged)
        err = wb_fail(WB_E_CORRUPT, "%" PRIu64 " damaged place%s stayed as %s; everything else was compacted. 'webbase verify' shows all damage",
                      result.damaged, wb_plural(result.damaged), result.damaged == 1 ? "it is" : "they are");
done:
    wb_store_close(store);
    return err;
}
