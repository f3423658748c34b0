/*
 * cdx_params.c - the parameters of the CDX API. Both dialects are understood at both addresses; the output differs.
 * What is not supported is refused by name, never ignored.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "serve/cdx_server.h"
#include "url/url.h"

#include <string.h>

#define PAGE_SIZE_DEFAULT 2000
#define PAGE_SIZE_MAX 10000
#define LAST_MAX 100000

const char *cdx_field_name(enum cdx_field field, bool ia)
{
    static const char *const names[CDX_FIELDS][2] = {
        {"urlkey", "urlkey"},     {"timestamp", "timestamp"}, {"url", "original"},  {"mime", "mimetype"},
        {"status", "statuscode"}, {"digest", "digest"},       {"length", "length"}, {"redirect", "redirect"},
        {"orig.length", ""},      {"orig.offset", ""},        {"orig.filename", ""}};

    WB_CHECK(field < CDX_FIELDS && (!ia || field < CDX_ORIG_LENGTH)); /* the last ones exist in pywb only */
    return names[field][ia];
}

bool cdx_field_find(struct wb_slice name, enum cdx_field *field_out)
{
    for (*field_out = 0; *field_out < CDX_ORIG_LENGTH; (*field_out)++)
        if (wb_slice_equal(name, wb_slice_str(cdx_field_name(*field_out, false))) ||
            wb_slice_equal(name, wb_slice_str(cdx_field_name(*field_out, true))))
            return true;
    return false;
}

/* The places of records in files are known to pywb and the Internet Archive, and clients ask for them. */
int cdx_field_unknown(const char *param, struct wb_slice name)
{
    bool place = wb_slice_equal(name, WB_SLICE_LIT("filename")) || wb_slice_equal(name, WB_SLICE_LIT("offset"));

    return wb_fail(WB_E_INVALID, "%s: there is no field %.*s%s", param, WB_SLICE_ARG(name),
                   place ? ", because captures are not kept as records of files here" : "");
}

void cdx_query_release(struct cdx_query *query)
{
    WB_CHECK(query->filter_count <= CDX_FILTERS_MAX);
    for (size_t i = 0; i < query->filter_count; i++)
        cdx_filter_release(&query->filters[i]);
    wb_arena_release(&query->texts);
    wb_buf_release(&query->url);
    wb_buf_release(&query->urlkey);
    wb_buf_release(&query->after_key);
}

/* ---- the URL ------------------------------------------------------------------------------------- */

static bool has_scheme(struct wb_slice url)
{
    return wb_slice_starts(url, WB_SLICE_LIT("http://")) || wb_slice_starts(url, WB_SLICE_LIT("https://"));
}

/* "*.host" means a domain and "prefix*" a prefix, unless matchType says something. */
static int read_match(struct wb_call *call, struct wb_slice *url, struct cdx_query *q)
{
    static const char *const words[] = {"exact", "prefix", "host", "domain"};
    struct wb_slice match = wb_http_param(call->request, "matchType");

    if (!match.ptr && wb_slice_starts(*url, WB_SLICE_LIT("*."))) {
        *url = wb_slice(url->ptr + 2, url->len - 2);
        q->match = CDX_DOMAIN;
    } else if (!match.ptr && url->len && url->ptr[url->len - 1] == '*') {
        url->len--;
        q->match = CDX_PREFIX;
    }
    if (!match.ptr)
        return 0;
    for (q->match = CDX_EXACT; q->match <= CDX_DOMAIN; q->match++)
        if (wb_slice_equal(match, wb_slice_str(words[q->match])))
            return 0;
    return wb_fail(WB_E_INVALID, "matchType=%.*s: there are exact, prefix, host and domain", WB_SLICE_ARG(match));
}

/* A slash or a question mark at the end is not part of a URL key, but of a prefix it is. */
static int restore_end(struct wb_slice url, struct wb_buf *urlkey)
{
    char last = url.len ? url.ptr[url.len - 1] : 0;

    if ((last == '/' || last == '?') && urlkey->len && urlkey->ptr[urlkey->len - 1] != last)
        return wb_buf_append_char(urlkey, last);
    return 0;
}

int cdx_query_url(struct wb_call *call, struct cdx_query *q)
{
    struct wb_buf text = WB_BUF_INIT;
    struct wb_url parsed = WB_URL_INIT;
    struct wb_slice url;

    WB_CHECK(call->magic == WB_CALL_MAGIC);
    WB_CHECK(q->match == CDX_EXACT);
    WB_CHECK(q->url.len == 0 && q->urlkey.len == 0);
    int err = wb_call_required(call, "url", &url);
    if (err == 0)
        err = read_match(call, &url, q);
    if (err == 0 && !has_scheme(url))
        err = wb_buf_append_str(&text, "http://");
    if (err == 0)
        err = wb_buf_append_slice(&text, url);
    if (err == 0)
        err = wb_url_parse(wb_buf_slice(&text), NULL, &parsed);
    if (err == 0)
        err = wb_url_key(&parsed, &q->url);
    if (err == 0)
        err = wb_urlkey_of_key(wb_buf_slice(&q->url), &q->urlkey);
    if (err == 0 && q->match == CDX_PREFIX)
        err = restore_end(url, &q->urlkey);
    q->has_port = wb_url_port(&parsed).len > 0;
    wb_url_release(&parsed);
    wb_buf_release(&text);
    return err;
}

/* ---- times, fields, order ------------------------------------------------------------------------ */

/* 1 to 14 digits; what is missing has its lowest value, or its highest if it is the end of a span. */
static int read_time(struct wb_call *call, const char *name, bool end, int64_t *time_out)
{
    struct wb_slice text = wb_http_param(call->request, name);
    char low[] = "00010101000000";

    if (!text.ptr)
        return 0;
    if (text.len >= 1 && text.len <= 14) {
        memcpy(low, text.ptr, text.len);
        if (end ? wb_date_parse_digits_end(text, time_out) : wb_date_parse_digits(wb_slice(low, 14), time_out))
            return 0;
    }
    return wb_fail(WB_E_INVALID, "%s=%.*s: write 1 to 14 digits, YYYYMMDDhhmmss", name, WB_SLICE_ARG(text));
}

static int read_limit(struct wb_call *call, struct cdx_query *q)
{
    struct wb_slice text = wb_http_param(call->request, "limit");

    q->limit = UINT64_MAX;
    if (text.ptr) {
        q->last = text.len && text.ptr[0] == '-';
        struct wb_slice digits = q->last ? wb_slice(text.ptr + 1, text.len - 1) : text;
        if (!wb_slice_to_u64(digits, &q->limit))
            return wb_fail(WB_E_INVALID, "limit=%.*s is not a number", WB_SLICE_ARG(text));
    }
    return wb_call_number(call, "offset", 0, UINT64_MAX, &q->offset);
}

static int find_field(const char *param, struct wb_slice name, enum cdx_field *field_out)
{
    return cdx_field_find(name, field_out) ? 0 : cdx_field_unknown(param, name);
}

/* A field to be shown. */
static int add_field(struct cdx_query *q, const char *param, struct wb_slice name)
{
    WB_CHECK(q->field_count <= CDX_FIELDS);
    enum cdx_field *field = &q->fields[q->field_count];

    if (q->field_count == CDX_FIELDS)
        return wb_fail(WB_E_INVALID, "%s: too many fields", param);
    q->field_count++;
    for (*field = CDX_ORIG_LENGTH; q->resolve && *field < CDX_FIELDS; (*field)++)
        if (wb_slice_equal(name, wb_slice_str(cdx_field_name(*field, false))))
            return 0;
    return find_field(param, name, field);
}

static int read_fields(struct wb_call *call, struct cdx_query *q)
{
    bool fl = wb_http_param(call->request, "fl").ptr != NULL;
    const char *name = fl ? "fl" : "fields";
    struct wb_slice rest = wb_http_param(call->request, name);
    int err = q->ia ? 0 : wb_call_flag(call, "resolveRevisits", &q->resolve);

    q->plain_fields = fl;
    while (rest.len && err == 0) {
        const char *comma = memchr(rest.ptr, ',', rest.len);
        size_t len = comma ? (size_t)(comma - rest.ptr) : rest.len;
        err = add_field(q, name, wb_slice(rest.ptr, len));
        rest = comma ? wb_slice(comma + 1, rest.len - len - 1) : WB_SLICE_EMPTY;
    }
    return err;
}

/* closest=TIME alone means sort=closest, as pywb has it, and reverse=true is sort=reverse. */
static int read_sort(struct wb_call *call, struct cdx_query *q)
{
    struct wb_slice sort = wb_http_param(call->request, "sort");
    bool closest = wb_http_param(call->request, "closest").len > 0, reverse = false;
    int err = read_time(call, "closest", false, &q->closest_ms);

    if (err == 0)
        err = wb_call_flag(call, "reverse", &reverse);
    if (err < 0)
        return err;
    if (wb_slice_equal(sort, WB_SLICE_LIT("reverse")))
        q->sort = CDX_REVERSE;
    else if (wb_slice_equal(sort, WB_SLICE_LIT("closest")) || (closest && !sort.len))
        q->sort = CDX_CLOSEST;
    else if (sort.len && !wb_slice_equal(sort, WB_SLICE_LIT("default")))
        return wb_fail(WB_E_INVALID, "sort=%.*s: there are default, reverse and closest", WB_SLICE_ARG(sort));
    if (closest != (q->sort == CDX_CLOSEST))
        return wb_fail(WB_E_INVALID, "sort=closest and closest=TIMESTAMP go together");
    if (reverse && q->sort == CDX_CLOSEST)
        return wb_fail(WB_E_INVALID, "reverse: not together with closest");
    if (reverse)
        q->sort = CDX_REVERSE;
    if (q->sort == CDX_CLOSEST && q->match != CDX_EXACT)
        return wb_fail(WB_E_INVALID, "sort=closest is possible for one URL only");
    return 0;
}

static int read_output(struct wb_call *call, struct cdx_query *q)
{
    static const char *const words[] = {"", "cdxj", "text", "json", "link"};
    static const char *const no_links[] = {"fl", "fields", "showResumeKey", "resumeKey"};
    struct wb_slice output = wb_http_param(call->request, "output");

    for (q->output = CDX_DEFAULT; q->output <= CDX_LINK; q->output++)
        if (wb_slice_equal(output, wb_slice_str(words[q->output])))
            break;
    if (q->output > CDX_LINK || (q->output == CDX_LINK && q->ia))
        return wb_fail(WB_E_INVALID, "output=%.*s: there are text, cdxj%s and json", WB_SLICE_ARG(output),
                       q->ia ? "" : ", link");
    if (q->output == CDX_LINK && q->match != CDX_EXACT)
        return wb_fail(WB_E_INVALID, "output=link is possible for one URL only");
    for (size_t i = 0; i < sizeof no_links / sizeof *no_links && q->output == CDX_LINK; i++)
        if (wb_http_param(call->request, no_links[i]).ptr)
            return wb_fail(WB_E_INVALID, "%s: not together with output=link", no_links[i]);
    return 0;
}

/* ---- parameters that come several times ---------------------------------------------------------- */

static int add_filter(struct wb_slice value, struct cdx_query *q)
{
    WB_CHECK(q->filter_count <= CDX_FILTERS_MAX);
    if (q->filter_count == CDX_FILTERS_MAX)
        return wb_fail(WB_E_INVALID, "there are more than %d filters", CDX_FILTERS_MAX);
    int err = wb_arena_copy(&q->texts, value, &value);
    return err < 0 ? err : cdx_filter_read(value, q->ia, &q->filters[q->filter_count++]);
}

/* "field" or "field:N": rows that agree in the first N characters are one. */
static int add_collapse(struct wb_slice value, struct cdx_query *q)
{
    WB_CHECK(q->collapse_count <= CDX_COLLAPSES_MAX);
    const char *colon = value.len ? memchr(value.ptr, ':', value.len) : NULL;
    size_t name = colon ? (size_t)(colon - value.ptr) : value.len;
    uint64_t len = SIZE_MAX;

    if (q->collapse_count == CDX_COLLAPSES_MAX)
        return wb_fail(WB_E_INVALID, "there are more than %d collapses", CDX_COLLAPSES_MAX);
    if (colon && (!wb_slice_to_u64(wb_slice(colon + 1, value.len - name - 1), &len) || len == 0))
        return wb_fail(WB_E_INVALID, "collapse=%.*s: write FIELD or FIELD:N", WB_SLICE_ARG(value));
    q->collapses[q->collapse_count].len = len;
    return find_field("collapse", wb_slice(value.ptr, name), &q->collapses[q->collapse_count++].field);
}

static int read_repeated(struct wb_call *call, struct cdx_query *q)
{
    const struct wb_http_request *request = call->request;
    int err = 0;

    for (size_t i = 0; i < request->param_count && err == 0; i++) {
        if (wb_slice_equal(request->params[i].name, WB_SLICE_LIT("filter")))
            err = add_filter(request->params[i].value, q);
        else if (wb_slice_equal(request->params[i].name, WB_SLICE_LIT("collapse")))
            err = add_collapse(request->params[i].value, q);
    }
    return err;
}

/* ---- pages --------------------------------------------------------------------------------------- */

/* Takes a mark and a number from the end of *text, if they are there. */
static bool take_number(struct wb_slice *text, char mark, uint64_t *value_out)
{
    const char *at = text->len ? memrchr(text->ptr, mark, text->len) : NULL;
    size_t len = at ? (size_t)(at - text->ptr) : 0;

    if (!at)
        return true;
    bool good = wb_slice_to_u64(wb_slice(at + 1, text->len - len - 1), value_out) && *value_out <= UINT32_MAX;
    text->len = len;
    return good;
}

/*
 * "urlkey timestamp", as the answer before gave it: 14 digits and three for the milliseconds. Then ".N" if it was the
 * Nth capture of that time, and "~N" in the Nth further group of a key that has very many URLs.
 */
static int read_resume(struct wb_call *call, struct cdx_query *q)
{
    struct wb_slice key = wb_http_param(call->request, "resumeKey");
    const char *blank = key.len ? memrchr(key.ptr, ' ', key.len) : NULL;
    uint64_t ms = 0, chunk = 0;

    if (!key.ptr)
        return 0;
    size_t len = blank ? (size_t)(blank - key.ptr) : 0;
    struct wb_slice time = blank ? wb_slice(blank + 1, key.len - len - 1) : WB_SLICE_EMPTY;
    q->after_same = 1;
    if (!take_number(&time, '~', &chunk) || !take_number(&time, '.', &q->after_same) || time.len != 17 ||
        !wb_date_parse_digits(wb_slice(time.ptr, 14), &q->after_ms) ||
        !wb_slice_to_u64(wb_slice(time.ptr + 14, 3), &ms))
        return wb_fail(WB_E_INVALID, "this resumeKey is not one that this server made");
    q->after_ms += (int64_t)ms;
    q->after_chunk = (uint32_t)chunk;
    return wb_buf_append(&q->after_key, key.ptr, len);
}

static int read_paging(struct wb_call *call, struct cdx_query *q)
{
    int err = wb_call_flag(call, "showNumPages", &q->show_pages);

    if (err == 0)
        err = wb_call_flag(call, "showResumeKey", &q->show_resume);
    if (err == 0)
        err = wb_call_number(call, "pageSize", PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, &q->page_size);
    if (err == 0 && q->page_size == 0)
        err = wb_fail(WB_E_INVALID, "pageSize=0: a page has at least one URL");
    q->paged = wb_http_param(call->request, "page").ptr != NULL;
    if (err == 0 && !q->paged && !q->show_pages && wb_http_param(call->request, "pageSize").ptr)
        err = wb_fail(WB_E_INVALID, "pageSize: only together with page or showNumPages");
    if (err == 0)
        err = wb_call_number(call, "page", 0, UINT64_MAX / PAGE_SIZE_MAX, &q->page);
    if (err == 0)
        err = read_resume(call, q);
    if (err == 0 && q->after_key.len && (q->sort != CDX_FORWARD || q->last))
        err = wb_fail(WB_E_INVALID, "a resumeKey goes on forwards only");
    if (err == 0 && q->last && q->match != CDX_EXACT &&
        (q->collapse_count || q->collapse_time || q->limit > LAST_MAX))
        err = wb_fail(WB_E_INVALID, "limit=-N of many URLs: N is at most %d, and there is no collapse", LAST_MAX);
    return err;
}

/* ---- what is not supported ----------------------------------------------------------------------- */

static bool is_one_of(struct wb_slice name, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (wb_slice_equal(name, wb_slice_str(words[i])))
            return true;
    return false;
}

/*
 * A parameter that we ignored would give an answer to another question. These belong to the dialects, but not to us: we
 * have no files in which records lie, and answers are never compressed. To say that one does not want them is allowed.
 */
static int refuse_others(struct wb_call *call, const struct cdx_query *q)
{
    static const char *const known[] = {
        "url", "matchType", "from", "to", "limit", "offset", "sort", "closest", "reverse", "filter", "collapse",
        "collapseTime", "fl", "fields", "output", "page", "pageSize", "showNumPages", "showResumeKey", "resumeKey"};
    static const char *const absent[] = {"resolveRevisits", "showDupeCount", "showSkipCount", "lastSkipTimestamp",
                                         "showPagedIndex", "gzip", "allowFuzzy", "fastLatest"};
    static const char *const negative[] = {"false", "0", "no", ""};
    const struct wb_http_request *request = call->request;

    for (size_t i = 0; i < request->param_count; i++) {
        struct wb_slice name = request->params[i].name, value = request->params[i].value;
        if (is_one_of(name, known, sizeof known / sizeof *known))
            continue;
        if (!q->ia && wb_slice_equal(name, WB_SLICE_LIT("resolveRevisits")))
            continue;
        /* The last captures are exact here, which is no worse than fast. */
        if (q->last && wb_slice_equal(name, WB_SLICE_LIT("fastLatest")))
            continue;
        if (!is_one_of(name, absent, sizeof absent / sizeof *absent))
            return wb_fail(WB_E_INVALID, "there is no parameter %.*s", WB_SLICE_ARG(name));
        if (!is_one_of(value, negative, sizeof negative / sizeof *negative))
            return wb_fail(WB_E_INVALID, "%.*s=%.*s is not supported", WB_SLICE_ARG(name), WB_SLICE_ARG(value));
    }
    return 0;
}

/* pywb's older form of collapse=timestamp:N, which also looks at the status. */
static int read_collapse_time(struct wb_call *call, struct cdx_query *q)
{
    uint64_t digits = 0;
    int err = wb_call_number(call, "collapseTime", 0, 14, &digits);

    if (err == 0 && digits == 0 && wb_http_param(call->request, "collapseTime").ptr)
        return wb_fail(WB_E_INVALID, "collapseTime: write a number of digits, 1 to 14");
    q->collapse_time = (size_t)digits;
    return err;
}

int cdx_query_read(struct wb_call *call, struct cdx_query *query_out)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC);
    *query_out = (struct cdx_query){.from_ms = INT64_MIN, .to_ms = INT64_MAX};
    query_out->ia = wb_slice_equal(call->request->path, WB_SLICE_LIT("/cdx/search/cdx"));
    int err = cdx_query_url(call, query_out);
    if (err == 0)
        err = read_time(call, "from", false, &query_out->from_ms);
    if (err == 0)
        err = read_time(call, "to", true, &query_out->to_ms);
    if (err == 0)
        err = read_limit(call, query_out);
    if (err == 0)
        err = read_sort(call, query_out);
    if (err == 0)
        err = read_output(call, query_out);
    if (err == 0)
        err = read_fields(call, query_out);
    if (err == 0)
        err = read_repeated(call, query_out);
    if (err == 0)
        err = read_collapse_time(call, query_out);
    if (err == 0)
        err = read_paging(call, query_out);
    return err < 0 ? err : refuse_others(call, query_out);
}
