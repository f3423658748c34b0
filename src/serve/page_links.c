/* page_links.c - the neighbours of a page for people: links to and from it with their texts, and similar pages. */
#include "base/check.h"
#include "base/error.h"
#include "serve/page_view.h"

enum { LINKS_SHOWN = 25, SIMILAR_SHOWN = 8 };

/* ---- links ------------------------------------------------------------------------------------------------------- */

struct page_links_walk {
    struct wb_htmlpen *h;
    uint64_t at, after;
    bool more;
};

static int add_link(void *context, const struct wb_link_row *row)
{
    struct page_links_walk *walk = context;
    uint64_t at = walk->at++;

    WB_CHECK(!walk->more); /* that has ended the walk */
    if (at < walk->after)
        return 0;
    if (at >= walk->after + LINKS_SHOWN) {
        walk->more = true;
        return 1; /* ends the walk */
    }
    wb_htmlpen_raw(walk->h, "<li>");
    if (row->anchor.len)
        wb_htmlpen_put(walk->h, "<q>{}</q> ", wb_htmlpen_text(row->anchor));
    wb_htmlpen_page_link(walk->h, row->url, row->url);
    wb_htmlpen_raw(walk->h, "</li>\n");
    return 0;
}

/* One direction. The first page of the other one is kept when this one is turned over. */
static void add_direction(struct wb_page_view *v, enum wb_webdb_direction direction, const char *name,
                          const char *title)
{
    struct page_links_walk walk = {.h = &v->h};
    struct wb_slice url = v->stored ? v->page.url : v->url;

    if (v->h.err == 0)
        v->h.err = wb_call_number(v->call, name, 0, UINT32_MAX, &walk.after);
    wb_htmlpen_put(&v->h, "<section aria-labelledby=\"{}\">\n<h2 id=\"{}\">{}</h2>\n<ul class=\"links\">\n",
                   wb_htmlpen_str(name), wb_htmlpen_str(name), wb_htmlpen_str(title));
    int err = v->h.err < 0 ? v->h.err : wb_links(v->searcher, url, direction, add_link, &walk);
    if (v->h.err == 0 && err < 0 && err != WB_E_NOTFOUND)
        v->h.err = err;
    wb_htmlpen_raw(&v->h, "</ul>\n");
    if (walk.at <= walk.after)
        wb_htmlpen_put(&v->h, "<p class=\"quiet\">{}</p>\n", wb_htmlpen_str(walk.at ? "No more." : "None."));
    if (walk.after)
        wb_htmlpen_put(&v->h, "<a rel=\"prev\" href=\"/page?url={}&amp;{}={}#{}\">Previous</a>\n",
                       wb_htmlpen_param(url), wb_htmlpen_str(name),
                       wb_htmlpen_plain(walk.after > LINKS_SHOWN ? walk.after - LINKS_SHOWN : 0), wb_htmlpen_str(name));
    if (walk.more)
        wb_htmlpen_put(&v->h, "<a rel=\"next\" href=\"/page?url={}&amp;{}={}#{}\">More</a>\n", wb_htmlpen_param(url),
                       wb_htmlpen_str(name), wb_htmlpen_plain(walk.after + LINKS_SHOWN), wb_htmlpen_str(name));
    wb_htmlpen_raw(&v->h, "</section>\n");
}

void wb_page_links(struct wb_page_view *v)
{
    WB_CHECK(v->h.magic == WB_HTMLPEN_MAGIC && (v->docid == WB_DOCID_NONE || v->searcher));
    if (v->docid == WB_DOCID_NONE) {
        wb_htmlpen_raw(&v->h,
                       "<p class=\"note\">The index does not know this page yet, so links to it and similar pages are "
                       "not known.</p>\n");
        return;
    }
    wb_htmlpen_raw(&v->h, "<div class=\"two\">\n");
    add_direction(v, WB_ARCS_IN, "in", "Links to this page");
    add_direction(v, WB_ARCS_OUT, "out", "Links from this page");
    wb_htmlpen_raw(&v->h, "</div>\n");
}

/* ---- similar pages ----------------------------------------------------------------------------------------------- */

static int add_similar_page(struct wb_page_view *v, const struct wb_similar_page *page)
{
    struct wb_index *index = wb_searcher_index(v->searcher);
    struct wb_slice url, title = WB_SLICE_EMPTY;

    int err = wb_index_url(index, page->docid, &url);
    if (err == 0 && page->docid < wb_index_info(index)->pages)
        err = wb_index_title(index, page->docid, &title);
    if (err < 0)
        return err;
    wb_htmlpen_raw(&v->h, "<li>");
    wb_htmlpen_page_link(&v->h, url, title.len ? title : url);
    wb_htmlpen_put(&v->h, " <span class=\"count\">{} %</span> <span class=\"address\">{}</span></li>\n",
                   wb_htmlpen_plain((uint64_t)(page->score * 100 + 0.5)), wb_htmlpen_text(url));
    return 0;
}

void wb_page_similar(struct wb_page_view *v)
{
    struct wb_similar_page pages[SIMILAR_SHOWN];
    size_t count = 0;

    WB_CHECK(v->h.magic == WB_HTMLPEN_MAGIC && (v->docid == WB_DOCID_NONE || v->searcher));
    if (v->docid == WB_DOCID_NONE)
        return;
    int err = wb_similar(v->searcher, v->docid, 0, SIMILAR_SHOWN, pages, &count);
    if (err == 0 && count > 0) {
        wb_htmlpen_raw(&v->h, "<section aria-labelledby=\"similar\">\n<h2 id=\"similar\">Similar pages</h2>\n"
                              "<ul class=\"links\">\n");
        for (size_t i = 0; i < count && err == 0; i++)
            err = add_similar_page(v, &pages[i]);
        wb_htmlpen_raw(&v->h, "</ul>\n</section>\n");
    }
    if (err < 0 && err != WB_E_NOTFOUND && v->h.err == 0)
        v->h.err = err;
}
