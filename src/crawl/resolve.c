/*
 * resolve.c - looks up the names of the run's sites in advance (WebBase Components, section 2.2), so that a worker
 * rarely waits for a name.
 *
 * A site whose name does not exist, or whose addresses we do not contact, is refused here, and the log gets a line
 * for each of its seeds. All other troubles (a resolver that is down, SERVFAIL, no answer) say nothing about the
 * name: it is asked for again after 5, 10, 20 and 40 seconds, and then left for a later crawl.
 *
 * It decides about addresses only and never contacts a site.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/json.h"
#include "base/mem.h"
#include "crawl/parent.h"

#include <stdio.h>

enum {
    AT_ONCE = 500,         /* names under way */
    LOOK_MS = 100,         /* between two looks for rows without an address */
    REFUSED_TOLD_MAX = 20, /* warnings about refused seeds */
    AGAIN_FIRST_MS = 5000, /* before a name is asked for again; twice as long each time */
};

/* A question about the name of one site. */
struct inquiry {
    struct wb_parent *parent;
    int64_t id;   /* of its row */
    int attempts; /* that failed before */
    bool visited; /* the journal may know URLs of it that wait */
};

int wb_resolve_open(struct wb_parent *parent)
{
    WB_CHECK(parent->magic == WB_PARENT_MAGIC && !parent->resolver.dns);
    const struct wb_crawl_options *o = parent->plan.options;
    struct wb_dns_options options = {.servers = o->dns_servers, .rate = o->dns_rate};
    int err = wb_dns_new(parent->base, &options, &parent->resolver.dns);

    for (size_t i = 0; err == 0 && i < o->resolve_count; i++)
        err = wb_dns_override(parent->resolver.dns, o->resolve[i]);
    return err;
}

void wb_resolve_close(struct wb_parent *parent)
{
    WB_CHECK(parent->magic == WB_PARENT_MAGIC);
    struct wb_resolver *resolver = &parent->resolver;

    /* The next crawl may ask for these names at once. If that cannot be noted, it only has to wait. */
    if (resolver->unresolvable.count && parent->dispenser)
        (void)wb_dispenser_resolve_again(parent->dispenser, resolver->unresolvable.items, resolver->unresolvable.count,
                                         wb_clock_now_ms());
    wb_vec_release(&resolver->unresolvable);
    wb_dns_free(resolver->dns);
    wb_seen_release(&resolver->asked);
}

/* ---- refusing ---------------------------------------------------------------------------------------------------- */

/* Why a site is not crawled, for the lines of its seeds. */
struct refusal {
    struct wb_parent *parent;
    int error;
    const char *reason;
};

/* Tells people who read no log why a seed is not crawled. A long list of dead names is cut short. */
static void warn_of_seed(struct wb_parent *p, const struct wb_seed *seed, const char *reason)
{
    char words[WB_ERROR_MESSAGE_MAX];

    if (p->resolver.refused_told > REFUSED_TOLD_MAX)
        return;
    if (p->resolver.refused_told++ == REFUSED_TOLD_MAX)
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
    struct wb_eventlog_entry entry = {.url = seed->url, .error = refusal->error, .message = refusal->reason,
                                      .time_ms = wb_clock_now_ms()};

    wb_tally_add(&p->plan.tally->errors[refusal->error], 1);
    if (!p->lines)
        warn_of_seed(p, seed, refusal->reason);
    int err = wb_eventlog_format(&line, &entry);
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

/* The name is asked for again, in this run if that is soon, otherwise by a later crawl. */
static int put_off(struct wb_parent *p, int64_t id, int attempts, const char *trouble)
{
    int64_t wait = (int64_t)AGAIN_FIRST_MS << (attempts < 14 ? attempts : 14);
    char words[160];
    struct refusal refusal = {p, WB_CRAWL_DNS, words};

    snprintf(words, sizeof words, "its name cannot be resolved now: %s", trouble);
    int err = wb_dispenser_unresolvable(p->dispenser, id, wb_clock_now_ms() + wait, attempts + 1, wb_slice_str(words));
    if (err < 0 || wait <= WB_SOON_MS)
        return err;
    err = wb_vec_push(&p->resolver.unresolvable, id);
    return err < 0 ? err : wb_dispenser_seeds(p->dispenser, id, 0, tell_seed, &refusal);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static int accept_address(struct wb_parent *p, int64_t id, bool visited, const struct wb_dns_answer *answer)
{
    char text[WB_ADDRESS_TEXT_MAX], words[64];
    const char *private = NULL;
    const struct wb_address *address = wb_names_choose_address(&p->plan, answer, &private);

    /* A site that was visited before may have URLs in its queue, and each needs its line. A worker knows them, so it
       gets the private address and refuses the site instead of us (names.c). */
    if (!address && visited && answer->count)
        address = &answer->addresses[0];
    if (address) {
        wb_address_format(address, text);
        atomic_fetch_add(&p->plan.tally->claimable, 1);
        return wb_dispenser_resolved(p->dispenser, id, wb_slice_str(text), answer->expires_ms, WB_SLICE_EMPTY);
    }
    snprintf(words, sizeof words, "private address (%s); --allow-private would allow it", private ? private : "none");
    return refuse(p, id, WB_CRAWL_PRIVATE, words);
}

/* The id of a row as a member of the set of those asked for. */
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

    WB_CHECK(p->magic == WB_PARENT_MAGIC && p->resolver.asking > 0);
    wb_free(inquiry);
    p->resolver.asking--;
    wb_seen_mark(&p->resolver.asked, asked_id(id), false);
    /* The crawl is ending, and may have lost its dispenser. */
    if (p->failed.code < 0)
        return;
    WB_CHECK(p->dispenser);
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

/* Rows without an address, as the dispenser gave them. */
struct inquiry_batch {
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
    struct inquiry_batch *batch = context;
    char *url;

    WB_CHECK(batch->count < AT_ONCE);
    if (wb_seen_marked(&batch->parent->resolver.asked, asked_id(row->id)))
        return 0;
    url = wb_alloc_zero(1, row->scheme.len + row->name.len + 5);
    if (!url)
        return WB_E_NOMEM;
    memcpy(url, row->scheme.ptr, row->scheme.len);
    memcpy(url + row->scheme.len, "://", 3);
    memcpy(url + row->scheme.len + 3, row->name.ptr, row->name.len);
    batch->rows[batch->count].id = row->id;
    /* If the site has an address, its attempts count failures of another kind. */
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
        err = wb_seen_add(&p->resolver.asked, p->plan.options->dir, asked_id(id));
    if (err >= 0) {
        struct wb_slice host;
        uint16_t port;
        wb_site_endpoint(&url, &host, &port);
        wb_seen_mark(&p->resolver.asked, asked_id(id), true);
        *inquiry = (struct inquiry){p, id, attempts, visited};
        p->resolver.asking++;
        err = wb_dns_resolve(p->resolver.dns, host, port, answered, inquiry);
        if (err < 0)
            p->resolver.asking--;
    }
    if (err < 0)
        wb_free(inquiry);
    wb_url_release(&url);
    return err == WB_E_PROTO ? refuse(p, id, WB_CRAWL_DNS, "its name is invalid") : err;
}

int wb_resolve_ahead(struct wb_parent *parent)
{
    WB_CHECK(parent->magic == WB_PARENT_MAGIC && !parent->stopping);
    struct wb_resolver *resolver = &parent->resolver;
    struct inquiry_batch *batch;
    int64_t now = wb_clock_now_ms();
    int err = 0;

    if (resolver->asking >= AT_ONCE / 2 || (now - resolver->looked_ms < LOOK_MS && !resolver->more))
        return 0;
    resolver->looked_ms = now;
    batch = wb_alloc_zero(1, sizeof *batch);
    if (!batch)
        return WB_E_NOMEM;
    batch->parent = parent;
    err = wb_dispenser_unresolved(parent->dispenser, parent->plan.run, now, AT_ONCE, take_row, batch);
    resolver->more = batch->count > 0;
    for (unsigned i = 0; i < batch->count; i++) {
        if (err == 0)
            err = ask(parent, batch->rows[i].id, batch->rows[i].attempts, batch->rows[i].visited, batch->rows[i].url);
        wb_free(batch->rows[i].url);
    }
    wb_free(batch);
    return err;
}
