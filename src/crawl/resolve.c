/*
 * resolve.c - resolves the sites of the run in advance (WebBase Components, section 2.2), so that a
 * worker never waits for a name. A site whose name does not exist, or whose addresses we do not
 * contact, is refused here, and each of its seeds is told of in the log. Everything else that can go wrong (a resolver that is down, SERVFAIL, no
 * answer, no address) says nothing of the name: it is asked for again after 5, 10, 20 and 40 seconds, and then left for another run.
 */
#include "base/date.h"
#include "base/json.h"
#include "base/mem.h"
#include "crawl/parent.h"

#include <stdio.h>

enum {
    AT_ONCE = 500,
    LOOK_MS = 100,
    REFUSED_TOLD_MAX = 20,
    AGAIN_FIRST_MS = 5000, /* before a name that could not be resolved is asked for again; twice as long each time */
};

/* One site's name on its way. */
struct inquiry {
    struct wb_parent *parent;
    int64_t id;
    int attempts; /* that failed before */
    bool visited; /* its journal may know URLs that wait */
};

int wb_resolve_open(struct wb_parent *parent)
{
    const struct wb_crawl_options *o = parent->plan.options;
    struct wb_dns_options options = {.servers = o->dns_servers, .rate = o->dns_rate};
    int err = wb_dns_new(parent->base, &options, &parent->dns);

    for (size_t i = 0; err == 0 && i < o->resolve_count; i++)
        err = wb_dns_override(parent->dns, o->resolve[i]);
    return err;
}

void wb_resolve_close(struct wb_parent *parent)
{
    const int64_t *ids = (const int64_t *)(const void *)parent->unresolvable.ptr;

    /* That it cannot be noted costs the next run a wait. */
    if (parent->unresolvable.len)
        (void)wb_dispenser_resolve_again(parent->dispenser, ids, parent->unresolvable.len / sizeof *ids, wb_clock_now_ms());
    wb_buf_release(&parent->unresolvable);
    wb_dns_free(parent->dns);
    wb_seen_release(&parent->asked);
}

/* ---- refusing --------------------------------------------------------------------------------------- */

struct refusal {
    struct wb_parent *parent;
    int error;
    const char *reason;
};

/* Who reads no log should see why a seed is not crawled; a long list of dead names is cut short. */
static void warn_of_seed(struct wb_parent *p, const struct wb_seed *seed, const char *reason)
{
    char words[WB_ERROR_MESSAGE_MAX];

    if (p->refused_told > REFUSED_TOLD_MAX)
        return;
    if (p->refused_told++ == REFUSED_TOLD_MAX)
        snprintf(words, sizeof words, "more seeds like these; --log or --json tells of all");
    else
        snprintf(words, sizeof words, "%.*s: %s", WB_SLICE_ARG(seed->url), reason);
    wb_parent_warn(p, words);
}

static int tell_seed(void *context, const struct wb_seed *seed)
{
    struct refusal *refusal = context;
    struct wb_parent *p = refusal->parent;
    struct wb_buf line = WB_BUF_INIT;
    struct wb_eventlog_entry event = {.url = seed->url, .error = refusal->error, .message = refusal->reason, .time_ms = wb_clock_now_ms()};

    wb_tally_add(&p->plan.tally->errors[refusal->error], 1);
    if (!p->lines)
        warn_of_seed(p, seed, refusal->reason);
    int err = wb_eventlog_format(&line, &event);
    if (err == 0)
        err = wb_parent_line(p, wb_buf_slice(&line));
    wb_buf_release(&line);
    return err;
}

static int refuse(struct wb_parent *p, int64_t id, int error, const char *reason)
{
    struct refusal refusal = {p, error, reason};
    int err = wb_dispenser_resolved(p->dispenser, id, WB_SLICE_EMPTY, 0, wb_slice_str(reason));

    return err < 0 ? err : wb_dispenser_seeds(p->dispenser, id, 0, tell_seed, &refusal);
}

/* Asked for again in this run while that is soon; otherwise by the next one. */
static int put_off(struct wb_parent *p, int64_t id, int attempts, const char *trouble)
{
    int64_t wait = (int64_t)AGAIN_FIRST_MS << (attempts < 14 ? attempts : 14);
    char words[160];
    struct refusal refusal = {p, WB_CRAWL_DNS, words};

    snprintf(words, sizeof words, "its name cannot be resolved now: %s", trouble);
    int err = wb_dispenser_unresolvable(p->dispenser, id, wb_clock_now_ms() + wait, attempts + 1, wb_slice_str(words));
    if (err < 0 || wait <= WB_SOON_MS)
        return err;
    err = wb_buf_append(&p->unresolvable, &id, sizeof id);
    return err < 0 ? err : wb_dispenser_seeds(p->dispenser, id, 0, tell_seed, &refusal);
}

/* ---- answers ------------------------------------------------------------------------------------------ */

static int accept_address(struct wb_parent *p, int64_t id, bool visited, const struct wb_dns_answer *answer)
{
    char text[WB_ADDRESS_TEXT_MAX], words[64];
    const char *private = NULL;

    /* One public address is enough; the others of such a name are not contacted. */
    for (unsigned i = 0; i < answer->count; i++) {
        private = p->plan.options->allow_private ? NULL : wb_address_private(&answer->addresses[i]);
        if (private)
            continue;
        wb_address_format(&answer->addresses[i], text);
        atomic_fetch_add(&p->plan.tally->claimable, 1);
        return wb_dispenser_resolved(p->dispenser, id, wb_slice_str(text), answer->expires_ms, WB_SLICE_EMPTY);
    }
    /* A worker refuses it instead, which knows the URLs that wait and gives each its line (refuse_pages in dispatch.c). */
    if (visited && answer->count) {
        wb_address_format(&answer->addresses[0], text);
        atomic_fetch_add(&p->plan.tally->claimable, 1);
        return wb_dispenser_resolved(p->dispenser, id, wb_slice_str(text), answer->expires_ms, WB_SLICE_EMPTY);
    }
    snprintf(words, sizeof words, "private address (%s); --allow-private would allow it", private ? private : "none");
    return refuse(p, id, WB_CRAWL_PRIVATE, words);
}

static struct wb_pageid asked_id(int64_t id)
{
    return (struct wb_pageid){(uint64_t)id * 2654435761u + 1, (uint64_t)id};
}

static void answered(void *context, const struct wb_dns_answer *answer)
{
    struct inquiry *inquiry = context;
    struct wb_parent *p = inquiry->parent;
    int64_t id = inquiry->id;
    int attempts = inquiry->attempts, err = 0;
    bool visited = inquiry->visited;

    wb_free(inquiry);
    p->resolving--;
    wb_seen_mark(&p->asked, asked_id(id), false);
    switch (answer->status) {
    case WB_DNS_OK:
        err = accept_address(p, id, visited, answer);
        break;
    case WB_DNS_NONE:
        err = refuse(p, id, WB_CRAWL_DNS, answer->message);
        break;
    case WB_DNS_FAILED:
        err = put_off(p, id, attempts, answer->message);
        break;
    }
    if (err < 0)
        wb_parent_fail(p, err);
}

struct batch {
    struct wb_parent *parent;
    struct {
        int64_t id;
        int attempts;
        bool visited;
        char *url;
    } rows[AT_ONCE];
    unsigned count;
};

static int take_row(void *context, const struct wb_site_row *row)
{
    struct batch *batch = context;
    char *url;

    if (wb_seen_marked(&batch->parent->asked, asked_id(row->id)))
        return 0;
    url = wb_alloc_zero(1, row->scheme.len + row->name.len + 5);
    if (!url)
        return WB_E_NOMEM;
    memcpy(url, row->scheme.ptr, row->scheme.len);
    memcpy(url + row->scheme.len, "://", 3);
    memcpy(url + row->scheme.len + 3, row->name.ptr, row->name.len);
    batch->rows[batch->count].id = row->id;
    /* Of a site that has an address they count failures of another kind. */
    batch->rows[batch->count].attempts = row->address.len == 0 && row->attempts > 0 ? row->attempts : 0;
    batch->rows[batch->count].visited = row->trail.log != 0;
    batch->rows[batch->count++].url = url;
    return 0;
}

static int ask(struct wb_parent *p, int64_t id, int attempts, bool visited, const char *url_text)
{
    struct wb_url url = WB_URL_INIT;
    struct inquiry *inquiry = wb_alloc_zero(1, sizeof *inquiry);

    int err = inquiry ? wb_url_parse(wb_slice_str(url_text), NULL, &url) : WB_E_NOMEM;
    if (err == 0)
        err = wb_seen_add(&p->asked, p->plan.options->dir, asked_id(id));
    if (err >= 0) {
        struct wb_slice host;
        uint16_t port;
        wb_site_endpoint(&url, &host, &port);
        wb_seen_mark(&p->asked, asked_id(id), true);
        *inquiry = (struct inquiry){p, id, attempts, visited};
        p->resolving++;
        err = wb_dns_resolve(p->dns, host, port, answered, inquiry);
        if (err < 0)
            p->resolving--;
    }
    if (err < 0)
        wb_free(inquiry);
    wb_url_release(&url);
    return err == WB_E_PROTO ? refuse(p, id, WB_CRAWL_DNS, "its name is no name") : err;
}

int wb_resolve_ahead(struct wb_parent *parent)
{
    struct batch *batch;
    int64_t now = wb_clock_now_ms();
    int err = 0;

    if (parent->resolving >= AT_ONCE / 2 || (now - parent->resolved_ms < LOOK_MS && !parent->resolve_more))
        return 0;
    parent->resolved_ms = now;
    batch = wb_alloc_zero(1, sizeof *batch);
    if (!batch)
        return WB_E_NOMEM;
    batch->parent = parent;
    err = wb_dispenser_unresolved(parent->dispenser, parent->plan.run, now, AT_ONCE, take_row, batch);
    parent->resolve_more = batch->count > 0;
    for (unsigned i = 0; i < batch->count; i++) {
        if (err == 0)
            err = ask(parent, batch->rows[i].id, batch->rows[i].attempts, batch->rows[i].visited, batch->rows[i].url);
        wb_free(batch->rows[i].url);
    }
    wb_free(batch);
    return err;
}
