/*
 * stage.c - the document around a stored page, and the policy that says where the page in its frame may go: frame-src
 * holds for every navigation of a frame, also for those that a script in it begins.
 */
#include "serve/stage.h"
#include "base/check.h"
#include "base/error.h"
#include "serve/assets.h"

/* Only what the server itself has; the frame goes nowhere but to stored pages, and nobody frames the stage. */
static int add_policy(struct wb_call *call, const struct wb_stage *stage)
{
    WB_CHECK(stage->frames.len > 0); /* without a source, the policy would be another one */
    struct wb_buf policy = WB_BUF_INIT;
    int err = wb_buf_printf(&policy,
                            "default-src 'none'; frame-src %.*s; style-src 'self'; script-src 'self'; img-src 'self'; "
                            "connect-src 'self'; "
                            "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
                            WB_SLICE_ARG(stage->frames));

    if (err == 0)
        err = wb_http_reply_field(call->reply, "Content-Security-Policy", wb_buf_slice(&policy));
    wb_buf_release(&policy);
    return err;
}

static int add_fields(struct wb_call *call, const struct wb_stage *stage)
{
    int err = add_policy(call, stage);

    if (err == 0)
        err = wb_http_reply_field(call->reply, "Content-Type", WB_SLICE_LIT("text/html; charset=utf-8"));
    if (err == 0)
        err = wb_http_reply_field(call->reply, "Cache-Control", WB_SLICE_LIT("private, no-cache"));
    return err < 0 ? err : wb_http_reply_field(call->reply, "Vary", WB_SLICE_LIT("Sec-Fetch-Dest"));
}

int wb_stage_show(struct wb_call *call, const struct wb_stage *stage)
{
    struct wb_htmlpen h;

    WB_CHECK(call->magic == WB_CALL_MAGIC);
    WB_CHECK(call->reply->body.len == 0);
    WB_CHECK(stage->at < stage->timeline->time_count);
    WB_CHECK(stage->sandbox.len > 0);
    WB_CHECK(stage->src.len > 0);
    wb_htmlpen_init(&h, &call->reply->body);
    h.err = add_fields(call, stage);
    wb_htmlpen_raw(&h, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    wb_htmlpen_put(&h, "<title>{}</title>\n", wb_htmlpen_text(stage->url));
    wb_htmlpen_raw(&h, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta name=\"color-scheme\" content=\"light dark\">\n"
                       "<meta name=\"robots\" content=\"noindex\">\n");
    wb_page_asset(&h, "<link rel=\"stylesheet\" href=\"/assets/{}?{}\">\n", "webbase.css");
    wb_page_asset(&h, "<link rel=\"stylesheet\" href=\"/assets/{}?{}\">\n", "stage.css");
    wb_page_asset(&h, "<link rel=\"icon\" href=\"/assets/{}?{}\" type=\"image/svg+xml\">\n", "icon.svg");
    wb_page_asset(&h, "<script src=\"/assets/{}?{}\" defer></script>\n", "times.js");
    wb_page_asset(&h, "<script src=\"/assets/{}?{}\" defer></script>\n", "bar.js");
    wb_page_asset(&h, "<script src=\"/assets/{}?{}\" defer></script>\n", "stage.js");
    wb_htmlpen_raw(&h, "</head>\n<body class=\"stage\">\n<header class=\"stage-bar\">\n");
    wb_stage_bar(&h, stage);
    wb_htmlpen_raw(&h, "</header>\n<main>\n<h1 class=\"hidden\">Stored page</h1>\n");
    wb_htmlpen_put(&h,
                   "<iframe id=\"page\" title=\"Stored page\" sandbox=\"{}\" referrerpolicy=\"no-referrer\" "
                   "allow=\"fullscreen; autoplay\" src=\"{}\"></iframe>\n</main>\n</body>\n</html>\n",
                   wb_htmlpen_text(stage->sandbox), wb_htmlpen_text(stage->src));
    return h.err;
}
