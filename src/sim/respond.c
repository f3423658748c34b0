/*
 * respond.c - looks at host and target of a request and passes it to the part that answers it:
 * the truth, the raw responses, robots.txt and sitemaps, or a page.
 *
 * Logs every request except those for the truth. It never sends anything.
 */
#include "sim/respond.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/path.h"
#include "sim/behave.h"
#include "sim/locate.h"
#include "sim/hypertext.h"
#include "sim/sitefile.h"
#include "sim/truth.h"

#define RAW_BYTES_MAX (16u << 20)
#define SLOW_RULES_MS 2000

/* ---- raw responses -------------------------------------------------------------------- */

struct raw_walk {
    struct wb_respond *r;
    const char *dir;
};

/* Loads one raw response; a callback for the files of a folder. */
static int take_raw(void *context, const struct wb_path_entry *entry)
{
    struct raw_walk *walk = context;
    struct wb_respond *r = walk->r;
    const char *dot = strrchr(entry->name, '.');

    if (entry->kind != WB_PATH_FILE || !dot || strcmp(dot, ".response") != 0)
        return 0;
    struct wb_respond_raw *raw = wb_vec_add(&r->raw);
    if (!raw)
        return WB_E_NOMEM;
    *raw = (struct wb_respond_raw){wb_strdup(entry->name), WB_BUF_INIT};
    char *path = wb_path_join(walk->dir, entry->name);
    int err = raw->name && path ? wb_path_read(path, RAW_BYTES_MAX, &raw->bytes) : WB_E_NOMEM;
    wb_free(path);
    return err;
}

static int load_raw(struct wb_respond *r, const char *dir)
{
    struct raw_walk walk = {r, dir};
    int err = wb_path_each(dir, take_raw, &walk);

    if (err == 0 && r->raw.count == 0)
        err = wb_fail(WB_E_NOTFOUND, "%s contains no raw responses (files named *.response)", dir);
    return err;
}

/* Answers with a page that links to every raw response. */
static int list_raw(struct wb_respond *r, const struct wb_asked *asked, struct wb_reply *reply)
{
    struct wb_pen pen = wb_pen(&r->body);

    wb_buf_clear(&r->body);
    wb_pen_str(&pen, "<!DOCTYPE html>\n<title>Raw responses</title>\n<ul>\n");
    for (size_t i = 0; i < r->raw.count; i++)
        wb_pen_printf(&pen, "<li><a href=\"http://r%zu.localhost:%u/raw/%s\">%s</a></li>\n", i + 1,
                      (unsigned)r->world.port, r->raw.items[i].name, r->raw.items[i].name);
    wb_pen_str(&pen, "</ul>\n");
    struct wb_answer answer = {.status = 200, .type = "text/html; charset=utf-8", .body = wb_buf_slice(&r->body)};
    return pen.err < 0 ? pen.err : wb_answer(&r->answerer, asked, &answer, reply);
}

/* Each raw response has its own host, so that politeness towards one does not delay the others. */
static int answer_raw(struct wb_respond *r, const struct wb_asked *asked, uint32_t number, struct wb_reply *reply)
{
    struct wb_slice prefix = WB_SLICE_LIT("/raw/");

    if (number > r->raw.count || !wb_slice_starts(asked->target, prefix))
        return wb_behave_error(r, asked, 404, reply);
    const struct wb_respond_raw *raw = &r->raw.items[number - 1];
    struct wb_slice name = wb_slice(asked->target.ptr + prefix.len, asked->target.len - prefix.len);
    if (!wb_slice_equal(name, wb_slice_str(raw->name)))
        return wb_behave_error(r, asked, 404, reply);
    reply->end = WB_REPLY_CLOSE;
    return wb_buf_append_slice(&reply->bytes, wb_buf_slice(&raw->bytes));
}

/* ---- robots.txt and sitemaps ---------------------------------------------------------- */

static int answer_moved_rules(struct wb_respond *r, const struct wb_asked *asked, const char *location,
                              struct wb_reply *reply)
{
    struct wb_answer moved = {
        .status = 302, .type = "text/plain", .body = WB_SLICE_LIT("Moved.\n"), .location = location};

    return wb_answer(&r->answerer, asked, &moved, reply);
}

/* Answers for robots.txt in the way that the site's kind of rules prescribes; `moved`: at the end of its redirects. */
static int answer_rules(struct wb_respond *r, const struct wb_asked *asked, uint32_t site, bool moved,
                        struct wb_reply *reply)
{
    const struct wb_world_site *s = &r->world.site[site];
    struct wb_pen pen = wb_pen(&r->body);
    struct wb_answer answer = {.status = 200, .type = "text/plain; charset=utf-8"};

    if (s->rules == WB_RULES_NONE || (moved && s->rules != WB_RULES_MOVED))
        return wb_behave_error(r, asked, 404, reply);
    if (s->rules == WB_RULES_FAILING)
        return wb_behave_error(r, asked, 503, reply);
    if (s->rules == WB_RULES_MOVED && !moved)
        return answer_moved_rules(r, asked, "/rules/robots.txt", reply);
    wb_buf_clear(&r->body);
    if (s->rules == WB_RULES_HTML) {
        wb_hypertext_message("Welcome", "There are no rules here, only pages. Disallow: nothing.", &pen);
        answer.type = "text/html; charset=utf-8";
    } else
        wb_sitefile_robots(&r->world, site, &pen);
    if (s->rules == WB_RULES_SLOW)
        reply->delay_ms = SLOW_RULES_MS;
    answer.body = wb_buf_slice(&r->body);
    return pen.err < 0 ? pen.err : wb_answer(&r->answerer, asked, &answer, reply);
}

/* Returns 1 if the path is that of a sitemap, which has then been answered. */
static int answer_map(struct wb_respond *r, const struct wb_asked *asked, uint32_t site, struct wb_slice path,
                      struct wb_reply *reply)
{
    struct wb_pen pen = wb_pen(&r->body);
    struct wb_answer answer = {.status = 200};
    bool gzip;

    wb_buf_clear(&r->body);
    if (!wb_sitefile_map(&r->world, site, path, &pen, &gzip))
        return 0;
    answer.body = wb_buf_slice(&r->body);
    answer.type = gzip ? "application/gzip" : r->world.site[site].map == WB_MAP_TEXT ? "text/plain" : "application/xml";
    int err = pen.err;
    if (err == 0 && gzip)
        err = wb_answer_gzip(&r->answerer, answer.body, &answer.body);
    if (err == 0)
        err = wb_answer(&r->answerer, asked, &answer, reply);
    return err < 0 ? err : 1;
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* Answers for a folder without its final slash with a redirect to the folder. */
static int answer_slash(struct wb_respond *r, const struct wb_asked *asked, struct wb_reply *reply)
{
    struct wb_answer answer = {.status = 301, .type = "text/plain", .body = WB_SLICE_LIT("A folder.\n")};

    wb_buf_clear(&r->path);
    int err = wb_buf_append_slice(&r->path, asked->target);
    if (err == 0)
        err = wb_buf_append_char(&r->path, '/');
    if (err == 0)
        err = wb_buf_terminate(&r->path);
    answer.location = r->path.ptr;
    return err < 0 ? err : wb_answer(&r->answerer, asked, &answer, reply);
}

/* True if a page exists already: it must have been born, and the group of a /latest/N page must be complete. */
static bool known_now(const struct wb_respond *r, const struct wb_plan *plan, const struct wb_world_moment *now)
{
    if (plan->page > WB_PLAN_LATEST && plan->page < WB_PLAN_SITES)
        return plan->page - WB_PLAN_LATEST <= wb_plan_group(&r->world.site[plan->site], now);
    return plan->born <= now->web;
}

/* *page_out is for the log: WB_PLAN_NONE if the target is not the exact address of a page. */
static int answer_site(struct wb_respond *r, const struct wb_asked *asked, uint32_t site,
                       const struct wb_world_moment *now, struct wb_reply *reply, uint32_t *page_out)
{
    struct wb_slice path = asked->target, rest;
    const char *mark = memchr(path.ptr, '?', path.len);
    struct wb_plan plan;

    *page_out = WB_PLAN_NONE;
    path.len = mark ? (size_t)(mark - path.ptr) : path.len;
    if (wb_slice_equal(path, WB_SLICE_LIT("/robots.txt")))
        return answer_rules(r, asked, site, false, reply);
    if (wb_slice_equal(path, WB_SLICE_LIT("/rules/robots.txt")))
        return answer_rules(r, asked, site, true, reply);
    if (site == 0 && r->raw.count && wb_slice_equal(path, WB_SLICE_LIT("/raw/")))
        return list_raw(r, asked, reply);
    if (wb_slice_starts(path, WB_SLICE_LIT("/sitemap"))) {
        int found = answer_map(r, asked, site, path, reply);
        return found == 1 ? 0 : found < 0 ? found : wb_behave_error(r, asked, 404, reply);
    }
    enum wb_locate_result where = wb_locate_find(&r->world, site, asked->target, &r->path, &plan, &rest);
    if (where == WB_LOCATE_NOTHING || !known_now(r, &plan, now))
        return wb_behave_error(r, asked, 404, reply);
    if (where == WB_LOCATE_SLASH)
        return answer_slash(r, asked, reply);
    if (where == WB_LOCATE_PAGE)
        *page_out = plan.page;
    return wb_behave(r, asked, &plan, now, rest, reply);
}

static bool is_truth(struct wb_slice target)
{
    struct wb_slice truth = WB_SLICE_LIT("/_truth");

    return wb_slice_starts(target, truth) && (target.len == truth.len || target.ptr[truth.len] == '?');
}

static void log_request(struct wb_respond *r, const struct wb_asked *asked, struct wb_asklog_entry entry,
                        const struct wb_world_moment *now, int status)
{
    entry.since_ms = (uint64_t)(now->real * 1000) & 0xffffffffffu;
    entry.status = (uint16_t)status;
    if (entry.page == WB_PLAN_NONE)
        entry.flags |= WB_ASKLOG_OTHER;
    if (asked->head)
        entry.flags |= WB_ASKLOG_HEAD;
    wb_asklog_add(&r->log, entry, asked->target);
}

/* Converts a reading of the monotonic clock into a moment of the web. */
static struct wb_world_moment moment_at(const struct wb_respond *respond, int64_t mono_ns)
{
    double real = (double)(mono_ns - respond->start_ns) / 1e9;

    return (struct wb_world_moment){real * respond->world.speed, real};
}

int wb_respond(struct wb_respond *respond, const struct wb_asked *asked, int64_t mono_ns, struct wb_reply *reply_out)
{
    struct wb_world_moment now = moment_at(respond, mono_ns);
    struct wb_asklog_entry entry = {.page = WB_PLAN_NONE};
    bool alias;
    uint32_t raw, page = WB_PLAN_NONE;
    int err;

    entry.site = wb_locate_host(&respond->world, asked->host, &alias, &raw);
    if (entry.site == 0 && is_truth(asked->target)) {
        struct wb_slice query = wb_slice(asked->target.ptr + 7, asked->target.len - 7);
        return wb_truth_reply(respond, asked, query.len ? wb_slice(query.ptr + 1, query.len - 1) : query, &now,
                              reply_out);
    }
    if (raw) {
        entry.site = raw;
        entry.flags = WB_ASKLOG_RAW;
        err = answer_raw(respond, asked, raw, reply_out);
    } else if (!asked->head && !wb_slice_equal(asked->method, WB_SLICE_LIT("GET")))
        err = wb_behave_error(respond, asked, 405, reply_out);
    else
        err = answer_site(respond, asked, entry.site, &now, reply_out, &page);
    entry.page = page;
    entry.flags |= alias ? WB_ASKLOG_ALIAS : 0;
    reply_out->delay_ms += respond->latency_ms;
    log_request(respond, asked, entry, &now, reply_out->status);
    return err;
}

int wb_respond_init(const struct wb_sim_options *options, struct wb_respond *respond_out)
{
    *respond_out = (struct wb_respond){.latency_ms = options->latency_ms, .start_ns = wb_clock_mono_ns()};
    wb_asklog_init(&respond_out->log);
    int err = wb_world_init(options, &respond_out->world);
    if (err == 0)
        err = wb_answerer_init(&respond_out->answerer);
    if (err == 0 && options->raw)
        err = load_raw(respond_out, options->raw);
    if (err < 0)
        wb_respond_release(respond_out);
    return err;
}

void wb_respond_release(struct wb_respond *respond)
{
    for (size_t i = 0; i < respond->raw.count; i++) {
        wb_free(respond->raw.items[i].name);
        wb_buf_release(&respond->raw.items[i].bytes);
    }
    wb_vec_release(&respond->raw);
    wb_world_release(&respond->world);
    wb_asklog_release(&respond->log);
    wb_answerer_release(&respond->answerer);
    wb_buf_release(&respond->body);
    wb_buf_release(&respond->path);
    wb_buf_release(&respond->scratch);
    wb_buf_release(&respond->bomb);
    wb_buf_release(&respond->nested);
    *respond = (struct wb_respond){0};
}
