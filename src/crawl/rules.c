/*
 * rules.c - the robots.txt of a site: asking for it, following its redirects, reading what came (RFC 9309).
 *
 *   2xx                     the rules are valid for 24 hours, or for as long as Cache-Control says
 *   3xx                     followed up to five times, also to other sites; the rules are for the site that asked
 *   4xx, too many redirects there are no rules: everything is allowed
 *   5xx, 429, no answer     the whole site waits
 *
 * A redirect to another site means a request to that other site, which has an interval too. So the other site makes
 * the request, when it is its turn, as a *favour* to the site that asked (struct wb_favour):
 *
 *   asker: redirect to B -> favour -> B is held here: into B's list of favours
 *                                  -> B is free: borrowed from the dispenser as a guest
 *                                  -> another process holds B: stuck, tried again every 300 ms
 *   B's turn -> request -> answer -> the asker reads its rules, or follows the next redirect
 */
#include "base/check.h"
#include "crawl/worker.h"
#include "base/hash.h"
#include "base/mem.h"

#include <stdio.h>

enum {
    HOPS_MAX = 5,
    STUCK_MS = 300,
    STUCK_TRIES_MAX = 100,
    RULES_LIFE_MIN_MS = WB_MINUTE_MS,
};

#define FAVOUR_MAGIC 0x57424656u

/* A request for another site's robots.txt. Owned by the list it is in, or by the errand while it is under way. */
struct wb_favour {
    uint32_t magic;      /* FAVOUR_MAGIC until it is freed */
    struct wb_favour *next;
    char *asker_name;    /* the site whose robots.txt it is */
    char *url;
    uint8_t hops;
    unsigned tries;      /* to place it */
    bool https;
    char name[];         /* the site to be asked */
};

static void free_favour(struct wb_favour *favour)
{
    WB_CHECK(favour->magic == FAVOUR_MAGIC && !favour->next);
    wb_free(favour->asker_name);
    wb_free(favour->url);
    favour->magic = 0;
    wb_free(favour);
}

static void push_favour(struct wb_favour **list, struct wb_favour *favour)
{
    WB_CHECK(favour->magic == FAVOUR_MAGIC && !favour->next);
    favour->next = *list;
    *list = favour;
}

static struct wb_favour *pop_favour(struct wb_favour **list)
{
    struct wb_favour *favour = *list;

    if (favour) {
        WB_CHECK(favour->magic == FAVOUR_MAGIC);
        *list = favour->next;
        favour->next = NULL;
    }
    return favour;
}

/* ---- reading the rules ------------------------------------------------------------------------------------------- */

void wb_rules_set_delays(const struct wb_worker *w, struct wb_site *site)
{
    WB_CHECK(site->magic == WB_SITE_MAGIC && site->own_delay_ms >= 0 && site->ordered_delay_ms >= 0);
    int64_t asked = site->rules.robots ? wb_robots_delay_ms(site->rules.robots) : -1;
    int64_t max = w->plan->options->crawl_delay_max_ms;

    if (asked > max)
        asked = max;
    site->delay_ms = site->own_delay_ms > site->ordered_delay_ms ? site->own_delay_ms : site->ordered_delay_ms;
    site->page_delay_ms = asked > site->delay_ms ? asked : site->delay_ms;
}

static void warn_of_delay(struct wb_worker *w, const struct wb_site *site)
{
    int64_t asked = site->rules.robots ? wb_robots_delay_ms(site->rules.robots) : -1;
    int64_t max = w->plan->options->crawl_delay_max_ms;

    if (asked > max)
        wb_eventlog_warn(w, "%s: asks for a crawl-delay of %g s; it is given %g s (--max-crawl-delay)", site->name,
                         (double)asked / 1000, (double)max / 1000);
}

static int add_sitemaps(struct wb_worker *w, struct wb_site *site, unsigned flags)
{
    struct wb_item item = {.kind = WB_ITEM_SITEMAP, .depth.links = 1};
    struct wb_slice line;
    int err = 0;

    if (w->plan->options->ignore_sitemaps || w->plan->options->max_depth == 0 || site->needed)
        return 0;
    for (size_t i = 0; err >= 0 && i < WB_SITEMAPS_MAX && wb_robots_sitemap(site->rules.robots, i, &line); i++)
        err = wb_links_follow(w, site, line, &item, flags);
    return err < 0 ? err : 0;
}

/* Whether the answer says nothing about the rules (status 0: there was no answer). */
static bool is_unreachable(uint16_t status)
{
    return status == 0 || status >= 500 || status == 429;
}

static int take_rules(struct wb_worker *w, struct wb_site *site, const struct wb_edit_rules *rules, unsigned flags)
{
    int err = 0;

    /* A robots.txt that nobody could read must never count as one that allows everything. */
    WB_CHECK(!is_unreachable(rules->status));
    wb_robots_free(site->rules.robots);
    site->rules.robots = NULL;
    site->rules.digest = 0;
    if (rules->status >= 200 && rules->status < 300) {
        err = wb_robots_parse(rules->text, w->plan->agent, &site->rules.robots);
        site->rules.digest = wb_hash64(rules->text.ptr, rules->text.len) | 1;
    }
    if (err < 0)
        return err;
    site->rules.state = WB_RULES_KNOWN;
    site->rules.status = rules->status;
    site->rules.expires_ms = rules->expires_ms;
    warn_of_delay(w, site);
    wb_rules_set_delays(w, site);
    wb_site_rest_after(site);
    return site->rules.robots ? add_sitemaps(w, site, flags) : 0;
}

int wb_rules_restore(struct wb_worker *w, struct wb_site *site, const struct wb_edit_rules *rules)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC && site->in_flight == 0);
    int64_t now = wb_clock_now_ms();

    /* No rules are valid for so long: these were read when the clock was wrong. */
    if (is_unreachable(rules->status) || rules->expires_ms <= now || rules->expires_ms > now + WB_RULES_LIFE_MS)
        return 0;
    return take_rules(w, site, rules, WB_LINKS_QUIET);
}

/* Until when rules are valid: for a day, or less if the server says so. */
static int64_t expiry(struct wb_slice head)
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
    return wb_clock_now_ms() + (life < RULES_LIFE_MIN_MS ? RULES_LIFE_MIN_MS : life);
}

/* There was no answer about the rules: leaves the whole site alone. */
static void back_off(struct wb_worker *w, struct wb_site *site, const struct wb_fetch_result *result)
{
    struct wb_slice value;
    int64_t until = 0;
    char words[96];

    if (wb_http_header(result->head, "retry-after", &value))
        wb_http_retry_after(value, wb_clock_now_ms(), &until);
    if (result->error)
        snprintf(words, sizeof words, "robots.txt: %s", wb_fetch_error_word(result->error));
    else
        snprintf(words, sizeof words, "robots.txt: status %u", result->status);
    wb_visit_back_off(w, site, until, words);
}

/* The final answer, after all redirects. */
static void rules_came(struct wb_worker *w, struct wb_site *site, struct wb_slice url, struct wb_fetch_result *result,
                       const char *reason)
{
    WB_CHECK(site->magic == WB_SITE_MAGIC && !site->guest && !site->rules.away);
    struct wb_slice text = wb_buf_slice(&result->body);
    struct wb_edit edit = {.kind = WB_EDIT_RULES};
    struct wb_eventlog_entry entry = {.url = url, .result = "rules", .status = result->status, .ms = result->took_ms,
                                      .bytes = text.len, .time_ms = result->sent_ms, .error = (int)result->error,
                                      .message = result->error ? result->message : NULL};
    bool unreachable = result->error || is_unreachable(result->status);

    wb_buf_clear(&site->rules.url);
    site->rules.hops = 0;
    if (text.len > WB_ROBOTS_BYTES_MAX)
        text.len = WB_ROBOTS_BYTES_MAX;
    edit.rules = (struct wb_edit_rules){.status = unreachable && result->status < 400 ? 0 : result->status,
                                        .reason = wb_slice_str(reason), .expires_ms = expiry(result->head),
                                        .text = result->status / 100 == 2 ? text : WB_SLICE_EMPTY};
    int err = wb_visit_note(w, site, &edit);
    wb_eventlog_fetch(w, &entry);
    if (err == 0 && !unreachable)
        err = take_rules(w, site, &edit.rules, 0);
    if (err < 0) {
        wb_worker_fail(w, err);
        return;
    }
    if (unreachable) {
        back_off(w, site, result);
        return;
    }
    site->attempts = 0;
    wb_dispatch_later(w, site);
}

/* ---- redirects --------------------------------------------------------------------------------------------------- */

static void rules_unreachable(struct wb_worker *w, struct wb_site *site, struct wb_slice url, const char *reason)
{
    struct wb_fetch_result result = {.error = WB_FETCH_OTHER, .message = reason, .sent_ms = wb_clock_now_ms()};

    rules_came(w, site, url, &result, reason);
}

/* A robots.txt whose redirects lead nowhere counts as one that does not exist (RFC 9309, 2.3.1.2). */
static void rules_absent(struct wb_worker *w, struct wb_site *site, struct wb_slice url, const char *reason)
{
    struct wb_fetch_result result = {.status = 404, .sent_ms = wb_clock_now_ms()};

    rules_came(w, site, url, &result, reason);
}

/* Takes over a site that was borrowed from the dispenser. */
static int hold_guest(void *context, const struct wb_site_row *row)
{
    struct wb_worker *w = context;
    struct wb_site *guest = NULL;
    int err = wb_site_new(row, wb_clock_now_ms(), &guest);

    if (err < 0)
        return err;
    guest->guest = true;
    guest->guest_state = row->before;
    guest->elsewhere = row->home.len && !wb_slice_equal(row->home, wb_slice_str(w->plan->home));
    if (guest->elsewhere)
        guest->trail = WB_EDIT_NOWHERE;
    guest->own_delay_ms = row->delay_ms >= 0 ? row->delay_ms : w->plan->options->delay_ms;
    wb_rules_set_delays(w, guest);
    wb_dispatch_obey_site(w, guest);
    guest->address_expires_ms = 0;
    /* If its crawler died, only the time of its last record says when its last request was. */
    if (guest->trail_ms + guest->delay_ms > guest->next_ms)
        guest->next_ms = guest->trail_ms + guest->delay_ms;
    err = wb_site_set_add(&w->sites, guest);
    if (err < 0)
        wb_site_free(guest, w->repo.spill);
    return err;
}

/* Gives the favour to the site that must be asked. Returns false if another process holds that site now. */
static bool place_favour(struct wb_worker *w, struct wb_favour *favour)
{
    WB_CHECK(favour->magic == FAVOUR_MAGIC);
    struct wb_slice name = wb_slice_str(favour->name);
    struct wb_site *other = wb_site_set_find(&w->sites, name);

    if (!other) {
        int err = wb_dispenser_borrow(w->repo.dispenser, name, wb_slice_str(favour->https ? "https" : "http"),
                                      wb_slice_str(w->owner),
                                      WB_PATIENCE_MS, hold_guest, w);
        if (err == WB_E_BUSY)
            return false;
        other = wb_site_set_find(&w->sites, name);
        if (err < 0 || !other) {
            wb_worker_fail(w, err < 0 ? err : WB_E_NOMEM);
            return false;
        }
    }
    WB_CHECK(other->magic == WB_SITE_MAGIC);
    push_favour(&other->favours, favour);
    if (!other->in_flight)
        wb_dispatch_later(w, other);
    return true;
}

static int ask_elsewhere(struct wb_worker *w, struct wb_site *asker, const struct wb_url *url, struct wb_slice name,
                         uint8_t hops)
{
    struct wb_favour *favour = wb_alloc_zero(1, sizeof *favour + name.len + 1);
    struct wb_slice href = wb_url_href(url);

    if (!favour)
        return WB_E_NOMEM;
    favour->magic = FAVOUR_MAGIC;
    memcpy(favour->name, name.ptr, name.len);
    favour->asker_name = wb_strdup(asker->name);
    favour->url = wb_strndup(href.ptr, href.len);
    favour->hops = hops;
    favour->https = wb_slice_equal(wb_url_scheme(url), WB_SLICE_LIT("https"));
    if (!favour->asker_name || !favour->url) {
        free_favour(favour);
        return WB_E_NOMEM;
    }
    asker->rules.away = true;
    if (!place_favour(w, favour))
        push_favour(&w->favours.stuck, favour);
    return 0;
}

/* Reads where an answer redirects to, into w->scratch.target and its key. Returns false if it does not redirect. */
static bool read_location(struct wb_worker *w, struct wb_slice from, const struct wb_fetch_result *result)
{
    struct wb_worker_scratch *scratch = &w->scratch;
    struct wb_slice location;

    if (result->error || result->status / 100 != 3 || !wb_http_header(result->head, "location", &location))
        return false;
    return wb_url_parse(from, NULL, &scratch->base) == 0 &&
           wb_url_parse(location, &scratch->base, &scratch->target) == 0 && wb_url_is_http(&scratch->target) &&
           wb_url_key(&scratch->target, &scratch->key) == 0;
}

/* Returns true if the answer is a redirect that is being followed. */
static bool follow_hop(struct wb_worker *w, struct wb_site *asker, struct wb_slice from, uint8_t hops,
                       const struct wb_fetch_result *result)
{
    int err;

    WB_CHECK(asker->magic == WB_SITE_MAGIC && hops <= HOPS_MAX);
    if (hops >= HOPS_MAX || !read_location(w, from, result))
        return false;
    struct wb_slice name = wb_key_site(wb_buf_slice(&w->scratch.key));
    if (wb_slice_equal(name, wb_slice_str(asker->name))) {
        wb_buf_clear(&asker->rules.url);
        err = wb_buf_append_slice(&asker->rules.url, wb_url_href(&w->scratch.target));
        asker->rules.hops = (uint8_t)(hops + 1);
        asker->rules.away = false;
        wb_dispatch_later(w, asker);
    } else {
        err = ask_elsewhere(w, asker, &w->scratch.target, name, (uint8_t)(hops + 1));
    }
    if (err < 0)
        wb_worker_fail(w, err);
    return true;
}

static void favour_done(struct wb_errand *errand, struct wb_fetch_result *result)
{
    WB_CHECK(errand->favour->magic == FAVOUR_MAGIC);
    struct wb_worker *w = errand->worker;
    struct wb_favour *favour = errand->favour;
    struct wb_site *other = errand->site;
    struct wb_site *asker = wb_site_set_find(&w->sites, wb_slice_str(favour->asker_name));

    if (asker && asker->rules.away && !follow_hop(w, asker, wb_slice_str(favour->url), favour->hops, result)) {
        asker->rules.away = false;
        if (!result->error && result->status / 100 == 3)
            rules_absent(w, asker, wb_slice_str(favour->url), "redirects");
        else
            rules_came(w, asker, wb_slice_str(favour->url), result, wb_fetch_error_word(result->error));
    }
    WB_CHECK(other->magic == WB_SITE_MAGIC); /* what became of the asker does not end the site that was asked */
    free_favour(favour);
    if (other->guest && !other->favours)
        wb_visit_close(w, other, WB_SITE_READY, "", NULL);
    else
        wb_dispatch_later(w, other);
}

void wb_rules_done(struct wb_errand *errand, struct wb_fetch_result *result)
{
    WB_CHECK(errand->magic == WB_ERRAND_MAGIC && errand->rules);
    struct wb_worker *w = errand->worker;
    struct wb_site *site = errand->site;
    struct wb_slice url = wb_buf_slice(&errand->url);

    if (errand->favour)
        favour_done(errand, result);
    else if (follow_hop(w, site, url, site->rules.hops, result))
        return;
    else if (!result->error && result->status / 100 == 3)
        rules_absent(w, site, url, "redirects");
    else
        rules_came(w, site, url, result, wb_fetch_error_word(result->error));
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static void send_rules(struct wb_worker *w, struct wb_site *site, struct wb_slice url, struct wb_favour *favour)
{
    WB_CHECK(site->in_flight == 0 && (favour || !site->rules.away));
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
    struct wb_fetch_request request = {.url = wb_buf_slice(&errand->url), .address = site->address,
                                       .body_max = WB_ROBOTS_BYTES_MAX + 1};
    wb_errand_send(errand, &request);
}

void wb_rules_ask(struct wb_worker *w, struct wb_site *site)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC && !site->guest);
    if (!site->rules.url.len && wb_site_url(site, site->https, WB_SLICE_LIT("/robots.txt"), &w->scratch.url_text) < 0) {
        wb_worker_fail(w, WB_E_NOMEM);
        return;
    }
    send_rules(w, site, wb_buf_slice(site->rules.url.len ? &site->rules.url : &w->scratch.url_text), NULL);
}

bool wb_rules_next_favour(struct wb_worker *w, struct wb_site *site)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC);
    if (!site->favours) {
        if (site->guest && !site->in_flight) {
            wb_visit_close(w, site, WB_SITE_READY, "", NULL);
            return true;
        }
        return site->guest;
    }
    if (site->in_flight)
        return true;
    struct wb_favour *favour = pop_favour(&site->favours);
    send_rules(w, site, wb_slice_str(favour->url), favour);
    return true;
}

/* Nobody can do the favour: the asker is left alone for a while. Frees the favour. */
static void fail_favour(struct wb_worker *w, struct wb_favour *favour, const char *reason)
{
    WB_CHECK(favour->magic == FAVOUR_MAGIC);
    struct wb_site *asker = wb_site_set_find(&w->sites, wb_slice_str(favour->asker_name));

    if (asker && asker->rules.away) {
        asker->rules.away = false;
        rules_unreachable(w, asker, wb_slice_str(favour->url), reason);
    }
    free_favour(favour);
}

void wb_rules_retry_favours(struct wb_worker *w)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC);
    struct wb_favour *list = w->favours.stuck, *favour;
    int64_t now = wb_clock_now_ms();

    if (!list || now - w->favours.retried_ms < STUCK_MS)
        return;
    w->favours.retried_ms = now;
    w->favours.stuck = NULL;
    while ((favour = pop_favour(&list))) {
        if (place_favour(w, favour))
            continue;
        if (++favour->tries < STUCK_TRIES_MAX && wb_site_set_find(&w->sites, wb_slice_str(favour->asker_name)))
            push_favour(&w->favours.stuck, favour);
        else
            fail_favour(w, favour, "busy");
    }
}

void wb_rules_pass_on_favours(struct wb_worker *w, struct wb_site *site)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC);
    for (struct wb_favour *favour; (favour = pop_favour(&site->favours));)
        push_favour(&w->favours.stuck, favour);
}

void wb_rules_fail_favours(struct wb_worker *w, struct wb_site *site, const char *reason)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC);
    struct wb_favour *list = site->favours, *favour;

    site->favours = NULL;
    while ((favour = pop_favour(&list)))
        fail_favour(w, favour, reason);
}

static void drop_list(struct wb_favour **list)
{
    for (struct wb_favour *favour; (favour = pop_favour(list));)
        free_favour(favour);
}

void wb_rules_drop_favours(struct wb_worker *w)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && !w->loop.dispatching);
    for (struct wb_site *site = NULL; (site = wb_site_set_next(&w->sites, site));)
        drop_list(&site->favours);
    drop_list(&w->favours.stuck);
}
