/*
 * api_listing.c - GET /api/captures?url=HOST/(*)[&q=][&type=][&status=][&sort=][&limit=][&after=]: the URLs of a site
 * with their captures (without the parentheses).
 *
 *   {"url":..., "urls":N, "rows":[{"url":...,"captures":3,"versions":2,"first":TIME,"last":TIME,"status":200,
 *    "type":"text/html"}], "looked_at":N, "next":null}
 */
#include "base/check.h"
#include "serve/listing.h"

static void add_row(struct wb_json *j, const struct wb_listing_row *row)
{
    wb_json_object(j);
    wb_json_field_slice(j, "url", row->url);
    wb_json_field_u64(j, "captures", row->captures);
    wb_json_field_u64(j, "versions", row->versions);
    wb_json_field_time(j, "first", row->first_ms);
    wb_json_field_time(j, "last", row->last_ms);
    wb_json_field_u64(j, "status", row->status);
    wb_json_field_text(j, "type", row->type);
    wb_json_object_end(j);
}

void wb_handle_listing(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct wb_listing l;
    struct wb_json j;
    int err = wb_listing_read(call, &l);

    if (err == 0) {
        wb_call_json(call, &j);
        wb_json_field_slice(&j, "url", wb_http_param(call->request, "url"));
        wb_json_field_u64(&j, "urls", l.urls);
        wb_json_key(&j, "rows");
        wb_json_array(&j);
        for (size_t i = 0; i < l.rows.count; i++)
            add_row(&j, &l.rows.items[i]);
        wb_json_array_end(&j);
        wb_json_field_u64(&j, "looked_at", l.looked_at);
        wb_json_field_text(&j, "next", l.next);
        wb_call_json_end(call, &j, 0);
    } else {
        wb_call_fail(call, err);
    }
    wb_listing_release(&l);
}
