/* cmd_why.c - webbase why: shows what decides over a page or a site. */
#include "base/date.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "crawl/crawl.h"

static const char *const verdicts[] = {"unknown", "fetched", "waiting", "blocked"};

static void time_field(struct wb_json *j, const char *name, int64_t time_ms)
{
    char text[WB_DATE_TEXT_MAX];

    wb_json_key(j, name);
    if (!time_ms) {
        wb_json_null(j);
        return;
    }
    wb_date_format(time_ms, text);
    wb_json_str(j, text);
}

static int write_json(const struct wb_why *why)
{
    struct wb_buf line = WB_BUF_INIT;
    struct wb_json j;

    wb_json_init(&j, &line);
    wb_json_object(&j);
    wb_json_field_slice(&j, "url", wb_buf_slice(&why->subject));
    if (why->is_site)
        wb_json_field_slice(&j, "site", wb_buf_slice(&why->subject));
    wb_json_field_str(&j, "verdict", verdicts[why->verdict]);
    wb_json_field_slice(&j, "reason", wb_buf_slice(&why->reason));
    wb_json_key(&j, "robots_line");
    if (why->robots_rule.len)
        wb_json_slice(&j, wb_buf_slice(&why->robots_rule));
    else
        wb_json_null(&j);
    wb_json_field_u64(&j, "robots_line_number", why->robots_line);
    time_field(&j, "next_time", why->next_ms);
    time_field(&j, "time", why->fetched_ms);
    wb_json_field_u64(&j, "status", why->status);
    int err = wb_output_object(&j);
    wb_buf_release(&line);
    return err;
}

static int write_words(const struct wb_why *why)
{
    char text[WB_DATE_TEXT_MAX];

    int err = wb_output_text(wb_buf_slice(&why->subject));
    if (err == 0)
        err = wb_output_printf("\n%s: ", verdicts[why->verdict]);
    if (err == 0)
        err = wb_output_text(wb_buf_slice(&why->reason));
    if (err == 0)
        err = wb_output_printf("\n");
    if (err == 0 && why->next_ms) {
        wb_date_format(why->next_ms, text);
        err = wb_output_printf("not before %s\n", text);
    }
    return err;
}

int wb_cmd_why(const struct wb_options *options)
{
    struct wb_why why;
    int err = wb_why(options->dir, wb_options_text(options, "dispenser"), wb_options_text(options, "user-agent"), options->args[0], &why);

    if (err == 0)
        err = options->json ? write_json(&why) : write_words(&why);
    wb_why_release(&why);
    return err;
}
