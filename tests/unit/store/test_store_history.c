/*
 * test_store_history.c - the rules of versions (history.h) against those of the twin, on one page at a
 * time and without any disk: so that when a whole trace fails, it is not because of these. Also: what
 * was encoded can be decoded, and damaged bytes never cause more than a refusal.
 */
#include "catalog/history.h"
#include "os/clock.h"
#include "store/repo.h"
#include "store_support.h"
#include "twin_state.h"

enum { CONTENTS = 7, HELD_MAX = 4 };

/* What the page was when an epoch was first held. */
struct held_form {
    uint64_t epoch;
    bool there;
    size_t content;
    WB_VEC(int64_t) times;
};

struct life {
    uint64_t chance;
    struct wb_twin_page page;
    struct wb_history history;
    struct made made[CONTENTS];
    struct wb_twin_record *contents[CONTENTS];
    uint64_t hashes[CONTENTS];
    struct wb_twin_rule rule;
    WB_VEC(struct held_form) forms;
    int64_t now_ms;
    uint64_t epoch;
    bool print;
};

/* Three contents; of the first one three beginnings, of which one differs in its last byte; and one that was cut. */
static void make_contents(struct life *l)
{
    static const struct spec specs[CONTENTS] = {{.size = 20, .content = 1, .variant = 1},
                                                {.size = 11, .content = 2, .variant = 1},
                                                {.size = 12, .content = 3, .variant = 1},
                                                {.size = 20, .content = 1, .variant = 1, .cut = 8},
                                                {.size = 20, .content = 1, .variant = 1, .cut = 20},
                                                {.size = 20, .content = 1, .variant = 1, .cut = 3},
                                                {.size = 9, .content = 2, .variant = 1, .cut = 1}};

    for (uint32_t i = 0; i < CONTENTS; i++) {
        make_page(&specs[i], &l->made[i]);
        if (i == 5)
            l->made[i].body.ptr[16] ^= 1;
        l->contents[i] = wb_twin_record_new(&l->made[i].page);
        l->hashes[i] = wb_history_content(&l->made[i].page, 7);
    }
}

static size_t content_of(const struct life *l, const struct wb_twin_record *record)
{
    size_t i = 0;

    while (l->contents[i] != record)
        i++;
    return i;
}

static size_t content_with(const struct life *l, uint64_t hash)
{
    size_t i = 0;

    while (i < CONTENTS && l->hashes[i] != hash)
        i++;
    return i;
}

static void print_both(const struct life *l)
{
    fprintf(stderr, "  twin: floor %lld gone %lld, %zu forgotten\n", (long long)l->page.floor_ms,
            (long long)l->page.gone_ms, l->page.forgotten.count);
    for (size_t i = 0; i < l->page.versions.count; i++) {
        const struct wb_twin_version *v = &l->page.versions.items[i];
        fprintf(stderr, "    %s%s%zu [%llu, %llu]:", v->ghost ? "ghost " : "", v->replaced ? "replaced " : "",
                content_of(l, v->record), (unsigned long long)v->arrived, (unsigned long long)v->ceased);
        for (size_t j = 0; j < v->times.count; j++)
            fprintf(stderr, " %lld", (long long)v->times.items[j]);
        fprintf(stderr, "\n");
    }
    fprintf(stderr, "  history: floor %lld gone %lld, %zu forgotten\n", (long long)l->history.floor_ms,
            (long long)l->history.gone_ms, l->history.forgotten.count);
    for (size_t i = 0; i < l->history.versions.count; i++) {
        const struct wb_history_version *v = &l->history.versions.items[i];
        fprintf(stderr, "    %s%s%zu [%llu, %llu]:", v->ghost ? "ghost " : "", v->replaced ? "replaced " : "",
                content_with(l, v->content), (unsigned long long)v->arrived, (unsigned long long)v->ceased);
        for (size_t j = v->first; j < v->first + v->count; j++)
            fprintf(stderr, " %lld(%llu)", (long long)l->history.times.items[j],
                    (unsigned long long)l->history.epochs.items[j]);
        fprintf(stderr, "\n");
    }
}

static bool same_version(const struct life *l, const struct wb_twin_version *a, const struct wb_history_version *b)
{
    bool same = a->ghost == b->ghost && a->replaced == b->replaced && a->arrived == b->arrived &&
                a->ceased == b->ceased && content_of(l, a->record) == content_with(l, b->content) &&
                a->times.count == b->count;

    for (size_t i = 0; same && i < b->count; i++)
        same = a->times.items[i] == l->history.times.items[b->first + i];
    return same;
}

static bool has_version(const struct life *l, const struct wb_twin_version *version)
{
    for (size_t i = 0; i < l->history.versions.count; i++)
        if (same_version(l, version, &l->history.versions.items[i]))
            return true;
    return false;
}

/* Those that are no ghosts must be in the same order. */
static bool same_order(const struct life *l)
{
    size_t next = l->history.ghosts;

    for (size_t i = 0; i < l->page.versions.count; i++)
        if (!l->page.versions.items[i].ghost &&
            !same_version(l, &l->page.versions.items[i], &l->history.versions.items[next++]))
            return false;
    return next == l->history.versions.count;
}

static bool same_forgotten(const struct life *l)
{
    bool same = l->page.forgotten.count == l->history.forgotten.count;

    for (size_t i = 0; same && i < l->page.forgotten.count; i++)
        same = content_of(l, l->page.forgotten.items[i]) == content_with(l, l->history.forgotten.items[i]);
    return same;
}

static void compare(const struct life *l)
{
    bool same = l->page.versions.count == l->history.versions.count && l->page.floor_ms == l->history.floor_ms &&
                l->page.gone_ms == l->history.gone_ms && same_forgotten(l);

    for (size_t i = 0; same && i < l->page.versions.count; i++)
        same = has_version(l, &l->page.versions.items[i]);
    same = same && same_order(l);
    if (!same)
        print_both(l);
    must(same);
}

/* ---- what is held ------------------------------------------------------------------------------------- */

static void hold(struct life *l)
{
    const struct wb_twin_version *latest = wb_twin_latest(&l->page);
    struct held_form form = {.epoch = l->epoch, .there = latest != NULL};

    for (size_t i = 0; latest && i < latest->times.count; i++)
        must(wb_vec_push(&form.times, latest->times.items[i]) == 0);
    form.content = latest ? content_of(l, latest->record) : 0;
    must(wb_vec_push(&l->rule.held, l->epoch) == 0);
    must(wb_vec_push(&l->forms, form) == 0);
}

static void let_go(struct life *l, size_t at)
{
    wb_vec_release(&l->forms.items[at].times);
    for (; at + 1 < l->rule.held.count; at++) {
        l->rule.held.items[at] = l->rule.held.items[at + 1];
        l->forms.items[at] = l->forms.items[at + 1];
    }
    l->rule.held.count--;
    l->forms.count--;
}

/* What an epoch shows is what it showed when it was first held: content, times and number of captures. */
static void check_form(const struct life *l, const struct held_form *form, const struct wb_history *history,
                       const struct wb_history_version *shown)
{
    size_t seen = 0;
    bool same = (shown != NULL) == form->there && (!shown || content_with(l, shown->content) == form->content);

    for (size_t i = 0; same && shown && i < shown->count; i++)
        if (history->epochs.items[shown->first + i] <= form->epoch) {
            same = seen < form->times.count && history->times.items[shown->first + i] == form->times.items[seen];
            seen++;
        }
    same = same && seen == form->times.count;
    if (!same) {
        fprintf(stderr, "epoch %llu shows something else than before, which was %s%zu at",
                (unsigned long long)form->epoch, form->there ? "" : "nothing, not ", form->content);
        for (size_t i = 0; i < form->times.count; i++)
            fprintf(stderr, " %lld", (long long)form->times.items[i]);
        fprintf(stderr, history == &l->history ? "\n" : " (rewound: %zu versions)\n", history->versions.count);
        print_both(l);
    }
    must(same);
}

static void check_held(const struct life *l)
{
    for (size_t i = 0; i < l->forms.count; i++) {
        const struct held_form *form = &l->forms.items[i];
        struct wb_history rewound = {0};
        const struct wb_history_version *shown = wb_history_in(&l->history, form->epoch);
        check_form(l, form, &l->history, shown);
        if (shown)
            must(wb_history_last_in(&l->history, shown, form->epoch) == form->times.items[form->times.count - 1]);
        must_ok(wb_history_copy(&l->history, &rewound));
        must_ok(wb_history_rewind(&rewound, form->epoch));
        check_form(l, form, &rewound, wb_history_latest(&rewound));
        wb_history_release(&rewound);
    }
}

/* ---- a life ------------------------------------------------------------------------------------------- */

static int64_t some_time(struct life *l)
{
    switch (chance_below(&l->chance, 6)) {
    case 0: /* by a wrong clock */
        return l->now_ms + WB_STORE_AHEAD_MS + 1 + (int64_t)chance_below(&l->chance, 5);
    case 1:
    case 2:
        return l->now_ms - (int64_t)chance_below(&l->chance, 40);
    default:
        return ++l->now_ms;
    }
}

static int read_content(void *context, struct wb_pageid id, const struct wb_history_version *version,
                        struct wb_page *page_out, struct wb_buf *mem_out)
{
    const struct life *l = context;

    (void)id, (void)mem_out;
    *page_out = l->made[content_with(l, version->content)].page;
    return 0;
}

/* Adds a put to a history. */
static enum wb_store_outcome put_history(struct life *l, size_t content, int64_t time_ms, bool hollow)
{
    const struct wb_history_rule rule = {l->rule.policy, l->rule.held.items, l->rule.held.count, l->now_ms};
    struct wb_page page = l->made[content].page;
    struct wb_history_version bytes = {.content = l->hashes[content],
                                       .place = {hollow ? 0 : 1, (uint16_t)content, 64},
                                       .body_bytes = page.body.len,
                                       .status = page.status};
    struct wb_history_capture capture = {
        .time_ms = time_ms, .content = bytes.content, .epoch = l->epoch, .rule = &rule, .bytes = &bytes};
    enum wb_store_outcome outcome;

    page.time_ms = time_ms;
    int covered = wb_repo_rival(&l->history, &page, read_content, l, &capture.replaces);
    must(covered >= 0);
    if (covered)
        return WB_STORE_PUT_KNOWN;
    must_ok(wb_history_add(&l->history, &capture, &outcome));
    return outcome;
}

static enum wb_store_outcome put_twin(struct life *l, size_t content, int64_t time_ms)
{
    return wb_twin_covered(&l->page, time_ms, l->contents[content])
               ? WB_STORE_PUT_KNOWN
               : wb_twin_insert(&l->page, &l->rule, time_ms, l->contents[content], true, l->epoch);
}

static bool is_hollow(const struct life *l, size_t content, int64_t time_ms)
{
    for (size_t i = 0; i < l->page.versions.count; i++) {
        const struct wb_twin_version *version = &l->page.versions.items[i];
        for (size_t k = 0; version->hollow && k < version->times.count; k++)
            if (version->times.items[k] == time_ms && version->record == l->contents[content])
                return true;
    }
    return false;
}

static void add(struct life *l, size_t content, int64_t time_ms)
{
    enum wb_store_outcome outcome = put_twin(l, content, time_ms);
    /* Under a policy that keeps no past, its bytes are not stored. */
    bool hollow = outcome == WB_STORE_PUT_PAST && is_hollow(l, content, time_ms);
    enum wb_store_outcome found = put_history(l, content, time_ms, hollow);

    if (l->print || found != outcome)
        fprintf(stderr, "epoch %llu: add %zu at %lld: outcome %d, the twin's %d\n", (unsigned long long)l->epoch,
                content, (long long)time_ms, found, outcome);
    if (found != outcome)
        print_both(l);
    must(found == outcome);
    compare(l);
}

static void trim(struct life *l)
{
    struct wb_history_rule rule = {l->rule.policy, l->rule.held.items, l->rule.held.count, l->now_ms};

    l->rule.now_ms = l->now_ms;
    wb_twin_trim(&l->page, &l->rule);
    wb_history_trim(&l->history, &rule);
    if (l->print)
        fprintf(stderr, "trim with policy %d %llu at %lld\n", l->rule.policy.keep,
                (unsigned long long)l->rule.policy.value, (long long)l->now_ms);
    compare(l);
}

static void end(struct life *l)
{
    int64_t gone_ms = some_time(l);

    if (!wb_twin_latest(&l->page))
        return;
    if (l->print)
        fprintf(stderr, "epoch %llu: gone at %lld\n", (unsigned long long)l->epoch, (long long)gone_ms);
    l->rule.now_ms = l->now_ms;
    wb_twin_end(&l->page, gone_ms, l->epoch, &l->rule);
    wb_history_end(&l->history, gone_ms, l->epoch);
    trim(l);
}

static void choose_policy(struct life *l)
{
    l->rule.policy.keep = (enum wb_store_keep)chance_below(&l->chance, 4);
    l->rule.policy.value = 1 + chance_below(&l->chance, l->rule.policy.keep == WB_STORE_KEEP_COUNT ? 4 : 30);
}

static void round_trip(struct life *l)
{
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_history decoded = {0};
    uint64_t site = 0;

    if (l->history.versions.count == 0)
        return;
    must_ok(wb_history_encode(&l->history, 42, &bytes));
    must(wb_history_decode(wb_buf_slice(&bytes), &decoded, &site) == 0);
    must(site == 42);
    for (size_t i = 0; i < decoded.versions.count && i < l->history.versions.count; i++)
        decoded.versions.items[i].content = decoded.versions.items[i].content ? decoded.versions.items[i].content
                                                                              : l->history.versions.items[i].content;
    struct life copy = *l;
    copy.history = decoded;
    compare(&copy);
    bytes.ptr[chance_below(&l->chance, bytes.len)] ^= (char)(1 << chance_below(&l->chance, 8));
    wb_history_decode(wb_slice(bytes.ptr, chance_below(&l->chance, bytes.len + 1)), &decoded, &site);
    wb_history_release(&decoded);
    wb_buf_release(&bytes);
}

static void live(struct life *l)
{
    l->epoch++;
    l->rule.now_ms = l->now_ms;
    for (uint64_t ops = 1 + chance_below(&l->chance, 4); ops > 0; ops--)
        if (chance_one_in(&l->chance, 8))
            end(l);
        else {
            int64_t time_ms = some_time(l);
            l->rule.now_ms = l->now_ms;
            add(l, chance_below(&l->chance, CONTENTS), time_ms);
        }
    if (chance_one_in(&l->chance, 30))
        choose_policy(l);
    trim(l);
    round_trip(l);
    check_held(l);
    if (chance_one_in(&l->chance, 4) && l->rule.held.count < HELD_MAX)
        hold(l);
    if (chance_one_in(&l->chance, 6) && l->rule.held.count)
        let_go(l, chance_below(&l->chance, l->rule.held.count));
}

static void begin_life(struct life *l, uint64_t chance)
{
    *l = (struct life){.chance = chance,
                       .now_ms = 1000,
                       .page.floor_ms = INT64_MIN,
                       .history.floor_ms = INT64_MIN,
                       .print = getenv("WEBBASE_TRACE")};
    make_contents(l);
}

static void end_life(struct life *l)
{
    while (l->forms.count)
        let_go(l, 0);
    wb_vec_release(&l->forms);
    wb_vec_release(&l->rule.held);
    wb_twin_page_release(&l->page);
    wb_history_release(&l->history);
    for (size_t i = 0; i < CONTENTS; i++) {
        wb_twin_record_unref(l->contents[i]);
        made_release(&l->made[i]);
    }
}

static void test_lives(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (unsigned i = 0; i < test_rounds(400); i++) {
        struct life l;
        begin_life(&l, seed + i);
        if (l.print)
            fprintf(stderr, "life %llu\n", (unsigned long long)l.chance);
        choose_policy(&l);
        for (unsigned j = 0; j < 100; j++)
            live(&l);
        end_life(&l);
    }
}

/* ---- the order of arrival ------------------------------------------------------------------------------ */

enum { CAPTURES = 12, TIMES = 5 };

struct arrival {
    int64_t time_ms;
    size_t content;
};

/* Another order, in which those of one time come in the same order as before. */
static void shuffle(struct arrival *list, uint64_t *chance)
{
    for (unsigned i = 0; i < 100; i++) {
        size_t at = chance_below(chance, CAPTURES - 1);
        struct arrival moved = list[at];
        if (moved.time_ms == list[at + 1].time_ms)
            continue;
        list[at] = list[at + 1];
        list[at + 1] = moved;
    }
}

static void arrive(struct life *l, const struct arrival *list)
{
    struct wb_history_rule rule = {l->rule.policy, l->rule.held.items, l->rule.held.count, l->now_ms};

    for (size_t i = 0; i < CAPTURES; i++) {
        l->epoch += chance_one_in(&l->chance, 2) || l->epoch == 0;
        put_history(l, list[i].content, list[i].time_ms, false);
        wb_history_trim(&l->history, &rule);
    }
}

/* The same versions, except for the epochs in which they arrived. */
static bool same_versions(const struct wb_history *a, const struct wb_history *b, bool newest)
{
    bool same = a->versions.count == b->versions.count && a->times.count == b->times.count &&
                memcmp(a->times.items, b->times.items, a->times.count * sizeof *a->times.items) == 0;

    WB_CHECK(a->versions.count > 0 && b->versions.count > 0);
    if (newest) /* how often it was seen before may be forgotten with what was seen at the same time */
        return a->versions.count == 1 && b->versions.count == 1 &&
               a->versions.items[0].content == b->versions.items[0].content &&
               a->times.items[a->times.count - 1] == b->times.items[b->times.count - 1];
    for (size_t i = 0; same && i < a->versions.count; i++)
        same = a->versions.items[i].content == b->versions.items[i].content &&
               a->versions.items[i].count == b->versions.items[i].count;
    return same;
}

/* Only the captures decide, and among those of one time their order; to bring them all once more changes nothing. */
static void test_orders(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (unsigned i = 0; i < test_rounds(2000); i++) {
        struct arrival list[CAPTURES], other[CAPTURES];
        struct life a, b;
        begin_life(&a, seed + i);
        begin_life(&b, seed - i);
        a.rule.policy.keep = b.rule.policy.keep = i % 2 ? WB_STORE_KEEP_ALL : WB_STORE_KEEP_NEWEST;
        for (size_t k = 0; k < CAPTURES; k++)
            list[k] =
                (struct arrival){100 + (int64_t)chance_below(&a.chance, TIMES), chance_below(&a.chance, CONTENTS)};
        memcpy(other, list, sizeof list);
        shuffle(other, &b.chance);
        arrive(&a, list);
        arrive(&b, other);
        for (unsigned round = 0; round < 3; round++) {
            if (!same_versions(&a.history, &b.history, i % 2 == 0)) {
                fprintf(stderr, "seed %llu, round %u of %u\n", (unsigned long long)seed, round, i);
                for (size_t k = 0; k < CAPTURES; k++)
                    fprintf(stderr, "  %zu at %lld, and %zu at %lld\n", list[k].content, (long long)list[k].time_ms,
                            other[k].content, (long long)other[k].time_ms);
                print_both(&a);
                print_both(&b);
                must(false); /* the order of arrival decides */
            }
            arrive(&b, round ? list : other);
        }
        end_life(&a);
        end_life(&b);
    }
}

/* Of many captures of one version few stay; but an epoch that is held goes on showing those that it has shown. */
static void test_thinned(void **state)
{
    struct life l;

    (void)state;
    begin_life(&l, 1);
    for (int64_t i = 0; i < 60; i++) {
        struct wb_history_rule rule = {l.rule.policy, l.rule.held.items, l.rule.held.count, l.now_ms};
        l.epoch++;
        put_history(&l, 0, 1 + i, false);
        wb_history_trim(&l.history, &rule);
        if (i == 29)
            must(wb_vec_push(&l.rule.held, l.epoch) == 0);
    }
    const struct wb_history_version *latest = wb_history_latest(&l.history);
    assert_int_equal(latest->count, 2 * WB_HISTORY_CAPTURES_MAX - 1);
    assert_int_equal(wb_history_last_in(&l.history, latest, 30), 30);
    must_ok(wb_history_rewind(&l.history, 30));
    assert_int_equal(wb_history_latest(&l.history)->count, WB_HISTORY_CAPTURES_MAX);
    assert_int_equal(l.history.times.items[0], 1);
    end_life(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lives), cmocka_unit_test(test_orders),
                                       cmocka_unit_test(test_thinned)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
