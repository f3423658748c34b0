/*
 * assets.c - GET /assets/NAME, /opensearch.xml, /robots.txt and other files with a path of their own. Clients may keep
 * assets for a day.
 */
#include "serve/assets.h"
#include "base/check.h"
#include "base/error.h"
#include "serve/delivery.h"
#include "serve/htmlpen.h"
#include "serve/memento.h"
#include "serve/server.h"

const struct wb_asset *wb_asset_find(struct wb_slice name)
{
    for (const struct wb_asset *asset = wb_assets; asset->name; asset++)
        if (wb_slice_equal(name, wb_slice_str(asset->name)))
            return asset;
    return NULL;
}

static void send(struct wb_call *call, const struct wb_asset *asset)
{
    struct wb_http_reply *reply = call->reply;
    int err = wb_http_reply_field(reply, "Content-Type", wb_slice_str(asset->type));

    if (err == 0)
        err = wb_http_reply_field(reply, "Cache-Control", WB_SLICE_LIT("max-age=86400"));
    if (err == 0)
        err = wb_http_reply_field(reply, "ETag", wb_slice_str(asset->etag));
    if (wb_delivery_has_tag(wb_http_field(call->request, "If-None-Match"), wb_slice_str(asset->etag)))
        reply->status = 304;
    else if (err == 0)
        err = wb_buf_append_slice(&reply->body, asset->bytes);
    if (err < 0)
        wb_call_fail(call, err);
}

void wb_handle_asset(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct wb_slice path = call->request->path;
    size_t prefix = sizeof "/assets/" - 1;

    WB_CHECK(path.len >= prefix); /* that is its route */
    const struct wb_asset *asset = wb_asset_find(wb_slice(path.ptr + prefix, path.len - prefix));
    if (asset)
        send(call, asset);
    else
        wb_http_reply_error(call->reply, 404, "there is nothing at %.*s", WB_SLICE_ARG(path));
}

void wb_handle_openapi(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    send(call, wb_asset_find(WB_SLICE_LIT("openapi.json")));
}

void wb_handle_icon(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    send(call, wb_asset_find(WB_SLICE_LIT("icon.svg")));
}

/* ---- what browsers and crawlers ask a site for ------------------------------------------------- */

/* The addresses in the description must be absolute, so they have the name by which the browser knows the server. */
void wb_handle_opensearch(struct wb_call *call)
{
    struct wb_htmlpen h;
    struct wb_buf origin = WB_BUF_INIT;

    WB_CHECK(wb_call_is_fresh(call));
    wb_htmlpen_init(&h, &call->reply->body);
    wb_call_type(call, "application/opensearchdescription+xml");
    h.err = wb_memento_origin(call, &origin);
    wb_htmlpen_raw(&h,
                   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                   "<OpenSearchDescription xmlns=\"http://a9.com/-/spec/opensearch/1.1/\">\n"
                   "<ShortName>WebBase</ShortName>\n<Description>Search this collection of web pages</Description>\n"
                   "<InputEncoding>UTF-8</InputEncoding>\n");
    wb_htmlpen_put(&h, "<Image height=\"16\" width=\"16\" type=\"image/svg+xml\">{}/assets/icon.svg</Image>\n",
                   wb_htmlpen_text(wb_buf_slice(&origin)));
    wb_htmlpen_put(&h, "<Url type=\"text/html\" method=\"get\" template=\"{}/?q={searchTerms}\"/>\n",
                   wb_htmlpen_text(wb_buf_slice(&origin)));
    wb_htmlpen_put(&h,
                   "<Url type=\"application/x-suggestions+json\" method=\"get\" "
                   "template=\"{}/api/complete?format=opensearch&amp;q={searchTerms}\"/>\n",
                   wb_htmlpen_text(wb_buf_slice(&origin)));
    wb_htmlpen_put(&h,
                   "<Url type=\"application/json\" method=\"get\" template=\"{}/api/search?q={searchTerms}\"/>\n"
                   "</OpenSearchDescription>\n",
                   wb_htmlpen_text(wb_buf_slice(&origin)));
    if (h.err < 0)
        wb_call_fail(call, h.err);
    wb_buf_release(&origin);
}

/* The pages here are copies, or about copies: other crawlers should fetch the originals. */
void wb_handle_robots(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    wb_call_type(call, "text/plain; charset=utf-8");
    if (wb_buf_append_str(&call->reply->body, "User-agent: *\nDisallow: /\n") < 0)
        wb_call_fail(call, WB_E_NOMEM);
}
