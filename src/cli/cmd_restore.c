/*
 * cmd_restore.c - webbase restore: makes a repository of what is safe in a vault.
 *
 *   restored 120 pages (4.2 MB) to DIR in 0.3 s
 *   {"event":"done","pages":120,"bytes":4194304,"ms":310}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "os/clock.h"
#include "os/stop.h"
#include "vault/vault.h"

#include <inttypes.h>

static int say(const struct wb_options *options, const struct wb_vault_restored *restored, int64_t ms)
{
    struct wb_json j;

    if (!options->json)
        return wb_output_printf("restored %" PRIu64 " page%s (%.1f MB) to %s in %.1f s\n", restored->pages,
                                wb_output_plural(restored->pages), (double)restored->bytes / 1e6, options->args[1],
                                (double)ms / 1000);
    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "pages", restored->pages);
    wb_json_field_u64(&j, "bytes", restored->bytes);
    wb_json_field_u64(&j, "ms", (uint64_t)ms);
    return wb_output_object_end(&j);
}

int wb_cmd_restore(const struct wb_options *options)
{
    struct wb_vault_restored restored;
    struct wb_progress progress;
    int64_t start_ns = wb_clock_mono_ns(), at_ms = wb_options_time(options, "at", -1);
    int err = wb_object_url_check(options->args[0]);

    if (err < 0)
        return wb_options_usage("%s", wb_error_message());
    if (wb_options_text(options, "at") && at_ms < 0)
        at_ms = 0; /* before 1970 is before everything */
    wb_stop_on_signals();
    wb_progress_init(&progress, "restore");
    err = wb_vault_restore(options->args[0], options->args[1], at_ms, wb_progress_bytes, &progress, &restored);
    wb_progress_clear();
    return err < 0 ? err : say(options, &restored, (wb_clock_mono_ns() - start_ns) / 1000000);
}
