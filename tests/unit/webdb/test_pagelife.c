/*
 * test_pagelife.c - random lives of a page, compared with a model.
 *
 * The model keeps all events and answers each question by looking through them ("the last visit that brought an
 * answer"), whereas the code keeps a state. The lives are cut into merges at random places, edits and rows pass through
 * their bytes, and some edits come twice.
 */
#include "fold_support.h"

enum { EVENTS_MAX = 64 };

/* Everything that has happened to a page since it became one. */
struct model {
    enum model_state { NOTHING, TARGET, PAGE, BARRED } state;
    int64_t first_seen_ms;
    struct wb_pageedit events[EVENTS_MAX]; /* those that counted, oldest first */
    size_t count;
};

#define BIT(name) (1u << WB_OUTCOME_##name)
enum {
    BODIES = BIT(STORED) | BIT(DUPLICATE) | BIT(TRUNCATED) | BIT(UNCHANGED),
    SEEN = BODIES | BIT(REDIRECT),
    ANSWERS = SEEN | BIT(GONE),
    FAILURES = BIT(ERROR) | BIT(LATER),
};

static bool is_visit(const struct wb_pageedit *e, unsigned outcomes)
{
    return e->kind == WB_PAGEEDIT_VISIT && 1u << e->visit.outcome & outcomes;
}

/* The last of the first n events that is a visit with one of the outcomes; -1: none. */
static int last_visit(const struct model *m, size_t n, unsigned outcomes)
{
    while (n > 0 && !is_visit(&m->events[n - 1], outcomes))
        n--;
    return (int)n - 1;
}

/* The visit whose content the page has after n events; -1: it has none. */
static int content_after(const struct model *m, size_t n)
{
    while (n > 0) {
        const struct wb_pageedit *e = &m->events[--n];
        if (is_visit(e, BIT(REDIRECT)))
            return -1;
        if (is_visit(e, BODIES) && e->visit.has_content)
            return (int)n;
    }
    return -1;
}

static int64_t time_of(const struct model *m, int at)
{
    return at < 0 ? 0 : m->events[at].time_ms;
}

static unsigned failures_before(const struct model *m, size_t n)
{
    unsigned failures = 0;

    for (; n > 0; n--) {
        if (is_visit(&m->events[n - 1], FAILURES))
            failures++;
        else if (is_visit(&m->events[n - 1], ANSWERS | BIT(ROBOTS)))
            break;
    }
    return failures;
}

static int64_t hint_before(const struct model *m, size_t n)
{
    int64_t hint = 0;

    for (size_t i = 0; i < n; i++) {
        const struct wb_pageedit *e = &m->events[i];
        if (e->kind == WB_PAGEEDIT_KNOWN && e->hint_ms > hint && e->hint_ms > time_of(m, last_visit(m, i, SEEN)))
            hint = e->hint_ms;
    }
    return hint;
}

static unsigned signals_of(const struct model *m)
{
    unsigned signals = 0;

    for (size_t i = (size_t)(last_visit(m, m->count, ANSWERS) + 1); i < m->count; i++) {
        const struct wb_pageedit *e = &m->events[i];
        if (e->kind == WB_PAGEEDIT_PUSH && e->count == WB_PUSH_CHANGED)
            signals++;
        else if (e->kind == WB_PAGEEDIT_KNOWN && time_of(m, last_visit(m, i, SEEN)) &&
                 hint_before(m, i + 1) > hint_before(m, i))
            signals++;
    }
    return signals;
}

static unsigned push_flags(const struct model *m)
{
    for (size_t n = m->count; n > 0; n--) {
        const struct wb_pageedit *e = &m->events[n - 1];
        if (e->kind == WB_PAGEEDIT_PUSH && e->count == WB_PUSH_CHANGED)
            return WB_PAGE_PUSHED;
        if (e->kind == WB_PAGEEDIT_PUSH)
            return WB_PAGE_PUSHED | WB_PAGE_PUSHED_GONE;
        if (is_visit(e, ANSWERS | BIT(ROBOTS)) || (is_visit(e, FAILURES) && failures_before(m, n) >= 3))
            return 0;
    }
    return 0;
}

static unsigned flags_of(const struct model *m)
{
    unsigned flags = push_flags(m);
    int answer = last_visit(m, m->count, ANSWERS), heard = last_visit(m, m->count, ANSWERS | BIT(ROBOTS));

    if (m->state == TARGET)
        return WB_PAGE_TARGET;
    if (m->state == BARRED)
        return WB_PAGE_BARRED;
    for (size_t i = 0; i < m->count; i++)
        if ((m->events[i].kind == WB_PAGEEDIT_KNOWN && m->events[i].wanted) ||
            (m->events[i].kind == WB_PAGEEDIT_PUSH && m->events[i].count == WB_PUSH_CHANGED))
            flags |= WB_PAGE_WANTED;
    flags |= answer >= 0 && is_visit(&m->events[answer], BIT(GONE)) ? WB_PAGE_GONE : 0;
    return flags | (heard >= 0 && is_visit(&m->events[heard], BIT(ROBOTS)) ? WB_PAGE_BLOCKED : 0);
}

static int64_t expires_of(const struct model *m)
{
    int64_t expires = 0;

    if (content_after(m, m->count) < 0)
        return 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct wb_pageedit *e = &m->events[i];
        int content = content_after(m, i + 1);
        uint32_t days = content < 0 ? 0 : m->events[content].visit.lifetime;
        if (content < 0)
            expires = 0;
        else if (is_visit(e, BODIES))
            expires = days ? e->time_ms + days * WB_DAY_MS : 0;
        else if (is_visit(e, BIT(GONE)))
            expires = e->time_ms;
        else if (is_visit(e, FAILURES) && expires && expires < e->time_ms + WB_DAY_MS)
            expires = e->time_ms + WB_DAY_MS;
    }
    return expires;
}

static void check_history(const struct model *m, const struct wb_webdb_page *page)
{
    uint32_t visits = 0, changes = 0;
    size_t fetches = 0;
    int64_t changed_ms = 0;

    for (size_t i = 0; i < m->count; i++) {
        const struct wb_pageedit *e = &m->events[i];
        int before = content_after(m, i);
        if (!is_visit(e, BODIES))
            continue;
        bool changed = before >= 0 && e->visit.has_content &&
                       memcmp(m->events[before].visit.md5, e->visit.md5, WB_MD5_BYTES) != 0;
        visits += before >= 0;
        changes += changed;
        if (e->visit.has_content && (changed || before < 0))
            changed_ms = e->time_ms;
    }
    assert_same_number("visits", page->history.visits, visits);
    assert_same_number("changes", page->history.changes, changes);
    assert_same_number("last_changed_ms", page->last_changed_ms, changed_ms);
    for (size_t n = m->count; n > 0 && fetches < WB_VISITLOG_FETCHES; n--)
        if (m->events[n - 1].kind == WB_PAGEEDIT_VISIT) {
            const struct wb_visitlog_fetch *fetch = &page->history.fetches[page->history.fetch_count - ++fetches];
            assert_true(fetches <= page->history.fetch_count);
            assert_same_number("fetch", fetch->time_ms, m->events[n - 1].time_ms);
            assert_same_number("fetch", fetch->outcome, m->events[n - 1].visit.outcome);
        }
    assert_same_number("fetches", page->history.fetch_count, (int64_t)fetches);
}

static unsigned depth_of(const struct model *m)
{
    unsigned depth = UINT16_MAX;

    for (size_t i = 0; i < m->count; i++) {
        const struct wb_pageedit *e = &m->events[i];
        unsigned told = e->kind == WB_PAGEEDIT_KNOWN   ? e->depth
                        : e->kind == WB_PAGEEDIT_VISIT ? e->visit.depth.links
                        : i == 0                       ? 0
                                                       : UINT16_MAX;
        depth = told < depth ? told : depth;
    }
    return m->count ? depth : 0;
}

/* When it was last asked for because its lifetime ends, with no answer or reprieve since. */
static int64_t asked_of(const struct model *m)
{
    int64_t asked_ms = 0;

    for (size_t n = m->count; n > 0; n--) {
        const struct wb_pageedit *e = &m->events[n - 1];
        struct model upto = *m;
        upto.count = n - 1;
        if (e->kind == WB_PAGEEDIT_ASK && e->time_ms > asked_ms)
            asked_ms = e->time_ms;
        if (is_visit(e, ANSWERS) ||
            (is_visit(e, FAILURES) && expires_of(&upto) && expires_of(&upto) < e->time_ms + WB_DAY_MS))
            break;
    }
    return asked_ms;
}

static void check_page(const struct model *m, const struct wb_pagefold *fold)
{
    const struct wb_webdb_page *page = &fold->page;
    int content = content_after(m, m->count), located = last_visit(m, m->count, ANSWERS);

    assert_int_equal(fold->exists, m->state != NOTHING);
    if (!fold->exists)
        return;
    assert_same_number("flags", page->flags, flags_of(m));
    assert_same_number("first_seen_ms", page->first_seen_ms, m->first_seen_ms);
    assert_same_number("depth", page->depth, depth_of(m));
    assert_same_number("last_tried_ms", page->last_tried_ms, time_of(m, last_visit(m, m->count, ~0u)));
    assert_same_number("last_seen_ms", page->last_seen_ms, time_of(m, last_visit(m, m->count, SEEN)));
    assert_same_number("failures", page->failures, failures_before(m, m->count));
    assert_same_number("hint_ms", page->hint_ms, hint_before(m, m->count));
    assert_same_number("signals", page->signals, signals_of(m));
    assert_same_number("expires_ms", page->expires_ms, expires_of(m));
    assert_same_number("asked_ms", page->asked_ms, asked_of(m));
    assert_same_number("has_content", page->has_content, content >= 0);
    if (content >= 0) {
        assert_memory_equal(page->md5, m->events[content].visit.md5, WB_MD5_BYTES);
        assert_same_number("bytes", (int64_t)page->bytes, (int64_t)m->events[content].visit.bytes);
    }
    assert_same_number("location", page->location.len > 0,
                       located >= 0 && is_visit(&m->events[located], BIT(REDIRECT)));
    check_history(m, page);
    /* Always true: */
    assert_true(page->last_seen_ms == 0 || page->first_seen_ms <= page->last_seen_ms);
    assert_true(page->last_seen_ms <= page->last_tried_ms && (page->has_content || page->expires_ms == 0));
    assert_true(page->failures == 0 || page->last_tried_ms != 0);
}

static void become(struct model *m, const struct wb_pageedit *edit, enum model_state what)
{
    if (m->state == NOTHING || (m->state == TARGET && what == PAGE && edit->time_ms < m->first_seen_ms))
        m->first_seen_ms = edit->time_ms;
    m->state = what;
    m->count = 0;
}

static void note(struct model *m, const struct wb_pageedit *edit)
{
    if (m->state != PAGE)
        become(m, edit, PAGE);
    assert_true(m->count < EVENTS_MAX);
    m->events[m->count++] = *edit;
}

/* Decides whether an edit counts, and whether it starts a new state. */
static void tell_model(struct model *m, const struct wb_pageedit *edit)
{
    int64_t tried_ms = time_of(m, last_visit(m, m->count, ~0u)), seen_ms = time_of(m, last_visit(m, m->count, SEEN));

    switch (edit->kind) {
    case WB_PAGEEDIT_TARGET:
        if (m->state == NOTHING)
            become(m, edit, TARGET);
        break;
    case WB_PAGEEDIT_KNOWN:
        if (m->state != BARRED)
            note(m, edit);
        break;
    case WB_PAGEEDIT_VISIT:
        if ((m->state == PAGE || m->state == BARRED) && edit->time_ms < m->first_seen_ms)
            m->first_seen_ms = edit->time_ms;
        if (m->state != BARRED && (m->state != PAGE || edit->time_ms > tried_ms))
            note(m, edit);
        break;
    case WB_PAGEEDIT_PUSH:
        if (m->state != BARRED && (edit->count == WB_PUSH_CHANGED || m->state == PAGE) &&
            (seen_ms == 0 || edit->time_ms > seen_ms))
            note(m, edit);
        break;
    case WB_PAGEEDIT_ASK:
        if (m->state == PAGE && content_after(m, m->count) >= 0 && edit->time_ms > tried_ms)
            note(m, edit);
        break;
    case WB_PAGEEDIT_EXPUNGE:
        if (edit->count == WB_EXPUNGE_BARRED && m->state != BARRED)
            become(m, edit, BARRED);
        if (edit->count == WB_EXPUNGE_EXPIRED && m->state == PAGE && edit->time_ms >= seen_ms)
            become(m, edit, TARGET);
        break;
    default: /* rows that are added directly are not part of this model */
        break;
    }
}

static struct wb_pageedit make_event(uint64_t *chance, int64_t time_ms)
{
    static const enum wb_pageedit_kind kinds[] = {WB_PAGEEDIT_TARGET, WB_PAGEEDIT_KNOWN, WB_PAGEEDIT_KNOWN,
                                                  WB_PAGEEDIT_PUSH, WB_PAGEEDIT_ASK};
    struct wb_pageedit edit = {.time_ms = time_ms, .kind = WB_PAGEEDIT_VISIT, .url = WB_SLICE_LIT(URL)};
    uint64_t rare = chance_below(chance, 60);

    if (rare == 0) {
        edit.kind = WB_PAGEEDIT_EXPUNGE;
        edit.count = WB_EXPUNGE_BARRED;
    } else if (rare <= 2) {
        edit.kind = WB_PAGEEDIT_EXPUNGE;
        edit.count = WB_EXPUNGE_EXPIRED;
    } else if (rare < 30) {
        edit.kind = kinds[chance_below(chance, COUNT(kinds))];
        edit.depth = (uint16_t)chance_below(chance, 9);
        edit.wanted = chance_below(chance, 2);
        edit.hint_ms = chance_below(chance, 2) ? time_ms - (int64_t)chance_below(chance, 10 * WB_DAY_MS) : 0;
        edit.count = 1 + (uint32_t)chance_below(chance, 2);
    } else {
        struct wb_edit_page *visit = &edit.visit;
        *visit = (struct wb_edit_page){.outcome = (uint8_t)(1 + chance_below(chance, 9)),
                                       .depth.links = (uint16_t)chance_below(chance, 9), .status = 200};
        visit->has_content =
            1u << visit->outcome & BODIES && (visit->outcome != WB_OUTCOME_UNCHANGED || chance_below(chance, 2));
        if (visit->has_content)
            visit->md5[3] = (uint8_t)chance_below(chance, 3);
        visit->bytes = visit->has_content ? 1 + chance_below(chance, 1000) : 0;
        visit->lifetime = (uint32_t)chance_below(chance, 4) * 3;
        if (visit->outcome == WB_OUTCOME_REDIRECT)
            visit->location = WB_SLICE_LIT("http://example.org/elsewhere");
    }
    return edit;
}

/* The same edit again changes nothing, except that every push counts. */
static void tell_again(struct bench *b, const struct wb_pageedit *edit)
{
    struct wb_buf before = WB_BUF_INIT, after = WB_BUF_INIT;

    if (edit->kind == WB_PAGEEDIT_PUSH || !b->fold.exists)
        return;
    assert_int_equal(wb_pagerow_encode(&b->fold.page, &before), 0);
    apply(b, edit);
    assert_int_equal(wb_pagerow_encode(&b->fold.page, &after), 0);
    assert_true(wb_slice_equal(wb_buf_slice(&before), wb_buf_slice(&after)));
    wb_buf_release(&before);
    wb_buf_release(&after);
}

/* If an edit has touched nothing, the row must be the same. */
static void tell_fold(struct bench *b, const struct wb_pageedit *edit)
{
    struct wb_buf before = WB_BUF_INIT, after = WB_BUF_INIT;
    bool existed = b->fold.exists, touched = b->fold.touched;

    b->fold.touched = false;
    if (existed)
        assert_int_equal(wb_pagerow_encode(&b->fold.page, &before), 0);
    apply(b, edit);
    if (b->fold.exists)
        assert_int_equal(wb_pagerow_encode(&b->fold.page, &after), 0);
    if (!b->fold.touched)
        assert_true(existed == b->fold.exists && wb_slice_equal(wb_buf_slice(&before), wb_buf_slice(&after)));
    b->fold.touched = touched || b->fold.touched;
    wb_buf_release(&before);
    wb_buf_release(&after);
}

static void test_lives(void **state)
{
    uint64_t chance = test_seed();
    struct bench b = {0};
    static struct model model;

    (void)state;
    for (unsigned life = 0; life < 3000; life++) {
        int64_t time_ms = T(0);
        model = (struct model){0};
        begin(&b);
        for (unsigned i = 0; i < EVENTS_MAX; i++) {
            /* Mostly later, sometimes at the same time, or from long ago but in a later merge. */
            time_ms += chance_below(&chance, 5) ? (int64_t)chance_below(&chance, 3 * WB_DAY_MS) : 0;
            struct wb_pageedit edit = make_event(
                &chance,
                chance_below(&chance, 10) ? time_ms : time_ms - (int64_t)chance_below(&chance, 20 * WB_DAY_MS));
            /* Several contents of one moment are compared with the twin of webdb (webdb_twin.h). */
            edit.time_ms += edit.kind == WB_PAGEEDIT_VISIT &&
                            edit.time_ms == time_of(&model, last_visit(&model, model.count, ~0u));
            tell_fold(&b, &edit);
            tell_model(&model, &edit);
            check_page(&model, &b.fold);
            if (chance_below(&chance, 3) == 0)
                tell_again(&b, &edit);
            if (chance_below(&chance, 6) == 0)
                merge(&b);
        }
    }
    release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
