/*
 * page_listing.c - GET /captures?url=HOST/(*): the captures of a site for people, with filters and orders (without the
 * parentheses). The parameters are those of /api/captures.
 */
#include "base/check.h"
#include "base/error.h"
#include "serve/htmlpen.h"
#include "serve/listing.h"

struct listing_view {
    struct wb_call *call;
    struct wb_htmlpen h;
    struct wb_slice url;
    struct wb_listing l;
};

/* Adds "name=value" to an address, unless it is empty. */
static void add_param(struct listing_view *v, const char *name, struct wb_slice value)
{
    if (value.len)
        wb_htmlpen_put(&v->h, "&amp;{}={}", wb_htmlpen_str(name), wb_htmlpen_param(value));
}

static void add_address(struct listing_view *v)
{
    wb_htmlpen_put(&v->h, "/captures?url={}", wb_htmlpen_param(v->url));
    add_param(v, "q", v->l.q);
    add_param(v, "type", v->l.type);
    add_param(v, "status", v->l.status);
}

static void add_field(struct listing_view *v, const char *name, const char *label, const char *hint,
                      struct wb_slice value)
{
    wb_htmlpen_put(&v->h, "<label>{} <input name=\"{}\" value=\"{}\" placeholder=\"{}\"></label>\n",
                   wb_htmlpen_str(label), wb_htmlpen_str(name), wb_htmlpen_text(value), wb_htmlpen_str(hint));
}

static void add_form(struct listing_view *v)
{
    wb_htmlpen_raw(&v->h, "<form class=\"filters\" action=\"/captures\" method=\"get\">\n");
    add_field(v, "url", "Begins with", "example.org/*", v->url);
    add_field(v, "q", "Contains", "text of the URL", v->l.q);
    add_field(v, "type", "Type", "text/html, image", v->l.type);
    add_field(v, "status", "Status", "200, 4xx", v->l.status);
    wb_htmlpen_raw(&v->h, "<button>Show</button>\n</form>\n");
}

/* The head of a column leads to its order: once more, to the opposite one. */
static void add_head(struct listing_view *v, enum wb_listing_sort sort, const char *words, bool number)
{
    bool now = v->l.sort == sort, down = now ? !v->l.down : sort != WB_LISTING_BY_URL;

    wb_htmlpen_put(&v->h, "<th scope=\"col\"{}{}>",
                   wb_htmlpen_markup(number ? WB_SLICE_LIT(" class=\"number\"") : WB_SLICE_EMPTY),
                   wb_htmlpen_markup(!now        ? WB_SLICE_EMPTY
                                     : v->l.down ? WB_SLICE_LIT(" aria-sort=\"descending\"")
                                                 : WB_SLICE_LIT(" aria-sort=\"ascending\"")));
    if (v->l.urls > WB_LISTING_SORTED) {
        wb_htmlpen_put(&v->h, "{}</th>", wb_htmlpen_str(words));
        return;
    }
    wb_htmlpen_raw(&v->h, "<a href=\"");
    add_address(v);
    wb_htmlpen_put(&v->h, "&amp;sort={}{}\">{}{}</a></th>", wb_htmlpen_str(down ? "-" : ""),
                   wb_htmlpen_str(wb_listing_sort_name(sort)), wb_htmlpen_str(words),
                   wb_htmlpen_str(!now        ? ""
                                  : v->l.down ? " \xE2\x96\xBE"
                                              : " \xE2\x96\xB4"));
}

static void add_row(struct listing_view *v, const struct wb_listing_row *row)
{
    struct wb_htmlpen *h = &v->h;

    wb_htmlpen_put(h, "<tr><td class=\"long\"><a href=\"/calendar?url={}\">{}</a></td><td class=\"number\">{}</td>",
                   wb_htmlpen_param(row->url), wb_htmlpen_text(row->url), wb_htmlpen_number(row->captures));
    wb_htmlpen_put(h, "<td><a href=\"/web/{}/{}\">{}</a></td><td><a href=\"/web/{}/{}\">{}</a></td>",
                   wb_htmlpen_digits(row->first_ms), wb_htmlpen_text(row->url), wb_htmlpen_time(row->first_ms),
                   wb_htmlpen_digits(row->last_ms), wb_htmlpen_text(row->url), wb_htmlpen_time(row->last_ms));
    wb_htmlpen_put(h, "<td class=\"number\">{}</td><td>{}</td></tr>\n", wb_htmlpen_plain(row->status),
                   wb_htmlpen_text(row->type.len ? row->type : WB_SLICE_LIT("unknown")));
}

static void add_table(struct listing_view *v)
{
    wb_htmlpen_raw(&v->h, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Captures\"><table>\n"
                          "<thead><tr>");
    add_head(v, WB_LISTING_BY_URL, "URL", false);
    add_head(v, WB_LISTING_BY_CAPTURES, "Captures", true);
    add_head(v, WB_LISTING_BY_FIRST, "First", false);
    add_head(v, WB_LISTING_BY_LAST, "Last", false);
    wb_htmlpen_raw(&v->h, "<th scope=\"col\" class=\"number\">Status</th><th scope=\"col\">Type</th></tr></thead>\n"
                          "<tbody>\n");
    for (size_t i = 0; i < v->l.rows.count; i++)
        add_row(v, &v->l.rows.items[i]);
    wb_htmlpen_raw(&v->h, "</tbody>\n</table></div>\n");
}

static void add_next(struct listing_view *v)
{
    struct wb_slice sort = wb_http_param(v->call->request, "sort");
    bool filtered = v->l.q.len || v->l.type.len || v->l.status.len;

    if (v->l.next.len == 0)
        return;
    if (filtered && v->l.sort == WB_LISTING_BY_URL && !v->l.down)
        wb_htmlpen_put(&v->h, "<p class=\"quiet\">{} URLs were looked at; a filter looks at about {} at once.</p>\n",
                       wb_htmlpen_number(v->l.looked_at), wb_htmlpen_number(WB_LISTING_LOOKS));
    wb_htmlpen_raw(&v->h, "<p><a href=\"");
    add_address(v);
    add_param(v, "sort", sort);
    add_param(v, "limit", wb_http_param(v->call->request, "limit"));
    add_param(v, "after", v->l.next);
    wb_htmlpen_raw(&v->h, "\">Go on</a></p>\n");
}

static void show(struct listing_view *v)
{
    wb_page_begin(v->call, &v->h,
                  &(struct wb_page_frame){.title = WB_SLICE_LIT("Captures of a site"), .place = WB_PAGE_SITE});
    wb_htmlpen_put(&v->h, "<article>\n<h1>Captures of a site</h1>\n<p class=\"address\">{}</p>\n",
                   wb_htmlpen_text(v->url));
    wb_htmlpen_put(&v->h, "<p>{} known {} like this; those that were captured are listed.</p>\n",
                   wb_htmlpen_number(v->l.urls), wb_htmlpen_str(v->l.urls == 1 ? "URL begins" : "URLs begin"));
    add_form(v);
    if (v->l.rows.count)
        add_table(v);
    else
        wb_htmlpen_put(&v->h, "<p class=\"note\">{}</p>\n",
                       wb_htmlpen_str(v->l.next.len ? "None so far." : "There are none."));
    add_next(v);
    wb_htmlpen_raw(&v->h, "</article>\n");
    wb_page_end(v->call, &v->h);
}

void wb_handle_listing_page(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct listing_view v = {.call = call, .url = wb_http_param(call->request, "url")};
    int err = wb_listing_read(call, &v.l);

    if (err == 0)
        show(&v);
    else
        wb_call_fail(call, err);
    wb_listing_release(&v.l);
}
