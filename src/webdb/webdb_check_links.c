/*
 * webdb_check_links.c - checks that the two tables of links hold the same links, and that the numbers of links are
 * right.
 *
 * Each table is read once. The pieces of each list must follow each other, its numbers must ascend, and the contents
 * and pages in it must exist. The links of both tables, as (content, page, tag, flags, anchor), must be the same set.
 */
#include "base/bytes.h"
#include "base/hash.h"
#include "webdb/linklist.h"
#include "webdb/webdb_check.h"

enum { HASHED_HEAD = 8 + 8 + 1 + 1, ANCHOR_MAX = UINT8_MAX };

/* One table of links while it is read. */
struct link_check {
    struct wb_webdb_check *check;
    enum wb_webdb_checked file;
    bool in;                /* links by URL: lists belong to pages, and items are contents */
    bool begun;             /* the first list has been read */
    uint64_t owner;         /* the page or content that the current list belongs to */
    uint32_t piece;         /* number of the current piece */
    uint64_t last;          /* the last number in the list */
    uint64_t items;         /* how many numbers the list has so far */
    uint64_t pages_done;    /* how many degrees have been compared */
    struct wb_webdb_check_set links;
};

static void check_state(const struct link_check *w)
{
    WB_CHECK(w->check->found != NULL);
    WB_CHECK(w->check->webdb->magic == WB_WEBDB_MAGIC);
    WB_CHECK(w->pages_done <= w->check->webdb->manifest.rows);
}

/* Whether a content has this number: it must be the rank of its first entry. */
static bool is_content(const struct wb_webdb *webdb, uint64_t number)
{
    WB_CHECK(webdb->magic == WB_WEBDB_MAGIC);
    if (number >= webdb->contents.count)
        return false;
    const struct wb_content *entry = wb_webdb_content(webdb, number);
    return number == 0 || memcmp(entry->md5, wb_webdb_content(webdb, number - 1)->md5, WB_MD5_BYTES) != 0;
}

static uint64_t hash_link(uint64_t content, uint64_t page, const struct wb_linkitem *item)
{
    char bytes[HASHED_HEAD + ANCHOR_MAX];

    WB_CHECK(item->anchor.ptr != NULL);
    WB_CHECK(item->anchor.len <= ANCHOR_MAX);
    wb_put64(bytes, content);
    wb_put64(bytes + 8, page);
    bytes[16] = (char)item->tag;
    bytes[17] = (char)item->flags;
    memcpy(bytes + HASHED_HEAD, item->anchor.ptr, item->anchor.len);
    return wb_hash64(bytes, HASHED_HEAD + item->anchor.len);
}

/* ---- degrees --------------------------------------------------------------------------------- */

static void compare_degree(struct link_check *w, uint64_t page, uint64_t links)
{
    WB_CHECK(page < w->check->webdb->manifest.rows);
    uint32_t degree = wb_webdb_degree(w->check->webdb, page);

    check_state(w);
    if (degree != (links < UINT32_MAX ? links : UINT32_MAX))
        wb_webdb_check_report(w->check, WB_CHECKED_DEGREES, "it says %u links to page %" PRIu64 ", which has %" PRIu64,
                              degree, page, links);
}

/* Compares the degrees of all pages before this one. The current list is that of the last page with links. */
static void compare_degrees(struct link_check *w, uint64_t page)
{
    check_state(w);
    WB_CHECK(page <= w->check->webdb->manifest.rows);
    WB_CHECK(w->in);
    for (; w->pages_done < page; w->pages_done++)
        compare_degree(w, w->pages_done, w->begun && w->pages_done == w->owner ? w->items : 0);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void check_owner(struct link_check *w, uint64_t owner)
{
    const struct wb_webdb *webdb = w->check->webdb;

    check_state(w);
    if (w->in && owner >= webdb->manifest.rows)
        wb_webdb_check_report(w->check, w->file, "there are links to page %" PRIu64 ", which does not exist", owner);
    else if (w->in)
        compare_degrees(w, owner);
    else if (!is_content(webdb, owner))
        wb_webdb_check_report(w->check, w->file, "there are links from content %" PRIu64 ", which does not exist",
                              owner);
}

/* Checks the key of a piece. Returns false if it is invalid. */
static bool check_key(struct link_check *w, const struct wb_table_record *record)
{
    uint64_t owner;
    uint32_t piece;

    check_state(w);
    if (!wb_linklist_key_parse(record->key, &owner, &piece)) {
        wb_webdb_check_report(w->check, w->file, "record %" PRIu64 " has an invalid key", record->number);
        return false;
    }
    bool follows = w->begun && owner == w->owner;
    if (piece != (follows ? w->piece + 1 : 0))
        wb_webdb_check_report(w->check, w->file, "the list of number %" PRIu64 " has a missing piece", owner);
    if (!follows) {
        check_owner(w, owner);
        w->items = 0;
    }
    w->begun = true;
    w->owner = owner;
    w->piece = piece;
    return true;
}

static void check_item(struct link_check *w, const struct wb_linkitem *item)
{
    const struct wb_webdb *webdb = w->check->webdb;

    check_state(w);
    WB_CHECK(w->begun);
    if (w->items && item->number <= w->last)
        wb_webdb_check_report(w->check, w->file, "the list of number %" PRIu64 " is not in order", w->owner);
    if (w->in && !is_content(webdb, item->number))
        wb_webdb_check_report(w->check, w->file, "a link comes from content %" PRIu64 ", which does not exist",
                              item->number);
    if (!w->in && item->number >= webdb->manifest.rows)
        wb_webdb_check_report(w->check, w->file, "a link leads to page %" PRIu64 ", which does not exist",
                              item->number);
    uint64_t content = w->in ? item->number : w->owner, page = w->in ? w->owner : item->number;
    wb_webdb_check_set_add(&w->links, hash_link(content, page, item));
    w->last = item->number;
    w->items++;
}

static int check_list(struct link_check *w, const struct wb_table_record *record)
{
    struct wb_linklist list;
    struct wb_linkitem item;

    check_state(w);
    if (!check_key(w, record))
        return 0;
    int more = wb_linklist_open(&list, record->value);
    if (more == 0) {
        while ((more = wb_linklist_next(&list, &item)) == 1)
            check_item(w, &item);
    }
    if (more == WB_E_CORRUPT)
        wb_webdb_check_report(w->check, w->file, "the list of number %" PRIu64 " is damaged", w->owner);
    return more < 0 && more != WB_E_CORRUPT ? more : 0;
}

/* Reads all lists of a table. */
static int walk_lists(struct link_check *w, struct wb_table *table)
{
    struct wb_cursor *cursor = NULL;
    struct wb_table_record record;
    int more, err = wb_cursor_open(table, &cursor);

    check_state(w);
    WB_CHECK(!w->begun);
    while (err == 0 && (more = wb_cursor_next(cursor, &record)) != 0) {
        if (more > 0)
            err = check_list(w, &record);
        else if (!wb_webdb_check_report_error(w->check, w->file, more))
            err = more;
    }
    if (err == 0 && w->in)
        compare_degrees(w, w->check->webdb->manifest.rows);
    WB_CHECK(err < 0 || !w->in || w->pages_done == w->check->webdb->manifest.rows); /* every page was compared */
    wb_cursor_close(cursor);
    return err;
}

int wb_webdb_check_links(struct wb_webdb_check *check)
{
    struct link_check out = {.check = check, .file = WB_CHECKED_OUTLINKS};
    struct link_check in = {.check = check, .file = WB_CHECKED_INLINKS, .in = true};
    int err = walk_lists(&out, check->webdb->outlinks);

    WB_CHECK(check->webdb->magic == WB_WEBDB_MAGIC);
    if (err == 0)
        err = walk_lists(&in, check->webdb->inlinks);
    if (err < 0)
        return err;
    WB_CHECK(check->seen.links == 0);
    check->seen.links = in.links.count;
    if (in.links.count != out.links.count)
        wb_webdb_check_report(check, WB_CHECKED_INLINKS, "%" PRIu64 " links, but there are %" PRIu64 " links by MD5",
                              in.links.count, out.links.count);
    else if (!wb_webdb_check_set_equal(&in.links, &out.links))
        wb_webdb_check_report(check, WB_CHECKED_INLINKS, "the links are not the same as the links by MD5");
    return 0;
}
