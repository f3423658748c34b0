/*
 * cmd_robots.c - webbase robots: shows how a robots.txt is read. It never opens a repository and never fetches
 * anything.
 *
 *   disallowed  http://example.org/p  line 2: Disallow: /p
 *   {"url":"http://example.org/p","allowed":false,"line":2,"rule":"Disallow: /p"}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "fetch/fetch.h"
#include "os/file.h"
#include "page/page.h"
#include "url/url.h"

struct robots_answer {
    struct wb_robots *robots;
    bool json;
};

static int show_verdict(struct wb_slice url, const struct wb_robots_verdict *verdict)
{
    int err = wb_output_printf("%s  ", verdict->allowed ? "allowed" : "disallowed");

    if (err == 0)
        err = wb_output_text(url);
    if (err == 0 && verdict->line)
        err = wb_output_printf("  line %u: ", verdict->line);
    if (err == 0 && verdict->line)
        err = wb_output_text(verdict->rule);
    return err < 0 ? err : wb_output_write("\n", 1);
}

static int ask(struct robots_answer *r, struct wb_slice url)
{
    struct wb_robots_verdict verdict;
    struct wb_json j;

    wb_robots_check(r->robots, url, &verdict);
    if (!r->json)
        return show_verdict(url, &verdict);
    wb_output_object_begin(&j, NULL);
    wb_json_field_slice(&j, "url", url);
    wb_json_field_bool(&j, "allowed", verdict.allowed);
    wb_json_field_u64(&j, "line", verdict.line);
    wb_json_field_slice(&j, "rule", verdict.rule);
    return wb_output_object_queue(&j);
}

static int ask_lines(struct robots_answer *r)
{
    struct wb_buf line = WB_BUF_INIT;
    int err = 0;

    while (err == 0 && wb_input_line(&line, WB_URL_MAX_BYTES, &err))
        err = ask(r, wb_buf_slice(&line));
    wb_buf_release(&line);
    return err;
}

/* What else the file says: the delay between requests, and the sitemaps. */
static int show_rest(struct robots_answer *r)
{
    int64_t delay_ms = wb_robots_delay_ms(r->robots);
    struct wb_slice url;
    struct wb_json j;
    int err;

    if (!r->json) {
        err = delay_ms < 0 ? wb_output_printf("crawl-delay  none\n")
                           : wb_output_printf("crawl-delay  %lld.%03lld s\n", (long long)delay_ms / 1000,
                                              (long long)delay_ms % 1000);
        for (size_t i = 0; err == 0 && wb_robots_sitemap(r->robots, i, &url); i++) {
            err = wb_output_printf("sitemap      ");
            if (err == 0)
                err = wb_output_text(url);
            if (err == 0)
                err = wb_output_write("\n", 1);
        }
        return err;
    }
    wb_output_object_begin(&j, NULL);
    wb_json_key(&j, "crawl_delay_ms");
    if (delay_ms < 0)
        wb_json_null(&j);
    else
        wb_json_i64(&j, delay_ms);
    wb_json_key(&j, "sitemaps");
    wb_json_array(&j);
    for (size_t i = 0; wb_robots_sitemap(r->robots, i, &url); i++)
        wb_json_slice(&j, url);
    wb_json_array_end(&j);
    return wb_output_object_end(&j);
}

/* Reads as much of the file as the crawler would, and ignores the rest. */
static int read_file(const char *path, struct wb_buf *text)
{
    struct wb_file file = WB_FILE_INIT;
    int err = wb_buf_reserve(text, WB_ROBOTS_BYTES_MAX);

    if (err == 0)
        err = wb_file_open(path, WB_FILE_READ, &file);
    if (err == 0)
        err = wb_file_read_at(&file, 0, text->ptr, WB_ROBOTS_BYTES_MAX, &text->len);
    wb_file_close(&file);
    return err;
}

int wb_cmd_robots(const struct wb_options *options)
{
    const char *agent = wb_options_text(options, "agent"), *path = options->args[0];
    struct robots_answer r = {.json = options->json};
    struct wb_buf text = WB_BUF_INIT;
    bool lines = false;
    int err = 0;

    for (size_t i = 1; i < options->arg_count; i++)
        lines = lines || strcmp(options->args[i], "-") == 0;
    if (lines && strcmp(path, "-") == 0)
        return wb_options_usage("standard input cannot be both the robots.txt and the URLs");
    err = strcmp(path, "-") == 0 ? wb_input_all(&text, WB_ROBOTS_BYTES_MAX) : read_file(path, &text);
    if (err == 0)
        err = wb_robots_parse(wb_buf_slice(&text), wb_slice_str(agent ? agent : WB_HTTP_AGENT), &r.robots);
    wb_buf_release(&text);
    if (err == 0 && options->arg_count == 1)
        err = show_rest(&r);
    for (size_t i = 1; err == 0 && i < options->arg_count; i++) {
        const char *url = options->args[i];
        err = strcmp(url, "-") == 0 ? ask_lines(&r) : ask(&r, wb_slice_str(url));
    }
    wb_robots_free(r.robots);
    return err;
}
