/*
 * transfer_pages.c - brings what waits to the read nodes, in bounded commits.
 *
 * The catalog of the update nodes says what each page will be. So its bytes are copied first, and then the commit puts
 * the page in the place of the one that readers have: versions get the places of their copies, and what was to come
 * arrives in the epoch of the commit. It does not matter if that was done before: what readers have already stays as it
 * is, in the epochs that it has.
 */
#include "base/check.h"
#include "base/mem.h"
#include "move/transfer.h"
#include "os/clock.h"
#include "pagefile/pagefile.h"
#include "store/inside.h"

enum { COMMIT_PAGES = WB_TRANSFER_COMMIT_PAGES, COMMIT_BYTES = 256 << 20, PROGRESS_PAGES = 64 };

/* ---- what a page becomes ----------------------------------------------------------------------------------- */

/* The version with this content and its bytes, however it is seen; or NULL. */
static const struct wb_history_version *find_bytes(const struct wb_history *history, uint64_t content)
{
    for (size_t i = history->versions.count; i > 0; i--)
        if (history->versions.items[i - 1].content == content && history->versions.items[i - 1].place.segment)
            return &history->versions.items[i - 1];
    return NULL;
}

/* The copy that was made of a content, or NULL. */
static const struct wb_op *find_copy(const struct wb_op *ops, const uint32_t *order, size_t count, uint64_t content)
{
    for (size_t i = 0; i < count; i++)
        if (ops[order[i]].kind == WB_OP_COPY && ops[order[i]].content == content)
            return &ops[order[i]];
    return NULL;
}

/* Gives the versions the places that their bytes have on the read nodes. Those without any go. */
static void place_versions(struct wb_history *history, const struct wb_history *readers, const struct wb_op *ops,
                           const uint32_t *order, size_t count)
{
    for (size_t i = history->versions.count; i > 0; i--) {
        struct wb_history_version *version = &history->versions.items[i - 1];
        const struct wb_history_version *there = find_bytes(readers, version->content);
        const struct wb_op *copy = there ? NULL : find_copy(ops, order, count, version->content);
        if (there) {
            version->place = there->place;
            version->stored_bytes = there->stored_bytes;
        } else if (copy) {
            version->place = copy->entry.place;
            version->stored_bytes = copy->entry.stored_bytes;
        } else if (version->ceased == 0) {
            wb_history_drop(history, i - 1);
        } else {
            version->place = (struct wb_catalog_place){0}; /* saving the page removes it */
        }
    }
}

/* The same version, as readers have it; or NULL. */
static const struct wb_history_version *
find_same(const struct wb_history *history, const struct wb_history_version *version, const struct wb_history *readers)
{
    for (size_t i = readers->ghosts; i < readers->versions.count; i++) {
        const struct wb_history_version *there = &readers->versions.items[i];
        if (there->content == version->content && there->count == version->count &&
            memcmp(readers->times.items + there->first, history->times.items + version->first,
                   version->count * sizeof *history->times.items) == 0)
            return there;
    }
    return NULL;
}

void wb_transfer_arrive(struct wb_history *history, const struct wb_history *readers, uint64_t epoch)
{
    for (size_t i = 0; i < history->versions.count; i++) {
        struct wb_history_version *version = &history->versions.items[i];
        const struct wb_history_version *there =
            version->arrived == WB_HISTORY_COMING && !version->ghost ? find_same(history, version, readers) : NULL;
        if (there) {
            version->arrived = there->arrived;
            memcpy(history->epochs.items + version->first, readers->epochs.items + there->first,
                   version->count * sizeof *history->epochs.items);
        }
        if (there && there->ceased && version->ceased == WB_HISTORY_COMING)
            version->ceased = there->ceased;
        if (version->arrived == WB_HISTORY_COMING)
            version->arrived = epoch;
        if (version->ceased == WB_HISTORY_COMING)
            version->ceased = epoch;
    }
    for (size_t i = 0; i < history->epochs.count; i++)
        if (history->epochs.items[i] == WB_HISTORY_COMING)
            history->epochs.items[i] = epoch;
}

/* Whether the record of the latest version says about its time and lifetime what the catalog says. */
static bool is_as_stored(struct wb_pageview *view, const struct wb_op *ops, const uint32_t *order, size_t count)
{
    const struct wb_history_version *latest = wb_history_latest(&view->history);
    const struct wb_op *copy = latest ? find_copy(ops, order, count, latest->content) : NULL;

    return copy && wb_catalog_place_equal(&copy->entry.place, &latest->place) && !copy->differs &&
           wb_history_last_ms(&view->history, latest) == copy->time_ms && view->lifetime == copy->entry.lifetime &&
           view->lifetime_count == copy->entry.lifetime;
}

static uint64_t latest_content(struct wb_history *history)
{
    const struct wb_history_version *latest = wb_history_latest(history);

    return latest ? latest->content : 0;
}

/* Puts the page of t->view in the place of the one in edit->view, which readers have. */
static int replace_page(struct wb_transfer *t, struct wb_transfer_page *page, struct wb_repo_edit *edit,
                        const uint32_t *order, size_t count)
{
    struct wb_repo_writer *writer = t->to->writer;
    struct wb_history readers = edit->view.history, *history = &t->view.history;
    uint64_t before = latest_content(&readers);
    bool latest = wb_history_latest(history) != NULL;

    WB_CHECK(wb_pageid_equal(t->view.id, edit->view.id));
    place_versions(history, &readers, writer->ops.items, order, count);
    if (latest && !wb_history_latest(history)) { /* its bytes are not there: the page stays as it is */
        page->brought = page->partly = false;
        return wb_repo_edit_save(edit, false, false, NULL);
    }
    wb_transfer_arrive(history, &readers, edit->moment.epoch);
    edit->view.history = *history;
    t->view.history = readers;
    edit->view.site = t->view.site;
    edit->view.lifetime = wb_history_latest(&edit->view.history) ? t->view.lifetime : 0;
    edit->view.lifetime_count = wb_history_latest(&edit->view.history) ? t->view.lifetime_count : 0;
    uint64_t after = latest_content(&edit->view.history);
    edit->changed = true;
    t->uncommitted.added += before == 0 && after != 0;
    t->uncommitted.replaced += before != 0 && after != 0 && before != after;
    bool touched = !is_as_stored(&edit->view, writer->ops.items, order, count);
    return wb_repo_edit_save(edit, touched, false, &writer->sites.items[writer->ops.items[*order].site].delta);
}

/* Loads what waits of a page into t->view. */
static int load_waiting(struct wb_transfer *t, const struct wb_transfer_page *page)
{
    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    return wb_pageview_load_known(&t->waiting, true, page->id, page->entry.place.segment ? &page->entry : NULL,
                                  &t->view);
}

/* Called by the commit for each page: order[0] to order[count - 1] are its copies, whose places are known now. */
static int adopt(void *context, struct wb_repo_edit *edit, const uint32_t *order, size_t count)
{
    struct wb_transfer *t = context;
    const struct wb_repo_writer *writer = t->to->writer;
    const struct wb_op *op = &writer->ops.items[order[0]];
    const struct wb_repo_site *site = &writer->sites.items[op->site];
    struct wb_transfer_page *page = wb_transfer_find(t, op->id);
    bool barred = false, unchanged = false;
    int err = 0;

    WB_CHECK(page != NULL);
    if (t->attempt != writer->attempt) { /* what was done in vain does not count */
        t->uncommitted = (struct wb_move_transfer_counts){0};
        (void)wb_transfer_empty_end(t, WB_E_IO);
        err = wb_transfer_empty_begin(t);
    }
    t->attempt = writer->attempt;
    if (err == 0 && edit->summary.bars)
        err = wb_repo_bar_holds(&edit->txn, op->id, wb_slice(site->name, site->len), &barred);
    if (err == 0)
        err = load_waiting(t, page);
    if (err == 0)
        err = wb_transfer_is_unchanged(t, &unchanged);
    if (err == 0)
        err = wb_repo_edit_load(edit, op->id);
    if (err < 0)
        return err;
    if (!unchanged) /* the next transfer brings what it is now */
        page->brought = page->partly = false;
    if (barred || !unchanged)
        err = wb_repo_edit_save(edit, false, barred, NULL);
    else
        err = replace_page(t, page, edit, order, count);
    return err < 0 ? err : wb_transfer_empty_page(t, page, &edit->view.history);
}

/* ---- commits --------------------------------------------------------------------------------------------- */

static int commit(struct wb_transfer *t)
{
    struct wb_store_commit_counts ignored = {0};
    struct wb_repo_writer *writer = t->to->writer;
    int64_t began_ns = wb_clock_mono_ns();

    WB_CHECK(t->uncommitted.added + t->uncommitted.replaced == 0);
    if (writer->ops.count == 0)
        return 0;
    t->attempt = 0;
    writer->adopt = adopt;
    writer->adopt_context = t;
    int err = wb_transfer_empty_begin(t);
    if (err == 0)
        err = wb_store_commit(t->batch->read, &ignored);
    writer->adopt = NULL;
    err = wb_transfer_empty_end(t, err);
    t->commit_ns += wb_clock_mono_ns() - began_ns;
    if (err == 0) {
        t->counts.added += t->uncommitted.added;
        t->counts.replaced += t->uncommitted.replaced;
        t->uncommitted_pages = t->uncommitted_bytes = 0;
        wb_vec_clear(&t->fresh);
    }
    t->uncommitted = (struct wb_move_transfer_counts){0};
    return err;
}

int wb_transfer_count(struct wb_transfer *t, struct wb_transfer_page *page, uint64_t bytes)
{
    int err = wb_vec_push(&t->fresh, (uint32_t)(page - t->pages.items));

    WB_CHECK(t->batch->magic == WB_BATCHED_MAGIC);
    if (err < 0)
        return err;
    t->pages_done++;
    t->bytes_done += bytes;
    t->uncommitted_pages++;
    t->uncommitted_bytes += bytes;
    if (t->uncommitted_pages >= COMMIT_PAGES || t->uncommitted_bytes >= COMMIT_BYTES)
        err = commit(t);
    return err < 0 || t->pages_done % PROGRESS_PAGES ? err : wb_transfer_progress(t);
}

/* ---- copies ------------------------------------------------------------------------------------------------ */

int wb_transfer_absorb(struct wb_transfer *t, int err)
{
    WB_CHECK(err <= 0);
    if (err != WB_E_CORRUPT)
        return err;
    if (t->damage.code == 0)
        wb_error_save(err, &t->damage);
    return 0;
}

/* Copies a record; the page is what it says. */
static int copy_record(struct wb_transfer *t, const struct wb_page *page, uint64_t content, struct wb_buf *record)
{
    struct wb_repo_copy copy = {
        .id = page->id, .site = wb_key_site(page->key), .body_bytes = page->body.len, .record = record};
    int err = wb_repo_copy_add(t->to, &copy);

    WB_CHECK(content != 0);
    if (err < 0)
        return err;
    struct wb_op *op = &t->to->writer->ops.items[t->to->writer->ops.count - 1];
    op->content = content;
    op->time_ms = page->time_ms;
    op->entry.lifetime = page->lifetime > UINT16_MAX ? UINT16_MAX : (uint16_t)page->lifetime;
    return 0;
}

int wb_transfer_bring_plain(struct wb_transfer *t, struct wb_transfer_page *waiting, const struct wb_page *page)
{
    struct wb_buf record = WB_BUF_INIT;
    int err = wb_transfer_refused(t, page->id, true, &waiting->out);

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    /* Another content came later: it stays. */
    if (err < 0 || waiting->out || wb_history_content(page, t->to->content_seed) != waiting->entry.content)
        return err;
    err = wb_page_encode(page, &record);
    if (err == 0)
        err = copy_record(t, page, waiting->entry.content, &record);
    wb_buf_release(&record);
    if (err < 0)
        return err;
    waiting->brought = true;
    return wb_transfer_count(t, waiting, page->body.len);
}

/* Copies the bytes of a version. */
static int copy_version(struct wb_transfer *t, const struct wb_history_version *version, uint64_t *bytes_inout)
{
    struct wb_buf record = WB_BUF_INIT;
    struct wb_page page;
    int err = wb_repo_read_record(t->from, t->view.id, &version->place, &record);

    if (err == 0)
        err = wb_pagefile_page(wb_buf_slice(&record), t->view.id, NULL, &page);
    if (err == 0) {
        *bytes_inout += page.body.len;
        err = copy_record(t, &page, version->content, &record);
    }
    wb_buf_release(&record);
    return err;
}

/* Lets the commit decide a page of which nothing is copied. */
static int add_adoption(struct wb_transfer *t)
{
    struct wb_op op = {.kind = WB_OP_ADOPT, .id = t->view.id};
    struct wb_slice site;
    int err = wb_repo_base_site(t->from, t->view.site, &site);

    WB_CHECK(t->view.history.versions.count > 0);
    if (err == 0)
        err = wb_repo_site_index(t->to->writer, site, &op.site);
    return err < 0 ? err : wb_op_add(t->to, &op);
}

/* Whether the bytes of a version must be copied, and which node that has them cannot be used. */
static int look_at_version(struct wb_transfer *t, const struct wb_history *readers, size_t i, bool *copy_out,
                           uint8_t *out)
{
    const struct wb_history_version *versions = t->view.history.versions.items;

    *out = 0;
    *copy_out = wb_transfer_has_bytes(&versions[i].place) && !find_bytes(readers, versions[i].content);
    for (size_t k = 0; k < i && *copy_out; k++) /* contents that return have one place */
        *copy_out = !wb_catalog_place_equal(&versions[k].place, &versions[i].place);
    return *copy_out && t->without.count ? wb_transfer_place_out(t, t->view.id, &versions[i].place, out) : 0;
}

/*
 * Whether the page can be brought now: if not, page->out is the node that it waits for. Without its latest version it
 * is not; without others it is, but then it goes on waiting, too.
 */
static int find_obstacle(struct wb_transfer *t, const struct wb_history *readers, struct wb_transfer_page *page,
                         bool *wanted_out)
{
    bool needs = false, latest_out = !wb_history_latest(&t->view.history), copy;
    uint8_t out;
    int err = 0;

    page->out = 0;
    for (size_t i = 0; i < t->view.history.versions.count && err == 0; i++) {
        err = look_at_version(t, readers, i, &copy, &out);
        needs = needs || copy;
        latest_out = latest_out || (out && t->view.history.versions.items[i].ceased == 0);
        page->out = out ? out : page->out;
    }
    *wanted_out = err == 0 && (page->out == 0 || !latest_out);
    if (err == 0 && *wanted_out) {
        err = wb_transfer_refused(t, page->id, needs, &out);
        *wanted_out = out == 0;
        page->out = out ? out : page->out;
    }
    return err;
}

/* Copies what readers do not have of the page. */
static int copy_page(struct wb_transfer *t, const struct wb_history *readers, uint64_t *bytes_inout)
{
    size_t copies = 0;
    bool copy;
    uint8_t out;
    int err = 0;

    for (size_t i = 0; i < t->view.history.versions.count && err == 0; i++) {
        err = look_at_version(t, readers, i, &copy, &out);
        if (err == 0 && copy && !out) {
            err = copy_version(t, &t->view.history.versions.items[i], bytes_inout);
            copies++;
        }
    }
    return err < 0 || copies ? err : add_adoption(t);
}

/* Whether the page is still as it was when the transfer began. */
static int still_waits(struct wb_transfer *t, bool *waits_out)
{
    struct wb_catalog_txn txn = {0};
    int err = wb_catalog_txn_read(t->from->catalog, &txn);

    if (err == 0)
        err = wb_pageview_load(&txn, true, t->view.id, &t->other);
    *waits_out = err == 0 && wb_transfer_is_same(&t->view, &t->other);
    wb_catalog_txn_abort(&txn);
    return err;
}

/* Brings a page that is not plain. */
static int bring_page(struct wb_transfer *t, struct wb_transfer_page *page)
{
    struct wb_pageview *readers;
    uint64_t bytes = 0;
    size_t before = t->to->writer->ops.count;
    bool wanted = false;
    int err = load_waiting(t, page);

    page->partly = false;
    if (err == 0)
        err = wb_repo_view(t->to, page->id, &readers);
    if (err == 0)
        err = wb_history_copy(&readers->history, &t->other.history);
    if (err == 0)
        err = find_obstacle(t, &t->other.history, page, &wanted);
    if (err < 0 || !wanted)
        return err;
    err = copy_page(t, &t->other.history, &bytes);
    if (err == WB_E_CORRUPT || err == WB_E_NOTFOUND) { /* perhaps it was taken down, or replaced */
        struct wb_error_copy why;
        bool waits;
        wb_error_save(err, &why);
        err = still_waits(t, &waits);
        if (err < 0 || !waits)
            return err;
        err = wb_error_restore(&why);
    }
    if (err == WB_E_DOWN || (err < 0 && t->to->writer->ops.count > before && err != WB_E_CORRUPT))
        return wb_writer_remember_failure(&t->to->writer->files, err);
    page->brought = err == 0 && page->out == 0;
    page->partly = err == 0 && page->out != 0;
    err = wb_transfer_absorb(t, err);
    return err < 0 ? err : wb_transfer_count(t, page, bytes);
}

int wb_transfer_bring(struct wb_transfer *t)
{
    bool plain = false;
    int err = 0;

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    for (size_t i = 0; i < t->pages.count && !plain; i++)
        plain = t->pages.items[i].plain;
    if (plain)
        err = wb_transfer_bring_blocks(t);
    for (size_t i = 0; i < t->pages.count && err == 0; i++)
        if (!t->pages.items[i].plain && !t->pages.items[i].brought)
            err = bring_page(t, &t->pages.items[i]);
    return err < 0 ? err : commit(t);
}
