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
    struct wb_buf last_time; /* with collapseTime: time and status of the row before */
    struct wb_buf resume;        /* of the last row that was written */
    int64_t same_ms;             /* of the row looked at last... */
    uint64_t same;               /* ...and how many rows of its group up to it have that time; 0: a new group begins */
    struct wb_buf origin;        /* output=link: where this server is */
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
    wb_buf_release(&job->origin);
    wb_buf_release(&job->last_time);
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

/* <URI-M>; rel="memento"; datetime="..." */
static int add_link(const struct cdx_job *job, const struct cdx_row *row, struct wb_buf *out)
{
    char date[WB_DATE_HTTP_BYTES];
    int err = wb_buf_append_str(out, ",\n<");

    if (err == 0)
        err = wb_memento_address(wb_buf_slice(&job->origin), row->field[CDX_URL], row->time_ms, out);
    if (err == 0)
        err = wb_buf_append_str(out, ">; rel=\"memento\"");
    if (err < 0 || !wb_date_format_http(row->time_ms, date))
        return err;
    return wb_buf_printf(out, "; datetime=\"%.*s\"", WB_DATE_HTTP_BYTES, date);
}

/* Without output=..., the form of the dialect, or just the fields if some were asked for. */
static bool is_plain(const struct cdx_query *q)
{
    return q->output == CDX_TEXT || (q->output == CDX_DEFAULT && (q->ia || q->field_count));
}

static int add_line(struct cdx_job *job, const struct cdx_row *row, struct wb_buf *out)
{
    const struct cdx_query *q = &job->query;
    struct wb_json j;

    if (q->output == CDX_LINK)
        return add_link(job, row, out);
    if (q->output != CDX_JSON)
        return is_plain(q) ? add_fields(out, q, row) : add_cdxj(out, q, row);
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
    struct wb_slice origin = wb_buf_slice(&job->origin), url = wb_buf_slice(&job->query.url);
    struct wb_json j;

    if (job->query.output == CDX_LINK)
        return wb_buf_printf(out, "<http://%.*s>; rel=\"original\",\n<%.*s/web/http://%.*s>; rel=\"timegate\"",
                             WB_SLICE_ARG(url), WB_SLICE_ARG(origin), WB_SLICE_ARG(url));
    if (!job->query.ia || job->query.output != CDX_JSON)
        return 0;
    int err = wb_buf_append_char(out, '[');
    wb_json_init(&j, out);
    add_array(&j, &job->query, NULL);
    return err < 0 ? err : j.err;
}

/* Says how many captures are missing because they cannot be read. */
static int add_missing(struct cdx_job *job, struct wb_buf *out)
{
    const struct cdx_query *q = &job->query;
    struct wb_buf text = WB_BUF_INIT;
    struct wb_json j;

    if (job->rows.left_out == 0 || q->output == CDX_LINK)
        return 0;
    int err = wb_buf_printf(&text, "incomplete: %" PRIu64 " captures could not be read: %.*s", job->rows.left_out,
                            WB_SLICE_ARG(wb_buf_slice(&job->rows.lost)));
    if (err == 0 && is_plain(q)) {
        err = wb_buf_printf(out, "# %.*s\n", WB_SLICE_ARG(wb_buf_slice(&text)));
    } else if (err == 0 && q->output == CDX_JSON && q->ia) {
        err = wb_buf_append_str(out, ",\n[],\n[");
        wb_json_init(&j, out);
        wb_json_slice(&j, wb_buf_slice(&text));
        err = err < 0 ? err : j.err < 0 ? j.err : wb_buf_append_char(out, ']');
    } else if (err == 0) {
        err = q->output == CDX_JSON ? 0 : wb_buf_append_str(out, "!incomplete 0 ");
        wb_json_init(&j, out);
        wb_json_object(&j);
        wb_json_field_slice(&j, "error", wb_buf_slice(&text));
        wb_json_field_u64(&j, "left_out", job->rows.left_out);
        wb_json_object_end(&j);
        err = err < 0 ? err : wb_json_line(&j);
    }
    wb_buf_release(&text);
    return err;
}

/* The resume key comes after an empty line, or as the last row. */
static int add_foot(struct cdx_job *job, struct wb_buf *out)
{
    const struct cdx_query *q = &job->query;
    bool resume = q->show_resume && job->more;
    struct wb_slice key = wb_buf_slice(&job->resume);
    struct wb_json j;
    int err = add_missing(job, out);

    if (err == 0 && q->output == CDX_LINK)
        return wb_buf_append_char(out, '\n');
    if (err == 0 && resume && q->output != CDX_JSON)
        err = wb_buf_printf(out, "\n%.*s\n", WB_SLICE_ARG(key));
    if (err < 0)
        return err;
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
    return err < 0 ? err : add_line(job, row, out);
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
        err = add_head(job, out);
    if (err == 0)
        err = add_rows(job, out);
    if (err == 0)
        err = add_foot(job, out);
    return err < 0 ? err : say_missing(call, job);
}

/* ---- many URLs ----------------------------------------------------------------------------------- */

/* Writes lines until there are enough for a piece, or all. */
static int write_piece(struct cdx_job *job, struct wb_store *store, struct wb_buf *out)
{
    int err = job->begun ? 0 : add_head(job, out);

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

static uint64_t pages_of(const struct cdx_job *job, uint64_t urls)
{
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
    call->reply->source = &cdx_source;
    call->reply->source_context = job;
    return 1;
}

void wb_handle_cdx(struct wb_call *call)
{
    struct cdx_job *job = wb_alloc_zero(1, sizeof(*job));
    int err = job ? cdx_query_read(call, &job->query) : WB_E_NOMEM;

    if (err == 0) {
        enum cdx_output output = job->query.output;
        wb_call_type(call, output == CDX_JSON && job->query.ia ? "application/json"
                           : output == CDX_JSON                ? "text/x-ndjson; charset=utf-8"
                           : output == CDX_LINK                ? "application/link-format"
                                                               : "text/plain; charset=utf-8");
    }
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
