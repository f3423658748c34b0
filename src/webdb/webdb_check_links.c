/*
 * webdb_check_links.c - whether the two tables of links hold the same ones, and the degrees are their numbers.
 *
 * Each table is walked once: keys and pieces in order, numbers ascending over the whole list, contents named by their first entries,
 * pages that are there. The links of both, as (content, page, tag, flags, anchor), must be the same set.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "webdb/linklist.h"
#include "webdb/webdb_check.h"

struct list_walk {
    struct wb_check *check;
    enum wb_check_file file;
    bool in;                /* lists are of pages, items are contents */
    bool begun;             /* there was a list before */
    uint64_t owner;
    uint32_t piece;
    uint64_t last;          /* number of the item before, in the same list */
    uint64_t items;         /* of the list so far */
    uint64_t pages_done;    /* degrees compared */
    struct wb_check_set links;
};

static bool is_content(const struct wb_webdb *webdb, uint64_t number)
{
    if (number >= webdb->contents.count)
        return false;
    return number == 0 || memcmp(wb_webdb_content(webdb, number)->md5, wb_webdb_content(webdb, number - 1)->md5, WB_EDIT_MD5_BYTES) != 0;
}

static uint64_t hash_link(uint64_t content, uint64_t page, const struct wb_linkitem *item)
{
    char bytes[18 + 255];

    wb_put64(bytes, content);
    wb_put64(bytes + 8, page);
    bytes[16] = (char)item->tag;
    bytes[17] = (char)item->flags;
    memcpy(bytes + 18, item->anchor.ptr, item->anchor.len);
    return wb_hash64(bytes, 18 + item->anchor.len);
}

/* ---- degrees ------------------------------------------------------------------------------------------------ */

static void compare_degree(struct list_walk *w, uint64_t page, uint64_t links)
{
    uint32_t degree = wb_webdb_degree(w->check->webdb, page);

    if (degree != (links < UINT32_MAX ? links : UINT32_MAX))
        wb_check_tell(w->check, WB_CHECK_DEGREES, 0, "%u links to page %llu, which has %llu", degree, (unsigned long long)page,
                      (unsigned long long)links);
}

/* Those of all pages before one; the list at hand is that of the last page with links. */
static void compare_degrees(struct list_walk *w, uint64_t page)
{
    for (; w->pages_done < page; w->pages_done++)
        compare_degree(w, w->pages_done, w->begun && w->pages_done == w->owner ? w->items : 0);
}

/* ---- lists -------------------------------------------------------------------------------------------------- */

static void check_owner(struct list_walk *w, uint64_t owner)
{
    const struct wb_webdb *webdb = w->check->webdb;

    if (w->in && owner >= webdb->manifest.rows)
        wb_check_tell(w->check, w->file, 0, "links to page %llu, which is not there", (unsigned long long)owner);
    else if (w->in)
        compare_degrees(w, owner);
    else if (!is_content(webdb, owner))
        wb_check_tell(w->check, w->file, 0, "links from content %llu, which is not there", (unsigned long long)owner);
}

/* False where the key is none. */
static bool check_key(struct list_walk *w, const struct wb_table_record *record)
{
    uint64_t owner;
    uint32_t piece;

    if (!wb_linklist_key_parse(record->key, &owner, &piece)) {
        wb_check_tell(w->check, w->file, 0, "record %llu has a key that is none", (unsigned long long)record->number);
        return false;
    }
    bool follows = w->begun && owner == w->owner;
    if (piece != (follows ? w->piece + 1 : 0))
        wb_check_tell(w->check, w->file, 0, "the list of number %llu lacks a piece", (unsigned long long)owner);
    if (!follows) {
        check_owner(w, owner);
        w->items = 0;
    }
    w->begun = true;
    w->owner = owner;
    w->piece = piece;
    return true;
}

static void check_item(struct list_walk *w, const struct wb_linkitem *item)
{
    const struct wb_webdb *webdb = w->check->webdb;

    if (w->items && item->number <= w->last)
        wb_check_tell(w->check, w->file, 0, "the list of number %llu is not in order", (unsigned long long)w->owner);
    if (w->in && !is_content(webdb, item->number))
        wb_check_tell(w->check, w->file, 0, "a link from content %llu, which is not there", (unsigned long long)item->number);
    if (!w->in && item->number >= webdb->manifest.rows)
        wb_check_tell(w->check, w->file, 0, "a link to page %llu, which is not there", (unsigned long long)item->number);
    wb_check_set_add(&w->links, w->in ? hash_link(item->number, w->owner, item) : hash_link(w->owner, item->number, item));
    w->last = item->number;
    w->items++;
}

static int check_list(struct list_walk *w, const struct wb_table_record *record)
{
    struct wb_linklist list;
    struct wb_linkitem item;

    if (!check_key(w, record))
        return 0;
    int more = wb_linklist_open(&list, record->value);
    if (more == 0) {
        while ((more = wb_linklist_next(&list, &item)) == 1)
            check_item(w, &item);
    }
    if (more == WB_E_CORRUPT)
        wb_check_tell(w->check, w->file, 0, "the list of number %llu is damaged", (unsigned long long)w->owner);
    return more < 0 && more != WB_E_CORRUPT ? more : 0;
}

static int walk_lists(struct list_walk *w, struct wb_table *table)
{
    struct wb_cursor *cursor = NULL;
    struct wb_table_record record;
    int more, err = wb_cursor_open(table, &cursor);

    while (err == 0 && (more = wb_cursor_next(cursor, &record)) != 0) {
        if (more > 0)
            err = check_list(w, &record);
        else if (!wb_check_told(w->check, w->file, more))
            err = more;
    }
    if (err == 0 && w->in)
        compare_degrees(w, w->check->webdb->manifest.rows);
    wb_cursor_close(cursor);
    return err;
}

int wb_check_links(struct wb_check *check)
{
    struct list_walk out = {.check = check, .file = WB_CHECK_OUTLINKS};
    struct list_walk in = {.check = check, .file = WB_CHECK_INLINKS, .in = true};
    int err = walk_lists(&out, check->webdb->outlinks);

    if (err == 0)
        err = walk_lists(&in, check->webdb->inlinks);
    if (err < 0)
        return err;
    check->seen.links = in.links.count;
    if (in.links.count != out.links.count)
        wb_check_tell(check, WB_CHECK_INLINKS, 0, "%llu links, and links by MD5 are %llu", (unsigned long long)in.links.count,
                      (unsigned long long)out.links.count);
    else if (!wb_check_set_equal(&in.links, &out.links))
        wb_check_tell(check, WB_CHECK_INLINKS, 0, "the links are not those of links by MD5");
    return 0;
}
