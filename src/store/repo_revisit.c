/*
 * repo_revisit.c - revisits: captures without bytes. If the page has the content that is meant, a
 * revisit becomes a capture of it at once. Otherwise it waits in the catalog, and the commit that
 * brings the content turns it into a capture.
 */
#include "base/check.h"
#include "base/mem.h"
#include "store/repo.h"
#include "store/repo_event.h"
#include "store/repo_ops.h"

static bool same_second(int64_t a_ms, int64_t b_ms)
{
    return a_ms / 1000 == b_ms / 1000;
}

static bool has_digest(const struct wb_store_revisit *revisit, const uint8_t *sha1, const uint8_t *payload_sha1)
{
    WB_CHECK(revisit->has_sha1);
    WB_CHECK(sha1 != NULL);
    return memcmp(revisit->sha1, sha1, WB_SHA1_BYTES) == 0 ||
           (payload_sha1 && memcmp(revisit->sha1, payload_sha1, WB_SHA1_BYTES) == 0);
}

/* ---- finding the original among the versions of a page ------------------------------------------------- */

/* By time: the version that has a capture in that second; or if none is given, the one just before the revisit. */
static const struct wb_history_version *find_by_time(const struct wb_history *history,
                                                     const struct wb_store_revisit *revisit)
{
    WB_CHECK(!revisit->has_sha1);
    WB_CHECK(history->ghosts <= history->versions.count);
    if (revisit->original_ms == 0) {
        const struct wb_history_version *before =
            revisit->not_modified ? wb_history_at(history, revisit->time_ms) : NULL;
        bool earlier = before && history->times.items[before->first] <= revisit->time_ms;
        return earlier && before->place.segment ? before : NULL;
    }
    for (size_t i = history->versions.count; i > 0; i--) {
        const struct wb_history_version *version = &history->versions.items[i - 1];
        for (size_t k = 0; k < version->count && version->place.segment && !version->replaced; k++)
            if (same_second(history->times.items[version->first + k], revisit->original_ms))
                return version;
    }
    return NULL;
}

int wb_repo_read_version(struct wb_repo *repo, struct wb_pageid id, const struct wb_history_version *version,
                         struct wb_page *page_out, struct wb_buf *mem_out)
{
    struct wb_catalog_entry entry = {
        .place = version->place, .epoch = version->arrived, .time_ms = 1, .ended = true};

    WB_CHECK(version->place.segment > 0);
    WB_CHECK(version->arrived > 0);
    if (version->place.segment == WB_PAGEVIEW_PENDING_SEGMENT)
        return wb_repo_get_pending(repo, (size_t)version->place.logical - 1, page_out, mem_out);
    return wb_repo_read_entry(repo, id, &entry, page_out, mem_out);
}

/* By digest: reads the versions, the newest first. *found_out is an index, or -1. */
static int find_by_digest(struct wb_repo *repo, const struct wb_pageview *view, const struct wb_store_revisit *revisit,
                          int64_t *found_out)
{
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page page;
    int err = 0;

    WB_CHECK(revisit->has_sha1);
    WB_CHECK(wb_pageid_equal(view->id, revisit->id));
    *found_out = -1;
    for (size_t i = view->history.versions.count; i > 0 && *found_out < 0 && err == 0; i--) {
        const struct wb_history_version *version = &view->history.versions.items[i - 1];
        if (version->place.segment == 0 || version->replaced)
            continue;
        err = wb_repo_read_version(repo, view->id, version, &page, &memory);
        if (err == 0 && has_digest(revisit, page.sha1, page.has_payload_sha1 ? page.payload_sha1 : NULL))
            *found_out = (int64_t)i - 1;
        err = err == WB_E_CORRUPT ? 0 : err; /* a version that cannot be read is not recognised */
    }
    wb_buf_release(&memory);
    return err;
}

/* ---- putting ----------------------------------------------------------------------------------------- */

/* A copy that keeps the URL, because the caller's memory may be gone when it is committed. */
static struct wb_store_revisit *copy_revisit(const struct wb_store_revisit *revisit)
{
    struct wb_store_revisit *copy = wb_alloc(sizeof *copy + revisit->url.len + 1);

    WB_CHECK(revisit->url.ptr || revisit->url.len == 0);
    if (!copy)
        return NULL;
    *copy = *revisit;
    copy->site = WB_SLICE_EMPTY;
    char *url = (char *)(copy + 1);
    if (revisit->url.len)
        memcpy(url, revisit->url.ptr, revisit->url.len);
    copy->url = wb_slice(url, revisit->url.len);
    WB_CHECK(copy->site.len == 0);
    return copy;
}

/* The content is there: a capture of it. Should it be gone when the op is committed, the revisit waits after all. */
static int put_capture(struct wb_repo *repo, struct wb_op *op, const struct wb_history_version *version,
                       const struct wb_store_revisit *revisit, enum wb_store_outcome *outcome_inout)
{
    bool forgets = repo->writer->moment.rule.policy.keep == WB_STORE_KEEP_NEWEST;
    int err = 0;

    WB_CHECK(version->place.segment > 0);
    WB_CHECK(op->revisit == NULL);
    WB_CHECK(*outcome_inout <= WB_STORE_PUT_PAST);
    op->kind = WB_OP_CAPTURE;
    op->content = version->content;
    *outcome_inout =
        *outcome_inout == WB_STORE_PUT_PAST && forgets ? WB_STORE_PUT_OLDER : WB_STORE_PUT_CAPTURE;
    if (*outcome_inout == WB_STORE_PUT_CAPTURE) {
        op->revisit = copy_revisit(revisit);
        err = op->revisit ? 0 : WB_E_NOMEM;
    }
    if (err == 0)
        err = wb_op_add(repo, op);
    if (err < 0)
        wb_free(op->revisit);
    return err;
}

/* Whether a revisit of this page and time waits already. */
struct waiting_lookup {
    struct wb_repo *repo;
    const struct wb_store_revisit *revisit;
    bool found;
};

static int match_waiting(void *context, const struct wb_store_revisit *revisit, uint64_t site)
{
    struct waiting_lookup *l = context;

    WB_CHECK(wb_pageid_equal(revisit->id, l->revisit->id));
    (void)site;
    l->found = l->found || revisit->time_ms == l->revisit->time_ms;
    return 0;
}

static int look_up_waiting(void *context)
{
    struct waiting_lookup *l = context;

    WB_CHECK(l->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(l->revisit != NULL);
    return wb_catalog_revisit_of(&l->repo->reader, l->revisit->id, match_waiting, l);
}

static int is_waiting(struct wb_repo *repo, const struct wb_store_revisit *revisit, bool *waiting_out)
{
    struct waiting_lookup l = {.repo = repo, .revisit = revisit};
    struct wb_repo_writer *writer = repo->writer;
    uint32_t last;
    int err = writer->any_waiting ? wb_repo_read(repo, look_up_waiting, &l) : 0;

    WB_CHECK(writer->moment_known);
    if (wb_repo_last_op(writer, revisit->id, &last))
        for (int64_t i = last; i >= 0 && !l.found; i = writer->ops.items[i].previous)
            l.found = writer->ops.items[i].kind == WB_OP_REVISIT && writer->ops.items[i].time_ms == revisit->time_ms;
    *waiting_out = l.found;
    return err;
}

/* The content is not there: it waits. */
static int put_waiting(struct wb_repo *repo, struct wb_op *op, const struct wb_store_revisit *revisit,
                       enum wb_store_outcome *outcome_out)
{
    bool known;
    int err = is_waiting(repo, revisit, &known);

    WB_CHECK(op->revisit == NULL);
    WB_CHECK(op->site < repo->writer->sites.count);
    if (err == 0 && known) {
        *outcome_out = WB_STORE_PUT_KNOWN;
        repo->writer->older++;
        return 0;
    }
    if (err < 0)
        return err;
    op->kind = WB_OP_REVISIT;
    op->revisit = copy_revisit(revisit);
    err = op->revisit ? wb_op_add(repo, op) : WB_E_NOMEM;
    if (err < 0)
        wb_free(op->revisit);
    repo->writer->waiting_ops += err == 0 && !wb_pageid_equal(revisit->id, revisit->original);
    return err;
}

/* A copy of the view's history, to find out what the capture would do without changing the view. */
static int forecast(struct wb_repo *repo, const struct wb_pageview *view, const struct wb_history_version *version,
                    int64_t time_ms, enum wb_store_outcome *outcome_out)
{
    struct wb_history copy = {0};
    struct wb_history_version bytes = *version;
    struct wb_history_capture capture = {
        .time_ms = time_ms,
        .content = version->content,
        .epoch = repo->writer->moment.epoch,
        .rule = &repo->writer->moment.rule,
        .bytes = &bytes,
    };
    int err = wb_history_copy(&view->history, &copy);

    WB_CHECK(version->place.segment > 0);
    WB_CHECK(repo->writer->moment_known);
    if (err == 0)
        err = wb_history_add(&copy, &capture, outcome_out);
    wb_history_release(&copy);
    return err;
}

/* Finds the version that the revisit means; *version_out is NULL if it is not there. It is good until the next call. */
static int find_original(struct wb_repo *repo, const struct wb_store_revisit *revisit,
                         const struct wb_history_version **version_out, struct wb_pageview **view_out)
{
    int64_t found = -1;
    int err = wb_repo_view(repo, revisit->id, view_out);

    WB_CHECK(repo->writer->magic == WB_REPO_WRITER_MAGIC);
    *version_out = NULL;
    if (err < 0)
        return err;
    if (!revisit->has_sha1) {
        *version_out = find_by_time(&(*view_out)->history, revisit);
        return 0;
    }
    err = find_by_digest(repo, *view_out, revisit, &found);
    WB_CHECK(found < (int64_t)(*view_out)->history.versions.count);
    if (err == 0 && found >= 0)
        *version_out = &(*view_out)->history.versions.items[found];
    return err;
}

int wb_repo_revisit_content(struct wb_repo *repo, const struct wb_store_revisit *revisit, uint64_t *content_out)
{
    const struct wb_history_version *version;
    struct wb_pageview *view;
    int err = find_original(repo, revisit, &version, &view);

    WB_CHECK(repo->writer->magic == WB_REPO_WRITER_MAGIC);
    *content_out = err == 0 && version ? version->content : 0;
    return err;
}

int wb_repo_wait_revisit(struct wb_repo *repo, const struct wb_store_revisit *revisit,
                         enum wb_store_outcome *outcome_out)
{
    struct wb_op op = {.id = revisit->id, .time_ms = revisit->time_ms};
    struct wb_pageview *view;
    int err = wb_pagefile_check_usable(&repo->writer->files);

    WB_CHECK(repo->writer->magic == WB_REPO_WRITER_MAGIC);
    *outcome_out = WB_STORE_PUT_NEW;
    if (err == 0)
        err = wb_repo_view(repo, revisit->id, &view); /* which finds out whether anything waits */
    if (err == 0)
        err = wb_repo_site_index(repo->writer, revisit->site, &op.site);
    return err < 0 ? err : put_waiting(repo, &op, revisit, outcome_out);
}

int wb_repo_put_revisit(struct wb_store *store, const struct wb_store_revisit *revisit,
                        enum wb_store_outcome *outcome_out)
{
    struct wb_repo *repo = wb_repo_of_writer(store);
    struct wb_repo_writer *writer = repo->writer;
    struct wb_op op = {.id = revisit->id, .time_ms = revisit->time_ms};
    const struct wb_history_version *version;
    struct wb_pageview *view;
    int err = wb_pagefile_check_usable(&writer->files);
    int barred = err == 0 ? wb_repo_barred(store, revisit->id, revisit->site) : err;

    if (barred) {
        writer->barred += barred > 0;
        *outcome_out = WB_STORE_PUT_BARRED;
        return barred < 0 ? barred : 0;
    }
    err = find_original(repo, revisit, &version, &view);
    if (err == 0)
        err = wb_repo_can_change(repo, view);
    if (err == 0)
        err = wb_repo_site_index(writer, revisit->site, &op.site);
    if (err < 0)
        return err;
    WB_CHECK(wb_pageid_equal(view->id, revisit->id));
    *outcome_out = WB_STORE_PUT_NEW;
    if (!version)
        return put_waiting(repo, &op, revisit, outcome_out);
    struct wb_history_version original = *version;
    err = forecast(repo, view, &original, revisit->time_ms, outcome_out);
    if (err < 0)
        return err;
    if (*outcome_out > WB_STORE_PUT_PAST) {
        writer->older++;
        return 0;
    }
    return put_capture(repo, &op, &original, revisit, outcome_out);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

struct revisit_lookup {
    struct wb_repo *repo;
    struct wb_pageid id;
    struct wb_store_revisit revisit; /* the newest so far */
    bool found;
};

static int take_newest(void *context, const struct wb_store_revisit *revisit, uint64_t site)
{
    struct revisit_lookup *l = context;

    WB_CHECK(wb_pageid_equal(revisit->id, l->id));
    (void)site;
    if (!l->found || revisit->time_ms > l->revisit.time_ms)
        l->revisit = *revisit;
    l->found = true;
    return 0;
}

static int look_up_revisit(void *context)
{
    struct revisit_lookup *l = context;

    WB_CHECK(l->repo->magic == WB_REPO_MAGIC);
    WB_CHECK(l->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    l->found = false;
    return wb_catalog_revisit_of(&l->repo->reader, l->id, take_newest, l);
}

int wb_repo_get_revisit(struct wb_store *store, struct wb_pageid id, struct wb_store_revisit *revisit_out)
{
    struct wb_repo *repo = wb_repo_of(store);
    struct revisit_lookup l = {.repo = repo, .id = id};
    uint32_t last;
    int err = wb_repo_read(repo, look_up_revisit, &l);

    if (err < 0)
        return err;
    if (repo->writer && wb_repo_last_op(repo->writer, id, &last))
        for (int64_t i = last; i >= 0; i = repo->writer->ops.items[i].previous)
            if (repo->writer->ops.items[i].kind == WB_OP_REVISIT)
                take_newest(&l, repo->writer->ops.items[i].revisit, 0);
    WB_CHECK(!l.found || wb_pageid_equal(l.revisit.id, id));
    *revisit_out = l.revisit;
    revisit_out->url = WB_SLICE_EMPTY; /* it belongs to a row, or to an op */
    return l.found ? 0 : wb_fail(WB_E_NOTFOUND, "no revisit of this page waits for its original");
}

struct waiting_listing {
    int (*each)(void *context, const struct wb_store_revisit *revisit);
    void *context;
};

static int pass_waiting(void *context, const struct wb_store_revisit *revisit, uint64_t site)
{
    struct waiting_listing *l = context;

    WB_CHECK(l->each != NULL);
    (void)site;
    return l->each(l->context, revisit);
}

int wb_repo_waiting_each(struct wb_store *store, struct wb_pageid original,
                         int (*each)(void *context, const struct wb_store_revisit *revisit), void *context)
{
    struct wb_repo *repo = wb_repo_of(store);
    struct waiting_listing l = {each, context};
    struct wb_repo_writer *writer = repo->writer;
    struct wb_catalog_txn txn;
    struct wb_pageview *view;
    int err = 0;

    WB_CHECK(each != NULL);
    if (writer && !writer->moment_known)
        err = wb_repo_view(repo, original, &view); /* which finds out whether anything waits */
    if (err == 0 && (!writer || writer->any_waiting)) {
        err = wb_catalog_txn_read(repo->catalog, &txn);
        if (err == 0)
            err = wb_catalog_revisit_waiting(&txn, original, pass_waiting, &l);
        wb_catalog_txn_abort(&txn);
    }
    WB_CHECK(err < 0 || !writer || writer->moment_known);
    for (size_t i = 0; writer && writer->waiting_ops && i < writer->ops.count && err == 0; i++) {
        const struct wb_op *op = &writer->ops.items[i];
        if (op->kind == WB_OP_REVISIT && wb_pageid_equal(op->revisit->original, original) &&
            !wb_pageid_equal(op->revisit->id, original))
            err = each(context, op->revisit);
    }
    return err;
}

/* ---- in a commit ----------------------------------------------------------------------------------------- */

struct revisit_list WB_VEC_OF(struct wb_store_revisit);

static int gather_revisit(void *context, const struct wb_store_revisit *revisit, uint64_t site)
{
    (void)site;
    return wb_vec_push((struct revisit_list *)context, *revisit);
}

/* Whether one of the ops has brought the content of this version, and it has the digest of the revisit. */
static bool was_brought(struct wb_repo_edit *edit, const struct wb_history_version *version,
                        const struct wb_store_revisit *revisit, const uint32_t *order, size_t count)
{
    const struct wb_repo_writer *writer = edit->repo->writer;

    WB_CHECK(revisit->has_sha1);
    WB_CHECK(version->place.segment > 0);
    for (size_t i = 0; i < count; i++) {
        const struct wb_op *op = &writer->ops.items[order[i]];
        if (op->kind != WB_OP_PUT || op->content != version->content)
            continue;
        /* The digest of the payload is that of the record. If an older one is used instead, this one is forgotten. */
        bool payload = op->has_payload_sha1 && wb_catalog_place_equal(&version->place, &op->entry.place);
        if (has_digest(revisit, writer->files.puts.items[op->put - 1].sha1, payload ? op->payload_sha1 : NULL))
            return true;
    }
    return false;
}

/* The newest version that a revisit can mean, if one of the ops has brought its content or its time tells. */
static const struct wb_history_version *resolve(struct wb_repo_edit *edit, const struct wb_store_revisit *revisit,
                                                const uint32_t *order, size_t count)
{
    struct wb_history *history = &edit->view.history;

    WB_CHECK(count > 0);
    WB_CHECK(wb_pageid_equal(edit->view.id, revisit->id));
    if (!revisit->has_sha1)
        return find_by_time(history, revisit);
    for (size_t i = history->versions.count; i > 0; i--) {
        const struct wb_history_version *version = &history->versions.items[i - 1];
        if (version->place.segment && !version->replaced && was_brought(edit, version, revisit, order, count))
            return version;
    }
    return NULL;
}

int wb_repo_resolve_revisits(struct wb_repo_edit *edit, const uint32_t *order, size_t count, uint64_t *captures_inout,
                             bool *touched_inout)
{
    struct revisit_list list = {0};
    int err = wb_catalog_revisit_of(&edit->txn, edit->view.id, gather_revisit, &list);

    WB_CHECK(count > 0);
    WB_CHECK(edit->summary.revisits > 0);
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    for (size_t i = 0; i < list.count && err == 0; i++) {
        const struct wb_history_version *version = resolve(edit, &list.items[i], order, count);
        enum wb_store_outcome outcome;
        if (!version)
            continue;
        struct wb_pageview_change change = {.kind = WB_PAGEVIEW_CAPTURE, .time_ms = list.items[i].time_ms};
        change.content = version->content;
        err = wb_pageview_apply(&edit->view, &change, &edit->moment, &outcome);
        if (err == 0)
            err = wb_catalog_revisit_delete(&edit->txn, &list.items[i]);
        if (err == 0 && edit->summary.revisits == 0)
            err = wb_catalog_corrupt(edit->repo->catalog, WB_CATALOG_REVISITS, "more rows than counted");
        edit->summary.revisits -= err == 0;
        *captures_inout += err == 0 && outcome <= WB_STORE_PUT_PAST;
        edit->changed = edit->changed || (err == 0 && outcome <= WB_STORE_PUT_PAST);
        *touched_inout = true;
    }
    wb_vec_release(&list);
    return err;
}
