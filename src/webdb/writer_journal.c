/*
 * writer_journal.c - turns the records of the journal into edits.
 *
 * Each log is read from where the old edition stopped. A log that is still being written is read as far as it goes. A
 * damaged record is reported and skipped. Nothing is removed from the journal: prune.c does that, after the merge.
 */
#include "webdb/writer.h"

/* The record is intact, but its URL is invalid or too long: skip it. */
static int skip_invalid(int err)
{
    return err == WB_E_INVALID || err == WB_E_LIMIT ? 0 : err;
}

/* ---- records --------------------------------------------------------------------------------- */

/* webdb knows links only: what is needed has the depth that a link gives it, or none. */
static unsigned link_depth(struct wb_depth depth)
{
    return depth.need ? WB_DEPTH_UNKNOWN : depth.links;
}

static struct wb_pageedit known_edit(struct wb_slice url, int64_t time_ms, unsigned depth, bool wanted)
{
    return (struct wb_pageedit){.kind = WB_PAGEEDIT_KNOWN, .time_ms = time_ms, .id = WB_PAGEEDIT_NO_ID, .url = url,
                                .wanted = wanted, .depth = (uint16_t)(depth < UINT16_MAX ? depth : UINT16_MAX)};
}

/* A URL was mentioned. hint_ms: when it changed, according to a sitemap or feed; 0 if unknown. */
static int add_known(struct wb_webdb_writer *writer, struct wb_slice url, int64_t time_ms, unsigned depth, bool wanted,
                     int64_t hint_ms)
{
    struct wb_pageedit known = known_edit(url, time_ms, depth, wanted);
    uint32_t id;

    WB_CHECK(known.depth <= depth);
    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    known.hint_ms = hint_ms;
    if (hint_ms) /* a time can be news every time, so these edits are never left out */
        return skip_invalid(wb_writer_add_page_edit(writer, &known));
    return skip_invalid(wb_writer_add_target(writer, url, &known, &id));
}

static bool is_wanted(const struct wb_pagelink *link)
{
    return (link->flags & (WB_PAGELINK_FOLLOW | WB_PAGELINK_NOFOLLOW)) == WB_PAGELINK_FOLLOW;
}

static int take_link(struct wb_webdb_writer *writer, const struct wb_edit *edit, const struct wb_pagelink *link)
{
    unsigned depth = link_depth(edit->page.depth);
    struct wb_pageedit known = known_edit(link->url, edit->time_ms, depth + 1u, is_wanted(link));
    struct wb_writer_link grouped = {.tag = link->tag, .flags = link->flags, .anchor = link->anchor};

    WB_CHECK(link->url.ptr != NULL);
    WB_CHECK(known.depth > depth || known.depth == UINT16_MAX); /* one link further from the seed */
    int err = wb_writer_add_target(writer, link->url, &known, &grouped.id);
    /* A link comes from a content. Without one, the page was only read (crawl --types): its targets are known. */
    if (err < 0 || !edit->page.has_content)
        return skip_invalid(err);
    return wb_writer_add_link(writer, edit->page.md5, WB_PAGEEDIT_NO_ID, &grouped);
}

static int take_visit(struct wb_webdb_writer *writer, const struct wb_edit *edit)
{
    struct wb_pageedit visit = {.kind = WB_PAGEEDIT_VISIT, .time_ms = edit->time_ms, .id = WB_PAGEEDIT_NO_ID,
                                .url = edit->page.url, .depth = (uint16_t)link_depth(edit->page.depth),
                                .visit = edit->page};

    visit.visit.depth = (struct wb_depth){.links = visit.depth};
    WB_CHECK(edit->kind == WB_EDIT_PAGE);
    WB_CHECK(edit->page.outcome >= WB_OUTCOME_STORED); /* the journal has checked its record */
    WB_CHECK(edit->page.outcome <= WB_OUTCOME_ROBOTS);
    int err = wb_writer_add_page_edit(writer, &visit);
    if (err == 0 && edit->page.outcome == WB_OUTCOME_REDIRECT && edit->page.location.len)
        err = add_known(writer, edit->page.location, edit->time_ms, visit.depth, !edit->page.depth.need, 0);
    return skip_invalid(err);
}

/* A record that was read from a log: its links are packed. */
static int take_page(struct wb_webdb_writer *writer, const struct wb_edit *edit, struct wb_buf *mem)
{
    struct wb_pagelink link;
    size_t at = 0;
    int got = take_visit(writer, edit);

    WB_CHECK(edit->kind == WB_EDIT_PAGE);
    WB_CHECK(edit->page.links == NULL); /* a record that was read has its links packed */
    if (got < 0)
        return got;
    while ((got = wb_edit_links_next(edit, &at, mem, &link)) > 0) {
        got = take_link(writer, edit, &link);
        if (got < 0)
            return got;
    }
    return got;
}

int wb_webdb_add_visit(struct wb_webdb_writer *writer, const struct wb_edit *edit)
{
    WB_CHECK(edit->kind == WB_EDIT_PAGE);
    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    WB_CHECK(edit->page.link_count == 0 || edit->page.links != NULL);
    int err = take_visit(writer, edit);

    for (size_t i = 0; err == 0 && i < edit->page.link_count; i++)
        err = take_link(writer, edit, &edit->page.links[i]);
    return err;
}

/* Seeds, the URLs of a sitemap or feed, or URLs given to a crawler because their lifetime ends. */
static int take_urls(struct wb_webdb_writer *writer, const struct wb_edit *edit, struct wb_buf *mem)
{
    struct wb_pagelink link;
    size_t at = 0;
    int got;

    WB_CHECK(edit->kind == WB_EDIT_SEEDS || edit->kind == WB_EDIT_HINTS || edit->kind == WB_EDIT_ASK);
    while ((got = wb_edit_links_next(edit, &at, mem, &link)) > 0) {
        struct wb_pageedit ask = {.kind = WB_PAGEEDIT_ASK, .time_ms = edit->time_ms, .id = WB_PAGEEDIT_NO_ID,
                                  .url = link.url};
        struct wb_depth depth = edit->kind == WB_EDIT_SEEDS ? edit->depth : (struct wb_depth){.links = 1};
        if (link.tag == WB_PAGELINK_TAG_SITEMAP)
            continue;
        if (edit->kind == WB_EDIT_ASK)
            got = skip_invalid(wb_writer_add_page_edit(writer, &ask));
        else
            got = add_known(writer, link.url, edit->time_ms, link_depth(depth), !depth.need,
                            link.modified_ms);
        if (got < 0)
            return got;
    }
    return got;
}

/* A URL that somebody announced or removed. */
static int take_push_or_expunge(struct wb_webdb_writer *writer, const struct wb_edit *edit)
{
    struct wb_pageedit told = {.kind = edit->kind == WB_EDIT_PUSH ? WB_PAGEEDIT_PUSH : WB_PAGEEDIT_EXPUNGE,
                               .time_ms = edit->time_ms, .id = WB_PAGEEDIT_NO_ID, .url = edit->text,
                               .count = edit->count};

    WB_CHECK(edit->kind == WB_EDIT_PUSH || edit->kind == WB_EDIT_EXPUNGE);
    return skip_invalid(wb_writer_add_page_edit(writer, &told));
}

static int take_rules(struct wb_webdb_writer *writer, const struct wb_edit *edit)
{
    struct wb_webdb_rules rules = {.time_ms = edit->time_ms, .expires_ms = edit->rules.expires_ms,
                                   .status = edit->rules.status, .text = edit->rules.text};

    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    WB_CHECK(edit->kind == WB_EDIT_RULES);
    return wb_merge_rules_add(writer, edit->site, &rules);
}

static int take_record(struct wb_webdb_writer *writer, const struct wb_edit *edit, struct wb_buf *mem)
{
    WB_CHECK(edit->kind >= WB_EDIT_VISIT);
    WB_CHECK(edit->kind <= WB_EDIT_BATCH);
    switch (edit->kind) {
    case WB_EDIT_PAGE:
        return take_page(writer, edit, mem);
    case WB_EDIT_SEEDS:
    case WB_EDIT_HINTS:
    case WB_EDIT_ASK:
        return take_urls(writer, edit, mem);
    case WB_EDIT_PUSH:
    case WB_EDIT_EXPUNGE:
        return take_push_or_expunge(writer, edit);
    case WB_EDIT_RULES:
        return take_rules(writer, edit);
    case WB_EDIT_VISIT:
    case WB_EDIT_REQUEST:
    case WB_EDIT_WAIT:
    case WB_EDIT_FINISH:
    case WB_EDIT_BATCH:
        return 0; /* only crawlers read these */
    }
    return 0;
}

/* ---- logs ------------------------------------------------------------------------------------ */

/* Finds the entry of a log in the manifest, or inserts one that says that nothing of it has been merged. */
static int find_merged(struct wb_manifest *manifest, uint32_t log, struct wb_manifest_log **merged_out)
{
    size_t at = 0;

    WB_CHECK(log > 0);
    *merged_out = NULL;
    while (at < manifest->logs.count && manifest->logs.items[at].log < log)
        at++;
    if (at == manifest->logs.count || manifest->logs.items[at].log != log) {
        int err = wb_vec_push(&manifest->logs, (struct wb_manifest_log){.log = log});
        if (err < 0)
            return err;
        struct wb_manifest_log *entry = &manifest->logs.items[at];
        memmove(entry + 1, entry, (manifest->logs.count - 1 - at) * sizeof *entry);
        *entry = (struct wb_manifest_log){.log = log};
    }
    *merged_out = &manifest->logs.items[at];
    WB_CHECK(at == 0 || manifest->logs.items[at - 1].log < log);
    WB_CHECK(at + 1 == manifest->logs.count || manifest->logs.items[at + 1].log > log);
    WB_CHECK((*merged_out)->log == log);
    return 0;
}

struct journal_walk {
    struct wb_webdb_writer *writer;
    struct wb_journal_reader *reader;
    wb_webdb_found found;
    void *context;
    struct wb_buf mem;
};

static void report(const struct journal_walk *walk, const char *file, uint64_t offset, const char *message)
{
    WB_CHECK(message != NULL);
    if (walk->found)
        walk->found(walk->context, file, offset, message);
}

/* Reads a log from where the old edition stopped, and moves its entry in the manifest along. */
static int read_log(struct journal_walk *walk, uint32_t log)
{
    struct wb_webdb_writer *writer = walk->writer;
    struct wb_manifest_log *merged;
    struct wb_journal_step step;
    struct wb_edit edit;
    int err = find_merged(&writer->next, log, &merged), got = 0;
    struct wb_edit_place at = {log, err < 0 ? 0 : merged->last};

    WB_CHECK(walk->reader != NULL);
    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    while (err == 0 && (got = wb_journal_reader_step(walk->reader, &at, &edit, &step)) != 0) {
        if (got < 0 && got != WB_E_CORRUPT)
            break;
        if (got == WB_E_CORRUPT)
            report(walk, step.file ? step.file : writer->dir, at.offset, wb_error_message());
        else
            err = take_record(writer, &edit, &walk->mem);
        if (err == WB_E_CORRUPT) {
            report(walk, step.file, at.offset, wb_error_message());
            err = 0;
        }
        if (got == WB_E_CORRUPT && at.offset == merged->last)
            break; /* the head of the log is damaged: nothing of it can be read */
        writer->stat.records += got > 0;
        writer->journal_moved = true;
        WB_CHECK(at.offset >= merged->last); /* the records of a batch share one offset */
        merged->last = at.offset;
        merged->end = step.next ? step.next : at.offset + 1;
        WB_CHECK(merged->end > merged->last); /* as the manifest requires */
        if (err == 0)
            err = wb_writer_progress(writer, "journal", writer->stat.records, 0);
    }
    if (got == 0 && err == 0 && step.sight == WB_JOURNAL_TORN && !wb_journal_log_is_written(writer->dir, log))
        report(walk, step.file, step.place.offset, "a record that was not finished: its writer died");
    return err < 0 ? err : got < 0 && got != WB_E_CORRUPT && got != WB_E_NOTFOUND ? got : 0;
}

/* Drops the entries of logs that no longer exist. Both lists are in order. */
static void forget_removed(struct wb_manifest *manifest, const struct wb_journal_log *logs, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0, log = 0; i < manifest->logs.count; i++) {
        const struct wb_manifest_log *entry = &manifest->logs.items[i];
        WB_CHECK(i == 0 || manifest->logs.items[i].log > manifest->logs.items[i - 1].log);
        while (log < count && logs[log].number < entry->log)
            log++;
        if (log < count && logs[log].number == entry->log)
            manifest->logs.items[kept++] = *entry;
    }
    WB_CHECK(kept <= manifest->logs.count);
    WB_CHECK(kept <= count);
    manifest->logs.count = kept;
}

int wb_webdb_add_journal(struct wb_webdb_writer *writer, wb_webdb_found found, void *context)
{
    struct journal_walk walk = {.writer = writer, .found = found, .context = context};
    struct wb_journal_log *logs = NULL;
    size_t count = 0;

    WB_CHECK(wb_writer_is(writer, WB_WRITER_COLLECTING));
    int err = wb_journal_list_logs(writer->dir, &logs, &count);

    if (err == 0)
        err = wb_journal_reader_open(writer->dir, &walk.reader);
    if (err == 0)
        forget_removed(&writer->next, logs, count);
    for (size_t i = 0; err == 0 && i < count; i++)
        err = read_log(&walk, logs[i].number);
    wb_journal_reader_close(walk.reader);
    wb_buf_release(&walk.mem);
    wb_free(logs);
    return err;
}
