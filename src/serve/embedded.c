/* embedded.c - finds the files that a stored page is shown with. See embedded.h. */
#include "serve/embedded.h"
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "extract/extract.h"
#include "serve/capture.h"

#include <stdlib.h>

struct embedded_seals WB_VEC_OF(int64_t);

/* While the files are looked for. */
struct embedded_search {
    struct wb_call *call;
    struct wb_embedded *e;
    struct embedded_seals seals; /* times of snapshots, which say what belongs to one cycle */
    size_t sheets, bytes;
};

static bool is_frame(unsigned tag)
{
    return tag == WB_EXTRACT_LINK_IFRAME || tag == WB_EXTRACT_LINK_FRAME;
}

const char *wb_embedded_kind(const struct wb_embedded_file *file)
{
    switch (wb_extract_need(file->tag)) {
    case WB_EXTRACT_NEED_IMAGES:
        return "image";
    case WB_EXTRACT_NEED_STYLES:
        return "style";
    case WB_EXTRACT_NEED_SCRIPTS:
        return "script";
    case WB_EXTRACT_NEED_MEDIA:
        return "media";
    default:
        return "frame";
    }
}

enum wb_embedded_state wb_embedded_state(const struct wb_embedded *e, const struct wb_embedded_file *file)
{
    WB_CHECK(e->apart_ms >= 0);
    if (!file->found)
        return WB_EMBEDDED_MISSING;
    return llabs(file->time_ms - e->page.time_ms) > e->apart_ms ? WB_EMBEDDED_FAR : WB_EMBEDDED_NEAR;
}

/* ---- one file ---------------------------------------------------------------------------------------------------- */

static int add_seal(void *context, const struct wb_store_snapshot *snapshot)
{
    struct embedded_seals *seals = context;

    return wb_vec_push(seals, snapshot->time_ms);
}

/* The capture that /web/ shows for a link of that second. */
static int find_capture(struct embedded_search *s, struct wb_embedded_file *file)
{
    struct wb_store_timeline timeline = {0};
    int err = wb_store_timeline(s->call->worker->store, file->id, &timeline);

    file->found = err == 0 && timeline.time_count > 0;
    if (file->found) {
        int64_t second = file->asked_ms - ((file->asked_ms % 1000) + 1000) % 1000 + 999;
        size_t at = wb_memento_near(&timeline, second, s->seals.items, s->seals.count);
        WB_CHECK(at < timeline.time_count);
        file->time_ms = timeline.times[at];
        for (size_t i = 0; i < timeline.count; i++)
            if (at - timeline.versions[i].first < timeline.versions[i].captures)
                file->status = timeline.versions[i].status;
    }
    wb_store_timeline_release(&timeline);
    return err == WB_E_NOTFOUND ? 0 : err;
}

static bool is_known(const struct wb_embedded *e, struct wb_pageid id)
{
    for (size_t i = 0; i < e->files.count; i++)
        if (wb_pageid_equal(e->files.items[i].id, id))
            return true;
    return wb_pageid_equal(e->id, id);
}

/* Adds what a link leads to, unless it is there already. */
static int add_file(struct embedded_search *s, const struct wb_extract_link *link, size_t sheet, int64_t asked_ms)
{
    struct wb_embedded *e = s->e;
    struct wb_embedded_file file = {.tag = link->tag, .sheet = sheet, .asked_ms = asked_ms};
    struct wb_memento_target target = {0};
    const char *part = memchr(link->url.ptr, '#', link->url.len);
    struct wb_slice url = part ? wb_slice(link->url.ptr, (size_t)(part - link->url.ptr)) : link->url;
    int err = wb_memento_url(url, &target);

    WB_CHECK(s->e->files.count < WB_EMBEDDED_FILES && (sheet == SIZE_MAX || sheet < s->e->files.count));
    file.id = target.id;
    if (err < 0 || is_known(e, file.id)) {
        wb_memento_target_release(&target);
        return err == WB_E_NOMEM ? err : 0; /* not a URL of the web: nothing that could be archived */
    }
    err = wb_arena_copy(&e->texts, wb_buf_slice(&target.url), &file.url);
    wb_memento_target_release(&target);
    if (err == 0)
        err = find_capture(s, &file);
    return err < 0 ? err : wb_vec_push(&e->files, file);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static int add_links(struct embedded_search *s, const struct wb_page *page, size_t sheet)
{
    struct wb_extract_input input = {.url = page->url,
                                     .type = page->type,
                                     .charset = page->charset,
                                     .body = page->body,
                                     .wants = WB_EXTRACT_LINKS | WB_EXTRACT_NEEDS};
    struct wb_extract extract;
    int err = wb_extract(s->call->worker->extractor, &input, &extract);

    for (size_t i = 0; err == 0 && i < extract.link_count; i++) {
        const struct wb_extract_link *link = &extract.links[i];
        if (!link->url.len || (!wb_extract_need(link->tag) && !is_frame(link->tag)))
            continue;
        if (s->e->files.count == WB_EMBEDDED_FILES) {
            s->e->cut = true;
            break;
        }
        err = add_file(s, link, sheet, page->time_ms);
    }
    s->e->cut = s->e->cut || (err == 0 && extract.links_left_out);
    return err;
}

/* A style sheet names further files. They are asked for with its time, because that is in its links. */
static int look_into(struct embedded_search *s, size_t number)
{
    WB_CHECK(number < s->e->files.count);
    WB_CHECK(s->sheets <= WB_EMBEDDED_SHEETS + 1);
    const struct wb_embedded_file *file = &s->e->files.items[number];
    struct wb_store_when when = {.kind = WB_STORE_WHEN_TIME, .time_ms = file->time_ms};
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_page page;

    if (!file->found || wb_extract_need(file->tag) != WB_EXTRACT_NEED_STYLES)
        return 0;
    if (s->sheets++ == WB_EMBEDDED_SHEETS) {
        s->e->cut = true;
        return 0;
    }
    int err = wb_store_get_when(s->call->worker->store, file->id, &when, &page, &mem);
    if (err == 0 && wb_slice_equal(page.type, WB_SLICE_LIT("text/css"))) {
        s->bytes += page.body.len;
        if (s->bytes > WB_EMBEDDED_BYTES)
            s->e->cut = true;
        else
            err = add_links(s, &page, number);
    }
    wb_buf_release(&mem);
    return err == WB_E_CORRUPT || err == WB_E_NOTFOUND ? 0 : err; /* what is in it cannot be said */
}

static int read_params(struct wb_call *call, struct wb_embedded *e, int64_t *time_ms_out)
{
    struct wb_slice time = wb_http_param(call->request, "time");
    uint64_t apart = 0;
    int err = wb_call_required(call, "url", &e->url);

    *time_ms_out = INT64_MAX;
    if (err == 0)
        err = wb_which_page(e->url, &e->id);
    if (err == 0 && time.ptr && !wb_date_parse_digits_end(time, time_ms_out) && !wb_date_parse(time, time_ms_out))
        err = wb_fail(WB_E_INVALID, "time=%.*s is not a time; write 20260131120000 or 2026-01-31T12:00:00Z",
                      WB_SLICE_ARG(time));
    if (err == 0)
        err = wb_call_number(call, "apart", WB_EMBEDDED_APART, UINT32_MAX, &apart);
    e->apart_ms = (int64_t)apart * 1000;
    return err;
}

int wb_embedded_read(struct wb_call *call, struct wb_embedded *e)
{
    struct embedded_search s = {.call = call, .e = e};
    int64_t time_ms;

    WB_CHECK(call->magic == WB_CALL_MAGIC);
    *e = (struct wb_embedded){0};
    int err = read_params(call, e, &time_ms);
    if (err == 0) {
        err = wb_capture_at(call, e->id, time_ms, &e->page, &e->mem);
        if (err == WB_E_NOTFOUND)
            err = wb_which_missing(call->worker->store, e->id, e->url, WB_SLICE_EMPTY, "this archive");
    }
    if (err == 0)
        err = wb_url_public(e->page.url, &e->public, &e->page.url);
    if (err == 0)
        err = wb_store_snapshot_each(call->worker->store, add_seal, &s.seals);
    if (err == 0)
        err = add_links(&s, &e->page, SIZE_MAX);
    for (size_t i = 0; err == 0 && i < e->files.count; i++)
        err = look_into(&s, i);
    for (size_t i = 0; err == 0 && i < e->files.count; i++)
        e->counts[wb_embedded_state(e, &e->files.items[i])]++;
    wb_vec_release(&s.seals);
    return err;
}

void wb_embedded_release(struct wb_embedded *e)
{
    wb_buf_release(&e->mem);
    wb_buf_release(&e->public);
    wb_vec_release(&e->files);
    wb_arena_release(&e->texts);
}
