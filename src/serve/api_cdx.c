/*
 * api_cdx.c - GET /cdx and /cdx/search/cdx: one line for each capture, in the order of URL and time.
 *
 *   /cdx              com,example)/ 20260102030405 {"url":"http://example.com/","mime":"text/html",...}     as pywb
 *   /cdx/search/cdx   com,example)/ 20260102030405 http://example.com/ text/html 200 DIGEST 1234            as the IA
 *
 * With output=json: an object per line there, and here an array of arrays whose first one has the names of fields.
 * A small answer is made at once. A large one is made piece by piece, as the client takes it; it keeps its generation
 * open for that long.
 */
#include "base/error.h"
#include "base/mem.h"
#include "serve/cdx_server.h"
#include "warc/warc.h"

#include <inttypes.h>
#include <stdlib.h>

/* A piece ends after so many bytes or URLs, so that a filter that lets nothing through does not keep a worker. */
enum { PIECE = 256 << 10, PIECE_URLS = 1000 };

/* An answer that is being written. */
struct cdx_job {
    struct cdx_query query;
    struct cdx_walk walk;
    struct wb_index *own; /* that the walk uses; NULL: the worker's */
    struct cdx_rows rows;
    struct wb_buf first; /* what was written before it was known that there is more than a piece */
    uint64_t skipped, written;
    bool begun, over;
    bool more;                             /* the limit was reached, and there is more */
    struct wb_buf last[CDX_COLLAPSES_MAX]; /* values of the row before */
    bool has_last;
    struct wb_buf resume;        /* of the last row that was written */
    WB_VEC(struct wb_buf) lines; /* with limit=-N: the lines, from the last one backwards */
};

static void job_free(struct cdx_job *job)
{
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
    wb_free(job);
}

/* ---- lines --------------------------------------------------------------------------------------- */

/* The fields that are shown, in their order. */
static size_t shown(const struct cdx_query *q, const enum cdx_field **fields_out)
{
    static const enum cdx_field all[] = {CDX_URLKEY, CDX_TIMESTAMP, CDX_URL,    CDX_MIME,
                                         CDX_STATUS, CDX_DIGEST,    CDX_LENGTH, CDX_REDIRECT};

    *fields_out = q->field_count ? q->fields : all;
    if (q->field_count)
        return q->field_count;
    return q->ia ? CDX_LENGTH + 1 : CDX_FIELDS;
}

static void add_object(struct wb_json *j, const struct cdx_query *q, const struct cdx_row *row, bool keys)
{
    const enum cdx_field *fields;
    size_t count = shown(q, &fields);

    wb_json_object(j);
    for (size_t i = 0; i < count; i++)
        if ((keys || fields[i] > CDX_TIMESTAMP) && row->field[fields[i]].len)
            wb_json_field_slice(j, cdx_field_name(fields[i], false), row->field[fields[i]]);
    wb_json_object_end(j);
}

static void add_array(struct wb_json *j, const struct cdx_query *q, const struct cdx_row *row)
{
    const enum cdx_field *fields;
    size_t count = shown(q, &fields);

    wb_json_array(j);
    for (size_t i = 0; i < count; i++)
        if (row)
            wb_json_slice(j, row->field[fields[i]].len ? row->field[fields[i]] : WB_SLICE_LIT("-"));
        else
            wb_json_str(j, cdx_field_name(fields[i], true));
    wb_json_array_end(j);
}

/* Fields with a blank between them. A blank inside a field would be taken for the next one. */
static int add_fields(struct wb_buf *out, const struct cdx_query *q, const struct cdx_row *row)
{
    const enum cdx_field *fields;
    size_t count = shown(q, &fields);
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++) {
        struct wb_slice value = row->field[fields[i]];
        err = i ? wb_buf_append_char(out, ' ') : 0;
        if (err == 0 && value.len == 0)
            err = wb_buf_append_char(out, '-');
        for (size_t k = 0; k < value.len && err == 0; k++)
            err = (unsigned char)value.ptr[k] <= ' ' ? wb_buf_append_str(out, "%20")
                                                     : wb_buf_append_char(out, value.ptr[k]);
    }
    return err < 0 ? err : wb_buf_append_char(out, '\n');
}

static int add_cdxj(struct wb_buf *out, const struct cdx_query *q, const struct cdx_row *row)
{
    struct wb_json j;
    int err =
        wb_buf_printf(out, "%.*s %.*s ", WB_SLICE_ARG(row->field[CDX_URLKEY]), WB_SLICE_ARG(row->field[CDX_TIMESTAMP]));

    wb_json_init(&j, out);
    add_object(&j, q, row, false);
    return err < 0 ? err : wb_json_line(&j);
}

static int add_line(struct cdx_job *job, const struct cdx_row *row, struct wb_buf *out)
{
    const struct cdx_query *q = &job->query;
    struct wb_json j;

    if (q->output == CDX_TEXT)
        return q->ia || q->field_count ? add_fields(out, q, row) : add_cdxj(out, q, row);
    wb_json_init(&j, out);
    if (!q->ia) {
        add_object(&j, q, row, true);
        return wb_json_line(&j);
    }
    int err = wb_buf_append_str(out, ",\n");
    add_array(&j, q, row);
    return err < 0 ? err : j.err;
}

static int add_head(struct cdx_job *job, struct wb_buf *out)
{
    struct wb_json j;

    if (!job->query.ia || job->query.output != CDX_JSON)
        return 0;
    int err = wb_buf_append_char(out, '[');
    wb_json_init(&j, out);
    add_array(&j, &job->query, NULL);
    return err < 0 ? err : j.err;
}

/* The resume key comes after an empty line, or as the last row. */
static int add_foot(struct cdx_job *job, struct wb_buf *out)
{
    const struct cdx_query *q = &job->query;
    bool resume = q->show_resume && job->more;
    struct wb_slice key = wb_buf_slice(&job->resume);
    struct wb_json j;
    int err = 0;

    if (resume && q->output == CDX_TEXT)
        err = wb_buf_printf(out, "\n%.*s\n", WB_SLICE_ARG(key));
    wb_json_init(&j, out);
    if (resume && q->output == CDX_JSON && !q->ia) {
        wb_json_object(&j);
        wb_json_field_slice(&j, "resumeKey", key);
        wb_json_object_end(&j);
        err = wb_json_line(&j);
    } else if (resume && q->output == CDX_JSON) {
        err = wb_buf_append_str(out, ",\n[],\n[");
        wb_json_slice(&j, key);
        err = err < 0 ? err : j.err < 0 ? j.err : wb_buf_append_char(out, ']');
    }
    if (err == 0 && q->ia && q->output == CDX_JSON)
        err = wb_buf_append_str(out, "]\n");
    return err;
}

/* ---- rows ---------------------------------------------------------------------------------------- */

static struct wb_slice prefix_of(struct wb_slice value, size_t len)
{
    return value.len > len ? wb_slice(value.ptr, len) : value;
}

/* Returns 1 if the row is the first of a run, 0 if not, or an error. */
static int begins_run(struct cdx_job *job, const struct cdx_row *row)
{
    const struct cdx_query *q = &job->query;
    bool same = job->has_last && q->collapse_count > 0;
    int err = 0;

    for (size_t i = 0; i < q->collapse_count && err == 0; i++) {
        struct wb_slice value = prefix_of(row->field[q->collapses[i].field], q->collapses[i].len);
        same = same && wb_slice_equal(value, wb_buf_slice(&job->last[i]));
        wb_buf_clear(&job->last[i]);
        err = wb_buf_append_slice(&job->last[i], value);
    }
    job->has_last = true;
    return err < 0 ? err : !same;
}

/* Whether the answer before this one had the row already. */
static bool is_before(const struct cdx_query *q, const struct cdx_row *row)
{
    return q->after_key.len && wb_slice_equal(row->field[CDX_URLKEY], wb_buf_slice(&q->after_key)) &&
           row->time_ms <= q->after_ms;
}

static int keep_line(struct cdx_job *job, const struct cdx_row *row)
{
    struct wb_buf line = WB_BUF_INIT;
    int err = add_line(job, row, &line);

    if (err == 0)
        err = wb_vec_push(&job->lines, line);
    if (err < 0)
        wb_buf_release(&line);
    return err;
}

static int add_row(struct cdx_job *job, const struct cdx_row *row, struct wb_buf *out)
{
    const struct cdx_query *q = &job->query;

    if (is_before(q, row))
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
    wb_buf_clear(&job->resume);
    /* With milliseconds, because a page may have several captures in one second. */
    int err = wb_buf_printf(&job->resume, "%.*s %.*s%03d", WB_SLICE_ARG(row->field[CDX_URLKEY]),
                            WB_SLICE_ARG(row->field[CDX_TIMESTAMP]), (int)(((row->time_ms % 1000) + 1000) % 1000));
    return err < 0 ? err : add_line(job, row, out);
}

/* All rows of a URL, backwards if that is the order. */
static int add_rows(struct cdx_job *job, struct wb_buf *out)
{
    size_t count = job->rows.rows.count;
    int err = 0;

    for (size_t i = 0; i < count && err == 0 && !job->over; i++)
        err = add_row(job, &job->rows.rows.items[job->walk.reverse ? count - 1 - i : i], out);
    return err;
}

/* ---- one URL ------------------------------------------------------------------------------------- */

static int by_distance(const void *a, const void *b, void *context)
{
    const struct cdx_row *x = a, *y = b;
    int64_t closest = *(int64_t *)context;
    int64_t dx = x->time_ms > closest ? x->time_ms - closest : closest - x->time_ms;
    int64_t dy = y->time_ms > closest ? y->time_ms - closest : closest - y->time_ms;

    return dx != dy ? (dx < dy ? -1 : 1) : (x->time_ms > y->time_ms) - (x->time_ms < y->time_ms);
}

/* The last N rows after collapsing. */
static int cut_to_last(struct cdx_job *job)
{
    size_t kept = 0;

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

static int answer_exact(struct cdx_job *job, struct wb_store *store, struct wb_buf *out)
{
    struct cdx_query *q = &job->query;
    int err = cdx_rows_read(store, q->id, q, &job->rows);

    if (err == 0 && q->last && job->rows.rows.count)
        err = cut_to_last(job);
    if (err == 0 && q->sort == CDX_CLOSEST && job->rows.rows.count)
        qsort_r(job->rows.rows.items, job->rows.rows.count, sizeof(struct cdx_row), by_distance, &q->closest_ms);
    job->walk.reverse = q->sort == CDX_REVERSE;
    if (q->paged && q->page > 0)
        wb_vec_clear(&job->rows.rows);
    if (err == 0)
        err = add_head(job, out);
    if (err == 0)
        err = add_rows(job, out);
    return err < 0 ? err : add_foot(job, out);
}

/* ---- many URLs ----------------------------------------------------------------------------------- */

/* Writes lines until there are enough for a piece, or all. */
static int write_piece(struct cdx_job *job, struct wb_store *store, struct wb_buf *out)
{
    const uint8_t *ids;
    uint32_t docid;
    int err = wb_index_fact(job->walk.index, WB_FACT_ID, (const void **)&ids);

    if (err == 0 && !job->begun)
        err = add_head(job, out);
    job->begun = true;
    for (size_t urls = 0; err == 0 && !job->over && out->len < PIECE && urls < PIECE_URLS; urls++) {
        if (!cdx_walk_next(&job->walk, &docid)) {
            job->over = true;
            break;
        }
        err = cdx_rows_read(store, wb_pageid_get(ids + (size_t)docid * WB_PAGEID_BYTES), &job->query, &job->rows);
        if (err == 0)
            err = add_rows(job, out);
    }
    if (err < 0 || !job->over)
        return err;
    for (size_t i = job->lines.count; i-- > 0 && err == 0;)
        err = wb_buf_append_slice(out, wb_buf_slice(&job->lines.items[i]));
    return err < 0 ? err : add_foot(job, out);
}

static int next_piece(void *source, void *worker, struct wb_buf *out, unsigned *wait_ms_out)
{
    struct cdx_job *job = source;

    (void)wait_ms_out;
    if (job->first.len) {
        wb_buf_release(out);
        *out = wb_buf_take(&job->first);
        return WB_HTTP_MORE;
    }
    if (job->over)
        return WB_HTTP_END;
    int err = write_piece(job, ((struct wb_serve_worker *)worker)->store, out);
    return err < 0 ? err : WB_HTTP_MORE;
}

static void close_source(void *source)
{
    job_free(source);
}

static const struct wb_http_source cdx_source = {next_piece, close_source};

static int answer_pages(struct wb_call *call, const struct cdx_job *job, uint64_t urls)
{
    uint64_t pages = (urls + job->query.page_size - 1) / job->query.page_size;
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
    const struct cdx_query *q = &job->query;

    cdx_walk_release(&job->walk);
    int err = cdx_walk_begin(index, q, &job->walk);
    if (err == 0 && q->paged) {
        cdx_walk_skip(&job->walk, q->page * q->page_size);
        job->walk.left = q->page_size;
    }
    return err;
}

/* An answer that does not fit into one piece needs a generation that does not change under it. */
static int keep_generation(struct wb_call *call, struct cdx_job *job)
{
    int err = wb_index_open(call->server->options->dir, &job->own);

    if (err == 0 && wb_index_info(job->own)->generation == call->worker->generation) {
        job->walk.index = job->own;
        return 0;
    }
    /* There is a new one by now. Nothing has been sent yet, so everything begins again. */
    wb_buf_clear(&call->reply->body);
    job->begun = job->has_last = false;
    job->skipped = job->written = 0;
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
    if (err < 0 || job->over)
        return err;
    err = keep_generation(call, job);
    if (err < 0)
        return err;
    job->first = wb_buf_take(&call->reply->body); /* a reply has a body or a source */
    call->reply->source = &cdx_source;
    call->reply->source_context = job;
    return 1;
}

void wb_handle_cdx(struct wb_call *call)
{
    struct cdx_job *job = wb_alloc_zero(1, sizeof(*job));
    int err = job ? cdx_query_read(call, &job->query) : WB_E_NOMEM;

    if (err == 0) {
        bool json = job->query.output == CDX_JSON && job->query.ia;
        wb_call_type(call, json                            ? "application/json"
                           : job->query.output == CDX_JSON ? "text/x-ndjson; charset=utf-8"
                                                           : "text/plain; charset=utf-8");
    }
    if (err == 0 && job->query.match == CDX_EXACT && job->query.show_pages)
        err = answer_pages(call, job, 1);
    else if (err == 0 && job->query.match == CDX_EXACT)
        err = answer_exact(job, call->worker->store, &call->reply->body);
    else if (err == 0)
        err = answer_many(call, job);
    if (err < 0)
        wb_call_fail(call, err);
    if (job && err <= 0)
        job_free(job);
}
