/*
 * import_itself.c - redirects of a page to another spelling of itself: from http to https, from /a to /a/.
 *
 * Such an answer has the same key as the page that it leads to, and an archive usually has both. Where old versions
 * are kept, it is one of them, like any other answer. But a repository that keeps one version of each page keeps the
 * page: an answer that says nothing but how it is spelled must not displace it, in whatever order the two arrive:
 *
 *   it comes when there is a page that is as old, or older    it is kept out
 *   it comes first, and then a page that is older             it makes room
 *   otherwise                                                 it is replaced by the page, which is newer
 */
#include "ingest/import_itself.h"
#include "base/error.h"
#include "page/page.h"

/* Whether the page is such a redirect: 1, 0 or an error. Uses importer->url and importer->key. */
static int is_itself(struct wb_importer *importer, const struct wb_page *page)
{
    struct wb_url base = WB_URL_INIT;
    struct wb_slice location;

    if (!wb_http_status_redirects(page->status))
        return 0;
    int err = wb_http_location(page->head, page->url, &base, &importer->url, &location);
    if (err == 0)
        err = wb_url_key(&importer->url, &importer->key);
    wb_url_release(&base);
    if (err < 0)
        return err == WB_E_NOMEM ? err : 0;
    return wb_pageid_equal(wb_pageid_of_key(wb_buf_slice(&importer->key)), page->id);
}

/* The latest version of the page, uncommitted ones included: 1 if it is such a redirect, 0 if not, or an error. */
static int latest_is_itself(struct wb_importer *importer, struct wb_pageid id, int64_t *time_ms_out)
{
    struct wb_page latest;
    int err = wb_store_get(importer->store, id, &latest, &importer->body);

    *time_ms_out = err == 0 ? latest.time_ms : 0;
    return err < 0 ? err : is_itself(importer, &latest);
}

int wb_import_itself_yields(struct wb_importer *importer, const struct wb_page *page)
{
    int64_t time_ms;
    int is = importer->newest_only ? is_itself(importer, page) : 0;

    if (is <= 0)
        return is;
    is = latest_is_itself(importer, page->id, &time_ms);
    /* The reader of a damaged page reports it. */
    if (is < 0)
        return is == WB_E_NOTFOUND || is == WB_E_CORRUPT || is == WB_E_DOWN ? 0 : is;
    return is == 0 && time_ms <= page->time_ms;
}

/* Whether all committed versions of a page are redirects; the catalog knows. 1, 0 or an error. */
static int only_redirects(struct wb_importer *importer, struct wb_pageid id)
{
    struct wb_store_timeline timeline = {0};
    int only = 1, err = wb_store_timeline(importer->store, id, &timeline);

    if (err < 0)
        return err == WB_E_NOTFOUND ? 1 : err;
    for (size_t i = 0; i < timeline.count && only; i++)
        only = wb_http_status_redirects(timeline.versions[i].status);
    wb_store_timeline_release(&timeline);
    return only;
}

int wb_import_itself_gives_way(struct wb_importer *importer, const struct wb_page *page)
{
    int64_t time_ms;
    int is = importer->newest_only ? is_itself(importer, page) : 1;

    if (is != 0)
        return is < 0 ? is : 0;
    is = only_redirects(importer, page->id);
    if (is > 0)
        is = latest_is_itself(importer, page->id, &time_ms);
    if (is <= 0)
        return is == WB_E_NOTFOUND || is == WB_E_CORRUPT || is == WB_E_DOWN ? 0 : is;
    int err = wb_store_remove(importer->store, page->id, wb_key_site(page->key), time_ms, true);
    return err < 0 ? err : wb_store_put(importer->store, page, NULL);
}
