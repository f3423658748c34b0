/* model_compare.c - see model_compare.h. */
#include "model_compare.h"
#include "base/hash.h"
#include "base/vec.h"

/* ---- pages --------------------------------------------------------------------------------------- */

static void print_pages(const struct wb_page *found, const struct wb_page *expected)
{
    const struct wb_page *pages[] = {found, expected};

    for (size_t i = 0; i < COUNT(pages); i++)
        fprintf(stderr, "%s: %.*s url %.*s time %lld epoch %llu lifetime %u of %u body %zu of %llu status %u\n",
                i ? "twin" : "log", WB_SLICE_ARG(pages[i]->key), WB_SLICE_ARG(pages[i]->url),
                (long long)pages[i]->time_ms, (unsigned long long)pages[i]->epoch, pages[i]->lifetime_count,
                pages[i]->lifetime, pages[i]->body.len, (unsigned long long)pages[i]->body_bytes, pages[i]->status);
}

void compare_get_when(struct pair *p, struct wb_pageid id, const struct wb_store_when *when)
{
    struct wb_buf log_memory = WB_BUF_INIT, twin_memory = WB_BUF_INIT;
    struct wb_page log_page, twin_page;
    bool latest = when->kind == WB_STORE_WHEN_LATEST;
    /* The commit sets the epoch. */
    unsigned without = latest ? p->committed ? 0 : WITHOUT_EPOCH : WITHOUT_LIFETIME;
    int log_err = wb_store_get_when(p->log, id, when, &log_page, &log_memory);
    int twin_err = wb_store_get_when(p->twin, id, when, &twin_page, &twin_memory);

    if (log_err != twin_err)
        fprintf(stderr, "get (%d, time %lld, snapshot %u) says %d (%s), the twin %d\n", when->kind,
                (long long)when->time_ms, when->snapshot, log_err, wb_error_message(), twin_err);
    must(log_err == twin_err);
    must(log_err == 0 || log_err == WB_E_NOTFOUND);
    if (log_err == 0 && page_hash(&log_page, without) != page_hash(&twin_page, without)) {
        fprintf(stderr, "get (%d, time %lld, snapshot %u):\n", when->kind, (long long)when->time_ms, when->snapshot);
        print_pages(&log_page, &twin_page);
        must(false); /* the pages differ */
    }
    wb_buf_release(&log_memory);
    wb_buf_release(&twin_memory);
}

void compare_get(struct pair *p, struct wb_pageid id)
{
    int64_t log_ms, twin_ms;
    int err = wb_store_time(p->log, id, &log_ms);

    must(err == wb_store_time(p->twin, id, &twin_ms));
    must(log_ms == twin_ms);
    compare_get_when(p, id, &(struct wb_store_when){.kind = WB_STORE_WHEN_LATEST});
}

/* What get_many returned for each id. */
struct many {
    unsigned without;
    WB_VEC(uint64_t) hashes; /* 0: not called yet, 1: not found */
};

static int note_page(void *context, size_t index, int err, const struct wb_page *page)
{
    struct many *many = context;

    must(index < many->hashes.count && many->hashes.items[index] == 0); /* each index once */
    must(err == 0 || err == WB_E_NOTFOUND);
    many->hashes.items[index] = err ? 1 : page_hash(page, many->without) | 2;
    return 0;
}

void compare_get_many(struct pair *p, const struct wb_pageid *ids, size_t count, const struct wb_store_when *when)
{
    struct many log = {.without = when->kind == WB_STORE_WHEN_LATEST ? 0 : WITHOUT_LIFETIME}, twin = log;

    for (size_t i = 0; i < count; i++)
        must(wb_vec_push(&log.hashes, 0) == 0 && wb_vec_push(&twin.hashes, 0) == 0);
    must_ok(wb_store_get_many(p->log, ids, count, when, note_page, &log));
    must_ok(wb_store_get_many(p->twin, ids, count, when, note_page, &twin));
    for (size_t i = 0; i < count; i++) {
        must(log.hashes.items[i] != 0);
        must(log.hashes.items[i] == twin.hashes.items[i]);
    }
    wb_vec_release(&log.hashes);
    wb_vec_release(&twin.hashes);
}

static void print_timeline(const char *who, const struct wb_store_timeline *timeline)
{
    fprintf(stderr, "%s: gone %lld\n", who, (long long)timeline->gone_ms);
    for (size_t i = 0; i < timeline->count; i++) {
        const struct wb_store_version *v = &timeline->versions[i];
        fprintf(stderr, "  epochs %llu to %llu, %llu bytes, status %u, same as %zu, times",
                (unsigned long long)v->arrived, (unsigned long long)v->ceased, (unsigned long long)v->body_bytes,
                v->status, v->same);
        for (size_t j = v->first; j < v->first + v->captures; j++)
            fprintf(stderr, " %lld", (long long)timeline->times[j]);
        fprintf(stderr, "\n");
    }
}

static bool same_version(const struct wb_store_version *a, const struct wb_store_version *b)
{
    return a->time_ms == b->time_ms && a->last_ms == b->last_ms && a->first == b->first && a->captures == b->captures &&
           a->arrived == b->arrived && a->ceased == b->ceased && a->body_bytes == b->body_bytes &&
           a->status == b->status && a->same == b->same;
}

static bool same_timeline(const struct wb_store_timeline *a, const struct wb_store_timeline *b)
{
    bool same = a->count == b->count && a->time_count == b->time_count && a->gone_ms == b->gone_ms;

    for (size_t i = 0; same && i < a->count; i++)
        same = same_version(&a->versions[i], &b->versions[i]);
    for (size_t i = 0; same && i < a->time_count; i++)
        same = a->times[i] == b->times[i];
    return same;
}

void compare_timeline(struct pair *p, struct wb_pageid id)
{
    struct wb_store_timeline log, twin;
    int log_err = wb_store_timeline(p->log, id, &log), twin_err = wb_store_timeline(p->twin, id, &twin);

    must(log_err == 0 || log_err == WB_E_NOTFOUND);
    if (log_err != twin_err || !same_timeline(&log, &twin)) {
        fprintf(stderr, "timeline of %016llx says %d, the twin %d\n", (unsigned long long)id.hi, log_err, twin_err);
        print_timeline("log", &log);
        print_timeline("twin", &twin);
        must(false); /* the timelines differ */
    }
    wb_store_timeline_release(&log);
    wb_store_timeline_release(&twin);
}

/* ---- snapshots ------------------------------------------------------------------------------------ */

struct snapshot_list WB_VEC_OF(struct wb_store_snapshot);

static int compare_holders(const void *a, const void *b)
{
    const struct wb_store_holder *x = a, *y = b;

    return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->name, y->name);
}

static int gather_snapshot(void *context, const struct wb_store_snapshot *snapshot)
{
    struct snapshot_list *list = context;
    struct wb_store_snapshot copied = *snapshot;

    must(snapshot->holder_count > 0);
    must(list->count == 0 || list->items[list->count - 1].number < snapshot->number);
    copied.holders = wb_alloc(copied.holder_count * sizeof *copied.holders);
    must(copied.holders != NULL);
    memcpy(copied.holders, snapshot->holders, copied.holder_count * sizeof *copied.holders);
    qsort(copied.holders, copied.holder_count, sizeof *copied.holders, compare_holders);
    must(wb_vec_push(list, copied) == 0);
    return 0;
}

static void release_list(struct snapshot_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        wb_store_snapshot_release(&list->items[i]);
    wb_vec_release(list);
}

static void compare_snapshot(const struct wb_store_snapshot *log, const struct wb_store_snapshot *twin)
{
    must(log->number == twin->number);
    must(strcmp(log->name, twin->name) == 0);
    must(log->epoch == twin->epoch);
    must(log->expires_ms == twin->expires_ms);
    must(log->pages == twin->pages);
    must(log->holder_count == twin->holder_count);
    must(log->time_ms - twin->time_ms < 60000 && twin->time_ms - log->time_ms < 60000);
    for (size_t i = 0; i < log->holder_count; i++) {
        must(compare_holders(&log->holders[i], &twin->holders[i]) == 0);
        must(log->holders[i].expires_ms == twin->holders[i].expires_ms);
    }
}

void compare_snapshots(struct pair *p)
{
    struct snapshot_list log = WB_VEC_INIT, twin = WB_VEC_INIT;

    must_ok(wb_store_snapshot_each(p->log, gather_snapshot, &log));
    must_ok(wb_store_snapshot_each(p->twin, gather_snapshot, &twin));
    must(log.count == twin.count);
    for (size_t i = 0; i < log.count; i++)
        compare_snapshot(&log.items[i], &twin.items[i]);
    release_list(&log);
    release_list(&twin);
}

/* The version that an epoch shows, with its captures. The timeline has it last, but ghosts may lie behind it. */
static const struct wb_store_version *shown_in(const struct wb_store_timeline *timeline)
{
    for (size_t i = 0; i < timeline->count; i++)
        if (timeline->versions[i].ceased == 0)
            return &timeline->versions[i];
    return NULL;
}

/* What a sealed epoch says about a page is what it was then: also how often and when it was seen. */
static void compare_shown(struct pair *p, struct wb_pageid id, uint64_t epoch)
{
    struct wb_store_timeline log, twin;
    int log_err = wb_store_timeline_in(p->log, id, epoch, &log),
        twin_err = wb_store_timeline_in(p->twin, id, epoch, &twin);
    const struct wb_store_version *shown = shown_in(&log), *expected = shown_in(&twin);

    must(log_err == 0 || log_err == WB_E_NOTFOUND);
    bool same = !shown == !expected;
    if (same && shown)
        same = shown->captures == expected->captures && shown->arrived == expected->arrived &&
               shown->body_bytes == expected->body_bytes && shown->status == expected->status &&
               memcmp(log.times + shown->first, twin.times + expected->first, shown->captures * sizeof *log.times) == 0;
    if (!same) {
        fprintf(stderr, "timeline of %016llx in epoch %llu says %d, the twin %d\n", (unsigned long long)id.hi,
                (unsigned long long)epoch, log_err, twin_err);
        print_timeline("log", &log);
        print_timeline("twin", &twin);
        must(false); /* the states differ */
    }
    wb_store_timeline_release(&log);
    wb_store_timeline_release(&twin);
}

void compare_in_snapshots(struct pair *p, struct wb_pageid id)
{
    struct snapshot_list list = WB_VEC_INIT;

    must_ok(wb_store_snapshot_each(p->twin, gather_snapshot, &list));
    for (size_t i = 0; i < list.count; i++) {
        compare_get_when(p, id,
                         &(struct wb_store_when){.kind = WB_STORE_WHEN_SNAPSHOT, .snapshot = list.items[i].number});
        compare_shown(p, id, list.items[i].epoch);
    }
    compare_get_when(p, id, &(struct wb_store_when){.kind = WB_STORE_WHEN_SNAPSHOT, .snapshot = 1000000});
    release_list(&list);
}

/* ---- revisits and bars ------------------------------------------------------------------------------- */

static bool same_revisit(const struct wb_store_revisit *a, const struct wb_store_revisit *b)
{
    return wb_pageid_equal(a->id, b->id) && a->time_ms == b->time_ms && a->has_sha1 == b->has_sha1 &&
           a->not_modified == b->not_modified && memcmp(a->sha1, b->sha1, sizeof a->sha1) == 0 &&
           a->original_ms == b->original_ms && wb_pageid_equal(a->original, b->original);
}

struct revisit_list WB_VEC_OF(struct wb_store_revisit);

static int gather_revisit(void *context, const struct wb_store_revisit *revisit)
{
    must(wb_vec_push((struct revisit_list *)context, *revisit) == 0);
    return 0;
}

void compare_revisits(struct pair *p, struct wb_pageid id)
{
    struct wb_store_revisit log_revisit, twin_revisit;
    struct revisit_list log = WB_VEC_INIT, twin = WB_VEC_INIT;
    int log_err = wb_store_get_revisit(p->log, id, &log_revisit),
        twin_err = wb_store_get_revisit(p->twin, id, &twin_revisit);

    must(log_err == twin_err);
    must(log_err < 0 || same_revisit(&log_revisit, &twin_revisit));
    must_ok(wb_store_waiting_each(p->log, id, gather_revisit, &log));
    must_ok(wb_store_waiting_each(p->twin, id, gather_revisit, &twin));
    must(log.count == twin.count);
    for (size_t i = 0; i < log.count; i++) {
        size_t found = 0;
        for (size_t j = 0; j < twin.count; j++)
            found += same_revisit(&log.items[i], &twin.items[j]);
        must(found == 1);
    }
    wb_vec_release(&log);
    wb_vec_release(&twin);
}

/*
 * Adds a hash of each bar, so that the order does not matter. Of very long sites a store may keep only a hash, and
 * nothing sets the time of an exception.
 */
static int hash_bar(void *context, const struct wb_store_bar *bar)
{
    bool page = bar->kind == WB_STORE_BAR_PAGE,
         named = bar->site.len > 4 && bar->site.len < 200 && memcmp(bar->site.ptr, "site", 4) == 0;
    uint64_t parts[] = {bar->kind, page ? bar->id.hi : 0, bar->except, bar->except ? 0 : (uint64_t)bar->time_ms,
                        named ? wb_hash64(bar->site.ptr, bar->site.len) : 0};

    *(uint64_t *)context += wb_hash64(parts, sizeof parts);
    return 0;
}

void compare_bars(struct pair *p, const struct spec *spec)
{
    enum { IDS_MAX = 64 };
    struct wb_pageid log_ids[IDS_MAX], twin_ids[IDS_MAX];
    size_t log_count, twin_count, found = 0;
    uint64_t log_bars = 0, twin_bars = 0;
    struct wb_buf room = WB_BUF_INIT;
    struct wb_slice site = spec_site(spec, &room);

    must(spec_barred(p->log, spec) == spec_barred(p->twin, spec));
    must_ok(wb_store_bar_each(p->log, hash_bar, &log_bars));
    must_ok(wb_store_bar_each(p->twin, hash_bar, &twin_bars));
    must(log_bars == twin_bars);
    must_ok(wb_store_list_site(p->log, site, log_ids, IDS_MAX, &log_count));
    must_ok(wb_store_list_site(p->twin, site, twin_ids, IDS_MAX, &twin_count));
    must(log_count == twin_count);
    for (size_t i = 0; i < log_count; i++)
        for (size_t j = 0; j < twin_count; j++)
            found += wb_pageid_equal(log_ids[i], twin_ids[j]);
    must(found == log_count);
    wb_buf_release(&room);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static void print_stat(const char *who, const struct wb_store_stat *s)
{
    fprintf(stderr,
            "%s: pages %llu sites %llu versions %llu captures %llu revisits %llu bars %llu snapshots %llu bytes %llu "
            "epoch %llu snapshot %u\n",
            who, (unsigned long long)s->pages, (unsigned long long)s->sites, (unsigned long long)s->versions,
            (unsigned long long)s->captures, (unsigned long long)s->revisits, (unsigned long long)s->bars,
            (unsigned long long)s->snapshots, (unsigned long long)s->bytes_pages, (unsigned long long)s->epoch,
            s->snapshot);
}

bool same_stat(struct pair *p)
{
    struct wb_store_stat log, twin;
    struct wb_store_history log_history, twin_history;

    must_ok(wb_store_stat(p->log, &log));
    must_ok(wb_store_stat(p->twin, &twin));
    bool same = log.pages == twin.pages && log.sites == twin.sites && log.versions == twin.versions &&
                log.captures == twin.captures && log.revisits == twin.revisits && log.bars == twin.bars &&
                log.snapshots == twin.snapshots && log.bytes_pages == twin.bytes_pages && log.epoch == twin.epoch &&
                log.snapshot == twin.snapshot;
    if (!same) {
        print_stat("log", &log);
        print_stat("twin", &twin);
    }
    must_ok(wb_store_history(p->log, &log_history));
    must_ok(wb_store_history(p->twin, &twin_history));
    must(log_history.keep == twin_history.keep && log_history.value == twin_history.value);
    must(log.history.keep == twin.history.keep && log.history.value == twin.history.value);
    must(!log.design.batch && log.nodes >= 1 && twin.nodes == 1);
    must(log.bytes_dead <= log.bytes_stored);
    return same;
}
