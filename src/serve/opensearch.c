/* opensearch.c - what browsers and crawlers ask a site for: GET /opensearch.xml and GET /robots.txt. */
#include "base/error.h"
#include "serve/htmlpen.h"
#include "serve/memento.h"

/* The addresses in the description must be absolute, so they have the name by which the browser knows the server. */
void wb_handle_opensearch(struct wb_call *call)
{
    struct wb_htmlpen h = {.out = &call->reply->body};
    struct wb_buf origin = WB_BUF_INIT;

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
    wb_call_type(call, "text/plain; charset=utf-8");
    if (wb_buf_append_str(&call->reply->body, "User-agent: *\nDisallow: /\n") < 0)
        wb_call_fail(call, WB_E_NOMEM);
}
