/* cmd_compact.c - webbase compact: gives back the space of dead pages. */
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "os/stop.h"
#include "store/store.h"

#include <inttypes.h>

static bool on_progress(void *context, uint64_t done, uint64_t total)
{
    wb_progress_update(context, done, total, 0);
    return !wb_stop_requested();
}

static int write_json(const struct wb_compact *result)
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
    int err = wb_output_object(&j);
    wb_buf_release(&line);
    return err;
}

static int write_words(const struct wb_compact *result)
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
    struct wb_compact result;
    struct wb_progress progress;

    wb_stop_on_signals();
    int err = wb_store_open(options->dir, WB_STORE_WRITE, &store);
    if (err < 0)
        goto done;
    wb_progress_init(&progress, "compact");
    err = wb_store_compact(store, on_progress, &progress, &result);
    wb_progress_clear();
    if (err == 0)
        err = options->json ? write_json(&result) : write_words(&result);
done:
    wb_store_close(store);
    return err;
}
