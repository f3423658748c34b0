/*
 * webdb_twin_writer.h - gives a batch of the twin's edits to a writer, partly by its calls, partly through the journal.
 */
#ifndef WB_TESTS_WEBDB_TWIN_WRITER_H
#define WB_TESTS_WEBDB_TWIN_WRITER_H

#include "webdb_twin.h"

static struct wb_webdb_link link_of(const struct twin_link *link)
{
    struct wb_webdb_link made = {.to = twin_url(link->url, link->https, link->slash),
                                 .anchor = twin_anchor(link->anchor),
                                 .tag = link->tag,
                                 .flags = link->flags};

    twin_md5(link->md5, made.from_md5);
    return made;
}

static int call_writer(struct wb_webdb_writer *writer, const struct twin_edit *edit)
{
    struct wb_webdb_page row;
    struct wb_webdb_link link = {.tag = 0};

    fill_row(edit, &row);
    if (edit->link_count)
        link = link_of(&edit->links[0]);
    switch (edit->kind) {
    case TWIN_ADD:
        return wb_webdb_add_page(writer, &row);
    case TWIN_ADD_SCORE:
        return wb_webdb_add_page_with_score(writer, &row);
    case TWIN_ADD_ABSENT:
        return wb_webdb_add_page_if_not_present(writer, &row, edit->link_count ? &link : NULL);
    default:
        return wb_webdb_add_link(writer, &link);
    }
}

static int append_record(struct wb_journal_writer *log, const struct twin_edit *twin_edit)
{
    struct wb_slice url = twin_url(twin_edit->url, twin_edit->https, twin_edit->slash);
    struct wb_pagelink links[TWIN_LINKS_MAX];
    struct wb_edit edit = {.kind = WB_EDIT_PAGE,
                           .site = wb_edit_site(wb_slice_str(twin_sites[twin_edit->url / TWIN_PATHS])),
                           .time_ms = twin_edit->time_ms,
                           .count = twin_edit->count,
                           .links = links,
                           .text = url};
    struct wb_edit_place place;

    if (twin_edit->kind == TWIN_VISIT) {
        edit.page = (struct wb_edit_page){.url = url,
                                          .outcome = twin_edit->outcome,
                                          .status = twin_edit->status,
                                          .depth.links = twin_edit->depth,
                                          .has_content = twin_edit->md5 >= 0,
                                          .simhash = twin_edit->variant,
                                          .bytes = twin_edit->variant / 7,
                                          .links = links,
                                          .link_count = twin_edit->link_count};
        if (twin_edit->md5 >= 0)
            twin_md5(twin_edit->md5, edit.page.md5);
        else
            edit.page.simhash = edit.page.bytes = 0;
        if (twin_edit->outcome == WB_OUTCOME_REDIRECT)
            edit.page.location = twin_url(twin_edit->location, true, false);
        for (size_t i = 0; i < twin_edit->link_count; i++) {
            struct wb_webdb_link link = link_of(&twin_edit->links[i]);
            links[i] =
                (struct wb_pagelink){.url = link.to, .anchor = link.anchor, .tag = link.tag, .flags = link.flags};
        }
    } else if (twin_edit->kind == TWIN_SEED || twin_edit->kind == TWIN_HINT || twin_edit->kind == TWIN_ASK) {
        edit.kind = twin_edit->kind == TWIN_SEED   ? WB_EDIT_SEEDS
                    : twin_edit->kind == TWIN_HINT ? WB_EDIT_HINTS
                                                   : WB_EDIT_ASK;
        edit.depth.links = twin_edit->depth;
        edit.link_count = 1;
        links[0] = (struct wb_pagelink){.url = url, .modified_ms = twin_edit->hint_ms};
    } else {
        edit.kind = twin_edit->kind == TWIN_PUSH ? WB_EDIT_PUSH : WB_EDIT_EXPUNGE;
    }
    return wb_journal_writer_append(log, &edit, &place);
}

UNUSED size_t twin_count_records(const struct twin_batch *batch)
{
    size_t count = 0;

    for (size_t i = 0; i < batch->count; i++)
        count += batch->edits[i].kind >= TWIN_JOURNAL;
    return count;
}

/* Appends the journal part of a batch to a log that stays open. */
UNUSED int twin_append_journal(struct wb_journal_writer *log, const struct twin_batch *batch)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < batch->count; i++)
        if (batch->edits[i].kind >= TWIN_JOURNAL)
            err = append_record(log, &batch->edits[i]);
    return err < 0 ? err : wb_journal_writer_flush(log);
}

/* The same with a new log; without records no log is written. */
UNUSED int twin_write_journal(const char *dir, const struct twin_batch *batch)
{
    struct wb_journal_writer *log = NULL;
    int err = twin_count_records(batch) ? wb_journal_writer_open(dir, 0, &log) : 0;

    if (err == 0 && log)
        err = twin_append_journal(log, batch);
    if (err == 0 && log)
        err = wb_journal_writer_finish(log);
    if (log)
        wb_journal_writer_close(log);
    return err;
}

/* Gives the edits of a batch to a writer, in their order. The journal was written before. */
UNUSED int twin_call_writer(struct wb_webdb_writer *writer, const struct twin_batch *batch)
{
    bool journal = false;
    int err = 0;

    for (size_t i = 0; err == 0 && i < batch->count; i++) {
        if (batch->edits[i].kind < TWIN_JOURNAL)
            err = call_writer(writer, &batch->edits[i]);
        else if (!journal)
            err = wb_webdb_add_journal(writer, NULL, NULL);
        journal = journal || batch->edits[i].kind >= TWIN_JOURNAL;
    }
    return err;
}

/* The rule that twins compare with: a page is due a week after it was last tried. */
UNUSED int twin_set_due(struct wb_webdb_writer *writer, const struct twin_batch *batch)
{
    const struct wb_webdb_site *site;
    struct wb_webdb_page *page;
    int got;

    while ((got = wb_webdb_writer_next(writer, &page, &site)) > 0) {
        if (batch->look)
            batch->look(batch->look_context, page, site);
        page->next_due_ms = page->last_tried_ms + TWIN_WEEK_MS;
    }
    return got;
}

UNUSED int twin_close_writer(struct wb_webdb_writer *writer, const struct twin_batch *batch,
                             struct wb_webdb_merge *merge_out)
{
    int err = twin_set_due(writer, batch);

    if (err == 0)
        return wb_webdb_writer_close(writer, merge_out);
    wb_webdb_writer_abandon(writer);
    return err;
}

/* Opens a writer, gives it the batch, closes it. The journal was written before. */
UNUSED int twin_update(const char *dir, const struct twin_batch *batch, size_t memory_bytes, unsigned threads,
                       struct wb_webdb_merge *merge_out)
{
    /* The default is much more than any batch needs; with a sanitizer, most of the time would go into marking it. */
    struct wb_webdb_options options = {.memory_bytes = memory_bytes ? memory_bytes : 16 << 20, .threads = threads,
                                       .now_ms = batch->now_ms};
    struct wb_webdb_writer *writer = NULL;
    int err = wb_webdb_writer_open(dir, &options, &writer);

    if (err < 0)
        return err;
    err = twin_call_writer(writer, batch);
    if (err < 0) {
        wb_webdb_writer_abandon(writer);
        return err;
    }
    return twin_close_writer(writer, batch, merge_out);
}

#endif
