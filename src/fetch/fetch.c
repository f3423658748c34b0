/*
 * fetch.c - many requests at once: which are under way, which can be used again, how much memory they hold.
 *
 *   wb_fetch_start() -> [transfer from the pool] -> libcurl, driven by fetch_loop.c -> ended -> done() -> pool
 *
 * It does no HTTP itself. The only decision about a response that is made here is to cut the longest ones when
 * all bodies together take too much memory.
 */
#include "fetch/fetch.h"

#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "fetch/fetch_loop.h"
#include "fetch/fetch_probe.h"
#include "fetch/fetch_transfer.h"
#include "os/clock.h"
#include "os/curlstart.h"

#define MAGIC 0x46455443u
/* How many transfers are kept for later requests, with their small buffers. Easy handles are never kept. */
#define IDLE_MAX 64

struct wb_fetcher {
    unsigned magic;
    bool calling;                     /* we are inside a callback of the user */
    struct wb_fetch_options options;  /* with defaults filled in; the texts are copies */
    struct wb_fetch_loop loop;
    CURL *model;                      /* the easy handles of all requests are copies of it */
    struct wb_list busy, idle;        /* of struct wb_fetch_transfer */
    unsigned busy_count, idle_count, doomed_count;
    size_t charged;                   /* bytes that the bodies under way hold */
    struct event *pace_timer;         /* when responses that the pace holds up may go on; NULL: there is no pace */
};

/* ---- the memory budget ------------------------------------------------------------------------------ */

static struct wb_fetch_transfer *transfer_of(struct wb_list_node *node)
{
    return node ? WB_CONTAINER_OF(node, struct wb_fetch_transfer, node) : NULL;
}

/* Transfers under way, from the first to the last. NULL after it. */
static struct wb_fetch_transfer *first_busy(const struct wb_fetcher *fetcher)
{
    return transfer_of(fetcher->busy.first);
}

static struct wb_fetch_transfer *next_busy(const struct wb_fetch_transfer *transfer)
{
    return transfer_of(transfer->node.next);
}

static void discharge(struct wb_fetcher *fetcher, struct wb_fetch_transfer *transfer)
{
    WB_CHECK(fetcher->charged >= transfer->charged);
    fetcher->charged -= transfer->charged;
    transfer->charged = 0;
}

/* Marks a transfer that must end as soon as libcurl has returned: it cannot be ended from inside libcurl. */
static void doom(struct wb_fetcher *fetcher, struct wb_fetch_transfer *transfer)
{
    if (!transfer->doomed)
        fetcher->doomed_count++;
    transfer->doomed = true;
}

static struct wb_fetch_transfer *longest(struct wb_fetcher *fetcher)
{
    struct wb_fetch_transfer *found = first_busy(fetcher);

    for (struct wb_fetch_transfer *t = found; t; t = next_busy(t))
        if (t->charged > found->charged)
            found = t;
    return found;
}

bool wb_fetcher_charge(struct wb_fetcher *fetcher, struct wb_fetch_transfer *transfer)
{
    fetcher->charged += transfer->body.cap - transfer->charged;
    transfer->charged = transfer->body.cap;
    while (fetcher->charged > fetcher->options.memory_max) {
        struct wb_fetch_transfer *cut = longest(fetcher);
        WB_CHECK(cut->charged > 0);
        discharge(fetcher, cut);
        if (cut == transfer)
            return false;
        cut->truncated = true;
        doom(fetcher, cut);
    }
    return true;
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

static void unlink_busy(struct wb_fetcher *fetcher, struct wb_fetch_transfer *transfer)
{
    WB_CHECK(fetcher->busy_count > 0);
    wb_list_remove(&fetcher->busy, &transfer->node);
    fetcher->busy_count--;
}

static void shelve(struct wb_fetcher *fetcher, struct wb_fetch_transfer *transfer)
{
    wb_fetch_transfer_clear(transfer);
    if (fetcher->idle_count >= IDLE_MAX) {
        wb_fetch_transfer_free(transfer);
        return;
    }
    wb_list_prepend(&fetcher->idle, &transfer->node);
    fetcher->idle_count++;
}

static void finish(struct wb_fetcher *fetcher, struct wb_fetch_transfer *transfer, CURLcode code)
{
    struct wb_fetch_result result;

    discharge(fetcher, transfer);
    if (transfer->doomed) {
        fetcher->doomed_count--;
        wb_fetch_transfer_abandon(transfer);
    }
    wb_fetch_transfer_result(transfer, code, fetcher->options.ratio_max, &result);
    curl_multi_remove_handle(fetcher->loop.multi, transfer->easy);
    unlink_busy(fetcher, transfer);
    fetcher->calling = true;
    transfer->done(transfer->context, &result);
    fetcher->calling = false;
    wb_buf_release(&result.body);
    shelve(fetcher, transfer);
}

static void finish_doomed(struct wb_fetcher *fetcher)
{
    struct wb_fetch_transfer *transfer = first_busy(fetcher);

    while (transfer && !transfer->doomed)
        transfer = next_busy(transfer);
    WB_CHECK(transfer);
    finish(fetcher, transfer, CURLE_OK);
}

static void starve(void *context, CURL *easy)
{
    char *private = NULL;

    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
    struct wb_fetch_transfer *transfer = (struct wb_fetch_transfer *)(void *)private;
    wb_fetch_transfer_decide(transfer, WB_FETCH_MEMORY, "out of memory");
    doom(context, transfer);
}

/* Ends everything under way and makes a new multi handle, because libcurl cannot use the old one any more. */
static void abandon(struct wb_fetcher *fetcher)
{
    for (struct wb_fetch_transfer *transfer = first_busy(fetcher); transfer; transfer = next_busy(transfer)) {
        curl_multi_remove_handle(fetcher->loop.multi, transfer->easy);
        starve(fetcher, transfer->easy);
    }
    (void)wb_fetch_loop_renew(&fetcher->loop); /* if that fails, the next request tries again */
}

static void look_for_ends(void *context)
{
    struct wb_fetcher *fetcher = context;
    CURLMsg *message;
    int left;

    if (fetcher->loop.broken)
        abandon(fetcher);
    while ((message = curl_multi_info_read(fetcher->loop.multi, &left)) != NULL) {
        char *private = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
        WB_CHECK(message->msg == CURLMSG_DONE && private);
        finish(fetcher, (struct wb_fetch_transfer *)(void *)private, message->data.result);
    }
    while (fetcher->doomed_count > 0)
        finish_doomed(fetcher);
}

/* ---- the pace ---------------------------------------------------------------------------------------------------- */

/* The time limit of a transfer: what it was held up does not count. While it is held up, there is none. */
static void set_time_limit(const struct wb_fetcher *fetcher, const struct wb_fetch_transfer *transfer)
{
    int64_t whole_ms = (int64_t)fetcher->options.timeout_ms + transfer->held_ns / 1000000;
    int64_t limit_ms = transfer->held_since_ns ? 0 : whole_ms;

    (void)curl_easy_setopt(transfer->easy, CURLOPT_TIMEOUT_MS, (long)limit_ms); /* cannot fail: it sets a number */
}

static void wait_for_pace(const struct wb_fetcher *fetcher)
{
    int64_t wait_us = wb_fetch_pace_wait_ns(fetcher->options.pace) / 1000 + 1;
    struct timeval tv = {wait_us / 1000000, wait_us % 1000000};

    event_add(fetcher->pace_timer, &tv);
}

bool wb_fetcher_hold(struct wb_fetcher *fetcher, struct wb_fetch_transfer *transfer)
{
    if (!fetcher->pace_timer || wb_fetch_pace_wait_ns(fetcher->options.pace) == 0)
        return false;
    transfer->held_since_ns = wb_clock_mono_ns();
    set_time_limit(fetcher, transfer);
    if (!evtimer_pending(fetcher->pace_timer, NULL))
        wait_for_pace(fetcher);
    return true;
}

void wb_fetcher_received(struct wb_fetcher *fetcher, size_t bytes)
{
    if (fetcher->options.pace)
        wb_fetch_pace_charge(fetcher->options.pace, bytes);
}

/* The transfer that has been held up for longest; NULL: none is. */
static struct wb_fetch_transfer *longest_held(struct wb_fetcher *fetcher)
{
    struct wb_fetch_transfer *found = NULL;

    for (struct wb_fetch_transfer *t = first_busy(fetcher); t; t = next_busy(t))
        if (t->held_since_ns && !t->doomed && (!found || t->held_since_ns < found->held_since_ns))
            found = t;
    return found;
}

/* Lets transfers go on, the longest held up first, until the pace is reached again. */
static void on_pace(evutil_socket_t fd, short what, void *context)
{
    struct wb_fetcher *fetcher = context;
    struct wb_fetch_transfer *transfer = NULL;

    (void)fd, (void)what;
    while (wb_fetch_pace_wait_ns(fetcher->options.pace) == 0 && (transfer = longest_held(fetcher))) {
        transfer->held_ns += wb_clock_mono_ns() - transfer->held_since_ns;
        transfer->held_since_ns = 0;
        set_time_limit(fetcher, transfer);
        /* This passes on what libcurl has kept. If that ends the transfer, libcurl does not report it by itself. */
        CURLcode code = curl_easy_pause(transfer->easy, CURLPAUSE_CONT);
        if (code == CURLE_OK)
            continue;
        wb_fetch_transfer_decide(transfer, WB_FETCH_OTHER, curl_easy_strerror(code)); /* unless we ended it ourselves */
        doom(fetcher, transfer);
    }
    while (fetcher->doomed_count > 0)
        finish_doomed(fetcher);
    if (longest_held(fetcher))
        wait_for_pace(fetcher);
}

/* ---- the fetcher ----------------------------------------------------------------------------------------------- */

static int copy_text(const char **text)
{
    if (*text && !(*text = wb_strdup(*text)))
        return WB_E_NOMEM;
    return 0;
}

static int set_fetcher_options(struct wb_fetch_options *to, const struct wb_fetch_options *from)
{
    *to = *from;
    to->timeout_ms = to->timeout_ms ? to->timeout_ms : 30000;
    to->connect_ms = to->connect_ms ? to->connect_ms : 10000;
    to->body_max = to->body_max ? to->body_max : (size_t)16 << 20;
    to->head_max = to->head_max ? to->head_max : (size_t)64 << 10;
    to->ratio_max = to->ratio_max ? to->ratio_max : 200;
    to->memory_max = to->memory_max ? to->memory_max : (size_t)128 << 20;
    to->connections_max = to->connections_max ? to->connections_max : 1000;
    to->user_agent = to->user_agent ? to->user_agent : "webbase/" WB_VERSION;

    const char **texts[] = {&to->user_agent, &to->proxy, &to->ca_file};
    int err = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (err < 0)
            *texts[i] = NULL;
        else
            err = copy_text(texts[i]);
    }
    return err;
}

int wb_fetcher_new(struct event_base *base, const struct wb_fetch_options *options, struct wb_fetcher **fetcher_out)
{
    struct wb_fetcher *fetcher = NULL;
    int err;

    *fetcher_out = NULL;
    err = wb_curl_start();
    if (err < 0)
        goto done;
    fetcher = wb_alloc_zero(1, sizeof(*fetcher));
    if (!fetcher) {
        err = WB_E_NOMEM;
        goto done;
    }
    fetcher->magic = MAGIC;
    err = set_fetcher_options(&fetcher->options, options);
    if (err < 0)
        goto done;
    fetcher->loop.after = look_for_ends;
    fetcher->loop.starved = starve;
    fetcher->loop.context = fetcher;
    fetcher->loop.connections_max = fetcher->options.connections_max;
    err = wb_fetch_loop_init(&fetcher->loop, base);
    if (err == 0 && options->pace && options->pace->rate) {
        fetcher->pace_timer = event_new(base, -1, 0, on_pace, fetcher);
        err = fetcher->pace_timer ? 0 : wb_fail_nomem();
    }
    if (err == 0)
        err = wb_fetch_transfer_model(&fetcher->options, &fetcher->model);
    if (err < 0)
        goto done;
    *fetcher_out = fetcher;
    fetcher = NULL;
done:
    wb_fetcher_free(fetcher);
    return err;
}

void wb_fetcher_free(struct wb_fetcher *fetcher)
{
    if (!fetcher)
        return;
    WB_CHECK(fetcher->magic == MAGIC && !fetcher->calling);
    while (fetcher->busy.first) {
        struct wb_fetch_transfer *transfer = first_busy(fetcher);
        curl_multi_remove_handle(fetcher->loop.multi, transfer->easy);
        unlink_busy(fetcher, transfer);
        wb_fetch_transfer_free(transfer);
    }
    while (fetcher->idle.first)
        wb_fetch_transfer_free(transfer_of(wb_list_pop(&fetcher->idle)));
    wb_fetch_loop_release(&fetcher->loop);
    if (fetcher->pace_timer)
        event_free(fetcher->pace_timer);
    curl_easy_cleanup(fetcher->model);
    wb_free((char *)(uintptr_t)fetcher->options.user_agent);
    wb_free((char *)(uintptr_t)fetcher->options.proxy);
    wb_free((char *)(uintptr_t)fetcher->options.ca_file);
    wb_free(fetcher);
}

static int take_transfer(struct wb_fetcher *fetcher, struct wb_fetch_transfer **transfer_out)
{
    *transfer_out = transfer_of(wb_list_pop(&fetcher->idle));
    if (*transfer_out) {
        fetcher->idle_count--;
        return 0;
    }
    return wb_fetch_transfer_new(fetcher, transfer_out);
}

int wb_fetch_start(struct wb_fetcher *fetcher, const struct wb_fetch_request *request, wb_fetch_done done,
                   void *context)
{
    struct wb_fetch_transfer *transfer = NULL;
    int err;

    WB_CHECK(fetcher->magic == MAGIC);
    err = fetcher->loop.multi ? 0 : wb_fetch_loop_renew(&fetcher->loop);
    if (err == 0)
        err = take_transfer(fetcher, &transfer);
    if (err < 0)
        goto done;
    err = wb_fetch_transfer_equip(transfer, fetcher->model, &fetcher->loop);
    if (err == 0)
        err = wb_fetch_transfer_prepare(transfer, request, &fetcher->options);
    if (err < 0)
        goto done;
    transfer->done = done;
    transfer->context = context;
    if (curl_multi_add_handle(fetcher->loop.multi, transfer->easy) != CURLM_OK) {
        err = wb_fail_nomem();
        goto done;
    }
    wb_list_prepend(&fetcher->busy, &transfer->node);
    fetcher->busy_count++;
    transfer = NULL;
done:
    if (transfer)
        shelve(fetcher, transfer);
    if (err < 0)
        (void)wb_curl_starved(); /* reported by err; it must not explain a later failure */
    return err;
}

void wb_fetch_stop(struct wb_fetcher *fetcher, bool (*wanted)(void *context), const char *words)
{
    WB_CHECK(fetcher->magic == MAGIC && !fetcher->calling);
    for (struct wb_fetch_transfer *transfer = first_busy(fetcher); transfer; transfer = next_busy(transfer)) {
        if (transfer->doomed || !wanted(transfer->context))
            continue;
        wb_fetch_transfer_decide(transfer, WB_FETCH_STOPPED, words);
        doom(fetcher, transfer);
    }
    while (fetcher->doomed_count > 0)
        finish_doomed(fetcher);
}

void wb_fetcher_shift(struct wb_fetcher *fetcher, int64_t by_ms)
{
    WB_CHECK(fetcher->magic == MAGIC && !fetcher->calling);
    for (struct wb_fetch_transfer *transfer = first_busy(fetcher); transfer; transfer = next_busy(transfer)) {
        transfer->sent_ms += by_ms;
        transfer->heard_ms += transfer->heard_ms ? by_ms : 0;
    }
}

unsigned wb_fetcher_busy(const struct wb_fetcher *fetcher)
{
    return fetcher->busy_count;
}
