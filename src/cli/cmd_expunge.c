/*
 * cmd_expunge.c - webbase expunge: removes pages that are gone from the web, or takes down what is named.
 *
 *   {"event":"expunge","url":"http://example.org/b","reason":"taken down"}   for each page
 *   {"event":"done","pages":1,"known":0,"bytes":5,"reprieved":0,"left":0}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/cycle_show.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cycle/cycle.h"
#include "os/stop.h"

#include <inttypes.h>

struct expunge_show {
    bool json;
    int err; /* of writing to standard output */
};

static void on_page(void *context, struct wb_slice url, const char *reason)
{
    struct expunge_show *show = context;
    struct wb_json j;

    if (!show->json || show->err < 0)
        return;
    wb_output_object_begin(&j, "expunge");
    wb_json_field_slice(&j, "url", url);
    wb_json_field_str(&j, "reason", reason);
    show->err = wb_output_object_queue(&j);
}

static int write_json(const struct wb_expunge_stat *stat)
{
    struct wb_json j;

    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "pages", stat->pages);
    wb_json_field_u64(&j, "known", stat->known);
    wb_json_field_u64(&j, "bytes", stat->bytes);
    wb_json_field_u64(&j, "reprieved", stat->reprieved);
    wb_json_field_u64(&j, "left", stat->left);
    return wb_output_object_end(&j);
}

static int write_words(const struct wb_expunge_stat *stat, const char *what, bool allow)
{
    if (allow)
        return wb_output_printf("%s may be fetched and imported again\n", what);
    int err = wb_output_printf("%" PRIu64 " page%s%s%s removed", stat->pages, wb_output_plural(stat->pages),
                               what ? " of " : "", what ? what : "");
    if (err == 0 && stat->pages)
        err = wb_output_printf("; %s bytes are gone from disk after the next compact",
                               stat->pages == 1 ? "its" : "their");
    if (err == 0)
        err = wb_output_write("\n", 1);
    if (err == 0 && what && stat->known)
        err = wb_output_printf("%" PRIu64 " more, which nobody had fetched, will not be fetched\n", stat->known);
    if (err == 0 && what)
        err = wb_output_printf("%s is barred: it is neither fetched nor imported until 'expunge --allow'\n", what);
    if (err == 0 && stat->reprieved)
        err = wb_output_printf("%" PRIu64 " expired page%s could not be tried and stay%s a little longer\n",
                               stat->reprieved, wb_output_plural(stat->reprieved), stat->reprieved == 1 ? "s" : "");
    return err;
}

int wb_cmd_expunge(const struct wb_options *options)
{
    struct wb_update_options o = {.dir = options->dir, .dispenser = wb_options_text(options, "dispenser"),
                                  .memory_bytes = wb_options_size(options, "memory", 0)};
    const char *what = options->arg_count ? options->args[0] : NULL;
    bool allow = wb_options_flag(options, "allow");
    struct expunge_show shown = {.json = options->json};
    struct wb_expunge_stat stat;
    struct wb_cycle_show show;

    if (allow && !what)
        return wb_options_usage("expunge: --allow needs a URL or a host");
    struct wb_cycle_sink sink = wb_cycle_show_init(&show, "expunge");
    wb_stop_on_signals();
    int err = what ? wb_expunge(&o, what, allow, &sink, on_page, &shown, &stat)
                   : wb_expunge_expired(&o, &sink, on_page, &shown, &stat);
    wb_cycle_show_end(&show);
    if (err == 0)
        err = shown.err;
    if (err < 0 && stat.left == 0)
        return err;
    struct wb_error_copy why; /* what could not be removed is reported after what was removed */
    wb_error_save(err, &why);
    int written = options->json ? write_json(&stat) : write_words(&stat, what, allow);
    return err < 0 ? wb_error_restore(&why) : written;
}
