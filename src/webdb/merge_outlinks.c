/*
 * merge_outlinks.c - stage 3 of the merge: links by MD5.
 *
 * Merges the lists of the old edition and the groups of link edits, content by content; both are in the order of MD5.
 * The targets of an old list get their new numbers. A list is dropped if no page has its content any more. A new link
 * from a content that no page has is counted and dropped. Links that are new, or whose anchor, tag or flags have
 * changed, are passed on to stage 4; links that stay the same are not, because stage 4 reads them from the old edition.
 *
 * The links of one content are collected in memory; nothing else is.
 */
#include "webdb/writer.h"
#include "base/bytes.h"
#include "webdb/linklist.h"

#include <stdlib.h>

enum { LINKS_BLOCK = 128 << 10 }; /* large blocks: anchors repeat from page to page (docs/design/0012-webdb.md) */

struct out_link {
    uint32_t target; /* page number */
    uint32_t order;  /* of arrival: if there are several links to a target, the last one counts */
    uint32_t anchor; /* offset in the text of the list */
    uint8_t anchor_len, tag, flags;
};

/* Links of one content. */
struct out_list {
    WB_VEC(struct out_link) links;
    struct wb_buf text; /* their anchors */
};

struct out_stage {
    struct wb_webdb_writer *writer;
    struct wb_table *old_table;
    struct wb_cursor *old;
    struct wb_linkpieces links;
    struct wb_table_record piece, group; /* the next piece of an old list; the next group of edits */
    bool piece_more, group_more;   /* false at the end */
    uint64_t old_number;           /* the new number of the content that piece belongs to */
    uint64_t group_number;         /* the number of the content that group belongs to */
    struct out_list kept, added;   /* the links of the current content, from the old edition and from edits */
    uint64_t contents_done;
};

/* What is true whenever a function of this stage is entered. Not called once per link: that would cost time. */
static void check_stage(const struct out_stage *s)
{
    WB_CHECK(wb_writer_is(s->writer, WB_WRITER_MERGING));
    WB_CHECK(s->writer->pages_merged);
    WB_CHECK(s->writer->link_edits != NULL);
    WB_CHECK(s->links.item_count <= WB_LINKLIST_ITEMS);
}

_Static_assert(WB_MD5_BYTES == 16, "the key of a group of links is an MD5");

/* ---- lists ----------------------------------------------------------------------------------- */

static int list_add(struct out_list *list, uint32_t target, struct wb_slice anchor, uint8_t tag, uint8_t flags)
{
    struct out_link link = {.target = target, .order = (uint32_t)list->links.count, .anchor = (uint32_t)list->text.len,
                            .anchor_len = (uint8_t)anchor.len, .tag = tag, .flags = flags};

    WB_CHECK(anchor.len <= UINT8_MAX);
    WB_CHECK(target != WB_NO_NUMBER);
    if (list->text.len + anchor.len > UINT32_MAX || list->links.count >= UINT32_MAX)
        return wb_fail(WB_E_LIMIT, "a content has too many links");
    int err = wb_vec_push(&list->links, link);
    return err < 0 ? err : wb_buf_append_slice(&list->text, anchor);
}

static void list_clear(struct out_list *list)
{
    wb_vec_clear(&list->links);
    wb_buf_clear(&list->text);
}

static struct wb_slice anchor_of(const struct out_list *list, const struct out_link *link)
{
    WB_CHECK((size_t)link->anchor + link->anchor_len <= list->text.len);
    return link->anchor_len ? wb_slice(list->text.ptr + link->anchor, link->anchor_len) : WB_SLICE_EMPTY;
}

static int compare_links(const void *a, const void *b)
{
    const struct out_link *x = a, *y = b;

    if (x->target != y->target)
        return x->target < y->target ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

/* Sorts the list by target and keeps only the last link to each target. */
static void list_keep_last(struct out_list *list)
{
    struct out_link *links = list->links.items;
    size_t count = list->links.count, kept = 0;

    WB_CHECK(list->links.count == 0 || links != NULL);
    if (count)
        qsort(links, count, sizeof *links, compare_links);
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count || links[i + 1].target != links[i].target)
            links[kept++] = links[i];
    list->links.count = kept;
    WB_CHECK((count == 0) == (kept == 0));
}

/* ---- what is read ---------------------------------------------------------------------------- */

/* Finds the next piece of an old list whose content still exists. */
static int next_piece(struct out_stage *s)
{
    const struct wb_numbermap *contents = &s->writer->content_numbers;

    check_stage(s);
    for (s->piece_more = false; s->old && !s->piece_more;) {
        uint64_t number;
        uint32_t piece;
        int got = wb_cursor_next(s->old, &s->piece);
        if (got <= 0)
            return got;
        if (!wb_linklist_key_parse(s->piece.key, &number, &piece) || number >= contents->count)
            return wb_fail(WB_E_CORRUPT, "%s: there are links from a content that does not exist", s->writer->root);
        s->old_number = contents->numbers[number];
        s->piece_more = s->old_number != WB_NO_NUMBER;
    }
    return 0;
}

/* Finds the next group of link edits whose content exists, and counts the links of the groups that it skips. */
static int next_group(struct out_stage *s)
{
    check_stage(s);
    for (s->group_more = false; !s->group_more;) {
        struct wb_writer_link link;
        size_t at = 0;
        int got = wb_sorter_next(s->writer->link_edits, &s->group);
        if (got <= 0)
            return got;
        WB_CHECK(s->group.key.len == WB_MD5_BYTES);
        int found = wb_contents_find(&s->writer->contents, (const uint8_t *)s->group.key.ptr, &s->group_number);
        if (found < 0 && found != WB_E_NOTFOUND)
            return found;
        s->group_more = found == 0;
        while (!s->group_more && (got = wb_writer_link_next(s->group.value, &at, &link)) > 0)
            s->writer->stat.links_without_source++;
        if (got < 0)
            return got;
    }
    return 0;
}

/* Adds the links of the next piece, with the new numbers of their targets, to the kept ones. */
static int take_piece(struct out_stage *s)
{
    const struct wb_numbermap *pages = &s->writer->page_numbers;
    struct wb_linklist list;
    struct wb_linkitem item;
    int got = wb_linklist_open(&list, s->piece.value);

    check_stage(s);
    WB_CHECK(s->piece_more);
    WB_CHECK(s->old_number != WB_NO_NUMBER);
    while (got >= 0 && (got = wb_linklist_next(&list, &item)) > 0) {
        if (item.number >= pages->count || pages->numbers[item.number] == WB_NO_NUMBER)
            return wb_fail(WB_E_CORRUPT, "%s: a link leads to a page that does not exist", s->writer->root);
        uint32_t target = pages->numbers[item.number];
        if (s->kept.links.count && s->kept.links.items[s->kept.links.count - 1].target >= target)
            return wb_fail(WB_E_CORRUPT, "%s: a list of links is not in order", s->writer->root);
        got = list_add(&s->kept, target, item.anchor, item.tag, item.flags);
    }
    return got < 0 ? got : next_piece(s);
}

static bool has_number(const struct wb_numbermap *ids, uint32_t id)
{
    return id == WB_PAGEEDIT_NO_ID || ids->numbers[id] != WB_NO_NUMBER;
}

/* Adds the links of the next group to the added ones, except those whose target or condition has no page. */
static int take_group(struct out_stage *s)
{
    const struct wb_numbermap *ids = &s->writer->id_numbers;
    struct wb_writer_link link;
    size_t at = 0;
    int got;

    check_stage(s);
    WB_CHECK(s->group_more);
    WB_CHECK(s->group_number < s->writer->contents.count);
    while ((got = wb_writer_link_next(s->group.value, &at, &link)) > 0) {
        if (link.id >= ids->count || (link.condition != WB_PAGEEDIT_NO_ID && link.condition >= ids->count))
            return wb_fail(WB_E_CORRUPT, "%s: a link edit came out of the sorter with another id", s->writer->root);
        if (!has_number(ids, link.id) || !has_number(ids, link.condition))
            continue;
        got = list_add(&s->added, ids->numbers[link.id], link.anchor, link.tag, link.flags);
        if (got < 0)
            return got;
    }
    return got < 0 ? got : next_group(s);
}

/* ---- what is written ------------------------------------------------------------------------- */

static int write_link(struct out_stage *s, const struct out_list *list, const struct out_link *link)
{
    struct wb_linkitem item = {.number = link->target, .anchor = anchor_of(list, link), .tag = link->tag,
                               .flags = link->flags};
    int err = wb_linkpieces_add(&s->links, &item);

    WB_CHECK(link->target < s->writer->next.rows);
    return err < 0 ? err : 0;
}

/* Tells stage 4 about a link. Key: target, content; value: tag, flags, anchor. */
static int tell_target(struct out_stage *s, uint64_t content, const struct out_link *link)
{
    char key[8], value[2 + UINT8_MAX];

    WB_CHECK(content < s->writer->contents.count);
    WB_CHECK(link->target < s->writer->next.rows);
    wb_put32_be(key, link->target);
    wb_put32_be(key + 4, (uint32_t)content);
    value[0] = (char)link->tag;
    value[1] = (char)link->flags;
    if (link->anchor_len)
        memcpy(value + 2, s->added.text.ptr + link->anchor, link->anchor_len);
    return wb_sorter_add(s->writer->target_edits, wb_slice(key, sizeof key), wb_slice(value, 2u + link->anchor_len));
}

static bool same_words(const struct out_stage *s, const struct out_link *kept, const struct out_link *added)
{
    return kept->tag == added->tag && kept->flags == added->flags &&
           wb_slice_equal(anchor_of(&s->kept, kept), anchor_of(&s->added, added));
}

/*
 * Writes the list of a content: the kept and the added links, both sorted by target. An added link replaces a kept one.
 */
static int write_content(struct out_stage *s, uint64_t content)
{
    size_t k = 0, a = 0;
    int err = 0;

    check_stage(s);
    WB_CHECK(s->links.pieces == 0); /* the list of the last content has ended */
    WB_CHECK(content < s->writer->contents.count);
    list_keep_last(&s->added);
    s->links.owner = content;
    while (err == 0 && (k < s->kept.links.count || a < s->added.links.count)) {
        const struct out_link *kept = k < s->kept.links.count ? &s->kept.links.items[k] : NULL;
        const struct out_link *added = a < s->added.links.count ? &s->added.links.items[a] : NULL;
        bool both = kept && added && kept->target == added->target;
        bool use_added = added && (!kept || added->target <= kept->target);
        if (use_added && !(both && same_words(s, kept, added))) {
            err = tell_target(s, content, added);
            s->writer->stat.links_added += !both;
        }
        if (err == 0)
            err = use_added ? write_link(s, &s->added, added) : write_link(s, &s->kept, kept);
        k += both || !use_added;
        a += use_added;
    }
    WB_CHECK(err < 0 || k == s->kept.links.count);
    WB_CHECK(err < 0 || a == s->added.links.count);
    if (err == 0)
        err = wb_linkpieces_end(&s->links);
    list_clear(&s->kept);
    list_clear(&s->added);
    return err;
}

static int walk_contents(struct out_stage *s)
{
    int err = next_piece(s);

    check_stage(s);
    WB_CHECK(s->contents_done == 0);
    if (err == 0)
        err = next_group(s);
    while (err == 0 && (s->piece_more || s->group_more)) {
        bool old_first = !s->group_more || (s->piece_more && s->old_number < s->group_number);
        uint64_t content = old_first ? s->old_number : s->group_number;
        WB_CHECK(content < s->writer->contents.count);
        while (err == 0 && s->piece_more && s->old_number == content)
            err = take_piece(s);
        while (err == 0 && s->group_more && s->group_number == content)
            err = take_group(s);
        if (err == 0)
            err = write_content(s, content);
        if (err == 0)
            err = wb_writer_progress(s->writer, "links by MD5", s->contents_done++, s->writer->contents.count);
    }
    return err;
}

int wb_merge_outlinks(struct wb_webdb_writer *writer)
{
    struct out_stage *s = wb_alloc_zero(1, sizeof *s);
    int err;

    WB_CHECK(writer->content_edits == NULL); /* stage 2 is done */
    WB_CHECK(writer->link_edits != NULL);
    WB_CHECK(wb_writer_is(writer, WB_WRITER_MERGING));
    WB_CHECK(writer->contents.count >= writer->next.count.contents);
    if (!s)
        return WB_E_NOMEM;
    s->writer = writer;
    err = wb_writer_open_old_table(writer, WB_OUTLINKS_FILE, WB_OUTLINKS_KIND, &s->old_table, &s->old);
    if (err == 0)
        err = wb_writer_create_table(writer, WB_OUTLINKS_FILE, WB_OUTLINKS_KIND, LINKS_BLOCK, &s->links.table);
    if (err == 0)
        err = wb_writer_open_sorter(writer, 3, &writer->target_edits);
    if (err == 0)
        err = wb_sorter_sort(writer->link_edits);
    if (err == 0)
        err = walk_contents(s);
    if (err == 0)
        err = wb_linkpieces_finish(&s->links);
    writer->outlinks = s->links.written;
    wb_linkpieces_release(&s->links);
    wb_cursor_close(s->old);
    wb_table_close(s->old_table);
    wb_vec_release(&s->kept.links);
    wb_vec_release(&s->added.links);
    wb_buf_release(&s->kept.text);
    wb_buf_release(&s->added.text);
    wb_free(s);
    wb_sorter_close(writer->link_edits);
    writer->link_edits = NULL;
    return err;
}
