/* location.c - finds the target of a redirect in the head of its response. It never follows it. */
#include "base/check.h"
#include "base/error.h"
#include "page/page.h"

int wb_http_location(struct wb_slice head, struct wb_slice url, struct wb_url *base, struct wb_url *url_out,
                     struct wb_slice *location_out)
{
    struct wb_slice header;

    *location_out = WB_SLICE_EMPTY;
    if (!wb_http_header(head, "location", &header))
        return wb_fail(WB_E_PROTO, "a redirect without Location");
    int err = wb_url_parse(url, NULL, base);
    if (err == 0)
        err = wb_url_parse(header, base, url_out);
    if (err == WB_E_NOMEM)
        return err;
    if (err < 0 || !wb_url_is_http(url_out))
        return wb_fail(WB_E_PROTO, "a redirect whose Location is not an http or https URL");
    struct wb_slice href = wb_url_href(url_out);
    if (url_out->has_fragment) {
        WB_CHECK(url_out->fragment_at > 0 && url_out->fragment_at <= href.len);
        href.len = url_out->fragment_at - 1;
    }
    *location_out = href;
    return 0;
}
