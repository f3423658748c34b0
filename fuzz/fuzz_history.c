/*
 * fuzz_history.c - arbitrary bytes as the past of a page (history_bytes.c). Whatever is accepted keeps the rules of
 * history.h, is the same after it has been written and read again, and can be added to, trimmed and looked at.
 */
#include "base/check.h"
#include "catalog/history.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same_version(const struct wb_history_version *a, const struct wb_history_version *b)
{
    return a->content == b->content && a->arrived == b->arrived && a->ceased == b->ceased &&
           wb_catalog_place_equal(&a->place, &b->place) && a->body_bytes == b->body_bytes &&
           a->stored_bytes == b->stored_bytes && a->status == b->status && a->ghost == b->ghost &&
           a->replaced == b->replaced && a->first == b->first && a->count == b->count;
}

/* What the rest of the store relies on. */
static void check_rules(const struct wb_history *history)
{
    size_t times = 0;

    WB_CHECK(history->versions.count > 0);
    for (size_t i = 0; i < history->versions.count; i++) {
        const struct wb_history_version *version = &history->versions.items[i];
        const int64_t *captures = history->times.items + version->first;
        WB_CHECK(version->first == times && version->count > 0);
        WB_CHECK(version->ghost == (i < history->ghosts));
        WB_CHECK(version->arrived > 0 && (version->ceased == 0 || version->ceased >= version->arrived));
        WB_CHECK(version->ceased > 0 || (i + 1 == history->versions.count && !version->ghost && !history->gone_ms));
        WB_CHECK(version->ceased == 0 || version->place.segment > 0);
        WB_CHECK(version->ghost || !version->replaced);
        if (i > history->ghosts)
            WB_CHECK(captures[0] >= captures[-1]);
        for (size_t k = 1; k < version->count; k++)
            WB_CHECK(captures[k] > captures[k - 1]);
        times += version->count;
    }
    WB_CHECK(times == history->times.count && times == history->epochs.count);
}

static void check_again(const struct wb_history *history, uint64_t site)
{
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_history again = {0};
    uint64_t site_again;

    WB_CHECK(wb_history_encode(history, site, &bytes) == 0);
    WB_CHECK(wb_history_decode(wb_buf_slice(&bytes), &again, &site_again) == 0);
    WB_CHECK(site_again == site && again.floor_ms == history->floor_ms && again.gone_ms == history->gone_ms &&
             again.ghosts == history->ghosts && again.versions.count == history->versions.count);
    WB_CHECK(again.times.count == history->times.count &&
             memcmp(again.times.items, history->times.items, again.times.count * sizeof *again.times.items) == 0 &&
             memcmp(again.epochs.items, history->epochs.items, again.epochs.count * sizeof *again.epochs.items) == 0);
    WB_CHECK(again.forgotten.count == history->forgotten.count);
    for (size_t i = 0; i < again.versions.count; i++)
        WB_CHECK(same_version(&again.versions.items[i], &history->versions.items[i]));
    wb_history_release(&again);
    wb_buf_release(&bytes);
}

/* Adds a capture before, inside and after what is there; then forgets everything that the latest version is not. */
static void use(struct wb_history *history)
{
    struct wb_history_version bytes = {.place = {1, 1, 64}, .status = 200, .body_bytes = 1, .stored_bytes = 1};
    struct wb_history_rule rule = {.held = (const uint64_t[]){3, 1000}, .held_count = 2, .now_ms = 1700000000000};
    int64_t times[] = {INT64_MIN + 1, history->times.items[history->times.count / 2], 1700000000000};
    struct wb_history_version *latest = wb_history_latest(history);
    enum wb_store_outcome outcome;
    struct wb_history rewound = {0};

    if (latest) /* its entry says where it is */
        latest->place = bytes.place;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        if (times[i] == INT64_MAX)
            continue;
        struct wb_history_capture capture = {.time_ms = times[i] + (i < 2),
                                             .content = 1 + i,
                                             .replaces = history->versions.items[0].content,
                                             .epoch = UINT64_MAX,
                                             .rule = &rule,
                                             .bytes = &bytes};
        WB_CHECK(wb_history_add(history, &capture, &outcome) == 0);
        WB_CHECK(wb_history_at(history, times[i]) != NULL);
        check_rules(history);
    }
    (void)wb_history_in(history, 3);
    WB_CHECK(wb_history_copy(history, &rewound) == 0 && wb_history_rewind(&rewound, 3) == 0);
    wb_history_release(&rewound);
    wb_history_trim(history, &rule);
    latest = wb_history_latest(history);
    WB_CHECK(history->versions.count == history->ghosts + (latest != NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_history history = {0};
    uint64_t site;

    if (wb_history_decode(wb_slice((const char *)data, size), &history, &site) == 0) {
        check_rules(&history);
        check_again(&history, site);
        use(&history);
    }
    wb_history_release(&history);
    return 0;
}
