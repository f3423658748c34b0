/*
 * crawllogs.c - which logs of the journal unfinished visits still need.
 *
 * A visit that goes on is made from its own chain, back to its begin, and from the chain of the visit before (its rules and
 * pages). What is finished needs nothing, since webdb has it, unless its run is under way: a link may open it again. Nor do visits that a list
 * left undone once there is a newer list: nobody goes on with them. Logs that are being written are not this file's concern: whoever
 * removes logs leaves them alone, and a crawler tells the dispenser where its sites' records are before it has written more than two.
 */
#include "base/error.h"
#include "base/mem.h"
#include "dispenser/dispenser.h"
#include "crawl/crawlsite.h"
#include "crawl/recover.h"
#include "store/store.h"

#include <stdlib.h>

struct needs {
    struct wb_dispenser *dispenser;
    struct wb_journal_reader *reader;
    const char *home;
    struct wb_buf logs;  /* uint32_t, sorted, each once */
    int64_t list;        /* the newest run of a list; 0: none is unfinished */
    int64_t run;         /* whether this run is under way was asked last: */
    bool run_open;
};

static const uint32_t *log_numbers(const struct needs *n, size_t *count_out)
{
    *count_out = n->logs.len / sizeof(uint32_t);
    return (const uint32_t *)(const void *)n->logs.ptr;
}

static int need_log(struct needs *n, uint32_t log)
{
    size_t count, low = 0, high;
    const uint32_t *numbers = log_numbers(n, &count);

    for (high = count; low < high;) {
        size_t middle = (low + high) / 2;
        if (numbers[middle] < log)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < count && numbers[low] == log)
        return 0;
    int err = wb_buf_append(&n->logs, &log, sizeof log);
    if (err < 0)
        return err;
    char *at = n->logs.ptr + low * sizeof log;
    memmove(at + sizeof log, at, (count - low) * sizeof log);
    memcpy(at, &log, sizeof log);
    return 0;
}

/* The logs of one visit; *prev_out: the last record of the visit before. A chain that is gone or damaged needs nothing: it cannot be gone on with. */
static int need_visit(struct needs *n, struct wb_edit_place last, struct wb_edit_place *prev_out, uint32_t *visit_out)
{
    struct wb_edit_place *places = NULL;
    struct wb_edit edit;
    uint32_t log = 0;
    size_t count = 0;

    *prev_out = WB_EDIT_NOWHERE;
    *visit_out = 0;
    int err = last.log ? wb_journal_reader_chain(n->reader, last, false, &places, &count) : 0;
    if (err == 0 && count) {
        err = wb_journal_reader_get(n->reader, places[0], &edit);
        if (err == 0 && edit.kind == WB_EDIT_VISIT) {
            *prev_out = edit.prev;
            *visit_out = edit.count;
        }
    }
    for (size_t i = 0; err == 0 && i < count; i++)
        if (places[i].log != log) {
            log = places[i].log;
            err = need_log(n, log);
        }
    wb_free(places);
    return err == WB_E_NOTFOUND || err == WB_E_CORRUPT ? 0 : err;
}

static int is_under_way(struct needs *n, int64_t run, bool *open_out)
{
    struct wb_dispenser_stat stat;
    int err = 0;

    if (run != n->run) {
        err = wb_dispenser_stat(n->dispenser, run, &stat);
        n->run = run;
        n->run_open = err == 0 && stat.unresolved + stat.ready + stat.claimed > 0;
    }
    *open_out = n->run_open;
    return err;
}

static int need_site(void *context, const struct wb_site_row *row)
{
    struct needs *n = context;
    struct wb_edit_place before;
    uint32_t visit, older;
    bool goes_on = true;
    int err = 0;

    if (!row->trail.log || !wb_slice_equal(row->home, wb_slice_str(n->home)) || row->run == 0)
        return 0;
    enum wb_site_state state = row->state == WB_SITE_CLAIMED ? row->before : row->state;
    if (state == WB_SITE_ALIAS || state == WB_SITE_REFUSED || (row->listed && row->run < n->list && row->state != WB_SITE_CLAIMED))
        return 0;
    if (state == WB_SITE_DONE)
        err = is_under_way(n, row->run, &goes_on);
    if (err < 0 || !goes_on)
        return err;
    err = need_visit(n, wb_site_trail_to_place(row->trail), &before, &visit);
    /* A list that has superseded this visit reads nothing before it. */
    if (err == 0 && row->listed <= visit)
        err = need_visit(n, before, &before, &older);
    return err;
}

int wb_crawl_logs(const char *dir, const char *dispenser, struct wb_journal_needs *needs_out)
{
    struct needs n = {.logs = WB_BUF_INIT};
    char home[WB_STORE_ID_HEX + 1];

    *needs_out = WB_JOURNAL_NEEDS_INIT;
    int err = wb_store_id(dir, home);
    n.home = home;
    if (err == 0)
        err = wb_dispenser_open(dir, dispenser, &n.dispenser);
    /* Of crawlers that died the dispenser does not know where their last records are. */
    if (err == 0)
        err = wb_crawl_recover(dir, home, n.dispenser, true);
    if (err == 0)
        err = wb_journal_reader_open(dir, &n.reader);
    if (err == 0)
        err = wb_dispenser_newest_list(n.dispenser, &n.list);
    if (err == 0)
        err = wb_dispenser_each(n.dispenser, 0, need_site, &n);
    wb_journal_reader_close(n.reader);
    wb_dispenser_close(n.dispenser);
    if (err < 0)
        wb_buf_release(&n.logs);
    needs_out->logs = (uint32_t *)(void *)n.logs.ptr;
    needs_out->count = n.logs.len / sizeof(uint32_t);
    return err;
}
