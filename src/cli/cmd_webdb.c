/*
 * cmd_webdb.c - webbase webdb: shows what the newest edition of webdb knows about pages and links.
 *
 * Each row of the table at the end is one action: it opens what it needs, writes rows (webdb_rows.h) and closes. The
 * actions that read and write files are in cmd_webdb_files.c. Only `delete` changes webdb, by cycle's wb_delete().
 */
#include "answer/answer.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/cmd_webdb_files.h"
#include "cli/cycle_show.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/report.h"
#include "cli/webdb_rows.h"
#include "index/index.h"
#include "os/stop.h"
#include "store/store.h"
#include "stream/stream.h"

#include <inttypes.h>

struct webdb_view {
    const struct wb_options *options;
    struct wb_webdb *webdb;
    struct wb_webdb_rows rows;
    /* The site of the current page. Pages of a site come together, so it is looked up once for all of them. */
    struct wb_url url;
    struct wb_buf key, site_name;
    struct wb_webdb_site site;
    bool site_known;
    struct wb_buf near; /* the URL of the page that this page is a near duplicate of */
    struct wb_buf href; /* the URL that is asked for */
};

/* ---- pages -------------------------------------------------------------------------------------- */

/* Finds the site of a page; *changed_out says whether it is another one than that of the page before. */
static int site_of(struct webdb_view *v, struct wb_slice url, bool *changed_out)
{
    int err = wb_url_parse(url, NULL, &v->url);

    *changed_out = false;
    if (err == 0)
        err = wb_url_key(&v->url, &v->key);
    if (err < 0)
        return err;
    struct wb_slice site = wb_key_site(wb_buf_slice(&v->key));
    if (v->site_name.len && wb_slice_equal(site, wb_buf_slice(&v->site_name)))
        return 0;
    *changed_out = true;
    wb_buf_clear(&v->site_name);
    return wb_buf_append_slice(&v->site_name, site);
}

/* Looks the site of a page up, unless it is that of the page before. */
static int load_site(struct webdb_view *v, struct wb_slice url)
{
    bool changed;
    int err = site_of(v, url, &changed);

    if (err < 0 || !changed)
        return err;
    err = wb_webdb_get_site(v->webdb, wb_buf_slice(&v->site_name), &v->site);
    v->site_known = err == 0;
    return err == WB_E_NOTFOUND ? 0 : err;
}

static int show_row(struct webdb_view *v, const struct wb_webdb_page *page)
{
    int err = 0;

    wb_buf_clear(&v->near);
    if (page->near && (v->rows.form != WB_WEBDB_ROWS_WORDS || v->rows.whole))
        err = wb_webdb_page_url(v->webdb, page->near_number, &v->near);
    v->rows.near = wb_buf_slice(&v->near);
    return err < 0 ? err : wb_webdb_rows_page(&v->rows, page, v->site_known ? &v->site : NULL);
}

/* What the store knows about the past of a page. A store that cannot say is not this command's concern. */
static void load_past(const struct webdb_view *v, struct wb_pageid id, struct wb_webdb_rows_past *past_out)
{
    struct wb_store_timeline timeline;
    struct wb_store *store = NULL;
    int err = wb_store_open(v->options->dir, WB_STORE_READ, &store);

    *past_out = (struct wb_webdb_rows_past){0};
    if (err == 0 && wb_store_timeline(store, id, &timeline) == 0) {
        *past_out = (struct wb_webdb_rows_past){timeline.count, timeline.time_count, 0, timeline.gone_ms};
        for (size_t i = 0; i < timeline.count; i++)
            if (timeline.versions[i].ceased == 0)
                past_out->since_ms = timeline.versions[i].time_ms;
        wb_store_timeline_release(&timeline);
    }
    wb_store_close(store);
}

/* The PageRank that 'generate' goes by. A damaged index is reported, and otherwise as if there were none. */
static void load_rank(const struct webdb_view *v, struct wb_slice url, struct wb_webdb_rows_rank *rank_out)
{
    struct wb_index *index = NULL;
    const void *ranks = NULL;
    uint32_t docid = 0;
    int err = wb_index_open(v->options->dir, &index);

    *rank_out = (struct wb_webdb_rows_rank){.known = false};
    if (err == 0)
        err = wb_index_find(index, url, &docid);
    if (err == 0)
        err = wb_index_fact(index, WB_FACT_RANK, &ranks);
    if (err == 0)
        *rank_out = (struct wb_webdb_rows_rank){true, ((const double *)ranks)[docid]};
    else if (err != WB_E_NOTFOUND)
        wb_report("the page is shown without its rank: %s", wb_error_message());
    wb_index_close(index);
}

static int show_page(struct webdb_view *v)
{
    struct wb_webdb_rows_rank rank = {.known = false};
    struct wb_webdb_rows_past past;
    struct wb_webdb_page page;
    struct wb_url parsed = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT;

    /* The site must be looked up first: a page is valid only until webdb is asked something else. */
    int err = wb_url_parse_typed(wb_slice_str(v->options->args[1]), &parsed);
    if (err == 0)
        err = wb_buf_append_slice(&v->href, wb_url_href(&parsed));
    struct wb_slice url = wb_buf_slice(&v->href);
    if (err == 0 && !wb_url_is_http(&parsed))
        err = wb_fail(WB_E_INVALID, "%s is not an http or https URL", v->options->args[1]);
    if (err == 0)
        err = load_site(v, url);
    if (err == 0)
        err = wb_url_key(&parsed, &key);
    if (err == 0)
        load_past(v, wb_pageid_of_key(wb_buf_slice(&key)), &past);
    wb_url_release(&parsed);
    wb_buf_release(&key);
    if (err < 0)
        return err;
    err = wb_webdb_get_page(v->webdb, url, &page);
    if (err == WB_E_NOTFOUND)
        return wb_fail(WB_E_NOTFOUND, "%s: webdb in %s knows no such page", v->options->args[1], v->options->dir);
    if (err < 0)
        return err;
    if (!(page.flags & WB_PAGE_BARRED)) /* what was taken down has no rank any more */
        load_rank(v, url, &rank);
    v->rows.whole = true;
    v->rows.past = &past;
    v->rows.rank = &rank;
    err = show_row(v, &page);
    v->rows.past = NULL;
    v->rows.rank = NULL;
    return err;
}

/* Shows all pages of a walk, until a signal. */
static int show_walk(struct webdb_view *v, struct wb_webdb_pages *pages)
{
    struct wb_webdb_page page;
    int got, err = 0;

    while (err == 0 && !wb_stop_requested() && (got = wb_webdb_pages_next(pages, &page)) != 0) {
        err = got < 0 ? got : load_site(v, page.url);
        if (err == 0)
            err = show_row(v, &page);
    }
    return err;
}

static int read_md5(const char *what, const char *text, uint8_t md5_out[WB_MD5_BYTES])
{
    if (!wb_hex_decode(wb_slice_str(text), md5_out, WB_MD5_BYTES))
        return wb_options_usage("%s takes an MD5 of 32 hexadecimal digits, not '%s'", what, text);
    return 0;
}

static int open_site(struct webdb_view *v, const char *site, struct wb_webdb_pages **pages_out)
{
    struct wb_buf name = WB_BUF_INIT;

    *pages_out = NULL;
    int err = wb_selection_host("site", wb_slice_str(site), &name);
    if (err == WB_E_INVALID)
        err = wb_options_usage("--%s", wb_error_message());
    if (err == 0)
        err = wb_webdb_pages_of_site(v->webdb, wb_buf_slice(&name), pages_out);
    wb_buf_release(&name);
    return err;
}

static int open_pages(struct webdb_view *v, struct wb_webdb_pages **pages_out)
{
    const char *by = wb_options_text(v->options, "by"), *site = wb_options_text(v->options, "site");
    const char *content = wb_options_text(v->options, "md5");
    bool by_md5 = by && by[0] == 'm';
    uint8_t md5[WB_MD5_BYTES];

    *pages_out = NULL;
    if (by_md5 && site)
        return wb_options_usage("webdb: --by md5 and --site exclude each other");
    if (content && (by || site))
        return wb_options_usage("webdb: --md5 and --%s exclude each other", by ? "by" : "site");
    if (content) {
        int err = read_md5("--md5", content, md5);
        return err < 0 ? err : wb_webdb_get_pages(v->webdb, md5, pages_out);
    }
    if (site)
        return open_site(v, site, pages_out);
    return by_md5 ? wb_webdb_pages_by_md5(v->webdb, pages_out) : wb_webdb_pages(v->webdb, pages_out);
}

static int show_pages(struct webdb_view *v)
{
    struct wb_webdb_pages *pages = NULL;
    int err = open_pages(v, &pages);

    if (err == 0)
        err = show_walk(v, pages);
    wb_webdb_pages_close(pages);
    return err;
}

/* The exit status is the answer; --json prints it as well. */
static int show_exists(struct webdb_view *v)
{
    uint8_t md5[WB_MD5_BYTES];
    char text[2 * WB_MD5_BYTES + 1];
    struct wb_json j;

    int err = read_md5("webdb exists", v->options->args[1], md5);
    if (err < 0)
        return err;
    bool exists;
    err = wb_webdb_page_exists(v->webdb, md5, &exists);
    if (err < 0)
        return err;
    wb_hex_encode(md5, sizeof md5, text);
    if (v->options->json) {
        wb_output_object_begin(&j, NULL);
        wb_json_field_str(&j, "md5", text);
        wb_json_field_bool(&j, "exists", exists);
        err = wb_output_object_end(&j);
        }
    if (err == 0 && !exists)
        err = wb_fail(WB_E_NOTFOUND, "%s: webdb in %s knows no page with this content", text, v->options->dir);
    return err;
}

static int show_sites(struct webdb_view *v)
{
    struct wb_webdb_pages *pages = NULL;
    struct wb_webdb_page page;
    bool changed;
    int got = 0, err = wb_webdb_pages(v->webdb, &pages);

    while (err == 0 && !wb_stop_requested() && (got = wb_webdb_pages_next(pages, &page)) != 0) {
        err = got < 0 ? got : site_of(v, page.url, &changed);
        if (err < 0 || !changed)
            continue;
        err = wb_webdb_get_site(v->webdb, wb_buf_slice(&v->site_name), &v->site);
        if (err == 0) {
            v->site.name = wb_buf_slice(&v->site_name);
            err = wb_webdb_rows_site(&v->rows, &v->site);
        }
    }
    wb_webdb_pages_close(pages);
    return err;
}

/* ---- links -------------------------------------------------------------------------------------- */

static int open_links(struct webdb_view *v, struct wb_webdb_links **links_out)
{
    const char *to = wb_options_text(v->options, "to"), *from = wb_options_text(v->options, "from");
    uint8_t md5[WB_MD5_BYTES];

    *links_out = NULL;
    if (to && from)
        return wb_options_usage("webdb: --to and --from exclude each other");
    int err = to ? wb_which_url(wb_slice_str(to), &v->href) : 0;
    if (to)
        return err < 0 ? err : wb_webdb_links_to(v->webdb, wb_buf_slice(&v->href), links_out);
    if (!from)
        return wb_webdb_links(v->webdb, links_out);
    err = read_md5("--from", from, md5);
    return err < 0 ? err : wb_webdb_links_from(v->webdb, md5, links_out);
}

static int show_links(struct webdb_view *v)
{
    struct wb_webdb_links *links = NULL;
    struct wb_webdb_link link;
    int got = 0, err = open_links(v, &links);

    while (err == 0 && !wb_stop_requested() && (got = wb_webdb_links_next(links, &link)) != 0)
        err = got < 0 ? got : wb_webdb_rows_link(&v->rows, &link);
    wb_webdb_links_close(links);
    return err;
}

static int show_count(struct webdb_view *v)
{
    struct wb_webdb_count count;

    wb_webdb_count(v->webdb, &count);
    return wb_webdb_rows_count(&v->rows, &count);
}

/* ---- check -------------------------------------------------------------------------------------- */

struct check_show {
    bool json;
    uint64_t problems;
    int err; /* of writing to standard output */
};

static void on_problem(void *context, const char *file, uint64_t offset, const char *message)
{
    struct check_show *c = context;
    struct wb_json j;

    c->problems++;
    if (c->err < 0)
        return;
    if (!c->json) {
        c->err = wb_output_finding("problem", file, offset, message);
        return;
    }
    wb_output_object_begin(&j, "problem");
    wb_json_field_str(&j, "file", file);
    wb_json_field_u64(&j, "offset", offset);
    wb_json_field_str(&j, "message", message);
    c->err = wb_output_object_end(&j);
}

static int end_check(const struct check_show *c, const struct wb_webdb_count *count)
{
    struct wb_json j;

    if (!c->json && c->problems)
        return wb_output_printf("damaged: %" PRIu64 " problem%s\n", c->problems, wb_output_plural(c->problems));
    if (!c->json && count->edition == 0)
        return wb_output_printf("there is no webdb yet, so there is nothing to check\n");
    if (!c->json)
        return wb_output_printf("sound: %" PRIu64 " page%s, %" PRIu64 " link%s\n", count->pages,
                                wb_output_plural(count->pages), count->links, wb_output_plural(count->links));
    wb_output_object_begin(&j, "done");
    wb_json_field_bool(&j, "ok", c->problems == 0);
    wb_json_field_u64(&j, "problems", c->problems);
    wb_json_field_u64(&j, "pages", count->pages);
    wb_json_field_u64(&j, "fetched", count->fetched);
    wb_json_field_u64(&j, "links", count->links);
    wb_json_field_u64(&j, "edition", count->edition);
    return wb_output_object_end(&j);
}

static int check_all(const struct wb_options *options)
{
    struct check_show c = {.json = options->json};
    struct wb_webdb_count count = {0};

    int err = wb_webdb_check(options->dir, on_problem, &c, &count);
    if (err == 0)
        err = c.err;
    if (err == 0)
        err = end_check(&c, &count);
    return err < 0 ? err : c.problems > 0;
}

/* ---- delete ------------------------------------------------------------------------------------- */

static int delete_page(const struct wb_options *options)
{
    struct wb_update_options o = {.dir = options->dir, .memory_bytes = wb_options_size(options, "memory", 0)};
    const char *url = options->args[1];
    struct wb_cycle_show show;
    struct wb_json j;
    uint64_t bytes = 0;

    struct wb_cycle_sink sink = wb_cycle_show_init(&show, "webdb delete");
    int err = wb_delete(&o, url, &sink, &bytes);
    wb_cycle_show_end(&show);
    if (err < 0)
        return err;
    if (!options->json)
        return wb_output_printf("%s is deleted (%" PRIu64 " bytes); a crawl may bring it back\n", url, bytes);
    wb_output_object_begin(&j, "done");
    wb_json_field_str(&j, "url", url);
    wb_json_field_u64(&j, "bytes", bytes);
    return wb_output_object_end(&j);
}

/* ---- the table ---------------------------------------------------------------------------------- */

/* An action either shows rows of an open webdb (show), or does everything itself (run). */
static const struct webdb_action {
    const char *name;
    size_t args;                           /* how many arguments follow the name */
    enum wb_webdb_rows_kind kind;
    int (*show)(struct webdb_view *view);
    int (*run)(const struct wb_options *options);
    const char *options;                   /* the options that it takes, separated by blanks */
} actions[] = {
    {"page", 1, WB_WEBDB_ROWS_PAGES, show_page, NULL, "tsv"},
    {"pages", 0, WB_WEBDB_ROWS_PAGES, show_pages, NULL, "by md5 site tsv"},
    {"exists", 1, WB_WEBDB_ROWS_COUNTS, show_exists, NULL, ""},
    {"links", 0, WB_WEBDB_ROWS_LINKS, show_links, NULL, "to from tsv"},
    {"sites", 0, WB_WEBDB_ROWS_SITES, show_sites, NULL, "tsv"},
    {"count", 0, WB_WEBDB_ROWS_COUNTS, show_count, NULL, "tsv"},
    {"check", 0, WB_WEBDB_ROWS_COUNTS, NULL, check_all, ""},
    {"delete", 1, WB_WEBDB_ROWS_COUNTS, NULL, delete_page, "memory"},
    {"import", 0, WB_WEBDB_ROWS_COUNTS, NULL, wb_cmd_webdb_import, "vertices edges pages links memory"},
    {"export", 0, WB_WEBDB_ROWS_COUNTS, NULL, wb_cmd_webdb_export, "vertices edges hosts force memory"},
};

static const struct webdb_action *find_action(const char *name)
{
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
    return NULL;
}

static bool takes_option(const struct webdb_action *action, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = action->options; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if (n == len && memcmp(at, name, len) == 0)
            return true;
        at += n;
    }
    return false;
}

/* The option parser knows only the command; here the arguments and options of the action are checked. */
static int check_words(const struct wb_options *options, const struct webdb_action *action)
{
    if (!action)
        return wb_options_usage("webdb: unknown action '%s'", options->args[0]);
    if (options->arg_count - 1 < action->args)
        return wb_options_usage("webdb %s: an argument is missing", action->name);
    if (options->arg_count - 1 > action->args)
        return wb_options_usage("webdb %s: does not take '%s'", action->name, options->args[1 + action->args]);
    for (size_t i = 0; options->command->options[i].name; i++)
        if (options->values[i] && !takes_option(action, options->command->options[i].name))
            return wb_options_usage("webdb %s: does not take --%s", action->name, options->command->options[i].name);
    return 0;
}

/* Opens webdb for an action that shows rows. */
static int run_view(const struct wb_options *options, const struct webdb_action *action)
{
    struct webdb_view v = {.options = options, .url = WB_URL_INIT};

    v.rows.form = options->json ? WB_WEBDB_ROWS_JSON : wb_options_flag(options,
                                                                       "tsv") ? WB_WEBDB_ROWS_TSV : WB_WEBDB_ROWS_WORDS;
    v.rows.kind = action->kind;
    int err = wb_webdb_open(options->dir, &v.webdb);
    if (err == WB_E_NOTFOUND)
        err = wb_fail(WB_E_NOTFOUND, "there is no webdb in %s yet: 'webbase update' makes it from the journal",
                      options->dir);
    if (err == 0)
        err = action->show(&v);
    if (err == 0)
        err = wb_webdb_rows_end(&v.rows);
    if (err == 0 && wb_stop_requested())
        err = wb_fail(WB_E_STOPPED, "stopped");
    wb_webdb_rows_release(&v.rows);
    wb_webdb_close(v.webdb);
    wb_url_release(&v.url);
    wb_buf_release(&v.key);
    wb_buf_release(&v.site_name);
    wb_buf_release(&v.near);
    wb_buf_release(&v.href);
    return err;
}

int wb_cmd_webdb(const struct wb_options *options)
{
    const struct webdb_action *action = find_action(options->args[0]);

    int err = check_words(options, action);
    if (err < 0)
        return err;
    /* A known graph may be what a repository begins with. */
    if (action->run != wb_cmd_webdb_import)
        err = wb_store_require(options->dir);
    if (err < 0)
        return err;
    wb_stop_on_signals();
    return action->run ? action->run(options) : run_view(options, action);
}
