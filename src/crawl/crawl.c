/*
 * crawl.c - the door: completes the options, adds the seeds to the dispenser, opens the parent process and runs it.
 *
 *   options -> seeds and scope -> repository, dispenser -> recovery of dead crawls -> the run -> workers -> parent.c
 *
 * Also tells which dispenser a repository uses, and checks it. What happens while the crawl runs is in parent.c.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "crawl/parent.h"
#include "crawl/recent.h"
#include "crawl/recover.h"
#include "os/limits.h"
#include "os/path.h"
#include "os/stop.h"

#include <event2/event.h>
#include <stdio.h>
#include <unistd.h>

/* Defaults of options. */
enum {
    PROCESSES_MAX = 8,
    SITES = 1000,
    PER_ADDRESS = 8,
    LIFETIME_DAYS = 90,
    TIMEOUT_MS = 30 * 1000,
    CRAWL_DELAY_MAX_MS = WB_MINUTE_MS,
    SITE_BUDGET = 1000000,
    MAX_BYTES = 16 << 20,
};

/* ---- which dispenser --------------------------------------------------------------------------------------------- */

/* Whether the repository has a dispenser of its own. */
static int has_own(const char *dir, bool *has_out)
{
    char *path = wb_path_join(dir, "dispenser.db");

    *has_out = path && wb_path_kind(path) == WB_PATH_FILE;
    wb_free(path);
    return path ? 0 : WB_E_NOMEM;
}

int wb_crawl_dispenser(const char *dir, struct wb_buf *text_out, bool *known_out)
{
    struct wb_buf url = WB_BUF_INIT;

    *known_out = true;
    int err = wb_dispenser_recall_url(dir, &url);
    if (err == 0 && url.len)
        err = wb_dispenser_redact_url(wb_buf_slice(&url), text_out);
    else if (err == 0)
        err = has_own(dir, known_out);
    wb_buf_release(&url);
    return err;
}

/* Whether a dispenser that is not used any more knows sites. If it cannot be asked, assume so. */
static bool has_sites(const char *dir, const char *url)
{
    struct wb_dispenser *old = NULL;
    struct wb_dispenser_stat stat = {0};
    bool known = true;

    int err = strcmp(url, WB_DISPENSER_OWN) == 0 ? has_own(dir, &known) : 0;
    if (err == 0 && known)
        err = wb_dispenser_open(dir, url, &old);
    if (err == 0 && old)
        err = wb_dispenser_stat(old, 0, &stat);
    wb_dispenser_close(old);
    return err < 0 ||
           stat.unresolved + stat.ready + stat.claimed + stat.waiting + stat.done + stat.alias + stat.refused > 0;
}

#define OTHER_DISPENSER "from now on the repository uses another dispenser; sites stay in the one before: "

/* Remembers the dispenser that was named, so that later commands need not name it. */
static int remember_dispenser(struct wb_parent *p)
{
    const struct wb_crawl_options *o = p->plan.options;
    struct wb_buf before = WB_BUF_INIT, words = WB_BUF_INIT;

    int err = wb_dispenser_recall_url(o->dir, &before);
    if (err == WB_E_CORRUPT)
        err = 0; /* the file is about to be replaced */
    const char *old = before.len ? before.ptr : WB_DISPENSER_OWN;
    if (err < 0 || strcmp(old, o->dispenser) == 0)
        goto done;
    if (has_sites(o->dir, old) && wb_buf_append_str(&words, OTHER_DISPENSER) == 0 &&
        wb_dispenser_redact_url(wb_slice_str(old), &words) == 0 && wb_buf_terminate(&words) == 0)
        wb_parent_warn(p, words.ptr);
    err = wb_dispenser_remember_url(o->dir, o->dispenser);
done:
    wb_buf_release(&before);
    wb_buf_release(&words);
    return err;
}

/* ---- seeds and scope --------------------------------------------------------------------------------------------- */

static void fill_options(const struct wb_crawl_options *given, struct wb_crawl_options *o)
{
    unsigned cores = wb_limits_processors();

    *o = *given;
    o->delay_ms = given->delay_ms >= 0 ? given->delay_ms : WB_CRAWL_DELAY_MS;
    o->crawl_delay_max_ms = given->crawl_delay_max_ms ? given->crawl_delay_max_ms : CRAWL_DELAY_MAX_MS;
    o->processes = given->processes ? given->processes : cores > PROCESSES_MAX ? PROCESSES_MAX : cores;
    if (o->processes > WB_TALLY_WORKERS_MAX)
        o->processes = WB_TALLY_WORKERS_MAX;
    o->sites = given->sites ? given->sites : SITES;
    o->connections = given->connections ? given->connections : 1;
    o->per_address = given->per_address ? given->per_address : PER_ADDRESS;
    if (o->per_address < o->connections)
        o->per_address = o->connections;
    o->user_agent = given->user_agent ? given->user_agent : WB_HTTP_AGENT;
    o->timeout_ms = given->timeout_ms ? given->timeout_ms : TIMEOUT_MS;
    o->max_bytes = given->max_bytes ? given->max_bytes : MAX_BYTES;
    o->site_budget = given->site_budget ? given->site_budget : SITE_BUDGET;
    o->lifetime_days = given->lifetime_days ? given->lifetime_days : LIFETIME_DAYS;
}

static int read_seeds(struct wb_parent *p, struct wb_seeds *list)
{
    const struct wb_crawl_options *o = p->plan.options;
    int err = 0;

    for (size_t i = 0; err == 0 && i < o->url_count; i++)
        err = wb_seeds_add(list, wb_slice_str(o->urls[i]));
    if (err == 0 && o->seeds_file)
        err = wb_seeds_read(list, o->seeds_file, p->sink->warn, p->sink->context);
    for (size_t i = 0; err == 0 && i < list->count; i++) {
        list->plans[i].seeds = &list->seeds[i];
        list->plans[i].seed_count = 1;
        err = wb_scope_add(&p->plan.scope, list->plans[i].name);
    }
    return err;
}

/* Unfinished sites of earlier runs join this run if they are in its scope. */
static int join_unfinished(struct wb_parent *p, const struct wb_seeds *list)
{
    int err = 0;

    WB_CHECK(p->plan.run > 0 && p->plan.scope.sealed);
    if (p->plan.options->scope == WB_SCOPE_ANY || list->count == 0)
        return wb_dispenser_join_run(p->dispenser, p->plan.run, true, WB_SLICE_EMPTY);
    if (p->plan.options->scope == WB_SCOPE_DOMAIN)
        for (size_t i = 0; err == 0 && i < p->plan.scope.names.count; i++)
            err = wb_dispenser_join_run(p->dispenser, p->plan.run, false, wb_slice_str(p->plan.scope.names.items[i]));
    return err;
}

static bool has_unfinished(const struct wb_dispenser_stat *sites)
{
    return sites->unresolved + sites->ready + sites->claimed + sites->waiting > 0;
}

/* There is nothing to do. The message names the dispenser if the caller did. */
static int fail_idle(const struct wb_crawl_options *o)
{
    struct wb_buf where = WB_BUF_INIT;
    int err = o->dispenser && wb_dispenser_is_url(wb_slice_str(o->dispenser))
                  ? wb_dispenser_redact_url(wb_slice_str(o->dispenser), &where)
                  : wb_buf_append_str(&where, o->dir);

    if (err == 0)
        err = wb_fail(WB_E_INVALID, "no seeds, and no unfinished crawl in %.*s to continue",
                      WB_SLICE_ARG(wb_buf_slice(&where)));
    wb_buf_release(&where);
    return err;
}

/*
 * A machine that joins the crawl of a shared dispenser needs no seeds of its own, and its repository is made like that
 * of any crawl. But a dispenser without work makes no repository.
 */
static int check_shared_work(const struct wb_crawl_options *o)
{
    struct wb_dispenser *dispenser = NULL;
    struct wb_dispenser_stat stat = {0};

    if (!o->dispenser || !wb_dispenser_is_url(wb_slice_str(o->dispenser)))
        return wb_fail(WB_E_INVALID, "no seeds: name a URL, or a file of them with --seeds");
    int err = wb_dispenser_open(o->dir, o->dispenser, &dispenser);
    if (err == 0)
        err = wb_dispenser_stat(dispenser, 0, &stat);
    wb_dispenser_close(dispenser);
    return err < 0 ? err : has_unfinished(&stat) ? 0 : fail_idle(o);
}

/* For one class: its seeds and its unfinished sites are the run. The others get their settings and seeds. */
static int add_seeds_of_class(struct wb_parent *p, const struct wb_seeds *list)
{
    struct wb_class_plans plans = {0};
    struct wb_arena names = {0};

    int err = wb_dispenser_set_classes(p->dispenser, list->site_classes, list->class_count);
    if (err == 0)
        err = wb_dispenser_introduce(p->dispenser, list->plans, list->count);
    if (err == 0)
        err = wb_classes_seal(p->dispenser, &p->plan.scope);
    if (err == 0)
        err = wb_classes_plan(p->dispenser, &p->plan.scope, list, &names, &plans);
    struct wb_run_plan wish = {.plans = plans.items, .count = plans.count};
    p->idle = plans.count == 0;
    if (err == 0 && p->idle && list->count == 0)
        err = fail_idle(p->plan.options);
    if (err == 0 && !p->idle)
        err = wb_dispenser_enter_run(p->dispenser, &wish, &p->plan.run, &p->plan.goes_on);
    if (err == 0 && !p->idle)
        err = wb_dispenser_stat(p->dispenser, p->plan.run, &p->sites);
    atomic_store(&p->plan.tally->sites_open, p->sites.unresolved + p->sites.ready + p->sites.claimed);
    wb_vec_release(&plans);
    wb_arena_release(&names);
    return err;
}

static int add_seeds(struct wb_parent *p, struct wb_seeds *list)
{
    if (p->plan.options->class_name)
        return add_seeds_of_class(p, list);
    wb_scope_seal(&p->plan.scope);
    struct wb_run_plan wish = {.plans = list->plans, .count = list->count,
                               .all = p->plan.options->scope == WB_SCOPE_ANY || list->count == 0};

    if (p->plan.options->scope == WB_SCOPE_DOMAIN) {
        wish.domains = p->plan.scope.names.items;
        wish.domain_count = p->plan.scope.names.count;
    }
    int err = wb_dispenser_set_classes(p->dispenser, list->site_classes, list->class_count);
    if (err == 0)
        err = wb_dispenser_enter_run(p->dispenser, &wish, &p->plan.run, &p->plan.goes_on);
    if (err == 0)
        err = join_unfinished(p, list);
    if (err == 0)
        err = wb_dispenser_stat(p->dispenser, p->plan.run, &p->sites);
    /* Without seeds all unfinished sites are crawled, each within itself. */
    if (err == 0 && list->count == 0 && !has_unfinished(&p->sites))
        err = fail_idle(p->plan.options);
    atomic_store(&p->plan.tally->sites_open, p->sites.unresolved + p->sites.ready + p->sites.claimed);
    return err;
}

static int scope_site(void *context, const struct wb_site_row *row)
{
    return row->needed ? 0 : wb_scope_add(context, row->name);
}

/* Crawls the run of a fetch list. Its sites are the scope, and no other unfinished site joins. */
static int enter_list(struct wb_parent *p)
{
    uint64_t count = 0;

    p->plan.run = p->plan.options->run;
    int err = wb_dispenser_each(p->dispenser, p->plan.run, scope_site, &p->plan.scope);
    if (err == 0)
        err = wb_classes_seal(p->dispenser, &p->plan.scope);
    if (err == 0)
        err = wb_tally_open_fetches(p->plan.options->dir, p->plan.run, &p->plan.fetches, &count);
    atomic_store(&p->plan.tally->fetches, count);
    if (err == 0)
        err = wb_dispenser_stat(p->dispenser, p->plan.run, &p->sites);
    atomic_store(&p->plan.tally->sites_open, p->sites.unresolved + p->sites.ready + p->sites.claimed);
    return err;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

/* Creates the repository, unless another crawl does so at the same moment. */
static int make_repository(const char *dir)
{
    int err = wb_store_create(dir, NULL);

    return err == WB_E_INVALID && wb_store_exists(dir) ? 0 : err;
}

static int open_teller(struct wb_parent *p)
{
    WB_CHECK(p->plan.home[0] && !p->teller);
    int err = wb_teller_open(p->plan.options->dir, p->sink, &p->teller);

    snprintf(p->own_name, sizeof p->own_name, "%s-%ld-%llx", p->plan.home, (long)getpid(),
             (unsigned long long)p->began_ms);
    return err < 0 ? err : wb_teller_add(p->teller, p->own_name, &p->lines);
}

static int open_parent(struct wb_parent *p)
{
    const struct wb_crawl_options *o = p->plan.options;
    struct wb_seeds list = {0};

    int err = 0;
    if (o->ca_file && wb_path_kind(o->ca_file) != WB_PATH_FILE)
        err = wb_fail(WB_E_NOTFOUND, "%s: no such file of certificates", o->ca_file);
    if (err == 0 && !o->run)
        err = read_seeds(p, &list);
    if (err == 0 && !o->run && o->class_name)
        err = wb_classes_check(o, &list);
    if (err == 0 && list.count == 0 && !wb_store_exists(o->dir))
        err = check_shared_work(o);
    if (err == 0 && !wb_store_exists(o->dir))
        err = make_repository(o->dir);
    if (err == 0)
        err = wb_store_id(o->dir, p->plan.home);
    if (err == 0)
        err = wb_dispenser_open(o->dir, o->dispenser, &p->dispenser);
    if (err == 0 && o->dispenser)
        err = remember_dispenser(p);
    if (err == 0)
        err = wb_recover(o->dir, p->plan.home, p->dispenser, true);
    if (err == 0) /* a crawl that was killed could not do this */
        err = wb_dispenser_end_waits(p->dispenser, WB_SLICE_LIT(WB_TALLY_STOPPED), wb_clock_now_ms());
    if (err == 0)
        err = open_teller(p);
    if (err == 0)
        err = o->run ? enter_list(p) : add_seeds(p, &list);
    wb_seeds_release(&list);
    if (err < 0)
        return err;
    if (p->idle)
        return 0;
    p->base = event_base_new();
    err = p->base ? wb_resolve_open(p) : wb_fail_nomem();
    return err < 0 ? err : wb_control_door_open(p);
}

static void close_parent(struct wb_parent *p)
{
    WB_CHECK(p->magic == WB_PARENT_MAGIC);
    wb_crew_kill(&p->crew);
    wb_control_door_close(p);
    wb_teller_close(p->teller);
    wb_resolve_close(p);
    if (p->tick)
        event_free(p->tick);
    if (p->base)
        event_base_free(p->base);
    wb_dispenser_close(p->dispenser);
    wb_scope_release(&p->plan.scope);
    wb_file_close(&p->plan.fetches);
}

int wb_crawl(const struct wb_crawl_options *options, const struct wb_crawl_sink *sink, struct wb_crawl_stat *stat_out)
{
    struct wb_crawl_options o;
    struct wb_parent p = {.magic = WB_PARENT_MAGIC, .sink = sink};
    int err = 0;

    *stat_out = (struct wb_crawl_stat){0};
    fill_options(options, &o);
    p.plan.options = &o;
    p.plan.fetches = WB_FILE_INIT;
    p.door.fd = -1;
    p.plan.agent = wb_http_agent_token(wb_slice_str(o.user_agent));
    p.began_ms = wb_clock_now_ms();
    p.plan.tally = wb_tally_new();
    if (!p.plan.tally)
        return WB_E_NOMEM;
    p.plan.tally->pace.rate = o.max_rate;
    wb_scope_init(&p.plan.scope, o.scope);
    if (o.class_name)
        wb_scope_limit(&p.plan.scope, o.class_name);
    err = open_parent(&p);
    if (err == 0 && !p.idle)
        err = wb_crew_start(&p);
    if (err == 0 && !p.idle)
        err = wb_parent_run(&p);
    if (err == 0 && !p.idle)
        err = wb_dispenser_leave(p.dispenser, p.plan.run, wb_slice_str(p.plan.home));
    wb_parent_stat(&p, stat_out);
    stat_out->lines_left = p.lines_left;
    if (err == 0 && wb_stop_requested())
        err = wb_fail(WB_E_STOPPED, "stopped by a signal");
    struct wb_error_copy failed;
    wb_error_save(err, &failed);
    close_parent(&p);
    wb_tally_free(p.plan.tally);
    return err < 0 ? wb_error_restore(&failed) : 0;
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

/* Passes findings about the dispenser on as findings about its file. */
struct found_sink {
    wb_journal_found found;
    void *context;
};

static void on_found(void *context, bool problem, uint64_t offset, const char *message)
{
    const struct found_sink *v = context;

    v->found(v->context, problem, "dispenser.db", offset, message);
}

int wb_crawl_verify(const char *dir, wb_journal_found found, void *context)
{
    struct found_sink v = {found, context};
    struct wb_buf url = WB_BUF_INIT;

    int err = wb_dispenser_recall_url(dir, &url);
    if (err == WB_E_CORRUPT) {
        found(context, true, "dispenser.url", 0, wb_error_message());
        err = 0;
    }
    wb_buf_release(&url);
    if (err == 0)
        err = wb_recent_verify(dir, found, context);
    return err < 0 ? err : wb_dispenser_verify(dir, on_found, &v);
}
