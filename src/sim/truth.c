/*
 * truth.c - walks through sites, pages and requests and writes them as JSON.
 *
 * It stops after each piece until that piece has been sent, so that a hundred thousand pages
 * need no more memory than one piece. It never logs itself.
 */
#include "sim/truth.h"
#include "base/codec.h"
#include "base/date.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "sim/life.h"
#include "sim/locate.h"

#include <math.h>

#define PIECE_BYTES (64u << 10)

enum phase { PHASE_BEGIN, PHASE_SITES, PHASE_PAGES, PHASE_REQUESTS, PHASE_END };

struct truth {
    struct wb_respond *r;
    struct wb_world_moment now;
    bool chunked;
    bool sites, pages, requests;    /* which parts were asked for */
    bool one;                       /* report only the site `only` */
    uint32_t only;
    int64_t since_ms;               /* report only requests from then on */
    enum phase phase;
    uint32_t site, page;            /* the next ones to report */
    bool alias;                     /* report `site` under its second name */
    uint64_t request;
    struct wb_buf piece, url;
    struct wb_json json;
};

/* ---- JSON -------------------------------------------------------------------------- */

static void field_double(struct truth *t, const char *key, double value)
{
    wb_json_key(&t->json, key);
    if (t->json.err == 0)
        t->json.err = wb_buf_printf(t->json.buf, "%.9g", value);
    t->json.comma = true;
}

/* Writes a moment of the web as a date. */
static void field_stamp(struct truth *t, const char *key, double web)
{
    char text[WB_DATE_TEXT_MAX];

    /* Times too far away for a four-digit year have no date. */
    int64_t stamp_ms = isfinite(web) ? wb_world_stamp(&t->r->world, web) : INT64_MAX;
    if (stamp_ms > 250000000000000 || stamp_ms < -60000000000000) {
        wb_json_key(&t->json, key);
        wb_json_null(&t->json);
        return;
    }
    wb_date_format(stamp_ms, text);
    wb_json_field_str(&t->json, key, text);
}

static void field_url(struct truth *t, const char *key, struct wb_pen *pen)
{
    if (t->json.err == 0)
        t->json.err = pen->err;
    wb_json_field_slice(&t->json, key, wb_buf_slice(&t->url));
}

/* A pen for a URL, which field_url() then writes. */
static struct wb_pen url_pen(struct truth *t)
{
    wb_buf_clear(&t->url);
    return wb_pen(&t->url);
}

/* ---- the parts ---------------------------------------------------------------------- */

static void write_web(struct truth *t)
{
    const struct wb_world *w = &t->r->world;
    char start[WB_DATE_TEXT_MAX];

    wb_date_format(w->start_wall_ms, start);
    wb_json_object(&t->json);
    wb_json_key(&t->json, "web");
    wb_json_object(&t->json);
    wb_json_field_u64(&t->json, "seed", w->seed);
    wb_json_field_u64(&t->json, "sites", w->sites);
    wb_json_field_bool(&t->json, "hostile", w->hostile);
    wb_json_field_str(&t->json, "start", start);
    field_double(t, "speed", w->speed);
    field_double(t, "seconds", t->now.real);
    field_double(t, "web_seconds", t->now.web);
    wb_json_object_end(&t->json);
}

static void write_site(struct truth *t)
{
    const struct wb_world_site *s = &t->r->world.site[t->site];
    struct wb_pen pen = url_pen(t);

    wb_world_host(&t->r->world, t->site, t->alias, &pen);
    wb_json_object(&t->json);
    field_url(t, "host", &pen);
    if (t->alias) {
        pen = url_pen(t);
        wb_world_host(&t->r->world, t->site, false, &pen);
        field_url(t, "alias_of", &pen);
    }
    wb_json_field_u64(&t->json, "pages", s->pages);
    wb_json_field_str(&t->json, "robots", wb_world_rules_word(s->rules));
    wb_json_field_u64(&t->json, "delay", wb_world_delay(s));
    wb_json_field_str(&t->json, "sitemap", wb_world_map_word(s->map));
    field_double(t, "births", s->births * WB_DAY_SECONDS);
    wb_json_object_end(&t->json);
}

/* Writes one page: what it is like, and what it answers with now. */
static void write_page(struct truth *t, const struct wb_plan *plan)
{
    const struct wb_world *w = &t->r->world;
    struct wb_pen pen = url_pen(t);
    double changed;
    uint64_t version = wb_plan_version(w, plan, &t->now, &changed);

    wb_locate_url(w, plan, &pen);
    wb_json_object(&t->json);
    field_url(t, "url", &pen);
    wb_json_field_bool(&t->json, "allowed", plan->allowed);
    wb_json_field_bool(&t->json, "reachable", plan->reachable);
    wb_json_field_i64(&t->json, "status", wb_plan_status(w, plan, &t->now));
    wb_json_field_str(&t->json, "kind", plan->page >= WB_PLAN_LATEST ? "list" : wb_plan_kind_word(plan->kind));
    if (plan->isolated)
        wb_json_field_bool(&t->json, "isolated", true);
    if (plan->mapped)
        wb_json_field_bool(&t->json, "sitemap", true);
    if (plan->kind == WB_KIND_DUPLICATE || plan->kind == WB_KIND_NEAR || plan->kind == WB_KIND_REDIRECT) {
        struct wb_plan twin;
        wb_plan_make(w, plan->site, wb_plan_twin(w, plan), &twin);
        pen = url_pen(t);
        wb_locate_url(w, &twin, &pen);
        field_url(t, plan->kind == WB_KIND_REDIRECT ? "to" : "of", &pen);
    }
    if (plan->page < WB_PLAN_LATEST) {
        field_double(t, "rate", plan->rate * WB_DAY_SECONDS);
        wb_json_field_u64(&t->json, "version", version);
        field_stamp(t, "born", plan->born);
        field_stamp(t, "changed", changed);
        field_stamp(t, "gone", plan->gone);
    }
    wb_json_object_end(&t->json);
}

static void write_request(struct truth *t, const struct wb_asklog_entry *e)
{
    const struct wb_world *w = &t->r->world;
    struct wb_pen pen = url_pen(t);
    struct wb_plan plan;
    char time[WB_DATE_TEXT_MAX];

    wb_pen_str(&pen, "http://");
    if (e->flags & WB_ASKLOG_RAW)
        wb_pen_printf(&pen, "r%u.localhost:%u", e->site, (unsigned)w->port);
    else
        wb_world_host(w, e->site, e->flags & WB_ASKLOG_ALIAS, &pen);
    if (e->flags & WB_ASKLOG_OTHER)
        wb_pen_slice(&pen, wb_asklog_target(&t->r->log, e));
    else if (wb_plan_make(w, e->site, e->page, &plan))
        wb_locate_path(w, &plan, &pen);
    wb_date_format(w->start_wall_ms + (int64_t)e->since_ms, time);
    wb_json_object(&t->json);
    field_url(t, "url", &pen);
    wb_json_field_str(&t->json, "time", time);
    wb_json_field_u64(&t->json, "status", e->status);
    if (e->flags & WB_ASKLOG_HEAD)
        wb_json_field_str(&t->json, "method", "HEAD");
    wb_json_object_end(&t->json);
}

/* ---- walking ------------------------------------------------------------------------- */

/* The next number after `page` that a page can have. */
static uint32_t page_after(struct truth *t, uint32_t page)
{
    const struct wb_world_site *s = &t->r->world.site[t->site];
    uint32_t group = wb_plan_group(s, &t->now);

    page++;
    if (page >= s->pages && page < WB_PLAN_NEW)
        page = s->births > 0 ? WB_PLAN_NEW : WB_PLAN_SITES + 1;
    if (page >= WB_PLAN_NEW && page < WB_PLAN_LATEST &&
        page - WB_PLAN_NEW >= (uint64_t)(wb_life_cell_at(s->births, t->now.web) + 1) * WB_LIFE_CELL_EVENTS)
        page = WB_PLAN_LATEST;
    if (page >= WB_PLAN_LATEST && page < WB_PLAN_SITES && page - WB_PLAN_LATEST > group)
        page = WB_PLAN_SITES + 1;
    if (page >= WB_PLAN_SITES &&
        (t->site > 0 || page - WB_PLAN_SITES > (t->r->world.sites - 1) / WB_PLAN_SITES_PER_PAGE))
        page = WB_PLAN_NONE;
    return page;
}

/* Moves to the next site, or beyond the last one if only one site is wanted. */
static void next_site(struct truth *t)
{
    t->page = 0;
    t->alias = false;
    t->site = t->one ? UINT32_MAX : t->site + 1;
}

/* Begins the next array of the truth. */
static bool begin_array(struct truth *t, const char *name, enum phase phase)
{
    t->phase = phase;
    t->site = t->one ? t->only : 0;
    t->page = 0;
    wb_json_key(&t->json, name);
    wb_json_array(&t->json);
    return true;
}

/* Writes the next site or, after the last one, begins the pages. */
static bool step_sites(struct truth *t)
{
    if (!t->sites || t->site > t->r->world.sites) {
        wb_json_array_end(&t->json);
        return begin_array(t, "pages", PHASE_PAGES);
    }
    write_site(t);
    if (!t->alias && t->r->world.site[t->site].alias)
        t->alias = true;
    else
        next_site(t);
    return true;
}

/* Writes the next page or, after the last one, begins the requests. */
static bool step_pages(struct truth *t)
{
    struct wb_plan plan;

    if (!t->pages || t->site > t->r->world.sites) {
        wb_json_array_end(&t->json);
        return begin_array(t, "requests", PHASE_REQUESTS);
    }
    if (wb_plan_make(&t->r->world, t->site, t->page, &plan) && plan.born <= t->now.web)
        write_page(t, &plan);
    t->page = page_after(t, t->page);
    if (t->page == WB_PLAN_NONE)
        next_site(t);
    return true;
}

/* Writes the next request or, after the last one, ends the truth and returns false. */
static bool step_requests(struct truth *t)
{
    if (!t->requests || t->request >= t->r->log.count) {
        wb_json_array_end(&t->json);
        wb_json_field_u64(&t->json, "dropped", t->r->log.dropped);
        wb_json_object_end(&t->json);
        t->phase = PHASE_END;
        return false;
    }
    const struct wb_asklog_entry *e = wb_asklog_get(&t->r->log, t->request++);
    bool ours = !t->one || (e->site == t->only && !(e->flags & WB_ASKLOG_RAW));
    if (ours && t->r->world.start_wall_ms + (int64_t)e->since_ms >= t->since_ms)
        write_request(t, e);
    return true;
}

/* Writes the next item of whichever part is due; false at the end. */
static bool step(struct truth *t)
{
    switch (t->phase) {
    case PHASE_BEGIN:
        write_web(t);
        return begin_array(t, "sites", PHASE_SITES);
    case PHASE_SITES:
        return step_sites(t);
    case PHASE_PAGES:
        return step_pages(t);
    case PHASE_REQUESTS:
        return step_requests(t);
    default:
        return false;
    }
}

/* Moves the finished piece to the reply, as a chunk if the client understands chunks. */
static int send_piece(struct truth *t, bool last, struct wb_buf *bytes_out)
{
    int err = 0;

    if (t->chunked && t->piece.len)
        err = wb_buf_printf(bytes_out, "%zx\r\n", t->piece.len);
    if (err == 0)
        err = wb_buf_append_slice(bytes_out, wb_buf_slice(&t->piece));
    if (err == 0 && t->chunked)
        err = wb_buf_append_str(bytes_out, !t->piece.len ? last ? "0\r\n\r\n" : "" : last ? "\r\n0\r\n\r\n" : "\r\n");
    wb_buf_clear(&t->piece);
    return err;
}

/* Supplies the next piece of the truth; called by the server when the last one has been sent. */
static int more_truth(void *context, struct wb_buf *bytes_out)
{
    struct truth *t = context;
    bool more = true;

    while (more && t->json.err == 0 && t->piece.len < PIECE_BYTES)
        more = step(t);
    if (!more && t->json.err == 0)
        t->json.err = wb_buf_append_char(&t->piece, '\n');
    int err = t->json.err < 0 ? t->json.err : send_piece(t, !more, bytes_out);
    return err < 0 ? err : more;
}

static void release_truth(void *context)
{
    struct truth *t = context;

    wb_buf_release(&t->piece);
    wb_buf_release(&t->url);
    wb_free(t);
}

/* ---- the question ---------------------------------------------------------------------- */

/* Decodes %XX in place. */
static void unescape(struct wb_buf *text)
{
    size_t to = 0;

    for (size_t i = 0; i < text->len; i++) {
        int high = i + 2 < text->len && text->ptr[i] == '%' ? wb_hex_digit(text->ptr[i + 1]) : -1;
        int low = high >= 0 ? wb_hex_digit(text->ptr[i + 2]) : -1;
        char c = text->ptr[i];
        if (low >= 0) {
            c = (char)(high << 4 | low);
            i += 2;
        }
        text->ptr[to++] = c;
    }
    text->len = to;
}

/* Takes one parameter of the query. */
static void take_word(struct truth *t, struct wb_slice key, struct wb_slice value)
{
    bool on = !wb_slice_equal(value, WB_SLICE_LIT("0")), alias;
    uint64_t number = 0;
    uint32_t raw;

    if (wb_slice_equal(key, WB_SLICE_LIT("sites")))
        t->sites = on;
    else if (wb_slice_equal(key, WB_SLICE_LIT("pages")))
        t->pages = on;
    else if (wb_slice_equal(key, WB_SLICE_LIT("requests")))
        t->requests = on;
    else if (wb_slice_equal(key, WB_SLICE_LIT("since"))) {
        if (wb_slice_to_u64(value, &number))
            t->since_ms = number < INT64_MAX ? (int64_t)number : INT64_MAX;
        else if (!wb_date_parse(value, &t->since_ms))
            t->since_ms = INT64_MIN;
    } else if (wb_slice_equal(key, WB_SLICE_LIT("site"))) {
        t->one = true;
        t->only = wb_locate_host(&t->r->world, value, &alias, &raw);
    }
}

static int read_query(struct truth *t, struct wb_slice query)
{
    while (query.len > 0) {
        const char *end = memchr(query.ptr, '&', query.len);
        size_t n = end ? (size_t)(end - query.ptr) : query.len;
        const char *equals = memchr(query.ptr, '=', n);
        size_t key = equals ? (size_t)(equals - query.ptr) : n;
        wb_buf_clear(&t->url);
        int err = wb_buf_append(&t->url, query.ptr + key + (equals != NULL), n - key - (equals != NULL));
        if (err < 0)
            return err;
        unescape(&t->url);
        take_word(t, wb_slice(query.ptr, key), wb_buf_slice(&t->url));
        query = wb_slice(query.ptr + n + (end != NULL), query.len - n - (end != NULL));
    }
    return 0;
}

int wb_truth_reply(struct wb_respond *respond, const struct wb_asked *asked, struct wb_slice query,
                   const struct wb_world_moment *now, struct wb_reply *reply)
{
    struct truth *t = wb_alloc_zero(1, sizeof *t);

    if (!t)
        return WB_E_NOMEM;
    *t = (struct truth){.r = respond, .now = *now, .chunked = !asked->old, .sites = true, .pages = true,
                        .requests = true, .since_ms = INT64_MIN};
    wb_json_init(&t->json, &t->piece);
    reply->context = t;
    reply->release = release_truth;
    reply->more = more_truth;
    reply->end = asked->keep_alive && t->chunked ? WB_REPLY_KEEP : WB_REPLY_CLOSE;
    reply->status = 200;
    int err = read_query(t, query);
    if (err == 0)
        err = wb_buf_printf(&reply->bytes, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%s%s\r\n",
                            t->chunked ? "Transfer-Encoding: chunked\r\n" : "",
                            reply->end == WB_REPLY_KEEP ? "" : "Connection: close\r\n");
    return err;
}
