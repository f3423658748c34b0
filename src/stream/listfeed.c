/*
 * listfeed.c - the pages of a list in its order, or all their captures.
 *
 * Pages are read ahead in batches: the store reads each block of the disk once for a whole batch, and the feed then
 * hands the pages out in the order of the list. The store reads in the order of the disk, so a batch whose pages take
 * more than BATCH_BYTES would end before the pages that are needed first: it is given up, and batches of half as many
 * pages are read from then on, until they turn out to be small.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "stream/stream_own.h"

#define BATCH_PAGES 4096
#define FIRST_BATCH_PAGES 1024
#define BATCH_BYTES ((size_t)64 << 20)

void wb_listfeed_release(struct wb_stream *stream)
{
    wb_free(stream->listfeed.pages);
    wb_arena_release(&stream->listfeed.texts);
    wb_captures_free(stream->listfeed.captures);
    stream->listfeed = (struct wb_listfeed){.pages = NULL};
}

static struct wb_pageid id_at(const struct wb_stream *stream, uint64_t index)
{
    WB_CHECK(index < stream->list.count);
    return wb_pageid_get(wb_pagelist_ids(&stream->list).ptr + index * WB_PAGEID_BYTES);
}

/* ---- pages --------------------------------------------------------------------------------------- */

/* Copies all texts of a page. */
static int copy_page(struct wb_arena *arena, const struct wb_page *page, struct wb_page *copy_out)
{
    struct wb_slice *texts[] = {&copy_out->url,  &copy_out->key,     &copy_out->head,
                                &copy_out->type, &copy_out->charset, &copy_out->body};
    int err = 0;

    *copy_out = *page;
    for (size_t i = 0; err == 0 && i < sizeof texts / sizeof *texts; i++)
        err = wb_arena_copy(arena, *texts[i], texts[i]);
    return err;
}

/* Returns 1 when the batch is large enough. */
static int take_page(void *context, size_t index, int err, const struct wb_page *page)
{
    struct wb_listfeed *feed = &((struct wb_stream *)context)->listfeed;

    WB_CHECK(index < feed->count && feed->count <= BATCH_PAGES);
    if (err == WB_E_DOWN) /* no page is left out silently: the list can be continued when the node is back */
        return err;
    if (err < 0) {
        feed->pages[index].state = err;
        return 0;
    }
    err = copy_page(&feed->texts, page, &feed->pages[index].page);
    if (err < 0)
        return err;
    feed->pages[index].state = 1;
    feed->bytes += page->body.len + page->head.len;
    return feed->bytes >= BATCH_BYTES;
}

/* Reads these pages of the list. Returns 1 if they are too large for a batch, and not all of them were read. */
static int read_some(struct wb_stream *stream, uint64_t index, size_t count)
{
    WB_CHECK(count > 0 && count <= BATCH_PAGES);
    struct wb_listfeed *feed = &stream->listfeed;
    struct wb_store_when when = {.kind = stream->ticket.snapshot ? WB_STORE_WHEN_SNAPSHOT : WB_STORE_WHEN_LATEST,
                                 .snapshot = stream->ticket.snapshot};
    struct wb_pageid *ids = wb_alloc(count * sizeof *ids);
    int err = ids ? 0 : WB_E_NOMEM;

    if (!feed->pages)
        feed->pages = wb_alloc_zero(BATCH_PAGES, sizeof *feed->pages);
    if (!feed->pages)
        err = WB_E_NOMEM;
    wb_arena_clear(&feed->texts);
    feed->bytes = 0;
    feed->first = index;
    feed->count = err == 0 ? count : 0;
    for (size_t i = 0; i < feed->count; i++) {
        ids[i] = id_at(stream, index + i);
        feed->pages[i].state = 0;
    }
    if (err == 0)
        err = wb_store_bar_version(stream->store, &feed->bars);
    if (err == 0)
        err = wb_store_get_many(stream->store, ids, count, &when, take_page, stream);
    wb_free(ids);
    return err;
}

/* Reads pages from number `index` of the list on. */
static int read_batch(struct wb_stream *stream, uint64_t index)
{
    struct wb_listfeed *feed = &stream->listfeed;
    uint64_t left = stream->list.count - index;
    int got = 1;

    WB_CHECK(left > 0);
    feed->batch = feed->batch ? feed->batch : FIRST_BATCH_PAGES;
    while (got > 0) {
        size_t count = left < feed->batch ? (size_t)left : feed->batch;
        got = read_some(stream, index, count);
        if (got > 0 && count == 1)
            break;
        if (got > 0)
            feed->batch = count / 2;
    }
    if (got == 0 && feed->bytes < BATCH_BYTES / 8 * 3 && feed->batch < BATCH_PAGES)
        feed->batch *= 2;
    if (got < 0)
        feed->count = 0;
    if (got >= 0 && feed->pages[0].state == 0)
        return wb_fail(WB_E_IO, "a page of a list was not read");
    return got < 0 ? wb_error_break(got) : 0; /* damage of single pages is in their states */
}

/* Makes sure that the page of this number was read. */
static int load_page(struct wb_stream *stream, uint64_t index, struct wb_listfeed_page **page_out)
{
    struct wb_listfeed *feed = &stream->listfeed;
    int err = 0;

    if (index < feed->first || index - feed->first >= feed->count)
        err = read_batch(stream, index);
    WB_CHECK(err < 0 || (index >= feed->first && index - feed->first < feed->count));
    *page_out = err == 0 ? &feed->pages[index - feed->first] : NULL;
    return err;
}

int wb_listfeed_ahead(struct wb_stream *stream)
{
    struct wb_listfeed_page *ignored;

    if (stream->spec.versions || stream->place.index >= stream->list.count)
        return 0;
    return load_page(stream, stream->place.index, &ignored);
}

static int next_page(struct wb_stream *stream, struct wb_stream_record *record_out)
{
    const struct wb_listfeed *feed = &stream->listfeed;
    struct wb_listfeed_page *read;

    while (stream->place.index < stream->list.count) {
        int err = wb_stream_pause(stream);
        if (err == 0)
            err = load_page(stream, stream->place.index, &read);
        if (err != 0)
            return err;
        stream->place.index++;
        if (read->state == WB_E_NOTFOUND) /* taken down */
            continue;
        if (read->state < 0) {
            char hex[WB_PAGEID_HEX + 1];
            wb_pageid_hex(id_at(stream, stream->place.index - 1), hex);
            return wb_fail(read->state, "the page with the id %s cannot be read", hex);
        }
        WB_CHECK(read->state == 1);
        int down = wb_stream_is_down(stream, feed->bars, &read->page);
        int wanted = down < 0 ? down : down ? 0 : wb_stream_has_language(stream, &read->page);
        if (wanted < 0)
            return wanted;
        if (wanted) {
            record_out->page = read->page;
            return 1;
        }
    }
    return 0;
}

/* ---- captures ------------------------------------------------------------------------------------ */

static int begin_captures(struct wb_stream *stream)
{
    WB_CHECK(!stream->listfeed.begun && stream->place.index < stream->list.count);
    struct wb_listfeed *feed = &stream->listfeed;
    struct wb_captures_options options = {
        .store = stream->store, .selection = &stream->spec.selection, .epoch = stream->ticket.epoch, .bodies = true};
    int err = feed->captures ? 0 : wb_captures_new(&options, &feed->captures);

    if (err == 0)
        err = wb_captures_begin(feed->captures, id_at(stream, stream->place.index), NULL,
                                stream->place.within ? stream->place.capture_ms : INT64_MIN,
                                stream->place.within ? stream->place.capture_tie : 0);
    feed->begun = err == 0;
    return err;
}

static int next_capture(struct wb_stream *stream, struct wb_stream_record *record_out)
{
    struct wb_capture capture;

    while (stream->place.index < stream->list.count) {
        int got = wb_stream_pause(stream);
        if (got != 0)
            return got;
        got = stream->listfeed.begun ? 0 : begin_captures(stream);
        if (got == WB_E_CORRUPT) { /* nothing is known about the past of this page: the next one */
            stream->place.within = false;
            stream->place.index++;
            return got;
        }
        if (got == 0)
            got = wb_captures_next(stream->listfeed.captures, &capture);
        if (got < 0)
            return got;
        if (got == 0) {
            stream->listfeed.begun = stream->place.within = false;
            stream->place.index++;
            continue;
        }
        stream->place.within = true;
        stream->place.capture_ms = capture.page.time_ms;
        stream->place.capture_tie = capture.tie;
        int wanted = wb_stream_has_language(stream, &capture.page);
        if (wanted < 0)
            return wanted;
        if (wanted) {
            record_out->page = capture.page;
            record_out->revisit = capture.revisit;
            record_out->original_ms = capture.original_ms;
            return 1;
        }
    }
    return 0;
}

int wb_listfeed_next(struct wb_stream *stream, struct wb_stream_record *record_out)
{
    WB_CHECK(stream->magic == WB_STREAM_MAGIC && stream->ticket.listed);
    return stream->spec.versions ? next_capture(stream, record_out) : next_page(stream, record_out);
}
