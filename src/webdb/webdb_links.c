/*
 * webdb_links.c - walks over links: those to a URL, those from a content, all of them by target.
 *
 * Links lie in lists of numbers. What all links of a list have in common (the URL that they lead to, the content that they
 * come from) is found once; of each link one number remains: a content's MD5 is an access to a column, a page's URL a
 * row of a table, where neighbours lie together. Links are never gathered: a list may have any length.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "webdb/contents.h"
#include "webdb/linklist.h"
#include "webdb/pagerow.h"
#include "webdb/webdb_read.h"

enum { NEAR_ROWS = 16 }; /* rows that are passed over rather than looked up */

struct wb_webdb_links {
    struct wb_webdb *webdb;
    struct wb_cursor *lists;  /* over inlinks or outlinks; NULL: there are none */
    struct wb_cursor *pages;  /* for URLs of targets */
    const char *file;         /* what lists is over */
    bool from_content;        /* lists are outlinks */
    bool all;                 /* of every list, not only that of `owner` */
    uint64_t owner;           /* page or content whose list is read */
    uint32_t next_piece;      /* of its list */
    bool open;                /* list is being read */
    struct wb_linklist list;
    uint64_t row;             /* of pages: the one behind the cursor, plus one; 0: none */
    uint8_t md5[WB_EDIT_MD5_BYTES]; /* the owner's, where from_content */
    struct wb_slice to;       /* lies in mem or in the block that pages stands in */
    struct wb_buf mem;
};

/* ---- opening ----------------------------------------------------------------------------------------------- */

static int open_walk(struct wb_webdb *webdb, struct wb_table *lists, struct wb_webdb_links **links_out)
{
    struct wb_webdb_links *links = wb_alloc_zero(1, sizeof *links);
    int err = 0;

    *links_out = NULL;
    if (!links)
        return WB_E_NOMEM;
    links->webdb = webdb;
    links->from_content = lists == webdb->outlinks;
    links->file = links->from_content ? WB_OUTLINKS_FILE : WB_INLINKS_FILE;
    links->to = WB_SLICE_EMPTY;
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
    wb_webdb_give_back(links->webdb, links->from_content ? links->webdb->outlinks : links->webdb->inlinks, links->lists);
    wb_webdb_give_back(links->webdb, links->webdb->pages, links->pages);
    wb_buf_release(&links->mem);
    wb_free(links);
}

/* Closes the walk where opening it failed. */
static int opened(int err, struct wb_webdb_links **links_out)
{
    if (err < 0) {
        wb_webdb_links_close(*links_out);
        *links_out = NULL;
    }
    return err;
}

static int seek_owner(struct wb_webdb_links *links, uint64_t owner)
{
    char key[WB_LINKLIST_KEY_MAX];

    links->owner = owner;
    return wb_cursor_seek(links->lists, wb_slice(key, wb_linklist_key(owner, 0, key)));
}

int wb_webdb_links(struct wb_webdb *webdb, struct wb_webdb_links **links_out)
{
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

int wb_webdb_links_from(struct wb_webdb *webdb, const uint8_t md5[WB_EDIT_MD5_BYTES], struct wb_webdb_links **links_out)
{
    uint64_t number;
    int found = wb_contents_find(&webdb->contents, md5, &number);

    *links_out = NULL;
    if (found < 0 && found != WB_E_NOTFOUND)
        return found;
    int err = open_walk(webdb, found == 0 ? webdb->outlinks : NULL, links_out);
    if (err < 0 || found < 0)
        return err;
    memcpy((*links_out)->md5, md5, WB_EDIT_MD5_BYTES);
    err = wb_webdb_borrow(webdb, webdb->pages, &(*links_out)->pages);
    if (err == 0)
        err = seek_owner(*links_out, number);
    return opened(err, links_out);
}

/* ---- lists --------------------------------------------------------------------------------------------------- */

static int damaged(const struct wb_webdb_links *links, const char *what)
{
    return wb_fail(WB_E_CORRUPT, "%s/%s: the list of number %llu %s", links->webdb->path, links->file,
                   (unsigned long long)links->owner, what);
}

/* The URL of a page, page or mere target. Numbers ascend, so the row is often near. */
static int find_url(struct wb_webdb_links *links, uint64_t page)
{
    struct wb_webdb_page row;
    struct wb_table_record record;
    int err = 0;

    if (page >= links->webdb->manifest.rows)
        return damaged(links, "leads to a page that is not there");
    if (links->row && page >= links->row && page - links->row < NEAR_ROWS) {
        int more = 1;
        while (links->row <= page && (more = wb_cursor_next(links->pages, &record)) == 1)
            links->row = record.number + 1;
        err = more < 0 ? more : more == 1 && record.number == page ? 0 : damaged(links, "leads to a page that cannot be read");
    } else {
        err = wb_cursor_get_number(links->pages, page, &record);
    }
    links->row = err == 0 ? page + 1 : 0;
    if (err == 0)
        err = wb_pagerow_decode(record.key, record.value, &links->mem, &row);
    links->to = err < 0 ? WB_SLICE_EMPTY : row.url;
    return err;
}

/* 1 with the next piece open, 0 where there are no more. */
static int next_list(struct wb_webdb_links *links)
{
    struct wb_table_record record;
    uint64_t owner;
    uint32_t piece;
    int more = wb_cursor_next(links->lists, &record);

    if (more <= 0)
        return more;
    if (!wb_linklist_key_parse(record.key, &owner, &piece))
        return damaged(links, "is followed by a key that is none");
    if (!links->all && owner != links->owner)
        return 0;
    bool follows = piece != 0 && owner == links->owner;
    links->owner = owner;
    if (piece != (follows ? links->next_piece : 0))
        return damaged(links, "lacks a piece");
    links->next_piece = piece + 1;
    if (wb_linklist_open(&links->list, record.value) < 0)
        return damaged(links, "is damaged");
    int err = 0;
    if (links->all && (!follows || !links->to.len))
        err = find_url(links, owner);
    links->open = err == 0;
    return err < 0 ? err : 1;
}

/* A piece that turned out to be damaged is given up; the next call goes on behind it. */
static int next_item(struct wb_webdb_links *links, struct wb_linkitem *item_out)
{
    int more = 0;

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

    *link_out = (struct wb_webdb_link){.to = WB_SLICE_EMPTY, .anchor = WB_SLICE_EMPTY};
    if (!links->lists)
        return 0;
    int more = next_item(links, &item);
    if (more <= 0)
        return more;
    if (links->from_content)
        err = find_url(links, item.number);
    else if (item.number >= links->webdb->contents.count)
        err = damaged(links, "has a content that is not there");
    else if ((err = wb_column_check(&links->webdb->contents, item.number, 1)) == 0)
        md5 = wb_webdb_content(links->webdb, item.number)->md5;
    if (err < 0)
        return err;
    memcpy(link_out->from_md5, md5, WB_EDIT_MD5_BYTES);
    link_out->to = links->to;
    link_out->anchor = item.anchor;
    link_out->tag = item.tag;
    link_out->flags = item.flags;
    return 1;
}
