/*
 * webdb_compare.h - checks that a reader of the web database sees exactly what the twin has, through every call and in
 * the promised order. If not, the test fails; with compare_quiet, the caller is told instead.
 */
#ifndef WB_TESTS_WEBDB_COMPARE_H
#define WB_TESTS_WEBDB_COMPARE_H

#include "webdb_twin_writer.h"

/* For tests that want to know and not to fail: nothing is printed, and a longjmp() ends the comparison. */
static jmp_buf *compare_quiet;
static int compare_error; /* of the reader, if that was the reason */

#define same(cond, url) ((cond) ? (void)0 : differs(#cond, (url), __LINE__))

UNUSED void differs(const char *what, unsigned url, int line)
{
    if (compare_quiet)
        longjmp(*compare_quiet, 1);
    fail_msg("line %d, page %s: %s (last message: %s)", line, twin_texts[url][0], what, wb_error_message());
}

/* Passes on the result of a call; an error ends the comparison. */
UNUSED int worked(int err)
{
    if (err < 0) {
        compare_error = err;
        if (compare_quiet)
            longjmp(*compare_quiet, 1);
        fail_msg("%d: %s", err, wb_error_message());
    }
    return err;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static uint64_t count_inlinks(const struct twin *twin, unsigned url)
{
    uint64_t count = 0;

    for (unsigned md5 = 0; md5 < TWIN_MD5S; md5++)
        count += twin->links[md5][url].there;
    return count;
}

static bool is_spelling(struct wb_slice text, unsigned url)
{
    bool found = false;

    for (unsigned i = 0; i < 4; i++)
        found = found || wb_slice_equal(text, twin_url(url, i & 1, i & 2));
    return found;
}

static void same_history(const struct wb_visitlog *a, const struct wb_visitlog *b, unsigned url)
{
    same(a->visits == b->visits && a->changes == b->changes && a->unchanged_days == b->unchanged_days, url);
    same(memcmp(a->changed, b->changed, sizeof a->changed) == 0, url);
    same(a->modified_lies == b->modified_lies && a->modified_visits == b->modified_visits &&
             a->modified_changes == b->modified_changes,
         url);
    same(a->modified_days == b->modified_days && a->fetch_count == b->fetch_count, url);
    for (unsigned i = 0; i < a->fetch_count; i++)
        same(a->fetches[i].time_ms == b->fetches[i].time_ms && a->fetches[i].outcome == b->fetches[i].outcome &&
                 a->fetches[i].status == b->fetches[i].status, url);
}

/* Facts that only pages have that were added directly. */
static void same_all(const struct wb_webdb_page *page, const struct wb_webdb_page *row, unsigned url)
{
    same(page->flags == row->flags, url);
    same(page->title_hash == row->title_hash, url);
    same(page->first_seen_ms == row->first_seen_ms && page->last_changed_ms == row->last_changed_ms, url);
    same(page->failures == row->failures && page->signals == row->signals, url);
    same(page->hint_ms == row->hint_ms && page->expires_ms == row->expires_ms && page->asked_ms == row->asked_ms, url);
    same(page->lifetime == row->lifetime, url);
    same(wb_slice_equal(page->etag, row->etag) && wb_slice_equal(page->modified, row->modified), url);
    same(wb_slice_equal(page->type, row->type) && wb_slice_equal(page->location, row->location), url);
    same_history(&page->history, &row->history, url);
}

static void same_page(const struct twin *twin, unsigned url, const struct wb_webdb_page *page)
{
    const struct twin_page *twin_page = &twin->pages[url];
    const struct wb_webdb_page *row = &twin_page->row;
    const unsigned told =
        WB_PAGE_WANTED | WB_PAGE_GONE | WB_PAGE_BARRED | WB_PAGE_BLOCKED | WB_PAGE_SCORED | WB_PAGE_TARGET;

    same(twin_page->there, url);
    same(wb_slice_equal(page->surt, wb_slice_str(twin_surts[url])), url);
    same(is_spelling(page->url, url) && (twin_page->spelled_anyhow || wb_slice_equal(page->url, row->url)), url);
    same(page->has_content == row->has_content && memcmp(page->md5, row->md5, sizeof page->md5) == 0, url);
    same(page->simhash == row->simhash && page->bytes == row->bytes, url);
    same(page->status == row->status && page->outcome == row->outcome && page->depth == row->depth, url);
    same(page->last_seen_ms == row->last_seen_ms && page->last_tried_ms == row->last_tried_ms, url);
    same((page->flags & told) == (row->flags & told), url);
    same(page->next_due_ms == (row->last_tried_ms ? row->last_tried_ms + TWIN_WEEK_MS : 0), url);
    same(page->inlinks == count_inlinks(twin, url), url);
    if (row->flags & WB_PAGE_SCORED)
        same(page->score == row->score, url);
    if (twin_page->by_hand)
        same_all(page, row, url);
}

/* The walk must return the pages of the twin for which wanted() is true, in the order of SURTs. */
static void same_walk(const struct twin *twin, struct wb_webdb_pages *pages, int site, int md5)
{
    struct wb_webdb_page page;
    uint8_t bytes[WB_MD5_BYTES] = {0};
    uint64_t number = 0;

    if (md5 >= 0)
        twin_md5(md5, bytes);
    for (unsigned i = 0; i < TWIN_URLS; i++) {
        unsigned url = twin_order[i];
        const struct twin_page *twin_page = &twin->pages[url];
        if (!twin_page->there || (site >= 0 && url / TWIN_PATHS != (unsigned)site) ||
            (md5 >= 0 && (!twin_page->row.has_content || memcmp(twin_page->row.md5, bytes, sizeof bytes) != 0)))
            continue;
        same(worked(wb_webdb_pages_next(pages, &page)) == 1, url);
        same_page(twin, url, &page);
        same(i == 0 || page.number >= number, url);
        number = page.number + 1;
    }
    same(worked(wb_webdb_pages_next(pages, &page)) == 0, 0);
    wb_webdb_pages_close(pages);
}

static void same_by_md5(const struct twin *twin, struct wb_webdb *webdb)
{
    struct wb_webdb_pages *pages = NULL;
    struct wb_webdb_page page;
    uint8_t bytes[WB_MD5_BYTES];

    worked(wb_webdb_pages_by_md5(webdb, &pages));
    for (int md5 = 0; md5 < TWIN_MD5S; md5++) {
        twin_md5(md5, bytes);
        for (unsigned i = 0; i < TWIN_URLS; i++) {
            const struct twin_page *twin_page = &twin->pages[twin_order[i]];
            if (!twin_page->there || !twin_page->row.has_content ||
                memcmp(twin_page->row.md5, bytes, sizeof bytes) != 0)
                continue;
            same(worked(wb_webdb_pages_next(pages, &page)) == 1, twin_order[i]);
            same_page(twin, twin_order[i], &page);
        }
    }
    same(worked(wb_webdb_pages_next(pages, &page)) == 0, 0);
    wb_webdb_pages_close(pages);
}

static void same_pages(const struct twin *twin, struct wb_webdb *webdb)
{
    struct wb_webdb_pages *pages = NULL;
    struct wb_webdb_page page;
    uint8_t bytes[WB_MD5_BYTES];

    for (unsigned url = 0; url < TWIN_URLS; url++)
        for (unsigned spelling = 0; spelling < 4; spelling++) {
            int err = wb_webdb_get_page(webdb, twin_url(url, spelling & 1, spelling & 2), &page);
            same(err == (twin->pages[url].there ? 0 : WB_E_NOTFOUND), (worked(err == WB_E_NOTFOUND ? 0 : err), url));
            if (err == 0)
                same_page(twin, url, &page);
        }
    worked(wb_webdb_pages(webdb, &pages));
    same_walk(twin, pages, -1, -1);
    for (int site = 0; site < TWIN_SITES; site++) {
        worked(wb_webdb_pages_of_site(webdb, wb_slice_str(twin_sites[site]), &pages));
        same_walk(twin, pages, site, -1);
    }
    for (int md5 = 0; md5 < TWIN_MD5S; md5++) {
        twin_md5(md5, bytes);
        bool exists;
        same(wb_webdb_page_exists(webdb, bytes, &exists) == 0 && exists == twin_has_content(twin, md5), 0);
        worked(wb_webdb_get_pages(webdb, bytes, &pages));
        same_walk(twin, pages, -1, md5);
    }
    same_by_md5(twin, webdb);
}

/* ---- links ----------------------------------------------------------------------------------- */

/* If there is a page, the URL is that of the page; otherwise any spelling of it. */
static void same_link(const struct twin *twin, const struct wb_webdb_link *link, unsigned md5, unsigned url)
{
    const struct twin_link *twin_link = &twin->links[md5][url];
    uint8_t bytes[WB_MD5_BYTES];

    twin_md5((int)md5, bytes);
    same(memcmp(link->from_md5, bytes, sizeof bytes) == 0, url);
    same(is_spelling(link->to, url), url);
    if (twin->pages[url].there && !twin->pages[url].spelled_anyhow)
        same(wb_slice_equal(link->to, twin->pages[url].row.url), url);
    same(wb_slice_equal(link->anchor, twin_cut(twin_anchor(twin_link->anchor))), url);
    same(link->tag == twin_link->tag && link->flags == twin_link->flags, url);
}

/* The links with this md5 and url (-1: any), in the order of targets, then sources. */
static void same_links(const struct twin *twin, struct wb_webdb_links *links, int md5, int url)
{
    struct wb_webdb_link link;

    for (unsigned i = 0; i < TWIN_URLS; i++)
        for (unsigned m = 0; m < TWIN_MD5S; m++) {
            unsigned u = twin_order[i];
            if (!twin->links[m][u].there || (md5 >= 0 && m != (unsigned)md5) || (url >= 0 && u != (unsigned)url))
                continue;
            same(worked(wb_webdb_links_next(links, &link)) == 1, u);
            same_link(twin, &link, m, u);
        }
    same(worked(wb_webdb_links_next(links, &link)) == 0, 0);
    wb_webdb_links_close(links);
}

static void same_all_links(const struct twin *twin, struct wb_webdb *webdb)
{
    struct wb_webdb_links *links = NULL;
    uint8_t bytes[WB_MD5_BYTES];

    worked(wb_webdb_links(webdb, &links));
    same_links(twin, links, -1, -1);
    for (unsigned url = 0; url < TWIN_URLS; url++) {
        worked(wb_webdb_links_to(webdb, twin_url(url, url % 2, url % 3 == 0), &links));
        same_links(twin, links, -1, (int)url);
    }
    for (int md5 = 0; md5 < TWIN_MD5S; md5++) {
        twin_md5(md5, bytes);
        worked(wb_webdb_links_from(webdb, bytes, &links));
        same_links(twin, links, md5, -1);
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void same_counts(const struct twin *twin, struct wb_webdb *webdb)
{
    struct wb_webdb_count count, wanted = {.edition = 0};

    wb_webdb_count(webdb, &count);
    for (int site = 0; site < TWIN_SITES; site++) {
        struct wb_webdb_site sum = {.pages = 0}, got;
        for (unsigned url = 0; url < TWIN_URLS; url++) {
            const struct twin_page *page = &twin->pages[url];
            sum.pages += url / TWIN_PATHS == (unsigned)site && page->there;
            sum.fetched += url / TWIN_PATHS == (unsigned)site && page->there && page->row.has_content;
        }
        wanted.pages += sum.pages;
        wanted.fetched += sum.fetched;
        wanted.sites += sum.pages > 0;
        int err = wb_webdb_get_site(webdb, wb_slice_str(twin_sites[site]), &got);
        same(err == (sum.pages ? 0 : WB_E_NOTFOUND), (worked(err == WB_E_NOTFOUND ? 0 : err), 0));
        same(err < 0 || (got.pages == sum.pages && got.fetched == sum.fetched &&
                         wb_slice_equal(got.name, wb_slice_str(twin_sites[site]))),
             0);
    }
    for (int md5 = 0; md5 < TWIN_MD5S; md5++) {
        wanted.contents += twin_has_content(twin, md5);
        for (unsigned url = 0; url < TWIN_URLS; url++)
            wanted.links += twin->links[md5][url].there;
    }
    same(count.pages == wanted.pages && count.fetched == wanted.fetched, 0);
    same(count.links == wanted.links && count.contents == wanted.contents && count.sites == wanted.sites, 0);
    same(count.link_bytes < count.bytes && count.link_bytes > 0, 0);
}

UNUSED void same_as_twin(const struct twin *twin, struct wb_webdb *webdb)
{
    struct wb_webdb_page page;

    same_counts(twin, webdb);
    same_pages(twin, webdb);
    same_all_links(twin, webdb);
    same(wb_webdb_get_page(webdb, WB_SLICE_LIT("http://nobody.example/"), &page) == WB_E_NOTFOUND, 0);
    same(wb_webdb_get_page(webdb, WB_SLICE_LIT("no URL"), &page) == WB_E_INVALID, 0);
}

/* Opens the newest edition, compares, closes. */
UNUSED void same_as_newest(const struct twin *twin, const char *dir)
{
    struct wb_webdb *webdb = NULL;

    worked(wb_webdb_open(dir, &webdb));
    same_as_twin(twin, webdb);
    wb_webdb_close(webdb);
}

static void print_problem(void *context, const char *file, uint64_t offset, const char *message)
{
    fprintf(stderr, "%s, %llu: %s\n", file, (unsigned long long)offset, message);
    ++*(unsigned *)context;
}

UNUSED void check_clean(const char *dir)
{
    struct wb_webdb_count count;
    unsigned problems = 0;

    assert_int_equal(wb_webdb_check(dir, print_problem, &problems, &count), 0);
    assert_int_equal(problems, 0);
}

/* ---- what lies in the directory -------------------------------------------------------------- */

struct webdb_dir {
    unsigned editions, unfinished, others;
    uint64_t bytes; /* of everything in it */
    const char *path;
};

static int add_file(void *context, const struct wb_path_entry *entry)
{
    ((struct webdb_dir *)context)->bytes += entry->size;
    return 0;
}

static int note_entry(void *context, const struct wb_path_entry *entry)
{
    struct webdb_dir *found = context;
    char path[256];

    if (entry->kind == WB_PATH_DIR) {
        snprintf(path, sizeof path, "%s/%s", found->path, entry->name);
        found->editions += strncmp(entry->name, "0000", 4) == 0;
        found->unfinished += strncmp(entry->name, "new-", 4) == 0 || strncmp(entry->name, "old-", 4) == 0;
        return wb_path_each(path, add_file, found);
    }
    found->others += strcmp(entry->name, "lock") != 0;
    return 0;
}

UNUSED struct webdb_dir look_into(const char *dir)
{
    char path[256];
    struct webdb_dir found = {.path = path};

    snprintf(path, sizeof path, "%s/webdb", dir);
    assert_int_equal(wb_path_each(path, note_entry, &found), 0);
    found.path = NULL;
    return found;
}

/* There must be so many editions and nothing else. */
UNUSED void check_editions(const char *dir, unsigned editions)
{
    struct webdb_dir found = look_into(dir);

    assert_int_equal(found.editions, editions);
    assert_int_equal(found.unfinished, 0);
    assert_int_equal(found.others, 0);
}

UNUSED void check_tidy(const char *dir)
{
    check_editions(dir, 1);
}

#endif
