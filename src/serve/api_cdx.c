/*
 * api_cdx.c - GET /cdx and /cdx/search/cdx: one line for each capture, in the order of URL key and time.
 *
 *   /cdx              com,example)/ 20260102030405 {"url":"http://example.com/","mime":"text/html",...}     as pywb
 *   /cdx/search/cdx   com,example)/ 20260102030405 http://example.com/ text/html 200 DIGEST 1234            as the IA
 *
 * With output=json: an object per line there, and here an array of arrays whose first one has the names of fields.
 * Captures that cannot be read are missing in the answer, which says so at its end and, if it is small, in its head.
 * A small answer is made at once. A large one is made piece by piece, as the client takes it; it keeps its generation
 * open for that long.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "serve/cdx_server.h"
#include "serve/memento.h"
#include "warc/warc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* With more pages under the key of one URL, the answer cannot be sorted in memory. */
enum { EXACT_MAX = 10000 };

struct cdx_ids WB_VEC_OF(struct wb_pageid);

/* A piece ends after so many bytes or URLs, so that a filter that lets nothing through does not keep a worker. */
enum { PIECE = 256 << 10, PIECE_URLS = 1000 };

static void job_free(struct cdx_job *job)
{
    WB_CHECK(job->magic == CDX_JOB_MAGIC);
    cdx_query_release(&job->query);
    cdx_walk_release(&job->walk);
    cdx_rows_release(&job->rows);
    wb_index_close(job->own);
    wb_buf_release(&job->first);
    for (size_t i = 0; i < CDX_COLLAPSES_MAX; i++)
        wb_buf_release(&job->last[i]);
    for (size_t i = 0; i < job->lines.count; i++)
        wb_buf_release(&job->lines.items[i]);
    wb_vec_release(&job->lines);
    wb_buf_release(&job->resume);
    wb_buf_release(&job->origin);
    wb_buf_release(&job->last_time);
    job->magic = 0;
    wb_free(job);
}

/* ---- rows ---------------------------------------------------------------------------------------- */

static struct wb_slice prefix_of(struct wb_slice value, size_t len)
{
    return value.len > len ? wb_slice(value.ptr, len) : value;
}

/* The same for collapseTime, which as in pywb compares with the row before, whatever its URL is. */
static int begins_time(struct cdx_job *job, const struct cdx_row *row)
{
    size_t digits = job->query.collapse_time;
    struct wb_slice time = prefix_of(row->field[CDX_TIMESTAMP], digits), status = row->field[CDX_STATUS];
    struct wb_buf now = WB_BUF_INIT;

    if (digits == 0)
        return 1;
    int err = wb_buf_printf(&now, "%.*s %.*s", WB_SLICE_ARG(time), WB_SLICE_ARG(status));
    bool same = err == 0 && wb_slice_equal(wb_buf_slice(&now), wb_buf_slice(&job->last_time));
    wb_buf_release(&job->last_time);
    job->last_time = now;
    return err < 0 ? err : !same;
}

/* Returns 1 if the row is the first of a run, 0 if not, or an error. */
static int begins_run(struct cdx_job *job, const struct cdx_row *row)
{
    WB_CHECK(job->query.collapse_count <= CDX_COLLAPSES_MAX);
    const struct cdx_query *q = &job->query;
    bool same = job->has_last && q->collapse_count > 0;
    int err = begins_time(job, row);

    if (err <= 0)
        return err;
    err = 0;

    for (size_t i = 0; i < q->collapse_count && err == 0; i++) {
        struct wb_slice value = prefix_of(row->field[q->collapses[i].field], q->collapses[i].len);
        same = same && wb_slice_equal(value, wb_buf_slice(&job->last[i]));
        wb_buf_clear(&job->last[i]);
        err = wb_buf_append_slice(&job->last[i], value);
    }
    job->has_last = true;
    return err < 0 ? err : !same;
}

/* Whether the answer before this one had the row already. Counts how many rows of a group have the same time. */
static bool is_before(struct cdx_job *job, const struct cdx_row *row)
{
    const struct cdx_query *q = &job->query;

    /* Rows come in the order of time, or backwards, unless they come in that of nearness. */
    WB_CHECK(job->same == 0 || q->sort == CDX_CLOSEST ||
             (job->walk.reverse ? row->time_ms <= job->same_ms : row->time_ms >= job->same_ms));
    job->same = job->same && job->same_ms == row->time_ms ? job->same + 1 : 1;
    job->same_ms = row->time_ms;
    if (q->after_key.len == 0 || !wb_slice_equal(row->field[CDX_URLKEY], wb_buf_slice(&q->after_key)))
        return false;
    if (job->walk.chunk != q->after_chunk)
        return job->walk.chunk < q->after_chunk;
    return row->time_ms < q->after_ms || (row->time_ms == q->after_ms && job->same <= q->after_same);
}

/* With milliseconds, and a number if a key has several captures in one of them. */
static int set_resume(struct cdx_job *job, const struct cdx_row *row)
{
    wb_buf_clear(&job->resume);
    int err = wb_buf_printf(&job->resume, "%.*s %.*s%03d", WB_SLICE_ARG(row->field[CDX_URLKEY]),
                            WB_SLICE_ARG(row->field[CDX_TIMESTAMP]), (int)(((row->time_ms % 1000) + 1000) % 1000));
    if (err == 0 && job->same > 1)
        err = wb_buf_printf(&job->resume, ".%" PRIu64, job->same);
    if (err == 0 && job->walk.chunk)
        err = wb_buf_printf(&job->resume, "~%" PRIu32, job->walk.chunk);
    return err;
}

static int keep_line(struct cdx_job *job, const struct cdx_row *row)
{
    WB_CHECK(job->lines.count + 1 == job->written);
    struct wb_buf line = WB_BUF_INIT;
    int err = cdx_add_line(job, row, &line);

    if (err == 0)
        err = wb_vec_push(&job->lines, line);
    if (err < 0)
        wb_buf_release(&line);
    return err;
}

static int add_row(struct cdx_job *job, const struct cdx_row *row, struct wb_buf *out)
{
    WB_CHECK(!job->over);
    WB_CHECK(job->written <= job->query.limit);
    const struct cdx_query *q = &job->query;

    if (is_before(job, row))
        return 0;
    int first = begins_run(job, row);
    if (first <= 0)
        return first;
    if (job->skipped < q->offset) {
        job->skipped++;
        return 0;
    }
    if (job->written == q->limit) {
        job->more = job->over = true;
        return 0;
    }
    job->written++;
    if (q->last && q->match != CDX_EXACT)
        return keep_line(job, row);
    int err = set_resume(job, row);
    return err < 0 ? err : cdx_add_line(job, row, out);
}

/* All rows of a group, backwards if that is the order. */
static int add_rows(struct cdx_job *job, struct wb_buf *out)
{
    size_t count = job->rows.rows.count;
    int err = 0;

    job->same = 0;
    for (size_t i = 0; i < count && err == 0 && !job->over; i++)
        err = add_row(job, &job->rows.rows.items[job->walk.reverse ? count - 1 - i : i], out);
    return err;
}

/* The last page of pywb's API is the last one that there is. The Internet Archive's has empty ones behind it. */
static int beyond(const struct cdx_job *job, uint64_t pages)
{
    if (job->query.ia || job->query.page == 0 || job->query.page < pages)
        return 0;
    return wb_fail(WB_E_INVALID, "page=%" PRIu64 ": the first page is 0, the last one %" PRIu64, job->query.page,
                   pages ? pages - 1 : 0);
}

/* A complete answer without some captures says so in its head; without any, it is an error. */
static int say_missing(struct wb_call *call, const struct cdx_job *job)
{
    char number[24];

    WB_CHECK(!call->reply->source); /* the head has not left */
    if (job->rows.left_out == 0)
        return 0;
    if (job->written == 0)
        return wb_fail(WB_E_CORRUPT, "none of the %" PRIu64 " captures could be read: %.*s", job->rows.left_out,
                       WB_SLICE_ARG(wb_buf_slice(&job->rows.lost)));
    snprintf(number, sizeof number, "%" PRIu64, job->rows.left_out);
    return wb_http_reply_field(call->reply, "X-Left-Out", wb_slice_str(number));
}

/* ---- one URL ------------------------------------------------------------------------------------- */

/* A time in seconds, as timestamps have it: all captures of the second that was asked for are equally near. */
static int64_t second_of(int64_t time_ms)
{
    return time_ms / 1000 - (time_ms % 1000 < 0);
}

static int by_distance(const void *a, const void *b, void *context)
{
    const struct cdx_row *x = a, *y = b;
    int64_t closest = second_of(*(int64_t *)context), dx = second_of(x->time_ms) - closest,
            dy = second_of(y->time_ms) - closest;

    dx = dx < 0 ? -dx : dx;
    dy = dy < 0 ? -dy : dy;
    if (dx != dy)
        return dx < dy ? -1 : 1;
    if (x->time_ms != y->time_ms)
        return x->time_ms < y->time_ms ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* The last N rows after collapsing. */
static int cut_to_last(struct cdx_job *job)
{
    size_t kept = 0;

    WB_CHECK(job->query.last);
    WB_CHECK(!job->has_last && job->written == 0);
    for (size_t i = 0; i < job->rows.rows.count; i++) {
        int first = begins_run(job, &job->rows.rows.items[i]);
        if (first < 0)
            return first;
        if (first)
            job->rows.rows.items[kept++] = job->rows.rows.items[i];
    }
    job->has_last = false;
    size_t drop = kept > job->query.limit ? kept - (size_t)job->query.limit : 0;
    memmove(job->rows.rows.items, job->rows.rows.items + drop, (kept - drop) * sizeof(struct cdx_row));
    job->rows.rows.count = kept - drop;
    return 0;
}

/* Spellings of a URL that have its URL key, and that a repository may know before it has a generation. */
static int add_spellings(const struct cdx_query *q, struct cdx_ids *ids)
{
    static const char *const hosts[] = {"", "www."};
    struct wb_slice url = wb_buf_slice(&q->url), urlkey = wb_buf_slice(&q->urlkey);
    struct wb_slice site = wb_key_site(url), bare = site;
    const char *close = urlkey.len ? memchr(urlkey.ptr, ')', urlkey.len) : NULL;
    struct wb_buf text = WB_BUF_INIT;
    int err = wb_vec_push(ids, wb_pageid_of_key(url));

    if (wb_slice_starts(bare, WB_SLICE_LIT("www.")))
        bare = wb_slice(site.ptr + 4, site.len - 4);
    for (int i = 0; err == 0 && close && site.len && i < 4; i++) {
        /* What follows the host: as it was asked for, and as it is in the key. */
        const char *rest = i < 2 ? site.ptr + site.len : close + 1;
        const char *end = i < 2 ? url.ptr + url.len : urlkey.ptr + urlkey.len;
        wb_buf_clear(&text);
        err = wb_buf_append_str(&text, hosts[i % 2]);
        if (err == 0)
            err = wb_buf_append_slice(&text, bare);
        if (err == 0)
            err = wb_buf_append(&text, rest, (size_t)(end - rest));
        if (err == 0)
            err = wb_vec_push(ids, wb_pageid_of_key(wb_buf_slice(&text)));
    }
    wb_buf_release(&text);
    return err;
}

static int by_id(const void *a, const void *b)
{
    return wb_pageid_compare(*(const struct wb_pageid *)a, *(const struct wb_pageid *)b);
}

/* All pages that have the URL key of the query: those that the generation knows, and new ones by likely spellings. */
static int find_pages(struct wb_call *call, struct cdx_job *job, struct cdx_ids *ids)
{
    struct wb_searcher *searcher;
    size_t kept = 0;
    int err = add_spellings(&job->query, ids);
    int more = err < 0 ? err : wb_call_searcher(call, &searcher);

    if (more == 0)
        more = cdx_walk_begin(wb_searcher_index(searcher), &job->query, &job->walk);
    else if (more == WB_E_BUSY)
        more = 0; /* there is no generation yet: pages are found by their ids alone */
    while (more >= 0 && job->walk.index && (more = cdx_walk_next(&job->walk)) > 0) {
        for (size_t i = 0; more > 0 && i < job->walk.ids.count; i++)
            more = wb_vec_push(ids, job->walk.ids.items[i]) < 0 ? WB_E_NOMEM : 1;
        if (more > 0 && ids->count > EXACT_MAX)
            return wb_fail(WB_E_LIMIT, "more than %d URLs have the key %.*s; ask with matchType=prefix", EXACT_MAX,
                           WB_SLICE_ARG(wb_buf_slice(&job->query.urlkey)));
    }
    if (more < 0)
        return more;
    qsort(ids->items, ids->count, sizeof *ids->items, by_id);
    for (size_t i = 0; i < ids->count; i++)
        if (kept == 0 || !wb_pageid_equal(ids->items[i], ids->items[kept - 1]))
            ids->items[kept++] = ids->items[i];
    ids->count = kept;
    return 0;
}

static int answer_exact(struct wb_call *call, struct cdx_job *job)
{
    struct wb_buf *out = &call->reply->body;
    struct cdx_query *q = &job->query;
    struct cdx_ids ids = WB_VEC_INIT;
    int err = find_pages(call, job, &ids);

    if (err == 0)
        err = cdx_rows_read(call->worker->store, ids.items, ids.count, q, &job->rows);
    wb_vec_release(&ids);
    if (err == 0 && q->last && job->rows.rows.count)
        err = cut_to_last(job);
    if (err == 0 && q->sort == CDX_CLOSEST && job->rows.rows.count)
        qsort_r(job->rows.rows.items, job->rows.rows.count, sizeof(struct cdx_row), by_distance, &q->closest_ms);
    job->walk.reverse = q->sort == CDX_REVERSE;
    job->walk.chunk = 0;
    if (err == 0 && q->paged && q->page > 0)
        err = beyond(job, 1);
    if (q->paged && q->page > 0)
        wb_vec_clear(&job->rows.rows);
    if (err == 0 && q->output == CDX_LINK)
        err = wb_memento_origin(call, &job->origin);
    if (err == 0)
        err = cdx_add_head(job, out);
    if (err == 0)
        err = add_rows(job, out);
    if (err == 0)
        err = cdx_add_foot(job, out);
    return err < 0 ? err : say_missing(call, job);
}

/* ---- many URLs ----------------------------------------------------------------------------------- */

/* Writes lines until there are enough for a piece, or all. */
static int write_piece(struct cdx_job *job, struct wb_store *store, struct wb_buf *out)
{
    WB_CHECK(job->magic == CDX_JOB_MAGIC);
    WB_CHECK(!job->over);
    int err = job->begun ? 0 : cdx_add_head(job, out);

    job->begun = true;
    for (size_t urls = 0; err == 0 && !job->over && out->len < PIECE && urls < PIECE_URLS;) {
        int more = cdx_walk_next(&job->walk);
        urls += job->walk.ids.count;
        job->over = more == 0;
        if (more > 0)
            more = cdx_rows_read(store, job->walk.ids.items, job->walk.ids.count, &job->query, &job->rows);
        err = more < 0 ? more : job->over ? 0 : add_rows(job, out);
    }
    if (err < 0 || !job->over)
        return err;
    for (size_t i = job->lines.count; i-- > 0 && err == 0;)
        err = wb_buf_append_slice(out, wb_buf_slice(&job->lines.items[i]));
    return err < 0 ? err : cdx_add_foot(job, out);
}

static int next_piece(void *source, void *worker, struct wb_buf *out, unsigned *wait_ms_out)
{
    struct cdx_job *job = source;
    struct wb_serve_worker *at_work = worker;

    WB_CHECK(job->magic == CDX_JOB_MAGIC && job->own && (job->first.len == 0 || !job->over) && out->len == 0);
    WB_CHECK(at_work->magic == WB_SERVE_WORKER_MAGIC);
    WB_CHECK(pthread_equal(at_work->thread, pthread_self()));
    (void)wait_ms_out;
    if (job->first.len) {
        wb_buf_release(out);
        *out = wb_buf_take(&job->first);
        return WB_HTTP_MORE;
    }
    if (job->over)
        return WB_HTTP_END;
    int err = write_piece(job, at_work->store, out);
    return err < 0 ? err : WB_HTTP_MORE;
}

static void close_source(void *source)
{
    job_free(source);
}

static const struct wb_http_source cdx_source = {next_piece, close_source};

static uint64_t pages_of(const struct cdx_job *job, uint64_t urls)
{
    WB_CHECK(job->query.page_size > 0);
    return (urls + job->query.page_size - 1) / job->query.page_size;
}

static int answer_pages(struct wb_call *call, const struct cdx_job *job, uint64_t urls)
{
    uint64_t pages = pages_of(job, urls);
    struct wb_json j;

    if (job->query.ia)
        return wb_buf_printf(&call->reply->body, "%" PRIu64 "\n", pages);
    wb_json_init(&j, &call->reply->body);
    wb_json_object(&j);
    wb_json_field_u64(&j, "pages", pages);
    wb_json_field_u64(&j, "pageSize", job->query.page_size);
    wb_json_field_u64(&j, "blocks", urls);
    wb_json_object_end(&j);
    return wb_json_line(&j);
}

static int begin_walk(struct cdx_job *job, struct wb_index *index)
{
    WB_CHECK(!job->begun);
    WB_CHECK(job->written == 0);
    const struct cdx_query *q = &job->query;

    cdx_walk_release(&job->walk);
    int err = cdx_walk_begin(index, q, &job->walk);
    if (err == 0 && q->paged)
        err = beyond(job, pages_of(job, cdx_walk_count(&job->walk)));
    if (err == 0 && q->paged)
        err = cdx_walk_page(&job->walk, q->page * q->page_size, q->page_size);
    return err;
}

/* An answer that does not fit into one piece needs a generation that does not change under it. */
static int keep_generation(struct wb_call *call, struct cdx_job *job)
{
    WB_CHECK(!job->own);
    WB_CHECK(job->begun);
    WB_CHECK(!job->over);
    int err = wb_index_open(call->server->options->dir, &job->own);

    if (err == 0 && wb_index_info(job->own)->generation == call->worker->generation) {
        const void *order = NULL;
        err = wb_index_fact(job->own, WB_FACT_KEYORDER, &order);
        job->walk.index = job->own;
        job->walk.order = order;
        return err;
    }
    /* There is a new one by now. Nothing has been sent yet, so everything begins again. */
    wb_buf_clear(&call->reply->body);
    job->begun = job->has_last = false;
    job->skipped = job->written = job->rows.left_out = 0;
    wb_buf_clear(&job->last_time);
    for (size_t i = 0; i < job->lines.count; i++)
        wb_buf_release(&job->lines.items[i]);
    wb_vec_clear(&job->lines);
    return err < 0 ? err : begin_walk(job, job->own);
}

/* Returns 1 if the reply has taken the job over, 0 if the answer is complete, or an error. */
static int answer_many(struct wb_call *call, struct cdx_job *job)
{
    struct wb_searcher *searcher;
    int err = wb_call_searcher(call, &searcher);

    if (err == 0)
        err = begin_walk(job, wb_searcher_index(searcher));
    if (err == 0 && job->query.show_pages)
        return answer_pages(call, job, cdx_walk_count(&job->walk));
    if (err == 0)
        err = write_piece(job, call->worker->store, &call->reply->body);
    if (err == 0 && job->over)
        return say_missing(call, job);
    if (err < 0)
        return err;
    err = keep_generation(call, job);
    if (err < 0)
        return err;
    job->first = wb_buf_take(&call->reply->body); /* a reply has a body or a source */
    WB_CHECK(!call->reply->source);
    WB_CHECK(call->reply->body.len == 0);
    call->reply->source = &cdx_source;
    call->reply->source_context = job;
    return 1;
}

static const char *type_of(const struct cdx_query *q)
{
    if (q->show_pages && !q->ia)
        return "application/json";
    if (q->output == CDX_JSON)
        return q->ia ? "application/json" : "text/x-ndjson; charset=utf-8";
    if (q->output == CDX_LINK)
        return "application/link-format";
    return cdx_is_plain(q) || q->show_pages ? "text/plain; charset=utf-8" : "text/x-cdxj; charset=utf-8";
}

void wb_handle_cdx(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct cdx_job *job = wb_alloc_zero(1, sizeof(*job));
    int err = job ? 0 : WB_E_NOMEM;

    if (err == 0) {
        job->magic = CDX_JOB_MAGIC;
        err = cdx_query_read(call, &job->query);
    }
    if (err == 0)
        wb_call_type(call, type_of(&job->query));
    if (err == 0 && job->query.match == CDX_EXACT && job->query.show_pages)
        err = answer_pages(call, job, 1);
    else if (err == 0 && job->query.match == CDX_EXACT)
        err = answer_exact(call, job);
    else if (err == 0)
        err = answer_many(call, job);
    if (err < 0)
        wb_call_fail(call, err);
    if (job && err <= 0)
        job_free(job);
}
