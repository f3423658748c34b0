/*
 * cdx_lines.c - captures as lines of the CDX API, in the forms of pywb and of the Internet Archive, and what comes
 * before and after them. It never decides which captures there are.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "serve/cdx_server.h"
#include "serve/memento.h"

#include <inttypes.h>

/* The fields that are shown, in their order. */
static size_t shown(const struct cdx_query *q, const enum cdx_field **fields_out)
{
    static const enum cdx_field all[] = {CDX_URLKEY,      CDX_TIMESTAMP,   CDX_URL,          CDX_MIME,
                                         CDX_STATUS,      CDX_DIGEST,      CDX_LENGTH,       CDX_REDIRECT,
                                         CDX_ORIG_LENGTH, CDX_ORIG_OFFSET, CDX_ORIG_FILENAME};

    WB_CHECK(q->field_count <= CDX_FIELDS);
    WB_CHECK(!(q->ia && q->resolve));
    *fields_out = q->field_count ? q->fields : all;
    if (q->field_count)
        return q->field_count;
    return q->ia ? CDX_LENGTH + 1 : q->resolve ? CDX_FIELDS : CDX_REDIRECT + 1;
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
    WB_CHECK(job->query.match == CDX_EXACT);
    WB_CHECK(job->origin.len > 0);
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

/* Without output=..., the form of the dialect; or just the fields if some were asked for with fl, the older name. */
bool cdx_is_plain(const struct cdx_query *q)
{
    return q->output == CDX_TEXT || (q->output == CDX_DEFAULT && (q->ia || q->plain_fields));
}

int cdx_add_line(struct cdx_job *job, const struct cdx_row *row, struct wb_buf *out)
{
    WB_CHECK(job->magic == CDX_JOB_MAGIC);
    const struct cdx_query *q = &job->query;
    struct wb_json j;

    if (q->output == CDX_LINK)
        return add_link(job, row, out);
    if (q->output != CDX_JSON)
        return cdx_is_plain(q) ? add_fields(out, q, row) : add_cdxj(out, q, row);
    wb_json_init(&j, out);
    if (!q->ia) {
        add_object(&j, q, row, true);
        return wb_json_line(&j);
    }
    int err = wb_buf_append_str(out, ",\n");
    add_array(&j, q, row);
    return err < 0 ? err : j.err;
}

int cdx_add_head(struct cdx_job *job, struct wb_buf *out)
{
    WB_CHECK(job->magic == CDX_JOB_MAGIC);
    WB_CHECK(job->written == 0);
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
    if (err == 0 && cdx_is_plain(q)) {
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
int cdx_add_foot(struct cdx_job *job, struct wb_buf *out)
{
    WB_CHECK(job->magic == CDX_JOB_MAGIC && (job->over || job->query.match == CDX_EXACT) && (job->over || !job->more));
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
