/*
 * arrivals.c - pages that came are held for a moment, to be digested together.
 *
 * MD5 goes on with a word only when it is done with the last one: eight pages at once take about as long as one (src/page/md5.c).
 * So where a site has no interval, and something else to ask for, its answers wait until there are several. None waits for longer
 * than a few milliseconds, nor past anything that depends on it: the end of the site's queue or budget, another kind of answer of
 * the site, a commit. A page that is held is not in the spool: kill -9 makes us ask for it again, as for a request under way.
 */
#include "crawl/worker.h"
#include "base/check.h"

#include <event2/event.h>

enum {
    HOLD_MS = 3,
    HELD_BYTES_MAX = 256 << 10, /* of one page: a larger one would keep one lane busy, and the others idle */
};

bool wb_arrival_hold(struct wb_errand *errand, struct wb_fetch_result *result)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;

    if (errand->item.kind != WB_ITEM_PAGE || result->error || result->status / 100 != 2 || result->body.len > HELD_BYTES_MAX)
        return false;
    /* With an interval there is time; and what the root decides is waited for. */
    if (site->page_delay_ms > 0 || site->probing || site->root_waited)
        return false;
    wb_buf_clear(&errand->head);
    if (wb_buf_append_slice(&errand->head, result->head) < 0)
        return false;
    WB_CHECK(w->arrival_count < WB_ARRIVALS_MAX && !w->taking);
    struct wb_arrival *arrival = &w->arrivals[w->arrival_count++];
    *arrival = (struct wb_arrival){.errand = errand, .result = *result};
    arrival->result.head = wb_buf_slice(&errand->head);
    arrival->result.message = "";
    result->body = WB_BUF_INIT; /* moved */
    site->held++;
    struct timeval in = {0, HOLD_MS * 1000};
    if (!evtimer_pending(w->arrivals_due, NULL))
        event_add(w->arrivals_due, &in);
    return true;
}

/* The longest first, so that the lanes end together. */
static void digest(struct wb_arrival *arrivals, unsigned count)
{
    struct wb_page pages[WB_ARRIVALS_MAX], *which[WB_ARRIVALS_MAX] = {NULL};

    for (unsigned i = 0, at; i < count; i++) {
        pages[i] = (struct wb_page){.body = wb_buf_slice(&arrivals[i].result.body)};
        for (at = i; at > 0 && which[at - 1]->body.len < pages[i].body.len; at--)
            which[at] = which[at - 1];
        which[at] = &pages[i];
    }
    wb_page_digest_many(which, count);
    for (unsigned i = 0; i < count; i++) {
        struct wb_errand *errand = arrivals[i].errand;
        memcpy(errand->body_md5, pages[i].md5, sizeof errand->body_md5);
        memcpy(errand->body_sha1, pages[i].sha1, sizeof errand->body_sha1);
        errand->digested = true;
    }
}

void wb_arrivals_take(struct wb_worker *w)
{
    if (!w->arrival_count || w->taking)
        return;
    w->taking = true;
    digest(w->arrivals, w->arrival_count);
    for (unsigned i = 0; i < w->arrival_count; i++) {
        struct wb_arrival *arrival = &w->arrivals[i];
        WB_CHECK(arrival->errand->site->held > 0);
        arrival->errand->site->held--;
        if (w->failed.code == 0) {
            wb_tally_doing(w->mine, WB_STAGE_READING, wb_tally_subject(wb_buf_slice(&arrival->errand->url)));
            wb_page_done(arrival->errand, &arrival->result);
        }
        /* After a failure it stays, for the parent to see. */
        if (w->failed.code == 0)
            wb_tally_doing(w->mine, WB_STAGE_NONE, 0);
        wb_buf_release(&arrival->result.body);
        wb_errand_free(arrival->errand);
    }
    w->arrival_count = 0;
    w->taking = false;
}

void wb_arrivals_drop(struct wb_worker *w)
{
    for (unsigned i = 0; i < w->arrival_count; i++) {
        w->arrivals[i].errand->site->held--;
        wb_buf_release(&w->arrivals[i].result.body);
        wb_errand_free(w->arrivals[i].errand);
    }
    w->arrival_count = 0;
}
