/*
 * webdb_links.c - walks over links: those to a URL, those from a content, all of them by target.
 *
 * Links are stored as lists of numbers. What all links of a list have in common (the URL that they lead to, or the
 * content that they come from) is looked up once. The other end of each link is one number: the MD5 of a content is
 * read from a column; the URL of a page is a row of the table of pages, and since numbers ascend the rows are often
 * near each other. A list may have any length, so links are never collected in memory.
 */
#include "base/bytes.h"
#include "webdb/linklist.h"
#include "webdb/pagerow.h"
#include "webdb/webdb_read.h"

enum {
    LINKS_MAGIC = 0x5742574c, /* "WBWL" */
    NEAR_ROWS = 16,           /* a row so few rows ahead is read on to instead of looked up */
};

struct wb_webdb_links {
    uint32_t magic;
    struct wb_webdb *webdb;
    struct wb_cursor *lists;  /* over inlinks or outlinks; NULL if there are no links */
    struct wb_cursor *pages;  /* for the URLs of targets; may be NULL */
    const char *file;         /* the name of the table that lists is over */
    bool from_content;        /* lists is over outlinks */
    bool all;                 /* read every list, not only the one of `owner` */
    uint64_t owner;           /* the page or content whose list is read */
    uint32_t next_piece;      /* the number of the next piece of its list */
    bool open;                /* list is being read */
    struct wb_linklist list;
    uint64_t row;             /* the number of the row after the cursor `pages`; 0 if its position is unknown */
    uint8_t md5[WB_MD5_BYTES]; /* of the owner, if from_content */
    struct wb_slice to;       /* in mem, or in the block that the cursor `pages` is in */
    struct wb_buf mem;
};

static void check_walk(const struct wb_webdb_links *links)
{
    WB_CHECK(links->magic == LINKS_MAGIC);
    WB_CHECK(links->webdb->magic == WB_WEBDB_MAGIC);
    WB_CHECK(!links->open || links->lists != NULL);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* lists: the table to walk, or NULL for a walk without links. */
static int open_walk(struct wb_webdb *webdb, struct wb_table *lists, struct wb_webdb_links **links_out)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    struct wb_webdb_links *links = wb_alloc_zero(1, sizeof *links);
    int err = 0;

    *links_out = NULL;
    if (!links)
        return WB_E_NOMEM;
    links->magic = LINKS_MAGIC;
    links->webdb = webdb;
    links->from_content = lists == webdb->outlinks;
    links->file = links->from_content ? WB_OUTLINKS_FILE : WB_INLINKS_FILE;
    links->to = WB_SLICE_EMPTY;
    WB_CHECK(lists == NULL || lists == webdb->outlinks || lists == webdb->inlinks);
    if (lists)
        err = wb_webdb_borrow(webdb, lists, &links->lists);
    if (err < 0) {
        wb_webdb_links_close(links);
        return err;
    }
    *links_out = links;
    return 0;
}

void wb_webdb_links_close(struct wb_webdb_links *links)
{
    if (!links)
        return;
    WB_CHECK(links->magic == LINKS_MAGIC);
    WB_CHECK(links->webdb->magic == WB_WEBDB_MAGIC);
    links->magic = 0;
    struct wb_table *table = links->from_content ? links->webdb->outlinks : links->webdb->inlinks;
    wb_webdb_give_back(links->webdb, table, links->lists);
    wb_webdb_give_back(links->webdb, links->webdb->pages, links->pages);
    wb_buf_release(&links->mem);
    wb_free(links);
}

/* Closes the walk if opening it has failed. */
static int opened(int err, struct wb_webdb_links **links_out)
{
    WB_CHECK(err < 0 || (*links_out)->magic == LINKS_MAGIC);
    if (err < 0) {
        wb_webdb_links_close(*links_out);
        *links_out = NULL;
    }
    return err;
}

static int seek_owner(struct wb_webdb_links *links, uint64_t owner)
{
    char key[WB_LINKLIST_KEY_MAX];

    check_walk(links);
    WB_CHECK(links->lists != NULL);
    WB_CHECK(!links->open);
    links->owner = owner;
    return wb_cursor_seek(links->lists, wb_slice(key, wb_linklist_key(owner, 0, key)));
}

int wb_webdb_links(struct wb_webdb *webdb, struct wb_webdb_links **links_out)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    int err = open_walk(webdb, webdb->inlinks, links_out);

    if (err < 0)
        return err;
    (*links_out)->all = true;
    err = wb_webdb_borrow(webdb, webdb->pages, &(*links_out)->pages);
    if (err == 0)
        err = seek_owner(*links_out, 0);
    return opened(err, links_out);
}

int wb_webdb_links_to(struct wb_webdb *webdb, struct wb_slice url, struct wb_webdb_links **links_out)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    struct wb_webdb_page page;
    struct wb_table_record record;
    int err = wb_webdb_find_row(webdb, url, &record);

    *links_out = NULL;
    if (err == WB_E_NOTFOUND)
        return open_walk(webdb, NULL, links_out);
    if (err == 0)
        err = wb_webdb_decode_row(webdb, &record, &webdb->mem, &page);
    if (err < 0)
        return err;
    err = open_walk(webdb, page.inlinks ? webdb->inlinks : NULL, links_out);
    if (err < 0 || !page.inlinks)
        return err;
    struct wb_webdb_links *links = *links_out;
    err = wb_buf_append_slice(&links->mem, page.url);
    if (err == 0)
        err = seek_owner(links, page.number);
    links->to = wb_buf_slice(&links->mem);
    return opened(err, links_out);
}

int wb_webdb_links_from(struct wb_webdb *webdb, const uint8_t md5[WB_MD5_BYTES],
                        struct wb_webdb_links **links_out)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    uint64_t number;
    int found = wb_contents_find(&webdb->contents, md5, &number);

    WB_CHECK(found < 0 || number < webdb->contents.count);
    *links_out = NULL;
    if (found < 0 && found != WB_E_NOTFOUND)
        return found;
    int err = open_walk(webdb, found == 0 ? webdb->outlinks : NULL, links_out);
    if (err < 0 || found < 0)
        return err;
    memcpy((*links_out)->md5, md5, WB_MD5_BYTES);
    err = wb_webdb_borrow(webdb, webdb->pages, &(*links_out)->pages);
    if (err == 0)
        err = seek_owner(*links_out, number);
    return opened(err, links_out);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static int damaged(const struct wb_webdb_links *links, const char *what)
{
    WB_CHECK(links->file != NULL);
    WB_CHECK(links->magic == LINKS_MAGIC);
    return wb_fail(WB_E_CORRUPT, "%s/%s: the list of number %llu %s", links->webdb->path, links->file,
                   (unsigned long long)links->owner, what);
}

/* Finds the URL of a page or a mere target. Numbers ascend, so its row is often only a few rows ahead. */
static int find_url(struct wb_webdb_links *links, uint64_t page)
{
    struct wb_webdb_page row;
    struct wb_table_record record;
    int err = 0;

    check_walk(links);
    WB_CHECK(links->pages != NULL);
    if (page >= links->webdb->manifest.rows)
        return damaged(links, "leads to a page that does not exist");
    if (links->row && page >= links->row && page - links->row < NEAR_ROWS) {
        int more = 1;
        while (links->row <= page && (more = wb_cursor_next(links->pages, &record)) == 1)
            links->row = record.number + 1;
        if (more < 0)
            err = more;
        else if (more == 0 || record.number != page)
            err = damaged(links, "leads to a page that cannot be read");
    } else {
        err = wb_cursor_get_number(links->pages, page, &record);
    }
    links->row = err == 0 ? page + 1 : 0;
    WB_CHECK(err < 0 || record.number == page);
    if (err == 0)
        err = wb_pagerow_decode(record.key, record.value, &links->mem, &row);
    links->to = err < 0 ? WB_SLICE_EMPTY : row.url;
    return err;
}

/* Opens the next piece. Returns 1, 0 if there are no more, or an error. */
static int next_list(struct wb_webdb_links *links)
{
    struct wb_table_record record;
    uint64_t owner;
    uint32_t piece;
    int more = wb_cursor_next(links->lists, &record);

    check_walk(links);
    WB_CHECK(links->lists != NULL);
    WB_CHECK(!links->open);
    if (more <= 0)
        return more;
    if (!wb_linklist_key_parse(record.key, &owner, &piece))
        return damaged(links, "is followed by an invalid key");
    if (!links->all && owner != links->owner)
        return 0;
    bool follows = piece != 0 && owner == links->owner;
    links->owner = owner;
    if (piece != (follows ? links->next_piece : 0))
        return damaged(links, "has a missing piece");
    links->next_piece = piece + 1;
    if (wb_linklist_open(&links->list, record.value) < 0)
        return damaged(links, "is damaged");
    int err = 0;
    if (links->all && (!follows || !links->to.len))
        err = find_url(links, owner);
    links->open = err == 0;
    return err < 0 ? err : 1;
}

/* If a piece turns out to be damaged, the next call continues with the piece after it. */
static int next_item(struct wb_webdb_links *links, struct wb_linkitem *item_out)
{
    int more = 0;

    check_walk(links);
    while (more == 0) {
        more = links->open ? wb_linklist_next(&links->list, item_out) : 0;
        if (more == 1)
            break;
        links->open = false;
        if (more < 0)
            return damaged(links, "is damaged");
        int list = next_list(links);
        if (list <= 0)
            return list;
    }
    return more;
}

int wb_webdb_links_next(struct wb_webdb_links *links, struct wb_webdb_link *link_out)
{
    struct wb_linkitem item;
    const uint8_t *md5 = links->md5;
    int err = 0;

    check_walk(links);
    *link_out = (struct wb_webdb_link){.to = WB_SLICE_EMPTY, .anchor = WB_SLICE_EMPTY};
    if (!links->lists)
        return 0;
    int more = next_item(links, &item);
    if (more <= 0)
        return more;
    if (links->from_content)
        err = find_url(links, item.number);
    else if (item.number >= links->webdb->contents.count)
        err = damaged(links, "names a content that does not exist");
    else if ((err = wb_column_check(&links->webdb->contents, item.number, 1)) == 0)
        md5 = wb_webdb_content(links->webdb, item.number)->md5;
    if (err < 0)
        return err;
    WB_CHECK(links->open); /* the anchor borrows from the piece */
    memcpy(link_out->from_md5, md5, WB_MD5_BYTES);
    link_out->to = links->to;
    link_out->anchor = item.anchor;
    link_out->tag = item.tag;
    link_out->flags = item.flags;
    return 1;
}
