/*
 * same_links.h - checks that a rewritten page has the same links as the page it was made from, in the archive. Used by
 * tests and by the fuzzer.
 */
#ifndef WB_TESTS_SAME_LINKS_H
#define WB_TESTS_SAME_LINKS_H

#include "base/check.h"
#include "extract/extract.h"
#include "replay/replay.h"

#define SAME_LINKS_TIME "20260102030405"
#define SAME_LINKS_HOST "http://archive.example"
#define SAME_LINKS_PLACE SAME_LINKS_HOST "/web/" SAME_LINKS_TIME "/"

/* What the URL of a link must have become; *any_out: there is more than one answer. */
static inline int moved_link(const struct wb_extract_link *link, struct wb_slice page_url, struct wb_buf *want,
                             bool *any_out)
{
    static struct wb_url url;
    bool follow = link->tag == WB_EXTRACT_LINK_A || link->tag == WB_EXTRACT_LINK_AREA;

    wb_buf_clear(want);
    *any_out = link->url.len == 0 || wb_url_parse(link->url, NULL, &url) < 0;
    if (*any_out)
        return 0;
    struct wb_slice scheme = wb_url_scheme(&url);
    if (wb_slice_equal(scheme, WB_SLICE_LIT("javascript")) || wb_slice_equal(scheme, WB_SLICE_LIT("vbscript")))
        return follow ? wb_buf_printf(want, SAME_LINKS_PLACE "%.*s#", WB_SLICE_ARG(page_url))
                      : wb_buf_append_str(want, "about:blank");
    if (url.special && wb_buf_append_str(want, SAME_LINKS_PLACE) < 0)
        return -1;
    *any_out = want->len + link->url.len > WB_URL_MAX_BYTES / 3;
    if (wb_buf_append_slice(want, link->url) < 0 || *any_out || !url.special)
        return *any_out || !url.special ? 0 : -1;
    /* A few characters of a host are not allowed in a path and are encoded there. */
    if (wb_url_parse(wb_buf_slice(want), NULL, &url) < 0)
        return -1;
    wb_buf_clear(want);
    return wb_buf_append_slice(want, wb_url_href(&url));
}

/*
 * Compares what is extracted from a page and from its rewritten form. Returns NULL, or what differs.
 * page_url is in its normal form.
 */
static inline const char *compare_links(const struct wb_extract *page, const struct wb_extract *moved,
                                        struct wb_slice page_url, struct wb_buf *want)
{
    if (!wb_slice_equal(page->text, moved->text))
        return "the text";
    if (!wb_slice_equal(page->title, moved->title))
        return "the title";
    if (page->link_count != moved->link_count)
        return "the number of links";
    for (size_t i = 0; i < page->link_count; i++) {
        bool any = false;
        if (moved_link(&page->links[i], page_url, want, &any) < 0)
            return "memory";
        if (!any && !wb_slice_equal(moved->links[i].url, wb_buf_slice(want)))
            return "a link";
        if (!wb_slice_equal(page->links[i].anchor, moved->links[i].anchor))
            return "an anchor";
    }
    return NULL;
}

#endif
