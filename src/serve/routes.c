/* routes.c - which handler answers which path, who may ask, and how large a body may be. */
#include "base/check.h"
#include "base/error.h"
#include "os/clock.h"
#include "serve/guesses.h"
#include "serve/htmlpen.h"

#include <stdio.h>
#include <string.h>

enum { GET = 1u << WB_HTTP_GET | 1u << WB_HTTP_HEAD, POST = 1u << WB_HTTP_POST };
enum { ORDER_BYTES = 64 << 10 };

#define PUSH_BYTES ((uint64_t)64 << 20)

/* What several calls know. */
#define SITES "q state sort order limit offset"
#define FETCHES "q site status error after limit"
#define SEARCH "q limit offset sort facet one_per_site fold explain quick"
#define LISTING "url matchType q type status sort limit after"
#define CDX                                                                                                            \
    "url matchType from to limit offset sort reverse closest filter collapse collapseTime fl fields resolveRevisits "  \
    "output page pageSize showNumPages showResumeKey resumeKey"

/* The longest path that fits wins, so the order does not matter. */
static const struct wb_route routes[] = {
    {"/", false, GET, WB_ACCESS_READER, 0, true, false, wb_handle_search_page, SEARCH},
    {"/page", false, GET, WB_ACCESS_READER, 0, true, true, wb_handle_page_view, "url a b older in out"},
    {"/files", false, GET, WB_ACCESS_READER, 0, true, true, wb_handle_files_page, "url time apart"},
    {"/site", false, GET, WB_ACCESS_READER, 0, true, true, wb_handle_site_page, "host why"},
    {"/bar", false, GET, WB_ACCESS_READER, 0, true, true, wb_handle_bar, "url time"},
    {"/calendar", false, GET, WB_ACCESS_READER, 0, true, true, wb_handle_calendar_page, "url year day after"},
    {"/captures", false, GET, WB_ACCESS_READER, 0, true, true, wb_handle_listing_page, LISTING},
    {"/compare", false, GET, WB_ACCESS_READER, 0, true, true, wb_handle_compare, "url a b view change"},
    {"/compare/frame", false, GET, WB_ACCESS_READER, 0, true, true, wb_handle_compare_frame, "url a b side"},
    {"/dash", false, GET, WB_ACCESS_READER, 0, true, false, wb_handle_dash_page, "range from to"},
    {"/api/search", false, GET, WB_ACCESS_READER, 0, false, false, wb_handle_search, SEARCH},
    {"/api/complete", false, GET, WB_ACCESS_READER, 0, false, false, wb_handle_complete, "q limit format"},
    {"/api/page", false, GET, WB_ACCESS_READER, 0, false, true, wb_handle_page, "url at snapshot"},
    {"/api/versions", false, GET, WB_ACCESS_READER, 0, false, true, wb_handle_versions, "url limit after"},
    {"/api/calendar", false, GET, WB_ACCESS_READER, 0, false, true, wb_handle_calendar, "url from to limit after"},
    {"/api/captures", false, GET, WB_ACCESS_READER, 0, false, true, wb_handle_listing, LISTING},
    {"/api/embedded", false, GET, WB_ACCESS_READER, 0, false, true, wb_handle_embedded, "url time apart"},
    {"/api/links", false, GET, WB_ACCESS_READER, 0, false, true, wb_handle_links, "url dir limit after offset"},
    {"/api/similar", false, GET, WB_ACCESS_READER, 0, false, true, wb_handle_similar, "url limit"},
    {"/api/stat", false, GET, WB_ACCESS_READER, 0, false, false, wb_handle_stat, NULL},
    {"/api/snapshots", false, GET, WB_ACCESS_READER, 0, false, false, wb_handle_snapshots, NULL},
    {"/api/dash", false, GET, WB_ACCESS_READER, 0, false, false, wb_handle_dash_data, "since"},
    {"/api/history", false, GET, WB_ACCESS_READER, 0, false, true, wb_handle_history, "metric range from to step"},
    {"/dash/sites", false, GET, WB_ACCESS_READER, 0, true, true, wb_handle_sites_page, SITES},
    {"/dash/fetches", false, GET, WB_ACCESS_WATCHER, 0, true, true, wb_handle_fetches_page, FETCHES},
    {"/dash/orders", false, GET, WB_ACCESS_WATCHER, 0, true, false, wb_handle_orders_page, "limit"},
    {"/api/sites", false, GET, WB_ACCESS_READER, 0, false, true, wb_handle_sites, SITES},
    {"/api/fetches", false, GET, WB_ACCESS_WATCHER, 0, false, true, wb_handle_fetches, FETCHES},
    {"/api/orders", false, GET, WB_ACCESS_WATCHER, 0, false, false, wb_handle_orders, "limit"},
    {"/api/token", false, GET, WB_ACCESS_OPERATOR, 0, false, false, wb_handle_token, NULL},
    {"/api/control/", true, POST, WB_ACCESS_OPERATOR, ORDER_BYTES, false, false, wb_handle_control, NULL},
    {"/api/expunge", false, POST, WB_ACCESS_OPERATOR, ORDER_BYTES, false, false, wb_handle_expunge, NULL},
    {"/api/openapi.json", false, GET, WB_ACCESS_ANYONE, 0, false, false, wb_handle_openapi, NULL},
    {"/api/stream", false, GET, WB_ACCESS_READER, 0, false, true, wb_handle_stream, "format tokens " WB_STREAM_PARAMS},
    {"/api/stream/acknowledge", false, POST, WB_ACCESS_READER, ORDER_BYTES, false, false, wb_handle_acknowledge,
     "name token join worker position"},
    {"/api/push", false, POST, WB_ACCESS_PROVIDER, PUSH_BYTES, false, false, wb_handle_push, NULL},
    {"/cdx", false, GET, WB_ACCESS_READER, 0, false, true, wb_handle_cdx, CDX},
    {"/cdx/search/cdx", false, GET, WB_ACCESS_READER, 0, false, true, wb_handle_cdx, CDX},
    {"/web/", true, GET, WB_ACCESS_READER, 0, true, true, wb_handle_replay, NULL},
    {"/timemap/link/", true, GET, WB_ACCESS_READER, 0, false, true, wb_handle_timemap, NULL},
    {"/assets/", true, GET, WB_ACCESS_ANYONE, 0, false, false, wb_handle_asset, NULL},
    {"/opensearch.xml", false, GET, WB_ACCESS_ANYONE, 0, false, false, wb_handle_opensearch, NULL},
    {"/favicon.ico", false, GET, WB_ACCESS_ANYONE, 0, false, false, wb_handle_icon, NULL},
    {"/robots.txt", false, GET, WB_ACCESS_ANYONE, 0, false, false, wb_handle_robots, NULL},
    {"/metrics", false, GET, WB_ACCESS_READER, 0, false, false, wb_handle_metrics, NULL},
    {"/healthz", false, GET, WB_ACCESS_ANYONE, 0, false, false, wb_handle_health, NULL},
};

enum { ROUTES = sizeof routes / sizeof *routes };

size_t wb_route_number(struct wb_slice path)
{
    const struct wb_route *route = wb_route_find(path);

    return route ? (size_t)(route - routes) : SIZE_MAX;
}

size_t wb_route_count(void)
{
    return ROUTES;
}

const char *wb_route_path(size_t number)
{
    return number < ROUTES ? routes[number].path : "other";
}

const struct wb_route *wb_route_find(struct wb_slice path)
{
    const struct wb_route *best = NULL;

    for (size_t i = 0; i < ROUTES; i++) {
        struct wb_slice own = wb_slice_str(routes[i].path);
        bool fits = routes[i].prefix ? wb_slice_starts(path, own) : wb_slice_equal(path, own);
        if (fits && (!best || own.len > strlen(best->path)))
            best = &routes[i];
    }
    return best;
}

/* Where there is no route, a browser says that it wants HTML; programs do not. */
static bool is_for_people(const struct wb_route *route, const struct wb_http_request *request)
{
    struct wb_slice accept = wb_http_field(request, "Accept");

    return route ? route->people : accept.len && memmem(accept.ptr, accept.len, "text/html", 9) != NULL;
}

void wb_route_fail(const struct wb_route *route, const struct wb_http_request *request, struct wb_http_reply *reply,
                   unsigned status, const char *message)
{
    WB_CHECK(status >= 400 && status <= 599);
    if (is_for_people(route, request))
        wb_page_error(reply, status, message);
    else
        wb_http_reply_error(reply, status, "%s", message);
}

static void refuse_method(const struct wb_route *route, const struct wb_http_request *head, struct wb_http_reply *reply)
{
    wb_route_fail(route, head, reply, 405, "this method is not possible here");
    (void)wb_http_reply_field(reply, "Allow", route->methods & POST ? WB_SLICE_LIT("POST") : WB_SLICE_LIT("GET, HEAD"));
}

/* A browser asks for a password where it is offered Basic, so that people can read pages with a token, too. */
static void refuse_access(const struct wb_route *route, const struct wb_http_request *head, struct wb_http_reply *reply,
                          unsigned status)
{
    WB_CHECK(status == 401 || status == 403);
    wb_route_fail(route, head, reply, status,
                  status == 403   ? "this token is not good for this"
                  : route->people ? "this needs a token: give it as the password, with any name"
                                  : "this needs a token: Authorization: Bearer TOKEN");
    if (status == 401)
        (void)wb_http_reply_field(reply, "WWW-Authenticate", WB_SLICE_LIT("Bearer realm=\"webbase\""));
    if (status == 401 && route->people)
        (void)wb_http_reply_field(reply, "WWW-Authenticate",
                                  WB_SLICE_LIT("Basic realm=\"webbase\", charset=\"UTF-8\""));
}

/* Always as JSON: who asks is perhaps not who it says. */
static void refuse_host(struct wb_slice host, struct wb_http_reply *reply)
{
    wb_http_reply_error(reply, 421,
                        "this server does not answer for the host '%.*s'; if people reach it under this name, start it "
                        "with --allow-host",
                        (int)(host.len > 200 ? 200 : host.len), host.ptr ? host.ptr : "");
}

bool wb_route_is_guessing(struct wb_server *server, const struct wb_http_request *head, struct wb_http_reply *reply)
{
    bool right;

    WB_CHECK(server->magic == WB_SERVER_MAGIC);
    if (!wb_access_has_token(server, head, &right))
        return false;
    int wait_ms = wb_guesses_enter(server->guesses, head, right, wb_clock_mono_ns() / 1000000);
    if (wait_ms >= 0) {
        reply->delay_ms = (unsigned)wait_ms;
        return false;
    }
    wb_http_reply_error(reply, 429, "too many wrong tokens came from this address; try again later");
    (void)wb_http_reply_field(reply, "Retry-After", WB_SLICE_LIT("10"));
    return true;
}

bool wb_route_is_slow(const struct wb_http_request *request)
{
    return wb_route_find(request->path)->slow; /* there is one: the request was admitted */
}

int wb_route_admit(struct wb_server *server, const struct wb_http_request *head, uint64_t *body_max_out,
                   struct wb_http_reply *reply)
{
    WB_CHECK(server->magic == WB_SERVER_MAGIC);
    WB_CHECK(!head->also);
    const struct wb_route *route = wb_route_find(head->path);
    struct wb_slice foreign;
    char message[256];

    *body_max_out = 0;
    if (!wb_own_names_has(server, head, &foreign)) {
        refuse_host(foreign, reply);
        return 1;
    }
    if (wb_route_is_guessing(server, head, reply))
        return 1;
    if (!route) {
        snprintf(message, sizeof message, "there is nothing at %.*s", WB_SLICE_ARG(head->path));
        wb_route_fail(NULL, head, reply, 404, message);
        return 1;
    }
    if (!(route->methods >> head->method & 1)) {
        refuse_method(route, head, reply);
        return 1;
    }
    if (head->method == WB_HTTP_POST && !wb_own_names_trust(server, head)) {
        wb_http_reply_error(reply, 403, "a page of another site has caused this request: it may not change anything");
        return 1;
    }
    unsigned refused = wb_access_check(server, head, route->access);
    if (refused) {
        refuse_access(route, head, reply, refused);
        return 1;
    }
    if (route->access == WB_ACCESS_PROVIDER && !wb_push_gate_open(server, head, reply))
        return 1;
    *body_max_out = route->body_max;
    return 0;
}
