/*
 * test_store_history.c - the rules of versions (history.h) against those of the twin, on one page at a
 * time and without any disk: so that when a whole trace fails, it is not because of these. Also: what
 * was encoded can be decoded, and damaged bytes never cause more than a refusal.
 */
#include "store/catalog/history.h"
#include "os/clock.h"
#include "store_support.h"
#include "twin_state.h"

enum { CONTENTS = 4, HELD_MAX = 4 };

struct life {
    uint64_t chance;
    struct wb_twin_page page;
    struct wb_history history;
    struct wb_twin_record *contents[CONTENTS];
    struct wb_twin_rule rule;
    int64_t now_ms;
    uint64_t epoch;
    bool print;
};

static void make_contents(struct life *l)
{
    for (uint32_t i = 0; i < CONTENTS; i++) {
        struct made made;
        make_page(&(struct spec){.size = 10 + i, .content = i + 1, .variant = 1}, &made);
        l->contents[i] = wb_twin_record_new(&made.page);
        made_release(&made);
    }
}

static size_t content_of(const struct life *l, const struct wb_twin_record *record)
{
    size_t i = 0;

    while (l->contents[i] != record)
        i++;
    return i;
}

static void print_both(const struct life *l)
{
    fprintf(stderr, "  twin: floor %lld gone %lld\n", (long long)l->page.floor_ms, (long long)l->page.gone_ms);
    for (size_t i = 0; i < l->page.versions.count; i++) {
        const struct wb_twin_version *v = &l->page.versions.items[i];
        fprintf(stderr, "    %s%zu [%llu, %llu]:", v->ghost ? "ghost " : "", content_of(l, v->record),
                (unsigned long long)v->arrived, (unsigned long long)v->ceased);
        for (size_t j = 0; j < v->times.count; j++)
            fprintf(stderr, " %lld", (long long)v->times.items[j]);
        fprintf(stderr, "\n");
    }
    fprintf(stderr, "  history: floor %lld gone %lld\n", (long long)l->history.floor_ms, (long long)l->history.gone_ms);
    for (size_t i = 0; i < l->history.versions.count; i++) {
        const struct wb_history_version *v = &l->history.versions.items[i];
        fprintf(stderr, "    %s%llu [%llu, %llu]:", v->ghost ? "ghost " : "", (unsigned long long)v->content - 1,
                (unsigned long long)v->arrived, (unsigned long long)v->ceased);
        for (size_t j = v->first; j < v->first + v->count; j++)
            fprintf(stderr, " %lld", (long long)l->history.times.items[j]);
        fprintf(stderr, "\n");
    }
}

static bool same_version(const struct life *l, const struct wb_twin_version *a, const struct wb_history_version *b)
{
    bool same = a->ghost == b->ghost && a->arrived == b->arrived && a->ceased == b->ceased &&
                content_of(l, a->record) + 1 == b->content && a->times.count == b->count;

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

static void compare(const struct life *l)
{
    bool same = l->page.versions.count == l->history.versions.count && l->page.floor_ms == l->history.floor_ms &&
                l->page.gone_ms == l->history.gone_ms;

    for (size_t i = 0; same && i < l->page.versions.count; i++)
        same = has_version(l, &l->page.versions.items[i]);
    if (!same)
        print_both(l);
    must(same);
}

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

static void add(struct life *l, size_t content, int64_t time_ms)
{
    struct wb_twin_version *version;
    struct wb_history_version bytes = {
        .content = content + 1, .place = {1, (uint16_t)content, 64}, .body_bytes = 10, .status = 200};
    enum wb_store_outcome outcome =
                              wb_twin_insert(&l->page, &l->rule, time_ms, l->contents[content], l->epoch, &version),
                          found;

    if (version && version->hollow)
        bytes.place.segment = 0; /* under this policy the bytes of the past are not stored */
    must_ok(wb_history_add(&l->history, &(struct wb_history_capture){time_ms, content + 1, l->epoch, l->now_ms, &bytes},
                           &found));
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
    if (chance_one_in(&l->chance, 4) && l->rule.held.count < HELD_MAX)
        must(wb_vec_push(&l->rule.held, l->epoch) == 0);
    if (chance_one_in(&l->chance, 6) && l->rule.held.count) {
        size_t at = chance_below(&l->chance, l->rule.held.count);
        for (; at + 1 < l->rule.held.count; at++)
            l->rule.held.items[at] = l->rule.held.items[at + 1];
        l->rule.held.count--;
    }
}

static void test_lives(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (unsigned i = 0; i < test_rounds(400); i++) {
        struct life l = {.chance = seed + i,
                         .now_ms = 1000,
                         .page.floor_ms = INT64_MIN,
                         .history.floor_ms = INT64_MIN,
                         .print = getenv("WEBBASE_TRACE")};
        if (l.print)
            fprintf(stderr, "life %llu\n", (unsigned long long)l.chance);
        make_contents(&l);
        choose_policy(&l);
        for (unsigned j = 0; j < 100; j++)
            live(&l);
        while (l.page.versions.count)
            wb_twin_version_drop(&l.page, 0);
        wb_vec_release(&l.page.versions);
        wb_vec_release(&l.rule.held);
        wb_history_release(&l.history);
        for (size_t j = 0; j < CONTENTS; j++)
            wb_twin_record_unref(l.contents[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lives)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
