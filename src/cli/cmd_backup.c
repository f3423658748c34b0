/*
 * cmd_backup.c - webbase backup: brings a repository to a vault; with --follow, for as long as it is let.
 *
 *   120 pages are safe at 2026-11-15T21:29:57.555Z (0123456789abcdef-00000003)
 *   {"event":"safe","shipment":"0123456789abcdef-00000003","pages":120}
 *   {"event":"done","objects":12,"bytes":4194304,"pages":120}
 *
 * While it follows, an error of the store ends nothing: it is reported once, and so is that the store is back. SIGTERM
 * and SIGINT end it after a last shipment.
 */
#include "base/date.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/backup_look.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "os/clock.h"
#include "os/heaps.h"
#include "os/stop.h"
#include "vault/vault.h"

#include <inttypes.h>
#include <poll.h>

enum { LOOK_MS = 50 };
#define EVERY_MS 5000
#define KEEP_MS (7 * WB_DAY_MS)
#define AWAY_MS 2000 /* the shortest pause after a failure */

struct backup {
    const struct wb_options *options;
    const char *url;
    struct wb_vault_ship_options how;
    struct wb_progress progress;
    struct wb_vault_shipper *shipper;
    int64_t every_ms;
    uint64_t objects, bytes, pages; /* written by this process; pages: of the newest state */
    bool away;                      /* the last attempt has failed, and that was reported */
    bool shipped;                   /* at least once */
};

/* ---- what is printed ----------------------------------------------------------------------------------------- */

static int say_safe(const struct backup *backup, const struct wb_vault_state *state)
{
    char time[WB_DATE_TEXT_MAX];
    struct wb_json j;

    wb_progress_clear();
    wb_date_format(state->time_ms, time);
    if (!backup->options->json) {
        int err = wb_output_printf("%" PRIu64 " page%s safe at %s (%s)\n", state->pages,
                                   state->pages == 1 ? " is" : "s are", time, state->shipment);
        return err < 0 ? err : wb_output_flush();
    }
    wb_output_object_begin(&j, "safe");
    wb_json_field_str(&j, "shipment", state->shipment);
    wb_json_field_u64(&j, "pages", state->pages);
    wb_json_field_time(&j, "time", state->time_ms);
    return wb_output_object_end(&j);
}

static int say_done(const struct backup *backup)
{
    struct wb_json j;

    wb_progress_clear();
    if (!backup->options->json) {
        if (backup->objects == 0)
            return wb_output_printf("nothing is new: the newest state has %" PRIu64 " page%s\n", backup->pages,
                                    wb_output_plural(backup->pages));
        return wb_output_printf("wrote %" PRIu64 " object%s (%.1f MB) to %s\n", backup->objects,
                                wb_output_plural(backup->objects), (double)backup->bytes / 1e6, backup->url);
    }
    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "objects", backup->objects);
    wb_json_field_u64(&j, "bytes", backup->bytes);
    wb_json_field_u64(&j, "pages", backup->pages);
    return wb_output_object_end(&j);
}

/* ---- shipping ------------------------------------------------------------------------------------------------ */

static int ship(struct backup *backup)
{
    struct wb_vault_shipped shipped;
    int err = wb_vault_ship(backup->shipper, &shipped);

    backup->objects += shipped.objects;
    backup->bytes += shipped.bytes;
    if (err < 0)
        return err;
    backup->pages = shipped.state.pages;
    backup->shipped = true;
    return shipped.anything ? say_safe(backup, &shipped.state) : 0;
}

static int open_shipper(struct backup *backup)
{
    return wb_vault_shipper_open(backup->options->dir, backup->url, &backup->how, &backup->shipper);
}

static int once(struct backup *backup)
{
    int err = open_shipper(backup);

    return err < 0 ? err : ship(backup);
}

/* ---- following ----------------------------------------------------------------------------------------------- */

/* Waits until some time has passed since start_ns, or the process is asked to stop. */
static void pause_until(int64_t start_ns, int64_t ms)
{
    while (!wb_stop_requested() && wb_clock_mono_ns() - start_ns < ms * 1000000)
        poll(NULL, 0, LOOK_MS);
}

/* Whether it is of no use to try again. Keys may be renewed, so being refused by the store is not final later on. */
static bool is_final(const struct backup *backup, int err)
{
    if (wb_output_gone() || err == WB_E_NEWER || err == WB_E_NOMEM || err == WB_E_INVALID)
        return true;
    if (backup->shipper && wb_vault_shipper_lost(backup->shipper))
        return true;
    return !backup->shipped && err != WB_E_DOWN && err != WB_E_STOPPED;
}

/* Says that something is wrong, once. */
static void go_away(struct backup *backup)
{
    if (!backup->away)
        wb_report("%s; trying again until it works", wb_error_message());
    backup->away = true;
}

static void come_back(struct backup *backup)
{
    if (backup->away)
        wb_report("%s can be written to again", backup->url);
    backup->away = false;
}

/* One look, and a shipment if anything is new. */
static int look(struct backup *backup)
{
    int err = backup->shipper ? 0 : open_shipper(backup);

    if (err == 0 && (backup->away || wb_vault_shipper_due(backup->shipper)))
        err = ship(backup);
    if (err == 0)
        come_back(backup);
    return err;
}

static int follow(struct backup *backup)
{
    int err = 0;

    for (;;) {
        int64_t start_ns = wb_clock_mono_ns();
        bool last = wb_stop_requested();
        err = look(backup);
        bool stopped = err == WB_E_STOPPED && wb_stop_requested() && !last;
        if (err < 0 && !stopped && (last || is_final(backup, err)))
            return err;
        if (err < 0) {
            if (!stopped)
                go_away(backup);
            if (backup->shipper)
                wb_vault_shipper_renew(backup->shipper);
        } else if (last) {
            return 0;
        }
        int64_t pause_ms = err < 0 && backup->every_ms < AWAY_MS ? AWAY_MS : backup->every_ms;
        pause_until(start_ns, pause_ms);
    }
}

/* ---- the command --------------------------------------------------------------------------------------------- */

static int check_options(const struct wb_options *options)
{
    bool list = wb_options_flag(options, "list"), verify = wb_options_flag(options, "verify");
    bool ships =
        wb_options_flag(options, "follow") || wb_options_flag(options, "take-over") || wb_options_text(options, "keep");

    if (wb_object_url_check(options->args[0]) < 0)
        return wb_options_usage("%s", wb_error_message());
    if (list && verify)
        return wb_options_usage("backup: --list and --verify exclude each other");
    if ((list || verify) && ships)
        return wb_options_usage("backup: --%s only looks at the vault: it takes none of --follow, --keep, --take-over",
                                list ? "list" : "verify");
    if (wb_options_text(options, "every") && !wb_options_flag(options, "follow"))
        return wb_options_usage("backup: --every needs --follow");
    return 0;
}

int wb_cmd_backup(const struct wb_options *options)
{
    struct backup backup = {.options = options, .url = options->args[0]};
    int err = check_options(options);

    if (err < 0)
        return err;
    if (wb_options_flag(options, "list"))
        return wb_backup_list(options, backup.url);
    wb_progress_init(&backup.progress, "backup");
    if (wb_options_flag(options, "verify"))
        return wb_backup_verify(options, backup.url);
    backup.every_ms = wb_options_duration(options, "every", EVERY_MS);
    backup.how = (struct wb_vault_ship_options){
        .keep_ms = wb_options_duration(options, "keep", KEEP_MS),
        .take_over = wb_options_flag(options, "take-over"),
        .follow = wb_options_flag(options, "follow"),
        .progress = wb_progress_bytes,
        .progress_context = &backup.progress,
    };
    wb_heaps_share(); /* threads put objects of many sizes */
    if (backup.how.follow)
        wb_stop_on_signals();
    err = backup.how.follow ? follow(&backup) : once(&backup);
    wb_progress_clear();
    if (err == 0)
        err = say_done(&backup);
    wb_vault_shipper_close(backup.shipper);
    return err;
}
