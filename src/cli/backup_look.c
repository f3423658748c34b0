/*
 * backup_look.c - webbase backup URL --list, and --verify.
 *
 *   2026-11-15T21:29:57.555Z  0123456789abcdef-00000003  120 pages, 4.2 MB
 *   {"time":"2026-11-15T21:29:57.555Z","shipment":"0123456789abcdef-00000003","pages":120,"bytes":4194304}
 *
 *   damaged: s3://BUCKET/PREFIX/objects/0123456789abcdef-00000002: the checksum does not match
 *   {"event":"problem","object":"objects/0123456789abcdef-00000002","message":"..."}   {"event":"note",...}
 *   {"event":"done","objects":12,"bytes":4194304,"problems":1}
 */
#include "cli/backup_look.h"
#include "base/date.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/output.h"
#include "vault/vault.h"

#include <inttypes.h>

static int show_state(void *context, const struct wb_vault_state *state)
{
    const struct wb_options *options = context;
    char time[WB_DATE_TEXT_MAX];
    struct wb_json j;

    wb_date_format(state->time_ms, time);
    if (!options->json)
        return wb_output_printf("%s  %s  %" PRIu64 " page%s, %.1f MB\n", time, state->shipment, state->pages,
                                wb_output_plural(state->pages), (double)state->bytes / 1e6);
    wb_output_object_begin(&j, NULL);
    wb_json_field_time(&j, "time", state->time_ms);
    wb_json_field_str(&j, "shipment", state->shipment);
    wb_json_field_u64(&j, "pages", state->pages);
    wb_json_field_u64(&j, "bytes", state->bytes);
    return wb_output_object_queue(&j);
}

int wb_backup_list(const struct wb_options *options, const char *url)
{
    return wb_vault_list(url, show_state, (void *)(uintptr_t)options);
}

struct look_show {
    bool json;
    uint64_t problems;
    int err; /* of writing to standard output */
};

static void on_found(void *context, bool problem, const char *object, const char *message)
{
    struct look_show *show = context;
    struct wb_json j;
    int err;

    show->problems += problem;
    if (show->json) {
        wb_output_object_begin(&j, problem ? "problem" : "note");
        wb_json_field_str(&j, "object", object);
        wb_json_field_str(&j, "message", message);
        err = wb_output_object_end(&j);
    } else if (problem) {
        err = wb_output_printf("damaged: %s\n", message);
    } else {
        err = wb_output_printf("note: %s%s%s\n", object, object[0] ? ": " : "", message);
    }
    show->err = show->err < 0 ? show->err : err;
}

static int say_verified(const struct look_show *show, uint64_t objects, uint64_t bytes)
{
    struct wb_json j;

    if (!show->json)
        return wb_output_printf("read %" PRIu64 " object%s (%.1f MB): %s\n", objects, wb_output_plural(objects),
                                (double)bytes / 1e6, show->problems ? "not all are sound" : "all are sound");
    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "objects", objects);
    wb_json_field_u64(&j, "bytes", bytes);
    wb_json_field_u64(&j, "problems", show->problems);
    return wb_output_object_end(&j);
}

int wb_backup_verify(const struct wb_options *options, const char *url)
{
    struct look_show show = {.json = options->json};
    uint64_t objects, bytes;
    int err = wb_vault_verify(url, on_found, &show, &objects, &bytes);

    if (err == 0)
        err = show.err;
    if (err == 0)
        err = say_verified(&show, objects, bytes);
    if (err == 0 && show.problems)
        err = wb_fail(WB_E_CORRUPT, "%" PRIu64 " object%s of %s %s damaged or missing", show.problems,
                      wb_output_plural(show.problems), url, show.problems == 1 ? "is" : "are");
    return err;
}
