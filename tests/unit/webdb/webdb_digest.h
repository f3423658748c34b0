/* webdb_digest.h - everything that can be read of a web database, as one number. */
#ifndef WB_TESTS_WEBDB_DIGEST_H
#define WB_TESTS_WEBDB_DIGEST_H

#include "base/hash.h"
#include "webdb_compare.h"

static void mix_page(uint64_t *digest, const struct wb_webdb_page *page)
{
    uint64_t facts[] = {page->number,
                        page->flags,
                        page->has_content,
                        page->simhash,
                        page->status,
                        page->inlinks,
                        (uint64_t)page->last_seen_ms,
                        wb_hash64(page->url.ptr, page->url.len),
                        wb_hash64(page->md5, sizeof page->md5),
                        *digest};

    *digest = wb_hash64(facts, sizeof facts);
}

static int read_pages(int err, struct wb_webdb_pages **pages, uint64_t *digest)
{
    struct wb_webdb_page page;

    if (err < 0)
        return err;
    while ((err = wb_webdb_pages_next(*pages, &page)) > 0)
        mix_page(digest, &page);
    wb_webdb_pages_close(*pages);
    return err;
}

static int read_links(int err, struct wb_webdb_links **links, uint64_t *digest)
{
    struct wb_webdb_link link;

    if (err < 0)
        return err;
    while ((err = wb_webdb_links_next(*links, &link)) > 0) {
        uint64_t facts[] = {wb_hash64(link.from_md5, sizeof link.from_md5), wb_hash64(link.to.ptr, link.to.len),
                            wb_hash64(link.anchor.ptr, link.anchor.len), link.tag, link.flags, *digest};
        *digest = wb_hash64(facts, sizeof facts);
    }
    wb_webdb_links_close(*links);
    return err;
}

static int read_walks(struct wb_webdb *webdb, uint64_t *digest)
{
    struct wb_webdb_pages *pages = NULL;
    struct wb_webdb_links *links = NULL;
    uint8_t md5[WB_MD5_BYTES];
    int err = read_pages(wb_webdb_pages(webdb, &pages), &pages, digest);

    if (err == 0)
        err = read_pages(wb_webdb_pages_by_md5(webdb, &pages), &pages, digest);
    if (err == 0)
        err = read_pages(wb_webdb_pages_of_site(webdb, wb_slice_str(twin_sites[1]), &pages), &pages, digest);
    if (err == 0)
        err = read_links(wb_webdb_links(webdb, &links), &links, digest);
    for (int i = 0; err == 0 && i < TWIN_MD5S; i++) {
        twin_md5(i, md5);
        err = read_links(wb_webdb_links_from(webdb, md5, &links), &links, digest);
        if (err == 0)
            err = read_pages(wb_webdb_get_pages(webdb, md5, &pages), &pages, digest);
    }
    return err;
}

static int read_all(const char *dir, uint64_t *digest)
{
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_links *links = NULL;
    struct wb_webdb_page page;
    struct wb_webdb_site site;
    int err = wb_webdb_open(dir, &webdb);

    *digest = 0;
    if (err < 0) {
        assert_null(webdb);
        return err;
    }
    err = read_walks(webdb, digest);
    for (unsigned url = 0; err == 0 && url < TWIN_URLS; url++) {
        err = wb_webdb_get_page(webdb, twin_url(url, true, false), &page);
        if (err == 0)
            mix_page(digest, &page);
        err = err == WB_E_NOTFOUND ? 0 : err;
        if (err == 0)
            err = read_links(wb_webdb_links_to(webdb, twin_url(url, false, true), &links), &links, digest);
    }
    for (int i = 0; err == 0 && i < TWIN_SITES; i++) {
        err = wb_webdb_get_site(webdb, wb_slice_str(twin_sites[i]), &site);
        *digest += err == 0 ? site.pages * 3 + site.fetched : 1;
        err = err == WB_E_NOTFOUND ? 0 : err;
    }
    wb_webdb_close(webdb);
    return err;
}

#endif
