/* replay_door.c - the second address: its name, its policy, and who is let in. */
#include "serve/replay_door.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "serve/capture.h"
#include "serve/htmlpen.h"

#include <stdio.h>
#include <string.h>

/* A form that a page sends. What it says is not looked at. */
enum { FORM_BYTES = 1 << 20 };

/* ---- names --------------------------------------------------------------------------------------- */

static bool is_loopback_name(struct wb_slice host)
{
    return wb_slice_equal_nocase(host, WB_SLICE_LIT("localhost")) || wb_slice_starts(host, WB_SLICE_LIT("127."));
}

static struct wb_slice without_port(struct wb_slice host)
{
    const char *colon = host.len && host.ptr[0] != '[' ? memrchr(host.ptr, ':', host.len) : NULL;

    return colon ? wb_slice(host.ptr, (size_t)(colon - host.ptr)) : host;
}

/* Where the stages are, as far as the server can know: for pages that are opened without one. */
static int find_home(const struct wb_server *server, struct wb_replay_door *door)
{
    WB_CHECK(door->name.len > 0);
    WB_CHECK(door->home.len == 0);
    const struct wb_serve_options *o = server->options;
    struct wb_slice address = wb_slice_str(wb_httpd_address(server->httpd));
    bool named = !door->loopback && o->host_count;

    if (named)
        return wb_buf_printf(&door->home, "%s://%.*s", door->base.tls ? "https" : "http", WB_SLICE_ARG(o->hosts[0]));
    if (door->loopback && !wb_httpd_has_address(server->httpd, WB_SLICE_LIT("127.0.0.1")))
        return wb_fail(WB_E_INVALID,
                       "--replay-listen: %.*s is not reached from this machine, but replay would be; give "
                       "the name under which others reach it with --replay-host",
                       WB_SLICE_ARG(address));
    const char *port = memrchr(address.ptr, ':', address.len);
    return wb_buf_printf(&door->home, "%s://%.*s%s", o->certificate ? "https" : "http",
                         door->loopback ? 9 : (int)(address.len - strlen(port)),
                         door->loopback ? "127.0.0.1" : address.ptr, port);
}

/* The pages that may show stored pages in a frame: those of the first address, under the names that it has. */
static int put_ancestors(const struct wb_serve_options *o, struct wb_buf *out)
{
    int err = wb_buf_append_str(out, " http://127.0.0.1:* http://localhost:* https://127.0.0.1:* https://localhost:*");

    for (size_t i = 0; err == 0 && i < o->host_count; i++) {
        struct wb_slice host = o->hosts[i];
        const char *port = without_port(host).len == host.len ? ":*" : "";
        err = wb_buf_printf(out, " http://%.*s%s https://%.*s%s", WB_SLICE_ARG(host), port, WB_SLICE_ARG(host), port);
    }
    return err;
}

/* docs/design/0045-replay-origin.md explains each directive. */
static int make_policy(const struct wb_serve_options *o, struct wb_replay_door *door)
{
    WB_CHECK(door->base.name.len > 0);
    WB_CHECK(door->policy.len == 0);
    int err =
        wb_buf_printf(&door->sources, "%s://*.%.*s", door->base.tls ? "https" : "http", WB_SLICE_ARG(door->base.name));
    struct wb_slice all = wb_buf_slice(&door->sources);

    if (err == 0)
        err = wb_buf_printf(&door->policy,
                            "default-src %.*s data: blob: 'unsafe-inline' 'unsafe-eval'; object-src %.*s; "
                            "base-uri %.*s; form-action %.*s; sandbox " WB_REPLAY_DOOR_SANDBOX "; frame-ancestors %.*s",
                            WB_SLICE_ARG(all), WB_SLICE_ARG(all), WB_SLICE_ARG(all), WB_SLICE_ARG(all),
                            WB_SLICE_ARG(all));
    return err < 0 ? err : put_ancestors(o, &door->policy);
}

static int find_name(const struct wb_server *server, struct wb_replay_door *door)
{
    const struct wb_serve_options *o = server->options;
    struct wb_slice address = wb_slice_str(wb_httpd_also_address(server->httpd));

    door->base.tls = o->replay_base.name.len ? o->replay_base.tls : o->certificate != NULL;
    if (o->replay_base.name.len)
        return wb_buf_append_slice(&door->name, o->replay_base.name);
    door->loopback = true;
    if (!wb_httpd_also_has_address(server->httpd, WB_SLICE_LIT("127.0.0.1")))
        return wb_fail(WB_E_INVALID,
                       "--replay-listen %.*s: browsers elsewhere need a name whose subdomains lead here; "
                       "give it with --replay-host",
                       WB_SLICE_ARG(o->replay_listen));
    return wb_buf_printf(&door->name, "localhost%s", (const char *)memrchr(address.ptr, ':', address.len));
}

int wb_replay_door_open(const struct wb_server *server, struct wb_replay_door **door_out)
{
    struct wb_replay_door *door = wb_alloc_zero(1, sizeof *door);

    *door_out = NULL;
    if (!door)
        return WB_E_NOMEM;
    door->magic = WB_REPLAY_DOOR_MAGIC;
    int err = find_name(server, door);
    door->base.name = wb_buf_slice(&door->name);
    if (err == 0)
        err = find_home(server, door);
    if (err == 0)
        err = make_policy(server->options, door);
    WB_CHECK(err < 0 || (door->policy.len > 0 && door->sources.len > 0 && door->home.len > 0));
    if (err < 0)
        wb_replay_door_close(door);
    else
        *door_out = door;
    return err;
}

void wb_replay_door_close(struct wb_replay_door *door)
{
    if (!door)
        return;
    WB_CHECK(door->magic == WB_REPLAY_DOOR_MAGIC);
    wb_buf_release(&door->name);
    wb_buf_release(&door->sources);
    wb_buf_release(&door->policy);
    wb_buf_release(&door->home);
    door->magic = 0;
    wb_free(door);
}

const struct wb_replay_door *wb_replay_door_for(const struct wb_call *call)
{
    const struct wb_replay_door *door = call->server->door;
    bool here = is_loopback_name(without_port(wb_http_field(call->request, "Host")));

    WB_CHECK(!door || door->magic == WB_REPLAY_DOOR_MAGIC);
    /* Where reading needs a token, a browser would ask for it again on every origin. */
    return door && call->server->reading_is_open && !call->request->also && (here || !door->loopback) ? door : NULL;
}

int wb_replay_door_address(const struct wb_replay_door *door, const char *digits, struct wb_slice url,
                           struct wb_buf *out)
{
    WB_CHECK(door->magic == WB_REPLAY_DOOR_MAGIC);
    struct wb_url parsed = WB_URL_INIT;
    int err = wb_url_parse(url, NULL, &parsed);

    if (err == 0)
        err = wb_replay_origin_address(&door->base, wb_slice_str(digits), &parsed, out);
    wb_url_release(&parsed);
    return err == WB_E_LIMIT ? WB_E_PROTO : err;
}

bool wb_replay_door_has_origin(const struct wb_replay_door *door, struct wb_slice origin)
{
    WB_CHECK(door->magic == WB_REPLAY_DOOR_MAGIC);
    struct wb_slice scheme = door->base.tls ? WB_SLICE_LIT("https://") : WB_SLICE_LIT("http://"), labels, time;
    struct wb_buf live = WB_BUF_INIT;

    if (!wb_slice_starts(origin, scheme))
        return false;
    bool ours =
        wb_replay_base_labels(&door->base, wb_slice(origin.ptr + scheme.len, origin.len - scheme.len), &labels) &&
        wb_replay_origin_parse(labels, &time, &live) == 0;
    wb_buf_release(&live);
    return ours;
}

/* ---- who is let in ------------------------------------------------------------------------------- */

/* The labels in front of our name; empty: it is the name itself, or an address. False: the request is not for us. */
static bool find_labels(const struct wb_server *server, const struct wb_http_request *request,
                        struct wb_slice *labels_out)
{
    WB_CHECK(server->door->magic == WB_REPLAY_DOOR_MAGIC);
    const struct wb_replay_base *base = &server->door->base;
    struct wb_slice host = wb_http_field(request, "Host");

    *labels_out = WB_SLICE_EMPTY;
    if (request->authority.ptr && !wb_slice_equal_nocase(request->authority, host))
        return false;
    if (!host.ptr || wb_slice_equal_nocase(host, base->name) || wb_replay_base_labels(base, host, labels_out))
        return true;
    return wb_httpd_also_has_address(server->httpd, without_port(host));
}

int wb_replay_door_admit(struct wb_server *server, const struct wb_http_request *head, uint64_t *body_max_out,
                         struct wb_http_reply *reply)
{
    WB_CHECK(server->magic == WB_SERVER_MAGIC);
    WB_CHECK(head->also);
    struct wb_slice labels, host = wb_http_field(head, "Host");

    *body_max_out = 0;
    if (!find_labels(server, head, &labels)) {
        wb_http_reply_error(reply, 421,
                            "replay does not answer for the host '%.*s'; if people reach it under this name, "
                            "give it with --replay-host",
                            (int)(host.len > 200 ? 200 : host.len), host.ptr ? host.ptr : "");
        return 1;
    }
    if (wb_route_is_guessing(server, head, reply))
        return 1;
    bool reads = head->method == WB_HTTP_GET || head->method == WB_HTTP_HEAD;
    bool asks = wb_slice_equal(head->method_text, WB_SLICE_LIT("OPTIONS"));
    if (!reads && (labels.len == 0 || !(asks || head->method == WB_HTTP_POST))) {
        wb_http_reply_error(reply, 405, "this method is not possible here");
        (void)wb_http_reply_field(reply, "Allow", WB_SLICE_LIT("GET, HEAD"));
        return 1;
    }
    unsigned refused = asks ? 0 : wb_access_check(server, head, WB_ACCESS_READER);
    if (refused) {
        wb_http_reply_error(reply, refused, "this needs a token: Authorization: Bearer TOKEN");
        (void)wb_http_reply_field(reply, "WWW-Authenticate", WB_SLICE_LIT("Bearer realm=\"webbase\""));
        return 1;
    }
    *body_max_out = head->method == WB_HTTP_POST ? FORM_BYTES : 0;
    return 0;
}

/* ---- the name itself ----------------------------------------------------------------------------- */

/* /web/TIME/URL leads a browser to the stage, where the page can be seen. */
static int lead_home(struct wb_call *call)
{
    WB_CHECK(call->request->also);
    WB_CHECK(call->reply->status == 200);
    struct wb_buf place = WB_BUF_INIT;
    int err = wb_buf_append_slice(&place, wb_buf_slice(&call->server->door->home));

    if (err == 0)
        err = wb_buf_append_slice(&place, call->request->target);
    call->reply->status = 302;
    if (err == 0)
        err = wb_http_reply_field(call->reply, "Location", wb_buf_slice(&place));
    wb_buf_release(&place);
    return err;
}

static void show_name(struct wb_call *call)
{
    struct wb_slice path = call->request->path;
    bool program = !wb_http_field(call->request, "Sec-Fetch-Dest").ptr &&
                   !wb_slice_starts(wb_http_field(call->request, "User-Agent"), WB_SLICE_LIT("Mozilla/"));

    if (wb_slice_starts(path, WB_SLICE_LIT("/web/")) && program) {
        wb_handle_replay(call);
        return;
    }
    int err = wb_slice_starts(path, WB_SLICE_LIT("/web/")) ? lead_home(call) : 0;
    if (call->reply->status != 302) {
        struct wb_htmlpen h;
        wb_htmlpen_init(&h, &call->reply->body);
        call->reply->status = wb_slice_equal(path, WB_SLICE_LIT("/")) ? 200 : 404;
        h.err = wb_http_reply_field(call->reply, "Content-Type", WB_SLICE_LIT("text/html; charset=utf-8"));
        if (h.err == 0)
            h.err = wb_http_reply_field(call->reply, "Content-Security-Policy",
                                        WB_SLICE_LIT("default-src 'none'; frame-ancestors 'none'"));
        wb_htmlpen_put(&h,
                       "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<title>WebBase: replay</title>\n<meta name=\"color-scheme\" content=\"light dark\">\n</head>\n"
                       "<body>\n<h1>Stored pages</h1>\n<p>At this address, each stored site has an origin of its own. "
                       "<a href=\"{}/\">Search and dates are here.</a></p>\n</body>\n</html>\n",
                       wb_htmlpen_text(wb_buf_slice(&call->server->door->home)));
        err = h.err;
    }
    if (err < 0)
        wb_call_fail(call, err);
}

void wb_replay_door_handle(struct wb_call *call)
{
    struct wb_slice labels;

    WB_CHECK(wb_call_is_fresh(call));
    WB_CHECK(call->request->also);
    if (find_labels(call->server, call->request, &labels) && labels.len) /* it was admitted */
        wb_origin_replay(call, labels);
    else
        show_name(call);
}
