/*
 * pageview.c - loads what the catalog knows about a page, applies changes to it, and saves it again.
 */
#include "catalog/pageview.h"
#include "base/check.h"

void wb_pageview_release(struct wb_pageview *view)
{
    wb_history_release(&view->history);
    wb_buf_release(&view->bytes);
}

void wb_pageview_clear(struct wb_pageview *view, struct wb_pageid id)
{
    wb_history_clear(&view->history);
    view->id = id;
    view->site = 0;
    view->lifetime = view->lifetime_count = 0;
    view->had_entry = view->had_rows = false;
}

/* ---- loading ------------------------------------------------------------------------------------ */

/* The latest version as an entry describes it. */
static struct wb_history_version version_of(const struct wb_catalog_entry *entry)
{
    WB_CHECK(entry->place.segment > 0);
    WB_CHECK(entry->epoch > 0);
    return (struct wb_history_version){
        .content = entry->content,
        .arrived = entry->epoch,
        .place = entry->place,
        .body_bytes = entry->body_bytes,
        .stored_bytes = entry->stored_bytes,
        .status = entry->status,
    };
}

/* Completes the latest version, about which the history itself says little, from the entry. */
static bool complete_latest(struct wb_pageview *view, const struct wb_catalog_entry *entry)
{
    struct wb_history_version *latest = wb_history_latest(&view->history);

    WB_CHECK(view->had_entry);
    if (!latest || latest->arrived != entry->epoch || wb_history_last_ms(&view->history, latest) != entry->time_ms ||
        view->history.epochs.items[latest->first + latest->count - 1] != entry->seen_epoch)
        return false;
    size_t first = latest->first, count = latest->count;
    *latest = version_of(entry);
    latest->first = first;
    latest->count = count;
    WB_CHECK(latest->ceased == 0);
    return true;
}

static int load_rows(struct wb_catalog_txn *txn, const struct wb_catalog_entry *entry, struct wb_pageview *view)
{
    uint64_t site;
    int err = wb_catalog_history_get(txn, view->id, &view->bytes);

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(view->history.versions.count == 0);
    WB_CHECK(!view->had_entry || entry->history);
    if (err == WB_E_NOTFOUND && !view->had_entry)
        return 0;
    if (err == 0)
        err = wb_history_decode(wb_buf_slice(&view->bytes), &view->history, &site);
    if (err < 0 && err != WB_E_NOTFOUND && err != WB_E_CORRUPT)
        return err;
    if (err < 0 ||
        (view->had_entry ? !complete_latest(view, entry) || site != entry->site
                         : wb_history_latest(&view->history) != NULL))
        return wb_catalog_corrupt(txn->catalog, WB_CATALOG_HISTORY, "a page whose history contradicts its entry");
    view->had_rows = true;
    view->site = site;
    return 0;
}

/* entry: NULL if the page has none. */
static int load(struct wb_catalog_txn *txn, bool any_gone, const struct wb_catalog_entry *entry,
                struct wb_pageview *view)
{
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    view->had_entry = entry != NULL;
    if (!entry)
        return any_gone ? load_rows(txn, NULL, view) : 0;
    view->site = entry->site;
    view->lifetime = entry->lifetime;
    view->lifetime_count = entry->lifetime_count;
    if (entry->history)
        return load_rows(txn, entry, view);
    struct wb_history_version latest = version_of(entry);
    int err = wb_history_push(&view->history, &latest, entry->time_ms, entry->seen_epoch);
    view->history.floor_ms = entry->floor_ms;
    return err;
}

int wb_pageview_load_known(struct wb_catalog_txn *txn, bool any_gone, struct wb_pageid id,
                           const struct wb_catalog_entry *entry, struct wb_pageview *view_out)
{
    wb_pageview_clear(view_out, id);
    int err = load(txn, any_gone, entry, view_out);

    /* Numbers that are valid in a row, but that nobody has given: some mean something else in a view, or the end. */
    for (size_t i = 0; i < view_out->history.versions.count && err == 0; i++) {
        const struct wb_history_version *version = &view_out->history.versions.items[i];
        if (version->place.segment == WB_PAGEVIEW_PENDING_SEGMENT || version->arrived == UINT64_MAX ||
            version->ceased == UINT64_MAX)
            err = wb_catalog_corrupt(txn->catalog, WB_CATALOG_PAGES, "a segment or an epoch that was never given");
    }
    return err;
}

int wb_pageview_load(struct wb_catalog_txn *txn, bool any_gone, struct wb_pageid id, struct wb_pageview *view_out)
{
    struct wb_catalog_entry entry;
    int err = wb_catalog_entry_get(txn, id, &entry);

    if (err < 0 && err != WB_E_NOTFOUND) {
        wb_pageview_clear(view_out, id);
        return err;
    }
    return wb_pageview_load_known(txn, any_gone, id, err == 0 ? &entry : NULL, view_out);
}

/* A walk over pages with their past. */
struct pageview_walk {
    struct wb_catalog_txn *txn;
    struct wb_pageid last;
    bool gone; /* only pages without an entry */
    bool done; /* behind the last page */
    struct wb_pageview view;
    int (*each)(void *context, struct wb_pageview *view);
    void *context;
};

static bool is_behind(struct pageview_walk *walk, struct wb_pageid id)
{
    walk->done = wb_pageid_compare(id, walk->last) > 0;
    return walk->done;
}

static int pass_page(struct pageview_walk *walk, int err)
{
    if (err < 0 || (walk->gone && walk->view.had_entry) || walk->view.history.versions.count == 0)
        return err;
    return walk->each(walk->context, &walk->view);
}

static int pass_entry(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    struct pageview_walk *walk = context;

    return is_behind(walk, id) ? 1
                               : pass_page(walk, wb_pageview_load_known(walk->txn, true, id, entry, &walk->view));
}

static int pass_history(void *context, struct wb_pageid id, struct wb_slice bytes)
{
    struct pageview_walk *walk = context;

    (void)bytes;
    return is_behind(walk, id) ? 1 : pass_page(walk, wb_pageview_load(walk->txn, true, id, &walk->view));
}

int wb_pageview_each(struct wb_catalog_txn *txn, struct wb_pageid first, struct wb_pageid last,
                     int (*each)(void *context, struct wb_pageview *view), void *context)
{
    struct pageview_walk walk = {.txn = txn, .last = last, .each = each, .context = context};
    int got = wb_catalog_entry_each_from(txn, first, pass_entry, &walk);

    if (got == 0 || walk.done) {
        walk.gone = true;
        walk.done = false;
        got = wb_catalog_history_each(txn, first, pass_history, &walk);
    }
    wb_pageview_release(&walk.view);
    return walk.done ? 0 : got;
}

bool wb_pageview_has(const struct wb_pageview *view, const struct wb_catalog_place *place)
{
    for (size_t i = 0; i < view->history.versions.count; i++)
        if (wb_catalog_place_equal(&view->history.versions.items[i].place, place))
            return true;
    return false;
}

int wb_pageview_ask(struct wb_pageview_judge *judge, struct wb_pageid id, const struct wb_catalog_entry *entry,
                    const struct wb_catalog_place *place, bool *live_out, bool *latest_out)
{
    bool past = entry ? entry->history : judge->any_gone;

    *live_out = *latest_out = entry && wb_catalog_place_equal(&entry->place, place);
    if (*live_out || !past)
        return 0;
    if (!judge->viewed || !wb_pageid_equal(judge->view.id, id)) {
        int err = wb_pageview_load_known(judge->txn, judge->any_gone, id, entry, &judge->view);
        judge->viewed = err == 0;
        if (err < 0)
            return err;
    }
    *live_out = wb_pageview_has(&judge->view, place);
    return 0;
}

/* ---- changes ------------------------------------------------------------------------------------- */

/* Adds a capture, or that of a touch. */
static int add_capture(struct wb_pageview *view, const struct wb_pageview_change *change,
                       const struct wb_moment *moment, enum wb_store_outcome *outcome_out)
{
    struct wb_history *history = &view->history;
    struct wb_history_version *latest = wb_history_latest(history), *known = NULL;
    struct wb_history_version bytes = {0};

    WB_CHECK(change->kind <= WB_PAGEVIEW_TOUCH);
    WB_CHECK(change->kind == WB_PAGEVIEW_TOUCH || change->content != 0);
    if (change->kind == WB_PAGEVIEW_TOUCH && change->content == 0)
        known = latest;
    else
        known = wb_history_find(history, change->content);
    /* Readers may forget what they have; a page that is put has its own bytes. */
    bool theirs =
        known && known->place.segment == WB_CATALOG_BASE_SEGMENT && change->has_bytes && change->place.segment;
    if (known && !theirs)
        bytes = *known;
    else if (change->has_bytes)
        bytes = (struct wb_history_version){
            .content = change->content,
            .place = change->place,
            .body_bytes = change->body_bytes,
            .stored_bytes = change->stored_bytes,
            .status = change->status,
        };
    struct wb_history_capture capture = {
        .time_ms = change->time_ms,
        .content = change->content,
        .replaces = change->replaces,
        .epoch = moment->epoch,
        .rule = &moment->rule,
        .bytes = &bytes,
    };
    int err = wb_history_add(history, &capture, outcome_out);
    if (err < 0)
        return err;
    latest = wb_history_latest(history);
    bool newest =
        latest && wb_history_last_ms(history, latest) == change->time_ms && *outcome_out <= WB_STORE_PUT_CAPTURE;
    if (newest && change->has_lifetime) {
        view->lifetime = change->lifetime;
        view->lifetime_count = change->lifetime_count;
    } else if (newest) {
        view->lifetime_count = view->lifetime;
    }
    return 0;
}

/* Renews the lifetime of the latest version, and adds a capture of it. */
static int touch(struct wb_pageview *view, const struct wb_pageview_change *change, const struct wb_moment *moment,
                 enum wb_store_outcome *outcome_out)
{
    if (change->content)
        return add_capture(view, change, moment, outcome_out);
    if (!wb_history_latest(&view->history))
        return 0;
    bool renewed = view->lifetime_count != view->lifetime;
    int err = add_capture(view, change, moment, outcome_out);
    view->lifetime_count = view->lifetime;
    if (err == 0 && renewed && *outcome_out > WB_STORE_PUT_PAST)
        *outcome_out = WB_STORE_PUT_CAPTURE;
    return err;
}

int wb_pageview_apply(struct wb_pageview *view, const struct wb_pageview_change *change, const struct wb_moment *moment,
                      enum wb_store_outcome *outcome_out)
{
    WB_CHECK(moment->epoch > 0);
    *outcome_out = WB_STORE_PUT_KNOWN;
    switch (change->kind) {
    case WB_PAGEVIEW_TOUCH:
        return touch(view, change, moment, outcome_out);
    case WB_PAGEVIEW_CAPTURE:
        return add_capture(view, change, moment, outcome_out);
    case WB_PAGEVIEW_REMOVE:
        if (!wb_history_latest(&view->history))
            return 0;
        wb_history_end(&view->history, change->time_ms, moment->epoch);
        wb_history_trim(&view->history, &moment->rule);
        break;
    case WB_PAGEVIEW_REMOVE_EVERYWHERE:
        if (view->history.versions.count == 0)
            return 0;
        wb_history_clear(&view->history);
        break;
    }
    view->lifetime = view->lifetime_count = 0;
    *outcome_out = WB_STORE_PUT_NEW;
    return 0;
}

/* ---- saving ------------------------------------------------------------------------------------------ */

void wb_pageview_entry(struct wb_pageview *view, struct wb_catalog_entry *entry_out)
{
    const struct wb_history_version *latest = wb_history_latest(&view->history);

    WB_CHECK(latest != NULL);
    WB_CHECK(latest->place.segment > 0);
    WB_CHECK(latest->body_bytes <= UINT32_MAX);
    WB_CHECK(latest->arrived > 0);
    *entry_out = (struct wb_catalog_entry){
        .place = latest->place,
        .time_ms = wb_history_last_ms(&view->history, latest),
        .body_bytes = (uint32_t)latest->body_bytes,
        .stored_bytes = latest->stored_bytes,
        .epoch = latest->arrived,
        .seen_epoch = view->history.epochs.items[latest->first + latest->count - 1],
        .content = latest->content,
        .history = wb_pageview_needs_rows(view),
        .floor_ms = view->history.floor_ms,
        .status = latest->status,
        .lifetime = view->lifetime,
        .lifetime_count = view->lifetime_count,
        .site = view->site,
    };
}

bool wb_pageview_needs_rows(struct wb_pageview *view)
{
    size_t captures = view->history.times.count;

    WB_CHECK(view->history.versions.count <= captures);
    return captures > 1 || (captures == 1 && !wb_history_latest(&view->history)) || view->history.forgotten.count > 0;
}

int wb_pageview_save(struct wb_catalog_txn *txn, struct wb_pageview *view)
{
    struct wb_catalog_entry entry;
    int err = 0;

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    if (wb_history_latest(&view->history)) {
        wb_pageview_entry(view, &entry);
        WB_CHECK(entry.place.segment != WB_PAGEVIEW_PENDING_SEGMENT);
        err = wb_catalog_entry_put(txn, view->id, &entry);
    } else if (view->had_entry) {
        err = wb_catalog_entry_delete(txn, view->id);
    }
    if (err < 0)
        return err;
    if (!wb_pageview_needs_rows(view))
        return view->had_rows ? wb_catalog_history_delete(txn, view->id) : 0;
    err = wb_history_encode(&view->history, view->site, &view->bytes);
    return err < 0 ? err : wb_catalog_history_put(txn, view->id, wb_buf_slice(&view->bytes));
}
