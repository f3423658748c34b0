/*
 * merge_inlinks.c - stage 4 of the merge: links by URL, and the number of links to each page.
 *
 * Merges the old lists, with the new numbers of their pages and contents, and the links that stage 3 passed on; both
 * are sorted by page, then by content. A list may have any length, so it is written piece by piece and never held in
 * memory.
 *
 * At the end there must be as many links as stage 3 has written: otherwise the two tables of the old edition did not
 * hold the same links, and the merge fails.
 */
#include "webdb/writer.h"
#include "base/bytes.h"
#include "webdb/linklist.h"

enum { LINKS_BLOCK = 16 << 10 }; /* small blocks: lists are read one at a time */

struct in_stage {
    struct wb_webdb_writer *writer;
    struct wb_table *old_table;
    struct wb_cursor *old;
    struct wb_linkpieces links;
    struct wb_column_writer *degrees;

    /* The next old link. */
    struct wb_linklist list;       /* the piece it is in, while list_open */
    bool list_open, kept_more;     /* kept_more: false at the end */
    uint32_t kept_page, kept_content; /* new numbers */
    struct wb_linkitem kept;

    /* The next link from stage 3. */
    struct wb_table_record edit;
    bool edit_more;
    uint32_t edit_page, edit_content;

    /* The current page. */
    uint64_t degree;               /* links to it so far */
    uint32_t last_content;         /* of the last of them */
    uint64_t pages_done;           /* how many degrees have been written */
    struct wb_buf text;            /* anchors of the links of the current piece; has room for all, so it never moves */
    struct wb_slice anchor;        /* the last one of them */
};

/* ---- what is read ---------------------------------------------------------------------------- */

/* What is true whenever a function of this stage is entered. Not called once per link: that would cost time. */
static void check_stage(const struct in_stage *s)
{
    WB_CHECK(wb_writer_is(s->writer, WB_WRITER_MERGING));
    WB_CHECK(s->writer->target_edits != NULL);
    WB_CHECK(s->pages_done <= s->writer->next.rows);
    WB_CHECK(s->text.len <= s->text.cap);
}

/* Opens the next piece of an old list. Returns 1, 0 at the end, or an error. */
static int open_piece(struct in_stage *s)
{
    struct wb_table_record record;
    uint64_t number;
    uint32_t piece;
    int got = wb_cursor_next(s->old, &record);

    check_stage(s);
    WB_CHECK(!s->list_open);
    if (got <= 0)
        return got;
    if (!wb_linklist_key_parse(record.key, &number, &piece) || number >= s->writer->page_numbers.count ||
        s->writer->page_numbers.numbers[number] == WB_NO_NUMBER)
        return wb_fail(WB_E_CORRUPT, "%s: there are links to a page that does not exist", s->writer->root);
    s->kept_page = s->writer->page_numbers.numbers[number];
    got = wb_linklist_open(&s->list, record.value);
    s->list_open = got == 0;
    return got < 0 ? got : 1;
}

/* Finds the next old link whose content still exists; the others are counted as deleted. */
static int next_kept(struct in_stage *s)
{
    const struct wb_numbermap *contents = &s->writer->content_numbers;

    s->kept_more = false;
    while (s->old) {
        int got = s->list_open ? wb_linklist_next(&s->list, &s->kept) : 0;
        if (got == 0) {
            s->list_open = false;
            got = open_piece(s);
            if (got <= 0)
                return got;
            continue;
        }
        if (got < 0)
            return got;
        if (s->kept.number >= contents->count)
            return wb_fail(WB_E_CORRUPT, "%s: a link comes from a content that does not exist", s->writer->root);
        s->kept_content = contents->numbers[s->kept.number];
        s->kept_more = s->kept_content != WB_NO_NUMBER;
        if (s->kept_more)
            return 0;
        s->writer->stat.links_deleted++;
    }
    return 0;
}

static int next_edit(struct in_stage *s)
{
    int got = wb_sorter_next(s->writer->target_edits, &s->edit);

    s->edit_more = got > 0;
    if (got > 0) {
        WB_CHECK(s->edit.key.len == 8);
        WB_CHECK(s->edit.value.len >= 2);
        s->edit_page = wb_get32_be(s->edit.key.ptr);
        s->edit_content = wb_get32_be(s->edit.key.ptr + 4);
    }
    return got < 0 ? got : 0;
}

/* ---- what is written ------------------------------------------------------------------------- */

/* Writes 0 as the degree of each page before this one that has no links. */
static int fill_degrees(struct in_stage *s, uint64_t page)
{
    static const uint8_t none[4];
    int err = 0;

    check_stage(s);
    WB_CHECK(page <= s->writer->next.rows);
    WB_CHECK(s->pages_done <= page);
    while (err == 0 && s->pages_done < page) {
        err = wb_column_add(s->degrees, none);
        s->pages_done++;
    }
    return err;
}

/* Ends the list of the current page and writes its degree. */
static int end_page(struct in_stage *s)
{
    uint8_t degree[4];

    check_stage(s);
    if (!s->degree)
        return 0;
    WB_CHECK(s->links.owner >= s->pages_done);
    int err = wb_linkpieces_end(&s->links);
    wb_buf_clear(&s->text);
    if (err == 0)
        err = fill_degrees(s, s->links.owner);
    wb_put32(degree, s->degree < UINT32_MAX ? (uint32_t)s->degree : UINT32_MAX);
    s->pages_done++;
    return err < 0 ? err : wb_column_add(s->degrees, degree);
}

static int put_link(struct in_stage *s, uint32_t page, uint32_t content, struct wb_slice anchor, uint8_t tag,
                    uint8_t flags)
{
    bool same_page = s->degree > 0 && page == s->links.owner;

    WB_CHECK(page < s->writer->next.rows);
    WB_CHECK(content < s->writer->contents.count);
    if (s->degree > 0 && (page < s->links.owner || (same_page && content <= s->last_content)))
        return wb_fail(WB_E_CORRUPT, "%s: the lists of links by URL are not in order", s->writer->root);
    if (!same_page) {
        int err = end_page(s);
        if (err < 0)
            return err;
        s->links.owner = page;
        s->degree = 0;
    }
    s->last_content = content;
    /* Most links to a page have the same anchor. */
    if (s->text.len == 0 || !wb_slice_equal(s->anchor, anchor)) {
        WB_CHECK(anchor.len <= s->text.cap - s->text.len); /* room for all anchors of a piece was reserved */
        s->anchor = wb_slice(s->text.ptr + s->text.len, anchor.len);
        memcpy(s->text.ptr + s->text.len, anchor.ptr, anchor.len);
        s->text.len += anchor.len;
    }
    struct wb_linkitem item = {.number = content, .anchor = s->anchor, .tag = tag, .flags = flags};
    int written = wb_linkpieces_add(&s->links, &item);
    s->degree++;
    if (written)
        wb_buf_clear(&s->text);
    return written < 0 ? written : 0;
}

/* Writes the lower of the next old link and the next new one; if they are the same link, the new one. */
static int step(struct in_stage *s)
{
    bool both = s->kept_more && s->edit_more && s->kept_page == s->edit_page && s->kept_content == s->edit_content;
    bool use_edit = s->edit_more && (!s->kept_more || s->edit_page < s->kept_page ||
                                     (s->edit_page == s->kept_page && s->edit_content <= s->kept_content));
    int err;

    WB_CHECK(s->kept_more || s->edit_more);
    if (use_edit)
        err = put_link(s, s->edit_page, s->edit_content, wb_slice(s->edit.value.ptr + 2, s->edit.value.len - 2),
                       (uint8_t)s->edit.value.ptr[0], (uint8_t)s->edit.value.ptr[1]);
    else
        err = put_link(s, s->kept_page, s->kept_content, s->kept.anchor, s->kept.tag, s->kept.flags);
    if (err == 0 && (both || !use_edit))
        err = next_kept(s);
    return err == 0 && use_edit ? next_edit(s) : err;
}

static int walk_links(struct in_stage *s)
{
    int err = next_kept(s);

    check_stage(s);
    WB_CHECK(s->pages_done == 0);
    WB_CHECK(s->degree == 0);
    if (err == 0)
        err = next_edit(s);
    for (uint64_t done = 0; err == 0 && (s->kept_more || s->edit_more); done++) {
        err = step(s);
        if (err == 0)
            err = wb_writer_progress(s->writer, "links by URL", done, s->writer->outlinks);
    }
    if (err == 0)
        err = end_page(s);
    if (err == 0)
        err = fill_degrees(s, s->writer->next.rows);
    if (err == 0 && s->links.written != s->writer->outlinks)
        err = wb_fail(WB_E_CORRUPT, "%s: there are %llu links by URL, but %llu by MD5", s->writer->root,
                      (unsigned long long)s->links.written, (unsigned long long)s->writer->outlinks);
    WB_CHECK(err < 0 || s->pages_done == s->writer->next.rows); /* one degree per row */
    return err;
}

static int open_stage(struct in_stage *s)
{
    struct wb_webdb_writer *writer = s->writer;
    int err = wb_writer_open_old_table(writer, WB_INLINKS_FILE, WB_INLINKS_KIND, &s->old_table, &s->old);

    WB_CHECK(writer->target_edits != NULL);
    WB_CHECK(s->degrees == NULL);
    if (err == 0)
        err = wb_writer_create_table(writer, WB_INLINKS_FILE, WB_INLINKS_KIND, LINKS_BLOCK, &s->links.table);
    if (err == 0)
        err = wb_writer_create_column(writer, WB_DEGREES_FILE, WB_DEGREES_KIND, sizeof(uint32_t), &s->degrees);
    if (err == 0)
        err = wb_buf_reserve(&s->text, (size_t)WB_LINKLIST_ITEMS * UINT8_MAX);
    return err < 0 ? err : wb_sorter_sort(writer->target_edits);
}

int wb_merge_inlinks(struct wb_webdb_writer *writer)
{
    struct in_stage *s = wb_alloc_zero(1, sizeof *s);
    int err;

    WB_CHECK(wb_writer_is(writer, WB_WRITER_MERGING));
    WB_CHECK(writer->link_edits == NULL); /* stage 3 is done */
    WB_CHECK(writer->target_edits != NULL);
    if (!s)
        return WB_E_NOMEM;
    s->writer = writer;
    err = open_stage(s);
    if (err == 0)
        err = walk_links(s);
    if (err == 0)
        err = wb_linkpieces_finish(&s->links);
    if (err == 0) {
        err = wb_column_finish(s->degrees, NULL);
        s->degrees = NULL;
    }
    writer->next.count.links = s->links.written;
    wb_linkpieces_release(&s->links);
    wb_column_abandon(s->degrees);
    wb_cursor_close(s->old);
    wb_table_close(s->old_table);
    wb_buf_release(&s->text);
    wb_free(s);
    wb_sorter_close(writer->target_edits);
    writer->target_edits = NULL;
    return err;
}
