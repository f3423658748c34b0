/*
 * merge_inlinks.c - the fourth stage: links by URL, and how many lead to each page.
 *
 * The old lists with the new numbers of their pages and contents, and the links that the third stage told of, page by page. A list
 * may have any length: it is written in pieces as it comes, and never gathered.
 */
#include "webdb/writer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "webdb/linkpieces.h"

enum { LINKS_BLOCK = 16 << 10 }; /* small ones: the first row is to be had at once */

struct in_stage {
    struct wb_webdb_writer *writer;
    struct wb_table *old_table;
    struct wb_cursor *old;
    struct wb_linkpieces links;
    struct wb_column_writer *degrees;
    /* the old link that is next */
    struct wb_linklist list;
    bool list_open, kept_more;
    uint32_t kept_page, kept_content;
    struct wb_linkitem kept;
    /* the told one */
    struct wb_table_record edit;
    bool edit_more;
    uint32_t edit_page, edit_content;
    /* the page at hand */
    uint64_t degree;
    uint64_t pages_done;           /* degrees written */
    struct wb_buf text;            /* anchors of the links that wait lie in it; it has room for all and does not move */
    struct wb_slice anchor;        /* the last one of them */
};

/* ---- what is read --------------------------------------------------------------------------------------- */

static int open_piece(struct in_stage *s)
{
    struct wb_table_record record;
    uint64_t number;
    uint32_t piece;
    int got = wb_cursor_next(s->old, &record);

    if (got <= 0)
        return got;
    if (!wb_linklist_key_parse(record.key, &number, &piece) || number >= s->writer->page_numbers.count ||
        s->writer->page_numbers.numbers[number] == WB_NO_NUMBER)
        return wb_fail(WB_E_CORRUPT, "%s: links to a page that is not there", s->writer->root);
    s->kept_page = s->writer->page_numbers.numbers[number];
    got = wb_linklist_open(&s->list, record.value);
    s->list_open = got == 0;
    return got < 0 ? got : 1;
}

/* The next old link whose content is still there. */
static int next_kept(struct in_stage *s)
{
    const struct wb_number_map *contents = &s->writer->content_numbers;

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
            return wb_fail(WB_E_CORRUPT, "%s: a link from a content that is not there", s->writer->root);
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
        s->edit_page = wb_get32_be(s->edit.key.ptr);
        s->edit_content = wb_get32_be(s->edit.key.ptr + 4);
    }
    return got < 0 ? got : 0;
}

/* ---- what is written --------------------------------------------------------------------------------------- */

/* Degrees of all pages before one. */
static int fill_degrees(struct in_stage *s, uint64_t page)
{
    static const uint8_t none[4];
    int err = 0;

    while (err == 0 && s->pages_done < page) {
        err = wb_column_add(s->degrees, none);
        s->pages_done++;
    }
    return err;
}

static int end_page(struct in_stage *s)
{
    uint8_t degree[4];

    if (!s->degree)
        return 0;
    int err = wb_linkpieces_end(&s->links);
    wb_buf_clear(&s->text);
    if (err == 0)
        err = fill_degrees(s, s->links.owner);
    wb_put32(degree, s->degree < UINT32_MAX ? (uint32_t)s->degree : UINT32_MAX);
    s->pages_done++;
    return err < 0 ? err : wb_column_add(s->degrees, degree);
}

static int put_link(struct in_stage *s, uint32_t page, uint32_t content, struct wb_slice anchor, uint8_t tag, uint8_t flags)
{
    if (s->degree == 0 || page != s->links.owner) {
        int err = end_page(s);
        if (err < 0)
            return err;
        s->links.owner = page;
        s->degree = 0;
    }
    /* Most links to a page have the same words. */
    if (s->text.len == 0 || !wb_slice_equal(s->anchor, anchor)) {
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

static int step(struct in_stage *s)
{
    bool both = s->kept_more && s->edit_more && s->kept_page == s->edit_page && s->kept_content == s->edit_content;
    bool use_edit = s->edit_more && (!s->kept_more || s->edit_page < s->kept_page ||
                                     (s->edit_page == s->kept_page && s->edit_content <= s->kept_content));
    int err;

    if (use_edit)
        err = put_link(s, s->edit_page, s->edit_content, wb_slice(s->edit.value.ptr + 2, s->edit.value.len - 2), (uint8_t)s->edit.value.ptr[0],
                       (uint8_t)s->edit.value.ptr[1]);
    else
        err = put_link(s, s->kept_page, s->kept_content, s->kept.anchor, s->kept.tag, s->kept.flags);
    if (err == 0 && (both || !use_edit))
        err = next_kept(s);
    return err == 0 && use_edit ? next_edit(s) : err;
}

static int walk_links(struct in_stage *s)
{
    int err = next_kept(s);

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
        err = wb_fail(WB_E_CORRUPT, "%s: %llu links by URL, but %llu by MD5", s->writer->root, (unsigned long long)s->links.written,
                      (unsigned long long)s->writer->outlinks);
    return err;
}

static int open_stage(struct in_stage *s)
{
    struct wb_webdb_writer *writer = s->writer;
    int err = wb_writer_old_table(writer, WB_INLINKS_FILE, WB_INLINKS_KIND, &s->old_table, &s->old);

    if (err == 0)
        err = wb_writer_new_table(writer, WB_INLINKS_FILE, WB_INLINKS_KIND, LINKS_BLOCK, &s->links.table);
    if (err == 0) {
        char *path = wb_writer_new_path(writer, WB_DEGREES_FILE);
        err = path ? wb_column_create(path, WB_DEGREES_KIND, sizeof(uint32_t), &s->degrees) : WB_E_NOMEM;
        wb_free(path);
    }
    if (err == 0)
        err = wb_buf_reserve(&s->text, (size_t)WB_LINKLIST_ITEMS * UINT8_MAX);
    return err < 0 ? err : wb_sorter_sort(writer->target_edits);
}

int wb_merge_inlinks(struct wb_webdb_writer *writer)
{
    struct in_stage *s = wb_alloc_zero(1, sizeof *s);
    uint64_t bytes = 0;
    int err;

    if (!s)
        return WB_E_NOMEM;
    s->writer = writer;
    err = open_stage(s);
    if (err == 0)
        err = walk_links(s);
    if (err == 0)
        err = wb_linkpieces_finish(&s->links);
    if (err == 0) {
        err = wb_column_finish(s->degrees, &bytes);
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
