/*
 * carousel_member.c - streams in a carousel (carousel.h): joining one, getting batches, leaving it.
 *
 * Instead of waiting for pages that another member is decompressing, a member works ahead on the next batch, so that
 * several members use several processors. A member that is alone decompresses one page after the other, and copies
 * nothing.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/locked.h"
#include "base/mem.h"
#include "stream/carousel_own.h"

enum { AHEAD_MAX = 4 }; /* batches that are decompressed before anybody needs them */

#define MEMBER_MAGIC 0x5742434du

/* A stream in a carousel. */
struct carousel_member {
    struct wb_supplier base; /* must be the first member */
    uint32_t magic;          /* MEMBER_MAGIC until it is closed */
    struct wb_carousel *carousel;
    bool has_after, has_until;
    struct wb_store_position after; /* pages of the first batch up to this place are not wanted */
    struct wb_store_position until;
    bool parcels, ids, finished;
    enum wb_batch_depth depth;
    uint64_t next;                /* number of the next batch */
    struct wb_batch *batch;       /* the current one, or NULL */
    struct wb_batch_pages *pages; /* of it; NULL if they are unpacked one by one, for this stream alone */
    struct wb_store_unpacker *unpacker;
    size_t at, to;  /* pages of the batch that are still to be returned */
    size_t damaged; /* damaged pages of the batch that are still to be reported */
    struct wb_page page;
    struct wb_store_parcel parcel; /* what was returned */
    size_t first;                  /* the page of the batch with which the last supply began */
};

/* ---- members ------------------------------------------------------------------------------------- */

/* Gives back the current batch. Called with the lock. */
static void let_go(struct carousel_member *m)
{
    WB_CHECK(wb_is_locked(&m->carousel->mutex));
    wb_batch_pages_unref(m->pages);
    wb_batch_unref(m->batch);
    m->pages = NULL;
    m->batch = NULL;
    m->at = m->to = m->damaged = 0;
}

/*
 * Does something useful while others decompress what this member needs: reads or decompresses a later batch. Called
 * with the lock, and returns true if it has given that up meanwhile; false if there was nothing to do. Whatever goes
 * wrong concerns those who need that batch: they try again.
 */
static bool work_ahead(struct carousel_member *m)
{
    WB_CHECK(wb_is_locked(&m->carousel->mutex));
    struct wb_carousel *c = m->carousel;

    for (uint64_t n = m->next < c->first ? c->first : m->next + 1; n < c->end; n++) {
        struct wb_batch *batch = wb_carousel_batch(c, n);
        if (n > m->next + AHEAD_MAX)
            return false;
        if (batch->parcel.count && !batch->busy[m->depth] && !batch->pages[m->depth]) {
            (void)wb_carousel_unpack(m->carousel, batch, m->depth, m->unpacker);
            return true;
        }
    }
    if (c->reading || c->ended || c->end > m->next + AHEAD_MAX)
        return false;
    (void)wb_carousel_read(c);
    return true;
}

/* Finds the pages of the current batch, decompressed. Called with the lock. */
static int find_pages(struct carousel_member *m)
{
    WB_CHECK(wb_is_locked(&m->carousel->mutex));
    struct wb_batch *batch = m->batch;
    int err = 0;

    while (err == 0 && !batch->pages[m->depth]) {
        if (!batch->busy[m->depth])
            err = wb_carousel_unpack(m->carousel, batch, m->depth, m->unpacker);
        else if (!work_ahead(m))
            pthread_cond_wait(&m->carousel->changed, &m->carousel->mutex);
    }
    if (err < 0)
        return err;
    m->pages = batch->pages[m->depth];
    m->pages->refs++;
    batch->used[m->depth] = ++m->carousel->clock;
    return 0;
}

/* Which pages of the batch are wanted: all but those outside the places between which the member reads. */
static void find_range(struct carousel_member *m)
{
    WB_CHECK(m->batch->parcel.count > 0);
    const struct wb_store_parcel *parcel = &m->batch->parcel;
    const struct wb_store *store = m->carousel->store;

    m->at = 0;
    m->to = parcel->count;
    while (m->has_after && m->at < m->to &&
           wb_store_position_compare(store, &parcel->pages[m->at].position, &m->after) <= 0)
        m->at++;
    m->has_after = m->has_after && m->at == m->to; /* later batches are behind it */
    while (m->has_until && m->to > m->at) {
        int order = wb_store_position_compare(store, &parcel->pages[m->to - 1].position, &m->until);
        m->finished = m->finished || order >= 0;
        if (order <= 0)
            break;
        m->to--;
    }
}

/* Gets the next batch. Returns 1, 0 at the end, or an error. Called with the lock. */
static int next_batch(struct carousel_member *m)
{
    WB_CHECK(wb_is_locked(&m->carousel->mutex));
    struct wb_carousel *c = m->carousel;

    let_go(m);
    if (m->finished)
        return 0;
    while (m->next == c->end) {
        if (c->ended)
            return 0;
        int err = 0;
        if (c->reading)
            pthread_cond_wait(&c->changed, &c->mutex);
        else
            err = wb_carousel_read(c);
        if (err < 0)
            return err;
    }
    if (m->next < c->first)
        return wb_fail(WB_E_BUSY, "the stream is too slow for the scan that it shares");
    m->batch = wb_carousel_batch(c, m->next);
    m->batch->refs++;
    if (m->batch->damage.code < 0) {
        m->next++;
        return wb_error_restore(&m->batch->damage);
    }
    find_range(m);
    int err = 0;
    if (!m->ids && m->at < m->to && (c->users > 1 || m->parcels))
        err = find_pages(m);
    if (err < 0) {
        let_go(m);
        return err;
    }
    m->next++;
    m->damaged = m->pages ? m->pages->damaged : 0;
    return 1;
}

/* The next page of a batch that is unpacked for this member alone. Returns 1, or 0 if there is none left. */
static int next_alone(struct carousel_member *m, struct wb_supply *supply_out)
{
    WB_CHECK(m->at <= m->to && m->to <= m->batch->parcel.count);
    if (m->at == m->to)
        return 0;
    m->first = m->at++;
    bool facts = m->depth == WB_BATCH_FACTS;
    int err = (facts ? wb_store_unpacker_facts : wb_store_unpacker_page)(m->unpacker, m->first, &m->page);
    *supply_out = (struct wb_supply){.pages = &m->page, .count = err == 0, .bars = m->carousel->bars};
    return err < 0 ? err : 1;
}

/* The wanted pages of a batch that was decompressed for all, at once; then its damage. */
static int next_shared(struct carousel_member *m, struct wb_supply *supply_out)
{
    WB_CHECK(m->at <= m->to && m->to <= m->batch->parcel.count);
    const struct wb_batch_pages *pages = m->pages;
    size_t from = 0, to;

    while (from < pages->count && pages->entries[from] < m->at)
        from++;
    for (to = from; to < pages->count && pages->entries[to] < m->to;)
        to++;
    m->first = from;
    m->at = m->to;
    *supply_out = (struct wb_supply){.pages = pages->pages + from, .count = to - from, .bars = m->carousel->bars};
    if (m->parcels) {
        supply_out->parcel = &m->batch->parcel;
        supply_out->entries = pages->entries + from;
    }
    supply_out->memos = pages->memos;
    supply_out->memo = from;
    if (to > from)
        return 1;
    if (m->damaged == 0)
        return 0;
    m->damaged--;
    return wb_error_restore(&pages->why);
}

static int next_ids(struct carousel_member *m, struct wb_supply *supply_out)
{
    WB_CHECK(m->at <= m->to && m->to <= m->batch->parcel.count);
    if (m->at == m->to)
        return 0;
    m->first = m->at;
    m->parcel = m->batch->parcel;
    m->parcel.pages += m->at;
    m->parcel.count = m->to - m->at;
    m->at = m->to;
    *supply_out = (struct wb_supply){.count = m->parcel.count, .parcel = &m->parcel, .bars = m->carousel->bars};
    return 1;
}

static int member_next(struct wb_supplier *base, struct wb_supply *supply_out)
{
    struct carousel_member *m = (struct carousel_member *)base;
    int got = 0;

    WB_CHECK(m->magic == MEMBER_MAGIC);
    for (;;) {
        if (m->batch && m->batch->damage.code == 0)
            got = m->ids ? next_ids(m, supply_out) : m->pages ? next_shared(m, supply_out) : next_alone(m, supply_out);
        if (got != 0)
            return got;
        pthread_mutex_lock(&m->carousel->mutex);
        got = next_batch(m);
        pthread_mutex_unlock(&m->carousel->mutex);
        if (got > 0 && !m->ids && !m->pages && m->at < m->to) {
            int err = wb_store_unpacker_open(m->unpacker, &m->batch->parcel);
            if (err < 0)
                m->at = m->to;
            got = err < 0 ? err : 1;
        }
        if (got <= 0)
            return got;
    }
}

static void member_tell(const struct wb_supplier *base, size_t index, struct wb_store_position *position_out)
{
    const struct carousel_member *m = (const struct carousel_member *)base;
    size_t entry = m->pages ? m->pages->entries[m->first + index] : m->first + index;

    WB_CHECK(((const struct carousel_member *)base)->magic == MEMBER_MAGIC);
    WB_CHECK(m->batch && entry < m->batch->parcel.count);
    *position_out = m->batch->parcel.pages[entry].position;
}

static void leave(struct wb_carousel *c)
{
    struct wb_carousels *set = c->set;
    struct wb_carousel **at = &set->list;

    pthread_mutex_lock(&set->mutex);
    WB_CHECK(c->members > 0);
    bool last = --c->members == 0;
    while (last && *at != c)
        at = &(*at)->next;
    if (last)
        *at = c->next;
    pthread_mutex_unlock(&set->mutex);
    if (last)
        wb_carousel_free(c);
}

static void member_close(struct wb_supplier *base)
{
    struct carousel_member *m = (struct carousel_member *)base;

    WB_CHECK(m->magic == MEMBER_MAGIC);
    pthread_mutex_lock(&m->carousel->mutex);
    let_go(m);
    WB_CHECK(m->carousel->users > 0);
    m->carousel->users--;
    pthread_mutex_unlock(&m->carousel->mutex);
    leave(m->carousel);
    wb_store_unpacker_free(m->unpacker);
    m->magic = 0;
    wb_free(m);
}

static const struct wb_supplier_kind member_kind = {.next = member_next, .tell = member_tell, .close = member_close};

/* ---- joining ------------------------------------------------------------------------------------- */

/* Whether a carousel has the place after `after` in its window, or at its end; *number_out is the batch. */
static bool has_place(struct wb_carousel *c, const struct wb_store_position *after, uint64_t *number_out)
{
    WB_CHECK(wb_is_locked(&c->mutex));
    if (c->first == 0 &&
        (after ? !c->from_beginning && memcmp(&c->origin, after, sizeof *after) == 0 : c->from_beginning)) {
        *number_out = 0;
        return true;
    }
    for (uint64_t n = c->first; after && n < c->end; n++) {
        const struct wb_store_parcel *parcel = &wb_carousel_batch(c, n)->parcel;
        if (parcel->count && wb_store_position_compare(c->store, &parcel->pages[0].position, after) <= 0 &&
            wb_store_position_compare(c->store, &parcel->pages[parcel->count - 1].position, after) >= 0) {
            *number_out = n;
            return true;
        }
    }
    return false;
}

/* Attaches the member to a carousel, if that has what is asked for. */
static bool attach(struct carousel_member *m, struct wb_carousel *c, const struct wb_supply_request *request,
                   bool anywhere)
{
    bool found = false;

    WB_CHECK(wb_is_locked(&c->set->mutex) && !m->carousel);
    pthread_mutex_lock(&c->mutex);
    if (!anywhere || c->first == 0)
        found = has_place(c, request->after, &m->next);
    if (!found && anywhere && c->has_last && !c->ended) {
        found = m->base.has_start = true;
        m->base.start = c->last;
        m->next = c->end;
    }
    c->users += found;
    pthread_mutex_unlock(&c->mutex);
    if (found) {
        c->members++;
        m->carousel = c;
        m->base.shared = c->listed;
    }
    return found;
}

/* Finds a carousel for the member, or starts one. */
static int find_carousel(struct wb_carousels *set, struct carousel_member *m, const struct wb_supply_request *request,
                         bool share)
{
    bool anywhere = !request->after && !request->until;
    struct wb_carousel *c;
    int err = 0;

    pthread_mutex_lock(&set->mutex);
    for (int pass = 0; share && pass < 2 && !m->carousel; pass++) /* the place itself is better than any other */
        for (c = set->list; c && !m->carousel; c = c->next)
            if (c->listed && c->snapshot == request->snapshot && (pass == 0 || anywhere))
                attach(m, c, request, pass > 0);
    if (!m->carousel) {
        err = wb_carousel_new(set, request, share, &c);
        if (err == 0) {
            c->next = set->list;
            set->list = c;
            WB_CHECK(attach(m, c, request, false));
        }
    }
    pthread_mutex_unlock(&set->mutex);
    return err;
}

int wb_carousels_join(struct wb_carousels *set, const struct wb_supply_request *request, bool share,
                      struct wb_supplier **supplier_out)
{
    WB_CHECK(set->magic == WB_CAROUSELS_MAGIC);
    struct carousel_member *m = wb_alloc_zero(1, sizeof *m);

    *supplier_out = NULL;
    if (!m)
        return WB_E_NOMEM;
    m->magic = MEMBER_MAGIC;
    m->base.kind = &member_kind;
    m->has_after = request->after != NULL;
    m->has_until = request->until != NULL;
    m->after = request->after ? *request->after : (struct wb_store_position){{0}};
    m->until = request->until ? *request->until : (struct wb_store_position){{0}};
    m->parcels = request->parcels;
    m->ids = request->parcels && request->ids;
    m->depth = request->facts || request->parcels ? WB_BATCH_FACTS : WB_BATCH_PAGES;
    int err = wb_store_unpacker_new(&m->unpacker);
    if (err == 0)
        err = find_carousel(set, m, request, share && request->snapshot && !request->site.len);
    if (err < 0) {
        wb_store_unpacker_free(m->unpacker);
        wb_free(m);
        return err;
    }
    *supplier_out = &m->base;
    return 0;
}
