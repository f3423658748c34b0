/*
 * dispenser_report.c - records what resolvers and crawlers report about a site.
 *
 * A report may come late: the lease may have expired and the site be somebody else's, or it may be finished. Such a
 * report must not undo what others did meanwhile. Nothing here calls users back.
 */
#include "dispenser/dispenser_rows.h"
#include "base/error.h"

/* Reads a row that must exist. Returns 0, or WB_E_NOTFOUND with a message. */
static int need_row(struct wb_dispenser *d, int64_t id, struct wb_dispenser_row *row_out)
{
    int err = wb_dispenser_row_by_id(d, id, row_out);

    if (err == 0)
        return wb_fail(WB_E_NOTFOUND, "the dispenser has no site with the id %lld", (long long)id);
    return err < 0 ? err : 0;
}

/* Nobody holds the site, and it is not over. */
static bool is_free(enum wb_site_state state)
{
    return state == WB_SITE_UNRESOLVED || state == WB_SITE_READY || state == WB_SITE_WAITING;
}

/* ---- addresses ---------------------------------------------------------------------------------------- */

struct resolution {
    int64_t id, expires_ms;
    struct wb_slice address, refused;
};

static int note_resolution(struct wb_dispenser *d, void *context)
{
    const struct resolution *r = context;
    struct wb_dispenser_row was = WB_DISPENSER_ROW_INIT, now;
    char reason[WB_DISPENSER_REASON_MAX];
    int err = need_row(d, r->id, &was);

    if (err < 0)
        goto done;
    now = was;
    if (r->refused.len && is_free(was.row.state)) {
        now.row.state = WB_SITE_REFUSED;
        now.row.reason = wb_dispenser_reason(r->refused, reason);
    } else if (was.row.state == WB_SITE_UNRESOLVED) {
        now.row.state = WB_SITE_READY;
    }
    /* The failures to resolve it no longer count. */
    if (r->address.len && was.row.address.len == 0 && is_free(was.row.state)) {
        now.row.attempts = 0;
        now.row.reason = WB_SLICE_EMPTY;
    }
    if (r->address.len) {
        now.row.address = r->address;
        now.row.address_expires_ms = r->expires_ms;
    }
    err = wb_dispenser_row_save(d, &was, &now);
done:
    wb_dispenser_row_release(&was);
    return err;
}

int wb_dispenser_resolved(struct wb_dispenser *d, int64_t id, struct wb_slice address, int64_t expires_ms,
                          struct wb_slice refused)
{
    struct resolution r = {.id = id, .expires_ms = expires_ms, .address = address, .refused = refused};

    if (refused.len == 0 && (address.len == 0 || address.ptr[0] == ' '))
        return wb_fail(WB_E_INVALID, "a site that was resolved needs an address, or a reason why it is refused");
    int err = wb_dispenser_check_text("address", address);
    return err < 0 ? err : wb_dispenser_transact(d, true, note_resolution, &r);
}

struct resolve_failure {
    int64_t id, next_ms;
    int attempts;
    struct wb_slice reason;
};

static int note_failure(struct wb_dispenser *d, void *context)
{
    const struct resolve_failure *f = context;
    struct wb_dispenser_row was = WB_DISPENSER_ROW_INIT, now;
    char reason[WB_DISPENSER_REASON_MAX];
    int err = need_row(d, f->id, &was);

    if (err < 0 || !is_free(was.row.state))
        goto done;
    now = was;
    /* The parent process resolves names again when their addresses expire. */
    now.row.address_expires_ms = f->next_ms;
    if (was.row.address.len == 0) {
        now.row.state = WB_SITE_WAITING;
        now.row.next_ms = f->next_ms;
        now.row.attempts = f->attempts;
        now.row.reason = wb_dispenser_reason(f->reason, reason);
    }
    err = wb_dispenser_row_save(d, &was, &now);
done:
    wb_dispenser_row_release(&was);
    return err;
}

int wb_dispenser_unresolvable(struct wb_dispenser *d, int64_t id, int64_t next_ms, int attempts, struct wb_slice reason)
{
    struct resolve_failure f = {id, next_ms, attempts, reason};

    return wb_dispenser_transact(d, true, note_failure, &f);
}

/* Sites whose wait for another try ends at now_ms. */
struct resolve_retry {
    const int64_t *ids;
    size_t count;
    int64_t now_ms;
};

static int end_failures(struct wb_dispenser *d, void *context)
{
    const struct resolve_retry *n = context;
    int err = 0;

    for (size_t i = 0; i < n->count && err >= 0; i++) {
        struct wb_dispenser_row was = WB_DISPENSER_ROW_INIT, now;
        err = wb_dispenser_row_by_id(d, n->ids[i], &was);
        now = was;
        if (err > 0 && was.row.state == WB_SITE_WAITING && was.row.address.len == 0) {
            now.row.next_ms = now.row.address_expires_ms = n->now_ms;
            now.row.attempts = 0;
            err = wb_dispenser_row_save(d, &was, &now);
        }
        wb_dispenser_row_release(&was);
    }
    return err < 0 ? err : 0;
}

int wb_dispenser_resolve_again(struct wb_dispenser *d, const int64_t *ids, size_t count, int64_t now_ms)
{
    int err = 0;

    for (size_t at = 0; at < count && err == 0; at += WB_DISPENSER_SLICE) {
        struct resolve_retry n = {ids + at, count - at < WB_DISPENSER_SLICE ? count - at : WB_DISPENSER_SLICE, now_ms};
        err = wb_dispenser_transact(d, true, end_failures, &n);
    }
    return err;
}

/* ---- waiting and resuming ---------------------------------------------------------------------------------------- */

struct aside {
    int64_t id, until_ms;
    struct wb_slice reason;
};

static int put_aside(struct wb_dispenser *d, void *context)
{
    const struct aside *a = context;
    struct wb_dispenser_row was = WB_DISPENSER_ROW_INIT, now;
    char reason[WB_DISPENSER_REASON_MAX];
    int err = need_row(d, a->id, &was);

    now = was;
    if (err == 0 && is_free(was.row.state)) {
        now.row.state = WB_SITE_WAITING;
        now.row.next_ms = a->until_ms;
        now.row.reason = wb_dispenser_reason(a->reason, reason);
        err = wb_dispenser_row_save(d, &was, &now);
    }
    wb_dispenser_row_release(&was);
    return err;
}

static int resume_visit(struct wb_dispenser *d, void *context)
{
    const int64_t *id = context;
    struct wb_dispenser_row was = WB_DISPENSER_ROW_INIT, now;
    int err = wb_dispenser_row_by_id(d, *id, &was);

    now = was;
    if (err > 0 && was.row.state == WB_SITE_DONE) {
        now.row.state = was.row.address.len ? WB_SITE_READY : WB_SITE_UNRESOLVED;
        err = wb_dispenser_row_save(d, &was, &now);
    }
    wb_dispenser_row_release(&was);
    return err < 0 ? err : 0;
}

int wb_dispenser_resume(struct wb_dispenser *d, int64_t id)
{
    return wb_dispenser_transact(d, true, resume_visit, &id);
}

int wb_dispenser_put_aside(struct wb_dispenser *d, int64_t id, int64_t until_ms, struct wb_slice reason)
{
    struct aside a = {id, until_ms, reason};

    return wb_dispenser_transact(d, true, put_aside, &a);
}

/* Ends waits, some at a time. */
struct wait_end {
    struct wb_slice reason;
    int64_t now_ms;
    size_t count; /* sites in the last part */
};

static int end_some_waits(struct wb_dispenser *d, void *context)
{
    struct wait_end *w = context;
    struct wb_dispenser_row_list list = WB_DISPENSER_ROW_LIST_INIT;
    int err = WB_SQL_RUN(d->sql, S_WAITING, wb_sql_str(w->reason), wb_sql_int(WB_DISPENSER_SLICE));

    err = wb_dispenser_row_list_read(d, S_WAITING, err, &list);
    for (size_t i = 0; i < list.count && err == 0; i++) {
        struct wb_dispenser_row now = list.items[i];
        now.row.state = now.row.address.len ? WB_SITE_READY : WB_SITE_UNRESOLVED;
        now.row.next_ms = w->now_ms;
        now.row.reason = WB_SLICE_EMPTY;
        err = wb_dispenser_row_save(d, &list.items[i], &now);
    }
    w->count = list.count;
    wb_dispenser_row_list_release(&list);
    return err;
}

int wb_dispenser_end_waits(struct wb_dispenser *d, struct wb_slice reason, int64_t now_ms)
{
    struct wait_end w = {.reason = reason, .now_ms = now_ms};
    int err;

    do {
        err = wb_dispenser_transact(d, true, end_some_waits, &w);
    } while (err == 0 && w.count == WB_DISPENSER_SLICE);
    return err;
}

/* ---- reports --------------------------------------------------------------------------------------------- */

struct reporting {
    struct wb_slice owner;
    const struct wb_site_report *reports;
    size_t count;
};

static void take_trail(const struct wb_site_report *report, struct wb_site_row *row)
{
    if (!report->trail.log)
        return;
    row->trail = report->trail;
    row->trail_ms = report->trail_ms;
    if (report->home.len)
        row->home = report->home;
}

/* True if the report names a later record than the row does, in the journal to which the site belongs. */
static bool trail_newer(const struct wb_site_report *report, const struct wb_site_row *row)
{
    const struct wb_site_trail *a = &report->trail, *b = &row->trail;

    if (row->home.len && report->home.len && !wb_slice_equal(row->home, report->home))
        return false;
    if (!a->log || report->trail_ms != row->trail_ms)
        return a->log && report->trail_ms > row->trail_ms;
    return a->log != b->log ? a->log > b->log : a->offset > b->offset;
}

static void apply_report(const struct wb_site_report *report, struct wb_dispenser_row *record)
{
    struct wb_site_row *row = &record->row;

    take_trail(report, row);
    if (report->home.len)
        row->home = report->home;
    if (report->probe.len)
        row->probe = report->probe;
    row->next_ms = report->next_ms;
    row->attempts = report->attempts;
    row->alias_of = report->alias_of;
    row->visit = report->visit;
    if (report->sitemaps_ms)
        row->sitemaps_ms = report->sitemaps_ms;
    row->seeds_taken = report->seeds_taken;
    row->pages = report->pages;
    if (report->state == WB_SITE_CLAIMED)
        return;
    row->state = report->state;
    if (row->state == WB_SITE_DONE && record->seed_last > row->seeds_taken)
        row->state = WB_SITE_READY;
    wb_dispenser_row_end_lease(record);
}

static int note_reports(struct wb_dispenser *d, void *context)
{
    const struct reporting *r = context;
    int err = 0;

    for (size_t i = 0; i < r->count && err == 0; i++) {
        const struct wb_site_report *report = &r->reports[i];
        struct wb_dispenser_row was = WB_DISPENSER_ROW_INIT, now;
        char reason[WB_DISPENSER_REASON_MAX];
        err = wb_dispenser_row_by_id(d, report->id, &was);
        now = was;
        if (err > 0 && was.row.state == WB_SITE_CLAIMED && wb_slice_equal(was.row.owner, r->owner)) {
            apply_report(report, &now);
            now.row.reason = wb_dispenser_reason(report->reason, reason);
            err = wb_dispenser_row_save(d, &was, &now);
            if (err == 0 && now.row.state == WB_SITE_ALIAS)
                err = wb_dispenser_pass_seeds(d, &now);
        } else if (err > 0 && trail_newer(report, &was.row)) {
            take_trail(report, &now.row);
            err = wb_dispenser_row_save(d, &was, &now);
        }
        wb_dispenser_row_release(&was);
        err = err > 0 ? 0 : err;
    }
    return err;
}

static int check_report(const struct wb_site_report *report)
{
    int err;

    if (report->state < WB_SITE_UNRESOLVED || report->state > WB_SITE_REFUSED)
        return wb_fail(WB_E_INVALID, "there is no state %d that a site can be in", (int)report->state);
    err = wb_dispenser_check_text("alias", report->alias_of);
    if (err == 0)
        err = wb_dispenser_check_text("probe", report->probe);
    return err < 0 ? err : wb_dispenser_check_text("home", report->home);
}

int wb_dispenser_report(struct wb_dispenser *d, struct wb_slice owner, const struct wb_site_report *reports,
                        size_t count)
{
    struct reporting r = {.owner = owner, .reports = reports, .count = count};
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++)
        err = check_report(&reports[i]);
    return err < 0 || count == 0 ? err : wb_dispenser_transact(d, true, note_reports, &r);
}
