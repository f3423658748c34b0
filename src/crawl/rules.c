/*
 * rules.c - robots.txt of a site: asking for it, following its redirects, reading what came.
 *
 *   2xx           its rules, for 24 hours or as long as Cache-Control says
 *   3xx           up to five hops, also to other sites; the rules are those of the site that was asked
 *   4xx           no rules
 *   5xx, 429, no answer   the whole site waits
 *
 * A hop to another site is a request to that site and keeps its interval: it is made as a
 * favour by the other site where this process holds it, and otherwise the other site is
 * borrowed from the dispenser for it.
 */
#include "crawl/worker.h"
#include "base/hash.h"
#include "base/mem.h"

#include <stdio.h>

enum { STUCK_MS = 300, STUCK_TRIES_MAX = 100, RULES_LIFE_MIN_MS = 60 * 1000 };

struct wb_favour {
    struct wb_favour *next;
    uint64_t asker;      /* key of the site whose robots.txt it is */
    char *asker_name;
    char *url;
    uint8_t hops;
    unsigned tries;
    bool https;
    char name[];         /* of the site to be asked */
};

static void free_favour(struct wb_favour *favour)
{
    wb_free(favour->asker_name);
    wb_free(favour->url);
    wb_free(favour);
}

/* ---- what came -------------------------------------------------------------------------------- */

static void set_delays(struct wb_worker *w, struct wb_site *site)
{
    int64_t asked = site->robots ? wb_robots_delay_ms(site->robots) : -1;
    int64_t max = w->plan->options->crawl_delay_max_ms;

    site->page_delay_ms = site->delay_ms;
    if (asked > max) {
        wb_event_warn(w, "%s: asks for a crawl-delay of %g s; it is given %g s (--max-crawl-delay)", site->name,
                      (double)asked / 1000, (double)max / 1000);
        asked = max;
    }
    if (asked > site->page_delay_ms)
        site->page_delay_ms = asked;
}

static int add_sitemaps(struct wb_worker *w, struct wb_site *site, unsigned flags)
{
    struct wb_item item = {.kind = WB_ITEM_SITEMAP, .depth = 1};
    struct wb_slice line;
    int err = 0;

    if (w->plan->options->ignore_sitemaps || w->plan->options->max_depth == 0)
        return 0;
    for (size_t i = 0; err >= 0 && i < WB_SITEMAPS_MAX && wb_robots_sitemap(site->robots, i, &line); i++)
        err = wb_links_follow(w, site, line, &item, flags);
    return err < 0 ? err : 0;
}

/* status 0, 5xx, 429: there is nothing to go by. */
static bool is_unreachable(uint16_t status)
{
    return status == 0 || status >= 500 || status == 429;
}

static int take_rules(struct wb_worker *w, struct wb_site *site, const struct wb_edit_rules *rules, unsigned flags)
{
    int err = 0;

    wb_robots_free(site->robots);
    site->robots = NULL;
    site->rules_digest = 0;
    if (rules->status >= 200 && rules->status < 300) {
        err = wb_robots_parse(rules->text, w->plan->agent, &site->robots);
        site->rules_digest = wb_hash64(rules->text.ptr, rules->text.len) | 1;
    }
    if (err < 0)
        return err;
    site->rules_state = WB_RULES_KNOWN;
    site->rules_status = rules->status;
    site->rules_expires_ms = rules->expires_ms;
    set_delays(w, site);
    return site->robots ? add_sitemaps(w, site, flags) : 0;
}

int wb_rules_restore(struct wb_worker *w, struct wb_site *site, const struct wb_edit_rules *rules)
{
    int64_t now = wb_worker_now(w);

    /* One that holds for longer than any can was read when the clock was wrong. */
    if (is_unreachable(rules->status) || rules->expires_ms <= now || rules->expires_ms > now + WB_RULES_LIFE_MS)
        return 0;
    return take_rules(w, site, rules, WB_ADMIT_QUIET);
}

/* Until when it holds: a day, or less where the server says so. */
static int64_t expiry(struct wb_worker *w, struct wb_slice head)
{
    struct wb_slice value;
    uint64_t age = 0;
    int64_t life = WB_RULES_LIFE_MS;

    if (wb_http_header(head, "cache-control", &value)) {
        static const char word[] = "max-age=";
        for (size_t i = 0; i + sizeof word - 1 < value.len; i++) {
            if (!wb_slice_equal_nocase(wb_slice(value.ptr + i, sizeof word - 1), WB_SLICE_LIT(word)))
                continue;
            size_t at = i + sizeof word - 1, len = 0;
            while (at + len < value.len && len < 9 && value.ptr[at + len] >= '0' && value.ptr[at + len] <= '9')
                len++;
            if (wb_slice_to_u64(wb_slice(value.ptr + at, len), &age) && (int64_t)age * 1000 < life)
                life = (int64_t)age * 1000;
            break;
        }
    }
    return wb_worker_now(w) + (life < RULES_LIFE_MIN_MS ? RULES_LIFE_MIN_MS : life);
}

static void rules_came(struct wb_worker *w, struct wb_site *site, struct wb_slice url, struct wb_fetch_result *result, const char *reason)
{
    struct wb_slice text = wb_buf_slice(&result->body), value;
    struct wb_edit edit = {.kind = WB_EDIT_RULES};
    struct wb_fetch_event event = {.url = url, .result = "rules", .status = result->status, .ms = result->took_ms, .bytes = text.len,
                                   .time_ms = result->sent_ms, .error = (int)result->error, .message = result->error ? result->message : NULL};
    bool unreachable = result->error || is_unreachable(result->status);
    int64_t until = 0;

    wb_buf_clear(&site->rules_url);
    site->rules_hops = 0;
    if (text.len > WB_ROBOTS_BYTES_MAX)
        text.len = WB_ROBOTS_BYTES_MAX;
    edit.rules = (struct wb_edit_rules){.status = unreachable && result->status < 400 ? 0 : result->status, .reason = wb_slice_str(reason),
                                        .text = result->status / 100 == 2 ? text : WB_SLICE_EMPTY, .expires_ms = expiry(w, result->head)};
    int err = wb_visit_note(w, site, &edit);
    wb_event_fetch(w, &event);
    if (err == 0 && !unreachable)
        err = take_rules(w, site, &edit.rules, 0);
    if (err < 0) {
        wb_worker_fail(w, err);
        return;
    }
    if (!unreachable) {
        site->attempts = 0;
        wb_dispatch_later(w, site);
        return;
    }
    if (wb_http_header(result->head, "retry-after", &value))
        wb_http_retry_after(value, wb_worker_now(w), &until);
    char words[96];
    if (result->error)
        snprintf(words, sizeof words, "robots.txt: %s", wb_fetch_error_word(result->error));
    else
        snprintf(words, sizeof words, "robots.txt: status %u", result->status);
    wb_visit_back_off(w, site, until, words);
}

/* ---- hops ---------------------------------------------------------------------------------------- */

static void rules_unreachable(struct wb_worker *w, struct wb_site *site, struct wb_slice url, const char *reason)
{
    struct wb_fetch_result result = {.error = WB_FETCH_OTHER, .message = reason, .sent_ms = wb_worker_now(w)};

    rules_came(w, site, url, &result, reason);
}

/* A robots.txt that leads nowhere counts as one that is not there (RFC 9309, 2.3.1.2). */
static void rules_absent(struct wb_worker *w, struct wb_site *site, struct wb_slice url, const char *reason)
{
    struct wb_fetch_result result = {.status = 404, .sent_ms = wb_worker_now(w)};

    rules_came(w, site, url, &result, reason);
}

static int hold_guest(void *context, const struct wb_site_row *row)
{
    struct wb_worker *w = context;
    struct wb_site *guest = NULL;
    int err = wb_site_new(row, wb_worker_now(w), &guest);

    if (err < 0)
        return err;
    guest->guest = true;
    guest->guest_state = row->before;
    guest->delay_ms = guest->page_delay_ms = row->delay_ms >= 0 ? row->delay_ms : w->plan->options->delay_ms;
    guest->address_expires_ms = 0;
    /* Where its crawler died, only the time of its last record tells of its last request. */
    if (guest->trail_ms + guest->delay_ms > guest->next_ms)
        guest->next_ms = guest->trail_ms + guest->delay_ms;
    err = wb_worker_hold(w, guest);
    if (err < 0)
        wb_site_free(guest, w->spill);
    return err;
}

/* Gives the favour to the site that must be asked; false where another process holds it now. */
static bool place_favour(struct wb_worker *w, struct wb_favour *favour)
{
    struct wb_slice name = wb_slice_str(favour->name);
    struct wb_site *other = wb_worker_site(w, name);

    if (!other) {
        int err = wb_dispenser_borrow(w->dispenser, name, wb_slice_str(favour->https ? "https" : "http"), wb_slice_str(w->owner),
                                      WB_PATIENCE_MS, hold_guest, w);
        if (err == WB_E_BUSY)
            return false;
        other = wb_worker_site(w, name);
        if (err < 0 || !other) {
            wb_worker_fail(w, err < 0 ? err : WB_E_NOMEM);
            return false;
        }
    }
    favour->next = other->favours;
    other->favours = favour;
    if (!other->in_flight)
        wb_dispatch_later(w, other);
    return true;
}

static int ask_elsewhere(struct wb_worker *w, struct wb_site *asker, const struct wb_url *url, struct wb_slice name, uint8_t hops)
{
    struct wb_favour *favour = wb_alloc_zero(1, sizeof *favour + name.len + 1);
    struct wb_slice href = wb_url_href(url);

    if (!favour)
        return WB_E_NOMEM;
    memcpy(favour->name, name.ptr, name.len);
    favour->asker = asker->key;
    favour->asker_name = wb_strdup(asker->name);
    favour->url = wb_strndup(href.ptr, href.len);
    favour->hops = hops;
    favour->https = wb_slice_equal(wb_url_scheme(url), WB_SLICE_LIT("https"));
    if (!favour->asker_name || !favour->url) {
        free_favour(favour);
        return WB_E_NOMEM;
    }
    asker->away = true;
    if (!place_favour(w, favour)) {
        favour->next = w->stuck;
        w->stuck = favour;
    }
    return 0;
}

/* True where the answer was a redirect that is being followed. */
static bool follow_hop(struct wb_worker *w, struct wb_site *asker, struct wb_slice from, uint8_t hops, const struct wb_fetch_result *result)
{
    struct wb_slice location;
    int err;

    if (result->error || result->status < 300 || result->status > 399 || !wb_http_header(result->head, "location", &location))
        return false;
    if (hops >= WB_RULES_HOPS_MAX || wb_url_parse(from, NULL, &w->base_url) < 0 || wb_url_parse(location, &w->base_url, &w->target) < 0 ||
        !wb_url_is_http(&w->target) || wb_url_key(&w->target, &w->key) < 0)
        return false;
    struct wb_slice name = wb_key_site(wb_buf_slice(&w->key));
    if (wb_slice_equal(name, wb_slice_str(asker->name))) {
        wb_buf_clear(&asker->rules_url);
        err = wb_buf_append_slice(&asker->rules_url, wb_url_href(&w->target));
        asker->rules_hops = (uint8_t)(hops + 1);
        asker->away = false;
        wb_dispatch_later(w, asker);
    } else {
        err = ask_elsewhere(w, asker, &w->target, name, (uint8_t)(hops + 1));
    }
    if (err < 0)
        wb_worker_fail(w, err);
    return true;
}

static void favour_done(struct wb_errand *errand, struct wb_fetch_result *result)
{
    struct wb_worker *w = errand->worker;
    struct wb_favour *favour = errand->favour;
    struct wb_site *other = errand->site;
    struct wb_site *asker = wb_worker_site(w, wb_slice_str(favour->asker_name));

    if (asker && asker->away && !follow_hop(w, asker, wb_slice_str(favour->url), favour->hops, result)) {
        asker->away = false;
        if (!result->error && result->status / 100 == 3)
            rules_absent(w, asker, wb_slice_str(favour->url), "redirects");
        else
            rules_came(w, asker, wb_slice_str(favour->url), result, wb_fetch_error_word(result->error));
    }
    free_favour(favour);
    if (other->guest && !other->favours)
        wb_visit_close(w, other, WB_SITE_READY, "", NULL);
    else
        wb_dispatch_later(w, other);
}

void wb_rules_done(struct wb_errand *errand, struct wb_fetch_result *result)
{
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    struct wb_slice url = wb_buf_slice(&errand->url);

    if (errand->favour)
        favour_done(errand, result);
    else if (follow_hop(w, site, url, site->rules_hops, result))
        return;
    else if (!result->error && result->status / 100 == 3)
        rules_absent(w, site, url, "redirects");
    else
        rules_came(w, site, url, result, wb_fetch_error_word(result->error));
}

/* ---- asking --------------------------------------------------------------------------------------- */

static void send_rules(struct wb_worker *w, struct wb_site *site, struct wb_slice url, struct wb_favour *favour)
{
    struct wb_errand *errand = wb_errand_new(w, site);
    int err = errand ? wb_buf_append_slice(&errand->url, url) : WB_E_NOMEM;

    if (err < 0) {
        if (errand)
            wb_errand_free(errand);
        wb_worker_fail(w, err);
        return;
    }
    errand->rules = true;
    errand->favour = favour;
    struct wb_fetch_request request = {.url = wb_buf_slice(&errand->url), .address = site->address, .body_max = WB_ROBOTS_BYTES_MAX + 1};
    wb_errand_send(errand, &request);
}

void wb_rules_ask(struct wb_worker *w, struct wb_site *site)
{
    if (!site->rules_url.len && wb_site_url(site, site->https, WB_SLICE_LIT("/robots.txt"), &w->url_text) < 0) {
        wb_worker_fail(w, WB_E_NOMEM);
        return;
    }
    send_rules(w, site, site->rules_url.len ? wb_buf_slice(&site->rules_url) : wb_buf_slice(&w->url_text), NULL);
}

bool wb_favour_next(struct wb_worker *w, struct wb_site *site)
{
    struct wb_favour *favour = site->favours;

    if (!favour) {
        if (site->guest && !site->in_flight) {
            wb_visit_close(w, site, WB_SITE_READY, "", NULL);
            return true;
        }
        return site->guest;
    }
    if (site->in_flight)
        return true;
    site->favours = favour->next;
    send_rules(w, site, wb_slice_str(favour->url), favour);
    return true;
}

void wb_favours_stuck(struct wb_worker *w)
{
    struct wb_favour *list = w->stuck;
    int64_t now = wb_worker_now(w);

    if (!list || now - w->stuck_ms < STUCK_MS)
        return;
    w->stuck_ms = now;
    w->stuck = NULL;
    while (list) {
        struct wb_favour *favour = list;
        list = list->next;
        if (place_favour(w, favour))
            continue;
        struct wb_site *asker = wb_worker_site(w, wb_slice_str(favour->asker_name));
        if (++favour->tries < STUCK_TRIES_MAX && asker) {
            favour->next = w->stuck;
            w->stuck = favour;
            continue;
        }
        if (asker) {
            asker->away = false;
            rules_unreachable(w, asker, wb_slice_str(favour->url), "busy");
        }
        free_favour(favour);
    }
}

void wb_favours_pass_on(struct wb_worker *w, struct wb_site *site)
{
    while (site->favours) {
        struct wb_favour *favour = site->favours;
        site->favours = favour->next;
        favour->next = w->stuck;
        w->stuck = favour;
    }
}

void wb_favours_fail(struct wb_worker *w, struct wb_site *site, const char *reason)
{
    struct wb_favour *list = site->favours;

    site->favours = NULL;
    while (list) {
        struct wb_favour *favour = list;
        struct wb_site *asker = wb_worker_site(w, wb_slice_str(favour->asker_name));
        list = list->next;
        if (asker && asker->away) {
            asker->away = false;
            rules_unreachable(w, asker, wb_slice_str(favour->url), reason);
        }
        free_favour(favour);
    }
}

static void drop_list(struct wb_favour *list)
{
    while (list) {
        struct wb_favour *favour = list;
        list = list->next;
        free_favour(favour);
    }
}

void wb_favours_drop(struct wb_worker *w)
{
    for (struct wb_site *site = w->sites; site; site = site->list_next) {
        drop_list(site->favours);
        site->favours = NULL;
    }
    drop_list(w->stuck);
    w->stuck = NULL;
}
