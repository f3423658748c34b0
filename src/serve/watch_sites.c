/*
 * watch_sites.c - the sites of a repository, one page of them: what the dispenser, webdb and the latest fetches know of
 * each. The dispenser looks at every site once, which takes two tenths of a second for 100,000; everything else is done
 * for the sites of the page only.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "serve/watch.h"

#include <inttypes.h>
#include <stdio.h>

static const struct {
    const char *word;
    enum wb_site_state state;
} states[] = {
    {"any", 0},
    {"unresolved", WB_SITE_UNRESOLVED},
    {"ready", WB_SITE_READY},
    {"crawled", WB_SITE_CLAIMED},
    {"waiting", WB_SITE_WAITING},
    {"done", WB_SITE_DONE},
    {"alias", WB_SITE_ALIAS},
    {"refused", WB_SITE_REFUSED},
};

static const struct {
    const char *word;
    enum wb_site_order order;
} orders[] = {
    {"name", WB_SITE_BY_NAME},   {"state", WB_SITE_BY_STATE},       {"next", WB_SITE_BY_NEXT},
    {"pages", WB_SITE_BY_PAGES}, {"failures", WB_SITE_BY_ATTEMPTS},
};

const char *wb_watch_state_word(enum wb_site_state state)
{
    for (size_t i = 1; i < sizeof states / sizeof *states; i++)
        if (states[i].state == state)
            return states[i].word;
    return "unknown";
}

/* ---- what is looked for ------------------------------------------------------------------------------------------ */

static int read_words(struct wb_watch_search *s, struct wb_slice order)
{
    size_t i = 0, k = 0;

    while (i < sizeof states / sizeof *states && !wb_slice_equal(s->state, wb_slice_str(states[i].word)))
        i++;
    if (i == sizeof states / sizeof *states)
        return wb_fail(WB_E_INVALID,
                       "state=%.*s is not any, unresolved, ready, crawled, waiting, done, alias or refused",
                       WB_SLICE_ARG(s->state));
    while (k < sizeof orders / sizeof *orders && !wb_slice_equal(s->sort, wb_slice_str(orders[k].word)))
        k++;
    if (k == sizeof orders / sizeof *orders)
        return wb_fail(WB_E_INVALID, "sort=%.*s is not name, state, next, pages or failures", WB_SLICE_ARG(s->sort));
    s->search.state = states[i].state;
    s->search.order = orders[k].order;
    s->search.descending = wb_slice_equal(order, WB_SLICE_LIT("down"));
    if (order.len && !s->search.descending && !wb_slice_equal(order, WB_SLICE_LIT("up")))
        return wb_fail(WB_E_INVALID, "order=%.*s is neither up nor down", WB_SLICE_ARG(order));
    return 0;
}

int wb_watch_search_read(struct wb_call *call, struct wb_watch_search *search_out)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC);
    struct wb_slice sort = wb_call_param(call, "sort"), state = wb_call_param(call, "state");
    uint64_t limit;

    *search_out = (struct wb_watch_search){.search = {.text = wb_call_param(call, "q")},
                                           .sort = sort.len ? sort : WB_SLICE_LIT("name"),
                                           .state = state.len ? state : WB_SLICE_LIT("any")};
    int err = wb_call_number(call, "limit", WB_WATCH_ROWS, WB_WATCH_ROWS_MAX, &limit);
    if (err == 0)
        err = wb_call_number(call, "offset", 0, UINT32_MAX, &search_out->search.offset);
    search_out->search.max = (unsigned)limit;
    if (err == 0 && search_out->search.text.len > WB_SITE_NAME_MAX)
        err = wb_fail(WB_E_INVALID, "q has %zu bytes; names of sites have at most %d", search_out->search.text.len,
                      WB_SITE_NAME_MAX);
    return err < 0 ? err : read_words(search_out, wb_call_param(call, "order"));
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int keep_text(struct wb_watch_sites *sites, struct wb_slice *text)
{
    return wb_arena_copy(&sites->texts, *text, text);
}

static int keep_row(void *context, const struct wb_site_row *row)
{
    struct wb_watch_sites *sites = context;
    struct wb_watch_site *site = &sites->items[sites->count];

    WB_CHECK(sites->count < sites->room);
    *site = (struct wb_watch_site){.row = *row, .queued = WB_RECENT_UNKNOWN};
    struct wb_slice *texts[] = {&site->row.name, &site->row.scheme, &site->row.class_name, &site->row.reason,
                                &site->row.alias_of};
    int err = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && err == 0; i++)
        err = keep_text(sites, texts[i]);
    /* The rest is nobody's business here, and not kept. */
    site->row.address = site->row.probe = site->row.home = site->row.owner = WB_SLICE_EMPTY;
    sites->count += err == 0;
    return err;
}

static int read_rows(const char *dir, const struct wb_watch_search *search, struct wb_watch_sites *sites)
{
    struct wb_dispenser *dispenser = NULL;
    struct wb_dispenser_stat stat = {0};
    int err = wb_dispenser_open(dir, NULL, &dispenser);

    if (err == 0)
        err = wb_dispenser_search(dispenser, &search->search, keep_row, sites, &sites->total);
    if (err == 0)
        err = wb_dispenser_stat(dispenser, 0, &stat);
    wb_dispenser_close(dispenser);
    sites->states[WB_SITE_UNRESOLVED] = stat.unresolved;
    sites->states[WB_SITE_READY] = stat.ready;
    sites->states[WB_SITE_CLAIMED] = stat.claimed;
    sites->states[WB_SITE_WAITING] = stat.waiting;
    sites->states[WB_SITE_DONE] = stat.done;
    sites->states[WB_SITE_ALIAS] = stat.alias;
    sites->states[WB_SITE_REFUSED] = stat.refused;
    return err;
}

static int read_known(const char *dir, struct wb_watch_sites *sites)
{
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_site known;
    int err = wb_webdb_open(dir, &webdb);

    for (size_t i = 0; i < sites->count && err == 0; i++) {
        struct wb_watch_site *site = &sites->items[i];
        err = wb_webdb_get_site(webdb, site->row.name, &known);
        site->is_known = err == 0;
        site->known = site->is_known ? known.pages : 0;
        site->fetched = site->is_known ? known.fetched : 0;
        err = err == WB_E_NOTFOUND ? 0 : err;
    }
    wb_webdb_close(webdb);
    return err == WB_E_NOTFOUND ? 0 : err;
}

int wb_watch_counts(const struct wb_server *server, struct wb_dispenser_stat *stat_out, bool *known_out)
{
    WB_CHECK(server->magic == WB_SERVER_MAGIC);
    const char *dir = server->options->dir;
    struct wb_dispenser *dispenser = NULL;
    struct wb_buf where = WB_BUF_INIT;
    int err = wb_crawl_dispenser(dir, &where, known_out);

    *stat_out = (struct wb_dispenser_stat){0};
    wb_buf_release(&where);
    if (err < 0 || !*known_out)
        return err;
    err = wb_dispenser_open(dir, NULL, &dispenser);
    if (err == 0)
        err = wb_dispenser_stat(dispenser, 0, stat_out);
    wb_dispenser_close(dispenser);
    return err;
}

/* ---- the latest fetches ------------------------------------------------------------------------------------------ */

struct recent_walk {
    struct wb_watch_sites *sites;
    int64_t since_ms;
};

static struct wb_watch_site *find_site(const struct wb_watch_sites *sites, struct wb_slice url)
{
    const char *mark = memmem(url.ptr, url.len, "://", 3);
    struct wb_slice rest = mark ? wb_slice(mark + 3, (size_t)(url.ptr + url.len - mark - 3)) : url;

    for (size_t i = 0; i < sites->count; i++) {
        struct wb_slice name = sites->items[i].row.name;
        if (wb_slice_starts(rest, name) && (rest.len == name.len || strchr("/?#", rest.ptr[name.len])))
            return &sites->items[i];
    }
    return NULL;
}

/* The last request failed: a crawler that has the site waits a while because of that. */
static int note_failure(struct wb_watch_sites *sites, struct wb_watch_site *site, const struct wb_recent_fetch *fetch)
{
    struct wb_buf text = WB_BUF_INIT;
    int err = wb_buf_append_str(&text, "its last request failed: ");

    if (err == 0 && fetch->status)
        err = wb_buf_printf(&text, "status %u", fetch->status);
    else if (err == 0)
        err = wb_buf_append_slice(&text, fetch->reason.len ? fetch->reason : fetch->result);
    site->why = wb_buf_slice(&text);
    if (err == 0)
        err = keep_text(sites, &site->why);
    wb_buf_release(&text);
    return err;
}

/* The newest comes first, so the first one of a site has the newest length of its queue. */
static int see_fetch(void *context, const struct wb_recent_fetch *fetch)
{
    struct recent_walk *walk = context;
    struct wb_watch_site *site;
    int err = 0;

    if (fetch->time_ms < walk->since_ms)
        return 0; /* processes write in turns, so there may be newer ones behind it */
    site = find_site(walk->sites, fetch->url);
    if (!site)
        return 0;
    if (!site->asked_ms) {
        site->asked_ms = fetch->time_ms;
        if (wb_slice_starts(fetch->result, WB_SLICE_LIT("error:")) || fetch->status >= 400)
            err = note_failure(walk->sites, site, fetch);
    }
    if (site->queued == WB_RECENT_UNKNOWN)
        site->queued = fetch->queued;
    site->requests++;
    site->errors += wb_slice_starts(fetch->result, WB_SLICE_LIT("error:"));
    return err;
}

/* ---- why --------------------------------------------------------------------------------------------------------- */

static int explain(struct wb_watch_sites *sites, struct wb_watch_site *site, bool crawling)
{
    const struct wb_site_row *row = &site->row;
    struct wb_buf text = WB_BUF_INIT;
    int err = 0;

    switch (row->state) {
    case WB_SITE_UNRESOLVED:
        err = wb_buf_append_str(&text, "its name has not been looked up yet");
        break;
    case WB_SITE_READY:
        err = wb_buf_append_str(&text, crawling ? "a crawl will take it when it has room" : "no crawl is running");
        break;
    case WB_SITE_CLAIMED:
        err = crawling ? wb_buf_append_slice(&text, site->why)
                       : wb_buf_append_str(&text, "the crawl that had it has ended; the next one takes it");
        break;
    case WB_SITE_ALIAS:
        err = wb_buf_printf(&text, "another name of %.*s", WB_SLICE_ARG(row->alias_of));
        break;
    case WB_SITE_DONE:
        err = wb_buf_printf(&text, "its visit is over%s%.*s", row->reason.len ? ": " : "", WB_SLICE_ARG(row->reason));
        break;
    default:
        err = wb_buf_append_slice(&text, row->reason);
    }
    site->why = wb_buf_slice(&text);
    if (err == 0)
        err = keep_text(sites, &site->why);
    wb_buf_release(&text);
    return err;
}

static bool is_crawling(const char *dir)
{
    struct wb_control_command command = {.verb = WB_CONTROL_STATUS};
    struct wb_buf answer = WB_BUF_INIT;
    bool crawling = wb_control_send(dir, &command, &answer) == 0;

    wb_buf_release(&answer);
    return crawling;
}

int wb_watch_sites_read(const struct wb_server *server, const struct wb_watch_search *search,
                        struct wb_watch_sites *sites_out)
{
    WB_CHECK(server->magic == WB_SERVER_MAGIC);
    WB_CHECK(search->search.max <= WB_WATCH_ROWS_MAX);
    const char *dir = server->options->dir;
    struct recent_walk walk = {.sites = sites_out, .since_ms = wb_clock_wall_ms() - WB_WATCH_RECENT_MS};
    struct wb_buf where = WB_BUF_INIT;
    uint64_t newest;

    *sites_out = (struct wb_watch_sites){.count = 0};
    int err = wb_crawl_dispenser(dir, &where, &sites_out->known);
    wb_buf_release(&where);
    if (err < 0 || !sites_out->known)
        return err;
    sites_out->items = wb_alloc_zero(search->search.max + 1, sizeof *sites_out->items);
    sites_out->room = search->search.max;
    err = sites_out->items ? read_rows(dir, search, sites_out) : WB_E_NOMEM;
    if (err == 0)
        err = read_known(dir, sites_out);
    if (err == 0 && sites_out->count)
        err = wb_recent_read(dir, 0, see_fetch, &walk, &newest);
    bool crawling = is_crawling(dir);
    for (size_t i = 0; i < sites_out->count && err == 0; i++)
        err = explain(sites_out, &sites_out->items[i], crawling);
    return err;
}

void wb_watch_sites_release(struct wb_watch_sites *sites)
{
    wb_arena_release(&sites->texts);
    wb_free(sites->items);
    *sites = (struct wb_watch_sites){.count = 0};
}
