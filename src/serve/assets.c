/* assets.c - GET /assets/NAME and the files that have a path of their own. They may be kept by the client for a day. */
#include "serve/assets.h"
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
    if (wb_slice_equal(wb_http_field(call->request, "If-None-Match"), wb_slice_str(asset->etag)))
        reply->status = 304;
    else if (err == 0)
        err = wb_buf_append_slice(&reply->body, asset->bytes);
    if (err < 0)
        wb_call_fail(call, err);
}

void wb_handle_asset(struct wb_call *call)
{
    struct wb_slice path = call->request->path;
    size_t prefix = sizeof "/assets/" - 1;
    const struct wb_asset *asset = wb_asset_find(wb_slice(path.ptr + prefix, path.len - prefix));

    if (asset)
        send(call, asset);
    else
        wb_http_reply_error(call->reply, 404, "there is nothing at %.*s", WB_SLICE_ARG(path));
}

void wb_handle_openapi(struct wb_call *call)
{
    send(call, wb_asset_find(WB_SLICE_LIT("openapi.json")));
}

void wb_handle_icon(struct wb_call *call)
{
    send(call, wb_asset_find(WB_SLICE_LIT("icon.svg")));
}
